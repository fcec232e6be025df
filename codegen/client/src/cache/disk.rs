//! Compiled programs in a folder, shared by processes.
//!
//! A file a program, named by its key. **Invariants:** a file is complete or absent (written under another
//! name, then renamed); nothing is loaded that another user may have written, since it is machine code; what
//! is read is checked (`artifact`), and a file that is damaged is removed. Of processes that request the
//! same program at once, one compiles it under a file lock. The lock ends with its process, and waiting for
//! it has a time limit.

use std::fs::{self, File, FileTimes, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::Key;
use crate::artifact;
use crate::error::{Code, Error};

/// The default limit of the size of a folder.
const LIMIT_BYTES: u64 = 1 << 30;

/// How the files are called: the key, and this.
const SUFFIX: &str = ".hloexe";

/// The prefix of temporary files, before the process and a number.
const TEMPORARY: &str = ".tmp-";

/// The age at which temporary files that a process left behind are removed.
const MAX_TEMPORARY_AGE: Duration = Duration::from_secs(3600);

/// Files that are locked while a program is compiled are called so, with the first digits of its key.
const LOCK: &str = ".lock-";

/// The time that one process waits for another that compiles the same program, and the polling interval.
const MAX_WAIT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Other processes' files are counted after this many of ours.
const RECOUNT_PUTS: u64 = 32;

/// A folder of compiled programs.
#[derive(Debug)]
pub struct DiskCache {
    folder: PathBuf,
    limit_bytes: u64,
    /// About how many bytes there are: ours, and what others had when they were last counted.
    bytes: AtomicU64,
    puts: AtomicU64,
}

/// Held while a program is compiled ([`DiskCache::lock`]).
#[derive(Debug)]
pub struct Lock {
    /// Closing it unlocks it.
    _file: File,
}

/// A file of the folder.
#[derive(Clone, Debug)]
pub struct DiskEntry {
    /// Its key.
    pub key: Key,
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was used last.
    pub used: SystemTime,
}

/// What [`DiskCache::verify`] finds of an entry.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Whole, and says this of itself.
    Whole(artifact::ArtifactInfo),
    /// Not to be used, and why.
    Refused(String),
}

fn failed(what: &str, path: &Path, error: io::Error) -> Error {
    Error::new(Code::Unavailable, format!("{}: {what}: {error}", path.display())).caused_by(error)
}

/// Errors: somebody else owns it, or may write to it.
fn check_owner(path: &Path, metadata: &fs::Metadata) -> Result<(), Error> {
    let me = rustix::process::geteuid().as_raw();
    if metadata.uid() != me {
        let message = format!("{}: belongs to user {}, not {me}", path.display(), metadata.uid());
        return Err(Error::new(Code::FailedPrecondition, message));
    }
    if metadata.mode() & 0o022 != 0 {
        let message =
            format!("{}: others may write to it (mode {:o})", path.display(), metadata.mode() & 0o777);
        return Err(Error::new(Code::FailedPrecondition, message));
    }
    Ok(())
}

