//! Graphs of the driver: explicit nodes in a line, instances, updates of their parameters.

use std::sync::Arc;

use cudarc::driver::sys;

use crate::api::{SUCCESS, Status};
use crate::device::{Context, Device};
use crate::error::{Error, Result};
use crate::module::Function;
use crate::policy::{GraphApi, Updated};
use crate::stream::{Arguments, Launch, Stream, prepare};

/// A step of a graph.
#[derive(Clone)]
pub enum Step {
    /// A kernel.
    Kernel(Function, Launch),
    /// A copy on the device: `to`, `from`, bytes.
    Copy(u64, u64, u64),
    /// Bytes that are filled: `to`, bytes, the byte.
    Fill(u64, u64, u8),
}

/// A recorded line of work.
pub struct Graph {
    context: Arc<Context>,
    handle: sys::CUgraph,
    nodes: Vec<sys::CUgraphNode>,
    /// The last kernel: whom failures are put down to. Modules stay loaded as long as the context is.
    last: Option<Arc<str>>,
}

// SAFETY: the handles belong to the driver; a graph is changed by whoever has it exclusively.
unsafe impl Send for Graph {}

/// A graph that can be launched.
pub struct Instance {
    graph: Graph,
    handle: sys::CUgraphExec,
}

// SAFETY: as for `Graph`.
unsafe impl Send for Instance {}

impl Graph {
    pub(crate) fn captured(context: Arc<Context>, handle: sys::CUgraph) -> Graph {
        Graph { context, handle, nodes: Vec::new(), last: None }
    }

    /// A graph whose steps run in their order.
    pub fn new(device: &Device, steps: &[Step]) -> Result<Graph> {
        let context = &device.context;
        context.current()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the driver writes a handle, which `Graph::drop` destroys.
        let status = unsafe { (context.api.cuGraphCreate)(&raw mut handle, 0) };
        context.check("cuGraphCreate", status)?;
        let mut graph = Graph::captured(context.clone(), handle);
        for step in steps {
            graph.add(step)?;
        }
        Ok(graph)
    }

    fn add(&mut self, step: &Step) -> Result<()> {
        let context = self.context.clone();
        let before: &[sys::CUgraphNode] = self.nodes.last().map_or(&[], std::slice::from_ref);
        let (on, count) = (before.as_ptr(), before.len());
        let mut node = std::ptr::null_mut();
        let status = match step {
            Step::Kernel(function, launch) => {
                prepare(&context, function, launch)?;
                let mut arguments = Arguments::new(&launch.arguments);
                let parameters = kernel_parameters(function, launch, &mut arguments);
                self.last = Some(function.inner.name.clone());
                // SAFETY: the graph is alive, the dependency is a node of it; arguments are as many and as
                // long as the kernel's parameters (`prepare`), and copied by the driver.
                unsafe {
                    let add = context.api.cuGraphAddKernelNode_v2;
                    add(&raw mut node, self.handle, on, count, &raw const parameters)
                }
            }
            Step::Copy(to, from, bytes) => {
                let parameters = copy_parameters(*to, *from, *bytes);
                // SAFETY: as above; addresses are the device's, as arguments of kernels are.
                unsafe {
                    let add = context.api.cuGraphAddMemcpyNode;
                    add(&raw mut node, self.handle, on, count, &raw const parameters, context.handle)
                }
            }
            Step::Fill(to, bytes, byte) => {
                let parameters = fill_parameters(*to, *bytes, *byte);
                // SAFETY: as above.
                unsafe {
                    let add = context.api.cuGraphAddMemsetNode;
                    add(&raw mut node, self.handle, on, count, &raw const parameters, context.handle)
                }
            }
        };
        context.check("cuGraphAdd*Node", status)?;
        self.nodes.push(node);
        Ok(())
    }

