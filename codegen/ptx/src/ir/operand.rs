//! Operands and modes of instructions: registers, constants, spaces, operations by family.

use crate::types::Type;

/// A general register of a function: 32 lanes of 64 bits, narrower values in the low bits, the others zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reg(pub u32);

/// A predicate register of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pred(pub u32);

/// A source of an instruction: a register, or a constant of the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Src {
    /// A register.
    Reg(Reg),
    /// An entry of [`Module::constants`](super::Module::constants).
    Const(u32),
}

/// A predicate that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PredSrc {
    /// A register; `true` negates.
    Reg(Pred, bool),
    /// A constant.
    Const(bool),
}

/// A constant, broadcast over lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Constant {
    /// Bits.
    Value(u64),
    /// The address of a variable in its space, and an offset.
    Variable(u32, i64),
    /// The address of a variable as a generic address, and an offset.
    Generic(u32, i64),
    /// A function, for indirect calls.
    Function(u32),
}

/// A state space of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Space {
    /// No space: the address says which.
    Generic,
    /// Memory of the device.
    Global,
    /// Memory of a block.
    Shared,
    /// Memory of a thread.
    Local,
    /// Constants.
    Const,
    /// Parameters of the kernel.
    Param,
}

impl Space {
    /// The name, as reports write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Space::Generic => "generic",
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Const => "const",
            Space::Param => "param",
        }
    }
}

/// An address: a source and an offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The base.
    pub base: Src,
    /// Added to it.
    pub offset: i64,
    /// The base has 32 bits.
    pub narrow: bool,
}

/// Operations of one integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum Int1 {
    Neg,
    Abs,
    Not,
    Cnot,
    Popc,
    Clz,
    Brev,
    Bfind,
    BfindShift,
}

/// Operations of two integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum Int2 {
    Add,
    AddSat,
    Sub,
    SubSat,
    MulLo,
    MulHi,
    MulWide,
    Mul24Lo,
    Mul24Hi,
    Div,
    Rem,
    Min,
    Max,
    MinRelu,
    MaxRelu,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    BmskClamp,
    BmskWrap,
    SzextClamp,
    SzextWrap,
}

/// Operations of three or four integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum Int3 {
    MadLo,
    MadHi,
    MadHiSat,
    MadWide,
    Mad24Lo,
    Mad24Hi,
    Mad24HiSat,
    Sad,
    Bfe,
    ShfLeftClamp,
    ShfLeftWrap,
    ShfRightClamp,
    ShfRightWrap,
    Prmt(PrmtMode),
    Lop3(u8),
    Fns,
    Dp4a(bool, bool),
    Dp2a(bool, bool, bool),
}

/// How `prmt` reads its selector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum PrmtMode {
    Default,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

/// Arithmetic with the carry flag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CarryOp {
    /// a + b (+ carry)
    Add,
    /// a - b (- borrow)
    Sub,
    /// low half of a * b, + c (+ carry)
    MadLo,
    /// high half of a * b, + c (+ carry)
    MadHi,
}

/// Rounding of floating-point results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Round {
    /// To nearest, ties to even.
    Nearest,
    /// To nearest, ties away from zero.
    NearestAway,
    /// Towards zero.
    Zero,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
}

/// Floating-point formats of arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum FloatType {
    F16,
    Bf16,
    F32,
    F64,
}

/// Floating-point operations of one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum Float1 {
    Neg,
    Abs,
    Rcp,
    Sqrt,
    RcpApprox,
    RcpApproxFtz64,
    SqrtApprox,
    RsqrtApprox,
    RsqrtApproxFtz64,
    Sin,
    Cos,
    Lg2,
    Ex2,
    Tanh,
}

/// Floating-point operations of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum Float2 {
    Add,
    Sub,
    Mul,
    Div,
    DivApprox,
    DivFull,
    Min,
    Max,
    Copysign,
}

