//! `convolution`: any number of spatial dimensions, feature or batch groups, strides, dilations, padding of
//! either sign, reversal, any element types, dimensions in any order.
//!
//! | strategy | when |
//! |---|---|
//! | implicit GEMM ([`patches`]) | all others: packing makes the patches (im2col) |
//! | direct (`direct`) | floats of at most 32 bits on x86-64: register tiles read the input in place |
//! | pairs of channels (`pairs`) | integers of 8 or 16 bits, if the machine multiplies and adds pairs |
//! | [`depthwise`] | few channels per group; of gradients of kernels, few examples |
//!
//! Patches are the left operand if the result's features are contiguous, the right one if its last spatial
//! dimension is. A convolution with base dilation (the input gradient of a strided one) is decomposed by
//! phase (polyphase decomposition): one undilated convolution for each residue of the output position
//! modulo the dilation, because the same taps meet elements of the input at all positions of a residue.
//!
//! **Numerics** (SEMANTICS.md, "Sums"): as for dots, but integers are summed in 64 bits and saturate. Terms
//! in padding and holes are absent: as packed zeros would make NaN of an infinity in the kernel, kernels that
//! hold one take a slow path ([`Convolution::literally`]).

#![allow(clippy::too_many_arguments, reason = "panels are packed from and to many addresses")]
#![allow(clippy::needless_range_loop, reason = "lanes and rows of several arrays go together")]

mod depthwise;
#[cfg(target_arch = "x86_64")]
mod direct;
mod lane;
mod literally;
#[cfg(target_arch = "x86_64")]
mod pairs;
mod patches;
mod read;
#[cfg(not(target_arch = "x86_64"))]
mod unavailable;

#[cfg(test)]
mod tests;

use hlo::{AttrKey, ElementType, InstrId, Module};
use hlo_library_base::pool::Pool;
use hlo_library_base::{Call, Operation, PREPARED_HEADER_BYTES, PREPARED_OPERAND, Prepared, Unsupported};
use smallvec::SmallVec;

use super::dot::convert::{self, Conversion};
use super::dot::operand::Field;
use super::dot::product::{Extents, Finished, Narrow, Product, Right, Schedule, Target};
use super::dot::source::{self, Choose, Load, Readable, Reader, Source, Strided, Typed};
use super::dot::steps::Steps;
use super::dot::tile::{self, Arithmetic};
use super::dot::view::View;
use super::dot::{check_precision, sizes, strides};
use depthwise::{Depthwise, Gradient as DepthwiseGradient};
use lane::{Lane, Outer};
use literally::{finite_f32, finite_f64};
use patches::{Axis, Digit, Patches, Shape};
#[cfg(not(target_arch = "x86_64"))]
use unavailable::{Direct, Pairs};
#[cfg(target_arch = "x86_64")]
use {direct::Direct, pairs::Pairs};

/// A convolution.
#[derive(Clone, Debug)]
pub(super) struct Convolution {
    field: Field,
    lhs: Side,
    rhs: Side,
    /// Whether some term is absent.
    holes: bool,
    patches_left: bool,
    parts: Vec<Part>,
    /// Words are pairs of channels.
    pairs: Option<Pairs>,
    result_type: ElementType,
    elements: usize,
    /// All rows of the result.
    rows: u64,
    /// Whether the rows of the (only) product are rows of the result in order.
    in_order: bool,
    /// How it is computed if it is the gradient of a kernel of few examples a group.
    gradient: Option<Box<DepthwiseGradient>>,
    work: u64,
}

/// The largest magnitude of what an operand holds, if it is integers of a byte or two, perhaps widened.
fn max_magnitude(view: &View) -> Option<u64> {
    let (memory, ty) = (view.memory, view.ty);
    if !memory.is_integer() || !ty.holds(memory) || memory.bits() > 16 {
        return None;
    }
    memory.integer_limits().map(|(low, high)| low.unsigned_abs().max(high.unsigned_abs()) as u64)
}

/// An operand.
#[derive(Clone, Debug)]
struct Side {
    ty: ElementType,
    conversion: Option<Conversion>,
    elements: usize,
    /// Where the first element is.
    offset: isize,
}

impl Side {
    fn packed_type(&self) -> ElementType {
        self.conversion.map_or(self.ty, |c| c.to)
    }

    fn scratch(&self) -> usize {
        self.conversion.map_or(0, |c| c.to.storage_bytes().saturating_mul(self.elements)).next_multiple_of(64)
    }

