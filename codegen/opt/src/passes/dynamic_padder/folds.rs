//! Reductions and windows of padded arrays: padding is not folded.

use hlo::attrs::{AttrKey, AttrValue, WindowDim};
use hlo::builder::ComputationBuilder;
use hlo::{ComputationId, ElementType, InstrId, Opcode, Shape};
use smallvec::SmallVec;

use super::masks::{behind, shared, valid};
use super::rules::{again, arrays, dim_indices, positive, views};
use super::{Sizes, View, number};
use crate::passes::edit::Edit;
use crate::passes::facts;

/// The binary operation that a scalar computation is, and its type.
fn folded_by(e: &Edit<'_>, region: ComputationId) -> Option<(Opcode, ElementType)> {
    let root = e.instr(e.module.root(region));
    let parameter = |id: InstrId| e.instr(id).parameter_number();
    let &[a, b] = root.operands() else { return None };
    let both = matches!((parameter(a), parameter(b)), (Some(0), Some(1)) | (Some(1), Some(0)));
    let ty = root.shape.as_array()?.element_type;
    both.then_some((root.opcode, ty))
}

/// The accumulator type of a sum.
fn added(e: &Edit<'_>, region: ComputationId) -> Option<ElementType> {
    folded_by(e, region).filter(|(opcode, _)| *opcode == Opcode::Add).map(|(_, ty)| ty)
}

/// The bits of the neutral element of an addition: -0 + x is x for every x; 0 + -0 is 0.
fn neutral(ty: ElementType) -> Option<u128> {
    if ty.is_integer() {
        Some(0)
    } else if ty.is_float() && facts::is_ieee(ty) {
        facts::float_bits(ty, -0.0)
    } else {
        None
    }
}

/// The bits of the neutral element of a maximum or minimum.
fn extreme(opcode: Opcode, ty: ElementType) -> Option<u128> {
    let infinity = match opcode {
        Opcode::Maximum => f64::NEG_INFINITY,
        Opcode::Minimum => f64::INFINITY,
        _others => return None,
    };
    (ty.is_float() && facts::is_ieee(ty)).then(|| facts::float_bits(ty, infinity))?
}

/// A reduction of arrays with run-time sizes. Padding is replaced by neutral elements, or carries a flag that
/// says so.
struct Folds {
    arrays: Vec<InstrId>,
    inits: Vec<InstrId>,
    region: ComputationId,
    /// With the sizes of the reduced dimensions.
    folded: View,
    /// The sizes of the others.
    kept: Sizes,
}

impl Folds {
    fn of(e: &mut Edit<'_>) -> Option<Folds> {
        let dims = dim_indices(e.at().attrs.ints_or_empty(AttrKey::Dimensions))?;
        let region = e.at().attrs.computation(AttrKey::ToApply)?;
        let mut views = views(e)?;
        let inits = arrays(&views.split_off(views.len() / 2));
        let rank = views.first()?.sizes.len();
        let mut sizes = Sizes::new();
        for d in 0..rank {
            let all: Vec<Option<InstrId>> = views.iter().map(|v| v.sizes[d]).collect();
            sizes.push(shared(e, &all, false)?);
        }
        let kept: Sizes = (0..rank).filter(|d| !dims.contains(d)).map(|d| sizes[d]).collect();
        let mut folded = View { array: views.first()?.array, sizes: SmallVec::from_elem(None, rank) };
        for &d in &dims {
            folded.sizes[d] = *sizes.get(d)?;
        }
        Some(Folds { arrays: arrays(&views), inits, region, folded, kept })
    }

    /// A sum of floats without -0, or otherwise unlike others: accumulated in `f32`, as sums of them are.
    fn wide_sum(&self, e: &mut Edit<'_>) -> Option<InstrId> {
        let wide = ElementType::F32;
        let ty = e.at().shape.as_array()?.element_type;
        let mut b = ComputationBuilder::new(e.module, "sum");
        let [u, v] = ["u", "v"].map(|name| b.parameter(name, Shape::scalar(wide)));
        b.binary(Opcode::Add, u, v).ok()?;
        let sum = b.finish();
        e.before_caller(sum);
        let array = e.convert(self.folded.array, wide)?;
        let fill = e.scalar_bits(wide, facts::float_bits(wide, -0.0)?);
        let masked = behind(e, &View { array, sizes: self.folded.sizes.clone() }, fill)?;
        let init = e.convert(*self.inits.first()?, wide)?;
        let attrs = e.at().attrs.clone().with(AttrKey::ToApply, AttrValue::Computation(sum));
        let total = e.add(Opcode::Reduce, &[masked, init], attrs)?;
        e.convert(total, ty)
    }

