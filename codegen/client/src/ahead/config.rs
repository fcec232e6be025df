//! The names of a program's arguments and results, as a person writes them: the fields of tfcompile's
//! `tf2xla.Config`, in the text form of protocol buffers or in TOML.
//!
//! Both are read into the same tree, so that what a field means, and the path by which errors name it
//! (`feed[1].id.node_name`), is the same. Of TOML there is what such a file needs: tables, arrays of tables,
//! dotted keys, strings, numbers, truth values, lists and inline tables.

use std::fmt;

/// What is wrong with a configuration, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct ConfigError {
    /// The field; empty: the text as a whole.
    pub path: String,
    /// Its line; 0: none.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.path.is_empty(), self.line) {
            (true, 0) => f.write_str(&self.message),
            (true, line) => write!(f, "line {line}: {}", self.message),
            (false, 0) => write!(f, "{}: {}", self.path, self.message),
            (false, line) => write!(f, "{} (line {line}): {}", self.path, self.message),
        }
    }
}

pub(super) fn error(path: impl Into<String>, line: usize, message: impl Into<String>) -> ConfigError {
    ConfigError { path: path.into(), line, message: message.into() }
}

/// Which text it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// The text form of protocol buffers.
    Pbtxt,
    /// TOML.
    Toml,
}

/// Which output of which node: of a program, which array leaf of which parameter or result.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Id {
    /// The name of an instruction.
    pub node: String,
    /// Its array leaf.
    pub output: i64,
    /// The line that says so.
    pub line: usize,
}

/// A feed, a fetch or a variable.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Item {
    /// What it names.
    pub id: Id,
    /// Its name; `None`: it has only a number.
    pub name: Option<String>,
    /// The dimensions that it is said to have.
    pub shape: Option<Vec<i64>>,
    /// The element type that it is said to have, by XLA's or TensorFlow's name.
    pub ty: Option<String>,
    /// Of a variable: nothing updates it.
    pub readonly: bool,
    /// The line that it begins at.
    pub line: usize,
}

/// The configuration.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// Arguments with names.
    pub feeds: Vec<Item>,
    /// Results with names.
    pub fetches: Vec<Item>,
    /// Arguments that are state.
    pub variables: Vec<Item>,
}

#[derive(Clone, Debug)]
enum Value {
    Text(String),
    /// A number, a truth value, an enumerator.
    Word(String),
    List(Vec<(Value, usize)>),
    Table(Table),
}

/// Fields in the order in which they stand, with their lines.
type Table = Vec<(String, Value, usize)>;

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    /// Text that is not of the form, fields that there are not, values of other types, what says how
    /// TensorFlow's graphs are converted.
    pub fn parse(text: &str, form: Form) -> Result<Self, ConfigError> {
        let mut reader = Reader { rest: text, line: 1 };
        let root = match form {
            Form::Pbtxt => reader.message(None)?,
            Form::Toml => reader.toml()?,
        };
        let mut config = Self::default();
        for (key, value, line) in root {
            let list = match key.as_str() {
                "feed" => &mut config.feeds,
                "fetch" => &mut config.fetches,
                "variable" => &mut config.variables,
                "conversion_options" => {
                    let path = match &value {
                        Value::Table(fields) => {
                            fields.first().map_or(key.clone(), |field| format!("{key}.{}", field.0))
                        }
                        Value::Text(_) | Value::Word(_) | Value::List(_) => key.clone(),
                    };
                    let message = "says how a graph of TensorFlow becomes HLO, which is not done here";
                    return Err(error(path, line, message));
                }
                _ => {
                    let message =
                        "there is no such field: there are feed, fetch, variable, conversion_options";
                    return Err(error(key, line, message));
                }
            };
            let items = match value {
                Value::List(items) => items,
                value @ (Value::Table(_) | Value::Text(_) | Value::Word(_)) => vec![(value, line)],
            };
            for (value, line) in items {
                let path = format!("{key}[{}]", list.len());
                let Value::Table(fields) = value else { return Err(error(path, line, "is a message")) };
                list.push(item(fields, &path, line, key == "variable")?);
            }
        }
        Ok(config)
    }
}

