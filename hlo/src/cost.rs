//! Static cost of a module: about how many operations on elements a run takes, as XLA's cost analysis counts
//! them.
//!
//! An estimate for people who wait and for limits of effort, not a model of a machine: each operation on an
//! element counts 1, elementary functions what they cost in arithmetic, and each computation as often as it
//! is called. **Invariants:** counts saturate, so that no shape and no call graph overflows them; the time
//! taken is linear in the text, however often computations call each other.

use rustc_hash::FxHashMap;

use crate::attrs::AttrKey;
use crate::elementwise::{Binary, Kind, kind};
use crate::ids::{ComputationId, InstrId};
use crate::module::Module;
use crate::opcode::Opcode;
use crate::shape::Shape;

/// Arithmetic operations of an elementary function on one element.
const FUNCTION_OPERATIONS: u64 = 16;

/// Operations of one element of a batch normalization, or of random bits.
const COMPOUND_OPERATIONS: u64 = 16;

/// What a module costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModuleCost {
    /// Operations on elements in all.
    pub operations: u64,
    /// The instruction that takes most of them, in all its executions, and how many.
    pub largest: Option<(InstrId, u64)>,
    /// Whether there are loops whose number of iterations is not known; they count once.
    pub unknown_loops: bool,
}

/// What the entry computation costs. `trip_count` knows how often the body of a loop runs, where that follows
/// from the program.
pub fn module_cost(module: &Module, trip_count: &dyn Fn(InstrId) -> Option<u64>) -> ModuleCost {
    let counted = Counted::of(module, trip_count);
    let mut largest: Option<(InstrId, u64)> = None;
    for &c in counted.order.iter().rev() {
        for id in module.instructions(c) {
            let own = own_operations(module, id, &counted.operations).saturating_mul(counted.executions(c));
            if own > largest.map_or(0, |l| l.1) {
                largest = Some((id, own));
            }
        }
    }
    let operations = counted.operations.get(&module.entry()).copied().unwrap_or(0);
    ModuleCost { operations, largest, unknown_loops: counted.unknown_loops }
}

/// What one execution of an instruction costs, with the computations that it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstructionCost {
    /// Operations on elements.
    pub operations: u64,
    /// Bytes read and written: operands and result, each once; of a call or a loop those of what it runs, and
    /// nothing where only names change.
    pub bytes: u64,
    /// Executions in a run of the entry computation. `None` of instructions that are applied to elements, and
    /// of what is never called.
    pub executions: Option<u64>,
}

/// What every instruction of a module costs. `trip_count` as for [`module_cost`].
pub fn instruction_costs(
    module: &Module,
    trip_count: &dyn Fn(InstrId) -> Option<u64>,
) -> FxHashMap<InstrId, InstructionCost> {
    let counted = Counted::of(module, trip_count);
    let mut bytes: FxHashMap<ComputationId, u64> = FxHashMap::default();
    let mut costs = FxHashMap::default();
    // What is never called has a cost too.
    let mut seen: rustc_hash::FxHashSet<ComputationId> = counted.order.iter().copied().collect();
    let mut order = counted.order.clone();
    for &c in module.computations() {
        if !seen.contains(&c) {
            order.extend(callees_first(module, c).into_iter().filter(|&c| seen.insert(c)));
        }
    }
    let mut operations = counted.operations.clone();
    for &c in &order {
        let (mut all_operations, mut all_bytes) = (0u64, 0u64);
        for id in module.instructions(c) {
            let called = called(module, id, trip_count);
            let run = |of: &FxHashMap<ComputationId, u64>| {
                let each = called.computations.iter().map(|c| of.get(c).copied().unwrap_or(0));
                each.fold(0, u64::saturating_add).saturating_mul(called.times)
            };
            let cost = InstructionCost {
                operations: own_operations(module, id, &operations).saturating_add(run(&operations)),
                bytes: traffic_bytes(module, id).unwrap_or_else(|| run(&bytes)),
                executions: counted.times.get(&c).copied(),
            };
            all_operations = all_operations.saturating_add(cost.operations);
            all_bytes = all_bytes.saturating_add(cost.bytes);
            costs.insert(id, cost);
        }
        operations.insert(c, all_operations);
        bytes.insert(c, all_bytes);
    }
    costs
}

