//! Elementwise functions of an engine against arbitrary precision, on all operands of a type or on points
//! that hurt.
//!
//! **Invariants:** an expected value is one rounding of the mathematical result ([`crate::Real`]); where a
//! shortcut finds it, the shortcut proves that no other value is possible. Points depend on the seed and
//! their number, so shards of a job add up to the whole, and a finding can be repeated.
//!
//! The shortcut, for the 2^32 operands of `f32`: the interpreter's result in `f64`, which comes from other
//! code than that for `f32`. If it is more than a unit of its last place away from every point half way
//! between two numbers of `f32`, it rounds as the mathematical result does, provided that its error is below
//! that unit; that is checked on points by the job for `f64`. The rest goes to arbitrary precision.

mod points;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hlo::builder::ComputationBuilder;
use hlo::opcode::Numeric;
use hlo::{
    ArrayLiteral, Attrs, Bits, Buffer, BufferOf, Dims, ElementType, Literal, Module, Opcode, Shape,
    with_buffer, with_element_type,
};
use hlo_interp::device::host::NoHost;
use rayon::prelude::*;

use crate::{Functions, binary_opcodes, complex, unary_opcodes};
use hlo_engines::engine::{Engine, Executable, Inputs, InterpreterEngine, Outcome, RunOptions};
use hlo_execution::element::{Number, Part};
use hlo_system::exit::{Exit, Failure};

/// The function that is checked.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The function.
    pub opcode: Opcode,
    /// Of operands and result.
    pub ty: ElementType,
    /// The number of points where not all operands are tried.
    pub points: u64,
    /// Which points.
    pub seed: u64,
    /// Part `shard.0` of `shard.1`, from 0.
    pub shard: (u64, u64),
    /// Where all operands could be tried: the stride of those that are.
    pub stride: u64,
    /// The maximum error of a right result, in units in the last place.
    pub max_ulp: u64,
}

/// A result that is wrong, as raw bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// Of the operands.
    pub operands: Vec<u128>,
    /// The correctly rounded result.
    pub expected: u128,
    /// The engine's result.
    pub actual: u128,
    /// Units in the last place between them; `u64::MAX` where only one is a number.
    pub ulp: u64,
}

/// The result of a job.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// Operands, or pairs of operands.
    pub checked: u64,
    /// The number of them that needed arbitrary precision.
    pub evaluated: u64,
    /// Points that have no reference (a complex function on an axis or at infinity).
    pub skipped: u64,
    /// Results that are off by more than allowed.
    pub wrong: u64,
    /// The largest error, of right results too.
    pub worst_ulp: u64,
    /// Some of the wrong ones, the worst first.
    pub examples: Vec<Wrong>,
}

/// Whether there is a reference for a function of a type.
pub fn has_reference(opcode: Opcode, ty: ElementType) -> bool {
    if ty.is_complex() {
        return complex::unary_opcodes().contains(&opcode) || complex::binary_opcodes().contains(&opcode);
    }
    ty.is_float() && (unary_opcodes().contains(&opcode) || binary_opcodes().contains(&opcode))
}

/// The error that the table of opcodes allows an engine other than the interpreter, in units in the last
/// place. Of complex results by modulus, of which [`Report::worst_ulp`] is no measure: there it is none.
pub fn bound(opcode: Opcode, ty: ElementType) -> u64 {
    match opcode.numeric(ty) {
        Numeric::Ulp(n) => u64::from(n),
        Numeric::Normwise(_) => u64::MAX,
        Numeric::Exact | Numeric::Sum | Numeric::Region | Numeric::Called | Numeric::Opaque => 0,
    }
}

fn operands(opcode: Opcode) -> usize {
    if binary_opcodes().contains(&opcode) { 2 } else { 1 }
}

