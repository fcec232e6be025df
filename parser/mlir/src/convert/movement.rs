//! Operations that move elements and compute nothing.

use hlo::attrs::{AttrKey, AttrValue, Attrs, PaddingDim, SliceDim};
use hlo::{InstrId, Opcode, Shape};

use super::cx::{Convert, Converter, list};
use crate::ir::OpId;

impl Converter<'_> {
    pub(super) fn iota(&mut self, op: OpId) -> Convert<()> {
        let shape = self.result_shape(op)?;
        let dimension = self.int(op, "iota_dimension")?;
        let rank = shape.as_array().map_or(0, hlo::ArrayShape::rank) as i64;
        if !(0..rank).contains(&dimension) {
            return self.constraint(op, "C1", format!("dimension {dimension} of a result of rank {rank}"));
        }
        let attrs = Attrs::new().with(AttrKey::IotaDimension, AttrValue::Int(dimension));
        let id = self.emit(Opcode::Iota, shape, &[], attrs);
        self.bind_one(op, id)
    }

    /// `broadcast`, which adds dimensions in front.
    pub(super) fn broadcast(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let added = self.ints(op, "broadcast_sizes")?.len() as i64;
        let rank = self.dims_of(x).len() as i64;
        let mapping: Vec<i64> = (added..added + rank).collect();
        let shape = self.result_shape(op)?;
        let id =
            self.emit(Opcode::Broadcast, shape, &[x], Attrs::new().with(AttrKey::Dimensions, list(&mapping)));
        self.bind_one(op, id)
    }

    pub(super) fn broadcast_in_dim(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let mapping = self.ints(op, "broadcast_dimensions")?;
        self.broadcast_to(op, x, &mapping)
    }

    /// Broadcasts to the declared result; dimensions of size 1 grow.
    pub(super) fn broadcast_to(&mut self, op: OpId, x: InstrId, mapping: &[i64]) -> Convert<()> {
        let shape = self.result_shape(op)?;
        let Shape::Array(result) = &shape else {
            return self.structure(op, "has a result that is no tensor");
        };
        let dims = self.dims_of(x);
        if mapping.len() != dims.len() {
            let message =
                format!("{} broadcast dimensions of an operand of rank {}", mapping.len(), dims.len());
            return self.constraint(op, "C2", message);
        }
        for (i, &to) in mapping.iter().enumerate() {
            let Some(&size) = usize::try_from(to).ok().and_then(|to| result.dims.get(to)) else {
                return self.constraint(op, "C3", format!("dimension {to} is none of the result's"));
            };
            if mapping[..i].contains(&to) {
                return self.constraint(op, "C4", format!("dimension {to} is named twice"));
            }
            if dims[i] != 1 && dims[i] != size {
                let message = format!("dimension {i} of size {} for dimension {to} of size {size}", dims[i]);
                return self.constraint(op, "C5", message);
            }
        }
        let id = self.broadcast_value(x, shape.clone(), mapping);
        self.bind_one(op, id)
    }

    /// Broadcasts a value to a shape; dimensions of size 1 grow.
    pub(super) fn broadcast_value(&mut self, x: InstrId, shape: Shape, mapping: &[i64]) -> InstrId {
        let Shape::Array(result) = &shape else { return x };
        let dims = self.dims_of(x);
        let grows: Vec<bool> = mapping
            .iter()
            .enumerate()
            .map(|(i, &to)| dims[i] == 1 && result.dims[to as usize] != 1)
            .collect();
        let (mut x, mut mapping) = (x, mapping.to_vec());
        if grows.contains(&true) {
            let kept: Vec<i64> =
                dims.iter().zip(&grows).filter(|(_, grows)| !**grows).map(|(&d, _)| d).collect();
            let ty = self.type_of(x);
            x = self.plain(Opcode::Reshape, Shape::array(ty, &kept), &[x]);
            let mut at = grows.iter();
            mapping.retain(|_| at.next() == Some(&false));
        }
        // HLO wants the mapping in ascending order; others are a transposition before.
        if !mapping.is_sorted() {
            let mut order: Vec<usize> = (0..mapping.len()).collect();
            order.sort_by_key(|&i| mapping[i]);
            let permutation: Vec<i64> = order.iter().map(|&i| i as i64).collect();
            let dims = self.dims_of(x);
            let permuted: Vec<i64> = order.iter().map(|&i| dims[i]).collect();
            let ty = self.type_of(x);
            let attrs = Attrs::new().with(AttrKey::Dimensions, list(&permutation));
            x = self.emit(Opcode::Transpose, Shape::array(ty, &permuted), &[x], attrs);
            mapping.sort_unstable();
        }
        self.emit(Opcode::Broadcast, shape, &[x], Attrs::new().with(AttrKey::Dimensions, list(&mapping)))
    }

    pub(super) fn concatenate(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        if operands.is_empty() {
            return self.constraint(op, "C3", "there is no operand");
        }
        let dimension = self.int(op, "dimension")?;
        let rank = self.dims_of(operands[0]).len() as i64;
        if !(0..rank).contains(&dimension) {
            return self.constraint(op, "C4", format!("dimension {dimension} of operands of rank {rank}"));
        }
        let shape = self.result_shape(op)?;
        let attrs = Attrs::new().with(AttrKey::Dimensions, list(&[dimension]));
        let id = self.emit(Opcode::Concatenate, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    pub(super) fn pad(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 2] = self.exactly(op)?;
        let low = self.ints(op, "edge_padding_low")?;
        let high = self.ints(op, "edge_padding_high")?;
        let interior = self.ints(op, "interior_padding")?;
        self.pad_with(op, operands, [&low, &high, &interior])
    }

    pub(super) fn pad_with(&mut self, op: OpId, operands: [InstrId; 2], parts: [&[i64]; 3]) -> Convert<()> {
        let rank = self.dims_of(operands[0]).len();
        let [low, high, interior] = parts;
        if parts.iter().any(|p| p.len() != rank) {
            return self.constraint(op, "C2", format!("paddings are not as many as dimensions, {rank}"));
        }
        if let Some(n) = interior.iter().find(|&&n| n < 0) {
            return self.constraint(op, "C3", format!("interior padding {n}"));
        }
        let padding: Vec<PaddingDim> =
            (0..rank).map(|i| PaddingDim { low: low[i], high: high[i], interior: interior[i] }).collect();
        let attrs = Attrs::new().with(AttrKey::Padding, AttrValue::Padding(padding.into()));
        let shape = self.result_shape(op)?;
        let id = self.emit(Opcode::Pad, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    pub(super) fn reshape(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let shape = self.result_shape(op)?;
        let elements = |s: &Shape| s.as_array().and_then(hlo::ArrayShape::checked_elements);
        let own = self.shape_of(x);
        if elements(&own) != elements(&shape) && !shape.as_array().is_some_and(hlo::ArrayShape::is_dynamic) {
            return self.constraint(op, "C2", "the operand has another number of elements than the result");
        }
        let id = self.plain(Opcode::Reshape, shape, &[x]);
        self.bind_one(op, id)
    }

    pub(super) fn reverse(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let dimensions = self.ints(op, "dimensions")?;
        let rank = self.dims_of(x).len() as i64;
        for (i, d) in dimensions.iter().enumerate() {
            if dimensions[..i].contains(d) {
                return self.constraint(op, "C2", format!("dimension {d} is named twice"));
            }
            if !(0..rank).contains(d) {
                return self.constraint(op, "C3", format!("dimension {d} of an operand of rank {rank}"));
            }
        }
        let shape = self.result_shape(op)?;
        let attrs = Attrs::new().with(AttrKey::Dimensions, list(&dimensions));
        let id = self.emit(Opcode::Reverse, shape, &[x], attrs);
        self.bind_one(op, id)
    }

    pub(super) fn slice(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let start = self.ints(op, "start_indices")?;
        let limit = self.ints(op, "limit_indices")?;
        let strides = self.ints(op, "strides")?;
        self.slice_with(op, x, [&start, &limit, &strides])
    }

    pub(super) fn slice_with(&mut self, op: OpId, x: InstrId, parts: [&[i64]; 3]) -> Convert<()> {
        let dims = self.dims_of(x);
        let [start, limit, strides] = parts;
        if parts.iter().any(|p| p.len() != dims.len()) {
            return self.constraint(
                op,
                "C2",
                format!("indices are not as many as dimensions, {}", dims.len()),
            );
        }
        for i in 0..dims.len() {
            if start[i] < 0 || start[i] > limit[i] || limit[i] > dims[i] {
                let message = format!("[{}:{}] of dimension {i} of size {}", start[i], limit[i], dims[i]);
                return self.constraint(op, "C3", message);
            }
            if strides[i] < 1 {
                return self.constraint(op, "C4", format!("stride {} of dimension {i}", strides[i]));
            }
        }
        let slices: Vec<SliceDim> = (0..dims.len())
            .map(|i| SliceDim { start: start[i], limit: limit[i], stride: strides[i] })
            .collect();
        let attrs = Attrs::new().with(AttrKey::Slice, AttrValue::Slices(slices.into()));
        let shape = self.result_shape(op)?;
        let id = self.emit(Opcode::Slice, shape, &[x], attrs);
        self.bind_one(op, id)
    }

    pub(super) fn transpose(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let permutation = self.ints(op, "permutation")?;
        let mut sorted = permutation.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..self.dims_of(x).len() as i64) {
            return self.constraint(op, "C2", format!("{permutation:?} is no permutation of the dimensions"));
        }
        let shape = self.result_shape(op)?;
        let attrs = Attrs::new().with(AttrKey::Dimensions, list(&permutation));
        let id = self.emit(Opcode::Transpose, shape, &[x], attrs);
        self.bind_one(op, id)
    }

    pub(super) fn get_dimension_size(&mut self, op: OpId) -> Convert<()> {
        let [x] = self.exactly(op)?;
        let dimension = self.dimension(op, x, "C1")?;
        let shape = self.result_shape(op)?;
        let attrs = Attrs::new().with(AttrKey::Dimensions, list(&[dimension]));
        let id = self.emit(Opcode::GetDimensionSize, shape, &[x], attrs);
        self.bind_one(op, id)
    }

    fn dimension(&self, op: OpId, x: InstrId, number: &str) -> Convert<i64> {
        let dimension = self.int(op, "dimension")?;
        let rank = self.dims_of(x).len() as i64;
        if (0..rank).contains(&dimension) {
            Ok(dimension)
        } else {
            self.constraint(op, number, format!("dimension {dimension} of an operand of rank {rank}"))
        }
    }

    pub(super) fn set_dimension_size(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 2] = self.exactly(op)?;
        let dimension = self.dimension(op, operands[0], "C1")?;
        let Shape::Array(mut shape) = self.shape_of(operands[0]) else {
            return self.structure(op, "has an operand that is no tensor");
        };
        shape.dynamic |= 1 << dimension;
        let attrs = Attrs::new().with(AttrKey::Dimensions, list(&[dimension]));
        let id = self.emit(Opcode::SetDimensionSize, Shape::Array(shape), &operands, attrs);
        self.bind_one(op, id)
    }
}
