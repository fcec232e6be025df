//! Inputs for a program, made when none are given. The rule is written down in `docs/inputs.md`, so that another program can
//! make the same values.
//!
//! **Invariants:** a value depends only on (seed, device, parameter number, leaf, element index) and on what the program does
//! with the parameter, never on threads, time or the machine; making inputs never fails because of how a parameter is used:
//! conflicting demands are resolved, the narrower wins.

mod demand;
mod fill;

use std::path::Path;

use hlo::{ArrayLiteral, ArrayShape, Literal, Module, Shape};

use crate::element::int_limits;
use crate::exit::{Exit, Failure};
use crate::npz::Npz;

pub use fill::{Fill, draw, fill_array, key};

/// What one array among the entry's parameters is filled with.
#[derive(Clone, PartialEq, Debug)]
pub struct LeafPlan {
    /// Number of the parameter.
    pub parameter: usize,
    /// Which array of it, tuples flattened in order.
    pub leaf: usize,
    /// Its shape.
    pub shape: ArrayShape,
    /// The rule for its elements.
    pub fill: Fill,
}

/// What the inputs of a program are made from, one entry for each array, in the order `arg0, arg1, ...` of an `.npz` file.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The arrays.
    pub leaves: Vec<LeafPlan>,
}

/// Decides how each input is made. `int_range` (half-open) overrides the range of all integer parameters.
///
/// Errors: [`Exit::Unsupported`] for parameters of a type or size that has no values.
pub fn plan(module: &Module, int_range: Option<(i64, i64)>) -> Result<Plan, Failure> {
    let demands = demand::of_parameters(module);
    let mut leaves = Vec::new();
    for (parameter, (shape, demands)) in parameter_shapes(module).iter().zip(&demands).enumerate() {
        for (leaf, (leaf_shape, demand)) in shape.leaves().iter().zip(demands).enumerate() {
            let array = match strip_buffer(leaf_shape) {
                Shape::Array(a) => a,
                Shape::Token => continue,
                Shape::Opaque | Shape::Tuple(_) | Shape::Buffer(_) => {
                    return Err(Failure::new(
                        Exit::Unsupported,
                        format!("parameter {parameter} is {leaf_shape}: no inputs can be made for it"),
                    ));
                }
            };
            if array.checked_elements().is_none() {
                return Err(Failure::new(
                    Exit::Unsupported,
                    format!("parameter {parameter} is {array}: its size is not known, so it needs --inputs"),
                ));
            }
            let mut fill = demand.fill(array);
            if let (Some((low, high)), true) = (int_range, array.element_type.is_integer()) {
                let (least, greatest) = int_limits(array.element_type).unwrap_or((0, 1));
                let low = i128::from(low).clamp(least, greatest);
                let high = (i128::from(high) - 1).clamp(low, greatest);
                fill = Fill::Int { low, high };
            }
            leaves.push(LeafPlan { parameter, leaf, shape: array.clone(), fill });
        }
    }
    Ok(Plan { leaves })
}

/// The shapes of the entry's parameters.
pub fn parameter_shapes(module: &Module) -> Vec<Shape> {
    let entry = module.computation(module.entry());
    entry.parameters().iter().flatten().map(|&p| module.instr(p).shape.clone()).collect()
}

/// The array shapes of the entry's parameters, tuples flattened, tokens left out: `arg0, arg1, ...`.
pub fn parameter_arrays(module: &Module) -> Vec<ArrayShape> {
    parameter_shapes(module)
        .iter()
        .flat_map(|s| {
            s.leaves().into_iter().filter_map(|l| strip_buffer(l).as_array().cloned()).collect::<Vec<_>>()
        })
        .collect()
}

/// The array inside a buffer type.
fn strip_buffer(shape: &Shape) -> &Shape {
    match shape {
        Shape::Buffer(inner) => strip_buffer(inner),
        Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque => shape,
    }
}

