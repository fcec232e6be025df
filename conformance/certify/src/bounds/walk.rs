//! Following a run: which bounds belong to which value.
//!
//! **Invariant:** the frames of a device are those of the interpreter's run: a call's frame begins with the
//! first thing that is told of it and ends when its caller is left. What the observer is not told
//! (instructions that nothing needs, applied computations) has no bounds here and none are asked for.

use std::fmt;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hlo::{ComputationId, InstrId, Module, Opcode};
use hlo_execution::allowances::Allowances;
use hlo_execution::format::Format;
use hlo_interp::Value;
use hlo_interp::observe::{Call, Flow, Observer, Site};
use rustc_hash::FxHashMap;

use super::devices::{self, Deposit};
use super::flushed::{self, Flushing};
use super::rules::{self, Arg, Case};
use super::{At, Bounds, Leaf, Scope, Settings, Tree, Watching, exact_tree, undecided_tree, unknown_tree};

/// The way to the visitor, who sits in another thread.
pub(super) struct Link(Mutex<Ends>);

/// What the visitor is asked, and its answers.
type Ends = (Sender<(At, Value, Tree)>, Receiver<bool>);

impl Link {
    pub(super) fn new(ask: Sender<(At, Value, Tree)>, answer: Receiver<bool>) -> Link {
        Link(Mutex::new((ask, answer)))
    }

