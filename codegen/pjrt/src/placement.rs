//! Where a program runs: its devices, and what each of them hands in and gets.
//!
//! A program on several devices is not partitioned. Where nothing depends on the device, an execution is one
//! run on the whole arrays, whose results are partitioned; where devices communicate or begin with their
//! shard (`shard_map`), it is a run on each device, by a thread of its own, each with the whole arrays as
//! that device sees them, and each device gets its part of its own results.
//!
//! **Invariant:** what a device sees of an argument is made of the parts that the devices of its own group
//! handed in, so arrays that differ where the program lets them stay different.

use std::cell::RefCell;
use std::sync::Arc;

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{ArrayShape, InstrId, Module, NewInstruction, Opcode, Shape, Span};
use hlo_client::{ExecuteOptions, VerifiedModule};
use hlo_interp::Devices;
use hlo_interp::device::tiling::Tiling;
use rustc_hash::FxHashMap;

use crate::api::numbers::array_bytes;
use crate::buffer::Buffer;
use crate::client::Client;
use crate::device::Device;
use crate::error::{Code, Failure, Result, of_client};
use crate::executable::engine_options;
use crate::handles::{self, Handle};
use crate::layout::{self, Layouts};
use crate::memory::{self, Memory};
use crate::opaque;
use crate::options::CompileOptions;
use crate::sharding::{Shardings, Terms, Tiles, Unreduced, depends_on_device};

/// The assignment of a program to devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs {
    /// There is one device.
    Alone,
    /// Once, on whole arrays.
    Once,
    /// On each device.
    Each,
}

/// The devices of a program.
#[derive(Debug)]
pub struct Placement {
    /// How the program runs on its devices.
    pub runs: Runs,
    /// Replicas and partitions.
    pub devices: Devices,
    /// For each replica and partition its device.
    pub handles: Box<[Handle<Device>]>,
    /// Their numbers.
    pub ids: Box<[u64]>,
    /// The memory of their results.
    pub memories: Box<[Arc<Memory>]>,
    /// Tiles of arguments and results.
    pub shardings: Shardings,
    /// The same of the physical arrays, which are those that the program runs on.
    pub held: Shardings,
    /// How arguments and results are laid out in memory.
    pub layouts: Layouts,
    /// In which kinds of memory results lie.
    kinds: Box<[usize]>,
    /// Of which unreduced results the program makes each device's own term.
    has_own_term: Box<[bool]>,
    /// What adds up each unreduced argument, of as many terms as its sets have; none where the program takes
    /// the terms.
    sums: Box<[Option<hlo_client::Executable>]>,
}

/// The parts of a placement beside devices.
#[derive(Debug)]
pub struct Arrays {
    /// How they are on devices.
    pub shardings: Shardings,
    /// How they are laid out in memory.
    pub layouts: Layouts,
    /// In which kinds of memory results lie, tokens too.
    pub kinds: Vec<usize>,
    /// Of which unreduced results the program makes each device's own term.
    pub has_own_term: Vec<bool>,
    /// Of which unreduced arguments the program takes each device's own term.
    pub is_own_argument: Vec<bool>,
}

