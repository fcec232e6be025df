//! Loads and stores of elements: one, or one per lane: contiguous, strided, or gathered and scattered.

use hlo::{Buffer, ElementType};
use inkwell::module::Linkage;
use smallvec::SmallVec;

use super::code::Spread;
use hlo_codegen::runtime::raw::bytes_of;
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Emit, Error, Prim, Result, Value};
use hlo_opt::passes::facts::MAX_SHUFFLE_REGISTERS;

/// The memory type of each part of an element, and the number of parts (two for complex types).
pub(super) fn storage(ty: ElementType) -> (Prim, u32) {
    (scalar::storage(ty), 1 + u32::from(ty.is_complex()))
}

/// Loads one element; where the mask (an `i1`) is not set, the one at `origin` instead, which exists.
pub(super) fn load_one<'ctx>(
    e: &Emit<'_, 'ctx>,
    ty: ElementType,
    origin: Value<'ctx>,
    address: Value<'ctx>,
    mask: Option<Value<'ctx>>,
) -> Result<Val<'ctx>> {
    let address = match mask {
        Some(mask) => e.select(mask, address, origin)?,
        None => address,
    };
    let (prim, parts) = storage(ty);
    let mut all: SmallVec<[Value<'ctx>; 2]> = SmallVec::new();
    for p in 0..u64::from(parts) {
        all.push(e.load(prim, e.address_at(address, p * prim.bytes())?, prim.bytes() as u32)?);
    }
    Val::of_storage(e, ty, &all)
}

/// Stores one element.
pub(super) fn store_one<'ctx>(e: &Emit<'_, 'ctx>, value: &Val<'ctx>, address: Value<'ctx>) -> Result<()> {
    for (p, part) in value.to_storage(e)?.into_iter().enumerate() {
        let bytes = e.prim_of(part).bytes();
        e.store(part, e.address_at(address, p as u64 * bytes)?, bytes as u32)?;
    }
    Ok(())
}

fn every<'ctx>(e: &Emit<'_, 'ctx>, parts: u32) -> Vec<u32> {
    (0..e.lanes * parts).map(|l| l / parts).collect()
}

/// Loads an element per lane.
pub(super) fn load<'ctx>(
    e: &Emit<'_, 'ctx>,
    ty: ElementType,
    address: Value<'ctx>,
    lanes: Spread<'ctx>,
    mask: Option<Value<'ctx>>,
) -> Result<Val<'ctx>> {
    let bytes = ty.storage_bytes() as i64;
    let w = e.lanes;
    if matches!(lanes, Spread::Linear(stride) if stride == bytes) {
        let (prim, parts) = storage(ty);
        let wide = e.with_lanes(w * parts);
        let all = match mask {
            None => wide.load(prim, address, prim.bytes() as u32)?,
            Some(mask) => {
                let mask = if parts == 1 { mask } else { e.shuffle(mask, mask, &every(e, parts))? };
                wide.load_masked(address, prim.bytes() as u32, mask, zero(&wide, prim))?
            }
        };
        let raw = if parts == 1 { SmallVec::from_slice(&[all]) } else { both_parts(e, all)? };
        return Val::of_storage(e, ty, &raw);
    }
    let (prim, parts) = at_once(ty);
    let steps = |stride: i64| {
        let most = 8.min(i64::from(w) + 1);
        (parts == 1 && stride % bytes == 0).then_some(stride / bytes).filter(|n| n.abs() <= most)
    };
    let raw: SmallVec<[Value<'ctx>; 2]> = match lanes {
        // For larger strides the vector before the last would read past the last element.
        Spread::Linear(stride) if steps(stride).is_some_and(|n| n > 1) => {
            SmallVec::from_slice(&[load_strided(e, prim, address, (stride / bytes) as u32, mask)?])
        }
        // Negative stride: loaded forwards from the last lane's element, then reversed.
        Spread::Linear(stride) if steps(stride).is_some_and(|n| n < 0) => {
            let back: Vec<u32> = (0..w).rev().collect();
            let first = e.scalar().address(address, e.scalar().i64((i64::from(w) - 1) * stride))?;
            let mask = mask.map(|mask| e.shuffle(mask, mask, &back)).transpose()?;
            let all = load_strided(e, prim, first, (-stride / bytes) as u32, mask)?;
            SmallVec::from_slice(&[e.shuffle(all, all, &back)?])
        }
        Spread::Linear(_) | Spread::Steps(_) | Spread::Vector(_) => {
            let mut all = SmallVec::new();
            for p in 0..u64::from(parts) {
                let address = e.scalar().address_at(address, p * prim.bytes())?;
                all.push(load_gather(e, prim, address, lanes, mask)?);
            }
            all
        }
    };
    of_raw(e, ty, &raw)
}

