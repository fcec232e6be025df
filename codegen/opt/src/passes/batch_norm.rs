//! Expands `batch-norm-training`, `-inference` and `-grad` into arithmetic, step by step as the interpreter
//! does it: in f64, each result rounded once. Operands of f64 are computed in wider arithmetic, for which
//! there is no type; they stay.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction, SliceDim};
use hlo::{ComputationId, ElementType, InstrId, Module, Opcode};

use super::PassCx;
use super::edit::{Edit, each_outside_folds, ints, whole};

pub(super) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, |e| match e.at().opcode {
        Opcode::BatchNormTraining => training(e),
        Opcode::BatchNormInference => inference(e),
        Opcode::BatchNormGrad => gradients(e),
        _ => None,
    })
}

/// The first operand's dimensions, and how the others are broadcast over them.
struct Steps {
    dims: Vec<i64>,
    feature: i64,
    add: Option<ComputationId>,
}

impl Steps {
    fn of(e: &Edit<'_>) -> Option<Steps> {
        let narrow = |&o: &InstrId| {
            e.array(o).is_some_and(|a| a.element_type.is_float() && a.element_type != ElementType::F64)
        };
        let dims = e.array(e.operand(0)?)?.dims.to_vec();
        let feature = e.at().attrs.int(AttrKey::FeatureIndex)?;
        let fits = usize::try_from(feature).is_ok_and(|f| f < dims.len());
        (fits && !dims.contains(&0) && e.at().operands().iter().all(narrow)).then_some(Steps {
            dims,
            feature,
            add: None,
        })
    }

    /// A value per feature, broadcast to each element.
    fn spread(&self, e: &mut Edit<'_>, x: InstrId) -> Option<InstrId> {
        e.broadcast(x, &self.dims, &[self.feature])
    }

    /// The sum of the elements of each feature.
    fn sum(&mut self, e: &mut Edit<'_>, x: InstrId) -> Option<InstrId> {
        let add = match self.add {
            Some(add) => add,
            None => e.region(Opcode::Add, ElementType::F64)?,
        };
        self.add = Some(add);
        let zero = number(e, 0.0);
        let dims: Vec<i64> = (0..self.dims.len() as i64).filter(|&d| d != self.feature).collect();
        let attrs = Attrs::new()
            .with(AttrKey::Dimensions, ints(&dims))
            .with(AttrKey::ToApply, AttrValue::Computation(add));
        e.add(Opcode::Reduce, &[x, zero], attrs)
    }

    /// The first element of each feature, or 0 if that is not finite.
    fn first(&self, e: &mut Edit<'_>, x: InstrId) -> Option<InstrId> {
        let feature = usize::try_from(self.feature).ok()?;
        let slices: Vec<SliceDim> =
            (0..self.dims.len()).map(|d| if d == feature { whole(self.dims[d]) } else { whole(1) }).collect();
        let first = e.slice(x, &slices)?;
        let first = e.reshape(first, &[*self.dims.get(feature)?])?;
        let zero = number(e, 0.0);
        let zeros = e.fill(zero, first)?;
        let finite = e.unary(Opcode::IsFinite, first)?;
        e.select(finite, first, zeros)
    }

    /// The number of elements per feature.
    fn count(&self, e: &mut Edit<'_>, like: InstrId) -> Option<InstrId> {
        let feature = usize::try_from(self.feature).ok()?;
        let others = self.dims.iter().enumerate().filter(|(d, _)| *d != feature).map(|(_, &n)| n);
        let n = number(e, others.product::<i64>() as f64);
        e.fill(n, like)
    }

    /// `sqrt(variance + epsilon)`. `epsilon` is an f32.
    fn deviation(&self, e: &mut Edit<'_>, variance: InstrId) -> Option<InstrId> {
        let epsilon = e.at().attrs.float(AttrKey::Epsilon)?;
        let epsilon = number(e, f64::from(epsilon as f32));
        let epsilon = e.fill(epsilon, variance)?;
        let sum = e.binary(Opcode::Add, variance, epsilon)?;
        e.unary(Opcode::Sqrt, sum)
    }

    /// `(x - mean) * (scale / sqrt(variance + epsilon)) + offset`.
    fn normalized(
        &self,
        e: &mut Edit<'_>,
        centered: InstrId,
        variance: InstrId,
        [scale, offset]: [InstrId; 2],
    ) -> Option<InstrId> {
        let deviation = self.deviation(e, variance)?;
        let factor = e.binary(Opcode::Divide, scale, deviation)?;
        let [factor, offset] = [factor, offset].map(|x| self.spread(e, x));
        let scaled = e.binary(Opcode::Multiply, centered, factor?)?;
        e.binary(Opcode::Add, scaled, offset?)
    }
}

