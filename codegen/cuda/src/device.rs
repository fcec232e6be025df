//! The driver, its devices, and the context of one.

use std::ffi::{CStr, c_int};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use cudarc::driver::sys;
use rustc_hash::FxHashMap;

use crate::api::{Api, SUCCESS, Status};
use crate::error::{Error, Result};
use crate::module::{Image, Module};
use crate::stream::Stream;

/// The oldest driver that is supported, CUDA 12.8: the first with every function of [`crate::SYMBOLS`].
pub const OLDEST_DRIVER: i32 = 12080;

/// How long the device may take by default, before [`Error::Timeout`].
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// The driver: loaded, new enough, initialized, with a device at least.
#[derive(Clone)]
pub struct Driver {
    api: &'static Api,
    version: i32,
    count: usize,
}

/// The properties of a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceInfo {
    /// Its number.
    pub ordinal: usize,
    /// Its name, `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// Compute capability, (9, 0).
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of global memory.
    pub memory_bytes: u64,
    /// Bytes of shared memory that a block has without asking.
    pub shared_bytes_per_block: u32,
    /// Bytes of shared memory that a block may ask for.
    pub shared_bytes_per_block_opt_in: u32,
    /// Resident threads of a multiprocessor, at most.
    pub threads_per_multiprocessor: u32,
    /// Clock of the multiprocessors, kHz; 0: not said.
    pub clock_khz: u32,
    /// Clock of the memory, kHz; 0: not said.
    pub memory_clock_khz: u32,
    /// Width of the memory bus, bits; 0: not said.
    pub memory_bus_bits: u32,
    /// Bytes of the L2 cache.
    pub l2_bytes: u64,
    /// The driver's version: 1000 * major + 10 * minor of CUDA.
    pub driver_version: i32,
}

impl DeviceInfo {
    /// 90 for compute capability 9.0.
    #[must_use]
    pub fn sm(&self) -> u32 {
        self.compute_capability.0 * 10 + self.compute_capability.1
    }
}

impl Driver {
    /// Loads the driver of this machine. Errors: there is none, it is too old, lacks functions, or sees no
    /// device.
    pub fn load() -> Result<Driver> {
        Driver::of(Api::load(None)?)
    }

    /// The same from a path of the library.
    pub fn load_from(library: &Path) -> Result<Driver> {
        Driver::of(Api::load(Some(library))?)
    }

    fn of(api: &'static Api) -> Result<Driver> {
        let mut version = 0;
        // SAFETY: the driver writes an integer; this function needs no initialization.
        let status = unsafe { (api.cuDriverGetVersion)(&raw mut version) };
        check(api, "cuDriverGetVersion", status)?;
        if version < OLDEST_DRIVER {
            return Err(Error::OldDriver { found: version, needed: OLDEST_DRIVER });
        }
        // SAFETY: no precondition.
        let status = unsafe { (api.cuInit)(0) };
        if status == sys::CUresult::CUDA_ERROR_NO_DEVICE as Status {
            return Err(Error::NoDevice { message: api.describe(status).1 });
        }
        check(api, "cuInit", status)?;
        let mut count = 0;
        // SAFETY: the driver writes an integer.
        let status = unsafe { (api.cuDeviceGetCount)(&raw mut count) };
        check(api, "cuDeviceGetCount", status)?;
        if count <= 0 {
            return Err(Error::NoDevice { message: "it counts none".to_owned() });
        }
        Ok(Driver { api, version, count: usize::try_from(count).unwrap_or(0) })
    }

    /// The version: 1000 * major + 10 * minor of CUDA.
    #[must_use]
    pub fn version(&self) -> i32 {
        self.version
    }

    /// The number of devices; at least one.
    #[must_use]
    pub fn device_count(&self) -> usize {
        self.count
    }

    /// The properties of each device.
    pub fn devices(&self) -> Result<Vec<DeviceInfo>> {
        (0..self.count).map(|ordinal| Ok(self.info(ordinal)?.1)).collect()
    }

