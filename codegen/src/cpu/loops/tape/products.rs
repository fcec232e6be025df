//! Contractions whose elements are expressions: sums of a few products, in the order of the contracted dimensions.

use hlo::ElementType;
use hlo::attrs::AttrKey;

use super::{Key, NodeId, Op, Tape, dims_of};
use crate::Unsupported;
use crate::cpu::loops::index::{Affine, Index};
use crate::passes::facts::{is_few_products, is_product};

impl Tape<'_> {
    pub(super) fn products(&mut self, key: &Key, ty: ElementType) -> Result<Option<NodeId>, Unsupported> {
        let (module, instr) = (self.module, self.module.instr(key.instr));
        if !is_few_products(module, key.instr) && !is_product(module, key.instr) {
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
            let mut rest = product;
            let mut at: Vec<i64> = sizes
                .iter()
                .rev()
                .map(|&n| {
                    let at = rest % n;
                    rest /= n;
                    at
                })
                .collect();
            at.reverse();
            // What is neither of the batch nor contracted: first that of the left side.
            let mut free = key.index.iter().skip(sides[0].0.len());
            for (side, (batch, contracted)) in sides.iter().enumerate() {
                let index: Index = (0..of(side).len() as i64)
                    .map(|d| {
                        let place = |list: &[i64]| list.iter().position(|&x| x == d);
                        match (place(batch), place(contracted)) {
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
        let factors = factors.into_iter().map(|f| self.convert(f, ty)).collect();
        Ok(Some(self.push(Op::Products { factors }, ty)))
    }
}
