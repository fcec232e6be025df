//! Relations between arrays: what is known of a value because of what it was computed from.
//!
//! `exp(x - max(x))` is at most 1, however uncertain `x` is: an engine has one `x`, and computes both from
//! it. Radii alone say that the difference is off by twice what `x` is off by. So leaves carry, where radii
//! are wide:
//!
//! - **Order** ([`Order`]): each element is no less (no more) than some elements of another array, its group:
//!   extremes of it, sums of what is not negative, and these moved about. A difference of the two has a sign,
//!   a quotient of the two is no more than 1.
//! - **Peak** ([`Peak`]): of each group of elements at least one is no less than a number. A difference to
//!   the maximum has a peak at 0, its exponential one at 1, and the sum of those is no less.
//!
//! **Invariants:** an instruction has one value in an engine's run, whoever reads it, but for what the
//! liberties grant: a reader may see it before a rounding that another one sees it after (contraction of a
//! product, excess precision), or see a denormal as 0. Each costs half a unit in the last place at the
//! largest that the value can be, or the smallest normal number ([`Readers::apart`]). Arrays are identified
//! by their leaf, which is made new where whoever is compared gets the reference's value; where some readers
//! may get that and others not ([`Leaf`]'s `mixed`) there are no relations.

use std::sync::{Arc, Weak};

use hlo::{AttrKey, ElementType, Opcode};
use hlo_arithmetic::scalar::Elementary;
use hlo_execution::format::Format;
use hlo_interp::Tensor;

use super::limits::Limits;
use super::number::Numbers;
use super::rules::{self, Case, Mode};
use super::{Bounds, Leaf, Radii, Settings, elementwise, movement, reciprocals};

/// Of an element that is in no group.
const NONE: u32 = u32::MAX;

/// Radii from which a maximum is related to what it is of: below it exponentials of differences are bounded
/// well enough.
const WIDE: f64 = 1.0 / 16.0;

/// What is known of an array beside others.
#[derive(Debug, Default)]
pub(super) struct Relations {
    /// It has the elements of another array in the same order.
    same: Option<(Weak<Leaf>, Readers)>,
    orders: Vec<Order>,
    pub(super) peak: Option<Peak>,
}

/// Each element is beyond its group of elements of another array.
#[derive(Clone, Debug)]
struct Order {
    groups: Arc<Groups>,
    /// Group by group, of each element of this array.
    of: Tags,
    kind: Beyond,
    /// It is one of the group's.
    attained: bool,
    /// Types that it was rounded into since.
    rounded: Vec<ElementType>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Beyond {
    /// No less: a maximum.
    Maximum,
    /// No more: a minimum.
    Minimum,
    /// No less: a sum of what is not negative.
    Sum,
}

/// Numbers of groups of elements.
#[derive(Clone, Debug)]
enum Tags {
    /// Each element's own number.
    Own,
    Each(Arc<Vec<u32>>),
}

impl Tags {
    fn at(&self, i: usize) -> u32 {
        match self {
            Tags::Own => i as u32,
            Tags::Each(each) => each[i],
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Tags::Own => 0,
            Tags::Each(each) => size_of_val(&each[..]) as u64,
        }
    }
}

/// The groups of an array's elements.
#[derive(Debug)]
struct Groups {
    source: Weak<Leaf>,
    readers: Readers,
    of: Tags,
}

/// How differently an array's readers may see its values.
#[derive(Clone, Copy, Debug)]
struct Readers {
    /// The coarsest type that the values were rounded into.
    ty: ElementType,
    /// They are products.
    product: bool,
}

impl Readers {
    fn with(self, other: Readers) -> Readers {
        let precision = |r: Readers| Format::of(r.ty).map_or(0, |f| f.precision);
        let ty = if precision(other) < precision(self) { other.ty } else { self.ty };
        Readers { ty, product: self.product || other.product }
    }

