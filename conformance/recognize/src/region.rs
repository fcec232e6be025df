//! What an applied computation that folds does: of each component of its results, an operation on the
//! accumulator and on something of the elements, or a choice between the accumulators and the elements by
//! their order.
//!
//! - **Operations** (sums, products, extremes, logic) of the accumulator with a function of elements alone
//!   are read off the expression: `acc + x * x`. A sum or product that is computed in a wider type and then
//!   converted is one of its own type.
//! - **Choices** (argmax, extremes written out, overwriting) are not matched against forms, since there are
//!   too many. That such a region only compares ([`Compared`]) is shown from its expression: comparisons of
//!   an accumulator with its element or with constants, logic on their results, and selections by these. So
//!   what it gives depends on the order of its operands and of the constants alone, and a [`Table`] of what
//!   it gives for representatives of each order tells everything. What is compared may be a function of the
//!   operands on either side ([`Key`]).
//!
//! **Invariant:** what is not shown is not recognized.

use std::collections::BTreeSet;

use hlo::opcode::Numeric;
use hlo::{ComputationId, ConstantValue, ElementType, Module, Opcode};
use hlo_execution::format::{Format, has_infinities};
use hlo_interp::Tensor;

use crate::expression::{Expression, Origin};
use crate::keys::{Key, Keys};
use crate::merges::{self, Merge};
use crate::rank::{self, Line};

/// What a module of elementwise instructions gives for arrays, as the caller has it run: the arrays of its
/// result. `None`: it has no result, or no memory.
pub type Run<'a> = &'a dyn Fn(&Module, Vec<Tensor>) -> Option<Vec<Tensor>>;

/// The most representatives of the operands on one side of a choice.
const MAX_ROWS: usize = 600;

/// The most representatives of which all triples are tried.
const MAX_ROWS_IN_TRIPLES: usize = 100;

/// How often representatives are added for what a region gives that is neither operand.
const MAX_ROUNDS: usize = 3;

/// Of a component what it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Component {
    /// An operation on its accumulator and this node, which depends on elements alone.
    Fold(Opcode, usize),
    /// Part of a choice of this number.
    Choice(usize),
    /// A function of the accumulators and the elements that is associative and commutative in exact
    /// arithmetic, or an order of a difference.
    Merge(Merge),
    /// None of these.
    Unrecognized,
}

/// An applied computation that folds.
#[derive(Debug)]
pub struct Region<'m> {
    /// What it computes.
    pub expression: Expression<'m>,
    /// Of each of its results what it is.
    pub components: Vec<Component>,
    /// The choices among components.
    pub choices: Vec<Choice>,
    accumulators_first: bool,
}

/// Components among which the region chooses together.
#[derive(Debug)]
pub struct Choice {
    /// The components, in order.
    pub members: Vec<usize>,
    /// What it compares besides.
    pub keys: Vec<Key>,
    /// Of each member, and then of each key, whether the region looks at it.
    pub looked_at: Vec<bool>,
    /// What is chosen.
    pub table: Table,
}

/// What a region gives for pairs of rows of representatives.
#[derive(Debug)]
pub struct Table {
    /// Of each member, and then of each key.
    pub lines: Vec<Line>,
    /// Of each of them the distance in rows of representatives that are neighbours.
    strides: Vec<usize>,
    rows: usize,
    /// Pair by pair what is given.
    outcomes: Vec<Outcome>,
    /// It is associative and commutative: no order of a fold matters.
    pub any_order: bool,
    /// Pairs of rows of which it gives something of either, all of them with a NaN.
    pub mixed: Vec<(usize, usize)>,
    /// It may give the zero of the other sign than that of the row that it gives.
    pub mixes_zeros: bool,
    /// Of each member whether it is always the greater (`Some(true)`) or the less of both, NaNs apart.
    pub extreme: Vec<Option<bool>>,
    /// It always gives one of both rows, but for `mixed`.
    pub selects: bool,
}

/// Which of both rows a region gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The accumulators, perhaps.
    pub first: bool,
    /// The elements, perhaps.
    pub second: bool,
}

