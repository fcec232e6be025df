//! What moves elements: the same instruction moves their numbers, which tells where each element of the
//! result comes from.

use hlo::{AttrKey, ElementType, Opcode};
use hlo_execution::format::Format;
use hlo_interp::{Tensor, Value};

use super::limits::Limits;
use super::number::Numbers;
use super::probe::Probe;
use super::rules::{Case, Found, Kind, Mode, copies, kind};
use super::{Bounds, Radii};

/// The result of a probe of numbered elements: for each element of the result array the (operand array,
/// element) that it is. Numbers begin with 1, so that zeros that come from nowhere are known.
pub(super) fn numbered(args: &[&Tensor], moved: impl Fn(usize) -> bool) -> Vec<Value> {
    let mut next = 1u32;
    let number = |(k, t): (usize, &&Tensor)| {
        if !moved(k) {
            return Value::Array((*t).clone());
        }
        let first = next;
        next = next.saturating_add(t.len() as u32);
        Value::Array(Tensor::from_vec(t.dims(), (first..next).collect::<Vec<u32>>()))
    };
    args.iter().enumerate().map(number).collect()
}

/// The radii behind numbers that [`numbered`] gave.
pub(super) fn behind(numbers: &[u32], radii: &[&Radii], sizes: &[usize]) -> Option<Radii> {
    if let ([radii], false) = (radii, numbers.contains(&0)) {
        return Some(radii.taken(numbers.iter().map(|&i| i as usize - 1)));
    }
    let mut all = vec![0.0];
    for (radii, &n) in radii.iter().zip(sizes) {
        all.extend((0..n).map(|i| radii.at(i)));
    }
    let each = numbers.iter().map(|&i| all.get(i as usize).copied()).collect::<Option<_>>()?;
    if !radii.iter().any(|r| r.has_limits()) {
        return Some(Radii::new(each));
    }
    let mut limits = vec![Limits::NONE];
    for (radii, &n) in radii.iter().zip(sizes) {
        limits.extend((0..n).map(|i| radii.limits(i)));
    }
    Some(Radii::limited(each, numbers.iter().map(|&i| limits[i as usize]).collect()))
}

/// Radii of the result: those of the operands' elements. Operands from number `indices` on say where elements
/// go; if one of them may be another, all may.
pub(super) fn moved(case: &Case<'_>, radii: &[Radii], indices: usize) -> Found {
    let [result] = case.results[..] else { return None };
    if indices == 0 {
        // A size may be another only where nothing is known of the elements.
        let unknown = |i: usize| radii[0].at(i).is_infinite();
        let certain = !case.module.instr(case.args[0].from).shape.expect_array().is_dynamic()
            || !(0..case.args[0].tensor.len()).any(unknown);
        return Some(vec![if certain { Radii::Zero } else { Radii::unknown(result.len()) }]);
    }
    if radii.iter().all(Radii::is_zero) {
        return Some(vec![Radii::Zero]);
    }
    if radii.iter().skip(indices).any(|r| !r.is_zero()) {
        return Some(vec![Radii::unknown(result.len())]);
    }
    let radii = if matches!(case.opcode(), Opcode::Copy | Opcode::Reshape) {
        radii[0].clone()
    } else if !radii.iter().any(Radii::has_limits) {
        directly(case, radii, &|k| k < indices)?
    } else {
        through(case, radii, &|k| k < indices)?
    };
    Some(vec![converted(case, radii)])
}

/// Where an element of a result comes from: the number of an operand array, and the element of it. `None`: it is
/// no operand's.
pub(super) type Source = Option<(usize, usize)>;

