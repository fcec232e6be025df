//! Values that are promised and not there yet.
//!
//! A start hands in what its device contributes and yields a [`Pending`] where its result will be. It goes
//! wherever a value goes: into tuples, through calls and loops. Whatever looks at a value first waits for it
//! ([`Session::settle`]); a done is nothing but such a look.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use hlo::diag::codes;
use hlo::{InstrId, Shape};
use rustc_hash::FxHashMap;

use super::exchange::{RendezvousList, Stuck};
use crate::engine::Session;
use crate::error::{ErrorKind, Result, RunError};
use crate::memory::Charge;
use crate::ops::{self, Args, Cx, Finish};
use crate::plan::{Looks, Step};
use crate::value::Value;

/// The promise of a value; see the module's documentation.
#[derive(Debug)]
pub struct Pending {
    /// The operation that the value is the result of.
    pub(crate) start: InstrId,
    /// The shape of the value.
    pub(crate) shape: Shape,
    /// The rendezvous that must be complete.
    pub(crate) awaited: RendezvousList,
    /// How the value is computed from the contributions of others.
    pub(crate) finish: Finish,
    /// Under which number the charge for what was handed in is kept.
    pub(crate) deposit: u64,
    pub(crate) value: OnceLock<Value>,
}

/// The exchanges of a device with others.
#[derive(Debug, Default)]
pub(crate) struct Traffic(OnceLock<Box<Mutex<Counts>>>);

#[derive(Debug, Default)]
struct Counts {
    /// The number of executions of each collective.
    executions: FxHashMap<InstrId, u64>,
    /// The number of transfers, by channel, other end, and whether they are sends.
    transfers: FxHashMap<(i64, u32, bool), u64>,
    /// Number of the last deposit.
    last: u64,
    /// Charges for what was handed in and whose result was not taken yet.
    deposits: FxHashMap<u64, Charge>,
}

impl Traffic {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an execution of a collective; returns how many there were before.
    pub(crate) fn execution(&self, id: InstrId) -> u64 {
        let mut counts = self.counts();
        let n = counts.executions.entry(id).or_default();
        *n += 1;
        *n - 1
    }

    /// Counts a transfer over a channel to or from another device; returns how many there were before.
    pub(crate) fn transfer(&self, channel: i64, other: u32, sends: bool) -> u64 {
        let mut counts = self.counts();
        let n = counts.transfers.entry((channel, other, sends)).or_default();
        *n += 1;
        *n - 1
    }

    /// Keeps a charge until [`Traffic::settle`] of the number returned; if that never comes, until the end of
    /// the run.
    pub(crate) fn deposit(&self, charge: Charge) -> u64 {
        let mut counts = self.counts();
        counts.last += 1;
        let number = counts.last;
        counts.deposits.insert(number, charge);
        number
    }

    fn settle(&self, deposit: u64) {
        self.counts().deposits.remove(&deposit);
    }
}

impl Session<'_> {
    /// Waits for what a step looks at among its operands.
    pub(crate) fn settle_all(&self, args: &mut Args, step: &Step) -> Result<()> {
        for value in args {
            let looks = match value {
                Value::Array(_) | Value::Token => false,
                Value::Tuple(_) => step.looks == Looks::Inside,
                Value::Pending(_) => true,
            };
            if looks {
                *value = self.settle(std::mem::replace(value, Value::Token), step.id)?;
            }
        }
        Ok(())
    }

    /// A value with whatever is promised inside waited for. `at` is the instruction that looks at it.
    pub(crate) fn settle(&self, value: Value, at: InstrId) -> Result<Value> {
        match value {
            Value::Pending(p) => self.fulfil(&p, at),
            // As deep as its shape nests, which the parser bounds.
            Value::Tuple(elements) if elements.iter().any(Value::has_pending) => {
                let settled: Result<Vec<Value>> =
                    elements.iter().map(|e| self.settle(e.clone(), at)).collect();
                settled.map(Value::tuple)
            }
            Value::Array(_) | Value::Tuple(_) | Value::Token => Ok(value),
        }
    }

    /// Waits until a promised value is there.
    fn fulfil(&self, pending: &Pending, at: InstrId) -> Result<Value> {
        if let Some(value) = pending.value.get() {
            return Ok(value.clone());
        }
        if let Err(Stuck) = self.peers.exchange.wait(self.number, at, &pending.awaited) {
            // Replaced by the report of the whole run.
            let instr = self.module().instr(at);
            return Err(RunError::at(
                instr,
                ErrorKind::Trap,
                codes::DEADLOCKED,
                "waits for what never comes",
            ));
        }
        let (id, instr) = (pending.start, self.module().instr(pending.start));
        let cx = Cx { session: self, id, instr, depth: 0, lazy: false, prepared: None };
        let mut value = ops::finish_collective(&cx, pending)?;
        value.charge(&self.meter);
        self.traffic.settle(pending.deposit);
        Ok(pending.value.get_or_init(|| value).clone())
    }
}
