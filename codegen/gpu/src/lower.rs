//! Lowering: how each instruction of a fused and scheduled module is executed on a GPU. Without LLVM: modules
//! loaded from files are lowered again.

use hlo::attrs::{AttrKey, FusionKind};
use hlo::{ArrayShape, ComputationId, InstrId, Module, Opcode, opcode};
use hlo_codegen::Unsupported;
use hlo_codegen::plan::lower::{MAX_DEPTH, check_shapes};
use hlo_interp::custom_call::Call;
use hlo_library_base::memory::array_bytes;
use hlo_opt::buffers::control_computations;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::one_device;

/// The family of kernels that executes an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// Loop fusion: every element of every result is an expression of elements of operands.
    Loop,
    /// Reductions, with producers and epilogues.
    Reduce,
    /// Row fusion: reductions over rows, and per-element results, in one kernel.
    Rows,
    /// A contraction of two operands.
    Dot,
    /// A convolution.
    Convolution,
    /// A grouped contraction whose group sizes are data.
    RaggedDot,
    /// A contraction of operands with scales.
    ScaledDot,
    /// Windows of an array are folded.
    ReduceWindow,
    /// A prefix scan along a dimension.
    Scan,
    /// A scatter.
    Scatter,
    /// A select-and-scatter.
    SelectAndScatter,
    /// A sort.
    Sort,
    /// Top-k.
    TopK,
    /// A discrete Fourier transform.
    Fft,
    /// Random bits by a counter.
    RandomBits,
    /// A Cholesky factorization.
    Cholesky,
    /// A triangular system.
    TriangularSolve,
    /// A collective, on a single device.
    OneDevice,
}

/// How an instruction is executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lowering {
    /// Not at all: it is an alias.
    Nothing,
    /// By kernels.
    Kernel(Family),
    /// By copying bytes.
    Copy,
    /// By running what it calls.
    While,
    /// By running a branch.
    Conditional,
    /// By running what it calls.
    Call,
}

/// Decides how an instruction is executed. Errors: nothing executes it.
pub fn decide(module: &Module, id: InstrId) -> Result<Lowering, Unsupported> {
    check_shapes(module, id)?;
    let refuse = |reason: &str| Err(Unsupported::new(module, id, reason));
    let opcode = module.instr(id).opcode;
    match opcode {
        Opcode::Copy | Opcode::Reshape => Ok(Lowering::Copy),
        Opcode::Bitcast if hlo_opt::buffers::alias_of(module, id).is_some() => Ok(Lowering::Nothing),
        Opcode::Bitcast => refuse("a bitcast that is no view of its operand"),
        Opcode::Fusion => fusion(module, id),
        Opcode::While => Ok(Lowering::While),
        Opcode::Conditional => Ok(Lowering::Conditional),
        Opcode::Call => Ok(Lowering::Call),
        Opcode::Reduce => Ok(Lowering::Kernel(Family::Reduce)),
        Opcode::Map => Ok(Lowering::Kernel(Family::Loop)),
        Opcode::Dot => Ok(Lowering::Kernel(Family::Dot)),
        Opcode::Convolution => Ok(Lowering::Kernel(Family::Convolution)),
        Opcode::ReduceWindow => Ok(Lowering::Kernel(Family::ReduceWindow)),
        Opcode::Scan => Ok(Lowering::Kernel(Family::Scan)),
        Opcode::Scatter => Ok(Lowering::Kernel(Family::Scatter)),
        Opcode::SelectAndScatter => Ok(Lowering::Kernel(Family::SelectAndScatter)),
        Opcode::Sort => Ok(Lowering::Kernel(Family::Sort)),
        Opcode::Topk => Ok(Lowering::Kernel(Family::TopK)),
        Opcode::Fft => Ok(Lowering::Kernel(Family::Fft)),
        Opcode::RngBitGenerator => Ok(Lowering::Kernel(Family::RandomBits)),
        Opcode::RaggedDot => Ok(Lowering::Kernel(Family::RaggedDot)),
        Opcode::ScaledDot => Ok(Lowering::Kernel(Family::ScaledDot)),
        Opcode::Cholesky => Ok(Lowering::Kernel(Family::Cholesky)),
        Opcode::TriangularSolve => Ok(Lowering::Kernel(Family::TriangularSolve)),
        Opcode::CustomCall if is_top_k(module, id) => Ok(Lowering::Kernel(Family::TopK)),
        Opcode::CustomCall if let Some(family) = lapack(module, id) => Ok(Lowering::Kernel(family)),
        Opcode::CustomCall if one_device::stages(module, id).is_some() => {
            Ok(Lowering::Kernel(Family::OneDevice))
        }
        opcode => match opcode.family() {
            opcode::Family::Elementwise | opcode::Family::Bits | opcode::Family::Movement => {
                Ok(Lowering::Kernel(Family::Loop))
            }
            opcode::Family::Structure => Ok(Lowering::Nothing),
            opcode::Family::Sizes => refuse("sizes known only at run time"),
            opcode::Family::Collective | opcode::Family::DeviceNumber if opcode != Opcode::RaggedAllToAll => {
                match one_device::stages(module, id) {
                    Some(_) => Ok(Lowering::Kernel(Family::OneDevice)),
                    None => refuse("other devices have a part in it"),
                }
            }
            opcode::Family::Random
            | opcode::Family::Async
            | opcode::Family::Collective
            | opcode::Family::DeviceNumber
            | opcode::Family::Host => refuse("other devices, hosts or earlier runs have a part in it"),
            opcode::Family::Contraction
            | opcode::Family::Region
            | opcode::Family::Order
            | opcode::Family::Normalization
            | opcode::Family::LinearAlgebra
            | opcode::Family::Transform
            | opcode::Family::Control
            | opcode::Family::CustomCall => refuse("there is no kernel for it"),
        },
    }
}

