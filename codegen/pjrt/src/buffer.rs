//! Buffers: arrays as callers hold them, and what they ask of them.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hlo_client::Hold;

use crate::api::numbers::{TOKEN, array_bytes, buffer_type, layout_type};
use crate::api::structs::{
    PJRT_Buffer_CopyToDevice_Args, PJRT_Buffer_CopyToMemory_Args,
    PJRT_Buffer_DecreaseExternalReferenceCount_Args, PJRT_Buffer_Delete_Args, PJRT_Buffer_Destroy_Args,
    PJRT_Buffer_Device_Args, PJRT_Buffer_Dimensions_Args, PJRT_Buffer_DynamicDimensionIndices_Args,
    PJRT_Buffer_ElementType_Args, PJRT_Buffer_GetMemoryLayout_Args,
    PJRT_Buffer_IncreaseExternalReferenceCount_Args, PJRT_Buffer_IsDeleted_Args, PJRT_Buffer_IsOnCpu_Args,
    PJRT_Buffer_Memory_Args, PJRT_Buffer_MemoryLayout, PJRT_Buffer_MemoryLayout_Tiled,
    PJRT_Buffer_OnDeviceSizeInBytes_Args, PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args,
    PJRT_Buffer_ReadyEvent_Args, PJRT_Buffer_UnpaddedDimensions_Args, PJRT_Buffer_UnsafePointer_Args,
};
use crate::client::Client;
use crate::error::{Code, Failure, Result, of_client};
use crate::event::Event;
use crate::executable::token_shape;
use crate::handles::{self, object};
use crate::layout::{self, Order};
use crate::memory::Memory;
use crate::opaque;

/// `PJRT_Buffer`.
#[derive(Debug)]
pub struct Buffer {
    /// The array; the physical one, if it is in a layout.
    pub array: hlo_client::Buffer,
    /// The order of its dimensions in memory.
    pub order: Order,
    /// The memory that it is in.
    pub memory: Arc<Memory>,
    /// Whose it is; kept alive as long as it has arrays.
    pub client: Arc<Client>,
    /// Whether it stands for a token.
    is_token: bool,
    dims: Box<[i64]>,
    minor_to_major: Box<[i64]>,
    external: Mutex<External>,
}

object!(Buffer, "buffer");

/// The references to the bytes by their address.
#[derive(Debug, Default)]
struct External {
    references: usize,
    /// Keeps the bytes where they are, from the first reference or address that was asked for on.
    hold: Option<Hold>,
}

impl Buffer {
    /// A row-major array in a memory.
    pub fn new(array: hlo_client::Buffer, memory: Arc<Memory>, client: Arc<Client>) -> Self {
        Self::in_order(array, None, memory, client)
    }

    /// An array in a layout, of which the physical one is given.
    pub fn in_order(
        array: hlo_client::Buffer,
        order: Order,
        memory: Arc<Memory>,
        client: Arc<Client>,
    ) -> Self {
        let dims: Box<[i64]> = match &order {
            None => array.shape().dims.as_slice().into(),
            Some(_) => layout::logical(&array.shape().dims, &order).into(),
        };
        let minor_to_major = layout::minor_to_major(&order, dims.len());
        let (is_token, external) = (false, Mutex::default());
        Self { array, order, memory, client, is_token, dims, minor_to_major, external }
    }

    /// The stand-in for a token.
    pub fn token(memory: Arc<Memory>, client: Arc<Client>) -> Result<Self> {
        let array = client.engine.buffer_from_bytes(token_shape(), &[]).map_err(of_client)?;
        Ok(Self { is_token: true, ..Self::new(array, memory, client) })
    }

    /// The same as a caller's.
    pub fn give(self) -> *mut opaque::Buffer {
        handles::give(self)
    }

    /// Its dimensions.
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Their order in memory, minor to major.
    pub fn minor_to_major(&self) -> &[i64] {
        &self.minor_to_major
    }

