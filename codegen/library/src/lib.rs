//! Library calls: operations that are compiled with this crate rather than with the program: contractions, convolutions, sorting, transforms, linear algebra. A program
//! holds one as a [`LibraryCall`]: a description that was made when it was compiled, with every static fact that running it needs.
//!
//! One file (or folder) a family. **Invariants:** the result is the same to the bit whatever the number of threads (work is split by shapes alone); an
//! operation allocates nothing while it runs but takes the scratch memory that it asked for, where a library that it calls allows that.

#![allow(
    unsafe_code,
    reason = "operations on raw memory, with the instructions of the machine: this crate is the room for it"
)]

mod concatenate;
mod convolution;
mod cores;
mod dot;
mod fft;
mod floats;
pub mod isa;
mod lanes;
pub mod lapack;
mod linalg;
pub mod memory;
pub mod pool;
pub mod portable;
mod random;
mod reduce_window;
mod region;
mod scatter;
mod select_and_scatter;
mod selection;
mod simd;
pub mod sizes;
pub mod sort;
#[cfg(test)]
mod testing;
mod topk;
pub mod tuning;
mod unsupported;
pub mod window;
mod workspace;

use std::sync::Arc;

pub use self::sort::{FloatOrder, Part, SortKey, sort_keys};
pub use unsupported::{REFUSAL, Unsupported};

use hlo::{ComputationId, InstrId, Module, Opcode};

use crate::pool::Pool;
use crate::portable::Function;
use dot::view::View;

/// `fn(arguments, begin, end)`: does the units `begin..end`.
///
/// `arguments` points to as many pointers as the kernel has arguments, in this order: every array leaf of the operands, every array leaf of the
/// result, then the scratch memory if the kernel asks for some. Arrays lie dense and row-major in the types of [`hlo::literal::Buffer`]
/// (`pred` a byte of 0 or 1, sub-byte types a normalized byte each, complex numbers as pairs), aligned to 64 bytes unless they are parts of larger buffers.
pub type KernelFn = unsafe extern "C" fn(arguments: *const *mut u8, begin: u64, end: u64);

/// What an operation is called with.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// Array leaves of the operands, then of the result: dense, row-major, as [`crate::KernelFn`] says.
    pub arguments: &'a [*mut u8],
    /// As many bytes as [`LibraryCall::scratch_bytes`] said, aligned to 64; undefined contents.
    pub scratch: *mut u8,
    /// The kernels of [`LibraryCall::regions`], in order.
    pub regions: &'a [Function],
    /// Called with a range of finished rows of the result (rows: all dimensions but the last), each row once, from any thread.
    pub epilogue: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// What [`LibraryCall::prepare`] has written; null: nothing.
    pub prepared: *const u8,
    /// Threads.
    pub pool: &'a Arc<Pool>,
}

/// A call that several threads carry out together.
#[derive(Clone, Copy)]
struct Sent<'a>(Call<'a>);

impl<'a> Sent<'a> {
    /// The call, as a whole: so that closures capture what may be sent.
    fn get(&self) -> &Call<'a> {
        &self.0
    }
}

// SAFETY: threads use the pointers for different elements; each operation says how.
unsafe impl Send for Sent<'_> {}
// SAFETY: as above.
unsafe impl Sync for Sent<'_> {}

/// What every operation says and does.
trait Operation {
    /// As [`LibraryCall::strategy`].
    fn strategy(&self) -> &'static str;

    /// Bytes of scratch memory that a call needs.
    fn scratch_bytes(&self) -> u64 {
        0
    }

    /// The applied computations that it calls as `Request::Map` kernels.
    fn regions(&self) -> Vec<ComputationId> {
        Vec::new()
    }

    /// Bytes read and written, and arithmetic operations, of a call: for profiles.
    fn cost(&self) -> (u64, u64);

    /// Whether a call leaves all of its results.
    fn is_whole(&self) -> bool {
        true
    }

    /// As [`LibraryCall::prepared_bytes`].
    fn prepared_bytes(&self, _constant: &[bool]) -> Option<u64> {
        None
    }

    /// As [`LibraryCall::prepare`].
    ///
    /// # Safety
    /// As [`LibraryCall::prepare`].
    unsafe fn prepare(&self, _arguments: &[*const u8], _to: *mut u8, _pool: &Pool) -> Prepared {
        Prepared::Beside
    }

