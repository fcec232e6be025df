//! Small-K contractions, unrolled into the loops that read them.
//!
//! GEMM kernels pack their operands first, which pays if each element is used many times. A `dot` of small K
//! is a sum of a few terms in the loop that reads it: rotated points, mixed channels, distances, batches of
//! small matrices. What decides is how neighbouring lanes of the result find their operands (contiguous,
//! broadcast, or for short dimensions shuffled from registers); the pass transposes a small reused right
//! operand so that its lanes are contiguous.

use hlo::attrs::AttrKey;
use hlo::{InstrId, Module, Opcode};
use hlo_library_base::sizes;

use super::kinds::dims;
use crate::cost_model::CostModel;
use crate::passes::PassCx;
use crate::passes::edit::{Edit, each_outside_folds, ints};
use crate::passes::facts::{MAX_SHUFFLE_REGISTERS, MAX_UNROLLED_COLUMNS, is_tiny_dot, small_k};

/// The attributes of batch and contracting dimensions, of the left and of the right operand.
pub(super) const SIDES: [[AttrKey; 2]; 2] = [
    [AttrKey::LhsBatchDims, AttrKey::LhsContractingDims],
    [AttrKey::RhsBatchDims, AttrKey::RhsContractingDims],
];

/// The minimum number of contiguous elements that is worth vectorizing over.
const MIN_LANES: i64 = CostModel::CPU.min_lanes;
/// Lanes at most this far apart, in elements, are loaded as whole vectors and shuffled.
const MAX_SHUFFLE_STRIDE: i64 = CostModel::CPU.max_shuffle_stride_elements;
/// Lanes at most this far apart share cache lines: worth loading one by one if hardly reused.
const MAX_LINE_STRIDE: i64 = CostModel::CPU.max_line_stride_elements;
/// An operand of up to this many bytes stays in cache while it is reused.
const REUSE_CACHE_BYTES: i64 = CostModel::CPU.reuse_cache_bytes;
/// An operand used at most this often per element is streamed, not reused.
const MAX_STREAMING_USES: i64 = CostModel::CPU.max_streaming_uses;

/// The pass: transposes right operands so that neighbouring lanes are contiguous. (Left operands are left
/// alone: lanes over their rows occur with few columns only, so they are used a few times.)
pub(crate) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, transposed)
}

/// The same product with the right operand's vectorized dimension moved innermost.
fn transposed(e: &mut Edit<'_>) -> Option<InstrId> {
    const RIGHT: usize = 1;
    let id = e.id();
    let terms = small_k(e.module, id).filter(|_| !is_tiny_dot(e.module, id))?;
    let result = dims(e.module, id);
    let [None, Some(along)] = origin(e.module, id, vector_dim(result)?) else { return None };
    let mut operands: [InstrId; 2] = e.operands()?;
    let own = dims(e.module, operands[RIGHT]).to_vec();
    let lists = SIDES[RIGHT].map(|key| e.at().attrs.ints_or_empty(key).to_vec());
    let bound = |d: usize| lists.iter().any(|list| list.contains(&(d as i64)));
    let neighbours = product(&own[along + 1..]) == 1;
    let last = (along + 1..own.len()).all(bound);
    let (elements, bytes) = (product(&own), e.array(id)?.element_type.storage_bytes() as i64);
    let uses = product(result).saturating_mul(terms) / elements.max(1);
    if neighbours
        || !last
        || uses <= MAX_STREAMING_USES
        || elements.saturating_mul(bytes) > sizes::from(REUSE_CACHE_BYTES)
    {
        return None;
    }
    let order: Vec<i64> = (0..own.len()).filter(|&d| d != along).chain([along]).map(|d| d as i64).collect();
    let position = |d: &i64| order.iter().position(|x| x == d).map(|p| p as i64);
    let mut attrs = e.at().attrs.clone();
    for (key, list) in SIDES[RIGHT].into_iter().zip(lists).filter(|(_, list)| !list.is_empty()) {
        attrs.set(key, ints(&list.iter().map(position).collect::<Option<Vec<i64>>>()?));
    }
    operands[RIGHT] = e.transpose(operands[RIGHT], &order)?;
    let shape = e.at().shape.clone();
    e.shaped(Opcode::Dot, shape, &operands, attrs)
}

