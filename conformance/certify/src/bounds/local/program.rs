//! A fusion as a list of nodes that are evaluated some rows at a time.
//!
//! The arrays of a fusion that works row by row have one of three sizes: all elements, one for each row, and
//! one. In row-major order the elements of a row are neighbours.
//!
//! **Invariant:** a node that is exact depends on nothing but operands, by instructions that have one result;
//! every other node is an interval.

use hlo::attrs::Direction;
use hlo::opcode::{Family, Numeric};
use hlo::{AttrKey, ElementType, InstrId, Module, Opcode};
use rustc_hash::FxHashMap;

use super::super::Settings;
use super::super::rules;

/// The most elements of a row.
const LONGEST_ROW: usize = 1 << 16;

/// How many elements a node has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Size {
    /// One.
    One,
    /// One for each row.
    Rows,
    /// As many as there are.
    All,
}

/// By what a row is folded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fold {
    Sum,
    Maximum,
    Minimum,
}

/// What a node is.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum What {
    /// The exact value of an instruction, found before: element by element, or by a stride for each dimension
    /// of the result, of its sizes.
    Whole(InstrId, Option<Vec<(usize, usize)>>),
    /// The intervals of an instruction on exact operands, found before.
    Found(InstrId),
    /// The same elements.
    Same(usize),
    /// The element of the row, or the only one, as often as needed.
    Spread(usize),
    /// An operation of one operand.
    Unary(Opcode, usize),
    /// An operation of two operands.
    Binary(Opcode, usize, usize),
    /// A comparison.
    Compare(Direction, usize, usize),
    /// A choice by a predicate.
    Select(usize, usize, usize),
    /// A row folded, with an initial value.
    Fold(Fold, usize, usize),
}

/// One value.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// `None`: nothing looks at it but what finds exact values.
    pub(super) size: Option<Size>,
    pub(super) exact: bool,
    pub(super) what: What,
    /// Of a function how many units in the last place it may be off.
    pub(super) ulps: f32,
}

/// The nodes of a fusion, or of one instruction.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) nodes: Vec<Node>,
    /// The node of each array of the result.
    pub(super) results: Vec<Option<usize>>,
    pub(super) rows: usize,
    /// Elements of a row.
    pub(super) inner: usize,
    /// Instructions whose values are operands.
    pub(super) operands: FxHashMap<InstrId, usize>,
}

/// Functions that rise or fall everywhere.
pub(super) fn is_function(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Exponential
            | Opcode::ExponentialMinusOne
            | Opcode::Log
            | Opcode::LogPlusOne
            | Opcode::Logistic
            | Opcode::Tanh
            | Opcode::Sqrt
            | Opcode::Rsqrt
            | Opcode::Erf
            | Opcode::Cbrt
    )
}

struct Builder<'a> {
    module: &'a Module,
    settings: &'a Settings,
    /// In order, what the results need.
    ids: Vec<InstrId>,
    operands: FxHashMap<InstrId, usize>,
    exact: FxHashMap<InstrId, bool>,
    nodes: Vec<Node>,
    of: FxHashMap<InstrId, usize>,
    all: usize,
    rows: usize,
}