    /// Its elements, converted if need be.
    unsafe fn base(&self, argument: *const u8, scratch: *mut u8, call: Call<'_>) -> *const u8 {
        match self.conversion {
            Some(conversion) => {
                // SAFETY: the caller's.
                unsafe { conversion.run(argument, self.elements, scratch, call.pool) };
                scratch.cast_const()
            }
            None => argument,
        }
    }
}

/// A convolution of an input that is not dilated (or of one that cannot be taken apart): one product.
#[derive(Clone, Debug)]
struct Part {
    patches: Shape,
    /// The kernel: groups, features, terms, and where its first element is.
    kernel: [Steps; 3],
    kernel_offset: isize,
    /// Groups, positions, features of the result, and where its first element is.
    result: [Steps; 3],
    result_offset: isize,
    positions: usize,
    features: usize,
    terms: usize,
    /// Terms of a word.
    group: usize,
    schedule: Schedule,
    direct: Option<Direct>,
    /// Of few channels a group.
    depthwise: Option<Box<Depthwise>>,
}

/// The arrays of a convolution.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "only `direct` reads them"))]
struct Arrays {
    lhs: *const u8,
    rhs: *const u8,
    out: *mut u8,
    scratch: *mut u8,
    /// The packed kernel, if that was done ahead of runs; null: it was not.
    ahead: *const f32,
    narrow: Option<Narrow<f32>>,
}

// SAFETY: tasks write disjoint parts of the result and of the scratch memory.
unsafe impl Sync for Arrays {}

impl Arrays {
    /// All of it: so that closures capture what may be shared.
    #[cfg(target_arch = "x86_64")]
    fn get(&self) -> Arrays {
        *self
    }
}

/// Element types of the operands and bytes of an element of the result.
type Types = (ElementType, ElementType, usize);

impl Convolution {
    /// Of a `convolution`.
    pub(super) fn of(module: &Module, id: InstrId) -> Result<Convolution, Unsupported> {
        Self::of_views(module, id, View::operands(module, id)?)
    }

