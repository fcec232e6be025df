//! Which elements of sorted lines are read.
//!
//! **Invariant:** the analysis is of the module that is lowered, in which no instruction gets another user:
//! elements that nothing reads are not written.

use std::ops::Range;

use hlo::{AttrKey, InstrId, Module, Opcode};

/// Lines of fewer elements are sorted whole.
const MIN_LINE_ELEMENTS: usize = 64;

/// At most one in [`MIN_LINE_SHARE`] elements of a line is selected; for more, the line is sorted.
const MIN_LINE_SHARE: usize = 4;

/// Which elements, along the sorted dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    All,
    /// The first `n`, less than all.
    First(usize),
    /// The last `n`.
    Last(usize),
}

impl Wanted {
    /// Of a `sort` along a dimension of `len` elements: by the slices that its users are, in the end.
    pub(super) fn of(module: &Module, sort: InstrId, dimension: usize, len: usize) -> Wanted {
        if len < MIN_LINE_ELEMENTS {
            return Wanted::All;
        }
        let read = if module.instr(sort).operands().len() == 1 {
            read_of(module, sort, dimension, len)
        } else if module.root(module.instr(sort).parent()) == sort {
            None
        } else {
            hull(module.users(sort).iter().map(|u| {
                let element = module.instr(u.user).opcode == Opcode::GetTupleElement;
                element.then(|| read_of(module, u.user, dimension, len)).flatten()
            }))
        };
        let Some(Range { start, end: limit }) = read.filter(|r| !r.is_empty()) else {
            return Wanted::All;
        };
        if limit <= len / MIN_LINE_SHARE {
            Wanted::First(limit)
        } else if len - start <= len / MIN_LINE_SHARE {
            Wanted::Last(len - start)
        } else {
            Wanted::All
        }
    }

    /// The range of indices.
    pub(super) fn range(self, len: usize) -> Range<usize> {
        match self {
            Wanted::All => 0..len,
            Wanted::First(k) => 0..k,
            Wanted::Last(k) => len - k..len,
        }
    }
}

/// The smallest range that covers all; `None` if one is not known.
fn hull(ranges: impl Iterator<Item = Option<Range<usize>>>) -> Option<Range<usize>> {
    let mut all = 0..0;
    for range in ranges {
        let range = range?;
        all = match (all.is_empty(), range.is_empty()) {
            (true, _) => range,
            (_, true) => all,
            (_, _) => all.start.min(range.start)..all.end.max(range.end),
        };
    }
    Some(all)
}

/// What slices read of an array along a dimension of `len` elements, here and in the fusions that read it;
/// `None` if anything else reads it.
fn read_of(module: &Module, array: InstrId, dimension: usize, len: usize) -> Option<Range<usize>> {
    if module.root(module.instr(array).parent()) == array {
        return None;
    }
    hull(module.users(array).iter().map(|u| {
        let user = module.instr(u.user);
        match user.opcode {
            Opcode::Slice => {
                let slice = user.attrs.slices()?.get(dimension)?;
                Some(usize::try_from(slice.start).ok()?..usize::try_from(slice.limit).ok()?)
            }
            Opcode::Reverse => {
                let dims = user.attrs.ints(AttrKey::Dimensions)?;
                let read = read_of(module, u.user, dimension, len)?;
                let reversed = dims.iter().any(|&d| usize::try_from(d) == Ok(dimension));
                Some(if reversed { len - read.end..len - read.start } else { read })
            }
            Opcode::Fusion => {
                let computation = user.attrs.computation(AttrKey::Calls)?;
                let parameters = module.computation(computation).parameters();
                let slots = (0..user.operands().len()).filter(|&slot| user.operands()[slot] == array);
                hull(
                    slots.map(|slot| {
                        read_of(module, parameters.get(slot).copied().flatten()?, dimension, len)
                    }),
                )
            }
            // Not a dispatch: others read all of it.
            _other => None,
        }
    }))
}
