//! Evaluating a [`Program`] some rows at a time, on all threads.
//!
//! Intervals have the ends that the same operation of f32 gives at the ends of its operands: it is monotone
//! in each, and so is rounding, so what an engine gives of something between them is between these. A number
//! of no kind says that nothing is known, and whatever is computed from it.
//!
//! **Invariants:** an end is infinite only where both are; an exact node's ends are its value. Which rows are
//! evaluated together depends on the program alone.

use hlo::attrs::Direction;
use hlo::{ConstantValue, ElementType, InstrId, Module, Opcode};
use hlo_arithmetic::scalar::{Elementary, Float};
use hlo_execution::format::Format;
use hlo_execution::verdict::same;
use hlo_interp::{Tensor, Value};
use hlo_perturbation::gamma;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::super::Settings;
use super::super::probe::Probe;
use super::program::{Fold, Node, Program, Size, What};
use super::{Worst, fold, products};

/// Elements that are evaluated together, if a row has no more.
const BLOCK: usize = 1 << 10;

/// What a node's elements were found to be before.
enum Given {
    /// Numbers of f32.
    Floats(Tensor),
    /// Predicates, 0 or 1.
    Flags(Vec<f32>),
    /// Intervals.
    Ends(Vec<f32>, Vec<f32>),
}

impl Given {
    fn new(tensor: Tensor) -> Option<Given> {
        match tensor.element_type() {
            ElementType::F32 => Some(Given::Floats(tensor)),
            ElementType::Pred => {
                let flags = tensor.slice::<bool>().iter().map(|&p| f32::from(u8::from(p)));
                Some(Given::Flags(flags.collect()))
            }
            _ => None,
        }
    }

    /// Both ends.
    fn ends(&self) -> (&[f32], &[f32]) {
        match self {
            Given::Floats(t) => (t.slice::<f32>(), t.slice::<f32>()),
            Given::Flags(flags) => (flags, flags),
            Given::Ends(low, high) => (low, high),
        }
    }
}

/// Exact values of whole instructions, each until its last use.
struct Wholes<'a> {
    program: &'a Program,
    module: &'a Module,
    settings: &'a Settings,
    operands: &'a [Value],
    known: FxHashMap<InstrId, Tensor>,
    /// How often each is still asked for.
    uses: FxHashMap<InstrId, usize>,
}

impl Wholes<'_> {
    /// Says that a value will be asked for once more.
    fn expect(&mut self, id: InstrId) {
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            let uses = self.uses.entry(id).or_default();
            *uses += 1;
            if *uses == 1 && !self.program.operands.contains_key(&id) {
                todo.extend(self.module.instr(id).operands());
            }
        }
    }

    /// A value that was expected.
    fn value(&mut self, id: InstrId) -> Option<Tensor> {
        let left = self.uses.get_mut(&id).map_or(0, |uses| {
            *uses = uses.saturating_sub(1);
            *uses
        });
        let known = if left == 0 { self.known.remove(&id) } else { self.known.get(&id).cloned() };
        if known.is_some() {
            return known;
        }
        let instr = self.module.instr(id);
        let found = if let Some(&number) = self.program.operands.get(&id) {
            self.operands.get(number)?.as_array()?.clone()
        } else if instr.opcode == Opcode::Constant {
            let Some(ConstantValue::Given(literal)) = instr.attrs.constant_value() else { return None };
            Value::from_shared_literal(literal).as_array()?.clone()
        } else {
            let args = instr.operands().iter().map(|&o| Some(Value::Array(self.value(o)?)));
            let args = args.collect::<Option<Vec<Value>>>()?;
            let probe = Probe::retyped(self.module, instr, &|ty| ty)?;
            probe.run(self.settings, args)?.as_array()?.clone()
        };
        let fits = instr
            .shape
            .as_array()
            .is_some_and(|a| a.dims[..] == *found.dims() && a.element_type == found.element_type());
        if fits && left > 0 {
            self.known.insert(id, found.clone());
        }
        fits.then_some(found)
    }
}

/// The ends of the elements of a node, some rows of it.
#[derive(Default)]
struct Ends {
    low: Vec<f32>,
    /// Empty of a node that is exact.
    high: Vec<f32>,
}

