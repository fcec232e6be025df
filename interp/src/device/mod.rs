//! Several devices in one process: a run of a program on replicas and partitions, one thread a device.
//!
//! Every device runs the whole program, with memory, fuel and random states of its own; what they exchange
//! goes through an [`Exchange`]. **Invariants:** values that a device takes from others are its own copies,
//! and what it hands in counts to it until it has taken the result, so its account of memory depends on its
//! own instructions alone. Hence results, and which devices fail how, are functions of program, arguments and
//! options: a device reads from others only what it waits for by name (a Kahn network).
//!
//! | part | holds |
//! |---|---|
//! | [`exchange`] | rendezvous of devices, waiting, the detection of deadlocks |
//! | [`participants`] | replica groups and source-target pairs as devices |
//! | [`fleet`] | single instructions for programs that something else executes |
//! | [`pending`] | values that are promised and not there yet |
//! | [`tiling`], [`sdy`] | which device has which shard of an array, by a sharding, and by one of Shardy's |
//! | [`report`] | the error of a run that is stuck |
//! | [`host`] | infeed, outfeed, transfers to and from hosts |

pub(crate) mod exchange;
pub mod fleet;
pub mod host;
pub(crate) mod participants;
pub(crate) mod pending;
mod report;
pub(crate) mod sdy;
pub mod tiling;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use hlo::diag::codes;
use hlo::{InstrId, Instruction};
use hlo_threads::cancel;
use rustc_hash::FxHashMap;

use crate::engine::{Interpreter, RunStats};
use crate::error::{ErrorKind, Result, RunError};
use crate::value::Value;
use exchange::{Exchange, Status};
use participants::Participants;

/// The maximum number of devices of a run.
pub const MAX_DEVICES: u32 = 1024;

/// Stack of a device's thread: values nest as deep as the program says. It is memory only as far as it is
/// used.
const STACK_BYTES: usize = 512 << 20;

/// The device of an instance of the program, among those of a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Device {
    /// `replica-id`
    pub replica: u32,
    /// `partition-id`
    pub partition: u32,
}

/// The devices of a run. Device `replica * partitions + partition` is that replica and partition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Devices {
    pub(crate) replicas: u32,
    pub(crate) partitions: u32,
}

impl Devices {
    /// One device.
    pub const ONE: Devices = Devices { replicas: 1, partitions: 1 };

    /// So many of each; `None` if there are none of one, or more than [`MAX_DEVICES`] devices.
    pub fn new(replicas: i64, partitions: i64) -> Option<Devices> {
        let count = replicas.checked_mul(partitions)?;
        let fits = replicas > 0 && partitions > 0 && count <= i64::from(MAX_DEVICES);
        fits.then_some(Devices { replicas: replicas as u32, partitions: partitions as u32 })
    }

    /// Number of replicas.
    pub fn replicas(self) -> u32 {
        self.replicas
    }

    /// Number of partitions.
    pub fn partitions(self) -> u32 {
        self.partitions
    }

    /// Number of devices.
    pub fn count(self) -> u32 {
        self.replicas * self.partitions
    }

    /// The device of a number below [`Devices::count`].
    pub fn device(self, number: u32) -> Device {
        Device { replica: number / self.partitions, partition: number % self.partitions }
    }
}

impl Default for Devices {
    fn default() -> Self {
        Devices::ONE
    }
}

/// The state that the devices of a run share.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) devices: Devices,
    pub(crate) exchange: Exchange,
    participants: Mutex<FxHashMap<InstrId, Arc<Participants>>>,
}

impl Peers {
    pub(crate) fn new(devices: Devices) -> Self {
        let exchange = Exchange::new(devices.count() as usize);
        Self { devices, exchange, participants: Mutex::default() }
    }

    /// The groups of an instruction. Errors: what is wrong with them.
    pub(crate) fn participants(&self, id: InstrId, instr: &Instruction) -> Result<Arc<Participants>, String> {
        let mut known = self.participants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(&id) {
            return Ok(found.clone());
        }
        let found = Arc::new(Participants::of_groups(instr, self.devices)?);
        known.insert(id, found.clone());
        Ok(found)
    }

