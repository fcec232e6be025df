//! Row fusions (softmax, normalizations and their gradients): reductions over rows and what depends on their
//! results, in one kernel.
//!
//! Some threads of a block, or all, have a row. Reductions that do not depend on one another share a sweep
//! over the row, and the per-element results are the last sweep. Short rows stay in registers from one sweep
//! to the next; of long ones each sweep reads and recomputes. **Invariants:** a thread reads the same
//! elements in every sweep, and stores those; what threads without an element read is before a barrier that
//! all stores of the block come after.

use hlo::attrs::AttrKey;
use hlo::{InstrId, Module};
use hlo_codegen::Unsupported;
use hlo_llvm::{Axis, IntPredicate, Prim, Result, Special, Value};
use hlo_opt::expr::fold::{Fold, wide_extremes};
use hlo_opt::expr::index::{Affine, Index};
use hlo_opt::expr::{Expr, NodeId, Op};
use hlo_opt::fusion::folds as spaces;
use rustc_hash::FxHashMap;

use super::folds::{Folds, Item, Steps, registers};
use super::loops::Output;
use super::reduce::{self, KEPT, STEP, div_up, power_from, power_to, store_outputs};
use super::{Unit, launch};
use crate::arch::WARP;
use crate::code::{ACCESS_BYTES, Code};
use crate::kernel::{Argument, Kernel, Stage};
use crate::subject::Subject;

/// Threads of a block of short rows, the maximum number that share a row, and the maximum if that keeps the
/// row in registers.
const THREADS: i64 = 256;
const MAX_THREADS: i64 = 512;
const MAX_THREADS_IN_REGISTERS: i64 = 1024;
/// Steps per iteration over a row that is not kept in registers.
const COPIES: i64 = 2;
/// Elements of all arrays that a thread keeps in registers: the preferred number, if that leaves enough
/// threads, and the maximum.
const KEPT_ELEMENTS: i64 = 16;
const MAX_KEPT_ELEMENTS: i64 = 32;
/// The maximum number of nodes of an expression that are computed for several elements in a step.
const MAX_NODES: usize = 4096;

/// A row fusion and its expression.
struct Chain<'m> {
    expr: Expr<'m>,
    rows: i64,
    /// Elements of a row, and how many a thread takes per step.
    length: i64,
    each: i64,
    sweeps: Vec<Folds<'m>>,
    /// Per-element outputs.
    elements: Vec<Output>,
    /// Per-row outputs.
    singles: Vec<Output>,
}

/// Emits a fusion.
pub(super) fn emit(unit: &Unit<'_, '_>, module: &Module, id: InstrId, symbol: &str) -> Result<Kernel> {
    let subject = Subject::new(module, id)?;
    let Ok(chain) = plan(module, id, &subject) else {
        return reduce::apart(unit, module, id, subject, symbol);
    };
    let mut kernel = Kernel::default();
    if chain.rows > 0 {
        kernel.stages.push(chain.emit(unit, module, id, subject.arrays, symbol)?);
    }
    Ok(kernel)
}

/// Chooses how many elements a thread takes per step.
fn plan<'m>(
    module: &'m Module,
    id: InstrId,
    subject: &Subject<'m>,
) -> std::result::Result<Chain<'m>, Unsupported> {
    let single = build(module, id, subject, 1)?;
    if single.is_literal() {
        return Ok(single);
    }
    let mut each = (ACCESS_BYTES.cast_signed() / single.widest()).clamp(1, 8);
    while each > 1 && single.length % each != 0 {
        each /= 2;
    }
    if each == 1 {
        return Ok(single);
    }
    let chain = build(module, id, subject, each)?;
    Ok(if chain.expr.nodes.len() > MAX_NODES { single } else { chain })
}

