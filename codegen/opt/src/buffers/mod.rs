//! Buffer assignment: the memory location of every value of a program.
//!
//! A value of tuple shape is its *leaves*: its arrays in depth-first order; tuples themselves are never in
//! memory. **Invariants:** two values that are live at once share no byte, unless one aliases the other
//! (tuples and their elements, loop state, a result that an instruction writes over an operand that dies
//! there); what the caller did not donate is never written.
//!
//! The steps: linearize the program's events ([`order`]), number the values that they define and use
//! ([`values`]), compute liveness ([`live`]), coalesce values that share a location ([`classes`]), insert the
//! copies that remain ([`moves`]), and assign an offset to each class ([`pack`]).

pub mod check;
mod classes;
pub mod in_place;
mod live;
pub mod moves;
mod order;
mod pack;
mod report;
mod values;

use std::fmt;

use hlo::{InstrId, Module};
use hlo_library_base::Unsupported;
use rustc_hash::{FxHashMap, FxHashSet};

use self::classes::Classes;
use self::live::{is_name, tick, transfers};
use self::moves::{Move, Moved};
pub use self::order::control as control_computations;
use self::order::{Event, Order};
use self::pack::{Bin, Item};
pub use self::report::{Placed, placed, report, title};
pub use self::values::alias_of;
use self::values::{Origin, ValueId, Values};
pub use self::values::{element_starts, for_each_array};

/// A slice of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Slice {
    /// An index into [`Assignment::allocations`].
    pub allocation: u32,
    /// Offset in bytes; a multiple of 64.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// The kind of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllocationKind {
    /// The caller's argument: leaf `leaf` of all parameters' leaves in order. Written only if `donated`.
    Parameter {
        /// The leaf.
        leaf: u32,
        /// Whether the program may overwrite it.
        donated: bool,
    },
    /// Read-only: `constants[index]` of the program.
    Constant {
        /// The constant.
        index: u32,
    },
    /// The memory of leaf `leaf` of the result.
    Result {
        /// The leaf.
        leaf: u32,
    },
    /// The arena: all temporaries.
    Arena,
    /// Scratch memory of at most [`FRAME`] bytes, used by one step at a time, in the frame next to a run's
    /// pointers: not counted in any peak, as stacks are not.
    Frame,
}

/// The alignment of every array, in bytes: a cache line, and the widest register.
pub const ALIGNMENT: u64 = 64;

/// The maximum size in bytes of scratch memory that is in the frame of a run and not in its arena, which a
/// program without other temporaries then does not have.
pub const FRAME: u64 = 8 << 10;

/// Memory that the runtime provides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// Its kind.
    pub kind: AllocationKind,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The buffers of a program.
#[derive(Clone, Debug, Default)]
pub struct Assignment {
    /// All allocations.
    pub allocations: Vec<Allocation>,
    /// For each leaf of the entry's result the slice that holds it at the end: of a result allocation
    /// (another leaf's, if both are the same value), or of a parameter or constant. The runtime copies
    /// constants and parameters that were not donated, and returns donated ones (to one leaf, if several
    /// share one).
    pub results: Vec<Slice>,
    /// The peak of live memory in bytes: parameters, results, constants and arena.
    pub peak_bytes: u64,
    /// A lower bound of the peak: the largest sum of sizes of values and scratch memory live at once in this
    /// instruction order, with parameters and constants always live.
    pub lower_bound_bytes: u64,
}

/// What buffer assignment asks about instructions.
pub struct Questions<'a> {
    /// The scratch memory that an instruction needs while it runs, in bytes.
    pub scratch: &'a dyn Fn(InstrId) -> u64,
    /// Whether a `while`, `conditional` or `call` is executed as one instruction: nothing of what it calls
    /// has a buffer.
    pub whole: &'a dyn Fn(InstrId) -> bool,
    /// Of an output fusion: whether its epilogue may be written over operands that it reads at the same
    /// offsets ([`in_place`]).
    pub epilogue_in_place: &'a dyn Fn(InstrId) -> bool,
}

impl fmt::Debug for Questions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Questions")
    }
}

/// A copy of bytes between disjoint slices of one size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copy {
    /// The source.
    pub from: Slice,
    /// The destination.
    pub to: Slice,
}

