//! The engine: runs computations.
//!
//! **Invariants:** calls, fusions, loops and conditionals use a stack of frames on the heap, so that no
//! nesting in a program can overflow the thread's stack; only computations that are applied to elements and
//! are not compiled to bytecode ([`Region`]) recurse, at most [`MAX_NESTING`] deep. Every executed
//! instruction costs fuel before it runs, and every value is asked for from the [`crate::memory::Meter`]
//! before it is allocated.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use hlo::diag::codes;
use hlo::{
    Buffer, BufferOf, ComputationId, ConstantValue, InstrId, Instruction, Module, Opcode, Shape,
    with_element_type,
};
use hlo_arithmetic::sum::Accumulate;
use hlo_threads::cancel::{self, CancellationToken};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::custom_call::Registry;
use crate::device::host::{Host, NoHost};
use crate::device::pending::Traffic;
use crate::device::{Device, Devices, Peers};
use crate::endless;
use crate::error::{ErrorKind, Result, RunError};
use crate::memory::{self, Beside, Charge, Meter, Pool};
use crate::observe::{Flow, Observer, Site, Watch};
use crate::ops::{self, Args, Cx, Outcome};
use crate::plan::{self, Looks, Plan, Step};
use crate::region::{Region, ScalarLoop};
use crate::value::{Tensor, Value};

/// A state of a loop is kept for cycle detection only if this many times its bytes are free,
const ANCHOR_COPIES: u64 = 8;
/// and only if it has at most this many bytes: a larger one is updated in place, which a copy would prevent.
const MAX_ANCHOR_BYTES: u64 = 64 << 10;
/// The maximum nesting of computations that are applied to elements.
pub const MAX_NESTING: u32 = 64;

/// Options of a run. Limits are those of each device.
#[derive(Clone, Debug)]
pub struct Options {
    /// How sums of floats round.
    pub accumulate: Accumulate,
    /// The maximum number of instructions that are executed, applications of computations to elements
    /// included; `None`: no limit.
    pub fuel: Option<u64>,
    /// The maximum number of bytes of values that are alive at once.
    pub memory_limit_bytes: u64,
    /// A description of that limit, for messages; may be empty.
    pub memory_limit_of: &'static str,
    /// Bytes held outside of the run, which count against the limit of each device.
    pub beside: Beside,
    /// Seed of `rng`.
    pub seed: u64,
    /// The hosts' side of infeed, outfeed, send and recv.
    pub host: Arc<dyn Host>,
    /// Implementations of custom calls, which take precedence over the built-in ones.
    pub custom_calls: Registry,
    /// The observer of every executed instruction.
    pub observer: Option<Arc<dyn Observer>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            accumulate: Accumulate::Exact,
            fuel: None,
            memory_limit_bytes: 8 << 30,
            memory_limit_of: "",
            beside: Beside::default(),
            seed: 0,
            host: Arc::new(NoHost),
            custom_calls: Registry::default(),
            observer: None,
        }
    }
}

/// A verified module, ready to run any number of times.
#[derive(Debug)]
pub struct Interpreter<'m> {
    module: &'m Module,
    options: Options,
    plans: Vec<Option<Plan>>,
    regions: Vec<OnceLock<Arc<Region>>>,
    /// By computation: the loop whose body it is, with its condition, if that is a [`ScalarLoop`].
    loops: Vec<OnceLock<(ComputationId, Option<ScalarLoop>)>>,
    effects: Vec<bool>,
    pool: Arc<Pool>,
    /// Some instruction may yield pending values.
    promises: bool,
    /// The exchange of runs on one device, shared by all of them, if no instruction exchanges values between
    /// devices: then runs leave nothing in it.
    pub(crate) alone: Option<Peers>,
    /// Exchanges with hosts whose order is not determined by the program: see [`crate::order`].
    unordered: FxHashMap<InstrId, InstrId>,
}

/// The resources that a run used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunStats {
    /// Instructions executed.
    pub fuel: u64,
    /// The maximum number of bytes of values that were alive at once.
    pub peak_bytes: u64,
}