fn item(fields: Table, path: &str, line: usize, variable: bool) -> Result<Item, ConfigError> {
    let mut item = Item { line, id: Id { line, ..Id::default() }, ..Item::default() };
    for (key, value, line) in fields {
        let path = format!("{path}.{key}");
        match key.as_str() {
            "id" if !variable => item.id = id(value, &path, line)?,
            "node_name" if variable => {
                item.id = Id { node: text(value, &path, line)?, output: item.id.output, line };
            }
            "output_index" if variable => item.id.output = number(&value, &path, line)?,
            "name" => item.name = Some(text(value, &path, line)?),
            "shape" => item.shape = Some(shape(value, &path, line)?),
            "type" => {
                item.ty = match value {
                    Value::Word(word) | Value::Text(word) => Some(word),
                    Value::List(_) | Value::Table(_) => return Err(error(path, line, "is a type")),
                };
            }
            "readonly" if variable => {
                item.readonly = match &value {
                    Value::Word(word) if word == "true" => true,
                    Value::Word(word) if word == "false" => false,
                    _ => return Err(error(path, line, "is true or false")),
                };
            }
            _ => return Err(error(path, line, "there is no such field")),
        }
    }
    if item.id.node.is_empty() {
        let field = if variable { "node_name" } else { "id.node_name" };
        return Err(error(format!("{path}.{field}"), line, "is missing: the name of an instruction"));
    }
    Ok(item)
}

fn id(value: Value, path: &str, line: usize) -> Result<Id, ConfigError> {
    let Value::Table(fields) = value else { return Err(error(path, line, "is a message")) };
    let mut id = Id { line, ..Id::default() };
    for (key, value, line) in fields {
        let path = format!("{path}.{key}");
        match key.as_str() {
            "node_name" => (id.node, id.line) = (text(value, &path, line)?, line),
            "output_index" => id.output = number(&value, &path, line)?,
            _ => return Err(error(path, line, "there is no such field")),
        }
    }
    Ok(id)
}

fn text(value: Value, path: &str, line: usize) -> Result<String, ConfigError> {
    match value {
        Value::Text(text) => Ok(text),
        Value::Word(_) | Value::List(_) | Value::Table(_) => Err(error(path, line, "is a string")),
    }
}

fn number(value: &Value, path: &str, line: usize) -> Result<i64, ConfigError> {
    let Value::Word(word) = value else { return Err(error(path, line, "is a number")) };
    word.parse().map_err(|_| error(path, line, format!("is a number, not `{word}`")))
}

