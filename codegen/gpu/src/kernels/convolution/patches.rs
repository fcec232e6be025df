//! Convolutions as implicit GEMM: rows of the left matrix are positions of the result (patches), terms are
//! positions of the window and channels.
//!
//! Patches are never stored: their elements are computed where they are loaded. Absent elements are zero,
//! which is right unless the kernel has an infinity or NaN: sums that are NaN are computed again, of the
//! terms that exist ([`Repairs`]).

use hlo::{ElementType, InstrId, Module};
use hlo_llvm::scalar::Val;
use hlo_llvm::{Emit, IntPredicate, Prim, Result, Value};
use hlo_opt::expr::index::{Affine, Index, Space};

use super::Convolution;
use crate::kernel::Kernel;
use crate::kernels::Unit;
use crate::kernels::contract::epilogue::Epilogue;
use crate::kernels::contract::mma;
use crate::kernels::contract::operand::{Operand, Steps, components, index_prim};
use crate::kernels::contract::source::{Along, Matrix, Source, width};
use crate::kernels::contract::tile::{self, Repairs, Tiled};
use crate::subject::Subject;

/// Fewer features or positions of a group are not worth tiling.
const MIN_SIDE: i64 = 4;

/// Fewer multiply-adds are not worth tiling.
const MIN_WORK: i64 = 1 << 12;

/// The bound of positions, counts and offsets in tiled kernels.
const MAX_COUNT: i64 = 1 << 30;

/// A dimension of terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Term {
    /// Positions of the window along an axis.
    Window(usize),
    Channel,
}

/// A dimension of positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Position {
    Batch,
    /// Placements of the window along an axis.
    Axis(usize),
}

/// A convolution as a product.
#[derive(Debug)]
pub(super) struct Patched<'a> {
    convolution: &'a Convolution,
    groups: i64,
    /// Of a group.
    features: i64,
    /// Dimensions of positions, the outermost first: those of the batch and of space, in the order in which
    /// they are stored in the input.
    positions: Vec<(Position, i64)>,
    /// Dimensions of terms, the outermost first.
    terms: Vec<(Term, i64)>,
    /// By axis: whether positions of the window may be outside of the input.
    has_holes: Vec<bool>,
    kernel: Operand,
    /// Whether features are the rows of the product; they are its columns otherwise.
    is_swapped: bool,
}

impl<'a> Patched<'a> {
    /// `None` if another kernel is better.
    pub(super) fn new(convolution: &'a Convolution) -> Option<Self> {
        let c = convolution;
        let [of_group, feature_groups] = c.feature_groups;
        let [_, batches, batch_groups] = c.batch_groups;
        if feature_groups > 1 && batch_groups > 1 || !tile::has_tiles(c.words.field) {
            return None;
        }
        let groups = feature_groups.max(batch_groups);
        let features = if feature_groups > 1 { of_group } else { c.batch_groups[0] };
        let mut positions = vec![(Position::Batch, batches, c.batch_stride)];
        for (i, axis) in c.axes.iter().enumerate() {
            positions.push((Position::Axis(i), c.dims[axis.output_dim], axis.input[1] * axis.stride));
        }
        positions.sort_by_key(|p| std::cmp::Reverse(p.2));
        let positions: Vec<(Position, i64)> = positions.into_iter().map(|(p, size, _)| (p, size)).collect();
        let mut has_holes = Vec::new();
        for axis in &c.axes {
            let last =
                (c.dims[axis.output_dim] - 1) * axis.stride + (axis.kernel[0] - 1) * axis.kernel_dilation;
            let small = [last, axis.padding, axis.kernel_dilation].iter().all(|x| x.abs() < MAX_COUNT);
            if !small || axis.input_dilation >= MAX_COUNT {
                return None;
            }
            let is_outside = axis.padding > 0 || last - axis.padding >= axis.input[0];
            has_holes.push(is_outside || axis.input_dilation > 1);
        }
        // Terms may come in any order: that of the kernel in memory.
        let mut terms: Vec<(Term, i64, i64)> = Vec::new();
        for (i, axis) in c.axes.iter().enumerate() {
            terms.push((Term::Window(i), axis.kernel[0], axis.kernel[1]));
        }
        terms.push((Term::Channel, c.channels[0], c.channels[2]));
        terms.retain(|t| t.1 != 1);
        terms.sort_by_key(|t| std::cmp::Reverse(t.2));
        let (m, k): (i64, i64) =
            (positions.iter().map(|p| p.1).product(), terms.iter().map(|t| t.1).product());
        let counts = [m, k, features, groups.saturating_mul(m).saturating_mul(features)];
        let work = counts[3].saturating_mul(k);
        let is_small = m < MIN_SIDE || features < MIN_SIDE || work < MIN_WORK || k == 0;
        if is_small || counts.iter().any(|&x| x >= MAX_COUNT) {
            return None;
        }
        let kernel = Operand {
            argument: c.operands[1].0,
            ty: c.operands[1].1,
            elements: c.elements[1],
            batch: Steps::new([(groups, features * c.feature_stride)]),
            rows: Steps::new([(features, c.feature_stride)]),
            terms: Steps::new(terms.iter().map(|&(_, size, stride)| (size, stride))),
        };
        let terms = terms.into_iter().map(|(term, size, _)| (term, size)).collect();
        let is_swapped = c.feature_dim + 1 != c.dims.len();
        Some(Self { convolution, groups, features, positions, terms, has_holes, kernel, is_swapped })
    }

