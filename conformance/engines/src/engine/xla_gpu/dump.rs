//! What XLA:GPU left of a program in a folder, read and checked: optimized HLO, launch list, buffer
//! assignment, PTX.
//!
//! The parts are `PREFIXsm_*after_optimizations.txt`, `...-buffer-assignment.txt`,
//! `PREFIX*thunk_sequence.txt` and `PREFIX*.ptx`; the prefix is `module_0001.jit_f.` in a folder as
//! `--xla_dump_to` fills it, and may be empty. **Invariants:** every kernel that is launched is in the PTX
//! and has as many parameters as its instruction has operands and results; the optimized module verifies.

use std::fs;
use std::path::{Path, PathBuf};

use hlo::{ArrayShape, AttrKey, AttrValue, ConstantValue, InstrId, Module, Opcode, Shape};
use hlo_interp::Tensor;
use hlo_ptx::{Loaded, Memory};
use rustc_hash::FxHashMap;

use super::buffers::{self, Slice};
use super::layout;
use super::names::Names;
use super::schedule::{self, sorts};
use super::thunks::{self, KernelLaunch};
use crate::frontend;
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::read_source;

/// A program as XLA:GPU compiled it.
#[derive(Debug)]
pub(super) struct Dump {
    /// The optimized module.
    pub(super) module: Module,
    /// The file that it is from.
    pub(super) file: String,
    /// By instruction, what it launches.
    pub(super) kernels: Vec<Option<Kernel>>,
    /// The PTX, by number.
    pub(super) ptx: Vec<Ptx>,
}

/// One PTX file.
#[derive(Debug)]
pub(super) struct Ptx {
    /// Name of the file.
    pub(super) file: String,
    /// Its text.
    pub(super) text: String,
    /// The module with its variables in `memory`.
    pub(super) loaded: Loaded,
    /// Memory before any launch: the variables.
    pub(super) memory: Memory,
}

/// The kernels of an instruction.
#[derive(Debug)]
pub(super) struct Kernel {
    /// Each launch with the number of its PTX.
    pub(super) launches: Vec<(usize, KernelLaunch)>,
    /// The arrays that the parameters point to.
    pub(super) arguments: Vec<Argument>,
    /// For each array of the result the operand that it begins as: a sort works where its result is.
    pub(super) begins_as: Vec<Option<usize>>,
}

/// The operand or result that an argument is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Of {
    /// That of the operand of this number.
    Operand(usize),
    /// That of the result.
    Result,
}

/// An array that a kernel is given.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    /// Whose.
    pub(super) of: Of,
    /// Which leaf of it.
    pub(super) leaf: usize,
    /// Type and layout.
    pub(super) shape: ArrayShape,
    /// Its slice of the buffer assignment; `None`: unknown.
    pub(super) slice: Option<Slice>,
}

/// The files of a dump.
struct Files {
    optimized: PathBuf,
    assignment: PathBuf,
    thunks: PathBuf,
    ptx: Vec<PathBuf>,
}

const OPTIMIZED: &str = "after_optimizations.txt";
const ASSIGNMENT: &str = "after_optimizations-buffer-assignment.txt";
const THUNKS: &str = "thunk_sequence.txt";

/// The folder and the prefix of the parts that a path means: a folder, or `FOLDER/PREFIX`.
fn folder_and_prefix(path: &str) -> (PathBuf, String) {
    let path = Path::new(path);
    if path.is_dir() {
        return (path.to_owned(), String::new());
    }
    let prefix = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    (folder.to_owned(), prefix)
}

