//! Lowering: from a fused, scheduled, buffer-assigned module to a launch plan.
//!
//! First each instruction is [`decide`]d on by itself: how it is executed, or why it cannot be. That
//! determines the kernels to emit and the scratch memory that they and library calls need; then buffers are
//! assigned; then [`Lowered::plan`] writes the steps.

use hlo::attrs::{AttrKey, FusionKind};
use hlo::opcode::Family;
use hlo::{ArrayShape, ComputationId, InstrId, Module, Opcode, Shape};
use hlo_library::LibraryCall;
use hlo_library_base::memory::array_bytes;
use hlo_opt::buffers::in_place::updates_donated;
use hlo_opt::buffers::{Assigned, Slice, When, control_computations};
use rustc_hash::FxHashMap;

use crate::Unsupported;
use crate::kernel::{Kernel, Request};
use crate::plan::{Action, Executed, Plan, Step, rotate};
use crate::runtime::arena::ALIGNMENT;

/// The maximum nesting of loops and branches.
pub const MAX_DEPTH: usize = 200;

/// How an instruction is executed.
#[derive(Debug)]
pub enum Lowering {
    /// Not at all: it is an alias.
    Nothing,
    /// By a kernel.
    Kernel(Request),
    /// By a library call.
    Library(Box<LibraryCall>),
    /// A fusion with a hero: by a library call, and an epilogue kernel for the rows that are finished.
    Hero(Box<Hero>),
    /// By copying bytes.
    Copy,
    /// By running what it calls.
    While,
    /// By running a branch.
    Conditional,
    /// By running what it calls.
    Call,
    /// By the interpreter.
    Interpret,
}

impl Lowering {
    /// The name for people.
    pub fn describe(&self) -> &'static str {
        match self {
            Lowering::Nothing => "nothing to do",
            Lowering::Kernel(Request::Loop(_)) => "a loop in one kernel",
            Lowering::Kernel(_) => "kernel",
            Lowering::Library(_) => "library call",
            Lowering::Hero(_) => "library call with an epilogue kernel",
            Lowering::Copy => "copy",
            Lowering::While | Lowering::Conditional | Lowering::Call => "control",
            Lowering::Interpret => "interpreter",
        }
    }

    /// The kernel that it requests.
    fn requests(&self) -> Vec<Request> {
        let regions = |library: &LibraryCall| -> Vec<Request> {
            library.regions().into_iter().map(Request::Map).collect()
        };
        match self {
            Lowering::Kernel(request) => vec![*request],
            Lowering::Library(library) => regions(library),
            Lowering::Hero(hero) => [regions(&hero.library), vec![hero.epilogue]].concat(),
            Lowering::Nothing
            | Lowering::Copy
            | Lowering::While
            | Lowering::Conditional
            | Lowering::Call
            | Lowering::Interpret => Vec::new(),
        }
    }
}

/// The hero of a fusion.
#[derive(Debug)]
pub struct Hero {
    /// The library call that computes it.
    pub library: LibraryCall,
    /// The operands of the fusion that are its operands.
    pub operands: Vec<usize>,
    /// The request for its epilogue.
    pub epilogue: Request,
    /// The size of its result in bytes.
    pub bytes: u64,
    /// Whether it is computed in the fusion's result, which has the same rows of the same size. Otherwise it
    /// is computed in scratch memory, and the epilogue may be written over operands.
    pub in_place: bool,
}

/// Decides how an instruction is executed. `fallback`: the interpreter executes what is not compiled. Errors:
/// nothing executes it.
pub fn decide(module: &Module, id: InstrId, fallback: bool) -> Result<Lowering, Unsupported> {
    check_shapes(module, id)?;
    match lowering(module, id) {
        Err(unsupported) if fallback => interpret(module, id).map_err(|_| unsupported),
        decided => decided,
    }
}

