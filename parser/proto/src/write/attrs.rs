//! Attributes: each key into the field that has its value.

use hlo::attrs::{ConvDims, FrontendValue, Precision, Sparsity, SparsitySide, Window};
use hlo::{AttrKey, AttrValue, Attrs, ConstantValue, Module, Opcode};

use super::origin::{self, Payloads};
use super::{Missing, Written, literal, shape, sharding};
use crate::compare::default_type;
use crate::message::Message;
use crate::schema::devices::{COLLECTIVE_DEVICE_LIST, SOURCE_TARGET, source_target};
use crate::schema::modules::{
    HLO_INSTRUCTION_SLICE_DIMENSIONS, hlo_instruction as i, hlo_instruction_slice_dimensions as slice,
};
use crate::schema::operations::{
    CHOLESKY_OPTIONS, CONVOLUTION_DIMENSION_NUMBERS, DOT_DIMENSION_NUMBERS, GATHER_DIMENSION_NUMBERS,
    OUTPUT_OPERAND_ALIASING, PADDING_CONFIG, PADDING_CONFIG_PADDING_CONFIG_DIMENSION, PARAMETER_REPLICATION,
    PRECISION_CONFIG, RAGGED_DOT_DIMENSION_NUMBERS, SCATTER_DIMENSION_NUMBERS, SPARSITY_CONFIG,
    SPARSITY_CONFIG_TENSOR_SPARSITY_CONFIG, TRIANGULAR_SOLVE_OPTIONS, WINDOW, WINDOW_DIMENSION,
    cholesky_options, convolution_dimension_numbers as conv, dot_dimension_numbers as dot,
    gather_dimension_numbers as gather, output_operand_aliasing as alias, padding_config,
    padding_config_padding_config_dimension as padding, parameter_replication, precision_config as precision,
    ragged_dot_dimension_numbers as ragged, scatter_dimension_numbers as scatter, sparsity_config,
    sparsity_config_tensor_sparsity_config as side, triangular_solve_options as solve, window,
    window_dimension as w,
};
use crate::tables::*;

/// What XLA always writes of an opcode, though the text need not say it.
pub(crate) fn assumed<'m>(module: &Module, instruction: &hlo::Instruction, m: &mut Message<'m>) {
    let opcode = instruction.opcode;
    let takes = |key| opcode.attrs().iter().any(|s| s.key == key);
    let given = |key| instruction.attrs.get(key).is_some();
    if opcode == Opcode::Compare && !given(AttrKey::CompareType) {
        let operand = instruction.operands().first().and_then(|&o| module.instr(o).shape.element_type());
        if let Some(ty) = operand {
            m.text(i::COMPARISON_TYPE, default_type(ty).text());
        }
    }
    if takes(AttrKey::ReplicaGroups) && !given(AttrKey::ReplicaGroups) {
        m.message(i::COLLECTIVE_DEVICE_LIST, Message::new(&COLLECTIVE_DEVICE_LIST));
    }
    if takes(AttrKey::Largest) && !given(AttrKey::Largest) {
        m.bool(i::LARGEST, true);
    }
    if takes(AttrKey::IsAssociative) && !given(AttrKey::IsAssociative) {
        m.int(i::IS_ASSOCIATIVE, tri_state::FALSE);
    }
    if opcode == Opcode::CustomCall && !given(AttrKey::ApiVersion) {
        m.int(
            i::CUSTOM_CALL_API_VERSION,
            enumerator(API_VERSIONS, hlo::attrs::ApiVersion::Original).unwrap_or(0),
        );
    }
    if takes(AttrKey::FeatureGroupCount) {
        for (key, number) in [
            (AttrKey::FeatureGroupCount, i::FEATURE_GROUP_COUNT),
            (AttrKey::BatchGroupCount, i::BATCH_GROUP_COUNT),
        ] {
            m.int(number, instruction.attrs.int(key).unwrap_or(1));
        }
    }
    if opcode == Opcode::Convolution && !given(AttrKey::SparsityConfig) {
        m.message(i::SPARSITY_CONFIG, Message::new(&SPARSITY_CONFIG));
    }
    if takes(AttrKey::LhsContractingDims) {
        dot_dims(opcode, m);
    }
    if takes(AttrKey::OperandPrecision) && !given(AttrKey::OperandPrecision) {
        let operands = if matches!(opcode, Opcode::CustomCall) { instruction.operands().len() } else { 2 };
        let each = vec![Precision::Default; operands];
        precisions(&each, m);
    }
}

