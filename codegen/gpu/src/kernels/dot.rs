//! `dot`, alone or with a fused epilogue.

use hlo::{InstrId, Module};
use hlo_codegen::Unsupported;
use hlo_llvm::Result;
use hlo_opt::expr::index::{Affine, Index, Space};

use super::contract::epilogue::Epilogue;
use super::contract::mma;
use super::contract::operand::{Operand, Parts, Steps, argument_of, index_prim, strides};
use super::contract::source::Matrix;
use super::contract::tile::{self, Tiled};
use super::contract::{Words, check_precision, simple, skinny};
use super::{Unit, launch};
use crate::code;
use crate::kernel::{Argument, Kernel, Stage};
use crate::lower::bytes_of;
use crate::subject::Subject;

/// A batch of matrix products.
#[derive(Clone, Debug)]
pub(super) struct Product {
    /// The arithmetic.
    pub(super) words: Words,
    /// Left and right operand.
    pub(super) operands: [Operand; 2],
    /// Sizes: batch, rows, columns.
    pub(super) magnitudes: [i64; 3],
    /// Terms of each sum.
    pub(super) terms: i64,
    /// Dimensions of the batch, of rows, of columns.
    dims: [Vec<i64>; 3],
}

impl Product {
    /// Of a `dot`, in the kernel of an instruction (itself, or a fusion).
    pub(super) fn of(
        module: &Module,
        kernel: InstrId,
        id: InstrId,
    ) -> std::result::Result<Self, Unsupported> {
        check_precision(module, id)?;
        let result = module.instr(id).shape.expect_array().element_type;
        let [(left, l), (right, r)] =
            [argument_of(module, kernel, id, 0)?, argument_of(module, kernel, id, 1)?];
        let words = Words::new(l.element_type, r.element_type, result);
        let [mut lp, mut rp] = [Parts::of(module, id, 0), Parts::of(module, id, 1)];
        let (ls, rs) = (strides(&l.dims), strides(&r.dims));
        // Terms may come in any order: storage order.
        let mut pairs: Vec<(usize, usize)> =
            lp.contracting.iter().copied().zip(rp.contracting.iter().copied()).collect();
        pairs.sort_by_key(|&(i, _)| std::cmp::Reverse(ls[i]));
        (lp.contracting, rp.contracting) = pairs.into_iter().unzip();
        let sizes = |dims: &[i64], some: &[usize]| some.iter().map(|&d| dims[d]).collect::<Vec<i64>>();
        let dims = [sizes(&l.dims, &lp.batch), sizes(&l.dims, &lp.free), sizes(&r.dims, &rp.free)];
        let operand = |argument, shape: &hlo::ArrayShape, strides: &[i64], parts: &Parts| {
            let steps = |some: &[usize]| Steps::new(some.iter().map(|&d| (shape.dims[d], strides[d])));
            Operand {
                argument,
                ty: shape.element_type,
                elements: shape.dims.iter().product(),
                batch: steps(&parts.batch),
                rows: steps(&parts.free),
                terms: steps(&parts.contracting),
            }
        };
        let terms = sizes(&l.dims, &lp.contracting).iter().product();
        let operands = [operand(left, l, &ls, &lp), operand(right, r, &rs, &rp)];
        let magnitudes = dims.each_ref().map(|d| d.iter().product());
        Ok(Self { words, operands, magnitudes, terms, dims })
    }

    /// The index of the result of a batch, a row and a column.
    fn index(&self, space: &mut Space, at: [&Affine; 3]) -> Index {
        at.into_iter().zip(&self.dims).flat_map(|(number, dims)| space.delinear(number, dims)).collect()
    }

    /// Stores some contiguous columns.
    pub(super) fn epilogue<'m>(
        &self,
        subject: &Subject<'m>,
        hero: InstrId,
        width: u32,
    ) -> std::result::Result<Epilogue<'m>, Unsupported> {
        Epilogue::new(subject, hero, self.magnitudes, width, &|space, at| self.index(space, at))
    }
}

/// Fewer multiply-adds are not worth tiling.
const MIN_TILED_WORK: i64 = 1 << 12;

/// Whether a product is worth tiling, and fits the tiles' integer type.
fn is_tiled(product: &Product) -> bool {
    let [batch, m, n] = product.magnitudes;
    let terms = product.terms;
    // Tiles count in 32 bits.
    let counts = [m, n, terms, batch, batch.saturating_mul(m).saturating_mul(n)];
    let fits = counts.iter().all(|&x| x < 1 << 30);
    let work = batch.saturating_mul(m).saturating_mul(n).saturating_mul(terms);
    fits && terms > 0 && work >= MIN_TILED_WORK && tile::has_tiles(product.words.field)
}

