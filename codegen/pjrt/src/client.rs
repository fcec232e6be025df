//! Clients, and the plugin as a whole.
//!
//! A client is made with options of its caller, or of the environment: `HLO_MODE` (`compile`, `interpret` or
//! `check`), `HLO_PLATFORM_NAME`, `HLO_CUSTOM_CALLS`, `HLO_THREADS`, `HLO_NUM_DEVICES`, `HLO_MEMORY_LIMIT`
//! and `HLO_LOG`, which are the options `mode`, `platform_name`, `custom_calls`, `threads`, `num_devices`,
//! `memory_limit` and `log`; and in check mode of `HLO_CHECK`, `HLO_CHECK_ACTION`, `HLO_CHECK_SAVE` and
//! `HLO_CHECK_LOG` (`check`, `check_action`, ...).

use std::env;
use std::sync::{Arc, OnceLock};

use hlo_client::ClientOptions;
use hlo_client::custom_call::CustomCalls;
use hlo_interp::device::MAX_DEVICES;
use hlo_mlir::bytecode::Version;

use crate::api::structs::{
    PJRT_Client_AddressableDevices_Args, PJRT_Client_AddressableMemories_Args, PJRT_Client_Create_Args,
    PJRT_Client_DefaultDeviceAssignment_Args, PJRT_Client_Destroy_Args, PJRT_Client_Devices_Args,
    PJRT_Client_LookupAddressableDevice_Args, PJRT_Client_LookupDevice_Args, PJRT_Client_PlatformName_Args,
    PJRT_Client_PlatformVersion_Args, PJRT_Client_ProcessIndex_Args, PJRT_Client_TopologyDescription_Args,
    PJRT_Plugin_Attributes_Args, PJRT_Plugin_Initialize_Args,
};
use crate::border;
use crate::check;
use crate::device::{Device, DeviceDescription};
use crate::error::{Code, Failure, Result, of_client};
use crate::ffi;
use crate::handles::{self, Handle, as_pointers, object};
use crate::memory::{KINDS, Memory};
use crate::opaque;
use crate::topology::Topology;
use crate::values::{self, NamedValues, Value};

/// What lowers programs for which platform: JAX picks lowerings, callbacks and caches by this name.
const DEFAULT_PLATFORM_NAME: &str = "cpu";

/// `PJRT_Client`.
#[derive(Debug)]
pub struct Client {
    /// The client that compiles and runs.
    pub engine: hlo_client::Client,
    /// Whether programs are interpreted.
    pub interprets: bool,
    /// The fallback for whole programs that the compiler does not support.
    pub interpreter: hlo_client::Client,
    /// Whether it says on the standard error what it does.
    pub logs: bool,
    /// Options of checking executions, if they are.
    pub checks: Option<check::Settings>,
    platform_name: String,
    platform_version: String,
    descriptions: Box<[Handle<DeviceDescription>]>,
    devices: Box<[Handle<Device>]>,
    memories: Box<[Handle<Memory>]>,
    topology: Handle<Topology>,
}

object!(Client, "client");

/// Options of a client.
#[derive(Debug, Default)]
struct Options {
    mode: Option<String>,
    platform_name: Option<String>,
    custom_calls: Option<String>,
    threads: usize,
    num_devices: Option<usize>,
    /// Bytes.
    memory_limit: Option<u64>,
    log: bool,
    check: Option<String>,
    check_action: Option<String>,
    check_save: Option<String>,
    check_log: Option<String>,
}

