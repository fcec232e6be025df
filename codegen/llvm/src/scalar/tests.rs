//! Every operation of every type against the interpreter, on scalars and on vectors, over special values.

mod gpu;

use hlo::attrs::{AttrKey, AttrValue, CompareType, Direction};
use hlo::builder::ComputationBuilder;
use hlo::elided::splitmix64;
use hlo::literal::{Bits, BufferOf};
use hlo::opcode::Numeric;
use hlo::{
    Attrs, Buffer, ElementType, InstrId, Module, Opcode, Shape, TypeClass, with_buffer, with_element_type,
};
use hlo_interp::{Interpreter, Options, Value as Array};

use super::*;
use crate::harness::Kernels;
use crate::{Level, Prim, Target, new_context};
use hlo::elementwise::{Binary, Function, Unary};

/// One instruction on operands of these types.
struct Case {
    opcode: Opcode,
    attrs: Attrs,
    operands: Vec<ElementType>,
    result: Option<ElementType>,
}

impl Case {
    fn new(opcode: Opcode, operands: &[ElementType]) -> Self {
        Self { opcode, attrs: Attrs::new(), operands: operands.to_vec(), result: None }
    }

    fn to(opcode: Opcode, from: ElementType, to: ElementType) -> Self {
        Self { result: Some(to), ..Self::new(opcode, &[from]) }
    }

    /// The program on arrays of `n` elements; `None` if there is no such operation of these types.
    fn module(&self, n: usize) -> Option<(Module, InstrId)> {
        let mut module = Module::new("test");
        let mut b = ComputationBuilder::new(&mut module, "main");
        let dims = [n as i64];
        let parameters: Vec<_> =
            self.operands.iter().map(|&ty| b.parameter("x", Shape::array(ty, &dims))).collect();
        let root = match self.result {
            Some(ty) => {
                b.instr_with_shape(self.opcode, Shape::array(ty, &dims), &parameters, self.attrs.clone())
            }
            None => b.instr(self.opcode, &parameters, self.attrs.clone()),
        };
        let root = root.ok()?;
        let main = b.finish();
        module.set_entry(main);
        (!hlo::verify::verify(&module).has_errors()).then_some((module, root))
    }
}

/// Patterns of a type: all of them up to 8 bits, otherwise special ones and random ones.
fn patterns(ty: ElementType, n: usize) -> Vec<u128> {
    let part = ty.real_part();
    let bits = part.bits();
    let ones = u128::MAX >> (128 - bits);
    if ty == ElementType::Pred {
        return vec![0, 1];
    }
    if bits <= 8 || bits == 16 && n > 1000 {
        return (0..=ones).collect();
    }
    let mut all = vec![0, 1, 2, 3, 7, ones, ones - 1, ones >> 1, (ones >> 1) + 1, (ones >> 1) + 2, ones >> 2];
    if ty.is_float() || ty.is_complex() {
        let numbers = [
            1.0,
            0.5,
            1.5,
            2.0,
            2.5,
            3.0,
            0.75,
            10.0,
            100.25,
            1e-3,
            3.5,
            0.1,
            88.8,
            0.499_999_97,
            8_388_609.0,
            65504.0,
            1e4,
            3.0e9,
            1e19,
            1e-40,
            1e300,
            4.5,
            126.0,
            127.5,
            128.0,
            255.5,
            32767.5,
            2_147_483_648.0,
            1e-8,
        ];
        for x in numbers {
            for x in [x, -x] {
                all.push(with_element_type!(part, T => hlo_arithmetic::scalar::convert::<f64, T>(x).bits()));
            }
        }
        // Around infinity and the least normal number.
        let infinity =
            with_element_type!(part, T => hlo_arithmetic::scalar::convert::<f64, T>(f64::INFINITY).bits());
        for x in [
            infinity,
            infinity + 1,
            infinity - 1,
            infinity | 1 << (bits - 1),
            (infinity | 1 << (bits - 1)) + 5,
        ] {
            all.push(x & ones);
        }
        let least = infinity & (!infinity + 1);
        all.extend([least, least - 1, least + 1]);
    } else {
        all.extend(
            (0..=bits)
                .flat_map(|k| [(1u128 << k) & ones, ((1u128 << k) - 1) & ones, ones ^ ((1u128 << k) & ones)]),
        );
    }
    let mut seed = 7;
    while all.len() < n {
        seed = splitmix64(seed);
        let random = u128::from(seed);
        all.push(if seed & 256 == 0 {
            random & ones
        } else {
            (random & ones) >> (seed >> 9 & 31).min(u64::from(bits) - 2)
        });
    }
    all
}

