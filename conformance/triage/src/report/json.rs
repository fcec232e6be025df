//! Findings for machines. The names of fields are documented in docs/harness.md and do not change.

use hlo::Module;
use serde::Serialize;

use crate::isolate::{Blame, Isolation, Row};
use crate::replay::{Divergence, How, Location, Replay};
use hlo_execution::verdict::{ArrayVerdict, Class, Differing, Tally};

/// An execution of an instruction.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LocationObject {
    name: String,
    computation: String,
    opcode: &'static str,
    execution: u64,
    iteration: Option<u64>,
    device: u32,
    calls: Vec<CallObject>,
}

/// A call on the way there.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct CallObject {
    name: String,
    opcode: &'static str,
    iteration: u64,
}

/// From a location.
pub fn location(p: &Location) -> LocationObject {
    LocationObject {
        name: p.name.to_string(),
        computation: p.computation.to_string(),
        opcode: p.opcode.name(),
        execution: p.execution,
        iteration: p.iteration,
        device: p.device,
        calls: p
            .calls
            .iter()
            .map(|c| CallObject { name: c.name.to_string(), opcode: c.opcode.name(), iteration: c.iteration })
            .collect(),
    }
}

/// The verdict over an array.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ArrayObject {
    array: usize,
    shape: Vec<i64>,
    class: Class,
    elements: Tally,
    worst: Vec<Differing>,
    common: Option<String>,
    by_ulp: Vec<(&'static str, u64)>,
    by_bound: Vec<(&'static str, u64)>,
}

/// From a verdict over array number `array`.
pub fn array(array: usize, v: &ArrayVerdict) -> ArrayObject {
    let filled = |names: [&'static str; 8], counts: [u64; 8]| {
        names.into_iter().zip(counts).filter(|(_, n)| *n > 0).collect()
    };
    ArrayObject {
        array,
        shape: v.dims.clone(),
        class: v.class(),
        elements: v.tally,
        worst: v.worst.clone(),
        common: v.common(),
        by_ulp: filled(ArrayVerdict::BUCKETS, v.histogram),
        by_bound: filled(ArrayVerdict::MULTIPLES, v.multiples),
    }
}

/// A divergence of a replay.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct DivergenceObject {
    #[serde(flatten)]
    location: LocationObject,
    how: &'static str,
    message: String,
    class: Class,
    covers: Vec<String>,
    arrays: Vec<ArrayObject>,
}

fn how(how: &How) -> &'static str {
    match how {
        How::Value => "value",
        How::Shape(_) => "shape",
        How::Operands => "operands",
        How::Calls => "calls",
        How::Result => "result",
    }
}

fn divergence(module: &Module, d: &Divergence) -> DivergenceObject {
    DivergenceObject {
        location: location(&d.location),
        how: how(&d.how),
        message: d.how.describe(),
        class: d.class,
        covers: d.covers.iter().map(|&id| module.instr(id).name.to_string()).collect(),
        arrays: d.arrays.iter().map(|(i, v)| array(*i, v)).collect(),
    }
}

/// A replay, or why there is none.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
enum ReplayObject {
    None {
        none: String,
    },
    Some {
        compared: u64,
        unmatched: u64,
        explained: u64,
        undecided: u64,
        wrong: u64,
        unjudged: u64,
        ended: Option<String>,
        divergences: Vec<DivergenceObject>,
    },
}

fn replay(module: &Module, r: &Replay, show: usize) -> ReplayObject {
    ReplayObject::Some {
        compared: r.compared,
        unmatched: r.unmatched,
        explained: r.explained,
        undecided: r.undecided,
        wrong: r.wrong,
        unjudged: r.unjudged,
        ended: r.ended.as_ref().map(|d| d.message.clone()),
        divergences: r.divergences.iter().take(show).map(|d| divergence(module, d)).collect(),
    }
}

/// Who is to blame.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BlameObject {
    #[serde(flatten)]
    location: LocationObject,
    how: &'static str,
    found: crate::isolate::Found,
    class: Class,
    message: String,
}

/// From who is to blame.
pub fn blame(b: &Blame) -> BlameObject {
    let message = super::text::blame(b);
    BlameObject { location: location(&b.location), how: how(&b.how), found: b.found, class: b.class, message }
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct RowObject {
    name: String,
    computation: String,
    opcode: &'static str,
    executions: u64,
    status: &'static str,
    reason: String,
    execution: u64,
    device: u32,
    in_place: Option<Class>,
}

fn row(r: &Row) -> RowObject {
    RowObject {
        name: r.name.to_string(),
        computation: r.computation.to_string(),
        opcode: r.opcode.name(),
        executions: r.executions,
        status: r.alone.name(),
        reason: super::text::reason(r),
        execution: r.execution,
        device: r.device,
        in_place: r.in_place,
    }
}

/// What `hlo isolate --json` prints for an engine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct IsolationObject {
    file: String,
    ok: bool,
    exit: u8,
    module: String,
    reference: String,
    engine: String,
    blame: Option<BlameObject>,
    replay: ReplayObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<ReplayObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<crate::isolate::Origin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<String>,
    instructions: Vec<RowObject>,
    whole: &'static str,
    hidden: bool,
    next: Vec<String>,
}

/// From what was found; of divergences the first `show`.
pub fn isolation(
    (file, module): (&str, &Module),
    found: &Isolation,
    show: usize,
    next: Vec<String>,
) -> IsolationObject {
    let diverges = found.diverges();
    let exit = found.exit;
    IsolationObject {
        file: file.to_owned(),
        ok: !diverges,
        exit: exit.code(),
        module: module.name.to_string(),
        reference: "interpreter".into(),
        engine: found.engine.clone(),
        blame: found.blame.as_ref().map(blame),
        replay: match &found.replay {
            Ok(r) => replay(module, r, show),
            Err(none) => ReplayObject::None { none: none.clone() },
        },
        steps: found.steps.as_ref().map(|r| replay(module, r, show)),
        origin: found.origin,
        strategy: found.strategy.clone(),
        instructions: found.rows.iter().map(row).collect(),
        whole: found.whole.kind.describe(),
        hidden: found.is_hidden(),
        next,
    }
}
