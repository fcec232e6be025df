//! Arrays, tuples and programs by number (one test an operation of XRT), and plans of several programs.

use hlo::{ArrayLiteral, ArrayShape, ElementType, Literal};
use hlo_client::chain::{ChainInput, ChainOperation, ChainOutput, ChainStep};
use hlo_client::handles::{Handle, HandleExecution, Handles, TupleNode};
use hlo_client::{Code, CompileOptions, ExecuteOptions};

use crate::common::{adds, cpu, floats};

const PAIR: &str = "HloModule pair
ENTRY e { p = (f32[2], f32[2]) parameter(0)  a = f32[2] get-tuple-element(p), index=0  b = f32[2] get-tuple-element(p), index=1
  s = f32[2] add(a, b)  d = f32[2] subtract(a, b)  ROOT t = (f32[2], f32[2]) tuple(s, d) }";

fn handles() -> Handles {
    Handles::new(&cpu(), 0, 7)
}

fn array(values: &[f32]) -> Literal {
    Literal::Array(floats(values))
}

fn read(handles: &Handles, handle: Handle) -> Literal {
    handles.read_literal(handle, false).unwrap()
}

fn program(handles: &Handles, text: &str) -> Handle {
    let program = hlo_client::VerifiedModule::parse(text).unwrap();
    handles.compile(&program, &CompileOptions::default()).unwrap()
}

#[track_caller]
fn is_not_found<T: std::fmt::Debug>(result: Result<T, hlo_client::Error>) {
    assert_eq!(result.unwrap_err().code(), Code::NotFound);
}

#[test]
fn xrt_allocate_and_read_literal() {
    let h = handles();
    let tuple = Literal::Tuple(vec![array(&[1.0]), Literal::Tuple(vec![array(&[2.0, 3.0])])]);
    let handle = h.allocate(&tuple).unwrap();
    assert_ne!(handle.0, 0);
    assert_eq!(read(&h, handle), tuple);
    assert_eq!(h.read_literal(handle, true).unwrap(), tuple);
    is_not_found(h.read_literal(handle, false));
    is_not_found(h.read_literal(Handle(0), false));
}

