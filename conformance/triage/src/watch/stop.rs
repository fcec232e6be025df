//! The value of one instruction in place of the program's result.

use std::sync::Mutex;

use hlo::{ComputationId, InstrId, Literal, Module};
use hlo_interp::observe::{Flow, Observer, Site};
use hlo_interp::{Device, Value};

use hlo_system::exit::Failure;

/// An execution of an instruction, as `--stop-at` names it: `NAME`, `COMPUTATION.NAME`, and `#N` after either
/// for the execution with number N, from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// The instruction.
    pub id: InstrId,
    /// Which of its executions, from 0.
    pub execution: u64,
}

impl Target {
    /// Finds the instruction. Errors: wrong usage, with "did you mean" or what there is to choose from.
    pub fn find(module: &Module, text: &str) -> Result<Self, Failure> {
        let (name, execution) = match text.rsplit_once('#') {
            Some((name, n)) => {
                let n = n.parse().map_err(|_| {
                    Failure::usage(format!("`{text}`: after # comes the number of an execution, from 0"))
                })?;
                (name, n)
            }
            None => (text, 0),
        };
        let name = name.strip_prefix('%').unwrap_or(name);
        let found = instructions(module).filter(|&(_, id)| *module.instr(id).name == *name);
        let mut found: Vec<(ComputationId, InstrId)> = found.collect();
        if found.is_empty() {
            // Both names may have dots.
            found = instructions(module).filter(|&(c, id)| full_name(module, c, id) == name).collect();
        }
        match found[..] {
            [(_, id)] => Ok(Self { id, execution }),
            [] => {
                let all: Vec<String> =
                    instructions(module).map(|(_, id)| module.instr(id).name.to_string()).collect();
                let full: Vec<String> =
                    instructions(module).map(|(c, id)| full_name(module, c, id)).collect();
                let near =
                    hlo::diag::suggest::did_you_mean(name, all.iter().chain(&full).map(String::as_str));
                let hint = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
                Err(Failure::usage(format!("there is no instruction `{name}`{hint}")))
            }
            _ => {
                let list: Vec<String> =
                    found.iter().take(4).map(|&(c, id)| format!("`{}`", full_name(module, c, id))).collect();
                let more = if found.len() > 4 { " ..." } else { "" };
                Err(Failure::usage(format!(
                    "several computations have an instruction `{name}`: say {}{more}",
                    list.join(", ")
                )))
            }
        }
    }
}

fn instructions(module: &Module) -> impl Iterator<Item = (ComputationId, InstrId)> {
    module.computations().iter().flat_map(|&c| module.instructions(c).map(move |id| (c, id)))
}

/// `computation.instruction`.
pub fn full_name(module: &Module, computation: ComputationId, id: InstrId) -> String {
    format!("{}.{}", module.computation(computation).name, module.instr(id).name)
}

/// Stops the run at an execution of an instruction and keeps its value.
#[derive(Debug)]
pub struct StopAt {
    target: Target,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    executions: u64,
    values: Vec<(Device, Literal)>,
}

impl StopAt {
    /// Stops at this execution.
    pub fn new(target: Target) -> Self {
        Self { target, state: Mutex::default() }
    }

    /// The values that were reached, by device, or why there are none.
    pub fn into_values(self, module: &Module) -> Result<Vec<(Device, Literal)>, Failure> {
        let mut state = self.state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !state.values.is_empty() {
            state.values.sort_by_key(|(device, _)| (device.replica, device.partition));
            return Ok(state.values);
        }
        let Target { id, execution } = self.target;
        let name = full_name(module, module.instr(id).parent(), id);
        Err(Failure::usage(match state.executions {
            0 => format!(
                "`{name}` is not executed: nothing needs its value, its branch is not taken, or its computation is \
                 applied to elements"
            ),
            n => format!("`{name}` is executed {n} times: there is no #{execution} (they count from 0)"),
        }))
    }
}

impl Observer for StopAt {
    fn leave(&self, site: &Site<'_>, result: &Value) -> Flow {
        if site.id != self.target.id {
            return Flow::Continue;
        }
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.executions = state.executions.max(site.execution + 1);
        if site.execution != self.target.execution {
            return Flow::Continue;
        }
        state.values.push((site.device, result.clone().into_literal()));
        Flow::Stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "HloModule m\n\nf.1 {\n  p = f32[] parameter(0)\n  ROOT s.2 = f32[] add(p, p)\n}\n\n\
                        g {\n  p = f32[] parameter(0)\n  ROOT n = f32[] negate(p)\n}\n\n\
                        ENTRY e {\n  x = f32[] parameter(0)\n  c = f32[] call(x), to_apply=f.1\n  ROOT d = f32[] call(c), to_apply=g\n}\n";

    #[test]
    fn names_are_found_guessed_or_refused() {
        let (module, _) = hlo_engines::frontend::parse_text(TEXT);
        let module = module.unwrap();
        let find = |text: &str| {
            Target::find(&module, text)
                .map(|t| (module.instr(t.id).name.to_string(), t.execution))
                .map_err(|f| f.message)
        };
        assert_eq!(find("s.2"), Ok(("s.2".into(), 0)));
        assert_eq!(find("%s.2#17"), Ok(("s.2".into(), 17)));
        assert_eq!(find("f.1.s.2"), Ok(("s.2".into(), 0)));
        assert_eq!(find("g.p#1"), Ok(("p".into(), 1)));
        assert_eq!(
            find("p").unwrap_err(),
            "several computations have an instruction `p`: say `f.1.p`, `g.p`"
        );
        assert_eq!(find("s.3").unwrap_err(), "there is no instruction `s.3`; did you mean `s.2`?");
        assert_eq!(find("g.m").unwrap_err(), "there is no instruction `g.m`; did you mean `g.p`?");
        assert_eq!(find("frobnicate").unwrap_err(), "there is no instruction `frobnicate`");
        assert_eq!(find("n#x").unwrap_err(), "`n#x`: after # comes the number of an execution, from 0");
    }
}
