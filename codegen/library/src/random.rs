//! `rng-bit-generator`: ThreeFry-2x32 and Philox-4x32 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers:
//! as easy as 1, 2, 3", SC 2011), with the interpreter's assignment of words to elements, many counters at a
//! time.

use hlo::attrs::RngAlgorithm;
use hlo::{ElementType, InstrId, Module, TypeClass};

use hlo_library_base::memory::Shared;
use hlo_library_base::simd::vectorized;
use hlo_library_base::{Call, Operation, Unsupported};

/// Blocks that are computed in lanes.
const LANES: usize = 32;

/// Blocks of a task.
const TASK_BLOCKS: usize = 1 << 13;

/// Twenty rounds of ThreeFry-2x32 on the counters `first + i`.
#[inline(always)]
fn threefry(key: u64, first: u64) -> [[u32; LANES]; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let key = [key as u32, (key >> 32) as u32];
    let schedule = [key[0], key[1], 0x1BD1_1BDA ^ key[0] ^ key[1]];
    let (mut x, mut y) = ([0u32; LANES], [0u32; LANES]);
    for i in 0..LANES {
        let counter = first.wrapping_add(i as u64);
        x[i] = (counter as u32).wrapping_add(schedule[0]);
        y[i] = ((counter >> 32) as u32).wrapping_add(schedule[1]);
    }
    for group in 0..5 {
        for rotation in ROTATIONS[group % 2] {
            for i in 0..LANES {
                x[i] = x[i].wrapping_add(y[i]);
                y[i] = y[i].rotate_left(rotation) ^ x[i];
            }
        }
        let (a, b) = (schedule[(group + 1) % 3], schedule[(group + 2) % 3].wrapping_add(group as u32 + 1));
        for i in 0..LANES {
            x[i] = x[i].wrapping_add(a);
            y[i] = y[i].wrapping_add(b);
        }
    }
    [x, y]
}

/// Ten rounds of Philox-4x32 on the counters `first + i`.
#[inline(always)]
fn philox(key: u64, first: u128) -> [[u32; LANES]; 4] {
    let mut key = [key as u32, (key >> 32) as u32];
    let mut x = [[0u32; LANES]; 4];
    for i in 0..LANES {
        let c = first.wrapping_add(i as u128);
        for (word, x) in x.iter_mut().enumerate() {
            x[i] = (c >> (32 * word)) as u32;
        }
    }
    for _ in 0..10 {
        let [a, b, c, d] = &mut x;
        for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
            let product0 = u64::from(*a) * 0xD251_1F53;
            let product1 = u64::from(*c) * 0xCD9E_8D57;
            *a = (product1 >> 32) as u32 ^ *b ^ key[0];
            *b = product1 as u32;
            *c = (product0 >> 32) as u32 ^ *d ^ key[1];
            *d = product0 as u32;
        }
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    x
}

/// The operation: arguments are the state, the new state if that is a result, the bits.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    threefry: bool,
    /// Elements of the state.
    state: usize,
    /// Whether the new state is a result.
    gives_state: bool,
    ty: ElementType,
    elements: usize,
    /// The pairs of elements of ThreeFry's 32-bit words: see [`pairs`].
    pairs: [usize; 4],
}

/// Products of the dimensions before, the dimension, half of it rounded up, and after: of the first even
/// dimension, or else the first of the largest.
fn pairs(dims: &[usize]) -> [usize; 4] {
    let largest = || dims.iter().position(|d| Some(d) == dims.iter().max());
    let Some(split) = dims.iter().position(|d| d % 2 == 0).or_else(largest) else { return [1; 4] };
    [dims[..split].iter().product(), dims[split], dims[split].div_ceil(2), dims[split + 1..].iter().product()]
}

