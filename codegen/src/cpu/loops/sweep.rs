//! Folds, and a sweep of them over the elements of a row.

use hlo::attrs::AttrKey;
use hlo::{Bits, Buffer, ElementType, InstrId, Module, Opcode, with_buffer};

use super::code::Code;
use super::lanes;
use super::region::{Carried, Combine, across, registers, values};
use crate::Unsupported;
use crate::cpu::llvm::{Result, Target, Value};
use crate::cpu::scalar::{self, Val};
use crate::passes::facts::integer;
use crate::tape::index::Affine;
use crate::tape::{NodeId, Op, Tape, array_leaves};

/// One reduction.
pub(super) struct Fold<'m> {
    /// Elements, in the types of accumulators.
    pub(super) operands: Vec<NodeId>,
    /// Initial values, in the types of accumulators.
    pub(super) initial: Vec<NodeId>,
    /// Types of accumulators.
    pub(super) types: Vec<ElementType>,
    /// Numbers of the given values that are its results.
    pub(super) given: Vec<u32>,
    /// How.
    pub(super) combine: Combine<'m>,
    /// The accumulator is an integer in the order of the only operand, of which the greatest or the least (`true`) is wanted.
    ordered: Option<bool>,
}

/// Folds over the same elements.
pub(super) struct Folds<'m> {
    /// In the order of their instructions.
    pub(super) all: Vec<Fold<'m>>,
    /// Whether one of them depends on the order of the elements.
    pub(super) literal: bool,
}

/// Whether anybody reads the first result of a reduce in a fusion.
fn first_is_seen(module: &Module, fusion: InstrId, reduce: InstrId) -> bool {
    let reads = |id: InstrId| {
        module.users(id).iter().any(|u| {
            let user = module.instr(u.user);
            user.opcode != Opcode::GetTupleElement || user.attrs.int(AttrKey::Index) == Some(0)
        })
    };
    let is_root = |id: InstrId| module.root(module.instr(id).parent()) == id;
    reads(reduce) || is_root(reduce) && (reads(fusion) || is_root(fusion))
}

impl<'m> Fold<'m> {
    /// Of a reduce in a fusion whose operands are seen at an index; its results become given values from `first` on.
    pub(super) fn new(
        tape: &mut Tape<'m>,
        fusion: InstrId,
        reduce: InstrId,
        index: &[Affine],
        first: u32,
    ) -> std::result::Result<Self, Unsupported> {
        let module = tape.module;
        let instr = module.instr(reduce);
        if instr.opcode == Opcode::Dot {
            return Self::of_products(tape, reduce, index, first);
        }
        let n = instr.operands().len() / 2;
        let (mut operands, mut initial) = (Vec::new(), Vec::new());
        for (i, &o) in instr.operands().iter().enumerate() {
            let index = if i < n { index } else { &[] };
            let node = tape.node(o, 0, index)?;
            if i < n { operands.push(node) } else { initial.push(node) }
        }
        let counted = counts_up(tape, &operands, &initial, reduce, index);
        let combine = Combine::of(module, reduce, counted && !first_is_seen(module, fusion, reduce))?;
        let results: Vec<ElementType> = array_leaves(&instr.shape).map(|s| s.element_type).collect();
        // Without elements the initial value is the result as it is, also a NaN.
        let any =
            instr.operands().iter().take(n).all(|&o| module.instr(o).shape.expect_array().elements() > 0);
        let ordered = combine.order_of(results[0]).filter(|_| any);
        let types: Vec<ElementType> = match ordered {
            Some((key, _)) => vec![key],
            None => results.iter().map(|&ty| combine.accumulator(ty)).collect(),
        };
        for (i, &ty) in types.iter().enumerate() {
            for node in [&mut operands[i], &mut initial[i]] {
                // A reduction of elements of another float type than its result's converts them first.
                *node = match ordered {
                    Some((key, least)) => {
                        let value = tape.convert(*node, results[i]);
                        tape.order(value, key, least)
                    }
                    None => tape.convert(*node, ty),
                };
            }
        }
        let given = (0..n as u32).map(|i| first + i).collect();
        Ok(Self { operands, initial, types, given, combine, ordered: ordered.map(|o| o.1) })
    }

    /// Of a contraction: a sum of products, which begins with zero.
    fn of_products(
        tape: &mut Tape<'m>,
        dot: InstrId,
        index: &[Affine],
        first: u32,
    ) -> std::result::Result<Self, Unsupported> {
        let combine = Combine::of(tape.module, dot, false)?;
        let (product, ty) = tape.weighted(dot, index)?;
        let zero = tape.zero(ty);
        Ok(Self {
            operands: vec![product],
            initial: vec![zero],
            types: vec![ty],
            given: vec![first],
            combine,
            ordered: None,
        })
    }

