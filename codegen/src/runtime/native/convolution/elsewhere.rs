//! What machines other than x86-64 have in the place of `slab`, which rests on its instructions: a kind of convolution of which there is none.

use super::{Arrays, Lane, Outer, Types};
use crate::runtime::pool::Pool;

/// As of `slab`.
#[derive(Clone, Debug)]
pub(super) enum Slab {}

impl Slab {
    pub(super) fn new(_: &[Lane], _: &Outer, _: Types) -> Option<Slab> {
        None
    }

    pub(super) fn scratch_bytes(&self) -> usize {
        match *self {}
    }

    pub(super) fn reports(&self) -> bool {
        match *self {}
    }

    pub(super) unsafe fn run(&self, _: Arrays, _: &Pool, _: Option<&(dyn Fn(isize, usize) + Sync)>) {
        match *self {}
    }
}
