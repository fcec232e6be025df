//! Value numbering: which array a leaf of an instruction is. Tuples and their elements, reshapes, copies and
//! invariant loop state are aliases of a value.
//!
//! **Invariant:** the leaves of every instruction of the line are a range of one pool, so that elements and
//! aliases cost nothing.

use hlo::attrs::AttrKey;
use hlo::{ComputationId, InstrId, Module, Opcode, Shape, TypeClass};
use hlo_library_base::Unsupported;
use rustc_hash::FxHashMap;

use super::in_place::Pair;
use super::order::{Event, Order, control};

/// A value: an index into [`Values::all`].
pub(super) type ValueId = u32;

/// The origin of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// Computed by an instruction.
    Computed,
    /// Leaf of all parameters' leaves.
    Parameter(u32),
    /// An index into [`Values::constants`].
    Constant(u32),
    /// State of a loop.
    State,
    /// Result of a conditional.
    Choice,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    /// The defining instruction.
    pub(super) instr: InstrId,
    pub(super) bytes: u64,
    pub(super) origin: Origin,
    /// The value that it is an alias of: itself if none.
    same_as: ValueId,
}

#[derive(Debug)]
pub(super) struct Values {
    pub(super) all: Vec<Value>,
    /// Instruction and leaf of each constant.
    pub(super) constants: Vec<(InstrId, u32)>,
    /// The value of each leaf of the entry's parameters.
    pub(super) parameters: Vec<ValueId>,
    pool: Vec<ValueId>,
    /// The range of the pool of each instruction.
    ranges: Vec<(u32, u32)>,
    /// For tuples whose elements were asked for: the first leaf of each element.
    elements: FxHashMap<InstrId, Vec<u32>>,
    /// For conditionals the number of values that existed before.
    before: FxHashMap<InstrId, ValueId>,
}

/// Calls `f` with each leaf that has memory: arrays, and arrays in buffers.
pub fn for_each_array(shape: &Shape, f: &mut impl FnMut(&Shape)) {
    shape.for_each_leaf(&mut |s| match s {
        Shape::Array(_) | Shape::Buffer(_) => f(s),
        Shape::Tuple(_) | Shape::Token | Shape::Opaque => {}
    });
}

/// The number of leaves that have memory.
pub(super) fn array_leaves(shape: &Shape) -> usize {
    let mut n = 0;
    for_each_array(shape, &mut |_| n += 1);
    n
}

/// The first leaf of each element of a tuple, and the number of leaves.
pub fn element_starts(tuple: &Shape) -> Vec<u32> {
    let mut at = 0;
    let ends = tuple.as_tuple().unwrap_or_default().iter().map(|s| {
        at += array_leaves(s) as u32;
        at
    });
    std::iter::once(0).chain(ends).collect()
}

/// The first array leaf of the part of a shape at a path of tuple indices, and the number of leaves.
pub(super) fn leaf_range(shape: &Shape, index: &[i64]) -> Option<(usize, usize)> {
    let (mut at, mut first) = (shape, 0);
    for &i in index {
        let parts = at.as_tuple()?;
        let i = usize::try_from(i).ok()?;
        first += parts.get(..i)?.iter().map(array_leaves).sum::<usize>();
        at = parts.get(i)?;
    }
    Some((first, array_leaves(at)))
}

