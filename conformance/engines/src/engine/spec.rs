//! Engines by name.

use std::sync::Arc;
use std::time::Duration;

use hlo::diag::suggest::did_you_mean;
use hlo_opt::passes::{self, Pass, Pipeline};

use super::external::{DEFAULT_TIMEOUT, ExternalEngine};
use super::form::FormEngine;
use super::gpu::{GpuEngine, GpuOptions};
use super::passes::PassesEngine;
use super::pjrt::PjrtEngine;
use super::recorded::RecordedEngine;
use super::timed::TimedEngine;
use super::xla_gpu::{XlaGpuCompiler, XlaGpuEngine};
use super::{Allowances, Engine, InterpreterEngine};
use crate::faults;
use crate::frontend;
use crate::variants;
use hlo_system::exit::{Exit, Failure};

/// The kinds of engines there are, as `--platform` accepts them.
pub const PLATFORMS: &[&str] = &[
    "interpreter",
    "interpreter:VARIANT",
    "cpu",
    "cpu:O0..O3",
    "cpu:scalar",
    "passes:P,Q",
    "form:FILE",
    "faulty:NAME",
    "recorded:FILE",
    "pjrt:PLUGIN.so",
    "ptx",
    "ptx:sm_80",
    "cuda",
    "xla-gpu",
    "xla-gpu:DIR",
    "exec:COMMAND",
    "serve:COMMAND",
    "child:ENGINE",
];

/// Whether the engine of this name runs in this process (or in a child that is this program) and reads no
/// files but regular ones. What does not may do anything, so that only people may name it, never a file. A
/// kind that is not listed here does not.
pub fn stays_inside(name: &str) -> bool {
    let (kind, rest) = name.split_once(':').unwrap_or((name, ""));
    match &*kind.to_ascii_lowercase() {
        "interpreter" | "cpu" | "host" | "passes" | "faulty" | "ptx" | "cuda" => true,
        "form" | "recorded" => std::fs::metadata(rest).is_ok_and(|there| there.is_file()),
        // A folder is read; without one XLA is started.
        "xla-gpu" => std::fs::metadata(rest).is_ok_and(|there| there.is_dir()),
        "child" => stays_inside(rest),
        _ => false,
    }
}

/// Names of platforms that people know from XLA and that are not built into this program.
const KNOWN_ELSEWHERE: &[&str] = &["gpu", "rocm", "tpu"];

/// The engine of this name. Errors: wrong usage with "did you mean", or unsupported for a platform that is
/// known but not there.
pub fn by_name(name: &str) -> Result<Arc<dyn Engine>, Failure> {
    make(name, DEFAULT_TIMEOUT)
}

/// The same, each of whose compilations and runs may take so long.
pub fn with_timeout(name: &str, timeout: Duration) -> Result<Arc<dyn Engine>, Failure> {
    let engine = make(name, timeout)?;
    Ok(if engine.ends_by_itself() { engine } else { Arc::new(TimedEngine::new(engine, timeout)) })
}

