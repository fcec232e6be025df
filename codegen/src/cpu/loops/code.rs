//! Emission of a tape into the loop nest that is being built.
//!
//! A value is made at the outermost loop in which all that it depends on is known (a *level*), so what does not change in an inner loop is not
//! computed there, and it is one scalar where all lanes agree. **Invariants:** what is known at a level was emitted in a block that dominates
//! everything that is emitted at that level or below; leaving a level forgets what was made there.

use inkwell::basic_block::BasicBlock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::index::{Affine, AtomId, Def};
use super::tape::{ALWAYS, Condition, GuardId, NodeId, Op, Tape};
use crate::cpu::llvm::{Emit, Error, IntPredicate, Prim, Result, Value};
use crate::cpu::scalar::{self, Val};

/// A number at run time: of lane 0 and of the others.
#[derive(Clone, Copy)]
pub(super) struct Number<'ctx> {
    /// Of lane 0, but for a vector: what is to be added to all lanes. A scalar `i64`.
    pub(super) base: Value<'ctx>,
    /// The others.
    pub(super) lanes: Spread<'ctx>,
    /// Where it is known.
    pub(super) level: usize,
}

/// How lanes of a number differ.
#[derive(Clone, Copy)]
pub(super) enum Spread<'ctx> {
    /// Each is so much more than the one before; 0: they are all the same.
    Linear(i64),
    /// By these numbers, a vector of the kernel's index type.
    Vector(Value<'ctx>),
}

/// A value and its factor in a sum.
#[derive(Clone, Copy)]
struct Term<'ctx> {
    value: Value<'ctx>,
    factor: i64,
    /// Where it is known.
    level: usize,
    /// Lanes differ in it.
    varies: bool,
}

type Terms<'ctx> = SmallVec<[Term<'ctx>; 4]>;

/// Whether lanes are enabled.
#[derive(Clone, Copy)]
pub(super) struct Mask<'ctx> {
    /// An `i1`, or one a lane.
    pub(super) value: Value<'ctx>,
    /// Where it is known.
    pub(super) level: usize,
}

/// A loop variable.
#[derive(Clone, Copy)]
struct Var<'ctx> {
    value: Value<'ctx>,
    /// Consecutive lanes have consecutive values.
    vector: bool,
    /// The value of lane 0 is a multiple of this.
    multiple: i64,
    level: usize,
}

#[derive(Clone, Copy)]
struct Known<'ctx> {
    lanes: Val<'ctx>,
    /// One lane for all.
    uniform: bool,
    splat: Option<Val<'ctx>>,
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

/// Where a load or store goes.
pub(super) struct Place<'ctx> {
    /// The address of lane 0, or what offsets are relative to.
    pub(super) address: Value<'ctx>,
    /// In bytes.
    pub(super) lanes: Spread<'ctx>,
    /// Where it is known.
    pub(super) level: usize,
    /// An address that exists in any case.
    origin: Value<'ctx>,
}

/// A tape in a function.
pub(super) struct Code<'c, 'a, 'ctx, 'm> {
    /// At one lane.
    pub(super) e: Emit<'a, 'ctx>,
    /// What is emitted.
    pub(super) tape: &'c Tape<'m>,
    /// Lanes of values that are not the same in all of them.
    pub(super) lanes: u32,
    /// Lanes that exist, if not all do: the end of a row.
    pub(super) active: Option<Mask<'ctx>>,
    /// Addresses of the arrays.
    pub(super) pointers: Vec<Value<'ctx>>,
    /// The kernel's first parameter.
    pub(super) arguments: Value<'ctx>,
    /// The level that loads of arrays that are written may not leave.
    pub(super) written: usize,
    /// What is so many bytes ahead of consecutive elements that the innermost loop reads is asked for early; 0: left to the processor.
    pub(super) ahead: u64,
    index: Prim,
    given: FxHashMap<u32, Known<'ctx>>,
    vars: Vec<Option<Var<'ctx>>>,
    levels: Vec<Level<'ctx>>,
    nodes: Vec<Option<Known<'ctx>>>,
    atoms: Vec<Option<Number<'ctx>>>,
    masks: Vec<Option<Mask<'ctx>>>,
}

