//! Products against the interpreter.

mod ahead;

use hlo::elided::splitmix64;
use hlo::num_complex::Complex;
use hlo::{Buffer, BufferOf, ElementType, Module, TypeClass, with_buffer, with_element_type};
use hlo_arithmetic::scalar::{Carrier, Scalar};
use hlo_interp::{Interpreter, Options, Tensor, Value};
use hlo_library_base::Call;
use hlo_library_base::Operation as _;
use hlo_library_base::pool::Pool;

use crate::Contraction;

/// Small deterministic random numbers (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        let drawn = splitmix64(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        drawn
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// In -1..1, sometimes 0.
    fn real(&mut self) -> f64 {
        if self.below(16) == 0 { 0.0 } else { self.bits() as i64 as f64 / 2f64.powi(63) }
    }
}

/// What floats an operand holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Floats {
    /// Numbers between -1 and 1.
    Plain,
    /// Numbers near the smallest of the type.
    Tiny,
    /// Infinities and NaN among them.
    Special,
}

/// A tensor of random elements.
pub(crate) fn random(ty: ElementType, dims: &[usize], floats: Floats, r: &mut Random) -> Tensor {
    fn of<T: Scalar + BufferOf>(n: usize, floats: Floats, r: &mut Random) -> Buffer {
        let one = |r: &mut Random| match (T::TYPE.class(), floats) {
            (TypeClass::Pred | TypeClass::Signed | TypeClass::Unsigned, _) => {
                (r.bits() as i64).into_scalar::<T>()
            }
            (TypeClass::Float | TypeClass::Complex, Floats::Special) if r.below(40) == 0 => {
                [f64::INFINITY, f64::NEG_INFINITY, f64::NAN][r.below(3)].into_scalar::<T>()
            }
            (TypeClass::Float, Floats::Tiny) => {
                let scale = if T::TYPE == ElementType::F64 { 2f64.powi(-540) } else { 2f64.powi(-70) };
                let scale = if r.below(4) == 0 { scale * scale } else { scale };
                (r.real() * scale).into_scalar::<T>()
            }
            (TypeClass::Float, Floats::Plain | Floats::Special) => r.real().into_scalar::<T>(),
            (TypeClass::Complex, _) => Complex::new(r.real(), r.real()).into_scalar::<T>(),
        };
        T::wrap((0..n).map(|_| one(r)).collect())
    }
    let buffer = with_element_type!(ty, T => of::<T>(dims.iter().product(), floats, r));
    Tensor::new(dims.iter().map(|&d| d as i64).collect::<hlo::Dims>(), buffer)
}

pub(crate) fn parse(text: &str) -> Module {
    let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
    let module = parsed.module.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics));
    let found = hlo::verify::verify(&module);
    assert!(!found.has_errors(), "{text}: {found:?}");
    module
}

pub(crate) fn interpret(module: &Module, args: &[Tensor]) -> Tensor {
    let interpreter = Interpreter::new(module, Options::default());
    interpreter.run(args.iter().cloned().map(Value::Array).collect()).unwrap().into_array()
}

fn pointer(buffer: &Buffer) -> *mut u8 {
    with_buffer!(buffer, v => v.as_ptr().cast_mut().cast())
}

/// Runs the root of the entry, whose operands are its parameters in order, natively; if it reports finished
/// rows, also which the epilogue was called for.
pub(crate) fn run(module: &Module, args: &[Tensor], threads: usize, reports: bool) -> Tensor {
    run_prepared(module, args, threads, reports, false).expect("nothing to be prepared")
}