    /// How far apart two readers may see a value of at most this magnitude.
    fn apart(self, settings: &Settings, magnitude: f64) -> f64 {
        let Some(format) = Format::of(self.ty) else { return f64::INFINITY };
        let allowed = &settings.allowances;
        let mut apart = 0.0;
        if allowed.excess_precision && format.precision < 24 || allowed.contraction && self.product {
            // Double rounding: a value that was rounded to more bits before is off by slightly more than half
            // a unit.
            apart = format.ulp(magnitude) * (0.5 + 1.0 / 64.0);
        }
        if allowed.flush_denormals {
            apart += format.flushes_below();
        }
        apart
    }
}

/// Of each group of elements one is no less than a number.
#[derive(Clone, Debug)]
pub(super) struct Peak {
    of: Tags,
    /// By group, soft and hard; minus infinity: nothing is known.
    least: [Arc<Vec<f64>>; 2],
}

impl Peak {
    /// The numbers of groups all of whose elements an addition puts into one result each, by result: `into`
    /// has the result of each element.
    pub(super) fn within(&self, into: &[u32], results: usize, mode: Mode) -> Vec<f64> {
        const SEVERAL: u32 = u32::MAX - 1;
        let least = &self.least[mode as usize];
        let mut result = vec![NONE; least.len()];
        for (i, &r) in into.iter().enumerate() {
            if let Some(of) = result.get_mut(self.of.at(i) as usize) {
                *of = if *of == NONE || *of == r { r } else { SEVERAL };
            }
        }
        let mut found = vec![f64::NEG_INFINITY; results];
        for (&r, &least) in result.iter().zip(least.iter()) {
            if let Some(of) = found.get_mut(r as usize) {
                *of = of.max(least);
            }
        }
        found
    }

    /// The same of an array whose elements are a function of these.
    fn mapped(&self, of: impl Fn(f64) -> f64) -> Peak {
        let each = |mode: usize| Arc::new(self.least[mode].iter().map(|&x| of(x)).collect());
        Peak { of: self.of.clone(), least: [each(0), each(1)] }
    }
}

impl Relations {
    /// The bytes that they occupy.
    pub(super) fn bytes(&self) -> u64 {
        let orders = self.orders.iter().map(|o| o.of.bytes() + o.groups.of.bytes()).sum::<u64>();
        let peak = |p: &Peak| p.of.bytes() + 16 * p.least[0].len() as u64;
        orders + self.peak.as_ref().map_or(0, peak)
    }

