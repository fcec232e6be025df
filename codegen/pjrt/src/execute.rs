//! Executing programs.
//!
//! An execution ends before the call returns: what it makes is ready, and its errors are the call's.

use std::sync::Arc;

use hlo_client::ExecuteOptions;
use hlo_client::custom_call::UserData;
use smallvec::SmallVec;

use crate::api::structs::{
    PJRT_ExecuteContext_Create_Args, PJRT_ExecuteContext_Destroy_Args, PJRT_LoadedExecutable_Execute_Args,
};
use crate::border;
use crate::buffer::Buffer;
use crate::error::{Failure, Result};
use crate::event::Event;
use crate::handles::{self, Handle, object};

/// `PJRT_ExecuteContext`: what executions hand to handlers of XLA's FFI.
#[derive(Debug, Default)]
pub struct ExecuteContext {
    /// By type.
    pub user_data: Arc<hlo_ffi::UserData>,
}

object!(ExecuteContext, "execute context");

pub(crate) fn create_context(args: &mut PJRT_ExecuteContext_Create_Args) -> Result<()> {
    args.context = Handle::new(ExecuteContext::default()).pointer();
    Ok(())
}

pub(crate) fn destroy_context(args: &mut PJRT_ExecuteContext_Destroy_Args) -> Result<()> {
    handles::destroy(args.context)
}

pub(crate) fn execute(args: &mut PJRT_LoadedExecutable_Execute_Args) -> Result<()> {
    let loaded = handles::get(args.executable)?;
    let program = loaded.program()?;
    let given = border::pointed(args.options)?;
    if args.num_devices != 1 {
        return Err(Failure::invalid(format!("the program runs on 1 device, not {}", args.num_devices)));
    }
    let memory = program.client.memory(args.execute_device, std::ptr::null_mut())?;
    let list = border::elements(args.argument_lists, 1, "the list of argument lists")?[0];
    let arguments: SmallVec<[Arc<Buffer>; 8]> = border::elements(list, args.num_args, "the arguments")?
        .into_iter()
        .map(handles::get)
        .collect::<Result<_>>()?;
    if let Some(n) = arguments.iter().position(|a| !Arc::ptr_eq(&a.client, &program.client)) {
        return Err(Failure::invalid(format!("argument {n} is another client's")));
    }
    let kept = border::elements(
        given.non_donatable_input_indices,
        given.num_non_donatable_input_indices,
        "the arguments that are not donated",
    )?;
    let is_kept = |n: usize| kept.iter().any(|&k| usize::try_from(k) == Ok(n));
    let donate: Vec<usize> = program.donated.iter().copied().filter(|&n| !is_kept(n)).collect();
    for &n in &donate {
        if let Some(donated) = arguments.get(n) {
            donated.release();
        }
    }
    let arrays: SmallVec<[&hlo_client::Buffer; 8]> = arguments.iter().map(|a| &a.array).collect();
    let user_data = match given.context.is_null() {
        true => None,
        false => Some(UserData::new(handles::get(given.context)?.user_data.clone())),
    };
    let run_id = u64::from(given.launch_id.cast_unsigned());
    let options = ExecuteOptions { donate, run_id, user_data, ..Default::default() };
    let results = program.executable.execute_with(&arrays, &options)?;
    let list = border::elements(args.output_lists, 1, "the list of result lists")?[0];
    let give = |array| Buffer::new(array, Arc::clone(&memory), Arc::clone(&program.client)).give();
    let results: SmallVec<[*mut Buffer; 8]> = results.into_iter().map(give).collect();
    border::write(list, &results, "the results")?;
    if !args.device_complete_events.is_null() {
        let complete = Handle::new(Event::ready(Ok(()))).pointer();
        border::write(args.device_complete_events, &[complete], "the events")?;
    }
    Ok(())
}
