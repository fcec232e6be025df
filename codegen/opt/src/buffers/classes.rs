//! Coalescing: values that share a location form *classes*.
//!
//! **Invariant:** two values of a class are never live at once, except at the tick of an event that turns one
//! into the other, where [`super::in_place`] allows it or the event only moves one to the other.

use hlo::attrs::AliasKind;
use hlo::{InstrId, Module};
use rustc_hash::FxHashMap;

use super::Questions;
use super::in_place::{self, Pairs, Sharing};
use super::live::{Span, Spans, is_name, normalize, tick, transfers};
use super::order::{Event, Order};
use super::values::{Origin, ValueId, Values, leaf_range};

/// Merging two classes looks at up to this many ticks at which both are live; with more they stay apart.
const MAX_INTERFERENCES: usize = 64;

/// A value that the program must leave in the memory of a parameter: a leaf of the result, and the
/// parameter's leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tied {
    pub(super) result: u32,
    pub(super) parameter: u32,
    pub(super) must: bool,
}

pub(super) struct Classes<'a> {
    module: &'a Module,
    questions: &'a Questions<'a>,
    order: &'a Order,
    values: &'a Values,
    parent: Vec<ValueId>,
    /// Circular linked lists of the members of each class.
    next: Vec<ValueId>,
    size: Vec<u32>,
    spans: Vec<Spans>,
    fixed: Vec<Fixed>,
    /// In-place pairs of the instructions that have any.
    pairs: FxHashMap<InstrId, Pairs>,
    over: FxHashMap<u32, Over>,
}

/// The in-place permissions of an event: pairs of a value that it reads and a value that it defines, in both
/// orders; both sorted.
#[derive(Default)]
struct Over {
    by_read: Vec<(ValueId, ValueId)>,
    by_made: Vec<(ValueId, ValueId)>,
}

/// The partners of a value in sorted pairs.
fn partners(pairs: &[(ValueId, ValueId)], value: ValueId) -> impl Iterator<Item = ValueId> + '_ {
    let first = pairs.partition_point(|p| p.0 < value);
    pairs[first..].iter().take_while(move |p| p.0 == value).map(|p| p.1)
}

/// The memory that a class must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fixed {
    /// Any.
    No,
    /// That of a donated parameter, which it may write.
    Donated(u32),
    /// That of a parameter or constant, which it may not write.
    ReadOnly,
}

/// Leaves of the result that `input_output_alias` ties to leaves of parameters.
pub(super) fn ties(module: &Module) -> Vec<Tied> {
    let entry = module.entry();
    let mut ties = Vec::new();
    for alias in &module.header.input_output_alias {
        let result = leaf_range(&module.instr(module.root(entry)).shape, &alias.output_index);
        let parameter = parameter_leaves(module, alias.parameter, &alias.parameter_index);
        if let (Some((r, n)), Some((p, m))) = (result, parameter)
            && n == m
        {
            let must = alias.kind == AliasKind::Must;
            ties.extend((0..n).map(|i| Tied { result: (r + i) as u32, parameter: (p + i) as u32, must }));
        }
    }
    ties
}

/// The range of all parameters' leaves that a part of a parameter is.
fn parameter_leaves(module: &Module, parameter: i64, index: &[i64]) -> Option<(usize, usize)> {
    let n = usize::try_from(parameter).ok()?;
    let parameters = module.computation(module.entry()).parameters();
    let shape = |p: &Option<InstrId>| p.map(|p| &module.instr(p).shape);
    let before: usize = parameters.get(..n)?.iter().filter_map(shape).map(super::values::array_leaves).sum();
    let (first, count) = leaf_range(parameters.get(n).and_then(shape)?, index)?;
    Some((before + first, count))
}

/// For each leaf of all parameters whether the program may overwrite it.
pub(super) fn donated(module: &Module, leaves: usize, ties: &[Tied]) -> Vec<bool> {
    let mut donated = vec![false; leaves];
    for t in ties {
        if let Some(d) = donated.get_mut(t.parameter as usize) {
            *d = true;
        }
    }
    for donor in &module.header.buffer_donor {
        let (first, n) = parameter_leaves(module, donor.parameter, &donor.parameter_index).unwrap_or((0, 0));
        donated.iter_mut().skip(first).take(n).for_each(|d| *d = true);
    }
    donated
}