    fn is_empty(&self) -> bool {
        self.same.is_none() && self.orders.is_empty() && self.peak.is_none()
    }
}

/// The array that this one has the elements of, and how differently its readers may see these.
fn root(leaf: &Arc<Leaf>, ty: ElementType) -> (Weak<Leaf>, Readers) {
    let own = Readers { ty, product: leaf.product };
    match leaf.relations.as_ref().and_then(|r| r.same.as_ref()) {
        Some((root, readers)) => (root.clone(), readers.with(own)),
        None => (Arc::downgrade(leaf), own),
    }
}

/// Narrows the bounds of a result by the relations of its operands, and finds its own.
pub(super) fn related(case: &Case<'_>, leaves: &mut [Leaf]) {
    let ([result], [leaf]) = (&case.results[..], leaves) else { return };
    let float = |t: &Tensor| Format::of(t.element_type()).is_some() && !t.element_type().is_complex();
    if leaf.bounds.is_exact() || !case.args.iter().all(|a| float(a.tensor) || case.opcode() == Opcode::Select)
    {
        return;
    }
    let mut own = Relations::default();
    match case.opcode() {
        Opcode::Subtract => own.peak = difference(case, result, leaf),
        Opcode::Divide => quotient(case, result, leaf),
        Opcode::Reduce => own.orders.extend(fold(case)),
        Opcode::Maximum => own.orders = larger(case),
        Opcode::Select => own.orders = selected(case),
        Opcode::Exponential | Opcode::Convert | Opcode::Copy | Opcode::Reshape | Opcode::Bitcast => {
            own = carried(case, result);
        }
        Opcode::Broadcast | Opcode::Transpose | Opcode::Reverse | Opcode::Slice => own = moved(case),
        _ => {}
    }
    if !own.is_empty() {
        leaf.relations = Some(Arc::new(own));
    }
}

/// The groups of a reduction's operand: of each element the number of the result that it goes into.
pub(super) fn reduced(case: &Case<'_>) -> Option<Vec<u32>> {
    let [operand, _] = &case.args[..] else { return None };
    let sizes = operand.tensor.sizes();
    let folded = case.instr.attrs.ints(AttrKey::Dimensions)?;
    u32::try_from(operand.tensor.len()).ok().filter(|&n| n < NONE - 1)?;
    let mut strides = vec![0usize; sizes.len()];
    let mut stride = 1;
    for d in (0..sizes.len()).rev() {
        if !folded.contains(&(d as i64)) {
            strides[d] = stride;
            stride *= sizes[d];
        }
    }
    let mut groups = vec![0u32];
    for (&size, &stride) in sizes.iter().zip(&strides) {
        groups = groups.iter().flat_map(|&g| (0..size).map(move |i| g + (i * stride) as u32)).collect();
    }
    Some(groups)
}

/// A reduction by maximum or minimum of an array whose radii are wide, or by addition of one that is not
/// negative.
fn fold(case: &Case<'_>) -> Option<Order> {
    let [operand, init] = &case.args[..] else { return None };
    let ty = operand.tensor.element_type();
    let radii = &operand.leaf.bounds.hard;
    if radii.is_zero() || operand.leaf.mixed || Format::of(ty)?.precision < 8 {
        return None;
    }
    let kind = match rules::folds_by(case)? {
        Opcode::Maximum => Beyond::Maximum,
        Opcode::Minimum => Beyond::Minimum,
        Opcode::Add => Beyond::Sum,
        _ => return None,
    };
    let x = Numbers::of(operand.tensor);
    let wide = |i: usize| match kind {
        Beyond::Maximum | Beyond::Minimum => radii.at(i) > WIDE,
        Beyond::Sum => radii.at(i) > x.re[i].abs() / 4.0,
    };
    if !(0..x.len()).any(wide) {
        return None;
    }
    let first = Numbers::of(init.tensor).re[0];
    // The initial value is not beyond any element.
    let behind =
        |of: fn(Limits) -> f64| (0..x.len()).all(|i| interval(&x, radii, i).is_some_and(|l| first <= of(l)));
    let attained = match kind {
        Beyond::Maximum => first == f64::NEG_INFINITY || behind(|l| l.low),
        Beyond::Minimum | Beyond::Sum => false,
    } && init.leaf.bounds.is_exact();
    let positive = |i: usize| {
        let limits = elementwise::within(x.re[i], radii.at(i), radii.limits(i));
        limits.is_some_and(|l| l.low >= 0.0)
    };
    if kind == Beyond::Sum && !(first >= 0.0 && init.leaf.bounds.is_exact() && (0..x.len()).all(positive)) {
        return None;
    }
    let (source, readers) = root(&operand.leaf, ty);
    let groups = Groups { source, readers, of: Tags::Each(Arc::new(reduced(case)?)) };
    Some(Order { groups: Arc::new(groups), of: Tags::Own, kind, attained, rounded: Vec::new() })
}

/// `maximum`: no less than either operand, nor than what that is no less than.
fn larger(case: &Case<'_>) -> Vec<Order> {
    let [a, b] = &case.args[..] else { return Vec::new() };
    let mut orders = Vec::new();
    for (x, other) in [(a, b), (b, a)] {
        let of = x.leaf.relations.as_ref().map_or(&[][..], |r| &r.orders);
        let bottom = || {
            let other = Numbers::of(other.tensor);
            other.re.iter().all(|&x| x == f64::NEG_INFINITY)
        };
        for order in of.iter().filter(|o| o.kind != Beyond::Minimum) {
            let attained = order.attained && other.leaf.bounds.is_exact() && bottom();
            orders.push(Order { attained, ..order.clone() });
        }
        let radii = &x.leaf.bounds.hard;
        if !x.leaf.mixed && (0..x.tensor.len()).any(|i| radii.at(i) > WIDE) {
            let (source, readers) = root(&x.leaf, x.tensor.element_type());
            let groups = Arc::new(Groups { source, readers, of: Tags::Own });
            let (kind, attained, rounded) = (Beyond::Maximum, false, Vec::new());
            orders.push(Order { groups, of: Tags::Own, kind, attained, rounded });
        }
    }
    orders
}

/// `select` by a predicate that is decided: element by element of the operand that is chosen.
fn selected(case: &Case<'_>) -> Vec<Order> {
    let [p, a, b] = &case.args[..] else { return Vec::new() };
    let n = case.results[0].len();
    if !p.leaf.bounds.is_exact() || a.tensor.len() != n || b.tensor.len() != n {
        return Vec::new();
    }
    let chosen = Numbers::of(p.tensor);
    let is_first = |i: usize| chosen.re[if chosen.len() == 1 { 0 } else { i }] != 0.0;
    let mut orders = Vec::new();
    for (x, first) in [(a, true), (b, false)] {
        for order in x.leaf.relations.as_ref().map_or(&[][..], |r| &r.orders) {
            let of = (0..n).map(|i| if is_first(i) == first { order.of.at(i) } else { NONE }).collect();
            orders.push(Order { of: Tags::Each(Arc::new(of)), ..order.clone() });
        }
    }
    orders
}

/// Element by element and in order: the same elements, or a function of them.
fn carried(case: &Case<'_>, result: &Tensor) -> Relations {
    let none = Relations::default;
    let [x] = &case.args[..] else { return none() };
    let (from, to) = (x.tensor.element_type(), result.element_type());
    let (Some(source), Some(format)) = (Format::of(from), Format::of(to)) else { return none() };
    let relations = x.leaf.relations.as_deref();
    let peak = relations.and_then(|r| r.peak.as_ref());
    let opcode = case.opcode();
    if opcode == Opcode::Exponential {
        let units = 8.0 * format.unit_roundoff();
        let least = |x: f64| {
            let y = Elementary::exponential(x) * (1.0 - units);
            // Roundings of what is not normal are no units.
            if y >= 4.0 * format.flushes_below() { y.min(format.max) } else { f64::NEG_INFINITY }
        };
        return Relations { peak: peak.map(|p| p.mapped(least)), ..none() };
    }
    if x.tensor.len() != result.len() || opcode == Opcode::Bitcast && !keeps_order(case) {
        return none();
    }
    let wider = format.precision >= source.precision
        && format.max >= source.max
        && format.min_exponent <= source.min_exponent;
    let same = wider.then(|| root(&x.leaf, from)).filter(|_| !x.leaf.mixed);
    if wider {
        let orders = relations.map_or_else(Vec::new, |r| r.orders.clone());
        return Relations { same, orders, peak: peak.cloned() };
    }
    let mut orders = relations.map_or_else(Vec::new, |r| r.orders.clone());
    // What is too large for the narrower type is no longer what it was: such elements have infinite radii.
    orders.iter_mut().for_each(|o| o.rounded.push(to));
    let peak =
        peak.map(|p| p.mapped(|x| if x.abs() < format.max { x - format.ulp(x) } else { f64::NEG_INFINITY }));
    Relations { same: None, orders, peak }
}

/// Whether a bitcast leaves the elements in order: as a reshape does, if both layouts are those of row-major
/// order.
fn keeps_order(case: &Case<'_>) -> bool {
    case.args[0].tensor.element_type() == case.results[0].element_type()
        && movement::sources(case)
            .is_some_and(|from| from.iter().enumerate().all(|(i, &source)| source == Some((0, i))))
}

/// Moved elements. Peaks stay where no element of a group is left out.
fn moved(case: &Case<'_>) -> Relations {
    let none = Relations::default();
    let Some(relations) = case.args[0].leaf.relations.as_ref() else { return none };
    if relations.orders.is_empty() && relations.peak.is_none() {
        return none;
    }
    // Of several operands elements would be of several arrays.
    let sources = movement::sources(case).filter(|_| case.args.len() == 1);
    let Some(from) = sources.and_then(|from| from.into_iter().collect::<Option<Vec<_>>>()) else {
        return none;
    };
    let take = |of: &Tags| Tags::Each(Arc::new(from.iter().map(|&(_, i)| of.at(i)).collect()));
    let orders = relations.orders.iter().map(|o| Order { of: take(&o.of), ..o.clone() }).collect();
    let peak = relations.peak.as_ref().filter(|_| case.opcode() != Opcode::Slice);
    let peak = peak.map(|p| Peak { of: take(&p.of), least: p.least.clone() });
    Relations { same: None, orders, peak }
}

/// The interval of an element, if it is a number and finite.
fn interval(x: &Numbers, radii: &Radii, i: usize) -> Option<Limits> {
    let within = elementwise::within(x.re[i], radii.at(i), radii.limits(i))?;
    (within.low.is_finite() && within.high.is_finite()).then_some(within)
}

fn magnitude(l: Limits) -> f64 {
    l.low.abs().max(l.high.abs())
}

/// What `subtract` and `divide` know of an element: the other operand, an element of the array `x`, is in the
/// group that this one is beyond.
struct Pairs<'a> {
    order: &'a Order,
    readers: Readers,
    x: Numbers,
    beyond: Numbers,
    radii: [[Radii; 2]; 2],
}

