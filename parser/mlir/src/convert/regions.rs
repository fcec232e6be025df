//! Regions: in which order they are converted, and what they use of outside.
//!
//! **Invariant:** nothing recurses on the nesting of regions: they are listed from the outermost in, and
//! converted from the innermost out.

use rustc_hash::{FxHashMap, FxHashSet};

use super::cx::{Convert, Converter};
use crate::ir::{Module, OpId, RegionId, ValueDef, ValueId};

/// Whether an operation is a constant, which regions may use of outside at no cost.
pub(super) fn is_constant(m: &Module, op: OpId) -> bool {
    matches!(m.op_name(op), "stablehlo.constant" | "mhlo.constant" | "chlo.constant" | "arith.constant")
}

/// Whether regions of an operation may use values of outside, which become operands.
fn captures(name: &str) -> bool {
    matches!(short(name), "while" | "if" | "case")
}

/// The name without its dialect.
pub(super) fn short(name: &str) -> &str {
    name.split_once('.').map_or(name, |n| n.1)
}

/// The operations with regions below a function, the outermost first.
pub(super) fn nested(m: &Module, function: OpId) -> Vec<OpId> {
    let mut found = Vec::new();
    let mut stack: Vec<RegionId> = m.op(function).regions.to_vec();
    while let Some(region) = stack.pop() {
        for &block in &m.region(region).blocks {
            for &op in &m.block(block).operations {
                if !m.op(op).regions.is_empty() {
                    found.push(op);
                    stack.extend(m.op(op).regions.iter().copied());
                }
            }
        }
    }
    found
}

/// The values that regions of each operation use and that are defined around it, in the order of their ids.
pub(super) fn captured(m: &Module, nested: &[OpId]) -> FxHashMap<OpId, Vec<ValueId>> {
    let mut all: FxHashMap<OpId, Vec<ValueId>> = FxHashMap::default();
    for &op in nested.iter().rev() {
        let regions: FxHashSet<RegionId> = m.op(op).regions.iter().copied().collect();
        let mut used: FxHashSet<ValueId> = FxHashSet::default();
        for &region in &m.op(op).regions {
            for &block in &m.region(region).blocks {
                for &inner in &m.block(block).operations {
                    used.extend(m.op(inner).operands.iter().copied());
                    if let Some(of_inner) = all.get(&inner) {
                        used.extend(of_inner.iter().copied());
                    }
                }
            }
        }
        let outside = |value: &ValueId| match m.value(*value).def {
            ValueDef::Argument { block, .. } => !regions.contains(&m.block(block).parent),
            ValueDef::Result { op, .. } => {
                !is_constant(m, op)
                    && m.op(op).parent.is_none_or(|block| !regions.contains(&m.block(block).parent))
            }
        };
        let mut list: Vec<ValueId> = used.into_iter().filter(outside).collect();
        list.sort();
        all.insert(op, list);
    }
    all
}

impl Converter<'_> {
    /// Converts the regions of all operations below a function, the innermost first; where shapes are not
    /// known (`later`), they are converted with their operations.
    pub(super) fn prepare_regions(&mut self, function: OpId, later: bool) -> Convert<()> {
        let nested = nested(self.m, function);
        let captured = captured(self.m, &nested);
        for &op in nested.iter().rev() {
            let list = captured.get(&op).cloned().unwrap_or_default();
            let name = self.m.op_name(op);
            if !list.is_empty() && !captures(name) {
                return self
                    .unsupported(op, "its region uses values of outside, which HLO computations cannot");
            }
            self.captures.insert(op, list);
            if !later {
                self.region_computations(op)?;
            }
        }
        Ok(())
    }
}
