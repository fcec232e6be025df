//! Variables and parameters: their types, sizes, addresses and initial values.

use super::{Check, Global, Lowering, space_of};
use crate::ir::{Constant, Param, Space, Variable};
use crate::lex::{Float, float, integer};
use crate::syntax::{self, Attribute, Declared, Initial, Word};
use crate::types::{Class, Type};

/// A variable may have this many bytes, the initial values of a text together [`MAX_INITIAL_BYTES`].
const MAX_VARIABLE_BYTES: u64 = 1 << 40;
const MAX_INITIAL_BYTES: u64 = 256 << 20;
/// The parameters of a kernel or function together.
const MAX_PARAM_BYTES: u64 = 32764;

/// The layout that a declaration gives.
pub(crate) struct Layout {
    pub(crate) ty: Type,
    pub(crate) vector: u32,
    pub(crate) align: u32,
    pub(crate) bytes: u64,
    pub(crate) dimensions: Vec<u64>,
}

impl<'a> Lowering<'a> {
    /// The type, alignment and size of a declared name.
    pub(crate) fn layout(&mut self, v: &syntax::Variable<'a>, n: &Declared<'a>) -> Check<Layout> {
        let (mut ty, mut vector, mut align) = (None, 1, None);
        let mut pointer = false;
        for a in &v.attributes {
            match a {
                Attribute::Align(w, number) => match integer(number.text) {
                    Some(x) if x.is_power_of_two() && x <= 1 << 20 => {
                        // Behind `.ptr` it is the alignment of what the parameter points to.
                        if !pointer {
                            align = Some(x as u32);
                        }
                    }
                    _ => return self.fault(w.span, "X0106", "an alignment is a power of two"),
                },
                Attribute::Plain(w) => match &w.text[1..] {
                    "v2" => vector = 2,
                    "v4" => vector = 4,
                    "v8" => vector = 8,
                    "ptr" => pointer = true,
                    "global" | "shared" | "local" | "const" if pointer => {}
                    "managed" | "unified" => {}
                    name => match Type::from_name(name) {
                        Some(t) if ty.is_none() => ty = Some(t),
                        _ => {
                            return self.fault(
                                w.span,
                                "X0106",
                                format!("`{}` is no type or attribute here", w.text),
                            );
                        }
                    },
                },
                Attribute::List(..) => {}
            }
        }
        let Some(ty) = ty else { return self.fault(v.span, "X0106", "the declaration has no type") };
        let mut bytes = u64::from(ty.bytes()) * u64::from(vector);
        let align = align.unwrap_or(bytes as u32).max(1);
        let mut dimensions = Vec::new();
        for (i, d) in n.dimensions.iter().enumerate() {
            let size = match d {
                Some(w) => match integer(w.text) {
                    Some(x) => x,
                    None => return self.fault(w.span, "X0106", "a dimension is an integer"),
                },
                None if i == 0 => match &n.initial {
                    Some(Initial::List(list)) => list.len() as u64,
                    _ => 0,
                },
                None => return self.fault(n.name.span, "X0106", "only the first dimension may be left out"),
            };
            bytes = match bytes.checked_mul(size) {
                Some(b) if b <= MAX_VARIABLE_BYTES => b,
                _ => {
                    return self.fault(
                        n.name.span,
                        "X0003",
                        format!("a variable may have {MAX_VARIABLE_BYTES} bytes"),
                    );
                }
            };
            dimensions.push(size);
        }
        Ok(Layout { ty, vector, align, bytes, dimensions })
    }

