//! `hlo exhaustive`: elementwise functions against arbitrary precision.

use std::time::Instant;

use clap::Args;
use hlo::diag::suggest::did_you_mean;
use hlo::{ElementType, Opcode};
use serde::Serialize;

use super::ui::Ui;
use hlo_engines::engine;
use hlo_exact::exhaustive::{self, Job, Wrong};
use hlo_system::exit::{Exit, Failure};

/// Options of `hlo exhaustive`.
#[derive(Args, Debug)]
#[command(after_help = "\
Unary functions of types of up to 32 bits and binary ones of up to 8 are tried on all operands, others on points.

Examples:
  hlo exhaustive exp f32                        all 2^32 operands
  hlo exhaustive power f64 --points 1000000
  hlo exhaustive tanh f32 --shard 3/16          one of 16 parts; parts need no coordination
  hlo exhaustive sin f32 --platform cpu --stride 499
  hlo exhaustive --all bf16                     every function of a type")]
pub(crate) struct Options {
    /// The function: an opcode, or exp, expm1, log1p, sin, cos, pow, sigmoid
    #[arg(required_unless_present = "all")]
    function: Option<String>,
    /// The element type; with --all, none means all float and complex types
    #[arg(value_name = "TYPE")]
    ty: Option<String>,
    /// Every function
    #[arg(long)]
    all: bool,
    /// Points where not all operands are tried
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    points: u64,
    /// Which points
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Part I of N, from 1
    #[arg(long, value_name = "I/N")]
    shard: Option<String>,
    /// Where all operands are tried: only every Nth of them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    stride: u64,
    /// Accept results that are off by this many units in the last place [default: 0 for the interpreter,
    /// otherwise what the table of opcodes says]
    #[arg(long, value_name = "N")]
    max_ulp: Option<u64>,
    /// What is checked
    #[arg(long, value_name = "NAME", default_value = "interpreter", alias = "platform")]
    engine: String,
}

#[derive(Serialize)]
struct Object {
    function: &'static str,
    ty: &'static str,
    exhaustive: bool,
    checked: u64,
    evaluated: u64,
    skipped: u64,
    wrong: u64,
    worst_ulp: u64,
    seconds: f64,
    examples: Vec<String>,
}

const ALIASES: &[(&str, Opcode)] = &[
    ("exp", Opcode::Exponential),
    ("expm1", Opcode::ExponentialMinusOne),
    ("log1p", Opcode::LogPlusOne),
    ("sin", Opcode::Sine),
    ("cos", Opcode::Cosine),
    ("pow", Opcode::Power),
    ("sigmoid", Opcode::Logistic),
    ("rem", Opcode::Remainder),
];

fn functions() -> impl Iterator<Item = Opcode> {
    Opcode::ALL
        .iter()
        .copied()
        .filter(|&op| ElementType::ALL.iter().any(|&ty| exhaustive::has_reference(op, ty)))
}

fn function(name: &str) -> Result<Opcode, Failure> {
    let lower = name.to_ascii_lowercase();
    let named = ALIASES.iter().find(|(alias, _)| *alias == lower).map(|(_, opcode)| *opcode);
    if let Some(opcode) = named.or_else(|| functions().find(|opcode| opcode.name() == lower)) {
        return Ok(opcode);
    }
    let names = functions().map(Opcode::name).chain(ALIASES.iter().map(|(alias, _)| *alias));
    let hint = did_you_mean(&lower, names).map(|s| format!("; did you mean `{s}`?")).unwrap_or_default();
    Err(Failure::usage(format!("there is no function `{name}`{hint}")))
}

fn element_type(name: &str) -> Result<ElementType, Failure> {
    ElementType::from_name(name).ok_or_else(|| {
        let hint = did_you_mean(name, ElementType::ALL.iter().map(|ty| ty.name()));
        let hint = hint.map(|s| format!("; did you mean `{s}`?")).unwrap_or_default();
        Failure::usage(format!("there is no element type `{name}`{hint}"))
    })
}

fn shard(text: &str) -> Result<(u64, u64), Failure> {
    let parts =
        text.split_once('/').and_then(|(i, n)| Some((i.parse::<u64>().ok()?, n.parse::<u64>().ok()?)));
    match parts {
        Some((i, n)) if i >= 1 && i <= n => Ok((i - 1, n)),
        _ => Err(Failure::usage(format!("--shard takes I/N with 1 <= I <= N, not `{text}`"))),
    }
}

