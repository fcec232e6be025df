//! Emission of the expression IR into the loop nest that is being built.
//!
//! A value is emitted at the outermost loop in which everything that it depends on is known (its *level*):
//! loop-invariant code motion by construction; it is one scalar where all lanes agree (uniform).
//! **Invariants:** what is known at a level was emitted in a block that dominates everything emitted at that
//! level or below; leaving a level forgets what was emitted there.

mod numbers;
mod tables;
mod values;

use inkwell::basic_block::BasicBlock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use self::numbers::index_type;
pub(super) use self::tables::Table;
use hlo_llvm::scalar::Val;
use hlo_llvm::{Emit, Error, Prim, Result, Value};
use hlo_opt::expr::index::AtomId;
use hlo_opt::expr::{Expr, GuardId, Magnitude, NodeId, Op};

/// A run-time integer: the value on lane 0, and how the other lanes differ.
#[derive(Clone, Copy)]
pub(super) struct Number<'ctx> {
    /// Lane 0; for a vector, what is to be added to all lanes. A scalar `i64`.
    pub(super) base: Value<'ctx>,
    /// The other lanes.
    pub(super) lanes: Spread<'ctx>,
    /// The level at which it is known.
    pub(super) level: usize,
    /// The value on lane 0, if it is known at compile time.
    first: Option<i64>,
}

/// How the lanes of an integer differ.
#[derive(Clone, Copy)]
pub(super) enum Spread<'ctx> {
    /// A constant stride between lanes; 0: uniform.
    Linear(i64),
    /// Constant offsets from lane 0 ([`Code::steps_of`]): quotients and remainders on lanes that begin at a
    /// multiple of the divisor.
    Steps(StepsId),
    /// A vector of offsets, of the kernel's index type.
    Vector(Value<'ctx>),
}

/// Interned offsets of lanes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StepsId(u32);

/// A term of a sum: a value and its factor.
#[derive(Clone, Copy)]
struct Term<'ctx> {
    value: Value<'ctx>,
    factor: i64,
    /// The level at which it is known.
    level: usize,
    /// Lanes differ in it.
    varies: bool,
}

type Terms<'ctx> = SmallVec<[Term<'ctx>; 4]>;

/// A mask of lanes.
#[derive(Clone, Copy)]
pub(super) struct Mask<'ctx> {
    /// An `i1`, or a vector of them.
    pub(super) value: Value<'ctx>,
    /// The level at which it is known.
    pub(super) level: usize,
    /// The enabled lanes, one bit each, if they are known at compile time.
    pub(super) known: Option<u64>,
}

/// A loop variable.
#[derive(Clone, Copy)]
struct Var<'ctx> {
    value: Value<'ctx>,
    /// Consecutive lanes have consecutive values.
    vector: bool,
    /// A divisor of the value on lane 0 (alignment).
    multiple: i64,
    level: usize,
}

#[derive(Clone, Copy)]
struct Known<'ctx> {
    lanes: Val<'ctx>,
    /// Uniform: one lane for all.
    uniform: bool,
    /// Broadcast to all lanes, and the number of lanes.
    splat: Option<(u32, Val<'ctx>)>,
    level: usize,
}

enum Made<'ctx> {
    Node(NodeId),
    Atom(AtomId),
    Mask(GuardId),
    Var(u32, Option<Var<'ctx>>),
    Given(u32),
}

struct Level<'ctx> {
    block: BasicBlock<'ctx>,
    made: Vec<Made<'ctx>>,
}

/// The addresses of a load or store.
pub(super) struct Addresses<'ctx> {
    /// The address of lane 0, or the base that offsets are relative to.
    pub(super) address: Value<'ctx>,
    /// Byte offsets of the lanes.
    pub(super) lanes: Spread<'ctx>,
    /// The level at which it is known.
    pub(super) level: usize,
    /// An address that is valid in any case.
    origin: Value<'ctx>,
    /// The number of elements from there on that exist, if that is known and lanes may go past it.
    elements: i64,
    /// Lanes that are masked off may be far outside of the array.
    far: bool,
}