impl<'c, 'a, 'ctx, 'm> Code<'c, 'a, 'ctx, 'm> {
    /// Begins at the builder's place, which is level 0. `arguments` is the kernel's first parameter.
    pub(super) fn new(
        e: Emit<'a, 'ctx>,
        tape: &'c Tape<'m>,
        lanes: u32,
        arguments: Value<'ctx>,
    ) -> Result<Self> {
        let mut pointers = Vec::new();
        for array in &tape.arrays {
            let start = e.argument(arguments, array.argument as usize)?;
            pointers.push(e.address_at(start, array.offset)?);
        }
        let mut code = Self {
            e: e.scalar(),
            tape,
            lanes,
            active: None,
            pointers,
            arguments,
            written: 0,
            ahead: 0,
            index: index_type(tape),
            given: FxHashMap::default(),
            vars: Vec::new(),
            levels: Vec::new(),
            nodes: vec![None; tape.nodes.len()],
            atoms: vec![None; tape.space.atoms.len()],
            masks: vec![None; tape.guards.len()],
        };
        code.enter()?;
        Ok(code)
    }

    fn here(&self) -> Result<BasicBlock<'ctx>> {
        self.e.builder.get_insert_block().ok_or_else(|| Error::Llvm("no block to build in".into()))
    }

    /// Begins a level at the builder's place.
    pub(super) fn enter(&mut self) -> Result<()> {
        let block = self.here()?;
        self.levels.push(Level { block, made: Vec::new() });
        Ok(())
    }

    /// Ends the innermost level: what was made there is not known any more.
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

    /// Says that the current block is where the innermost level goes on: before control flow that is not a level of its own.
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

    /// `for var in begin..end step`, the body being a level of its own. With lanes, consecutive lanes have consecutive values of the variable.
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

    /// [`Code::for_var`] with carried values.
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

    /// Emits, before a loop begins, what branches and can be known by now: nothing that branches can be emitted here from within the loop.
    fn settle(&mut self) -> Result<()> {
        let tape = self.tape;
        if !tape.nodes.iter().enumerate().any(|(n, _)| self.nodes[n].is_none() && tape.branches(n as NodeId))
        {
            return Ok(());
        }
        let mut known = vec![false; tape.nodes.len()];
        for n in 0..tape.nodes.len() {
            let node = n as NodeId;
            let given = match &tape.nodes[n].op {
                Op::Given { number } => self.given.get(number).is_some_and(|g| g.level < self.levels.len()),
                _ => true,
            };
            let mut all =
                given && tape.vars_of(node, &mut |v| self.vars.get(v as usize).is_some_and(Option::is_some));
            tape.for_each_operand(node, &mut |m| all &= known[m as usize]);
            known[n] = all || self.nodes[n].is_some();
            if all && self.nodes[n].is_none() && tape.branches(node) {
                self.value(node)?;
            }
        }
        Ok(())
    }

    /// Gives a loop variable its value, at the innermost level.
    pub(super) fn set_var(&mut self, var: u32, value: Value<'ctx>, vector: bool, multiple: i64) {
        let level = self.level();
        let place = var as usize;
        if self.vars.len() <= place {
            self.vars.resize(place + 1, None);
        }
        let now = Var { value, vector: vector && self.lanes > 1, multiple, level };
        let before = self.vars[place].replace(now);
        self.levels[level].made.push(Made::Var(var, before));
    }

    /// The value of a loop variable, of lane 0.
    pub(super) fn var(&self, var: u32) -> Result<Value<'ctx>> {
        let known = self.vars.get(var as usize).copied().flatten();
        known.map(|v| v.value).ok_or_else(|| Error::Llvm(format!("loop variable {var} is not known here")))
    }

    /// Gives a value of [`Op::Given`] at the innermost level: one for all lanes, or one a lane.
    pub(super) fn give(&mut self, number: u32, lanes: Val<'ctx>, uniform: bool) {
        let level = self.level();
        self.given.insert(number, Known { lanes, uniform: uniform || self.lanes == 1, splat: None, level });
        self.levels[level].made.push(Made::Given(number));
    }

    /// Says what a node is on all lanes, at the innermost level.
    pub(super) fn know(&mut self, node: NodeId, lanes: Val<'ctx>) {
        let level = self.level();
        if self.nodes[node as usize].is_none() {
            self.nodes[node as usize] = Some(Known { lanes, uniform: self.lanes == 1, splat: None, level });
            self.levels[level].made.push(Made::Node(node));
        }
    }

    // ---- numbers

    fn atom(&mut self, id: AtomId) -> Result<Number<'ctx>> {
        if let Some(known) = self.atoms[id.0 as usize] {
            return Ok(known);
        }
        let tape = self.tape;
        let atom = tape.space.atom(id);
        let number = match &atom.def {
            Def::Var(v) => {
                let var = self.vars.get(*v as usize).copied().flatten();
                let var = var.ok_or_else(|| Error::Llvm(format!("loop variable {v} is not known here")))?;
                Number { base: var.value, lanes: Spread::Linear(i64::from(var.vector)), level: var.level }
            }
            Def::Div(x, d) => self.quotient(x, *d, true)?,
            Def::Mod(x, d) => self.quotient(x, *d, false)?,
            Def::Value(node) => {
                let known = self.node(*node)?;
                let ty = tape.nodes[*node as usize].ty;
                let lanes = if known.uniform { 1 } else { self.lanes };
                let level = known.level;
                let (low, high) = (atom.low, atom.high);
                let index = self.index;
                let value = self.at(level, |c| {
                    let prim = if known.uniform { Prim::I64 } else { index };
                    c.clamped(&c.e.with_lanes(lanes), &known.lanes, ty, prim, low, high)
                })?;
                match known.uniform {
                    true => Number { base: value, lanes: Spread::Linear(0), level },
                    false => Number { base: self.e.i64(0), lanes: Spread::Vector(value), level },
                }
            }
        };
        self.levels[number.level].made.push(Made::Atom(id));
        self.atoms[id.0 as usize] = Some(number);
        Ok(number)
    }

    /// An integer of any type as one of another width, clamped to a range that fits that.
    fn clamped(
        &self,
        e: &Emit<'a, 'ctx>,
        x: &Val<'ctx>,
        ty: hlo::ElementType,
        to: Prim,
        low: i64,
        high: i64,
    ) -> Result<Value<'ctx>> {
        let signed = ty.is_signed_integer();
        let value = x.registers()[0];
        let wide = e.prim_of(value).bits().max(to.bits());
        let prim = Prim::int(wide);
        let value = e.resize(value, prim, signed)?;
        // Unsigned numbers beyond the signed range are above every bound.
        let (less, more) = if signed {
            (IntPredicate::SLT, IntPredicate::SGT)
        } else {
            (IntPredicate::ULT, IntPredicate::UGT)
        };
        let mut value = value;
        if signed || low > 0 {
            let low = e.int(prim, low.cast_unsigned());
            value = e.select(e.icmp(less, value, low)?, low, value)?;
        }
        let high = e.int(prim, high.cast_unsigned());
        value = e.select(e.icmp(more, value, high)?, high, value)?;
        e.resize(value, to, true)
    }

    fn quotient(&mut self, x: &Affine, d: i64, quotient: bool) -> Result<Number<'ctx>> {
        let number = self.number(x)?;
        let level = number.level;
        let scalar = |c: &Self| {
            let (e, d) = (c.e, c.e.i64(d));
            if quotient { e.udiv(number.base, d) } else { e.urem(number.base, d) }
        };
        if let Spread::Linear(stride) = number.lanes {
            // Lanes that lie between two multiples of the divisor have one quotient.
            let together = stride > 0 && {
                let multiple = self.multiple(x);
                d % multiple == 0 && stride.saturating_mul(i64::from(self.lanes) - 1) < multiple
            };
            if stride == 0 || together {
                let base = self.at(level, scalar)?;
                let lanes = Spread::Linear(if quotient { 0 } else { stride });
                return Ok(Number { base, lanes, level });
            }
        }
        let all = self.vector_number(&number)?;
        let value = self.at(level, |c| {
            let e = c.e.with_lanes(c.lanes);
            let d = e.int(c.index, d.cast_unsigned());
            if quotient { e.udiv(all, d) } else { e.urem(all, d) }
        })?;
        Ok(Number { base: self.e.i64(0), lanes: Spread::Vector(value), level })
    }

    /// What lane 0 of a number is known to be a multiple of.
    fn multiple(&self, x: &Affine) -> i64 {
        let mut all = x.constant.unsigned_abs();
        for &(a, f) in &x.terms {
            let of = match self.tape.space.atom(a).def {
                Def::Var(v) => self.vars.get(v as usize).copied().flatten().map_or(1, |v| v.multiple),
                Def::Div(..) | Def::Mod(..) | Def::Value(_) => 1,
            };
            let (mut p, mut q) = (all, f.unsigned_abs().saturating_mul(of.unsigned_abs()));
            while q != 0 {
                (p, q) = (q, p % q);
            }
            all = p;
        }
        if all == 0 { 1 << 40 } else { i64::try_from(all).unwrap_or(1) }
    }

    /// All lanes of a number as a vector of the index type.
    fn vector_number(&self, number: &Number<'ctx>) -> Result<Value<'ctx>> {
        self.at(number.level, |c| {
            let e = c.e.with_lanes(c.lanes);
            let base = e.splat(c.e.resize(number.base, c.index, true)?)?;
            match number.lanes {
                Spread::Linear(0) => Ok(base),
                Spread::Linear(stride) => {
                    let steps: Vec<u64> =
                        (0..i64::from(c.lanes)).map(|l| l.wrapping_mul(stride).cast_unsigned()).collect();
                    e.add(base, e.int_lanes(c.index, &steps))
                }
                Spread::Vector(more) => e.add(base, more),
            }
        })
    }

    /// `start + sum of factor * number` over terms by level, outer ones first, but what the innermost loop counts last: so what comes before may leave
    /// that loop.
    fn sum(
        &self,
        terms: &mut [Term<'ctx>],
        start: Value<'ctx>,
        add: impl Fn(&Self, Value<'ctx>, Value<'ctx>) -> Result<Value<'ctx>>,
    ) -> Result<(Value<'ctx>, usize)> {
        terms.sort_by_key(|t| (t.varies, t.level));
        let (mut sum, mut level) = (start, 0);
        for &Term { value, factor, level: l, .. } in terms.iter() {
            level = level.max(l);
            sum = self.at(level, |c| {
                let product = if factor == 1 { value } else { c.e.mul(value, c.e.i64(factor))? };
                add(c, sum, product)
            })?;
        }
        Ok((sum, level))
    }

    fn spread(&mut self, x: &Affine) -> Result<(Terms<'ctx>, Spread<'ctx>, usize)> {
        let mut terms = SmallVec::new();
        let (mut stride, mut vector, mut level) = (0i64, None, 0);
        for &(a, factor) in &x.terms {
            let number = self.atom(a)?;
            level = level.max(number.level);
            match number.lanes {
                Spread::Linear(s) => {
                    stride = stride.wrapping_add(s.wrapping_mul(factor));
                    terms.push(Term { value: number.base, factor, level: number.level, varies: s != 0 });
                }
                Spread::Vector(lanes) => {
                    let l = level;
                    let sum = self.at(l, |c| {
                        let e = c.e.with_lanes(c.lanes);
                        let product = if factor == 1 {
                            lanes
                        } else {
                            e.mul(lanes, e.int(c.index, factor.cast_unsigned()))?
                        };
                        vector.map_or(Ok(product), |v| e.add(v, product))
                    })?;
                    vector = Some(sum);
                }
            }
        }
        let lanes = match vector {
            None => Spread::Linear(stride),
            Some(v) if stride == 0 => Spread::Vector(v),
            Some(v) => Spread::Vector(self.at(level, |c| {
                let e = c.e.with_lanes(c.lanes);
                let steps: Vec<u64> =
                    (0..i64::from(c.lanes)).map(|l| l.wrapping_mul(stride).cast_unsigned()).collect();
                e.add(v, e.int_lanes(c.index, &steps))
            })?),
        };
        Ok((terms, lanes, level))
    }

    /// A number at run time.
    pub(super) fn number(&mut self, x: &Affine) -> Result<Number<'ctx>> {
        let (mut terms, lanes, level) = self.spread(x)?;
        let (base, at) = if terms.is_empty() {
            (self.e.i64(x.constant), 0)
        } else if let ([Term { value, factor: 1, level: l, .. }], 0) = (&terms[..], x.constant) {
            (*value, *l)
        } else {
            let first = self.e.i64(0);
            let (sum, l) =
                self.sum(&mut terms, first, |c, a, b| if a == first { Ok(b) } else { c.e.add(a, b) })?;
            let constant = x.constant;
            let sum = if constant == 0 { sum } else { self.at(l, |c| c.e.add(sum, c.e.i64(constant)))? };
            (sum, l)
        };
        Ok(Number { base, lanes, level: level.max(at) })
    }

    /// The address of an element of an array, or of one for each lane.
    pub(super) fn place(&mut self, array: u32, at: &Affine) -> Result<Place<'ctx>> {
        let bytes = self.tape.arrays[array as usize].shape.element_type.storage_bytes() as i64;
        let pointer = self.pointers[array as usize];
        self.place_from(pointer, 0, at, bytes)
    }

    /// The address of elements of so many bytes from a pointer that is known at a level.
    pub(super) fn place_from(
        &mut self,
        pointer: Value<'ctx>,
        known_at: usize,
        at: &Affine,
        bytes: i64,
    ) -> Result<Place<'ctx>> {
        let at = at.times(bytes);
        let (mut terms, lanes, level) = self.spread(&at)?;
        for t in &mut terms {
            t.level = t.level.max(known_at);
        }
        let (sum, l) = self.sum(&mut terms, pointer, |c, a, b| c.e.address(a, b))?;
        let l = l.max(known_at);
        let address = match at.constant {
            0 => sum,
            constant => self.at(l, |c| c.e.address(sum, c.e.i64(constant)))?,
        };
        Ok(Place { address, lanes, level: level.max(l), origin: pointer })
    }

    // ---- guards

    fn condition(&mut self, c: &Condition) -> Result<Mask<'ctx>> {
        let number = self.number(&c.value)?;
        let (low, high) = self.tape.space.range(&c.value);
        let (from, to) = (c.low.max(low), c.high.min(high.saturating_add(1)));
        let level = number.level;
        let uniform = matches!(number.lanes, Spread::Linear(0));
        let all = if uniform { number.base } else { self.vector_number(&number)? };
        let value = self.at(level, |c| {
            let e = if uniform { c.e } else { c.e.with_lanes(c.lanes) };
            let prim = e.prim_of(all);
            // from <= x < to as one unsigned comparison.
            let shifted = if from == 0 { all } else { e.sub(all, e.int(prim, from.cast_unsigned()))? };
            e.icmp(IntPredicate::ULT, shifted, e.int(prim, to.wrapping_sub(from).cast_unsigned()))
        })?;
        Ok(Mask { value, level })
    }

    /// Where a guard holds; `None`: everywhere.
    pub(super) fn mask(&mut self, guard: GuardId) -> Result<Option<Mask<'ctx>>> {
        if guard == ALWAYS {
            return Ok(None);
        }
        if let Some(known) = self.masks[guard as usize] {
            return Ok(Some(known));
        }
        let tape = self.tape;
        let mut all: Option<Mask<'ctx>> = None;
        for c in &tape.guards[guard as usize] {
            let mask = self.condition(c)?;
            all = Some(match all {
                None => mask,
                Some(before) => self.both(before, mask)?,
            });
        }
        if let Some(mask) = all {
            self.levels[mask.level].made.push(Made::Mask(guard));
            self.masks[guard as usize] = Some(mask);
        }
        Ok(all)
    }

    /// Where both hold.
    pub(super) fn both(&self, a: Mask<'ctx>, b: Mask<'ctx>) -> Result<Mask<'ctx>> {
        let level = a.level.max(b.level);
        let value = self.at(level, |c| {
            let lanes = c.e.lanes_of(a.value).max(c.e.lanes_of(b.value));
            let e = c.e.with_lanes(lanes);
            e.and(e.splat(a.value)?, e.splat(b.value)?)
        })?;
        Ok(Mask { value, level })
    }

    // ---- values

    /// The value of a node on all lanes (one if there is one lane).
    pub(super) fn value(&mut self, node: NodeId) -> Result<Val<'ctx>> {
        self.demand(node)?;
        self.splat(node)
    }

    /// Emits everything that a node needs, operands first: nothing here recurs as deep as an expression is.
    fn demand(&mut self, node: NodeId) -> Result<()> {
        if self.nodes[node as usize].is_some() {
            return Ok(());
        }
        let tape = self.tape;
        let mut needed: Vec<NodeId> = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        let mut pending = vec![node];
        while let Some(n) = pending.pop() {
            if self.nodes[n as usize].is_some() || !seen.insert(n) {
                continue;
            }
            needed.push(n);
            tape.for_each_operand(n, &mut |m| pending.push(m));
        }
        needed.sort_unstable();
        for n in needed {
            self.node(n)?;
        }
        Ok(())
    }

    fn splat(&mut self, node: NodeId) -> Result<Val<'ctx>> {
        let known = self.node(node)?;
        if !known.uniform || self.lanes == 1 {
            return Ok(known.lanes);
        }
        if let Some(splat) = known.splat {
            return Ok(splat);
        }
        let lanes = self.lanes;
        let splat = self.at(known.level, |c| known.lanes.splat(&c.e.with_lanes(lanes)))?;
        if let Some(known) = &mut self.nodes[node as usize] {
            known.splat = Some(splat);
        }
        Ok(splat)
    }

    /// A node whose operands are known.
    fn node(&mut self, node: NodeId) -> Result<Known<'ctx>> {
        if let Some(known) = &self.nodes[node as usize] {
            return Ok(*known);
        }
        let tape = self.tape;
        let ty = tape.nodes[node as usize].ty;
        let known = match &tape.nodes[node as usize].op {
            Op::Load { array, at, guard } => self.load_node(*array, at, *guard)?,
            Op::Constant { instr, at } => self.constant_node(*instr, at, ty)?,
            Op::Iota { value } => {
                let number = self.number(value)?;
                let uniform = matches!(number.lanes, Spread::Linear(0)) || self.lanes == 1;
                let level = number.level;
                let all = if uniform { number.base } else { self.vector_number(&number)? };
                let lanes = self.at(level, |c| {
                    let e = c.e.with_lanes(if uniform { 1 } else { c.lanes });
                    let from = match e.prim_of(all) {
                        Prim::I32 => hlo::ElementType::S32,
                        _ => hlo::ElementType::S64,
                    };
                    let x = Val::of_storage(&e, from, &[all])?;
                    scalar::convert(&e, x, ty)
                })?;
                Known { lanes, uniform, splat: None, level }
            }
            Op::Elementwise { instr, operands } => {
                let (instr, module) = (*instr, tape.module);
                let branches = tape.branches(node);
                self.elementwise(operands, branches, |e, values| {
                    scalar::elementwise(e, module.instr(instr), values)
                })?
            }
            Op::Convert { operand } => {
                self.elementwise(&[*operand], false, |e, values| scalar::convert(e, values[0], ty))?
            }
            Op::Select { guard, yes, no } => {
                let mask = self.mask(*guard)?;
                let Some(mask) = mask else { return self.node(*yes) };
                let (a, b) = (self.node(*yes)?, self.node(*no)?);
                let uniform = a.uniform && b.uniform && self.e.lanes_of(mask.value) == 1;
                let (x, y) = if uniform { (a.lanes, b.lanes) } else { (self.splat(*yes)?, self.splat(*no)?) };
                let level = a.level.max(b.level).max(mask.level);
                let lanes = self.at(level, |c| {
                    let e = c.e.with_lanes(if uniform { 1 } else { c.lanes });
                    scalar::select(&e, mask.value, &x, &y)
                })?;
                Known { lanes, uniform: uniform || self.lanes == 1, splat: None, level }
            }
            Op::Bits { operand } => self.elementwise(&[*operand], false, |e, values| {
                scalar::of_pattern(e, ty, scalar::pattern(e, values[0])?)
            })?,
            Op::Pack { parts } => self.elementwise(parts, false, |e, values| {
                if ty.bits() >= 16 && values[0].ty().bits() >= 8 && values.len().is_power_of_two() {
                    let mut all =
                        values.iter().map(|v| scalar::pattern(e, *v)).collect::<Result<Vec<_>>>()?;
                    while all.len() > 1 {
                        let pairs = all.chunks_exact(2);
                        all = pairs.map(|pair| scalar::joined(e, pair[0], pair[1])).collect::<Result<_>>()?;
                    }
                    return scalar::of_pattern(e, ty, all[0]);
                }
                let prim = Prim::int(ty.bits().max(8));
                let mut all = e.int(prim, 0);
                for (i, v) in values.iter().enumerate() {
                    let width = v.ty().bits();
                    let bits = scalar::pattern(e, *v)?;
                    let bits = e.resize(bits, prim, false)?;
                    let place = e.int(prim, i as u64 * u64::from(width));
                    all = e.or(all, e.shl(bits, place)?)?;
                }
                scalar::of_pattern(e, ty, all)
            })?,
            Op::Unpack { whole, part } => {
                let number = self.number(part)?;
                let known = self.node(*whole)?;
                let uniform = known.uniform && matches!(number.lanes, Spread::Linear(0));
                let x = if uniform { known.lanes } else { self.splat(*whole)? };
                let at = if uniform { number.base } else { self.vector_number(&number)? };
                let level = known.level.max(number.level);
                let lanes = self.at(level, |c| {
                    let e = c.e.with_lanes(if uniform { 1 } else { c.lanes });
                    let bits = scalar::pattern(&e, x)?;
                    let prim = e.prim_of(bits);
                    let at = e.mul(e.resize(at, prim, false)?, e.int(prim, u64::from(ty.bits())))?;
                    let bits = e.lshr(bits, at)?;
                    let bits = e.resize(bits, Prim::int(ty.bits().max(8).next_power_of_two()), false)?;
                    let mask = if ty.bits() < 8 {
                        e.and(bits, e.int(Prim::I8, (1 << ty.bits()) - 1))?
                    } else {
                        bits
                    };
                    scalar::of_pattern(&e, ty, mask)
                })?;
                Known { lanes, uniform: uniform || self.lanes == 1, splat: None, level }
            }
            Op::Given { number } => {
                let known = self.given.get(number).copied();
                known.ok_or_else(|| Error::Llvm(format!("value {number} is not given here")))?
            }
        };
        self.levels[known.level].made.push(Made::Node(node));
        self.nodes[node as usize] = Some(known);
        Ok(known)
    }

    fn elementwise(
        &mut self,
        operands: &[NodeId],
        branches: bool,
        f: impl FnOnce(&Emit<'a, 'ctx>, &[Val<'ctx>]) -> Result<Val<'ctx>>,
    ) -> Result<Known<'ctx>> {
        let (mut uniform, mut level) = (true, 0);
        for &o in operands {
            let known = self.node(o)?;
            uniform &= known.uniform;
            level = level.max(known.level);
        }
        // Control flow stays in the block that is being built.
        if branches {
            level = self.level();
        }
        let mut values: SmallVec<[Val<'ctx>; 3]> = SmallVec::new();
        for &o in operands {
            values.push(if uniform { self.node(o)?.lanes } else { self.splat(o)? });
        }
        let lanes = self.at(level, |c| f(&c.e.with_lanes(if uniform { 1 } else { c.lanes }), &values))?;
        Ok(Known { lanes, uniform: uniform || self.lanes == 1, splat: None, level })
    }

    fn load_node(&mut self, array: u32, at: &Affine, guard: GuardId) -> Result<Known<'ctx>> {
        let ty = self.tape.arrays[array as usize].shape.element_type;
        let mut place = self.place(array, at)?;
        if self.tape.arrays[array as usize].written {
            place.level = place.level.max(self.written);
        }
        let mask = self.mask(guard)?;
        self.load_at(ty, &place, mask)
    }

    /// An element of an array, or one a lane, that is on no tape.
    pub(super) fn load(&mut self, array: u32, at: &Affine) -> Result<Val<'ctx>> {
        let known = self.load_node(array, at, ALWAYS)?;
        known.lanes.splat(&self.e.with_lanes(if known.uniform { 1 } else { self.lanes }))
    }

    /// [`Code::load`] at the builder's place and no earlier: of memory that is being written.
    pub(super) fn load_here(&mut self, array: u32, at: &Affine) -> Result<Val<'ctx>> {
        let ty = self.tape.arrays[array as usize].shape.element_type;
        let place = self.place(array, at)?;
        if self.lanes == 1 {
            return super::access::load_one(&self.e, ty, place.origin, place.address, None);
        }
        let e = self.e.with_lanes(self.lanes);
        super::access::load(&e, ty, place.address, place.lanes, self.active.map(|a| a.value))
    }

    fn load_at(
        &mut self,
        ty: hlo::ElementType,
        place: &Place<'ctx>,
        mask: Option<Mask<'ctx>>,
    ) -> Result<Known<'ctx>> {
        let one_mask = mask.is_none_or(|m| self.e.lanes_of(m.value) == 1);
        let uniform = matches!(place.lanes, Spread::Linear(0)) && one_mask;
        let mut level = mask.map_or(place.level, |m| m.level.max(place.level));
        let active = self.active.filter(|_| !uniform && self.lanes > 1);
        if let Some(active) = active {
            level = level.max(active.level);
        }
        let lanes = self.at(level, |c| {
            let mask = mask.map(|m| m.value);
            if uniform || c.lanes == 1 {
                return super::access::load_one(&c.e, ty, place.origin, place.address, mask);
            }
            let e = c.e.with_lanes(c.lanes);
            let bytes = ty.storage_bytes() as i64;
            let consecutive = matches!(place.lanes, Spread::Linear(stride) if stride == bytes);
            if c.ahead > 0 && consecutive && active.is_none() && level == c.level() {
                c.e.prefetch(c.e.address_at(place.address, c.ahead)?)?;
            }
            let mut mask = mask.map(|m| e.splat(m)).transpose()?;
            if let Some(active) = active {
                mask = Some(mask.map_or(Ok(active.value), |m| e.and(m, active.value))?);
            }
            super::access::load(&e, ty, place.address, place.lanes, mask)
        })?;
        Ok(Known { lanes, uniform: uniform || self.lanes == 1, splat: None, level })
    }

    fn constant_node(
        &mut self,
        instr: hlo::InstrId,
        at: &Affine,
        ty: hlo::ElementType,
    ) -> Result<Known<'ctx>> {
        let literal = self.tape.literal(instr).ok_or_else(|| {
            Error::from(crate::Unsupported::new(self.tape.module, instr, "a constant without a value"))
        })?;
        let Some(array) = literal.as_array() else {
            return Err(Error::from(crate::Unsupported::new(
                self.tape.module,
                instr,
                "a constant that is no array",
            )));
        };
        if let (Some(i), true) = (at.as_constant(), array.buffer.len() <= 1) {
            let i = usize::try_from(i).unwrap_or(0);
            let lanes = Val::constant(&self.e, &array.buffer, i);
            return Ok(Known { lanes, uniform: true, splat: None, level: 0 });
        }
        let address = super::access::global(&self.e, &array.buffer)?;
        let place = self.place_from(address, 0, at, ty.storage_bytes() as i64)?;
        self.load_at(ty, &place, None)
    }

    /// Whether an element of so many bytes is known to lie at a multiple of so many bytes, given that the array does.
    pub(super) fn aligned(&self, at: &Affine, bytes: i64, to: i64) -> bool {
        self.multiple(at).saturating_mul(bytes) % to == 0
    }

    /// Stores a value on all lanes to elements of an array, past the caches if asked for (whole vectors at aligned addresses).
    pub(super) fn store_value(
        &mut self,
        value: &Val<'ctx>,
        array: u32,
        at: &Affine,
        streaming: bool,
    ) -> Result<()> {
        let place = self.place(array, at)?;
        if self.lanes == 1 {
            return super::access::store_one(&self.e, value, place.address);
        }
        let e = self.e.with_lanes(self.lanes);
        super::access::store(&e, value, place.address, place.lanes, self.active.map(|a| a.value), streaming)
    }

    /// Stores the columns of rows, a row a lane, that lie one after the other from the first column of the first row on.
    pub(super) fn store_in_turn(
        &mut self,
        columns: &[Val<'ctx>],
        array: u32,
        at: &Affine,
        streaming: bool,
    ) -> Result<()> {
        let place = self.place(array, at)?;
        let e = self.e.with_lanes(self.lanes);
        let parts = columns.iter().map(|v| Ok(v.to_storage(&e)?[0])).collect::<Result<Vec<_>>>()?;
        let bytes = e.prim_of(parts[0]).bytes();
        for (i, part) in super::access::in_turn(&e, &parts)?.into_iter().enumerate() {
            let to = self.e.address_at(place.address, i as u64 * u64::from(self.lanes) * bytes)?;
            if streaming {
                e.store_streaming(part, to)?;
            } else {
                e.store(part, to, bytes as u32)?;
            }
        }
        Ok(())
    }
}