    fn external(&self) -> MutexGuard<'_, External> {
        self.external.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of its bytes, which stay there until it is deleted and no reference is left.
    fn address(&self) -> Result<*const u8> {
        let mut external = self.external();
        if self.array.is_deleted() && external.references == 0 {
            external.hold = None;
        }
        let hold = match external.hold.take() {
            Some(hold) => hold,
            None => self.array.hold().map_err(of_client)?,
        };
        Ok(external.hold.insert(hold).bytes().as_ptr())
    }

    /// Frees bytes that have no reference left.
    pub fn release(&self) {
        let mut external = self.external();
        if external.references == 0 {
            external.hold = None;
        }
    }
}

pub(crate) fn destroy(args: &mut PJRT_Buffer_Destroy_Args) -> Result<()> {
    handles::destroy(args.buffer)
}

pub(crate) fn element_type(args: &mut PJRT_Buffer_ElementType_Args) -> Result<()> {
    let buffer = handles::get(args.buffer)?;
    args.r#type = match buffer.is_token {
        true => TOKEN,
        false => buffer_type(buffer.array.shape().element_type),
    };
    Ok(())
}

pub(crate) fn dimensions(args: &mut PJRT_Buffer_Dimensions_Args) -> Result<()> {
    let buffer = handles::get(args.buffer)?;
    (args.dims, args.num_dims) = (buffer.dims.as_ptr(), buffer.dims.len());
    Ok(())
}

pub(crate) fn unpadded_dimensions(args: &mut PJRT_Buffer_UnpaddedDimensions_Args) -> Result<()> {
    let buffer = handles::get(args.buffer)?;
    (args.unpadded_dims, args.num_dims) = (buffer.dims.as_ptr(), buffer.dims.len());
    Ok(())
}

/// Sizes are known once an array is there.
pub(crate) fn dynamic_dimension_indices(args: &mut PJRT_Buffer_DynamicDimensionIndices_Args) -> Result<()> {
    handles::get(args.buffer)?;
    (args.dynamic_dim_indices, args.num_dynamic_dims) = (std::ptr::dangling(), 0);
    Ok(())
}

/// The order of its dimensions.
pub(crate) fn memory_layout(args: &mut PJRT_Buffer_GetMemoryLayout_Args) -> Result<()> {
    let buffer = handles::get(args.buffer)?;
    args.layout = PJRT_Buffer_MemoryLayout {
        struct_size: size_of::<PJRT_Buffer_MemoryLayout>(),
        extension_start: std::ptr::null_mut(),
        tiled: PJRT_Buffer_MemoryLayout_Tiled {
            struct_size: size_of::<PJRT_Buffer_MemoryLayout_Tiled>(),
            extension_start: std::ptr::null_mut(),
            minor_to_major: buffer.minor_to_major.as_ptr(),
            minor_to_major_size: buffer.minor_to_major.len(),
            tile_dims: std::ptr::null(),
            tile_dim_sizes: std::ptr::null(),
            num_tiles: 0,
        },
        r#type: layout_type::TILED,
    };
    Ok(())
}

pub(crate) fn on_device_size(args: &mut PJRT_Buffer_OnDeviceSizeInBytes_Args) -> Result<()> {
    let buffer = handles::get(args.buffer)?;
    args.on_device_size_in_bytes = array_bytes(buffer.array.shape()).unwrap_or(usize::MAX);
    Ok(())
}

pub(crate) fn device(args: &mut PJRT_Buffer_Device_Args) -> Result<()> {
    args.device = handles::get(args.buffer)?.memory.device.pointer();
    Ok(())
}

pub(crate) fn memory(args: &mut PJRT_Buffer_Memory_Args) -> Result<()> {
    let memory = Arc::as_ptr(&handles::get(args.buffer)?.memory);
    args.memory = memory.cast_mut().cast();
    Ok(())
}

