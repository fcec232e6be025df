//! Names of values as MLIR's own printer gives them: `%arg0`, `%0`, `%c`, `%cst_0`, `%iterArg`.
//!
//! The values of a region are numbered before those of the regions inside it; regions of one operation, and
//! of operations of one region, begin with the same number. Functions and modules see nothing of outside and
//! begin anew.

use rustc_hash::FxHashSet;

use crate::ir::{Module, OpId, RegionId, Type, ValueId};

/// Where numbering stands.
#[derive(Clone, Copy, Default)]
struct Counters {
    value: u32,
    argument: u32,
    conflict: u32,
}

enum Todo {
    Enter(RegionId, Counters),
    /// Names beyond that many are forgotten.
    Leave(usize),
}

/// The name of each value; of results of one operation that of the first.
pub(super) fn assign(m: &Module) -> Vec<Box<str>> {
    let mut namer = Namer {
        m,
        names: vec![Box::default(); m.value_count()],
        used: FxHashSet::default(),
        order: Vec::new(),
    };
    let mut stack = Vec::new();
    if let Some(top) = m.top() {
        stack.extend(m.op(top).regions.iter().map(|&r| Todo::Enter(r, Counters::default())));
    }
    while let Some(todo) = stack.pop() {
        match todo {
            Todo::Leave(mark) => {
                for name in namer.order.drain(mark..) {
                    namer.used.remove(&name);
                }
            }
            Todo::Enter(region, counters) => {
                stack.push(Todo::Leave(namer.order.len()));
                namer.region(region, counters, &mut stack);
            }
        }
    }
    namer.names
}

struct Namer<'m> {
    m: &'m Module,
    names: Vec<Box<str>>,
    used: FxHashSet<Box<str>>,
    order: Vec<Box<str>>,
}

impl Namer<'_> {
    fn region(&mut self, region: RegionId, mut at: Counters, stack: &mut Vec<Todo>) {
        let m = self.m;
        let owner = m.region(region).parent;
        if m.op_name(owner) == "func.func" {
            at = Counters::default();
        }
        let first = stack.len();
        for (n, &block) in m.region(region).blocks.iter().enumerate() {
            for &argument in &m.block(block).arguments {
                if n == 0 && is_while(m, owner) {
                    self.name(argument, "iterArg", &mut at);
                } else {
                    let name = format!("arg{}", at.argument);
                    at.argument += 1;
                    self.name(argument, &name, &mut at);
                }
            }
            for &op in &m.block(block).operations {
                let Some(&result) = m.op(op).results.first() else { continue };
                let own = result_names(m.op_name(op));
                if own.len() == m.op(op).results.len() {
                    for (&result, name) in m.op(op).results.iter().zip(own) {
                        self.name(result, name, &mut at);
                    }
                    continue;
                }
                match asm_name(m, op) {
                    Some(name) => self.name(result, name, &mut at),
                    None => {
                        self.names[result.index()] = at.value.to_string().into();
                        at.value += 1;
                    }
                }
                let name = self.names[result.index()].clone();
                for &other in &m.op(op).results[1..] {
                    self.names[other.index()] = name.clone();
                }
            }
        }
        let blocks = m.region(region).blocks.iter();
        let inner = blocks.flat_map(|&b| &m.block(b).operations).flat_map(|&op| m.op(op).regions.iter());
        stack.extend(inner.map(|&r| Todo::Enter(r, at)));
        stack[first..].reverse();
    }

    fn name(&mut self, value: ValueId, wanted: &str, at: &mut Counters) {
        let mut name: Box<str> = wanted.into();
        while self.used.contains(&name) {
            name = format!("{wanted}_{}", at.conflict).into();
            at.conflict += 1;
        }
        self.used.insert(name.clone());
        self.order.push(name.clone());
        self.names[value.index()] = name;
    }
}

pub(super) fn is_while(m: &Module, op: OpId) -> bool {
    matches!(m.op_name(op), "stablehlo.while" | "mhlo.while")
}

/// The names of the results of operations that have several, each with one of its own.
pub(super) fn result_names(operation: &str) -> &'static [&'static str] {
    match operation.split_once('.') {
        Some(("stablehlo" | "mhlo", "rng_bit_generator")) => &["output_state", "output"],
        Some(("stablehlo" | "mhlo", "batch_norm_training")) => &["output", "batch_mean", "batch_var"],
        Some(("stablehlo" | "mhlo", "batch_norm_grad")) => &["grad_operand", "grad_scale", "grad_offset"],
        Some(("chlo", "top_k")) => &["values", "indices"],
        _ => &[],
    }
}

/// The name that an operation asks for.
fn asm_name(m: &Module, op: OpId) -> Option<&'static str> {
    if !matches!(m.op_name(op), "stablehlo.constant" | "mhlo.constant" | "arith.constant") {
        return None;
    }
    let element = match m.get_type(m.value_type(m.op(op).results[0])) {
        Type::Tensor { element, .. } => *element,
        _ => return Some("cst"),
    };
    Some(if matches!(m.get_type(element), Type::Integer { .. }) { "c" } else { "cst" })
}
