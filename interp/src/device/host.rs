//! What is outside of the devices: infeed, outfeed, transfers to and from hosts.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hlo::Shape;
use rustc_hash::FxHashMap;

use crate::value::Value;

/// The other end of `infeed`, `outfeed`, and of `send` and `recv` with `is_host_transfer=true`.
///
/// Called from the threads of the devices, for each device in the order of its program. An error stops the
/// program at the instruction; it is one sentence without a period. What is given must have the shape that is
/// asked for (a dynamic dimension may be smaller than its bound), or the program stops too. A call may block;
/// as long as it does its device counts as running.
pub trait Host: Send + Sync + fmt::Debug {
    /// The next value of a device's infeed. `config` is the instruction's `infeed_config`.
    fn infeed(&self, device: u32, shape: &Shape, config: &str) -> Result<Value, String>;

    /// Takes the next value of a device's outfeed. `config` is the instruction's `outfeed_config`.
    fn outfeed(&self, device: u32, value: &Value, config: &str) -> Result<(), String>;

    /// The next value for a device over a channel.
    fn receive(&self, device: u32, channel: i64, shape: &Shape) -> Result<Value, String>;

    /// Takes the next value from a device over a channel.
    fn send(&self, device: u32, channel: i64, value: &Value) -> Result<(), String>;
}

/// No host: nothing comes in, and what goes out is dropped.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn infeed(&self, _device: u32, _shape: &Shape, _config: &str) -> Result<Value, String> {
        Err("nothing feeds the device".into())
    }

    fn outfeed(&self, _device: u32, _value: &Value, _config: &str) -> Result<(), String> {
        Ok(())
    }

    fn receive(&self, _device: u32, channel: i64, _shape: &Shape) -> Result<Value, String> {
        Err(format!("no host sends over channel {channel}"))
    }

    fn send(&self, _device: u32, _channel: i64, _value: &Value) -> Result<(), String> {
        Ok(())
    }
}

/// The values of a stream: the feed of a device, or one of its channels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stream {
    /// Infeed or outfeed.
    Feed,
    /// Transfers over a channel.
    Channel(i64),
}

/// Values given beforehand and values collected, in memory.
#[derive(Debug, Default)]
pub struct Queues(Mutex<Ends>);

#[derive(Debug, Default)]
struct Ends {
    into: FxHashMap<(u32, Stream), VecDeque<Value>>,
    out: FxHashMap<(u32, Stream), Vec<Value>>,
}

impl Queues {
    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a value for a device.
    pub fn give(&self, device: u32, stream: Stream, value: Value) {
        self.ends().into.entry((device, stream)).or_default().push_back(value);
    }

    /// The outputs of a device, in order.
    pub fn taken(&self, device: u32, stream: Stream) -> Vec<Value> {
        self.ends().out.get(&(device, stream)).cloned().unwrap_or_default()
    }

    /// The streams that something came out of, in order.
    pub fn streams(&self) -> Vec<(u32, Stream)> {
        let mut streams: Vec<_> = self.ends().out.keys().copied().collect();
        streams.sort_unstable();
        streams
    }

    fn next(&self, device: u32, stream: Stream) -> Option<Value> {
        self.ends().into.get_mut(&(device, stream))?.pop_front()
    }

    fn take(&self, device: u32, stream: Stream, value: &Value) {
        // A copy, so that the device's account does not depend on what becomes of it.
        self.ends().out.entry((device, stream)).or_default().push(value.detached());
    }
}

impl Host for Queues {
    fn infeed(&self, device: u32, _shape: &Shape, _config: &str) -> Result<Value, String> {
        self.next(device, Stream::Feed).ok_or_else(|| "the infeed is exhausted".into())
    }

    fn outfeed(&self, device: u32, value: &Value, _config: &str) -> Result<(), String> {
        self.take(device, Stream::Feed, value);
        Ok(())
    }

    fn receive(&self, device: u32, channel: i64, _shape: &Shape) -> Result<Value, String> {
        let next = self.next(device, Stream::Channel(channel));
        next.ok_or_else(|| format!("the host sends no more over channel {channel}"))
    }

    fn send(&self, device: u32, channel: i64, value: &Value) -> Result<(), String> {
        self.take(device, Stream::Channel(channel), value);
        Ok(())
    }
}
