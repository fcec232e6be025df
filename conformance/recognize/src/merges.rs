//! Applied computations that merge two partial results: functions that are associative and commutative in
//! exact arithmetic, however they are written, and differences.
//!
//! | merge | of its operands |
//! |---|---|
//! | [`Merge::LogAddExp`] | `log(exp(a) + exp(b))`, written as `max + log1p(exp(min - max))` |
//! | [`Merge::Hypotenuse`] | `sqrt(a^2 + b^2)` |
//! | [`Merge::Rescaled`] | online softmax: a sum of terms scaled by `exp(-M)`, `M` a maximum folded beside it |
//! | [`Merge::Mean`], [`Merge::Squares`] | mean, and sum of squared distances from it, of parts with counts |
//! | [`Merge::Saturated`] | a sum of integers, clamped to a range |
//! | [`Merge::Difference`] | `a - b` |
//!
//! A log-add-exp may have a guard for infinities. Sources: Milakov and Gimelshein, Online normalizer
//! calculation for softmax, 2018; Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for
//! computing sample variances, 1979.
//!
//! The first four are recognized under assumptions that leave no choice open ([`crate::terms`]): which of two
//! numbers is greater, which are infinite. Moments are compared with their formula as rational functions: at
//! some points of a field of 2^61 - 1 elements, where functions of degrees up to 256 that differ agree at one
//! of these with a probability below 2^-50 (Schwartz, Fast probabilistic algorithms for verification of
//! polynomial identities, 1980).

use std::cmp::Ordering;

use hlo::elided::splitmix64;
use hlo::{ConstantValue, ElementType, Opcode};
use hlo_execution::format::{Format, has_infinities};
use hlo_interp::Tensor;

use crate::expression::Origin;
use crate::rank;
use crate::region::{Component, Region};
use crate::terms::{Assumptions, Id, Kind, Term, Terms, resolved};

/// What a component merges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merge {
    /// The logarithm of the sum of the exponentials of its accumulator and its element.
    LogAddExp {
        /// What it gives of infinities.
        infinities: Infinities,
    },
    /// The root of the sum of the squares of its accumulator and its element.
    Hypotenuse,
    /// The sum of its accumulator and its element, each times the exponential of what this component, a
    /// maximum, had beside it less what that is now.
    Rescaled {
        /// The component that is the maximum.
        by: usize,
    },
    /// The mean of both means, weighted with this component, a sum.
    Mean {
        /// The component that is the sum of counts.
        count: usize,
    },
    /// The sum of squared distances from the mean of both parts.
    Squares {
        /// The component that is the mean.
        mean: usize,
        /// The component that is the sum of counts.
        count: usize,
    },
    /// The sum of its accumulator and its element, at least and at most these integers.
    Saturated {
        /// The least result.
        low: i128,
        /// The greatest result.
        high: i128,
    },
    /// Its accumulator less its element.
    Difference,
}

impl Merge {
    /// Its name, for tests and messages.
    pub fn name(self) -> &'static str {
        match self {
            Merge::LogAddExp { .. } => "log-add-exp",
            Merge::Hypotenuse => "hypotenuse",
            Merge::Rescaled { .. } => "rescaled",
            Merge::Mean { .. } => "mean",
            Merge::Squares { .. } => "squares",
            Merge::Saturated { .. } => "saturated",
            Merge::Difference => "difference",
        }
    }
}

/// Of pairs of infinities and finite numbers whether the logarithm of a sum of exponentials is right: the
/// greater one. By whether the first and the second are minus infinity, finite, plus infinity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Infinities([[bool; 3]; 3]);

/// Numbers by how they are infinite.
const CLASSES: [Option<f64>; 3] = [Some(f64::NEG_INFINITY), None, Some(f64::INFINITY)];

impl Infinities {
    /// Whether a fold gives the greatest of its operands, if that is infinite, in every order. `counts`: how
    /// many operands are minus infinity, finite, and plus infinity.
    pub fn any_order(&self, counts: [usize; 3]) -> bool {
        let pair = |i: usize, j: usize| {
            let present = if i == j { counts[i] > 1 } else { counts[i] > 0 && counts[j] > 0 };
            !present || self.0[i][j]
        };
        (0..3).all(|i| (0..3).all(|j| pair(i, j)))
    }
}

