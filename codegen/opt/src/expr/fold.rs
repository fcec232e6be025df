//! A reduction on a expr: its elements, its initial values, and how they are combined.

use hlo::attrs::AttrKey;
use hlo::elementwise::Binary;
use hlo::{Bits, Buffer, ElementType, InstrId, Module, Opcode, with_buffer};

use super::index::Affine;
use super::{NodeId, Op, Expr, array_leaves};
use crate::fusion::combine::Combine;
use crate::passes::facts::integer;
use hlo_library::Unsupported;

/// One reduction.
#[derive(Debug)]
pub struct Fold<'m> {
    /// Elements, in the types of accumulators.
    pub operands: Vec<NodeId>,
    /// Initial values, in the types of accumulators.
    pub initial: Vec<NodeId>,
    /// Types of accumulators.
    pub types: Vec<ElementType>,
    /// Numbers of the given values that are its results.
    pub given: Vec<u32>,
    /// How.
    pub combine: Combine<'m>,
    /// The accumulator is an integer in the order of the only operand, of which the greatest or the least (`true`) is wanted.
    ordered: Option<bool>,
}

/// In what other type than that of the results the greatest or the least of floats is found, where that takes fewer operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extremes {
    /// In signed integers, in whose order floats are; whether the least is wanted.
    Ordered(ElementType, bool),
    /// In wider floats, which hold all of them.
    Wide(ElementType),
}

/// Whether a combination of values of a type is such an extreme, and how it is found.
pub type Order = fn(&Combine<'_>, ElementType) -> Option<Extremes>;

/// Extremes of floats of 16 bits are found in 32 bits.
pub fn wide_extremes(combine: &Combine<'_>, ty: ElementType) -> Option<Extremes> {
    let is_extreme = matches!(combine, Combine::Binary(Binary::Maximum | Binary::Minimum, true));
    (is_extreme && ty.is_float() && ty.bits() == 16).then_some(Extremes::Wide(ElementType::F32))
}

/// Whether anybody reads the first result of a reduce in a fusion.
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
    /// Of a reduction in a fusion, or of one that is none (then both are the same instruction), whose operands are seen at an index; its results become
    /// given values from `first` on.
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
        let counted = counts_up(expr, &operands, &initial, reduce, index);
        let combine = Combine::of(module, reduce, counted && !first_is_seen(module, fusion, reduce))?;
        let results: Vec<ElementType> = array_leaves(&instr.shape).map(|s| s.element_type).collect();
        // Without elements the initial value is the result as it is, also a NaN.
        let any =
            instr.operands().iter().take(n).all(|&o| module.instr(o).shape.expect_array().elements() > 0);
        let extremes = order(&combine, results[0]).filter(|_| any);
        let types: Vec<ElementType> = match extremes {
            Some(Extremes::Ordered(ty, _) | Extremes::Wide(ty)) => vec![ty],
            None => results.iter().map(|&ty| combine.accumulator(ty)).collect(),
        };
        for (i, &ty) in types.iter().enumerate() {
            for node in [&mut operands[i], &mut initial[i]] {
                // A reduction of elements of another float type than its result's converts them first.
                *node = match extremes {
                    Some(Extremes::Ordered(key, least)) => {
                        let value = expr.convert(*node, results[i]);
                        expr.order(value, key, least)
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

    /// Of a contraction: a sum of products, which begins with zero.
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

    /// Of operands and initial values on the expr, one of each for every result, which have these types.
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

    /// The node of a result, of a type, once emission has given the accumulator.
    pub fn result(&self, expr: &mut Expr<'_>, leaf: usize, ty: ElementType) -> NodeId {
        let node = expr.given(self.given[leaf], self.types[leaf]);
        match self.ordered {
            Some(least) => expr.unorder(node, ty, least),
            None => expr.convert(node, ty),
        }
    }

    /// Makes results of the reduce known to the expr at an index.
    pub fn bind(&self, expr: &mut Expr<'_>, reduce: InstrId, at: &[Affine]) {
        let results: Vec<ElementType> =
            array_leaves(&expr.module.instr(reduce).shape).map(|s| s.element_type).collect();
        for (leaf, ty) in results.into_iter().enumerate() {
            let node = self.result(expr, leaf, ty);
            expr.bind_at(reduce, leaf as u32, node, at);
        }
    }
}

/// Whether the second operand is a count along the only reduced dimension that begins no lower than its initial value, and the first initial value no NaN.
fn counts_up(
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

/// Whether the only element is an integer or a float of 16 bits or more that is no NaN.
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
