//! Attributes: each key from the field that has its value.

use hlo::attrs::{
    CompareType, ConvDims, Direction, Domain, FusionKind, OperandAlias, PaddingDim, SliceDim, Sparsity,
    SparsitySide, Window, WindowDim,
};
use hlo::diag::codes::proto::*;
use hlo::{AttrKey, AttrValue, ComputationId, ConstantValue, ElementType, Opcode, Shape};

use super::{literal, origin, shape, sharding};
use crate::compare::default_type;
use crate::node::Node;
use crate::schema::devices::source_target;
use crate::schema::modules::{hlo_instruction as i, hlo_instruction_slice_dimensions as slice};
use crate::schema::operations::{
    cholesky_options, convolution_dimension_numbers as conv, dot_dimension_numbers as dot,
    gather_dimension_numbers as gather, output_operand_aliasing as alias, padding_config,
    padding_config_padding_config_dimension as padding, parameter_replication, precision_config as precision,
    ragged_dot_dimension_numbers as ragged, scatter_dimension_numbers as scatter, sparsity_config,
    sparsity_config_tensor_sparsity_config as side, triangular_solve_options as solve, window,
    window_dimension as w,
};
use crate::tables::*;
use crate::wire::Res;

/// What the attributes of an instruction depend on in addition to its message.
pub(crate) struct Around<'a> {
    pub(crate) opcode: Opcode,
    pub(crate) shape: &'a Shape,
    /// The element type of the first operand, if that is an array.
    pub(crate) operand_type: Option<ElementType>,
    pub(crate) called: &'a [ComputationId],
    pub(crate) payloads: &'a [Box<str>],
}