/// Emits a `dot`, `hero`, in the kernel of `id`: itself, or a fusion.
pub(super) fn emit(
    unit: &Unit<'_, '_>,
    module: &Module,
    id: InstrId,
    hero: InstrId,
    symbol: &str,
) -> Result<Kernel> {
    let subject = Subject::new(module, id)?;
    let product = Product::of(module, id, hero)?;
    let [batch, m, n] = product.magnitudes;
    let results: u64 = subject.roots.iter().map(|root| bytes_of(root.shape)).sum();
    let operand_bytes = |o: &Operand| o.elements as u64 * o.ty.storage_bytes() as u64;
    let mut kernel = Kernel {
        bytes: product.operands.iter().map(operand_bytes).sum::<u64>() + results,
        flops: 2 * (batch as u64).saturating_mul((m * n) as u64).saturating_mul(product.terms as u64),
        ..Kernel::default()
    };
    if product.magnitudes.contains(&0) {
        return Ok(kernel);
    }
    let [lhs, rhs] = product.operands.each_ref().map(Matrix::new);
    let tiled = Tiled {
        words: product.words,
        sources: [&lhs, &rhs],
        magnitudes: product.magnitudes,
        terms: product.terms,
        reads: subject.reads(),
    };
    if !is_tiled(&product) {
        emit_simple(unit, module, id, hero, &subject, &product, symbol, &mut kernel)?;
        return Ok(kernel);
    }
    let epilogue = |width| product.epilogue(&subject, hero, width);
    let arrays = subject.arrays;
    let is_free = unit.products.tile.is_none() && unit.products.split.is_none();
    if let Some(plan) = skinny::plan(unit.arch, &tiled).filter(|_| is_free) {
        skinny::emit(unit, module, id, symbol, arrays, &tiled, plan, &epilogue, &mut kernel)?;
        return Ok(kernel);
    }
    if let Some((plan, _)) = mma::plan(unit.arch, unit.products, &tiled) {
        mma::emit(unit, module, id, symbol, arrays, &tiled, plan, &epilogue, None, &mut kernel)?;
        return Ok(kernel);
    }
    let (plan, _) = tile::plan(unit.arch, unit.products, &product.words, product.magnitudes, product.terms);
    tile::emit(unit, module, id, symbol, arrays, &tiled, plan, &epilogue, None, &mut kernel)?;
    Ok(kernel)
}

#[expect(clippy::too_many_arguments, reason = "what a kernel is made of")]
fn emit_simple(
    unit: &Unit<'_, '_>,
    module: &Module,
    id: InstrId,
    hero: InstrId,
    subject: &Subject<'_>,
    product: &Product,
    symbol: &str,
    kernel: &mut Kernel,
) -> Result<()> {
    let [batch, m, n] = product.magnitudes;
    let [lhs, rhs] = &product.operands;
    let threads = batch * m * n;
    let prim = index_prim(threads.max(lhs.elements).max(rhs.elements).max(product.terms));
    let epilogue = product.epilogue(subject, hero, 1)?;
    let (e, arguments) =
        unit.begin_apart(symbol, subject.reads(), subject.arrays - subject.reads(), simple::THREADS)?;
    simple::each_thread(&e, threads, prim, |thread| {
        let of = |x: i64| e.int(prim, x.cast_unsigned());
        let column = e.urem(thread, of(n))?;
        let rest = e.udiv(thread, of(n))?;
        let (row, at) = (e.urem(rest, of(m))?, e.udiv(rest, of(m))?);
        let first =
            |operand: &Operand, row| e.add(operand.batch.offset(&e, at)?, operand.rows.offset(&e, row)?);
        let (left, right) = (first(lhs, row)?, first(rhs, column)?);
        let element = |operand: &Operand, first, term| {
            let offset = e.add(first, operand.terms.offset(&e, term)?)?;
            code::element(&e, operand.ty, arguments[operand.argument as usize], offset)
        };
        let words = &product.words;
        let sum = simple::sum(&e, words, of(product.terms), &words.zero(&e), |term| {
            Ok([element(lhs, left, term)?, element(rhs, right, term)?])
        })?;
        epilogue.store(e, &arguments, [at, row, column], &[words.finish(&e, sum)?])
    })?;
    let arguments = (0..subject.arrays).map(Argument::Array).collect();
    let blocks = simple::blocks(threads);
    kernel.stages.push(Stage::Launch(launch(module, id, symbol, blocks, simple::THREADS, arguments)?));
    Ok(())
}