impl Placement {
    /// Of a program, as it runs, by its options.
    ///
    /// # Errors
    /// It wants devices that do not exist, or one twice.
    pub fn new(client: &Client, options: &CompileOptions, module: &Module, arrays: Arrays) -> Result<Self> {
        let Arrays { shardings, layouts, kinds, has_own_term, is_own_argument } = arrays;
        let known = client.devices().len() as u64;
        let CompileOptions { replicas, partitions, .. } = *options;
        let wanted = replicas.saturating_mul(partitions);
        if wanted > known {
            let message = format!(
                "{replicas} replicas of {partitions} partitions need {wanted} devices; this client has {known}"
            );
            return Err(Failure::invalid(message));
        }
        let ids: Box<[u64]> = match options.devices.is_empty() {
            true => (0..wanted).collect(),
            false => options.devices.as_slice().into(),
        };
        for (n, id) in ids.iter().enumerate() {
            if *id >= known {
                return Err(Failure::invalid(format!(
                    "the program is for device {id}, which does not exist"
                )));
            }
            if ids[..n].contains(id) {
                return Err(Failure::invalid(format!("the program is for device {id} twice")));
            }
        }
        let devices = Devices::new(replicas.cast_signed(), partitions.cast_signed())
            .ok_or_else(|| Failure::invalid(format!("{wanted} devices are too many")))?;
        let handles: Box<[Handle<Device>]> = ids.iter().map(|&id| client.devices()[id as usize]).collect();
        let memories = handles.iter().map(|device| client.memory(device.pointer(), std::ptr::null_mut()));
        let memories = memories.collect::<Result<_>>()?;
        let runs = match devices.count() {
            1 => Runs::Alone,
            _ if depends_on_device(module) => Runs::Each,
            _ => Runs::Once,
        };
        for tiling in shardings.arguments.iter().chain(&shardings.results).flatten() {
            let all = (0..devices.partitions()).all(|partition| tiling.group_and_tile(partition).is_some());
            if runs != Runs::Alone && !all {
                return Err(Failure::unimplemented(
                    "a sharding that leaves out some of the program's devices",
                ));
            }
        }
        let partitions = i64::from(devices.partitions());
        let sets = shardings.argument_terms.iter().chain(&shardings.result_terms).flatten();
        let mut sets = sets.flat_map(|terms| terms.sets.iter().flatten());
        if runs != Runs::Alone && sets.any(|p| !(0..partitions).contains(p)) {
            return Err(Failure::unimplemented("a sharding of devices that the program has not"));
        }
        let shardings = match runs {
            Runs::Alone => Shardings::whole(shardings.arguments.len(), shardings.results.len()),
            Runs::Once | Runs::Each => shardings,
        };
        let held = layouts.of_physical(&shardings);
        let sums = match runs {
            Runs::Alone => Box::default(),
            Runs::Once | Runs::Each => sums(client, module, &held, &is_own_argument)?,
        };
        let has_own_term = has_own_term.into();
        let of_result = module.instr(module.root(module.entry())).shape.leaves();
        let kinds = kinds.into_iter().zip(of_result).filter(|(_, leaf)| leaf.as_array().is_some());
        let kinds = kinds.map(|(kind, _)| kind).collect();
        Ok(Self {
            runs,
            devices,
            handles,
            ids,
            memories,
            shardings,
            held,
            layouts,
            kinds,
            has_own_term,
            sums,
        })
    }

    /// The memory that a result is in, of the device of this default memory.
    ///
    /// # Errors
    /// The device has none of the kind.
    pub fn memory_of(&self, default: &Arc<Memory>, result: usize) -> Result<Arc<Memory>> {
        memory::of_kind(default, self.kinds.get(result).copied().unwrap_or(0))
    }

    /// For people, who ask by `HLO_LOG`.
    pub fn describe(&self) -> String {
        let (replicas, partitions) = (self.devices.replicas(), self.devices.partitions());
        let cut = |all: &[Tiles]| format!("{} of {}", all.iter().flatten().count(), all.len());
        let arrays = format!(
            "cut: {} arguments, {} results",
            cut(&self.shardings.arguments),
            cut(&self.shardings.results)
        );
        match self.runs {
            Runs::Alone => format!("on device {}", self.ids[0]),
            Runs::Once => {
                format!("{replicas} replicas of {partitions} partitions, run once on whole arrays ({arrays})")
            }
            Runs::Each => format!(
                "{replicas} replicas of {partitions} partitions, run by a thread for each device ({arrays})"
            ),
        }
    }

