//! Attacks on the program: a few of them, and that what they look for is found.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use hlo_attack::Attack;
use hlo_conformance::filetest::SEPARATOR;
use libtest_mimic::Trial;

use crate::cli::{Dir, ends, hlo};
use crate::{crate_dir, function};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        function("attack/what is wrong is found", violations),
        function("attack/nothing is wrong with the first of them", first),
    ]
}

/// `make attack` goes on where this ends.
fn first() {
    let d = Dir::new();
    let sources = crate_dir().join("filetests").to_string_lossy().into_owned();
    let out = d.path("found").to_string_lossy().into_owned();
    ends(
        &hlo(&["attack", &sources, "--count", "400", "--max-time", "20", "--deadline", "60", "--out", &out]),
        0,
    );
}

/// Programs that do each thing that none should do.
fn violations() {
    for (kind, does) in [
        ("exit", "exit 70"),
        ("exit", "exit 9"),
        ("panic", "echo \"thread 'main' panicked at src/x.rs:1:2\" >&2; exit 1"),
        ("signal", "kill -SEGV $$"),
        ("deadline", "exec sleep 30"),
        ("wrong result", "[ $1 = run ] && echo mismatch && exit 1; exit 0"),
        ("memory", "exec awk 'BEGIN { s = \"x\"; for (i = 0; i < 30; i++) s = s s; print length(s) }'"),
    ] {
        let d = Dir::new();
        let program = d.path("program");
        std::fs::write(&program, format!("#!/bin/sh\n{does}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let attack = Attack {
            program,
            sources: vec![crate_dir().join("filetests/control")],
            separator: SEPARATOR,
            seed: 0,
            first: 0,
            count: 1,
            jobs: 1,
            max_time: Duration::from_secs(60),
            deadline: if kind == "deadline" { Duration::from_millis(300) } else { Duration::from_secs(60) },
            out: d.path("found"),
        };
        let report = hlo_attack::run(&attack, &|_| {}).unwrap();
        let found = report.violations.values().find(|(v, _)| v.kind == kind);
        let (violation, _) = found.unwrap_or_else(|| panic!("{does}: {:?}", report.violations));
        assert!(
            violation.folder.join("module.hlo").is_file() && violation.folder.join("command.txt").is_file()
        );
    }
}