/// The worst of the results that differ, if they are all within their intervals.
pub(super) fn explained(
    program: &Program,
    module: &Module,
    settings: &Settings,
    operands: &[Value],
    (expected, actual, differs): (&[&Tensor], &[&Tensor], &[bool]),
    nan_bits: bool,
) -> Option<Worst> {
    if program.results.len() != expected.len() {
        return None;
    }
    let mut needed = vec![false; program.nodes.len()];
    let mut checked = Vec::new();
    for (k, &differs) in differs.iter().enumerate().filter(|(_, differs)| **differs) {
        let node = program.results[k].filter(|&n| differs && !program.nodes[n].exact)?;
        needed[node] = true;
        checked.push((node, expected[k].slice::<f32>(), actual[k].slice::<f32>()));
    }
    checked.iter().for_each(|&(node, ..)| need(&program.nodes, node, &mut needed));
    let (known, uses) = (FxHashMap::default(), FxHashMap::default());
    let mut wholes = Wholes { program, module, settings, operands, known, uses };
    for (node, _) in program.nodes.iter().zip(&needed).filter(|(_, needed)| **needed) {
        match &node.what {
            What::Whole(id, _) => wholes.expect(*id),
            What::Found(id) => module.instr(*id).operands().iter().for_each(|&o| wholes.expect(o)),
            _ => {}
        }
    }
    let mut given: Vec<Option<Given>> = Vec::with_capacity(needed.len());
    for (node, &needed) in program.nodes.iter().zip(&needed) {
        given.push(match &node.what {
            What::Whole(id, _) if needed => Some(Given::new(wholes.value(*id)?)?),
            What::Found(id) if needed => {
                let instr = module.instr(*id);
                let args = instr.operands().iter().map(|&o| wholes.value(o)).collect::<Option<Vec<_>>>()?;
                let (low, high) = match instr.opcode {
                    Opcode::Dot => products::intervals(instr, &args)?,
                    _ => fold::intervals(instr, &args)?,
                };
                Some(Given::Ends(low, high))
            }
            _ => None,
        });
    }
    let run = Run { program, given: &given, needed: &needed };
    let each = (BLOCK / program.inner.max(1)).max(1);
    let blocks = program.rows.div_ceil(each);
    let scratch = || program.nodes.iter().map(|_| Ends::default()).collect::<Vec<Ends>>();
    let block = |scratch: &mut Vec<Ends>, block: usize| {
        let rows = block * each..((block + 1) * each).min(program.rows);
        run.evaluate(rows.clone(), scratch)?;
        let mut worst = Worst::NONE;
        for &(node, expected, actual) in &checked {
            let range = run.range(node, &rows);
            if block > 0 && program.nodes[node].size == Some(Size::One) {
                continue;
            }
            let (low, high) = run.ends(node, &rows, scratch);
            worst = worst.or(within(&expected[range.clone()], &actual[range], low, high, nan_bits)?);
        }
        Some(worst)
    };
    (0..blocks)
        .into_par_iter()
        .with_min_len(8)
        .map_init(scratch, block)
        .try_reduce(|| Worst::NONE, |a, b| Some(a.or(b)))
}

fn need(nodes: &[Node], i: usize, needed: &mut [bool]) {
    let mut todo = vec![i];
    while let Some(i) = todo.pop() {
        let operands: &[usize] = match &nodes[i].what {
            What::Whole(..) | What::Found(_) => &[],
            What::Same(a) | What::Spread(a) | What::Unary(_, a) => &[*a],
            What::Binary(_, a, b) | What::Compare(_, a, b) | What::Fold(_, a, b) => &[*a, *b],
            What::Select(a, b, c) => &[*a, *b, *c],
        };
        for &o in operands {
            if !std::mem::replace(&mut needed[o], true) {
                todo.push(o);
            }
        }
    }
}

/// The worst of some elements, if all that differ are between their ends.
fn within(expected: &[f32], actual: &[f32], low: &[f32], high: &[f32], nan_bits: bool) -> Option<Worst> {
    let mut worst = Worst::NONE;
    for ((&e, &a), (&l, &h)) in expected.iter().zip(actual).zip(low.iter().zip(high)) {
        if same(e, a, nan_bits) {
            continue;
        }
        if !(l <= a && a <= h && l < h && (h - l).is_finite() && e.is_finite()) {
            return None;
        }
        let (e64, a64) = (f64::from(e), f64::from(a));
        let bound = (f64::from(h) - e64).max(e64 - f64::from(l));
        worst = worst.or(Worst::of(e, a, (e64 - a64).abs(), bound));
    }
    Some(worst)
}

