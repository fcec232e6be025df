//! Loop analysis: invariant state, induction variables (counters), trip counts.
//!
//! **Invariant:** a fact holds of every run in which the loop terminates; it is read off the text, and `None`
//! where the text does not say.

use std::cmp::Ordering;

use hlo::attrs::{AttrKey, Direction};
use hlo::{ComputationId, ElementType, InstrId, Module, Opcode};
use rustc_hash::FxHashMap;

use super::facts::integer;

/// The maximum number of iterations that are simulated where a counter wraps.
const MAX_SIMULATED_ITERATIONS: u64 = 256;

/// Condition and body of a loop.
pub fn parts(module: &Module, id: InstrId) -> Option<[ComputationId; 2]> {
    let attrs = &module.instr(id).attrs;
    Some([attrs.computation(AttrKey::Condition)?, attrs.computation(AttrKey::Body)?])
}

/// The first parameter of a computation.
pub fn parameter(module: &Module, c: ComputationId) -> Option<InstrId> {
    *module.computation(c).parameters().first()?
}

/// Which element of the state an instruction is; `Some(None)` for a state that is no tuple.
pub fn element(module: &Module, state: InstrId, id: InstrId) -> Option<Option<i64>> {
    if id == state {
        return module.instr(state).shape.as_array().map(|_| None);
    }
    let instr = module.instr(id);
    (instr.opcode == Opcode::GetTupleElement && instr.operands() == [state])
        .then(|| instr.attrs.int(AttrKey::Index))
        .flatten()
        .map(Some)
}

/// The instruction that computes an element of a state.
pub fn at(module: &Module, state: InstrId, element: Option<i64>) -> Option<InstrId> {
    match element {
        None => Some(state),
        Some(i) => {
            let tuple = module.instr(state);
            (tuple.opcode == Opcode::Tuple)
                .then(|| tuple.operands().get(usize::try_from(i).ok()?).copied())
                .flatten()
        }
    }
}

/// Whether an element of the state is loop invariant (the body hands it on).
pub fn is_invariant(module: &Module, body: ComputationId, index: i64) -> bool {
    let next = at(module, module.root(body), Some(index));
    let state = parameter(module, body);
    next.zip(state).is_some_and(|(next, state)| element(module, state, next) == Some(Some(index)))
}

/// How many instructions call each computation.
#[derive(Debug, Default)]
pub struct Calls(FxHashMap<ComputationId, u32>);

impl Calls {
    /// Of a module as it is now. Calls that are removed later still count.
    pub fn of(module: &Module) -> Calls {
        let mut calls = Calls::default();
        for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
            for c in module.instr(id).attrs.called_computations() {
                *calls.0.entry(c).or_default() += 1;
            }
        }
        calls
    }

    /// Whether a loop is the only caller of its two computations.
    pub fn own(&self, [condition, body]: [ComputationId; 2]) -> bool {
        condition != body && [condition, body].iter().all(|c| self.0.get(c) == Some(&1))
    }
}

/// An induction variable that decides how often a loop runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counter {
    /// Its index in the state; `None` for a state that is no tuple.
    pub element: Option<i64>,
    /// Its type.
    pub ty: ElementType,
    /// Its initial value.
    pub first: i128,
    /// Its update per iteration.
    pub next: Next,
    /// The loop continues while `counter direction bound` holds.
    pub direction: Direction,
    /// The bound of that comparison.
    pub bound: i128,
}

/// The update of a counter by an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Addition of a constant, wrapping.
    Step(i128),
    /// Assignment of a constant.
    Constant(i128),
}

impl Counter {
    /// The counter of a loop whose condition compares an element of the state with a constant.
    pub fn of(module: &Module, id: InstrId) -> Option<Counter> {
        let [condition, body] = parts(module, id)?;
        let init = *module.instr(id).operands().first()?;
        let root = module.instr(module.root(condition));
        let &[a, b] = root.operands() else { return None };
        if root.opcode != Opcode::Compare {
            return None;
        }
        let state = parameter(module, condition)?;
        let direction = *root.attrs.direction()?;
        let (counter, bound, direction) = match (integer(module, a), integer(module, b)) {
            (None, Some(bound)) => (a, bound, direction),
            (Some(bound), None) => (b, bound, mirrored(direction)),
            (_, _) => return None,
        };
        let ty = module.instr(counter).shape.element_type()?;
        let element = element(module, state, counter)?;
        let first = integer(module, at(module, init, element)?)?;
        let next = at(module, module.root(body), element)?;
        let next = match integer(module, next) {
            Some(constant) => Next::Constant(constant),
            None => {
                let sum = module.instr(next);
                let &[x, y] = sum.operands() else { return None };
                let state = parameter(module, body)?;
                let is = |x| self::element(module, state, x) == Some(element);
                let step = match sum.opcode {
                    Opcode::Add if is(x) => integer(module, y)?,
                    Opcode::Add if is(y) => integer(module, x)?,
                    Opcode::Subtract if is(x) => -integer(module, y)?,
                    _ => return None,
                };
                (sum.shape.element_type()? == ty).then_some(Next::Step(step))?
            }
        };
        (ty.is_integer()).then_some(Counter { element, ty, first, next, direction, bound })
    }

