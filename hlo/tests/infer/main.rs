//! Shape inference, case by case: instructions written on a line with the shapes of their operands, and the
//! shape or the error that must come of them. Expected shapes follow from the definitions of the operations
//! (checked by hand).

#![allow(clippy::unwrap_used, reason = "a mistake in a table may panic")]

mod contractions;
mod control;
mod elementwise;
mod movement;
mod reader;
mod reductions;
mod robust;

use reader::{Line, read};

/// Runs a table: line, what must come of it. `ok` means that the declared shape is accepted.
fn run(table: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (line, expected) in table {
        let found = outcome(line);
        if found != *expected {
            wrong.push(format!("{line}\n   expected {expected}\n   found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}

fn outcome(line: &str) -> String {
    let Line { module, opcode, operands, attrs, declared } = read(line);
    let operands: Vec<&hlo::Shape> = operands.iter().collect();
    let found = match &declared {
        None => hlo::infer::infer(&module, opcode, &operands, &attrs).map(|s| s.to_string()),
        Some(s) => hlo::infer::check(&module, opcode, &operands, &attrs, s).map(|()| "ok".to_owned()),
    };
    found.unwrap_or_else(|e| e.to_string())
}
