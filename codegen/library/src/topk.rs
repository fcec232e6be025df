//! `topk`: the best keys of each row are selected ([`selection`]) and ordered once at the end.

use hlo::{AttrKey, InstrId, Module};
use hlo_library_base::memory::{Layout, Shared};
use hlo_library_base::simd::vectorized;
use hlo_library_base::workspace::with_workspace;
use hlo_library_base::{Call, Operation, Unsupported};

use super::selection::{self, Item};
use super::sort::{FloatOrder, Key};
use super::width::with_width;

/// The maximum of tasks.
const TASKS: usize = 64;

/// The operation: arguments are the operand, the values, the indices.
#[derive(Clone, Debug)]
pub(crate) struct TopK {
    /// Keys ascend from the best one.
    key: Key,
    rows: usize,
    len: usize,
    k: usize,
    /// Bytes of an element.
    bytes: usize,
    /// Elements that are collected at most.
    capacity: usize,
    tasks: usize,
}

impl TopK {
    /// For a `topk` instruction.
    pub(super) fn of(module: &Module, id: InstrId) -> Result<TopK, Unsupported> {
        let instr = module.instr(id);
        let k = instr.attrs.int(AttrKey::K).and_then(|k| usize::try_from(k).ok());
        let largest = instr.attrs.bool_or(AttrKey::Largest, true);
        TopK::new(module, id, k, largest)
    }

    fn new(module: &Module, id: InstrId, k: Option<usize>, largest: bool) -> Result<TopK, Unsupported> {
        let unsupported = |why: &str| Unsupported::new(module, id, why);
        let instr = module.instr(id);
        let shape = instr.operands().first().and_then(|&o| module.instr(o).shape.as_array());
        let (Some(shape), Some(k)) = (shape, k) else {
            return Err(unsupported("without an array or a number"));
        };
        let Some(len) = shape.dims.last().and_then(|&n| usize::try_from(n).ok()) else {
            return Err(unsupported("of a scalar"));
        };
        if shape.is_dynamic() || i32::try_from(len).is_err() || k > len {
            return Err(unsupported("of a dynamic dimension, or of 2^31 elements or more"));
        }
        let Some(key) = Key::whole(0, shape.element_type, largest, FloatOrder::Total) else {
            return Err(unsupported("of complex numbers"));
        };
        let rows = shape.elements().checked_div(len).unwrap_or(0);
        Ok(TopK {
            key,
            rows,
            len,
            k,
            bytes: shape.element_type.storage_bytes(),
            capacity: selection::capacity(k, len),
            tasks: rows.min(TASKS),
        })
    }

    fn task_bytes(&self) -> u64 {
        let mut layout = Layout::default();
        layout.add(self.capacity as u64, if self.key.bits() <= 32 { 8 } else { 16 });
        layout.bytes()
    }

    /// # Safety
    /// As [`Operation::run`]; the workspace has [`TopK::task_bytes`].
    #[inline(always)]
    unsafe fn row<I: Item>(&self, [x, values, indices]: [Shared<u8>; 3], scratch: *mut u8, row: usize) {
        let (k, first) = (self.k, row * self.len);
        // SAFETY: the workspace has this many bytes.
        let items = unsafe { Shared::<I>::new(scratch).slice_mut(0, self.capacity) };
        selection::best(items, k, 0..self.len, |range, keys| {
            // SAFETY: the row is in the operand.
            unsafe { self.key.load_row(x.pointer(), first + range.start, keys, I::narrow) };
        });
        items[..k].sort_unstable();
        // SAFETY: the row of the results, which no other task writes.
        let indices = unsafe { Shared::<i32>::new(indices.pointer()).slice_mut(row * k, k) };
        for (out, item) in indices.iter_mut().zip(&*items) {
            *out = item.index() as i32;
        }
        with_width!(self.bytes, T => {
            let (x, values) = (Shared::<T>::new(x.pointer()), Shared::<T>::new(values.pointer()));
            // SAFETY: as above; indices are below the length.
            let (x, values) = unsafe { (x.slice(first, self.len), values.slice_mut(row * k, k)) };
            values.iter_mut().zip(&*indices).for_each(|(out, &i)| *out = x[i as usize]);
        });
    }
}

impl Operation for TopK {
    fn strategy(&self) -> &'static str {
        "selection"
    }

    fn cost(&self) -> (u64, u64) {
        let (read, written) = (self.rows * self.len * self.bytes, self.rows * self.k * (self.bytes + 4));
        ((read + written) as u64, (self.rows * self.len) as u64)
    }

    unsafe fn run(&self, call: Call<'_>) {
        if self.k == 0 || self.rows == 0 {
            return;
        }
        let arguments = [0, 1, 2].map(|i| Shared::<u8>::new(call.arguments[i]));
        let task = |task: usize, scratch: *mut u8| {
            for row in self.rows * task / self.tasks..self.rows * (task + 1) / self.tasks {
                // SAFETY: as the caller says; tasks have different rows.
                vectorized(|| unsafe {
                    if self.key.bits() <= 32 {
                        self.row::<u64>(arguments, scratch, row);
                    } else {
                        self.row::<(u64, u32)>(arguments, scratch, row);
                    }
                });
            }
        };
        call.pool
            .run(self.tasks, &|n| with_workspace(self.task_bytes() as usize, |workspace| task(n, workspace)));
    }
}

#[cfg(test)]
mod tests {
    use hlo::{ElementType, TypeClass};

    use crate::testing::check;

    #[test]
    fn of_any_type() {
        for (seed, &ty) in (0..).zip(ElementType::ALL).filter(|(_, ty)| ty.class() != TypeClass::Complex) {
            for (dims, out, k) in [
                ("2,1100", "2,7", 7),
                ("900", "300", 300),
                ("2,3,5", "2,3,5", 5),
                ("4,1", "4,1", 1),
                ("0,5", "0,2", 2),
                ("1,1200", "1,1", 1),
                ("9,40", "9,16", 16),
                ("3,300", "3,17", 17),
            ] {
                let name = ty.name();
                let largest = seed % 2 == 0;
                let text = format!(
                    "HloModule m\nENTRY main {{\n  x = {name}[{dims}] parameter(0)\n  ROOT t = ({name}[{out}], s32[{out}]) topk(x), k={k}, largest={largest}\n}}\n"
                );
                check(&text, seed, true, true, &[]);
            }
        }
    }
}
