//! Reading programs and writing results.
//!
//! **Invariants:** a file is written under a temporary name beside its own and renamed when it is complete, so nobody ever
//! sees half of one; what cannot be read gives one error that names the path.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failure};

/// The longest program text that is read: spans are 32-bit byte offsets.
pub const MAX_TEXT: u64 = (u32::MAX - 16) as u64;

/// The text of a program and the name to show for it.
#[derive(Clone, Debug)]
pub struct Source {
    /// The path as given, `<stdin>` for `-`.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Reads a program; `-` is standard input.
///
/// Errors: [`Exit::Usage`] if it cannot be read or is a folder, [`Exit::Parse`] if it is not UTF-8 (with the offset of the first
/// bad byte) or too long.
pub fn read_source(path: &str) -> Result<Source, Failure> {
    let (name, bytes) = if path == "-" {
        ("<stdin>".to_owned(), read_limited(io::stdin().lock(), "<stdin>", 0)?)
    } else {
        let meta = fs::metadata(path).map_err(|e| cannot_read(path, &e))?;
        if meta.is_dir() {
            return Err(Failure::usage(format!("{path}: is a folder, not a program")));
        }
        let file = File::open(path).map_err(|e| cannot_read(path, &e))?;
        (path.to_owned(), read_limited(file, path, meta.len())?)
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source { name, text }),
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
    Failure::usage(format!("{path}: cannot be read: {}", describe(e)))
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
    let mut bytes = Vec::with_capacity(hint as usize);
    reader.take(MAX_TEXT + 1).read_to_end(&mut bytes).map_err(|e| cannot_read(name, &e))?;
    if bytes.len() as u64 > MAX_TEXT { Err(too_long()) } else { Ok(bytes) }
}

/// What a binary file most likely is.
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

/// Writes a file whole or not at all: `write` fills a temporary file in the same folder, which then takes the name.
pub fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), Failure> {
    let fail =
        |e: &io::Error| Failure::usage(format!("{}: cannot be written: {}", path.display(), describe(e)));
    let temporary = Temporary::beside(path).map_err(|e| fail(&e))?;
    let result = (|| {
        let mut file = BufWriter::new(File::create_new(&temporary.path)?);
        write(&mut file)?;
        file.flush()?;
        file.stream_position()?;
        drop(file);
        fs::rename(&temporary.path, path)
    })();
    result.map_err(|e| fail(&e))
}

/// A temporary name; the file of that name, if still there, goes with it.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn beside(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::other("not the name of a file"))?;
        let mut temporary = std::ffi::OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}.part", std::process::id()));
        Ok(Self { path: path.with_file_name(temporary) })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a successful rename there is nothing left to remove.
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
}
