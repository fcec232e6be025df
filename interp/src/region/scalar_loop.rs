//! Loops of scalar state, compiled to bytecode of one lane: interpreting such an instruction costs far more
//! than computing it.
//!
//! **Invariant:** the value and the fuel are those of interpreting condition and body.

use hlo::literal::Buffer;
use hlo::{ComputationId, Module, Shape, with_buffer};

use super::bytecode::Bytecode;
use crate::endless;
use crate::error::Result;
use crate::ops::Cx;
use crate::value::{Tensor, Value};

/// A `while` loop ready to run.
#[derive(Debug)]
pub(crate) struct ScalarLoop {
    condition: Bytecode,
    body: Bytecode,
    /// The condition reads only what the body passes on.
    fixed: bool,
}

impl ScalarLoop {
    /// Compiles a loop without side effects; `None` if its state is not scalars, or if it does anything that
    /// is not elementwise.
    pub(crate) fn compile(module: &Module, condition: ComputationId, body: ComputationId) -> Option<Self> {
        let shape = module.program_shape(body)?.result;
        let scalars = shape.leaves().iter().all(|s| s.as_array().is_some_and(|a| a.dims.is_empty()));
        if !scalars {
            return None;
        }
        let fixed = endless::condition_is_fixed(module, condition, body);
        let (condition, body) = (Bytecode::compile(module, condition)?, Bytecode::compile(module, body)?);
        (!condition.ordered && !body.ordered).then_some(Self { condition, body, fixed })
    }

    /// The state when the condition first is false.
    pub(crate) fn run(&self, cx: &Cx<'_>, state: &Value) -> Result<Value> {
        let (mut condition, mut body) = (self.condition.columns(1), self.body.columns(1));
        let mut leaves = 0;
        for_each_leaf(state, &mut |leaf| {
            with_buffer!(&mut body[leaves], column => column.copy_from_slice(leaf.slice()));
            leaves += 1;
        });
        let mut anchor: Option<Vec<Buffer>> = None;
        for iterations in 0.. {
            if endless::is_anchor(iterations) {
                anchor = Some(body[..leaves].to_vec());
            } else if endless::is_compared(iterations)
                && let Some(earlier) = &anchor
                && earlier[..] == body[..leaves]
            {
                let cycle = iterations - (1 << iterations.ilog2());
                return Err(endless::error(cx.instr, iterations, Some(cycle)));
            }
            cx.spend(self.condition.instructions)?;
            let inputs = condition.iter_mut().zip(&mut body).take(leaves);
            inputs.for_each(|(a, b)| std::mem::swap(a, b));
            self.condition.run(&mut condition, 1);
            let inputs = condition.iter_mut().zip(&mut body).take(leaves);
            inputs.for_each(|(a, b)| std::mem::swap(a, b));
            let Buffer::Pred(goes_on) = &condition[self.condition.outputs[0]] else {
                unreachable!("invariant: the verifier checked that the condition is a predicate")
            };
            if !goes_on[0] {
                break;
            }
            if self.fixed && endless::looks_at_condition(iterations) {
                return Err(endless::error(cx.instr, iterations, None));
            }
            cx.spend(self.body.instructions)?;
            self.body.run(&mut body, 1);
            for (input, &output) in self.body.outputs.iter().enumerate() {
                body.swap(input, output);
            }
        }
        body.truncate(leaves);
        let mut leaves = body.into_iter();
        Ok(value(&cx.instr.shape, &mut leaves))
    }
}

fn for_each_leaf(value: &Value, f: &mut impl FnMut(&Tensor)) {
    match value {
        Value::Array(t) => f(t),
        Value::Tuple(t) => t.iter().for_each(|v| for_each_leaf(v, f)),
        Value::Token | Value::Pending(_) => {}
    }
}

/// A value of a shape of scalars, with the leaves given.
fn value(shape: &Shape, leaves: &mut impl Iterator<Item = Buffer>) -> Value {
    match shape {
        Shape::Tuple(t) => Value::tuple(t.iter().map(|s| value(s, leaves)).collect::<Vec<_>>()),
        Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
            let leaf = leaves.next().expect("invariant: a loop's state keeps its shape");
            Value::Array(Tensor::new(hlo::Dims::new(), leaf))
        }
    }
}