    /// Makes it something that can be launched.
    pub fn instantiate(self) -> Result<Instance> {
        self.context.current()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the graph is alive; the driver writes a handle, which `Instance::drop` destroys.
        let status =
            unsafe { (self.context.api.cuGraphInstantiateWithFlags)(&raw mut handle, self.handle, 0) };
        self.context.check("cuGraphInstantiateWithFlags", status)?;
        Ok(Instance { graph: self, handle })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.current().is_ok() {
            // SAFETY: nothing else has the graph.
            unsafe { (self.context.api.cuGraphDestroy)(self.handle) };
        }
    }
}

impl Instance {
    /// Puts all of it on a stream.
    pub fn launch(&mut self, stream: &Stream) -> Result<()> {
        let context = &self.graph.context;
        context.current()?;
        // SAFETY: instance and stream are alive.
        let status = unsafe { (context.api.cuGraphLaunch)(self.handle, stream.inner.handle) };
        context.check("cuGraphLaunch", status)?;
        if let Some(last) = &self.graph.last {
            context.launched(last);
        }
        Ok(())
    }

    /// Changes a step for the launches from now on: its kind, and of a kernel the function, stay. `false`:
    /// the driver refuses, and a new instance is needed.
    pub fn update(&mut self, index: usize, step: &Step) -> Result<bool> {
        let context = self.graph.context.clone();
        context.current()?;
        let Some(&node) = self.graph.nodes.get(index) else { return Ok(false) };
        let status = match step {
            Step::Kernel(function, launch) => {
                prepare(&context, function, launch)?;
                let mut arguments = Arguments::new(&launch.arguments);
                let parameters = kernel_parameters(function, launch, &mut arguments);
                // SAFETY: the node is of the instance's graph; arguments fit the parameters (`prepare`) and
                // are copied by the driver. The driver refuses a node of another kind.
                unsafe {
                    (context.api.cuGraphExecKernelNodeSetParams_v2)(self.handle, node, &raw const parameters)
                }
            }
            Step::Copy(to, from, bytes) => {
                let parameters = copy_parameters(*to, *from, *bytes);
                // SAFETY: as above.
                unsafe {
                    let set = context.api.cuGraphExecMemcpyNodeSetParams;
                    set(self.handle, node, &raw const parameters, context.handle)
                }
            }
            Step::Fill(to, bytes, byte) => {
                let parameters = fill_parameters(*to, *bytes, *byte);
                // SAFETY: as above.
                unsafe {
                    let set = context.api.cuGraphExecMemsetNodeSetParams;
                    set(self.handle, node, &raw const parameters, context.handle)
                }
            }
        };
        self.accepted("cuGraphExec*NodeSetParams", status)
    }

    /// Takes over the parameters of a graph of the same form, such as one that was captured again. `false`:
    /// the driver refuses.
    pub fn update_from(&mut self, graph: Graph) -> Result<bool> {
        let context = self.graph.context.clone();
        context.current()?;
        // SAFETY: the struct is integers and pointers, for which zeros are values; the driver overwrites it.
        let mut result: sys::CUgraphExecUpdateResultInfo = unsafe { std::mem::zeroed() };
        // SAFETY: instance and graph are alive.
        let status =
            unsafe { (context.api.cuGraphExecUpdate_v2)(self.handle, graph.handle, &raw mut result) };
        self.accepted("cuGraphExecUpdate", status)
    }

    fn accepted(&self, call: &'static str, status: Status) -> Result<bool> {
        let refusals = [
            sys::CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
            sys::CUresult::CUDA_ERROR_INVALID_VALUE,
            sys::CUresult::CUDA_ERROR_NOT_SUPPORTED,
        ];
        if status == SUCCESS {
            return Ok(true);
        }
        if refusals.iter().any(|&r| r as Status == status) {
            return Ok(false);
        }
        self.graph.context.check(call, status)?;
        Ok(false)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if self.graph.context.current().is_ok() {
            // SAFETY: nothing else has the instance; the driver frees it when its launches are done.
            unsafe { (self.graph.context.api.cuGraphExecDestroy)(self.handle) };
        }
    }
}

