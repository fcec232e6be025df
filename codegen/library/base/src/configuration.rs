//! The configuration that code is compiled and executed for: instruction sets, microarchitecture, sizes.
//!
//! It is an option of compiling and of loading, so that two configurations can live in one process. In
//! between it belongs to the calling thread ([`current`]): the innermost loops of library calls depend on it,
//! and threads of a [`Pool`](crate::pool::Pool) inherit it with the work that they are given.
//!
//! **Invariants:** it changes how fast a program runs, not one bit of what it computes. A program is loaded
//! and executed under one configuration: operands that are packed when it is loaded are read as they were
//! packed.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::isa::{Features, Isa};
use crate::tuning::{self, Tuning};

/// A configuration. The default is this machine's: all its instruction sets, its microarchitecture, sizes as
/// they are.
#[derive(Clone, Copy, Debug)]
pub struct Configuration(&'static Resolved);

/// What is asked for, and what that means on this machine.
#[derive(Debug)]
struct Resolved {
    max_isa: Option<Isa>,
    size_divisor: NonZeroU32,
    features: Features,
    tuning: Tuning,
}

impl Configuration {
    /// With at most this instruction set and those before it, as if the machine had no more (a machine that
    /// has less keeps what it has; other machines than x86-64 have no such choice); tuned for this
    /// microarchitecture instead of the machine's own; with all sizes of [`crate::sizes`] divided by
    /// `size_divisor`.
    ///
    /// Configurations are never freed; equal ones are one.
    pub fn new(max_isa: Option<Isa>, tuning: Option<Tuning>, size_divisor: NonZeroU32) -> Self {
        static ALL: Mutex<Vec<&'static Resolved>> = Mutex::new(Vec::new());
        let features = Features::of_this_machine(max_isa);
        let tuning = tuning.unwrap_or_else(|| tuning::of_this_machine(features));
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |r: &&&Resolved| {
            (r.max_isa, r.size_divisor, r.tuning.name) == (max_isa, size_divisor, tuning.name)
        };
        if let Some(known) = all.iter().find(known) {
            return Self(known);
        }
        let made: &'static Resolved =
            Box::leak(Box::new(Resolved { max_isa, size_divisor, features, tuning }));
        all.push(made);
        Self(made)
    }

    /// The same on all machines of this architecture: of its instruction sets those that each has, tuned for a
    /// machine that has no more.
    pub fn common(size_divisor: NonZeroU32) -> Self {
        Self::new(Some(Isa::ALL[0]), Some(tuning::COMMON), size_divisor)
    }

    /// The instruction sets that it is limited to.
    pub fn max_isa(self) -> Option<Isa> {
        self.0.max_isa
    }

    /// The instruction sets that may be used.
    pub fn features(self) -> Features {
        self.0.features
    }

    /// The microarchitecture that code is tuned for.
    pub fn tuning(self) -> &'static Tuning {
        &self.0.tuning
    }

    /// What sizes are divided by.
    pub fn size_divisor(self) -> NonZeroU32 {
        self.0.size_divisor
    }

    /// Runs `work` under this configuration.
    pub fn with<R>(self, work: impl FnOnce() -> R) -> R {
        struct Restore(Option<Configuration>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _restore = Restore(CURRENT.replace(Some(self)));
        work()
    }
}

impl Default for Configuration {
    fn default() -> Self {
        static MACHINE: OnceLock<Configuration> = OnceLock::new();
        *MACHINE.get_or_init(|| Self::new(None, None, NonZeroU32::MIN))
    }
}

impl PartialEq for Configuration {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Configuration {}

thread_local! {
    static CURRENT: Cell<Option<Configuration>> = const { Cell::new(None) };
}

/// The configuration of this thread: of the [`Configuration::with`] that it is in, or this machine's.
#[inline]
pub fn current() -> Configuration {
    CURRENT.get().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pool;
    use crate::sizes;

    fn divided(by: u32) -> Configuration {
        Configuration::new(Some(Isa::Avx2), tuning::by_name("avx2"), NonZeroU32::new(by).unwrap())
    }

    #[test]
    fn two_in_one_process() {
        let pools = [Pool::new(3), Pool::new(2)];
        std::thread::scope(|scope| {
            for (pool, by) in pools.iter().zip([2, 8]) {
                scope.spawn(move || {
                    for _ in 0..100 {
                        divided(by).with(|| {
                            pool.run(64, &|_| {
                                assert_eq!(current(), divided(by));
                                assert_eq!(sizes::from(64u64), 64 / u64::from(by));
                                assert!(!Features::here().avx512);
                                assert_eq!(tuning::here().name, "avx2");
                            });
                        });
                        // The pool's threads keep nothing of it.
                        pool.run(64, &|_| assert_eq!(current(), Configuration::default()));
                    }
                });
            }
        });
    }

    #[test]
    fn it_ends_with_what_ran_under_it() {
        let inner = || {
            assert_eq!(current(), divided(3));
            divided(5).with(|| assert_eq!(sizes::from(10u64), 2));
            assert_eq!(current(), divided(3));
            std::panic::resume_unwind(Box::new(()));
        };
        assert!(std::panic::catch_unwind(|| divided(3).with(inner)).is_err());
        assert_eq!(current(), Configuration::default());
    }
}
