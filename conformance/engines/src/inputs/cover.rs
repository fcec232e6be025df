//! What numbers should reach so that a conversion, a comparison or an index shows what it does: ranges, and
//! numbers in them exactly.
//!
//! Unlike the range of a [`Demand`](super::demand::Demand) these are wishes: several uses add up, and where a
//! use needs a range (the domain of a function) only what is in it is left.
//!
//! **Invariant:** at most [`MAX_KEPT_RANGES`] ranges and as many numbers are kept, the first ones asked for,
//! so that what loops ask again and again ends.

use hlo::{ElementType, Opcode};

use super::fill::{Cover, Fill};
use hlo_execution::element::int_limits;
use hlo_execution::format::Format;

/// The maximum of ranges and of numbers that are kept of those that uses require.
const MAX_KEPT_RANGES: usize = 4;

/// The maximum of bits of integer types that are covered evenly; of wider ones half of the numbers are small.
const EVEN_BITS: u32 = 8;

impl Cover {
    /// A range.
    pub(super) fn range(low: f64, high: f64) -> Cover {
        Cover { ranges: vec![(low, high)], ..Cover::default() }
    }

    /// Numbers, and what is on both sides of each.
    pub(super) fn around(points: Vec<f64>) -> Cover {
        let side = |p: f64| p.abs().max(1.0);
        Cover { ranges: points.iter().map(|&p| (p - side(p), p + side(p))).collect(), points, ties: false }
    }

    /// Everything that an integer type holds, and somewhat more on both sides.
    /// `counted`: whether a loop may count as far as a number says.
    pub(super) fn conversion(to: ElementType, counted: bool) -> Cover {
        if to == ElementType::Pred {
            return Cover::around(vec![0.0]);
        }
        let Some((minimum, maximum)) = int_limits(to) else { return Cover::default() };
        let beyond = ((maximum - minimum + 1) / 16).max(2) as f64;
        let all = (minimum as f64 - beyond, maximum as f64 + 1.0 + beyond);
        let small = if minimum < 0 { (-16.0, 16.0) } else { (-4.0, 28.0) };
        Cover {
            ranges: match (to.bits() <= EVEN_BITS, counted) {
                (true, _) => vec![all],
                (false, false) => vec![all, small],
                (false, true) => vec![small],
            },
            ..Cover::default()
        }
    }

    /// The indices `low` to `high`, and somewhat more on both sides.
    pub(super) fn indices(low: i128, high: i128) -> Cover {
        let beyond = 1.0 + ((high - low) / 8) as f64;
        Cover::range(low as f64 - beyond, high as f64 + 1.0 + beyond)
    }

    /// Adds what another use asks.
    pub(super) fn join(&mut self, other: &Cover) {
        for &range in &other.ranges {
            if self.ranges.len() < MAX_KEPT_RANGES && !self.ranges.contains(&range) {
                self.ranges.push(range);
            }
        }
        for &point in &other.points {
            if self.points.len() < MAX_KEPT_RANGES && !self.points.contains(&point) {
                self.points.push(point);
            }
        }
        self.ties |= other.ties;
    }