    /// The node of a result, of a type, once emission has given the accumulator.
    pub(super) fn result(&self, tape: &mut Tape<'_>, leaf: usize, ty: ElementType) -> NodeId {
        let node = tape.given(self.given[leaf], self.types[leaf]);
        match self.ordered {
            Some(least) => tape.unorder(node, ty, least),
            None => tape.convert(node, ty),
        }
    }

    /// Makes results of the reduce known to the tape at an index.
    pub(super) fn bind(&self, tape: &mut Tape<'_>, reduce: InstrId, at: &[Affine]) {
        let results: Vec<ElementType> =
            array_leaves(&tape.module.instr(reduce).shape).map(|s| s.element_type).collect();
        for (leaf, ty) in results.into_iter().enumerate() {
            let node = self.result(tape, leaf, ty);
            tape.bind_at(reduce, leaf as u32, node, at);
        }
    }

    /// With what accumulators begin: the initial values or what changes nothing.
    pub(super) fn start<'ctx>(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        literal: bool,
    ) -> Result<Vec<Val<'ctx>>> {
        let mut all = Vec::new();
        for (&node, &ty) in self.initial.iter().zip(&self.types) {
            if literal || self.combine.idempotent(ty) {
                let e = c.e.with_lanes(c.lanes);
                all.push(c.value(node)?.settled_if(&e, self.combine.moves(all.len()))?);
            } else {
                all.push(self.combine.neutral(&c.e.with_lanes(c.lanes), ty));
            }
        }
        Ok(all)
    }

    /// Accumulators that began with [`Fold::start`], and the initial value if they did not begin with that.
    pub(super) fn close<'ctx>(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        total: &[Val<'ctx>],
        literal: bool,
    ) -> Result<Vec<Val<'ctx>>> {
        if literal || self.combine.idempotent(self.types[0]) {
            return Ok(total.to_vec());
        }
        let initial = self.initial.iter().map(|&n| c.value(n)).collect::<Result<Vec<_>>>()?;
        self.combine.apply(&c.e.with_lanes(c.lanes), c.arguments, &initial, total)
    }

    /// Elements at the place where the code is; in lanes that are not active what accumulators begin with.
    pub(super) fn elements<'ctx>(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        start: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>> {
        let mut all = Vec::new();
        for (&node, start) in self.operands.iter().zip(start) {
            let value = c.value(node)?;
            all.push(match c.active {
                Some(mask) => scalar::select(&c.e.with_lanes(c.lanes), mask.value, &value, start)?,
                None => value,
            });
        }
        Ok(all)
    }
}

/// Whether the second operand is a count along the only reduced dimension that begins no lower than its initial value, and the first initial value no NaN.
fn counts_up(
    tape: &Tape<'_>,
    operands: &[NodeId],
    initial: &[NodeId],
    reduce: InstrId,
    index: &[Affine],
) -> bool {
    let (&[_, second], &[start, begin]) = (operands, initial) else { return false };
    let dims = tape.module.instr(reduce).attrs.ints_or_empty(AttrKey::Dimensions);
    let &[d] = dims else { return false };
    let Some(along) = usize::try_from(d).ok().and_then(|d| index.get(d)) else { return false };
    let node = &tape.nodes[second as usize];
    let Op::Iota { value } = &node.op else { return false };
    let (low, high) = tape.space.range(value);
    let bits = node.ty.bits().min(62) - 1;
    let fits = low >= 0 && high < 1i64 << bits;
    let upward = value.terms == along.terms;
    let constant = |node: NodeId| match tape.nodes[node as usize].op {
        Op::Constant { instr, .. } => Some(instr),
        _ => None,
    };
    let begin = constant(begin).and_then(|instr| integer(tape.module, instr));
    let Some(instr) = constant(start).filter(|_| begin.is_some_and(|b| b <= i128::from(low))) else {
        return false;
    };
    let number = tape.literal(instr).and_then(|l| l.as_array().map(|a| is_number(&a.buffer)));
    fits && upward && number == Some(true)
}