/// Puts the value of an attribute into the message of its instruction.
pub(crate) fn attribute<'m>(
    key: AttrKey,
    value: &'m AttrValue,
    instruction: &'m hlo::Instruction,
    payloads: &mut Payloads<'m>,
    m: &mut Message<'m>,
) -> Written<()> {
    let opcode = instruction.opcode;
    match value {
        AttrValue::Bool(v) => return flag(key, *v, opcode, m),
        AttrValue::Int(v) => return int(key, *v, opcode, m),
        AttrValue::Ints(v) => return ints(key, v, opcode, m),
        AttrValue::Float(v) => m.float(i::EPSILON, *v as f32),
        AttrValue::Str(v) => match key {
            AttrKey::CustomCallTarget => m.text(i::CUSTOM_CALL_TARGET, &**v),
            AttrKey::AsyncExecutionThread => m.text(i::ASYNC_EXECUTION_THREAD, &**v),
            AttrKey::InfeedConfig => m.bytes(i::INFEED_CONFIG, v.as_bytes()),
            AttrKey::OutfeedConfig => m.bytes(i::OUTFEED_CONFIG, v.as_bytes()),
            _ => return Err(Missing("this string")),
        },
        AttrValue::IntLists(v) => {
            if key != AttrKey::SourceTargetPairs {
                return Err(Missing("slices of a collective-permute in place"));
            }
            let pairs = v.iter().map(|pair| {
                let [source, target] = pair[..] else {
                    return Err(Missing("a source-target pair that is not of two numbers"));
                };
                let mut m = Message::new(&SOURCE_TARGET);
                m.int(source_target::SOURCE, source);
                m.int(source_target::TARGET, target);
                Ok(m)
            });
            m.messages(i::SOURCE_TARGET_PAIRS, pairs.collect::<Written<Vec<_>>>()?);
        }
        AttrValue::Bools(v) => {
            let mut inner = Message::new(&PARAMETER_REPLICATION);
            inner.ints(parameter_replication::REPLICATED_AT_LEAF_BUFFERS, v.iter().map(|&b| i64::from(b)));
            m.message(i::PARAMETER_REPLICATION, inner);
        }
        // Together, in the order of their numbers.
        AttrValue::Computation(_) | AttrValue::Computations(_) => {}
        AttrValue::Literal(ConstantValue::Given(v)) => m.message(
            i::LITERAL,
            match key {
                AttrKey::ConstantValue => literal::literal(v, &instruction.shape),
                _ => literal::literal(v, &v.shape()),
            },
        ),
        AttrValue::Literal(ConstantValue::Elided) => match key {
            AttrKey::ConstantValue => {}
            _ => return Err(Missing("a literal whose value was left out")),
        },
        AttrValue::Shape(v) => m.message(i::OUTFEED_SHAPE, shape::shape(v)),
        AttrValue::Shapes(v) => {
            m.bool(i::CONSTRAIN_LAYOUT, true);
            m.messages(i::OPERAND_SHAPES_WITH_LAYOUT, v.iter().map(shape::shape).collect());
        }
        AttrValue::Window(v) => m.message(i::WINDOW, window(v)),
        AttrValue::ConvDims(v) => m.message(i::CONVOLUTION_DIMENSION_NUMBERS, conv_dims(v)?),
        AttrValue::Padding(v) => {
            let mut config = Message::new(&PADDING_CONFIG);
            let dims = v.iter().map(|d| {
                let mut m = Message::new(&PADDING_CONFIG_PADDING_CONFIG_DIMENSION);
                m.int(padding::EDGE_PADDING_LOW, d.low);
                m.int(padding::EDGE_PADDING_HIGH, d.high);
                m.int(padding::INTERIOR_PADDING, d.interior);
                m
            });
            config.messages(padding_config::DIMENSIONS, dims.collect());
            m.message(i::PADDING_CONFIG, config);
        }
        AttrValue::Slices(v) => {
            let dims = v.iter().map(|d| {
                let mut m = Message::new(&HLO_INSTRUCTION_SLICE_DIMENSIONS);
                m.int(slice::START, d.start);
                m.int(slice::LIMIT, d.limit);
                m.int(slice::STRIDE, d.stride);
                m
            });
            m.messages(i::SLICE_DIMENSIONS, dims.collect());
        }
        AttrValue::ReplicaGroups(v) => sharding::replica_groups(v, m)?,
        AttrValue::OperandAliasing(v) => {
            let aliases = v.iter().map(|a| {
                let mut m = Message::new(&OUTPUT_OPERAND_ALIASING);
                m.ints(alias::OUTPUT_SHAPE_INDEX, a.output_index.iter().copied());
                m.int(alias::OPERAND_INDEX, a.operand);
                m.ints(alias::OPERAND_SHAPE_INDEX, a.operand_index.iter().copied());
                m
            });
            m.messages(i::OUTPUT_OPERAND_ALIASING, aliases.collect());
        }
        AttrValue::Sharding(v) => m.message(i::SHARDING, sharding::sharding(v, payloads)?),
        AttrValue::FrontendAttributes(v) => m.message(i::FRONTEND_ATTRIBUTES, origin::frontend_attributes(v)),
        AttrValue::Metadata(v) => {
            if let Some((key, _)) = v.unknown.first() {
                return Err(Missing(if key.is_empty() {
                    "an unknown field"
                } else {
                    "a field of metadata that is unknown here"
                }));
            }
            if v.preserve_layout == Some(true) {
                return Err(Missing("preserve_layout"));
            }
            m.message(i::METADATA, origin::metadata(v, payloads));
        }
        AttrValue::BackendConfig(v) => m.bytes(i::BACKEND_CONFIG, v.text().as_bytes()),
        AttrValue::OriginalValue(v) => m.message(i::ORIGINAL_VALUE, origin::original_value(v)),
        AttrValue::Statistics(v) => m.message(i::STATISTICS_VIZ, origin::statistics(v)),
        AttrValue::ResultAccuracy(v) => m.message(i::RESULT_ACCURACY, origin::result_accuracy(*v)),
        AttrValue::Sparsity(v) => m.message(i::SPARSITY_CONFIG, sparsity(v)?),
        AttrValue::Domain(v) => {
            if &*v.kind != "sharding" {
                return Err(Missing("a domain of another kind than \"sharding\""));
            }
            m.message(i::DOMAIN_ENTRY_SHARDING, sharding::sharding(&v.entry, payloads)?);
            m.message(i::DOMAIN_EXIT_SHARDING, sharding::sharding(&v.exit, payloads)?);
        }
        AttrValue::Precisions(v) => precisions(v, m),
        AttrValue::DotAlgorithm(v) => {
            let value = enumerator(DOT_ALGORITHMS, *v).ok_or(Missing("this algorithm"))?;
            m.child(i::PRECISION_CONFIG, &PRECISION_CONFIG).int(precision::ALGORITHM, value);
        }
        AttrValue::RngAlgorithm(v) => m.int(i::RNG_ALGORITHM, enumerator(RNG_ALGORITHMS, *v).unwrap_or(0)),
        AttrValue::RngDistribution(v) => m.int(i::DISTRIBUTION, enumerator(DISTRIBUTIONS, *v).unwrap_or(0)),
        AttrValue::Direction(v) => m.text(i::COMPARISON_DIRECTION, v.text()),
        AttrValue::CompareType(v) => m.text(i::COMPARISON_TYPE, v.text()),
        AttrValue::FusionKind(v) => m.text(i::FUSION_KIND, v.text()),
        AttrValue::FftType(v) => m.int(i::FFT_TYPE, enumerator(FFT_TYPES, *v).unwrap_or(0)),
        AttrValue::Transpose(v) => {
            let options = m.child(i::TRIANGULAR_SOLVE_OPTIONS, &TRIANGULAR_SOLVE_OPTIONS);
            options.int(solve::TRANSPOSE_A, enumerator(TRANSPOSES, *v).unwrap_or(0));
        }
        AttrValue::PaddingType(v) => m.int(i::PADDING_TYPE, enumerator(PADDING_TYPES, *v).unwrap_or(0)),
        AttrValue::Schedule(v) => m.int(i::CUSTOM_CALL_SCHEDULE, enumerator(SCHEDULES, *v).unwrap_or(0)),
        AttrValue::ApiVersion(v) => {
            m.put_int(i::CUSTOM_CALL_API_VERSION, enumerator(API_VERSIONS, *v).unwrap_or(0))
        }
        AttrValue::ConvKind(v) => m.int(i::CONV_KIND, enumerator(CONV_KINDS, *v).unwrap_or(0)),
        // XLA derives it from the other attributes, and so do we.
        AttrValue::CollectiveMode(_) => {}
    }
    Ok(())
}