impl<'a> Classes<'a> {
    /// Every value in a class of its own.
    pub(super) fn new(
        module: &'a Module,
        order: &'a Order,
        values: &'a Values,
        spans: Vec<Spans>,
        donated: &[bool],
        questions: &'a Questions<'a>,
    ) -> Self {
        let fixed = values.all.iter().map(|v| match v.origin {
            Origin::Parameter(leaf) if donated[leaf as usize] => Fixed::Donated(leaf),
            Origin::Parameter(_) | Origin::Constant(_) => Fixed::ReadOnly,
            Origin::Computed | Origin::State | Origin::Choice => Fixed::No,
        });
        let fixed = fixed.collect();
        let parent: Vec<ValueId> = (0..values.all.len() as ValueId).collect();
        let (next, size) = (parent.clone(), vec![1; parent.len()]);
        let (pairs, over) = (FxHashMap::default(), FxHashMap::default());
        Self { module, questions, order, values, parent, next, size, spans, fixed, pairs, over }
    }

    pub(super) fn class(&self, value: ValueId) -> ValueId {
        let mut v = self.values.resolve(value);
        while self.parent[v as usize] != v {
            v = self.parent[v as usize];
        }
        v
    }

    pub(super) fn spans(&self, class: ValueId) -> &Spans {
        &self.spans[class as usize]
    }

    pub(super) fn pairs(&self, id: InstrId) -> &[in_place::Pair] {
        self.pairs.get(&id).map_or(&[], |p| p)
    }

    /// All in-place pairs of all instructions.
    pub(super) fn into_pairs(self) -> FxHashMap<InstrId, Pairs> {
        self.pairs
    }

    /// Keeps a class live for another span, whatever else is live in it.
    pub(super) fn extend(&mut self, class: ValueId, span: Span) {
        self.spans[class as usize].push(span);
        normalize(&mut self.spans[class as usize]);
    }

    /// Merges classes, most profitable first: the memory that the caller named, then copies in the innermost
    /// loops.
    pub(super) fn merge_all(&mut self, ties: &[Tied]) {
        let root = self.module.root(self.module.entry());
        let end = tick(self.order.events.len() as u32 - 1);
        let wishes = self.wishes();
        for t in ties {
            let value = self.values.leaf(root, t.result as usize);
            let parameter = self.values.parameters[t.parameter as usize];
            if t.must && self.class(value) != self.class(parameter) && !self.merge(value, parameter) {
                // The result is moved there at the end, so nothing else may be there then.
                self.extend(parameter, (end, end + 2));
            }
        }
        for t in ties.iter().filter(|t| !t.must) {
            let value = self.values.leaf(root, t.result as usize);
            self.merge(value, self.values.parameters[t.parameter as usize]);
        }
        for (from, to) in wishes {
            self.merge(from, to);
        }
    }

    /// Pairs of values that should share memory, most profitable first.
    fn wishes(&mut self) -> Vec<(ValueId, ValueId)> {
        let mut wishes: Vec<(u32, u8, u32, ValueId, ValueId)> = Vec::new();
        for (position, &event) in self.order.events.iter().enumerate() {
            let loops = u32::MAX - self.order.loops[position];
            let position = position as u32;
            for (from, to) in transfers(self.module, self.values, event) {
                wishes.push((loops, 1, position, from, to));
            }
            let Event::Do(id) = event else { continue };
            if is_name(self.module, self.values, id) {
                continue;
            }
            let pairs = self.pairs_of(id);
            for p in pairs {
                let (from, to) = self.values.pair(self.module, id, &p);
                match p.sharing {
                    Sharing::Must => wishes.push((loops, 0, position, from, to)),
                    Sharing::May => wishes.push((u32::MAX, 2, position, from, to)),
                }
            }
        }
        wishes.sort_unstable_by_key(|w| (w.0, w.1, w.2));
        wishes.into_iter().map(|w| (w.3, w.4)).collect()
    }

    /// The in-place pairs of an instruction; computed before anything is merged.
    fn pairs_of(&mut self, id: InstrId) -> Pairs {
        let pairs = in_place::pairs(self.module, id, (self.questions.epilogue_in_place)(id));
        if !pairs.is_empty() {
            self.pairs.insert(id, pairs.clone());
        }
        pairs
    }

