//! Calls to LAPACK. What computes as an instruction of HLO does has the bounds of that instruction: `potrf`
//! is `cholesky`, `trsm` is `triangular-solve`. All others have the reference's bits, unless an
//! implementation may be another one; then, and of operands that are not exact, and of f64 and c128 (which
//! engines need not compute in double-double arithmetic), `getrf` has the bounds of its factors
//! ([`Factors`]), `geqrf`, `orgqr` and `ormqr` those of [`reflectors`], `syevd` and `gesdd` those of
//! [`decompositions`], and what is known of the others is nothing.

use std::fmt::Write;
use std::sync::Arc;

use hlo::{ElementType, Module, Shape};
use hlo_interp::custom_call::{Call, Meaning};
use hlo_library::lapack;
use hlo_perturbation::UNKNOWN;
use hlo_perturbation::factors::Factors;

use super::decompositions::{self, Algorithm};
use super::linear::{settled, unit};
use super::number::Numbers;
use super::rules::{Case, Mode, stands_for};
use super::{Bounds, Leaf, Radii, reflectors};
use hlo_perturbation::disc::SQRT_2;

/// Who computes a call that need not have the reference's bits. `None`: it has them.
fn free(case: &Case<'_>, routine: &str) -> Option<Algorithm> {
    // Of one that is asked to be a library's that would not be so.
    let other = case.settings.allowances.decompositions || lapack::is_library(case.instr);
    match other {
        true => Some(Algorithm::Library),
        false if case.has_exact_operands() && !lapack::is_rounded(case.instr, routine) => None,
        false => Some(Algorithm::Own),
    }
}

/// What is known of the results of `geqrf`, if they may be off.
pub(super) fn factors(case: &Case<'_>) -> Option<Vec<Leaf>> {
    let call = Call { instruction: case.instr, module: case.module };
    let (_, routine) = lapack::routine(call.target()).filter(|&(_, routine)| routine == "geqrf")?;
    if call.is_bound() || !matches!(call.meaning(), Meaning::Open) {
        return None;
    }
    let (bounds, basis) = reflectors::geqrf(case, free(case, routine)?)?;
    let basis = Some(Arc::new(basis));
    Some(
        bounds
            .into_iter()
            .map(|bounds| Leaf { basis: basis.clone(), ..Leaf::new(bounds.shared(), false) })
            .collect(),
    )
}

/// The bounds of all results of a call.
pub(super) fn bounds(case: &Case<'_>) -> Option<Vec<Bounds>> {
    let call = Call { instruction: case.instr, module: case.module };
    let (_, routine) = lapack::routine(call.target())?;
    let Some(algorithm) = free(case, routine) else {
        return Some(case.results.iter().map(|_| Bounds::default()).collect());
    };
    let with_vectors = || lapack::setting(case.instr, "mode").map(|mode| mode != 'N');
    let both = |radii: &dyn Fn(Mode) -> Option<Vec<Radii>>| {
        let both = radii(Mode::Soft)?.into_iter().zip(radii(Mode::Hard)?);
        Some(both.map(|(soft, hard)| Bounds::of(soft, hard)).collect())
    };
    // Not a dispatch: what is known of others is what HLO stands for them, or nothing.
    match routine {
        "getrf" => return both(&|mode| getrf(case, mode).map(Vec::from)),
        "orgqr" | "ungqr" => return both(&|mode| reflectors::orgqr(case, algorithm, mode)),
        "ormqr" | "unmqr" => {
            let left = lapack::flag(case.instr, "left")?;
            return both(&|mode| reflectors::ormqr(case, algorithm, left, mode));
        }
        "syevd" | "heevd" => {
            let (vectors, lower) = (with_vectors()?, lapack::setting(case.instr, "uplo")? == 'L');
            return both(&|mode| decompositions::eigen(case, algorithm, (vectors, lower), mode));
        }
        "gesdd" | "gesvd" => {
            let vectors = with_vectors()?;
            return both(&|mode| decompositions::singular(case, algorithm, vectors, mode));
        }
        _others => {}
    }
    let stand = Stand::of(case, routine)?;
    stand.results(case, stands_for(case, &stand.module)?.pop()?)
}

