//! What a configuration names in a program: each name resolved to an array leaf, and what it says verified.

use hlo::{ArrayShape, ElementType, InstrId, Module, Opcode, Shape};

use super::config::{Config, ConfigError, Item, error};

/// What an argument is to its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Given before each run.
    Feed,
    /// State: `readonly` is that no run changes it.
    Variable {
        /// Whether no run changes it.
        readonly: bool,
    },
}

/// An array leaf of the parameters or of the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// The name of its instruction, and its number among the leaves of that if it has several.
    pub origin: String,
    /// The name that it was given; a C identifier.
    pub name: Option<String>,
    /// Of an argument.
    pub role: Role,
    /// Its shape.
    pub shape: ArrayShape,
}

impl Leaf {
    /// A name for tables: the one that it was given, or that of its instruction.
    pub fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.origin)
    }
}

/// The leaves of a program with their names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names {
    /// The array leaves of the parameters, in order.
    pub arguments: Vec<Leaf>,
    /// The array leaves of the result, in order.
    pub results: Vec<Leaf>,
}

/// Array leaves of what an instruction gives, by its name.
struct Node {
    name: String,
    leaves: std::ops::Range<usize>,
}

impl Names {
    /// Of a program that verifies.
    ///
    /// # Errors
    /// What the configuration names and there is not, or says otherwise than the program does.
    pub fn of(module: &Module, config: &Config) -> Result<Self, ConfigError> {
        let mut names = Self::default();
        let entry = module.entry();
        let parameters: Vec<InstrId> =
            module.computation(entry).parameters().iter().flatten().copied().collect();
        let mut given = Vec::new();
        for &id in &parameters {
            given.push(add(&mut names.arguments, &module.instr(id).name, &module.instr(id).shape));
        }
        let root = module.root(entry);
        let mut made = vec![add(&mut names.results, &module.instr(root).name, &module.instr(root).shape)];
        if module.instr(root).opcode == Opcode::Tuple {
            let mut start = 0;
            for &operand in module.instr(root).operands() {
                let instr = module.instr(operand);
                let end = start + arrays(&instr.shape).count();
                let node = Node { name: instr.name.to_string(), leaves: start..end };
                // Of an instruction that is given twice the first occurrence counts.
                if made.iter().all(|known| known.name != node.name) {
                    made.push(node);
                }
                for (n, leaf) in (start..end).enumerate() {
                    let several = end - start > 1;
                    names.results[leaf].origin = origin(&instr.name, n, several);
                }
                start = end;
            }
        }
        let updated = updated(module, &parameters, &given);
        let mut seen = vec![false; names.arguments.len()];
        for (n, feed) in config.feeds.iter().enumerate() {
            let path = format!("feed[{n}]");
            let leaf = resolve(feed, &path, "id.node_name", "parameter", &given, &names.arguments)?;
            take(&mut seen, leaf, feed, &path, "id.node_name")?;
            name(&mut names.arguments, leaf, feed, &path)?;
        }
        for (n, variable) in config.variables.iter().enumerate() {
            let path = format!("variable[{n}]");
            let leaf = resolve(variable, &path, "node_name", "parameter", &given, &names.arguments)?;
            take(&mut seen, leaf, variable, &path, "node_name")?;
            let node = &variable.id.node;
            let wrong = match (variable.readonly, updated[leaf]) {
                (true, true) => Some(format!("the program updates `{node}` (input_output_alias)")),
                (false, false) => Some(format!(
                    "the program does not update `{node}`: say that it is read only, or which result updates it (input_output_alias)"
                )),
                (true, false) | (false, true) => None,
            };
            if let Some(message) = wrong {
                return Err(error(format!("{path}.readonly"), variable.line, message));
            }
            names.arguments[leaf].role = Role::Variable { readonly: variable.readonly };
            let named = Item { name: variable.name.clone().or(Some(identifier(node))), ..variable.clone() };
            name(&mut names.arguments, leaf, &named, &path)?;
        }
        let mut seen = vec![false; names.results.len()];
        for (n, fetch) in config.fetches.iter().enumerate() {
            let path = format!("fetch[{n}]");
            let leaf = resolve(fetch, &path, "id.node_name", "result", &made, &names.results)?;
            take(&mut seen, leaf, fetch, &path, "id.node_name")?;
            name(&mut names.results, leaf, fetch, &path)?;
        }
        Ok(names)
    }
}

fn arrays(shape: &Shape) -> impl Iterator<Item = &ArrayShape> {
    shape.leaves().into_iter().filter_map(Shape::as_array)
}

fn origin(name: &str, leaf: usize, several: bool) -> String {
    if several { format!("{name}.{leaf}") } else { name.to_owned() }
}

fn add(leaves: &mut Vec<Leaf>, name: &str, shape: &Shape) -> Node {
    let (start, several) = (leaves.len(), arrays(shape).count() > 1);
    leaves.extend(arrays(shape).enumerate().map(|(n, shape)| Leaf {
        origin: origin(name, n, several),
        name: None,
        role: Role::Feed,
        shape: shape.clone(),
    }));
    Node { name: name.to_owned(), leaves: start..leaves.len() }
}