    fn tell(&self, at: At, value: &Value, tree: &Tree) -> bool {
        let ends = lock(&self.0);
        ends.0.send((at, value.clone(), tree.clone())).is_ok() && ends.1.recv().unwrap_or(false)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What each device handed in.
type Deposits = Vec<Option<Arc<Deposit>>>;

/// The observer that carries bounds along.
pub(super) struct Watcher {
    settings: Settings,
    devices: Vec<Mutex<State>>,
    link: Option<Link>,
    scope: Option<Arc<Scope>>,
    flushing: Option<Arc<Flushing>>,
    /// What devices handed in to collectives, by instruction and how often it ran before.
    deposits: Mutex<FxHashMap<(InstrId, u64), Deposits>>,
    /// By instruction: operands that it is the last to use in its computation.
    last_uses: FxHashMap<InstrId, Vec<InstrId>>,
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// What a device's run is at.
#[derive(Default)]
struct State {
    frames: Vec<Frame>,
    executing: Vec<Executing>,
    /// Bounds of the entry's parameters.
    arguments: Vec<Tree>,
}

/// A computation that is being run.
struct Frame {
    computation: ComputationId,
    call: Option<Call>,
    arguments: Vec<Tree>,
    /// It may not run at all, or more often.
    undecided: bool,
    known: FxHashMap<InstrId, Tree>,
}

/// An instruction that has been entered and not left.
struct Executing {
    id: InstrId,
    operands: Vec<Value>,
    trees: Vec<Tree>,
    /// Of a loop: the number of computations that it has begun, condition and body alternating.
    begun: u64,
    /// Of a loop: whether some condition may have been otherwise.
    undecided: bool,
}

impl Watcher {
    pub(super) fn new(
        module: &Module,
        arguments: Vec<Vec<Tree>>,
        settings: Settings,
        Watching { link, scope, flushing }: Watching,
    ) -> Watcher {
        let mut last_uses: FxHashMap<InstrId, Vec<InstrId>> = FxHashMap::default();
        for &c in module.computations() {
            let mut last: FxHashMap<InstrId, InstrId> = FxHashMap::default();
            for id in module.instructions(c) {
                last.extend(module.instr(id).operands().iter().map(|&o| (o, id)));
            }
            last.remove(&module.root(c));
            last.into_iter().for_each(|(operand, user)| last_uses.entry(user).or_default().push(operand));
        }
        let device = |arguments| Mutex::new(State { arguments, ..State::default() });
        Watcher {
            settings,
            devices: arguments.into_iter().map(device).collect(),
            link,
            scope,
            flushing,
            deposits: Mutex::default(),
            last_uses,
        }
    }

    /// The bounds of a device's result, after the run.
    pub(super) fn result(&self, module: &Module, device: usize, value: &Value) -> Tree {
        let state = lock(&self.devices[device]);
        let root = module.root(module.entry());
        let tree = state.frames.first().and_then(|f| f.known.get(&root));
        tree.filter(|tree| fits(value, tree)).cloned().unwrap_or_else(|| unknown_tree(value))
    }

    /// Whether the bounds of an instruction are to be worked out.
    fn needs(&self, id: InstrId) -> bool {
        self.scope.as_ref().is_none_or(|scope| scope.needs(id))
    }

    fn number(&self, site: &Site<'_>) -> usize {
        let device = site.device.replica * self.settings.options.devices.partitions() + site.device.partition;
        device as usize
    }

    /// What the values of the run take.
    fn saw(&self, site: &Site<'_>) {
        if !self.settings.nested {
            self.settings.account.saw(site.live_bytes);
        }
    }

    fn state(&self, site: &Site<'_>) -> MutexGuard<'_, State> {
        lock(&self.devices[self.number(site)])
    }

    /// The bounds of a value whose promises were kept.
    fn resolved(&self, site: &Site<'_>, value: &Value, tree: &Tree) -> Tree {
        match (value, tree) {
            (Value::Array(_) | Value::Tuple(_), Tree::Promise(instr, execution)) => {
                self.collective(site, *instr, *execution, value).unwrap_or_else(|| unknown_tree(value))
            }
            (Value::Tuple(parts), Tree::Tuple(trees)) if parts.len() == trees.len() => {
                Tree::Tuple(parts.iter().zip(trees.iter()).map(|(v, t)| self.resolved(site, v, t)).collect())
            }
            (_, tree) => tree.clone(),
        }
    }

    /// The bounds of the result of a collective.
    fn collective(&self, site: &Site<'_>, id: InstrId, execution: u64, value: &Value) -> Option<Tree> {
        let deposits = lock(&self.deposits).get(&(id, execution))?.clone();
        let instr = site.module.instr(id);
        let bounds =
            devices::bounds(site.module, instr, &self.settings, self.number(site), &deposits, value)?;
        let mut leaves = bounds.into_iter().map(|bounds| Leaf::new(bounds, false));
        rebuild(value, &mut leaves)
    }
}

/// The bounds of a value that counts as exact. What is only promised is what it will be. Products may still be
/// left unrounded where they are added, NaNs that were computed still have the engine's bits, and an engine
/// that keeps excess precision does not read the value that was rounded to the narrow type.
fn reset(value: &Value, tree: &Tree, allowances: &Allowances) -> Tree {
    match (value, tree) {
        (Value::Pending(_), Tree::Promise(..)) => tree.clone(),
        (Value::Tuple(v), Tree::Tuple(t)) if v.len() == t.len() => {
            Tree::Tuple(v.iter().zip(t.iter()).map(|(v, t)| reset(v, t, allowances)).collect())
        }
        (Value::Array(x), Tree::Array(leaf)) => {
            let narrow = Format::of(x.element_type()).is_some_and(|f| f.precision < 24);
            if allowances.excess_precision && narrow {
                let leaf = Leaf { relations: None, mixed: true, ..(**leaf).clone() };
                return Tree::Array(Arc::new(leaf));
            }
            Tree::Array(Arc::new(leaf.with_bounds(Bounds::default())))
        }
        (value, _) => exact_tree(value),
    }
}

/// The bounds of a value that is the reference's own: but for the bits of NaNs that were computed.
fn injected(site: &Site<'_>, tree: Tree) -> Tree {
    match tree {
        _ if matches!(site.instr().opcode, Opcode::Parameter | Opcode::Constant) => tree,
        Tree::Array(leaf) => Tree::Array(Arc::new(Leaf { computed: true, ..(*leaf).clone() })),
        Tree::Tuple(parts) => Tree::Tuple(parts.iter().map(|part| injected(site, part.clone())).collect()),
        Tree::Token | Tree::Promise(..) => tree,
    }
}

/// Whether bounds are for values of this form.
fn fits(value: &Value, tree: &Tree) -> bool {
    match (value, tree) {
        (Value::Array(_), Tree::Array(_))
        | (Value::Token, Tree::Token)
        | (Value::Pending(_), Tree::Promise(..) | Tree::Token) => true,
        (Value::Tuple(v), Tree::Tuple(t)) => {
            v.len() == t.len() && v.iter().zip(t.iter()).all(|(v, t)| fits(v, t))
        }
        (Value::Array(_) | Value::Tuple(_) | Value::Token | Value::Pending(_), _) => false,
    }
}

impl Observer for Watcher {
    fn enter(&self, site: &Site<'_>, operands: &[Value]) {
        if site.nesting > 0 {
            return;
        }
        self.saw(site);
        let mut state = self.state(site);
        state.arrive(site);
        let trees: Vec<Tree> = state
            .trees(site)
            .iter()
            .zip(operands)
            .map(|(tree, value)| self.resolved(site, value, tree))
            .collect();
        if devices::synchronous(site.module, site.instr()).is_some() {
            let deposit = Arc::new(Deposit { operands: operands.to_vec(), trees: trees.clone() });
            let mut all = lock(&self.deposits);
            let of = all.entry((site.id, site.execution)).or_insert_with(|| vec![None; self.devices.len()]);
            of[self.number(site)] = Some(deposit);
        }
        // Tuples are followed by their bounds alone.
        let operands = operands.to_vec();
        state.executing.push(Executing { id: site.id, operands, trees, begun: 0, undecided: false });
    }

    fn leave(&self, site: &Site<'_>, value: &Value) -> Flow {
        if site.nesting > 0 {
            return Flow::Continue;
        }
        self.saw(site);
        let flushed = self.flushing.as_ref().and_then(|f| f.value(site.id, value));
        let result = flushed.as_ref().unwrap_or(value);
        let mut state = self.state(site);
        let parameter = site.instr().opcode == Opcode::Parameter;
        if parameter {
            state.arrive(site);
        }
        let mut tree =
            if parameter { state.argument(site, result) } else { self.left(&mut state, site, result) };
        tree = self.resolved(site, result, &tree);
        if !fits(result, &tree) {
            tree = unknown_tree(result);
        }
        if self.flushing.as_ref().is_some_and(|f| f.is_at(site.id)) {
            tree = flushed::bounds(value, result, tree);
        }
        let scope = self.scope.as_ref();
        if scope.is_some_and(|s| s.injects(site.id) && !s.visits(site.id)) {
            tree = injected(site, exact_tree(result));
        } else if let Some(link) = self.link.as_ref().filter(|_| scope.is_none_or(|s| s.visits(site.id))) {
            let at = At {
                device: site.device,
                instr: site.id,
                execution: site.execution,
                calls: site.calls().collect(),
            };
            if link.tell(at, result, &tree) {
                tree = reset(result, &tree, &self.settings.allowances);
            }
        }
        tree.charge(&self.settings.account);
        let last_uses = self.last_uses.get(&site.id);
        if let Some(frame) = state.frames.last_mut() {
            last_uses.into_iter().flatten().for_each(|operand| {
                frame.known.remove(operand);
            });
            frame.known.insert(site.id, tree);
        }
        match flushed {
            _ if self.settings.account.has_ended() => Flow::Stop,
            Some(to) => Flow::Replace(to),
            None => Flow::Continue,
        }
    }
}

impl Watcher {
    /// The bounds of the result of an instruction that ends.
    fn left(&self, state: &mut State, site: &Site<'_>, result: &Value) -> Tree {
        let depth = site.calls().len();
        let called = state.frames.drain(depth + 1..).next();
        let Some(ended) = state.executing.pop().filter(|e| e.id == site.id) else {
            return unknown_tree(result);
        };
        let returned = called.and_then(|frame| {
            let root = site.module.root(frame.computation);
            frame.known.get(&root).cloned()
        });
        let unknown = || unknown_tree(result);
        let part = |tree: Option<&Tree>, index: usize| match tree {
            Some(Tree::Tuple(parts)) => parts.get(index).cloned(),
            Some(Tree::Array(_) | Tree::Token | Tree::Promise(..)) | None => None,
        };
        let instr = site.instr();
        let tree = match instr.opcode {
            Opcode::Call | Opcode::Fusion => returned,
            Opcode::While => {
                // The last frame is that of the condition which ended the loop.
                let undecided = ended.undecided || returned.as_ref().is_none_or(is_uncertain);
                let state = ended.trees.first().cloned();
                state.map(|tree| if undecided { undecided_tree(result, &tree) } else { tree })
            }
            Opcode::Conditional => returned.map(|tree| match ended.trees.first() {
                Some(selector) if !is_uncertain(selector) => tree,
                Some(_) | None => undecided_tree(result, &tree),
            }),
            Opcode::AsyncStart | Opcode::AsyncUpdate => match (result, returned) {
                (Value::Tuple(parts), Some(tree)) => {
                    let bound = bound_operands(instr.opcode, &ended.trees);
                    let rest = parts.iter().skip(2).map(exact_tree);
                    let first = [Tree::Tuple(bound.into()), tree];
                    Some(Tree::Tuple(first.into_iter().chain(rest).collect()))
                }
                (Value::Tuple(parts), None)
                    if instr.opcode == Opcode::AsyncStart || ended.trees.len() > 1 =>
                {
                    let bound = bound_operands(instr.opcode, &ended.trees);
                    let rest = parts.iter().skip(1).map(exact_tree);
                    Some(Tree::Tuple([Tree::Tuple(bound.into())].into_iter().chain(rest).collect()))
                }
                (_, _) => ended.trees.into_iter().next(),
            },
            Opcode::AsyncDone => part(ended.trees.first(), 1),
            Opcode::CopyStart => ended
                .trees
                .into_iter()
                .next()
                .map(|source| Tree::Tuple([source.clone(), source, Tree::exact()].into())),
            Opcode::CopyDone => part(ended.trees.first(), 0),
            Opcode::Tuple => Some(Tree::Tuple(ended.trees.into())),
            Opcode::GetTupleElement => {
                let index = instr.attrs.int(hlo::AttrKey::Index).and_then(|i| usize::try_from(i).ok());
                index.and_then(|i| part(ended.trees.first(), i))
            }
            Opcode::AfterAll => Some(Tree::Token),
            Opcode::OptBarrier | Opcode::Domain | Opcode::AddDependency => ended.trees.into_iter().next(),
            Opcode::Copy if matches!(result, Value::Tuple(_)) => ended.trees.into_iter().next(),
            Opcode::Constant | Opcode::PartitionId | Opcode::ReplicaId => Some(exact_tree(result)),
            Opcode::Iota => Some(match (result, self.settings.allowances.excess_precision) {
                (Value::Array(t), true) => {
                    Tree::Array(Arc::new(Leaf::new(rules::unrounded_numbers(instr, t), false)))
                }
                (Value::Array(_) | Value::Tuple(_) | Value::Token | Value::Pending(_), _) => {
                    exact_tree(result)
                }
            }),
            Opcode::Infeed => Some(exact_tree(result)),
            Opcode::AllReduceDone => ended.trees.into_iter().next(),
            Opcode::AllGatherDone | Opcode::CollectivePermuteDone => part(ended.trees.first(), 1),
            _ if devices::synchronous(site.module, instr).is_some() => {
                let promise = Tree::Promise(site.id, site.execution);
                match result {
                    Value::Pending(_) => Some(promise),
                    // What all-gather-start and collective-permute-start yield: operands, promise, contexts.
                    Value::Tuple(parts) if matches!(parts.get(1), Some(Value::Pending(_))) => {
                        let operands = match &parts[0] {
                            Value::Tuple(_) => Tree::Tuple(ended.trees.into()),
                            Value::Array(_) | Value::Token | Value::Pending(_) => {
                                ended.trees.into_iter().next().unwrap_or(Tree::Token)
                            }
                        };
                        let rest = parts.iter().skip(2).map(exact_tree);
                        Some(Tree::Tuple([operands, promise].into_iter().chain(rest).collect()))
                    }
                    Value::Array(_) | Value::Tuple(_) | Value::Token => {
                        self.collective(site, site.id, site.execution, result)
                    }
                }
            }
            _ if !self.needs(site.id) => Some(injected(site, exact_tree(result))),
            Opcode::CustomCall if returned.is_some() => returned,
            _ => self.computed(site, &ended, result),
        };
        tree.unwrap_or_else(unknown)
    }

    /// The bounds of what an operation computes.
    fn computed(&self, site: &Site<'_>, ended: &Executing, result: &Value) -> Option<Tree> {
        let mut args = Vec::new();
        let names = site.instr().operands();
        for ((value, tree), &from) in ended.operands.iter().zip(&ended.trees).zip(names) {
            let (arrays, leaves) = (value.arrays(), tree.leaves());
            if arrays.len() != leaves.len() {
                return None;
            }
            let new = arrays.into_iter().zip(leaves);
            args.extend(new.map(|(tensor, leaf)| Arg { tensor, leaf: leaf.clone(), from }));
        }
        let case = Case {
            module: site.module,
            instr: site.instr(),
            settings: &self.settings,
            args,
            results: result.arrays(),
        };
        let mut leaves = rules::bounds(&case).into_iter();
        rebuild(result, &mut leaves)
    }
}

/// The bounds of a value from those of its arrays in order.
fn rebuild(value: &Value, leaves: &mut impl Iterator<Item = Leaf>) -> Option<Tree> {
    Some(match value {
        Value::Array(_) => Tree::Array(leaves.next()?.into()),
        Value::Tuple(parts) => {
            let parts: Option<Vec<Tree>> = parts.iter().map(|part| rebuild(part, leaves)).collect();
            Tree::Tuple(parts?.into())
        }
        Value::Token => Tree::Token,
        Value::Pending(_) => return None,
    })
}

/// Whether a value that decides something may be another one.
fn is_uncertain(tree: &Tree) -> bool {
    tree.arrays().iter().any(|bounds| !bounds.hard.is_zero())
}

/// The operands that an asynchronous computation has so far.
fn bound_operands(opcode: Opcode, trees: &[Tree]) -> Vec<Tree> {
    match (opcode, trees) {
        (Opcode::AsyncUpdate, [Tree::Tuple(waiting), further @ ..]) => {
            let before = match waiting.first() {
                Some(Tree::Tuple(before)) => before.to_vec(),
                Some(Tree::Array(_) | Tree::Token | Tree::Promise(..)) | None => Vec::new(),
            };
            before.into_iter().chain(further.iter().cloned()).collect()
        }
        (_, trees) => trees.to_vec(),
    }
}

impl State {
    /// Makes the frame of a site the last one.
    fn arrive(&mut self, site: &Site<'_>) {
        let calls = site.calls();
        let depth = calls.len();
        let call = calls.last();
        let computation = site.computation();
        self.frames.truncate(depth + 1);
        let same = self.frames.get(depth).is_some_and(|f| {
            f.call == call && f.computation == computation && !f.known.contains_key(&site.id)
        });
        if same {
            return;
        }
        let before = if self.frames.len() > depth { self.frames.pop() } else { None };
        let (arguments, undecided) = match call {
            None => (self.arguments.clone(), false),
            Some(_) => self.call_arguments(site, before),
        };
        self.frames.push(Frame { computation, call, arguments, undecided, known: FxHashMap::default() });
    }

    /// The bounds of the parameters of a computation that the instruction executed last calls, and whether a
    /// decision before it may have been another. `before` is the frame of the computation that it called
    /// before: of a loop, condition and body alternating.
    fn call_arguments(&mut self, site: &Site<'_>, before: Option<Frame>) -> (Vec<Tree>, bool) {
        let Some(caller) = self.executing.last_mut() else { return (Vec::new(), true) };
        let instr = site.module.instr(caller.id);
        let returned = before.and_then(|f| f.known.get(&site.module.root(f.computation)).cloned());
        caller.begun += 1;
        match instr.opcode {
            Opcode::While => {
                if caller.begun % 2 == 0 {
                    // A body begins: the condition has decided so.
                    caller.undecided |= returned.as_ref().is_none_or(is_uncertain);
                } else if caller.begun > 1 {
                    caller.trees = returned.into_iter().collect();
                }
                (caller.trees.clone(), caller.undecided)
            }
            Opcode::Conditional => {
                let called = instr.attrs.called_computations();
                let chosen = match caller.operands.first().and_then(Value::as_array) {
                    Some(t) if t.element_type() == hlo::ElementType::Pred => usize::from(t.index_at(0) == 0),
                    Some(t) => usize::try_from(t.index_at(0))
                        .unwrap_or(usize::MAX)
                        .min(called.len().saturating_sub(1)),
                    None => return (Vec::new(), true),
                };
                let undecided = caller.trees.first().is_none_or(is_uncertain);
                (caller.trees.get(chosen + 1).cloned().into_iter().collect(), undecided)
            }
            opcode => (bound_operands(opcode, &caller.trees), false),
        }
    }

    fn argument(&self, site: &Site<'_>, value: &Value) -> Tree {
        let number = site.instr().parameter_number().and_then(|n| usize::try_from(n).ok());
        let frame = self.frames.last();
        let tree = frame.zip(number).and_then(|(frame, n)| frame.arguments.get(n));
        match tree {
            Some(tree) if frame.is_some_and(|f| f.undecided) => undecided_tree(value, tree),
            Some(tree) => tree.clone(),
            None => unknown_tree(value),
        }
    }

    /// The bounds of an instruction's operands.
    fn trees(&self, site: &Site<'_>) -> Vec<Tree> {
        let known = self.frames.last().map(|f| &f.known);
        let of = |id: &InstrId| known.and_then(|k| k.get(id)).cloned().unwrap_or(Tree::Token);
        site.instr().operands().iter().map(of).collect()
    }
}
