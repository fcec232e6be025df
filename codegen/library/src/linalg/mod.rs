//! Linear algebra: `cholesky`, `triangular-solve` and LAPACK's routines, one matrix of a batch a task, of
//! triangular systems one panel of right-hand sides ([`solve`]).
//!
//! Conventions are the interpreter's (SEMANTICS.md, "LAPACK"): signs of reflectors, pivots from 1, `info`,
//! what stays of the operand, NaN on failure. Calls whose results have a bound, and calls that ask for it,
//! are computed by [`hlo_linalg`] in the element type's own arithmetic; other routines by
//! [`hlo_matrices::routines`] ([`own`]), to the bit or in f64 with the same signs, and so are matrices whose
//! pivots or signs depend on rounding ([`By::Either`]). Other routines and types are executed by the
//! interpreter: [`Linalg::of`] is `None` then.

mod call;
mod own;
mod routine;
mod solve;

use std::sync::{Mutex, PoisonError};

use hlo::{ElementType, InstrId, Module};
use hlo_library_base::memory::{Layout, Shared};
use hlo_library_base::{Call, Operation, Sent};
use hlo_linalg::{Element, StackReq};
use hlo_matrices::eigen_symmetric::Eigenvectors;
use hlo_matrices::routines::Arithmetic;

use self::call::Given;

/// The maximum of tasks.
const TASKS: usize = 32;

/// Scratch memory above which there are fewer tasks.
const MAX_SCRATCH_BYTES: u64 = 1 << 27;

/// Up to this order (for singular values the lesser dimension) the interpreter decomposes, with the signs of
/// LAPACK's iteration.
const MAX_INTERPRETED_ORDER: usize = 25;

/// What is computed of each matrix. Numbers are its sizes.
#[derive(Clone, Copy, Debug)]
enum Routine {
    /// The operation: the other triangle is 0, a failure NaN.
    Cholesky { n: usize, lower: bool },
    /// The operation, and trsm.
    Solve { n: usize, rows: usize, columns: usize, left: bool, system: hlo_linalg::System },
    /// potrf.
    Potrf { n: usize, lower: bool },
    /// getrf.
    Lu { m: usize, n: usize },
    /// geqrf.
    Qr { m: usize, n: usize },
    /// orgqr.
    FormQ { m: usize, n: usize, taus: usize },
    /// ormqr: of reflectors of `n` columns, as many as there are taus.
    MultiplyQ { n: usize, taus: usize, rows: usize, columns: usize, side: hlo_linalg::Side },
    /// syevd.
    Eigen { n: usize, wanted: Eigenvectors, lower: bool },
    /// gesdd, or gesvd by iteration. `full`: the shapes of u and vt.
    Svd { m: usize, n: usize, vectors: hlo_linalg::Vectors, full: bool, iteration: bool },
}

/// Whose arithmetic it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    /// The element type's own ([`hlo_linalg`]).
    Library,
    /// The interpreter's code ([`own`]), in its arithmetic or in the element type's.
    Interpreter(Arithmetic),
    /// The element type's own; of matrices whose pivots or signs are in doubt then, the interpreter's.
    Either,
}

/// The operation: arguments are those of the instruction.
#[derive(Clone, Debug)]
pub(crate) struct Linalg {
    routine: Routine,
    by: By,
    ty: ElementType,
    /// Matrices.
    count: usize,
    /// For each argument the elements of one matrix of the batch, and the bytes of an element.
    arguments: Vec<(usize, usize)>,
    tasks: usize,
    task_bytes: u64,
}

impl Linalg {
    /// For an instruction, if it is one of these; what is wrong with it, the interpreter says.
    pub(super) fn of(module: &Module, id: InstrId) -> Option<Linalg> {
        let Given { routine, by, ty, count, arguments } = call::read(module, id)?;
        if let By::Interpreter(_) = by {
            return Some(Linalg { routine, by, ty, count, arguments, tasks: 0, task_bytes: 0 });
        }
        let need = typed(ty, Scratch { routine })?;
        let one = u64::try_from(need.unaligned_bytes_required()).ok()?;
        let mut layout = Layout::default();
        layout.add(one, 1);
        let task_bytes = layout.bytes();
        let max_tasks = usize::try_from(MAX_SCRATCH_BYTES / task_bytes.max(1)).unwrap_or(1).max(1);
        let tasks = count.saturating_mul(routine.panels()).min(TASKS).min(max_tasks);
        Some(Linalg { routine, by, ty, count, arguments, tasks, task_bytes })
    }
}

/// A function that is generic in the element type.
trait Typed {
    type Result;
    fn run<T: Element + hlo_matrices::routines::Element>(self) -> Self::Result;
}

