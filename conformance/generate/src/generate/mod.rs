//! Generated programs: bytes decide, well typed, over every opcode, element type and many shapes, biased
//! towards what breaks compilers.
//!
//! **Invariants:** any bytes give a program that verifies; the same bytes give the same program; shorter
//! bytes, and smaller ones, give simpler programs, so that shrinking the bytes (proptest, a fuzzer) shrinks
//! the program. Nothing is added that shape inference refuses: a family proposes, [`hlo::infer`] decides. A
//! program runs on the devices that its header asks for without a deadlock, and uses no host and no
//! unspecified random numbers unless the [`Limits`] allow it.
//!
//! A computation grows from a pool of values: each step picks a family, the family picks operands from the
//! pool and adds instructions. Some steps are aimed at a pair of an opcode and an element type ([`aim`]), so
//! that every legal pair comes up. The root is the tuple of everything unused, so that every value is
//! observable in the results.

mod aim;
mod body;
mod choices;
mod collective;
mod contraction;
mod control;
mod dynamic;
mod elementwise;
mod fusions;
mod idioms;
mod indexing;
mod inputs;
mod library;
mod linear;
mod loops;
mod movement;
mod patterns;
mod reduction;
mod settle;
mod statistics;
mod structure;
mod transfer;
mod values;

use hlo::elided::splitmix64;
use hlo::{ArrayLiteral, Module};

use aim::Want;
use body::Body;

pub use choices::Choices;
pub use settle::order;

pub use aim::{Pair, fuzzable};
pub use inputs::{SeededHost, inputs};
pub use statistics::Statistics;
pub use values::number;
pub use values::{Mode, array, edge_array, edge_inputs};

/// Limits of programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The approximate number of instructions of the entry computation.
    pub instructions: usize,
    /// The maximum number of elements of an array.
    pub elements: i64,
    /// The maximum nesting of computations.
    pub nesting: u32,
    /// Devices; 1: no program asks for several.
    pub devices: u32,
    /// Whether programs may exchange values with a host ([`SeededHost`] is one).
    pub transfers: bool,
    /// Whether programs may draw numbers that no specification fixes: `rng`, `rng-get-and-update-state`.
    pub open_random: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { instructions: 24, elements: 400, nesting: 2, devices: 4, transfers: false, open_random: false }
    }
}

impl Limits {
    /// Programs of a few instructions, seldom on several devices: a thousand a second.
    pub const fn small() -> Self {
        Self { instructions: 8, elements: 64, nesting: 1, devices: 4, transfers: false, open_random: false }
    }

    /// Programs large enough that kernels partition their work.
    pub const fn large() -> Self {
        Self {
            instructions: 60,
            elements: 20_000,
            nesting: 3,
            devices: 4,
            transfers: false,
            open_random: false,
        }
    }

    /// A few instructions on arrays of several pieces and tiles in each direction.
    pub const fn huge() -> Self {
        Self {
            instructions: 10,
            elements: 600_000,
            nesting: 1,
            devices: 1,
            transfers: false,
            open_random: false,
        }
    }

    /// The approximate number of bytes that a program of this size takes.
    const fn bytes(self) -> usize {
        16 + self.instructions * 40
    }
}

/// A program and inputs for it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The seed of the inputs.
    pub seed: u64,
    /// The bytes of the program: fewer or smaller bytes give a simpler one ([`Case::of`]).
    pub bytes: Vec<u8>,
    /// The program.
    pub module: Module,
    /// For each device of the program the arrays of the entry's parameters, tuples flattened.
    pub inputs: Vec<Vec<ArrayLiteral>>,
}

impl Case {
    /// The case of these bytes. `aims` as in [`case_towards`]; with others the bytes mean another program.
    pub fn of(bytes: Vec<u8>, seed: u64, limits: Limits, aims: &[Pair]) -> Self {
        let module = program_towards(&bytes, limits, aims);
        let inputs = inputs(&module, seed);
        Self { seed, bytes, module, inputs }
    }
}

/// The case of a seed. Its bytes are the words `splitmix64(splitmix64(seed) + i)`, i = 0, 1, ..., little end
/// first.
pub fn case(seed: u64, limits: Limits) -> Case {
    case_towards(seed, limits, &[])
}

/// The same, where half of the steps are aimed at the given pairs (those that were never run yet, say).
pub fn case_towards(seed: u64, limits: Limits, aims: &[Pair]) -> Case {
    let start = splitmix64(seed);
    let words = limits.bytes().div_ceil(8) as u64;
    let bytes = (0..words).flat_map(|i| splitmix64(start.wrapping_add(i)).to_le_bytes()).collect();
    Case::of(bytes, seed, limits, aims)
}

