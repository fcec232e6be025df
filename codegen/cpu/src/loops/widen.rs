//! Widened gathers: small rows at computed offsets are moved as wider elements, since gathers cost per
//! element, whatever its width.
//!
//! **Invariant:** elements are moved, not computed, and those that make up a wider one are contiguous and
//! aligned to it in both arrays.

use hlo::{ArrayShape, ElementType, Opcode};
use hlo_library_base::Unsupported;
use hlo_opt::expr::index::{Affine, AtomId, Def};
use hlo_opt::expr::{ALWAYS, Expr, Op};

use super::nest::{HALF_REGISTER_BYTES, Nest, Output};
use super::roots::Root;

/// The nest of a root with such rows, of half a register at most: that is one vector. Its variables are
/// numbered from `first`. `None`: there are no such rows, or no wider type fits.
pub(super) fn nest(
    roots: &[Root<'_>],
    expr: &mut Expr<'_>,
    dims: &[i64],
    first: u32,
) -> std::result::Result<Option<Nest>, Unsupported> {
    let ([root], Some((&row, outer))) = (roots, dims.split_last()) else { return Ok(None) };
    let ty = root.shape.element_type;
    let bytes = ty.storage_bytes() as i64;
    if root.window.is_some()
        || ty.bits() as i64 != 8 * bytes
        || row < 2
        || row.saturating_mul(bytes) > HALF_REGISTER_BYTES
    {
        return Ok(None);
    }
    let mut all = expr.module.instructions(expr.module.instr(root.instr).parent());
    if !all.any(|i| matches!(expr.module.instr(i).opcode, Opcode::Gather | Opcode::DynamicSlice)) {
        return Ok(None);
    }
    let fits = |wide: &ElementType| {
        let wide = wide.storage_bytes() as i64;
        wide > bytes && row * bytes % wide == 0
    };
    let Some(wide) = [ElementType::U64, ElementType::U32, ElementType::U16].into_iter().find(fits) else {
        return Ok(None);
    };
    let mut trial = expr.clone();
    let whole: Vec<(i64, i64)> = outer.iter().map(|&n| (0, n)).collect();
    let narrow = Root::columns(roots, &mut trial, dims, &whole, first, None)?;
    let each = wide.storage_bytes() as i64 / bytes;
    let Some(outputs) = widened(&mut trial, &narrow.outputs, ty, (wide, each)) else { return Ok(None) };
    if row * bytes == HALF_REGISTER_BYTES {
        let whole: Vec<(i64, i64)> = dims.iter().map(|&n| (0, n)).collect();
        return Root::nest(roots, expr, dims, &whole, first).map(Some);
    }
    let columns = outputs.len();
    let dims: Vec<i64> = outer.iter().copied().chain([columns as i64]).collect();
    *expr = trial;
    Ok(Some(Nest::over(narrow.vars, outputs, &dims, columns)))
}

/// The columns of rows of a type, grouped into columns of a wider type.
fn widened(
    expr: &mut Expr<'_>,
    columns: &[Output],
    ty: ElementType,
    (wide, each): (ElementType, i64),
) -> Option<Vec<Output>> {
    let load = |o: &Output| match &expr.nodes[o.node as usize].op {
        Op::Load { array, at, guard: ALWAYS } if expr.nodes[o.node as usize].ty == ty => {
            Some((*array, at.clone()))
        }
        _ => None,
    };
    let mut moved = Vec::new();
    for columns in columns.chunks(usize::try_from(each).ok()?) {
        let (array, from) = load(&columns[0])?;
        let computed = |t: &(AtomId, i64)| matches!(expr.space.atom(t.0).def, Def::Value(_));
        let follows =
            |(i, o): (i64, &Output)| load(o) == Some((array, from.plus(i))) && o.at == columns[0].at.plus(i);
        if !from.terms.iter().any(computed) || !(0..).zip(columns).all(follows) {
            return None;
        }
        moved.push((array, divided(&from, each)?, columns[0].array, divided(&columns[0].at, each)?));
    }
    let &(from, _, to, _) = moved.first()?;
    if moved.iter().any(|m| (m.0, m.2) != (from, to)) {
        return None;
    }
    let [from, to] = [from, to].map(|array| {
        let shape = &expr.arrays[array as usize].shape;
        let elements = shape.checked_elements().filter(|n| n % each == 0 && shape.element_type == ty)?;
        let mut array = expr.arrays[array as usize].clone();
        array.shape = ArrayShape::new(wide, &[elements / each]);
        expr.arrays.push(array);
        Some(expr.arrays.len() as u32 - 1)
    });
    let (from, to) = (from?, to?);
    let outputs = moved.into_iter().map(|(_, at, _, to_offset)| {
        let node = expr.push(Op::Load { array: from, at, guard: ALWAYS }, wide);
        Output { node, array: to, at: to_offset }
    });
    Some(outputs.collect())
}

/// The offset in wider elements, of `each` elements, of an element that begins one. `None`: it does not
/// everywhere.
fn divided(at: &Affine, each: i64) -> Option<Affine> {
    let fits = at.constant % each == 0 && at.terms.iter().all(|t| t.1 % each == 0);
    fits.then(|| Affine {
        terms: at.terms.iter().map(|&(atom, factor)| (atom, factor / each)).collect(),
        constant: at.constant / each,
    })
}
