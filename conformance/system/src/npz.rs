//! Values on disk: `.npz` files, zip archives of `.npy` arrays (format: numpy's `numpy/lib/format.py`).
//!
//! Element types that numpy lacks (bf16, f8*, f4, s4, ...) are unsigned integers of the same width holding
//! the raw bits, the low bits of a byte for sub-byte types; the program gives the true type.
//!
//! **Invariants:** reading needs memory for one array and no more than the given limit, whatever the file
//! claims; nothing in a file causes a panic; every error names the file and the array.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hlo::literal::BufferOf;
use hlo::{ArrayLiteral, ArrayShape, Bits, Buffer, ElementType, TypeClass};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::exit::{Exit, Failure};
use crate::files::{describe, open_regular, write_whole};
use crate::memory_budget;

/// The longest header of a `.npy` file that is read.
const MAX_HEADER: usize = 1 << 16;

/// An open `.npz` file.
pub struct Npz {
    name: String,
    archive: ZipArchive<BufReader<Metered>>,
    /// The maximum number of bytes of values that one array may need.
    limit: u64,
}

/// Type and dimensions of an array as its `.npy` header gives them.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Header {
    /// `<f4` and the like.
    descr: String,
    fortran_order: bool,
    shape: Vec<u64>,
}

impl Npz {
    /// Opens a file; arrays of more than `limit` bytes are refused, and so are more of them together that are
    /// kept ([`Npz::arrays`]). Errors: [`Exit::Usage`].
    pub fn open(path: impl AsRef<Path>, limit: u64) -> Result<Self, Failure> {
        let path = path.as_ref();
        let usage = |what: String| Failure::usage(format!("{}: {what}", path.display()));
        if path.is_dir() {
            return Err(usage("is a folder, not an .npz file".to_owned()));
        }
        let file = open_regular(path).map_err(|e| usage(format!("cannot be read: {}", describe(&e))))?;
        let again = file.try_clone().map_err(|e| usage(format!("cannot be read: {}", describe(&e))))?;
        let left = Arc::new(AtomicU64::new(MAX_SEARCHED));
        let archive = ZipArchive::new(BufReader::new(Metered { file, left: left.clone() }));
        let archive = archive.map_err(|e| usage(format!("not an .npz file: {}", describe(&of_zip(e)))))?;
        left.store(u64::MAX, Ordering::Relaxed);
        // Of two members of a name an archive gives the last.
        let (start, count) = (archive.central_directory_start(), archive.len());
        let there =
            entries(again, start).map_err(|e| usage(format!("not an .npz file: {}", describe(&e))))?;
        let npz = Self { name: path.display().to_string(), archive, limit };
        let mut names = npz.names();
        names.sort();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(usage(format!("has two arrays {}", pair[0]))),
            None if there != count => {
                Err(usage(format!("has {there} arrays under {count} names: some are there twice")))
            }
            None => Ok(npz),
        }
    }

    /// Refuses arrays that match no parameter: they belong to another program. Errors: [`Exit::Usage`], with
    /// their names.
    pub fn has_only(&self, wanted: impl Fn(&str) -> bool, what: &str) -> Result<(), Failure> {
        let names = self.names();
        let extra: Vec<&str> = names.iter().map(String::as_str).filter(|name| !wanted(name)).collect();
        if extra.is_empty() {
            return Ok(());
        }
        let more = extra.len().saturating_sub(8);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let list = extra[..extra.len().min(8)].join(", ");
        Err(Failure::usage(format!("{}: has {list}{more}, which the program has no {what} for", self.name)))
    }

    /// Names of the arrays, without `.npy`, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.archive.file_names().map(|n| n.strip_suffix(".npy").unwrap_or(n).to_owned()).collect();
        names.sort_by_key(|a| natural_key(a));
        names
    }

    /// Whether there is an array of this name.
    pub fn contains(&self, array: &str) -> bool {
        self.archive.index_for_name(&format!("{array}.npy")).is_some()
    }

    /// Type and dimensions of an array, by the type that numpy has for it: `u1` is u8. Errors:
    /// [`Exit::Usage`] if it is missing, damaged, or of no such type.
    pub fn shape(&mut self, array: &str) -> Result<ArrayShape, Failure> {
        use ElementType as T;
        const KNOWN: [ElementType; 14] = [
            T::Pred,
            T::S8,
            T::S16,
            T::S32,
            T::S64,
            T::U8,
            T::U16,
            T::U32,
            T::U64,
            T::F16,
            T::F32,
            T::F64,
            T::C64,
            T::C128,
        ];
        let usage = |what: String| Failure::usage(format!("{}: {array}: {what}", self.name));
        let entry = self.archive.by_name(&format!("{array}.npy"));
        let header = entry.map_err(|e| e.to_string()).and_then(|mut entry| read_header(&mut entry));
        let header = header.map_err(|e| usage(format!("cannot be read: {e}")))?;
        let accepts = |ty: &ElementType| Format::of(*ty).accepts(&header.descr).is_some();
        let ty =
            KNOWN.into_iter().find(accepts).ok_or_else(|| usage(format!("has type {}", header.descr)))?;
        let dims: Option<Vec<i64>> = header.shape.iter().map(|&d| i64::try_from(d).ok()).collect();
        dims.map(|dims| ArrayShape::new(ty, &dims)).ok_or_else(|| usage("has dimensions beyond 2^63".into()))
    }

    /// The array of this name as a value of the given type and dimensions. Errors: missing, of other
    /// dimensions or another type, damaged: [`Exit::Usage`]; too large: [`Exit::Trap`].
    pub fn array(&mut self, array: &str, shape: &ArrayShape) -> Result<ArrayLiteral, Failure> {
        self.array_beside(array, shape, 0)
    }

    /// Arrays of these shapes, all of which are kept: together they have at most as many bytes as the limit
    /// says. Errors: as [`Npz::array`], of the first that has one.
    pub fn arrays<'s>(
        &mut self,
        wanted: impl IntoIterator<Item = (String, &'s ArrayShape)>,
    ) -> Result<Vec<ArrayLiteral>, Failure> {
        let (mut all, mut kept) = (Vec::new(), 0_u64);
        for (name, shape) in wanted {
            let array = self.array_beside(&name, shape, kept)?;
            kept = kept.saturating_add(array.buffer.bytes());
            all.push(array);
        }
        Ok(all)
    }

    /// The same, with that many bytes of others kept.
    fn array_beside(&mut self, array: &str, shape: &ArrayShape, kept: u64) -> Result<ArrayLiteral, Failure> {
        let name = self.name.clone();
        let usage = |what: String| Failure::usage(format!("{name}: {array}: {what}"));
        if !self.contains(array) {
            let mut names = self.names();
            let more = names.len().saturating_sub(8);
            names.truncate(8);
            let mut list = names.join(", ");
            if more > 0 {
                list.push_str(&format!(" and {more} more"));
            }
            let there =
                if list.is_empty() { "the file is empty".to_owned() } else { format!("it has {list}") };
            return Err(Failure::usage(format!("{}: no array {array} ({there})", self.name)));
        }
        let limit = self.limit;
        let mut entry = self
            .archive
            .by_name(&format!("{array}.npy"))
            .map_err(|e| usage(format!("cannot be read: {e}")))?;
        let header = read_header(&mut entry).map_err(&usage)?;
        let expected_dims: Option<Vec<u64>> = shape.dims.iter().map(|&d| u64::try_from(d).ok()).collect();
        if expected_dims.as_deref() != Some(&header.shape[..]) {
            return Err(usage(format!(
                "has dimensions {}, but the program's {} needs {}",
                dims_text(&header.shape),
                shape.without_layout(),
                dims_text(&expected_dims.unwrap_or_default()),
            )));
        }
        let format = Format::of(shape.element_type);
        let big_endian = format.accepts(&header.descr).ok_or_else(|| {
            usage(format!(
                "has type {}, but the program's {} needs {}",
                header.descr,
                shape.without_layout(),
                format.descr()
            ))
        })?;
        let too_large = || {
            let limit = match kept {
                0 => "the memory limit".to_owned(),
                kept => format!("what the memory limit leaves beside {kept} bytes of arrays before it"),
            };
            let message = format!("{name}: {array}: {} is larger than {limit}", shape.without_layout());
            Failure::new(Exit::Trap, message)
        };
        let elements = shape.checked_elements().and_then(|n| u64::try_from(n).ok()).ok_or_else(too_large)?;
        let bytes = elements.checked_mul(format.bytes as u64).ok_or_else(too_large)?;
        if bytes.saturating_add(kept) > limit {
            return Err(too_large());
        }
        // The bytes that the file says it has, while they grow, and the elements.
        let there = bytes.min(entry.size());
        memory_budget::require(there.saturating_mul(3), &format!("{name}: {array}: its elements"))?;
        // Grows with the bytes that are read, so that a false header costs nothing.
        let mut data = Vec::with_capacity(bytes.min(16 << 20) as usize);
        entry.by_ref().take(bytes).read_to_end(&mut data).map_err(|e| usage(format!("is damaged: {e}")))?;
        if data.len() as u64 != bytes {
            return Err(usage(format!("is cut short: {} of {bytes} bytes", data.len())));
        }
        let mut one_more = [0u8];
        match entry.read(&mut one_more) {
            Ok(0) => {}
            Ok(_) => return Err(usage(format!("has more than the {bytes} bytes of its dimensions"))),
            Err(e) => return Err(usage(format!("is damaged: {e}"))),
        }
        if big_endian {
            let part = if format.kind == 'c' { format.bytes / 2 } else { format.bytes };
            data.chunks_exact_mut(part).for_each(<[u8]>::reverse);
        }
        if header.fortran_order && header.shape.len() > 1 {
            data = row_major(&data, &header.shape, format.bytes);
        }
        if shape.element_type == ElementType::Pred
            && let Some(i) = data.iter().position(|&b| b > 1)
        {
            return Err(usage(format!("element {i} is {}, but a pred is 0 or 1", data[i])));
        }
        let buffer = hlo::with_element_type!(shape.element_type, T => decode::<T>(&data, format.bytes));
        ArrayLiteral::new(shape.dims.clone(), buffer)
            .ok_or_else(|| usage("has the wrong number of elements".into()))
    }
}

