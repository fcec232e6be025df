//! Operations whose indices are computed: slices, gather, scatter.

use hlo::attrs::AttrKey;
use hlo::{InstrId, Instruction};

use super::cx::{Export, Exporter, Leaves, Part};
use crate::ir::ValueId;

impl Exporter<'_> {
    /// Start indices as scalars; the older form has them in one array.
    fn starts(&mut self, operands: &[InstrId], rank: usize) -> Export<Vec<ValueId>> {
        if let [one] = *operands
            && let Some(array) = self.hlo.instr(one).shape.as_array()
            && array.rank() == 1
        {
            let list = self.leaves(one)[0];
            let (single, scalar) =
                (self.tensor(array.element_type, &[1])?, self.tensor(array.element_type, &[])?);
            let mut starts = Vec::new();
            for d in 0..rank as i64 {
                let (start, limit, stride) = (self.ints(&[d]), self.ints(&[d + 1]), self.ints(&[1]));
                let part = self.one(
                    "stablehlo.slice",
                    &[list],
                    single,
                    &[("start_indices", start), ("limit_indices", limit), ("strides", stride)],
                )?;
                starts.push(self.one("stablehlo.reshape", &[part], scalar, &[])?);
            }
            return Ok(starts);
        }
        Ok(operands.iter().flat_map(|&o| self.leaves(o)).collect())
    }

    pub(super) fn dynamic_slice(&mut self, i: &Instruction) -> Export<Leaves> {
        let x = self.operand(i, 0)?;
        let rank = self.operand_dims(i, 0).len();
        let mut operands = vec![x];
        operands.extend(self.starts(&i.operands()[1..], rank)?);
        let sizes = self.ints(i.attrs.ints_or_empty(AttrKey::DynamicSliceSizes));
        self.whole("stablehlo.dynamic_slice", &operands, &[("slice_sizes", sizes)])
    }

    pub(super) fn dynamic_update_slice(&mut self, i: &Instruction) -> Export<Leaves> {
        let mut operands = vec![self.operand(i, 0)?, self.operand(i, 1)?];
        let rank = self.operand_dims(i, 0).len();
        operands.extend(self.starts(&i.operands()[2..], rank)?);
        self.whole("stablehlo.dynamic_update_slice", &operands, &[])
    }

    pub(super) fn gather(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let part = |key| Part::Ints(i.attrs.ints_or_empty(key));
        let mut parts = vec![
            ("offset_dims", part(AttrKey::OffsetDims)),
            ("collapsed_slice_dims", part(AttrKey::CollapsedSliceDims)),
            ("operand_batching_dims", part(AttrKey::OperandBatchingDims)),
            ("start_indices_batching_dims", part(AttrKey::StartIndicesBatchingDims)),
            ("start_index_map", part(AttrKey::StartIndexMap)),
        ];
        let vector = i.attrs.int(AttrKey::IndexVectorDim).unwrap_or(0);
        if vector != 0 {
            parts.push(("index_vector_dim", Part::Int(vector)));
        }
        let numbers = self.record("gather", &parts);
        let sizes = self.ints(i.attrs.ints_or_empty(AttrKey::SliceSizes));
        let sorted = self.bool(i.attrs.bool(AttrKey::IndicesAreSorted));
        self.whole(
            "stablehlo.gather",
            &operands,
            &[("dimension_numbers", numbers), ("slice_sizes", sizes), ("indices_are_sorted", sorted)],
        )
    }

    pub(super) fn scatter(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let part = |key| Part::Ints(i.attrs.ints_or_empty(key));
        let mut parts = vec![
            ("update_window_dims", part(AttrKey::UpdateWindowDims)),
            ("inserted_window_dims", part(AttrKey::InsertedWindowDims)),
            ("input_batching_dims", part(AttrKey::InputBatchingDims)),
            ("scatter_indices_batching_dims", part(AttrKey::ScatterIndicesBatchingDims)),
            ("scatter_dims_to_operand_dims", part(AttrKey::ScatterDimsToOperandDims)),
        ];
        let vector = i.attrs.int(AttrKey::IndexVectorDim).unwrap_or(0);
        if vector != 0 {
            parts.push(("index_vector_dim", Part::Int(vector)));
        }
        let numbers = self.record("scatter", &parts);
        let sorted = self.bool(i.attrs.bool(AttrKey::IndicesAreSorted));
        let unique = self.bool(i.attrs.bool(AttrKey::UniqueIndices));
        let combine = self.called(i, AttrKey::ToApply)?;
        let op = self.whole_op(
            "stablehlo.scatter",
            &operands,
            &[
                ("scatter_dimension_numbers", numbers),
                ("indices_are_sorted", sorted),
                ("unique_indices", unique),
            ],
        )?;
        self.region(op, combine)?;
        Ok(self.results_of(op))
    }
}