/// Elements from their raw vectors, as [`at_once`] says.
fn of_raw<'ctx>(e: &Emit<'_, 'ctx>, ty: ElementType, raw: &[Value<'ctx>]) -> Result<Val<'ctx>> {
    if ty == ElementType::C64 {
        let all = e.bitcast_to(raw[0], e.with_lanes(2 * e.lanes).ty(storage(ty).0))?;
        return Val::of_storage(e, ty, &both_parts(e, all)?);
    }
    Val::of_storage(e, ty, raw)
}

/// Whether all lanes are within few enough registers to be loaded whole and shuffled.
pub(super) fn is_near(steps: &[i64], lanes: u32) -> bool {
    let (low, high) = (steps.iter().min(), steps.iter().max());
    low.zip(high).is_some_and(|(low, high)| high - low < MAX_SHUFFLE_REGISTERS * i64::from(lanes))
}

/// Loads an element per lane at constant byte offsets from the first lane's, for enabled lanes (one bit each;
/// the others are undefined): whole registers that span all of them, then shuffles. `None`: they are too far
/// apart.
pub(super) fn load_shuffled<'ctx>(
    e: &Emit<'_, 'ctx>,
    ty: ElementType,
    address: Value<'ctx>,
    steps: &[i64],
    enabled: u64,
) -> Result<Option<Val<'ctx>>> {
    let ((prim, parts), bytes, w) = (at_once(ty), ty.storage_bytes() as i64, e.lanes);
    let is_enabled = |l: usize| l < 64 && enabled >> l & 1 != 0;
    let there: Vec<i64> =
        (steps.iter().enumerate()).filter(|&(l, _)| is_enabled(l)).map(|(_, s)| s / bytes).collect();
    let (Some(&low), Some(&high)) = (there.iter().min(), there.iter().max()) else { return Ok(None) };
    if parts > 1 || w > 64 || !is_near(&there, w) {
        return Ok(None);
    }
    // The element offset of each lane from the lowest.
    let source = |l: usize| if is_enabled(l) { (steps[l] / bytes - low) as u32 } else { 0 };
    let at = |element: i64| e.scalar().address(address, e.scalar().i64(element * bytes));
    let span = (high - low + 1) as u32;
    if span == 1 {
        let one = e.scalar().load(prim, at(low)?, prim.bytes() as u32)?;
        return of_raw(e, ty, &[e.splat(one)?]).map(Some);
    }
    if span <= w {
        let align = prim.bytes() as u32;
        let all = if span.is_power_of_two() || !e.avx512 || w > 16 {
            e.with_lanes(span).load(prim, at(low)?, align)?
        } else {
            // A vector that is no full register would be loaded piece by piece.
            let some: Vec<u64> = (0..w).map(|l| u64::from(l < span)).collect();
            e.load_masked(at(low)?, align, e.int_lanes(Prim::I1, &some), e.poison(prim))?
        };
        let lanes: Vec<u32> = (0..w as usize).map(source).collect();
        return of_raw(e, ty, &[e.shuffle(all, all, &lanes)?]).map(Some);
    }
    // The last register ends with the last element, so nothing past it is read.
    let registers = span.div_ceil(w);
    let begin = |r: u32| (r * w).min(span - w);
    let register = |r: u32| e.load(prim, at(low + i64::from(begin(r)))?, prim.bytes() as u32);
    let mut sum = register(0)?;
    for r in 1..registers {
        let pick = |l: usize| match source(l) / w {
            of if of == r => w + source(l) - begin(r),
            // Until the second register is shuffled in, lanes keep the position that they have in the first.
            0 if r == 1 => source(l),
            _ => l as u32,
        };
        sum = e.shuffle(sum, register(r)?, &(0..w as usize).map(pick).collect::<Vec<_>>())?;
        sum = e.after_shuffles(sum, r)?;
    }
    of_raw(e, ty, &[sum]).map(Some)
}

