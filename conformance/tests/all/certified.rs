//! The certified tolerance on generated programs: no run that the contracts allow is outside of the hard
//! bounds, and one that decides everything as the reference is inside the soft ones. Runs are the interpreter
//! with sums term by term, its elementary functions moved by the units in the last place that they may be off
//! by.
//!
//! `HLO_PROPERTY_CASES`, `HLO_PROPERTY_SEED` as for generated programs; `HLO_PROPERTY_SEEDS` asks for more
//! inputs for each opcode; `HLO_PROPERTY_STATISTICS` prints how many elements are what.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hlo::attrs::{AttrKey, AttrValue, Attrs, Direction, FftType, SliceDim, Window, WindowDim};
use hlo::builder::{ComputationBuilder, comparator, scalar_region};
use hlo::opcode::{Arity, Numeric};
use hlo::print::{PrintOptions, print_module};
use hlo::{ArrayLiteral, Buffer, BufferOf, ElementType, InstrId, Module, Opcode, Shape, with_buffer};
use hlo_certify::bounds::{Bounds, certify};
use hlo_engines::engine::{self, Allowances, Engine, Inputs, InterpreterEngine, Limits, Outcome, RunOptions};
use hlo_engines::variants;
use hlo_execution::element::Number;
use hlo_generate::generate::{self, program};
use hlo_interp::observe::Site;
use hlo_interp::{Accumulate, Flow, Observer, Tensor, Value};
use libtest_mimic::Trial;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use rustc_hash::FxHashMap;

use crate::failed;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        Trial::test("certified/opcodes", opcodes),
        Trial::test("certified/generated", || {
            let limits =
                generate::Limits { instructions: 12, nesting: 2, devices: 4, ..generate::Limits::small() };
            property(400, 300, limits)
        }),
    ]
}

/// Every elementwise opcode, folds and sorts, on operands that are off, in types whose elementary functions
/// may be.
fn opcodes() -> Result<(), libtest_mimic::Failed> {
    let totals = Totals::default();
    let types = [ElementType::F32, ElementType::BF16, ElementType::F16, ElementType::F64, ElementType::C64];
    let mut tried = rustc_hash::FxHashSet::default();
    for ty in types {
        for &opcode in Opcode::ALL {
            for (a, b) in [
                (Opcode::Exponential, Opcode::Sine),
                (Opcode::Sine, Opcode::Exponential),
                (Opcode::Sine, Opcode::Cosine),
                (Opcode::Logistic, Opcode::Tanh),
            ] {
                let several = matches!(
                    opcode,
                    Opcode::Compare
                        | Opcode::ReducePrecision
                        | Opcode::Convert
                        | Opcode::Reduce
                        | Opcode::ReduceWindow
                        | Opcode::Map
                        | Opcode::Sort
                        | Opcode::Topk
                );
                for variant in 0..if several { 4 } else { 1 } {
                    let Some(module) = one_opcode(opcode, ty, [a, b], variant) else { continue };
                    if hlo::verify::verify(&module).has_errors() {
                        continue;
                    }
                    tried.insert(opcode);
                    for seed in 0..variable("HLO_PROPERTY_SEEDS", 1) {
                        holds(&module, seed * 7919 + variant, &totals).map_err(|e| {
                            let text = print_module(&module, &PrintOptions::source(&module));
                            failed(format!("{e}\ninputs of seed {}\n{text}", seed * 7919 + variant))
                        })?;
                    }
                }
            }
        }
    }
    if std::env::var_os("HLO_PROPERTY_STATISTICS").is_some() {
        totals.print();
    }
    let elementwise = Opcode::ALL.iter().filter(|o| o.is_elementwise() && !tried.contains(o));
    // Those of integers and predicates.
    let left: Vec<&str> = elementwise.map(|o| o.name()).collect();
    let integers = [
        "count-leading-zeros",
        "not",
        "popcnt",
        "and",
        "mulhi",
        "or",
        "shift-left",
        "shift-right-arithmetic",
        "shift-right-logical",
        "stochastic-convert",
        "xor",
    ];
    if left != integers {
        return Err(failed(format!("not tried: {left:?}")));
    }
    Ok(())
}