/// The state of one run on one device.
#[derive(Debug)]
pub(crate) struct Session<'m> {
    pub(crate) interpreter: &'m Interpreter<'m>,
    /// The device and its number.
    pub(crate) device: Device,
    pub(crate) number: u32,
    pub(crate) peers: &'m Peers,
    pub(crate) traffic: Traffic,
    fuel: AtomicU64,
    pub(crate) meter: Arc<Meter>,
    pub(crate) random: ops::rng::States,
    watch: Option<Watch>,
    /// The cancellation token of the run.
    cancel: Option<CancellationToken>,
}

impl<'m> Interpreter<'m> {
    /// Prepares a module, which the verifier must have accepted.
    pub fn new(module: &'m Module, options: Options) -> Self {
        let effects = plan::side_effects(module);
        let promises = plan::promises(module);
        let mut plans: Vec<Option<Plan>> = (0..module.computation_capacity()).map(|_| None).collect();
        for &c in module.computations() {
            plans[c.index()] = Some(Plan::new(module, c, &effects, promises));
        }
        let regions = (0..module.computation_capacity()).map(|_| OnceLock::new()).collect();
        let loops = (0..module.computation_capacity()).map(|_| OnceLock::new()).collect();
        let unordered = crate::order::unordered(module);
        let pool = Arc::default();
        let alone = (!plan::exchanges(module)).then(|| Peers::new(Devices::ONE));
        Self { module, options, plans, regions, loops, effects, pool, promises, alone, unordered }
    }

    /// The module.
    pub fn module(&self) -> &'m Module {
        self.module
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Runs the entry computation. `args` are its parameters' values in order.
    pub fn run(&self, args: Vec<Value>) -> Result<Value> {
        self.run_with_stats(args).map(|(value, _)| value)
    }

    /// Runs the entry computation, and returns the resources used as well.
    pub fn run_with_stats(&self, args: Vec<Value>) -> Result<(Value, RunStats)> {
        self.run_alone(args)
    }

    /// A run on one of several devices.
    pub(crate) fn session<'s>(&'s self, peers: &'s Peers, number: u32) -> Session<'s> {
        // Storage that waits for reuse is limited by the peak of one device.
        let pool = if peers.devices.count() == 1 { self.pool.clone() } else { Arc::default() };
        Session {
            interpreter: self,
            device: peers.devices.device(number),
            number,
            peers,
            traffic: Traffic::default(),
            fuel: AtomicU64::new(0),
            meter: Meter::new(self.options.memory_limit_bytes, &self.options.beside, &pool),
            random: ops::rng::States::default(),
            watch: self.options.observer.as_ref().map(|o| Watch::new(o, self.module)),
            cancel: cancel::current(),
        }
    }

    /// Runs the entry computation on one of several devices, whose arguments were checked.
    pub(crate) fn run_one(&self, peers: &Peers, number: u32, args: Vec<Value>) -> Result<(Value, RunStats)> {
        let session = self.session(peers, number);
        // Arguments are shared with others, so they are live until the run ends.
        let lent = args.iter().flat_map(Value::lent).map(|b| (Arc::as_ptr(b), b.bytes()));
        let lent: FxHashMap<*const Buffer, u64> = lent.collect();
        let _lent = (!lent.is_empty()).then(|| Charge::new(&session.meter, lent.values().sum()));
        let args = args
            .into_iter()
            .map(|mut v| {
                v.charge(&session.meter);
                v
            })
            .collect();
        let entry = self.module.entry();
        let mut value = session.run(entry, args, 0)?;
        if self.promises {
            value = session.settle(value, self.module.root(entry))?;
        }
        let stats = RunStats { fuel: session.fuel.load(Ordering::Relaxed), peak_bytes: session.meter.peak() };
        Ok((value, stats))
    }

    /// The region of a computation that is applied to elements.
    pub(crate) fn region(&self, computation: ComputationId) -> Arc<Region> {
        self.regions[computation.index()]
            .get_or_init(|| Arc::new(Region::compile(self.module, computation)))
            .clone()
    }

