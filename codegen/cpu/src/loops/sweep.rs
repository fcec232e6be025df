//! Code of folds ([`Fold`]), and sweeps: loops that fold over the elements of a row.

use hlo::ElementType;

use super::code::Code;
use super::lanes;
use super::region::{Carried, Combine, EmitCombine as _, across, registers, values};
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Result, Target, Value};
pub(super) use hlo_opt::expr::fold::Fold;
use hlo_opt::expr::{Expr, NodeId};

/// Folds over the same elements.
pub(super) struct Folds<'m> {
    /// In the order of their instructions.
    pub(super) all: Vec<Fold<'m>>,
    /// Whether one of them depends on the order of the elements.
    pub(super) literal: bool,
}

/// Emission of a fold.
pub(super) trait EmitFold {
    /// The values that accumulators start from: the initial values, or neutral elements.
    fn start<'ctx>(&self, c: &mut Code<'_, '_, 'ctx, '_>, literal: bool) -> Result<Vec<Val<'ctx>>>;

    /// Adds the initial value to accumulators that started from neutral elements ([`Fold::start`]).
    fn close<'ctx>(
        &self,
        c: &mut Code<'_, '_, 'ctx, '_>,
        total: &[Val<'ctx>],
        literal: bool,
    ) -> Result<Vec<Val<'ctx>>>;

    /// The current elements; on inactive lanes what accumulators start from.
    fn elements<'ctx>(&self, c: &mut Code<'_, '_, 'ctx, '_>, start: &[Val<'ctx>]) -> Result<Vec<Val<'ctx>>>;
}

impl EmitFold for Fold<'_> {
    fn start<'ctx>(&self, c: &mut Code<'_, '_, 'ctx, '_>, literal: bool) -> Result<Vec<Val<'ctx>>> {
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

    fn close<'ctx>(
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

    fn elements<'ctx>(&self, c: &mut Code<'_, '_, 'ctx, '_>, start: &[Val<'ctx>]) -> Result<Vec<Val<'ctx>>> {
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

impl<'m> Folds<'m> {
    /// Several folds at once.
    pub(super) fn new(all: Vec<Fold<'m>>) -> Self {
        let literal = all.iter().any(|f| !f.combine.free());
        Self { all, literal }
    }

    /// Whether elements may come in any order. Argument reductions take ascending indices.
    pub(super) fn in_any_order(&self) -> bool {
        !self.literal && self.all.iter().all(|f| !matches!(f.combine, Combine::Extreme { .. }))
    }

