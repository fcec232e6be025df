//! Judging in pieces: what an engine computes of a program that is cut where its bounds blow up.
//!
//! An engine that executes no HLO cannot be replayed with the reference's values at every instruction. But it
//! can be given another program: the same one, with a parameter instead of each value at which it is split,
//! and that value as a further result. What reads such a value gets the reference's, so that its bounds start
//! afresh; what computes it is judged by the further result. If every result of that program is explained,
//! what the whole program left open is rounding that later instructions amplify.
//!
//! An engine may execute an instruction of constants alone where it cannot be compiled (XLA:CPU has no code for
//! some complex functions, and folds them): if it fails on the parameters, the values are given as constants.
//!
//! A value is cut where the instruction that reads it has no useful bound although its operands have: found
//! by running the reference with bounds again and again, with the values that are cut already counting as
//! exact, until no bound blows up.
//!
//! **Invariants:** the reference gives the same results for the pieces as for the program, to the bit
//! (checked); only values of the entry computation, calls inlined, are cut; what no cut helps stays
//! undecided.

use std::collections::BTreeSet;
use std::sync::Arc;

use hlo::{ArrayLiteral, InstrId, Literal, Module, Opcode, Shape};
use hlo_interp::Value;
use hlo_opt::passes::edit::has_run_time_sizes;
use hlo_opt::passes::{self, Fuel};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::differential::{Difference, Kind, Settings, Subject, differ_from, result_number};
use crate::instruction_kind::InstructionKind;
use crate::isolate::values::{Keeper, arrays};
use crate::reduce::Candidate;
use crate::reduce::program::{Tidy, finished};
use hlo_certify::bounds::{At, Tree, Visitor, certify};
use hlo_engines::engine::interpreter::interpret;
use hlo_engines::engine::{Allowances, Engine, Finished, Outcome};
use hlo_execution::verdict::{Class, same_bits};

/// The maximum number of rounds in which cuts are looked for: a chain of that many values, each of which
/// blows up on the one before.
const MAX_ROUNDS: usize = 24;
/// The maximum number of values at which a program is cut.
const MAX_CUTS: usize = 512;
/// The maximum number of elements of all values of a program that is cut at each of them: they are inputs and
/// results of an engine's run.
const MAX_KEPT_ELEMENTS: u64 = 1 << 24;
/// The maximum number of elements of all values that become constants of a program.
const MAX_CONSTANT_ELEMENTS: usize = 1 << 12;
/// A bound above this share of the largest element is of no use.
const USELESS_SHARE: f64 = 1.0 / 64.0;

/// The result for the pieces.
#[derive(Clone, Debug)]
pub struct Pieces {
    /// At how many values the program was cut.
    pub cuts: usize,
    /// The outcome of the comparison of the split program.
    pub difference: Box<Difference>,
    /// The instruction of the first cut value that is not explained, if that is what differs.
    pub blamed: Option<InstructionKind>,
}

/// Judges an engine on the pieces of a program, of which the reference gives `expected`. `None`: there is
/// nowhere to cut, or the pieces cannot be run.
pub(crate) fn judge_pieces(
    expected: &Finished,
    engine: &dyn Engine,
    allowances: Allowances,
    subject: &Subject<'_>,
    settings: &Settings,
) -> Option<Pieces> {
    let inlined = inlined(subject.module)?;
    let source = Subject { module: &inlined, ..subject.clone() };
    let cuts = cuts(&source, allowances, settings)?;
    let (ids, results, difference) = Given::ALL.into_iter().find_map(|given| {
        let (candidate, ids) = cut(&source, &cuts, given, settings)?;
        let (results, difference) = judge_cut(expected, engine, &candidate, ids.len(), subject, settings)?;
        Some((ids, results, difference))
    })?;
    let worst = difference.arrays.iter().map(|(_, v)| v.class()).max();
    let blamed = difference.arrays.iter().find(|(_, v)| Some(v.class()) == worst).and_then(|(name, _)| {
        let number = result_number(name)?;
        let id = match number.checked_sub(results) {
            Some(cut) => *ids.get(cut)?,
            None => computes_result(&inlined, number),
        };
        Some(InstructionKind::of(&inlined, id))
    });
    Some(Pieces { cuts: ids.len(), difference: Box::new(difference), blamed })
}

