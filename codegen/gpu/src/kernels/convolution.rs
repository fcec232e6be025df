//! `convolution`: any number of spatial dimensions, feature or batch groups, strides, dilations, padding of
//! either sign, reversal, dimensions in any order.
//!
//! **Numerics** (SEMANTICS.md, "Sums"): as for dots, but integers are summed in 64 bits and saturate. Terms
//! in padding and holes are absent, so an infinity in the kernel makes no NaN there.
//!
//! Most are products of matrices ([`patches`]); a thread computes an element of the others: those of few
//! features a group, of complex numbers, of truth values.

mod patches;

use hlo::attrs::AttrKey;
use hlo::{ElementType, InstrId, Module};
use hlo_codegen::Unsupported;
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Emit, IntPredicate, Prim, Result, Value};

use super::contract::epilogue::Epilogue;
use super::contract::operand::{argument_of, components, index_prim, strides};
use super::contract::{Words, check_precision, simple};
use super::{Unit, launch};
use crate::code;
use crate::kernel::{Argument, Kernel, Stage};
use crate::lower::bytes_of;
use crate::subject::Subject;
use patches::Patched;

/// The maximum number of window positions that are unrolled.
const MAX_UNROLLED: i64 = 32;

/// The bound of all positions.
const MAX_POSITION: i64 = 1 << 40;

/// A spatial dimension.
#[derive(Clone, Debug)]
struct Axis {
    /// Size of the input, and its stride in memory.
    input: [i64; 2],
    /// Size of the kernel, and its stride in memory.
    kernel: [i64; 2],
    /// The result's dimension.
    output_dim: usize,
    /// The window stride.
    stride: i64,
    /// The low padding.
    padding: i64,
    /// The base dilation.
    input_dilation: i64,
    /// The window dilation.
    kernel_dilation: i64,
    /// The window reversal.
    is_reversed: bool,
}

/// A convolution.
#[derive(Clone, Debug)]
struct Convolution {
    words: Words,
    /// Arguments and element types of input and kernel.
    operands: [(u32, ElementType); 2],
    axes: Vec<Axis>,
    /// Dimensions of the result, and which of them are batch and feature.
    dims: Vec<i64>,
    batch_dim: usize,
    feature_dim: usize,
    /// Input features of a group, and strides in input and kernel.
    channels: [i64; 3],
    /// Strides of the input's batch and the kernel's output feature.
    batch_stride: i64,
    feature_stride: i64,
    /// Output features of a feature group; how many groups there are.
    feature_groups: [i64; 2],
    /// Output features of a batch group; batches of one; how many groups there are.
    batch_groups: [i64; 3],
    /// Elements of input and kernel.
    elements: [i64; 2],
    /// An integer that holds all positions and offsets.
    prim: Prim,
}

/// The largest magnitude of integers of a byte or two.
fn max_magnitude(ty: ElementType) -> Option<i64> {
    let narrow = ty.is_integer() && ty.bits() <= 16;
    narrow.then(|| if ty.is_signed_integer() { 1 << (ty.bits() - 1) } else { (1 << ty.bits()) - 1 })
}

