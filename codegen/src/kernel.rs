//! Kernels: the functions of a program that back ends generate.
//!
//! A kernel is one or more functions of type [`hlo_library_base::KernelFn`] over a range of *units* (rows,
//! blocks or elements, as the kernel chooses). **Invariants:** a function creates no thread, lock or
//! allocation, and calls nothing back; calling it over `[0, units)` in any split into ranges that begin at
//! multiples of `grain`, in any order or concurrently, has the same effect to the bit; the functions of a
//! kernel (*phases*) run one after the other.

use hlo::{ComputationId, InstrId};

/// What a kernel is to compute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Request {
    /// A `fusion`. Arguments: its operands, its results.
    Fusion(InstrId),
    /// The epilogue of a `fusion` whose `hero` (a dot, convolution, ... in its computation) was computed by a
    /// library call. Arguments: the hero's result, the fusion's operands, its results. Units are the rows of
    /// the hero's result: the product of all its dimensions but the last.
    Epilogue {
        /// The fusion.
        fusion: InstrId,
        /// The instruction in its computation whose result is given.
        hero: InstrId,
    },
    /// A scalar computation applied elementwise to arrays: units are elements. Arguments: an array per
    /// parameter, an array per result leaf. Comparators, reducers and combiners of library calls are made of
    /// these.
    Map(ComputationId),
    /// A whole `while` in one function (small bodies): arguments are the leaves of its operand, then the
    /// leaves of its result (which may share their memory). Units are iterations, which run in order
    /// ([`Kernel::iterates`]).
    Loop(InstrId),
}

/// How a phase computes its units. docs/compiler.md says when each is chosen, and why.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Strategy {
    /// A vectorized loop nest over elements.
    LoopNest,
    /// A loop nest that transposes tiles in registers and the L1 cache.
    TiledTranspose,
    /// A loop nest whose lanes hold rows, since rows are shorter than a register.
    AcrossRows,
    /// A reduction along contiguous elements.
    RowReduction,
    /// A reduction across contiguous elements: each lane is a result of its own.
    ColumnReduction,
    /// A reduction of rows in the program's order, a row per lane.
    OrderedRows,
    /// Parts of a reduction in parallel (split-K).
    SplitReduction,
    /// What combines the parts of a [`Strategy::SplitReduction`].
    CombineParts,
    /// Chained reductions and broadcasts, row by row while the row is in cache.
    RowFusion,
    /// The same for short rows, a row per lane.
    ShortRows,
    /// The same for medium-length rows, sweep by sweep over blocks of rows.
    RowBlocks,
    /// A scatter fused with what makes its updates.
    Scatter,
    /// A whole loop in one kernel.
    SingleKernelLoop,
    /// The expressions evaluated element by element, without machine code.
    Interpreted,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Strategy; 14] = [
        Strategy::LoopNest,
        Strategy::TiledTranspose,
        Strategy::AcrossRows,
        Strategy::RowReduction,
        Strategy::ColumnReduction,
        Strategy::OrderedRows,
        Strategy::SplitReduction,
        Strategy::CombineParts,
        Strategy::RowFusion,
        Strategy::ShortRows,
        Strategy::RowBlocks,
        Strategy::Scatter,
        Strategy::SingleKernelLoop,
        Strategy::Interpreted,
    ];

    /// Its name in profiles.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::LoopNest => "vectorized loop nest",
            Strategy::TiledTranspose => "tiled transpose",
            Strategy::AcrossRows => "vectorized across rows",
            Strategy::RowReduction => "row reduction",
            Strategy::ColumnReduction => "column reduction",
            Strategy::OrderedRows => "ordered row reduction",
            Strategy::SplitReduction => "split-K reduction",
            Strategy::CombineParts => "combination of parts",
            Strategy::RowFusion => "row fusion",
            Strategy::ShortRows => "row fusion, a row per lane",
            Strategy::RowBlocks => "row fusion in blocks of rows",
            Strategy::Scatter => "scatter",
            Strategy::SingleKernelLoop => "single-kernel loop",
            Strategy::Interpreted => "element by element",
        }
    }

    /// The one of this name.
    pub fn by_name(name: &str) -> Option<Strategy> {
        Strategy::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// A phase: one function of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Phase {
    /// Its symbol in the object code.
    pub symbol: String,
    /// How it computes them.
    pub strategy: Strategy,
    /// The number of units.
    pub units: u64,
    /// Ranges begin at multiples of this.
    pub grain: u64,
    /// The preferred number of consecutive units per call, if that leaves some for each thread.
    pub run: u64,
    /// Bytes that all units read and write, each array counted once.
    pub bytes: u64,
    /// Arithmetic operations of all units; an elementary function counts as 20.
    pub flops: u64,
}

/// What a call of a kernel that [iterates](Kernel::iterates) leaves at the beginning of its scratch memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Progress {
    /// 1: the loop continues. 0: it has ended.
    pub goes_on: u64,
    /// The number of iterations since the beginning.
    pub iterations: u64,
}

/// A kernel as the launch plan sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// What it computes, for people: the name of the instruction.
    pub name: String,
    /// Its functions, in order.
    pub phases: Vec<Phase>,
    /// The size of its scratch memory in bytes, 64-byte aligned; 0: none, and no argument for it.
    pub scratch: u64,
    /// Whether it is a loop. Then its only phase runs the iterations `begin..end`, fewer if the loop ends
    /// before: iteration 0 begins with the operand, later calls with the result as the previous call left it.
    /// The scratch memory then begins with a [`Progress`]. The caller chooses the number of iterations per
    /// call, and checks deadlines and limits in between.
    pub iterates: bool,
}

impl Kernel {
    /// The strategies of its phases, for people.
    pub fn strategy(&self) -> String {
        let mut names: Vec<&str> = self.phases.iter().map(|p| p.strategy.name()).collect();
        names.dedup();
        names.join(", ")
    }
}
