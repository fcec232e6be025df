//! The legal pairs, and the pair that an instruction is.

use std::fmt;

use hlo::{ElementType, Instruction, Module, Opcode, Shape};
use rustc_hash::{FxHashMap, FxHashSet};

/// What an opcode is used on, in the sense of `legal.txt`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Key {
    /// No elements at all: tokens.
    Nothing,
    /// Elements of this type.
    On(ElementType),
    /// From elements of one type to those of another.
    FromTo(ElementType, ElementType),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Nothing => f.write_str("-"),
            Key::On(ty) => write!(f, "{ty}"),
            Key::FromTo(from, to) => write!(f, "{from} -> {to}"),
        }
    }
}

/// How the pairs of an opcode are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum KeyRule {
    /// The first array among the operands, or else in the result.
    First,
    /// The first array in the result.
    Result,
    /// The last array in the result.
    LastResult,
    /// Operand and result.
    FromTo,
}

const fn key_rule(opcode: Opcode) -> KeyRule {
    if matches!(opcode, Opcode::Convert | Opcode::BitcastConvert) {
        KeyRule::FromTo
    } else if matches!(opcode, Opcode::Select | Opcode::Conditional) {
        KeyRule::Result
    } else if matches!(opcode, Opcode::RngBitGenerator) {
        KeyRule::LastResult
    } else {
        KeyRule::First
    }
}

fn arrays(shape: &Shape) -> Vec<ElementType> {
    let mut types = Vec::new();
    shape.for_each_leaf(&mut |leaf| types.extend(leaf.as_array().map(|a| a.element_type)));
    types
}

/// The key of an instruction of a verified module.
pub fn key_of(module: &Module, instr: &Instruction) -> Key {
    let operands = || instr.operands().iter().flat_map(|&o| arrays(&module.instr(o).shape));
    let result = || arrays(&instr.shape);
    let on = |ty: Option<ElementType>| ty.map_or(Key::Nothing, Key::On);
    match key_rule(instr.opcode) {
        KeyRule::First => on(operands().next().or_else(|| result().first().copied())),
        KeyRule::Result => on(result().first().copied()),
        KeyRule::LastResult => on(result().last().copied()),
        KeyRule::FromTo => match (operands().next(), result().first()) {
            (Some(from), Some(&to)) => Key::FromTo(from, to),
            (from, to) => on(from.or(to.copied())),
        },
    }
}

/// The legal pairs.
#[derive(Clone, Debug)]
pub struct Legal {
    keys: FxHashMap<Opcode, Vec<Key>>,
}

impl Legal {
    /// Those of `coverage/legal.txt`.
    pub fn table() -> Self {
        Self::parse(include_str!("../../coverage/legal.txt"))
            .unwrap_or_else(|e| unreachable!("invariant: a test reads legal.txt: {e}"))
    }

    /// Reads a table; its comments say how it is written. Errors: what a row lacks, with its line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut classes = FxHashMap::default();
        let mut found: FxHashMap<Opcode, FxHashSet<Key>> = FxHashMap::default();
        for (n, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            let at = |e: String| format!("line {}: {e}", n + 1);
            if let Some(class) = line.strip_prefix("class ") {
                let (name, types) =
                    class.split_once('=').ok_or_else(|| at("expected NAME = TYPES".into()))?;
                let types = read_types(types, &classes).map_err(at)?;
                classes.insert(name.trim().to_owned(), types);
            } else if !line.is_empty() {
                let fields: Vec<&str> = line.splitn(3, '|').map(str::trim).collect();
                let [opcodes, types, why] = fields[..] else {
                    return Err(at("expected OPCODES | TYPES | WHY".into()));
                };
                if why.is_empty() {
                    return Err(at("a row says why".into()));
                }
                let keys = read_keys(types, &classes).map_err(at)?;
                for name in opcodes.split_whitespace() {
                    let opcode =
                        Opcode::from_name(name).ok_or_else(|| at(format!("there is no opcode `{name}`")))?;
                    if keys
                        .iter()
                        .any(|k| matches!(k, Key::FromTo(..)) != matches!(key_rule(opcode), KeyRule::FromTo))
                    {
                        return Err(at(format!("`{name}` is not counted so")));
                    }
                    found.entry(opcode).or_default().extend(&keys);
                }
            }
        }
        let mut keys: FxHashMap<Opcode, Vec<Key>> = FxHashMap::default();
        for (opcode, set) in found {
            let mut list: Vec<Key> = set.into_iter().collect();
            list.sort_unstable();
            keys.insert(opcode, list);
        }
        match Opcode::ALL.iter().find(|o| !keys.contains_key(o)) {
            Some(missing) => Err(format!("no row of `{missing}`")),
            None => Ok(Self { keys }),
        }
    }

    /// The keys that are legal for an opcode, sorted.
    pub fn keys(&self, opcode: Opcode) -> &[Key] {
        self.keys.get(&opcode).map_or(&[], Vec::as_slice)
    }

    /// Whether a pair is legal.
    pub fn contains(&self, opcode: Opcode, key: Key) -> bool {
        self.keys(opcode).binary_search(&key).is_ok()
    }

    /// Every key that an opcode could have, legal or not.
    pub fn conceivable(&self, opcode: Opcode) -> Vec<Key> {
        let all = ElementType::ALL;
        if matches!(key_rule(opcode), KeyRule::FromTo) {
            all.iter().flat_map(|&a| all.iter().map(move |&b| Key::FromTo(a, b))).collect()
        } else if self.contains(opcode, Key::Nothing) {
            vec![Key::Nothing]
        } else {
            all.iter().map(|&ty| Key::On(ty)).collect()
        }
    }
}

