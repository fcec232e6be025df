//! Values of attributes: one function for each kind, reached by one exhaustive `match`.

pub(crate) mod alias;
pub(crate) mod collective;
pub(crate) mod lists;
pub(crate) mod metadata;
pub(crate) mod misc;
pub(crate) mod sharding;
pub(crate) mod window;
pub(crate) mod words;

use hlo::diag::codes::parse as codes;
use hlo::{AttrKey, AttrKind, AttrValue, Shape};

use crate::cursor::{Cursor, Res};

/// Decodes the value of `key`, up to its end. `None` for the kinds that name computations: lowering resolves
/// those.
pub(crate) fn decode(c: &mut Cursor<'_>, key: AttrKey) -> Res<Option<AttrValue>> {
    let value = match key.kind() {
        AttrKind::Bool => AttrValue::Bool(c.bool()?),
        AttrKind::Int => AttrValue::Int(c.int()?),
        AttrKind::Float => AttrValue::Float(c.float()?),
        AttrKind::Str => AttrValue::Str(c.string(codes::BAD_STRING)?.into()),
        AttrKind::Ints => AttrValue::Ints(c.ints(b'{', b'}', codes::BAD_LIST)?),
        AttrKind::IntLists => AttrValue::IntLists(lists::int_lists(c)?),
        AttrKind::Bools => AttrValue::Bools(lists::bools(c)?.into()),
        AttrKind::Computation | AttrKind::Computations => return Ok(None),
        AttrKind::Literal => AttrValue::Literal(crate::literal::with_shape(c)?.1),
        AttrKind::Shape => AttrValue::Shape(Box::new(crate::shape::shape(c)?)),
        AttrKind::Shapes => {
            let mut shapes: Vec<Shape> = Vec::new();
            c.list(b'{', b'}', codes::BAD_LIST, |c| {
                shapes.push(crate::shape::shape(c)?);
                Ok(())
            })?;
            AttrValue::Shapes(shapes.into())
        }
        AttrKind::Window => AttrValue::Window(Box::new(window::window(c)?)),
        AttrKind::ConvDims => AttrValue::ConvDims(Box::new(window::conv_dims(c)?)),
        AttrKind::Padding => AttrValue::Padding(window::padding(c)?),
        AttrKind::Slices => AttrValue::Slices(window::slices(c)?),
        AttrKind::ReplicaGroups => AttrValue::ReplicaGroups(Box::new(collective::replica_groups(c)?)),
        AttrKind::OperandAliasing => AttrValue::OperandAliasing(alias::operand_aliasing(c)?),
        AttrKind::Sharding => AttrValue::Sharding(Box::new(sharding::sharding(c)?)),
        AttrKind::FrontendAttributes => {
            AttrValue::FrontendAttributes(Box::new(metadata::frontend_attributes(c)?))
        }
        AttrKind::Metadata => AttrValue::Metadata(Box::new(metadata::metadata(c)?)),
        AttrKind::BackendConfig => AttrValue::BackendConfig(Box::new(metadata::backend_config(c)?)),
        AttrKind::OriginalValue => AttrValue::OriginalValue(Box::new(metadata::original_value(c)?)),
        AttrKind::Statistics => AttrValue::Statistics(Box::new(metadata::statistics(c)?)),
        AttrKind::ResultAccuracy => AttrValue::ResultAccuracy(misc::result_accuracy(c)?),
        AttrKind::Sparsity => AttrValue::Sparsity(Box::new(misc::sparsity(c)?)),
        AttrKind::Domain => AttrValue::Domain(Box::new(misc::domain(c)?)),
        AttrKind::Precisions => {
            let mut precisions = Vec::new();
            c.list(b'{', b'}', codes::BAD_LIST, |c| {
                precisions.push(words::word(c)?);
                Ok(())
            })?;
            AttrValue::Precisions(precisions.into())
        }
        AttrKind::DotAlgorithm => AttrValue::DotAlgorithm(words::word(c)?),
        AttrKind::RngAlgorithm => AttrValue::RngAlgorithm(words::word(c)?),
        AttrKind::RngDistribution => AttrValue::RngDistribution(words::word(c)?),
        AttrKind::Direction => AttrValue::Direction(words::word(c)?),
        AttrKind::CompareType => AttrValue::CompareType(words::word(c)?),
        AttrKind::FusionKind => AttrValue::FusionKind(words::word(c)?),
        AttrKind::FftType => AttrValue::FftType(words::word(c)?),
        AttrKind::Transpose => AttrValue::Transpose(words::word(c)?),
        AttrKind::PaddingType => AttrValue::PaddingType(words::word(c)?),
        AttrKind::Schedule => AttrValue::Schedule(words::word(c)?),
        AttrKind::ApiVersion => AttrValue::ApiVersion(words::word(c)?),
        AttrKind::ConvKind => AttrValue::ConvKind(words::word(c)?),
        AttrKind::CollectiveMode => AttrValue::CollectiveMode(words::word(c)?),
    };
    Ok(Some(value))
}
