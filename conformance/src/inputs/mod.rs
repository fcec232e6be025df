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
use hlo_interp::Devices;
use rustc_hash::FxHashSet;

use crate::element::int_limits;
use crate::engine::array_name;
use crate::exit::{Exit, Failure};
use crate::files::{self, read_beside};
use crate::npz::Npz;
use crate::room;

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

/// Makes the arrays of a plan, for each device. Errors: [`Exit::Trap`] if they need more than `memory_limit` bytes.
pub fn generate(
    plan: &Plan,
    seed: u64,
    devices: Devices,
    memory_limit: u64,
) -> Result<Vec<Vec<ArrayLiteral>>, Failure> {
    let bytes = plan.leaves.iter().try_fold(0u64, |n, l| {
        n.checked_add(Shape::Array(l.shape.clone()).checked_bytes()?.try_into().ok()?)
    });
    let all = bytes.and_then(|b| b.checked_mul(u64::from(devices.count())));
    let room = room::within(memory_limit, 0, 1);
    if all.is_none_or(|b| b > room.bytes) {
        return Err(Failure::new(
            Exit::Trap,
            format!("the inputs alone need more memory than the limit of {}", room.describe()),
        ));
    }
    let array = |l: &LeafPlan, device: u64| {
        fill_array(&l.shape, &l.fill, key(seed, device, l.parameter as u64, l.leaf as u64))
    };
    Ok((0..u64::from(devices.count())).map(|d| plan.leaves.iter().map(|l| array(l, d)).collect()).collect())
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

/// Reads `arg0, arg1, ...` of an `.npz` file. Of several devices, `dK.arg0` is for device K, and `arg0` for those that have no
/// array of their own. Errors: arrays that are missing, of another shape, or for no parameter.
pub fn read(module: &Module, npz: &mut Npz, devices: Devices) -> Result<Vec<Vec<ArrayLiteral>>, Failure> {
    let shapes = parameter_arrays(module);
    let count = devices.count() as usize;
    let mut all = Vec::with_capacity(count);
    let mut taken = FxHashSet::default();
    for device in 0..count {
        let mut arrays = Vec::with_capacity(shapes.len());
        for (i, shape) in shapes.iter().enumerate() {
            let (own, common) = (array_name(count, device, "arg", i), format!("arg{i}"));
            let name = if npz.contains(&own) || !npz.contains(&common) { own } else { common };
            arrays.push(npz.array(&name, shape)?);
            taken.insert(name);
        }
        all.push(arrays);
    }
    npz.has_only(|name| taken.contains(name), "parameter")?;
    Ok(all)
}

/// The integer range that an `inputs.json` beside a program gives for it: `{"stem of the file": [low, high)}`.
/// Errors: [`Exit::Usage`] if the file is there and makes no sense.
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

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::Opcode;

    fn fills(computations: &str, body: &str) -> Vec<Fill> {
        let text = format!("HloModule m\n\n{computations}\n\nENTRY e {{\n{body}\n}}\n");
        let (module, found) = crate::frontend::parse_text(&text);
        let module = module.unwrap_or_else(|| panic!("{}", hlo::diag::render_all(&found, "m", &text, false)));
        let found = hlo::verify::verify(&module);
        assert!(!found.has_errors(), "{}", hlo::diag::render_all(&found, "m", &text, false));
        plan(&module, None).unwrap().leaves.into_iter().map(|l| l.fill).collect()
    }

    const ADD: &str =
        "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}";

    #[test]
    fn indices_are_in_range() {
        let gather = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}";
        let body = |attrs: &str| {
            format!(
                "  t = f32[7,3] parameter(0)\n  i = s32[5,1] parameter(1)\n  ROOT g = f32[5,3] gather(t, i), {gather}{attrs}"
            )
        };
        assert_eq!(fills("", &body(""))[1], Fill::Vectors { dim: 1, greatest: vec![6], ascending: false });
        assert_eq!(
            fills("", &body(", indices_are_sorted=true"))[1],
            Fill::Vectors { dim: 1, greatest: vec![6], ascending: true }
        );
        // Behind moves and a select, as JAX writes x[i]: a plain range.
        let jax = "  t = f32[7,3] parameter(0)\n  i = s32[5] parameter(1)\n  z = s32[] constant(0)\n  zs = s32[5] broadcast(z), dimensions={}\n  n = s32[] constant(7)\n  ns = s32[5] broadcast(n), dimensions={}\n  c = pred[5] compare(i, zs), direction=LT\n  j = s32[5] add(i, ns)\n  k = s32[5] select(c, j, i)\n  r = s32[5,1] reshape(k)\n";
        let jax = format!("{jax}  ROOT g = f32[5,3] gather(t, r), {gather}");
        assert_eq!(fills("", &jax)[1], Fill::Int { low: 0, high: 6 });
        let slice = "  t = f32[7,3] parameter(0)\n  i = s32[] parameter(1)\n  j = u8[] parameter(2)\n  k = s32[] convert(j)\n  ROOT d = f32[2,2] dynamic-slice(t, i, k), dynamic_slice_sizes={2,2}";
        assert_eq!(fills("", slice)[1..], [Fill::Int { low: 0, high: 5 }, Fill::Int { low: 0, high: 1 }]);
    }

    #[test]
    fn demands_cross_calls_loops_and_tuples() {
        let callee = "f {\n  t = f32[7] parameter(0)\n  i = s32[] parameter(1)\n  ROOT d = f32[2] dynamic-slice(t, i), dynamic_slice_sizes={2}\n}";
        let call = "  t = f32[7] parameter(0)\n  p = (f32[], s32[]) parameter(1)\n  i = s32[] get-tuple-element(p), index=1\n  ROOT r = f32[2] fusion(t, i), kind=kLoop, calls=f";
        assert_eq!(
            fills(callee, call)[1..],
            [Fill::Real { low: -1.0, high: 1.0 }, Fill::Int { low: 0, high: 5 }]
        );
        let looped = "c {\n  p = (s32[], f32[9]) parameter(0)\n  ROOT t = pred[] constant(false)\n}\n\nb {\n  p = (s32[], f32[9]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  x = f32[9] get-tuple-element(p), index=1\n  s = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}\n  u = f32[9] dynamic-update-slice(x, s, i)\n  ROOT t = (s32[], f32[9]) tuple(i, u)\n}";
        let entry = "  i = s32[] parameter(0)\n  x = f32[9] parameter(1)\n  t = (s32[], f32[9]) tuple(i, x)\n  ROOT w = (s32[], f32[9]) while(t), condition=c, body=b";
        assert_eq!(fills(looped, entry)[0], Fill::Int { low: 0, high: 5 });
    }

    #[test]
    fn initial_values_divisors_and_domains() {
        let reduce = "  x = f32[4] parameter(0)\n  z = f32[] parameter(1)\n  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add";
        assert_eq!(fills(ADD, reduce)[1], Fill::Identity(Opcode::Add));
        let divide = "  a = s32[4] parameter(0)\n  b = s32[4] parameter(1)\n  ROOT r = s32[4] divide(a, b)";
        assert_eq!(fills("", divide)[1], Fill::Int { low: 1, high: 8 });
        let log = "  a = f32[4] parameter(0)\n  ROOT r = f32[4] log(a)";
        assert_eq!(fills("", log)[0], Fill::Real { low: 0.015625, high: 4.0 });
        // sqrt(0.5 * v + m): both terms must not be negative.
        let adam = "  v = f32[] parameter(0)\n  m = f32[] parameter(1)\n  h = f32[] constant(0.5)\n  w = f32[] multiply(h, v)\n  s = f32[] add(w, m)\n  ROOT r = f32[] sqrt(s)";
        assert_eq!(fills("", adam), [Fill::Real { low: 0.0, high: 4.0 }, Fill::Real { low: 0.0, high: 2.0 }]);
        let shift = "  a = u8[4] parameter(0)\n  b = u8[4] parameter(1)\n  ROOT r = u8[4] shift-left(a, b)";
        assert_eq!(fills("", shift)[1], Fill::Int { low: 0, high: 7 });
    }

    #[test]
    fn conflicting_uses_are_resolved() {
        // A divisor (1 to 8) and a start index of a slice that only fits at 0.
        let body = "  t = f32[2] parameter(0)\n  i = s32[] parameter(1)\n  d = f32[2] dynamic-slice(t, i), dynamic_slice_sizes={2}\n  q = s32[] divide(i, i)\n  ROOT r = (f32[2], s32[]) tuple(d, q)";
        assert_eq!(fills("", body)[1], Fill::Int { low: 0, high: 0 });
    }

    #[test]
    fn keys_of_a_sort_with_values_are_distinct() {
        let lt = "lt {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = s32[] parameter(2)\n  d = s32[] parameter(3)\n  ROOT e = pred[] compare(a, b), direction=LT\n}";
        let body = "  k = f32[9] parameter(0)\n  v = s32[9] parameter(1)\n  ROOT s = (f32[9], s32[9]) sort(k, v), dimensions={0}, to_apply=lt";
        assert_eq!(fills(lt, body), [Fill::Distinct, Fill::Int { low: -8, high: 7 }]);
    }

    #[test]
    fn ranges_beside_a_program() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("m.hlo");
        let program = program.to_str().unwrap();
        assert_eq!(range_beside(program).unwrap(), None);
        std::fs::write(dir.path().join("inputs.json"), r#"{"m": [3, 9], "n": 4}"#).unwrap();
        assert_eq!(range_beside(program).unwrap(), Some((3, 9)));
        assert_eq!(range_beside(&program.replace("m.hlo", "n.hlo")).unwrap_err().exit, Exit::Usage);
        assert_eq!(range_beside(&program.replace("m.hlo", "o.hlo")).unwrap(), None);
    }
}
