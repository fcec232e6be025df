//! Formulas of `f64` scalars as expressions: what device functions are written in.
//!
//! **Invariant:** an error of LLVM is kept and reported by [`formula`]; until then the expression goes on
//! with some value, so that operators need no `?`.

use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

use crate::{Emit, Error, FloatPredicate, IntPredicate, Prim, Result, Value};

/// Where expressions are built.
#[derive(Clone, Copy)]
pub(super) struct Ops<'o, 'ctx> {
    pub(super) e: Emit<'o, 'ctx>,
    failed: &'o RefCell<Option<Error>>,
}

/// An `f64`.
#[derive(Clone, Copy)]
pub(super) struct Num<'o, 'ctx> {
    pub(super) ops: Ops<'o, 'ctx>,
    pub(super) value: Value<'ctx>,
}

/// A truth value.
#[derive(Clone, Copy)]
pub(super) struct Cond<'o, 'ctx> {
    ops: Ops<'o, 'ctx>,
    value: Value<'ctx>,
}

/// The body of a device function.
pub(super) type Body<'ctx, const N: usize, const M: usize> =
    for<'p> fn(Ops<'p, 'ctx>, [Num<'p, 'ctx>; N]) -> [Num<'p, 'ctx>; M];

/// Emits an expression of arguments.
pub(super) fn formula<'ctx, const N: usize, const M: usize>(
    e: &Emit<'_, 'ctx>,
    arguments: [Value<'ctx>; N],
    body: Body<'ctx, N, M>,
) -> Result<[Value<'ctx>; M]> {
    let failed = RefCell::new(None);
    let ops = Ops { e: e.scalar(), failed: &failed };
    let results = body(ops, arguments.map(|value| Num { ops, value })).map(|x| x.value);
    match failed.take() {
        Some(error) => Err(error),
        None => Ok(results),
    }
}

/// [`formula`] as a function of the module, which is emitted once.
pub(super) fn function<'ctx, const N: usize, const M: usize>(
    e: &Emit<'_, 'ctx>,
    name: &str,
    arguments: [Value<'ctx>; N],
    body: Body<'ctx, N, M>,
) -> Result<[Value<'ctx>; M]> {
    let results = e.scalar().outlined(&format!("hlo_{name}"), M, &arguments, |e, parameters| {
        let parameters = parameters.try_into().expect("invariant: as many as there are arguments");
        Ok(formula(e, parameters, body)?.to_vec())
    })?;
    Ok(results.try_into().expect("invariant: as many as were asked for"))
}

impl<'o, 'ctx> Ops<'o, 'ctx> {
    /// A constant.
    pub(super) fn number(self, x: f64) -> Num<'o, 'ctx> {
        Num { ops: self, value: self.e.f64(x) }
    }

    /// NaN.
    pub(super) fn nan(self) -> Num<'o, 'ctx> {
        self.number(f64::NAN)
    }

    /// Infinity.
    pub(super) fn infinity(self) -> Num<'o, 'ctx> {
        self.number(f64::INFINITY)
    }

    /// A call of a function of the module.
    pub(super) fn call<const N: usize, const M: usize>(
        self,
        name: &str,
        arguments: [Num<'o, 'ctx>; N],
        body: Body<'ctx, N, M>,
    ) -> [Num<'o, 'ctx>; M] {
        match function(&self.e, name, arguments.map(|x| x.value), body) {
            Ok(results) => results.map(|value| Num { ops: self, value }),
            Err(error) => {
                self.fail(error);
                [self.nan(); M]
            }
        }
    }

    /// What code in the other form gives.
    pub(super) fn emit(self, f: impl FnOnce(&Emit<'o, 'ctx>) -> Result<Value<'ctx>>) -> Num<'o, 'ctx> {
        let value = self.kept(f(&self.e), self.e.f64(0.0));
        Num { ops: self, value }
    }

