//! Seeded faults: passes that are wrong in a way in which compilers were.
//!
//! Each rewrites instructions into HLO that verifies and computes something else, as a compiler did in the
//! thread that it names; so they are what finders, reducers and isolators of miscompilations are measured on.
//! docs/faults.md lists them.
//!
//! **Invariants:** what a fault leaves verifies; what replaces an instruction has its name, so that isolation
//! can name it; a fault touches instructions that run (of the entry, called, fused, loop and branch
//! computations), never computations that are applied to elements, unless by giving a reduction or the like
//! another one; each has a program in `conformance/faults/` on which it differs by more than rounding.

mod algebra;
mod collective;
mod complex;
mod contraction;
mod control;
mod conversions;
mod edit;
mod floats;
mod indexing;
mod integers;
mod linear;
mod movement;
mod reduction;
mod tail;

use std::fmt;

use hlo::{ComputationId, InstrId, Module, Opcode};
use hlo_opt::passes::{Fuel, Pass};
use rustc_hash::FxHashSet;

use edit::{Edit, Rewrite};

/// The family of code that a fault is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// One element at a time.
    Elementwise,
    /// Data movement.
    Movement,
    /// Reductions, windows, scans, sorts.
    Reduction,
    /// Dots and convolutions.
    Contraction,
    /// Gathers, scatters and slices at computed offsets.
    Indexing,
    /// Calls, loops, branches.
    Control,
    /// Fused computations.
    Fusion,
    /// The elements that are left over where a loop takes several at a time.
    VectorTail,
    /// The order of elements in memory.
    Layout,
    /// Several devices.
    Collective,
    /// Linear algebra, transforms, normalization, random bits.
    Linear,
}

impl Family {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Elementwise => "elementwise",
            Family::Movement => "movement",
            Family::Reduction => "reduction",
            Family::Contraction => "contraction",
            Family::Indexing => "indexing",
            Family::Control => "control",
            Family::Fusion => "fusion",
            Family::VectorTail => "vector-tail",
            Family::Layout => "layout",
            Family::Collective => "collective",
            Family::Linear => "linear",
        }
    }
}

/// The features that a program must have for a fault to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// A loop, or another computation that is called.
    pub control: bool,
    /// A fusion.
    pub fusion: bool,
    /// A dimension longer than a vector.
    pub vector_tail: bool,
    /// Several instructions in a row.
    pub chain: bool,
    /// Several devices.
    pub devices: bool,
}

impl Needs {
    const NOTHING: Needs =
        Needs { control: false, fusion: false, vector_tail: false, chain: false, devices: false };
    const CONTROL: Needs = Needs { control: true, ..Needs::NOTHING };
    const FUSION: Needs = Needs { fusion: true, ..Needs::NOTHING };
    const VECTOR_TAIL: Needs = Needs { vector_tail: true, ..Needs::NOTHING };
    const CHAIN: Needs = Needs { chain: true, ..Needs::NOTHING };
    const DEVICES: Needs = Needs { devices: true, ..Needs::NOTHING };

    /// The maximum number of instructions and the largest dimension that a reduced program may have.
    pub const fn reduced_size(self, family: Family) -> (usize, i64) {
        match family {
            Family::Elementwise | Family::Movement | Family::Reduction
                if !self.control && !self.fusion && !self.vector_tail && !self.devices =>
            {
                (6, 4)
            }
            _ => (14, i64::MAX),
        }
    }

    /// For people: `control, chain`.
    pub fn describe(self) -> String {
        let all = [
            (self.control, "control flow"),
            (self.fusion, "a fusion"),
            (self.vector_tail, "a vector tail"),
            (self.chain, "a chain"),
            (self.devices, "devices"),
        ];
        all.iter().filter(|(needed, _)| *needed).map(|(_, what)| *what).collect::<Vec<_>>().join(", ")
    }
}

/// A wrong pass, and what it is modelled on.
#[derive(Debug)]
pub struct Fault {
    /// The pass; its name is that of the engine `faulty:NAME`.
    pub pass: Box<dyn Pass>,
    /// The issue, pull request or commit.
    pub source: &'static str,
    /// Its family.
    pub family: Family,
    /// The opcodes of which isolation should name one.
    pub opcodes: &'static [Opcode],
    /// The features that a program must have.
    pub needs: Needs,
}

impl Fault {
    /// The pass.
    pub fn pass(&self) -> &dyn Pass {
        &*self.pass
    }
}

