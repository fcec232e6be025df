//! Attributes and types of VHLO, into those of StableHLO and the builtin dialect that they stand for.

use super::super::codes::vhlo as code;
use super::super::cursor::Fallible;
use super::super::decode::Decoder;
use super::builtin::{self, sizes, tensor};
use super::elements;
use super::entries::{Entries, Slot};
use crate::ir::{AttrId, Attribute, FloatType, NamedAttribute, QuantizedType, Signedness, Type, TypeId};

/// An attribute whose parts are in the tree.
pub(super) fn attribute(e: &mut Entries<'_, '_>, d: &Decoder<'_>) -> Fallible<AttrId> {
    let attribute = match d.encoding.code {
        c if c == code::ARRAY.code => Attribute::Array(e.attributes(d.attrs(0))),
        c if c == code::BOOL.code => match d.number(0) {
            0 => Attribute::Bool(false),
            1 => Attribute::Bool(true),
            n => return Err(d.error(format!("{n} is neither 0 nor 1"))),
        },
        c if c == code::API_VERSION.code => {
            // StableHLO has this enumeration as an integer.
            let number =
                code::API_VERSIONS.number(d.case(0)).expect("invariant: decoded from the same table");
            let ty = e.module.ty(Type::Integer { width: 32, sign: Signedness::Signless });
            Attribute::Integer { value: number.into(), ty }
        }
        c if c == code::COMPARISON_DIRECTION.code => enumeration(e, d, code::COMPARISON_DIRECTIONS.name),
        c if c == code::COMPARISON_TYPE.code => enumeration(e, d, code::COMPARISON_TYPES.name),
        c if c == code::FFT_TYPE.code => enumeration(e, d, code::FFT_TYPES.name),
        c if c == code::PRECISION.code => enumeration(e, d, code::PRECISIONS.name),
        c if c == code::RNG_ALGORITHM.code => enumeration(e, d, code::RNG_ALGORITHMS.name),
        c if c == code::RNG_DISTRIBUTION.code => enumeration(e, d, code::RNG_DISTRIBUTIONS.name),
        c if c == code::TRANSPOSE.code => enumeration(e, d, code::TRANSPOSES.name),
        c if c == code::RESULT_ACCURACY_MODE.code => enumeration(e, d, code::ACCURACY_MODES.name),
        c if c == code::DICTIONARY.code => Attribute::Dictionary(builtin::dictionary(e, d, d.attrs(0))?),
        c if c == code::FLOAT.code => builtin::float(e, d)?,
        c if c == code::INTEGER.code => builtin::integer(e, d)?,
        c if c == code::OUTPUT_OPERAND_ALIAS.code => {
            let parts = [
                ("output_tuple_indices", integers(e, d.signed_list(0))),
                ("operand_index", integer(e, d.signed(1))),
                ("operand_tuple_indices", integers(e, d.signed_list(2))),
            ];
            record(e, "stablehlo.output_operand_alias", &parts)
        }
        c if c == code::STRING.code => builtin::string(e.bytes(d.text(0)), None),
        c if c == code::TENSOR.code => elements::dense(e, d)?,
        c if c == code::TYPE.code => Attribute::Type(e.ty(d.ty(0))),
        c if c == code::TYPE_EXTENSIONS.code => {
            let bounds = integers(e, d.signed_list(0));
            record(e, "stablehlo.bounds", &[("bounds", bounds)])
        }
        c if c == code::RESULT_ACCURACY.code => {
            // Zeros are left out, as in text.
            let mut parts = Vec::with_capacity(4);
            for (name, bits) in [("atol", d.number(0)), ("rtol", d.number(1))] {
                if bits != 0 {
                    parts.push((name, double(e, bits)));
                }
            }
            if d.signed(2) != 0 {
                parts.push(("ulps", integer(e, d.signed(2))));
            }
            parts.push(("mode", e.attribute(d.attr(3))));
            record(e, "stablehlo.result_accuracy", &parts)
        }
        // In text a sub-axis is a pair, and only stands in a reference to an axis.
        c if c == code::SUB_AXIS.code => return Ok(integers(e, &[d.signed(0), d.signed(1)])),
        c if c == code::AXIS_REF.code => {
            let name = name(e, d, d.attr(0))?;
            match d.optional_attr(1) {
                None => record(e, "stablehlo.axis_ref", &[("name", name)]),
                Some(sub) => {
                    let sub = e.attribute(sub);
                    record(e, "stablehlo.axis_ref", &[("name", name), ("sub_axis_info", sub)])
                }
            }
        }
        c if c == code::REPLICA_GROUP_MESH_AXES.code => {
            let mut mesh = e.attribute(d.attr(0));
            if let Attribute::String { text, ty: None } = e.module.get_attribute(mesh).clone() {
                let root = e.module.name(&text);
                mesh = e.module.attribute(Attribute::Symbol { root, nested: Box::default() });
            }
            let axes = e.attribute(d.attr(1));
            record(e, "stablehlo.replica_group_mesh_axes", &[("mesh", mesh), ("axes", axes)])
        }
        c if c == code::MESH_AXIS.code => {
            let parts = [("name", name(e, d, d.attr(0))?), ("size", integer(e, d.signed(1)))];
            record(e, "stablehlo.mesh_axis", &parts)
        }
        c if c == code::MESH.code => {
            let axes = e.attribute(d.attr(0));
            match d.optional_attr(1) {
                None => record(e, "stablehlo.mesh", &[("axes", axes)]),
                Some(ids) => {
                    let ids = e.attribute(ids);
                    record(e, "stablehlo.mesh", &[("axes", axes), ("device_ids", ids)])
                }
            }
        }
        _ => unreachable!("invariant: all codes of the table are above"),
    };
    Ok(e.module.attribute(attribute))
}