/// A program and what was found before.
struct Run<'a> {
    program: &'a Program,
    given: &'a [Option<Given>],
    needed: &'a [bool],
}

impl Run<'_> {
    /// Which elements of a node belong to rows.
    fn range(&self, node: usize, rows: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        match self.program.nodes[node].size {
            Some(Size::All) => rows.start * self.program.inner..rows.end * self.program.inner,
            Some(Size::Rows) => rows.clone(),
            Some(Size::One) | None => 0..1,
        }
    }

    /// The ends of the elements of a node.
    fn ends<'e>(
        &'e self,
        node: usize,
        rows: &std::ops::Range<usize>,
        scratch: &'e [Ends],
    ) -> (&'e [f32], &'e [f32]) {
        let of = &self.program.nodes[node];
        match (&of.what, &self.given[node]) {
            (What::Whole(_, None) | What::Found(_), Some(given)) => {
                let range = self.range(node, rows);
                let (low, high) = given.ends();
                (&low[range.clone()], &high[range])
            }
            _ => {
                let Ends { low, high } = &scratch[node];
                (low, if of.exact { low } else { high })
            }
        }
    }

    /// Evaluates the nodes that are needed.
    fn evaluate(&self, rows: std::ops::Range<usize>, scratch: &mut [Ends]) -> Option<()> {
        for node in (0..self.program.nodes.len()).filter(|&n| self.needed[n]) {
            let mut ends = std::mem::take(&mut scratch[node]);
            self.node(node, &rows, scratch, &mut ends);
            scratch[node] = ends;
        }
        Some(())
    }

    fn node(&self, number: usize, rows: &std::ops::Range<usize>, scratch: &[Ends], out: &mut Ends) {
        let node = &self.program.nodes[number];
        let range = self.range(number, rows);
        let n = range.len();
        let of = |node: usize| self.ends(node, rows, scratch);
        let exact = node.exact;
        match &node.what {
            What::Whole(_, None) | What::Found(_) => return,
            _ => {
                out.low.resize(n, 0.0);
                out.high.resize(if exact { 0 } else { n }, 0.0);
            }
        }
        let Ends { low, high } = out;
        match node.what {
            What::Whole(_, None) | What::Found(_) => {}
            What::Whole(_, Some(ref strides)) => {
                if let Some(given) = &self.given[number] {
                    gathered(given.ends().0, strides, range.start, low);
                }
            }
            What::Same(a) => {
                low.copy_from_slice(of(a).0);
                if !exact {
                    high.copy_from_slice(of(a).1);
                }
            }
            What::Spread(a) => {
                let inner = if self.program.nodes[a].size == Some(Size::Rows) && node.size == Some(Size::All)
                {
                    self.program.inner
                } else {
                    n
                };
                let spread = |from: &[f32], to: &mut [f32]| {
                    to.chunks_mut(inner.max(1)).zip(from).for_each(|(to, &x)| to.fill(x));
                };
                spread(of(a).0, low);
                spread(of(a).1, high);
            }
            What::Unary(opcode, a) => unary(opcode, node.ulps, of(a), exact, low, high),
            What::Binary(Opcode::Multiply, a, b) if a == b && !exact => square(of(a), low, high),
            What::Binary(opcode, a, b) => binary(opcode, of(a), of(b), exact, low, high),
            What::Compare(direction, a, b) => compare(direction, of(a), of(b), exact, low, high),
            What::Select(p, a, b) => {
                let (p, a, b) = (of(p), of(a), of(b));
                let chosen = |i: usize, a: f32, b: f32| {
                    if p.0[i] != p.1[i] {
                        f32::NAN
                    } else if p.0[i] != 0.0 {
                        a
                    } else {
                        b
                    }
                };
                low.iter_mut().enumerate().for_each(|(i, l)| *l = chosen(i, a.0[i], b.0[i]));
                high.iter_mut().enumerate().for_each(|(i, h)| *h = chosen(i, a.1[i], b.1[i]));
            }
            What::Fold(by, a, init) => {
                let (x, first, inner) = (of(a), of(init).0[0], self.program.inner);
                for row in 0..n {
                    let at = row * inner..(row + 1) * inner;
                    let (l, h) = folded(by, &x.0[at.clone()], &x.1[at], first);
                    low[row] = l;
                    if !exact {
                        high[row] = h;
                    }
                }
            }
        }
    }
}

