//! Executing programs.
//!
//! An execution ends before the call returns: what it makes is ready, and its errors are the call's.

use std::sync::Arc;

use hlo::ArrayLiteral;
use hlo_client::ExecuteOptions;
use hlo_client::custom_call::UserData;
use hlo_interp::Devices;
use smallvec::SmallVec;

use crate::api::structs::{
    PJRT_ExecuteContext_Create_Args, PJRT_ExecuteContext_Destroy_Args, PJRT_LoadedExecutable_Execute_Args,
};
use crate::border;
use crate::buffer::{Buffer, copied};
use crate::check::{Arrays, Checks, Execution};
use crate::error::{Failure, Result, of_client};
use crate::event::Event;
use crate::executable::Program;
use crate::handles::{self, object};
use crate::opaque;
use crate::placement::{self, Runs};

/// `PJRT_ExecuteContext`: what executions hand to handlers of XLA's FFI.
#[derive(Debug, Default)]
pub struct ExecuteContext {
    /// By type.
    pub user_data: Arc<hlo_ffi::UserData>,
}

object!(ExecuteContext, "execute context");

pub(crate) fn create_context(args: &mut PJRT_ExecuteContext_Create_Args) -> Result<()> {
    args.context = handles::give(ExecuteContext::default());
    Ok(())
}

pub(crate) fn destroy_context(args: &mut PJRT_ExecuteContext_Destroy_Args) -> Result<()> {
    handles::destroy(args.context)
}

pub(crate) fn execute(args: &mut PJRT_LoadedExecutable_Execute_Args) -> Result<()> {
    let loaded = handles::get(args.executable)?;
    let program = loaded.program()?;
    let given = border::pointed(args.options)?;
    let count = program.placement.handles.len();
    if args.num_devices != count {
        let devices = if count == 1 { "device" } else { "devices" };
        return Err(Failure::invalid(format!(
            "the program runs on {count} {devices}, not {}",
            args.num_devices
        )));
    }
    let kept = border::elements(
        given.non_donatable_input_indices,
        given.num_non_donatable_input_indices,
        "the arguments that are not donated",
    )?;
    let is_kept = |n: usize| kept.iter().any(|&k| usize::try_from(k) == Ok(n));
    if args.num_args != program.tokens_in.len() {
        let message = format!("the program takes {} arrays, not {}", program.tokens_in.len(), args.num_args);
        return Err(Failure::invalid(message));
    }
    let arrays: Vec<usize> = (0..args.num_args).filter(|&n| !program.tokens_in[n]).collect();
    let donate: Vec<usize> = program.donated.iter().copied().filter(|&n| !is_kept(arrays[n])).collect();
    let user_data = match given.context.is_null() {
        true => None,
        false => Some(UserData::new(handles::get(given.context)?.user_data.clone())),
    };
    let run_id = u64::from(given.launch_id.cast_unsigned());
    let options = ExecuteOptions { run_id, user_data, ..Default::default() };
    if program.placement.runs == Runs::Alone {
        execute_alone(args, program, donate, options)?;
    } else {
        execute_on_devices(args, program, &donate, &options)?;
    }
    if !args.device_complete_events.is_null() {
        let complete: Vec<*mut opaque::Event> =
            (0..count).map(|_| handles::give(Event::ready(Ok(())))).collect();
        border::write(args.device_complete_events, &complete, "the events")?;
    }
    Ok(())
}

