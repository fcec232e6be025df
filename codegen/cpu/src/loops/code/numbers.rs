//! Run-time integers: affine expressions, addresses, guards.

use super::{Addresses, Code, Made, Mask, Number, Spread, StepsId, Term, Terms};
use hlo_llvm::scalar;
use hlo_llvm::{Error, IntPredicate, Prim, Result, Value};
use hlo_opt::expr::index::{Affine, AtomId, Def, gcd};
use hlo_opt::expr::{ALWAYS, Condition, Expr, GuardId, Op};
use smallvec::SmallVec;

/// The alignment of a number that is a multiple of everything (0).
const MULTIPLE_OF_ALL: i64 = 1 << 40;

/// A sum: the uniform terms, and how lanes differ.
pub(super) struct Sum<'ctx> {
    terms: Terms<'ctx>,
    lanes: Spread<'ctx>,
    /// The level at which it is known.
    level: usize,
    /// The value on lane 0, if it is known at compile time.
    first: Option<i64>,
}

impl<'a, 'ctx> Code<'_, 'a, 'ctx, '_> {
    pub(super) fn atom(&mut self, id: AtomId) -> Result<Number<'ctx>> {
        if let Some(known) = self.atoms[id.0 as usize] {
            return Ok(known);
        }
        let expr = self.expr;
        let atom = expr.space.atom(id);
        let number = match &atom.def {
            Def::Var(v) => {
                let var = self.vars.get(*v as usize).copied().flatten();
                let var = var.ok_or_else(|| Error::Llvm(format!("loop variable {v} is not known here")))?;
                let lanes = Spread::Linear(i64::from(var.vector));
                Number { base: var.value, lanes, level: var.level, first: None }
            }
            Def::Div(x, d) => self.quotient(x, *d, true)?,
            Def::Mod(x, d) => self.quotient(x, *d, false)?,
            Def::Value(node) => {
                let known = self.node(*node)?;
                let lanes = if known.uniform { 1 } else { self.lanes };
                let level = known.level;
                let (low, high) = (atom.low, atom.high);
                let index = self.index;
                let value = self.at(level, |c| {
                    let prim = if known.uniform { Prim::I64 } else { index };
                    scalar::clamped_index(&c.e.with_lanes(lanes), &known.lanes, prim, low, high)
                })?;
                match known.uniform {
                    true => Number { base: value, lanes: Spread::Linear(0), level, first: None },
                    false => Number { base: self.e.i64(0), lanes: Spread::Vector(value), level, first: None },
                }
            }
        };
        self.levels[number.level].made.push(Made::Atom(id));
        self.atoms[id.0 as usize] = Some(number);
        Ok(number)
    }

    pub(super) fn quotient(&mut self, x: &Affine, d: i64, quotient: bool) -> Result<Number<'ctx>> {
        let number = self.number(x)?;
        let level = number.level;
        let scalar = |c: &Self| {
            let (e, d) = (c.e, c.e.i64(d));
            if quotient { e.udiv(number.base, d) } else { e.urem(number.base, d) }
        };
        let part = |n: i64| if quotient { n.div_euclid(d) } else { n.rem_euclid(d) };
        let uniform = matches!(number.lanes, Spread::Linear(0));
        let steps = if uniform { None } else { self.steps_of(number.lanes) };
        if uniform || steps.as_ref().is_some_and(|steps| self.is_between_multiples(x, steps, d)) {
            let base = self.at(level, scalar)?;
            let lanes = if quotient { Spread::Linear(0) } else { number.lanes };
            return Ok(Number { base, lanes, level, first: number.first.map(part) });
        }
        if let Some(steps) = steps {
            // The remainder of lane 0 by the divisor.
            let over = match number.first {
                None if self.multiple_of_terms(x) % d == 0 => Some(x.constant.rem_euclid(d)),
                first => first,
            };
            if let Some(over) = over {
                let steps: Vec<i64> = steps.iter().map(|&step| part(over + step) - part(over)).collect();
                let lanes = self.spread_of(steps);
                let first = if quotient { number.first.map(part) } else { Some(part(over)) };
                let base = match first {
                    Some(first) => self.e.i64(first),
                    None => self.at(level, scalar)?,
                };
                return Ok(Number { base, lanes, level, first });
            }
        }
        let all = self.vector_number(&number)?;
        let value = self.at(level, |c| {
            let e = c.e.with_lanes(c.lanes);
            let d = e.int(c.index, d.cast_unsigned());
            if quotient { e.udiv(all, d) } else { e.urem(all, d) }
        })?;
        Ok(Number { base: self.e.i64(0), lanes: Spread::Vector(value), level, first: None })
    }

    /// Whether all lanes, at these offsets from the first, are between two multiples of a divisor: of what
    /// divides both it and lane 0's terms.
    fn is_between_multiples(&self, x: &Affine, steps: &[i64], divisor: i64) -> bool {
        let multiple = self.multiple_of_terms(x);
        multiple > 0 && divisor % multiple == 0 && {
            let over = x.constant.rem_euclid(multiple);
            steps.iter().all(|step| step.checked_add(over).is_some_and(|n| (0..multiple).contains(&n)))
        }
    }

    /// The offset of each lane from the first, if they are known at compile time.
    pub(super) fn steps_of(&self, lanes: Spread<'ctx>) -> Option<Vec<i64>> {
        match lanes {
            Spread::Linear(stride) => {
                Some((0..i64::from(self.lanes)).map(|l| l.wrapping_mul(stride)).collect())
            }
            Spread::Steps(id) => Some(self.steps[id.0 as usize].to_vec()),
            Spread::Vector(_) => None,
        }
    }

    /// Lanes at these offsets from the first.
    fn spread_of(&mut self, steps: Vec<i64>) -> Spread<'ctx> {
        let stride = steps.get(1).copied().unwrap_or(0);
        if steps.iter().enumerate().all(|(l, &step)| step == stride.wrapping_mul(l as i64)) {
            return Spread::Linear(stride);
        }
        self.steps.push(steps.into());
        Spread::Steps(StepsId(self.steps.len() as u32 - 1))
    }

    /// Offsets as a vector of the kernel's index type.
    pub(super) fn vector_of_steps(&self, steps: &[i64]) -> Value<'ctx> {
        let steps: Vec<u64> = steps.iter().map(|step| step.cast_unsigned()).collect();
        self.e.with_lanes(self.lanes).int_lanes(self.index, &steps)
    }

    /// A known divisor of lane 0 (alignment).
    pub(super) fn multiple(&self, x: &Affine) -> i64 {
        match gcd(self.multiple_of_terms(x), x.constant) {
            0 => MULTIPLE_OF_ALL,
            multiple => multiple,
        }
    }

    /// The same without the constant; 0 is a multiple of everything.
    fn multiple_of_terms(&self, x: &Affine) -> i64 {
        let of = |var: u32| self.vars.get(var as usize).copied().flatten().map_or(1, |v| v.multiple);
        self.expr.space.multiple_of_terms(x, &of)
    }

    /// All lanes of a number as a vector of the index type.
    pub(super) fn vector_number(&self, number: &Number<'ctx>) -> Result<Value<'ctx>> {
        self.at(number.level, |c| {
            let e = c.e.with_lanes(c.lanes);
            let base = e.splat(c.e.resize(number.base, c.index, true)?)?;
            match (number.lanes, c.steps_of(number.lanes)) {
                (Spread::Linear(0), _) => Ok(base),
                (Spread::Vector(more), _) => e.add(base, more),
                (Spread::Linear(_) | Spread::Steps(_), steps) => {
                    e.add(base, c.vector_of_steps(&steps.unwrap_or_default()))
                }
            }
        })
    }

    /// `start + sum of factor * number`, added by level, outer ones first, and what the innermost loop counts
    /// last, so that everything before it is hoisted out of that loop.
    pub(super) fn sum(
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

    pub(super) fn spread(&mut self, x: &Affine) -> Result<Sum<'ctx>> {
        let mut terms = SmallVec::new();
        let (mut steps, mut vector, mut level) = (vec![0i64; self.lanes as usize], None, 0);
        let mut first = Some(x.constant);
        for &(a, factor) in &x.terms {
            let number = self.atom(a)?;
            level = level.max(number.level);
            first = first.zip(number.first).map(|(sum, n)| sum.wrapping_add(n.wrapping_mul(factor)));
            match number.lanes {
                Spread::Linear(_) | Spread::Steps(_) => {
                    let own = self.steps_of(number.lanes).unwrap_or_default();
                    let varies = own.iter().any(|&step| step != 0);
                    for (sum, step) in steps.iter_mut().zip(own) {
                        *sum = sum.wrapping_add(step.wrapping_mul(factor));
                    }
                    terms.push(Term { value: number.base, factor, level: number.level, varies });
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
            None => self.spread_of(steps),
            Some(v) if steps.iter().all(|&step| step == 0) => Spread::Vector(v),
            Some(v) => {
                Spread::Vector(self.at(level, |c| c.e.with_lanes(c.lanes).add(v, c.vector_of_steps(&steps)))?)
            }
        };
        Ok(Sum { terms, lanes, level, first })
    }

    /// An affine expression at run time.
    pub(in crate::loops) fn number(&mut self, x: &Affine) -> Result<Number<'ctx>> {
        let Sum { mut terms, lanes, level, first } = self.spread(x)?;
        if let Some(constant) = first {
            return Ok(Number { base: self.e.i64(constant), lanes, level, first });
        }
        let (base, at) = if let ([Term { value, factor: 1, level: l, .. }], 0) = (&terms[..], x.constant) {
            (*value, *l)
        } else {
            let start = self.e.i64(0);
            let (sum, l) =
                self.sum(&mut terms, start, |c, a, b| if a == start { Ok(b) } else { c.e.add(a, b) })?;
            let constant = x.constant;
            let sum = if constant == 0 { sum } else { self.at(l, |c| c.e.add(sum, c.e.i64(constant)))? };
            (sum, l)
        };
        Ok(Number { base, lanes, level: level.max(at), first })
    }

    /// The address of an element of an array, or of one per lane.
    pub(in crate::loops) fn addresses(&mut self, array: u32, at: &Affine) -> Result<Addresses<'ctx>> {
        let bytes = self.expr.arrays[array as usize].shape.element_type.storage_bytes() as i64;
        let pointer = self.pointers[array as usize];
        self.addresses_from(pointer, 0, at, bytes)
    }

    /// The address of elements of that many bytes, from a pointer that is known at a level.
    pub(in crate::loops) fn addresses_from(
        &mut self,
        pointer: Value<'ctx>,
        known_at: usize,
        at: &Affine,
        bytes: i64,
    ) -> Result<Addresses<'ctx>> {
        let at = at.times(bytes);
        let Sum { mut terms, lanes, level, .. } = self.spread(&at)?;
        for t in &mut terms {
            t.level = t.level.max(known_at);
        }
        let (sum, l) = self.sum(&mut terms, pointer, |c, a, b| c.e.address(a, b))?;
        let l = l.max(known_at);
        let address = match at.constant {
            0 => sum,
            constant => self.at(l, |c| c.e.address(sum, c.e.i64(constant)))?,
        };
        Ok(Addresses { address, lanes, level: level.max(l), origin: pointer, elements: 0, far: false })
    }

    pub(super) fn condition(&mut self, c: &Condition) -> Result<Mask<'ctx>> {
        let number = self.number(&c.value)?;
        let (low, high) = self.expr.space.range(&c.value);
        let (from, to) = (c.low.max(low), c.high.min(high.saturating_add(1)));
        let level = number.level;
        let uniform = matches!(number.lanes, Spread::Linear(0));
        if let (Some(first), Some(steps), ..=64) = (number.first, self.steps_of(number.lanes), self.lanes) {
            let holds: Vec<u64> =
                steps.iter().map(|s| u64::from((from..to).contains(&(first + s)))).collect();
            let (value, known) = if uniform {
                let all = holds[0] != 0;
                (self.e.bool(all), if all { u64::MAX } else { 0 })
            } else {
                let bits = holds.iter().rev().fold(0, |bits, bit| bits << 1 | bit);
                (self.e.with_lanes(self.lanes).int_lanes(Prim::I1, &holds), bits)
            };
            return Ok(Mask { value, level, known: Some(known) });
        }
        let all = if uniform { number.base } else { self.vector_number(&number)? };
        let value = self.at(level, |c| {
            let e = if uniform { c.e } else { c.e.with_lanes(c.lanes) };
            let prim = e.prim_of(all);
            // from <= x < to as one unsigned comparison.
            let shifted = if from == 0 { all } else { e.sub(all, e.int(prim, from.cast_unsigned()))? };
            e.icmp(IntPredicate::ULT, shifted, e.int(prim, to.wrapping_sub(from).cast_unsigned()))
        })?;
        Ok(Mask { value, level, known: None })
    }

    /// The mask of a guard; `None`: it holds everywhere.
    pub(in crate::loops) fn mask(&mut self, guard: GuardId) -> Result<Option<Mask<'ctx>>> {
        if guard == ALWAYS {
            return Ok(None);
        }
        if let Some(known) = self.masks[guard as usize] {
            return Ok(Some(known));
        }
        let expr = self.expr;
        let mut all: Option<Mask<'ctx>> = None;
        for c in &expr.guards[guard as usize] {
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

    /// The conjunction of two masks.
    pub(in crate::loops) fn both(&self, a: Mask<'ctx>, b: Mask<'ctx>) -> Result<Mask<'ctx>> {
        let level = a.level.max(b.level);
        let value = self.at(level, |c| {
            let lanes = c.e.lanes_of(a.value).max(c.e.lanes_of(b.value));
            let e = c.e.with_lanes(lanes);
            e.and(e.splat(a.value)?, e.splat(b.value)?)
        })?;
        Ok(Mask { value, level, known: a.known.zip(b.known).map(|(a, b)| a & b) })
    }
}

