//! Top-k: the largest or smallest elements of lines and their positions, in order.
//!
//! Chunks of a line, some multiple of `k` long, are sorted in shared memory, and only the first `k` of each
//! are kept, until a block can sort what is left: candidates stay in the order of their positions among
//! equals. Where `k` is more than half of what a block sorts the lines are sorted whole. By TOTALORDER, or by
//! a comparator of values, or of values and positions.

use hlo::attrs::AttrKey;
use hlo::{ElementType, InstrId, Module, Opcode};
use hlo_codegen::Unsupported;
use hlo_llvm::Result;

use super::Unit;
use super::applied::Applied;
use super::sort::{Area, Order, Sorter, Storage};
use crate::kernel::Kernel;

/// The smallest length of a chunk.
const MIN_CHUNK: i64 = 256;
/// At most this share of a chunk is kept.
const KEPT: i64 = 8;
/// Lines of this many chunks are sorted as a whole.
const FEW_CHUNKS: i64 = 4;

/// Emits a `topk`, or a custom call that is one.
pub(super) fn emit(unit: &Unit<'_, '_>, module: &Module, id: InstrId, symbol: &str) -> Result<Kernel> {
    let instr = module.instr(id);
    let refuse = |why: &str| Unsupported::new(module, id, why);
    let x = instr.operands().first().and_then(|&o| module.instr(o).shape.as_array());
    let x = x.ok_or_else(|| refuse("top-k of what is no array"))?;
    let values = instr.shape.as_tuple().and_then(|t| t.first()?.as_array());
    let values = values.ok_or_else(|| refuse("top-k without a pair of results"))?;
    let (Some(&len), Some(&k)) = (x.dims.last(), values.dims.last()) else {
        return Err(refuse("top-k of a scalar").into());
    };
    let indices = instr.shape.as_tuple().and_then(|t| t.get(1)?.element_type());
    if x.element_type.is_complex() || i32::try_from(len).is_err() || indices != Some(ElementType::S32) {
        return Err(refuse("top-k of complex numbers, or of 2^31 elements or more").into());
    }
    let ty = x.element_type;
    let comparator = instr.attrs.called_computations().first().copied();
    let order = match comparator.filter(|_| instr.opcode == Opcode::CustomCall) {
        None => Order::First { descending: instr.attrs.bool_or(AttrKey::Largest, true) },
        Some(comparator) => {
            let types = [ty, ty, ElementType::S32, ElementType::S32];
            let count = module.computation(comparator).parameters().len();
            let types = &types[..count.min(types.len())];
            Order::Comparator(Box::new(Applied::new(module, id, comparator, types)?))
        }
    };
    let elements: i64 = x.dims.iter().product();
    let mut kernel = Kernel::default();
    if elements == 0 || k == 0 {
        return Ok(kernel);
    }
    let mut sorter = Sorter {
        unit,
        module,
        id,
        symbol,
        types: &[ty, ElementType::S32],
        order: &order,
        digits: None,
        lines: elements / len,
        arrays: 3,
        scratch: 3,
    };
    let array = |argument: u32| Storage::Array { argument, offset: 0 };
    let mut from = Area { storage: vec![array(0), Storage::Position], len, stride: 1 };
    let to = Area { storage: vec![array(1), array(2)], len: k, stride: 1 };
    let most = i64::from(sorter.max_slots());
    let chunk = u64::try_from(KEPT * k).map_or(most, |n| n.next_power_of_two().cast_signed());
    let chunk = chunk.clamp(MIN_CHUNK.min(most), most);
    let at_once = most.min(FEW_CHUNKS * chunk);
    if len > at_once {
        sorter.arrays += 1;
    }
    if 2 * k > most {
        sorter.sort(&mut kernel, &from, &to, 0)?;
        return Ok(kernel);
    }
    // The candidates of a round are stored after those of the previous one.
    let (mut offset, mut round) = (0, 0);
    while from.len > at_once {
        let kept = from.len / chunk * k + (from.len % chunk).min(k);
        let candidates = sorter.area(kept, offset);
        offset += sorter.area_bytes(kept);
        let slots = u32::try_from(chunk).unwrap_or(u32::MAX);
        sorter.sort_chunks(&mut kernel, &format!("_round{round}"), &from, &candidates, slots, k)?;
        (from, round) = (candidates, round + 1);
    }
    kernel.scratch_bytes = offset;
    sorter.sort(&mut kernel, &from, &to, offset)?;
    Ok(kernel)
}
