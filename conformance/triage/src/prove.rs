//! Proofs that a recorded value is the one in error.
//!
//! In a program of elementwise operations and data movement every value is one rounding of a function of
//! values before it. Where our result differs from a recorded one, each of those roundings in our run is
//! evaluated again in arbitrary precision ([`hlo_exact`]). **Invariant:** a difference is called proved
//! only if every elementary function, sum, product and quotient of the whole run was evaluated and is
//! correctly rounded; operations that are exact in their type (comparisons, rounding to integers, data
//! movement, integers, conversions) have one right answer and are tested exhaustively elsewhere.

use std::sync::{Arc, Mutex};

use hlo::opcode::NumericRow;
use hlo::{ArrayLiteral, ElementType, InstrId, Module, Opcode, with_buffer};
use hlo_interp::Value;
use hlo_interp::observe::{Flow, Observer, Site};
use rustc_hash::FxHashMap;

use crate::case::Case;
use hlo_engines::engine::{Engine, Inputs, InterpreterEngine, RunOptions};
use hlo_engines::frontend::load;
use hlo_engines::inputs;
use hlo_exact::Functions;
use hlo_exact::exhaustive::{expected, has_reference, real_value};
use hlo_execution::element::Part;
use hlo_system::exit::{Exit, Failure};

/// The result for one program whose results differ from recorded ones.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Proof {
    /// Elements of the results whose bits differ from the recorded ones.
    pub differing: u64,
    /// The largest difference in units of the last place; `u64::MAX` where only one is a number.
    pub worst_ulp: u64,
    /// Roundings of the run that were evaluated in arbitrary precision and are right.
    pub proved: u64,
    /// Roundings that are not right, in words.
    pub wrong: Vec<String>,
    /// Instructions that could not be evaluated, in words.
    pub unproved: Vec<String>,
}

impl Proof {
    /// Whether the recorded values are shown to be the ones in error.
    pub fn holds(&self) -> bool {
        self.wrong.is_empty() && self.unproved.is_empty()
    }
}

/// Whether every instruction is elementwise or moves data.
pub fn is_elementwise(module: &Module) -> bool {
    module.computations().iter().all(|&c| {
        module.instructions(c).all(|id| {
            let opcode = module.instr(id).opcode;
            let numeric = match opcode.numeric_row() {
                NumericRow::Exact
                | NumericRow::ExactReal(_)
                | NumericRow::Elementary(_)
                | NumericRow::Called => true,
                NumericRow::Sum | NumericRow::Region | NumericRow::Opaque => false,
            };
            numeric
                && !opcode.flags().side_effect
                && !opcode.flags().collective
                && opcode != Opcode::BatchNormInference
        })
    })
}

/// Runs a form of a case, and proves its differences. `None`: the program is not elementwise, there is no
/// such form, or nothing differs. Errors: the case cannot be read or run.
pub fn prove(case: &Case, optimized: bool, options: &RunOptions) -> Result<Option<Proof>, Failure> {
    let Some(path) = case.program(optimized) else { return Ok(None) };
    let program = load(&path.to_string_lossy()).map_err(|r| Failure::new(r.exit, r.first_line()))?;
    let module = &program.module;
    let devices = case.devices()?;
    if devices.count() > 1 || !is_elementwise(module) {
        return Ok(None);
    }
    let limit = options.limits.memory_bytes;
    let recorded = case.expected(limit, devices)?;
    let literals = Inputs::new(module, &inputs::read(module, &mut case.inputs(limit)?, devices)?)?;
    let results = InterpreterEngine.run(module, literals.clone(), options).finished()?.results;
    let mut proof = Proof::default();
    for (ours, theirs) in results.iter().flatten().zip(recorded.iter().flatten()) {
        compare(ours, theirs, &mut proof);
    }
    if proof.differing == 0 {
        return Ok(None);
    }
    let prover = Arc::new(Prover::default());
    InterpreterEngine.run_watched(module, literals, options, Some(prover.clone())).finished()?;
    let Ok(state) = prover.0.lock() else {
        return Err(Failure::new(Exit::Internal, "a thread of the run panicked"));
    };
    proof.proved = state.proved;
    proof.wrong.clone_from(&state.wrong);
    proof.unproved.clone_from(&state.unproved);
    Ok(Some(proof))
}

/// Counts the elements that differ. NaNs are equal.
fn compare(ours: &ArrayLiteral, theirs: &ArrayLiteral, proof: &mut Proof) {
    let parts = |a: &ArrayLiteral| -> Vec<Part> {
        with_buffer!(&*a.buffer, v => v.iter().flat_map(|&x| {
            let (re, im) = hlo_execution::element::Number::parts(x);
            std::iter::once(re).chain(im)
        }).collect())
    };
    for (a, b) in parts(ours).into_iter().zip(parts(theirs)) {
        let ulp = match (a, b) {
            (Part::Float { value: x, ordinal: i }, Part::Float { value: y, ordinal: j }) => {
                match (x.is_nan(), y.is_nan()) {
                    (true, true) => 0,
                    (false, false) if i == j => u64::from(x.is_sign_negative() != y.is_sign_negative()),
                    (false, false) => i.abs_diff(j),
                    _ => u64::MAX,
                }
            }
            (Part::Int(i), Part::Int(j)) if i == j => 0,
            _ => u64::MAX,
        };
        proof.differing += u64::from(ulp > 0);
        proof.worst_ulp = proof.worst_ulp.max(ulp);
    }
}

