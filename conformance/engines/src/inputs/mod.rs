//! Inputs for a program, generated when none are given. The rule is written down in `docs/inputs.md`, so that
//! another program can make the same values.
//!
//! **Invariants:** a value depends only on (seed, device, parameter number, leaf, element index) and on what
//! the program does with the parameter, never on threads, time or the machine; making inputs never fails
//! because of how a parameter is used: conflicting demands are resolved, the narrower wins.

mod cover;
mod demand;
mod fill;
mod kind;

use std::path::Path;

use hlo::{ArrayLiteral, ArrayShape, Module, Opcode, Shape};
use hlo_interp::Devices;
use rustc_hash::FxHashSet;

use crate::frontend::Program;
use hlo_execution::element::int_limits;
use hlo_execution::run::{array_name, parameter_shapes};
use hlo_system::exit::{Exit, Failure};
use hlo_system::files::{self, read_beside};
use hlo_system::memory_budget::{self, MemoryBudget};
use hlo_system::npz::Npz;

pub use fill::{Cover, Fill, draw, fill_array, key};
pub use kind::InputKind;

/// The rule that fills one array among the entry's parameters.
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
    /// Whether the program means something with any other elements too, so that other kinds of inputs may
    /// replace them.
    pub free: bool,
}

/// What the inputs of a program are generated from, one entry for each array, in the order `arg0, arg1, ...`
/// of an `.npz` file.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The arrays.
    pub leaves: Vec<LeafPlan>,
}

impl LeafPlan {
    /// The plan for an array of a kind, as far as the program leaves it open.
    #[must_use]
    pub fn of_kind(&self, kind: InputKind) -> LeafPlan {
        let mut leaf = self.clone();
        if kind != InputKind::Gentle && self.free {
            let nonnegative = matches!(self.fill, Fill::Real { low, .. } if low >= 0.0);
            leaf.fill = Fill::Kind { kind, nonnegative, gentle: Box::new(self.fill.clone()) };
        }
        leaf
    }

    /// Its array on a device.
    pub fn made(&self, seed: u64, device: u64) -> ArrayLiteral {
        let key = key(seed, device, self.parameter as u64, self.leaf as u64);
        fill_array(&self.shape, &self.fill, key)
    }
}

impl Plan {
    /// The plan for inputs of a kind.
    #[must_use]
    pub fn of_kind(mut self, kind: InputKind) -> Plan {
        for leaf in &mut self.leaves {
            *leaf = leaf.of_kind(kind);
        }
        self
    }
}

/// Decides how each input is generated, of gentle inputs. `int_range` (half-open) overrides the range of all
/// integer parameters.
///
/// Errors: [`Exit::Unsupported`] for parameters of a type or size that has no values.
pub fn plan(module: &Module, int_range: Option<(i64, i64)>) -> Result<Plan, Failure> {
    let demands = demand::of_parameters(module);
    let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
    // A loop may count as far as an integer says.
    let loops = all.any(|i| module.instr(i).opcode == Opcode::While);
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
            let mut free = demand.free(array) && !(loops && array.element_type.is_integer());
            if let (Some((low, high)), true) = (int_range, array.element_type.is_integer()) {
                let (minimum, maximum) = int_limits(array.element_type).unwrap_or((0, 1));
                let low = i128::from(low).clamp(minimum, maximum);
                let high = (i128::from(high) - 1).clamp(low, maximum);
                fill = Fill::Int { low, high };
                free = false;
            }
            leaves.push(LeafPlan { parameter, leaf, shape: array.clone(), fill, free });
        }
    }
    Ok(Plan { leaves })
}

/// A plan for arrays of which nothing but their shapes is known.
pub fn plan_of_shapes(shapes: &[ArrayShape]) -> Plan {
    let demand = demand::Demand::default();
    let leaf = |(parameter, shape): (usize, &ArrayShape)| {
        let (fill, free) = (demand.fill(shape), demand.free(shape));
        LeafPlan { parameter, leaf: 0, shape: shape.clone(), fill, free }
    };
    Plan { leaves: shapes.iter().enumerate().map(leaf).collect() }
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

/// Whether arrays of these shapes for each device are within the limit. Errors: the memory that there is for
/// them.
pub fn fit<'a>(
    shapes: impl IntoIterator<Item = &'a ArrayShape>,
    devices: u32,
    memory_limit: u64,
) -> Result<(), MemoryBudget> {
    let bytes = shapes.into_iter().try_fold(0u64, |n, shape| {
        n.checked_add(Shape::Array(shape.clone()).checked_bytes()?.try_into().ok()?)
    });
    let budget = memory_budget::within(MemoryBudget::asked(memory_limit), 0, 1);
    match bytes.and_then(|b| b.checked_mul(u64::from(devices))) {
        Some(all) if all <= budget.bytes => Ok(()),
        Some(_) | None => Err(budget),
    }
}

