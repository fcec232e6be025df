//! The totals of a hunt. Totals of shards add up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::kinds::Tallied;
use hlo_engines::engine::Engine;
use hlo_execution::verdict::Tally;
use hlo_generate::generate::Statistics;
use hlo_triage::differential::{Difference, Kind};

/// The totals of one engine.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct EngineTotals {
    /// Its name.
    pub engine: String,
    /// Programs with the same bits.
    pub same: u64,
    /// Programs whose differences rounding explains.
    pub explained: u64,
    /// Programs with undecided elements and none wrong.
    pub undecided: u64,
    /// Programs with wrong elements.
    pub wrong: u64,
    /// Crashes, traps and timeouts.
    pub failed: u64,
    /// Programs that it does not support.
    pub unsupported: u64,
    /// Why, as the engine says it, without numbers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, u64>,
    /// Programs that were replayed because the verdict over the whole program was open.
    pub replayed: u64,
    /// Elements of results.
    pub elements: Tally,
    /// Undecided elements by opcode and element type of the instruction at which their bounds are lost.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub undecided_kinds: BTreeMap<String, Tallied>,
    /// Wrong programs by opcode and element type of the first instruction that diverges.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub wrong_kinds: BTreeMap<String, Tallied>,
}

impl EngineTotals {
    pub(super) fn count(&mut self, difference: &Difference) {
        match difference.kind {
            Kind::Same => self.same += 1,
            Kind::Explained => self.explained += 1,
            Kind::Undecided => self.undecided += 1,
            Kind::Wrong => self.wrong += 1,
            Kind::Crash | Kind::Trap | Kind::Timeout => self.failed += 1,
            Kind::Unsupported => {
                self.unsupported += 1;
                if let Some(why) = &difference.failure {
                    // The same reason for other names and sizes is the same.
                    let why = why.message.replace(|c: char| c.is_ascii_digit(), "");
                    *self.reasons.entry(why).or_default() += 1;
                }
            }
            Kind::Exhausted | Kind::NoReference => {}
        }
        self.replayed += u64::from(difference.replayed());
        self.elements.add(&difference.tally);
    }

    /// Counts kinds of undecided elements and of wrong programs.
    pub(super) fn count_kinds(
        &mut self,
        undecided: &BTreeMap<String, Tallied>,
        wrong: &BTreeMap<String, Tallied>,
    ) {
        let all = [(&mut self.undecided_kinds, undecided), (&mut self.wrong_kinds, wrong)];
        for (counted, kinds) in all {
            kinds.iter().for_each(|(kind, of)| counted.entry(kind.clone()).or_default().add(of));
        }
    }

    fn add(&mut self, other: &EngineTotals) {
        self.same += other.same;
        self.explained += other.explained;
        self.undecided += other.undecided;
        self.wrong += other.wrong;
        self.failed += other.failed;
        self.unsupported += other.unsupported;
        for (why, n) in &other.reasons {
            *self.reasons.entry(why.clone()).or_default() += n;
        }
        self.replayed += other.replayed;
        self.elements.add(&other.elements);
        self.count_kinds(&other.undecided_kinds, &other.wrong_kinds);
    }
}

/// The totals of a hunt.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Programs that ran.
    pub programs: u64,
    /// Numbers without a program.
    pub skipped: u64,
    /// Programs for which the reference had no results.
    pub reference_failed: u64,
    /// Instructions that the reference executed.
    pub fuel: u64,
    /// Distinct findings.
    pub findings: u64,
    /// Wall time; of merged shards the sum.
    pub seconds: f64,
    /// One for each engine.
    pub engines: Vec<EngineTotals>,
    /// Which opcodes on which types the programs had.
    pub coverage: Statistics,
}

impl Totals {
    pub(super) fn new(engines: &[&dyn Engine]) -> Self {
        let engine =
            |e: &&dyn Engine| EngineTotals { engine: e.name().to_owned(), ..EngineTotals::default() };
        Self { engines: engines.iter().map(engine).collect(), ..Self::default() }
    }

    /// Adds those of another thread or shard; engines are told apart by name.
    pub fn add(&mut self, other: &Totals) {
        self.programs += other.programs;
        self.skipped += other.skipped;
        self.reference_failed += other.reference_failed;
        self.fuel += other.fuel;
        self.findings += other.findings;
        self.seconds += other.seconds;
        for engine in &other.engines {
            match self.engines.iter_mut().find(|e| e.engine == engine.engine) {
                Some(mine) => mine.add(engine),
                None => self.engines.push(engine.clone()),
            }
        }
        self.coverage.merge(&other.coverage);
    }
}
