//! Bytes that a caller reads and then frees.

use std::sync::Arc;

use crate::api::structs::BytesDeleter;
use crate::handles::{self, object};
use crate::opaque;

/// Bytes that live until the caller frees them.
#[derive(Debug)]
pub struct SerializedBytes(Box<[u8]>);

object!(SerializedBytes, "serialized object");

extern "C" fn delete(bytes: *mut opaque::SerializedBytes) {
    let _ = handles::destroy(bytes);
}

/// Bytes as they are handed over.
#[derive(Debug)]
pub struct Given {
    /// Their address.
    pub start: *const std::ffi::c_char,
    /// Their number.
    pub size: usize,
    /// The object to free.
    pub object: *mut opaque::SerializedBytes,
    /// Its deleter.
    pub deleter: Option<BytesDeleter>,
}

/// Hands bytes over.
pub fn give(bytes: Vec<u8>) -> Given {
    let bytes = Arc::new(SerializedBytes(bytes.into()));
    let (start, size) = (bytes.0.as_ptr().cast(), bytes.0.len());
    Given { start, size, object: handles::give(bytes), deleter: Some(delete) }
}
