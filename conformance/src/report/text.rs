//! Findings as people read them.

use super::{count, grouped};
use crate::isolate::{Blame, Isolation, Row, Status};
use crate::replay::{Divergence, How};
use crate::verdict::{ArrayVerdict, Class, Differing};

/// A class in capitals where it is bad.
pub fn class(class: Class) -> &'static str {
    match class {
        Class::Same => "same bits",
        Class::Explained => "explained",
        Class::Undecided => "undecided",
        Class::Wrong => "WRONG",
    }
}

/// An index as the program writes it.
pub fn index(index: &[i64]) -> String {
    format!("[{}]", index.iter().map(i64::to_string).collect::<Vec<_>>().join(","))
}

/// `out0[2,1]   expected 2   got 3   (error 1e0, 4,194,304 ulp, certified bound 1.2e-7)`.
pub fn element(name: &str, d: &Differing) -> String {
    let mut how = vec![d.error.map_or_else(|| "no distance".to_owned(), |e| format!("error {e:.2e}"))];
    how.extend(d.ulp.map(|u| format!("{} ulp", grouped(u))));
    how.push(d.bound.map_or_else(|| "no bound is known".to_owned(), |b| format!("certified bound {b:.2e}")));
    format!("{name}{}   expected {}   got {}   ({})", index(&d.index), d.expected, d.actual, how.join(", "))
}

/// What there is to say of an array: counts, worst elements, what they have in common, histograms.
pub fn array(name: &str, verdict: &ArrayVerdict, elements: usize) -> Vec<String> {
    let t = &verdict.tally;
    let counts =
        [(t.wrong, "WRONG"), (t.undecided, "undecided"), (t.explained, "explained"), (t.same, "same bits")];
    let counts = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", grouped(*n)));
    let mut lines =
        vec![format!("{name}: {} elements: {}", grouped(t.total()), counts.collect::<Vec<_>>().join(", "))];
    lines.extend(verdict.worst.iter().take(elements).map(|d| element(name, d)));
    lines.extend(verdict.common().map(|c| format!("... {c}")));
    if t.total() - t.same > 1 {
        lines.push(format!("by ulp of distance   {}", histogram(&ArrayVerdict::BUCKETS, &verdict.histogram)));
        lines.push(format!(
            "by multiple of bound {}",
            histogram(&ArrayVerdict::MULTIPLES, &verdict.multiples)
        ));
    }
    lines
}

fn histogram(buckets: &[&str], counts: &[u64]) -> String {
    let filled = buckets.iter().zip(counts).filter(|(_, n)| **n > 0);
    filled.map(|(bucket, n)| format!("{bucket}: {}", count(*n))).collect::<Vec<_>>().join("   ")
}

/// A divergence of a replay: a heading, and lines below it.
pub fn divergence(d: &Divergence, lost: &[String]) -> (String, Vec<String>) {
    let place = &d.place;
    let mut heading = format!("{}, {}", place.describe(), place.opcode);
    let calls = place.describe_calls();
    if !calls.is_empty() {
        heading.push_str(&format!(", in {calls}"));
    }
    if let (Some(i), true) = (place.iteration, place.opcode == hlo::Opcode::While) {
        heading.push_str(&format!(", iteration {i}"));
    }
    if place.device > 0 {
        heading.push_str(&format!(", device {}", place.device));
    }
    let mut lines = vec![format!("{}: {}", class(d.class), d.how.describe())];
    for (i, verdict) in &d.arrays {
        let name = if d.arrays.len() == 1 && *i == 0 { String::new() } else { format!("array {i} ") };
        lines.extend(
            array(name.trim_end(), verdict, 4).into_iter().map(|l| l.trim_start_matches(": ").to_owned()),
        );
    }
    if !lost.is_empty() {
        let more = lost.len().saturating_sub(8);
        let mut names = lost.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
        if more > 0 {
            names.push_str(&format!(" and {more} more"));
        }
        lines.push(format!("with it judged, since the engine has lost them: {names}"));
    }
    (heading, lines)
}

/// Who is to blame, in a sentence or two.
pub fn blame(b: &Blame) -> String {
    let iteration = b.place.iteration.map_or_else(String::new, |i| format!(", iteration {i}"));
    let device = if b.place.device > 0 { format!(", device {}", b.place.device) } else { String::new() };
    let how = match &b.how {
        How::Value | How::Shape(_) => b.found.describe().to_owned(),
        How::Operands | How::Calls | How::Result => b.how.describe(),
    };
    format!("{} ({}{iteration}{device}) {how}", b.place.opcode, b.place.describe())
}

/// Why a row is what it is, in a few words.
pub fn reason(row: &Row) -> String {
    match &row.alone {
        Status::Skipped(why) => why.clone(),
        Status::Success(Class::Same) => String::new(),
        Status::Success(_) => "explained by rounding".into(),
        Status::Failure(d) => match (&d.failure, d.arrays.iter().find_map(|(_, v)| v.worst.first())) {
            (Some(failure), _) => format!("{}: {}", d.kind.describe(), failure.message),
            (None, Some(worst)) => element("", worst),
            (None, None) => d.kind.describe().into(),
        },
    }
}

/// `2 FAILURE, 17 SUCCESS, 5 SKIPPED`.
pub fn totals(isolation: &Isolation) -> String {
    let of = |name: &str| isolation.rows.iter().filter(|r| r.alone.name() == name).count() as u64;
    let all = ["FAILURE", "SUCCESS", "SKIPPED"].map(|name| format!("{} {name}", grouped(of(name))));
    all.join(", ")
}
