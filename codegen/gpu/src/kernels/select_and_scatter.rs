//! `select-and-scatter`: a first launch finds what each window selects, a second one combines for each
//! element of the result what was scattered to it.
//!
//! **Invariant:** no atomics: an element loops over the windows that can select it, in the interpreter's
//! order (row-major), and takes those that did.

use hlo::attrs::{AttrKey, WindowDim};
use hlo::{ArrayShape, ElementType, InstrId, Module};
use hlo_codegen::Unsupported;
use hlo_llvm::scalar::Val;
use hlo_llvm::{IntPredicate, Prim, Result};
use hlo_opt::expr::fold::Fold;
use hlo_opt::expr::index::Index;
use hlo_opt::expr::{ALWAYS, Condition, Expr, Op};
use hlo_opt::fusion::combine::Combine;

use super::folds::{apply, registers};
use super::reduce::{KEPT, STEP, scratch_array};
use super::reduce_window::thread_number;
use super::windows::{element, positions, window};
use super::{Unit, launch};
use crate::code::{self, Code};
use crate::kernel::{Argument, Kernel, Stage};
use crate::subject::Subject;

/// Threads of a block.
const THREADS: u32 = 256;

/// Emits an instruction.
pub(super) fn emit(unit: &Unit<'_, '_>, module: &Module, id: InstrId, symbol: &str) -> Result<Kernel> {
    let refuse = |why: &str| Err(Unsupported::new(module, id, why).into());
    let Subject { mut expr, roots, arrays } = Subject::new(module, id)?;
    let instr = module.instr(id);
    let computation = |key| instr.attrs.computation(key);
    let (Some(select), Some(scatter)) = (computation(AttrKey::Select), computation(AttrKey::Scatter)) else {
        return refuse("a selection without computations");
    };
    let &[operand, source, init] = instr.operands() else { return refuse("other operands than three") };
    let (of, from) = (module.instr(operand).shape.expect_array(), module.instr(source).shape.expect_array());
    let mut kernel = Kernel::default();
    let elements: i64 = of.dims.iter().product();
    if elements == 0 {
        return Ok(kernel);
    }
    let windows: i64 = from.dims.iter().product();
    let window = window(module, id, &of.dims)?;
    let index_type = if elements > i64::from(i32::MAX) { ElementType::S64 } else { ElementType::S32 };
    let shape = ArrayShape::new(index_type, &[windows]);
    let chosen = scratch_array(&mut expr, &shape, arrays, &mut kernel.scratch_bytes);
    let chooser = Chooser { module, id, expr: &expr, window: &window, of, from, select, chosen, arrays };
    if windows > 0 {
        kernel.stages.push(chooser.emit(unit, operand, &format!("{symbol}_select"))?);
    }
    let gatherer = Gatherer { chooser, scatter, roots_array: roots[0].array };
    kernel.stages.push(gatherer.emit(unit, [source, init], symbol)?);
    Ok(kernel)
}

/// Finds what each window selects.
struct Chooser<'a, 'm> {
    module: &'m Module,
    id: InstrId,
    expr: &'a Expr<'m>,
    window: &'a [WindowDim],
    of: &'m ArrayShape,
    from: &'m ArrayShape,
    select: hlo::ComputationId,
    /// The array of the offsets of selected elements, -1 for windows without elements.
    chosen: u32,
    arrays: u32,
}

/// Whether that many threads and steps need 64-bit indices.
fn prim(threads: i64, steps: i64) -> Prim {
    let most = threads.saturating_add(i64::from(THREADS)).max(steps.saturating_add(1));
    if most > i64::from(i32::MAX) { Prim::I64 } else { Prim::I32 }
}

