//! Loops and branches. Each leaves the builder after the construct.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::BasicValue;

use super::{Emit, Result, Value};

impl<'ctx> Emit<'_, 'ctx> {
    /// A new block at the end of the function.
    pub fn block(&self, name: &str) -> BasicBlock<'ctx> {
        self.context.append_basic_block(self.function, name)
    }

    fn here(&self) -> Result<BasicBlock<'ctx>> {
        self.builder.get_insert_block().ok_or_else(|| super::Error::Llvm("no block to build in".into()))
    }

    /// A value that depends on the block that control comes from.
    fn phi(&self, incoming: &[(Value<'ctx>, BasicBlock<'ctx>)]) -> Result<Value<'ctx>> {
        let phi = self.builder.build_phi(incoming[0].0.get_type(), "")?;
        for (value, block) in incoming {
            phi.add_incoming(&[(value as &dyn BasicValue<'ctx>, *block)]);
        }
        Ok(phi.as_basic_value())
    }

    /// `for i in begin..end step`: scalar integers, signed (`i64` as a rule), step > 0; `end + step` must not overflow.
    pub fn for_range(
        &self,
        begin: Value<'ctx>,
        end: Value<'ctx>,
        step: Value<'ctx>,
        body: impl FnOnce(Value<'ctx>) -> Result<()>,
    ) -> Result<()> {
        self.for_carried(begin, end, step, &[], |i, _| body(i).map(|()| Vec::new()))?;
        Ok(())
    }

    /// [`Emit::for_range`] with values carried from one run of the body to the next; gives the last ones (the initial ones if it never runs).
    pub fn for_carried(
        &self,
        begin: Value<'ctx>,
        end: Value<'ctx>,
        step: Value<'ctx>,
        initial: &[Value<'ctx>],
        body: impl FnOnce(Value<'ctx>, &[Value<'ctx>]) -> Result<Vec<Value<'ctx>>>,
    ) -> Result<Vec<Value<'ctx>>> {
        let before = self.here()?;
        let (head, exit) = (self.block("loop"), self.block("end"));
        let some = self.icmp(IntPredicate::SLT, begin, end)?;
        self.builder.build_conditional_branch(self.scalar_int(some)?, head, exit)?;

        self.builder.position_at_end(head);
        let i = self.builder.build_phi(begin.get_type(), "")?;
        i.add_incoming(&[(&begin, before)]);
        let mut phis = Vec::with_capacity(initial.len());
        for x in initial {
            let phi = self.builder.build_phi(x.get_type(), "")?;
            phi.add_incoming(&[(x as &dyn BasicValue<'ctx>, before)]);
            phis.push(phi);
        }
        let carried: Vec<Value<'ctx>> = phis.iter().map(|p| p.as_basic_value()).collect();
        let next = body(i.as_basic_value(), &carried)?;
        let last = self.here()?;
        let (index, step) = (self.scalar_int(i.as_basic_value())?, self.scalar_int(step)?);
        let after = self.builder.build_int_nsw_add(index, step, "")?;
        let more = self.builder.build_int_compare(IntPredicate::SLT, after, self.scalar_int(end)?, "")?;
        self.builder.build_conditional_branch(more, head, exit)?;
        i.add_incoming(&[(&after, last)]);
        for (phi, x) in phis.iter().zip(&next) {
            phi.add_incoming(&[(x as &dyn BasicValue<'ctx>, last)]);
        }

        self.builder.position_at_end(exit);
        initial.iter().zip(&next).map(|(&first, &then)| self.phi(&[(first, before), (then, last)])).collect()
    }

    /// Repeats the body while its first value, a scalar `i1`, is set: `do { state = body(state) } while`. Gives the last state.
    pub fn do_while(
        &self,
        initial: &[Value<'ctx>],
        body: impl FnOnce(&[Value<'ctx>]) -> Result<(Value<'ctx>, Vec<Value<'ctx>>)>,
    ) -> Result<Vec<Value<'ctx>>> {
        let before = self.here()?;
        let (head, exit) = (self.block("do"), self.block("done"));
        self.builder.build_unconditional_branch(head)?;
        self.builder.position_at_end(head);
        let mut phis = Vec::with_capacity(initial.len());
        for x in initial {
            let phi = self.builder.build_phi(x.get_type(), "")?;
            phi.add_incoming(&[(x as &dyn BasicValue<'ctx>, before)]);
            phis.push(phi);
        }
        let carried: Vec<Value<'ctx>> = phis.iter().map(|p| p.as_basic_value()).collect();
        let (more, next) = body(&carried)?;
        let last = self.here()?;
        self.builder.build_conditional_branch(self.scalar_int(more)?, head, exit)?;
        for (phi, x) in phis.iter().zip(&next) {
            phi.add_incoming(&[(x as &dyn BasicValue<'ctx>, last)]);
        }
        self.builder.position_at_end(exit);
        Ok(next)
    }

    /// Runs one of two pieces by a scalar `i1`; gives the values of the one that ran (both give as many, of the same types).
    pub fn if_else(
        &self,
        condition: Value<'ctx>,
        then: impl FnOnce() -> Result<Vec<Value<'ctx>>>,
        otherwise: impl FnOnce() -> Result<Vec<Value<'ctx>>>,
    ) -> Result<Vec<Value<'ctx>>> {
        let (yes, no, exit) = (self.block("then"), self.block("else"), self.block("join"));
        self.builder.build_conditional_branch(self.scalar_int(condition)?, yes, no)?;
        self.builder.position_at_end(yes);
        let a = then()?;
        let a_end = self.here()?;
        self.builder.build_unconditional_branch(exit)?;
        self.builder.position_at_end(no);
        let b = otherwise()?;
        let b_end = self.here()?;
        self.builder.build_unconditional_branch(exit)?;
        self.builder.position_at_end(exit);
        a.iter().zip(&b).map(|(&x, &y)| self.phi(&[(x, a_end), (y, b_end)])).collect()
    }

    /// Runs a piece if a scalar `i1` is set.
    pub fn if_then(&self, condition: Value<'ctx>, then: impl FnOnce() -> Result<()>) -> Result<()> {
        let (yes, exit) = (self.block("then"), self.block("join"));
        self.builder.build_conditional_branch(self.scalar_int(condition)?, yes, exit)?;
        self.builder.position_at_end(yes);
        then()?;
        self.builder.build_unconditional_branch(exit)?;
        self.builder.position_at_end(exit);
        Ok(())
    }

    /// Returns nothing: the end of a kernel.
    pub fn return_void(&self) -> Result<()> {
        self.builder.build_return(None)?;
        Ok(())
    }
}
