//! Double-double arithmetic, and with a separate exponent: that of the interpreter
//! (`hlo_arithmetic::scalar::dd`), as expressions.
//!
//! Operations have a relative error below 2^-102 as long as no part of them leaves the normal range.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::ops::{Cond, Num, Ops, Pick};

/// `hi + lo`.
#[derive(Clone, Copy)]
pub(super) struct Dd<'o, 'ctx> {
    pub(super) hi: Num<'o, 'ctx>,
    pub(super) lo: Num<'o, 'ctx>,
}

/// The sum and its rounding error.
pub(super) fn two_sum<'o, 'ctx>(a: Num<'o, 'ctx>, b: Num<'o, 'ctx>) -> Dd<'o, 'ctx> {
    let sum = a + b;
    let part = sum - a;
    Dd { hi: sum, lo: (a - (sum - part)) + (b - part) }
}

/// The same for `|a| >= |b|` or `a == 0`.
pub(super) fn quick_two_sum<'o, 'ctx>(a: Num<'o, 'ctx>, b: Num<'o, 'ctx>) -> Dd<'o, 'ctx> {
    let sum = a + b;
    Dd { hi: sum, lo: b - (sum - a) }
}

/// The product and its rounding error.
pub(super) fn two_product<'o, 'ctx>(a: Num<'o, 'ctx>, b: Num<'o, 'ctx>) -> Dd<'o, 'ctx> {
    let product = a * b;
    Dd { hi: product, lo: a.fma(b, -product) }
}

impl<'o, 'ctx> Dd<'o, 'ctx> {
    /// An `f64`.
    pub(super) fn from(x: Num<'o, 'ctx>) -> Self {
        Self { hi: x, lo: x.ops.number(0.0) }
    }

    /// A constant.
    pub(super) fn constant(ops: Ops<'o, 'ctx>, [hi, lo]: [f64; 2]) -> Self {
        Self { hi: ops.number(hi), lo: ops.number(lo) }
    }

    /// 1.
    pub(super) fn one(ops: Ops<'o, 'ctx>) -> Self {
        Self::constant(ops, [1.0, 0.0])
    }

    /// The sum of the terms: `hi` is the exact sum correctly rounded, `lo` the rest with a relative error of
    /// 2^-52.
    pub(super) fn sum(terms: &[Num<'o, 'ctx>]) -> Self {
        // A nonoverlapping expansion of the exact sum, its parts of increasing magnitude (Shewchuk).
        let mut parts: Vec<Num<'o, 'ctx>> = Vec::with_capacity(terms.len());
        for &term in terms {
            let mut carry = term;
            for part in &mut parts {
                let Dd { hi, lo } = two_sum(carry, *part);
                (carry, *part) = (hi, lo);
            }
            parts.push(carry);
        }
        let zero = terms[0].ops.number(0.0);
        let (mut hi, mut lo, mut rest) = (parts[parts.len() - 1], zero, zero);
        // Until a part does not fit into `hi`, which is then rounded.
        for &part in parts.iter().rev().skip(1) {
            let is_rounded = !lo.eq(0.0);
            let next = quick_two_sum(hi, part);
            rest = rest + is_rounded.pick(part, zero);
            (hi, lo) = (is_rounded.pick(hi, next.hi), is_rounded.pick(lo, next.lo));
        }
        quick_two_sum(hi, lo + rest)
    }

    /// Times a power of two.
    pub(super) fn times(self, factor: f64) -> Self {
        Self { hi: self.hi * factor, lo: self.lo * factor }
    }

    /// Times 2^n.
    pub(super) fn scale(self, n: Num<'o, 'ctx>) -> Self {
        Self { hi: self.hi.scale(n), lo: self.lo.scale(n) }
    }

    /// The magnitude.
    pub(super) fn abs(self) -> Self {
        self.hi.is_negative().pick(-self, self)
    }

    /// The square root.
    pub(super) fn sqrt(self) -> Self {
        let root = self.hi.sqrt();
        let rest = self - two_product(root, root);
        let result = quick_two_sum(root, rest.hi / (root + root));
        self.hi.eq(0.0).pick(self, result)
    }

    pub(super) fn flat(self) -> [Num<'o, 'ctx>; 2] {
        [self.hi, self.lo]
    }

    pub(super) fn of([hi, lo]: [Num<'o, 'ctx>; 2]) -> Self {
        Self { hi, lo }
    }
}

impl<'o, 'ctx> Pick<'o, 'ctx> for Dd<'o, 'ctx> {
    fn pick(condition: Cond<'o, 'ctx>, a: Self, b: Self) -> Self {
        Self::of(condition.pick(a.flat(), b.flat()))
    }
}

impl Neg for Dd<'_, '_> {
    type Output = Self;