/// The same with the right operand packed ahead, if `ahead`: `None` if nothing would be gained.
pub(crate) fn run_prepared(
    module: &Module,
    args: &[Tensor],
    threads: usize,
    reports: bool,
    ahead: bool,
) -> Option<Tensor> {
    let root = module.root(module.entry());
    let op = Contraction::of(module, root).expect("a library call").unwrap();
    let shape = module.instr(root).shape.expect_array();
    let out = Buffer::zeros(shape.element_type, shape.elements());
    let mut arguments: Vec<*mut u8> = args.iter().map(|x| pointer(x.buffer())).collect();
    arguments.push(pointer(&out));
    let mut scratch = vec![0u64; op.scratch_bytes() as usize / 8 + 9];
    scratch.fill(0xffff_ffff_ffff_ffff);
    let aligned = scratch.as_mut_ptr().cast::<u8>();
    // SAFETY: the vector has 64 bytes more than are needed.
    let aligned = unsafe { aligned.add(aligned.align_offset(64)) };
    let rows = shape.elements() / shape.dims.last().map_or(1, |&d| d.max(1) as usize);
    let seen: Vec<std::sync::atomic::AtomicU32> = (0..rows).map(|_| Default::default()).collect();
    let epilogue = |first: u64, end: u64| {
        for row in first..end {
            seen[row as usize].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let pool = std::sync::Arc::new(Pool::new(threads));
    let bytes = if ahead { op.prepared_bytes(&[false, true])? as usize } else { 0 };
    let mut packed = vec![0xffff_ffff_ffff_ffffu64; bytes / 8 + 9];
    let to = packed.as_mut_ptr().cast::<u8>();
    // SAFETY: the vector has 64 bytes more than are needed.
    let to = unsafe { to.add(to.align_offset(64)) };
    let mut hidden = Vec::new();
    if ahead {
        let given: Vec<*const u8> = arguments.iter().map(|p| p.cast_const()).collect();
        // SAFETY: all arrays are those of the instruction; there is space for what is packed.
        if unsafe { op.prepare(&given, to, &pool) } == hlo_library_base::Prepared::Instead {
            // What nothing reads may be anything.
            let right = args[1].buffer();
            hidden
                .resize(right.len() * right.element_type().storage_bytes() / 8 + 1, 0x7fc1_7fc1_7fc1_7fc1u64);
            arguments[1] = hidden.as_mut_ptr().cast();
        }
    }
    let call = Call {
        arguments: &arguments,
        scratch: aligned,
        regions: &[],
        epilogue: if reports { Some(&epilogue) } else { None },
        prepared: if ahead { to } else { std::ptr::null() },
        pool: &pool,
    };
    // SAFETY: all arrays are those of the instruction.
    unsafe { op.run(call) };
    if reports && shape.elements() > 0 {
        assert!(
            seen.iter().all(|n| n.load(std::sync::atomic::Ordering::Relaxed) == 1),
            "each row once: {seen:?}"
        );
    }
    Some(Tensor::new(shape.dims.clone(), out))
}

/// Values as pairs of floats, integers as they are.
fn values(x: &Tensor) -> Vec<Complex<f64>> {
    fn of<T: Scalar>(v: &[T]) -> Vec<Complex<f64>> {
        v.iter().map(|&x| x.carrier().into_scalar::<Complex<f64>>()).collect()
    }
    with_buffer!(x.buffer(), v => of(v))
}

/// How large the elements are.
pub(crate) fn magnitudes(x: &Tensor) -> Tensor {
    let v: Vec<f64> = values(x).iter().map(|x| x.re.abs() + x.im.abs()).collect();
    Tensor::from_vec(x.dims(), v)
}

/// The unit in the last place of a type relative to its number, and its smallest number.
fn precision(ty: ElementType) -> (f64, f64) {
    fn of<T: Scalar>() -> (f64, f64) {
        let real = |x: T| x.carrier().into_scalar::<Complex<f64>>().re;
        let round = |x: f64| real(x.into_scalar::<T>());
        let (mut unit, mut smallest) = (1.0, 1.0);
        while round(1.0 + unit / 2.0) > 1.0 {
            unit /= 2.0;
        }
        while round(smallest / 2.0) > 0.0 && smallest > 1e-300 {
            smallest /= 2.0;
        }
        (unit, smallest)
    }
    with_element_type!(ty, T => of::<T>())
}

/// Compares with the interpreter: integers exactly, floats within what the order of `terms` terms can change.
pub(crate) fn check(text: &str, args: &[Tensor], terms: usize, magnitude: impl Fn() -> Tensor) {
    let module = parse(text);
    let expected = interpret(&module, args);
    let got = run(&module, args, 1, true);
    for (threads, reports) in [(2, true), (2, false), (3, false)] {
        assert!(run(&module, args, threads, reports).buffer() == got.buffer(), "threads: {text}");
    }
    let ty = expected.element_type();
    let float_sums = args.iter().take(2).all(|x| x.element_type().is_float());
    if !(ty.is_float() || ty.is_complex() || float_sums) || ty == ElementType::Pred {
        assert!(got.buffer() == expected.buffer(), "{text}\n{got:?}\n{expected:?}");
        return;
    }
    let wide = args.iter().take(2).any(|x| x.element_type() == ElementType::F64)
        || ty == ElementType::F64
        || ty == ElementType::C128;
    let unit = if wide { 2f64.powi(-53) } else { 2f64.powi(-24) };
    let under = if wide { 0.0 } else { 2f64.powi(-149) };
    let (last, smallest) = if ty.is_integer() { (0.0, 1.0) } else { precision(ty.real_part()) };
    let magnitudes = values(&magnitude());
    for (i, ((e, g), s)) in values(&expected).into_iter().zip(values(&got)).zip(magnitudes).enumerate() {
        let bound = (terms + 2) as f64 * (unit * s.re + under);
        for (e, g) in [(e.re, g.re), (e.im, g.im)] {
            let bound = bound + (e.abs() + bound) * last + smallest;
            let same = e == g || e.is_nan() && g.is_nan() || (e - g).abs() <= bound;
            // Overflow of a sum near the end of the type's range is rounding, too.
            let overflow = s.re * 1.01 >= 3e38 && !wide;
            assert!(
                same || overflow,
                "{text}\nelement {i}: {g:e}, expected {e:e} within {bound:e} (magnitude {s})"
            );
        }
    }
}

/// A dot of two operands with random dimensions.
pub(crate) struct Case {
    lhs: Vec<usize>,
    rhs: Vec<usize>,
    out: Vec<usize>,
    attrs: String,
    terms: usize,
}

fn shape(ty: &str, dims: &[usize]) -> String {
    let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
    format!("{ty}[{}]", dims.join(","))
}

impl Case {
    /// Batch, free and contracting dimensions in a random order.
    fn random(r: &mut Random, largest: usize) -> Case {
        let mut list = |most: usize, largest: usize| -> Vec<usize> {
            (0..r.below(most + 1)).map(|_| 1 + r.below(largest)).collect()
        };
        let (batch, contracting) = (list(2, 3), list(2, largest));
        let (left, right) = (list(2, largest), list(2, largest));
        let mut dims_of = |free: &[usize]| {
            let mut dims: Vec<(usize, usize, usize)> = Vec::new();
            dims.extend(batch.iter().enumerate().map(|(i, &n)| (0, i, n)));
            dims.extend(contracting.iter().enumerate().map(|(i, &n)| (1, i, n)));
            let rest: Vec<_> = free.iter().enumerate().map(|(i, &n)| (2, i, n)).collect();
            // Free dimensions keep their order, the others go anywhere.
            for i in (1..dims.len()).rev() {
                dims.swap(i, r.below(i + 1));
            }
            let mut at = 0;
            for d in rest {
                at += r.below(dims.len() + 1 - at);
                dims.insert(at, d);
                at += 1;
            }
            dims
        };
        let (l, rr) = (dims_of(&left), dims_of(&right));
        let find = |dims: &[(usize, usize, usize)], kind: usize, count: usize| -> String {
            let at: Vec<String> = (0..count)
                .map(|i| dims.iter().position(|&(k, j, _)| (k, j) == (kind, i)).unwrap().to_string())
                .collect();
            at.join(",")
        };
        let attrs = format!(
            "lhs_batch_dims={{{}}}, lhs_contracting_dims={{{}}}, rhs_batch_dims={{{}}}, rhs_contracting_dims={{{}}}",
            find(&l, 0, batch.len()),
            find(&l, 1, contracting.len()),
            find(&rr, 0, batch.len()),
            find(&rr, 1, contracting.len())
        );
        let sizes = |dims: &[(usize, usize, usize)]| dims.iter().map(|d| d.2).collect();
        Case {
            lhs: sizes(&l),
            rhs: sizes(&rr),
            out: [&batch[..], &left, &right].concat(),
            attrs,
            terms: contracting.iter().product(),
        }
    }

    /// `[m,k] x [k,n]`.
    fn matrices(m: usize, k: usize, n: usize) -> Case {
        let attrs = "lhs_contracting_dims={1}, rhs_contracting_dims={0}".into();
        Case { lhs: vec![m, k], rhs: vec![k, n], out: vec![m, n], attrs, terms: k }
    }

    /// The same product of both operands transposed.
    fn transposed(m: usize, k: usize, n: usize) -> Case {
        let attrs = "lhs_contracting_dims={0}, rhs_contracting_dims={1}".into();
        Case { lhs: vec![k, m], rhs: vec![n, k], out: vec![m, n], attrs, terms: k }
    }

    fn text(&self, lhs: &str, rhs: &str, out: &str) -> String {
        let (l, r, o) = (shape(lhs, &self.lhs), shape(rhs, &self.rhs), shape(out, &self.out));
        format!(
            "HloModule m\n\nENTRY e {{\n  a = {l} parameter(0)\n  b = {r} parameter(1)\n  ROOT d = {o} dot(a, b), {}\n}}\n",
            self.attrs
        )
    }

    fn check(&self, lhs: ElementType, rhs: ElementType, out: ElementType, floats: Floats, r: &mut Random) {
        let args = [random(lhs, &self.lhs, floats, r), random(rhs, &self.rhs, floats, r)];
        check(&self.text(lhs.name(), rhs.name(), out.name()), &args, self.terms, || {
            interpret(&parse(&self.text("f64", "f64", "f64")), &[magnitudes(&args[0]), magnitudes(&args[1])])
        });
    }
}

#[test]
fn all_pairs_of_types() {
    let mut r = Random(1);
    for &lhs in ElementType::ALL {
        for &rhs in ElementType::ALL {
            let result = ElementType::ALL[r.below(ElementType::ALL.len())];
            for out in [lhs, result] {
                Case::random(&mut r, 5).check(lhs, rhs, out, Floats::Plain, &mut r);
            }
        }
    }
}

#[test]
fn random_dimensions() {
    use ElementType::*;
    let mut r = Random(2);
    for (lhs, rhs, out) in [
        (F32, F32, F32),
        (F64, F64, F64),
        (C64, C64, C64),
        (C128, C128, C128),
        (BF16, BF16, F32),
        (BF16, BF16, BF16),
        (F16, F16, F16),
        (S8, S8, S32),
        (U8, U8, U8),
        (S32, S32, S32),
        (S64, S64, S64),
        (F8E4M3FN, F8E4M3FN, BF16),
    ] {
        for i in 0..12 {
            let floats = [Floats::Plain, Floats::Tiny, Floats::Special][i % 3];
            Case::random(&mut r, 9).check(lhs, rhs, out, floats, &mut r);
        }
    }
}

#[test]
fn matrices() {
    use ElementType::*;
    let mut r = Random(3);
    for (m, k, n) in [
        (1, 1, 1),
        (0, 3, 4),
        (3, 0, 4),
        (3, 4, 0),
        (1, 300, 70),
        (70, 300, 1),
        (5, 64, 64),
        (16, 128, 100),
        (33, 17, 65),
        (64, 64, 64),
        (100, 600, 40),
        (130, 50, 130),
    ] {
        for (ty, out) in [(F32, F32), (F64, F64), (BF16, F32), (S8, S32), (C64, C64)] {
            for floats in [Floats::Plain, Floats::Tiny] {
                Case::matrices(m, k, n).check(ty, ty, out, floats, &mut r);
            }
        }
    }
}

/// Signed and unsigned bytes, four at a time, with and without rests.
#[test]
fn bytes() {
    use ElementType::*;
    let mut r = Random(10);
    for (m, k, n) in [(8, 16, 16), (13, 67, 33), (30, 260, 40), (200, 2200, 65)] {
        for (lhs, rhs, out) in [(S8, S8, S32), (U8, U8, S32), (S8, U8, S32), (U8, S8, S16), (S8, S8, S8)] {
            Case::matrices(m, k, n).check(lhs, rhs, out, Floats::Plain, &mut r);
            let attrs = "lhs_contracting_dims={1}, rhs_contracting_dims={1}".into();
            let transposed = Case { lhs: vec![m, k], rhs: vec![n, k], out: vec![m, n], attrs, terms: k };
            transposed.check(lhs, rhs, out, Floats::Plain, &mut r);
        }
    }
}

/// Several blocks of terms and of columns; rows that begin at the same offset in a page.
#[test]
fn blocks() {
    use ElementType::*;
    let mut r = Random(9);
    for (i, (m, k, n)) in
        [(200, 600, 60), (210, 1024, 70), (25, 1100, 130), (40, 1030, 260)].into_iter().enumerate()
    {
        // Each of the two kinds of blocks (many rows, many columns) meets all types, each size half of them.
        let types = [(F32, F32), (F32, BF16), (BF16, F32), (BF16, BF16), (S16, S32), (S8, S32)];
        for &(ty, out) in types.iter().skip(i % 2).step_by(2) {
            let floats = [Floats::Plain, Floats::Tiny][r.below(2)];
            Case::matrices(m, k, n).check(ty, ty, out, floats, &mut r);
            Case::transposed(m, k, n).check(ty, ty, out, floats, &mut r);
        }
    }
}

/// Few rows by a matrix that comes from memory, of columns and terms that are no multiples of anything.
#[test]
fn few_rows_by_much() {
    use ElementType::*;
    let mut r = Random(13);
    for (i, (m, k, n)) in
        [(3, 517, 1030), (24, 515, 777), (25, 300, 900), (8, 1024, 1040)].into_iter().enumerate()
    {
        let types = [(F32, F32), (F32, BF16), (BF16, F32), (S32, S32), (C64, C64)];
        for &(ty, out) in types.iter().skip(i % 2).step_by(2) {
            Case::matrices(m, k, n).check(ty, ty, out, Floats::Plain, &mut r);
        }
    }
}

/// Rows that begin at the same offsets in pages, of elements of four and of eight bytes, and those of a few
/// more columns, which do not.
#[test]
fn rows_that_collide() {
    use ElementType::*;
    let mut r = Random(29);
    for (m, k, n) in [
        (2, 37, 512),
        (4, 33, 512),
        (3, 20, 1024),
        (6, 17, 1024),
        (7, 17, 1024),
        (5, 19, 1030),
        (40, 400, 256),
    ] {
        for (ty, out) in [(F32, F32), (F32, BF16), (BF16, F32), (S32, S32), (C64, C64), (F64, F64)] {
            Case::matrices(m, k, n).check(ty, ty, out, Floats::Plain, &mut r);
        }
    }
    // Panels of few columns: rows of a matrix are those of a batch apart.
    for (batch, m, k, n, ty) in [(64, 8, 37, 20, F32), (32, 13, 9, 4, F64), (32, 7, 20, 27, F32)] {
        let attrs =
            "lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={0}"
                .into();
        let case =
            Case { lhs: vec![batch, m, k], rhs: vec![k, batch, n], out: vec![batch, m, n], attrs, terms: k };
        case.check(ty, ty, ty, Floats::Plain, &mut r);
    }
}

/// Terms of which a thread cannot keep all words of a few columns, for results that are rounded once.
#[test]
fn long_rows() {
    let mut r = Random(11);
    Case::matrices(26, 17000, 20).check(
        ElementType::F32,
        ElementType::F32,
        ElementType::BF16,
        Floats::Plain,
        &mut r,
    );
}

/// Terms that are divided into parts, and what is left of them.
#[test]
fn many_terms() {
    use ElementType::*;
    let mut r = Random(12);
    for (i, (m, k, n)) in
        [(33, 20011, 17), (2, 1 << 20, 8), (5, 65_536, 64), (64, 8192 + 24, 90)].into_iter().enumerate()
    {
        let types = [(F32, F32), (F32, BF16), (F16, F32)];
        for &(ty, out) in types.iter().skip(i % 2).step_by(2) {
            Case::matrices(m, k, n).check(ty, ty, out, Floats::Plain, &mut r);
            Case::transposed(m, k, n).check(ty, ty, out, Floats::Plain, &mut r);
        }
    }
}

#[test]
fn vectors_and_pairs() {
    use ElementType::*;
    let mut r = Random(4);
    for (m, k, n) in
        [(1, 3000, 70), (70, 3000, 1), (1, 40, 5000), (3, 9000, 1), (1, 40000, 1), (40, 100, 50), (9, 33, 16)]
    {
        for (ty, out) in [(F32, F32), (BF16, F32), (BF16, BF16), (S8, S32), (U8, S32), (S16, S32), (S8, S8)] {
            let floats = if ty == BF16 {
                [Floats::Plain, Floats::Tiny, Floats::Special][r.below(3)]
            } else {
                Floats::Plain
            };
            Case::matrices(m, k, n).check(ty, ty, out, floats, &mut r);
            Case::transposed(m, k, n).check(ty, ty, out, floats, &mut r);
        }
    }
}

#[test]
fn matrices_and_vectors_of_all_types() {
    use ElementType::*;
    let mut r = Random(8);
    for (batch, rows, k) in [
        (1, 45, 517),
        (1, 3, 9000),
        (3, 37, 130),
        (20, 5, 200),
        (1, 2055, 4),
        (1, 411, 20),
        (2, 203, 33),
        (1, 131, 127),
    ] {
        for (lhs, rhs, out) in [
            (F32, F32, F32),
            (BF16, BF16, F32),
            (BF16, F32, BF16),
            (F16, F16, F16),
            (F64, F64, F64),
            (F64, F32, F64),
            (S32, S32, S32),
            (U32, U32, U32),
            (S16, S16, S32),
            (S8, S8, S32),
            (U8, S8, S8),
        ] {
            let floats = [Floats::Plain, Floats::Tiny, Floats::Special][r.below(3)];
            // The matrix is on the left or on the right, its terms contiguous or its rows.
            for (matrix, terms) in [(vec![batch, rows, k], 2), (vec![batch, k, rows], 1)] {
                let (vector, out_dims) = (vec![batch, k], vec![batch, rows]);
                let sides = |left: usize, right: usize| {
                    format!(
                        "lhs_batch_dims={{0}}, lhs_contracting_dims={{{left}}}, rhs_batch_dims={{0}}, rhs_contracting_dims={{{right}}}"
                    )
                };
                let left = Case {
                    lhs: matrix.clone(),
                    rhs: vector.clone(),
                    out: out_dims.clone(),
                    attrs: sides(terms, 1),
                    terms: k,
                };
                left.check(lhs, rhs, out, floats, &mut r);
                let right =
                    Case { lhs: vector, rhs: matrix, out: out_dims, attrs: sides(1, terms), terms: k };
                right.check(rhs, lhs, out, floats, &mut r);
            }
        }
    }
}

/// A matrix whose terms are contiguous, as the left and as the right operand, and two to seventeen vectors
/// that lie either way.
#[test]
fn matrices_and_few_vectors() {
    use ElementType::*;
    let mut r = Random(9);
    let types = [(F32, F32, F32), (BF16, BF16, BF16), (BF16, F32, F32), (F32, BF16, BF16), (F16, F16, F16)];
    let integers = [(S8, S8, S32), (U8, S8, S32), (S16, U8, S32), (S8, U8, S8), (S16, S16, S16)];
    for (i, vectors) in (2..=17).enumerate() {
        let (batch, rows, k) = [(1, 131, 517), (2, 33, 260), (1, 57, 1300), (1, 32, 256)][i % 4];
        let layouts = [(vec![batch, k, vectors], 1), (vec![batch, vectors, k], 2)];
        let of = [types[i % types.len()], integers[i % integers.len()]];
        for ((x, x_terms), (lhs, rhs, out)) in layouts.into_iter().flat_map(|x| of.map(|of| (x.clone(), of)))
        {
            let matrix = vec![batch, rows, k];
            let sides = |left: usize, right: usize| {
                format!(
                    "lhs_batch_dims={{0}}, lhs_contracting_dims={{{left}}}, rhs_batch_dims={{0}}, rhs_contracting_dims={{{right}}}"
                )
            };
            let floats = [Floats::Plain, Floats::Tiny, Floats::Special][r.below(3)];
            let left = Case {
                lhs: matrix.clone(),
                rhs: x.clone(),
                out: vec![batch, rows, vectors],
                attrs: sides(2, x_terms),
                terms: k,
            };
            left.check(lhs, rhs, out, floats, &mut r);
            let out_dims = vec![batch, vectors, rows];
            let right = Case { lhs: x, rhs: matrix, out: out_dims, attrs: sides(x_terms, 2), terms: k };
            right.check(rhs, lhs, out, floats, &mut r);
        }
    }
}

/// Many small matrices, with contiguous rows or terms of either operand.
#[test]
fn little_matrices() {
    use ElementType::*;
    let mut r = Random(9);
    for (batch, m, n, k) in [
        (9, 3, 3, 3),
        (40, 4, 4, 32),
        (8, 5, 17, 7),
        (17, 1, 5, 9),
        (12, 7, 1, 33),
        (33, 9, 2, 1),
        (11, 2, 64, 16),
        (10, 6, 65, 3),
        (2000, 2, 3, 5),
        (301, 1, 1, 3),
        (200, 1, 1, 8),
        (103, 1, 1, 16),
        (50, 1, 1, 37),
        (41, 5, 1, 5),
        (41, 5, 1, 20),
        (33, 16, 1, 16),
        (600, 1, 6, 40),
        (31, 3, 20, 4),
        (29, 4, 2, 3),
        (28, 9, 3, 2),
        (9, 2, 33, 6),
        (0, 1, 1, 9),
        (0, 4, 4, 32),
        (0, 5, 17, 7),
    ] {
        for (left, right) in [(2, 1), (2, 2), (1, 1), (1, 2)] {
            let dims = |rows: usize, terms: usize| {
                if terms == 2 { vec![batch, rows, k] } else { vec![batch, k, rows] }
            };
            let case = Case {
                lhs: dims(m, left),
                rhs: dims(n, right),
                out: vec![batch, m, n],
                attrs: format!(
                    "lhs_batch_dims={{0}}, lhs_contracting_dims={{{left}}}, rhs_batch_dims={{0}}, rhs_contracting_dims={{{right}}}"
                ),
                terms: k,
            };
            for floats in [Floats::Plain, Floats::Tiny, Floats::Special] {
                case.check(F32, F32, F32, floats, &mut r);
            }
            for ty in [F64, S32, U32, S64, U64, C64, C128] {
                case.check(ty, ty, ty, Floats::Plain, &mut r);
            }
            for (lhs, rhs, out) in
                [(S8, S8, S32), (U8, S8, S32), (S16, U16, U32), (S32, S8, S32), (S16, S16, S16)]
            {
                case.check(lhs, rhs, out, Floats::Plain, &mut r);
            }
        }
    }
}

/// Terms of two dimensions (traces of products), and batches in the last dimension of an operand, or of both.
#[test]
fn little_matrices_that_lie_in_other_ways() {
    use ElementType::*;
    let mut r = Random(10);
    for (lhs, rhs, out, terms, attrs) in [
        (vec![40, 3, 5], vec![40, 5, 3], vec![40], 15, ("0", "1,2", "0", "2,1")),
        (vec![9, 2, 3, 2], vec![3, 2, 9, 4], vec![9, 2, 4], 6, ("0", "3,2", "2", "1,0")),
        (vec![103, 4], vec![4, 4, 103], vec![103, 4], 4, ("0", "1", "2", "1")),
        (vec![5, 3, 40], vec![2, 5, 40], vec![40, 3, 2], 5, ("2", "0", "2", "1")),
        (vec![7, 20, 3], vec![20, 7, 2], vec![20, 3, 2], 7, ("1", "0", "0", "1")),
        (vec![3, 64, 17], vec![17, 64, 5], vec![17, 3, 5], 64, ("2", "1", "0", "1")),
        (vec![6, 9, 21], vec![21, 9], vec![21, 6], 9, ("2", "1", "0", "1")),
    ] {
        let (left, left_terms, right, right_terms) = attrs;
        let attrs = format!(
            "lhs_batch_dims={{{left}}}, lhs_contracting_dims={{{left_terms}}}, rhs_batch_dims={{{right}}}, rhs_contracting_dims={{{right_terms}}}"
        );
        for floats in [Floats::Plain, Floats::Tiny, Floats::Special] {
            let case =
                Case { lhs: lhs.clone(), rhs: rhs.clone(), out: out.clone(), attrs: attrs.clone(), terms };
            case.check(F32, F32, F32, floats, &mut r);
        }
    }
}

/// Small integers as floats: every sum is exact.
fn integers(dims: &[usize], r: &mut Random) -> Tensor {
    let n = dims.iter().product();
    let v: Vec<f32> = (0..n).map(|_| r.below(17) as f32 - 8.0).collect();
    Tensor::from_vec(dims.iter().map(|&d| d as i64).collect::<hlo::Dims>(), v)
}

#[test]
fn ragged() {
    let mut r = Random(5);
    for (lhs, rhs, list, out, attrs) in [
        (
            &[11, 5][..],
            &[3, 5, 4][..],
            &[3][..],
            "11,4",
            "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}",
        ),
        (
            &[11, 5],
            &[11, 4],
            &[3],
            "3,5,4",
            "lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}",
        ),
        (
            &[4, 3, 5],
            &[4, 5, 2],
            &[2],
            "4,3,2",
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0}",
        ),
        (
            &[2, 11, 3, 5],
            &[2, 3, 5, 4],
            &[2, 3],
            "2,11,3,4",
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={3}, rhs_contracting_dims={2}, lhs_ragged_dims={1}, rhs_group_dims={1}",
        ),
        (
            &[2, 3, 11, 5],
            &[2, 3, 5, 4],
            &[2, 3, 3],
            "2,3,11,4",
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={3}, rhs_contracting_dims={2}, lhs_ragged_dims={2}, rhs_group_dims={1}",
        ),
        (
            &[2, 11, 6, 5],
            &[2, 6, 11, 4],
            &[2, 3],
            "3,2,5,4",
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1,2}, rhs_contracting_dims={2,1}, lhs_ragged_dims={1}",
        ),
    ] {
        let (l, rr, g) = (shape("f32", lhs), shape("f32", rhs), shape("s32", list));
        let text = format!(
            "HloModule m\n\nENTRY e {{\n  a = {l} parameter(0)\n  b = {rr} parameter(1)\n  c = {g} parameter(2)\n  ROOT d = f32[{out}] ragged-dot(a, b, c), {attrs}\n}}\n"
        );
        for largest in [4, 9] {
            let sizes: Vec<i32> = (0..list.iter().product()).map(|_| r.below(largest) as i32).collect();
            let sizes = Tensor::from_vec(list.iter().map(|&d| d as i64).collect::<hlo::Dims>(), sizes);
            let args = [integers(lhs, &mut r), integers(rhs, &mut r), sizes];
            let module = parse(&text);
            let expected = interpret(&module, &args);
            for threads in [1, 3] {
                assert!(run(&module, &args, threads, true).buffer() == expected.buffer(), "{text}");
            }
        }
    }
}