impl Outcome {
    /// Either, as far as is known.
    pub const EITHER: Outcome = Outcome { first: true, second: true };

    fn or(self, other: Outcome) -> Outcome {
        Outcome { first: self.first | other.first, second: self.second | other.second }
    }
}

impl<'m> Region<'m> {
    /// `None` if the computation is no expression of as many accumulators, elements and results.
    pub fn new(
        module: &'m Module,
        computation: ComputationId,
        accumulators_first: bool,
        run: Run<'_>,
    ) -> Option<Region<'m>> {
        let expression = Expression::new(module, computation)?;
        let n = expression.results.len();
        let typed = |i: usize| {
            let ty = expression.parameters[i];
            ty == expression.parameters[n + i] && ty == expression.nodes[expression.results[i]].ty
        };
        if expression.parameters.len() != 2 * n || !(0..n).all(typed) {
            return None;
        }
        let components = vec![Component::Unrecognized; n];
        let mut region = Region { expression, components, choices: Vec::new(), accumulators_first };
        for i in 0..n {
            if let Some((opcode, node)) = region.folded(i) {
                region.components[i] = Component::Fold(opcode, node);
            }
        }
        let mut done = vec![false; n];
        for i in 0..n {
            if done[i] || region.components[i] != Component::Unrecognized {
                continue;
            }
            let members = region.connected(i);
            members.iter().for_each(|&m| done[m] = true);
            if let Some(choice) = region.choice(&members, run) {
                members.iter().for_each(|&m| region.components[m] = Component::Choice(region.choices.len()));
                region.choices.push(choice);
            }
        }
        for i in 0..n {
            if region.components[i] == Component::Unrecognized
                && let Some(merge) = merges::recognized(&region, i)
            {
                region.components[i] = Component::Merge(merge);
            }
        }
        Some(region)
    }

    /// The parameter that is a component's accumulator.
    pub fn accumulator(&self, component: usize) -> usize {
        if self.accumulators_first { component } else { component + self.components.len() }
    }

    /// The parameter that is a component's element.
    pub fn element(&self, component: usize) -> usize {
        if self.accumulators_first { component + self.components.len() } else { component }
    }

    /// The operation on its accumulator that a component is, and the node that is its other operand, perhaps in
    /// a wider type.
    fn folded(&self, component: usize) -> Option<(Opcode, usize)> {
        let root = self.expression.results[component];
        let (root, wide) = match (self.expression.opcode(root)?, &self.expression.nodes[root].operands[..]) {
            (Opcode::Convert, &[inner]) => (inner, true),
            (_, _) => (root, false),
        };
        let opcode = self.expression.opcode(root)?;
        let (from, to) = (self.expression.parameters[component], self.expression.nodes[root].ty);
        let rounded = matches!(opcode, Opcode::Add | Opcode::Multiply) && (!wide || rounds_once(from, to));
        let folds = rounded
            || !wide
                && matches!(
                    opcode,
                    Opcode::Maximum | Opcode::Minimum | Opcode::And | Opcode::Or | Opcode::Xor
                );
        let [a, b] = self.expression.nodes[root].operands[..] else { return None };
        // The nodes of parameters are the first ones.
        let accumulator = self.accumulator(component);
        let converted = |node: usize| {
            self.expression.opcode(node) == Some(Opcode::Convert)
                && self.expression.nodes[node].operands == [accumulator]
        };
        let accumulates = |node: usize| if wide { converted(node) } else { node == accumulator };
        let other = match (accumulates(a), accumulates(b)) {
            (true, false) => b,
            (false, true) => a,
            (true, true) | (false, false) => return None,
        };
        (folds && self.is_of_elements(other)).then_some((opcode, other))
    }

    fn is_of_elements(&self, node: usize) -> bool {
        let n = self.components.len();
        let is_element = |p: &usize| (*p >= n) == self.accumulators_first;
        self.expression.dependencies(&[node]).iter().all(is_element)
    }

    /// What a component takes away from its accumulator, if that depends on elements alone.
    pub fn subtracted(&self, component: usize) -> Option<usize> {
        let root = self.expression.results[component];
        let &[a, b] = &self.expression.nodes[root].operands[..] else { return None };
        let subtracts = self.expression.opcode(root) == Some(Opcode::Subtract);
        (subtracts && a == self.accumulator(component) && self.is_of_elements(b)).then_some(b)
    }

    /// Whether a compiler may exchange a component's accumulator and element: not where a function of elements
    /// is folded, as `acc + x * x` has its accumulator on one side.
    pub fn may_be_exchanged(&self, component: usize) -> bool {
        let Component::Fold(_, node) = self.components[component] else { return true };
        let root = self.expression.results[component];
        let converted = |node: usize, of: usize| {
            self.expression.opcode(node) == Some(Opcode::Convert)
                && self.expression.nodes[node].operands == [of]
        };
        let element = self.element(component);
        // By way of a wider type both are converted.
        let wide = self.expression.opcode(root) == Some(Opcode::Convert) && converted(node, element);
        node == element || wide
    }

    /// Its element, of a component that is its accumulator less its element.
    pub fn difference(&self, component: usize) -> Option<usize> {
        let element = self.element(component);
        (self.subtracted(component) == Some(element)).then_some(element)
    }

    /// Of a component that is the greater of the magnitudes of its accumulator and its element that of the
    /// element.
    pub fn greatest_magnitude(&self, component: usize) -> Option<usize> {
        let root = self.expression.results[component];
        let &[a, b] = &self.expression.nodes[root].operands[..] else { return None };
        let magnitude_of = |node: usize, of: usize| {
            self.expression.opcode(node) == Some(Opcode::Abs) && self.expression.nodes[node].operands == [of]
        };
        let own = |node: usize| magnitude_of(node, self.accumulator(component));
        let other = |node: usize| magnitude_of(node, self.element(component));
        if self.expression.opcode(root)? != Opcode::Maximum {
            return None;
        }
        if own(a) && other(b) { Some(b) } else { (own(b) && other(a)).then_some(a) }
    }

    /// The components that a component depends on, and that these depend on, and so on.
    fn connected(&self, component: usize) -> Vec<usize> {
        let n = self.components.len();
        let mut members = BTreeSet::from([component]);
        loop {
            let roots: Vec<usize> = members.iter().map(|&m| self.expression.results[m]).collect();
            let more = self.expression.dependencies(&roots).into_iter().map(|p| p % n);
            let before = members.len();
            members.extend(more);
            if members.len() == before {
                return members.into_iter().collect();
            }
        }
    }

    fn choice(&self, members: &[usize], run: Run<'_>) -> Option<Choice> {
        let n = self.components.len();
        let keys = Keys::new(&self.expression, |p| (p < n) == self.accumulators_first);
        let mut compared = Compared::new(&self.expression, n, &keys);
        let roots: Vec<usize> = members.iter().map(|&m| self.expression.results[m]).collect();
        compared.follow(&self.expression.reached(&roots));
        for (&m, &root) in members.iter().zip(&roots) {
            let tag = compared.tags[root].as_ref()?;
            let own = tag.moved && tag.components.iter().all(|&c| c == m);
            if !(own || tag.decided) {
                return None;
            }
        }
        let of_keys = (0..keys.all.len()).filter(|&k| compared.lines[n + k].looked_at);
        let (numbers, keys): (Vec<usize>, Vec<Key>) = of_keys.map(|k| (n + k, keys.all[k])).unzip();
        let first = members.iter().map(|&m| self.accumulator(m)).chain(keys.iter().map(|k| k.accumulator));
        let second = members.iter().map(|&m| self.element(m)).chain(keys.iter().map(|k| k.element));
        let operands: Vec<usize> = first.chain(second).collect();
        let columns: Vec<usize> = members.iter().copied().chain(numbers).collect();
        let mut looked_at: Vec<bool> = columns.iter().map(|&c| compared.lines[c].looked_at).collect();
        for _ in 0..MAX_ROUNDS {
            let lines = columns.iter().zip(&operands).zip(&looked_at).map(|((&c, &operand), &looked_at)| {
                let (ty, line) = (self.expression.nodes[operand].ty, &compared.lines[c]);
                if looked_at { Line::new(ty, &line.constants, line.total) } else { Line::unseen(ty) }
            });
            match Table::new(&self.expression, &roots, &operands, lines.collect(), &looked_at, run)? {
                Ok(table) => return Some(Choice { members: members.to_vec(), keys, looked_at, table }),
                Err(more) => {
                    for ((&c, more), looked_at) in columns.iter().zip(more).zip(&mut looked_at) {
                        *looked_at |= !more.is_empty();
                        compared.lines[c].constants.extend(more);
                    }
                }
            }
        }
        None
    }
}