impl Files {
    fn find(path: &str) -> Result<Files, Failure> {
        let (folder, prefix) = folder_and_prefix(path);
        let cannot = |e: &std::io::Error| {
            Failure::usage(format!(
                "{}: cannot be read: {}",
                folder.display(),
                hlo_system::files::describe(e)
            ))
        };
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder).map_err(|e| cannot(&e))? {
            let name = entry.map_err(|e| cannot(&e))?.file_name().to_string_lossy().into_owned();
            if name.starts_with(&prefix) {
                names.push(name);
            }
        }
        names.sort();
        let one = |what: &str, ends: &[&str], within: &str| -> Result<String, Failure> {
            let fits = |n: &&String| n.starts_with(within) && ends.iter().any(|end| n.ends_with(end));
            let found: Vec<&String> = names.iter().filter(fits).collect();
            match found[..] {
                [one] => Ok(one.clone()),
                [] => Err(Failure::usage(format!(
                    "{path}: is no dump of XLA:GPU: there is no {what} (`{}`)",
                    ends.iter().map(|e| format!("*{e}")).collect::<Vec<_>>().join("`, `")
                ))),
                [first, ..] => Err(Failure::usage(format!(
                    "{path}: has several programs; name one by how its files begin, such as {}",
                    folder.join(prefix_of(first)).display()
                ))),
            }
        };
        let optimized = one("optimized HLO", &[OPTIMIZED], "")?;
        let within = prefix_of(&optimized).to_owned();
        let assignment = one("buffer assignment", &[ASSIGNMENT], &within)?;
        let thunks = one("launch list", &[THUNKS], &within)?;
        let is_ptx = |n: &&String| n.starts_with(&within) && n.ends_with(".ptx");
        let ptx = names.iter().filter(is_ptx).map(|n| folder.join(n)).collect();
        let [optimized, assignment, thunks] = [optimized, assignment, thunks].map(|n| folder.join(n));
        Ok(Files { optimized, assignment, thunks, ptx })
    }
}

/// `module_0001.jit_f.` of `module_0001.jit_f.sm_9.0_gpu_after_optimizations.txt`.
fn prefix_of(name: &str) -> &str {
    let end = name.find("sm_").unwrap_or_else(|| name.find(OPTIMIZED).unwrap_or(0));
    &name[..end]
}

fn text(path: &Path) -> Result<String, Failure> {
    // A name that is not UTF-8 is shown with what stands for its bytes, and not found.
    read_source(&path.to_string_lossy()).map(|source| source.text)
}

impl Dump {
    /// Reads and checks a dump. Errors: [`Exit::Usage`] for parts that are missing, [`Exit::Parse`] and
    /// [`Exit::Verify`] for what is wrong with one, with file and line.
    pub(super) fn read(path: &str) -> Result<Dump, Failure> {
        Self::read_changed(path, &|_, text| text)
    }

