//! What `hlo run` says of an engine compared with the reference: the verdict over all elements, the worst of them, a folder that repeats
//! it, and what to do next.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hlo::{ArrayLiteral, Module};
use serde::Serialize;

use crate::artifact::{self, Artifact, Finding};
use crate::cli::ui::Ui;
use crate::differential::{Difference, Kind, Settings};
use crate::engine::spec::{passes_of, stays_inside};
use crate::exit::{Exit, Failure};
use crate::process::quoted_word;
use crate::report;
use crate::verdict::{ArrayVerdict, Differing, Tally};

/// Arrays, and elements of each, that are shown.
const SHOWN: usize = 8;

/// A comparison with the reference.
pub(super) struct Compared<'a> {
    pub(super) module: &'a Module,
    pub(super) text: &'a str,
    pub(super) inputs: &'a [Vec<ArrayLiteral>],
    pub(super) reference: &'a str,
    pub(super) engine: &'a str,
    pub(super) settings: &'a Settings,
    pub(super) expected: &'a [Vec<ArrayLiteral>],
    pub(super) difference: &'a Difference,
    /// Of the reference.
    pub(super) time: Duration,
    pub(super) max_undecided: f64,
}

/// The same for machines.
#[derive(Serialize)]
pub(super) struct Object {
    reference: String,
    verdict: &'static str,
    pass: bool,
    elements: Tally,
    replayed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    blamed: Option<&'static str>,
    arrays: Vec<ArrayObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<String>,
}

#[derive(Serialize)]
struct ArrayObject {
    name: String,
    elements: Tally,
    worst: Vec<Differing>,
}

impl Compared<'_> {
    pub(super) fn exit(&self) -> Exit {
        match self.difference.kind {
            Kind::Unsupported => Exit::Unsupported,
            Kind::Trap | Kind::Timeout | Kind::Exhausted => Exit::Trap,
            Kind::Crash => self.difference.failure.as_ref().map_or(Exit::Differs, Exit::of_crash),
            _ if self.difference.passes(self.max_undecided) => Exit::Ok,
            _ => Exit::Differs,
        }
    }

    /// What was found.
    pub(super) fn finding(&self) -> Finding {
        Finding::new(self.reference, self.engine, self.difference, self.settings)
    }

    /// Saves what repeats the failure below the current folder.
    pub(super) fn save(&self, parent: &Path) -> Result<PathBuf, Failure> {
        let finding = self.finding();
        artifact::save(
            parent,
            "hlo-mismatch",
            &Artifact {
                module: self.module,
                text: Some(self.text),
                inputs: self.inputs,
                expected: Some(self.expected),
                actual: self.difference.actual.as_ref().map(|f| &f.results[..]),
                finding: &finding,
            },
        )
    }

    pub(super) fn object(&self, saved: Option<&Path>) -> Object {
        let d = self.difference;
        Object {
            reference: self.reference.to_owned(),
            verdict: d.kind.describe(),
            pass: self.exit() == Exit::Ok,
            elements: d.tally,
            replayed: d.replayed,
            blamed: d.blamed.map(hlo::Opcode::name),
            arrays: d
                .arrays
                .iter()
                .map(|(name, v)| ArrayObject {
                    name: name.clone(),
                    elements: v.tally,
                    worst: v.worst.clone(),
                })
                .collect(),
            saved: saved.map(|p| p.display().to_string()),
        }
    }

    pub(super) fn print(&self, ui: &Ui) {
        let Difference { tally, arrays, .. } = self.difference;
        let share = |n: u64| {
            if tally.total() == 0 { 100.0 } else { n as f64 * 100.0 / tally.total() as f64 }
        };
        ui.detail(format!(
            "  check    against {} ({}): {} elements",
            self.reference,
            report::time(self.time),
            report::grouped(tally.total())
        ));
        let worst = arrays.iter().filter_map(|(_, v)| v.worst_ulp).max_by_key(|(ulp, _)| *ulp);
        let worst = worst.map(|(ulp, allowed)| {
            format!(" (worst {} ulp of {} allowed)", report::grouped(ulp), report::grouped(allowed as u64))
        });
        let number = |n: u64| report::grouped(n);
        ui.detail(format!(
            "           same bits {:.1}%   explained by rounding {:.1}%{}   undecided {}   {}",
            share(tally.same),
            share(tally.explained),
            worst.unwrap_or_default(),
            if tally.undecided > 0 { ui.bad(&number(tally.undecided)) } else { "0".into() },
            if tally.wrong > 0 {
                ui.bad(&format!("WRONG {} ({:.1}%)", number(tally.wrong), share(tally.wrong)))
            } else {
                "wrong 0".into()
            }
        ));
        // What a replay has decided needs no places.
        let open = self.exit() != Exit::Ok || tally.undecided > 0;
        let bad = |(_, v): &&(String, ArrayVerdict)| v.tally.wrong + v.tally.undecided > 0;
        for (name, verdict) in arrays.iter().filter(|_| open).filter(bad).take(SHOWN) {
            self.print_array(ui, name, verdict);
        }
        if self.difference.replayed {
            let blamed = match self.difference.blamed {
                Some(opcode) if self.difference.kind == Kind::Wrong => {
                    ui.bad(&format!("WRONG at a {opcode}"))
                }
                Some(opcode) => format!("undecided at a {opcode}"),
                None => {
                    "every instruction, in its place and on the reference's operands, does what it may".into()
                }
            };
            ui.detail(format!("  replay   the bounds say too little over the whole program; instruction by instruction: {blamed}"));
        }
    }

    fn print_array(&self, ui: &Ui, name: &str, verdict: &ArrayVerdict) {
        for w in &verdict.worst {
            ui.line(format!("           {}", report::text::element(name, w)));
        }
        if let Some(common) = verdict.common() {
            ui.line(format!("           ... {common}"));
        }
    }
}

/// What to do about a folder, where engines have to be `named` on the command line again.
pub(super) fn next(ui: &Ui, folder: &Path, finding: &Finding) {
    let path = quoted_word(&folder.display().to_string());
    let engine = &finding.signature.engine;
    let platform =
        if stays_inside(engine) { String::new() } else { format!(" --platform {}", quoted_word(engine)) };
    let engines = if finding.named().is_empty() {
        String::new()
    } else {
        format!(" --engines {}", quoted_word(&format!("{},{engine}", finding.reference)))
    };
    let named = finding.named();
    ui.detail(format!(
        "  saved    {}/   (module, inputs, both results; `hlo run {path}{named}` repeats it)",
        folder.display()
    ));
    ui.detail(format!("  next     hlo isolate {path}{platform}      which instruction"));
    if passes_of(engine).is_ok() {
        ui.detail(format!("           hlo bisect  {path}      which pass"));
    }
    ui.detail(format!("           hlo reduce  {path}{engines}      smallest program that still differs"));
}
