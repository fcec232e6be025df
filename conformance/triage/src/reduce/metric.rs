//! What is smaller.

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{ArrayShape, ConstantValue, ElementType, Literal, Module, Opcode, Shape};
use rustc_hash::FxHashSet;

use super::Candidate;
use super::program::{all_instructions, text};
use super::values::{cost, scalars};

/// The size of a program, compared from the first field to the last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Metric {
    /// Instructions of all computations.
    pub instructions: u64,
    /// Devices.
    pub devices: u64,
    /// Elements of all results of instructions.
    pub elements: u64,
    /// Sizes of all dimensions of results of instructions: they count where there are no elements.
    pub sizes: u64,
    /// Dimensions of all results of instructions.
    pub ranks: u64,
    /// Different element types, and how unusual they are.
    pub types: u64,
    /// Attributes and what their numbers add up to.
    pub attributes: u64,
    /// The cost of opcodes: parameters are simpler than what computes.
    pub opcodes: u64,
    /// The cost of inputs and constants.
    pub values: u64,
    /// Length of the text.
    pub text: u64,
}

impl Metric {
    /// Of a candidate.
    pub fn of(candidate: &Candidate) -> Metric {
        let module = &candidate.module;
        let mut m = Metric {
            instructions: 0,
            devices: candidate.inputs.len() as u64,
            elements: 0,
            sizes: 0,
            ranks: 0,
            types: 0,
            attributes: header(module),
            opcodes: 0,
            values: 0,
            text: text(module).len() as u64,
        };
        let mut types = FxHashSet::default();
        for id in all_instructions(module) {
            let i = module.instr(id);
            m.instructions += 1;
            i.shape.for_each_leaf(&mut |leaf| {
                if let Some(a) = array_of(leaf) {
                    m.elements = m.elements.saturating_add(a.checked_elements().unwrap_or(i64::MAX) as u64);
                    m.sizes = a.dims.iter().fold(m.sizes, |n, &d| n.saturating_add(d.max(0) as u64));
                    m.ranks += a.rank() as u64;
                    m.attributes += u64::from(a.layout.is_some()) + 4 * u64::from(a.is_dynamic());
                    types.insert(a.element_type);
                }
            });
            m.attributes += 4 * i.control_predecessors.len() as u64;
            for (key, value) in i.attrs.iter() {
                m.attributes += attribute(key, value);
                if let AttrValue::Literal(ConstantValue::Given(literal)) = value {
                    m.values = m.values.saturating_add(literal_cost(literal));
                }
            }
            m.opcodes += opcode_cost(i.opcode);
        }
        m.types = types.into_iter().map(type_cost).sum();
        for array in candidate.inputs.iter().flatten() {
            m.values = m.values.saturating_add(buffer_cost(array));
        }
        m
    }
}

fn array_of(shape: &Shape) -> Option<&ArrayShape> {
    match shape {
        Shape::Array(a) => Some(a),
        Shape::Buffer(inner) => array_of(inner),
        Shape::Tuple(_) | Shape::Token | Shape::Opaque => None,
    }
}

fn literal_cost(literal: &Literal) -> u64 {
    literal.arrays().into_iter().map(buffer_cost).fold(0, u64::saturating_add)
}

/// The maximum number of elements of an array that are looked at: large ones shrink first.
const MAX_MEASURED_ELEMENTS: usize = 1 << 16;

fn buffer_cost(array: &hlo::ArrayLiteral) -> u64 {
    if array.buffer.len() > MAX_MEASURED_ELEMENTS {
        return 40 * array.buffer.len() as u64;
    }
    scalars(&array.buffer).into_iter().map(cost).sum()
}

/// Every type costs 8, and the less usual ones more.
pub(crate) fn type_cost(ty: ElementType) -> u64 {
    let order = [
        ElementType::F32,
        ElementType::S32,
        ElementType::Pred,
        ElementType::F64,
        ElementType::S64,
        ElementType::U32,
        ElementType::U8,
    ];
    8 + order.iter().position(|&t| t == ty).unwrap_or(order.len()) as u64
}

/// Moves that replace one instruction by another follow this: what stands for nothing in particular is the
/// easiest.
fn opcode_cost(opcode: Opcode) -> u64 {
    let ranks: [&[Opcode]; 3] = [
        &[Opcode::Parameter, Opcode::Constant],
        &[Opcode::Tuple, Opcode::GetTupleElement],
        &[Opcode::Add, Opcode::Negate, Opcode::Copy, Opcode::Reshape, Opcode::Convert, Opcode::Iota],
    ];
    ranks.iter().position(|r| r.contains(&opcode)).unwrap_or(ranks.len()) as u64
}

