//! Attributes as text.

use std::fmt::Write as _;

use super::{Printer, elements, is_bare};
use crate::ir::{
    AttrId, Attribute, DYNAMIC, FloatType, NameId, NamedAttribute, Signedness, Type, TypeId, element_bytes,
};

impl Printer<'_> {
    pub(super) fn attribute(&mut self, id: AttrId) {
        let m = self.m;
        match m.get_attribute(id) {
            Attribute::Unit => self.out.push_str("unit"),
            Attribute::Bool(b) => {
                let _ = write!(self.out, "{b}");
            }
            Attribute::Integer { value, ty } => {
                let _ = write!(self.out, "{value} : ");
                self.ty(*ty);
            }
            Attribute::Float { bits, ty } => {
                match m.get_type(*ty) {
                    Type::Float(f) => self.float(*f, *bits),
                    _ => {
                        let _ = write!(self.out, "0x{bits:X}");
                    }
                }
                self.out.push_str(" : ");
                self.ty(*ty);
            }
            Attribute::String { text, ty } => {
                self.quoted(text);
                if let Some(ty) = ty {
                    self.out.push_str(" : ");
                    self.ty(*ty);
                }
            }
            Attribute::Bytes(bytes) => self.quoted_bytes(bytes),
            Attribute::Array(parts) => {
                self.out.push('[');
                for (i, &part) in parts.iter().enumerate() {
                    self.out.push_str(if i > 0 { ", " } else { "" });
                    self.attribute(part);
                }
                self.out.push(']');
            }
            Attribute::Dictionary(parts) => self.dictionary(parts),
            Attribute::Type(ty) => self.ty(*ty),
            Attribute::Symbol { root, nested } => {
                self.symbol(*root);
                for &name in nested {
                    self.out.push_str("::");
                    self.symbol(name);
                }
            }
            Attribute::Elements { ty, splat, data } => self.elements(*ty, *splat, data),
            Attribute::Strings { ty, texts } => {
                self.out.push_str("dense<");
                match texts.len() {
                    1 => self.quoted(&texts[0]),
                    _ => {
                        let dims = match m.get_type(*ty) {
                            Type::Tensor { dims, .. } => dims.to_vec(),
                            _ => vec![texts.len() as i64],
                        };
                        elements::nested(self, &dims, |p, i| p.quoted(&texts[i]));
                    }
                }
                self.out.push_str("> : ");
                self.ty(*ty);
            }
            Attribute::DenseArray { element, data } => {
                self.out.push_str("array<");
                self.ty(*element);
                let width = element_bytes(m, *element).unwrap_or(1);
                for (i, chunk) in data.chunks(width).enumerate() {
                    self.out.push_str(if i > 0 { ", " } else { ": " });
                    self.number(*element, chunk);
                }
                self.out.push('>');
            }
            Attribute::DenseResource { ty, resource } => {
                let key = m.text(m.get_resource(*resource).key);
                self.out.push_str("dense_resource<");
                if is_bare(key) {
                    self.out.push_str(key);
                } else {
                    self.quoted(key);
                }
                self.out.push_str("> : ");
                self.ty(*ty);
            }
            Attribute::Sparse { ty, indices, values } => {
                self.out.push_str("sparse<");
                self.attribute(*indices);
                self.out.push_str(", ");
                self.attribute(*values);
                self.out.push_str("> : ");
                self.ty(*ty);
            }
            Attribute::Location(loc) => {
                self.out.push_str("loc(");
                self.location(*loc);
                self.out.push(')');
            }
            Attribute::Enum { name, value } => {
                let name = m.text(*name);
                match name.split_once('.') {
                    Some((dialect, mnemonic)) => {
                        let _ = write!(self.out, "#{dialect}<{mnemonic} {}>", m.text(*value));
                    }
                    None => self.out.push_str(m.text(*value)),
                }
            }
            Attribute::Dialect { name, parameters } => self.record(*name, parameters),
            Attribute::Opaque(text) => {
                let builtin = ["affine_map", "affine_set", "strided", "opaque", "distinct", "sparse"];
                if !builtin.iter().any(|b| text.strip_prefix(b).is_some_and(|r| r.starts_with(['<', '[']))) {
                    self.out.push('#');
                }
                self.out.push_str(text);
            }
        }
    }

    fn symbol(&mut self, name: NameId) {
        let text = self.m.text(name);
        self.out.push('@');
        if is_bare(text) {
            self.out.push_str(text);
        } else {
            self.quoted(text);
        }
    }

    /// `#stablehlo.gather<...>`
    fn record(&mut self, name: NameId, parameters: &[NamedAttribute]) {
        let name = self.m.text(name);
        let _ = write!(self.out, "#{name}");
        match name.rsplit('.').next() {
            Some("bounds") => {
                self.out.push('<');
                if let Some(p) = parameters.first() {
                    self.ints(p.value);
                }
                self.out.push('>');
                return;
            }
            Some("conv") => {
                self.out.push_str("<raw ");
            }
            Some(_) | None if parameters.is_empty() => {
                self.out.push_str("<>");
                return;
            }
            Some(_) | None => self.out.push('<'),
        }
        for (i, p) in parameters.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            let _ = write!(self.out, "{} = ", self.m.text(p.name));
            match self.m.get_attribute(p.value) {
                Attribute::DenseArray { .. } => {
                    self.out.push('[');
                    self.ints(p.value);
                    self.out.push(']');
                }
                Attribute::Integer { value, .. } => {
                    let _ = write!(self.out, "{value}");
                }
                Attribute::Float { bits, ty } if name.ends_with("result_accuracy") => {
                    if let Type::Float(f) = self.m.get_type(*ty) {
                        self.float(*f, *bits);
                    }
                }
                _ => self.attribute(p.value),
            }
        }
        self.out.push('>');
    }

    /// `1, 2, ?`
    fn ints(&mut self, list: AttrId) {
        if let Attribute::DenseArray { data, .. } = self.m.get_attribute(list) {
            for (i, chunk) in data.chunks(8).enumerate() {
                self.out.push_str(if i > 0 { ", " } else { "" });
                match <[u8; 8]>::try_from(chunk).map(i64::from_le_bytes) {
                    Ok(DYNAMIC) | Err(_) => self.out.push('?'),
                    Ok(n) => {
                        let _ = write!(self.out, "{n}");
                    }
                }
            }
        }
    }

    fn float(&mut self, ty: FloatType, bits: u64) {
        if self.options.pretty {
            elements::float_as_mlir(&mut self.out, ty, bits);
        } else {
            elements::float(&mut self.out, ty, bits);
        }
    }

    /// One element, or a part of a complex one.
    pub(super) fn number(&mut self, ty: TypeId, bytes: &[u8]) {
        let mut bits = [0; 16];
        bits[..bytes.len()].copy_from_slice(bytes);
        let bits = u128::from_le_bytes(bits);
        match self.m.get_type(ty) {
            Type::Float(f) => self.float(*f, bits as u64),
            Type::Integer { width: 1, .. } => self.out.push_str(if bits & 1 == 1 { "true" } else { "false" }),
            Type::Integer { sign: Signedness::Unsigned, .. } => {
                let _ = write!(self.out, "{bits}");
            }
            Type::Quantized(q) if !q.signed => {
                let _ = write!(self.out, "{bits}");
            }
            Type::Complex(part) => {
                let half = bytes.len() / 2;
                self.out.push('(');
                self.number(*part, &bytes[..half]);
                self.out.push_str(if self.options.pretty { "," } else { ", " });
                self.number(*part, &bytes[half..]);
                self.out.push(')');
            }
            _ => {
                let unused = 128 - 8 * bytes.len().max(1) as u32;
                let _ = write!(self.out, "{}", (bits << unused) as i128 >> unused);
            }
        }
    }

    /// Whether `count` elements are written as bytes. Those of one bit are not: MLIR packs them.
    fn is_long(&self, element: TypeId, count: usize) -> bool {
        const MAX_PRINTED: usize = 100;
        count > MAX_PRINTED && !matches!(self.m.get_type(element), Type::Integer { width: 1, .. })
    }

    fn elements(&mut self, ty: TypeId, splat: bool, data: &[u8]) {
        let (dims, element) = match self.m.get_type(ty) {
            Type::Tensor { dims, element, .. } | Type::Vector { dims, element, .. } => {
                (dims.to_vec(), *element)
            }
            _ => (Vec::new(), ty),
        };
        let width = element_bytes(self.m, element).unwrap_or(1);
        self.out.push_str("dense<");
        if splat && data.len() == width {
            self.number(element, data);
        } else if self.options.elide_above.is_some_and(|most| data.len() > most) {
            self.out.push_str("...");
        } else if self.options.pretty && self.is_long(element, data.len() / width.max(1)) {
            self.out.push_str("\"0x");
            elements::hex(&mut self.out, data);
            self.out.push('"');
        } else if !data.is_empty() {
            elements::nested(self, &dims, |p, i| p.number(element, &data[i * width..(i + 1) * width]));
        }
        self.out.push_str("> : ");
        self.ty(ty);
    }
}

/// Whether a float type has a text for its numbers.
pub(super) fn is_finite(ty: FloatType, bits: u64) -> Option<f64> {
    crate::encode::float_value(ty, bits).filter(|x| x.is_finite())
}
