//! What a name of an operation in the file means, and its attributes in the tree's form.

use hlo::Span;
use hlo::diag::codes::bytecode as codes;
use hlo::diag::{Code, Diagnostic};

use super::super::container::Container;
use super::super::cursor::Fallible;
use super::super::vhlo::operations::{self, Operation};
use super::super::vhlo::rules::{self, Default, Form, PartKind, Record, Rule};
use super::entries::Entries;
use crate::ir::{AttrId, Attribute, Module, NameId, NamedAttribute, Signedness, Type};

/// An operation of VHLO and the rules of its attributes.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) operation: &'static Operation,
    pub(super) rules: Box<[Rule]>,
}

/// What a name means.
#[derive(Debug)]
pub(super) enum Kind {
    /// An operation of VHLO, which the tree has as one of StableHLO or of functions.
    Vhlo(Known),
    /// `vhlo.return_v1`, which the tree has as that of a function or of a region.
    Return,
    /// A conversion between types of VHLO and others, which are the same in the tree.
    Cast,
    /// Another operation whose properties are known, by name and whether they may be absent.
    Properties(&'static [(&'static str, bool)]),
    /// Any other operation. Its properties are an attribute, if the writer did not know it either.
    Other,
}

/// A name of an operation.
#[derive(Debug)]
pub(super) struct Name {
    /// In the tree.
    pub(super) id: NameId,
    /// What it means.
    pub(super) kind: Kind,
    /// Whether the writer knew it.
    pub(super) registered: bool,
}

/// Where names are looked up that are not in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    /// `func.return`
    pub(super) function_return: NameId,
    /// `func.func`
    pub(super) function: NameId,
}

pub(super) fn names(container: &Container<'_>, m: &mut Module) -> Fallible<Vec<Name>> {
    container
        .op_names
        .iter()
        .map(|op| {
            let dialect = container.dialects[op.dialect as usize].name;
            let (name, kind) = match dialect {
                "vhlo" => vhlo(op.name, op.span)?,
                _ => {
                    let name = match op.name {
                        "" => dialect.to_owned(),
                        name => format!("{dialect}.{name}"),
                    };
                    let kind = match properties(&name) {
                        _ if name == "builtin.unrealized_conversion_cast" => Kind::Cast,
                        Some(properties) => Kind::Properties(properties),
                        None => Kind::Other,
                    };
                    (name, kind)
                }
            };
            Ok(Name { id: m.name(&name), kind, registered: op.registered != Some(false) })
        })
        .collect()
}

fn vhlo(name: &str, span: Span) -> Fallible<(String, Kind)> {
    let Some(operation) = operations::find(name) else {
        let message =
            format!("vhlo.{name} is no operation of VHLO up to version {}", super::super::Version::NEWEST);
        let location = format!("at byte {} of the file, in the dialect section", span.start);
        return Err(Box::new(Diagnostic::error(codes::UNKNOWN_OPERATION, span, message).note(location)));
    };
    let rules = operation.attributes.iter().map(|&a| rules::rule(operation.name, a)).collect();
    let kind = match operation.name {
        "return" => Kind::Return,
        _ => Kind::Vhlo(Known { operation, rules }),
    };
    let name = match operation.name {
        "func" => "func.func".to_owned(),
        "call" => "func.call".to_owned(),
        name => format!("stablehlo.{name}"),
    };
    Ok((name, kind))
}

