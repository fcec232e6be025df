//! Folds in any order: what the liberty to reorder regions comes to.
//!
//! An engine that has it may combine the elements of a result in any order and with any brackets, each once,
//! and the initial value once. What a region computes is recognized ([`Region`]) component by component, and
//! each component has bounds that hold in any order:
//!
//! - what is associative and commutative to the bit (integers, logic, choices by a total order) is exact
//!   where its operands are;
//! - sums, products, extremes and log-sum-exp, of elements or of a function of them, have their own rules,
//!   whose bounds hold in any order;
//! - choices reach what may be chosen ([`selected`]);
//! - what merges partial results is associative in exact arithmetic ([`merged`]).
//!
//! A difference is a sum where the accumulator is on the left in each step, and has any signs otherwise.
//!
//! Of a component that is not recognized nothing is known, unless each result has one element, or NaN is all
//! that there can be ([`absorbed`]).
//!
//! Some instructions leave no order to choose:
//! - scatters whose updates, in this run, all go to different elements of the operand; of other scatters the
//!   elements with one update or none ([`scattered`]);
//! - scans, which are ordered by definition. In one that says that its computation is associative brackets
//!   are free, and elements still stand in their order.

use std::sync::Arc;

use hlo::{AttrKey, ComputationId, ElementType, Module, Opcode, Shape};
use hlo_execution::allowances::Allowances;
use hlo_execution::format::{Format, power_of_two, rounded};
use hlo_execution::run::RunOptions;
use hlo_execution::special::Special;
use hlo_interp::device::host::NoHost;
use hlo_interp::{Accumulate, Devices, Tensor, Value};
use hlo_perturbation::gamma;
use hlo_recognize::merges::Merge;
use hlo_recognize::region::{Component, Region};

use super::lexicographic;
use super::number::{Numbers, tensor};
use super::probe::{Probe, Regions, retyped};
use super::rules::{self, Arg, Case, Kind, Mode, kind};
use super::special::Specials;
use super::terms::Terms;
use super::{
    Bounds, Leaf, Radii, Settings, Tree, Watching, absorbed, evaluate, folds, merged, scattered, selected,
    sums,
};

/// What the order of a fold comes to.
pub(super) enum Order {
    /// There is none to choose.
    Fixed,
    /// The rules for instructions of its kind hold in any order.
    Covered,
    /// The bounds of the results in any order.
    Any(Vec<Bounds>),
    /// Nothing is known of the results.
    Unknown,
}

/// What the order of the elements comes to that an instruction combines.
pub(super) fn order(case: &Case<'_>) -> Order {
    match recognized(case) {
        Order::Unknown => {
            folds::of_one(case).or_else(|| absorbed::bounds(case)).map_or(Order::Unknown, Order::Any)
        }
        found => found,
    }
}

fn recognized(case: &Case<'_>) -> Order {
    if kind(case.opcode()) != Kind::Region || case.opcode() == Opcode::Map {
        return Order::Covered;
    }
    if case.opcode() == Opcode::Scan && !case.instr.attrs.bool(AttrKey::IsAssociative) {
        return Order::Fixed;
    }
    let indices_are_exact = !sums::has_inexact_indices(case, &case.radii(Mode::Hard));
    let mut terms = if case.opcode() == Opcode::Scatter { Terms::of(case) } else { None };
    if indices_are_exact
        && case.settings.allowances.reorder_regions
        && let Some(terms) = terms.as_ref().filter(|terms| terms.are_single())
    {
        if rules::overwrites(case) || plain(case).is_some() {
            return Order::Fixed;
        }
        return scattered::bounds(case, terms, &[]).map_or(Order::Fixed, Order::Any);
    }
    if let Some(order) = plain(case) {
        return order;
    }
    if case.opcode() == Opcode::Scan {
        return Order::Unknown;
    }
    if let Some(found) = folds::of_one(case) {
        return Order::Any(found);
    }
    let key = if case.opcode() == Opcode::SelectAndScatter { AttrKey::Scatter } else { AttrKey::ToApply };
    let accumulators_first = case.opcode() != Opcode::SelectAndScatter;
    let region = case
        .instr
        .attrs
        .computation(key)
        .and_then(|c| region(case.module, c, accumulators_first, case.settings))
        .filter(|region| region.components.len() == case.results.len());
    let bounds = match region {
        Some(region) => components(case, &region, indices_are_exact, &mut terms),
        None => vec![None; case.results.len()],
    };
    if indices_are_exact
        && let Some(terms) = terms.as_ref().filter(|_| case.opcode() == Opcode::Scatter)
        && let Some(all) = scattered::bounds(case, terms, &bounds)
    {
        return Order::Any(all);
    }
    if bounds.iter().all(Option::is_none) {
        return Order::Unknown;
    }
    let each = bounds.into_iter().zip(&case.results);
    Order::Any(each.map(|(b, t)| b.unwrap_or_else(|| Bounds::unknown(t.len()))).collect())
}

