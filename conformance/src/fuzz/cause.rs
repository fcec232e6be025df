//! Why elements are undecided: the instruction at which a bound is lost.
//!
//! A run with bounds is watched, and of each array of each value it is kept whether some element has no soft
//! bound, or a hard one beyond the soft one. From an array of the result one goes back through operands of
//! which that is true as well, through calls, loops and branches into their computations and out of these to
//! what their callers pass on: the instruction with no such operand is the cause.
//!
//! **Invariant:** a cause says something of an array as a whole. Which of its elements follow from which
//! elements of operands is not looked at, so of several causes the one is named that is found first, in the
//! order of operands.

use hlo::{AttrKey, ElementType, InstrId, Module, Opcode, Shape};
use hlo_interp::Value;
use rustc_hash::{FxHashMap, FxHashSet};

use hlo_certify::bounds::{At, Bounds, Tree, Visitor};
use hlo_triage::instruction_kind::InstructionKind;

/// What is lost of the bounds of an array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum Lost {
    /// Nothing: rounding explains or refutes each difference.
    #[default]
    Nothing,
    /// Some element has a hard bound beyond its soft one: a decision hangs on rounding.
    Decision,
    /// Some element has no bound.
    Bound,
}

impl Lost {
    fn of(bounds: &Bounds, len: usize) -> Lost {
        let Bounds { soft, hard, .. } = bounds;
        if (0..len).any(|i| soft.at(i).is_infinite()) {
            Lost::Bound
        } else if (0..len).any(|i| hard.at(i) > soft.at(i)) {
            Lost::Decision
        } else {
            Lost::Nothing
        }
    }
}

/// Watches a certification for the causes of what it leaves undecided.
#[derive(Default)]
pub(super) struct Causes {
    /// Of each instruction that ran, for the arrays of its value, in order.
    lost: FxHashMap<InstrId, Vec<Lost>>,
}

impl Visitor for Causes {
    fn value(&mut self, at: &At, value: &Value, bounds: &Tree) -> bool {
        let arrays = value.arrays();
        let found = bounds.arrays();
        // What is only promised has neither.
        if arrays.len() == found.len() {
            let kept = self.lost.entry(at.instr).or_default();
            kept.resize(kept.len().max(arrays.len()), Lost::Nothing);
            let each = kept.iter_mut().zip(arrays.iter().zip(found));
            each.for_each(|(kept, (t, bounds))| *kept = (*kept).max(Lost::of(bounds, t.len())));
        }
        false
    }
}

/// An array of an instruction's value.
type Array = (InstrId, usize);

impl Causes {
    /// The instruction that array `number` of the module's result comes down to; of one that gives a tuple with
    /// the element type of its undecided array. `None`: all of its bounds are known.
    pub(super) fn of_result(&self, module: &Module, number: usize) -> Option<InstructionKind> {
        let mut at = (module.root(module.entry()), number);
        let lost = self.lost_of(at);
        if lost == Lost::Nothing {
            return None;
        }
        let mut seen = FxHashSet::default();
        while seen.insert(at) {
            let origins = self.origins(module, at);
            let of = |lost| origins.iter().copied().find(|&p| self.lost_of(p) == lost && !seen.contains(&p));
            let next = match lost {
                Lost::Bound => of(Lost::Bound),
                Lost::Decision | Lost::Nothing => of(Lost::Decision).or_else(|| of(Lost::Bound)),
            };
            at = next.unwrap_or(at);
        }
        let (id, array) = at;
        let mut types = Vec::new();
        element_types(&module.instr(id).shape, &mut types);
        Some(InstructionKind { opcode: module.instr(id).opcode, ty: types.get(array).copied() })
    }

    fn lost_of(&self, (id, array): Array) -> Lost {
        self.lost.get(&id).and_then(|arrays| arrays.get(array)).copied().unwrap_or_default()
    }

