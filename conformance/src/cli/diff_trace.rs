//! `hlo diff-trace`: where two runs first differ.

use clap::Args;
use serde::Serialize;

use super::ui::Ui;
use hlo_system::exit::{Exit, Failure};
use hlo_triage::compare::Tolerance;
use hlo_triage::report::{self, parse_bytes};
use hlo_triage::watch::diff::{Difference, Found, diff};
use hlo_triage::watch::trace::{Array, Record, Trace};

/// Options of `hlo diff-trace`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// A trace of `hlo run --trace`
    #[arg(value_name = "DIR")]
    first: String,
    /// Another
    #[arg(value_name = "DIR")]
    second: String,
    /// Floats within N representable numbers are equal (where both traces have the values)
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_ulp: u64,
    /// How many differences to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    show: usize,
    /// The largest array that is read, such as 1GiB
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = parse_bytes)]
    pub(super) memory_limit: u64,
}

const EXAMPLES: &str = "\
Examples:
  hlo run module.hlo --trace a
  hlo run other.hlo --trace b
  hlo diff-trace a b

Executions are matched by device, computation, name and number. Ends with 0 if all values are the same, 1 if not.";

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let (a, b) = (Trace::open(&options.first)?, Trace::open(&options.second)?);
    let tolerance = match options.max_ulp {
        0 => Tolerance::Exact,
        n => Tolerance::Ulp(n),
    };
    let found = diff(&a, &b, tolerance, options.memory_limit)?;
    if ui.json {
        ui.object(&object(&a, &found, options.show));
    } else {
        print(ui, (&a, &b), &found, options);
    }
    Ok(if found.same() { Exit::Ok } else { Exit::Differs })
}

#[derive(Serialize)]
struct Object<'a> {
    ok: bool,
    executions: usize,
    differ: usize,
    only_first: usize,
    only_second: usize,
    differences: Vec<DifferenceObject<'a>>,
}

#[derive(Serialize)]
struct DifferenceObject<'a> {
    name: &'a str,
    computation: &'a str,
    opcode: &'a str,
    execution: u64,
    device: (u32, u32),
    array: usize,
    elements: Option<usize>,
    wrong: Option<usize>,
    max_ulp: Option<u64>,
    max_abs: Option<f64>,
}

fn object<'a>(a: &'a Trace, found: &Found, show: usize) -> Object<'a> {
    let differences = found.differences.iter().take(show).map(|d| {
        let r = &a.records[d.position];
        let c = d.comparison.as_ref();
        DifferenceObject {
            name: &r.name,
            computation: &r.computation,
            opcode: &r.opcode,
            execution: r.execution,
            device: r.device,
            array: d.array,
            elements: c.map(|c| c.elements),
            wrong: c.map(|c| c.wrong),
            max_ulp: c.and_then(|c| c.max_ulp),
            max_abs: c.map(|c| c.max_abs),
        }
    });
    Object {
        ok: found.same(),
        executions: found.matched,
        differ: found.differing,
        only_first: found.only_first.len(),
        only_second: found.only_second.len(),
        differences: differences.collect(),
    }
}

fn print(ui: &Ui, (a, b): (&Trace, &Trace), found: &Found, options: &Options) {
    ui.detail(format!("{}: {}, {} values", a.folder, a.head.module, report::grouped(a.records.len() as u64)));
    ui.detail(format!("{}: {}, {} values", b.folder, b.head.module, report::grouped(b.records.len() as u64)));
    for d in found.differences.iter().filter(|d| d.first) {
        first(ui, &a.records[d.position], &b.records[d.other], d);
    }
    if !found.differences.is_empty() && options.show > 0 {
        let shown = || found.differences.iter().take(options.show);
        let width = shown().map(|d| described(&a.records[d.position]).chars().count()).max().unwrap_or(0);
        ui.detail(format!(
            "  {:width$}  {:20}  {:>12}  {:>10}  {:>10}",
            "value", "opcode", "differ", "ulp", "abs"
        ));
        for d in shown() {
            let r = &a.records[d.position];
            let (count, ulp, abs) = match &d.comparison {
                Some(c) => (
                    report::count(c.wrong as u64),
                    c.max_ulp.map_or_else(|| "inf".into(), report::count),
                    format!("{:.2e}", c.max_abs),
                ),
                None => ("?".into(), "?".into(), "?".into()),
            };
            ui.detail(format!(
                "  {:width$}  {:20}  {count:>12}  {ulp:>10}  {abs:>10}",
                described(r),
                r.opcode
            ));
        }
        if found.differing > options.show {
            ui.detail(format!("  ... and {} more", report::grouped((found.differing - options.show) as u64)));
        }
        let opcodes: Vec<String> =
            found.opcodes.iter().map(|(o, all, n)| format!("{o} {n} of {all}")).collect();
        ui.detail(format!("  by opcode: {}", opcodes.join(", ")));
    }
    for (trace, only, name) in [(a, &found.only_first, "first"), (b, &found.only_second, "second")] {
        if let Some(&i) = only.first() {
            ui.detail(format!(
                "  only in the {name}: {}, the first is {}",
                report::grouped(only.len() as u64),
                described(&trace.records[i])
            ));
        }
    }
    let verdict = format!(
        "{} of {} values differ",
        report::grouped(found.differing as u64),
        report::grouped(found.matched as u64)
    );
    ui.line(if found.same() { ui.good(&verdict) } else { ui.bad(&verdict) });
}

/// The first difference of a device in full.
fn first(ui: &Ui, a: &Record, b: &Record, d: &Difference) {
    let device = match a.device {
        (0, 0) => String::new(),
        (replica, partition) => format!(" on replica {replica}, partition {partition}"),
    };
    ui.line(format!("first difference{device}: {}, {}", described(a), a.opcode));
    let calls: Vec<String> = a.calls.iter().map(|(name, i)| format!("{name}[{i}]")).collect();
    if !calls.is_empty() {
        ui.detail(format!("  in       {}", calls.join(" / ")));
    }
    for (which, record) in [("first", a), ("second", b)] {
        let text = record.arrays.get(d.array).map_or_else(|| "no array".to_owned(), describe);
        ui.line(format!("  {which:8} {text}"));
    }
    for w in d.comparison.iter().flat_map(|c| &c.worst) {
        let index: Vec<String> = w.index.iter().map(i64::to_string).collect();
        let ulp = w.ulp.map(|u| format!(", {} ulp", report::grouped(u))).unwrap_or_default();
        ui.detail(format!(
            "           [{}]   {}   {}   (abs {:.2e}{ulp})",
            index.join(","),
            w.expected,
            w.actual,
            w.abs
        ));
    }
}

fn describe(array: &Array) -> String {
    let dims: Vec<String> = array.shape.iter().map(i64::to_string).collect();
    let s = &array.summary;
    let mut text = format!("{}[{}]", array.element_type, dims.join(","));
    if let (Some(min), Some(max)) = (&s.min, &s.max) {
        text.push_str(&format!("   {min} to {max}"));
    }
    for (n, what) in [(s.nan, "NaN"), (s.inf, "infinite"), (s.zeros, "zero")] {
        if n > 0 {
            text.push_str(&format!("   {} {what}", report::count(n)));
        }
    }
    format!("{text}   bits {}", s.hash)
}

fn described(r: &Record) -> String {
    match r.execution {
        0 => format!("{}.{}", r.computation, r.name),
        n => format!("{}.{}#{n}", r.computation, r.name),
    }
}
