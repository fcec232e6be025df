//! Pictures of programs: a page with a viewer ([`page`]), SVG ([`svg`]) and Graphviz ([`dot`]).
//!
//! **Invariants:** every instruction is in a picture exactly once; texts of the program are escaped, so that
//! no name is ever markup or code; time is about linear in the program. Layout is computed here, not in
//! viewers.

pub mod dot;
pub mod memory;
pub mod page;
pub mod profile;
pub mod svg;

use std::num::NonZeroU64;

use hlo::cost::{InstructionCost, instruction_costs};
use hlo::print::{PrintOptions, print_instruction};
use hlo::{ComputationId, InstrId, Module, Opcode, opcode};
use hlo_opt::passes::loops::trip_count;
use rustc_hash::FxHashMap;

use hlo_triage::report::graph::{Bounds, Layered, layered};
use hlo_triage::report::html::shorten;
use profile::Profile;

/// The maximum number of nodes side by side.
const MAX_ROW: usize = 24;
/// Edges that pass more rows are drawn when one of their ends is looked at.
const MAX_SPAN: usize = 60;
/// The same of edges from constants, which everything may use.
const MAX_CONSTANT_SPAN: usize = 2;
/// The longest text of attributes that is shown.
const MAX_ATTRIBUTES_CHARS: usize = 600;
/// Constants of more elements are not written out.
const MAX_CONSTANT_ELEMENTS: usize = 10;

/// The subject of a picture.
#[derive(Debug)]
pub struct Picture<'a> {
    /// The file, as the person named it.
    pub file: &'a str,
    /// The program.
    pub module: &'a Module,
    /// The cost of each instruction.
    pub costs: FxHashMap<InstrId, InstructionCost>,
    /// The profile of a run, if there was one.
    pub profile: Option<Profile>,
    /// The computations, the entry first, each in rows.
    computations: Vec<Drawn>,
}

/// A computation in rows.
#[derive(Debug)]
struct Drawn {
    id: ComputationId,
    instructions: Vec<InstrId>,
    /// Positions in `instructions`.
    edges: Vec<(usize, usize)>,
    layered: Layered,
}

impl<'a> Picture<'a> {
    /// Lays out a program.
    pub fn new(file: &'a str, module: &'a Module, profile: Option<Profile>) -> Self {
        let costs = instruction_costs(module, &|id| trip_count(module, id));
        let entry = module.entry();
        let rest = module.computations().iter().copied().filter(|&c| c != entry);
        let computations = std::iter::once(entry).chain(rest).map(|c| Drawn::new(module, c)).collect();
        Self { file, module, costs, profile, computations }
    }

    /// Instructions of all computations.
    pub fn instruction_count(&self) -> usize {
        self.computations.iter().map(|c| c.instructions.len()).sum()
    }

    /// What the text of an instruction says after its operands; of a constant its value.
    fn attributes(&self, id: InstrId) -> String {
        let module = self.module;
        let options =
            PrintOptions { metadata: false, ..PrintOptions::source(module).eliding(MAX_CONSTANT_ELEMENTS) };
        let text = print_instruction(module, id, &options);
        let opcode = module.instr(id).opcode;
        let rest = text.split_once(" = ").map_or(&*text, |(_, rest)| rest);
        let call = format!("{}(", opcode.name());
        let inside = rest.find(&call).map(|at| &rest[at + call.len()..]);
        let keeps_operands = matches!(opcode, Opcode::Constant | Opcode::Parameter);
        let shown = match inside {
            Some(inside) if keeps_operands => inside,
            Some(inside) => after_parenthesis(inside).unwrap_or(inside),
            None => rest,
        };
        let shown = shown.trim_start_matches([',', ' ']);
        let shown = if keeps_operands { format!("({shown}") } else { shown.to_owned() };
        shorten(&shown, MAX_ATTRIBUTES_CHARS)
    }
}

