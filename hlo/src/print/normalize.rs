//! What XLA makes of attributes between reading and printing them.

use crate::attrs::{
    ApiVersion, AttrKey, AttrValue, Attrs, BackendConfig, CompareType, ConvKind, DotAlgorithm,
    FrontendAttributes, Ints, Metadata, PaddingType, Precision, ReplicaGroups, ResultAccuracy, Schedule,
};
use crate::element_type::ElementType;
use crate::ids::InstrId;
use crate::module::{Instruction, Module};
use crate::opcode::Opcode;

/// The attributes of an instruction as XLA prints them.
pub(super) fn normal_attrs(module: &Module, id: InstrId) -> Attrs {
    let instr = module.instr(id);
    let mut attrs = Attrs::new();
    for (key, value) in instr.attrs.iter() {
        if says_something(module, instr, key, value) {
            attrs.set(key, value.clone());
        }
    }
    add_assumed(instr, &mut attrs);
    unify_spelling(module, instr, &mut attrs);
    attrs
}

/// Whether an attribute says more than its absence would.
fn says_something(module: &Module, instr: &Instruction, key: AttrKey, value: &AttrValue) -> bool {
    match value {
        AttrValue::Bool(false) => match key {
            AttrKey::Largest | AttrKey::HasDynamicRoot | AttrKey::IsAssociative => true,
            AttrKey::IsStable => instr.opcode == Opcode::Topk,
            _ => false,
        },
        AttrValue::Int(n) => match key {
            AttrKey::FeatureGroupCount | AttrKey::BatchGroupCount => *n != 1,
            AttrKey::InferredDimension => *n != -1,
            _ => true,
        },
        AttrValue::Ints(v) => match key {
            AttrKey::LhsBatchDims
            | AttrKey::RhsBatchDims
            | AttrKey::LhsRaggedDims
            | AttrKey::RhsGroupDims
            | AttrKey::OperandBatchingDims
            | AttrKey::StartIndicesBatchingDims
            | AttrKey::InputBatchingDims
            | AttrKey::ScatterIndicesBatchingDims => !v.is_empty(),
            _ => true,
        },
        AttrValue::Str(v) => match key {
            AttrKey::AsyncExecutionThread => &**v != "main",
            AttrKey::InfeedConfig | AttrKey::OutfeedConfig => !v.is_empty(),
            _ => true,
        },
        AttrValue::Window(v) => !v.dims.is_empty(),
        AttrValue::OperandAliasing(v) => !v.is_empty(),
        AttrValue::Precisions(v) => v.iter().any(|&p| p != Precision::Default),
        AttrValue::DotAlgorithm(v) => *v != DotAlgorithm::Unset,
        AttrValue::ConvKind(v) => *v != ConvKind::Unset,
        AttrValue::PaddingType(v) => *v != PaddingType::Invalid,
        AttrValue::Schedule(v) => *v != Schedule::None,
        AttrValue::ApiVersion(v) => *v != ApiVersion::Original,
        AttrValue::CollectiveMode(_) => false,
        AttrValue::CompareType(v) => {
            let ty = instr.operands().first().and_then(|&o| module.instr(o).shape.element_type());
            ty.map(CompareType::of) != Some(*v)
        }
        AttrValue::ResultAccuracy(v) => *v != ResultAccuracy::Default,
        AttrValue::FrontendAttributes(v) => !v.entries.is_empty(),
        AttrValue::Statistics(v) => !v.values.is_empty(),
        AttrValue::Metadata(v) => metadata_says_something(v),
        AttrValue::BackendConfig(v) => !v.text().is_empty(),
        AttrValue::Computations(v) => key != AttrKey::CalledComputations || !v.is_empty(),
        AttrValue::Bool(true)
        | AttrValue::Float(_)
        | AttrValue::IntLists(_)
        | AttrValue::Bools(_)
        | AttrValue::Computation(_)
        | AttrValue::Literal(_)
        | AttrValue::Shape(_)
        | AttrValue::Shapes(_)
        | AttrValue::ConvDims(_)
        | AttrValue::Padding(_)
        | AttrValue::Slices(_)
        | AttrValue::ReplicaGroups(_)
        | AttrValue::Sharding(_)
        | AttrValue::OriginalValue(_)
        | AttrValue::Sparsity(_)
        | AttrValue::Domain(_)
        | AttrValue::RngAlgorithm(_)
        | AttrValue::RngDistribution(_)
        | AttrValue::Direction(_)
        | AttrValue::FusionKind(_)
        | AttrValue::FftType(_)
        | AttrValue::Transpose(_) => true,
    }
}