/// `opcode` of two functions of parameters, in one of several forms.
fn one_opcode(opcode: Opcode, ty: ElementType, [a, b]: [Opcode; 2], variant: u64) -> Option<Module> {
    let mut module = Module::new("opcode");
    let region = match (opcode, variant) {
        (Opcode::Sort, _) => comparator(
            &mut module,
            "less",
            [Direction::Lt, Direction::Gt][variant as usize % 2],
            &[ty, ElementType::S32],
        )
        .ok()?,
        (_, 0) => scalar_region(&mut module, "add", Opcode::Add, ty).ok()?,
        (_, 1) if !ty.is_complex() => scalar_region(&mut module, "maximum", Opcode::Maximum, ty).ok()?,
        (_, 2) => scalar_region(&mut module, "multiply", Opcode::Multiply, ty).ok()?,
        (_, _) => scalar_region(&mut module, "subtract", Opcode::Subtract, ty).ok()?,
    };
    let dims = [4, 5];
    let mut body = ComputationBuilder::new(&mut module, "main");
    let (x, y) = (body.parameter("x", Shape::array(ty, &dims)), body.parameter("y", Shape::array(ty, &dims)));
    let (x, y) = (body.unary(a, x).ok()?, body.unary(b, y).ok()?);
    let attrs = Attrs::new();
    let region = AttrValue::Computation(region);
    let ints = |v: &[i64]| AttrValue::Ints(v.iter().copied().collect());
    let root = match opcode {
        Opcode::Compare => {
            let all = [Direction::Lt, Direction::Eq, Direction::Ge, Direction::Ne];
            body.compare(all[variant as usize], x, y).ok()?
        }
        Opcode::ReducePrecision => {
            let attrs = attrs
                .with(AttrKey::ExponentBits, AttrValue::Int(5))
                .with(AttrKey::MantissaBits, AttrValue::Int(3 + variant as i64));
            body.instr(opcode, &[x], attrs).ok()?
        }
        Opcode::Convert => {
            let to = [ElementType::F32, ElementType::S8, ElementType::F8E4M3FN, ElementType::Pred];
            body.convert(x, to[variant as usize]).ok()?
        }
        Opcode::Select => {
            let p = body.compare(Direction::Lt, x, y).ok()?;
            body.select(p, y, x).ok()?
        }
        Opcode::Clamp => body.instr(opcode, &[x, y, x], attrs).ok()?,
        Opcode::Reduce => {
            let init = body.reshape(x, &[20]).ok()?;
            let init = body.slice(init, &[SliceDim { start: 0, limit: 1, stride: 1 }]).ok()?;
            let init = body.reshape(init, &[]).ok()?;
            let attrs = attrs.with(AttrKey::Dimensions, ints(&[1])).with(AttrKey::ToApply, region);
            body.instr(opcode, &[y, init], attrs).ok()?
        }
        Opcode::ReduceWindow => {
            let init = body.slice(x, &[SliceDim { start: 1, limit: 2, stride: 1 }; 2]).ok()?;
            let init = body.reshape(init, &[]).ok()?;
            let dim = WindowDim { size: 3, stride: 2, pad_low: 1, pad_high: 1, ..WindowDim::default() };
            let window = Window { dims: [dim, dim].into_iter().collect() };
            let attrs = attrs
                .with(AttrKey::Window, AttrValue::Window(Box::new(window)))
                .with(AttrKey::ToApply, region);
            body.instr(opcode, &[y, init], attrs).ok()?
        }
        Opcode::Map => {
            let attrs = attrs.with(AttrKey::Dimensions, ints(&[0, 1])).with(AttrKey::ToApply, region);
            body.instr(opcode, &[x, y], attrs).ok()?
        }
        Opcode::Sort => {
            let i = body.iota(Shape::array(ElementType::S32, &dims), 1).ok()?;
            let attrs = attrs
                .with(AttrKey::Dimensions, ints(&[1]))
                .with(AttrKey::IsStable, AttrValue::Bool(true))
                .with(AttrKey::ToApply, region);
            body.instr(opcode, &[x, i], attrs).ok()?
        }
        Opcode::Topk => {
            let attrs = attrs.with(AttrKey::K, AttrValue::Int(1 + variant as i64));
            body.instr(opcode, &[x], attrs.with(AttrKey::Largest, AttrValue::Bool(variant.is_multiple_of(2))))
                .ok()?
        }
        Opcode::Dot => body.dot(x, y, [&[0], &[0]], [&[], &[]]).ok()?,
        Opcode::Fft if ty.is_complex() => {
            let attrs = attrs
                .with(AttrKey::FftType, AttrValue::FftType(FftType::Fft))
                .with(AttrKey::FftLength, ints(&[5]));
            body.instr(opcode, &[x], attrs).ok()?
        }
        _ if !opcode.is_elementwise() => return None,
        _ if opcode.arity() == Arity::Exactly(1) => body.unary(opcode, x).ok()?,
        _ if opcode.arity() == Arity::Exactly(2) => body.binary(opcode, x, y).ok()?,
        _ => return None,
    };
    body.set_root(root);
    let entry = body.finish();
    module.set_entry(entry);
    Some(module)
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn property(bytes: usize, cases: u32, limits: generate::Limits) -> Result<(), libtest_mimic::Failed> {
    let cases = u32::try_from(variable("HLO_PROPERTY_CASES", u64::from(cases))).unwrap_or(u32::MAX);
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&variable("HLO_PROPERTY_SEED", 1).to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 3000, ..Config::default() };
    let strategy = (proptest::collection::vec(any::<u8>(), 0..bytes), 0..u64::MAX);
    let totals = Totals::default();
    let result = TestRunner::new_with_rng(config, rng).run(&strategy, |(bytes, seed)| {
        holds(&program(&bytes, limits), seed, &totals).map_err(TestCaseError::fail)
    });
    if std::env::var_os("HLO_PROPERTY_STATISTICS").is_some() {
        totals.print();
    }
    match result {
        Ok(()) => Ok(()),
        Err(TestError::Fail(reason, (bytes, seed))) => {
            let module = program(&bytes, limits);
            let text = print_module(&module, &PrintOptions::source(&module));
            Err(failed(format!("{reason}\ninputs of seed {seed}\n{text}")))
        }
        Err(TestError::Abort(reason)) => Err(failed(reason.to_string())),
    }
}

