//! Emission of combiners ([`Combine`]), and their loop-carried values.

use hlo::ElementType;
use hlo::elementwise::Binary;

use super::code::Code;
use hlo_llvm::scalar::{Val, combine};
use hlo_llvm::{Emit, Error, IntPredicate, Prim, Result, Value};
use hlo_opt::expr::fold::Extremes;
pub(super) use hlo_opt::fusion::combine::Combine;

/// The signed integer key type for a minimum (`true`) or maximum of floats of a type: fewer operations than
/// for floats, where NaNs propagate and zeros are ordered; 16-bit floats then need no wider type.
pub(super) fn order_of(combine: &Combine<'_>, ty: ElementType) -> Option<Extremes> {
    let least = match combine {
        Combine::Binary(Binary::Maximum, true) => false,
        Combine::Binary(Binary::Minimum, true) => true,
        Combine::Binary(..) | Combine::Sum | Combine::Extreme { .. } | Combine::General { .. } => {
            return None;
        }
    };
    if ty.is_float() && ty.bits() == 16 {
        return Some(Extremes::Ordered(ElementType::S16, least));
    }
    // Other processors have instructions for it.
    (ty == ElementType::F32 && cfg!(target_arch = "x86_64"))
        .then_some(Extremes::Ordered(ElementType::S32, least))
}

/// Emission of a combiner.
pub(super) trait EmitCombine {
    /// The neutral element, on the lanes of `e`, of a reassociable combiner that is not idempotent.
    fn neutral<'ctx>(&self, e: &Emit<'_, 'ctx>, ty: ElementType) -> Val<'ctx>;

    /// Combines accumulators with elements that come after everything in the same lane.
    fn next<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: Value<'ctx>,
        a: &[Val<'ctx>],
        b: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>>;

    /// Combines accumulators and elements, on the lanes of `e`.
    fn apply<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: Value<'ctx>,
        a: &[Val<'ctx>],
        b: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>>;
}

impl EmitCombine for Combine<'_> {
    fn neutral<'ctx>(&self, e: &Emit<'_, 'ctx>, ty: ElementType) -> Val<'ctx> {
        combine::neutral(e, self, ty)
    }

    fn next<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: Value<'ctx>,
        a: &[Val<'ctx>],
        b: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>> {
        match combine::combined_in_order(e, self, a, b)? {
            Some(combined) => Ok(combined),
            None => self.apply(e, arguments, a, b),
        }
    }

    fn apply<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: Value<'ctx>,
        a: &[Val<'ctx>],
        b: &[Val<'ctx>],
    ) -> Result<Vec<Val<'ctx>>> {
        let Combine::General { expr, results } = self else {
            let combined = combine::combined(e, self, a, b)?;
            return combined.ok_or_else(|| Error::Llvm("a combination without an operation".into()));
        };
        let mut code = Code::new(*e, expr, e.lanes, arguments)?;
        for (i, x) in a.iter().chain(b).enumerate() {
            code.give(i as u32, *x, false);
        }
        let all = results.iter().map(|&r| code.value(r)?.settled_if(e, expr.moves(r)));
        all.collect()
    }
}

/// The loop-carried (or stored) form of an accumulator.
#[derive(Clone, Copy)]
pub(super) struct Carried {
    pub(super) ty: ElementType,
    /// Whether it may hold a NaN that was only moved. It is canonicalized when carried.
    pub(super) moved: bool,
}

/// Values as loop-carried registers.
pub(super) fn registers<'ctx>(values: &[Val<'ctx>]) -> Vec<Value<'ctx>> {
    values.iter().flat_map(Val::registers).collect()
}

/// The values in registers: the kinds, repeated.
pub(super) fn values<'ctx>(kinds: &[Carried], registers: &[Value<'ctx>]) -> Vec<Val<'ctx>> {
    let mut rest = registers;
    let mut all = Vec::new();
    for &Carried { ty, moved } in kinds.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (mine, more) = rest.split_at(1 + usize::from(ty.is_complex()));
        all.push(Val::of_registers(ty, mine, moved));
        rest = more;
    }
    all
}

/// A reduction across lanes: halves with halves.
pub(super) fn across<'ctx>(
    combine: &Combine<'_>,
    e: &Emit<'_, 'ctx>,
    arguments: Value<'ctx>,
    x: &[Val<'ctx>],
) -> Result<Vec<Val<'ctx>>> {
    let mut all = x.to_vec();
    let mut lanes = e.lanes;
    while lanes > 1 {
        lanes /= 2;
        let half = |from: u32| -> Result<Vec<Val<'ctx>>> {
            let pick: Vec<u32> = (from..from + lanes).collect();
            let part = |r| match lanes {
                // Uniform: known for all lanes.
                _ if e.lanes_of(r) == 1 => Ok(r),
                1 => e.extract(r, from),
                _more => e.shuffle(r, r, &pick),
            };
            all.iter().map(|v| v.map(part)).collect()
        };
        let (low, high) = (half(0)?, half(lanes)?);
        all = combine.apply(&e.with_lanes(lanes), arguments, &low, &high)?;
    }
    Ok(all)
}

/// A register in its memory type: bits as bytes.
pub(super) fn widened<'ctx>(e: &Emit<'_, 'ctx>, register: Value<'ctx>) -> Result<Value<'ctx>> {
    match e.prim_of(register) {
        Prim::I1 => e.zext(register, Prim::I8),
        _ => Ok(register),
    }
}

/// The inverse of [`widened`].
pub(super) fn narrowed<'ctx>(
    e: &Emit<'_, 'ctx>,
    ty: ElementType,
    stored: Value<'ctx>,
) -> Result<Value<'ctx>> {
    if ty == ElementType::Pred {
        let zero = e.with_lanes(e.lanes_of(stored)).int(Prim::I8, 0);
        return e.icmp(IntPredicate::NE, stored, zero);
    }
    Ok(stored)
}
