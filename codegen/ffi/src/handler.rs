//! Handlers of C as custom calls of a client.

use std::ffi::c_int;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use hlo::attrs::ApiVersion;
use hlo_client::custom_call::{CallSite, Context, Handler, Instance, Leaf};
use hlo_client::{Code, Error};
use rustc_hash::FxHashMap;

use crate::abi::{
    ARG_BUFFER, CALL_FRAME_SIZE, EXTENSION_METADATA, Handler as Function, OLDEST_MINOR, RET_BUFFER, Stage,
    VERSION, XLA_FFI_Api_Version, XLA_FFI_Args, XLA_FFI_Buffer, XLA_FFI_CallFrame, XLA_FFI_Handler_Bundle,
    XLA_FFI_InternalExtension, XLA_FFI_Metadata, XLA_FFI_Metadata_Extension, XLA_FFI_Rets, XLA_FFI_TypeId,
};
use crate::api::api;
use crate::attributes::Encoded;
use crate::context::{ExecutionContext, States};
use crate::error;
use crate::frame::{self, Operand};
use crate::future::Future;
use crate::guard;
use crate::untyped;

/// The functions of a handler, by stage.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bundle {
    /// Once for each call of a program.
    pub instantiate: Option<Function>,
    /// Before each execution.
    pub prepare: Option<Function>,
    /// Before each execution, after all were prepared.
    pub initialize: Option<Function>,
    /// Needed: what computes results.
    pub execute: Option<Function>,
}

impl From<XLA_FFI_Handler_Bundle> for Bundle {
    fn from(bundle: XLA_FFI_Handler_Bundle) -> Self {
        let XLA_FFI_Handler_Bundle { instantiate, prepare, initialize, execute, record: _ } = bundle;
        Self { instantiate, prepare, initialize, execute }
    }
}

/// A handler of C.
#[derive(Clone, Copy, Debug)]
pub struct ForeignHandler {
    bundle: Bundle,
    /// Whether it is known to be of XLA's FFI; of others the program says what convention they have:
    /// `api_version`.
    is_typed: bool,
}

impl ForeignHandler {
    /// Of functions.
    ///
    /// # Safety
    /// They are handlers: functions of XLA's FFI, or of the older conventions where programs call them so,
    /// that keep to what these say.
    pub unsafe fn new(bundle: Bundle) -> Self {
        Self { bundle, is_typed: false }
    }

    /// Of functions of XLA's FFI, as handlers that are registered are.
    ///
    /// # Safety
    /// They are such, and keep to what it says.
    pub unsafe fn typed(bundle: Bundle) -> Self {
        Self { bundle, is_typed: true }
    }
}

impl Handler for ForeignHandler {
    fn instantiate(&self, site: &Arc<CallSite>) -> Result<Box<dyn Instance>, Error> {
        frame::check(site)?;
        let Some(execute) = self.bundle.execute else {
            return Err(site.error(Code::InvalidArgument, "there is no handler to execute"));
        };
        if site.api_version != ApiVersion::TypedFfi {
            if self.is_typed {
                let (given, wanted) = (site.api_version.text(), ApiVersion::TypedFfi.text());
                let message = format!("a handler of XLA's FFI is called with {given}; it needs {wanted}");
                return Err(site.error(Code::InvalidArgument, message));
            }
            return Ok(Box::new(untyped::Untyped::new(execute, Arc::clone(site))));
        }
        let stages = [self.bundle.instantiate, self.bundle.prepare, self.bundle.initialize, Some(execute)];
        let mut minors = [VERSION.1; 4];
        for (minor, stage) in minors.iter_mut().zip(stages) {
            if let Some(stage) = stage {
                *minor = minor_version(site, stage)?;
            }
        }
        let instance = Typed {
            bundle: self.bundle,
            minors,
            attributes: Encoded::new(&site.attributes),
            site: Arc::clone(site),
            states: States::default(),
            executions: Mutex::default(),
        };
        if let Some(instantiate) = self.bundle.instantiate {
            instance.call(Stage::Instantiate, instantiate, None, None, &mut [], &mut [])?;
        }
        Ok(Box::new(instance))
    }
}

