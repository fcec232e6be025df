//! Plans made by hand on kernels of a few lines of LLVM's text.

use hlo::{ElementType, Shape};

use super::*;
use crate::kernel::{Kernel, Phase, Strategy};
use crate::plan::{Action, Plan, Rotation, Step};
use crate::program;
use crate::runtime::object::tests::object;
use crate::runtime::raw::buffer_of;
use hlo_opt::buffers::{Allocation, Assignment};

/// On `s64`, units are elements: `out = in + 1`; `out = in + in2`; `pred = in < 10` (one unit).
const KERNELS: &str = r#"
define void @increment(ptr %arguments, i64 %begin, i64 %end) {
entry:
  %in = load ptr, ptr %arguments
  %q = getelementptr ptr, ptr %arguments, i64 1
  %out = load ptr, ptr %q
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %a = getelementptr i64, ptr %in, i64 %i
  %x = load i64, ptr %a
  %y = add i64 %x, 1
  %b = getelementptr i64, ptr %out, i64 %i
  store i64 %y, ptr %b
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
define void @less(ptr %arguments, i64 %begin, i64 %end) {
  %in = load ptr, ptr %arguments
  %q = getelementptr ptr, ptr %arguments, i64 1
  %out = load ptr, ptr %q
  %x = load i64, ptr %in
  %c = icmp slt i64 %x, 10
  %b = zext i1 %c to i8
  store i8 %b, ptr %out
  ret void
}
"#;

/// `increment` on that many elements, and `less`.
fn kernels(units: u64) -> Vec<Kernel> {
    let kernel = |symbol: &str, units, bytes| Kernel {
        name: symbol.to_owned(),
        phases: vec![Phase {
            symbol: symbol.to_owned(),
            strategy: Strategy::LoopNest,
            units,
            grain: 8,
            run: 8,
            bytes,
            flops: units,
        }],
        scratch: 0,
        iterates: false,
    };
    vec![kernel("increment", units, units * 16), kernel("less", 1, 9)]
}

fn step(action: Action) -> Step {
    Step { name: "step".to_owned(), executes: None, action }
}

fn slice(allocation: u32, bytes: u64) -> Slice {
    Slice { allocation, offset: 0, bytes }
}

/// A program on arrays of `s64[n]`, with these allocations of `8 * n` bytes each and results.
fn program(n: i64, kinds: &[AllocationKind], results: &[u32], steps: Vec<Step>) -> Program {
    let bytes = 8 * n as u64;
    let parameters = kinds.iter().filter(|k| matches!(k, AllocationKind::Parameter { .. })).count();
    Program {
        name: "test".to_owned(),
        parameters: vec![Shape::array(ElementType::S64, &[n]); parameters],
        result: Shape::tuple(results.iter().map(|_| Shape::array(ElementType::S64, &[n]))),
        code: program::Code::Objects(vec![object(KERNELS).into()]),
        kernels: kernels(n as u64),
        buffers: Assignment {
            allocations: kinds.iter().map(|&kind| Allocation { kind, bytes }).collect(),
            results: results.iter().map(|&a| slice(a, bytes)).collect(),
            ..Assignment::default()
        },
        constants: vec![Arc::new(Literal::Array(hlo::ArrayLiteral {
            dims: [n].into_iter().collect(),
            buffer: hlo::Buffer::S64((0..n).collect()).into(),
        }))],
        plan: Plan { steps },
        module: None,
        run_time_sizes: None,
    }
}

fn load(program: Program, threads: usize) -> Executable {
    let options = LoadOptions { memory_bytes: 1 << 30, ..LoadOptions::new(Arc::new(Pool::new(threads))) };
    Executable::load(program, &options).unwrap()
}

fn numbers(block: &Block) -> Vec<i64> {
    match buffer_of(ElementType::S64, block.bytes()) {
        hlo::Buffer::S64(v) => v,
        other => panic!("{other:?}"),
    }
}

fn bytes(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn increment(from: u32, to: u32, n: i64) -> Step {
    let arguments = vec![slice(from, 8 * n as u64), slice(to, 8 * n as u64)];
    step(Action::Kernel { kernel: 0, arguments })
}

const LENT: AllocationKind = AllocationKind::Parameter { leaf: 0, donated: false };
const GIVEN: AllocationKind = AllocationKind::Parameter { leaf: 0, donated: true };
const CONSTANT: AllocationKind = AllocationKind::Constant { index: 0 };
const ARENA: AllocationKind = AllocationKind::Arena;

fn result(leaf: u32) -> AllocationKind {
    AllocationKind::Result { leaf }
}

/// Kernels run on all of their units, whatever the number of threads; arguments may be anywhere in memory,
/// and results are memory of the caller's.
#[test]
fn kernels_run_in_chunks() {
    let n = 100_003;
    for threads in [1, 2, 5] {
        let steps = vec![increment(0, 2, n), increment(2, 1, n)];
        let executable = load(program(n, &[LENT, result(0), ARENA], &[1], steps), threads);
        let mut kept = Vec::new();
        for start in [0, 5] {
            let input = bytes(&(start..start + n).collect::<Vec<_>>());
            for shift in [0, 1] {
                // At another address, which is not aligned.
                let moved = [vec![0; shift], input.clone()].concat();
                let finished =
                    executable.run(&mut [Argument::Borrowed(&moved[shift..])], &RunOptions::default());
                let mut finished = finished.unwrap();
                assert_eq!(finished.steps, 2);
                let Leaf::Own(block) = finished.results.remove(0) else { panic!("of one leaf") };
                kept.push((start + 2, block));
            }
        }
        for (start, block) in kept {
            assert_eq!(numbers(&block), (start..start + n).collect::<Vec<_>>());
        }
    }
}

/// Results that are parameters or constants are copies, donated arguments come back, and what is lent stays
/// as it is.
#[test]
fn results_may_be_parameters_and_constants() {
    let n = 3;
    let lent = load(program(n, &[LENT, CONSTANT], &[0, 1, 0], vec![]), 1);
    let input = bytes(&[7, 8, 9]);
    let run =
        |executable: &Executable, argument| executable.run(&mut [argument], &RunOptions::default()).unwrap();
    let finished = run(&lent, Argument::Borrowed(&input));
    assert_eq!([0, 1, 2].map(|leaf| numbers(finished.block(leaf))), [[7, 8, 9], [0, 1, 2], [7, 8, 9]]);
    let given = load(program(n, &[GIVEN], &[0], vec![increment(0, 0, n)]), 1);
    let finished = run(&given, Argument::Borrowed(&input));
    assert_eq!((numbers(finished.block(0)), &input), (vec![8, 9, 10], &bytes(&[7, 8, 9])));
    let mut block = given.store().take(24).unwrap();
    block.bytes_mut().copy_from_slice(&input);
    let start = block.start();
    let finished = run(&given, Argument::Donated(block));
    assert_eq!((numbers(finished.block(0)), finished.block(0).start()), (vec![8, 9, 10], start));
}

/// A loop with a state in place, under limits.
#[test]
fn loops_run_until_their_condition_fails_or_a_limit_is_reached() {
    let predicate = Slice { allocation: 2, offset: 0, bytes: 1 };
    let count = |n: i64| {
        let less = step(Action::Kernel { kernel: 1, arguments: vec![slice(1, 8), predicate] });
        let body = if n == 1 { vec![increment(1, 1, n)] } else { Vec::new() };
        let (condition, body) = (Plan { steps: vec![less] }, Plan { steps: body });
        let rotation = Rotation { condition, predicate, body, finish: Plan::default() };
        let action = Action::While { rotations: vec![rotation] };
        vec![step(Action::Copy { from: slice(0, 8), to: slice(1, 8) }), step(action)]
    };
    let executable = load(program(1, &[LENT, result(0), ARENA], &[1], count(1)), 1);
    for (start, end) in [(0, 10), (9, 10), (10, 10), (50, 50), (-5, 10)] {
        let input = bytes(&[start]);
        let finished = executable.run(&mut [Argument::Borrowed(&input)], &RunOptions::default()).unwrap();
        assert_eq!(numbers(finished.block(0)), [end], "from {start}");
    }
    let input = bytes(&[i64::MIN]);
    let limited =
        |options: RunOptions<'_>| executable.run(&mut [Argument::Borrowed(&input)], &options).unwrap_err();
    let error = limited(RunOptions { fuel: Some(1000), ..RunOptions::default() });
    assert!(matches!(error, RunError::OutOfFuel(1000)), "{error}");
    let deadline = Some(Instant::now() + Duration::from_millis(5));
    assert!(matches!(limited(RunOptions { deadline, ..RunOptions::default() }), RunError::TimedOut));
}

/// Selectors out of range choose the last branch.
#[test]
fn conditionals_choose_a_branch() {
    let branch = |times| Plan { steps: (0..times).map(|_| increment(1, 1, 1)).collect() };
    let run = |is_predicate, selector: i64| {
        let steps = vec![
            step(Action::Copy { from: slice(0, 8), to: slice(1, 8) }),
            step(Action::Conditional {
                selector: slice(0, 8),
                is_predicate,
                branches: (1..=if is_predicate { 2 } else { 3 }).map(branch).collect(),
            }),
        ];
        let executable = load(program(1, &[LENT, result(0)], &[1], steps), 1);
        let input = bytes(&[selector]);
        let finished = executable.run(&mut [Argument::Borrowed(&input)], &RunOptions::default()).unwrap();
        numbers(finished.block(0))[0] - selector
    };
    assert_eq!([0, 1].map(|s| run(true, s)), [2, 1]);
    assert_eq!([0, 1, 2, 3, -1, i64::from(i32::MIN)].map(|s| run(false, s)), [1, 2, 3, 3, 3, 3]);
}

#[test]
fn profiles_count_each_step() {
    let steps = vec![increment(0, 2, 1), increment(2, 1, 1)];
    let executable = load(program(1, &[LENT, result(0), ARENA], &[1], steps), 1);
    let input = bytes(&[1]);
    let options = RunOptions { profile: true, ..RunOptions::default() };
    let finished = executable.run(&mut [Argument::Borrowed(&input)], &options).unwrap();
    assert_eq!(finished.times.iter().map(|t| t.0).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(finished.events.len(), 2);
    assert_eq!(executable.steps()[0].kind, "kernel");
}

/// What a plan says wrongly is an error, not a wild pointer.
#[test]
fn plans_are_checked() {
    let load = |program| {
        let options = LoadOptions { memory_bytes: 1 << 20, ..LoadOptions::new(Arc::new(Pool::new(1))) };
        Executable::load(program, &options).map(|_| ())
    };
    let ok = || program(4, &[LENT, result(0)], &[1], vec![increment(0, 1, 4)]);
    assert!(load(ok()).is_ok());
    let too_long = program(4, &[LENT, result(0)], &[1], vec![increment(0, 1, 5)]);
    let nowhere = program(4, &[LENT, result(0)], &[1], vec![increment(0, 7, 4)]);
    let no_memory = program(4, &[LENT, result(0), result(1)], &[1], vec![increment(0, 2, 4)]);
    let twice = program(4, &[LENT, LENT, result(0)], &[2], vec![increment(0, 2, 4)]);
    let no_kernel = Program { kernels: Vec::new(), ..ok() };
    let no_code = Program { code: program::Code::default(), ..ok() };
    let no_constant = program(4, &[LENT, result(0), AllocationKind::Constant { index: 3 }], &[1], vec![]);
    let choice = Action::Conditional { selector: slice(0, 8), is_predicate: false, branches: vec![] };
    let no_branch = program(4, &[LENT, result(0)], &[1], vec![step(choice)]);
    for bad in [too_long, nowhere, no_memory, twice, no_kernel, no_code, no_constant, no_branch] {
        assert!(matches!(load(bad), Err(RunError::Load(_))));
    }
    let mut large = ok();
    large.buffers.peak_bytes = 2 << 20;
    assert!(matches!(load(large), Err(RunError::OutOfMemory(_))));
    let executable = self::load(ok(), 1);
    let wrong = |arguments: &mut [Argument<'_>]| executable.run(arguments, &RunOptions::default()).is_err();
    assert!(wrong(&mut []) && wrong(&mut [Argument::Borrowed(&[0; 31])]));
}

/// Prints what a run of one small kernel costs: `--ignored --nocapture`, in a release build.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_run() {
    let executable = load(program(1, &[LENT, result(0)], &[1], vec![increment(0, 1, 1)]), 2);
    let mut block = executable.store().take(8).unwrap();
    block.bytes_mut().fill(0);
    let mut times: Vec<u128> = (0..101)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..1000 {
                let run = executable.run(&mut [Argument::Borrowed(block.bytes())], &RunOptions::default());
                assert_eq!(run.unwrap().results.len(), 1);
            }
            start.elapsed().as_nanos() / 1000
        })
        .collect();
    times.sort_unstable();
    eprintln!("run of a program with one small kernel: {} ns", times[50]);
}
