//! Operations whose elements come from one of several sources, or from run-time offsets: concatenate, pad,
//! gather, dynamic slices.

use hlo::attrs::AttrKey;
use hlo::{ElementType, InstrId};
use hlo_library_base::Unsupported;

use super::index::{Affine, Index};
use super::{ALWAYS, Condition, Expr, GuardId, Key, NodeId, Op, dims_of};

impl Expr<'_> {
    pub(super) fn selection(
        &mut self,
        guard: GuardId,
        yes: Option<NodeId>,
        no: Option<NodeId>,
        ty: ElementType,
    ) -> Option<NodeId> {
        let (yes, no) = (yes?, no?);
        let (yes, no) = (self.typed(Some(yes), ty)?, self.typed(Some(no), ty)?);
        Some(if guard == ALWAYS { yes } else { self.push(Op::Select { guard, yes, no }, ty) })
    }

    pub(super) fn pad(&mut self, key: &Key, ty: ElementType) -> Result<Option<NodeId>, Unsupported> {
        let instr = self.module.instr(key.instr);
        let (x, value) = (instr.operands()[0], instr.operands()[1]);
        let mut inside = Vec::new();
        let mut index = Index::new();
        for ((i, p), &n) in
            key.index.iter().zip(instr.attrs.padding().unwrap_or(&[])).zip(dims_of(self.module, x))
        {
            let (at, hole) = self.space.div_mod(&i.plus(p.low.wrapping_neg()), p.interior.saturating_add(1));
            if p.interior > 0 {
                inside.push(Condition { value: hole, low: 0, high: 1 });
            }
            inside.push(Condition { value: at.clone(), low: 0, high: n });
            index.push(at);
        }
        let no = self.get(Key { instr: value, index: Index::new(), ..key.clone() });
        let guard = self.guard(key.guard, &inside);
        let Some(guard) = guard.filter(|_| !dims_of(self.module, x).contains(&0)) else {
            return Ok(self.typed(no, ty));
        };
        let yes = self.get(Key { instr: x, index, guard, ..key.clone() });
        Ok(self.selection(guard, yes, no, ty))
    }

    pub(super) fn concatenate(&mut self, key: &Key, ty: ElementType) -> Result<Option<NodeId>, Unsupported> {
        let instr = self.module.instr(key.instr);
        let d = instr.attrs.ints_or_empty(AttrKey::Dimensions).first().map_or(0, |&d| d as usize);
        let Some(x) = key.index.get(d).cloned() else {
            return Err(Unsupported::new(self.module, key.instr, "a dimension that does not exist"));
        };
        let mut parts = Vec::new();
        let mut start = 0i64;
        for &o in instr.operands() {
            let n = dims_of(self.module, o).get(d).copied().unwrap_or(0);
            let inside = Condition { value: x.clone(), low: start, high: start + n };
            if let Some(guard) = self.guard(key.guard, &[inside]).filter(|_| n > 0) {
                let mut index = key.index.clone();
                index[d] = x.plus(-start);
                let before = Condition { value: x.clone(), low: i64::MIN, high: start + n };
                let before = self.guard(ALWAYS, &[before]).unwrap_or(ALWAYS);
                parts.push((before, self.get(Key { instr: o, index, guard, ..key.clone() })));
            }
            start += n;
        }
        let Some(mut all) = parts.pop().map(|p| p.1) else {
            return Err(Unsupported::new(self.module, key.instr, "no element anywhere"));
        };
        for (before, part) in parts.into_iter().rev() {
            all = self.selection(before, part, all, ty);
        }
        Ok(self.typed(all, ty))
    }

    /// Start indices, clamped, from the scalar operands `first..`.
    pub fn starts(&mut self, key: &Key, first: usize, of: &[i64], window: &[i64]) -> Option<Vec<Affine>> {
        let instr = self.module.instr(key.instr);
        let mut nodes = Vec::new();
        // Scalars, or one vector of start indices in XLA's older form.
        let vector = instr.operands().get(first).is_some_and(|&o| !dims_of(self.module, o).is_empty());
        for (d, (&n, &w)) in of.iter().zip(window).enumerate() {
            let operand = if vector { first } else { first + d };
            nodes.push(match instr.operands().get(operand) {
                Some(&o) if n > w => {
                    // Start indices exist at every index of the result, so they need no guard.
                    let index = vector.then(|| Affine::constant(d as i64)).into_iter().collect();
                    let start = Key { instr: o, leaf: 0, index, guard: ALWAYS, ..key.clone() };
                    Some((self.get(start), n - w))
                }
                _ => None,
            });
        }
        let mut starts = Vec::new();
        for node in nodes {
            starts.push(match node {
                Some((node, high)) => self.space.value(node?, 0, high),
                None => Affine::default(),
            });
        }
        Some(starts)
    }

    pub(super) fn gather(&mut self, key: &Key, ty: ElementType) -> Result<Option<NodeId>, Unsupported> {
        let instr = self.module.instr(key.instr);
        let a = &instr.attrs;
        let (x, starts) = (instr.operands()[0], instr.operands()[1]);
        let offset_dims = a.ints_or_empty(AttrKey::OffsetDims);
        let batch = key.index.iter().enumerate().filter(|(d, _)| !offset_dims.contains(&(*d as i64)));
        let batch: Index = batch.map(|(_, x)| x.clone()).collect();
        let vector = a.int(AttrKey::IndexVectorDim).unwrap_or(0);
        let (of, sizes) = (dims_of(self.module, x), a.ints_or_empty(AttrKey::SliceSizes));
        let Some(indices) =
            self.start_vector(key, starts, &batch, vector, a.ints_or_empty(AttrKey::StartIndexMap))
        else {
            return Ok(None);
        };
        let (collapsed, batching) =
            (a.ints_or_empty(AttrKey::CollapsedSliceDims), a.ints_or_empty(AttrKey::OperandBatchingDims));
        let start_batching = a.ints_or_empty(AttrKey::StartIndicesBatchingDims);
        let mut offsets = offset_dims.iter().filter_map(|&d| key.index.get(d as usize));
        let mut index = Index::new();
        for (d, &n) in of.iter().enumerate() {
            let dim = d as i64;
            if let Some(b) = batching.iter().position(|&x| x == dim) {
                // The component of the batch index that runs along this dimension of the start indices.
                let s = start_batching.get(b).copied().unwrap_or(0);
                let dim = usize::try_from(if s > vector { s - 1 } else { s }).unwrap_or(0);
                index.push(batch.get(dim).cloned().unwrap_or_default());
                continue;
            }
            let window = sizes.get(d).copied().unwrap_or(1);
            let start = indices.iter().find(|i| i.0 == dim).map(|i| i.1);
            let mut at =
                start.map_or_else(Affine::default, |node| self.space.value(node, 0, (n - window).max(0)));
            if !collapsed.contains(&dim) {
                let offset = offsets.next().cloned().unwrap_or_default();
                at = self.space.add(&at, &offset);
            }
            index.push(at);
        }
        let node = self.get(Key { instr: x, index, ..key.clone() });
        Ok(self.typed(node, ty))
    }

    /// The components of an index vector: the operand dimension of each, and its node.
    pub fn start_vector(
        &mut self,
        key: &Key,
        starts: InstrId,
        batch: &[Affine],
        vector: i64,
        map: &[i64],
    ) -> Option<Vec<(i64, NodeId)>> {
        let rank = dims_of(self.module, starts).len() as i64;
        let mut found = Vec::new();
        for (k, &d) in map.iter().enumerate() {
            let mut index: Index = batch.into();
            if vector < rank {
                index.insert(
                    usize::try_from(vector).unwrap_or(0).min(index.len()),
                    Affine::constant(k as i64),
                );
            }
            found.push((d, self.get(Key { instr: starts, leaf: 0, index, ..key.clone() })));
        }
        found.into_iter().map(|(d, node)| Some((d, node?))).collect()
    }

    /// The clamped start indices of a window in an array, from the scalar operands `first..` of an
    /// instruction.
    pub fn window_starts(
        &mut self,
        instr: InstrId,
        first: usize,
        of: &[i64],
        window: &[i64],
    ) -> Result<Vec<Affine>, Unsupported> {
        let key = Key { frame: 0, instr, leaf: 0, index: Index::new(), guard: ALWAYS };
        self.missing.clear();
        loop {
            if let Some(all) = self.starts(&key, first, of, window) {
                return Ok(all);
            }
            for key in std::mem::take(&mut self.missing) {
                self.build(key)?;
            }
        }
    }

    /// The components of the index vector of a scatter at a batch index.
    pub fn index_vector(
        &mut self,
        starts: InstrId,
        batch: &[Affine],
        vector: i64,
        map: &[i64],
    ) -> Result<Vec<(i64, NodeId)>, Unsupported> {
        let key = Key { frame: 0, instr: starts, leaf: 0, index: Index::new(), guard: ALWAYS };
        self.missing.clear();
        loop {
            if let Some(all) = self.start_vector(&key, starts, batch, vector, map) {
                return Ok(all);
            }
            for key in std::mem::take(&mut self.missing) {
                self.build(key)?;
            }
        }
    }
}
