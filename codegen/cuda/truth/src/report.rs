//! What a check found, as lines of text and as data.

use serde::Serialize;

use crate::run::{End, Family, Row, summary};

/// Everything that is not plainly equal, for a file.
#[derive(Debug, Serialize)]
pub struct Report<'r> {
    /// What was compared with the interpreter.
    pub device: &'r str,
    /// Its time.
    pub seconds: f64,
    /// By family.
    pub summary: Vec<Family>,
    /// Rows that are wrong, approximations, and what was not compared.
    pub rows: Vec<&'r Row>,
}

impl<'r> Report<'r> {
    /// The report of rows.
    #[must_use]
    pub fn new(device: &'r str, seconds: f64, rows: &'r [Row]) -> Self {
        let is_told = |r: &&Row| match &r.end {
            End::Compared(v) => {
                v.wrong > 0 || v.largest_ulp.is_some() || v.largest_unstated_ulp.is_some() || v.within > 0
            }
            End::Refused(_) | End::NotExecuted(_) | End::Failed(_) | End::Skipped => true,
        };
        Report { device, seconds, summary: summary(rows), rows: rows.iter().filter(is_told).collect() }
    }
}

/// A table, a line a family.
#[must_use]
pub fn table(rows: &[Row]) -> Vec<String> {
    let line = |name: &str, cells: [&str; 11]| {
        let widths = [6, 6, 11, 11, 9, 9, 8, 7, 7, 6, 7];
        let cells = cells.iter().zip(widths).map(|(c, w)| format!(" {c:>w$}")).collect::<String>();
        format!("{name:<12}{cells}")
    };
    let head = [
        "instr", "wrong", "results", "equal", "wrong", "NaN bits", "within", "refused", "not run", "failed",
        "skipped",
    ];
    let mut all = vec![line("family", head)];
    for f in summary(rows) {
        let numbers = [
            f.instructions,
            f.wrong_instructions,
            f.results,
            f.equal,
            f.wrong,
            f.nan_bits,
            f.within,
            f.refused,
            f.not_executed,
            f.failed,
            f.skipped,
        ];
        let texts = numbers.map(|n| n.to_string());
        all.push(line(&f.family, texts.each_ref().map(String::as_str)));
    }
    all
}

/// The errors of approximate instructions, a line each.
#[must_use]
pub fn approximations(rows: &[Row]) -> Vec<String> {
    let error = |e: Option<f64>| e.map_or_else(|| "-".to_owned(), |e| format!("{e:.3}"));
    let line = |row: &Row| match &row.end {
        End::Compared(v) if row.family == "approximate" => Some(format!(
            "{}: {} of {} equal, largest error {} ulp ({}), where none is stated {}",
            row.instruction,
            v.equal,
            v.results,
            error(v.largest_ulp),
            v.largest_at,
            error(v.largest_unstated_ulp)
        )),
        End::Compared(_) | End::Refused(_) | End::NotExecuted(_) | End::Failed(_) | End::Skipped => None,
    };
    rows.iter().filter_map(line).collect()
}

/// Instructions that are shown with their differences, at most, and differences of each.
const SHOWN: (usize, usize) = (60, 2);

/// What is wrong, with the first differences.
#[must_use]
pub fn differences(rows: &[Row]) -> Vec<String> {
    let wrong: Vec<&Row> = rows.iter().filter(|r| r.is_wrong()).collect();
    let mut all = Vec::new();
    for row in wrong.iter().take(SHOWN.0) {
        match &row.end {
            End::Compared(v) => {
                all.push(format!(
                    "{}: {}: {} of {} wrong, {} of them NaN bits",
                    row.family, row.instruction, v.wrong, v.results, v.nan_bits
                ));
                for d in v.first.iter().take(SHOWN.1) {
                    let operands = d.operands.join(" ");
                    all.push(format!(
                        "    {} {operands}: device {}, interpreter {} {}",
                        d.element, d.device, d.interpreter, d.note
                    ));
                }
            }
            End::Failed(message) => all.push(format!("{}: {}: {message}", row.family, row.instruction)),
            End::Refused(_) | End::NotExecuted(_) | End::Skipped => {}
        }
    }
    if wrong.len() > SHOWN.0 {
        all.push(format!("and {} more", wrong.len() - SHOWN.0));
    }
    all
}