/// Patterns of a type, complex ones of pairs of parts.
fn values(ty: ElementType, n: usize) -> Vec<u128> {
    let parts = patterns(ty, n);
    if !ty.is_complex() {
        return parts;
    }
    let bits = ty.bits() / 2;
    (0..parts.len() * 12)
        .map(|i| parts[i % parts.len()] | parts[(i * 7 + i / parts.len()) % parts.len()] << bits)
        .collect()
}

/// Columns of operands: special values of one, or pairs (triples) of them.
fn operands(types: &[ElementType]) -> Vec<Buffer> {
    match types.len() {
        1 => columns(types, 1500, usize::MAX),
        _ => columns(types, 110, 8192),
    }
}

/// Columns of at most this many of the combinations of `values` values of each type.
fn columns(types: &[ElementType], each: usize, most: usize) -> Vec<Buffer> {
    let sets: Vec<Vec<u128>> = types.iter().map(|&ty| values(ty, each)).collect();
    let total: usize = sets.iter().map(Vec::len).product();
    let n = total.min(most);
    let n = n.next_multiple_of(64);
    let mut columns: Vec<Vec<u128>> = vec![Vec::with_capacity(n); sets.len()];
    // A stride that is prime to the number of pairs visits each at most once.
    let stride = if total > n { 7919 * 13 } else { 1 };
    for i in 0..n {
        let mut rest = i * stride % total;
        for (set, column) in sets.iter().zip(&mut columns) {
            column.push(set[rest % set.len()]);
            rest /= set.len();
        }
    }
    let make = |ty: ElementType, bits: Vec<u128>| -> Buffer {
        with_element_type!(ty, T => T::wrap(bits.into_iter().map(<T as Bits>::from_bits).collect()))
    };
    types.iter().zip(columns).map(|(&ty, column)| make(ty, column)).collect()
}

fn bits(buffer: &Buffer, i: usize) -> u128 {
    with_buffer!(buffer, v => v[i].bits())
}

/// Floats in order, the two zeros next to each other.
fn ordinal(ty: ElementType, pattern: u128) -> i128 {
    let sign = 1u128 << (ty.bits() - 1);
    if ty == ElementType::F8E8M0FNU {
        return pattern.cast_signed();
    }
    let magnitude = (pattern & !sign).cast_signed();
    if pattern & sign == 0 { magnitude } else { -magnitude }
}

fn real(ty: ElementType, pattern: u128) -> f64 {
    with_element_type!(ty, T => hlo_arithmetic::scalar::convert::<T, f64>(<T as Bits>::from_bits(pattern)))
}

/// Whether a result is right; `spread` records units in the last place.
fn right(numeric: Numeric, ty: ElementType, expected: u128, actual: u128, spread: &mut i128) -> bool {
    if expected == actual {
        return true;
    }
    match numeric {
        Numeric::Ulp(n) => {
            if real(ty, expected).is_nan() || real(ty, actual).is_nan() {
                return real(ty, expected).is_nan() && real(ty, actual).is_nan();
            }
            let distance = (ordinal(ty, expected) - ordinal(ty, actual)).abs();
            *spread = (*spread).max(distance);
            // Equal but for the sign of zero is wrong.
            distance != 0 && distance <= i128::from(n)
        }
        Numeric::Normwise(n) => {
            let part = ty.real_part();
            let (half, mask) = (part.bits(), u128::MAX >> (128 - part.bits()));
            let both = |x: u128| [real(part, x & mask), real(part, x >> half)];
            let (e, a) = (both(expected), both(actual));
            let epsilon = if part == ElementType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
            let least =
                if part == ElementType::F32 { f64::from(f32::from_bits(1)) } else { f64::from_bits(1) };
            let unit = (e[0].abs().max(e[1].abs()) * epsilon).max(least);
            let off = e.iter().zip(&a).map(|(e, a)| ((e - a).abs() / unit).ceil()).fold(0.0, f64::max);
            *spread = (*spread).max(if off.is_finite() { off as i128 } else { 0 });
            e.iter().zip(&a).all(|(e, a)| {
                e.to_bits() == a.to_bits()
                    || (e.is_nan() && a.is_nan())
                    || (e - a).abs() <= f64::from(n) * unit
            })
        }
        Numeric::Exact | Numeric::Sum | Numeric::Region | Numeric::Called | Numeric::Opaque => false,
    }
}

