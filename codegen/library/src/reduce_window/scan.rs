//! `scan` by one operation of a slice and the carry: `s = f(x, carry); (s, s)`. It is a growing window with
//! an initial value of its own in each line.

use hlo::{AttrKey, ComputationId, ElementType, InstrId, Module, Opcode};
use hlo_library_base::floats::Narrow;
use hlo_library_base::memory::{Layout, Shared};
use hlo_library_base::{Call, Operation, Sent, Unsupported};

use super::fold::{self, Carrier};
use super::running::INTERLEAVED_LINES;
use super::{TASKS, tasks};

/// Neighbouring lines that are folded together.
const FOLDED_LINES: usize = 512;

/// The operation: arguments are the input, the initial carries, the outputs, the last carries.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    ty: ElementType,
    op: Opcode,
    down: bool,
    /// Lines are those of the middle dimension, with one more dimension for the parts of complex numbers that
    /// are summed.
    sizes: [usize; 3],
    narrow: Option<Narrow>,
    /// Bytes that elements are computed in.
    bytes: usize,
    /// The scratch memory of a task.
    task_bytes: u64,
}

/// The operation that a computation is, if it returns its result twice.
fn recognized(module: &Module, computation: ComputationId) -> Option<Opcode> {
    let root = module.instr(module.root(computation));
    let (Opcode::Tuple, &[a, b]) = (root.opcode, root.operands()) else { return None };
    let op = module.instr(a);
    let parameter = |&id: &InstrId| module.instr(id).parameter_number();
    let numbers: Vec<Option<i64>> = op.operands().iter().map(parameter).collect();
    let both = numbers == [Some(0), Some(1)] || numbers == [Some(1), Some(0)];
    let commutes = [
        Opcode::Add,
        Opcode::Multiply,
        Opcode::Maximum,
        Opcode::Minimum,
        Opcode::And,
        Opcode::Or,
        Opcode::Xor,
    ];
    (a == b && both && commutes.contains(&op.opcode)).then_some(op.opcode)
}

impl Scan {
    /// For a `scan` instruction.
    pub(crate) fn of(module: &Module, id: InstrId) -> Result<Scan, Unsupported> {
        let unsupported = |why: &str| Unsupported::new(module, id, why);
        let instr = module.instr(id);
        let op = instr.attrs.computation(AttrKey::ToApply).and_then(|c| recognized(module, c));
        let (&[x, init], Some(op)) = (instr.operands(), op) else {
            return Err(unsupported("by a computation that is not one operation of its parameters"));
        };
        let shapes: Option<Vec<_>> = [x, init].iter().map(|&o| module.instr(o).shape.as_array()).collect();
        let results: Option<Vec<_>> = instr.shape.leaves().into_iter().map(hlo::Shape::as_array).collect();
        let (Some(shapes), Some(results)) = (shapes, results) else {
            return Err(unsupported("of something that is no array"));
        };
        let ty = shapes[0].element_type;
        let same = shapes.iter().chain(&results).all(|s| s.element_type == ty && !s.is_dynamic());
        let dimension =
            instr.attrs.ints_or_empty(AttrKey::Dimensions).first().and_then(|&d| usize::try_from(d).ok());
        let (Some(dimension), true) =
            (dimension.filter(|&d| d < shapes[0].rank()), same && results.len() == 2)
        else {
            return Err(unsupported("of several types or dynamic sizes"));
        };
        let Some((carrier, fold)) = fold::of(ty, op) else {
            return Err(unsupported(&format!("of type {ty}")));
        };
        let size = |d: &[i64]| d.iter().map(|&n| usize::try_from(n).unwrap_or(0)).product::<usize>();
        let dims = &shapes[0].dims;
        let mut sizes =
            [size(&dims[..dimension]), size(&dims[dimension..=dimension]), size(&dims[dimension + 1..])];
        if matches!(carrier, Carrier::C64 | Carrier::C128) && op == Opcode::Add {
            sizes[2] *= 2;
        }
        let narrow = (carrier == Carrier::F32 && ty != ElementType::F32).then(|| Narrow::new(ty));
        let bytes = fold.bytes;
        let mut task = Layout::default();
        // The carries, a row of elements, and, if it is a line by itself, that line.
        task.add(FOLDED_LINES as u64, bytes as u64);
        task.add(
            FOLDED_LINES.max(if sizes[2] == 1 && narrow.is_some() { sizes[1] } else { 0 }) as u64,
            bytes as u64,
        );
        Ok(Scan {
            ty,
            op,
            down: instr.attrs.bool(AttrKey::IsReverse),
            sizes,
            narrow,
            bytes,
            task_bytes: task.bytes(),
        })
    }

    /// Reads elements in the type that they are computed in.
    unsafe fn read(&self, from: Shared<u8>, at: usize, to: *mut u8, n: usize) {
        // SAFETY: the caller says that the elements exist, and that there is space.
        unsafe {
            match &self.narrow {
                Some(narrow) => narrow.widen(from.pointer(), at, Shared::<f32>::new(to).slice_mut(0, n)),
                None => to.copy_from_nonoverlapping(from.pointer().add(at * self.bytes), n * self.bytes),
            }
        }
    }