/// The value of an attribute; `None` if the message says nothing beyond the default.
pub(crate) fn attribute(key: AttrKey, n: Node<'_>, around: &Around<'_>) -> Res<Option<AttrValue>> {
    let opcode = around.opcode;
    // A flag that is false says nothing.
    let flag = |number| Res::Ok(n.bool(number).then_some(AttrValue::Bool(true)));
    let int = |number| Res::Ok(Some(AttrValue::Int(n.int(number))));
    let ints = |number| Res::Ok(Some(AttrValue::Ints(n.ints(number)?)));
    let computation = |index: usize| Res::Ok(around.called.get(index).map(|&c| AttrValue::Computation(c)));
    match key {
        AttrKey::ConstantValue => Ok(Some(AttrValue::Literal(match n.child(i::LITERAL, literal::literal) {
            Some(literal) => ConstantValue::Given(literal?.1.into()),
            None => ConstantValue::Elided,
        }))),
        AttrKey::ParameterNumber => int(i::PARAMETER_NUMBER),
        AttrKey::ParameterReplication => {
            let flags = n.child(i::PARAMETER_REPLICATION, |n| {
                n.bools(parameter_replication::REPLICATED_AT_LEAF_BUFFERS)
            });
            Ok(flags.transpose()?.filter(|f| !f.is_empty()).map(|f| AttrValue::Bools(f.into())))
        }
        AttrKey::Epsilon => Ok(Some(AttrValue::Float(widened(n.float(i::EPSILON))))),
        AttrKey::FeatureIndex => int(i::FEATURE_INDEX),
        AttrKey::FftType => Ok(Some(AttrValue::FftType(n.choice(i::FFT_TYPE, FFT_TYPES)?))),
        AttrKey::FftLength => ints(i::FFT_LENGTH),
        AttrKey::Direction => {
            let word = n.text(i::COMPARISON_DIRECTION);
            let message = || format!("there is no direction \"{}\"", word.escape_debug());
            Direction::from_text(word)
                .map(|d| Some(AttrValue::Direction(d)))
                .ok_or_else(|| n.error(PROTO_BAD_VALUE, i::COMPARISON_DIRECTION, message()))
        }
        AttrKey::CompareType => {
            let word = n.text(i::COMPARISON_TYPE);
            if word.is_empty() {
                return Ok(None);
            }
            let message = || format!("there is no type of comparison \"{}\"", word.escape_debug());
            let ty = CompareType::from_text(word)
                .ok_or_else(|| n.error(PROTO_BAD_VALUE, i::COMPARISON_TYPE, message()))?;
            Ok((around.operand_type.map(default_type) != Some(ty)).then_some(AttrValue::CompareType(ty)))
        }
        AttrKey::LeftSide => option(n, solve::LEFT_SIDE),
        AttrKey::Lower if opcode == Opcode::Cholesky => {
            let lower = n.child(i::CHOLESKY_OPTIONS, |n| n.bool(cholesky_options::LOWER));
            Ok(lower.filter(|&l| l).map(AttrValue::Bool))
        }
        AttrKey::Lower => option(n, solve::LOWER),
        AttrKey::UnitDiagonal => option(n, solve::UNIT_DIAGONAL),
        AttrKey::TransposeA => {
            let read = |n: Node<'_>| match n.int(solve::TRANSPOSE_A) {
                0 => Ok(None),
                _ => n.choice(solve::TRANSPOSE_A, TRANSPOSES).map(|t| Some(AttrValue::Transpose(t))),
            };
            n.child(i::TRIANGULAR_SOLVE_OPTIONS, read).unwrap_or(Ok(None))
        }
        AttrKey::K => int(i::K),
        AttrKey::Largest => Ok(Some(AttrValue::Bool(n.bool(i::LARGEST)))),
        AttrKey::ChannelId => Ok(n.nonzero(i::CHANNEL_ID).filter(|&c| c > 0).map(AttrValue::Int)),
        AttrKey::IsHostTransfer => flag(i::IS_HOST_TRANSFER),
        AttrKey::ReplicaGroups => Ok(Some(AttrValue::ReplicaGroups(Box::new(sharding::replica_groups(n)?)))),
        AttrKey::SourceTargetPairs => {
            let pairs = n.children(i::SOURCE_TARGET_PAIRS, |n| {
                Ok([n.int(source_target::SOURCE), n.int(source_target::TARGET)].as_slice().into())
            })?;
            Ok(Some(AttrValue::IntLists(pairs.into())))
        }
        AttrKey::ConstrainLayout => flag(i::CONSTRAIN_LAYOUT),
        // XLA has no field for these.
        AttrKey::PermuteSliceSizes
        | AttrKey::HasDynamicRoot
        | AttrKey::CollectiveMode
        | AttrKey::RngOrdinal => Ok(None),
        AttrKey::Dimensions => {
            let dimensions = n.ints(i::DIMENSIONS)?;
            // Optional where text may leave them out.
            let absent = dimensions.is_empty() && matches!(opcode, Opcode::AllToAll | Opcode::RaggedAllToAll);
            Ok((!absent).then_some(AttrValue::Ints(dimensions)))
        }
        AttrKey::UseGlobalDeviceIds => flag(i::USE_GLOBAL_DEVICE_IDS),
        AttrKey::NumCarries => int(i::NUM_CARRIES),
        AttrKey::IsReverse => flag(i::IS_REVERSE),
        AttrKey::IsAssociative => match n.int(i::IS_ASSOCIATIVE) {
            0 => Ok(None),
            tri_state::TRUE => Ok(Some(AttrValue::Bool(true))),
            tri_state::FALSE => Ok(Some(AttrValue::Bool(false))),
            other => Err(n.bad_enumerator(i::IS_ASSOCIATIVE, other)),
        },
        AttrKey::IsStable => flag(i::IS_STABLE),
        AttrKey::IotaDimension => match n.int_list(i::DIMENSIONS)?[..] {
            [d] => Ok(Some(AttrValue::Int(d))),
            _ => Err(n.error(PROTO_BAD_VALUE, i::DIMENSIONS, "an iota has one dimension")),
        },
        AttrKey::InferredDimension => match n.int_list(i::DIMENSIONS)?[..] {
            [] | [-1] => Ok(None),
            [d] => Ok(Some(AttrValue::Int(d))),
            _ => Err(n.error(PROTO_BAD_VALUE, i::DIMENSIONS, "a reshape has at most one inferred dimension")),
        },
        AttrKey::Window => {
            let window = n.child(i::WINDOW, |n| n.children(window::DIMENSIONS, window_dim)).transpose()?;
            let window = window.filter(|dims| !dims.is_empty());
            Ok(window.map(|dims| AttrValue::Window(Box::new(Window { dims: dims.into() }))))
        }
        AttrKey::DimLabels => {
            let dims = n.child(i::CONVOLUTION_DIMENSION_NUMBERS, conv_dims).transpose()?;
            Ok(dims.map(|d| AttrValue::ConvDims(Box::new(d))))
        }
        AttrKey::FeatureGroupCount => {
            Ok(n.nonzero(i::FEATURE_GROUP_COUNT).filter(|&c| c != 1).map(AttrValue::Int))
        }
        AttrKey::BatchGroupCount => {
            Ok(n.nonzero(i::BATCH_GROUP_COUNT).filter(|&c| c != 1).map(AttrValue::Int))
        }
        AttrKey::ConvKind => nondefault(n, i::CONV_KIND, CONV_KINDS, AttrValue::ConvKind),
        AttrKey::LhsBatchDims => dot_dims(n, dot::LHS_BATCH_DIMENSIONS, false),
        AttrKey::LhsContractingDims => dot_dims(n, dot::LHS_CONTRACTING_DIMENSIONS, true),
        AttrKey::RhsBatchDims => dot_dims(n, dot::RHS_BATCH_DIMENSIONS, false),
        AttrKey::RhsContractingDims => dot_dims(n, dot::RHS_CONTRACTING_DIMENSIONS, true),
        AttrKey::LhsRaggedDims => {
            inner_ints(n, i::RAGGED_DOT_DIMENSION_NUMBERS, ragged::LHS_RAGGED_DIMENSIONS, true)
        }
        AttrKey::RhsGroupDims => {
            inner_ints(n, i::RAGGED_DOT_DIMENSION_NUMBERS, ragged::RHS_GROUP_DIMENSIONS, false)
        }
        AttrKey::OperandPrecision => {
            let read = |n: Node<'_>| -> Res<_> {
                let each = n.int_list(precision::OPERAND_PRECISION)?.into_iter().map(|p| {
                    let found = PRECISIONS.iter().find(|c| i64::from(c.0) == p).map(|c| c.1);
                    found.ok_or_else(|| n.bad_enumerator(precision::OPERAND_PRECISION, p))
                });
                each.collect::<Res<Vec<_>>>()
            };
            let precisions = n.child(i::PRECISION_CONFIG, read).transpose()?;
            let precisions = precisions.filter(|p| p.iter().any(|&p| p != hlo::attrs::Precision::Default));
            Ok(precisions.map(|p| AttrValue::Precisions(p.into())))
        }
        AttrKey::DotAlgorithm => {
            let read =
                |n: Node<'_>| nondefault(n, precision::ALGORITHM, DOT_ALGORITHMS, AttrValue::DotAlgorithm);
            n.child(i::PRECISION_CONFIG, read).unwrap_or(Ok(None))
        }
        AttrKey::SparsityConfig => {
            let read = |n: Node<'_>| Sparsity {
                lhs: n.child(sparsity_config::LHS, sparsity_side),
                rhs: n.child(sparsity_config::RHS, sparsity_side),
            };
            let sparsity = n.child(i::SPARSITY_CONFIG, read).filter(|s| *s != Sparsity::default());
            Ok(sparsity.map(|s| AttrValue::Sparsity(Box::new(s))))
        }
        AttrKey::PaddingType => nondefault(n, i::PADDING_TYPE, PADDING_TYPES, AttrValue::PaddingType),
        AttrKey::CustomCallTarget => Ok(Some(AttrValue::Str(n.text(i::CUSTOM_CALL_TARGET).into()))),
        AttrKey::OperandLayoutConstraints => {
            let shapes = n.children(i::OPERAND_SHAPES_WITH_LAYOUT, shape::shape)?;
            Ok(n.bool(i::CONSTRAIN_LAYOUT).then(|| AttrValue::Shapes(shapes.into())))
        }
        AttrKey::CustomCallHasSideEffect => flag(i::CUSTOM_CALL_HAS_SIDE_EFFECT),
        AttrKey::Literal => {
            let literal = n.child(i::LITERAL, literal::literal).transpose()?;
            Ok(literal.map(|l| AttrValue::Literal(ConstantValue::Given(l.1.into()))))
        }
        AttrKey::AsyncExecutionThread => {
            Ok(n.given_text(i::ASYNC_EXECUTION_THREAD).filter(|t| &**t != "main").map(AttrValue::Str))
        }
        AttrKey::FusionKind => {
            let word = n.text(i::FUSION_KIND);
            let message = || format!("there is no kind of fusion \"{}\"", word.escape_debug());
            FusionKind::from_text(word)
                .map(|k| Some(AttrValue::FusionKind(k)))
                .ok_or_else(|| n.error(PROTO_BAD_VALUE, i::FUSION_KIND, message()))
        }
        AttrKey::OutputToOperandAliasing => {
            let aliases = n.children(i::OUTPUT_OPERAND_ALIASING, |n| {
                Ok(OperandAlias {
                    output_index: n.ints(alias::OUTPUT_SHAPE_INDEX)?,
                    operand: n.int(alias::OPERAND_INDEX),
                    operand_index: n.ints(alias::OPERAND_SHAPE_INDEX)?,
                })
            })?;
            Ok((!aliases.is_empty()).then(|| AttrValue::OperandAliasing(aliases.into())))
        }
        AttrKey::Schedule => nondefault(n, i::CUSTOM_CALL_SCHEDULE, SCHEDULES, AttrValue::Schedule),
        AttrKey::ApiVersion => {
            // Absent, it is the first one.
            let version = n.choice(i::CUSTOM_CALL_API_VERSION, API_VERSIONS)?;
            let original = version == hlo::attrs::ApiVersion::Original;
            Ok((n.has(i::CUSTOM_CALL_API_VERSION) && !original).then_some(AttrValue::ApiVersion(version)))
        }
        AttrKey::Slice => {
            let dims = n.children(i::SLICE_DIMENSIONS, |n| {
                Ok(SliceDim {
                    start: n.int(slice::START),
                    limit: n.int(slice::LIMIT),
                    stride: n.int(slice::STRIDE),
                })
            })?;
            Ok(Some(AttrValue::Slices(dims.into())))
        }
        AttrKey::DynamicSliceSizes => ints(i::DYNAMIC_SLICE_SIZES),
        AttrKey::Padding => {
            let dims = n.required(i::PADDING_CONFIG, |n| {
                n.children(padding_config::DIMENSIONS, |n| {
                    Ok(PaddingDim {
                        low: n.int(padding::EDGE_PADDING_LOW),
                        high: n.int(padding::EDGE_PADDING_HIGH),
                        interior: n.int(padding::INTERIOR_PADDING),
                    })
                })
            })?;
            Ok(Some(AttrValue::Padding(dims.into())))
        }
        AttrKey::OffsetDims => inner_ints(n, i::GATHER_DIMENSION_NUMBERS, gather::OFFSET_DIMS, true),
        AttrKey::CollapsedSliceDims => {
            inner_ints(n, i::GATHER_DIMENSION_NUMBERS, gather::COLLAPSED_SLICE_DIMS, true)
        }
        AttrKey::StartIndexMap => inner_ints(n, i::GATHER_DIMENSION_NUMBERS, gather::START_INDEX_MAP, true),
        AttrKey::OperandBatchingDims => {
            inner_ints(n, i::GATHER_DIMENSION_NUMBERS, gather::OPERAND_BATCHING_DIMS, false)
        }
        AttrKey::StartIndicesBatchingDims => {
            inner_ints(n, i::GATHER_DIMENSION_NUMBERS, gather::START_INDICES_BATCHING_DIMS, false)
        }
        AttrKey::UpdateWindowDims => {
            inner_ints(n, i::SCATTER_DIMENSION_NUMBERS, scatter::UPDATE_WINDOW_DIMS, true)
        }
        AttrKey::InsertedWindowDims => {
            inner_ints(n, i::SCATTER_DIMENSION_NUMBERS, scatter::INSERTED_WINDOW_DIMS, true)
        }
        AttrKey::ScatterDimsToOperandDims => {
            inner_ints(n, i::SCATTER_DIMENSION_NUMBERS, scatter::SCATTER_DIMS_TO_OPERAND_DIMS, true)
        }
        AttrKey::InputBatchingDims => {
            inner_ints(n, i::SCATTER_DIMENSION_NUMBERS, scatter::INPUT_BATCHING_DIMS, false)
        }
        AttrKey::ScatterIndicesBatchingDims => {
            inner_ints(n, i::SCATTER_DIMENSION_NUMBERS, scatter::SCATTER_INDICES_BATCHING_DIMS, false)
        }
        AttrKey::IndexVectorDim if opcode == Opcode::Scatter => n
            .required(i::SCATTER_DIMENSION_NUMBERS, |n| {
                Ok(Some(AttrValue::Int(n.int(scatter::INDEX_VECTOR_DIM))))
            }),
        AttrKey::IndexVectorDim => n.required(i::GATHER_DIMENSION_NUMBERS, |n| {
            Ok(Some(AttrValue::Int(n.int(gather::INDEX_VECTOR_DIM))))
        }),
        AttrKey::SliceSizes => ints(i::GATHER_SLICE_SIZES),
        AttrKey::IndicesAreSorted => flag(i::INDICES_ARE_SORTED),
        AttrKey::UniqueIndices => flag(i::UNIQUE_INDICES),
        AttrKey::Index => int(i::TUPLE_INDEX),
        AttrKey::ExponentBits => int(i::EXPONENT_BITS),
        AttrKey::MantissaBits => int(i::MANTISSA_BITS),
        AttrKey::Distribution => {
            Ok(Some(AttrValue::RngDistribution(n.choice(i::DISTRIBUTION, DISTRIBUTIONS)?)))
        }
        AttrKey::Delta => int(i::DELTA),
        AttrKey::RngAlgorithm => {
            Ok(Some(AttrValue::RngAlgorithm(n.choice(i::RNG_ALGORITHM, RNG_ALGORITHMS)?)))
        }
        AttrKey::InfeedConfig => nonempty(n, i::INFEED_CONFIG),
        AttrKey::OutfeedConfig => nonempty(n, i::OUTFEED_CONFIG),
        AttrKey::OutfeedShape => {
            Ok(n.child(i::OUTFEED_SHAPE, shape::shape).transpose()?.map(|s| AttrValue::Shape(Box::new(s))))
        }
        AttrKey::CrossProgramPrefetchIndex => {
            Ok(n.given_int(i::CROSS_PROGRAM_PREFETCH_INDEX).map(AttrValue::Int))
        }
        AttrKey::Domain => {
            let side = |number| n.required(number, |n| sharding::sharding(n, around.payloads));
            let (entry, exit) = (side(i::DOMAIN_ENTRY_SHARDING)?, side(i::DOMAIN_EXIT_SHARDING)?);
            Ok(Some(AttrValue::Domain(Box::new(Domain { kind: "sharding".into(), entry, exit }))))
        }
        AttrKey::Body | AttrKey::Select => computation(0),
        AttrKey::Condition | AttrKey::Scatter => computation(1),
        AttrKey::TrueComputation if by_predicate(around) => computation(0),
        AttrKey::FalseComputation if by_predicate(around) => computation(1),
        AttrKey::TrueComputation | AttrKey::FalseComputation => Ok(None),
        AttrKey::BranchComputations if by_predicate(around) => Ok(None),
        // Of a custom call both forms are the same list; XLA prints this one.
        AttrKey::ToApply if opcode == Opcode::CustomCall => Ok(None),
        AttrKey::ToApply | AttrKey::Calls => computation(0),
        AttrKey::BranchComputations | AttrKey::CalledComputations => {
            Ok((!around.called.is_empty()).then(|| AttrValue::Computations(around.called.into())))
        }
        AttrKey::IsComposite => flag(i::IS_COMPOSITE),
        AttrKey::Sharding => {
            let sharding = n.child(i::SHARDING, |n| sharding::sharding(n, around.payloads)).transpose()?;
            Ok(sharding.map(|s| AttrValue::Sharding(Box::new(s))))
        }
        AttrKey::FrontendAttributes => {
            let attributes = n.child(i::FRONTEND_ATTRIBUTES, origin::frontend_attributes).transpose()?;
            Ok(attributes
                .filter(|a| !a.entries.is_empty())
                .map(|a| AttrValue::FrontendAttributes(Box::new(a))))
        }
        AttrKey::Statistics => {
            let statistics = n.child(i::STATISTICS_VIZ, origin::statistics).transpose()?;
            Ok(statistics.filter(|s| !s.values.is_empty()).map(|s| AttrValue::Statistics(Box::new(s))))
        }
        AttrKey::ResultAccuracy => {
            let accuracy = n.child(i::RESULT_ACCURACY, origin::result_accuracy).transpose()?.flatten();
            Ok(accuracy.filter(|a| *a != hlo::attrs::ResultAccuracy::Default).map(AttrValue::ResultAccuracy))
        }
        AttrKey::Origin => {
            let value =
                n.child(i::ORIGINAL_VALUE, |n| origin::original_value(n, around.shape)).transpose()?;
            Ok(value.map(|v| AttrValue::OriginalValue(Box::new(v))))
        }
        AttrKey::Metadata => {
            let metadata = n.child(i::METADATA, |n| origin::metadata(n, around.payloads)).transpose()?;
            Ok(metadata.filter(|m| *m != Default::default()).map(|m| AttrValue::Metadata(Box::new(m))))
        }
        AttrKey::BackendConfig => {
            let mut bytes = n.bytes(i::BACKEND_CONFIG);
            let pooled;
            if bytes.is_empty() {
                pooled = n
                    .child(i::BACKEND_CONFIG_PAYLOAD, |n| origin::payload(n, around.payloads))
                    .transpose()?
                    .unwrap_or_default();
                bytes = pooled.as_bytes();
            }
            Ok((!bytes.is_empty()).then(|| AttrValue::BackendConfig(Box::new(origin::backend_config(bytes)))))
        }
    }
}

