//! `rng-bit-generator`: ThreeFry-2x32 and Philox-4x32 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers:
//! as easy as 1, 2, 3", SC 2011), one thread per counter. The first thread computes the new state.

use hlo::attrs::RngAlgorithm;
use hlo::{ElementType, InstrId, Module, TypeClass};
use hlo_codegen::Unsupported;
use hlo_llvm::{Emit, IntPredicate, Prim, Result, Value};

use super::threads::{block, thread};
use super::{Unit, launch};
use crate::kernel::{Argument, Kernel, Stage};

/// Threads of a block.
const THREADS: u32 = 256;

/// The algorithm of random bits.
struct Bits {
    threefry: bool,
    /// Elements of the state.
    state: i64,
    gives_state: bool,
    ty: ElementType,
    elements: i64,
    dims: Vec<i64>,
}

impl Bits {
    fn of(module: &Module, id: InstrId) -> std::result::Result<Self, Unsupported> {
        let refuse = |why: &str| Unsupported::new(module, id, why);
        let instr = module.instr(id);
        let gives_state = instr.shape.as_array().is_none();
        let shape = instr.shape.as_array().or_else(|| instr.shape.as_tuple()?.get(1)?.as_array());
        let state = instr.operands().first().and_then(|&o| module.instr(o).shape.as_array());
        let (Some(shape), Some(state)) = (shape, state) else {
            return Err(refuse("random bits that are no array"));
        };
        let ty = shape.element_type;
        if matches!(ty.class(), TypeClass::Pred | TypeClass::Complex) {
            return Err(refuse(&format!("random bits of type {ty}")));
        }
        let threefry = instr.attrs.rng_algorithm() == Some(&RngAlgorithm::ThreeFry);
        let elements: i64 = state.dims.iter().product();
        if state.element_type != ElementType::U64 || !(elements == 2 || elements == 3 && !threefry) {
            return Err(refuse("random bits by such a state"));
        }
        Ok(Self {
            threefry,
            state: elements,
            gives_state,
            ty,
            elements: shape.dims.iter().product(),
            dims: shape.dims.to_vec(),
        })
    }

    /// Of ThreeFry's pairs of words along a dimension: the products of the dimensions before and after it,
    /// it, and half of it rounded up. The dimension is the first even one, or else the first of the largest.
    fn pairs(&self) -> [i64; 4] {
        let dims = &self.dims;
        let largest = || dims.iter().position(|d| Some(d) == dims.iter().max());
        let Some(split) = dims.iter().position(|d| d % 2 == 0).or_else(largest) else { return [1; 4] };
        let half = (dims[split] + 1) / 2;
        [dims[..split].iter().product(), dims[split], half, dims[split + 1..].iter().product()]
    }

    /// Counters that are used up.
    fn blocks(&self) -> i64 {
        let pairs = self.pairs();
        match (self.threefry, self.ty.bits() == 64) {
            (true, true) => self.elements,
            (true, false) => pairs[0] * pairs[2] * pairs[3],
            (false, true) => (self.elements + 1) / 2,
            (false, false) => (self.elements + 3) / 4,
        }
    }
}

/// The low and the high half of 64 bits.
fn halves<'ctx>(e: &Emit<'_, 'ctx>, x: Value<'ctx>) -> Result<[Value<'ctx>; 2]> {
    Ok([e.trunc(x, Prim::I32)?, e.trunc(e.lshr(x, e.i64(32))?, Prim::I32)?])
}

fn word<'ctx>(e: &Emit<'_, 'ctx>, x: u32) -> Value<'ctx> {
    e.int(Prim::I32, u64::from(x))
}

/// 64 bits of a low and a high half.
fn whole<'ctx>(e: &Emit<'_, 'ctx>, low: Value<'ctx>, high: Value<'ctx>) -> Result<Value<'ctx>> {
    e.or(e.zext(low, Prim::I64)?, e.shl(e.zext(high, Prim::I64)?, e.i64(32))?)
}

/// Twenty rounds of ThreeFry-2x32.
fn threefry<'ctx>(e: &Emit<'_, 'ctx>, key: Value<'ctx>, counter: Value<'ctx>) -> Result<[Value<'ctx>; 2]> {
    const PARITY: u32 = 0x1BD1_1BDA;
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let [k0, k1] = halves(e, key)?;
    let schedule = [k0, k1, e.xor(e.xor(k0, word(e, PARITY))?, k1)?];
    let [mut x, mut y] = halves(e, counter)?;
    (x, y) = (e.add(x, schedule[0])?, e.add(y, schedule[1])?);
    for group in 0..5u32 {
        for rotation in ROTATIONS[group as usize % 2] {
            x = e.add(x, y)?;
            let high = e.shl(y, word(e, rotation))?;
            let low = e.lshr(y, word(e, 32 - rotation))?;
            y = e.xor(e.or(high, low)?, x)?;
        }
        let at = group as usize;
        x = e.add(x, schedule[(at + 1) % 3])?;
        y = e.add(e.add(y, schedule[(at + 2) % 3])?, word(e, group + 1))?;
    }
    Ok([x, y])
}

