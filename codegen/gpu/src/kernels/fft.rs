//! Discrete Fourier transforms of all types and lengths, along one dimension after the other.
//!
//! A line of length `n = r1 * r2 * ...` is transformed by autosorting passes (Stockham). With `l` the product
//! of the factors done, `m = n / l`, and `f[j][k]` the transforms of length `l` of the subsequences of every
//! `m`-th element from `x[k]` on, a pass by the factor `r` is
//! `f'[j][k] = sum over t < r of w(l r)^(j t) * f[j mod l][k + t * m / r]`, for `j < l r` and `k < m / r`.
//! A thread computes one such element; `r` terms are summed in order, so a prime factor is a transform by the
//! definition. Lines that fit in shared memory are transformed by one launch, others by a launch a pass
//! through scratch memory. Roots of unity are rounded from f64: of short lines from a table, of others
//! products of two table entries in f64.

use hlo::attrs::{AttrKey, FftType};
use hlo::{ElementType, InstrId, Module};
use hlo_codegen::Unsupported;
use hlo_llvm::{Emit, IntPredicate, Prim, Result, Value};

use super::sort::aligned;
use super::threads::{block, strided, thread};
use super::{Unit, launch};
use crate::kernel::{Argument, Kernel, Stage};

/// Threads of a block.
const THREADS: u32 = 256;
/// Bytes of shared memory that a block takes for its lines, twice.
const MAX_BYTES: i64 = 16 << 10;
/// The largest factor of which terms are emitted one after the other.
const MAX_UNROLLED: i64 = 8;
/// The argument that is the scratch memory, behind operand and result.
const SCRATCH: u32 = 2;
/// Entries of the finer one of two tables of roots.
const FINE: i64 = 1024;
/// The largest length: two tables have that many roots.
const MAX_LENGTH: i64 = 1 << 22;

/// A complex number in registers.
type Number<'ctx> = [Value<'ctx>; 2];

/// The storage form of elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// Pairs.
    Complex,
    /// Numbers whose imaginary part is 0, of which only the real part is stored.
    Real,
    /// The first half of conjugate pairs, and one more.
    Half,
}

/// The layout of lines.
#[derive(Clone, Copy, Debug)]
struct Side {
    argument: u32,
    /// Bytes before the first element.
    offset: u64,
    form: Form,
    /// Distance of neighbours in a line.
    stride: i64,
}

impl Side {
    /// Elements of a line of `n` points that are in memory.
    fn len(&self, n: i64) -> i64 {
        if self.form == Form::Half { n / 2 + 1 } else { n }
    }
}

/// The transforms of one dimension.
#[derive(Clone, Copy, Debug)]
struct Lines {
    /// Points.
    n: i64,
    count: i64,
    inverse: bool,
    from: Side,
    to: Side,
}

/// The factors of a length, in the order of passes.
fn factors(n: i64) -> Vec<i64> {
    let (mut rest, mut factors) = (n, Vec::new());
    for factor in [8, 4, 2, 3, 5, 7] {
        while rest % factor == 0 {
            factors.push(factor);
            rest /= factor;
        }
    }
    let mut candidate = 11;
    while candidate * candidate <= rest {
        while rest % candidate == 0 {
            factors.push(candidate);
            rest /= candidate;
        }
        candidate += 2;
    }
    if rest > 1 || factors.is_empty() {
        factors.push(rest);
    }
    factors
}

/// `exp(-2 pi i k / n)`, correctly rounded but for the last bit: by the octant that the angle is in.
fn root(k: i64, n: i64) -> [f64; 2] {
    // The octant of the angle, and the remainder within it.
    let (octant, rest) = (8 * k / n, 8 * k % n);
    let angle = |part: i64| std::f64::consts::FRAC_PI_4 * (part as f64 / n as f64);
    let odd = octant % 2 == 1;
    let (sine, cosine) = angle(if odd { n - rest } else { rest }).sin_cos();
    let (cosine, sine) = match octant % 8 {
        0 => (cosine, sine),
        1 => (sine, cosine),
        2 => (-sine, cosine),
        3 => (-cosine, sine),
        4 => (-cosine, -sine),
        5 => (-sine, -cosine),
        6 => (sine, -cosine),
        _ => (cosine, -sine),
    };
    [cosine, -sine]
}

