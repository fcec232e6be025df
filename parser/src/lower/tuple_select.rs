//! `tuple-select`: one of two tuples, as a conditional whose branches are the identity.
//!
//! XLA had this opcode until 2022, and wrote that conditional from then on; old dumps still have it. The
//! conditional keeps the name, shape, attributes and control predecessors of the text, so that the
//! printed instruction differs in its opcode and in the two computations that it names.

use hlo::diag::Diagnostic;
use hlo::diag::codes::parse as codes;
use hlo::{AttrKey, AttrValue, ComputationId, ElementType, InstrId, NewInstruction, Opcode, Shape, Span};

use super::{Lowering, Scope};
use crate::ast::Instruction;
use crate::cursor::show;

/// How the text spells it.
pub(super) const NAME: &str = "tuple-select";

impl<'a> Lowering<'a> {
    pub(super) fn tuple_select(
        &mut self,
        scope: &mut Scope<'a>,
        i: &Instruction,
        shape: Option<Shape>,
    ) -> Option<InstrId> {
        // It has no attributes of its own, as `select` has none.
        let mut lowered = self.attributes(scope, Opcode::Select, &[], &i.attributes);
        let operands = self.operands(scope, i)?;
        if !lowered.complete {
            return None;
        }
        let &[predicate, on_true, on_false] = operands.as_slice() else {
            let message = format!("{NAME} takes 3 operands, {} given", operands.len());
            let d = Diagnostic::error(codes::BAD_OPERAND, i.opcode, message);
            self.report(d.label("expected a predicate and two tuples"));
            return None;
        };
        let of = |id: InstrId| &self.module.instr(id).shape;
        let is_predicate =
            of(predicate).is_scalar() && of(predicate).element_type() == Some(ElementType::Pred);
        let are_tuples = of(on_true).as_tuple().is_some() && of(on_true).compatible(of(on_false));
        if !is_predicate || !are_tuples {
            let shown = [predicate, on_true, on_false].map(|id| show(of(id)));
            let message = format!("{NAME} of ({})", shown.join(", "));
            let d = Diagnostic::error(codes::BAD_OPERAND, i.opcode, message);
            self.report(d.label("expected pred[] and two tuples of the same shape"));
            return None;
        }
        let (shape, branch) = (shape.unwrap_or_else(|| of(on_true).clone()), of(on_true).clone());
        for key in [AttrKey::TrueComputation, AttrKey::FalseComputation] {
            let identity = self.identity(scope, branch.clone(), i.span);
            lowered.attrs.set(key, AttrValue::Computation(identity));
        }
        Some(self.append(scope, i, Opcode::Conditional, shape, operands, lowered))
    }

    /// A computation that gives its parameter.
    fn identity(&mut self, scope: &Scope<'a>, shape: Shape, span: Span) -> ComputationId {
        let name = self.module.unique_computation_name("tuple_select_branch");
        let computation = self.module.add_computation(name, span);
        self.wrapped.push((computation, scope.computation));
        let name = self.module.unique_name("selected");
        let mut new = NewInstruction::new(Opcode::Parameter, shape, &[]).named(name);
        new.attrs.set(AttrKey::ParameterNumber, AttrValue::Int(0));
        new.span = span;
        let parameter = self.module.append(computation, new);
        self.module.set_root(computation, parameter);
        computation
    }
}