/// Elements of a broadcast from `start` on.
fn gathered(from: &[f32], strides: &[(usize, usize)], start: usize, to: &mut [f32]) {
    let Some((&(last, step), outer)) = strides.split_last() else {
        to.fill(from[0]);
        return;
    };
    let mut at = start;
    let mut done = 0;
    while done < to.len() {
        let (mut row, column) = (at / last, at % last);
        let mut first = column * step;
        for &(size, stride) in outer.iter().rev() {
            first += row % size * stride;
            row /= size;
        }
        let n = (last - column).min(to.len() - done);
        let part = &mut to[done..done + n];
        match step {
            0 => part.fill(from[first]),
            1 => part.copy_from_slice(&from[first..first + n]),
            _ => part.iter_mut().enumerate().for_each(|(i, x)| *x = from[first + i * step]),
        }
        done += n;
        at += n;
    }
}

/// Zero for a number, NaN for a NaN, so that adding it propagates NaNs.
#[inline(always)]
fn lost(x: f32) -> f32 {
    x * 0.0
}

/// Ends of which one is infinite and not both say nothing.
#[inline(always)]
fn known(low: f32, high: f32) -> (f32, f32) {
    let lost = if low == high { 0.0 } else { lost(low) + lost(high) };
    (low + lost, high + lost)
}

/// The larger one, a NaN if either is, and +0 of zeros.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a > b || a == b && b.is_sign_negative() {
        a
    } else if b >= a {
        b
    } else {
        f32::NAN
    }
}

#[inline(always)]
fn one(a: &[f32], out: &mut [f32], f: impl Fn(f32) -> f32) {
    out.iter_mut().zip(a).for_each(|(o, &a)| *o = f(a));
}

#[inline(always)]
fn two(a: &[f32], b: &[f32], out: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    out.iter_mut().zip(a).zip(b).for_each(|((o, &a), &b)| *o = f(a, b));
}

/// Both ends of each element from those of one operand.
#[inline(always)]
fn both(a: (&[f32], &[f32]), low: &mut [f32], high: &mut [f32], f: impl Fn(f32, f32) -> (f32, f32)) {
    let ends = low.iter_mut().zip(high).zip(a.0.iter().zip(a.1));
    ends.for_each(|((l, h), (&x, &y))| {
        let (low, high) = f(x, y);
        (*l, *h) = known(low, high);
    });
}

/// Both ends of each element from those of two operands.
#[inline(always)]
fn pairs(
    a: (&[f32], &[f32]),
    b: (&[f32], &[f32]),
    low: &mut [f32],
    high: &mut [f32],
    f: impl Fn(f32, f32, f32, f32) -> (f32, f32),
) {
    let operands = a.0.iter().zip(a.1).zip(b.0.iter().zip(b.1));
    low.iter_mut().zip(high).zip(operands).for_each(|((l, h), ((&a, &b), (&c, &d)))| {
        let (low, high) = f(a, b, c, d);
        (*l, *h) = known(low, high);
    });
}

/// The least and the greatest of the corners; NaN if one of them is.
#[inline(always)]
fn hull(x: [f32; 4]) -> (f32, f32) {
    let least = |a: f32, b: f32| if a < b { a } else { b };
    let most = |a: f32, b: f32| if a > b { a } else { b };
    // Infinities of both signs are lost too.
    let lost = lost(x[0]) + lost(x[1]) + lost(x[2]) + lost(x[3]);
    (least(least(x[0], x[1]), least(x[2], x[3])) + lost, most(most(x[0], x[1]), most(x[2], x[3])) + lost)
}

