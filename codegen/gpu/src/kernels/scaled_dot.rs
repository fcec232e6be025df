//! `scaled-dot`: a dot of operands that are first multiplied by scales, one for each block of elements.
//! Products with scales are computed in `f64`, where those of narrower floats are exact, and so is the dot.

use hlo::{ArrayShape, InstrId, Module};
use hlo_codegen::Unsupported;
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Emit, Result, Value};

use super::contract::operand::{Parts, argument_of, components, index_prim, strides};
use super::contract::{Words, check_precision, simple};
use super::{Unit, launch};
use crate::code;
use crate::kernel::{Argument, Kernel, Stage};

/// An operand and its scale.
struct Scaled<'m> {
    argument: u32,
    shape: &'m ArrayShape,
    /// None: it counts as 1.
    scale: Option<(u32, &'m ArrayShape)>,
    parts: Parts,
}

impl<'m> Scaled<'m> {
    fn of(module: &'m Module, id: InstrId, side: usize) -> std::result::Result<Self, Unsupported> {
        let (argument, shape) = argument_of(module, id, id, side)?;
        let scale = argument_of(module, id, id, side + 2)?;
        let (dims, scales) = (&shape.dims, &scale.1.dims);
        let fits = scales.is_empty()
            || dims.len() == scales.len()
                && dims.iter().zip(scales).all(|(&n, &s)| n == 0 || s != 0 && n % s == 0);
        if !fits {
            return Err(Unsupported::new(module, id, "a scale of other dimensions than its operand"));
        }
        let scale = (!scales.is_empty()).then_some(scale);
        Ok(Self { argument, shape, scale, parts: Parts::of(module, id, side) })
    }

    fn sizes(&self, some: &[usize]) -> Vec<i64> {
        some.iter().map(|&d| self.shape.dims[d]).collect()
    }

    /// The element of a batch, a row and a term, times its scale, as `f64`.
    fn element<'ctx>(
        &self,
        e: &Emit<'_, 'ctx>,
        arguments: &[Value<'ctx>],
        at: [Value<'ctx>; 3],
    ) -> Result<Val<'ctx>> {
        let groups = [&self.parts.batch, &self.parts.free, &self.parts.contracting];
        let mut index = vec![at[0]; self.shape.dims.len()];
        for (group, number) in groups.into_iter().zip(at) {
            for (&d, component) in group.iter().zip(components(e, number, &self.sizes(group))?) {
                index[d] = component;
            }
        }
        let prim = e.prim_of(at[0]);
        let of = |x: i64| e.int(prim, x.cast_unsigned());
        let read = |argument: u32, shape: &ArrayShape| -> Result<Val<'ctx>> {
            let mut offset = of(0);
            let strides = strides(&shape.dims);
            for (d, (&component, &stride)) in index.iter().zip(&strides).enumerate() {
                let block = self.shape.dims[d].checked_div(shape.dims[d]).unwrap_or(1).max(1);
                let block = e.udiv(component, of(block))?;
                offset = e.add(offset, e.mul(block, of(stride))?)?;
            }
            let x = code::element(e, shape.element_type, arguments[argument as usize], offset)?;
            scalar::convert(e, x, hlo::ElementType::F64)
        };
        let x = read(self.argument, self.shape)?;
        let Some((argument, shape)) = self.scale else { return Ok(x) };
        let scale = read(argument, shape)?;
        let product = e.fmul(x.registers()[0], scale.registers()[0])?;
        Ok(Val::of_registers(hlo::ElementType::F64, &[product], false))
    }
}

/// Emits a `scaled-dot`.
pub(super) fn emit(unit: &Unit<'_, '_>, module: &Module, id: InstrId, symbol: &str) -> Result<Kernel> {
    check_precision(module, id)?;
    let result = module.instr(id).shape.expect_array();
    let [lhs, rhs] = [Scaled::of(module, id, 0)?, Scaled::of(module, id, 1)?];
    let words = Words::new(lhs.shape.element_type, rhs.shape.element_type, result.element_type);
    if !words.word().is_float() {
        return Err(Unsupported::new(module, id, format!("a result of type {}", result.element_type)).into());
    }
    let words = words.wide();
    let mut kernel = Kernel::default();
    let threads: i64 = result.dims.iter().product();
    if threads == 0 {
        return Ok(kernel);
    }
    let size = |of: &Scaled<'_>, some: &[usize]| of.sizes(some).iter().product::<i64>();
    let (m, n) = (size(&lhs, &lhs.parts.free), size(&rhs, &rhs.parts.free));
    let terms = size(&lhs, &lhs.parts.contracting);
    let elements = |of: &Scaled<'_>| of.shape.dims.iter().product::<i64>();
    let prim = index_prim(threads.max(elements(&lhs)).max(elements(&rhs)));
    let arrays = 5;
    let (e, arguments) = unit.begin_apart(symbol, arrays - 1, 1, simple::THREADS)?;
    simple::each_thread(&e, threads, prim, |thread| {
        let of = |x: i64| e.int(prim, x.cast_unsigned());
        let (column, rest) = (e.urem(thread, of(n))?, e.udiv(thread, of(n))?);
        let (row, batch) = (e.urem(rest, of(m))?, e.udiv(rest, of(m))?);
        let sum = simple::sum(&e, &words, of(terms), &words.zero(&e), |term| {
            let left = lhs.element(&e, &arguments, [batch, row, term])?;
            Ok([left, rhs.element(&e, &arguments, [batch, column, term])?])
        })?;
        let element = words.finish(&e, sum)?;
        code::store_element(&e, &element, arguments[4], thread)
    })?;
    let arguments = (0..arrays).map(Argument::Array).collect();
    let blocks = simple::blocks(threads);
    kernel.stages.push(Stage::Launch(launch(module, id, symbol, blocks, simple::THREADS, arguments)?));
    Ok(kernel)
}
