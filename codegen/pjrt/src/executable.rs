//! Compiled programs: making them, what is known of them, and keeping them as bytes.

use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use hlo::{ArrayShape, ElementType, Module, ModuleHeader, Shape};
use hlo_client::{Cost, VerifiedModule};
use hlo_interp::Devices;

use crate::api::layouts::OwnLayouts;
use crate::api::numbers::array_bytes;
use crate::api::numbers::{TOKEN, buffer_type};
use crate::api::shardings::OwnShardings;
use crate::api::structs::{
    LogicalDeviceIds, PJRT_Client_Compile_Args, PJRT_Executable_DeserializeAndLoad_Args,
    PJRT_Executable_Destroy_Args, PJRT_Executable_Fingerprint_Args, PJRT_Executable_GetCompileOptions_Args,
    PJRT_Executable_GetCompiledMemoryStats_Args, PJRT_Executable_GetCostAnalysis_Args,
    PJRT_Executable_Name_Args, PJRT_Executable_NumOutputs_Args, PJRT_Executable_NumPartitions_Args,
    PJRT_Executable_NumReplicas_Args, PJRT_Executable_OptimizedProgram_Args,
    PJRT_Executable_OutputDimensions_Args, PJRT_Executable_OutputElementTypes_Args,
    PJRT_Executable_OutputMemoryKinds_Args, PJRT_Executable_ParameterMemoryKinds_Args,
    PJRT_Executable_Serialize_Args, PJRT_Executable_SizeOfGeneratedCodeInBytes_Args,
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, PJRT_LoadedExecutable_AddressableDevices_Args,
    PJRT_LoadedExecutable_Delete_Args, PJRT_LoadedExecutable_Destroy_Args,
    PJRT_LoadedExecutable_Fingerprint_Args, PJRT_LoadedExecutable_GetDeviceAssignment_Args,
    PJRT_LoadedExecutable_GetExecutable_Args, PJRT_LoadedExecutable_IsDeleted_Args,
};
use crate::border;
use crate::callbacks;
use crate::check::Checks;
use crate::client::Client;
use crate::dump::Dump;
use crate::error::{Code, Failure, Result, of_client};
use crate::ffi;
use crate::handles::{self, as_pointers, object};
use crate::layout::{self, Order};
use crate::log;
use crate::memory::{KINDS, Kinds};
use crate::opaque;
use crate::options::{CompileOptions, assignment};
use crate::parts;
use crate::placement::{Arrays, Placement, Runs};
use crate::program::{self, Read};
use crate::serialized;
use crate::sharding::Tiles;
use crate::values::{NamedValues, Value};

/// A compiled program, and what its callers ask of it.
#[derive(Debug)]
pub struct Program {
    /// Its client.
    pub client: Arc<Client>,
    /// The executable.
    pub executable: hlo_client::Executable,
    /// Arrays that an execution takes away, by position among the arrays: those that the program updates in
    /// place, and those that it was given for the purpose.
    pub donated: Box<[usize]>,
    /// Its devices, and the layouts of its arrays.
    pub placement: Placement,
    /// Of what callers hand in, which is no array but a token; arguments are counted without these.
    pub tokens_in: Box<[bool]>,
    /// The same of what they get.
    pub tokens_out: Box<[bool]>,
    /// Judges executions, if the client wants it.
    pub checks: Option<Checks>,
    is_interpreted: bool,
    logical: LogicalIds,
    /// The module as it was given.
    pub source: VerifiedModule,
    /// The same as it runs: its arrays are the physical ones, and its unreduced results each device's terms.
    pub prepared: VerifiedModule,
    options: Box<[u8]>,
    fingerprint: String,
    output_types: Box<[u32]>,
    output_dims: Box<[i64]>,
    output_ranks: Box<[usize]>,
    output_kinds: KindNames,
    parameter_kinds: KindNames,
    parameter_layouts: OnceLock<OwnLayouts>,
    result_layouts: OnceLock<OwnLayouts>,
    shardings: OnceLock<Option<(OwnShardings, OwnShardings)>>,
    /// Made when it is asked for.
    cost: OnceLock<NamedValues>,
    /// The program as an `HloModuleProto`, or why it has none.
    proto: OnceLock<Result<Vec<u8>>>,
}

