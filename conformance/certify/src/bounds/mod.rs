//! The certified tolerance: how far a correct engine's results may be from the reference's, element by
//! element.
//!
//! [`certify`] runs the interpreter and watches it: beside each value goes its [`Bounds`], found from those
//! of the operands and from what the table of opcodes and the [`Allowances`] grant an engine. Values are
//! always the reference's own.
//!
//! - **Soft**: every comparison, selection, index, conversion to an integer, rounding to an integer, order of
//!   a sort, end of a loop, overflow and NaN falls as in the reference; only roundings differ. What differs
//!   by no more is explained.
//! - **Hard**: over every way in which they can fall, given how near to them the values are. What differs by
//!   more is wrong; between the two is undecided. An infinite radius says that nothing is known (and a soft
//!   one explains nothing then).
//! - **Zero** is to the bit, the sign of a zero included, but for the bits of NaNs.
//!
//! **Invariants:** a bound may be too wide, never too narrow: what no rule here covers has an infinite
//! radius. Rules look at reference values and radii alone. `soft <= hard`.
//!
//! - **Limits** ([`limits`]) stand beside radii that are large: what an element is at least and at most.
//!
//! How bounds are found, mostly by running the same instruction on something else ([`probe::Probe`]):
//!
//! | file | instructions | by |
//! |---|---|---|
//! | `walk` | calls, loops, branches, tuples, asynchronous pairs | following the run |
//! | `movement` | what moves elements | the same instruction on numbers of elements instead of elements |
//! | `elementwise` | monotone functions | the same instruction at the ends of the operands' intervals, in their own type |
//! | `operand`, `comparison` | operands of both | what an element may be ([`interval`]) |
//! | `denormals` | functions of known denormal numbers that may be flushed | the same instruction on the number and on zero |
//! | `plain` | the commonest of them on real floats | its own arithmetic at those ends |
//! | `complex` | complex arithmetic | derivatives |
//! | `sums` | dot, convolution, folds by an addition | the same instruction in f64 on magnitudes |
//! | `extremes` | folds by a maximum or a minimum | the same instruction at the ends of the operands' intervals |
//! | `products` | the commonest dots and convolutions | the same instruction in f32 on magnitudes times what each is off by |
//! | `reductions` | reductions by an addition, the commonest | sums of magnitudes in f64, on all threads |
//! | `sum_limits` | reductions by an addition of what has limits | sums of limits |
//! | `relations` | differences and quotients of arrays and their maxima or sums | which elements are of which group |
//! | `multiplied` | folds by a multiplication | the same instruction in f64 on magnitudes |
//! | `log_add_exp` | folds by the logarithm of a sum of exponentials | the number of steps, and the result |
//! | `folds`, `lifted` | other applied computations | the computation on whole arrays, step by step; what does not work element by element, element by element |
//! | `reordered`, `selected` | folds in any order ([`hlo_recognize`], `terms`) | for each component a rule above, or any of its elements |
//! | `merged` | log-sum-exp, norms, rescaled sums, moments, saturated sums in any order | errors of steps |
//! | `reciprocals` | divide by what repeats numbers | the rounding of the reciprocal, where engines may multiply by it |
//! | `constant_terms` | `(x + b) + c` with constants `b` and `c` | the roundings of `x + (b + c)`, where engines may reassociate |
//! | `scattered` | elements of a scatter with one update or none | the operand's bounds, or the computation applied once |
//! | `scans` | scans by other computations than additions | the computation on the slices, one after the other |
//! | `rounded_twice` | elementwise instructions of types of a byte and less | the same instruction in f64, rounded by way of f16 |
//! | `special` | sums, complex arithmetic, transforms, linear systems, quotients | which infinities and NaNs an order or a formula gives |
//! | `windows` | select-and-scatter in any order | which windows have one element that wins against all others |
//! | `order` | sort, topk | sorting the ends of the intervals |
//! | `permuted` | sorts whose comparator leaves an order open | comparing all pairs of a line |
//! | `nans` | bitcast-convert, comparisons and sorts by total order of computed NaNs | any sign and payload |
//! | `linear` | fft, cholesky, triangular-solve, batch-norm | the error recurrence of the algorithm |
//! | `reflectors` | geqrf, orgqr, ormqr of LAPACK | perturbation of factors and of the basis, handed on from the one to the others |
//! | `decompositions` | syevd and gesdd of LAPACK | perturbation of values, and of vectors by the distances of these |
//! | `flushed` | all of them, in a second run | the reference with denormal numbers flushed |
//! | `devices` | collectives | one of the above, on all participants |
//!
//! [`local`] judges what a replay shows by itself, without a run: most of it in intervals of f32 that never
//! leave the cache.
//!
//! What roundings move in numbers alone is [`hlo_perturbation`]'s: sums, steps, solutions and factors.
//!
//! The memory of bounds is counted by `account` against the limit of the run: of an array that is not exact 8
//! bytes an element where soft and hard radii are the same and 16 where not, until its last use; and what a
//! rule needs while it works, which is asked for before. `blocks` keeps the latter small for elementwise
//! instructions. What would pass the limit ends the certification as out of memory.