/// How an engine compares on a program that was cut at `cuts` values, and how many results it had before.
fn judge_cut(
    expected: &Finished,
    engine: &dyn Engine,
    candidate: &Candidate,
    cuts: usize,
    subject: &Subject<'_>,
    settings: &Settings,
) -> Option<(usize, Difference)> {
    let pieces = Subject { module: &candidate.module, inputs: &candidate.inputs, ..subject.clone() };
    let after = interpret(pieces.module, pieces.inputs().ok()?, &settings.run, None);
    let Outcome::Finished(of_pieces) = &after else { return None };
    let results = expected.results.first()?.len();
    let same = expected.results.iter().zip(&of_pieces.results).all(|(whole, pieces)| {
        pieces.len() == results + cuts && whole.iter().zip(pieces).all(|(w, p)| same_bits(w, p, true))
    });
    if !same {
        return None;
    }
    let alone = Settings { replay: false, ..*settings };
    let mut difference = differ_from(&after, engine, &pieces, &alone);
    if difference.kind == Kind::Undecided && has_run_time_sizes(pieces.module) {
        judge_static(&mut difference, engine, candidate, subject, &alone);
    }
    match difference.kind {
        Kind::Same | Kind::Explained | Kind::Undecided | Kind::Wrong => {}
        Kind::Unsupported
        | Kind::Exhausted
        | Kind::Trap
        | Kind::Timeout
        | Kind::Crash
        | Kind::NoReference => return None,
    }
    Some((results, difference))
}

/// Judges what is undecided in a program with run-time sizes once more, without what it does not depend on:
/// other runs of the reference are known of programs without such sizes alone. `None`: it has them itself, or
/// cannot be run.
fn judge_static(
    difference: &mut Difference,
    engine: &dyn Engine,
    candidate: &Candidate,
    subject: &Subject<'_>,
    settings: &Settings,
) -> Option<()> {
    let open: Vec<usize> = (0..difference.arrays.len())
        .filter(|&k| difference.arrays[k].1.class() == Class::Undecided)
        .collect();
    let mut candidate = candidate.clone();
    let module = &mut candidate.module;
    let results = module.instr(module.root(module.entry())).operands().to_vec();
    let one_array = |&o: &InstrId| matches!(module.instr(o).shape, Shape::Array(_));
    if settings.run.devices.count() != 1 || !results.iter().all(one_array) {
        return None;
    }
    let kept = open.iter().map(|&k| results.get(result_number(&difference.arrays[k].0)?).copied());
    give(module, &kept.collect::<Option<Vec<_>>>()?);
    let made = finished(&candidate, Tidy::Parameters);
    if has_run_time_sizes(&made.module) || hlo::verify::verify(&made.module).has_errors() {
        return None;
    }
    let parts = Subject { module: &made.module, inputs: &made.inputs, ..subject.clone() };
    let after = interpret(parts.module, parts.inputs().ok()?, &settings.run, None);
    let found = differ_from(&after, engine, &parts, settings);
    if found.arrays.len() != open.len() {
        return None;
    }
    for (k, (_, verdict)) in open.into_iter().zip(found.arrays) {
        difference.arrays[k].1 = verdict;
    }
    difference.tally = Default::default();
    difference.arrays.iter().for_each(|(_, verdict)| difference.tally.add(&verdict.tally));
    difference.kind = difference.arrays.iter().map(|(_, verdict)| verdict.class()).max()?.into();
    Some(())
}