/// Names of memories, as callers read them.
#[derive(Debug)]
struct KindNames {
    names: Box<[*const c_char]>,
    lengths: Box<[usize]>,
}

// SAFETY: the names are constants.
unsafe impl Send for KindNames {}
// SAFETY: the same.
unsafe impl Sync for KindNames {}

impl KindNames {
    /// Of `count` arrays and tokens; what is not given is the default memory.
    fn of(kinds: &[usize], count: usize) -> Self {
        let kinds = || kinds.iter().copied().chain(std::iter::repeat(0)).take(count).map(|kind| KINDS[kind]);
        Self {
            names: kinds().map(|kind| kind.as_ptr().cast()).collect(),
            lengths: kinds().map(str::len).collect(),
        }
    }
}

/// `PJRT_Executable`: a program that was compiled.
#[derive(Debug)]
pub struct Executable(Arc<Program>);

object!(Executable, "executable");

impl Executable {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.0
    }
}

/// `PJRT_LoadedExecutable`: a program that can be executed.
#[derive(Debug)]
pub struct LoadedExecutable {
    program: Arc<Program>,
    is_deleted: AtomicBool,
}

object!(LoadedExecutable, "loaded executable");

impl LoadedExecutable {
    /// The program, unless it was deleted.
    ///
    /// # Errors
    /// It was.
    pub fn program(&self) -> Result<&Arc<Program>> {
        if self.is_deleted.load(Ordering::Relaxed) {
            return Err(Failure::new(Code::FailedPrecondition, "the executable was deleted"));
        }
        Ok(&self.program)
    }

    fn give(program: Program) -> *mut opaque::LoadedExecutable {
        let program = Arc::new(program);
        handles::give(LoadedExecutable { program, is_deleted: AtomicBool::new(false) })
    }
}

/// An array or a token of a program's parameters or of its result.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Leaf {
    /// Of which parameter.
    parameter: i64,
    /// The index path in it.
    path: Vec<i64>,
    is_token: bool,
}

/// The leaves of shapes in order: what callers hand in, and get.
fn leaves<'a>(shapes: impl IntoIterator<Item = &'a Shape>) -> Vec<Leaf> {
    fn walk(shape: &Shape, parameter: i64, path: &mut Vec<i64>, found: &mut Vec<Leaf>) {
        match shape {
            Shape::Array(_) => found.push(Leaf { parameter, path: path.clone(), is_token: false }),
            Shape::Token => found.push(Leaf { parameter, path: path.clone(), is_token: true }),
            Shape::Tuple(parts) => {
                for (n, part) in (0..).zip(parts.iter()) {
                    path.push(n);
                    walk(part, parameter, path, found);
                    path.pop();
                }
            }
            Shape::Opaque | Shape::Buffer(_) => {}
        }
    }
    let mut found = Vec::new();
    for (n, shape) in (0..).zip(shapes) {
        walk(shape, n, &mut Vec::new(), &mut found);
    }
    found
}