    /// The shape of a device's part of an array.
    pub fn part(tiles: &Tiles, whole: &ArrayShape) -> ArrayShape {
        match tiles {
            None => whole.clone(),
            Some(tiling) => ArrayShape::new(whole.element_type, &tiling.shard(&whole.dims)),
        }
    }
}

/// Shown the whole arguments of a run before it, by device; the run's results are shown to what it gives
/// back, if it gives something.
pub type BeginCheck<'a, Judge> = dyn FnMut(Devices, &[Vec<hlo_client::Buffer>]) -> Result<Option<Judge>> + 'a;

/// Executes a program on several devices: arguments and results by device.
///
/// # Errors
/// Arguments that are not the parts of the program's arrays, and whatever ends the execution, or its check.
pub fn execute<Judge: FnOnce(&[Vec<hlo_client::Buffer>]) -> Result<()>>(
    client: &Arc<Client>,
    placement: &Placement,
    executable: &hlo_client::Executable,
    arguments: &[Vec<Arc<Buffer>>],
    options: &ExecuteOptions,
    check: &mut BeginCheck<'_, Judge>,
) -> Result<Vec<Vec<Buffer>>> {
    let gather = Gather { client, placement, executable, arguments, summed: RefCell::default() };
    let Placement { devices, memories, held, layouts, has_own_term, .. } = placement;
    let partitions = devices.partitions();
    let (count, replicas) = (devices.count(), devices.replicas());
    let results: Vec<Vec<hlo_client::Buffer>> = match placement.runs {
        Runs::Alone | Runs::Once => {
            let mut results = Vec::with_capacity(count as usize);
            for replica in 0..replicas {
                let whole = [gather.seen_by(replica * partitions)?];
                let judge = check(Devices::ONE, &whole)?;
                let given: Vec<&hlo_client::Buffer> = whole[0].iter().collect();
                let made = executable.execute_with(&given, options).map_err(of_client)?;
                if let Some(judge) = judge {
                    judge(std::slice::from_ref(&made))?;
                }
                results.extend((0..partitions).map(|_| made.clone()));
            }
            results
        }
        Runs::Each => {
            let all = (0..count).map(|device| gather.seen_by(device)).collect::<Result<Vec<_>>>()?;
            let given: Vec<Vec<&hlo_client::Buffer>> = all.iter().map(|one| one.iter().collect()).collect();
            let judge = check(*devices, &all)?;
            let made = executable.execute_on_devices(&given, *devices, options).map_err(of_client)?;
            if let Some(judge) = judge {
                judge(&made)?;
            }
            made
        }
    };
    let mut parts = Vec::with_capacity(count as usize);
    for ((device, made), memory) in (0..count).zip(results).zip(memories) {
        let mut own = Vec::with_capacity(made.len());
        for (n, whole) in made.into_iter().enumerate() {
            let (tiles, terms) = (&held.results[n], &held.result_terms[n]);
            let partition = device % partitions;
            let has_own_term = has_own_term.get(n).is_some_and(|has| *has);
            let part = match sum_of(terms, partition).first() {
                // Of terms that nobody made the first is the sum; a maximum or minimum has all.
                Some(&first) if first != partition && !has_own_term && is_sum(terms) => {
                    zeros(client, &Placement::part(tiles, whole.shape()))?
                }
                _ => cut(client, &whole, tiles.as_ref(), partition)?,
            };
            let order = layouts.results[n].clone();
            let memory = placement.memory_of(memory, n)?;
            own.push(Buffer::in_order(part, order, memory, Arc::clone(client)));
        }
        parts.push(own);
    }
    Ok(parts)
}

/// The partitions whose parts add up with that of a partition; none if there are no such.
fn sum_of(terms: &Terms, partition: u32) -> Vec<u32> {
    let has = |set: &&Vec<i64>| set.contains(&i64::from(partition));
    let set = terms.iter().flat_map(|terms| &terms.sets).find(has);
    set.into_iter().flatten().filter_map(|&p| u32::try_from(p).ok()).collect()
}

