//! Stands for `quick` on machines other than x86-64, whose instructions it uses: an empty type, whose
//! constructor returns `None`.

use std::marker::PhantomData;

/// As of `quick`.
pub(super) trait Word: Copy + Ord + Default + Send + Sync {
    fn of(key: u64) -> Self;
}

macro_rules! words {
    ($($t:ty),*) => {$(
        impl Word for $t {
            fn of(key: u64) -> Self {
                key as $t
            }
        }
    )*};
}
words!(u16, u32, u64);

/// As of `quick`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quick<W>(std::convert::Infallible, PhantomData<W>);

/// As of `quick`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Splitters<W, const CLASSES: usize>(std::convert::Infallible, PhantomData<W>);

impl<W: Word> Quick<W> {
    pub(super) fn here() -> Option<Self> {
        None
    }

    pub(super) fn sort(self, _: &mut [W]) {
        match self.0 {}
    }

    pub(super) fn split<const CLASSES: usize>(self, _: &mut [W]) -> Splitters<W, CLASSES> {
        match self.0 {}
    }

    pub(super) fn count<const CLASSES: usize>(
        self,
        _: &Splitters<W, CLASSES>,
        _: &[W],
        _: &mut [usize; CLASSES],
    ) {
        match self.0 {}
    }

    pub(super) unsafe fn distribute<const CLASSES: usize>(
        self,
        _: &Splitters<W, CLASSES>,
        _: &[W],
        _: *mut W,
        _: &mut [usize; CLASSES],
    ) {
        match self.0 {}
    }
}
