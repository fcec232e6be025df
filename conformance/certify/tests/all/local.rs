//! Executions judged by their operands ([`hlo_certify::bounds::Local`]), held against the run with bounds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use hlo::{BufferOf, ElementType, Module, with_element_type};
use hlo_certify::bounds::{Bounds, Certified, Known, Local, certify};
use hlo_execution::allowances::Allowances;
use hlo_execution::element::Number;
use hlo_execution::run::{Inputs, RunOptions};
use hlo_interp::device::host::NoHost;
use hlo_interp::{Interpreter, Options, Tensor, Value};

/// An array of a type.
fn typed(ty: ElementType, dims: &[i64], numbers: &[f64]) -> Value {
    let buffer = with_element_type!(ty, T => {
        <T as BufferOf>::wrap(numbers.iter().map(|&x| <T as Number>::from_parts(x, 0.0)).collect())
    });
    Value::Array(Tensor::new(dims, buffer))
}

fn parse_text(text: &str) -> (Option<Module>, hlo::Diagnostics) {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    (parsed.module, parsed.diagnostics)
}

const REGIONS: &str = "add { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y) }
max { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] maximum(x, y) }
";

/// Numbers of both signs.
fn made(n: usize, seed: u64) -> Vec<f32> {
    (0..n as u64).map(|i| (hlo::elided::splitmix64(seed << 32 | i) >> 40) as f32 / 4194304.0 - 2.0).collect()
}

/// The root of a program on generated operands: what the run with bounds allows, and what is explained here,
/// element by element.
struct Trial {
    module: Module,
    operands: Vec<Value>,
}

/// How many elements were tried, and of how many a difference of one unit, well within their bounds, is
/// explained.
#[derive(Default)]
struct Found {
    tried: usize,
    explained: usize,
    exact: usize,
}

impl Trial {
    fn new(text: &str) -> Trial {
        let (module, found) = parse_text(&format!("HloModule m\n{REGIONS}{text}"));
        let module = module.unwrap_or_else(|| panic!("{found:?}"));
        let parameters = module.computation(module.entry()).parameters().iter().zip(1..);
        let operands = parameters.map(|(p, seed)| {
            let shape = module.instr(p.unwrap()).shape.expect_array();
            let n = shape.dims.iter().product::<i64>() as usize;
            let numbers: Vec<f64> = made(n, seed).into_iter().map(f64::from).collect();
            typed(shape.element_type, &shape.dims, &numbers)
        });
        let operands = operands.collect();
        Trial { module, operands }
    }

    /// The result, and the run with bounds.
    fn certified(&self, allowances: Allowances) -> (Value, Certified) {
        let expected = Interpreter::new(&self.module, Options::default()).run(self.operands.clone()).unwrap();
        let arguments = vec![self.operands.iter().map(|v| v.clone().into_literal()).collect()];
        let inputs = Inputs { arguments, host: Arc::new(NoHost) };
        let certified = certify(&self.module, inputs, &RunOptions::default(), allowances, &mut ()).unwrap();
        (expected, certified)
    }

    /// Of a result of one array of a type: its neighbours and theirs are explained only where the bounds allow
    /// them; gives of how many that are explained, and how many are not.
    fn neighbours<T: Number>(&self) -> [usize; 2] {
        let (expected, certified) = self.certified(Allowances::STRICT);
        let mut local = Local::new(&self.module, &RunOptions::default(), Allowances::STRICT, false).unwrap();
        let root = self.module.root(self.module.entry());
        let (array, bounds) = (expected.as_array().unwrap(), &certified.results[0][0].1);
        let mut found = [0, 0];
        for (i, &e) in array.slice::<T>().iter().enumerate() {
            for step in [1u128, 2, 3, u128::MAX, u128::MAX - 1] {
                let other = T::from_bits(e.bits().wrapping_add(step));
                let mut elements = array.slice::<T>().to_vec();
                elements[i] = other;
                let actual = Value::Array(Tensor::from_vec(array.dims(), elements));
                let known = local.judge(root, &self.operands, &expected, &actual);
                let within = (e.parts().0.value() - other.parts().0.value()).abs() <= bounds.soft.at(i);
                let explained = matches!(known, Known::Explained(_));
                assert!(within || !explained, "{i}: {e:?} {other:?} {}", bounds.soft.at(i));
                found[usize::from(within && !explained)] += usize::from(within);
            }
        }
        found
    }

