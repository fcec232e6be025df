//! The verified module: typed instructions, one variant a family, with every name resolved.
//!
//! Invariant: registers, predicates, constants, labels, functions and variables are indices into their
//! tables; what the verifier let through, the interpreter executes or refuses by name ([`Op::Unsupported`]).

mod operand;

pub use operand::*;

use crate::types::Type;

/// An instruction of the interpreter.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are the operands of the instruction that the variant names")]
pub enum Op {
    /// Nothing to execute: hints, prefetches, fences of proxies.
    Nop,
    /// Parsed, verified, and not executed.
    Unsupported(String),
    Bra {
        target: u32,
    },
    BrxIdx {
        index: Src,
        targets: Box<[u32]>,
    },
    Call(Box<Call>),
    Ret,
    Exit,
    Trap,
    Mov {
        d: Reg,
        s: Src,
    },
    MovPred {
        d: Pred,
        s: PredSrc,
    },
    Pack {
        d: Reg,
        parts: Box<[Src]>,
        bits: u32,
    },
    Unpack {
        parts: Box<[Option<Reg>]>,
        s: Src,
        bits: u32,
    },
    Special {
        d: Reg,
        which: Special,
    },
    /// The address in local space of a local variable or a parameter of a function: an offset into the frame.
    FrameAddress {
        d: Reg,
        offset: u32,
    },
    Cvta {
        d: Reg,
        s: Src,
        space: Space,
        to: bool,
        bits: u32,
    },
    Isspacep {
        d: Pred,
        s: Src,
        space: Space,
    },
    Int1 {
        op: Int1,
        bits: u32,
        signed: bool,
        d: Reg,
        a: Src,
    },
    Int2 {
        op: Int2,
        bits: u32,
        signed: bool,
        packed: bool,
        d: Reg,
        a: Src,
        b: Src,
    },
    Int3 {
        op: Int3,
        bits: u32,
        signed: bool,
        d: Reg,
        a: Src,
        b: Src,
        c: Src,
    },
    Bfi {
        bits: u32,
        d: Reg,
        a: Src,
        b: Src,
        start: Src,
        length: Src,
    },
    Carry {
        op: CarryOp,
        bits: u32,
        signed: bool,
        read: bool,
        write: bool,
        d: Reg,
        a: Src,
        b: Src,
        c: Src,
    },
    /// `lop3.BoolOp`: the value, and a predicate that says whether it is not zero, combined with another.
    Lop3Pred {
        lut: u8,
        logic: Logic,
        d: Option<Reg>,
        p: Pred,
        a: Src,
        b: Src,
        c: Src,
        q: PredSrc,
    },
    Float1 {
        op: Float1,
        mode: FloatMode,
        d: Reg,
        a: Src,
    },
    Float2 {
        op: Float2,
        mode: FloatMode,
        d: Reg,
        a: Src,
        b: Src,
    },
    Fma {
        mode: FloatMode,
        d: Reg,
        a: Src,
        b: Src,
        c: Src,
    },
    /// add, sub and fma of f32 with operands of f16 or bf16: the operands are converted first.
    Widen {
        from: FloatType,
        d: Reg,
        a: Src,
    },
    Testp {
        d: Pred,
        class: Testp,
        bits: u32,
        a: Src,
    },
    Setp {
        cmp: Comparison,
        p: Option<Pred>,
        q: Option<Pred>,
        a: Src,
        b: Src,
    },
    /// `set`: true is all ones, or 1.0 of a floating-point result type.
    Set {
        cmp: Comparison,
        to: Type,
        d: Reg,
        a: Src,
        b: Src,
    },
    Selp {
        bits: u32,
        d: Reg,
        a: Src,
        b: Src,
        c: PredSrc,
    },
    Slct {
        float: bool,
        ftz: bool,
        d: Reg,
        a: Src,
        b: Src,
        c: Src,
    },
    PredLogic {
        logic: Logic,
        d: Pred,
        a: PredSrc,
        b: PredSrc,
    },
    Cvt {
        conversion: Conversion,
        d: Reg,
        a: Src,
    },
    /// Conversion of two values into a packed register: `a` goes to the upper half.
    CvtPacked {
        conversion: Conversion,
        d: Reg,
        a: Src,
        b: Src,
    },
    /// `cvt.pack.sat`: the results are put into the low bits of `c` shifted up.
    CvtPack {
        to: Type,
        d: Reg,
        a: Src,
        b: Src,
        c: Option<Src>,
    },
    /// `used`: bit n says that byte n of what is loaded is used (`.pragma "used_bytes_mask"`); the others may
    /// lie beyond the allocation.
    Ld {
        space: Space,
        ty: Type,
        strength: Strength,
        nc: bool,
        used: u32,
        d: Box<[Option<Reg>]>,
        address: Address,
    },
    St {
        space: Space,
        ty: Type,
        strength: Strength,
        s: Box<[Src]>,
        address: Address,
    },
    Atom {
        op: AtomOp,
        space: Space,
        ty: Type,
        scope: Scope,
        order: Order,
        d: Box<[Option<Reg>]>,
        address: Address,
        b: Box<[Src]>,
        c: Option<Src>,
    },
    Shfl {
        mode: Shuffle,
        d: Reg,
        p: Option<Pred>,
        a: Src,
        b: Src,
        c: Src,
        members: Option<Src>,
    },
    Vote {
        mode: Vote,
        d: Pred,
        a: PredSrc,
        members: Option<Src>,
    },
    Ballot {
        d: Reg,
        a: PredSrc,
        members: Option<Src>,
    },
    Match {
        all: bool,
        d: Reg,
        p: Option<Pred>,
        bits: u32,
        a: Src,
        members: Src,
    },
    Activemask {
        d: Reg,
    },
    Redux {
        op: Redux,
        ty: Type,
        abs: bool,
        nan: bool,
        d: Reg,
        a: Src,
        members: Src,
    },
    Elect {
        d: Option<Reg>,
        p: Pred,
        members: Src,
    },
    WarpSync {
        members: Src,
    },
    Barrier {
        op: BarrierOp,
        id: Src,
        count: Option<Src>,
        aligned: bool,
    },
    Fence {
        scope: Scope,
    },
    Mbarrier {
        op: MbarrierOp,
        space: Space,
        address: Address,
    },
    /// `mbarrier.pending_count`
    PendingCount {
        d: Reg,
        a: Src,
    },
    CpAsync {
        shared: Address,
        global: Address,
        bytes: u32,
        source_bytes: Option<Src>,
        ignore: Option<PredSrc>,
    },
    CpAsyncCommit,
    CpAsyncWait {
        pending: u32,
    },
    LdMatrix {
        d: Box<[Reg]>,
        trans: bool,
        address: Address,
    },
    StMatrix {
        s: Box<[Src]>,
        trans: bool,
        address: Address,
    },
    MovMatrix {
        d: Reg,
        a: Src,
    },
    Mma {
        shape: Mma,
        d: Box<[Reg]>,
        a: Box<[Src]>,
        b: Box<[Src]>,
        c: Box<[Src]>,
    },
}