/// Calls the function for a type; `None` if the type is none of linear algebra's.
fn typed<F: Typed>(ty: ElementType, f: F) -> Option<F::Result> {
    use hlo::num_complex::Complex;
    // Not a dispatch: all others are the interpreter's.
    match ty {
        ElementType::F32 => Some(f.run::<f32>()),
        ElementType::F64 => Some(f.run::<f64>()),
        ElementType::C64 => Some(f.run::<Complex<f32>>()),
        ElementType::C128 => Some(f.run::<Complex<f64>>()),
        _others => None,
    }
}

/// Working memory of a task.
struct Scratch {
    routine: Routine,
}

impl Typed for Scratch {
    type Result = StackReq;

    fn run<T: Element + hlo_matrices::routines::Element>(self) -> StackReq {
        self.routine.scratch::<T>()
    }
}

/// The matrices, or panels, of a task.
struct Task<'a> {
    op: &'a Linalg,
    call: Sent<'a>,
    task: usize,
    /// Matrices that the interpreter is to do.
    doubtful: &'a Mutex<Vec<usize>>,
}

impl Typed for Task<'_> {
    type Result = ();

    fn run<T: Element + hlo_matrices::routines::Element>(self) {
        let Task { op, call, task, doubtful } = self;
        let call = call.get();
        let bytes = op.task_bytes as usize;
        // SAFETY: each task has its own part of the scratch memory, of which any bytes are values of this
        // type.
        let stack = unsafe {
            let at = Shared::<std::mem::MaybeUninit<u8>>::new(call.scratch.add(task * bytes));
            hlo_linalg::MemStack::new(at.slice_mut(0, bytes))
        };
        let panels = op.routine.panels();
        let all = op.count * panels;
        for panel in all * task / op.tasks..all * (task + 1) / op.tasks {
            let (i, panel) = (panel / panels, panel % panels);
            let arguments = op.arguments.iter().zip(call.arguments);
            // SAFETY: matrix i of each argument.
            let at = arguments.map(|(&(elements, bytes), &p)| unsafe { p.add(i * elements * bytes) });
            let pointers: smallvec::SmallVec<[*mut u8; 8]> = at.collect();
            let doubt = op.by == By::Either;
            // SAFETY: the pointers are those of one matrix, whose panel no other task has.
            let decided = unsafe { op.routine.run::<T>(&pointers, &op.arguments, panel, stack, doubt) };
            if !decided {
                doubtful.lock().unwrap_or_else(PoisonError::into_inner).push(i);
            }
        }
    }
}

/// Matrices, by the interpreter's arithmetic.
struct Own<'a> {
    op: &'a Linalg,
    call: Sent<'a>,
    /// Which; `None` is all.
    some: Option<&'a [usize]>,
    arithmetic: Arithmetic,
}

impl Typed for Own<'_> {
    type Result = ();

    fn run<T: Element + hlo_matrices::routines::Element>(self) {
        // SAFETY: as who made this says.
        unsafe { own::run::<T>(self.op, *self.call.get(), self.some, self.arithmetic) }
    }
}

impl Operation for Linalg {
    fn strategy(&self) -> &'static str {
        match self.by {
            By::Library => "blocked factorization",
            By::Interpreter(_) => "blocked factorization in the interpreter's arithmetic",
            By::Either => {
                "blocked factorization, in the interpreter's arithmetic where pivots or signs are in doubt"
            }
        }
    }

    fn scratch_bytes(&self) -> u64 {
        self.task_bytes.saturating_mul(self.tasks as u64)
    }

    fn cost(&self) -> (u64, u64) {
        let bytes: usize = self.arguments.iter().map(|&(elements, bytes)| elements * bytes).sum();
        let each = if self.ty.is_complex() { 4.0 } else { 1.0 };
        let count = self.count as f64;
        ((bytes as f64 * count) as u64, (self.routine.flops() * each * count) as u64)
    }

    unsafe fn run(&self, call: Call<'_>) {
        if self.count == 0 {
            return;
        }
        if let By::Interpreter(arithmetic) = self.by {
            // SAFETY: as the caller says.
            typed(self.ty, Own { op: self, call: Sent(call), some: None, arithmetic });
            return;
        }
        let doubtful = Mutex::default();
        let (pool, sent) = (call.pool, Sent(call));
        pool.run(self.tasks, &|task| {
            // SAFETY: tasks have different matrices, or panels.
            typed(self.ty, Task { op: self, call: sent, task, doubtful: &doubtful });
        });
        let doubtful = doubtful.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !doubtful.is_empty() {
            // SAFETY: as the caller says; the tasks are done.
            typed(self.ty, Own { op: self, call: sent, some: Some(&doubtful), arithmetic: Arithmetic::Wide });
        }
    }
}

#[cfg(test)]
mod tests;