/// The maximum number of bytes of a file that its directory is looked for in, from its end: of a sparse file
/// there may be any number.
const MAX_SEARCHED: u64 = 1 << 30;

/// A file with a limit on the bytes that are read.
struct Metered {
    file: File,
    left: Arc<AtomicU64>,
}

impl Read for Metered {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(into)?;
        let take = |left: u64| left.checked_sub(n as u64);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(n),
            Err(_) => {
                Err(io::Error::other(format!("no directory in the {MAX_SEARCHED} bytes that are searched")))
            }
        }
    }
}

impl Seek for Metered {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// The number of entries in the directory of a zip file, which begins at `start`.
fn entries(mut file: File, start: u64) -> io::Result<usize> {
    /// What an entry begins with, and the bytes before its name, its extra fields and its comment, whose
    /// lengths are the six bytes from 28 on.
    const SIGNATURE: [u8; 4] = *b"PK\x01\x02";
    const HEAD_BYTES: usize = 46;
    file.seek(io::SeekFrom::Start(start))?;
    let mut file = BufReader::new(file);
    let mut count = 0;
    let mut head = [0; HEAD_BYTES];
    loop {
        let (signature, rest) = head.split_at_mut(SIGNATURE.len());
        file.read_exact(signature)?;
        if signature != SIGNATURE {
            return Ok(count);
        }
        file.read_exact(rest)?;
        let length = |at| i64::from(u16::from_le_bytes([head[at], head[at + 1]]));
        file.seek_relative(length(28) + length(30) + length(32))?;
        count += 1;
    }
}

/// Sorts `arg2` before `arg10`.
fn natural_key(name: &str) -> (String, u64) {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (stem, number) = name.split_at(name.len() - digits);
    (stem.to_owned(), number.parse().unwrap_or(0))
}

fn dims_text(dims: &[u64]) -> String {
    let mut text = String::from("[");
    for (i, d) in dims.iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        text.push_str(&d.to_string());
    }
    text.push(']');
    text
}