    fn neg(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }
}

impl Add for Dd<'_, '_> {
    type Output = Self;

    fn add(self, rhs: Self) -> Self {
        let (high, low) = (two_sum(self.hi, rhs.hi), two_sum(self.lo, rhs.lo));
        let sum = quick_two_sum(high.hi, high.lo + low.hi);
        quick_two_sum(sum.hi, low.lo + sum.lo)
    }
}

impl Sub for Dd<'_, '_> {
    type Output = Self;

    fn sub(self, rhs: Self) -> Self {
        self + -rhs
    }
}

impl Mul for Dd<'_, '_> {
    type Output = Self;

    fn mul(self, rhs: Self) -> Self {
        let product = two_product(self.hi, rhs.hi);
        let cross = self.lo.fma(rhs.hi, self.hi * rhs.lo);
        quick_two_sum(product.hi, product.lo + cross)
    }
}

impl Div for Dd<'_, '_> {
    type Output = Self;

    fn div(self, rhs: Self) -> Self {
        let [a, b] = [self.flat(), rhs.flat()];
        Self::of(self.hi.ops.call("dd_divide", [a[0], a[1], b[0], b[1]], divide))
    }
}

fn divide<'p, 'ctx>(_: Ops<'p, 'ctx>, [a, b, c, d]: [Num<'p, 'ctx>; 4]) -> [Num<'p, 'ctx>; 2] {
    let (x, y) = (Dd { hi: a, lo: b }, Dd { hi: c, lo: d });
    let first = x.hi / y.hi;
    let rest = x - y * Dd::from(first);
    let second = rest.hi / y.hi;
    let rest = rest - y * Dd::from(second);
    let third = rest.hi / y.hi;
    (quick_two_sum(first, second) + Dd::from(third)).flat()
}

/// `value * 2^exponent`; the exponent is an integer.
#[derive(Clone, Copy)]
pub(super) struct Wide<'o, 'ctx> {
    pub(super) value: Dd<'o, 'ctx>,
    pub(super) exponent: Num<'o, 'ctx>,
}

impl<'o, 'ctx> Wide<'o, 'ctx> {
    /// A number.
    pub(super) fn from(x: Num<'o, 'ctx>) -> Self {
        Self::from_dd(Dd::from(x))
    }

    /// A number.
    pub(super) fn from_dd(value: Dd<'o, 'ctx>) -> Self {
        Self { value, exponent: value.hi.ops.number(0.0) }
    }

    /// Zero, infinite or NaN: then `value.hi` says all.
    fn is_special(self) -> Cond<'o, 'ctx> {
        self.value.hi.eq(0.0) | !self.value.hi.is_finite()
    }

    /// The magnitude with the sign of another number.
    pub(super) fn copysign(self, sign: Num<'o, 'ctx>) -> Self {
        let hi = self.value.hi.copysign(sign);
        let same = self.value.hi.is_negative() & sign.is_negative()
            | !self.value.hi.is_negative() & !sign.is_negative();
        let lo = same.pick(self.value.lo, -self.value.lo);
        Self { value: Dd { hi, lo }, exponent: self.exponent }
    }

    /// The same number with `1 <= |hi| < 2`; zeros, infinities and NaNs stay.
    pub(super) fn normalize(self) -> Self {
        Self::of(self.exponent.ops.call("wide_normalize", self.flat(), normalize))
    }

    /// Times 2^n.
    pub(super) fn shift(self, n: f64) -> Self {
        Self { exponent: self.exponent + n, ..self }
    }

    /// Times 2^n.
    pub(super) fn shift_by(self, n: Num<'o, 'ctx>) -> Self {
        Self { exponent: self.exponent + n, ..self }
    }

    /// The number as a [`Dd`]; only for one in range.
    pub(super) fn to_dd(self) -> Dd<'o, 'ctx> {
        self.value.scale(self.exponent)
    }

    /// Rounded: once, but below the normal range.
    pub(super) fn to_f64(self) -> Num<'o, 'ctx> {
        self.is_special().pick(self.value.hi, self.value.hi.scale(self.exponent))
    }

    pub(super) fn flat(self) -> [Num<'o, 'ctx>; 3] {
        [self.value.hi, self.value.lo, self.exponent]
    }

    pub(super) fn of([hi, lo, exponent]: [Num<'o, 'ctx>; 3]) -> Self {
        Self { value: Dd { hi, lo }, exponent }
    }

    fn pair(self, rhs: Self) -> [Num<'o, 'ctx>; 6] {
        let ([a, b, c], [d, e, f]) = (self.flat(), rhs.flat());
        [a, b, c, d, e, f]
    }
}

