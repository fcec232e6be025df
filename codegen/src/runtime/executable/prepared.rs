//! Weights known ahead: constant operands of library calls, packed once when the program is loaded, as calls
//! read them.
//!
//! **Invariants:** what is packed changes how fast a call is and no bit of its results; there is never more
//! of it than the limit of memory leaves, and a program that it is refused runs without; a constant that no
//! step and no result reads in its own form is given back.

use std::sync::Arc;

use hlo_library::LibraryCall;
use hlo_library_base::pool::Pool;
use hlo_library_base::{PREPARED_OPERAND, Prepared};
use hlo_opt::buffers::{Allocation, AllocationKind, Slice};

use super::super::arena::Memory;
use super::steps::Table;
use super::{ResultLeaf, RunError};

/// Packs what calls of a program find constant.
#[derive(Debug)]
pub(super) struct Packer<'a> {
    constants: &'a [Arc<Memory>],
    pool: Arc<Pool>,
    /// Bytes that may still be taken.
    left: u64,
    made: Vec<Made>,
    /// By allocation, how many of its pointers no call follows any more.
    unread: Vec<usize>,
}

/// Something that was packed.
#[derive(Debug)]
struct Made {
    /// The operand, and the operation with all of its facts: copies of a step, as loops have them, share what
    /// they read.
    of: (Slice, String),
    memory: Memory,
    operand: Prepared,
}

impl<'a> Packer<'a> {
    pub(super) fn new(constants: &'a [Arc<Memory>], pool: Arc<Pool>, left: u64, allocations: usize) -> Self {
        Self { constants, pool, left, made: Vec::new(), unread: vec![0; allocations] }
    }

    /// Packs the constant operand of a call. Gives its number, if it has one that is worth it and the memory
    /// budget allows it.
    pub(super) fn pack(
        &mut self,
        op: &LibraryCall,
        arguments: &[Slice],
        allocations: &[Allocation],
    ) -> Result<Option<u32>, RunError> {
        let constant = |slice: &Slice| match allocations.get(slice.allocation as usize)?.kind {
            AllocationKind::Constant { index } => self.constants.get(index as usize).map(Arc::as_ref),
            AllocationKind::Parameter { .. }
            | AllocationKind::Result { .. }
            | AllocationKind::Arena
            | AllocationKind::Frame => None,
        };
        let constants: Vec<Option<&Memory>> = arguments.iter().map(constant).collect();
        let known: Vec<bool> = constants.iter().map(Option::is_some).collect();
        let Some(bytes) = op.prepared_bytes(&known).filter(|&bytes| bytes <= self.left) else {
            return Ok(None);
        };
        let operand = arguments[PREPARED_OPERAND];
        let of = (operand, format!("{op:?}"));
        let number = match self.made.iter().position(|made| made.of == of) {
            Some(number) => number,
            None => {
                let at = |(memory, slice): (&Option<&Memory>, &Slice)| {
                    memory.map_or(std::ptr::null(), |m| {
                        m.start().wrapping_add(slice.offset as usize).cast_const()
                    })
                };
                let pointers: Vec<*const u8> = constants.iter().zip(arguments).map(at).collect();
                let memory = Memory::new(bytes)?;
                // SAFETY: the operand is a slice of a constant, which the loader checked to be inside of it;
                // there are as many bytes as were asked for.
                let operand = unsafe { op.prepare(&pointers, memory.start(), &self.pool) };
                self.left -= bytes;
                self.made.push(Made { of, memory, operand });
                self.made.len() - 1
            }
        };
        if self.made[number].operand == Prepared::Instead {
            self.unread[operand.allocation as usize] += 1;
        }
        u32::try_from(number).map(Some).map_err(|_| RunError::Load("too many packed operands".into()))
    }

    /// Bytes of what has a number.
    pub(super) fn bytes(&self, number: u32) -> u64 {
        self.made[number as usize].memory.len() as u64
    }

    /// What was packed, and the numbers of the constants that nobody reads in their own form.
    pub(super) fn finish(
        self,
        table: &Table,
        results: &[ResultLeaf],
        allocations: &[Allocation],
    ) -> (Vec<Memory>, Vec<u32>) {
        let mut unread = Vec::new();
        for (i, allocation) in allocations.iter().enumerate() {
            let AllocationKind::Constant { index } = allocation.kind else { continue };
            let same = |a: &Allocation| a.kind == allocation.kind;
            let alone = self.unread[i] > 0 && allocations.iter().filter(|a| same(a)).count() == 1;
            let is_result = results.iter().any(|r| r.slice.allocation as usize == i);
            if alone && !is_result && table.of[i].len() == self.unread[i] {
                unread.push(index);
            }
        }
        (self.made.into_iter().map(|made| made.memory).collect(), unread)
    }
}