/// The donated parameters, ascending: those with an input-output alias, and each buffer donor for which
/// there is a result of its size that no other donated parameter was matched with. A donor that no result
/// can use stays with the caller, as with XLA.
fn donated(
    header: &ModuleHeader,
    leaves: &[Leaf],
    executable: &hlo_client::Executable,
    placement: &Placement,
) -> Box<[usize]> {
    let bytes = |shape: &ArrayShape, tiles: &Tiles| array_bytes(&Placement::part(tiles, shape));
    let arguments: Vec<_> = executable.argument_shapes().collect();
    let aliases: Vec<(i64, &[i64])> =
        header.input_output_alias.iter().map(|a| (a.parameter, &a.parameter_index[..])).collect();
    let is_in = |all: &[(i64, &[i64])], leaf: &Leaf| all.contains(&(leaf.parameter, &leaf.path[..]));
    let mut free: Vec<_> =
        executable.result_shapes().iter().zip(&placement.held.results).map(|(s, t)| bytes(s, t)).collect();
    let of = |n: usize| bytes(arguments[n], placement.held.arguments.get(n).unwrap_or(&None));
    let take = |free: &mut Vec<Option<usize>>, n: usize| {
        let found = free.iter().position(|&size| size == of(n));
        found.map(|at| free.swap_remove(at)).is_some()
    };
    let mut all: Vec<usize> = (0..leaves.len()).filter(|&n| is_in(&aliases, &leaves[n])).collect();
    for &n in &all {
        take(&mut free, n);
    }
    let donors: Vec<(i64, &[i64])> =
        header.buffer_donor.iter().map(|d| (d.parameter, &d.parameter_index[..])).collect();
    for (n, leaf) in leaves.iter().enumerate() {
        if is_in(&donors, leaf) && !is_in(&aliases, leaf) && take(&mut free, n) {
            all.push(n);
        }
    }
    all.sort_unstable();
    all.into()
}

/// What stands for a token at the border: an array without elements, which frameworks can keep and hand in.
pub fn token_shape() -> ArrayShape {
    ArrayShape::new(ElementType::Pred, &[0])
}

impl Program {
    /// A program with what runs it.
    fn new(client: Arc<Client>, ready: Ready, compiled: Compiled, options: &[u8]) -> Self {
        let Compiled { executable, interpreted } = compiled;
        let Ready { source, prepared, placement } = ready;
        let header = &prepared.module().header;
        let leaves = leaves(executable.parameters());
        let tokens_in: Box<[bool]> = leaves.iter().map(|leaf| leaf.is_token).collect();
        let leaves: Vec<Leaf> = leaves.into_iter().filter(|leaf| !leaf.is_token).collect();
        let donated = donated(header, &leaves, &executable, &placement);
        let tokens_out: Box<[bool]> =
            self::leaves([executable.result()]).iter().map(|leaf| leaf.is_token).collect();
        let whole = executable.result_shapes().iter();
        let orders = &placement.layouts.results;
        let mut parts = whole.zip(&placement.held.results).zip(orders).map(|((shape, tiles), order)| {
            let part = Placement::part(tiles, shape);
            ArrayShape::new(part.element_type, &layout::logical(&part.dims, order))
        });
        let shape = |is_token: &bool| if *is_token { Some(token_shape()) } else { parts.next() };
        let results: Vec<ArrayShape> = tokens_out.iter().filter_map(shape).collect();
        let kinds = Kinds::of_header(source.module());
        let logical = LogicalIds::of(placement.devices);
        let fingerprint = client.engine.key(&prepared, &engine_options()).hex();
        Self {
            donated,
            options: options.into(),
            fingerprint,
            output_types: tokens_out
                .iter()
                .zip(&results)
                .map(|(is_token, shape)| if *is_token { TOKEN } else { buffer_type(shape.element_type) })
                .collect(),
            output_dims: results.iter().flat_map(|s| s.dims.iter().copied()).collect(),
            output_ranks: results.iter().map(ArrayShape::rank).collect(),
            output_kinds: KindNames::of(&kinds.results, results.len()),
            parameter_kinds: KindNames::of(&kinds.arguments, tokens_in.len()),
            tokens_in,
            tokens_out,
            cost: OnceLock::new(),
            proto: OnceLock::new(),
            checks: client.checks.clone().and_then(|settings| Checks::new(settings, &prepared)),
            parameter_layouts: OnceLock::new(),
            result_layouts: OnceLock::new(),
            shardings: OnceLock::new(),
            is_interpreted: client.interprets || interpreted.is_some(),
            logical,
            placement,
            client,
            source,
            prepared,
            executable,
        }
    }