/// Ten rounds of Philox-4x32 on a counter of a low and a high half.
fn philox<'ctx>(
    e: &Emit<'_, 'ctx>,
    key: Value<'ctx>,
    [low, high]: [Value<'ctx>; 2],
) -> Result<[Value<'ctx>; 4]> {
    const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
    const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
    let mut key = halves(e, key)?;
    let ([a, b], [c, d]) = (halves(e, low)?, halves(e, high)?);
    let mut x = [a, b, c, d];
    for _ in 0..10 {
        let product = |x: Value<'ctx>, m: u32| -> Result<[Value<'ctx>; 2]> {
            halves(e, e.mul(e.zext(x, Prim::I64)?, e.i64(m.into()))?)
        };
        let ([low0, high0], [low1, high1]) = (product(x[0], MULTIPLIERS[0])?, product(x[2], MULTIPLIERS[1])?);
        x = [e.xor(e.xor(high1, x[1])?, key[0])?, low1, e.xor(e.xor(high0, x[3])?, key[1])?, low0];
        key = [e.add(key[0], word(e, WEYL[0]))?, e.add(key[1], word(e, WEYL[1]))?];
    }
    Ok(x)
}

/// A word, or 64 bits, as an element in memory.
fn narrowed<'ctx>(e: &Emit<'_, 'ctx>, ty: ElementType, bits: Value<'ctx>) -> Result<Value<'ctx>> {
    let bytes = ty.storage_bytes() as u32;
    let stored = e.resize(bits, Prim::int(8 * bytes), false)?;
    let unused = 8 * bytes - ty.bits();
    if unused == 0 {
        return Ok(stored);
    }
    let unused = e.int(Prim::int(8 * bytes), u64::from(unused));
    let top = e.shl(stored, unused)?;
    if ty.class() == TypeClass::Signed { e.ashr(top, unused) } else { e.lshr(top, unused) }
}

/// Emits an `rng-bit-generator`.
pub(super) fn emit<'ctx>(
    unit: &Unit<'_, 'ctx>,
    module: &Module,
    id: InstrId,
    symbol: &str,
) -> Result<Kernel> {
    let bits = Bits::of(module, id)?;
    let arrays = 2 + u32::from(bits.gives_state);
    let counters = bits.blocks();
    let blocks = (counters.max(1) + i64::from(THREADS) - 1) / i64::from(THREADS);
    let (e, arguments) = unit.begin(symbol, arrays, 0, THREADS)?;
    let e = &e;
    let number = e.add(e.mul(block(e, Prim::I64)?, e.i64(THREADS.into()))?, thread(e, Prim::I64)?)?;
    let state = |n: u64| e.load(Prim::I64, e.address_at(arguments[0], 8 * n)?, 8);
    let key = state(0)?;
    let counter = match (bits.threefry, bits.state) {
        (true, _) => [state(1)?, e.i64(0)],
        (false, 2) => [state(1)?, key],
        (false, _) => [state(1)?, state(2)?],
    };
    let plus = |n: Value<'ctx>| -> Result<[Value<'ctx>; 2]> {
        let low = e.add(counter[0], n)?;
        let carry = e.zext(e.icmp(IntPredicate::ULT, low, counter[0])?, Prim::I64)?;
        Ok([low, e.add(counter[1], carry)?])
    };
    let out = arguments[arrays as usize - 1];
    let ty = bits.ty;
    let size = ty.storage_bytes() as i64;
    let write = |at: Value<'ctx>, value: Value<'ctx>| -> Result<()> {
        let stored = narrowed(e, ty, value)?;
        e.store(stored, e.address(out, e.mul(at, e.i64(size))?)?, size as u32)?;
        Ok(())
    };
    // Elements of an array of which some may not exist.
    let write_if = |at: Value<'ctx>, value: Value<'ctx>| -> Result<()> {
        let exists = e.icmp(IntPredicate::ULT, at, e.i64(bits.elements))?;
        e.if_then(exists, || write(at, value))
    };
    e.if_then(e.icmp(IntPredicate::ULT, number, e.i64(counters))?, || {
        let own = plus(number)?;
        let wide = ty.bits() == 64;
        if bits.threefry {
            let [x, y] = threefry(e, key, own[0])?;
            if wide {
                return write(number, whole(e, x, y)?);
            }
            let [_, extent, half, inner] = bits.pairs();
            let (pair, position) =
                (e.udiv(number, e.i64(inner.max(1)))?, e.urem(number, e.i64(inner.max(1)))?);
            let (outer, along) = (e.udiv(pair, e.i64(half.max(1)))?, e.urem(pair, e.i64(half.max(1)))?);
            let first = e.shl(along, e.i64(1))?;
            let row = e.add(e.mul(outer, e.i64(extent))?, first)?;
            let at = e.add(e.mul(row, e.i64(inner))?, position)?;
            write(at, x)?;
            // The last pair of an odd dimension is one element.
            let second = e.icmp(IntPredicate::ULT, e.add(first, e.i64(1))?, e.i64(extent))?;
            return e.if_then(second, || write(e.add(at, e.i64(inner))?, y));
        }
        let x = philox(e, key, own)?;
        if wide {
            let at = e.shl(number, e.i64(1))?;
            write(at, whole(e, x[0], x[1])?)?;
            return write_if(e.add(at, e.i64(1))?, whole(e, x[2], x[3])?);
        }
        let at = e.shl(number, e.i64(2))?;
        x.iter().zip(0..).try_for_each(|(&x, n)| write_if(e.add(at, e.i64(n))?, x))
    })?;
    if bits.gives_state {
        e.if_then(e.icmp(IntPredicate::EQ, number, e.i64(0))?, || {
            let after = plus(e.i64(counters))?;
            let new = [key, after[0], after[1]];
            for (n, &x) in (0..).zip(&new[..usize::try_from(bits.state).unwrap_or(0)]) {
                e.store(x, e.address_at(arguments[1], 8 * n)?, 8)?;
            }
            Ok(())
        })?;
    }
    e.return_void()?;
    let mut kernel = Kernel::default();
    let arguments = (0..arrays).map(Argument::Array).collect();
    kernel.stages.push(Stage::Launch(launch(module, id, symbol, blocks, THREADS, arguments)?));
    Ok(kernel)
}
