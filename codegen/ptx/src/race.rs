//! Data races by happens-before: for each word of memory the last write and the last reads, with clocks.
//!
//! Two accesses of different threads to one byte, at least one of which writes, and not both strong at scopes
//! that hold the other, are a race unless one happens before the other:
//! - in one thread by program order;
//! - in one warp by a `bar.warp.sync` or barrier that both lanes came to;
//! - in one block by a barrier, through clocks of warps;
//! - between blocks by a release that the other acquired.
//!
//! Invariant: what is reported is unordered in the execution that was seen. What is kept of reads is bounded
//! (the readers of two warps), so a race with an older reader may be missed, never invented.

/// An access. `lanes` are the lanes of the warp that made it between the same synchronizations.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Access {
    pub(crate) block: u32,
    /// The warp's component of its clock.
    pub(crate) clock: u32,
    /// Synchronizations of the warp before it.
    pub(crate) sync: u32,
    pub(crate) lanes: u32,
    pub(crate) line: u32,
    /// The block's clock of releases.
    pub(crate) release: u32,
    pub(crate) warp: u8,
    /// 0: no access; 1: weak; 2: strong in the block; 3: strong on the device.
    pub(crate) strength: u8,
}

pub(crate) const WEAK: u8 = 1;

#[derive(Clone, Copy, Default)]
struct Cell {
    write: Access,
    reads: [Access; 2],
}

/// Bytes of a page of the shadow.
const PAGE_BYTES: usize = 4096;

/// The accesses to a page: a cell a word of 4 bytes, or a byte once a narrower or unaligned access was seen.
struct Page {
    by_bytes: bool,
    cells: Vec<Cell>,
}

/// The accesses to an allocation or to the shared memory of a block.
#[derive(Default)]
pub(crate) struct Shadow {
    pages: Vec<Option<Box<Page>>>,
}

/// What conflicts with an access.
pub(crate) struct Conflict {
    pub(crate) with: Access,
    pub(crate) wrote: bool,
}

impl Shadow {
    /// Records an access and returns what it races with. `ordered` says whether an earlier access happens
    /// before this one. `same_value`: the write stores what is there already.
    pub(crate) fn access(
        &mut self,
        at: usize,
        bytes: usize,
        access: Access,
        write: bool,
        same_value: bool,
        ordered: impl Fn(&Access) -> bool,
    ) -> Option<Conflict> {
        let mut conflict = None;
        let end = at + bytes;
        let mut at = at;
        while at < end {
            let (page, offset) = (at / PAGE_BYTES, at % PAGE_BYTES);
            let length = (end - at).min(PAGE_BYTES - offset);
            if self.pages.len() <= page {
                self.pages.resize_with(page + 1, || None);
            }
            let page = self.pages[page].get_or_insert_with(|| {
                Box::new(Page { by_bytes: false, cells: vec![Cell::default(); PAGE_BYTES / 4] })
            });
            if !page.by_bytes && (!offset.is_multiple_of(4) || !length.is_multiple_of(4)) {
                page.cells = page.cells.iter().flat_map(|c| [*c; 4]).collect();
                page.by_bytes = true;
            }
            let range =
                if page.by_bytes { offset..offset + length } else { offset / 4..(offset + length) / 4 };
            for cell in &mut page.cells[range] {
                let found = cell.access(access, write, same_value, &ordered);
                conflict = conflict.or(found);
            }
            at += length;
        }
        conflict
    }
}

fn both_strong(a: &Access, b: &Access) -> bool {
    let needed = if a.block == b.block { 2 } else { 3 };
    a.strength >= needed && b.strength >= needed
}

impl Cell {
    #[inline]
    fn access(
        &mut self,
        a: Access,
        write: bool,
        same_value: bool,
        ordered: &impl Fn(&Access) -> bool,
    ) -> Option<Conflict> {
        let unordered = |prev: &Access| prev.strength != 0 && !both_strong(prev, &a) && !ordered(prev);
        let mut found = None;
        if write {
            for r in &self.reads {
                if unordered(r) {
                    found = Some(Conflict { with: *r, wrote: false });
                }
            }
            if !same_value && unordered(&self.write) {
                found = Some(Conflict { with: self.write, wrote: true });
            }
            *self = Cell { write: a, reads: [Access::default(); 2] };
            return found;
        }
        if unordered(&self.write) {
            found = Some(Conflict { with: self.write, wrote: true });
        }
        let same = |r: &Access| {
            r.strength == a.strength && r.block == a.block && r.warp == a.warp && r.sync == a.sync
        };
        if same(&self.reads[0]) {
            self.reads[0].lanes |= a.lanes;
        } else if same(&self.reads[1]) {
            self.reads[1].lanes |= a.lanes;
        } else if self.reads[0].strength == 0
            || (self.reads[0].block == a.block && self.reads[0].warp == a.warp)
        {
            self.reads[0] = a;
        } else {
            self.reads[1] = a;
        }
        found
    }
}