/// `(factors, pivots from 1, info) = getrf(a)`.
fn getrf(case: &Case<'_>, mode: Mode) -> Option<[Radii; 3]> {
    let ([arg], [packed, pivots, info]) = (&case.args[..], &case.results[..]) else { return None };
    let [.., rows, columns] = *arg.tensor.sizes() else { return None };
    let depth = rows.min(columns);
    let given = arg.leaf.bounds.radii(mode);
    let (v, order, info) = (Numbers::of(packed), Numbers::of(pivots), Numbers::of(info));
    let unit = unit(case, v.ty)?;
    let root = if v.im.is_some() { SQRT_2 } else { 1.0 };
    let mut off = vec![UNKNOWN; v.len()];
    let mut elsewhere = vec![UNKNOWN; order.len()];
    let mut fails = vec![UNKNOWN; info.len()];
    for m in 0..info.len() {
        let offset = m * rows * columns;
        let mut lines: Vec<usize> = (0..rows).collect();
        for (j, &with) in order.re[m * depth..][..depth].iter().enumerate() {
            lines.swap(j, (with as usize).checked_sub(1).filter(|&i| i < rows)?);
        }
        let moved: Vec<f64> = lines
            .iter()
            .flat_map(|i| (0..columns).map(move |j| given.at(offset + i * columns + j) * root))
            .collect();
        let each: Vec<_> = (offset..offset + rows * columns).map(|i| v.complex(i)).collect();
        let factors = Factors { rows, columns, packed: &each, off: &moved };
        let Some(found) = (if info.re[m] == 0.0 { factors.radii(unit) } else { None }) else { continue };
        if mode == Mode::Soft || !factors.may_pivot_elsewhere(&found) {
            off[offset..][..rows * columns].copy_from_slice(&found);
            elsewhere[m * depth..][..depth].fill(0.0);
            fails[m] = 0.0;
        }
    }
    Some([settled(case, 0, &off, mode), Radii::new(elsewhere), Radii::new(fails)])
}

/// What stands for a call.
struct Stand {
    /// Its parameters are the operands.
    module: Module,
    factor: bool,
}

impl Stand {
    /// For a call.
    fn of(case: &Case<'_>, routine: &str) -> Option<Stand> {
        let setting = |key: &str| lapack::setting(case.instr, key);
        let mut text = String::from("HloModule stand\n\nENTRY main {\n");
        for (i, arg) in case.args.iter().enumerate() {
            let shape = shape(arg.tensor.element_type(), arg.tensor.dims());
            writeln!(text, "  p{i} = {shape} parameter({i})").ok()?;
        }
        let result = case.results.first()?;
        let of = shape(result.element_type(), result.dims());
        let lower = setting("uplo")? == 'L';
        match routine {
            "potrf" => {
                let rank = result.dims().len();
                let (rows, columns) = (rank.checked_sub(2)?, rank - 1);
                let (indices, choice) =
                    (shape(ElementType::S32, result.dims()), shape(ElementType::Pred, result.dims()));
                let direction = if lower { "GE" } else { "LE" };
                write!(
                    text,
                    "  l = {of} cholesky(p0), lower={lower}\n  i = {indices} iota(), iota_dimension={rows}\n  j = {indices} iota(), iota_dimension={columns}\n  \
                     on = {choice} compare(i, j), direction={direction}\n  ROOT x = {of} select(on, l, p0)\n}}\n"
                )
                .ok()?;
            }
            "trsm" => {
                let transpose = match setting("trans_x")? {
                    'N' => "NO_TRANSPOSE",
                    'T' => "TRANSPOSE",
                    'C' => "ADJOINT",
                    _other => return None,
                };
                let (left, unit) = (setting("side")? == 'L', setting("diag")? == 'U');
                write!(
                    text,
                    "  ROOT x = {of} triangular-solve(p0, p1), left_side={left}, lower={lower}, unit_diagonal={unit}, transpose_a={transpose}\n}}\n"
                )
                .ok()?;
            }
            _other => return None,
        }
        let parsed = hlo_parser::parse_module(&text, &hlo_parser::ParseOptions::default());
        let module = parsed.module.filter(|m| !hlo::verify::verify(m).has_errors())?;
        Some(Stand { module, factor: routine == "potrf" })
    }

    /// The bounds of all results, from that of what stands for the first. Where a factorization may stop,
    /// nothing is known.
    fn results(&self, case: &Case<'_>, first: Bounds) -> Option<Vec<Bounds>> {
        if !self.factor {
            return Some(vec![first]);
        }
        let info = Numbers::of(case.results.get(1)?);
        let stops = info.re.iter().any(|&x| x != 0.0)
            || (0..case.results[0].len()).any(|i| first.hard.at(i).is_infinite());
        (!stops).then(|| vec![first, Bounds::default()])
    }
}

fn shape(ty: ElementType, dims: &[i64]) -> String {
    Shape::Array(hlo::ArrayShape::new(ty, dims)).to_string()
}