    /// Layouts of arrays and tokens, in order.
    fn layouts<'p>(
        &self,
        tokens: &[bool],
        orders: &'p [Order],
        mut ranks: impl Iterator<Item = usize> + 'p,
    ) -> OwnLayouts {
        let of_token = token_shape().rank();
        let mut orders = orders.iter();
        let mut one = |is_token: &bool| match is_token {
            true => Some((&None, of_token)),
            false => Some((orders.next().unwrap_or(&None), ranks.next()?)),
        };
        OwnLayouts::new(tokens.iter().filter_map(&mut one).collect::<Vec<_>>().into_iter())
    }

    /// The layouts of its parameters.
    pub fn parameter_layouts(&self) -> &OwnLayouts {
        self.parameter_layouts.get_or_init(|| {
            let ranks = self.executable.argument_shapes().map(ArrayShape::rank);
            self.layouts(&self.tokens_in, &self.placement.layouts.arguments, ranks)
        })
    }

    /// The layouts of its results.
    pub fn result_layouts(&self) -> &OwnLayouts {
        self.result_layouts.get_or_init(|| {
            let ranks = self.executable.result_shapes().iter().map(ArrayShape::rank);
            self.layouts(&self.tokens_out, &self.placement.layouts.results, ranks)
        })
    }

    /// Ranks of arguments and results, none of tokens, if they are divided among devices.
    fn ranks(&self) -> Option<[Vec<Option<usize>>; 2]> {
        let ranks = |tokens: &[bool], mut arrays: Vec<usize>| -> Vec<Option<usize>> {
            arrays.reverse();
            tokens.iter().map(|is_token| if *is_token { None } else { arrays.pop() }).collect()
        };
        (self.placement.runs != Runs::Alone).then(|| {
            let arguments = self.executable.argument_shapes().map(ArrayShape::rank).collect();
            let results = self.executable.result_shapes().iter().map(ArrayShape::rank).collect();
            [ranks(&self.tokens_in, arguments), ranks(&self.tokens_out, results)]
        })
    }

    /// How arguments and results are divided among devices, if they are.
    pub fn shardings(&self) -> Option<&(OwnShardings, OwnShardings)> {
        let make = || {
            let [arguments, results] = self.ranks()?;
            let [arguments, results] = self.placement.shardings.messages(&arguments, &results);
            Some((OwnShardings::new(arguments), OwnShardings::new(results)))
        };
        self.shardings.get_or_init(make).as_ref()
    }

    fn proto(&self) -> Result<&[u8]> {
        let write = || {
            let mut proto = hlo_pjrt_abi::program::write(self.source.module())?;
            if let Some([arguments, results]) = self.ranks() {
                self.placement.shardings.write(&mut proto, &arguments, &results);
            }
            Ok(proto)
        };
        let proto = self.proto.get_or_init(write);
        proto.as_deref().map_err(Clone::clone)
    }
}

/// What is not supported is interpreted: of a framework's many programs one instruction should not refuse
/// one.
pub(crate) fn engine_options() -> hlo_client::CompileOptions {
    hlo_client::CompileOptions { fallback: true, ..hlo_client::CompileOptions::default() }
}

/// What JAX takes as the numbers of a program's devices: for each its replica and partition.
#[derive(Debug)]
struct LogicalIds(Box<[LogicalDeviceIds]>);

impl LogicalIds {
    fn of(devices: Devices) -> Self {
        let one = |number| {
            let device = devices.device(number);
            LogicalDeviceIds { replica: device.replica as i32, partition: device.partition as i32 }
        };
        Self((0..devices.count()).map(one).collect())
    }
}

pub(crate) fn compile(args: &mut PJRT_Client_Compile_Args) -> Result<()> {
    ffi::take_over()?;
    let client = handles::get(args.client)?;
    let given = border::pointed(args.program.cast_const())?;
    let format = border::text(given.format, given.format_size, "the format of the program")?;
    let code = border::bytes(given.code, given.code_size, "the program")?;
    let options = border::bytes(args.compile_options, args.compile_options_size, "the compile options")?;
    let asked = CompileOptions::read(options)?;
    let ready = Ready::new(&client, &asked, program::read(&format, code)?)?;
    let compiled = compiled(&client, &ready.prepared)?;
    dump(&client, &asked, &ready, &compiled, false)?;
    if client.logs {
        let how =
            compiled.interpreted.as_ref().map_or("compiled".to_owned(), |why| format!("interpreted ({why})"));
        log::line(&format!("{} {how}: {}", compiled.executable.name(), ready.placement.describe()));
    }
    args.executable = LoadedExecutable::give(Program::new(client, ready, compiled, options));
    Ok(())
}