/// The bounds of each component that is recognized.
fn components(
    case: &Case<'_>,
    region: &Region<'_>,
    indices_are_exact: bool,
    terms: &mut Option<Terms>,
) -> Vec<Option<Bounds>> {
    let mut bounds: Vec<Option<Bounds>> = vec![None; case.results.len()];
    for (i, component) in region.components.iter().enumerate() {
        bounds[i] = match *component {
            Component::Fold(by, node) => folded(case, region, i, by, node),
            // Of a scatter the accumulator is always the first operand, so updates only are exchanged.
            Component::Unrecognized if case.opcode() == Opcode::Scatter => {
                region.subtracted(i).and_then(|node| folded(case, region, i, Opcode::Subtract, node))
            }
            Component::Unrecognized if is_positive(case, i) => {
                region.greatest_magnitude(i).and_then(|node| folded(case, region, i, Opcode::Maximum, node))
            }
            Component::Merge(Merge::Difference) if case.opcode() == Opcode::Scatter => {
                folded(case, region, i, Opcode::Subtract, region.element(i))
            }
            Component::Choice(_) | Component::Merge(_) | Component::Unrecognized => None,
        };
    }
    let merges = region.components.iter().any(|c| matches!(c, Component::Merge(_)));
    if terms.is_none() && (merges || !region.choices.is_empty()) {
        *terms = Terms::of(case);
    }
    for (i, component) in region.components.iter().enumerate() {
        let (&Component::Merge(merge), Some(terms), true) = (component, terms.as_ref(), indices_are_exact)
        else {
            continue;
        };
        if bounds[i].is_none() {
            bounds[i] = if merge == Merge::Difference {
                difference(case, region, i, terms)
            } else {
                merged::bounds(case, region, i, merge, terms)
            };
        }
    }
    for choice in &region.choices {
        if !indices_are_exact {
            continue;
        }
        let keys = choice.keys.iter().map(|key| {
            let [elements, initial] = [0, 1].map(|part| function(case, region, key.element, part));
            Some([elements?, initial?])
        });
        let Some(keys) = keys.collect::<Option<Vec<_>>>() else { continue };
        let found = [Mode::Soft, Mode::Hard]
            .map(|mode| selected::bounds(case, choice, &keys, &case.radii(mode), mode, terms.as_ref()));
        let [Some(soft), Some(hard)] = found else { continue };
        for (&m, (soft, hard)) in choice.members.iter().zip(soft.into_iter().zip(hard)) {
            bounds[m] = Some(rules::concluded(case.results[m], soft, hard));
        }
    }
    bounds
}

/// What a computation that folds does.
pub(super) fn region<'m>(
    module: &'m Module,
    computation: ComputationId,
    accumulators_first: bool,
    settings: &Settings,
) -> Option<Region<'m>> {
    let run = |module: &Module, args: Vec<Tensor>| {
        let trees = args.iter().map(|_| Tree::exact()).collect();
        let (value, _) = evaluated(module, args, trees, settings)?;
        Some(value.arrays().into_iter().cloned().collect())
    };
    Region::new(module, computation, accumulators_first, &run)
}

/// What a module gives, with bounds.
fn evaluated(
    module: &Module,
    args: Vec<Tensor>,
    trees: Vec<Tree>,
    settings: &Settings,
) -> Option<(Value, Tree)> {
    let options = RunOptions { devices: Devices::ONE, seed: 0, ..settings.options };
    let settings = Settings { options, nested: true, ..settings.clone() };
    let values = args.into_iter().map(Value::Array).collect();
    evaluate(module, vec![values], vec![trees], settings, Arc::new(NoHost), Watching::default()).ok()?.pop()
}