/// Refuses values that are not in memory, or whose size is not known before the program runs.
pub fn check_shapes(module: &Module, id: InstrId) -> Result<(), Unsupported> {
    let mut problem = None;
    module.instr(id).shape.for_each_leaf(&mut |leaf| {
        let found = match leaf {
            Shape::Array(a) if a.is_dynamic() => Some("an array whose size is known only at run time"),
            Shape::Array(a) if array_bytes(a).is_none() => Some("an array larger than memory can be"),
            Shape::Buffer(_) => Some("a mutable buffer"),
            Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Tuple(_) => None,
        };
        problem = problem.or(found);
    });
    match problem {
        Some(problem) => Err(Unsupported::new(module, id, problem)),
        None => Ok(()),
    }
}

/// Why an instruction that should be fused is not: nothing is fused in modules whose run-time sizes could not
/// be removed.
fn unfused(module: &Module) -> String {
    let all = module.computations().iter().flat_map(|&c| module.instructions(c));
    match all
        .map(|i| module.instr(i))
        .find(|i| i.shape.leaves().iter().any(|s| s.as_array().is_some_and(ArrayShape::is_dynamic)))
    {
        Some(dynamic) => {
            format!("it is not in a fusion, since the size of `{}` is known only at run time", dynamic.name)
        }
        None => "it is not in a fusion".to_owned(),
    }
}

fn lowering(module: &Module, id: InstrId) -> Result<Lowering, Unsupported> {
    let refuse = |reason: &str| Err(Unsupported::new(module, id, reason));
    let library = |otherwise: &str| match LibraryCall::of(module, id) {
        Some(library) => Ok(Lowering::Library(Box::new(library?))),
        None => refuse(otherwise),
    };
    match module.instr(id).opcode {
        // As it does maps of these.
        Opcode::Reduce
        | Opcode::ReduceWindow
        | Opcode::Scan
        | Opcode::Scatter
        | Opcode::SelectAndScatter
        | Opcode::Sort
            if hlo_opt::fusion::applies_loops(module, id) =>
        {
            interpret(module, id)
        }
        Opcode::Copy | Opcode::Reshape => Ok(Lowering::Copy),
        // What layout normalization left reads tiles, or is of arrays of different sizes.
        Opcode::Bitcast if hlo_opt::buffers::alias_of(module, id).is_some() => Ok(Lowering::Nothing),
        Opcode::Bitcast => interpret(module, id),
        Opcode::Fusion => fusion(module, id),
        Opcode::While if hlo_opt::fusion::is_while_kernel(module, id) => {
            Ok(Lowering::Kernel(Request::Loop(id)))
        }
        Opcode::While => Ok(Lowering::While),
        Opcode::Conditional => Ok(Lowering::Conditional),
        Opcode::Call => Ok(Lowering::Call),
        // The interpreter's routines are this program's own code too. Maps of expressions are in fusions.
        Opcode::Map | Opcode::Scan => match LibraryCall::of(module, id) {
            Some(Ok(library)) => Ok(Lowering::Library(Box::new(library))),
            Some(Err(_)) | None => interpret(module, id),
        },
        Opcode::RngBitGenerator => library("no operation of the runtime computes it"),
        opcode => match opcode.family() {
            // The fusion passes put these in fusions, except those of run-time sizes, which were refused.
            Family::Elementwise | Family::Bits | Family::Movement => library(&unfused(module)),
            Family::Region if opcode == Opcode::Reduce => library(&unfused(module)),
            // Library calls.
            Family::Contraction | Family::Region | Family::Order | Family::Transform => {
                library("no operation of the runtime computes it")
            }
            // Batch normalizations except those of f64 and of no elements were expanded.
            Family::Normalization | Family::LinearAlgebra | Family::CustomCall => {
                match LibraryCall::of(module, id) {
                    Some(Ok(library)) => Ok(Lowering::Library(Box::new(library))),
                    Some(Err(_)) | None => interpret(module, id),
                }
            }
            Family::Sizes => refuse("sizes known only at run time"),
            // What other devices, hosts or earlier runs take part in.
            Family::Random | Family::Async | Family::Collective | Family::DeviceNumber | Family::Host => {
                interpret(module, id)
            }
            Family::Structure => Ok(Lowering::Nothing),
            Family::Control => refuse("it runs computations in a way of its own"),
        },
    }
}