/// Properties of operations in addition to VHLO's, in the order in which they are written, and whether they
/// may be absent.
pub(in crate::bytecode) fn properties(name: &str) -> Option<&'static [(&'static str, bool)]> {
    Some(match name {
        "builtin.module" => &[("sym_name", true), ("sym_visibility", true)],
        "sdy.mesh" => &[("mesh", false), ("sym_name", false)],
        "sdy.sharding_constraint" | "sdy.reshard" => &[("sharding", false)],
        "sdy.manual_computation" => {
            &[("in_shardings", false), ("manual_axes", false), ("out_shardings", false)]
        }
        "sdy.sharding_group" => &[("group_id", false)],
        "sdy.constant" => &[("value", false)],
        "sdy.data_flow_edge" | "sdy.func_data_flow_edge" => &[("sharding", true)],
        "sdy.propagation_barrier" => &[("allowed_direction", false)],
        "sdy.named_computation" => &[("in_shardings", true), ("name", false), ("out_shardings", true)],
        "sdy.all_gather" => &[("gathering_axes", false), ("out_sharding", false)],
        "sdy.all_slice" => &[("out_sharding", false), ("slicing_axes", false)],
        "sdy.all_to_all" => &[("out_sharding", false), ("params", false)],
        "sdy.collective_permute" => &[("out_sharding", false)],
        "sdy.all_reduce" => &[("out_sharding", false), ("reduction_axes", false)],
        "sdy.reduce_scatter" => &[("out_sharding", false), ("reduce_scatter_axes", false)],
        "sdy.return" => &[],
        "chlo.constant" | "chlo.constant_like" => &[("value", false)],
        "chlo.top_k" => &[("is_stable", true), ("k", false)],
        "chlo.broadcast_compare" => {
            &[("broadcast_dimensions", true), ("compare_type", true), ("comparison_direction", false)]
        }
        "chlo.broadcast_select" => &[],
        name if name.starts_with("chlo.broadcast_") => &[("broadcast_dimensions", true)],
        "chlo._asin_acos_kernel"
        | "chlo.acos"
        | "chlo.acosh"
        | "chlo.asin"
        | "chlo.asinh"
        | "chlo.atan"
        | "chlo.atanh"
        | "chlo.bessel_i1e"
        | "chlo.conj"
        | "chlo.cosh"
        | "chlo.digamma"
        | "chlo.erf"
        | "chlo.erf_inv"
        | "chlo.erfc"
        | "chlo.is_inf"
        | "chlo.is_neg_inf"
        | "chlo.is_pos_inf"
        | "chlo.lgamma"
        | "chlo.mulhi"
        | "chlo.next_after"
        | "chlo.polygamma"
        | "chlo.sinh"
        | "chlo.square"
        | "chlo.tan"
        | "chlo.zeta" => &[],
        _ => return None,
    })
}

/// Attributes of an operation of VHLO as StableHLO has them. `values` are in the order of the operation's
/// table.
pub(super) fn converted(
    e: &mut Entries<'_, '_>,
    known: &Known,
    values: &[AttrId],
) -> Result<Vec<NamedAttribute>, Wrong> {
    let mut out = Vec::with_capacity(values.len());
    let mut records: Vec<&'static Record> = Vec::new();
    let layouts = |name: &str| matches!(name, "operand_layouts" | "result_layouts");
    let is_default = |m: &Module, (rule, value): (&Rule, &AttrId)| is_default(m, *value, rule.default);
    // Layouts of operands and results are given together or not at all.
    let has_layouts =
        known.rules.iter().zip(values).any(|pair| layouts(pair.0.name) && !is_default(&e.module, pair));
    for (rule, &value) in known.rules.iter().zip(values) {
        if let Form::Part(record) = rule.form {
            if !records.contains(&record) {
                records.push(record);
            }
            continue;
        }
        if is_default(&e.module, (rule, &value)) && !(has_layouts && layouts(rule.name)) {
            continue;
        }
        let wrong = |expected| Wrong { attribute: rule.name, expected };
        let (name, value) = match rule.form {
            Form::Same => (rule.name, value),
            Form::Nothing => continue,
            Form::Integers => (
                rule.name,
                array(&mut e.module, value, 64).ok_or_else(|| wrong("a tensor of i64 of rank 1"))?,
            ),
            Form::Booleans => {
                (rule.name, array(&mut e.module, value, 1).ok_or_else(|| wrong("a tensor of i1 of rank 1"))?)
            }
            Form::Symbol => (rule.name, symbol(&mut e.module, value).ok_or_else(|| wrong("a string"))?),
            Form::Symbols => {
                (rule.name, symbols(&mut e.module, value).ok_or_else(|| wrong("an array of strings"))?)
            }
            Form::Unit => match e.module.get_attribute(value) {
                Attribute::Bool(true) => (rule.name, e.module.attribute(Attribute::Unit)),
                _ => return Err(wrong("a boolean")),
            },
            Form::Channel => match *e.module.get_attribute(value) {
                Attribute::Integer { ty, .. } => {
                    let zero = e.module.attribute(Attribute::Integer { value: 0, ty });
                    let parameters = [("handle", value), ("type", zero)];
                    ("channel_handle", record_of(&mut e.module, rules::CHANNEL.name, &parameters))
                }
                _ => return Err(wrong("an integer")),
            },
            Form::ApiVersion => (rule.name, value),
            Form::Part(_) => unreachable!("invariant: parts are put aside above"),
        };
        out.push(NamedAttribute { name: e.module.name(name), value });
    }
    for record in records {
        if let Some(value) = record_value(&mut e.module, record, known, values)? {
            out.push(NamedAttribute { name: e.module.name(record.attribute), value });
        }
    }
    out.sort_by(|a, b| e.module.text(a.name).cmp(e.module.text(b.name)));
    Ok(out)
}