/// What becomes of the results of a program that is cut at every value: for each result the worst class of
/// all instructions that it comes from, each on the reference's operands. An engine may not take that program
/// (a fusion is compiled where the instruction alone is not): then others with fewer cuts are tried. `None`:
/// none can be run, or results are tuples in tuples.
///
/// The results of one instruction (a loop, a sort) count as one: where one of them is wrong, the instruction
/// has not done what it may, and nothing else that it gives is what a right one would give.
pub(crate) fn judge_every_value(
    expected: &Finished,
    engine: &dyn Engine,
    subject: &Subject<'_>,
    settings: &Settings,
) -> Option<Vec<Class>> {
    let inlined = inlined(subject.module)?;
    let source = Subject { module: &inlined, ..subject.clone() };
    let entry = inlined.entry();
    let root = inlined.instr(inlined.root(entry));
    let single = |o: &InstrId| matches!(inlined.instr(*o).shape, Shape::Array(_));
    let outputs = match root.opcode {
        Opcode::Tuple => root.operands().to_vec(),
        _ => vec![inlined.root(entry)],
    };
    let results = expected.results.first()?.len();
    if outputs.len() != results || !outputs.iter().all(single) {
        return None;
    }
    let all: Vec<InstrId> = inlined.instructions(entry).filter(|&id| can_be_cut(&inlined, id)).collect();
    let elements = |&id: &InstrId| inlined.instr(id).shape.as_array().map_or(0, |a| a.elements() as u64);
    if all.iter().map(elements).sum::<u64>() > MAX_KEPT_ELEMENTS {
        return None;
    }
    let half = all.len() / 2;
    let steps = |id: &&InstrId| !inlined.instr(**id).opcode.is_elementwise();
    let attempts: [Vec<InstrId>; 4] = [
        all.clone(),
        all.iter().filter(steps).copied().collect(),
        all[..half].to_vec(),
        all[half..].to_vec(),
    ];
    Given::ALL.iter().flat_map(|&given| attempts.iter().map(move |cuts| (given, cuts))).find_map(
        |(given, cuts)| {
            let cuts: BTreeSet<InstrId> = cuts.iter().copied().collect();
            if cuts.is_empty() || cuts.len() > MAX_CUTS {
                return None;
            }
            let (candidate, ids) = cut(&source, &cuts, given, settings)?;
            let (_, difference) = judge_cut(expected, engine, &candidate, ids.len(), subject, settings)?;
            // By the instruction that computes it the worst class of an array.
            let mut worst: FxHashMap<InstrId, Class> = FxHashMap::default();
            for (name, verdict) in &difference.arrays {
                let number = result_number(name)?;
                let id = match number.checked_sub(results) {
                    Some(k) => *ids.get(k)?,
                    None => *outputs.get(number)?,
                };
                let of = worst.entry(computes(&inlined, id)).or_insert(Class::Same);
                *of = (*of).max(verdict.class());
            }
            let mut classes: FxHashMap<InstrId, Class> = FxHashMap::default();
            for id in inlined.instructions(entry) {
                let own = worst.get(&id).copied().unwrap_or(Class::Same);
                let before = inlined.instr(id).operands().iter().filter_map(|o| classes.get(o).copied());
                let class = before.max().map_or(own, |before| before.max(own));
                classes.insert(id, class);
            }
            Some(outputs.iter().map(|o| classes.get(o).copied().unwrap_or(Class::Undecided)).collect())
        },
    )
}

/// The instruction of whose tuple a value is a part, or that of the value.
fn computes(module: &Module, mut id: InstrId) -> InstrId {
    while module.instr(id).opcode == Opcode::GetTupleElement {
        let Some(&of) = module.instr(id).operands().first() else { break };
        id = of;
    }
    id
}

/// The instruction whose array is result number `number`, or the root where that is not known.
fn computes_result(module: &Module, number: usize) -> InstrId {
    let root = module.root(module.entry());
    let instr = module.instr(root);
    let arrays = instr.operands().iter().all(|&o| matches!(module.instr(o).shape, Shape::Array(_)));
    match instr.operands().get(number) {
        Some(&operand) if instr.opcode == Opcode::Tuple && arrays => operand,
        Some(_) | None => root,
    }
}

