//! Streams: work in order, launches, events, and waiting with a limit.

use std::ffi::c_void;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cudarc::driver::sys;

use crate::api::{SUCCESS, Status};
use crate::device::Context;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::memory::Staging;
use crate::module::Function;

/// A launch of a kernel.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Launch {
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// Arguments in order, as bytes, each as long as its parameter.
    pub arguments: Vec<Vec<u8>>,
}

impl Launch {
    /// A launch whose arguments are 64-bit values, such as addresses.
    #[must_use]
    pub fn new(grid: [u32; 3], block: [u32; 3], shared_bytes: u32, arguments: &[u64]) -> Self {
        let arguments = arguments.iter().map(|a| a.to_le_bytes().to_vec()).collect();
        Launch { grid, block, shared_bytes, arguments }
    }
}

/// Bytes of an argument that are aligned as every parameter may have to be.
#[repr(C, align(16))]
#[derive(Clone, Copy, Default)]
struct Aligned([u8; 16]);

/// Arguments where the driver can read them.
pub(crate) struct Arguments {
    _bytes: Vec<Aligned>,
    pointers: Vec<*mut c_void>,
}

impl Arguments {
    pub(crate) fn new(arguments: &[Vec<u8>]) -> Arguments {
        let blocks = |a: &Vec<u8>| a.len().div_ceil(size_of::<Aligned>());
        let mut bytes = vec![Aligned::default(); arguments.iter().map(blocks).sum()];
        let mut at = 0;
        let mut pointers = Vec::with_capacity(arguments.len());
        for a in arguments {
            for (to, from) in bytes[at..].iter_mut().zip(a.chunks(size_of::<Aligned>())) {
                to.0[..from.len()].copy_from_slice(from);
            }
            pointers.push(bytes[at..].as_mut_ptr().cast());
            at += blocks(a);
        }
        Arguments { _bytes: bytes, pointers }
    }

    /// One pointer an argument, valid while this value lives and is not moved from.
    pub(crate) fn pointers(&mut self) -> *mut *mut c_void {
        self.pointers.as_mut_ptr()
    }
}

/// Work in order. Clones are the same stream.
#[derive(Clone)]
pub struct Stream {
    pub(crate) inner: Arc<StreamInner>,
}

pub(crate) struct StreamInner {
    pub(crate) context: Arc<Context>,
    pub(crate) handle: sys::CUstream,
    pub(crate) staging: Mutex<Staging>,
}

// SAFETY: the handle belongs to the driver, whose functions may be called from any thread.
unsafe impl Send for StreamInner {}
// SAFETY: as above; the staging memory is behind a lock.
unsafe impl Sync for StreamInner {}

impl Drop for StreamInner {
    fn drop(&mut self) {
        if self.context.current().is_err() {
            return;
        }
        let api = self.context.api;
        // SAFETY: the stream is alive until the next call.
        if unsafe { (api.cuStreamQuery)(self.handle) } != SUCCESS {
            self.context.leave_busy();
        } else if let Ok(staging) = self.staging.get_mut() {
            staging.free(&self.context);
        }
        // SAFETY: nothing else has the stream. The call returns at once; the driver frees the stream when its
        // work is done.
        unsafe { (api.cuStreamDestroy_v2)(self.handle) };
    }
}

impl Stream {
    pub(crate) fn new(context: Arc<Context>) -> Result<Stream> {
        context.current()?;
        let mut handle = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the driver writes a handle.
        let status = unsafe { (context.api.cuStreamCreate)(&raw mut handle, flags) };
        context.check("cuStreamCreate", status)?;
        let staging = Mutex::new(Staging::default());
        Ok(Stream { inner: Arc::new(StreamInner { context, handle, staging }) })
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.inner.context
    }