fn binary(
    opcode: Opcode,
    a: (&[f32], &[f32]),
    b: (&[f32], &[f32]),
    exact: bool,
    low: &mut [f32],
    high: &mut [f32],
) {
    let smaller = |a: f32, b: f32| -larger(-a, -b);
    if exact {
        match opcode {
            Opcode::Add => two(a.0, b.0, low, |a, b| a + b),
            Opcode::Subtract => two(a.0, b.0, low, |a, b| a - b),
            Opcode::Multiply => two(a.0, b.0, low, |a, b| a * b),
            Opcode::Divide => two(a.0, b.0, low, |a, b| a / b),
            Opcode::Maximum => two(a.0, b.0, low, larger),
            Opcode::Minimum => two(a.0, b.0, low, smaller),
            _ => low.fill(f32::NAN),
        }
        return;
    }
    match opcode {
        Opcode::Add => pairs(a, b, low, high, |a, b, c, d| (a + c, b + d)),
        Opcode::Subtract => pairs(a, b, low, high, |a, b, c, d| (a - d, b - c)),
        Opcode::Multiply => pairs(a, b, low, high, |a, b, c, d| hull([a * c, a * d, b * c, b * d])),
        Opcode::Divide => pairs(a, b, low, high, |a, b, c, d| {
            let pole = if c <= 0.0 && d >= 0.0 { f32::NAN } else { 0.0 };
            let (low, high) = hull([a / c, a / d, b / c, b / d]);
            (low + pole, high + pole)
        }),
        Opcode::Maximum => pairs(a, b, low, high, |a, b, c, d| (larger(a, c), larger(b, d))),
        Opcode::Minimum => pairs(a, b, low, high, |a, b, c, d| (smaller(a, c), smaller(b, d))),
        _ => {
            low.fill(f32::NAN);
            high.fill(f32::NAN);
        }
    }
}

/// The product of a value with itself.
fn square(a: (&[f32], &[f32]), low: &mut [f32], high: &mut [f32]) {
    both(a, low, high, |l, h| {
        let (x, y) = (l * l, h * h);
        let (least, most) = if x < y { (x, y) } else { (y, x) };
        let lost = lost(x) + lost(y);
        (if l < 0.0 && h > 0.0 { 0.0 } else { least } + lost, most + lost)
    });
}

fn compare(
    direction: Direction,
    a: (&[f32], &[f32]),
    b: (&[f32], &[f32]),
    exact: bool,
    low: &mut [f32],
    high: &mut [f32],
) {
    let holds = |a: f32, b: f32| match direction {
        Direction::Eq => a == b,
        Direction::Ne => a != b,
        Direction::Ge => a >= b,
        Direction::Gt => a > b,
        Direction::Le => a <= b,
        Direction::Lt => a < b,
    };
    if exact {
        two(a.0, b.0, low, |a, b| f32::from(u8::from(holds(a, b))));
        return;
    }
    for (i, (l, h)) in low.iter_mut().zip(high).enumerate() {
        // Decided where the operands do not meet.
        let apart = a.1[i] < b.0[i] || b.1[i] < a.0[i];
        let decided = apart || a.0[i] == a.1[i] && b.0[i] == b.1[i];
        let flag = f32::from(u8::from(holds(a.0[i], b.0[i])));
        (*l, *h) = if decided { (flag, flag) } else { (f32::NAN, f32::NAN) };
    }
}

/// The distance of neighbouring numbers at a magnitude.
#[inline(always)]
fn ulp(x: f32) -> f32 {
    let power = f32::from_bits(x.to_bits() & 0x7f80_0000);
    larger(power * f32::EPSILON, f32::from_bits(1))
}

fn unary(opcode: Opcode, ulps: f32, a: (&[f32], &[f32]), exact: bool, low: &mut [f32], high: &mut [f32]) {
    let inexact = Function { ulps, a, exact };
    match opcode {
        Opcode::Negate if exact => one(a.0, low, |x| -x),
        Opcode::Negate => both(a, low, high, |l, h| (-h, -l)),
        Opcode::Abs if exact => one(a.0, low, f32::abs),
        Opcode::Abs => both(a, low, high, |l, h| {
            let (x, y) = (l.abs(), h.abs());
            let (least, most) = if x < y { (x, y) } else { (y, x) };
            // A NaN is one at both ends.
            (if l <= 0.0 && h >= 0.0 { 0.0 } else { least } + lost(l), most + lost(l))
        }),
        Opcode::Exponential => inexact.rising(low, high, 0.0, Elementary::exponential),
        Opcode::ExponentialMinusOne => inexact.rising(low, high, -1.0, Elementary::exponential_minus_one),
        Opcode::Log => inexact.rising(low, high, f32::NEG_INFINITY, Elementary::log),
        Opcode::LogPlusOne => inexact.rising(low, high, f32::NEG_INFINITY, Elementary::log_plus_one),
        Opcode::Logistic => inexact.rising(low, high, 0.0, Elementary::logistic),
        Opcode::Tanh => inexact.rising(low, high, f32::NEG_INFINITY, Elementary::tanh),
        Opcode::Sqrt => inexact.rising(low, high, 0.0, Elementary::sqrt),
        Opcode::Erf => inexact.rising(low, high, f32::NEG_INFINITY, <f32 as Float>::erf),
        Opcode::Cbrt => inexact.rising(low, high, f32::NEG_INFINITY, Elementary::cbrt),
        Opcode::Rsqrt => inexact.reciprocal_root(low, high),
        _ => {
            low.fill(f32::NAN);
            high.fill(f32::NAN);
        }
    }
}