mod absorbed;
mod account;
mod blocks;
mod comparison;
mod complex;
mod constant_terms;
mod decompositions;
mod denormals;
mod devices;
mod elementwise;
mod extremes;
mod flushed;
mod folds;
mod initial_values;
mod lapack;
mod lexicographic;
mod lifted;
mod linear;
mod local;
mod log_add_exp;
mod merged;
mod movement;
mod multiplied;
mod nans;
mod operand;
mod order;
mod permuted;
mod plain;
mod probe;
mod products;
mod reciprocals;
mod reductions;
mod reflectors;
mod relations;
mod reordered;
mod rounded_twice;
mod rules;
mod scans;
mod scattered;
mod scope;
mod selected;
mod special;
mod sum_limits;
mod sums;
mod terms;
mod walk;
mod windows;

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use hlo::diag::codes;
use hlo::{ArrayLiteral, InstrId, Module};
use hlo_execution::allowances::Allowances;
use hlo_execution::number;
use hlo_execution::run::{Inputs, Outcome, RunOptions, flatten};
use hlo_execution::special::Special;
use hlo_execution::verdict::{Allowed, OpenRow};
use hlo_interp::observe::Call;
use hlo_interp::{Device, ErrorKind, Held, Interpreter, Options, RunError, Value};
use hlo_perturbation::{interval, limits};
use hlo_recognize::merges::Merge;
use hlo_recognize::region::{Component, Region};

use rayon::prelude::*;

use account::Account;
use hlo_system::guard::spawn_deep;
use limits::Limits;
use relations::Relations;

pub use local::{Known, Local, Worst, only_passes_on};
pub use permuted::OpenRows;
pub use scope::Scope;
pub use special::Specials;

/// Elements of a task of a parallel pass.
const PARALLEL: usize = 1 << 14;

/// How far an array's elements may be off; of complex elements, each part.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Radii {
    /// Not at all.
    #[default]
    Zero,
    /// Nothing is known of any element.
    Unknown,
    /// The radius of each element in row-major order: at least 0, perhaps infinite. Neither all 0 nor all
    /// infinite.
    Each(Arc<Vec<f64>>),
    /// The same, and limits of the values themselves.
    Limited(Arc<Limited>),
}

/// Radii with limits: intervals that are not symmetric.
#[derive(Clone, PartialEq, Debug)]
pub struct Limited {
    each: Vec<f64>,
    /// Of each element.
    limits: Vec<Limits>,
    /// Of each element the ranges that it is in one of; none: nothing is known. Only who judges looks at them.
    /// Those of soft radii are explained.
    ranges: Option<Arc<Vec<Ranges>>>,
}

/// Ranges of numbers, both ends included.
type Ranges = Box<[[f64; 2]]>;