/// The program with its calls inlined.
fn inlined(module: &Module) -> Option<Module> {
    let mut inlined = module.clone();
    let mut fuel = Fuel::UNLIMITED;
    passes::by_name("call-inliner")?.run(&mut inlined, &mut fuel);
    (!hlo::verify::verify(&inlined).has_errors()).then_some(inlined)
}

/// The split points. `None`: there are none, or the reference cannot be run with bounds.
fn cuts(subject: &Subject<'_>, allowances: Allowances, settings: &Settings) -> Option<BTreeSet<InstrId>> {
    let mut cuts = BTreeSet::new();
    for _ in 0..MAX_ROUNDS {
        let mut finder = Finder {
            module: subject.module,
            cuts: &cuts,
            useless: FxHashSet::default(),
            inexact: FxHashSet::default(),
            found: BTreeSet::new(),
        };
        certify(subject.module, subject.inputs().ok()?, &settings.run, allowances, &mut finder).ok()?;
        let found = finder.found;
        if found.is_empty() || cuts.len() + found.len() > MAX_CUTS {
            break;
        }
        cuts.extend(found);
    }
    (!cuts.is_empty()).then_some(cuts)
}

/// Looks for instructions whose bounds are of no use although those of their operands are.
struct Finder<'a> {
    module: &'a Module,
    cuts: &'a BTreeSet<InstrId>,
    useless: FxHashSet<InstrId>,
    inexact: FxHashSet<InstrId>,
    found: BTreeSet<InstrId>,
}

impl Visitor for Finder<'_> {
    fn value(&mut self, at: &At, value: &Value, bounds: &Tree) -> bool {
        if !at.calls.is_empty() {
            return false;
        }
        let id = at.instr;
        let all = bounds.arrays();
        let cut = self.cuts.contains(&id);
        if !cut && all.iter().any(|b| !b.is_exact()) {
            self.inexact.insert(id);
        }
        if all.iter().zip(value.arrays()).any(|(bounds, t)| is_useless(bounds, t)) {
            if !cut {
                self.useless.insert(id);
            }
            self.propose(id, cut);
        }
        cut
    }
}

impl Finder<'_> {
    /// The split points with which an instruction has a useful bound.
    fn propose(&mut self, id: InstrId, cut: bool) {
        let instr = self.module.instr(id);
        if moves_tuples(instr.opcode) {
            return;
        }
        let inexact: Vec<InstrId> =
            leaves(self.module, instr.operands()).into_iter().filter(|o| self.inexact.contains(o)).collect();
        // The cause is further up.
        if inexact.iter().any(|o| self.useless.contains(o)) {
            return;
        }
        let before: Vec<InstrId> = inexact.iter().copied().filter(|&o| can_be_cut(self.module, o)).collect();
        if !before.is_empty() {
            self.found.extend(before);
        } else if !cut && can_be_cut(self.module, id) {
            // Nothing helps this one; what reads it need not suffer.
            self.found.insert(id);
        }
    }
}

/// The arrays that tuples among operands are made of.
fn leaves(module: &Module, operands: &[InstrId]) -> Vec<InstrId> {
    let (mut pending, mut found) = (operands.to_vec(), Vec::new());
    while let Some(id) = pending.pop() {
        let instr = module.instr(id);
        match instr.opcode {
            Opcode::Tuple => pending.extend(instr.operands()),
            _ => found.push(id),
        }
    }
    found
}

fn moves_tuples(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Tuple | Opcode::Parameter | Opcode::Constant)
}

/// Whether a value can be a parameter and a result: an array of the entry computation that is not given
/// already.
fn can_be_cut(module: &Module, id: InstrId) -> bool {
    let instr = module.instr(id);
    instr.parent() == module.entry()
        && instr.shape.as_array().is_some_and(|a| !a.is_dynamic())
        && !matches!(instr.opcode, Opcode::Parameter | Opcode::Constant)
}

