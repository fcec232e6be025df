//! How an index along several dimensions taken as one becomes an offset in memory.

use smallvec::SmallVec;

/// Dimensions taken as one, row-major: sizes and strides (in elements), the slowest first, collapsed where
/// they can be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Steps {
    dims: SmallVec<[(usize, isize); 4]>,
    size: usize,
}

impl Steps {
    /// Of these dimensions. Their product was checked to fit.
    pub(crate) fn new(dims: impl IntoIterator<Item = (usize, isize)>) -> Self {
        let mut all: SmallVec<[(usize, isize); 4]> = SmallVec::new();
        let mut size = 1;
        for (n, stride) in dims {
            size *= n;
            if n == 1 {
                continue;
            }
            match all.last_mut() {
                Some((m, outer)) if *outer == stride.wrapping_mul(n as isize) => {
                    (*m, *outer) = (*m * n, stride)
                }
                Some(_) | None => all.push((n, stride)),
            }
        }
        Self { dims: all, size }
    }

    /// The same with a dimension before all others.
    pub(crate) fn before(&self, dim: (usize, isize)) -> Steps {
        Steps::new(std::iter::once(dim).chain(self.dims.iter().copied()))
    }

    /// Number of indices.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The stride, if there is one for all.
    pub(crate) fn single(&self) -> Option<isize> {
        match self.dims[..] {
            [] => Some(1),
            [(_, stride)] => Some(stride),
            [_, _, ..] => None,
        }
    }

    /// Size and stride of the fastest dimension.
    pub(crate) fn fastest(&self) -> (usize, isize) {
        self.dims.last().copied().unwrap_or((1, 1))
    }

    /// Whether all offsets are multiples of this.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn all_multiples_of(&self, n: usize) -> bool {
        self.dims.iter().all(|(_, stride)| stride % n as isize == 0)
    }

    /// The offset of an index.
    #[inline]
    pub(crate) fn offset(&self, index: usize) -> isize {
        match self.dims[..] {
            [] => 0,
            [(_, stride)] => index as isize * stride,
            [_, _, ..] => {
                let (mut rest, mut at) = (index, 0);
                for &(n, stride) in self.dims.iter().rev() {
                    at += (rest % n) as isize * stride;
                    rest /= n;
                }
                at
            }
        }
    }

    /// Calls `f(position, offset, stride, length)` for runs of constant stride that make up the indices from
    /// `first` on; `position` is the distance from `first`.
    #[inline]
    pub(crate) fn runs(&self, first: usize, count: usize, mut f: impl FnMut(usize, isize, isize, usize)) {
        let (n, stride) = self.fastest();
        let mut position = 0;
        while position < count {
            let at = first + position;
            let length = if self.dims.len() <= 1 { count } else { (n - at % n).min(count - position) };
            f(position, self.offset(at), stride, length);
            position += length;
        }
    }

    /// The offsets of indices from `first` on.
    #[inline]
    pub(crate) fn fill(&self, first: usize, out: &mut [isize]) {
        self.runs(first, out.len(), |position, offset, stride, length| {
            for i in 0..length {
                out[position + i] = offset + i as isize * stride;
            }
        });
    }
}