impl Radii {
    /// These, as [`Radii::Zero`] or [`Radii::Unknown`] if they are. NaN, the result of arithmetic on
    /// infinities, means the same as infinity.
    pub fn new(mut each: Vec<f64>) -> Radii {
        // Whether there are any that are not 0, NaN, or not infinite.
        let kinds = |part: &[f64]| {
            part.iter().fold([false; 3], |[some, nan, known], &r| {
                [some | (r != 0.0), nan | r.is_nan(), known | (r < f64::INFINITY)]
            })
        };
        let either = |a: [bool; 3], b: [bool; 3]| [a[0] | b[0], a[1] | b[1], a[2] | b[2]];
        let [some, nan, known] = each.par_chunks(PARALLEL).map(kinds).reduce(|| [false; 3], either);
        if !some {
            return Radii::Zero;
        }
        if !known {
            return Radii::Unknown;
        }
        if nan {
            each.iter_mut().filter(|r| r.is_nan()).for_each(|r| *r = f64::INFINITY);
        }
        Radii::Each(Arc::new(each))
    }

    /// These with limits for each element, if any of them says something.
    fn limited(mut each: Vec<f64>, limits: Vec<Limits>) -> Radii {
        if limits.iter().all(|l| l.is_none()) || each.iter().all(|&r| r == 0.0) {
            return Radii::new(each);
        }
        each.iter_mut().filter(|r| r.is_nan()).for_each(|r| *r = f64::INFINITY);
        Radii::Limited(Arc::new(Limited { each, limits, ranges: None }))
    }

    /// Those of other elements in the order of `from`, which gives for each the element of these that it is.
    fn taken(&self, from: impl Iterator<Item = usize> + Clone) -> Radii {
        match self {
            Radii::Zero => Radii::Zero,
            Radii::Unknown => Radii::unknown(from.count()),
            Radii::Each(each) => Radii::new(from.map(|i| each[i]).collect()),
            Radii::Limited(of) => {
                let limits = from.clone().map(|i| of.limits[i]).collect();
                let ranges = of.ranges.as_ref().map(|r| from.clone().map(|i| r[i].clone()).collect());
                Radii::limited(from.map(|i| of.each[i]).collect(), limits).in_ranges(ranges)
            }
        }
    }

    /// Whether they are the same ones, held once.
    fn is_same(&self, other: &Radii) -> bool {
        match (self, other) {
            (Radii::Zero, Radii::Zero) | (Radii::Unknown, Radii::Unknown) => true,
            (Radii::Each(a), Radii::Each(b)) => Arc::ptr_eq(a, b),
            (Radii::Limited(a), Radii::Limited(b)) => Arc::ptr_eq(a, b),
            (_, _) => false,
        }
    }

    /// Each radius and limit of another array of the same size computed from these.
    fn mapped(&self, n: usize, of: impl Fn(usize, f64, Limits) -> (f64, Limits)) -> Radii {
        let mut each = Vec::with_capacity(n);
        // Few arrays have any: a list is made for the first element that does.
        let mut all_limits: Vec<Limits> = Vec::new();
        for i in 0..n {
            let (radius, limits) = of(i, self.at(i), self.limits(i));
            if !limits.is_none() {
                all_limits.resize(n, Limits::NONE);
                all_limits[i] = limits;
            }
            each.push(radius);
        }
        if all_limits.is_empty() { Radii::new(each) } else { Radii::limited(each, all_limits) }
    }

    /// The limits of an element.
    fn limits(&self, i: usize) -> Limits {
        match self {
            Radii::Zero | Radii::Unknown | Radii::Each(_) => Limits::NONE,
            Radii::Limited(of) => of.limits[i],
        }
    }

    /// The same, of elements that are each in one of some ranges.
    fn in_ranges(self, ranges: Option<Vec<Ranges>>) -> Radii {
        let Some(ranges) = ranges.filter(|all| all.iter().any(|r| !r.is_empty())) else { return self };
        let n = ranges.len();
        let limited = match self {
            Radii::Zero => return Radii::Zero,
            Radii::Unknown => {
                Limited { each: vec![f64::INFINITY; n], limits: vec![Limits::NONE; n], ranges: None }
            }
            Radii::Each(each) => {
                Limited { each: Arc::unwrap_or_clone(each), limits: vec![Limits::NONE; n], ranges: None }
            }
            Radii::Limited(of) => Arc::unwrap_or_clone(of),
        };
        Radii::Limited(Arc::new(Limited { ranges: Some(Arc::new(ranges)), ..limited }))
    }