/// Roots of unity of an order as they are known in a kernel.
#[derive(Clone, Copy)]
enum Roots<'ctx> {
    /// All of them, in the type of the parts.
    All(Value<'ctx>),
    /// Those of the first numbers, and those of multiples of their count, in f64.
    Two { fine: Value<'ctx>, coarse: Value<'ctx> },
}

/// The state that kernels of a transform share.
struct Emitter<'a, 'u, 'ctx> {
    unit: &'a Unit<'u, 'ctx>,
    module: &'a Module,
    id: InstrId,
    arrays: u32,
    /// The type of parts.
    part: Prim,
}

impl<'ctx> Emitter<'_, '_, 'ctx> {
    fn part_bytes(&self) -> i64 {
        self.part.bytes() as i64
    }

    fn table(
        &self,
        e: &Emit<'_, 'ctx>,
        name: &str,
        prim: Prim,
        roots: impl Iterator<Item = [f64; 2]>,
    ) -> Result<Value<'ctx>> {
        let bits = |x: f64| match prim {
            Prim::F32 => u64::from((x as f32).to_bits()),
            _ => x.to_bits(),
        };
        let values: Vec<u64> = roots.flatten().map(bits).collect();
        Ok(e.constant_table(name, Prim::int(prim.bits()), &values)?.into())
    }

    fn roots(&self, e: &Emit<'_, 'ctx>, n: i64, all: bool) -> Result<Roots<'ctx>> {
        if all {
            let name = format!("roots.{n}.{}", self.part.bits());
            return Ok(Roots::All(self.table(e, &name, self.part, (0..n).map(|k| root(k, n)))?));
        }
        let fine = (0..FINE.min(n)).map(|k| root(k, n));
        let coarse = (0..n).step_by(FINE as usize).map(|k| root(k, n));
        Ok(Roots::Two {
            fine: self.table(e, &format!("roots.{n}.fine"), Prim::F64, fine)?,
            coarse: self.table(e, &format!("roots.{n}.coarse"), Prim::F64, coarse)?,
        })
    }

    /// The root of a number below the order, conjugated for inverse transforms.
    fn root(
        &self,
        e: &Emit<'_, 'ctx>,
        roots: Roots<'ctx>,
        number: Value<'ctx>,
        inverse: bool,
    ) -> Result<Number<'ctx>> {
        let entry = |table: Value<'ctx>, prim: Prim, at: Value<'ctx>| -> Result<Number<'ctx>> {
            let at = e.resize(at, Prim::I64, false)?;
            let bits = Prim::int(prim.bits());
            let address = e.address(table, e.mul(at, e.i64(2 * prim.bytes() as i64))?)?;
            let part = |n: u64| -> Result<Value<'ctx>> {
                let at = e.address_at(address, n * prim.bytes())?;
                e.bitcast(e.load_invariant(bits, at, prim.bytes() as u32)?, prim)
            };
            Ok([part(0)?, part(1)?])
        };
        let [re, im] = match roots {
            Roots::All(table) => entry(table, self.part, number)?,
            Roots::Two { fine, coarse } => {
                let count = e.int(e.prim_of(number), FINE as u64);
                let a = entry(fine, Prim::F64, e.urem(number, count)?)?;
                let b = entry(coarse, Prim::F64, e.udiv(number, count)?)?;
                let product = multiply_add(e, None, a, b)?;
                match self.part {
                    Prim::F32 => [e.fptrunc(product[0], Prim::F32)?, e.fptrunc(product[1], Prim::F32)?],
                    _ => product,
                }
            }
        };
        Ok([re, if inverse { e.fneg(im)? } else { im }])
    }

    fn address(
        &self,
        e: &Emit<'_, 'ctx>,
        base: Value<'ctx>,
        number: Value<'ctx>,
        parts: i64,
    ) -> Result<Value<'ctx>> {
        let number = e.resize(number, Prim::I64, false)?;
        e.address(base, e.mul(number, e.i64(parts * self.part_bytes()))?)
    }

    fn load_number(
        &self,
        e: &Emit<'_, 'ctx>,
        base: Value<'ctx>,
        number: Value<'ctx>,
    ) -> Result<Number<'ctx>> {
        let at = self.address(e, base, number, 2)?;
        let align = self.part.bytes() as u32;
        Ok([e.load(self.part, at, align)?, e.load(self.part, e.address_at(at, self.part.bytes())?, align)?])
    }

    fn store_number(
        &self,
        e: &Emit<'_, 'ctx>,
        base: Value<'ctx>,
        number: Value<'ctx>,
        x: Number<'ctx>,
    ) -> Result<()> {
        let at = self.address(e, base, number, 2)?;
        let align = self.part.bytes() as u32;
        e.store(x[0], at, align)?;
        e.store(x[1], e.address_at(at, self.part.bytes())?, align)?;
        Ok(())
    }

    /// The number of a point in memory: `i64`s.
    fn point_offset(
        &self,
        e: &Emit<'_, 'ctx>,
        side: &Side,
        n: i64,
        line: Value<'ctx>,
        point: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let stride = e.i64(side.stride);
        let (outer, inner) = (e.udiv(line, stride)?, e.urem(line, stride)?);
        let row = e.add(e.mul(outer, e.i64(side.len(n)))?, point)?;
        e.add(e.mul(row, stride)?, inner)
    }

    /// A point of a line in memory.
    fn read(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: &[Value<'ctx>],
        side: &Side,
        n: i64,
        line: Value<'ctx>,
        point: Value<'ctx>,
    ) -> Result<Number<'ctx>> {
        let base = e.address_at(arguments[side.argument as usize], side.offset)?;
        match side.form {
            Form::Complex => self.load_number(e, base, self.point_offset(e, side, n, line, point)?),
            Form::Real => {
                let at = self.address(e, base, self.point_offset(e, side, n, line, point)?, 1)?;
                Ok([e.load(self.part, at, self.part.bytes() as u32)?, e.float(self.part, 0.0)])
            }
            Form::Half => {
                let mirrored = e.icmp(IntPredicate::UGT, point, e.i64(n / 2))?;
                let there = e.select(mirrored, e.sub(e.i64(n), point)?, point)?;
                let [re, im] = self.load_number(e, base, self.point_offset(e, side, n, line, there)?)?;
                let im = e.select(mirrored, e.fneg(im)?, im)?;
                // The number at frequencies 0 and n/2 is real, whatever is stored.
                let first = e.icmp(IntPredicate::EQ, point, e.i64(0))?;
                let own_conjugate = e.icmp(IntPredicate::EQ, e.add(point, point)?, e.i64(n))?;
                Ok([re, e.select(e.or(first, own_conjugate)?, e.float(self.part, 0.0), im)?])
            }
        }
    }

    /// Stores a point of a line, if memory has it.
    #[expect(clippy::too_many_arguments, reason = "a point and where it goes")]
    fn write(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: &[Value<'ctx>],
        side: &Side,
        n: i64,
        line: Value<'ctx>,
        point: Value<'ctx>,
        x: Number<'ctx>,
    ) -> Result<()> {
        let base = e.address_at(arguments[side.argument as usize], side.offset)?;
        match side.form {
            Form::Complex => self.store_number(e, base, self.point_offset(e, side, n, line, point)?, x),
            Form::Real => {
                let at = self.address(e, base, self.point_offset(e, side, n, line, point)?, 1)?;
                e.store(x[0], at, self.part.bytes() as u32)?;
                Ok(())
            }
            Form::Half => {
                let there = e.icmp(IntPredicate::ULE, point, e.i64(n / 2))?;
                e.if_then(there, || {
                    self.store_number(e, base, self.point_offset(e, side, n, line, point)?, x)
                })
            }
        }
    }

    /// One element of a pass: `number` counts them, an `i32`, and `done` is the product of the factors
    /// before.
    fn element(
        &self,
        e: &Emit<'_, 'ctx>,
        roots: Roots<'ctx>,
        (n, done, factor): (i64, i64, i64),
        inverse: bool,
        number: Value<'ctx>,
        read: &dyn Fn(Value<'ctx>) -> Result<Number<'ctx>>,
    ) -> Result<Number<'ctx>> {
        let prim = e.prim_of(number);
        let int = |x: i64| e.int(prim, x.cast_unsigned());
        let behind = n / (done * factor);
        let (j, k) = (e.udiv(number, int(behind))?, e.urem(number, int(behind))?);
        let of = e.urem(j, int(done))?;
        let first = e.add(e.mul(of, int(behind * factor))?, k)?;
        // w(done * factor)^(j t) = w(n)^(j t behind).
        let step = e.mul(j, int(behind))?;
        let term = |t: Value<'ctx>, exponent: Value<'ctx>, sum: Number<'ctx>| -> Result<Number<'ctx>> {
            let x = read(e.add(first, e.mul(t, int(behind))?)?)?;
            let w = self.root(e, roots, exponent, inverse)?;
            multiply_add(e, Some(sum), x, w)
        };
        let mut sum = read(first)?;
        let next = |exponent: Value<'ctx>| -> Result<Value<'ctx>> {
            // Both are below n.
            let more = e.add(exponent, step)?;
            let over = e.icmp(IntPredicate::UGE, more, int(n))?;
            e.select(over, e.sub(more, int(n))?, more)
        };
        if factor <= MAX_UNROLLED {
            let mut exponent = int(0);
            for t in 1..factor {
                exponent = next(exponent)?;
                sum = term(int(t), exponent, sum)?;
            }
            return Ok(sum);
        }
        let state = [int(0), sum[0], sum[1]];
        let last = e.for_carried(int(1), int(factor), int(1), &state, |t, state| {
            let exponent = next(state[0])?;
            let sum = term(t, exponent, [state[1], state[2]])?;
            Ok(vec![exponent, sum[0], sum[1]])
        })?;
        Ok([last[1], last[2]])
    }

    /// Divided by the number of points, for inverse transforms.
    fn scaled(&self, e: &Emit<'_, 'ctx>, lines: &Lines, x: Number<'ctx>) -> Result<Number<'ctx>> {
        if !lines.inverse {
            return Ok(x);
        }
        let n = e.float(self.part, lines.n as f64);
        Ok([e.fdiv(x[0], n)?, e.fdiv(x[1], n)?])
    }

    fn launch(&self, kernel: &mut Kernel, symbol: String, blocks: i64) -> Result<()> {
        let arguments = (0..self.arrays).map(Argument::Array).collect();
        let launch = launch(self.module, self.id, &symbol, blocks, THREADS, arguments)?;
        kernel.stages.push(Stage::Launch(launch));
        Ok(())
    }

    /// Transforms lines that fit in shared memory, several in a block.
    fn shared(&self, kernel: &mut Kernel, symbol: String, lines: &Lines) -> Result<()> {
        let Lines { n, count, inverse, from, to } = *lines;
        let (e, arguments) = self.unit.begin(&symbol, self.arrays, 0, THREADS)?;
        let e = &e;
        let group = (2 * i64::from(THREADS) / n).clamp(1, count);
        let all = u32::try_from(group * n).unwrap_or(0);
        let roots = self.roots(e, n, true)?;
        let first = e.mul(block(e, Prim::I64)?, e.i64(group))?;
        let lane = thread(e, Prim::I32)?;
        let buffer = |name: &str| -> Result<Value<'ctx>> {
            let align = 2 * self.part.bytes() as u32;
            Ok(e.shared_array(&format!("{symbol}_{name}"), self.part, 2 * all, align)?.into())
        };
        let buffers = [buffer("even")?, buffer("odd")?];
        let points = e.i32(n as i32);
        // The line and the point of an element of the block, and whether there is such a line.
        let line_and_point = |at: Value<'ctx>| -> Result<(Value<'ctx>, Value<'ctx>, Value<'ctx>)> {
            let (own, point) = (e.udiv(at, points)?, e.urem(at, points)?);
            let line = e.add(first, e.zext(own, Prim::I64)?)?;
            let exists = e.icmp(IntPredicate::SLT, line, e.i64(count))?;
            Ok((line, e.zext(point, Prim::I64)?, exists))
        };
        strided(e, lane, THREADS, all, |at| {
            let (line, point, exists) = line_and_point(at)?;
            e.if_then(exists, || {
                let x = self.read(e, &arguments, &from, n, line, point)?;
                self.store_number(e, buffers[0], at, x)
            })
        })?;
        e.barrier()?;
        let factors = factors(n);
        let mut done = 1;
        for (pass, &factor) in factors.iter().enumerate() {
            let (source, target) = (buffers[pass % 2], buffers[(pass + 1) % 2]);
            let last = pass + 1 == factors.len();
            strided(e, lane, THREADS, all, |at| {
                let (line, point, exists) = line_and_point(at)?;
                e.if_then(exists, || {
                    let number = e.trunc(point, Prim::I32)?;
                    let begin = e.sub(at, number)?;
                    let read = |at: Value<'ctx>| self.load_number(e, source, e.add(begin, at)?);
                    let x = self.element(e, roots, (n, done, factor), inverse, number, &read)?;
                    match last {
                        true => {
                            let x = self.scaled(e, lines, x)?;
                            self.write(e, &arguments, &to, n, line, point, x)
                        }
                        false => self.store_number(e, target, at, x),
                    }
                })
            })?;
            if !last {
                e.barrier()?;
            }
            done *= factor;
        }
        e.return_void()?;
        self.launch(kernel, symbol, (count + group - 1) / group)
    }

    /// One pass over all lines, through memory.
    fn pass(
        &self,
        kernel: &mut Kernel,
        symbol: String,
        lines: &Lines,
        (done, factor): (i64, i64),
    ) -> Result<()> {
        let Lines { n, count, inverse, from, to } = *lines;
        let (e, arguments) = self.unit.begin(&symbol, self.arrays, 0, THREADS)?;
        let e = &e;
        let roots = self.roots(e, n, false)?;
        let first = e.mul(block(e, Prim::I64)?, e.i64(THREADS.into()))?;
        let number = e.add(first, thread(e, Prim::I64)?)?;
        let all = n * count;
        e.if_then(e.icmp(IntPredicate::SLT, number, e.i64(all))?, || {
            let (line, point) = (e.udiv(number, e.i64(n))?, e.urem(number, e.i64(n))?);
            let read = |at: Value<'ctx>| {
                let point = e.zext(at, Prim::I64)?;
                self.read(e, &arguments, &from, n, line, point)
            };
            let own = e.trunc(point, Prim::I32)?;
            let mut x = self.element(e, roots, (n, done, factor), inverse, own, &read)?;
            if done * factor == n {
                x = self.scaled(e, lines, x)?;
            }
            self.write(e, &arguments, &to, n, line, point, x)
        })?;
        e.return_void()?;
        self.launch(kernel, symbol, (all + i64::from(THREADS) - 1) / i64::from(THREADS))
    }
}