/// A fault as its family declares it.
struct Row {
    name: &'static str,
    doc: &'static str,
    source: &'static str,
    family: Family,
    opcodes: &'static [Opcode],
    needs: Needs,
    rewrite: Rewrite,
}

const fn row(
    name: &'static str,
    family: Family,
    doc: &'static str,
    source: &'static str,
    opcodes: &'static [Opcode],
    rewrite: Rewrite,
) -> Row {
    Row { name, doc, source, family, opcodes, needs: Needs::NOTHING, rewrite }
}

impl Row {
    const fn needing(mut self, needs: Needs) -> Row {
        self.needs = needs;
        self
    }
}

const TABLES: &[&[Row]] = &[
    integers::ROWS,
    floats::ROWS,
    conversions::ROWS,
    complex::ROWS,
    algebra::ROWS,
    movement::ROWS,
    indexing::ROWS,
    reduction::ROWS,
    contraction::ROWS,
    control::ROWS,
    tail::ROWS,
    linear::ROWS,
    collective::ROWS,
];

/// All faults, family by family.
pub fn all() -> Vec<Fault> {
    TABLES.iter().flat_map(|rows| rows.iter()).map(fault).collect()
}

/// The pass of a fault.
pub fn by_name(name: &str) -> Option<Box<dyn Pass>> {
    TABLES.iter().flat_map(|rows| rows.iter()).find(|row| row.name == name).map(|row| fault(row).pass)
}

fn fault(row: &'static Row) -> Fault {
    Fault {
        pass: Box::new(Wrong { row }),
        source: row.source,
        family: row.family,
        opcodes: row.opcodes,
        needs: row.needs,
    }
}

/// The pass of a row: its rewriting at each instruction that was there at the beginning.
struct Wrong {
    row: &'static Row,
}

impl fmt::Debug for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wrong").field(&self.row.name).finish()
    }
}

impl Pass for Wrong {
    fn name(&self) -> &str {
        self.row.name
    }

    fn doc(&self) -> &str {
        self.row.doc
    }

    fn run(&self, module: &mut Module, fuel: &mut Fuel) -> u64 {
        let mut applications = 0;
        for (computation, fused) in running(module) {
            let ids: Vec<InstrId> = module.instructions(computation).collect();
            let ordered: FxHashSet<InstrId> =
                ids.iter().flat_map(|&id| module.instr(id).control_predecessors.iter().copied()).collect();
            for id in ids {
                let instr = module.instr(id);
                if module.is_removed(id)
                    || sized_at_run_time(module, id)
                    || instr.opcode.flags().side_effect
                    || !instr.control_predecessors.is_empty()
                    || ordered.contains(&id)
                {
                    continue;
                }
                let users = module.users(id).to_vec();
                let was_root = module.root(computation) == id;
                let shape = instr.shape.clone();
                let mut edit = Edit::new(module, id, fused);
                let new = (self.row.rewrite)(&mut edit).and_then(|new| edit.as_new(new));
                match new {
                    Some(new) if edit.instr(new).shape.compatible(&shape) && fuel.take() => {
                        edit.settle(new, &users, was_root);
                        applications += 1;
                    }
                    Some(_) | None => edit.give_up(),
                }
            }
        }
        applications
    }
}

/// Whether shapes around an instruction are dynamic, other than one whose size it asks for.
fn sized_at_run_time(module: &Module, id: InstrId) -> bool {
    let dynamic = |id: InstrId| {
        let leaves = module.instr(id).shape.leaves();
        leaves.iter().any(|s| s.as_array().is_some_and(hlo::ArrayShape::is_dynamic))
    };
    let instr = module.instr(id);
    dynamic(id) || instr.opcode != Opcode::GetDimensionSize && instr.operands().iter().any(|&o| dynamic(o))
}

/// The computations that run instruction by instruction, and whether they are fused.
fn running(module: &Module) -> Vec<(ComputationId, bool)> {
    let mut found = Vec::new();
    let mut pending = vec![(module.entry(), false)];
    let mut seen = FxHashSet::default();
    while let Some((c, fused)) = pending.pop() {
        if !seen.insert(c) {
            continue;
        }
        found.push((c, fused));
        for id in module.instructions(c) {
            let instr = module.instr(id);
            let runs = matches!(
                instr.opcode,
                Opcode::Call | Opcode::Fusion | Opcode::While | Opcode::Conditional | Opcode::AsyncStart
            );
            if runs {
                let fused = fused || instr.opcode == Opcode::Fusion;
                pending.extend(instr.attrs.called_computations().into_iter().map(|callee| (callee, fused)));
            }
        }
    }
    found
}
