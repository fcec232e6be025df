//! What generated programs were made of: which pairs of opcode and element type came up, and which are still
//! to come.

use hlo::{ElementType, Module, Opcode};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{Limits, Pair, fuzzable};
use crate::legal::{Key, key_of};

/// Counts over programs; those of several runs or processes can be put together.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Statistics {
    /// Programs.
    pub programs: u64,
    /// Instructions in them.
    pub instructions: u64,
    /// The occurrences of each pair.
    pairs: FxHashMap<Pair, u64>,
}

/// As it is written: pairs as text, in order.
#[derive(Serialize, Deserialize)]
struct Stored {
    programs: u64,
    instructions: u64,
    pairs: std::collections::BTreeMap<String, u64>,
}

fn written((opcode, key): &Pair) -> String {
    format!("{opcode} {key}")
}

/// The pair of a text; `None` of what this version does not know.
fn read(text: &str) -> Option<Pair> {
    let (opcode, key) = text.split_once(' ')?;
    let key = match key.split_once(" -> ") {
        Some((from, to)) => Key::FromTo(ElementType::from_name(from)?, ElementType::from_name(to)?),
        None if key == "-" => Key::Nothing,
        None => Key::On(ElementType::from_name(key)?),
    };
    Some((Opcode::from_name(opcode)?, key))
}

impl From<Stored> for Statistics {
    fn from(stored: Stored) -> Self {
        let pairs = stored.pairs.iter().filter_map(|(text, &n)| Some((read(text)?, n))).collect();
        Self { programs: stored.programs, instructions: stored.instructions, pairs }
    }
}

impl From<Statistics> for Stored {
    fn from(s: Statistics) -> Self {
        let pairs = s.pairs.iter().map(|(pair, &n)| (written(pair), n)).collect();
        Self { programs: s.programs, instructions: s.instructions, pairs }
    }
}

impl Statistics {
    /// Counts a verified program.
    pub fn add(&mut self, module: &Module) {
        self.programs += 1;
        for &c in module.computations() {
            for id in module.instructions(c) {
                let instr = module.instr(id);
                self.instructions += 1;
                *self.pairs.entry((instr.opcode, key_of(module, instr))).or_default() += 1;
            }
        }
    }

    /// Adds other statistics.
    pub fn merge(&mut self, other: &Statistics) {
        self.programs += other.programs;
        self.instructions += other.instructions;
        for (&pair, n) in &other.pairs {
            *self.pairs.entry(pair).or_default() += n;
        }
    }

    /// The occurrences of a pair.
    pub fn count(&self, pair: Pair) -> u64 {
        self.pairs.get(&pair).copied().unwrap_or(0)
    }

    /// The pairs that programs of these limits can hold, and how many of them occurred.
    pub fn reached(&self, limits: Limits) -> (usize, usize) {
        let all = fuzzable(limits);
        (all.iter().filter(|&&pair| self.count(pair) > 0).count(), all.len())
    }

    /// The pairs that programs of these limits can hold and that did not occur yet: what to aim at
    /// ([`super::case_towards`]).
    pub fn missing(&self, limits: Limits) -> Vec<Pair> {
        fuzzable(limits).into_iter().filter(|&pair| self.count(pair) == 0).collect()
    }

    /// Programs, instructions, pairs, in one line for people.
    pub fn summary(&self, limits: Limits) -> String {
        let (reached, all) = self.reached(limits);
        format!(
            "{} programs, {} instructions, {reached} of {all} pairs of opcode and element type",
            self.programs, self.instructions
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_survive_json() {
        let limits = Limits::small();
        let (mut a, mut b, mut both) = (Statistics::default(), Statistics::default(), Statistics::default());
        for seed in 0..40 {
            let module = super::super::case(seed, limits).module;
            if seed % 2 == 0 {
                a.add(&module)
            } else {
                b.add(&module)
            }
            both.add(&module);
        }
        let stored = serde_json::to_string(&b).unwrap();
        a.merge(&serde_json::from_str(&stored).unwrap());
        assert_eq!(a, both);
        let (reached, all) = both.reached(limits);
        assert_eq!(reached + both.missing(limits).len(), all);
        assert!(reached > 50 && both.programs == 40);
    }
}
