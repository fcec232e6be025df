//! Watching runs: what is told, and what an observer may change.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use hlo::attrs::Direction;
use hlo::builder::{ComputationBuilder, scalar_region};
use hlo::{AttrKey, AttrValue, Attrs, ComputationId, ElementType, InstrId, Module, Opcode, Shape};
use hlo_interp::observe::{Flow, Observer, Site};
use hlo_interp::{Device, ErrorKind, Interpreter, Options, Tensor, Value};

/// Writes down what it is told, and answers with `flow` at the execution of the name that is given.
#[derive(Debug, Default)]
struct Notes {
    lines: Mutex<Vec<String>>,
    applied: Mutex<Vec<(String, u64)>>,
    at: Option<(&'static str, u64, Flow)>,
}

impl Observer for Notes {
    fn enter(&self, site: &Site<'_>, operands: &[Value]) {
        let operands: Vec<String> = operands.iter().map(text).collect();
        self.lines.lock().unwrap().push(format!("> {}({})", path(site), operands.join(", ")));
    }

    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        self.lines.lock().unwrap().push(format!("< {} = {}", path(site), text(result)));
        match &self.at {
            Some((name, n, flow)) if *site.instr().name == **name && site.execution == *n => flow.clone(),
            Some(_) | None => Flow::Continue,
        }
    }

    fn applied(&self, module: &Module, _: InstrId, computation: ComputationId, _: Device, elements: u64) {
        self.applied.lock().unwrap().push((module.computation(computation).name.to_string(), elements));
    }
}

fn path(site: &Site<'_>) -> String {
    let calls: String =
        site.calls().map(|c| format!("{}[{}]/", site.module.instr(c.caller).name, c.iteration)).collect();
    format!("{calls}{}#{}", site.instr().name, site.execution)
}

fn text(value: &Value) -> String {
    match value {
        Value::Array(t) if t.element_type() == ElementType::S32 => format!("{:?}", t.slice::<i32>()),
        Value::Array(t) => t.shape().to_string(),
        Value::Tuple(t) => format!("({})", t.iter().map(text).collect::<Vec<_>>().join(", ")),
        Value::Token => "token".into(),
        Value::Pending(_) => "promise".into(),
    }
}

/// `x, 0; while i < 2 { x + x, i + 1 }`, of `n` elements.
fn doubles_twice(n: i64) -> Module {
    let mut module = Module::new("m");
    let s32 = Shape::scalar(ElementType::S32);
    let xs = Shape::array(ElementType::S32, &[n]);
    let state = Shape::tuple([xs.clone(), s32]);
    let mut b = ComputationBuilder::new(&mut module, "condition");
    let p = b.parameter("pc", state.clone());
    let i = b.get(p, 1).unwrap();
    let limit = b.scalar(2i32);
    b.compare(Direction::Lt, i, limit).unwrap();
    let condition = b.finish();
    let mut b = ComputationBuilder::new(&mut module, "body");
    let p = b.parameter("pb", state);
    let x = b.get(p, 0).unwrap();
    let i = b.get(p, 1).unwrap();
    let one = b.scalar(1i32);
    let twice = b.binary(Opcode::Add, x, x).unwrap();
    let next = b.binary(Opcode::Add, i, one).unwrap();
    b.tuple(&[twice, next]).unwrap();
    let body = b.finish();
    let mut b = ComputationBuilder::new(&mut module, "main");
    let x = b.parameter("x", xs);
    let zero = b.scalar(0i32);
    let init = b.tuple(&[x, zero]).unwrap();
    let w = b.while_loop(init, condition, body).unwrap();
    b.get(w, 0).unwrap();
    let main = b.finish();
    module.set_entry(main);
    for (id, name) in [(x, "x"), (twice, "twice"), (next, "next"), (w, "w")] {
        module.instr_mut(id).name = name.into();
    }
    module
}

fn run(module: &Module, notes: Notes) -> (Result<Value, ErrorKind>, Arc<Notes>) {
    let notes = Arc::new(notes);
    let options = Options { observer: Some(notes.clone()), ..Options::default() };
    let result =
        Interpreter::new(module, options).run(vec![Tensor::from_vec([1].as_slice(), vec![5i32]).into()]);
    (result.map_err(|e| e.kind), notes)
}

fn at(name: &'static str, n: u64, flow: Flow) -> Notes {
    Notes { at: Some((name, n, flow)), ..Notes::default() }
}

#[test]
fn every_instruction_is_told_with_operands_and_result() {
    let module = doubles_twice(1);
    let (result, notes) = run(&module, Notes::default());
    assert_eq!(text(&result.unwrap()), "[20]");
    let lines = notes.lines.lock().unwrap();
    assert_eq!(lines[0], "< x#0 = [5]");
    let of = |name: &str| lines.iter().filter(|l| l.contains(name)).cloned().collect::<Vec<_>>();
    assert_eq!(
        of("/twice#"),
        [
            "> w[0]/twice#0([5], [5])",
            "< w[0]/twice#0 = [10]",
            "> w[1]/twice#1([10], [10])",
            "< w[1]/twice#1 = [20]"
        ]
    );
    // The condition runs once more than the body.
    assert_eq!(lines.iter().filter(|l| l.starts_with("< w[2]/")).count(), 4);
    assert_eq!(of("> w#0"), ["> w#0(([5], [0]))"]);
    assert_eq!(of("< w#0"), ["< w#0 = ([20], [2])"]);
    let entered = lines.iter().filter(|l| l.starts_with('>')).count();
    // Parameters have results only: `x`, that of three conditions and of two bodies.
    assert_eq!(lines.len() - entered, entered + 6);
}

