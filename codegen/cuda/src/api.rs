//! The driver's functions: the one list of symbols, and how they are found.
//!
//! Signatures are those of cudarc's bindings, which a constant below checks. The functions are called through
//! pointers of this crate nevertheless: cudarc panics where a symbol is missing, takes the library from fixed
//! names only, and returns status codes as a Rust enum, for which a code of a newer driver would be undefined
//! behaviour.
//!
//! **Invariant:** an [`Api`] exists only with every function of the list, so no call can miss one.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::path::Path;

use cudarc::driver::sys;
use libloading::Library;

use crate::error::{Error, Result};

/// A status code as the driver returns it.
pub(crate) type Status = c_int;

/// `CUDA_SUCCESS`.
pub(crate) const SUCCESS: Status = 0;

macro_rules! driver_functions {
    ($(fn $name:ident($($argument:ident: $ty:ty),*);)*) => {
        /// Pointers to the driver's functions.
        #[allow(non_snake_case, reason = "the names of CUDA's driver API")]
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($argument: $ty),*) -> Status,)*
        }

        /// Every symbol that this crate uses.
        pub const SYMBOLS: &[&str] = &[$(stringify!($name)),*];

        // Each signature is that of cudarc's binding.
        const _: () = {
            $(let _: unsafe fn($($ty),*) -> sys::CUresult = sys::$name;)*
        };

        impl Api {
            /// Every function, or the names of those that the library lacks.
            fn find(library: &'static Library) -> std::result::Result<Api, Vec<&'static str>> {
                // SAFETY: the symbol is looked at for its presence alone.
                let lacks = |name: &&&'static str| unsafe { library.get::<*const ()>(name.as_bytes()) }.is_err();
                let missing: Vec<&'static str> = SYMBOLS.iter().filter(lacks).copied().collect();
                if !missing.is_empty() {
                    return Err(missing);
                }
                Ok(Api {
                    $($name: {
                        // SAFETY: the symbol has the signature of CUDA's header, from which cudarc's binding
                        // is generated; status codes are C integers. The library is never unloaded, so the
                        // pointer stays valid.
                        let found = unsafe { library.get::<unsafe extern "C" fn($($ty),*) -> Status>(stringify!($name).as_bytes()) };
                        match found {
                            Ok(symbol) => *symbol,
                            Err(_) => return Err(vec![stringify!($name)]),
                        }
                    },)*
                })
            }
        }
    };
}

