//! What an element of a result is worth: the same bits as the reference's, explained by rounding, undecided,
//! or wrong.
//!
//! **Invariants:** NaNs are the same unless their bits are asked for; a zero of the other sign is explained
//! only where some error is; a bound that says nothing never explains anything, it leaves an element
//! undecided.

use std::collections::BTreeMap;

use hlo::{ArrayLiteral, Buffer};
use serde::{Deserialize, Serialize};

use crate::element::{Number, Part, index_of, is_nan, text_of};
use crate::special::Special;

/// The bound of an element's distance from the reference's, for each part of a complex one.
pub trait Allowed {
    /// What rounding explains, given that every decision falls as in the reference. Infinite: nothing is
    /// known.
    fn soft(&self, element: usize) -> f64;
    /// The bound if decisions that depend on rounding fall otherwise.
    fn hard(&self, element: usize) -> f64;
    /// Infinities and NaNs that are explained besides.
    fn special(&self, _element: usize) -> Special {
        Special::NONE
    }
    /// Whether a real number or NaN is within the limits of the element's value, of a complex one of its real
    /// part, which hold however decisions fall.
    fn admits(&self, _element: usize, _value: f64) -> bool {
        true
    }
    /// Whether a real number is explained besides, whatever radii say.
    fn explains(&self, _element: usize, _value: f64) -> bool {
        false
    }
    /// Where the order of rows is open, the row that the element is in.
    fn open_row(&self, _element: usize) -> Option<OpenRow> {
        None
    }
}

/// A row of several that stand in any order: elements of one row of different arrays stay together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OpenRow {
    /// Which rows: those of another group are others.
    pub group: u32,
    /// Which one of these, in the reference's order.
    pub row: u32,
    /// How many there are.
    pub rows: u32,
}

/// The numbers of elements by class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// The same bits.
    pub same: u64,
    /// Explained by rounding.
    pub explained: u64,
    /// A decision depends on rounding, or nothing is known.
    pub undecided: u64,
    /// Beyond every bound.
    pub wrong: u64,
}

impl Tally {
    /// All elements.
    pub fn total(&self) -> u64 {
        self.same + self.explained + self.undecided + self.wrong
    }

    /// Adds those of another array.
    pub fn add(&mut self, other: &Tally) {
        self.same += other.same;
        self.explained += other.explained;
        self.undecided += other.undecided;
        self.wrong += other.wrong;
    }

    /// The share of undecided elements, 0 to 1.
    pub fn undecided_share(&self) -> f64 {
        if self.total() == 0 { 0.0 } else { self.undecided as f64 / self.total() as f64 }
    }
}

/// Which class an element is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The same bits.
    Same,
    /// Explained by rounding.
    Explained,
    /// Undecided.
    Undecided,
    /// Wrong.
    Wrong,
}

/// An element that differs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Differing {
    /// Its index in each dimension.
    pub index: Vec<i64>,
    /// The reference's, as text that reads back.
    pub expected: String,
    /// The engine's.
    pub actual: String,
    /// Absolute error; `None` if there is no number for it.
    pub error: Option<f64>,
    /// Distance in representable numbers; `None` if it is infinite.
    pub ulp: Option<u64>,
    /// The certified bound, if every decision falls as in the reference; `None` if nothing is known.
    pub bound: Option<f64>,
    /// The bound if decisions that depend on rounding fall otherwise; `None` if nothing is known then.
    pub hard_bound: Option<f64>,
    /// Its class.
    pub class: Class,
}

/// The error of an explained element relative to its bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Worst {
    /// Absolute error.
    pub error: f64,
    /// The bound there.
    pub bound: f64,
    /// Distance in representable numbers.
    pub ulp: Option<u64>,
}

impl Worst {
    /// The share of the bound, at most 1.
    pub fn share(&self) -> f64 {
        self.error / self.bound.max(f64::MIN_POSITIVE)
    }

    /// The distance in representable numbers that the bound allows, if the error has one.
    pub fn allowed_ulp(&self) -> Option<f64> {
        self.ulp.filter(|_| self.error > 0.0).map(|ulp| ulp as f64 / self.share())
    }
}

