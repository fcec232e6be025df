//! Collectives on a single device: copies of operands, and zeros.
//!
//! A program of one replica and one partition may still have collectives, whose only participant is the
//! device itself: a reduction of one contribution is that contribution, bit for bit. Annotations of placement
//! and sharding give their operands. **Invariant:** what names other devices is not lowered here, so that it
//! is refused as the interpreter refuses it.

use hlo::attrs::AttrKey;
use hlo::{ArrayShape, InstrId, Instruction, Module, Opcode};
use hlo_interp::custom_call::{Call, Meaning};
use hlo_opt::expr::array_leaves;

use crate::kernel::Stage;

/// Whether all groups of an instruction consist of device 0 alone.
fn is_alone(instr: &Instruction) -> bool {
    let groups = instr.attrs.replica_groups().map_or(Some(Vec::new()), |g| g.expand());
    groups.is_some_and(|groups| groups.is_empty() || matches!(&groups[..], [group] if group[..] == [0]))
}

/// Whether an array can be copied to another one.
fn is_same(a: &ArrayShape, b: &ArrayShape) -> bool {
    a.element_type == b.element_type && a.dims == b.dims
}

/// How an instruction is executed on a single device; `None`: it is no collective, or others take part in it.
pub(crate) fn stages(module: &Module, id: InstrId) -> Option<Vec<Stage>> {
    let instr = module.instr(id);
    let of = |o: &InstrId| array_leaves(&module.instr(*o).shape).collect::<Vec<_>>();
    let operands: Vec<&ArrayShape> = instr.operands().iter().flat_map(of).collect();
    let results: Vec<&ArrayShape> = array_leaves(&instr.shape).collect();
    // Operand `from` to result `to`.
    let copy = |from: usize, to: usize| {
        let fits = is_same(operands.get(from)?, results.get(to)?);
        fits.then_some(Stage::Copy { from: from as u32, to: (operands.len() + to) as u32 })
    };
    let zeros = |to: usize| Stage::Fill { array: (operands.len() + to) as u32, byte: 0 };
    let all = |count: usize| (0..count).map(|i| copy(i, i)).collect::<Option<Vec<_>>>();
    let one = module.replica_count() == 1 && module.num_partitions() == 1;
    let has_root = instr.attrs.bool(AttrKey::HasDynamicRoot);
    // A copy where device 0 sends to itself.
    let pairs = || instr.attrs.int_lists(AttrKey::SourceTargetPairs).unwrap_or(&[]);
    let within = || pairs().iter().flat_map(|p| p.iter()).all(|&device| device == 0);
    let permuted = |i: usize, to: usize| if pairs().is_empty() { Some(zeros(to)) } else { copy(i, to) };
    match instr.opcode {
        Opcode::CustomCall => {
            let call = Call { instruction: instr, module };
            let same = matches!(call.meaning(), Meaning::Same) && operands.len() == results.len();
            if same { all(results.len()) } else { None }
        }
        _ if !one => None,
        Opcode::PartitionId | Opcode::ReplicaId => Some(vec![zeros(0)]),
        Opcode::AllReduce
        | Opcode::AllReduceStart
        | Opcode::AllGather
        | Opcode::AllToAll
        | Opcode::ReduceScatter
        | Opcode::CollectiveBroadcast
        | Opcode::CollectiveReduce
            if is_alone(instr) && !has_root && operands.len() == results.len() =>
        {
            all(results.len())
        }
        Opcode::AllReduceDone => all(results.len()),
        // (operands, results)
        Opcode::AllGatherStart if is_alone(instr) && results.len() == 2 * operands.len() => {
            let n = operands.len();
            (0..2 * n).map(|i| copy(i % n, i)).collect()
        }
        Opcode::AllGatherDone if operands.len() == 2 * results.len() => {
            (0..results.len()).map(|i| copy(results.len() + i, i)).collect()
        }
        Opcode::CollectivePermute if within() && operands.len() == results.len() => {
            (0..results.len()).map(|i| permuted(i, i)).collect()
        }
        // (operands, results, contexts)
        Opcode::CollectivePermuteStart if within() && results.len() >= 2 * operands.len() => {
            let n = operands.len();
            let stage = |to: usize| match to / n.max(1) {
                0 => copy(to, to),
                1 => permuted(to - n, to),
                _ => Some(zeros(to)),
            };
            (0..results.len()).map(stage).collect()
        }
        Opcode::CollectivePermuteDone if operands.len() >= 2 * results.len() => {
            (0..results.len()).map(|i| copy(results.len() + i, i)).collect()
        }
        _others_need_no_devices => None,
    }
}