/// Lowers an instruction to the interpreter. Errors: it is no such instruction, or reads pending results.
fn interpret(module: &Module, id: InstrId) -> Result<Lowering, Unsupported> {
    let instr = module.instr(id);
    if instr.opcode == Opcode::While {
        return Err(Unsupported::new(
            module,
            id,
            "the interpreter does not execute it for a compiled program",
        ));
    }
    if !promises(instr.opcode) {
        return Ok(Lowering::Interpret);
    }
    if lacks_operands(module, id) {
        return Err(Unsupported::new(module, id, "operands of its computation come later, or never"));
    }
    // A pending result is waited for by its done operation.
    let mut users = module.users(id).iter().map(|user| module.instr(user.user).opcode);
    if let Some(user) = users.find(|&user| !settles(user)) {
        let reason = format!("its result is looked at by `{}` before it is done", user.name());
        return Err(Unsupported::new(module, id, reason));
    }
    if module.root(instr.parent()) == id {
        return Err(Unsupported::new(module, id, "its result leaves the computation before it is done"));
    }
    Ok(Lowering::Interpret)
}

/// Whether an asynchronous start, or an update of one, leaves operands of the computation open.
fn lacks_operands(module: &Module, id: InstrId) -> bool {
    let (mut start, mut bound) = (id, 0);
    while let (Opcode::AsyncUpdate, [before, more @ ..]) =
        (module.instr(start).opcode, module.instr(start).operands())
    {
        bound += more.len();
        start = *before;
    }
    bound += module.instr(start).operands().len();
    let callee = module.instr(start).attrs.computation(AttrKey::Calls);
    callee.is_some_and(|c| module.computation(c).parameters().len() > bound)
}

/// Whether the result is still pending when the instruction is done.
fn promises(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::AsyncStart
            | Opcode::AsyncUpdate
            | Opcode::AllGatherStart
            | Opcode::AllReduceStart
            | Opcode::CollectivePermuteStart
            | Opcode::Recv
            | Opcode::Send
    )
}

/// Whether it takes a pending result.
fn settles(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::AsyncUpdate
            | Opcode::AsyncDone
            | Opcode::AllGatherDone
            | Opcode::AllReduceDone
            | Opcode::CollectivePermuteDone
            | Opcode::RecvDone
            | Opcode::SendDone
    )
}

fn fusion(module: &Module, id: InstrId) -> Result<Lowering, Unsupported> {
    let attrs = &module.instr(id).attrs;
    match attrs.fusion_kind() {
        Some(FusionKind::Output) => hero(module, id).map(|h| Lowering::Hero(Box::new(h))),
        Some(FusionKind::Input) if let Some(library) = scatter(module, id) => {
            Ok(Lowering::Library(Box::new(library)))
        }
        Some(FusionKind::Loop | FusionKind::Input | FusionKind::Custom) | None => {
            Ok(Lowering::Kernel(Request::Fusion(id)))
        }
    }
}

/// The library call for a fusion of a scatter alone, if no kernel should execute it.
fn scatter(module: &Module, fusion: InstrId) -> Option<LibraryCall> {
    let computation = module.instr(fusion).attrs.computation(AttrKey::Calls)?;
    LibraryCall::of_scatter(module, module.root(computation))
}

