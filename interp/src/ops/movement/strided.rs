//! Copies between strided boxes of row-major arrays: what most data movement comes down to.
//!
//! A [`StridedView`] is the offset and strides of a box in a slice. **Invariant:** in a destination, strides
//! are positive and the elements of one index of a dimension all come before those of the next (it is a box
//! of a row-major array, perhaps with gaps); a source may repeat (stride 0) and run backwards.

use smallvec::SmallVec;

use hlo_threads::parallel::pieces;

/// Elements below which a copy stays on the calling thread.
const SEQUENTIAL: usize = 1 << 16;

/// Side of the tiles in which a copy that transposes works: both sides stay in the first-level cache.
const TILE: usize = 32;

/// Steps between elements.
pub(crate) type Strides = SmallVec<[isize; 4]>;

/// The offsets of the elements of a box.
#[derive(Clone, Debug)]
pub(crate) struct StridedView {
    /// The first element.
    pub(crate) offset: usize,
    /// A step for each dimension.
    pub(crate) strides: Strides,
}

impl StridedView {
    /// A whole row-major array.
    pub(crate) fn dense(dims: &[usize]) -> StridedView {
        let mut strides = Strides::from_elem(1, dims.len());
        for i in (1..dims.len()).rev() {
            strides[i - 1] = strides[i] * dims[i] as isize;
        }
        StridedView { offset: 0, strides }
    }
}

/// Copies a box of `dims` elements. Panics if a view reaches outside its slice.
pub(crate) fn copy<T: Copy + Send + Sync>(
    dims: &[usize],
    from: &[T],
    source: &StridedView,
    to: &mut [T],
    target: &StridedView,
) {
    if dims.contains(&0) {
        return;
    }
    let (dims, source_strides, target_strides) = collapse(dims, &source.strides, &target.strides);
    let job = Job { from, dims: &dims, source: &source_strides, target: &target_strides };
    job.run(source.offset as isize, &mut to[target.offset..]);
}

/// The same box with as few dimensions as possible.
fn collapse(dims: &[usize], source: &[isize], target: &[isize]) -> (SmallVec<[usize; 4]>, Strides, Strides) {
    let (mut sizes, mut from, mut to) = (SmallVec::new(), Strides::new(), Strides::new());
    for ((&size, &s), &t) in dims.iter().zip(source).zip(target) {
        if size == 1 {
            continue;
        }
        match (sizes.last_mut(), from.last_mut(), to.last_mut()) {
            (Some(last), Some(from), Some(to)) if *from == s * size as isize && *to == t * size as isize => {
                *last *= size;
                (*from, *to) = (s, t);
            }
            (_, _, _) => {
                sizes.push(size);
                from.push(s);
                to.push(t);
            }
        }
    }
    (sizes, from, to)
}

/// A copy of which the outer dimensions may have been cut off.
struct Job<'a, T> {
    from: &'a [T],
    dims: &'a [usize],
    source: &'a [isize],
    target: &'a [isize],
}

impl<T: Copy + Send + Sync> Job<'_, T> {
    /// Copies from `at` on to the beginning of `to`, on several threads if there is enough.
    fn run(&self, at: isize, to: &mut [T]) {
        let n: usize = self.dims.iter().product();
        if n <= SEQUENTIAL || self.dims.is_empty() {
            return self.block(at, to);
        }
        // Pieces of the outermost dimension; where that is short, the next one is cut.
        let (size, source, target) = (self.dims[0], self.source[0], self.target[0]);
        let piece =
            (SEQUENTIAL * size / n).clamp(1, size).next_multiple_of(if self.transposes() { TILE } else { 1 });
        let span = piece.saturating_mul(target as usize);
        let end = span.saturating_mul(size.div_ceil(piece)).min(to.len());
        let to = &mut to[..end];
        pieces(to, span, 1, &|i, to| {
            let mut dims: SmallVec<[usize; 4]> = self.dims.into();
            dims[0] = piece.min(size - i * piece);
            let at = at + (i * piece) as isize * source;
            if dims[0] == 1 {
                let rest =
                    Job { dims: &dims[1..], source: &self.source[1..], target: &self.target[1..], ..*self };
                rest.run(at, to);
            } else {
                Job { dims: &dims, ..*self }.block(at, to);
            }
        });
    }

    /// The dimension along which the source is contiguous, if that is not the innermost one.
    fn contiguous(&self) -> Option<usize> {
        let inner = *self.source.last()?;
        if inner == 0 || inner == 1 || *self.target.last()? != 1 {
            return None;
        }
        self.source[..self.source.len() - 1].iter().position(|&s| s == 1)
    }

    fn transposes(&self) -> bool {
        self.contiguous() == Some(0)
    }

    /// Copies on this thread.
    fn block(&self, at: isize, to: &mut [T]) {
        let Some(inner) = self.dims.len().checked_sub(1) else {
            to[0] = self.from[at as usize];
            return;
        };
        if let Some(k) = self.contiguous().filter(|_| self.source[inner] > 0) {
            return self.tiles(k, at, to);
        }
        let (n, source, target) = (self.dims[inner], self.source[inner], self.target[inner] as usize);
        walk(&self.dims[..inner], &self.source[..inner], &self.target[..inner], at, |at, start| {
            let to = &mut to[start as usize..];
            let from = &self.from[at as usize..];
            match (source, target) {
                (1, 1) => to[..n].copy_from_slice(&from[..n]),
                (0, 1) => to[..n].fill(from[0]),
                (1, _) => to.iter_mut().step_by(target).zip(&from[..n]).for_each(|(o, &x)| *o = x),
                (2.., _) => {
                    let from = from.iter().step_by(source as usize);
                    to.iter_mut().step_by(target).zip(from).take(n).for_each(|(o, &x)| *o = x);
                }
                (_, _) => {
                    for (i, o) in to.iter_mut().step_by(target).take(n).enumerate() {
                        *o = self.from[(at + i as isize * source) as usize];
                    }
                }
            }
        });
    }

    /// Copies tile by tile of dimension `k`, along which the source is contiguous, and the innermost one,
    /// along which the target is.
    fn tiles(&self, k: usize, at: isize, to: &mut [T]) {
        let inner = self.dims.len() - 1;
        let (n, step) = (self.dims[inner], self.source[inner]);
        let target = self.target[k] as usize;
        let others = |list: &[isize]| -> Strides {
            list[..inner].iter().enumerate().filter(|&(i, _)| i != k).map(|(_, &x)| x).collect()
        };
        let dims: SmallVec<[usize; 4]> =
            self.dims[..inner].iter().enumerate().filter(|&(i, _)| i != k).map(|(_, &d)| d).collect();
        walk(&dims, &others(self.source), &others(self.target), at, |at, start| {
            for first in (0..self.dims[k]).step_by(TILE) {
                let rows = TILE.min(self.dims[k] - first);
                for column in (0..n).step_by(TILE) {
                    let columns = TILE.min(n - column);
                    let at = (at + column as isize * step) as usize + first;
                    for row in 0..rows {
                        let to = &mut to[start as usize + (first + row) * target + column..][..columns];
                        let from = self.from[at + row..].iter().step_by(step as usize);
                        to.iter_mut().zip(from).for_each(|(o, &x)| *o = x);
                    }
                }
            }
        });
    }
}