    /// Whether nothing is asked.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.points.is_empty() && !self.ties
    }

    /// What a monotone function of a number makes of this; what it makes infinite or empty is left out.
    pub(super) fn mapped(&self, f: impl Fn(f64) -> f64) -> Cover {
        let ends = self.ranges.iter().map(|&(low, high)| (f(low), f(high)));
        let ordered = ends.map(|(a, b)| if a <= b { (a, b) } else { (b, a) });
        Cover {
            ranges: ordered.filter(|(a, b)| a.is_finite() && b.is_finite() && a < b).collect(),
            points: self.points.iter().map(|&p| f(p)).filter(|p| p.is_finite()).collect(),
            ties: self.ties,
        }
    }

    /// The ranges within the values of a function, whose ends it does not reach: away from each of them by a
    /// 1024th of the range. They end at the points, so that both sides of each are reached alike, however the
    /// inverse bends.
    fn within(&self, (least, greatest): (f64, f64)) -> Vec<(f64, f64)> {
        let cut = |&(low, high): &(f64, f64)| {
            let (a, b) = (low.max(least), high.min(greatest));
            let margin = (b - a) / 1024.0;
            (if a > least { a } else { a + margin }, if b < greatest { b } else { b - margin })
        };
        let meets = |r: &&(f64, f64)| r.0 < greatest && r.1 > least;
        let mut pieces = Vec::new();
        for (mut low, high) in self.ranges.iter().filter(meets).map(cut) {
            let mut inside: Vec<f64> = self.points.iter().copied().filter(|&p| low < p && p < high).collect();
            inside.sort_by(f64::total_cmp);
            inside.dedup();
            for end in inside.into_iter().chain([high]) {
                pieces.push((low, end));
                low = end;
            }
        }
        pieces
    }

    /// What the operand of a monotone function covers, by the inverse, which is not exact: no points.
    fn inverted(&self, values: (f64, f64), inverse: impl Fn(f64) -> f64) -> Vec<Cover> {
        let ranges = self.within(values);
        vec![Cover { ranges, points: Vec::new(), ties: self.ties }.mapped(inverse)]
    }

    /// What of this is not negative.
    fn positive(&self) -> Cover {
        Cover {
            ranges: self
                .ranges
                .iter()
                .filter(|r| r.1 > 0.0)
                .map(|&(low, high)| (low.max(0.0), high))
                .collect(),
            points: self.points.iter().copied().filter(|&p| p >= 0.0).collect(),
            ties: self.ties,
        }
    }

    /// What integers within these limits cover, if that is more than what they are where nothing is asked.
    pub(super) fn beyond(&self, usual: (i128, i128), limits: (i128, i128)) -> Option<Cover> {
        let (low, high) = (usual.0 as f64, usual.1 as f64 + 1.0);
        let (least, end) = (limits.0 as f64, limits.1 as f64 + 1.0);
        let cut = |&(low, high): &(f64, f64)| (low.max(least), high.min(end));
        let ranges: Vec<(f64, f64)> = self.ranges.iter().map(cut).filter(|(low, high)| low < high).collect();
        let points =
            self.points.iter().copied().filter(|&p| p == p.trunc() && least <= p && p < end).collect();
        let beyond = ranges.iter().any(|r| r.0 < low || r.1 > high);
        beyond.then_some(Cover { ranges, points, ties: false })
    }

    /// What the operands of an operation on numbers cover, none of them a constant, so that the result covers
    /// this: `None` where there is no rule.
    pub(super) fn operands(&self, opcode: Opcode) -> Option<Vec<Cover>> {
        Some(match opcode {
            Opcode::Negate => vec![self.mapped(|x| -x)],
            Opcode::Floor | Opcode::Ceil | Opcode::RoundNearestAfz | Opcode::RoundNearestEven => {
                vec![self.clone()]
            }
            Opcode::Maximum | Opcode::Minimum => vec![self.clone(); 2],
            Opcode::Abs => {
                let both = |&p: &f64| [p, -p];
                vec![Cover {
                    ranges: self
                        .ranges
                        .iter()
                        .filter(|r| r.1 > 0.0)
                        .map(|&(_, high)| (-high, high))
                        .collect(),
                    points: self.points.iter().filter(|&&p| p >= 0.0).flat_map(both).collect(),
                    ties: self.ties,
                }]
            }
            // Over ten powers of two, of a range that goes down to 0.
            Opcode::Exponential => self.inverted((0.0, f64::MAX), f64::ln),
            Opcode::ExponentialMinusOne => self.inverted((-1.0, f64::MAX), f64::ln_1p),
            Opcode::Log => self.inverted((-f64::MAX, f64::MAX), f64::exp),
            Opcode::LogPlusOne => self.inverted((-f64::MAX, f64::MAX), f64::exp_m1),
            Opcode::Tanh => self.inverted((-1.0, 1.0), f64::atanh),
            Opcode::Logistic => self.inverted((0.0, 1.0), |x| (x / (1.0 - x)).ln()),
            Opcode::Cbrt => vec![self.mapped(|x| x * x * x)],
            Opcode::Sqrt => vec![self.positive().mapped(|x| x * x)],
            Opcode::Rsqrt => {
                let points = self.points.iter().copied().filter(|&p| p > 0.0).collect();
                let ranges = self.within((0.0, f64::MAX));
                vec![Cover { ranges, points, ties: self.ties }.mapped(|x| 1.0 / (x * x))]
            }
            Opcode::Add => vec![self.mapped(|x| x / 2.0); 2],
            Opcode::Subtract => vec![self.mapped(|x| x / 2.0), self.mapped(|x| -x / 2.0)],
            Opcode::Multiply => {
                let root = |&(low, high): &(f64, f64)| low.abs().max(high.abs()).sqrt();
                let ranges = self.ranges.iter().map(root).map(|r| (-r, r)).collect();
                let points = self.points.iter().copied().filter(|&p| p == 0.0).collect();
                vec![Cover { ranges, points, ties: false }; 2]
            }
            // The divisor has a range of its own, about 1.
            Opcode::Divide => vec![self.clone()],
            _ => return None,
        })
    }

    /// What an operand covers beside a constant, so that the result covers this.
    pub(super) fn beside(&self, opcode: Opcode, operand: usize, constant: f64) -> Cover {
        match (opcode, operand) {
            (Opcode::Add, _) => self.mapped(|x| x - constant),
            (Opcode::Subtract, 0) => self.mapped(|x| x + constant),
            (Opcode::Subtract, _) => self.mapped(|x| constant - x),
            (Opcode::Multiply, _) => self.mapped(|x| x / constant),
            (Opcode::Divide, 0) => self.mapped(|x| x * constant),
            // They cut off at the constant, whatever is behind them: both sides of it, too.
            (Opcode::Maximum | Opcode::Minimum, _) => {
                let mut both = self.clone();
                let is_inside = |&(low, high): &(f64, f64)| low < constant && constant < high;
                if constant.is_finite() && !self.ranges.is_empty() && !self.ranges.iter().any(is_inside) {
                    both.join(&Cover { points: Vec::new(), ..Cover::around(vec![constant]) });
                }
                both
            }
            _ => Cover::default(),
        }
    }

    /// The rule for floats of a type that are to cover this. `needed` is the range that another use asks for,
    /// `domain` that in which it means something, `usual` the range where nothing is asked.
    pub(super) fn fill(
        &self,
        ty: ElementType,
        needed: Option<(f64, f64)>,
        domain: Option<(f64, f64)>,
        usual: (f64, f64),
    ) -> Option<Fill> {
        // Unsigned types have too few such values.
        if self.is_empty() || !ty.is_float() || ty == ElementType::F8E8M0FNU {
            return None;
        }
        let max = Format::of(ty)?.max;
        // The width of a range is a number of f64.
        let most = max.min(f64::MAX / 2.0);
        let (minimum, maximum) = domain.map_or((-most, most), |(low, high)| (low.max(-most), high.min(most)));
        let cut = |&(low, high): &(f64, f64)| (low.max(minimum), high.min(maximum));
        let mut ranges: Vec<(f64, f64)> =
            self.ranges.iter().map(cut).filter(|(low, high)| low < high).collect();
        if ranges.is_empty() {
            ranges.push(needed.unwrap_or(usual));
        }
        let within = |&p: &f64| p.abs() <= max && domain.is_none_or(|(low, high)| low <= p && p < high);
        let points: Vec<f64> = self.points.iter().copied().filter(within).collect();
        Some(match ranges[..] {
            [(low, high)] if points.is_empty() && !self.ties => Fill::Real { low, high },
            _ => Fill::Cover(Cover { ranges, points, ties: self.ties }),
        })
    }
}
