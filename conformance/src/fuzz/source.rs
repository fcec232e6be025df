//! Sources of programs: generated from bytes, or mutated real programs.

use std::sync::Arc;

use hlo::elided::splitmix64;
use hlo::{ArrayLiteral, Module};
use serde::{Deserialize, Serialize};

use hlo_engines::inputs::{self, InputKind};
use hlo_generate::generate::{self, Limits, SeededHost};
use hlo_generate::mutate::{Mutant, mutate};
use hlo_triage::differential::Hosts;

/// The size of generated programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// A few instructions on small arrays, one device
    Small,
    /// Some twenty instructions, nested computations, several devices
    Medium,
    /// Arrays large enough for kernels to cut their work into pieces
    Large,
    /// A few instructions on arrays that leave the nearest caches
    Huge,
    /// Of each some but huge: mostly small
    Mixed,
}

/// A program to run.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program.
    pub module: Module,
    /// For each device the arrays of the entry's parameters.
    pub inputs: Vec<Vec<ArrayLiteral>>,
    /// The host side of feeds.
    pub host: Hosts,
    /// The program that it is a mutant of, if it is one.
    pub from: Option<String>,
    /// Whether that was StableHLO.
    pub is_stablehlo: bool,
}

/// A real program.
#[derive(Clone, Debug)]
pub struct Base {
    /// Its origin.
    pub name: String,
    /// The program.
    pub module: Module,
    /// For each device the arrays of the entry's parameters.
    pub inputs: Vec<Vec<ArrayLiteral>>,
    /// Whether it was given as StableHLO.
    pub is_stablehlo: bool,
}

/// A sequence of programs.
#[derive(Clone, Debug)]
pub struct Source {
    /// Of the sequence.
    pub seed: u64,
    /// Of generated programs.
    pub size: Size,
    /// Real programs; if there are none, all are generated.
    pub bases: Arc<Vec<Base>>,
    /// Whether every program of the sequence is a changed one of these, or they are the sequence.
    pub mutated: bool,
    /// Whether programs may ask for several devices.
    pub devices: bool,
}

/// The limits whose pairs of opcode and element type are counted as all there are.
pub const WIDEST: Limits = Limits::large();

impl Source {
    /// Program `number`; `None` if there is none (a change that did not verify).
    pub fn program(&self, number: u64) -> Option<Program> {
        let seed = splitmix64(splitmix64(self.seed) ^ number);
        if !self.bases.is_empty() && !self.mutated {
            let Base { name, module, inputs, is_stablehlo } =
                self.bases.get(usize::try_from(number).ok()?)?.clone();
            let devices = inputs.len() as u32;
            let host = Hosts::new(move || Arc::new(SeededHost::new(seed, devices)));
            return Some(Program { module, inputs, host, from: Some(name), is_stablehlo });
        }
        if !self.bases.is_empty() {
            let pick = |r: u64| &self.bases[(splitmix64(r) % self.bases.len() as u64) as usize];
            let (base, donor) = (pick(seed), pick(!seed));
            let Mutant { module, inputs, .. } = mutate(&base.module, &base.inputs, &[&donor.module], seed)?;
            let inputs = of_kind(&module, inputs, InputKind::hunted(splitmix64(seed ^ 0x5eed)), seed);
            let devices = inputs.len() as u32;
            let host = Hosts::new(move || Arc::new(SeededHost::new(seed, devices)));
            return Some(Program {
                module,
                inputs,
                host,
                from: Some(base.name.clone()),
                is_stablehlo: base.is_stablehlo,
            });
        }
        let limits = match (self.size, seed % 8) {
            (Size::Small, _) | (Size::Mixed, 0..=3) => Limits::small(),
            (Size::Medium, _) | (Size::Mixed, 4..=6) => Limits::default(),
            (Size::Huge, _) => Limits::huge(),
            (Size::Large, _) | (Size::Mixed, _) => Limits::large(),
        };
        let devices = if self.devices { limits.devices } else { 1 };
        let case = generate::case(seed, Limits { devices, ..limits });
        let devices = case.inputs.len() as u32;
        let host = Hosts::new(move || Arc::new(SeededHost::new(seed, devices)));
        Some(Program { module: case.module, inputs: case.inputs, host, from: None, is_stablehlo: false })
    }
}

/// The inputs with arrays of another kind where the program leaves them open.
fn of_kind(
    module: &Module,
    mut inputs: Vec<Vec<ArrayLiteral>>,
    kind: InputKind,
    seed: u64,
) -> Vec<Vec<ArrayLiteral>> {
    if kind == InputKind::Gentle {
        return inputs;
    }
    let Ok(plan) = inputs::plan(module, None) else { return inputs };
    for (device, arrays) in (0..).zip(&mut inputs) {
        for (leaf, array) in plan.leaves.iter().zip(arrays).filter(|(l, _)| l.free) {
            *array = leaf.of_kind(kind).made(seed, device);
        }
    }
    inputs
}