fn read_keys(text: &str, classes: &FxHashMap<String, Vec<ElementType>>) -> Result<Vec<Key>, String> {
    if text == "-" {
        return Ok(vec![Key::Nothing]);
    }
    let Some((from, to)) = text.split_once("->") else {
        return Ok(read_types(text, classes)?.into_iter().map(Key::On).collect());
    };
    let (from, to) = (read_types(from, classes)?, read_types(to, classes)?);
    Ok(from.iter().flat_map(|&a| to.iter().map(move |&b| Key::FromTo(a, b))).collect())
}

fn read_types(text: &str, classes: &FxHashMap<String, Vec<ElementType>>) -> Result<Vec<ElementType>, String> {
    let mut types = Vec::new();
    for word in text.split_whitespace() {
        let (out, word) = word.strip_prefix('!').map_or((false, word), |w| (true, w));
        let meant = match classes.get(word) {
            Some(class) => class.clone(),
            None => vec![ElementType::from_name(word).ok_or_else(|| format!("there is no type `{word}`"))?],
        };
        if out {
            types.retain(|t| !meant.contains(t));
        } else {
            types.extend(meant);
        }
    }
    if types.is_empty() { Err("no types".into()) } else { Ok(types) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads() {
        let legal = Legal::parse(include_str!("../../coverage/legal.txt")).unwrap();
        let on = |opcode, ty| legal.contains(opcode, Key::On(ty));
        assert!(on(Opcode::Abs, ElementType::S4) && !on(Opcode::Abs, ElementType::U4));
        assert!(!on(Opcode::StochasticConvert, ElementType::F6E2M3FN));
        assert_eq!(legal.keys(Opcode::Convert).len(), 32 * 32);
        assert_eq!(legal.keys(Opcode::AfterAll), [Key::Nothing]);
        let classes = ["pred", "signed", "unsigned", "float", "complex"];
        let table = include_str!("../../coverage/legal.txt");
        let of_class = |c: &str| {
            let line = table.lines().find(|l| l.starts_with(&format!("class {c} "))).unwrap();
            line.split_once('=').unwrap().1.split_whitespace().count()
        };
        assert_eq!(classes.iter().map(|c| of_class(c)).sum::<usize>(), ElementType::ALL.len());
    }

    #[test]
    fn broken_tables_are_refused() {
        for (row, expected) in [
            ("abs f32", "expected OPCODES"),
            ("abs | f32 |", "says why"),
            ("abs | f33 | x", "no type `f33`"),
            ("abz | f32 | x", "no opcode `abz`"),
            ("abs | f32 -> f32 | x", "not counted so"),
            ("convert | f32 | x", "not counted so"),
            ("abs | f32 | x", "no row of"),
        ] {
            assert!(Legal::parse(row).unwrap_err().contains(expected), "{row}");
        }
    }
}