/// Whether the only element is an integer or a float of 16 bits or more that is no NaN.
fn is_number(buffer: &Buffer) -> bool {
    let ty = buffer.element_type();
    let bits: u128 = with_buffer!(buffer, v => v.first().map_or(0, |&x| x.bits()));
    match ty {
        ElementType::F32 => !f32::from_bits(bits as u32).is_nan(),
        ElementType::F64 => !f64::from_bits(bits as u64).is_nan(),
        ElementType::BF16 => !f32::from_bits((bits as u32) << 16).is_nan(),
        ElementType::F16 => bits & 0x7fff <= 0x7c00,
        other => other.is_integer(),
    }
}

impl<'m> Folds<'m> {
    /// Several at once.
    pub(super) fn new(all: Vec<Fold<'m>>) -> Self {
        let literal = all.iter().any(|f| !f.combine.free());
        Self { all, literal }
    }

    /// Whether elements may come one after the other in any order. Those whose places are asked for come in the order of these.
    pub(super) fn in_any_order(&self) -> bool {
        !self.literal && self.all.iter().all(|f| !matches!(f.combine, Combine::Extreme { .. }))
    }

    /// What loops carry of all accumulators.
    pub(super) fn carried(&self) -> Vec<Carried> {
        let of = |f: &Fold<'m>| {
            let kinds = f.types.iter().enumerate().map(|(i, &ty)| Carried { ty, moved: f.combine.moves(i) });
            kinds.collect::<Vec<_>>()
        };
        self.all.iter().flat_map(of).collect()
    }

    /// Types of all accumulators.
    fn types(&self) -> impl Iterator<Item = ElementType> {
        self.all.iter().flat_map(|f| f.types.iter().copied())
    }

    /// Bits of a lane of the widest accumulator.
    pub(super) fn widest(&self) -> u32 {
        self.types().map(|ty| lanes::lane_bits(ty, true)).max().unwrap_or(8)
    }

    /// Whether an accumulator is complex.
    pub(super) fn any_complex(&self) -> bool {
        self.types().any(ElementType::is_complex)
    }

    /// With what all accumulators begin.
    pub(super) fn starts<'ctx>(&self, c: &mut Code<'_, '_, 'ctx, '_>) -> Result<Vec<Val<'ctx>>> {
        let mut all = Vec::new();
        for f in &self.all {
            all.extend(f.start(c, self.literal)?);
        }
        Ok(all)
    }

    /// The elements where the code is, combined into accumulators.
    pub(super) fn step<'ctx>(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        start: &[Val<'ctx>],
        accumulators: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>> {
        let (mut all, mut at) = (Vec::new(), 0);
        for f in &self.all {
            let mine = at..at + f.types.len();
            let elements = f.elements(c, &start[mine.clone()])?;
            let e = c.e.with_lanes(c.lanes);
            all.extend(f.combine.next(&e, c.arguments, &accumulators[mine], &elements)?);
            at += f.types.len();
        }
        Ok(all)
    }

    /// Accumulators combined with accumulators of elements that come later.
    pub(super) fn joined<'ctx>(
        &self,
        c: &Code<'_, '_, 'ctx, '_>,
        lanes: u32,
        a: &[Val<'ctx>],
        b: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>> {
        let (mut all, mut at) = (Vec::new(), 0);
        for f in &self.all {
            let mine = at..at + f.types.len();
            all.extend(f.combine.apply(&c.e.with_lanes(lanes), c.arguments, &a[mine.clone()], &b[mine])?);
            at += f.types.len();
        }
        Ok(all)
    }

    /// How many copies of the expression of an element are worth it in a loop over so many elements.
    pub(super) fn copies_of(&self, tape: &Tape<'_>, lanes: u32, n: i64) -> i64 {
        let mut copies = if lanes == 1 { 1 } else { self.copies(tape) };
        while copies > 1 && n < copies * i64::from(lanes) {
            copies /= 2;
        }
        copies
    }

    /// How many copies of the expression of an element are worth it.
    pub(super) fn copies(&self, tape: &Tape<'_>) -> i64 {
        let operands = self.all.iter().flat_map(|f| &f.operands).copied();
        let worth: i64 = match tape.needed(operands).into_iter().map(|n| tape.flops(n)).sum() {
            0..=8 => 4,
            9..=24 => 2,
            _ => 1,
        };
        // Several folds do not wait for one another as they are.
        match self.all.len() {
            0..=3 => worth,
            4..=5 => worth.min(2),
            _ => 1,
        }
    }

    /// All lanes of each accumulator combined into one.
    pub(super) fn across<'ctx>(
        &self,
        c: &Code<'_, '_, 'ctx, '_>,
        lanes: u32,
        total: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>> {
        let (mut one, mut at) = (Vec::new(), 0);
        for f in &self.all {
            let n = f.types.len();
            one.extend(across(&f.combine, &c.e.with_lanes(lanes), c.arguments, &total[at..at + n])?);
            at += n;
        }
        Ok(one)
    }

    /// Gives the results of which these are the accumulators, at the innermost level.
    pub(super) fn give<'ctx>(&self, c: &mut Code<'_, '_, 'ctx, '_>, total: &[Val<'ctx>]) -> Result<()> {
        let mut at = 0;
        for f in &self.all {
            let n = f.types.len();
            let closed = f.close(c, &total[at..at + n], self.literal)?;
            for (&number, value) in f.given.iter().zip(closed) {
                c.give(number, value, false);
            }
            at += n;
        }
        Ok(())
    }

    /// The number of lanes of a sweep of these and of other nodes, besides those that are known, over so many elements of the innermost variable.
    pub(super) fn lanes(
        &self,
        tape: &Tape<'_>,
        target: &Target,
        more: &[NodeId],
        known: &dyn Fn(NodeId) -> bool,
        inner: (u32, i64),
    ) -> u32 {
        if self.literal || inner.1 <= 2 {
            return 1;
        }
        let nodes = || self.all.iter().flat_map(|f| &f.operands).chain(more).copied();
        let most = target.vector_bytes() * 8 / self.widest();
        lanes::full(tape, target, &nodes, known, inner, most)
    }

    /// The number of lanes if each lane is a fold of its own.
    pub(super) fn lanes_of_columns(&self, tape: &Tape<'_>, target: &Target) -> u32 {
        let nodes = self.all.iter().flat_map(|f| &f.operands).copied();
        lanes::lanes(tape, target, nodes).min(target.vector_bytes() * 8 / self.widest())
    }
}

