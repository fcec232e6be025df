//! `concatenate` of many parts: copies, a block of rows at a time, part by part.
//!
//! A concatenation of few parts is a kernel, which may compute them too; of many parts, selecting the part
//! for each element, or a loop for each part, takes longer than copies (`is_concat_by_copy` of the passes'
//! facts).

use hlo::{InstrId, Module};
use smallvec::SmallVec;

use hlo::facts::dimension;
use hlo_library_base::memory::array_bytes;
use hlo_library_base::{Call, Operation, Sent, Unsupported};

/// About how many bytes a task has: what is written part by part stays in a core's own cache meanwhile.
const TASK_BYTES: usize = 64 << 10;

/// Bytes of an element, and the number of parts of one element, that are transposed in registers.
const TRANSPOSED_ELEMENT_BYTES: usize = 4;
const TRANSPOSED_PARTS: usize = 4;

/// A concatenation: each row of the result is a row of each part, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Concatenate {
    /// Bytes of a row of each part.
    parts: Vec<usize>,
    /// Bytes of a row of the result.
    row: usize,
    rows: usize,
}

impl Concatenate {
    /// Of a `concatenate`.
    pub(super) fn of(module: &Module, id: InstrId) -> Result<Concatenate, Unsupported> {
        let refuse = |reason: &str| Unsupported::new(module, id, reason);
        let instr = module.instr(id);
        let result = instr.shape.expect_array();
        let arrays = instr.operands().iter().chain([&id]);
        if arrays.filter_map(|&o| module.instr(o).shape.as_array()).any(|a| a.is_dynamic()) {
            return Err(refuse("sizes known only at run time"));
        }
        let along = dimension(instr).ok_or_else(|| refuse("a concatenation along no dimension"))?;
        let whole = array_bytes(result).ok_or_else(|| refuse("an array larger than memory can be"))? as usize;
        // The dimensions before the concatenated one are the rows.
        let rows: i64 = result.dims[..along].iter().product();
        let rows = usize::try_from(rows).unwrap_or(0);
        let part = |&o: &InstrId| {
            let bytes = module.instr(o).shape.as_array().and_then(array_bytes);
            bytes.map(|bytes| bytes as usize / rows.max(1)).ok_or_else(|| refuse("a part that is no array"))
        };
        let parts = instr.operands().iter().map(part).collect::<Result<_, _>>()?;
        Ok(Concatenate { parts, row: whole / rows.max(1), rows })
    }

    /// Bytes `from..to` of each row, of these rows.
    ///
    /// # Safety
    /// As [`Operation::run`]; no other task writes there.
    unsafe fn copy(&self, arguments: &[*mut u8], rows: std::ops::Range<usize>, from: usize, to: usize) {
        let Some((result, parts)) = arguments.split_last() else { return };
        let (mut first, mut next) = (0, 0);
        while let (Some(&part), Some(&bytes)) = (parts.get(next), self.parts.get(next)) {
            let columns =
                self.parts[next..].iter().take_while(|&&bytes| bytes == TRANSPOSED_ELEMENT_BYTES).count();
            if columns >= TRANSPOSED_PARTS && (from, to) == (0, self.row) {
                let parts = parts[next..next + columns].iter();
                // SAFETY: the rows of the parts and of the result are there.
                let done = unsafe {
                    let parts = parts
                        .map(|part| part.add(rows.start * TRANSPOSED_ELEMENT_BYTES).cast_const())
                        .collect();
                    side_by_side(parts, rows.len(), result.add(rows.start * self.row + first), self.row)
                };
                if done {
                    first += columns * TRANSPOSED_ELEMENT_BYTES;
                    next += columns;
                    continue;
                }
            }
            next += 1;
            let (low, high) = (from.max(first), to.min(first + bytes));
            if low < high {
                let steps = Steps { rows: rows.len(), part: bytes, result: self.row };
                // SAFETY: the rows of the part and of the result are there.
                unsafe {
                    let part = part.add(rows.start * bytes + low - first).cast_const();
                    steps.copy(part, result.add(rows.start * self.row + low), high - low);
                }
            }
            first += bytes;
            if first >= to {
                return;
            }
        }
    }
}

/// Interleaves `rows` elements of 32 bits of each part into rows `pitch` bytes apart, if the machine has
/// vectors for it.
///
/// # Safety
/// The elements are there, and nothing else accesses those of the result.
unsafe fn side_by_side(parts: SmallVec<[*const u8; 64]>, rows: usize, result: *mut u8, pitch: usize) -> bool {
    #[cfg(target_arch = "x86_64")]
    if hlo_library_base::isa::Features::here().avx512 {
        // SAFETY: the machine has the instructions; the caller's.
        unsafe { hlo_library_base::transpose::columns(&parts, rows, result, pitch) };
        return true;
    }
    let _ = (parts, rows, result, pitch);
    false
}

/// Rows, and the bytes from each to the next.
struct Steps {
    rows: usize,
    part: usize,
    result: usize,
}

