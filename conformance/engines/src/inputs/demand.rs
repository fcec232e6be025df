//! What a program asks of its parameters, found by walking from uses back to the entry's parameters.
//!
//! Every instruction whose meaning depends on the range of an operand (an index, a divisor, the initial value
//! of a reduction) puts a [`Demand`] on it; instructions that only move elements pass the demands on their
//! result to their operands. Demands on one value from several uses are joined; the narrower wins where they
//! conflict.
//!
//! **Invariants:** the walk is total: every opcode has an arm, and no shape, attribute or operand is trusted
//! to be there. It is linear in the program for each level of nested calls, at most [`MAX_CALL_LEVELS`]
//! levels.

mod floats;

use std::ops::Range;

use hlo::{
    ArrayShape, AttrKey, ComputationId, ElementType, InstrId, Instruction, Module, Opcode, Shape, TypeClass,
};

use super::fill::{Cover, Fill};
use hlo_execution::element::int_limits;

/// The maximum of levels of calls through which demands propagate.
const MAX_CALL_LEVELS: usize = 16;

/// The demands on one array.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Demand {
    /// Integers in this range.
    int: Option<(i128, i128)>,
    /// Floats in this range.
    real: Option<(f64, f64)>,
    /// The range of floats that `real` is the gentle part of: covers are cut to this one.
    domain: Option<(f64, f64)>,
    /// All elements are the identity of this operation.
    identity: Option<Opcode>,
    /// Index vectors.
    vectors: Option<Vectors>,
    /// No two elements equal.
    distinct: bool,
    /// Any bits, and all of them.
    bits: bool,
    /// A dominant diagonal.
    dominant: bool,
    /// Values to reach: of floats within `domain`, of integers where nothing else is asked.
    cover: Cover,
    /// Other numbers than those of `int` or `real` mean nothing: integers that are more than indices, and
    /// floats that become such.
    needed: bool,
}

/// Index vectors, as [`Fill::Vectors`].
#[derive(Clone, PartialEq, Debug)]
struct Vectors {
    dim: usize,
    maximum: Vec<i64>,
    ascending: bool,
}

impl Demand {
    fn int(low: i64, high: i64) -> Self {
        Self { needed: true, ..Self::index(low, high) }
    }

    /// Integers that mean something out of this range too.
    fn index(low: i64, high: i64) -> Self {
        Self { int: Some((i128::from(low), i128::from(high.max(low)))), ..Self::default() }
    }

    fn cover(cover: Cover) -> Self {
        Self { cover, ..Self::default() }
    }

    fn real(low: f64, high: f64) -> Self {
        Self { real: Some((low, high)), domain: Some((low, high)), ..Self::default() }
    }

    /// Floats from `low` to 4, of a function that is defined for all that are no less than `low`.
    fn upwards(low: f64) -> Self {
        Self { domain: Some((low, f64::MAX)), ..Self::real(low, 4.0) }
    }

    /// Adds what another use asks. Returns whether that changed anything.
    fn join(&mut self, other: &Demand) -> bool {
        let before = self.clone();
        self.int = join_range(self.int, other.int, |a, b| a.1 - a.0 <= b.1 - b.0);
        self.real = join_range(self.real, other.real, |a, b| a.1 - a.0 <= b.1 - b.0);
        self.domain = join_range(self.domain, other.domain, |a, b| a.1 - a.0 <= b.1 - b.0);
        self.identity = self.identity.or(other.identity);
        self.vectors = match (self.vectors.take(), &other.vectors) {
            (Some(mut a), Some(b)) if a.dim == b.dim && a.maximum.len() == b.maximum.len() => {
                a.maximum.iter_mut().zip(&b.maximum).for_each(|(a, b)| *a = (*a).min(*b));
                a.ascending |= b.ascending;
                Some(a)
            }
            (Some(a), Some(b)) => {
                // Of two forms, the one with the smaller indices is safe for both.
                let largest = |v: &Vectors| v.maximum.iter().copied().max().unwrap_or(0);
                Some(if largest(b) < largest(&a) { b.clone() } else { a })
            }
            (a, b) => a.or_else(|| b.clone()),
        };
        self.distinct |= other.distinct;
        self.bits |= other.bits;
        self.dominant |= other.dominant;
        self.cover.join(&other.cover);
        self.needed |= other.needed;
        *self != before
    }

