//! Cholesky factorizations and triangular solves, in the element type's own arithmetic: one block per matrix,
//! column by column.
//!
//! Both are right-looking: as soon as a column is known, all threads update everything that depends on it.
//! Matrices stay in the memory of the result; a barrier separates a column from its updates. Conventions are
//! the interpreter's: of a factorization that fails all elements are NaN, except that `potrf` leaves the
//! columns from the failing step on as they were, and returns that step's number.

use hlo::attrs::{AttrKey, Transpose};
use hlo::elementwise::Binary;
use hlo::{ElementType, InstrId, Module, Opcode};
use hlo_library::lapack;
use hlo_library_base::Unsupported;
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Emit, Error, FloatPredicate, IntPredicate, Prim, Result, Value};

use super::threads::{block, thread};
use super::{Unit, launch};
use crate::code::{load, store};
use crate::kernel::{Argument, Kernel, Stage};

/// Threads of a block.
const THREADS: u32 = 256;
/// Threads along a side of the square that a block is where it updates a matrix.
const SIDE: i64 = 16;
/// Right-hand sides that a block solves together.
const SYSTEMS: i64 = 8;

/// Numbers of a type in an array.
#[derive(Clone, Copy)]
struct Matrix<'ctx> {
    ty: ElementType,
    base: Value<'ctx>,
}

impl<'ctx> Matrix<'ctx> {
    fn at(&self, e: &Emit<'_, 'ctx>, number: Value<'ctx>) -> Result<Value<'ctx>> {
        e.address(self.base, e.mul(number, e.i64(self.ty.storage_bytes() as i64))?)
    }

    fn get(&self, e: &Emit<'_, 'ctx>, number: Value<'ctx>) -> Result<Val<'ctx>> {
        load(e, self.ty, self.at(e, number)?)
    }

    fn set(&self, e: &Emit<'_, 'ctx>, number: Value<'ctx>, value: &Val<'ctx>) -> Result<()> {
        store(e, value, self.at(e, number)?)
    }
}

fn operation<'ctx>(e: &Emit<'_, 'ctx>, op: Binary, x: &Val<'ctx>, y: &Val<'ctx>) -> Result<Val<'ctx>> {
    let result = scalar::binary(e, op, x, y)?;
    result.ok_or_else(|| Error::Llvm(format!("no arithmetic of {}", x.ty())))
}

/// The conjugate; of a real number itself.
fn conjugate<'ctx>(e: &Emit<'_, 'ctx>, x: &Val<'ctx>) -> Result<Val<'ctx>> {
    match x.registers()[..] {
        [re, im] => Ok(Val::of_registers(x.ty(), &[re, e.fneg(im)?], false)),
        _ => Ok(*x),
    }
}

/// The real part as a number of the same type.
fn real<'ctx>(e: &Emit<'_, 'ctx>, x: &Val<'ctx>) -> Val<'ctx> {
    match x.registers()[..] {
        [re, _] => {
            let zero = e.float(e.prim_of(re), 0.0);
            Val::of_registers(x.ty(), &[re, zero], false)
        }
        _ => *x,
    }
}

/// `for i in first..end step`: `i64`s.
fn each<'ctx>(
    e: &Emit<'_, 'ctx>,
    first: Value<'ctx>,
    end: Value<'ctx>,
    step: i64,
    body: impl FnOnce(Value<'ctx>) -> Result<()>,
) -> Result<()> {
    e.for_range(first, end, e.i64(step), body)
}

/// Rows and columns of an operand's matrices, and how many there are.
fn sizes(module: &Module, of: InstrId) -> Option<(ElementType, i64, i64, i64)> {
    let shape = module.instr(of).shape.as_array()?;
    let [batch @ .., rows, columns] = &shape.dims[..] else { return None };
    let ty = shape.element_type;
    // Narrow floats would be rounded at each step.
    let wide = matches!(ty, ElementType::F32 | ElementType::F64 | ElementType::C64 | ElementType::C128);
    wide.then_some((ty, *rows, *columns, batch.iter().product()))
}

