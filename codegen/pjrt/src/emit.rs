//! Instructions that are added to programs for several partitions.

use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue, Attrs, Ints};
use hlo::{
    ArrayLiteral, Buffer, ComputationId, ConstantValue, ElementType, InstrId, Literal, Module,
    NewInstruction, Opcode, Shape,
};

/// Adds an instruction at the end of a computation.
pub(crate) fn instruction(
    module: &mut Module,
    computation: ComputationId,
    opcode: Opcode,
    shape: Shape,
    operands: &[InstrId],
    attrs: Attrs,
) -> InstrId {
    let name = module.unique_name(opcode.name());
    let new = NewInstruction { attrs, ..NewInstruction::new(opcode, shape, operands) };
    module.append(computation, new.named(name))
}

/// Adds a constant.
pub(crate) fn literal(
    module: &mut Module,
    computation: ComputationId,
    dims: &[i64],
    buffer: Buffer,
) -> InstrId {
    let literal = ArrayLiteral { dims: dims.into(), buffer: buffer.into() };
    let shape = Shape::Array(literal.shape());
    let value = ConstantValue::Given(Arc::new(Literal::Array(literal)));
    let attrs = Attrs::new().with(AttrKey::ConstantValue, AttrValue::Literal(value));
    instruction(module, computation, Opcode::Constant, shape, &[], attrs)
}

/// Adds the number of the partition that runs.
pub(crate) fn partition_id(module: &mut Module, computation: ComputationId) -> InstrId {
    let shape = Shape::scalar(ElementType::U32);
    instruction(module, computation, Opcode::PartitionId, shape, &[], Attrs::new())
}

/// Adds the element of a table that is a partition's, as a scalar.
pub(crate) fn looked_up(
    module: &mut Module,
    computation: ComputationId,
    table: Buffer,
    partition: InstrId,
) -> InstrId {
    let (ty, count) = (table.element_type(), table.len() as i64);
    let table = literal(module, computation, &[count], table);
    let attrs = Attrs::new().with(AttrKey::DynamicSliceSizes, AttrValue::Ints(Ints::from_slice(&[1])));
    let operands = [table, partition];
    let one =
        instruction(module, computation, Opcode::DynamicSlice, Shape::array(ty, &[1]), &operands, attrs);
    instruction(module, computation, Opcode::Reshape, Shape::scalar(ty), &[one], Attrs::new())
}

/// Where the blocks of partitions start along a dimension that is divided among the partitions of each set,
/// in order, by partition. `None`: a partition has a negative number.
pub(crate) fn block_starts(sets: &[Vec<i64>], block: i64) -> Option<Vec<i64>> {
    let count = sets.iter().flatten().max().map_or(1, |last| last + 1);
    let mut starts = vec![0; usize::try_from(count).ok()?];
    for set in sets {
        for (&partition, n) in set.iter().zip(0..) {
            *starts.get_mut(usize::try_from(partition).ok()?)? = n * block;
        }
    }
    Some(starts)
}
