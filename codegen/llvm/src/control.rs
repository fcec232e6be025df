//! Loops and branches. Each leaves the builder after the construct.
//!
//! The builder may be before the terminator of a finished block, as it is when something is hoisted out of a
//! loop. The block is then split: its contents go to a new block before the construct, and it keeps its
//! terminator, so that phis of its successors stay valid.

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

    /// The continuation of a construct: a new block, or the split-off end of the current one. The builder is
    /// left where the construct begins.
    fn exit(&self, name: &str) -> Result<BasicBlock<'ctx>> {
        let block = self.here()?;
        let Some(end) = block.get_terminator() else { return Ok(self.block(name)) };
        let first = self.context.prepend_basic_block(block, name);
        self.builder.position_at_end(first);
        while let Some(instruction) = block.get_first_instruction().filter(|&i| i != end) {
            instruction.remove_from_basic_block();
            self.builder.insert_instruction(&instruction, None);
        }
        // Branches to it. Without a terminator it has no successors, so no phis need updating.
        end.remove_from_basic_block();
        block.replace_all_uses_with(&first);
        self.builder.position_at_end(block);
        self.builder.insert_instruction(&end, None);
        self.builder.position_at_end(first);
        Ok(block)
    }

    /// Continues at the end of a block, before its terminator if it has one.
    pub(super) fn resume(&self, block: BasicBlock<'ctx>) {
        match block.get_terminator() {
            Some(end) => self.builder.position_before(&end),
            None => self.builder.position_at_end(block),
        }
    }

    /// A phi: a value that depends on the block that control comes from.
    fn phi(&self, incoming: &[(Value<'ctx>, BasicBlock<'ctx>)]) -> Result<Value<'ctx>> {
        let phi = self.builder.build_phi(incoming[0].0.get_type(), "")?;
        for (value, block) in incoming {
            phi.add_incoming(&[(value as &dyn BasicValue<'ctx>, *block)]);
        }
        Ok(phi.as_basic_value())
    }

    /// `for i in begin..end step`: scalar integers, signed (usually `i64`), step > 0; `end + step` must not
    /// overflow.
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

    /// [`Emit::for_range`] with loop-carried values; returns the last ones (the initial ones if it never
    /// runs).
    pub fn for_carried(
        &self,
        begin: Value<'ctx>,
        end: Value<'ctx>,
        step: Value<'ctx>,
        initial: &[Value<'ctx>],
        body: impl FnOnce(Value<'ctx>, &[Value<'ctx>]) -> Result<Vec<Value<'ctx>>>,
    ) -> Result<Vec<Value<'ctx>>> {
        let exit = self.exit("end")?;
        let before = self.here()?;
        let head = self.block("loop");
        let some = self.scalar_int(self.icmp(IntPredicate::SLT, begin, end)?)?;
        let always = some.get_zero_extended_constant() == Some(1);
        if always {
            self.builder.build_unconditional_branch(head)?;
        } else {
            self.builder.build_conditional_branch(some, head, exit)?;
        }

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

        self.resume(exit);
        if always {
            return Ok(next);
        }
        initial.iter().zip(&next).map(|(&first, &then)| self.phi(&[(first, before), (then, last)])).collect()
    }

    /// Repeats the body while its first value, a scalar `i1`, is set: `do { state = body(state) } while`.
    /// Returns the last state.
    pub fn do_while(
        &self,
        initial: &[Value<'ctx>],
        body: impl FnOnce(&[Value<'ctx>]) -> Result<(Value<'ctx>, Vec<Value<'ctx>>)>,
    ) -> Result<Vec<Value<'ctx>>> {
        let exit = self.exit("done")?;
        let before = self.here()?;
        let head = self.block("do");
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
        self.resume(exit);
        Ok(next)
    }

    /// If-then-else on a scalar `i1`; returns the values of the branch that ran (both have as many, of the
    /// same types).
    pub fn if_else(
        &self,
        condition: Value<'ctx>,
        then: impl FnOnce() -> Result<Vec<Value<'ctx>>>,
        otherwise: impl FnOnce() -> Result<Vec<Value<'ctx>>>,
    ) -> Result<Vec<Value<'ctx>>> {
        let exit = self.exit("join")?;
        let (yes, no) = (self.block("then"), self.block("else"));
        self.builder.build_conditional_branch(self.scalar_int(condition)?, yes, no)?;
        self.builder.position_at_end(yes);
        let a = then()?;
        let a_end = self.here()?;
        self.builder.build_unconditional_branch(exit)?;
        self.builder.position_at_end(no);
        let b = otherwise()?;
        let b_end = self.here()?;
        self.builder.build_unconditional_branch(exit)?;
        self.resume(exit);
        a.iter().zip(&b).map(|(&x, &y)| self.phi(&[(x, a_end), (y, b_end)])).collect()
    }

    /// If-then on a scalar `i1`.
    pub fn if_then(&self, condition: Value<'ctx>, then: impl FnOnce() -> Result<()>) -> Result<()> {
        let exit = self.exit("join")?;
        let yes = self.block("then");
        self.builder.build_conditional_branch(self.scalar_int(condition)?, yes, exit)?;
        self.builder.position_at_end(yes);
        then()?;
        self.builder.build_unconditional_branch(exit)?;
        self.resume(exit);
        Ok(())
    }

    /// Returns from a kernel.
    pub fn return_void(&self) -> Result<()> {
        self.builder.build_return(None)?;
        Ok(())
    }
}