/// Whether a computation gives the same bits in any order of exact operands.
pub(super) fn is_free(module: &Module, computation: ComputationId, settings: &Settings) -> bool {
    let Some(region) = region(module, computation, true, settings) else { return false };
    let free = |(i, component): (usize, &Component)| match *component {
        Component::Fold(by, node) => {
            let ty = region.expression.nodes[node].ty;
            let extreme = matches!(by, Opcode::Maximum | Opcode::Minimum) && !ty.is_complex();
            node == region.element(i) && (extreme || Format::of(ty).is_none())
        }
        Component::Choice(c) => region.choices[c].table.any_order,
        Component::Merge(_) | Component::Unrecognized => false,
    };
    region.components.iter().enumerate().all(free)
}

/// Whether a computation of two numbers gives the greater one, or the less, NaNs and signs of zeros apart.
pub(super) fn is_extreme(module: &Module, computation: ComputationId, settings: &Settings) -> bool {
    let region = region(module, computation, true, settings);
    region.is_some_and(|region| match &region.choices[..] {
        [choice] => region.components.len() == 1 && choice.table.extreme[0].is_some() && choice.table.selects,
        _ => false,
    })
}

/// The bounds of an instruction that leaves no order to choose.
pub(super) fn literally(case: &Case<'_>) -> Vec<Leaf> {
    let allowances = Allowances { reorder_regions: false, ..case.settings.allowances };
    let settings = Settings { allowances, ..case.settings.clone() };
    rules::bounds(&with(case, &settings))
}

/// The same with other settings.
fn with<'a>(case: &'a Case<'a>, settings: &'a Settings) -> Case<'a> {
    let arg = |a: &Arg<'a>| Arg { tensor: a.tensor, leaf: a.leaf.clone(), from: a.from };
    Case {
        module: case.module,
        instr: case.instr,
        settings,
        args: case.args.iter().map(arg).collect(),
        results: case.results.clone(),
    }
}

/// The operands that are indices or sort keys: they decide where elements are moved.
fn index_operands(case: &Case<'_>) -> Vec<usize> {
    match case.opcode() {
        Opcode::Scatter => vec![case.results.len()],
        Opcode::SelectAndScatter => vec![0],
        _ => Vec::new(),
    }
}

/// An instruction that folds by one operation; `None` if it does more.
fn plain(case: &Case<'_>) -> Option<Order> {
    let log_add_exp = case.instr.attrs.computation(AttrKey::ToApply);
    if log_add_exp.is_some_and(|c| hlo::log_add_exp(case.module, c).is_some()) {
        return Some(Order::Covered);
    }
    let by = rules::folds_by(case)?;
    let types: Vec<ElementType> = case.results.iter().map(|t| t.element_type()).collect();
    let number = types.iter().all(|&ty| Format::of(ty).is_some());
    let predicate = types.iter().all(|&ty| ty == ElementType::Pred);
    let complex = types.iter().any(|ty| ty.is_complex());
    match by {
        Opcode::Add | Opcode::Multiply if number => Some(Order::Covered),
        // Of complex numbers that compare equal an extreme is the first, and NaNs are passed on by their
        // order.
        Opcode::Maximum | Opcode::Minimum if complex && !has_one_extreme(case) => {
            Some(complex_extremes(case).map_or(Order::Unknown, Order::Any))
        }
        Opcode::Maximum | Opcode::Minimum if case.has_exact_operands() && !is_flushed(case) => {
            Some(Order::Any(case.results.iter().map(|_| Bounds::default()).collect()))
        }
        Opcode::Maximum | Opcode::Minimum => Some(Order::Covered),
        Opcode::And | Opcode::Or if predicate => Some(Order::Covered),
        Opcode::Add | Opcode::Multiply | Opcode::And | Opcode::Or | Opcode::Xor if !number => {
            if case.has_exact_operands() {
                return Some(Order::Any(case.results.iter().map(|_| Bounds::default()).collect()));
            }
            let moved = if by == Opcode::Add { integer_sum(case) } else { None };
            Some(moved.map_or(Order::Unknown, Order::Any))
        }
        _ => None,
    }
}

/// Whether complex numbers that compare equal are the same ones, and all compare: without NaNs, and zeros of
/// one sign alone in each part.
fn has_one_extreme(case: &Case<'_>) -> bool {
    let parts = case.args.iter().map(|a| Numbers::of(a.tensor)).map(|x| [x.re, x.im.unwrap_or_default()]);
    let all = parts.fold([Vec::new(), Vec::new()], |[mut re, mut im], [a, b]| {
        re.extend(a);
        im.extend(b);
        [re, im]
    });
    let sign =
        |part: &[f64], negative: bool| part.iter().any(|x| *x == 0.0 && x.is_sign_negative() == negative);
    let clear = |part: &Vec<f64>| !(part.iter().any(|x| x.is_nan()) || sign(part, true) && sign(part, false));
    case.has_exact_operands() && !is_flushed(case) && all.iter().all(clear)
}