    /// The ranges that elements are in one of, if they are known of any.
    fn ranges(&self) -> Option<&Vec<Ranges>> {
        match self {
            Radii::Zero | Radii::Unknown | Radii::Each(_) => None,
            Radii::Limited(of) => of.ranges.as_deref(),
        }
    }

    /// The same without limits.
    fn without_limits(&self) -> Radii {
        match self {
            Radii::Zero | Radii::Unknown | Radii::Each(_) => self.clone(),
            Radii::Limited(of) => Radii::new(of.each.clone()),
        }
    }

    /// Those of the negated values.
    fn negated(&self) -> Radii {
        match self {
            Radii::Zero | Radii::Unknown | Radii::Each(_) => self.clone(),
            Radii::Limited(of) => {
                let limits = of.limits.iter().map(|l| Limits { low: -l.high, high: -l.low, ..*l });
                Radii::limited(of.each.clone(), limits.collect())
            }
        }
    }

    /// Whether a real number or NaN is within the limits of an element, or of the real part of a complex one,
    /// if there are any, and in one of its ranges.
    pub fn admits(&self, i: usize, value: f64) -> bool {
        let ranges = self.ranges().map(|all| &all[i]).filter(|ranges| !ranges.is_empty());
        self.limits(i).admit(value) && (ranges.is_none() || self.holds(i, value))
    }

    /// Whether a number is in one of the ranges of an element.
    fn holds(&self, i: usize, value: f64) -> bool {
        self.ranges().is_some_and(|all| all[i].iter().any(|&[low, high]| (low..=high).contains(&value)))
    }

    /// Whether there are limits at all.
    fn has_limits(&self) -> bool {
        matches!(self, Radii::Limited(_))
    }

    /// Of `n` elements, nothing is known.
    pub fn unknown(n: usize) -> Radii {
        if n == 0 { Radii::Zero } else { Radii::Unknown }
    }

    /// That of an element.
    pub fn at(&self, i: usize) -> f64 {
        match self {
            Radii::Zero => 0.0,
            Radii::Unknown => f64::INFINITY,
            Radii::Each(each) => each[i],
            Radii::Limited(of) => of.each[i],
        }
    }

    /// Whether nothing is off.
    pub fn is_zero(&self) -> bool {
        matches!(self, Radii::Zero)
    }

    /// Of the same elements, the larger one each, within the limits of these: limits are true by themselves,
    /// whatever other radii say.
    fn max(self, other: &Radii) -> Radii {
        match (self, other) {
            (Radii::Zero, other) => other.clone(),
            (radii, Radii::Zero) => radii,
            (Radii::Unknown, _) | (Radii::Each(_), Radii::Unknown) => Radii::Unknown,
            (Radii::Each(a), b) => {
                let mut a = Arc::unwrap_or_clone(a);
                a.iter_mut().enumerate().for_each(|(i, a)| *a = a.max(b.at(i)));
                Radii::Each(Arc::new(a))
            }
            (Radii::Limited(a), b) => {
                let mut a = Arc::unwrap_or_clone(a);
                a.each.iter_mut().enumerate().for_each(|(i, a)| *a = a.max(b.at(i)));
                Radii::Limited(Arc::new(a))
            }
        }
    }

    /// The bytes that they occupy.
    fn bytes(&self) -> u64 {
        match self {
            Radii::Zero | Radii::Unknown => 0,
            Radii::Each(each) => size_of_val(&each[..]) as u64,
            Radii::Limited(of) => {
                let of_ranges = |all: &Arc<Vec<Ranges>>| {
                    size_of_val(&all[..]) + all.iter().map(|ranges| size_of_val(&ranges[..])).sum::<usize>()
                };
                let ranges = of.ranges.as_ref().map_or(0, of_ranges);
                (size_of_val(&of.each[..]) + size_of_val(&of.limits[..]) + ranges) as u64
            }
        }
    }
}

/// The bounds of an array.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bounds {
    /// What roundings explain.
    pub soft: Radii,
    /// What roundings may come to if decisions that hang on them fall otherwise.
    pub hard: Radii,
    /// Infinities and NaNs that are explained besides.
    pub specials: Specials,
    /// Where a sort leaves it open which row stands where.
    pub open_rows: OpenRows,
}

