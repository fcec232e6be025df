//! Programs out of bytes: well typed, over many opcodes, element types and shapes, leaning towards what breaks compilers.
//!
//! **Invariants:** any bytes give a program that verifies; the same bytes give the same program; shorter bytes, and smaller
//! ones, give simpler programs, so that whoever shrinks the bytes (proptest, a fuzzer) shrinks the program. Nothing is added
//! that shape inference refuses: a family proposes, [`hlo::infer`] decides.
//!
//! A computation grows from a pool of values: each step picks a family, the family picks operands from the pool and adds
//! an instruction. The root is the tuple of everything that nothing used.

mod body;
mod choices;
mod contraction;
mod control;
mod elementwise;
mod indexing;
mod linear;
mod movement;
mod reduction;
mod values;

use hlo::{ElementType, Module};

use body::Body;
use choices::Choices;

pub use values::{edge_array, edge_inputs};

/// How large programs may become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Instructions of the entry computation, about.
    pub instructions: usize,
    /// Elements of an array.
    pub elements: i64,
    /// How deep computations nest.
    pub nesting: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { instructions: 24, elements: 400, nesting: 2 }
    }
}

/// The program that these bytes mean.
pub fn program(bytes: &[u8], limits: Limits) -> Module {
    let mut g =
        Generator { choices: Choices::new(bytes), module: Module::new("generated"), limits, nesting: 0 };
    let mut body = Body::entry(&mut g.module);
    let steps = 1 + g.choices.below(limits.instructions);
    g.grow(&mut body, steps);
    let id = g.finish(body);
    g.module.set_entry(id);
    let mut module = g.module;
    settle(&mut module);
    module
}

/// Removes computations that nothing calls (a family that gives up may leave some), and puts callees before callers, as XLA's
/// parser wants them.
fn settle(module: &mut Module) {
    let mut order = Vec::new();
    // A computation is pushed twice: to see its callees, and then to take its place behind them.
    let mut pending = vec![(module.entry(), false)];
    while let Some((c, seen)) = pending.pop() {
        if order.contains(&c) {
            continue;
        }
        if seen {
            order.push(c);
            continue;
        }
        pending.push((c, true));
        for id in module.instructions(c) {
            pending.extend(
                module.instr(id).attrs.called_computations().into_iter().map(|callee| (callee, false)),
            );
        }
    }
    let unreached: Vec<_> = module.computations().iter().copied().filter(|c| !order.contains(c)).collect();
    unreached.into_iter().for_each(|c| module.remove_computation(c));
    module.set_computation_order(order);
}

/// The types of elements, those that real programs use first and more often.
const TYPES: &[ElementType] = &[
    ElementType::F32,
    ElementType::S32,
    ElementType::Pred,
    ElementType::F64,
    ElementType::BF16,
    ElementType::F16,
    ElementType::U32,
    ElementType::S64,
    ElementType::U8,
    ElementType::S8,
    ElementType::C64,
    ElementType::U64,
    ElementType::S16,
    ElementType::U16,
    ElementType::C128,
    ElementType::F8E5M2,
    ElementType::F8E4M3FN,
    ElementType::S4,
    ElementType::U4,
    ElementType::F8E4M3,
    ElementType::F8E4M3B11FNUZ,
    ElementType::F8E3M4,
    ElementType::F8E5M2FNUZ,
    ElementType::F8E4M3FNUZ,
    ElementType::F8E8M0FNU,
    ElementType::F4E2M1FN,
    ElementType::F6E3M2FN,
    ElementType::F6E2M3FN,
    ElementType::S2,
    ElementType::U2,
    ElementType::S1,
    ElementType::U1,
];

/// A family of instructions: adds one, or gives up.
type Family = fn(&mut Generator<'_>, &mut Body) -> Option<hlo::InstrId>;

/// The families with their weights.
const FAMILIES: &[(u32, Family)] = &[
    (10, elementwise::unary),
    (14, elementwise::binary),
    (4, elementwise::compare_and_select),
    (5, elementwise::convert),
    (4, elementwise::other),
    (10, movement::reshape_like),
    (8, movement::cut),
    (6, movement::join),
    (4, movement::dynamic),
    (3, indexing::gather),
    (3, indexing::scatter),
    (6, reduction::reduce),
    (4, reduction::reduce_window),
    (2, reduction::select_and_scatter),
    (3, reduction::scan),
    (4, reduction::sort),
    (2, reduction::topk),
    (2, reduction::map),
    (5, contraction::dot),
    (3, contraction::convolution),
    (2, linear::fft),
    (1, linear::cholesky),
    (2, linear::triangular_solve),
    (2, linear::batch_norm),
    (2, linear::random_bits),
    (3, control::call),
    (3, control::fusion),
    (3, control::while_loop),
    (3, control::conditional),
    (2, control::pass_through),
];

/// A program being made.
struct Generator<'a> {
    choices: Choices<'a>,
    module: Module,
    limits: Limits,
    /// How many computations are open around the one that grows.
    nesting: u32,
}

impl Generator<'_> {
    /// Adds about `steps` instructions.
    fn grow(&mut self, body: &mut Body, steps: usize) {
        let total: u32 = FAMILIES.iter().map(|(w, _)| w).sum();
        for _ in 0..steps {
            if self.choices.is_empty() {
                break;
            }
            let mut at = self.choices.below(total as usize) as u32;
            for (weight, family) in FAMILIES {
                if at < *weight {
                    if let Some(id) = family(self, body) {
                        body.add(id);
                    }
                    break;
                }
                at -= weight;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::elided::splitmix64;
    use hlo::verify::verify;
    use rustc_hash::FxHashSet;

    pub(super) fn bytes(seed: u64, n: u64) -> Vec<u8> {
        (0..n).map(|i| splitmix64(seed << 20 | i) as u8).collect()
    }

    #[test]
    fn no_bytes_make_the_simplest_program() {
        let m = program(&[], Limits::default());
        assert_eq!(m.computation(m.entry()).len(), 1);
    }

    #[test]
    fn programs_verify_and_reach_every_family() {
        let mut seen = FxHashSet::default();
        let mut types = FxHashSet::default();
        for seed in 0..600 {
            let m = program(&bytes(seed, 400), Limits::default());
            let found = verify(&m);
            assert!(found.is_empty(), "seed {seed}: {found:?}");
            for &c in m.computations() {
                for id in m.instructions(c) {
                    seen.insert(m.instr(id).opcode);
                    types.extend(m.instr(id).shape.element_type());
                }
            }
        }
        let missing: Vec<_> = hlo::Opcode::ALL
            .iter()
            .filter(|op| !seen.contains(op) && !op.flags().collective && !NOT_GENERATED.contains(op))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert_eq!(types.len(), ElementType::ALL.len());
    }

    /// What no family makes: transfers, and what has no meaning by itself.
    const NOT_GENERATED: &[hlo::Opcode] = &[
        hlo::Opcode::CustomCall,
        hlo::Opcode::Domain,
        hlo::Opcode::Infeed,
        hlo::Opcode::Outfeed,
        hlo::Opcode::Recv,
        hlo::Opcode::RecvDone,
        hlo::Opcode::Send,
        hlo::Opcode::SendDone,
        hlo::Opcode::AsyncUpdate,
        hlo::Opcode::RaggedDot,
        hlo::Opcode::ScaledDot,
        hlo::Opcode::DynamicReshape,
        hlo::Opcode::RngGetAndUpdateState,
        hlo::Opcode::Rng,
        hlo::Opcode::PartitionId,
        hlo::Opcode::ReplicaId,
    ];
}