/// As [`storage`], for elements that are not contiguous: both parts of a `c64` are loaded and stored as one
/// integer.
fn at_once(ty: ElementType) -> (Prim, u32) {
    if ty == ElementType::C64 { (Prim::I64, 1) } else { storage(ty) }
}

/// Splits interleaved complex elements into real and imaginary parts.
fn both_parts<'ctx>(e: &Emit<'_, 'ctx>, all: Value<'ctx>) -> Result<SmallVec<[Value<'ctx>; 2]>> {
    let part = |p: u32| e.shuffle(all, all, &(0..e.lanes).map(|l| 2 * l + p).collect::<Vec<_>>());
    Ok(SmallVec::from_slice(&[part(0)?, part(1)?]))
}

/// A strided load: whole vectors, then shuffles.
fn load_strided<'ctx>(
    e: &Emit<'_, 'ctx>,
    prim: Prim,
    address: Value<'ctx>,
    steps: u32,
    mask: Option<Value<'ctx>>,
) -> Result<Value<'ctx>> {
    let w = e.lanes;
    // The last vector begins early, so that nothing past the last element is read.
    let begin = |v: u32| if v + 1 < steps { v * w } else { (w - 1) * (steps - 1) };
    // Which vector a lane comes from, and its position there.
    let from = |l: u32| {
        let v = (l * steps / w).min(steps - 1);
        (v, l * steps - begin(v))
    };
    let mut sum = None;
    for v in 0..steps {
        let at = e.scalar().address_at(address, u64::from(begin(v)) * prim.bytes())?;
        let next = match mask {
            None => e.load(prim, at, prim.bytes() as u32)?,
            Some(mask) => {
                // Elements in between are not accessed.
                let source = |p: u32| {
                    if (begin(v) + p).is_multiple_of(steps) { (begin(v) + p) / steps } else { w }
                };
                let mask = e.shuffle(mask, e.bool(false), &(0..w).map(source).collect::<Vec<_>>())?;
                e.load_masked(at, prim.bytes() as u32, mask, zero(e, prim))?
            }
        };
        let Some(before) = sum else {
            sum = Some(next);
            continue;
        };
        let pick = |l: u32| match from(l) {
            (of, p) if of == v => w + p,
            (0, p) if v == 1 => p,
            (_, _) => l,
        };
        let both = e.shuffle(before, next, &(0..w).map(pick).collect::<Vec<_>>())?;
        sum = Some(e.after_shuffles(both, v)?);
    }
    Ok(sum.unwrap_or_else(|| zero(e, prim)))
}

/// Zero, of an integer or float type.
pub(super) fn zero<'ctx>(e: &Emit<'_, 'ctx>, prim: Prim) -> Value<'ctx> {
    if prim.is_float() { e.float(prim, 0.0) } else { e.int(prim, 0) }
}

/// Byte offsets of the lanes.
fn offsets<'ctx>(e: &Emit<'_, 'ctx>, lanes: Spread<'ctx>) -> Result<Value<'ctx>> {
    match lanes {
        Spread::Vector(v) => Ok(v),
        Spread::Steps(_) => Err(Error::Llvm("steps of lanes that nobody made a vector of".into())),
        Spread::Linear(stride) => {
            let all: Vec<u64> =
                (0..i64::from(e.lanes)).map(|l| l.wrapping_mul(stride).cast_unsigned()).collect();
            Ok(e.int_lanes(Prim::I64, &all))
        }
    }
}

