//! Programs compiled for GPUs as bytes: what `hlo compile --target` writes, and what a cache keeps of them.
//!
//! As [`crate::artifact`]: a header with the fused and scheduled module as text and the launches of its
//! kernels, then texts of PTX, then the values of constants. Buffers and the launch plan are derived when it
//! is loaded. **Invariant:** an artifact of another build of the compiler is refused before its module is
//! parsed, and the module is verified. PTX is compiled by the driver of the machine that runs it.

use hlo::Module;
use hlo_codegen::runtime::raw::bytes_of;
use hlo_gpu::arch::Arch;
use hlo_gpu::compilation::Compilation;
use hlo_gpu::kernel::{Argument, Kernel, Launch, Stage};
use serde::{Deserialize, Serialize};

use crate::artifact::{BUILD, Signature, SignatureData, SizesData, Stored, damaged, module_of, unfit};
use crate::container::Format;
use crate::error::{Code, Error};

const FORMAT: Format = Format { magic: *b"HLOGPU\r\n", version: 1, what: "program compiled for a GPU" };

#[derive(Serialize, Deserialize)]
struct Header {
    build: String,
    arch: String,
    signature: SignatureData,
    module: String,
    kernels: Vec<KernelData>,
    sizes: Option<SizesData>,
    ptx_bytes: Vec<u64>,
    /// Symbols of kernel functions, and which text has each.
    symbols: Vec<(String, u64)>,
    constant_bytes: Vec<Option<Vec<u64>>>,
}

#[derive(Serialize, Deserialize)]
struct KernelData {
    name: String,
    stages: Vec<StageData>,
    scratch_bytes: u64,
    bytes: u64,
    flops: u64,
}

#[derive(Serialize, Deserialize)]
enum StageData {
    Launch {
        symbol: String,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        arguments: Vec<ArgumentData>,
    },
    Copy {
        from: u32,
        to: u32,
    },
    Fill {
        array: u32,
        byte: u8,
    },
}

#[derive(Serialize, Deserialize)]
enum ArgumentData {
    Array(u32),
    Word(u64),
}

/// Whether bytes begin as such an artifact does.
pub fn is_artifact(bytes: &[u8]) -> bool {
    FORMAT.is(bytes)
}

/// What an artifact says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GpuArtifactInfo {
    /// What the program takes and gives.
    pub signature: Signature,
    /// The build of the compiler that made it.
    pub build: String,
    /// The architecture that it was compiled for.
    pub arch: Arch,
    /// Bytes of PTX.
    pub code_bytes: u64,
    /// Bytes of constants.
    pub constant_bytes: u64,
}

impl GpuArtifactInfo {
    fn of(header: &Header) -> Result<Self, Error> {
        let sum = |sum: u64, bytes: &u64| sum.saturating_add(*bytes);
        Ok(Self {
            signature: header.signature.signature()?,
            build: header.build.clone(),
            arch: header.arch.parse().map_err(|e| damaged(format!("{e}")))?,
            code_bytes: header.ptx_bytes.iter().fold(0, sum),
            constant_bytes: header.constant_bytes.iter().flatten().flatten().fold(0, sum),
        })
    }
}

/// What an artifact says of itself.
///
/// # Errors
/// It is none, or damaged.
pub fn info(bytes: &[u8]) -> Result<GpuArtifactInfo, Error> {
    let (header, _) = FORMAT.read::<Header>(bytes)?;
    GpuArtifactInfo::of(&header)
}

fn stage(stage: &Stage) -> StageData {
    match stage {
        Stage::Launch(Launch { symbol, grid, block, shared_bytes, arguments }) => {
            let argument = |a: &Argument| match *a {
                Argument::Array(n) => ArgumentData::Array(n),
                Argument::Word(word) => ArgumentData::Word(word),
            };
            StageData::Launch {
                symbol: symbol.clone(),
                grid: *grid,
                block: *block,
                shared_bytes: *shared_bytes,
                arguments: arguments.iter().map(argument).collect(),
            }
        }
        Stage::Copy { from, to } => StageData::Copy { from: *from, to: *to },
        Stage::Fill { array, byte } => StageData::Fill { array: *array, byte: *byte },
    }
}