fn enumeration(e: &mut Entries<'_, '_>, d: &Decoder<'_>, name: &str) -> Attribute {
    Attribute::Enum { name: e.module.name(&format!("stablehlo.{name}")), value: e.module.name(d.case(0)) }
}

fn record(e: &mut Entries<'_, '_>, name: &str, parts: &[(&str, AttrId)]) -> Attribute {
    let parameters =
        parts.iter().map(|&(name, value)| NamedAttribute { name: e.module.name(name), value }).collect();
    Attribute::Dialect { name: e.module.name(name), parameters }
}

fn integer(e: &mut Entries<'_, '_>, value: i64) -> AttrId {
    let ty = e.module.ty(Type::Integer { width: 64, sign: Signedness::Signless });
    e.module.attribute(Attribute::Integer { value: value.into(), ty })
}

fn integers(e: &mut Entries<'_, '_>, values: &[i64]) -> AttrId {
    let element = e.module.ty(Type::Integer { width: 64, sign: Signedness::Signless });
    let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    e.module.attribute(Attribute::DenseArray { element, data })
}

fn double(e: &mut Entries<'_, '_>, bits: u64) -> AttrId {
    let ty = e.module.ty(Type::Float(FloatType::F64));
    e.module.attribute(Attribute::Float { bits, ty })
}

/// A string attribute, which a name is.
fn name(e: &mut Entries<'_, '_>, d: &Decoder<'_>, index: u32) -> Fallible<AttrId> {
    match e.slot(index) {
        Slot::Attr(id) if matches!(e.module.get_attribute(id), Attribute::String { ty: None, .. }) => Ok(id),
        _ => Err(d.error(format!("attribute {index} is no string, as names are"))),
    }
}