    /// No difference beyond the bounds is explained; gives of how many within them one is.
    fn run(&self, allowances: Allowances) -> Found {
        let module = &self.module;
        let options = RunOptions::default();
        let (expected, certified) = self.certified(allowances);
        let mut local = Local::new(module, &options, allowances, false).unwrap();
        let root = module.root(module.entry());
        let mut found = Found::default();
        let arrays: Vec<Tensor> = expected.arrays().into_iter().cloned().collect();
        for (k, array) in arrays.iter().enumerate() {
            for i in 0..array.len() {
                let e = array.slice::<f32>()[i];
                let soft = certified.results[0][k].1.soft.at(i);
                let mut explains = |actual: f32| {
                    let mut changed = arrays.clone();
                    let mut elements = array.slice::<f32>().to_vec();
                    elements[i] = actual;
                    changed[k] = Tensor::from_vec(array.dims(), elements);
                    let mut parts = changed.into_iter().map(Value::Array);
                    let actual = match &expected {
                        Value::Tuple(_) => Value::tuple(parts),
                        _ => parts.next().unwrap(),
                    };
                    matches!(local.judge(root, &self.operands, &expected, &actual), Known::Explained(_))
                };
                if soft == 0.0 {
                    found.exact += 1;
                    assert!(!explains(e.next_up()) && !explains(e.next_down()), "{k}: {i} is exact");
                    continue;
                }
                let off = (soft * 1.001) as f32;
                let (above, below) = ((e + off).next_up(), (e - off).next_down());
                assert!(!explains(above) && !explains(below), "{k}: {i}: {e} is off by more than {soft}");
                if soft >= 2.0 * (f64::from(e.next_up()) - f64::from(e)) {
                    found.tried += 1;
                    found.explained += usize::from(explains(e.next_up()) && explains(e.next_down()));
                }
            }
        }
        found
    }
}

/// Of each program nearly all that is within its bounds is explained, and nothing that is not.
fn explains_what_rules_do(text: &str) {
    let found = Trial::new(text).run(Allowances::STRICT);
    assert!(
        found.tried > 20 && found.explained * 10 >= found.tried * 9,
        "{} of {}",
        found.explained,
        found.tried
    );
}

#[test]
fn rows_are_normalized() {
    explains_what_rules_do(
        "f { x = f32[5,37] parameter(0)\n low = f32[] constant(-inf)\n zero = f32[] constant(0)
        m = f32[5] reduce(x, low), dimensions={1}, to_apply=max\n lows = f32[5] broadcast(low), dimensions={}
        n = f32[5] maximum(m, lows)\n b = f32[5,37] broadcast(n), dimensions={0}\n d = f32[5,37] subtract(x, b)
        y = f32[5,37] exponential(d)\n s = f32[5] reduce(y, zero), dimensions={1}, to_apply=add
        t = f32[5,37] broadcast(s), dimensions={0}\n q = f32[5,37] divide(y, t)
        ROOT r = (f32[5,37], f32[5], f32[5,37]) tuple(y, s, q) }
        ENTRY e { x = f32[5,37] parameter(0)
        ROOT r = (f32[5,37], f32[5], f32[5,37]) fusion(x), kind=kCustom, calls=f }",
    );
}

