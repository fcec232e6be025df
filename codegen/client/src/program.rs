//! Programs that verify.

use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{
    ArrayLiteral, ComputationId, ConstantValue, InstrId, Literal, Module, NewInstruction, Opcode, Shape,
};

use rustc_hash::FxHashSet;

use crate::cost::Cost;
use crate::custom_call::CustomCalls;
use crate::error::{Code, Error};

/// A module that verifies: what compiling asks for, so that nothing is compiled that does not.
#[derive(Clone, Debug)]
pub struct VerifiedModule(Arc<Module>);

impl VerifiedModule {
    /// Verifies a module.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`], with every error that there is ([`Error::diagnostics`]).
    pub fn new(module: Module) -> Result<Self, Error> {
        let diagnostics = hlo::verify::verify(&module);
        if diagnostics.has_errors() {
            return Err(Error::of_diagnostics("the program does not verify", diagnostics));
        }
        Ok(Self(Arc::new(module)))
    }

    /// Parses and verifies the text of a module.
    ///
    /// # Errors
    /// As [`VerifiedModule::new`], and those of the text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
        match parsed.module {
            Some(module) => Self::new(module),
            None => Err(Error::of_diagnostics("the program does not parse", parsed.diagnostics)),
        }
    }

    /// The module.
    pub fn module(&self) -> &Arc<Module> {
        &self.0
    }

    /// What it costs, counted on the program as it is, loops once.
    pub fn cost_analysis(&self) -> Cost {
        Cost::of(&self.0)
    }

    /// The program that a computation of a module is by itself.
    ///
    /// # Errors
    /// It does not verify by itself.
    pub(crate) fn of_computation(module: &Module, computation: ComputationId) -> Result<Self, Error> {
        let mut module = module.clone();
        module.set_entry(computation);
        let header = &mut module.header;
        header.input_output_alias.clear();
        header.buffer_donor.clear();
        header.entry_computation_layout = None;
        header.spmd_propagation_to_parameters = None;
        header.spmd_propagation_to_output = None;
        let mut reached = FxHashSet::from_iter([computation]);
        let mut left = vec![computation];
        while let Some(computation) = left.pop() {
            for id in module.instructions(computation) {
                let called = module.instr(id).attrs.called_computations();
                left.extend(called.into_iter().filter(|&called| reached.insert(called)));
            }
        }
        let all: Vec<ComputationId> = module.computations().to_vec();
        all.into_iter().filter(|c| !reached.contains(c)).for_each(|c| module.remove_computation(c));
        Self::new(module.compact())
    }

    /// The program with the calls that a registry implements marked as such.
    pub(crate) fn with_custom_calls(&self, custom_calls: &CustomCalls) -> Self {
        if custom_calls.is_empty() || !has_custom_calls(&self.0) {
            return self.clone();
        }
        let mut module = (*self.0).clone();
        match custom_calls.mark(&mut module) {
            0 => self.clone(),
            _ => Self(Arc::new(module)),
        }
    }

    /// The program with some of its parameters replaced by constants; the others keep their order.
    ///
    /// # Errors
    /// A number that is no parameter's or comes twice, a value of another shape, a parameter that the program
    /// updates in place.
    pub fn with_constants(&self, constants: &[(usize, ArrayLiteral)]) -> Result<Self, Error> {
        if constants.is_empty() {
            return Ok(self.clone());
        }
        let invalid = |message: String| Err(Error::new(Code::InvalidArgument, message));
        let mut module = (*self.0).clone();
        let entry = module.entry();
        let parameters: Vec<InstrId> =
            module.computation(entry).parameters().iter().flatten().copied().collect();
        let mut is_constant = vec![false; parameters.len()];
        for (number, value) in constants {
            let Some(&parameter) = parameters.get(*number) else {
                return invalid(format!(
                    "there is no parameter {number} to be constant: there are {}",
                    parameters.len()
                ));
            };
            if std::mem::replace(&mut is_constant[*number], true) {
                return invalid(format!("two constant values for parameter {number}"));
            }
            let shape = module.instr(parameter).shape.clone();
            if shape.without_layout() != Shape::Array(value.shape()) {
                return invalid(format!(
                    "parameter {number} is {shape}, its constant value {}",
                    value.shape()
                ));
            }
            let updated = module.header.input_output_alias.iter().any(|a| a.parameter == *number as i64);
            if updated || module.header.buffer_donor.iter().any(|d| d.parameter == *number as i64) {
                return invalid(format!("parameter {number} is updated in place: it cannot be constant"));
            }
            let name = module.unique_name(&module.instr(parameter).name.clone());
            let value = Arc::new(Literal::Array(value.clone()));
            let constant = NewInstruction { name, ..NewInstruction::new(Opcode::Constant, shape, &[]) }
                .attr(AttrKey::ConstantValue, AttrValue::Literal(ConstantValue::Given(value)));
            let constant = module.insert_before(parameter, constant);
            module.replace_all_uses(parameter, constant);
            module.remove(parameter);
        }
        // By old number, the new one.
        let mut numbers = vec![None; parameters.len()];
        let left = parameters.iter().enumerate().filter(|(n, _)| !is_constant[*n]);
        for (new, (number, &parameter)) in (0..).zip(left) {
            module.instr_mut(parameter).attrs.set(AttrKey::ParameterNumber, AttrValue::Int(new));
            numbers[number] = Some(new);
        }
        let renumber = |old: &mut i64| {
            if let Some(new) = usize::try_from(*old).ok().and_then(|n| numbers.get(n).copied().flatten()) {
                *old = new;
            }
        };
        module.header.input_output_alias.iter_mut().for_each(|a| renumber(&mut a.parameter));
        module.header.buffer_donor.iter_mut().for_each(|d| renumber(&mut d.parameter));
        if let Some(layout) = &mut module.header.entry_computation_layout {
            let mut number = 0;
            layout.parameters.retain(|_| {
                number += 1;
                !is_constant.get(number - 1).copied().unwrap_or(false)
            });
        }
        if let Some(hlo::PropagationFlags::Each(flags)) = &mut module.header.spmd_propagation_to_parameters {
            let mut number = 0;
            flags.retain(|_| {
                number += 1;
                !is_constant.get(number - 1).copied().unwrap_or(false)
            });
        }
        Self::new(module.compact())
    }
}

fn has_custom_calls(module: &Module) -> bool {
    let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
    all.any(|id| module.instr(id).opcode == Opcode::CustomCall)
}