/// A program that can be compiled.
struct Ready {
    /// As it was given.
    source: VerifiedModule,
    /// As it runs.
    prepared: VerifiedModule,
    placement: Placement,
}

impl Ready {
    fn new(client: &Client, asked: &CompileOptions, read: Read) -> Result<Self> {
        let Read { module, shardings, layouts } = read;
        let source = VerifiedModule::new(module).map_err(of_client)?;
        let mut changed: Option<Module> = None;
        let (mut has_own_term, mut is_own_argument) = (Vec::new(), Vec::new());
        if asked.partitions > 1 && shardings.argument_terms.iter().any(Option::is_some) {
            let mut module = Module::clone(source.module());
            is_own_argument = parts::own_arguments(&mut module, &shardings.argument_terms);
            if is_own_argument.contains(&true) {
                changed = Some(module);
            }
        }
        if asked.partitions > 1 && shardings.result_terms.iter().any(Option::is_some) {
            let mut module = changed.clone().unwrap_or_else(|| Module::clone(source.module()));
            has_own_term = parts::own(&mut module, &shardings.result_terms);
            if has_own_term.contains(&true) {
                changed = Some(module);
            }
        }
        if asked.partitions > 1 && !callbacks::partitioned(source.module()).is_empty() {
            callbacks::partition(changed.get_or_insert_with(|| Module::clone(source.module())));
        }
        if !layouts.are_row_major() {
            layouts.apply(changed.get_or_insert_with(|| Module::clone(source.module())))?;
        }
        let kinds = Kinds::of_header(source.module());
        if !kinds.are_default() {
            // Inside of a program there is one memory.
            let module = changed.get_or_insert_with(|| Module::clone(source.module()));
            module.header.entry_computation_layout = None;
        }
        let prepared = match changed {
            Some(module) => VerifiedModule::new(module).map_err(of_client)?,
            None => source.clone(),
        };
        let arrays = Arrays { shardings, layouts, kinds: kinds.results, has_own_term, is_own_argument };
        let placement = Placement::new(client, asked, prepared.module(), arrays)?;
        Ok(Self { source, prepared, placement })
    }
}

/// The compiled program.
struct Compiled {
    executable: hlo_client::Executable,
    /// Why it is interpreted as a whole.
    interpreted: Option<String>,
}

/// Compiles a program; as a whole it is interpreted if the compiler does not support how it is built.
fn compiled(client: &Client, source: &VerifiedModule) -> Result<Compiled> {
    let refused = match client.engine.compile(source, &engine_options()) {
        Ok(executable) => return Ok(Compiled { executable, interpreted: None }),
        Err(error) => error,
    };
    if refused.code() != hlo_client::Code::Unimplemented || client.interprets {
        return Err(of_client(refused));
    }
    // Who knows it no better is not heard.
    match client.interpreter.compile(source, &engine_options()) {
        Ok(executable) => Ok(Compiled { executable, interpreted: Some(refused.to_string()) }),
        Err(_) => Err(of_client(refused)),
    }
}

/// Dumps a program, if that is asked for. `loaded`: it was compiled before.
fn dump(
    client: &Client,
    asked: &CompileOptions,
    ready: &Ready,
    compiled: &Compiled,
    loaded: bool,
) -> Result<()> {
    let module = ready.prepared.module();
    if let Some(dump) = Dump::of(&asked.dump, module)? {
        dump.write(module, client.interprets || compiled.interpreted.is_some(), loaded);
    }
    Ok(())
}

/// What a program is kept as: this, then for options, program and machine code their length in 8 bytes and
/// themselves. Without machine code (of the interpreter) it is compiled when it is loaded.
const MAGIC: &[u8; 8] = b"HLOPJRT\x01";