fn hero(module: &Module, fusion: InstrId) -> Result<Hero, Unsupported> {
    let refuse = |reason: &str| Unsupported::new(module, fusion, reason);
    let computation = module.instr(fusion).attrs.computation(AttrKey::Calls);
    let computation = computation.ok_or_else(|| refuse("it calls nothing"))?;
    let is_hero = |&i: &InstrId| matches!(module.instr(i).opcode, Opcode::Dot | Opcode::Convolution);
    let mut heroes = module.instructions(computation).filter(is_hero);
    let (Some(hero), None) = (heroes.next(), heroes.next()) else {
        return Err(refuse("an output fusion of several contractions, or of none"));
    };
    let (library, operands) = LibraryCall::of_hero(module, hero)
        .ok_or_else(|| refuse("no operation computes its contraction"))??;
    let shape = module.instr(hero).shape.as_array().ok_or_else(|| refuse("its contraction is no array"))?;
    let bytes = array_bytes(shape).ok_or_else(|| refuse("an array larger than memory can be"))?;
    let in_place = module.instr(fusion).shape.as_array().is_some_and(|result| {
        let width = |t: hlo::ElementType| t.storage_bytes();
        result.dims == shape.dims && width(result.element_type) == width(shape.element_type)
    }) && !updates_donated(module, fusion);
    Ok(Hero { library, operands, epilogue: Request::Epilogue { fusion, hero }, bytes, in_place })
}

/// The decisions on all instructions that run.
#[derive(Debug, Default)]
pub struct Lowered {
    /// By instruction.
    pub decisions: FxHashMap<InstrId, Lowering>,
    /// The requests for kernels.
    pub requests: Vec<Request>,
    /// For each request the first identical one: most often itself.
    kernel_indices: FxHashMap<Request, usize>,
}

impl Lowered {
    /// Decides on every instruction that is reached from the entry through control flow.
    pub fn new(module: &Module, fallback: bool) -> Result<Self, Unsupported> {
        let mut lowered = Self::default();
        let mut stack = vec![(module.entry(), 0)];
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some((computation, depth)) = stack.pop() {
            if !seen.insert(computation) {
                continue;
            }
            for id in module.instructions(computation) {
                let decision = decide(module, id, fallback)?;
                if matches!(decision, Lowering::While | Lowering::Conditional | Lowering::Call) {
                    if depth == MAX_DEPTH {
                        let reason = format!("calls, loops and branches nested deeper than {MAX_DEPTH}");
                        return Err(Unsupported::new(module, id, reason));
                    }
                    stack.extend(control_computations(module, id).into_iter().map(|c| (c, depth + 1)));
                }
                decision.requests().into_iter().for_each(|request| lowered.request(request));
                lowered.decisions.insert(id, decision);
            }
        }
        Ok(lowered)
    }

    fn request(&mut self, request: Request) {
        let next = self.requests.len();
        if *self.kernel_indices.entry(request).or_insert(next) == next {
            self.requests.push(request);
        }
    }

    /// The number of the kernel of a request: that of the first identical one.
    pub fn kernel_of(&self, request: Request) -> Option<usize> {
        self.kernel_indices.get(&request).copied()
    }

    /// The scratch memory that an instruction needs, in bytes. `kernels` are those of [`Lowered::requests`],
    /// in order.
    pub fn scratch(&self, id: InstrId, kernels: &[Kernel]) -> u64 {
        match self.decisions.get(&id) {
            Some(Lowering::Kernel(request)) => kernels[self.kernel_indices[request]].scratch,
            Some(Lowering::Library(library)) => library.scratch_bytes(),
            Some(Lowering::Hero(hero)) => {
                let own = hero.library.scratch_bytes().next_multiple_of(ALIGNMENT as u64);
                own.saturating_add(if hero.in_place { 0 } else { hero.bytes })
            }
            Some(
                Lowering::Nothing
                | Lowering::Copy
                | Lowering::While
                | Lowering::Conditional
                | Lowering::Call
                | Lowering::Interpret,
            )
            | None => 0,
        }
    }

