//! Buffers of the device, and copies through page-locked memory.
//!
//! **Invariant:** host memory that the device reads or writes is page-locked and of a [`Staging`]; it is
//! touched by raw copies alone, and freed after the copies that use it are done.

use std::ffi::c_void;
use std::sync::PoisonError;

use cudarc::driver::sys;

use crate::api::{SUCCESS, Status};
use crate::device::Context;
use crate::error::{Error, Result};
use crate::module::Module;
use crate::stream::{Event, Stream};

/// Bytes of device memory. Freed in the order of the stream that it was allocated on, when it is dropped.
pub struct Buffer {
    stream: Stream,
    address: u64,
    length: u64,
}

impl Buffer {
    /// Address of the first byte, on the device; aligned to 256.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn check(&self, offset: u64, bytes: u64) -> Result<()> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.length => Ok(()),
            Some(_) | None => Err(Error::Range { offset, bytes, length: self.length }),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let context = self.stream.context();
        if context.current().is_ok() {
            // SAFETY: it was allocated and not freed yet. The call returns at once.
            unsafe { (context.api.cuMemFreeAsync)(self.address, self.stream.inner.handle) };
        }
    }
}

/// Bytes of a piece of a copy, at most.
const PIECE_BYTES: usize = 4 << 20;

/// Page-locked memory for the copies of a stream: two pieces, so that one is copied by the host while the
/// device copies the other.
#[derive(Default)]
pub(crate) struct Staging {
    pieces: [Option<Piece>; 2],
    next: usize,
}

struct Piece {
    pointer: *mut c_void,
    bytes: usize,
    /// The device is done with it.
    done: Event,
}

// SAFETY: the pointer is to page-locked memory of the driver that this value owns.
unsafe impl Send for Piece {}

impl Staging {
    /// A piece of at least `bytes` bytes that the device no longer uses.
    fn piece(&mut self, stream: &Stream, bytes: usize) -> Result<&Piece> {
        let context = stream.context();
        self.next = 1 - self.next;
        let slot = &mut self.pieces[self.next];
        if let Some(piece) = slot {
            piece.done.synchronize()?;
        }
        if slot.as_ref().is_none_or(|p| p.bytes < bytes) {
            if let Some(old) = slot.take() {
                // SAFETY: it was allocated by the driver, and the device is done with it.
                unsafe { (context.api.cuMemFreeHost)(old.pointer) };
            }
            let bytes = bytes.next_power_of_two().max(4096);
            let mut pointer = std::ptr::null_mut();
            // SAFETY: the driver writes a pointer.
            let status = unsafe { (context.api.cuMemAllocHost_v2)(&raw mut pointer, bytes) };
            if status == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY as Status {
                return Err(Error::OutOfMemory { bytes: bytes as u64, free: None });
            }
            context.check("cuMemAllocHost", status)?;
            *slot = Some(Piece { pointer, bytes, done: Event::new(context)? });
        }
        slot.as_ref().ok_or(Error::Range { offset: 0, bytes: bytes as u64, length: 0 })
    }

    /// Frees the memory. The device must be done with it.
    pub(crate) fn free(&mut self, context: &Context) {
        for piece in self.pieces.iter_mut().filter_map(Option::take) {
            // SAFETY: it was allocated by the driver; the stream is done.
            unsafe { (context.api.cuMemFreeHost)(piece.pointer) };
        }
    }
}

impl Stream {
    /// Allocates, in the order of the stream; the bytes are anything.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] with how many bytes were asked for and are free.
    pub fn allocate(&self, bytes: u64) -> Result<Buffer> {
        let context = self.context();
        context.current()?;
        let mut address = 0;
        let size = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
        // SAFETY: the driver writes an address. It is freed by `Buffer::drop`.
        let status = unsafe { (context.api.cuMemAllocAsync)(&raw mut address, size, self.inner.handle) };
        if status == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY as Status {
            let (mut free, mut total) = (0, 0);
            // SAFETY: the driver writes integers.
            let known = unsafe { (context.api.cuMemGetInfo_v2)(&raw mut free, &raw mut total) } == SUCCESS;
            return Err(Error::OutOfMemory { bytes, free: known.then_some(free as u64) });
        }
        context.check("cuMemAllocAsync", status)?;
        Ok(Buffer { stream: self.clone(), address, length: bytes })
    }

    /// Allocates and writes. The bytes may be changed when this returns.
    pub fn upload(&self, bytes: &[u8]) -> Result<Buffer> {
        let buffer = self.allocate(bytes.len() as u64)?;
        self.write(&buffer, 0, bytes)?;
        Ok(buffer)
    }

