//! The folder of compiled programs that engines keep between processes (`--cache`).

use std::path::Path;
use std::sync::OnceLock;

use hlo_client::DiskCache;

use hlo_system::exit::Failure;

static CACHE: OnceLock<DiskCache> = OnceLock::new();

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