    /// Lowers to the interpreter what needs one of the kernels that could not be made. Errors: what the
    /// interpreter does not execute.
    pub fn without(&mut self, module: &Module, kernels: &[Option<Kernel>]) -> Result<(), Unsupported> {
        if kernels.iter().all(Option::is_some) {
            return Ok(());
        }
        let there = |request: Request| kernels[self.kernel_indices[&request]].is_some();
        for (&id, decision) in &mut self.decisions {
            if decision.requests().into_iter().all(there) {
                continue;
            }
            if module.instr(id).opcode == Opcode::While {
                let why = "a loop that was to be one kernel and is none";
                return Err(Unsupported::new(module, id, why));
            }
            *decision = interpret(module, id)?;
        }
        Ok(())
    }

    /// Whether the plan has instructions for the interpreter.
    pub fn interprets(&self) -> bool {
        self.decisions.values().any(|d| matches!(d, Lowering::Interpret))
    }

    /// The steps of the entry.
    pub fn plan(mut self, module: &Module, assigned: &Assigned, kernels: &[Kernel]) -> Plan {
        let mut writer = Writer { module, assigned, kernels, lowered: &mut self, calls: Vec::new() };
        let mut plan = writer.computation(module.entry());
        plan.steps.extend(writer.copies(When::AtEnd, "end"));
        plan
    }
}

struct Writer<'a> {
    module: &'a Module,
    assigned: &'a Assigned,
    kernels: &'a [Kernel],
    lowered: &'a mut Lowered,
    /// The calls from the computation with a plan of its own to the one that is being written.
    calls: Vec<InstrId>,
}

