//! The first difference between two traces.
//!
//! Executions are matched by device, computation, name and number of execution, so that one that is in one
//! trace only (a loop ran longer, a compiler dropped it) does not shift the others. Arrays whose hashes
//! differ are compared element by element where both traces have their values; NaNs are equal then, as
//! everywhere.

use rustc_hash::{FxHashMap, FxHashSet};

use super::trace::{Record, Trace, Values};
use crate::compare::{Comparison, Tolerance, compare};
use hlo_system::exit::Failure;

/// An execution whose values differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Where it stands in the first trace.
    pub position: usize,
    /// Where it stands in the second.
    pub other: usize,
    /// Which array of the value.
    pub array: usize,
    /// Element by element; absent if the values are not there or of other shapes.
    pub comparison: Option<Comparison>,
    /// It is the first of its device.
    pub first: bool,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Executions in both.
    pub matched: usize,
    /// In execution order of the first trace, at most [`MAX_KEPT_DIFFERENCES`]; of each value the first
    /// array.
    pub differences: Vec<Difference>,
    /// How many executions differ.
    pub differing: usize,
    /// By opcode: executions in both, how many differ; in order of the first difference.
    pub opcodes: Vec<(String, usize, usize)>,
    /// Executions that only the first has, by position.
    pub only_first: Vec<usize>,
    /// Executions that only the second has, by position.
    pub only_second: Vec<usize>,
}

/// The maximum number of differences that are kept.
pub const MAX_KEPT_DIFFERENCES: usize = 1000;

impl Found {
    /// Nothing differs.
    pub fn same(&self) -> bool {
        self.differing == 0 && self.only_first.is_empty() && self.only_second.is_empty()
    }
}

type Key<'a> = ((u32, u32), &'a str, &'a str, u64);

fn key(r: &Record) -> Key<'_> {
    (r.device, &r.computation, &r.name, r.execution)
}

/// Compares two traces; floats within the tolerance are equal where both have values. Errors: a file of
/// values that cannot be read.
pub fn diff(a: &Trace, b: &Trace, tolerance: Tolerance, limit: u64) -> Result<Found, Failure> {
    let positions: FxHashMap<Key<'_>, usize> =
        b.records.iter().enumerate().map(|(i, r)| (key(r), i)).collect();
    let mut found = Found::default();
    let mut seen = vec![false; b.records.len()];
    let mut values = (a.values(limit)?, b.values(limit)?);
    let mut devices = FxHashSet::default();
    let mut opcodes: FxHashMap<&str, (usize, usize, usize)> = FxHashMap::default();
    for (position, record) in a.records.iter().enumerate() {
        let Some(&other) = positions.get(&key(record)) else {
            found.only_first.push(position);
            continue;
        };
        seen[other] = true;
        found.matched += 1;
        let of_opcode = opcodes.entry(&record.opcode).or_insert((0, 0, usize::MAX));
        of_opcode.0 += 1;
        if let Some((array, comparison)) = differs(record, &b.records[other], &mut values, tolerance)? {
            found.differing += 1;
            of_opcode.1 += 1;
            of_opcode.2 = of_opcode.2.min(position);
            let first = devices.insert(record.device);
            if found.differences.len() < MAX_KEPT_DIFFERENCES {
                found.differences.push(Difference { position, other, array, comparison, first });
            }
        }
    }
    found.only_second = (0..seen.len()).filter(|&i| !seen[i]).collect();
    let mut rows: Vec<_> = opcodes.into_iter().filter(|(_, (_, n, _))| *n > 0).collect();
    rows.sort_by_key(|(_, (_, _, first))| *first);
    found.opcodes = rows.into_iter().map(|(o, (all, n, _))| (o.to_owned(), all, n)).collect();
    Ok(found)
}

/// The first array that differs.
fn differs(
    a: &Record,
    b: &Record,
    values: &mut (Values, Values),
    tolerance: Tolerance,
) -> Result<Option<(usize, Option<Comparison>)>, Failure> {
    for (i, (x, y)) in a.arrays.iter().zip(&b.arrays).enumerate() {
        if x.same(y) {
            continue;
        }
        if (&x.element_type, &x.shape) != (&y.element_type, &y.shape) {
            return Ok(Some((i, None)));
        }
        let comparison =
            values.0.get(x)?.zip(values.1.get(y)?).map(|(x, y)| compare(&x, &y, tolerance, false));
        if comparison.as_ref().is_none_or(|c| !c.passes()) {
            return Ok(Some((i, comparison)));
        }
    }
    let shorter = a.arrays.len().min(b.arrays.len());
    Ok((a.arrays.len() != b.arrays.len()).then_some((shorter, None)))
}