    /// The same with other PTX: each text is what `change` makes of a file's name and text.
    pub(super) fn read_changed(path: &str, change: &dyn Fn(&str, String) -> String) -> Result<Dump, Failure> {
        let files = Files::find(path)?;
        let program = frontend::load(&files.optimized.to_string_lossy()).map_err(|r| r.failure(false))?;
        let module = program.module;
        let at = |file: &Path, line: usize, exit: Exit, message: &str| match line {
            0 => Failure::new(exit, format!("{}: {message}", file.display())),
            _ => Failure::new(exit, format!("{}: line {line}: {message}", file.display())),
        };
        let list = thunks::parse(&text(&files.thunks)?)
            .map_err(|bad| at(&files.thunks, bad.line, Exit::Parse, &bad.message))?;
        let slices = buffers::parse(&text(&files.assignment)?)
            .map_err(|(line, message)| at(&files.assignment, line, Exit::Parse, &message))?;
        let assigned = schedule::assign(&module, &list)
            .map_err(|misfit| at(&files.thunks, misfit.line, Exit::Verify, &misfit.message))?;
        let mut ptx = Vec::new();
        for file in &files.ptx {
            ptx.push(load(file, &module, change)?);
        }
        let mut known: FxHashMap<&str, usize> = FxHashMap::default();
        for (number, p) in ptx.iter().enumerate() {
            for kernel in p.loaded.module.kernels() {
                if let Some(other) = known.insert(kernel, number) {
                    let message = format!("the kernel `{kernel}` is in {} too", ptx[other].file);
                    return Err(at(&files.ptx[number], 0, Exit::Verify, &message));
                }
            }
        }
        let names = Names::new(&module, &slices);
        let mut kernels = Vec::with_capacity(assigned.len());
        kernels.resize_with(assigned.len(), || None);
        for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
            let Some(launched) = &assigned[id.index()] else { continue };
            let mut launches = Vec::new();
            for launch in &launched.launches {
                match known.get(&*launch.kernel) {
                    Some(&number) => launches.push((number, launch.clone())),
                    // Kernels that are part of XLA: no PTX of them is dumped.
                    None if module.instr(id).opcode == Opcode::CustomCall => {}
                    None => {
                        let all: Vec<&str> = ptx.iter().map(|p| &*p.file).collect();
                        let all = if all.is_empty() { "there is none".to_owned() } else { all.join(", ") };
                        let message = format!(
                            "the kernel `{}` of `{}` is in no PTX file of the dump ({all})",
                            launch.kernel,
                            module.instr(id).name
                        );
                        return Err(at(&files.thunks, launch.line, Exit::Verify, &message));
                    }
                }
            }
            if launches.len() == launched.launches.len() && !reads_sizes(&module, id) {
                let kernel = kernel(&module, id, launches, &names, &ptx);
                kernels[id.index()] =
                    Some(kernel.map_err(|(line, message)| at(&files.thunks, line, Exit::Verify, &message))?);
            }
        }
        Ok(Dump { module, file: files.optimized.display().to_string(), kernels, ptx })
    }
}

/// Whether an instruction's kernels read or write sizes of dynamic dimensions, which XLA keeps behind the
/// elements: they are executed as HLO.
fn reads_sizes(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    let dynamic =
        |s: &Shape| s.leaves().into_iter().any(|l| l.as_array().is_some_and(ArrayShape::is_dynamic));
    let target = instr.attrs.str(AttrKey::CustomCallTarget);
    matches!(target, Some("PadToStatic" | "SliceToDynamic"))
        || dynamic(&instr.shape)
        || instr.operands().iter().any(|&o| dynamic(&module.instr(o).shape))
}

/// The arguments of an instruction's kernels. Errors: line of the launch, and why it does not fit.
fn kernel(
    module: &Module,
    id: InstrId,
    launches: Vec<(usize, KernelLaunch)>,
    names: &Names<'_>,
    ptx: &[Ptx],
) -> Result<Kernel, (usize, String)> {
    let instr = module.instr(id);
    let mut operands = Vec::new();
    for (i, &operand) in instr.operands().iter().enumerate() {
        operands.extend(leaves(module, operand, Of::Operand(i), names));
    }
    let results = leaves(module, id, Of::Result, names);
    let all: Vec<Argument> = operands.iter().chain(&results).cloned().collect();
    let begins_as = begins_as(module, id);
    let mut only_results = false;
    for (number, launch) in &launches {
        let code = &ptx[*number].loaded.module;
        let Some(index) = code.kernel(&launch.kernel) else { continue };
        let function = &code.functions[index];
        let takes = function.params.len();
        let of_results = takes == results.len() && takes != all.len();
        if takes != all.len() && !(of_results && sorts(module, id)) {
            return Err((
                launch.line,
                format!(
                    "the kernel `{}` ({}, line {}) has {takes} parameters; `{}` has {} arrays as operands and {} as results",
                    launch.kernel,
                    ptx[*number].file,
                    function.line,
                    instr.name,
                    operands.len(),
                    results.len()
                ),
            ));
        }
        only_results = of_results;
        let call = hlo_ptx::Launch::new(launch.grid, launch.block, launch.shared_bytes, &vec![0; takes]);
        hlo_ptx::exec::check_launch(code, index, &call).map_err(|why| {
            let (file, line) = (&ptx[*number].file, function.line);
            (
                launch.line,
                format!("the launch of `{}` ({file}, line {line}) does not fit: {why}", launch.kernel),
            )
        })?;
    }
    let arguments = if only_results { results } else { all };
    Ok(Kernel { launches, arguments, begins_as })
}