/// What a component merges, if it is any of these.
pub(crate) fn recognized(region: &Region<'_>, component: usize) -> Option<Merge> {
    let ty = region.expression.nodes[region.expression.results[component]].ty;
    if region.difference(component).is_some() {
        return Some(Merge::Difference);
    }
    if ty.is_integer() {
        return saturated(region, component);
    }
    // Of types of a byte and less so little is held that a step may leave them.
    if ty.is_complex() || !has_infinities(ty) || Format::of(ty)?.precision < 8 {
        return None;
    }
    log_add_exp(region, component)
        .or_else(|| hypotenuse(region, component))
        .or_else(|| rescaled(region, component))
        .or_else(|| moments(region, component))
}

/// Of all parameters the same assumption.
fn all(region: &Region<'_>, kind: Kind) -> Vec<Kind> {
    vec![kind; region.expression.parameters.len()]
}

/// Both parameters of a component.
fn pair(region: &Region<'_>, component: usize) -> [usize; 2] {
    [region.accumulator(component), region.element(component)]
}

/// Whether a component depends on the parameters of these alone.
fn is_of(region: &Region<'_>, component: usize, components: &[usize]) -> bool {
    let n = region.components.len();
    let roots = [region.expression.results[component]];
    region.expression.dependencies(&roots).iter().all(|p| components.contains(&(p % n)))
}

/// Whether a result is a term under some assumptions.
fn is(
    region: &Region<'_>,
    component: usize,
    assumptions: Assumptions,
    expected: impl FnOnce(&mut Terms) -> Id,
) -> bool {
    match resolved(&region.expression, &[region.expression.results[component]], assumptions) {
        Some((mut terms, ids)) => expected(&mut terms) == ids[0],
        None => false,
    }
}

fn log_add_exp(region: &Region<'_>, component: usize) -> Option<Merge> {
    let [p, q] = pair(region, component);
    if !is_of(region, component, &[component]) {
        return None;
    }
    let kinds = all(region, Kind::Finite);
    let finite = [Ordering::Less, Ordering::Equal, Ordering::Greater].into_iter().all(|order| {
        let assumptions = Assumptions { kinds: kinds.clone(), order: Some((p, q, order)) };
        is(region, component, assumptions, |terms| {
            let (greater, less) = if order == Ordering::Less { (q, p) } else { (p, q) };
            let (greater, less) = (terms.parameter(greater), terms.parameter(less));
            let less = terms.binary(Opcode::Subtract, less, greater);
            let less = terms.unary(Opcode::Exponential, less);
            let rest = terms.unary(Opcode::LogPlusOne, less);
            terms.binary(Opcode::Add, greater, rest)
        })
    });
    if !finite {
        return None;
    }
    let mut infinities = [[false; 3]; 3];
    for (i, a) in CLASSES.into_iter().enumerate() {
        for (j, b) in CLASSES.into_iter().enumerate() {
            let mut kinds = kinds.clone();
            for (parameter, class) in [(p, a), (q, b)] {
                if let Some(x) = class {
                    kinds[parameter] = Kind::Exactly(x);
                }
            }
            let greater = if i >= j { p } else { q };
            infinities[i][j] = a.is_none() && b.is_none()
                || is(region, component, Assumptions { kinds, order: None }, |terms| {
                    terms.parameter(greater)
                });
        }
    }
    Some(Merge::LogAddExp { infinities: Infinities(infinities) })
}

fn hypotenuse(region: &Region<'_>, component: usize) -> Option<Merge> {
    let assumptions = Assumptions { kinds: all(region, Kind::Finite), order: None };
    let found = is_of(region, component, &[component])
        && is(region, component, assumptions, |terms| {
            let [p, q] = pair(region, component).map(|p| terms.parameter(p));
            let (x, y) = (terms.binary(Opcode::Multiply, p, p), terms.binary(Opcode::Multiply, q, q));
            let sum = terms.binary(Opcode::Add, x, y);
            terms.unary(Opcode::Sqrt, sum)
        });
    found.then_some(Merge::Hypotenuse)
}