/// The verdict over an array.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ArrayVerdict {
    /// Dimensions.
    pub dims: Vec<i64>,
    /// Counts.
    pub tally: Tally,
    /// The worst elements, the worst first; at most [`ArrayVerdict::MAX_KEPT_ELEMENTS`].
    pub worst: Vec<Differing>,
    /// Indices of wrong elements in row-major order; at most [`ArrayVerdict::MAX_KEPT_INDICES`].
    pub wrong_at: Vec<usize>,
    /// The explained element that takes the largest share of its bound.
    pub worst_explained: Option<Worst>,
    /// Elements that another run of the reference explains ([`judge_among`]).
    pub by_another: u64,
    /// Whether an element differs within a bound so wide that a fault could hide in it.
    pub weak: bool,
    /// Differing elements by distance in representable numbers: 1, 2, up to 4, 16, 256, 65536, more, not
    /// comparable.
    pub histogram: [u64; 8],
    /// Differing elements by multiples of the bound: up to 1/16, 1/4, 1, 2, 16, 65536, more, no bound or no
    /// number.
    pub multiples: [u64; 8],
}

impl ArrayVerdict {
    /// The maximum number of of the worst elements that are kept.
    pub const MAX_KEPT_ELEMENTS: usize = 8;
    /// The maximum of indices of wrong elements that are kept.
    pub const MAX_KEPT_INDICES: usize = 4096;
    /// The buckets of the histogram.
    pub const BUCKETS: [&'static str; 8] =
        ["1", "2", "3-4", "5-16", "17-256", "257-65536", "more", "no number"];
    /// The buckets of [`ArrayVerdict::multiples`].
    pub const MULTIPLES: [&'static str; 8] =
        ["<= 1/16", "<= 1/4", "<= 1", "<= 2", "<= 16", "<= 65536", "more", "no bound"];

    /// A property that all wrong elements share, as a sentence.
    pub fn common(&self) -> Option<String> {
        pattern(&self.dims, &self.wrong_at, self.tally.wrong)
    }

    /// What is undecided is decided: it is wrong, or explained.
    pub fn settle(&mut self, wrong: bool) {
        let (class, to) = match wrong {
            true => (Class::Wrong, &mut self.tally.wrong),
            false => (Class::Explained, &mut self.tally.explained),
        };
        *to += std::mem::take(&mut self.tally.undecided);
        self.worst.iter_mut().filter(|d| d.class == Class::Undecided).for_each(|d| d.class = class);
    }

    /// The maximum number of serious class of an element.
    pub fn class(&self) -> Class {
        if self.tally.wrong > 0 {
            Class::Wrong
        } else if self.tally.undecided > 0 {
            Class::Undecided
        } else if self.tally.explained > 0 {
            Class::Explained
        } else {
            Class::Same
        }
    }
}

/// A bound above this share of the element itself is weak.
const WEAK_BOUND_SHARE: f64 = 1.0 / 256.0;

/// Judges an array. `Err`: it has another shape, as a sentence.
pub fn judge(
    expected: &ArrayLiteral,
    actual: &ArrayLiteral,
    allowed: &dyn Allowed,
    nan_bits: bool,
) -> Result<ArrayVerdict, String> {
    if expected.dims != actual.dims || expected.buffer.element_type() != actual.buffer.element_type() {
        return Err(format!("its shape is {}, not {}", actual.shape(), expected.shape()));
    }
    Ok(
        hlo::with_buffer!(&*expected.buffer, e => judge_typed(e, actual, &Settings { allowed, others: &[], rows: &Rows::default(), nan_bits })),
    )
}

/// Another run of the reference that an engine may do as well: its results and bounds.
#[derive(Clone, Copy)]
pub struct Other<'a> {
    /// An array of the shape of the reference's.
    pub expected: &'a ArrayLiteral,
    /// The bounds of an engine's results.
    pub allowed: &'a dyn Allowed,
}

/// The same, where what any of `others` explains is explained: of these only what they explain counts. Of
/// elements in rows whose order is open `rows` says what they are worth ([`by_rows`]).
pub fn judge_among(
    expected: &ArrayLiteral,
    actual: &ArrayLiteral,
    allowed: &dyn Allowed,
    others: &[Other<'_>],
    rows: &Rows,
    nan_bits: bool,
) -> Result<ArrayVerdict, String> {
    let fits = |o: &&Other<'_>| {
        o.expected.dims == expected.dims && o.expected.buffer.element_type() == expected.buffer.element_type()
    };
    let others: Vec<Other<'_>> = others.iter().filter(fits).copied().collect();
    if expected.dims != actual.dims || expected.buffer.element_type() != actual.buffer.element_type() {
        return judge(expected, actual, allowed, nan_bits);
    }
    let settings = Settings { allowed, others: &others, rows, nan_bits };
    Ok(hlo::with_buffer!(&*expected.buffer, e => judge_typed(e, actual, &settings)))
}

/// What the elements of an array are worth that are in rows whose order is open: explained, or wrong.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rows(Vec<Option<Class>>);

impl Rows {
    fn at(&self, i: usize) -> Option<Class> {
        self.0.get(i).copied().flatten()
    }
}

/// An array of the reference's results, an engine's, and what is allowed of it.
pub type Judged<'a> = (&'a ArrayLiteral, &'a ArrayLiteral, &'a dyn Allowed);

