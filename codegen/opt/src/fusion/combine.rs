//! Combiners of reductions: what the applied computation is, and which orders of combination it allows.
//!
//! **Invariant:** whether elements may be combined in any order (reassociated) is decided here alone, from
//! the computation and the types; emission of a reduction keeps the interpreter's order unless
//! [`Combine::free`] holds.

use hlo::attrs::{AttrKey, Direction};
use hlo::elementwise::{Binary, Kind, kind};
use hlo::{ComputationId, ElementType, InstrId, Module, Opcode};
use hlo_library_base::Unsupported;

use crate::expr::{Expr, NodeId};
use crate::passes::reduce::operation;

/// How accumulators are combined with elements, one of each per result.
#[derive(Debug)]
pub enum Combine<'m> {
    /// A sum of floats, reassociable, accumulated in at least 32 bits.
    Sum,
    /// One binary operation; `true` if every order gives the same bits.
    Binary(Binary, bool),
    /// The index of the maximum (or minimum): a NaN wins over numbers, the lower index wins among equals.
    /// Every order gives the same index. The value result is not the computation's (for zeros of different
    /// signs that would be the last one), so nothing may read it.
    Extreme {
        /// `true`: minimum.
        least: bool,
    },
    /// Any other computation, applied in the order of the elements.
    General {
        /// The computation, applied to given values: the accumulators, then the elements.
        expr: Box<Expr<'m>>,
        /// Its results.
        results: Vec<NodeId>,
    },
}

/// The binary operation of both parameters that a computation consists of, if it is one.
pub fn binary_root(module: &Module, computation: ComputationId) -> Option<(Binary, ElementType)> {
    let (opcode, ty) = operation(module, computation)?;
    let Some(Kind::Binary(op)) = kind(opcode) else { return None };
    Some((op, ty))
}

impl<'m> Combine<'m> {
    /// The combiner of a reduction. `counted`: the second operand is an ascending index, and nothing reads
    /// the first result (argument reductions).
    pub fn of(module: &'m Module, reduce: InstrId, counted: bool) -> std::result::Result<Self, Unsupported> {
        let instr = module.instr(reduce);
        if instr.opcode == Opcode::Dot {
            let whole = instr.shape.element_type().is_some_and(ElementType::is_integer);
            return Ok(if whole { Combine::Binary(Binary::Add, true) } else { Combine::Sum });
        }
        let Some(computation) = instr.attrs.computation(AttrKey::ToApply) else {
            return Err(Unsupported::new(module, reduce, "a reduction by nothing"));
        };
        if let Some((op, ty)) = binary_root(module, computation) {
            return Ok(Self::of_operation(op, ty));
        }
        if let Some(least) = extreme(module, computation).filter(|_| counted) {
            return Ok(Combine::Extreme { least });
        }
        Self::general(module, computation)
    }

    /// The combiner that is one operation, on a type.
    pub fn of_operation(op: Binary, ty: ElementType) -> Self {
        let float = ty.is_float() || ty.is_complex();
        match op {
            Binary::Add if float => Combine::Sum,
            Binary::Add | Binary::Multiply | Binary::And | Binary::Or | Binary::Xor => {
                Combine::Binary(op, !float)
            }
            Binary::Maximum | Binary::Minimum => Combine::Binary(op, !ty.is_complex()),
            other => Combine::Binary(other, false),
        }
    }

    fn general(module: &'m Module, computation: ComputationId) -> std::result::Result<Self, Unsupported> {
        let mut expr = Expr::new(module);
        let mut given = Vec::new();
        for &p in module.computation(computation).parameters().iter().flatten() {
            let Some(shape) = module.instr(p).shape.as_array() else {
                return Err(Unsupported::new(module, p, "a computation of what is no array"));
            };
            given.push(expr.given(given.len() as u32, shape.element_type));
        }
        let results = expr.apply(computation, &given)?;
        Ok(Combine::General { expr: Box::new(expr), results })
    }

    /// The computation applied literally, in order, each step rounded.
    pub fn literal(module: &'m Module, computation: ComputationId) -> std::result::Result<Self, Unsupported> {
        match binary_root(module, computation) {
            Some((op, _)) => Ok(Combine::Binary(op, false)),
            None => Self::general(module, computation),
        }
    }