/// How an element type is stored: numpy's kind letter and bytes of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Format {
    kind: char,
    bytes: usize,
}

impl Format {
    fn of(ty: ElementType) -> Format {
        let bytes = (ty.bits() as usize).div_ceil(8);
        let kind = match ty.class() {
            TypeClass::Pred => 'b',
            TypeClass::Signed if !ty.is_sub_byte() => 'i',
            TypeClass::Float if matches!(ty, ElementType::F16 | ElementType::F32 | ElementType::F64) => 'f',
            TypeClass::Complex => 'c',
            TypeClass::Signed | TypeClass::Unsigned | TypeClass::Float => 'u',
        };
        Format { kind, bytes }
    }

    /// numpy's name.
    fn descr(self) -> String {
        format!("{}{}{}", if self.bytes == 1 { '|' } else { '<' }, self.kind, self.bytes)
    }

    /// Whether an array of type `descr` can hold this; then, whether it is big-endian. Raw bits may also be
    /// `V` (void), which is what numpy writes for the types of ml_dtypes.
    fn accepts(self, descr: &str) -> Option<bool> {
        let (order, rest) = match descr.chars().next()? {
            c @ ('<' | '>' | '|' | '=') => (c, &descr[1..]),
            _ => ('|', descr),
        };
        let kind = rest.chars().next()?;
        let bytes: usize = rest.get(kind.len_utf8()..)?.parse().ok()?;
        let same = kind == self.kind || self.kind == 'u' && kind == 'V' || self.kind == 'b' && kind == 'u';
        (same && bytes == self.bytes).then_some(order == '>' && bytes > 1)
    }
}

