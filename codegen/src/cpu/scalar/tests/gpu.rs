//! The same operations as PTX, run by the interpreter of PTX, against the interpreter of HLO under the same criteria.

use super::*;
use crate::cpu::llvm::harness::Ptx;
use crate::cpu::llvm::{Parameter, workers};

/// Threads of a block.
const BLOCK: u32 = 64;

/// Kernels `k0`, `k1`, ... of cases: a thread computes as many elements as there are lanes. What LLVM cannot compile is an error, not the end of the process.
fn ptx(cases: &[(&Module, InstrId)], arch: &str, lanes: u32) -> String {
    let target = Target::nvptx(arch, Level::O2).unwrap();
    let compile = |_| {
        let context = new_context();
        let llvm = context.create_module("test");
        target.prepare(&llvm).unwrap();
        let builder = context.create_builder();
        for (k, &(module, root)) in cases.iter().enumerate() {
            let instr = module.instr(root);
            let ty = instr.shape.element_type().unwrap();
            let operands: Vec<ElementType> =
                instr.operands().iter().map(|&x| module.instr(x).shape.element_type().unwrap()).collect();
            let array = Parameter::Array { align: 16, is_read_only: false, is_no_alias: true };
            let arrays = vec![array; operands.len() + 1];
            let name = format!("k{k}");
            let (e, arrays) =
                Emit::gpu_kernel(&context, &llvm, &builder, &target, &name, &arrays, BLOCK).unwrap();
            let v = e.with_lanes(lanes);
            let emit = || -> Result<()> {
                let first = e.mul(e.global_thread()?, e.i64(i64::from(lanes)))?;
                let at = |array: usize, ty: ElementType| {
                    e.address(arrays[array], e.mul(first, e.i64(ty.storage_bytes() as i64))?)
                };
                // Vectors are aligned to all of them, or to what one access takes.
                let align = |ty: ElementType| (ty.storage_bytes() as u32 * lanes).min(16);
                let loaded = operands
                    .iter()
                    .enumerate()
                    .map(|(n, &ty)| Val::load(&v, ty, at(n, ty)?, align(ty)))
                    .collect::<Result<Vec<_>>>()?;
                let result = elementwise(&v, instr, &loaded)?;
                result.store(&v, at(operands.len(), ty)?, align(ty), false)?;
                e.return_void()
            };
            emit().unwrap_or_else(|error| panic!("{} {operands:?}: {error}", instr.opcode));
        }
        target.optimize(&llvm).unwrap_or_else(|error| panic!("{error}"));
        target.assembly(&llvm).unwrap_or_else(|error| panic!("{error}"))
    };
    let text = workers::run(1, &compile).remove(0).unwrap_or_else(|error| panic!("{error}"));
    only_what_is_exact(&text);
    text
}

/// Neither approximations nor flushed subnormal numbers nor functions that are not there.
fn only_what_is_exact(text: &str) {
    for part in [".approx", ".ftz", ".extern .func", ".full"] {
        let line = text.lines().find(|line| line.contains(part));
        assert!(line.is_none(), "{part}: {line:?}");
    }
}

