//! XLA's buffer assignment: which part of which allocation holds each value.

use rustc_hash::FxHashMap;

/// A part of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Slice {
    /// Number of the allocation.
    pub(super) allocation: u64,
    /// First byte.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) size: u64,
}

impl Slice {
    /// Offset behind the last byte.
    pub(super) fn end(self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// The slice of each value by its name: `add.1`, of elements of tuples `loop{0}`, `start{0,1}`.
pub(super) type Assignment = FxHashMap<String, Slice>;

/// Reads `...buffer-assignment.txt`. Errors: line and what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Assignment, (usize, String)> {
    let mut slices = Assignment::default();
    let mut allocation = None;
    for (number, line) in text.lines().enumerate() {
        let wrong = |what: &str| (number + 1, what.to_owned());
        if let Some(rest) = line.strip_prefix("allocation ") {
            let n = rest.split(':').next().and_then(|n| n.parse().ok());
            allocation = Some(n.ok_or_else(|| wrong("`allocation` is not followed by a number"))?);
        } else if let Some(rest) = line.trim_start().strip_prefix("value: <") {
            let allocation = allocation.ok_or_else(|| wrong("a value before the first allocation"))?;
            let form = || wrong("a value is not `value: <ID NAME @COLOR> (size=N,offset=N): SHAPE`");
            let (value, rest) = rest.split_once('>').ok_or_else(form)?;
            let name = value.split_whitespace().nth(1).ok_or_else(form)?;
            let number =
                |key: &str| -> Option<u64> { rest.split_once(key)?.1.split([',', ')']).next()?.parse().ok() };
            let (size, offset) = number("size=").zip(number("offset=")).ok_or_else(form)?;
            let name = name.strip_suffix("{}").unwrap_or(name);
            slices.insert(name.to_owned(), Slice { allocation, offset, size });
        }
    }
    if allocation.is_none() {
        return Err((1, "there is no allocation".to_owned()));
    }
    Ok(slices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_slices() {
        let text = "BufferAssignment:\n\
            allocation 3: size 8, page 0, preallocated-temp:\n \
            value: <7 tuple.2.0{} @0> (size=8,offset=0): (f32[])\n \
            value: <9 cond.1{0} (phi) @0> (size=4,offset=4): f32[]\n";
        let slices = parse(text).unwrap();
        assert_eq!(slices["tuple.2.0"], Slice { allocation: 3, offset: 0, size: 8 });
        assert_eq!(slices["cond.1{0}"].end(), 8);
        for (text, line) in [
            ("", 1),
            ("allocation x: size 8\n", 1),
            ("value: <7 a @0> (size=8,offset=0): f32[]\n", 1),
            ("allocation 0: size 8\n value: <7 a @0> (size=8): f32[]\n", 2),
        ] {
            assert_eq!(parse(text).unwrap_err().0, line, "{text}");
        }
    }
}