fn flag(key: AttrKey, v: bool, opcode: Opcode, m: &mut Message<'_>) -> Written<()> {
    let number = match key {
        AttrKey::IsHostTransfer => i::IS_HOST_TRANSFER,
        AttrKey::ConstrainLayout => i::CONSTRAIN_LAYOUT,
        AttrKey::UseGlobalDeviceIds => i::USE_GLOBAL_DEVICE_IDS,
        AttrKey::IsReverse => i::IS_REVERSE,
        AttrKey::IsStable => i::IS_STABLE,
        AttrKey::Largest => i::LARGEST,
        AttrKey::CustomCallHasSideEffect => i::CUSTOM_CALL_HAS_SIDE_EFFECT,
        AttrKey::IndicesAreSorted => i::INDICES_ARE_SORTED,
        AttrKey::UniqueIndices => i::UNIQUE_INDICES,
        AttrKey::IsComposite => i::IS_COMPOSITE,
        AttrKey::IsAssociative => {
            m.int(i::IS_ASSOCIATIVE, if v { tri_state::TRUE } else { tri_state::FALSE });
            return Ok(());
        }
        AttrKey::HasDynamicRoot if !v => return Ok(()),
        AttrKey::HasDynamicRoot => return Err(Missing("a root that is chosen at run time")),
        AttrKey::Lower if opcode == Opcode::Cholesky => {
            m.child(i::CHOLESKY_OPTIONS, &CHOLESKY_OPTIONS).bool(cholesky_options::LOWER, v);
            return Ok(());
        }
        AttrKey::LeftSide | AttrKey::Lower | AttrKey::UnitDiagonal => {
            let options = m.child(i::TRIANGULAR_SOLVE_OPTIONS, &TRIANGULAR_SOLVE_OPTIONS);
            let number = match key {
                AttrKey::LeftSide => solve::LEFT_SIDE,
                AttrKey::Lower => solve::LOWER,
                _ => solve::UNIT_DIAGONAL,
            };
            options.bool(number, v);
            return Ok(());
        }
        _ => return Err(Missing("this flag")),
    };
    m.bool(number, v);
    Ok(())
}

