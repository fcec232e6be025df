//! Dimensions that must have the same size.
//!
//! Every dimension of every array in the program is a variable; an instruction ties some of those of its
//! operands to some of its result's and of the computations it calls ([`ties`]). What is tied forms a class.
//! Dimensions that depend on others without being equal (slices, padding, windows, ...) are in `solve.rs`.

mod ties;

use std::ops::Range;

use hlo::{InstrId, Module};

use crate::reduce::program::{Live, Tidy};

/// A dimension of an array.
pub(super) type Var = usize;

/// The change of the dimensions of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// They get this size.
    Size(i64),
    /// They go; their size is 1.
    Drop,
}

/// The dimensions of a program and what becomes of them.
#[derive(Debug)]
pub(super) struct Dims<'m> {
    pub(super) module: &'m Module,
    pub(super) live: Live,
    /// For each instruction the dimensions of each leaf of its shape.
    leaves: Vec<Vec<Range<Var>>>,
    old: Vec<i64>,
    parent: Vec<Var>,
    change: Vec<Option<Change>>,
    fixed: Vec<bool>,
    /// Classes that ties have joined although their sizes differ.
    unequal: Vec<(Var, Var)>,
}

impl<'m> Dims<'m> {
    /// The dimensions of a program, tied.
    pub(super) fn new(module: &'m Module) -> Self {
        let live = Live::of(module, Tidy::Parameters);
        let mut dims = Dims {
            module,
            live,
            leaves: vec![Vec::new(); module.instruction_capacity()],
            old: Vec::new(),
            parent: Vec::new(),
            change: Vec::new(),
            fixed: Vec::new(),
            unequal: Vec::new(),
        };
        let ids = dims.instructions();
        for &id in &ids {
            let mut leaves = Vec::new();
            for leaf in module.instr(id).shape.leaves() {
                let first = dims.old.len();
                if let Some(a) = leaf.as_array() {
                    dims.old.extend_from_slice(&a.dims);
                }
                leaves.push(first..dims.old.len());
            }
            dims.leaves[id.index()] = leaves;
        }
        dims.parent = (0..dims.old.len()).collect();
        dims.change = vec![None; dims.old.len()];
        dims.fixed = vec![false; dims.old.len()];
        for &id in &ids {
            dims.tie_instruction(id);
        }
        dims
    }

    /// The instructions that count.
    pub(super) fn instructions(&self) -> Vec<InstrId> {
        let computations = self.live.computations.iter();
        computations.flat_map(|&c| self.module.instructions(c)).filter(|&id| self.live.has(id)).collect()
    }

    /// The dimensions of a leaf of an instruction's shape; none if it has no such leaf.
    pub(super) fn leaf(&self, id: InstrId, leaf: usize) -> Range<Var> {
        self.leaves[id.index()].get(leaf).cloned().unwrap_or(0..0)
    }

    /// The dimensions of an instruction that is an array.
    pub(super) fn of(&self, id: InstrId) -> Range<Var> {
        self.leaf(id, 0)
    }

    /// The dimensions of an operand that is an array.
    pub(super) fn operand(&self, id: InstrId, slot: usize) -> Range<Var> {
        self.module.instr(id).operands().get(slot).map_or(0..0, |&o| self.of(o))
    }

    /// Number of leaves of an instruction's shape.
    pub(super) fn leaf_count(&self, id: InstrId) -> usize {
        self.leaves[id.index()].len()
    }

    /// The variable that stands for a class.
    pub(super) fn class(&self, var: Var) -> Var {
        let mut at = var;
        while self.parent[at] != at {
            at = self.parent[at];
        }
        at
    }

    /// The size before.
    pub(super) fn old_size(&self, var: Var) -> i64 {
        self.old[var]
    }

    /// The change of a dimension; `None`: none.
    pub(super) fn change(&self, var: Var) -> Option<Change> {
        self.change[self.class(var)]
    }

    /// The size after; of a dropped dimension 1.
    pub(super) fn size(&self, var: Var) -> i64 {
        match self.change(var) {
            None => self.old[var],
            Some(Change::Size(n)) => n,
            Some(Change::Drop) => 1,
        }
    }