/// Emits a `cholesky`, or a call of `potrf`.
pub(super) fn cholesky<'ctx>(
    unit: &Unit<'_, 'ctx>,
    module: &Module,
    id: InstrId,
    symbol: &str,
) -> Result<Kernel> {
    let instr = module.instr(id);
    let refuse = |why: &str| Unsupported::new(module, id, why);
    let (ty, n, columns, count) = sizes(module, instr.operands()[0])
        .ok_or_else(|| refuse("a Cholesky factorization of less than two dimensions or of narrow numbers"))?;
    let is_potrf = instr.opcode == Opcode::CustomCall;
    let lower = match is_potrf {
        true => lapack::setting(instr, "uplo") == Some('L'),
        false => instr.attrs.bool(AttrKey::Lower),
    };
    let mut kernel = Kernel::default();
    if n != columns {
        return Err(refuse("a matrix that is not square").into());
    }
    let arrays = if is_potrf { 3 } else { 2 };
    if n * count == 0 {
        if is_potrf {
            kernel.stages.push(Stage::Fill { array: 2, byte: 0 });
        }
        return Ok(kernel);
    }
    let (e, arguments) = unit.begin(symbol, arrays, 0, THREADS)?;
    let e = &e;
    let own = block(e, Prim::I64)?;
    let first = e.mul(own, e.i64(n * n))?;
    let lane = thread(e, Prim::I64)?;
    let matrix = |argument: usize| -> Result<Matrix<'ctx>> {
        let base = Matrix { ty, base: arguments[argument] }.at(e, first)?;
        Ok(Matrix { ty, base })
    };
    let (from, to) = (matrix(0)?, matrix(1)?);
    let (one, order) = (e.i64(1), e.i64(n));
    let threads = i64::from(THREADS);
    // Row i, column j of the lower factor; an upper one is it transposed, of the transposed matrix.
    let offset = |i: Value<'ctx>, j: Value<'ctx>| -> Result<Value<'ctx>> {
        let (row, column) = if lower { (i, j) } else { (j, i) };
        e.add(e.mul(row, order)?, column)
    };
    let (slow, fast) = (e.udiv(lane, e.i64(SIDE))?, e.urem(lane, e.i64(SIDE))?);
    let zero = Val::of_bits(e, ty, 0);
    let all = e.i64(n * n);
    // One triangle, of its diagonal the real part; the other one is 0, or stays.
    each(e, lane, all, threads, |number| {
        let (row, column) = (e.udiv(number, order)?, e.urem(number, order)?);
        let (i, j) = if lower { (row, column) } else { (column, row) };
        let inside = e.icmp(IntPredicate::SGE, i, j)?;
        let registers = e.if_else(
            inside,
            || {
                let x = from.get(e, number)?;
                let diagonal = e.icmp(IntPredicate::EQ, i, j)?;
                scalar::select(e, diagonal, &real(e, &x), &x)?.to_storage(e)
            },
            || if is_potrf { from.get(e, number)?.to_storage(e) } else { zero.to_storage(e) },
        )?;
        to.set(e, number, &Val::of_storage(e, ty, &registers)?)
    })?;
    e.barrier()?;
    // The first step that fails, from 1.
    let failed = e.for_carried(e.i64(0), order, one, &[e.i64(0)], |j, failed| {
        let diagonal = offset(j, j)?;
        let pivot = to.get(e, diagonal)?.registers()[0];
        let prim = e.prim_of(pivot);
        let least = if is_potrf { FloatPredicate::OGT } else { FloatPredicate::OGE };
        let positive = e.fcmp(least, pivot, e.float(prim, 0.0))?;
        let already = e.icmp(IntPredicate::NE, failed[0], e.i64(0))?;
        let step = e.select(positive, e.i64(0), e.add(j, one)?)?;
        let failed = e.select(already, failed[0], step)?;
        let root = e.intrinsic("llvm.sqrt", &[e.lane_type(prim)], &[pivot])?;
        let parts = if ty.is_complex() { vec![root, e.float(prim, 0.0)] } else { vec![root] };
        let root = Val::of_registers(ty, &parts, false);
        let below = e.add(j, one)?;
        e.barrier()?;
        let is_first = e.icmp(IntPredicate::EQ, lane, e.i64(0))?;
        e.if_then(is_first, || to.set(e, diagonal, &root))?;
        each(e, e.add(below, lane)?, order, threads, |i| {
            let at = offset(i, j)?;
            let x = to.get(e, at)?;
            // By the real number: both parts.
            let quotients: Result<Vec<_>> =
                x.registers().iter().map(|&part| e.fdiv(part, parts[0])).collect();
            to.set(e, at, &Val::of_registers(ty, &quotients?, false))
        })?;
        e.barrier()?;
        // Everything to the right of it and below: neighbouring threads along what is contiguous.
        each(e, e.add(below, if lower { slow } else { fast })?, order, SIDE, |i| {
            let left = to.get(e, offset(i, j)?)?;
            each(e, e.add(below, if lower { fast } else { slow })?, e.add(i, one)?, SIDE, |k| {
                let right = to.get(e, offset(k, j)?)?;
                let product = operation(e, Binary::Multiply, &left, &conjugate(e, &right)?)?;
                let at = offset(i, k)?;
                let updated = operation(e, Binary::Subtract, &to.get(e, at)?, &product)?;
                let diagonal = e.icmp(IntPredicate::EQ, i, k)?;
                to.set(e, at, &scalar::select(e, diagonal, &real(e, &updated), &updated)?)
            })
        })?;
        e.barrier()?;
        Ok(vec![failed])
    })?;
    let has_failed = e.icmp(IntPredicate::NE, failed[0], e.i64(0))?;
    if is_potrf {
        let last = e.sub(failed[0], one)?;
        let restore = |number: Value<'ctx>| -> Result<()> {
            let (row, column) = (e.udiv(number, order)?, e.urem(number, order)?);
            let behind = e.icmp(IntPredicate::SGE, if lower { column } else { row }, last)?;
            e.if_then(behind, || to.set(e, number, &from.get(e, number)?))
        };
        e.if_then(has_failed, || each(e, lane, all, threads, restore))?;
        e.if_then(e.icmp(IntPredicate::EQ, lane, e.i64(0))?, || {
            let info = e.address(arguments[2], e.mul(own, e.i64(4))?)?;
            e.store(e.trunc(failed[0], Prim::I32)?, info, 4)?;
            Ok(())
        })?;
    } else {
        let nan = Val::of_registers(ty, &nan(e, ty), true);
        e.if_then(has_failed, || each(e, lane, all, threads, |number| to.set(e, number, &nan)))?;
    }
    e.return_void()?;
    let arguments = (0..arrays).map(Argument::Array).collect();
    kernel.stages.push(Stage::Launch(launch(module, id, symbol, count, THREADS, arguments)?));
    Ok(kernel)
}