/// Which leaves of the parameters results are left in.
fn updated(module: &Module, parameters: &[InstrId], given: &[Node]) -> Vec<bool> {
    let mut updated = vec![false; given.last().map_or(0, |node| node.leaves.end)];
    for alias in &module.header.input_output_alias {
        let Ok(number) = usize::try_from(alias.parameter) else { continue };
        let (Some(node), Some(&id)) = (given.get(number), parameters.get(number)) else { continue };
        if let Some(leaf) = leaf_at(&module.instr(id).shape, &alias.parameter_index) {
            updated[node.leaves.start + leaf] = true;
        }
    }
    updated
}

/// The number of the array leaf at an index.
fn leaf_at(shape: &Shape, index: &[i64]) -> Option<usize> {
    match (shape, index) {
        (Shape::Array(_), []) => Some(0),
        (Shape::Tuple(elements), [first, rest @ ..]) => {
            let first = usize::try_from(*first).ok()?;
            let before: usize = elements.get(..first)?.iter().map(|e| arrays(e).count()).sum();
            Some(before + leaf_at(elements.get(first)?, rest)?)
        }
        (Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_), _) => None,
    }
}

/// The leaf that an item names.
fn resolve(
    item: &Item,
    path: &str,
    field: &str,
    what: &str,
    nodes: &[Node],
    leaves: &[Leaf],
) -> Result<usize, ConfigError> {
    let Some(node) = nodes.iter().find(|node| node.name == item.id.node) else {
        let all: Vec<&str> = nodes.iter().map(|node| &*node.name).take(20).collect();
        let known = if all.is_empty() {
            "there are none".to_owned()
        } else {
            format!("there are {}", all.join(", "))
        };
        let message = format!("the program has no {what} `{}`: {known}", item.id.node);
        return Err(error(format!("{path}.{field}"), item.id.line, message));
    };
    let count = node.leaves.len();
    let Some(output) = usize::try_from(item.id.output).ok().filter(|&n| n < count) else {
        let field = field.replace("node_name", "output_index");
        let message = format!("`{}` has {count} arrays, and none of number {}", node.name, item.id.output);
        return Err(error(format!("{path}.{field}"), item.id.line, message));
    };
    let leaf = node.leaves.start + output;
    let shape = &leaves[leaf].shape;
    if let Some(dims) = item.shape.as_ref().filter(|dims| dims[..] != shape.dims[..]) {
        let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
        let message = format!("[{}], but `{}` is {shape}", dims.join(","), node.name);
        return Err(error(format!("{path}.shape"), item.line, message));
    }
    if let Some(ty) = &item.ty {
        let known = element_type(ty);
        if known != Some(shape.element_type) {
            let message = match known {
                Some(_) => format!("{ty}, but `{}` is {shape}", node.name),
                None => format!("`{ty}` is no element type"),
            };
            return Err(error(format!("{path}.type"), item.line, message));
        }
    }
    Ok(leaf)
}

fn take(seen: &mut [bool], leaf: usize, item: &Item, path: &str, field: &str) -> Result<(), ConfigError> {
    if std::mem::replace(&mut seen[leaf], true) {
        let message = format!("array {} of `{}` was named before", item.id.output, item.id.node);
        return Err(error(format!("{path}.{field}"), item.id.line, message));
    }
    Ok(())
}

fn name(leaves: &mut [Leaf], leaf: usize, item: &Item, path: &str) -> Result<(), ConfigError> {
    let Some(name) = item.name.as_ref().filter(|name| !name.is_empty()) else { return Ok(()) };
    if !is_identifier(name) {
        return Err(error(format!("{path}.name"), item.line, format!("`{name}` is no identifier of C")));
    }
    if leaves.iter().any(|other| other.name.as_ref() == Some(name)) {
        return Err(error(format!("{path}.name"), item.line, format!("`{name}` is the name of another one")));
    }
    leaves[leaf].name = Some(name.clone());
    Ok(())
}

/// Whether it is an identifier of C, C++ and Rust that no keyword is.
pub fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// An identifier like a name.
pub fn identifier(name: &str) -> String {
    let mut identifier: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if !is_identifier(&identifier) {
        identifier.insert(0, '_');
    }
    identifier
}

/// The element type of XLA's name, or of TensorFlow's.
fn element_type(name: &str) -> Option<ElementType> {
    let tensorflow = |name: &str| {
        Some(match name.strip_prefix("DT_")? {
            "FLOAT" => ElementType::F32,
            "DOUBLE" => ElementType::F64,
            "HALF" => ElementType::F16,
            "BFLOAT16" => ElementType::BF16,
            "INT4" => ElementType::S4,
            "INT8" | "QINT8" => ElementType::S8,
            "INT16" | "QINT16" => ElementType::S16,
            "INT32" | "QINT32" => ElementType::S32,
            "INT64" => ElementType::S64,
            "UINT4" => ElementType::U4,
            "UINT8" | "QUINT8" => ElementType::U8,
            "UINT16" | "QUINT16" => ElementType::U16,
            "UINT32" => ElementType::U32,
            "UINT64" => ElementType::U64,
            "BOOL" => ElementType::Pred,
            "COMPLEX64" => ElementType::C64,
            "COMPLEX128" => ElementType::C128,
            "FLOAT8_E5M2" => ElementType::F8E5M2,
            "FLOAT8_E4M3FN" => ElementType::F8E4M3FN,
            _ => return None,
        })
    };
    ElementType::from_name(name).or_else(|| tensorflow(name))
}
