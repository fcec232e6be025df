//! Numbers of every real type as ranks in the order of the type, and lines of ranks that constants split into
//! intervals.
//!
//! What compares numbers with each other and with constants depends on the order of these alone, so a few
//! representatives of each interval stand for all numbers. **Invariant:** ranks are exact: `a < b` of a type
//! is `rank(a) < rank(b)`, but that -0 is just below +0 and that all NaNs of a sign are one rank beyond the
//! infinity of that sign.

use std::collections::BTreeSet;

use hlo::{Bits, BufferOf, ElementType, with_buffer, with_element_type};
use hlo_execution::element::{Number, Part};
use hlo_execution::format::Format;
use hlo_interp::Tensor;

/// The rank of -0.
pub const NEGATIVE_ZERO: i64 = -1;
/// The rank of +0.
pub const POSITIVE_ZERO: i64 = 0;
/// The rank of NaNs without a sign.
pub const NAN: i64 = i64::MAX;
/// The rank of NaNs with a sign.
pub const NEGATIVE_NAN: i64 = i64::MIN;

/// The rank of a float.
pub fn of_float(x: f64) -> i64 {
    if x.is_nan() {
        return if x.is_sign_negative() { NEGATIVE_NAN } else { NAN };
    }
    let bits = x.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The float of a rank.
pub fn float(rank: i64) -> f64 {
    match rank {
        NAN => f64::NAN,
        NEGATIVE_NAN => -f64::NAN,
        _ => f64::from_bits((rank ^ (((rank >> 63) as u64) >> 1) as i64) as u64),
    }
}

/// The rank of an integer or predicate of a type.
fn of_integer(ty: ElementType, x: i128) -> i64 {
    // The type of the greatest integers is moved to where the signed ones are.
    (if ty == ElementType::U64 { x + i128::from(i64::MIN) } else { x }) as i64
}

/// The integer or predicate of a type that has a rank.
pub fn integer(ty: ElementType, rank: i64) -> i128 {
    let x = i128::from(rank);
    if ty == ElementType::U64 { x - i128::from(i64::MIN) } else { x }
}

/// The ranks of a tensor's elements; of complex ones those of their real parts.
pub fn of_tensor(t: &Tensor) -> Vec<i64> {
    let ty = t.element_type();
    with_buffer!(t.buffer(), v => v.iter().map(|&x| match Number::parts(x).0 {
        Part::Int(x) => of_integer(ty, x),
        Part::Float { value, .. } => of_float(value),
    }).collect())
}

/// A list of numbers of these ranks. What the type does not hold becomes something else.
pub fn tensor(ty: ElementType, ranks: &[i64]) -> Tensor {
    let floats = Format::of(ty).is_some();
    let buffer = with_element_type!(ty, T => <T as BufferOf>::wrap(ranks.iter().map(|&rank| {
        if floats { <T as Number>::from_f64(float(rank)) } else { <T as Number>::from_i128(integer(ty, rank)) }
    }).collect()));
    Tensor::new([ranks.len() as i64].as_slice(), buffer)
}

/// The least and the greatest rank of an integer type.
pub fn ends(ty: ElementType) -> (i64, i64) {
    let bits = ty.bits();
    match ty {
        ElementType::Pred => (0, 1),
        ElementType::U64 => (i64::MIN, i64::MAX),
        _ if ty.is_signed_integer() => (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)),
        _ => (0, i64::MAX >> (63 - bits)),
    }
}

/// The ranks of a type near to others: some on each side, and of small types all.
fn near(ty: ElementType, ranks: &BTreeSet<i64>) -> BTreeSet<i64> {
    let mut found = ranks.clone();
    match Format::of(ty) {
        Some(_) if ty.bits() <= 8 => {
            found = with_element_type!(ty, T => {
                let all: Vec<T> = (0..1u128 << ty.bits()).map(<T as Bits>::from_bits).collect();
                of_tensor(&Tensor::new([all.len() as i64].as_slice(), <T as BufferOf>::wrap(all)))
            })
            .into_iter()
            .collect();
        }
        Some(format) => {
            found.extend([of_float(format.max), of_float(-format.max)]);
            for x in ranks.iter().map(|&rank| float(rank)).filter(|x| x.is_finite()) {
                let ulp = format.ulp(x);
                found.extend(
                    [1.0, 2.0, 3.0].iter().flat_map(|k| [of_float(x - k * ulp), of_float(x + k * ulp)]),
                );
            }
        }
        None => {
            let (least, greatest) = ends(ty);
            for &rank in ranks.iter().chain(&[of_integer(ty, 0)]) {
                found.extend((-3..=3).map(|step| rank.saturating_add(step)));
            }
            found.extend([least, greatest]);
            found.retain(|rank| (least..=greatest).contains(rank));
        }
    }
    // Those that the type holds.
    let asked: Vec<i64> = found.into_iter().collect();
    let got = of_tensor(&tensor(ty, &asked));
    asked.into_iter().zip(got).filter(|(asked, got)| asked == got).map(|(rank, _)| rank).collect()
}

