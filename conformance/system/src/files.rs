//! Reading programs and writing results.
//!
//! **Invariants:** a file is written under a temporary name next to its own and renamed when it is complete,
//! so a partial file is never visible, unless its folder takes no other files: then it is written in place. A
//! path that leads to something else (a device, a pipe) is written to, never replaced; links are followed,
//! and stay. What cannot be read gives one error that names the path.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::exit::{Exit, Failure};
use crate::memory_budget;

/// The longest program text that is read: spans are 32-bit byte offsets.
pub const MAX_TEXT: u64 = (u32::MAX - 16) as u64;

/// The byte order mark that editors of Windows write before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Opens a file that another program may have left: anything else (a pipe, a device, a folder) is an error,
/// where opening or reading it might wait for ever.
pub fn open_regular(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // A pipe without a writer is opened at once.
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    let file = OpenOptions::new().read(true).custom_flags(flags as i32).open(path)?;
    let kind = file.metadata()?;
    if kind.is_file() {
        return Ok(file);
    }
    Err(io::Error::other(if kind.is_dir() { "is a folder" } else { "is not a file" }))
}

/// The maximum size of a text next to a program (`case.json`, `finding.json`), in bytes.
const MAX_SIDE_FILE_BYTES: u64 = 64 << 20;

/// Reads a text next to a program. Errors: it is no file, not UTF-8, or longer than such a text is.
pub fn read_beside(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_regular(path)?.take(MAX_SIDE_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_SIDE_FILE_BYTES {
        return Err(io::Error::other(format!("longer than the {MAX_SIDE_FILE_BYTES} bytes that are read")));
    }
    Ok(text)
}

/// The text of a program and the name to show for it.
#[derive(Clone, Debug)]
pub struct Source {
    /// The path as given, `<stdin>` for `-`.
    pub name: String,
    /// The text; empty of a binary file.
    pub text: String,
    /// Whether the text is HLO, and not protocol buffers.
    pub is_hlo: bool,
}

/// Reads a program; `-` is standard input. A byte order mark before it is no part of it.
///
/// Errors: [`Exit::Usage`] if it cannot be read or is a folder, [`Exit::Parse`] if it is not UTF-8 (with the
/// offset of the first bad byte) or too long.
pub fn read_source(path: &str) -> Result<Source, Failure> {
    let (name, bytes) = read_bytes(path)?;
    text_of(name, bytes)
}

/// Reads the bytes of a program in any format, and gives its name too; `-` is standard input.
///
/// Errors: [`Exit::Usage`] if it cannot be read or is a folder or a device other than a terminal (which may
/// have no end), [`Exit::Parse`] if it is too long.
pub fn read_bytes(path: &str) -> Result<(String, Vec<u8>), Failure> {
    if path == "-" {
        return Ok(("<stdin>".to_owned(), read_limited(io::stdin().lock(), "<stdin>", 0)?));
    }
    let meta = fs::metadata(path).map_err(|e| cannot_read(path, &e))?;
    if meta.is_dir() {
        return Err(Failure::usage(format!("{path}: is a folder, not a program")));
    }
    let file = File::open(path).map_err(|e| cannot_read(path, &e))?;
    if (meta.file_type().is_char_device() || meta.file_type().is_block_device()) && !file.is_terminal() {
        return Err(Failure::usage(format!("{path}: is a device, not a program")));
    }
    Ok((path.to_owned(), read_limited(file, path, meta.len())?))
}

/// The bytes of a file as HLO text.
pub fn text_of(name: String, mut bytes: Vec<u8>) -> Result<Source, Failure> {
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source { name, text, is_hlo: true }),
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            let byte = e.as_bytes()[at];
            let kind = binary_kind(e.as_bytes());
            Err(Failure::new(
                Exit::Parse,
                format!(
                    "{name}: not HLO text: byte 0x{byte:02x} at offset {at} is not UTF-8{}",
                    kind.map(|k| format!(" (it looks like {k})")).unwrap_or_default()
                ),
            ))
        }
    }
}

fn cannot_read(path: &str, e: &io::Error) -> Failure {
    Failure::new(exit_of(e), format!("{path}: cannot be read: {}", describe(e)))
}