impl Bits {
    /// For an `rng-bit-generator` instruction.
    pub(super) fn of(module: &Module, id: InstrId) -> Result<Bits, Unsupported> {
        let unsupported = |why: &str| Unsupported::new(module, id, why);
        let instr = module.instr(id);
        let gives_state = instr.shape.as_array().is_none();
        let shape = instr.shape.as_array().or_else(|| instr.shape.as_tuple()?.get(1)?.as_array());
        let state = instr.operands().first().and_then(|&o| module.instr(o).shape.as_array());
        let (Some(shape), Some(state)) = (shape, state) else {
            return Err(unsupported("without an array of bits"));
        };
        let ty = shape.element_type;
        if matches!(ty.class(), TypeClass::Pred | TypeClass::Complex) {
            return Err(unsupported(&format!("of type {ty}")));
        }
        let threefry = instr.attrs.rng_algorithm() == Some(&RngAlgorithm::ThreeFry);
        let state_elements = state.elements();
        let fits = state_elements == 2 || (state_elements == 3 && !threefry);
        if state.element_type != ElementType::U64 || !fits || shape.is_dynamic() {
            return Err(unsupported("with such a state"));
        }
        let dims: Vec<usize> = shape.dims.iter().map(|&d| usize::try_from(d).unwrap_or(0)).collect();
        Ok(Bits {
            threefry,
            state: state_elements,
            gives_state,
            ty,
            elements: shape.elements(),
            pairs: pairs(&dims),
        })
    }

    /// The number of counters that are used.
    fn blocks(&self) -> usize {
        match (self.threefry, self.ty.bits() == 64) {
            (true, true) => self.elements,
            (true, false) => self.pairs[0] * self.pairs[2] * self.pairs[3],
            (false, true) => self.elements.div_ceil(2),
            (false, false) => self.elements.div_ceil(4),
        }
    }

    /// Writes words as elements `at..at + words.len()`, as far as those exist.
    #[inline(always)]
    unsafe fn write(&self, out: Shared<u8>, at: usize, words: &[u32]) {
        let n = words.len().min(self.elements.saturating_sub(at));
        let words = &words[..n];
        let (bits, size) = (self.ty.bits(), self.ty.storage_bytes());
        // SAFETY: the elements exist, and the caller says that they are its own.
        unsafe {
            if size == 4 {
                Shared::<u32>::new(out.pointer()).slice_mut(at, n).copy_from_slice(words);
            } else if size == 2 {
                let out = Shared::<u16>::new(out.pointer()).slice_mut(at, n);
                out.iter_mut().zip(words).for_each(|(out, &w)| *out = w as u16);
            } else {
                let unused = 8 - bits;
                let signed = self.ty.class() == TypeClass::Signed;
                for (out, &w) in out.slice_mut(at, n).iter_mut().zip(words) {
                    let low = (w as u8) << unused;
                    *out = if signed { (low as i8 >> unused) as u8 } else { low >> unused };
                }
            }
        }
    }

    /// The blocks `first..first + n` of at most [`LANES`] successive ones.
    #[inline(always)]
    unsafe fn some(&self, out: Shared<u8>, key: u64, counter: u128, first: usize, n: usize) {
        let wide = self.ty.bits() == 64;
        let whole = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        // SAFETY: as the caller says: these blocks' elements are its own.
        unsafe {
            if self.threefry {
                let [x, y] = threefry(key, (counter as u64).wrapping_add(first as u64));
                if wide {
                    let out = Shared::<u64>::new(out.pointer()).slice_mut(first, n);
                    out.iter_mut().zip(x.iter().zip(&y)).for_each(|(out, (&x, &y))| *out = whole(x, y));
                    return;
                }
                let [_, extent, pairs, inner] = self.pairs;
                if inner == 1 && extent.is_multiple_of(2) {
                    let mut words = [0u32; 2 * LANES];
                    for i in 0..LANES {
                        words[2 * i] = x[i];
                        words[2 * i + 1] = y[i];
                    }
                    return self.write(out, 2 * first, &words[..2 * n]);
                }
                let mut i = 0;
                while i < n {
                    let (pair, offset) = ((first + i) / inner, (first + i) % inner);
                    let run = (inner - offset).min(n - i);
                    let row = pair / pairs * extent + pair % pairs * 2;
                    self.write(out, row * inner + offset, &x[i..i + run]);
                    // The last pair of an odd dimension is one element.
                    if pair % pairs * 2 + 1 < extent {
                        self.write(out, (row + 1) * inner + offset, &y[i..i + run]);
                    }
                    i += run;
                }
            } else {
                let x = philox(key, counter.wrapping_add(first as u128));
                if wide {
                    let count = (2 * n).min(self.elements - 2 * first);
                    let out = Shared::<u64>::new(out.pointer()).slice_mut(2 * first, count);
                    for (i, out) in out.iter_mut().enumerate() {
                        let w = i % 2 * 2;
                        *out = whole(x[w][i / 2], x[w + 1][i / 2]);
                    }
                    return;
                }
                let mut words = [0u32; 4 * LANES];
                for i in 0..LANES {
                    for w in 0..4 {
                        words[4 * i + w] = x[w][i];
                    }
                }
                self.write(out, 4 * first, &words[..4 * n]);
            }
        }
    }
}