impl<'m> Chooser<'_, 'm> {
    fn index_type(&self) -> (ElementType, Prim) {
        match self.expr.arrays[self.chosen as usize].shape.element_type {
            ElementType::S64 => (ElementType::S64, Prim::I64),
            _ => (ElementType::S32, Prim::I32),
        }
    }

    fn emit(&self, unit: &Unit<'_, '_>, operand: InstrId, symbol: &str) -> Result<Stage> {
        let mut expr = self.expr.clone();
        let windows: i64 = self.from.dims.iter().product();
        let sizes = positions(self.window);
        let steps: i64 = sizes.iter().product();
        let number = expr.space.var(KEPT, windows);
        let step = expr.space.var(STEP, steps);
        let at = expr.space.delinear(&number, &self.from.dims);
        let position = expr.space.delinear(&step, &sizes);
        let found = element(&mut expr, self.window, &self.of.dims, &at, &position).filter(|_| steps > 0);
        let mut region = Expr::new(self.module);
        let ty = self.of.element_type;
        let given = [region.given(0, ty), region.given(1, ty)];
        let keeps = region.apply(self.select, &given)?;
        let found = match found {
            Some((guard, index)) => {
                Some((guard, expr.node(operand, 0, &index)?, expr.space.linear(&index, &self.of.dims)))
            }
            None => None,
        };
        let (index_type, index_prim) = self.index_type();
        let arrays = self.arrays + 1;
        let (e, arguments) = unit.begin(symbol, arrays, 0, THREADS)?;
        let prim = prim(windows, steps);
        let thread = thread_number(&e, prim, THREADS)?;
        let inside = e.icmp(IntPredicate::ULT, thread, e.int(prim, windows.cast_unsigned()))?;
        let none = e.int(index_prim, u64::MAX);
        e.if_then(inside, || {
            let mut code = Code::new(e, &expr, &arguments);
            let c = &mut code;
            c.set_var(KEPT, thread);
            let mut chosen = none;
            if let Some((guard, node, linear)) = found {
                let (storage, parts) = code::storage(ty);
                let mut start = vec![none];
                start.extend(vec![code::zero(&e, storage); parts as usize]);
                let (low, high) = (e.int(prim, 0), e.int(prim, steps.cast_unsigned()));
                let last = e.for_carried(low, high, e.int(prim, 1), &start, |step, carried| {
                    c.scoped(|c| {
                        c.set_var(STEP, step);
                        let holds = c.guard(guard)?;
                        let mut body = || {
                            let value = c.value(node)?;
                            let at = c.number(&linear)?;
                            let at = e.resize(at, index_prim, true)?;
                            let best = Val::of_storage(&e, ty, &carried[1..])?;
                            let mut applied = Code::new(e, &region, &[]);
                            applied.give(0, best);
                            applied.give(1, value);
                            let keeps = applied.value(keeps[0])?.registers()[0];
                            let is_first = e.icmp(IntPredicate::EQ, carried[0], none)?;
                            let takes = e.or(is_first, e.not(keeps)?)?;
                            let mut next = vec![e.select(takes, at, carried[0])?];
                            for (new, &old) in value.to_storage(&e)?.into_iter().zip(&carried[1..]) {
                                next.push(e.select(takes, new, old)?);
                            }
                            Ok(next)
                        };
                        match holds {
                            None => body(),
                            Some(holds) => e.if_else(holds, body, || Ok(carried.to_vec())),
                        }
                    })
                })?;
                chosen = last[0];
            }
            c.store(&Val::of_storage(&e, index_type, &[chosen])?, self.chosen, &number)
        })?;
        e.return_void()?;
        let blocks = (windows + i64::from(THREADS) - 1) / i64::from(THREADS);
        let arguments = (0..arrays).map(Argument::Array).collect();
        Ok(Stage::Launch(launch(self.module, self.id, symbol, blocks, THREADS, arguments)?))
    }
}

/// Combines what was scattered to each element.
struct Gatherer<'a, 'm> {
    chooser: Chooser<'a, 'm>,
    scatter: hlo::ComputationId,
    roots_array: u32,
}

