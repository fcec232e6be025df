//! Instructions as text.

use smallvec::SmallVec;

use super::Names;
use super::Printer;
use super::literal::write_constant;
use super::normalize::normal_attrs;
use super::shape::write_shape;
use crate::attrs::{AttrKey, AttrValue, Attrs, COMMON};
use crate::ids::{ComputationId, InstrId};
use crate::literal::ConstantValue;
use crate::module::Module;
use crate::opcode::Opcode;

/// Steps from an `async-done` to its start that are followed; a longer chain of updates is printed without
/// sugar.
const MAX_ASYNC_CHAIN: usize = 64;

/// Which computations are not shown, because an async operation is printed as the one instruction that they
/// hold.
#[derive(Default)]
pub(super) struct AsyncSugar {
    /// By index of the computation: the wrapped instruction.
    wrapped: Vec<Option<InstrId>>,
}

impl AsyncSugar {
    /// Those that exactly one `async-start` and nothing else calls, and that hold parameters and a root; if
    /// `lossless`, only where reading the sugar makes the same again.
    pub(super) fn of(module: &Module, lossless: bool) -> Self {
        let mut sugar = Self::default();
        let any = module
            .computations()
            .iter()
            .any(|&c| module.instructions(c).any(|i| module.instr(i).opcode == Opcode::AsyncStart));
        if !any {
            return sugar;
        }
        // Number of calls and the last caller.
        let mut callers: Vec<(u32, Option<InstrId>)> = vec![(0, None); module.computation_capacity()];
        for &c in module.computations() {
            for i in module.instructions(c) {
                for called in module.instr(i).attrs.called_computations() {
                    let (count, last) = &mut callers[called.index()];
                    *count += 1;
                    *last = Some(i);
                }
            }
        }
        sugar.wrapped.resize(module.computation_capacity(), None);
        for &c in module.computations() {
            let (1, Some(start)) = callers[c.index()] else { continue };
            if module.instr(start).opcode == Opcode::AsyncStart && Some(c) != module.entry_or_none() {
                let root = single_instruction(module, c);
                sugar.wrapped[c.index()] =
                    root.filter(|&root| !lossless || is_lossless(module, start, c, root));
            }
        }
        sugar
    }

    /// Whether a computation is left out.
    pub(super) fn hides(&self, c: ComputationId) -> bool {
        self.wrapped_in(c).is_some()
    }

    fn wrapped_in(&self, c: ComputationId) -> Option<InstrId> {
        *self.wrapped.get(c.index())?
    }

    /// The instruction as which an async operation is printed.
    fn wrapped(&self, module: &Module, mut id: InstrId) -> Option<InstrId> {
        if self.wrapped.is_empty() {
            return None;
        }
        for _ in 0..MAX_ASYNC_CHAIN {
            let instr = module.instr(id);
            if instr.opcode == Opcode::AsyncStart {
                return self.wrapped_in(instr.attrs.computation(AttrKey::Calls)?);
            }
            if !is_async(instr.opcode) {
                return None;
            }
            id = *instr.operands().first()?;
        }
        None
    }
}

/// Whether a wrapped computation is as reading the sugar makes it: named for it, and with nothing of its own
/// that the start does not show.
fn is_lossless(module: &Module, start: InstrId, c: ComputationId, root: InstrId) -> bool {
    const BOTH: [AttrKey; 5] = [
        AttrKey::Metadata,
        AttrKey::BackendConfig,
        AttrKey::FrontendAttributes,
        AttrKey::Origin,
        AttrKey::Statistics,
    ];
    let (computation, start, root) = (module.computation(c), module.instr(start), module.instr(root));
    let shapes = start.shape.as_tuple().and_then(|t| Some((t.first()?.as_tuple()?, t.get(1)?)));
    let parameters = computation.parameters().iter().flatten().map(|&p| module.instr(p));
    computation.name.starts_with("async_wrapped")
        && root.name.starts_with("async_op")
        && parameters.clone().all(|p| p.name.starts_with("async_param") && p.attrs.iter().len() == 1)
        && shapes.is_some_and(|(inputs, result)| {
            *result == root.shape && inputs.iter().eq(parameters.take(inputs.len()).map(|p| &p.shape))
        })
        && computation.execution_thread.as_deref() == start.attrs.str(AttrKey::AsyncExecutionThread)
        && BOTH.iter().all(|&key| start.attrs.get(key) == root.attrs.get(key))
        && root.attrs.get(AttrKey::Sharding).is_none()
        && root.attrs.get(AttrKey::ParameterReplication).is_none()
}

