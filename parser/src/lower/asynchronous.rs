//! `opcode-start`, `-update` and `-done`: sugar for `async-start` and its kin with a computation of one
//! instruction.

use hlo::diag::Diagnostic;
use hlo::diag::codes::parse as codes;
use hlo::{AttrKey, AttrValue, Attrs, ComputationId, InstrId, NewInstruction, Opcode, Shape, Span};

use super::attributes::Lowered;
use super::{Lowering, Scope};
use crate::ast::Instruction;
use crate::cursor::show;

/// Attributes that say something about the step itself rather than about what is wrapped.
const OF_THE_STEP: [AttrKey; 2] = [AttrKey::AsyncExecutionThread, AttrKey::OutputToOperandAliasing];

impl<'a> Lowering<'a> {
    pub(super) fn asynchronous(
        &mut self,
        scope: &mut Scope<'a>,
        i: &Instruction,
        shape: Option<Shape>,
        step: Opcode,
        wrapped: Opcode,
    ) -> Option<InstrId> {
        let own = if step == Opcode::AsyncStart { wrapped } else { step };
        let lowered = self.attributes(scope, own, &OF_THE_STEP, &i.attributes);
        let operands = self.operands(scope, i);
        let mut complete = lowered.complete;
        if step == Opcode::AsyncStart {
            complete &= self.check_required(wrapped, &lowered.attrs, &i.attributes, i.opcode);
        }
        let Some(shape) = shape else {
            let d = Diagnostic::error(codes::MISSING_SHAPE, i.opcode, format!("{step} without a shape"));
            self.report(d.label("write the shape before the opcode"));
            return None;
        };
        let operands = operands?;
        if !complete {
            return None;
        }
        if step == Opcode::AsyncDone || step == Opcode::AsyncUpdate {
            self.check_chain(i, &operands, wrapped)?;
            self.check_inherited(i, &operands, &lowered.attrs)?;
        }
        if step == Opcode::AsyncDone {
            self.bind_late(&operands, &[], &shape);
            return Some(self.append(scope, i, step, shape, operands, lowered));
        }
        let Some(([Shape::Tuple(inputs), result], _)) =
            shape.as_tuple().and_then(|t| t.split_first_chunk::<2>())
        else {
            let message = format!("{wrapped} wrapped in {step} has the shape {}", show(&shape));
            let d = Diagnostic::error(codes::BAD_ASYNC, i.shape, message);
            self.report(d.label("expected ((operands), result, ...)"));
            return None;
        };
        let (inputs, result) = (inputs.clone(), result.clone());
        if step == Opcode::AsyncUpdate {
            self.bind_late(&operands, &inputs, &result);
            return Some(self.append(scope, i, step, shape, operands, lowered));
        }
        let Lowered { attrs, control_predecessors, .. } = lowered;
        let (start_attrs, wrapped_attrs) = split(wrapped, attrs);
        let thread = start_attrs.str(AttrKey::AsyncExecutionThread).map(Box::from);
        let computation = self.wrap(scope, wrapped, &inputs, result, wrapped_attrs, i.span);
        self.module.computation_mut(computation).execution_thread = thread;
        let attrs = start_attrs.with(AttrKey::Calls, AttrValue::Computation(computation));
        let lowered = Lowered { attrs, control_predecessors, complete: true };
        Some(self.append(scope, i, step, shape, operands, lowered))
    }

    /// The computation of parameters and the wrapped instruction.
    fn wrap(
        &mut self,
        scope: &Scope<'a>,
        wrapped: Opcode,
        inputs: &[Shape],
        result: Shape,
        attrs: Attrs,
        span: Span,
    ) -> ComputationId {
        let name = self.module.unique_computation_name("async_wrapped");
        let computation = self.module.add_computation(name, span);
        self.wrapped.push((computation, scope.computation));
        // Operands and results that are bound by a later step are known only from the computation that a call
        // or fusion runs, or from that step.
        let callee = match wrapped {
            Opcode::Call => attrs.computation(AttrKey::ToApply),
            Opcode::Fusion => attrs.computation(AttrKey::Calls),
            _ => None,
        };
        let known = callee.and_then(|c| self.module.program_shape(c));
        let (parameters, result) = match known {
            Some(p) => (p.parameters, if p.result.compatible(&result) { result } else { p.result }),
            None => (Vec::new(), result),
        };
        let late = parameters.len().saturating_sub(inputs.len());
        if late > self.late_left {
            let d = Diagnostic::error(codes::BAD_ASYNC, span, "too many operands that are bound late");
            self.report(d.label(format!("{late} more")));
            return computation;
        }
        self.late_left -= late;
        let mut operands: Vec<InstrId> = Vec::new();
        for n in 0..inputs.len().max(parameters.len()) {
            let shape = match (inputs.get(n), parameters.get(n)) {
                (Some(given), Some(wanted)) if !given.compatible(wanted) => wanted,
                (Some(given), _) => given,
                (None, Some(wanted)) => wanted,
                (None, None) => break,
            };
            operands.push(self.wrapped_parameter(computation, n, shape.clone(), span));
        }
        let name = self.module.unique_name("async_op");
        let mut new = NewInstruction::new(wrapped, result, &operands).named(name);
        (new.attrs, new.span) = (attrs, span);
        let root = self.module.append(computation, new);
        self.module.set_root(computation, root);
        computation
    }