/// The same, with the time that a run of another program may take.
fn make(name: &str, timeout: Duration) -> Result<Arc<dyn Engine>, Failure> {
    let (kind, rest) = match name.split_once(':') {
        Some((kind, rest)) => (kind.to_ascii_lowercase(), Some(rest)),
        None => (name.to_ascii_lowercase(), None),
    };
    Ok(match (&*kind, rest) {
        ("interpreter", None) => Arc::new(InterpreterEngine),
        ("interpreter", Some(variant)) => {
            let variant = variants::by_name(variant).ok_or_else(|| {
                unknown(
                    "variant of the interpreter",
                    variant,
                    &names(variants::all().iter().map(|v| &*v.pass)),
                )
            })?;
            let engine = PassesEngine::new(
                name.to_owned(),
                Pipeline::new().then(variant.pass, None),
                variant.allowances,
            );
            Arc::new(engine.with_accumulate(variant.accumulate))
        }
        ("passes", Some(list)) => {
            Arc::new(PassesEngine::new(name.to_owned(), pipeline(list)?, Allowances::STRICT))
        }
        ("faulty", Some(fault)) => {
            let pass = faults::by_name(fault)
                .ok_or_else(|| unknown("fault", fault, &names(faults::all().iter().map(|p| p.pass()))))?;
            Arc::new(PassesEngine::new(name.to_owned(), Pipeline::new().then(pass, None), Allowances::STRICT))
        }
        ("cpu" | "host", options) => cpu(name, options)?,
        ("ptx", options) => Arc::new(GpuEngine::interpreted(name.to_owned(), GpuOptions::parse(options)?)),
        ("cuda", options) => Arc::new(GpuEngine::cuda(name.to_owned(), GpuOptions::parse(options)?)?),
        ("form", Some(path)) => {
            let program = frontend::load(path).map_err(|r| r.failure(false))?;
            Arc::new(FormEngine::new(name.to_owned(), program.module))
        }
        ("recorded", Some(path)) if !std::path::Path::new(path).exists() => {
            return Err(Failure::usage(format!("{name}: there is no file {path}")));
        }
        ("recorded", Some(path)) => Arc::new(RecordedEngine::new(path)),
        ("pjrt", Some(path)) => Arc::new(PjrtEngine::new(path)),
        ("xla-gpu", Some(folder)) => Arc::new(XlaGpuEngine::folder(folder)?),
        ("xla-gpu", None) => Arc::new(XlaGpuCompiler::new(timeout)?),
        ("exec", Some(command)) => Arc::new(ExternalEngine::command(command, timeout)),
        ("serve", Some(command)) => Arc::new(ExternalEngine::server(command, timeout)),
        ("child", Some(spec)) => {
            let inner = make(spec, timeout)?;
            Arc::new(ExternalEngine::child(spec, inner.allowances(), timeout))
        }
        ("passes" | "form" | "recorded" | "pjrt" | "exec" | "serve" | "child" | "faulty", None) => {
            return Err(Failure::usage(format!(
                "the platform `{kind}` needs more: `{kind}:...`; there is: {}",
                PLATFORMS.join(", ")
            )));
        }
        (other, _) if KNOWN_ELSEWHERE.contains(&other) => {
            return Err(Failure::new(
                Exit::Unsupported,
                format!("platform `{name}` is not built into this program; it has: {}", PLATFORMS.join(", ")),
            ));
        }
        (other, _) => {
            let known = PLATFORMS
                .iter()
                .map(|p| p.split(':').next().unwrap_or(p))
                .chain(KNOWN_ELSEWHERE.iter().copied());
            let hint = match did_you_mean(other, known) {
                Some(s) => format!("; did you mean `{s}`?"),
                None => format!("; there is: {}", PLATFORMS.join(", ")),
            };
            return Err(Failure::usage(format!("there is no platform `{name}`{hint}")));
        }
    })
}

/// The compiler for this machine, by what stands after `cpu:`.
fn cpu(name: &str, options: Option<&str>) -> Result<Arc<dyn Engine>, Failure> {
    let options = given(options)?;
    if !options.scalar && cfg!(not(feature = "llvm")) {
        let why = "it was built without the feature `llvm`; there is `cpu:scalar`";
        return Err(Failure::new(
            Exit::Unsupported,
            format!("platform `{name}` is not built into this program: {why}"),
        ));
    }
    Ok(Arc::new(super::cpu::CpuEngine::new(name.to_owned(), options)))
}

/// How the engine of this name compiles (`O2`, `fallback`, `O2+fallback`); `None` if it is another than
/// `cpu`. Errors: wrong usage with "did you mean".
pub fn cpu_options(name: &str) -> Result<Option<super::cpu::CpuOptions>, Failure> {
    let options = name.split_once(':').map(|(_, options)| options);
    if is_cpu(name) { given(options).map(Some) } else { Ok(None) }
}

fn is_cpu(name: &str) -> bool {
    name.split(':').next().is_some_and(|kind| ["cpu", "host"].iter().any(|c| c.eq_ignore_ascii_case(kind)))
}