fn is_sum(terms: &Terms) -> bool {
    terms.as_ref().is_none_or(|terms| terms.by == Opcode::Add)
}

fn zeros(client: &Client, shape: &ArrayShape) -> Result<hlo_client::Buffer> {
    let bytes = zero_bytes(client, shape)?;
    client.engine.buffer_from_bytes(shape.clone(), &bytes).map_err(of_client)
}

/// The bytes of an array of zeros.
fn zero_bytes(client: &Client, shape: &ArrayShape) -> Result<Vec<u8>> {
    let too_large = || Failure::new(Code::ResourceExhausted, format!("there is no memory for {shape}"));
    let count = array_bytes(shape).ok_or_else(too_large)?;
    let statistics = client.engine.memory_statistics();
    let left = statistics.budget_bytes.map(|budget| budget.saturating_sub(statistics.held_bytes));
    if left.is_some_and(|left| count as u64 > left) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(count).map_err(|_| too_large())?;
    bytes.resize(count, 0);
    Ok(bytes)
}

/// What adds up the terms of each unreduced argument of a program, from first to last.
fn sums(
    client: &Client,
    module: &Module,
    held: &Shardings,
    is_own: &[bool],
) -> Result<Box<[Option<hlo_client::Executable>]>> {
    let parameters = module.computation(module.entry()).parameters().iter().flatten();
    let leaves = parameters.flat_map(|&id| module.instr(id).shape.leaves()).filter_map(Shape::as_array);
    let one = |(n, ((shape, tiles), terms)): (usize, ((&ArrayShape, &Tiles), &Terms))| match terms {
        Some(_) if is_own.get(n).is_some_and(|is_own| *is_own) => Ok(None),
        Some(terms) => sum(client, &Placement::part(tiles, shape), terms).map(Some),
        None => Ok(None),
    };
    leaves.zip(&held.arguments).zip(&held.argument_terms).enumerate().map(one).collect()
}

/// The reduction of an array's terms, which have a shape.
fn sum(client: &Client, shape: &ArrayShape, terms: &Unreduced) -> Result<hlo_client::Executable> {
    let count = terms.sets.first().map_or(1, Vec::len);
    let mut module = Module::new("sum");
    let name = module.unique_computation_name("sum");
    let entry = module.add_computation(name, Span::NONE);
    let shape = Shape::Array(shape.without_layout());
    let mut total: Option<InstrId> = None;
    for n in 0..count.max(1) {
        let new = NewInstruction::new(Opcode::Parameter, shape.clone(), &[])
            .attr(AttrKey::ParameterNumber, AttrValue::Int(n as i64));
        let name = module.unique_name("term");
        let term = module.append(entry, new.named(name));
        total = Some(match total {
            None => term,
            Some(total) => {
                let name = module.unique_name("sum");
                let new = NewInstruction::new(terms.by, shape.clone(), &[total, term]);
                module.append(entry, new.named(name))
            }
        });
    }
    let root = total.ok_or_else(|| Failure::internal("a sum has terms"))?;
    module.set_root(entry, root);
    module.set_entry(entry);
    client
        .engine
        .compile(&VerifiedModule::new(module).map_err(of_client)?, &engine_options())
        .map_err(of_client)
}

/// The part of an array that a partition has, in memory of its own.
fn cut(
    client: &Client,
    whole: &hlo_client::Buffer,
    tiling: Option<&Tiling>,
    partition: u32,
) -> Result<hlo_client::Buffer> {
    let shape = whole.shape().clone();
    let Some(tiling) = tiling else {
        return whole
            .with_bytes(|bytes| client.engine.buffer_from_bytes(shape, bytes))
            .map_err(of_client)?
            .map_err(of_client);
    };
    let (_, tile) =
        tiling.group_and_tile(partition).ok_or_else(|| Failure::internal("every partition has a tile"))?;
    let part = ArrayShape::new(shape.element_type, &tiling.shard(&shape.dims));
    let mut bytes = zero_bytes(client, &part)?;
    whole
        .with_bytes(|from| {
            for_each_row(&shape, &part, tiling, tile, |whole, own| {
                bytes[own].copy_from_slice(&from[whole]);
            });
        })
        .map_err(of_client)?;
    client.engine.buffer_from_bytes(part, &bytes).map_err(of_client)
}