/// Complex extremes in any order: some NaN is passed on, in whichever part, and numbers that compare equal may
/// be exchanged.
fn complex_extremes(case: &Case<'_>) -> Option<Vec<Bounds>> {
    let [result] = case.results[..] else { return None };
    let radii = |mode: Mode| lexicographic::bounds(case, &case.radii(mode), mode)?.pop();
    let ties = || Some(Bounds::of(radii(Mode::Soft)?, radii(Mode::Hard)?));
    let of_one = folds::of_one(case).and_then(|mut all| all.pop());
    let bounds = of_one.or_else(ties)?;
    let v = Numbers::of(result);
    let nan = |i: usize| v.at(i).0.is_nan() || v.at(i).1.is_nan();
    if !case.has_exact_operands() || !(0..v.len()).any(nan) {
        return Some(vec![bounds]);
    }
    let radii = |mode: Mode| {
        Radii::new((0..v.len()).map(|i| if nan(i) { 0.0 } else { bounds.radii(mode).at(i) }).collect())
    };
    let specials = (0..v.len()).map(|i| if nan(i) { Special::ANY } else { Special::NONE });
    let specials = Specials::new(specials.collect());
    Some(vec![Bounds { specials, ..Bounds::of(radii(Mode::Soft), radii(Mode::Hard)) }])
}

/// Whether an operand may count as another one, because it is denormal.
fn is_flushed(case: &Case<'_>) -> bool {
    let denormal = |a: &Arg<'_>| {
        Format::of(a.tensor.element_type()).is_some_and(|format| {
            let numbers = Numbers::of(a.tensor);
            let mut parts = numbers.re.iter().chain(numbers.im.iter().flatten());
            parts.any(|x| *x != 0.0 && x.abs() < format.flushes_below())
        })
    };
    case.settings.allowances.flush_denormals && case.args.iter().any(denormal)
}

/// The bounds of a sum of integers: it is off by no more than its terms together, if it cannot wrap.
fn integer_sum(case: &Case<'_>) -> Option<Vec<Bounds>> {
    let [result] = case.results[..] else { return None };
    let ty = result.element_type();
    if index_operands(case).iter().any(|&k| !case.args[k].leaf.bounds.is_exact()) || ty == ElementType::Pred {
        return None;
    }
    let is_index = |k: usize| index_operands(case).contains(&k);
    let to = |_: ElementType| ElementType::F64;
    let shapes = sums::operand_shapes(case).enumerate();
    let shapes: Vec<Shape> =
        shapes.map(|(k, s)| if is_index(k) { s.clone() } else { retyped(s, &to) }).collect();
    let regions = Regions::Fold(Opcode::Add, ElementType::F64);
    let probe = Probe::new(case.module, case.instr, &shapes, retyped(&case.instr.shape, &to), &regions)?;
    let run = |of: &dyn Fn(usize) -> Vec<f64>| -> Option<Vec<f64>> {
        let args = case.args.iter().enumerate().map(|(k, a)| {
            let list = || tensor(ElementType::F64, a.tensor.dims(), &of(k));
            hlo_interp::Value::Array(if is_index(k) { a.tensor.clone() } else { list() })
        });
        Some(Numbers::of(probe.run(case.settings, args.collect())?.as_array()?).re)
    };
    let radii = |k: usize, mode: Mode| -> Vec<f64> {
        let radii = case.args[k].leaf.bounds.radii(mode);
        (0..case.args[k].tensor.len()).map(|i| radii.at(i)).collect()
    };
    let magnitudes = run(&|k| {
        let numbers = Numbers::of(case.args[k].tensor).re;
        numbers.iter().zip(radii(k, Mode::Hard)).map(|(x, r)| x.abs() + r).collect()
    })?;
    let limit = power_of_two(ty.bits() as i32 - 1).min(9e15);
    let [soft, hard] = [Mode::Soft, Mode::Hard].map(|mode| {
        let moved = run(&|k| radii(k, mode))?;
        let each = moved
            .iter()
            .zip(&magnitudes)
            .map(|(&r, &m)| if m < limit || r == 0.0 { r } else { f64::INFINITY });
        Some(Radii::new(each.collect()))
    });
    Some(vec![rules::concluded(result, soft?, hard?)])
}

