//! Compiled programs as bytes: what a cache keeps on disk and what `hlo compile` writes.
//!
//! The file is a [`container`](crate::container). Its header has the fused and scheduled module as text,
//! kernels, and the lengths of the blobs: object code, then the values of constants, which the text elides.
//! Buffers and the launch plan are not stored: loading derives them from the module.
//!
//! **Invariant:** an artifact of another build of the compiler, or for features that this machine lacks, is
//! refused before its module is parsed, and the module is verified. The checksum finds damage, not malice: an
//! artifact is machine code.

use std::fmt;
use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue};
use hlo::print::{PrintOptions, print_module};
use hlo::{ArrayLiteral, ArrayShape, ConstantValue, Literal, Module, Opcode, Shape};
use hlo_codegen::compilation::Compilation;
use hlo_codegen::kernel::{Kernel, Phase, Strategy};
use hlo_codegen::program::{self};
use hlo_codegen::run_time_sizes::{Check, RunTimeSizes, RunTimeSizesParts};
use hlo_codegen::runtime::raw::{buffer_of, bytes_of};
use hlo_library_base::memory::array_bytes;
use serde::{Deserialize, Serialize};

use crate::container::{Blobs, Format};
use crate::error::{Code, Error};
use crate::machine;

const FORMAT: Format = Format { magic: *b"HLOEXE\r\n", version: 1, what: "compiled program" };

/// What an artifact begins with.
pub const MAGIC: [u8; 8] = FORMAT.magic;

/// Constants of more elements are blobs.
const INLINE_ELEMENTS: usize = 10;

/// What identifies the compiler: what was made by another one is not run, since the plan is derived by this
/// one.
pub const BUILD: &str = concat!("hlo ", env!("CARGO_PKG_VERSION"), " ", env!("HLO_SOURCE_HASH"));

#[derive(Serialize, Deserialize)]
struct Header {
    build: String,
    /// Features that the machine must have, by name.
    needs: Vec<String>,
    /// For people: the processor it was compiled for.
    target: String,
    signature: SignatureData,
    fallback: bool,
    module: String,
    kernels: Vec<Option<KernelData>>,
    sizes: Option<SizesData>,
    object_bytes: Vec<u64>,
    /// For each constant whose text is elided: the lengths of its array leaves in bytes. `None`: it had no
    /// value when it was compiled.
    constant_bytes: Vec<Option<Vec<u64>>>,
}

/// Shapes as text.
#[derive(Serialize, Deserialize)]
pub(crate) struct SignatureData {
    name: String,
    parameters: Vec<String>,
    result: String,
}

#[derive(Serialize, Deserialize)]
struct KernelData {
    name: String,
    phases: Vec<PhaseData>,
    scratch: u64,
    iterates: bool,
}

