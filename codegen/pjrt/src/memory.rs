//! Memories of devices. The CPU has one memory; JAX knows it by three names for each device, and arrays that
//! are moved between them stay where they are.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use hlo::{Layout, Module, ProgramShape, Shape};

use crate::api::structs::{
    PJRT_Memory_AddressableByDevices_Args, PJRT_Memory_DebugString_Args, PJRT_Memory_Id_Args,
    PJRT_Memory_Kind_Args, PJRT_Memory_Kind_Id_Args, PJRT_Memory_ToString_Args,
};
use crate::device::Device;
use crate::error::{Extensions, Failure, Result};
use crate::handles::{self, Handle, as_pointers, object};
use crate::opaque;

/// The kinds of memory; the first is where arrays are by default.
pub const KINDS: [&str; 3] = ["device", "pinned_host", "unpinned_host"];

/// The spaces of layouts (`S(5)`) that mean these kinds.
const SPACES: [i64; 3] = [0, 5, 6];

/// Kinds by number, of all that a program takes and gives, tokens too.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Kinds {
    /// Of arguments.
    pub arguments: Vec<usize>,
    /// Of results.
    pub results: Vec<usize>,
}

impl Kinds {
    /// Of names as a program says them, `None` where it does not.
    ///
    /// # Errors
    /// A kind does not exist.
    pub fn of_names(arguments: &[Option<Box<str>>], results: &[Option<Box<str>>]) -> Result<Self> {
        let one = |name: &Option<Box<str>>| match name {
            None => Ok(0),
            Some(name) => KINDS.iter().position(|kind| **kind == **name).ok_or_else(|| {
                Failure::invalid(format!("there is no memory {name}; there are {}", KINDS.join(", ")))
            }),
        };
        let all = |names: &[Option<Box<str>>]| names.iter().map(one).collect::<Result<Vec<_>>>();
        Ok(Self { arguments: all(arguments)?, results: all(results)? })
    }

    /// Of the layouts in a module's header; empty if there are none.
    pub fn of_header(module: &Module) -> Self {
        let Some(ProgramShape { parameters, result }) = &module.header.entry_computation_layout else {
            return Self::default();
        };
        let kind = |shape: &Shape| {
            let space = shape.as_array().and_then(|array| array.layout.as_deref()?.memory_space);
            SPACES.iter().position(|&s| Some(s) == space).unwrap_or(0)
        };
        let leaves = |shape: &Shape| shape.leaves().into_iter().map(kind).collect::<Vec<_>>();
        Self { arguments: parameters.iter().flat_map(leaves).collect(), results: leaves(result) }
    }

    /// Whether all are the default one.
    pub fn are_default(&self) -> bool {
        self.arguments.iter().chain(&self.results).all(|&kind| kind == 0)
    }

    /// Writes them into the layouts of a module's header.
    pub fn write(&self, module: &mut Module) {
        let Some(shape) = &mut module.header.entry_computation_layout else { return };
        let (mut arguments, mut results) = (self.arguments.iter(), self.results.iter());
        for parameter in &mut shape.parameters {
            *parameter = in_spaces(parameter, &mut arguments);
        }
        shape.result = in_spaces(&shape.result, &mut results);
    }
}

fn in_spaces<'k>(shape: &Shape, kinds: &mut impl Iterator<Item = &'k usize>) -> Shape {
    match shape {
        Shape::Tuple(parts) => {
            Shape::tuple(parts.iter().map(|part| in_spaces(part, kinds)).collect::<Vec<_>>())
        }
        Shape::Array(array) => {
            let space = kinds.next().and_then(|&kind| SPACES.get(kind).copied()).filter(|&space| space != 0);
            let mut array = array.clone();
            if let Some(layout) = &array.layout {
                array.layout = Some(Layout { memory_space: space, ..Layout::clone(layout) }.into());
            }
            Shape::Array(array)
        }
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => {
            kinds.next();
            shape.clone()
        }
    }
}

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

/// A caller's data attached to a memory.
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
    get_user_data: extern "C" fn(*mut opaque::Memory, *const c_void) -> *mut c_void,
    set_user_data: extern "C" fn(*mut opaque::Memory, *const c_void, *mut c_void, Option<Destructor>),
}

static MEMORY_TABLE: MemoryTable = MemoryTable {
    struct_size: size_of::<MemoryTable>(),
    extension_start: Extensions(std::ptr::null_mut()),
    instance_struct_size: size_of::<Memory>(),
    get_user_data,
    set_user_data,
};

extern "C" fn get_user_data(memory: *mut opaque::Memory, key: *const c_void) -> *mut c_void {
    let Ok(memory) = handles::get(memory) else { return std::ptr::null_mut() };
    let all = memory.user_data.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|u| u.key == key).map_or(std::ptr::null_mut(), |u| u.data)
}

extern "C" fn set_user_data(
    memory: *mut opaque::Memory,
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

/// The memory of a kind of the same device.
///
/// # Errors
/// The device has none.
pub(crate) fn of_kind(memory: &Arc<Memory>, kind: usize) -> Result<Arc<Memory>> {
    if memory.kind_id as usize == kind {
        return Ok(Arc::clone(memory));
    }
    let device = handles::get(memory.device.pointer())?;
    let found = device.memories().get(kind);
    handles::get(found.ok_or_else(|| Failure::internal("a device has all kinds of memory"))?.pointer())
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