/// Whether bounds are so wide that what reads the value should get the reference's.
fn is_useless(bounds: &hlo_certify::bounds::Bounds, t: &hlo_interp::Tensor) -> bool {
    if bounds.is_exact() {
        return false;
    }
    let ty = t.element_type();
    if !ty.is_float() && !ty.is_complex() {
        // A decision that may fall otherwise.
        return (0..t.len()).any(|i| bounds.hard.at(i) > 0.0);
    }
    let largest = hlo_execution::element::largest_magnitude(t.buffer());
    (0..t.len()).any(|i| bounds.hard.at(i) > USELESS_SHARE * largest)
}

/// What stands for a value at which a program is cut.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Given {
    Parameters,
    /// On one device, of at most [`MAX_CONSTANT_ELEMENTS`].
    Constants,
}

impl Given {
    const ALL: [Given; 2] = [Given::Parameters, Given::Constants];
}

/// The program cut at these values, and the values in the order of its further results.
fn cut(
    subject: &Subject<'_>,
    cuts: &BTreeSet<InstrId>,
    given: Given,
    settings: &Settings,
) -> Option<(Candidate, Vec<InstrId>)> {
    let module = subject.module;
    let wanted = cuts.iter().map(|&id| (id, 0)).collect();
    let keeper = Arc::new(Keeper::new(wanted, settings.run.devices));
    let run = interpret(module, subject.inputs().ok()?, &settings.run, Some(keeper.clone()));
    if !matches!(run, Outcome::Finished(_)) {
        return None;
    }
    let values = keeper.take();
    let mut candidate = Candidate { module: module.clone(), inputs: subject.inputs.to_vec() };
    let entry = module.entry();
    let mut results = Vec::new();
    let mut elements = 0;
    for &id in cuts {
        let on_devices =
            (0..settings.run.devices.count()).map(|d| values.get(&(d, id, 0)).map(arrays)?.pop());
        // What no device, or not every one, computes stays where it is.
        let Some(on_devices) = on_devices.collect::<Option<Vec<_>>>() else { continue };
        let stands_for_it = match given {
            Given::Parameters => candidate.add_parameter(on_devices)?,
            Given::Constants => {
                let [value]: [ArrayLiteral; 1] = on_devices.try_into().ok()?;
                elements += value.buffer.len();
                if elements > MAX_CONSTANT_ELEMENTS {
                    return None;
                }
                candidate.add_constant(id, Literal::Array(value))
            }
        };
        candidate.module.instr_mut(stands_for_it).shape = module.instr(id).shape.clone();
        candidate.replace(id, stands_for_it);
        results.push(id);
    }
    if results.is_empty() {
        return None;
    }
    let m = &mut candidate.module;
    let root = m.root(entry);
    // Flat, because not every engine gives tuples in tuples.
    let whole = match m.instr(root).opcode {
        Opcode::Tuple => m.instr(root).operands().to_vec(),
        _ => vec![root],
    };
    let elements: Vec<InstrId> = whole.into_iter().chain(results.iter().copied()).collect();
    give(m, &elements);
    m.header.input_output_alias.clear();
    m.header.buffer_donor.clear();
    m.header.spmd_propagation_to_parameters = None;
    m.header.spmd_propagation_to_output = None;
    let made = finished(&candidate, Tidy::Nothing);
    (!hlo::verify::verify(&made.module).has_errors()).then_some((made, results))
}

/// Makes a tuple of these values of the entry computation its result.
fn give(module: &mut Module, elements: &[InstrId]) {
    let entry = module.entry();
    let last = module.instructions(entry).last();
    let shape = Shape::tuple(elements.iter().map(|&e| module.instr(e).shape.clone()));
    let name = module.unique_name("pieces");
    let new = hlo::NewInstruction::new(Opcode::Tuple, shape, elements).named(name);
    let tuple = module.insert_after(entry, last, new);
    module.set_root(entry, tuple);
}
