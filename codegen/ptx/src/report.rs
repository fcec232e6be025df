//! What the checker reports: the classes and words of compute-sanitizer where it has them.

use std::fmt;

use crate::ir::Space;

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// An access that is not inside one allocation, shared variable or frame (memcheck).
    OutOfBounds,
    /// An address that is no multiple of the access's size (memcheck).
    Misaligned,
    /// A write to constants or parameters (memcheck).
    ReadOnly,
    /// A read of memory that nothing wrote (initcheck).
    UninitializedMemory,
    /// A register that nothing wrote decides an address, a branch, a mask, or what is stored.
    UninitializedRegister,
    /// Two unordered writes (racecheck).
    WriteAfterWrite,
    /// A write that is not ordered behind a read (racecheck).
    WriteAfterRead,
    /// A read that is not ordered behind a write (racecheck).
    ReadAfterWrite,
    /// Threads of a warp at an aligned barrier while others of it are elsewhere (synccheck).
    DivergentWarp,
    /// Threads of a block wait for others that never come (synccheck).
    DivergentBlock,
    /// A barrier with wrong numbers (synccheck).
    InvalidBarrier,
    /// A member mask without the executing thread, or with threads that execute something else (synccheck).
    InvalidMask,
    /// An mbarrier that is used before it is initialized, or beyond its counts.
    InvalidMbarrier,
    /// The kernel did not end within its fuel.
    OutOfFuel,
    /// `trap` was executed.
    Trap,
    /// An instruction that is not executed here.
    Unsupported,
    /// Calls nest too deep, or a call of no function.
    InvalidCall,
    /// The launch does not fit the kernel or the device.
    InvalidLaunch,
}

/// What a fault that stops a launch is due to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// What the kernel does.
    Kernel,
    /// How it is launched.
    Launch,
    /// It took as many instructions as it may, and had not ended.
    Fuel,
    /// What this interpreter does not execute.
    Unsupported,
}

impl Fault {
    /// What it is due to.
    pub fn cause(self) -> Cause {
        match self {
            Fault::OutOfBounds
            | Fault::Misaligned
            | Fault::ReadOnly
            | Fault::UninitializedMemory
            | Fault::UninitializedRegister
            | Fault::WriteAfterWrite
            | Fault::WriteAfterRead
            | Fault::ReadAfterWrite
            | Fault::DivergentWarp
            | Fault::DivergentBlock
            | Fault::InvalidBarrier
            | Fault::InvalidMask
            | Fault::InvalidMbarrier
            | Fault::Trap
            | Fault::InvalidCall => Cause::Kernel,
            Fault::InvalidLaunch => Cause::Launch,
            Fault::OutOfFuel => Cause::Fuel,
            Fault::Unsupported => Cause::Unsupported,
        }
    }
}

/// How sure the fault is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Right only under assumptions about the execution of a warp (racecheck's warnings).
    Warning,
    /// Wrong.
    Error,
}

/// A thread and its block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Thread {
    /// `%tid`
    pub thread: [u32; 3],
    /// `%ctaid`
    pub block: [u32; 3],
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([x, y, z], [a, b, c]) = (self.thread, self.block);
        write!(f, "thread ({x},{y},{z}) in block ({a},{b},{c})")
    }
}

/// The other access of a race.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Other {
    /// Whose.
    pub thread: Thread,
    /// Line of the text.
    pub line: u32,
    /// The text of the line.
    pub source: String,
    /// Whether it wrote.
    pub wrote: bool,
}

/// A fault that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// What.
    pub fault: Fault,
    /// How sure.
    pub severity: Severity,
    /// In words.
    pub message: String,
    /// The kernel.
    pub kernel: String,
    /// Line of the text; 0: none.
    pub line: u32,
    /// The text of the line.
    pub source: String,
    /// Who.
    pub thread: Thread,
    /// The space of the access.
    pub space: Option<Space>,
    /// The address of the access, in its space.
    pub address: Option<u64>,
    /// The other access of a race.
    pub other: Option<Other>,
    /// How often it was found at these lines.
    pub count: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "Warning",
            Severity::Error => "Error",
        };
        writeln!(f, "{severity}: {}", self.message)?;
        write!(f, "    at kernel {}", self.kernel)?;
        if self.line > 0 {
            write!(f, ", line {}: {}", self.line, self.source)?;
        }
        write!(f, "\n    by {}", self.thread)?;
        if let Some(a) = self.address {
            write!(f, "\n    Address {a:#x}")?;
        }
        if let Some(o) = &self.other {
            let what = if o.wrote { "Write" } else { "Read" };
            write!(f, "\n    {what} access by {} at line {}: {}", o.thread, o.line, o.source)?;
        }
        if self.count > 1 {
            write!(f, "\n    {} times at these lines", self.count)?;
        }
        Ok(())
    }
}