#[test]
fn an_observer_stops_and_replaces() {
    let module = doubles_twice(1);
    assert_eq!(text(&run(&module, at("twice", 1, Flow::Stop)).0.unwrap()), "[20]");
    assert_eq!(text(&run(&module, at("twice", 0, Flow::Stop)).0.unwrap()), "[10]");
    assert_eq!(text(&run(&module, at("x", 0, Flow::Stop)).0.unwrap()), "[5]");
    let other = || Flow::Replace(Tensor::from_vec([1].as_slice(), vec![100i32]).into());
    assert_eq!(text(&run(&module, at("twice", 0, other())).0.unwrap()), "[200]");
    assert_eq!(text(&run(&module, at("x", 0, other())).0.unwrap()), "[400]");
    let unfit = Flow::Replace(Tensor::scalar(1f32).into());
    assert_eq!(run(&module, at("next", 0, unfit)).0.unwrap_err(), ErrorKind::Arguments);
}

#[test]
fn applied_computations_are_told_if_they_ran() {
    for (n, expected) in [(0i64, None), (7, Some(7u64))] {
        for opcode in [Opcode::Add, Opcode::Subtract] {
            let mut module = Module::new("m");
            let region = scalar_region(&mut module, "r", opcode, ElementType::S32).unwrap();
            let mut b = ComputationBuilder::new(&mut module, "main");
            let x = b.parameter("x", Shape::array(ElementType::S32, &[n]));
            let zero = b.scalar(0i32);
            let attrs = Attrs::new()
                .with(AttrKey::ToApply, AttrValue::Computation(region))
                .with(AttrKey::Dimensions, AttrValue::Ints([0].as_slice().into()));
            b.instr(Opcode::Reduce, &[x, zero], attrs).unwrap();
            let main = b.finish();
            module.set_entry(main);
            let notes = Arc::new(Notes::default());
            let options = Options { observer: Some(notes.clone()), ..Options::default() };
            let x = Tensor::from_vec([n].as_slice(), vec![1i32; n as usize]);
            Interpreter::new(&module, options).run(vec![x.into()]).unwrap();
            let applied = notes.applied.lock().unwrap();
            let total: u64 = applied.iter().map(|(_, n)| n).sum();
            assert_eq!((!applied.is_empty()).then_some(total), expected, "{opcode}");
            assert!(applied.iter().all(|(name, _)| name == "r"));
        }
    }
}

/// Watching alone shares no values: what is updated in path stays so.
#[test]
fn watching_does_not_copy() {
    const N: i64 = 1 << 16;
    let module = doubles_twice(N);
    let peaks = [None, Some(Arc::new(Notes::default()) as Arc<dyn Observer>)].map(|observer| {
        let options = Options { observer, ..Options::default() };
        let x = Tensor::from_vec([N].as_slice(), vec![5i32; N as usize]);
        let (value, stats) = Interpreter::new(&module, options).run_with_stats(vec![x.into()]).unwrap();
        assert!(value.expect_array().slice::<i32>().iter().all(|&x| x == 20));
        stats.peak_bytes
    });
    assert_eq!(peaks[0], peaks[1]);
    assert!(peaks[0] < 4 * N as u64 + 100, "{} bytes at the peak", peaks[0]);
}

/// A loop of scalars is not run instruction by instruction unless somebody watches; what it costs and gives
/// is the same.
#[test]
fn scalar_loops_cost_the_same_watched_or_not() {
    let mut module = Module::new("m");
    let s32 = Shape::scalar(ElementType::S32);
    let state = Shape::tuple([s32.clone(), s32.clone()]);
    let mut b = ComputationBuilder::new(&mut module, "square");
    let x = b.parameter("x", s32.clone());
    b.binary(Opcode::Multiply, x, x).unwrap();
    let square = b.finish();
    let mut b = ComputationBuilder::new(&mut module, "condition");
    let p = b.parameter("p", state.clone());
    let i = b.get(p, 1).unwrap();
    let limit = b.scalar(9i32);
    b.compare(Direction::Lt, i, limit).unwrap();
    let condition = b.finish();
    let mut b = ComputationBuilder::new(&mut module, "body");
    let p = b.parameter("p", state);
    let (x, i) = (b.get(p, 0).unwrap(), b.get(p, 1).unwrap());
    let one = b.scalar(1i32);
    let next = b.binary(Opcode::Add, i, one).unwrap();
    let called = b.call(square, &[i]).unwrap();
    let sum = b.binary(Opcode::Add, x, called).unwrap();
    b.unary(Opcode::Negate, sum).unwrap();
    let root = b.tuple(&[sum, next]).unwrap();
    b.set_root(root);
    let body = b.finish();
    let mut b = ComputationBuilder::new(&mut module, "main");
    let zero = b.scalar(0i32);
    let init = b.tuple(&[zero, zero]).unwrap();
    b.while_loop(init, condition, body).unwrap();
    let main = b.finish();
    module.set_entry(main);
    let runs = [None, Some(Arc::new(Notes::default()) as Arc<dyn Observer>)].map(|observer| {
        let options = Options { observer, ..Options::default() };
        let (value, stats) = Interpreter::new(&module, options).run_with_stats(vec![]).unwrap();
        (text(&value), stats.fuel)
    });
    // 0 + 1 + 4 + ... + 64.
    assert_eq!(runs[0].0, "([204], [9])");
    assert_eq!(runs[0], runs[1]);
}
