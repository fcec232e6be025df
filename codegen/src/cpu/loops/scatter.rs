//! Scatters, in the place of an operand that is a parameter which nothing else reads (buffer assignment gives both the same memory), otherwise into a
//! copy, which is a phase before.
//!
//! Where index vectors choose single rows of the first dimension, units are those rows, and every chunk looks at all index vectors and takes those of its
//! rows; otherwise there is one unit. **Invariant:** each element sees its updates in the order of the index vectors, however rows are divided.

use hlo::attrs::AttrKey;
use hlo::{InstrId, Module, Opcode};

use super::code::Code;
use super::lanes::{self, over_lanes};
use super::nest::{self, Nest, bind_parameters, loops, variables};
use super::region::Combine;
use super::{Cost, Function};
use crate::Unsupported;
use crate::cpu::llvm::{IntPredicate, Result, Target, Value};
use crate::tape::index::{Affine, Index};
use crate::tape::{ALWAYS, Condition, GuardId, NodeId, Tape, array_leaves};

/// Chunks of rows: each looks at all index vectors.
const CHUNKS: u64 = 8;

/// A scatter.
pub(super) struct Scatter<'m> {
    /// Variables of index vectors, and in a window.
    batch: Vec<(u32, i64)>,
    window: Vec<(u32, i64)>,
    /// Updates, and the arrays that they are combined into.
    updates: Vec<NodeId>,
    arrays: Vec<u32>,
    /// Where an update goes.
    at: Affine,
    /// Where its window is inside.
    inside: GuardId,
    /// The row that an index vector chooses, and how many there are, if units are rows.
    rows: Option<(Affine, i64)>,
    combine: Combine<'m>,
}

/// The root of a fusion if it is a scatter.
pub(super) fn root(module: &Module, id: InstrId) -> Option<InstrId> {
    let computation = module.instr(id).attrs.computation(AttrKey::Calls)?;
    let root = module.root(computation);
    let root = if module.instr(root).opcode == Opcode::Tuple {
        crate::tape::leaf_root(module, root, 0).0
    } else {
        root
    };
    let root = match module.instr(root).opcode {
        Opcode::GetTupleElement => module.instr(root).operands()[0],
        _ => root,
    };
    (module.instr(root).opcode == Opcode::Scatter).then_some(root)
}

/// What is planned for a scatter: nests that copy its operands, and the scatter unless it changes nothing.
pub(super) type Planned<'m> = (Tape<'m>, Vec<Nest>, Option<Scatter<'m>>);

/// The scatter of a fusion.
pub(super) fn fusion(module: &Module, scatter: InstrId) -> std::result::Result<Planned<'_>, Unsupported> {
    let computation = module.instr(scatter).parent();
    let mut tape = Tape::new(module);
    let first_result = bind_parameters(&mut tape, computation, 0);
    let instr = module.instr(scatter);
    let count = instr.operands().len() / 2;
    let (operands, rest) = instr.operands().split_at(count);
    let (indices, updates) = (rest[0], &rest[1..]);
    let shape = module.instr(operands[0]).shape.expect_array();
    let update_dims = &module.instr(updates[0]).shape.expect_array().dims;
    let a = &instr.attrs;
    let window_dims = a.ints_or_empty(AttrKey::UpdateWindowDims);
    let (inserted, batching) =
        (a.ints_or_empty(AttrKey::InsertedWindowDims), a.ints_or_empty(AttrKey::InputBatchingDims));
    let indices_batching = a.ints_or_empty(AttrKey::ScatterIndicesBatchingDims);
    let vector = a.int(AttrKey::IndexVectorDim).unwrap_or(0);
    let map = a.ints_or_empty(AttrKey::ScatterDimsToOperandDims);
    let arrays: Vec<u32> = array_leaves(&instr.shape)
        .enumerate()
        .map(|(i, shape)| tape.array(shape, first_result + i as u32))
        .collect();
    let mut copies = Vec::new();
    if shape.elements() == 0 {
        return Ok((tape, copies, None));
    }
    let in_place = count == 1
        && instr.shape.as_array().is_some()
        && module.root(computation) == scatter
        && module.instr(operands[0]).opcode == Opcode::Parameter
        && module.users(operands[0]).len() == 1;
    if !in_place {
        for (i, &o) in operands.iter().enumerate() {
            copies.push(Nest::of(&mut tape, o, arrays[i], 1000 + 100 * i as u32)?);
        }
    }
    if update_dims.contains(&0) {
        return Ok((tape, copies, None));
    }
    let (index, vars) = variables(&mut tape, update_dims, 0);
    let is_window = |d: usize| window_dims.contains(&(d as i64));
    let batch_index: Index =
        index.iter().enumerate().filter(|(d, _)| !is_window(*d)).map(|(_, x)| x.clone()).collect();
    let starts = tape.index_vector(indices, &batch_index, vector, map)?;
    let mut offsets =
        window_dims.iter().filter_map(|&d| Some((index.get(d as usize)?.clone(), update_dims[d as usize])));
    let (mut to, mut inside, mut rows) = (Index::new(), Vec::new(), None);
    for (d, &n) in shape.dims.iter().enumerate() {
        let dim = d as i64;
        if let Some(b) = batching.iter().position(|&x| x == dim) {
            let s = indices_batching.get(b).copied().unwrap_or(0);
            let place = usize::try_from(if s > vector { s - 1 } else { s }).unwrap_or(0);
            to.push(batch_index.get(place).cloned().unwrap_or_default());
            continue;
        }
        let (offset, window) = if inserted.contains(&dim) {
            (Affine::default(), 1)
        } else {
            offsets.next().unwrap_or((Affine::default(), 1))
        };
        let mut at = offset;
        if let Some(&(_, node)) = starts.iter().find(|s| s.0 == dim) {
            if window > n {
                return Ok((tape, copies, None));
            }
            // One beyond either end stands for all that is outside.
            let start = tape.space.value(node, -1, n - window + 1);
            inside.push(Condition { value: start.clone(), low: 0, high: n - window + 1 });
            if d == 0 && window == 1 {
                rows = Some((start.clone(), n));
            }
            at = tape.space.add(&start, &at);
        } else if window > n {
            return Ok((tape, copies, None));
        }
        to.push(at);
    }
    let at = tape.space.linear(&to, &shape.dims);
    let Some(inside) = tape.guard(ALWAYS, &inside) else { return Ok((tape, copies, None)) };
    let updates =
        updates.iter().map(|&u| tape.node(u, 0, &index)).collect::<std::result::Result<Vec<_>, _>>()?;
    let Some(applied) = a.computation(AttrKey::ToApply) else {
        return Err(Unsupported::new(module, scatter, "a scatter by nothing"));
    };
    let combine = Combine::literal(module, applied)?;
    let (window, batch): (Vec<_>, Vec<_>) = vars.into_iter().partition(|v| is_window(v.0 as usize));
    let mut order = window;
    // Window dimensions as they are listed.
    order.sort_by_key(|v| window_dims.iter().position(|&d| d == i64::from(v.0)));
    let mut plan = Scatter { batch, window: order, updates, arrays, at, inside, rows, combine };
    let rows = &mut plan.rows;
    let mut more: Vec<&mut Affine> =
        [&mut plan.at].into_iter().chain(rows.as_mut().map(|r| &mut r.0)).collect();
    nest::join(&mut tape, &mut plan.batch, &mut more);
    nest::join(&mut tape, &mut plan.window, &mut more);
    Ok((tape, copies, Some(plan)))
}