    /// A loop of scalars, if it is one.
    pub(crate) fn scalar_loop(&self, condition: ComputationId, body: ComputationId) -> Option<&ScalarLoop> {
        let (of, compiled) = self.loops[body.index()].get_or_init(|| {
            let pure = !self.effects[condition.index()] && !self.effects[body.index()];
            (condition, if pure { ScalarLoop::compile(self.module, condition, body) } else { None })
        });
        compiled.as_ref().filter(|_| *of == condition)
    }

    fn plan(&self, computation: ComputationId) -> &Plan {
        self.plans[computation.index()]
            .as_ref()
            .expect("invariant: every computation of the module has a plan")
    }

    pub(crate) fn check_arguments(&self, args: &[Value]) -> Result<()> {
        let entry = self.module.entry();
        let parameters = self.module.computation(entry).parameters();
        let wrong =
            |message: String| RunError::outside(ErrorKind::Arguments, codes::WRONG_ARGUMENTS, message);
        if args.len() != parameters.len() {
            return Err(wrong(format!(
                "the entry computation has {} parameters, but {} arguments were given",
                parameters.len(),
                args.len()
            )));
        }
        for (n, (arg, parameter)) in args.iter().zip(parameters).enumerate() {
            let id = parameter.expect("invariant: the verifier checked that parameters have no holes");
            let shape = &self.module.instr(id).shape;
            if !fits(arg, shape) {
                return Err(wrong(format!(
                    "argument {n} has shape {}, but parameter {n} is {}",
                    arg.shape(),
                    shape.without_layout()
                )));
            }
        }
        Ok(())
    }
}

/// Whether a value may be bound to a parameter of a shape.
pub(crate) fn fits(value: &Value, shape: &Shape) -> bool {
    match (value, shape) {
        (Value::Array(t), Shape::Array(a)) => {
            t.element_type() == a.element_type
                && t.rank() == a.rank()
                && t.dims().iter().enumerate().all(|(i, &d)| {
                    d == a.dims[i] || a.is_dynamic_dim(i) && (a.dims[i] == hlo::UNBOUNDED || d <= a.dims[i])
                })
        }
        (Value::Tuple(v), Shape::Tuple(s)) => {
            v.len() == s.len() && v.iter().zip(s.iter()).all(|(v, s)| fits(v, s))
        }
        (Value::Token, Shape::Token) => true,
        (_, Shape::Buffer(inner)) => fits(value, inner),
        (
            Value::Array(_) | Value::Tuple(_) | Value::Token | Value::Pending(_),
            Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque,
        ) => false,
    }
}

/// A computation that is being run.
pub(crate) struct Frame<'p> {
    plan: &'p Plan,
    /// The index of its first slot in [`Run::env`].
    base: usize,
    next: usize,
    then: Then,
    /// Of a condition or body: which iteration of its loop this is.
    pub(crate) iteration: u64,
    /// How often the current instruction ran before; known only with an observer.
    execution: u64,
    /// Inside of an `async-start`: collectives only begin.
    lazy: bool,
}

/// The continuation of a frame: what happens with its result. All but `Finish` continue the current step of
/// the frame below.
enum Then {
    /// It is the result of the run.
    Finish,
    /// It is the result of the step.
    Bind,
    /// It is wrapped as the result of an `async-start` of these operands.
    BindAsync(Args),
    /// It says whether the body of a loop runs on this state.
    Test { condition: ComputationId, body: ComputationId, state: Value, anchor: Option<Box<Value>> },
    /// It is the new state of a loop. `anchor` is an earlier one that it is compared with.
    Loop { condition: ComputationId, body: ComputationId, anchor: Option<Box<Value>> },
}

impl<'m> Session<'m> {
    /// Runs a computation to its end. `depth` counts the runs that are waiting for this one.
    pub(crate) fn run(&self, computation: ComputationId, args: Args, depth: u32) -> Result<Value> {
        let mut run = Run::new(self, depth);
        run.push(computation, args, Then::Finish, 0)?;
        run.finish()
    }

