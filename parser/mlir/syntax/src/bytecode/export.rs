//! What `jax.export` serializes: a flatbuffer with a portable artifact and the types of its arguments and
//! results.
//!
//! A flatbuffer is tables at offsets from each other. A table starts with the distance back to its list of
//! fields, which gives each field's offset in the table, 0 if it is absent. **Invariant:** every offset is
//! checked before anything is read at it. Many offsets may refer to one entry: what that makes is counted,
//! and is at most 16 times the size of the file.

use std::cell::Cell;

use hlo::Span;
use hlo::diag::codes::bytecode as codes;
use hlo::diag::{Diagnostic, Diagnostics};

/// A serialized export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// The name of the function.
    pub name: String,
    /// The version of the conventions by which the artifact's function is called.
    pub calling_convention_version: u16,
    /// The number of devices.
    pub devices: u32,
    /// Platforms that it was lowered for: `cpu`, `cuda`. Of several, the first argument of the function says
    /// which.
    pub platforms: Vec<String>,
    /// Types of the arguments.
    pub inputs: Vec<Aval>,
    /// Types of the results.
    pub outputs: Vec<Aval>,
    /// Which arguments the artifact's function has; others have no effect.
    pub kept_inputs: Vec<u16>,
    /// Whether the function takes constants that are not in the artifact.
    pub uses_global_constants: bool,
    /// Whether the function's vector-Jacobian product is there, too.
    pub has_vjp: bool,
    /// Where the portable artifact is in the file.
    pub artifact: std::ops::Range<usize>,
}

/// The type of an argument or result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Aval {
    /// An array.
    Array {
        /// Sizes of dimensions, as text: of a symbolic one an expression, `2*n`.
        shape: Vec<String>,
        /// The element type, as in StableHLO: `f32`, `ui8`. A key of random numbers is `key<...>`, JAX's
        /// float0 `f0`.
        element: &'static str,
    },
    /// A token, which orders effects.
    Token,
}

/// Element types by their number.
const ELEMENTS: [&str; 30] = [
    "i1",
    "i8",
    "i16",
    "i32",
    "i64",
    "ui8",
    "ui16",
    "ui32",
    "ui64",
    "f16",
    "f32",
    "f64",
    "complex<f32>",
    "complex<f64>",
    "bf16",
    "i4",
    "ui4",
    "f8E4M3B11FNUZ",
    "f8E4M3FN",
    "f8E4M3FNUZ",
    "f8E5M2",
    "f8E5M2FNUZ",
    "f0",
    "f8E4M3",
    "f8E3M4",
    "f8E8M0FNU",
    "f4E2M1FN",
    "key<fry>",
    "key<rbg>",
    "key<unsafe_rbg>",
];

/// Fields of the outermost table.
mod field {
    pub(super) const NAME: usize = 1;
    pub(super) const INPUTS: usize = 3;
    pub(super) const OUTPUTS: usize = 5;
    /// 16 bits, of old files.
    pub(super) const DEVICES_SHORT: usize = 6;
    pub(super) const PLATFORMS: usize = 9;
    pub(super) const ARTIFACT: usize = 13;
    pub(super) const CALLING_CONVENTION: usize = 14;
    pub(super) const KEPT_INPUTS: usize = 15;
    pub(super) const USES_GLOBAL_CONSTANTS: usize = 16;
    pub(super) const VJP: usize = 17;
    pub(super) const DEVICES: usize = 18;
    pub(super) const AVALS: usize = 19;
    pub(super) const INPUT_INDICES: usize = 22;
    pub(super) const OUTPUT_INDICES: usize = 23;
}

/// Fields of a type.
mod aval {
    pub(super) const KIND: usize = 0;
    pub(super) const SHAPE: usize = 1;
    pub(super) const ELEMENT: usize = 2;
    pub(super) const TOKEN: u8 = 1;
}

type Fallible<T> = Result<T, Box<Diagnostic>>;

/// Reads what `jax.export` serialized.
pub fn read(file: &[u8]) -> Result<Export, Diagnostics> {
    read_export(file).map_err(|error| Diagnostics::from(*error))
}

