//! Infeed, outfeed and host transfers as `.npz` files.
//!
//! The arrays of a stream are numbered in the order in which the program consumes or makes them, tuples
//! flattened: `in0, in1, ...` go in and `out0, out1, ...` come out. Those of transfers over channel C have
//! the prefix `cC.`, those of device K of several the prefix `dK.`: `d1.c3.in0` is the first array that the
//! host sends device 1 over channel 3. What goes in without `dK.` is for every device that has no stream of
//! its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hlo::{ArrayLiteral, Shape};
use hlo_interp::device::host::{Host, NoHost, Queues, Stream};
use hlo_interp::{Devices, Tensor, Value};
use rustc_hash::FxHashMap;

use crate::differential::Hosts;
use hlo_engines::engine::flatten;
use hlo_system::exit::Failure;
use hlo_system::npz::Npz;

/// The source of runs' feeds.
#[derive(Clone, Debug, Default)]
pub struct Feeds {
    /// The `.npz` file of what goes in; without it nothing does.
    pub infeed: Option<String>,
    /// The maximum number of bytes of an array.
    pub limit: u64,
}

/// The host side of the devices in one run.
#[derive(Debug)]
pub struct FeedHost {
    devices: Devices,
    infeed: Option<Mutex<Source>>,
    taken: Queues,
}

/// The file of what goes in, and how far it was read.
struct Source {
    npz: Npz,
    next: FxHashMap<(u32, Stream), usize>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("next", &self.next).finish_non_exhaustive()
    }
}

impl Feeds {
    /// For a new run. Errors: the file cannot be read.
    pub fn host(&self, devices: Devices) -> Result<Arc<FeedHost>, Failure> {
        let source = |path: &String| -> Result<_, Failure> {
            Ok(Mutex::new(Source { npz: Npz::open(path, self.limit)?, next: FxHashMap::default() }))
        };
        let infeed = self.infeed.as_ref().map(source).transpose()?;
        Ok(Arc::new(FeedHost { devices, infeed, taken: Queues::default() }))
    }
}

impl Feeds {
    /// For any number of runs. Errors: the file cannot be read now; one that goes away later feeds nothing.
    pub fn hosts(&self, devices: Devices) -> Result<Hosts, Failure> {
        self.host(devices)?;
        let feeds = self.clone();
        Ok(Hosts::new(move || match feeds.host(devices) {
            Ok(host) => host,
            Err(_) => Arc::new(NoHost),
        }))
    }
}

/// `c3.` of a channel, nothing of a feed.
fn stream_prefix(stream: Stream) -> String {
    match stream {
        Stream::Feed => String::new(),
        Stream::Channel(c) => format!("c{c}."),
    }
}

impl FeedHost {
    fn source(&self) -> Option<MutexGuard<'_, Source>> {
        Some(self.infeed.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn next(&self, device: u32, stream: Stream, shape: &Shape) -> Result<Value, String> {
        let Some(mut source) = self.source() else {
            return Err("nothing feeds the device (--infeed)".into());
        };
        let stem = stream_prefix(stream);
        let own = format!("d{device}.{stem}in");
        let prefix = if self.devices.count() > 1 && source.npz.contains(&format!("{own}0")) {
            own
        } else {
            format!("{stem}in")
        };
        source.build(shape, (device, stream), &prefix)
    }

    /// The outputs: names and arrays, device by device.
    pub fn taken(&self) -> Vec<(String, ArrayLiteral)> {
        let mut all = Vec::new();
        for (device, stream) in self.taken.streams() {
            let of = if self.devices.count() > 1 { format!("d{device}.") } else { String::new() };
            let mut arrays = Vec::new();
            for value in self.taken.taken(device, stream) {
                flatten(value.into_literal(), &mut arrays);
            }
            let stem = stream_prefix(stream);
            all.extend(arrays.into_iter().enumerate().map(|(i, a)| (format!("{of}{stem}out{i}"), a)));
        }
        all
    }
}

impl Source {
    fn build(&mut self, shape: &Shape, of: (u32, Stream), prefix: &str) -> Result<Value, String> {
        match shape {
            Shape::Array(a) => {
                let next = self.next.entry(of).or_default();
                let name = format!("{prefix}{next}");
                if !self.npz.contains(&name) {
                    return Err(format!("there are no more values: no array {name} in the file"));
                }
                *next += 1;
                let array = self.npz.array(&name, a).map_err(|f| f.message)?;
                Ok(Tensor::from_literal(array).into())
            }
            Shape::Tuple(t) => {
                let elements = t.iter().map(|s| self.build(s, of, prefix)).collect::<Result<Vec<_>, _>>()?;
                Ok(Value::tuple(elements))
            }
            Shape::Buffer(inner) => self.build(inner, of, prefix),
            Shape::Token => Ok(Value::Token),
            Shape::Opaque => Err("an opaque value cannot be fed".into()),
        }
    }
}

impl Host for FeedHost {
    fn infeed(&self, device: u32, shape: &Shape, _config: &str) -> Result<Value, String> {
        self.next(device, Stream::Feed, shape)
    }

    fn outfeed(&self, device: u32, value: &Value, config: &str) -> Result<(), String> {
        self.taken.outfeed(device, value, config)
    }

    fn receive(&self, device: u32, channel: i64, shape: &Shape) -> Result<Value, String> {
        self.next(device, Stream::Channel(channel), shape)
    }

    fn send(&self, device: u32, channel: i64, value: &Value) -> Result<(), String> {
        self.taken.send(device, channel, value)
    }
}
