//! Traces: the value of every executed instruction, in a form that two runs can be compared by.
//!
//! A trace is a folder with two files.
//! - `index.jsonl`: a [`Head`] and then one [`Record`] a line, in order of execution; of several devices one
//!   after the other.
//! - `values.npz`: the arrays themselves, each once, under the name that [`Array::file`] gives
//!   (`HASH.f32.2x3`). Arrays larger than the limit are not in it, nor any if only summaries were asked for.
//!
//! **Invariants:** a record depends on the program, its inputs and options alone: there are no times in it,
//! so that traces of equal runs are equal byte for byte. Both files are complete or absent: they are written
//! under other names, and an older trace is there until then.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hlo::{ArrayLiteral, ArrayShape};
use hlo_interp::observe::{Flow, Observer, Site};
use hlo_interp::{Device, Tensor, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::summary::Summary;
use hlo_system::exit::Failure;
use hlo_system::files::{Part, describe, open_regular};
use hlo_system::npz::{Npz, Writer};

/// The version of the format.
pub const VERSION: u32 = 1;
/// The file of records.
pub const INDEX: &str = "index.jsonl";
/// The file of arrays.
pub const VALUES: &str = "values.npz";

/// The first line of an index.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Head {
    /// [`VERSION`].
    pub hlo_trace: u32,
    /// Name of the program.
    pub module: String,
}

/// One executed instruction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// The name of its computation.
    pub computation: String,
    /// Its opcode.
    pub opcode: String,
    /// How often it ran before.
    pub execution: u64,
    /// Replica and partition.
    pub device: (u32, u32),
    /// The calls that led here, outermost first: instruction, and the iteration if it is a loop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<(String, u64)>,
    /// The arrays of its value, tuples flattened in order, tokens left out.
    pub arrays: Vec<Array>,
}

/// One array of a value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Array {
    /// `f32`.
    #[serde(rename = "type")]
    pub element_type: String,
    /// Dimensions.
    pub shape: Vec<i64>,
    /// What there is in it.
    #[serde(flatten)]
    pub summary: Summary,
    /// Its name in `values.npz`, if it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl Array {
    /// Type and dimensions, if the type exists.
    pub fn array_shape(&self) -> Option<ArrayShape> {
        hlo::ElementType::from_name(&self.element_type).map(|ty| ArrayShape::new(ty, &self.shape))
    }

    /// The same type, dimensions and bits.
    pub fn same(&self, other: &Array) -> bool {
        self.element_type == other.element_type
            && self.shape == other.shape
            && self.summary.hash == other.summary.hash
    }
}

/// Writes a trace.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    /// Arrays of more bytes than this get a summary only.
    limit: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    index: Part,
    /// Of each device the lines so far, in files without a name.
    parts: FxHashMap<Device, BufWriter<File>>,
    values: Option<(Part, Writer)>,
    written: FxHashSet<String>,
    records: u64,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

/// What a finished trace has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// Records.
    pub records: u64,
    /// Arrays in `values.npz`.
    pub arrays: u64,
}

impl Recorder {
    /// Begins a trace in a folder, which is made if it is not there; `limit` 0 keeps summaries only.
    /// Errors: wrong usage if it cannot be written, or has other files than those of a trace.
    pub fn create(folder: &Path, limit: u64) -> Result<Self, Failure> {
        let fail = |e: &io::Error| cannot_write(folder, e);
        fs::create_dir_all(folder).map_err(|e| fail(&e))?;
        for entry in fs::read_dir(folder).map_err(|e| fail(&e))? {
            let name = entry.map_err(|e| fail(&e))?.file_name();
            let is_part = [INDEX, VALUES].iter().any(|file| Part::is_of(&name, &folder.join(file)));
            if name != INDEX && name != VALUES && !is_part {
                let message = format!(
                    "{}: is not a trace: it has {}; name a new folder",
                    folder.display(),
                    name.display()
                );
                return Err(Failure::usage(message));
            }
        }
        let index = Part::of(&folder.join(INDEX)).map_err(|e| fail(&e))?;
        let values = || -> io::Result<_> {
            let part = Part::of(&folder.join(VALUES))?;
            let writer = Writer::new(part.file()?);
            Ok((part, writer))
        };
        let values = if limit == 0 { None } else { Some(values().map_err(|e| fail(&e))?) };
        let state = State {
            index,
            parts: FxHashMap::default(),
            values,
            written: FxHashSet::default(),
            records: 0,
            failed: None,
        };
        Ok(Self { folder: folder.to_owned(), limit, state: Mutex::new(state) })
    }

    /// Ends the trace. Errors: wrong usage if something could not be written.
    pub fn finish(self, module: &str) -> Result<Written, Failure> {
        let folder = self.folder;
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let done = Written { records: state.records, arrays: state.written.len() as u64 };
        finish(&folder, state, module).map_err(|e| cannot_write(&folder, &e))?;
        Ok(done)
    }
}

fn cannot_write(folder: &Path, e: &io::Error) -> Failure {
    Failure::usage(format!("{}: cannot be written: {}", folder.display(), describe(e)))
}