impl Bounds {
    /// Of `n` elements, nothing is known.
    pub fn unknown(n: usize) -> Bounds {
        Bounds { soft: Radii::unknown(n), hard: Radii::unknown(n), ..Bounds::default() }
    }

    /// Of these radii: hard ones are at least the soft ones.
    fn of(soft: Radii, hard: Radii) -> Bounds {
        Bounds { hard: hard.max(&soft), soft, ..Bounds::default() }
    }

    /// The radii that are asked for.
    fn radii(&self, mode: rules::Mode) -> &Radii {
        match mode {
            rules::Mode::Soft => &self.soft,
            rules::Mode::Hard => &self.hard,
        }
    }

    /// The same, held once where soft and hard radii do not differ.
    fn shared(self) -> Bounds {
        let Bounds { soft, hard, specials, open_rows } = self;
        let hard = if hard.is_same(&soft) || hard == soft { soft.clone() } else { hard };
        Bounds { soft, hard, specials, open_rows }
    }

    /// The bytes that they occupy.
    fn bytes(&self) -> u64 {
        let hard = if self.soft.is_same(&self.hard) { 0 } else { self.hard.bytes() };
        self.soft.bytes() + hard + self.specials.bytes() + self.open_rows.bytes()
    }

    /// Whether the array is the reference's to the bit.
    pub fn is_exact(&self) -> bool {
        self.hard.is_zero() && self.soft.is_zero()
    }
}

impl Allowed for Bounds {
    fn soft(&self, element: usize) -> f64 {
        self.soft.at(element)
    }

    fn hard(&self, element: usize) -> f64 {
        self.hard.at(element)
    }

    fn special(&self, element: usize) -> Special {
        self.specials.at(element)
    }

    fn admits(&self, element: usize, value: f64) -> bool {
        self.hard.admits(element, value)
    }

    fn explains(&self, element: usize, value: f64) -> bool {
        self.soft.holds(element, value)
    }

    fn open_row(&self, element: usize) -> Option<OpenRow> {
        self.open_rows.at(element)
    }
}

/// The bounds of a value.
#[derive(Clone, Debug)]
pub enum Tree {
    /// Of an array.
    Array(Arc<Leaf>),
    /// Of a tuple.
    Tuple(Arc<[Tree]>),
    /// Of a token.
    Token,
    /// The pending result of an asynchronous collective, and how often that was executed before.
    Promise(InstrId, u64),
}

/// What is known of an array.
#[derive(Clone, Debug, Default)]
pub struct Leaf {
    /// How far it may be off.
    pub bounds: Bounds,
    /// It holds products, moved about perhaps: contraction may leave out their rounding where they are added.
    product: bool,
    /// NaNs in it are results of an instruction, moved about perhaps: their bits are open ([`nans`]).
    computed: bool,
    /// It holds reflectors of a factorization.
    basis: Option<Arc<reflectors::Basis>>,
    /// What is known of its elements beside those of other arrays.
    relations: Option<Arc<Relations>>,
    /// Some uses of it may see the reference's value and others the engine's own: no relation holds for both.
    mixed: bool,
    /// That the account counts it.
    held: Option<Arc<Held>>,
}

impl Leaf {
    fn new(bounds: Bounds, product: bool) -> Leaf {
        Leaf { bounds, product, ..Leaf::default() }
    }

    /// Of elements of the same array, or of the array with other radii: how its values were computed stays
    /// true of them, what relates them to those of other arrays does not.
    fn with_bounds(&self, bounds: Bounds) -> Leaf {
        Leaf { computed: self.computed, ..Leaf::new(bounds, self.product) }
    }

    /// The bytes that it occupies.
    fn bytes(&self) -> u64 {
        self.bounds.bytes() + self.relations.as_ref().map_or(0, |r| r.bytes())
    }
}

