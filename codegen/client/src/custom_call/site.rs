//! What is known of a call when its program is compiled.

use hlo::attrs::{ApiVersion, AttrKey, AttrValue};
use hlo::{ArrayLiteral, ArrayShape, ComputationId, InstrId, Layout, Module, Shape};

use super::attributes::Attributes;
use crate::error::{Code, Error};

/// A call in a program.
#[derive(Clone, Debug)]
pub struct CallSite {
    /// The target.
    pub target: String,
    /// The name of the instruction, for messages.
    pub instruction: String,
    /// The calling convention that the program asks for.
    pub api_version: ApiVersion,
    /// `backend_config` as it stands.
    pub opaque: String,
    /// The same as attributes; of a program that asks for the typed interface it is such.
    pub attributes: Attributes,
    /// The operands' arrays and tokens, tuples flattened, with the layouts that the program asks for.
    pub operands: Vec<Shape>,
    /// Those of the result.
    pub results: Vec<Shape>,
    /// Whether the result is a tuple, of one array too.
    pub result_is_tuple: bool,
    /// Results that are to be their operands' memory, as leaves by number: such a result has the value of its
    /// operand at first.
    pub aliases: Vec<(usize, usize)>,
    /// The functions that it refers to, in the order of its called computations.
    pub functions: Vec<Function>,
}

/// A function that a call refers to: a computation of the same program.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What it takes, one for each parameter.
    pub parameters: Vec<Shape>,
    /// What it gives.
    pub result: Shape,
    pub(super) computation: ComputationId,
}

impl Function {
    /// Whether these are arrays of its parameters, in order.
    pub(super) fn takes(&self, arguments: &[ArrayLiteral]) -> bool {
        let mut shapes = Vec::new();
        self.parameters.iter().for_each(|parameter| leaves(parameter, &mut shapes));
        let arrays: Vec<&ArrayShape> = shapes.iter().filter_map(Shape::as_array).collect();
        let fits = |(shape, array): (&&ArrayShape, &ArrayLiteral)| array.shape() == shape.without_layout();
        arrays.len() == arguments.len() && arrays.iter().zip(arguments).all(fits)
    }
}

fn leaves(shape: &Shape, out: &mut Vec<Shape>) {
    match shape {
        Shape::Tuple(parts) => parts.iter().for_each(|part| leaves(part, out)),
        Shape::Buffer(inner) => leaves(inner, out),
        Shape::Array(_) | Shape::Token | Shape::Opaque => out.push(shape.clone()),
    }
}

/// How many leaves a shape has.
fn count(shape: &Shape) -> usize {
    let mut all = Vec::new();
    leaves(shape, &mut all);
    all.len()
}

/// The number of the leaf at a path in a shape.
fn leaf_at(shape: &Shape, path: &[i64]) -> Option<usize> {
    let Some((&first, rest)) = path.split_first() else {
        return (!matches!(shape, Shape::Tuple(_))).then_some(0);
    };
    let parts = shape.as_tuple()?;
    let first = usize::try_from(first).ok()?;
    let before: usize = parts.get(..first)?.iter().map(count).sum();
    Some(before + leaf_at(parts.get(first)?, rest)?)
}

/// Results and the operands whose memory they are.
fn aliases(module: &Module, id: InstrId) -> Vec<(usize, usize)> {
    let instr = module.instr(id);
    let Some(AttrValue::OperandAliasing(list)) = instr.attrs.get(AttrKey::OutputToOperandAliasing) else {
        return Vec::new();
    };
    let shape = |operand: InstrId| &module.instr(operand).shape;
    let of = |alias: &hlo::attrs::OperandAlias| {
        let result = leaf_at(&instr.shape, &alias.output_index)?;
        let operand = usize::try_from(alias.operand).ok()?;
        let before: usize = instr.operands().get(..operand)?.iter().map(|&o| count(shape(o))).sum();
        let operand = leaf_at(shape(*instr.operands().get(operand)?), &alias.operand_index)?;
        Some((result, before + operand))
    };
    list.iter().filter_map(of).collect()
}