impl Options {
    fn of_environment() -> Result<Self> {
        let text = |name: &str| env::var(name).ok().filter(|v| !v.is_empty());
        let number = |name: &str| match text(name) {
            Some(n) => {
                let parsed = n.parse::<usize>();
                parsed.map(Some).map_err(|_| Failure::invalid(format!("{name}={n} is no number")))
            }
            None => Ok(None),
        };
        let threads = number("HLO_THREADS")?.unwrap_or(0);
        Ok(Self {
            mode: text("HLO_MODE"),
            platform_name: text("HLO_PLATFORM_NAME"),
            custom_calls: text("HLO_CUSTOM_CALLS"),
            threads,
            num_devices: number("HLO_NUM_DEVICES")?,
            memory_limit: number("HLO_MEMORY_LIMIT")?.map(|bytes| bytes as u64),
            log: text("HLO_LOG").is_some_and(|value| value != "0"),
            check: text("HLO_CHECK"),
            check_action: text("HLO_CHECK_ACTION"),
            check_save: text("HLO_CHECK_SAVE"),
            check_log: text("HLO_CHECK_LOG"),
        })
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<()> {
        match (name, value) {
            ("mode", Value::Text(text)) => self.mode = Some(text.clone()),
            ("custom_calls", Value::Text(text)) => self.custom_calls = Some(text.clone()),
            ("platform_name", Value::Text(text)) => self.platform_name = Some(text.clone()),
            ("threads", Value::Int(n)) if (0..=1 << 16).contains(n) => self.threads = *n as usize,
            ("num_devices", Value::Int(n)) if (1..=i64::from(MAX_DEVICES)).contains(n) => {
                self.num_devices = Some(*n as usize);
            }
            ("memory_limit", Value::Int(n)) if *n >= 0 => self.memory_limit = Some(n.cast_unsigned()),
            ("check", Value::Text(text)) => self.check = Some(text.clone()),
            ("check", Value::Int(n)) => self.check = Some(n.to_string()),
            ("check_action", Value::Text(text)) => self.check_action = Some(text.clone()),
            ("check_save", Value::Text(text)) => self.check_save = Some(text.clone()),
            ("check_log", Value::Text(text)) => self.check_log = Some(text.clone()),
            ("log", Value::Bool(log)) => self.log = *log,
            ("log", Value::Int(log)) => self.log = *log != 0,
            (
                "mode" | "platform_name" | "custom_calls" | "threads" | "num_devices" | "memory_limit"
                | "log" | "check" | "check_action" | "check_save" | "check_log",
                other,
            ) => {
                return Err(Failure::invalid(format!("the client option `{name}` cannot be {other:?}")));
            }
            // Callers pass options that are for other plugins too.
            (_others, _) => {}
        }
        Ok(())
    }
}

impl Options {
    /// Options of checking executions.
    fn checks(&self) -> Result<check::Settings> {
        if !check::IS_THERE {
            return Err(Failure::unimplemented("this build of the plugin has no check mode"));
        }
        let wrong = |name: &str, value: &str, can: &str| {
            Failure::invalid(format!("{name} is `{value}`; it can be {can}"))
        };
        let sample = self.check.as_deref().unwrap_or("1");
        let every = check::sample(sample).ok_or_else(|| wrong("HLO_CHECK", sample, "`1`, `1/N` or `0`"))?;
        let action = match self.check_action.as_deref() {
            None | Some("raise") => check::Action::Raise,
            Some("log") => check::Action::Log,
            Some(other) => return Err(wrong("HLO_CHECK_ACTION", other, "`raise` or `log`")),
        };
        let save = self.check_save.as_deref().unwrap_or(".");
        let save = (save != "none").then(|| save.into());
        // pytest says which test runs.
        let test = || env::var("PYTEST_CURRENT_TEST").ok();
        Ok(check::Settings { every, action, save, log: self.check_log.as_ref().map(Into::into), test })
    }
}

impl Client {
    fn new(options: Options) -> Result<Self> {
        let before_built_in = match options.custom_calls.as_deref() {
            None | Some("built-in") => false,
            Some("registered") => true,
            Some(other) => {
                let message =
                    format!("custom calls are `{other}`; they can be `built-in` or `registered` first");
                return Err(Failure::invalid(message));
            }
        };
        let custom_calls = ffi::custom_calls(before_built_in);
        let count = options.num_devices.unwrap_or(1);
        if count == 0 || count > MAX_DEVICES as usize {
            return Err(Failure::invalid(format!("{count} devices; there can be 1 to {MAX_DEVICES}")));
        }
        // What is kept is wanted, and there is no other memory for it.
        let (memory_budget_bytes, never_evict) = (options.memory_limit.or_else(check::memory_there_is), true);
        let of_interpreter = ClientOptions {
            custom_calls: CustomCalls::clone(&custom_calls),
            memory_budget_bytes,
            never_evict,
            ..ClientOptions::default()
        };
        let interpreter = hlo_client::Client::interpreter(of_interpreter).map_err(of_client)?;
        let of_engine = ClientOptions {
            threads: options.threads,
            custom_calls,
            keep_artifacts: true,
            memory_budget_bytes,
            never_evict,
            ..ClientOptions::default()
        };
        let checks = match options.mode.as_deref() {
            Some("check") => Some(options.checks()?),
            Some(_) | None => None,
        };
        let (engine, interprets) = match options.mode.as_deref() {
            None | Some("compile" | "check") => {
                let engine = hlo_client::Client::cpu(of_engine).map_err(of_client)?;
                engine.warm_up();
                (engine, false)
            }
            Some("interpret") => (hlo_client::Client::interpreter(of_engine).map_err(of_client)?, true),
            Some(other) => {
                let message = format!("the mode is `{other}`; it can be `compile`, `interpret` or `check`");
                return Err(Failure::invalid(message));
            }
        };
        let platform_name = options.platform_name.unwrap_or_else(|| DEFAULT_PLATFORM_NAME.to_owned());
        let configuration = hlo_client::Configuration::default();
        let platform_version = match interprets {
            true => format!("interpreter, {}", hlo_client::backend::fingerprint(configuration)),
            false => hlo_client::backend::fingerprint(configuration),
        };
        let (mut descriptions, mut devices, mut memories) = (Vec::new(), Vec::new(), Vec::new());
        for id in 0..count as i32 {
            let description = Handle::new(DeviceDescription::new(id, &platform_name));
            let device = Arc::new(Device::new(id, count, description, engine.clone()));
            let handle = Handle::new(Arc::clone(&device));
            let own: Vec<Handle<Memory>> =
                (0..).zip(KINDS).map(|(n, kind)| Handle::new(Memory::new(id, n, kind, handle))).collect();
            device.set_memories(&own);
            descriptions.push(description);
            devices.push(handle);
            memories.extend(own);
        }
        let topology = Topology {
            platform_name: platform_name.clone(),
            platform_version: platform_version.clone(),
            descriptions: descriptions.as_slice().into(),
        };
        let topology = Handle::new(topology);
        Ok(Self {
            engine,
            interprets,
            interpreter,
            platform_name,
            platform_version,
            logs: options.log,
            checks,
            descriptions: descriptions.into(),
            devices: devices.into(),
            memories: memories.into(),
            topology,
        })
    }