impl Tree {
    /// Counts what is new in it.
    fn charge(&mut self, account: &Account) {
        match self {
            Tree::Array(leaf) => {
                if let Some(leaf) = Arc::get_mut(leaf)
                    && leaf.held.is_none()
                    && leaf.bytes() > 0
                {
                    leaf.held = Some(Arc::new(account.hold(leaf.bytes())));
                }
            }
            // What is shared was counted where it was new.
            Tree::Tuple(parts) => {
                let parts = Arc::get_mut(parts).into_iter().flatten();
                parts.for_each(|part| part.charge(account));
            }
            Tree::Token | Tree::Promise(..) => {}
        }
    }

    /// The bounds of all arrays, in the order of [`Value::arrays`].
    pub fn arrays(&self) -> Vec<&Bounds> {
        self.leaves().into_iter().map(|leaf| &leaf.bounds).collect()
    }

    fn leaves(&self) -> Vec<&Arc<Leaf>> {
        match self {
            Tree::Array(leaf) => vec![leaf],
            Tree::Tuple(parts) => parts.iter().flat_map(Tree::leaves).collect(),
            Tree::Token | Tree::Promise(..) => Vec::new(),
        }
    }

    fn exact() -> Tree {
        Tree::Array(Arc::default())
    }
}

/// Where a value comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct At {
    /// The device.
    pub device: Device,
    /// The instruction.
    pub instr: InstrId,
    /// How often it ran before on that device, as [`hlo_interp::observe::Site::execution`] counts.
    pub execution: u64,
    /// The calls that led to it.
    pub calls: Vec<Call>,
}

/// Told of the bounds of every executed instruction of the entry computation and of called ones, parameters
/// included, not of those of computations that are applied to elements.
pub trait Visitor {
    /// Whether to tell it at all.
    fn wants(&self) -> bool {
        true
    }

    /// What it wants to know, if not everything.
    fn scope(&self) -> Option<Arc<Scope>> {
        None
    }

    /// An instruction has this value (tuples: with what is inside) and these bounds. `true`: it counts as
    /// exact from here on, because whoever is compared gets the reference's value there.
    fn value(&mut self, at: &At, value: &Value, bounds: &Tree) -> bool;
}

/// Wants to know nothing.
impl Visitor for () {
    fn wants(&self) -> bool {
        false
    }

    fn value(&mut self, _: &At, _: &Value, _: &Tree) -> bool {
        false
    }
}

/// Reference results with their bounds.
#[derive(Clone, Debug)]
pub struct Certified {
    /// For each device the arrays of the result, tuples flattened, tokens left out.
    pub results: Vec<Vec<(ArrayLiteral, Bounds)>>,
}

/// What rules know besides their instruction.
#[derive(Clone, Debug)]
struct Settings {
    allowances: Allowances,
    options: RunOptions,
    account: Arc<Account>,
    /// This is a run that a rule makes, beside the one that is certified.
    nested: bool,
}

/// What to do where there is not the memory.
const WITHOUT: &str = "this is the run of the reference with bounds, by which results with other bits are judged; it takes some times \
                       the memory of the program: `--reference-platform none` does without, `--max-ulp N` compares without bounds";

/// Runs the reference on a verified program, and bounds what an engine with these allowances may give. The
/// calling thread tells the visitor; the run has a thread of its own. Errors: how the reference run ends
/// without results.
pub fn certify(
    module: &Module,
    inputs: Inputs,
    options: &RunOptions,
    allowances: Allowances,
    visitor: &mut dyn Visitor,
) -> Result<Certified, Outcome> {
    let certified = certify_within(module, inputs, options, allowances, visitor, u64::MAX)?;
    Ok(certified.expect("bounds end for want of effort only where that is limited"))
}

/// The same, as long as it takes no more effort, in elements for which a bound is found. `None`: it takes
/// more.
pub fn certify_within(
    module: &Module,
    inputs: Inputs,
    options: &RunOptions,
    allowances: Allowances,
    visitor: &mut dyn Visitor,
    max_elements: u64,
) -> Result<Option<Certified>, Outcome> {
    // What is known to take more is not begun.
    if max_elements < u64::MAX && account::least_effort(module, &allowances) > max_elements {
        return Ok(None);
    }
    certified(module, inputs, options, allowances, visitor, max_elements, None)
}