/// Makes the arrays of a plan. Errors: [`Exit::Trap`] if they need more than `memory_limit` bytes.
pub fn generate(
    plan: &Plan,
    seed: u64,
    device: u64,
    memory_limit: u64,
) -> Result<Vec<ArrayLiteral>, Failure> {
    let bytes = plan.leaves.iter().try_fold(0u64, |n, l| {
        n.checked_add(Shape::Array(l.shape.clone()).checked_bytes()?.try_into().ok()?)
    });
    if bytes.is_none_or(|b| b > memory_limit) {
        return Err(Failure::new(
            Exit::Trap,
            format!("the inputs alone need more memory than the limit of {memory_limit} bytes"),
        ));
    }
    Ok(plan
        .leaves
        .iter()
        .map(|l| fill_array(&l.shape, &l.fill, key(seed, device, l.parameter as u64, l.leaf as u64)))
        .collect())
}

/// Builds the values of the entry's parameters from their arrays. Errors: [`Exit::Usage`] if there are too few.
pub fn to_parameters(module: &Module, arrays: Vec<ArrayLiteral>) -> Result<Vec<Literal>, Failure> {
    let mut arrays = arrays.into_iter();
    parameter_shapes(module).iter().map(|s| build(s, &mut arrays)).collect()
}

fn build(shape: &Shape, arrays: &mut impl Iterator<Item = ArrayLiteral>) -> Result<Literal, Failure> {
    match shape {
        Shape::Array(_) => arrays
            .next()
            .map(Literal::Array)
            .ok_or_else(|| Failure::usage("there are fewer input arrays than parameters")),
        Shape::Tuple(t) => Ok(Literal::Tuple(t.iter().map(|s| build(s, arrays)).collect::<Result<_, _>>()?)),
        Shape::Token => Ok(Literal::Token),
        Shape::Buffer(inner) => build(inner, arrays),
        Shape::Opaque => Err(Failure::new(Exit::Unsupported, "a parameter is opaque: it has no values")),
    }
}

/// Reads `arg0, arg1, ...` of an `.npz` file; `prefix` is `dK.` for device K of several.
pub fn read(module: &Module, npz: &mut Npz, prefix: &str) -> Result<Vec<ArrayLiteral>, Failure> {
    parameter_arrays(module)
        .iter()
        .enumerate()
        .map(|(i, s)| npz.array(&format!("{prefix}arg{i}"), s))
        .collect()
}

/// The integer range that an `inputs.json` beside a program gives for it: `{"stem of the file": [low, high)}`.
/// Errors: [`Exit::Usage`] if the file is there and makes no sense.
pub fn range_beside(program: &str) -> Result<Option<(i64, i64)>, Failure> {
    let path = Path::new(program);
    let (Some(folder), Some(stem)) = (path.parent(), path.file_stem().and_then(|s| s.to_str())) else {
        return Ok(None);
    };
    let ranges = folder.join("inputs.json");
    let text = match std::fs::read_to_string(&ranges) {
        Ok(text) => text,
        Err(_) => return Ok(None),
    };
    let bad = |what: &str| Failure::usage(format!("{}: {what}", ranges.display()));
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|e| bad(&format!("not JSON: {e}")))?;
    let Some(range) = json.get(stem) else { return Ok(None) };
    let numbers: Vec<i64> =
        range.as_array().into_iter().flatten().filter_map(serde_json::Value::as_i64).collect();
    match numbers[..] {
        [low, high] if low < high => Ok(Some((low, high))),
        _ => Err(bad(&format!("`{stem}` is not a range [low, high) of integers"))),
    }
}

/// What the inputs are, for people: `arg0: uniform [-1, 1), 16.8M values`.
pub fn describe(plan: &Plan) -> String {
    let mut text = String::new();
    for (i, l) in plan.leaves.iter().enumerate().take(4) {
        if i > 0 {
            text.push_str("; ");
        }
        let n = l.shape.checked_elements().unwrap_or(0);
        let count = crate::report::count(n as u64);
        text.push_str(&format!("arg{i}: {}, {count} value{}", l.fill, if n == 1 { "" } else { "s" }));
    }
    if plan.leaves.len() > 4 {
        text.push_str(&format!("; and {} more", plan.leaves.len() - 4));
    }
    text
}