    /// Launches a kernel; it runs after everything that was put on the stream before. Errors: the launch does
    /// not fit the kernel or the device; an earlier kernel failed.
    pub fn launch(&self, function: &Function, launch: &Launch) -> Result<()> {
        let context = self.context();
        context.current()?;
        prepare(context, function, launch)?;
        let mut arguments = Arguments::new(&launch.arguments);
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        // SAFETY: function and stream are of this context and alive; there is a pointer for each parameter,
        // to as many bytes as it has (`prepare`).
        let status = unsafe {
            (context.api.cuLaunchKernel)(
                function.inner.handle,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                launch.shared_bytes,
                self.inner.handle,
                arguments.pointers(),
                std::ptr::null_mut(),
            )
        };
        let refused = [
            sys::CUresult::CUDA_ERROR_INVALID_VALUE,
            sys::CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
            sys::CUresult::CUDA_ERROR_INVALID_HANDLE,
        ];
        if refused.iter().any(|&r| r as Status == status) {
            let (name, message) = context.api.describe(status);
            let [g, b] = [launch.grid, launch.block].map(|d| format!("{}x{}x{}", d[0], d[1], d[2]));
            let message =
                format!("{message} ({name}): grid {g}, block {b}, {} shared bytes", launch.shared_bytes);
            return Err(Error::Launch { kernel: function.name().to_owned(), message });
        }
        // A failure of an earlier kernel is not this one's.
        context.check("cuLaunchKernel", status)?;
        context.launched(&function.inner.name);
        Ok(())
    }

    /// Waits until everything on the stream is done.
    ///
    /// # Errors
    /// A kernel failed; or the device took longer than it may: it is not used any more then.
    pub fn synchronize(&self) -> Result<()> {
        let context = self.context();
        context.current()?;
        // SAFETY: the stream is alive.
        wait(context, "cuStreamQuery", || unsafe { (context.api.cuStreamQuery)(self.inner.handle) })
    }

    /// Marks this point of the stream.
    pub fn record(&self) -> Result<Event> {
        let event = Event::new(self.context())?;
        event.record(self)?;
        Ok(event)
    }

    /// What is put on this stream from now on runs after an event of any stream.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        let context = self.context();
        context.current()?;
        // SAFETY: stream and event are alive; the driver refuses those of different devices without harm.
        let status = unsafe { (context.api.cuStreamWaitEvent)(self.inner.handle, event.handle, 0) };
        context.check("cuStreamWaitEvent", status)
    }

    /// Records what `work` puts on this stream (launches, copies on the device, fills) into a graph instead
    /// of executing it.
    ///
    /// # Errors
    /// What `work` returns; the driver's, where something cannot be recorded.
    pub fn capture(&self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<Graph> {
        let context = self.context();
        context.current()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive.
        let status = unsafe { (context.api.cuStreamBeginCapture_v2)(self.inner.handle, mode) };
        context.check("cuStreamBeginCapture", status)?;
        let done = work(self);
        context.current()?;
        let mut graph = std::ptr::null_mut();
        // SAFETY: a capture was begun on this stream; the driver writes a handle, or null.
        let status = unsafe { (context.api.cuStreamEndCapture)(self.inner.handle, &raw mut graph) };
        let graph = (!graph.is_null()).then(|| Graph::captured(context.clone(), graph));
        done?;
        context.check("cuStreamEndCapture", status)?;
        graph.ok_or_else(|| Error::Driver {
            call: "cuStreamEndCapture",
            code: 0,
            name: "no graph".to_owned(),
            message: "nothing was recorded".to_owned(),
        })
    }
}

/// Checks a launch before the driver sees it, and allows its shared memory.
pub(crate) fn prepare(context: &Arc<Context>, function: &Function, launch: &Launch) -> Result<()> {
    let refused = |message: &str| {
        Err(Error::Launch { kernel: function.name().to_owned(), message: message.to_owned() })
    };
    if !Arc::ptr_eq(context, function.context()) {
        return refused("the kernel is of another device");
    }
    if launch.grid.contains(&0) || launch.block.contains(&0) {
        return refused("a launch has at least one block and one thread");
    }
    function.check_arguments(&launch.arguments)?;
    function.allow_shared(launch.shared_bytes)
}

