//! Attributes of an operation as VHLO has them at a version: which revision of the operation, and defaults
//! written out.

use super::super::codes::vhlo;
use super::super::read::is_default;
use super::super::version::Version;
use super::super::vhlo::operations::{Operation, revisions};
use super::super::vhlo::rules::{self, Default, Form, PartKind, Record, Rule};
use super::entries::{Dialect, Entries, Fallible, integer_of, integers_of, no_form, too_new};
use crate::ir::{AttrId, Attribute, Module, NamedAttribute, OpId, Type, TypeId};

/// Attributes of an operation, and which of them were written.
pub(super) struct Given<'m> {
    m: &'m Module,
    op: OpId,
    attributes: Vec<NamedAttribute>,
    used: Vec<bool>,
}

impl<'m> Given<'m> {
    pub(super) fn new(m: &'m Module, op: OpId) -> Self {
        let this = m.op(op);
        let attributes: Vec<NamedAttribute> =
            this.properties.iter().chain(&this.attributes).copied().collect();
        let used = vec![false; attributes.len()];
        Self { m, op, attributes, used }
    }

    fn peek(&self, name: &str) -> Option<AttrId> {
        self.attributes.iter().find(|a| self.m.text(a.name) == name).map(|a| a.value)
    }

    pub(super) fn take(&mut self, name: &str) -> Option<AttrId> {
        let at = self.attributes.iter().position(|a| self.m.text(a.name) == name)?;
        self.used[at] = true;
        Some(self.attributes[at].value)
    }

    /// Those that were not taken.
    pub(super) fn rest(&self) -> impl Iterator<Item = NamedAttribute> {
        self.attributes.iter().zip(&self.used).filter(|pair| !pair.1).map(|pair| *pair.0)
    }

    /// A part of a record.
    fn part(&self, record: &Record, own: &str) -> Option<AttrId> {
        match self.m.get_attribute(self.peek(record.attribute)?) {
            Attribute::Dialect { parameters, .. } => {
                parameters.iter().find(|p| self.m.text(p.name) == own).map(|p| p.value)
            }
            _ => None,
        }
    }

    /// Dimensions that a window has: of a pooling as given, of a convolution the spatial ones.
    fn window_rank(&self) -> Option<usize> {
        let dims = match self.peek("window_dimensions") {
            Some(value) => Some(value),
            None => self.part(rules::CONVOLUTION, "input_spatial_dimensions"),
        };
        match dims {
            Some(value) => Some(integers_of(self.m, value)?.len()),
            // The record leaves an empty list out.
            None => self.peek(rules::CONVOLUTION.attribute).map(|_| 0),
        }
    }
}

/// The name of an operation of VHLO, without version, for one of the tree.
pub(super) fn base_name(name: &str) -> Option<&str> {
    match name {
        "func.func" => Some("func"),
        "func.call" => Some("call"),
        "func.return" | "stablehlo.return" => Some("return"),
        // Not StableHLO's, though VHLO's have the names.
        "stablehlo.func" | "stablehlo.call" => None,
        _ => name.strip_prefix("stablehlo."),
    }
}

/// The revision of an operation at a version.
pub(super) fn revision(base: &str, target: Version) -> Fallible<&'static Operation> {
    if let Some(found) = revisions(base).find(|op| op.is_in(target)) {
        return Ok(found);
    }
    match revisions(base).next() {
        Some(first) => too_new(format!("stablehlo.{base}"), first.since, target),
        None => {
            no_form(format!("stablehlo.{base} is no operation of VHLO up to version {}", Version::NEWEST))
        }
    }
}

/// Operations that took one operand before they took several.
const ONE_OPERAND_AT_FIRST: [&str; 4] = ["all_gather", "all_reduce", "all_to_all", "collective_broadcast"];

/// Reductions, whose results had the element types of their operands before 0.17.0.
const REDUCTIONS: [&str; 6] =
    ["all_reduce", "reduce", "reduce_scatter", "reduce_window", "scatter", "select_and_scatter"];
const WIDENING_REDUCTIONS: Version = Version::new(0, 17, 0);

/// Calls pass dictionaries, and call functions of the typed interface.
const TYPED_CALLS: Version = Version::new(1, 3, 0);
/// Calls take futures.
const FUTURES_IN_CALLS: Version = Version::new(1, 17, 0);

/// The attributes of an operation in the order of its table.
pub(super) fn attributes(
    e: &mut Entries<'_>,
    given: &mut Given<'_>,
    op: &'static Operation,
) -> Fallible<Vec<u32>> {
    constraints(e, given, op)?;
    // What newer revisions have beside this one's must say nothing.
    for newer in revisions(op.name).filter(|newer| newer.revision > op.revision) {
        for &attribute in newer.attributes {
            let rule = rules::rule(op.name, attribute);
            if !op.attributes.contains(&attribute) && !is_absent(given, &rule) {
                let name = match rule.form {
                    // The old revision does not have the record at all.
                    Form::Part(record) if !record.parts.iter().any(|p| op.attributes.contains(&p.0)) => {
                        record.attribute
                    }
                    _ => attribute,
                };
                return too_new(format!("{name} of stablehlo.{}", op.name), newer.since, e.target);
            }
            mark(given, &rule);
        }
    }
    op.attributes.iter().map(|&attribute| value(e, given, &rules::rule(op.name, attribute))).collect()
}