/// How many elements are what.
#[derive(Default)]
pub(crate) struct Totals {
    same: AtomicU64,
    explained: AtomicU64,
    undecided: AtomicU64,
    /// Elements with a soft radius that says nothing, whether they differ or not.
    unknown: AtomicU64,
    programs: AtomicU64,
    by_opcode: Mutex<FxHashMap<String, u64>>,
}

impl Totals {
    /// How many elements that differ are explained, and how many undecided.
    pub(crate) fn differing(&self) -> (u64, u64) {
        (self.explained.load(Ordering::Relaxed), self.undecided.load(Ordering::Relaxed))
    }

    fn print(&self) {
        let get = |x: &AtomicU64| x.load(Ordering::Relaxed);
        let all = get(&self.same) + get(&self.explained) + get(&self.undecided);
        eprintln!(
            "{} programs, {all} elements: {} same, {} explained, {} undecided ({:.3}%), {} without a bound ({:.3}%)",
            get(&self.programs),
            get(&self.same),
            get(&self.explained),
            get(&self.undecided),
            100.0 * get(&self.undecided) as f64 / all as f64,
            get(&self.unknown),
            100.0 * get(&self.unknown) as f64 / all as f64,
        );
        let mut by: Vec<_> = self.by_opcode.lock().unwrap().clone().into_iter().collect();
        by.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        for (name, n) in by.iter().take(40) {
            eprintln!("  {n:8} {name}");
        }
    }
}

const LIMITS: Limits = Limits { fuel: Some(5_000_000), memory_bytes: 1 << 30 };

type Results = Vec<Vec<ArrayLiteral>>;

fn run(
    engine: &dyn Engine,
    module: &Module,
    inputs: &Inputs,
    options: &RunOptions,
    observer: Option<Arc<dyn Observer>>,
) -> Option<Results> {
    let executable = engine.compile(module).ok()?;
    match executable.run(inputs.clone(), options, observer) {
        Outcome::Finished(finished) => Some(finished.results),
        Outcome::Trap(_)
        | Outcome::Unsupported(_)
        | Outcome::WrongInputs(_)
        | Outcome::Crashed(_)
        | Outcome::TimedOut(_) => None,
    }
}

