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
    text: String,
}

object!(DeviceDescription, "device description");

impl DeviceDescription {
    /// Of a device of a platform.
    pub fn new(id: i32, platform: &str) -> Self {
        Self { id, kind: platform.to_owned(), text: format!("HloDevice(id={id})") }
    }
}

impl Device {
    /// Without memories yet.
    pub fn new(id: i32, description: Handle<DeviceDescription>, engine: hlo_client::Client) -> Self {
        Self { id, description, engine, memories: OnceLock::new() }
    }

    /// Gives it its memories, the default one first.
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

pub(crate) fn memory_stats(args: &mut PJRT_Device_MemoryStats_Args) -> Result<()> {
    let statistics = handles::get(args.device)?.engine.memory_statistics();
    let bytes = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    args.bytes_in_use = bytes(statistics.held_bytes);
    (args.peak_bytes_in_use, args.peak_bytes_in_use_is_set) = (bytes(statistics.peak_bytes), 1);
    if let Some(budget) = statistics.budget_bytes {
        (args.bytes_limit, args.bytes_limit_is_set) = (bytes(budget), 1);
    }
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
    (args.debug_string, args.debug_string_size) = (description.text.as_ptr().cast(), description.text.len());
    Ok(())
}

pub(crate) fn description_to_string(args: &mut PJRT_DeviceDescription_ToString_Args) -> Result<()> {
    let description = handles::get(args.device_description)?;
    (args.to_string, args.to_string_size) = (description.text.as_ptr().cast(), description.text.len());
    Ok(())
}