/// Takes the attribute of a rule, so that it is not written as an attribute as well.
fn mark(given: &mut Given<'_>, rule: &Rule) {
    match rule.form {
        Form::Part(record) => given.take(record.attribute),
        Form::Channel => given.take(rules::CHANNEL.attribute),
        Form::Nothing => None,
        Form::Same
        | Form::Integers
        | Form::Booleans
        | Form::Symbol
        | Form::Symbols
        | Form::Unit
        | Form::ApiVersion => given.take(rule.name),
    };
}

/// Whether an operation says nothing by an attribute.
fn is_absent(given: &Given<'_>, rule: &Rule) -> bool {
    let m = given.m;
    match rule.form {
        Form::Part(record) => {
            let own = record.parts.iter().find(|p| p.0 == rule.name).map_or(rule.name, |p| p.1);
            match given.part(record, own) {
                None => true,
                Some(value) => match m.get_attribute(value) {
                    Attribute::DenseArray { data, .. } => data.is_empty(),
                    _ => false,
                },
            }
        }
        Form::Unit => match given.peek(rule.name) {
            None => true,
            Some(value) => *m.get_attribute(value) == Attribute::Bool(false),
        },
        Form::Channel => given.peek(rules::CHANNEL.attribute).is_none(),
        Form::Nothing => true,
        Form::Same | Form::Integers | Form::Booleans | Form::Symbol | Form::Symbols | Form::ApiVersion => {
            given.peek(rule.name).is_none_or(|value| is_default(m, value, rule.default))
        }
    }
}

/// What versions lack of operations that they have.
fn constraints(e: &Entries<'_>, given: &Given<'_>, op: &Operation) -> Fallible<()> {
    let m = given.m;
    let this = m.op(given.op);
    let name = op.name;
    let later =
        || revisions(name).find(|newer| newer.revision > op.revision).map_or(Version::NEWEST, |op| op.since);
    if op.revision == 1
        && ONE_OPERAND_AT_FIRST.contains(&name)
        && revisions(name).count() > 1
        && this.operands.len() != 1
    {
        return too_new(format!("stablehlo.{name} of {} operands", this.operands.len()), later(), e.target);
    }
    if op.revision == 1 && name == "composite" && !this.regions.is_empty() {
        return too_new("stablehlo.composite with regions", later(), e.target);
    }
    if REDUCTIONS.contains(&name) && e.target < WIDENING_REDUCTIONS {
        let element = |ty: TypeId| match m.get_type(ty) {
            Type::Tensor { element, .. } | Type::UnrankedTensor(element) => *element,
            _ => ty,
        };
        let same = this
            .operands
            .iter()
            .zip(&this.results)
            .all(|(&o, &r)| element(m.value_type(o)) == element(m.value_type(r)));
        if !same {
            let what = format!("stablehlo.{name} with results of other element types than its operands");
            return too_new(what, WIDENING_REDUCTIONS, e.target);
        }
    }
    if name == "custom_call" {
        let is_dictionary = given
            .peek("backend_config")
            .is_some_and(|value| matches!(m.get_attribute(value), Attribute::Dictionary(_)));
        if (is_dictionary || is_typed(given)) && e.target < TYPED_CALLS {
            return too_new("stablehlo.custom_call of the typed interface", TYPED_CALLS, e.target);
        }
        let is_future = |ty: TypeId| match m.get_type(ty) {
            Type::Dialect { name, .. } => m.text(*name) == "stablehlo.future",
            _ => false,
        };
        if e.target < FUTURES_IN_CALLS && this.operands.iter().any(|&o| is_future(m.value_type(o))) {
            return too_new("stablehlo.custom_call of a future", FUTURES_IN_CALLS, e.target);
        }
    }
    Ok(())
}

/// The number of the typed interface among versions of the interface of calls.
const TYPED_API: i64 = 4;

fn is_typed(given: &Given<'_>) -> bool {
    given.peek("api_version").and_then(|value| integer_of(given.m, value)) == Some(TYPED_API)
}