#[test]
fn layers_are_normalized() {
    explains_what_rules_do(
        "f { x = f32[3,4,32] parameter(0)\n g = f32[32] parameter(1)\n h = f32[4,32] parameter(2)
        zero = f32[] constant(0)\n c = f32[] constant(0.03125)\n small = f32[] constant(0.00001)
        hs = f32[3,4,32] broadcast(h), dimensions={1,2}\n y = f32[3,4,32] add(x, hs)
        s = f32[3,4] reduce(y, zero), dimensions={2}, to_apply=add\n cs = f32[3,4] broadcast(c), dimensions={}
        m = f32[3,4] multiply(s, cs)\n ms = f32[3,4,32] broadcast(m), dimensions={0,1}
        d = f32[3,4,32] subtract(y, ms)\n dd = f32[3,4,32] multiply(d, d)
        v = f32[3,4] reduce(dd, zero), dimensions={2}, to_apply=add\n w = f32[3,4] multiply(v, cs)
        smalls = f32[3,4] broadcast(small), dimensions={}\n u = f32[3,4] add(w, smalls)
        q = f32[3,4] rsqrt(u)\n qs = f32[3,4,32] broadcast(q), dimensions={0,1}
        z = f32[3,4,32] multiply(d, qs)\n gs = f32[3,4,32] broadcast(g), dimensions={2}
        k = f32[3,4,32] multiply(z, gs)\n ROOT r = (f32[3,4], f32[3,4], f32[3,4,32]) tuple(m, q, k) }
        ENTRY e { x = f32[3,4,32] parameter(0)\n g = f32[32] parameter(1)\n h = f32[4,32] parameter(2)
        ROOT r = (f32[3,4], f32[3,4], f32[3,4,32]) fusion(x, g, h), kind=kCustom, calls=f }",
    );
}

#[test]
fn chains_are_followed() {
    explains_what_rules_do(
        "f { x = f32[7,11] parameter(0)\n one = f32[] constant(1)\n half = f32[] constant(0.5)
        ones = f32[7,11] broadcast(one), dimensions={}\n halves = f32[7,11] broadcast(half), dimensions={}
        a = f32[7,11] abs(x)\n n = f32[7,11] negate(a)\n y = f32[7,11] exponential(n)\n t = f32[7,11] tanh(x)
        u = f32[7,11] add(y, ones)\n q = f32[7,11] divide(t, u)\n l = f32[7,11] log(u)
        p = pred[7,11] compare(x, halves), direction=LT\n s = f32[7,11] select(p, q, l)
        m = f32[7,11] minimum(s, halves)\n k = f32[7,11] multiply(s, t)\n i = f32[7,11] logistic(k)
        ROOT r = (f32[7,11], f32[7,11], f32[7,11]) tuple(m, k, i) }
        ENTRY e { x = f32[7,11] parameter(0)
        ROOT r = (f32[7,11], f32[7,11], f32[7,11]) fusion(x), kind=kLoop, calls=f }",
    );
}

#[test]
fn products_go_on() {
    let dot = "a = f32[2,6,17] parameter(0)\n b = f32[2,5,17] parameter(1)
        d = f32[2,6,5] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}";
    explains_what_rules_do(&format!(
        "f {{ {dot}\n c = f32[5] parameter(2)\n cs = f32[2,6,5] broadcast(c), dimensions={{2}}
        s = f32[2,6,5] add(d, cs)\n t = f32[2,6,5] tanh(s)\n ROOT r = (f32[2,6,5], f32[2,6,5]) tuple(s, t) }}
        ENTRY e {{ a = f32[2,6,17] parameter(0)\n b = f32[2,5,17] parameter(1)\n c = f32[5] parameter(2)
        ROOT r = (f32[2,6,5], f32[2,6,5]) fusion(a, b, c), kind=kOutput, calls=f }}"
    ));
    explains_what_rules_do(&format!("ENTRY e {{ {} }}", dot.replace(" d = ", " ROOT d = ")));
}