/// The operand that an instruction's result is an alias of: nothing is executed for it. (Calls are not among
/// these, nor tuples, elements of tuples, loops and conditionals.)
///
/// A `bitcast` counts where it is no more than a reshape, which is what is left of it when layouts are gone;
/// `bitcast-convert` where it moves bits unchanged: bits of floats become canonical when they are read.
pub fn alias_of(module: &Module, id: InstrId) -> Option<InstrId> {
    let instr = module.instr(id);
    let &operand = instr.operands().first()?;
    let shape = &module.instr(operand).shape;
    let same = match instr.opcode {
        Opcode::Reshape => shape.element_type() == instr.shape.element_type(),
        // Of another float type they convert.
        Opcode::Copy | Opcode::OptBarrier | Opcode::Domain | Opcode::AddDependency => {
            shape.compatible(&instr.shape)
        }
        Opcode::Bitcast | Opcode::BitcastConvert => {
            let (from, to) = (shape, &instr.shape);
            let bytes = from.checked_bytes();
            match (from, to) {
                (Shape::Array(a), Shape::Array(b)) => {
                    let whole = |t: hlo::ElementType| t.bits() >= 8 && t.class() != TypeClass::Pred;
                    let integer = !a.element_type.is_float() && !a.element_type.is_complex();
                    // What layout normalization leaves reads tiles, padding or parts of memory.
                    let plain = |a: &hlo::ArrayShape| {
                        a.layout.as_deref().is_none_or(|l| *l == hlo::Layout::row_major(a.rank()))
                    };
                    if instr.opcode == Opcode::Bitcast && !(plain(a) && plain(b)) {
                        return None;
                    }
                    let keeps = a.element_type == b.element_type
                        || whole(a.element_type) && whole(b.element_type) && integer;
                    keeps && bytes.is_some() && bytes == to.checked_bytes()
                }
                _ => from == to,
            }
        }
        _ => false,
    };
    same.then_some(operand)
}

impl Values {
    /// The values of all instructions of the line. Errors: arrays of unbounded sizes.
    pub(super) fn new(module: &Module, order: &Order) -> Result<Values, Unsupported> {
        let mut values = Values {
            all: Vec::new(),
            constants: Vec::new(),
            parameters: Vec::new(),
            pool: Vec::new(),
            ranges: vec![(0, 0); module.instruction_capacity()],
            elements: FxHashMap::default(),
            before: FxHashMap::default(),
        };
        for &p in module.computation(module.entry()).parameters() {
            let Some(p) = p else { continue };
            let range = values.fresh(module, p, Origin::Parameter(0))?;
            for i in range.0..range.1 {
                let value = values.pool[i as usize];
                values.all[value as usize].origin = Origin::Parameter(values.parameters.len() as u32);
                values.parameters.push(value);
            }
        }
        for &event in &order.events {
            values.event(module, event)?;
        }
        Ok(values)
    }