    /// The loop-carried values of all accumulators.
    pub(super) fn carried(&self) -> Vec<Carried> {
        let of = |f: &Fold<'m>| {
            let kinds = f.types.iter().enumerate().map(|(i, &ty)| Carried { ty, moved: f.combine.moves(i) });
            kinds.collect::<Vec<_>>()
        };
        self.all.iter().flat_map(of).collect()
    }

    /// The types of all accumulators.
    fn types(&self) -> impl Iterator<Item = ElementType> {
        self.all.iter().flat_map(|f| f.types.iter().copied())
    }

    /// The width in bits of the widest accumulator type.
    pub(super) fn widest(&self) -> u32 {
        self.types().map(|ty| lanes::lane_bits(ty, true)).max().unwrap_or(8)
    }

    /// Whether an accumulator is complex.
    pub(super) fn any_complex(&self) -> bool {
        self.types().any(ElementType::is_complex)
    }

    /// The values that all accumulators start from.
    pub(super) fn starts<'ctx>(&self, c: &mut Code<'_, '_, 'ctx, '_>) -> Result<Vec<Val<'ctx>>> {
        let mut all = Vec::new();
        for f in &self.all {
            all.extend(f.start(c, self.literal)?);
        }
        Ok(all)
    }

    /// Combines the current elements into accumulators.
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

    /// Combines accumulators with accumulators of later elements.
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

    /// The profitable number of independent accumulators (interleaving factor) in a loop over that many
    /// elements.
    pub(super) fn copies_of(&self, expr: &Expr<'_>, lanes: u32, n: i64) -> i64 {
        let mut copies = if lanes == 1 { 1 } else { self.copies(expr) };
        while copies > 1 && n < copies * i64::from(lanes) {
            copies /= 2;
        }
        copies
    }

    /// The profitable number of independent accumulators.
    pub(super) fn copies(&self, expr: &Expr<'_>) -> i64 {
        let operands = self.all.iter().flat_map(|f| &f.operands).copied();
        let worth: i64 = match expr.reachable(operands).into_iter().map(|n| expr.flops(n)).sum() {
            0..=8 => 4,
            9..=24 => 2,
            _ => 1,
        };
        // Several folds are independent of one another already.
        match self.all.len() {
            0..=3 => worth,
            4..=5 => worth.min(2),
            _ => 1,
        }
    }

    /// Reduces each accumulator across lanes.
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

    /// Defines the results of these accumulators, at the innermost level.
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

    /// The number of lanes of a sweep of these folds and of other nodes, except those that are known, over
    /// that many elements of the innermost variable.
    pub(super) fn lanes(
        &self,
        expr: &Expr<'_>,
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
        lanes::full(expr, target, &nodes, known, inner, most)
    }

    /// The number of lanes if each lane is a fold of its own.
    pub(super) fn lanes_of_columns(&self, expr: &Expr<'_>, target: &Target) -> u32 {
        let nodes = self.all.iter().flat_map(|f| &f.operands).copied();
        lanes::lanes(expr, target, nodes).min(target.vector_bytes() * 8 / self.widest())
    }
}

/// Emission of code at an element.
pub(super) type Piece<'s, 'c, 'a, 'ctx, 'm> = &'s dyn Fn(&mut Code<'c, 'a, 'ctx, 'm>) -> Result<()>;

/// The range of a variable, and its length if that is known.
pub(super) type Range<'ctx> = (Value<'ctx>, Value<'ctx>, Option<i64>);

/// The ranges of the variables in the current unit.
type Ranges<'s, 'c, 'a, 'ctx, 'm> = &'s dyn Fn(&Code<'c, 'a, 'ctx, 'm>, (u32, i64)) -> Result<Range<'ctx>>;

/// A sweep: folds over all values of variables, the last of which is vectorized.
pub(super) struct Sweep<'s, 'c, 'a, 'ctx, 'm> {
    /// The folds.
    pub(super) folds: &'s Folds<'m>,
    /// The variables, outermost first.
    pub(super) vars: &'s [(u32, i64)],
    /// Multi-accumulator: elements per iteration of the innermost loop, a power of two.
    pub(super) copies: i64,
    /// The range of each variable.
    pub(super) range: Ranges<'s, 'c, 'a, 'ctx, 'm>,
    /// Emitted at each element, before it is combined.
    pub(super) before: Piece<'s, 'c, 'a, 'ctx, 'm>,
    /// And after.
    pub(super) after: Piece<'s, 'c, 'a, 'ctx, 'm>,
}

/// The full range of each variable.
pub(super) fn whole<'ctx>(c: &Code<'_, '_, 'ctx, '_>, var: (u32, i64)) -> Result<Range<'ctx>> {
    Ok((c.e.i64(0), c.e.i64(var.1), Some(var.1)))
}

/// Emits nothing at an element.
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

    /// Emits the sweep; returns the accumulators of all elements.
    pub(super) fn emit(&self, c: &mut Code<'c, 'a, 'ctx, 'm>, target: &Target) -> Result<Vec<Val<'ctx>>> {
        let kinds = self.folds.carried();
        let lanes = c.lanes;
        let start = self.folds.starts(c)?;
        let copies = self.copies;
        // The remainder of a row is done one by one where lanes cannot be masked.
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
        // Full iterations of all copies, then the remaining elements in the first one.
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
                    // At this level also for the first copy: values that depend on the variable are forgotten
                    // with it.
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