/// Everything that must be true of the bounds of a program.
fn holds(module: &Module, seed: u64, totals: &Totals) -> Result<(), String> {
    let devices = engine::devices::stated(module, None, None).map_err(|f| f.message)?;
    let inputs = Inputs::new(module, &generate::inputs(module, seed)).map_err(|f| f.message)?;
    let options = RunOptions { limits: LIMITS, devices, ..RunOptions::default() };
    let reference = Arc::new(Decisions::default());
    let Some(expected) = run(&InterpreterEngine, module, &inputs, &options, Some(reference.clone())) else {
        return Ok(());
    };
    let bounds = |allowances: Allowances| -> Result<Vec<Vec<Bounds>>, String> {
        let certified =
            certify(module, inputs.clone(), &options, allowances, &mut ()).map_err(|o| format!("{o:?}"))?;
        let (values, bounds): (Results, Vec<Vec<Bounds>>) =
            certified.results.into_iter().map(|device| device.into_iter().unzip()).unzip();
        if values == expected {
            Ok(bounds)
        } else {
            Err("the certified values are not the interpreter's".to_owned())
        }
    };
    totals.programs.fetch_add(1, Ordering::Relaxed);
    let narrow = Allowances { narrow_accumulator: true, narrow_products: true, ..Allowances::STRICT };
    if std::env::var_os("HLO_PROPERTY_STATISTICS").is_some() {
        let mut blame = Blame { module, totals };
        let _ = certify(module, inputs.clone(), &options, narrow, &mut blame);
    }
    // The interpreter, with sums term by term, and its elementary functions off.
    let literal = RunOptions { accumulate: Accumulate::Region, ..options };
    for jitter in 0..2 {
        let moved = Arc::new(Decisions { seed: seed ^ jitter, jitters: jitter > 0, ..Decisions::default() });
        let Some(actual) = run(&InterpreterEngine, module, &inputs, &literal, Some(moved.clone())) else {
            continue;
        };
        let same_decisions = reference.agrees(&moved);
        all_inside(&expected, &actual, &bounds(narrow)?, same_decisions, totals)
            .map_err(|e| format!("run {jitter}: {e}"))?;
    }
    // What a correct compiler may do, two ways for each program.
    let variants = variants::all();
    for k in 0..2 {
        let variant = &variants[(seed as usize).wrapping_add(k * 3) % variants.len()];
        let name = format!("interpreter:{}", variant.pass.name());
        let engine = engine::by_name(&name).map_err(|f| f.message)?;
        let Some(actual) = run(&*engine, module, &inputs, &options, None) else { continue };
        all_inside(&expected, &actual, &bounds(engine.allowances())?, false, totals)
            .map_err(|e| format!("{name}: {e}"))?;
    }
    Ok(())
}

/// Whether what an engine makes of a program is inside the bounds by the engine's liberties.
pub(crate) fn other_engine_inside(
    module: &Module,
    engine: &dyn Engine,
    seed: u64,
    totals: &Totals,
) -> Result<(), String> {
    let inputs = Inputs::new(module, &generate::inputs(module, seed)).map_err(|f| f.message)?;
    let options = RunOptions { limits: LIMITS, ..RunOptions::default() };
    let allowances = engine.allowances();
    let certified =
        certify(module, inputs.clone(), &options, allowances, &mut ()).map_err(|o| format!("{o:?}"))?;
    let (expected, bounds): (Results, Vec<Vec<Bounds>>) =
        certified.results.into_iter().map(|device| device.into_iter().unzip()).unzip();
    let actual = run(engine, module, &inputs, &options, None).ok_or("the engine gives nothing")?;
    all_inside(&expected, &actual, &bounds, false, totals)
}

fn all_inside(
    expected: &Results,
    actual: &Results,
    bounds: &[Vec<Bounds>],
    same_decisions: bool,
    totals: &Totals,
) -> Result<(), String> {
    for (device, (bounds, (expected, actual))) in bounds.iter().zip(expected.iter().zip(actual)).enumerate() {
        for (k, (bounds, (expected, actual))) in bounds.iter().zip(expected.iter().zip(actual)).enumerate() {
            inside(expected, actual, bounds, same_decisions, totals)
                .map_err(|e| format!("device {device}, result {k}: {e}"))?;
        }
    }
    Ok(())
}