    /// The same of several values.
    pub(super) fn emit_all<const M: usize>(
        self,
        f: impl FnOnce(&Emit<'o, 'ctx>) -> Result<[Value<'ctx>; M]>,
    ) -> [Num<'o, 'ctx>; M] {
        match f(&self.e) {
            Ok(values) => values.map(|value| Num { ops: self, value }),
            Err(error) => {
                self.fail(error);
                [self.nan(); M]
            }
        }
    }

    /// One of two expressions, of which one alone is evaluated.
    pub(super) fn branch<const M: usize>(
        self,
        condition: Cond<'o, 'ctx>,
        then: impl FnOnce() -> [Num<'o, 'ctx>; M],
        otherwise: impl FnOnce() -> [Num<'o, 'ctx>; M],
    ) -> [Num<'o, 'ctx>; M] {
        let values = self.e.if_else(
            condition.value,
            || Ok(then().map(|x| x.value).to_vec()),
            || Ok(otherwise().map(|x| x.value).to_vec()),
        );
        match values {
            Ok(values) => {
                let values: [Value<'ctx>; M] =
                    values.try_into().expect("invariant: as many as both pieces give");
                values.map(|value| Num { ops: self, value })
            }
            Err(error) => {
                self.fail(error);
                [self.nan(); M]
            }
        }
    }

    /// Repeats a step, which says whether it is to be done again, and gives the last state.
    pub(super) fn repeat(
        self,
        start: Num<'o, 'ctx>,
        step: impl FnOnce(Num<'o, 'ctx>) -> (Cond<'o, 'ctx>, Num<'o, 'ctx>),
    ) -> Num<'o, 'ctx> {
        let last = self.e.do_while(&[start.value], |state| {
            let (again, next) = step(Num { ops: self, value: state[0] });
            Ok((again.value, vec![next.value]))
        });
        let value = self.kept(last.map(|state| state[0]), start.value);
        Num { ops: self, value }
    }

    fn fail(self, error: Error) {
        self.failed.borrow_mut().get_or_insert(error);
    }

    fn kept(self, result: Result<Value<'ctx>>, otherwise: Value<'ctx>) -> Value<'ctx> {
        result.unwrap_or_else(|error| {
            self.fail(error);
            otherwise
        })
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $emit:ident;)*) => {$(
        impl<'o, 'ctx> $trait for Num<'o, 'ctx> {
            type Output = Self;

            fn $method(self, rhs: Self) -> Self {
                self.ops.emit(|e| e.$emit(self.value, rhs.value))
            }
        }

        impl<'o, 'ctx> $trait<f64> for Num<'o, 'ctx> {
            type Output = Self;

            fn $method(self, rhs: f64) -> Self {
                $trait::$method(self, self.ops.number(rhs))
            }
        }
    )*};
}

operators! {
    Add add fadd;
    Sub sub fsub;
    Mul mul fmul;
    Div div fdiv;
}

impl Neg for Num<'_, '_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.ops.emit(|e| e.fneg(self.value))
    }
}

/// A number or a constant.
pub(super) trait Operand<'o, 'ctx> {
    /// As a number.
    fn number(self, ops: Ops<'o, 'ctx>) -> Num<'o, 'ctx>;
}

impl<'o, 'ctx> Operand<'o, 'ctx> for Num<'o, 'ctx> {
    fn number(self, _: Ops<'o, 'ctx>) -> Num<'o, 'ctx> {
        self
    }
}

impl<'o, 'ctx> Operand<'o, 'ctx> for f64 {
    fn number(self, ops: Ops<'o, 'ctx>) -> Num<'o, 'ctx> {
        ops.number(self)
    }
}

impl<'o, 'ctx> Num<'o, 'ctx> {
    fn intrinsic(self, name: &str, rest: &[Self]) -> Self {
        let values: Vec<_> = std::iter::once(self).chain(rest.iter().copied()).map(|x| x.value).collect();
        self.ops.emit(|e| e.intrinsic(name, &[values[0].get_type()], &values))
    }

