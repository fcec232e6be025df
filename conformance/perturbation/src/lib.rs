//! How far roundings, and what is off in operands, move what is computed: perturbation theory in numbers
//! alone, without programs and their values; and what a number may be then, as limits and intervals.
//!
//! **Invariant:** a bound may be too wide, never too narrow: what is computed here rounds as well, and makes up
//! for it.

#![forbid(unsafe_code)]

pub mod balls;
pub mod disc;
pub mod factors;
pub mod interval;
pub mod inverse;
pub mod limits;
pub mod steps;

/// Of an error: nothing is known.
pub const UNKNOWN: f64 = f64::INFINITY;

/// The relative error of `n` roundings: `n u / (1 - n u)` (Higham's gamma).
pub fn gamma(n: f64, unit: f64) -> f64 {
    let x = n * unit;
    if x < 0.25 {
        x / (1.0 - x)
    } else if x < 500.0 {
        exponential(x) - 1.0
    } else {
        f64::INFINITY
    }
}

/// At least the exponential.
pub fn exponential(x: f64) -> f64 {
    fn of<T: hlo_arithmetic::scalar::Elementary>(x: T) -> T {
        x.exponential()
    }
    of(x) * (1.0 + 4.0 * f64::EPSILON)
}