impl Job {
    /// Whether all operands are tried, and how many cases there are in all shards together.
    pub fn size(&self) -> (bool, u64) {
        let bits = self.ty.bits() * operands(self.opcode) as u32;
        if bits <= 32 && !(operands(self.opcode) == 2 && bits > 16) {
            return (true, (1u64 << bits).div_ceil(self.stride.max(1)));
        }
        (false, self.points)
    }

    /// The operands of case `i`, as bits.
    fn case(&self, all: bool, i: u64) -> [u128; 2] {
        let width = self.ty.bits();
        let i = if all { i * self.stride.max(1) } else { i };
        match (all, operands(self.opcode)) {
            (true, 1) => [u128::from(i), 0],
            (true, _) => [u128::from(i & ((1 << width) - 1)), u128::from(i >> width)],
            (false, 1) => [points::sampled(self.ty, self.seed, i), 0],
            (false, _) => [
                points::sampled(self.ty, self.seed, i),
                points::sampled(self.ty, !self.seed, i.rotate_left(7)),
            ],
        }
    }
}

/// Cases that the engine is given at once.
const CHUNK_CASES: u64 = 1 << 16;

/// Runs a job; `progress` is notified of finished cases. Errors: there is no such reference, or the engine
/// does not run the function.
pub fn run(engine: &dyn Engine, job: &Job, progress: &(dyn Fn(u64) + Sync)) -> Result<Report, Failure> {
    if !has_reference(job.opcode, job.ty) {
        let message = format!("there is no reference for {} of {}", job.opcode, job.ty);
        return Err(Failure::new(Exit::Unsupported, message));
    }
    let (all, total) = job.size();
    let (part, parts) = job.shard;
    let (first, last) = (total * part / parts, total * (part + 1) / parts);
    let chunk = if all { CHUNK_CASES } else { CHUNK_CASES.min(last.saturating_sub(first) / 64 + 1) };
    let report = Mutex::new(Report::default());
    let done = AtomicU64::new(0);
    let chunks = (last - first).div_ceil(chunk);
    let refused = || Failure::new(Exit::Unsupported, format!("{} does not take {}", job.opcode, job.ty));
    let n = usize::try_from(chunk).map_err(|_| refused())?;
    let modules = (program(job.opcode, job.ty, n), program(job.opcode, ElementType::F64, n));
    let module = modules.0.as_ref().ok_or_else(refused)?;
    let executable = engine.compile(module).map_err(Outcome::failure)?;
    let wide = match &modules.1 {
        Some(module) if all && job.ty == ElementType::F32 => {
            Some(InterpreterEngine.compile(module).map_err(Outcome::failure)?)
        }
        _ => None,
    };
    let compiled = Compiled { elements: n, executable: &*executable, wide: wide.as_deref() };
    (0..chunks).into_par_iter().try_for_each_init(Functions::default, |functions, c| {
        let from = first + c * chunk;
        let cases: Vec<[u128; 2]> = (from..last.min(from + chunk)).map(|i| job.case(all, i)).collect();
        let found = check(engine, &compiled, job, functions, &cases)?;
        if let Ok(mut report) = report.lock() {
            report.add(found);
        }
        done.fetch_add(cases.len() as u64, Ordering::Relaxed);
        progress(cases.len() as u64);
        Ok::<(), Failure>(())
    })?;
    let mut report = report.into_inner().unwrap_or_default();
    report.examples.sort_by(|a, b| b.ulp.cmp(&a.ulp).then_with(|| a.operands.cmp(&b.operands)));
    report.examples.truncate(10);
    Ok(report)
}

impl Report {
    fn add(&mut self, other: Report) {
        self.checked += other.checked;
        self.evaluated += other.evaluated;
        self.skipped += other.skipped;
        self.wrong += other.wrong;
        self.worst_ulp = self.worst_ulp.max(other.worst_ulp);
        self.examples.extend(other.examples);
        self.examples.sort_by_key(|w| std::cmp::Reverse(w.ulp));
        self.examples.truncate(20);
    }
}