fn decode<T: BufferOf + Bits>(data: &[u8], bytes: usize) -> Buffer {
    T::wrap(
        data.chunks_exact(bytes)
            .map(|chunk| {
                let mut wide = [0u8; 16];
                wide[..bytes].copy_from_slice(chunk);
                T::from_bits(u128::from_le_bytes(wide))
            })
            .collect(),
    )
}

fn row_major(data: &[u8], shape: &[u64], bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut index = vec![0u64; shape.len()];
    for _ in 0..data.len() / bytes {
        let mut at = 0u64;
        for (i, d) in index.iter().zip(shape).rev() {
            at = at * d + i;
        }
        let at = at as usize * bytes;
        out.extend_from_slice(&data[at..at + bytes]);
        for (i, d) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < *d {
                break;
            }
            *i = 0;
        }
    }
    out
}

fn read_header(reader: &mut impl Read) -> Result<Header, String> {
    let damaged = |e: io::Error| format!("is damaged: {e}");
    let mut magic = [0u8; 8];
    reader.read_exact(&mut magic).map_err(damaged)?;
    if magic[..6] != *b"\x93NUMPY" {
        return Err("is not a .npy array".into());
    }
    let length = match magic[6] {
        1 => {
            let mut b = [0u8; 2];
            reader.read_exact(&mut b).map_err(damaged)?;
            u16::from_le_bytes(b) as usize
        }
        2 | 3 => {
            let mut b = [0u8; 4];
            reader.read_exact(&mut b).map_err(damaged)?;
            u32::from_le_bytes(b) as usize
        }
        v => return Err(format!("is a .npy array of version {v}, which is not known")),
    };
    if length > MAX_HEADER {
        return Err(format!("has a header of {length} bytes; {MAX_HEADER} are the most"));
    }
    let mut text = vec![0u8; length];
    reader.read_exact(&mut text).map_err(damaged)?;
    let text = String::from_utf8(text).map_err(|_| "has a header that is not text".to_owned())?;
    parse_header(&text).ok_or_else(|| format!("has a header that cannot be read: {}", text.trim_end()))
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
fn parse_header(text: &str) -> Option<Header> {
    let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    while !rest.is_empty() {
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (key, after) = rest[1..].split_once(quote)?;
        let value = after.trim_start().strip_prefix(':')?.trim_start();
        let after = match key {
            "descr" => {
                let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
                let (v, after) = value[1..].split_once(quote)?;
                descr = Some(v.to_owned());
                after
            }
            "fortran_order" => {
                let (v, after) = if let Some(after) = value.strip_prefix("True") {
                    (true, after)
                } else {
                    (false, value.strip_prefix("False")?)
                };
                fortran_order = Some(v);
                after
            }
            "shape" => {
                let (v, after) = value.strip_prefix('(')?.split_once(')')?;
                let dims = v.split(',').map(str::trim).filter(|d| !d.is_empty());
                shape =
                    Some(dims.map(|d| d.trim_end_matches('L').parse().ok()).collect::<Option<Vec<u64>>>()?);
                after
            }
            _ => return None,
        };
        rest = after.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    Some(Header { descr: descr?, fortran_order: fortran_order?, shape: shape? })
}

/// Writes arrays under their names, whole or not at all. Errors: [`Exit::Usage`] if the path cannot be
/// written.
pub fn write(path: &Path, arrays: &[(String, &ArrayLiteral)]) -> Result<(), Failure> {
    write_whole(path, |file| write_to(file, arrays))
}

fn write_to(file: impl Write + Seek, arrays: &[(String, &ArrayLiteral)]) -> io::Result<()> {
    let mut writer = Writer::of(file);
    for (name, array) in arrays {
        writer.add(name, &array.dims, &array.buffer)?;
    }
    writer.finish().map(drop)
}

/// Writes a file array by array.
pub struct Writer<W: Write + Seek = BufWriter<File>> {
    zip: ZipWriter<Latch<W>>,
}

impl Writer {
    /// Begins a file.
    pub fn new(file: File) -> Self {
        Self::of(BufWriter::new(file))
    }
}

impl<W: Write + Seek> Writer<W> {
    fn of(file: W) -> Self {
        Self { zip: ZipWriter::new(Latch { file, failed: None, offset: 0 }) }
    }

    /// Appends an array; no two may have the same name.
    pub fn add(&mut self, name: &str, dims: &[i64], buffer: &Buffer) -> io::Result<()> {
        let format = Format::of(buffer.element_type());
        let bytes = buffer.len() as u64 * format.bytes as u64;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(bytes >= u64::from(u32::MAX) - (1 << 20));
        self.zip.start_file(format!("{name}.npy"), options).map_err(of_zip)?;
        self.zip.write_all(&header_bytes(format, dims))?;
        hlo::with_buffer!(buffer, v => encode(&mut self.zip, v, format.bytes))
    }

    /// Ends the file, and gives what it was written to.
    pub fn finish(self) -> io::Result<W> {
        let mut latch = self.zip.finish().map_err(of_zip)?;
        latch.flush()?;
        latch.failed.map_or(Ok(latch.file), Err)
    }
}

/// A file that is given up after its first error: whatever is written then is taken and dropped. The library
/// completes a file where its writer is dropped, and would complain on its own if it could not.
struct Latch<W> {
    file: W,
    failed: Option<io::Error>,
    /// The position of the next byte, after an error.
    offset: u64,
}

impl<W: Write + Seek> Latch<W> {
    fn tried<T>(&mut self, instead: T, what: impl FnOnce(&mut W) -> io::Result<T>) -> io::Result<T> {
        if self.failed.is_some() {
            return Ok(instead);
        }
        what(&mut self.file).inspect_err(|e| self.failed = Some(copy_of(e)))
    }
}

/// The system's error beneath the library's.
fn of_zip(e: ZipError) -> io::Error {
    match e {
        ZipError::Io(e) => e,
        other => io::Error::other(other),
    }
}

/// The same error once more.
fn copy_of(e: &io::Error) -> io::Error {
    e.raw_os_error().map_or_else(|| io::Error::new(e.kind(), e.to_string()), io::Error::from_raw_os_error)
}

impl<W: Write + Seek> Write for Latch<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.offset = self.offset.saturating_add(bytes.len() as u64);
        self.tried(bytes.len(), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tried((), W::flush)
    }
}

impl<W: Write + Seek> Seek for Latch<W> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.offset = match to {
            io::SeekFrom::Start(offset) => offset,
            io::SeekFrom::End(by) | io::SeekFrom::Current(by) => self.offset.saturating_add_signed(by),
        };
        self.tried(self.offset, |file| file.seek(to))
    }
}

