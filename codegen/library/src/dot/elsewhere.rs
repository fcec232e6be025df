//! What machines other than x86-64 have in the place of `few`, `grouped`, `little` and `outer`, which rest on its instructions: kinds of products of which there are none, so
//! that whoever asks for one gets none and what it would do is nobody's code.

use hlo::ElementType;

use super::operand::{Field, Operand};
use super::product::Extents;
use super::source::Source;
use super::{Call, Dot};
use crate::pool::Pool;

/// As of `few`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Few {}

impl Few {
    pub(super) fn new(_: Field, _: Extents, _: &Operand, _: &Operand) -> Option<Few> {
        None
    }

    pub(super) fn scratch(&self) -> usize {
        match *self {}
    }
}

/// As of `grouped`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Grouped {}

impl Grouped {
    pub(super) fn new(_: Field, _: Extents, _: &Operand, _: &Operand, _: bool) -> Option<Grouped> {
        None
    }

    pub(super) fn scratch(&self) -> usize {
        match *self {}
    }

    pub(super) fn may_be_ahead(&self) -> bool {
        match *self {}
    }

    pub(super) fn prepared_bytes(&self) -> usize {
        match *self {}
    }

    pub(super) unsafe fn prepare(&self, _: &Operand, _: *const u8, _: *mut u8, _: &Pool) {
        match *self {}
    }

    pub(super) unsafe fn run(&self, _: &Dot, _: Call<'_>) -> bool {
        match *self {}
    }
}

/// As of `little`.
#[derive(Clone, Debug)]
pub(super) enum Little {}

impl Little {
    pub(super) fn new(_: Field, _: Extents, _: &Operand, _: &Operand, _: ElementType) -> Option<Little> {
        None
    }

    pub(super) fn is_flat(&self) -> bool {
        match *self {}
    }

    pub(super) unsafe fn run(&self, _: &Dot, _: Call<'_>) {
        match *self {}
    }
}

/// As of `outer`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outer {}

impl Outer {
    pub(super) fn new(_: Extents) -> Option<Outer> {
        None
    }

    pub(super) unsafe fn run(&self, _: &dyn Source<f32>, _: &dyn Source<f32>, _: *mut f32, _: &Pool) {
        match *self {}
    }
}
