//! Memories of devices. The CPU has one memory; JAX knows it by three names for each device, and arrays that are moved between them stay where they are.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use crate::api::structs::{
    PJRT_Memory_AddressableByDevices_Args, PJRT_Memory_DebugString_Args, PJRT_Memory_Id_Args,
    PJRT_Memory_Kind_Args, PJRT_Memory_Kind_Id_Args, PJRT_Memory_ToString_Args,
};
use crate::device::Device;
use crate::error::{Extensions, Result};
use crate::handles::{self, Handle, as_pointers, object};

/// The kinds of memory; the first is where arrays are unless somebody says otherwise.
pub const KINDS: [&str; 3] = ["device", "pinned_host", "unpinned_host"];

/// `PJRT_Memory`. Its first field is the C API's, by which callers hang data on it.
#[derive(Debug)]
#[repr(C)]
#[allow(dead_code, reason = "callers read the fields")]
pub struct Memory {
    table: &'static MemoryTable,
    /// Its number.
    pub id: i32,
    /// The number of its kind.
    kind_id: i32,
    /// Its kind.
    pub kind: &'static str,
    /// The device that it belongs to.
    pub device: Handle<Device>,
    devices: [Handle<Device>; 1],
    text: String,
    user_data: Mutex<Vec<UserData>>,
}

object!(Memory, "memory", is_read: true);

/// What a caller hung on a memory.
#[derive(Debug)]
struct UserData {
    key: *const c_void,
    data: *mut c_void,
    destructor: Option<Destructor>,
}

type Destructor = unsafe extern "C" fn(*mut c_void);

// SAFETY: the pointers are the caller's, and only handed back to it.
unsafe impl Send for UserData {}

impl Drop for UserData {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the C API: it takes the data that it was given with, once.
            unsafe { destructor(self.data) };
        }
    }
}

/// `PJRT_Memory_FunctionTable`.
#[derive(Debug)]
#[repr(C)]
#[allow(dead_code, reason = "callers read the fields")]
pub struct MemoryTable {
    struct_size: usize,
    extension_start: Extensions,
    instance_struct_size: usize,
    get_user_data: extern "C" fn(*mut Memory, *const c_void) -> *mut c_void,
    set_user_data: extern "C" fn(*mut Memory, *const c_void, *mut c_void, Option<Destructor>),
}

static MEMORY_TABLE: MemoryTable = MemoryTable {
    struct_size: size_of::<MemoryTable>(),
    extension_start: Extensions(std::ptr::null_mut()),
    instance_struct_size: size_of::<Memory>(),
    get_user_data,
    set_user_data,
};

extern "C" fn get_user_data(memory: *mut Memory, key: *const c_void) -> *mut c_void {
    let Ok(memory) = handles::get(memory) else { return std::ptr::null_mut() };
    let all = memory.user_data.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|u| u.key == key).map_or(std::ptr::null_mut(), |u| u.data)
}

extern "C" fn set_user_data(
    memory: *mut Memory,
    key: *const c_void,
    data: *mut c_void,
    destructor: Option<Destructor>,
) {
    let Ok(memory) = handles::get(memory) else { return };
    let new = UserData { key, data, destructor };
    let mut all = memory.user_data.lock().unwrap_or_else(PoisonError::into_inner);
    let before = all.iter().position(|u| u.key == key).map(|n| all.swap_remove(n));
    all.push(new);
    drop(all);
    // What it was has a destructor, which is foreign.
    drop(before);
}

impl Memory {
    /// The memory of a kind of the device of a number.
    pub fn new(number: i32, kind_id: i32, kind: &'static str, device: Handle<Device>) -> Self {
        let id = number * KINDS.len() as i32 + kind_id;
        let text = format!("HloMemory(id={id}, kind={kind})");
        let (devices, user_data) = ([device], Mutex::default());
        Self { table: &MEMORY_TABLE, id, kind_id, kind, device, devices, text, user_data }
    }
}

pub(crate) fn id(args: &mut PJRT_Memory_Id_Args) -> Result<()> {
    args.id = handles::get(args.memory)?.id;
    Ok(())
}

pub(crate) fn kind(args: &mut PJRT_Memory_Kind_Args) -> Result<()> {
    let kind = handles::get(args.memory)?.kind;
    (args.kind, args.kind_size) = (kind.as_ptr().cast(), kind.len());
    Ok(())
}

pub(crate) fn kind_id(args: &mut PJRT_Memory_Kind_Id_Args) -> Result<()> {
    args.kind_id = handles::get(args.memory)?.kind_id;
    Ok(())
}

pub(crate) fn debug_string(args: &mut PJRT_Memory_DebugString_Args) -> Result<()> {
    let memory = handles::get(args.memory)?;
    (args.debug_string, args.debug_string_size) = (memory.text.as_ptr().cast(), memory.text.len());
    Ok(())
}

pub(crate) fn to_string(args: &mut PJRT_Memory_ToString_Args) -> Result<()> {
    let memory = handles::get(args.memory)?;
    (args.to_string, args.to_string_size) = (memory.text.as_ptr().cast(), memory.text.len());
    Ok(())
}

pub(crate) fn addressable_by_devices(args: &mut PJRT_Memory_AddressableByDevices_Args) -> Result<()> {
    let memory = handles::get(args.memory)?;
    (args.devices, args.num_devices) = (as_pointers(&memory.devices), memory.devices.len());
    Ok(())
}
