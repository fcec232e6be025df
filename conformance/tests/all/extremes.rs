//! Every number of every attribute at the ends of what it can hold, and just behind: parsing, verifying,
//! printing, interpreting and compiling end without a panic and within their limits.
//!
//! A number that means "none" or "not known" inside of a program shows here, if text can say it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hlo_attack::numbers;
use hlo_conformance::filetest::SEPARATOR;
use hlo_engines::engine::{self, Inputs, Limits, RunOptions};
use hlo_engines::frontend::parse_text;
use hlo_engines::inputs;
use hlo_system::guard::{guarded, on_deep_stack};
use libtest_mimic::Trial;
use rustc_hash::FxHashSet;

use crate::crashers::survive;
use crate::{crate_dir, files_below, function};

pub(crate) fn trials() -> Vec<Trial> {
    vec![function("extremes/of every number of every attribute", numbers_of_attributes)]
}

const EXTREMES: &[&str] = &[
    "-9223372036854775808",
    "-9223372036854775807",
    "-2147483648",
    "-1",
    "0",
    "2147483647",
    "4294967295",
    "4294967296",
    "9223372036854775806",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
];

/// So long may one program take, on a machine that has other things to do as well.
const LONGEST: Duration = Duration::from_secs(20);

/// Programs with all attributes: one of each file of filetests, and what numbers besides those attributes
/// have.
fn programs() -> Vec<String> {
    let mut all = Vec::new();
    for file in files_below(&crate_dir().join("filetests"), "hlo") {
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        let mut chunks = hlo_attack::programs(&text, SEPARATOR);
        chunks.retain(|c| c.len() < 3_000);
        let last = chunks.len() / 2;
        all.extend(chunks.into_iter().skip(last).take(1));
    }
    all.push(SHAPES.to_owned());
    all
}

const SHAPES: &str = r#"HloModule m, replica_count=1, num_partitions=1, input_output_alias={ {0}: (0, {}, may-alias) }, entry_computation_layout={(f32[8,16]{1,0:T(8,128)}, s4[6]{0:E(4)})->(f32[8,16]{1,0}, s4[6]{0})}

ENTRY e {
  a = f32[8,16]{1,0:T(8,128)S(1)} parameter(0), sharding={devices=[1,1]<=[1]}, metadata={op_name="x" source_line=3}
  b = s4[6]{0:E(4)} parameter(1), sharding={devices=[1]0}, parameter_replication={false}
  ROOT t = (f32[8,16]{1,0}, s4[6]{0}) tuple(a, b), frontend_attributes={k="1"}
}
"#;

/// The programs that come of one, each with another number.
fn variants(program: &str) -> Vec<String> {
    let mut made = Vec::new();
    let mut start = 0;
    for line in program.split_inclusive('\n') {
        let at = start..start + line.len();
        start = at.end;
        let attributes = if line.starts_with("HloModule") || program.contains("T(8,128)") {
            Some(0)
        } else {
            line.rfind("), ")
        };
        let Some(from) = attributes else { continue };
        for number in numbers(program, &(at.start + from..at.end)) {
            for extreme in EXTREMES {
                made.push(format!("{}{extreme}{}", &program[..number.start], &program[number.end..]));
            }
        }
    }
    made
}

/// Compiles a program that verifies, and runs it.
fn compiled(text: &str) -> Result<(), String> {
    let (Some(module), found) = parse_text(text) else { return Ok(()) };
    let Ok(engine) = engine::by_name("cpu:O2") else { return Ok(()) };
    if found.has_errors() || hlo::verify::verify(&module).has_errors() {
        return Ok(());
    }
    let limits = Limits { fuel: Some(10_000), memory_bytes: 64 << 20 };
    let made = inputs::plan(&module, None).and_then(|p| {
        let devices = engine::devices::stated(&module, None, None)?;
        let arrays = inputs::generate(&p, 0, devices, limits.memory_bytes)?;
        Ok((devices, Inputs::new(&module, &arrays)?))
    });
    if let Ok((devices, inputs)) = made {
        // Any outcome will do but a panic.
        let _ = engine.run(&module, inputs, &RunOptions { limits, devices, ..RunOptions::default() });
    }
    Ok(())
}

fn numbers_of_attributes() {
    let mut seen = FxHashSet::default();
    let mut texts: Vec<String> = Vec::new();
    for program in programs() {
        texts.extend(variants(&program).into_iter().filter(|v| seen.insert(v.clone())));
    }
    assert!(texts.len() > 10_000, "the numbers of attributes are not found: {}", texts.len());
    let next = AtomicUsize::new(0);
    let wrong: Mutex<Vec<String>> = Mutex::default();
    let work = || {
        while let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let start = Instant::now();
            let tried = guarded("trying an extreme", || Ok(survive(text).and_then(|()| compiled(text))));
            let problem = match tried {
                Ok(Ok(())) if start.elapsed() < LONGEST => continue,
                Ok(Ok(())) => format!("it takes {:?}", start.elapsed()),
                Ok(Err(what)) => what,
                Err(panic) => panic.message,
            };
            wrong.lock().unwrap().push(format!("{problem}\n{text}"));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| on_deep_stack(work));
        }
    });
    let wrong = wrong.into_inner().unwrap();
    let shown: Vec<&str> = wrong.iter().take(20).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of {} programs:\n{}", wrong.len(), texts.len(), shown.join("\n\n"));
}