/// On the device of the program, or the one that the caller says.
fn execute_alone(
    args: &PJRT_LoadedExecutable_Execute_Args,
    program: &Program,
    donate: Vec<usize>,
    options: ExecuteOptions,
) -> Result<()> {
    let memory = match args.execute_device.is_null() {
        true => Arc::clone(&program.placement.memories[0]),
        false => program.client.memory(args.execute_device, std::ptr::null_mut())?,
    };
    let list = border::elements(args.argument_lists, 1, "the list of argument lists")?[0];
    let arguments: SmallVec<[Arc<Buffer>; 8]> = border::elements(list, args.num_args, "the arguments")?
        .into_iter()
        .zip(&program.tokens_in)
        .filter(|(_, is_token)| !**is_token)
        .map(|(pointer, _)| handles::get(pointer))
        .collect::<Result<_>>()?;
    if let Some(n) = arguments.iter().position(|a| !Arc::ptr_eq(&a.client, &program.client)) {
        return Err(Failure::invalid(format!("argument {n} is another client's")));
    }
    for (n, argument) in arguments.iter().enumerate() {
        placement::check_order(&program.placement.layouts, n, argument)?;
    }
    refuse_shared_donations(&donate, &arguments)?;
    for &n in &donate {
        if let Some(donated) = arguments.get(n) {
            donated.release();
        }
    }
    let arrays: SmallVec<[&hlo_client::Buffer; 8]> = arguments.iter().map(|a| &a.array).collect();
    let options = ExecuteOptions { donate, ..options };
    let mut taken = Taken::of(&arrays, &options.donate)?;
    let checked = begin_check(program, || Ok(vec![literals(&arrays)?]))?;
    let mut results = program.executable.execute_with(&arrays, &options).map_err(of_client)?;
    if let Some((checks, arguments)) = checked {
        let results = vec![literals(&results.iter().collect::<Vec<_>>())?];
        checks.judge(&execution(program, Devices::ONE, arguments, results))?;
    }
    for result in &mut results {
        if !taken.take(result)? {
            *result = copied(result, &program.client)?;
        }
    }
    let list = border::elements(args.output_lists, 1, "the list of result lists")?[0];
    let mut orders = program.placement.layouts.results.iter();
    let mut give = |(n, array)| -> Result<*mut opaque::Buffer> {
        let order = orders.next().cloned().flatten();
        let memory = program.placement.memory_of(&memory, n)?;
        Ok(Buffer::in_order(array, order, memory, Arc::clone(&program.client)).give())
    };
    let mut results = results.into_iter().enumerate();
    let mut given: SmallVec<[*mut opaque::Buffer; 8]> = SmallVec::new();
    for &is_token in &program.tokens_out {
        match is_token {
            true => given.push(Buffer::token(Arc::clone(&memory), Arc::clone(&program.client))?.give()),
            false => given.extend(results.next().map(&mut give).transpose()?),
        }
    }
    border::write(list, &given, "the results")
}

/// The checks of an execution that is to be judged, with its arguments as they were before it.
fn begin_check(
    program: &Program,
    arguments: impl FnOnce() -> Result<Arrays>,
) -> Result<Option<(&Checks, Arrays)>> {
    match &program.checks {
        Some(checks) if checks.begin(program.executable.name()) => Ok(Some((checks, arguments()?))),
        Some(_) | None => Ok(None),
    }
}

/// Copies of arrays: a donated one is overwritten.
fn literals(arrays: &[&hlo_client::Buffer]) -> Result<Vec<ArrayLiteral>> {
    arrays.iter().map(|array| array.to_literal().map_err(of_client)).collect()
}

fn execution(program: &Program, devices: Devices, arguments: Arrays, results: Arrays) -> Execution<'_> {
    Execution { source: &program.prepared, engine: &program.client.engine, devices, arguments, results }
}

