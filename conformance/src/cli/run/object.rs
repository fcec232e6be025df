//! What `hlo run --json` prints.

use serde::Serialize;

use super::certified::Object as Comparison;
use crate::cli::watch::StatsObject;
use hlo_engines::engine::devices::Chosen;
use hlo_engines::frontend::{JsonError, Stage};
use hlo_system::exit::Exit;

#[derive(Serialize)]
pub(super) struct Object<'a> {
    pub(super) file: &'a str,
    pub(super) ok: bool,
    pub(super) exit: u8,
    pub(super) stage: Stage,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) errors: Vec<JsonError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) module: Option<String>,
    pub(super) platform: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) devices: Option<DevicesObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) results: Vec<ResultObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) accumulate: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fuel: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peak_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ms: Option<TimesObject>,
    /// Which instruction's value the results are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stopped_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stats: Option<StatsObject>,
    /// The result of the comparison with the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) comparison: Option<Comparison>,
}

/// On how many devices the program ran.
#[derive(Serialize)]
pub(super) struct DevicesObject {
    replicas: u32,
    partitions: u32,
    /// The origin of the number, if it is inferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    inferred: Option<String>,
}

impl DevicesObject {
    pub(super) fn of(chosen: Chosen) -> Self {
        let Chosen { devices, inferred } = chosen;
        Self { replicas: devices.replicas(), partitions: devices.partitions(), inferred }
    }
}

impl<'a> Object<'a> {
    pub(super) fn new(file: &'a str, stage: Stage, exit: Exit) -> Self {
        Self {
            file,
            ok: exit == Exit::Ok,
            exit: exit.code(),
            stage,
            errors: Vec::new(),
            module: None,
            platform: "",
            devices: None,
            seed: None,
            results: Vec::new(),
            accumulate: None,
            fuel: None,
            peak_bytes: None,
            ms: None,
            stopped_at: None,
            trace: None,
            stats: None,
            comparison: None,
        }
    }
}

#[derive(Serialize)]
pub(super) struct ResultObject {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) element_type: &'static str,
    pub(super) shape: Vec<i64>,
    /// As text that reads back, shortened as on the screen.
    pub(super) value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) check: Option<CheckObject>,
}

#[derive(Serialize)]
pub(super) struct CheckObject {
    pub(super) pass: bool,
    pub(super) tolerance: String,
    pub(super) elements: usize,
    pub(super) same_bits: usize,
    pub(super) wrong: usize,
    pub(super) max_ulp: Option<u64>,
    pub(super) max_abs: f64,
    pub(super) max_rel: f64,
    pub(super) reason: String,
}

#[derive(Serialize)]
pub(super) struct TimesObject {
    pub(super) read: f64,
    pub(super) parse: f64,
    pub(super) verify: f64,
    pub(super) inputs: f64,
    pub(super) run: f64,
}