    /// The tuple of the results, and a flag that is dropped.
    fn flagged(&self, e: &mut Edit<'_>) -> Option<InstrId> {
        let flags = valid(e, &self.folded)??;
        let types: Vec<ElementType> =
            self.inits.iter().map(|&i| e.array(i).map(|a| a.element_type)).collect::<Option<_>>()?;
        let n = types.len();
        let root = e.instr(e.module.root(self.region)).shape.clone();
        let made: Vec<&Shape> = root.leaves();
        let same = |i: usize| {
            let x = e.array(self.arrays[i]).map(|a| a.element_type);
            x == Some(types[i]) && made.get(i).and_then(|s| s.element_type()) == Some(types[i])
        };
        if made.len() != n || !(0..n).all(same) {
            return None;
        }
        let mut b = ComputationBuilder::new(e.module, "flagged");
        let flag = || Shape::scalar(ElementType::Pred);
        let side = |b: &mut ComputationBuilder<'_>, name: &str| -> (Vec<InstrId>, InstrId) {
            let values = types.iter().map(|&ty| b.parameter(name, Shape::scalar(ty))).collect();
            (values, b.parameter("flag", flag()))
        };
        let ((u, p), (v, q)) = (side(&mut b, "u"), side(&mut b, "v"));
        let both = b.call(self.region, &[&u[..], &v].concat()).ok()?;
        let mut results = Vec::new();
        for i in 0..n {
            let both = if root.as_tuple().is_some() { b.get(both, i as i64).ok()? } else { both };
            let second = b.select(p, both, v[i]).ok()?;
            results.push(b.select(q, second, u[i]).ok()?);
        }
        results.push(b.binary(Opcode::Or, p, q).ok()?);
        b.tuple(&results).ok()?;
        let fold = b.finish();
        e.before_caller(fold);
        let given = e.scalar_bits(ElementType::Pred, 1);
        let (opcode, attrs) = (e.at().opcode, e.at().attrs.clone());
        let attrs = attrs.with(AttrKey::ToApply, AttrValue::Computation(fold));
        let operands = [&self.arrays[..], &[flags], &self.inits, &[given]].concat();
        e.add(opcode, &operands, attrs)
    }
}

/// A reduction of an array.
pub(super) fn reduce(e: &mut Edit<'_>) -> Option<View> {
    let f = Folds::of(e)?;
    let array = if f.folded.is_static() {
        again(e, &[f.folded.array, *f.inits.first()?])?
    } else {
        match added(e, f.region).map(|ty| (ty, neutral(ty))) {
            Some((ty, Some(bits))) => {
                let fill = e.scalar_bits(ty, bits);
                let masked = behind(e, &f.folded, fill)?;
                again(e, &[masked, *f.inits.first()?])?
            }
            Some((ty, None)) if ty.is_float() => f.wide_sum(e)?,
            _ => {
                let results = f.flagged(e)?;
                e.get(results, 0)?
            }
        }
    };
    Some(View { array, sizes: f.kept })
}

/// Windows have the same positions as in the padded array; padding is not folded.
pub(super) fn reduce_window(e: &mut Edit<'_>) -> Option<View> {
    let window = e.at().attrs.window()?.clone();
    let region = e.at().attrs.computation(AttrKey::ToApply)?;
    let views = views(e)?;
    let [x, init] = &views[..] else { return None };
    let mut kept = Sizes::new();
    for (w, &size) in window.dims.iter().zip(&x.sizes) {
        kept.push(match size {
            Some(size) => Some(windows(e, w, size)?),
            None => None,
        });
    }
    let bits = match folded_by(e, region) {
        // Whether it is a sum depends on its computation's text.
        Some((Opcode::Add, ty)) => Some(neutral(ty)?),
        Some((opcode, ty)) => extreme(opcode, ty),
        None => None,
    };
    let folds = Folds {
        arrays: vec![x.array],
        inits: vec![init.array],
        region,
        folded: x.clone(),
        kept: kept.clone(),
    };
    let array = match bits {
        Some(bits) => {
            let ty = e.array(x.array)?.element_type;
            let fill = e.scalar_bits(ty, bits);
            let masked = behind(e, x, fill)?;
            again(e, &[masked, init.array])?
        }
        None => {
            let results = folds.flagged(e)?;
            e.get(results, 0)?
        }
    };
    Some(View { array, sizes: kept })
}

/// The number of windows along a dimension of this size.
fn windows(e: &mut Edit<'_>, w: &WindowDim, size: InstrId) -> Option<InstrId> {
    let mut length = size;
    if w.base_dilation > 1 {
        // Base dilation: elements with gaps between them.
        let one = number(e, 1)?;
        let before = e.binary(Opcode::Subtract, size, one)?;
        let before = positive(e, before)?;
        let distance = number(e, w.base_dilation)?;
        let before = e.binary(Opcode::Multiply, before, distance)?;
        let last = e.binary(Opcode::Minimum, size, one)?;
        length = e.binary(Opcode::Add, before, last)?;
    }
    // One for the first window and one for each stride after it.
    let span = w.size.checked_sub(1).filter(|&n| n >= 0)?.checked_mul(w.window_dilation)?.checked_add(1)?;
    let more = w.pad_low.checked_add(w.pad_high)?.checked_sub(span)?.checked_add(w.stride)?;
    let (more, stride) = (number(e, more)?, number(e, w.stride)?);
    let padded = e.binary(Opcode::Add, length, more)?;
    let padded = positive(e, padded)?;
    e.binary(Opcode::Divide, padded, stride)
}

/// A variadic reduction, with results of static shapes.
pub(super) fn reductions(e: &mut Edit<'_>) -> Option<InstrId> {
    let f = Folds::of(e)?;
    if f.kept.iter().any(Option::is_some) {
        return None;
    }
    if f.folded.is_static() {
        return e.again(&[&f.arrays[..], &f.inits].concat());
    }
    let results = f.flagged(e)?;
    let parts: Option<Vec<InstrId>> = (0..f.arrays.len() as i64).map(|i| e.get(results, i)).collect();
    e.tuple(&parts?)
}
