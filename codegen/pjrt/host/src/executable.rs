//! Compiled programs and arrays of a plugin.

use std::ptr;
use std::sync::Arc;

use hlo::{ArrayLiteral, ArrayShape};
use hlo_codegen::runtime::raw::{buffer_of, bytes_of as bytes_of_buffer};
use hlo_pjrt_abi::numbers::{array_bytes, element_type, layout_type};
use hlo_pjrt_abi::opaque;
use hlo_pjrt_abi::opaque::LoadedExecutable;
use hlo_pjrt_abi::structs::{
    PJRT_Buffer_Destroy_Args, PJRT_Buffer_Dimensions_Args, PJRT_Buffer_ElementType_Args,
    PJRT_Buffer_MemoryLayout, PJRT_Buffer_ToHostBuffer_Args, PJRT_Executable_Destroy_Args,
    PJRT_Executable_NumOutputs_Args, PJRT_ExecuteOptions, PJRT_LoadedExecutable_Destroy_Args,
    PJRT_LoadedExecutable_Execute_Args, PJRT_LoadedExecutable_GetExecutable_Args,
};
use hlo_pjrt_abi::{Code, Failure};

use crate::client::Client;
use crate::plugin::zeroed;

pub(crate) fn bytes_of(array: &ArrayLiteral) -> &[u8] {
    bytes_of_buffer(&array.buffer)
}

/// An array on a device.
pub(crate) struct Buffer {
    client: Arc<Client>,
    buffer: *mut opaque::Buffer,
}

impl Buffer {
    pub(crate) fn new(client: Arc<Client>, buffer: *mut opaque::Buffer) -> Self {
        Self { client, buffer }
    }

    pub(crate) fn raw(&self) -> *mut opaque::Buffer {
        self.buffer
    }