/// The emitter of an expression in a function.
pub(super) struct Code<'c, 'a, 'ctx, 'm> {
    /// The scalar emitter.
    pub(super) e: Emit<'a, 'ctx>,
    /// The expression.
    pub(super) expr: &'c Expr<'m>,
    /// The number of lanes of non-uniform values.
    pub(super) lanes: u32,
    /// Active lanes, if not all are: the remainder of a row.
    pub(super) active: Option<Mask<'ctx>>,
    /// Addresses of the arrays.
    pub(super) pointers: Vec<Value<'ctx>>,
    /// The kernel's first parameter.
    pub(super) arguments: Value<'ctx>,
    /// The level that loads of arrays that are written may not be hoisted out of.
    pub(super) written: usize,
    /// The prefetch distance in bytes for contiguous elements that the innermost loop reads; 0: left to the
    /// hardware prefetcher.
    pub(super) ahead: u64,
    /// The innermost loop stores narrow elements that are not contiguous.
    pub(super) scatters: bool,
    index: Prim,
    given: FxHashMap<u32, Known<'ctx>>,
    vars: Vec<Option<Var<'ctx>>>,
    levels: Vec<Level<'ctx>>,
    nodes: Vec<Option<Known<'ctx>>>,
    atoms: Vec<Option<Number<'ctx>>>,
    masks: Vec<Option<Mask<'ctx>>>,
    /// By [`StepsId`], for each lane.
    steps: Vec<Box<[i64]>>,
    /// The range of each node, once one was asked for.
    magnitudes: Option<Vec<Option<Magnitude>>>,
}

impl<'c, 'a, 'ctx, 'm> Code<'c, 'a, 'ctx, 'm> {
    /// Begins at the builder's position, which is level 0. `arguments` is the kernel's first parameter.
    pub(super) fn new(
        e: Emit<'a, 'ctx>,
        expr: &'c Expr<'m>,
        lanes: u32,
        arguments: Value<'ctx>,
    ) -> Result<Self> {
        let mut pointers = Vec::new();
        for array in &expr.arrays {
            let start = e.argument(arguments, array.argument as usize)?;
            pointers.push(e.address_at(start, array.offset)?);
        }
        let mut code = Self {
            e: e.scalar(),
            expr,
            lanes,
            active: None,
            pointers,
            arguments,
            written: 0,
            ahead: 0,
            scatters: false,
            index: index_type(expr),
            given: FxHashMap::default(),
            vars: Vec::new(),
            levels: Vec::new(),
            nodes: vec![None; expr.nodes.len()],
            atoms: vec![None; expr.space.atoms.len()],
            masks: vec![None; expr.guards.len()],
            steps: Vec::new(),
            magnitudes: None,
        };
        code.enter()?;
        Ok(code)
    }

