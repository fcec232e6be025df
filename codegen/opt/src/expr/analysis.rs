//! Analyses of the expression IR: operands, reachability, variables, cost.

use hlo::Opcode;
use hlo::elementwise::{Kind, Unary, kind};

use super::index::{Affine, Def};
use super::{Expr, GuardId, NodeId, Op};

impl Expr<'_> {
    /// Calls `f` with each node that a node depends on: its operands, and the values in its indices and
    /// guards.
    pub fn for_each_operand(&self, node: NodeId, f: &mut impl FnMut(NodeId)) {
        match &self.nodes[node as usize].op {
            Op::Load { at, guard, .. } => {
                self.values_in(at, f);
                self.values_in_guard(*guard, f);
            }
            Op::Constant { at, .. } => self.values_in(at, f),
            Op::Iota { value } => self.values_in(value, f),
            Op::Elementwise { operands, .. } => operands.iter().for_each(|&n| f(n)),
            Op::Convert { operand }
            | Op::BitcastConvert { operand }
            | Op::ToOrderedInt { operand, .. }
            | Op::FromOrderedInt { operand, .. } => f(*operand),
            Op::Select { guard, yes, no } => {
                self.values_in_guard(*guard, f);
                f(*yes);
                f(*no);
            }
            Op::Pack { parts: nodes } | Op::SumOfProducts { factors: nodes } => {
                nodes.iter().for_each(|&n| f(n))
            }
            Op::Sum { terms } => terms.iter().for_each(|&n| f(n)),
            Op::Unpack { whole, part } => {
                f(*whole);
                self.values_in(part, f);
            }
            Op::Given { .. } => {}
        }
    }

    /// Whether a node may hold a NaN that was only moved, not computed: its sign and payload must be kept.
    pub fn moves(&self, node: NodeId) -> bool {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut pending = vec![node];
        while let Some(n) = pending.pop() {
            let node = &self.nodes[n as usize];
            if !(node.ty.is_float() || node.ty.is_complex()) || !seen.insert(n) {
                continue;
            }
            match &node.op {
                Op::Load { .. }
                | Op::Constant { .. }
                | Op::Given { .. }
                | Op::BitcastConvert { .. }
                | Op::Pack { .. }
                | Op::Unpack { .. } => return true,
                Op::Iota { .. }
                | Op::Convert { .. }
                | Op::ToOrderedInt { .. }
                | Op::FromOrderedInt { .. }
                | Op::SumOfProducts { .. }
                | Op::Sum { .. } => {}
                Op::Select { yes, no, .. } => pending.extend([*yes, *no]),
                Op::Elementwise { instr, operands } => match kind(self.module.instr(*instr).opcode) {
                    Some(Kind::Select) => pending.extend(operands.iter().skip(1)),
                    Some(
                        Kind::Complex
                        | Kind::Convert
                        | Kind::Imag
                        | Kind::Real
                        | Kind::ReducePrecision
                        | Kind::Unary(Unary::Abs | Unary::Negate),
                    ) => pending.extend(operands),
                    Some(
                        Kind::Binary(_)
                        | Kind::Clamp
                        | Kind::Compare
                        | Kind::Function(_)
                        | Kind::IsFinite
                        | Kind::StochasticConvert
                        | Kind::Unary(_),
                    ) => {}
                    None => return true,
                },
            }
        }
        false
    }

    /// The nodes reachable from these roots through operands, operands first.
    pub fn reachable(&self, roots: impl Iterator<Item = NodeId>) -> Vec<NodeId> {
        self.reachable_except(roots, &|_| false)
    }

    /// As [`Expr::reachable`], without the nodes that are `known` and what only those depend on.
    pub fn reachable_except(
        &self,
        roots: impl Iterator<Item = NodeId>,
        known: &dyn Fn(NodeId) -> bool,
    ) -> Vec<NodeId> {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut pending: Vec<NodeId> = roots.collect();
        while let Some(n) = pending.pop() {
            if !known(n) && seen.insert(n) {
                self.for_each_operand(n, &mut |m| pending.push(m));
            }
        }
        let mut nodes: Vec<NodeId> = seen.into_iter().collect();
        nodes.sort_unstable();
        nodes
    }

    /// Calls `f` with each node whose value a guard depends on.
    pub fn values_in_guard(&self, guard: GuardId, f: &mut impl FnMut(NodeId)) {
        for c in &self.guards[guard as usize] {
            self.values_in(&c.value, f);
        }
    }

    /// Calls `f` with each node whose value an affine expression depends on.
    pub fn values_in(&self, x: &Affine, f: &mut impl FnMut(NodeId)) {
        for &(a, _) in &x.terms {
            match &self.space.atom(a).def {
                Def::Var(_) => {}
                Def::Div(y, _) | Def::Mod(y, _) => self.values_in(y, f),
                Def::Value(n) => f(*n),
            }
        }
    }

    /// Calls `f` with each affine expression of the IR (addresses, guards, atoms), to read or to rewrite it.
    pub fn for_each_affine(&mut self, f: &mut impl FnMut(&mut Affine)) {
        for node in &mut self.nodes {
            match &mut node.op {
                Op::Load { at, .. } | Op::Constant { at, .. } => f(at),
                Op::Iota { value } | Op::Unpack { part: value, .. } => f(value),
                Op::Elementwise { .. }
                | Op::Convert { .. }
                | Op::Select { .. }
                | Op::BitcastConvert { .. }
                | Op::ToOrderedInt { .. }
                | Op::FromOrderedInt { .. }
                | Op::Pack { .. }
                | Op::SumOfProducts { .. }
                | Op::Sum { .. }
                | Op::Given { .. } => {}
            }
        }
        self.guards.iter_mut().flatten().for_each(|c| f(&mut c.value));
        for atom in &mut self.space.atoms {
            match &mut atom.def {
                Def::Div(x, _) | Def::Mod(x, _) => f(x),
                Def::Var(_) | Def::Value(_) => {}
            }
        }
    }

    /// Whether `f` holds for every loop variable in a node's own indices and guards (not in those of its
    /// operands).
    pub fn vars_of(&self, node: NodeId, f: &mut impl FnMut(u32) -> bool) -> bool {
        let guarded = |guard: GuardId| self.guards[guard as usize].iter().map(|c| &c.value);
        match &self.nodes[node as usize].op {
            Op::Load { at, guard, .. } => self.vars_in(at, f) && guarded(*guard).all(|x| self.vars_in(x, f)),
            Op::Select { guard, .. } => guarded(*guard).all(|x| self.vars_in(x, f)),
            Op::Constant { at: x, .. } | Op::Iota { value: x } | Op::Unpack { part: x, .. } => {
                self.vars_in(x, f)
            }
            Op::Elementwise { .. }
            | Op::Convert { .. }
            | Op::BitcastConvert { .. }
            | Op::ToOrderedInt { .. }
            | Op::FromOrderedInt { .. }
            | Op::Pack { .. }
            | Op::SumOfProducts { .. }
            | Op::Sum { .. }
            | Op::Given { .. } => true,
        }
    }

    /// Whether `f` holds for every loop variable that an affine expression depends on.
    pub fn vars_in(&self, x: &Affine, f: &mut impl FnMut(u32) -> bool) -> bool {
        x.terms.iter().all(|&(a, _)| match &self.space.atom(a).def {
            Def::Var(v) => f(*v),
            Def::Div(y, _) | Def::Mod(y, _) => self.vars_in(y, f),
            Def::Value(_) => true,
        })
    }

    /// Whether the code of a node may contain branches.
    pub fn branches(&self, node: NodeId) -> bool {
        let Op::Elementwise { instr, operands } = &self.nodes[node as usize].op else { return false };
        let opcode = self.module.instr(*instr).opcode;
        let complex = operands.iter().any(|&o| self.nodes[o as usize].ty.is_complex());
        complex
            || matches!(opcode, Opcode::Power | Opcode::Remainder)
            || matches!(opcode.numeric_row(), hlo::opcode::NumericRow::Elementary(_))
    }

    /// Arithmetic operations per element of a node: an elementary function counts as 20, a division as 4.
    pub fn flops(&self, node: NodeId) -> u64 {
        match &self.nodes[node as usize].op {
            Op::Elementwise { instr, .. } => {
                let opcode = self.module.instr(*instr).opcode;
                match opcode.numeric_row() {
                    hlo::opcode::NumericRow::Elementary(_) => 20,
                    _ if matches!(opcode, Opcode::Divide | Opcode::Sqrt | Opcode::Remainder) => 4,
                    _ => 1,
                }
            }
            Op::SumOfProducts { factors } => {
                let complex = self.nodes[node as usize].ty.is_complex();
                factors.len() as u64 * if complex { 4 } else { 1 }
            }
            Op::Load { .. }
            | Op::Constant { .. }
            | Op::Iota { .. }
            | Op::Convert { .. }
            | Op::Select { .. }
            | Op::BitcastConvert { .. }
            | Op::ToOrderedInt { .. }
            | Op::FromOrderedInt { .. }
            | Op::Pack { .. }
            | Op::Sum { .. }
            | Op::Unpack { .. }
            | Op::Given { .. } => 1,
        }
    }
}