    /// The values of the array leaves of an instruction.
    pub(super) fn leaves(
        &self,
        id: InstrId,
    ) -> impl ExactSizeIterator<Item = ValueId> + DoubleEndedIterator + Clone + '_ {
        let (first, end) = self.ranges[id.index()];
        self.pool[first as usize..end as usize].iter().map(|&v| self.resolve(v))
    }

    /// The values that an instruction defined for its leaves, whether or not they turned out to be aliases.
    pub(super) fn own_leaves(&self, id: InstrId) -> impl ExactSizeIterator<Item = ValueId> + '_ {
        let (first, end) = self.ranges[id.index()];
        self.pool[first as usize..end as usize].iter().copied()
    }

    /// The value of one array leaf.
    pub(super) fn leaf(&self, id: InstrId, leaf: usize) -> ValueId {
        let (first, end) = self.ranges[id.index()];
        self.resolve(self.pool[first as usize..end as usize][leaf])
    }

    /// The values of all operands' leaves, with the operand's slot and the leaf in it.
    pub(super) fn operands<'a>(
        &'a self,
        module: &'a Module,
        id: InstrId,
    ) -> impl Iterator<Item = (u32, u32, ValueId)> + 'a {
        module.instr(id).operands().iter().enumerate().flat_map(move |(slot, &o)| {
            self.leaves(o).enumerate().map(move |(l, v)| (slot as u32, l as u32, v))
        })
    }

    /// The operand's and the result's value of an in-place pair.
    pub(super) fn pair(&self, module: &Module, id: InstrId, pair: &Pair) -> (ValueId, ValueId) {
        let operand = module.instr(id).operands()[pair.slot as usize];
        (self.leaf(operand, pair.leaf as usize), self.leaf(id, pair.result as usize))
    }

    pub(super) fn get(&self, value: ValueId) -> &Value {
        &self.all[value as usize]
    }

    pub(super) fn resolve(&self, mut value: ValueId) -> ValueId {
        while self.all[value as usize].same_as != value {
            value = self.all[value as usize].same_as;
        }
        value
    }

    /// Defines a value for each array leaf of an instruction.
    fn fresh(&mut self, module: &Module, id: InstrId, origin: Origin) -> Result<(u32, u32), Unsupported> {
        let first = self.pool.len() as u32;
        let mut bounded = true;
        for_each_array(&module.instr(id).shape, &mut |shape| {
            let bytes = shape.checked_bytes().and_then(|b| u64::try_from(b).ok());
            bounded &= bytes.is_some();
            let value = self.all.len() as u32;
            let bytes = bytes.unwrap_or(0);
            self.all.push(Value { instr: id, bytes, origin, same_as: value });
            self.pool.push(value);
        });
        if !bounded {
            return Err(Unsupported::new(module, id, "an array of unbounded size"));
        }
        let range = (first, self.pool.len() as u32);
        self.ranges[id.index()] = range;
        Ok(range)
    }

    /// Makes the parameters of a computation aliases of these ranges.
    fn bind(&mut self, module: &Module, computation: ComputationId, ranges: &[(u32, u32)]) {
        for (&p, &range) in module.computation(computation).parameters().iter().zip(ranges) {
            if let Some(p) = p {
                self.ranges[p.index()] = range;
            }
        }
    }

    /// Values that are handed on under other names, checked to be of one type under all. Errors: some are of
    /// another float type elsewhere, where they would have to be converted.
    fn passed_on(module: &Module, id: InstrId, parts: &[(InstrId, &Shape)]) -> Result<(), Unsupported> {
        match parts.iter().all(|(from, to)| module.instr(*from).shape.compatible(to)) {
            true => Ok(()),
            false => {
                Err(Unsupported::new(module, id, "a value of another float type than where it comes from"))
            }
        }
    }

    fn event(&mut self, module: &Module, event: Event) -> Result<(), Unsupported> {
        let shape = |id: InstrId| &module.instr(id).shape;
        // Operands, parameters, roots and results of what is called are of the same types.
        if let Event::EnterWhile(id) | Event::EnterConditional(id) | Event::EnterCall(id) = event {
            let opcode = module.instr(id).opcode;
            let called = control(module, id);
            let operands = module.instr(id).operands();
            let mut parts = Vec::new();
            for (n, &c) in called.iter().enumerate() {
                let parameters = module.computation(c).parameters().iter().flatten();
                let given = match opcode {
                    Opcode::While => operands.get(..1),
                    Opcode::Conditional => operands.get(n + 1..n + 2),
                    _ => Some(operands),
                };
                parts.extend(given.unwrap_or_default().iter().zip(parameters).map(|(&o, &p)| (o, shape(p))));
                if opcode != Opcode::While || n == 1 {
                    parts.push((module.root(c), shape(id)));
                }
            }
            if opcode == Opcode::While {
                parts.extend(operands.iter().map(|&o| (o, shape(id))));
            }
            Self::passed_on(module, id, &parts)?;
        }
        match event {
            Event::Do(id) => self.instruction(module, id)?,
            Event::EnterWhile(id) => {
                let range = self.fresh(module, id, Origin::State)?;
                for c in control(module, id) {
                    self.bind(module, c, &[range]);
                }
            }
            Event::Repeat(id) => self.settle_loop(module, id),
            Event::EnterConditional(id) => {
                self.before.insert(id, self.all.len() as ValueId);
                let operands = module.instr(id).operands();
                for (c, &o) in control(module, id).into_iter().zip(operands.get(1..).unwrap_or_default()) {
                    self.bind(module, c, &[self.ranges[o.index()]]);
                }
            }
            Event::LeaveConditional(id) => {
                self.fresh(module, id, Origin::Choice)?;
                self.settle_choice(module, id);
            }
            Event::EnterCall(id) => {
                let ranges: Vec<(u32, u32)> =
                    module.instr(id).operands().iter().map(|o| self.ranges[o.index()]).collect();
                for c in control(module, id) {
                    self.bind(module, c, &ranges);
                }
            }
            Event::LeaveCall(id) => {
                for c in control(module, id) {
                    self.ranges[id.index()] = self.ranges[module.root(c).index()];
                }
            }
            Event::Decide(_) | Event::LeaveBranch(..) | Event::End => {}
        }
        Ok(())
    }

    fn instruction(&mut self, module: &Module, id: InstrId) -> Result<(), Unsupported> {
        let instr = module.instr(id);
        match instr.opcode {
            // Bound by the caller.
            Opcode::Parameter => {}
            Opcode::Constant => {
                let (first, end) = self.fresh(module, id, Origin::Constant(0))?;
                for leaf in 0..end - first {
                    let value = self.pool[(first + leaf) as usize];
                    self.all[value as usize].origin = Origin::Constant(self.constants.len() as u32);
                    self.constants.push((id, leaf));
                }
            }
            Opcode::Tuple => {
                let parts = instr.shape.as_tuple().unwrap_or_default();
                let parts: Vec<_> = instr.operands().iter().copied().zip(parts).collect();
                Self::passed_on(module, id, &parts)?;
                let first = self.pool.len() as u32;
                for &o in instr.operands() {
                    let (a, b) = self.ranges[o.index()];
                    self.pool.extend_from_within(a as usize..b as usize);
                }
                self.ranges[id.index()] = (first, self.pool.len() as u32);
            }
            Opcode::GetTupleElement => {
                let Some(&o) = instr.operands().first() else { return Ok(()) };
                let index = instr.attrs.int(AttrKey::Index).and_then(|i| usize::try_from(i).ok());
                let element = index.and_then(|i| module.instr(o).shape.as_tuple()?.get(i));
                if !element.is_some_and(|e| e.compatible(&instr.shape)) {
                    return Err(Unsupported::new(
                        module,
                        id,
                        "an element of another float type than in the tuple",
                    ));
                }
                let starts = self.elements.entry(o).or_insert_with(|| element_starts(&module.instr(o).shape));
                let first = self.ranges[o.index()].0;
                if let Some(&[a, b]) = index.and_then(|i| starts.get(i..i + 2)) {
                    self.ranges[id.index()] = (first + a, first + b);
                }
            }
            opcode => match alias_of(module, id) {
                Some(operand) => self.ranges[id.index()] = self.ranges[operand.index()],
                None if matches!(opcode, Opcode::OptBarrier | Opcode::Domain | Opcode::AddDependency) => {
                    return Err(Unsupported::new(
                        module,
                        id,
                        "a value of another float type than its operand",
                    ));
                }
                None => {
                    self.fresh(module, id, Origin::Computed)?;
                }
            },
        }
        Ok(())
    }

    /// Invariant state is the value that the loop was given.
    fn settle_loop(&mut self, module: &Module, id: InstrId) {
        let (Some(&init), [_, body]) = (module.instr(id).operands().first(), &*control(module, id)) else {
            return;
        };
        let (state, next) = (self.ranges[id.index()], self.ranges[module.root(*body).index()]);
        let given = self.ranges[init.index()].0;
        for i in 0..state.1 - state.0 {
            let own = self.pool[(state.0 + i) as usize];
            if self.resolve(self.pool[(next.0 + i) as usize]) == own {
                self.all[own as usize].same_as = self.resolve(self.pool[(given + i) as usize]);
            }
        }
    }

    /// A result that is the same outside value in all branches is that value.
    fn settle_choice(&mut self, module: &Module, id: InstrId) {
        let roots: Vec<u32> =
            control(module, id).into_iter().map(|c| self.ranges[module.root(c).index()].0).collect();
        let (first, end) = self.ranges[id.index()];
        for i in 0..end - first {
            let mut options = roots.iter().map(|&r| self.resolve(self.pool[(r + i) as usize]));
            let own = self.pool[(first + i) as usize];
            if let Some(one) = options.next()
                && options.all(|v| v == one)
                && self.before.get(&id).is_some_and(|&n| one < n)
            {
                self.all[own as usize].same_as = one;
            }
        }
    }
}