/// Whether a component begins with numbers that are not negative, and exact.
fn is_positive(case: &Case<'_>, component: usize) -> bool {
    selected::arguments(case, component).is_some_and(|[_, initial]| {
        let numbers = Numbers::of(initial.tensor);
        initial.leaf.bounds.is_exact()
            && numbers.im.is_none()
            && numbers.re.iter().all(|x| x.is_sign_positive())
    })
}

/// The bounds of a component that is an operation on its accumulator and a function of elements.
fn folded(case: &Case<'_>, region: &Region<'_>, component: usize, by: Opcode, node: usize) -> Option<Bounds> {
    let arguments = selected::arguments(case, component)?;
    let result = *case.results.get(component)?;
    let ty = result.element_type();
    let (values, leaf) = if node == region.element(component) {
        (arguments[0].tensor.clone(), arguments[0].leaf.clone())
    } else {
        let (values, leaf) = function(case, region, node, 0)?;
        if values.element_type() == ty { (values, leaf) } else { narrowed(ty, &values, &leaf)? }
    };
    let (by, values, leaf) = if by == Opcode::Subtract {
        let (values, leaf) = negated(&values, &leaf)?;
        (Opcode::Add, values, leaf)
    } else {
        (by, values, leaf)
    };
    if [values.element_type(), arguments[1].tensor.element_type(), result.element_type()]
        .iter()
        .any(|&t| t != ty)
    {
        return None;
    }
    // The component alone, as an instruction of its own.
    let shape_of = |k: usize| case.module.instr(case.args[k].from).shape.clone();
    let n = case.results.len();
    let element = |k: usize| retyped(&shape_of(k), &|_| ty);
    let (shapes, order) = match case.opcode() {
        Opcode::Reduce | Opcode::ReduceWindow => {
            (vec![element(component), shape_of(n + component)], [Some(()), None].to_vec())
        }
        Opcode::Scatter => {
            (vec![shape_of(component), shape_of(n), element(n + 1 + component)], vec![None, None, Some(())])
        }
        Opcode::SelectAndScatter => (vec![shape_of(0), element(1), shape_of(2)], vec![None, Some(()), None]),
        _ => return None,
    };
    let other = match case.opcode() {
        Opcode::Scatter => vec![&case.args[component], &case.args[n]],
        Opcode::SelectAndScatter => vec![&case.args[0], &case.args[2]],
        _ => vec![&case.args[n + component]],
    };
    let shape = match &case.instr.shape {
        Shape::Tuple(parts) => parts.get(component)?.clone(),
        shape => shape.clone(),
    };
    let probe = Probe::new(case.module, case.instr, &shapes, shape, &Regions::Fold(by, ty))?;
    let (module, instr) = probe.instruction();
    let mut other = other.into_iter();
    let args: Option<Vec<Arg<'_>>> = order
        .iter()
        .zip(instr.operands())
        .map(|(own, &from)| match own {
            Some(()) => Some(Arg { tensor: &values, leaf: leaf.clone(), from }),
            None => other.next().map(|a| Arg { tensor: a.tensor, leaf: a.leaf.clone(), from }),
        })
        .collect();
    // The reference and engines round each step, as the region says.
    let options = RunOptions { accumulate: Accumulate::Region, ..case.settings.options };
    let allowances = Allowances { narrow_accumulator: true, ..case.settings.allowances };
    let settings = Settings { options, allowances, nested: true, ..case.settings.clone() };
    let alone = Case { module, instr, settings: &settings, args: args?, results: vec![result] };
    Some(rules::bounds(&alone).pop()?.bounds)
}