    /// Whether elements may be combined in any order.
    pub fn free(&self) -> bool {
        match self {
            Combine::Sum | Combine::Extreme { .. } => true,
            Combine::Binary(_, free) => *free,
            Combine::General { .. } => false,
        }
    }

    /// Whether an accumulator may be a value that was only moved, not computed. (The unread value of
    /// [`Combine::Extreme`] is none.)
    pub fn moves(&self, accumulator: usize) -> bool {
        match self {
            Combine::Sum | Combine::Binary(..) | Combine::Extreme { .. } => false,
            Combine::General { expr, results } => expr.moves(results[accumulator]),
        }
    }

    /// The accumulator type of a value type.
    pub fn accumulator(&self, ty: ElementType) -> ElementType {
        if matches!(self, Combine::Sum) && ty.bits() < 32 { ElementType::F32 } else { ty }
    }

    /// Whether combining a value with itself changes nothing, so that every partial accumulator may start
    /// from the initial value.
    pub fn idempotent(&self, ty: ElementType) -> bool {
        match self {
            Combine::Sum | Combine::General { .. } => false,
            Combine::Extreme { .. } => true,
            Combine::Binary(op, _) => match op {
                Binary::Maximum | Binary::Minimum | Binary::And | Binary::Or => true,
                Binary::Add | Binary::Multiply => ty == ElementType::Pred,
                _ => false,
            },
        }
    }
}

/// Recognizes the argument maximum (`false`) or minimum (`true`) of (value, index, value, index), where a NaN
/// wins over numbers, the first wins among NaNs, and the lower index among equals: `first = a > b or a != a;
/// (select(first, a, b), select(first or (a == b and i < j), i, j))`.
pub fn extreme(module: &Module, computation: ComputationId) -> Option<bool> {
    let parameters: Vec<InstrId> =
        module.computation(computation).parameters().iter().copied().collect::<Option<_>>()?;
    let &[a, i, b, j] = &parameters[..] else { return None };
    let (value, index) = (module.instr(a).shape.element_type()?, module.instr(i).shape.element_type()?);
    let fits = (value.is_float() && value.bits() >= 16 || value.is_integer()) && index.is_integer();
    let root = module.instr(module.root(computation));
    if root.opcode != Opcode::Tuple || !fits {
        return None;
    }
    let &[greater, position] = root.operands() else { return None };
    let operands = |id: InstrId, opcode: Opcode| {
        let instr = module.instr(id);
        (instr.opcode == opcode).then(|| instr.operands())
    };
    let compares = |id: InstrId, x: InstrId, y: InstrId| -> Option<Direction> {
        let instr = module.instr(id);
        let total = instr.attrs.is_total_order();
        (instr.opcode == Opcode::Compare && !total && instr.operands() == [x, y])
            .then(|| instr.attrs.direction().copied())
            .flatten()
    };
    let &[first, x, y] = operands(greater, Opcode::Select)? else { return None };
    if (x, y) != (a, b) {
        return None;
    }
    // Integers have no `a != a` term.
    let (greater, nan) = match operands(first, Opcode::Or) {
        Some(&[p, q]) => (p, Some(q)),
        _ => (first, None),
    };
    let least = match compares(greater, a, b)? {
        Direction::Gt => false,
        Direction::Lt => true,
        Direction::Eq | Direction::Ne | Direction::Ge | Direction::Le => return None,
    };
    match nan {
        Some(nan) if compares(nan, a, a)? != Direction::Ne => return None,
        None if value.is_float() => return None,
        _ => {}
    }
    let &[lower, x, y] = operands(position, Opcode::Select)? else { return None };
    let &[before, tie] = operands(lower, Opcode::Or)? else { return None };
    let &[equal, less] = operands(tie, Opcode::And)? else { return None };
    ((x, y) == (i, j)
        && before == first
        && compares(equal, a, b)? == Direction::Eq
        && compares(less, i, j)? == Direction::Lt)
        .then_some(least)
}
