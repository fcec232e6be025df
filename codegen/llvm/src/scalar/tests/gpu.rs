//! The same operations as PTX, run by the interpreter of PTX, against the interpreter of HLO under the same
//! criteria.

use super::*;
use crate::harness::Ptx;
use crate::{Parameter, workers};

/// Threads of a block.
const BLOCK: u32 = 64;

/// Kernels `k0`, `k1`, ... of cases: a thread computes as many elements as there are lanes. What LLVM cannot
/// compile is an error, not the end of the process.
fn ptx(cases: &[(&Module, InstrId)], arch: &str, lanes: u32) -> String {
    ptx_at(Level::O2, cases, arch, lanes)
}

fn ptx_at(level: Level, cases: &[(&Module, InstrId)], arch: &str, lanes: u32) -> String {
    let target = Target::nvptx(arch, level).unwrap();
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

/// Complex angles that the reference does not tell apart: it is certain of them but for 2^-90, and not of the
/// sign of pi on the cut.
fn same_angle(ty: ElementType, expected: u128, actual: u128) -> bool {
    let part = ty.real_part();
    let both = |x: u128| [x & (u128::MAX >> (128 - part.bits())), x >> part.bits()].map(|x| real(part, x));
    let ([e_re, e_im], [a_re, a_im]) = (both(expected), both(actual));
    let near = |x: f64, y: f64| (x - y).abs() <= 2f64.powi(-90);
    let unit = if part == ElementType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let across = ((e_re - a_re).abs() - 2.0 * std::f64::consts::PI).abs() <= 16.0 * unit;
    (near(e_re, a_re) || across) && near(e_im, a_im)
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
    let block = BLOCK * 4 / lanes.max(4);
    let actual = ptx.run(symbol, inputs, ty, n, [threads / block, block]);
    let numeric = numeric(case, ty);
    let mut spread = 0;
    let mut is_right = |i: usize| {
        let (expected, actual) = (bits(&expected, i), bits(&actual, i));
        right(numeric, ty, expected, actual, &mut spread)
            || case.opcode == Opcode::Atan2 && ty.is_complex() && same_angle(ty, expected, actual)
    };
    let wrong: Vec<usize> = (0..n).filter(|&i| !is_right(i)).collect();
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

/// Compiles cases for compute capabilities, on that many lanes, and compares them.
fn check_with(cases: &[Case], forms: &[(&str, u32)], operands: impl Fn(&Case) -> Vec<Buffer>) {
    let mut errors = Vec::new();
    let mut all = Vec::new();
    for case in cases {
        if case.module(64).is_some() {
            let inputs = operands(case);
            let (module, root) = case.module(inputs[0].len()).unwrap();
            all.push((case, module, root, inputs));
        }
    }
    for &(arch, lanes) in forms {
        let modules: Vec<_> = all.iter().map(|(_, module, root, _)| (module, *root)).collect();
        let mut ptx = Ptx::load(&ptx(&modules, arch, lanes));
        for (k, (case, module, root, inputs)) in all.iter().enumerate() {
            compare(&mut ptx, (&format!("k{k}"), case, lanes), (module, *root), inputs, &mut errors);
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

/// Two compute capabilities, scalars and vectors.
const FORMS: [(&str, u32); 2] = [("sm_80", 1), ("sm_90", 4)];

fn check(cases: &[Case]) {
    check_with(cases, &FORMS, few);
}

/// Sign bits are changed by integers: what a GPU's `neg` and `abs` give of a NaN is any NaN.
#[test]
fn payloads_are_kept() {
    for ty in [ElementType::F32, ElementType::F64, ElementType::C64, ElementType::C128, ElementType::BF16] {
        for opcode in [Opcode::Negate, Opcode::Abs] {
            let case = Case::new(opcode, &[ty]);
            if opcode == Opcode::Abs && ty.is_complex() {
                continue;
            }
            let (module, root) = case.module(256).unwrap();
            for (arch, lanes) in FORMS {
                let text = ptx(&[(&module, root)], arch, lanes);
                assert!(!text.contains("neg.") && !text.contains("abs."), "{text}");
            }
        }
    }
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
    // sm_75 has neither `bf16` nor maxima that keep a NaN; sm_100 has operations on pairs of f32.
    for ty in [ElementType::F64, ElementType::F32, ElementType::F16, ElementType::BF16] {
        check_with(&plain_cases(ty), &[("sm_75", 1), ("sm_100", 4)], few);
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

/// As many lanes as the widest access has of a type, and fewer.
#[test]
fn vectors_of_other_lengths() {
    for (ty, lanes) in [
        (ElementType::Pred, 16),
        (ElementType::S8, 16),
        (ElementType::U4, 8),
        (ElementType::U16, 8),
        (ElementType::S64, 2),
        (ElementType::F8E4M3FN, 16),
        (ElementType::F8E8M0FNU, 2),
        (ElementType::F16, 8),
        (ElementType::BF16, 8),
        (ElementType::F32, 2),
        (ElementType::F64, 2),
        (ElementType::C64, 2),
    ] {
        let mut cases = plain_cases(ty);
        cases.extend(comparison_cases(ty));
        cases.extend(conversion_cases(ty));
        if ty.is_float() {
            cases.extend(function_cases(ty));
        }
        check_with(&cases, &[("sm_80", lanes)], |case| whole(&columns(&case.operands, 60, 256)));
    }
}

/// Without passes, and with others.
#[test]
fn other_levels() {
    for level in [Level::O0, Level::O1, Level::O3] {
        let mut errors = Vec::new();
        for (opcode, types) in [
            (Opcode::Sine, &[ElementType::F32][..]),
            (Opcode::Tan, &[ElementType::F64]),
            (Opcode::Remainder, &[ElementType::F64; 2]),
            (Opcode::Acos, &[ElementType::C64]),
            (Opcode::Divide, &[ElementType::C128; 2]),
            (Opcode::Add, &[ElementType::BF16; 2]),
        ] {
            let case = Case::new(opcode, types);
            let inputs = whole(&columns(types, 60, 256));
            let (module, root) = case.module(inputs[0].len()).unwrap();
            for (arch, lanes) in FORMS {
                let mut ptx = Ptx::load(&ptx_at(level, &[(&module, root)], arch, lanes));
                compare(&mut ptx, ("k0", &case, lanes), (&module, root), &inputs, &mut errors);
            }
        }
        assert!(errors.is_empty(), "{level:?}: {}", errors.join("\n"));
    }
}

/// Special values, and numbers between 2^from and 2^to of both signs.
fn magnitudes(n: usize, from: i32, to: i32) -> Vec<f64> {
    let mut state = 11;
    let mut all = vec![f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0, -0.0];
    while all.len() < n {
        state = splitmix64(state);
        let exponent = from + i32::try_from(state >> 40).unwrap() % (to - from);
        let x = (1.0 + (state & ((1 << 40) - 1)) as f64 / (1u64 << 40) as f64) * 2f64.powi(exponent);
        all.push(if state >> 39 & 1 == 0 { x } else { -x });
    }
    all
}

/// Sine, cosine and tangent of angles that are reduced by all digits of pi that they take, multiples of pi/2
/// and their neighbours among them.
#[test]
fn huge_angles() {
    let angles = |ty: ElementType| {
        let top = if ty == ElementType::F32 || ty == ElementType::C64 { 127 } else { 1023 };
        let mut all = magnitudes(600, 14, top);
        // The numbers of f64 and f32 that are closest to multiples of pi/2.
        all.extend([
            6_381_956_970_095_103.0 * 2f64.powi(797),
            5_319_372_648_326_541.0 * 2f64.powi(-19),
            16_367_173.0 * 2f64.powi(72),
            f64::MAX,
            f64::from(f32::MAX),
        ]);
        all.extend((0..200).map(|i| {
            let multiple = f64::from(i * 7_919 + 1) * 2f64.powi(i % 40) * std::f64::consts::FRAC_PI_2;
            f64::from_bits(multiple.to_bits() + u64::try_from(i % 3).unwrap() - 1)
        }));
        column(ty, &all)
    };
    let cases: Vec<Case> = [ElementType::F32, ElementType::F64, ElementType::C64, ElementType::C128]
        .iter()
        .flat_map(|&ty| [Opcode::Sine, Opcode::Cosine, Opcode::Tan].map(|op| Case::new(op, &[ty])))
        .collect();
    check_with(&cases, &FORMS[..1], |case| whole(&[angles(case.operands[0])]));
}

/// Remainders of quotients up to the largest, of subnormal numbers, and of multiples.
#[test]
fn remainders() {
    for (ty, low, high) in [(ElementType::F64, -1074, 1024), (ElementType::F32, -149, 128)] {
        let mut x = magnitudes(1000, low, high);
        let mut y = magnitudes(1000, low, high);
        y.rotate_left(17);
        // Every special value next to every other.
        for &a in &x.clone()[..6] {
            for &b in &x.clone()[..6] {
                x.push(a);
                y.push(b);
            }
        }
        for i in 0..200u32 {
            let divisor = f64::from(i * 37 + 1) * 2f64.powi(low / 2 + 60);
            let multiple = divisor * f64::from(i % 50) * 2f64.powi(i32::try_from(i).unwrap() % 60);
            x.extend([multiple, f64::from_bits(multiple.to_bits().saturating_sub(1))]);
            y.extend([divisor, divisor]);
        }
        x.extend([f64::MAX, f64::MAX, f64::from_bits(1), 5.0, 1e300]);
        y.extend([f64::from_bits(1), f64::INFINITY, f64::MAX, f64::from_bits(3), 7e-310]);
        let case = [Case::new(Opcode::Remainder, &[ty, ty])];
        check_with(&case, &FORMS[..1], |_| whole(&[column(ty, &x), column(ty, &y)]));
    }
}

/// Complex functions of parts of every magnitude, which over- and underflow on the way, and of infinities and
/// NaN next to numbers.
#[test]
fn complex_extremes() {
    for (ty, low, high) in [(ElementType::C64, -149, 128), (ElementType::C128, -1074, 1024)] {
        let x = magnitudes(500, low, high);
        let mut y = magnitudes(500, low, high);
        y.rotate_left(3);
        let cases: Vec<Case> =
            functions().map(|(opcode, arity)| Case::new(opcode, &vec![ty; arity])).collect();
        check_with(&cases, &FORMS[..1], |case| {
            whole(&[column(ty, &x), column(ty, &y)][..case.operands.len()])
        });
    }
}

/// The points that the functions of the processor are tested on.
#[test]
fn functions_on_points() {
    for ty in [ElementType::F64, ElementType::F32, ElementType::C64, ElementType::C128] {
        let cases: Vec<Case> =
            functions().map(|(opcode, arity)| Case::new(opcode, &vec![ty; arity])).collect();
        let n = if ty.is_complex() { 512 } else { 2048 };
        check_with(&cases, &FORMS[..1], |case| whole(&pairs(ty, case.operands.len(), n, 0)));
    }
}

/// What NVIDIA's assembler says of every kernel of a type: that it is legal for the hardware; where registers
/// are spilled is printed. `make test-ptxas`.
#[test]
#[ignore = "needs ptxas, which HLO_PTXAS names"]
fn ptxas() {
    let program = std::env::var("HLO_PTXAS").expect("HLO_PTXAS is the path of ptxas");
    let folder = std::env::temp_dir().join(format!("hlo-ptxas-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut errors = Vec::new();
    for &ty in ElementType::ALL {
        let mut cases = plain_cases(ty);
        cases.extend(conversion_cases(ty));
        cases.extend(comparison_cases(ty));
        if ty.is_float() || ty.is_complex() {
            cases.extend(function_cases(ty));
        }
        let built: Vec<_> = cases.iter().filter_map(|case| Some((case, case.module(64)?))).collect();
        let modules: Vec<_> = built.iter().map(|(_, (module, root))| (module, *root)).collect();
        for (arch, lanes) in [("sm_80", 1), ("sm_80", 4), ("sm_90", 1), ("sm_90", 4)] {
            let file = folder.join(format!("{ty}_{arch}_{lanes}.ptx"));
            std::fs::write(&file, ptx(&modules, arch, lanes)).unwrap();
            let output = std::process::Command::new(&program)
                .args([&format!("-arch={arch}"), "-v", "-o", "/dev/null"])
                .arg(&file)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            if !output.status.success() {
                errors.push(format!("{}: {said}", file.display()));
                continue;
            }
            let mut function = "";
            for line in said.lines() {
                if let Some((_, name)) = line.split_once("properties for ") {
                    function = name;
                }
                if line.contains("spill stores") && !line.contains(" 0 bytes spill stores") {
                    let case = function.strip_prefix('k').and_then(|k| k.parse::<usize>().ok());
                    let opcode = case.map_or(function, |k| built[k].0.opcode.name());
                    println!("{ty} {arch}, {lanes} lanes, {opcode}: {}", line.trim());
                }
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}
