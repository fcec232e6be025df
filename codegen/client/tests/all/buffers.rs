//! Buffers: sharing, donation, parts, futures.

use hlo::{ArrayShape, ElementType};
use hlo_client::{Cancellation, Code, ExecuteOptions};

use crate::common::{adds, compile, cpu, floats, interpreter, values};

const UPDATES: &str = "HloModule updates, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e { x = f32[4] parameter(0)  c = f32[] constant(1)  ones = f32[4] broadcast(c), dimensions={}
  ROOT r = f32[4] add(x, ones) }";

#[test]
fn both_back_ends_compute_a_sum() {
    for client in [cpu(), interpreter()] {
        let program = compile(&client, &adds(3, 10));
        let (a, b) =
            (client.buffer(&floats(&[1.0, 2.0, 3.0])).unwrap(), client.share(&floats(&[4.0, 5.0, 6.0])));
        let results = program.execute(&[&a, &b]).unwrap();
        assert_eq!(results.len(), 1);
        assert_eq!(values(&results[0]), [15.0, 17.0, 19.0], "{}", client.platform());
        assert_eq!(values(&program.execute(&[&results[0], &b]).unwrap()[0]), [29.0, 32.0, 35.0]);
    }
}

#[test]
fn what_is_not_donated_stays_as_it_was() {
    let client = cpu();
    let program = compile(&client, UPDATES);
    let x = client.buffer(&floats(&[1.0, 2.0, 3.0, 4.0])).unwrap();
    let y = program.execute(&[&x]).unwrap();
    assert_eq!(values(&x), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(values(&y[0]), [2.0, 3.0, 4.0, 5.0]);
}

#[test]
#[cfg_attr(miri, ignore = "the interpreter reuses no memory")]
fn what_is_donated_is_updated_in_place_and_gone() {
    let client = cpu();
    let program = compile(&client, UPDATES);
    let donate = ExecuteOptions { donate: vec![0], ..ExecuteOptions::default() };
    let mut x = client.buffer(&floats(&[0.0; 4])).unwrap();
    let address = |b: &hlo_client::Buffer| b.with_bytes(|bytes| bytes.as_ptr() as usize).unwrap();
    let start = address(&x);
    for step in 1..=5 {
        let other_reference = x.clone();
        let results = program.execute_with(&[&x], &donate).unwrap();
        assert!(x.is_deleted() && other_reference.is_deleted());
        let error = program.execute(&[&x]).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert!(error.to_string().contains("donated"), "{error}");
        x = results[0].clone();
        assert_eq!(values(&x), [step as f32; 4]);
        assert_eq!(address(&x), start, "the memory of the argument is that of the result");
    }
}

#[test]
fn the_same_array_is_donated_once() {
    let client = cpu();
    let program = compile(&client, &adds(3, 0));
    let x = client.buffer(&floats(&[1.0, 2.0, 3.0])).unwrap();
    let donate = ExecuteOptions { donate: vec![0, 1], ..ExecuteOptions::default() };
    let error = program.execute_with(&[&x, &x], &donate).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
}

#[test]
fn a_part_is_an_array_of_its_own() {
    let client = cpu();
    let numbers: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let whole = client.buffer(&floats(&numbers)).unwrap();
    let part = whole.part(64, ArrayShape::new(ElementType::F32, &[3])).unwrap();
    assert_eq!(values(&part), [16.0, 17.0, 18.0]);
    let program = compile(&client, &adds(3, 0));
    assert_eq!(values(&program.execute(&[&part, &part]).unwrap()[0]), [32.0, 34.0, 36.0]);
    drop(whole);
    assert_eq!(values(&part), [16.0, 17.0, 18.0], "the part keeps the memory");
    for (offset, dims) in [(60, 1), (192, 17), (256, 1)] {
        let error = part.part(offset, ArrayShape::new(ElementType::F32, &[dims])).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
    }
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let client = cpu();
    let program = compile(&client, &adds(3, 0));
    let (three, four) =
        (client.buffer(&floats(&[0.0; 3])).unwrap(), client.buffer(&floats(&[0.0; 4])).unwrap());
    let error = program.execute(&[&three, &four]).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(error.to_string(), "argument 1 of adds is f32[4], not f32[3]");
    let error = program.execute(&[&three]).unwrap_err();
    assert_eq!(error.to_string(), "adds takes 2 arrays, not 1");
}

#[test]
fn futures_depend_on_each_other() {
    let client = cpu();
    let program = compile(&client, &adds(1, 1));
    let zero = client.buffer(&floats(&[0.0])).unwrap();
    let mut x = zero.clone();
    for _ in 0..100 {
        x = program.execute_async(&[x, zero.clone()], &ExecuteOptions::default()).unwrap().remove(0);
    }
    x.wait().unwrap();
    assert_eq!(values(&x), [100.0]);
}

#[test]
fn the_error_of_an_execution_reaches_what_depends_on_it() {
    let client = cpu();
    let program = compile(&client, &adds(1, 1));
    let zero = client.buffer(&floats(&[0.0])).unwrap();
    let cancellation = Cancellation::new();
    cancellation.cancel();
    let cancelled = ExecuteOptions { cancellation: Some(cancellation), ..ExecuteOptions::default() };
    let first = program.execute_async(&[zero.clone(), zero.clone()], &cancelled).unwrap().remove(0);
    let second = program.execute_async(&[first, zero], &ExecuteOptions::default()).unwrap().remove(0);
    assert_eq!(second.wait().unwrap_err().code(), Code::Cancelled);
}

/// A loop that takes hours.
const ENDLESS: &str = "HloModule endless
c { p = (s32[], f32[1000]) parameter(0)  i = s32[] get-tuple-element(p), index=0  n = s32[] constant(2000000000)
  ROOT lt = pred[] compare(i, n), direction=LT }
b { p = (s32[], f32[1000]) parameter(0)  i = s32[] get-tuple-element(p), index=0  one = s32[] constant(1)  j = s32[] add(i, one)
  x = f32[1000] get-tuple-element(p), index=1  y = f32[1000] multiply(x, x)  ROOT t = (s32[], f32[1000]) tuple(j, y) }
ENTRY e { i = s32[] constant(0)  x = f32[1000] parameter(0)  t = (s32[], f32[1000]) tuple(i, x)
  w = (s32[], f32[1000]) while(t), condition=c, body=b  ROOT r = f32[1000] get-tuple-element(w), index=1 }";

#[test]
#[cfg_attr(miri, ignore = "a loop of a million multiplications")]
fn a_deadline_ends_a_loop() {
    let client = cpu();
    let program = compile(&client, ENDLESS);
    let x = client.buffer(&floats(&[0.5; 1000])).unwrap();
    let deadline = Some(std::time::Instant::now() + std::time::Duration::from_millis(30));
    let options = ExecuteOptions { deadline, ..ExecuteOptions::default() };
    assert_eq!(program.execute_with(&[&x], &options).unwrap_err().code(), Code::DeadlineExceeded);
    let options = ExecuteOptions { fuel: Some(1000), ..ExecuteOptions::default() };
    assert_eq!(program.execute_with(&[&x], &options).unwrap_err().code(), Code::ResourceExhausted);
}

#[test]
fn executions_are_cancelled_while_they_run() {
    for client in [cpu(), interpreter()] {
        let program = compile(&client, ENDLESS);
        let x = client.buffer(&floats(&[0.5; 1000])).unwrap();
        let cancellation = Cancellation::new();
        let options =
            ExecuteOptions { cancellation: Some(cancellation.clone()), ..ExecuteOptions::default() };
        let ended = std::thread::scope(|scope| {
            let running = scope.spawn(|| program.execute_with(&[&x], &options).map(drop));
            std::thread::sleep(std::time::Duration::from_millis(30));
            cancellation.cancel();
            running.join().unwrap()
        });
        assert_eq!(ended.unwrap_err().code(), Code::Cancelled, "{}", client.platform());
    }
}

/// Memory of somebody else's that says when it is given back.
#[derive(Debug)]
struct Lent(Vec<u8>, std::sync::Arc<std::sync::atomic::AtomicBool>);

impl hlo_client::Foreign for Lent {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.1.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn memory_that_is_lent_is_read_in_place_never_written_and_given_back() {
    let given_back = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_given_back = || given_back.load(std::sync::atomic::Ordering::Relaxed);
    let client = cpu();
    let bytes: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
    let shape = ArrayShape::new(ElementType::F32, &[4]);
    let lent = std::sync::Arc::new(Lent(bytes.clone(), std::sync::Arc::clone(&given_back)));
    let wrong = client.lend(ArrayShape::new(ElementType::F32, &[5]), lent.clone()).unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument);
    let start = lent.0.as_ptr();
    let x = client.lend(shape, lent).unwrap();
    assert_eq!(x.with_bytes(<[u8]>::as_ptr).unwrap(), start);
    // A program that updates it in place, and to which it is donated.
    let hold = x.hold().unwrap();
    let program = compile(&client, UPDATES);
    let donate = ExecuteOptions { donate: vec![0], ..ExecuteOptions::default() };
    let y = program.execute_with(&[&x], &donate).unwrap();
    assert_eq!(values(&y[0]), [2.0, 3.0, 4.0, 5.0]);
    assert!(x.is_deleted() && !is_given_back());
    assert_eq!(hold.bytes(), bytes);
    drop((hold, x));
    assert!(is_given_back());
}

#[test]
fn what_is_held_is_not_updated_in_place() {
    let client = cpu();
    let program = compile(&client, UPDATES);
    let donate = ExecuteOptions { donate: vec![0], ..ExecuteOptions::default() };
    let x = client.buffer(&floats(&[1.0; 4])).unwrap();
    let hold = x.hold().unwrap();
    let before = hold.bytes().to_vec();
    let y = program.execute_with(&[&x], &donate).unwrap();
    assert_eq!(values(&y[0]), [2.0; 4]);
    assert_eq!(hold.bytes(), before);
}

#[test]
fn bytes_become_elements_of_their_type() {
    let client = cpu();
    let pred = client.buffer_from_bytes(ArrayShape::new(ElementType::Pred, &[3]), &[0, 1, 200]).unwrap();
    assert_eq!(*pred.to_literal().unwrap().buffer, hlo::Buffer::Pred(vec![false, true, true]));
    assert_eq!(pred.with_bytes(<[u8]>::to_vec).unwrap(), [0, 1, 1]);
    let narrow = client.buffer_from_bytes(ArrayShape::new(ElementType::S4, &[2]), &[0x0f, 0x07]).unwrap();
    assert_eq!(narrow.with_bytes(<[u8]>::to_vec).unwrap(), [0xff, 7]);
}

#[test]
fn an_array_that_will_never_be_has_its_error() {
    let client = cpu();
    let error = hlo_client::Error::new(Code::Aborted, "the other side is gone");
    let x = client.failed(ArrayShape::new(ElementType::F32, &[4]), error);
    assert_eq!(x.wait().unwrap_err().code(), Code::Aborted);
    let error = compile(&client, UPDATES).execute(&[&x]).unwrap_err();
    assert!(error.to_string().contains("the other side"), "{error}");
}