/// Of an array the element that is in each row of a group.
type Elements = Vec<Option<usize>>;

/// Of all result arrays of a program the elements that are in rows whose order is open: explained where the
/// engine has the same rows in any order, wrong where it has others. Nothing is said of rows of which an
/// array has a part alone.
pub fn by_rows(results: &[Judged<'_>], nan_bits: bool) -> Vec<Rows> {
    // Of each group, the arrays that it is in, each with the element of each row.
    let mut groups: BTreeMap<u32, Vec<(usize, Elements)>> = BTreeMap::new();
    let mut all: Vec<Rows> = vec![Rows::default(); results.len()];
    for (array, (expected, actual, allowed)) in results.iter().enumerate() {
        let n = expected.buffer.len();
        if actual.buffer.len() != n || expected.buffer.element_type() != actual.buffer.element_type() {
            continue;
        }
        for (i, open) in (0..n).filter_map(|i| Some((i, allowed.open_row(i)?))) {
            let arrays = groups.entry(open.group).or_default();
            if arrays.last().is_none_or(|(last, _)| *last != array) {
                arrays.push((array, vec![None; open.rows as usize]));
            }
            if let Some((_, rows)) = arrays.last_mut()
                && let Some(element) = rows.get_mut(open.row as usize)
            {
                *element = Some(i);
            }
        }
    }
    for arrays in groups.into_values() {
        let whole = |(array, rows): (usize, Elements)| -> Option<(usize, Vec<usize>)> {
            Some((array, rows.into_iter().collect::<Option<_>>()?))
        };
        let arrays: Vec<(usize, Vec<usize>)> = arrays.into_iter().filter_map(whole).collect();
        let rows = |engine: bool| -> Vec<Vec<u128>> {
            let count = arrays.first().map_or(0, |(_, elements)| elements.len());
            let row = |r: usize| {
                let element = |(array, elements): &(usize, Vec<usize>)| {
                    let (expected, actual, _) = &results[*array];
                    let buffer = &*(if engine { actual } else { expected }).buffer;
                    hlo::with_buffer!(buffer, v => key(v[elements[r]], nan_bits))
                };
                arrays.iter().flat_map(element).collect()
            };
            let mut rows: Vec<Vec<u128>> = (0..count).map(row).collect();
            rows.sort_unstable();
            rows
        };
        let same = rows(false) == rows(true);
        let class = if same { Class::Explained } else { Class::Wrong };
        for (array, elements) in &arrays {
            let of = &mut all[*array].0;
            of.resize(results[*array].0.buffer.len(), None);
            elements.iter().for_each(|&i| of[i] = Some(class));
        }
    }
    all
}

/// The bits of an element, part by part; of all NaNs the same ones unless theirs are looked at.
fn key<T: Number>(x: T, nan_bits: bool) -> [u128; 2] {
    if nan_bits || !(T::TYPE.is_float() || T::TYPE.is_complex()) {
        return [x.bits(), 0];
    }
    let part = |x: Part| {
        let x = x.value();
        u128::from(if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() })
    };
    let (re, im) = x.parts();
    [part(re), im.map_or(0, part)]
}

