//! Arrays from the host and to it.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use hlo::shape::MAX_RANK;
use hlo::{ArrayShape, ElementType};
use hlo_client::Foreign;

use crate::api::numbers::array_bytes;
use crate::api::numbers::{element_type, semantics};
use crate::api::structs::{
    OnDelete, PJRT_Buffer_CopyRawToHost_Args, PJRT_Buffer_ToHostBuffer_Args,
    PJRT_Client_BufferFromHostBuffer_Args, PJRT_Client_CreateErrorBuffer_Args,
    PJRT_Client_CreateUninitializedBuffer_Args, PJRT_Client_CreateViewOfDeviceBuffer_Args,
};
use crate::border;
use crate::buffer::Buffer;
use crate::error::{Code, Failure, Result, of_client};
use crate::event::Event;
use crate::handles;
use crate::layout;
use crate::strides;

/// The alignment with which compiled programs read arrays in place.
const ALIGNMENT_BYTES: usize = 64;

/// Memory of a caller's, which an array shares.
struct HostMemory {
    start: *const u8,
    bytes: usize,
    /// Is told when it is not needed any more.
    done: Done,
}

enum Done {
    Event(Arc<Event>),
    Call(Option<OnDelete>, *mut c_void),
}

// SAFETY: the caller promised that nothing writes to the bytes until it is told that they are not needed, by
// any thread.
unsafe impl Send for HostMemory {}
// SAFETY: the same.
unsafe impl Sync for HostMemory {}

impl fmt::Debug for HostMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of the host's", self.bytes)
    }
}

impl Foreign for HostMemory {
    fn bytes(&self) -> &[u8] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: what a caller lends has as many bytes, which stay as they are until it is told (`Done`),
        // and that is when this is dropped.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        match &self.done {
            Done::Event(event) => {
                event.set(&Ok(()));
            }
            Done::Call(None, _) => {}
            Done::Call(Some(function), user_arg) => {
                // SAFETY: the C API: it takes the memory's address and what was given with it, once.
                unsafe { function(self.start.cast_mut().cast(), *user_arg) };
            }
        }
    }
}

/// The shape of dimensions and a type that a caller gives.
fn shape(number: u32, dims: *const i64, count: usize) -> Result<ArrayShape> {
    let Some(ty) = element_type(number) else {
        return Err(Failure::unimplemented(format!("arrays of PJRT_Buffer_Type {number} are not supported")));
    };
    if count > MAX_RANK {
        return Err(Failure::invalid(format!(
            "an array of {count} dimensions; at most {MAX_RANK} are supported"
        )));
    }
    let dims = border::elements(dims, count, "the dimensions")?;
    let shape = ArrayShape::new(ty, &dims);
    match array_bytes(&shape) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(shape),
        Some(_) | None => Err(Failure::invalid(format!("{}{dims:?} is no shape of an array", ty.name()))),
    }
}

/// Whether any bytes are elements of a type as programs know them.
fn takes_any_bytes(ty: ElementType) -> bool {
    ty.bits() as usize == ty.storage_bytes() * 8 && ty != ElementType::Pred
}

