//! `ragged-dot`: contractions in groups whose sizes an operand says.
//!
//! | the ragged dimension of the left operand is | result |
//! |---|---|
//! | free | each of its indices is contracted with the group of the right operand that it belongs to; 0 if it belongs to none |
//! | contracted | a leading dimension of groups: each contracts the indices that belong to it |
//! | of the batch | that of `dot`, but 0 in batches that belong to no group |
//!
//! An index belongs to the first group that ends after it. Group sizes may have leading dimensions: those of
//! the batch, and then free ones of the left operand.

use hlo::attrs::AttrKey;
use hlo::{ArrayShape, InstrId, Module};
use hlo_codegen::Unsupported;
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Emit, IntPredicate, Prim, Result, Value};

use super::contract::operand::{Parts, argument_of, components, index_prim, strides};
use super::contract::{Words, check_precision, simple};
use super::{Unit, launch};
use crate::code;
use crate::kernel::{Argument, Kernel, Stage};

/// The role of the ragged dimension of the left operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Free,
    Contracting,
    Batch,
}

/// A `ragged-dot`.
struct Ragged<'m> {
    kind: Kind,
    shapes: [&'m ArrayShape; 2],
    parts: [Parts; 2],
    /// The ragged dimension of the left operand.
    ragged: usize,
    /// Of the right operand with [`Kind::Free`].
    group_dim: Option<usize>,
    sizes: &'m ArrayShape,
}

impl<'m> Ragged<'m> {
    fn of(module: &'m Module, id: InstrId) -> std::result::Result<Self, Unsupported> {
        let one = |key| match *module.instr(id).attrs.ints_or_empty(key) {
            [d] => usize::try_from(d).ok(),
            _ => None,
        };
        let refuse = |reason: &str| Unsupported::new(module, id, reason);
        let parts = [Parts::of(module, id, 0), Parts::of(module, id, 1)];
        let ragged = one(AttrKey::LhsRaggedDims).ok_or_else(|| refuse("other than one ragged dimension"))?;
        let kind = match (parts[0].contracting.contains(&ragged), parts[0].batch.contains(&ragged)) {
            (true, _) => Kind::Contracting,
            (false, true) => Kind::Batch,
            (false, false) => Kind::Free,
        };
        let group_dim = one(AttrKey::RhsGroupDims);
        if kind == Kind::Free && group_dim.is_none() {
            return Err(refuse("other than one group dimension"));
        }
        let shape = |n| argument_of(module, id, id, n).map(|(_, shape)| shape);
        let shapes = [shape(0)?, shape(1)?];
        Ok(Self { kind, shapes, parts, ragged, group_dim, sizes: shape(2)? })
    }

    fn size(&self, side: usize, d: usize) -> i64 {
        self.shapes[side].dims[d]
    }

    /// Groups of a list of sizes.
    fn count(&self) -> i64 {
        self.sizes.dims.last().copied().unwrap_or(1)
    }

    /// The size of a group, as `i64`.
    fn group_size<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        array: Value<'ctx>,
        list: Value<'ctx>,
        group: Value<'ctx>,
    ) -> Result<Value<'ctx>> {
        let at = e.add(e.mul(list, e.i64(self.count()))?, group)?;
        code::element(e, self.sizes.element_type, array, at)?.to_index(e)
    }

    /// The list of sizes that holds at an index of the left operand: its leading dimensions are the batch's
    /// and then free ones.
    fn list<'ctx>(&self, e: &Emit<'_, 'ctx>, index: &[Option<Value<'ctx>>]) -> Result<Value<'ctx>> {
        let free = self.parts[0].free.iter().filter(|_| self.kind == Kind::Free);
        let dims = self.parts[0].batch.iter().chain(free.filter(|&&d| d != self.ragged));
        let mut list = e.i64(0);
        for &d in dims.take(self.sizes.dims.len().saturating_sub(1)) {
            let at = index[d].unwrap_or(e.i64(0));
            list = e.add(e.mul(list, e.i64(self.size(0, d)))?, at)?;
        }
        Ok(list)
    }
}

/// An intrinsic of two numbers of the same type.
fn of_two<'ctx>(e: &Emit<'_, 'ctx>, name: &str, a: Value<'ctx>, b: Value<'ctx>) -> Result<Value<'ctx>> {
    e.intrinsic(name, &[a.get_type()], &[a, b])
}

/// Offset of an index in an array.
fn offset<'ctx>(e: &Emit<'_, 'ctx>, index: &[Option<Value<'ctx>>], dims: &[i64]) -> Result<Value<'ctx>> {
    let mut sum = e.i64(0);
    for (component, &stride) in index.iter().zip(&strides(dims)) {
        if let Some(component) = component {
            sum = e.add(sum, e.mul(*component, e.i64(stride))?)?;
        }
    }
    Ok(sum)
}

