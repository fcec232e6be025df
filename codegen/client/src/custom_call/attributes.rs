//! Attributes of custom calls: a dictionary of MLIR in a call's `backend_config`, such as
//! `{mode = 86 : ui8, axes = array<i64: 0, 1>, body = @f}`.
//!
//! **Invariants:** names are sorted and unique; a number has the type that the text says, and fits it;
//! nothing recurses deeper than [`MAX_DEPTH`].

use hlo::{Buffer, ElementType};

use crate::error::{Code, Error};

/// Dictionaries nest at most so deep.
const MAX_DEPTH: usize = 64;

/// The most elements of an array of one repeated value.
const MAX_SPLAT_ELEMENTS: usize = 1 << 24;

/// The value of an attribute.
#[derive(Clone, Debug)]
pub enum Attribute {
    /// A number or a truth value: one element.
    Scalar(Buffer),
    /// Numbers or truth values; of `dense` the elements in row-major order.
    Array(Buffer),
    /// Text, which may be any bytes.
    Text(Vec<u8>),
    /// A function that the call refers to, by its name.
    Function(String),
    /// Attributes by name.
    Dictionary(Attributes),
}

/// Attributes by name, sorted.
#[derive(Clone, Debug, Default)]
pub struct Attributes(Vec<(String, Attribute)>);

