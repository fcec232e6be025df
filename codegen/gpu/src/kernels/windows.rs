//! Windows over an operand, symbolically.

use hlo::attrs::WindowDim;
use hlo::{InstrId, Module};
use hlo_codegen::Unsupported;
use hlo_opt::expr::index::{Affine, Index};
use hlo_opt::expr::{ALWAYS, Condition, Expr, GuardId};

/// The dimensions of an instruction's window over an operand; without one each element is a window of its
/// own.
pub(super) fn window(
    module: &Module,
    id: InstrId,
    operand: &[i64],
) -> std::result::Result<Vec<WindowDim>, Unsupported> {
    let dims = module.instr(id).attrs.window().map_or(&[][..], |w| &w.dims);
    match dims.len() {
        0 => Ok(operand.iter().map(|_| WindowDim::default()).collect()),
        n if n == operand.len() => Ok(dims.to_vec()),
        _ => Err(Unsupported::new(module, id, "a window of another rank")),
    }
}

/// Positions of a window.
pub(super) fn positions(window: &[WindowDim]) -> Vec<i64> {
    window.iter().map(|w| w.size).collect()
}

/// The index in an operand of a window position of a result, and where it is in bounds; `None`: nowhere.
pub(super) fn element(
    expr: &mut Expr<'_>,
    window: &[WindowDim],
    operand: &[i64],
    result: &[Affine],
    position: &[Affine],
) -> Option<(GuardId, Index)> {
    let mut inside = Vec::new();
    let mut index = Index::new();
    for (((w, &n), o), p) in window.iter().zip(operand).zip(result).zip(position) {
        let at = expr.space.add(&o.times(w.stride), &p.times(w.window_dilation)).plus(-w.pad_low);
        let (at, hole) = expr.space.div_mod(&at, w.base_dilation.max(1));
        inside.push(Condition { value: hole, low: 0, high: 1 });
        inside.push(Condition { value: at.clone(), low: 0, high: n });
        index.push(at);
    }
    expr.guard(ALWAYS, &inside).map(|guard| (guard, index))
}
