//! A reduction (fold) in the expression IR: its elements, its initial values, and its combiner.

use hlo::attrs::AttrKey;
use hlo::elementwise::Binary;
use hlo::{Bits, Buffer, ElementType, InstrId, Module, Opcode, with_buffer};
use hlo_library_base::Unsupported;

use super::index::Affine;
use super::{Expr, NodeId, Op, array_leaves};
use crate::fusion::combine::Combine;
use crate::passes::facts::integer;

/// One reduction, possibly of several operands.
#[derive(Debug)]
pub struct Fold<'m> {
    /// Element nodes, converted to the accumulator types.
    pub operands: Vec<NodeId>,
    /// Initial values, in the accumulator types.
    pub initial: Vec<NodeId>,
    /// Accumulator types.
    pub types: Vec<ElementType>,
    /// Numbers of the [`Op::Given`] values that stand for its accumulators.
    pub given: Vec<u32>,
    /// The combiner.
    pub combine: Combine<'m>,
    /// `Some` if the accumulator is an order-preserving integer key of the only operand
    /// ([`Op::ToOrderedInt`]); `true` for a minimum, `false` for a maximum.
    ordered: Option<bool>,
}

/// The accumulator type of a float minimum or maximum where another type than the result's takes fewer
/// operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extremes {
    /// Signed integers ordered as the floats are; `true` for a minimum.
    Ordered(ElementType, bool),
    /// A wider float type, which represents all values exactly.
    Wide(ElementType),
}