/// Ranges of bytes of a tile's rows: in the whole array, and in the tile.
fn for_each_row(
    whole: &ArrayShape,
    part: &ArrayShape,
    tiling: &Tiling,
    tile: usize,
    mut row: impl FnMut(std::ops::Range<usize>, std::ops::Range<usize>),
) {
    let element = whole.element_type.storage_bytes();
    let sizes: Vec<usize> = part.dims.iter().map(|&n| n as usize).collect();
    let start = tiling.start(tile, &sizes);
    let Some((&last, outer)) = sizes.split_last() else { return row(0..element, 0..element) };
    if sizes.contains(&0) {
        return;
    }
    let bytes = last * element;
    let mut index = vec![0; outer.len()];
    for n in 0..outer.iter().product() {
        let mut offset = 0;
        for (d, &at) in index.iter().enumerate() {
            offset = (offset + start[d] + at) * whole.dims[d + 1] as usize;
        }
        let at = (offset + start[outer.len()]) * element;
        row(at..at + bytes, n * bytes..(n + 1) * bytes);
        for d in (0..outer.len()).rev() {
            index[d] += 1;
            if index[d] < outer[d] {
                break;
            }
            index[d] = 0;
        }
    }
}

/// Makes whole arguments of their parts.
struct Gather<'a> {
    client: &'a Client,
    placement: &'a Placement,
    executable: &'a hlo_client::Executable,
    arguments: &'a [Vec<Arc<Buffer>>],
    /// Sums of unreduced arguments that were made: of which argument, from which device on.
    summed: RefCell<FxHashMap<(usize, u32), hlo_client::Buffer>>,
}

impl Gather<'_> {
    /// The arguments as a device sees them.
    fn seen_by(&self, device: u32) -> Result<Vec<hlo_client::Buffer>> {
        let tiles = &self.placement.held.arguments;
        let shapes = self.executable.argument_shapes();
        let given = self.arguments.iter().map(Vec::len);
        if let Some(count) = given.into_iter().find(|&n| n != shapes.len()) {
            let message = format!("the program takes {} arrays, not {count}", shapes.len());
            return Err(Failure::invalid(message));
        }
        shapes
            .zip(tiles)
            .enumerate()
            .map(|(n, (shape, tiles))| self.argument(n, shape, tiles, device))
            .collect()
    }

    /// What a device handed in, or the sum of what the devices did whose parts add up with its own.
    fn given(&self, n: usize, device: u32, part: &ArrayShape) -> Result<hlo_client::Buffer> {
        let of = |device: u32| {
            let given = &self.arguments[device as usize][n];
            check_order(&self.placement.layouts, n, given)?;
            let given = &given.array;
            if given.shape().dims == part.dims && given.shape().element_type == part.element_type {
                return Ok(given);
            }
            let message =
                format!("argument {n} is {} on device {device}, whose part of it is {part}", given.shape());
            Err(Failure::invalid(message))
        };
        let partition = device % self.placement.devices.partitions();
        let terms = self.placement.held.argument_terms.get(n).unwrap_or(&None);
        let others = sum_of(terms, partition);
        let (Some(first), Some(Some(sum))) = (others.first(), self.placement.sums.get(n)) else {
            return Ok(of(device)?.clone());
        };
        let first = device - partition + first;
        if let Some(made) = self.summed.borrow().get(&(n, first)) {
            return Ok(made.clone());
        }
        let terms = others.iter().map(|p| of(device - partition + p)).collect::<Result<Vec<_>>>()?;
        let made = sum
            .execute(&terms)
            .map_err(of_client)?
            .pop()
            .ok_or_else(|| Failure::internal("a sum is an array"))?;
        self.summed.borrow_mut().insert((n, first), made.clone());
        Ok(made)
    }

    fn argument(
        &self,
        n: usize,
        shape: &ArrayShape,
        tiles: &Tiles,
        device: u32,
    ) -> Result<hlo_client::Buffer> {
        let partitions = self.placement.devices.partitions();
        let Some(tiling) = tiles else { return self.given(n, device, shape) };
        let group_and_tile = tiling.group_and_tile(device % partitions);
        let (group, _) = group_and_tile.ok_or_else(|| Failure::internal("every partition has a tile"))?;
        let part = Placement::part(tiles, shape);
        let mut bytes = zero_bytes(self.client, shape)?;
        let first = device - device % partitions;
        for (tile, &partition) in tiling.groups[group].iter().enumerate() {
            let owner = u32::try_from(partition).ok().filter(|&p| p < partitions);
            let owner = owner.ok_or_else(|| Failure::internal("tiles are of the program's partitions"))?;
            let given = self.given(n, first + owner, &part)?;
            given
                .with_bytes(|from| {
                    for_each_row(shape, &part, tiling, tile, |whole, own| {
                        bytes[whole].copy_from_slice(&from[own]);
                    });
                })
                .map_err(of_client)?;
        }
        self.client.engine.buffer_from_bytes(shape.clone(), &bytes).map_err(of_client)
    }
}