impl Convolution {
    /// Of a `convolution`, in the kernel of an instruction (itself, or a fusion).
    fn of(module: &Module, kernel: InstrId, id: InstrId) -> std::result::Result<Self, Unsupported> {
        check_precision(module, id)?;
        let instr = module.instr(id);
        let refuse = |reason: &str| Unsupported::new(module, id, reason);
        if instr.attrs.sparsity().is_some() {
            return Err(refuse("sparsity_config"));
        }
        let labels = instr.attrs.conv_dims().ok_or_else(|| refuse("no dim_labels"))?;
        if labels.unknown.iter().any(|unknown| !unknown.is_empty()) {
            return Err(refuse("dimensions labelled ?"));
        }
        let result = instr.shape.expect_array();
        let (left, l) = argument_of(module, kernel, id, 0)?;
        let (right, r) = argument_of(module, kernel, id, 1)?;
        let (ls, rs) = (strides(&l.dims), strides(&r.dims));
        let at = |d: i64| usize::try_from(d).expect("invariant: the verifier checked dim_labels");
        let window = instr.attrs.window().map_or(&[][..], |w| &w.dims);
        let mut axes = Vec::new();
        for (i, w) in window.iter().enumerate() {
            let (input, kernel) = (at(labels.input_spatial[i]), at(labels.kernel_spatial[i]));
            let numbers = [w.stride, w.pad_low, w.base_dilation, w.window_dilation];
            if numbers.iter().any(|x| x.saturating_abs() >= MAX_POSITION) {
                return Err(refuse("a window beyond 2^40"));
            }
            axes.push(Axis {
                input: [l.dims[input], ls[input]],
                kernel: [r.dims[kernel], rs[kernel]],
                output_dim: at(labels.output_spatial[i]),
                stride: w.stride.max(1),
                padding: w.pad_low,
                input_dilation: w.base_dilation.max(1),
                kernel_dilation: w.window_dilation.max(1),
                is_reversed: w.reversal,
            });
        }
        let groups = |key| instr.attrs.int(key).unwrap_or(1).max(1);
        let (feature_groups, batch_groups) =
            (groups(AttrKey::FeatureGroupCount), groups(AttrKey::BatchGroupCount));
        let features = r.dims[at(labels.kernel_output_feature)];
        let input_feature = at(labels.input_feature);
        let terms = axes.iter().map(|axis: &Axis| axis.kernel[0]).product::<i64>()
            * r.dims[at(labels.kernel_input_feature)];
        let words = Words::new(l.element_type, r.element_type, result.element_type);
        let is_small = result.element_type == ElementType::S32
            && max_magnitude(l.element_type)
                .zip(max_magnitude(r.element_type))
                .is_some_and(|(l, r)| (l * r).saturating_mul(terms) <= i64::from(i32::MAX));
        // Where no sum exceeds 32 bits none saturates.
        let words = if is_small { words } else { words.saturating() };
        let elements: [i64; 2] = [l.dims.iter().product(), r.dims.iter().product()];
        let furthest = axes.iter().map(|axis: &Axis| {
            let placed = result.dims[axis.output_dim].saturating_mul(axis.stride);
            let window = axis.kernel[0].saturating_mul(axis.kernel_dilation);
            placed.saturating_add(window).saturating_add(axis.padding.saturating_abs())
        });
        let prim =
            index_prim(furthest.chain(elements).chain([result.dims.iter().product()]).max().unwrap_or(0));
        Ok(Self {
            words,
            operands: [(left, l.element_type), (right, r.element_type)],
            axes,
            dims: result.dims.to_vec(),
            batch_dim: at(labels.output_batch),
            feature_dim: at(labels.output_feature),
            channels: [
                l.dims[input_feature] / feature_groups,
                ls[input_feature],
                rs[at(labels.kernel_input_feature)],
            ],
            batch_stride: ls[at(labels.input_batch)],
            feature_stride: rs[at(labels.kernel_output_feature)],
            feature_groups: [(features / feature_groups).max(1), feature_groups],
            batch_groups: [
                (features / batch_groups).max(1),
                l.dims[at(labels.input_batch)] / batch_groups,
                batch_groups,
            ],
            elements,
            prim,
        })
    }

    /// A number of its integer type.
    fn int<'ctx>(&self, e: &Emit<'_, 'ctx>, x: i64) -> Value<'ctx> {
        e.int(self.prim, x.cast_unsigned())
    }

    /// Positions of the window.
    fn window(&self) -> i64 {
        self.axes.iter().map(|axis| axis.kernel[0]).product()
    }

    /// Offsets, in elements, in input and kernel that an element of the result at index `at` reads.
    fn first<'ctx>(&self, e: &Emit<'_, 'ctx>, at: &[Value<'ctx>]) -> Result<[Value<'ctx>; 2]> {
        let times = |x, factor: i64| e.mul(x, self.int(e, factor));
        let (batch, feature) = (at[self.batch_dim], at[self.feature_dim]);
        let mut input = times(batch, self.batch_stride)?;
        let [of_group, groups] = self.feature_groups;
        if groups > 1 {
            let group = e.udiv(feature, self.int(e, of_group))?;
            input = e.add(input, times(group, self.channels[0] * self.channels[1])?)?;
        }
        let [of_group, batches, groups] = self.batch_groups;
        if groups > 1 {
            let group = e.udiv(feature, self.int(e, of_group))?;
            input = e.add(input, times(group, batches * self.batch_stride)?)?;
        }
        Ok([input, times(feature, self.feature_stride)?])
    }

    /// Whether position `window` of the window is within the input for an element of the result, and the
    /// offsets in input and kernel. All numbers are of the convolution's integer type.
    fn tap<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        at: &[Value<'ctx>],
        window: Value<'ctx>,
    ) -> Result<(Value<'ctx>, [Value<'ctx>; 2])> {
        let sizes: Vec<i64> = self.axes.iter().map(|axis| axis.kernel[0]).collect();
        let mut holds = e.bool(true);
        let (mut input, mut kernel) = (self.int(e, 0), self.int(e, 0));
        for (axis, component) in self.axes.iter().zip(components(e, window, &sizes)?) {
            let times = |x, factor: i64| if factor == 1 { Ok(x) } else { e.mul(x, self.int(e, factor)) };
            let placed = times(at[axis.output_dim], axis.stride)?;
            let far = e.add(placed, times(component, axis.kernel_dilation)?)?;
            let mut position = e.sub(far, self.int(e, axis.padding))?;
            if axis.input_dilation > 1 {
                let dilation = self.int(e, axis.input_dilation);
                let there = e.icmp(IntPredicate::EQ, e.srem(position, dilation)?, self.int(e, 0))?;
                let not_before = e.icmp(IntPredicate::SGE, position, self.int(e, 0))?;
                holds = e.and(holds, e.and(there, not_before)?)?;
                position = e.sdiv(position, dilation)?;
            }
            holds = e.and(holds, e.icmp(IntPredicate::ULT, position, self.int(e, axis.input[0]))?)?;
            input = e.add(input, times(position, axis.input[1])?)?;
            let component = match axis.is_reversed {
                true => e.sub(self.int(e, axis.kernel[0] - 1), component)?,
                false => component,
            };
            kernel = e.add(kernel, times(component, axis.kernel[1])?)?;
        }
        Ok((holds, [input, kernel]))
    }
}