/// Options of judging elements.
struct Settings<'a> {
    allowed: &'a dyn Allowed,
    others: &'a [Other<'a>],
    rows: &'a Rows,
    nan_bits: bool,
}

impl Settings<'_> {
    /// Whether another run of the reference explains what is element `i` of `actual`.
    fn explained_by_another<T: Number>(&self, actual: T, i: usize) -> bool {
        self.others.iter().any(|other| {
            let expected = T::slice(&other.expected.buffer).and_then(|e| e.get(i));
            expected.is_some_and(|&e| {
                same(e, actual, self.nan_bits) || class_of(e, actual, other.allowed, i) == Class::Explained
            })
        })
    }
}

/// The class of an element that differs from the reference's.
fn class_of<T: Number>(e: T, a: T, allowed: &dyn Allowed, i: usize) -> Class {
    let (soft, hard) = (allowed.soft(i), allowed.hard(i));
    let (error, _) = distance(e, a);
    let special = special_of(a);
    if special != Special::NONE && allowed.special(i).has(special) {
        Class::Explained
    } else if !allowed.admits(i, real_of(a)) {
        Class::Wrong
    } else if allowed.explains(i, real_of(a)) {
        Class::Explained
    } else if soft == f64::INFINITY {
        Class::Undecided
    } else if soft > 0.0 && error <= soft {
        Class::Explained
    } else if hard > 0.0 && error <= hard {
        Class::Undecided
    } else {
        Class::Wrong
    }
}

/// Whether two arrays have the same bits, all NaNs being the same unless `nan_bits`.
pub fn same_bits(expected: &ArrayLiteral, actual: &ArrayLiteral, nan_bits: bool) -> bool {
    if expected.dims != actual.dims || expected.buffer.element_type() != actual.buffer.element_type() {
        return false;
    }
    same_buffers(&expected.buffer, &actual.buffer, nan_bits)
}

/// The same of two buffers.
pub fn same_buffers(expected: &Buffer, actual: &Buffer, nan_bits: bool) -> bool {
    expected.len() == actual.len() && hlo::with_buffer!(expected, e => same_typed(e, actual, nan_bits))
}

fn same_typed<T: Number>(expected: &[T], actual: &Buffer, nan_bits: bool) -> bool {
    T::slice(actual).is_some_and(|actual| expected.iter().zip(actual).all(|(&e, &a)| same(e, a, nan_bits)))
}

/// Whether two elements have the same bits; NaNs are alike unless their bits are looked at.
pub fn same<T: Number>(e: T, a: T, nan_bits: bool) -> bool {
    if e.bits() == a.bits() {
        return true;
    }
    if nan_bits || !(T::TYPE.is_float() || T::TYPE.is_complex()) {
        return false;
    }
    let ((e, f), (a, b)) = (e.parts(), a.parts());
    same_part(e, a) && f.zip(b).is_none_or(|(f, b)| same_part(f, b))
}

/// Of two parts of one float type.
fn same_part(e: Part, a: Part) -> bool {
    match (e, a) {
        (Part::Float { value: e, .. }, Part::Float { value: a, .. }) => {
            e.to_bits() == a.to_bits() || e.is_nan() && a.is_nan()
        }
        (e, a) => e == a,
    }
}

/// The error of a part, and its distance in representable numbers; infinite and `None` where one is no
/// number.
#[inline]
pub fn error_of(e: Part, a: Part) -> (f64, Option<u64>) {
    match (e, a) {
        (Part::Int(e), Part::Int(a)) => {
            let d = e.abs_diff(a);
            (d as f64, u64::try_from(d).ok())
        }
        (Part::Float { value: e, ordinal: i }, Part::Float { value: a, ordinal: j }) => {
            if e.to_bits() == a.to_bits() || e.is_nan() && a.is_nan() {
                (0.0, Some(0))
            } else if e.is_finite() && a.is_finite() {
                ((e - a).abs(), Some(i.abs_diff(j)))
            } else {
                (f64::INFINITY, None)
            }
        }
        (Part::Int(_), Part::Float { .. }) | (Part::Float { .. }, Part::Int(_)) => (f64::INFINITY, None),
    }
}