/// A list of numbers, or `TensorShapeProto`.
fn shape(value: Value, path: &str, line: usize) -> Result<Vec<i64>, ConfigError> {
    let mut dims = Vec::new();
    match value {
        Value::List(list) => {
            for (value, line) in list {
                dims.push(number(&value, path, line)?);
            }
        }
        Value::Table(fields) => {
            for (key, value, line) in fields {
                let path = format!("{path}.{key}[{}]", dims.len());
                let (Value::Table(fields), "dim") = (value, key.as_str()) else {
                    return Err(error(path, line, "a shape has dimensions, `dim { size: N }`, alone"));
                };
                let mut size = None;
                for (key, value, line) in fields {
                    let path = format!("{path}.{key}");
                    match key.as_str() {
                        "size" => size = Some(number(&value, &path, line)?),
                        "name" => {}
                        _ => return Err(error(path, line, "there is no such field")),
                    }
                }
                dims.push(size.ok_or_else(|| error(path, line, "has no size"))?);
            }
        }
        Value::Text(_) | Value::Word(_) => return Err(error(path, line, "is a list of numbers")),
    }
    Ok(dims)
}

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 20;

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, ConfigError> {
        Err(error("", self.line, message))
    }

    fn bump(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// Passes over spaces and comments; of lines too where `lines` says so.
    fn space(&mut self, lines: bool) {
        loop {
            let spaces = |c: char| c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n');
            let bytes = self.rest.len() - self.rest.trim_start_matches(spaces).len();
            self.bump(bytes);
            if !self.rest.starts_with('#') {
                return;
            }
            let comment = self.rest.find('\n').unwrap_or(self.rest.len());
            self.bump(comment);
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest.starts_with(token);
        if found {
            self.bump(token.len());
        }
        found
    }

    fn word(&mut self) -> Option<&'a str> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_-+.".contains(c);
        let bytes = self.rest.len() - self.rest.trim_start_matches(is_word).len();
        (bytes > 0).then(|| self.bump(bytes))
    }

    fn string(&mut self) -> Result<Option<String>, ConfigError> {
        let Some(quote) = self.rest.chars().next().filter(|c| *c == '"' || *c == '\'') else {
            return Ok(None);
        };
        let mut text = String::new();
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().skip(1) {
            match (escaped, c) {
                (_, '\n') => break,
                (true, 'n') => text.push('\n'),
                (true, 't') => text.push('\t'),
                (true, '\\' | '"' | '\'') => text.push(c),
                (true, _) => return self.fail(format!("an escape `\\{c}` that is not known")),
                (false, '\\') => {
                    escaped = true;
                    continue;
                }
                (false, c) if c == quote => {
                    self.bump(at + 1);
                    return Ok(Some(text));
                }
                (false, c) => text.push(c),
            }
            escaped = false;
        }
        self.fail("a string without an end")
    }

    /// Fields of a message, up to a bracket or the end.
    fn message(&mut self, close: Option<&str>) -> Result<Table, ConfigError> {
        self.message_at(close, 0)
    }

    fn message_at(&mut self, close: Option<&str>, depth: usize) -> Result<Table, ConfigError> {
        if depth > MAX_DEPTH {
            return self.fail("messages nested too deep");
        }
        let mut fields = Table::new();
        loop {
            self.space(true);
            if close.is_some_and(|close| self.eat(close)) || (close.is_none() && self.rest.is_empty()) {
                return Ok(fields);
            }
            let line = self.line;
            let Some(key) = self.word() else { return self.fail("a field is missing, or a bracket") };
            self.space(true);
            let colon = self.eat(":");
            self.space(true);
            let value = self.pbtxt_value(depth)?;
            if !colon && !matches!(value, Value::Table(_)) {
                return self.fail(format!("`:` is missing after `{key}`"));
            }
            fields.push((key.to_owned(), value, line));
            self.space(true);
            let _separated = self.eat(",") || self.eat(";");
        }
    }

    fn pbtxt_value(&mut self, depth: usize) -> Result<Value, ConfigError> {
        if self.eat("{") {
            return Ok(Value::Table(self.message_at(Some("}"), depth + 1)?));
        }
        if self.eat("<") {
            return Ok(Value::Table(self.message_at(Some(">"), depth + 1)?));
        }
        if self.eat("[") {
            return self.list(depth, Self::pbtxt_value);
        }
        self.scalar()
    }

    fn scalar(&mut self) -> Result<Value, ConfigError> {
        if let Some(text) = self.string()? {
            return Ok(Value::Text(text));
        }
        match self.word() {
            Some(word) => Ok(Value::Word(word.to_owned())),
            None => self.fail("a value is missing"),
        }
    }

    fn list(
        &mut self,
        depth: usize,
        value: fn(&mut Self, usize) -> Result<Value, ConfigError>,
    ) -> Result<Value, ConfigError> {
        if depth > MAX_DEPTH {
            return self.fail("lists nested too deep");
        }
        let mut all = Vec::new();
        loop {
            self.space(true);
            if self.eat("]") {
                return Ok(Value::List(all));
            }
            let line = self.line;
            all.push((value(self, depth + 1)?, line));
            self.space(true);
            if !self.eat(",") && !self.rest.starts_with(']') {
                return self.fail("`,` or `]` is missing");
            }
        }
    }

    fn toml(&mut self) -> Result<Table, ConfigError> {
        let mut root = Table::new();
        // Which table lines go to: of `root` the last of this key, or `root` itself.
        let mut current_table: Vec<String> = Vec::new();
        loop {
            self.space(true);
            if self.rest.is_empty() {
                return Ok(root);
            }
            let line = self.line;
            if self.eat("[") {
                let many = self.eat("[");
                self.space(false);
                current_table = self.key()?;
                self.space(false);
                if !self.eat(if many { "]]" } else { "]" }) {
                    return self.fail("`]` is missing");
                }
                match (&current_table[..], many) {
                    ([key], true) => root.push((key.clone(), Value::Table(Table::new()), line)),
                    (_, true) => return self.fail("lists of tables are those of the configuration itself"),
                    (_, false) => {
                        into(&mut root, &current_table, line)
                            .ok_or_else(|| error("", line, "is no table"))?;
                    }
                }
            } else {
                let key = self.key()?;
                self.space(false);
                if !self.eat("=") {
                    return self.fail("`=` is missing");
                }
                self.space(false);
                let value = self.toml_value(0)?;
                let Some((last, before)) = key.split_last() else { return self.fail("a key is missing") };
                let path = [&current_table[..], before].concat();
                let table = into(&mut root, &path, line).ok_or_else(|| error("", line, "is no table"))?;
                if table.iter().any(|field| field.0 == *last) && !path.is_empty() {
                    return Err(error("", line, format!("`{last}` comes twice")));
                }
                table.push((last.clone(), value, line));
            }
            self.space(false);
            if !self.rest.is_empty() && !self.rest.starts_with('\n') {
                return self.fail("a line has more than it should");
            }
        }
    }

    fn key(&mut self) -> Result<Vec<String>, ConfigError> {
        let mut parts = Vec::new();
        loop {
            self.space(false);
            let part = match self.string()? {
                Some(part) => part,
                None => {
                    let is_key = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
                    let bytes = self.rest.len() - self.rest.trim_start_matches(is_key).len();
                    if bytes == 0 {
                        return self.fail("a key is missing");
                    }
                    self.bump(bytes).to_owned()
                }
            };
            parts.push(part);
            self.space(false);
            if !self.eat(".") {
                return Ok(parts);
            }
        }
    }

    fn toml_value(&mut self, depth: usize) -> Result<Value, ConfigError> {
        if depth > MAX_DEPTH {
            return self.fail("tables nested too deep");
        }
        if self.eat("[") {
            return self.list(depth, Self::toml_value);
        }
        if !self.eat("{") {
            return self.scalar();
        }
        let mut table = Table::new();
        loop {
            self.space(false);
            if self.eat("}") {
                return Ok(Value::Table(table));
            }
            let line = self.line;
            let key = self.key()?;
            self.space(false);
            if !self.eat("=") {
                return self.fail("`=` is missing");
            }
            self.space(false);
            let value = self.toml_value(depth + 1)?;
            let Some((last, before)) = key.split_last() else { return self.fail("a key is missing") };
            let fields = into(&mut table, before, line).ok_or_else(|| error("", line, "is no table"))?;
            fields.push((last.clone(), value, line));
            self.space(false);
            if !self.eat(",") && !self.rest.starts_with('}') {
                return self.fail("`,` or `}` is missing");
            }
        }
    }
}

