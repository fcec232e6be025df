//! What a comparison makes of two intervals.

use hlo::attrs::Direction;

use super::interval::Interval;
use super::rules::Case;

/// How a `compare` decides.
pub(super) struct Comparison {
    direction: Direction,
    total: bool,
    /// Both operands are the same value.
    same: bool,
}

impl Comparison {
    pub(super) fn of(case: &Case<'_>) -> Option<Comparison> {
        let [a, b] = &case.args[..] else { return None };
        let total = case.instr.attrs.is_total_order();
        Some(Comparison { direction: *case.instr.attrs.direction()?, total, same: a.from == b.from })
    }

    /// The radius of the result: 0 where the intervals do not meet. `a` and `b` are the reference's values;
    /// numbers closer than `slack` are not told apart.
    pub(super) fn radius(&self, (x, a): (Interval, f64), (y, b): (Interval, f64), slack: f64) -> f64 {
        if x.is_exact(a) && y.is_exact(b) {
            return 0.0;
        }
        let nan = |of: Interval, value: f64| of.is_exact(value) && value.is_nan();
        if nan(x, a) && (!self.total || !y.unknown) || nan(y, b) && (!self.total || !x.unknown) {
            return 0.0;
        }
        if x.unknown || y.unknown {
            return f64::INFINITY;
        }
        if self.same {
            return 0.0;
        }
        let strictly = x.high + slack < y.low || y.high + slack < x.low;
        let weakly = match self.direction {
            Direction::Eq | Direction::Ne => false,
            Direction::Lt | Direction::Ge => y.high <= x.low,
            Direction::Gt | Direction::Le => x.high <= y.low,
        };
        if strictly || weakly && !self.total && slack == 0.0 { 0.0 } else { 1.0 }
    }
}