/// How far off a result may be: the modulus of a complex number as its parts.
fn numeric(case: &Case, result: ElementType) -> Numeric {
    let complex = case.operands.iter().copied().find(|t| t.is_complex());
    case.opcode.numeric(complex.unwrap_or(result))
}

/// Numbers of lanes: of `bf16` also as many as fill the widest registers.
fn lanes(case: &Case) -> &'static [u32] {
    if case.operands.contains(&ElementType::BF16) { &[1, 16, 32] } else { &[1, 16] }
}

/// Compiles all cases into one object, on scalars and on vectors, and compares with the interpreter.
fn check(cases: &[Case], target: &Target) {
    let context = new_context();
    let llvm = context.create_module("test");
    target.prepare(&llvm).unwrap();
    let builder = context.create_builder();
    let mut compiled = Vec::new();
    for (k, case) in cases.iter().enumerate() {
        let Some(_) = case.module(64) else { continue };
        let inputs = operands(&case.operands);
        let n = inputs[0].len();
        let (module, root) = case.module(n).unwrap();
        let instr = module.instr(root);
        let ty = instr.shape.element_type().unwrap();
        for &lanes in lanes(case) {
            let name = format!("k{k}_{lanes}");
            let (e, [arguments, begin, end]) =
                Emit::kernel(&context, &llvm, &builder, target, &name).unwrap();
            let v = e.with_lanes(lanes);
            let arrays: Vec<_> = (0..=inputs.len()).map(|i| e.argument(arguments, i).unwrap()).collect();
            e.for_range(begin, end, e.i64(i64::from(lanes)), |i| {
                let at = |n: usize, ty: ElementType| {
                    let size = e.int(Prim::I64, ty.storage_bytes() as u64);
                    e.address(arrays[n], e.mul(i, size)?)
                };
                let loaded = case
                    .operands
                    .iter()
                    .enumerate()
                    .map(|(n, &ty)| Val::load(&v, ty, at(n, ty)?, 1))
                    .collect::<Result<Vec<_>>>()?;
                elementwise(&v, instr, &loaded)?.store(&v, at(inputs.len(), ty)?, 1, false)
            })
            .unwrap_or_else(|error| panic!("{} {:?}: {error}", case.opcode, case.operands));
            e.return_void().unwrap();
        }
        compiled.push((k, module, root, inputs));
    }
    target.optimize(&llvm).unwrap_or_else(|error| panic!("{error}"));
    let kernels = Kernels::load(&target.object(&llvm).unwrap());
    let mut errors = Vec::new();
    for (k, module, root, inputs) in compiled {
        let case = &cases[k];
        let n = inputs[0].len();
        let ty = module.instr(root).shape.element_type().unwrap();
        let arguments =
            inputs.iter().map(|b| Array::Array(hlo_interp::Tensor::new(vec![n as i64], b.clone()))).collect();
        let expected =
            Interpreter::new(&module, Options::default()).run(arguments).unwrap().into_array().into_buffer();
        let numeric = numeric(case, ty);
        for &lanes in lanes(case) {
            let actual = kernels.run(&format!("k{k}_{lanes}"), &inputs, ty, n, n as u64);
            let mut spread = 0;
            let wrong: Vec<usize> = (0..n)
                .filter(|&i| !right(numeric, ty, bits(&expected, i), bits(&actual, i), &mut spread))
                .collect();
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
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

fn host() -> Target {
    Target::host(Level::O2).unwrap()
}

fn of_class(f: impl Fn(ElementType) -> bool) -> Vec<ElementType> {
    ElementType::ALL.iter().copied().filter(|&ty| f(ty)).collect()
}

/// Every operation that takes and gives one type.
fn plain(types: &[ElementType], target: &Target) {
    for &ty in types {
        check(&plain_cases(ty), target);
    }
}

fn plain_cases(ty: ElementType) -> Vec<Case> {
    let mut cases: Vec<Case> = Unary::ALL.iter().map(|op| Case::new(op.opcode(), &[ty])).collect();
    cases.extend(Binary::ALL.iter().map(|op| Case::new(op.opcode(), &[ty, ty])));
    cases.extend([Opcode::Real, Opcode::Imag, Opcode::IsFinite].map(|op| Case::new(op, &[ty])));
    cases.push(Case::new(Opcode::Complex, &[ty, ty]));
    cases.push(Case::new(Opcode::Clamp, &[ty, ty, ty]));
    cases.push(Case::new(Opcode::Select, &[ElementType::Pred, ty, ty]));
    cases
}

fn function_cases(ty: ElementType) -> Vec<Case> {
    Function::ALL.iter().map(|f| Case::new(f.opcode(), &[ty])).collect()
}

#[test]
fn integers_and_predicates() {
    plain(&of_class(|ty| ty.is_integer() || ty == ElementType::Pred), &host());
}

#[test]
fn floats_wide() {
    plain(&[ElementType::F32, ElementType::F64], &host());
}

#[test]
fn floats_narrow() {
    plain(&of_class(|ty| ty.is_float() && ty.bits() <= 16), &host());
}

#[test]
fn complex_numbers() {
    plain(&[ElementType::C64, ElementType::C128], &host());
}

#[test]
fn functions_of_every_type() {
    for &ty in &of_class(|ty| ty.is_float() || ty.is_complex()) {
        let cases = function_cases(ty);
        check(&cases, &host());
    }
}

/// The processor with the shortest vectors, which is this one where it has no others.
#[test]
fn without_wide_vectors() {
    let target = Target::tested(Level::O1).unwrap().pop().unwrap();
    plain(
        &[ElementType::F32, ElementType::BF16, ElementType::F16, ElementType::S8, ElementType::U64],
        &target,
    );
    for ty in [ElementType::F32, ElementType::BF16] {
        let cases = function_cases(ty);
        check(&cases, &target);
    }
}

/// What is made for `bf16` alone is rounded as the exact result is, of all numbers.
#[test]
fn exponentials_of_bf16() {
    let case = Case::new(Opcode::Exponential, &[ElementType::BF16]);
    let inputs = operands(&case.operands);
    assert_eq!(inputs[0].len(), 1 << 16);
    for target in Target::tested(Level::O1).unwrap() {
        let (kernels, module, root) = passes(&case, 1 << 16, &target, false);
        let (wrong, .., off) = against_interpreter(&case, &kernels, (&module, root), inputs.clone());
        assert_eq!((wrong, off), (0, 0), "{}", target.cpu());
    }
}

/// Where there are sums of products of bytes, `bf16` is rounded by them: here as on processors of the same
/// vectors without.
#[test]
fn without_sums_of_products() {
    if !host().has("avx512vnni") {
        return;
    }
    let target = Target::new("native", "-avx512vnni", Level::O2).unwrap();
    assert_eq!((target.has("avx512vnni"), target.vector_bytes()), (false, host().vector_bytes()));
    plain(&[ElementType::BF16], &target);
    let from = of_class(|ty| ty.is_float() || ty.is_integer());
    let cases: Vec<Case> =
        from.iter().map(|&from| Case::to(Opcode::Convert, from, ElementType::BF16)).collect();
    check(&cases, &target);
}

#[test]
fn conversions() {
    for &from in ElementType::ALL {
        check(&conversion_cases(from), &host());
    }
}

fn conversion_cases(from: ElementType) -> Vec<Case> {
    ElementType::ALL.iter().map(|&to| Case::to(Opcode::Convert, from, to)).collect()
}

#[test]
fn conversions_of_bits() {
    check(&bitcast_cases(), &host());
}

fn bitcast_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &from in ElementType::ALL {
        for &to in of_class(|to| to.bits() == from.bits()).iter() {
            cases.push(Case::to(Opcode::BitcastConvert, from, to));
        }
    }
    cases
}

#[test]
fn comparisons() {
    for &ty in ElementType::ALL {
        check(&comparison_cases(ty), &host());
    }
}

fn comparison_cases(ty: ElementType) -> Vec<Case> {
    let directions =
        [Direction::Eq, Direction::Ne, Direction::Ge, Direction::Gt, Direction::Le, Direction::Lt];
    let mut cases = Vec::new();
    for direction in directions {
        let attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(direction));
        cases.push(Case { attrs: attrs.clone(), ..Case::new(Opcode::Compare, &[ty, ty]) });
        if ty.class() == TypeClass::Float {
            let attrs = attrs.with(AttrKey::CompareType, AttrValue::CompareType(CompareType::TotalOrder));
            cases.push(Case { attrs, ..Case::new(Opcode::Compare, &[ty, ty]) });
        }
    }
    cases
}

#[test]
fn reduced_precision() {
    for &ty in &of_class(|ty| ty.is_float()) {
        check(&reduction_cases(ty), &host());
    }
}

fn reduction_cases(ty: ElementType) -> Vec<Case> {
    let mut cases = Vec::new();
    for (exponent, mantissa) in [(8, 7), (5, 10), (4, 3), (5, 2), (1, 0), (8, 23), (11, 52), (3, 30), (2, 1)]
    {
        let attrs = Attrs::new()
            .with(AttrKey::ExponentBits, AttrValue::Int(exponent))
            .with(AttrKey::MantissaBits, AttrValue::Int(mantissa));
        cases.push(Case { attrs, ..Case::new(Opcode::ReducePrecision, &[ty]) });
    }
    cases
}

#[test]
fn stochastic_conversions() {
    check(&stochastic_cases(), &host());
}

fn stochastic_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (ty, random) in [
        (ElementType::F64, ElementType::U64),
        (ElementType::F32, ElementType::U32),
        (ElementType::F16, ElementType::U16),
        (ElementType::BF16, ElementType::U16),
        (ElementType::F8E5M2, ElementType::U8),
    ] {
        let signed = of_class(ElementType::is_signed_integer);
        cases.extend(
            signed
                .iter()
                .map(|&to| Case { result: Some(to), ..Case::new(Opcode::StochasticConvert, &[ty, random]) }),
        );
    }
    cases
}

