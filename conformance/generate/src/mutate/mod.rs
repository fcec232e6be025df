//! Mutations: small changes of real programs that keep them valid.
//!
//! A mutation picks a site, changes it and hands on; what does not verify afterwards is undone, so that a
//! candidate is either a valid program or none. The programs compute something else than before: what is
//! compared is one engine with another on the same mutant.
//!
//! **Invariants:** a mutant verifies, and differs from its source (in the program or in the inputs); it
//! depends on source, donors and bytes alone; it takes the parameters that its source takes. Loops keep
//! ending: what decides about an iteration is left alone.

mod identities;
mod inputs;
mod local;
mod outline;
mod splice;

#[cfg(test)]
mod tests;

use hlo::elided::splitmix64;
use hlo::verify::verify;
use hlo::{
    ArrayLiteral, ArrayShape, AttrKey, Attrs, ComputationId, InstrId, Module, NewInstruction, Opcode, Shape,
};
use smallvec::SmallVec;

use crate::generate::Choices;

/// A program that was changed, and inputs for it.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The program.
    pub module: Module,
    /// For each device the arrays of the entry's parameters, tuples flattened.
    pub inputs: Vec<Vec<ArrayLiteral>>,
    /// The mutations that it went through.
    pub steps: Vec<&'static str>,
}

/// The bytes of a seed: the words `splitmix64(splitmix64(seed) + i)`, little end first.
fn bytes(seed: u64) -> Vec<u8> {
    let start = splitmix64(seed);
    (0..64).flat_map(|i| splitmix64(start.wrapping_add(i)).to_le_bytes()).collect()
}

/// A mutant of a verified program, by the bytes that belong to a seed. `donors` are programs that parts may
/// come from. `None` if nothing that was tried is valid.
pub fn mutate(
    module: &Module,
    inputs: &[Vec<ArrayLiteral>],
    donors: &[&Module],
    seed: u64,
) -> Option<Mutant> {
    mutate_by(module, inputs, donors, &bytes(seed))
}

/// A mutant by these bytes: the more of them there are the more it may differ.
pub fn mutate_by(
    module: &Module,
    inputs: &[Vec<ArrayLiteral>],
    donors: &[&Module],
    bytes: &[u8],
) -> Option<Mutant> {
    let mut choices = Choices::new(bytes);
    let wanted = 1 + choices.below(4);
    let mut best = module.compact();
    let ids: Vec<InstrId> = all(&best).collect();
    // An order that was asked for need not hold of what comes out.
    ids.into_iter().for_each(|id| best.instr_mut(id).control_predecessors.clear());
    let mut steps = Vec::new();
    for _ in 0..wanted * 4 {
        if steps.len() == wanted {
            break;
        }
        let mut m = Mutator { choices, module: best.compact(), frozen: Vec::new(), donors };
        m.freeze();
        let total: u32 = MUTATIONS.iter().map(|(weight, ..)| weight).sum();
        let mut at = m.choices.below(total as usize) as u32;
        let mutation = MUTATIONS.iter().find(|(weight, ..)| {
            let here = at < *weight;
            at = at.saturating_sub(*weight);
            here
        });
        let made = mutation.and_then(|(_, name, apply)| apply(&mut m).map(|()| *name));
        let Mutator { choices: rest, module: candidate, .. } = m;
        choices = rest;
        let Some(name) = made else { continue };
        let candidate = cleaned(candidate);
        if hlo::modules_equal(&candidate, &best).is_ok() || verify(&candidate).has_errors() {
            continue;
        }
        best = candidate;
        steps.push(name);
    }
    // One step may undo another.
    if hlo::modules_equal(&best, module).is_ok() {
        steps.clear();
    }
    let mut inputs = inputs.to_vec();
    if choices.chance(if steps.is_empty() { 255 } else { 100 }) && inputs::change(&mut choices, &mut inputs) {
        steps.push("inputs");
    }
    (!steps.is_empty()).then_some(Mutant { module: best, inputs, steps })
}

/// Without unreachable computations, callees first.
fn cleaned(mut module: Module) -> Module {
    crate::generate::order(&mut module);
    module.compact()
}

/// One mutation: `None` if it does not apply at the site that it picked.
type Mutation = fn(&mut Mutator<'_>) -> Option<()>;

/// The mutations: weight, name, what they do.
const MUTATIONS: &[(u32, &str, Mutation)] = &[
    (6, "opcode", local::opcode),
    (2, "direction", local::direction),
    (6, "attribute", local::attribute),
    (3, "constant", local::constant),
    (2, "swap operands", local::swap),
    (3, "other operand", local::rewire),
    (2, "duplicate", local::duplicate),
    (12, "identity", identities::insert),
    (3, "fusion", outline::fusion),
    (2, "call", outline::call),
    (2, "loop", outline::while_loop),
    (2, "conditional", outline::conditional),
    (2, "splice", splice::splice),
];

/// All instructions.
fn all(module: &Module) -> impl Iterator<Item = InstrId> {
    module.computations().iter().flat_map(|&c| module.instructions(c))
}

/// Whether values of a shape may count a loop's iterations.
fn is_counter(shape: &Shape) -> bool {
    shape.is_scalar() && shape.element_type().is_some_and(|ty| ty.is_integer())
}

/// Whether a condition looks at nothing but counters.
fn counts(module: &Module, condition: ComputationId) -> bool {
    module.instructions(condition).all(|id| {
        let instr = module.instr(id);
        let state = instr.opcode == Opcode::Parameter && instr.shape.as_tuple().is_some();
        let answer = instr.opcode == Opcode::Compare && instr.shape.is_scalar();
        state || answer || is_counter(&instr.shape)
    })
}

/// A program being changed.
struct Mutator<'a> {
    choices: Choices<'a>,
    module: Module,
    /// By instruction: whether it stays as it is, because a loop's end or an order depends on it.
    frozen: Vec<bool>,
    donors: &'a [&'a Module],
}