impl<W: Write + Seek> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

fn header_bytes(format: Format, dims: &[i64]) -> Vec<u8> {
    let mut shape: Vec<String> = dims.iter().map(i64::to_string).collect();
    if shape.len() == 1 {
        shape.push(String::new());
    }
    let mut text = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
        format.descr(),
        shape.join(", ")
    )
    .replace(", )", ",)");
    // numpy aligns the data to 64 bytes with spaces before a final newline.
    let unpadded = 10 + text.len() + 1;
    text.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    // Rank is at most 64, so the header fits 16 bits.
    bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn encode<T: Bits>(out: &mut impl Write, values: &[T], bytes: usize) -> io::Result<()> {
    let mut block = Vec::with_capacity(64 << 10);
    for chunk in values.chunks(4096) {
        block.clear();
        for v in chunk {
            block.extend_from_slice(&v.bits().to_le_bytes()[..bytes]);
        }
        out.write_all(&block)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn shape(ty: ElementType, dims: &[i64]) -> ArrayShape {
        ArrayShape::new(ty, dims)
    }

    fn sample(ty: ElementType) -> ArrayLiteral {
        fn fill<T: BufferOf + Bits>(n: u128, mask: u128) -> Buffer {
            T::wrap(
                (0..n)
                    .map(|i| T::from_bits(i.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835) & mask))
                    .collect(),
            )
        }
        let mask = if ty == ElementType::Pred { 1 } else { u128::MAX >> (128 - ty.bits()) };
        let buffer = hlo::with_element_type!(ty, T => fill::<T>(6, mask));
        ArrayLiteral::new([2i64, 3].into_iter().collect(), buffer).unwrap()
    }

    #[test]
    fn every_element_type_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("all.npz");
        let samples: Vec<ArrayLiteral> = ElementType::ALL.iter().map(|&t| sample(t)).collect();
        let named: Vec<(String, &ArrayLiteral)> =
            samples.iter().enumerate().map(|(i, a)| (format!("arg{i}"), a)).collect();
        write(&path, &named).unwrap();
        let mut npz = Npz::open(path.to_str().unwrap(), 1 << 20).unwrap();
        assert_eq!(npz.names()[..3], ["arg0", "arg1", "arg2"]);
        for (i, s) in samples.iter().enumerate() {
            assert_eq!(&npz.array(&format!("arg{i}"), &s.shape()).unwrap(), s, "{}", s.buffer.element_type());
        }
    }

    #[test]
    fn arrays_that_are_kept_count_together() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("three.npz");
        let one = sample(ElementType::F64);
        let (names, bytes) = (["arg0", "arg1", "arg2"].map(str::to_owned), one.buffer.bytes());
        write(&path, &names.clone().map(|name| (name, &one))).unwrap();
        let shape = one.shape();
        let read = |limit| {
            let wanted = names.clone().map(|name| (name, &shape));
            Npz::open(path.to_str().unwrap(), limit).unwrap().arrays(wanted)
        };
        assert_eq!(read(3 * bytes).unwrap(), [one.clone(), one.clone(), one.clone()]);
        let refused = read(3 * bytes - 1).unwrap_err();
        assert_eq!(refused.exit, Exit::Trap);
        let what =
            "arg2: f64[2,3] is larger than what the memory limit leaves beside 96 bytes of arrays before it";
        assert!(refused.message.ends_with(what), "{}", refused.message);
        // One at a time they need only be small enough each.
        let mut npz = Npz::open(path.to_str().unwrap(), bytes).unwrap();
        assert!(names.iter().all(|name| npz.array(name, &shape).is_ok()));
    }

    #[test]
    fn headers_as_numpy_writes_them() {
        // numpy.save of float32 zeros of shape (3,), () and (2, 3).
        let text = |dims: &[i64]| {
            String::from_utf8(header_bytes(Format { kind: 'f', bytes: 4 }, dims)[10..].to_vec()).unwrap()
        };
        assert_eq!(text(&[3]).trim_end(), "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }");
        assert_eq!(text(&[]).trim_end(), "{'descr': '<f4', 'fortran_order': False, 'shape': (), }");
        assert_eq!(text(&[2, 3]).trim_end(), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
        assert_eq!(header_bytes(Format { kind: 'f', bytes: 4 }, &[2, 3]).len() % 64, 0);
    }

    #[test]
    fn header_forms() {
        let parse = |t: &str| parse_header(t).map(|h| (h.descr, h.fortran_order, h.shape));
        assert_eq!(
            parse("{'descr': '|b1', 'fortran_order': True, 'shape': (2, 3L), }  \n"),
            Some(("|b1".into(), true, vec![2, 3]))
        );
        assert_eq!(
            parse("{\"shape\":(),\"descr\":\">f8\",\"fortran_order\":False}"),
            Some((">f8".into(), false, vec![]))
        );
        for bad in [
            "",
            "{",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}",
            "{'shape': (-1,)}",
            "{'descr': '<f4', 'fortran_order': Maybe, 'shape': ()}",
            "{'descr': '<f4'}",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    /// A zip with one stored entry of these bytes.
    fn archive(name: &str, content: &[u8]) -> (tempfile::TempDir, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npz");
        let mut zip = ZipWriter::new(File::create(&path).unwrap());
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        zip.start_file(name, options).unwrap();
        zip.write_all(content).unwrap();
        zip.finish().unwrap();
        let text = path.to_str().unwrap().to_owned();
        (dir, text)
    }

    fn npy(descr: &str, fortran: &str, dims: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {dims}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    #[test]
    fn order_of_bytes_and_of_elements() {
        let data: Vec<u8> = [1f32, 2., 3., 4., 5., 6.].iter().flat_map(|x| x.to_be_bytes()).collect();
        let (_dir, path) = archive("arg0.npy", &npy(">f4", "True", "(2, 3)", &data));
        let read =
            Npz::open(&path, 1 << 20).unwrap().array("arg0", &shape(ElementType::F32, &[2, 3])).unwrap();
        assert_eq!(*read.buffer, Buffer::F32(vec![1., 3., 5., 2., 4., 6.]));
        let (_dir, path) = archive("arg0.npy", &npy("|V2", "False", "(1,)", &[0x80, 0x3f]));
        let read = Npz::open(&path, 1 << 20).unwrap().array("arg0", &shape(ElementType::BF16, &[1])).unwrap();
        assert_eq!(*read.buffer, Buffer::BF16(vec![hlo::half::bf16::ONE]));
    }

    #[test]
    fn what_does_not_fit_is_one_clear_error() {
        let cases: &[(Vec<u8>, ElementType, &[i64], &str)] = &[
            (
                npy("<f4", "False", "(2,)", &[0; 8]),
                ElementType::F32,
                &[3],
                "arg0: has dimensions [2], but the program's f32[3] needs [3]",
            ),
            (
                npy("<f8", "False", "(1,)", &[0; 8]),
                ElementType::F32,
                &[1],
                "arg0: has type <f8, but the program's f32[1] needs <f4",
            ),
            (
                npy("<f2", "False", "(1,)", &[0; 2]),
                ElementType::BF16,
                &[1],
                "arg0: has type <f2, but the program's bf16[1] needs <u2",
            ),
            (
                npy("<f4", "False", "(2,)", &[0; 7]),
                ElementType::F32,
                &[2],
                "arg0: is cut short: 7 of 8 bytes",
            ),
            (
                npy("<f4", "False", "(2,)", &[0; 9]),
                ElementType::F32,
                &[2],
                "arg0: has more than the 8 bytes of its dimensions",
            ),
            (
                npy("|b1", "False", "(2,)", &[1, 2]),
                ElementType::Pred,
                &[2],
                "arg0: element 1 is 2, but a pred is 0 or 1",
            ),
            (b"hello, world".to_vec(), ElementType::F32, &[2], "arg0: is not a .npy array"),
            (
                b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(),
                ElementType::F32,
                &[2],
                "arg0: has a header of 4294967295 bytes; 65536 are the most",
            ),
            (b"\x93NUM".to_vec(), ElementType::F32, &[2], "arg0: is damaged: failed to fill whole buffer"),
        ];
        for (content, ty, dims, expected) in cases {
            let (_dir, path) = archive("arg0.npy", content);
            let failure = Npz::open(&path, 1 << 20).unwrap().array("arg0", &shape(*ty, dims)).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage, "{expected}");
            assert_eq!(failure.message, format!("{path}: {expected}"));
        }
    }

    #[test]
    fn missing_arrays_and_files_that_are_not_archives() {
        let (_dir, path) = archive("arg1.npy", &npy("<f4", "False", "(1,)", &[0; 4]));
        let failure =
            Npz::open(&path, 1 << 20).unwrap().array("arg0", &shape(ElementType::F32, &[1])).unwrap_err();
        assert_eq!(failure.message, format!("{path}: no array arg0 (it has arg1)"));
        fs::write(&path, b"not a zip").unwrap();
        let failure = Npz::open(&path, 1 << 20).map(|_| ()).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.message.starts_with(&format!("{path}: not an .npz file: ")), "{}", failure.message);
    }

    #[test]
    fn a_lying_header_costs_no_memory() {
        let (_dir, path) = archive("arg0.npy", &npy("<f4", "False", "(1099511627776,)", &[0; 4]));
        let big = shape(ElementType::F32, &[1 << 40]);
        assert_eq!(Npz::open(&path, 1 << 30).unwrap().array("arg0", &big).unwrap_err().exit, Exit::Trap);
        let failure = Npz::open(&path, u64::MAX).unwrap().array("arg0", &big).unwrap_err();
        assert_eq!(failure.message, format!("{path}: arg0: is cut short: 4 of 4398046511104 bytes"));
    }
}