    /// Of a `convolution` whose operands are these views of arrays in memory.
    pub(super) fn of_views(
        module: &Module,
        id: InstrId,
        [left, right]: [View; 2],
    ) -> Result<Convolution, Unsupported> {
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
        let (l, r, o) = (&left.sizes, &right.sizes, sizes(module, id, result)?);
        let (ls, rs, os) = (&left.strides, &right.strides, strides(&o));
        let window = instr.attrs.window().map_or(&[][..], |w| &w.dims);
        let groups = |key| usize::try_from(instr.attrs.int(key).unwrap_or(1)).unwrap_or(1).max(1);
        let at = |d: i64| usize::try_from(d).expect("invariant: the verifier checked dim_labels");
        let mut lanes: SmallVec<[Lane; 3]> = SmallVec::new();
        for (i, w) in window.iter().enumerate() {
            let (li, ri, oi) =
                (at(labels.input_spatial[i]), at(labels.kernel_spatial[i]), at(labels.output_spatial[i]));
            // Far outside of any memory there is nothing but padding; arithmetic on positions must not
            // overflow.
            let limit = |x: i64| isize::try_from(x).ok().filter(|x| x.unsigned_abs() < 1 << 40);
            let (Some(stride), Some(padding), Some(input_dilation), Some(kernel_dilation)) =
                (limit(w.stride), limit(w.pad_low), limit(w.base_dilation), limit(w.window_dilation))
            else {
                return Err(refuse("a window beyond 2^40"));
            };
            let (kernel, kernel_stride) = (r[ri], rs[ri]);
            let reversed = w.reversal && kernel > 0;
            lanes.push(Lane {
                axis: Axis {
                    input: l[li],
                    input_stride: ls[li],
                    kernel,
                    output: o[oi],
                    stride: stride.max(1),
                    padding,
                    input_dilation: input_dilation.max(1),
                    kernel_dilation: kernel_dilation.max(1),
                },
                kernel_stride: if reversed { -kernel_stride } else { kernel_stride },
                kernel_offset: if reversed { (kernel as isize - 1) * kernel_stride } else { 0 },
                result_stride: os[oi],
                result_offset: 0,
            });
        }
        let (feature_groups, batch_groups) =
            (groups(AttrKey::FeatureGroupCount), groups(AttrKey::BatchGroupCount));
        let outer = Outer {
            feature_groups,
            batch_groups,
            batch: l[at(labels.input_batch)] / batch_groups,
            batch_stride: ls[at(labels.input_batch)],
            channels: l[at(labels.input_feature)] / feature_groups,
            channel_stride: ls[at(labels.input_feature)],
            kernel_channel_stride: rs[at(labels.kernel_input_feature)],
            features: r[at(labels.kernel_output_feature)] / (feature_groups * batch_groups),
            kernel_feature_stride: rs[at(labels.kernel_output_feature)],
            result_batch_stride: os[at(labels.output_batch)],
            result_feature_stride: os[at(labels.output_feature)],
        };
        let (lhs_ty, rhs_ty, ty) = (left.ty, right.ty, result.element_type);
        let (mut field, through) = Field::of(lhs_ty, rhs_ty, ty);
        if through.is_integer() {
            // Sums of 64 bits that saturate are sums of 32 bits where none is that large.
            let terms = lanes.iter().map(|lane| lane.axis.kernel).product::<usize>() * outer.channels;
            let sum = max_magnitude(&left)
                .zip(max_magnitude(&right))
                .and_then(|(l, r)| l.checked_mul(r)?.checked_mul(terms as u64))
                .filter(|_| ty == ElementType::S32);
            field = match sum {
                Some(..=0x7fff_ffff) => Field::I32,
                Some(_) | None => Field::I64,
            };
        }
        let side = |view: &View| {
            // Integers are cut to the result's type before they are summed in 64 bits.
            let cut = field == Field::I64 && through.bits() < view.ty.bits();
            let conversion = if cut && view.memory == view.ty {
                Ok(Some(Conversion { from: view.ty, through, to: ElementType::S64 }))
            } else if cut {
                Err(())
            } else {
                field.seen(view.memory, view.ty, through)
            };
            let conversion = conversion.map_err(|()| refuse("an operand that is converted twice"))?;
            Ok(Side { ty: view.memory, conversion, elements: view.elements, offset: view.offset })
        };
        let spatial_last = lanes.last().is_some_and(|lane| lane.result_stride == 1 && lane.axis.output > 1);
        let patches_left = outer.result_feature_stride == 1 && outer.features > 1 || !spatial_last;
        let mut all: Vec<SmallVec<[Lane; 3]>> = vec![SmallVec::new()];
        for lane in &lanes {
            let phases = lane.phases();
            let longer = |some: &SmallVec<[Lane; 3]>| {
                let some = some.clone();
                phases.clone().into_iter().map(move |phase| {
                    let mut longer = some.clone();
                    longer.push(phase);
                    longer
                })
            };
            all = all.iter().flat_map(longer).collect();
            if all.len() > 4096 {
                return Err(refuse("more than 4096 phases of dilation"));
            }
        }
        let (mut lhs, rhs) = (side(&left)?, side(&right)?);
        let sums = field == Field::I32 && patches_left;
        let pairs = sums.then(|| Pairs::new([&lhs, &rhs], &lanes, &outer)).flatten();
        if let Some(pairs) = pairs {
            lhs.conversion = pairs.widened(lhs.ty);
        }
        let unconverted = field == Field::F32 && lhs.conversion.is_none() && rhs.conversion.is_none();
        let types = (left.memory, right.memory, ty.storage_bytes());
        let same = [left.memory, right.memory, lhs_ty, rhs_ty].iter().all(|&other| other == ty);
        let plain = same && left.offset == 0 && right.offset == 0;
        let forward = plain && outer.batch_groups == 1;
        let of_lanes = |lanes: &SmallVec<[Lane; 3]>| {
            let part = match (field, pairs) {
                (Field::I32, Some(pairs)) => pairs.part(lanes, &outer),
                (Field::F32, _) => part::<tile::F32>(lanes, &outer, patches_left, 1),
                (Field::F64, _) => part::<tile::F64>(lanes, &outer, patches_left, 1),
                (Field::I32, None) => part::<tile::I32>(lanes, &outer, patches_left, 1),
                (Field::I64, _) => part::<tile::I64>(lanes, &outer, patches_left, 1),
                (Field::C64, _) => part::<tile::C64>(lanes, &outer, patches_left, 1),
                (Field::C128, _) => part::<tile::C128>(lanes, &outer, patches_left, 1),
            };
            let direct = unconverted.then(|| Direct::new(lanes, &outer, types)).flatten();
            let depthwise = forward.then(|| Depthwise::new(lanes, &outer, ty).map(Box::new)).flatten();
            Part { direct, depthwise, ..part }
        };
        let parts: Vec<Part> = all.iter().map(of_lanes).collect();
        let elements: usize = o.iter().product();
        let last = o.last().copied().unwrap_or(1);
        let in_order = patches_left
            && parts.len() == 1
            && feature_groups * batch_groups == 1
            && outer.result_feature_stride == 1
            && outer.features == last
            && parts[0].result[1].single() == Some(last as isize);
        let work = [elements, outer.channels].into_iter().chain(lanes.iter().map(|lane| lane.axis.kernel));
        let complex = if ty.is_complex() { 8 } else { 2 };
        let gradient = match &all[..] {
            [lanes] if plain && outer.batch_groups > 1 => DepthwiseGradient::new(lanes, &outer, ty),
            _several => None,
        };
        Ok(Convolution {
            field,
            lhs,
            rhs,
            holes: parts.iter().any(|part| part.patches.has_holes()),
            patches_left,
            parts,
            pairs,
            result_type: ty,
            elements,
            rows: elements.checked_div(last).unwrap_or(0) as u64,
            in_order,
            gradient: gradient.map(Box::new),
            work: work.fold(complex, |work: u64, n| work.saturating_mul(n as u64)),
        })
    }
}