    /// The demands on an operand whose elements are moved.
    fn moved(&self) -> Demand {
        let mut d = self.clone();
        if let Some(v) = d.vectors.take() {
            let minimum = v.maximum.iter().copied().min().unwrap_or(0).max(0);
            d.int = join_range(d.int, Some((0, i128::from(minimum))), |a, b| a.1 - a.0 <= b.1 - b.0);
        }
        d.distinct = false;
        d.dominant = false;
        d
    }

    /// What of this still holds for an operand of another element type. `counted`: whether there are loops.
    fn converted(&self, from: ElementType, to: ElementType, counted: bool) -> Demand {
        let mut d = self.clone();
        if from.is_float() && to == ElementType::Pred {
            d.cover.join(&Cover::conversion(to, counted));
        }
        if from.is_integer() != to.is_integer() {
            d.distinct = false;
            d.bits = false;
            if from.is_float() {
                let range = d.int.or_else(|| {
                    d.vectors.as_ref().map(|v| (0, i128::from(v.maximum.iter().copied().min().unwrap_or(0))))
                });
                match range {
                    Some((low, high)) if d.needed => {
                        let range = Some((low as f64, high as f64 + 0.5));
                        (d.real, d.domain) = (d.real.or(range), d.domain.or(range));
                    }
                    Some((low, high)) => d.cover.join(&Cover::indices(low, high)),
                    None => d.cover.join(&Cover::conversion(to, counted)),
                }
                d.vectors = None;
            } else if counted {
                d.cover = Cover::default();
            }
            if let (TypeClass::Signed | TypeClass::Unsigned, Some((low, high))) = (from.class(), d.real) {
                let high = high.floor().max(low.ceil());
                d.int = join_range(d.int, Some((low.ceil() as i128, high as i128)), |a, b| {
                    a.1 - a.0 <= b.1 - b.0
                });
            }
        }
        d
    }

    /// The rule for an array of which this is asked.
    pub(super) fn fill(&self, shape: &ArrayShape) -> Fill {
        let ty = shape.element_type;
        if let Some(op) = self.identity {
            return Fill::Identity(op);
        }
        if self.dominant && !ty.is_integer() && ty != ElementType::Pred {
            return Fill::Dominant;
        }
        match ty.class() {
            TypeClass::Pred => Fill::Int { low: 0, high: 1 },
            TypeClass::Signed | TypeClass::Unsigned => self.fill_int(ty),
            TypeClass::Float | TypeClass::Complex => {
                if self.distinct && self.real.is_none() {
                    return Fill::Distinct;
                }
                let positive = ty == ElementType::F8E8M0FNU;
                let usual = if positive { (0.5, 2.0) } else { (-1.0, 1.0) };
                if let Some(fill) = self.cover.fill(ty, self.real, self.domain, usual) {
                    return fill;
                }
                let (low, high) = self.real.unwrap_or(usual);
                Fill::Real { low, high: if high > low { high } else { low } }
            }
        }
    }

    /// Whether elements may be anything else: floats that only functions have asked something of, and
    /// integers of which nothing is asked.
    pub(super) fn free(&self, shape: &ArrayShape) -> bool {
        let ordered = self.identity.is_some() || self.distinct;
        match shape.element_type.class() {
            TypeClass::Pred => false,
            TypeClass::Signed | TypeClass::Unsigned => {
                !ordered && self.int.is_none() && self.vectors.is_none() && !self.bits
            }
            TypeClass::Float | TypeClass::Complex => !ordered && !self.dominant && !self.needed,
        }
    }

