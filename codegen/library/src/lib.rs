//! Library calls: operations that are compiled with this crate rather than with the program: contractions
//! (`hlo-contractions`), sorting, transforms, windows, linear algebra. A program holds each as a
//! [`LibraryCall`], which was made when the program was compiled and has all static facts that execution
//! needs.
//!
//! One file (or folder) a family, each an [`Operation`]. What all rest on is in `hlo-library-base`.

#![allow(
    unsafe_code,
    reason = "operations on raw memory, with the instructions of the machine: they belong to library calls"
)]

mod concatenate;
mod fft;
mod lanes;
pub mod lapack;
mod linalg;
mod random;
mod reduce_window;
mod region;
mod scatter;
mod select_and_scatter;
mod selection;
pub mod sort;
#[cfg(test)]
mod testing;
mod topk;
mod width;
pub mod window;

pub use self::sort::{FloatOrder, Part, SortKey, sort_keys};

use hlo::{ComputationId, InstrId, Module, Opcode};
use hlo_contractions::Contraction;
use hlo_library_base::pool::Pool;
use hlo_library_base::{Call, Operation, Prepared, Unsupported};

/// An operation and all of its static facts.
#[derive(Clone, Debug)]
pub struct LibraryCall(Kind);

/// The operations, by family.
#[derive(Clone, Debug)]
enum Kind {
    Concatenate(concatenate::Concatenate),
    Contraction(Contraction),
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
            Kind::Contraction(op) => op,
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
    /// The operation that executes an instruction; `None` if its opcode is not executed this way. Errors: a
    /// case of it that is not supported.
    pub fn of(module: &Module, id: InstrId) -> Option<Result<LibraryCall, Unsupported>> {
        // Not a dispatch: whatever is not here is executed in other ways.
        let kind = match module.instr(id).opcode {
            Opcode::Concatenate => concatenate::Concatenate::of(module, id).map(Kind::Concatenate),
            Opcode::Convolution | Opcode::Dot | Opcode::RaggedDot | Opcode::ScaledDot => {
                Contraction::of(module, id)?.map(Kind::Contraction)
            }
            Opcode::Fft => fft::Fft::of(module, id).map(Kind::Fft),
            Opcode::RngBitGenerator => random::Bits::of(module, id).map(Kind::RandomBits),
            Opcode::ReduceWindow => reduce_window::of(module, id),
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

    /// The operation that executes the hero of a fusion, and for each of its arguments which of the fusion's
    /// operands it is: what only moves or widens elements between those and the hero, the operation reads
    /// through. `None` if the opcode has no epilogue.
    pub fn of_hero(module: &Module, hero: InstrId) -> Option<Result<(LibraryCall, Vec<usize>), Unsupported>> {
        let found = Contraction::of_hero(module, hero)?;
        Some(found.map(|(op, parameters)| (LibraryCall(Kind::Contraction(op)), parameters)))
    }

    /// The operation that executes a fusion of nothing but a scatter of the fusion's operands in their order,
    /// `None` if there is none that is faster than a kernel. **Its result may be its first operand.**
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

    /// Operands of an instruction that may share the memory of the results of the same numbers, if this is
    /// their last use.
    pub fn in_place(module: &Module, id: InstrId) -> Vec<usize> {
        match module.instr(id).opcode {
            Opcode::Sort => sort::known(module, id).collect(),
            _others_read_while_they_write => Vec::new(),
        }
    }

    /// How it is computed, by the names of docs/compiler.md: "GEMV", "split-K GEMM", "direct convolution",
    /// "radix sort", ...
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

    /// Whether a call computes all of its results; sorts whose results are read in part do not.
    pub fn is_whole(&self) -> bool {
        self.0.operation().is_whole()
    }

    /// Bytes of a packed operand, if some of the operands are constant and are packed once before all calls;
    /// `None` if nothing would be gained.
    /// **Invariant:** results have the same bits with it and without.
    pub fn prepared_bytes(&self, constant: &[bool]) -> Option<u64> {
        self.0.operation().prepared_bytes(constant)
    }

    /// Packs [`hlo_library_base::PREPARED_OPERAND`].
    ///
    /// # Safety
    /// [`LibraryCall::prepared_bytes`] said how many bytes there are at `to`, aligned to 64; the operand is
    /// valid and will not change as long as calls are given them.
    pub unsafe fn prepare(&self, arguments: &[*const u8], to: *mut u8, pool: &Pool) -> Prepared {
        // SAFETY: as the caller says.
        unsafe { self.0.operation().prepare(arguments, to, pool) }
    }

    /// Executes it. Of a sort, elements that the module's instructions do not look at may be left as they
    /// were.
    ///
    /// # Safety
    /// The pointers of `call` are valid for the arrays of the instruction that this was made of, results
    /// overlap neither operands nor each other (but as [`LibraryCall::of_scatter`] and
    /// [`LibraryCall::in_place`] say), and what was prepared was prepared of these operands.
    pub unsafe fn run(&self, call: Call<'_>) {
        // SAFETY: as the caller says.
        unsafe { self.0.operation().run(call) }
    }
}