fn rescaled(region: &Region<'_>, component: usize) -> Option<Merge> {
    let ty = region.expression.nodes[region.expression.results[component]].ty;
    let is_maximum = |by: usize| {
        by != component
            && region.components[by] == Component::Fold(Opcode::Maximum, region.element(by))
            && region.expression.parameters[region.element(by)] == ty
    };
    let by = (0..region.components.len())
        .find(|&by| is_maximum(by) && is_of(region, component, &[by, component]))?;
    let ([p, q], [s, t]) = (pair(region, by), pair(region, component));
    let scales = [Ordering::Less, Ordering::Equal, Ordering::Greater].into_iter().all(|order| {
        let assumptions = Assumptions { kinds: all(region, Kind::Finite), order: Some((p, q, order)) };
        is(region, component, assumptions, |terms| {
            let ((greater, kept), (less, scaled)) =
                if order == Ordering::Less { ((q, t), (p, s)) } else { ((p, s), (q, t)) };
            let [greater, kept, less, scaled] = [greater, kept, less, scaled].map(|p| terms.parameter(p));
            let less = terms.binary(Opcode::Subtract, less, greater);
            let factor = terms.unary(Opcode::Exponential, less);
            let scaled = terms.binary(Opcode::Multiply, scaled, factor);
            terms.binary(Opcode::Add, kept, scaled)
        })
    });
    // What has the scale of minus infinity is nothing.
    let begins = [(p, t), (q, s)].into_iter().all(|(nothing, rest)| {
        let mut kinds = all(region, Kind::Finite);
        kinds[nothing] = Kind::Exactly(f64::NEG_INFINITY);
        is(region, component, Assumptions { kinds, order: None }, |terms| terms.parameter(rest))
    });
    (scales && begins).then_some(Merge::Rescaled { by })
}

fn moments(region: &Region<'_>, component: usize) -> Option<Merge> {
    let n = region.components.len();
    let ty = region.expression.nodes[region.expression.results[component]].ty;
    let typed = |other: usize| region.expression.parameters[region.element(other)] == ty;
    let is_count = |count: usize| {
        let counts = region.expression.parameters[region.element(count)];
        region.components[count] == Component::Fold(Opcode::Add, region.element(count))
            && (counts == ty || counts.is_integer())
    };
    for count in (0..n).filter(|&count| count != component && is_count(count)) {
        if is_of(region, component, &[component, count]) {
            if is_rational(region, component, [component, component, count], false) {
                return Some(Merge::Mean { count });
            }
            continue;
        }
        let others = (0..n).filter(|&mean| mean != component && mean != count && typed(mean));
        for mean in others {
            let of = is_of(region, component, &[component, mean, count])
                && is_of(region, mean, &[mean, count])
                && is_rational(region, mean, [mean, mean, count], false)
                && is_rational(region, component, [component, mean, count], true);
            if of {
                return Some(Merge::Squares { mean, count });
            }
        }
    }
    None
}

/// The order of the field in which rational functions are compared: a Mersenne prime.
const PRIME: u128 = (1 << 61) - 1;

/// The greatest degree of functions that are compared.
const MAX_DEGREE: u64 = 256;

/// How many points they are compared at.
const POINTS: u64 = 3;

/// Whether a component merges the means, or the sums of squares, of two parts: where both counts are
/// positive, and where either of them is 0. Components are itself, the mean and the count.
fn is_rational(region: &Region<'_>, component: usize, [own, mean, count]: [usize; 3], squares: bool) -> bool {
    [[false, false], [true, false], [false, true]].into_iter().all(|nothing| {
        let mut kinds = all(region, Kind::Finite);
        for (parameter, nothing) in pair(region, count).into_iter().zip(nothing) {
            kinds[parameter] = if nothing { Kind::Exactly(0.0) } else { Kind::Positive };
        }
        let root = [region.expression.results[component]];
        let Some((terms, ids)) = resolved(&region.expression, &root, Assumptions { kinds, order: None })
        else {
            return false;
        };
        (1..=POINTS).all(|point| {
            let at = |p: usize| scattered(point, p as u64);
            let [[m1, m2], [s1, s2]] = [mean, own].map(|c| pair(region, c).map(at));
            let counts = pair(region, count);
            let [n1, n2] = [0, 1].map(|k| if nothing[k] { 0 } else { at(counts[k]) });
            let n = inverse(sum(n1, n2));
            let expected = if squares {
                let d = sum(m2, negative(m1));
                let between = product(product(d, d), product(product(n1, n2), n));
                sum(sum(s1, s2), between)
            } else {
                product(sum(product(m1, n1), product(m2, n2)), n)
            };
            evaluated(&terms, &at).is_some_and(|values| values[ids[0]] == expected)
        }) && degrees(&terms)[ids[0]] <= MAX_DEGREE
    })
}

/// An element of the field for a parameter at a point.
fn scattered(point: u64, parameter: u64) -> u128 {
    u128::from(splitmix64(point << 32 | parameter)) % PRIME
}

fn sum(a: u128, b: u128) -> u128 {
    (a + b) % PRIME
}

fn negative(a: u128) -> u128 {
    (PRIME - a) % PRIME
}

fn product(a: u128, b: u128) -> u128 {
    a * b % PRIME
}