fn load_gather<'ctx>(
    e: &Emit<'_, 'ctx>,
    prim: Prim,
    address: Value<'ctx>,
    lanes: Spread<'ctx>,
    mask: Option<Value<'ctx>>,
) -> Result<Value<'ctx>> {
    let offsets = offsets(e, lanes)?;
    if prim.bits() >= 32 {
        let addresses = e.address(address, offsets)?;
        let mask = mask.unwrap_or_else(|| e.bool(true));
        return e.gather(addresses, prim.bytes() as u32, mask, zero(e, prim));
    }
    // There is no gather instruction for bytes: one load per lane; lanes that are not enabled load a zero
    // from the stack.
    let one = e.scalar();
    let spare = match mask {
        Some(_) => {
            let spare = Value::from(e.stack(prim, 1)?);
            one.store(one.int(prim, 0), spare, prim.bytes() as u32)?;
            Some(spare)
        }
        None => None,
    };
    let mut all = e.poison(prim);
    for lane in 0..e.lanes {
        let offset = one.resize(e.extract(offsets, lane)?, Prim::I64, true)?;
        let mut at = one.address(address, offset)?;
        if let (Some(mask), Some(spare)) = (mask, spare) {
            at = one.select(e.extract(mask, lane)?, at, spare)?;
        }
        all = e.insert(all, one.load(prim, at, prim.bytes() as u32)?, lane)?;
    }
    Ok(all)
}

/// Stores an element per lane. Streaming (non-temporal) stores bypass the caches: whole vectors at aligned
/// addresses only.
pub(super) fn store<'ctx>(
    e: &Emit<'_, 'ctx>,
    value: &Val<'ctx>,
    address: Value<'ctx>,
    lanes: Spread<'ctx>,
    mask: Option<Value<'ctx>>,
    streaming: bool,
) -> Result<()> {
    let bytes = value.ty().storage_bytes() as i64;
    let raw = value.to_storage(e)?;
    let prim = e.prim_of(raw[0]);
    let w = e.lanes;
    let interleave = |re, im| {
        let both: Vec<u32> = (0..2 * w).map(|l| l / 2 + (l % 2) * w).collect();
        e.shuffle(re, im, &both)
    };
    if matches!(lanes, Spread::Linear(stride) if stride == bytes) {
        let parts = raw.len() as u32;
        let all = if let [re, im] = raw[..] { interleave(re, im)? } else { raw[0] };
        return match mask {
            None if streaming => e.store_streaming(all, address),
            None => e.store(all, address, prim.bytes() as u32).map(|_| ()),
            Some(mask) => {
                let mask = if parts == 1 { mask } else { e.shuffle(mask, mask, &every(e, parts))? };
                e.store_masked(all, address, prim.bytes() as u32, mask)
            }
        };
    }
    let offsets = offsets(e, lanes)?;
    let mask = mask.unwrap_or_else(|| e.bool(true));
    let (prim, parts) = at_once(value.ty());
    let raw = match raw[..] {
        [re, im] if parts == 1 => vec![e.bitcast_to(interleave(re, im)?, e.ty(prim))?],
        _ => raw.to_vec(),
    };
    for (p, part) in raw.into_iter().enumerate() {
        let address = e.scalar().address_at(address, p as u64 * prim.bytes())?;
        e.scatter(part, e.address(address, offsets)?, prim.bytes() as u32, mask)?;
    }
    Ok(())
}

/// Interleaves vectors: all first lanes, then all second ones and so on, in as many vectors.
pub(super) fn interleave<'ctx>(e: &Emit<'_, 'ctx>, columns: &[Value<'ctx>]) -> Result<Vec<Value<'ctx>>> {
    interleave_units(e, columns, 1)
}

/// The same for units of several lanes. With an even number of columns, pairs are interleaved first: an even
/// number `n` of columns takes `n` operations and those of both halves, an odd one `n (n - 1)`.
fn interleave_units<'ctx>(
    e: &Emit<'_, 'ctx>,
    columns: &[Value<'ctx>],
    unit: u32,
) -> Result<Vec<Value<'ctx>>> {
    let (w, n, rows) = (e.lanes, columns.len() as u32, e.lanes / unit);
    let mut all = Vec::new();
    if n % 2 == 0 && rows % 2 == 0 {
        for first in [0, rows / 2] {
            let mut pairs = Vec::new();
            for pair in columns.chunks_exact(2) {
                let lane = |l: u32| {
                    let row = first + l / unit / 2;
                    l / unit % 2 * w + row * unit + l % unit
                };
                let pair = e.shuffle(pair[0], pair[1], &(0..w).map(lane).collect::<Vec<_>>())?;
                pairs.push(e.fenced(pair)?);
            }
            all.extend(interleave_units(e, &pairs, 2 * unit)?);
        }
        return Ok(all);
    }
    for i in 0..n {
        let from = |l: u32| {
            let number = (i * w + l) / unit;
            (number % n, number / n * unit + l % unit)
        };
        all.push(picked(e, columns, from)?);
    }
    Ok(all)
}