#[derive(Serialize, Deserialize)]
struct PhaseData {
    symbol: String,
    strategy: String,
    units: u64,
    grain: u64,
    run: u64,
    bytes: u64,
    flops: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct SizesData {
    parameters: Vec<String>,
    results: Vec<String>,
    checks: Vec<CheckData>,
}

#[derive(Serialize, Deserialize)]
struct CheckData {
    dimension: usize,
    bound: i64,
    lacking: Option<(String, i64)>,
}

/// Whether bytes begin as an artifact does.
pub fn is_artifact(bytes: &[u8]) -> bool {
    FORMAT.is(bytes)
}

fn constants(module: &Module) -> impl Iterator<Item = hlo::InstrId> {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    all.filter(|&id| module.instr(id).opcode == Opcode::Constant)
}

/// The value of a constant whose text is left out.
fn elided(module: &Module, id: hlo::InstrId) -> Option<&ConstantValue> {
    match module.instr(id).attrs.get(AttrKey::ConstantValue) {
        Some(AttrValue::Literal(value)) => match value {
            ConstantValue::Given(literal) => {
                let small = literal.as_array().is_some_and(|a| a.buffer.len() <= INLINE_ELEMENTS);
                (!small && **literal != Literal::Token).then_some(value)
            }
            ConstantValue::Elided => Some(value),
        },
        Some(_) | None => None,
    }
}

/// Writes an artifact. `program`: the module that was compiled; `cpu`: LLVM's name of the processor, or
/// "native"; `target`: the processor's name for messages.
///
/// # Errors
/// More text than the format can hold.
pub fn write(compilation: &Compilation, program: &Module, cpu: &str, target: &str) -> Result<Vec<u8>, Error> {
    let stored = Stored::of(compilation.module());
    let phase = |p: &Phase| PhaseData {
        symbol: p.symbol.clone(),
        strategy: p.strategy.name().to_owned(),
        units: p.units,
        grain: p.grain,
        run: p.run,
        bytes: p.bytes,
        flops: p.flops,
    };
    let kernel = |k: &Kernel| KernelData {
        name: k.name.clone(),
        phases: k.phases.iter().map(phase).collect(),
        scratch: k.scratch,
        iterates: k.iterates,
    };
    let header = Header {
        build: BUILD.to_owned(),
        needs: machine::needed(cpu).into_iter().map(str::to_owned).collect(),
        target: target.to_owned(),
        signature: SignatureData::of(program),
        fallback: compilation.falls_back(),
        module: stored.text,
        kernels: compilation.kernels().iter().map(|k| k.as_ref().map(kernel)).collect(),
        sizes: compilation.run_time_sizes().map(SizesData::of),
        object_bytes: compilation.objects().iter().map(|o| o.len() as u64).collect(),
        constant_bytes: stored.constant_bytes,
    };
    let objects = compilation.objects().iter().map(|object| &**object);
    FORMAT.write(&header, objects.chain(stored.arrays.iter().map(|array| bytes_of(&array.buffer))))
}

/// An artifact without its constants, and these: together, in order, they are the artifact. What is none has
/// no constants.
pub(crate) fn split_constants(bytes: &[u8]) -> (&[u8], Vec<&[u8]>) {
    let Ok((header, _)) = FORMAT.read::<Header>(bytes) else { return (bytes, Vec::new()) };
    let mut head = bytes;
    let mut constants = Vec::new();
    for &length in header.constant_bytes.iter().flatten().flatten().rev() {
        let at = usize::try_from(length).ok().and_then(|length| head.len().checked_sub(length));
        let Some((rest, constant)) = at.and_then(|at| head.split_at_checked(at)) else {
            return (bytes, Vec::new());
        };
        constants.push(constant);
        head = rest;
    }
    constants.reverse();
    (head, constants)
}

/// A module as text, and the values that the text leaves out.
pub(crate) struct Stored<'m> {
    pub(crate) text: String,
    /// For each constant whose text is elided: the lengths of its array leaves in bytes. `None`: it has no
    /// value.
    pub(crate) constant_bytes: Vec<Option<Vec<u64>>>,
    /// The arrays of these constants.
    pub(crate) arrays: Vec<&'m ArrayLiteral>,
}

impl<'m> Stored<'m> {
    pub(crate) fn of(module: &'m Module) -> Self {
        let values: Vec<&ConstantValue> = constants(module).filter_map(|id| elided(module, id)).collect();
        let leaves = |value: &&ConstantValue| match value {
            ConstantValue::Given(literal) => {
                Some(literal.arrays().iter().map(|a| bytes_of(&a.buffer).len() as u64).collect())
            }
            ConstantValue::Elided => None,
        };
        let print = PrintOptions { normalize: false, ..PrintOptions::LONG }.eliding(INLINE_ELEMENTS);
        let constant_bytes = values.iter().map(leaves).collect();
        let arrays = values.iter().flat_map(|value| match value {
            ConstantValue::Given(literal) => literal.arrays(),
            ConstantValue::Elided => Vec::new(),
        });
        Self { text: print_module(module, &print), constant_bytes, arrays: arrays.collect() }
    }
}