/// The reference and its bounds where denormal operands and results of arithmetic count as zeros everywhere:
/// another run that an engine may do to which that is allowed. Its soft bounds explain; that something is
/// wrong does not follow from it. `None`: it flushes nothing, or takes more effort than that, in elements for
/// which a bound is found. Errors: how that run ends without results.
pub fn certify_flushed(
    module: &Module,
    inputs: Inputs,
    options: &RunOptions,
    allowances: Allowances,
    max_elements: u64,
) -> Result<Option<Certified>, Outcome> {
    let Some(flushing) = flushed::Flushing::new(module) else { return Ok(None) };
    let flushing = Arc::new(flushing);
    let run = Some(flushing.clone());
    let found = certified(&flushing.module, inputs, options, allowances, &mut (), max_elements, run)?;
    Ok(found.filter(|_| flushing.has_flushed()))
}

fn certified(
    module: &Module,
    inputs: Inputs,
    options: &RunOptions,
    allowances: Allowances,
    visitor: &mut dyn Visitor,
    max_elements: u64,
    flushing: Option<Arc<flushed::Flushing>>,
) -> Result<Option<Certified>, Outcome> {
    let account = Account::new(inputs.memory_budget(options), options.devices.count());
    let account = Arc::new(account.limited(max_elements));
    let asked_for = visitor.scope();
    let counts = account.clone();
    let settings = Settings { allowances, options: *options, account, nested: false };
    let Inputs { arguments, host } = inputs;
    // Moved, so that what nothing needs any more is gone at its last use.
    let arguments: Vec<Vec<Value>> =
        arguments.into_iter().map(|a| a.into_iter().map(Value::from_literal).collect()).collect();
    let trees = arguments.iter().map(|a| a.iter().map(exact_tree).collect()).collect();
    let (ask, asked) = mpsc::channel();
    let (answer, answered) = mpsc::channel();
    let link = visitor.wants().then(|| walk::Link::new(ask, answered));
    let ended = thread::scope(|scope| {
        let visited = link.is_some();
        let run = move || {
            evaluate(module, arguments, trees, settings, host, Watching { link, scope: asked_for, flushing })
        };
        let spawned = spawn_deep(scope, None, run);
        if spawned.is_ok() {
            for (at, value, tree) in asked {
                // The run waits for the answer; if it has ended it needs none.
                let _ = answer.send(visitor.value(&at, &value, &tree));
            }
        }
        match spawned {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // Who tells nobody can as well run here.
            Err(run) if !visited => run(),
            Err(_) => {
                let message = "no thread for the run of the reference with bounds";
                Err(RunError::outside(ErrorKind::OutOfMemory, codes::OUT_OF_MEMORY, message))
            }
        }
    });
    if counts.exceeded() {
        return Ok(None);
    }
    let devices = ended.map_err(|e| match Outcome::of_interpreter(&e) {
        Outcome::Trap(d) if e.kind == ErrorKind::OutOfMemory => Outcome::Trap(d.note(WITHOUT)),
        outcome => outcome,
    })?;
    let results = devices.into_iter().map(|(value, tree)| {
        let mut arrays = Vec::new();
        flatten(value.into_literal(), &mut arrays);
        arrays.into_iter().zip(tree.arrays().into_iter().cloned()).collect()
    });
    Ok(Some(Certified { results: results.collect() }))
}

/// Who is told of bounds, and which are worked out.
#[derive(Default)]
struct Watching {
    link: Option<walk::Link>,
    /// `None`: all are.
    scope: Option<Arc<Scope>>,
    /// Denormal numbers are flushed in this run.
    flushing: Option<Arc<flushed::Flushing>>,
}