    /// Sizes of the dimensions of positions.
    fn sizes(&self) -> Vec<i64> {
        self.positions.iter().map(|p| p.1).collect()
    }

    /// The dimension of the result that one of positions is.
    fn result_dim(&self, position: Position) -> usize {
        match position {
            Position::Batch => self.convolution.batch_dim,
            Position::Axis(i) => self.convolution.axes[i].output_dim,
        }
    }

    fn magnitudes(&self) -> [i64; 3] {
        let m = self.positions.iter().map(|p| p.1).product();
        if self.is_swapped { [self.groups, self.features, m] } else { [self.groups, m, self.features] }
    }

    /// The index of the result of a group, a row and a column.
    fn index(&self, space: &mut Space, [group, row, column]: [&Affine; 3]) -> Index {
        let c = self.convolution;
        let (position, feature) = if self.is_swapped { (column, row) } else { (row, column) };
        let feature = space.add(&group.times(self.features), feature);
        let at = space.delinear(position, &self.sizes());
        let mut index: Index = c.dims.iter().map(|_| Affine::default()).collect();
        index[c.feature_dim] = feature;
        for (&(position, _), component) in self.positions.iter().zip(&at) {
            index[self.result_dim(position)] = component.clone();
        }
        index
    }

    /// Emits it.
    #[expect(clippy::too_many_arguments, reason = "what a kernel is made of")]
    pub(super) fn emit(
        &self,
        unit: &Unit<'_, '_>,
        module: &Module,
        id: InstrId,
        hero: InstrId,
        subject: &Subject<'_>,
        symbol: &str,
        kernel: &mut Kernel,
    ) -> Result<()> {
        let (patches, weights) = (Patches::new(self), Matrix::new(&self.kernel));
        let sources: [&dyn Source; 2] =
            if self.is_swapped { [&weights, &patches] } else { [&patches, &weights] };
        let terms = self.terms.iter().map(|t| t.1).product();
        let words = self.convolution.words;
        let tiled = Tiled { words, sources, magnitudes: self.magnitudes(), terms, reads: subject.reads() };
        let epilogue = |width| {
            Epilogue::new(subject, hero, self.magnitudes(), width, &|space, at| self.index(space, at))
        };
        let is_float = words.word().is_float();
        let repair: Option<tile::Repair<'_>> = (is_float && self.has_holes.contains(&true)).then_some(self);
        let arrays = subject.arrays;
        if let Some((plan, _)) = mma::plan(unit.arch, unit.products, &tiled) {
            return mma::emit(unit, module, id, symbol, arrays, &tiled, plan, &epilogue, repair, kernel);
        }
        let (plan, _) = tile::plan(unit.arch, unit.products, &words, self.magnitudes(), terms);
        tile::emit(unit, module, id, symbol, arrays, &tiled, plan, &epilogue, repair, kernel)
    }
}

impl Repairs for Patched<'_> {
    fn sum<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: &[Value<'ctx>],
        [group, row, column]: [Value<'ctx>; 3],
    ) -> Result<Val<'ctx>> {
        let c = self.convolution;
        let (position, feature) = if self.is_swapped { (column, row) } else { (row, column) };
        let feature = e.add(e.mul(group, e.i32(self.features as i32))?, feature)?;
        let mut at = vec![c.int(e, 0); c.dims.len()];
        at[c.feature_dim] = e.resize(feature, c.prim, false)?;
        let components = components(e, position, &self.sizes())?;
        for (&(position, _), component) in self.positions.iter().zip(components) {
            at[self.result_dim(position)] = e.resize(component, c.prim, false)?;
        }
        c.sum(e, arguments, &at)
    }
}

/// The patches as a matrix.
struct Patches<'a> {
    of: &'a Patched<'a>,
    along: Along,
    prim: Prim,
}