/// When copies are made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum When {
    /// Before an instruction that changes its operand in place; before the first evaluation of a `while`
    /// condition.
    Before(InstrId),
    /// After each iteration of this `while`.
    AfterBody(InstrId),
    /// After a branch of this `conditional`.
    AfterBranch(InstrId, u32),
    /// At the end of the program.
    AtEnd,
}

/// An [`Assignment`], and the location of each value in it.
#[derive(Debug)]
pub struct Assigned {
    /// The program's buffers.
    pub assignment: Assignment,
    /// For each constant of the program, by [`AllocationKind::Constant`], the instruction and its array leaf.
    pub constants: Vec<(InstrId, u32)>,
    /// The slice of each class of values.
    slices: FxHashMap<ValueId, Slice>,
    /// The class of each value.
    class: Vec<ValueId>,
    values: Values,
    order: Order,
    copies: FxHashMap<When, Vec<Copy>>,
    scratch: FxHashMap<InstrId, Slice>,
    in_place: FxHashMap<InstrId, in_place::Pairs>,
    anew: FxHashSet<(InstrId, Slice)>,
}

impl Assigned {
    /// The slice of an array leaf of an instruction's value. (State of a `while` shares the slice of its
    /// result, and so do the parameters of its computations; parameters of a branch share the slices of the
    /// conditional's operands.)
    pub fn slice_of(&self, id: InstrId, leaf: usize) -> Slice {
        self.slice(self.values.leaf(id, leaf))
    }

    /// The slices of all array leaves of an instruction's value, in order.
    pub fn slices_of(&self, id: InstrId) -> impl ExactSizeIterator<Item = Slice> + '_ {
        self.values.leaves(id).map(|v| self.slice(v))
    }

    /// The arguments of an instruction that is executed: the leaves of its operands, then of its result. An
    /// operand that it changes in place ([`in_place::Sharing::Must`]) has the slice of the result.
    pub fn arguments(&self, module: &Module, id: InstrId) -> Vec<Slice> {
        let pairs = self.in_place.get(&id).map_or(&[][..], |p| p);
        let operands = self.values.operands(module, id).map(|(slot, leaf, value)| {
            let changed = |p: &&in_place::Pair| {
                p.sharing == in_place::Sharing::Must && p.slot == slot && p.leaf == leaf
            };
            match pairs.iter().find(changed) {
                Some(p) => self.slice_of(id, p.result as usize),
                None => self.slice(value),
            }
        });
        operands.chain(self.slices_of(id)).collect()
    }

    /// The scratch memory of an instruction, if it asked for some.
    pub fn scratch_of(&self, id: InstrId) -> Option<Slice> {
        self.scratch.get(&id).copied()
    }

    /// The copies to make at a point, in order.
    pub fn copies(&self, when: When) -> &[Copy] {
        self.copies.get(&when).map_or(&[], |c| c)
    }

    /// Whether a slice that the copies after the body of a `while` read holds no value when the body begins.
    pub fn made_anew(&self, id: InstrId, slice: Slice) -> bool {
        self.anew.contains(&(id, slice))
    }

    /// Whether nothing is executed for an instruction: a parameter, a constant, or an alias. (Not so `while`,
    /// `conditional` and `call`, whose computations are executed.)
    pub fn is_name(&self, module: &Module, id: InstrId) -> bool {
        is_name(module, &self.values, id)
    }

    fn slice(&self, value: ValueId) -> Slice {
        self.slices.get(&self.class[self.values.resolve(value) as usize]).copied().unwrap_or_default()
    }
}

