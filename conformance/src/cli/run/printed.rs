//! How `hlo run` prints a run: as an object, or as text.

use std::time::Duration;

use super::expected::Expected;
use super::object::{CheckObject, DevicesObject, Object, ResultObject, TimesObject};
use super::{Ran, Runner, certified};
use hlo_engines::engine::{array_name, named};
use hlo_engines::frontend::{Program, Stage};
use hlo_system::exit::Exit;
use hlo_triage::check::{Check, Verdict};
use hlo_triage::report;

/// Values printed in full: more is shortened.
const MAX_SHOWN_RESULTS: usize = 16;

impl Runner<'_> {
    pub(super) fn json_result(
        &self,
        program: &Program,
        ran: &Ran,
        exit: Exit,
        comparison: Option<certified::Object>,
    ) {
        let Ran { seed, inputs_time, finished, verdicts, expected, watched, .. } = ran;
        let ms = |t: Duration| t.as_secs_f64() * 1e3;
        let results = named("out", &finished.results)
            .into_iter()
            .enumerate()
            .map(|(i, (name, a))| ResultObject {
                name,
                element_type: a.buffer.element_type().name(),
                shape: a.dims.to_vec(),
                value: report::array_text(a),
                check: verdicts.as_ref().zip(expected.as_ref()).map(|((v, _), e)| CheckObject {
                    pass: v[i].pass,
                    tolerance: e.checks[i % e.checks.len()].describe(),
                    elements: v[i].comparison.elements,
                    same_bits: v[i].comparison.same,
                    wrong: v[i].comparison.wrong,
                    max_ulp: v[i].comparison.max_ulp,
                    max_abs: v[i].comparison.max_abs,
                    max_rel: v[i].comparison.max_rel,
                    reason: if v[i].pass { String::new() } else { v[i].reason.clone() },
                }),
            })
            .collect();
        let t = program.times;
        self.ui.object(&Object {
            module: Some(program.module.name.to_string()),
            platform: self.platform.name(),
            devices: self.devices(&program.module).ok().map(DevicesObject::of),
            seed: Some(*seed),
            results,
            accumulate: verdicts.as_ref().map(|v| v.1),
            fuel: Some(finished.fuel),
            peak_bytes: Some(finished.peak_bytes),
            ms: Some(TimesObject {
                read: ms(t.read),
                parse: ms(t.parse),
                verify: ms(t.verify),
                inputs: ms(*inputs_time),
                run: ms(finished.time),
            }),
            stopped_at: watched.stopped().map(str::to_owned),
            trace: watched.trace().map(str::to_owned),
            stats: watched.stats_object(),
            comparison,
            ..Object::new(&self.job.program, Stage::Run, exit)
        });
    }

    pub(super) fn text_run(&self, ran: &Ran) {
        let Ran { inputs_time, finished, .. } = ran;
        if self.ui.verbose {
            self.ui.detail(format!("           ready in {}", report::time(*inputs_time)));
        }
        let devices = finished.results.len();
        let mut told: Vec<String> = Vec::new();
        let mut rate = String::new();
        match &finished.compiled {
            Some(c) => {
                let kernels = c.kernels.map(|n| format!("{n} kernel{}", if n == 1 { "" } else { "s" }));
                let temporary =
                    c.temporary_bytes.map(|n| format!("{} besides arguments and results", report::bytes(n)));
                let made: Vec<String> = kernels.into_iter().chain(temporary).collect();
                let made = if made.is_empty() { String::new() } else { format!("   {}", made.join(", ")) };
                self.ui.detail(format!(
                    "  compile  {} ({})   {}{made}",
                    self.platform.name(),
                    c.machine,
                    report::time(c.time),
                ));
                // Less is gone before it could be timed.
                if c.io_bytes >= 1 << 20 {
                    let gb = c.io_bytes as f64 / finished.time.as_secs_f64() / 1e9;
                    rate = format!("   {gb:.1} GB/s in and out");
                }
            }
            None => told.push(self.platform.name().to_owned()),
        }
        if devices > 1 {
            told.push(format!("{devices} devices"));
        }
        told.push(report::time(finished.time));
        self.ui.detail(format!(
            "  run      {}{rate}{}",
            told.join(", "),
            if self.ui.verbose {
                format!(
                    ", {} steps, at most {}",
                    report::count(finished.fuel),
                    report::bytes(finished.peak_bytes)
                )
            } else {
                String::new()
            }
        ));
    }

    pub(super) fn text_values(&self, ran: &Ran) {
        let results = named("out", &ran.finished.results);
        for (name, a) in results.iter().take(MAX_SHOWN_RESULTS) {
            self.ui.line(format!("{name} = {}", a.shape()));
            self.ui.line(report::array_text(a));
        }
        if results.len() > MAX_SHOWN_RESULTS {
            self.ui.line(format!("... and {} more results", results.len() - MAX_SHOWN_RESULTS));
        }
    }

    pub(super) fn text_result(&self, ran: &Ran, pass: bool) {
        let Ran { verdicts, expected, .. } = ran;
        self.text_run(ran);
        ran.watched.print(self.ui);
        if let (Some((verdicts, mode)), Some(expected)) = (verdicts, expected) {
            self.report_check(verdicts, mode, expected);
            if let Some(held) = &ran.held {
                self.ui.detail(format!("           {held}"));
            }
        }
        // A comparison's verdict is what was asked for; the values are shown where it was not, or in detail.
        if verdicts.is_none() && !self.ui.quiet || self.ui.verbose {
            self.text_values(ran);
        }
        if let Some(path) = &self.options.output {
            self.ui.detail(format!("  written  {path}"));
        }
        if verdicts.is_some() {
            self.ui.line(if pass { self.ui.good("ok") } else { self.ui.bad("mismatch") });
        }
    }

    fn report_check(&self, verdicts: &[Verdict], mode: &str, expected: &Expected) {
        let total: usize = verdicts.iter().map(|v| v.comparison.elements).sum();
        let same: usize = verdicts.iter().map(|v| v.comparison.same).sum();
        let wrong: usize = verdicts.iter().map(|v| if v.pass { 0 } else { v.comparison.wrong }).sum();
        let share = |n: usize| n as f64 * 100.0 / total as f64;
        let worst = verdicts.iter().try_fold(0, |m: u64, v| Some(m.max(v.comparison.max_ulp?)));
        let mut kinds: Vec<String> = expected.checks.iter().map(Check::describe).collect();
        kinds.dedup();
        kinds.truncate(3);
        self.ui.detail(format!(
            "  check    against {}: {} elements, {} (sums: {mode})",
            expected.from,
            report::grouped(total as u64),
            kinds.join("; ")
        ));
        if total > 0 {
            self.ui.detail(format!(
                "           same bits {:.1}%   within tolerance {:.1}%{}   wrong {}",
                share(same),
                share(total - same - wrong.min(total - same)),
                worst
                    .filter(|w| *w > 0)
                    .map(|w| format!(" (worst {} ulp)", report::grouped(w)))
                    .unwrap_or_default(),
                if wrong > 0 { self.ui.bad(&report::grouped(wrong as u64)) } else { "0".into() }
            ));
        }
        let n = expected.checks.len();
        for (i, v) in verdicts.iter().enumerate().filter(|(_, v)| !v.pass).take(8) {
            let name = array_name(expected.arrays.len(), i / n, "out", i % n);
            if v.comparison.worst.is_empty() || matches!(expected.checks[i % n], Check::Residual { .. }) {
                self.ui.line(format!("           {name}: {}", v.reason));
                continue;
            }
            for w in &v.comparison.worst {
                let index: Vec<String> = w.index.iter().map(i64::to_string).collect();
                self.ui.line(format!(
                    "           {name}[{}]   expected {}   got {}   (abs {:.2e}, rel {:.2e}{})",
                    index.join(","),
                    w.expected,
                    w.actual,
                    w.abs,
                    w.rel,
                    w.ulp.map(|u| format!(", {} ulp", report::grouped(u))).unwrap_or_default()
                ));
            }
        }
    }
}
