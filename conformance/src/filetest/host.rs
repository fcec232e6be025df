//! The host of a filetest: feeds as texts, read when their shapes are known.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use hlo::Shape;
use hlo_interp::device::host::{Host, Queues, Stream};
use hlo_interp::{Tensor, Value};
use rustc_hash::FxHashMap;

use super::{for_devices, value};
use hlo_engines::engine::flatten;
use hlo_triage::compare::{Tolerance, compare};

/// The host side of a run: inputs and outputs.
#[derive(Debug)]
pub(super) struct TextHost {
    into: Mutex<FxHashMap<(u32, Stream), VecDeque<String>>>,
    out: Queues,
    devices: usize,
}

impl TextHost {
    pub(super) fn new(streams: &[(Stream, Vec<Vec<String>>)], devices: usize) -> Self {
        let mut into: FxHashMap<(u32, Stream), VecDeque<String>> = FxHashMap::default();
        for (stream, lists) in streams {
            // A wrong number of lists shows as an exhausted stream.
            for (device, values) in (0..).zip(for_devices(lists, devices).unwrap_or_default()) {
                into.entry((device, *stream)).or_default().extend(values);
            }
        }
        Self { into: Mutex::new(into), out: Queues::default(), devices }
    }

    fn next(&self, device: u32, stream: Stream, shape: &Shape) -> Result<Value, String> {
        match shape {
            Shape::Array(a) => {
                let mut into = self.into.lock().unwrap_or_else(PoisonError::into_inner);
                let text = into.get_mut(&(device, stream)).and_then(VecDeque::pop_front);
                let array = value::parse(&text.ok_or("there are no more values")?, a)?;
                Ok(Tensor::from_literal(array).into())
            }
            Shape::Tuple(t) => {
                let elements =
                    t.iter().map(|s| self.next(device, stream, s)).collect::<Result<Vec<_>, _>>()?;
                Ok(Value::tuple(elements))
            }
            Shape::Buffer(inner) => self.next(device, stream, inner),
            Shape::Token | Shape::Opaque => Ok(Value::Token),
        }
    }

    /// Whether just this came out.
    pub(super) fn check(
        &self,
        expected: &[(Stream, Vec<Vec<String>>)],
        nan_bits: bool,
    ) -> Result<(), String> {
        for (_, stream) in self.out.streams() {
            if !expected.iter().any(|(s, _)| *s == stream) {
                return Err(format!("something came out of {stream:?} that is not expected"));
            }
        }
        for (stream, lists) in expected {
            for (device, texts) in (0..).zip(for_devices(lists, self.devices)?) {
                let mut arrays = Vec::new();
                let values = self.out.taken(device, *stream);
                values.into_iter().for_each(|v| flatten(v.into_literal(), &mut arrays));
                let source = format!("{stream:?} of device {device}");
                if arrays.len() != texts.len() {
                    return Err(format!("{} arrays came out of {source}, not {}", arrays.len(), texts.len()));
                }
                for (i, (text, array)) in texts.iter().zip(&arrays).enumerate() {
                    let wanted = value::parse(text, &array.shape()).map_err(|e| format!("{source}: {e}"))?;
                    if !compare(&wanted, array, Tolerance::Exact, nan_bits).passes() {
                        let got = hlo_triage::report::array_text(array);
                        return Err(format!("array {i} out of {source} is {got}, not {text}"));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Host for TextHost {
    fn infeed(&self, device: u32, shape: &Shape, _config: &str) -> Result<Value, String> {
        self.next(device, Stream::Feed, shape)
    }

    fn outfeed(&self, device: u32, value: &Value, config: &str) -> Result<(), String> {
        self.out.outfeed(device, value, config)
    }

    fn receive(&self, device: u32, channel: i64, shape: &Shape) -> Result<Value, String> {
        self.next(device, Stream::Channel(channel), shape)
    }

    fn send(&self, device: u32, channel: i64, value: &Value) -> Result<(), String> {
        self.out.send(device, channel, value)
    }
}