    fn fill_int(&self, ty: ElementType) -> Fill {
        if let (Some(v), None) = (&self.vectors, self.int) {
            let maximum = int_limits(ty).map_or(0, |l| l.1);
            if v.maximum.iter().all(|&g| i128::from(g) <= maximum) {
                return Fill::Vectors { dim: v.dim, maximum: v.maximum.clone(), ascending: v.ascending };
            }
        }
        let from_vectors = self
            .vectors
            .as_ref()
            .map(|v| (0, i128::from(v.maximum.iter().copied().min().unwrap_or(0).max(0))));
        let range = join_range(self.int, from_vectors, |a, b| a.1 - a.0 <= b.1 - b.0);
        if range.is_none() && self.bits {
            return Fill::Bits;
        }
        if range.is_none() && self.distinct {
            return Fill::Distinct;
        }
        let limits = int_limits(ty).unwrap_or((0, 1));
        let (minimum, maximum) = limits;
        let usual = if minimum < 0 { (-8, 7) } else { (0, 15) };
        if range.is_none()
            && let Some(cover) = self.cover.beyond(usual, limits)
        {
            return Fill::Cover(cover);
        }
        let (low, high) = range.unwrap_or(usual);
        let low = low.clamp(minimum, maximum);
        Fill::Int { low, high: high.clamp(low, maximum) }
    }
}

/// The intersection of two ranges; if that is empty, the narrower of them.
fn join_range<T: Copy + PartialOrd>(
    a: Option<(T, T)>,
    b: Option<(T, T)>,
    narrower: impl Fn(&(T, T), &(T, T)) -> bool,
) -> Option<(T, T)> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let low = if a.0 > b.0 { a.0 } else { b.0 };
            let high = if a.1 < b.1 { a.1 } else { b.1 };
            Some(if low <= high {
                (low, high)
            } else if narrower(&a, &b) {
                a
            } else {
                b
            })
        }
        (a, b) => a.or(b),
    }
}

/// The demands on every leaf of every parameter of the entry.
pub(super) fn of_parameters(module: &Module) -> Vec<Vec<Demand>> {
    let has = |opcode: Opcode| {
        let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
        all.any(|i| module.instr(i).opcode == opcode)
    };
    let (reshapes, loops) = (has(Opcode::DynamicReshape), has(Opcode::While));
    let demands = vec![Vec::new(); module.instruction_capacity()];
    let mut walk = Walk { module, demands, changed: false, reshapes, loops };
    for &c in module.computations() {
        for i in module.instructions(c) {
            let leaves = leaf_count(&module.instr(i).shape);
            walk.demands[i.index()] = vec![Demand::default(); leaves];
        }
    }
    for _ in 0..MAX_CALL_LEVELS {
        walk.changed = false;
        // Callers stand after callees in most texts: from the back, demands reach callees in the same round.
        for &c in module.computations().iter().rev() {
            let order: Vec<InstrId> = module.instructions(c).collect();
            for &i in order.iter().rev() {
                walk.visit(i);
            }
        }
        if !walk.changed {
            break;
        }
    }
    let entry = module.computation(module.entry());
    entry.parameters().iter().flatten().map(|p| walk.demands[p.index()].clone()).collect()
}

fn leaf_count(shape: &Shape) -> usize {
    let mut n = 0;
    shape.for_each_leaf(&mut |_| n += 1);
    n
}

/// The leaves of a shape that belong to one of its tuple elements.
fn leaves_of_element(shape: &Shape, index: usize) -> Range<usize> {
    let elements = shape.as_tuple().unwrap_or(&[]);
    let start = elements.iter().take(index).map(leaf_count).sum();
    start..start + elements.get(index).map_or(0, leaf_count)
}

struct Walk<'m> {
    module: &'m Module,
    /// By instruction and leaf.
    demands: Vec<Vec<Demand>>,
    changed: bool,
    /// Whether there is a `dynamic-reshape`.
    reshapes: bool,
    /// Whether there is a `while`.
    loops: bool,
}