/// That an attribute is not what its operation has there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wrong {
    attribute: &'static str,
    expected: &'static str,
}

impl Wrong {
    pub(super) fn message(self, operation: &Operation) -> String {
        let Wrong { attribute, expected } = self;
        format!("{attribute} of vhlo.{}_v{} is not {expected}", operation.name, operation.revision)
    }

    pub(super) fn code(self) -> Code {
        codes::BAD_ATTRIBUTE
    }
}

fn record_of(m: &mut Module, name: &str, parts: &[(&str, AttrId)]) -> AttrId {
    let parameters =
        parts.iter().map(|&(name, value)| NamedAttribute { name: m.name(name), value }).collect();
    let name = m.name(name);
    m.attribute(Attribute::Dialect { name, parameters })
}

/// A record from its parts. Parts that an old revision does not have are empty; all being of type `none` is
/// no record.
fn record_value(
    m: &mut Module,
    record: &Record,
    known: &Known,
    values: &[AttrId],
) -> Result<Option<AttrId>, Wrong> {
    let part = |name: &str| known.rules.iter().position(|r| r.name == name).map(|at| values[at]);
    let is_none = |m: &Module, name| part(name).is_some_and(|v| is_default(m, v, Default::NoneType));
    if *record == *rules::ALGORITHM && record.parts.iter().all(|p| is_none(m, p.0)) {
        return Ok(None);
    }
    let mut parameters = Vec::with_capacity(record.parts.len());
    for &(name, own, kind) in record.parts {
        let Some(value) = part(name) else { continue };
        let wrong = |expected| Wrong { attribute: name, expected };
        let value = match kind {
            PartKind::Integer | PartKind::IntegerUnlessZero => match m.get_attribute(value) {
                Attribute::Integer { value: 0, .. } if kind == PartKind::IntegerUnlessZero => continue,
                Attribute::Integer { .. } => value,
                _ => return Err(wrong("an integer")),
            },
            PartKind::Integers => {
                let list = array(m, value, 64).ok_or_else(|| wrong("a tensor of i64 of rank 1"))?;
                match m.get_attribute(list) {
                    Attribute::DenseArray { data, .. } if data.is_empty() => continue,
                    _ => list,
                }
            }
            PartKind::Type => match m.get_attribute(value) {
                Attribute::Type(_) => value,
                _ => return Err(wrong("a type")),
            },
            PartKind::Boolean => match m.get_attribute(value) {
                Attribute::Bool(_) => value,
                _ => return Err(wrong("a boolean")),
            },
        };
        parameters.push((own, value));
    }
    Ok(Some(record_of(m, record.name, &parameters)))
}

