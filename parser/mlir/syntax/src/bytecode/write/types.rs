//! Types of the tree as entries of a file.

use std::fmt::Write as _;

use super::super::codes::{builtin, vhlo};
use super::entries::{Dialect, Entries, Fallible, begin, indices, no_form, signed_list, sizes};
use super::tables::Of;
use crate::ir::{Attribute, DYNAMIC, FloatType, Module, QuantizedType, Signedness, Type, TypeId};

impl Entries<'_> {
    /// A type in the form of a dialect.
    pub(super) fn ty(&mut self, dialect: Dialect, id: TypeId) -> Fallible<u32> {
        if let Some(index) = self.types[dialect as usize].get(id.index()) {
            return Ok(index);
        }
        let index = match dialect {
            Dialect::Vhlo => self.vhlo_type(id)?,
            Dialect::Builtin => self.builtin_type(id)?,
        };
        self.types[dialect as usize].set(id.index(), index);
        Ok(index)
    }

    fn type_list(&mut self, dialect: Dialect, ids: &[TypeId]) -> Fallible<Vec<u32>> {
        ids.iter().map(|&id| self.ty(dialect, id)).collect()
    }

    /// Width and signedness of integers.
    pub(super) fn integer_type(&self, ty: TypeId) -> Fallible<(u32, Signedness)> {
        match self.m.get_type(ty) {
            Type::Index => Ok((64, Signedness::Signless)),
            Type::Integer { width, sign } if *width <= 64 => Ok((*width, *sign)),
            _ => no_form("an integer of more than 64 bits has no form in portable artifacts"),
        }
    }

    pub(super) fn float_width(&self, ty: TypeId) -> Fallible<u32> {
        match self.m.get_type(ty) {
            Type::Float(f) if f.bits() <= 64 => Ok(f.bits()),
            _ => no_form("a float of more than 64 bits has no form in portable artifacts"),
        }
    }

    fn vhlo_type(&mut self, id: TypeId) -> Fallible<u32> {
        let m = self.m;
        let e = match m.get_type(id) {
            Type::None => return self.plain(vhlo::NONE),
            Type::Index => return self.plain(vhlo::INDEX),
            Type::Integer { width, sign } => {
                let unsigned = *sign == Signedness::Unsigned;
                let encoding = match (width, sign) {
                    (_, Signedness::Signed) => None,
                    (1, Signedness::Signless) => Some(vhlo::BOOL_TYPE),
                    (2, _) => Some(if unsigned { vhlo::UI2 } else { vhlo::I2 }),
                    (4, _) => Some(if unsigned { vhlo::UI4 } else { vhlo::I4 }),
                    (8, _) => Some(if unsigned { vhlo::UI8 } else { vhlo::I8 }),
                    (16, _) => Some(if unsigned { vhlo::UI16 } else { vhlo::I16 }),
                    (32, _) => Some(if unsigned { vhlo::UI32 } else { vhlo::I32 }),
                    (64, _) => Some(if unsigned { vhlo::UI64 } else { vhlo::I64 }),
                    _ => None,
                };
                return match encoding {
                    Some(encoding) => self.plain(encoding),
                    None => no_form(format!("{} has no form in VHLO", type_name(m, id))),
                };
            }
            Type::Float(f) => {
                let encoding = match f {
                    FloatType::F16 => vhlo::F16,
                    FloatType::BF16 => vhlo::BF16,
                    FloatType::TF32 => vhlo::TF32,
                    FloatType::F32 => vhlo::F32,
                    FloatType::F64 => vhlo::F64,
                    FloatType::F8E5M2 => vhlo::F8E5M2,
                    FloatType::F8E4M3 => vhlo::F8E4M3,
                    FloatType::F8E4M3FN => vhlo::F8E4M3FN,
                    FloatType::F8E5M2FNUZ => vhlo::F8E5M2FNUZ,
                    FloatType::F8E4M3FNUZ => vhlo::F8E4M3FNUZ,
                    FloatType::F8E4M3B11FNUZ => vhlo::F8E4M3B11FNUZ,
                    FloatType::F8E3M4 => vhlo::F8E3M4,
                    FloatType::F4E2M1FN => vhlo::F4E2M1FN,
                    FloatType::F6E2M3FN => vhlo::F6E2M3FN,
                    FloatType::F6E3M2FN => vhlo::F6E3M2FN,
                    FloatType::F8E8M0FNU => vhlo::F8E8M0FNU,
                    FloatType::F80 | FloatType::F128 => {
                        return no_form(format!("{} has no form in VHLO", f.text()));
                    }
                };
                return self.plain(encoding);
            }
            Type::Complex(part) => {
                let part = self.ty(Dialect::Vhlo, *part)?;
                let mut e = self.begin(vhlo::COMPLEX)?;
                e.varint(part.into());
                e
            }
            Type::Tensor { dims, element, encoding: None } => {
                let element = self.ty(Dialect::Vhlo, *element)?;
                return self.tensor_type(dims, element);
            }
            Type::Tensor { dims, element, encoding: Some(encoding) } => {
                let is_bounds = |a: &Attribute| match a {
                    Attribute::Dialect { name, .. } => {
                        matches!(m.text(*name), "stablehlo.bounds" | "stablehlo.type_extensions")
                    }
                    _ => false,
                };
                if !is_bounds(m.get_attribute(*encoding)) {
                    return no_form("encodings of tensor types other than bounds have no form in VHLO");
                }
                let encoding = self.attribute(Dialect::Vhlo, *encoding)?;
                let element = self.ty(Dialect::Vhlo, *element)?;
                let mut e = self.begin(vhlo::ENCODED_TENSOR)?;
                e.varint(encoding.into());
                sizes(&mut e, dims);
                e.varint(element.into());
                e
            }
            Type::UnrankedTensor(element) => {
                let element = self.ty(Dialect::Vhlo, *element)?;
                let mut e = self.begin(vhlo::UNRANKED_TENSOR)?;
                e.varint(element.into());
                e
            }
            Type::Tuple(parts) => {
                let parts = self.type_list(Dialect::Vhlo, parts)?;
                let mut e = self.begin(vhlo::TUPLE)?;
                indices(&mut e, &parts);
                e
            }
            Type::Function { inputs, results } => {
                let inputs = self.type_list(Dialect::Vhlo, inputs)?;
                let results = self.type_list(Dialect::Vhlo, results)?;
                let mut e = self.begin(vhlo::FUNCTION)?;
                indices(&mut e, &inputs);
                indices(&mut e, &results);
                e
            }
            Type::Dialect { name, parameters } => match m.text(*name) {
                "stablehlo.token" => return self.plain(vhlo::TOKEN),
                "stablehlo.future" => {
                    let parts = self.type_list(Dialect::Vhlo, parameters)?;
                    let mut e = self.begin(vhlo::FUTURE)?;
                    indices(&mut e, &parts);
                    e
                }
                name => return no_form(format!("!{name} has no form in VHLO")),
            },
            Type::Quantized(q) => return self.quantized(q),
            Type::Opaque(text) => match &**text {
                "shape.witness" => return self.plain(vhlo::WITNESS),
                text => match memref(text) {
                    Some((dims, element)) => {
                        let element = self.named_type(element)?;
                        let mut e = self.begin(vhlo::BUFFER)?;
                        sizes(&mut e, &dims);
                        e.varint(element.into());
                        e
                    }
                    None => return no_form(format!("{text} has no form in VHLO")),
                },
            },
            Type::Vector { .. } => return no_form("vectors have no form in VHLO"),
        };
        Ok(self.vhlo(Of::Types, e))
    }

    /// The type of numbers with this text.
    fn named_type(&mut self, text: &str) -> Fallible<u32> {
        if let Some(part) = text.strip_prefix("complex<").and_then(|t| t.strip_suffix('>')) {
            let part = self.named_type(part)?;
            let mut e = self.begin(vhlo::COMPLEX)?;
            e.varint(part.into());
            return Ok(self.vhlo(Of::Types, e));
        }
        let known = vhlo::TYPES.iter().find(|encoding| {
            let name = encoding.name.strip_suffix("_v1").unwrap_or(encoding.name);
            encoding.fields.is_empty() && (name == text || (name == "bool" && text == "i1"))
        });
        match known {
            Some(encoding) => self.plain(encoding),
            None => no_form(format!("{text} has no form in VHLO")),
        }
    }

    fn quantized(&mut self, q: &QuantizedType) -> Fallible<u32> {
        // The storage has no sign of its own: the flags say it.
        let storage = match q.storage_bits {
            2 => vhlo::I2,
            4 => vhlo::I4,
            8 => vhlo::I8,
            16 => vhlo::I16,
            32 => vhlo::I32,
            bits => {
                return no_form(format!(
                    "a quantized type with a storage of {bits} bits has no form in VHLO"
                ));
            }
        };
        let storage = self.plain(storage)?;
        let expressed = self.ty(Dialect::Vhlo, q.expressed)?;
        let flags = u64::from(q.signed);
        let e = match (&*q.axes, &*q.scales, &*q.zero_points) {
            ([], &[scale], &[zero_point]) => {
                let mut e = self.begin(vhlo::QUANTIZED)?;
                e.varint(flags);
                e.varint(storage.into());
                e.varint(expressed.into());
                e.signed(scale as i64);
                e.signed(zero_point);
                e.signed(q.storage_min);
                e.signed(q.storage_max);
                e
            }
            (&[(axis, 0)], scales, zero_points) if axis >= 0 => {
                let mut e = self.begin(vhlo::QUANTIZED_PER_AXIS)?;
                e.varint(flags);
                e.varint(storage.into());
                e.varint(expressed.into());
                e.varint(axis as u64);
                e.signed(q.storage_min);
                e.signed(q.storage_max);
                e.varint(scales.len() as u64);
                scales.iter().for_each(|&s| e.signed(s as i64));
                signed_list(&mut e, zero_points);
                e
            }
            _ => return no_form("types that are quantized by blocks have no form in VHLO"),
        };
        Ok(self.vhlo(Of::Types, e))
    }

    pub(super) fn builtin_integer_type(&mut self, width: u32, sign: Signedness) -> u32 {
        let sign = match sign {
            Signedness::Signless => 0,
            Signedness::Signed => 1,
            Signedness::Unsigned => 2,
        };
        let mut e = begin(builtin::INTEGER_TYPE);
        e.varint(u64::from(width) << 2 | sign);
        self.builtin(Of::Types, e)
    }

    fn builtin_type(&mut self, id: TypeId) -> Fallible<u32> {
        let m = self.m;
        let e = match m.get_type(id) {
            Type::None => begin(builtin::NONE),
            Type::Index => begin(builtin::INDEX),
            Type::Integer { width, sign } => return Ok(self.builtin_integer_type(*width, *sign)),
            Type::Float(f) => match f {
                FloatType::BF16 => begin(builtin::BF16),
                FloatType::F16 => begin(builtin::F16),
                FloatType::F32 => begin(builtin::F32),
                FloatType::F64 => begin(builtin::F64),
                FloatType::F80 => begin(builtin::F80),
                FloatType::F128 => begin(builtin::F128),
                // The others have no code.
                _ => {
                    let bytes = format!("{}\0", f.text()).into_bytes();
                    return Ok(self.tables.entry(Of::Types, "builtin", false, bytes, None));
                }
            },
            Type::Complex(part) => {
                let part = self.ty(Dialect::Builtin, *part)?;
                let mut e = begin(builtin::COMPLEX);
                e.varint(part.into());
                e
            }
            Type::Tensor { dims, element, encoding: None } => {
                let element = self.ty(Dialect::Builtin, *element)?;
                let mut e = begin(builtin::TENSOR);
                sizes(&mut e, dims);
                e.varint(element.into());
                e
            }
            Type::UnrankedTensor(element) => {
                let element = self.ty(Dialect::Builtin, *element)?;
                let mut e = begin(builtin::UNRANKED_TENSOR);
                e.varint(element.into());
                e
            }
            Type::Tuple(parts) => {
                let parts = self.type_list(Dialect::Builtin, parts)?;
                let mut e = begin(builtin::TUPLE);
                indices(&mut e, &parts);
                e
            }
            Type::Function { inputs, results } => {
                let inputs = self.type_list(Dialect::Builtin, inputs)?;
                let results = self.type_list(Dialect::Builtin, results)?;
                let mut e = begin(builtin::FUNCTION);
                indices(&mut e, &inputs);
                indices(&mut e, &results);
                e
            }
            Type::Tensor { encoding: Some(_), .. }
            | Type::Vector { .. }
            | Type::Dialect { .. }
            | Type::Quantized(_)
            | Type::Opaque(_) => {
                return no_form(format!(
                    "{} has no form outside of operations of StableHLO",
                    type_name(m, id)
                ));
            }
        };
        Ok(self.builtin(Of::Types, e))
    }
}