/// The program of one instruction on `n` elements.
fn program(opcode: Opcode, ty: ElementType, n: usize) -> Option<Module> {
    let mut module = Module::new("function");
    let mut b = ComputationBuilder::new(&mut module, "main");
    let shape = Shape::array(ty, &[i64::try_from(n).ok()?]);
    let parameters: Vec<_> = (0..operands(opcode)).map(|_| b.parameter("x", shape.clone())).collect();
    b.instr(opcode, &parameters, Attrs::new()).ok()?;
    let main = b.finish();
    module.set_entry(main);
    Some(module)
}

fn array(ty: ElementType, bits: impl Iterator<Item = u128>) -> Literal {
    let buffer: Buffer = with_element_type!(ty, T => T::wrap(bits.map(<T as Bits>::from_bits).collect()));
    let dims: Dims = std::iter::once(buffer.len() as i64).collect();
    Literal::Array(ArrayLiteral { dims, buffer: buffer.into() })
}

/// The programs of a job on as many elements as a chunk has, compiled once.
struct Compiled<'a> {
    elements: usize,
    executable: &'a dyn Executable,
    /// The same function of `f64` in the interpreter, for the shortcut.
    wide: Option<&'a dyn Executable>,
}

/// What a program gives; `None`: nothing, which no engine does.
fn results(executable: &dyn Executable, inputs: Vec<Literal>) -> Result<Option<Buffer>, Failure> {
    let inputs = Inputs { arguments: vec![inputs], host: Arc::new(NoHost) };
    let outcome = executable.run(inputs, &RunOptions::default(), None);
    let mut finished = outcome.finished()?;
    Ok(finished.results.pop().and_then(|mut device| device.pop()).map(|r| r.into_buffer()))
}

/// The same of the last chunk, which may be shorter.
fn results_of_rest(
    engine: &dyn Engine,
    opcode: Opcode,
    inputs: Vec<Literal>,
    ty: ElementType,
    n: usize,
) -> Result<Option<Buffer>, Failure> {
    let Some(module) = program(opcode, ty, n) else { return Ok(None) };
    match engine.compile(&module) {
        Ok(executable) => results(&*executable, inputs),
        Err(outcome) => outcome.finished().map(|_| None),
    }
}

fn check(
    engine: &dyn Engine,
    compiled: &Compiled<'_>,
    job: &Job,
    functions: &mut Functions,
    cases: &[[u128; 2]],
) -> Result<Report, Failure> {
    let (opcode, ty) = (job.opcode, job.ty);
    let refused = || Failure::new(Exit::Unsupported, format!("{opcode} does not take {ty}"));
    let whole = cases.len() == compiled.elements;
    let inputs = (0..operands(opcode)).map(|k| array(ty, cases.iter().map(|c| c[k]))).collect();
    let actual = if whole {
        results(compiled.executable, inputs)?
    } else {
        results_of_rest(engine, opcode, inputs, ty, cases.len())?
    };
    let actual = actual.ok_or_else(refused)?;
    let actual: Vec<u128> = with_buffer!(&actual, v => v.iter().map(|x| x.bits()).collect());
    let wide = match compiled.wide {
        Some(executable) => {
            let operands = cases.iter().map(|c| u128::from(f64::from(f32::from_bits(c[0] as u32)).to_bits()));
            let inputs = vec![array(ElementType::F64, operands)];
            if whole {
                results(executable, inputs)?
            } else {
                results_of_rest(&InterpreterEngine, opcode, inputs, ElementType::F64, cases.len())?
            }
        }
        None => None,
    };
    let wide: Option<&[f64]> = wide.as_ref().and_then(<f64 as BufferOf>::slice);
    let mut report = Report::default();
    for (i, (case, &actual)) in cases.iter().zip(&actual).enumerate() {
        report.checked += 1;
        let quick = wide.as_ref().and_then(|w| unambiguous(w[i]));
        let expected = match quick {
            Some(x) => u128::from(x.to_bits()),
            None => {
                report.evaluated += 1;
                match expected(functions, opcode, ty, case) {
                    Some(bits) => bits,
                    None => {
                        report.skipped += 1;
                        continue;
                    }
                }
            }
        };
        let ulp = distance(ty, expected, actual);
        report.worst_ulp = report.worst_ulp.max(ulp);
        if ulp > job.max_ulp {
            report.wrong += 1;
            let operands = case[..operands(opcode)].to_vec();
            report.examples.push(Wrong { operands, expected, actual, ulp });
        }
    }
    report.examples.sort_by_key(|w| std::cmp::Reverse(w.ulp));
    report.examples.truncate(20);
    Ok(report)
}

