//! StableHLO to HLO.
//!
//! A function becomes a computation, a region becomes a computation, an operation one instruction or a few.
//! Which, is in one file per family. Names of values become names of instructions, locations become metadata,
//! and spans stay: what the verifier finds in the HLO is shown in the text that was given.

mod chlo;
mod collective;
mod contraction;
mod control;
mod custom_call;
mod cx;
mod dispatch;
mod dynamic;
mod dynamic_calls;
mod elementwise;
pub(crate) mod fold;
mod header;
mod indexing;
mod linalg;
pub(crate) mod literal;
mod mesh;
mod movement;
mod numeric;
mod quantized;
mod random;
mod reduction;
mod regions;
mod rules;
pub(crate) mod shapes;
mod shardy;
mod special;
mod transfer;
mod unreduced;

use hlo::diag::codes;
use hlo::elided::ElidedConstants;
use hlo::{Diagnostic, Diagnostics, Span};
use rustc_hash::FxHashMap;

use crate::ir::{Attribute, Module, OpId, Type};
use cx::{Body, Converter};

pub use custom_call::INSPECT_SHARDING;

/// The target of the call that runs functions on a grid of devices, which tests of collectives have. Its
/// configuration is the number of replicas and of partitions.
pub const RUN_PARALLEL: &str = "interpreter.run_parallel";

/// How a check compares.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CheckKind {
    /// Equal elements: integers and predicates the same, floats the same but that a NaN is equal to a NaN.
    Equal,
    /// Integers equal, floats within a tolerance, absolute or relative.
    Almost(f64),
    /// The minimum and maximum distance of floats in units in the last place.
    Close {
        /// At least.
        min: u64,
        /// At most.
        max: u64,
    },
}

/// A check of two results.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    /// How it compares.
    pub kind: CheckKind,
    /// Which results of the program it compares: what was computed, and what is right.
    pub results: [usize; 2],
    /// Where it is written.
    pub span: Span,
}

/// A program that a function was converted to.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The program.
    pub module: hlo::Module,
    /// What is checked of its results, if checks were asked for.
    pub checks: Vec<Check>,
    /// What was made up.
    pub warnings: Diagnostics,
    /// The shardings of the function's results, in order, as the module says them: `#sdy.sharding<...>`, or
    /// HLO's own form in braces.
    pub result_shardings: Vec<Option<Box<str>>>,
    /// The layouts that the module says of the function's arguments, in order: `default`, `auto`, or minor to
    /// major in braces.
    pub argument_layouts: Vec<Option<Box<str>>>,
    /// The same of its results.
    pub result_layouts: Vec<Option<Box<str>>>,
    /// The kinds of memory that the module says of the function's arguments, in order, such as `pinned_host`.
    pub argument_memories: Vec<Option<Box<str>>>,
    /// The same of its results.
    pub result_memories: Vec<Option<Box<str>>>,
    /// Values that are to be sharded as others of the same group are, each with the number of its group.
    pub sharding_groups: Vec<(hlo::InstrId, i64)>,
}

/// How a module is converted.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// The function to convert; `main`, or the only one, if none is named.
    pub function: Option<String>,
    /// The dimensions of the function's arguments, where their types do not say them; `None` of one that is
    /// no tensor.
    pub argument_dims: Option<Vec<Option<Vec<i64>>>>,
    /// The results of the program are the operands of the checks in the function, instead of its own results.
    pub checks: bool,
}

/// The functions of a module with their names, in order.
pub fn functions(m: &Module) -> Vec<(OpId, &str)> {
    let Some(top) = m.top() else { return Vec::new() };
    let name = |op: OpId| match m.attr(op, "sym_name").map(|a| m.get_attribute(a)) {
        Some(Attribute::String { text, .. }) => Some(&**text),
        _ => None,
    };
    let is_function = |op: &OpId| matches!(m.op_name(*op), "func.func");
    m.body(top).iter().copied().filter(is_function).filter_map(|op| Some((op, name(op)?))).collect()
}