#[test]
fn mixed_floats() {
    check(&mixed_cases(), &host());
}

fn mixed_cases() -> Vec<Case> {
    let (half, single) = (ElementType::BF16, ElementType::F32);
    vec![
        Case { result: Some(single), ..Case::new(Opcode::Add, &[half, single]) },
        Case { result: Some(half), ..Case::new(Opcode::Multiply, &[single, half]) },
        Case { result: Some(half), ..Case::new(Opcode::Copy, &[single]) },
        Case { result: Some(single), ..Case::new(Opcode::Floor, &[half]) },
    ]
}

/// Operands of `f64` functions: over all patterns, over all usual exponents, around multiples of pi/2, around
/// 1, integers, numbers of `f32`.
fn points(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut random = || {
        state = splitmix64(state);
        state
    };
    let unit = |r: u64| (r >> 11) as f64 / (1u64 << 53) as f64;
    (0..n)
        .map(|i| {
            let (r, s) = (random(), random());
            let sign = if s & 1 == 0 { 1.0 } else { -1.0 };
            match i % 8 {
                0 => f64::from_bits(r),
                1 => sign * unit(r) * 2f64.powi((s >> 8) as i32 % 24 - 12),
                2 => sign * unit(r) * 2f64.powi((s >> 8) as i32 % 120 - 80),
                3 => {
                    let multiple = (s >> 8 & 0xffff) as f64 * std::f64::consts::FRAC_PI_2;
                    sign * f64::from_bits(multiple.to_bits().wrapping_add(r % 5).wrapping_sub(2))
                }
                4 => {
                    let distance = ((r >> 20) >> (s >> 8 & 31)).cast_signed();
                    sign * f64::from_bits(1f64.to_bits().wrapping_add_signed(distance - (1 << (r & 15))))
                }
                5 => sign * ((r >> 40) >> (s >> 8 & 15)) as f64 / if s & 2 == 0 { 1.0 } else { 64.0 },
                6 => f64::from(f32::from_bits(r as u32)),
                _ => sign * (0.1 + unit(r) * 8.0),
            }
        })
        .collect()
}