/// Asks a function which minor version it was compiled for. Errors: none that is called.
fn minor_version(site: &CallSite, function: Function) -> Result<c_int, Error> {
    let mut metadata = XLA_FFI_Metadata {
        struct_size: size_of::<XLA_FFI_Metadata>(),
        api_version: XLA_FFI_Api_Version {
            struct_size: size_of::<XLA_FFI_Api_Version>(),
            extension_start: ptr::null_mut(),
            major_version: -1,
            minor_version: -1,
        },
        traits: 0,
        state_type_id: XLA_FFI_TypeId { type_id: 0 },
    };
    let mut extension = XLA_FFI_Metadata_Extension {
        extension_base: XLA_FFI_InternalExtension {
            struct_size: size_of::<XLA_FFI_Metadata_Extension>(),
            r#type: EXTENSION_METADATA,
            next: ptr::null_mut(),
        },
        metadata: &raw mut metadata,
    };
    let (mut args, mut rets) = (no_arguments(), no_results());
    let attributes = Encoded::new(&hlo_client::custom_call::Attributes::default());
    let mut frame = call_frame(Stage::Execute, ptr::null_mut(), &mut args, &mut rets, &attributes);
    frame.extension_start = (&raw mut extension).cast();
    // SAFETY: the C API: a handler that is called with this extension fills it in and does nothing else.
    let error = unsafe { called(function, &mut frame) };
    // SAFETY: the C API: the error is the caller's.
    if let Some(error) = unsafe { error::Error::take(error) } {
        return Err(
            site.error(error.code, format_args!("the handler does not say its version: {}", error.text()))
        );
    }
    let XLA_FFI_Api_Version { major_version, minor_version, .. } = metadata.api_version;
    if major_version != VERSION.0 || !(OLDEST_MINOR..=VERSION.1).contains(&minor_version) {
        let (major, newest) = VERSION;
        let message = format!(
            "the handler was compiled for version {major_version}.{minor_version} of XLA's FFI; \
             those from {major}.{OLDEST_MINOR} to {major}.{newest} are called"
        );
        return Err(site.error(Code::Unimplemented, message));
    }
    Ok(minor_version)
}

/// Calls a handler: its error, or that it threw something.
///
/// # Safety
/// It is one, and all that the frame points at is alive.
unsafe fn called(function: Function, frame: &mut XLA_FFI_CallFrame) -> *mut error::Error {
    let frame = std::ptr::from_mut(frame) as usize;
    // SAFETY: by the caller's word; a handler takes its frame.
    match unsafe { guard::call(function as *const (), [frame, 0, 0, 0, 0]) } {
        Ok(error) => error as *mut error::Error,
        Err(thrown) => thrown.give(),
    }
}

fn no_arguments() -> XLA_FFI_Args {
    let size = size_of::<XLA_FFI_Args>();
    XLA_FFI_Args {
        struct_size: size,
        extension_start: ptr::null_mut(),
        size: 0,
        types: ptr::null_mut(),
        args: ptr::null_mut(),
    }
}

fn no_results() -> XLA_FFI_Rets {
    let size = size_of::<XLA_FFI_Rets>();
    XLA_FFI_Rets {
        struct_size: size,
        extension_start: ptr::null_mut(),
        size: 0,
        types: ptr::null_mut(),
        rets: ptr::null_mut(),
    }
}

fn call_frame(
    stage: Stage,
    ctx: *mut ExecutionContext,
    args: &mut XLA_FFI_Args,
    rets: &mut XLA_FFI_Rets,
    attributes: &Encoded,
) -> XLA_FFI_CallFrame {
    XLA_FFI_CallFrame {
        struct_size: CALL_FRAME_SIZE,
        extension_start: ptr::null_mut(),
        api: api(),
        ctx,
        stage: stage as c_int,
        args: *args,
        rets: *rets,
        attrs: attributes.attrs(),
        future: ptr::null_mut(),
    }
}

