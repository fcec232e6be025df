//! The moves, by family. A move looks at a program and proposes edits; whether one makes the program smaller and keeps the failure
//! is found out by trying.
//!
//! **Invariants:** an edit names instructions by id and looks at the program it is given, which may be edited already and
//! have dead code: it does nothing where it does not apply (any more), and says so. Edits may make a program that does not verify;
//! that is found before the oracle sees it.

mod annotations;
mod attributes;
mod bypass;
mod calls;
mod cut;
mod dims;
mod elements;
mod loops;
mod parameters;
mod regions;
mod types;

use super::Candidate;
use super::search::Context;

/// Changes a program; `false` if there was nothing to change.
pub(crate) type Edit = Box<dyn Fn(&mut Candidate) -> bool + Send + Sync>;

/// How the edits of a move are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    /// All of them, halves, quarters, ..., one by one.
    Together,
    /// One by one, each on top of those that worked.
    Singly,
    /// One by one, up to the first that works.
    First,
    /// By bisection: they are in order from the one that takes away most, and where one works the ones behind it mostly do too.
    Bisect,
}

/// A move.
pub(crate) struct Move {
    /// What was done if it worked, for people.
    pub(crate) done: &'static str,
    /// How its edits are tried.
    pub(crate) how: How,
    /// Whether it is planned again after it worked.
    pub(crate) again: bool,
    /// Its edits.
    pub(crate) plan: fn(&Context<'_>) -> Vec<Edit>,
}

/// All moves, in the order in which they are tried.
pub(crate) const MOVES: &[Move] = &[
    Move { done: "annotations dropped", how: How::Together, again: false, plan: annotations::annotations },
    Move { done: "unused code dropped", how: How::Together, again: false, plan: parameters::dead },
    Move { done: "cut off behind the failure", how: How::Bisect, again: false, plan: cut::prefixes },
    Move { done: "cut off before the failure", how: How::Bisect, again: false, plan: cut::suffixes },
    Move { done: "outputs dropped", how: How::Together, again: true, plan: cut::outputs },
    Move { done: "cut to one output", how: How::First, again: true, plan: cut::single_output },
    Move { done: "cut to an inner value", how: How::First, again: true, plan: cut::roots },
    Move {
        done: "producers replaced by parameters",
        how: How::Together,
        again: false,
        plan: cut::recorded_parameters,
    },
    Move { done: "instructions bypassed", how: How::Together, again: false, plan: bypass::operands },
    Move { done: "calls inlined", how: How::Singly, again: true, plan: calls::inline },
    Move { done: "conditionals replaced by a branch", how: How::Singly, again: true, plan: calls::branches },
    Move { done: "loops replaced by one iteration", how: How::Singly, again: true, plan: loops::unrolled },
    Move { done: "loop state dropped", how: How::Singly, again: true, plan: loops::state },
    Move {
        done: "inner values replaced by constants",
        how: How::Together,
        again: false,
        plan: cut::recorded_constants,
    },
    Move { done: "operands of regions dropped", how: How::Singly, again: true, plan: regions::operands },
    Move { done: "regions simplified", how: How::Singly, again: true, plan: regions::simpler },
    Move { done: "parameters merged", how: How::Together, again: false, plan: parameters::merge },
    Move { done: "dimensions shrunk", how: How::Bisect, again: false, plan: dims::shrink_all },
    Move { done: "dimensions shrunk", how: How::Singly, again: true, plan: dims::shrink },
    Move { done: "instructions bypassed", how: How::Singly, again: true, plan: bypass::anything },
    Move { done: "windows and numbers simplified", how: How::Singly, again: true, plan: attributes::simpler },
    Move { done: "dimensions dropped", how: How::Singly, again: true, plan: dims::drop },
    Move { done: "element types simplified", how: How::Singly, again: true, plan: types::simpler },
    Move {
        done: "parameters and constants exchanged",
        how: How::Together,
        again: false,
        plan: parameters::exchange,
    },
    Move { done: "values simplified", how: How::Singly, again: true, plan: elements::arrays },
    Move { done: "values simplified", how: How::Together, again: false, plan: elements::each },
];