impl Program {
    /// `None`: it does not work row by row.
    pub(super) fn new(module: &Module, id: InstrId, settings: &Settings) -> Option<Program> {
        let instr = module.instr(id);
        let mut operands = FxHashMap::default();
        let (ids, roots) = if instr.opcode == Opcode::Fusion {
            let called = instr.attrs.computation(AttrKey::Calls)?;
            for (number, parameter) in module.computation(called).parameters().iter().enumerate() {
                operands.insert((*parameter)?, number);
            }
            let root = module.root(called);
            let roots = match module.instr(root).opcode {
                Opcode::Tuple => module.instr(root).operands().to_vec(),
                _ => vec![root],
            };
            let mut live = vec![false; module.instruction_capacity()];
            roots.iter().for_each(|r| live[r.index()] = true);
            let mut ids: Vec<InstrId> = module.instructions(called).collect();
            for &id in ids.iter().rev() {
                if live[id.index()] {
                    module.instr(id).operands().iter().for_each(|o| live[o.index()] = true);
                }
            }
            ids.retain(|id| live[id.index()]);
            (ids, roots)
        } else {
            for (number, &operand) in instr.operands().iter().enumerate() {
                operands.entry(operand).or_insert(number);
            }
            let mut ids: Vec<InstrId> = operands.keys().copied().collect();
            ids.sort_unstable();
            ids.push(id);
            (ids, vec![id])
        };
        let mut builder = Builder {
            module,
            settings,
            ids,
            operands,
            exact: FxHashMap::default(),
            nodes: Vec::new(),
            of: FxHashMap::default(),
            all: 0,
            rows: 0,
        };
        builder.look(&roots)?;
        for i in 0..builder.ids.len() {
            let id = builder.ids[i];
            if let Some(node) = builder.node(id) {
                builder.of.insert(id, builder.nodes.len());
                builder.nodes.push(node);
            }
        }
        let results = roots.iter().map(|r| builder.of.get(r).copied()).collect();
        let Builder { nodes, rows, all, operands, .. } = builder;
        Some(Program { nodes, results, rows, inner: all / rows, operands })
    }
}

