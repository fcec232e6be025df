//! Compilation ahead of time: a program as one relocatable object that others link with.
//!
//! An object holds kernels, constants and the *driver*: the launch plan as code, which calls the kernels in
//! order. It links with the C library alone, unless the program has library calls (contractions, sorting,
//! ...): those call the run-time library, whose functions `docs/ahead-of-time.md` lists.
//!
//! **Invariants:** builds are deterministic: the bytes of an object depend on module and options alone, not
//! on threads, folders or the clock. Unless the processor is "native", they do not depend on the vectors and
//! the microarchitecture of the compiling machine either, only on its architecture. Results have the bits of
//! [`hlo_codegen::runtime`], since kernels, their order and buffer assignment are the same. The only
//! visible symbols are the entry point and its descriptor, whose names begin with the name of the entry point.

mod driver;
mod table;

use hlo::{ElementType, InstrId, Module};
use hlo_codegen::compilation::{Assemble as _, Compilation};
use hlo_codegen::front;
use hlo_codegen::kernel::{Kernel, Request};
use hlo_codegen::plan::lower::{Lowered, Lowering};
use hlo_codegen::program::Program;
use hlo_codegen::runtime::object::undefined;
use hlo_codegen::{CompileError, Unsupported};
use hlo_cpu::{Unit, dedup, level, loops};
use hlo_library_base::configuration::{self, Configuration};
use hlo_library_base::memory::array_bytes;
use hlo_llvm::{self as llvm, Data, Level, Lines, Target, new_context};
use hlo_opt::buffers::AllocationKind;
use hlo_opt::passes::Pipeline;
use hlo_threads::cancel;

pub use crate::ABI_VERSION;

/// The alignment of arguments, results and temporaries.
pub const ALIGNMENT: u64 = hlo_codegen::runtime::arena::ALIGNMENT as u64;

/// Options of compilation.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The prefix of symbols: a C identifier.
    pub entry: String,
    /// Names of the array leaves of the parameters, in order.
    pub arguments: Vec<String>,
    /// Names of the array leaves of the result.
    pub results: Vec<String>,
    /// As [`hlo_cpu::Options::opt_level`].
    pub opt_level: u8,
    /// [`Target::of_triple`].
    pub triple: String,
    /// The processor.
    pub cpu: String,
    /// Its features.
    pub features: String,
    /// Whether the driver counts the cycles of each step.
    pub profile: bool,
    /// Whether accesses are checked by AddressSanitizer, which the program is then linked with.
    pub sanitize: bool,
    /// The text that debugging information points into.
    pub debug: Option<Source>,
}

/// A text that instructions have their spans in.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name of its file.
    pub file: String,
    /// The text.
    pub text: String,
    /// The name of the file that debugging information is split off to (DWARF's `.dwo`), as the object has
    /// it.
    pub split: Option<String>,
}

/// An array that a program is given or gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// Element type.
    pub element_type: ElementType,
    /// Dimensions, row-major.
    pub dims: Vec<i64>,
    /// Bytes.
    pub bytes: u64,
    /// What memory it shares: an argument that is updated in place, a result that is left in an argument.
    pub aliasing: Aliasing,
}

/// The aliasing of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aliasing {
    /// An argument that is only read.
    Read,
    /// An argument that is overwritten.
    Overwritten,
    /// A result in memory of its own.
    Own,
    /// A result that is left in this argument.
    Argument(u32),
}

/// A step, for profiles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The instruction.
    pub name: String,
    /// What it is.
    pub kind: &'static str,
}

/// An object, and what its users have to know.
#[derive(Clone, Debug)]
pub struct Object {
    /// ELF.
    pub bytes: Vec<u8>,
    /// The DWARF file that is split off it, if so asked.
    pub dwarf: Option<Vec<u8>>,
    /// What it is for, such as `x86-64-v3, avx2`.
    pub target: String,
    /// The triple that it is for.
    pub triple: String,
    /// The arguments, in order.
    pub arguments: Vec<Array>,
    /// The results, in order.
    pub results: Vec<Array>,
    /// Bytes of temporaries.
    pub temporary_bytes: u64,
    /// Bytes of constants.
    pub constant_bytes: u64,
    /// The steps, as the profile counts them.
    pub steps: Vec<Step>,
    /// The instructions that functions of the run-time library execute, for people.
    pub library_calls: Vec<String>,
    /// The symbols that it needs.
    pub needs: Vec<String>,
}