/// What is known of a node of a region that only compares.
#[derive(Clone, Default, Debug)]
struct Tag {
    /// It is a parameter of one of these components, perhaps in a wider type, or a constant. Keys count as
    /// parameters of components behind those that there are.
    moved: bool,
    components: BTreeSet<usize>,
    constants: BTreeSet<i64>,
    /// The order of parameters and constants decides what it is.
    decided: bool,
}

/// How a component's parameters are looked at.
#[derive(Clone, Default, Debug)]
struct Look {
    looked_at: bool,
    constants: BTreeSet<i64>,
    /// By a total order, NaNs included.
    total: bool,
}

/// Shows that an expression depends on the order of its parameters alone.
struct Compared<'e, 'm> {
    expression: &'e Expression<'m>,
    keys: &'e Keys,
    components: usize,
    lines: Vec<Look>,
    tags: Vec<Option<Tag>>,
}

impl<'e, 'm> Compared<'e, 'm> {
    fn new(expression: &'e Expression<'m>, components: usize, keys: &'e Keys) -> Self {
        let lines = vec![Look::default(); components + keys.all.len()];
        Compared { expression, keys, components, lines, tags: Vec::new() }
    }

    /// Tags the nodes that matter, but for those that do more than compare and are no key.
    fn follow(&mut self, matter: &[bool]) {
        for (n, &matters) in matter.iter().enumerate() {
            let tag = if matters { self.tag(n).or_else(|| self.key(n)) } else { None };
            self.tags.push(tag);
        }
    }

