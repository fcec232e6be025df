//! Raw memory as slices, for operations whose chunks write disjoint parts of one array from several threads.

/// A pointer to the elements of an array that several threads may use at once, each its own part.
#[derive(Debug)]
pub struct Shared<T>(*mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<T> {}

// SAFETY: the pointer only becomes references in the unsafe methods below, whose callers answer for races.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// The array at `pointer`.
    pub fn new(pointer: *mut u8) -> Self {
        Self(pointer.cast())
    }

    /// The elements from `offset` on.
    ///
    /// # Safety
    /// `offset` is within the array.
    pub unsafe fn offset(self, offset: usize) -> Self {
        // SAFETY: the caller says that it is within.
        Self(unsafe { self.0.add(offset) })
    }

    /// The pointer.
    pub fn pointer(self) -> *mut T {
        self.0
    }

    /// Elements `offset..offset + n`, to read.
    ///
    /// # Safety
    /// They are elements of the array, initialized, and nothing writes them while the slice lives.
    pub unsafe fn slice<'a>(self, offset: usize, n: usize) -> &'a [T] {
        if n == 0 {
            return &[];
        }
        // SAFETY: as the caller says; the array is aligned for its elements ([`crate::KernelFn`]).
        unsafe { std::slice::from_raw_parts(self.0.add(offset), n) }
    }

    /// Elements `offset..offset + n`, to write.
    ///
    /// # Safety
    /// They are elements of the array, and nothing else accesses them while the slice lives. `T` is a type of
    /// which all bits are values.
    pub unsafe fn slice_mut<'a>(self, offset: usize, n: usize) -> &'a mut [T] {
        if n == 0 {
            return &mut [];
        }
        // SAFETY: as the caller says; the array is aligned for its elements ([`crate::KernelFn`]).
        unsafe { std::slice::from_raw_parts_mut(self.0.add(offset), n) }
    }
}

impl Shared<*mut u8> {
    /// `n` pointers at `at`, set to null.
    ///
    /// # Safety
    /// `at` points at `n` pointers that nothing else accesses while the slice lives; they need not be
    /// initialized.
    pub unsafe fn pointers<'a>(at: *mut u8, n: usize) -> &'a mut [*mut u8] {
        // SAFETY: as the caller says; all bits are values of pointers.
        let pointers = unsafe { std::slice::from_raw_parts_mut(at.cast::<*mut u8>(), n) };
        pointers.fill(std::ptr::null_mut());
        pointers
    }
}

/// Lays out parts of scratch memory, each aligned to 64 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    bytes: u64,
}

impl Layout {
    /// Adds `n` elements of `size` bytes, at the offset that is returned. Saturates: the allocation of an
    /// absurd size fails.
    #[inline]
    pub fn add(&mut self, n: u64, size: u64) -> u64 {
        let at = self.bytes;
        self.bytes = at.saturating_add(n.saturating_mul(size)).saturating_add(63) & !63;
        at
    }

    /// Bytes so far.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Asks for memory that will be read or written; any address.
#[inline(always)]
pub fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching faults nowhere; every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// The same, into the second-level cache.
#[inline(always)]
pub fn prefetch_far(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching faults nowhere; every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Bytes of an array as kernels see it; `None`: more than there are.
pub fn array_bytes(shape: &hlo::ArrayShape) -> Option<u64> {
    let elements = u64::try_from(shape.checked_elements()?).ok()?;
    elements.checked_mul(shape.element_type.storage_bytes() as u64).filter(|&n| n <= i64::MAX as u64)
}
