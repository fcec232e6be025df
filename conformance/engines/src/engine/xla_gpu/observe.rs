//! The optimized module as XLA:GPU's host executes it: in the interpreter, with kernels for the instructions
//! that launch them.
//!
//! **Invariants:** an instruction with kernels has the value that these leave, computed from the values that
//! the run has of its operands; the interpreter computes no fusion that is a kernel ([`hollowed`]).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hlo::{
    ArrayLiteral, ArrayShape, AttrKey, AttrValue, Attrs, Buffer, ComputationId, ConstantValue, Dims, InstrId,
    Literal, Module, NewInstruction, Opcode, Shape, Span,
};
use hlo_interp::observe::Site;
use hlo_interp::{Device, Flow, Observer, Value};
use rustc_hash::FxHashMap;

use super::dump::Dump;
use super::launch::{self, Failed, Limits};
use super::mirror::Watching;

/// Executes kernels when the interpreter comes to their instructions.
pub(super) struct Host {
    pub(super) dump: Arc<Dump>,
    /// By instruction of the module that runs, that of the dump whose kernels it launches.
    pub(super) launches: Arc<[Option<InstrId>]>,
    pub(super) limits: Limits,
    /// The observer of launches.
    pub(super) mirror: Watching,
    /// The caller's observer of the run.
    pub(super) inner: Option<Arc<dyn Observer>>,
    pub(super) state: Mutex<State>,
}

/// The outcome of a run.
#[derive(Default)]
pub(super) struct State {
    /// Operands of kernels whose instructions were entered and not left.
    operands: FxHashMap<InstrId, Vec<Value>>,
    /// Why the run ended.
    pub(super) failed: Option<Failed>,
    /// Launched instructions.
    pub(super) kernels: usize,
    /// Instructions of threads.
    pub(super) instructions: u64,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Host {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instruction of the dump whose kernels execute that of a site.
    fn launched(&self, site: &Site<'_>) -> Option<InstrId> {
        if site.nesting > 0 { None } else { self.launches.get(site.id.index()).copied().flatten() }
    }
}

impl Observer for Host {
    fn enter(&self, site: &Site<'_>, operands: &[Value]) {
        if self.launched(site).is_some() {
            self.lock().operands.insert(site.id, operands.to_vec());
        }
        if let Some(inner) = &self.inner {
            inner.enter(site, operands);
        }
    }

    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        let told =
            |value: &Value| self.inner.as_ref().map_or(Flow::Continue, |inner| inner.leave(site, value));
        let Some(launched) = self.launched(site) else { return told(result) };
        let Some(kernel) = &self.dump.kernels[launched.index()] else { return told(result) };
        let operands = self.lock().operands.remove(&site.id).unwrap_or_default();
        let mirror = self.mirror.0.as_deref();
        let at = (&self.dump.module, launched);
        match launch::run(&self.dump, at, kernel, &operands, self.limits, mirror) {
            Ok((value, stats)) => {
                let mut state = self.lock();
                state.kernels += 1;
                state.instructions += stats.instructions;
                drop(state);
                match told(&value) {
                    Flow::Continue => Flow::Replace(value),
                    other @ (Flow::Replace(_) | Flow::Stop) => other,
                }
            }
            Err(failed) => {
                self.lock().failed.get_or_insert(failed);
                Flow::Stop
            }
        }
    }

    fn applied(
        &self,
        module: &Module,
        at: InstrId,
        computation: ComputationId,
        device: Device,
        elements: u64,
    ) {
        if let Some(inner) = &self.inner {
            inner.applied(module, at, computation, device, elements);
        }
    }
}

/// By instruction, whether it is outside of the fusions that are kernels: what is inside has no value of its
/// own.
pub(super) fn outside_of_kernels(module: &Module, launches: &[Option<InstrId>]) -> Vec<bool> {
    let mut seen = vec![true; module.instruction_capacity()];
    for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
        let fused = module.instr(id).attrs.computation(AttrKey::Calls);
        if let Some(fused) = fused.filter(|_| launches[id.index()].is_some()) {
            module.instructions(fused).for_each(|inner| seen[inner.index()] = false);
        }
    }
    seen
}