/// Whether results of a kernel are right; what is wrong otherwise.
fn compare(
    ptx: &mut Ptx,
    (symbol, case, lanes): (&str, &Case, u32),
    (module, root): (&Module, InstrId),
    inputs: &[Buffer],
    errors: &mut Vec<String>,
) {
    let n = inputs[0].len();
    let ty = module.instr(root).shape.element_type().unwrap();
    let arguments =
        inputs.iter().map(|b| Array::Array(hlo_interp::Tensor::new(vec![n as i64], b.clone()))).collect();
    let expected =
        Interpreter::new(module, Options::default()).run(arguments).unwrap().into_array().into_buffer();
    let threads = u32::try_from(n).unwrap() / lanes;
    let actual = ptx.run(symbol, inputs, ty, n, [threads / BLOCK, BLOCK]);
    let numeric = numeric(case, ty);
    let mut spread = 0;
    let wrong: Vec<usize> =
        (0..n).filter(|&i| !right(numeric, ty, bits(&expected, i), bits(&actual, i), &mut spread)).collect();
    for &i in wrong.iter().take(3) {
        let operands: Vec<String> = inputs.iter().map(|b| format!("{:#x}", bits(b, i))).collect();
        errors.push(format!(
            "{} {:?} {:?} to {ty}, {lanes} lanes: of {operands:?} {:#x}, not {:#x} ({} wrong of {n}, {spread} ulp)",
            case.opcode,
            case.operands,
            case.attrs,
            bits(&actual, i),
            bits(&expected, i),
            wrong.len(),
        ));
    }
}

/// Columns again and again, until blocks of threads of four lanes take all of them.
fn whole(columns: &[Buffer]) -> Vec<Buffer> {
    let n = columns[0].len().next_multiple_of(4 * BLOCK as usize);
    let fill = |b: &Buffer| with_buffer!(b, v => BufferOf::wrap(v.iter().copied().cycle().take(n).collect()));
    columns.iter().map(fill).collect()
}

/// Operands of a case: fewer than on the processor, since they are computed instruction by instruction.
fn few(case: &Case) -> Vec<Buffer> {
    whole(&match case.operands.len() {
        1 => columns(&case.operands, 256, 512),
        _ => columns(&case.operands, 110, 512),
    })
}

/// Compiles cases and compares them, on scalars and on vectors.
fn check_with(cases: &[Case], archs: &[&str], operands: impl Fn(&Case) -> Vec<Buffer>) {
    let mut errors = Vec::new();
    let mut all = Vec::new();
    for case in cases {
        if case.module(64).is_some() {
            let inputs = operands(case);
            let (module, root) = case.module(inputs[0].len()).unwrap();
            all.push((case, module, root, inputs));
        }
    }
    for (arch, lanes) in archs.iter().flat_map(|&arch| [(arch, 1), (arch, 4)]) {
        let modules: Vec<_> = all.iter().map(|(_, module, root, _)| (module, *root)).collect();
        let mut ptx = Ptx::load(&ptx(&modules, arch, lanes));
        for (k, (case, module, root, inputs)) in all.iter().enumerate() {
            compare(&mut ptx, (&format!("k{k}"), case, lanes), (module, *root), inputs, &mut errors);
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

const ARCHS: [&str; 2] = ["sm_80", "sm_90"];

fn check(cases: &[Case]) {
    check_with(cases, &ARCHS, few);
}

#[test]
fn integers_and_predicates() {
    for ty in of_class(|ty| ty.is_integer() || ty == ElementType::Pred) {
        check(&plain_cases(ty));
    }
}

#[test]
fn floats() {
    for ty in of_class(|ty| ty.is_float()) {
        check(&plain_cases(ty));
    }
}

#[test]
fn complex_numbers() {
    for ty in of_class(|ty| ty.is_complex()) {
        check(&plain_cases(ty));
    }
}

#[test]
fn functions_of_floats() {
    for ty in of_class(|ty| ty.is_float()) {
        check(&function_cases(ty));
    }
}

#[test]
fn functions_of_complex_numbers() {
    for ty in of_class(|ty| ty.is_complex()) {
        check(&function_cases(ty));
    }
}

#[test]
fn conversions() {
    for &from in ElementType::ALL {
        check(&conversion_cases(from));
    }
    check(&bitcast_cases());
    check(&mixed_cases());
}

#[test]
fn comparisons() {
    for &ty in ElementType::ALL {
        check(&comparison_cases(ty));
    }
}

#[test]
fn other_roundings() {
    for ty in of_class(|ty| ty.is_float()) {
        check(&reduction_cases(ty));
    }
    check(&stochastic_cases());
}
