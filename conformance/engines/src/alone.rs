//! Programs of one instruction, or of several that have nothing to do with each other.
//!
//! **Invariants:** such a program verifies if the one it is taken from does; its parameters are the operands,
//! each once, so that an operand that is used twice still is one value; what it calls goes along whole.

use std::fmt::Write as _;

use hlo::{AttrKey, Attrs, ComputationId, InstrId, Instruction, Module, NewInstruction, Opcode, Shape, Span};
use rustc_hash::{FxHashMap, FxHashSet};

/// Why an instruction is not run alone; `None` if it is.
pub fn why_not(module: &Module, id: InstrId) -> Option<&'static str> {
    use Opcode as O;
    let instr = module.instr(id);
    let by_opcode = match instr.opcode {
        O::Parameter => Some("a parameter"),
        O::Constant => Some("a constant"),
        O::Tuple | O::GetTupleElement => Some("tuples only"),
        O::OptBarrier | O::Domain | O::AfterAll | O::AddDependency => Some("order only"),
        O::Call | O::While | O::Conditional => Some("its instructions are run one by one"),
        O::AsyncStart
        | O::AsyncUpdate
        | O::AsyncDone
        | O::CopyStart
        | O::CopyDone
        | O::AllGatherStart
        | O::AllGatherDone
        | O::AllReduceStart
        | O::AllReduceDone
        | O::CollectivePermuteStart
        | O::CollectivePermuteDone => Some("half of an asynchronous pair"),
        O::Infeed | O::Outfeed | O::Recv | O::RecvDone | O::Send | O::SendDone => Some("talks to others"),
        O::Rng | O::RngGetAndUpdateState => Some("depends on what ran before"),
        O::Abs
        | O::Acos
        | O::Acosh
        | O::Asin
        | O::Asinh
        | O::Atanh
        | O::Cbrt
        | O::Ceil
        | O::Convert
        | O::Cosine
        | O::Cosh
        | O::CountLeadingZeros
        | O::Erf
        | O::Exponential
        | O::ExponentialMinusOne
        | O::Floor
        | O::Imag
        | O::IsFinite
        | O::Log
        | O::LogPlusOne
        | O::Logistic
        | O::Negate
        | O::Not
        | O::Popcnt
        | O::Real
        | O::ReducePrecision
        | O::RoundNearestAfz
        | O::RoundNearestEven
        | O::Rsqrt
        | O::Sign
        | O::Sine
        | O::Sinh
        | O::Sqrt
        | O::Tan
        | O::Tanh
        | O::Add
        | O::And
        | O::Atan2
        | O::Compare
        | O::Complex
        | O::Divide
        | O::Maximum
        | O::Minimum
        | O::Mulhi
        | O::Multiply
        | O::Or
        | O::Power
        | O::Remainder
        | O::ShiftLeft
        | O::ShiftRightArithmetic
        | O::ShiftRightLogical
        | O::StochasticConvert
        | O::Subtract
        | O::Xor
        | O::Clamp
        | O::Select
        | O::Bitcast
        | O::BitcastConvert
        | O::Broadcast
        | O::Concatenate
        | O::Copy
        | O::DynamicReshape
        | O::DynamicSlice
        | O::DynamicUpdateSlice
        | O::Gather
        | O::GetDimensionSize
        | O::Iota
        | O::Pad
        | O::Reshape
        | O::Reverse
        | O::Scatter
        | O::SetDimensionSize
        | O::Slice
        | O::Transpose
        | O::Convolution
        | O::Dot
        | O::RaggedDot
        | O::ScaledDot
        | O::Map
        | O::Reduce
        | O::ReduceWindow
        | O::Scan
        | O::SelectAndScatter
        | O::Sort
        | O::Topk
        | O::BatchNormGrad
        | O::BatchNormInference
        | O::BatchNormTraining
        | O::Cholesky
        | O::Fft
        | O::TriangularSolve
        | O::RngBitGenerator
        | O::CustomCall
        | O::Fusion
        | O::AllGather
        | O::AllReduce
        | O::AllToAll
        | O::CollectiveBroadcast
        | O::CollectivePermute
        | O::CollectiveReduce
        | O::RaggedAllToAll
        | O::ReduceScatter
        | O::PartitionId
        | O::ReplicaId => None,
    };
    by_opcode.or_else(|| {
        let shapes = instr.operands().iter().map(|&o| &module.instr(o).shape);
        let arrays = |s: &Shape| s.leaves().into_iter().all(|l| matches!(l, Shape::Array(_)));
        (!shapes.chain([&instr.shape]).all(arrays)).then_some("its operands or result are not arrays")
    })
}