/// A module in which fusions that are kernels compute zeros: what they compute is replaced, and must not be
/// computed in vain.
pub(super) fn hollowed(module: &Module, launches: &[Option<InstrId>]) -> Module {
    let mut hollow = module.clone();
    let mut emptied: Vec<ComputationId> = Vec::new();
    let fusions: Vec<InstrId> = module
        .computations()
        .iter()
        .flat_map(|&c| module.instructions(c))
        .filter(|id| launches[id.index()].is_some() && module.instr(*id).opcode == Opcode::Fusion)
        .collect();
    for id in fusions {
        let instr = module.instr(id);
        let arrays = instr.shape.leaves().into_iter().all(|l| l.as_array().is_some_and(|a| !a.is_dynamic()));
        let Some(fused) = instr.attrs.computation(AttrKey::Calls).filter(|_| arrays) else { continue };
        let operands: Vec<Shape> = instr.operands().iter().map(|&o| module.instr(o).shape.clone()).collect();
        let zeros = zeros(&mut hollow, &operands, &instr.shape);
        hollow.instr_mut(id).attrs.set(AttrKey::Calls, AttrValue::Computation(zeros));
        emptied.push(fused);
    }
    let called = |m: &Module, c: ComputationId| {
        let mut all = m.computations().iter().flat_map(|&c| m.instructions(c));
        all.any(|id| m.instr(id).attrs.called_computations().contains(&c))
    };
    emptied.sort_unstable();
    emptied.dedup();
    for c in emptied {
        if !called(&hollow, c) {
            hollow.remove_computation(c);
        }
    }
    hollow
}

/// A computation that gives zeros, whatever its operands are.
fn zeros(module: &mut Module, operands: &[Shape], result: &Shape) -> ComputationId {
    let name = module.unique_computation_name("hollow");
    let computation = module.add_computation(name, Span::NONE);
    for (i, shape) in operands.iter().enumerate() {
        let name = module.unique_name("hollow.operand");
        let attrs = Attrs::new().with(AttrKey::ParameterNumber, AttrValue::Int(i as i64));
        let new = NewInstruction {
            attrs,
            ..NewInstruction::new(Opcode::Parameter, shape.clone(), &[]).named(name)
        };
        module.append(computation, new);
    }
    let root = zero(module, computation, result);
    module.set_root(computation, root);
    computation
}

fn zero(module: &mut Module, computation: ComputationId, shape: &Shape) -> InstrId {
    let mut append = |new: NewInstruction| {
        let name = module.unique_name("hollow.zero");
        module.append(computation, new.named(name))
    };
    match shape {
        Shape::Array(array) => {
            let ty = array.element_type;
            let literal = ArrayLiteral { dims: Dims::new(), buffer: Arc::new(Buffer::zeros(ty, 1)) };
            let value = ConstantValue::Given(Arc::new(Literal::Array(literal)));
            let scalar = Shape::Array(ArrayShape::new(ty, &[]));
            let new = NewInstruction::new(Opcode::Constant, scalar, &[]);
            let constant = append(new.attr(AttrKey::ConstantValue, AttrValue::Literal(value)));
            let none = AttrValue::Ints([].as_slice().into());
            let new = NewInstruction::new(Opcode::Broadcast, shape.clone(), &[constant]);
            append(new.attr(AttrKey::Dimensions, none))
        }
        Shape::Tuple(parts) => {
            let parts: Vec<InstrId> = parts.iter().map(|part| zero(module, computation, part)).collect();
            let name = module.unique_name("hollow.zero");
            module.append(computation, NewInstruction::new(Opcode::Tuple, shape.clone(), &parts).named(name))
        }
        // Only shapes of arrays come here.
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
            append(NewInstruction::new(Opcode::AfterAll, Shape::Token, &[]))
        }
    }
}