impl<'m> Walk<'m> {
    fn ask(&mut self, instr: InstrId, leaf: usize, demand: &Demand) {
        if let Some(d) = self.demands[instr.index()].get_mut(leaf) {
            self.changed |= d.join(demand);
        }
    }

    /// Asks something of an array operand.
    fn ask_operand(&mut self, i: &Instruction, operand: usize, demand: &Demand) {
        if let Some(&o) = i.operands().get(operand) {
            self.ask(o, 0, demand);
        }
    }

    fn array(&self, i: &Instruction, operand: usize) -> Option<&'m ArrayShape> {
        let o = *i.operands().get(operand)?;
        self.module.instr(o).shape.as_array()
    }

    /// Copies demands leaf by leaf: from `from` leaves of `source` to the leaves of `target` that start at
    /// `first`.
    fn copy(&mut self, source: InstrId, from: Range<usize>, target: InstrId, first: usize) {
        for (n, leaf) in from.enumerate() {
            if let Some(d) = self.demands[source.index()].get(leaf).cloned() {
                self.ask(target, first + n, &d);
            }
        }
    }

    fn copy_all(&mut self, source: InstrId, target: InstrId) {
        self.copy(source, 0..self.demands[source.index()].len(), target, 0);
    }

    /// Passes the demands on the result, as far as they survive a move, to these operands.
    fn pass_moved(&mut self, id: InstrId, operands: Range<usize>) {
        let i = self.module.instr(id);
        let Some(demand) = self.demands[id.index()].first().map(Demand::moved) else { return };
        for n in operands {
            self.ask_operand(i, n, &demand);
        }
    }

    /// A call: the result's demands go to the root, the parameters' demands to the operands.
    fn call(&mut self, id: InstrId, callee: Option<ComputationId>) {
        let Some(callee) = callee else { return };
        let c = self.module.computation(callee);
        if let Some(root) = c.root() {
            self.copy_all(id, root);
        }
        self.parameters_to(callee, self.module.instr(id).operands());
    }

    fn parameters_to(&mut self, callee: ComputationId, operands: &[InstrId]) {
        let c = self.module.computation(callee);
        for (p, &o) in c.parameters().iter().zip(operands) {
            if let Some(p) = *p {
                self.copy_all(p, o);
            }
        }
    }

    /// The operation of a computation that applies one binary operation to its two parameters.
    fn reducer(&self, c: Option<ComputationId>) -> Option<Opcode> {
        let c = self.module.computation(c?);
        let root = self.module.instr(c.root()?);
        let is_parameter = |o: &InstrId| c.parameters().contains(&Some(*o));
        let plain = root.operands().len() == 2 && root.operands().iter().all(is_parameter);
        let known = matches!(
            root.opcode,
            Opcode::Add
                | Opcode::Multiply
                | Opcode::Minimum
                | Opcode::Maximum
                | Opcode::And
                | Opcode::Or
                | Opcode::Xor
        );
        (plain && known).then_some(root.opcode)
    }

    fn ask_identity(&mut self, i: &Instruction, operands: Range<usize>, reducer: Option<ComputationId>) {
        if let Some(op) = self.reducer(reducer) {
            for n in operands {
                self.ask_operand(i, n, &Demand { identity: Some(op), ..Demand::default() });
            }
        }
    }

    /// Start indices, one scalar operand for each dimension or one vector for all.
    fn ask_starts(&mut self, i: &Instruction, first: usize, base: &ArrayShape, sizes: &[i64]) {
        let maximum: Vec<i64> =
            base.dims.iter().zip(sizes).map(|(&d, &s)| d.saturating_sub(s).max(0)).collect();
        let scalars = i.operands().len() == first + maximum.len()
            && self.array(i, first).is_some_and(|a| a.rank() == 0);
        if scalars {
            for (n, &g) in maximum.iter().enumerate() {
                self.ask_operand(i, first + n, &Demand::index(0, g));
            }
        } else {
            let vectors = Vectors { dim: 0, maximum, ascending: false };
            self.ask_operand(i, first, &Demand { vectors: Some(vectors), ..Demand::default() });
        }
    }

    fn gather(&mut self, i: &Instruction) {
        let Some(base) = self.array(i, 0) else { return };
        let sizes = i.attrs.ints_or_empty(AttrKey::SliceSizes);
        let map = i.attrs.ints_or_empty(AttrKey::StartIndexMap);
        let maximum = map.iter().map(|&d| max_start(base, sizes, d)).collect();
        self.ask_vectors(i, 1, maximum);
    }

    fn scatter(&mut self, i: &Instruction) {
        let n = i.operands().len() / 2;
        let (Some(base), Some(updates)) = (self.array(i, 0), self.array(i, n + 1)) else { return };
        let inserted = i.attrs.ints_or_empty(AttrKey::InsertedWindowDims);
        let batching = i.attrs.ints_or_empty(AttrKey::InputBatchingDims);
        let mut windows = i.attrs.ints_or_empty(AttrKey::UpdateWindowDims).iter();
        let sizes: Vec<i64> = (0..base.rank() as i64)
            .map(|d| {
                if inserted.contains(&d) || batching.contains(&d) {
                    return 1;
                }
                let window = windows.next().and_then(|&w| usize::try_from(w).ok());
                window.and_then(|w| updates.dims.get(w).copied()).unwrap_or(1)
            })
            .collect();
        let map = i.attrs.ints_or_empty(AttrKey::ScatterDimsToOperandDims);
        let maximum = map.iter().map(|&d| max_start(base, &sizes, d)).collect();
        self.ask_vectors(i, n, maximum);
    }

    fn ask_vectors(&mut self, i: &Instruction, operand: usize, maximum: Vec<i64>) {
        let rank = self.array(i, operand).map_or(0, ArrayShape::rank);
        let dim = i.attrs.int(AttrKey::IndexVectorDim).and_then(|d| usize::try_from(d).ok()).unwrap_or(rank);
        let ascending = i.attrs.bool(AttrKey::IndicesAreSorted) || i.attrs.bool(AttrKey::UniqueIndices);
        let vectors = Vectors { dim: dim.min(rank), maximum, ascending };
        self.ask_operand(i, operand, &Demand { vectors: Some(vectors), ..Demand::default() });
    }

    fn sort(&mut self, id: InstrId, i: &Instruction) {
        let n = i.operands().len();
        for k in 0..n {
            if let Some(d) = self.demands[id.index()].get(k).map(Demand::moved) {
                self.ask_operand(i, k, &d);
            }
        }
        if n < 2 {
            return; // ties of equal keys cannot be seen
        }
        let Some(c) = i.attrs.computation(AttrKey::ToApply) else { return };
        let parameters = self.module.computation(c).parameters();
        for k in 0..n {
            let used = [2 * k, 2 * k + 1].iter().any(|&p| {
                parameters.get(p).copied().flatten().is_some_and(|p| !self.module.users(p).is_empty())
            });
            if used {
                self.ask_operand(i, k, &Demand { distinct: true, ..Demand::default() });
            }
        }
    }

    fn custom_call(&mut self, i: &Instruction) {
        let target = i.attrs.str(AttrKey::CustomCallTarget).unwrap_or("");
        if target.contains("potrf") || target.contains("trsm") {
            self.ask_operand(i, 0, &Demand { dominant: true, ..Demand::default() });
        }
    }

    fn visit(&mut self, id: InstrId) {
        use Opcode as O;
        let module = self.module;
        let i = module.instr(id);
        match i.opcode {
            // Elements stay where they are.
            O::Copy | O::OptBarrier | O::Domain | O::While | O::CopyDone => {
                for &o in i.operands().iter().take(1) {
                    if leaf_count(&module.instr(o).shape) == self.demands[id.index()].len() {
                        self.copy_all(id, o);
                    }
                }
                if i.opcode == O::While {
                    self.while_loop(id, i);
                }
            }
            O::AddDependency => {
                if let Some(&o) = i.operands().first() {
                    self.copy_all(id, o);
                }
            }
            O::Tuple => {
                let mut first = 0;
                for &o in i.operands() {
                    let n = leaf_count(&module.instr(o).shape);
                    self.copy(id, first..first + n, o, 0);
                    first += n;
                }
            }
            O::GetTupleElement => {
                if let (Some(&o), Some(index)) =
                    (i.operands().first(), i.attrs.int(AttrKey::Index).and_then(|n| usize::try_from(n).ok()))
                {
                    let leaves = leaves_of_element(&module.instr(o).shape, index);
                    self.copy(id, 0..leaves.len(), o, leaves.start);
                }
            }
            O::Convert | O::BitcastConvert | O::ReducePrecision => {
                let same = i.opcode != O::BitcastConvert;
                if let (Some(from), Some(to), true) = (self.array(i, 0), i.shape.as_array(), same)
                    && let Some(d) = self.demands[id.index()].first().cloned()
                {
                    self.ask_operand(i, 0, &d.converted(from.element_type, to.element_type, self.loops));
                }
            }
            // Elements move.
            O::Broadcast
            | O::Reshape
            | O::Reverse
            | O::Slice
            | O::Transpose
            | O::AllGather
            | O::AllToAll
            | O::CollectiveBroadcast
            | O::CollectivePermute => self.pass_moved(id, 0..1),
            O::Bitcast => {
                let same = self.array(i, 0).zip(i.shape.as_array());
                if same.is_some_and(|(a, b)| a.element_type == b.element_type) {
                    self.pass_moved(id, 0..1);
                }
            }
            O::Concatenate => self.pass_moved(id, 0..i.operands().len()),
            O::Pad => self.pass_moved(id, 0..2),
            O::Select => self.pass_moved(id, 1..3),
            // The only sizes that surely hold the elements of a static operand.
            O::DynamicReshape => {
                self.pass_moved(id, 0..1);
                let bounds = i.shape.as_array().map(|a| a.dims.clone()).unwrap_or_default();
                for (n, &bound) in bounds.iter().enumerate() {
                    self.ask_operand(i, n + 1, &Demand::int(bound, bound));
                }
            }
            O::SetDimensionSize => {
                self.pass_moved(id, 0..1);
                let dim =
                    i.attrs.ints_or_empty(AttrKey::Dimensions).first().and_then(|&d| usize::try_from(d).ok());
                if let Some(&size) = dim.zip(self.array(i, 0)).and_then(|(d, a)| a.dims.get(d)) {
                    // Only full dimensions surely have as many elements as a dynamic-reshape says.
                    let minimum = if self.reshapes { size } else { size.min(1) };
                    self.ask_operand(i, 1, &Demand::int(minimum, size.max(0)));
                }
            }
            O::DynamicSlice => {
                self.pass_moved(id, 0..1);
                if let Some(base) = self.array(i, 0) {
                    self.ask_starts(i, 1, base, i.attrs.ints_or_empty(AttrKey::DynamicSliceSizes));
                }
            }
            O::DynamicUpdateSlice => {
                self.pass_moved(id, 0..2);
                if let (Some(base), Some(update)) = (self.array(i, 0), self.array(i, 1)) {
                    self.ask_starts(i, 2, base, &update.dims);
                }
            }
            O::Gather => {
                self.pass_moved(id, 0..1);
                self.gather(i);
            }
            O::Scatter => self.scatter(i),
            O::Sort => self.sort(id, i),
            // Calls.
            O::Call => self.call(id, i.attrs.computation(AttrKey::ToApply)),
            O::Fusion => self.call(id, i.attrs.computation(AttrKey::Calls)),
            O::Conditional => self.conditional(id, i),
            O::AsyncStart => {
                if let Some(c) = i.attrs.computation(AttrKey::Calls) {
                    let result = leaves_of_element(&i.shape, 1);
                    if let Some(root) = module.computation(c).root() {
                        self.copy(id, result, root, 0);
                    }
                    self.parameters_to(c, i.operands());
                }
            }
            O::AsyncUpdate => {
                if let Some(&o) = i.operands().first() {
                    self.copy_all(id, o);
                }
            }
            O::AsyncDone => {
                if let Some(&o) = i.operands().first() {
                    let result = leaves_of_element(&module.instr(o).shape, 1);
                    self.copy(id, 0..result.len(), o, result.start);
                }
            }
            // Initial values.
            O::Reduce | O::ReduceWindow => {
                let n = i.operands().len();
                self.ask_identity(i, n / 2..n, i.attrs.computation(AttrKey::ToApply));
            }
            O::SelectAndScatter => self.ask_identity(i, 2..3, i.attrs.computation(AttrKey::Scatter)),
            // Domains.
            O::Log | O::Rsqrt => self.upwards(id, i, 0.015625),
            O::LogPlusOne => self.upwards(id, i, -0.75),
            O::Sqrt => self.upwards(id, i, 0.0),
            O::Acosh => self.upwards(id, i, 1.0),
            O::Acos | O::Asin => self.domain(i, 0, -1.0, 1.0),
            O::Atanh => self.domain(i, 0, -0.9375, 0.9375),
            O::Power => {
                self.domain(i, 0, 0.015625, 4.0);
                if self.array(i, 1).is_some_and(|a| a.element_type.is_integer()) {
                    self.ask_operand(i, 1, &Demand::int(0, 4));
                }
            }
            O::Divide | O::Remainder => {
                if i.opcode == O::Divide {
                    self.arithmetic(id, i);
                    self.covered(id, i);
                }
                if self.constant(i, 1).is_none() {
                    self.domain(i, 1, 0.5, 2.0);
                }
                if self.array(i, 1).is_some_and(|a| a.element_type.is_integer()) {
                    self.ask_operand(i, 1, &Demand::int(1, 8));
                }
            }
            O::ShiftLeft | O::ShiftRightArithmetic | O::ShiftRightLogical => {
                if let Some(a) = self.array(i, 1) {
                    self.ask_operand(i, 1, &Demand::int(0, i64::from(a.element_type.bits()) - 1));
                }
            }
            O::BatchNormInference => self.domain(i, 4, 0.5, 2.0),
            O::BatchNormGrad => self.domain(i, 3, 0.5, 2.0),
            O::Rng => {
                for (n, low, high) in [(0, -1.0, -0.5), (1, 0.5, 1.0)] {
                    if self.array(i, n).is_some_and(|a| a.element_type.is_float()) {
                        self.ask_operand(i, n, &Demand { needed: true, ..Demand::real(low, high) });
                    }
                }
                for (n, low, high) in [(0, -8, -1), (1, 1, 8)] {
                    if self.array(i, n).is_some_and(|a| a.element_type.is_signed_integer()) {
                        self.ask_operand(i, n, &Demand::int(low, high));
                    }
                }
            }
            O::RngBitGenerator => self.ask_operand(i, 0, &Demand { bits: true, ..Demand::default() }),
            O::StochasticConvert => self.ask_operand(i, 1, &Demand { bits: true, ..Demand::default() }),
            O::Cholesky | O::TriangularSolve => {
                self.ask_operand(i, 0, &Demand { dominant: true, ..Demand::default() });
            }
            O::RaggedDot => {
                let ragged = i
                    .attrs
                    .ints_or_empty(AttrKey::LhsRaggedDims)
                    .first()
                    .and_then(|&d| usize::try_from(d).ok());
                let rows =
                    ragged.zip(self.array(i, 0)).and_then(|(d, a)| a.dims.get(d).copied()).unwrap_or(1);
                let groups = self.array(i, 2).and_then(|a| a.dims.last().copied()).unwrap_or(1).max(1);
                self.ask_operand(i, 2, &Demand::int(0, rows / groups));
            }
            O::CustomCall => self.custom_call(i),
            O::Add | O::Subtract | O::Multiply | O::Negate => {
                self.arithmetic(id, i);
                self.covered(id, i);
            }
            O::Abs
            | O::Cbrt
            | O::Ceil
            | O::Exponential
            | O::ExponentialMinusOne
            | O::Floor
            | O::Logistic
            | O::RoundNearestAfz
            | O::RoundNearestEven
            | O::Tanh => self.covered(id, i),
            O::Maximum | O::Minimum => {
                self.covered(id, i);
                self.cut_off(i, 0, &[1]);
                self.cut_off(i, 1, &[0]);
            }
            O::Clamp => {
                self.covered(id, i);
                self.cut_off(i, 1, &[0, 2]);
            }
            O::Compare => self.comparison(i),
            // No demand.
            O::Asinh
            | O::Cosine
            | O::Cosh
            | O::CountLeadingZeros
            | O::Erf
            | O::Imag
            | O::IsFinite
            | O::Not
            | O::Popcnt
            | O::Real
            | O::Sign
            | O::Sine
            | O::Sinh
            | O::Tan
            | O::And
            | O::Atan2
            | O::Complex
            | O::Mulhi
            | O::Or
            | O::Xor
            | O::GetDimensionSize
            | O::Iota
            | O::Convolution
            | O::Dot
            | O::ScaledDot
            | O::Map
            | O::Scan
            | O::Topk
            | O::BatchNormTraining
            | O::Fft
            | O::RngGetAndUpdateState
            | O::AfterAll
            | O::Constant
            | O::Parameter
            | O::CopyStart
            | O::Infeed
            | O::Outfeed
            | O::Recv
            | O::RecvDone
            | O::Send
            | O::SendDone
            | O::AllGatherStart
            | O::AllGatherDone
            | O::AllReduce
            | O::AllReduceStart
            | O::AllReduceDone
            | O::CollectivePermuteStart
            | O::CollectivePermuteDone
            | O::CollectiveReduce
            | O::RaggedAllToAll
            | O::ReduceScatter
            | O::PartitionId
            | O::ReplicaId => {}
        }
    }

    fn while_loop(&mut self, id: InstrId, i: &Instruction) {
        let operands = i.operands();
        for key in [AttrKey::Condition, AttrKey::Body] {
            let Some(c) = i.attrs.computation(key) else { continue };
            if key == AttrKey::Body
                && let Some(root) = self.module.computation(c).root()
            {
                self.copy_all(id, root);
            }
            self.parameters_to(c, operands);
        }
    }

    fn conditional(&mut self, id: InstrId, i: &Instruction) {
        let mut branches: Vec<ComputationId> = [AttrKey::TrueComputation, AttrKey::FalseComputation]
            .iter()
            .filter_map(|&k| i.attrs.computation(k))
            .collect();
        branches.extend(i.attrs.computations(AttrKey::BranchComputations).unwrap_or(&[]));
        self.ask_operand(i, 0, &Demand::int(0, branches.len() as i64 - 1));
        for (n, &c) in branches.iter().enumerate() {
            if let Some(root) = self.module.computation(c).root() {
                self.copy_all(id, root);
            }
            if let Some(operand) = i.operands().get(n + 1) {
                self.parameters_to(c, &[*operand]);
            }
        }
    }
}

fn max_start(base: &ArrayShape, sizes: &[i64], dim: i64) -> i64 {
    let at = |d: &[i64]| usize::try_from(dim).ok().and_then(|i| d.get(i).copied());
    at(&base.dims).unwrap_or(1).saturating_sub(at(sizes).unwrap_or(1)).max(0)
}