    /// Merges the classes of two values if that is allowed. Returns whether they are one now.
    pub(super) fn merge(&mut self, a: ValueId, b: ValueId) -> bool {
        let (mut a, mut b) = (self.class(a), self.class(b));
        if a == b {
            return true;
        }
        let fixed = match (self.fixed[a as usize], self.fixed[b as usize]) {
            (Fixed::No, f @ (Fixed::No | Fixed::Donated(_))) | (f @ Fixed::Donated(_), Fixed::No) => f,
            (Fixed::Donated(_), Fixed::Donated(_)) | (Fixed::ReadOnly, _) | (_, Fixed::ReadOnly) => {
                return false;
            }
        };
        let (x, y) = (self.values.get(a).bytes, self.values.get(b).bytes);
        if x != y || x == 0 {
            return false;
        }
        let Some(positions) = interferences(&self.spans[a as usize], &self.spans[b as usize]) else {
            return false;
        };
        if !positions.into_iter().all(|position| self.may_meet(position, a, b)) {
            return false;
        }
        if self.size[a as usize] < self.size[b as usize] {
            std::mem::swap(&mut a, &mut b);
        }
        let mut spans = std::mem::take(&mut self.spans[b as usize]);
        if spans.len() > self.spans[a as usize].len() {
            std::mem::swap(&mut spans, &mut self.spans[a as usize]);
        }
        self.spans[a as usize].extend(spans);
        normalize(&mut self.spans[a as usize]);
        self.parent[b as usize] = a;
        self.next.swap(a as usize, b as usize);
        self.size[a as usize] += self.size[b as usize];
        self.fixed[a as usize] = fixed;
        true
    }

    /// Whether an event may write what it defines in one of two classes over what it reads in the other.
    /// There is at most one value of each: no two of a class are live at once.
    fn may_meet(&mut self, position: u32, a: ValueId, b: ValueId) -> bool {
        if !self.over.contains_key(&position) {
            let over = self.over_at(position);
            self.over.insert(position, over);
        }
        let over = &self.over[&position];
        let (few, other) = if self.size[a as usize] <= self.size[b as usize] { (a, b) } else { (b, a) };
        let mut member = few;
        loop {
            let mut partners =
                partners(&over.by_read, member).chain(partners(&over.by_made, member)).map(|v| self.class(v));
            if partners.any(|c| c == other) {
                return true;
            }
            member = self.next[member as usize];
            if member == few {
                return false;
            }
        }
    }

    fn over_at(&self, position: u32) -> Over {
        let event = self.order.events[position as usize];
        let mut over = Over::default();
        match event {
            Event::EnterWhile(_) | Event::Repeat(_) | Event::LeaveBranch(..) => {
                over.by_read = transfers(self.module, self.values, event);
                over.by_read.sort_unstable();
            }
            Event::Do(id) => {
                let Some(pairs) = self.pairs.get(&id) else { return over };
                let mut reads: Vec<ValueId> = self.values.operands(self.module, id).map(|o| o.2).collect();
                reads.sort_unstable();
                let mut all: Vec<(ValueId, ValueId)> =
                    pairs.iter().map(|p| self.values.pair(self.module, id, p)).collect();
                all.sort_unstable();
                // This result must be allowed for every operand slot that reads the value.
                over.by_read = all
                    .chunk_by(|x, y| x == y)
                    .filter_map(|same| {
                        let (read, _) = same[0];
                        let times =
                            reads.partition_point(|&r| r <= read) - reads.partition_point(|&r| r < read);
                        (times == same.len()).then_some(same[0])
                    })
                    .collect();
            }
            Event::Decide(_)
            | Event::EnterConditional(_)
            | Event::LeaveConditional(_)
            | Event::EnterCall(_)
            | Event::LeaveCall(_)
            | Event::End => {}
        }
        over.by_made = over.by_read.iter().map(|&(r, m)| (m, r)).collect();
        over.by_made.sort_unstable();
        over
    }
}

/// The positions of events at whose tick, and at no other, two lists of spans are both live. `None` if they
/// are for longer, or at too many.
fn interferences(a: &Spans, b: &Spans) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    let (mut i, mut j) = (0, 0);
    // Skips to where they can overlap.
    if let (Some(&(from, _)), Some(&(other, _))) = (a.first(), b.first()) {
        i = a.partition_point(|s| s.1 <= other);
        j = b.partition_point(|s| s.1 <= from);
    }
    while let (Some(&x), Some(&y)) = (a.get(i), b.get(j)) {
        let (from, to) = (x.0.max(y.0), x.1.min(y.1));
        if from < to {
            if to - from > 1 || from % 2 != 0 || found.len() == MAX_INTERFERENCES {
                return None;
            }
            found.push(from / 2);
        }
        if x.1 <= y.1 { i += 1 } else { j += 1 }
    }
    Some(found)
}