    /// The value of one instruction; what it calls is run. Errors: [`ErrorKind::Unsupported`] for a loop.
    pub(crate) fn evaluate(&self, id: InstrId, args: Args) -> Result<Value> {
        let instr = self.module().instr(id);
        self.spend(instr, 1)?;
        let cx = Cx { session: self, id, instr, depth: 0, lazy: false, prepared: None };
        // A pending value is waited for by the instruction that reads it.
        let args = args.into_iter().map(|a| self.settle(a, id)).collect::<Result<Args>>()?;
        match ops::eval(&cx, args)? {
            Outcome::Value(mut value) => {
                value.charge(&self.meter);
                Ok(value)
            }
            Outcome::Call(callee, args) => self.run(callee, args, 0),
            Outcome::Async(callee, args) => {
                let mut run = Run::new(self, 0);
                let kept = args.clone();
                run.push(callee, args, Then::Finish, 0)?;
                // The collectives in there only begin.
                run.top().lazy = true;
                self.started(instr, kept, run.finish()?)
            }
            Outcome::While { .. } => Err(RunError::unsupported(instr, "outside of a run of the interpreter")),
        }
    }

    /// Runs the entry of a module that stands for one instruction, within this run's limits, without an
    /// observer.
    pub(crate) fn run_library(&self, module: &Module, args: Args, depth: u32) -> Result<Value> {
        let options = Options { observer: None, ..self.interpreter.options.clone() };
        let interpreter = Interpreter::new(module, options);
        let session = Session {
            interpreter: &interpreter,
            device: self.device,
            number: self.number,
            peers: self.peers,
            traffic: Traffic::default(),
            fuel: AtomicU64::new(self.fuel.load(Ordering::Relaxed)),
            meter: self.meter.clone(),
            random: ops::rng::States::default(),
            watch: None,
            cancel: self.cancel.clone(),
        };
        let result = session.run(module.entry(), args, depth + 1);
        self.fuel.store(session.fuel.into_inner(), Ordering::Relaxed);
        result
    }

    fn constant(&self, step: &Step, instr: &Instruction) -> Result<Value> {
        if let Some(value) = step.constant.get() {
            return Ok(value.clone());
        }
        let value = match instr.attrs.constant_value() {
            Some(ConstantValue::Given(literal)) => Value::from_shared_literal(literal),
            Some(ConstantValue::Elided) => {
                let bytes = instr.shape.checked_bytes().and_then(|b| u64::try_from(b).ok());
                self.check_memory(instr, bytes)?;
                let literal = hlo::elided::elided_literal(&instr.name, &instr.shape);
                Value::from_literal(literal.ok_or_else(|| {
                    RunError::unsupported(instr, &format!("of shape {} whose value is elided", instr.shape))
                })?)
            }
            None => return Err(RunError::unsupported(instr, "without a value")),
        };
        Ok(step.constant.get_or_init(|| value).clone())
    }