    /// All arrays of a value.
    fn arrays(&self, id: InstrId) -> impl Iterator<Item = Array> {
        (0..self.lost.get(&id).map_or(0, Vec::len)).map(move |array| (id, array))
    }

    /// What an array is made of.
    fn origins(&self, module: &Module, (id, array): Array) -> Vec<Array> {
        let instr = module.instr(id);
        let operands = || instr.operands().iter().flat_map(|&o| self.arrays(o));
        let results = || {
            let called = instr.attrs.called_computations();
            called.into_iter().map(|c| module.root(c)).collect::<Vec<_>>()
        };
        match instr.opcode {
            Opcode::Tuple => {
                let mut before = 0;
                for &o in instr.operands() {
                    let n = array_count(&module.instr(o).shape);
                    if array < before + n {
                        return vec![(o, array - before)];
                    }
                    before += n;
                }
                Vec::new()
            }
            Opcode::GetTupleElement => {
                let parts = instr.operands().first().map(|&o| (o, &module.instr(o).shape));
                let index = instr.attrs.int(AttrKey::Index).and_then(|i| usize::try_from(i).ok());
                match (parts, index) {
                    (Some((tuple, Shape::Tuple(parts))), Some(index)) => {
                        let before: usize = parts.iter().take(index).map(array_count).sum();
                        vec![(tuple, before + array)]
                    }
                    (_, _) => operands().collect(),
                }
            }
            Opcode::Parameter => {
                let number = instr.parameter_number().and_then(|n| usize::try_from(n).ok());
                self.passed(module, id, number.unwrap_or(0), array)
            }
            Opcode::Call | Opcode::Fusion => {
                let inside = results().into_iter().map(|root| (root, array));
                inside.chain(operands()).collect()
            }
            // The arrays of a body's result are those of the loop; a condition has its own.
            Opcode::While | Opcode::Conditional => {
                let roots = results();
                let same = roots.iter().map(|&root| (root, array));
                same.chain(roots.iter().flat_map(|&root| self.arrays(root))).chain(operands()).collect()
            }
            _ => {
                let inside = results().into_iter().flat_map(|root| self.arrays(root)).collect::<Vec<_>>();
                operands().chain(inside).collect()
            }
        }
    }

    /// What callers pass on as an array of a parameter.
    fn passed(&self, module: &Module, parameter: InstrId, number: usize, array: usize) -> Vec<Array> {
        let computation = module.instr(parameter).parent();
        let mut found = Vec::new();
        for caller in module.computations().iter().flat_map(|&c| module.instructions(c)) {
            let instr = module.instr(caller);
            let called = instr.attrs.called_computations();
            let Some(branch) = called.iter().position(|&c| c == computation) else { continue };
            let operand = match instr.opcode {
                Opcode::Conditional => instr.operands().get(branch + 1),
                Opcode::While => instr.operands().first(),
                _ => instr.operands().get(number),
            };
            found.extend(operand.map(|&o| (o, array)));
            // What the body has given, and what decides that it runs.
            match instr.opcode {
                Opcode::While => {
                    found.extend(called.iter().map(|&c| (module.root(c), array)));
                    found.extend(called.iter().flat_map(|&c| self.arrays(module.root(c))));
                }
                Opcode::Conditional => {
                    found.extend(instr.operands().first().into_iter().flat_map(|&o| self.arrays(o)))
                }
                _ => {}
            }
        }
        found
    }
}

fn array_count(shape: &Shape) -> usize {
    let mut types = Vec::new();
    element_types(shape, &mut types);
    types.len()
}

/// The element types of the arrays of a shape, in order.
fn element_types(shape: &Shape, types: &mut Vec<ElementType>) {
    match shape {
        Shape::Array(a) => types.push(a.element_type),
        Shape::Tuple(parts) => parts.iter().for_each(|part| element_types(part, types)),
        Shape::Buffer(inner) => element_types(inner, types),
        Shape::Token | Shape::Opaque => {}
    }
}