/// Sizes and element type of a memref that has nothing else.
fn memref(text: &str) -> Option<(Vec<i64>, &str)> {
    let mut rest = text.strip_prefix("memref<")?.strip_suffix('>')?;
    let mut dims = Vec::new();
    while let Some((size, after)) = rest.split_once('x') {
        match size {
            "?" => dims.push(DYNAMIC),
            _ => match size.parse::<i64>() {
                Ok(n) if n >= 0 => dims.push(n),
                _ => break,
            },
        }
        rest = after;
    }
    (!rest.contains([',', ' '])).then_some((dims, rest))
}

/// A type for messages.
fn type_name(m: &Module, id: TypeId) -> String {
    let mut out = String::new();
    let put = |out: &mut String, text: std::fmt::Arguments<'_>| {
        out.write_fmt(text).expect("invariant: a string takes all that is written to it");
    };
    match m.get_type(id) {
        Type::Integer { width, sign } => {
            let prefix = match sign {
                Signedness::Signless => "i",
                Signedness::Signed => "si",
                Signedness::Unsigned => "ui",
            };
            put(&mut out, format_args!("{prefix}{width}"));
        }
        Type::Float(f) => out.push_str(f.text()),
        Type::Dialect { name, .. } => put(&mut out, format_args!("!{}", m.text(*name))),
        Type::Opaque(text) => out.push_str(text),
        Type::Quantized(_) => out.push_str("a quantized type"),
        Type::Vector { .. } => out.push_str("a vector"),
        Type::Tensor { encoding: Some(_), .. } => out.push_str("a tensor type with an encoding"),
        Type::None
        | Type::Index
        | Type::Complex(_)
        | Type::Tensor { encoding: None, .. }
        | Type::UnrankedTensor(_)
        | Type::Tuple(_)
        | Type::Function { .. } => out.push_str("a type"),
    }
    out
}
