//! Loop fusions and single elementwise or data movement instructions: a thread computes some contiguous
//! elements of the results.
//!
//! **Invariant:** a thread loads everything that it reads before it stores anything, and where memory is
//! shared no other thread reads what it stores.

use hlo::{InstrId, Module, Opcode};
use hlo_codegen::Unsupported;
use hlo_llvm::scalar::Val;
use hlo_llvm::{Axis, IntPredicate, Prim, Result, Special};
use hlo_opt::expr::index::{Affine, Index};
use hlo_opt::expr::{Expr, NodeId};

use super::{Unit, launch};
use crate::code::{ACCESS_BYTES, Code};
use crate::kernel::{Argument, Kernel, Stage};
use crate::subject::{Root, Subject};

/// Threads of a block.
const THREADS: u32 = 256;

/// The maximum number of nodes of an expression that a thread computes for several elements.
const MAX_NODES: usize = 4096;

/// A value and where it is stored.
pub(crate) struct Output {
    pub(crate) node: NodeId,
    pub(crate) array: u32,
    pub(crate) at: Affine,
}

/// Results of the same dimensions, or windows of such.
struct Space<'m> {
    dims: Vec<i64>,
    roots: Vec<(Root<'m>, Option<InstrId>)>,
}

/// The update of a root that writes a window of its operand in place.
pub(crate) fn in_place_update(module: &Module, root: InstrId, is_alone: bool) -> Option<InstrId> {
    let instr = module.instr(root);
    if instr.opcode != Opcode::DynamicUpdateSlice {
        return None;
    }
    let &[of, update, ..] = instr.operands() else { return None };
    let sole = module.users(of).len() == 1 && module.instr(of).opcode == Opcode::Parameter;
    let empty = module.instr(of).shape.as_array().is_none_or(|a| a.elements() == 0);
    ((sole || is_alone) && !empty).then_some(update)
}

/// Emits an instruction.
pub(super) fn emit(unit: &Unit<'_, '_>, module: &Module, id: InstrId, symbol: &str) -> Result<Kernel> {
    if let Some(kernel) = super::transpose::emit(unit, module, id, symbol)? {
        return Ok(kernel);
    }
    let Subject { expr, roots, arrays } = Subject::new(module, id)?;
    let mut kernel = Kernel::default();
    self::roots(unit, module, id, &expr, roots, arrays, symbol, &mut kernel)?;
    Ok(kernel)
}

/// Emits launches that compute roots element by element.
#[expect(clippy::too_many_arguments, reason = "what a kernel is made of")]
pub(super) fn roots(
    unit: &Unit<'_, '_>,
    module: &Module,
    id: InstrId,
    expr: &Expr<'_>,
    roots: Vec<Root<'_>>,
    arrays: u32,
    symbol: &str,
    kernel: &mut Kernel,
) -> Result<()> {
    let is_alone = module.instr(id).opcode == Opcode::DynamicUpdateSlice;
    let mut spaces: Vec<Space<'_>> = Vec::new();
    for root in roots {
        let update = in_place_update(module, root.instr, is_alone);
        let shape = match update {
            Some(update) => module.instr(update).shape.expect_array(),
            None => root.shape,
        };
        let dims: Vec<i64> = shape.dims.to_vec();
        match spaces.iter_mut().find(|s| s.dims == dims) {
            Some(space) => space.roots.push((root, update)),
            None => spaces.push(Space { dims, roots: vec![(root, update)] }),
        }
    }
    for (n, space) in spaces.iter().filter(|s| !s.dims.contains(&0)).enumerate() {
        let symbol = if n == 0 { symbol.to_owned() } else { format!("{symbol}_{n}") };
        emit_space(unit, module, id, expr, space, arrays, &symbol, kernel)?;
    }
    Ok(())
}

/// The stores for an element of a space, of all roots.
fn outputs(
    expr: &mut Expr<'_>,
    space: &Space<'_>,
    index: &Index,
    into: &mut Vec<Output>,
) -> std::result::Result<(), Unsupported> {
    for (root, update) in &space.roots {
        let (node, to) = match update {
            Some(update) => {
                let starts = expr.window_starts(root.instr, 2, &root.shape.dims, &space.dims)?;
                let to: Index = index.iter().zip(&starts).map(|(x, s)| expr.space.add(x, s)).collect();
                (expr.node(*update, 0, index)?, to)
            }
            None => (expr.node(root.instr, root.leaf, index)?, index.clone()),
        };
        let at = expr.space.linear(&to, &root.shape.dims);
        into.push(Output { node, array: root.array, at });
    }
    Ok(())
}

