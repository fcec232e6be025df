//! Contractions of few products for each element, as loops.
//!
//! Kernels for products of matrices bring their operands into an order of their own first, which pays if each element is used many times. A `dot` of a few products is a
//! sum of a few terms in the loop that reads it: rotated points, mixed channels, distances, batches of small matrices. What decides is how neighbouring
//! lanes of the result find their operands (of short dimensions, also by picking them from registers); a small one that is used again and again is transposed
//! for that (the pass).

use hlo::attrs::AttrKey;
use hlo::{InstrId, Module, Opcode};

use super::kinds::dims;
use crate::cost_model::CostModel;
use crate::passes::PassCx;
use crate::passes::edit::{Edit, each_outside_folds, ints};
use crate::passes::facts::{MOST_COLUMNS, NEAR_REGISTERS, few_products, is_few_products};
use hlo_library::sizes;

/// The dimensions of the left and of the right operand that are batches, and that are gone.
pub(super) const SIDES: [[AttrKey; 2]; 2] = [
    [AttrKey::LhsBatchDims, AttrKey::LhsContractingDims],
    [AttrKey::RhsBatchDims, AttrKey::RhsContractingDims],
];

/// The least neighbours that are worth lanes.
const LANES: i64 = CostModel::CPU.min_lanes;
/// Lanes so far apart, in elements, are loaded together and put in order.
const NEAR: i64 = CostModel::CPU.near_stride;
/// And so far apart they share cache lines: to be loaded one by one, if hardly more than once.
const FAR: i64 = CostModel::CPU.far_stride;
/// So many bytes stay in a near cache while they are read again and again.
const KEPT: i64 = CostModel::CPU.kept_bytes;
/// An operand that is in so few products for each of its elements is not read again and again.
const FEW_USES: i64 = CostModel::CPU.few_uses;

/// The pass: transposes right operands so that neighbouring lanes are neighbours there. (Where lanes go over rows of the left operand, it is used for a few columns only.)
pub(crate) fn run(module: &mut Module, cx: &mut PassCx<'_>) -> u64 {
    each_outside_folds(module, cx.fuel, transposed)
}

/// The same product of a right operand whose last free dimension comes last.
fn transposed(e: &mut Edit<'_>) -> Option<InstrId> {
    const RIGHT: usize = 1;
    let id = e.id();
    let terms = few_products(e.module, id).filter(|_| !is_few_products(e.module, id))?;
    let result = dims(e.module, id);
    let [None, Some(along)] = origin(e.module, id, lanes(result)?) else { return None };
    let mut operands: [InstrId; 2] = e.operands()?;
    let own = dims(e.module, operands[RIGHT]).to_vec();
    let lists = SIDES[RIGHT].map(|key| e.at().attrs.ints_or_empty(key).to_vec());
    let bound = |d: usize| lists.iter().any(|list| list.contains(&(d as i64)));
    let neighbours = product(&own[along + 1..]) == 1;
    let last = (along + 1..own.len()).all(bound);
    let (elements, bytes) = (product(&own), e.array(id)?.element_type.storage_bytes() as i64);
    let uses = product(result).saturating_mul(terms) / elements.max(1);
    if neighbours || !last || uses <= FEW_USES || elements.saturating_mul(bytes) > sizes::from(KEPT) {
        return None;
    }
    let order: Vec<i64> = (0..own.len()).filter(|&d| d != along).chain([along]).map(|d| d as i64).collect();
    let place = |d: &i64| order.iter().position(|x| x == d).map(|p| p as i64);
    let mut attrs = e.at().attrs.clone();
    for (key, list) in SIDES[RIGHT].into_iter().zip(lists).filter(|(_, list)| !list.is_empty()) {
        attrs.set(key, ints(&list.iter().map(place).collect::<Option<Vec<i64>>>()?));
    }
    operands[RIGHT] = e.transpose(operands[RIGHT], &order)?;
    let shape = e.at().shape.clone();
    e.shaped(Opcode::Dot, shape, &operands, attrs)
}

/// Whether a `dot` is best computed in the loops that read it.
pub(super) fn is_loop(module: &Module, id: InstrId) -> bool {
    let Some(terms) = few_products(module, id) else { return false };
    is_few_products(module, id)
        || lanes(dims(module, id)).is_some_and(|d| suits(module, id, terms, d))
        || is_near(module, id)
}

/// Whether lanes over short inner dimensions of the result find what they need of the operands near each other. (With more columns, kernels for products are as
/// fast or faster.)
fn is_near(module: &Module, id: InstrId) -> bool {
    let result = dims(module, id);
    if result.iter().rev().find(|&&n| n != 1).is_none_or(|&n| n > MOST_COLUMNS) {
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
        if size >= LANES {
            break;
        }
    }
    if size < LANES {
        return false;
    }
    // How far apart lanes are in an operand, at most.
    let operands = module.instr(id).operands();
    (0..2).all(|side| {
        let own = dims(module, operands[side]);
        let (mut span, mut inside) = (0, 1);
        for &d in &lanes {
            let steps = if inside * result[d] > LANES { LANES / inside } else { result[d] };
            if let Some(along) = origin(module, id, d)[side] {
                span += (steps - 1) * product(&own[along + 1..]);
            }
            inside *= result[d];
        }
        span < NEAR_REGISTERS * LANES
    })
}