    /// The results of `run` on each device, by number and what is its own; where there are several, each has
    /// a thread. A device that gets none has ended, so that nobody waits for it, and is what `refused` says.
    fn on_each<A: Send, R: Send>(
        &self,
        own: Vec<A>,
        run: impl Fn(u32, A) -> R + Sync,
        refused: impl Fn(RunError) -> R,
    ) -> Vec<R> {
        let count = own.len();
        if count == 1 {
            return own.into_iter().map(|own| run(0, own)).collect();
        }
        let stack = (STACK_BYTES / count.max(1) * 16).clamp(8 << 20, STACK_BYTES);
        let run = &run;
        let token = cancel::current();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..)
                .zip(own)
                .map(|(device, own)| {
                    let token = token.clone();
                    let spawned = thread::Builder::new()
                        .stack_size(stack)
                        .spawn_scoped(scope, move || cancel::with(token, || run(device, own)));
                    if spawned.is_err() {
                        self.exchange.end(device, true);
                    }
                    spawned
                })
                .collect();
            let ended = threads.into_iter().map(|spawned| match spawned {
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(e) => {
                    let message = format!("no thread for the device: {e}");
                    refused(RunError::outside(ErrorKind::OutOfMemory, codes::OUT_OF_MEMORY, message))
                }
            });
            ended.collect()
        })
    }
}

/// Says that a device has ended, however its thread ends.
#[derive(Debug)]
struct Ending<'a> {
    peers: &'a Peers,
    device: u32,
    failed: bool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.peers.exchange.end(self.device, self.failed);
    }
}

impl Interpreter<'_> {
    /// Runs the entry computation on one device.
    pub(crate) fn run_alone(&self, args: Vec<Value>) -> Result<(Value, RunStats)> {
        let Some(alone) = &self.alone else {
            let mut results = self.run_devices(Devices::ONE, vec![args])?;
            return Ok(results.pop().expect("invariant: there are as many results as devices"));
        };
        self.check_arguments(&args)?;
        // A program that exchanges nothing waits for nobody, and nobody for its end.
        self.run_one(alone, 0, args)
    }

    /// Runs the entry computation on several devices. `args[k]` are the values of its parameters on device
    /// `k`; so are the results in order of the devices.
    ///
    /// Errors: that of the device with the lowest number among those that failed by themselves; else the
    /// deadlock. A failed device does not stop the others, which run on until they end, fail, or wait for it.
    /// Must not be called from a task of the thread pool that the operations use.
    pub fn run_devices(&self, devices: Devices, args: Vec<Vec<Value>>) -> Result<Vec<(Value, RunStats)>> {
        let count = devices.count();
        if args.len() != count as usize {
            let message = format!("arguments for {} devices were given to {count}", args.len());
            return Err(RunError::outside(ErrorKind::Arguments, codes::WRONG_ARGUMENTS, message));
        }
        for (k, args) in (0..).zip(&args) {
            self.check_arguments(args).map_err(|e| e.on(devices, k))?;
        }
        let peers = Peers::new(devices);
        let run = |device: u32, args: Vec<Value>| {
            let mut ending = Ending { peers: &peers, device, failed: true };
            let result = self.run_one(&peers, device, args);
            ending.failed = result.is_err();
            result
        };
        let outcomes = peers.on_each(args, run, Err);
        let statuses = peers.exchange.statuses();
        let mut stuck = false;
        let mut results = Vec::with_capacity(outcomes.len());
        for ((device, outcome), status) in (0..).zip(outcomes).zip(&statuses) {
            match (outcome, status) {
                (Ok(result), _) => results.push(result),
                // Released because the run is stuck: the consequence of something else, or of all together.
                (Err(_), Status::Waiting { .. }) => stuck = true,
                (Err(e), Status::Running | Status::Finished | Status::Failed) => {
                    return Err(e.on(devices, device));
                }
            }
        }
        if stuck { Err(report::deadlock(self.module(), devices, &statuses)) } else { Ok(results) }
    }
}
