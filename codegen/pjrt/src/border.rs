//! The border to C: how calls come in, and how what callers point at is read and written.
//!
//! A call is copied into a struct of this version ([`enter`]), of which fields that an older caller does not
//! have are zero, and what a handler leaves in it is copied back as far as the caller's goes. Objects are
//! numbers that look like pointers ([`crate::handles`]), so a handler meets foreign memory only where a
//! caller hands over an array, a string or a buffer.
//!
//! **Invariants:** no panic crosses the border; a null where something is needed, a size that is no size and
//! an object that was destroyed are errors. What cannot be checked, and is trusted: a pointer that is not
//! null points at as many elements as the number beside it says, for as long as the C API promises.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::api::structs::Struct;
use crate::error::{Code, Error, Failure, Result};
use crate::opaque;

/// Sizes of structs beyond this are no sizes.
const STRUCT_SIZE_LIMIT_BYTES: usize = 1 << 16;

/// Bytes of what every struct begins with: its size and its extensions.
const PREFIX_BYTES: usize = 16;

/// Runs the handler of a function of the API. The error that it ends with, or null.
///
/// # Safety
/// `args` is null, or points at a struct that begins with its size in bytes, of which the first fields are
/// those of `A`.
pub(crate) unsafe fn enter<A: Struct>(
    args: *mut c_void,
    function: &'static str,
    handler: fn(&mut A) -> Result<()>,
) -> *mut opaque::Error {
    let run = || {
        // SAFETY: as this function's.
        let (mut own, size) = unsafe { read_struct::<A>(args) }?;
        let outcome = handler(&mut own);
        // SAFETY: the caller's struct has `size` bytes, and so has ours, which is at least as large.
        unsafe { ptr::copy_nonoverlapping((&raw const own).cast::<u8>(), args.cast::<u8>(), size) };
        outcome
    };
    answer(function, run)
}

/// Runs what answers a function of the API. The error that it ends with, or null.
pub(crate) fn answer(function: &'static str, run: impl FnOnce() -> Result<()>) -> *mut opaque::Error {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => ptr::null_mut(),
        Ok(Err(failure)) => Error::give(failure),
        Err(panic) => {
            let panicked = || {
                Error::give(Failure::internal(format!(
                    "{function} panicked: {}",
                    hlo_client::panic_message(&*panic).unwrap_or("no message")
                )))
            };
            catch_unwind(AssertUnwindSafe(panicked)).unwrap_or(ptr::null_mut())
        }
    }
}

/// A struct that a caller points at, and how many bytes of it the caller has.
///
/// # Safety
/// As [`enter`].
unsafe fn read_struct<A: Struct>(from: *const c_void) -> Result<(A, usize)> {
    if from.is_null() {
        return Err(Failure::invalid(format!("{} is null", A::NAME)));
    }
    // SAFETY: every struct of the API begins with its size.
    let size = unsafe { from.cast::<usize>().read_unaligned() };
    if !(PREFIX_BYTES..=STRUCT_SIZE_LIMIT_BYTES).contains(&size) {
        return Err(Failure::invalid(format!("{} says that it has {size} bytes", A::NAME)));
    }
    let size = size.min(size_of::<A>());
    let mut own = MaybeUninit::<A>::zeroed();
    // SAFETY: both have at least `size` bytes; ours is not the caller's.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), own.as_mut_ptr().cast::<u8>(), size) };
    // SAFETY: any bytes are a value of such a struct (`Struct`).
    Ok((unsafe { own.assume_init() }, size))
}

/// A struct that a field points at.
pub(crate) fn pointed<A: Struct>(from: *const A) -> Result<A> {
    // SAFETY: the module's contract: what is not null is such a struct.
    unsafe { read_struct(from.cast()) }.map(|read| read.0)
}

/// The same of a field that may be null, of a struct whose fields have been the same in every version, and
/// whose size callers leave as their memory had it.
pub(crate) fn optional_without_size<A: Struct>(from: *const A) -> Result<Option<A>> {
    if from.is_null() {
        return Ok(None);
    }
    // SAFETY: the module's contract: what is not null is such a struct, whose fields have been the same in
    // every version.
    Ok(Some(unsafe { from.read_unaligned() }))
}

/// Writes the fields of a struct that a field points at.
pub(crate) fn write_back<A: Struct>(to: *mut A, change: impl FnOnce(&mut A)) -> Result<()> {
    // SAFETY: the module's contract.
    let (mut own, size) = unsafe { read_struct::<A>(to.cast()) }?;
    change(&mut own);
    // SAFETY: both have at least `size` bytes.
    unsafe { ptr::copy_nonoverlapping((&raw const own).cast::<u8>(), to.cast::<u8>(), size) };
    Ok(())
}

/// The elements that a caller points at. `T` is a number or a pointer, of which all bytes are values.
pub(crate) fn elements<T: Plain>(from: *const T, count: usize, what: &str) -> Result<Vec<T>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    check(from.cast(), count, size_of::<T>(), what)?;
    // SAFETY: the module's contract: there are `count` elements; they need not be aligned.
    Ok((0..count).map(|n| unsafe { from.add(n).read_unaligned() }).collect())
}

/// The bytes that a caller points at, for as long as the call lasts.
pub(crate) fn bytes<'a>(from: *const c_char, count: usize, what: &str) -> Result<&'a [u8]> {
    if count == 0 {
        return Ok(&[]);
    }
    check(from.cast(), count, 1, what)?;
    // SAFETY: the module's contract: there are `count` bytes, and nothing writes to them during the call.
    Ok(unsafe { std::slice::from_raw_parts(from.cast(), count) })
}

/// The text that a caller points at.
pub(crate) fn text(from: *const c_char, count: usize, what: &str) -> Result<String> {
    let bytes = bytes(from, count, what)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| Failure::invalid(format!("{what} is not UTF-8")))
}

/// Writes elements to where a caller wants them.
pub(crate) fn write<T: Plain>(to: *mut T, values: &[T], what: &str) -> Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    check(to.cast_const().cast(), values.len(), size_of::<T>(), what)?;
    // SAFETY: the module's contract: there is space for as many; the values are ours, so they do not overlap.
    unsafe { ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), to.cast::<u8>(), size_of_val(values)) };
    Ok(())
}

fn check(pointer: *const c_void, count: usize, element_bytes: usize, what: &str) -> Result<()> {
    if pointer.is_null() {
        return Err(Failure::invalid(format!("{what}: null, but {count} elements")));
    }
    match count.checked_mul(element_bytes) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(()),
        Some(_) | None => Err(Failure::new(Code::InvalidArgument, format!("{what}: {count} elements"))),
    }
}

/// Numbers and pointers.
///
/// # Safety
/// Any bytes are a value.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: any bytes are a number.
unsafe impl Plain for u8 {}
// SAFETY: any bytes are a number.
unsafe impl Plain for i32 {}
// SAFETY: any bytes are a number.
unsafe impl Plain for i64 {}
// SAFETY: any bytes are a number.
unsafe impl Plain for usize {}
// SAFETY: any bytes are a pointer; reading it is no use of it.
unsafe impl<T> Plain for *const T {}
// SAFETY: any bytes are a pointer; reading it is no use of it.
unsafe impl<T> Plain for *mut T {}