/// The table at a path: of each key the last, made where there is none. `None`: something else is there.
fn into<'t>(mut table: &'t mut Table, path: &[String], line: usize) -> Option<&'t mut Table> {
    for key in path {
        if !table.iter().any(|field| field.0 == *key) {
            table.push((key.clone(), Value::Table(Table::new()), line));
        }
        let last = table.iter().rposition(|field| field.0 == *key)?;
        table = match &mut table[last].1 {
            Value::Table(table) => table,
            Value::Text(_) | Value::Word(_) | Value::List(_) => return None,
        };
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PBTXT: &str = "# names\nfeed { id { node_name: \"x.1\" } shape { dim { size: 2 } dim { size: 3 } } name: \"x\" type: DT_FLOAT }\n\
        fetch { id: < node_name: 'y', output_index: 1 > name: \"y\" }\nvariable { node_name: \"w\" readonly: true }\n";
    const TOML: &str = "# names\n[[feed]]\nid.node_name = \"x.1\"\nshape = [2, 3]\nname = \"x\"\ntype = \"DT_FLOAT\"\n\n\
        [[fetch]]\nid = { node_name = 'y', output_index = 1 }\nname = \"y\"\n[[variable]]\nnode_name = \"w\" # state\nreadonly = true\n";

    fn without_lines(mut config: Config) -> Config {
        for item in [&mut config.feeds, &mut config.fetches, &mut config.variables].into_iter().flatten() {
            (item.line, item.id.line) = (0, 0);
        }
        config
    }

    #[test]
    fn both_forms_say_the_same() {
        let one = without_lines(Config::parse(PBTXT, Form::Pbtxt).unwrap());
        assert_eq!(one, without_lines(Config::parse(TOML, Form::Toml).unwrap()));
        assert_eq!(one.feeds[0].shape, Some(vec![2, 3]));
        assert_eq!((one.fetches[0].id.output, one.variables[0].readonly), (1, true));
    }

    #[test]
    fn errors_name_the_field() {
        for (text, form, says) in [
            ("feed { name: \"x\" }", Form::Pbtxt, "feed[0].id.node_name (line 1): is missing"),
            ("feed {\n id { node_name: 3 } }", Form::Pbtxt, "feed[0].id.node_name (line 2): is a string"),
            (
                "feed { id { node_name: \"a\" } size: 3 }",
                Form::Pbtxt,
                "feed[0].size (line 1): there is no such field",
            ),
            (
                "[[variable]]\nnode_name = \"w\"\nreadonly = 1",
                Form::Toml,
                "variable[0].readonly (line 3): is true or false",
            ),
            (
                "[[fetch]]\nid.node_name = \"w\"\nid.output_index = \"b\"",
                Form::Toml,
                "fetch[0].id.output_index (line 3): is a number",
            ),
            (
                "conversion_options { custom_fake_quant_op_calls: true }",
                Form::Pbtxt,
                "conversion_options.custom_fake_quant_op_calls (line 1): says how",
            ),
            ("fed { }", Form::Pbtxt, "fed (line 1): there is no such field"),
            ("feed { id { node_name: \"x }", Form::Pbtxt, "line 1: a string without an end"),
            ("feed { ", Form::Pbtxt, "line 1: a field is missing"),
            ("a = ", Form::Toml, "line 1: a value is missing"),
            ("[[feed]\n", Form::Toml, "line 1: `]` is missing"),
        ] {
            let error = Config::parse(text, form).unwrap_err().to_string();
            assert!(error.contains(says), "{text:?}: {error}");
        }
        let deep = "a { ".repeat(1000);
        assert!(Config::parse(&deep, Form::Pbtxt).unwrap_err().message.contains("too deep"));
    }
}