    /// Executes it.
    ///
    /// # Safety
    /// As [`LibraryCall::run`].
    unsafe fn run(&self, call: Call<'_>);
}

/// What becomes of an operand that was prepared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prepared {
    /// Calls may read it too.
    Beside,
    /// No call reads it any more.
    Instead,
}

/// Bytes of the header of a packed operand, which holds a fact about its values (whether all are finite, the
/// smallest magnitude). As many as arrays are aligned to, so that what follows is aligned as well.
pub(crate) const PREPARED_HEADER_BYTES: usize = 64;

/// The operand that is prepared where it is constant: the right one, which holds the weights.
pub const PREPARED_OPERAND: usize = 1;

/// An operation and all of its static facts.
#[derive(Clone, Debug)]
pub struct LibraryCall(Kind);

/// The operations, by family.
#[derive(Clone, Debug)]
enum Kind {
    Concatenate(concatenate::Concatenate),
    Convolution(Box<convolution::Convolution>),
    Dot(Box<dot::Dot>),
    RaggedDot(Box<dot::ragged::RaggedDot>),
    ScaledDot(Box<dot::scaled::ScaledDot>),
    Fft(fft::Fft),
    Linalg(linalg::Linalg),
    GeneralReduceWindow(reduce_window::General),
    RandomBits(random::Bits),
    Scan(reduce_window::Scan),
    Scatter(scatter::Scatter),
    SelectAndScatter(select_and_scatter::SelectAndScatter),
    ReduceWindow(Box<reduce_window::ReduceWindow>),
    Sort(sort::Sort),
    TopK(topk::TopK),
}

impl Kind {
    fn operation(&self) -> &dyn Operation {
        match self {
            Kind::Concatenate(op) => op,
            Kind::Convolution(op) => &**op,
            Kind::Dot(op) => &**op,
            Kind::RaggedDot(op) => &**op,
            Kind::ScaledDot(op) => &**op,
            Kind::Fft(op) => op,
            Kind::Linalg(op) => op,
            Kind::GeneralReduceWindow(op) => op,
            Kind::RandomBits(op) => op,
            Kind::Scan(op) => op,
            Kind::Scatter(op) => op,
            Kind::SelectAndScatter(op) => op,
            Kind::ReduceWindow(op) => &**op,
            Kind::Sort(op) => op,
            Kind::TopK(op) => op,
        }
    }
}

impl LibraryCall {
    /// The operation that executes an instruction; `None` if its opcode is not executed this way. Errors: a case of it that is not supported.
    pub fn of(module: &Module, id: InstrId) -> Option<Result<LibraryCall, Unsupported>> {
        // Not a dispatch: whatever is not here is executed in other ways.
        let kind = match module.instr(id).opcode {
            Opcode::Concatenate => concatenate::Concatenate::of(module, id).map(Kind::Concatenate),
            Opcode::Convolution => {
                convolution::Convolution::of(module, id).map(|op| Kind::Convolution(Box::new(op)))
            }
            Opcode::Dot => dot::Dot::of(module, id).map(|op| Kind::Dot(Box::new(op))),
            Opcode::Fft => fft::Fft::of(module, id).map(Kind::Fft),
            Opcode::RngBitGenerator => random::Bits::of(module, id).map(Kind::RandomBits),
            Opcode::ReduceWindow => reduce_window::of(module, id),
            Opcode::RaggedDot => {
                dot::ragged::RaggedDot::of(module, id).map(|op| Kind::RaggedDot(Box::new(op)))
            }
            Opcode::ScaledDot => {
                dot::scaled::ScaledDot::of(module, id).map(|op| Kind::ScaledDot(Box::new(op)))
            }
            Opcode::Scan => reduce_window::Scan::of(module, id).map(Kind::Scan),
            Opcode::Scatter => scatter::Scatter::of(module, id).map(Kind::Scatter),
            Opcode::SelectAndScatter => {
                select_and_scatter::SelectAndScatter::of(module, id).map(Kind::SelectAndScatter)
            }
            Opcode::Sort => sort::Sort::of(module, id).map(Kind::Sort),
            Opcode::Topk => topk::TopK::of(module, id).map(Kind::TopK),
            Opcode::Cholesky | Opcode::TriangularSolve | Opcode::CustomCall => {
                Ok(Kind::Linalg(linalg::Linalg::of(module, id)?))
            }
            _others => return None,
        };
        Some(kind.map(LibraryCall))
    }