    /// `self * a + b`, rounded once.
    pub(super) fn fma(self, a: impl Operand<'o, 'ctx>, b: impl Operand<'o, 'ctx>) -> Self {
        self.intrinsic("llvm.fma", &[a.number(self.ops), b.number(self.ops)])
    }

    /// The magnitude.
    pub(super) fn abs(self) -> Self {
        self.intrinsic("llvm.fabs", &[])
    }

    /// The square root.
    pub(super) fn sqrt(self) -> Self {
        self.intrinsic("llvm.sqrt", &[])
    }

    /// Rounded to an integer, ties to even.
    pub(super) fn rint(self) -> Self {
        self.intrinsic("llvm.roundeven", &[])
    }

    /// Rounded down.
    pub(super) fn floor(self) -> Self {
        self.intrinsic("llvm.floor", &[])
    }

    /// Rounded towards 0.
    pub(super) fn trunc(self) -> Self {
        self.intrinsic("llvm.trunc", &[])
    }

    /// The magnitude with the sign of another number.
    pub(super) fn copysign(self, sign: impl Operand<'o, 'ctx>) -> Self {
        self.intrinsic("llvm.copysign", &[sign.number(self.ops)])
    }

    /// 0 with its sign.
    pub(super) fn zero(self) -> Self {
        self.ops.number(0.0).copysign(self)
    }

    fn compare(self, predicate: FloatPredicate, rhs: impl Operand<'o, 'ctx>) -> Cond<'o, 'ctx> {
        let ops = self.ops;
        let value = ops.e.fcmp(predicate, self.value, rhs.number(ops).value);
        Cond { ops, value: ops.kept(value, ops.e.bool(false)) }
    }

    /// Equal.
    pub(super) fn eq(self, rhs: impl Operand<'o, 'ctx>) -> Cond<'o, 'ctx> {
        self.compare(FloatPredicate::OEQ, rhs)
    }

    /// Less.
    pub(super) fn lt(self, rhs: impl Operand<'o, 'ctx>) -> Cond<'o, 'ctx> {
        self.compare(FloatPredicate::OLT, rhs)
    }

    /// Not greater.
    pub(super) fn le(self, rhs: impl Operand<'o, 'ctx>) -> Cond<'o, 'ctx> {
        self.compare(FloatPredicate::OLE, rhs)
    }

    /// Greater.
    pub(super) fn gt(self, rhs: impl Operand<'o, 'ctx>) -> Cond<'o, 'ctx> {
        self.compare(FloatPredicate::OGT, rhs)
    }

    /// Not less.
    pub(super) fn ge(self, rhs: impl Operand<'o, 'ctx>) -> Cond<'o, 'ctx> {
        self.compare(FloatPredicate::OGE, rhs)
    }

    /// Not a number.
    pub(super) fn is_nan(self) -> Cond<'o, 'ctx> {
        self.compare(FloatPredicate::UNO, self)
    }

    /// Neither infinite nor NaN.
    pub(super) fn is_finite(self) -> Cond<'o, 'ctx> {
        self.abs().lt(f64::INFINITY)
    }

    /// Of either sign.
    pub(super) fn is_infinite(self) -> Cond<'o, 'ctx> {
        self.abs().eq(f64::INFINITY)
    }

    /// Whether the sign bit is set.
    pub(super) fn is_negative(self) -> Cond<'o, 'ctx> {
        let ops = self.ops;
        let bits = ops.e.bitcast(self.value, Prim::I64);
        let value = bits.and_then(|bits| ops.e.icmp(IntPredicate::SLT, bits, ops.e.i64(0)));
        Cond { ops, value: ops.kept(value, ops.e.bool(false)) }
    }

    /// At least and at most.
    pub(super) fn clamp(self, low: f64, high: f64) -> Self {
        let above = self.lt(low).pick(self.ops.number(low), self);
        above.gt(high).pick(self.ops.number(high), above)
    }

    /// The greater one, of numbers.
    pub(super) fn max(self, rhs: Self) -> Self {
        self.lt(rhs).pick(rhs, self)
    }