/// On all devices of the program, each of which hands in its part of the arguments.
fn execute_on_devices(
    args: &PJRT_LoadedExecutable_Execute_Args,
    program: &Program,
    donate: &[usize],
    options: &ExecuteOptions,
) -> Result<()> {
    let lists = border::elements(args.argument_lists, args.num_devices, "the list of argument lists")?;
    let arrays = |list| -> Result<Vec<*mut opaque::Buffer>> {
        let all = border::elements(list, args.num_args, "the arguments")?;
        Ok(all
            .into_iter()
            .zip(&program.tokens_in)
            .filter(|(_, is)| !**is)
            .map(|(pointer, _)| pointer)
            .collect())
    };
    let lists: Vec<Vec<*mut opaque::Buffer>> = lists.into_iter().map(arrays).collect::<Result<_>>()?;
    let arguments = placement::arguments(&program.client, &lists)?;
    for list in &arguments {
        refuse_shared_donations(donate, list)?;
    }
    let Program { client, placement, executable, .. } = program;
    let mut check = |devices: Devices, given: &[Vec<hlo_client::Buffer>]| {
        let all = |arrays: &Vec<hlo_client::Buffer>| literals(&arrays.iter().collect::<Vec<_>>());
        let begun = begin_check(program, || given.iter().map(all).collect())?;
        Ok(begun.map(|(checks, arguments)| {
            move |made: &[Vec<hlo_client::Buffer>]| {
                let results = made.iter().map(all).collect::<Result<_>>()?;
                checks.judge(&execution(program, devices, arguments, results))
            }
        }))
    };
    let results = placement::execute(client, placement, executable, &arguments, options, &mut check)?;
    // What was given away is gone, whoever used its bytes.
    for &n in donate {
        for donated in arguments.iter().filter_map(|list| list.get(n)) {
            donated.release();
            if !donated.array.is_deleted() {
                donated.array.delete().map_err(of_client)?;
            }
        }
    }
    let lists = border::elements(args.output_lists, args.num_devices, "the list of result lists")?;
    for ((list, results), memory) in lists.into_iter().zip(results).zip(&placement.memories) {
        let mut results = results.into_iter();
        let mut given: Vec<*mut opaque::Buffer> = Vec::with_capacity(program.tokens_out.len());
        for &is_token in &program.tokens_out {
            match is_token {
                true => given.push(Buffer::token(Arc::clone(memory), Arc::clone(client))?.give()),
                false => given.extend(results.next().map(Buffer::give)),
            }
        }
        border::write(list, &given, "the results")?;
    }
    Ok(())
}

/// Refuses a buffer that is donated and another argument as well. `donate` is in ascending order.
fn refuse_shared_donations(donate: &[usize], arguments: &[Arc<Buffer>]) -> Result<()> {
    if donate.is_empty() {
        return Ok(());
    }
    let mut by_buffer: SmallVec<[(*const Buffer, usize); 16]> =
        arguments.iter().enumerate().map(|(n, buffer)| (Arc::as_ptr(buffer), n)).collect();
    by_buffer.sort_unstable();
    for (&n, buffer) in donate.iter().filter_map(|n| Some((n, arguments.get(*n)?))) {
        let buffer = Arc::as_ptr(buffer);
        let first = by_buffer.partition_point(|&(other, _)| other < buffer);
        let same = by_buffer[first..].iter().take_while(|(other, _)| *other == buffer);
        if let Some(m) = same.map(|&(_, m)| m).find(|&m| m != n) {
            let donated = donate.binary_search(&m).is_ok();
            let what = if donated { "donated as well" } else { "used by the same execution" };
            let message =
                format!("argument {n} cannot be donated: the same buffer is argument {m}, which is {what}");
            return Err(Failure::invalid(message));
        }
    }
    Ok(())
}

/// The memory that is in use: of arguments that are not donated, and of results so far. The runtime gives a
/// parameter that is a result back without a copy; PJRT's callers expect that no two buffers share memory.
struct Taken {
    /// First addresses, ascending.
    addresses: SmallVec<[*const u8; 16]>,
}

impl Taken {
    /// Of arguments; `donated` is in ascending order.
    fn of(arguments: &[&hlo_client::Buffer], donated: &[usize]) -> Result<Self> {
        let kept = (0..).zip(arguments).filter(|(n, _)| donated.binary_search(n).is_err());
        let address =
            |(_, array): (usize, &&hlo_client::Buffer)| array.with_bytes(<[u8]>::as_ptr).map_err(of_client);
        let mut addresses: SmallVec<_> = kept.map(address).collect::<Result<_>>()?;
        addresses.sort_unstable();
        Ok(Self { addresses })
    }

    /// Adds the memory of a result; false if it is in use.
    fn take(&mut self, result: &hlo_client::Buffer) -> Result<bool> {
        let (address, bytes) = result.with_bytes(|bytes| (bytes.as_ptr(), bytes.len())).map_err(of_client)?;
        if bytes == 0 {
            return Ok(true);
        }
        match self.addresses.binary_search(&address) {
            Ok(_) => Ok(false),
            Err(at) => {
                self.addresses.insert(at, address);
                Ok(true)
            }
        }
    }
}