/// A call of a program to a typed handler.
struct Typed {
    bundle: Bundle,
    /// By stage, the minor version that its function was compiled for.
    minors: [c_int; 4],
    attributes: Encoded,
    site: Arc<CallSite>,
    /// Of the first stage.
    states: States,
    /// Of the stages of an execution, by device.
    executions: Mutex<FxHashMap<(u64, u32), Arc<States>>>,
}

impl Typed {
    fn execution(&self, context: &Context<'_>) -> Arc<States> {
        let mut all = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry((context.execution(), context.device())).or_default())
    }

    fn call(
        &self,
        stage: Stage,
        function: Function,
        context: Option<&Context<'_>>,
        execution: Option<&States>,
        operands: &mut [Operand],
        results: &mut [Operand],
    ) -> Result<(), Error> {
        let mut buffers: Vec<XLA_FFI_Buffer> =
            operands.iter_mut().chain(results.iter_mut()).map(Operand::buffer).collect();
        let mut pointers: Vec<*mut std::ffi::c_void> =
            buffers.iter_mut().map(|b| (&raw mut *b).cast()).collect();
        let (of_operands, of_results) = pointers.split_at_mut(operands.len());
        let mut argument_types = vec![ARG_BUFFER; operands.len()];
        let mut result_types = vec![RET_BUFFER; results.len()];
        let (mut args, mut rets) = (no_arguments(), no_results());
        (args.size, args.types) = (operands.len() as i64, argument_types.as_mut_ptr());
        args.args = of_operands.as_mut_ptr();
        (rets.size, rets.types) = (results.len() as i64, result_types.as_mut_ptr());
        rets.rets = of_results.as_mut_ptr();
        let minor = self.minors[stage as usize];
        let mut ctx = ExecutionContext::new(context, &self.states, execution, minor);
        let mut frame = call_frame(stage, &raw mut ctx, &mut args, &mut rets, &self.attributes);
        // SAFETY: who bound it promised that it is a handler; all that the frame points at outlives the call,
        // and the future that it leaves.
        let error = unsafe { called(function, &mut frame) };
        // SAFETY: the C API: the error is the caller's.
        let mut outcome = match unsafe { error::Error::take(error) } {
            None => Ok(()),
            Some(error) => Err(*error),
        };
        if !frame.future.is_null() {
            // SAFETY: the C API: a future that the handler has made; nobody else waits for it.
            let later = unsafe { Future::wait(frame.future) };
            outcome = outcome.and(later);
        }
        outcome.map_err(|error| self.site.error(error.code, error.text()))
    }

    fn stage(&self, stage: Stage, function: Option<Function>, context: &Context<'_>) -> Result<(), Error> {
        let Some(function) = function else { return Ok(()) };
        let execution = self.execution(context);
        self.call(stage, function, Some(context), Some(&execution), &mut [], &mut [])
    }
}

impl Instance for Typed {
    fn prepare(&self, context: &Context<'_>) -> Result<(), Error> {
        self.stage(Stage::Prepare, self.bundle.prepare, context)
    }

    fn initialize(&self, context: &Context<'_>) -> Result<(), Error> {
        self.stage(Stage::Initialize, self.bundle.initialize, context)
    }

    fn execute(&self, context: &Context<'_>, operands: &[Leaf], results: &mut [Leaf]) -> Result<(), Error> {
        let Some(execute) = self.bundle.execute else { return Ok(()) };
        let (mut given, mut memory) = Operand::of_call(&self.site, operands, results)?;
        let execution = self.execution(context);
        self.call(Stage::Execute, execute, Some(context), Some(&execution), &mut given, &mut memory)?;
        for ((shape, result), memory) in self.site.results.iter().zip(results).zip(&memory) {
            memory.written(shape, result);
        }
        Ok(())
    }

    fn finish(&self, context: &Context<'_>) {
        let mut all = self.executions.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = all.remove(&(context.execution(), context.device()));
        drop(all);
        // Outside of the lock: what frees a state may do anything.
        drop(ended);
    }
}
