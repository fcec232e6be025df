//! What two forms of a program do not share: instructions as lines, without what says nothing about the
//! value.

use hlo::print::{PrintOptions, print_instruction};
use hlo::{InstrId, Module};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Instructions that only one of two forms has, in the order of their texts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Changes {
    /// Of the form before.
    pub removed: Vec<String>,
    /// Of the form after.
    pub added: Vec<String>,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }

    /// Lines for people, `-` before and `+` after, at most `limit` of each.
    pub fn lines(&self, limit: usize) -> Vec<String> {
        let shown = |sign: char, lines: &[String]| {
            let mut shown: Vec<String> = lines.iter().take(limit).map(|l| format!("{sign} {l}")).collect();
            if lines.len() > limit {
                shown.push(format!("{sign} ... and {} more", lines.len() - limit));
            }
            shown
        };
        let mut all = shown('-', &self.removed);
        all.extend(shown('+', &self.added));
        all
    }
}

/// How an instruction is shown: layouts, source locations and configurations left out, large constants
/// shortened.
pub fn line(module: &Module, id: InstrId) -> String {
    let options = PrintOptions {
        metadata: false,
        backend_config: false,
        layouts: false,
        normalize: false,
        ..PrintOptions::SHORT_PARSABLE.eliding(32)
    };
    print_instruction(module, id, &options).trim().to_owned()
}

/// The changes between two forms.
pub fn between(before: &Module, after: &Module) -> Changes {
    let lines = |m: &Module| {
        let all = m.computations().iter().flat_map(|&c| m.instructions(c));
        all.map(|id| line(m, id)).collect::<Vec<_>>()
    };
    apart(lines(before), lines(after))
}

/// Lines that only one of two texts has.
pub fn apart(before: Vec<String>, after: Vec<String>) -> Changes {
    let only = |these: &[String], those: &[String]| {
        let mut left: FxHashMap<&str, usize> = FxHashMap::default();
        those.iter().for_each(|l| *left.entry(l).or_default() += 1);
        let new = |l: &&String| match left.get_mut(&***l) {
            Some(n) if *n > 0 => {
                *n -= 1;
                false
            }
            Some(_) | None => true,
        };
        these.iter().filter(new).cloned().collect()
    };
    Changes { removed: only(&before, &after), added: only(&after, &before) }
}