fn column(ty: ElementType, numbers: &[f64]) -> Buffer {
    let parts = || numbers.iter().zip(numbers.iter().skip(13).chain(numbers));
    match ty {
        ElementType::C64 => hlo::num_complex::Complex::<f32>::wrap(
            parts().map(|(&a, &b)| hlo::num_complex::Complex::new(a as f32, b as f32)).collect(),
        ),
        ElementType::C128 => hlo::num_complex::Complex::<f64>::wrap(
            parts().map(|(&a, &b)| hlo::num_complex::Complex::new(a, b)).collect(),
        ),
        ElementType::F64 => f64::wrap(numbers.to_vec()),
        _ => f32::wrap(numbers.iter().map(|&x| x as f32).collect()),
    }
}

/// A kernel of one instruction on arrays of `n` elements, of which a unit is one pass.
fn passes(case: &Case, n: usize, target: &Target, show: bool) -> (Kernels, Module, InstrId) {
    let (module, root) = case.module(n).unwrap();
    let ty = case.operands[0];
    let size = ty.storage_bytes() as i64;
    let part = ty.real_part().bits() / 8;
    let context = new_context();
    let llvm = context.create_module("test");
    target.prepare(&llvm).unwrap();
    let builder = context.create_builder();
    let (e, [arguments, begin, end]) = Emit::kernel(&context, &llvm, &builder, target, "k").unwrap();
    let v = e.with_lanes(target.vector_bytes() / part);
    let arrays: Vec<_> = (0..=case.operands.len()).map(|i| e.argument(arguments, i).unwrap()).collect();
    e.for_range(begin, end, e.i64(1), |_| {
        e.for_range(e.i64(0), e.i64(n as i64), e.i64(i64::from(v.lanes)), |i| {
            let at = |k: usize| e.address(arrays[k], e.mul(i, e.i64(size))?);
            let loaded = (0..case.operands.len())
                .map(|k| Val::load(&v, ty, at(k)?, part))
                .collect::<Result<Vec<_>>>()?;
            let result = elementwise(&v, module.instr(root), &loaded)?;
            let bytes = result.ty.storage_bytes() as i64;
            let to = e.address(arrays[case.operands.len()], e.mul(i, e.i64(bytes))?)?;
            result.store(&v, to, part, false)
        })
    })
    .unwrap();
    e.return_void().unwrap();
    target.optimize(&llvm).unwrap();
    let kernels = Kernels::load(&target.object(&llvm).unwrap());
    if show {
        println!("{}", target.assembly(&llvm).unwrap());
    }
    (kernels, module, root)
}

