//! Stands for `skinny`, `grouped`, `batched_small` and `outer_product` on machines other than x86-64, whose
//! instructions they use: empty types, whose constructors return `None`.

use hlo::ElementType;
use hlo_library_base::pool::Pool;

use super::operand::{Field, Operand};
use super::product::Extents;
use super::source::Source;
use super::{Call, Dot};

/// As of `skinny`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Skinny {}

impl Skinny {
    pub(super) fn new(_: Field, _: Extents, _: &Operand, _: &Operand) -> Option<Skinny> {
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

/// As of `batched_small`.
#[derive(Clone, Debug)]
pub(super) enum BatchedSmall {}

impl BatchedSmall {
    pub(super) fn new(
        _: Field,
        _: Extents,
        _: &Operand,
        _: &Operand,
        _: ElementType,
    ) -> Option<BatchedSmall> {
        None
    }

    pub(super) fn is_flat(&self) -> bool {
        match *self {}
    }

    pub(super) unsafe fn run(&self, _: &Dot, _: Call<'_>) {
        match *self {}
    }
}

/// As of `outer_product`.
#[derive(Clone, Copy, Debug)]
pub(super) enum OuterProduct {}

impl OuterProduct {
    pub(super) fn new(_: Extents) -> Option<OuterProduct> {
        None
    }

    pub(super) unsafe fn run(&self, _: &dyn Source<f32>, _: &dyn Source<f32>, _: *mut f32, _: &Pool) {
        match *self {}
    }
}
