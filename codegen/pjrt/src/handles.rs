//! Objects as callers hold them.
//!
//! A caller holds a number that looks like a pointer; a table for each kind says which object it is.
//! **Invariant:** a number is never given twice, so what was destroyed is known to be, whatever was made
//! since, and no call, however wrong, touches freed memory. Errors and memories are the exception: the C API
//! has callers read their first field, so their number is where they lie, and may come back once they were
//! destroyed.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::error::{Failure, Result};

/// A kind of object.
pub trait Object: Send + Sync + Sized + 'static {
    /// Its name in messages.
    const WHAT: &'static str;
    /// Whether callers read its fields.
    const IS_READ: bool = false;
    /// The type of the object that callers' pointers point at.
    type Opaque: Opaque<Object = Self>;

    /// All that live.
    fn table() -> &'static Table<Self>;
}

/// What pointers of callers point at, by their type.
pub trait Opaque: Sized {
    /// The object that such a pointer stands for.
    type Object: Object<Opaque = Self>;
}

/// All objects of a kind that live.
#[derive(Debug)]
pub struct Table<T>(RwLock<FxHashMap<usize, Arc<T>>>);

/// An object as a number; in memory the same as a pointer.
#[derive(Debug)]
#[repr(transparent)]
pub struct Handle<T>(usize, PhantomData<fn() -> T>);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Handle<T> {}

/// Numbers are as far apart as pointers would be.
const STEP: usize = 16;

static NEXT: AtomicUsize = AtomicUsize::new(1 << 16);

impl<T> Table<T> {
    /// Of no object.
    pub const fn new() -> Self {
        Self(RwLock::new(FxHashMap::with_hasher(FxBuildHasher)))
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Object> Handle<T> {
    /// Makes an object known.
    pub fn new(object: impl Into<Arc<T>>) -> Self {
        let object = object.into();
        let number = match T::IS_READ {
            true => Arc::as_ptr(&object).expose_provenance(),
            false => NEXT.fetch_add(STEP, Ordering::Relaxed),
        };
        T::table().0.write().unwrap_or_else(PoisonError::into_inner).insert(number, object);
        Self(number, PhantomData)
    }

    /// As a caller holds it.
    pub fn pointer(self) -> *mut T::Opaque {
        ptr::with_exposed_provenance_mut(self.0)
    }

    /// Forgets it.
    pub fn destroy(self) {
        let object = T::table().0.write().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        // Outside of the lock: what it holds may have objects of its own.
        drop(object);
    }
}

/// Makes an object known, as a caller holds it.
pub fn give<O: Opaque>(object: impl Into<Arc<O::Object>>) -> *mut O {
    Handle::<O::Object>::new(object).pointer()
}

/// The object that a caller means.
pub fn get<O: Opaque>(pointer: *mut O) -> Result<Arc<O::Object>> {
    let number = pointer.addr();
    let found = O::Object::table().0.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned();
    found.ok_or_else(|| {
        let problem = if number == 0 { "is null" } else { "does not exist: it was destroyed, or never made" };
        Failure::invalid(format!("the {} {problem}", O::Object::WHAT))
    })
}

/// Forgets the object that a caller means; null means none.
pub fn destroy<O: Opaque>(pointer: *mut O) -> Result<()> {
    if pointer.is_null() {
        return Ok(());
    }
    get(pointer)?;
    Handle::<O::Object>(pointer.addr(), PhantomData).destroy();
    Ok(())
}

/// Objects as an array of pointers for a caller.
pub fn as_pointers<T: Object>(handles: &[Handle<T>]) -> *const *mut T::Opaque {
    handles.as_ptr().cast()
}

/// Declares a kind of object.
macro_rules! object {
    ($ty:ident, $what:literal $(, is_read: $is_read:literal)?) => {
        impl $crate::handles::Opaque for $crate::opaque::$ty {
            type Object = $ty;
        }

        impl $crate::handles::Object for $ty {
            type Opaque = $crate::opaque::$ty;
            const WHAT: &'static str = $what;
            $(const IS_READ: bool = $is_read;)?

            fn table() -> &'static $crate::handles::Table<Self> {
                static TABLE: $crate::handles::Table<$ty> = $crate::handles::Table::new();
                &TABLE
            }
        }
    };
}
pub(crate) use object;