/// The integers in which vectors of indices are computed: 32 bits where every number fits.
fn index_type(tape: &Tape<'_>) -> Prim {
    let small = |x: i64| x.unsigned_abs() < 1 << 30;
    let fits = |x: &Affine| {
        let (low, high) = tape.space.range(x);
        small(low) && small(high) && x.terms.iter().all(|t| small(t.1))
    };
    let arrays = tape.arrays.iter().all(|a| {
        i64::try_from(a.shape.elements())
            .ok()
            .and_then(|n| n.checked_mul(a.shape.element_type.storage_bytes() as i64))
            .is_some_and(small)
    });
    let atoms = tape.space.atoms.iter().all(|a| {
        small(a.low)
            && small(a.high)
            && match &a.def {
                Def::Div(x, d) | Def::Mod(x, d) => fits(x) && small(*d),
                Def::Var(_) | Def::Value(_) => true,
            }
    });
    let guards = tape.guards.iter().flatten().all(|c| fits(&c.value));
    let nodes = tape.nodes.iter().all(|n| match &n.op {
        Op::Load { at, .. } | Op::Constant { at, .. } => fits(&at.times(16)),
        Op::Iota { value } | Op::Unpack { part: value, .. } => fits(value),
        Op::Elementwise { .. }
        | Op::Convert { .. }
        | Op::Select { .. }
        | Op::Bits { .. }
        | Op::Pack { .. }
        | Op::Given { .. } => true,
    });
    if arrays && atoms && guards && nodes { Prim::I32 } else { Prim::I64 }
}