/// Serializes library calls (the instructions given, of the module given); the run-time library deserializes
/// them. A call's number is its index in the list.
pub type Describe<'a> = &'a dyn Fn(&Module, &[InstrId]) -> Result<Vec<u8>, CompileError>;

/// Compiles a verified module to an object.
///
/// # Errors
/// What is not supported by name, targets that are not known, names that do not fit the program.
pub fn object(module: &Module, options: &Options, describe: Describe<'_>) -> Result<Object, CompileError> {
    configuration(options).with(|| configured_object(module, options, describe))
}

/// The configuration that decides what an object has beside generated code: the scratch memory of its library
/// calls. For "native" that of this thread; otherwise one that every machine has, with its divisor of sizes:
/// calls are decided once more where the object runs.
fn configuration(options: &Options) -> Configuration {
    let current = configuration::current();
    if options.cpu == "native" { current } else { Configuration::common(current.size_divisor()) }
}

fn configured_object(
    module: &Module,
    options: &Options,
    describe: Describe<'_>,
) -> Result<Object, CompileError> {
    let target =
        Target::of_triple(&options.triple, &options.cpu, &options.features, level(options.opt_level))?;
    let pipeline = Pipeline::cpu(options.opt_level);
    let (module, sizes) =
        front::fused_and_scheduled(module, &pipeline, cfg!(debug_assertions), &mut (), &mut |_| {
            cancel::poll()
        })?;
    if sizes.is_some() {
        let root = module.root(module.entry());
        let why = "arguments or results whose sizes are known only at run time: an object has none";
        return Err(Unsupported::new(&module, root, why).into());
    }
    let lowered = Lowered::new(&module, false)?;
    let all = || module.computations().iter().flat_map(|&c| module.instructions(c));
    if let Some(id) = all().find(|id| matches!(lowered.decisions.get(id), Some(Lowering::Interpret))) {
        return Err(Unsupported::new(&module, id, "the interpreter executes it: an object has none").into());
    }
    let library =
        |id: &InstrId| matches!(lowered.decisions.get(id), Some(Lowering::Library(_) | Lowering::Hero(_)));
    let library_calls: Vec<InstrId> = all().filter(library).collect();
    let description = if library_calls.is_empty() { Vec::new() } else { describe(&module, &library_calls)? };
    let unit = |target: &Target| {
        let mut made =
            llvm::workers::run(1, &|_| emit(&module, &library_calls, &description, target, options));
        made.pop().unwrap_or_else(|| Err(llvm::Error::Llvm("no thread to compile on".to_owned())))
    };
    match unit(&target) {
        Ok(object) => object,
        // LLVM gave up: it may find its way where it looks less far.
        Err(_) if target.level() > Level::O0 => unit(&target.at(Level::O0))?,
        Err(error) => Err(error.into()),
    }
}

/// An object of data alone, for the target of the options: symbols and their bytes.
///
/// # Errors
/// Targets that are not known.
pub fn data_object(options: &Options, symbols: &[(String, Vec<u8>)]) -> Result<Vec<u8>, CompileError> {
    let target =
        Target::of_triple(&options.triple, &options.cpu, &options.features, level(options.opt_level))?;
    let make = |_| -> llvm::Result<Vec<u8>> {
        let context = new_context();
        let llvm = context.create_module("data");
        llvm.set_source_file_name("");
        target.prepare(&llvm)?;
        let data = Data { context: &context, module: &llvm };
        for (name, bytes) in symbols {
            data.public_bytes(name, bytes, 8);
        }
        target.optimize(&llvm)?;
        target.object(&llvm)
    };
    let made = llvm::workers::run(1, &make).pop();
    Ok(made.unwrap_or_else(|| Err(llvm::Error::Llvm("no thread to compile on".to_owned())))??)
}