    /// All bytes of a buffer, when everything before is done.
    pub fn download(&self, buffer: &Buffer) -> Result<Vec<u8>> {
        let length = usize::try_from(buffer.len()).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        self.read(buffer, 0, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes bytes from an offset on, after everything that was put on the stream before. The bytes may be
    /// changed when this returns.
    pub fn write(&self, buffer: &Buffer, offset: u64, bytes: &[u8]) -> Result<()> {
        buffer.check(offset, bytes.len() as u64)?;
        self.write_at(buffer.address + offset, bytes)
    }

    /// Writes a variable of a module from its first byte on, after everything that was put on the stream
    /// before.
    pub fn write_variable(&self, module: &Module, name: &str, bytes: &[u8]) -> Result<()> {
        let (address, length) = module.variable(name)?;
        if bytes.len() as u64 > length {
            return Err(Error::Range { offset: 0, bytes: bytes.len() as u64, length });
        }
        self.write_at(address, bytes)
    }

    /// Writes bytes to a range that is the device's.
    fn write_at(&self, mut to: u64, bytes: &[u8]) -> Result<()> {
        let context = self.context();
        context.current()?;
        let mut staging = self.inner.staging.lock().unwrap_or_else(PoisonError::into_inner);
        for part in bytes.chunks(PIECE_BYTES) {
            let piece = staging.piece(self, part.len())?;
            // SAFETY: the piece has space for the part, is not the device's at the moment, and is this
            // thread's by the lock.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), piece.pointer.cast(), part.len()) };
            // SAFETY: the range is inside of a buffer or a variable; the piece lives until its event is done.
            let status = unsafe {
                (context.api.cuMemcpyHtoDAsync_v2)(to, piece.pointer, part.len(), self.inner.handle)
            };
            context.check("cuMemcpyHtoDAsync", status)?;
            piece.done.record(self)?;
            to += part.len() as u64;
        }
        Ok(())
    }

    /// Reads bytes from an offset on, when everything that was put on the stream before is done.
    ///
    /// # Errors
    /// As [`Stream::synchronize`]; the range.
    pub fn read(&self, buffer: &Buffer, offset: u64, bytes: &mut [u8]) -> Result<()> {
        buffer.check(offset, bytes.len() as u64)?;
        let context = self.context();
        context.current()?;
        let mut staging = self.inner.staging.lock().unwrap_or_else(PoisonError::into_inner);
        let mut from = buffer.address + offset;
        // The part that the device copies while the one before is copied by the host.
        let mut pending: Option<(usize, &mut [u8])> = None;
        for part in bytes.chunks_mut(PIECE_BYTES) {
            let piece = staging.piece(self, part.len())?;
            // SAFETY: the range is inside of the buffer; the piece is large enough, and lives until its event
            // is done.
            let status = unsafe {
                (context.api.cuMemcpyDtoHAsync_v2)(piece.pointer, from, part.len(), self.inner.handle)
            };
            context.check("cuMemcpyDtoHAsync", status)?;
            piece.done.record(self)?;
            from += part.len() as u64;
            let this = staging.next;
            if let Some((slot, part)) = pending.replace((this, part)) {
                staging.take(slot, part)?;
            }
        }
        if let Some((slot, part)) = pending {
            staging.take(slot, part)?;
        }
        Ok(())
    }

    /// Copies bytes between buffers of the device, or inside of one where the ranges do not overlap.
    pub fn copy(&self, to: (&Buffer, u64), from: (&Buffer, u64), bytes: u64) -> Result<()> {
        to.0.check(to.1, bytes)?;
        from.0.check(from.1, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let context = self.context();
        context.current()?;
        // SAFETY: both ranges are inside of their buffers.
        let status = unsafe {
            let (to, from) = (to.0.address + to.1, from.0.address + from.1);
            (context.api.cuMemcpyDtoDAsync_v2)(to, from, bytes as usize, self.inner.handle)
        };
        context.check("cuMemcpyDtoDAsync", status)
    }

    /// Fills bytes of a buffer.
    pub fn fill(&self, buffer: &Buffer, offset: u64, bytes: u64, byte: u8) -> Result<()> {
        buffer.check(offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let context = self.context();
        context.current()?;
        // SAFETY: the range is inside of the buffer.
        let status = unsafe {
            (context.api.cuMemsetD8Async)(buffer.address + offset, byte, bytes as usize, self.inner.handle)
        };
        context.check("cuMemsetD8Async", status)
    }
}

impl Staging {
    /// Waits for a piece and copies it out.
    fn take(&self, slot: usize, part: &mut [u8]) -> Result<()> {
        let Some(piece) = &self.pieces[slot] else { return Ok(()) };
        piece.done.synchronize()?;
        // SAFETY: the piece has as many bytes, which the device wrote; the event says that it is done with
        // it.
        unsafe { std::ptr::copy_nonoverlapping(piece.pointer.cast(), part.as_mut_ptr(), part.len()) };
        Ok(())
    }
}