    /// The tag of a node that is a key.
    fn key(&mut self, n: usize) -> Option<Tag> {
        let key = self.components + self.keys.of_node(n)?;
        let decided = self.expression.nodes[n].ty == ElementType::Pred;
        self.lines[key].looked_at |= decided;
        Some(Tag { moved: true, components: BTreeSet::from([key]), decided, ..Tag::default() })
    }

    fn tag(&mut self, n: usize) -> Option<Tag> {
        let expression = self.expression;
        let node = &expression.nodes[n];
        let id = match node.origin {
            Origin::Parameter(p) => {
                let components = BTreeSet::from([p % self.components]);
                let decided = node.ty == ElementType::Pred;
                if decided {
                    self.lines[p % self.components].looked_at = true;
                }
                return Some(Tag { moved: true, components, decided, ..Tag::default() });
            }
            Origin::Instruction(id) => id,
        };
        let instr = expression.module.instr(id);
        let operands: Option<Vec<Tag>> = node.operands.iter().map(|&o| self.tags[o].clone()).collect();
        let operands = operands?;
        let from: Vec<ElementType> = node.operands.iter().map(|&o| expression.nodes[o].ty).collect();
        let all_decided = operands.iter().all(|t| t.decided);
        let all_moved = operands.iter().all(|t| t.moved);
        let real = !from.iter().any(|ty| ty.is_complex());
        let decided = Tag { decided: true, ..Tag::default() };
        match instr.opcode {
            Opcode::Constant => {
                let ConstantValue::Given(literal) = instr.attrs.constant_value()? else { return None };
                let literal = literal.as_array()?.clone();
                let rank = *rank::of_tensor(&Tensor::from_literal(literal)).first()?;
                Some(Tag { moved: true, decided: true, constants: BTreeSet::from([rank]), ..Tag::default() })
            }
            opcode if all_decided && opcode.is_elementwise() => {
                let exact = from.iter().chain([&node.ty]).all(|&ty| opcode.numeric(ty) == Numeric::Exact);
                exact.then_some(decided)
            }
            Opcode::Compare if all_moved && real => {
                let total = instr.attrs.is_total_order();
                self.looks(&operands, total)?;
                Some(decided)
            }
            Opcode::Maximum | Opcode::Minimum | Opcode::Clamp if all_moved && real => {
                self.looks(&operands, false)?;
                Some(joined(&operands))
            }
            Opcode::IsFinite if all_moved && real => {
                let mut infinities = operands;
                let first = infinities.first_mut()?;
                first.constants.extend([rank::of_float(f64::INFINITY), rank::of_float(f64::NEG_INFINITY)]);
                self.looks(&infinities, false)?;
                Some(decided)
            }
            Opcode::Select if operands.first()?.decided && operands[1..].iter().all(|t| t.moved) => {
                Some(Tag { decided: false, ..joined(&operands[1..]) })
            }
            Opcode::Convert if all_moved && holds(from[0], node.ty) => operands.into_iter().next(),
            // Back to the type of the parameters that it was.
            Opcode::Convert
                if all_moved
                    && operands[0].constants.is_empty()
                    && operands[0]
                        .components
                        .iter()
                        .all(|&c| expression.parameters.get(c) == Some(&node.ty)) =>
            {
                operands.into_iter().next()
            }
            _ => None,
        }
    }