/// A part of a symbol that debuggers and profilers show: letters, digits, `_`, `.` and `-` stay.
fn symbol_of(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' }).collect()
}

fn emit(
    module: &Module,
    library_calls: &[InstrId],
    description: &[u8],
    target: &Target,
    options: &Options,
) -> Result<Object, CompileError> {
    let compilation = Compilation::new(module.clone(), None, false)?;
    let context = new_context();
    let llvm = context.create_module(&module.name);
    llvm.set_source_file_name("");
    target.prepare(&llvm)?;
    let builder = context.create_builder();
    let data = Data { context: &context, module: &llvm };
    let lines = options.debug.as_ref().map(|source| Lines::new(data, &source.file, &source.text));
    let unit = Unit { context: &context, module: &llvm, builder: &builder, target, lines: lines.as_ref() };
    let kernels = kernels(&unit, data, module, compilation.requests(), &options.entry)?;
    let made = kernels.iter().cloned().map(Some).collect();
    let program = compilation
        .with_kernels(made, hlo_codegen::program::Code::default())?
        .assemble(true, &mut |_, _| {})?;
    let mut object = table::object(&program, options)?;
    driver::emit(&unit, data, program, library_calls, description, options, &mut object)?;
    table::emit(data, options, &object, target);
    if let Some(lines) = &lines {
        lines.finish();
    }
    if options.sanitize {
        data.sanitize();
    }
    target.optimize(&llvm)?;
    // Kernels that are the same as others, and what nothing calls.
    target.run_passes(&llvm, "globaldce")?;
    if options.sanitize {
        target.run_passes(&llvm, "asan")?;
    }
    match options.debug.as_ref().and_then(|source| source.split.as_deref()) {
        Some(name) => {
            let (bytes, dwarf) = target.split_object(&llvm, name)?;
            (object.bytes, object.dwarf) = (bytes, Some(dwarf));
        }
        None => object.bytes = target.object(&llvm)?,
    }
    object.target = target.describe();
    object.triple = target.triple().to_owned();
    object.needs = undefined(&object.bytes).map_err(|e| CompileError::Defect(e.to_string()))?;
    Ok(object)
}

/// Emits the kernels, each once.
fn kernels<'ctx>(
    unit: &Unit<'_, 'ctx>,
    data: Data<'_, 'ctx>,
    module: &Module,
    requests: &[Request],
    entry: &str,
) -> Result<Vec<Kernel>, CompileError> {
    let firsts = dedup::first_identical(module, requests);
    let mut kernels: Vec<Kernel> = Vec::with_capacity(requests.len());
    for (index, (&request, &first)) in requests.iter().zip(&firsts).enumerate() {
        cancel::poll();
        let name = &module.instr(loops::subject(module, request)).name;
        if first != index {
            kernels.push(Kernel { name: name.to_string(), ..kernels[first].clone() });
            continue;
        }
        let mut symbol = format!("{entry}.{}", symbol_of(name));
        if unit.module.get_function(&symbol).is_some() {
            symbol = format!("{symbol}.k{index}");
        }
        let kernel = unit.emit(module, request, &symbol)?;
        for phase in &kernel.phases {
            if let Some(function) = unit.module.get_function(&phase.symbol) {
                data.keep_apart(function);
            }
        }
        kernels.push(kernel);
    }
    Ok(kernels)
}

/// Bytes of the allocations of a kind.
fn bytes_of(program: &Program, wanted: fn(&AllocationKind) -> bool) -> u64 {
    program.buffers.allocations.iter().filter(|a| wanted(&a.kind)).map(|a| a.bytes).sum()
}

/// An array of a shape.
fn array(name: &str, shape: &hlo::ArrayShape, aliasing: Aliasing) -> Array {
    let bytes = array_bytes(shape).unwrap_or(u64::MAX);
    let dims = shape.dims.iter().copied().collect();
    Array { name: name.to_owned(), element_type: shape.element_type, dims, bytes, aliasing }
}