/// For each array that a sort sorts, alone or as the root of a fusion, the operand that it is; nothing of
/// other instructions.
fn begins_as(module: &Module, id: InstrId) -> Vec<Option<usize>> {
    let instr = module.instr(id);
    if instr.opcode == Opcode::Sort {
        return (0..instr.operands().len()).map(Some).collect();
    }
    let Some(fused) = instr.attrs.computation(AttrKey::Calls).filter(|_| sorts(module, id)) else {
        return Vec::new();
    };
    let root = module.instr(module.root(fused));
    if root.opcode != Opcode::Sort {
        return Vec::new();
    }
    let number = |&o: &InstrId| module.instr(o).parameter_number().and_then(|n| usize::try_from(n).ok());
    root.operands().iter().map(number).collect()
}

/// The arrays of a value.
fn leaves(module: &Module, id: InstrId, of: Of, names: &Names<'_>) -> Vec<Argument> {
    let mut all = Vec::new();
    let mut path = Vec::new();
    collect(&module.instr(id).shape, &mut path, &mut |path, shape| {
        let leaf = all.len();
        all.push(Argument { of, leaf, shape: shape.clone(), slice: names.slice(id, path) });
    });
    all
}

/// Calls `f` with each array of a shape and its index.
fn collect(shape: &Shape, path: &mut Vec<usize>, f: &mut impl FnMut(&[usize], &ArrayShape)) {
    match shape {
        Shape::Array(array) => f(path, array),
        Shape::Tuple(parts) => {
            for (i, part) in parts.iter().enumerate() {
                path.push(i);
                collect(part, path, f);
                path.pop();
            }
        }
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => {}
    }
}

/// Reads a PTX file, and gives the variables that stand for constants of the program their values, as XLA's
/// runtime does.
fn load(path: &Path, module: &Module, change: &dyn Fn(&str, String) -> String) -> Result<Ptx, Failure> {
    let file = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let text = change(&file, text(path)?);
    let code = super::ptx_module(&path.display().to_string(), &text)?;
    let mut memory = Memory::default();
    let variables: Vec<(String, u64, bool)> =
        code.variables.iter().map(|v| (v.name.clone(), v.bytes, v.initial.is_empty())).collect();
    let too_large =
        |e: hlo_ptx::memory::MemoryError| Failure::new(Exit::Trap, format!("{}: {e}", path.display()));
    let loaded = memory.load(code).map_err(too_large)?;
    for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
        let instr = module.instr(id);
        let (Some(AttrValue::Literal(ConstantValue::Given(value))), Some(shape)) =
            (instr.attrs.get(AttrKey::ConstantValue), instr.shape.as_array())
        else {
            continue;
        };
        let name = format!("buffer_for_{}", instr.name.replace(['.', '-'], "_"));
        let reserved = variables.iter().any(|(v, bytes, empty)| *v == name && *empty && *bytes > 0);
        let (Some((address, bytes)), true, Some(array)) = (loaded.symbol(&name), reserved, value.as_array())
        else {
            continue;
        };
        let data = layout::to_device(&Tensor::from_literal(array.clone()), shape);
        if let Ok(data) = data
            && data.len() as u64 <= bytes
        {
            memory.write(address, &data).map_err(too_large)?;
        }
    }
    Ok(Ptx { file, text, loaded, memory })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_places() {
        assert_eq!(prefix_of("module_0001.jit_f.sm_9.0_gpu_after_optimizations.txt"), "module_0001.jit_f.");
        assert_eq!(prefix_of("sm_9.0a_gpu_after_optimizations.txt"), "");
        assert_eq!(folder_and_prefix("."), (PathBuf::from("."), String::new()));
        assert_eq!(
            folder_and_prefix("no/such/module_0001."),
            (PathBuf::from("no/such"), "module_0001.".to_owned())
        );
    }
}
