//! Folders that are written under a temporary name next to the final one, and renamed when they are complete.
//!
//! **Invariant:** the temporary name says which process writes, so that what is left of one that ended is
//! known and removed.

use std::fs;
use std::io;
use std::path::Path;

use tempfile::TempDir;

/// A new temporary folder below `parent`, which is made if it is not there. `prefix`: what temporary names of
/// its kind begin with; folders of that kind whose processes ended are removed.
pub fn begin(parent: &Path, prefix: &str) -> io::Result<TempDir> {
    fs::create_dir_all(parent)?;
    remove_left_over(parent, prefix);
    tempfile::Builder::new().prefix(&format!("{prefix}{}-", std::process::id())).tempdir_in(parent)
}

/// Removes what processes left that were ended while they wrote: folders whose names are `prefix`, the number
/// of the process and `-`.
pub fn remove_left_over(parent: &Path, prefix: &str) {
    let processes = Path::new("/proc");
    if !processes.join("self").exists() {
        return;
    }
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|n| n.strip_prefix(prefix)?.split_once('-'));
        let owner = owner.and_then(|(process, _)| process.parse::<u32>().ok());
        if owner.is_some_and(|process| !processes.join(process.to_string()).exists()) {
            // Another one may be at it.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Temporary folders are for their owner alone; what is complete is for everybody whom the surrounding folder
/// is for.
pub fn open_to_readers(folder: &Path, parent: &Path) {
    if let Ok(meta) = fs::metadata(parent) {
        // Not worth failing for.
        let _ = fs::set_permissions(folder, meta.permissions());
    }
}