    /// Its shape as the plugin says it: of an array of bounded dimensions the sizes that they have.
    fn shape(&self) -> Result<ArrayShape, Failure> {
        let plugin = &self.client.plugin;
        let mut ty = zeroed::<PJRT_Buffer_ElementType_Args>();
        ty.buffer = self.buffer;
        plugin.call("PJRT_Buffer_ElementType", &mut ty)?;
        let mut dims = zeroed::<PJRT_Buffer_Dimensions_Args>();
        dims.buffer = self.buffer;
        plugin.call("PJRT_Buffer_Dimensions", &mut dims)?;
        let unknown = || {
            let message =
                format!("a result of PJRT_Buffer_Type {} is no array that is known here", ty.r#type);
            Failure::new(Code::Unimplemented, message)
        };
        let element = element_type(ty.r#type).ok_or_else(unknown)?;
        let dims = match dims.num_dims {
            0 => &[],
            // SAFETY: the C API: as many numbers, which live as long as the buffer.
            n => unsafe { std::slice::from_raw_parts(dims.dims, n) },
        };
        let shape = ArrayShape::new(element, dims);
        let valid = dims.iter().all(|&d| d >= 0) && array_bytes(&shape).is_some();
        if valid {
            Ok(shape)
        } else {
            Err(Failure::new(Code::Internal, format!("a result of shape {dims:?}")))
        }
    }

    /// Copies it to the host, row-major.
    fn to_literal(&self) -> Result<ArrayLiteral, Failure> {
        let shape = self.shape()?;
        let plugin = &self.client.plugin;
        let order: Vec<i64> = (0..shape.dims.len() as i64).rev().collect();
        let mut layout = zeroed::<PJRT_Buffer_MemoryLayout>();
        layout.r#type = layout_type::TILED;
        layout.tiled.struct_size = size_of_val(&layout.tiled);
        layout.tiled.minor_to_major = order.as_ptr();
        layout.tiled.minor_to_major_size = order.len();
        let elements = shape.dims.iter().product::<i64>() as usize;
        let mut data = vec![0u8; elements * shape.element_type.storage_bytes()];
        let mut args = zeroed::<PJRT_Buffer_ToHostBuffer_Args>();
        args.src = self.buffer;
        args.host_layout = &raw const layout;
        args.dst = data.as_mut_ptr().cast();
        args.dst_size = data.len();
        // `data` lives until the event that the copy is done.
        plugin.call("PJRT_Buffer_ToHostBuffer", &mut args)?;
        plugin.wait(args.event)?;
        let buffer = buffer_of(shape.element_type, &data);
        Ok(ArrayLiteral { dims: shape.dims.clone(), buffer: buffer.into() })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut args = zeroed::<PJRT_Buffer_Destroy_Args>();
        args.buffer = self.buffer;
        // The error cannot be reported.
        let _ = self.client.plugin.call("PJRT_Buffer_Destroy", &mut args);
    }
}

/// A compiled program.
#[derive(Debug)]
pub struct Executable {
    client: Arc<Client>,
    executable: *mut LoadedExecutable,
    /// How many arrays it gives.
    results: usize,
}

// SAFETY: the C API lets any thread use an executable.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Executable {
    pub(crate) fn new(client: Arc<Client>, executable: *mut LoadedExecutable) -> Result<Self, Failure> {
        let mut new = Self { client, executable, results: 0 };
        new.results = new.count_results()?;
        Ok(new)
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    pub(crate) fn raw(&self) -> *mut LoadedExecutable {
        self.executable
    }

    fn count_results(&self) -> Result<usize, Failure> {
        let plugin = &self.client.plugin;
        let mut args = zeroed::<PJRT_LoadedExecutable_GetExecutable_Args>();
        args.loaded_executable = self.executable;
        plugin.call("PJRT_LoadedExecutable_GetExecutable", &mut args)?;
        let mut count = zeroed::<PJRT_Executable_NumOutputs_Args>();
        count.executable = args.executable;
        let counted = plugin.call("PJRT_Executable_NumOutputs", &mut count);
        let mut destroyed = zeroed::<PJRT_Executable_Destroy_Args>();
        destroyed.executable = args.executable;
        plugin.call("PJRT_Executable_Destroy", &mut destroyed)?;
        counted.map(|()| count.num_outputs)
    }

    /// Runs it, and waits for its results. Arguments are copies of this run's own: what the program aliases is
    /// donated.
    ///
    /// # Errors
    /// The error that the plugin reports.
    pub fn execute(&self, arguments: &[&ArrayLiteral]) -> Result<Vec<ArrayLiteral>, Failure> {
        let plugin = &self.client.plugin;
        let arguments: Vec<Buffer> =
            arguments.iter().map(|a| self.client.buffer(a)).collect::<Result<_, _>>()?;
        let options = zeroed::<PJRT_ExecuteOptions>();
        let pointers: Vec<*mut opaque::Buffer> = arguments.iter().map(|a| a.buffer).collect();
        let lists = [pointers.as_ptr()];
        let mut outputs: Vec<*mut opaque::Buffer> = vec![ptr::null_mut(); self.results];
        let output_lists = [outputs.as_mut_ptr()];
        let mut done = [ptr::null_mut()];
        let mut args = zeroed::<PJRT_LoadedExecutable_Execute_Args>();
        args.executable = self.executable;
        args.options = &raw const options;
        args.argument_lists = lists.as_ptr();
        args.num_devices = 1;
        args.num_args = pointers.len();
        args.output_lists = output_lists.as_ptr();
        args.device_complete_events = done.as_mut_ptr();
        // The lists live until the call ends; the arguments until the run has ended.
        plugin.call("PJRT_LoadedExecutable_Execute", &mut args)?;
        let outputs: Vec<Buffer> =
            outputs.into_iter().map(|b| Buffer::new(Arc::clone(&self.client), b)).collect();
        plugin.wait(done[0])?;
        outputs.iter().map(Buffer::to_literal).collect()
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        let mut args = zeroed::<PJRT_LoadedExecutable_Destroy_Args>();
        args.executable = self.executable;
        // The error cannot be reported.
        let _ = self.client.plugin.call("PJRT_LoadedExecutable_Destroy", &mut args);
    }
}