/// The bits of the correctly rounded result.
pub fn expected(
    functions: &mut Functions,
    opcode: Opcode,
    ty: ElementType,
    case: &[u128; 2],
) -> Option<u128> {
    if ty.is_complex() {
        let [a, b] = case.map(|bits| complex_parts(ty, bits));
        let parts = if operands(opcode) == 2 {
            functions.complex_binary(opcode, a, b)
        } else {
            functions.complex_unary(opcode, a)
        }?;
        let part = ty.real_part();
        return Some(parts[0].bits(part) | parts[1].bits(part) << part.bits());
    }
    let [a, b] = case.map(|bits| real_value(ty, bits));
    let value =
        if operands(opcode) == 2 { functions.binary(opcode, a, b) } else { functions.unary(opcode, a) };
    Some(value?.bits(ty))
}

/// The value of an element of a real type; every float type is part of f64.
pub fn real_value(ty: ElementType, bits: u128) -> f64 {
    with_element_type!(ty, T => <T as Bits>::from_bits(bits).parts().0.value())
}

fn complex_parts(ty: ElementType, bits: u128) -> [f64; 2] {
    let part = ty.real_part();
    [real_value(part, bits & ((1u128 << part.bits()) - 1)), real_value(part, bits >> part.bits())]
}

/// The `f32` that everything within a unit of the last place of `x` rounds to, if there is only one.
fn unambiguous(x: f64) -> Option<f32> {
    if x.is_nan() || x == 0.0 || x.is_infinite() {
        // Zeros and infinities may come from rounding in f64.
        return x.is_nan().then_some(f32::NAN);
    }
    let neighbours = [f64::from_bits(x.to_bits() - 1), x, f64::from_bits(x.to_bits() + 1)].map(|x| x as f32);
    (neighbours[0].to_bits() == neighbours[2].to_bits()).then_some(neighbours[1])
}