impl DiskCache {
    /// A folder, which is made if it is not there. `limit_bytes`: beyond them goes what was not used for
    /// longest; `None`: 1 GiB.
    ///
    /// # Errors
    /// It cannot be made, or others than this user may write to it.
    pub fn open(folder: &Path, limit_bytes: Option<u64>) -> Result<Self, Error> {
        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|e| failed("cannot be made", folder, e))?;
        let metadata = fs::metadata(folder).map_err(|e| failed("cannot be read", folder, e))?;
        if !metadata.is_dir() {
            return Err(Error::new(Code::InvalidArgument, format!("{}: is no folder", folder.display())));
        }
        check_owner(folder, &metadata)?;
        let limit_bytes = limit_bytes.unwrap_or(LIMIT_BYTES);
        let cache = Self {
            folder: folder.to_owned(),
            limit_bytes,
            bytes: AtomicU64::new(0),
            puts: AtomicU64::new(0),
        };
        cache.sweep();
        cache.recount();
        Ok(cache)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, key: Key) -> PathBuf {
        self.folder.join(format!("{}{SUFFIX}", key.hex()))
    }

    /// The bytes of an entry, if it is there. Errors: it cannot be read, or somebody else may have written
    /// it.
    fn get(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path(key);
        let mut file = match OpenOptions::new().read(true).custom_flags(NO_FOLLOW).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("cannot be opened", &path, error)),
        };
        let metadata = file.metadata().map_err(|e| failed("cannot be read", &path, e))?;
        if !metadata.is_file() {
            return Err(Error::new(Code::FailedPrecondition, format!("{}: is no file", path.display())));
        }
        check_owner(&path, &metadata)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|e| failed("cannot be read", &path, e))?;
        // When it was used last is for eviction alone: who may not say so goes on.
        let _ = file.set_times(FileTimes::new().set_modified(SystemTime::now()));
        Ok(Some(bytes))
    }

    /// What `load` makes of an entry, if it is there.
    ///
    /// # Errors
    /// It was there and cannot be used (damaged, of another build or machine, or written by somebody else),
    /// and is removed.
    pub fn load<T>(
        &self,
        key: Key,
        load: impl FnOnce(&[u8]) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let loaded = self.get(key).and_then(|bytes| bytes.map(|bytes| load(&bytes)).transpose());
        loaded.inspect_err(|_| self.remove(key))
    }

    /// Waits until no other process (or thread) compiles a program whose key begins alike, and keeps others
    /// from it while the result lives. `None`: the file system has no locks, or somebody holds it for too
    /// long; then two may compile the same, which is no error.
    pub fn lock(&self, key: Key) -> Option<Lock> {
        let path = self.folder.join(format!("{LOCK}{}", &key.hex()[..2]));
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_FOLLOW);
        let file = options.open(path).ok()?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Some(Lock { _file: file }),
                Err(TryLockError::WouldBlock) if began.elapsed() < MAX_WAIT => thread::sleep(POLL_INTERVAL),
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return None,
            }
        }
    }

    /// Keeps an entry.
    ///
    /// # Errors
    /// It cannot be written; then there is no trace of it.
    pub fn put(&self, key: Key, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() as u64 > self.limit_bytes {
            return Ok(());
        }
        let number = self.puts.fetch_add(1, Ordering::Relaxed);
        let temporary = self.folder.join(format!("{TEMPORARY}{}-{number}", std::process::id()));
        let written = write_new(&temporary, bytes).and_then(|()| fs::rename(&temporary, self.path(key)));
        if let Err(error) = written {
            let _ = fs::remove_file(&temporary);
            return Err(failed("cannot be written", &temporary, error));
        }
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if number % RECOUNT_PUTS == RECOUNT_PUTS - 1 {
            self.recount();
        }
        if self.bytes.load(Ordering::Relaxed) > self.limit_bytes {
            self.collect_garbage();
        }
        Ok(())
    }

    fn remove(&self, key: Key) {
        // That it is gone already, or cannot go, changes nothing: it is not used.
        let _ = fs::remove_file(self.path(key));
    }

    /// All entries, the least recently used first.
    pub fn entries(&self) -> Vec<DiskEntry> {
        let mut entries: Vec<DiskEntry> = Vec::new();
        for file in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = file.file_name();
            let key = name.to_str().and_then(|n| n.strip_suffix(SUFFIX)).and_then(Key::from_hex);
            let (Some(key), Ok(metadata)) = (key, file.metadata()) else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            entries.push(DiskEntry { key, path: file.path(), bytes: metadata.len(), used });
        }
        entries.sort_by_key(|e| (e.used, e.key));
        entries
    }

    /// Reads every entry and says what is to be thought of it.
    pub fn verify(&self) -> Vec<(DiskEntry, Verdict)> {
        let verdict = |entry: &DiskEntry| match self.get(entry.key) {
            Ok(Some(bytes)) => match artifact::info(&bytes) {
                Ok(info) => Verdict::Whole(info),
                Err(error) => Verdict::Refused(error.to_string()),
            },
            Ok(None) => Verdict::Refused("it is gone".to_owned()),
            Err(error) => Verdict::Refused(error.to_string()),
        };
        self.entries().into_iter().map(|entry| (entry.clone(), verdict(&entry))).collect()
    }

    /// Removes what is beyond the limit, the least recently used first. How many entries and bytes went.
    pub fn collect_garbage(&self) -> (u64, u64) {
        let entries = self.entries();
        let mut total: u64 = entries.iter().map(|e| e.bytes).sum();
        let (mut gone, mut gone_bytes) = (0, 0);
        for entry in entries {
            if total <= self.limit_bytes {
                break;
            }
            if fs::remove_file(&entry.path).is_ok() {
                (gone, gone_bytes) = (gone + 1, gone_bytes + entry.bytes);
            }
            total -= entry.bytes;
        }
        self.bytes.store(total, Ordering::Relaxed);
        (gone, gone_bytes)
    }

    fn recount(&self) {
        self.bytes.store(self.entries().iter().map(|e| e.bytes).sum(), Ordering::Relaxed);
    }

    /// Removes what processes that were killed left on its way.
    fn sweep(&self) {
        for file in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let is_temporary = file.file_name().to_str().is_some_and(|n| n.starts_with(TEMPORARY));
            let modified = file.metadata().and_then(|m| m.modified());
            let is_old = modified.is_ok_and(|m| m.elapsed().is_ok_and(|age| age > MAX_TEMPORARY_AGE));
            if is_temporary && is_old {
                let _ = fs::remove_file(file.path());
            }
        }
    }
}

/// Flags of `open`: a link is an error.
const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    // Not synchronized: of a file whose contents a crash of the machine swallowed the checksum does not fit.
    file.write_all(bytes)
}