fn kernel_parameters(
    function: &Function,
    launch: &Launch,
    arguments: &mut Arguments,
) -> sys::CUDA_KERNEL_NODE_PARAMS {
    sys::CUDA_KERNEL_NODE_PARAMS {
        func: function.inner.handle,
        gridDimX: launch.grid[0],
        gridDimY: launch.grid[1],
        gridDimZ: launch.grid[2],
        blockDimX: launch.block[0],
        blockDimY: launch.block[1],
        blockDimZ: launch.block[2],
        sharedMemBytes: launch.shared_bytes,
        kernelParams: arguments.pointers(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

fn copy_parameters(to: u64, from: u64, bytes: u64) -> sys::CUDA_MEMCPY3D {
    let device = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
    sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: device,
        srcHost: std::ptr::null(),
        srcDevice: from,
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: 0,
        srcHeight: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: device,
        dstHost: std::ptr::null_mut(),
        dstDevice: to,
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: 0,
        dstHeight: 0,
        WidthInBytes: bytes as usize,
        Height: 1,
        Depth: 1,
    }
}

fn fill_parameters(to: u64, bytes: u64, byte: u8) -> sys::CUDA_MEMSET_NODE_PARAMS {
    sys::CUDA_MEMSET_NODE_PARAMS {
        dst: to,
        pitch: 0,
        value: u32::from(byte),
        elementSize: 1,
        width: bytes as usize,
        height: 1,
    }
}

/// The driver's graphs for [`crate::policy::Cache`].
pub struct DriverGraphs {
    /// The device.
    pub device: Device,
    /// What graphs are launched on.
    pub stream: Stream,
}

impl GraphApi for DriverGraphs {
    type Step = Step;
    type Instance = Instance;
    type Error = Error;

    fn instantiate(&mut self, steps: &[Step]) -> Result<Instance> {
        Graph::new(&self.device, steps)?.instantiate()
    }

    fn update(&mut self, instance: &mut Instance, index: usize, step: &Step) -> Result<Updated> {
        Ok(if instance.update(index, step)? { Updated::Accepted } else { Updated::Refused })
    }

    fn launch(&mut self, instance: &mut Instance) -> Result<()> {
        instance.launch(&self.stream)
    }

    fn execute(&mut self, steps: &[Step]) -> Result<()> {
        steps.iter().try_for_each(|step| self.stream.execute(step))
    }

    fn same(a: &Step, b: &Step) -> bool {
        match (a, b) {
            (Step::Kernel(f, x), Step::Kernel(g, y)) => Arc::ptr_eq(&f.inner, &g.inner) && x == y,
            (Step::Copy(..), Step::Copy(..)) | (Step::Fill(..), Step::Fill(..)) => a.numbers() == b.numbers(),
            (Step::Kernel(..) | Step::Copy(..) | Step::Fill(..), _) => false,
        }
    }
}

impl Step {
    fn numbers(&self) -> [u64; 3] {
        match self {
            Step::Kernel(..) => [0; 3],
            Step::Copy(to, from, bytes) => [*to, *from, *bytes],
            Step::Fill(to, bytes, byte) => [*to, *bytes, u64::from(*byte)],
        }
    }
}

impl Stream {
    /// Puts one step on the stream, without a graph.
    pub fn execute(&self, step: &Step) -> Result<()> {
        let context = self.context();
        match step {
            Step::Kernel(function, launch) => self.launch(function, launch),
            Step::Copy(to, from, bytes) => {
                context.current()?;
                // SAFETY: addresses are the device's, as arguments of kernels are.
                let status = unsafe {
                    (context.api.cuMemcpyDtoDAsync_v2)(*to, *from, *bytes as usize, self.inner.handle)
                };
                context.check("cuMemcpyDtoDAsync", status)
            }
            Step::Fill(to, bytes, byte) => {
                context.current()?;
                // SAFETY: as above.
                let status =
                    unsafe { (context.api.cuMemsetD8Async)(*to, *byte, *bytes as usize, self.inner.handle) };
                context.check("cuMemsetD8Async", status)
            }
        }
    }
}