/// A tensor of rank 1 as a dense array.
fn array(m: &mut Module, value: AttrId, width: u32) -> Option<AttrId> {
    let Attribute::Elements { ty, splat, data } = m.get_attribute(value).clone() else { return None };
    let Type::Tensor { dims, element, .. } = m.get_type(ty) else { return None };
    let (&[count], element) = (&**dims, *element) else { return None };
    if *m.get_type(element) != (Type::Integer { width, sign: Signedness::Signless }) {
        return None;
    }
    let data = match splat {
        // As many as a window can have dimensions: a list that is written out is not longer than the file.
        true if count <= MAX_SPLAT => data.repeat(usize::try_from(count).ok()?).into(),
        true => return None,
        false => data.to_vec().into(),
    };
    Some(m.attribute(Attribute::DenseArray { element, data }))
}

/// The longest list that one element stands for.
const MAX_SPLAT: i64 = 1 << 16;

fn symbol(m: &mut Module, value: AttrId) -> Option<AttrId> {
    match m.get_attribute(value).clone() {
        Attribute::String { text, ty: None } => {
            let root = m.name(&text);
            Some(m.attribute(Attribute::Symbol { root, nested: Box::default() }))
        }
        _ => None,
    }
}

fn symbols(m: &mut Module, value: AttrId) -> Option<AttrId> {
    let Attribute::Array(list) = m.get_attribute(value).clone() else { return None };
    let list = list.iter().map(|&v| symbol(m, v)).collect::<Option<_>>()?;
    Some(m.attribute(Attribute::Array(list)))
}

/// Whether an attribute says what its absence says.
pub(in crate::bytecode) fn is_default(m: &Module, value: AttrId, default: Default) -> bool {
    let attribute = m.get_attribute(value);
    let is_enum = |attribute: &Attribute, case: &str| matches!(attribute, Attribute::Enum { value, .. } if m.text(*value) == case);
    // As MLIR has it, nothing is not a splat.
    let all = |element: &[u8]| match attribute {
        Attribute::Elements { data, .. } => {
            !data.is_empty() && data.chunks(element.len()).all(|part| part == element)
        }
        _ => false,
    };
    match default {
        Default::Required => false,
        Default::False => *attribute == Attribute::Bool(false),
        Default::Integer(n) => {
            matches!(attribute, Attribute::Integer { value, .. } if *value == i128::from(n))
        }
        Default::EmptyString => matches!(attribute, Attribute::String { text, ty: None } if text.is_empty()),
        Default::EmptyConfig => match attribute {
            Attribute::String { text, ty: None } => text.is_empty(),
            Attribute::Dictionary(list) => list.is_empty(),
            _ => false,
        },
        Default::EmptyArray => matches!(attribute, Attribute::Array(list) if list.is_empty()),
        Default::EmptyDictionary => matches!(attribute, Attribute::Dictionary(list) if list.is_empty()),
        Default::NoIntegers => matches!(attribute, Attribute::Elements { data, .. } if data.is_empty()),
        Default::Ones => all(&1i64.to_le_bytes()),
        Default::NoPadding => all(&0i64.to_le_bytes()),
        Default::NoReversal => all(&[0]),
        Default::Precision => match attribute {
            Attribute::Array(list) => list.iter().all(|&v| is_enum(m.get_attribute(v), "DEFAULT")),
            _ => false,
        },
        Default::NoCompareType => is_enum(attribute, "NOTYPE"),
        Default::OriginalApi => matches!(attribute, Attribute::Integer { value: 1, .. }),
        Default::Accuracy => match attribute {
            Attribute::Dialect { parameters, .. } => {
                parameters.iter().all(|p| match m.get_attribute(p.value) {
                    Attribute::Float { bits, .. } => f64::from_bits(*bits) == 0.0,
                    Attribute::Integer { value, .. } => *value == 0,
                    mode => is_enum(mode, "DEFAULT"),
                })
            }
            _ => false,
        },
        Default::NoneType => match attribute {
            Attribute::Type(ty) => *m.get_type(*ty) == Type::None,
            _ => false,
        },
    }
}