/// Whether a file may be a serialized export: its first offset leads to a table whose artifact is bytecode.
pub fn is_export(file: &[u8]) -> bool {
    let artifact = || {
        let left = Cell::new(0);
        Bytes { file, left: &left }.root()?.vector(field::ARTIFACT, 1)
    };
    matches!(artifact(), Ok(Some((start, length))) if super::is_bytecode(&file[start..start + length]))
}

fn read_export(file: &[u8]) -> Fallible<Export> {
    let left = Cell::new(file.len().saturating_mul(MADE_PER_BYTE));
    let bytes = Bytes { file, left: &left };
    let root = bytes.root()?;
    let Some((start, length)) = root.vector(field::ARTIFACT, 1)? else {
        return Err(error(root.at, "the export has no portable artifact"));
    };
    // New files have each type once, and lists of indices; old ones lists of types.
    let types = |indices: usize, list: usize| -> Fallible<Vec<Aval>> {
        let Some((start, count)) = root.vector(indices, 4)?.filter(|found| found.1 > 0) else {
            return (0..root.count(list)?).map(|at| read_aval(root.element(list, at)?)).collect();
        };
        (0..count)
            .map(|at| {
                let index = bytes.u32(start + 4 * at)? as usize;
                if index >= root.count(field::AVALS)? {
                    return Err(error(start + 4 * at, format!("type {index} is named, and there is none")));
                }
                read_aval(root.element(field::AVALS, index)?)
            })
            .collect()
    };
    let kept_inputs = match root.vector(field::KEPT_INPUTS, 2)? {
        Some((start, count)) => (0..count).map(|at| bytes.u16(start + 2 * at)).collect::<Fallible<_>>()?,
        None => Vec::new(),
    };
    let devices = match root.scalar(field::DEVICES)? {
        Some(at) => bytes.u32(at)?,
        None => root.scalar(field::DEVICES_SHORT)?.map(|at| bytes.u16(at)).transpose()?.unwrap_or(0).into(),
    };
    Ok(Export {
        name: root.text(field::NAME)?.unwrap_or_default(),
        calling_convention_version: root
            .scalar(field::CALLING_CONVENTION)?
            .map(|at| bytes.u16(at))
            .transpose()?
            .unwrap_or(0),
        devices,
        platforms: root.texts(field::PLATFORMS)?,
        inputs: types(field::INPUT_INDICES, field::INPUTS)?,
        outputs: types(field::OUTPUT_INDICES, field::OUTPUTS)?,
        kept_inputs,
        uses_global_constants: root.byte(field::USES_GLOBAL_CONSTANTS)?.unwrap_or(0) != 0,
        has_vjp: root.scalar(field::VJP)?.is_some(),
        artifact: start..start + length,
    })
}

fn read_aval(table: Table<'_>) -> Fallible<Aval> {
    table.bytes.make(table.at, 4)?;
    match table.byte(aval::KIND)?.unwrap_or(0) {
        0 => {}
        aval::TOKEN => return Ok(Aval::Token),
        kind => {
            return Err(error(table.at, format!("types are arrays or tokens, this one is of kind {kind}")));
        }
    }
    let number = table.byte(aval::ELEMENT)?.unwrap_or(0);
    let Some(&element) = ELEMENTS.get(usize::from(number)) else {
        return Err(error(table.at, format!("{number} is no element type")));
    };
    Ok(Aval::Array { shape: table.texts(aval::SHAPE)?, element })
}

#[cold]
fn error(at: usize, message: impl Into<String>) -> Box<Diagnostic> {
    let note = format!("at byte {at} of the file");
    Box::new(Diagnostic::error(codes::BAD_EXPORT, Span::new(at, at + 1), message).note(note))
}

/// Bytes that are made of each byte of the file.
const MADE_PER_BYTE: usize = 16;

#[derive(Clone, Copy)]
struct Bytes<'a> {
    file: &'a [u8],
    /// Bytes that may still be made.
    left: &'a Cell<usize>,
}

/// A table of the flatbuffer.
#[derive(Clone, Copy)]
struct Table<'a> {
    bytes: Bytes<'a>,
    at: usize,
    /// Its list of fields, and the length of that list in bytes.
    fields: usize,
    fields_length: usize,
}