/// Calls `f` with the source and target positions of each index of a box, the last dimension fastest.
fn walk(dims: &[usize], source: &[isize], target: &[isize], at: isize, mut f: impl FnMut(isize, isize)) {
    let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, dims.len());
    let (mut from, mut to) = (at, 0);
    loop {
        f(from, to);
        let mut d = dims.len();
        loop {
            let Some(next) = d.checked_sub(1) else { return };
            d = next;
            index[d] += 1;
            from += source[d];
            to += target[d];
            if index[d] < dims[d] {
                break;
            }
            from -= source[d] * dims[d] as isize;
            to -= target[d] * dims[d] as isize;
            index[d] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Copies element by element, by the definition.
    fn slow(dims: &[usize], from: &[u32], source: &StridedView, to: &mut [u32], target: &StridedView) {
        let n: usize = dims.iter().product();
        for mut i in 0..n {
            let (mut s, mut t) = (source.offset as isize, target.offset as isize);
            for d in (0..dims.len()).rev() {
                let x = (i % dims[d]) as isize;
                i /= dims[d];
                s += x * source.strides[d];
                t += x * target.strides[d];
            }
            to[t as usize] = from[s as usize];
        }
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            dims in prop::collection::vec(0usize..12, 0..5),
            scale in prop::sample::select(vec![1usize, 5]),
            seed in any::<u64>(),
        ) {
            let dims: Vec<usize> = dims.iter().map(|&d| d * if dims.len() < 4 { scale } else { 1 }).collect();
            // The source: a permuted array in which some dimensions are reversed, strided or repeated.
            let mut bits = seed;
            let mut draw = |n: usize| { bits = hlo::elided::splitmix64(bits); (bits >> 33) as usize % n };
            let mut order: Vec<usize> = (0..dims.len()).collect();
            for i in (1..order.len()).rev() { order.swap(i, draw(i + 1)); }
            let mut source = StridedView { offset: 0, strides: Strides::from_elem(0, dims.len()) };
            let mut size = 1usize;
            for &d in order.iter().rev() {
                match draw(6) {
                    0 => continue,
                    1 => {
                        source.offset += size * dims[d].saturating_sub(1);
                        source.strides[d] = -(size as isize);
                        size *= dims[d].max(1);
                    }
                    2 => {
                        source.strides[d] = 2 * size as isize;
                        size *= 2 * dims[d].max(1);
                    }
                    _ => {
                        source.strides[d] = size as isize;
                        size *= dims[d].max(1);
                    }
                }
            }
            // The target: every step'th of a larger array, from an offset on.
            let outer: Vec<usize> = dims.iter().map(|&d| (d * 2 + 3).min(if scale == 5 { d.max(1) } else { 99 })).collect();
            let mut target = StridedView::dense(&outer);
            for d in 0..dims.len() {
                let step = if 2 * dims[d] < outer[d] { 1 + draw(2) } else { 1 };
                target.offset += draw(outer[d] - (dims[d].max(1) - 1) * step) * target.strides[d] as usize;
                target.strides[d] *= step as isize;
            }
            let from: Vec<u32> = (0..size as u32).collect();
            let n: usize = outer.iter().product();
            let (mut fast, mut expected) = (vec![u32::MAX; n], vec![u32::MAX; n]);
            copy(&dims, &from, &source, &mut fast, &target);
            slow(&dims, &from, &source, &mut expected, &target);
            prop_assert_eq!(fast, expected);
        }
    }
}