    /// `e` such that `2^e <= |x| < 2^(e+1)`, for a finite `x` other than 0; of others anything.
    pub(super) fn exponent(self) -> Self {
        self.ops.call("exponent", [self], exponent)[0]
    }

    /// `x * 2^n` for an integer, rounding at most in its last step.
    pub(super) fn scale(self, n: Self) -> Self {
        self.ops.call("scale", [self, n], scale)[0]
    }
}

fn exponent<'p, 'ctx>(ops: Ops<'p, 'ctx>, [x]: [Num<'p, 'ctx>; 1]) -> [Num<'p, 'ctx>; 1] {
    let n = ops.emit(|e| {
        let magnitude = e.and(e.bitcast(x.value, Prim::I64)?, e.i64(i64::MAX))?;
        let field = e.lshr(magnitude, e.i64(52))?;
        let zeros = e.intrinsic("llvm.ctlz", &[e.ty(Prim::I64)], &[magnitude, e.bool(false)])?;
        let subnormal = e.icmp(IntPredicate::EQ, field, e.i64(0))?;
        let n = e.select(subnormal, e.sub(e.i64(-1011), zeros)?, e.sub(field, e.i64(1023))?)?;
        e.sitofp(e.trunc(n, Prim::I32)?, Prim::F64)
    });
    [n]
}

fn scale<'p, 'ctx>(ops: Ops<'p, 'ctx>, [mut x, n]: [Num<'p, 'ctx>; 2]) -> [Num<'p, 'ctx>; 1] {
    const STEP: f64 = 1000.0;
    let mut left = n;
    // No number needs more steps, from the smallest to the largest.
    for _ in 0..3 {
        let step = left.clamp(-STEP, STEP);
        x = x * ops.emit(|e| super::super::functions::power_of_two(e, step.value));
        left = left - step;
    }
    [x]
}

impl<'o, 'ctx> Cond<'o, 'ctx> {
    /// `a` where it holds, else `b`.
    pub(super) fn pick<T: Pick<'o, 'ctx>>(self, a: T, b: T) -> T {
        T::pick(self, a, b)
    }
}

impl BitAnd for Cond<'_, '_> {
    type Output = Self;

    fn bitand(self, rhs: Self) -> Self {
        let value = self.ops.kept(self.ops.e.and(self.value, rhs.value), self.value);
        Self { value, ..self }
    }
}

impl BitOr for Cond<'_, '_> {
    type Output = Self;

    fn bitor(self, rhs: Self) -> Self {
        let value = self.ops.kept(self.ops.e.or(self.value, rhs.value), self.value);
        Self { value, ..self }
    }
}

impl Not for Cond<'_, '_> {
    type Output = Self;

    fn not(self) -> Self {
        let value = self.ops.kept(self.ops.e.not(self.value), self.value);
        Self { value, ..self }
    }
}

/// What can be selected.
pub(super) trait Pick<'o, 'ctx>: Copy {
    /// `a` where the condition holds, else `b`.
    fn pick(condition: Cond<'o, 'ctx>, a: Self, b: Self) -> Self;
}

impl<'o, 'ctx> Pick<'o, 'ctx> for Num<'o, 'ctx> {
    fn pick(condition: Cond<'o, 'ctx>, a: Self, b: Self) -> Self {
        condition.ops.emit(|e| e.select(condition.value, a.value, b.value))
    }
}

impl<'o, 'ctx, T: Pick<'o, 'ctx>, const N: usize> Pick<'o, 'ctx> for [T; N] {
    fn pick(condition: Cond<'o, 'ctx>, a: Self, b: Self) -> Self {
        std::array::from_fn(|i| T::pick(condition, a[i], b[i]))
    }
}

/// The value of the first case that holds.
pub(super) fn first<'o, 'ctx, T: Pick<'o, 'ctx>>(cases: &[(Cond<'o, 'ctx>, T)], otherwise: T) -> T {
    cases.iter().rev().fold(otherwise, |rest, &(condition, value)| condition.pick(value, rest))
}
