//! Which computations call which, before they are lowered.

use hlo::Span;
use hlo::diag::Diagnostic;
use hlo::diag::codes::parse as codes;

use super::Lowering;
use crate::ast::{AttributeValue, Reference, range};
use crate::cursor::Cursor;
use crate::token;

impl Lowering<'_> {
    /// The computations in postorder of the call graph: callees before callers. A cycle is reported here;
    /// names that do not exist are reported by the instruction that has them.
    pub(super) fn callees_first(&mut self) -> Vec<usize> {
        let n = self.ast.computations.len();
        let edges: Vec<Vec<(usize, Span)>> = (0..n).map(|i| self.calls(i)).collect();
        if edges.iter().enumerate().all(|(caller, calls)| calls.iter().all(|c| c.0 < caller)) {
            return (0..n).collect();
        }
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut state = vec![State::New; n];
        let mut order = Vec::with_capacity(n);
        // A path of computations, each with the number of its calls that were followed.
        let mut path: Vec<(usize, usize)> = Vec::new();
        for start in 0..n {
            if state[start] != State::New {
                continue;
            }
            state[start] = State::Open;
            path.push((start, 0));
            while let Some((caller, next)) = path.last_mut() {
                let Some(&(callee, span)) = edges[*caller].get(*next) else {
                    state[*caller] = State::Done;
                    order.push(*caller);
                    path.pop();
                    continue;
                };
                *next += 1;
                match state[callee] {
                    State::Done => {}
                    State::New => {
                        state[callee] = State::Open;
                        path.push((callee, 0));
                    }
                    State::Open if self.enough() => {}
                    State::Open => {
                        let from = path.iter().position(|p| p.0 == callee).unwrap_or(0);
                        let names: Vec<&str> =
                            path[from..].iter().take(8).map(|p| self.computation_name(p.0)).collect();
                        let message = format!("`{}` calls itself", self.computation_name(callee));
                        let mut d =
                            Diagnostic::error(codes::RECURSIVE_CALL, span, message).label("closes the cycle");
                        if names.len() > 1 {
                            let gap = if path.len() - from > names.len() { " -> ..." } else { "" };
                            d = d.note(format!("the cycle: {}{gap} -> {}", names.join(" -> "), names[0]));
                        }
                        self.report(d);
                    }
                }
            }
        }
        order
    }

    fn computation_name(&self, index: usize) -> &str {
        let name = self.ast.computations[index].name;
        if name.is_none() { "computation without a name" } else { self.slice(name).trim_start_matches('%') }
    }

    /// What a computation calls, with the spans.
    fn calls(&self, index: usize) -> Vec<(usize, Span)> {
        let mut calls = Vec::new();
        for i in &self.ast.instructions[range(&self.ast.computations[index].instructions)] {
            for a in &self.ast.attributes[range(&i.attributes)] {
                match &a.value {
                    AttributeValue::Raw(value) => {
                        if token::calls(self.slice(a.key)) {
                            self.named_calls(*value, &mut calls);
                        }
                    }
                    AttributeValue::Computation(c) => calls.push((*c as usize, a.key)),
                    AttributeValue::List(list) => {
                        for r in &self.ast.references[range(list)] {
                            match r {
                                Reference::Name(name) => self.named_calls(*name, &mut calls),
                                Reference::Computation(c) => calls.push((*c as usize, a.key)),
                            }
                        }
                    }
                }
            }
        }
        calls
    }

    /// `%a` or `{%a, %b}`.
    fn named_calls(&self, value: Span, calls: &mut Vec<(usize, Span)>) {
        let mut c = Cursor::new(self.text, value, self.depth);
        c.eat(b'{');
        while let Ok((name, span)) = c.name(codes::EXPECTED_COMPUTATION, "") {
            if let Some(&callee) = self.computations.get(name) {
                calls.push((callee, span));
            }
            c.eat(b',');
        }
    }
}