fn judge_typed<T: Number>(expected: &[T], actual: &ArrayLiteral, settings: &Settings<'_>) -> ArrayVerdict {
    let &Settings { allowed, nan_bits, .. } = settings;
    let shape = actual;
    let actual = T::slice(&actual.buffer).expect("invariant: the element types were compared");
    let mut verdict = ArrayVerdict { dims: shape.dims.to_vec(), ..ArrayVerdict::default() };
    // (class, error over bound, index): what the worst are chosen by.
    let mut worst: Vec<(Class, f64, usize)> = Vec::new();
    for (i, (&e, &a)) in expected.iter().zip(actual).enumerate() {
        if same(e, a, nan_bits) {
            verdict.tally.same += 1;
            continue;
        }
        let soft = allowed.soft(i);
        let (error, ulp) = distance(e, a);
        let special = special_of(a);
        let rows = settings.rows.at(i);
        if rows == Some(Class::Explained) {
            verdict.tally.explained += 1;
            continue;
        }
        let class = match class_of(e, a, allowed, i) {
            Class::Undecided | Class::Wrong if settings.explained_by_another(a, i) => {
                verdict.tally.explained += 1;
                verdict.by_another += 1;
                continue;
            }
            class => rows.unwrap_or(class),
        };
        match class {
            Class::Same => {}
            Class::Explained => {
                verdict.tally.explained += 1;
                // One that is no number, or explained besides, takes no share of a bound.
                if special != Special::NONE || soft.is_infinite() || error > soft {
                    continue;
                }
                let worst = Worst { error, bound: soft, ulp };
                if verdict.worst_explained.is_none_or(|w| worst.share() > w.share()) {
                    verdict.worst_explained = Some(worst);
                }
            }
            Class::Undecided => verdict.tally.undecided += 1,
            Class::Wrong => {
                verdict.tally.wrong += 1;
                if verdict.wrong_at.len() < ArrayVerdict::MAX_KEPT_INDICES {
                    verdict.wrong_at.push(i);
                }
            }
        }
        verdict.weak |= class == Class::Undecided || soft > WEAK_BOUND_SHARE * magnitude(e);
        verdict.histogram[bucket(ulp)] += 1;
        verdict.multiples[multiple(error, soft)] += 1;
        let weight = error / soft.max(f64::MIN_POSITIVE);
        worst.push((class, weight, i));
        if worst.len() >= 4 * ArrayVerdict::MAX_KEPT_ELEMENTS {
            keep(&mut worst);
        }
    }
    keep(&mut worst);
    verdict.worst = worst
        .into_iter()
        .map(|(class, _, i)| {
            let (error, ulp) = distance(expected[i], actual[i]);
            let (soft, hard) = (allowed.soft(i), allowed.hard(i));
            Differing {
                index: index_of(i, &shape.dims),
                expected: text_of(expected[i]),
                actual: text_of(actual[i]),
                error: error.is_finite().then_some(error),
                ulp,
                bound: soft.is_finite().then_some(soft),
                hard_bound: hard.is_finite().then_some(hard),
                class,
            }
        })
        .collect();
    verdict
}

/// A number, of a complex type its real part.
fn real_of<T: Number>(x: T) -> f64 {
    match x.parts() {
        (Part::Float { value, .. }, _) => value,
        (Part::Int(value), _) => value as f64,
    }
}

/// What an element is that is not finite: of a complex one, all that it may be.
fn special_of<T: Number>(x: T) -> Special {
    match x.parts() {
        (Part::Float { value, .. }, None) => Special::of(value),
        (re, Some(im)) if !(re.value().is_finite() && im.value().is_finite()) => Special::ANY,
        (_, _) => Special::NONE,
    }
}