/// The variable that counts threads.
const THREAD: u32 = 0;

#[expect(clippy::too_many_arguments, reason = "what a kernel is made of")]
fn emit_space(
    unit: &Unit<'_, '_>,
    module: &Module,
    id: InstrId,
    expr: &Expr<'_>,
    space: &Space<'_>,
    arrays: u32,
    symbol: &str,
    kernel: &mut Kernel,
) -> Result<()> {
    let elements: i64 = space.dims.iter().product();
    // Elements per thread: as many as the widest access has, while there is a thread for each lane of the
    // device.
    let widest = space.roots.iter().map(|(r, _)| r.shape.element_type.storage_bytes() as i64).max();
    let figures = unit.arch.figures();
    let resident = i64::from(figures.multiprocessors) * i64::from(figures.resident_threads);
    let mut per_thread = (ACCESS_BYTES.cast_signed() / widest.unwrap_or(1)).clamp(1, 8);
    while per_thread > 1 && (elements % per_thread != 0 || elements / per_thread < resident) {
        per_thread /= 2;
    }
    let (expr, outputs) = loop {
        let mut expr = expr.clone();
        let mut stored = Vec::new();
        let thread = expr.space.var(THREAD, elements / per_thread);
        for element in 0..per_thread {
            let number = thread.times(per_thread).plus(element);
            let index = expr.space.delinear(&number, &space.dims);
            outputs(&mut expr, space, &index, &mut stored)?;
        }
        if per_thread == 1 || expr.nodes.len() <= MAX_NODES {
            break (expr, stored);
        }
        per_thread /= 2;
    };
    let threads = elements / per_thread;
    let blocks = (threads + i64::from(THREADS) - 1) / i64::from(THREADS);
    let (e, arguments) = unit.begin(symbol, arrays, 0, THREADS)?;
    // The linear index of a thread, in 32 bits where all fit.
    let wide = blocks.saturating_mul(i64::from(THREADS)) > i64::from(i32::MAX);
    let prim = if wide { Prim::I64 } else { Prim::I32 };
    let block = e.resize(e.special(Special::Ctaid(Axis::X))?, prim, false)?;
    let lane = e.resize(e.special(Special::Tid(Axis::X))?, prim, false)?;
    let thread = e.add(e.mul(block, e.int(prim, u64::from(THREADS)))?, lane)?;
    let body = || -> Result<()> {
        let mut code = Code::new(e, &expr, &arguments);
        code.set_var(THREAD, thread);
        code.join_loads(per_thread.cast_unsigned());
        let mut values = Vec::with_capacity(outputs.len());
        for output in &outputs {
            values.push(code.value(output.node)?);
        }
        // Addresses too before anything is stored: they may depend on what is read.
        for output in &outputs {
            code.address(output.array, &output.at)?;
        }
        // Outputs come element by element, all roots of each.
        let roots = space.roots.len();
        for root in 0..roots {
            let of_root = |element: usize| element * roots + root;
            let (mut element, elements) = (0, outputs.len() / roots);
            while element < elements {
                let first = &outputs[of_root(element)];
                let mut width = elements - element;
                let is_run = |width: usize| {
                    let consecutive = (1..width).all(|k| {
                        let other = &outputs[of_root(element + k)].at;
                        other.terms == first.at.terms && other.constant == first.at.constant + k as i64
                    });
                    consecutive && code.is_vector(first.array, &first.at, width as u64)
                };
                while width > 1 && !(width.is_power_of_two() && is_run(width)) {
                    width -= 1;
                }
                let of_run: Vec<Val<'_>> = (element..element + width).map(|k| values[of_root(k)]).collect();
                if width > 1 && !of_run[0].ty().is_complex() {
                    code.store_vector(&of_run, first.array, &first.at)?;
                } else {
                    for (k, value) in of_run.iter().enumerate() {
                        let output = &outputs[of_root(element + k)];
                        code.store(value, output.array, &output.at)?;
                    }
                }
                element += width;
            }
        }
        Ok(())
    };
    if threads == blocks * i64::from(THREADS) {
        body()?;
    } else {
        let inside = e.icmp(IntPredicate::ULT, thread, e.int(prim, threads.cast_unsigned()))?;
        e.if_then(inside, body)?;
    }
    e.return_void()?;
    let arguments = (0..arrays).map(Argument::Array).collect();
    kernel.stages.push(Stage::Launch(launch(module, id, symbol, blocks, THREADS, arguments)?));
    Ok(())
}