impl Operation for Bits {
    fn strategy(&self) -> &'static str {
        if self.threefry { "Threefry" } else { "Philox" }
    }

    fn cost(&self) -> (u64, u64) {
        ((self.elements * self.ty.storage_bytes()) as u64, self.blocks() as u64 * 64)
    }

    unsafe fn run(&self, call: Call<'_>) {
        // SAFETY: the state is an array of `self.state` numbers.
        let state = unsafe { Shared::<u64>::new(call.arguments[0]).slice(0, self.state) };
        let counter = match (self.threefry, state) {
            (false, &[key, low]) => u128::from(low) | u128::from(key) << 64,
            (_, &[_, low, high]) => u128::from(low) | u128::from(high) << 64,
            (_, state) => u128::from(state.get(1).copied().unwrap_or(0)),
        };
        let (key, blocks) = (state[0], self.blocks());
        let after = counter.wrapping_add(blocks as u128);
        let out = Shared::<u8>::new(call.arguments[1 + usize::from(self.gives_state)]);
        if self.gives_state {
            let new = [key, after as u64, (after >> 64) as u64];
            // SAFETY: the new state is as long as the old one.
            unsafe { Shared::<u64>::new(call.arguments[1]).slice_mut(0, self.state) }
                .copy_from_slice(&new[..self.state]);
        }
        let tasks = blocks.div_ceil(TASK_BLOCKS);
        let task = |task: usize| {
            let range = task * TASK_BLOCKS..blocks.min((task + 1) * TASK_BLOCKS);
            vectorized(|| {
                for first in range.clone().step_by(LANES) {
                    // SAFETY: tasks have different blocks.
                    unsafe { self.some(out, key, counter, first, LANES.min(range.end - first)) };
                }
            });
        };
        if tasks == 1 { task(0) } else { call.pool.run(tasks, &task) }
    }
}

#[cfg(test)]
mod tests {
    use hlo::{ElementType, TypeClass};

    use crate::testing::check;

    #[test]
    fn bits_and_states_of_all_types() {
        for &ty in
            ElementType::ALL.iter().filter(|ty| !matches!(ty.class(), TypeClass::Pred | TypeClass::Complex))
        {
            for dims in ["", "1", "7", "64", "3,5", "3,4", "5,6,7", "2,33", "0", "99,1"] {
                for (algorithm, state) in
                    [("rng_three_fry", 2), ("rng_philox", 3), ("rng_philox", 2), ("rng_default", 3)]
                {
                    let ty = ty.name();
                    let text = format!(
                        "HloModule m\nENTRY main {{\n  s = u64[{state}] parameter(0)\n  ROOT r = (u64[{state}], {ty}[{dims}]) rng-bit-generator(s), algorithm={algorithm}\n}}\n"
                    );
                    check(&text, dims.len() as u64, true, true, &[]);
                }
            }
        }
        let text = "HloModule m\nENTRY main {\n  s = u64[2] parameter(0)\n  ROOT r = (u64[2], u32[50000]) rng-bit-generator(s), algorithm=rng_three_fry\n}\n";
        check(text, 1, true, true, &[]);
        check(&text.replace("three_fry", "philox").replace("50000", "100003"), 2, true, true, &[]);
    }
}