/// Of an instruction that moves elements of its operands, by indices that are known: where each element of its
/// result comes from.
pub(super) fn sources(case: &Case<'_>) -> Option<Vec<Source>> {
    let Kind::Movement(indices) = kind(case.opcode()) else { return None };
    if case.args.iter().skip(indices).any(|a| !a.leaf.bounds.hard.is_zero()) {
        return None;
    }
    let moves = |k: usize| k < indices;
    let sizes = case.args.iter().enumerate().filter(|&(k, _)| moves(k)).map(|(k, a)| (k, a.tensor.len()));
    let all: Vec<(usize, usize)> = sizes.flat_map(|(k, n)| (0..n).map(move |i| (k, i))).collect();
    // Numbers are from 1.
    let of = |number: u32| (number as usize).checked_sub(1).and_then(|i| all.get(i).copied());
    Some(numbers(case, &moves)?.into_iter().map(of).collect())
}

/// The same where there are no limits: the instruction moves the radii themselves. What comes from nowhere
/// is 0.
fn directly(case: &Case<'_>, radii: &[Radii], moves: &dyn Fn(usize) -> bool) -> Option<Radii> {
    let as_f64 = |shape: &hlo::Shape| super::probe::retyped(shape, &|_| ElementType::F64);
    let operands = case.instr.operands().iter().enumerate();
    let shapes: Vec<hlo::Shape> = operands
        .map(|(k, &o)| {
            let shape = &case.module.instr(o).shape;
            if moves(k) { as_f64(shape) } else { shape.clone() }
        })
        .collect();
    let regions = super::probe::Regions::Retyped(&|_| ElementType::F64);
    let probe = Probe::new(case.module, case.instr, &shapes, as_f64(&case.instr.shape), &regions)?;
    let args = case.args.iter().enumerate().map(|(k, a)| {
        if !moves(k) {
            return Value::Array(a.tensor.clone());
        }
        let each = match &radii[k] {
            Radii::Each(each) => each.to_vec(),
            radii => (0..a.tensor.len()).map(|i| radii.at(i)).collect(),
        };
        Value::Array(Tensor::from_vec(a.tensor.dims(), each))
    });
    let moved = probe.run(case.settings, args.collect())?;
    Some(Radii::new(moved.as_array()?.slice::<f64>().to_vec()))
}

/// The radii of the result of an instruction that moves elements of some operands.
fn through(case: &Case<'_>, radii: &[Radii], moves: &dyn Fn(usize) -> bool) -> Option<Radii> {
    let ids = numbers(case, moves)?;
    let which: Vec<usize> = (0..case.args.len()).filter(|&k| moves(k)).collect();
    let radii: Vec<&Radii> = which.iter().map(|&k| &radii[k]).collect();
    let sizes: Vec<usize> = which.iter().map(|&k| case.args[k].tensor.len()).collect();
    behind(&ids, &radii, &sizes)
}

/// Where the elements of the result come from, as [`numbered`] counts.
fn numbers(case: &Case<'_>, moves: &dyn Fn(usize) -> bool) -> Option<Vec<u32>> {
    let tensors: Vec<&Tensor> = case.args.iter().map(|a| a.tensor).collect();
    let which: Vec<usize> = (0..tensors.len()).filter(|&k| moves(k)).collect();
    let total: usize = which.iter().map(|&k| tensors[k].len()).sum();
    if u32::try_from(total).is_err() {
        return None;
    }
    let shapes: Vec<hlo::Shape> = case
        .instr
        .operands()
        .iter()
        .enumerate()
        .map(|(k, &o)| {
            let shape = &case.module.instr(o).shape;
            if moves(k) { super::probe::retyped(shape, &|_| ElementType::U32) } else { shape.clone() }
        })
        .collect();
    let result = super::probe::retyped(&case.instr.shape, &|_| ElementType::U32);
    let regions = super::probe::Regions::Retyped(&|_| ElementType::U32);
    let probe = Probe::new(case.module, case.instr, &shapes, result, &regions)?;
    let ids = probe.run(case.settings, numbered(&tensors, moves))?;
    Some(ids.as_array()?.slice::<u32>().to_vec())
}

