//! How a reduction combines two values: what its computation is, and what follows from that.
//!
//! **Invariant:** whether elements may be combined in any order is decided here alone, from the computation and the types; whoever emits code
//! for a reduction keeps the interpreter's order where [`Combine::free`] does not hold.

use hlo::attrs::{AttrKey, Direction};
use hlo::elementwise::{Binary, Kind, kind};
use hlo::{ComputationId, ElementType, InstrId, Module, Opcode};

use crate::passes::reduce::operation;
use crate::expr::{NodeId, Expr};
use hlo_library::Unsupported;

/// The combination of several accumulators with as many elements.
#[derive(Debug)]
pub enum Combine<'m> {
    /// A sum of floats, in any order, in a type of 32 bits or more.
    Sum,
    /// One operation of both; whether any order gives the same bits.
    Binary(Binary, bool),
    /// The index of the greater (or less) value: of a NaN before all others, then the lower one of equals. Any order gives the same. The value is not what
    /// the computation gives: of zeros with different signs that would be the last one.
    Extreme {
        /// Whether the lesser one is wanted.
        least: bool,
    },
    /// A computation, in the order of the elements.
    General {
        /// The computation, of accumulators and then elements as given values.
        expr: Box<Expr<'m>>,
        /// Its results.
        results: Vec<NodeId>,
    },
}

/// The operation of both parameters that a computation is.
pub fn binary_root(module: &Module, computation: ComputationId) -> Option<(Binary, ElementType)> {
    let (opcode, ty) = operation(module, computation)?;
    let Some(Kind::Binary(op)) = kind(opcode) else { return None };
    Some((op, ty))
}

impl<'m> Combine<'m> {
    /// Of a reduction. `counted`: the second operand counts up along the order of the elements, and nobody reads
    /// the first result.
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

    /// Of an operation of an accumulator and an element of a type.
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

    /// Of a computation whose order matters, each step rounded.
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

    /// Whether an accumulator may be a value that was only moved. (That of an extreme has a value that nobody reads.)
    pub fn moves(&self, accumulator: usize) -> bool {
        match self {
            Combine::Sum | Combine::Binary(..) | Combine::Extreme { .. } => false,
            Combine::General { expr, results } => expr.moves(results[accumulator]),
        }
    }

    /// The type in which a value of a type is accumulated.
    pub fn accumulator(&self, ty: ElementType) -> ElementType {
        if matches!(self, Combine::Sum) && ty.bits() < 32 { ElementType::F32 } else { ty }
    }

    /// Whether combining a value with itself changes nothing: accumulators may begin with the initial value as often as there are any.
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

/// Whether a computation of (value, index, value, index) is the greater (`false`) or the lesser (`true`) value, a NaN before every number and the first
/// before the second of two of them, and of equal values the lower index:
/// `first = a > b or a != a; (select(first, a, b), select(first or (a == b and i < j), i, j))`.
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
    let &[greater, place] = root.operands() else { return None };
    let operands = |id: InstrId, opcode: Opcode| {
        let instr = module.instr(id);
        (instr.opcode == opcode).then(|| instr.operands())
    };
    let compares = |id: InstrId, x: InstrId, y: InstrId| -> Option<Direction> {
        let instr = module.instr(id);
        let total = instr.attrs.compare_type() == Some(&hlo::attrs::CompareType::TotalOrder);
        (instr.opcode == Opcode::Compare && !total && instr.operands() == [x, y])
            .then(|| instr.attrs.direction().copied())
            .flatten()
    };
    let &[first, x, y] = operands(greater, Opcode::Select)? else { return None };
    if (x, y) != (a, b) {
        return None;
    }
    // `a != a` is no part of it for integers.
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
    let &[lower, x, y] = operands(place, Opcode::Select)? else { return None };
    let &[before, tie] = operands(lower, Opcode::Or)? else { return None };
    let &[equal, less] = operands(tie, Opcode::And)? else { return None };
    ((x, y) == (i, j)
        && before == first
        && compares(equal, a, b)? == Direction::Eq
        && compares(less, i, j)? == Direction::Lt)
        .then_some(least)
}