/// The module that a text and the values behind it hold.
///
/// Errors: it does not parse or verify, values that fit no constant.
pub(crate) fn module_of(
    text: &str,
    constant_bytes: &[Option<Vec<u64>>],
    blobs: &mut Blobs<'_>,
) -> Result<Module, Error> {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    let mut module =
        parsed.module.ok_or_else(|| damaged("the module of the compiled program does not parse"))?;
    let mut lengths = constant_bytes.iter();
    let elided: Vec<_> = constants(&module).filter(|&id| elided(&module, id).is_some()).collect();
    for id in elided {
        match lengths.next() {
            Some(Some(leaves)) => {
                let value = literal(&module.instr(id).shape, &mut leaves.iter(), blobs)?;
                let value = AttrValue::Literal(ConstantValue::Given(Arc::new(value)));
                module.instr_mut(id).attrs.set(AttrKey::ConstantValue, value);
            }
            Some(None) => {}
            None => return Err(damaged("a constant has no value")),
        }
    }
    if lengths.next().is_some() || !blobs.is_empty() {
        return Err(damaged("the compiled program has values of no constant"));
    }
    if hlo::verify::verify(&module).has_errors() {
        return Err(damaged("the module of the compiled program does not verify"));
    }
    Ok(module)
}

impl SignatureData {
    pub(crate) fn of(program: &Module) -> Self {
        let signature = Signature::of(program);
        Self {
            name: signature.name,
            parameters: signature.parameters.iter().map(ToString::to_string).collect(),
            result: signature.result.to_string(),
        }
    }

    pub(crate) fn signature(&self) -> Result<Signature, Error> {
        let shape = |text: &String| {
            hlo_parser::parse_shape(text).map_err(|_| damaged(format!("\"{text}\" is no shape")))
        };
        let parameters = self.parameters.iter().map(shape).collect::<Result<_, _>>()?;
        Ok(Signature { name: self.name.clone(), parameters, result: shape(&self.result)? })
    }
}

impl SizesData {
    pub(crate) fn of(sizes: &RunTimeSizes) -> Self {
        let shapes = |shapes: &[ArrayShape]| shapes.iter().map(ToString::to_string).collect();
        let check = |Check { dimension, bound, lacking }: Check| CheckData { dimension, bound, lacking };
        let parts = sizes.parts();
        Self {
            parameters: shapes(&parts.parameters),
            results: shapes(&parts.results),
            checks: parts.checks.into_iter().map(check).collect(),
        }
    }

    pub(crate) fn sizes(self) -> Result<RunTimeSizes, Error> {
        let check = |CheckData { dimension, bound, lacking }| Check { dimension, bound, lacking };
        let checks = self.checks.into_iter().map(check).collect();
        let (parameters, results) = (shapes(&self.parameters)?, shapes(&self.results)?);
        Ok(RunTimeSizes::from(RunTimeSizesParts { parameters, results, checks }))
    }
}

pub(crate) fn damaged(what: impl Into<String>) -> Error {
    Error::new(Code::DataLoss, what)
}

/// Parts that are no compilation of this compiler.
pub(crate) fn unfit(what: impl fmt::Display) -> Error {
    damaged(format!("the compiled program does not fit this compiler: {what}"))
}

/// What a program takes and gives, without layouts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// Its name.
    pub name: String,
    /// Shapes of its parameters.
    pub parameters: Vec<Shape>,
    /// Shape of its result.
    pub result: Shape,
}

impl Signature {
    /// Of a module that verifies.
    pub fn of(module: &Module) -> Self {
        let shape = module.program_shape(module.entry());
        let shape = shape.expect("invariant: a module that verifies has an entry with a result");
        Self {
            name: module.name.to_string(),
            parameters: shape.parameters.iter().map(Shape::without_layout).collect(),
            result: shape.result.without_layout(),
        }
    }
}

/// What an artifact says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArtifactInfo {
    /// What the program takes and gives.
    pub signature: Signature,
    /// The build of the compiler that made it.
    pub build: String,
    /// The processor it was compiled for.
    pub target: String,
    /// Features that the machine must have.
    pub needs: Vec<String>,
    /// Bytes of machine code.
    pub code_bytes: u64,
    /// Bytes of constants.
    pub constant_bytes: u64,
}

/// What an artifact says of itself.
///
/// # Errors
/// It is none, or damaged.
pub fn info(bytes: &[u8]) -> Result<ArtifactInfo, Error> {
    let (header, _) = FORMAT.read::<Header>(bytes)?;
    ArtifactInfo::of(&header)
}

