//! Compiled programs as bytes: what a cache keeps on disk and what `hlo compile` writes.
//!
//! ```text
//! magic (8) │ version (4) │ length of the header (4) │ SHA-256 of all that follows (32) │ header │ blobs
//! ```
//!
//! Numbers are little-endian. The header (postcard) has the fused and scheduled module as text with constants elided, what the kernels are, and the lengths of the blobs: object code, then
//! values of constants. Where values lie and the launch plan are derived again when it is loaded. **Invariant:** what does not have the checksum, the version, the compiler's build and the
//! features that it says is refused before anything else of it is looked at; what comes of the module is verified. The checksum finds damage, not malice: machine code is machine
//! code, so an artifact is to be trusted as a program is.

use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue};
use hlo::print::{PrintOptions, print_module};
use hlo::{ArrayLiteral, ArrayShape, ConstantValue, Literal, Module, Opcode, Shape};
use hlo_codegen::compilation::Compilation;
use hlo_codegen::kernel::{Kernel, Phase};
use hlo_codegen::program::array_bytes;
use hlo_codegen::run_time_sizes::{Check, RunTimeSizes, RunTimeSizesParts};
use hlo_codegen::runtime::raw::{buffer_of, bytes_of};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Code, Error};
use crate::machine;

/// What an artifact begins with.
pub const MAGIC: [u8; 8] = *b"HLOEXE\r\n";

/// The version of the format.
const VERSION: u32 = 1;

/// Bytes before the header.
const PREFIX_BYTES: usize = 8 + 4 + 4 + 32;

/// Constants of more elements are blobs.
const INLINE_ELEMENTS: usize = 10;

/// What identifies the compiler: what was made by another one is not run, since the plan is derived by this one.
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
    /// For each constant of the module whose text is elided, the bytes of its array leaves; `None`: its text was elided already.
    constant_bytes: Vec<Option<Vec<u64>>>,
}

/// Shapes as text.
#[derive(Serialize, Deserialize)]
struct SignatureData {
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
    units: u64,
    grain: u64,
    run: u64,
    bytes: u64,
    flops: u64,
}

#[derive(Serialize, Deserialize)]
struct SizesData {
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
    bytes.starts_with(&MAGIC)
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

/// A compilation as bytes. `program` is what was compiled, `cpu` the processor as the options name it, `target` as people do.
///
/// # Errors
/// More text than the format can hold.
pub fn write(compilation: &Compilation, program: &Module, cpu: &str, target: &str) -> Result<Vec<u8>, Error> {
    let module = compilation.module();
    let signature = Signature::of(program);
    let values: Vec<&ConstantValue> = constants(module).filter_map(|id| elided(module, id)).collect();
    let leaves = |value: &&ConstantValue| match value {
        ConstantValue::Given(literal) => {
            Some(literal.arrays().iter().map(|a| bytes_of(&a.buffer).len() as u64).collect())
        }
        ConstantValue::Elided => None,
    };
    let phase = |p: &Phase| PhaseData {
        symbol: p.symbol.clone(),
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
    let shapes = |shapes: &[ArrayShape]| shapes.iter().map(ToString::to_string).collect();
    let check = |Check { dimension, bound, lacking }: Check| CheckData { dimension, bound, lacking };
    let sizes = compilation.run_time_sizes().map(RunTimeSizes::parts).map(|parts| SizesData {
        parameters: shapes(&parts.parameters),
        results: shapes(&parts.results),
        checks: parts.checks.into_iter().map(check).collect(),
    });
    let print = PrintOptions { normalize: false, ..PrintOptions::LONG }.eliding(INLINE_ELEMENTS);
    let header = Header {
        build: BUILD.to_owned(),
        needs: machine::needed(cpu).into_iter().map(str::to_owned).collect(),
        target: target.to_owned(),
        signature: SignatureData {
            name: signature.name,
            parameters: signature.parameters.iter().map(ToString::to_string).collect(),
            result: signature.result.to_string(),
        },
        fallback: compilation.falls_back(),
        module: print_module(module, &print),
        kernels: compilation.kernels().iter().map(|k| k.as_ref().map(kernel)).collect(),
        sizes,
        object_bytes: compilation.objects().iter().map(|o| o.len() as u64).collect(),
        constant_bytes: values.iter().map(leaves).collect(),
    };
    let header = postcard::to_allocvec(&header)
        .map_err(|e| Error::new(Code::Internal, "the header cannot be written").caused_by(e))?;
    let header_bytes = u32::try_from(header.len())
        .map_err(|_| Error::new(Code::Unimplemented, "the text of the program has more than 4 GiB"))?;
    let mut bytes = vec![0; PREFIX_BYTES];
    bytes.extend(header);
    compilation.objects().iter().for_each(|o| bytes.extend_from_slice(o));
    for value in values {
        if let ConstantValue::Given(literal) = value {
            literal.arrays().iter().for_each(|a| bytes.extend_from_slice(bytes_of(&a.buffer)));
        }
    }
    let hash: [u8; 32] = Sha256::digest(&bytes[PREFIX_BYTES..]).into();
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&header_bytes.to_le_bytes());
    bytes[16..48].copy_from_slice(&hash);
    Ok(bytes)
}

fn damaged(what: impl Into<String>) -> Error {
    Error::new(Code::DataLoss, what)
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

/// The header, and what follows it. Errors: the bytes are no whole artifact.
fn open(bytes: &[u8]) -> Result<(Header, &[u8]), Error> {
    let prefix = bytes.get(..PREFIX_BYTES).filter(|_| is_artifact(bytes));
    let prefix = prefix.ok_or_else(|| damaged("this is no compiled program"))?;
    let number = |at: usize| u32::from_le_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]]);
    if number(8) != VERSION {
        let message = format!("a compiled program of version {}; this is version {VERSION}", number(8));
        return Err(Error::new(Code::FailedPrecondition, message));
    }
    let rest = &bytes[PREFIX_BYTES..];
    if Sha256::digest(rest)[..] != prefix[16..48] {
        return Err(damaged("the compiled program is damaged: its checksum does not fit"));
    }
    let header = rest.get(..number(12) as usize).ok_or_else(|| damaged("the compiled program is cut"))?;
    let blobs = &rest[header.len()..];
    let header = postcard::from_bytes(header).map_err(|e| damaged("the header is damaged").caused_by(e))?;
    Ok((header, blobs))
}