fn keep(worst: &mut Vec<(Class, f64, usize)>) {
    // The first indices of equals, so that a report does not depend on when the list was truncated.
    worst.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
    worst.truncate(ArrayVerdict::MAX_KEPT_ELEMENTS);
}

fn distance<T: Number>(e: T, a: T) -> (f64, Option<u64>) {
    let ((e, f), (a, b)) = (e.parts(), a.parts());
    let (re, u) = error_of(e, a);
    match f.zip(b) {
        None => (re, u),
        Some((f, b)) => {
            let (im, v) = error_of(f, b);
            (re.max(im), u.zip(v).map(|(u, v)| u.max(v)))
        }
    }
}

fn magnitude<T: Number>(e: T) -> f64 {
    if is_nan(e) {
        return 0.0;
    }
    let (re, im) = e.parts();
    re.value().abs().max(im.map_or(0.0, |p| p.value().abs()))
}

fn bucket(ulp: Option<u64>) -> usize {
    match ulp {
        None => 7,
        Some(0..=1) => 0,
        Some(2) => 1,
        Some(3..=4) => 2,
        Some(5..=16) => 3,
        Some(17..=256) => 4,
        Some(257..=65536) => 5,
        Some(_) => 6,
    }
}

fn multiple(error: f64, bound: f64) -> usize {
    if !error.is_finite() || !bound.is_finite() {
        return 7;
    }
    // A bound of 0 has been passed by any error.
    let times = error / bound.max(f64::MIN_POSITIVE);
    [1.0 / 16.0, 0.25, 1.0, 2.0, 16.0, 65536.0].iter().take_while(|&&most| times > most).count()
}

