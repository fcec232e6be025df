//! The engine: control flow, in-place updates, limits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use hlo::attrs::Direction;
use hlo::builder::{ComputationBuilder, scalar_region};
use hlo::diag::codes;
use hlo::{AttrKey, AttrValue, Attrs, ElementType, Module, Opcode, Shape};
use hlo_interp::{ErrorKind, Interpreter, Options, Tensor, Value};

const N: i64 = 1 << 16;

/// A loop that counts from 0 to `trips` and writes the counter to element `i` of a buffer of `N` elements.
fn writes_one_element_a_trip(trips: i32) -> Module {
    let mut module = Module::new("in_place");
    let state = Shape::tuple([Shape::scalar(ElementType::S32), Shape::array(ElementType::S32, &[N])]);

    let mut b = ComputationBuilder::new(&mut module, "condition");
    let p = b.parameter("p", state.clone());
    let i = b.get(p, 0).unwrap();
    let limit = b.scalar(trips);
    b.compare(Direction::Lt, i, limit).unwrap();
    let condition = b.finish();

    let mut b = ComputationBuilder::new(&mut module, "body");
    let p = b.parameter("p", state.clone());
    let i = b.get(p, 0).unwrap();
    let one = b.scalar(1i32);
    let next = b.binary(Opcode::Add, i, one).unwrap();
    let row = b.reshape(next, &[1]).unwrap();
    // The buffer is taken out of the tuple before the tuple's other element is read for the last time.
    let buffer = b.get(p, 1).unwrap();
    let again = b.get(p, 0).unwrap();
    let updated = b.dynamic_update_slice(buffer, row, &[again]).unwrap();
    b.tuple(&[next, updated]).unwrap();
    let body = b.finish();

    let mut b = ComputationBuilder::new(&mut module, "main");
    let buffer = b.parameter("buffer", Shape::array(ElementType::S32, &[N]));
    let zero = b.scalar(0i32);
    let init = b.tuple(&[zero, buffer]).unwrap();
    b.while_loop(init, condition, body).unwrap();
    let main = b.finish();
    module.set_entry(main);
    module
}

#[test]
fn a_loop_updates_its_buffer_in_place() {
    let module = writes_one_element_a_trip(1000);
    let interpreter = Interpreter::new(&module, Options::default());
    let buffer = Tensor::from_vec([N].as_slice(), vec![0i32; N as usize]);
    let before = buffer.slice::<i32>().as_ptr();
    let (value, stats) = interpreter.run_with_stats(vec![buffer.into()]).unwrap();
    let result = value.expect_tuple()[1].expect_array();
    assert_eq!(result.slice::<i32>()[..1001], (1..=1000).chain([0]).collect::<Vec<_>>());
    assert_eq!(result.slice::<i32>().as_ptr(), before, "the buffer was copied");
    assert!(stats.peak_bytes < 4 * N as u64 + 1000, "{} bytes at the peak", stats.peak_bytes);
}

#[test]
fn the_callers_copy_of_an_argument_is_not_written() {
    let module = writes_one_element_a_trip(10);
    let interpreter = Interpreter::new(&module, Options::default());
    let buffer = Tensor::from_vec([N].as_slice(), vec![0i32; N as usize]);
    interpreter.run(vec![buffer.clone().into()]).unwrap();
    assert!(buffer.slice::<i32>().iter().all(|&x| x == 0));
}

#[test]
fn fuel_ends_an_endless_loop() {
    let module = writes_one_element_a_trip(i32::MAX);
    let interpreter = Interpreter::new(&module, Options { fuel: Some(100_000), ..Options::default() });
    let buffer = Tensor::from_vec([N].as_slice(), vec![0i32; N as usize]);
    let error = interpreter.run(vec![buffer.into()]).unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::OutOfFuel, codes::OUT_OF_FUEL));
}

