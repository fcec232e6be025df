//! An expression evaluated by one thread: indices, addresses, guards and values in registers.
//!
//! **Invariants:** a value is emitted once per scope, operands first, at the builder's position when it is
//! first asked for; values of a loop body are forgotten after it ([`Code::scoped`]). Indices are `i32`
//! wherever their range, and that of every partial sum, fits.

use std::collections::BTreeMap;

use hlo::ElementType;
use hlo::elementwise::Binary;
use hlo_codegen::runtime::raw::bytes_of;
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Emit, Error, IntPredicate, Prim, Result, Value};
use hlo_opt::expr::index::{Affine, AtomId, Def};
use hlo_opt::expr::{ALWAYS, Expr, GuardId, NodeId, Op};
use rustc_hash::FxHashMap;

/// The values emitted so far.
#[derive(Clone, Default)]
struct Known<'ctx> {
    nodes: FxHashMap<NodeId, Val<'ctx>>,
    atoms: FxHashMap<AtomId, Value<'ctx>>,
    /// Addresses of elements at offsets with these terms and the constant 0.
    addresses: FxHashMap<(u32, Affine), Value<'ctx>>,
    vars: FxHashMap<u32, Value<'ctx>>,
    given: FxHashMap<u32, Val<'ctx>>,
}

/// Loads by array and variable part of the offset: their constants, and nodes.
type Runs = BTreeMap<(u32, Vec<(AtomId, i64)>), Vec<(i64, NodeId)>>;

/// The values of a scope that is resumed later.
pub(crate) struct Scope<'ctx>(Known<'ctx>);

/// The emitter of an expression in a function.
pub(crate) struct Code<'t, 'm, 'a, 'ctx> {
    /// The emitter of instructions.
    pub(crate) e: Emit<'a, 'ctx>,
    expr: &'t Expr<'m>,
    /// Addresses of arrays, by argument number.
    arguments: &'t [Value<'ctx>],
    known: Known<'ctx>,
    /// Vectorized loads: for each load the first of its group and its position in the group.
    grouped: FxHashMap<NodeId, (NodeId, u32)>,
    /// The nodes of each group, by its first.
    groups: FxHashMap<NodeId, Vec<NodeId>>,
}

/// The widest access of a thread, in bytes.
pub(crate) const ACCESS_BYTES: u64 = 16;