/// A shuffle: for each lane, which vector it comes from, and its lane there.
fn picked<'ctx>(
    e: &Emit<'_, 'ctx>,
    vectors: &[Value<'ctx>],
    from: impl Fn(u32) -> (u32, u32),
) -> Result<Value<'ctx>> {
    let w = e.lanes;
    let mut sum = vectors[0];
    for (v, &vector) in (0..).zip(vectors).skip(1) {
        let lane = |l: u32| {
            let (of, lane) = from(l);
            match of.cmp(&v) {
                std::cmp::Ordering::Equal => w + lane,
                // After the first step lanes that are set already stay.
                std::cmp::Ordering::Less if v > 1 => l,
                std::cmp::Ordering::Less | std::cmp::Ordering::Greater => lane,
            }
        };
        sum = e.shuffle(sum, vector, &(0..w).map(lane).collect::<Vec<_>>())?;
        sum = e.after_shuffles(sum, v)?;
    }
    Ok(sum)
}

/// The inverse of [`interleave`]: from as many vectors of consecutive rows their columns.
pub(super) fn deinterleave<'ctx>(e: &Emit<'_, 'ctx>, rows: &[Value<'ctx>]) -> Result<Vec<Value<'ctx>>> {
    deinterleave_units(e, rows, 1)
}

/// The same for units of several lanes: with an even number of columns, pairs of them first.
fn deinterleave_units<'ctx>(
    e: &Emit<'_, 'ctx>,
    vectors: &[Value<'ctx>],
    unit: u32,
) -> Result<Vec<Value<'ctx>>> {
    let (w, n, rows) = (e.lanes, vectors.len() as u32, e.lanes / unit);
    if n % 2 == 0 && rows % 2 == 0 {
        let (low, high) = vectors.split_at(vectors.len() / 2);
        let low = deinterleave_units(e, low, 2 * unit)?;
        let high = deinterleave_units(e, high, 2 * unit)?;
        let mut columns = Vec::new();
        for (first, second) in low.into_iter().zip(high) {
            for side in [0, 1] {
                // Lanes past the first vector are the second one's.
                let lane = |l: u32| (2 * (l / unit) + side) * unit + l % unit;
                let both = e.shuffle(first, second, &(0..w).map(lane).collect::<Vec<_>>())?;
                columns.push(e.fenced(both)?);
            }
        }
        return Ok(columns);
    }
    let mut columns = Vec::new();
    for column in 0..n {
        let from = |l: u32| {
            let at = (l / unit * n + column) * unit + l % unit;
            (at / w, at % w)
        };
        columns.push(picked(e, vectors, from)?);
    }
    Ok(columns)
}

/// Loads all columns of as many contiguous rows as there are lanes; `None` for types of several parts.
pub(super) fn load_columns<'ctx>(
    e: &Emit<'_, 'ctx>,
    ty: ElementType,
    address: Value<'ctx>,
    columns: u32,
) -> Result<Option<Vec<Val<'ctx>>>> {
    let (prim, parts) = at_once(ty);
    if parts > 1 {
        return Ok(None);
    }
    let register = |r: u32| {
        let at = e.scalar().address_at(address, u64::from(r * e.lanes) * prim.bytes())?;
        e.load(prim, at, prim.bytes() as u32)
    };
    let rows = (0..columns).map(register).collect::<Result<Vec<_>>>()?;
    let all = deinterleave(e, &rows)?;
    all.into_iter().map(|column| of_raw(e, ty, &[column])).collect::<Result<Vec<_>>>().map(Some)
}

/// The address of a read-only array in the object code.
pub(super) fn global<'ctx>(e: &Emit<'_, 'ctx>, buffer: &Buffer) -> Result<Value<'ctx>> {
    let data = e.context.const_string(bytes_of(buffer), false);
    let global = e.module.add_global(data.get_type(), None, "constant");
    global.set_initializer(&data);
    global.set_constant(true);
    global.set_linkage(Linkage::Private);
    global.set_alignment(64);
    Ok(global.as_pointer_value().into())
}
