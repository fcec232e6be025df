//! Custom calls to LAPACK, as JAX emits them for CPUs: `lapack_{s,d,c,z}ROUTINE_ffi`, and JAX's own
//! `tridiagonal_solve_perturbed_ffi`.
//!
//! A call is a routine on each matrix of a batch. Its settings are in `backend_config`, a dictionary of MLIR;
//! its operands and results are matrices in column-major layouts, vectors and an `s32` `info`, as in jaxlib's
//! `lapack_kernels.cc`. **Invariant:** what does not fit is refused before anything is computed; [`check`]
//! refuses the same from shapes alone, before a run. The computation is in [`hlo_matrices`], each element of a
//! result rounded once; where LAPACK leaves a result unspecified, it is what the module of the routine's
//! family says.

mod config;
mod eigen;
mod factor;
mod shapes;
mod solve;

use hlo::literal::BufferOf;
use hlo::num_complex::Complex;
use hlo_matrices::Decompose;
use hlo_matrices::svd::Driver;
use hlo_matrices::wide::{self, Field, Widened};

use self::shapes::Job;
use super::{Args, Cx};
use crate::custom_call::Call;
use crate::error::Result;
use crate::value::Value;

/// A parsed target name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A routine of LAPACK on elements of a type.
    Lapack(Letter, Routine),
    /// `tridiagonal_solve_perturbed_ffi`, of any type.
    TridiagonalPerturbed,
}

/// The element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Letter {
    S,
    D,
    C,
    Z,
}

/// The routine, by its name for real matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Routine {
    Gees,
    Geev,
    Gehrd,
    Geqp3,
    Geqrf,
    Gesdd,
    Gesvd,
    Getrf,
    Gtsv,
    Orgqr,
    Ormqr,
    Potrf,
    Syevd,
    Sytrd,
    Trsm,
}

impl Target {
    /// The target of that name, if there is one.
    pub(super) fn parse(name: &str) -> Option<Target> {
        if name == "tridiagonal_solve_perturbed_ffi" {
            return Some(Target::TridiagonalPerturbed);
        }
        let name = name.strip_prefix("lapack_")?.strip_suffix("_ffi")?;
        let (letter, routine) = name.split_at_checked(1)?;
        let letter = match letter {
            "s" => Letter::S,
            "d" => Letter::D,
            "c" => Letter::C,
            "z" => Letter::Z,
            _ => return None,
        };
        let real = matches!(letter, Letter::S | Letter::D);
        let routine = match (routine, real) {
            ("gees", _) => Routine::Gees,
            ("geev", _) => Routine::Geev,
            ("gehrd", _) => Routine::Gehrd,
            ("geqp3", _) => Routine::Geqp3,
            ("geqrf", _) => Routine::Geqrf,
            ("gesdd", _) => Routine::Gesdd,
            ("gesvd", _) => Routine::Gesvd,
            ("getrf", _) => Routine::Getrf,
            ("gtsv", _) => Routine::Gtsv,
            ("orgqr", true) | ("ungqr", false) => Routine::Orgqr,
            ("ormqr", true) | ("unmqr", false) => Routine::Ormqr,
            ("potrf", _) => Routine::Potrf,
            ("syevd", true) | ("heevd", false) => Routine::Syevd,
            ("sytrd", true) | ("hetrd", false) => Routine::Sytrd,
            ("trsm", _) => Routine::Trsm,
            _ => return None,
        };
        Some(Target::Lapack(letter, routine))
    }
}

/// An element type of LAPACK.
trait LapackElement: Widened<Wide: Decompose> + BufferOf {
    /// The type of its parts.
    type Real: Widened<Wide = <Self::Wide as Field>::Real> + BufferOf;
    /// The complex type of such parts.
    type Complex: Widened<Wide = wide::Complex<<Self::Wide as Field>::Real>> + BufferOf;
    /// Twice the unit of rounding of the parts.
    const EPSILON: f64;
    /// The smallest normal number of the parts.
    const TINY: f64;
}

macro_rules! elements {
    ($($t:ty, $real:ty);*) => {$(
        impl LapackElement for $t {
            type Real = $real;
            type Complex = Complex<$real>;
            const EPSILON: f64 = <$real>::EPSILON as f64;
            const TINY: f64 = <$real>::MIN_POSITIVE as f64;
        }
    )*};
}
elements!(f32, f32; f64, f64; Complex<f32>, f32; Complex<f64>, f64);

/// Runs a call.
pub(super) fn run(cx: &Cx<'_>, call: &Call<'_>, target: Target, args: Args) -> Result<Value> {
    let value = of(&Job::new(cx, call, args)?, target)?;
    Ok(value.expect("invariant: a job with values has results"))
}

/// Refuses a call of a form that [`run`] refuses. Of sizes that are known at run time alone nothing is said.
pub(super) fn check(call: &Call<'_>, target: Target) -> Result<()> {
    match Job::of_shapes(call)? {
        Some(job) => of(&job, target).map(drop),
        None => Ok(()),
    }
}

/// The results of a job; `None`: it has no values, and its form is one that the routine takes.
fn of(job: &Job<'_>, target: Target) -> Result<Option<Value>> {
    match target {
        Target::Lapack(Letter::S, routine) => typed::<f32>(job, routine),
        Target::Lapack(Letter::D, routine) => typed::<f64>(job, routine),
        Target::Lapack(Letter::C, routine) => typed::<Complex<f32>>(job, routine),
        Target::Lapack(Letter::Z, routine) => typed::<Complex<f64>>(job, routine),
        Target::TridiagonalPerturbed => solve::perturbed_of_any_type(job),
    }
}

fn typed<T: LapackElement>(job: &Job<'_>, routine: Routine) -> Result<Option<Value>> {
    match routine {
        Routine::Gees => eigen::gees::<T>(job),
        Routine::Geev => eigen::geev::<T>(job),
        Routine::Gehrd => factor::gehrd::<T>(job),
        Routine::Geqp3 => factor::geqp3::<T>(job),
        Routine::Geqrf => factor::geqrf::<T>(job),
        Routine::Gesdd => eigen::svd::<T>(job, Driver::DivideAndConquer),
        Routine::Gesvd => eigen::svd::<T>(job, Driver::Iteration),
        Routine::Getrf => factor::getrf::<T>(job),
        Routine::Gtsv => solve::gtsv::<T>(job),
        Routine::Orgqr => factor::orgqr::<T>(job),
        Routine::Ormqr => factor::ormqr::<T>(job),
        Routine::Potrf => factor::potrf::<T>(job),
        Routine::Syevd => eigen::syevd::<T>(job),
        Routine::Sytrd => factor::sytrd::<T>(job),
        Routine::Trsm => solve::trsm::<T>(job),
    }
}