/// Runs a module on arguments with bounds; device by device the result with its bounds.
fn evaluate(
    module: &Module,
    arguments: Vec<Vec<Value>>,
    trees: Vec<Vec<Tree>>,
    settings: Settings,
    host: Arc<dyn hlo_interp::device::host::Host>,
    watching: Watching,
) -> Result<Vec<(Value, Tree)>, RunError> {
    let (options, account) = (settings.options, settings.account.clone());
    let watcher = Arc::new(walk::Watcher::new(module, trees, settings, watching));
    let interpreter = Interpreter::new(
        module,
        account.bound(Options {
            accumulate: options.accumulate,
            fuel: options.limits.fuel,
            seed: options.seed,
            observer: Some(watcher.clone()),
            host,
            custom_calls: hlo_system::loaded::registry(),
            ..Options::default()
        }),
    );
    let finished = interpreter.run_devices(options.devices, arguments);
    // The run was stopped where bounds failed.
    if let Some(error) = account.failure() {
        return Err(error);
    }
    let finished = finished.inspect_err(|e| account.fail(e.clone()))?;
    let results = finished.into_iter().enumerate();
    Ok(results.map(|(device, (value, _))| (value.clone(), watcher.result(module, device, &value))).collect())
}

/// Whether an applied computation gives, of each of its components, that of the accumulators or of the
/// elements, by their order.
pub fn chooses(module: &Module, computation: hlo::ComputationId) -> bool {
    recognized(module, computation).is_some_and(|region| {
        region.choices.iter().all(|choice| choice.table.selects)
            && region.components.iter().enumerate().all(|(i, component)| match *component {
                Component::Choice(_) => true,
                Component::Fold(by, of) => {
                    let extreme = matches!(by, hlo::Opcode::Maximum | hlo::Opcode::Minimum);
                    let real = !region.expression.nodes[of].ty.is_complex();
                    extreme && real && of == region.element(i)
                }
                Component::Merge(_) | Component::Unrecognized => false,
            })
    })
}

/// Whether something is known of a fold by an applied computation in any order: of each of its components.
pub fn recognizes(module: &Module, computation: hlo::ComputationId) -> bool {
    let log_add_exp = hlo::log_add_exp(module, computation).is_some();
    log_add_exp
        || recognized(module, computation).is_some_and(|region| {
            let known =
                |c: &Component| !matches!(c, Component::Unrecognized | Component::Merge(Merge::Difference));
            region.components.iter().all(known)
        })
}

/// Whether a computation that folds may have its accumulators and its elements exchanged: not one that folds a
/// function of elements.
pub fn may_be_exchanged(module: &Module, computation: hlo::ComputationId) -> bool {
    recognized(module, computation)
        .is_none_or(|region| (0..region.components.len()).all(|i| region.may_be_exchanged(i)))
}

/// What an applied computation is recognized as, where it is.
pub fn recognized(module: &Module, computation: hlo::ComputationId) -> Option<Region<'_>> {
    let options = RunOptions::default();
    let account = Arc::new(Account::new(options.memory_budget(0), 1));
    let settings = Settings { allowances: Allowances::STRICT, options, account, nested: true };
    reordered::region(module, computation, true, &settings)
}

/// The bounds of a value that is what it is.
fn exact_tree(value: &Value) -> Tree {
    match value {
        Value::Array(_) => Tree::exact(),
        Value::Tuple(parts) => Tree::Tuple(parts.iter().map(exact_tree).collect()),
        Value::Token | Value::Pending(_) => Tree::Token,
    }
}

/// The bounds of a value of which nothing is known. What is only promised has the shape `shape`.
fn unknown_tree(value: &Value) -> Tree {
    match value {
        Value::Array(t) => Tree::Array(Arc::new(Leaf::new(Bounds::unknown(t.len()), false))),
        Value::Tuple(parts) => Tree::Tuple(parts.iter().map(unknown_tree).collect()),
        Value::Token | Value::Pending(_) => Tree::Token,
    }
}

/// The same with infinite hard radii.
fn undecided_tree(value: &Value, tree: &Tree) -> Tree {
    match (value, tree) {
        (Value::Array(t), Tree::Array(leaf)) => {
            let bounds = Bounds { soft: leaf.bounds.soft.clone(), ..Bounds::unknown(t.len()) };
            Tree::Array(Arc::new(leaf.with_bounds(bounds)))
        }
        (Value::Tuple(parts), Tree::Tuple(trees)) if parts.len() == trees.len() => {
            Tree::Tuple(parts.iter().zip(trees.iter()).map(|(v, t)| undecided_tree(v, t)).collect())
        }
        (Value::Array(_) | Value::Tuple(_) | Value::Token | Value::Pending(_), _) => unknown_tree(value),
    }
}
