//! Which dimensions an instruction ties, by its opcode.

use std::ops::Range;

use hlo::attrs::AttrKey;
use hlo::{ComputationId, InstrId, Opcode};

use super::{Dims, Var};
use crate::reduce::moves::dims::indexing;

impl Dims<'_> {
    /// Ties all leaves of two values, the second from leaf `from` on.
    fn tie_values(&mut self, a: InstrId, b: InstrId, from: usize) {
        for leaf in 0..self.leaf_count(a) {
            self.tie_ranges(self.leaf(a, leaf), self.leaf(b, from + leaf));
        }
    }

    fn parameter(&self, computation: ComputationId, number: usize) -> Option<InstrId> {
        self.module.computation(computation).parameters().get(number).copied().flatten()
    }

    /// Ties the operands of a call with parameters.
    fn tie_arguments(&mut self, operands: &[InstrId], callee: ComputationId) {
        for (n, &operand) in operands.iter().enumerate() {
            if let Some(p) = self.parameter(callee, n).filter(|&p| self.live.has(p)) {
                self.tie_values(operand, p, 0);
            }
        }
    }

    fn tie_result(&mut self, id: InstrId, callee: ComputationId) {
        let root = self.module.root(callee);
        self.tie_values(id, root, 0);
    }

    /// Everything about an instruction that is not known stays as it is.
    fn fix_instruction(&mut self, id: InstrId) {
        for leaf in 0..self.leaf_count(id) {
            self.fix_all(self.leaf(id, leaf));
        }
        for &operand in self.module.instr(id).operands() {
            for leaf in 0..self.leaf_count(operand) {
                self.fix_all(self.leaf(operand, leaf));
            }
        }
    }

    fn ints(&self, id: InstrId, key: AttrKey) -> Vec<usize> {
        self.module
            .instr(id)
            .attrs
            .ints_or_empty(key)
            .iter()
            .filter_map(|&d| usize::try_from(d).ok())
            .collect()
    }

    /// Ties operands of one shape, and results with them.
    fn tie_same(&mut self, id: InstrId) {
        let operands = self.module.instr(id).operands().to_vec();
        for (slot, &operand) in operands.iter().enumerate() {
            // A scalar that is spread over the others: bounds of clamp, predicate of select.
            let scalar = self.module.instr(operand).shape.is_scalar();
            if !scalar || self.of(id).is_empty() {
                self.tie_ranges(self.operand(id, slot), self.of(id));
            }
        }
    }

    pub(super) fn tie_instruction(&mut self, id: InstrId) {
        let i = self.module.instr(id);
        let operands = i.operands().to_vec();
        match i.opcode {
            Opcode::Abs
            | Opcode::Acos
            | Opcode::Acosh
            | Opcode::Asin
            | Opcode::Asinh
            | Opcode::Atanh
            | Opcode::Cbrt
            | Opcode::Ceil
            | Opcode::Cosine
            | Opcode::Cosh
            | Opcode::CountLeadingZeros
            | Opcode::Erf
            | Opcode::Exponential
            | Opcode::ExponentialMinusOne
            | Opcode::Floor
            | Opcode::Imag
            | Opcode::IsFinite
            | Opcode::Log
            | Opcode::LogPlusOne
            | Opcode::Logistic
            | Opcode::Negate
            | Opcode::Not
            | Opcode::Popcnt
            | Opcode::Real
            | Opcode::RoundNearestAfz
            | Opcode::RoundNearestEven
            | Opcode::Rsqrt
            | Opcode::Sign
            | Opcode::Sine
            | Opcode::Sinh
            | Opcode::Sqrt
            | Opcode::Tan
            | Opcode::Tanh
            | Opcode::Add
            | Opcode::And
            | Opcode::Atan2
            | Opcode::Compare
            | Opcode::Complex
            | Opcode::Divide
            | Opcode::Maximum
            | Opcode::Minimum
            | Opcode::Mulhi
            | Opcode::Multiply
            | Opcode::Or
            | Opcode::Power
            | Opcode::Remainder
            | Opcode::ShiftLeft
            | Opcode::ShiftRightArithmetic
            | Opcode::ShiftRightLogical
            | Opcode::Subtract
            | Opcode::Xor
            | Opcode::Clamp
            | Opcode::Select
            | Opcode::Convert
            | Opcode::ReducePrecision
            | Opcode::StochasticConvert
            | Opcode::Reverse
            | Opcode::Map => self.tie_same(id),
            Opcode::Copy
            | Opcode::Domain
            | Opcode::OptBarrier
            | Opcode::AllReduce
            | Opcode::CollectivePermute => match *operands {
                [only] => self.tie_values(only, id, 0),
                _ => {
                    let mut from = 0;
                    for o in operands {
                        self.tie_values(o, id, from);
                        from += self.leaf_count(o);
                    }
                }
            },
            Opcode::AddDependency => self.tie_values(operands[0], id, 0),
            Opcode::Parameter | Opcode::Constant | Opcode::Iota | Opcode::AfterAll => {}
            Opcode::PartitionId | Opcode::ReplicaId | Opcode::GetDimensionSize => {}
            Opcode::SetDimensionSize => self.tie_ranges(self.operand(id, 0), self.of(id)),
            Opcode::Tuple => {
                let mut from = 0;
                for o in operands {
                    self.tie_values(o, id, from);
                    from += self.leaf_count(o);
                }
            }
            Opcode::GetTupleElement => {
                let index = i.attrs.int(AttrKey::Index).and_then(|k| usize::try_from(k).ok()).unwrap_or(0);
                let before = self
                    .module
                    .instr(operands[0])
                    .shape
                    .as_tuple()
                    .map_or(0, |t| t.iter().take(index).map(|s| s.leaves().len()).sum());
                self.tie_values(id, operands[0], before);
            }
            Opcode::Call | Opcode::Fusion => {
                if let Some(callee) = i.attrs.called_computations().first().copied() {
                    self.tie_arguments(&operands, callee);
                    self.tie_result(id, callee);
                }
            }
            Opcode::While => {
                self.tie_values(operands[0], id, 0);
                for callee in i.attrs.called_computations() {
                    self.tie_arguments(&operands, callee);
                }
                if let Some(body) = i.attrs.computation(AttrKey::Body) {
                    self.tie_result(id, body);
                }
            }
            Opcode::Conditional => {
                for (callee, operand) in i.attrs.called_computations().into_iter().zip(&operands[1..]) {
                    self.tie_arguments(std::slice::from_ref(operand), callee);
                    self.tie_result(id, callee);
                }
            }
            Opcode::Broadcast => {
                let map = self.ints(id, AttrKey::Dimensions);
                let (from, to) = (self.operand(id, 0), self.of(id));
                for (v, d) in from.zip(map) {
                    self.tie(v, to.start + d.min(to.len().saturating_sub(1)));
                }
            }
            Opcode::Transpose => {
                let map = self.ints(id, AttrKey::Dimensions);
                let (from, to) = (self.operand(id, 0), self.of(id));
                for (v, d) in to.zip(map) {
                    if d < from.len() {
                        self.tie(from.start + d, v);
                    }
                }
            }
            Opcode::Reduce => {
                let n = operands.len() / 2;
                let reduced = self.ints(id, AttrKey::Dimensions);
                for slot in 0..n {
                    let from = self.operand(id, slot);
                    self.tie_ranges(self.operand(id, 0), from.clone());
                    let kept: Vec<Var> =
                        from.clone().filter(|v| !reduced.contains(&(v - from.start))).collect();
                    let to = self.leaf(id, slot);
                    if kept.len() == to.len() {
                        kept.into_iter().zip(to).for_each(|(a, b)| self.tie(a, b));
                    } else {
                        self.fix_all(from.start..from.end);
                    }
                }
            }
            Opcode::Sort => {
                for slot in 0..operands.len() {
                    self.tie_ranges(self.operand(id, 0), self.operand(id, slot));
                    self.tie_ranges(self.operand(id, 0), self.leaf(id, slot));
                }
            }
            Opcode::Topk => {
                let from = self.operand(id, 0);
                for leaf in 0..2 {
                    let to = self.leaf(id, leaf);
                    let (most, last) = (from.len().saturating_sub(1), to.end.saturating_sub(1));
                    for d in 0..most.min(to.len()) {
                        self.tie(from.start + d, to.start + d);
                    }
                    if leaf == 1 && !to.is_empty() {
                        self.tie(self.leaf(id, 0).end - 1, last);
                    }
                }
            }
            Opcode::Concatenate => {
                let along = self.ints(id, AttrKey::Dimensions).first().copied().unwrap_or(0);
                for slot in 0..operands.len() {
                    let (from, to) = (self.operand(id, slot), self.of(id));
                    for d in (0..from.len().min(to.len())).filter(|&d| d != along) {
                        self.tie(from.start + d, to.start + d);
                    }
                }
            }
            Opcode::Slice => {
                let slices = i.attrs.slices().map(<[_]>::to_vec).unwrap_or_default();
                let (from, to) = (self.operand(id, 0), self.of(id));
                for ((a, b), s) in from.zip(to).zip(slices) {
                    if s.start == 0 && s.limit == self.old[a] && s.stride == 1 {
                        self.tie(a, b);
                    }
                }
            }
            Opcode::Pad => {
                let padding = i.attrs.padding().map(<[_]>::to_vec).unwrap_or_default();
                for ((a, b), p) in self.operand(id, 0).zip(self.of(id)).zip(padding) {
                    if p.low == 0 && p.high == 0 && p.interior == 0 {
                        self.tie(a, b);
                    }
                }
            }
            Opcode::ReduceWindow => {
                let n = operands.len() / 2;
                for slot in 1..n {
                    self.tie_ranges(self.operand(id, 0), self.operand(id, slot));
                    self.tie_ranges(self.leaf(id, 0), self.leaf(id, slot));
                }
                self.tie_trivial_windows(id, self.operand(id, 0), self.leaf(id, 0));
            }
            Opcode::SelectAndScatter => {
                self.tie_ranges(self.operand(id, 0), self.of(id));
                self.tie_trivial_windows(id, self.operand(id, 0), self.operand(id, 1));
            }
            Opcode::DynamicSlice => {
                for (a, b) in self.operand(id, 0).zip(self.of(id)) {
                    if self.old[a] == self.old[b] {
                        self.tie(a, b);
                    }
                }
                self.fix_all(self.operand(id, 1));
            }
            Opcode::DynamicUpdateSlice => {
                self.tie_ranges(self.operand(id, 0), self.of(id));
                for (a, b) in self.operand(id, 0).zip(self.operand(id, 1)) {
                    if self.old[a] == self.old[b] {
                        self.tie(a, b);
                    }
                }
                self.fix_all(self.operand(id, 2));
            }
            Opcode::Gather => self.tie_gather(id),
            Opcode::Scatter => self.tie_scatter(id),
            Opcode::Dot => self.tie_dot(id),
            Opcode::Convolution => self.tie_convolution(id),
            Opcode::Cholesky => {
                self.tie_ranges(self.operand(id, 0), self.of(id));
                self.tie_last_two(self.of(id));
            }
            Opcode::TriangularSolve => {
                self.tie_ranges(self.operand(id, 1), self.of(id));
                let (a, b) = (self.operand(id, 0), self.operand(id, 1));
                self.tie_last_two(a.clone());
                if a.len() == b.len() && a.len() >= 2 {
                    (0..a.len() - 2).for_each(|d| self.tie(a.start + d, b.start + d));
                    let side = if i.attrs.bool(AttrKey::LeftSide) { b.end - 2 } else { b.end - 1 };
                    self.tie(a.end - 1, side);
                }
            }
            Opcode::Fft => {
                let (a, b) = (self.operand(id, 0), self.of(id));
                // Only the last dimension of a transform of reals differs.
                for (a, b) in a.zip(b) {
                    if self.old[a] == self.old[b] {
                        self.tie(a, b);
                    }
                }
            }
            Opcode::BatchNormInference | Opcode::BatchNormTraining | Opcode::BatchNormGrad => {
                let feature =
                    i.attrs.int(AttrKey::FeatureIndex).and_then(|f| usize::try_from(f).ok()).unwrap_or(0);
                let data = self.operand(id, 0);
                let feature = data.start + feature.min(data.len().saturating_sub(1));
                for slot in 1..operands.len() {
                    let o = self.operand(id, slot);
                    if o.len() == 1 && data.len() != 1 {
                        self.tie(feature, o.start);
                    } else {
                        self.tie_ranges(data.clone(), o);
                    }
                }
                for leaf in 0..self.leaf_count(id) {
                    let r = self.leaf(id, leaf);
                    if r.len() == 1 && data.len() != 1 {
                        self.tie(feature, r.start);
                    } else {
                        self.tie_ranges(data.clone(), r);
                    }
                }
            }
            Opcode::Reshape | Opcode::Bitcast => {
                let plain = i.opcode == Opcode::Reshape
                    || [&i.shape, &self.module.instr(operands[0]).shape].iter().all(|s| {
                        s.as_array().is_some_and(|a| a.layout.as_ref().is_none_or(|l| l.is_row_major()))
                    });
                if !plain {
                    return self.fix_instruction(id);
                }
                for (from, to) in self.reshape_groups(id) {
                    if let ([a], [b]) = (&*from, &*to) {
                        self.tie(*a, *b);
                    }
                }
            }
            Opcode::BitcastConvert => {
                let (a, b) = (self.operand(id, 0), self.of(id));
                if a.len() == b.len() {
                    self.tie_ranges(a, b);
                } else {
                    for (a, b) in a.clone().zip(b.clone()) {
                        self.tie(a, b);
                    }
                    let longer = if a.len() > b.len() { a } else { b };
                    self.fix(longer.end - 1);
                }
            }
            Opcode::CopyStart => {
                self.tie_ranges(self.operand(id, 0), self.leaf(id, 0));
                self.tie_ranges(self.operand(id, 0), self.leaf(id, 1));
            }
            Opcode::AsyncStart => {
                // (operands, result, more)
                let mut from = 0;
                for &o in &operands {
                    self.tie_values(o, id, from);
                    from += self.leaf_count(o);
                }
                if let Some(callee) = i.attrs.computation(AttrKey::Calls) {
                    self.tie_arguments(&operands, callee);
                    let root = self.module.root(callee);
                    self.tie_values(root, id, from);
                    from += self.leaf_count(root);
                }
                (from..self.leaf_count(id)).for_each(|leaf| self.fix_all(self.leaf(id, leaf)));
            }
            Opcode::AsyncUpdate if operands.len() == 1 => self.tie_values(operands[0], id, 0),
            Opcode::AsyncDone => {
                let start = &self.module.instr(operands[0]).shape;
                let before = start.as_tuple().and_then(|t| t.first()).map_or(0, |s| s.leaves().len());
                self.tie_values(id, operands[0], before);
            }
            Opcode::AsyncUpdate => self.fix_instruction(id),
            Opcode::CopyDone => self.tie_ranges(self.leaf(operands[0], 0), self.of(id)),
            Opcode::ScaledDot => {
                self.tie_dot(id);
                for slot in 0..2 {
                    for (a, b) in self.operand(id, slot).zip(self.operand(id, slot + 2)) {
                        if self.old[a] == self.old[b] {
                            self.tie(a, b);
                        } else {
                            self.fix(a);
                            self.fix(b);
                        }
                    }
                }
            }
            Opcode::Scan => self.tie_scan(id),
            Opcode::Rng => {}
            Opcode::RngBitGenerator => {
                self.tie_ranges(self.operand(id, 0), self.leaf(id, 0));
                self.fix_all(self.leaf(id, 0));
            }
            Opcode::DynamicReshape
            | Opcode::RaggedDot
            | Opcode::RngGetAndUpdateState
            | Opcode::CustomCall
            | Opcode::Infeed
            | Opcode::Outfeed
            | Opcode::Recv
            | Opcode::RecvDone
            | Opcode::Send
            | Opcode::SendDone
            | Opcode::AllGather
            | Opcode::AllGatherStart
            | Opcode::AllGatherDone
            | Opcode::AllReduceStart
            | Opcode::AllReduceDone
            | Opcode::AllToAll
            | Opcode::CollectiveBroadcast
            | Opcode::CollectivePermuteStart
            | Opcode::CollectivePermuteDone
            | Opcode::CollectiveReduce
            | Opcode::RaggedAllToAll
            | Opcode::ReduceScatter => self.fix_instruction(id),
        }
    }

    /// Ties dimensions on which a window does nothing.
    fn tie_trivial_windows(&mut self, id: InstrId, from: Range<Var>, to: Range<Var>) {
        let window = self.module.instr(id).attrs.window().cloned().unwrap_or_default();
        for ((a, b), w) in from.zip(to).zip(window.dims) {
            if w == hlo::attrs::WindowDim::default() {
                self.tie(a, b);
            }
        }
    }

    fn tie_last_two(&mut self, a: Range<Var>) {
        if a.len() >= 2 {
            self.tie(a.end - 2, a.end - 1);
        }
    }

    fn tie_dot(&mut self, id: InstrId) {
        let (a, b, to) = (self.operand(id, 0), self.operand(id, 1), self.of(id));
        let lists = [
            AttrKey::LhsBatchDims,
            AttrKey::RhsBatchDims,
            AttrKey::LhsContractingDims,
            AttrKey::RhsContractingDims,
        ];
        let [lb, rb, lc, rc] = lists.map(|key| self.ints(id, key));
        for (&l, &r) in lb.iter().zip(&rb).chain(lc.iter().zip(&rc)) {
            if l < a.len() && r < b.len() {
                self.tie(a.start + l, b.start + r);
            }
        }
        let left = (0..a.len()).filter(|d| !lb.contains(d) && !lc.contains(d)).map(|d| a.start + d);
        let right = (0..b.len()).filter(|d| !rb.contains(d) && !rc.contains(d)).map(|d| b.start + d);
        let from: Vec<Var> = lb.iter().map(|d| a.start + d).chain(left).chain(right).collect();
        for (a, b) in from.into_iter().zip(to) {
            self.tie(a, b);
        }
    }

    fn tie_convolution(&mut self, id: InstrId) {
        let attrs = &self.module.instr(id).attrs;
        let Some(d) = attrs.conv_dims().cloned() else { return self.fix_instruction(id) };
        let groups =
            [AttrKey::FeatureGroupCount, AttrKey::BatchGroupCount].map(|k| attrs.int(k).unwrap_or(1));
        let sparse = attrs.sparsity().is_some();
        let (a, k, to) = (self.operand(id, 0), self.operand(id, 1), self.of(id));
        let at =
            |r: &Range<Var>, d: i64| usize::try_from(d).ok().filter(|&d| d < r.len()).map(|d| r.start + d);
        let pairs = [
            (at(&a, d.input_batch), at(&to, d.output_batch)),
            (at(&k, d.kernel_output_feature), at(&to, d.output_feature)),
            (at(&a, d.input_feature), at(&k, d.kernel_input_feature)),
        ];
        if sparse || pairs.iter().any(|p| p.0.is_none() || p.1.is_none()) {
            return self.fix_instruction(id);
        }
        for (n, (a, b)) in pairs.into_iter().enumerate() {
            let (Some(a), Some(b)) = (a, b) else { continue };
            let [features, batches] = groups;
            let equal = match n {
                0 => batches == 1,
                1 => true,
                _ => features == 1,
            };
            if equal {
                self.tie(a, b);
            } else {
                self.fix(a);
                self.fix(b);
            }
            if n == 1 && (features > 1 || batches > 1) {
                self.fix(a);
            }
        }
    }

    fn tie_gather(&mut self, id: InstrId) {
        let (a, indices, to) = (self.operand(id, 0), self.operand(id, 1), self.of(id));
        let Some(roles) = indexing::gather(self.module, id) else { return self.fix_instruction(id) };
        for (operand, result) in roles.windows {
            if self.old[a.start + operand] == self.old[to.start + result] {
                self.tie(a.start + operand, to.start + result);
            }
        }
        for (index, result) in roles.batches {
            self.tie(indices.start + index, to.start + result);
        }
        for (operand, index) in roles.batching {
            self.tie(a.start + operand, indices.start + index);
        }
        self.pin_index_vector(id, indices);
    }

    /// The length of index vectors stays, but where it is 1 it may be dropped.
    fn pin_index_vector(&mut self, id: InstrId, indices: Range<Var>) {
        let d =
            self.module.instr(id).attrs.int(AttrKey::IndexVectorDim).and_then(|d| usize::try_from(d).ok());
        if let Some(d) = d.filter(|&d| d < indices.len() && self.old[indices.start + d] != 1) {
            self.fix(indices.start + d);
        }
    }

    fn tie_scatter(&mut self, id: InstrId) {
        let n = self.module.instr(id).operands().len() / 2;
        let indices = self.operand(id, n);
        let Some(roles) = indexing::scatter(self.module, id) else { return self.fix_instruction(id) };
        for slot in 0..n {
            let (a, updates) = (self.operand(id, slot), self.operand(id, n + 1 + slot));
            self.tie_ranges(self.operand(id, 0), a.clone());
            self.tie_ranges(a.clone(), self.leaf(id, slot));
            self.tie_ranges(self.operand(id, n + 1), updates.clone());
            for &(operand, update) in &roles.windows {
                if self.old[a.start + operand] == self.old[updates.start + update] {
                    self.tie(a.start + operand, updates.start + update);
                }
            }
            for &(index, update) in &roles.batches {
                self.tie(indices.start + index, updates.start + update);
            }
            for &(operand, index) in &roles.batching {
                self.tie(a.start + operand, indices.start + index);
            }
        }
        self.pin_index_vector(id, indices);
    }

    fn tie_scan(&mut self, id: InstrId) {
        let i = self.module.instr(id);
        let (Some(callee), Some(carries)) = (
            i.attrs.computation(AttrKey::ToApply),
            i.attrs.int(AttrKey::NumCarries).and_then(|n| usize::try_from(n).ok()),
        ) else {
            return self.fix_instruction(id);
        };
        let along = self.ints(id, AttrKey::Dimensions).first().copied().unwrap_or(0);
        let operands = i.operands().to_vec();
        let inputs = operands.len().saturating_sub(carries);
        let outputs = self.leaf_count(id).saturating_sub(carries);
        let root = self.module.root(callee);
        let mut length: Option<Var> = None;
        let mut slices: Vec<(Range<Var>, Range<Var>)> = Vec::new();
        for (slot, &o) in operands.iter().enumerate() {
            let Some(p) = self.parameter(callee, slot) else { return self.fix_instruction(id) };
            if slot < inputs {
                slices.push((self.of(o), self.of(p)));
            } else {
                self.tie_values(o, p, 0);
            }
        }
        for leaf in 0..self.leaf_count(id) {
            if leaf < outputs {
                slices.push((self.leaf(id, leaf), self.leaf(root, leaf)));
            } else {
                self.tie_ranges(self.leaf(id, leaf), self.leaf(root, leaf));
                let slot = inputs + leaf - outputs;
                self.tie_ranges(self.leaf(id, leaf), self.operand(id, slot));
            }
        }
        for (whole, slice) in slices {
            if whole.len() != slice.len() + 1 || along >= whole.len() {
                return self.fix_instruction(id);
            }
            let at = whole.start + along;
            match length {
                Some(l) => self.tie(l, at),
                None => length = Some(at),
            }
            let rest: Vec<Var> = whole.filter(|&v| v != at).collect();
            rest.into_iter().zip(slice).for_each(|(a, b)| self.tie(a, b));
        }
    }
}