/// Units in the last place between two elements; of complex ones the larger of both parts. NaNs are equal.
fn distance(ty: ElementType, expected: u128, actual: u128) -> u64 {
    fn between(a: Part, b: Part) -> u64 {
        match (a, b) {
            (Part::Float { value: x, ordinal: i }, Part::Float { value: y, ordinal: j }) => {
                match (x.is_nan(), y.is_nan()) {
                    (true, true) => 0,
                    (false, false) if x == 0.0 && y == 0.0 => {
                        u64::from(x.is_sign_negative() != y.is_sign_negative())
                    }
                    (false, false) => i.abs_diff(j),
                    _ => u64::MAX,
                }
            }
            (Part::Int(a), Part::Int(b)) => u64::try_from(a.abs_diff(b)).unwrap_or(u64::MAX),
            _ => u64::MAX,
        }
    }
    if expected == actual {
        return 0;
    }
    with_element_type!(ty, T => {
        let (a, b) = (<T as Bits>::from_bits(expected).parts(), <T as Bits>::from_bits(actual).parts());
        let im = match (a.1, b.1) {
            (Some(a), Some(b)) => between(a, b),
            _ => 0,
        };
        between(a.0, b.0).max(im)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use hlo_interp::Observer;

    fn job(opcode: Opcode, ty: ElementType, points: u64) -> Job {
        Job { opcode, ty, points, seed: 7, shard: (0, 1), stride: 1, max_ulp: 0 }
    }

    /// Every function of every float type on points; all operands of the narrowest types.
    #[test]
    fn every_function_is_correctly_rounded_on_points() {
        let mut wrong = Vec::new();
        for &opcode in Opcode::ALL {
            for &ty in ElementType::ALL.iter().filter(|ty| has_reference(opcode, **ty)) {
                let mut job = job(opcode, ty, 60);
                // Of the wide exhaustive ones a shard.
                let (all, total) = job.size();
                if all {
                    let shards = (total / 128).max(1);
                    job.shard = (shards / 3, shards);
                }
                let report = run(&InterpreterEngine, &job, &|_| {}).unwrap();
                assert!(report.checked >= 60.min(total), "{opcode} {ty}");
                if report.wrong > 0 {
                    wrong.push(format!("{opcode} {ty}: {:?}", report.examples[0]));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Compiled functions of `f32` on operands over the whole range, within what the table of opcodes grants.
    #[test]
    fn compiled_functions_are_within_their_bounds() {
        let engine = hlo_engines::engine::by_name("cpu").unwrap();
        let mut wrong = Vec::new();
        for &opcode in unary_opcodes() {
            for ty in [ElementType::F32, ElementType::BF16] {
                let (stride, max_ulp) =
                    (if ty == ElementType::F32 { 1_048_573 } else { 97 }, bound(opcode, ty));
                let report = run(&*engine, &Job { stride, max_ulp, ..job(opcode, ty, 0) }, &|_| {}).unwrap();
                if report.wrong > 0 {
                    wrong.push(format!("{opcode} {ty}: {report:?}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// The check must be able to fail.
    #[test]
    fn a_wrong_engine_is_found() {
        struct OffByOne;
        impl Engine for OffByOne {
            fn name(&self) -> &str {
                "off by one"
            }
            fn supports(&self, _: &Module, _: hlo_interp::Devices) -> Result<(), hlo::Diagnostic> {
                Ok(())
            }
            fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
                Ok(Box::new(Wrong(module)))
            }
        }
        struct Wrong<'m>(&'m Module);
        impl Executable for Wrong<'_> {
            fn run(
                &self,
                inputs: Inputs,
                options: &RunOptions,
                observer: Option<Arc<dyn Observer>>,
            ) -> Outcome {
                let mut outcome = InterpreterEngine.run_watched(self.0, inputs, options, observer);
                if let Outcome::Finished(f) = &mut outcome
                    && let Buffer::F64(v) = Arc::make_mut(&mut f.results[0][0].buffer)
                {
                    let last = v.len() - 1;
                    v[last] = f64::from_bits(v[last].to_bits() ^ 1);
                }
                outcome
            }
        }
        let report = run(&OffByOne, &job(Opcode::Tanh, ElementType::F64, 128), &|_| {}).unwrap();
        assert!(report.wrong > 0 && report.examples[0].ulp == 1, "{report:?}");
    }

    #[test]
    fn a_value_next_to_a_tie_is_ambiguous() {
        let tie = 1.0 + f64::from(f32::EPSILON) / 2.0;
        assert_eq!(unambiguous(tie), None);
        assert_eq!(unambiguous(f64::from_bits(tie.to_bits() + 1)), None);
        // Up to the tie itself everything goes to the even neighbour.
        assert_eq!(unambiguous(f64::from_bits(tie.to_bits() - 1)), Some(1.0));
        assert_eq!(unambiguous(f64::from_bits(tie.to_bits() + 2)), Some(1.0 + f32::EPSILON));
        assert_eq!(unambiguous(1.0), Some(1.0));
        // Half of the smallest denormal.
        assert_eq!(unambiguous(2f64.powi(-150)), None);
        assert_eq!(unambiguous(1e300), Some(f32::INFINITY));
    }
}