/// A point of a stream.
pub struct Event {
    context: Arc<Context>,
    pub(crate) handle: sys::CUevent,
}

// SAFETY: the handle belongs to the driver, whose functions may be called from any thread.
unsafe impl Send for Event {}
// SAFETY: as above; nothing changes it but the driver.
unsafe impl Sync for Event {}

impl Event {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Event> {
        context.current()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the driver writes a handle.
        let status = unsafe { (context.api.cuEventCreate)(&raw mut handle, 0) };
        context.check("cuEventCreate", status)?;
        Ok(Event { context: context.clone(), handle })
    }

    pub(crate) fn record(&self, stream: &Stream) -> Result<()> {
        self.context.current()?;
        // SAFETY: event and stream are alive.
        let status = unsafe { (self.context.api.cuEventRecord)(self.handle, stream.inner.handle) };
        self.context.check("cuEventRecord", status)
    }

    /// Whether everything before it is done.
    pub fn is_done(&self) -> Result<bool> {
        self.context.current()?;
        // SAFETY: the event is alive.
        let status = unsafe { (self.context.api.cuEventQuery)(self.handle) };
        if status == sys::CUresult::CUDA_ERROR_NOT_READY as Status {
            return Ok(false);
        }
        self.context.check("cuEventQuery", status)?;
        Ok(true)
    }

    /// Waits until everything before it is done.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn synchronize(&self) -> Result<()> {
        self.context.current()?;
        // SAFETY: the event is alive.
        wait(&self.context, "cuEventQuery", || unsafe { (self.context.api.cuEventQuery)(self.handle) })
    }

    /// Waits for both, and gives the milliseconds from the earlier event to this one.
    pub fn milliseconds_since(&self, earlier: &Event) -> Result<f32> {
        earlier.synchronize()?;
        self.synchronize()?;
        let mut milliseconds = 0.0;
        // SAFETY: both events are alive; the driver writes a number.
        let status = unsafe {
            (self.context.api.cuEventElapsedTime_v2)(&raw mut milliseconds, earlier.handle, self.handle)
        };
        self.context.check("cuEventElapsedTime", status)?;
        Ok(milliseconds)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.current().is_ok() {
            // SAFETY: nothing else has the event. The call returns at once, also if it is not done.
            unsafe { (self.context.api.cuEventDestroy_v2)(self.handle) };
        }
    }
}

/// How long a thread spins before it sleeps: most of what is waited for is done by then.
const SPIN: Duration = Duration::from_micros(200);
/// How long it sleeps between two looks.
const SLEEP: Duration = Duration::from_micros(50);

/// Asks the driver until it is done. Errors: what it says; it takes longer than it may.
fn wait(context: &Context, call: &'static str, query: impl Fn() -> Status) -> Result<()> {
    let start = Instant::now();
    loop {
        let status = query();
        if status != sys::CUresult::CUDA_ERROR_NOT_READY as Status {
            return context.check(call, status);
        }
        let passed = start.elapsed();
        if passed > context.timeout {
            let seconds = context.timeout.as_secs_f64();
            return Err(context.break_with(Error::Timeout { kernel: context.last_kernel(), seconds }));
        }
        if passed < SPIN {
            std::hint::spin_loop();
        } else {
            std::thread::sleep(SLEEP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_aligned_and_whole() {
        let long: Vec<u8> = (0..40).collect();
        let mut a = Arguments::new(&[vec![7], long.clone(), 5_u64.to_le_bytes().to_vec()]);
        let pointers: Vec<*mut c_void> = a.pointers.clone();
        assert!(pointers.iter().all(|p| p.addr() % 16 == 0));
        assert_eq!(a.pointers(), a.pointers.as_mut_ptr());
        let flat: Vec<u8> = a._bytes.iter().flat_map(|b| b.0).collect();
        assert_eq!((flat[0], &flat[16..56], &flat[64..72]), (7, &long[..], &5_u64.to_le_bytes()[..]));
        assert_eq!(pointers[2].addr() - pointers[0].addr(), 64);
    }
}
