//! Computations of scalars that an instruction applies: comparators, combiners.

use hlo::{ComputationId, ElementType, InstrId, Module, Opcode};
use hlo_codegen::Unsupported;
use hlo_llvm::scalar::Val;
use hlo_llvm::{Emit, Error, Result};
use hlo_opt::expr::{Expr, Node, NodeId, Op};

use crate::code::Code;

/// A scalar computation as an expression of given parameters.
pub(super) struct Applied<'m> {
    expr: Expr<'m>,
    results: Vec<NodeId>,
    used: Vec<bool>,
}

impl<'m> Applied<'m> {
    /// The computation that `id` applies to scalars of these types. Errors: parameters of other types, or
    /// operations that no kernel computes on scalars.
    pub(super) fn new(
        module: &'m Module,
        id: InstrId,
        computation: ComputationId,
        types: &[ElementType],
    ) -> std::result::Result<Self, Unsupported> {
        let parameters = module.computation(computation).parameters();
        let types_of = parameters.iter().flatten().map(|&p| module.instr(p).shape.element_type());
        if !types_of.eq(types.iter().copied().map(Some)) {
            return Err(Unsupported::new(module, id, "a computation of other types"));
        }
        let mut expr = Expr::new(module);
        let given: Vec<NodeId> = types.iter().zip(0..).map(|(&ty, n)| expr.given(n, ty)).collect();
        let results = expr.apply(computation, &given)?;
        let mut used = vec![false; types.len()];
        for node in expr.reachable(results.iter().copied()) {
            if let Op::Given { number } = expr.nodes[node as usize].op {
                used[number as usize] = true;
            }
        }
        Ok(Self { expr, results, used })
    }

    /// Whether any result depends on a parameter.
    pub(super) fn uses(&self, parameter: usize) -> bool {
        self.used.get(parameter).copied().unwrap_or(false)
    }

    /// The parameter that the only result is.
    pub(super) fn selected(&self) -> Option<u32> {
        match (&self.results[..], self.expr.nodes.get(*self.results.first()? as usize)?) {
            ([_], Node { op: Op::Given { number }, .. }) => Some(*number),
            (_, _) => None,
        }
    }

    /// The commutative operation of both parameters that the only result is.
    pub(super) fn operation(&self) -> Option<Opcode> {
        let (&[result], 2) = (&self.results[..], self.used.len()) else { return None };
        let Op::Elementwise { instr, operands } = &self.expr.nodes[result as usize].op else { return None };
        let number = |n: &NodeId| match self.expr.nodes[*n as usize].op {
            Op::Given { number } => Some(number),
            _ => None,
        };
        let [Some(a), Some(b)] = operands.iter().map(number).collect::<Vec<_>>()[..] else { return None };
        let opcode = self.expr.module.instr(*instr).opcode;
        let commutes = opcode.commutes(self.expr.nodes[result as usize].ty);
        (a != b && commutes).then_some(opcode)
    }

    /// Emits its results for arguments; unused ones may be missing.
    pub(super) fn call<'ctx>(
        &self,
        e: Emit<'_, 'ctx>,
        arguments: &[Option<Val<'ctx>>],
    ) -> Result<Vec<Val<'ctx>>> {
        let mut code = Code::new(e, &self.expr, &[]);
        for (argument, number) in arguments.iter().zip(0..) {
            if let Some(argument) = argument {
                code.give(number, *argument);
            }
        }
        self.results.iter().map(|&node| code.value(node)).collect()
    }

    /// The only result.
    pub(super) fn result<'ctx>(
        &self,
        e: Emit<'_, 'ctx>,
        arguments: &[Option<Val<'ctx>>],
    ) -> Result<Val<'ctx>> {
        let results = self.call(e, arguments)?;
        results.first().copied().ok_or_else(|| Error::Llvm("an applied computation without a result".into()))
    }
}