/// How a command ends that a file fails: what the process lacks is no mistake of its user.
pub fn exit_of(e: &io::Error) -> Exit {
    let lacking = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE, rustix::io::Errno::NOMEM];
    if lacking.iter().any(|errno| e.raw_os_error() == Some(errno.raw_os_error())) {
        Exit::Trap
    } else {
        Exit::Usage
    }
}

/// An I/O error in a few words, without the number that the standard library appends.
pub fn describe(e: &io::Error) -> String {
    let text = e.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}

fn read_limited(reader: impl Read, name: &str, hint: u64) -> Result<Vec<u8>, Failure> {
    let too_long = || {
        Failure::new(
            Exit::Parse,
            format!("{name}: longer than 4 GiB, the most that a program's text may have"),
        )
    };
    if hint > MAX_TEXT {
        return Err(too_long());
    }
    memory_budget::require_for_text(hint, name)?;
    let mut bytes = Vec::with_capacity(hint as usize);
    // The length of standard input is unknown.
    let most = memory_budget::text_left().min(MAX_TEXT);
    reader.take(most + 1).read_to_end(&mut bytes).map_err(|e| cannot_read(name, &e))?;
    memory_budget::require_for_text(bytes.len() as u64, name)?;
    if bytes.len() as u64 > MAX_TEXT { Err(too_long()) } else { Ok(bytes) }
}

/// The probable format of a binary file.
fn binary_kind(bytes: &[u8]) -> Option<&'static str> {
    const KINDS: &[(&[u8], &str)] = &[
        (b"PK\x03\x04", "a zip or .npz file"),
        (b"\x93NUMPY", "a .npy file"),
        (b"\x1f\x8b", "a gzip file"),
        (b"\x28\xb5\x2f\xfd", "a zstd file"),
        (b"\x7fELF", "an executable"),
        (b"ML\xefR", "MLIR bytecode"),
        (b"\xff\xfe", "UTF-16 text"),
        (b"\xfe\xff", "UTF-16 text"),
    ];
    KINDS.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, kind)| *kind).or_else(|| {
        // A serialized HloModuleProto begins with field 1 (its name) or 2, length-delimited.
        matches!(bytes.first(), Some(0x0a | 0x12))
            .then_some("a protobuf, such as a serialized HloModuleProto")
    })
}

/// Writes a file whole or not at all: `write` fills a temporary file in the same folder, which then takes the
/// name. What that cannot be done for is written in place: devices and pipes, and files in folders that take
/// no new ones.
pub fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), Failure> {
    let written = match fs::metadata(path) {
        Ok(there) if there.is_file() => replace(path, &there, write),
        Ok(_) => write_through(path, write),
        Err(_) => match linked(path) {
            Ok(target) => create(&target, write),
            Err(e) => Err(e),
        },
    };
    written.map_err(|e| Failure::usage(format!("{}: cannot be written: {}", path.display(), describe(&e))))
}

/// The same of a text.
pub fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    write_whole(path, |file| file.write_all(text.as_bytes()))
}

type Written = io::Result<()>;

fn create(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> Written) -> Written {
    let part = Part::of(path)?;
    fill(part.file()?, write)?;
    part.complete()
}

/// Replaces a file, where links lead to it; it stays readable to those to whom it was.
fn replace(path: &Path, there: &Metadata, write: impl FnOnce(&mut BufWriter<File>) -> Written) -> Written {
    // A name below /proc may lead to a file that has none any more, or another one.
    let Ok(path) = fs::canonicalize(path) else { return fill(in_place(path)?, write) };
    let part = match Part::of(&path) {
        Ok(part) => part,
        Err(e) if is_refusal(&e) => return fill(in_place(&path)?, write),
        Err(e) => return Err(e),
    };
    fill(part.file()?, write)?;
    // Not worth failing for, on file systems without permissions.
    let _ = fs::set_permissions(&part.path, there.permissions());
    match fs::rename(&part.path, &path) {
        // The file has another owner, or something is mounted on it.
        Err(e) if is_refusal(&e) || e.kind() == io::ErrorKind::ResourceBusy => {
            io::copy(&mut File::open(&part.path)?, &mut in_place(&path)?).map(drop)
        }
        renamed => renamed,
    }
}

