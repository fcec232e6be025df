//! What a hunt found by kind: undecided elements by the instruction at which their bounds are lost, programs that
//! are wrong by the first instruction that diverges.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cause::Causes;
use hlo_certify::bounds::certify;
use hlo_execution::verdict::Class;
use hlo_triage::differential::{Difference, Kind, Settings, Subject, result_number};
use hlo_triage::instruction_kind::InstructionKind;

/// How many elements and programs come down to instructions of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tallied {
    /// Elements that differ.
    pub elements: u64,
    /// Programs that have some.
    pub programs: u64,
    /// The number of the first of these programs.
    pub first: u64,
}

impl Tallied {
    pub(super) fn add(&mut self, other: &Tallied) {
        let first = if self.programs == 0 { other.first } else { self.first.min(other.first) };
        *self = Tallied {
            elements: self.elements + other.elements,
            programs: self.programs + other.programs,
            first,
        };
    }
}

/// The kind where no instruction is found.
const NOT_FOUND: &str = "not found";

fn kind_of(instruction: Option<InstructionKind>) -> String {
    instruction.map_or_else(|| NOT_FOUND.to_owned(), |kind| kind.to_string())
}

/// Program `number` by the kind of its first instruction that diverges, if it is wrong.
pub(super) fn wrong(number: u64, difference: &Difference) -> BTreeMap<String, Tallied> {
    if difference.kind != Kind::Wrong {
        return BTreeMap::new();
    }
    let of = Tallied { elements: difference.tally.wrong, programs: 1, first: number };
    BTreeMap::from([(kind_of(difference.blamed), of)])
}

/// The undecided elements of program `number` by kind: opcode and element type, such as `divide f32`.
pub(super) fn undecided(
    number: u64,
    difference: &Difference,
    subject: &Subject<'_>,
    settings: &Settings,
) -> BTreeMap<String, Tallied> {
    let mut kinds = BTreeMap::new();
    if difference.tally.undecided == 0 {
        return kinds;
    }
    let mut causes = Causes::default();
    let run = subject.inputs().and_then(|inputs| {
        certify(subject.module, inputs, &settings.run, difference.allowances, &mut causes)
    });
    for (name, verdict) in difference.arrays.iter().filter(|(_, v)| v.tally.undecided > 0) {
        let array = result_number(name);
        let cause = run.is_ok().then(|| causes.of_result(subject.module, array?)).flatten();
        let kind = kind_of(cause);
        let of: &mut Tallied = kinds.entry(kind).or_default();
        *of = Tallied { elements: of.elements + verdict.tally.undecided, programs: 1, first: number };
    }
    debug_assert!(difference.arrays.iter().any(|(_, v)| v.class() >= Class::Undecided));
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo_engines::engine::{InterpreterEngine, by_name};
    use hlo_engines::frontend::parse_text;
    use hlo_triage::differential::differ;

    /// 1 less a unit has the floor 0. Judged over the whole program, without a replay, the floor decides.
    #[test]
    fn undecided_elements_are_counted_by_what_decides_them() {
        let text = "HloModule m\nENTRY e { x = f32[3] constant({0, 0, 1})\n y = f32[3] exponential(x)\n f = f32[3] floor(y)\n n = f32[3] negate(f)\n ROOT t = (f32[3], f32[3]) tuple(n, y) }";
        let module = parse_text(text).0.unwrap();
        let inputs = [Vec::new()];
        let subject = Subject::new(&module, &inputs);
        let settings = Settings { replay: false, ..Settings::default() };
        let engine = by_name("interpreter:ulp-down").unwrap();
        let difference = differ(&InterpreterEngine, &*engine, &subject, &settings);
        assert_eq!((difference.kind, difference.tally.undecided), (Kind::Undecided, 2));
        let mut found = undecided(7, &difference, &subject, &settings);
        let floor = Tallied { elements: 2, programs: 1, first: 7 };
        assert_eq!(found, BTreeMap::from([("floor f32".to_owned(), floor)]));
        // Of two programs.
        found.get_mut("floor f32").unwrap().add(&Tallied { elements: 3, programs: 1, first: 4 });
        assert_eq!(found["floor f32"], Tallied { elements: 5, programs: 2, first: 4 });
    }
}