/// Whether a `dot` is best unrolled into the loops that read it.
pub(super) fn is_fused_in_loops(module: &Module, id: InstrId) -> bool {
    let Some(terms) = small_k(module, id) else { return false };
    is_tiny_dot(module, id)
        || vector_dim(dims(module, id)).is_some_and(|d| has_fast_lanes(module, id, terms, d))
        || has_shuffled_lanes(module, id)
}

/// Whether lanes over short inner dimensions of the result find their operands within a few registers. (With
/// more columns, GEMM kernels are as fast or faster.)
fn has_shuffled_lanes(module: &Module, id: InstrId) -> bool {
    let result = dims(module, id);
    if result.iter().rev().find(|&&n| n != 1).is_none_or(|&n| n > MAX_UNROLLED_COLUMNS) {
        return false;
    }
    let mut lanes: Vec<usize> = Vec::new();
    let mut size = 1i64;
    for (d, &n) in result.iter().enumerate().rev().filter(|(_, n)| **n != 1) {
        if !size.unsigned_abs().is_power_of_two() {
            return false;
        }
        lanes.push(d);
        size *= n;
        if size >= MIN_LANES {
            break;
        }
    }
    if size < MIN_LANES {
        return false;
    }
    // The largest distance between lanes in an operand.
    let operands = module.instr(id).operands();
    (0..2).all(|side| {
        let own = dims(module, operands[side]);
        let (mut span, mut inside) = (0, 1);
        for &d in &lanes {
            let steps = if inside * result[d] > MIN_LANES { MIN_LANES / inside } else { result[d] };
            if let Some(along) = origin(module, id, d)[side] {
                span += (steps - 1) * product(&own[along + 1..]);
            }
            inside *= result[d];
        }
        span < MAX_SHUFFLE_REGISTERS * MIN_LANES
    })
}

/// The dimension of a result that is vectorized: the innermost long one, outside of at most a few columns.
fn vector_dim(result: &[i64]) -> Option<usize> {
    let mut columns = 1;
    for (d, &n) in result.iter().enumerate().rev() {
        if n >= MIN_LANES {
            return Some(d);
        }
        columns *= n;
        if !(1..=MAX_UNROLLED_COLUMNS).contains(&columns) {
            return None;
        }
    }
    None
}

fn product(sizes: &[i64]) -> i64 {
    sizes.iter().fold(1, |n, &size| n.saturating_mul(size))
}

/// Whether lanes over a dimension of the result are loaded fast from both operands.
fn has_fast_lanes(module: &Module, id: InstrId, terms: i64, lanes: usize) -> bool {
    let products = product(dims(module, id)).saturating_mul(terms);
    let bytes = module.instr(id).shape.element_type().map_or(0, |ty| ty.storage_bytes() as i64);
    let fast = |operand: &[i64], along: usize| {
        let elements = product(operand);
        let uses = products / elements.max(1);
        let kept =
            uses <= MAX_STREAMING_USES || elements.saturating_mul(bytes) <= sizes::from(REUSE_CACHE_BYTES);
        match product(&operand[along + 1..]) {
            1 => kept,
            apart if apart <= MAX_SHUFFLE_STRIDE => kept && terms <= MAX_SHUFFLE_STRIDE,
            apart => apart <= MAX_LINE_STRIDE && uses * 2 <= MAX_STREAMING_USES,
        }
    };
    // An operand without that dimension is the same on all lanes (broadcast).
    let operands = module.instr(id).operands().iter().zip(origin(module, id, lanes));
    operands.into_iter().all(|(&o, along)| along.is_none_or(|d| fast(dims(module, o), d)))
}