/// The name of the same engine with `--fallback`: the interpreter executes what `cpu` does not compile. Other
/// engines stay as they are.
pub fn with_fallback(name: &str) -> String {
    match (is_cpu(name), name.contains(':')) {
        (true, true) => format!("{name}+fallback"),
        (true, false) => format!("{name}:fallback"),
        (false, _) => name.to_owned(),
    }
}

fn given(options: Option<&str>) -> Result<super::cpu::CpuOptions, Failure> {
    let mut given = super::cpu::CpuOptions::default();
    for option in options.unwrap_or_default().split('+').filter(|o| !o.is_empty()) {
        match option {
            "O0" | "O1" | "O2" | "O3" => given.opt_level = option.as_bytes()[1] - b'0',
            "fallback" => given.fallback = true,
            "scalar" => given.scalar = true,
            other => {
                let known = ["O0", "O1", "O2", "O3", "fallback", "scalar"].map(str::to_owned);
                return Err(unknown("option of the platform `cpu`", other, &known));
            }
        }
    }
    Ok(given)
}

/// The liberties of these names together. Errors: wrong usage with "did you mean".
pub fn allowances(names: &[String]) -> Result<Allowances, Failure> {
    names.iter().try_fold(Allowances::STRICT, |all, name| match Allowances::named(name) {
        Some(a) => Ok(all.or(a)),
        None => {
            let known = Allowances::NAMES.iter().copied().chain(["all"]);
            let hint = match did_you_mean(name, known) {
                Some(s) => format!("; did you mean `{s}`?"),
                None => format!("; there is: {}, all", Allowances::NAMES.join(", ")),
            };
            Err(Failure::usage(format!("there is no liberty `{name}`{hint}")))
        }
    })
}

/// Names of engines out of a list separated by commas. What follows an engine whose name has such a list
/// itself (`passes:P,Q`, a command) belongs to it, unless it begins as an engine does.
pub fn names_of(list: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for item in list.split(',') {
        let kind = |name: &str| name.split(':').next().unwrap_or("").to_ascii_lowercase();
        let begins =
            PLATFORMS.iter().any(|p| kind(p) == kind(item)) || KNOWN_ELSEWHERE.contains(&&*kind(item));
        match names.last_mut() {
            Some(last) if !begins && matches!(&*kind(last), "passes" | "exec" | "serve" | "child") => {
                last.push(',');
                last.push_str(item);
            }
            Some(_) | None => names.push(item.to_owned()),
        }
    }
    names
}

/// The passes that the engine of this name applies, as [`pipeline`] accepts them. Errors: wrong usage, for an
/// engine without passes.
pub fn passes_of(engine: &str) -> Result<String, Failure> {
    match engine.split_once(':') {
        Some(("passes", list)) => return Ok(list.to_owned()),
        Some(("faulty", _)) => return Ok(engine.to_owned()),
        Some(("interpreter", variant)) => return Ok(format!("variant:{variant}")),
        Some(("child", inner)) => return passes_of(inner),
        Some(_) | None => {}
    }
    if let Some(options) = cpu_options(engine)? {
        return Ok(format!("cpu:O{}", options.opt_level));
    }
    Err(Failure::usage(format!(
        "what passes the engine `{engine}` applies is not known: name them with --passes, or its dumps with --dumps"
    )))
}

/// Passes by their names, separated by commas. A name may be that of a pass, `variant:NAME` or `faulty:NAME`,
/// and `NAME=N` applies it at most N times; `default` stands for all passes of the default pipeline, `cpu:O0`
/// to `cpu:O3` for those of the CPU compiler.
pub fn pipeline(list: &str) -> Result<Pipeline, Failure> {
    let mut pipeline = Pipeline::new();
    for item in list.split(',').filter(|p| !p.is_empty()) {
        let (item, fuel) = match item.split_once('=') {
            Some((name, n)) => {
                let n = n
                    .parse()
                    .map_err(|_| Failure::usage(format!("`{item}`: fuel is a number of applications")))?;
                (name, Some(n))
            }
            None => (item, None),
        };
        if item == "default" && fuel.is_none() {
            pipeline = pipeline.followed_by(Pipeline::standard());
            continue;
        }
        if let Some(level) = item.strip_prefix("cpu:O").and_then(|n| n.parse().ok()).filter(|n| *n <= 3)
            && fuel.is_none()
        {
            pipeline = pipeline.followed_by(Pipeline::cpu(level));
            continue;
        }
        pipeline = pipeline.then(pass(item)?, fuel);
    }
    Ok(pipeline)
}