impl Writer<'_> {
    fn executed(&self, id: InstrId, action: &Action) -> Box<Executed> {
        let instr = self.module.instr(id);
        let whole = match action {
            Action::Library { op, .. } => op.is_whole(),
            Action::Interpret { .. } => !promises(instr.opcode),
            Action::Kernel { .. }
            | Action::Copy { .. }
            | Action::While { .. }
            | Action::Conditional { .. } => true,
        };
        let shapes = instr.shape.leaves();
        let slices: Vec<Slice> = self.assigned.slices_of(id).collect();
        let there = |(shape, slice): (&&hlo::Shape, &Slice)| {
            shape.as_array().and_then(array_bytes) == Some(slice.bytes)
        };
        let all = whole && shapes.len() == slices.len() && shapes.iter().zip(&slices).all(there);
        Box::new(Executed { instr: id, calls: self.calls.clone(), result: all.then_some(slices) })
    }

    /// The steps of a computation with a plan of its own.
    fn apart(&mut self, computation: ComputationId) -> Plan {
        let calls = std::mem::take(&mut self.calls);
        let plan = self.computation(computation);
        self.calls = calls;
        plan
    }

    fn copies(&self, when: When, name: &str) -> Vec<Step> {
        self.assigned.copies(when).iter().map(|&c| Step::copy(name, c)).collect()
    }

    fn computation(&mut self, computation: ComputationId) -> Plan {
        let mut steps = Vec::new();
        for id in self.module.instructions(computation) {
            if !self.assigned.is_name(self.module, id) {
                self.instruction(id, &mut steps);
            }
        }
        Plan { steps }
    }

    /// Appends a computation's steps, and the copies that follow it.
    fn part(&mut self, computation: Option<ComputationId>, after: Option<When>) -> Plan {
        let mut plan = computation.map(|c| self.apart(c)).unwrap_or_default();
        if let Some(after) = after {
            plan.steps.extend(self.copies(after, "copy of state"));
        }
        plan
    }

    fn instruction(&mut self, id: InstrId, steps: &mut Vec<Step>) {
        let instr = self.module.instr(id);
        let name = instr.name.to_string();
        steps.extend(self.copies(When::Before(id), &name));
        let computation = |key| instr.attrs.computation(key);
        let action = match self.lowered.decisions.remove(&id) {
            None | Some(Lowering::Nothing) => return,
            Some(Lowering::Kernel(request)) => {
                let kernel = self.lowered.kernel_indices[&request];
                let mut arguments = self.assigned.arguments(self.module, id);
                if self.kernels[kernel].scratch > 0 {
                    arguments.extend(self.assigned.scratch_of(id));
                }
                Action::Kernel { kernel, arguments }
            }
            Some(Lowering::Library(op)) => {
                let arguments = self.assigned.arguments(self.module, id);
                let scratch = self.assigned.scratch_of(id);
                let regions = self.regions(&op);
                Action::Library { op, arguments, scratch, regions, epilogue: None }
            }
            Some(Lowering::Hero(hero)) => self.hero(id, *hero),
            Some(Lowering::Copy) => {
                let from = self.assigned.slice_of(instr.operands()[0], 0);
                Action::Copy { from, to: self.assigned.slice_of(id, 0) }
            }
            Some(Lowering::While) => {
                let condition = self.part(computation(AttrKey::Condition), None);
                let root = computation(AttrKey::Condition).map(|c| self.module.root(c));
                let predicate = root.map_or(NOWHERE, |root| self.assigned.slice_of(root, 0));
                let body = self.part(computation(AttrKey::Body), None);
                let copies = self.assigned.copies(When::AfterBody(id));
                let anew = |slice| self.assigned.made_anew(id, slice);
                Action::While { rotations: rotate::rotations(condition, predicate, body, copies, &anew) }
            }
            Some(Lowering::Conditional) => {
                let branches = control_computations(self.module, id).into_iter().zip(0..);
                let branches =
                    branches.map(|(c, n)| self.part(Some(c), Some(When::AfterBranch(id, n)))).collect();
                let selector = instr.operands()[0];
                let is_predicate =
                    self.module.instr(selector).shape.element_type() == Some(hlo::ElementType::Pred);
                Action::Conditional { selector: self.assigned.slice_of(selector, 0), is_predicate, branches }
            }
            Some(Lowering::Call) => {
                self.calls.push(id);
                steps.extend(
                    computation(AttrKey::ToApply).map(|c| self.computation(c).steps).into_iter().flatten(),
                );
                self.calls.pop();
                return;
            }
            Some(Lowering::Interpret) => {
                Action::Interpret { instr: id, arguments: self.assigned.arguments(self.module, id) }
            }
        };
        steps.push(Step { name, executes: Some(self.executed(id, &action)), action });
    }

    fn regions(&self, op: &LibraryCall) -> Vec<usize> {
        op.regions().into_iter().map(|c| self.lowered.kernel_indices[&Request::Map(c)]).collect()
    }

    fn hero(&self, id: InstrId, hero: Hero) -> Action {
        let arguments = self.assigned.arguments(self.module, id);
        let operands = self.module.instr(id).operands();
        // All operands are arrays: each is one leaf.
        let leaves: usize = operands.iter().map(|&o| self.assigned.slices_of(o).len()).sum();
        let own = hero.library.scratch_bytes();
        let scratch = self.assigned.scratch_of(id);
        let result = if hero.in_place {
            self.assigned.slice_of(id, 0)
        } else {
            let after = own.next_multiple_of(ALIGNMENT as u64);
            scratch.map_or(NOWHERE, |s| Slice { offset: s.offset + after, bytes: hero.bytes, ..s })
        };
        let operand = |&n: &usize| arguments.get(n).copied().filter(|_| n < leaves).unwrap_or(NOWHERE);
        let library = hero.operands.iter().map(operand).chain([result]).collect();
        let kernel = self.lowered.kernel_indices[&hero.epilogue];
        let epilogue = [result].into_iter().chain(arguments.iter().copied()).collect();
        let regions = self.regions(&hero.library);
        let scratch = scratch.filter(|_| own > 0).map(|s| Slice { bytes: own, ..s });
        Action::Library {
            op: Box::new(hero.library),
            arguments: library,
            scratch,
            regions,
            epilogue: Some((kernel, epilogue)),
        }
    }
}

/// A slice of nothing: loading refuses it, unless it is empty.
const NOWHERE: Slice = Slice { allocation: u32::MAX, offset: 0, bytes: 0 };
