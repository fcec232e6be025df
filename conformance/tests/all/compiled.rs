//! What the compiler makes of every filetest, and with it of every opcode on every element type.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hlo::Opcode;
use hlo_conformance::coverage::{Key, Legal};
use hlo_conformance::filetest::{Ran, run_file_on};
use hlo_engines::engine;
use hlo_system::guard::on_deep_stack;
use hlo_triage::differential::Kind;
use libtest_mimic::Trial;
use rustc_hash::FxHashSet;

use crate::{crate_dir, files_below, function};

pub(crate) fn trials() -> Vec<Trial> {
    if engine::by_name(&self::engine()).is_err() {
        return Vec::new();
    }
    vec![
        function("compiled/filetests and every legal pair", everything),
        function("compiled/once wrong, at every level", regressions),
    ]
}

/// `HLO_ENGINE=cpu:O3` asks another one: what it refuses is listed alike, so but for rows without need it
/// passes too.
fn engine() -> String {
    std::env::var("HLO_ENGINE").unwrap_or_else(|_| "cpu:O0".to_owned())
}

/// Rows of `coverage/not_compiled.txt`: what is refused.
#[derive(Default)]
struct Expected {
    /// `refused REASON | WHY`: the end of the compiler's message.
    reasons: Vec<String>,
    /// `pair OPCODES | TYPES | WHY`.
    pairs: FxHashSet<(Opcode, Key)>,
}

impl Expected {
    fn read() -> Self {
        let text = fs::read_to_string(crate_dir().join("coverage/not_compiled.txt")).unwrap();
        let mut expected = Self::default();
        for line in text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty()) {
            let (row, why) = line.rsplit_once('|').unwrap_or_else(|| panic!("{line}: expected | WHY"));
            assert!(!why.trim().is_empty(), "{line}: a row says why");
            if let Some(reason) = row.strip_prefix("refused ") {
                expected.reasons.push(reason.trim().to_owned());
            } else {
                let (opcodes, types) =
                    row.split_once('|').unwrap_or_else(|| panic!("{line}: expected | TYPES |"));
                for name in opcodes.split_whitespace() {
                    let opcode =
                        Opcode::from_name(name).unwrap_or_else(|| panic!("there is no opcode {name}"));
                    let all = types.trim() == "all";
                    let named = |key: &Key| all || types.split(',').any(|t| t.trim() == key.to_string());
                    let keys = Legal::table().keys(opcode).to_vec();
                    let found: Vec<Key> = keys.into_iter().filter(named).collect();
                    assert!(!found.is_empty(), "{line}: no such pair");
                    expected.pairs.extend(found.into_iter().map(|key| (opcode, key)));
                }
            }
        }
        expected
    }
}

/// Programs that were once wrong, most of them only after some passes.
fn regressions() {
    let expected = Expected::read();
    for file in files_below(&crate_dir().join("filetests/regress"), "hlo") {
        let text = fs::read_to_string(&file).unwrap();
        for level in ["cpu:O1", "cpu:O2", "cpu:O3"] {
            let engine = engine::by_name(level).unwrap();
            for ran in run_file_on(&*engine, &file.to_string_lossy(), &text).unwrap() {
                let said = ran.difference.failure.as_ref().map_or("", |d| &d.message);
                let passes = match ran.difference.kind {
                    Kind::Same | Kind::Explained => true,
                    Kind::Unsupported => {
                        expected.reasons.iter().any(|reason| said.ends_with(reason.as_str()))
                    }
                    _ => false,
                };
                assert!(
                    passes,
                    "{}:{} on {level}: {} {said}",
                    file.display(),
                    ran.line,
                    ran.difference.kind.describe()
                );
            }
        }
    }
}

/// Every run of a filetest gives on the compiled program what it gives in the interpreter, or is refused for
/// a reason in the list; and such runs execute every legal pair but those in the list, of which none is there
/// without need.
fn everything() {
    let root = crate_dir().join("filetests");
    let mut files = files_below(&root, "hlo");
    files.retain(|f| !f.starts_with(root.join("verify")));
    let engine = engine::by_name(&self::engine()).unwrap();
    let next = AtomicUsize::new(0);
    let all: Mutex<Vec<(String, Ran)>> = Mutex::new(Vec::new());
    let work = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = file.strip_prefix(&root).unwrap_or(file).to_string_lossy().into_owned();
            let ran = run_file_on(&*engine, &name, &fs::read_to_string(file).unwrap()).unwrap();
            all.lock().unwrap().extend(ran.into_iter().map(|r| (name.clone(), r)));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| on_deep_stack(work));
        }
    });
    let expected = Expected::read();
    let mut problems = String::new();
    let mut refused: BTreeMap<String, String> = BTreeMap::new();
    let mut compiled: FxHashSet<(Opcode, Key)> = FxHashSet::default();
    for (name, ran) in all.into_inner().unwrap() {
        let line = format!("{name}:{}", ran.line);
        let said = ran.difference.failure.as_ref().map_or("", |d| &d.message);
        match ran.difference.kind {
            Kind::Same | Kind::Explained => compiled.extend(ran.executed),
            Kind::Unsupported => drop(refused.insert(said.to_owned(), line)),
            kind => writeln!(problems, "{line}: {} {said}", kind.describe()).unwrap(),
        }
    }
    let mut needed = vec![false; expected.reasons.len()];
    for (said, line) in &refused {
        match expected.reasons.iter().position(|reason| said.ends_with(reason.as_str())) {
            Some(i) => needed[i] = true,
            None => writeln!(problems, "{line}: refused: {said}").unwrap(),
        }
    }
    for (reason, _) in expected.reasons.iter().zip(needed).filter(|(_, needed)| !needed) {
        writeln!(problems, "nothing is refused because of: {reason}").unwrap();
    }
    let legal = Legal::table();
    for &opcode in Opcode::ALL {
        for &key in legal.keys(opcode) {
            match (compiled.contains(&(opcode, key)), expected.pairs.contains(&(opcode, key))) {
                (false, false) => {
                    writeln!(problems, "no compiled program executes {opcode} on {key}").unwrap()
                }
                (true, true) => writeln!(problems, "{opcode} on {key} is compiled").unwrap(),
                (true, false) | (false, true) => {}
            }
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{problems}", problems.lines().count());
}