/// Whether a folder does not let us make or rename files.
fn is_refusal(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Writes to what is no file. It may not be able to seek, which `write` may want: a nameless file takes the
/// bytes first.
fn write_through(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> Written) -> Written {
    let mut sink = open_sink(path)?;
    let mut spool = tempfile::tempfile()?;
    fill(spool.try_clone()?, write)?;
    spool.rewind()?;
    io::copy(&mut spool, &mut sink)?;
    sink.flush()
}

/// The time to wait for a reader of a pipe.
const READER_WAIT: Duration = Duration::from_secs(10);

/// Opens what is no file for writing. Errors: a pipe that nothing opens for reading.
fn open_sink(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let (start, flags) = (Instant::now(), rustix::fs::OFlags::NONBLOCK.bits());
    loop {
        // A pipe is opened at once, or not at all while it has no reader.
        match OpenOptions::new().write(true).custom_flags(flags as i32).open(path) {
            Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                if start.elapsed() >= READER_WAIT {
                    return Err(io::Error::other("nobody reads this pipe"));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            opened => {
                let file = opened?;
                // From here on slow readers are waited for.
                let flags = rustix::fs::fcntl_getfl(&file)?;
                rustix::fs::fcntl_setfl(&file, flags - rustix::fs::OFlags::NONBLOCK)?;
                return Ok(file);
            }
        }
    }
}

fn in_place(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).truncate(true).open(path)
}

fn fill(file: File, write: impl FnOnce(&mut BufWriter<File>) -> Written) -> Written {
    let mut file = BufWriter::new(file);
    write(&mut file)?;
    file.flush()
}

/// Where a link to nothing leads; a path that is no link is itself.
fn linked(path: &Path) -> io::Result<PathBuf> {
    /// As many as Linux follows.
    const MAX_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.with_file_name("").join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// A file that is being written, next to the one whose name it takes when it is complete, as
/// `.NAME.PROCESS-N.part`. It is locked for so long: what a process left that was ended is not, and goes when
/// the next one writes a file of the name.
#[derive(Debug)]
pub struct Part {
    target: PathBuf,
    path: PathBuf,
    file: File,
}

/// The number of parts that this process has begun.
static PARTS: AtomicU64 = AtomicU64::new(0);

/// The suffix of the name of a part.
const PART: &str = ".part";
/// As much of a file's name is in that of its part: names have 255 bytes at most.
const MAX_NAME_BYTES: usize = 200;

impl Part {
    /// Begins the file of this path. Errors: it cannot be made.
    pub fn of(target: &Path) -> io::Result<Self> {
        Self::sweep(target);
        let mut name = prefix(target)?;
        name.push(format!("{}-{}{PART}", std::process::id(), PARTS.fetch_add(1, Ordering::Relaxed)));
        let path = target.with_file_name(name);
        let file = match File::create_new(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                // A process of the same number in another container, where nothing can be locked.
                fs::remove_file(&path)?;
                File::create_new(&path)?
            }
            made => made?,
        };
        // Where nothing can be locked nothing is swept, either.
        let _ = file.lock();
        Ok(Self { target: target.to_owned(), path, file })
    }

    /// The file, to write to.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Renames it to its final name, replacing an older file.
    pub fn complete(self) -> io::Result<()> {
        fs::rename(&self.path, &self.target)
    }

    /// Whether a name is that of a part of a file.
    pub fn is_of(name: &OsStr, target: &Path) -> bool {
        let Ok(prefix) = prefix(target) else { return false };
        let name = name.as_encoded_bytes();
        name.starts_with(prefix.as_encoded_bytes()) && name.ends_with(PART.as_bytes())
    }

    /// Removes what processes left of a file that were ended while they wrote it.
    fn sweep(target: &Path) {
        let folder = target.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if Self::is_of(&entry.file_name(), target)
                && open_regular(&path).is_ok_and(|file| file.try_lock().is_ok())
            {
                // Another one may be at it.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// The prefix of the names of a file's parts.
fn prefix(target: &Path) -> io::Result<OsString> {
    let name = target.file_name().ok_or_else(|| io::Error::other("not the name of a file"))?;
    let bytes = name.as_bytes();
    let mut prefix = OsString::from(".");
    prefix.push(OsStr::from_bytes(&bytes[..bytes.len().min(MAX_NAME_BYTES)]));
    prefix.push(".");
    Ok(prefix)
}

impl Drop for Part {
    fn drop(&mut self) {
        // Of a complete one there is nothing left to remove.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        write_whole(&path, |f| f.write_all(b"one")).unwrap();
        let failure = write_whole(&path, |f| {
            f.write_all(b"half")?;
            Err(io::Error::other("disk on fire"))
        })
        .unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.message.ends_with("out: cannot be written: disk on fire"), "{}", failure.message);
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_stay() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let [file, link, far, lost, made] =
            ["file", "link", "far", "lost", "made"].map(|n| dir.path().join(n));
        fs::write(&file, "old and longer").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        symlink("file", &link).unwrap();
        symlink(&link, &far).unwrap();
        symlink("made", &lost).unwrap();
        write_text(&far, "new").unwrap();
        write_text(&lost, "made").unwrap();
        assert_eq!((fs::read(&file).unwrap(), fs::read(&made).unwrap()), (b"new".to_vec(), b"made".to_vec()));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert!([&link, &far, &lost].iter().all(|l| l.is_symlink()));
        let round = dir.path().join("round");
        symlink("round", &round).unwrap();
        let failure = write_text(&round, "").unwrap_err();
        assert!(failure.message.ends_with("too many levels of symbolic links"), "{}", failure.message);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 6, "no temporary file is left");
    }

    #[cfg(unix)]
    #[test]
    fn pipes_are_written_to_and_stay() {
        use std::os::unix::fs::{FileTypeExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (pipe, link) = (dir.path().join("pipe"), dir.path().join("link"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        symlink(&pipe, &link).unwrap();
        for path in [&pipe, &link] {
            let reader = std::thread::spawn({
                let pipe = pipe.clone();
                move || fs::read(pipe).unwrap()
            });
            // Zip files are made by going back and forth.
            write_whole(path, |f| {
                f.write_all(b"..cd")?;
                f.rewind()?;
                f.write_all(b"ab")
            })
            .unwrap();
            assert_eq!(reader.join().unwrap(), b"abcd");
            assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        }
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
    }

    #[test]
    fn what_ended_processes_left_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let live = Part::of(&path).unwrap();
        let left = dir.path().join(".out.1-0.part");
        let other = dir.path().join(".outer.1-0.part");
        fs::write(&left, "half").unwrap();
        fs::write(&other, "half").unwrap();
        write_text(&path, "whole").unwrap();
        assert!(live.path.exists() && other.exists() && !left.exists());
        live.file().unwrap().write_all(b"later").unwrap();
        live.complete().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"later");
        let long = dir.path().join("x".repeat(255));
        write_text(&long, "long").unwrap();
        assert_eq!(fs::read(&long).unwrap(), b"long");
    }

    #[test]
    fn only_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for (path, why) in [(&*pipe, "is not a file"), (dir.path(), "is a folder")] {
            assert_eq!(open_regular(path).unwrap_err().to_string(), why);
        }
        assert!(read_beside(Path::new("/dev/zero")).is_err());
    }

    #[test]
    fn folders_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let failure = write_text(dir.path(), "").unwrap_err();
        assert!(failure.message.ends_with("cannot be written: is a directory"), "{}", failure.message);
    }

    #[test]
    fn bad_sources_are_refused_with_their_exit_code() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.hlo");
        let name = path.to_str().unwrap();
        let missing = read_source(name).unwrap_err();
        assert_eq!(
            (missing.exit, missing.message),
            (Exit::Usage, format!("{name}: cannot be read: no such file or directory"))
        );
        assert_eq!(read_source(dir.path().to_str().unwrap()).unwrap_err().exit, Exit::Usage);
        fs::write(&path, b"HloModule m\n\xff\xfe").unwrap();
        let binary = read_source(name).unwrap_err();
        assert_eq!(binary.exit, Exit::Parse);
        assert_eq!(binary.message, format!("{name}: not HLO text: byte 0xff at offset 12 is not UTF-8"));
        fs::write(&path, b"PK\x03\x04\x99").unwrap();
        assert!(read_source(name).unwrap_err().message.ends_with("(it looks like a zip or .npz file)"));
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.hlo");
        fs::write(&path, "\u{FEFF}HloModule m\n").unwrap();
        assert_eq!(read_source(path.to_str().unwrap()).unwrap().text, "HloModule m\n");
    }
}