/// Classes of `testp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as the ISA names them")]
pub enum Testp {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// A call.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// The function, or the source of its index and the functions that may be meant (empty: any).
    pub callee: Callee,
    /// Arguments in order.
    pub arguments: Vec<Passed>,
    /// Results in order.
    pub results: Vec<Passed>,
}

/// Whom a call calls.
#[derive(Clone, PartialEq, Debug)]
pub enum Callee {
    /// A function of the module.
    Direct(u32),
    /// The function that the source says.
    Indirect(Src),
}

/// An argument or result of a call, on the side of the caller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Passed {
    /// A `.param` variable: its offset in the frame, and its bytes.
    Param(u32, u32),
    /// A source and its bytes.
    Value(Src, u32),
    /// A register for a result.
    Result(Reg),
}

/// An instruction with its guard and line.
#[derive(Clone, PartialEq, Debug)]
pub struct Inst {
    /// What is executed.
    pub op: Op,
    /// Lanes for which the predicate is false execute nothing; `true` negates.
    pub guard: Option<(Pred, bool)>,
    /// Line of the text.
    pub line: u32,
}

/// A parameter of a kernel or function.
#[derive(Clone, PartialEq, Debug)]
pub struct Param {
    /// The name.
    pub name: String,
    /// Offset in the parameter space of a kernel, or in the frame of a function.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// A function's parameter that is a register.
    pub register: Option<Reg>,
}

/// A kernel or function.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Function {
    /// The name.
    pub name: String,
    /// Whether it is an `.entry`.
    pub is_kernel: bool,
    /// Whether it has a body.
    pub is_defined: bool,
    /// Parameters.
    pub params: Vec<Param>,
    /// Returned parameters.
    pub returns: Vec<Param>,
    /// Bytes of a kernel's parameters.
    pub param_bytes: u32,
    /// Number of general registers.
    pub registers: u32,
    /// Number of predicates.
    pub predicates: u32,
    /// Bytes of local memory of a frame.
    pub frame_bytes: u32,
    /// The instructions.
    pub code: Vec<Inst>,
    /// For each instruction the one where its diverged lanes meet again: the immediate post-dominator;
    /// `u32::MAX`: none.
    pub reconverge: Vec<u32>,
    /// `.reqntid`
    pub reqntid: Option<[u32; 3]>,
    /// `.maxntid`
    pub maxntid: Option<[u32; 3]>,
    /// Line of the header.
    pub line: u32,
}

/// A variable of the module or of a function that is not in registers or in the frame.
#[derive(Clone, PartialEq, Debug)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// `Global`, `Const` or `Shared`.
    pub space: Space,
    /// Alignment in bytes.
    pub align: u32,
    /// Size in bytes; of dynamic shared memory 0.
    pub bytes: u64,
    /// `.extern .shared x[]`: as many bytes as the launch says.
    pub is_dynamic: bool,
    /// The function that declares it.
    pub owner: Option<u32>,
    /// Initial bytes, shorter than the variable where the rest is zero. A variable without initial value is
    /// zero too.
    pub initial: Vec<u8>,
    /// Addresses within the initial value: offset, width in bytes, what.
    pub relocations: Vec<(u64, u8, Constant)>,
}

/// A verified module.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Module {
    /// `.version`, as major * 10 + minor.
    pub version: u32,
    /// `.target sm_90a`: 90.
    pub arch: u32,
    /// The letter behind: `a`, `f`.
    pub arch_suffix: String,
    /// Bits of an address.
    pub address_bits: u32,
    /// Kernels and functions.
    pub functions: Vec<Function>,
    /// Variables.
    pub variables: Vec<Variable>,
    /// Constants of instructions.
    pub constants: Vec<Constant>,
    /// The lines of the text, for reports.
    pub lines: Vec<String>,
}

impl Module {
    /// The index of a kernel.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<usize> {
        self.functions.iter().position(|f| f.is_kernel && f.is_defined && f.name == name)
    }

    /// The names of all kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().filter(|f| f.is_kernel && f.is_defined).map(|f| f.name.as_str())
    }
}
