//! Which pass breaks a program.
//!
//! Of our own passes ([`passes`]) the first after which the program computes something else, and the first
//! application of it that does; of another compiler's dumps ([`dumps`]) the first form that computes
//! something else than the one before. Both show what changed in the text there ([`changes`]).
//!
//! **Invariant:** what is found does not depend on what comes after it: forms and prefixes are judged one by
//! one from the beginning, so a later pass may hide the fault or crash on it.

pub mod changes;
pub mod dumps;
pub mod infinities;
pub mod names;
pub mod noise;
pub mod orders;
pub mod passes;

#[cfg(test)]
mod infinity_tests;
#[cfg(test)]
mod tests;