fn int(key: AttrKey, v: i64, opcode: Opcode, m: &mut Message<'_>) -> Written<()> {
    let number = match key {
        AttrKey::ParameterNumber => i::PARAMETER_NUMBER,
        AttrKey::FeatureIndex => i::FEATURE_INDEX,
        AttrKey::K => i::K,
        AttrKey::ChannelId => i::CHANNEL_ID,
        AttrKey::NumCarries => i::NUM_CARRIES,
        AttrKey::FeatureGroupCount => i::FEATURE_GROUP_COUNT,
        AttrKey::BatchGroupCount => i::BATCH_GROUP_COUNT,
        AttrKey::Index => i::TUPLE_INDEX,
        AttrKey::ExponentBits | AttrKey::MantissaBits if i32::try_from(v).is_err() => {
            return Err(Missing("a number of bits beyond 32-bit integers"));
        }
        AttrKey::ExponentBits => i::EXPONENT_BITS,
        AttrKey::MantissaBits => i::MANTISSA_BITS,
        AttrKey::Delta => i::DELTA,
        AttrKey::IotaDimension => {
            m.ints(i::DIMENSIONS, [v]);
            return Ok(());
        }
        AttrKey::InferredDimension => {
            if v != -1 {
                m.ints(i::DIMENSIONS, [v]);
            }
            return Ok(());
        }
        AttrKey::CrossProgramPrefetchIndex => {
            if i32::try_from(v).is_err() {
                return Err(Missing("an index beyond 32-bit integers"));
            }
            m.put_int(i::CROSS_PROGRAM_PREFETCH_INDEX, v);
            return Ok(());
        }
        AttrKey::IndexVectorDim if opcode == Opcode::Scatter => {
            m.child(i::SCATTER_DIMENSION_NUMBERS, &SCATTER_DIMENSION_NUMBERS)
                .int(scatter::INDEX_VECTOR_DIM, v);
            return Ok(());
        }
        AttrKey::IndexVectorDim => {
            m.child(i::GATHER_DIMENSION_NUMBERS, &GATHER_DIMENSION_NUMBERS).int(gather::INDEX_VECTOR_DIM, v);
            return Ok(());
        }
        // Where it says something, it is a frontend attribute: see `with_ordinal`.
        AttrKey::RngOrdinal => return Ok(()),
        _ => return Err(Missing("this number")),
    };
    m.int(number, v);
    Ok(())
}