/// What all wrong elements have in common, as a sentence: an index, a range, a stride; `None` if nothing or
/// if all are wrong.
pub fn pattern(dims: &[i64], wrong_at: &[usize], wrong: u64) -> Option<String> {
    let total: i64 = dims.iter().product();
    if wrong < 2 || wrong_at.len() as u64 != wrong || wrong as i64 == total {
        return None;
    }
    let indices: Vec<Vec<i64>> = wrong_at.iter().map(|&i| index_of(i, dims)).collect();
    let mut said = Vec::new();
    for (d, &size) in dims.iter().enumerate() {
        if size < 2 {
            continue;
        }
        let mut at: Vec<i64> = indices.iter().map(|i| i[d]).collect();
        at.sort_unstable();
        at.dedup();
        let (Some(&first), Some(&last)) = (at.first(), at.last()) else { continue };
        if at.len() == 1 {
            said.push(format!("have index {d} = {first}"));
            continue;
        }
        let step = at[1] - first;
        let even = at.windows(2).all(|w| w[1] - w[0] == step);
        if !even || at.len() as i64 == size {
            continue;
        }
        if step > 1 && at.len() > 2 {
            said.push(format!("have index {d} = {first} mod {step}"));
        } else if step == 1 && last == size - 1 {
            said.push(format!("are in the last {} of dimension {d}", at.len()));
        } else if step == 1 && first == 0 {
            said.push(format!("are in the first {} of dimension {d}", at.len()));
        } else if step == 1 {
            said.push(format!("have index {d} from {first} to {last}"));
        }
    }
    (!said.is_empty()).then(|| format!("all wrong elements {}", said.join(" and ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::Dims;

    struct Both(f64, f64);
    impl Allowed for Both {
        fn soft(&self, _: usize) -> f64 {
            self.0
        }
        fn hard(&self, _: usize) -> f64 {
            self.1
        }
    }

    fn array(values: &[f32]) -> ArrayLiteral {
        ArrayLiteral::new(Dims::from_slice(&[values.len() as i64]), Buffer::F32(values.to_vec())).unwrap()
    }

    fn class(e: f32, a: f32, soft: f64, hard: f64) -> Class {
        judge(&array(&[e]), &array(&[a]), &Both(soft, hard), false).unwrap().class()
    }

    #[test]
    fn classes_by_bound() {
        assert_eq!(class(1.0, 1.0, 0.0, 0.0), Class::Same);
        assert_eq!(class(1.0, 1.5, 0.5, 0.5), Class::Explained);
        assert_eq!(class(1.0, 1.5, 0.25, 0.5), Class::Undecided);
        assert_eq!(class(1.0, 1.5, 0.25, 0.4), Class::Wrong);
        assert_eq!(class(1.0, 1.5, f64::INFINITY, f64::INFINITY), Class::Undecided);
    }

    #[test]
    fn zeros_nans_and_infinities() {
        assert_eq!(class(0.0, -0.0, 0.0, 0.0), Class::Wrong);
        assert_eq!(class(0.0, -0.0, 1e-9, 1e-9), Class::Explained);
        assert_eq!(class(f32::NAN, -f32::NAN, 0.0, 0.0), Class::Same);
        assert_eq!(class(f32::NAN, 1.0, 1.0, 1.0), Class::Wrong);
        assert_eq!(class(f32::INFINITY, f32::MAX, 1.0, 1.0), Class::Wrong);
        assert_eq!(class(f32::INFINITY, f32::MAX, 0.0, f64::INFINITY), Class::Undecided);
        let (e, a) = (array(&[f32::NAN]), array(&[f32::from_bits(0x7fc0_0001)]));
        assert!(same_bits(&e, &a, false) && !same_bits(&e, &a, true));
    }

    /// Another run that an engine may do explains what it is near to; it calls nothing wrong.
    #[test]
    fn what_another_run_explains_is_explained() {
        let (e, a) = (array(&[1.0, 1.0, 1.0, 1.0]), array(&[f32::INFINITY, 7.5, 9.0, 1.0]));
        let other = array(&[f32::INFINITY, 8.0, 8.0, 2.0]);
        let of = |bounds: &Both| {
            let other = Other { expected: &other, allowed: &Both(0.5, 0.5) };
            judge_among(&e, &a, bounds, &[other], &Rows::default(), false).unwrap()
        };
        let found = of(&Both(f64::INFINITY, f64::INFINITY));
        assert_eq!(found.tally, Tally { same: 1, explained: 2, undecided: 1, wrong: 0 });
        assert_eq!(found.by_another, 2);
        let found = of(&Both(0.25, 0.25));
        assert_eq!(found.tally, Tally { same: 1, explained: 2, undecided: 0, wrong: 1 });
        let shape = array(&[1.0]);
        let misfit = Other { expected: &shape, allowed: &Both(9.0, 9.0) };
        assert_eq!(
            judge_among(&e, &a, &Both(0.25, 0.25), &[misfit], &Rows::default(), false).unwrap().tally.wrong,
            3
        );
    }

    #[test]
    fn worst_elements_come_first_and_weak_bounds_are_noticed() {
        let e = array(&[1.0, 2.0, 3.0, 4.0]);
        let a = array(&[1.0, 2.5, 13.0, 4.0]);
        let v = judge(&e, &a, &Both(1.0, 1.0), false).unwrap();
        assert_eq!(v.tally, Tally { same: 2, explained: 1, undecided: 0, wrong: 1 });
        assert_eq!((v.worst[0].index.as_slice(), &*v.worst[0].actual), (&[2][..], "13"));
        assert!(v.weak);
        assert_eq!(v.wrong_at, [2]);
        assert_eq!(v.multiples, [0, 0, 1, 0, 1, 0, 0, 0]);
        assert!(judge(&e, &array(&[1.0]), &Both(0.0, 0.0), false).is_err());
    }

    #[test]
    fn patterns_of_wrong_places() {
        let say = |dims: &[i64], at: &[usize]| pattern(dims, at, at.len() as u64);
        assert_eq!(say(&[4, 4], &[1, 5, 9, 13]).unwrap(), "all wrong elements have index 1 = 1");
        assert_eq!(say(&[10], &[8, 9]).unwrap(), "all wrong elements are in the last 2 of dimension 0");
        assert_eq!(say(&[9], &[1, 4, 7]).unwrap(), "all wrong elements have index 0 = 1 mod 3");
        assert_eq!(say(&[3], &[0, 1, 2]), None);
    }
}