/// Whether a conditional chooses by a predicate, and not by a number.
fn by_predicate(around: &Around<'_>) -> bool {
    around.operand_type == Some(ElementType::Pred) && around.called.len() == 2
}

/// The decimal that means this number: text has `0.001`, not the digits of the float nearest to it.
fn widened(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

fn nonempty(n: Node<'_>, number: u32) -> Res<Option<AttrValue>> {
    let bytes = n.bytes(number);
    Ok((!bytes.is_empty()).then(|| AttrValue::Str(origin::string_of(bytes))))
}

/// A word, unless it is the first one, which is meant by its absence.
fn nondefault<T: Copy>(
    n: Node<'_>,
    number: u32,
    choices: &Choices<T>,
    wrap: impl Fn(T) -> AttrValue,
) -> Res<Option<AttrValue>> {
    if n.int(number) == 0 {
        return Ok(None);
    }
    n.choice(number, choices).map(|v| Some(wrap(v)))
}

/// An option of a triangular solve.
fn option(n: Node<'_>, number: u32) -> Res<Option<AttrValue>> {
    Ok(n.child(i::TRIANGULAR_SOLVE_OPTIONS, |n| n.bool(number)).filter(|&v| v).map(AttrValue::Bool))
}

/// A list in a message of the instruction; an empty one says something only if the text must have it.
fn inner_ints(n: Node<'_>, message: u32, number: u32, required: bool) -> Res<Option<AttrValue>> {
    let list = n.child(message, |n| n.ints(number)).transpose()?;
    match list {
        Some(list) => Ok((required || !list.is_empty()).then_some(AttrValue::Ints(list))),
        None if required => Err(n.missing(message)),
        None => Ok(None),
    }
}

/// The same of the dimensions of a dot, which a ragged one has inside of its own.
fn dot_dims(n: Node<'_>, number: u32, required: bool) -> Res<Option<AttrValue>> {
    match n.child(i::RAGGED_DOT_DIMENSION_NUMBERS, |n| {
        inner_ints(n, ragged::DOT_DIMENSION_NUMBERS, number, required)
    }) {
        Some(inner) => inner,
        None => inner_ints(n, i::DOT_DIMENSION_NUMBERS, number, required),
    }
}

fn window_dim(n: Node<'_>) -> Res<WindowDim> {
    Ok(WindowDim {
        size: n.int(w::SIZE),
        stride: n.int(w::STRIDE),
        pad_low: n.int(w::PADDING_LOW),
        pad_high: n.int(w::PADDING_HIGH),
        base_dilation: n.int(w::BASE_DILATION),
        window_dilation: n.int(w::WINDOW_DILATION),
        reversal: n.bool(w::WINDOW_REVERSAL),
    })
}

fn conv_dims(n: Node<'_>) -> Res<ConvDims> {
    Ok(ConvDims {
        input_batch: n.int(conv::INPUT_BATCH_DIMENSION),
        input_feature: n.int(conv::INPUT_FEATURE_DIMENSION),
        input_spatial: n.ints(conv::INPUT_SPATIAL_DIMENSIONS)?,
        kernel_input_feature: n.int(conv::KERNEL_INPUT_FEATURE_DIMENSION),
        kernel_output_feature: n.int(conv::KERNEL_OUTPUT_FEATURE_DIMENSION),
        kernel_spatial: n.ints(conv::KERNEL_SPATIAL_DIMENSIONS)?,
        output_batch: n.int(conv::OUTPUT_BATCH_DIMENSION),
        output_feature: n.int(conv::OUTPUT_FEATURE_DIMENSION),
        output_spatial: n.ints(conv::OUTPUT_SPATIAL_DIMENSIONS)?,
        unknown: Default::default(),
    })
}

fn sparsity_side(n: Node<'_>) -> SparsitySide {
    SparsitySide {
        num_non_zero: n.int(side::NUM_NON_ZERO),
        block_size: n.int(side::BLOCK_SIZE),
        dimension: n.int(side::DIMENSION),
        stride: n.nonzero(side::STRIDE),
        idx: None,
    }
}