impl CallSite {
    /// Of an instruction.
    ///
    /// # Errors
    /// Attributes that are none ([`Code::InvalidArgument`]); opaque values and results with run-time sizes
    /// ([`Code::Unimplemented`]).
    pub(super) fn new(module: &Module, id: InstrId) -> Result<Self, Error> {
        let instr = module.instr(id);
        let call = hlo_interp::custom_call::Call { instruction: instr, module };
        let target = call.target().to_owned();
        let api_version = match instr.attrs.get(AttrKey::ApiVersion) {
            Some(AttrValue::ApiVersion(version)) => *version,
            Some(_) | None => ApiVersion::Original,
        };
        let opaque = call.backend_config().to_owned();
        let attributes = match (Attributes::parse(&opaque), api_version) {
            (Ok(attributes), _) => attributes,
            (Err(error), ApiVersion::TypedFfi) => {
                return Err(Error::new(error.code(), format!("%{}: {error}", instr.name)));
            }
            // Other conventions pass the text on.
            (Err(_), _) => Attributes::default(),
        };
        let mut operands = Vec::new();
        match instr.attrs.get(AttrKey::OperandLayoutConstraints) {
            Some(AttrValue::Shapes(shapes)) => shapes.iter().for_each(|shape| leaves(shape, &mut operands)),
            Some(_) | None => {
                instr
                    .operands()
                    .iter()
                    .for_each(|&o| leaves(&module.instr(o).shape.without_layout(), &mut operands));
            }
        }
        let mut results = Vec::new();
        leaves(&instr.shape, &mut results);
        let is_dynamic = |s: &Shape| s.as_array().is_some_and(ArrayShape::is_dynamic);
        if let Some(shape) = operands.iter().chain(&results).find(|s| **s == Shape::Opaque || is_dynamic(s)) {
            let message = format!("the custom call %{} to {target:?} of {shape}", instr.name);
            return Err(Error::new(Code::Unimplemented, message));
        }
        let function = |computation: ComputationId| {
            let signature = module.program_shape(computation)?;
            let name = module.computation(computation).name.to_string();
            Some(Function { name, parameters: signature.parameters, result: signature.result, computation })
        };
        let functions = instr.attrs.called_computations().into_iter().filter_map(function).collect();
        let instruction = instr.name.to_string();
        let fits = |&(result, operand): &(usize, usize)| match (results.get(result), operands.get(operand)) {
            (Some(Shape::Array(result)), Some(Shape::Array(operand))) => result.same_dims(operand),
            (Some(_) | None, Some(_) | None) => false,
        };
        let aliases = aliases(module, id).into_iter().filter(fits).collect();
        let result_is_tuple = matches!(instr.shape, Shape::Tuple(_));
        Ok(Self {
            target,
            instruction,
            api_version,
            opaque,
            attributes,
            operands,
            results,
            result_is_tuple,
            aliases,
            functions,
        })
    }

    /// An error of this call.
    pub fn error(&self, code: Code, message: impl std::fmt::Display) -> Error {
        Error::new(code, format!("{}{message}", Self::name_of(&self.instruction, &self.target)))
    }

    /// How messages begin.
    pub(super) fn name_of(instruction: &str, target: &str) -> String {
        format!("custom call %{instruction} to {target:?}: ")
    }

    /// The message of an error without the call's name.
    pub(super) fn without_name(&self, error: &Error) -> String {
        let text = error.to_string();
        let name = Self::name_of(&self.instruction, &self.target);
        text.strip_prefix(&name).map(str::to_owned).unwrap_or(text)
    }

    /// The function that an attribute, or its own name, says. Of one function, which has another name by now,
    /// it is that one.
    pub fn function(&self, name: &str) -> Option<&Function> {
        let named = match self.attributes.get(name) {
            Some(super::Attribute::Function(named)) => named.as_str(),
            Some(_) | None => name,
        };
        let is_attribute =
            named != name || matches!(self.attributes.get(name), Some(super::Attribute::Function(_)));
        let found = self.functions.iter().find(|f| f.name == named);
        // Frontends and passes rename computations; a reference to the only one there is needs no name.
        found.or_else(|| self.functions.first().filter(|_| is_attribute && self.functions.len() == 1))
    }

    /// A layout other than row-major, from the most minor dimension on; `None`: it is row-major.
    pub fn minor_to_major(shape: &Shape) -> Option<Vec<usize>> {
        let array = shape.as_array()?;
        let layout = array.layout.as_deref().filter(|layout| !Layout::is_row_major(layout))?;
        let order: Vec<usize> =
            layout.minor_to_major.iter().filter_map(|&d| usize::try_from(d).ok()).collect();
        (order.len() == array.rank()).then_some(order)
    }
}
