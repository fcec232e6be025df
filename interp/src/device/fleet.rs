//! The devices of a run whose program something else executes, and that asks for single instructions: those
//! that communicate, draw random numbers, or are not compiled.
//!
//! **Invariants:** an instruction does what it does in a run of the interpreter: executions are counted,
//! devices meet, hosts are asked, random states go on; whatever ends a member's thread, the others learn that
//! it has ended, so a deadlock is found as it is there.

use std::sync::{Mutex, PoisonError};

use hlo::{InstrId, Module};
use rustc_hash::FxHashMap;

use super::exchange::Status;
use super::{Devices, Ending, Peers, report};
use crate::engine::{Interpreter, Session};
use crate::error::{Result, RunError};
use crate::ops::Args;
use crate::value::Value;

/// The state that the devices of such a run share.
#[derive(Debug)]
pub struct Fleet {
    peers: Peers,
}

/// One device of the run.
#[derive(Debug)]
pub struct Member<'f> {
    session: Session<'f>,
    /// Results that are promised: of starts, sends and receives, by instruction.
    kept: Mutex<FxHashMap<InstrId, Value>>,
    ending: Ending<'f>,
}

impl Fleet {
    /// For a run on these devices, all of which must [`Fleet::join`] once.
    pub fn new(devices: Devices) -> Self {
        Self { peers: Peers::new(devices) }
    }

    /// The devices.
    pub fn devices(&self) -> Devices {
        self.peers.devices
    }

    /// The device of a number. Its memory limit, seed, host and fuel are those of the interpreter, whose
    /// module is the program.
    pub fn join<'f>(&'f self, interpreter: &'f Interpreter<'f>, number: u32) -> Member<'f> {
        let ending = Ending { peers: &self.peers, device: number, failed: true };
        Member { session: interpreter.session(&self.peers, number), kept: Mutex::default(), ending }
    }

    /// The results of `run`, which joins, on each device, by number and what is its own: on threads as a run
    /// of the interpreter has them. A device that gets none is what `refused` says.
    pub fn on_each<A: Send, R: Send>(
        &self,
        own: Vec<A>,
        run: impl Fn(u32, A) -> R + Sync,
        refused: impl Fn(RunError) -> R,
    ) -> Vec<R> {
        self.peers.on_each(own, run, refused)
    }

    /// After all members have ended: why those that wait do so in vain; `None` if none does. Such members
    /// have failed as a consequence, which is no error of its own.
    fn deadlock(&self, module: &Module) -> Option<(Vec<u32>, RunError)> {
        let statuses = self.peers.exchange.statuses();
        let waiting: Vec<u32> = (0..)
            .zip(&statuses)
            .filter(|(_, s)| matches!(s, Status::Waiting { .. }))
            .map(|(d, _)| d)
            .collect();
        if waiting.is_empty() {
            return None;
        }
        let error = report::deadlock(module, self.peers.devices, &statuses);
        Some((waiting, error))
    }
}

impl Fleet {
    /// After all members have ended: what each gave, if all gave something. Errors: that of a member that
    /// failed by itself; else, where members wait in vain, the deadlock, made an error by `deadlocked`.
    pub fn outcome<R, E>(
        &self,
        module: &Module,
        results: Vec<std::result::Result<R, E>>,
        deadlocked: impl FnOnce(RunError) -> E,
    ) -> std::result::Result<Vec<R>, E> {
        let Some((waiting, error)) = self.deadlock(module) else { return results.into_iter().collect() };
        // Those that wait have failed as a consequence of one that failed by itself, or of all together.
        let own = (0..).zip(results).filter(|(number, _)| !waiting.contains(number));
        Err(own.filter_map(|(_, result)| result.err()).next().unwrap_or_else(|| deadlocked(error)))
    }
}

impl Member<'_> {
    /// The number of the device.
    pub fn number(&self) -> u32 {
        self.session.number
    }

    /// The value of an instruction of the program on these operands; of an operand whose value was kept,
    /// `None`. The result is `None` if it is promised: then it is kept for its users.
    ///
    /// Errors: those of the instruction; [`crate::ErrorKind::Unsupported`] of one that runs other
    /// instructions in a loop.
    pub fn evaluate(&self, id: InstrId, operands: Vec<Option<Value>>) -> Result<Option<Value>> {
        let instr = self.session.module().instr(id);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut args = Args::with_capacity(operands.len());
        for (value, operand) in operands.into_iter().zip(instr.operands()) {
            args.push(match value {
                Some(value) => value,
                None => match kept.get(operand) {
                    Some(value) => value.clone(),
                    None => return Err(RunError::unsupported(instr, "of an operand without a value")),
                },
            });
        }
        let value = self.session.evaluate(id, args)?;
        if value.has_pending() {
            kept.insert(id, value);
            return Ok(None);
        }
        Ok(Some(value))
    }

    /// The program has finished on this device.
    pub fn finish(mut self) {
        self.ending.failed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Tensor};

    const SUM: &str = "HloModule m, replica_count=2

add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b)
}

ENTRY e {
  x = s32[2] parameter(0)
  start = s32[2] all-reduce-start(x), replica_groups={}, to_apply=add
  done = s32[2] all-reduce-done(start)
  ROOT again = s32[2] all-reduce(done), replica_groups={}, to_apply=add
}
";

    fn members<R: Send>(
        text: &str,
        run: impl Fn(&Member<'_>, &Module) -> R + Sync,
    ) -> (Vec<R>, Option<RunError>) {
        let module =
            hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default()).module.expect("it parses");
        let devices = Devices::new(2, 1).expect("two devices");
        let (interpreter, fleet) = (Interpreter::new(&module, Options::default()), Fleet::new(devices));
        let one = |number, ()| {
            let member = fleet.join(&interpreter, number);
            let result = run(&member, &module);
            member.finish();
            result
        };
        let results = fleet.on_each(vec![(), ()], one, |e| panic!("{e}"));
        (results, fleet.deadlock(&module).map(|(_, e)| e))
    }

    fn named(module: &Module, name: &str) -> InstrId {
        module.instructions(module.entry()).find(|&i| &*module.instr(i).name == name).expect("it is there")
    }

    #[test]
    fn single_instructions_meet_as_those_of_a_run_do() {
        let (results, stuck) = members(SUM, |member, module| {
            let x = Value::from(Tensor::from_vec([2i64].as_slice(), vec![1 + member.number() as i32, 10]));
            let of = |name, operand| member.evaluate(named(module, name), vec![operand]).expect("it runs");
            assert!(of("start", Some(x)).is_none(), "promised, and kept");
            let again = of("again", of("done", None)).expect("a value");
            again.expect_array().slice::<i32>().to_vec()
        });
        assert_eq!(results, [[6, 40], [6, 40]]);
        assert!(stuck.is_none());
    }

    #[test]
    fn who_waits_in_vain_is_released() {
        let (results, stuck) = members(SUM, |member, module| {
            let x = Value::from(Tensor::from_vec([2i64].as_slice(), vec![1, 2]));
            member.number() == 1 || member.evaluate(named(module, "again"), vec![Some(x)]).is_err()
        });
        assert_eq!(results, [true, true]);
        let message = stuck.expect("device 0 waits").to_string();
        assert!(message.contains("deadlock: 1 of 2 devices waits"), "{message}");
    }
}