#[test]
fn scaled() {
    let mut r = Random(6);
    let text = "HloModule m\n\nENTRY e {\n  a = f32[6,8] parameter(0)\n  b = f32[8,5] parameter(1)\n  s = f32[6,2] parameter(2)\n  t = f32[4,5] parameter(3)\n  ROOT d = f32[6,5] scaled-dot(a, b, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n";
    let args: Vec<Tensor> =
        [[6, 8], [8, 5], [6, 2], [4, 5]].iter().map(|dims| integers(dims, &mut r)).collect();
    let module = parse(text);
    assert!(run(&module, &args, 2, true).buffer() == interpret(&module, &args).buffer());
}

#[test]
fn heroes_read_through_their_operands() {
    let mut r = Random(7);
    let text = "HloModule m

f {
  p = bf16[2,3,40] parameter(0)
  q = f32[7,50] parameter(1)
  w = f32[2,3,40] convert(p)
  t = f32[40,2,3] transpose(w), dimensions={2,0,1}
  a = f32[40,6] reshape(t)
  s = f32[7,40] slice(q), slice={[0:7], [5:45]}
  v = f32[7,40] reverse(s), dimensions={1}
  d = f32[6,7] dot(a, v), lhs_contracting_dims={0}, rhs_contracting_dims={1}
  ROOT n = f32[6,7] negate(d)
}

ENTRY e {
  p = bf16[2,3,40] parameter(0)
  q = f32[7,50] parameter(1)
  ROOT r = f32[6,7] fusion(p, q), kind=kOutput, calls=f
}
";
    let module = parse(text);
    let bits = |x: &Tensor| {
        Tensor::from_vec(x.dims(), x.slice::<f32>().iter().map(|&x| hlo::half::bf16::from_f32(x)).collect())
    };
    let args = [bits(&integers(&[2, 3, 40], &mut r)), integers(&[7, 50], &mut r)];
    let expected = interpret(&module, &args);
    let fused = module.find_computation("f").unwrap();
    let hero = module.instructions(fused).find(|&i| module.instr(i).opcode == hlo::Opcode::Dot).unwrap();
    let (op, parameters) = Contraction::of_hero(&module, hero).unwrap().unwrap();
    assert_eq!(parameters, [0, 1]);
    let mut out = [0f32; 42];
    let mut scratch = vec![0u64; op.scratch_bytes() as usize / 8 + 9];
    let aligned = scratch.as_mut_ptr().cast::<u8>();
    let arguments = [pointer(args[0].buffer()), pointer(args[1].buffer()), out.as_mut_ptr().cast()];
    // SAFETY: the vector has 64 bytes more than are needed; all arrays are those of the instruction.
    unsafe {
        let scratch = aligned.add(aligned.align_offset(64));
        op.run(Call {
            arguments: &arguments,
            scratch,
            regions: &[],
            epilogue: None,
            prepared: std::ptr::null(),
            pool: &std::sync::Arc::new(Pool::new(2)),
        });
    }
    let negated: Vec<f32> = out.iter().map(|x| -x).collect();
    assert_eq!(negated, expected.slice::<f32>());
}