#[test]
fn calls_nest_without_limit() {
    let mut module = Module::new("deep");
    let shape = Shape::scalar(ElementType::S32);
    let mut b = ComputationBuilder::new(&mut module, "f");
    let x = b.parameter("x", shape.clone());
    let one = b.scalar(1i32);
    b.binary(Opcode::Add, x, one).unwrap();
    let mut callee = b.finish();
    for _ in 0..10_000 {
        let mut b = ComputationBuilder::new(&mut module, "f");
        let x = b.parameter("x", shape.clone());
        b.call(callee, &[x]).unwrap();
        callee = b.finish();
    }
    module.set_entry(callee);
    let interpreter = Interpreter::new(&module, Options::default());
    let value = interpreter.run(vec![Tensor::scalar(41i32).into()]).unwrap();
    assert_eq!(value.expect_array().slice::<i32>(), [42]);
}

#[test]
fn applied_computations_nest_to_a_limit() {
    let mut module = Module::new("deep");
    let shape = Shape::scalar(ElementType::F32);
    let mut callee = scalar_region(&mut module, "f", Opcode::Add, ElementType::F32).unwrap();
    for _ in 0..1000 {
        let mut b = ComputationBuilder::new(&mut module, "f");
        let (x, y) = (b.parameter("x", shape.clone()), b.parameter("y", shape.clone()));
        let attrs = Attrs::new()
            .with(AttrKey::ToApply, AttrValue::Computation(callee))
            .with(AttrKey::Dimensions, AttrValue::Ints([].as_slice().into()));
        b.instr(Opcode::Map, &[x, y], attrs).unwrap();
        callee = b.finish();
    }
    module.set_entry(callee);
    let interpreter = Interpreter::new(&module, Options::default());
    let one = || Value::Array(Tensor::scalar(1f32));
    let error = interpreter.run(vec![one(), one()]).unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::Trap, codes::NESTED_TOO_DEEP));
}

#[test]
fn memory_is_asked_for_before_it_is_taken() {
    let mut module = Module::new("large");
    let mut b = ComputationBuilder::new(&mut module, "main");
    let x = b.parameter("x", Shape::scalar(ElementType::F32));
    b.broadcast(x, &[1 << 40], &[]).unwrap();
    let main = b.finish();
    module.set_entry(main);
    let interpreter = Interpreter::new(&module, Options::default());
    let error = interpreter.run(vec![Tensor::scalar(1f32).into()]).unwrap_err();
    assert_eq!((error.kind, error.code), (ErrorKind::OutOfMemory, codes::OUT_OF_MEMORY));
    assert!(error.message.contains("wants 4398046511104 bytes"), "{}", error.message);
}

#[test]
fn arguments_are_checked() {
    let module = writes_one_element_a_trip(1);
    let interpreter = Interpreter::new(&module, Options::default());
    for args in [vec![], vec![Value::Token], vec![Tensor::scalar(1i32).into()]] {
        let error = interpreter.run(args).unwrap_err();
        assert_eq!((error.kind, error.code), (ErrorKind::Arguments, codes::WRONG_ARGUMENTS));
    }
}

#[test]
fn a_constant_is_not_copied() {
    let mut module = Module::new("constant");
    let mut b = ComputationBuilder::new(&mut module, "main");
    let literal = hlo::ArrayLiteral {
        dims: [N].as_slice().into(),
        buffer: hlo::Buffer::F32(vec![1.0; N as usize]).into(),
    };
    let c = b.constant(hlo::Literal::Array(literal));
    let main = b.finish();
    module.set_entry(main);
    let Some(hlo::ConstantValue::Given(literal)) = module.instr(c).attrs.constant_value() else { panic!() };
    let literal: &Arc<hlo::Literal> = literal;
    let hlo::Buffer::F32(values) = &*literal.as_array().unwrap().buffer else { panic!() };
    let value = Interpreter::new(&module, Options::default()).run(vec![]).unwrap();
    assert_eq!(value.expect_array().slice::<f32>().as_ptr(), values.as_ptr());
}