pub(crate) fn run(options: &Options, ui: &Ui) -> Result<Exit, Failure> {
    let engine = engine::by_name(&options.engine)?;
    let shard = options.shard.as_deref().map_or(Ok((0, 1)), shard)?;
    // With --all the only word is a type.
    let (name, ty) = if options.all {
        (None, options.ty.as_deref().or(options.function.as_deref()))
    } else {
        (options.function.as_deref(), options.ty.as_deref())
    };
    let opcodes = match name {
        Some(name) => vec![function(name)?],
        None => functions().collect(),
    };
    let types = match ty {
        Some(ty) => vec![element_type(ty)?],
        None if options.all => ElementType::ALL.to_vec(),
        None => return Err(Failure::usage("an element type is missing, as in `hlo exhaustive exp f32`")),
    };
    let mut exit = Exit::Ok;
    let mut any = false;
    for &opcode in &opcodes {
        for &ty in &types {
            if !exhaustive::has_reference(opcode, ty) {
                continue;
            }
            any = true;
            let (points, seed, stride) = (options.points, options.seed, options.stride);
            let granted = if engine.name() == "interpreter" { 0 } else { exhaustive::bound(opcode, ty) };
            let max_ulp = options.max_ulp.unwrap_or(granted);
            let job = Job { opcode, ty, points, seed, shard, stride, max_ulp };
            if !one(&*engine, &job, ui)? {
                exit = Exit::Differs;
            }
        }
    }
    if !any {
        return Err(Failure::new(
            Exit::Unsupported,
            "there is no reference for such a function of such a type",
        ));
    }
    Ok(exit)
}

/// Runs one job and prints a line, and the worst results. Returns whether all were right.
fn one(engine: &dyn engine::Engine, job: &Job, ui: &Ui) -> Result<bool, Failure> {
    let (all, total) = job.size();
    let bar = ui.bar(total / job.shard.1);
    let start = Instant::now();
    let report = exhaustive::run(engine, job, &|n| bar.inc(n))?;
    bar.finish_and_clear();
    let seconds = start.elapsed().as_secs_f64();
    let examples: Vec<String> = report.examples.iter().map(|w| describe(job.ty, w)).collect();
    if ui.json {
        ui.object(&Object {
            function: job.opcode.name(),
            ty: job.ty.name(),
            exhaustive: all && job.shard.1 == 1 && job.stride == 1,
            checked: report.checked,
            evaluated: report.evaluated,
            skipped: report.skipped,
            wrong: report.wrong,
            worst_ulp: report.worst_ulp,
            seconds,
            examples,
        });
        return Ok(report.wrong == 0);
    }
    let which = match (all, job.shard.1) {
        (true, _) if job.stride > 1 => "operands",
        (true, 1) => "all operands",
        (true, _) => "a shard of all operands",
        (false, _) => "points",
    };
    let verdict = if report.wrong == 0 { ui.good("ok") } else { ui.bad(&format!("{} wrong", report.wrong)) };
    let skipped =
        if report.skipped > 0 { format!(", {} without a reference", report.skipped) } else { String::new() };
    ui.line(format!(
        "{verdict} {} {}: {} {which}{skipped}, {} in arbitrary precision, worst {} ulp, {seconds:.1} s",
        job.opcode, job.ty, report.checked, report.evaluated, report.worst_ulp
    ));
    examples.iter().for_each(|example| ui.line(format!("  {example}")));
    Ok(report.wrong == 0)
}

/// `tanh(0x3f800000 = 1) is 0x3f42f7d6 = 0.7615942, expected 0x3f42f7d7`
fn describe(ty: ElementType, wrong: &Wrong) -> String {
    let show = |bits: u128| {
        let text = hlo::with_element_type!(ty, T => {
            let mut text = String::new();
            hlo_execution::element::Number::write(<T as hlo::Bits>::from_bits(bits), &mut text);
            text
        });
        format!("{bits:#x} = {text}")
    };
    let operands: Vec<String> = wrong.operands.iter().map(|&bits| show(bits)).collect();
    let ulp = if wrong.ulp == u64::MAX { "no number".to_owned() } else { format!("{} ulp", wrong.ulp) };
    format!("of ({}): {}, expected {} ({ulp})", operands.join(", "), show(wrong.actual), show(wrong.expected))
}