    /// Writes them, rounded.
    unsafe fn write(&self, from: *mut u8, to: Shared<u8>, at: usize, n: usize) {
        // SAFETY: as for `read`.
        unsafe {
            match &self.narrow {
                Some(narrow) => narrow.narrow(Shared::<f32>::new(from).slice(0, n), to.pointer(), at),
                None => to.pointer().add(at * self.bytes).copy_from_nonoverlapping(from, n * self.bytes),
            }
            self.normalize(to, at, n);
        }
    }

    /// Cuts elements of fewer than 8 bits to those.
    unsafe fn normalize(&self, x: Shared<u8>, at: usize, n: usize) {
        let unused = 8u32.saturating_sub(self.ty.bits());
        if self.narrow.is_none() && unused > 0 && self.ty != ElementType::Pred {
            let signed = self.ty.is_signed_integer();
            // SAFETY: as for `read`.
            for x in unsafe { x.slice_mut(at, n) } {
                *x = if signed { ((*x << unused) as i8 >> unused) as u8 } else { *x << unused >> unused };
            }
        }
    }
}

impl Operation for Scan {
    fn strategy(&self) -> &'static str {
        "scan"
    }

    fn scratch_bytes(&self) -> u64 {
        self.task_bytes.saturating_mul(TASKS as u64)
    }

    fn cost(&self) -> (u64, u64) {
        let elements: usize = self.sizes.iter().product();
        ((2 * elements * self.bytes) as u64, elements as u64)
    }

    unsafe fn run(&self, call: Call<'_>) {
        let Some((_, fold)) = fold::of(self.ty, self.op) else { return };
        let [outer, n, inner] = self.sizes;
        let scratch = Shared::<u8>::new(call.scratch);
        let (pool, call) = (call.pool, Sent(call));
        let blocks = inner.div_ceil(FOLDED_LINES);
        tasks(pool, outer * blocks, n.saturating_mul(FOLDED_LINES.min(inner)), &|task, range| {
            let [x, init, out, last] = [0, 1, 2, 3].map(|i| Shared::<u8>::new(call.get().arguments[i]));
            // SAFETY: each task has its own memory: lanes of what is carried, then a row.
            let carry = unsafe { scratch.offset(task * self.task_bytes as usize) }.pointer();
            // SAFETY: as above.
            let row = unsafe { carry.add((FOLDED_LINES * self.bytes).next_multiple_of(64)) };
            for i in range {
                let (o, first) = (i / blocks, i % blocks * FOLDED_LINES);
                let count = FOLDED_LINES.min(inner - first);
                // SAFETY: indices are in the arrays; tasks have different lines.
                unsafe {
                    self.read(init, o * inner + first, carry, count);
                    if inner <= INTERLEAVED_LINES && self.narrow.is_none() {
                        let at = o * n * inner * self.bytes;
                        let (x, to) = (x.offset(at).pointer(), out.offset(at).pointer());
                        fold.scan_lines(x, to, (n, inner), carry, self.down);
                        self.normalize(out, o * n * inner, n * inner);
                    } else if inner == 1 {
                        self.read(x, o * n, row, n);
                        (fold.scan)(row, row, n, carry, self.down);
                        self.write(row, out, o * n, n);
                    } else {
                        for k in 0..n {
                            let at = (o * n + if self.down { n - 1 - k } else { k }) * inner + first;
                            self.read(x, at, row, count);
                            fold.rows(carry, count, &[row.cast_const()]);
                            self.write(carry, out, at, count);
                        }
                    }
                    self.write(carry, last, o * inner + first, count);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use hlo::{ElementType, TypeClass};

    use crate::testing::{check, close};

    fn text(ty: ElementType, op: &str, dims: &str, rest: &str, dimension: usize, reverse: bool) -> String {
        let ty = ty.name();
        format!(
            "HloModule m\nf {{\n  x = {ty}[{rest}] parameter(0)\n  c = {ty}[{rest}] parameter(1)\n  s = {ty}[{rest}] {op}(x, c)\n  ROOT r = ({ty}[{rest}], {ty}[{rest}]) tuple(s, s)\n}}\nENTRY main {{\n  x = {ty}[{dims}] parameter(0)\n  c = {ty}[{rest}] parameter(1)\n  ROOT r = ({ty}[{dims}], {ty}[{rest}]) scan(x, c), dimensions={{{dimension}}}, is_reverse={reverse}, num_carries=1, to_apply=f\n}}\n"
        )
    }

    #[test]
    fn of_any_type() {
        for (seed, &ty) in (0..).zip(ElementType::ALL) {
            let ops: &[&str] = match ty.class() {
                TypeClass::Float => &["maximum", "multiply"],
                TypeClass::Complex => &[],
                TypeClass::Pred => &["or"],
                TypeClass::Signed | TypeClass::Unsigned => &["add", "multiply", "minimum"],
            };
            for (dims, rest, dimension) in
                [("20", "", 0), ("3,20", "3", 1), ("7,5", "5", 0), ("2,9,3", "2,3", 1), ("0,2", "2", 0)]
            {
                for op in ops {
                    check(&text(ty, op, dims, rest, dimension, seed % 2 == 0), seed, true, false, &[]);
                }
                if matches!(ty.class(), TypeClass::Float | TypeClass::Complex) {
                    close(&text(ty, "add", dims, rest, dimension, seed % 2 == 1), seed, 8.0);
                }
            }
        }
    }
}