driver_functions! {
    fn cuInit(flags: c_uint);
    fn cuDriverGetVersion(version: *mut c_int);
    fn cuGetErrorName(error: sys::CUresult, name: *mut *const c_char);
    fn cuGetErrorString(error: sys::CUresult, text: *mut *const c_char);
    fn cuDeviceGetCount(count: *mut c_int);
    fn cuDeviceGet(device: *mut sys::CUdevice, ordinal: c_int);
    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: sys::CUdevice);
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: sys::CUdevice_attribute, device: sys::CUdevice);
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: sys::CUdevice);
    fn cuDeviceGetDefaultMemPool(pool: *mut sys::CUmemoryPool, device: sys::CUdevice);
    fn cuDevicePrimaryCtxRetain(context: *mut sys::CUcontext, device: sys::CUdevice);
    fn cuDevicePrimaryCtxRelease_v2(device: sys::CUdevice);
    fn cuCtxSetCurrent(context: sys::CUcontext);
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    fn cuMemPoolSetAttribute(pool: sys::CUmemoryPool, attribute: sys::CUmemPool_attribute, value: *mut c_void);
    fn cuMemPoolTrimTo(pool: sys::CUmemoryPool, keep: usize);
    fn cuMemAllocAsync(address: *mut sys::CUdeviceptr, bytes: usize, stream: sys::CUstream);
    fn cuMemFreeAsync(address: sys::CUdeviceptr, stream: sys::CUstream);
    fn cuMemAllocHost_v2(pointer: *mut *mut c_void, bytes: usize);
    fn cuMemFreeHost(pointer: *mut c_void);
    fn cuMemcpyHtoDAsync_v2(to: sys::CUdeviceptr, from: *const c_void, bytes: usize, stream: sys::CUstream);
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: sys::CUdeviceptr, bytes: usize, stream: sys::CUstream);
    fn cuMemcpyDtoDAsync_v2(to: sys::CUdeviceptr, from: sys::CUdeviceptr, bytes: usize, stream: sys::CUstream);
    fn cuMemsetD8Async(to: sys::CUdeviceptr, byte: u8, bytes: usize, stream: sys::CUstream);
    fn cuStreamCreate(stream: *mut sys::CUstream, flags: c_uint);
    fn cuStreamDestroy_v2(stream: sys::CUstream);
    fn cuStreamQuery(stream: sys::CUstream);
    fn cuStreamWaitEvent(stream: sys::CUstream, event: sys::CUevent, flags: c_uint);
    fn cuStreamBeginCapture_v2(stream: sys::CUstream, mode: sys::CUstreamCaptureMode);
    fn cuStreamEndCapture(stream: sys::CUstream, graph: *mut sys::CUgraph);
    fn cuEventCreate(event: *mut sys::CUevent, flags: c_uint);
    fn cuEventRecord(event: sys::CUevent, stream: sys::CUstream);
    fn cuEventQuery(event: sys::CUevent);
    fn cuEventElapsedTime_v2(milliseconds: *mut f32, start: sys::CUevent, end: sys::CUevent);
    fn cuEventDestroy_v2(event: sys::CUevent);
    fn cuModuleLoadDataEx(module: *mut sys::CUmodule, image: *const c_void, count: c_uint, options: *mut sys::CUjit_option, values: *mut *mut c_void);
    fn cuModuleUnload(module: sys::CUmodule);
    fn cuModuleGetFunction(function: *mut sys::CUfunction, module: sys::CUmodule, name: *const c_char);
    fn cuModuleGetGlobal_v2(address: *mut sys::CUdeviceptr, bytes: *mut usize, module: sys::CUmodule, name: *const c_char);
    fn cuFuncGetAttribute(value: *mut c_int, attribute: sys::CUfunction_attribute, function: sys::CUfunction);
    fn cuFuncSetAttribute(function: sys::CUfunction, attribute: sys::CUfunction_attribute, value: c_int);
    fn cuFuncGetParamInfo(function: sys::CUfunction, index: usize, offset: *mut usize, bytes: *mut usize);
    fn cuLaunchKernel(function: sys::CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: sys::CUstream, arguments: *mut *mut c_void, extra: *mut *mut c_void);
    fn cuGraphCreate(graph: *mut sys::CUgraph, flags: c_uint);
    fn cuGraphDestroy(graph: sys::CUgraph);
    fn cuGraphAddKernelNode_v2(node: *mut sys::CUgraphNode, graph: sys::CUgraph, dependencies: *const sys::CUgraphNode, count: usize, parameters: *const sys::CUDA_KERNEL_NODE_PARAMS);
    fn cuGraphAddMemcpyNode(node: *mut sys::CUgraphNode, graph: sys::CUgraph, dependencies: *const sys::CUgraphNode, count: usize, parameters: *const sys::CUDA_MEMCPY3D, context: sys::CUcontext);
    fn cuGraphAddMemsetNode(node: *mut sys::CUgraphNode, graph: sys::CUgraph, dependencies: *const sys::CUgraphNode, count: usize, parameters: *const sys::CUDA_MEMSET_NODE_PARAMS, context: sys::CUcontext);
    fn cuGraphInstantiateWithFlags(instance: *mut sys::CUgraphExec, graph: sys::CUgraph, flags: c_ulonglong);
    fn cuGraphExecDestroy(instance: sys::CUgraphExec);
    fn cuGraphExecKernelNodeSetParams_v2(instance: sys::CUgraphExec, node: sys::CUgraphNode, parameters: *const sys::CUDA_KERNEL_NODE_PARAMS);
    fn cuGraphExecMemcpyNodeSetParams(instance: sys::CUgraphExec, node: sys::CUgraphNode, parameters: *const sys::CUDA_MEMCPY3D, context: sys::CUcontext);
    fn cuGraphExecMemsetNodeSetParams(instance: sys::CUgraphExec, node: sys::CUgraphNode, parameters: *const sys::CUDA_MEMSET_NODE_PARAMS, context: sys::CUcontext);
    fn cuGraphExecUpdate_v2(instance: sys::CUgraphExec, graph: sys::CUgraph, result: *mut sys::CUgraphExecUpdateResultInfo);
    fn cuGraphLaunch(instance: sys::CUgraphExec, stream: sys::CUstream);
}

/// What the library is called where no path is given.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

impl Api {
    /// Loads the driver's library, from a path or by its usual names. Errors: it is not there, or lacks
    /// functions.
    pub(crate) fn load(path: Option<&Path>) -> Result<&'static Api> {
        let candidates: Vec<&Path> = match path {
            Some(path) => vec![path],
            None => NAMES.iter().map(Path::new).collect(),
        };
        let mut said = Vec::new();
        for candidate in candidates {
            // SAFETY: the initializers of the driver's library run, as in every program that is linked with
            // it.
            match unsafe { Library::new(candidate) } {
                Ok(library) => {
                    // Never unloaded: the driver has threads and handlers of its own that run until the
                    // process ends.
                    let library: &'static Library = Box::leak(Box::new(library));
                    let library_name = candidate.display().to_string();
                    let api = Api::find(library)
                        .map_err(|symbols| Error::MissingSymbols { library: library_name, symbols })?;
                    return Ok(Box::leak(Box::new(api)));
                }
                Err(e) => said.push(e.to_string()),
            }
        }
        Err(Error::NoLibrary { message: said.join("; ") })
    }

    /// Name and text of a status code, such as `CUDA_ERROR_NO_DEVICE` and
    /// `no CUDA-capable device is detected`.
    pub(crate) fn describe(&self, status: Status) -> (String, String) {
        type Ask = unsafe extern "C" fn(Status, *mut *const c_char) -> Status;
        type Asked = unsafe extern "C" fn(sys::CUresult, *mut *const c_char) -> Status;
        let text = |ask: Asked| -> Option<String> {
            // SAFETY: both types are passed as a C integer; as an integer, any code may be asked for.
            let ask: Ask = unsafe { std::mem::transmute::<Asked, Ask>(ask) };
            let mut pointer: *const c_char = std::ptr::null();
            // SAFETY: the driver writes a pointer to a string that lives as long as itself, or fails.
            let found = unsafe { ask(status, &raw mut pointer) };
            if found != SUCCESS || pointer.is_null() {
                return None;
            }
            // SAFETY: the driver's strings end with NUL.
            Some(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
        };
        let name = text(self.cuGetErrorName).unwrap_or_else(|| format!("CUDA error {status}"));
        let message = text(self.cuGetErrorString)
            .unwrap_or_else(|| "an error that the driver does not name".to_owned());
        (name, message)
    }
}