fn ints(key: AttrKey, v: &[i64], opcode: Opcode, m: &mut Message<'_>) -> Written<()> {
    let (message, number) = match key {
        AttrKey::Dimensions => (m, i::DIMENSIONS),
        AttrKey::FftLength => (m, i::FFT_LENGTH),
        AttrKey::DynamicSliceSizes => (m, i::DYNAMIC_SLICE_SIZES),
        AttrKey::SliceSizes => (m, i::GATHER_SLICE_SIZES),
        AttrKey::LhsBatchDims => (dot_dims(opcode, m), dot::LHS_BATCH_DIMENSIONS),
        AttrKey::LhsContractingDims => (dot_dims(opcode, m), dot::LHS_CONTRACTING_DIMENSIONS),
        AttrKey::RhsBatchDims => (dot_dims(opcode, m), dot::RHS_BATCH_DIMENSIONS),
        AttrKey::RhsContractingDims => (dot_dims(opcode, m), dot::RHS_CONTRACTING_DIMENSIONS),
        AttrKey::LhsRaggedDims => (ragged_dims(m), ragged::LHS_RAGGED_DIMENSIONS),
        AttrKey::RhsGroupDims => (ragged_dims(m), ragged::RHS_GROUP_DIMENSIONS),
        AttrKey::OffsetDims => (gather_dims(m), gather::OFFSET_DIMS),
        AttrKey::CollapsedSliceDims => (gather_dims(m), gather::COLLAPSED_SLICE_DIMS),
        AttrKey::StartIndexMap => (gather_dims(m), gather::START_INDEX_MAP),
        AttrKey::OperandBatchingDims => (gather_dims(m), gather::OPERAND_BATCHING_DIMS),
        AttrKey::StartIndicesBatchingDims => (gather_dims(m), gather::START_INDICES_BATCHING_DIMS),
        AttrKey::UpdateWindowDims => (scatter_dims(m), scatter::UPDATE_WINDOW_DIMS),
        AttrKey::InsertedWindowDims => (scatter_dims(m), scatter::INSERTED_WINDOW_DIMS),
        AttrKey::ScatterDimsToOperandDims => (scatter_dims(m), scatter::SCATTER_DIMS_TO_OPERAND_DIMS),
        AttrKey::InputBatchingDims => (scatter_dims(m), scatter::INPUT_BATCHING_DIMS),
        AttrKey::ScatterIndicesBatchingDims => (scatter_dims(m), scatter::SCATTER_INDICES_BATCHING_DIMS),
        _ => return Err(Missing("this list")),
    };
    message.ints(number, v.iter().copied());
    Ok(())
}

/// The dimensions of a dot, which a ragged one has inside of its own.
fn dot_dims<'m, 'a>(opcode: Opcode, m: &'a mut Message<'m>) -> &'a mut Message<'m> {
    match opcode {
        Opcode::RaggedDot => ragged_dims(m).child(ragged::DOT_DIMENSION_NUMBERS, &DOT_DIMENSION_NUMBERS),
        _ => m.child(i::DOT_DIMENSION_NUMBERS, &DOT_DIMENSION_NUMBERS),
    }
}

fn ragged_dims<'m, 'a>(m: &'a mut Message<'m>) -> &'a mut Message<'m> {
    m.child(i::RAGGED_DOT_DIMENSION_NUMBERS, &RAGGED_DOT_DIMENSION_NUMBERS)
}