#[test]
fn xrt_allocate_from_tensor_and_read_to_tensor() {
    let h = handles();
    let shape = ArrayShape::new(ElementType::S32, &[2]);
    let handle = h.allocate_from_tensor(shape.clone(), &[1, 0, 0, 0, 2, 0, 0, 0]).unwrap();
    let expected = ArrayLiteral::new([2].as_slice().into(), hlo::Buffer::S32(vec![1, 2])).unwrap();
    assert_eq!(h.read_to_tensor(handle).unwrap(), expected);
    assert_eq!(h.allocate_from_tensor(shape, &[1, 2, 3]).unwrap_err().code(), Code::InvalidArgument);
    let tuple = h.allocate(&Literal::Tuple(vec![])).unwrap();
    assert_eq!(h.read_to_tensor(tuple).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn xrt_allocate_uninitialized_and_write_literal() {
    let h = handles();
    let handle = h.allocate_uninitialized(ArrayShape::new(ElementType::F32, &[2])).unwrap();
    let alias = h.make_tuple(&TupleNode::Tuple(vec![TupleNode::Leaf { handle, release: false }])).unwrap();
    h.write_literal(handle, &array(&[5.0, 6.0])).unwrap();
    assert_eq!(read(&h, handle), array(&[5.0, 6.0]));
    assert_eq!(read(&h, alias), Literal::Tuple(vec![array(&[5.0, 6.0])]), "who shares the array sees it");
    let error = h.write_literal(handle, &array(&[1.0])).unwrap_err();
    assert!(error.to_string().contains("f32[2]") && error.to_string().contains("f32[1]"), "{error}");
}

#[test]
fn xrt_make_tuple() {
    let h = handles();
    let (a, b) = (h.allocate(&array(&[1.0])).unwrap(), h.allocate(&array(&[2.0])).unwrap());
    let leaf = |handle, release| TupleNode::Leaf { handle, release };
    let tree = TupleNode::Tuple(vec![leaf(a, true), TupleNode::Tuple(vec![leaf(b, false)])]);
    let tuple = h.make_tuple(&tree).unwrap();
    assert_eq!(read(&h, tuple), Literal::Tuple(vec![array(&[1.0]), Literal::Tuple(vec![array(&[2.0])])]));
    is_not_found(h.release(a));
    h.release(b).unwrap();
    let twice = |release| TupleNode::Tuple(vec![leaf(tuple, release), leaf(tuple, false)]);
    assert_eq!(h.make_tuple(&twice(true)).unwrap_err().code(), Code::InvalidArgument);
    h.make_tuple(&twice(false)).unwrap();
    is_not_found(h.make_tuple(&leaf(a, false)));
}

#[test]
fn xrt_sub_tuple_and_release() {
    let h = handles();
    let tuple = h.allocate(&Literal::Tuple(vec![array(&[1.0]), array(&[2.0])])).unwrap();
    let element = h.sub_tuple(tuple, &[1], false).unwrap();
    h.write_literal(element, &array(&[9.0])).unwrap();
    assert_eq!(
        read(&h, tuple),
        Literal::Tuple(vec![array(&[1.0]), array(&[9.0])]),
        "the element aliases the tuple"
    );
    let first = h.sub_tuple(tuple, &[0], true).unwrap();
    is_not_found(h.sub_tuple(tuple, &[0], false));
    assert_eq!(read(&h, first), array(&[1.0]));
    assert_eq!(h.sub_tuple(first, &[0], false).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn xrt_release_allocation_handle_and_all() {
    let h = handles();
    let all: Vec<Handle> = (0..10).map(|i| h.allocate(&array(&[i as f32])).unwrap()).collect();
    h.release(all[3]).unwrap();
    is_not_found(h.release(all[3]));
    assert_eq!(h.release_all(), 9);
    all.iter().for_each(|&handle| is_not_found(h.value(handle)));
}

#[test]
fn xrt_compact_allocations() {
    let options = hlo_client::ClientOptions { memory_budget_bytes: Some(1 << 20), ..Default::default() };
    let client = hlo_client::Client::cpu(options).unwrap();
    let h = Handles::new(&client, 0, 1);
    let handle = h.allocate(&array(&[1.0; 1000])).unwrap();
    assert!(h.compact() >= 4000);
    assert_eq!(client.memory_statistics().held_bytes, 0);
    assert_eq!(read(&h, handle), array(&[1.0; 1000]));
}

#[test]
fn xrt_compile_execute_and_release() {
    let h = handles();
    let program_handle = program(&h, PAIR);
    assert_eq!(h.program(program_handle).unwrap().result().to_string(), "(f32[2], f32[2])");
    let pair = h.allocate(&Literal::Tuple(vec![array(&[5.0, 7.0]), array(&[1.0, 2.0])])).unwrap();
    let whole = h.execute(program_handle, &[pair], &HandleExecution::default()).unwrap();
    assert_eq!(read(&h, whole[0]), Literal::Tuple(vec![array(&[6.0, 9.0]), array(&[4.0, 5.0])]));
    let exploded = HandleExecution {
        return_exploded_tuple: true,
        release_input_handles: true,
        release_compilation_handle: true,
        rng_seed: 3,
        ..HandleExecution::default()
    };
    let parts = h.execute(program_handle, &[pair], &exploded).unwrap();
    assert_eq!(parts.len(), 2);
    assert_eq!(read(&h, parts[1]), array(&[4.0, 5.0]));
    is_not_found(h.value(pair));
    is_not_found(h.execute(program_handle, &[whole[0]], &exploded));
    is_not_found(h.release_program(program_handle));
}

#[test]
fn xrt_execute_names_the_argument_that_does_not_fit() {
    let h = handles();
    let program_handle = program(&h, &adds(3, 0));
    let (three, four) = (h.allocate(&array(&[0.0; 3])).unwrap(), h.allocate(&array(&[0.0; 4])).unwrap());
    let error = h.execute(program_handle, &[three, four], &HandleExecution::default()).unwrap_err();
    let expected = format!("argument 1 of adds (handle {:#x}) is f32[4], not f32[3]", four.0);
    assert_eq!(error.to_string(), expected);
    let elsewhere = HandleExecution { device_ordinal: 1, ..HandleExecution::default() };
    assert_eq!(
        h.execute(program_handle, &[three, three], &elsewhere).unwrap_err().code(),
        Code::InvalidArgument
    );
    let core = HandleExecution { core_index_in_replica: 1, ..HandleExecution::default() };
    assert_eq!(h.execute(program_handle, &[three, three], &core).unwrap_err().code(), Code::InvalidArgument);
    read(&h, three);
}

fn data(handle: Handle) -> ChainStep {
    ChainStep { operation: ChainOperation::Data(handle), outputs: vec![] }
}

fn run(program: Handle, inputs: &[(usize, usize)], outputs: &[(usize, usize)]) -> ChainStep {
    let inputs = inputs.iter().map(|&(step, output)| ChainInput { step, output }).collect();
    let outputs = outputs.iter().map(|&(output, result)| ChainOutput { output, result }).collect();
    ChainStep { operation: ChainOperation::Execute { program, inputs }, outputs }
}

#[test]
fn xrt_execute_chained() {
    let h = handles();
    let (pair, sum) = (program(&h, PAIR), program(&h, &adds(2, 0)));
    let tuple = h.allocate(&Literal::Tuple(vec![array(&[5.0, 7.0]), array(&[1.0, 2.0])])).unwrap();
    let plan = [
        data(tuple),
        run(pair, &[(0, 0)], &[(2, 1)]),
        run(sum, &[(1, 1), (1, 2)], &[]),
        run(sum, &[(2, 0), (2, 0)], &[(0, 0)]),
    ];
    let chain = h.chain(&plan).unwrap();
    for _ in 0..2 {
        let results = chain.run(&ExecuteOptions::default()).unwrap();
        assert_eq!(read(&h, results[0]), array(&[20.0, 28.0]));
        assert_eq!(read(&h, results[1]), array(&[4.0, 5.0]));
    }
    read(&h, tuple);
}

#[test]
fn xrt_execute_chained_refuses_bad_plans() {
    let h = handles();
    let sum = program(&h, &adds(2, 0));
    let x = h.allocate(&array(&[1.0, 2.0])).unwrap();
    let refused = |plan: &[ChainStep], says: &str| {
        let error = h.chain(plan).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        error.code()
    };
    let itself = [data(x), run(sum, &[(0, 0), (1, 0)], &[(0, 0)])];
    assert_eq!(refused(&itself, "step 1 uses step 1"), Code::InvalidArgument);
    let later = [data(x), run(sum, &[(0, 0), (2, 0)], &[(0, 0)]), data(x)];
    assert_eq!(refused(&later, "step 1 uses step 2"), Code::InvalidArgument);
    let few = [data(x), run(sum, &[(0, 0)], &[(0, 0)])];
    assert_eq!(refused(&few, "takes 2 arguments, not 1"), Code::InvalidArgument);
    let gap = [data(x), run(sum, &[(0, 0), (0, 0)], &[(0, 1)])];
    assert_eq!(refused(&gap, "no step gives result 0"), Code::InvalidArgument);
    let twice = [data(x), run(sum, &[(0, 0), (0, 0)], &[(0, 0), (0, 0)])];
    assert_eq!(refused(&twice, "both give result 0"), Code::InvalidArgument);
    let far = [data(x), run(sum, &[(0, 0), (0, 0)], &[(0, usize::MAX)])];
    assert_eq!(refused(&far, "more than there can be"), Code::InvalidArgument);
    assert_eq!(refused(&[data(Handle(5))], "does not exist"), Code::NotFound);
    let element = [data(x), run(sum, &[(0, 0), (0, 1)], &[(0, 0)])];
    assert_eq!(refused(&element, "step 1: step 0 gives f32[2]: it has no element 0"), Code::InvalidArgument);
    let long = h.allocate(&array(&[1.0, 2.0, 3.0])).unwrap();
    let other = [data(x), data(long), run(sum, &[(0, 0), (1, 0)], &[(0, 0)])];
    assert_eq!(refused(&other, "step 2: argument 1 of adds is f32[3], not f32[2]"), Code::InvalidArgument);
}

#[test]
fn handles_of_many_threads_are_all_different() {
    let h = handles();
    // Miri executes a thousandth as many instructions a second.
    let each: u16 = if cfg!(miri) { 8 } else { 200 };
    let mut all: Vec<Handle> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    (0..each).map(|i| h.allocate(&array(&[f32::from(i)])).unwrap()).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 8 * usize::from(each));
    assert_eq!(h.release_all(), 8 * usize::from(each));
}