/// The ranks of a type, split at some of them.
#[derive(Clone, Debug)]
pub struct Line {
    /// The split points, in order.
    cuts: Vec<i64>,
    /// Some ranks that the type holds, in order.
    pub ranks: Vec<i64>,
    /// For each slot the indices of its representatives in `ranks`: slot `2 j` is below the split point `j`,
    /// slot `2 j + 1` is that point.
    slots: Vec<Vec<usize>>,
}

impl Line {
    /// Of a type, split at constants. `total`: where NaNs have an order.
    pub fn new(ty: ElementType, constants: &BTreeSet<i64>, total: bool) -> Line {
        let mut cuts = constants.clone();
        if Format::of(ty).is_some() {
            cuts.extend([NEGATIVE_ZERO, POSITIVE_ZERO, NAN]);
            if total {
                cuts.insert(NEGATIVE_NAN);
            } else {
                cuts.remove(&NEGATIVE_NAN);
            }
        }
        if ty == ElementType::Pred {
            cuts.extend([0, 1]);
        }
        let near = near(ty, &cuts);
        let cuts: Vec<i64> = cuts.into_iter().collect();
        let mut line = Line { slots: vec![Vec::new(); 2 * cuts.len() + 1], cuts, ranks: Vec::new() };
        for rank in near {
            if rank == NEGATIVE_NAN && !total {
                continue;
            }
            let slot = line.slot(rank);
            if line.slots[slot].len() < 3 {
                line.slots[slot].push(line.ranks.len());
                line.ranks.push(rank);
            }
        }
        line
    }

    /// Of numbers that nothing looks at: two that differ.
    pub fn unseen(ty: ElementType) -> Line {
        let ranks: Vec<i64> = if Format::of(ty).is_some() {
            vec![of_float(1.0), of_float(2.0)]
        } else {
            let (least, greatest) = ends(ty);
            vec![least, greatest]
        };
        Line { cuts: Vec::new(), slots: vec![(0..ranks.len()).collect()], ranks }
    }

    /// The slot of a rank.
    pub fn slot(&self, rank: i64) -> usize {
        match self.cuts.binary_search(&rank) {
            Ok(cut) => 2 * cut + 1,
            Err(cut) => 2 * cut,
        }
    }

    /// Whether the NaNs with a sign are less than all numbers.
    pub fn is_total(&self) -> bool {
        self.cuts.first() == Some(&NEGATIVE_NAN)
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The least and the greatest rank of a slot.
    fn extent(&self, slot: usize) -> (i64, i64) {
        if slot % 2 == 1 {
            return (self.cuts[slot / 2], self.cuts[slot / 2]);
        }
        let below = slot.checked_sub(1).map_or(i64::MIN, |cut| self.cuts[cut / 2].saturating_add(1));
        (below, self.cuts.get(slot / 2).map_or(i64::MAX, |cut| cut.saturating_sub(1)))
    }

    /// The representatives that stand for two ranks.
    pub fn pair(&self, x: i64, y: i64) -> Option<(usize, usize)> {
        let (a, b) = (self.slot(x), self.slot(y));
        let (of_a, of_b) = (&self.slots[a], &self.slots[b]);
        let apart = |one: i64, other: i64| usize::from(a == b && one > other);
        Some((*of_a.get(apart(x, y))?, *of_b.get(apart(y, x))?))
    }

    /// Pairs of representatives that stand for all pairs of ranks from two ranges. `None` if some pairs have
    /// no representatives.
    pub fn pairs(&self, x: (i64, i64), y: (i64, i64)) -> Option<Vec<(usize, usize)>> {
        let mut pairs = Vec::new();
        for a in self.slot(x.0)..=self.slot(x.1) {
            for b in self.slot(y.0)..=self.slot(y.1) {
                let (of_a, of_b) = (&self.slots[a], &self.slots[b]);
                if a != b || a % 2 == 1 {
                    pairs.push((*of_a.first()?, *of_b.first()?));
                    continue;
                }
                let (low, high) = self.extent(a);
                let (x, y) = ((x.0.max(low), x.1.min(high)), (y.0.max(low), y.1.min(high)));
                if x.0 < y.1 {
                    pairs.push((*of_a.first()?, *of_a.get(1)?));
                }
                if y.0 < x.1 {
                    pairs.push((*of_a.get(1)?, *of_a.first()?));
                }
                if x.0.max(y.0) <= x.1.min(y.1) {
                    pairs.push((*of_a.first()?, *of_a.first()?));
                }
            }
        }
        Some(pairs)
    }

    /// The representative of a rank that is one.
    pub fn index(&self, rank: i64) -> Option<usize> {
        self.ranks.binary_search(&rank).ok()
    }
}

/// Whether numbers of these ranks are equal: zeros of both signs are.
pub fn equal(a: i64, b: i64, floats: bool) -> bool {
    let one = |rank: i64| if floats && rank == NEGATIVE_ZERO { POSITIVE_ZERO } else { rank };
    one(a) == one(b)
}