/// Bytes that an instruction reads and writes itself; `None` if those of what it runs count.
fn traffic_bytes(module: &Module, id: InstrId) -> Option<u64> {
    let instr = module.instr(id);
    let names_only = matches!(
        instr.opcode,
        Opcode::Parameter
            | Opcode::Constant
            | Opcode::Tuple
            | Opcode::GetTupleElement
            | Opcode::Bitcast
            | Opcode::AfterAll
            | Opcode::AddDependency
            | Opcode::OptBarrier
            | Opcode::Domain
            | Opcode::AsyncUpdate
            | Opcode::AsyncDone
    );
    let runs =
        matches!(instr.opcode, Opcode::Call | Opcode::While | Opcode::Conditional | Opcode::AsyncStart);
    if runs {
        return None;
    }
    if names_only {
        return Some(0);
    }
    let bytes = |shape: &Shape| shape.checked_bytes().and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX);
    let operands = instr.operands().iter().map(|&o| bytes(&module.instr(o).shape));
    Some(operands.fold(bytes(&instr.shape), u64::saturating_add))
}

/// What computations cost and how often they run, those that the entry computation leads to.
struct Counted {
    /// Those, each after what it calls.
    order: Vec<ComputationId>,
    /// Operations of one execution.
    operations: FxHashMap<ComputationId, u64>,
    /// Executions of those that run as a whole.
    times: FxHashMap<ComputationId, u64>,
    unknown_loops: bool,
}

impl Counted {
    fn of(module: &Module, trip_count: &dyn Fn(InstrId) -> Option<u64>) -> Self {
        let entry = module.entry();
        let mut operations: FxHashMap<ComputationId, u64> = FxHashMap::default();
        let order = callees_first(module, entry);
        let mut unknown_loops = false;
        for &c in &order {
            let each = module.instructions(c).map(|id| {
                let called = called(module, id, trip_count);
                unknown_loops |= called.unknown;
                let inner = called.computations.iter().map(|c| operations.get(c).copied().unwrap_or(0));
                own_operations(module, id, &operations)
                    .saturating_add(inner.fold(0, u64::saturating_add).saturating_mul(called.times))
            });
            let cost = each.fold(0, u64::saturating_add);
            operations.insert(c, cost);
        }
        let mut times: FxHashMap<ComputationId, u64> = FxHashMap::default();
        times.insert(entry, 1);
        for &c in order.iter().rev() {
            let executions = times.get(&c).copied().unwrap_or(0);
            for id in module.instructions(c) {
                let called = called(module, id, trip_count);
                for callee in called.computations {
                    let sum = times.entry(callee).or_insert(0);
                    *sum = sum.saturating_add(executions.saturating_mul(called.times));
                }
            }
        }
        Self { order, operations, times, unknown_loops }
    }

    fn executions(&self, c: ComputationId) -> u64 {
        self.times.get(&c).copied().unwrap_or(0)
    }
}

/// What a computation costs each time that it is applied to elements; calls in it count each time.
pub fn applied_cost(module: &Module, computation: ComputationId) -> u64 {
    let mut costs: FxHashMap<ComputationId, u64> = FxHashMap::default();
    for c in callees_first(module, computation) {
        let each = module.instructions(c).map(|id| {
            let called = called(module, id, &|_| None);
            let inner = called.computations.iter().map(|c| costs.get(c).copied().unwrap_or(0));
            own_operations(module, id, &costs).saturating_add(inner.fold(0, u64::saturating_add))
        });
        let cost = each.fold(0, u64::saturating_add);
        costs.insert(c, cost);
    }
    costs.get(&computation).copied().unwrap_or(0)
}

/// All computations that one leads to, itself last, each after those that it calls.
fn callees_first(module: &Module, from: ComputationId) -> Vec<ComputationId> {
    let callees = |c: ComputationId| -> Vec<ComputationId> {
        module.instructions(c).flat_map(|id| module.instr(id).attrs.called_computations()).collect()
    };
    let (mut order, mut seen) = (Vec::new(), rustc_hash::FxHashSet::default());
    seen.insert(from);
    let mut open = vec![(from, callees(from))];
    while let Some((c, left)) = open.last_mut() {
        match left.pop() {
            Some(next) if seen.insert(next) => {
                let more = callees(next);
                open.push((next, more));
            }
            Some(_) => {}
            None => {
                order.push(*c);
                open.pop();
            }
        }
    }
    order
}

/// Computations that an instruction runs as a whole, and how often; not those that it applies to elements,
/// which are work of its own.
struct Called {
    computations: smallvec::SmallVec<[ComputationId; 2]>,
    times: u64,
    unknown: bool,
}

