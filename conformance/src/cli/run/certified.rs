//! What `hlo run` prints of a comparison: the verdict, the worst elements, a folder to repeat it, next steps.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hlo::{ArrayLiteral, Module};
use serde::Serialize;

use crate::cli::ui::Ui;
use hlo_engines::engine::Allowances;
use hlo_engines::engine::spec::{passes_of, stays_inside};
use hlo_execution::verdict::{ArrayVerdict, Differing, Tally};
use hlo_system::exit::{Exit, Failure};
use hlo_system::phase::{Phase, Phases};
use hlo_system::process::quoted_word;
use hlo_triage::artifact::{self, Artifact, Finding};
use hlo_triage::differential::{Difference, Kind, Settings};
use hlo_triage::report::{self, text};

/// A command that takes longer says what took the time.
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// Arrays, and elements of each, that are shown.
const MAX_SHOWN_ELEMENTS: usize = 8;

/// A comparison with the reference.
pub(super) struct Compared<'a> {
    pub(super) module: &'a Module,
    pub(super) text: Option<&'a str>,
    pub(super) inputs: &'a [Vec<ArrayLiteral>],
    pub(super) reference: &'a str,
    pub(super) engine: &'a str,
    pub(super) settings: &'a Settings,
    pub(super) expected: &'a [Vec<ArrayLiteral>],
    pub(super) difference: &'a Difference,
    pub(super) phases: &'a Phases,
}

/// The same for machines.
#[derive(Serialize)]
pub(super) struct Object {
    reference: String,
    verdict: &'static str,
    pass: bool,
    elements: Tally,
    replayed: bool,
    /// At how many values the program was cut, if it was judged in pieces.
    #[serde(skip_serializing_if = "Option::is_none")]
    cuts: Option<usize>,
    /// The liberties that the engine was granted.
    liberties: String,
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
        self.difference.exit(&self.settings.policy)
    }

    /// The result of the comparison.
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
                text: self.text,
                inputs: self.inputs,
                expected: Some(self.expected),
                actual: self.difference.actual.as_ref().map(|f| &f.results[..]),
                finding: &finding,
                stablehlo: None,
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
            replayed: d.replayed(),
            cuts: d.pieces.as_ref().map(|p| p.cuts),
            liberties: d.allowances.describe(),
            blamed: d.blamed.map(|kind| kind.opcode.name()),
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
        let share = |n: u64| n as f64 * 100.0 / tally.total() as f64;
        ui.detail(format!(
            "  check    against {} ({}): {} elements",
            self.reference,
            report::time(self.phases.spent(Phase::Reference)),
            report::grouped(tally.total())
        ));
        if tally.total() > 0 {
            let worst = arrays.iter().filter_map(|(_, v)| v.worst_explained);
            let worst = worst.max_by(|a, b| a.share().total_cmp(&b.share())).map(|w| text::worst(&w));
            let worst = worst.map(|w| format!(" ({w})")).unwrap_or_default();
            ui.detail(format!(
                "           same bits {:.1}%   explained by rounding {:.1}%{worst}   {}   {}",
                share(tally.same),
                share(tally.explained),
                counted(ui, "undecided", tally.undecided),
                if tally.wrong > 0 {
                    let wrong = report::grouped(tally.wrong);
                    ui.bad(&format!("WRONG {wrong} ({:.1}%)", share(tally.wrong)))
                } else {
                    "wrong 0".into()
                }
            ));
        }
        let by_another: u64 = arrays.iter().map(|(_, v)| v.by_another).sum();
        if by_another > 0 {
            let by_another = report::grouped(by_another);
            ui.detail(format!("           explained {by_another} by another run that the liberties permit"));
        }
        // What a replay has decided needs no elements.
        let open = self.exit() != Exit::Ok || tally.undecided > 0;
        let bad = |(_, v): &&(String, ArrayVerdict)| v.tally.wrong + v.tally.undecided > 0;
        for (name, verdict) in arrays.iter().filter(|_| open).filter(bad).take(MAX_SHOWN_ELEMENTS) {
            self.print_array(ui, name, verdict);
        }
        self.print_second_look(ui);
        // Only where something differs was anything granted.
        if !arrays.is_empty() && self.difference.allowances != Allowances::STRICT {
            ui.detail(format!(
                "  granted  {} (`--allow none` grants none)",
                self.difference.allowances.describe()
            ));
        }
        let total = self.phases.total();
        if ui.verbose || total >= SLOW_AFTER {
            ui.detail(format!("  times    {} in all: {}", report::time(total), times(self.phases)));
        }
    }

    /// The result of replaying the engine, or of judging it in pieces.
    fn print_second_look(&self, ui: &Ui) {
        let d = self.difference;
        let blamed = match d.blamed {
            Some(kind) if d.kind == Kind::Wrong => ui.bad(&format!("WRONG at a {}", kind.opcode)),
            Some(kind) => format!("undecided at a {}", kind.opcode),
            None if d.kind == Kind::Wrong => ui.bad("WRONG"),
            None if d.kind == Kind::Undecided => "undecided".to_owned(),
            None => "every difference is explained".to_owned(),
        };
        if d.replayed() {
            ui.detail(format!("  replay   instruction by instruction on the reference's operands: {blamed}"));
        }
        if let Some(pieces) = &d.pieces {
            let n = report::grouped(pieces.cuts as u64);
            let values = if pieces.cuts == 1 { "value" } else { "values" };
            ui.detail(format!(
                "  pieces   the program cut at {n} {values}, since bounds over all of it say too little: {blamed}"
            ));
        }
    }

    /// The verdict in a word or a sentence.
    pub(super) fn last_line(&self, ui: &Ui) -> String {
        let d = self.difference;
        let line = d.verdict(&self.settings.policy);
        match (self.exit(), d.kind) {
            // What is undecided is never good, allowed or not.
            (Exit::Ok, Kind::Undecided) => line,
            (Exit::Ok, _) => ui.good(&line),
            (_, _) => ui.bad(&line),
        }
    }

    fn print_array(&self, ui: &Ui, name: &str, verdict: &ArrayVerdict) {
        for w in &verdict.worst {
            ui.line(format!("           {}", text::element(name, w)));
        }
        if let Some(common) = verdict.common() {
            ui.line(format!("           ... {common}"));
        }
    }
}

/// A count that is bad if it is not 0.
fn counted(ui: &Ui, what: &str, n: u64) -> String {
    let text = format!("{what} {}", report::grouped(n));
    if n > 0 { ui.bad(&text) } else { text }
}

/// `reference 1.9 s, run 2.4 ms, bounds 5.1 s`, and what is left.
fn times(phases: &Phases) -> String {
    let all = phases.all();
    let rest = phases.total().saturating_sub(all.iter().map(|(_, t)| *t).sum());
    let mut said: Vec<String> =
        all.iter().map(|(p, t)| format!("{} {}", p.name(), report::time(*t))).collect();
    said.push(format!("other {}", report::time(rest)));
    said.join(", ")
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
