//! Stands for `pairs` and `direct` on machines other than x86-64, whose instructions they use: empty types,
//! whose constructors return `None`.

use hlo::ElementType;
use hlo_library_base::pool::Pool;

use super::{Arrays, Call, Conversion, Convolution, Lane, Outer, Part, Side, Types};

/// As of `direct`.
#[derive(Clone, Debug)]
pub(super) enum Direct {}

impl Direct {
    pub(super) fn new(_: &[Lane], _: &Outer, _: Types) -> Option<Direct> {
        None
    }

    pub(super) fn scratch_bytes(&self) -> usize {
        match *self {}
    }

    pub(super) fn ahead_bytes(&self) -> usize {
        match *self {}
    }

    pub(super) unsafe fn prepare(&self, _: *const u8, _: *mut f32, _: &Pool) {
        match *self {}
    }

    pub(super) fn reports(&self) -> bool {
        match *self {}
    }

    pub(super) unsafe fn run(&self, _: Arrays, _: &Pool, _: Option<&(dyn Fn(isize, usize) + Sync)>) {
        match *self {}
    }
}

/// As of `pairs`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pairs {}

impl Pairs {
    pub(super) fn new(_: [&Side; 2], _: &[Lane], _: &Outer) -> Option<Pairs> {
        None
    }

    pub(super) fn widened(self, _: ElementType) -> Option<Conversion> {
        match self {}
    }

    pub(super) fn part(self, _: &[Lane], _: &Outer) -> Part {
        match self {}
    }

    pub(super) unsafe fn run(self, _: &Convolution, _: Call<'_>) {
        match self {}
    }
}