/// Assigns a slice of the program's memory to every value.
///
/// The module is fused and scheduled: instructions run in its order. No computation has two call sites
/// (the pass `flatten-call-graph`). Errors: an array of unbounded size, a computation with two callers.
pub fn assign(module: &Module, questions: &Questions<'_>) -> Result<Assigned, Unsupported> {
    let order = Order::new(module, questions.whole)?;
    let values = Values::new(module, &order)?;
    let spans = live::spans(module, &order, &values);
    let ties = classes::ties(module);
    let donated = classes::donated(module, values.parameters.len(), &ties);
    let mut classes = Classes::new(module, &order, &values, spans, &donated, questions);
    classes.merge_all(&ties);
    let mut assigner = Assigner {
        module,
        questions,
        order: &order,
        values: &values,
        classes,
        allocations: Vec::new(),
        slices: FxHashMap::default(),
        results: Vec::new(),
        result_slices: FxHashMap::default(),
        items: Vec::new(),
        owners: Vec::new(),
        small: Vec::new(),
        moves: Vec::new(),
        anew: Vec::new(),
    };
    assigner.given(&donated);
    assigner.results(&ties);
    assigner.temporaries();
    assigner.collect_moves();
    let (bins, bin_slices) = assigner.bins();
    let Assigner {
        classes,
        mut allocations,
        mut slices,
        results,
        result_slices,
        items,
        owners,
        small,
        moves,
        anew,
        ..
    } = assigner;

    let fixed: u64 = allocations.iter().map(|a| a.bytes).sum();
    let returned = allocations.iter().filter(|a| matches!(a.kind, AllocationKind::Result { .. }));
    let returned: u64 = returned.map(|a| a.bytes).sum();
    // Results count while they are live.
    let made: Vec<Item> = bins
        .iter()
        .zip(&bin_slices)
        .filter(|(_, s)| matches!(allocations[s.allocation as usize].kind, AllocationKind::Result { .. }))
        .map(|(b, _)| Item { bytes: b.bytes, spans: b.spans.clone() })
        .collect();
    // The lower bound: what is live at once is stored in results, in donated parameters after their last
    // read, or in the arena; in bytes of arrays, for only the arena rounds up.
    let most = pack::most_alive(items.iter().chain(&made), |bytes| bytes);
    let usable =
        allocations.iter().filter(|a| matches!(a.kind, AllocationKind::Parameter { donated: true, .. }));
    let usable: u64 = usable.map(|a| a.bytes).sum();
    let lower_bound = fixed.max((fixed - returned - usable).saturating_add(most));
    let binned = pack::into_bins(&items, &bins);
    let (rest, indices): (Vec<Item>, Vec<usize>) = items
        .iter()
        .enumerate()
        .filter(|&(i, _)| binned[i].is_none())
        .map(|(i, item)| (item.clone(), i))
        .unzip();
    let packed = pack::pack(&rest);
    let arena = allocations.len() as u32;
    let mut at: Vec<(u32, u64)> = vec![(arena, 0); items.len()];
    for (&i, &offset) in indices.iter().zip(&packed.offsets) {
        at[i].1 = offset;
    }
    for (i, slot) in binned.into_iter().enumerate() {
        if let Some((bin, offset)) = slot {
            at[i] = (bin_slices[bin].allocation, offset);
        }
    }
    let mut scratch: FxHashMap<InstrId, Slice> = FxHashMap::default();
    let mut help = FxHashMap::default();
    for ((item, owner), (allocation, offset)) in items.iter().zip(owners).zip(at) {
        let slice = Slice { allocation, offset, bytes: item.bytes };
        match owner {
            Owner::Class(class) => {
                slices.insert(class, slice);
            }
            Owner::Scratch(id) => {
                scratch.insert(id, slice);
            }
            Owner::Help(when) => {
                help.insert(when, slice);
            }
        }
    }
    if packed.bytes > 0 {
        allocations.push(Allocation { kind: AllocationKind::Arena, bytes: packed.bytes });
    }
    if let Some(bytes) = small.iter().map(|s| s.1).max() {
        let frame = allocations.len() as u32;
        allocations.push(Allocation { kind: AllocationKind::Frame, bytes });
        scratch
            .extend(small.into_iter().map(|(id, bytes)| (id, Slice { allocation: frame, offset: 0, bytes })));
    }
    let slice = |m: Moved| match m {
        Moved::Class(c) => slices.get(&c).copied().unwrap_or_default(),
        Moved::Result(leaf) => result_slices.get(&leaf).copied().unwrap_or_default(),
        // The class whose allocation it shares says how much of it.
        Moved::Help => Slice::default(),
    };
    let mut copies: FxHashMap<When, Vec<Copy>> = FxHashMap::default();
    for (when, moves) in moves {
        let side = |m: Moved, other: Moved| match (m, other) {
            (Moved::Help, Moved::Class(_)) => {
                help.get(&when).map_or(Slice::default(), |&s| Slice { bytes: slice(other).bytes, ..s })
            }
            _ => slice(m),
        };
        let made: Vec<Copy> = moves
            .iter()
            .map(|m| Copy { from: side(m.from, m.to), to: side(m.to, m.from) })
            .filter(|c| c.to.bytes > 0)
            .collect();
        if !made.is_empty() {
            copies.insert(when, made);
        }
    }
    let results = results.into_iter().map(slice).collect();
    let class = (0..values.all.len() as ValueId).map(|v| classes.class(v)).collect();
    let in_place = classes.into_pairs();
    let assignment =
        Assignment { allocations, results, peak_bytes: fixed + packed.bytes, lower_bound_bytes: lower_bound };
    let constants = values.constants.clone();
    let slice_of = |(id, class)| (id, slices.get(&class).copied().unwrap_or_default());
    let anew = anew.into_iter().map(slice_of).collect();
    Ok(Assigned { assignment, constants, slices, class, values, order, copies, scratch, in_place, anew })
}

