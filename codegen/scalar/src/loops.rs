//! Single-kernel loops: the state in temporaries, the next state computed from the previous one as a whole.

use hlo::attrs::AttrKey;
use hlo::{Buffer, BufferOf, ElementType, InstrId, Module, Opcode};
use hlo_codegen::Unsupported;
use hlo_codegen::kernel::Progress;
use hlo_library_base::portable::{Evaluate, Memory};
use hlo_opt::expr::{array_leaves, is_leaf_of, leaf_root};
use hlo_opt::fusion::update_slice_chain;

use super::code::{Arrays, Storage, spread};
use super::fused::{Known, bytes_of, window};
use super::nest::Nest;

/// A loop.
#[derive(Debug)]
pub(crate) struct Loop {
    /// Sizes in bytes of the operand's leaves, of the result's, and of the scratch memory.
    bytes: Vec<u64>,
    /// Types and lengths of the leaves.
    leaves: Vec<(ElementType, usize)>,
    condition: Nest,
    next: Vec<Next>,
}

/// The update of a leaf of the state.
#[derive(Debug)]
enum Next {
    /// Loop invariant.
    Same,
    /// Windows of it are updated in place.
    Windows(Vec<Nest>),
    /// Recomputed.
    Whole(Box<Nest>),
}

impl Loop {
    /// The kernel of a `while`.
    pub(crate) fn new(module: &Module, id: InstrId) -> Result<Self, Unsupported> {
        let refuse = |why: &str| Unsupported::new(module, id, why);
        let instr = module.instr(id);
        let part = |key| {
            let computation = instr.attrs.computation(key)?;
            let state = module.computation(computation).parameters().first().copied().flatten()?;
            Some((module.root(computation), state))
        };
        let (Some((holds, in_condition)), Some((root, in_body))) =
            (part(AttrKey::Condition), part(AttrKey::Body))
        else {
            return Err(refuse("a loop without its computations"));
        };
        let mut known = Known::new(module);
        for (leaf, shape) in array_leaves(&instr.shape).enumerate() {
            for state in [in_condition, in_body] {
                known.bind(state, leaf as u32, shape, Storage::Temporary(leaf));
            }
        }
        let condition = Nest::of(&mut known.expr(), holds, 0, &[])?;
        let (mut bytes, mut leaves, mut next) = (Vec::new(), Vec::new(), Vec::new());
        for (leaf, shape) in (0..).zip(array_leaves(&instr.shape)) {
            bytes.push(bytes_of(shape));
            leaves.push((shape.element_type, shape.elements()));
            let (at, at_leaf) = leaf_root(module, root, leaf);
            let is_state = |id: InstrId| is_leaf_of(module, id, 0, in_body, leaf);
            next.push(if is_leaf_of(module, root, leaf, in_body, leaf) {
                Next::Same
            } else if module.instr(at).opcode == Opcode::DynamicUpdateSlice
                && let Some(chain) = update_slice_chain(module, at, &is_state)
            {
                let mut windows = Vec::new();
                for update in chain {
                    windows.extend(window(&known, update)?);
                }
                Next::Windows(windows)
            } else {
                Next::Whole(Box::new(Nest::of(&mut known.expr(), at, at_leaf, &shape.dims)?))
            });
        }
        bytes.extend_from_within(..);
        bytes.push(super::LOOP_SCRATCH_BYTES);
        Ok(Self { bytes, leaves, condition, next })
    }

    /// The number of elements that an iteration computes.
    pub(crate) fn points(&self) -> u64 {
        let of = |next: &Next| match next {
            Next::Same => 0,
            Next::Windows(windows) => windows.iter().map(Nest::count).sum(),
            Next::Whole(nest) => nest.count(),
        };
        self.next.iter().map(of).fold(1, |n, m| n.saturating_add(m.unsigned_abs()))
    }

    /// The state after an iteration.
    fn step(&self, memory: &Memory<'_>, state: &mut [Buffer]) {
        let arrays = Arrays { memory, temporaries: state };
        let mut made: Vec<(usize, Option<Vec<i64>>, Buffer)> = Vec::new();
        for (leaf, next) in self.next.iter().enumerate() {
            let (ty, _) = self.leaves[leaf];
            match next {
                Next::Same => {}
                Next::Whole(nest) => made.push((leaf, None, nest.array(ty, arrays))),
                Next::Windows(windows) => {
                    made.extend(windows.iter().map(|nest| {
                        let (at, values) = nest.elements(ty, arrays);
                        (leaf, Some(at), values)
                    }));
                }
            }
        }
        for (leaf, at, values) in made {
            match at {
                Some(at) => spread(&mut state[leaf], &at, None, &values),
                None => state[leaf] = values,
            }
        }
    }
}

impl Evaluate for Loop {
    fn bytes(&self, _end: u64) -> Vec<u64> {
        self.bytes.clone()
    }

    fn run(&self, memory: &Memory<'_>, begin: u64, end: u64) {
        let count = self.leaves.len();
        let all = |length: usize| (0..length as i64).collect::<Vec<_>>();
        let mut state: Vec<Buffer> = Vec::with_capacity(count);
        for (leaf, &(ty, length)) in self.leaves.iter().enumerate() {
            let mut values = Buffer::zeros(ty, length);
            // The first call begins with the operand, later ones with what the previous call left.
            let from = if begin == 0 { leaf } else { count + leaf };
            memory.read(from, &all(length), None, &mut values);
            state.push(values);
        }
        let mut progress = Progress { goes_on: 1, iterations: begin };
        while progress.iterations < end {
            let mut holds = false;
            let arrays = Arrays { memory, temporaries: &state };
            self.condition.run(0..1, arrays, &mut |_, _, values| {
                holds = bool::slice(values).is_some_and(|values| values[0]);
            });
            if !holds {
                progress.goes_on = 0;
                break;
            }
            self.step(memory, &mut state);
            progress.iterations += 1;
        }
        for (leaf, (values, &(_, length))) in state.iter().zip(&self.leaves).enumerate() {
            memory.write(count + leaf, &all(length), None, values);
        }
        let words = [progress.goes_on, progress.iterations].map(u64::to_ne_bytes);
        memory.write_bytes(2 * count, &words.concat());
    }
}
