//! The folder of compiled programs that engines keep between processes (`--cache`).

use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use hlo_client::{DiskCache, Error, Key};

use hlo_system::exit::Failure;

static CACHE: OnceLock<DiskCache> = OnceLock::new();

/// Why the last program that could not be kept was not.
static ERROR: Mutex<Option<Error>> = Mutex::new(None);

/// Keeps compiled programs in a folder, and loads them from there. Later calls change nothing. Errors: the
/// folder cannot be used.
pub fn set_cache(folder: &Path) -> Result<(), Failure> {
    let cache = DiskCache::open(folder, None)?;
    let _ = CACHE.set(cache);
    Ok(())
}

/// The folder, if there is one.
pub fn cache() -> Option<&'static DiskCache> {
    CACHE.get()
}

/// Keeps a compiled program. A folder that cannot be written to costs time, not results: [`cache_error`] has
/// the error.
pub(super) fn keep(cache: &DiskCache, key: Key, bytes: &[u8]) {
    if let Err(error) = cache.put(key, bytes) {
        *ERROR.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

/// Why the last program that could not be kept was not: a full disk, a folder that is gone.
pub fn cache_error() -> Option<Error> {
    ERROR.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