fn called(module: &Module, id: InstrId, trip_count: &dyn Fn(InstrId) -> Option<u64>) -> Called {
    let instr = module.instr(id);
    let runs = matches!(
        instr.opcode,
        Opcode::Call | Opcode::Fusion | Opcode::While | Opcode::Conditional | Opcode::AsyncStart
    );
    if !runs {
        return Called { computations: smallvec::SmallVec::new(), times: 0, unknown: false };
    }
    let trips = if instr.opcode == Opcode::While { trip_count(id) } else { Some(1) };
    let computations = instr.attrs.called_computations();
    Called { computations, times: trips.unwrap_or(1), unknown: trips.is_none() }
}

/// Operations of one execution, without what the computations cost that it runs as a whole.
fn own_operations(module: &Module, id: InstrId, costs: &FxHashMap<ComputationId, u64>) -> u64 {
    let instr = module.instr(id);
    let operand = |n: usize| instr.operands().get(n).map_or(0, |&o| elements(&module.instr(o).shape));
    let dims = |n: usize| {
        instr.operands().get(n).and_then(|&o| module.instr(o).shape.as_array()).map(|a| &a.dims[..])
    };
    let result = elements(&instr.shape);
    let applied = || {
        let each = instr.attrs.called_computations();
        let sum = each.iter().map(|c| costs.get(c).copied().unwrap_or(0)).fold(0, u64::saturating_add);
        sum.max(1)
    };
    let window = || {
        let sizes = instr.attrs.window().map_or(&[][..], |w| &w.dims);
        sizes.iter().fold(1, |n: u64, w| n.saturating_mul(size(w.size)))
    };
    let last = |n: usize| dims(n).and_then(|d| d.last()).map_or(1, |&d| size(d));
    let times = |factors: &[u64]| factors.iter().fold(1, |n: u64, &f| n.saturating_mul(f));
    match instr.opcode {
        Opcode::Dot | Opcode::RaggedDot | Opcode::ScaledDot => {
            let contracting = instr.attrs.ints_or_empty(AttrKey::LhsContractingDims);
            let of =
                |&d: &i64| usize::try_from(d).ok().and_then(|d| dims(0)?.get(d).copied()).map_or(1, size);
            times(&[2, result, contracting.iter().map(of).fold(1, u64::saturating_mul)])
        }
        Opcode::Convolution => {
            // Each output takes the kernel's elements of its feature.
            let features = result.min(operand(1)).max(1);
            let feature = instr.attrs.conv_dims().and_then(|l| usize::try_from(l.kernel_output_feature).ok());
            let features = feature.and_then(|d| dims(1)?.get(d).copied()).map_or(features, size);
            times(&[2, result, operand(1) / features.max(1)])
        }
        Opcode::Reduce | Opcode::Scan => times(&[operand(0), applied()]),
        Opcode::ReduceWindow => times(&[result, window(), applied()]),
        Opcode::SelectAndScatter => times(&[operand(1), window(), applied()]),
        Opcode::Scatter => {
            let updates = instr.operands().len().saturating_sub(1);
            times(&[operand(updates), applied()]).saturating_add(result)
        }
        Opcode::Map => times(&[result, applied()]),
        Opcode::Sort => {
            let dimension = instr.attrs.ints_or_empty(AttrKey::Dimensions).first().copied().unwrap_or(0);
            let length =
                usize::try_from(dimension).ok().and_then(|d| dims(0)?.get(d).copied()).map_or(1, size);
            times(&[operand(0), logarithm(length), applied()])
        }
        Opcode::Topk => times(&[operand(0), logarithm(last(0))]),
        Opcode::Cholesky => times(&[operand(0), last(0)]),
        Opcode::TriangularSolve => times(&[operand(1), last(0)]),
        Opcode::Fft => {
            let length = instr.attrs.ints_or_empty(AttrKey::FftLength).iter().map(|&n| size(n));
            times(&[4, result, logarithm(length.fold(1, u64::saturating_mul))])
        }
        Opcode::BatchNormGrad | Opcode::BatchNormInference | Opcode::BatchNormTraining => {
            times(&[operand(0), COMPOUND_OPERATIONS])
        }
        Opcode::Rng | Opcode::RngBitGenerator => times(&[result, COMPOUND_OPERATIONS]),

        Opcode::Parameter
        | Opcode::Constant
        | Opcode::Call
        | Opcode::Fusion
        | Opcode::While
        | Opcode::Conditional
        | Opcode::AsyncStart
        | Opcode::AsyncUpdate
        | Opcode::AsyncDone
        | Opcode::Tuple
        | Opcode::GetTupleElement
        | Opcode::AfterAll
        | Opcode::OptBarrier
        | Opcode::Domain
        | Opcode::AddDependency
        | Opcode::PartitionId
        | Opcode::ReplicaId
        | Opcode::GetDimensionSize
        | Opcode::RngGetAndUpdateState => 1,

        Opcode::Bitcast
        | Opcode::BitcastConvert
        | Opcode::Broadcast
        | Opcode::Concatenate
        | Opcode::CopyDone
        | Opcode::CopyStart
        | Opcode::CustomCall
        | Opcode::DynamicReshape
        | Opcode::DynamicSlice
        | Opcode::DynamicUpdateSlice
        | Opcode::Gather
        | Opcode::Iota
        | Opcode::Pad
        | Opcode::Reshape
        | Opcode::Reverse
        | Opcode::SetDimensionSize
        | Opcode::Slice
        | Opcode::Transpose
        | Opcode::AllGather
        | Opcode::AllGatherDone
        | Opcode::AllGatherStart
        | Opcode::AllReduce
        | Opcode::AllReduceDone
        | Opcode::AllReduceStart
        | Opcode::AllToAll
        | Opcode::CollectiveBroadcast
        | Opcode::CollectivePermute
        | Opcode::CollectivePermuteDone
        | Opcode::CollectivePermuteStart
        | Opcode::CollectiveReduce
        | Opcode::Infeed
        | Opcode::Outfeed
        | Opcode::RaggedAllToAll
        | Opcode::Recv
        | Opcode::RecvDone
        | Opcode::ReduceScatter
        | Opcode::Send
        | Opcode::SendDone => result.max(1),

        Opcode::Abs
        | Opcode::Acos
        | Opcode::Acosh
        | Opcode::Asin
        | Opcode::Asinh
        | Opcode::Atanh
        | Opcode::Cbrt
        | Opcode::Ceil
        | Opcode::Convert
        | Opcode::Copy
        | Opcode::Cosine
        | Opcode::Cosh
        | Opcode::CountLeadingZeros
        | Opcode::Erf
        | Opcode::Exponential
        | Opcode::ExponentialMinusOne
        | Opcode::Floor
        | Opcode::Imag
        | Opcode::IsFinite
        | Opcode::Log
        | Opcode::LogPlusOne
        | Opcode::Logistic
        | Opcode::Negate
        | Opcode::Not
        | Opcode::Popcnt
        | Opcode::Real
        | Opcode::ReducePrecision
        | Opcode::RoundNearestAfz
        | Opcode::RoundNearestEven
        | Opcode::Rsqrt
        | Opcode::Sign
        | Opcode::Sine
        | Opcode::Sinh
        | Opcode::Sqrt
        | Opcode::Tan
        | Opcode::Tanh
        | Opcode::Add
        | Opcode::And
        | Opcode::Atan2
        | Opcode::Compare
        | Opcode::Complex
        | Opcode::Divide
        | Opcode::Maximum
        | Opcode::Minimum
        | Opcode::Mulhi
        | Opcode::Multiply
        | Opcode::Or
        | Opcode::Power
        | Opcode::Remainder
        | Opcode::ShiftLeft
        | Opcode::ShiftRightArithmetic
        | Opcode::ShiftRightLogical
        | Opcode::StochasticConvert
        | Opcode::Subtract
        | Opcode::Xor
        | Opcode::Clamp
        | Opcode::Select => times(&[result, element_operations(instr.opcode)]),
    }
}

/// Arithmetic operations of an elementwise opcode on one element.
fn element_operations(opcode: Opcode) -> u64 {
    match kind(opcode) {
        Some(Kind::Function(_) | Kind::Binary(Binary::Power | Binary::Atan2)) => FUNCTION_OPERATIONS,
        Some(_) | None => 1,
    }
}

fn size(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

fn logarithm(n: u64) -> u64 {
    u64::from(n.max(2).next_power_of_two().ilog2())
}

/// Elements of all arrays of a shape; what is too many to count is [`u64::MAX`].
fn elements(shape: &Shape) -> u64 {
    match shape {
        Shape::Array(a) => a.checked_elements().and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX),
        Shape::Tuple(parts) => parts.iter().map(elements).fold(0, u64::saturating_add),
        Shape::Buffer(inner) => elements(inner),
        Shape::Token | Shape::Opaque => 0,
    }
}