    fn wrapped_parameter(
        &mut self,
        computation: ComputationId,
        n: usize,
        shape: Shape,
        span: Span,
    ) -> InstrId {
        let name = self.module.unique_name("async_param");
        let number = AttrValue::Int(n as i64);
        let mut new = NewInstruction::new(Opcode::Parameter, shape, &[]).named(name);
        new.attrs.set(AttrKey::ParameterNumber, number);
        new.span = span;
        self.module.append(computation, new)
    }

    /// A later step may bring operands that the start did not have, and say better what the result is: the
    /// wrapped instruction gets those too. Where a call or fusion runs, its computation has said it.
    fn bind_late(&mut self, operands: &[InstrId], inputs: &[Shape], result: &Shape) {
        let Some(computation) = operands.first().and_then(|&o| self.chain(o)) else { return };
        let Some(root) = self.module.computation(computation).root() else { return };
        let known = self.module.instr(root).operands().len();
        let span = self.module.instr(root).span;
        for (n, shape) in inputs.iter().enumerate().skip(known) {
            let parameter = self.wrapped_parameter(computation, n, shape.clone(), span);
            self.module.move_after(root, Some(parameter));
            self.module.push_operand(root, parameter);
        }
        let runs = self.module.instr(root).opcode;
        let told = matches!(runs, Opcode::Call | Opcode::Fusion);
        if !told && !self.module.instr(root).shape.compatible(result) {
            self.module.instr_mut(root).shape = result.clone();
        }
    }

    /// The computation that a chain of asynchronous steps runs, if its start can be seen from `id`.
    fn chain(&self, id: InstrId) -> Option<ComputationId> {
        let mut id = id;
        loop {
            let i = self.module.instr(id);
            match i.opcode {
                Opcode::AsyncStart => return i.attrs.computation(AttrKey::Calls),
                Opcode::AsyncUpdate => id = *i.operands().first()?,
                _ => return None,
            }
        }
    }

    /// What an update or done repeats of its start must be what the start says.
    pub(super) fn check_inherited(
        &mut self,
        i: &Instruction,
        operands: &[InstrId],
        attrs: &Attrs,
    ) -> Option<()> {
        let computation = operands.first().and_then(|&o| self.chain(o));
        let Some(computation) = computation else { return Some(()) };
        let started = self.module.computation(computation);
        let thread = started.execution_thread.as_deref().unwrap_or("main").to_owned();
        let name = started.name.clone();
        let mut ok = Some(());
        if attrs.computation(AttrKey::Calls).is_some_and(|c| c != computation) {
            let d = Diagnostic::error(codes::BAD_ASYNC, i.opcode, "calls another computation than its start");
            self.report(d.label(format!("the start calls `{name}`")));
            ok = None;
        }
        if attrs.str(AttrKey::AsyncExecutionThread).is_some_and(|t| *t != *thread) {
            let d = Diagnostic::error(codes::BAD_ASYNC, i.opcode, "runs on another thread than its start");
            self.report(d.label(format!("the start runs on \"{thread}\"")));
            ok = None;
        }
        ok
    }

    /// The first operand of an update or done must be a step of a chain that runs the same opcode.
    fn check_chain(&mut self, i: &Instruction, operands: &[InstrId], wrapped: Opcode) -> Option<()> {
        let Some(&first) = operands.first() else {
            let message = format!("{} without an operand", self.slice(i.opcode));
            let d = Diagnostic::error(codes::BAD_ASYNC, i.opcode, message);
            self.report(d.label("expected the start that it belongs to"));
            return None;
        };
        if self.module.instr(first).opcode == Opcode::AsyncDone {
            let message = format!("{} of what is already done", self.slice(i.opcode));
            let d = Diagnostic::error(codes::BAD_ASYNC, i.opcode, message);
            let done = self.module.instr(first).span;
            self.report(d.label("its operand is a done").related(done, "done here"));
            return None;
        }
        let runs = self.chain(first).and_then(|c| self.module.computation(c).root());
        let Some(runs) = runs else { return Some(()) };
        let runs = self.module.instr(runs);
        if runs.opcode != wrapped {
            let message = format!("{} of a chain that runs {}", self.slice(i.opcode), runs.opcode);
            let d = Diagnostic::error(codes::BAD_ASYNC, i.opcode, message);
            let start = runs.span;
            self.report(d.label(format!("expected {}", runs.opcode)).related(start, "started here"));
            return None;
        }
        Some(())
    }
}

/// Attributes of the start, and of what it wraps. What describes the value goes to both, as in XLA.
fn split(wrapped: Opcode, attrs: Attrs) -> (Attrs, Attrs) {
    let (mut start, mut inner) = (Attrs::new(), Attrs::new());
    for (key, value) in attrs.iter() {
        let own = wrapped.attrs().iter().any(|s| s.key == key) || key == AttrKey::ResultAccuracy;
        let both = matches!(
            key,
            AttrKey::Metadata
                | AttrKey::BackendConfig
                | AttrKey::FrontendAttributes
                | AttrKey::Origin
                | AttrKey::Statistics
        );
        if own || both {
            inner.set(key, value.clone());
        }
        if !own {
            start.set(key, value.clone());
        }
    }
    (start, inner)
}