/// One product, of words of `group` terms.
fn part<A: Arithmetic>(lanes: &[Lane], outer: &Outer, patches_left: bool, group: usize) -> Part {
    let groups = outer.feature_groups * outer.batch_groups;
    // What a group adds to the offsets of the operands and of the result.
    let group_stride = if outer.batch_groups > 1 {
        outer.batch_stride * outer.batch as isize
    } else {
        outer.channel_stride * outer.channels as isize
    };
    let kernel_group = outer.kernel_feature_stride * outer.features as isize;
    let result_group = outer.result_feature_stride * outer.features as isize;
    // Dimensions of positions: size, digit, stride in the input, stride in the result.
    let mut digits: SmallVec<[(usize, Digit, isize, isize); 4]> = SmallVec::new();
    digits.push((
        outer.batch,
        Digit::Batch(outer.batch_stride),
        outer.batch_stride,
        outer.result_batch_stride,
    ));
    for (i, lane) in lanes.iter().enumerate() {
        let stride = lane.axis.input_stride * lane.axis.stride / lane.axis.input_dilation;
        digits.push((lane.axis.output, Digit::Axis(i), stride, lane.result_stride));
    }
    let area: usize = lanes.iter().map(|lane| lane.axis.output).product();
    let mut batch = [
        SmallVec::<[(usize, isize); 2]>::from_slice(&[(groups, group_stride)]),
        SmallVec::from_slice(&[(groups, kernel_group)]),
        SmallVec::from_slice(&[(groups, result_group)]),
    ];
    if patches_left {
        // Positions in the order in which they are read.
        digits.sort_by_key(|&(n, _, stride, _)| {
            std::cmp::Reverse(if n == 1 { isize::MAX } else { stride.abs() })
        });
    } else if area >= 256 {
        digits.remove(0);
        batch[0].push((outer.batch, outer.batch_stride));
        batch[1].push((outer.batch, 0));
        batch[2].push((outer.batch, outer.result_batch_stride));
    }
    let [patch_batch, kernel_batch, result_batch] = batch.map(Steps::new);
    let taps = lanes.iter().map(|lane| (lane.axis.kernel, lane.kernel_stride));
    let terms = Steps::new(taps.chain([(outer.channels, outer.kernel_channel_stride)]));
    let features = Steps::new([(outer.features, outer.kernel_feature_stride)]);
    let positions = Steps::new(digits.iter().map(|&(n, _, _, stride)| (n, stride)));
    let count = positions.size();
    let k = terms.size();
    let words = k.div_ceil(group);
    let total = patch_batch.size();
    let schedule = if patches_left {
        let extents = Extents { batch: total, m: count, n: outer.features, k: words };
        Schedule::new::<A>(extents, None, None, None)
    } else {
        let extents = Extents { batch: total, m: outer.features, n: count, k: words };
        Schedule::new::<A>(extents, None, None, Some(Right::Own))
    };
    Part {
        patches: Shape {
            axes: lanes.iter().map(|lane| lane.axis).collect(),
            rows: digits.iter().map(|&(n, digit, _, _)| (n, digit)).collect(),
            channels: outer.channels,
            // One channel has no next one.
            channel_stride: if outer.channels == 1 { 1 } else { outer.channel_stride },
            batch: patch_batch,
        },
        kernel: [kernel_batch, features, terms],
        kernel_offset: lanes.iter().map(|lane| lane.kernel_offset).sum(),
        result: [result_batch, positions, Steps::new([(outer.features, outer.result_feature_stride)])],
        result_offset: lanes.iter().map(|lane| lane.result_offset).sum(),
        positions: count,
        features: outer.features,
        terms: k,
        group,
        schedule,
        direct: None,
        depthwise: None,
    }
}