/// The program that these bytes mean.
pub fn program(bytes: &[u8], limits: Limits) -> Module {
    program_towards(bytes, limits, &[])
}

/// The program that these bytes mean where half of the steps are aimed at the given pairs.
pub fn program_towards(bytes: &[u8], limits: Limits, aims: &[Pair]) -> Module {
    let mut g = Generator {
        choices: Choices::new(bytes),
        module: Module::new("generated"),
        limits,
        aims,
        nesting: 0,
        want: None,
        uniform: true,
        replicas: 1,
        partitions: 1,
        channel: 0,
    };
    g.devices();
    let mut body = Body::entry(&mut g.module);
    let steps = 1 + g.choices.below(limits.instructions);
    if g.replicas * g.partitions > 1 {
        // Several devices are for meeting: at the start, where values still differ, and at the end.
        g.meet(&mut body);
        g.grow(&mut body, steps);
        g.meet(&mut body);
    } else {
        g.grow(&mut body, steps);
    }
    let id = g.finish(body);
    g.module.set_entry(id);
    g.settle();
    g.module
}

/// A family of instructions: adds some and gives the last, or gives up.
type Family = fn(&mut Generator<'_>, &mut Body) -> Option<hlo::InstrId>;

/// The families with their weights.
const FAMILIES: &[(u32, Family)] = &[
    (10, elementwise::unary),
    (14, elementwise::binary),
    (3, elementwise::compare),
    (3, elementwise::select),
    (4, elementwise::convert),
    (2, elementwise::bitcast_convert),
    (1, elementwise::clamp),
    (1, elementwise::reduce_precision),
    (1, elementwise::complex),
    (1, elementwise::stochastic_convert),
    (2, elementwise::through_wider),
    (10, movement::reshape_like),
    (7, movement::cut),
    (3, movement::concatenate),
    (4, movement::pad),
    (2, movement::dynamic_slice),
    (3, movement::dynamic_update_slice),
    (2, dynamic::sizes),
    (3, indexing::gather),
    (3, indexing::scatter),
    (6, reduction::reduce),
    (4, reduction::reduce_window),
    (2, reduction::select_and_scatter),
    (3, reduction::scan),
    (4, reduction::sort),
    (1, reduction::topk),
    (2, reduction::map),
    (5, contraction::dot),
    (3, contraction::convolution),
    (1, contraction::ragged_dot),
    (1, contraction::scaled_dot),
    (2, linear::fft),
    (1, linear::cholesky),
    (1, linear::triangular_solve),
    (2, linear::batch_norm),
    (1, linear::random_bits),
    (1, linear::random),
    (3, control::call),
    (3, fusions::fusion),
    (3, fusions::in_place),
    (4, fusions::outlined),
    (3, control::while_loop),
    (3, loops::in_place),
    (2, loops::swapping),
    (2, loops::of_many_types),
    (1, loops::counted_by_data),
    (3, control::conditional),
    (1, structure::iota),
    (1, structure::constant),
    (1, structure::barrier),
    (1, structure::dependency),
    (1, structure::nested_tuple),
    (1, structure::copy_async),
    (2, structure::async_chain),
    (1, structure::domain),
    (1, library::custom_call),
    (3, collective::collective),
    (1, transfer::transfer),
    (40, patterns::pattern),
    (12, idioms::idiom),
];

/// A program under construction.
struct Generator<'a> {
    choices: Choices<'a>,
    module: Module,
    limits: Limits,
    /// Legal pairs that steps are aimed at.
    aims: &'a [Pair],
    /// The nesting depth of the computation that grows.
    nesting: u32,
    /// The pair that the step is aimed at.
    want: Option<Want>,
    /// Whether all devices run the computation that grows equally often, so that they may meet in it.
    uniform: bool,
    replicas: i64,
    partitions: i64,
    /// The last channel id in use.
    channel: i64,
}

impl Generator<'_> {
    /// Adds about `steps` instructions.
    fn grow(&mut self, body: &mut Body, steps: usize) {
        const TOTAL: u32 = {
            let (mut sum, mut i) = (0, 0);
            while i < FAMILIES.len() {
                sum += FAMILIES[i].0;
                i += 1;
            }
            sum
        };
        for _ in 0..steps {
            if self.choices.is_empty() {
                break;
            }
            let odds = if self.aims.is_empty() { 72 } else { 128 };
            let made = if self.choices.chance(odds) {
                self.aimed(body)
            } else {
                let mut at = self.choices.below(TOTAL as usize) as u32;
                let family = FAMILIES.iter().find(|(weight, _)| {
                    let here = at < *weight;
                    at = at.saturating_sub(*weight);
                    here
                });
                family.and_then(|(_, family)| family(self, body))
            };
            if let Some(id) = made {
                body.add(id);
            }
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod variants;