pub(crate) fn serialize(args: &mut PJRT_Executable_Serialize_Args) -> Result<()> {
    let program = &handles::get(args.executable)?.0;
    let client = &program.client;
    let code = match program.is_interpreted {
        true => Vec::new(),
        false => client.engine.compile_artifact(&program.prepared, &engine_options()).map_err(of_client)?,
    };
    let mut bytes = MAGIC.to_vec();
    for part in [&*program.options, program.proto()?, &code[..]] {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part);
    }
    let given = serialized::give(bytes);
    (args.serialized_bytes, args.serialized_bytes_size) = (given.start, given.size);
    (args.serialized_executable, args.serialized_executable_deleter) = (given.object, given.deleter);
    Ok(())
}

fn parts(bytes: &[u8]) -> Option<[&[u8]; 3]> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let mut part = || {
        let (length, after) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (part, after) = after.split_at_checked(length)?;
        rest = after;
        Some(part)
    };
    let parts = [part()?, part()?, part()?];
    rest.is_empty().then_some(parts)
}

pub(crate) fn deserialize_and_load(args: &mut PJRT_Executable_DeserializeAndLoad_Args) -> Result<()> {
    ffi::take_over()?;
    let client = handles::get(args.client)?;
    let bytes = border::bytes(
        args.serialized_executable,
        args.serialized_executable_size,
        "the serialized executable",
    )?;
    let Some([options, module, code]) = parts(bytes) else {
        return Err(Failure::new(Code::DataLoss, "the bytes are no executable of this plugin, or damaged"));
    };
    let new_options = border::bytes(
        args.overridden_serialized_compile_options.cast_const().cast(),
        args.overridden_serialized_compile_options_size,
        "the compile options",
    )?;
    let options = if new_options.is_empty() { options } else { new_options };
    let asked = CompileOptions::read(options)?;
    let ready = Ready::new(&client, &asked, program::read_own(module)?)?;
    let prepared = &ready.prepared;
    let compiled = match (code.is_empty(), client.interprets) {
        (false, false) => {
            Compiled { executable: client.engine.load(code).map_err(of_client)?, interpreted: None }
        }
        (true, _) | (_, true) => compiled(&client, prepared)?,
    };
    let executable = &compiled.executable;
    let expected = prepared.module().program_shape(prepared.module().entry());
    let agrees = expected.is_some_and(|shape| {
        shape.result.without_layout() == executable.result().without_layout()
            && shape
                .parameters
                .iter()
                .map(Shape::without_layout)
                .eq(executable.parameters().iter().map(Shape::without_layout))
    });
    if !agrees {
        return Err(Failure::new(
            Code::DataLoss,
            "program and machine code of the executable do not belong together",
        ));
    }
    dump(&client, &asked, &ready, &compiled, true)?;
    let program = Program::new(client, ready, compiled, options);
    args.loaded_executable = LoadedExecutable::give(program);
    Ok(())
}

pub(crate) fn destroy(args: &mut PJRT_Executable_Destroy_Args) -> Result<()> {
    handles::destroy(args.executable)
}

pub(crate) fn name(args: &mut PJRT_Executable_Name_Args) -> Result<()> {
    let program = &handles::get(args.executable)?.0;
    let name = program.executable.name();
    (args.executable_name, args.executable_name_size) = (name.as_ptr().cast(), name.len());
    Ok(())
}

pub(crate) fn num_replicas(args: &mut PJRT_Executable_NumReplicas_Args) -> Result<()> {
    args.num_replicas = handles::get(args.executable)?.0.placement.devices.replicas() as usize;
    Ok(())
}

pub(crate) fn num_partitions(args: &mut PJRT_Executable_NumPartitions_Args) -> Result<()> {
    args.num_partitions = handles::get(args.executable)?.0.placement.devices.partitions() as usize;
    Ok(())
}

pub(crate) fn num_outputs(args: &mut PJRT_Executable_NumOutputs_Args) -> Result<()> {
    args.num_outputs = handles::get(args.executable)?.0.output_ranks.len();
    Ok(())
}