impl Attributes {
    /// Reads a dictionary; empty text is an empty one.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`]: it is none, and where.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut parser = Parser { text, at: 0 };
        parser.space();
        if parser.rest().is_empty() {
            return Ok(Self::default());
        }
        let attributes = parser.dictionary(0)?;
        parser.space();
        match parser.rest().is_empty() {
            true => Ok(attributes),
            false => Err(parser.wrong("the end")),
        }
    }

    /// The attribute of a name.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        let found = self.0.binary_search_by(|(n, _)| n.as_str().cmp(name));
        found.ok().map(|at| &self.0[at].1)
    }

    /// All, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Attribute)> {
        self.0.iter().map(|(name, attribute)| (name.as_str(), attribute))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn wrong(&self, expected: &str) -> Error {
        let found: String = self.rest().chars().take(20).collect();
        let message = format!("attributes: expected {expected} at offset {}, found `{found}`", self.at);
        Error::new(Code::InvalidArgument, message)
    }

    /// Takes a token if it comes next.
    fn takes(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), Error> {
        if self.takes(token) { Ok(()) } else { Err(self.wrong(&format!("`{token}`"))) }
    }

    /// The characters that come next and belong to a word.
    fn word(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        self.space();
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn name(&mut self) -> Result<String, Error> {
        if self.takes("\"") {
            let bytes = self.string_body()?;
            return String::from_utf8(bytes).map_err(|_| self.wrong("a name in UTF-8"));
        }
        let name = self.word(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.'));
        if name.is_empty() { Err(self.wrong("a name")) } else { Ok(name.to_owned()) }
    }

    fn dictionary(&mut self, depth: usize) -> Result<Attributes, Error> {
        if depth >= MAX_DEPTH {
            return Err(self.wrong(&format!("at most {MAX_DEPTH} dictionaries in one another")));
        }
        self.expect("{")?;
        let mut entries: Vec<(String, Attribute)> = Vec::new();
        if !self.takes("}") {
            loop {
                let name = self.name()?;
                let value = match self.takes("=") {
                    true => self.attribute(depth)?,
                    // A unit attribute says that something holds.
                    false => Attribute::Scalar(Buffer::Pred(vec![true])),
                };
                entries.push((name, value));
                if !self.takes(",") {
                    break;
                }
            }
            self.expect("}")?;
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(self.wrong(&format!("`{}` once", pair[0].0)));
        }
        Ok(Attributes(entries))
    }

    fn attribute(&mut self, depth: usize) -> Result<Attribute, Error> {
        self.space();
        let rest = self.rest();
        if rest.starts_with('{') {
            return self.dictionary(depth + 1).map(Attribute::Dictionary);
        }
        if self.takes("\"") {
            return self.string_body().map(Attribute::Text);
        }
        if self.takes("@") {
            return self.name().map(Attribute::Function);
        }
        if self.takes("array<") {
            return self.array().map(Attribute::Array);
        }
        if self.takes("dense<") {
            return self.dense().map(Attribute::Array);
        }
        let literal = self.number()?.to_owned();
        let ty = match self.takes(":") {
            true => self.element_type()?,
            false if matches!(&*literal, "true" | "false") => ElementType::Pred,
            false if literal.contains(['.', 'e', 'E']) && !literal.starts_with("0x") => ElementType::F64,
            false => ElementType::S64,
        };
        self.elements(ty, &[&literal]).map(Attribute::Scalar)
    }

    /// The literal of a number or of a truth value.
    fn number(&mut self) -> Result<&'a str, Error> {
        let word = self.word(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-'));
        if word.is_empty() { Err(self.wrong("a value")) } else { Ok(word) }
    }

    /// What follows the opening quote of a string.
    fn string_body(&mut self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let text = self.text.as_bytes();
        loop {
            let Some(&byte) = text.get(self.at) else { return Err(self.wrong("`\"`")) };
            self.at += 1;
            let escaped = match byte {
                b'"' => return Ok(bytes),
                b'\\' => text.get(self.at).copied(),
                other => {
                    bytes.push(other);
                    continue;
                }
            };
            let hex = |at: usize| text.get(at).and_then(|&d| char::from(d).to_digit(16));
            match escaped {
                Some(b'n') => bytes.push(b'\n'),
                Some(b't') => bytes.push(b'\t'),
                Some(quoted @ (b'"' | b'\\')) => bytes.push(quoted),
                _others => {
                    let (Some(high), Some(low)) = (hex(self.at), hex(self.at + 1)) else {
                        // The position may be inside of a character.
                        let message = format!("attributes: an unknown escape at offset {}", self.at);
                        return Err(Error::new(Code::InvalidArgument, message));
                    };
                    bytes.push((high * 16 + low) as u8);
                    self.at += 1;
                }
            }
            self.at += 1;
        }
    }

    fn element_type(&mut self) -> Result<ElementType, Error> {
        let word = self.word(|c| c.is_ascii_alphanumeric());
        Ok(match word {
            "i1" => ElementType::Pred,
            "i8" | "si8" => ElementType::S8,
            "i16" | "si16" => ElementType::S16,
            "i32" | "si32" => ElementType::S32,
            "i64" | "si64" | "index" => ElementType::S64,
            "ui8" => ElementType::U8,
            "ui16" => ElementType::U16,
            "ui32" => ElementType::U32,
            "ui64" => ElementType::U64,
            "f16" => ElementType::F16,
            "bf16" => ElementType::BF16,
            "f32" => ElementType::F32,
            "f64" => ElementType::F64,
            _others => {
                self.at -= word.len();
                return Err(self.wrong("a type of numbers"));
            }
        })
    }

    /// What follows `array<`.
    fn array(&mut self) -> Result<Buffer, Error> {
        let ty = self.element_type()?;
        let mut literals = Vec::new();
        if self.takes(":") {
            loop {
                literals.push(self.number()?);
                if !self.takes(",") {
                    break;
                }
            }
        }
        self.expect(">")?;
        self.elements(ty, &literals)
    }

    /// What follows `dense<`.
    fn dense(&mut self) -> Result<Buffer, Error> {
        let (mut literals, mut blob, mut open) = (Vec::new(), None, 0usize);
        let mut is_list = false;
        loop {
            if self.takes("[") {
                (open, is_list) = (open + 1, true);
            } else if self.takes("]") {
                open = open.checked_sub(1).ok_or_else(|| self.wrong("`[`"))?;
            } else if self.takes("\"") {
                blob = Some(self.string_body()?);
            } else if self.takes(">") {
                break;
            } else if !self.takes(",") {
                literals.push(self.number()?);
            }
        }
        if open > 0 {
            return Err(self.wrong("`]`"));
        }
        self.expect(":")?;
        if !self.takes("tensor<") && !self.takes("vector<") {
            return Err(self.wrong("`tensor<`"));
        }
        let mut elements = 1usize;
        loop {
            let digits =
                self.rest().len() - self.rest().trim_start_matches(|c: char| c.is_ascii_digit()).len();
            if digits == 0 || !self.rest()[digits..].starts_with('x') {
                break;
            }
            let dim = self.rest()[..digits].parse::<usize>().ok();
            self.at += digits + 1;
            elements = dim.and_then(|d| elements.checked_mul(d)).ok_or_else(|| self.wrong("a size"))?;
        }
        let ty = self.element_type()?;
        self.expect(">")?;
        if let Some(blob) = blob {
            return self.blob(ty, &blob, elements);
        }
        if !is_list && literals.len() == 1 {
            if elements > MAX_SPLAT_ELEMENTS {
                return Err(self.wrong(&format!("at most {MAX_SPLAT_ELEMENTS} elements")));
            }
            literals = vec![literals[0]; elements];
        }
        if literals.len() != elements {
            return Err(self.wrong(&format!("{elements} elements, not {}, before it", literals.len())));
        }
        self.elements(ty, &literals)
    }

    /// The elements of hexadecimal digits, which are their bytes.
    fn blob(&self, ty: ElementType, text: &[u8], elements: usize) -> Result<Buffer, Error> {
        let digits = text.strip_prefix(b"0x").ok_or_else(|| self.wrong("hexadecimal digits before it"))?;
        let digit = |d: u8| char::from(d).to_digit(16);
        let bytes: Option<Vec<u8>> =
            digits.chunks(2).map(|pair| Some((digit(pair[0])? * 16 + digit(*pair.get(1)?)?) as u8)).collect();
        let bytes = bytes.ok_or_else(|| self.wrong("hexadecimal digits before it"))?;
        if elements.checked_mul(ty.storage_bytes()) != Some(bytes.len()) {
            return Err(self.wrong(&format!("{elements} elements before it")));
        }
        Ok(hlo_codegen::runtime::raw::buffer_of(ty, &bytes))
    }

    fn elements(&self, ty: ElementType, literals: &[&str]) -> Result<Buffer, Error> {
        let buffer = buffer(ty, literals);
        buffer.ok_or_else(|| self.wrong(&format!("a value of {} before it", ty.name())))
    }
}

/// Numbers of a type; `None` if one is none.
fn buffer(ty: ElementType, literals: &[&str]) -> Option<Buffer> {
    /// Integers wrap from hexadecimal and unsigned forms of the same width, as MLIR prints them.
    fn ints<T: TryFrom<i128>>(literals: &[&str]) -> Option<Vec<T>> {
        literals.iter().map(|text| T::try_from(int(text)?).ok()).collect()
    }
    fn int(text: &str) -> Option<i128> {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let value = match digits.strip_prefix("0x") {
            Some(hex) => i128::from_str_radix(hex, 16).ok()?,
            None => digits.parse().ok()?,
        };
        Some(if negative { -value } else { value })
    }
    fn floats<T>(
        literals: &[&str],
        of: impl Fn(f64) -> T,
        from: impl Fn(u64) -> Option<T>,
    ) -> Option<Vec<T>> {
        let one = |text: &&str| match text.strip_prefix("0x") {
            Some(bits) => from(u64::from_str_radix(bits, 16).ok()?),
            None => text.parse::<f64>().ok().map(&of),
        };
        literals.iter().map(one).collect()
    }
    use hlo::half::{bf16, f16};
    let bits16 = |bits: u64| u16::try_from(bits).ok();
    Some(match ty {
        ElementType::Pred => {
            let one = |text: &&str| match *text {
                "true" | "1" | "-1" => Some(true),
                "false" | "0" => Some(false),
                _others => None,
            };
            Buffer::Pred(literals.iter().map(one).collect::<Option<_>>()?)
        }
        ElementType::S8 => Buffer::S8(ints(literals)?),
        ElementType::S16 => Buffer::S16(ints(literals)?),
        ElementType::S32 => Buffer::S32(ints(literals)?),
        ElementType::S64 => Buffer::S64(ints(literals)?),
        ElementType::U8 => Buffer::U8(ints(literals)?),
        ElementType::U16 => Buffer::U16(ints(literals)?),
        ElementType::U32 => Buffer::U32(ints(literals)?),
        ElementType::U64 => Buffer::U64(ints(literals)?),
        ElementType::F16 => Buffer::F16(floats(literals, f16::from_f64, |b| bits16(b).map(f16::from_bits))?),
        ElementType::BF16 => {
            Buffer::BF16(floats(literals, bf16::from_f64, |b| bits16(b).map(bf16::from_bits))?)
        }
        ElementType::F32 => {
            let bits = |b: u64| u32::try_from(b).ok().map(f32::from_bits);
            let parse = |text: &&str| match text.strip_prefix("0x") {
                Some(hex) => bits(u64::from_str_radix(hex, 16).ok()?),
                None => text.parse::<f32>().ok(),
            };
            Buffer::F32(literals.iter().map(parse).collect::<Option<_>>()?)
        }
        ElementType::F64 => Buffer::F64(floats(literals, |v| v, |b| Some(f64::from_bits(b)))?),
        // The types that [`Parser::element_type`] does not read.
        _others => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(text: &str, name: &str) -> Attribute {
        Attributes::parse(text).unwrap().get(name).unwrap().clone()
    }

    #[test]
    fn dictionaries_are_read() {
        let text = r#"{b = 2.5e-1 : f32, a = 86 : ui8, c = "x\22\0Ay", d = {e = array<i64: 1, -2>, f}, g = @body, h = dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>, i = dense<7> : tensor<3xi8>, j = true, k = -1, l = 0x7FC00000 : f32, m = dense<"0x0000803f"> : tensor<1xf32>, n = array<f64>}"#;
        let names: Vec<String> =
            Attributes::parse(text).unwrap().iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(names.concat(), "abcdghijklmn");
        assert!(matches!(get(text, "a"), Attribute::Scalar(Buffer::U8(v)) if v == [86]));
        assert!(matches!(get(text, "b"), Attribute::Scalar(Buffer::F32(v)) if v == [0.25]));
        assert!(matches!(get(text, "c"), Attribute::Text(v) if v == b"x\"\ny"));
        let Attribute::Dictionary(d) = get(text, "d") else { panic!() };
        assert!(matches!(d.get("e"), Some(Attribute::Array(Buffer::S64(v))) if *v == [1, -2]));
        assert!(matches!(d.get("f"), Some(Attribute::Scalar(Buffer::Pred(v))) if *v == [true]));
        assert!(matches!(get(text, "g"), Attribute::Function(name) if name == "body"));
        assert!(matches!(get(text, "h"), Attribute::Array(Buffer::S32(v)) if v == [1, 2, 3, 4]));
        assert!(matches!(get(text, "i"), Attribute::Array(Buffer::S8(v)) if v == [7, 7, 7]));
        assert!(matches!(get(text, "k"), Attribute::Scalar(Buffer::S64(v)) if v == [-1]));
        assert!(matches!(get(text, "l"), Attribute::Scalar(Buffer::F32(v)) if v[0].is_nan()));
        assert!(matches!(get(text, "m"), Attribute::Array(Buffer::F32(v)) if v == [1.0]));
        assert!(matches!(get(text, "n"), Attribute::Array(Buffer::F64(v)) if v.is_empty()));
        assert!(Attributes::parse("").unwrap().is_empty() && Attributes::parse(" {} ").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_dictionary_is_refused() {
        let deep = "{a = ".repeat(100_000);
        for wrong in [
            "{",
            "x",
            "{a = }",
            "{a = 300 : i8}",
            "{a = 1 : i7}",
            "{a = 1, a = 2}",
            "{a = \"x}",
            "{a = \"\\q\"}",
            "{a = \"\\é\"}",
            "{a = dense<[1> : tensor<1xi8>}",
            "{a = dense<[1]> : tensor<2xi8>}",
            "{a = dense<1> : tensor<99999999999x99999999999xi8>}",
            "{a = dense<\"0x0\"> : tensor<1xi8>}",
            "{a = 1} b",
            "{a = dense<",
            "{a = array<i8: 1,>}",
            &deep,
        ] {
            let error = Attributes::parse(wrong).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{wrong}");
        }
    }
}