/// The bounds of a component that is its accumulator less its element. With the accumulator on the left in each
/// step the result is the initial value less the sum of the elements, in any order of these: soft. Brackets
/// and exchanged operands give each term, but for the first one, any sign: hard.
fn difference(case: &Case<'_>, region: &Region<'_>, component: usize, terms: &Terms) -> Option<Bounds> {
    let result = *case.results.get(component)?;
    let [elements, initial] = selected::arguments(case, component)?;
    let Some(format) = Format::of(result.element_type()) else {
        // Modulo a power of two.
        let exact = [elements, initial].iter().all(|a| a.leaf.bounds.is_exact());
        return exact.then(|| Bounds { soft: Radii::Zero, ..Bounds::unknown(result.len()) });
    };
    let soft = folded(case, region, component, Opcode::Subtract, region.element(component))?.soft;
    let (xs, v) = (Numbers::of(elements.tensor), Numbers::of(result));
    let nothing = initial.leaf.bounds.is_exact() && Numbers::of(initial.tensor).re.iter().all(|&x| x == 0.0);
    if !nothing || xs.im.is_some() || terms.results() != v.len() {
        return Some(Bounds { soft, ..Bounds::unknown(v.len()) });
    }
    let off = elements.leaf.bounds.radii(Mode::Hard);
    let each = (0..v.len()).map(|i| {
        let all = terms.at(i).iter().map(|&e| e as usize);
        let size: f64 = all.map(|e| xs.re[e].abs() + off.at(e)).sum();
        let n = terms.at(i).len() as f64;
        let most = size * (1.0 + gamma(n, format.unit_roundoff())) + n * format.flushes_below();
        if most.is_nan() || most >= format.max || !v.is_finite(i) {
            f64::INFINITY
        } else {
            // Of no element, or of one, there is one order.
            ((most + v.re[i].abs()) * (1.0 + 4.0 * f64::EPSILON)).max(soft.at(i)).next_up()
        }
    });
    Some(Bounds::of(soft.clone(), Radii::new(each.collect())))
}

/// Real numbers with the other signs.
fn negated(values: &Tensor, leaf: &Leaf) -> Option<(Tensor, Arc<Leaf>)> {
    let v = Numbers::of(values);
    if v.im.is_some() || Format::of(v.ty).is_none() {
        return None;
    }
    let to: Vec<f64> = v.re.iter().map(|x| -x).collect();
    let radii = |mode: Mode| leaf.bounds.radii(mode).without_limits();
    let bounds = Bounds::of(radii(Mode::Soft), radii(Mode::Hard));
    Some((tensor(v.ty, values.dims(), &to), Arc::new(leaf.with_bounds(bounds))))
}

/// Numbers in a narrower type, off by what that rounds as well. `None`: it is none.
fn narrowed(ty: ElementType, values: &Tensor, leaf: &Leaf) -> Option<(Tensor, Arc<Leaf>)> {
    let v = Numbers::of(values);
    let (narrow, wide) = (Format::of(ty)?, Format::of(v.ty)?);
    if v.im.is_some() || wide.precision <= narrow.precision {
        return None;
    }
    let to = rounded(ty, &v.re);
    let radii = |mode: Mode| {
        let of = leaf.bounds.radii(mode);
        let off = |i: usize| {
            let lost = (v.re[i] - to[i]).abs();
            let same = v.re[i] == to[i] || v.re[i].is_nan();
            if same { of.at(i) } else { (of.at(i) + lost).next_up() }
        };
        Radii::new((0..v.len()).map(off).collect())
    };
    let bounds = Bounds::of(radii(Mode::Soft), radii(Mode::Hard));
    Some((tensor(ty, values.dims(), &to), Arc::new(leaf.with_bounds(bounds))))
}

/// A function of elements, of all of them (`part` 0), or of the initial values in their stead (1).
fn function(case: &Case<'_>, region: &Region<'_>, node: usize, part: usize) -> Option<(Tensor, Arc<Leaf>)> {
    let expression = &region.expression;
    let n = case.results.len();
    let parameters = expression.dependencies(&[node]);
    let mut elements = Vec::new();
    for &p in &parameters {
        let element = selected::arguments(case, p % n)?[part];
        if element.tensor.element_type() != expression.parameters[p] {
            return None;
        }
        elements.push(element);
    }
    // As many as there are elements, if it depends on none.
    let like = selected::arguments(case, 0)?[part].tensor;
    if elements.iter().any(|e| e.tensor.dims() != like.dims()) {
        return None;
    }
    let lanes = like.len() as i64;
    let module = expression.lifted(&[node], &parameters, lanes)?;
    let args = elements.iter().map(|e| e.tensor.clone().reshaped([lanes].as_slice())).collect();
    let trees = elements.iter().map(|e| Tree::Array(e.leaf.clone())).collect();
    let (value, tree) = evaluated(&module, args, trees, case.settings)?;
    let values = (*value.arrays().first()?).clone().reshaped(like.dims());
    Some((values, (*tree.leaves().first()?).clone()))
}
