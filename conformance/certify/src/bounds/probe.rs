//! The same instruction on other operands, perhaps of other element types: what most rules ask.

use std::sync::Arc;

use hlo::attrs::Attrs;
use hlo::builder::ComputationBuilder;
use hlo::{
    AttrKey, AttrValue, ComputationId, ElementType, InstrId, Instruction, Module, NewInstruction, Opcode,
    Shape, Span,
};
use hlo_interp::device::host::NoHost;
use hlo_interp::{Accumulate, Devices, Interpreter, Options, Tensor, Value};
use rustc_hash::FxHashMap;

use super::Settings;
use super::rules::Case;

/// A module of one instruction whose operands are the parameters.
pub(super) struct Probe {
    module: Module,
}

/// The element types of a copy, as a function of the original's.
pub(super) type Retype<'a> = &'a dyn Fn(ElementType) -> ElementType;

/// A shape with other element types.
pub(super) fn retyped(shape: &Shape, retype: Retype<'_>) -> Shape {
    match shape {
        Shape::Array(a) => Shape::Array(a.with_type(retype(a.element_type))),
        Shape::Tuple(parts) => Shape::tuple(parts.iter().map(|part| retyped(part, retype))),
        Shape::Buffer(inner) => Shape::Buffer(Arc::new(retyped(inner, retype))),
        Shape::Token => Shape::Token,
        Shape::Opaque => Shape::Opaque,
    }
}

/// What a probe's applied computations are, but for one that selects.
pub(super) enum Regions<'a> {
    /// Copies with these element types.
    Retyped(Retype<'a>),
    /// An operation of two scalars of a type.
    Fold(Opcode, ElementType),
}

impl Probe {
    /// The instruction with operands of these shapes and this result. `None` if its computations cannot be
    /// had in such types.
    pub(super) fn new(
        source: &Module,
        instr: &Instruction,
        operands: &[Shape],
        result: Shape,
        regions: &Regions<'_>,
    ) -> Option<Probe> {
        let mut module = Module::new("probe");
        module.header.replica_count = source.header.replica_count;
        module.header.num_partitions = source.header.num_partitions;
        module.header.frontend_attributes = source.header.frontend_attributes.clone();
        let mut attrs = Attrs::new();
        let mut copies = FxHashMap::default();
        for (key, value) in instr.attrs.iter() {
            let value = match value {
                // It says where elements go, of an operand that is what it was.
                AttrValue::Computation(c) if key == AttrKey::Select => {
                    let same = Regions::Retyped(&|ty| ty);
                    AttrValue::Computation(copied(source, &mut module, *c, &same, &mut FxHashMap::default())?)
                }
                AttrValue::Computation(c) => {
                    AttrValue::Computation(copied(source, &mut module, *c, regions, &mut copies)?)
                }
                AttrValue::Computations(all) => {
                    let all: Option<Vec<_>> =
                        all.iter().map(|&c| copied(source, &mut module, c, regions, &mut copies)).collect();
                    AttrValue::Computations(all?.into())
                }
                // The caller asks for an accuracy, which is no part of the value.
                _ if key == AttrKey::DotAlgorithm || key == AttrKey::OperandPrecision => continue,
                other => other.clone(),
            };
            attrs.set(key, value);
        }
        let entry = module.add_computation("main".into(), Span::NONE);
        let mut parameters = Vec::new();
        for (number, shape) in (0..).zip(operands) {
            let new = NewInstruction::new(Opcode::Parameter, shape.clone(), &[])
                .attr(AttrKey::ParameterNumber, AttrValue::Int(number))
                .named(format!("p{number}"));
            let parameter = module.append(entry, new);
            // A custom call may read how its operand is divided among devices.
            let original = instr.operands().get(parameters.len()).map(|&o| source.instr(o));
            if let (Opcode::CustomCall, Some(sharding)) =
                (instr.opcode, original.and_then(|o| o.attrs.get(AttrKey::Sharding)))
            {
                module.instr_mut(parameter).attrs.set(AttrKey::Sharding, sharding.clone());
            }
            parameters.push(parameter);
        }
        let new = NewInstruction { attrs, ..NewInstruction::new(instr.opcode, result, &parameters) };
        let root = module.append(entry, new.named("probed"));
        module.set_root(entry, root);
        module.set_entry(entry);
        Some(Probe { module })
    }

    /// As it is, but for element types.
    pub(super) fn retyped(source: &Module, instr: &Instruction, retype: Retype<'_>) -> Option<Probe> {
        let operands: Vec<Shape> =
            instr.operands().iter().map(|&o| retyped(&source.instr(o).shape, retype)).collect();
        let regions = Regions::Retyped(retype);
        Probe::new(source, instr, &operands, retyped(&instr.shape, retype), &regions)
    }