impl<'t, 'm, 'a, 'ctx> Code<'t, 'm, 'a, 'ctx> {
    /// In a function with these arguments.
    pub(crate) fn new(e: Emit<'a, 'ctx>, expr: &'t Expr<'m>, arguments: &'t [Value<'ctx>]) -> Self {
        Self {
            e,
            expr,
            arguments,
            known: Known::default(),
            grouped: FxHashMap::default(),
            groups: FxHashMap::default(),
        }
    }

    /// Sets a loop variable: an `i32` or `i64`.
    pub(crate) fn set_var(&mut self, var: u32, value: Value<'ctx>) {
        self.known.vars.insert(var, value);
    }

    /// Defines a given value ([`Op::Given`]).
    pub(crate) fn give(&mut self, number: u32, value: Val<'ctx>) {
        self.known.given.insert(number, value);
    }

    /// Defines a node, so that it is not computed.
    pub(crate) fn set_value(&mut self, node: NodeId, value: Val<'ctx>) {
        self.known.nodes.insert(node, value);
    }

    /// Emits code whose values are forgotten after it: the body of a loop, a branch.
    pub(crate) fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let known = self.known.clone();
        let result = f(self);
        self.known = known;
        result
    }

    /// Emits code whose values are forgotten after it, except by [`Code::resumed`].
    pub(crate) fn begun(&mut self, f: impl FnOnce(&mut Self) -> Result<()>) -> Result<Scope<'ctx>> {
        let known = self.known.clone();
        let result = f(self);
        let scope = Scope(std::mem::replace(&mut self.known, known));
        result.map(|()| scope)
    }

    /// Emits code in which the values of a scope are known, in addition to what was given and emitted outside
    /// of it since.
    pub(crate) fn resumed<T>(
        &mut self,
        scope: &mut Scope<'ctx>,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        scope.0.given.extend(self.known.given.iter().map(|(&number, &value)| (number, value)));
        scope.0.nodes.extend(self.known.nodes.iter().map(|(&node, &value)| (node, value)));
        std::mem::swap(&mut self.known, &mut scope.0);
        let result = f(self);
        std::mem::swap(&mut self.known, &mut scope.0);
        result
    }

    /// Whether an affine expression, and every partial sum, fits an `i32`.
    fn is_narrow(&self, x: &Affine) -> bool {
        let limit = i64::from(i32::MAX);
        let mut sum = x.constant.saturating_abs();
        for &(a, f) in &x.terms {
            let atom = self.expr.space.atom(a);
            let most = atom.low.saturating_abs().max(atom.high.saturating_abs());
            sum = sum.saturating_add(most.saturating_mul(f.saturating_abs()));
        }
        sum <= limit && x.terms.iter().all(|t| t.1.saturating_abs() <= limit)
    }

    fn atom(&mut self, id: AtomId) -> Result<Value<'ctx>> {
        if let Some(&known) = self.known.atoms.get(&id) {
            return Ok(known);
        }
        let e = self.e;
        let atom = self.expr.space.atom(id).clone();
        let prim = if self.is_narrow(&Affine::atom(id)) { Prim::I32 } else { Prim::I64 };
        let value = match &atom.def {
            Def::Var(v) => {
                let var = self.known.vars.get(v).copied();
                let var = var.ok_or_else(|| Error::Llvm(format!("loop variable {v} is not known here")))?;
                e.resize(var, prim, true)?
            }
            Def::Div(x, d) => {
                let (x, d) = self.divided(x, *d)?;
                e.resize(e.udiv(x, d)?, prim, true)?
            }
            Def::Mod(x, d) => {
                let (x, d) = self.divided(x, *d)?;
                e.resize(e.urem(x, d)?, prim, true)?
            }
            Def::Value(node) => {
                let value = self.value(*node)?;
                scalar::clamped_index(&e, &value, prim, atom.low, atom.high)?
            }
        };
        self.known.atoms.insert(id, value);
        Ok(value)
    }

    /// A number that is not negative, and a divisor of it.
    fn divided(&mut self, x: &Affine, d: i64) -> Result<(Value<'ctx>, Value<'ctx>)> {
        let x = self.number(x)?;
        let prim = if d > i64::from(i32::MAX) { Prim::I64 } else { self.e.prim_of(x) };
        Ok((self.e.resize(x, prim, true)?, self.e.int(prim, d.cast_unsigned())))
    }

    /// An affine expression at run time: an `i32` where it fits, else an `i64`.
    pub(crate) fn number(&mut self, x: &Affine) -> Result<Value<'ctx>> {
        let e = self.e;
        let prim = if self.is_narrow(x) { Prim::I32 } else { Prim::I64 };
        let mut sum = None;
        for &(a, f) in &x.terms {
            let atom = self.atom(a)?;
            let atom = e.resize(atom, prim, true)?;
            let product = if f == 1 { atom } else { e.mul(atom, e.int(prim, f.cast_unsigned()))? };
            sum = Some(sum.map_or(Ok(product), |sum| e.add(sum, product))?);
        }
        let constant = e.int(prim, x.constant.cast_unsigned());
        Ok(match sum {
            None => constant,
            Some(sum) if x.constant == 0 => sum,
            Some(sum) => e.add(sum, constant)?,
        })
    }

    /// The address of the element of an array at this row-major offset.
    pub(crate) fn address(&mut self, array: u32, at: &Affine) -> Result<Value<'ctx>> {
        let e = self.e;
        let of = &self.expr.arrays[array as usize];
        let bytes = of.shape.element_type.storage_bytes() as i64;
        // Offsets that differ by a constant alone are constant offsets from one address, so that LLVM sees
        // contiguous accesses.
        let terms = Affine { constant: 0, ..at.clone() };
        let key = (array, terms);
        let base = match self.known.addresses.get(&key) {
            Some(&base) => base,
            None => {
                let pointer = self.arguments.get(of.argument as usize).copied();
                let pointer = pointer.ok_or_else(|| Error::Llvm("an array that is no argument".into()))?;
                let pointer = e.address_at(pointer, of.offset)?;
                let number = self.number(&key.1)?;
                let number = e.resize(number, Prim::I64, true)?;
                let base = match key.1.terms.is_empty() {
                    true => pointer,
                    false => e.address(pointer, e.mul(number, e.i64(bytes))?)?,
                };
                self.known.addresses.insert(key, base);
                base
            }
        };
        match at.constant {
            0 => Ok(base),
            constant => e.address(base, e.i64(constant.wrapping_mul(bytes))),
        }
    }

    /// The mask of a guard, an `i1`; `None`: it always holds.
    pub(crate) fn guard(&mut self, guard: GuardId) -> Result<Option<Value<'ctx>>> {
        let e = self.e;
        let mut all = None;
        for condition in &self.expr.guards[guard as usize].clone() {
            let x = self.number(&condition.value)?;
            let x = e.resize(x, Prim::I64, true)?;
            let (low, high) = self.expr.space.range(&condition.value);
            let mut hold = |c: Value<'ctx>| -> Result<()> {
                all = Some(all.map_or(Ok(c), |all| e.and(all, c))?);
                Ok(())
            };
            if low < condition.low {
                hold(e.icmp(IntPredicate::SGE, x, e.i64(condition.low))?)?;
            }
            if high >= condition.high {
                hold(e.icmp(IntPredicate::SLT, x, e.i64(condition.high))?)?;
            }
        }
        Ok(all)
    }

    /// Stores an element of an array.
    pub(crate) fn store(&mut self, value: &Val<'ctx>, array: u32, at: &Affine) -> Result<()> {
        let address = self.address(array, at)?;
        store(&self.e, value, address)
    }

    /// The value of a node.
    pub(crate) fn value(&mut self, node: NodeId) -> Result<Val<'ctx>> {
        if let Some(&known) = self.known.nodes.get(&node) {
            return Ok(known);
        }
        let mut needed = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        let mut pending = vec![node];
        while let Some(n) = pending.pop() {
            if self.known.nodes.contains_key(&n) || !seen.insert(n) {
                continue;
            }
            needed.push(n);
            self.expr.for_each_operand(n, &mut |m| pending.push(m));
        }
        needed.sort_unstable();
        for n in needed {
            let value = self.node(n)?;
            self.known.nodes.insert(n, value);
        }
        Ok(self.known.nodes[&node])
    }

    /// Hoists what nodes need and what does not depend on a loop variable, before the loop over it.
    pub(crate) fn hoist(&mut self, nodes: impl Iterator<Item = NodeId>, var: u32) -> Result<()> {
        let expr = self.expr;
        let mut varies = vec![false; expr.nodes.len()];
        let mut wanted = Vec::new();
        for n in expr.reachable_except(nodes, &|n| self.known.nodes.contains_key(&n)) {
            let mut operands = false;
            expr.for_each_operand(n, &mut |m| operands |= varies[m as usize]);
            let constant = matches!(expr.nodes[n as usize].op, Op::Constant { .. } | Op::Given { .. });
            varies[n as usize] = operands || !expr.vars_of(n, &mut |v| v != var);
            if !varies[n as usize] && !constant {
                wanted.push(n);
            }
        }
        for n in wanted {
            self.value(n)?;
        }
        Ok(())
    }

    /// Vectorizes contiguous unconditional loads of these nodes whose offsets depend on no loaded value.
    pub(crate) fn load_runs(&mut self, nodes: impl Iterator<Item = NodeId>) -> Result<()> {
        let expr = self.expr;
        let mut runs: Runs = BTreeMap::new();
        for n in expr.reachable_except(nodes, &|n| self.known.nodes.contains_key(&n)) {
            let Op::Load { array, at, guard: ALWAYS } = &expr.nodes[n as usize].op else { continue };
            let mut is_free = true;
            expr.values_in(at, &mut |_| is_free = false);
            if is_free {
                runs.entry((*array, at.terms.to_vec())).or_default().push((at.constant, n));
            }
        }
        for ((array, terms), mut loads) in runs {
            loads.sort_unstable();
            let of = &expr.arrays[array as usize];
            let ty = of.shape.element_type;
            let bytes = ty.storage_bytes() as i64;
            let mut at = 0;
            while at < loads.len() {
                let first = loads[at].0;
                let mut width = ACCESS_BYTES.cast_signed() / bytes;
                let is_run = |width: i64| {
                    let factors = terms.iter().map(|t| t.1).chain([first]);
                    factors.into_iter().all(|f| f % width == 0)
                        && of.offset.is_multiple_of((width * bytes).unsigned_abs())
                        && (0..width).all(|i| loads[at..].iter().any(|l| l.0 == first + i))
                };
                while width > 1 && !is_run(width) {
                    width /= 2;
                }
                if width <= 1 {
                    at += 1;
                    continue;
                }
                let number = Affine { terms: terms.iter().copied().collect(), constant: first };
                let address = self.address(array, &number)?;
                let (prim, parts) = storage(ty);
                let all = self.e.with_lanes(width as u32 * parts);
                let vector = all.load(prim, address, (width * bytes) as u32)?;
                while let Some(&(constant, node)) = loads.get(at).filter(|l| l.0 < first + width) {
                    let lane = (constant - first) as u32 * parts;
                    let stored =
                        (0..parts).map(|p| all.extract(vector, lane + p)).collect::<Result<Vec<_>>>()?;
                    self.known.nodes.insert(node, Val::of_storage(&self.e, ty, &stored)?);
                    at += 1;
                }
            }
        }
        Ok(())
    }

    /// Stores elements of arrays: consecutive ones of one array that are contiguous by one access.
    pub(crate) fn store_runs(&mut self, stored: &[(Val<'ctx>, u32, Affine)]) -> Result<()> {
        let expr = self.expr;
        // Addresses before anything is stored: they may depend on what is read.
        for (_, array, at) in stored {
            self.address(*array, at)?;
        }
        let mut rest = stored;
        while let Some(((value, array, first), _)) = rest.split_first() {
            let of = &expr.arrays[*array as usize];
            let bytes = of.shape.element_type.storage_bytes() as i64;
            let is_run = |width: i64| {
                let run = rest.get(..usize::try_from(width).unwrap_or(usize::MAX));
                let aligned = first.terms.iter().map(|t| t.1).chain([first.constant]).all(|f| f % width == 0)
                    && of.offset.is_multiple_of((width * bytes).unsigned_abs());
                aligned
                    && run
                        .is_some_and(|run| (0..).zip(run).all(|(i, r)| r.1 == *array && r.2 == first.plus(i)))
            };
            let mut width = ACCESS_BYTES.cast_signed() / bytes;
            while width > 1 && !is_run(width) {
                width /= 2;
            }
            if width <= 1 {
                self.store(value, *array, first)?;
                rest = &rest[1..];
                continue;
            }
            let (run, others) = rest.split_at(width as usize);
            let mut parts = Vec::new();
            for (value, ..) in run {
                parts.extend(value.to_storage(&self.e)?);
            }
            let all = self.e.with_lanes(parts.len() as u32);
            let mut vector = all.poison(self.e.prim_of(parts[0]));
            for (lane, &part) in (0..).zip(&parts) {
                vector = all.insert(vector, part, lane)?;
            }
            let address = self.address(*array, first)?;
            all.store(vector, address, (width * bytes) as u32)?;
            rest = others;
        }
        Ok(())
    }

    /// A node whose operands are known.
    fn node(&mut self, node: NodeId) -> Result<Val<'ctx>> {
        let (e, expr) = (self.e, self.expr);
        let ty = expr.nodes[node as usize].ty;
        let known = |n: &NodeId| self.known.nodes[n];
        Ok(match &expr.nodes[node as usize].op {
            Op::Load { .. } if self.grouped.contains_key(&node) => self.load_grouped(node)?,
            Op::Load { array, at, guard } => self.load_guarded(*array, at, *guard)?,
            Op::Constant { instr, at } => self.constant(*instr, at)?,
            Op::Iota { value } => {
                let number = self.number(value)?;
                let from = if e.prim_of(number) == Prim::I32 { ElementType::S32 } else { ElementType::S64 };
                scalar::convert(&e, Val::of_storage(&e, from, &[number])?, ty)?
            }
            Op::Elementwise { instr, operands } => {
                let operands: Vec<Val<'ctx>> = operands.iter().map(known).collect();
                scalar::elementwise(&e, expr.module.instr(*instr), &operands)?
            }
            Op::Convert { operand } => scalar::convert(&e, known(operand), ty)?,
            Op::ToOrderedInt { operand, least } => scalar::extreme_key(&e, ty, *least, &known(operand))?,
            Op::FromOrderedInt { operand, least } => scalar::of_extreme_key(&e, ty, *least, &known(operand))?,
            Op::Select { guard, yes, no } => {
                let (yes, no) = (known(yes), known(no));
                match self.guard(*guard)? {
                    None => yes,
                    Some(holds) => scalar::select(&e, holds, &yes, &no)?,
                }
            }
            Op::BitcastConvert { operand } => {
                scalar::of_pattern(&e, ty, scalar::pattern(&e, known(operand))?)?
            }
            Op::Pack { parts } => {
                let prim = Prim::int(ty.bits().max(8));
                let mut all = e.int(prim, 0);
                for (i, part) in parts.iter().enumerate() {
                    let part = known(part);
                    let bits = e.resize(scalar::pattern(&e, part)?, prim, false)?;
                    let width = u64::from(part.ty().bits());
                    all = e.or(all, e.shl(bits, e.int(prim, i as u64 * width))?)?;
                }
                scalar::of_pattern(&e, ty, all)?
            }
            Op::SumOfProducts { factors } => {
                let mut sum: Option<Val<'ctx>> = None;
                for pair in factors.chunks_exact(2) {
                    sum = scalar::multiply_add(&e, sum.as_ref(), &known(&pair[0]), &known(&pair[1]))?;
                }
                sum.ok_or_else(|| Error::Llvm(format!("no sum of products of {ty}")))?
            }
            Op::Sum { terms } => {
                let sum = scalar::binary(&e, Binary::Add, &known(&terms[0]), &known(&terms[1]))?;
                sum.ok_or_else(|| Error::Llvm(format!("no sum of {ty}")))?
            }
            Op::Unpack { whole, part } => {
                let bits = scalar::pattern(&e, known(whole))?;
                let prim = e.prim_of(bits);
                let part = self.number(part)?;
                let at = e.mul(e.resize(part, prim, false)?, e.int(prim, u64::from(ty.bits())))?;
                let bits = e.lshr(bits, at)?;
                let bits = e.resize(bits, Prim::int(ty.bits().max(8).next_power_of_two()), false)?;
                let bits = match ty.bits() {
                    narrow @ 0..8 => e.and(bits, e.int(Prim::I8, (1 << narrow) - 1))?,
                    _ => bits,
                };
                scalar::of_pattern(&e, ty, bits)?
            }
            Op::Given { number } => {
                let known = self.known.given.get(number).copied();
                known.ok_or_else(|| Error::Llvm(format!("value {number} is not given here")))?
            }
        })
    }

    fn load_guarded(&mut self, array: u32, at: &Affine, guard: GuardId) -> Result<Val<'ctx>> {
        let holds = if guard == ALWAYS { None } else { self.guard(guard)? };
        let address = self.address(array, at)?;
        let ty = self.expr.arrays[array as usize].shape.element_type;
        let e = self.e;
        let Some(holds) = holds else { return load(&e, ty, address) };
        let (prim, parts) = storage(ty);
        let stored =
            e.if_else(holds, || load_stored(&e, ty, address), || Ok(vec![zero(&e, prim); parts as usize]))?;
        Val::of_storage(&e, ty, &stored)
    }

    /// Whether the element at this offset and the `count - 1` after it are one aligned access of an array.
    pub(crate) fn is_vector(&self, array: u32, at: &Affine, count: u64) -> bool {
        let of = &self.expr.arrays[array as usize];
        let bytes = of.shape.element_type.storage_bytes() as u64;
        let aligned = |n: i64| n.unsigned_abs().is_multiple_of(count);
        count > 1
            && count.is_power_of_two()
            && bytes * count <= ACCESS_BYTES
            && of.offset.is_multiple_of(bytes * count)
            && aligned(self.expr.space.multiple_of_terms(at, &|_| 1))
            && aligned(at.constant)
    }

    /// Finds contiguous loads, up to `count` of them, among nodes that will be asked for: they become single
    /// accesses, emitted when the first is asked for. Not of arrays that are written where they are read.
    pub(crate) fn join_loads(&mut self, count: u64) {
        let mut runs: FxHashMap<(u32, Affine), Vec<(i64, NodeId)>> = FxHashMap::default();
        for (n, node) in (0..).zip(&self.expr.nodes) {
            if let Op::Load { array, at, guard: ALWAYS } = &node.op
                && !self.expr.arrays[*array as usize].written
                && !node.ty.is_complex()
            {
                let terms = Affine { constant: 0, ..at.clone() };
                runs.entry((*array, terms)).or_default().push((at.constant, n));
            }
        }
        for ((array, terms), mut run) in runs {
            run.sort_unstable();
            run.dedup_by_key(|r| r.0);
            let mut at = 0;
            while at < run.len() {
                let mut width = count;
                let fits = |width: u64| {
                    let all = run.get(at..at + width as usize);
                    let start = Affine { constant: run[at].0, ..terms.clone() };
                    all.is_some_and(|all| all.iter().zip(run[at].0..).all(|(r, c)| r.0 == c))
                        && self.is_vector(array, &start, width)
                };
                while width > 1 && !fits(width) {
                    width /= 2;
                }
                if width > 1 {
                    let nodes: Vec<NodeId> = run[at..at + width as usize].iter().map(|r| r.1).collect();
                    for (lane, &n) in (0..).zip(&nodes) {
                        self.grouped.insert(n, (nodes[0], lane));
                    }
                    self.groups.insert(nodes[0], nodes);
                }
                at += width.max(1) as usize;
            }
        }
    }

    /// A load of a group: all of it is loaded.
    fn load_grouped(&mut self, node: NodeId) -> Result<Val<'ctx>> {
        let (first, _) = self.grouped[&node];
        let nodes = self.groups[&first].clone();
        let Op::Load { array, at, .. } = &self.expr.nodes[first as usize].op else {
            return Err(Error::Llvm("a group of what is no load".into()));
        };
        let address = self.address(*array, at)?;
        let ty = self.expr.nodes[first as usize].ty;
        let e = self.e;
        let prim = scalar::storage(ty);
        let wide = e.with_lanes(nodes.len() as u32);
        let all = wide.load(prim, address, (prim.bytes() * nodes.len() as u64) as u32)?;
        for (lane, &n) in (0..).zip(&nodes) {
            let value = Val::of_storage(&e, ty, &[e.extract(all, lane)?])?;
            self.known.nodes.insert(n, value);
        }
        Ok(self.known.nodes[&node])
    }

    /// Stores contiguous elements of an array, which are one aligned access ([`Code::is_vector`]).
    pub(crate) fn store_vector(&mut self, values: &[Val<'ctx>], array: u32, at: &Affine) -> Result<()> {
        let e = self.e;
        let address = self.address(array, at)?;
        let mut all = None;
        let wide = e.with_lanes(values.len() as u32);
        for (lane, value) in (0..).zip(values) {
            let stored = value.to_storage(&e)?;
            let [stored] = stored[..] else { return Err(Error::Llvm("a vector of pairs".into())) };
            let so_far = all.unwrap_or_else(|| wide.poison(e.prim_of(stored)));
            all = Some(e.insert(so_far, stored, lane)?);
        }
        let Some(all) = all else { return Ok(()) };
        let prim = e.prim_of(all);
        wide.store(all, address, (prim.bytes() * values.len() as u64) as u32)?;
        Ok(())
    }

    fn constant(&mut self, instr: hlo::InstrId, at: &Affine) -> Result<Val<'ctx>> {
        let e = self.e;
        let refuse = |why: &str| Error::from(hlo_codegen::Unsupported::new(self.expr.module, instr, why));
        let literal = self.expr.literal(instr).ok_or_else(|| refuse("a constant without a value"))?;
        let array = literal.as_array().ok_or_else(|| refuse("a constant that is no array"))?;
        if let (Some(i), true) = (at.as_constant(), array.buffer.len() <= 1) {
            return Ok(Val::constant(&e, &array.buffer, usize::try_from(i).unwrap_or(0)));
        }
        let ty = array.buffer.element_type();
        let base = global(&e, &array.buffer)?;
        let number = self.number(at)?;
        let number = e.resize(number, Prim::I64, true)?;
        load(&e, ty, e.address(base, e.mul(number, e.i64(ty.storage_bytes() as i64))?)?)
    }
}