/// A program that computes instructions of another from their operands.
#[derive(Debug)]
pub struct Alone {
    /// The program. Its result is the instruction's, or a tuple of those of several.
    pub module: Module,
    /// The operands that its parameters stand for.
    pub parameters: Vec<InstrId>,
}

/// Makes a program of instructions that [`why_not`] has nothing against.
pub fn alone(source: &Module, ids: &[InstrId]) -> Alone {
    let mut name = String::from("alone");
    for &id in ids.iter().take(3) {
        let _ = write!(name, "_{}", source.instr(id).name);
    }
    let mut module = Module::new(&name);
    module.text_style = source.text_style;
    module.header.replica_count = source.header.replica_count;
    module.header.num_partitions = source.header.num_partitions;
    module.header.frontend_attributes.clone_from(&source.header.frontend_attributes);
    let computations = import(source, &mut module, ids);
    let entry_name = module.unique_computation_name("main");
    let entry = module.add_computation(entry_name, Span::NONE);
    let mut parameters = Vec::new();
    let mut made: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    for &operand in ids.iter().flat_map(|&id| source.instr(id).operands()) {
        if made.contains_key(&operand) {
            continue;
        }
        let from = source.instr(operand);
        let number = hlo::AttrValue::Int(parameters.len() as i64);
        let mut attrs = Attrs::new().with(AttrKey::ParameterNumber, number);
        // A change to a shard goes by how its operand is divided among devices.
        if let Some(sharding) = from.attrs.get(AttrKey::Sharding) {
            attrs.set(AttrKey::Sharding, sharding.clone());
        }
        let new = NewInstruction { attrs, ..bare(from, Opcode::Parameter) };
        made.insert(operand, module.append(entry, new));
        parameters.push(operand);
    }
    let mut results = Vec::new();
    for &id in ids {
        let from = source.instr(id);
        let operands = from.operands().iter().map(|o| made[o]).collect();
        let new = NewInstruction { attrs: attrs(from, &computations), operands, ..bare(from, from.opcode) };
        results.push(module.append(entry, new));
    }
    let root = match results[..] {
        [one] => one,
        _ => {
            let shape = Shape::tuple(results.iter().map(|&r| module.instr(r).shape.clone()));
            module.append(entry, NewInstruction::new(Opcode::Tuple, shape, &results).named("all"))
        }
    };
    module.set_root(entry, root);
    module.set_entry(entry);
    Alone { module, parameters }
}

fn bare(from: &Instruction, opcode: Opcode) -> NewInstruction {
    NewInstruction {
        span: from.span,
        ..NewInstruction::new(opcode, from.shape.clone(), &[]).named(from.name.clone())
    }
}

/// The attributes of an instruction, without those that refer to the source's program.
fn attrs(from: &Instruction, computations: &FxHashMap<ComputationId, ComputationId>) -> Attrs {
    let mut attrs = from.attrs.clone();
    for key in [AttrKey::Metadata, AttrKey::Origin, AttrKey::Statistics] {
        attrs.remove(key);
    }
    attrs.map_computations(|c| computations[&c]);
    attrs
}

/// Copies what the instructions call, and what that calls.
fn import(source: &Module, module: &mut Module, ids: &[InstrId]) -> FxHashMap<ComputationId, ComputationId> {
    let mut called = FxHashSet::default();
    let mut todo: Vec<ComputationId> =
        ids.iter().flat_map(|&id| source.instr(id).attrs.called_computations()).collect();
    while let Some(c) = todo.pop() {
        if called.insert(c) {
            let instrs = source.instructions(c);
            todo.extend(instrs.flat_map(|id| source.instr(id).attrs.called_computations()));
        }
    }
    // In the order of the text, where callees come first.
    let order: Vec<ComputationId> =
        source.computations().iter().copied().filter(|c| called.contains(c)).collect();
    let mut computations = FxHashMap::default();
    for &old in &order {
        let c = source.computation(old);
        let new = module.add_computation(c.name.clone(), c.span);
        module.computation_mut(new).execution_thread.clone_from(&c.execution_thread);
        computations.insert(old, new);
    }
    let mut made: FxHashMap<InstrId, InstrId> = FxHashMap::default();
    for &old in &order {
        for id in source.instructions(old) {
            let from = source.instr(id);
            let new = NewInstruction { attrs: attrs(from, &computations), ..bare(from, from.opcode) };
            made.insert(id, module.append(computations[&old], new));
        }
        for id in source.instructions(old) {
            let from = source.instr(id);
            let operands: Vec<InstrId> = from.operands().iter().map(|o| made[o]).collect();
            module.set_operands(made[&id], &operands);
            let before = from.control_predecessors.iter().map(|o| made[o]).collect();
            module.instr_mut(made[&id]).control_predecessors = before;
        }
        module.set_root(computations[&old], made[&source.root(old)]);
    }
    computations
}