pub(crate) fn delete(args: &mut PJRT_Buffer_Delete_Args) -> Result<()> {
    let buffer = handles::get(args.buffer)?;
    if !buffer.array.is_deleted() {
        buffer.array.delete().map_err(of_client)?;
    }
    buffer.release();
    Ok(())
}

pub(crate) fn is_deleted(args: &mut PJRT_Buffer_IsDeleted_Args) -> Result<()> {
    args.is_deleted = u8::from(handles::get(args.buffer)?.array.is_deleted());
    Ok(())
}

/// The same array in bytes of its own.
pub(crate) fn copied(array: &hlo_client::Buffer, client: &Client) -> Result<hlo_client::Buffer> {
    let shape = array.shape().clone();
    array
        .with_bytes(|bytes| client.engine.buffer_from_bytes(shape, bytes))
        .map_err(of_client)?
        .map_err(of_client)
}

fn copy_to(buffer: *mut opaque::Buffer, memory: &Arc<Memory>) -> Result<*mut opaque::Buffer> {
    let buffer = handles::get(buffer)?;
    let copy = copied(&buffer.array, &buffer.client)?;
    let copy = Buffer::in_order(copy, buffer.order.clone(), Arc::clone(memory), Arc::clone(&buffer.client));
    Ok(Buffer { is_token: buffer.is_token, ..copy }.give())
}

pub(crate) fn copy_to_device(args: &mut PJRT_Buffer_CopyToDevice_Args) -> Result<()> {
    let client = Arc::clone(&handles::get(args.buffer)?.client);
    let memory = client.memory(args.dst_device, std::ptr::null_mut())?;
    args.dst_buffer = copy_to(args.buffer, &memory)?;
    Ok(())
}

pub(crate) fn copy_to_memory(args: &mut PJRT_Buffer_CopyToMemory_Args) -> Result<()> {
    let client = Arc::clone(&handles::get(args.buffer)?.client);
    let memory =
        client.memory(std::ptr::null_mut(), handles::get(args.dst_memory).map(|_| args.dst_memory)?)?;
    args.dst_buffer = copy_to(args.buffer, &memory)?;
    Ok(())
}

pub(crate) fn is_on_cpu(args: &mut PJRT_Buffer_IsOnCpu_Args) -> Result<()> {
    handles::get(args.buffer)?;
    args.is_on_cpu = 1;
    Ok(())
}

/// Ready as soon as it exists: executions end before they return.
pub(crate) fn ready_event(args: &mut PJRT_Buffer_ReadyEvent_Args) -> Result<()> {
    let buffer = handles::get(args.buffer)?;
    let outcome = match buffer.array.is_deleted() {
        true => Err(Failure::new(Code::InvalidArgument, "the buffer was deleted or donated")),
        false => buffer.array.wait().map_err(of_client),
    };
    args.event = handles::give(Event::ready(outcome));
    Ok(())
}

pub(crate) fn unsafe_pointer(args: &mut PJRT_Buffer_UnsafePointer_Args) -> Result<()> {
    args.buffer_pointer = handles::get(args.buffer)?.address()?.expose_provenance();
    Ok(())
}

pub(crate) fn device_pointer(args: &mut PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args) -> Result<()> {
    args.device_memory_ptr = handles::get(args.buffer)?.address()?.cast_mut().cast::<c_void>();
    Ok(())
}

pub(crate) fn increase_references(args: &mut PJRT_Buffer_IncreaseExternalReferenceCount_Args) -> Result<()> {
    let buffer = handles::get(args.buffer)?;
    buffer.address()?;
    buffer.external().references += 1;
    Ok(())
}

pub(crate) fn decrease_references(args: &mut PJRT_Buffer_DecreaseExternalReferenceCount_Args) -> Result<()> {
    let buffer = handles::get(args.buffer)?;
    let mut external = buffer.external();
    let Some(left) = external.references.checked_sub(1) else {
        return Err(Failure::new(Code::FailedPrecondition, "the buffer has no external reference"));
    };
    external.references = left;
    if left == 0 {
        external.hold = None;
    }
    Ok(())
}