/// The functions of one and two operands.
fn functions() -> impl Iterator<Item = (Opcode, usize)> {
    let unary = Function::ALL.iter().map(|f| (f.opcode(), 1));
    unary.chain([
        (Opcode::Power, 2),
        (Opcode::Atan2, 2),
        (Opcode::Divide, 2),
        (Opcode::Multiply, 2),
        (Opcode::Abs, 1),
        (Opcode::Sign, 1),
    ])
}

/// What a function gives on points and what the interpreter does; the number of results that are wrong, the
/// largest distance in patterns, where that is, and how many are off.
fn against_interpreter(
    case: &Case,
    kernels: &Kernels,
    (module, root): (&Module, InstrId),
    inputs: Vec<Buffer>,
) -> (usize, i128, usize, usize) {
    let (n, result) = (inputs[0].len(), module.instr(root).shape.element_type().unwrap());
    let actual = kernels.run("k", &inputs, result, n, 1);
    let arguments =
        inputs.into_iter().map(|b| Array::Array(hlo_interp::Tensor::new(vec![n as i64], b))).collect();
    let expected =
        Interpreter::new(module, Options::default()).run(arguments).unwrap().into_array().into_buffer();
    let (mut wrong, mut worst, mut at, mut off) = (0, 0, 0, 0);
    for i in 0..n {
        let (e, a) = (bits(&expected, i), bits(&actual, i));
        let mut spread = 0;
        if !right(numeric(case, result), result, e, a, &mut spread) {
            wrong += 1;
            if spread == 0 {
                (worst, at) = (i128::MAX, i);
            }
        }
        off += usize::from(spread > 0);
        if spread > worst {
            (worst, at) = (spread, i);
        }
    }
    (wrong, worst, at, off)
}

