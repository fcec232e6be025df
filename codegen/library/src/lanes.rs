//! Applied computations as kernels over lanes: arrays of a few hundred elements that operations fill and
//! read.

use hlo::{ComputationId, ElementType, InstrId, Module};
use hlo_library_base::Unsupported;
use hlo_library_base::memory::{Layout, Shared};
use hlo_library_base::portable::Function;
use smallvec::SmallVec;

use super::width::with_width;

/// Elements that a kernel computes at a time.
pub(super) const LANES: usize = 256;

/// An applied computation of scalars: bytes of its parameters and then of its results.
#[derive(Clone, Debug)]
pub(super) struct Applied {
    /// The computation.
    pub(super) computation: ComputationId,
    bytes: SmallVec<[usize; 8]>,
}

impl Applied {
    /// A computation whose parameters and results must have these types; otherwise it is not supported.
    pub(super) fn new(
        module: &Module,
        id: InstrId,
        computation: ComputationId,
        parameters: impl Iterator<Item = ElementType>,
        results: impl Iterator<Item = ElementType>,
    ) -> Result<Applied, Unsupported> {
        let program = module.program_shape(computation);
        let scalar = |s: &hlo::Shape| s.as_array().filter(|a| a.dims.is_empty()).map(|a| a.element_type);
        let all = program.and_then(|p| {
            let given: Option<Vec<_>> = p.parameters.iter().map(scalar).collect();
            let made: Option<Vec<_>> = p.result.leaves().into_iter().map(scalar).collect();
            Some((given?, made?))
        });
        let Some((given, made)) = all else {
            return Err(Unsupported::new(module, id, "with a computation of other things than scalars"));
        };
        if !parameters.eq(given.iter().copied()) || !results.eq(made.iter().copied()) {
            return Err(Unsupported::new(module, id, "with a computation of other types than the operands'"));
        }
        let bytes = given.iter().chain(&made).map(|ty| ty.storage_bytes()).collect();
        Ok(Applied { computation, bytes })
    }

    /// Bytes of memory for the lanes of one task.
    pub(super) fn scratch_bytes(&self) -> u64 {
        let mut layout = Layout::default();
        for &bytes in &self.bytes {
            layout.add(LANES as u64, bytes as u64);
        }
        layout.bytes()
    }

    /// The lanes of a task, in memory of [`Applied::scratch_bytes`].
    pub(super) fn lanes<'a>(&'a self, kernel: &'a Function, scratch: *mut u8) -> Lanes<'a> {
        let mut layout = Layout::default();
        // SAFETY: the memory is as large as the layout.
        let pointer =
            |&bytes: &usize| unsafe { scratch.add(layout.add(LANES as u64, bytes as u64) as usize) };
        let pointers = self.bytes.iter().map(pointer).collect();
        Lanes { applied: self, kernel, pointers }
    }
}

/// Lanes of one task.
pub(super) struct Lanes<'a> {
    applied: &'a Applied,
    kernel: &'a Function,
    pointers: SmallVec<[*mut u8; 8]>,
}

impl Lanes<'_> {
    /// Column `i` of parameters and results.
    pub(super) fn column(&self, i: usize) -> *mut u8 {
        self.pointers[i]
    }

    /// Fills column `i` with elements of an array, one a lane.
    ///
    /// # Safety
    /// There are at most [`LANES`] indices, all within the array, which is of the column's type.
    pub(super) unsafe fn take(&mut self, i: usize, array: *const u8, indices: impl Iterator<Item = usize>) {
        with_width!(self.applied.bytes[i], T => {
            let (lanes, array) = (self.pointers[i].cast::<T>(), array.cast::<T>());
            for (lane, at) in indices.enumerate() {
                // SAFETY: as the caller says.
                unsafe { *lanes.add(lane) = *array.add(at) };
            }
        });
    }

    /// Writes column `i` to elements of an array, lane by lane.
    ///
    /// # Safety
    /// There are at most [`LANES`] indices, all within the array, which is of the column's type; nobody else
    /// uses those elements.
    pub(super) unsafe fn put(&self, i: usize, array: Shared<u8>, indices: impl Iterator<Item = usize>) {
        with_width!(self.applied.bytes[i], T => {
            let (lanes, array) = (self.pointers[i].cast::<T>(), array.pointer().cast::<T>());
            for (lane, at) in indices.enumerate() {
                // SAFETY: as the caller says.
                unsafe { *array.add(at) = *lanes.add(lane) };
            }
        });
    }

    /// Fills lanes of column `i` from `lane` on with elements of an array from `first` on; the steps are
    /// between lanes and between elements.
    ///
    /// # Safety
    /// The lanes are among the first [`LANES`]; the indices are in the array, which is of the column's type.
    pub(super) unsafe fn take_run(
        &mut self,
        i: usize,
        lane: usize,
        array: *const u8,
        first: usize,
        (count, steps): (usize, [usize; 2]),
    ) {
        with_width!(self.applied.bytes[i], T => {
            // SAFETY: as the caller says.
            unsafe {
                let (lanes, array) = (self.pointers[i].cast::<T>().add(lane), array.cast::<T>().add(first));
                if steps == [1, 1] {
                    lanes.copy_from_nonoverlapping(array, count);
                } else {
                    for n in 0..count {
                        *lanes.add(n * steps[0]) = *array.add(n * steps[1]);
                    }
                }
            }
        });
    }

    /// Applies the computation to the first `n` lanes.
    pub(super) fn apply(&mut self, n: usize) {
        // SAFETY: the kernel was compiled for the computation, whose parameters and results the columns are.
        unsafe { self.kernel.call(self.pointers.as_ptr(), 0, n as u64) };
    }

    /// Applies the computation to these lanes.
    pub(super) fn apply_to(&mut self, lanes: std::ops::Range<usize>) {
        assert!(lanes.end <= LANES);
        let column = |(pointer, bytes): (&*mut u8, &usize)| pointer.wrapping_add(lanes.start * bytes);
        let columns: SmallVec<[*mut u8; 8]> =
            self.pointers.iter().zip(&self.applied.bytes).map(column).collect();
        // SAFETY: as above; the columns have these lanes.
        unsafe { self.kernel.call(columns.as_ptr(), 0, lanes.len() as u64) };
    }

    /// Exchanges two columns of the same type.
    pub(super) fn exchange(&mut self, i: usize, k: usize) {
        debug_assert_eq!(self.applied.bytes[i], self.applied.bytes[k]);
        self.pointers.swap(i, k);
    }

    /// Copies lanes of column `from` to column `to`, which is of the same type.
    pub(super) fn copy(&mut self, from: usize, to: usize, lanes: std::ops::Range<usize>) {
        assert!(lanes.end <= LANES && self.applied.bytes[from] == self.applied.bytes[to]);
        let size = self.applied.bytes[from];
        // SAFETY: columns do not overlap and have these lanes.
        unsafe {
            let from = self.pointers[from].add(lanes.start * size).cast_const();
            self.pointers[to].add(lanes.start * size).copy_from_nonoverlapping(from, lanes.len() * size);
        }
    }
}
