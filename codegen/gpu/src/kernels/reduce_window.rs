//! Reductions of windows: one thread per result, which loops over its window in order; windows that are
//! prefixes or suffixes are scans.
//!
//! **Invariant:** what may not be reassociated is combined in the interpreter's order: window row-major, or
//! along the line of a prefix.

use hlo::{ElementType, InstrId, Module};
use hlo_codegen::Unsupported;
use hlo_llvm::{Axis, IntPredicate, Prim, Result, Special, Value};
use hlo_opt::expr::array_leaves;
use hlo_opt::expr::fold::Fold;
use hlo_opt::fusion::combine::Combine;

use super::folds::{Folds, Item, registers};
use super::reduce::{KEPT, STEP};
use super::scan;
use super::windows::{element, positions, window};
use super::{Unit, launch};
use crate::code::Code;
use crate::kernel::{Argument, Kernel, Stage};
use crate::subject::Subject;

/// Threads of a block.
const THREADS: u32 = 256;

/// Emits an instruction.
pub(super) fn emit(unit: &Unit<'_, '_>, module: &Module, id: InstrId, symbol: &str) -> Result<Kernel> {
    let subject = Subject::new(module, id)?;
    let instr = module.instr(id);
    let (operands, initial) = instr.operands().split_at(instr.operands().len() / 2);
    let (Some(&first), Some(root)) = (operands.first(), subject.roots.first()) else {
        return Err(Unsupported::new(module, id, "windows of nothing").into());
    };
    let operand = module.instr(first).shape.expect_array();
    let result = root.shape;
    let mut kernel = Kernel::default();
    if result.dims.contains(&0) {
        return Ok(kernel);
    }
    let window = window(module, id, &operand.dims)?;
    let combine = Combine::of(module, id, false)?;
    if let Some((line, is_suffix)) = scan::line(&window, &operand.dims, &result.dims)
        && (combine.free() || !is_suffix)
        && operands.len() == 1
    {
        scan::emit(unit, module, id, subject, (line, is_suffix), combine, symbol, &mut kernel)?;
        return Ok(kernel);
    }
    let Subject { mut expr, roots, arrays } = subject;
    let results: i64 = result.dims.iter().product();
    let sizes = positions(&window);
    let steps: i64 = sizes.iter().fold(1, |n, &p| n.saturating_mul(p));
    let number = expr.space.var(KEPT, results);
    let step = expr.space.var(STEP, steps);
    let at = expr.space.delinear(&number, &result.dims);
    let position = expr.space.delinear(&step, &sizes);
    let found = element(&mut expr, &window, &operand.dims, &at, &position);
    let found = found.filter(|_| !operand.dims.contains(&0) && !sizes.contains(&0));
    let types: Vec<ElementType> = array_leaves(&instr.shape).map(|s| s.element_type).collect();
    let (mut elements, mut begin) = (Vec::new(), Vec::new());
    for (&x, &init) in operands.iter().zip(initial) {
        begin.push(expr.node(init, 0, &[])?);
        if let Some((_, index)) = &found {
            // Evaluated where the guard holds.
            elements.push(expr.node(x, 0, index)?);
        }
    }
    let fold = Fold::of_nodes(&mut expr, combine, &elements, &begin, &types, 0);
    let outputs: Vec<_> = (0..).zip(&types).map(|(leaf, &ty)| fold.result(&mut expr, leaf, ty)).collect();
    let step_elements = vec![fold.operands.clone()];
    let folds = Folds { items: vec![Item { fold, elements: step_elements }], literal: true, partial: false };
    let blocks = (results + i64::from(THREADS) - 1) / i64::from(THREADS);
    let (e, arguments) = unit.begin(symbol, arrays, 0, THREADS)?;
    let wide = blocks.saturating_mul(i64::from(THREADS)).max(steps) >= i64::from(i32::MAX);
    let prim = if wide { Prim::I64 } else { Prim::I32 };
    let thread = thread_number(&e, prim, THREADS)?;
    let inside = e.icmp(IntPredicate::ULT, thread, e.int(prim, results.cast_unsigned()))?;
    e.if_then(inside, || {
        let mut code = Code::new(e, &expr, &arguments);
        let c = &mut code;
        c.set_var(KEPT, thread);
        let mut carried = registers(&folds.starts(c)?);
        if let Some((guard, _)) = found {
            let (low, high) = (e.int(prim, 0), e.int(prim, steps.cast_unsigned()));
            carried = e.for_carried(low, high, e.int(prim, 1), &carried, |step, carried| {
                c.scoped(|c| {
                    c.set_var(STEP, step);
                    let holds = c.guard(guard)?;
                    let mine = folds.values(carried);
                    let Some(holds) = holds else { return Ok(registers(&folds.step(c, &mine, None)?)) };
                    e.if_else(holds, || Ok(registers(&folds.step(c, &mine, None)?)), || Ok(carried.to_vec()))
                })
            })?;
        }
        let total = folds.values(&carried);
        folds.give(c, &total)?;
        for (root, &node) in roots.iter().zip(&outputs) {
            let value = c.value(node)?;
            c.store(&value, root.array, &number)?;
        }
        Ok(())
    })?;
    e.return_void()?;
    let arguments = (0..arrays).map(Argument::Array).collect();
    kernel.stages.push(Stage::Launch(launch(module, id, symbol, blocks, THREADS, arguments)?));
    Ok(kernel)
}

/// The number of the thread in a grid of one axis.
pub(super) fn thread_number<'ctx>(
    e: &hlo_llvm::Emit<'_, 'ctx>,
    prim: Prim,
    threads: u32,
) -> Result<Value<'ctx>> {
    let block = e.resize(e.special(Special::Ctaid(Axis::X))?, prim, false)?;
    let lane = e.resize(e.special(Special::Tid(Axis::X))?, prim, false)?;
    e.add(e.mul(block, e.int(prim, u64::from(threads)))?, lane)
}