fn build<'m>(
    module: &'m Module,
    id: InstrId,
    subject: &Subject<'m>,
    each: i64,
) -> std::result::Result<Chain<'m>, Unsupported> {
    let refuse = |at: InstrId, reason: &str| Err(Unsupported::new(module, at, reason));
    let Some(computation) = module.instr(id).attrs.computation(AttrKey::Calls) else {
        return refuse(id, "a fusion of nothing");
    };
    let mut expr = subject.expr.clone();
    let reductions = spaces::all(module, computation);
    let Some((row_dims, inner_dims)) = reductions.first().and_then(|(_, space)| space.rows()) else {
        return refuse(id, "a reduction of what are no rows");
    };
    let count = |dims: &[i64]| dims.iter().product::<i64>();
    let (rows, length) = (count(row_dims), count(inner_dims));
    let dims: Vec<i64> = row_dims.iter().chain(inner_dims).copied().collect();
    let row = expr.space.var(KEPT, rows);
    let step = expr.space.var(STEP, length / each);
    let at_row = expr.space.delinear(&row, row_dims);
    let mut at_elements: Vec<Index> = Vec::new();
    for i in 0..each {
        at_elements.push(expr.space.delinear(&step.times(each).plus(i), inner_dims));
    }
    // Each reduction goes into the first sweep for which everything that it needs is known.
    let mut sweep_of: FxHashMap<u32, usize> = FxHashMap::default();
    let mut sweeps: Vec<Vec<Item<'m>>> = Vec::new();
    let mut given = 0;
    for &(reduction, ref space) in &reductions {
        let same = |of: &(&[i64], &[i64])| count(of.0) == rows && count(of.1) == length;
        let Some((own_rows, own_row)) = space.rows().filter(same) else {
            return refuse(reduction, "reductions of different rows in a fusion");
        };
        let result_at = expr.space.reshape(&at_row, row_dims, own_rows);
        let mut item: Option<Item<'m>> = None;
        for inner in &at_elements {
            let mut at = result_at.clone();
            at.extend(expr.space.reshape(inner, inner_dims, own_row));
            let mut fold = Fold::new(&mut expr, id, reduction, &at, given, wide_extremes)?;
            let element = std::mem::take(&mut fold.operands);
            match &mut item {
                Some(item) => item.elements.push(element),
                None => item = Some(Item { fold, elements: vec![element] }),
            }
        }
        let Some(item) = item else { return refuse(reduction, "a reduction of nothing") };
        given += item.fold.given.len() as u32;
        let needs = expr.reachable(item.elements[0].iter().chain(&item.fold.initial).copied());
        let after = needs.iter().filter_map(|&n| match expr.nodes[n as usize].op {
            Op::Given { number } => sweep_of.get(&number).map(|sweep| sweep + 1),
            _ => None,
        });
        let sweep = after.max().unwrap_or(0);
        item.fold.bind(&mut expr, reduction, &result_at);
        sweep_of.extend(item.fold.given.iter().map(|&number| (number, sweep)));
        if sweeps.len() <= sweep {
            sweeps.resize_with(sweep + 1, Vec::new);
        }
        sweeps[sweep].push(item);
    }
    let (mut elements, mut singles) = (Vec::new(), Vec::new());
    for root in &subject.roots {
        let total = count(&root.shape.dims);
        if total == rows * length && (length != 1 || root.shape.dims.len() == dims.len()) {
            for (i, inner) in (0..).zip(&at_elements) {
                let index: Index = at_row.iter().chain(inner).cloned().collect();
                let at = expr.space.reshape(&index, &dims, &root.shape.dims);
                let node = expr.node(root.instr, root.leaf, &at)?;
                let number = expr.space.add(&row.times(length), &step.times(each)).plus(i);
                elements.push(Output { node, array: root.array, at: number });
            }
        } else if total == rows {
            let at = expr.space.reshape(&at_row, row_dims, &root.shape.dims);
            let node = expr.node(root.instr, root.leaf, &at)?;
            singles.push(Output { node, array: root.array, at: row.clone() });
        } else {
            return refuse(id, "a result of other dimensions than its rows'");
        }
    }
    let is_literal = |items: &[Item<'m>]| length == 0 || items.iter().any(|item| !item.fold.combine.free());
    let folds = |items: Vec<Item<'m>>| Folds { literal: is_literal(&items), items, partial: false };
    let sweeps = sweeps.into_iter().map(folds).collect();
    Ok(Chain { expr, rows, length, each, sweeps, elements, singles })
}