/// Refuses an argument in another layout than the program's.
///
/// # Errors
/// It names both.
pub(crate) fn check_order(layouts: &Layouts, n: usize, given: &Buffer) -> Result<()> {
    let wanted = layouts.arguments.get(n).unwrap_or(&None);
    if given.order == *wanted {
        return Ok(());
    }
    let wanted = layout::text(&layout::minor_to_major(wanted, given.dims().len()));
    let has = layout::text(given.minor_to_major());
    Err(Failure::invalid(format!("argument {n} is in the layout {has}; the program takes {wanted}")))
}

/// The buffers of the lists of arguments, one list a device.
///
/// # Errors
/// One does not exist, or is another client's.
pub(crate) fn arguments(
    client: &Arc<Client>,
    lists: &[Vec<*mut opaque::Buffer>],
) -> Result<Vec<Vec<Arc<Buffer>>>> {
    let one = |(n, &pointer): (usize, &*mut opaque::Buffer)| {
        let buffer = handles::get(pointer)?;
        if Arc::ptr_eq(&buffer.client, client) {
            return Ok(buffer);
        }
        Err(Failure::invalid(format!("argument {n} is another client's")))
    };
    lists.iter().map(|list| list.iter().enumerate().map(one).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::ElementType;

    #[test]
    fn rows_of_tiles() {
        let whole = ArrayShape::new(ElementType::S16, &[4, 6]);
        let tiling = Tiling { tiles: vec![2, 3], groups: vec![(0..6).collect()] };
        let part = Placement::part(&Some(tiling.clone()), &whole);
        assert_eq!(part.dims.as_slice(), [2, 2]);
        let mut rows = Vec::new();
        // The tile in the second row of tiles, third column: elements (2, 4), (2, 5), (3, 4), (3, 5).
        for_each_row(&whole, &part, &tiling, 5, |whole, own| rows.push((whole, own)));
        assert_eq!(rows, [(32..36, 0..4), (44..48, 4..8)]);
        // All tiles together are the array, each byte once.
        let mut seen = [0; 48];
        for tile in 0..6 {
            for_each_row(&whole, &part, &tiling, tile, |whole, _| {
                seen[whole].iter_mut().for_each(|n| *n += 1)
            });
        }
        assert!(seen.iter().all(|&n| n == 1));
    }
}
