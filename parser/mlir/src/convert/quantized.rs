//! Operations on quantized tensors.
//!
//! A quantized tensor is the array of its storage values. Operations that move elements move these; others
//! are computed on the numbers that they stand for, and rounded back, as the specification says
//! (`dequantize_op_quantize`).

use hlo::attrs::{AttrKey, Attrs};
use hlo::{ArrayLiteral, Dims, ElementType, InstrId, Opcode, Shape};
use std::sync::Arc;

use super::cx::{Convert, Converter, list};
use super::literal;
use crate::ir::{OpId, QuantizedType, Type, ValueId};

/// Operations that only move elements, or whose regions say what is computed.
const MOVES: [&str; 38] = [
    "constant",
    "bitcast_convert",
    "broadcast",
    "broadcast_in_dim",
    "dynamic_broadcast_in_dim",
    "concatenate",
    "reshape",
    "dynamic_reshape",
    "reverse",
    "slice",
    "transpose",
    "pad",
    "dynamic_pad",
    "gather",
    "dynamic_gather",
    "dynamic_slice",
    "dynamic_update_slice",
    "real_dynamic_slice",
    "get_dimension_size",
    "if",
    "case",
    "while",
    "tuple",
    "get_tuple_element",
    "optimization_barrier",
    "composite",
    "custom_call",
    "reduce",
    "reduce_window",
    "select_and_scatter",
    "scatter",
    "sort",
    "map",
    "all_gather",
    "all_to_all",
    "all_reduce",
    "reduce_scatter",
    "collective_permute",
];