fn stage_of(stage: StageData) -> Stage {
    match stage {
        StageData::Launch { symbol, grid, block, shared_bytes, arguments } => {
            let argument = |a| match a {
                ArgumentData::Array(n) => Argument::Array(n),
                ArgumentData::Word(word) => Argument::Word(word),
            };
            let arguments = arguments.into_iter().map(argument).collect();
            Stage::Launch(Launch { symbol, grid, block, shared_bytes, arguments })
        }
        StageData::Copy { from, to } => Stage::Copy { from, to },
        StageData::Fill { array, byte } => Stage::Fill { array, byte },
    }
}

/// Writes an artifact. `program`: the module that was compiled.
///
/// # Errors
/// More text than the format can hold.
pub fn write(compilation: &Compilation, program: &Module) -> Result<Vec<u8>, Error> {
    let stored = Stored::of(compilation.module());
    let kernel = |k: &Kernel| KernelData {
        name: k.name.clone(),
        stages: k.stages.iter().map(stage).collect(),
        scratch_bytes: k.scratch_bytes,
        bytes: k.bytes,
        flops: k.flops,
    };
    let mut symbols: Vec<(String, u64)> =
        compilation.symbols().iter().map(|(symbol, &text)| (symbol.clone(), text as u64)).collect();
    symbols.sort_unstable();
    let header = Header {
        build: BUILD.to_owned(),
        arch: compilation.arch().name().to_owned(),
        signature: SignatureData::of(program),
        module: stored.text,
        kernels: compilation.kernels().iter().map(kernel).collect(),
        sizes: compilation.run_time_sizes().map(SizesData::of),
        ptx_bytes: compilation.ptx().iter().map(|text| text.len() as u64).collect(),
        symbols,
        constant_bytes: stored.constant_bytes,
    };
    let texts = compilation.ptx().iter().map(|text| text.as_bytes());
    FORMAT.write(&header, texts.chain(stored.arrays.iter().map(|array| bytes_of(&array.buffer))))
}

/// The compilation that an artifact holds, and what it says of itself.
///
/// # Errors
/// It is no artifact, or damaged ([`Code::DataLoss`]); made by another build ([`Code::FailedPrecondition`]).
pub fn read(bytes: &[u8]) -> Result<(GpuArtifactInfo, Compilation), Error> {
    let (header, mut blobs) = FORMAT.read::<Header>(bytes)?;
    if header.build != BUILD {
        let message = format!("compiled by {}; this is {BUILD}", header.build);
        return Err(Error::new(Code::FailedPrecondition, message));
    }
    let info = GpuArtifactInfo::of(&header)?;
    let mut ptx = Vec::with_capacity(header.ptx_bytes.len());
    for &bytes in &header.ptx_bytes {
        let text = std::str::from_utf8(blobs.take(bytes)?);
        ptx.push(text.map_err(|_| damaged("PTX that is no text"))?.into());
    }
    let module = module_of(&header.module, &header.constant_bytes, &mut blobs)?;
    let kernel = |k: KernelData| Kernel {
        name: k.name,
        stages: k.stages.into_iter().map(stage_of).collect(),
        scratch_bytes: k.scratch_bytes,
        bytes: k.bytes,
        flops: k.flops,
    };
    let symbol = |(symbol, text): (String, u64)| (symbol, usize::try_from(text).unwrap_or(usize::MAX));
    let kernels = header.kernels.into_iter().map(kernel).collect();
    let symbols = header.symbols.into_iter().map(symbol).collect();
    let sizes = header.sizes.map(SizesData::sizes).transpose()?;
    let compilation =
        Compilation::new(info.arch, module, sizes).map_err(|e| unfit(e.diagnostic().message))?;
    Ok((info, compilation.with_kernels(kernels, ptx, symbols)))
}