/// A piece of code at an element.
pub(super) type Piece<'s, 'c, 'a, 'ctx, 'm> = &'s dyn Fn(&mut Code<'c, 'a, 'ctx, 'm>) -> Result<()>;

/// The values of a variable, and how many they are if that is known.
pub(super) type Range<'ctx> = (Value<'ctx>, Value<'ctx>, Option<i64>);

/// The values of each variable where the code is.
type Ranges<'s, 'c, 'a, 'ctx, 'm> = &'s dyn Fn(&Code<'c, 'a, 'ctx, 'm>, (u32, i64)) -> Result<Range<'ctx>>;

/// Folds over all values of variables, the last of which goes over lanes.
pub(super) struct Sweep<'s, 'c, 'a, 'ctx, 'm> {
    /// What is folded.
    pub(super) folds: &'s Folds<'m>,
    /// Over what, outermost first.
    pub(super) vars: &'s [(u32, i64)],
    /// So many elements a run of the innermost loop, a power of two.
    pub(super) copies: i64,
    /// The values of each variable.
    pub(super) range: Ranges<'s, 'c, 'a, 'ctx, 'm>,
    /// At each element, before it is combined.
    pub(super) before: Piece<'s, 'c, 'a, 'ctx, 'm>,
    /// And after.
    pub(super) after: Piece<'s, 'c, 'a, 'ctx, 'm>,
}

/// The whole of each variable.
pub(super) fn whole<'ctx>(c: &Code<'_, '_, 'ctx, '_>, var: (u32, i64)) -> Result<Range<'ctx>> {
    Ok((c.e.i64(0), c.e.i64(var.1), Some(var.1)))
}

/// Nothing at an element.
pub(super) fn nothing(_: &mut Code<'_, '_, '_, '_>) -> Result<()> {
    Ok(())
}