/// The dimension of the left and of the right operand that a dimension of a `dot` comes from: of both if it
/// is a batch dimension.
fn origin(module: &Module, id: InstrId, result: usize) -> [Option<usize>; 2] {
    let instr = module.instr(id);
    let sides = SIDES.map(|keys| keys.map(|key| instr.attrs.ints_or_empty(key)));
    let batch = sides[0][0].len();
    if result < batch {
        return sides.map(|[batch, _]| batch.get(result).and_then(|&d| usize::try_from(d).ok()));
    }
    let free = |side: usize| {
        let [batch, contracted] = sides[side];
        let rank = dims(module, instr.operands()[side]).len();
        (0..rank).filter(move |&d| !batch.contains(&(d as i64)) && !contracted.contains(&(d as i64)))
    };
    let at = result - batch;
    match free(0).nth(at) {
        Some(d) => [Some(d), None],
        None => [None, free(1).nth(at - free(0).count())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_fused_in_loops_of(lhs: &str, rhs: &str, result: &str, attrs: &str) -> bool {
        let text = format!(
            "HloModule m\nENTRY e {{ a = {lhs} parameter(0)\n b = {rhs} parameter(1)\n ROOT d = {result} dot(a, b), {attrs} }}"
        );
        let parsed = hlo_parser::parse_module(&text, &hlo_parser::ParseOptions::default());
        let module = parsed.module.expect("the texts here are modules");
        is_fused_in_loops(&module, module.root(module.entry()))
    }

    #[test]
    fn lanes_find_their_operands() {
        let plain = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
        // Outer products; points and colours.
        assert!(is_fused_in_loops_of("f32[2048,4]", "f32[4,2048]", "f32[2048,2048]", plain));
        assert!(is_fused_in_loops_of("f32[1000000,3]", "f32[3,3]", "f32[1000000,3]", plain));
        assert!(is_fused_in_loops_of("f32[1000000,3]", "f32[3]", "f32[1000000]", plain));
        assert!(is_fused_in_loops_of("f32[4096,8]", "f32[8,64]", "f32[4096,64]", plain));
        assert!(!is_fused_in_loops_of("f32[4096,9]", "f32[9,64]", "f32[4096,64]", plain));
        assert!(!is_fused_in_loops_of("f32[500000,3]", "f32[3,5]", "f32[500000,5]", plain));
        assert!(is_fused_in_loops_of("bf16[4096,4]", "bf16[4,64]", "bf16[4096,64]", plain));
        assert!(is_fused_in_loops_of("bf16[4096,4]", "bf16[4,64]", "f32[4096,64]", plain));
        assert!(!is_fused_in_loops_of("f8e5m2[4096,4]", "f8e5m2[4,64]", "f8e5m2[4096,64]", plain));
        assert!(is_fused_in_loops_of("c64[4096,4]", "c64[4,64]", "c64[4096,64]", plain));
        // What is read repeatedly from memory.
        assert!(is_fused_in_loops_of("f32[4,4]", "f32[4,1000000]", "f32[4,1000000]", plain));
        assert!(!is_fused_in_loops_of("f32[8,8]", "f32[8,1000000]", "f32[8,1000000]", plain));
        // Rows of the right operand.
        let right = "lhs_contracting_dims={1}, rhs_contracting_dims={1}";
        assert!(is_fused_in_loops_of("f32[2048,3]", "f32[2048,3]", "f32[2048,2048]", right));
        assert!(!is_fused_in_loops_of("f32[2048,6]", "f32[2048,6]", "f32[2048,2048]", right));
        // Small matrices.
        let batch =
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}";
        assert!(is_fused_in_loops_of("f32[100000,2,2]", "f32[100000,2,2]", "f32[100000,2,2]", batch));
        assert!(is_fused_in_loops_of("f32[100000,4,4]", "f32[100000,4,4]", "f32[100000,4,4]", batch));
        assert!(!is_fused_in_loops_of("f32[100000,8,8]", "f32[100000,8,8]", "f32[100000,8,8]", batch));
        assert!(is_fused_in_loops_of("f32[100000,3,3]", "f32[100000,3]", "f32[100000,3]", batch));
        assert!(is_fused_in_loops_of("f32[100000,4,4]", "f32[100000,4]", "f32[100000,4]", batch));
        assert!(!is_fused_in_loops_of("f32[100000,6,6]", "f32[100000,6]", "f32[100000,6]", batch));
        assert!(is_fused_in_loops_of("f32[100000,8]", "f32[8,4]", "f32[100000,4]", plain));
        // A single small matrix.
        assert!(is_fused_in_loops_of("f32[1,2,2]", "f32[1,2,2]", "f32[1,2,2]", batch));
    }
}
