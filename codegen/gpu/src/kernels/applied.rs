//! Computations of scalars that an instruction applies: comparators, combiners.

use hlo::{ComputationId, ElementType, InstrId, Module};
use hlo_codegen::Unsupported;
use hlo_codegen::cpu::llvm::{Emit, Error, Result};
use hlo_codegen::cpu::scalar::Val;
use hlo_codegen::tape::{NodeId, Op, Tape};

use crate::code::Code;

/// A computation of scalars, as a tape of which the parameters are given.
pub(super) struct Applied<'m> {
    tape: Tape<'m>,
    results: Vec<NodeId>,
    used: Vec<bool>,
}

impl<'m> Applied<'m> {
    /// The computation that `id` applies to scalars of these types. Errors: parameters of other types, or what no kernel computes of scalars.
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
        let mut tape = Tape::new(module);
        let given: Vec<NodeId> = types.iter().zip(0..).map(|(&ty, n)| tape.given(n, ty)).collect();
        let results = tape.apply(computation, &given)?;
        let mut used = vec![false; types.len()];
        for node in tape.needed(results.iter().copied()) {
            if let Op::Given { number } = tape.nodes[node as usize].op {
                used[number as usize] = true;
            }
        }
        Ok(Self { tape, results, used })
    }

    /// Whether a parameter has a part in any result.
    pub(super) fn uses(&self, parameter: usize) -> bool {
        self.used[parameter]
    }

    /// Emits its results for arguments; those that are not used may be missing.
    pub(super) fn call<'ctx>(
        &self,
        e: Emit<'_, 'ctx>,
        arguments: &[Option<Val<'ctx>>],
    ) -> Result<Vec<Val<'ctx>>> {
        let mut code = Code::new(e, &self.tape, &[]);
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