/// A type whose parts are in the tree.
pub(super) fn ty(e: &mut Entries<'_, '_>, d: &Decoder<'_>) -> Fallible<TypeId> {
    let int = |width| Ok(Type::Integer { width, sign: Signedness::Signless });
    let uint = |width| Ok(Type::Integer { width, sign: Signedness::Unsigned });
    let float = |f| Ok(Type::Float(f));
    let ty = match d.encoding.code {
        c if c == code::BOOL_TYPE.code => int(1),
        c if c == code::I2.code => int(2),
        c if c == code::I4.code => int(4),
        c if c == code::I8.code => int(8),
        c if c == code::I16.code => int(16),
        c if c == code::I32.code => int(32),
        c if c == code::I64.code => int(64),
        c if c == code::UI2.code => uint(2),
        c if c == code::UI4.code => uint(4),
        c if c == code::UI8.code => uint(8),
        c if c == code::UI16.code => uint(16),
        c if c == code::UI32.code => uint(32),
        c if c == code::UI64.code => uint(64),
        c if c == code::BF16.code => float(FloatType::BF16),
        c if c == code::F16.code => float(FloatType::F16),
        c if c == code::F32.code => float(FloatType::F32),
        c if c == code::F64.code => float(FloatType::F64),
        c if c == code::TF32.code => float(FloatType::TF32),
        c if c == code::F8E4M3FN.code => float(FloatType::F8E4M3FN),
        c if c == code::F8E5M2.code => float(FloatType::F8E5M2),
        c if c == code::F8E4M3FNUZ.code => float(FloatType::F8E4M3FNUZ),
        c if c == code::F8E5M2FNUZ.code => float(FloatType::F8E5M2FNUZ),
        c if c == code::F8E4M3B11FNUZ.code => float(FloatType::F8E4M3B11FNUZ),
        c if c == code::F8E4M3.code => float(FloatType::F8E4M3),
        c if c == code::F8E3M4.code => float(FloatType::F8E3M4),
        c if c == code::F4E2M1FN.code => float(FloatType::F4E2M1FN),
        c if c == code::F6E2M3FN.code => float(FloatType::F6E2M3FN),
        c if c == code::F6E3M2FN.code => float(FloatType::F6E3M2FN),
        c if c == code::F8E8M0FNU.code => float(FloatType::F8E8M0FNU),
        c if c == code::COMPLEX.code => Ok(Type::Complex(e.ty(d.ty(0)))),
        c if c == code::FUNCTION.code => {
            Ok(Type::Function { inputs: e.types(d.types(0)), results: e.types(d.types(1)) })
        }
        c if c == code::INDEX.code => Ok(Type::Index),
        c if c == code::NONE.code => Ok(Type::None),
        c if c == code::TENSOR_TYPE.code => tensor(d, d.signed_list(0), e.ty(d.ty(1)), None),
        c if c == code::ENCODED_TENSOR.code => {
            let encoding = e.attribute(d.attr(0));
            tensor(d, d.signed_list(1), e.ty(d.ty(2)), Some(encoding))
        }
        c if c == code::UNRANKED_TENSOR.code => Ok(Type::UnrankedTensor(e.ty(d.ty(0)))),
        c if c == code::TOKEN.code => {
            Ok(Type::Dialect { name: e.module.name("stablehlo.token"), parameters: Box::default() })
        }
        c if c == code::FUTURE.code => {
            let name = e.module.name("stablehlo.future");
            Ok(Type::Dialect { name, parameters: e.types(d.types(0)) })
        }
        c if c == code::TUPLE.code => Ok(Type::Tuple(e.types(d.types(0)))),
        c if c == code::WITNESS.code => Ok(Type::Opaque("shape.witness".into())),
        c if c == code::BUFFER.code => {
            let dims = sizes(d, d.signed_list(0))?;
            let text = format!("{}>", builtin::memref_start(e, d, &dims, e.ty(d.ty(1)))?);
            e.take_text(d, text.len())?;
            Ok(Type::Opaque(text.into()))
        }
        c if c == code::QUANTIZED.code => {
            let storage = Storage { flags: d.number(0), ty: e.ty(d.ty(1)), expressed: e.ty(d.ty(2)) };
            let (scale, zero_point) = (d.number(3), d.signed(4));
            quantized(
                e,
                d,
                &storage,
                (d.signed(5), d.signed(6)),
                Box::default(),
                [scale].into(),
                [zero_point].into(),
            )
        }
        c if c == code::QUANTIZED_PER_AXIS.code => {
            let storage = Storage { flags: d.number(0), ty: e.ty(d.ty(1)), expressed: e.ty(d.ty(2)) };
            let Ok(axis) = i32::try_from(d.number(3)) else {
                return Err(d.error(format!("dimension {} of 2^31 or more", d.number(3))));
            };
            let (scales, zero_points) = (d.numbers(6), d.signed_list(7));
            if scales.len() != zero_points.len() {
                let message = format!("{} scales, but {} zero points", scales.len(), zero_points.len());
                return Err(d.error(message));
            }
            let range = (d.signed(4), d.signed(5));
            quantized(e, d, &storage, range, [(axis, 0)].into(), scales.into(), zero_points.into())
        }
        _ => unreachable!("invariant: all codes of the table are above"),
    }?;
    Ok(e.module.ty(ty))
}

struct Storage {
    /// The lowest bit: the storage is signed.
    flags: u64,
    ty: TypeId,
    expressed: TypeId,
}

fn quantized(
    e: &Entries<'_, '_>,
    d: &Decoder<'_>,
    storage: &Storage,
    (storage_min, storage_max): (i64, i64),
    axes: Box<[(i32, i64)]>,
    scales: Box<[u64]>,
    zero_points: Box<[i64]>,
) -> Fallible<Type> {
    let storage_bits = match e.module.get_type(storage.ty) {
        Type::Integer { width, .. } => *width,
        _ => return Err(d.error("its storage is none of integers")),
    };
    Ok(Type::Quantized(Box::new(QuantizedType {
        signed: storage.flags & 1 == 1,
        storage_bits,
        storage_min,
        storage_max,
        expressed: storage.expressed,
        axes,
        scales,
        zero_points,
    })))
}