impl Convolution {
    /// The sum of an element of the result at index `at`, all `i64`.
    fn sum<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: &[Value<'ctx>],
        at: &[Value<'ctx>],
    ) -> Result<Val<'ctx>> {
        let words = &self.words;
        let first = self.first(e, at)?;
        let [channels, input_step, kernel_step] = self.channels;
        if channels == 1 && self.window() <= MAX_UNROLLED {
            return self.unrolled(e, arguments, at, first);
        }
        let zero = words.zero(e).registers();
        let (from, to) = (self.int(e, 0), self.int(e, self.window()));
        let sum = e.for_carried(from, to, self.int(e, 1), &zero, |window, carried| {
            let (holds, offsets) = self.tap(e, at, window)?;
            let [input, weight] = [e.add(first[0], offsets[0])?, e.add(first[1], offsets[1])?];
            let count = e.select(holds, self.int(e, channels), self.int(e, 0))?;
            let sum = simple::sum(e, words, count, &words.of_registers(carried), |channel| {
                let element = |(argument, ty): (u32, ElementType), first, step: i64| {
                    let offset = e.add(first, e.mul(channel, self.int(e, step))?)?;
                    code::element(e, ty, arguments[argument as usize], offset)
                };
                let [lhs, rhs] = self.operands;
                Ok([element(lhs, input, input_step)?, element(rhs, weight, kernel_step)?])
            })?;
            Ok(sum.registers())
        })?;
        Ok(words.of_registers(&sum))
    }
}

impl Convolution {
    /// The sum of an element of the result with one channel per group, position by position.
    fn unrolled<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: &[Value<'ctx>],
        at: &[Value<'ctx>],
        first: [Value<'ctx>; 2],
    ) -> Result<Val<'ctx>> {
        let words = &self.words;
        let mut sum = words.zero(e);
        for window in 0..self.window() {
            let (holds, offsets) = self.tap(e, at, self.int(e, window))?;
            let input = e.select(holds, e.add(first[0], offsets[0])?, self.int(e, 0))?;
            let weight = e.add(first[1], offsets[1])?;
            let element = |(argument, ty): (u32, ElementType), offset| {
                let x = code::element(e, ty, arguments[argument as usize], offset)?;
                words.of(e, x)
            };
            let [lhs, rhs] = self.operands;
            let (x, y) = (element(lhs, input)?, element(rhs, weight)?);
            let next = words.multiply_add(e, &sum, &x, &y)?;
            sum = scalar::select(e, holds, &next, &sum)?;
        }
        Ok(words.of_registers(&sum.registers()))
    }
}

/// Emits a `convolution`, `hero`, in the kernel of `id`: itself, or a fusion.
pub(super) fn emit(
    unit: &Unit<'_, '_>,
    module: &Module,
    id: InstrId,
    hero: InstrId,
    symbol: &str,
) -> Result<Kernel> {
    let subject = Subject::new(module, id)?;
    let convolution = Convolution::of(module, id, hero)?;
    let threads: i64 = convolution.dims.iter().product();
    let results: u64 = subject.roots.iter().map(|root| bytes_of(root.shape)).sum();
    let of_operand =
        |i: usize| convolution.elements[i] as u64 * convolution.operands[i].1.storage_bytes() as u64;
    let terms = convolution.window().saturating_mul(convolution.channels[0]) as u64;
    let mut kernel = Kernel {
        bytes: of_operand(0) + of_operand(1) + results,
        flops: 2 * (threads as u64).saturating_mul(terms),
        ..Kernel::default()
    };
    if threads == 0 {
        return Ok(kernel);
    }
    if let Some(product) = Patched::new(&convolution) {
        product.emit(unit, module, id, hero, &subject, symbol, &mut kernel)?;
        return Ok(kernel);
    }
    let epilogue = Epilogue::new(&subject, hero, [1, 1, threads], 1, &|space, [_, _, number]| {
        space.delinear(number, &convolution.dims)
    })?;
    let (e, arguments) =
        unit.begin_apart(symbol, subject.reads(), subject.arrays - subject.reads(), simple::THREADS)?;
    simple::each_thread(&e, threads, index_prim(threads), |thread| {
        let at = components(&e, thread, &convolution.dims)?;
        let at = at.into_iter().map(|x| e.resize(x, convolution.prim, false)).collect::<Result<Vec<_>>>()?;
        let sum = convolution.sum(&e, &arguments, &at)?;
        let none = e.i32(0);
        epilogue.store(e, &arguments, [none, none, thread], &[convolution.words.finish(&e, sum)?])
    })?;
    let arguments = (0..subject.arrays).map(Argument::Array).collect();
    let blocks = simple::blocks(threads);
    kernel.stages.push(Stage::Launch(launch(module, id, symbol, blocks, simple::THREADS, arguments)?));
    Ok(kernel)
}