impl Part {
    fn extents(&self, patches_left: bool) -> Extents {
        let (m, n) =
            if patches_left { (self.positions, self.features) } else { (self.features, self.positions) };
        Extents { batch: self.result[0].size(), m, n, k: self.terms.div_ceil(self.group) }
    }
}

/// Packs the patches of an operand of some element type.
type PackPatches<W> = unsafe fn(*const u8, &Shape, [usize; 5], *mut W, usize);

/// Chooses a [`PackPatches`].
struct Packs;

impl<W: Copy + Default + Sync> Choose<W> for Packs {
    type Out = PackPatches<W>;

    fn of<T: Load<W> + Sync + 'static>() -> PackPatches<W> {
        |base, shape, [batch, first, count, word, words], out, width| {
            let patches = Patches::<T> { base: base.cast(), shape };
            // SAFETY: the caller's.
            unsafe { patches.pack(batch, first, count, word, words, out, width) };
        }
    }
}

/// How both operands are packed.
struct Packers<W> {
    patches: PackPatches<W>,
    kernel: Reader<W>,
}

impl<W: Readable> Packers<W> {
    /// As words of one term.
    fn of(convolution: &Convolution) -> Packers<W> {
        const PACKED: &str = "invariant: what cannot be packed is converted";
        Packers {
            patches: W::choose::<Packs>(convolution.lhs.packed_type()).expect(PACKED),
            kernel: source::reader::<W>(convolution.rhs.packed_type()).expect(PACKED),
        }
    }
}

/// Patches of an element type that is known only when the program runs.
struct TypedPatches<'a, W> {
    base: *const u8,
    shape: &'a Shape,
    pack: PackPatches<W>,
}

// SAFETY: it is only read.
unsafe impl<W> Sync for TypedPatches<'_, W> {}

impl<W> Source<W> for TypedPatches<'_, W> {
    unsafe fn pack(
        &self,
        batch: usize,
        first: usize,
        count: usize,
        word: usize,
        words: usize,
        out: *mut W,
        width: usize,
    ) {
        // SAFETY: the caller's.
        unsafe { (self.pack)(self.base, self.shape, [batch, first, count, word, words], out, width) };
    }

    fn in_place(&self, _batch: usize) -> Option<(*const W, isize, isize)> {
        None
    }
}