fn finish(folder: &Path, state: State, module: &str) -> io::Result<()> {
    if let Some(e) = state.failed {
        return Err(e);
    }
    let mut index = BufWriter::new(state.index.file()?);
    serde_json::to_writer(&mut index, &Head { hlo_trace: VERSION, module: module.to_owned() })?;
    index.write_all(b"\n")?;
    let mut parts: Vec<(Device, BufWriter<File>)> = state.parts.into_iter().collect();
    parts.sort_by_key(|(device, _)| (device.replica, device.partition));
    for (_, lines) in parts {
        let mut lines = lines.into_inner()?;
        lines.rewind()?;
        io::copy(&mut lines, &mut index)?;
    }
    index.flush()?;
    // Arrays first: an index that names some which are not there is no trace.
    let has_values = state.values.is_some();
    if let Some((part, writer)) = state.values {
        writer.finish()?;
        part.complete()?;
    }
    state.index.complete()?;
    if !has_values {
        match fs::remove_file(folder.join(VALUES)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

impl Observer for Recorder {
    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        let mut arrays = Vec::new();
        collect(result, &mut arrays);
        let described: Vec<Array> = arrays.iter().map(|t| self.describe(t)).collect();
        let instr = site.instr();
        let record = Record {
            name: instr.name.to_string(),
            computation: site.module.computation(site.computation()).name.to_string(),
            opcode: instr.opcode.name().to_owned(),
            execution: site.execution,
            device: (site.device.replica, site.device.partition),
            calls: site
                .calls()
                .map(|c| (site.module.instr(c.caller).name.to_string(), c.iteration))
                .collect(),
            arrays: described,
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.failed.is_none()
            && let Err(e) = state.write(&self.folder, site.device, &record, &arrays)
        {
            state.failed = Some(e);
        }
        Flow::Continue
    }
}

impl Recorder {
    fn describe(&self, tensor: &Tensor) -> Array {
        let summary = Summary::of(tensor.buffer());
        let (ty, shape) = (tensor.element_type().name(), tensor.dims().to_vec());
        let file = (tensor.bytes() <= self.limit && self.limit > 0).then(|| {
            let dims: Vec<String> = shape.iter().map(i64::to_string).collect();
            format!("{}.{ty}.{}", summary.hash, dims.join("x"))
        });
        Array { element_type: ty.to_owned(), shape, summary, file }
    }
}

impl State {
    fn write(
        &mut self,
        folder: &Path,
        device: Device,
        record: &Record,
        arrays: &[&Tensor],
    ) -> io::Result<()> {
        let index = match self.parts.entry(device) {
            std::collections::hash_map::Entry::Occupied(e) => e.into_mut(),
            std::collections::hash_map::Entry::Vacant(e) => {
                e.insert(BufWriter::new(tempfile::tempfile_in(folder)?))
            }
        };
        serde_json::to_writer(&mut *index, record)?;
        index.write_all(b"\n")?;
        self.records += 1;
        for (array, tensor) in record.arrays.iter().zip(arrays) {
            if let (Some(name), Some((_, values))) = (&array.file, &mut self.values)
                && self.written.insert(name.clone())
            {
                values.add(name, tensor.dims(), tensor.buffer())?;
            }
        }
        Ok(())
    }
}

fn collect<'a>(value: &'a Value, out: &mut Vec<&'a Tensor>) {
    match value {
        Value::Array(t) => out.push(t),
        Value::Tuple(t) => t.iter().for_each(|v| collect(v, out)),
        Value::Token | Value::Pending(_) => {}
    }
}

/// A trace that was written.
#[derive(Debug)]
pub struct Trace {
    /// The folder, as the person named it.
    pub folder: String,
    /// The first line.
    pub head: Head,
    /// The others.
    pub records: Vec<Record>,
}

impl Trace {
    /// Reads the index of a trace. Errors: wrong usage, with the line.
    pub fn open(folder: &str) -> Result<Self, Failure> {
        let path = Path::new(folder).join(INDEX);
        let fail = |what: String| Failure::usage(format!("{}: {what}", path.display()));
        let file = open_regular(&path).map_err(|e| fail(format!("cannot be read: {}", describe(&e))))?;
        let mut lines = BufReader::new(file).lines();
        let line = |n: usize, line: io::Result<String>| {
            line.map_err(|e| fail(format!("line {n}: cannot be read: {}", describe(&e))))
        };
        let bad = |n: usize, e: serde_json::Error| fail(format!("line {n}: not a record of a trace: {e}"));
        let first = lines.next().ok_or_else(|| fail("is empty".into()))?;
        let head: Head = serde_json::from_str(&line(1, first)?).map_err(|e| bad(1, e))?;
        if head.hlo_trace != VERSION {
            return Err(fail(format!("is of version {}; this program reads {VERSION}", head.hlo_trace)));
        }
        let mut records = Vec::new();
        for (n, text) in (2..).zip(lines) {
            records.push(serde_json::from_str(&line(n, text)?).map_err(|e| bad(n, e))?);
        }
        Ok(Self { folder: folder.to_owned(), head, records })
    }

    /// Its arrays; of more than `limit` bytes none is read. Errors: wrong usage if the file cannot be read.
    pub fn values(&self, limit: u64) -> Result<Values, Failure> {
        let path = Path::new(&self.folder).join(VALUES);
        let any = self.records.iter().any(|r| r.arrays.iter().any(|a| a.file.is_some()));
        Ok(Values { npz: if any { Some(Npz::open(&path, limit)?) } else { None } })
    }
}

/// The arrays of a trace.
pub struct Values {
    npz: Option<Npz>,
}

impl Values {
    /// One array, if the trace has its values. Errors: wrong usage if it is not what the index says.
    pub fn get(&mut self, array: &Array) -> Result<Option<ArrayLiteral>, Failure> {
        match (&mut self.npz, &array.file, array.array_shape()) {
            (Some(npz), Some(file), Some(shape)) => npz.array(file, &shape).map(Some),
            (_, _, _) => Ok(None),
        }
    }
}