/// Makes the arrays of a plan, for each device. Errors: [`Exit::Trap`] if they need more than `memory_limit`
/// bytes.
pub fn generate(
    plan: &Plan,
    seed: u64,
    devices: Devices,
    memory_limit: u64,
) -> Result<Vec<Vec<ArrayLiteral>>, Failure> {
    if let Err(budget) = fit(plan.leaves.iter().map(|l| &l.shape), devices.count(), memory_limit) {
        let message = format!("the inputs alone need more memory than the limit of {}", budget.describe());
        return Err(Failure::new(Exit::Trap, message));
    }
    let on = |device: u64| plan.leaves.iter().map(|l| l.made(seed, device)).collect();
    Ok((0..u64::from(devices.count())).map(on).collect())
}

/// The inputs of a program: those of a file, those that a snapshot recorded, or generated ones. For each
/// device.
pub fn of_program(
    program: &Program,
    given: Option<&str>,
    seed: u64,
    devices: Devices,
    memory_limit: u64,
) -> Result<Vec<Vec<ArrayLiteral>>, Failure> {
    let module = &program.module;
    if let Some(path) = given {
        return read(module, &mut Npz::open(path, memory_limit)?, devices);
    }
    let recorded = match &program.recorded {
        Some(recorded) => recorded.arguments_on(module, devices)?,
        None => None,
    };
    if let Some(arrays) = recorded {
        return Ok(arrays);
    }
    let plan = plan(module, range_beside(&program.source.name)?)?;
    generate(&plan, seed, devices, memory_limit)
}

/// Reads `arg0, arg1, ...` of an `.npz` file. Of several devices, `dK.arg0` is for device K, and `arg0` for
/// those that have no array of their own. Errors: arrays that are missing, of another shape, or for no
/// parameter.
pub fn read(module: &Module, npz: &mut Npz, devices: Devices) -> Result<Vec<Vec<ArrayLiteral>>, Failure> {
    let shapes = parameter_arrays(module);
    let count = devices.count() as usize;
    let mut all = Vec::with_capacity(count);
    let mut taken = FxHashSet::default();
    for device in 0..count {
        let mut wanted = Vec::with_capacity(shapes.len());
        for (i, shape) in shapes.iter().enumerate() {
            let (own, common) = (array_name(count, device, "arg", i), format!("arg{i}"));
            let name = if npz.contains(&own) || !npz.contains(&common) { own } else { common };
            taken.insert(name.clone());
            wanted.push((name, shape));
        }
        // The limit is that of each device.
        all.push(npz.arrays(wanted)?);
    }
    npz.has_only(|name| taken.contains(name), "parameter")?;
    Ok(all)
}

/// The integer range that an `inputs.json` beside a program gives for it:
/// `{"stem of the file": [low, high)}`. Errors: [`Exit::Usage`] if the file is there and makes no sense.
pub fn range_beside(program: &str) -> Result<Option<(i64, i64)>, Failure> {
    let path = Path::new(program);
    let (Some(folder), Some(stem)) = (path.parent(), path.file_stem().and_then(|s| s.to_str())) else {
        return Ok(None);
    };
    let ranges = folder.join("inputs.json");
    if !ranges.is_file() {
        return Ok(None);
    }
    let bad = |what: &str| Failure::usage(format!("{}: {what}", ranges.display()));
    let text = read_beside(&ranges).map_err(|e| bad(&format!("cannot be read: {}", files::describe(&e))))?;
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|e| bad(&format!("not JSON: {e}")))?;
    let Some(range) = json.get(stem) else { return Ok(None) };
    let numbers: Vec<i64> =
        range.as_array().into_iter().flatten().filter_map(serde_json::Value::as_i64).collect();
    match numbers[..] {
        [low, high] if low < high => Ok(Some((low, high))),
        _ => Err(bad(&format!("`{stem}` is not a range [low, high) of integers"))),
    }
}

/// A description of the inputs: `arg0: uniform [-1, 1), 16.8M values`.
pub fn describe(plan: &Plan) -> String {
    let mut text = String::new();
    for (i, l) in plan.leaves.iter().enumerate().take(4) {
        if i > 0 {
            text.push_str("; ");
        }
        let n = l.shape.checked_elements().unwrap_or(0);
        let count = hlo_system::quantity::count(n as u64);
        text.push_str(&format!("arg{i}: {}, {count} value{}", l.fill, if n == 1 { "" } else { "s" }));
    }
    if plan.leaves.len() > 4 {
        text.push_str(&format!("; and {} more", plan.leaves.len() - 4));
    }
    text
}

#[cfg(test)]
mod tests;