fn pairs(ty: ElementType, arity: usize, n: usize, seed: u64) -> Vec<Buffer> {
    let mut columns = vec![points(n, seed)];
    if arity == 2 {
        let mut second = points(n, seed.wrapping_add(77));
        // Operands of one kind do not always meet those of the same kind.
        second.rotate_left((seed % 8) as usize);
        columns.push(second);
    }
    columns.iter().map(|c| column(ty, c)).collect()
}

#[test]
fn functions_on_points() {
    let mut errors = Vec::new();
    for target in Target::tested(Level::O1).unwrap() {
        let cpu = target.cpu();
        for (opcode, arity) in functions() {
            for ty in [ElementType::F64, ElementType::F32, ElementType::C64, ElementType::C128] {
                let case = Case::new(opcode, &vec![ty; arity]);
                let n = if ty.is_complex() { 512 } else { 4096 };
                if case.module(n).is_none() {
                    continue;
                }
                let (kernels, module, root) = passes(&case, n, &target, false);
                for seed in 0..4 {
                    let inputs = pairs(ty, arity, n, seed);
                    let operands = inputs.clone();
                    let (wrong, worst, at, _) = against_interpreter(&case, &kernels, (&module, root), inputs);
                    if wrong > 0 {
                        let at: Vec<_> = operands.iter().map(|b| real(ty, bits(b, at))).collect();
                        errors.push(format!("{cpu} {opcode} {ty}: {wrong} wrong, {worst} ulp at {at:?}"));
                    }
                }
            }
        }
    }
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

/// What functions cost and how much they are off: `cargo test --release -p hlo-codegen --lib -- --ignored
/// --nocapture survey`. `HLO_SURVEY` names one function, whose code is shown, `HLO_SURVEY_TYPE` a type, and
/// `HLO_SURVEY_POINTS` how many times 4096 points there are.
#[test]
#[ignore = "a measurement"]
fn survey() {
    let rounds: u64 = std::env::var("HLO_SURVEY_POINTS").map_or(64, |s| s.parse().unwrap());
    let only = std::env::var("HLO_SURVEY").ok();
    let ty =
        std::env::var("HLO_SURVEY_TYPE").map_or(ElementType::F64, |s| ElementType::from_name(&s).unwrap());
    let mut targets = Target::tested(Level::O2).unwrap();
    targets.truncate(if ty.is_complex() { 1 } else { 2 });
    for target in targets {
        let cpu = target.cpu();
        for (opcode, arity) in functions() {
            if only.as_ref().is_some_and(|only| opcode.name() != only) {
                continue;
            }
            let case = Case::new(opcode, &vec![ty; arity]);
            let n = if ty.is_complex() { 1024 } else { 4096 };
            if case.module(n).is_none() {
                continue;
            }
            let started = std::time::Instant::now();
            let (kernels, module, root) = passes(&case, n, &target, only.is_some());
            let compiled = started.elapsed();
            let result = module.instr(root).shape.element_type().unwrap();
            let numbers: Vec<f64> = (0..n).map(|i| 0.1 + i as f64 / 4200.0).collect();
            let times = if ty.is_complex() { 20 } else { 2_000 };
            let inputs: Vec<Buffer> = (0..arity).map(|_| column(ty, &numbers)).collect();
            let started = std::time::Instant::now();
            kernels.run("k", &inputs, result, n, times);
            let ns = started.elapsed().as_secs_f64() * 1e9 / (times as f64 * n as f64);
            let (mut wrong, mut worst, mut worst_at, mut off) = (0, 0, Vec::new(), 0);
            for seed in 0..rounds {
                let inputs = pairs(ty, arity, n, seed);
                let operands = inputs.clone();
                let found = against_interpreter(&case, &kernels, (&module, root), inputs);
                (wrong, off) = (wrong + found.0, off + found.3);
                if found.1 > worst {
                    (worst, worst_at) =
                        (found.1, operands.iter().map(|b| real(ty, bits(b, found.2))).collect());
                }
            }
            println!(
                "{cpu} {opcode} {ty}: {worst} ulp (at {worst_at:?}), {wrong} wrong, {:.2}% off; {ns:.3} ns; compiled in {:.1} ms",
                100.0 * off as f64 / (rounds as f64 * n as f64),
                compiled.as_secs_f64() * 1e3
            );
        }
    }
}