impl Mutator<'_> {
    /// Marks what decides how often loops run, and comparators: conditions; in bodies integer scalars, or
    /// everything where a condition looks at more than such; what these call, too.
    fn freeze(&mut self) {
        let module = &self.module;
        let mut frozen = vec![false; module.instruction_capacity()];
        let mut work: Vec<(ComputationId, bool)> = Vec::new();
        for id in all(module) {
            let instr = module.instr(id);
            if let (Opcode::While, Some(condition), Some(body)) = (
                instr.opcode,
                instr.attrs.computation(AttrKey::Condition),
                instr.attrs.computation(AttrKey::Body),
            ) {
                work.push((condition, false));
                work.push((body, counts(module, condition)));
            } else if matches!(instr.opcode, Opcode::Sort | Opcode::SelectAndScatter | Opcode::CustomCall) {
                work.extend(instr.attrs.called_computations().into_iter().map(|c| (c, false)));
            }
        }
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some((c, only_counters)) = work.pop() {
            if !seen.insert((c, only_counters)) {
                continue;
            }
            for id in module.instructions(c) {
                frozen[id.index()] |= !only_counters || is_counter(&module.instr(id).shape);
                let called = module.instr(id).attrs.called_computations();
                work.extend(called.into_iter().map(|callee| (callee, only_counters)));
            }
        }
        // What a loop starts with decides, too.
        let starts: Vec<InstrId> = all(module)
            .filter(|&id| module.instr(id).opcode == Opcode::While)
            .flat_map(|id| module.instr(id).operands().to_vec())
            .flat_map(|init| module.instr(init).operands().to_vec())
            .filter(|&id| module.instr(id).shape.is_scalar())
            .collect();
        starts.into_iter().for_each(|id| frozen[id.index()] = true);
        self.frozen = frozen;
    }

    /// Whether an instruction may be changed.
    fn free(&self, id: InstrId) -> bool {
        !self.frozen.get(id.index()).copied().unwrap_or(false)
    }

    /// One of the instructions that may be changed and satisfy a condition.
    fn site(&mut self, wanted: impl Fn(&Module, InstrId) -> bool) -> Option<InstrId> {
        let sites: Vec<InstrId> =
            all(&self.module).filter(|&id| self.free(id) && wanted(&self.module, id)).collect();
        (!sites.is_empty()).then(|| self.choices.pick(&sites))
    }

    /// The array shape of a value.
    fn array(&self, id: InstrId) -> Option<&ArrayShape> {
        self.module.instr(id).shape.as_array()
    }

    /// The shape that an instruction would have.
    fn inferred(&self, opcode: Opcode, operands: &[InstrId], attrs: &Attrs) -> Option<Shape> {
        let shapes: SmallVec<[&Shape; 4]> = operands.iter().map(|&o| &self.module.instr(o).shape).collect();
        hlo::infer::infer(&self.module, opcode, &shapes, attrs).ok()
    }

    /// Adds an instruction before another one; its shape follows.
    fn before(
        &mut self,
        anchor: InstrId,
        opcode: Opcode,
        operands: &[InstrId],
        attrs: Attrs,
    ) -> Option<InstrId> {
        let shape = self.inferred(opcode, operands, &attrs)?;
        Some(self.before_shaped(anchor, opcode, shape, operands, attrs))
    }

    /// Adds an instruction of a shape before another one.
    fn before_shaped(
        &mut self,
        anchor: InstrId,
        opcode: Opcode,
        shape: Shape,
        operands: &[InstrId],
        attrs: Attrs,
    ) -> InstrId {
        let name = self.module.unique_name(opcode.name());
        let span = self.module.instr(anchor).span;
        let new = NewInstruction { name, attrs, span, ..NewInstruction::new(opcode, shape, operands) };
        self.module.insert_before(anchor, new)
    }

    /// The arrays that stand before an instruction in its computation.
    fn earlier(&self, anchor: InstrId, wanted: impl Fn(&ArrayShape) -> bool) -> Vec<InstrId> {
        let c = self.module.instr(anchor).parent();
        let before = self.module.instructions(c).take_while(|&id| id != anchor);
        before.filter(|&id| self.array(id).is_some_and(|a| !a.is_dynamic() && wanted(a))).collect()
    }

    /// Removes what nothing uses any more, in the computation of an instruction.
    fn prune(&mut self, computation: ComputationId) {
        let order: Vec<InstrId> = self.module.instructions(computation).collect();
        for id in order.into_iter().rev() {
            let instr = self.module.instr(id);
            let needed = instr.opcode == Opcode::Parameter
                || self.module.root(computation) == id
                || instr.opcode.flags().side_effect
                || instr.opcode.flags().collective;
            if !needed && self.module.users(id).is_empty() {
                self.module.remove(id);
            }
        }
    }
}