impl Drawn {
    fn new(module: &Module, id: ComputationId) -> Self {
        let instructions: Vec<InstrId> = module.instructions(id).collect();
        let position: FxHashMap<InstrId, usize> =
            instructions.iter().enumerate().map(|(i, &id)| (id, i)).collect();
        let mut edges = Vec::new();
        for (to, &id) in instructions.iter().enumerate() {
            let operands = module.instr(id).operands().iter();
            // Of a program that does not verify operands may come later.
            let mut from: Vec<usize> =
                operands.filter_map(|o| position.get(o).copied()).filter(|&f| f < to).collect();
            from.sort_unstable();
            from.dedup();
            edges.extend(from.into_iter().map(|f| (f, to)));
        }
        let span = |edge: usize| {
            let (from, _) = edges[edge];
            let constant = module.instr(instructions[from]).opcode == Opcode::Constant;
            if constant { MAX_CONSTANT_SPAN } else { MAX_SPAN }
        };
        let layered = layered(instructions.len(), &edges, &Bounds { row: MAX_ROW, span });
        Self { id, instructions, edges, layered }
    }
}

/// The category of an instruction, for its colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    /// Parameters, constants, iota: what has no operands.
    Source,
    /// One element at a time.
    Elementwise,
    /// Contractions and convolutions, and what is built on them.
    Contraction,
    /// Reductions, scans, sorts.
    Reduction,
    /// Data movement.
    Movement,
    /// Aliases of values.
    Name,
    /// Control flow and calls.
    Control,
    /// Collectives.
    Collective,
}

impl Family {
    pub(crate) const ALL: [Family; 8] = [
        Family::Source,
        Family::Elementwise,
        Family::Contraction,
        Family::Reduction,
        Family::Movement,
        Family::Name,
        Family::Control,
        Family::Collective,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Family::Source => "source",
            Family::Elementwise => "elementwise",
            Family::Contraction => "contraction",
            Family::Reduction => "reduction",
            Family::Movement => "movement",
            Family::Name => "name",
            Family::Control => "control",
            Family::Collective => "collective",
        }
    }

    pub(crate) fn of(opcode: Opcode) -> Family {
        match opcode.family() {
            opcode::Family::Random | opcode::Family::DeviceNumber => Family::Source,
            opcode::Family::Structure => match opcode {
                Opcode::Parameter | Opcode::Constant => Family::Source,
                _ => Family::Name,
            },
            opcode::Family::Contraction | opcode::Family::LinearAlgebra | opcode::Family::Transform => {
                Family::Contraction
            }
            opcode::Family::Region if opcode == Opcode::Map => Family::Control,
            opcode::Family::Region | opcode::Family::Order => Family::Reduction,
            opcode::Family::Movement => match opcode {
                Opcode::Iota => Family::Source,
                Opcode::Copy => Family::Elementwise,
                _ => Family::Movement,
            },
            opcode::Family::Bits if opcode == Opcode::Bitcast => Family::Name,
            opcode::Family::Sizes if opcode == Opcode::DynamicReshape => Family::Movement,
            opcode::Family::Sizes => Family::Name,
            opcode::Family::Async if matches!(opcode, Opcode::CopyStart | Opcode::CopyDone) => {
                Family::Movement
            }
            opcode::Family::Control | opcode::Family::Async | opcode::Family::CustomCall => Family::Control,
            opcode::Family::Collective | opcode::Family::Host => Family::Collective,
            opcode::Family::Elementwise | opcode::Family::Bits | opcode::Family::Normalization => {
                Family::Elementwise
            }
        }
    }
}

/// What follows the parenthesis that closes an opened one; quoted text is skipped.
fn after_parenthesis(text: &str) -> Option<&str> {
    let (mut depth, mut quoted, mut escaped) = (1usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[at + 1..]);
        }
    }
    None
}

/// `2.1M operations, 64.0 MiB, 3 executions`, as far as there is something to say.
fn cost_text(cost: &InstructionCost) -> String {
    let mut parts = Vec::new();
    if cost.operations > 1 {
        parts.push(format!("{} operations", hlo_triage::report::count(cost.operations)));
    }
    if let Some(bytes) = NonZeroU64::new(cost.bytes) {
        parts.push(hlo_triage::report::bytes(bytes.get()));
    }
    if let Some(n) = cost.executions.filter(|&n| n != 1) {
        parts.push(format!("{} executions", hlo_triage::report::grouped(n)));
    }
    parts.join(", ")
}
