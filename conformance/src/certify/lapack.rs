//! Calls to LAPACK that compute what an instruction of HLO does: `potrf` as `cholesky`, `trsm` as `triangular-solve`. The bounds are those of that
//! instruction; what is known of the others is nothing.

use std::fmt::Write;

use hlo::{ElementType, Module, Shape};
use hlo_interp::custom_call::Call;

use super::Bounds;
use super::number::Numbers;
use super::rules::Case;

/// What stands for a call.
pub(super) struct Stand {
    /// Its parameters are the operands.
    pub(super) module: Module,
    factor: bool,
}

impl Stand {
    /// For a call.
    pub(super) fn of(case: &Case<'_>) -> Option<Stand> {
        let call = Call { instruction: case.instr, module: case.module };
        let routine = call.target().strip_prefix("lapack_")?.strip_suffix("_ffi")?.get(1..)?;
        let config = call.backend_config();
        let setting = |key: &str| {
            let value = config.split([',', '{', '}']).find_map(|entry| entry.trim().strip_prefix(key))?;
            let value = value.trim().strip_prefix('=')?.split(':').next()?;
            value.trim().parse::<u8>().ok().map(char::from)
        };
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
                let (places, choice) =
                    (shape(ElementType::S32, result.dims()), shape(ElementType::Pred, result.dims()));
                let direction = if lower { "GE" } else { "LE" };
                write!(
                    text,
                    "  l = {of} cholesky(p0), lower={lower}\n  i = {places} iota(), iota_dimension={rows}\n  j = {places} iota(), iota_dimension={columns}\n  \
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
        let (module, _) = crate::frontend::parse_text(&text);
        let module = module.filter(|m| !hlo::verify::verify(m).has_errors())?;
        Some(Stand { module, factor: routine == "potrf" })
    }

    /// The bounds of all results, from that of what stands for the first. Where a factorization may stop, nothing is known.
    pub(super) fn results(&self, case: &Case<'_>, first: Bounds) -> Option<Vec<Bounds>> {
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