    fn info(&self, ordinal: usize) -> Result<(sys::CUdevice, DeviceInfo)> {
        let api = self.api;
        let number = c_int::try_from(ordinal).ok().filter(|_| ordinal < self.count);
        let Some(number) = number else { return Err(Error::NoSuchDevice { ordinal, count: self.count }) };
        let mut device = 0;
        // SAFETY: the driver writes a handle, which is an integer.
        check(api, "cuDeviceGet", unsafe { (api.cuDeviceGet)(&raw mut device, number) })?;
        let mut name = [0_u8; 256];
        // SAFETY: the driver writes at most 255 bytes and a NUL; the last byte of the array is NUL anyway.
        let status = unsafe { (api.cuDeviceGetName)(name.as_mut_ptr().cast(), 255, device) };
        check(api, "cuDeviceGetName", status)?;
        let name = CStr::from_bytes_until_nul(&name).map(|n| n.to_string_lossy().into_owned());
        let mut memory_bytes = 0;
        // SAFETY: the driver writes an integer.
        let status = unsafe { (api.cuDeviceTotalMem_v2)(&raw mut memory_bytes, device) };
        check(api, "cuDeviceTotalMem", status)?;
        let attribute = |which: sys::CUdevice_attribute| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the driver writes an integer.
            let status = unsafe { (api.cuDeviceGetAttribute)(&raw mut value, which, device) };
            check(api, "cuDeviceGetAttribute", status)?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        use sys::CUdevice_attribute as A;
        let info = DeviceInfo {
            ordinal,
            name: name.unwrap_or_default(),
            compute_capability: (
                attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory_bytes: memory_bytes as u64,
            shared_bytes_per_block: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
            shared_bytes_per_block_opt_in: attribute(
                A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )?,
            threads_per_multiprocessor: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            // Newer drivers may say nothing of these.
            clock_khz: attribute(A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE).unwrap_or(0),
            memory_clock_khz: attribute(A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE).unwrap_or(0),
            memory_bus_bits: attribute(A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH).unwrap_or(0),
            l2_bytes: u64::from(attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
            driver_version: self.version,
        };
        if attribute(A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? == 0 {
            let what = "it has no stream-ordered memory pools".to_owned();
            return Err(Error::Unsupported { device: info.name, what });
        }
        Ok((device, info))
    }

    /// Opens a device, with a limit on the time that calls wait for it.
    pub fn open(&self, ordinal: usize, timeout: Duration) -> Result<Device> {
        let (device, info) = self.info(ordinal)?;
        let api = self.api;
        let mut context = std::ptr::null_mut();
        // SAFETY: the driver writes a handle. It is released by `Context::drop`.
        let status = unsafe { (api.cuDevicePrimaryCtxRetain)(&raw mut context, device) };
        check(api, "cuDevicePrimaryCtxRetain", status)?;
        let context = Arc::new(Context {
            api,
            device,
            handle: context,
            info,
            timeout,
            broken: OnceLock::new(),
            is_busy: AtomicBool::new(false),
            last_kernel: Mutex::new(None),
            images: Mutex::new(FxHashMap::default()),
        });
        context.current()?;
        let mut pool = std::ptr::null_mut();
        // SAFETY: the driver writes a handle.
        let status = unsafe { (api.cuDeviceGetDefaultMemPool)(&raw mut pool, device) };
        context.check("cuDeviceGetDefaultMemPool", status)?;
        let mut keep = u64::MAX;
        // SAFETY: the attribute is a 64-bit number, which the driver reads.
        let status = unsafe {
            let which = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            (api.cuMemPoolSetAttribute)(pool, which, (&raw mut keep).cast())
        };
        context.check("cuMemPoolSetAttribute", status)?;
        Ok(Device { context })
    }
}

/// A device that is open. Clones are the same device. When the last clone, stream, buffer, module and graph
/// of it is gone, it is closed.
#[derive(Clone)]
pub struct Device {
    pub(crate) context: Arc<Context>,
}

impl Device {
    /// What it is.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.context.info
    }

    /// A new stream.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self.context.clone())
    }

    /// The module of a PTX text, compiled by the driver; the same text is compiled once while the device is
    /// open.
    pub fn module(&self, ptx: &str) -> Result<Module> {
        let images = |c: &Context| c.images.lock().unwrap_or_else(PoisonError::into_inner).get(ptx).cloned();
        let image = match images(&self.context) {
            Some(image) => {
                self.context.current()?;
                image
            }
            None => {
                // Not under the lock: texts are compiled concurrently.
                let image = Image::compile(&self.context, ptx)?;
                let mut all = self.context.images.lock().unwrap_or_else(PoisonError::into_inner);
                all.entry(ptx.into()).or_insert(image).clone()
            }
        };
        Ok(Module { context: self.context.clone(), image })
    }

    /// How many modules are loaded.
    #[must_use]
    pub fn modules(&self) -> usize {
        self.context.images.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Bytes of global memory, free and all.
    pub fn memory(&self) -> Result<(u64, u64)> {
        self.context.current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the driver writes integers.
        let status = unsafe { (self.context.api.cuMemGetInfo_v2)(&raw mut free, &raw mut total) };
        self.context.check("cuMemGetInfo", status)?;
        Ok((free as u64, total as u64))
    }

    /// Returns the memory kept for later allocations to the system.
    pub fn trim(&self) -> Result<()> {
        self.context.current()?;
        let mut pool = std::ptr::null_mut();
        // SAFETY: the driver writes a handle.
        let status =
            unsafe { (self.context.api.cuDeviceGetDefaultMemPool)(&raw mut pool, self.context.device) };
        self.context.check("cuDeviceGetDefaultMemPool", status)?;
        // SAFETY: the pool is the device's own, which lives as long as the driver.
        let status = unsafe { (self.context.api.cuMemPoolTrimTo)(pool, 0) };
        self.context.check("cuMemPoolTrimTo", status)
    }

    /// The first failure that made the device unusable.
    #[must_use]
    pub fn broken(&self) -> Option<&str> {
        self.context.broken.get().map(String::as_str)
    }
}

/// The primary context of a device.
///
/// **Invariant:** once `broken` is set, no function of the driver is called for it any more, so nothing can
/// block or fail in another way.
pub(crate) struct Context {
    pub(crate) api: &'static Api,
    device: sys::CUdevice,
    pub(crate) handle: sys::CUcontext,
    pub(crate) info: DeviceInfo,
    pub(crate) timeout: Duration,
    broken: OnceLock<String>,
    /// A stream was dropped while it had work: closing the context would wait for it.
    is_busy: AtomicBool,
    last_kernel: Mutex<Option<Arc<str>>>,
    /// Modules by their text.
    images: Mutex<FxHashMap<Box<str>, Arc<Image>>>,
}

// SAFETY: the handles belong to the driver, whose functions may be called from any thread; each call makes
// the context current first.
unsafe impl Send for Context {}
// SAFETY: as above; what this crate changes is behind locks.
unsafe impl Sync for Context {}

/// Statuses after which the context cannot be used: the driver returns them from every later call.
const STICKY: [sys::CUresult; 12] = [
    sys::CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
    sys::CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE,
    sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
    sys::CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
    sys::CUresult::CUDA_ERROR_ASSERT,
    sys::CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
    sys::CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
    sys::CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
    sys::CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
    sys::CUresult::CUDA_ERROR_INVALID_PC,
    sys::CUresult::CUDA_ERROR_LAUNCH_FAILED,
    sys::CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
];

impl Context {
    /// Makes the context that of this thread. Errors: it is broken.
    pub(crate) fn current(&self) -> Result<()> {
        if let Some(cause) = self.broken.get() {
            return Err(Error::Broken { cause: cause.clone() });
        }
        // SAFETY: the handle is retained until this context is dropped.
        let status = unsafe { (self.api.cuCtxSetCurrent)(self.handle) };
        self.check("cuCtxSetCurrent", status)
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.get().is_some()
    }

    /// Remembers the first failure that made the context unusable.
    pub(crate) fn break_with(&self, error: Error) -> Error {
        let _ = self.broken.set(error.to_string());
        error
    }

    /// A stream with unfinished work was dropped.
    pub(crate) fn leave_busy(&self) {
        self.is_busy.store(true, Ordering::Relaxed);
    }

    pub(crate) fn launched(&self, kernel: &Arc<str>) {
        *self.last_kernel.lock().unwrap_or_else(PoisonError::into_inner) = Some(kernel.clone());
    }

    /// The kernel that was launched last.
    pub(crate) fn last_kernel(&self) -> String {
        let last = self.last_kernel.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map_or_else(|| "none".to_owned(), |k| k.to_string())
    }

    /// The error of a status.
    pub(crate) fn check(&self, call: &'static str, status: Status) -> Result<()> {
        if status == SUCCESS {
            return Ok(());
        }
        if STICKY.iter().any(|&s| s as Status == status) {
            let (name, message) = self.api.describe(status);
            let error = Error::Kernel { kernel: self.last_kernel(), message: format!("{message} ({name})") };
            return Err(self.break_with(error));
        }
        check(self.api, call, status)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // A context that failed or has work left is not closed: that would wait. The driver closes it with
        // the process.
        if self.is_broken() || self.is_busy.load(Ordering::Relaxed) || self.current().is_err() {
            return;
        }
        let images = std::mem::take(self.images.get_mut().unwrap_or_else(PoisonError::into_inner));
        for image in images.into_values() {
            // SAFETY: modules, functions and graphs keep the context, so nothing uses the module any more.
            unsafe { (self.api.cuModuleUnload)(image.handle) };
        }
        // SAFETY: it was retained once.
        unsafe { (self.api.cuDevicePrimaryCtxRelease_v2)(self.device) };
    }
}

/// The error of a status where no context is.
fn check(api: &Api, call: &'static str, status: Status) -> Result<()> {
    if status == SUCCESS {
        return Ok(());
    }
    let (name, message) = api.describe(status);
    Err(Error::Driver { call, code: status, name, message })
}