    pub(crate) fn module(&self) -> &'m Module {
        self.interpreter.module
    }

    /// Refuses an exchange with a host, or a call with one in it, whose order the program does not say.
    pub(crate) fn check_order(&self, id: InstrId) -> Result<()> {
        let Some(before) = self.interpreter.unordered.get(&id) else { return Ok(()) };
        let before = &self.module().instr(*before).name;
        let message = format!("no token or value leads here from %{before}, so their order is not defined");
        Err(RunError::at(self.module().instr(id), ErrorKind::Trap, codes::UNORDERED, message))
    }

    /// The observer.
    pub(crate) fn observer(&self) -> Option<&dyn Observer> {
        self.watch.as_ref().map(|w| &*w.observer)
    }

    /// A value of zeros, if the memory limit allows.
    pub(crate) fn zeros(&self, instr: &Instruction, shape: &Shape) -> Result<Value> {
        match shape {
            Shape::Array(a) => {
                let n = a.checked_elements().and_then(|n| usize::try_from(n).ok());
                let unknown = || RunError::unsupported(instr, &format!("with a value of shape {shape}"));
                let n = n.ok_or_else(unknown)?;
                let bytes = (n as u64).checked_mul(a.element_type.storage_bytes() as u64);
                self.check_memory(instr, bytes)?;
                let zeros: Option<Buffer> =
                    with_element_type!(a.element_type, T => memory::zeros::<T>(n).map(BufferOf::wrap));
                let zeros = zeros.ok_or_else(|| self.refused(instr, bytes))?;
                Ok(Tensor::new(a.dims.clone(), zeros).into())
            }
            Shape::Tuple(parts) => {
                let parts = parts.iter().map(|part| self.zeros(instr, part));
                Ok(Value::tuple(parts.collect::<Result<Vec<_>>>()?))
            }
            Shape::Token => Ok(Value::Token),
            Shape::Buffer(inner) => self.zeros(instr, inner),
            Shape::Opaque => Err(RunError::unsupported(instr, "with an opaque value")),
        }
    }

    /// The value of an instruction that starts something: `((operands), result, contexts)`; contexts are
    /// zeros.
    pub(crate) fn started(&self, instr: &Instruction, operands: Args, result: Value) -> Result<Value> {
        let contexts = instr.shape.as_tuple().into_iter().flatten().skip(2);
        let contexts = contexts.map(|shape| self.zeros(instr, shape)).collect::<Result<Vec<_>>>()?;
        Ok(Value::tuple([Value::tuple(operands), result].into_iter().chain(contexts)))
    }

    /// Takes fuel, and ends a run that was cancelled.
    pub(crate) fn spend(&self, instr: &Instruction, amount: u64) -> Result<()> {
        let used = self.fuel.fetch_add(amount, Ordering::Relaxed).saturating_add(amount);
        self.spent(instr, used)
    }

    /// The same between instructions of the outermost run, when no other thread takes any: without the price
    /// of an atomic addition.
    fn spend_alone(&self, instr: &Instruction, amount: u64) -> Result<()> {
        let used = self.fuel.load(Ordering::Relaxed).saturating_add(amount);
        self.fuel.store(used, Ordering::Relaxed);
        self.spent(instr, used)
    }

    fn spent(&self, instr: &Instruction, used: u64) -> Result<()> {
        cancel::poll_token(self.cancel.as_ref());
        match self.interpreter.options.fuel {
            Some(limit) if used > limit => Err(RunError::at(
                instr,
                ErrorKind::OutOfFuel,
                codes::OUT_OF_FUEL,
                format!("out of fuel: the limit is {limit} executed instructions"),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses an allocation that would pass the limit; `None` is more than can be counted.
    pub(crate) fn check_memory(&self, instr: &Instruction, bytes: Option<u64>) -> Result<()> {
        if bytes.is_some_and(|b| self.meter.check(b)) {
            return Ok(());
        }
        let wanted = bytes.map_or_else(|| "more than 2^63".to_owned(), |b| b.to_string());
        let (opcode, live, limit) = (instr.opcode, self.meter.live(), self.meter.limit());
        let beside = match self.meter.beside() {
            0 => String::new(),
            bytes => format!(", {bytes} are kept beside them"),
        };
        let of = match self.interpreter.options.memory_limit_of {
            "" => String::new(),
            of => format!(" ({of})"),
        };
        let message =
            format!("{opcode} wants {wanted} bytes; {live} are alive{beside} and the limit is {limit}{of}");
        Err(RunError::at(instr, ErrorKind::OutOfMemory, codes::OUT_OF_MEMORY, message))
    }

    /// The error that the system gives no memory, although the limit would allow it.
    pub(crate) fn refused(&self, instr: &Instruction, bytes: Option<u64>) -> RunError {
        let (opcode, live) = (instr.opcode, self.meter.live());
        let wanted = bytes.unwrap_or(u64::MAX);
        let message =
            format!("{opcode} wants {wanted} bytes, which the system does not give; {live} are alive");
        RunError::at(instr, ErrorKind::OutOfMemory, codes::OUT_OF_MEMORY, message)
    }
}

/// One run of a computation: a stack of frames.
struct Run<'s, 'm> {
    session: &'s Session<'m>,
    stack: SmallVec<[Frame<'m>; 2]>,
    /// The values of all frames, those of the top frame last.
    env: Vec<Option<Value>>,
    /// The result, once it is there.
    ended: Option<Value>,
    depth: u32,
}

impl<'s, 'm> Run<'s, 'm> {
    fn new(session: &'s Session<'m>, depth: u32) -> Self {
        Self { session, stack: SmallVec::new(), env: Vec::new(), ended: None, depth }
    }

    /// Executes instructions until there is a result.
    fn finish(&mut self) -> Result<Value> {
        loop {
            if let Some(value) = self.ended.take() {
                return Ok(value);
            }
            self.step()?;
        }
    }

    /// Executes one instruction, or leaves a computation.
    fn step(&mut self) -> Result<()> {
        let session = self.session;
        let frame = self.stack.last_mut().expect("invariant: the bottom frame ends the run");
        let Some(step) = frame.plan.steps.get(frame.next) else {
            return self.pop();
        };
        let instr = session.module().instr(step.id);
        if self.depth == 0 {
            session.spend_alone(instr, 1)?;
        } else {
            session.spend(instr, 1)?;
        }
        if let Some(index) = step.take {
            let slot = frame.base + step.operands[0].slot as usize;
            if session.watch.is_some() {
                let operand = self.env[slot].clone();
                self.enter(step.id, operand.as_slice());
            }
            if step.looks == Looks::Outside {
                self.settle_outside(slot, step.id)?;
            }
            let element = self.env[slot].as_mut().and_then(|t| t.take_element(index));
            let element = element.expect("invariant: the verifier checked the index of a tuple");
            if step.operands[0].last {
                self.env[slot] = None;
            }
            return self.bind(element);
        }
        if instr.opcode == Opcode::Constant {
            self.enter(step.id, &[]);
            return self.bind(session.constant(step, instr)?);
        }
        if let Some((callee, executed)) = step.gives
            && session.watch.is_none()
            && session.interpreter.options.fuel.is_none()
        {
            let value = match step.constant.get() {
                Some(value) => {
                    session.spend(instr, executed)?;
                    value.clone()
                }
                None => {
                    let value = session.run(callee, Args::new(), self.depth)?;
                    step.constant.get_or_init(|| value).clone()
                }
            };
            return self.bind(value);
        }
        let lazy = frame.lazy;
        let mut args = gather(step, &mut self.env[frame.base..]);
        if step.looks != Looks::Away {
            session.settle_all(&mut args, step)?;
        }
        self.enter(step.id, &args);
        let prepared = Some(&step.prepared);
        let cx = Cx { session, id: step.id, instr, depth: self.depth, lazy, prepared };
        match ops::eval(&cx, args) {
            Ok(Outcome::Value(mut value)) => {
                value.charge(&session.meter);
                self.bind(value)
            }
            Err(error) => Err(error),
            Ok(Outcome::Call(callee, args)) => self.push(callee, args, Then::Bind, 0),
            Ok(Outcome::Async(callee, args)) => {
                let kept = args.clone();
                self.push(callee, args, Then::BindAsync(kept), 0)
            }
            Ok(Outcome::While { condition, body, state }) => {
                let args = SmallVec::from_elem(state.clone(), 1);
                self.push(condition, args, Then::Test { condition, body, state, anchor: None }, 0)
            }
        }
    }

    /// Starts a computation.
    fn push(&mut self, computation: ComputationId, args: Args, then: Then, iteration: u64) -> Result<()> {
        if !self.session.interpreter.unordered.is_empty()
            && let Some(caller) = self.stack.last()
        {
            self.session.check_order(caller.current())?;
        }
        let plan = self.session.interpreter.plan(computation);
        let base = self.env.len();
        self.env.resize_with(base + plan.slots, || None);
        for (arg, slot) in args.into_iter().zip(&plan.parameters) {
            if let Some(slot) = slot {
                self.env[base + *slot as usize] = Some(arg);
            }
        }
        let lazy = matches!(then, Then::BindAsync(_)) || self.stack.last().is_some_and(|f| f.lazy);
        self.stack.push(Frame { plan, base, next: 0, then, iteration, execution: 0, lazy });
        if self.session.watch.is_some() { self.watch_parameters(computation) } else { Ok(()) }
    }

    /// Leaves a computation: hands its result to the one below.
    fn pop(&mut self) -> Result<()> {
        let done = self.stack.pop().expect("invariant: there was a frame");
        let result = self.env[done.base + done.plan.root as usize].take();
        let result = result.expect("invariant: the root was computed");
        self.env.truncate(done.base);
        match done.then {
            Then::Finish => {
                self.ended = Some(result);
                Ok(())
            }
            Then::Bind => self.bind(result),
            Then::BindAsync(args) => {
                let frame = self.stack.last().expect("invariant: only the bottom frame finishes");
                let instr = self.session.module().instr(frame.plan.steps[frame.next].id);
                let value = self.session.started(instr, args, result)?;
                self.bind(value)
            }
            Then::Test { condition, body, state, anchor } => {
                let result = if self.session.interpreter.promises {
                    self.session.settle(result, self.session.module().root(condition))?
                } else {
                    result
                };
                if result.expect_array().slice::<bool>()[0] {
                    if endless::looks_at_condition(done.iteration) {
                        self.check_condition(condition, body, done.iteration)?;
                    }
                    let args = SmallVec::from_elem(state, 1);
                    return self.push(body, args, Then::Loop { condition, body, anchor }, done.iteration);
                }
                self.bind(state)
            }
            Then::Loop { condition, body, anchor } => {
                let iterations = done.iteration + 1;
                let anchor = self.check_state((condition, body), iterations, &result, anchor)?;
                let args = SmallVec::from_elem(result.clone(), 1);
                let then = Then::Test { condition, body, state: result, anchor };
                self.push(condition, args, then, iterations)
            }
        }
    }

    /// Whether an observer may change values, or end the run: then nothing follows from the text.
    fn is_steered(&self) -> bool {
        self.session.watch.as_ref().is_some_and(|w| !w.observer.only_looks_on())
    }

    /// Refuses a loop whose condition, true by now, never becomes false.
    #[cold]
    fn check_condition(&self, condition: ComputationId, body: ComputationId, iterations: u64) -> Result<()> {
        let module = self.session.module();
        let fixed = !self.is_steered()
            && endless::condition_is_fixed(module, condition, body)
            && endless::repeats(module, &[condition, body]);
        if fixed { Err(endless::error(self.caller(), iterations, None)) } else { Ok(()) }
    }

    /// Refuses a loop whose state repeats an earlier one, and returns the state to compare later ones with.
    fn check_state(
        &self,
        (condition, body): (ComputationId, ComputationId),
        iterations: u64,
        state: &Value,
        anchor: Option<Box<Value>>,
    ) -> Result<Option<Box<Value>>> {
        if self.is_steered() {
            return Ok(None);
        }
        if endless::is_anchor(iterations) {
            let bytes: u64 = state.arrays().into_iter().map(Tensor::bytes).sum();
            let fits =
                bytes <= MAX_ANCHOR_BYTES && self.session.meter.check(bytes.saturating_mul(ANCHOR_COPIES));
            return Ok(fits.then(|| Box::new(state.clone())));
        }
        if !endless::is_compared(iterations) {
            return Ok(None);
        }
        match &anchor {
            Some(earlier) if endless::same_state(earlier, state) => {
                let module = self.session.module();
                if !endless::repeats(module, &[condition, body]) {
                    return Ok(None);
                }
                let cycle = iterations - (1 << iterations.ilog2());
                Err(endless::error(self.caller(), iterations, Some(cycle)))
            }
            Some(_) | None => Ok(anchor),
        }
    }

    /// The calling instruction of the computation that returned.
    fn caller(&self) -> &Instruction {
        let frame = self.stack.last().expect("invariant: only the bottom frame finishes");
        self.session.module().instr(frame.current())
    }

    /// Waits for a value that is pending as a whole, not for what is inside it.
    #[cold]
    fn settle_outside(&mut self, slot: usize, at: InstrId) -> Result<()> {
        let session = self.session;
        let value_slot = &mut self.env[slot];
        if let Some(Value::Pending(_)) = value_slot
            && let Some(value) = value_slot.take()
        {
            *value_slot = Some(session.settle(value, at)?);
        }
        Ok(())
    }

    fn top(&mut self) -> &mut Frame<'m> {
        self.stack.last_mut().expect("invariant: the bottom frame ends the run")
    }

    /// Sets the value of the current instruction and advances to the next.
    fn bind(&mut self, mut value: Value) -> Result<()> {
        if self.session.watch.is_some() {
            let (current, execution) = (self.top().current(), self.top().execution);
            match self.leave(current, execution, &value) {
                Flow::Continue => {}
                Flow::Replace(other) => value = self.replaced(current, other)?,
                Flow::Stop => {
                    self.ended = Some(value);
                    return Ok(());
                }
            }
        }
        let frame = self.stack.last_mut().expect("invariant: the bottom frame ends the run");
        let step = &frame.plan.steps[frame.next];
        frame.next += 1;
        if !step.unused {
            self.env[frame.base + step.slot as usize] = Some(value);
        }
        Ok(())
    }
}

/// Notifies the observer.
impl Run<'_, '_> {
    fn enter(&mut self, id: InstrId, operands: &[Value]) {
        let session = self.session;
        if let Some(watch) = &session.watch {
            let execution = watch.count(id);
            self.top().execution = execution;
            watch.observer.enter(&self.site(id, execution), operands);
        }
    }

    /// The observer's answer; `Stop` only where it is obeyed.
    #[cold]
    fn leave(&self, id: InstrId, execution: u64, value: &Value) -> Flow {
        let Some(watch) = &self.session.watch else { return Flow::Continue };
        match watch.observer.leave(&self.site(id, execution), value) {
            Flow::Stop if self.depth > 0 => Flow::Continue,
            flow @ (Flow::Continue | Flow::Replace(_) | Flow::Stop) => flow,
        }
    }

    fn site(&self, id: InstrId, execution: u64) -> Site<'_> {
        let session = self.session;
        let device = session.device;
        let at = (id, execution);
        Site::new(session.module(), at, device, self.depth, session.meter.live(), &self.stack)
    }

    /// A value from the observer that replaces an instruction's.
    fn replaced(&self, id: InstrId, mut value: Value) -> Result<Value> {
        let instr = self.session.module().instr(id);
        if !fits(&value, &instr.shape) {
            let message = format!("a value of shape {} cannot replace that of {}", value.shape(), instr.name);
            return Err(RunError::at(instr, ErrorKind::Arguments, codes::WRONG_ARGUMENTS, message));
        }
        value.charge(&self.session.meter);
        Ok(value)
    }

    /// Notifies the observer of the parameters of a computation that has just begun.
    #[cold]
    fn watch_parameters(&mut self, computation: ComputationId) -> Result<()> {
        let session = self.session;
        let Some(watch) = &session.watch else { return Ok(()) };
        let parameters = session.module().computation(computation).parameters();
        let base = self.top().base;
        for (parameter, slot) in parameters.iter().zip(&session.interpreter.plan(computation).parameters) {
            let (&Some(id), &Some(slot)) = (parameter, slot) else { continue };
            // Taken out and put back, so that what is shown is not shared.
            let Some(value) = self.env[base + slot as usize].take() else { continue };
            let value = match self.leave(id, watch.count(id), &value) {
                Flow::Continue => value,
                Flow::Replace(other) => self.replaced(id, other)?,
                Flow::Stop => {
                    self.ended = Some(value);
                    return Ok(());
                }
            };
            self.env[base + slot as usize] = Some(value);
        }
        Ok(())
    }
}

impl Frame<'_> {
    /// The current instruction of the frame.
    pub(crate) fn current(&self) -> InstrId {
        self.plan.steps[self.next].id
    }
}

/// The operands of a step, moved out of the frame's values at their last use.
fn gather(step: &Step, env: &mut [Option<Value>]) -> Args {
    let value = |operand: &plan::Operand| {
        let slot = &mut env[operand.slot as usize];
        let value = if operand.last { slot.take() } else { slot.clone() };
        value.expect("invariant: the verifier checked that operands come before their users")
    };
    step.operands.iter().map(value).collect()
}