/// A result of another float type than the operand's is rounded into it.
fn converted(case: &Case<'_>, radii: Radii) -> Radii {
    let to = case.results[0].element_type();
    if case
        .args
        .iter()
        .all(|a| a.tensor.element_type() == to || Format::of(a.tensor.element_type()).is_none())
    {
        return radii;
    }
    let Some(format) = Format::of(to) else { return radii };
    let v = Numbers::of(case.results[0]);
    radii.mapped(v.len(), |i, r, limits| match r {
        0.0 => (0.0, Limits::NONE),
        r if v.is_finite(i) && v.modulus(i) + r < format.max => {
            (r + format.ulp(v.modulus(i) + r), limits.wider(|x| format.ulp(x)))
        }
        _ => (f64::INFINITY, Limits::NONE),
    })
}

/// `bitcast`, `bitcast-convert`: bits of numbers that are off can be any; a bitcast to the same type moves
/// elements, and integers of the width of a float are off by as many as there are floats on the way, if these
/// have one sign.
pub(super) fn bits(case: &Case<'_>, radii: &[Radii]) -> Found {
    let [result] = case.results[..] else { return None };
    let [arg] = &case.args[..] else { return None };
    if radii[0].is_zero() {
        return Some(vec![Radii::Zero]);
    }
    let (from, to) = (arg.tensor.element_type(), result.element_type());
    if case.opcode() == Opcode::Bitcast && from == to && from.bits() >= 8 && arg.tensor.len() == result.len()
    {
        return Some(vec![through(case, radii, &|_| true)?]);
    }
    if copies(case) {
        return Some(vec![radii[0].clone()]);
    }
    if case.opcode() == Opcode::BitcastConvert
        && let (Some(format), true) = (Format::of(from), to.is_integer() && from.bits() == to.bits())
        && !from.is_complex()
    {
        let x = Numbers::of(arg.tensor);
        let steps = |i: usize| match (radii[0].at(i), x.re[i].abs()) {
            (0.0, _) => 0.0,
            // The nearest to zero are the closest together.
            (r, size) if r < size => (r / format.ulp(size - r)).floor(),
            _ => f64::INFINITY,
        };
        return Some(vec![Radii::new((0..result.len()).map(steps).collect())]);
    }
    Some(vec![Radii::unknown(result.len())])
}

/// `scatter` that overwrites.
pub(super) fn overwritten(case: &Case<'_>, radii: &[Radii], mode: Mode) -> Found {
    let [result] = case.results[..] else { return None };
    let [_, indices, _] = radii else { return None };
    if mode == Mode::Hard && !indices.is_zero() {
        return Some(vec![Radii::unknown(result.len())]);
    }
    Some(vec![through(case, radii, &|k| k != 1)?])
}

/// `PadToStatic` and `SliceToDynamic`, which give an array other sizes: elements keep their indices, and new
/// ones are zeros. `None` of other calls, and where a size may be another one.
pub(super) fn resized(case: &Case<'_>) -> Option<Vec<Bounds>> {
    let target = case.instr.attrs.str(AttrKey::CustomCallTarget)?;
    let ([arg, sizes @ ..], [result, ..]) = (&case.args[..], &case.results[..]) else { return None };
    if !matches!(target, "PadToStatic" | "SliceToDynamic")
        || sizes.iter().any(|s| !s.leaf.bounds.is_exact())
        || arg.tensor.rank() != result.rank()
    {
        return None;
    }
    let (from, to) = (arg.tensor.sizes(), result.sizes());
    // From 1; 0 of what is new.
    let number = |mut i: usize| {
        let (mut number, mut stride) = (0, 1);
        for (&from, &to) in from.iter().zip(&to).rev() {
            let at = i % to;
            i /= to;
            if at >= from {
                return 0;
            }
            number += at * stride;
            stride *= from;
        }
        u32::try_from(number + 1).unwrap_or(u32::MAX)
    };
    let numbers: Vec<u32> = (0..result.len()).map(number).collect();
    let moved = |radii: &Radii| behind(&numbers, &[radii], &[arg.tensor.len()]);
    let first = Bounds {
        soft: moved(&arg.leaf.bounds.soft)?,
        hard: moved(&arg.leaf.bounds.hard)?,
        ..Bounds::default()
    };
    let others = case.results.iter().skip(1).map(|_| Bounds::default());
    Some(std::iter::once(first).chain(others).collect())
}