/// The memory type of each part of an element, and the number of parts.
pub(crate) fn storage(ty: ElementType) -> (Prim, u32) {
    (scalar::storage(ty), 1 + u32::from(ty.is_complex()))
}

/// Zero of a lane type.
pub(crate) fn zero<'ctx>(e: &Emit<'_, 'ctx>, prim: Prim) -> Value<'ctx> {
    if prim.is_float() { e.float(prim, 0.0) } else { e.int(prim, 0) }
}

fn load_stored<'ctx>(e: &Emit<'_, 'ctx>, ty: ElementType, address: Value<'ctx>) -> Result<Vec<Value<'ctx>>> {
    let (prim, parts) = storage(ty);
    (0..u64::from(parts))
        .map(|p| e.load(prim, e.address_at(address, p * prim.bytes())?, prim.bytes() as u32))
        .collect()
}

/// The element at an address.
pub(crate) fn load<'ctx>(e: &Emit<'_, 'ctx>, ty: ElementType, address: Value<'ctx>) -> Result<Val<'ctx>> {
    Val::of_storage(e, ty, &load_stored(e, ty, address)?)
}

/// The element of an array at an offset, in elements, an `i32` or `i64` that is not negative.
pub(crate) fn element<'ctx>(
    e: &Emit<'_, 'ctx>,
    ty: ElementType,
    array: Value<'ctx>,
    offset: Value<'ctx>,
) -> Result<Val<'ctx>> {
    let offset = e.resize(offset, Prim::I64, true)?;
    load(e, ty, e.address(array, e.mul(offset, e.i64(ty.storage_bytes() as i64))?)?)
}