fn is_async(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::AsyncStart | Opcode::AsyncUpdate | Opcode::AsyncDone)
}

/// The root of a computation that otherwise holds parameters only, used in their order, so that nothing is
/// lost when only the root is shown.
fn single_instruction(module: &Module, c: ComputationId) -> Option<InstrId> {
    let root = module.computation(c).root()?;
    let instr = module.instr(root);
    let parameters = module.computation(c).parameters();
    let native = matches!(
        instr.opcode,
        Opcode::AllGather
            | Opcode::AllReduce
            | Opcode::CollectivePermute
            | Opcode::Copy
            | Opcode::Send
            | Opcode::Recv
            | Opcode::Constant
            // Its ordinal could not be written.
            | Opcode::Rng
    ) || is_async(instr.opcode)
        || instr.parameter_number().is_some();
    let plain = !native
        && instr.control_predecessors.is_empty()
        && parameters.len() + 1 == module.computation(c).len()
        && parameters.len() == instr.operands().len()
        && parameters.iter().zip(instr.operands()).all(|(p, o)| *p == Some(*o));
    plain.then_some(root)
}

impl Printer<'_> {
    /// Appends `name = shape opcode(operands), attributes`.
    pub(super) fn write_instruction(&mut self, id: InstrId) {
        let module = self.module;
        let instr = module.instr(id);
        let style = self.shape_style();
        self.write_instruction_name(id);
        self.text.str(" = ");
        write_shape(&mut self.text, &instr.shape, style);
        self.text.byte(b' ');
        let wrapped = if is_async(instr.opcode) { self.sugar.wrapped(module, id) } else { None };
        if let Some(wrapped) = wrapped {
            self.text.str(module.instr(wrapped).opcode.name());
            self.text.str(instr.opcode.name().trim_start_matches("async"));
        } else {
            self.text.str(instr.opcode.name());
        }
        self.text.byte(b'(');
        self.write_operands(id);
        self.text.byte(b')');
        if let Some(&ordinal) = self.moved_rng.get(&id) {
            self.write_attrs(id, &crate::rng_ordinal::written(&instr.attrs, ordinal), wrapped);
        } else if self.options.normalize {
            self.write_attrs(id, &normal_attrs(module, id), wrapped);
        } else {
            self.write_attrs(id, &instr.attrs, wrapped);
        }
    }

    fn write_operands(&mut self, id: InstrId) {
        let module = self.module;
        let instr = module.instr(id);
        if instr.opcode == Opcode::Parameter {
            if let Some(n) = instr.attrs.int(AttrKey::ParameterNumber) {
                self.text.int(n);
            }
        } else if instr.opcode == Opcode::Constant
            && let Some(value) = instr.attrs.constant_value()
        {
            write_constant(&mut self.text, value, self.options.elide);
            if self.options.names == Names::Canonical && matches!(value, ConstantValue::Elided) {
                self.text.quoted(&instr.name);
            }
        }
        for (i, &operand) in instr.operands().iter().enumerate() {
            if i > 0 {
                self.text.str(", ");
                if i % 5 == 0 && self.options.operand_indices {
                    self.text.str("/*index=");
                    self.text.uint(i as u64);
                    self.text.str("*/");
                }
            }
            if self.options.operand_shapes {
                let style = self.shape_style();
                write_shape(&mut self.text, &module.instr(operand).shape, style);
                self.text.byte(b' ');
            }
            self.write_operand_name(operand);
        }
    }

    #[inline]
    fn write_operand_name(&mut self, operand: InstrId) {
        if !(self.options.compact_gte && self.is_compact_gte(operand)) {
            self.write_instruction_name(operand);
            return;
        }
        let mut path: SmallVec<[i64; 4]> = SmallVec::new();
        let mut base = operand;
        // Ends: such get-tuple-elements are defined by earlier ones (and a module that breaks that has
        // finitely many).
        while path.len() < self.module.instruction_capacity() && self.is_compact_gte(base) {
            let instr = self.module.instr(base);
            let (Some(index), Some(&of)) = (instr.attrs.int(AttrKey::Index), instr.operands().first()) else {
                break;
            };
            path.push(index);
            base = of;
        }
        self.write_instruction_name(base);
        for &index in path.iter().rev() {
            self.text.byte(b'#');
            self.text.int(index);
        }
    }

    /// Whether `%t#0` where it is used says all there is to say about a get-tuple-element.
    pub(super) fn is_compact_gte(&self, id: InstrId) -> bool {
        let module = self.module;
        let instr = module.instr(id);
        instr.opcode == Opcode::GetTupleElement
            && instr.operands().len() == 1
            && instr.control_predecessors.is_empty()
            && instr.attrs.int(AttrKey::Index).is_some_and(|i| i >= 0)
            && instr.attrs.iter().len() == 1
            && !module.users(id).is_empty()
            && module.computation(instr.parent()).root() != Some(id)
    }

    fn write_attrs(&mut self, id: InstrId, attrs: &Attrs, wrapped: Option<InstrId>) {
        let instr = self.module.instr(id);
        if let (Some(wrapped), Opcode::AsyncStart) = (wrapped, instr.opcode) {
            // Sugar: the thread, then all that the wrapped instruction says of its own.
            if let Some(thread) = attrs.get(AttrKey::AsyncExecutionThread) {
                self.write_attr(AttrKey::AsyncExecutionThread, thread);
            }
            let opcode = self.module.instr(wrapped).opcode;
            if self.options.normalize {
                self.write_own_attrs(opcode, &normal_attrs(self.module, wrapped));
            } else {
                self.write_own_attrs(opcode, &self.module.instr(wrapped).attrs);
            }
        }
        let mut control = self.options.control_predecessors && !instr.control_predecessors.is_empty();
        for (key, value) in attrs.iter() {
            if wrapped.is_some() && matches!(key, AttrKey::AsyncExecutionThread | AttrKey::Calls) {
                continue;
            }
            if control && key >= AttrKey::Statistics {
                control = false;
                self.write_control_predecessors(id);
            }
            self.write_in_order(instr.opcode, attrs, key, value);
        }
        if control {
            self.write_control_predecessors(id);
        }
    }

    fn write_control_predecessors(&mut self, id: InstrId) {
        self.text.str(", control-predecessors={");
        for (i, &p) in self.module.instr(id).control_predecessors.iter().enumerate() {
            if i > 0 {
                self.text.str(", ");
            }
            self.write_instruction_name(p);
        }
        self.text.byte(b'}');
    }

    /// Those that are not common to all opcodes, and the accuracy.
    fn write_own_attrs(&mut self, opcode: Opcode, attrs: &Attrs) {
        for (key, value) in attrs.iter() {
            if !COMMON.contains(&key) || key == AttrKey::ResultAccuracy {
                self.write_in_order(opcode, attrs, key, value);
            }
        }
    }

    /// One of `attrs`, called for each in the order of the keys. That is the order of the text but for
    /// reduce-scatter, where `use_global_device_ids` comes before `dimensions`, and collective-reduce, where
    /// it comes before `has_dynamic_root`.
    fn write_in_order(&mut self, opcode: Opcode, attrs: &Attrs, key: AttrKey, value: &AttrValue) {
        if opcode == Opcode::CollectiveReduce {
            match (key, attrs.get(AttrKey::UseGlobalDeviceIds), attrs.get(AttrKey::HasDynamicRoot)) {
                (AttrKey::HasDynamicRoot, Some(_), _) => return,
                (AttrKey::UseGlobalDeviceIds, _, Some(late)) => {
                    self.write_attr(key, value);
                    self.write_attr(AttrKey::HasDynamicRoot, late);
                    return;
                }
                (_, _, _) => {}
            }
        }
        if opcode == Opcode::ReduceScatter {
            if key == AttrKey::UseGlobalDeviceIds && attrs.get(AttrKey::Dimensions).is_some() {
                return;
            }
            if let (AttrKey::Dimensions, Some(early)) = (key, attrs.get(AttrKey::UseGlobalDeviceIds)) {
                self.write_attr(AttrKey::UseGlobalDeviceIds, early);
            }
        }
        self.write_attr(key, value);
    }
}