fn normalize<'p, 'ctx>(_: Ops<'p, 'ctx>, parts: [Num<'p, 'ctx>; 3]) -> [Num<'p, 'ctx>; 3] {
    let x = Wide::of(parts);
    let n = x.value.hi.exponent();
    let normal = Wide { value: x.value.scale(-n), exponent: x.exponent + n };
    x.is_special().pick(x, normal).flat()
}

fn product<'p, 'ctx>(ops: Ops<'p, 'ctx>, [a, b, c, d, e, f]: [Num<'p, 'ctx>; 6]) -> [Num<'p, 'ctx>; 3] {
    combined(ops, Wide::of([a, b, c]), Wide::of([d, e, f]), |x, y| x * y, |x, y| x * y, |x, y| x + y)
}

fn quotient<'p, 'ctx>(ops: Ops<'p, 'ctx>, [a, b, c, d, e, f]: [Num<'p, 'ctx>; 6]) -> [Num<'p, 'ctx>; 3] {
    combined(ops, Wide::of([a, b, c]), Wide::of([d, e, f]), |x, y| x / y, |x, y| x / y, |x, y| x - y)
}

fn combined<'p, 'ctx>(
    _: Ops<'p, 'ctx>,
    a: Wide<'p, 'ctx>,
    b: Wide<'p, 'ctx>,
    plain: fn(Num<'p, 'ctx>, Num<'p, 'ctx>) -> Num<'p, 'ctx>,
    value: fn(Dd<'p, 'ctx>, Dd<'p, 'ctx>) -> Dd<'p, 'ctx>,
    exponent: fn(Num<'p, 'ctx>, Num<'p, 'ctx>) -> Num<'p, 'ctx>,
) -> [Num<'p, 'ctx>; 3] {
    let special = a.is_special() | b.is_special();
    let plain = Wide::from(plain(a.value.hi, b.value.hi));
    let (a, b) = (a.normalize(), b.normalize());
    let normal = Wide { value: value(a.value, b.value), exponent: exponent(a.exponent, b.exponent) };
    special.pick(plain, normal).flat()
}

impl<'o, 'ctx> Pick<'o, 'ctx> for Wide<'o, 'ctx> {
    fn pick(condition: Cond<'o, 'ctx>, a: Self, b: Self) -> Self {
        Self::of(condition.pick(a.flat(), b.flat()))
    }
}

impl Neg for Wide<'_, '_> {
    type Output = Self;

    fn neg(self) -> Self {
        Self { value: -self.value, exponent: self.exponent }
    }
}

impl Mul for Wide<'_, '_> {
    type Output = Self;

    fn mul(self, rhs: Self) -> Self {
        Self::of(self.exponent.ops.call("wide_multiply", self.pair(rhs), product))
    }
}

impl Div for Wide<'_, '_> {
    type Output = Self;

    fn div(self, rhs: Self) -> Self {
        Self::of(self.exponent.ops.call("wide_divide", self.pair(rhs), quotient))
    }
}

/// `a b + c d` for finite operands, at a common scale.
pub(super) fn sum_of_products<'o, 'ctx>(
    a: Num<'o, 'ctx>,
    b: Num<'o, 'ctx>,
    c: Num<'o, 'ctx>,
    d: Num<'o, 'ctx>,
) -> Wide<'o, 'ctx> {
    Wide::of(a.ops.call("sum_of_products", [a, b, c, d], products))
}

fn products<'p, 'ctx>(ops: Ops<'p, 'ctx>, factors: [Num<'p, 'ctx>; 4]) -> [Num<'p, 'ctx>; 3] {
    let zero = ops.number(0.0);
    let normal = |x: Num<'p, 'ctx>| {
        let n = x.exponent();
        x.eq(0.0).pick([x, zero], [x.scale(-n), n])
    };
    let [[a, ea], [b, eb], [c, ec], [d, ed]] = factors.map(normal);
    let (first, second) = (two_product(a, b), two_product(c, d));
    let (e1, e2) = (ea + eb, ec + ed);
    // Far below the last bit of the other only the sign of a product matters: keep it in range.
    const FAR: f64 = -300.0;
    let exponent = e1.max(e2);
    let down = |x: Dd<'p, 'ctx>, n: Num<'p, 'ctx>| x.scale((n - exponent).max(ops.number(FAR))).flat();
    let ([h1, l1], [h2, l2]) = (down(first, e1), down(second, e2));
    let both = Wide { value: Dd::sum(&[h1, l1, h2, l2]), exponent };
    let (none1, none2) = (first.hi.eq(0.0), second.hi.eq(0.0));
    let cases = [
        (none1 & none2, Wide::from(first.hi + second.hi)), // with the sign that IEEE 754 gives
        (none1, Wide { value: second, exponent: e2 }),
        (none2, Wide { value: first, exponent: e1 }),
    ];
    super::ops::first(&cases, both).flat()
}