/// Stores an element of an array at an offset, in elements, an `i32` or `i64` that is not negative.
pub(crate) fn store_element<'ctx>(
    e: &Emit<'_, 'ctx>,
    value: &Val<'ctx>,
    array: Value<'ctx>,
    offset: Value<'ctx>,
) -> Result<()> {
    let offset = e.resize(offset, Prim::I64, true)?;
    let bytes = value.ty().storage_bytes() as i64;
    store(e, value, e.address(array, e.mul(offset, e.i64(bytes))?)?)
}

/// Stores an element at an address.
pub(crate) fn store<'ctx>(e: &Emit<'_, 'ctx>, value: &Val<'ctx>, address: Value<'ctx>) -> Result<()> {
    for (p, part) in value.to_storage(e)?.into_iter().enumerate() {
        let bytes = e.prim_of(part).bytes();
        e.store(part, e.address_at(address, p as u64 * bytes)?, bytes as u32)?;
    }
    Ok(())
}

/// The elements of a constant, in global memory.
fn global<'ctx>(e: &Emit<'_, 'ctx>, buffer: &hlo::Buffer) -> Result<Value<'ctx>> {
    let bytes: Vec<u64> = bytes_of(buffer).iter().map(|&byte| u64::from(byte)).collect();
    let name = format!("constant.{}", e.module.get_globals().count());
    Ok(e.constant_table(&name, Prim::I8, &bytes)?.into())
}