/// An attribute of an operation of VHLO.
fn value(e: &mut Entries<'_>, given: &mut Given<'_>, rule: &Rule) -> Fallible<u32> {
    let m = given.m;
    match rule.form {
        Form::Part(record) => return part(e, given, record, rule),
        Form::Nothing => return default(e, given, rule),
        Form::Channel => {
            let Some(value) = given.take(rules::CHANNEL.attribute) else { return default(e, given, rule) };
            let handle = match m.get_attribute(value) {
                Attribute::Dialect { parameters, .. } => parameters
                    .iter()
                    .find(|p| m.text(p.name) == "handle")
                    .and_then(|p| integer_of(m, p.value)),
                _ => None,
            };
            return match handle {
                Some(handle) => e.int64(handle),
                None => no_form("channel_handle is no #stablehlo.channel_handle"),
            };
        }
        Form::Same
        | Form::Integers
        | Form::Booleans
        | Form::Symbol
        | Form::Symbols
        | Form::Unit
        | Form::ApiVersion => {}
    }
    let Some(value) = given.take(rule.name) else { return default(e, given, rule) };
    match (rule.form, m.get_attribute(value)) {
        (Form::Unit, Attribute::Unit) => e.boolean(true),
        (Form::ApiVersion, Attribute::Integer { value, .. }) => {
            let case = u64::try_from(*value).ok().and_then(|n| vhlo::API_VERSIONS.case(n));
            match case {
                Some(case) => e.case(vhlo::API_VERSION, vhlo::API_VERSIONS, case),
                None => no_form(format!("{value} is no version of the interface of calls")),
            }
        }
        (Form::Integers, attribute)
            if !matches!(attribute, Attribute::Elements { .. } | Attribute::DenseArray { .. }) =>
        {
            no_form(format!("{} of {} is no list of integers", rule.name, m.op_name(given.op)))
        }
        _ => e.attribute(Dialect::Vhlo, value),
    }
}

/// A part of a record as an attribute.
fn part(e: &mut Entries<'_>, given: &mut Given<'_>, record: &'static Record, rule: &Rule) -> Fallible<u32> {
    let m = given.m;
    let &(_, own, kind) =
        record.parts.iter().find(|p| p.0 == rule.name).expect("invariant: rules of parts name one");
    match given.take(record.attribute).map(|value| m.get_attribute(value)) {
        None if rule.default == Default::NoneType => return e.none(),
        Some(Attribute::Dialect { name, .. }) if m.text(*name) == record.name => {}
        _ => {
            return no_form(format!(
                "{} lacks {} as #{}",
                m.op_name(given.op),
                record.attribute,
                record.name
            ));
        }
    }
    let value = given.part(record, own);
    match (kind, value) {
        (PartKind::Integers, None) => e.integers(&[0], &[]),
        (PartKind::Integers, Some(value)) => match integers_of(m, value) {
            Some(list) => e.integers(&[list.len() as i64], &list),
            None => no_form(format!("{own} of #{} is no list of integers", record.name)),
        },
        (PartKind::IntegerUnlessZero, None) => e.int64(0),
        (PartKind::Integer | PartKind::IntegerUnlessZero, Some(value)) => match integer_of(m, value) {
            Some(n) => e.int64(n),
            None => no_form(format!("{own} of #{} is no integer", record.name)),
        },
        (PartKind::Type | PartKind::Boolean, Some(value)) => e.attribute(Dialect::Vhlo, value),
        (PartKind::Integer | PartKind::Type | PartKind::Boolean, None) => {
            no_form(format!("#{} lacks {own}", record.name))
        }
    }
}

/// The value that an attribute has where StableHLO has none.
fn default(e: &mut Entries<'_>, given: &Given<'_>, rule: &Rule) -> Fallible<u32> {
    let m = given.m;
    let rank = || match given.window_rank() {
        Some(rank) => Ok(rank),
        None => no_form(format!("how many dimensions the window of {} has is not said", m.op_name(given.op))),
    };
    match rule.default {
        Default::Required => no_form(format!("{} lacks {}", m.op_name(given.op), rule.name)),
        Default::False => e.boolean(false),
        Default::Integer(n) => e.int64(n),
        Default::EmptyString => e.string(b""),
        Default::EmptyConfig => match is_typed(given) {
            true => e.dictionary(&[]),
            false => e.string(b""),
        },
        Default::EmptyArray => e.array(&[]),
        Default::EmptyDictionary => e.dictionary(&[]),
        Default::NoIntegers => e.integers(&[0], &[]),
        Default::Ones => {
            let rank = rank()?;
            e.integers(&[rank as i64], &vec![1; rank])
        }
        Default::NoPadding => {
            let rank = rank()?;
            e.integers(&[rank as i64, 2], &vec![0; 2 * rank])
        }
        Default::NoReversal => {
            let rank = rank()?;
            e.all_false(rank as i64)
        }
        Default::Precision => {
            let one = e.case(vhlo::PRECISION, vhlo::PRECISIONS, "DEFAULT")?;
            e.array(&[one, one])
        }
        Default::NoCompareType => e.case(vhlo::COMPARISON_TYPE, vhlo::COMPARISON_TYPES, "NOTYPE"),
        Default::OriginalApi => e.case(vhlo::API_VERSION, vhlo::API_VERSIONS, "API_VERSION_ORIGINAL"),
        Default::Accuracy => e.accuracy(&[]),
        Default::NoneType => e.none(),
    }
}
