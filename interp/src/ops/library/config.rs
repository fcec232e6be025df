//! `backend_config` as data.
//!
//! XLA writes a protobuf message as JSON and reads it leniently: keys may stand without quotes, 64-bit
//! integers are strings, fields that have their default are left out. So absent fields are defaults here,
//! too. Typed calls have a dictionary of MLIR, `{key = value : type}`, whose types are passed over.
//! **Invariant:** reading is bounded by the text's length and [`MAX_DEPTH`].

use smallvec::SmallVec;

use super::Refusal;

/// The maximum nesting of values.
const MAX_DEPTH: u32 = 64;

/// A JSON value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Json {
    /// `null`, `true`, `false`, a number, or any other bare word, as written.
    Word(Box<str>),
    /// `"..."`
    String(Box<str>),
    /// `[...]`
    List(Vec<Json>),
    /// `{...}`
    Object(Vec<(Box<str>, Json)>),
}

/// What absent fields are.
static NOTHING: Json = Json::Object(Vec::new());

impl Json {
    /// Reads a text.
    pub(super) fn parse(text: &str) -> Result<Json, Refusal> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value(0)?;
        reader.blank();
        match reader.peek() {
            None => Ok(value),
            Some(_) => Err(reader.error()),
        }
    }

    /// A field of an object, itself an empty object if it is absent.
    pub(super) fn get(&self, key: &str) -> &Json {
        self.field(key).unwrap_or(&NOTHING)
    }

    /// A field of an object.
    pub(super) fn field(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => fields.iter().rev().find(|(k, _)| &**k == key).map(|(_, v)| v),
            Json::Word(_) | Json::String(_) | Json::List(_) => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Json::Word(s) | Json::String(s) => Some(s),
            Json::List(_) | Json::Object(_) => None,
        }
    }

    /// A field that is a number, `default` if absent.
    pub(super) fn number(&self, key: &str, default: f64) -> Result<f64, Refusal> {
        let Some(value) = self.field(key) else { return Ok(default) };
        let number = value.text().and_then(|s| match s {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            s => s.parse().ok(),
        });
        number.ok_or_else(|| Refusal(format!("with a backend_config whose {key} is no number")))
    }

    /// A field that is an integer, 0 if absent.
    pub(super) fn int(&self, key: &str) -> Result<i64, Refusal> {
        let Some(value) = self.field(key) else { return Ok(0) };
        value.integer().ok_or_else(|| Refusal(format!("with a backend_config whose {key} is no integer")))
    }

    fn integer(&self) -> Option<i64> {
        self.text()?.parse().ok()
    }

    /// A field that is a list of integers, empty if absent.
    pub(super) fn ints(&self, key: &str) -> Result<SmallVec<[i64; 4]>, Refusal> {
        let Some(value) = self.field(key) else { return Ok(SmallVec::new()) };
        let list = match value {
            Json::List(items) => items.iter().map(Json::integer).collect::<Option<_>>(),
            Json::Word(_) | Json::String(_) | Json::Object(_) => None,
        };
        list.ok_or_else(|| Refusal(format!("with a backend_config whose {key} is no list of integers")))
    }

    /// A field that is a list.
    pub(super) fn list(&self, key: &str) -> &[Json] {
        match self.field(key) {
            Some(Json::List(items)) => items,
            Some(Json::Word(_) | Json::String(_) | Json::Object(_)) | None => &[],
        }
    }

    /// A field that is a boolean, false if absent.
    pub(super) fn flag(&self, key: &str) -> bool {
        self.field(key).and_then(Json::text) == Some("true")
    }

    /// A field that is a word, `default` if absent: enums are written by name, or by number.
    pub(super) fn word<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        self.field(key).and_then(Json::text).unwrap_or(default)
    }

    /// The word that this is.
    pub(super) fn as_word(&self) -> &str {
        self.text().unwrap_or_default()
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn error(&self) -> Refusal {
        Refusal(format!("with a backend_config that is no JSON at character {}", self.at))
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn blank(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, c: char) -> bool {
        self.blank();
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn value(&mut self, depth: u32) -> Result<Json, Refusal> {
        if depth == MAX_DEPTH {
            return Err(self.error());
        }
        if self.take('{') {
            let mut fields = Vec::new();
            while !self.take('}') {
                self.blank();
                let key = if self.peek() == Some('"') { self.string()? } else { self.word()? };
                let typed = self.take('=');
                if !typed && !self.take(':') {
                    return Err(self.error());
                }
                fields.push((key, self.value(depth + 1)?));
                if typed && self.take(':') {
                    self.blank();
                    self.word()?;
                }
                self.comma('}')?;
            }
            return Ok(Json::Object(fields));
        }
        if self.take('[') {
            let mut items = Vec::new();
            while !self.take(']') {
                items.push(self.value(depth + 1)?);
                self.comma(']')?;
            }
            return Ok(Json::List(items));
        }
        if self.peek() == Some('"') {
            return self.string().map(Json::String);
        }
        self.word().map(Json::Word)
    }

    /// A comma, or that `close` follows.
    fn comma(&mut self, close: char) -> Result<(), Refusal> {
        if self.take(',') || self.peek() == Some(close) {
            return Ok(());
        }
        Err(self.error())
    }

    fn word(&mut self) -> Result<Box<str>, Refusal> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_+-.$".contains(c)));
        let word = &rest[..end.unwrap_or(rest.len())];
        if word.is_empty() {
            return Err(self.error());
        }
        self.at += word.len();
        Ok(word.into())
    }

    fn string(&mut self) -> Result<Box<str>, Refusal> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let c = self.peek().ok_or_else(|| self.error())?;
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out.into()),
                '\\' => {
                    let escaped = self.peek().ok_or_else(|| self.error())?;
                    self.at += escaped.len_utf8();
                    out.push(match escaped {
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        'u' => {
                            let code = self.text.get(self.at..self.at + 4);
                            let code = code.and_then(|hex| u32::from_str_radix(hex, 16).ok());
                            let c = code.and_then(char::from_u32).ok_or_else(|| self.error())?;
                            self.at += 4;
                            c
                        }
                        other => other,
                    });
                }
                other => out.push(other),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_xla_writes() {
        let text = r#"{"a":{conv_result_scale:1,"beta":0.5,"algo":"3"},"d":["1","2"],"ok":true,"s":"x\u0041\"","n":null}"#;
        let json = Json::parse(text).expect("this is JSON");
        assert_eq!(json.get("a").number("conv_result_scale", 0.0).ok(), Some(1.0));
        assert_eq!(json.get("a").number("beta", 0.0).ok(), Some(0.5));
        assert_eq!(json.get("a").int("algo").ok(), Some(3));
        assert_eq!(json.ints("d").ok().as_deref(), Some(&[1, 2][..]));
        assert!(json.flag("ok") && !json.flag("not there"));
        assert_eq!(json.word("s", ""), "xA\"");
        let typed =
            Json::parse(r#"{lower = true, n = 3 : i64, message = "no"}"#).expect("this is a dictionary");
        assert!(typed.flag("lower") && typed.int("n").ok() == Some(3) && typed.word("message", "") == "no");
        assert_eq!(json.get("absent").get("inside").int("x").ok(), Some(0));
    }

    #[test]
    fn refuses_other_text() {
        let deep = "[".repeat(100_000);
        for text in ["", "{", "{a}", "[1", "\"x", "{a:1}}", "1 2", "{a:\"\\u12\"}", "{é:1}", "\"\\", &deep] {
            assert!(Json::parse(text).is_err(), "{text:.20}");
        }
    }
}