#[test]
fn columns_are_added_up() {
    explains_what_rules_do(
        "f { x = f32[3,9,40] parameter(0)\n m = f32[40] parameter(1)\n zero = f32[] constant(0)
        s = f32[40] reduce(x, zero), dimensions={0,1}, to_apply=add\n p = f32[40] multiply(s, m)
        ROOT r = (f32[40], f32[40]) tuple(s, p) }
        ENTRY e { x = f32[3,9,40] parameter(0)\n m = f32[40] parameter(1)
        ROOT r = (f32[40], f32[40]) fusion(x, m), kind=kLoop, calls=f }",
    );
    explains_what_rules_do(
        "ENTRY e { x = f32[60,9] parameter(0)\n zero = f32[] constant(0)
        ROOT s = f32[60] reduce(x, zero), dimensions={1}, to_apply=add }"
            .replace("zero = f32[] constant(0)", "zero = f32[] parameter(1)")
            .as_str(),
    );
}

/// What is exact is explained by nothing, and no liberty is judged here.
#[test]
fn arithmetic_stays_exact() {
    let exact = Trial::new(
        "f { x = f32[6,8] parameter(0)\n y = f32[8] parameter(1)\n ys = f32[6,8] broadcast(y), dimensions={1}
        s = f32[6,8] add(x, ys)\n p = f32[6,8] multiply(s, x)\n ROOT r = f32[6,8] divide(p, ys) }
        ENTRY e { x = f32[6,8] parameter(0)\n y = f32[8] parameter(1)
        ROOT r = f32[6,8] fusion(x, y), kind=kLoop, calls=f }",
    );
    assert_eq!(exact.run(Allowances::STRICT).exact, 48);
    let loose = Local::new(&exact.module, &RunOptions::default(), Allowances::LOOSE, false);
    assert!(loose.is_none());
}

/// A decision that hangs on rounding is left to the run with bounds.
#[test]
fn decisions_are_left() {
    let text = "f { x = f32[40] parameter(0)\n y = f32[40] exponential(x)\n t = f32[40] tanh(x)
        p = pred[40] compare(y, y), direction=GT\n ROOT s = f32[40] select(p, y, t) }
        ENTRY e { x = f32[40] parameter(0)\n ROOT r = f32[40] fusion(x), kind=kLoop, calls=f }";
    assert_eq!(Trial::new(text).run(Allowances::STRICT).explained, 0);
}

#[test]
fn windows_are_added_up() {
    for (lhs, rhs, result, attributes) in [
        ("2,7,9,4", "3,3,4,6", "2,7,9,6", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
        (
            "2,4,11",
            "6,2,3",
            "2,6,6",
            "window={size=3 stride=2 pad=2_1 rhs_reversal=1}, dim_labels=bf0_oi0->bf0, feature_group_count=2",
        ),
        (
            "9,2,4",
            "3,4,6",
            "14,2,6",
            "window={size=3 pad=0_1 lhs_dilate=2 rhs_dilate=2}, dim_labels=0bf_0io->0bf",
        ),
    ] {
        explains_what_rules_do(&format!(
            "ENTRY e {{ x = f32[{lhs}] parameter(0)\n k = f32[{rhs}] parameter(1)
            ROOT c = f32[{result}] convolution(x, k), {attributes} }}"
        ));
    }
}

#[test]
fn columns_beyond_a_panel_are_found() {
    explains_what_rules_do(
        "f { a = f32[3,20] parameter(0)\n b = f32[20,37] parameter(1)\n c = f32[37] parameter(2)
        d = f32[3,37] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        e = f32[3,37] broadcast(c), dimensions={1}\n ROOT s = f32[3,37] add(d, e) }
        ENTRY e { a = f32[3,20] parameter(0)\n b = f32[20,37] parameter(1)\n c = f32[37] parameter(2)
        ROOT f = f32[3,37] fusion(a, b, c), kind=kLoop, calls=f }",
    );
}

