//! Sizes from which on programs are compiled and run in other ways: what is in no cache is stored past them
//! (non-temporal) and asked for early, what takes long is divided among threads.
//!
//! **Invariant:** they change how fast a program runs, not one bit of what is exact. So a configuration can
//! divide them, and small programs, of which many can be tried, go the ways of large ones.

use crate::configuration;

/// A number of bytes, elements, operations or nanoseconds.
pub trait Size {
    /// So many times less, but not none.
    fn divided(self, by: u32) -> Self;
}

macro_rules! sizes {
    ($($t:ty)*) => {$(
        impl Size for $t {
            fn divided(self, by: u32) -> Self {
                (self / <$t>::from(by)).max(1)
            }
        }
    )*};
}
sizes!(i64 u64);

impl Size for usize {
    fn divided(self, by: u32) -> Self {
        (self / by as usize).max(1)
    }
}

/// A size from which on something is done another way, in this thread's [`configuration`].
pub fn from<T: Size>(size: T) -> T {
    match configuration::current().size_divisor().get() {
        1 => size,
        by => size.divided(by),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_becomes_none() {
        assert_eq!((1i64 << 24).divided(1 << 12), 1 << 12);
        assert_eq!(7u64.divided(8), 1);
        assert_eq!(7usize.divided(2), 3);
    }
}
