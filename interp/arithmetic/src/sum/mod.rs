//! Exact sums of floats.
//!
//! [`Long`] is the long accumulator that is always right; [`fast`] has the quick sums that come with a proven
//! error bound; [`Rounded`] is a type that a sum is rounded into, once. The kernels in [`crate::kernels`] put
//! them together: compute quickly, ask [`fast::settle`] whether the bound decides the rounding, use the long
//! accumulator if not.

pub mod fast;
mod long;
#[cfg(test)]
pub(crate) mod reference;
mod rounded;
#[cfg(test)]
pub(crate) mod tests;

pub use fast::Term;
pub use long::Long;
pub use rounded::Rounded;

/// How sums of floats round. Sums of integers wrap and have one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accumulate {
    /// The exact sum of the exact products, rounded once into the result type: the order of terms does not
    /// matter.
    #[default]
    Exact,
    /// Term by term in the stated order, rounding after each operation.
    Region,
}