fn metadata_says_something(m: &Metadata) -> bool {
    let texts = [&m.op_type, &m.op_name, &m.source_file, &m.scheduling_name, &m.payload];
    texts.iter().any(|t| t.as_ref().is_some_and(|t| !t.is_empty()))
        || m.stack_frame_id.is_some_and(|id| id != 0)
}

/// Adds what XLA prints though the text need not say it.
fn add_assumed(instr: &Instruction, attrs: &mut Attrs) {
    let op = instr.opcode;
    let has = |op: Opcode, key| op.attrs().iter().any(|slot| slot.key == key);
    let add = |attrs: &mut Attrs, key, value: AttrValue| {
        if has(op, key) && attrs.get(key).is_none() {
            attrs.set(key, value);
        }
    };
    let none = || AttrValue::Ints(Ints::new());
    add(attrs, AttrKey::ReplicaGroups, AttrValue::ReplicaGroups(Box::new(ReplicaGroups::Lists(Vec::new()))));
    add(attrs, AttrKey::LhsContractingDims, none());
    add(attrs, AttrKey::RhsContractingDims, none());
    add(attrs, AttrKey::Largest, AttrValue::Bool(true));
    add(attrs, AttrKey::IsAssociative, AttrValue::Bool(false));
    if op == Opcode::Broadcast {
        add(attrs, AttrKey::Dimensions, none());
    } else if op == Opcode::Map {
        let rank = instr.shape.as_array().map_or(0, |a| a.rank());
        attrs.set(AttrKey::Dimensions, AttrValue::Ints((0..rank as i64).collect()));
    }
}

/// Chooses between spellings of the same.
fn unify_spelling(module: &Module, instr: &Instruction, attrs: &mut Attrs) {
    if instr.opcode == Opcode::CustomCall
        && let Some(AttrValue::Computation(c)) = attrs.remove(AttrKey::ToApply)
    {
        attrs.set(AttrKey::CalledComputations, AttrValue::Computations([c].into()));
    }
    if instr.opcode == Opcode::Conditional {
        let predicate = instr.operands().first().and_then(|&o| module.instr(o).shape.element_type())
            == Some(ElementType::Pred);
        match attrs.computations(AttrKey::BranchComputations) {
            Some(&[on_true, on_false]) if predicate => {
                attrs.remove(AttrKey::BranchComputations);
                attrs.set(AttrKey::TrueComputation, AttrValue::Computation(on_true));
                attrs.set(AttrKey::FalseComputation, AttrValue::Computation(on_false));
            }
            _ => {}
        }
    }
    if let Some(AttrValue::FrontendAttributes(f)) = attrs.get_mut(AttrKey::FrontendAttributes) {
        let FrontendAttributes { entries } = &mut **f;
        entries.sort_by(|a, b| a.0.cmp(&b.0));
    }
    if let Some(AttrValue::BackendConfig(config)) = attrs.get_mut(AttrKey::BackendConfig)
        && let BackendConfig::Str(text) = &**config
        && is_brace_dictionary(text)
    {
        **config = BackendConfig::Raw(text.clone());
    }
}

/// Whether a text is one pair of braces that match, strings in double quotes aside, so that it needs no
/// quotes itself.
fn is_brace_dictionary(text: &str) -> bool {
    let mut depth = 0usize;
    let mut bytes = text.bytes();
    if !text.starts_with('{') {
        return false;
    }
    while let Some(b) = bytes.next() {
        match b {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return bytes.all(|b| b.is_ascii_whitespace());
                }
            }
            b'"' => loop {
                match bytes.next() {
                    None => return false,
                    Some(b'"') => break,
                    Some(b'\\') => {
                        bytes.next();
                    }
                    Some(_) => {}
                }
            },
            _ => {}
        }
    }
    false
}