impl ArtifactInfo {
    fn of(header: &Header) -> Result<Self, Error> {
        let sum = |sum: u64, bytes: &u64| sum.saturating_add(*bytes);
        Ok(Self {
            signature: header.signature.signature()?,
            build: header.build.clone(),
            target: header.target.clone(),
            needs: header.needs.clone(),
            code_bytes: header.object_bytes.iter().fold(0, sum),
            constant_bytes: header.constant_bytes.iter().flatten().flatten().fold(0, sum),
        })
    }
}

/// The literal of a shape whose array leaves have these bytes.
fn literal(
    shape: &Shape,
    lengths: &mut std::slice::Iter<'_, u64>,
    blobs: &mut Blobs<'_>,
) -> Result<Literal, Error> {
    match shape {
        Shape::Array(array) => {
            let bytes = lengths.next().copied().ok_or_else(|| damaged("a constant has too few leaves"))?;
            if array_bytes(array) != Some(bytes) {
                return Err(damaged(format!("{bytes} bytes of a constant of shape {array}")));
            }
            let buffer = buffer_of(array.element_type, blobs.take(bytes)?);
            Ok(Literal::Array(ArrayLiteral { dims: array.dims.clone(), buffer: buffer.into() }))
        }
        Shape::Tuple(elements) => {
            let elements: Result<_, Error> = elements.iter().map(|e| literal(e, lengths, blobs)).collect();
            elements.map(Literal::Tuple)
        }
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => Ok(Literal::Token),
    }
}

fn shapes(texts: &[String]) -> Result<Vec<ArrayShape>, Error> {
    let shape = |text: &String| match hlo_parser::parse_shape(text) {
        Ok(Shape::Array(array)) => Ok(array),
        Ok(_) | Err(_) => Err(damaged(format!("\"{text}\" is no shape of an array"))),
    };
    texts.iter().map(shape).collect()
}

/// The compilation that an artifact holds, and what it says of itself.
///
/// # Errors
/// It is no artifact, or damaged ([`Code::DataLoss`]); made by another build, or for features that this
/// machine lacks ([`Code::FailedPrecondition`]).
pub fn read(bytes: &[u8]) -> Result<(ArtifactInfo, Compilation), Error> {
    let (header, mut blobs) = FORMAT.read::<Header>(bytes)?;
    if header.build != BUILD {
        let message = format!("compiled by {}; this is {BUILD}", header.build);
        return Err(Error::new(Code::FailedPrecondition, message));
    }
    let has = machine::features();
    if let Some(lacking) = header.needs.iter().find(|need| !has.contains(&need.as_str())) {
        let message = format!("compiled for {}: this machine has no {lacking}", header.target);
        return Err(Error::new(Code::FailedPrecondition, message));
    }
    let info = ArtifactInfo::of(&header)?;
    let mut objects: Vec<Arc<[u8]>> = Vec::with_capacity(header.object_bytes.len());
    for &bytes in &header.object_bytes {
        objects.push(blobs.take(bytes)?.into());
    }
    let module = module_of(&header.module, &header.constant_bytes, &mut blobs)?;
    let sizes = header.sizes.map(SizesData::sizes).transpose()?;
    let phase = |p: PhaseData| {
        let strategy = Strategy::by_name(&p.strategy);
        let strategy = strategy.ok_or_else(|| unfit(format!("the strategy `{}`", p.strategy)))?;
        let (units, grain, run) = (p.units, p.grain, p.run);
        Ok(Phase { symbol: p.symbol, strategy, units, grain, run, bytes: p.bytes, flops: p.flops })
    };
    let kernel = |k: KernelData| {
        let phases = k.phases.into_iter().map(phase).collect::<Result<_, Error>>()?;
        Ok(Kernel { name: k.name, phases, scratch: k.scratch, iterates: k.iterates })
    };
    let kernels = header.kernels.into_iter().map(|k| k.map(kernel).transpose());
    let kernels = kernels.collect::<Result<_, Error>>()?;
    let compilation =
        Compilation::new(module, sizes, header.fallback).map_err(|e| unfit(e.diagnostic().message))?;
    let compilation = compilation.with_kernels(kernels, program::Code::Objects(objects)).map_err(unfit)?;
    Ok((info, compilation))
}
