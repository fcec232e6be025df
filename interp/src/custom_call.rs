//! Custom calls: what the interpreter knows of them, and how a program that embeds it adds its own.
//!
//! A target is looked up among the caller's ([`Registry`], in [`Options`](crate::Options)) and then among
//! those built in: `TopK`, annotations that change no value (`Sharding` and the like), changes between whole
//! arrays and shards, and library calls. Any other target is refused by name.

use std::fmt;
use std::sync::Arc;

use hlo::{ArrayShape, ComputationId, InstrId, Instruction, Module, Shape, UNBOUNDED};
use rustc_hash::FxHashMap;

use crate::engine::{MAX_NESTING, fits};
use crate::error::{ErrorKind, REFUSAL, Result, RunError};
use crate::ops::{Args, Cx, shards};
use crate::value::Value;

pub use crate::device::tiling::Tiling;
pub use crate::ops::shards::Direction;

/// An implementation of one target, or of several.
pub trait CustomCall: Send + Sync {
    /// Computes the result of a call. It must be of the shape that the call says. Operands that do not fit
    /// are for [`Call::unsupported`] or [`Call::trap`] to report.
    fn run(&self, call: &Call<'_>, invocation: &Invocation<'_>, operands: Vec<Value>) -> Result<Value>;
}

impl<F> CustomCall for F
where
    F: Fn(&Call<'_>, Vec<Value>) -> Result<Value> + Send + Sync,
{
    fn run(&self, call: &Call<'_>, _invocation: &Invocation<'_>, operands: Vec<Value>) -> Result<Value> {
        self(call, operands)
    }
}

/// The prefix of the target of a call that the embedder implements ([`bind`]): no pass and no compiler takes
/// such a call for one that is built in.
const BOUND: &str = "bound:";

/// Marks the calls of some targets as those of implementations that are given to the run. Returns how many
/// there are.
pub fn bind(module: &mut Module, is_bound: impl Fn(&Call<'_>) -> bool) -> usize {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    let wanted = |id: &InstrId| {
        let call = Call { instruction: module.instr(*id), module };
        call.instruction.opcode == hlo::Opcode::CustomCall && !call.is_bound() && is_bound(&call)
    };
    let calls: Vec<InstrId> = all.filter(wanted).collect();
    for &id in &calls {
        let attrs = &mut module.instr_mut(id).attrs;
        let target = attrs.str(hlo::AttrKey::CustomCallTarget).unwrap_or_default();
        let target = format!("{BOUND}{target}");
        attrs.set(hlo::AttrKey::CustomCallTarget, hlo::attrs::AttrValue::Str(target.into()));
    }
    calls.len()
}

/// The calls of a module that [`bind`] has marked.
pub fn bound_calls(module: &Module) -> Vec<InstrId> {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    let is_bound = |id: &InstrId| {
        let instruction = module.instr(*id);
        instruction.opcode == hlo::Opcode::CustomCall && Call { instruction, module }.is_bound()
    };
    all.filter(is_bound).collect()
}

/// One execution of a call, in a run.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    cx: &'a Cx<'a>,
}

impl<'a> Invocation<'a> {
    pub(crate) fn new(cx: &'a Cx<'a>) -> Self {
        Self { cx }
    }

    /// The instruction.
    pub fn id(&self) -> InstrId {
        self.cx.id
    }

    /// The number of the device that executes it.
    pub fn device(&self) -> u32 {
        self.cx.session.number
    }

    /// The shape of the result.
    pub fn shape(&self) -> Shape {
        self.cx.instr.shape.clone()
    }

    /// Threads that [`Invocation::parallel`] has.
    pub fn threads(&self) -> usize {
        hlo_threads::parallel::threads()
    }

    /// Calls `work` once with each number below `count`, on all threads there are.
    pub fn parallel(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        hlo_threads::parallel::tasks(count, work);
    }

    /// Runs a computation of the module on the same device and the same account.
    ///
    /// # Errors
    /// Arguments that do not fit its parameters, calls that nest too deep, and whatever ends the run.
    pub fn call(&self, computation: ComputationId, args: Vec<Value>) -> Result<Value> {
        let (module, call) =
            (self.cx.module(), Call { instruction: self.cx.instr, module: self.cx.module() });
        if self.cx.depth >= MAX_NESTING {
            return Err(call.unsupported(&format!("in calls that nest more than {MAX_NESTING} deep")));
        }
        let name = &module.computation(computation).name;
        let parameters = module.program_shape(computation).map(|p| p.parameters).unwrap_or_default();
        if args.len() != parameters.len() {
            let (given, takes) = (args.len(), parameters.len());
            return Err(call.trap(format_args!("{name} takes {takes} arguments, not {given}")));
        }
        for (n, (arg, parameter)) in args.iter().zip(&parameters).enumerate() {
            if !fits(arg, parameter) {
                let (given, wanted) = (arg.shape(), parameter.without_layout());
                return Err(call.trap(format_args!("argument {n} of {name} has shape {given}, not {wanted}")));
            }
        }
        self.cx.session.run(computation, Args::from_vec(args), self.cx.depth + 1)
    }
}

/// Whether the sizes of all arrays of a shape are known before a run.
pub(crate) fn has_static_sizes(shape: &Shape) -> bool {
    let known = |array: &ArrayShape| !array.is_dynamic() && !array.dims.contains(&UNBOUNDED);
    shape.leaves().iter().all(|leaf| leaf.as_array().is_none_or(known))
}

