//! Kernels: how an instruction is executed, as launches of kernel functions in order.
//!
//! A kernel function takes an address for each argument it names; arrays are dense and row-major in the types
//! of [`hlo::literal::Buffer`] (`pred` a byte of 0 or 1, sub-byte types a normalized byte each, complex
//! numbers as pairs), aligned to 64 bytes. **Invariant:** blocks of a launch are independent: they may run in
//! any order.

/// An argument of a kernel function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// The address of an array: an index into the leaves of the instruction's operands, then those of its
    /// result, then its scratch memory.
    Array(u32),
    /// A number, the same for every thread.
    Word(u64),
}

/// A launch of a kernel function.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// The symbol of the function.
    pub symbol: String,
    /// Blocks along each dimension.
    pub grid: [u32; 3],
    /// Threads of a block along each dimension.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// Its arguments, in order.
    pub arguments: Vec<Argument>,
}

/// An action.
#[derive(Clone, PartialEq, Debug)]
pub enum Stage {
    /// Launches a kernel function.
    Launch(Launch),
    /// Copies one array, by its argument number, to another of as many bytes, unless they share memory.
    Copy {
        /// From this argument.
        from: u32,
        /// To this one.
        to: u32,
    },
    /// Sets all bytes of an array, or of some of its bytes.
    Fill {
        /// The argument.
        array: u32,
        /// The byte.
        byte: u8,
    },
}

/// How an instruction is executed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Kernel {
    /// The instruction's name, for people.
    pub name: String,
    /// The actions, in order; none for results without elements.
    pub stages: Vec<Stage>,
    /// Scratch memory in bytes; 0: none.
    pub scratch_bytes: u64,
    /// Bytes that are read and written, each array counted once.
    pub bytes: u64,
    /// Arithmetic operations.
    pub flops: u64,
}