/// Not known: code and constants lie among what the program needs.
pub(crate) fn size_of_code(args: &mut PJRT_Executable_SizeOfGeneratedCodeInBytes_Args) -> Result<()> {
    handles::get(args.executable)?;
    args.size_in_bytes = 0;
    Ok(())
}

/// Counts by XLA's names.
fn named(cost: &Cost) -> NamedValues {
    let value = |name: &str, count: f64| (name.to_owned(), Value::Float(count as f32));
    NamedValues::new(vec![
        value("flops", cost.flops),
        value("transcendentals", cost.transcendentals),
        value("bytes accessed", cost.bytes_accessed),
    ])
}

pub(crate) fn cost_analysis(args: &mut PJRT_Executable_GetCostAnalysis_Args) -> Result<()> {
    let program = &handles::get(args.executable)?.0;
    let cost = program.cost.get_or_init(|| named(&program.source.cost_analysis()));
    (args.properties, args.num_properties) = (cost.pointer(), cost.len());
    Ok(())
}

pub(crate) fn output_memory_kinds(args: &mut PJRT_Executable_OutputMemoryKinds_Args) -> Result<()> {
    let kinds = &handles::get(args.executable)?.0.output_kinds;
    args.num_outputs = kinds.names.len();
    (args.memory_kinds, args.memory_kind_sizes) = (kinds.names.as_ptr(), kinds.lengths.as_ptr());
    Ok(())
}

pub(crate) fn parameter_memory_kinds(args: &mut PJRT_Executable_ParameterMemoryKinds_Args) -> Result<()> {
    let kinds = &handles::get(args.executable)?.0.parameter_kinds;
    args.num_parameters = kinds.names.len();
    (args.memory_kinds, args.memory_kind_sizes) = (kinds.names.as_ptr(), kinds.lengths.as_ptr());
    Ok(())
}

pub(crate) fn output_element_types(args: &mut PJRT_Executable_OutputElementTypes_Args) -> Result<()> {
    let types = &handles::get(args.executable)?.0.output_types;
    (args.output_types, args.num_output_types) = (types.as_ptr(), types.len());
    Ok(())
}

pub(crate) fn output_dimensions(args: &mut PJRT_Executable_OutputDimensions_Args) -> Result<()> {
    let program = &handles::get(args.executable)?.0;
    args.num_outputs = program.output_ranks.len();
    (args.dims, args.dim_sizes) = (program.output_dims.as_ptr(), program.output_ranks.as_ptr());
    Ok(())
}

/// The first call, without a buffer, queries the size.
pub(crate) fn optimized_program(args: &mut PJRT_Executable_OptimizedProgram_Args) -> Result<()> {
    let program = &handles::get(args.executable)?.0;
    let proto = program::with_config(program.proto()?)?;
    let given = border::pointed(args.program.cast_const())?;
    if !given.code.is_null() {
        if given.code_size < proto.len() {
            let message = format!("{} bytes do not fit {}", proto.len(), given.code_size);
            return Err(Failure::invalid(message));
        }
        border::write(given.code.cast::<u8>(), &proto, "the program")?;
    }
    border::write_back(args.program, |given| {
        given.code_size = proto.len();
        (given.format, given.format_size) =
            (program::WITH_CONFIG.as_ptr().cast(), program::WITH_CONFIG.len());
    })
}

pub(crate) fn fingerprint(args: &mut PJRT_Executable_Fingerprint_Args) -> Result<()> {
    let fingerprint = &handles::get(args.executable)?.0.fingerprint;
    (args.executable_fingerprint, args.executable_fingerprint_size) =
        (fingerprint.as_ptr().cast(), fingerprint.len());
    Ok(())
}

pub(crate) fn compile_options(args: &mut PJRT_Executable_GetCompileOptions_Args) -> Result<()> {
    let given = serialized::give(handles::get(args.executable)?.0.options.to_vec());
    (args.serialized_bytes, args.serialized_bytes_size) = (given.start, given.size);
    (args.serialized_compile_options, args.serialized_compile_options_deleter) =
        (given.object, given.deleter);
    Ok(())
}