impl<'a> Pairs<'a> {
    /// The first relation of operand `beyond` with operand `x`.
    fn of(case: &'a Case<'_>, x: usize, beyond: usize, kinds: &[Beyond]) -> Option<Pairs<'a>> {
        let [a, b] = [&case.args[x], &case.args[beyond]];
        let (source, readers) = root(&a.leaf, a.tensor.element_type());
        let orders = &b.leaf.relations.as_ref()?.orders;
        let order = orders.iter().find(|o| kinds.contains(&o.kind) && o.groups.source.ptr_eq(&source))?;
        let both = |leaf: &Leaf| [leaf.bounds.soft.clone(), leaf.bounds.hard.clone()];
        (a.tensor.len() == b.tensor.len()).then(|| Pairs {
            order,
            readers: readers.with(order.groups.readers),
            x: Numbers::of(a.tensor),
            beyond: Numbers::of(b.tensor),
            radii: [both(&a.leaf), both(&b.leaf)],
        })
    }

    /// The group that both elements of a pair are of.
    fn group(&self, i: usize) -> Option<usize> {
        let group = self.order.of.at(i);
        (group != NONE && self.order.groups.of.at(i) == group).then_some(group as usize)
    }

    /// The intervals of the element and of what is beyond it, and how far apart readers may see either:
    /// `x - apart` is beyond.
    fn pair(&self, i: usize, settings: &Settings, mode: Mode) -> Option<(Limits, Limits, f64)> {
        self.group(i)?;
        let x = interval(&self.x, &self.radii[0][mode as usize], i)?;
        let beyond = interval(&self.beyond, &self.radii[1][mode as usize], i)?;
        let magnitude = magnitude(x).max(magnitude(beyond));
        let mut apart = self.readers.apart(settings, magnitude);
        for &ty in &self.order.rounded {
            apart += Format::of(ty)?.ulp(magnitude) / 2.0;
        }
        Some((x, beyond, apart))
    }
}