/// The header line without the name.
fn header(module: &Module) -> u64 {
    let h = &module.header;
    let there = [
        h.is_scheduled.is_some(),
        h.alias_passthrough_params.is_some(),
        h.entry_computation_layout.is_some(),
        h.spmd_propagation_to_parameters.is_some(),
        h.spmd_propagation_to_output.is_some(),
        h.replica_count.is_some(),
        h.num_partitions.is_some(),
        h.frontend_attributes.is_some(),
        h.origin_recovery_table.is_some(),
        h.debug_attributes.is_some(),
        module.stack_tables != hlo::attrs::StackTables::default(),
    ];
    let lists = h.input_output_alias.len() + h.buffer_donor.len() + h.custom.len();
    there.into_iter().filter(|&t| t).count() as u64 + lists as u64
}

/// A number's share of the metric: 0 for 0, small for 1.
fn number(n: i64) -> u64 {
    match n.unsigned_abs() {
        0 => 0,
        1 => 1,
        n => 2 + u64::from(n.ilog2()),
    }
}

fn attribute(key: AttrKey, value: &AttrValue) -> u64 {
    match value {
        // Numbers of parameters and called computations are counted elsewhere.
        AttrValue::Computation(_) | AttrValue::Computations(_) | AttrValue::Literal(_) => 1,
        AttrValue::Int(_) if key == AttrKey::ParameterNumber => 0,
        AttrValue::Int(n) => 1 + number(*n),
        AttrValue::Bool(b) => 1 + u64::from(*b),
        AttrValue::Ints(v) => 1 + v.iter().map(|&n| 1 + number(n)).sum::<u64>(),
        AttrValue::Padding(p) => p.iter().map(|p| number(p.low) + number(p.high) + number(p.interior)).sum(),
        AttrValue::Slices(s) => {
            s.iter().map(|s| number(s.start) + number(s.limit) + 2 * number(s.stride - 1)).sum()
        }
        AttrValue::Window(w) => {
            let dim = |w: &hlo::attrs::WindowDim| {
                number(w.size - 1)
                    + number(w.pad_low)
                    + number(w.pad_high)
                    + 2 * (number(w.stride - 1) + number(w.base_dilation - 1) + number(w.window_dilation - 1))
                    + 4 * u64::from(w.reversal)
            };
            1 + w.dims.iter().map(dim).sum::<u64>()
        }
        AttrValue::ConvDims(d) => {
            // A permutation costs what it is out of order.
            let off = |from: &[i64]| {
                from.iter().zip(0..).map(|(&d, i): (&i64, i64)| (d - i).unsigned_abs()).sum::<u64>()
            };
            let side = |a, b, s: &[i64]| off(&[&[a], s, &[b]].concat());
            let (input, kernel, output) = (&d.input_spatial, &d.kernel_spatial, &d.output_spatial);
            let kernel: Vec<i64> =
                kernel.iter().copied().chain([d.kernel_input_feature, d.kernel_output_feature]).collect();
            side(d.input_batch, d.input_feature, input)
                + off(&kernel)
                + side(d.output_batch, d.output_feature, output)
        }
        AttrValue::FusionKind(k) => 1 + u64::from(*k != hlo::attrs::FusionKind::Loop),
        AttrValue::Transpose(t) => 1 + u64::from(*t != hlo::attrs::Transpose::No),
        AttrValue::FftType(t) => 1 + u64::from(*t != hlo::attrs::FftType::Fft),
        AttrValue::Metadata(_)
        | AttrValue::BackendConfig(_)
        | AttrValue::FrontendAttributes(_)
        | AttrValue::Sharding(_)
        | AttrValue::OriginalValue(_)
        | AttrValue::Statistics(_) => 8,
        AttrValue::Float(_)
        | AttrValue::Str(_)
        | AttrValue::IntLists(_)
        | AttrValue::Bools(_)
        | AttrValue::Shape(_)
        | AttrValue::Shapes(_)
        | AttrValue::ReplicaGroups(_)
        | AttrValue::OperandAliasing(_)
        | AttrValue::ResultAccuracy(_)
        | AttrValue::Sparsity(_)
        | AttrValue::Domain(_)
        | AttrValue::Precisions(_)
        | AttrValue::DotAlgorithm(_)
        | AttrValue::RngAlgorithm(_)
        | AttrValue::RngDistribution(_)
        | AttrValue::Direction(_)
        | AttrValue::CompareType(_)
        | AttrValue::PaddingType(_)
        | AttrValue::Schedule(_)
        | AttrValue::ApiVersion(_)
        | AttrValue::ConvKind(_)
        | AttrValue::CollectiveMode(_) => 2,
    }
}