/// The dimension of a result that lanes go over: the innermost that is long, outside of at most a few columns.
fn lanes(result: &[i64]) -> Option<usize> {
    let mut columns = 1;
    for (d, &n) in result.iter().enumerate().rev() {
        if n >= LANES {
            return Some(d);
        }
        columns *= n;
        if !(1..=MOST_COLUMNS).contains(&columns) {
            return None;
        }
    }
    None
}

fn product(sizes: &[i64]) -> i64 {
    sizes.iter().fold(1, |n, &size| n.saturating_mul(size))
}

/// Whether lanes over a dimension of the result are loaded fast from both operands.
fn suits(module: &Module, id: InstrId, terms: i64, lanes: usize) -> bool {
    let products = product(dims(module, id)).saturating_mul(terms);
    let bytes = module.instr(id).shape.element_type().map_or(0, |ty| ty.storage_bytes() as i64);
    let fast = |operand: &[i64], along: usize| {
        let elements = product(operand);
        let uses = products / elements.max(1);
        let kept = uses <= FEW_USES || elements.saturating_mul(bytes) <= sizes::from(KEPT);
        match product(&operand[along + 1..]) {
            1 => kept,
            apart if apart <= NEAR => kept && terms <= NEAR,
            apart => apart <= FAR && uses * 2 <= FEW_USES,
        }
    };
    // An operand without that dimension is the same in all lanes.
    let operands = module.instr(id).operands().iter().zip(origin(module, id, lanes));
    operands.into_iter().all(|(&o, along)| along.is_none_or(|d| fast(dims(module, o), d)))
}

/// Which dimensions of the left and of the right operand a dimension of a `dot` is: of both if it is one of the batch.
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

    fn is_loop_of(lhs: &str, rhs: &str, result: &str, attrs: &str) -> bool {
        let text = format!(
            "HloModule m\nENTRY e {{ a = {lhs} parameter(0)\n b = {rhs} parameter(1)\n ROOT d = {result} dot(a, b), {attrs} }}"
        );
        let parsed = hlo_parser::parse_module(&text, &hlo_parser::ParseOptions::default());
        let module = parsed.module.expect("the texts here are modules");
        is_loop(&module, module.root(module.entry()))
    }

    #[test]
    fn lanes_find_their_operands() {
        let plain = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
        // Rows and columns, points and colours.
        assert!(is_loop_of("f32[2048,4]", "f32[4,2048]", "f32[2048,2048]", plain));
        assert!(is_loop_of("f32[1000000,3]", "f32[3,3]", "f32[1000000,3]", plain));
        assert!(is_loop_of("f32[1000000,3]", "f32[3]", "f32[1000000]", plain));
        assert!(is_loop_of("f32[4096,8]", "f32[8,64]", "f32[4096,64]", plain));
        assert!(!is_loop_of("f32[4096,9]", "f32[9,64]", "f32[4096,64]", plain));
        assert!(!is_loop_of("f32[500000,3]", "f32[3,5]", "f32[500000,5]", plain));
        assert!(is_loop_of("bf16[4096,4]", "bf16[4,64]", "bf16[4096,64]", plain));
        assert!(is_loop_of("bf16[4096,4]", "bf16[4,64]", "f32[4096,64]", plain));
        assert!(!is_loop_of("f8e5m2[4096,4]", "f8e5m2[4,64]", "f8e5m2[4096,64]", plain));
        assert!(is_loop_of("c64[4096,4]", "c64[4,64]", "c64[4096,64]", plain));
        // What is read again and again from memory.
        assert!(is_loop_of("f32[4,4]", "f32[4,1000000]", "f32[4,1000000]", plain));
        assert!(!is_loop_of("f32[8,8]", "f32[8,1000000]", "f32[8,1000000]", plain));
        // Rows of the right operand.
        let right = "lhs_contracting_dims={1}, rhs_contracting_dims={1}";
        assert!(is_loop_of("f32[2048,3]", "f32[2048,3]", "f32[2048,2048]", right));
        assert!(!is_loop_of("f32[2048,6]", "f32[2048,6]", "f32[2048,2048]", right));
        // Small matrices.
        let batch =
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}";
        assert!(is_loop_of("f32[100000,2,2]", "f32[100000,2,2]", "f32[100000,2,2]", batch));
        assert!(is_loop_of("f32[100000,4,4]", "f32[100000,4,4]", "f32[100000,4,4]", batch));
        assert!(!is_loop_of("f32[100000,8,8]", "f32[100000,8,8]", "f32[100000,8,8]", batch));
        assert!(is_loop_of("f32[100000,3,3]", "f32[100000,3]", "f32[100000,3]", batch));
        assert!(is_loop_of("f32[100000,4,4]", "f32[100000,4]", "f32[100000,4]", batch));
        assert!(!is_loop_of("f32[100000,6,6]", "f32[100000,6]", "f32[100000,6]", batch));
        assert!(is_loop_of("f32[100000,8]", "f32[8,4]", "f32[100000,4]", plain));
        // One by itself.
        assert!(is_loop_of("f32[1,2,2]", "f32[1,2,2]", "f32[1,2,2]", batch));
    }
}