/// The purpose of an item of the arena.
#[derive(Clone, Copy)]
enum Owner {
    Class(ValueId),
    Scratch(InstrId),
    Help(When),
}

struct Assigner<'a> {
    module: &'a Module,
    questions: &'a Questions<'a>,
    order: &'a Order,
    values: &'a Values,
    classes: Classes<'a>,
    allocations: Vec<Allocation>,
    slices: FxHashMap<ValueId, Slice>,
    results: Vec<Moved>,
    result_slices: FxHashMap<u32, Slice>,
    items: Vec<Item>,
    owners: Vec<Owner>,
    /// Scratch memory in the frame.
    small: Vec<(InstrId, u64)>,
    moves: Vec<(When, Vec<Move<Moved>>)>,
    /// For loops the classes of [`Assigned::made_anew`].
    anew: Vec<(InstrId, ValueId)>,
}

impl Assigner<'_> {
    fn allocate(&mut self, kind: AllocationKind, bytes: u64) -> Slice {
        let allocation = self.allocations.len() as u32;
        self.allocations.push(Allocation { kind, bytes });
        Slice { allocation, offset: 0, bytes }
    }

    /// Allocations of parameters and constants.
    fn given(&mut self, donated: &[bool]) {
        for (leaf, &value) in self.values.parameters.iter().enumerate() {
            let kind = AllocationKind::Parameter { leaf: leaf as u32, donated: donated[leaf] };
            let slice = self.allocate(kind, self.values.get(value).bytes);
            self.slices.insert(self.classes.class(value), slice);
        }
        for value in 0..self.values.all.len() as ValueId {
            if let Origin::Constant(index) = self.values.get(value).origin {
                let slice = self.allocate(AllocationKind::Constant { index }, self.values.get(value).bytes);
                self.slices.insert(self.classes.class(value), slice);
            }
        }
    }

    /// Allocations of the result, and the copies into them at the end.
    fn results(&mut self, ties: &[classes::Tied]) {
        let root = self.module.root(self.module.entry());
        let leaves: Vec<ValueId> = self.values.leaves(root).collect();
        // The slice for a result that was not computed there.
        let mut elsewhere: FxHashMap<u32, ValueId> = FxHashMap::default();
        for t in ties.iter().filter(|t| t.must) {
            let parameter = self.classes.class(self.values.parameters[t.parameter as usize]);
            let value = leaves[t.result as usize];
            if self.classes.class(value) != parameter && self.values.get(value).bytes > 0 {
                elsewhere.insert(t.result, parameter);
            }
        }
        let overwritten: FxHashSet<ValueId> = elsewhere.values().copied().collect();
        let mut moves = Vec::new();
        for (leaf, &value) in leaves.iter().enumerate() {
            let leaf = leaf as u32;
            let class = self.classes.class(value);
            if let Some(&parameter) = elsewhere.get(&leaf) {
                moves.push(Move { from: Moved::Class(class), to: Moved::Class(parameter) });
                self.results.push(Moved::Class(parameter));
                continue;
            }
            let bytes = self.values.get(value).bytes;
            let taken = overwritten.contains(&class);
            if taken || !self.slices.contains_key(&class) {
                let slice = self.allocate(AllocationKind::Result { leaf }, bytes);
                if taken {
                    self.result_slices.insert(leaf, slice);
                } else {
                    self.slices.insert(class, slice);
                }
            }
            if taken {
                moves.push(Move { from: Moved::Class(class), to: Moved::Result(leaf) });
                self.results.push(Moved::Result(leaf));
            } else {
                self.results.push(Moved::Class(class));
            }
        }
        self.ordered(When::AtEnd, self.order.events.len() as u32 - 1, moves);
    }

    /// Memory of results and of donated parameters, which temporaries may use while these are not live.
    fn bins(&self) -> (Vec<Bin>, Vec<Slice>) {
        let mut classes: Vec<(ValueId, Slice)> = self.slices.iter().map(|(&c, &s)| (c, s)).collect();
        classes.sort_unstable_by_key(|(c, _)| *c);
        let free = classes.into_iter().filter(|(_, slice)| {
            let kind = self.allocations[slice.allocation as usize].kind;
            let own = matches!(
                kind,
                AllocationKind::Result { .. } | AllocationKind::Parameter { donated: true, .. }
            );
            own && slice.bytes > 0
        });
        free.map(|(class, slice)| {
            (Bin { bytes: slice.bytes, spans: self.classes.spans(class).clone() }, slice)
        })
        .unzip()
    }

    /// Everything else is in the arena.
    fn temporaries(&mut self) {
        for value in 0..self.values.all.len() as ValueId {
            let bytes = self.values.get(value).bytes;
            if self.classes.class(value) != value || self.slices.contains_key(&value) || bytes == 0 {
                continue;
            }
            self.item(Owner::Class(value), bytes, self.classes.spans(value).clone());
        }
        for (position, &event) in self.order.events.iter().enumerate() {
            let Event::Do(id) = event else { continue };
            if is_name(self.module, self.values, id) {
                continue;
            }
            let bytes = (self.questions.scratch)(id);
            if (1..=FRAME).contains(&bytes) {
                self.small.push((id, bytes));
            } else if bytes > 0 {
                self.item(Owner::Scratch(id), bytes, moment(position as u32));
            }
        }
    }

    fn item(&mut self, owner: Owner, bytes: u64, spans: live::Spans) {
        self.items.push(Item { bytes, spans });
        self.owners.push(owner);
    }

    fn collect_moves(&mut self) {
        let mut decided: FxHashMap<InstrId, u32> = FxHashMap::default();
        for (position, &event) in self.order.events.iter().enumerate() {
            if let Event::Decide(id) = event {
                decided.insert(id, tick(position as u32));
            }
            let Some(when) = event.copies() else { continue };
            let moves = match event {
                Event::Do(id) => {
                    let must = |p: &&in_place::Pair| p.sharing == in_place::Sharing::Must;
                    let pairs = self.classes.pairs(id).iter().filter(must);
                    pairs.map(|p| self.values.pair(self.module, id, p)).collect()
                }
                // Of the others only those that move values to where others expect them.
                _ => transfers(self.module, self.values, event),
            };
            if let Event::Repeat(id) = event
                && let Some(&decided) = decided.get(&id)
            {
                for &(from, _) in &moves {
                    let class = self.classes.class(from);
                    if !self.classes.spans(class).iter().any(|&(a, b)| a <= decided && decided < b) {
                        self.anew.push((id, class));
                    }
                }
            }
            let class = |v| Moved::Class(self.classes.class(v));
            let moves = moves.into_iter().map(|(f, t)| Move { from: class(f), to: class(t) }).collect();
            self.ordered(when, position as u32, moves);
        }
    }

    /// The copies at a position, ordered so that they act as one parallel copy.
    fn ordered(&mut self, when: When, position: u32, moves: Vec<Move<Moved>>) {
        let moves = moves::in_order(&moves, Moved::Help);
        if moves.is_empty() {
            return;
        }
        let bytes = moves.iter().map(|m| match (m.from, m.to) {
            (Moved::Class(c), Moved::Help) => self.values.get(c).bytes,
            _ => 0,
        });
        let bytes = bytes.max().unwrap_or(0);
        if bytes > 0 {
            self.item(Owner::Help(when), bytes, moment(position));
        }
        self.moves.push((when, moves));
    }
}

/// The span of an event.
fn moment(position: u32) -> live::Spans {
    std::iter::once((tick(position), tick(position) + 2)).collect()
}

/// The number of copies of a program, those in loops counted once: for tests and reports.
pub fn copies_of(assigned: &Assigned) -> usize {
    assigned.copies.values().map(Vec::len).sum()
}