/// Whether a custom call, of arrays, is a top-k.
fn is_top_k(module: &Module, id: InstrId) -> bool {
    const TARGETS: [&str; 4] = ["TopK", "__gpu$TopK", "mhlo.topk", "chlo.top_k"];
    let instr = module.instr(id);
    TARGETS.contains(&instr.attrs.str(AttrKey::CustomCallTarget).unwrap_or_default())
}

/// The family of a LAPACK call that has a kernel: those whose results have certified bounds. All others have
/// one right answer, to the bit.
fn lapack(module: &Module, id: InstrId) -> Option<Family> {
    let call = Call { instruction: module.instr(id), module };
    let (_, name) = hlo_library::lapack::routine(call.target())?;
    let family = match name {
        "potrf" => Family::Cholesky,
        "trsm" => Family::TriangularSolve,
        _others => return None,
    };
    (!call.is_bound() && call.check().is_ok()).then_some(family)
}

/// The family of a fusion: that of its instructions which are no expressions of single elements.
fn fusion(module: &Module, id: InstrId) -> Result<Lowering, Unsupported> {
    let computation = module.instr(id).attrs.computation(AttrKey::Calls);
    let computation = computation.ok_or_else(|| Unsupported::new(module, id, "it calls nothing"))?;
    if module.instr(id).attrs.fusion_kind() == Some(&FusionKind::Output) {
        let mut heroes = module.instructions(computation).filter(|&i| is_hero(module, i));
        return match (heroes.next().map(|i| module.instr(i).opcode), heroes.next()) {
            (Some(Opcode::Dot), None) => Ok(Lowering::Kernel(Family::Dot)),
            (Some(_), None) => Ok(Lowering::Kernel(Family::Convolution)),
            (_, _) => {
                let reason = "an output fusion of several contractions, or of none";
                Err(Unsupported::new(module, id, reason))
            }
        };
    }
    let root = module.root(computation);
    // A contraction alone, a GEMV for instance, is no reduction.
    let mut computed =
        module.instructions(computation).filter(|&i| module.instr(i).opcode != Opcode::Parameter);
    let is_alone = computed.next() == Some(root) && computed.next().is_none();
    if is_alone && module.instr(root).opcode == Opcode::Dot && hlo_opt::fusion::is_fold(module, root) {
        return Ok(Lowering::Kernel(Family::Dot));
    }
    if module.instr(root).opcode == Opcode::Scatter {
        return Ok(Lowering::Kernel(Family::Scatter));
    }
    let folds = module.instructions(computation).any(|i| hlo_opt::fusion::is_fold(module, i));
    let is_rows = module.instr(id).attrs.fusion_kind() == Some(&FusionKind::Custom);
    Ok(Lowering::Kernel(match (folds, is_rows) {
        (true, true) => Family::Rows,
        (true, false) => Family::Reduce,
        (false, _) => Family::Loop,
    }))
}

/// Whether it can be the hero of an output fusion.
fn is_hero(module: &Module, id: InstrId) -> bool {
    matches!(module.instr(id).opcode, Opcode::Dot | Opcode::Convolution)
}

/// The contraction or convolution that the kernel of an instruction computes: itself, or the hero of an
/// output fusion.
pub fn hero(module: &Module, id: InstrId) -> InstrId {
    let computation = module.instr(id).attrs.computation(AttrKey::Calls);
    let inside = computation.and_then(|c| module.instructions(c).find(|&i| is_hero(module, i)));
    inside.filter(|_| module.instr(id).opcode == Opcode::Fusion).unwrap_or(id)
}

/// The decisions on all instructions that run.
#[derive(Debug, Default)]
pub struct Lowered {
    /// By instruction.
    pub decisions: FxHashMap<InstrId, Lowering>,
    /// The instructions that have kernels, in order.
    pub kernels: Vec<InstrId>,
}

impl Lowered {
    /// Decides on every instruction that is reached from the entry through control flow.
    pub fn new(module: &Module) -> Result<Self, Unsupported> {
        let mut lowered = Self::default();
        let mut stack: Vec<(ComputationId, usize)> = vec![(module.entry(), 0)];
        let mut seen = FxHashSet::default();
        while let Some((computation, depth)) = stack.pop() {
            if !seen.insert(computation) {
                continue;
            }
            for id in module.instructions(computation) {
                let decision = decide(module, id)?;
                if matches!(decision, Lowering::While | Lowering::Conditional | Lowering::Call) {
                    if depth == MAX_DEPTH {
                        let reason = format!("calls, loops and branches nested deeper than {MAX_DEPTH}");
                        return Err(Unsupported::new(module, id, reason));
                    }
                    stack.extend(control_computations(module, id).into_iter().map(|c| (c, depth + 1)));
                }
                if matches!(decision, Lowering::Kernel(_)) {
                    lowered.kernels.push(id);
                }
                lowered.decisions.insert(id, decision);
            }
        }
        Ok(lowered)
    }
}

/// Bytes of an array leaf.
///
/// # Panics
/// If it is larger than memory can be, which [`decide`] refuses.
pub fn bytes_of(shape: &ArrayShape) -> u64 {
    array_bytes(shape).expect("invariant: decided on")
}