    fn here(&self) -> Result<BasicBlock<'ctx>> {
        self.e.builder.get_insert_block().ok_or_else(|| Error::Llvm("no block to build in".into()))
    }

    /// Begins a level at the builder's position.
    pub(super) fn enter(&mut self) -> Result<()> {
        let block = self.here()?;
        self.levels.push(Level { block, made: Vec::new() });
        Ok(())
    }

    /// Ends the innermost level: forgets what was emitted there.
    pub(super) fn leave(&mut self) {
        for made in self.levels.pop().map(|l| l.made).unwrap_or_default().into_iter().rev() {
            match made {
                Made::Node(n) => self.nodes[n as usize] = None,
                Made::Atom(a) => self.atoms[a.0 as usize] = None,
                Made::Mask(g) => self.masks[g as usize] = None,
                Made::Var(v, before) => self.vars[v as usize] = before,
                Made::Given(n) => drop(self.given.remove(&n)),
            }
        }
    }

    /// The innermost level.
    pub(super) fn level(&self) -> usize {
        self.levels.len() - 1
    }

    /// Makes the current block the one in which the innermost level continues: before control flow that is
    /// not a level of its own.
    pub(super) fn mark(&mut self) -> Result<()> {
        let block = self.here()?;
        if let Some(level) = self.levels.last_mut() {
            level.block = block;
        }
        Ok(())
    }

    /// Emits at a level.
    fn at<T>(&self, level: usize, f: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        if level >= self.level() {
            return f(self);
        }
        let here = self.here()?;
        let block = self.levels[level].block;
        match block.get_terminator() {
            Some(end) => self.e.builder.position_before(&end),
            None => self.e.builder.position_at_end(block),
        }
        let result = f(self);
        self.e.builder.position_at_end(here);
        result
    }

    /// `for var in begin..end step`, whose body is a level of its own. As a vector loop, consecutive lanes
    /// have consecutive values of the variable.
    #[expect(clippy::too_many_arguments, reason = "a loop has that many parts")]
    pub(super) fn for_var(
        &mut self,
        var: u32,
        begin: Value<'ctx>,
        end: Value<'ctx>,
        step: i64,
        vector: bool,
        multiple: i64,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.settle()?;
        self.mark()?;
        let e = self.e;
        e.for_range(begin, end, e.i64(step), |i| {
            self.enter()?;
            self.set_var(var, i, vector, multiple);
            body(self)?;
            self.leave();
            Ok(())
        })?;
        self.mark()
    }

    /// [`Code::for_var`] with loop-carried values.
    #[expect(clippy::too_many_arguments, reason = "a loop has that many parts")]
    pub(super) fn fold_var(
        &mut self,
        var: u32,
        begin: Value<'ctx>,
        end: Value<'ctx>,
        step: i64,
        vector: bool,
        multiple: i64,
        initial: &[Value<'ctx>],
        body: impl FnOnce(&mut Self, &[Value<'ctx>]) -> Result<Vec<Value<'ctx>>>,
    ) -> Result<Vec<Value<'ctx>>> {
        self.settle()?;
        self.mark()?;
        let e = self.e;
        let last = e.for_carried(begin, end, e.i64(step), initial, |i, carried| {
            self.enter()?;
            self.set_var(var, i, vector, multiple);
            let next = body(self, carried)?;
            self.leave();
            Ok(next)
        })?;
        self.mark()?;
        Ok(last)
    }

    /// Emits, before a loop begins, what contains branches and can be known by now: branches cannot be
    /// hoisted out of the loop later.
    fn settle(&mut self) -> Result<()> {
        let expr = self.expr;
        if !expr.nodes.iter().enumerate().any(|(n, _)| self.nodes[n].is_none() && expr.branches(n as NodeId))
        {
            return Ok(());
        }
        let mut known = vec![false; expr.nodes.len()];
        for n in 0..expr.nodes.len() {
            let node = n as NodeId;
            let given = match &expr.nodes[n].op {
                Op::Given { number } => self.given.get(number).is_some_and(|g| g.level < self.levels.len()),
                _ => true,
            };
            let mut all =
                given && expr.vars_of(node, &mut |v| self.vars.get(v as usize).is_some_and(Option::is_some));
            expr.for_each_operand(node, &mut |m| all &= known[m as usize]);
            known[n] = all || self.nodes[n].is_some();
            if all && self.nodes[n].is_none() && expr.branches(node) {
                self.value(node)?;
            }
        }
        Ok(())
    }

    /// Sets a loop variable at the innermost level.
    pub(super) fn set_var(&mut self, var: u32, value: Value<'ctx>, vector: bool, multiple: i64) {
        let level = self.level();
        let index = var as usize;
        if self.vars.len() <= index {
            self.vars.resize(index + 1, None);
        }
        let now = Var { value, vector: vector && self.lanes > 1, multiple, level };
        let before = self.vars[index].replace(now);
        self.levels[level].made.push(Made::Var(var, before));
    }

    /// Makes a loop variable unknown until the innermost level ends, or until it is set.
    pub(super) fn hide_var(&mut self, var: u32) {
        let level = self.level();
        if let Some(known) = self.vars.get_mut(var as usize) {
            let before = known.take();
            self.levels[level].made.push(Made::Var(var, before));
        }
    }

    /// The value of a loop variable on lane 0.
    pub(super) fn var(&self, var: u32) -> Result<Value<'ctx>> {
        let known = self.vars.get(var as usize).copied().flatten();
        known.map(|v| v.value).ok_or_else(|| Error::Llvm(format!("loop variable {var} is not known here")))
    }

    /// Defines a value of [`Op::Given`] at the innermost level: uniform, or one per lane.
    pub(super) fn give(&mut self, number: u32, lanes: Val<'ctx>, uniform: bool) {
        let level = self.level();
        self.given.insert(number, Known { lanes, uniform: uniform || self.lanes == 1, splat: None, level });
        self.levels[level].made.push(Made::Given(number));
    }

    /// Defines a node on all lanes, at the innermost level.
    pub(super) fn know(&mut self, node: NodeId, lanes: Val<'ctx>) {
        let level = self.level();
        if self.nodes[node as usize].is_none() {
            self.nodes[node as usize] = Some(Known { lanes, uniform: self.lanes == 1, splat: None, level });
            self.levels[level].made.push(Made::Node(node));
        }
    }
}