/// How a floating-point operation treats its operands and result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FloatMode {
    /// Format of each element.
    pub ty: FloatType,
    /// Elements packed in the register: 1 or 2.
    pub lanes: u8,
    /// Rounding.
    pub round: Round,
    /// Subnormal operands and results become zeros of their sign.
    pub ftz: bool,
    /// The result is clamped to [0, 1], NaN to +0.
    pub sat: bool,
    /// `fma`: negative results become +0, NaN canonical.
    pub relu: bool,
    /// `min`, `max`: NaN operands give NaN.
    pub nan: bool,
    /// `min`, `max`: of the absolute values.
    pub abs: bool,
    /// `min`, `max`: the sign is the exclusive or of the signs.
    pub xorsign: bool,
}

/// Comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

/// Logic of truth values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum Logic {
    And,
    Or,
    Xor,
}

/// The comparison of `setp` and `set`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comparison {
    /// The relation.
    pub compare: Compare,
    /// The type of the operands.
    pub ty: Type,
    /// Subnormal operands are zeros.
    pub ftz: bool,
    /// The result is combined with a predicate.
    pub combine: Option<(Logic, PredSrc)>,
}

/// A conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conversion {
    /// Type of the result.
    pub to: Type,
    /// Type of the operand.
    pub from: Type,
    /// Rounding; of floating-point results to the format, of integral ones to an integer.
    pub round: Round,
    /// `.rni` and the like: the result is integral.
    pub integral: bool,
    /// Subnormals are zeros.
    pub ftz: bool,
    /// Integer results: the range of the type; floating point: [0, 1].
    pub sat: bool,
    /// Results beyond the range become the largest finite value.
    pub satfinite: bool,
    /// Negative results become zero.
    pub relu: bool,
}

/// Special registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    Gridid,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    Clock,
    ClockHi,
    Clock64,
    Globaltimer,
    DynamicSmemSize,
    TotalSmemSize,
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    Clusterid(u8),
    Nclusterid(u8),
    ClusterCtarank,
    ClusterNctarank,
    Zero,
}

/// Scope of a memory operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Scope {
    /// The block (and the cluster, of one block here).
    Block,
    /// The device.
    Gpu,
    /// Everything.
    Sys,
}

/// How strong a memory operation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strength {
    /// Weak: races with what it conflicts with.
    Weak,
    /// Strong at a scope: `.volatile`, `.relaxed`, `.acquire`, `.release`.
    Strong(Scope, Order),
}

/// Ordering of a strong operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum Order {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
}

/// Read-modify-write operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum AtomOp {
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Add,
    Inc,
    Dec,
    Min,
    Max,
}

/// Modes of `shfl`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum Shuffle {
    Up,
    Down,
    Bfly,
    Idx,
}

/// Modes of `vote`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum Vote {
    All,
    Any,
    Uni,
}

/// Operations of `redux`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum Redux {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// What a barrier does for the thread that comes to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BarrierOp {
    /// Waits.
    Sync,
    /// Does not wait.
    Arrive,
    /// Waits, and counts true predicates.
    Popc(Reg, PredSrc),
    /// Waits, and combines predicates (`true`: and, `false`: or).
    Combine(Pred, bool, PredSrc),
}

/// Operations on an mbarrier object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum MbarrierOp {
    Init(Src),
    Inval,
    Arrive {
        state: Option<Reg>,
        count: Option<Src>,
        drop: bool,
        expect_tx: bool,
        no_complete: bool,
    },
    ExpectTx(Src),
    CompleteTx(Src),
    /// Result, state or parity, whether it is a parity, whether it may wait.
    Test {
        result: Pred,
        state: Src,
        parity: bool,
        wait: bool,
    },
    /// `cp.async.mbarrier.arrive`; `true`: `.noinc`.
    CopyArrive(bool),
}

/// Element types of matrix multiplication.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mma {
    /// Rows of A and D.
    pub m: u8,
    /// Columns of B and D.
    pub n: u8,
    /// The contracted dimension.
    pub k: u16,
    /// Element type of A.
    pub a: Type,
    /// Element type of B.
    pub b: Type,
    /// Element type of C.
    pub c: Type,
    /// Element type of D.
    pub d: Type,
    /// The rounding of f64 results.
    pub round: Round,
    /// Integer results are clamped instead of wrapped.
    pub satfinite: bool,
    /// `.b1`: products are exclusive or instead of and.
    pub xor: bool,
    /// m8n8k4 of f16: A is by columns; B is by rows.
    pub transposed: (bool, bool),
}