impl Builder<'_> {
    fn is_array(&self, id: InstrId) -> bool {
        self.module.instr(id).shape.as_array().is_some_and(|a| !a.is_dynamic())
    }

    fn elements(&self, id: InstrId) -> Option<usize> {
        let shape = self.module.instr(id).shape.as_array()?;
        shape.dims.iter().map(|&d| usize::try_from(d).ok()).product()
    }

    fn ty(&self, id: InstrId) -> Option<ElementType> {
        self.module.instr(id).shape.element_type()
    }

    /// Whether an instruction of exact operands has one result.
    fn has_one_result(&self, id: InstrId) -> bool {
        let instr = self.module.instr(id);
        let Some(ty) = self.ty(id) else { return false };
        let allowed = &self.settings.allowances;
        // What applies a computation, or is none of the simple ones, is looked at no further: extremes of
        // floats are.
        let plain = instr.attrs.called_computations().is_empty()
            && !instr.opcode.flags().side_effect
            && !instr.opcode.flags().collective
            && instr.opcode.family() != Family::DeviceNumber
            && !matches!(
                rules::kind(instr.opcode),
                rules::Kind::Opaque
                    | rules::Kind::CustomCall
                    | rules::Kind::Random
                    | rules::Kind::Sum
                    | rules::Kind::Exchange
                    | rules::Kind::CollectiveFold
            );
        let extreme = matches!(self.fold(id), Some(Fold::Maximum | Fold::Minimum));
        let types = instr.operands().iter().all(|&o| self.ty(o).is_some_and(|ty| !ty.is_complex()));
        let constant = matches!(instr.opcode, Opcode::Constant | Opcode::Iota);
        (extreme || plain && (constant || allowed.numeric(instr.opcode, ty) == Numeric::Exact))
            && types
            && !ty.is_complex()
    }

    /// What a reduction of f32 folds by.
    fn fold(&self, id: InstrId) -> Option<Fold> {
        let instr = self.module.instr(id);
        if instr.opcode != Opcode::Reduce
            || instr.operands().len() != 2
            || !self.is_array(id)
            || instr.operands().iter().chain([&id]).any(|&o| self.ty(o) != Some(ElementType::F32))
        {
            return None;
        }
        match rules::monoid(self.module, instr.attrs.computation(AttrKey::ToApply)?)? {
            Opcode::Add => Some(Fold::Sum),
            Opcode::Maximum => Some(Fold::Maximum),
            Opcode::Minimum => Some(Fold::Minimum),
            _ => None,
        }
    }

    /// Whether a reduction folds the last dimensions.
    fn folds_rows(&self, id: InstrId) -> bool {
        let instr = self.module.instr(id);
        let (Some(shape), Some(folded)) =
            (self.module.instr(instr.operands()[0]).shape.as_array(), instr.attrs.ints(AttrKey::Dimensions))
        else {
            return false;
        };
        let folded = (0..shape.dims.len())
            .filter(|&d| shape.dims[d] != 1)
            .map(|d| folded.contains(&(d as i64)))
            .collect::<Vec<bool>>();
        folded.windows(2).all(|pair| pair[1] || !pair[0]) && folded.last() == Some(&true)
    }

    /// Whether a broadcast repeats each element for a row.
    fn spreads_rows(&self, id: InstrId) -> bool {
        let instr = self.module.instr(id);
        let (Some(shape), Some(operand)) =
            (instr.shape.as_array(), self.module.instr(instr.operands()[0]).shape.as_array())
        else {
            return false;
        };
        let to = instr.attrs.ints_or_empty(AttrKey::Dimensions);
        // The dimensions that are the operand's come first, in order.
        let kept: Vec<usize> = (0..operand.dims.len())
            .filter(|&k| operand.dims[k] != 1)
            .filter_map(|k| usize::try_from(*to.get(k)?).ok())
            .collect();
        let first = (0..shape.dims.len()).filter(|&d| shape.dims[d] != 1).take(kept.len());
        kept.iter().copied().eq(first)
    }

    /// Finds what is exact, and how many rows there are.
    fn look(&mut self, roots: &[InstrId]) -> Option<()> {
        for &id in &self.ids {
            let exact = self.operands.contains_key(&id)
                || self.has_one_result(id) && self.module.instr(id).operands().iter().all(|o| self.exact[o]);
            self.exact.insert(id, exact);
        }
        let float = |id: InstrId| self.ty(id) == Some(ElementType::F32) && self.is_array(id);
        let open = || self.ids.iter().copied().filter(|id| !self.exact[id]);
        let counted = roots.iter().copied().chain(open()).filter(|&id| float(id));
        let all = counted.filter_map(|id| self.elements(id)).max().filter(|&n| n > 0)?;
        let mut rows = None;
        for &id in &self.ids {
            let instr = self.module.instr(id);
            if self.operands.contains_key(&id) {
                continue;
            }
            let of = match instr.opcode {
                Opcode::Reduce
                    if self.fold(id).is_some()
                        && self.folds_rows(id)
                        && self.elements(instr.operands()[0]) == Some(all) =>
                {
                    self.elements(id)
                }
                Opcode::Broadcast if !self.exact[&instr.operands()[0]] && self.elements(id) == Some(all) => {
                    self.elements(instr.operands()[0]).filter(|&n| n > 1)
                }
                _ => None,
            };
            if let Some(of) = of.filter(|&n| n < all) {
                if rows.is_some_and(|rows| rows != of) {
                    return None;
                }
                rows = Some(of);
            }
        }
        let rows = rows.unwrap_or(all);
        (self.all, self.rows) = (all, rows);
        (rows > 0 && all % rows == 0 && all / rows <= LONGEST_ROW).then_some(())
    }

    fn size(&self, id: InstrId) -> Option<Size> {
        match self.elements(id)? {
            n if n == self.all => Some(Size::All),
            n if n == self.rows => Some(Size::Rows),
            1 => Some(Size::One),
            _ => None,
        }
    }

    /// The node of an instruction; `None`: it is evaluated by nobody here.
    fn node(&self, id: InstrId) -> Option<Node> {
        let exact = self.exact[&id];
        let numbers = matches!(self.ty(id), Some(ElementType::F32 | ElementType::Pred)) && self.is_array(id);
        let size = if numbers { self.size(id) } else { None };
        if !self.operands.contains_key(&id)
            && let (Some(_), Some((what, ulps))) = (size, self.what(id))
        {
            return Some(Node { size, exact, what, ulps });
        }
        let whole = What::Whole(id, None);
        (exact && numbers && size.is_some()).then_some(Node { size, exact, what: whole, ulps: 0.0 })
    }

    /// What an instruction does, and the units of a function.
    fn what(&self, id: InstrId) -> Option<(What, f32)> {
        let instr = self.module.instr(id);
        let size = self.size(id)?;
        let float = self.ty(id) == Some(ElementType::F32);
        let ids = instr.operands();
        let nodes: Vec<Option<usize>> = ids.iter().map(|o| self.of.get(o).copied()).collect();
        // Operands of the same size.
        let same = |k: usize| {
            let node = *nodes.get(k)?;
            node.filter(|&n| self.nodes[n].size == Some(size))
        };
        let pred = |k: usize| self.ty(ids[k]) == Some(ElementType::Pred);
        let plain = |what: What| Some((what, 0.0));
        match instr.opcode {
            Opcode::Broadcast => {
                if let Some(of) = nodes[0] {
                    let spread = match self.nodes[of].size? {
                        Size::One => true,
                        Size::Rows => size == Size::All && self.spreads_rows(id),
                        Size::All => false,
                    };
                    if spread {
                        return plain(What::Spread(of));
                    }
                }
                let strides = self.strides(id)?;
                self.exact[&ids[0]].then_some((What::Whole(ids[0], Some(strides)), 0.0))
            }
            Opcode::Reshape | Opcode::Copy if self.ty(ids[0]) == self.ty(id) => plain(What::Same(same(0)?)),
            Opcode::Convert if pred(0) && float => plain(What::Same(same(0)?)),
            Opcode::Convert if float && self.ty(ids[0]) == Some(ElementType::F32) => {
                plain(What::Same(same(0)?))
            }
            Opcode::Negate | Opcode::Abs if float => plain(What::Unary(instr.opcode, same(0)?)),
            opcode if is_function(opcode) && float => {
                let ulps = self.settings.allowances.functions.ulps(opcode, ElementType::F32);
                Some((What::Unary(opcode, same(0)?), f32::from(ulps)))
            }
            Opcode::Add | Opcode::Subtract | Opcode::Multiply | Opcode::Maximum | Opcode::Minimum
                if float =>
            {
                plain(What::Binary(instr.opcode, same(0)?, same(1)?))
            }
            Opcode::Divide if float => {
                let exact = self.settings.allowances.numeric(Opcode::Divide, ElementType::F32);
                let both = What::Binary(Opcode::Divide, same(0)?, same(1)?);
                (exact == Numeric::Exact).then_some((both, 0.0))
            }
            Opcode::Compare if !pred(0) => {
                let total = instr.attrs.is_total_order();
                let direction = *instr.attrs.direction()?;
                (!total).then_some((What::Compare(direction, same(0)?, same(1)?), 0.0))
            }
            Opcode::Select if float => plain(What::Select(same(0)?, same(1)?, same(2)?)),
            Opcode::Reduce => self.reduced(id, &nodes, size),
            Opcode::Dot if float && !self.exact[&id] => {
                let found = ids.iter().all(|o| self.exact[o] && self.ty(*o) == Some(ElementType::F32));
                found.then_some((What::Found(id), 0.0))
            }
            _ => None,
        }
    }

    fn reduced(&self, id: InstrId, nodes: &[Option<usize>], size: Size) -> Option<(What, f32)> {
        let ids = self.module.instr(id).operands();
        let fold = self.fold(id)?;
        if let (Some(x), Some(init)) = (nodes[0], nodes[1])
            && self.nodes[x].size == Some(Size::All)
            && self.elements(ids[0]) == Some(self.all)
            && size == Size::Rows
            && self.rows < self.all
            && self.nodes[init].size == Some(Size::One)
            && self.nodes[init].exact
            && self.folds_rows(id)
            && (fold != Fold::Sum || self.all / self.rows > 1)
        {
            return Some((What::Fold(fold, x, init), 0.0));
        }
        let found = fold == Fold::Sum && ids.iter().all(|o| self.exact[o]);
        found.then_some((What::Found(id), 0.0))
    }

    /// Sizes of a broadcast's dimensions, and how far a step goes in the operand.
    fn strides(&self, id: InstrId) -> Option<Vec<(usize, usize)>> {
        let instr = self.module.instr(id);
        let (shape, operand) =
            (instr.shape.as_array()?, self.module.instr(instr.operands()[0]).shape.as_array()?);
        let size = |d: i64| usize::try_from(d).ok();
        let mut strides = vec![0; shape.dims.len()];
        let mut stride = 1;
        let to = instr.attrs.ints_or_empty(AttrKey::Dimensions);
        for (k, &d) in operand.dims.iter().enumerate().rev() {
            if d != 1 {
                *strides.get_mut(size(*to.get(k)?)?)? = stride;
            }
            stride *= size(d)?;
        }
        shape.dims.iter().map(|&d| size(d)).zip(strides).map(|(d, stride)| Some((d?, stride))).collect()
    }
}