impl<'a> Patches<'a> {
    fn new(of: &'a Patched<'a>) -> Self {
        let c = of.convolution;
        let [channels, channel_stride, _] = c.channels;
        let bytes = c.operands[0].1.storage_bytes() as i64;
        let strides = || c.axes.iter().map(|axis| axis.input[1]);
        let by_channel = channel_stride == 1 && of.terms.last().is_some_and(|t| t.0 == Term::Channel);
        let along = match of.positions.last() {
            _ if by_channel => Along::Terms(width(bytes, strides().chain([c.batch_stride, channels]))),
            Some(&(Position::Batch, batches)) if c.batch_stride == 1 => {
                Along::Rows(width(bytes, strides().chain([channel_stride, batches])))
            }
            Some(_) | None => Along::Rows(1),
        };
        Self { of, along, prim: index_prim(c.elements[0]) }
    }
}

impl Source for Patches<'_> {
    fn argument(&self) -> u32 {
        self.of.convolution.operands[0].0
    }

    fn ty(&self) -> ElementType {
        self.of.convolution.operands[0].1
    }

    fn along(&self) -> Along {
        self.along
    }

    fn term_stride(&self) -> Option<i64> {
        let c = self.of.convolution;
        match self.of.terms[..] {
            _ if self.of.has_holes.contains(&true) => None,
            [] => Some(0),
            [(Term::Channel, _)] => Some(c.channels[1]),
            [(Term::Window(axis), _)] => {
                let axis = &c.axes[axis];
                let stride = axis.input[1] * axis.kernel_dilation;
                (!axis.is_reversed).then_some(stride)
            }
            [_, _, ..] => None,
        }
    }

    /// The offset of the batch, and by axis the position at which the window begins.
    fn row<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        batch: Value<'ctx>,
        row: Value<'ctx>,
    ) -> Result<Vec<Value<'ctx>>> {
        let c = self.of.convolution;
        let components = components(e, row, &self.of.sizes())?;
        let wide = |x| e.resize(x, self.prim, false);
        let times = |x, factor: i64| e.mul(x, e.int(self.prim, factor.cast_unsigned()));
        let of_group = match c.feature_groups[1] {
            1 => c.batch_groups[1] * c.batch_stride,
            _ => c.channels[0] * c.channels[1],
        };
        let mut offset = e.int(self.prim, 0);
        let mut placed = vec![e.i32(0); c.axes.len()];
        for (&(position, _), component) in self.of.positions.iter().zip(components) {
            match position {
                Position::Batch => offset = times(wide(component)?, c.batch_stride)?,
                Position::Axis(i) => {
                    let at = e.mul(component, e.i32(c.axes[i].stride as i32))?;
                    placed[i] = e.sub(at, e.i32(c.axes[i].padding as i32))?;
                }
            }
        }
        if self.of.groups > 1 {
            offset = e.add(offset, times(wide(batch)?, of_group)?)?;
        }
        Ok([vec![offset], placed].concat())
    }

    fn at<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        row: &[Value<'ctx>],
        term: Value<'ctx>,
    ) -> Result<(Value<'ctx>, Option<Value<'ctx>>)> {
        let c = self.of.convolution;
        let sizes: Vec<i64> = self.of.terms.iter().map(|t| t.1).collect();
        let mut window = vec![None; c.axes.len()];
        let mut offset = row[0];
        let times = |x, factor: i64| -> Result<Value<'ctx>> {
            let x = e.resize(x, self.prim, true)?;
            if factor == 1 { Ok(x) } else { e.mul(x, e.int(self.prim, factor.cast_unsigned())) }
        };
        for (&(term, _), component) in self.of.terms.iter().zip(components(e, term, &sizes)?) {
            match term {
                Term::Channel => offset = e.add(offset, times(component, c.channels[1])?)?,
                Term::Window(axis) => window[axis] = Some(component),
            }
        }
        let mut holds: Option<Value<'ctx>> = None;
        for (i, axis) in c.axes.iter().enumerate() {
            let mut position = row[1 + i];
            if let Some(component) = window[i] {
                let component = match axis.is_reversed {
                    true => e.sub(e.i32((axis.kernel[0] - 1) as i32), component)?,
                    false => component,
                };
                let far = e.mul(component, e.i32(axis.kernel_dilation as i32))?;
                position = e.add(position, far)?;
            }
            if axis.input_dilation > 1 {
                // Numbers before the first element are, without a sign, beyond the last.
                let dilation = e.i32(axis.input_dilation as i32);
                let there = e.icmp(IntPredicate::EQ, e.urem(position, dilation)?, e.i32(0))?;
                holds = Some(holds.map_or(Ok(there), |holds| e.and(holds, there))?);
                position = e.udiv(position, dilation)?;
            }
            if self.of.has_holes[i] {
                let inside = e.icmp(IntPredicate::ULT, position, e.i32(axis.input[0] as i32))?;
                holds = Some(holds.map_or(Ok(inside), |holds| e.and(holds, inside))?);
            }
            offset = e.add(offset, times(position, axis.input[1])?)?;
        }
        Ok((offset, holds))
    }
}
