//! Arguments that are constants of the program: weights, which a compiler then knows ahead of all runs.
//!
//! **Invariant:** the program computes what it does with these values as arguments.

use std::str::FromStr;
use std::sync::Arc;

use hlo::diag::codes;
use hlo::{ArrayLiteral, Diagnostic, Literal, Module, Span};
use hlo_client::VerifiedModule;
use hlo_interp::{Devices, Observer};
use hlo_system::exit::Failure;

use super::{Allowances, Engine, Executable, Inputs, Outcome, RunOptions, not_observable};

/// Which arguments are constant, by parameter number: `0-147,150`, or `all-but=148,149` for all the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConstantArguments {
    /// First and last of each range.
    ranges: Vec<(usize, usize)>,
    all_but: bool,
}

impl FromStr for ConstantArguments {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (list, all_but) = match text.strip_prefix("all-but=") {
            Some(list) => (list, true),
            None => (text, false),
        };
        let wrong =
            || format!("`{text}` is no list of parameter numbers such as 0-147,150 or all-but=148,149");
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        let range = |part: &str| match part.split_once('-') {
            Some((first, last)) => Ok((number(first)?, number(last)?)),
            None => number(part).map(|n| (n, n)),
        };
        let ranges: Vec<(usize, usize)> = list.split(',').map(range).collect::<Result<_, String>>()?;
        if ranges.iter().any(|(first, last)| first > last) {
            return Err(wrong());
        }
        Ok(Self { ranges, all_but })
    }
}

impl ConstantArguments {
    fn has(&self, number: usize) -> bool {
        self.ranges.iter().any(|&(first, last)| (first..=last).contains(&number)) != self.all_but
    }

    /// That there are such parameters. Errors: wrong usage.
    pub fn check(&self, module: &Module) -> Result<(), Failure> {
        let count = module.computation(module.entry()).parameters().len();
        match self.ranges.iter().map(|&(_, last)| last).find(|&last| last >= count) {
            Some(number) => Err(Failure::usage(format!(
                "there is no parameter {number} to be constant: there are {count}"
            ))),
            None => Ok(()),
        }
    }

    /// The program with these of its arguments as constants, and the others. Errors: a number that is no
    /// parameter's, an argument that is no array or that the program updates in place.
    pub fn freeze(
        &self,
        module: &Module,
        arguments: Vec<Literal>,
    ) -> Result<(Module, Vec<Literal>), Failure> {
        self.check(module)?;
        let mut constants: Vec<(usize, ArrayLiteral)> = Vec::new();
        let mut left = Vec::new();
        for (number, argument) in arguments.into_iter().enumerate() {
            match argument {
                Literal::Array(array) if self.has(number) => constants.push((number, array)),
                other if self.has(number) && !self.all_but => {
                    let shape = other.shape();
                    return Err(Failure::usage(format!(
                        "parameter {number} is {shape}: only arrays can be constant"
                    )));
                }
                other => left.push(other),
            }
        }
        let failed = |e: hlo_client::Error| Failure::usage(e.to_string());
        let program = VerifiedModule::new(module.clone()).map_err(failed)?;
        let frozen = program.with_constants(&constants).map_err(failed)?;
        Ok(((**frozen.module()).clone(), left))
    }
}

/// An engine that compiles programs with some of their arguments as constants, when it is given these.
pub struct FrozenEngine {
    inner: Arc<dyn Engine>,
    constant: ConstantArguments,
}

impl FrozenEngine {
    /// An engine that is given these arguments as constants.
    pub fn new(inner: Arc<dyn Engine>, constant: ConstantArguments) -> Self {
        Self { inner, constant }
    }
}

impl Engine for FrozenEngine {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn allowances(&self) -> Allowances {
        self.inner.allowances()
    }

    fn supports(&self, module: &Module, devices: Devices) -> Result<(), Diagnostic> {
        if devices.count() > 1 {
            let why = "constant arguments are those of one device";
            return Err(Diagnostic::error(codes::UNSUPPORTED_OPCODE, Span::NONE, why));
        }
        self.inner.supports(module, devices)
    }

    fn is_compiler(&self) -> bool {
        self.inner.is_compiler()
    }

    fn ends_by_itself(&self) -> bool {
        self.inner.ends_by_itself()
    }

    fn compile<'m>(&'m self, module: &'m Module) -> Result<Box<dyn Executable + 'm>, Outcome> {
        Ok(Box::new(Frozen { engine: self, module }))
    }
}

/// A program that is compiled when its constants are there.
struct Frozen<'m> {
    engine: &'m FrozenEngine,
    module: &'m Module,
}

impl Executable for Frozen<'_> {
    fn run(&self, inputs: Inputs, options: &RunOptions, observer: Option<Arc<dyn Observer>>) -> Outcome {
        if observer.is_some() {
            return not_observable(self.engine.name());
        }
        let arguments = inputs.arguments.into_iter().next().unwrap_or_default();
        match self.engine.constant.freeze(self.module, arguments) {
            Ok((module, left)) => {
                let inputs = Inputs { arguments: vec![left], host: inputs.host };
                self.engine.inner.run(&module, inputs, options)
            }
            Err(failure) => {
                Outcome::Unsupported(Diagnostic::error(codes::WRONG_ARGUMENTS, Span::NONE, failure.message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_parameters() {
        let has = |text: &str| -> Vec<usize> {
            let list: ConstantArguments = text.parse().unwrap();
            (0..6).filter(|&n| list.has(n)).collect()
        };
        assert_eq!(has("0-2,4"), [0, 1, 2, 4]);
        assert_eq!(has("all-but=1,3"), [0, 2, 4, 5]);
        for wrong in ["", "3-1", "a", "1,,2", "all-but=", "-1"] {
            assert!(wrong.parse::<ConstantArguments>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn constants_leave_the_argument_list() {
        let text = "HloModule m\n\nENTRY e {\n  a = f32[2] parameter(0)\n  b = f32[2] parameter(1)\n  ROOT s = f32[2] subtract(a, b)\n}\n";
        let module = crate::frontend::parse_text(text).0.unwrap();
        let array = |x: [f32; 2]| {
            Literal::Array(ArrayLiteral {
                dims: [2].into_iter().collect(),
                buffer: hlo::Buffer::F32(x.to_vec()).into(),
            })
        };
        let list: ConstantArguments = "0".parse().unwrap();
        let (frozen, left) = list.freeze(&module, vec![array([5.0, 7.0]), array([1.0, 2.0])]).unwrap();
        assert_eq!(left, [array([1.0, 2.0])]);
        assert_eq!(frozen.computation(frozen.entry()).parameters().len(), 1);
        let interpreter = hlo_interp::Interpreter::new(&frozen, hlo_interp::Options::default());
        let left = left.into_iter().map(hlo_interp::Value::from_literal).collect();
        assert_eq!(interpreter.run(left).unwrap().into_literal(), array([4.0, 5.0]));
        let beyond: ConstantArguments = "2".parse().unwrap();
        assert!(beyond.freeze(&module, vec![array([0.0; 2]), array([0.0; 2])]).is_err());
    }
}