impl<'m> Chain<'m> {
    /// Whether a row has to be reduced in order.
    fn is_literal(&self) -> bool {
        self.sweeps.iter().any(|folds| folds.literal)
    }

    /// All nodes that are computed for the elements of a step.
    fn of_elements(&self) -> Vec<NodeId> {
        let stored = self.elements.iter().map(|o| o.node);
        self.sweeps.iter().flat_map(Folds::elements).chain(stored).collect()
    }

    /// Loads of a step.
    fn loads(&self) -> impl Iterator<Item = (u32, &Affine)> {
        let nodes = self.expr.reachable(self.of_elements().into_iter());
        nodes.into_iter().filter_map(|n| match &self.expr.nodes[n as usize].op {
            Op::Load { array, at, .. } => self.varies(at).then_some((*array, at)),
            _ => None,
        })
    }

    fn varies(&self, at: &Affine) -> bool {
        !self.expr.vars_in(at, &mut |var| var != STEP)
    }

    fn bytes_of(&self, array: u32) -> i64 {
        self.expr.arrays[array as usize].shape.element_type.storage_bytes() as i64
    }

    /// The size of the widest element that is loaded or stored, in bytes.
    fn widest(&self) -> i64 {
        let loaded = self.loads().map(|(array, _)| self.bytes_of(array));
        let stored = self.elements.iter().map(|o| self.bytes_of(o.array));
        loaded.chain(stored).max().unwrap_or(1)
    }

    /// Threads per row, and whether its elements stay in registers.
    fn width(&self) -> (i64, bool) {
        if self.is_literal() {
            return (1, false);
        }
        let steps = self.length / self.each;
        let of_step = (self.loads().count() as i64).max(self.each);
        let kept = |width: i64| div_up(steps, width) * of_step;
        let mut width =
            power_from(div_up(steps * of_step, KEPT_ELEMENTS)).min(power_to(steps)).min(MAX_THREADS);
        while width < MAX_THREADS && width * 2 <= power_from(steps) && kept(width) > KEPT_ELEMENTS {
            width *= 2;
        }
        if kept(width) > MAX_KEPT_ELEMENTS && kept(MAX_THREADS_IN_REGISTERS) <= MAX_KEPT_ELEMENTS {
            width = MAX_THREADS_IN_REGISTERS;
        }
        (width, kept(width) <= MAX_KEPT_ELEMENTS)
    }