/// Whether an array of this shape may be of that one at run time, as far as sizes are known before it.
fn may_fit(value: &Shape, shape: &Shape) -> bool {
    match (value, shape) {
        (Shape::Array(v), Shape::Array(s)) => {
            let size = |i: usize| {
                let (d, bound) = (v.dims[i], s.dims[i]);
                let open = v.is_dynamic_dim(i) || d == UNBOUNDED;
                open || d == bound || s.is_dynamic_dim(i) && (bound == UNBOUNDED || d <= bound)
            };
            v.element_type == s.element_type && v.rank() == s.rank() && (0..v.rank()).all(size)
        }
        (Shape::Tuple(v), Shape::Tuple(s)) => {
            v.len() == s.len() && v.iter().zip(s.iter()).all(|(v, s)| may_fit(v, s))
        }
        (Shape::Token, Shape::Token) => true,
        (Shape::Buffer(v), s) => may_fit(v, s),
        (v, Shape::Buffer(s)) => may_fit(v, s),
        (
            Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque,
            Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque,
        ) => false,
    }
}

/// Why a call of one array is refused that has something else.
pub(crate) const NOT_ONE_ARRAY: &str = "with other than one array";

/// A call: the instruction, in its module.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Target, shapes, attributes.
    pub instruction: &'a Instruction,
    /// The module of called computations.
    pub module: &'a Module,
}

/// Whether the calls of a target exchange values with other devices, as collectives do: those that join
/// shards.
pub fn exchanges(target: &str) -> bool {
    shards::direction(target) == Some(Direction::ToWhole)
}

/// The meaning of a call to a built-in target.
#[derive(Debug)]
pub enum Meaning {
    /// Its operands.
    Same,
    /// The result of this HLO, whose parameters are the operands.
    Expansion(Box<Module>),
    /// The largest or smallest elements of each line, by its computation, and their indices.
    TopK,
    /// Something that one right answer exists for, and that is no HLO.
    Exact,
    /// Something that implementations may differ in, or nothing that is known.
    Open,
}

impl Call<'_> {
    /// What the call computes, unless the caller has an implementation of its target.
    pub fn meaning(&self) -> Meaning {
        crate::ops::meaning(self)
    }

    /// Whether the target is one of those built in, and takes a call of this form: what is known of that
    /// without values. Errors: what a run would refuse.
    pub fn check(&self) -> Result<()> {
        if self.is_bound() { Ok(()) } else { crate::ops::check_custom_call(self) }
    }

    /// Whether an implementation is given to the run: see [`bind`].
    pub fn is_bound(&self) -> bool {
        self.written_target().starts_with(BOUND)
    }

    /// The shapes of the operands.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &'_ Shape> {
        self.instruction.operands().iter().map(|&o| &self.module.instr(o).shape)
    }

    /// Refuses a call whose value is of a shape that its instruction's is not, whatever sizes are at run
    /// time.
    pub(crate) fn gives(&self, value: &Shape) -> Result<()> {
        if may_fit(value, &self.instruction.shape) { Ok(()) } else { Err(self.gives_another(value)) }
    }

    /// The error that the value of a call has another shape than its instruction.
    pub(crate) fn gives_another(&self, value: &Shape) -> RunError {
        let (from, to) = (value.without_layout(), self.instruction.shape.without_layout());
        self.unsupported(&format!("whose value {from} shall be {to}"))
    }

    /// The attribute.
    fn written_target(&self) -> &str {
        self.instruction.attrs.str(hlo::AttrKey::CustomCallTarget).unwrap_or_default()
    }

    /// How the call cuts each of its operands into shards, or joins them, and in which direction; `None` if
    /// its target is not one of those that do. Errors: why that cannot be said.
    pub fn shards(&self) -> Option<Result<(Direction, Vec<Option<Tiling>>)>> {
        let direction = shards::direction(self.written_target())?;
        let tilings = shards::tilings(self, direction).map_err(|why| self.unsupported(&why));
        Some(tilings.map(|tilings| (direction, tilings)))
    }

    /// `custom_call_target`, as it was before [`bind`].
    pub fn target(&self) -> &str {
        let target = self.written_target();
        target.strip_prefix(BOUND).unwrap_or(target)
    }

    /// The text of `backend_config`, empty if there is none.
    pub fn backend_config(&self) -> &str {
        self.instruction.attrs.backend_config().map_or("", |config| config.text())
    }

    /// The error that this form of the call is not supported; `why` goes on from the name of the target.
    pub fn unsupported(&self, why: &str) -> RunError {
        let code = hlo::diag::codes::UNSUPPORTED_CUSTOM_CALL;
        let message = format!("{REFUSAL}a custom call to {:?} {why}", self.target());
        RunError::at(self.instruction, ErrorKind::Unsupported, code, message)
    }

    /// The error that the call went wrong.
    pub fn trap(&self, message: impl fmt::Display) -> RunError {
        let code = hlo::diag::codes::CUSTOM_CALL_FAILED;
        let message = format!("custom call to {:?}: {message}", self.target());
        RunError::at(self.instruction, ErrorKind::Trap, code, message)
    }
}

/// Implementations by target.
#[derive(Clone, Default)]
pub struct Registry(FxHashMap<Box<str>, Arc<dyn CustomCall>>);

impl Registry {
    /// Adds an implementation, or replaces one, built in or not.
    pub fn insert(&mut self, target: &str, implementation: impl CustomCall + 'static) {
        self.0.insert(target.into(), Arc::new(implementation));
    }

    /// Adds an implementation that others have, too.
    pub fn insert_shared(&mut self, target: &str, implementation: Arc<dyn CustomCall>) {
        self.0.insert(target.into(), implementation);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The implementation of a target.
    pub fn get(&self, target: &str) -> Option<&dyn CustomCall> {
        self.0.get(target).map(|call| &**call)
    }
}

/// The targets, sorted.
impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut targets: Vec<&str> = self.0.keys().map(|target| &**target).collect();
        targets.sort_unstable();
        f.debug_set().entries(targets).finish()
    }
}