    /// Whether the loop continues with this value.
    pub fn goes_on(&self, x: i128) -> bool {
        let order = x.cmp(&self.bound);
        match self.direction {
            Direction::Eq => order == Ordering::Equal,
            Direction::Ne => order != Ordering::Equal,
            Direction::Lt => order == Ordering::Less,
            Direction::Le => order != Ordering::Greater,
            Direction::Gt => order == Ordering::Greater,
            Direction::Ge => order != Ordering::Less,
        }
    }

    /// The trip count, if the loop terminates and that is known.
    pub fn iterations(&self) -> Option<u64> {
        if !self.goes_on(self.first) {
            return Some(0);
        }
        let step = match self.next {
            Next::Constant(x) => return (!self.goes_on(x)).then_some(1),
            Next::Step(step) => step,
        };
        // Without wrapping: the first k with `first + k * step` beyond the bound.
        let away = match self.direction {
            Direction::Lt | Direction::Le => step > 0,
            Direction::Gt | Direction::Ge => step < 0,
            Direction::Ne => step != 0 && (self.bound - self.first) % step == 0,
            Direction::Eq => false,
        };
        if away {
            let open = i128::from(matches!(self.direction, Direction::Le | Direction::Ge));
            let distance = (self.bound - self.first).abs() + open;
            let k = (distance + step.abs() - 1) / step.abs();
            let last = self.first.checked_add(k.checked_mul(step)?)?;
            if k > 0 && wrapped(last, self.ty) == Some(last) && !self.goes_on(last) {
                return u64::try_from(k).ok();
            }
        }
        let mut x = self.first;
        for k in 0..MAX_SIMULATED_ITERATIONS {
            if !self.goes_on(x) {
                return Some(k);
            }
            x = wrapped(x.checked_add(step)?, self.ty)?;
        }
        None
    }
}

/// `a d b` as `b d' a`.
fn mirrored(direction: Direction) -> Direction {
    match direction {
        Direction::Eq | Direction::Ne => direction,
        Direction::Lt => Direction::Gt,
        Direction::Le => Direction::Ge,
        Direction::Gt => Direction::Lt,
        Direction::Ge => Direction::Le,
    }
}

/// The trip count of a loop, if the text determines it.
pub fn trip_count(module: &Module, id: InstrId) -> Option<u64> {
    let [condition, _] = parts(module, id)?;
    match integer(module, module.root(condition)) {
        Some(0) => Some(0),
        Some(_) => None,
        None => Counter::of(module, id)?.iterations(),
    }
}

/// A number, if it is in the range of its type.
pub fn wrapped(x: i128, ty: ElementType) -> Option<i128> {
    let shift = 128 - ty.bits();
    if ty.is_signed_integer() {
        Some((x << shift) >> shift)
    } else if ty.is_unsigned_integer() {
        Some(((x.cast_unsigned() << shift) >> shift).cast_signed())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iterations(
        ty: ElementType,
        first: i128,
        step: i128,
        direction: Direction,
        bound: i128,
    ) -> Option<u64> {
        let next = Next::Step(step);
        Counter { element: None, ty, first, next, direction, bound }.iterations()
    }

    #[test]
    fn closed_forms_are_what_counting_gives() {
        for direction in
            [Direction::Eq, Direction::Ne, Direction::Lt, Direction::Le, Direction::Gt, Direction::Ge]
        {
            for first in -8..8 {
                for bound in -8..8 {
                    for step in -8..8 {
                        let c = Counter {
                            element: None,
                            ty: ElementType::S4,
                            first,
                            next: Next::Step(step),
                            direction,
                            bound,
                        };
                        let mut x = first;
                        let counted = (0..64).find(|_| {
                            let ends = !c.goes_on(x);
                            x = wrapped(x + step, ElementType::S4).unwrap();
                            ends
                        });
                        assert_eq!(c.iterations(), counted, "{c:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn long_loops_are_not_counted_one_by_one() {
        let far = i128::from(i32::MAX);
        assert_eq!(iterations(ElementType::S32, 0, 1, Direction::Lt, far), Some(far as u64));
        assert_eq!(iterations(ElementType::S32, 0, 1, Direction::Le, far), None);
        assert_eq!(iterations(ElementType::S32, 10, -3, Direction::Gt, -20), Some(10));
        assert_eq!(iterations(ElementType::U8, 0, 2, Direction::Ne, 255), None);
        assert_eq!(iterations(ElementType::U32, 0, 3, Direction::Ne, 300_000), Some(100_000));
    }
}