/// A pass by its name. Errors: wrong usage with "did you mean".
pub fn pass(name: &str) -> Result<Box<dyn Pass>, Failure> {
    let found = match name.split_once(':') {
        Some(("faulty", fault)) => faults::by_name(fault),
        Some(("variant", variant)) => variants::by_name(variant).map(|v| v.pass),
        _ => passes::by_name(name),
    };
    found.ok_or_else(|| unknown("pass", name, &names(passes::all().iter().map(|p| &**p))))
}

fn names<'a>(all: impl Iterator<Item = &'a dyn Pass>) -> Vec<String> {
    all.map(|p| p.name().to_owned()).collect()
}

/// That there is no such thing, with "did you mean".
pub fn unknown(what: &str, name: &str, known: &[String]) -> Failure {
    let hint = match did_you_mean(name, known.iter().map(|s| &**s)) {
        Some(s) => format!("; did you mean `{s}`?"),
        None => format!("; there is: {}", known.join(", ")),
    };
    Failure::usage(format!("there is no {what} `{name}`{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_engines_may_hold_lists() {
        assert_eq!(
            names_of("interpreter,passes:dce,cse,interpreter:tree"),
            ["interpreter", "passes:dce,cse", "interpreter:tree"]
        );
        assert_eq!(names_of("interpreter,interpretter"), ["interpreter", "interpretter"]);
        assert_eq!(
            names_of("interpreter,exec:run --a=1,2 {module},cpu:O3"),
            ["interpreter", "exec:run --a=1,2 {module}", "cpu:O3"]
        );
    }

    #[test]
    fn what_starts_programs_does_not_stay_inside() {
        for name in [
            "interpreter",
            "CPU:O2",
            "passes:dce,cse",
            "faulty:x",
            "child:interpreter:tree",
            "child:child:cpu",
        ] {
            assert!(stays_inside(name), "{name}");
        }
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(stays_inside(&format!("recorded:{here}")) && stays_inside(&format!("child:form:{here}")));
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        assert!(stays_inside(&format!("xla-gpu:{folder}")));
        for name in [
            "xla-gpu",
            "xla-gpu:",
            "child:xla-gpu",
            "exec:true",
            "EXEC:true",
            "Serve:true",
            "child:exec:true",
            "CHILD:child:Serve:x",
            "form:/dev/zero",
            "recorded:/dev/stdin",
            "form:",
            "pjrt:plugin.so",
            "exec",
            "",
            " interpreter",
            "interpreter :x",
        ] {
            assert!(!stays_inside(name), "{name}");
        }
    }

    #[test]
    fn platforms_are_found_refused_or_guessed() {
        for name in
            ["interpreter", "passes:", "exec:true", "recorded:Cargo.toml", "pjrt:p.so", "child:interpreter"]
        {
            assert_eq!(by_name(name).map(|e| e.name().to_owned()).unwrap(), name);
        }
        let failure = |name: &str| by_name(name).map(|_| ()).unwrap_err();
        assert_eq!(failure("tpu").exit, Exit::Unsupported);
        assert_eq!(failure("cpu:O4").exit, Exit::Usage);
        assert_eq!(failure("recorded:out.npz").exit, Exit::Usage);
        assert_eq!(by_name("cpu").is_ok(), cfg!(feature = "llvm"));
        let scalar = by_name("cpu:scalar+O1").unwrap();
        assert!(scalar.is_compiler() && scalar.name() == "cpu:scalar+O1");
        let f = failure("interpretter");
        assert_eq!(
            (f.exit, &*f.message),
            (Exit::Usage, "there is no platform `interpretter`; did you mean `interpreter`?")
        );
        assert!(
            failure("abacus").message.starts_with("there is no platform `abacus`; there is: interpreter, ")
        );
        assert!(failure("faulty").message.starts_with("the platform `faulty` needs more"));
    }
}
