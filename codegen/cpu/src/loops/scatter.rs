//! Scatters: in place where the operand is a parameter without other readers (buffer assignment gives both
//! the same memory), otherwise into a copy, which is an earlier phase.
//!
//! Where index vectors select single rows of dimension 0, units are those rows: every chunk reads all index
//! vectors and applies those of its rows. Otherwise there is one unit. **Invariant:** each element gets its
//! updates in the order of the index vectors, however rows are divided.

use hlo::attrs::AttrKey;
use hlo::{InstrId, Module, Opcode};
use hlo_library_base::Unsupported;
use hlo_llvm::{IntPredicate, Result, Target, Value};
use hlo_opt::expr::index::Affine;
use hlo_opt::expr::scatter::Scattered;
use hlo_opt::expr::{Expr, GuardId, NodeId, array_leaves};

use super::code::Code;
use super::lanes::{self, over_lanes};
use super::nest::{self, Nest, bind_parameters, loops};
use super::region::{Combine, EmitCombine as _};
use super::{Cost, Function};

/// The number of chunks of rows: each reads all index vectors.
const CHUNKS: u64 = 8;

/// A planned scatter.
pub(super) struct Scatter<'m> {
    /// Variables of index vectors, and of the window.
    batch: Vec<(u32, i64)>,
    window: Vec<(u32, i64)>,
    /// Updates, and the arrays that they are combined into.
    updates: Vec<NodeId>,
    arrays: Vec<u32>,
    /// The row-major offset of an update's element.
    at: Affine,
    /// Holds where the window is within bounds.
    inside: GuardId,
    /// The row that an index vector selects and the number of rows, if units are rows.
    rows: Option<(Affine, i64)>,
    combine: Combine<'m>,
}

/// The root of a fusion if it is a scatter.
pub(super) fn root(module: &Module, id: InstrId) -> Option<InstrId> {
    let computation = module.instr(id).attrs.computation(AttrKey::Calls)?;
    let root = module.root(computation);
    let root = if module.instr(root).opcode == Opcode::Tuple {
        hlo_opt::expr::leaf_root(module, root, 0).0
    } else {
        root
    };
    let root = match module.instr(root).opcode {
        Opcode::GetTupleElement => module.instr(root).operands()[0],
        _ => root,
    };
    (module.instr(root).opcode == Opcode::Scatter).then_some(root)
}

/// The plan of a scatter: nests that copy its operands, and the scatter unless it changes nothing.
pub(super) type Planned<'m> = (Expr<'m>, Vec<Nest>, Option<Scatter<'m>>);

/// The scatter of a fusion.
pub(super) fn fusion(module: &Module, scatter: InstrId) -> std::result::Result<Planned<'_>, Unsupported> {
    let computation = module.instr(scatter).parent();
    let mut expr = Expr::new(module);
    let first_result = bind_parameters(&mut expr, computation, 0);
    let instr = module.instr(scatter);
    let operands = &instr.operands()[..instr.operands().len() / 2];
    let shape = module.instr(operands[0]).shape.expect_array();
    let arrays: Vec<u32> = array_leaves(&instr.shape)
        .enumerate()
        .map(|(i, shape)| expr.array(shape, first_result + i as u32))
        .collect();
    let mut copies = Vec::new();
    if shape.elements() == 0 {
        return Ok((expr, copies, None));
    }
    let in_place = operands.len() == 1
        && instr.shape.as_array().is_some()
        && module.root(computation) == scatter
        && module.instr(operands[0]).opcode == Opcode::Parameter
        && module.users(operands[0]).len() == 1;
    if !in_place {
        for (i, &o) in operands.iter().enumerate() {
            copies.push(Nest::of(&mut expr, o, arrays[i], 1000 + 100 * i as u32)?);
        }
    }
    let Some(Scattered { batch, window, updates, at, inside, rows }) = expr.scattered(scatter)? else {
        return Ok((expr, copies, None));
    };
    let Some(applied) = instr.attrs.computation(AttrKey::ToApply) else {
        return Err(Unsupported::new(module, scatter, "a scatter by nothing"));
    };
    let combine = Combine::literal(module, applied)?;
    let mut plan = Scatter { batch, window, updates, arrays, at, inside, rows, combine };
    let rows = &mut plan.rows;
    let mut more: Vec<&mut Affine> =
        [&mut plan.at].into_iter().chain(rows.as_mut().map(|r| &mut r.0)).collect();
    nest::join(&mut expr, &mut plan.batch, &mut more);
    nest::join(&mut expr, &mut plan.window, &mut more);
    Ok((expr, copies, Some(plan)))
}

impl<'m> Scatter<'m> {
    /// The number of units, and how many of them a chunk should have.
    pub(super) fn units(&self) -> (u64, u64) {
        let units = self.rows.as_ref().map_or(1, |r| r.1.unsigned_abs());
        (units, units.div_ceil(CHUNKS).max(1))
    }

    /// What it reads, writes and computes.
    pub(super) fn cost(&self, expr: &Expr<'_>) -> Cost {
        let all =
            self.batch.iter().chain(&self.window).fold(1u64, |n, v| n.saturating_mul(v.1.unsigned_abs()));
        let mut cost = super::cost::read(expr, self.updates.iter().copied(), all);
        for &array in &self.arrays {
            let bytes = expr.arrays[array as usize].shape.element_type.storage_bytes() as u64;
            cost.bytes = cost.bytes.saturating_add(all.saturating_mul(2 * bytes));
        }
        cost
    }

    /// Emits the function.
    pub(super) fn emit<'c, 'a, 'ctx>(
        &self,
        f: &Function<'a, 'ctx>,
        expr: &'c Expr<'m>,
        target: &Target,
    ) -> Result<()> {
        let [arguments, begin, end] = f.parameters;
        let inner = self.window.last().map_or(1, |v| v.1);
        let lanes = if inner <= 2 { 1 } else { lanes::lanes(expr, target, self.updates.iter().copied()) };
        let mut code = Code::new(f.e, expr, lanes, arguments)?;
        let c = &mut code;
        loops(c, &self.batch, &|c: &mut Code<'c, 'a, 'ctx, 'm>| {
            let e = c.e;
            let mut here: Option<Value<'ctx>> = c.mask(self.inside)?.map(|m| m.value);
            if let Some((row, _)) = &self.rows {
                // begin <= row < end, which also implies that the row exists.
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