/// Whether an array is within its bounds.
fn inside(
    expected: &ArrayLiteral,
    actual: &ArrayLiteral,
    bounds: &Bounds,
    same_decisions: bool,
    totals: &Totals,
) -> Result<(), String> {
    let add = |to: &AtomicU64| to.fetch_add(1, Ordering::Relaxed);
    if expected.dims != actual.dims {
        let known =
            bounds.hard.is_zero() || (0..expected.buffer.len()).any(|i| bounds.hard.at(i).is_finite());
        return if known { Err("other sizes".to_owned()) } else { Ok(()) };
    }
    let (a, b) = (parts(&expected.buffer), parts(&actual.buffer));
    for (i, (x, y)) in a.iter().zip(&b).enumerate() {
        if x.2 == y.2 || x.0.is_nan() && y.0.is_nan() && x.1.to_bits() == y.1.to_bits() {
            add(&totals.same);
            continue;
        }
        let difference = |p: f64, q: f64| {
            if p == q || p.is_nan() && q.is_nan() {
                0.0
            } else if (p - q).is_nan() {
                f64::INFINITY
            } else {
                (p - q).abs()
            }
        };
        let d = difference(x.0, y.0).max(difference(x.1, y.1));
        let (soft, hard) = (bounds.soft.at(i), bounds.hard.at(i));
        if soft > 0.0 && d <= soft && soft.is_finite() {
            add(&totals.explained);
        } else if hard > 0.0 && d <= hard {
            add(&totals.undecided);
            if same_decisions && soft.is_finite() {
                return Err(format!(
                    "element {i} is {y:?} instead of {x:?}, off by {d:e}; all decisions are the same, but the soft radius is {soft:e} (hard {hard:e})"
                ));
            }
        } else {
            return Err(format!(
                "element {i} is {y:?} instead of {x:?}, off by {d:e}; the radii are {soft:e} and {hard:e}"
            ));
        }
    }
    Ok(())
}

fn parts(buffer: &Buffer) -> Vec<(f64, f64, u128)> {
    with_buffer!(buffer, v => v.iter().map(|&x| {
        let (re, im) = Number::parts(x);
        (re.value(), im.map_or(0.0, |p| p.value()), hlo::Bits::bits(x))
    }).collect())
}

/// Records what was decided, and moves elementary functions.
#[derive(Debug, Default)]
struct Decisions {
    seed: u64,
    jitters: bool,
    decided: Mutex<FxHashMap<(InstrId, u64, hlo_interp::Device), Vec<u64>>>,
}

impl Decisions {
    fn agrees(&self, other: &Decisions) -> bool {
        *self.decided.lock().unwrap() == *other.decided.lock().unwrap()
    }

    fn record(&self, site: &Site<'_>, value: &Value) {
        let opcode = site.instr().opcode;
        let step = matches!(
            opcode,
            Opcode::Floor | Opcode::Ceil | Opcode::Sign | Opcode::RoundNearestAfz | Opcode::RoundNearestEven
        );
        // What they decide does not show in their results alone.
        let opaque = matches!(
            opcode,
            Opcode::Sort
                | Opcode::Topk
                | Opcode::SelectAndScatter
                | Opcode::Remainder
                | Opcode::Map
                | Opcode::Reduce
                | Opcode::ReduceWindow
                | Opcode::Scan
                | Opcode::BitcastConvert
                | Opcode::Power
                | Opcode::Atan2
                | Opcode::Scatter
        );
        let mut key = Vec::new();
        for t in value.arrays() {
            let ty = t.element_type();
            for (i, (re, im, bits)) in parts(t.buffer()).into_iter().enumerate() {
                let discrete = !(ty.is_float() || ty.is_complex());
                if discrete || step {
                    key.push(bits as u64);
                } else if opaque {
                    key.push((bits as u64) ^ (i as u64) << 1);
                } else if ty.is_complex() {
                    key.push(
                        u64::from(re < 0.0) << 2
                            | u64::from(im < 0.0) << 3
                            | u64::from(re.is_finite())
                            | u64::from(im.is_finite()) << 1,
                    );
                } else {
                    key.push(u64::from(re.is_finite()) | u64::from(re.is_nan()) << 1);
                }
            }
        }
        self.decided.lock().unwrap().insert((site.id, site.execution, site.device), key);
    }
}

