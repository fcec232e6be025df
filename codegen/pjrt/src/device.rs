//! Devices: this machine's processor, as often as a client wants.

use std::ffi::c_void;
use std::sync::OnceLock;

use crate::api::structs::{
    PJRT_Device_AddressableMemories_Args, PJRT_Device_DefaultMemory_Args, PJRT_Device_GetAttributes_Args,
    PJRT_Device_GetDescription_Args, PJRT_Device_IsAddressable_Args, PJRT_Device_LocalHardwareId_Args,
    PJRT_Device_MemoryStats_Args, PJRT_DeviceDescription_Attributes_Args,
    PJRT_DeviceDescription_DebugString_Args, PJRT_DeviceDescription_Id_Args,
    PJRT_DeviceDescription_Kind_Args, PJRT_DeviceDescription_ProcessIndex_Args,
    PJRT_DeviceDescription_ToString_Args,
};
use crate::error::{Failure, Result};
use crate::handles::{self, Handle, as_pointers, object};
use crate::memory::Memory;

/// `PJRT_Device`.
#[derive(Debug)]
pub struct Device {
    /// Its number.
    pub id: i32,
    /// How many devices its client has.
    count: usize,
    description: Handle<DeviceDescription>,
    engine: hlo_client::Client,
    memories: OnceLock<Box<[Handle<Memory>]>>,
}

object!(Device, "device");

/// `PJRT_DeviceDescription`.
#[derive(Debug)]
pub struct DeviceDescription {
    id: i32,
    kind: String,
    /// In short: `cpu:0`.
    name: String,
    /// `CpuDevice(id=0)`
    text: String,
}

object!(DeviceDescription, "device description");

impl DeviceDescription {
    /// Of a device of a platform.
    pub fn new(id: i32, platform: &str) -> Self {
        let mut capitalized = platform.to_owned();
        if let Some(first) = capitalized.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let text = format!("{capitalized}Device(id={id})");
        Self { id, kind: platform.to_owned(), name: format!("{platform}:{id}"), text }
    }
}

impl Device {
    /// Without memories yet.
    pub fn new(
        id: i32,
        count: usize,
        description: Handle<DeviceDescription>,
        engine: hlo_client::Client,
    ) -> Self {
        Self { id, count, description, engine, memories: OnceLock::new() }
    }

    /// Sets its memories, the default one first.
    pub fn set_memories(&self, memories: &[Handle<Memory>]) {
        let _ = self.memories.set(memories.into());
    }

    /// Its memories, the default one first.
    pub fn memories(&self) -> &[Handle<Memory>] {
        self.memories.get().map_or(&[], |m| m)
    }

    /// Its default memory.
    pub fn default_memory(&self) -> Result<Handle<Memory>> {
        self.memories().first().copied().ok_or_else(|| Failure::internal("the device has no memory"))
    }
}

pub(crate) fn get_description(args: &mut PJRT_Device_GetDescription_Args) -> Result<()> {
    args.device_description = handles::get(args.device)?.description.pointer();
    Ok(())
}

pub(crate) fn is_addressable(args: &mut PJRT_Device_IsAddressable_Args) -> Result<()> {
    handles::get(args.device)?;
    args.is_addressable = 1;
    Ok(())
}

pub(crate) fn local_hardware_id(args: &mut PJRT_Device_LocalHardwareId_Args) -> Result<()> {
    args.local_hardware_id = handles::get(args.device)?.id;
    Ok(())
}

pub(crate) fn addressable_memories(args: &mut PJRT_Device_AddressableMemories_Args) -> Result<()> {
    let device = handles::get(args.device)?;
    (args.memories, args.num_memories) = (as_pointers(device.memories()), device.memories().len());
    Ok(())
}

pub(crate) fn default_memory(args: &mut PJRT_Device_DefaultMemory_Args) -> Result<()> {
    args.memory = handles::get(args.device)?.default_memory()?.pointer();
    Ok(())
}

/// Memory is one for all devices: what is in use, and the limit, are of all of them; what one can reserve is
/// its share, as if all reserved as much.
pub(crate) fn memory_stats(args: &mut PJRT_Device_MemoryStats_Args) -> Result<()> {
    let device = handles::get(args.device)?;
    let statistics = device.engine.memory_statistics();
    let bytes = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let known = |n: Option<u64>| (n.map_or(0, bytes), u8::from(n.is_some()));
    args.bytes_in_use = bytes(statistics.held_bytes);
    (args.peak_bytes_in_use, args.peak_bytes_in_use_is_set) = known(Some(statistics.peak_bytes));
    let limit = statistics.budget_bytes;
    (args.bytes_limit, args.bytes_limit_is_set) = known(limit);
    (args.bytes_reservable_limit, args.bytes_reservable_limit_is_set) =
        known(limit.map(|bytes| bytes / device.count.max(1) as u64));
    // Callers leave these as their memory had them.
    (args.num_allocs, args.num_allocs_is_set) = known(None);
    (args.largest_alloc_size, args.largest_alloc_size_is_set) = known(None);
    (args.bytes_reserved, args.bytes_reserved_is_set) = known(None);
    (args.peak_bytes_reserved, args.peak_bytes_reserved_is_set) = known(None);
    (args.largest_free_block_bytes, args.largest_free_block_bytes_is_set) = known(None);
    (args.pool_bytes, args.pool_bytes_is_set) = known(None);
    (args.peak_pool_bytes, args.peak_pool_bytes_is_set) = known(None);
    (args.peak_allocated_bytes, args.peak_allocated_bytes_is_set) = known(None);
    Ok(())
}

extern "C" fn no_attributes_to_delete(_attributes: *mut c_void) {}

/// It has none.
pub(crate) fn get_attributes(args: &mut PJRT_Device_GetAttributes_Args) -> Result<()> {
    handles::get(args.device)?;
    (args.attributes, args.num_attributes) = (std::ptr::null(), 0);
    args.device_attributes = std::ptr::null_mut();
    args.attributes_deleter = Some(no_attributes_to_delete);
    Ok(())
}

pub(crate) fn description_id(args: &mut PJRT_DeviceDescription_Id_Args) -> Result<()> {
    args.id = handles::get(args.device_description)?.id;
    Ok(())
}

pub(crate) fn description_process_index(args: &mut PJRT_DeviceDescription_ProcessIndex_Args) -> Result<()> {
    handles::get(args.device_description)?;
    args.process_index = 0;
    Ok(())
}

/// It has none.
pub(crate) fn description_attributes(args: &mut PJRT_DeviceDescription_Attributes_Args) -> Result<()> {
    handles::get(args.device_description)?;
    (args.attributes, args.num_attributes) = (std::ptr::null(), 0);
    Ok(())
}

pub(crate) fn description_kind(args: &mut PJRT_DeviceDescription_Kind_Args) -> Result<()> {
    let description = handles::get(args.device_description)?;
    (args.device_kind, args.device_kind_size) = (description.kind.as_ptr().cast(), description.kind.len());
    Ok(())
}

pub(crate) fn description_debug_string(args: &mut PJRT_DeviceDescription_DebugString_Args) -> Result<()> {
    let description = handles::get(args.device_description)?;
    (args.debug_string, args.debug_string_size) = (description.name.as_ptr().cast(), description.name.len());
    Ok(())
}

pub(crate) fn description_to_string(args: &mut PJRT_DeviceDescription_ToString_Args) -> Result<()> {
    let description = handles::get(args.device_description)?;
    (args.to_string, args.to_string_size) = (description.text.as_ptr().cast(), description.text.len());
    Ok(())
}