/// Emits a `ragged-dot`.
pub(super) fn emit(unit: &Unit<'_, '_>, module: &Module, id: InstrId, symbol: &str) -> Result<Kernel> {
    check_precision(module, id)?;
    let ragged = Ragged::of(module, id)?;
    let result = module.instr(id).shape.expect_array();
    let [l, r] = ragged.shapes;
    let words = Words::new(l.element_type, r.element_type, result.element_type);
    let mut kernel = Kernel::default();
    let threads: i64 = result.dims.iter().product();
    if threads == 0 {
        return Ok(kernel);
    }
    let arrays = 4;
    let (e, arguments) = unit.begin_apart(symbol, arrays - 1, 1, simple::THREADS)?;
    simple::each_thread(&e, threads, index_prim(threads), |thread| {
        let wide = |x| e.resize(x, Prim::I64, false);
        let at = components(&e, thread, &result.dims)?;
        let at = at.into_iter().map(wide).collect::<Result<Vec<_>>>()?;
        let [lp, rp] = &ragged.parts;
        let mut left: Vec<Option<Value<'_>>> = vec![None; l.dims.len()];
        let mut right: Vec<Option<Value<'_>>> = vec![None; r.dims.len()];
        // The result: groups if the ragged dimension is contracted, batch, free dimensions of both.
        let mut components = at.iter().copied();
        let group = if ragged.kind == Kind::Contracting { components.next() } else { None };
        for (&i, &j) in lp.batch.iter().zip(&rp.batch) {
            let component = components.next();
            (left[i], right[j]) = (component, component);
        }
        for &d in &lp.free {
            left[d] = components.next();
        }
        for &d in rp.free.iter().filter(|&&d| ragged.kind != Kind::Free || Some(d) != ragged.group_dim) {
            right[d] = components.next();
        }
        let list = ragged.list(&e, &left)?;
        let size = |group| ragged.group_size(&e, arguments[2], list, group);
        let plus = |a, b| of_two(&e, "llvm.sadd.sat", a, b);
        let (zero, one, count) = (e.i64(0), e.i64(1), e.i64(ragged.count()));
        let extent = e.i64(ragged.size(0, ragged.ragged));
        // The range of the ragged dimension, if that is contracted, and whether there is a sum at all.
        let (first, length, holds) = match ragged.kind {
            Kind::Free => {
                let row = left[ragged.ragged].unwrap_or(zero);
                let ends = e.for_carried(zero, count, one, &[zero, count], |group, carried| {
                    let end = plus(carried[0], size(group)?)?;
                    let is_first = e.icmp(IntPredicate::EQ, carried[1], count)?;
                    let is_inside = e.icmp(IntPredicate::SLT, row, end)?;
                    let found = e.select(e.and(is_first, is_inside)?, group, carried[1])?;
                    Ok(vec![end, found])
                })?;
                let dim = ragged.group_dim.unwrap_or(0);
                right[dim] = Some(ends[1]);
                let groups = ragged.size(1, dim).min(ragged.count());
                (zero, one, e.icmp(IntPredicate::SLT, ends[1], e.i64(groups))?)
            }
            Kind::Contracting => {
                let group = group.unwrap_or(zero);
                let before = e.for_carried(zero, group, one, &[zero], |group, carried| {
                    Ok(vec![plus(carried[0], size(group)?)?])
                })?[0];
                let cut = |x| of_two(&e, "llvm.smin", of_two(&e, "llvm.smax", x, zero)?, extent);
                let (first, end) = (cut(before)?, cut(plus(before, size(group)?)?)?);
                let length = of_two(&e, "llvm.smax", e.sub(end, first)?, zero)?;
                (first, length, e.bool(true))
            }
            Kind::Batch => {
                let all = e.for_carried(zero, count, one, &[zero], |group, carried| {
                    Ok(vec![plus(carried[0], size(group)?)?])
                })?[0];
                let row = left[ragged.ragged].unwrap_or(zero);
                (zero, one, e.icmp(IntPredicate::SLT, row, all)?)
            }
        };
        // Terms: the contracting dimensions but the ragged one, and then that.
        let pairs = lp.contracting.iter().copied().zip(rp.contracting.iter().copied());
        let (mut inner, mut rest) = (None, Vec::new());
        for (i, j) in pairs {
            if ragged.kind == Kind::Contracting && i == ragged.ragged {
                inner = Some((i, j));
            } else {
                rest.push((i, j));
            }
        }
        let sizes: Vec<i64> = rest.iter().map(|&(i, _)| l.dims[i]).collect();
        let all = e.mul(length, e.i64(sizes.iter().product()))?;
        let terms = e.select(holds, all, zero)?;
        // The group of a row that belongs to none is not looked at.
        let sum = simple::sum(&e, &words, terms, &words.zero(&e), |term| {
            let (mut left, mut right) = (left.clone(), right.clone());
            let (number, along) = match inner {
                Some(_) => (e.udiv(term, length)?, e.add(first, e.urem(term, length)?)?),
                None => (term, zero),
            };
            if let Some((i, j)) = inner {
                (left[i], right[j]) = (Some(along), Some(along));
            }
            let at = super::contract::operand::components(&e, number, &sizes)?;
            for (&(i, j), component) in rest.iter().zip(at) {
                (left[i], right[j]) = (Some(component), Some(component));
            }
            let (x, y) = (offset(&e, &left, &l.dims)?, offset(&e, &right, &r.dims)?);
            let x = code::element(&e, l.element_type, arguments[0], x)?;
            Ok([x, code::element(&e, r.element_type, arguments[1], y)?])
        })?;
        // An element of no group is the pattern of zeros, in f8e8m0fnu 2^-127; a sum of no terms would be
        // converted to a NaN there.
        let none = Val::of_bits(&e, result.element_type, 0);
        let element = scalar::select(&e, holds, &words.finish(&e, sum)?, &none)?;
        code::store_element(&e, &element, arguments[3], thread)
    })?;
    let arguments = (0..arrays).map(Argument::Array).collect();
    let blocks = simple::blocks(threads);
    kernel.stages.push(Stage::Launch(launch(module, id, symbol, blocks, simple::THREADS, arguments)?));
    Ok(kernel)
}