fn gather_dims<'m, 'a>(m: &'a mut Message<'m>) -> &'a mut Message<'m> {
    m.child(i::GATHER_DIMENSION_NUMBERS, &GATHER_DIMENSION_NUMBERS)
}

fn scatter_dims<'m, 'a>(m: &'a mut Message<'m>) -> &'a mut Message<'m> {
    m.child(i::SCATTER_DIMENSION_NUMBERS, &SCATTER_DIMENSION_NUMBERS)
}

fn precisions(of: &[Precision], m: &mut Message<'_>) {
    let numbers = of.iter().map(|&p| enumerator(PRECISIONS, p).unwrap_or(0));
    m.child(i::PRECISION_CONFIG, &PRECISION_CONFIG).ints(precision::OPERAND_PRECISION, numbers);
}

fn window<'m>(of: &Window) -> Message<'m> {
    let dims = of.dims.iter().map(|d| {
        let mut m = Message::new(&WINDOW_DIMENSION);
        m.int(w::SIZE, d.size);
        m.int(w::STRIDE, d.stride);
        m.int(w::PADDING_LOW, d.pad_low);
        m.int(w::PADDING_HIGH, d.pad_high);
        m.int(w::WINDOW_DILATION, d.window_dilation);
        m.int(w::BASE_DILATION, d.base_dilation);
        m.bool(w::WINDOW_REVERSAL, d.reversal);
        m
    });
    let mut m = Message::new(&WINDOW);
    m.messages(window::DIMENSIONS, dims.collect());
    m
}

fn conv_dims<'m>(of: &ConvDims) -> Written<Message<'m>> {
    if of.unknown.iter().any(|u| !u.is_empty()) {
        return Err(Missing("dimensions of a convolution without a role"));
    }
    let mut m = Message::new(&CONVOLUTION_DIMENSION_NUMBERS);
    m.int(conv::INPUT_BATCH_DIMENSION, of.input_batch);
    m.int(conv::INPUT_FEATURE_DIMENSION, of.input_feature);
    m.ints(conv::INPUT_SPATIAL_DIMENSIONS, of.input_spatial.iter().copied());
    m.int(conv::KERNEL_INPUT_FEATURE_DIMENSION, of.kernel_input_feature);
    m.int(conv::KERNEL_OUTPUT_FEATURE_DIMENSION, of.kernel_output_feature);
    m.ints(conv::KERNEL_SPATIAL_DIMENSIONS, of.kernel_spatial.iter().copied());
    m.int(conv::OUTPUT_BATCH_DIMENSION, of.output_batch);
    m.int(conv::OUTPUT_FEATURE_DIMENSION, of.output_feature);
    m.ints(conv::OUTPUT_SPATIAL_DIMENSIONS, of.output_spatial.iter().copied());
    Ok(m)
}

fn sparsity<'m>(of: &Sparsity) -> Written<Message<'m>> {
    let side = |s: &SparsitySide| {
        if s.idx.is_some() {
            return Err(Missing("the operand that holds the indices of a sparse one"));
        }
        let mut m = Message::new(&SPARSITY_CONFIG_TENSOR_SPARSITY_CONFIG);
        m.int(side::NUM_NON_ZERO, s.num_non_zero);
        m.int(side::BLOCK_SIZE, s.block_size);
        m.int(side::DIMENSION, s.dimension);
        m.int(side::STRIDE, s.stride.unwrap_or(0));
        Ok(m)
    };
    let mut m = Message::new(&SPARSITY_CONFIG);
    for (number, of) in [(sparsity_config::LHS, &of.lhs), (sparsity_config::RHS, &of.rhs)] {
        if let Some(of) = of {
            m.message(number, side(of)?);
        }
    }
    Ok(m)
}

/// The frontend attributes of an instruction with its ordinal among random ones.
pub(crate) fn with_ordinal(attrs: &Attrs, ordinal: i64) -> Message<'static> {
    let mut all = attrs.frontend_attributes().cloned().unwrap_or_default();
    all.entries.retain(|(name, _)| &**name != hlo::rng_ordinal::NAME);
    all.entries.push((hlo::rng_ordinal::NAME.into(), FrontendValue::Str(ordinal.to_string().into())));
    origin::frontend_attributes(&all).into_owned()
}