/// The type of index vectors: 32 bits if every number fits.
pub(super) fn index_type(expr: &Expr<'_>) -> Prim {
    let small = |x: i64| x.unsigned_abs() < 1 << 30;
    let fits = |x: &Affine| {
        let (low, high) = expr.space.range(x);
        small(low) && small(high) && x.terms.iter().all(|t| small(t.1))
    };
    let arrays = expr.arrays.iter().all(|a| {
        i64::try_from(a.shape.elements())
            .ok()
            .and_then(|n| n.checked_mul(a.shape.element_type.storage_bytes() as i64))
            .is_some_and(small)
    });
    let atoms = expr.space.atoms.iter().all(|a| {
        small(a.low)
            && small(a.high)
            && match &a.def {
                Def::Div(x, d) | Def::Mod(x, d) => fits(x) && small(*d),
                Def::Var(_) | Def::Value(_) => true,
            }
    });
    let guards = expr.guards.iter().flatten().all(|c| fits(&c.value));
    let nodes = expr.nodes.iter().all(|n| match &n.op {
        Op::Load { at, .. } | Op::Constant { at, .. } => fits(&at.times(16)),
        Op::Iota { value } | Op::Unpack { part: value, .. } => fits(value),
        Op::Elementwise { .. }
        | Op::Convert { .. }
        | Op::Select { .. }
        | Op::BitcastConvert { .. }
        | Op::ToOrderedInt { .. }
        | Op::FromOrderedInt { .. }
        | Op::Pack { .. }
        | Op::SumOfProducts { .. }
        | Op::Sum { .. }
        | Op::Given { .. } => true,
    });
    if arrays && atoms && guards && nodes { Prim::I32 } else { Prim::I64 }
}