fn number(e: &mut Edit<'_>, x: f64) -> InstrId {
    e.scalar_bits(ElementType::F64, u128::from(x.to_bits()))
}

fn wide<const N: usize>(e: &mut Edit<'_>) -> Option<[InstrId; N]> {
    let operands: [InstrId; N] = e.operands()?;
    let mut wide = operands;
    for (w, o) in wide.iter_mut().zip(operands) {
        *w = e.convert(o, ElementType::F64)?;
    }
    Some(wide)
}

/// Rounded into the types of the results.
fn results(e: &mut Edit<'_>, parts: &[InstrId]) -> Option<InstrId> {
    let types: Vec<ElementType> = e.at().shape.leaves().iter().filter_map(|s| s.element_type()).collect();
    if types.len() != parts.len() {
        return None;
    }
    let mut rounded = Vec::with_capacity(parts.len());
    for (&x, ty) in parts.iter().zip(types) {
        rounded.push(e.convert(x, ty)?);
    }
    match rounded[..] {
        [one] if e.at().shape.as_array().is_some() => Some(one),
        _ => e.tuple(&rounded),
    }
}

fn centered(e: &mut Edit<'_>, s: &Steps, x: InstrId, mean: InstrId) -> Option<InstrId> {
    let mean = s.spread(e, mean)?;
    e.binary(Opcode::Subtract, x, mean)
}

fn training(e: &mut Edit<'_>) -> Option<InstrId> {
    let mut s = Steps::of(e)?;
    let [x, scale, offset] = wide(e)?;
    let first = s.first(e, x)?;
    let left = centered(e, &s, x, first)?;
    let sum = s.sum(e, left)?;
    let square = e.binary(Opcode::Multiply, left, left)?;
    let squares = s.sum(e, square)?;
    let n = s.count(e, sum)?;
    let from_first = e.binary(Opcode::Divide, sum, n)?;
    let mean = e.binary(Opcode::Add, first, from_first)?;
    let mean_square = e.binary(Opcode::Divide, squares, n)?;
    let square = e.binary(Opcode::Multiply, from_first, from_first)?;
    let variance = e.binary(Opcode::Subtract, mean_square, square)?;
    let zero = number(e, 0.0);
    let zeros = e.fill(zero, variance)?;
    let negative = e.compare(Direction::Lt, variance, zeros)?;
    let variance = e.select(negative, zeros, variance)?;
    let centered = centered(e, &s, x, mean)?;
    let out = s.normalized(e, centered, variance, [scale, offset])?;
    results(e, &[out, mean, variance])
}

fn inference(e: &mut Edit<'_>) -> Option<InstrId> {
    let s = Steps::of(e)?;
    let [x, scale, offset, mean, variance] = wide(e)?;
    let centered = centered(e, &s, x, mean)?;
    let out = s.normalized(e, centered, variance, [scale, offset])?;
    results(e, &[out])
}

fn gradients(e: &mut Edit<'_>) -> Option<InstrId> {
    let mut s = Steps::of(e)?;
    let [x, scale, mean, variance, gradient] = wide(e)?;
    let deviation = s.deviation(e, variance)?;
    let centered = centered(e, &s, x, mean)?;
    let of_offset = s.sum(e, gradient)?;
    let product = e.binary(Opcode::Multiply, gradient, centered)?;
    let correlation = s.sum(e, product)?;
    let of_scale = e.binary(Opcode::Divide, correlation, deviation)?;
    // centered * (correlation / deviation^2)
    let square = e.binary(Opcode::Multiply, deviation, deviation)?;
    let by_variance = e.binary(Opcode::Divide, correlation, square)?;
    let spread = s.spread(e, by_variance)?;
    let from_variance = e.binary(Opcode::Multiply, centered, spread)?;
    // n * gradient - sum(gradient) - that
    let n = s.count(e, gradient)?;
    let sum = e.binary(Opcode::Multiply, n, gradient)?;
    let spread = s.spread(e, of_offset)?;
    let sum = e.binary(Opcode::Subtract, sum, spread)?;
    let sum = e.binary(Opcode::Subtract, sum, from_variance)?;
    // scale / deviation / n times that
    let n = s.count(e, deviation)?;
    let factor = e.binary(Opcode::Divide, scale, deviation)?;
    let factor = e.binary(Opcode::Divide, factor, n)?;
    let factor = s.spread(e, factor)?;
    let of_operand = e.binary(Opcode::Multiply, factor, sum)?;
    results(e, &[of_operand, of_scale, of_offset])
}