    /// Whether a dimension must stay.
    pub(super) fn is_fixed(&self, var: Var) -> bool {
        self.fixed[self.class(var)]
    }

    /// Decides what becomes of a class. `None` if something else was decided, or the class is fixed.
    pub(super) fn set(&mut self, var: Var, change: Change) -> Option<()> {
        let class = self.class(var);
        if let Some(now) = self.change[class] {
            return (now == change).then_some(());
        }
        let stays = matches!(change, Change::Size(n) if n == self.old[var]);
        if let Change::Size(n) = change
            && n < 0
        {
            return None;
        }
        if self.fixed[class] && !stays {
            return None;
        }
        self.change[class] = Some(change);
        Some(())
    }

    /// Assigns classes whose dimensions had different sizes the smallest of them.
    pub(super) fn settle_unequal(&mut self) -> Option<()> {
        for (a, b) in std::mem::take(&mut self.unequal) {
            let least = self.old[a].min(self.old[b]);
            let class = self.class(a);
            match self.change[class] {
                Some(Change::Size(n)) if n > least => self.change[class] = Some(Change::Size(least)),
                Some(_) => {}
                None => self.change[class] = Some(Change::Size(least)),
            }
            if self.fixed[class] {
                return None;
            }
        }
        Some(())
    }

    /// The classes of dimensions of all values, each once, in order.
    pub(super) fn classes(&self) -> Vec<Var> {
        (0..self.old.len()).filter(|&v| self.parent[v] == v && !self.fixed[v]).collect()
    }

    /// Each variable with its instruction.
    pub(super) fn for_each_var(&self, mut f: impl FnMut(InstrId, Var)) {
        for id in self.instructions() {
            for leaf in &self.leaves[id.index()] {
                leaf.clone().for_each(|v| f(id, v));
            }
        }
    }

    fn tie(&mut self, a: Var, b: Var) {
        let (ca, cb) = (self.class(a), self.class(b));
        if self.old[a] != self.old[b] {
            self.unequal.push((a, b));
        }
        if ca == cb {
            return;
        }
        // The earlier one stands for both, so that classes have an order that depends on the text alone.
        let (low, high) = (ca.min(cb), ca.max(cb));
        self.parent[high] = low;
        self.fixed[low] |= self.fixed[high];
    }

    fn tie_ranges(&mut self, a: Range<Var>, b: Range<Var>) {
        if a.len() == b.len() {
            a.zip(b).for_each(|(a, b)| self.tie(a, b));
        } else {
            // Nothing that is known: both stay.
            a.chain(b).for_each(|v| self.fix(v));
        }
    }

    fn fix(&mut self, var: Var) {
        let class = self.class(var);
        self.fixed[class] = true;
    }

    fn fix_all(&mut self, range: Range<Var>) {
        range.for_each(|v| self.fix(v));
    }

    /// Dimensions of operand and result of a reshape that hold the same elements, in groups; those of size 1
    /// are left out.
    pub(super) fn reshape_groups(&self, id: InstrId) -> Vec<(Vec<Var>, Vec<Var>)> {
        let from: Vec<Var> = self.operand(id, 0).filter(|&v| self.old[v] != 1).collect();
        let to: Vec<Var> = self.of(id).filter(|&v| self.old[v] != 1).collect();
        if from.iter().chain(&to).any(|&v| self.old[v] <= 0) {
            return vec![(from, to)];
        }
        let mut groups = Vec::new();
        let (mut a, mut b) = (0, 0);
        while a < from.len() || b < to.len() {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            let (mut m, mut n) = (1i64, 1i64);
            loop {
                if m <= n && a < from.len() {
                    m = m.saturating_mul(self.old[from[a]]);
                    left.push(from[a]);
                    a += 1;
                } else if b < to.len() {
                    n = n.saturating_mul(self.old[to[b]]);
                    right.push(to[b]);
                    b += 1;
                } else if a < from.len() {
                    m = m.saturating_mul(self.old[from[a]]);
                    left.push(from[a]);
                    a += 1;
                } else {
                    break;
                }
                if m == n {
                    break;
                }
            }
            groups.push((left, right));
        }
        groups
    }
}