/// What an artifact says of itself.
///
/// # Errors
/// It is none, or damaged.
pub fn info(bytes: &[u8]) -> Result<ArtifactInfo, Error> {
    let (header, _) = open(bytes)?;
    let shape =
        |text: &String| hlo_parser::parse_shape(text).map_err(|_| damaged(format!("\"{text}\" is no shape")));
    let SignatureData { name, parameters, result } = header.signature;
    let parameters = parameters.iter().map(shape).collect::<Result<_, _>>()?;
    Ok(ArtifactInfo {
        signature: Signature { name, parameters, result: shape(&result)? },
        code_bytes: header.object_bytes.iter().sum(),
        constant_bytes: header.constant_bytes.iter().flatten().flatten().sum(),
        build: header.build,
        target: header.target,
        needs: header.needs,
    })
}

/// Cuts pieces off the front of bytes.
struct Blobs<'a>(&'a [u8]);

impl<'a> Blobs<'a> {
    fn take(&mut self, bytes: u64) -> Result<&'a [u8], Error> {
        let split = usize::try_from(bytes).ok().and_then(|n| self.0.split_at_checked(n));
        let (blob, rest) = split.ok_or_else(|| damaged("the compiled program is cut"))?;
        self.0 = rest;
        Ok(blob)
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

/// The compilation that an artifact holds.
///
/// # Errors
/// It is none or damaged ([`Code::DataLoss`]); made by another build of the compiler, or for a machine with other features
/// ([`Code::FailedPrecondition`]).
pub fn read(bytes: &[u8]) -> Result<Compilation, Error> {
    let (header, blobs) = open(bytes)?;
    if header.build != BUILD {
        let message = format!("compiled by {}; this is {BUILD}", header.build);
        return Err(Error::new(Code::FailedPrecondition, message));
    }
    let has = machine::features();
    if let Some(lacking) = header.needs.iter().find(|need| !has.contains(&need.as_str())) {
        let message = format!("compiled for {}: this machine has no {lacking}", header.target);
        return Err(Error::new(Code::FailedPrecondition, message));
    }
    let mut blobs = Blobs(blobs);
    let mut objects: Vec<Arc<[u8]>> = Vec::with_capacity(header.object_bytes.len());
    for &bytes in &header.object_bytes {
        objects.push(blobs.take(bytes)?.into());
    }
    let parsed = hlo_parser::parse_module(&header.module, &hlo_parser::ParseOptions::default());
    let mut module =
        parsed.module.ok_or_else(|| damaged("the module of the compiled program does not parse"))?;
    let mut lengths = header.constant_bytes.iter();
    let elided: Vec<_> = constants(&module).filter(|&id| elided(&module, id).is_some()).collect();
    for id in elided {
        match lengths.next() {
            Some(Some(leaves)) => {
                let value = literal(&module.instr(id).shape, &mut leaves.iter(), &mut blobs)?;
                let value = AttrValue::Literal(ConstantValue::Given(Arc::new(value)));
                module.instr_mut(id).attrs.set(AttrKey::ConstantValue, value);
            }
            Some(None) => {}
            None => return Err(damaged("a constant has no value")),
        }
    }
    if lengths.next().is_some() || !blobs.0.is_empty() {
        return Err(damaged("the compiled program has values of no constant"));
    }
    if hlo::verify::verify(&module).has_errors() {
        return Err(damaged("the module of the compiled program does not verify"));
    }
    let sizes = match header.sizes {
        Some(SizesData { parameters, results, checks }) => {
            let check = |CheckData { dimension, bound, lacking }| Check { dimension, bound, lacking };
            let checks = checks.into_iter().map(check).collect();
            let parts =
                RunTimeSizesParts { parameters: shapes(&parameters)?, results: shapes(&results)?, checks };
            Some(RunTimeSizes::from(parts))
        }
        None => None,
    };
    let phase = |p: PhaseData| Phase {
        symbol: p.symbol,
        units: p.units,
        grain: p.grain,
        run: p.run,
        bytes: p.bytes,
        flops: p.flops,
    };
    let kernel = |k: KernelData| Kernel {
        name: k.name,
        phases: k.phases.into_iter().map(phase).collect(),
        scratch: k.scratch,
        iterates: k.iterates,
    };
    let kernels = header.kernels.into_iter().map(|k| k.map(kernel)).collect();
    let refused = |what: String| damaged(format!("the compiled program does not fit this compiler: {what}"));
    let compilation =
        Compilation::new(module, sizes, header.fallback).map_err(|e| refused(e.diagnostic().message))?;
    compilation.with_kernels(kernels, objects).map_err(|e| refused(e.to_string()))
}