    /// The instruction, and the module that it is in.
    pub(super) fn instruction(&self) -> (&Module, &Instruction) {
        (&self.module, self.module.instr(self.module.root(self.module.entry())))
    }

    /// Gives the applied computation more parameters, scalars that it does not look at.
    pub(super) fn more_parameters(
        &mut self,
        key: AttrKey,
        from: usize,
        types: [ElementType; 2],
    ) -> Option<()> {
        let root = self.module.root(self.module.entry());
        let computation = self.module.instr(root).attrs.computation(key)?;
        for (number, ty) in (from..).zip(types) {
            let new = NewInstruction::new(Opcode::Parameter, Shape::scalar(ty), &[])
                .attr(AttrKey::ParameterNumber, AttrValue::Int(i64::try_from(number).ok()?))
                .named(format!("more{number}"));
            self.module.append(computation, new);
        }
        Some(())
    }

    /// An elementwise instruction on these operands and this result.
    pub(super) fn on(case: &Case<'_>) -> Option<Probe> {
        let shape = |t: &Tensor| Shape::Array(t.shape());
        let operands: Vec<Shape> = case.args.iter().map(|a| shape(a.tensor)).collect();
        let regions = Regions::Retyped(&|t| t);
        Probe::new(case.module, case.instr, &operands, shape(case.results.first()?), &regions)
    }

    /// The result on one device; `None` if the interpreter refuses or the program traps.
    pub(super) fn run(&self, settings: &Settings, args: Vec<Value>) -> Option<Value> {
        self.run_devices(settings, Devices::ONE, vec![args])?.pop()
    }

    /// The results on some devices.
    pub(super) fn run_devices(
        &self,
        settings: &Settings,
        devices: Devices,
        args: Vec<Vec<Value>>,
    ) -> Option<Vec<Value>> {
        let options = settings.account.bound(Options {
            accumulate: Accumulate::Exact,
            seed: settings.options.seed,
            host: Arc::new(NoHost),
            custom_calls: hlo_system::loaded::registry(),
            ..Options::default()
        });
        let results = Interpreter::new(&self.module, options).run_devices(devices, args);
        let results = results.inspect_err(|e| settings.account.fail(e.clone())).ok()?;
        Some(results.into_iter().map(|(value, _)| value).collect())
    }
}

/// A copy of a computation in another module. Constants have no other types.
pub(super) fn copied(
    source: &Module,
    target: &mut Module,
    computation: ComputationId,
    regions: &Regions<'_>,
    copies: &mut FxHashMap<ComputationId, ComputationId>,
) -> Option<ComputationId> {
    if let Some(&copy) = copies.get(&computation) {
        return Some(copy);
    }
    let copy = match regions {
        Regions::Fold(opcode, ty) => {
            let mut b = ComputationBuilder::new(target, opcode.name());
            let (x, y) = (b.parameter("x", Shape::scalar(*ty)), b.parameter("y", Shape::scalar(*ty)));
            b.binary(*opcode, x, y).ok()?;
            b.finish()
        }
        Regions::Retyped(retype) => {
            let name = target.unique_computation_name("region");
            let mut instructions: FxHashMap<InstrId, InstrId> = FxHashMap::default();
            let mut new_instructions = Vec::new();
            for id in source.instructions(computation) {
                let instr = source.instr(id);
                let shape = retyped(&instr.shape, *retype);
                if instr.opcode == Opcode::Constant && shape != instr.shape {
                    return None;
                }
                let mut attrs = Attrs::new();
                for (key, value) in instr.attrs.iter() {
                    let value = match value {
                        AttrValue::Computation(c) => {
                            AttrValue::Computation(copied(source, target, *c, regions, copies)?)
                        }
                        AttrValue::Computations(all) => {
                            let all: Option<Vec<_>> =
                                all.iter().map(|&c| copied(source, target, c, regions, copies)).collect();
                            AttrValue::Computations(all?.into())
                        }
                        other => other.clone(),
                    };
                    attrs.set(key, value);
                }
                new_instructions.push((id, attrs, shape));
            }
            let copy = target.add_computation(name, Span::NONE);
            for (id, attrs, shape) in new_instructions {
                let instr = source.instr(id);
                let operands: Option<Vec<InstrId>> =
                    instr.operands().iter().map(|o| instructions.get(o).copied()).collect();
                let new = NewInstruction { attrs, ..NewInstruction::new(instr.opcode, shape, &operands?) };
                instructions.insert(id, target.append(copy, new.named(instr.name.clone())));
            }
            target.set_root(copy, *instructions.get(&source.root(computation))?);
            copy
        }
    };
    copies.insert(computation, copy);
    Some(copy)
}