impl Converter<'_> {
    /// Whether an operand or result is quantized.
    pub(super) fn is_quantized(&self, op: OpId) -> bool {
        let o = self.m.op(op);
        !self.expressing && o.operands.iter().chain(&o.results).any(|&v| self.quantized(v).is_some())
    }

    pub(super) fn quantized_operation(&mut self, op: OpId, name: &str) -> Convert<()> {
        self.quantized_rules(op, name)?;
        if MOVES.contains(&name) {
            self.expressing = true;
            let storage = self.storing;
            self.storing = true;
            let done = self.stablehlo(op, name);
            (self.expressing, self.storing) = (false, storage);
            return done;
        }
        if name == "uniform_quantize" || name == "uniform_dequantize" {
            let [_] = self.exactly::<1>(op)?;
            let x = self.operand_values(op)[0];
            let expressed = self.expressed(x, op)?;
            return self.bind_expressed(op, 0, expressed);
        }
        // The operands as the numbers that they stand for, instead of the storage values.
        let operands = self.operand_values(op).to_vec();
        let mut saved = Vec::new();
        for (i, &value) in operands.iter().enumerate() {
            if self.quantized(value).is_some() && !operands[..i].contains(&value) {
                let expressed = self.expressed(value, op)?;
                saved.push((value, self.body.values.insert(value, expressed)));
            }
        }
        self.expressing = true;
        let done = self.stablehlo(op, name);
        self.expressing = false;
        for (value, old) in saved.into_iter().rev() {
            if let Some(old) = old {
                self.body.values.insert(value, old);
            }
        }
        done?;
        for i in 0..self.m.op(op).results.len() {
            let result = self.m.op(op).results[i];
            if let Some(&id) = self.body.values.get(&result) {
                self.bind_expressed(op, i, id)?;
            }
        }
        Ok(())
    }

    /// The numbers that a value stands for; of one that is not quantized, itself.
    fn expressed(&mut self, value: ValueId, op: OpId) -> Convert<InstrId> {
        let x = self.value(value, op)?;
        let Some(q) = self.quantized(value).cloned() else { return Ok(x) };
        let ty = self.expressed_type(&q, op)?;
        let dims = self.dims_of(x);
        // Differences of storage values need one bit more than these have.
        let wide = if q.storage_bits < 32 { ElementType::S32 } else { ElementType::S64 };
        let x = self.convert_to(x, wide);
        let zeros: Vec<u128> = q.zero_points.iter().map(|&z| z as i128 as u128).collect();
        let zeros = self.parameters(&q, wide, &zeros, &dims, op)?;
        let difference = self.sub(x, zeros);
        let difference = self.convert_to(difference, ty);
        let scales: Vec<u128> =
            q.scales.iter().map(|&s| literal::number_bits(ty, f64::from_bits(s))).collect();
        let scales = self.parameters(&q, ty, &scales, &dims, op)?;
        Ok(self.mul(difference, scales))
    }

    fn expressed_type(&self, q: &QuantizedType, op: OpId) -> Convert<ElementType> {
        match super::shapes::element_type(self.m, q.expressed) {
            Some(ty) if ty.is_float() => Ok(ty),
            _ => self.unsupported(op, "quantized numbers that stand for no floats of HLO"),
        }
    }

    /// Scales or zero points, spread over a tensor of these dimensions.
    fn parameters(
        &mut self,
        q: &QuantizedType,
        ty: ElementType,
        values: &[u128],
        dims: &[i64],
        op: OpId,
    ) -> Convert<InstrId> {
        match *q.axes {
            [] => Ok(self.fill_bits(ty, dims, values.first().copied().unwrap_or(0))),
            [(axis, 0)] => {
                let axis = usize::try_from(axis).unwrap_or(usize::MAX);
                if dims.get(axis) != Some(&(values.len() as i64)) {
                    return self.constraint(
                        op,
                        "C12",
                        "the quantized dimension has another size than there are scales",
                    );
                }
                let row = self.row(ty, values, &[values.len() as i64]);
                let attrs = Attrs::new().with(AttrKey::Dimensions, list(&[axis as i64]));
                Ok(self.emit(Opcode::Broadcast, Shape::array(ty, dims), &[row], attrs))
            }
            _ => {
                // One parameter a block: [blocks...] to [block, size, ...] to the whole.
                let (mut counts, mut mapping, mut blocked) = (vec![1; dims.len()], Vec::new(), Vec::new());
                for (i, &d) in dims.iter().enumerate() {
                    let block = q.axes.iter().find(|a| a.0 as i64 == i as i64).map_or(d, |a| a.1);
                    if block < 1 || d % block != 0 {
                        return self.unsupported(op, "blocks of quantization that do not divide a dimension");
                    }
                    counts[i] = d / block;
                    mapping.push(blocked.len() as i64);
                    blocked.extend([d / block, block]);
                }
                let count = counts.iter().try_fold(1i64, |n: i64, &c| n.checked_mul(c));
                if count != Some(values.len() as i64) {
                    return self.unsupported(op, "another number of scales than of blocks");
                }
                let row = self.row(ty, values, &counts);
                let attrs = Attrs::new().with(AttrKey::Dimensions, list(&mapping));
                let wide = self.emit(Opcode::Broadcast, Shape::array(ty, &blocked), &[row], attrs);
                Ok(self.plain(Opcode::Reshape, Shape::array(ty, dims), &[wide]))
            }
        }
    }

    fn row(&mut self, ty: ElementType, bits: &[u128], dims: &[i64]) -> InstrId {
        let buffer = hlo::with_element_type!(ty, T => {
            <T as hlo::BufferOf>::wrap(bits.iter().map(|&b| <T as hlo::Bits>::from_bits(b)).collect())
        });
        self.literal(ArrayLiteral { dims: Dims::from_slice(dims), buffer: Arc::new(buffer) })
    }

    /// Binds a result to numbers, rounded to storage values if it is quantized.
    fn bind_expressed(&mut self, op: OpId, index: usize, id: InstrId) -> Convert<()> {
        let result = self.m.op(op).results[index];
        let Some(q) = self.quantized(result).cloned() else {
            self.bind(op, index, id);
            return Ok(());
        };
        let ty = self.expressed_type(&q, op)?;
        let x = self.convert_to(id, ty);
        let dims = self.dims_of(x);
        let scales: Vec<u128> =
            q.scales.iter().map(|&s| literal::number_bits(ty, f64::from_bits(s))).collect();
        let zeros: Vec<u128> = q.zero_points.iter().map(|&z| literal::number_bits(ty, z as f64)).collect();
        let scales = self.parameters(&q, ty, &scales, &dims, op)?;
        let zeros = self.parameters(&q, ty, &zeros, &dims, op)?;
        let scaled = self.div(x, scales);
        let shifted = self.add(scaled, zeros);
        let (low, high) = (self.like(x, q.storage_min as f64), self.like(x, q.storage_max as f64));
        let shape = self.shape_of(x);
        let clamped = self.plain(Opcode::Clamp, shape, &[low, shifted, high]);
        let rounded = self.op1(Opcode::RoundNearestEven, clamped);
        let element = match self.m.get_type(self.m.value_type(result)) {
            Type::Tensor { element, .. } => super::shapes::element_type(self.m, *element),
            _ => None,
        };
        let Some(element) = element else {
            return self.unsupported(op, "storage values of a type that HLO does not have");
        };
        let stored = self.convert_to(rounded, element);
        self.bind(op, index, stored);
        Ok(())
    }
}