    /// Some are compared with each other: parameters of one component, and constants.
    fn looks(&mut self, compared: &[Tag], total: bool) -> Option<()> {
        let all = joined(compared);
        let mut components = all.components.iter();
        let Some(&component) = components.next() else { return Some(()) };
        if components.next().is_some() {
            return None;
        }
        let line = &mut self.lines[component];
        line.looked_at = true;
        line.total |= total;
        line.constants.extend(all.constants);
        Some(())
    }
}

/// One of these.
fn joined(tags: &[Tag]) -> Tag {
    let mut all = Tag {
        moved: tags.iter().all(|t| t.moved),
        decided: tags.iter().all(|t| t.decided),
        ..Tag::default()
    };
    for tag in tags {
        all.components.extend(&tag.components);
        all.constants.extend(&tag.constants);
    }
    all
}

/// Whether a type holds all numbers of another, in their order and with the same ranks.
fn holds(from: ElementType, to: ElementType) -> bool {
    match (Format::of(from), Format::of(to)) {
        (Some(f), Some(t)) => {
            f.precision <= t.precision
                && f.max <= t.max
                && f.min_positive() >= t.min_positive()
                && from.is_complex() == to.is_complex()
        }
        (None, None) => {
            let ((low, high), (least, most)) = (rank::ends(from), rank::ends(to));
            ![from, to].contains(&ElementType::U64) && least <= low && high <= most
        }
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Whether a sum or product in a wider type that is then rounded to this one is as if rounded once (Figueroa,
/// When is double rounding innocuous?, 1995), overflow and all.
fn rounds_once(ty: ElementType, wide: ElementType) -> bool {
    let (Some(f), Some(w)) = (Format::of(ty), Format::of(wide)) else { return false };
    has_infinities(ty) && holds(ty, wide) && w.precision >= 2 * f.precision + 2
}

/// Ranks that representatives lack, of each member.
type Lacking = Vec<BTreeSet<i64>>;

impl Table {
    /// `roots` are the results of the members; `operands` the nodes that these and the keys are on either
    /// side. `Err`: what the region gives is neither operand, and no representative.
    fn new(
        expression: &Expression<'_>,
        roots: &[usize],
        operands: &[usize],
        lines: Vec<Line>,
        looked_at: &[bool],
        run: Run<'_>,
    ) -> Option<Result<Table, Lacking>> {
        let mut rows = 1usize;
        let mut strides = Vec::new();
        for line in &lines {
            strides.push(rows);
            rows = rows.checked_mul(line.ranks.len()).filter(|&rows| rows > 0 && rows <= MAX_ROWS)?;
        }
        let lanes = rows * rows;
        let of = |row: usize, member: usize| row / strides[member] % lines[member].ranks.len();
        let columns = operands.iter().enumerate().map(|(k, &operand)| {
            let member = k % lines.len();
            let rank = |lane: usize| {
                let row = if k < lines.len() { lane / rows } else { lane % rows };
                lines[member].ranks[of(row, member)]
            };
            rank::tensor(expression.nodes[operand].ty, &(0..lanes).map(rank).collect::<Vec<i64>>())
        });
        let module = expression.lifted(roots, operands, lanes as i64)?;
        let given = run(&module, columns.collect())?;
        let floats: Vec<bool> = operands
            .iter()
            .take(lines.len())
            .map(|&o| Format::of(expression.nodes[o].ty).is_some())
            .collect();
        let total_order = |member: usize| lines[member].index(rank::NEGATIVE_NAN).is_some();
        let mut lacking: Lacking = vec![BTreeSet::new(); lines.len()];
        // Lane by lane the row that is given, if its ranks are all among the representatives.
        let mut rows_given = vec![0; lanes];
        for (member, ranks) in given.iter().map(rank::of_tensor).enumerate() {
            for (lane, mut rank) in ranks.into_iter().enumerate() {
                if rank == rank::NEGATIVE_NAN && !total_order(member) {
                    rank = rank::NAN;
                }
                match lines[member].index(rank) {
                    Some(index) => rows_given[lane] += index * strides[member],
                    None => {
                        lacking[member].insert(rank);
                    }
                }
            }
        }
        if lacking.iter().any(|l| !l.is_empty()) {
            return Some(Err(lacking));
        }
        // The keys of what is given are those of the row whose members it has. Rows that differ in keys alone
        // stand for no numbers.
        let member_rows = strides.get(roots.len()).copied().unwrap_or(rows);
        let mut has_keys = true;
        if member_rows < rows {
            for (lane, row) in rows_given.iter_mut().enumerate() {
                let sides = [lane / rows, lane % rows];
                let equal = |&side: &usize| {
                    let rank = |row: usize, m: usize| lines[m].ranks[of(row, m)];
                    (0..roots.len()).all(|m| rank::equal(rank(*row, m), rank(side, m), floats[m]))
                };
                let exact = sides.into_iter().find(|side| *row == side % member_rows);
                match exact.or_else(|| sides.into_iter().find(equal)) {
                    Some(side) => *row += side - side % member_rows,
                    None => has_keys = false,
                }
            }
        }
        let equals = |a: usize, b: usize| {
            (0..lines.len())
                .all(|m| rank::equal(lines[m].ranks[of(a, m)], lines[m].ranks[of(b, m)], floats[m]))
        };
        let nan = |row: usize| {
            (0..lines.len())
                .any(|m| floats[m] && [rank::NAN, rank::NEGATIVE_NAN].contains(&lines[m].ranks[of(row, m)]))
        };
        let (mut outcomes, mut mixed) = (Vec::with_capacity(lanes), Vec::new());
        let (mut mixes_zeros, mut selects) = (false, true);
        // Of keys nothing is said.
        let mut extreme = vec![(false, false); lines.len()];
        extreme[..roots.len()].fill((true, true));
        for (lane, &row) in rows_given.iter().enumerate() {
            let (x, y) = (lane / rows, lane % rows);
            let exactly = Outcome { first: row == x, second: row == y };
            let about = Outcome { first: equals(row, x), second: equals(row, y) };
            if exactly.first || exactly.second {
                // Whether it is this one or an equal one is not known where signs of zeros may be mixed.
                outcomes.push(exactly);
            } else {
                mixes_zeros |= about.first || about.second;
                if !about.first && !about.second {
                    if nan(x) || nan(y) {
                        mixed.push((x, y));
                    } else {
                        selects = false;
                    }
                    outcomes.push(Outcome::EITHER);
                } else {
                    outcomes.push(about);
                }
            }
            for (m, (greatest, least)) in extreme.iter_mut().enumerate().take(roots.len()) {
                let [x, y, r] = [x, y, row].map(|row| lines[m].ranks[of(row, m)]);
                if floats[m] && [x, y].iter().any(|r| [rank::NAN, rank::NEGATIVE_NAN].contains(r)) {
                    continue;
                }
                *greatest &= rank::equal(r, x.max(y), floats[m]);
                *least &= rank::equal(r, x.min(y), floats[m]);
            }
        }
        let any_order = has_keys && rows <= MAX_ROWS_IN_TRIPLES && {
            let f = |x: usize, y: usize| rows_given[x * rows + y];
            (0..rows).all(|x| {
                (0..rows).all(|y| f(x, y) == f(y, x) && (0..rows).all(|z| f(f(x, y), z) == f(x, f(y, z))))
            })
        };
        let extreme = extreme.into_iter().zip(looked_at).map(|(of, &looked_at)| match of {
            (true, false) if looked_at => Some(true),
            (false, true) if looked_at => Some(false),
            (_, _) => None,
        });
        let extreme = extreme.collect();
        if !selects && !any_order {
            return None;
        }
        Some(Ok(Table { strides, rows, outcomes, any_order, mixed, mixes_zeros, extreme, selects, lines }))
    }

    /// Of a row of representatives that of a member, as a rank.
    fn rank(&self, row: usize, member: usize) -> i64 {
        let line = &self.lines[member];
        line.ranks[row / self.strides[member] % line.ranks.len()]
    }

    /// Which of both it may give where members are of some ranges.
    pub fn outcome(
        &self,
        looked_at: &[bool],
        x: impl Fn(usize) -> (i64, i64),
        y: impl Fn(usize) -> (i64, i64),
    ) -> Outcome {
        if let Some((x, y)) = self.exact_rows(looked_at, &x, &y) {
            return self.outcomes[x * self.rows + y];
        }
        let mut pairs = vec![(0, 0)];
        for (m, line) in self.lines.iter().enumerate() {
            let of_member = if looked_at[m] {
                match line.pairs(x(m), y(m)) {
                    Some(pairs) => pairs,
                    None => return Outcome::EITHER,
                }
            } else {
                vec![(0, 1)]
            };
            let stride = self.strides[m];
            pairs = pairs
                .into_iter()
                .flat_map(|(x, y)| of_member.iter().map(move |&(a, b)| (x + a * stride, y + b * stride)))
                .collect();
        }
        let none = Outcome { first: false, second: false };
        pairs.into_iter().fold(none, |all, (x, y)| all.or(self.outcomes[x * self.rows + y]))
    }
}

impl Choice {
    /// Of the pairs of rows of which something of either is given the slots of each member, looked at or not.
    pub fn mixed_slots(&self) -> Vec<Vec<(usize, usize)>> {
        let table = &self.table;
        let slots = |&(x, y): &(usize, usize)| -> Vec<(usize, usize)> {
            let each = table.lines.iter().enumerate();
            each.map(|(m, line)| (line.slot(table.rank(x, m)), line.slot(table.rank(y, m)))).collect()
        };
        table.mixed.iter().map(slots).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl Table {
    /// Whether a member's order is total, NaNs included.
    pub fn is_total(&self, member: usize) -> bool {
        self.lines[member].is_total()
    }

    /// The rows that stand for members that are known exactly.
    fn exact_rows(
        &self,
        looked_at: &[bool],
        x: &impl Fn(usize) -> (i64, i64),
        y: &impl Fn(usize) -> (i64, i64),
    ) -> Option<(usize, usize)> {
        let mut rows = (0, 0);
        for (m, line) in self.lines.iter().enumerate() {
            let (a, b) = if looked_at[m] {
                let (x, y) = (x(m), y(m));
                if x.0 != x.1 || y.0 != y.1 {
                    return None;
                }
                line.pair(x.0, y.0)?
            } else {
                (0, 1)
            };
            rows = (rows.0 + a * self.strides[m], rows.1 + b * self.strides[m]);
        }
        Some(rows)
    }
}