impl<'m> Gatherer<'_, 'm> {
    fn emit(&self, unit: &Unit<'_, '_>, [source, init]: [InstrId; 2], symbol: &str) -> Result<Stage> {
        let Chooser { module, id, of, from, chosen, window, .. } = self.chooser;
        let mut expr = self.chooser.expr.clone();
        let combine = Combine::literal(module, self.scatter)?;
        let elements: i64 = of.dims.iter().product();
        // How many windows, along each dimension, may reach an element.
        let reach: Vec<i64> =
            window.iter().map(|w| (w.size - 1).max(0) * w.window_dilation / w.stride.max(1) + 1).collect();
        let steps: i64 = reach.iter().product();
        let number = expr.space.var(KEPT, elements);
        let step = expr.space.var(STEP, steps);
        let at = expr.space.delinear(&number, &of.dims);
        let which = expr.space.delinear(&step, &reach);
        let (mut inside, mut index) = (Vec::new(), Index::new());
        for ((((w, x), i), &reach), &n) in window.iter().zip(&at).zip(&which).zip(&reach).zip(&from.dims) {
            let end = x.times(w.base_dilation.max(1)).plus(w.pad_low);
            let (last, _) = expr.space.div_mod(&end, w.stride.max(1));
            let o = expr.space.add(&last, i).plus(1 - reach);
            inside.push(Condition { value: o.clone(), low: 0, high: n });
            index.push(o);
        }
        let guard = expr.guard(ALWAYS, &inside).filter(|_| !from.dims.contains(&0));
        let (index_type, index_prim) = self.chooser.index_type();
        let window_number = expr.space.linear(&index, &from.dims);
        let selected = expr.push(Op::Load { array: chosen, at: window_number, guard: ALWAYS }, index_type);
        let ty = of.element_type;
        let begin = expr.node(init, 0, &[])?;
        let update = expr.node(source, 0, &index)?;
        let fold = Fold::of_nodes(&mut expr, combine, &[update], &[begin], &[ty], 0);
        let arrays = self.chooser.arrays + 1;
        let (e, arguments) = unit.begin(symbol, arrays, 0, THREADS)?;
        let prim = prim(elements, steps);
        let thread = thread_number(&e, prim, THREADS)?;
        let inside = e.icmp(IntPredicate::ULT, thread, e.int(prim, elements.cast_unsigned()))?;
        e.if_then(inside, || {
            let mut code = Code::new(e, &expr, &arguments);
            let c = &mut code;
            c.set_var(KEPT, thread);
            let mut value = c.value(fold.initial[0])?;
            if let Some(guard) = guard {
                let own = e.resize(thread, index_prim, false)?;
                let (low, high) = (e.int(prim, 0), e.int(prim, steps.cast_unsigned()));
                // The initial value keeps its bits where nothing is scattered.
                let start = registers(&[value.settled(&e)?]);
                let last = e.for_carried(low, high, e.int(prim, 1), &start, |step, carried| {
                    c.scoped(|c| {
                        c.set_var(STEP, step);
                        let holds = c.guard(guard)?;
                        let mut body = || {
                            let is_own = e.icmp(IntPredicate::EQ, c.value(selected)?.registers()[0], own)?;
                            e.if_else(
                                is_own,
                                || {
                                    let update = c.value(fold.operands[0])?;
                                    let mine = Val::of_registers(ty, carried, true);
                                    let next = apply(e, &fold.combine, &[update], &[mine])?;
                                    Ok(registers(&[next[0].settled(&e)?]))
                                },
                                || Ok(carried.to_vec()),
                            )
                        };
                        match holds {
                            None => body(),
                            Some(holds) => e.if_else(holds, body, || Ok(carried.to_vec())),
                        }
                    })
                })?;
                value = Val::of_registers(ty, &last, true);
            }
            c.store(&value, self.roots_array, &number)
        })?;
        e.return_void()?;
        let blocks = (elements + i64::from(THREADS) - 1) / i64::from(THREADS);
        let arguments = (0..arrays).map(Argument::Array).collect();
        Ok(Stage::Launch(launch(module, id, symbol, blocks, THREADS, arguments)?))
    }
}