impl<'m> Scatter<'m> {
    /// Units, and of how many chunks are.
    pub(super) fn units(&self) -> (u64, u64) {
        let units = self.rows.as_ref().map_or(1, |r| r.1.unsigned_abs());
        (units, units.div_ceil(CHUNKS).max(1))
    }

    /// What it reads, writes and computes.
    pub(super) fn cost(&self, tape: &Tape<'_>) -> Cost {
        let all =
            self.batch.iter().chain(&self.window).fold(1u64, |n, v| n.saturating_mul(v.1.unsigned_abs()));
        let mut cost = super::cost::read(tape, self.updates.iter().copied(), all);
        for &array in &self.arrays {
            let bytes = tape.arrays[array as usize].shape.element_type.storage_bytes() as u64;
            cost.bytes = cost.bytes.saturating_add(all.saturating_mul(2 * bytes));
        }
        cost
    }

    /// Emits the function.
    pub(super) fn emit<'c, 'a, 'ctx>(
        &self,
        f: &Function<'a, 'ctx>,
        tape: &'c Tape<'m>,
        target: &Target,
    ) -> Result<()> {
        let [arguments, begin, end] = f.parameters;
        let inner = self.window.last().map_or(1, |v| v.1);
        let lanes = if inner <= 2 { 1 } else { lanes::lanes(tape, target, self.updates.iter().copied()) };
        let mut code = Code::new(f.e, tape, lanes, arguments)?;
        let c = &mut code;
        loops(c, &self.batch, &|c: &mut Code<'c, 'a, 'ctx, 'm>| {
            let e = c.e;
            let mut here: Option<Value<'ctx>> = c.mask(self.inside)?.map(|m| m.value);
            if let Some((row, _)) = &self.rows {
                // begin <= row < end, which also says that it exists.
                let row = c.number(row)?.base;
                let mine = e.icmp(IntPredicate::ULT, e.sub(row, begin)?, e.sub(end, begin)?)?;
                here = Some(here.map_or(Ok(mine), |h| e.and(h, mine))?);
            }
            let body = |c: &mut Code<'c, 'a, 'ctx, 'm>| -> Result<()> {
                c.enter()?;
                match self.window.split_last() {
                    None => {
                        let lanes = std::mem::replace(&mut c.lanes, 1);
                        self.element(c)?;
                        c.lanes = lanes;
                    }
                    Some((&(var, n), outer)) => {
                        let w = i64::from(c.lanes);
                        loops(c, outer, &|c| {
                            over_lanes(c, target, var, e.i64(0), e.i64(n), Some(n), w, &|c| self.element(c))
                        })?;
                    }
                }
                c.leave();
                Ok(())
            };
            match here {
                None => body(c),
                Some(here) => {
                    c.mark()?;
                    e.if_then(here, || body(c))?;
                    c.mark()
                }
            }
        })?;
        f.e.return_void()
    }

    fn element(&self, c: &mut Code<'_, '_, '_, 'm>) -> Result<()> {
        let mut updates = Vec::new();
        for &u in &self.updates {
            updates.push(c.value(u)?);
        }
        let before = self.arrays.iter().map(|&a| c.load_here(a, &self.at)).collect::<Result<Vec<_>>>()?;
        let after = self.combine.apply(&c.e.with_lanes(c.lanes), c.arguments, &before, &updates)?;
        for (&array, value) in self.arrays.iter().zip(&after) {
            c.store_value(value, array, &self.at, false)?;
        }
        Ok(())
    }
}