impl Observer for Decisions {
    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        if site.nesting > 0 {
            return Flow::Continue;
        }
        let instr = site.instr();
        if self.jitters
            && let Value::Array(t) = result
            && instr.opcode.is_elementwise()
        {
            let complex = instr
                .operands()
                .iter()
                .find_map(|&o| site.module.instr(o).shape.element_type().filter(|t| t.is_complex()));
            let ty = complex.unwrap_or(t.element_type());
            if let Numeric::Ulp(n) | Numeric::Normwise(n) = instr.opcode.numeric(ty) {
                let moved = Value::Array(self.moved(t, n, site));
                self.record(site, &moved);
                return Flow::Replace(moved);
            }
        }
        self.record(site, result);
        Flow::Continue
    }
}

impl Decisions {
    fn moved(&self, t: &Tensor, ulps: u8, site: &Site<'_>) -> Tensor {
        let ty = t.element_type();
        let digits = match ty.real_part() {
            ElementType::F64 => 53,
            ElementType::F32 => 24,
            ElementType::F16 => 11,
            ElementType::BF16 => 8,
            _ => return t.clone(),
        };
        let least = match ty.real_part() {
            ElementType::F64 => -1022,
            ElementType::F32 | ElementType::BF16 => -126,
            _ => -14,
        };
        let mut i = site.execution ^ (site.id.index() as u64) << 20 ^ self.seed;
        let mut next = || {
            i = hlo::elided::splitmix64(i);
            i
        };
        let buffer = with_buffer!(t.buffer(), v => BufferOf::wrap(v.iter().map(|&x| {
            let (re, im) = Number::parts(x);
            let (re, im) = (re.value(), im.map_or(0.0, |p| p.value()));
            let size = re.hypot(im);
            if !size.is_finite() || next() % 3 == 0 {
                return x;
            }
            let exponent = ((size.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(least);
            let ulp = 2f64.powi(exponent - digits + 1);
            let step = |r: u64| (r % (2 * u64::from(ulps) + 1)) as f64 - f64::from(ulps);
            // Of a complex number at most that many units in modulus.
            let (a, b) = (step(next()), if ty.is_complex() { step(next()) } else { 0.0 });
            let (a, b) = if ty.is_complex() { (a * 0.7, b * 0.7) } else { (a, b) };
            let moved = (re + a * ulp, im + b * ulp);
            let largest = match ty.real_part() { ElementType::F64 => f64::MAX, ElementType::F32 => f64::from(f32::MAX), ElementType::BF16 => 3.38e38, _ => 65504.0 };
            // Of real numbers zeros stay, and no other one gets the other sign.
            let crosses = !ty.is_complex() && (re == 0.0 || (moved.0 < 0.0) != (re < 0.0));
            if crosses || moved.0.abs().max(moved.1.abs()) > largest { x } else { Number::from_parts(moved.0, moved.1) }
        }).collect()));
        Tensor::new(t.dims(), buffer)
    }
}

/// Which instructions lose the bounds.
struct Blame<'a> {
    module: &'a Module,
    totals: &'a Totals,
}

impl hlo_certify::bounds::Visitor for Blame<'_> {
    fn value(
        &mut self,
        at: &hlo_certify::bounds::At,
        value: &Value,
        bounds: &hlo_certify::bounds::Tree,
    ) -> bool {
        let opcode = self.module.instr(at.instr).opcode;
        let mut lost = (0, 0, 0);
        for (t, b) in value.arrays().into_iter().zip(bounds.arrays()) {
            for i in 0..t.len() {
                lost.0 += u64::from(b.soft.at(i).is_infinite());
                lost.1 += u64::from(b.soft.at(i).is_finite() && b.hard.at(i).is_infinite());
                lost.2 += 1;
            }
        }
        self.totals.unknown.fetch_add(lost.0, Ordering::Relaxed);
        let mut by = self.totals.by_opcode.lock().unwrap();
        if lost.0 > 0 {
            *by.entry(format!("{opcode} soft")).or_default() += lost.0;
        }
        if lost.1 > 0 {
            *by.entry(format!("{opcode} hard")).or_default() += lost.1;
        }
        // Blame the instruction itself, not those before it.
        true
    }
}
