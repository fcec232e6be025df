//! Operations whose indices are computed: slices, gather, scatter.

use hlo::attrs::{AttrKey, AttrValue, Attrs};
use hlo::{InstrId, Opcode, Shape};

use super::cx::{Convert, Converter, list};
use crate::ir::OpId;

impl Converter<'_> {
    pub(super) fn dynamic_slice(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        let Some(&x) = operands.first() else { return self.structure(op, "has no operand") };
        let sizes = self.ints(op, "slice_sizes")?;
        let dims = self.dims_of(x);
        if operands.len() != dims.len() + 1 || sizes.len() != dims.len() {
            let message = format!(
                "{} start indices and {} sizes of rank {}",
                operands.len() - 1,
                sizes.len(),
                dims.len()
            );
            return self.constraint(op, "C2", message);
        }
        if let Some(i) = (0..dims.len()).find(|&i| sizes[i] < 0 || sizes[i] > dims[i]) {
            let message = format!("a slice of {} of dimension {i} of size {}", sizes[i], dims[i]);
            return self.constraint(op, "C4", message);
        }
        let shape = self.result_shape(op)?;
        let attrs = Attrs::new().with(AttrKey::DynamicSliceSizes, list(&sizes));
        let id = self.emit(Opcode::DynamicSlice, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    pub(super) fn dynamic_update_slice(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        let [x, update, starts @ ..] = &operands[..] else {
            return self.structure(op, "has not two operands");
        };
        let (dims, of_update) = (self.dims_of(*x), self.dims_of(*update));
        if of_update.len() != dims.len() {
            return self.constraint(op, "C3", "the update has another rank than the operand");
        }
        if starts.len() != dims.len() {
            return self.constraint(
                op,
                "C4",
                format!("{} start indices of rank {}", starts.len(), dims.len()),
            );
        }
        if let Some(i) = (0..dims.len()).find(|&i| of_update[i] > dims[i]) {
            let message = format!("an update of {} in dimension {i} of size {}", of_update[i], dims[i]);
            return self.constraint(op, "C6", message);
        }
        let shape = self.result_shape(op)?;
        let id = self.plain(Opcode::DynamicUpdateSlice, shape, &operands);
        self.bind_one(op, id)
    }

    pub(super) fn gather(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 2] = self.exactly(op)?;
        let sizes = self.ints(op, "slice_sizes")?;
        self.gather_with(op, operands, &sizes)
    }

    pub(super) fn gather_with(&mut self, op: OpId, operands: [InstrId; 2], sizes: &[i64]) -> Convert<()> {
        let record = "dimension_numbers";
        if self.attr(op, record).is_none() {
            return self.structure(op, "has no `dimension_numbers`");
        }
        let part = |name| list(&self.part_ints(op, record, name));
        let mut attrs = Attrs::new()
            .with(AttrKey::OffsetDims, part("offset_dims"))
            .with(AttrKey::CollapsedSliceDims, part("collapsed_slice_dims"))
            .with(AttrKey::StartIndexMap, part("start_index_map"))
            .with(AttrKey::IndexVectorDim, AttrValue::Int(self.part_int(op, record, "index_vector_dim")))
            .with(AttrKey::SliceSizes, list(sizes));
        let batching = self.part_ints(op, record, "operand_batching_dims");
        let of_indices = self.part_ints(op, record, "start_indices_batching_dims");
        if !batching.is_empty() || !of_indices.is_empty() {
            attrs.set(AttrKey::OperandBatchingDims, list(&batching));
            attrs.set(AttrKey::StartIndicesBatchingDims, list(&of_indices));
        }
        if self.bool_or(op, "indices_are_sorted", false)? {
            attrs.set(AttrKey::IndicesAreSorted, AttrValue::Bool(true));
        }
        let shape = self.result_shape(op)?;
        let id = self.emit(Opcode::Gather, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    /// The gather of whole slices along one dimension.
    pub(super) fn torch_index_select(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 2] = self.exactly(op)?;
        let (dim, batch) = (self.int(op, "dim")?, self.int(op, "batch_dims")?);
        let (dims, of_indices) = (self.dims_of(operands[0]), self.dims_of(operands[1]));
        let index_rank = of_indices.len() as i64;
        if batch < 0 || batch > dim || dim >= dims.len() as i64 || batch > index_rank {
            return self.structure(op, "has dimensions out of range");
        }
        let mut sizes = dims.clone();
        sizes[dim as usize] = 1;
        for size in &mut sizes[..batch as usize] {
            *size = 1;
        }
        let batching: Vec<i64> = (0..batch).collect();
        let rank = dims.len() as i64 - 1 + index_rank - batch;
        let offset: Vec<i64> = (batch..dim).chain(dim + index_rank - batch..rank).collect();
        let attrs = Attrs::new()
            .with(AttrKey::OffsetDims, list(&offset))
            .with(AttrKey::CollapsedSliceDims, list(&[dim]))
            .with(AttrKey::StartIndexMap, list(&[dim]))
            .with(AttrKey::OperandBatchingDims, list(&batching))
            .with(AttrKey::StartIndicesBatchingDims, list(&batching))
            .with(AttrKey::IndexVectorDim, AttrValue::Int(index_rank))
            .with(AttrKey::SliceSizes, list(&sizes));
        let shape = self.result_shape(op)?;
        let id = self.emit(Opcode::Gather, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    pub(super) fn scatter(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        let record = "scatter_dimension_numbers";
        if self.attr(op, record).is_none() {
            return self.structure(op, "has no `scatter_dimension_numbers`");
        }
        if operands.len() < 3 || operands.len() % 2 == 0 {
            return self.structure(op, "has not as many updates as inputs");
        }
        let part = |name| list(&self.part_ints(op, record, name));
        let mut attrs = Attrs::new()
            .with(AttrKey::UpdateWindowDims, part("update_window_dims"))
            .with(AttrKey::InsertedWindowDims, part("inserted_window_dims"))
            .with(AttrKey::ScatterDimsToOperandDims, part("scatter_dims_to_operand_dims"))
            .with(AttrKey::IndexVectorDim, AttrValue::Int(self.part_int(op, record, "index_vector_dim")))
            .with(AttrKey::ToApply, AttrValue::Computation(self.region(op, 0)?));
        let batching = self.part_ints(op, record, "input_batching_dims");
        let of_indices = self.part_ints(op, record, "scatter_indices_batching_dims");
        if !batching.is_empty() || !of_indices.is_empty() {
            attrs.set(AttrKey::InputBatchingDims, list(&batching));
            attrs.set(AttrKey::ScatterIndicesBatchingDims, list(&of_indices));
        }
        for (name, key) in
            [("indices_are_sorted", AttrKey::IndicesAreSorted), ("unique_indices", AttrKey::UniqueIndices)]
        {
            if self.bool_or(op, name, false)? {
                attrs.set(key, AttrValue::Bool(true));
            }
        }
        let shapes = self.result_shapes(op)?;
        let shape = if shapes.len() == 1 { shapes[0].clone() } else { Shape::tuple(shapes) };
        let id = self.emit(Opcode::Scatter, shape, &operands, attrs);
        self.bind_tuple(op, id)
    }
}