#[test]
fn narrow_products_are_added_up() {
    use hlo::half::{bf16, f16};
    let text = |lhs: &str, rhs: &str, result: &str| {
        format!(
            "ENTRY e {{ a = {lhs}[9,300] parameter(0)\n b = {rhs}[7,300] parameter(1)
            ROOT d = {result}[9,7] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}} }}"
        )
    };
    let windows = "ENTRY e { x = bf16[2,7,9,4] parameter(0)\n k = bf16[3,3,4,6] parameter(1)
        ROOT c = bf16[2,7,9,6] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }";
    for [explained, left] in [
        Trial::new(&text("bf16", "bf16", "bf16")).neighbours::<bf16>(),
        Trial::new(&text("f16", "f16", "f16")).neighbours::<f16>(),
        Trial::new(&text("bf16", "f16", "f32")).neighbours::<f32>(),
        Trial::new(windows).neighbours::<bf16>(),
    ] {
        // Radii are the same on both sides of a number that may be rounded to one neighbour alone.
        assert!(explained >= 10 && left <= explained, "{explained} and {left}");
    }
    // What is converted to the type of the result first is another sum.
    assert_eq!(Trial::new(&text("f32", "bf16", "bf16")).neighbours::<bf16>()[0], 0);
}

/// What calls computations is judged by a run of it alone, if that is another execution of the same.
#[test]
fn calls_are_run_alone() {
    let alone = |text: &str| {
        let trial = Trial::new(text);
        let (expected, certified) = trial.certified(Allowances::STRICT);
        let options = RunOptions::default();
        let mut local = Local::new(&trial.module, &options, Allowances::STRICT, false).unwrap();
        let root = trial.module.root(trial.module.entry());
        let zeros =
            expected.arrays().into_iter().map(|t| typed(t.element_type(), t.dims(), &vec![0.0; t.len()]));
        let zeros: Vec<Value> = zeros.collect();
        let actual = if expected.as_array().is_some() { zeros[0].clone() } else { Value::tuple(zeros) };
        match local.judge(root, &trial.operands, &expected, &actual) {
            Known::Bounds(found) => {
                let of: Vec<Bounds> = certified.results[0].iter().map(|(_, b)| b.clone()).collect();
                assert_eq!(found, of);
                true
            }
            Known::Explained(_) | Known::Nothing => false,
        }
    };
    assert!(alone(
        "c { s = (s32[], f32[8]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(5)
        ROOT p = pred[] compare(i, n), direction=LT }
        b { s = (s32[], f32[8]) parameter(0)\n i = s32[] get-tuple-element(s), index=0\n one = s32[] constant(1)
        j = s32[] add(i, one)\n x = f32[8] get-tuple-element(s), index=1\n y = f32[8] exponential(x)
        z = f32[8] tanh(y)\n ROOT t = (s32[], f32[8]) tuple(j, z) }
        f { x = f32[8] parameter(0)\n z = s32[] constant(0)\n t = (s32[], f32[8]) tuple(z, x)
        ROOT w = (s32[], f32[8]) while(t), condition=c, body=b }
        ENTRY e { x = f32[8] parameter(0)\n ROOT r = (s32[], f32[8]) call(x), to_apply=f }"
    ));
    assert!(alone(
        "f { x = bf16[6,8] parameter(0)\n y = bf16[6,8] exponential(x)\n ROOT z = bf16[6,8] tanh(y) }
        ENTRY e { x = bf16[6,8] parameter(0)\n ROOT r = bf16[6,8] fusion(x), kind=kLoop, calls=f }"
    ));
    assert!(!alone(
        "f { x = f32[8] parameter(0)\n a = f32[] constant(0)\n b = f32[] constant(1)
        y = f32[8] rng(a, b), distribution=rng_uniform\n ROOT z = f32[8] add(x, y) }
        ENTRY e { x = f32[8] parameter(0)\n ROOT r = f32[8] call(x), to_apply=f }"
    ));
}