/// A function that an engine may have some units off.
struct Function<'a> {
    ulps: f32,
    a: (&'a [f32], &'a [f32]),
    exact: bool,
}

impl Function<'_> {
    /// One that rises, and is never less than `least`.
    #[inline(always)]
    fn rising(&self, low: &mut [f32], high: &mut [f32], least: f32, f: impl Fn(f32) -> f32) {
        if self.exact {
            return one(self.a.0, low, f);
        }
        let n = self.ulps;
        for ((l, h), (&x, &y)) in low.iter_mut().zip(high).zip(self.a.0.iter().zip(self.a.1)) {
            let below = f(x);
            let above = if y == x { below } else { f(y) };
            let lower = below - n * ulp(below);
            let lower = if lower < least { least } else { lower };
            (*l, *h) = known(lower, above + n * ulp(above));
        }
    }

    fn reciprocal_root(&self, low: &mut [f32], high: &mut [f32]) {
        let f = |x: f32| Elementary::rsqrt(x);
        if self.exact {
            return one(self.a.0, low, f);
        }
        let n = self.ulps;
        for ((l, h), (&x, &y)) in low.iter_mut().zip(high).zip(self.a.0.iter().zip(self.a.1)) {
            // Zeros of both signs have infinities of both.
            let above = if x > 0.0 { f(x) } else { f32::NAN };
            let below = if y == x { above } else { f(y) };
            (*l, *h) = known(below - n * ulp(below), above + n * ulp(above));
        }
    }
}

/// The ends of a fold of a row.
fn folded(by: Fold, low: &[f32], high: &[f32], first: f32) -> (f32, f32) {
    match by {
        Fold::Maximum => {
            let fold = |x: &[f32]| x.iter().fold(first, |a, &b| larger(a, b));
            (fold(low), fold(high))
        }
        Fold::Minimum => {
            let fold = |x: &[f32]| -x.iter().fold(-first, |a, &b| larger(a, -b));
            (fold(low), fold(high))
        }
        Fold::Sum => {
            let first = f64::from(first);
            let (l, h, magnitude) = sums(low, high);
            concluded(l + first, h + first, magnitude + first.abs(), low.len() as f64 + 1.0)
        }
    }
}

/// The sums of both ends, and of magnitudes.
fn sums(low: &[f32], high: &[f32]) -> (f64, f64, f64) {
    // Side by side, so that the processor adds several at once.
    const LANES: usize = 8;
    let (mut l, mut h, mut m) = ([0.0f64; LANES], [0.0f64; LANES], [0.0f64; LANES]);
    let mut add = |k: usize, x: f32, y: f32| {
        let (x, y) = (f64::from(x), f64::from(y));
        l[k] += x;
        h[k] += y;
        m[k] += if x.abs() > y.abs() { x.abs() } else { y.abs() };
    };
    let (lows, highs) = (low.chunks_exact(LANES), high.chunks_exact(LANES));
    let rest = lows.remainder().iter().zip(highs.remainder());
    for (x, y) in lows.zip(highs) {
        for k in 0..LANES {
            add(k, x[k], y[k]);
        }
    }
    for (&x, &y) in rest {
        add(0, x, y);
    }
    (l.iter().sum(), h.iter().sum(), m.iter().sum())
}

/// The ends of a sum of `count` terms of f32, whose exact value is between two numbers.
pub(super) fn concluded(low: f64, high: f64, magnitude: f64, count: f64) -> (f32, f32) {
    let unit = Format::of(ElementType::F32).map_or(f64::INFINITY, Format::unit_roundoff);
    let off = gamma(count, unit) * magnitude;
    known((low - off) as f32, (high + off) as f32)
}