/// By Fermat's little theorem.
fn inverse(a: u128) -> u128 {
    let (mut result, mut base, mut exponent) = (1, a, PRIME - 2);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = product(result, base);
        }
        base = product(base, base);
        exponent >>= 1;
    }
    result
}

/// A finite number in the field: its integer times a power of two.
fn residue(x: f64) -> Option<u128> {
    if !x.is_finite() {
        return None;
    }
    let bits = x.abs().to_bits();
    let (exponent, fraction) = ((bits >> 52) as i64, u128::from(bits & ((1 << 52) - 1)));
    let (integer, power) =
        if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    // 2^61 is 1.
    let shift = power.rem_euclid(61);
    let magnitude = product(integer % PRIME, (1u128 << shift) % PRIME);
    Some(if x < 0.0 { negative(magnitude) } else { magnitude })
}

/// The degrees of all terms as quotients of polynomials, at most.
fn degrees(terms: &Terms) -> Vec<u64> {
    let mut degrees: Vec<u64> = Vec::with_capacity(terms.all().len());
    for &term in terms.all() {
        degrees.push(match term {
            Term::Parameter(_) => 1,
            Term::Constant(_) => 0,
            Term::Unary(_, x) => degrees[x],
            Term::Binary(_, x, y) => degrees[x].saturating_add(degrees[y]),
        });
    }
    degrees
}

/// The values of all terms in the field, if they are sums, differences, products and quotients.
fn evaluated(terms: &Terms, at: &dyn Fn(usize) -> u128) -> Option<Vec<u128>> {
    let mut values: Vec<u128> = Vec::with_capacity(terms.all().len());
    for &term in terms.all() {
        let value = match term {
            Term::Parameter(p) => at(p),
            Term::Constant(rank) => residue(rank::float(rank))?,
            Term::Unary(Opcode::Negate, x) => negative(values[x]),
            Term::Binary(Opcode::Add, x, y) => sum(values[x], values[y]),
            Term::Binary(Opcode::Subtract, x, y) => sum(values[x], negative(values[y])),
            Term::Binary(Opcode::Multiply, x, y) => product(values[x], values[y]),
            Term::Binary(Opcode::Divide, x, y) if values[y] != 0 => product(values[x], inverse(values[y])),
            Term::Binary(..) | Term::Unary(..) => return None,
        };
        values.push(value);
    }
    Some(values)
}

/// A sum of integers in one type that maxima, minima and clamps with constants keep within ends.
fn saturated(region: &Region<'_>, component: usize) -> Option<Merge> {
    let expression = &region.expression;
    let ty = expression.nodes[expression.results[component]].ty;
    let constant = |node: usize| -> Option<i128> {
        let Origin::Instruction(id) = expression.nodes[node].origin else { return None };
        let ConstantValue::Given(literal) = expression.module.instr(id).attrs.constant_value()? else {
            return None;
        };
        let ranks = rank::of_tensor(&Tensor::from_literal(literal.as_array()?.clone()));
        Some(rank::integer(ty, *ranks.first()?))
    };
    // What is outermost is applied last.
    let mut within: Vec<[i128; 2]> = Vec::new();
    let mut node = expression.results[component];
    let ends = rank::ends(ty);
    let (least, most) = (rank::integer(ty, ends.0), rank::integer(ty, ends.1));
    loop {
        let operands = &expression.nodes[node].operands;
        if expression.nodes[node].ty != ty || ty == ElementType::Pred {
            return None;
        }
        match (expression.opcode(node)?, &operands[..]) {
            (Opcode::Clamp, &[low, x, high]) => {
                within.push([constant(low)?, constant(high)?]);
                node = x;
            }
            (opcode @ (Opcode::Maximum | Opcode::Minimum), &[x, y]) => {
                let (end, of) = match (constant(x), constant(y)) {
                    (Some(end), None) => (end, y),
                    (None, Some(end)) => (end, x),
                    (_, _) => return None,
                };
                within.push(if opcode == Opcode::Maximum { [end, most] } else { [least, end] });
                node = of;
            }
            (Opcode::Add, &[x, y]) => {
                let [p, q] = pair(region, component);
                if [x, y] != [p, q] && [x, y] != [q, p] {
                    return None;
                }
                // Each is monotone, so that the ends go where it takes them.
                let applied = |x: i128| within.iter().rev().fold(x, |x, [low, high]| x.max(*low).min(*high));
                let (low, high) = (applied(least), applied(most));
                return Some(Merge::Saturated { low, high });
            }
            (_, _) => return None,
        }
    }
}
