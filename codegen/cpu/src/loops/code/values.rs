//! Values of the nodes of an expression, loads and stores.

use hlo::elementwise::Binary;
use hlo_llvm::scalar::{self, Val};
use hlo_llvm::{Emit, Error, Prim, Result, Value};
use hlo_opt::expr::index::Affine;
use hlo_opt::expr::{ALWAYS, GuardId, NodeId, Op};
use hlo_opt::passes::facts::MAX_INTERLEAVED_COLUMNS;

use super::{Addresses, Code, Known, Made, Mask, Spread};
use crate::loops::access;
use smallvec::SmallVec;

/// With more nodes than this, a load is not searched for loads of adjacent columns.
const MAX_NEIGHBOUR_NODES: usize = 2048;

/// The bytes past an array that few loads exceed: about a page.
const NEAR_BYTES: i64 = 4096;

impl<'a, 'ctx> Code<'_, 'a, 'ctx, '_> {
    /// The value of a node on all lanes (one if there is one lane).
    pub(in crate::loops) fn value(&mut self, node: NodeId) -> Result<Val<'ctx>> {
        self.demand(node)?;
        self.splat(node)
    }

    /// Emits everything that a node needs, operands first, without recursion on the depth of the expression.
    pub(super) fn demand(&mut self, node: NodeId) -> Result<()> {
        if self.nodes[node as usize].is_some() {
            return Ok(());
        }
        let expr = self.expr;
        let mut needed: Vec<NodeId> = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        let mut pending = vec![node];
        while let Some(n) = pending.pop() {
            if self.nodes[n as usize].is_some() || !seen.insert(n) {
                continue;
            }
            needed.push(n);
            expr.for_each_operand(n, &mut |m| pending.push(m));
        }
        needed.sort_unstable();
        for n in needed {
            self.node(n)?;
        }
        Ok(())
    }

    pub(super) fn splat(&mut self, node: NodeId) -> Result<Val<'ctx>> {
        let known = self.node(node)?;
        if !known.uniform || self.lanes == 1 {
            return Ok(known.lanes);
        }
        let lanes = self.lanes;
        if let Some((_, splat)) = known.splat.filter(|splat| splat.0 == lanes) {
            return Ok(splat);
        }
        let splat = self.at(known.level, |c| known.lanes.splat(&c.e.with_lanes(lanes)))?;
        if let Some(known) = &mut self.nodes[node as usize] {
            known.splat = Some((lanes, splat));
        }
        Ok(splat)
    }

    /// Emits a node whose operands are known.
    pub(super) fn node(&mut self, node: NodeId) -> Result<Known<'ctx>> {
        if let Some(known) = &self.nodes[node as usize] {
            return Ok(*known);
        }
        let expr = self.expr;
        let ty = expr.nodes[node as usize].ty;
        let known = match &expr.nodes[node as usize].op {
            Op::Load { array, at, guard } => match self.load_columns(node, *array, at, *guard)? {
                Some(known) => return Ok(known),
                None => self.load_node(*array, at, *guard)?,
            },
            Op::Constant { instr, at } => self.constant_node(*instr, at, ty)?,
            Op::Iota { value } => {
                let number = self.number(value)?;
                let uniform = matches!(number.lanes, Spread::Linear(0)) || self.lanes == 1;
                let level = number.level;
                let all = if uniform { number.base } else { self.vector_number(&number)? };
                let lanes = self.at(level, |c| {
                    let e = c.e.with_lanes(if uniform { 1 } else { c.lanes });
                    let from = match e.prim_of(all) {
                        Prim::I32 => hlo::ElementType::S32,
                        _ => hlo::ElementType::S64,
                    };
                    let x = Val::of_storage(&e, from, &[all])?;
                    scalar::convert(&e, x, ty)
                })?;
                Known { lanes, uniform, splat: None, level }
            }
            Op::Elementwise { instr, operands } => {
                let (instr, module) = (*instr, expr.module);
                let branches = expr.branches(node);
                if let Some((by, integers)) = expr.constant_divisor(node, &mut self.magnitudes) {
                    let dividend = [operands[0]];
                    let known =
                        self.elementwise(&dividend, false, |e, x| scalar::quotient(e, &x[0], by, integers))?;
                    return Ok(self.made(node, known));
                }
                self.elementwise(operands, branches, |e, values| {
                    let instr = module.instr(instr);
                    e.at_span(instr.span, || scalar::elementwise(e, instr, values))
                })?
            }
            Op::Convert { operand } => {
                self.elementwise(&[*operand], false, |e, values| scalar::convert(e, values[0], ty))?
            }
            Op::ToOrderedInt { operand, least } => {
                self.elementwise(&[*operand], false, |e, x| scalar::extreme_key(e, ty, *least, &x[0]))?
            }
            Op::FromOrderedInt { operand, least } => {
                self.elementwise(&[*operand], false, |e, x| scalar::of_extreme_key(e, ty, *least, &x[0]))?
            }
            Op::Select { guard, yes, no } => {
                let mask = self.mask(*guard)?;
                let Some(mask) = mask else { return self.node(*yes) };
                let (a, b) = (self.node(*yes)?, self.node(*no)?);
                let uniform = a.uniform && b.uniform && self.e.lanes_of(mask.value) == 1;
                let (x, y) = if uniform { (a.lanes, b.lanes) } else { (self.splat(*yes)?, self.splat(*no)?) };
                let level = a.level.max(b.level).max(mask.level);
                let lanes = self.at(level, |c| {
                    let e = c.e.with_lanes(if uniform { 1 } else { c.lanes });
                    scalar::select(&e, mask.value, &x, &y)
                })?;
                Known { lanes, uniform: uniform || self.lanes == 1, splat: None, level }
            }
            Op::BitcastConvert { operand } => self.elementwise(&[*operand], false, |e, values| {
                scalar::of_pattern(e, ty, scalar::pattern(e, values[0])?)
            })?,
            Op::Pack { parts } => self.elementwise(parts, false, |e, values| {
                if ty.bits() >= 16 && values[0].ty().bits() >= 8 && values.len().is_power_of_two() {
                    let mut all =
                        values.iter().map(|v| scalar::pattern(e, *v)).collect::<Result<Vec<_>>>()?;
                    while all.len() > 1 {
                        let pairs = all.chunks_exact(2);
                        all = pairs.map(|pair| scalar::joined(e, pair[0], pair[1])).collect::<Result<_>>()?;
                    }
                    return scalar::of_pattern(e, ty, all[0]);
                }
                let prim = Prim::int(ty.bits().max(8));
                let mut all = e.int(prim, 0);
                for (i, v) in values.iter().enumerate() {
                    let width = v.ty().bits();
                    let bits = scalar::pattern(e, *v)?;
                    let bits = e.resize(bits, prim, false)?;
                    let shift = e.int(prim, i as u64 * u64::from(width));
                    all = e.or(all, e.shl(bits, shift)?)?;
                }
                scalar::of_pattern(e, ty, all)
            })?,
            Op::SumOfProducts { factors } => self.elementwise(factors, false, |e, values| {
                let none = || Error::Llvm(format!("no sum of products of {ty}"));
                let mut sum: Option<Val<'ctx>> = None;
                for pair in values.chunks_exact(2) {
                    sum = scalar::multiply_add(e, sum.as_ref(), &pair[0], &pair[1])?;
                }
                sum.ok_or_else(none)
            })?,
            Op::Sum { terms } => self.elementwise(terms, false, |e, values| {
                let sum = scalar::binary(e, Binary::Add, &values[0], &values[1])?;
                sum.ok_or_else(|| Error::Llvm(format!("no sum of {ty}")))
            })?,
            Op::Unpack { whole, part } => {
                let number = self.number(part)?;
                let known = self.node(*whole)?;
                let uniform = known.uniform && matches!(number.lanes, Spread::Linear(0));
                let x = if uniform { known.lanes } else { self.splat(*whole)? };
                let at = if uniform { number.base } else { self.vector_number(&number)? };
                let level = known.level.max(number.level);
                let lanes = self.at(level, |c| {
                    let e = c.e.with_lanes(if uniform { 1 } else { c.lanes });
                    let bits = scalar::pattern(&e, x)?;
                    let prim = e.prim_of(bits);
                    let at = e.mul(e.resize(at, prim, false)?, e.int(prim, u64::from(ty.bits())))?;
                    // Lanes that do not exist have indices past the parts; in LLVM a shift by too much is
                    // poison.
                    let at = e.and(at, e.int(prim, u64::from(prim.bits() - 1)))?;
                    let bits = e.lshr(bits, at)?;
                    let bits = e.resize(bits, Prim::int(ty.bits().max(8).next_power_of_two()), false)?;
                    let mask = if ty.bits() < 8 {
                        e.and(bits, e.int(Prim::I8, (1 << ty.bits()) - 1))?
                    } else {
                        bits
                    };
                    scalar::of_pattern(&e, ty, mask)
                })?;
                Known { lanes, uniform: uniform || self.lanes == 1, splat: None, level }
            }
            Op::Given { number } => {
                let known = self.given.get(number).copied();
                known.ok_or_else(|| Error::Llvm(format!("value {number} is not given here")))?
            }
        };
        Ok(self.made(node, known))
    }

    fn made(&mut self, node: NodeId, known: Known<'ctx>) -> Known<'ctx> {
        self.levels[known.level].made.push(Made::Node(node));
        self.nodes[node as usize] = Some(known);
        known
    }

    pub(super) fn elementwise(
        &mut self,
        operands: &[NodeId],
        branches: bool,
        f: impl FnOnce(&Emit<'a, 'ctx>, &[Val<'ctx>]) -> Result<Val<'ctx>>,
    ) -> Result<Known<'ctx>> {
        let (mut uniform, mut level) = (true, 0);
        for &o in operands {
            let known = self.node(o)?;
            uniform &= known.uniform;
            level = level.max(known.level);
        }
        // Control flow stays in the block that is being built.
        if branches {
            level = self.level();
        }
        let mut values: SmallVec<[Val<'ctx>; 3]> = SmallVec::new();
        for &o in operands {
            values.push(if uniform { self.node(o)?.lanes } else { self.splat(o)? });
        }
        let lanes = self.at(level, |c| f(&c.e.with_lanes(if uniform { 1 } else { c.lanes }), &values))?;
        Ok(Known { lanes, uniform: uniform || self.lanes == 1, splat: None, level })
    }

    /// An element per lane and row, where all elements of the rows are loaded anyway: whole rows are loaded
    /// as vectors and deinterleaved.
    fn load_columns(
        &mut self,
        node: NodeId,
        array: u32,
        at: &Affine,
        guard: GuardId,
    ) -> Result<Option<Known<'ctx>>> {
        let expr = self.expr;
        let of = &expr.arrays[array as usize];
        let plain = guard == ALWAYS && self.active.is_none() && !of.written;
        if !plain || self.lanes < 8 || expr.nodes.len() > MAX_NEIGHBOUR_NODES {
            return Ok(None);
        }
        // The loads of adjacent columns, by their distance.
        let mut beside = [None; 2 * MAX_INTERLEAVED_COLUMNS as usize];
        for (n, other) in (0..).zip(&expr.nodes) {
            let Op::Load { array: a, at: x, guard: ALWAYS } = &other.op else { continue };
            let far = x.constant.saturating_sub(at.constant).saturating_add(MAX_INTERLEAVED_COLUMNS);
            if *a == array && x.terms == at.terms && (0..2 * MAX_INTERLEAVED_COLUMNS).contains(&far) {
                beside[far as usize] = Some(n);
            }
        }
        if beside.iter().flatten().count() < 3 {
            return Ok(None);
        }
        let bytes = of.shape.element_type.storage_bytes() as i64;
        let Spread::Linear(stride) = self.addresses(array, at)?.lanes else { return Ok(None) };
        let columns = stride / bytes;
        if stride % bytes != 0 || !(3..=MAX_INTERLEAVED_COLUMNS).contains(&columns) {
            return Ok(None);
        }
        let begin = |first: i64| (first..first + columns).all(|far| beside[far as usize].is_some());
        let Some(first) =
            (MAX_INTERLEAVED_COLUMNS + 1 - columns..=MAX_INTERLEAVED_COLUMNS).find(|&first| begin(first))
        else {
            return Ok(None);
        };
        let addresses = self.addresses(array, &at.plus(first - MAX_INTERLEAVED_COLUMNS))?;
        let all = self.at(addresses.level, |c| {
            let e = c.e.with_lanes(c.lanes);
            access::load_columns(&e, of.shape.element_type, addresses.address, columns as u32)
        })?;
        let Some(all) = all else { return Ok(None) };
        for (far, lanes) in (first..).zip(all) {
            if let Some(n) = beside[far as usize].filter(|&n| self.nodes[n as usize].is_none()) {
                self.made(n, Known { lanes, uniform: false, splat: None, level: addresses.level });
            }
        }
        Ok(self.nodes[node as usize])
    }

    pub(super) fn load_node(&mut self, array: u32, at: &Affine, guard: GuardId) -> Result<Known<'ctx>> {
        let of = &self.expr.arrays[array as usize];
        let ty = of.shape.element_type;
        let table = (ty, if of.written { 0 } else { of.shape.checked_elements().unwrap_or(0) });
        if let Some(known) = self.table_lookup(table, self.pointers[array as usize], at, guard)? {
            return Ok(known);
        }
        let mut addresses = self.addresses(array, at)?;
        if self.expr.arrays[array as usize].written {
            addresses.level = addresses.level.max(self.written);
        }
        let mask = self.mask(guard)?;
        if mask.is_some() {
            addresses.elements = of.shape.checked_elements().unwrap_or(0);
            let (low, high) = self.expr.space.range(at);
            let beyond = low.saturating_neg().max(high.saturating_sub(addresses.elements));
            addresses.far = beyond > NEAR_BYTES / ty.storage_bytes() as i64;
        }
        self.load_at(ty, &addresses, mask)
    }

    /// An element of an array, or one per lane, outside of the expression.
    pub(in crate::loops) fn load(&mut self, array: u32, at: &Affine) -> Result<Val<'ctx>> {
        let known = self.load_node(array, at, ALWAYS)?;
        known.lanes.splat(&self.e.with_lanes(if known.uniform { 1 } else { self.lanes }))
    }

    /// [`Code::load`] at the builder's position, not hoisted: of memory that is being written.
    pub(in crate::loops) fn load_here(&mut self, array: u32, at: &Affine) -> Result<Val<'ctx>> {
        let ty = self.expr.arrays[array as usize].shape.element_type;
        let addresses = self.addresses(array, at)?;
        if self.lanes == 1 {
            return access::load_one(&self.e, ty, addresses.origin, addresses.address, None);
        }
        let e = self.e.with_lanes(self.lanes);
        access::load(&e, ty, addresses.address, self.by_vector(addresses.lanes), self.active.map(|a| a.value))
    }

    pub(super) fn load_at(
        &mut self,
        ty: hlo::ElementType,
        addresses: &Addresses<'ctx>,
        mask: Option<Mask<'ctx>>,
    ) -> Result<Known<'ctx>> {
        let one_mask = mask.is_none_or(|m| self.e.lanes_of(m.value) == 1);
        let uniform = matches!(addresses.lanes, Spread::Linear(0)) && one_mask;
        let mut level = mask.map_or(addresses.level, |m| m.level.max(addresses.level));
        let active = self.active.filter(|_| !uniform && self.lanes > 1);
        if let Some(active) = active {
            level = level.max(active.level);
        }
        // A masked load takes longer than a single-lane one of the few elements that it enables.
        let all = u64::MAX >> (64 - self.lanes.clamp(1, 64));
        let few = mask.and_then(|m| m.known).is_some_and(|known| known & all != all);
        let steps = match addresses.lanes {
            Spread::Linear(_) if !few => None,
            lanes => self.steps_of(lanes),
        };
        // The lanes that are loaded, if that is known at compile time.
        let known = |m: Option<Mask<'ctx>>| m.map_or(Some(u64::MAX), |m| m.known);
        let enabled = known(mask).zip(known(active)).map(|(a, b)| a & b);
        let lanes = self.at(level, |c| {
            let mask = mask.map(|m| m.value);
            if uniform || c.lanes == 1 {
                return access::load_one(&c.e, ty, addresses.origin, addresses.address, mask);
            }
            let e = c.e.with_lanes(c.lanes);
            let bytes = ty.storage_bytes() as i64;
            if let (Some(steps), Some(enabled)) = (&steps, enabled)
                && let Some(value) = access::load_shuffled(&e, ty, addresses.address, steps, enabled)?
            {
                return Ok(value);
            }
            let lanes = c.by_vector(addresses.lanes);
            let consecutive = matches!(lanes, Spread::Linear(stride) if stride == bytes);
            // A masked load without enabled lanes takes a hundred times as long where no memory is mapped:
            // its address is made valid.
            let mut address = addresses.address;
            if let (Some(mask), true, Spread::Linear(stride)) = (mask, addresses.far, addresses.lanes) {
                let whole = if stride < 0 { -stride * (i64::from(c.lanes) - 1) } else { 0 };
                let safe = c.e.address(addresses.origin, c.e.i64(whole))?;
                address = c.e.select(c.e.any(mask)?, address, safe)?;
            }
            if c.ahead > 0 && consecutive && active.is_none() && level == c.level() {
                let later = c.e.address_at(addresses.address, c.ahead)?;
                c.e.prefetch(later, u64::from(c.lanes) * bytes.unsigned_abs())?;
            }
            let mut mask = mask.map(|m| e.splat(m)).transpose()?;
            if let Some(active) = active {
                mask = Some(mask.map_or(Ok(active.value), |m| e.and(m, active.value))?);
            }
            if let (Some(steps), Some(mask)) = (&steps, mask)
                && let Some(value) = c.table_lookup_near(ty, addresses, steps, mask)?
            {
                return Ok(value);
            }
            access::load(&e, ty, address, lanes, mask)
        })?;
        Ok(Known { lanes, uniform: uniform || self.lanes == 1, splat: None, level })
    }

    pub(super) fn constant_node(
        &mut self,
        instr: hlo::InstrId,
        at: &Affine,
        ty: hlo::ElementType,
    ) -> Result<Known<'ctx>> {
        let literal = self.expr.literal(instr).ok_or_else(|| {
            Error::from(hlo_library_base::Unsupported::new(
                self.expr.module,
                instr,
                "a constant without a value",
            ))
        })?;
        let Some(array) = literal.as_array() else {
            return Err(Error::from(hlo_library_base::Unsupported::new(
                self.expr.module,
                instr,
                "a constant that is no array",
            )));
        };
        if let (Some(i), true) = (at.as_constant(), array.buffer.len() <= 1) {
            let i = usize::try_from(i).unwrap_or(0);
            let lanes = Val::constant(&self.e, &array.buffer, i);
            return Ok(Known { lanes, uniform: true, splat: None, level: 0 });
        }
        let address = access::global(&self.e, &array.buffer)?;
        let table = (ty, i64::try_from(array.buffer.len()).unwrap_or(0));
        if let Some(known) = self.table_lookup(table, address, at, ALWAYS)? {
            return Ok(known);
        }
        let addresses = self.addresses_from(address, 0, at, ty.storage_bytes() as i64)?;
        self.load_at(ty, &addresses, None)
    }

    /// Whether an element of that many bytes is known to be aligned to `to` bytes, if its array is.
    pub(in crate::loops) fn aligned(&self, at: &Affine, bytes: i64, to: i64) -> bool {
        self.multiple(at).saturating_mul(bytes) % to == 0
    }

    /// Stores a value on all lanes to elements of an array, non-temporally if asked for (whole vectors at
    /// aligned addresses).
    pub(in crate::loops) fn store_value(
        &mut self,
        value: &Val<'ctx>,
        array: u32,
        at: &Affine,
        streaming: bool,
    ) -> Result<()> {
        let addresses = self.addresses(array, at)?;
        if self.lanes == 1 {
            return access::store_one(&self.e, value, addresses.address);
        }
        let e = self.e.with_lanes(self.lanes);
        let lanes = self.by_vector(addresses.lanes);
        access::store(&e, value, addresses.address, lanes, self.active.map(|a| a.value), streaming)
    }

    /// Constant offsets as a vector.
    fn by_vector(&self, lanes: Spread<'ctx>) -> Spread<'ctx> {
        match lanes {
            Spread::Steps(id) => Spread::Vector(self.vector_of_steps(&self.steps[id.0 as usize])),
            Spread::Linear(_) | Spread::Vector(_) => lanes,
        }
    }

    /// Stores the columns of contiguous rows, one row per lane, from the first column of the first row on
    /// (interleaved).
    pub(in crate::loops) fn store_interleaved(
        &mut self,
        columns: &[Val<'ctx>],
        array: u32,
        at: &Affine,
        streaming: bool,
    ) -> Result<()> {
        let e = self.e.with_lanes(self.lanes);
        let mut parts = Vec::with_capacity(columns.len());
        for column in columns {
            parts.extend(column.to_storage(&e)?);
        }
        self.store_interleaved_parts(&parts, array, at, streaming)
    }

    /// The same for columns in their memory types; the parts of complex numbers are a column each.
    pub(in crate::loops) fn store_interleaved_parts(
        &mut self,
        columns: &[Value<'ctx>],
        array: u32,
        at: &Affine,
        streaming: bool,
    ) -> Result<()> {
        let addresses = self.addresses(array, at)?;
        let e = self.e.with_lanes(self.lanes);
        let bytes = e.prim_of(columns[0]).bytes();
        for (i, part) in access::interleave(&e, columns)?.into_iter().enumerate() {
            let to = self.e.address_at(addresses.address, i as u64 * u64::from(self.lanes) * bytes)?;
            if streaming {
                e.store_streaming(part, to)?;
            } else {
                e.store(part, to, bytes as u32)?;
            }
        }
        Ok(())
    }
}
