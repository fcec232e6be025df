//! A client of a plugin.

use std::ptr;
use std::sync::Arc;

use hlo::{ArrayLiteral, Module};
use hlo_pjrt_abi::numbers::{buffer_type, semantics};
use hlo_pjrt_abi::opaque;
use hlo_pjrt_abi::opaque::Device;
use hlo_pjrt_abi::structs::{
    PJRT_Client_AddressableDevices_Args, PJRT_Client_BufferFromHostBuffer_Args, PJRT_Client_Compile_Args,
    PJRT_Client_Create_Args, PJRT_Client_Destroy_Args, PJRT_Client_PlatformName_Args,
    PJRT_Client_PlatformVersion_Args, PJRT_Program,
};
use hlo_pjrt_abi::{Code, Failure};
use hlo_pjrt_abi::{options, program};

use crate::executable::{Buffer, Executable, bytes_of};
use crate::plugin::{Plugin, bytes, zeroed};

/// What a plugin calls its platform, and its version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Platform {
    /// `cpu`, `cuda`.
    pub name: String,
    /// For people.
    pub version: String,
}

/// A client, which has devices.
#[derive(Debug)]
pub struct Client {
    pub(crate) plugin: Arc<Plugin>,
    client: *mut opaque::Client,
    /// The first that this process can use.
    device: *mut Device,
    platform: Platform,
}

// SAFETY: the C API lets any thread use a client and its devices.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

impl Client {
    /// Makes a client without options.
    ///
    /// # Errors
    /// What the plugin says: there is no such device, say; [`Code::FailedPrecondition`]: it has none.
    pub fn new(plugin: Arc<Plugin>) -> Result<Arc<Self>, Failure> {
        let mut args = zeroed::<PJRT_Client_Create_Args>();
        plugin.call("PJRT_Client_Create", &mut args)?;
        let mut client = Self {
            plugin,
            client: args.client,
            device: ptr::null_mut(),
            platform: Platform { name: String::new(), version: String::new() },
        };
        let mut args = zeroed::<PJRT_Client_AddressableDevices_Args>();
        args.client = client.client;
        client.plugin.call("PJRT_Client_AddressableDevices", &mut args)?;
        if args.num_addressable_devices == 0 || args.addressable_devices.is_null() {
            let message = format!("{} has no device", client.plugin.path());
            return Err(Failure::new(Code::FailedPrecondition, message));
        }
        // SAFETY: the C API: as many pointers, which live as long as the client.
        client.device = unsafe { *args.addressable_devices };
        let mut name = zeroed::<PJRT_Client_PlatformName_Args>();
        name.client = client.client;
        client.plugin.call("PJRT_Client_PlatformName", &mut name)?;
        let mut version = zeroed::<PJRT_Client_PlatformVersion_Args>();
        version.client = client.client;
        client.plugin.call("PJRT_Client_PlatformVersion", &mut version)?;
        // SAFETY: the C API: texts of that many bytes that live as long as the client.
        let text = |start: *const std::ffi::c_char, len| unsafe {
            String::from_utf8_lossy(bytes(start.cast(), len)).into_owned()
        };
        client.platform = Platform {
            name: text(name.platform_name, name.platform_name_size),
            version: text(version.platform_version, version.platform_version_size),
        };
        Ok(Arc::new(client))
    }

    /// What the plugin says that it is.
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// Compiles a program for one device. `format`: `mlir` for StableHLO as text or bytecode, `hlo` for a
    /// serialized `HloModuleProto`. `tupled`: its one parameter is a tuple, of which each element is an
    /// argument.
    ///
    /// # Errors
    /// The error that the plugin reports.
    pub fn compile(self: &Arc<Self>, format: &str, code: &[u8], tupled: bool) -> Result<Executable, Failure> {
        let mut program = zeroed::<PJRT_Program>();
        program.code = code.as_ptr().cast_mut().cast();
        program.code_size = code.len();
        program.format = format.as_ptr().cast();
        program.format_size = format.len();
        let options = options::write_for_one_device(tupled);
        let mut args = zeroed::<PJRT_Client_Compile_Args>();
        args.client = self.client;
        args.program = &raw mut program;
        args.compile_options = options.as_ptr().cast();
        args.compile_options_size = options.len();
        // What is pointed to lives until the call ends, and the C API needs it no longer.
        self.plugin.call("PJRT_Client_Compile", &mut args)?;
        Executable::new(Arc::clone(self), args.executable)
    }

    /// Compiles a verified module for one device, as an `HloModuleProto`; `tupled` as for
    /// [`Client::compile`].
    ///
    /// # Errors
    /// It says what has no field there ([`Code::Unimplemented`]), or what the plugin says.
    pub fn compile_hlo(self: &Arc<Self>, module: &Module, tupled: bool) -> Result<Executable, Failure> {
        self.compile("hlo", &program::write(module)?, tupled)
    }

    /// Copies an array to the device.
    ///
    /// # Errors
    /// The error that the plugin reports.
    pub(crate) fn buffer(self: &Arc<Self>, array: &ArrayLiteral) -> Result<Buffer, Failure> {
        let shape = array.shape();
        let data = bytes_of(array);
        let mut args = zeroed::<PJRT_Client_BufferFromHostBuffer_Args>();
        args.client = self.client;
        args.data = data.as_ptr().cast_mut().cast();
        args.r#type = buffer_type(shape.element_type);
        args.dims = shape.dims.as_ptr();
        args.num_dims = shape.dims.len();
        args.host_buffer_semantics = semantics::IMMUTABLE_ONLY_DURING_CALL;
        args.device = self.device;
        self.plugin.call("PJRT_Client_BufferFromHostBuffer", &mut args)?;
        let buffer = Buffer::new(Arc::clone(self), args.buffer);
        self.plugin.wait(args.done_with_host_buffer)?;
        Ok(buffer)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut args = zeroed::<PJRT_Client_Destroy_Args>();
        args.client = self.client;
        // The error cannot be reported.
        let _ = self.plugin.call("PJRT_Client_Destroy", &mut args);
    }
}
