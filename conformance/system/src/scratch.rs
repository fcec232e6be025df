//! Temporary folders of runs of other programs: the module, the inputs and the results that these read and
//! write.
//!
//! All are below one folder of this process, `hlo-run-XXXXXX`, that is there as long as any of them. It holds
//! a file that this process has locked: the kernel gives up the lock when the process dies, however it does.
//! **Invariants:** a folder whose file is locked is somebody's, whoever asks, from whatever container; one
//! whose file is not is removed, by the supervisor of a process that was started in it ([`crate::process`])
//! or by the next program that needs one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tempfile::{Builder, TempDir};

/// The prefix of the folder of a process.
const PREFIX: &str = "hlo-run-";
/// The file in it that is locked.
const LOCK: &str = ".lock";

/// The folder of this process.
#[derive(Debug)]
pub struct Root {
    folder: TempDir,
    /// Locked as long as it is open.
    _lock: File,
}

/// The folder of one run. It goes when this does.
#[derive(Debug)]
pub struct Scratch {
    // Dropped first.
    folder: TempDir,
    root: Arc<Root>,
}

/// That of this process, if there is one at the moment.
static ROOT: Mutex<Weak<Root>> = Mutex::new(Weak::new());

impl Root {
    /// The one of this process, made if there is none. Errors: it cannot be made.
    pub fn get() -> io::Result<Arc<Root>> {
        let mut current = ROOT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = current.upgrade() {
            return Ok(root);
        }
        let root = Arc::new(Root::create(&std::env::temp_dir())?);
        *current = Arc::downgrade(&root);
        Ok(root)
    }

    fn create(parent: &Path) -> io::Result<Root> {
        sweep(parent);
        /// Somebody who sweeps takes a folder away before its file is locked, and never twice in a row.
        const MAX_TRIES: usize = 16;
        for _ in 0..MAX_TRIES {
            let folder = Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            let path = folder.path().join(LOCK);
            let lock = match File::create_new(&path) {
                Ok(lock) => lock,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
            };
            // Where nothing can be locked nothing is swept, either.
            let _ = lock.lock();
            if path.is_file() {
                return Ok(Root { folder, _lock: lock });
            }
        }
        Err(io::Error::other("its temporary folders are removed again and again"))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Scratch {
    /// A new empty folder. Errors: it cannot be made.
    pub fn new() -> io::Result<Self> {
        let root = Root::get()?;
        let folder = Builder::new().prefix("").tempdir_in(root.path())?;
        Ok(Self { folder, root })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of this process.
    pub fn root(&self) -> &Arc<Root> {
        &self.root
    }

    /// Whether it takes a file of a few thousand bytes. Where it does not, whoever had to write one is not to
    /// blame.
    pub fn check(&self) -> io::Result<()> {
        let path = self.path().join(".check");
        let written = fs::write(&path, [1; 8 << 10]);
        let removed = fs::remove_file(&path);
        written.and(removed)
    }
}

/// Removes what processes have left that are gone.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        // Not what a link leads to.
        if is_ours && entry.file_type().is_ok_and(|t| t.is_dir()) {
            remove_if_dead(&entry.path());
        }
    }
}

/// The minimum age of a folder that was abandoned before its file was made.
const ABANDONED_AGE: Duration = Duration::from_secs(60 * 60);

/// Removes the folder of a process that is gone. Whether it is.
fn remove_if_dead(root: &Path) -> bool {
    let lock = match OpenOptions::new().write(true).open(root.join(LOCK)) {
        Ok(lock) => lock,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let age = fs::metadata(root).and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
            if age.is_some_and(|age| age > ABANDONED_AGE) {
                // Somebody else may be at it.
                let _ = fs::remove_dir_all(root);
            }
            return false;
        }
        // Another user's.
        Err(_) => return false,
    };
    match lock.try_lock() {
        Ok(()) => {
            let _ = fs::remove_dir_all(root);
            true
        }
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

/// Removes the folder of a process that is about to be gone: the kernel closes its files one after the other.
pub(crate) fn remove_of_dead(root: &Path) {
    let is_ours = root.file_name().and_then(|n| n.to_str()).is_some_and(|name| name.starts_with(PREFIX));
    let start = Instant::now();
    while is_ours && root.exists() && start.elapsed() < Duration::from_secs(2) {
        remove_if_dead(root);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Removes what terminated processes left next to a folder.
pub(crate) fn sweep_beside(root: &Path) {
    root.parent().into_iter().for_each(sweep);
}

/// The parent of temporary folders, for messages.
pub fn parent() -> PathBuf {
    std::env::temp_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_locked_stays() {
        let parent = tempfile::tempdir().unwrap();
        let ours = Root::create(parent.path()).unwrap();
        let dead = parent.path().join("hlo-run-dead");
        let new = parent.path().join("hlo-run-new");
        let other = parent.path().join("other");
        for folder in [&dead, &new, &other] {
            fs::create_dir(folder).unwrap();
        }
        for folder in [&dead, &other] {
            fs::write(folder.join(LOCK), "").unwrap();
        }
        std::os::unix::fs::symlink(&other, parent.path().join("hlo-run-link")).unwrap();
        sweep(parent.path());
        let there = [ours.path(), &*dead, &*new, &*other].map(Path::exists);
        assert_eq!(there, [true, false, true, true]);
        let path = ours.path().to_owned();
        drop(ours);
        assert!(!path.exists());
    }

    #[test]
    fn folders_of_runs_share_one_of_the_process() {
        let (a, b) = (Scratch::new().unwrap(), Scratch::new().unwrap());
        assert_eq!(a.root().path(), b.root().path());
        assert_ne!(a.path(), b.path());
        a.check().unwrap();
        let path = a.path().to_owned();
        drop(a);
        assert!(!path.exists() && b.path().exists());
    }
}