pub(crate) fn from_host(args: &mut PJRT_Client_BufferFromHostBuffer_Args) -> Result<()> {
    let client = handles::get(args.client)?;
    let memory = client.memory(args.device, args.memory)?;
    let shape = shape(args.r#type, args.dims, args.num_dims)?;
    let element_bytes = shape.element_type.storage_bytes() as i64;
    let device_layout = border::optional_without_size(args.device_layout)?;
    let order = strides::order_of_layout(device_layout.as_ref(), &shape.dims, element_bytes)?;
    let bytes = array_bytes(&shape).ok_or_else(|| Failure::internal("the shape was checked"))?;
    let start: *const u8 = args.data.cast();
    if start.is_null() && bytes > 0 {
        return Err(Failure::invalid("the host buffer is null"));
    }
    let byte_strides = match args.byte_strides.is_null() {
        true => None,
        false if args.num_byte_strides != shape.rank() => {
            let message = format!("{} strides of {} dimensions", args.num_byte_strides, shape.rank());
            return Err(Failure::invalid(message));
        }
        false => Some(border::elements(args.byte_strides, args.num_byte_strides, "the strides")?),
    };
    // From here on it is the physical array, whose dimensions the host's strides follow.
    let byte_strides = match &order {
        None => byte_strides,
        Some(_) => {
            let given = byte_strides.unwrap_or_else(|| strides::row_major(&shape.dims, element_bytes));
            Some(layout::permuted(&given, &order))
        }
    };
    let shape = layout::physical(&shape, &order);
    let byte_strides = byte_strides.filter(|s| !strides::is_dense(&shape.dims, s, element_bytes));
    let may_share = match args.host_buffer_semantics {
        semantics::IMMUTABLE_ONLY_DURING_CALL | semantics::IMMUTABLE_UNTIL_TRANSFER_COMPLETES => false,
        semantics::IMMUTABLE_ZERO_COPY | semantics::MUTABLE_ZERO_COPY => {
            byte_strides.is_none()
                && bytes > 0
                && start.addr().is_multiple_of(ALIGNMENT_BYTES)
                && takes_any_bytes(shape.element_type)
        }
        other => return Err(Failure::invalid(format!("{other} says nothing of a host buffer"))),
    };
    let (array, done) = if may_share {
        let done = Event::pending();
        let lent = HostMemory { start, bytes, done: Done::Event(Arc::clone(&done)) };
        (client.engine.lend(shape, Arc::new(lent)).map_err(of_client)?, done)
    } else {
        let array = match byte_strides {
            None => client
                .engine
                .buffer_from_bytes(shape, border::bytes(start.cast(), bytes, "the host buffer")?)
                .map_err(of_client)?,
            Some(strides) => {
                let dense = gathered(start, &shape, &strides)?;
                client.engine.buffer_from_bytes(shape, &dense).map_err(of_client)?
            }
        };
        (array, Event::ready(Ok(())))
    };
    args.done_with_host_buffer = handles::give(done);
    args.buffer = Buffer::in_order(array, order, memory, client).give();
    Ok(())
}

/// The elements that lie with strides, dense and row-major.
fn gathered(start: *const u8, shape: &ArrayShape, byte_strides: &[i64]) -> Result<Vec<u8>> {
    let element = shape.element_type.storage_bytes();
    strides::extent(&shape.dims, byte_strides, element as i64)
        .ok_or_else(|| Failure::invalid("the strides reach beyond all memory"))?;
    let mut dense = Vec::with_capacity(array_bytes(shape).unwrap_or(0));
    strides::for_each_offset(&shape.dims, byte_strides, |offset| {
        let from = start.wrapping_offset(offset as isize);
        // SAFETY: the C API: the caller's array has an element at each offset that its strides give.
        dense.extend((0..element).map(|n| unsafe { from.wrapping_add(n).read() }));
    });
    Ok(dense)
}

pub(crate) fn to_host(args: &mut PJRT_Buffer_ToHostBuffer_Args) -> Result<()> {
    let buffer = handles::get(args.src)?;
    let shape = buffer.array.shape();
    let element = shape.element_type.storage_bytes();
    let bytes = array_bytes(shape).ok_or_else(|| Failure::internal("an array has a size"))?;
    let layout = border::optional_without_size(args.host_layout)?;
    // Without one, the bytes as they lie here.
    let layout = strides::of_layout(layout.as_ref(), buffer.dims(), element as i64)?
        .map(|strides| layout::permuted(&strides, &buffer.order))
        .filter(|s| !strides::is_dense(&shape.dims, s, element as i64));
    let needed = match &layout {
        None => bytes,
        Some(layout) => {
            let extent = strides::extent(&shape.dims, layout, element as i64);
            let Some((0, end)) = extent else {
                return Err(Failure::invalid("the strides reach before the array, or beyond all memory"));
            };
            usize::try_from(end).map_err(|_| Failure::invalid("the strides reach before the array"))?
        }
    };
    let to: *mut u8 = args.dst.cast();
    if to.is_null() {
        args.dst_size = needed;
        return Ok(());
    }
    if args.dst_size < needed {
        let message = format!("{needed} bytes do not fit a host buffer of {}", args.dst_size);
        return Err(Failure::invalid(message));
    }
    let copy = |from: &[u8]| match &layout {
        None => border::write(to, from, "the host buffer"),
        Some(layout) => {
            let mut elements = from.chunks_exact(element);
            let mut outcome = Ok(());
            strides::for_each_offset(&shape.dims, layout, |offset| {
                if let Some(bytes) = elements.next() {
                    let written =
                        border::write(to.wrapping_offset(offset as isize), bytes, "the host buffer");
                    outcome = std::mem::replace(&mut outcome, Ok(())).and(written);
                }
            });
            outcome
        }
    };
    buffer.array.with_bytes(copy).map_err(of_client)??;
    args.event = handles::give(Event::ready(Ok(())));
    Ok(())
}

pub(crate) fn copy_raw_to_host(args: &mut PJRT_Buffer_CopyRawToHost_Args) -> Result<()> {
    let buffer = handles::get(args.buffer)?;
    let (offset, size) = (usize::try_from(args.offset).ok(), usize::try_from(args.transfer_size).ok());
    let copy = |bytes: &[u8]| {
        let part = offset.zip(size).and_then(|(offset, size)| bytes.get(offset..offset.checked_add(size)?));
        let Some(part) = part else {
            let message =
                format!("{} bytes at {} of an array of {}", args.transfer_size, args.offset, bytes.len());
            return Err(Failure::new(Code::OutOfRange, message));
        };
        border::write(args.dst.cast(), part, "the host buffer")
    };
    buffer.array.with_bytes(copy).map_err(of_client)??;
    args.event = handles::give(Event::ready(Ok(())));
    Ok(())
}

pub(crate) fn view_of_device_buffer(args: &mut PJRT_Client_CreateViewOfDeviceBuffer_Args) -> Result<()> {
    let client = handles::get(args.client)?;
    let memory = client.memory(args.device, args.memory)?;
    let shape = shape(args.element_type, args.dims, args.num_dims)?;
    let element_bytes = shape.element_type.storage_bytes() as i64;
    let layout = border::optional_without_size(args.layout)?;
    let order = strides::order_of_layout(layout.as_ref(), &shape.dims, element_bytes)?;
    let shape = layout::physical(&shape, &order);
    let bytes = array_bytes(&shape).ok_or_else(|| Failure::internal("the shape was checked"))?;
    if args.device_buffer_ptr.is_null() && bytes > 0 {
        return Err(Failure::invalid("the memory is null"));
    }
    let address = args.device_buffer_ptr.addr();
    if bytes > 0 && !address.is_multiple_of(ALIGNMENT_BYTES) {
        // Every execution would copy it; callers copy it once.
        let message =
            format!("a view of memory: its address {address:#x} is not aligned to {ALIGNMENT_BYTES} bytes");
        return Err(Failure::invalid(message));
    }
    let done = Done::Call(args.on_delete_callback, args.on_delete_callback_arg);
    let lent = HostMemory { start: args.device_buffer_ptr.cast_const().cast(), bytes, done };
    let array = client.engine.lend(shape, Arc::new(lent)).map_err(of_client)?;
    args.buffer = Buffer::in_order(array, order, memory, client).give();
    Ok(())
}

pub(crate) fn uninitialized(args: &mut PJRT_Client_CreateUninitializedBuffer_Args) -> Result<()> {
    let client = handles::get(args.client)?;
    let memory = client.memory(args.device, args.memory)?;
    let shape = shape(args.shape_element_type, args.shape_dims, args.shape_num_dims)?;
    let given = border::optional_without_size(args.shape_layout)?;
    let element_bytes = shape.element_type.storage_bytes() as i64;
    let order = strides::order_of_layout(given.as_ref(), &shape.dims, element_bytes)?;
    let array = client.engine.uninitialized(layout::physical(&shape, &order)).map_err(of_client)?;
    args.buffer = Buffer::in_order(array, order, memory, client).give();
    Ok(())
}

pub(crate) fn error_buffer(args: &mut PJRT_Client_CreateErrorBuffer_Args) -> Result<()> {
    use hlo_client::Code as C;
    let client = handles::get(args.client)?;
    let memory = client.memory(ptr::null_mut(), args.memory)?;
    let shape = shape(args.shape_element_type, args.shape_dims, args.shape_num_dims)?;
    let message = border::text(args.error_message, args.error_message_size, "the message of the error")?;
    let code = match Code::of_number(args.error_code) {
        Some(Code::Cancelled) => C::Cancelled,
        Some(Code::InvalidArgument) => C::InvalidArgument,
        Some(Code::DeadlineExceeded) => C::DeadlineExceeded,
        Some(Code::NotFound) => C::NotFound,
        Some(Code::ResourceExhausted) => C::ResourceExhausted,
        Some(Code::FailedPrecondition) => C::FailedPrecondition,
        Some(Code::Aborted) => C::Aborted,
        Some(Code::Unimplemented) => C::Unimplemented,
        Some(Code::Unavailable) => C::Unavailable,
        Some(Code::DataLoss) => C::DataLoss,
        Some(
            Code::Unknown
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::OutOfRange
            | Code::Internal
            | Code::Unauthenticated,
        ) => C::Internal,
        None => return Err(Failure::invalid("an error has a code other than 0")),
    };
    let array = client.engine.failed(shape, hlo_client::Error::new(code, message));
    args.buffer = Buffer::new(array, memory, client).give();
    Ok(())
}