/// Puts limits beside bounds.
fn narrow(case: &Case<'_>, leaf: &mut Leaf, of: impl Fn(usize, Mode) -> Limits) {
    let v = Numbers::of(case.results[0]);
    let least = Format::of(v.ty).map_or(0.0, Format::min_positive);
    let narrowed = |radii: &Radii, mode: Mode| {
        let each = (0..v.len()).map(|i| {
            let (radius, limits) = radii.limits(i).and(of(i, mode)).narrow(v.re[i], radii.at(i));
            (if radius > 0.0 { radius.max(least) } else { radius }, limits)
        });
        let (each, limits) = each.unzip();
        Radii::limited(each, limits)
    };
    let Bounds { soft, hard, .. } = &leaf.bounds;
    let (soft, hard) = (narrowed(soft, Mode::Soft), narrowed(hard, Mode::Hard));
    leaf.bounds = Bounds::of(soft, hard).shared();
}

/// `subtract` of an extreme and what it is of has a sign, but for what readers see differently. Gives the
/// peaks of differences to maxima.
fn difference(case: &Case<'_>, result: &Tensor, leaf: &mut Leaf) -> Option<Peak> {
    let format = Format::of(result.element_type())?;
    let kinds = [Beyond::Maximum, Beyond::Minimum, Beyond::Sum];
    let (first, pairs) = match Pairs::of(case, 0, 1, &kinds) {
        Some(pairs) => (true, pairs),
        None => (false, Pairs::of(case, 1, 0, &kinds)?),
    };
    // x less its maximum is below 0; less its minimum above, and the other way around.
    let below = first == (pairs.order.kind != Beyond::Minimum);
    // The difference itself is rounded.
    let rounded =
        |apart: f64| if apart > 0.0 { (apart + format.ulp(apart)).max(format.min_positive()) } else { 0.0 };
    let apart = |i: usize, mode: Mode| pairs.pair(i, case.settings, mode).map(|(_, _, apart)| rounded(apart));
    narrow(case, leaf, |i, mode| match apart(i, mode) {
        Some(apart) if below => Limits::new(f64::NEG_INFINITY, apart),
        Some(apart) => Limits::new(-apart, f64::INFINITY),
        None => Limits::NONE,
    });
    if !(first && below && pairs.order.attained && pairs.order.kind == Beyond::Maximum) {
        return None;
    }
    // Groups all of whose elements are here.
    let n = result.len();
    let groups = (0..n).map(|i| pairs.order.groups.of.at(i) as usize + 1).max().unwrap_or(0);
    let least = |mode: Mode| {
        let mut least = vec![0.0f64; groups];
        for i in 0..n {
            let group = &mut least[pairs.order.groups.of.at(i) as usize];
            *group = group.min(apart(i, mode).map_or(f64::NEG_INFINITY, |apart| -apart));
        }
        Arc::new(least)
    };
    Some(Peak { of: pairs.order.groups.of.clone(), least: [least(Mode::Soft), least(Mode::Hard)] })
}

/// `divide` of what is not negative by its maximum or its sum is no more than 1, but for what readers see
/// differently.
fn quotient(case: &Case<'_>, result: &Tensor, leaf: &mut Leaf) {
    let Some(pairs) = Pairs::of(case, 0, 1, &[Beyond::Maximum, Beyond::Sum]) else { return };
    let Some(format) = Format::of(result.element_type()) else { return };
    let coarsest = Format::of(pairs.readers.ty)
        .map_or(format, |f| if f.precision < format.precision { f } else { format });
    narrow(case, leaf, |i, mode| {
        // Above the least normal number readers are apart by units.
        match pairs.pair(i, case.settings, mode) {
            Some((x, beyond, _)) if x.low >= 0.0 && beyond.low >= 4.0 * coarsest.flushes_below() => {
                let products = if reciprocals::applies(case) { 2.0 } else { 0.0 };
                let roundings = 4.0 + products + 2.0 * pairs.order.rounded.len() as f64;
                Limits::new(0.0, 1.0 + roundings * 2.0 * coarsest.unit_roundoff())
            }
            Some(_) | None => Limits::NONE,
        }
    });
}