pub(crate) fn memory_stats(args: &mut PJRT_Executable_GetCompiledMemoryStats_Args) -> Result<()> {
    let program = &handles::get(args.executable)?.0;
    let bytes = |shape: &ArrayShape| array_bytes(shape).map_or(i64::MAX, |n| n as i64);
    let arguments: Vec<i64> = program.executable.argument_shapes().map(bytes).collect();
    let whole = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let memory = program.executable.memory_analysis();
    args.argument_size_in_bytes = whole(memory.argument_bytes);
    args.output_size_in_bytes = whole(memory.result_bytes);
    args.alias_size_in_bytes = program.donated.iter().filter_map(|&n| arguments.get(n)).sum();
    args.temp_size_in_bytes = whole(memory.temporary_bytes);
    let peak = program.executable.run_bytes().saturating_add(memory.argument_bytes);
    args.peak_memory_in_bytes = whole(peak);
    args.total_size_in_bytes = args.peak_memory_in_bytes;
    // Not known, or of a host that is another machine; callers leave these as their memory had them.
    args.generated_code_size_in_bytes = 0;
    args.host_generated_code_size_in_bytes = 0;
    args.host_argument_size_in_bytes = 0;
    args.host_output_size_in_bytes = 0;
    args.host_alias_size_in_bytes = 0;
    args.host_temp_size_in_bytes = 0;
    args.total_allocation_bytes = 0;
    args.indefinite_allocations = 0;
    args.peak_unpadded_heap_bytes = 0;
    Ok(())
}

pub(crate) fn destroy_loaded(args: &mut PJRT_LoadedExecutable_Destroy_Args) -> Result<()> {
    handles::destroy(args.executable)
}

pub(crate) fn get_executable(args: &mut PJRT_LoadedExecutable_GetExecutable_Args) -> Result<()> {
    let loaded = handles::get(args.loaded_executable)?;
    args.executable = handles::give(Executable(Arc::clone(&loaded.program)));
    Ok(())
}

pub(crate) fn addressable_devices(args: &mut PJRT_LoadedExecutable_AddressableDevices_Args) -> Result<()> {
    let loaded = handles::get(args.executable)?;
    let devices = &loaded.program.placement.handles;
    (args.addressable_devices, args.num_addressable_devices) = (as_pointers(devices), devices.len());
    Ok(())
}

pub(crate) fn logical_ids(args: &mut PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args) -> Result<()> {
    let ids = &handles::get(args.executable)?.program.logical.0;
    (args.addressable_device_logical_ids, args.num_addressable_device_logical_ids) =
        (ids.as_ptr(), ids.len());
    Ok(())
}

pub(crate) fn delete(args: &mut PJRT_LoadedExecutable_Delete_Args) -> Result<()> {
    handles::get(args.executable)?.is_deleted.store(true, Ordering::Relaxed);
    Ok(())
}

pub(crate) fn is_deleted(args: &mut PJRT_LoadedExecutable_IsDeleted_Args) -> Result<()> {
    args.is_deleted = u8::from(handles::get(args.executable)?.is_deleted.load(Ordering::Relaxed));
    Ok(())
}

pub(crate) fn loaded_fingerprint(args: &mut PJRT_LoadedExecutable_Fingerprint_Args) -> Result<()> {
    let fingerprint = &handles::get(args.executable)?.program.fingerprint;
    (args.executable_fingerprint, args.executable_fingerprint_size) =
        (fingerprint.as_ptr().cast(), fingerprint.len());
    Ok(())
}

pub(crate) fn device_assignment(args: &mut PJRT_LoadedExecutable_GetDeviceAssignment_Args) -> Result<()> {
    let placement = &handles::get(args.executable)?.program.placement;
    let (replicas, partitions) = (placement.devices.replicas(), placement.devices.partitions());
    let given = serialized::give(assignment(replicas.into(), partitions.into(), &placement.ids));
    (args.serialized_bytes, args.serialized_bytes_size) = (given.start, given.size);
    (args.serialized_device_assignment, args.serialized_device_assignment_deleter) =
        (given.object, given.deleter);
    Ok(())
}