/// A canonical NaN, of complex numbers with the imaginary part 0.
fn nan<'ctx>(e: &Emit<'_, 'ctx>, ty: ElementType) -> Vec<Value<'ctx>> {
    let prim = scalar::register(ty);
    match ty.is_complex() {
        true => vec![e.float(prim, f64::NAN), e.float(prim, 0.0)],
        false => vec![e.float(prim, f64::NAN)],
    }
}

/// Emits a `triangular-solve`, or a call of `trsm`.
pub(super) fn triangular_solve<'ctx>(
    unit: &Unit<'_, 'ctx>,
    module: &Module,
    id: InstrId,
    symbol: &str,
) -> Result<Kernel> {
    let instr = module.instr(id);
    let refuse = |why: &str| Unsupported::new(module, id, why);
    let both = (sizes(module, instr.operands()[0]), sizes(module, instr.operands()[1]));
    let (Some((ty, n, m, count)), Some((_, rows, columns, _))) = both else {
        return Err(refuse("triangular systems of less than two dimensions or of narrow numbers").into());
    };
    let a = &instr.attrs;
    let is = |key: &str, letter: char| lapack::setting(instr, key) == Some(letter);
    let (left, lower, unit_diagonal, transpose) = match instr.opcode == Opcode::CustomCall {
        true => {
            let transposed = if is("trans_x", 'T') { Transpose::Transpose } else { Transpose::No };
            let transpose = if is("trans_x", 'C') { Transpose::Adjoint } else { transposed };
            (is("side", 'L'), is("uplo", 'L'), is("diag", 'U'), transpose)
        }
        false => (
            a.bool(AttrKey::LeftSide),
            a.bool(AttrKey::Lower),
            a.bool(AttrKey::UnitDiagonal),
            a.transpose().copied().unwrap_or(Transpose::No),
        ),
    };
    if n != m || n != if left { rows } else { columns } {
        return Err(refuse("matrices that do not fit").into());
    }
    let mut kernel = Kernel::default();
    if rows * columns * count == 0 {
        return Ok(kernel);
    }
    // x op(a) = b is op(a)^T x^T = b^T: one more transposition, without conjugation.
    let swapped = matches!(transpose, Transpose::Transpose | Transpose::Adjoint) == left;
    let conjugated = transpose == Transpose::Adjoint;
    // After a transposition the other triangle is the one that is there.
    let forward = lower != swapped;
    let systems = rows * columns / n;
    // Unknown i of system s is here.
    let (by_unknown, by_system) = if left { (columns, 1) } else { (1, n) };
    let groups = (systems + SYSTEMS - 1) / SYSTEMS;
    let (e, arguments) = unit.begin(symbol, 3, 0, THREADS)?;
    let e = &e;
    let (own, lane) = (block(e, Prim::I64)?, thread(e, Prim::I64)?);
    let (number, group) = (e.udiv(own, e.i64(groups))?, e.urem(own, e.i64(groups))?);
    let matrix = |argument: usize, elements: i64| -> Result<Matrix<'ctx>> {
        let first = e.mul(number, e.i64(elements))?;
        let base = Matrix { ty, base: arguments[argument] }.at(e, first)?;
        Ok(Matrix { ty, base })
    };
    let (a, b, x) = (matrix(0, n * n)?, matrix(1, rows * columns)?, matrix(2, rows * columns)?);
    let element = |i: Value<'ctx>, j: Value<'ctx>| -> Result<Val<'ctx>> {
        let (row, column) = if swapped { (j, i) } else { (i, j) };
        let value = a.get(e, e.add(e.mul(row, e.i64(n))?, column)?)?;
        if conjugated { conjugate(e, &value) } else { Ok(value) }
    };
    let first = e.mul(group, e.i64(SYSTEMS))?;
    let own_systems = super::threads::min(e, e.i64(SYSTEMS), e.sub(e.i64(systems), first)?)?;
    let offset = |i: Value<'ctx>, s: Value<'ctx>| -> Result<Value<'ctx>> {
        let system = e.mul(e.add(first, s)?, e.i64(by_system))?;
        e.add(e.mul(i, e.i64(by_unknown))?, system)
    };
    // A thread has one of the systems, and some of its unknowns.
    let (slow, system) = (e.udiv(lane, e.i64(SYSTEMS))?, e.urem(lane, e.i64(SYSTEMS))?);
    let rows_at_once = i64::from(THREADS) / SYSTEMS;
    let exists = e.icmp(IntPredicate::SLT, system, own_systems)?;
    e.if_then(exists, || {
        each(e, slow, e.i64(n), rows_at_once, |i| {
            let at = offset(i, system)?;
            x.set(e, at, &b.get(e, at)?)
        })
    })?;
    e.barrier()?;
    each(e, e.i64(0), e.i64(n), 1, |step| {
        let i = if forward { step } else { e.sub(e.i64(n - 1), step)? };
        let known = offset(i, system)?;
        if !unit_diagonal {
            let pivot = element(i, i)?;
            let is_first = e.icmp(IntPredicate::EQ, slow, e.i64(0))?;
            e.if_then(e.and(exists, is_first)?, || {
                x.set(e, known, &operation(e, Binary::Divide, &x.get(e, known)?, &pivot)?)
            })?;
            e.barrier()?;
        }
        e.if_then(exists, || {
            let known = x.get(e, known)?;
            let first = e.add(e.add(step, slow)?, e.i64(1))?;
            each(e, first, e.i64(n), rows_at_once, |later| {
                let j = if forward { later } else { e.sub(e.i64(n - 1), later)? };
                let product = operation(e, Binary::Multiply, &element(j, i)?, &known)?;
                let at = offset(j, system)?;
                x.set(e, at, &operation(e, Binary::Subtract, &x.get(e, at)?, &product)?)
            })
        })?;
        e.barrier()
    })?;
    e.return_void()?;
    let arguments = (0..3).map(Argument::Array).collect();
    kernel.stages.push(Stage::Launch(launch(module, id, symbol, count * groups, THREADS, arguments)?));
    Ok(kernel)
}