    /// The layout of parameters: each at the next multiple of its alignment.
    pub(crate) fn parameters(&mut self, list: &[syntax::Variable<'a>], report: bool) -> Check<Vec<Param>> {
        let (mut params, mut offset) = (Vec::new(), 0_u64);
        for v in list {
            let Some(n) = v.names.first() else { continue };
            let before = self.sink.found.len();
            let layout = self.layout(v, n);
            if !report {
                self.sink.found.truncate(before);
            }
            let layout = layout?;
            offset = offset.next_multiple_of(u64::from(layout.align));
            if layout.ty == Type::Pred || offset + layout.bytes > MAX_PARAM_BYTES {
                if report {
                    let what = format!("parameters have no predicates and at most {MAX_PARAM_BYTES} bytes");
                    return self.fault(n.name.span, "X0106", what);
                }
                return Err(super::Reported);
            }
            params.push(Param {
                name: n.name.text.to_owned(),
                offset: offset as u32,
                bytes: layout.bytes as u32,
                align: layout.align,
                register: None,
            });
            offset += layout.bytes;
        }
        Ok(params)
    }

    pub(crate) fn module_variable(&mut self, v: &syntax::Variable<'a>) -> Check<()> {
        for n in &v.names {
            let index = self.variable(v, n, None)?;
            let dynamic = self.module.variables[index as usize].is_dynamic;
            match self.names.get(n.name.text) {
                // `.extern` declarations may repeat.
                Some(Global::Variable(_)) if dynamic || v.linkage.is_some_and(|l| l.text == ".extern") => {}
                Some(_) => {
                    return self.fault(n.name.span, "X0105", format!("`{}` is declared twice", n.name.text));
                }
                None => {
                    self.names.insert(n.name.text, Global::Variable(index));
                }
            }
        }
        Ok(())
    }

    /// Adds a variable of the module, or of a function, and returns its index.
    pub(crate) fn variable(
        &mut self,
        v: &syntax::Variable<'a>,
        n: &Declared<'a>,
        owner: Option<u32>,
    ) -> Check<u32> {
        let space = match space_of(&v.space.text[1..]) {
            Some(s @ (Space::Global | Space::Shared | Space::Const)) => s,
            _ => {
                return self.fault(v.space.span, "X0106", format!("`{}` is not declared here", v.space.text));
            }
        };
        let layout = self.layout(v, n)?;
        if layout.ty == Type::Pred || n.count.is_some() {
            return self.fault(n.name.span, "X0106", "predicates and numbered names are registers");
        }
        let is_dynamic = space == Space::Shared && layout.bytes == 0;
        let (mut initial, mut relocations) = (Vec::new(), Vec::new());
        if let Some(value) = &n.initial {
            if space == Space::Shared {
                return self.fault(n.name.span, "X0106", "shared variables have no initial value");
            }
            if layout.bytes > MAX_INITIAL_BYTES {
                return self.fault(
                    n.name.span,
                    "X0003",
                    format!("initial values may have {MAX_INITIAL_BYTES} bytes"),
                );
            }
            let element = u64::from(layout.ty.bytes());
            let mut dimensions = layout.dimensions.clone();
            if layout.vector > 1 {
                dimensions.push(u64::from(layout.vector));
            }
            let mut filler =
                Filler { ty: layout.ty, element, bytes: &mut initial, relocations: &mut relocations };
            self.fill(&mut filler, value, 0, &dimensions, n.name)?;
        }
        let index = self.module.variables.len() as u32;
        self.module.variables.push(Variable {
            name: n.name.text.to_owned(),
            space,
            align: layout.align,
            bytes: layout.bytes,
            is_dynamic,
            owner,
            initial,
            relocations,
        });
        Ok(index)
    }

    fn fill(
        &mut self,
        to: &mut Filler<'_>,
        value: &Initial<'a>,
        at: u64,
        dimensions: &[u64],
        name: Word<'a>,
    ) -> Check<()> {
        match value {
            Initial::Element(words) => self.element(to, words, at, name),
            Initial::List(list) => {
                let (rows, rest) = match dimensions.split_first() {
                    Some((&rows, rest)) => (rows, rest),
                    None if list.len() <= 1 => (1, dimensions),
                    None => {
                        return self.fault(
                            name.span,
                            "X0106",
                            "the initial value has more dimensions than the variable",
                        );
                    }
                };
                if list.len() as u64 > rows {
                    return self.fault(
                        name.span,
                        "X0106",
                        format!("{} initial values for {rows} elements", list.len()),
                    );
                }
                let stride = rest.iter().product::<u64>() * to.element;
                for (i, v) in list.iter().enumerate() {
                    self.fill(to, v, at + i as u64 * stride, rest, name)?;
                }
                Ok(())
            }
        }
    }

    fn element(&mut self, to: &mut Filler<'_>, words: &[Word<'a>], at: u64, name: Word<'a>) -> Check<()> {
        let texts: Vec<&str> = words.iter().map(|w| w.text).collect();
        let span = words.first().map_or(name.span, |w| w.span);
        let (negative, rest) = match texts.as_slice() {
            ["-", rest @ ..] => (true, rest),
            all => (false, all),
        };
        let width = to.element as usize;
        if width > 8 {
            return self.fault(span, "X0108", "initial values of 128 bits");
        }
        if let [number] = rest {
            let bits =
                if to.ty.class() == Class::Float || number.starts_with("0f") || number.starts_with("0d") {
                    float(number).map(|f| match (f, to.ty) {
                        (Float::Single(b), Type::F64) => f64::from(f32::from_bits(b)).to_bits(),
                        (Float::Double(b), Type::F32) => u64::from((f64::from_bits(b) as f32).to_bits()),
                        (Float::Single(b), _) => u64::from(b),
                        (Float::Double(b), _) => b,
                    })
                } else {
                    None
                };
            if let Some(bits) = bits {
                let sign = if negative { 1 << (width * 8 - 1) } else { 0 };
                return to
                    .put(at, bits ^ sign)
                    .or_else(|()| self.fault(span, "X0106", "the value does not fit"));
            }
            if let Some(bits) = integer(number) {
                let bits = if negative { bits.wrapping_neg() } else { bits };
                return to.put(at, bits).or_else(|()| self.fault(span, "X0106", "the value does not fit"));
            }
        }
        let (generic, symbol, offset) = match rest {
            ["generic", "(", s, ")"] => (true, *s, Some(0)),
            ["generic", "(", s, ")", "+", n] => (true, *s, integer(n)),
            [s] => (false, *s, Some(0)),
            [s, "+", n] => (false, *s, integer(n)),
            _ => {
                return self.fault(
                    span,
                    "X0108",
                    "an initial value that is no literal, and no name with an offset",
                );
            }
        };
        let (Some(offset), false) = (offset, negative) else {
            return self.fault(span, "X0106", "the offset of a name is an integer");
        };
        let constant = match self.names.get(symbol) {
            Some(Global::Variable(v)) if generic => Constant::Generic(*v, offset as i64),
            Some(Global::Variable(v)) => Constant::Variable(*v, offset as i64),
            Some(Global::Function(f)) => Constant::Function(*f),
            None => return self.fault(span, "X0104", format!("`{symbol}` is not declared")),
        };
        if to.put(at, 0).is_err() || (width != 4 && width != 8) {
            return self.fault(span, "X0106", "an address has 4 or 8 bytes");
        }
        to.relocations.push((at, width as u8, constant));
        Ok(())
    }
}

/// Where initial values are written.
struct Filler<'b> {
    ty: Type,
    element: u64,
    bytes: &'b mut Vec<u8>,
    relocations: &'b mut Vec<(u64, u8, Constant)>,
}

impl Filler<'_> {
    fn put(&mut self, at: u64, bits: u64) -> Result<(), ()> {
        if self.element > 8 {
            return Err(());
        }
        let end = (at + self.element) as usize;
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let width = self.element as usize;
        self.bytes[at as usize..end].copy_from_slice(&bits.to_le_bytes()[..width]);
        Ok(())
    }
}