impl Operation for Convolution {
    fn strategy(&self) -> &'static str {
        let all = |is: &dyn Fn(&Part) -> bool| !self.parts.is_empty() && self.parts.iter().all(is);
        if self.gradient.is_some() {
            "gradient of a depthwise convolution"
        } else if self.pairs.is_some() {
            "implicit GEMM on pairs of channels"
        } else if all(&|part| part.depthwise.is_some()) {
            "depthwise convolution"
        } else if all(&|part| part.direct.is_some()) {
            "direct convolution"
        } else {
            "implicit GEMM"
        }
    }

    fn scratch_bytes(&self) -> u64 {
        let product = |part: &Part| {
            if let Some(direct) = &part.direct {
                return direct.scratch_bytes();
            }
            part.schedule.scratch(part.extents(self.patches_left))
        };
        let depthwise = self.parts.iter().any(|part| part.depthwise.is_some());
        let kernel = if depthwise { 4 * self.rhs.elements } else { 0 };
        let parts = self.parts.iter().map(product).max().unwrap_or(0);
        (self.lhs.scratch() + self.rhs.scratch() + parts.max(kernel)) as u64
    }

    fn prepared_bytes(&self, constant: &[bool]) -> Option<u64> {
        let gains = self.holes || self.direct_prepacked().is_some();
        if constant.get(PREPARED_OPERAND) != Some(&true) || !gains || self.rhs.conversion.is_some() {
            return None;
        }
        Some((PREPARED_HEADER_BYTES + self.direct_prepacked().map_or(0, Direct::ahead_bytes)) as u64)
    }

    unsafe fn prepare(&self, arguments: &[*const u8], to: *mut u8, pool: &Pool) -> Prepared {
        let rhs = arguments[PREPARED_OPERAND];
        // SAFETY: the caller's: there is space for the header and the packed kernel.
        unsafe {
            let finite = match self.field {
                Field::F32 => self.kernel_is_finite(rhs, finite_f32, pool),
                Field::F64 => self.kernel_is_finite(rhs, finite_f64, pool),
                Field::C64 => self.kernel_is_finite(rhs, |x, n| finite_f32(x, 2 * n), pool),
                Field::C128 => self.kernel_is_finite(rhs, |x, n| finite_f64(x, 2 * n), pool),
                Field::I32 | Field::I64 => true,
            };
            *to.cast::<u32>() = u32::from(finite);
            let Some(direct) = self.direct_prepacked() else { return Prepared::Beside };
            let rhs = rhs.wrapping_offset(self.rhs.offset * self.rhs.ty.storage_bytes() as isize);
            direct.prepare(rhs, to.add(PREPARED_HEADER_BYTES).cast(), pool);
            if finite || !self.holes { Prepared::Instead } else { Prepared::Beside }
        }
    }

    fn cost(&self) -> (u64, u64) {
        let bytes = self.lhs.elements * self.lhs.ty.storage_bytes()
            + self.rhs.elements * self.rhs.ty.storage_bytes()
            + self.elements * self.result_type.storage_bytes();
        (bytes as u64, self.work)
    }

    unsafe fn run(&self, call: Call<'_>) {
        let ty = self.result_type;
        // SAFETY: the caller's.
        unsafe {
            if let Some(pairs) = self.pairs {
                return pairs.run(self, call);
            }
            match self.field {
                Field::F32 => self.run_words::<tile::F32>(call, convert::from_f32(ty), finite_f32),
                Field::F64 => self.run_words::<tile::F64>(call, convert::from_f64(ty), finite_f64),
                Field::I32 => self.run_words::<tile::I32>(call, convert::from_i32(ty), |_, _| true),
                Field::I64 => self.run_words::<tile::I64>(call, convert::saturating(ty), |_, _| true),
                Field::C64 => self.run_words::<tile::C64>(call, None, |x, n| finite_f32(x, 2 * n)),
                Field::C128 => self.run_words::<tile::C128>(call, None, |x, n| finite_f64(x, 2 * n)),
            }
        }
    }
}

impl Convolution {
    /// What packs the kernel ahead of runs, if it is the same for all parts.
    fn direct_prepacked(&self) -> Option<&Direct> {
        match &self.parts[..] {
            [part] if self.gradient.is_none() && part.depthwise.is_none() && self.pairs.is_none() => {
                part.direct.as_ref().filter(|direct| direct.ahead_bytes() > 0)
            }
            _none_or_several => None,
        }
    }

    /// In words of one term.
    unsafe fn run_words<A: Arithmetic<Word: Readable>>(
        &self,
        call: Call<'_>,
        narrow: Option<Narrow<A::Sum>>,
        finite: unsafe fn(*const u8, usize) -> bool,
    ) {
        // SAFETY: the caller's.
        unsafe { self.run_in::<A>(call, narrow, finite, Packers::of(self)) };
    }