    /// The operation that executes the hero of a fusion, and for each of its arguments which of the fusion's operands it is: what only moves or
    /// widens elements between those and the hero, the operation reads through. `None` if the opcode has no epilogue.
    pub fn of_hero(module: &Module, hero: InstrId) -> Option<Result<(LibraryCall, Vec<usize>), Unsupported>> {
        let opcode = module.instr(hero).opcode;
        if opcode != Opcode::Dot && opcode != Opcode::Convolution {
            return None;
        }
        let operands = module.instr(hero).operands();
        let views = || -> Result<[View; 2], Unsupported> {
            Ok([View::of(module, operands[0])?, View::of(module, operands[1])?])
        };
        Some(views().and_then(|views| {
            let parameters = views.iter().map(|view| view.parameter).collect();
            let kind = if opcode == Opcode::Dot {
                Kind::Dot(Box::new(dot::Dot::of_views(module, hero, views)?))
            } else {
                Kind::Convolution(Box::new(convolution::Convolution::of_views(module, hero, views)?))
            };
            Ok((LibraryCall(kind), parameters))
        }))
    }

    /// The operation that executes a fusion of nothing but a scatter of the fusion's operands in their order, `None` if there is none that is faster than
    /// a kernel. **Its result may be its first operand.**
    pub fn of_scatter(module: &Module, root: InstrId) -> Option<LibraryCall> {
        let instr = module.instr(root);
        let in_order = instr.operands().iter().enumerate().all(|(k, &o)| {
            module.instr(o).opcode == Opcode::Parameter
                && module.instr(o).parameter_number().and_then(|n| usize::try_from(n).ok()) == Some(k)
        });
        if instr.opcode != Opcode::Scatter || !in_order {
            return None;
        }
        scatter::Scatter::of_fusion(module, root).map(|op| LibraryCall(Kind::Scatter(op)))
    }

    /// Operands of an instruction that may lie where the results of the same numbers do, if they die there.
    pub fn in_place(module: &Module, id: InstrId) -> Vec<usize> {
        match module.instr(id).opcode {
            Opcode::Sort => sort::known(module, id).collect(),
            _others_read_while_they_write => Vec::new(),
        }
    }

    /// How it is computed, by the names of docs/compiler.md: "GEMV", "split-K GEMM", "direct convolution", "radix sort", ...
    pub fn strategy(&self) -> &'static str {
        self.0.operation().strategy()
    }

    /// Bytes of scratch memory that a call needs.
    pub fn scratch_bytes(&self) -> u64 {
        self.0.operation().scratch_bytes()
    }

    /// The applied computations that it calls as `Request::Map` kernels.
    pub fn regions(&self) -> Vec<ComputationId> {
        self.0.operation().regions()
    }

    /// Bytes read and written, and arithmetic operations, of a call: for profiles.
    pub fn cost(&self) -> (u64, u64) {
        self.0.operation().cost()
    }

    /// Whether a call leaves all of its results: not what only sorts that are looked at in part do.
    pub fn is_whole(&self) -> bool {
        self.0.operation().is_whole()
    }

    /// Bytes of what calls would find ready if some of the operands are constant, packed once before all of them: `None` if nothing would be gained.
    /// **Invariant:** results have the same bits with it and without.
    pub fn prepared_bytes(&self, constant: &[bool]) -> Option<u64> {
        self.0.operation().prepared_bytes(constant)
    }

    /// Packs [`PREPARED_OPERAND`].
    ///
    /// # Safety
    /// [`LibraryCall::prepared_bytes`] said how many bytes there are at `to`, aligned to 64; the operand is valid and will not change as long as calls are given them.
    pub unsafe fn prepare(&self, arguments: &[*const u8], to: *mut u8, pool: &Pool) -> Prepared {
        // SAFETY: as the caller says.
        unsafe { self.0.operation().prepare(arguments, to, pool) }
    }

    /// Executes it. Of a sort, elements that the module's instructions do not look at may be left as they were.
    ///
    /// # Safety
    /// The pointers of `call` are valid for the arrays of the instruction that this was made of, results overlap neither operands nor each other (but as
    /// [`LibraryCall::of_scatter`] and [`LibraryCall::in_place`] say), and what was prepared was prepared of these operands.
    pub unsafe fn run(&self, call: Call<'_>) {
        // SAFETY: as the caller says.
        unsafe { self.0.operation().run(call) }
    }
}
