//! Short folds unrolled into expressions: contractions of small K, short reductions, small windows. Terms
//! come in the row-major order of the reduced dimensions.

use hlo::attrs::AttrKey;
use hlo::{ComputationId, ElementType, InstrId, Module, Opcode, TypeClass};
use hlo_library_base::Unsupported;

use super::index::{Affine, Index, components};
use super::{Condition, Expr, Key, NodeId, Op, dims_of};
use crate::fusion::folds::{WeightedSum, accumulator_type};
use crate::passes::facts::{is_product, short_reduction_len, small_k, small_window_len};
use crate::passes::reduce::operation;

impl Expr<'_> {
    pub(super) fn products(&mut self, key: &Key, ty: ElementType) -> Result<Option<NodeId>, Unsupported> {
        let (module, instr) = (self.module, self.module.instr(key.instr));
        if small_k(module, key.instr).is_none() && !is_product(module, key.instr) {
            return Err(Unsupported::new(module, key.instr, "a dot of many products in a fused expression"));
        }
        let list = |k| instr.attrs.ints_or_empty(k);
        let sides = [
            (list(AttrKey::LhsBatchDims), list(AttrKey::LhsContractingDims)),
            (list(AttrKey::RhsBatchDims), list(AttrKey::RhsContractingDims)),
        ];
        let of = |side: usize| dims_of(module, instr.operands()[side]);
        let sizes: Vec<i64> = sides[0].1.iter().map(|&d| of(0)[d as usize]).collect();
        let mut factors = Vec::new();
        for product in 0..sizes.iter().product::<i64>() {
            let at = components(product, &sizes);
            // Free dimensions (neither batch nor contracting): those of the left side first.
            let mut free = key.index.iter().skip(sides[0].0.len());
            for (side, (batch, contracted)) in sides.iter().enumerate() {
                let index: Index = (0..of(side).len() as i64)
                    .map(|d| {
                        let position = |list: &[i64]| list.iter().position(|&x| x == d);
                        match (position(batch), position(contracted)) {
                            (Some(b), _) => key.index[b].clone(),
                            (None, Some(c)) => Affine::constant(at[c]),
                            (None, None) => free.next().cloned().unwrap_or_default(),
                        }
                    })
                    .collect();
                factors.push(Key { instr: instr.operands()[side], leaf: 0, index, ..key.clone() });
            }
        }
        let Some(factors) = self.get_all(factors) else { return Ok(None) };
        let wide = accumulator(ty);
        let factors = factors.into_iter().map(|f| self.convert(f, wide)).collect();
        let sum = self.push(Op::SumOfProducts { factors }, wide);
        Ok(Some(self.convert(sum, ty)))
    }

    /// One product of a contraction that is evaluated as a reduction, at the index of an element of its
    /// reduction space, and the type in which products are summed.
    pub fn weighted(&mut self, dot: InstrId, index: &[Affine]) -> Result<(NodeId, ElementType), Unsupported> {
        let (module, instr) = (self.module, self.module.instr(dot));
        let (Some(ty), Some(WeightedSum { side, weights, .. })) =
            (accumulator_type(module, dot), WeightedSum::of(module, dot))
        else {
            return Err(Unsupported::new(module, dot, "products of these operands in a reduction"));
        };
        let of_weight: Index =
            weights.iter().map(|d| d.map_or_else(Affine::default, |d| index[d].clone())).collect();
        let element = self.node(instr.operands()[side], 0, index)?;
        let weight = self.node(instr.operands()[1 - side], 0, &of_weight)?;
        let factors = [element, weight].map(|factor| self.convert(factor, ty));
        Ok((self.push(Op::SumOfProducts { factors: factors.to_vec() }, ty), ty))
    }

    /// The neutral element that such sums start from.
    pub fn zero(&mut self, ty: ElementType) -> NodeId {
        self.push(Op::Iota { value: Affine::default() }, ty)
    }

    /// A short reduction, unrolled: the combiner is applied to one element after the other.
    pub fn short_reduction_len(&mut self, key: &Key, ty: ElementType) -> Result<Option<NodeId>, Unsupported> {
        let (module, instr) = (self.module, self.module.instr(key.instr));
        let (Some(terms), Some(callee)) =
            (short_reduction_len(module, key.instr), instr.attrs.computation(AttrKey::ToApply))
        else {
            return Err(Unsupported::new(
                module,
                key.instr,
                "a reduction of many elements in a fused expression",
            ));
        };
        let (x, init) = (instr.operands()[0], instr.operands()[1]);
        let along = instr.attrs.ints_or_empty(AttrKey::Dimensions);
        let dims = dims_of(module, x);
        let is_gone = |d: usize| along.contains(&(d as i64));
        let gone: Vec<i64> = (0..dims.len()).filter(|&d| is_gone(d)).map(|d| dims[d]).collect();
        let element = |term: i64| {
            let (mut at, mut kept) = (components(term, &gone).into_iter(), key.index.iter());
            let component = |d: usize| {
                if is_gone(d) { at.next().map(Affine::constant) } else { kept.next().cloned() }
            };
            let index = (0..dims.len()).map(component).map(Option::unwrap_or_default).collect();
            Key { instr: x, leaf: 0, index, ..key.clone() }
        };
        let start = Key { instr: init, leaf: 0, index: Index::new(), ..key.clone() };
        let Some(values) = self.get_all((0..terms).map(element).chain([start])) else { return Ok(None) };
        let Some((&start, elements)) = values.split_last() else { return Ok(None) };
        let wide = wide(module, callee, ty);
        let mut result = self.convert(start, wide.unwrap_or(ty));
        for &x in elements {
            result = self.folded(callee, wide, result, x)?;
        }
        Ok(Some(self.convert(result, ty)))
    }

    /// A small window, unrolled: the combiner is applied to the elements within bounds, one after the other.
    pub fn small_window_len(&mut self, key: &Key, ty: ElementType) -> Result<Option<NodeId>, Unsupported> {
        let (module, instr) = (self.module, self.module.instr(key.instr));
        let (Some(positions), Some(callee), Some(window)) = (
            small_window_len(module, key.instr),
            instr.attrs.computation(AttrKey::ToApply),
            instr.attrs.window(),
        ) else {
            return Err(Unsupported::new(
                module,
                key.instr,
                "windows of many elements in a fused expression",
            ));
        };
        let (x, init) = (instr.operands()[0], instr.operands()[1]);
        let dims = dims_of(module, x);
        let sizes: Vec<i64> = window.dims.iter().map(|w| w.size).collect();
        let (mut guards, mut keys) = (Vec::new(), Vec::new());
        for position in 0..positions {
            let at = components(position, &sizes);
            let of = window.dims.iter().zip(key.index.iter()).zip(at);
            let index: Index = of
                .map(|((w, o), k)| {
                    o.times(w.stride).plus(k.wrapping_mul(w.window_dilation).wrapping_sub(w.pad_low))
                })
                .collect();
            let inside =
                index.iter().zip(dims).map(|(value, &n)| Condition { value: value.clone(), low: 0, high: n });
            let inside: Vec<Condition> = inside.collect();
            if let Some(guard) = self.guard(key.guard, &inside).filter(|_| !dims.contains(&0)) {
                guards.push(guard);
                keys.push(Key { instr: x, leaf: 0, index, guard, ..key.clone() });
            }
        }
        keys.push(Key { instr: init, leaf: 0, index: Index::new(), ..key.clone() });
        let Some(values) = self.get_all(keys) else { return Ok(None) };
        let Some((&start, elements)) = values.split_last() else { return Ok(None) };
        let wide = wide(module, callee, ty);
        let mut result = self.convert(start, wide.unwrap_or(ty));
        for (&x, guard) in elements.iter().zip(guards) {
            let next = self.folded(callee, wide, result, x)?;
            result = if guard == key.guard {
                next
            } else {
                self.push(Op::Select { guard, yes: next, no: result }, wide.unwrap_or(ty))
            };
        }
        Ok(Some(self.convert(result, ty)))
    }

    /// The accumulator combined with one more element; in the type that [`wide`] gives, if any.
    fn folded(
        &mut self,
        callee: ComputationId,
        wide: Option<ElementType>,
        sum: NodeId,
        x: NodeId,
    ) -> Result<NodeId, Unsupported> {
        let Some(wide) = wide else { return Ok(self.apply(callee, &[sum, x])?[0]) };
        let x = self.convert(x, wide);
        Ok(self.push(Op::Sum { terms: [sum, x] }, wide))
    }
}

/// The accumulator type of a sum, if it differs from the element type.
fn wide(module: &Module, callee: ComputationId, ty: ElementType) -> Option<ElementType> {
    let sums = operation(module, callee).is_some_and(|(op, _)| op == Opcode::Add);
    Some(accumulator(ty)).filter(|&wide| sums && wide != ty)
}

/// The accumulator type of sums: sums of floats narrower than 32 bits are rounded once, at the end.
fn accumulator(ty: ElementType) -> ElementType {
    if ty.class() == TypeClass::Float && ty.bits() < 32 { ElementType::F32 } else { ty }
}
