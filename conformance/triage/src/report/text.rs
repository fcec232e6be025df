//! Findings as people read them.

use super::{count, grouped};
use crate::isolate::{Blame, Isolation, Row, Status};
use crate::replay::{Divergence, How};
use hlo_execution::verdict::{ArrayVerdict, Class, Differing, Worst};

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

/// More ulp than that say nothing to a person: the element is small against what it was computed from.
const MAX_ULP_SHOWN: f64 = 1e4;

/// `worst 3 ulp of 5 allowed`, or by absolute errors where a count of ulp says nothing.
pub fn worst(w: &Worst) -> String {
    match w.ulp.zip(w.allowed_ulp()) {
        Some((ulp, allowed)) if allowed < MAX_ULP_SHOWN => {
            format!("worst {} ulp of {} allowed", grouped(ulp), grouped(allowed.round() as u64))
        }
        _ => format!("worst error {:.2e} of {:.2e} allowed", w.error, w.bound),
    }
}

/// `out0[2,1]   expected 2   got 3   (error 1.00e0, 4,194,304 ulp, certified bound 1.20e-7)`.
pub fn element(name: &str, d: &Differing) -> String {
    let mut how = Vec::new();
    how.extend(d.error.map(|e| format!("error {e:.2e}")));
    how.extend(d.ulp.filter(|&u| (u as f64) < MAX_ULP_SHOWN).map(|u| format!("{} ulp", grouped(u))));
    how.push(match (d.class, d.bound, d.hard_bound) {
        (Class::Wrong, _, None) => {
            "from a wrong value, or not what it may be however decisions fall".to_owned()
        }
        (_, None, _) => "no bound is known".to_owned(),
        (Class::Undecided, Some(soft), hard) => {
            let alike = if soft > 0.0 { format!("within {soft:.2e}") } else { "the same bits".to_owned() };
            let otherwise = hard.map_or_else(|| "anything".to_owned(), |h| format!("within {h:.2e}"));
            format!("a decision hangs on rounding: {alike} if it falls alike, {otherwise} if not")
        }
        (Class::Same | Class::Explained | Class::Wrong, Some(0.0), _) => "must have the same bits".to_owned(),
        (Class::Same | Class::Explained | Class::Wrong, Some(bound), _) => {
            format!("certified bound {bound:.2e}")
        }
    });
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
    let location = &d.location;
    let mut heading = format!("{}, {}", location.describe(), location.opcode);
    let calls = location.describe_calls();
    if !calls.is_empty() {
        heading.push_str(&format!(", in {calls}"));
    }
    if let (Some(i), true) = (location.iteration, location.opcode == hlo::Opcode::While) {
        heading.push_str(&format!(", iteration {i}"));
    }
    if location.device > 0 {
        heading.push_str(&format!(", device {}", location.device));
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
    let iteration = b.location.iteration.map_or_else(String::new, |i| format!(", iteration {i}"));
    let device =
        if b.location.device > 0 { format!(", device {}", b.location.device) } else { String::new() };
    let how = match &b.how {
        How::Value | How::Shape(_) => b.found.describe().to_owned(),
        How::Operands | How::Calls | How::Result => b.how.describe(),
    };
    format!("{} ({}{iteration}{device}) {how}", b.location.opcode, b.location.describe())
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