    /// `finite` says whether this many elements of the word's type are finite.
    unsafe fn run_in<A: Arithmetic>(
        &self,
        call: Call<'_>,
        narrow: Option<Narrow<A::Sum>>,
        finite: unsafe fn(*const u8, usize) -> bool,
        packers: Packers<A::Word>,
    ) {
        // SAFETY: the caller's; the scratch memory is cut as `scratch_bytes` added it up.
        unsafe {
            let rhs_scratch = call.scratch.add(self.lhs.scratch());
            let scratch = rhs_scratch.add(self.rhs.scratch());
            let lhs = self.lhs.base(call.arguments[0], call.scratch, call);
            let rhs = self.rhs.base(call.arguments[1], rhs_scratch, call);
            let is_finite = || match call.prepared.is_null() {
                true => self.kernel_is_finite(rhs, finite, call.pool),
                false => *call.prepared.cast::<u32>() != 0,
            };
            let literally = self.holes && !is_finite();
            let ahead = match self.direct_prepacked() {
                Some(_) if !call.prepared.is_null() => call.prepared.add(PREPARED_HEADER_BYTES).cast::<f32>(),
                Some(_) | None => std::ptr::null(),
            };
            let result = call.arguments[2];
            if let (Some(gradient), false) = (&self.gradient, literally) {
                gradient.run(lhs, rhs, result, call.pool);
                return self.report_all(call);
            }
            let bytes = self.result_type.storage_bytes();
            let kernel_type = self.rhs.packed_type();
            let mut reported = self.in_order && !literally;
            for part in &self.parts {
                if let (Some(depthwise), false) = (&part.depthwise, literally) {
                    let out = result.wrapping_offset(part.result_offset * bytes as isize);
                    if self.result_type == ElementType::F32 {
                        depthwise.run(lhs, rhs.cast(), out, call.pool);
                    } else {
                        read::widen(self.rhs.ty, rhs, self.rhs.elements, scratch.cast());
                        depthwise.run(lhs, scratch.cast_const().cast(), out, call.pool);
                    }
                    reported = false;
                    continue;
                }
                let lhs =
                    lhs.wrapping_offset(self.lhs.offset * self.lhs.packed_type().storage_bytes() as isize);
                let patches = TypedPatches { base: lhs, shape: &part.patches, pack: packers.patches };
                if let (Some(direct), false) = (&part.direct, literally) {
                    let rhs = rhs.wrapping_offset(self.rhs.offset * kernel_type.storage_bytes() as isize);
                    let narrow = convert::from_f32(self.result_type);
                    reported &= direct.reports();
                    self.without_patches(
                        direct,
                        Arrays { lhs, rhs, out: result, scratch, ahead, narrow },
                        call,
                    );
                    continue;
                }
                let offset = (part.kernel_offset + self.rhs.offset) * kernel_type.storage_bytes() as isize;
                let [batch, rows, terms] = &part.kernel;
                let view = Strided { base: rhs.wrapping_offset(offset), batch, rows, terms };
                let kernel = Typed { view, reader: packers.kernel };
                let [batch, positions, features] = &part.result;
                let (rows, columns) =
                    if self.patches_left { (positions, features) } else { (features, positions) };
                let base = result.wrapping_offset(part.result_offset * bytes as isize);
                let target = Target { base, bytes, batch, rows, columns, narrow };
                if literally {
                    self.literally::<A>(part, &patches, &kernel, &target, call);
                    continue;
                }
                let in_order = call.epilogue.filter(|_| self.in_order).map(|epilogue| {
                    move |_batch: usize, first: usize, end: usize| epilogue(first as u64, end as u64)
                });
                let (left, right): (&dyn Source<A::Word>, &dyn Source<A::Word>) =
                    if self.patches_left { (&patches, &kernel) } else { (&kernel, &patches) };
                Product::<A> {
                    extents: part.extents(self.patches_left),
                    schedule: part.schedule,
                    left,
                    right,
                    target,
                    ahead: std::ptr::null(),
                    start: std::ptr::null(),
                    finished: in_order.as_ref().map(|f| f as Finished<'_>),
                    scratch,
                    pool: call.pool,
                }
                .run();
            }
            if !reported {
                self.report_all(call);
            }
        }
    }

    unsafe fn without_patches(&self, direct: &Direct, arrays: Arrays, call: Call<'_>) {
        let features = self.elements.checked_div(self.rows as usize).unwrap_or(1) as u64;
        let in_order = call.epilogue.filter(|_| self.in_order).map(|epilogue| {
            move |at: isize, rows: usize| {
                let first = at as u64 / features;
                epilogue(first, first + rows as u64);
            }
        });
        let finished = in_order.as_ref().map(|f| f as &(dyn Fn(isize, usize) + Sync));
        // SAFETY: the caller's.
        unsafe { direct.run(arrays, call.pool, finished) };
    }

    fn report_all(&self, call: Call<'_>) {
        let Some(epilogue) = call.epilogue else { return };
        let each = self.rows.div_ceil(64).max(16);
        call.pool.run(self.rows.div_ceil(each) as usize, &|chunk| {
            let first = chunk as u64 * each;
            epilogue(first, self.rows.min(first + each));
        });
    }
}
