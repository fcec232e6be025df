//! The moves, by family. A move looks at a program and proposes edits; whether one makes the program smaller
//! and keeps the failure is found out by trying.
//!
//! **Invariants:** an edit names instructions by id and looks at the program it is given, which may be edited
//! already and have dead code: it does nothing where it does not apply (any more), and says so. Edits may
//! make a program that does not verify; that is found before the oracle sees it.

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
mod signatures;
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
    /// By bisection: they are in order from the one that takes away most, and where one works the ones behind
    /// it mostly do too.
    Bisect,
}

/// A move.
pub(crate) struct Move {
    /// What was done if it worked, for people.
    pub done: &'static str,
    /// How its edits are tried.
    pub how: How,
    /// Whether it is planned again after it worked.
    pub again: bool,
    /// Its edits.
    pub plan: fn(&Context<'_>) -> Vec<Edit>,
}

type Plan = fn(&Context<'_>) -> Vec<Edit>;

/// A move that is planned once a round.
const fn once(done: &'static str, how: How, plan: Plan) -> Move {
    Move { done, how, again: false, plan }
}

/// A move that is planned again as long as it works.
const fn again(done: &'static str, how: How, plan: Plan) -> Move {
    Move { done, how, again: true, plan }
}

/// All moves, in the order in which they are tried.
pub(crate) const MOVES: &[Move] = &[
    once("annotations dropped", How::First, annotations::harmless),
    once("unused code dropped", How::Together, parameters::dead),
    again("run on fewer devices", How::First, annotations::devices),
    once("cut off behind the failure", How::Bisect, cut::prefixes),
    once("cut off before the failure", How::Bisect, cut::suffixes),
    again("outputs dropped", How::Together, cut::outputs),
    again("cut to one output", How::First, cut::single_output),
    again("cut to an inner value", How::First, cut::roots),
    once("annotations dropped", How::Together, annotations::annotations),
    once("producers replaced by parameters", How::Together, cut::recorded_parameters),
    once("instructions bypassed", How::Together, bypass::operands),
    again("calls inlined", How::Singly, calls::inline),
    again("conditionals replaced by a branch", How::Singly, calls::branches),
    again("loops replaced by one iteration", How::Singly, loops::unrolled),
    again("loop state dropped", How::Singly, loops::state),
    again("tuples made smaller", How::Singly, signatures::elements),
    once("inner values replaced by constants", How::Together, cut::recorded_constants),
    again("operands dropped", How::Singly, regions::operands),
    once("regions simplified", How::Singly, regions::simpler),
    once("parameters merged", How::Together, parameters::merge),
    once("dimensions shrunk", How::Bisect, dims::shrink_all),
    again("dimensions shrunk", How::Singly, dims::shrink),
    again("instructions bypassed", How::Singly, bypass::anything),
    again("windows and numbers simplified", How::Singly, attributes::simpler),
    again("dimensions dropped", How::Singly, dims::drop),
    again("element types simplified", How::Singly, types::simpler),
    once("parameters and constants exchanged", How::Together, parameters::exchange),
    again("values simplified", How::Singly, elements::arrays),
    once("values simplified", How::Together, elements::each),
];