/// The target's choice: whether a combiner on a type is a minimum or maximum, and how it is computed.
pub type Order = fn(&Combine<'_>, ElementType) -> Option<Extremes>;

/// Minima and maxima of 16-bit floats are computed in `f32`.
pub fn wide_extremes(combine: &Combine<'_>, ty: ElementType) -> Option<Extremes> {
    let is_extreme = matches!(combine, Combine::Binary(Binary::Maximum | Binary::Minimum, true));
    (is_extreme && ty.is_float() && ty.bits() == 16).then_some(Extremes::Wide(ElementType::F32))
}

/// Whether anything reads the first result of a variadic reduce in a fusion.
fn first_is_seen(module: &Module, fusion: InstrId, reduce: InstrId) -> bool {
    let reads = |id: InstrId| {
        module.users(id).iter().any(|u| {
            let user = module.instr(u.user);
            user.opcode != Opcode::GetTupleElement || user.attrs.int(AttrKey::Index) == Some(0)
        })
    };
    let is_root = |id: InstrId| module.root(module.instr(id).parent()) == id;
    reads(reduce) || is_root(reduce) && (reads(fusion) || is_root(fusion))
}

impl<'m> Fold<'m> {
    /// A reduction inside a fusion (or a standalone one: then both ids are the same instruction), whose
    /// operands are evaluated at `index`. Its accumulators become the given values `first..`.
    pub fn new(
        expr: &mut Expr<'m>,
        fusion: InstrId,
        reduce: InstrId,
        index: &[Affine],
        first: u32,
        order: Order,
    ) -> Result<Self, Unsupported> {
        let module = expr.module;
        let instr = module.instr(reduce);
        if instr.opcode == Opcode::Dot {
            return Self::of_products(expr, reduce, index, first);
        }
        let n = instr.operands().len() / 2;
        let (mut operands, mut initial) = (Vec::new(), Vec::new());
        for (i, &o) in instr.operands().iter().enumerate() {
            let index = if i < n { index } else { &[] };
            let node = expr.node(o, 0, index)?;
            if i < n { operands.push(node) } else { initial.push(node) }
        }
        let counted = is_ascending_index(expr, &operands, &initial, reduce, index);
        let combine = Combine::of(module, reduce, counted && !first_is_seen(module, fusion, reduce))?;
        let results: Vec<ElementType> = array_leaves(&instr.shape).map(|s| s.element_type).collect();
        // Without elements the result is the initial value as it is, even a NaN.
        let any =
            instr.operands().iter().take(n).all(|&o| module.instr(o).shape.expect_array().elements() > 0);
        let extremes = order(&combine, results[0]).filter(|_| any);
        let types: Vec<ElementType> = match extremes {
            Some(Extremes::Ordered(ty, _) | Extremes::Wide(ty)) => vec![ty],
            None => results.iter().map(|&ty| combine.accumulator(ty)).collect(),
        };
        for (i, &ty) in types.iter().enumerate() {
            for node in [&mut operands[i], &mut initial[i]] {
                // If the element type is another float type than the result's, elements are converted first.
                *node = match extremes {
                    Some(Extremes::Ordered(key, least)) => {
                        let value = expr.convert(*node, results[i]);
                        expr.ordered_key(value, key, least)
                    }
                    Some(Extremes::Wide(_)) => {
                        let value = expr.convert(*node, results[i]);
                        expr.convert(value, ty)
                    }
                    None => expr.convert(*node, ty),
                };
            }
        }
        let given = (0..n as u32).map(|i| first + i).collect();
        let ordered = match extremes {
            Some(Extremes::Ordered(_, least)) => Some(least),
            Some(Extremes::Wide(_)) | None => None,
        };
        Ok(Self { operands, initial, types, given, combine, ordered })
    }

    /// A contraction as a reduction: a sum of products that starts from zero.
    fn of_products(
        expr: &mut Expr<'m>,
        dot: InstrId,
        index: &[Affine],
        first: u32,
    ) -> Result<Self, Unsupported> {
        let combine = Combine::of(expr.module, dot, false)?;
        let (product, ty) = expr.weighted(dot, index)?;
        let zero = expr.zero(ty);
        Ok(Self {
            operands: vec![product],
            initial: vec![zero],
            types: vec![ty],
            given: vec![first],
            combine,
            ordered: None,
        })
    }

    /// From nodes: one operand and one initial value for each result, of these types.
    pub fn of_nodes(
        expr: &mut Expr<'m>,
        combine: Combine<'m>,
        operands: &[NodeId],
        initial: &[NodeId],
        results: &[ElementType],
        first: u32,
    ) -> Self {
        let types: Vec<ElementType> = results.iter().map(|&ty| combine.accumulator(ty)).collect();
        let mut converted = |nodes: &[NodeId]| -> Vec<NodeId> {
            nodes.iter().zip(&types).map(|(&node, &ty)| expr.convert(node, ty)).collect()
        };
        let (operands, initial) = (converted(operands), converted(initial));
        let given = (0..types.len() as u32).map(|i| first + i).collect();
        Self { operands, initial, types, given, combine, ordered: None }
    }

    /// The node of a result, in type `ty`, once emission provides the accumulator.
    pub fn result(&self, expr: &mut Expr<'_>, leaf: usize, ty: ElementType) -> NodeId {
        let node = expr.given(self.given[leaf], self.types[leaf]);
        match self.ordered {
            Some(least) => expr.float_of_key(node, ty, least),
            None => expr.convert(node, ty),
        }
    }

    /// Binds the results of the reduce to nodes, at index `at`.
    pub fn bind(&self, expr: &mut Expr<'_>, reduce: InstrId, at: &[Affine]) {
        let results: Vec<ElementType> =
            array_leaves(&expr.module.instr(reduce).shape).map(|s| s.element_type).collect();
        for (leaf, ty) in results.into_iter().enumerate() {
            let node = self.result(expr, leaf, ty);
            expr.bind_at(reduce, leaf as u32, node, at);
        }
    }
}

/// Whether an (value, index) argument reduction sees ascending indices: the second operand is an iota along
/// the only reduced dimension that starts no lower than its initial value, and the first initial value is not
/// NaN.
fn is_ascending_index(
    expr: &Expr<'_>,
    operands: &[NodeId],
    initial: &[NodeId],
    reduce: InstrId,
    index: &[Affine],
) -> bool {
    let (&[_, second], &[start, begin]) = (operands, initial) else { return false };
    let dims = expr.module.instr(reduce).attrs.ints_or_empty(AttrKey::Dimensions);
    let &[d] = dims else { return false };
    let Some(along) = usize::try_from(d).ok().and_then(|d| index.get(d)) else { return false };
    let node = &expr.nodes[second as usize];
    let Op::Iota { value } = &node.op else { return false };
    let (low, high) = expr.space.range(value);
    let bits = node.ty.bits().min(62) - 1;
    let fits = low >= 0 && high < 1i64 << bits;
    let upward = value.terms == along.terms;
    let constant = |node: NodeId| match expr.nodes[node as usize].op {
        Op::Constant { instr, .. } => Some(instr),
        _ => None,
    };
    let begin = constant(begin).and_then(|instr| integer(expr.module, instr));
    let Some(instr) = constant(start).filter(|_| begin.is_some_and(|b| b <= i128::from(low))) else {
        return false;
    };
    let number = expr.literal(instr).and_then(|l| l.as_array().map(|a| is_number(&a.buffer)));
    fits && upward && number == Some(true)
}

/// Whether the only element of a buffer is an integer, or a float of at least 16 bits that is not NaN.
fn is_number(buffer: &Buffer) -> bool {
    let ty = buffer.element_type();
    let bits: u128 = with_buffer!(buffer, v => v.first().map_or(0, |&x| x.bits()));
    match ty {
        ElementType::F32 => !f32::from_bits(bits as u32).is_nan(),
        ElementType::F64 => !f64::from_bits(bits as u64).is_nan(),
        ElementType::BF16 => !f32::from_bits((bits as u32) << 16).is_nan(),
        ElementType::F16 => bits & 0x7fff <= 0x7c00,
        other => other.is_integer(),
    }
}