/// Evaluates every rounding of a run again.
#[derive(Debug, Default)]
struct Prover(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    functions: Functions,
    /// The operands of instructions that are being executed.
    operands: FxHashMap<InstrId, Vec<Value>>,
    known: FxHashMap<(Opcode, ElementType, [u128; 2]), Option<u128>>,
    proved: u64,
    wrong: Vec<String>,
    unproved: Vec<String>,
}

/// Whether an operation of a type rounds, so that there is something to prove.
fn rounds(opcode: Opcode, ty: ElementType) -> bool {
    let inexact = match opcode.numeric_row() {
        NumericRow::ExactReal(_) | NumericRow::Elementary(_) => true,
        NumericRow::Exact
        | NumericRow::Sum
        | NumericRow::Region
        | NumericRow::Called
        | NumericRow::Opaque => opcode == Opcode::Remainder,
    };
    // abs, sign of a real number are exact.
    let exact = ty.is_float() && matches!(opcode, Opcode::Abs | Opcode::Sign);
    inexact && !exact && (ty.is_float() || ty.is_complex())
}

impl Observer for Prover {
    fn enter(&self, site: &Site<'_>, operands: &[Value]) {
        let ty = site.instr().shape.element_type();
        if ty.is_some_and(|ty| rounds(site.instr().opcode, ty))
            && let Ok(mut state) = self.0.lock()
        {
            state.operands.insert(site.id, operands.to_vec());
        }
    }

    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        if let Ok(mut state) = self.0.lock()
            && let Some(operands) = state.operands.remove(&site.id)
        {
            state.check(site.instr(), &operands, result);
        }
        Flow::Continue
    }
}

fn bits(value: &Value) -> Option<(ElementType, Vec<u128>)> {
    let Value::Array(t) = value else { return None };
    Some((t.element_type(), with_buffer!(t.buffer(), v => v.iter().map(|&x| hlo::Bits::bits(x)).collect())))
}

impl State {
    fn check(&mut self, instr: &hlo::Instruction, operands: &[Value], result: &Value) {
        let (Some((ty, actual)), Some(operands)) =
            (bits(result), operands.iter().map(bits).collect::<Option<Vec<_>>>())
        else {
            return;
        };
        let opcode = instr.opcode;
        if operands.iter().any(|(t, _)| *t != ty) || !(has_reference(opcode, ty) || by_parts(opcode, ty)) {
            self.unproved.push(format!("{opcode} of {ty} (%{})", instr.name));
            return;
        }
        let at = |k: usize, i: usize| operands.get(k).map_or(0, |(_, v)| v.get(i).copied().unwrap_or(0));
        let mut missing = 0;
        for (i, &actual) in actual.iter().enumerate() {
            let case = [at(0, i), at(1, i)];
            let functions = &mut self.functions;
            let known =
                self.known.entry((opcode, ty, case)).or_insert_with(|| evaluate(functions, opcode, ty, case));
            match *known {
                Some(right) if same(ty, right, actual) => self.proved += 1,
                Some(right) => self.wrong.push(format!(
                    "{opcode} of {ty} (%{}), element {i}: {actual:#x}, right is {right:#x}",
                    instr.name
                )),
                None => missing += 1,
            }
        }
        if missing > 0 {
            self.unproved.push(format!("{missing} elements of {opcode} of {ty} (%{})", instr.name));
        }
    }
}

/// Complex operations that work on the parts.
fn by_parts(opcode: Opcode, ty: ElementType) -> bool {
    ty.is_complex() && matches!(opcode, Opcode::Add | Opcode::Subtract)
}

fn evaluate(functions: &mut Functions, opcode: Opcode, ty: ElementType, case: [u128; 2]) -> Option<u128> {
    if !by_parts(opcode, ty) {
        return expected(functions, opcode, ty, &case);
    }
    let part = ty.real_part();
    let mask = (1u128 << part.bits()) - 1;
    let re = expected(functions, opcode, part, &case.map(|x| x & mask))?;
    let im = expected(functions, opcode, part, &case.map(|x| x >> part.bits()))?;
    Some(re | im << part.bits())
}

/// The same bits, or NaN both; part by part.
fn same(ty: ElementType, a: u128, b: u128) -> bool {
    if ty.is_complex() {
        let part = ty.real_part();
        let mask = (1u128 << part.bits()) - 1;
        return same(part, a & mask, b & mask) && same(part, a >> part.bits(), b >> part.bits());
    }
    let nan = |x| real_value(ty, x).is_nan();
    a == b || nan(a) && nan(b)
}
