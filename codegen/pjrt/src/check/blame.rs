//! Which instruction of a wrong execution is to blame.
//!
//! From the wrong result back along operands: an operand is made the result of the program, which is compiled
//! and executed again on the same arguments and judged by its own bounds. Where no operand is wrong, the
//! instruction is to blame: it is wrong in the midst of the program that makes its operands right. What a
//! compiler does wrong only to the whole may be right in each of these; then the result itself is named.

use hlo::{ArrayLiteral, InstrId, Module, Opcode, Shape};
use hlo_client::{ExecuteOptions, VerifiedModule};
use hlo_interp::Devices;

use super::{Execution, judged, source_location};

/// Programs that are compiled to find it.
const MAX_PROGRAMS: usize = 48;

/// The instruction to blame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Blamed {
    /// The instruction, with its opcode and source location.
    at: Option<(String, &'static str, Option<String>)>,
    /// Whether its operands were found right.
    is_certain: bool,
}

impl Blamed {
    fn of(module: &Module, id: InstrId, is_certain: bool) -> Self {
        let instr = module.instr(id);
        Self {
            at: Some((instr.name.to_string(), instr.opcode.name(), source_location(module, id))),
            is_certain,
        }
    }

    /// Its opcode.
    pub(crate) fn opcode(&self) -> Option<&'static str> {
        self.at.as_ref().map(|at| at.1)
    }

    /// Its line of Python, or its name.
    pub(crate) fn location(&self) -> String {
        match &self.at {
            Some((_, _, Some(location))) => location.clone(),
            Some((name, _, None)) => format!("%{name}"),
            None => String::new(),
        }
    }

    /// For people.
    pub(crate) fn describe(&self, module: &Module) -> String {
        let Some((name, opcode, location)) = &self.at else { return format!("in {}", module.name) };
        let at = location.as_ref().map(|p| format!(" at {p}")).unwrap_or_default();
        match self.is_certain {
            true => format!("{opcode} %{name}{at}: its operands are right"),
            false => format!("the result is of {opcode} %{name}{at}"),
        }
    }
}

/// The instruction that a result is of: through tuples and their elements.
fn source(module: &Module, mut id: InstrId) -> InstrId {
    loop {
        let instr = module.instr(id);
        let next = match (instr.opcode, instr.operands()) {
            (Opcode::GetTupleElement, &[tuple]) => {
                let of = module.instr(tuple);
                let index = instr.attrs.int(hlo::AttrKey::Index).and_then(|n| usize::try_from(n).ok());
                match (of.opcode, index) {
                    (Opcode::Tuple, Some(n)) => of.operands().get(n).copied(),
                    _ => None,
                }
            }
            (Opcode::Copy | Opcode::Bitcast, &[operand]) => Some(operand),
            _ => None,
        };
        match next {
            Some(next) => id = next,
            None => return id,
        }
    }
}

/// Looks for what is to blame for a wrong result of a device.
pub(crate) fn find(execution: &Execution<'_>, _device: usize, result: usize) -> Blamed {
    let module = execution.source.module();
    let root = module.root(module.entry());
    let instr = module.instr(root);
    let start = match (&instr.shape, instr.opcode) {
        (Shape::Tuple(parts), Opcode::Tuple) => {
            // Tokens among the parts are no results.
            let arrays = parts.iter().zip(instr.operands()).filter(|(shape, _)| shape.as_array().is_some());
            arrays.map(|(_, &id)| id).nth(result).unwrap_or(root)
        }
        _ => root,
    };
    let mut at = source(module, start);
    // Of several devices the program would be another for each.
    if execution.devices != Devices::ONE {
        return Blamed::of(module, at, false);
    }
    let mut left = MAX_PROGRAMS;
    loop {
        let wrong = module.instr(at).operands().iter().map(|&o| source(module, o)).find(|&operand| {
            let instr = module.instr(operand);
            let is_made = !matches!(
                instr.opcode,
                Opcode::Parameter | Opcode::Constant | Opcode::Iota | Opcode::Broadcast
            );
            if !is_made || instr.shape.as_array().is_none() || left == 0 {
                return false;
            }
            left -= 1;
            is_wrong(execution, module, operand)
        });
        match wrong {
            Some(operand) => at = operand,
            None => return Blamed::of(module, at, left > 0),
        }
    }
}

/// Whether the value of an instruction is wrong if the program gives that.
fn is_wrong(execution: &Execution<'_>, module: &Module, id: InstrId) -> bool {
    let mut cut = module.clone();
    let entry = cut.entry();
    cut.set_root(entry, id);
    cut.header.entry_computation_layout = None;
    cut.header.input_output_alias.clear();
    cut.header.buffer_donor.clear();
    let Ok(source) = VerifiedModule::new(cut) else { return false };
    let Some(arguments) = execution.arguments.first() else { return false };
    let run = || -> Result<Vec<ArrayLiteral>, hlo_client::Error> {
        let options = hlo_client::CompileOptions { fallback: true, ..hlo_client::CompileOptions::default() };
        let executable = execution.engine.compile(&source, &options)?;
        let buffers = arguments.iter().map(|a| execution.engine.buffer(a)).collect::<Result<Vec<_>, _>>()?;
        let given: Vec<&hlo_client::Buffer> = buffers.iter().collect();
        let results = executable.execute_with(&given, &ExecuteOptions::default())?;
        results.iter().map(hlo_client::Buffer::to_literal).collect()
    };
    let Ok(results) = run() else { return false };
    judged(source.module(), Devices::ONE, std::slice::from_ref(arguments), &[results])
        .is_ok_and(|verdict| verdict.tally.wrong > 0)
}