/// Whether a function is a test: it takes nothing, and checks something or runs functions on devices.
pub fn is_test(m: &Module, function: OpId) -> bool {
    let takes_nothing = match m.attr(function, "function_type").map(|a| m.get_attribute(a)) {
        Some(Attribute::Type(ty)) => {
            matches!(m.get_type(*ty), Type::Function { inputs, .. } if inputs.is_empty())
        }
        _ => false,
    };
    let tests = |op: OpId| dispatch::is_check(m, op) || m.op_name(op) == RUN_PARALLEL;
    takes_nothing && m.body(function).iter().any(|&op| tests(op))
}

/// Replicas and partitions of the grid that functions of the module run on, if it says one.
fn grid(m: &Module) -> Option<(i64, i64)> {
    let name = m.find_name(RUN_PARALLEL)?;
    let op = (0..m.operation_count()).map(OpId::from_index).find(|&op| m.op(op).name == name)?;
    let row = |a: crate::ir::AttrId| match m.get_attribute(a) {
        Attribute::Array(row) => Some(row),
        _ => None,
    };
    let rows = row(m.attr(op, "programs")?)?;
    Some((rows.len() as i64, row(*rows.first()?)?.len() as i64))
}

/// Converts a function, and what it calls.
pub fn convert(m: &Module, options: &ConvertOptions) -> Result<Converted, Diagnostics> {
    let functions = functions(m);
    let wanted = |name: &str| functions.iter().find(|f| f.1 == name).map(|f| f.0);
    let found = match (&options.function, &functions[..]) {
        (Some(name), _) => wanted(name),
        (None, [only]) => Some(only.0),
        (None, _) => wanted("main").or_else(|| {
            // The only one that others may call from outside.
            let mut public = functions.iter().filter(|f| !is_private(m, f.0));
            public.next().filter(|_| public.next().is_none()).map(|f| f.0)
        }),
    };
    let Some(function) = found else {
        let span = m.top().map_or(Span::NONE, |top| m.op(top).span);
        let span = Span::new(span.start as usize, (span.start as usize + 1).min(span.end as usize));
        let names: Vec<String> = functions.iter().map(|f| format!("@{}", f.1)).collect();
        let d = Diagnostic::error(
            codes::STABLEHLO_FUNCTION,
            span,
            "the module has no function `main`, where a program starts",
        );
        let d = if names.is_empty() { d } else { d.note(format!("it has {}", names.join(", "))) };
        return Err(d.into());
    };
    let mut converter = Converter {
        m,
        out: hlo::Module::new(&header::module_name(m)),
        functions: functions.iter().map(|&(op, name)| (name, op)).collect(),
        called: FxHashMap::default(),
        regions: FxHashMap::default(),
        captures: FxHashMap::default(),
        known: fold::Known::default(),
        concrete: FxHashMap::default(),
        inside: 0,
        specialized: 0,
        body: Body::new(hlo::ComputationId::from_index(0)),
        grid: grid(m),
        checks: Vec::new(),
        sharding_groups: Vec::new(),
        warnings: Diagnostics::new(),
        elided: ElidedConstants::default(),
        checking: options.checks,
        expressing: false,
        storing: false,
    };
    if let Some(top) = m.top() {
        converter.meshes(top);
    }
    let arguments = options.argument_dims.as_deref();
    match converter.program(function, arguments) {
        Ok(()) => {
            let result_shardings = converter.result_shardings(function);
            let said = |key: &str, name: &str| converter.said_of_each(function, key, name);
            let argument_layouts = said("arg_attrs", "mhlo.layout_mode");
            let result_layouts = said("res_attrs", "mhlo.layout_mode");
            let argument_memories = said("arg_attrs", "mhlo.memory_kind");
            let result_memories = said("res_attrs", "mhlo.memory_kind");
            let Converter { out: module, checks, mut warnings, elided, sharding_groups, .. } = converter;
            if let Some(d) = elided.warning() {
                warnings.push(d);
            }
            Ok(Converted {
                module,
                checks,
                warnings,
                result_shardings,
                argument_layouts,
                result_layouts,
                argument_memories,
                result_memories,
                sharding_groups,
            })
        }
        Err(d) => Err((*d).into()),
    }
}

fn is_private(m: &Module, function: OpId) -> bool {
    matches!(
        m.attr(function, "sym_visibility").map(|a| m.get_attribute(a)),
        Some(Attribute::String { text, .. }) if &**text == "private"
    )
}
