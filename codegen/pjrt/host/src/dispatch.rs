//! Executions whose cost is measured: arrays stay on the device, and functions of the plugin are looked up
//! once.

use std::ptr;

use hlo::ArrayLiteral;
use hlo_pjrt_abi::Failure;
use hlo_pjrt_abi::opaque;
use hlo_pjrt_abi::opaque::Event;
use hlo_pjrt_abi::structs::{
    PJRT_Buffer_Destroy_Args, PJRT_Event_Await_Args, PJRT_Event_Destroy_Args, PJRT_ExecuteOptions,
    PJRT_LoadedExecutable_Execute_Args, Struct,
};

use crate::executable::{Buffer, Executable};
use crate::plugin::{Function, zeroed};

/// A program with one result, and arguments that stay where they are.
pub struct Dispatch<'e> {
    executable: &'e Executable,
    arguments: Vec<Buffer>,
    execute: Function,
    destroy_buffer: Function,
    wait: Function,
    destroy_event: Function,
}

impl std::fmt::Debug for Dispatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dispatch({} arguments)", self.arguments.len())
    }
}

impl<'e> Dispatch<'e> {
    /// Copies the arguments to the device.
    ///
    /// # Errors
    /// What the plugin says, or functions that it lacks.
    pub fn new(executable: &'e Executable, arguments: &[&ArrayLiteral]) -> Result<Self, Failure> {
        let client = executable.client();
        let plugin = &client.plugin;
        Ok(Self {
            executable,
            arguments: arguments.iter().map(|a| client.buffer(a)).collect::<Result<_, _>>()?,
            execute: plugin.function("PJRT_LoadedExecutable_Execute")?,
            destroy_buffer: plugin.function("PJRT_Buffer_Destroy")?,
            wait: plugin.function("PJRT_Event_Await")?,
            destroy_event: plugin.function("PJRT_Event_Destroy")?,
        })
    }

    fn call<S: Struct>(&self, name: &str, function: Function, args: &mut S) -> Result<(), Failure> {
        // SAFETY: the C API: a function is given its struct, which knows its size, and pointers in it are
        // live.
        let error = unsafe { function(ptr::from_mut(args).cast()) };
        if error.is_null() { Ok(()) } else { Err(self.executable.client().plugin.taken(name, error)) }
    }

    fn begin(&self, pointers: &[*mut opaque::Buffer]) -> Result<(*mut opaque::Buffer, *mut Event), Failure> {
        const KEPT: [i64; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
        let mut options = zeroed::<PJRT_ExecuteOptions>();
        options.non_donatable_input_indices = KEPT.as_ptr();
        options.num_non_donatable_input_indices = pointers.len().min(KEPT.len());
        let lists = [pointers.as_ptr()];
        let mut outputs: [*mut opaque::Buffer; 1] = [ptr::null_mut()];
        let output_lists = [outputs.as_mut_ptr()];
        let mut done = [ptr::null_mut()];
        let mut args = zeroed::<PJRT_LoadedExecutable_Execute_Args>();
        args.executable = self.executable.raw();
        args.options = &raw const options;
        args.argument_lists = lists.as_ptr();
        args.num_devices = 1;
        args.num_args = pointers.len();
        args.output_lists = output_lists.as_ptr();
        args.device_complete_events = done.as_mut_ptr();
        self.call("PJRT_LoadedExecutable_Execute", self.execute, &mut args)?;
        Ok((outputs[0], done[0]))
    }

    fn end(&self, event: *mut Event) -> Result<(), Failure> {
        if event.is_null() {
            return Ok(());
        }
        let mut args = zeroed::<PJRT_Event_Await_Args>();
        args.event = event;
        let ended = self.call("PJRT_Event_Await", self.wait, &mut args);
        let mut args = zeroed::<PJRT_Event_Destroy_Args>();
        args.event = event;
        self.call("PJRT_Event_Destroy", self.destroy_event, &mut args)?;
        ended
    }

    fn destroy(&self, buffer: *mut opaque::Buffer) -> Result<(), Failure> {
        let mut args = zeroed::<PJRT_Buffer_Destroy_Args>();
        args.buffer = buffer;
        self.call("PJRT_Buffer_Destroy", self.destroy_buffer, &mut args)
    }

    /// Runs the program `steps` times, each on what the one before it left as its first argument, and waits
    /// for the last; what is left is dropped.
    ///
    /// # Errors
    /// The error that the plugin reports.
    pub fn run(&self, steps: usize) -> Result<(), Failure> {
        let mut pointers: Vec<*mut opaque::Buffer> = self.arguments.iter().map(Buffer::raw).collect();
        for step in 0..steps {
            let (result, done) = self.begin(&pointers)?;
            if step > 0 {
                self.destroy(pointers[0])?;
            }
            pointers[0] = result;
            if step + 1 == steps {
                self.end(done)?;
                self.destroy(result)?;
            } else if !done.is_null() {
                let mut args = zeroed::<PJRT_Event_Destroy_Args>();
                args.event = done;
                self.call("PJRT_Event_Destroy", self.destroy_event, &mut args)?;
            }
        }
        Ok(())
    }
}