impl Steps {
    /// Copies `n` bytes of each row.
    unsafe fn copy(&self, part: *const u8, result: *mut u8, n: usize) {
        // SAFETY: the caller's.
        unsafe {
            match n {
                1 => self.whole::<u8>(part, result),
                2 => self.whole::<u16>(part, result),
                4 => self.whole::<u32>(part, result),
                8 => self.whole::<u64>(part, result),
                16 => self.whole::<u128>(part, result),
                32 => self.whole::<[u64; 4]>(part, result),
                3 => self.ends::<u16>(part, result, n),
                5..=7 => self.ends::<u32>(part, result, n),
                9..=15 => self.ends::<u64>(part, result, n),
                17..=31 => self.ends::<u128>(part, result, n),
                33..=64 => self.ends::<[u64; 4]>(part, result, n),
                _more => {
                    for row in 0..self.rows {
                        let (part, result) = (part.add(row * self.part), result.add(row * self.result));
                        std::ptr::copy_nonoverlapping(part, result, n);
                    }
                }
            }
        }
    }

    /// Copies a `T` from each row to each row.
    #[inline(always)]
    unsafe fn whole<T: Copy>(&self, part: *const u8, result: *mut u8) {
        for row in 0..self.rows {
            // SAFETY: the caller's; unaligned reads and writes.
            unsafe {
                let value = part.add(row * self.part).cast::<T>().read_unaligned();
                result.add(row * self.result).cast::<T>().write_unaligned(value);
            }
        }
    }

    /// Copies `n` bytes as their first and last `T`, which may overlap.
    #[inline(always)]
    unsafe fn ends<T: Copy>(&self, part: *const u8, result: *mut u8, n: usize) {
        let last = n - size_of::<T>();
        for row in 0..self.rows {
            // SAFETY: the caller's; unaligned reads and writes.
            unsafe {
                let (part, result) = (part.add(row * self.part), result.add(row * self.result));
                let (head, tail) =
                    (part.cast::<T>().read_unaligned(), part.add(last).cast::<T>().read_unaligned());
                result.cast::<T>().write_unaligned(head);
                result.add(last).cast::<T>().write_unaligned(tail);
            }
        }
    }
}

impl Operation for Concatenate {
    fn strategy(&self) -> &'static str {
        "concatenation by copies"
    }

    fn cost(&self) -> (u64, u64) {
        ((2 * self.rows * self.row) as u64, 0)
    }

    unsafe fn run(&self, call: Call<'_>) {
        if self.rows * self.row == 0 {
            return;
        }
        // Long rows are divided among tasks, short ones grouped.
        let (long, each) = (self.row.div_ceil(TASK_BYTES), (TASK_BYTES / self.row).max(1));
        let sent = Sent(call);
        call.pool.run(self.rows.div_ceil(each) * long, &|task| {
            let (rows, piece) = (task / long * each, task % long);
            let (from, to) = (self.row * piece / long, self.row * (piece + 1) / long);
            // SAFETY: the caller's; tasks have rows, or parts of rows, of their own.
            unsafe { self.copy(sent.get().arguments, rows..(rows + each).min(self.rows), from, to) };
        });
    }
}

#[cfg(test)]
mod tests {
    use hlo::ElementType;

    use crate::testing::check;

    #[test]
    fn many_parts() {
        for (ty, widths, outer, inner) in [
            (ElementType::F32, vec![1, 4, 16, 3, 8, 32, 5, 1, 0, 12, 7, 2], 50, 1),
            (ElementType::U8, (1..70).collect::<Vec<i64>>(), 33, 1),
            (ElementType::F64, vec![1; 40], 300, 1),
            (ElementType::F32, vec![1; 40], 300, 1),
            (ElementType::S32, [vec![3], vec![1; 17], vec![2], vec![1; 5]].concat(), 2000, 1),
            (ElementType::C128, vec![2, 1, 3, 1, 2, 5, 1, 1, 1, 1], 7, 3),
            (ElementType::S16, vec![900, 1, 70_000, 3, 2, 5000, 1, 1, 12, 40_000], 2, 1),
            (ElementType::F32, vec![3, 0, 11, 1, 1, 1, 1, 1, 1, 1], 0, 2),
        ] {
            let all: i64 = widths.iter().sum();
            let shape = |n: i64| format!("{}[{outer},{n},{inner}]", ty.name());
            let mut text = "HloModule m
ENTRY e {
"
            .to_owned();
            for (k, &n) in widths.iter().enumerate() {
                text += &format!(
                    "  p{k} = {} parameter({k})
",
                    shape(n)
                );
            }
            let names: Vec<String> = (0..widths.len()).map(|k| format!("p{k}")).collect();
            text += &format!(
                "  ROOT c = {} concatenate({}), dimensions={{1}}
}}
",
                shape(all),
                names.join(", ")
            );
            check(&text, 1, true, true, &[]);
        }
    }
}
