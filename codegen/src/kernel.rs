//! Kernels: the pieces of a program that become machine code.
//!
//! A kernel is one or more functions of type [`hlo_library::KernelFn`] over a range of *units* (rows, blocks or elements: the kernel's own affair).
//! **Invariants:** a function makes no thread, lock, allocation or call back; calling it over `[0, units)` in any split into ranges that begin at
//! multiples of `grain`, in any order or at once, has the same effect to the bit; the functions of a kernel (*phases*) run one after the other.

use hlo::{ComputationId, InstrId};

/// What a kernel is to compute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Request {
    /// A `fusion`. Arguments: its operands, its results.
    Fusion(InstrId),
    /// A `fusion` whose `hero` (a dot, convolution, ... in its computation) was computed by other means. Arguments: the hero's result, the
    /// fusion's operands, its results. Units are the rows of the hero's result: the product of all its dimensions but the last.
    Epilogue {
        /// The fusion.
        fusion: InstrId,
        /// The instruction in its computation whose result is given.
        hero: InstrId,
    },
    /// A computation of scalars applied elementwise to arrays: units are elements. Arguments: an array a parameter, an array a result leaf.
    /// What comparators, reducers and combiners of operations with general regions are made of.
    Map(ComputationId),
    /// A whole `while` in one function (small bodies): arguments are the leaves of its operand, then the leaves of its result (which may be the same
    /// memory). Its units are iterations, which are done in order ([`Kernel::iterates`]).
    Loop(InstrId),
}

/// One function of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Phase {
    /// Its symbol in the object code.
    pub symbol: String,
    /// The number of units.
    pub units: u64,
    /// Ranges begin at multiples of this.
    pub grain: u64,
    /// Units next to each other that one call should do, where that leaves some for each thread.
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
    /// 1: the loop goes on. 0: it has ended.
    pub goes_on: u64,
    /// How many iterations were done since the beginning.
    pub iterations: u64,
}

/// A kernel as the launch plan sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// What it computes, for people: the name of the instruction.
    pub name: String,
    /// Its functions, in order.
    pub phases: Vec<Phase>,
    /// Bytes of scratch memory, 64-byte aligned; 0: none, and no argument for it.
    pub scratch: u64,
    /// Whether it is a loop. Then the only phase does the iterations `begin..end`, fewer if the loop ends before: those from 0 on begin with the operand,
    /// others with the result as the call before left it. The scratch memory then begins with a [`Progress`]. Who calls it chooses how many iterations a
    /// call does, and looks at clocks and limits in between.
    pub iterates: bool,
}
