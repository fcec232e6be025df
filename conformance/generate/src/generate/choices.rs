//! Decisions out of bytes.
//!
//! **Invariant:** a list of bytes gives one list of decisions, and once the bytes have run out every decision
//! is the first of its possibilities, which is the simplest: fewer bytes make a simpler program, which is how
//! shrinking works.

use arbitrary::Unstructured;

/// The source of decisions.
pub struct Choices<'a>(Unstructured<'a>);

impl<'a> Choices<'a> {
    /// Choices that these bytes make.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    /// Whether all bytes are used up.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A number in `low..=high`; `low` if the range is empty.
    pub fn int(&mut self, low: i64, high: i64) -> i64 {
        if low >= high {
            return low;
        }
        self.0.int_in_range(low..=high).unwrap_or(low)
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n <= 1 {
            return 0;
        }
        self.0.int_in_range(0..=n - 1).unwrap_or(0)
    }

    /// True in `n` of 256 cases.
    pub(crate) fn chance(&mut self, n: u8) -> bool {
        // A byte that is not there counts as 0, which must mean no.
        self.0.arbitrary::<u8>().unwrap_or(0) > 255 - n
    }

    /// One of some.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Any 32 bits.
    pub fn bits(&mut self) -> u32 {
        self.0.arbitrary().unwrap_or(0)
    }
}