impl<'a> Bytes<'a> {
    fn take<const N: usize>(&self, at: usize) -> Fallible<[u8; N]> {
        match at.checked_add(N).and_then(|end| self.file.get(at..end)).and_then(|b| b.try_into().ok()) {
            Some(bytes) => Ok(bytes),
            None => Err(error(at.min(self.file.len()), "an offset leaves the file")),
        }
    }

    /// Counts bytes that are made.
    fn make(&self, at: usize, bytes: usize) -> Fallible<()> {
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(error(at, "written out, the export takes more than 16 times the size of the file")),
        }
    }

    fn u16(&self, at: usize) -> Fallible<u16> {
        Ok(u16::from_le_bytes(self.take(at)?))
    }

    fn u32(&self, at: usize) -> Fallible<u32> {
        Ok(u32::from_le_bytes(self.take(at)?))
    }

    /// What the offset of an entry refers to.
    fn follow(&self, at: usize) -> Fallible<usize> {
        Ok(at.saturating_add(self.u32(at)? as usize))
    }

    fn root(&self) -> Fallible<Table<'a>> {
        self.table(self.follow(0)?)
    }

    fn table(&self, at: usize) -> Fallible<Table<'a>> {
        let back = i32::from_le_bytes(self.take(at)?);
        let fields = usize::try_from(at as i64 - i64::from(back)).unwrap_or(usize::MAX);
        let fields_length = usize::from(self.u16(fields)?);
        Ok(Table { bytes: *self, at, fields, fields_length })
    }

    fn text(&self, at: usize) -> Fallible<String> {
        let length = self.u32(at)? as usize;
        let start = at + 4;
        match start.checked_add(length).and_then(|end| self.file.get(start..end)) {
            Some(bytes) => {
                self.make(at, bytes.len() + 4)?;
                match std::str::from_utf8(bytes) {
                    Ok(text) => Ok(text.to_owned()),
                    Err(_) => Err(error(start, "a string is not UTF-8")),
                }
            }
            None => Err(error(at, format!("a string of {length} bytes leaves the file"))),
        }
    }
}

impl<'a> Table<'a> {
    /// Where a field's value is.
    fn scalar(&self, field: usize) -> Fallible<Option<usize>> {
        // The length of the list and the size of the table stand before the fields.
        let at = 4 + 2 * field;
        if at + 2 > self.fields_length {
            return Ok(None);
        }
        Ok(match self.bytes.u16(self.fields + at)? {
            0 => None,
            offset => Some(self.at + usize::from(offset)),
        })
    }

    fn byte(&self, field: usize) -> Fallible<Option<u8>> {
        self.scalar(field)?.map(|at| self.bytes.take::<1>(at).map(|[byte]| byte)).transpose()
    }

    /// The start of a vector's elements, and how many there are.
    fn vector(&self, field: usize, element: usize) -> Fallible<Option<(usize, usize)>> {
        let Some(at) = self.scalar(field)? else { return Ok(None) };
        let at = self.bytes.follow(at)?;
        let count = self.bytes.u32(at)? as usize;
        let left = self.bytes.file.len() - at - 4;
        if count > left / element {
            return Err(error(at, format!("a list of {count} elements leaves the file")));
        }
        Ok(Some((at + 4, count)))
    }

    fn count(&self, field: usize) -> Fallible<usize> {
        Ok(self.vector(field, 4)?.map_or(0, |found| found.1))
    }

    /// An element of a list of tables.
    fn element(&self, field: usize, index: usize) -> Fallible<Table<'a>> {
        match self.vector(field, 4)? {
            Some((start, count)) if index < count => self.bytes.table(self.bytes.follow(start + 4 * index)?),
            _ => Err(error(self.at, "a list has fewer elements than named")),
        }
    }

    fn text(&self, field: usize) -> Fallible<Option<String>> {
        let Some(at) = self.scalar(field)? else { return Ok(None) };
        Ok(Some(self.bytes.text(self.bytes.follow(at)?)?))
    }

    fn texts(&self, field: usize) -> Fallible<Vec<String>> {
        let Some((start, count)) = self.vector(field, 4)? else { return Ok(Vec::new()) };
        (0..count).map(|at| self.bytes.text(self.bytes.follow(start + 4 * at)?)).collect()
    }
}