    /// Its devices.
    pub fn devices(&self) -> &[Handle<Device>] {
        &self.devices
    }

    fn device(&self, id: i32) -> Result<Handle<Device>> {
        let found = usize::try_from(id).ok().and_then(|n| self.devices.get(n));
        found.copied().ok_or_else(|| Failure::new(Code::NotFound, format!("there is no device {id}")))
    }

    /// The memory that a caller means by a device, a memory, or neither.
    pub fn memory(&self, device: *mut opaque::Device, memory: *mut opaque::Memory) -> Result<Arc<Memory>> {
        let found = match (memory.is_null(), device.is_null()) {
            (false, _) => handles::get(memory)?,
            (true, false) => handles::get(handles::get(device)?.default_memory()?.pointer())?,
            (true, true) => match self.memories.first() {
                Some(memory) => handles::get(memory.pointer())?,
                None => return Err(Failure::internal("the client has no memory")),
            },
        };
        if self.devices.contains(&found.device) {
            return Ok(found);
        }
        Err(Failure::invalid("the device is another client's"))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.memories.iter().for_each(|m| m.destroy());
        self.devices.iter().for_each(|d| d.destroy());
        self.descriptions.iter().for_each(|d| d.destroy());
        self.topology.destroy();
    }
}

pub(crate) fn plugin_initialize(_args: &mut PJRT_Plugin_Initialize_Args) -> Result<()> {
    Ok(())
}

/// Which StableHLO it reads: the framework writes programs in that version or an older one.
pub(crate) fn plugin_attributes(args: &mut PJRT_Plugin_Attributes_Args) -> Result<()> {
    static ATTRIBUTES: OnceLock<NamedValues> = OnceLock::new();
    let attributes = ATTRIBUTES.get_or_init(|| {
        let version =
            |v: Version| Value::Ints(vec![i64::from(v.major), i64::from(v.minor), i64::from(v.patch)]);
        NamedValues::new(vec![
            ("xla_version".to_owned(), Value::Int(2)),
            ("stablehlo_current_version".to_owned(), version(Version::NEWEST)),
            ("stablehlo_minimum_version".to_owned(), version(Version::OLDEST)),
        ])
    });
    (args.attributes, args.num_attributes) = (attributes.pointer(), attributes.len());
    Ok(())
}

pub(crate) fn create(args: &mut PJRT_Client_Create_Args) -> Result<()> {
    let mut options = Options::of_environment()?;
    for (name, value) in values::read(args.create_options, args.num_options)? {
        options.set(&name, &value)?;
    }
    args.client = handles::give(Client::new(options)?);
    Ok(())
}

pub(crate) fn destroy(args: &mut PJRT_Client_Destroy_Args) -> Result<()> {
    handles::destroy(args.client)
}

pub(crate) fn platform_name(args: &mut PJRT_Client_PlatformName_Args) -> Result<()> {
    let client = handles::get(args.client)?;
    (args.platform_name, args.platform_name_size) =
        (client.platform_name.as_ptr().cast(), client.platform_name.len());
    Ok(())
}

pub(crate) fn platform_version(args: &mut PJRT_Client_PlatformVersion_Args) -> Result<()> {
    let client = handles::get(args.client)?;
    (args.platform_version, args.platform_version_size) =
        (client.platform_version.as_ptr().cast(), client.platform_version.len());
    Ok(())
}

pub(crate) fn process_index(args: &mut PJRT_Client_ProcessIndex_Args) -> Result<()> {
    handles::get(args.client)?;
    args.process_index = 0;
    Ok(())
}

pub(crate) fn devices(args: &mut PJRT_Client_Devices_Args) -> Result<()> {
    let client = handles::get(args.client)?;
    (args.devices, args.num_devices) = (as_pointers(&client.devices), client.devices.len());
    Ok(())
}

pub(crate) fn addressable_devices(args: &mut PJRT_Client_AddressableDevices_Args) -> Result<()> {
    let client = handles::get(args.client)?;
    (args.addressable_devices, args.num_addressable_devices) =
        (as_pointers(&client.devices), client.devices.len());
    Ok(())
}

pub(crate) fn addressable_memories(args: &mut PJRT_Client_AddressableMemories_Args) -> Result<()> {
    let client = handles::get(args.client)?;
    (args.addressable_memories, args.num_addressable_memories) =
        (as_pointers(&client.memories), client.memories.len());
    Ok(())
}

pub(crate) fn lookup_device(args: &mut PJRT_Client_LookupDevice_Args) -> Result<()> {
    args.device = handles::get(args.client)?.device(args.id)?.pointer();
    Ok(())
}

pub(crate) fn lookup_addressable_device(args: &mut PJRT_Client_LookupAddressableDevice_Args) -> Result<()> {
    args.addressable_device = handles::get(args.client)?.device(args.local_hardware_id)?.pointer();
    Ok(())
}

pub(crate) fn topology_description(args: &mut PJRT_Client_TopologyDescription_Args) -> Result<()> {
    args.topology = handles::get(args.client)?.topology.pointer();
    Ok(())
}

/// Computations are assigned to devices in order.
pub(crate) fn default_device_assignment(args: &mut PJRT_Client_DefaultDeviceAssignment_Args) -> Result<()> {
    let client = handles::get(args.client)?;
    let wanted = args.num_replicas.checked_mul(args.num_partitions).and_then(|n| usize::try_from(n).ok());
    let Some(wanted) = wanted.filter(|&n| n > 0 && n <= client.devices.len()) else {
        let message = format!(
            "{} replicas of {} partitions do not fit {} devices",
            args.num_replicas,
            args.num_partitions,
            client.devices.len()
        );
        return Err(Failure::invalid(message));
    };
    if args.default_assignment_size < wanted {
        let message = format!("{wanted} devices do not fit {} elements", args.default_assignment_size);
        return Err(Failure::invalid(message));
    }
    let ids: Vec<i32> = (0..).take(wanted).collect();
    border::write(args.default_assignment, &ids, "the device assignment")
}