    fn emit(
        &self,
        unit: &Unit<'_, '_>,
        module: &Module,
        id: InstrId,
        arrays: u32,
        symbol: &str,
    ) -> Result<Stage> {
        let steps = self.length / self.each;
        let (width, in_registers) = self.width();
        let of_block = power_from(self.rows).min((THREADS / width).max(1)).max(i64::from(WARP) / width);
        let threads = (width * of_block) as u32;
        let blocks = div_up(self.rows, of_block);
        let (e, arguments) = unit.begin(symbol, arrays, 0, threads)?;
        let wide = (blocks * i64::from(threads)).max(steps + 2 * i64::from(threads)) > i64::from(i32::MAX);
        let prim = if wide { Prim::I64 } else { Prim::I32 };
        let int = |n: i64| e.int(prim, n.cast_unsigned());
        let thread = e.special(Special::Tid(Axis::X))?;
        let block = e.resize(e.special(Special::Ctaid(Axis::X))?, prim, false)?;
        let own = e.resize(e.udiv(thread, e.i32(width as i32))?, prim, false)?;
        let first = e.resize(e.urem(thread, e.i32(width as i32))?, prim, false)?;
        let mut row = e.add(e.mul(block, int(of_block))?, own)?;
        let mut row_exists = None;
        if self.rows % of_block != 0 {
            // Threads of rows that do not exist repeat the last one, and store nothing.
            let exists = e.icmp(IntPredicate::ULT, row, int(self.rows))?;
            row = e.select(exists, row, int(self.rows - 1))?;
            row_exists = Some(exists);
        }
        let mut code = Code::new(e, &self.expr, &arguments);
        let c = &mut code;
        c.set_var(KEPT, row);
        let stored: Vec<NodeId> = self.elements.iter().map(|o| o.node).collect();
        // The steps of a thread, where they are unrolled, and which of them exist.
        let mut scopes = Vec::new();
        if in_registers {
            for i in 0..div_up(steps, width) {
                let mut step = if i == 0 { first } else { e.add(first, int(i * width))? };
                let mut exists = None;
                if (i + 1) * width > steps {
                    let inside = e.icmp(IntPredicate::ULT, step, int(steps))?;
                    step = e.select(inside, step, int(steps - 1))?;
                    exists = Some(inside);
                }
                let scope = c.begun(|c| {
                    c.set_var(STEP, step);
                    c.load_runs(self.sweeps[0].elements())
                })?;
                scopes.push((scope, exists));
            }
        }
        for (number, folds) in self.sweeps.iter().enumerate() {
            let start = folds.starts(c)?;
            let mut carried = registers(&start);
            c.hoist(folds.elements(), STEP)?;
            if in_registers {
                for (scope, exists) in &mut scopes {
                    let within = exists.map(|exists| (exists, &start[..]));
                    carried = c.resumed(scope, |c| {
                        c.load_runs(folds.elements())?;
                        Ok(registers(&folds.step(c, &folds.values(&carried), within)?))
                    })?;
                }
            } else if self.length > 0 {
                let (low, high, pace) = (first, int(steps), width);
                let mut copies = if folds.literal { 1 } else { COPIES };
                while copies > 1 && steps < copies * pace {
                    copies /= 2;
                }
                let remain = steps % (copies * pace) != 0;
                carried = folds.over(c, &Steps { var: STEP, low, high, pace, copies, remain }, carried)?;
            }
            let total = folds.values(&carried);
            // Each sweep has shared memory of its own, so none waits before it is written again.
            let shared = format!("{symbol}_shared{number}");
            let total = match folds.literal {
                true => total,
                false => folds.across_lanes(e, thread, threads, width as u32, &shared, &total)?,
            };
            folds.give(c, &total)?;
        }
        let is_apart = row_exists.is_none() && scopes.iter().all(|(_, exists)| exists.is_none());
        if width <= i64::from(WARP) && !is_apart {
            e.barrier()?;
        }
        if !self.singles.is_empty() {
            let leads = e.icmp(IntPredicate::EQ, first, int(0))?;
            let leads = row_exists.map_or(Ok(leads), |exists| e.and(leads, exists))?;
            e.if_then(leads, || c.scoped(|c| store_outputs(c, &self.singles)))?;
        }
        if !self.elements.is_empty() {
            c.hoist(stored.iter().copied(), STEP)?;
        }
        for (scope, exists) in scopes.iter_mut().filter(|_| !self.elements.is_empty()) {
            let conditions: Vec<Value<'_>> = exists.iter().copied().chain(row_exists).collect();
            let mut store = || {
                c.resumed(scope, |c| {
                    c.load_runs(stored.iter().copied())?;
                    store_outputs(c, &self.elements)
                })
            };
            match conditions[..] {
                [] => store()?,
                [one] => e.if_then(one, store)?,
                _ => e.if_then(e.and(conditions[0], conditions[1])?, store)?,
            }
        }
        if !in_registers && !self.elements.is_empty() && self.length > 0 {
            let mut store = || {
                e.for_range(first, int(steps), int(width), |step| {
                    c.scoped(|c| {
                        c.set_var(STEP, step);
                        c.load_runs(stored.iter().copied())?;
                        store_outputs(c, &self.elements)
                    })
                })
            };
            match row_exists {
                Some(exists) => e.if_then(exists, store)?,
                None => store()?,
            }
        }
        e.return_void()?;
        let arguments = (0..arrays).map(Argument::Array).collect();
        Ok(Stage::Launch(launch(module, id, symbol, blocks, threads, arguments)?))
    }
}