impl<'c, 'a, 'ctx, 'm> Sweep<'_, 'c, 'a, 'ctx, 'm> {
    fn step(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        start: &[Val<'ctx>],
        all: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>> {
        (self.before)(c)?;
        let next = self.folds.step(c, start, all)?;
        (self.after)(c)?;
        Ok(next)
    }

    /// Emits it; gives the accumulators of all elements.
    pub(super) fn emit(&self, c: &mut Code<'c, 'a, 'ctx, 'm>, target: &Target) -> Result<Vec<Val<'ctx>>> {
        let kinds = self.folds.carried();
        let lanes = c.lanes;
        let start = self.folds.starts(c)?;
        let copies = self.copies;
        // One by one at the end of a row where lanes cannot be enabled singly.
        let apart = lanes > 1 && target.vector_bytes() < 64;
        let mut initial = Vec::new();
        for _ in 0..copies {
            initial.extend(registers(&start));
        }
        let wide = initial.len();
        let mut scalars = Vec::new();
        if apart {
            c.lanes = 1;
            scalars = self.folds.starts(c)?;
            c.lanes = lanes;
            initial.extend(registers(&scalars));
        }
        let ends = if self.vars.is_empty() {
            registers(&self.step(c, &start, &start)?)
        } else {
            self.fold_rows(c, self.vars, copies, (&start, &scalars), initial)?
        };
        let mut total = values(&kinds, &ends[..wide]);
        while total.len() > kinds.len() {
            let more = total.split_off(total.len() - kinds.len());
            let at = total.len() - kinds.len();
            let joined = self.folds.joined(c, lanes, &total[at..], &more)?;
            total.truncate(at);
            total.extend(joined);
        }
        let mut one = self.folds.across(c, lanes, &total)?;
        if apart {
            one = self.folds.joined(c, 1, &one, &values(&kinds, &ends[wide..]))?;
        }
        Ok(one)
    }

    fn fold_rows(
        &self,
        c: &mut Code<'c, 'a, 'ctx, 'm>,
        vars: &[(u32, i64)],
        copies: i64,
        start: (&[Val<'ctx>], &[Val<'ctx>]),
        initial: Vec<Value<'ctx>>,
    ) -> Result<Vec<Value<'ctx>>> {
        let Some((&first, rest)) = vars.split_first() else { return Ok(initial) };
        let (low, high, count) = (self.range)(c, first)?;
        if !rest.is_empty() {
            return c.fold_var(first.0, low, high, 1, false, 1, &initial, |c, carried| {
                self.fold_rows(c, rest, copies, start, carried.to_vec())
            });
        }
        let kinds = self.folds.carried();
        let w = i64::from(c.lanes);
        let n = registers(start.0).len();
        let e = c.e;
        let main = match count {
            _ if w == 1 => high,
            Some(n) => e.add(low, e.i64(n - n % w))?,
            None => e.add(low, e.and(e.sub(high, low)?, e.i64(-w))?)?,
        };
        // Whole runs of all copies, then elements of the first one.
        let block = w * copies;
        let whole = match count {
            _ if copies == 1 => main,
            Some(n) => e.add(low, e.i64(n - n % block))?,
            None => e.add(low, e.and(e.sub(high, low)?, e.i64(-block))?)?,
        };
        let mut carried = initial;
        if count.is_none_or(|n| n >= block) {
            carried = c.fold_var(first.0, low, whole, block, w > 1, w, &carried, |c, carried| {
                let mut next = Vec::new();
                for copy in 0..copies {
                    c.enter()?;
                    // At this level also for the first copy: what depends on the variable is forgotten with it.
                    let i = c.var(first.0)?;
                    let i = if copy == 0 { i } else { e.add(i, e.i64(copy * w))? };
                    c.set_var(first.0, i, true, w);
                    let at = copy as usize * n;
                    let mine = values(&kinds, &carried[at..at + n]);
                    next.extend(registers(&self.step(c, start.0, &mine)?));
                    c.leave();
                }
                next.extend_from_slice(&carried[next.len()..]);
                Ok(next)
            })?;
        }
        if copies > 1 && count.is_none_or(|n| n % block >= w) {
            let more = c.fold_var(first.0, whole, main, w, w > 1, w, &carried[..n], |c, carried| {
                let mine = values(&kinds, carried);
                Ok(registers(&self.step(c, start.0, &mine)?))
            })?;
            carried.splice(..n, more);
        }
        if w == 1 || count.is_some_and(|n| n % w == 0) {
            return Ok(carried);
        }
        if start.1.is_empty() {
            c.mark()?;
            c.enter()?;
            c.set_var(first.0, main, true, w);
            c.active = Some(lanes::enabled(c, main, high, count)?);
            let mine = values(&kinds, &carried[..n]);
            let next = registers(&self.step(c, start.0, &mine)?);
            c.active = None;
            c.leave();
            c.mark()?;
            carried.splice(..n, next);
            return Ok(carried);
        }
        let wide = n * copies as usize;
        let lanes = std::mem::replace(&mut c.lanes, 1);
        let tail = c.fold_var(first.0, main, high, 1, false, 1, &carried[wide..], |c, carried| {
            let mine = values(&kinds, carried);
            Ok(registers(&self.step(c, start.1, &mine)?))
        })?;
        c.lanes = lanes;
        carried.truncate(wide);
        carried.extend(tail);
        Ok(carried)
    }
}