/// `sum + x * y`, each part by two fused operations.
fn multiply_add<'ctx>(
    e: &Emit<'_, 'ctx>,
    sum: Option<Number<'ctx>>,
    [a, b]: Number<'ctx>,
    [c, d]: Number<'ctx>,
) -> Result<Number<'ctx>> {
    let begin = |part: usize, x, y| match sum {
        Some(sum) => e.fma(x, y, sum[part]),
        None => e.fmul(x, y),
    };
    let (re, im) = (begin(0, a, c)?, begin(1, a, d)?);
    Ok([e.fma(e.fneg(b)?, d, re)?, e.fma(b, c, im)?])
}

/// Emits an `fft`.
pub(super) fn emit(unit: &Unit<'_, '_>, module: &Module, id: InstrId, symbol: &str) -> Result<Kernel> {
    let instr = module.instr(id);
    let refuse = |why: &str| Unsupported::new(module, id, why);
    let shapes = (module.instr(instr.operands()[0]).shape.as_array(), instr.shape.as_array());
    let (Some(x), Some(result)) = shapes else {
        return Err(refuse("a transform of what is no array").into());
    };
    let lengths = instr.attrs.ints_or_empty(AttrKey::FftLength);
    let kind = *instr.attrs.fft_type().ok_or_else(|| refuse("a transform of no type"))?;
    let complex = |s: &hlo::ArrayShape| s.element_type.is_complex();
    let forms = match kind {
        FftType::Fft | FftType::Ifft if complex(x) && complex(result) => (Form::Complex, Form::Complex),
        FftType::Rfft if !complex(x) && complex(result) => (Form::Real, Form::Half),
        FftType::Irfft if complex(x) && !complex(result) => (Form::Half, Form::Real),
        _ => return Err(refuse("a transform of such types").into()),
    };
    let part = match x.element_type {
        ElementType::F32 | ElementType::C64 => Prim::F32,
        ElementType::F64 | ElementType::C128 => Prim::F64,
        _ => return Err(refuse("a transform of such a type").into()),
    };
    if lengths.iter().any(|&n| n > MAX_LENGTH) {
        return Err(refuse(&format!("transforms of more than {MAX_LENGTH} points")).into());
    }
    let mut kernel = Kernel::default();
    if result.dims.contains(&0) {
        return Ok(kernel);
    }
    if x.dims.contains(&0) {
        return Err(refuse("a transform of nothing").into());
    }
    let inverse = matches!(kind, FftType::Ifft | FftType::Irfft);
    let outer = x.dims.len().saturating_sub(lengths.len());
    if lengths.is_empty() && forms.0 != forms.1 {
        return Err(refuse("a transform of no dimension between types").into());
    }
    if lengths.is_empty() {
        kernel.stages.push(Stage::Copy { from: 0, to: 1 });
        return Ok(kernel);
    }
    // Lines of real numbers first, or last where the result is real: the other dimensions are of complex
    // numbers.
    let mut order: Vec<usize> = (0..lengths.len()).rev().collect();
    if kind == FftType::Irfft {
        order.rotate_left(1);
    }
    // Intermediate results between dimensions are stored as halves are.
    let half: Vec<i64> = if kind == FftType::Rfft { &result.dims } else { &x.dims }.to_vec();
    let elements = |dims: &[i64]| dims.iter().product::<i64>();
    let full = elements(&x.dims).max(elements(&result.dims)).max(elements(&half));
    // Lines of real numbers have twice as many points as there are in memory of their half.
    let area = aligned((2 * full).unsigned_abs() * 2 * part.bytes());
    let scratch =
        |n: usize| Side { argument: SCRATCH, offset: n as u64 * area, form: Form::Complex, stride: 1 };
    let mut at = Side { argument: 0, offset: 0, form: Form::Complex, stride: 1 };
    let mut uses_scratch = false;
    let mut planned: Vec<(Lines, Option<(i64, i64)>)> = Vec::new();
    for (step, &d) in order.iter().enumerate() {
        let (n, dimension) = (lengths[d], outer + d);
        let innermost = d + 1 == lengths.len();
        let (from_form, to_form) = if innermost { forms } else { (Form::Complex, Form::Complex) };
        let stride = half[dimension + 1..].iter().product();
        let from = Side { stride, form: from_form, ..at };
        let to = match step + 1 == order.len() {
            true => Side { argument: 1, offset: 0, form: to_form, stride },
            false => Side { form: to_form, stride, ..scratch(step % 2) },
        };
        uses_scratch |= to.argument == SCRATCH;
        let lines = Lines { n, count: elements(&half) / half[dimension], inverse, from, to };
        at = to;
        if n <= MAX_BYTES / (2 * part.bytes() as i64) {
            planned.push((lines, None));
            continue;
        }
        let (mut done, mut source, factors) = (1, from, factors(n));
        for (pass, &factor) in factors.iter().enumerate() {
            // Scratch memory that neither this pass nor the one before uses.
            let target = if pass + 1 == factors.len() { to } else { scratch(2 + pass % 2) };
            uses_scratch |= target.argument == SCRATCH;
            planned.push((Lines { from: source, to: target, ..lines }, Some((done, factor))));
            (source, done) = (target, done * factor);
        }
    }
    if uses_scratch {
        kernel.scratch_bytes = 4 * area;
    }
    let emitter =
        Emitter { unit, module, id, arrays: if uses_scratch { SCRATCH + 1 } else { SCRATCH }, part };
    for (number, (lines, pass)) in planned.into_iter().enumerate() {
        let symbol = if number == 0 { symbol.to_owned() } else { format!("{symbol}_{number}") };
        match pass {
            None => emitter.shared(&mut kernel, symbol, &lines)?,
            Some(pass) => emitter.pass(&mut kernel, symbol, &lines, pass)?,
        }
    }
    Ok(kernel)
}
