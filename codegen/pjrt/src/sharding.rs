//! How a program's arrays are on its devices.
//!
//! A framework gives the program of whole arrays with the shardings of its arguments and, where it cares, of
//! its results. It is not partitioned: every execution has the whole arrays ([`crate::placement`]), and
//! shardings say which device passes and receives which part of them. Where the sharding of a result is not
//! given, [`propagate`] chooses it, and the framework is told.
//!
//! **Invariant:** a sharding that is not understood, or that cuts a dimension into parts of different sizes,
//! is refused by name. A choice may be partitioned less than XLA's, never another array.

use hlo::attrs::{FrontendValue, NamedSharding, Sharding};
use hlo::{ArrayShape, AttrKey, InstrId, Instruction, Module, Opcode, Shape, shardy};
use hlo_interp::device::tiling::Tiling;

use crate::error::{Failure, Result};
use crate::propagate;
use hlo_pjrt_abi::wire::{self, Fields, Value};

/// The tiles of an array; `None`: every device has all of it.
pub type Tiles = Option<Tiling>;

/// The terms of an unreduced array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreduced {
    /// Sets of partitions whose parts make a part of the array.
    pub sets: Vec<Vec<i64>>,
    /// The reduction of the terms: `Add`, `Maximum` or `Minimum`.
    pub by: Opcode,
}

/// Of an unreduced array what it is made of. `None`: it is not unreduced.
pub type Terms = Option<Unreduced>;

/// Prefix, before the number of a result, of the module's frontend attribute that keeps the sharding of an
/// unreduced result: an `OpSharding` cannot say which mesh axes are unreduced.
pub(crate) const UNREDUCED_RESULT: &str = "hlo.unreduced_result.";

/// The frontend attribute of a parameter that is its sharding by Shardy.
pub(crate) const SHARDY: &str = "xla.sdy.sharding";

/// The shardings that a program states of its arguments and results, array by array.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Shardings {
    /// Of each array of the parameters.
    pub arguments: Vec<Tiles>,
    /// Of each array of the result.
    pub results: Vec<Tiles>,
    /// The terms of each array of the parameters.
    pub argument_terms: Vec<Terms>,
    /// The terms of each array of the result.
    pub result_terms: Vec<Terms>,
}

/// The tiles that a sharding in text means for an array.
fn tiles_of_text(module: &Module, text: &str, shape: &ArrayShape, what: &str) -> Result<Tiles> {
    let refused = |why: &str| Failure::unimplemented(format!("the sharding of {what}, {text}, {why}"));
    let tiles = if text.starts_with("#sdy") {
        let named = shardy::sharding(module, text).ok_or_else(|| refused("cannot be read"))?;
        Tiling::of_axes(&reduced(named), None, shape.rank())
    } else {
        let sharding = hlo_parser::parse_sharding(text).map_err(|_| refused("cannot be read"))?;
        Tiling::of(&sharding, shape.rank())
    };
    even(tiles.map_err(|why| refused(&why))?, shape).map_err(|why| refused(&why))
}

/// The sharding of the array that the parts of an unreduced one add up to.
fn reduced(mut named: NamedSharding) -> NamedSharding {
    named.unreduced.clear();
    named
}

/// The terms of an array, by its sharding in text.
pub(crate) fn terms_of_text(module: &Module, text: &str, what: &str) -> Result<Terms> {
    if !text.starts_with("#sdy") {
        return Ok(None); // unreduced ones of XLA's own forms are refused with their tiles
    }
    let refused = |why: &str| Failure::unimplemented(format!("the sharding of {what}, {text}, {why}"));
    let named = shardy::sharding(module, text).ok_or_else(|| refused("cannot be read"))?;
    if named.unreduced.is_empty() {
        return Ok(None);
    }
    let by = match named.unreduced_kind.as_deref() {
        None | Some("sum") => Opcode::Add,
        Some("max") => Opcode::Maximum,
        Some("min") => Opcode::Minimum,
        Some(_) => return Err(refused("is unreduced in a way that is not known")),
    };
    let sets = named.mesh.groups_along(&named.unreduced);
    let sets = sets.ok_or_else(|| refused("has axes that are not those of its mesh"))?;
    Ok(Some(Unreduced { sets, by }))
}

/// The terms of each array of the parameters.
fn terms_of_arguments(module: &Module) -> Result<Vec<Terms>> {
    let mut all = Vec::new();
    for &id in module.computation(module.entry()).parameters().iter().flatten() {
        let instr = module.instr(id);
        let text = instr.attrs.frontend_attributes().and_then(|a| a.get(SHARDY));
        match (text, &instr.shape) {
            (Some(text), Shape::Array(_)) => {
                all.push(terms_of_text(module, text, &format!("the argument {}", instr.name))?);
            }
            (_, shape) => all.extend(arrays(shape).iter().map(|_| None)),
        }
    }
    Ok(all)
}

/// What each of that many arrays of the result is the sum of, as the module keeps it.
fn terms_of_results(module: &Module, count: usize) -> Result<Vec<Terms>> {
    let kept = module.header.frontend_attributes.as_ref();
    let one = |n: usize| match kept.and_then(|all| all.get(&format!("{UNREDUCED_RESULT}{n}"))) {
        Some(text) => terms_of_text(module, text, &format!("result {n}")),
        None => Ok(None),
    };
    (0..count).map(one).collect()
}

/// Keeps the shardings of unreduced results in the module, so that they are written and read with it.
fn keep_unreduced(module: &mut Module, stated: &[Option<&str>]) {
    for (n, text) in stated.iter().enumerate() {
        let Some(text) = text.filter(|text| text.contains("unreduced=")) else { continue };
        let kept = module.header.frontend_attributes.get_or_insert_default();
        let key = format!("{UNREDUCED_RESULT}{n}").into();
        kept.entries.push((key, FrontendValue::Str(text.into())));
    }
}

/// Tiles that are all of one size. Errors: they are not.
fn even(tiles: Tiles, shape: &ArrayShape) -> std::result::Result<Tiles, String> {
    match &tiles {
        Some(tiling) if !divides(tiling, &shape.dims) => {
            Err(format!("cuts {:?} into {:?} parts that are not of one size", shape.dims, tiling.tiles))
        }
        _ => Ok(tiles),
    }
}

/// Whether all tiles of an array have one size.
pub(crate) fn divides(tiling: &Tiling, dims: &[i64]) -> bool {
    dims.iter().zip(&tiling.tiles).all(|(&size, &tiles)| size % (tiles as i64) == 0)
}

fn tiles_of_parameter(module: &Module, instr: &Instruction, shape: &ArrayShape) -> Result<Tiles> {
    let what = format!("the argument {}", instr.name);
    if let Some(text) = instr.attrs.frontend_attributes().and_then(|a| a.get(SHARDY)) {
        return tiles_of_text(module, text, shape, &what);
    }
    match instr.attrs.sharding() {
        Some(sharding) => tiles_of(sharding, shape, &what),
        None => Ok(None),
    }
}

fn tiles_of(sharding: &Sharding, shape: &ArrayShape, what: &str) -> Result<Tiles> {
    let refused = |why: String| Failure::unimplemented(format!("the sharding of {what} {why}"));
    even(Tiling::of(sharding, shape.rank()).map_err(refused)?, shape).map_err(refused)
}

/// The array leaves of a shape.
fn arrays(shape: &Shape) -> Vec<&ArrayShape> {
    shape.leaves().into_iter().filter_map(Shape::as_array).collect()
}

impl Shardings {
    /// Of a program for one device, or one that says nothing: everything is whole.
    pub fn whole(arguments: usize, results: usize) -> Self {
        Self {
            arguments: vec![None; arguments],
            results: vec![None; results],
            argument_terms: vec![None; arguments],
            result_terms: vec![None; results],
        }
    }

    /// Of a program of whole arrays. `stated`: the shardings of the function's results as text, of which
    /// those of unreduced results are kept in the module; `groups`: values that are to be partitioned alike.
    ///
    /// # Errors
    /// One is not understood.
    pub fn of(module: &mut Module, stated: &[Option<Box<str>>], groups: &[(InstrId, i64)]) -> Result<Self> {
        let (found, texts) = Self::stated(module, stated, groups)?;
        keep_unreduced(module, &texts);
        let result_terms = terms_of_results(module, found.results.len())?;
        Ok(Self { result_terms, ..found })
    }

    /// The same without the terms of results, and the text of each result's sharding.
    fn stated<'a>(
        module: &Module,
        stated: &'a [Option<Box<str>>],
        groups: &[(InstrId, i64)],
    ) -> Result<(Self, Vec<Option<&'a str>>)> {
        let entry = module.entry();
        let mut arguments = Vec::new();
        for &id in module.computation(entry).parameters().iter().flatten() {
            let instr = module.instr(id);
            match &instr.shape {
                Shape::Array(shape) => arguments.push(tiles_of_parameter(module, instr, shape)?),
                other => arguments.extend(arrays(other).iter().map(|_| None)),
            }
        }
        let root = module.instr(module.root(entry));
        let shapes = arrays(&root.shape);
        // One text a result; tokens among the results have one, too, and are no arrays.
        let parts: Vec<bool> = match &root.shape {
            Shape::Tuple(parts) => parts.iter().map(|p| p.as_array().is_some()).collect(),
            other => vec![other.as_array().is_some()],
        };
        let stated: Vec<Option<&str>> = match stated.len() == parts.len() {
            true => stated.iter().zip(&parts).filter(|(_, is)| **is).map(|(s, _)| s.as_deref()).collect(),
            false => vec![None; shapes.len()],
        };
        if stated.len() != shapes.len() {
            return Err(Failure::unimplemented("results that are tuples of tuples on several devices"));
        }
        let chosen =
            if stated.iter().any(Option::is_none) { propagate::results(module, groups) } else { Vec::new() };
        let mut results = Vec::with_capacity(shapes.len());
        for (n, (text, shape)) in stated.iter().zip(&shapes).enumerate() {
            results.push(match text {
                Some(text) => tiles_of_text(module, text, shape, &format!("result {n}"))?,
                None => chosen.get(n).cloned().flatten().filter(|t| divides(t, &shape.dims)),
            });
        }
        let argument_terms = terms_of_arguments(module)?;
        Ok((Self { arguments, results, argument_terms, result_terms: Vec::new() }, stated))
    }

    /// Those that an `HloModuleProto` has, if it has them for all arrays.
    ///
    /// # Errors
    /// One is not understood.
    pub fn read(module: &mut Module, proto: &[u8]) -> Result<Self> {
        let (mut arguments, mut results) = (Vec::new(), None);
        let mut unreduced = [0, 0];
        for (number, value) in wire::fields(proto)? {
            match (number, value) {
                (field::PARAMETERS, Value::Bytes(one)) => {
                    arguments.push(read_op_sharding(one)?);
                    unreduced[0] += count_unreduced(one)?;
                }
                (field::OUTPUT, Value::Bytes(all)) => {
                    results = Some(read_op_shardings(all)?);
                    unreduced[1] = count_unreduced(all)?;
                }
                _others => {}
            }
        }
        let entry = module.entry();
        // Tokens have one, too, and are no arrays.
        let of_parameters = module.computation(entry).parameters().iter().flatten();
        let is_array = |shape: &&Shape| shape.as_array().is_some();
        let leaves: Vec<&Shape> = of_parameters.flat_map(|&id| module.instr(id).shape.leaves()).collect();
        let of_result = module.instr(module.root(entry)).shape.leaves();
        let only_arrays = |all: Vec<Tiles>, leaves: &[&Shape]| match all.len() == leaves.len() {
            true => {
                all.into_iter().zip(leaves).filter(|(_, l)| is_array(l)).map(|(tiles, _)| tiles).collect()
            }
            false => Vec::new(),
        };
        let (arguments, results) =
            (only_arrays(arguments, &leaves), only_arrays(results.unwrap_or_default(), &of_result));
        let parameters = module.computation(entry).parameters().iter().flatten();
        let wanted: Vec<&ArrayShape> = parameters.flat_map(|&id| arrays(&module.instr(id).shape)).collect();
        let made = arrays(&module.instr(module.root(entry)).shape);
        if arguments.len() != wanted.len() || results.len() != made.len() {
            return Self::of(module, &[], &[]);
        }
        let fits = |tiles: &Tiles, shape: &ArrayShape| {
            tiles.as_ref().is_none_or(|t| t.tiles.len() == shape.rank() && divides(t, &shape.dims))
        };
        let all = arguments.iter().zip(&wanted).chain(results.iter().zip(&made));
        if !all.into_iter().all(|(tiles, shape)| fits(tiles, shape)) {
            return Err(Failure::invalid("the module has shardings that are not those of its arrays"));
        }
        let all_terms = [terms_of_arguments(module)?, terms_of_results(module, results.len())?];
        if unreduced.iter().zip(&all_terms).any(|(&n, terms)| n > terms.iter().flatten().count()) {
            let message = "the module has unreduced arrays, and does not say along which axes of a mesh";
            return Err(Failure::unimplemented(message));
        }
        let [argument_terms, result_terms] = all_terms;
        Ok(Self { arguments, results, argument_terms, result_terms })
    }

    /// Messages `OpSharding` of arguments and of results. `arguments`, `results`: the rank of each array;
    /// `None` of a token, which is replicated.
    pub fn messages(&self, arguments: &[Option<usize>], results: &[Option<usize>]) -> [Vec<Vec<u8>>; 2] {
        let with_tokens = |all: &[Tiles], terms: &[Terms], ranks: &[Option<usize>]| -> Vec<Vec<u8>> {
            let mut arrays = all.iter().zip(terms);
            let mut one = |rank: &Option<usize>| match rank.and_then(|rank| Some((rank, arrays.next()?))) {
                Some((rank, (tiles, Some(terms)))) => unreduced_sharding(tiles, terms, rank),
                Some((_, (tiles, None))) => op_sharding(tiles),
                None => op_sharding(&None),
            };
            ranks.iter().map(&mut one).collect()
        };
        [
            with_tokens(&self.arguments, &self.argument_terms, arguments),
            with_tokens(&self.results, &self.result_terms, results),
        ]
    }

    /// Appends them to an `HloModuleProto`, where frameworks look for them. Ranks are those of
    /// [`Shardings::messages`].
    pub fn write(&self, proto: &mut Vec<u8>, arguments: &[Option<usize>], results: &[Option<usize>]) {
        let [arguments, results] = self.messages(arguments, results);
        match &results[..] {
            [] => {}
            [only] => wire::put(proto, field::OUTPUT, only),
            all => {
                let mut output = Vec::new();
                wire::put_number(&mut output, field::TYPE, kind::TUPLE);
                all.iter().for_each(|one| wire::put(&mut output, field::TUPLE_PARTS, one));
                wire::put(proto, field::OUTPUT, &output);
            }
        }
        arguments.iter().for_each(|one| wire::put(proto, field::PARAMETERS, one));
    }
}

/// Fields of `HloModuleProto` and `OpSharding`.
mod field {
    /// `HloModuleProto.spmd_output_sharding`.
    pub(super) const OUTPUT: u64 = 12;
    /// `HloModuleProto.spmd_parameters_shardings`.
    pub(super) const PARAMETERS: u64 = 14;
    /// `OpSharding.type`.
    pub(super) const TYPE: u64 = 1;
    /// `OpSharding.tile_assignment_dimensions`.
    pub(super) const DIMENSIONS: u64 = 3;
    /// `OpSharding.tile_assignment_devices`.
    pub(super) const DEVICES: u64 = 4;
    /// `OpSharding.tuple_shardings`.
    pub(super) const TUPLE_PARTS: u64 = 5;
    /// `OpSharding.replicate_on_last_tile_dim`.
    pub(super) const REPLICATE_ON_LAST: u64 = 6;
    /// `OpSharding.metadata`, many messages `OpMetadata`: where a sharding is from, and of an unreduced one
    /// how its parts are combined, as what is of the kind [`super::REDUCTION`] is called.
    pub(super) const METADATA: u64 = 7;
    /// `OpMetadata.op_type`.
    pub(super) const METADATA_KIND: u64 = 1;
    /// `OpMetadata.op_name`.
    pub(super) const METADATA_NAME: u64 = 2;
    /// `OpSharding.last_tile_dims`: of what kind the dimensions behind those of the array are.
    pub(super) const LAST_DIMENSIONS: u64 = 8;
}

/// The kind of metadata of an unreduced sharding whose name is `SUM`, `MAX` or `MIN`.
const REDUCTION: &str = "sdy::reduction_op";

/// `OpSharding.Type`.
mod kind {
    /// Everything everywhere.
    pub(super) const REPLICATED: u64 = 0;
    /// One for each array.
    pub(super) const TUPLE: u64 = 2;
    /// Tiles.
    pub(super) const OTHER: u64 = 3;
    /// The array is the sum of what several devices have.
    pub(super) const UNREDUCED: u64 = 6;
}

pub(crate) fn op_sharding(tiles: &Tiles) -> Vec<u8> {
    let mut message = Vec::new();
    let Some(Tiling { tiles, groups }) = tiles else {
        wire::put_number(&mut message, field::TYPE, kind::REPLICATED);
        return message;
    };
    wire::put_number(&mut message, field::TYPE, kind::OTHER);
    let copies = groups.len();
    let dims = tiles.iter().copied().chain((copies > 1).then_some(copies));
    wire::put_packed(&mut message, field::DIMENSIONS, dims.map(|n| n as u64));
    let count = groups.first().map_or(0, Vec::len);
    let devices = (0..count).flat_map(|tile| groups.iter().map(move |group| group[tile].cast_unsigned()));
    wire::put_packed(&mut message, field::DEVICES, devices);
    if copies > 1 {
        wire::put_number(&mut message, field::REPLICATE_ON_LAST, 1);
    }
    message
}

/// The `OpSharding` of an unreduced array: its tiles, then a replicated dimension if tiles have copies,
/// then an unreduced one, and how its parts are combined.
fn unreduced_sharding(tiles: &Tiles, terms: &Unreduced, rank: usize) -> Vec<u8> {
    let Unreduced { sets, by } = terms;
    let summed = sets.first().map_or(1, Vec::len);
    let whole = || {
        let mut all: Vec<i64> = sets.iter().flatten().copied().collect();
        all.sort_unstable();
        Tiling { tiles: vec![1; rank], groups: all.into_iter().map(|device| vec![device]).collect() }
    };
    let Tiling { tiles, groups } = tiles.clone().unwrap_or_else(whole);
    let mut devices: Vec<u64> = Vec::new();
    for tile in 0..tiles.iter().product() {
        for device in groups.iter().filter_map(|group| group.get(tile)) {
            // With the first of a set all of it.
            if let Some(set) = sets.iter().find(|set| set.first() == Some(device)) {
                devices.extend(set.iter().map(|d| d.cast_unsigned()));
            }
        }
    }
    let copies = groups.len() / summed.max(1);
    let (mut dims, mut kinds) = (tiles, Vec::new());
    if copies > 1 {
        dims.push(copies);
        kinds.push(kind::REPLICATED);
    }
    dims.push(summed);
    kinds.push(kind::UNREDUCED);
    let mut message = Vec::new();
    wire::put_number(&mut message, field::TYPE, kind::OTHER);
    wire::put_packed(&mut message, field::DIMENSIONS, dims.into_iter().map(|n| n as u64));
    wire::put_packed(&mut message, field::DEVICES, devices.into_iter());
    // Parts of which nothing is said add up.
    let combined = [(Opcode::Maximum, "MAX"), (Opcode::Minimum, "MIN")].into_iter().find(|(op, _)| op == by);
    if let Some((_, combined)) = combined {
        let mut metadata = Vec::new();
        wire::put(&mut metadata, field::METADATA_KIND, REDUCTION.as_bytes());
        wire::put(&mut metadata, field::METADATA_NAME, combined.as_bytes());
        wire::put(&mut message, field::METADATA, &metadata);
    }
    wire::put_packed(&mut message, field::LAST_DIMENSIONS, kinds.into_iter());
    message
}

fn read_op_shardings(message: &[u8]) -> Result<Vec<Tiles>> {
    let fields = wire::fields(message)?;
    if !fields.contains(&(field::TYPE, Value::Number(kind::TUPLE))) {
        return Ok(vec![read_op_sharding(message)?]);
    }
    let parts = fields.into_iter().filter_map(|(number, value)| match value {
        Value::Bytes(one) if number == field::TUPLE_PARTS => Some(read_op_sharding(one)),
        Value::Bytes(_) | Value::Number(_) => None,
    });
    parts.collect()
}

/// The number of unreduced arrays of an `OpSharding`.
fn count_unreduced(message: &[u8]) -> Result<usize> {
    let (mut count, mut behind) = (0, Vec::new());
    for (number, value) in wire::fields(message)? {
        match (number, value) {
            (field::TUPLE_PARTS, Value::Bytes(one)) => count += count_unreduced(one)?,
            (field::LAST_DIMENSIONS, value) => numbers(value, &mut behind)?,
            _others => {}
        }
    }
    Ok(count + usize::from(behind.contains(&kind::UNREDUCED)))
}

/// Appends a number, or all of a packed list.
fn numbers(value: Value<'_>, into: &mut Vec<u64>) -> Result<()> {
    match value {
        Value::Number(n) => into.push(n),
        Value::Bytes(packed) => {
            let mut packed = Fields::new(packed);
            while !packed.is_empty() {
                into.push(packed.varint()?);
            }
        }
    }
    Ok(())
}

fn read_op_sharding(message: &[u8]) -> Result<Tiles> {
    let refused = |why: &str| Failure::unimplemented(format!("an OpSharding that {why}"));
    let (mut ty, mut last) = (kind::REPLICATED, false);
    let (mut dims, mut devices, mut behind) = (Vec::new(), Vec::new(), Vec::new());
    for (number, value) in wire::fields(message)? {
        match (number, value) {
            (field::TYPE, Value::Number(n)) => ty = n,
            (field::DIMENSIONS, value) => numbers(value, &mut dims)?,
            (field::DEVICES, value) => numbers(value, &mut devices)?,
            (field::REPLICATE_ON_LAST, Value::Number(n)) => last = n != 0,
            (field::METADATA, Value::Bytes(_)) => {}
            (field::LAST_DIMENSIONS, value) => numbers(value, &mut behind)?,
            (number, _) => return Err(refused(&format!("has the field {number}"))),
        }
    }
    if ty == kind::REPLICATED {
        return Ok(None);
    }
    if ty != kind::OTHER {
        return Err(refused(&format!("is of type {ty}")));
    }
    if behind.iter().any(|&ty| ty != kind::REPLICATED && ty != kind::UNREDUCED) {
        return Err(refused("has dimensions behind the array's that are neither replicated nor unreduced"));
    }
    // What adds up is kept beside ([`terms_of_results`]); the tiles of all that do are the same.
    let trailing = behind.len() + usize::from(last);
    let Some(rank) = dims.len().checked_sub(trailing) else { return Err(refused("has too few dimensions")) };
    let copies = dims.drain(rank..).try_fold(1_u64, u64::checked_mul).unwrap_or(0);
    let count = dims.iter().try_fold(1_u64, |n, &size| n.checked_mul(size)).unwrap_or(0);
    let fits = copies > 0 && count > 0 && count.checked_mul(copies) == Some(devices.len() as u64);
    if !fits {
        return Err(refused("has not as many devices as tiles"));
    }
    let copies = copies as usize;
    let group = |copy: usize| devices.iter().skip(copy).step_by(copies).map(|&id| id.cast_signed()).collect();
    if !behind.is_empty() && count == 1 {
        return Ok(None);
    }
    Ok(Some(Tiling {
        tiles: dims.into_iter().map(|n| n as usize).collect(),
        groups: (0..copies).map(group).collect(),
    }))
}

/// Whether what a device computes depends on which one it is: it communicates, asks for its number, or begins
/// with its shard of an array.
pub(crate) fn depends_on_device(module: &Module) -> bool {
    let depends = |instr: &Instruction| match instr.opcode {
        Opcode::PartitionId | Opcode::ReplicaId | Opcode::Send | Opcode::Recv => true,
        Opcode::CustomCall => instr.attrs.str(AttrKey::CustomCallTarget).is_some_and(|target| {
            ["FullToShardShape", "ShardToFullShape", "GlobalToLocalShape", "LocalToGlobalShape"]
                .iter()
                .any(|end| target.ends_with(end))
        }),
        opcode => opcode.flags().collective,
    };
    module.computations().iter().any(|&c| module.instructions(c).any(|id| depends(module.instr(id))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles(tiles: &[usize], groups: &[&[i64]]) -> Tiles {
        Some(Tiling { tiles: tiles.to_vec(), groups: groups.iter().map(|g| g.to_vec()).collect() })
    }

    #[test]
    fn shardings_in_messages_are_read() {
        let all = [
            None,
            tiles(&[4], &[&[0, 1, 2, 3]]),
            tiles(&[2, 1], &[&[0, 1], &[2, 3]]),
            tiles(&[2, 2], &[&[0, 2, 1, 3]]),
        ];
        for one in &all {
            assert_eq!(read_op_sharding(&op_sharding(one)).unwrap(), *one);
        }
        // XLA's own: type 3, dimensions [2, 1, 2], devices 0 to 3, the last dimension replicated.
        let bytes = [8, 3, 26, 3, 2, 1, 2, 34, 4, 0, 1, 2, 3, 48, 1];
        assert_eq!(read_op_sharding(&bytes).unwrap(), tiles(&[2, 1], &[&[0, 2], &[1, 3]]));
        // Unreduced: of a mesh of x=2, y=2, z=2 partitioned along x, and unreduced along y (2 copies) or
        // along y and z (none).
        let cut = tiles(&[2, 1], &[&[0, 4], &[1, 5], &[2, 6], &[3, 7]]);
        let sum = |sets: &[&[i64]]| Unreduced {
            sets: sets.iter().map(|set| set.to_vec()).collect(),
            by: Opcode::Add,
        };
        let along_y = sum(&[&[0, 2], &[1, 3], &[4, 6], &[5, 7]]);
        let message = unreduced_sharding(&cut, &along_y, 2);
        assert_eq!(message, [8, 3, 26, 4, 2, 1, 2, 2, 34, 8, 0, 2, 1, 3, 4, 6, 5, 7, 66, 2, 0, 6]);
        assert!(read_op_sharding(&message).unwrap().is_some_and(|t| t.tiles == [2, 1]));
        assert_eq!(count_unreduced(&message).unwrap(), 1);
        let message = unreduced_sharding(&cut, &sum(&[&[0, 1, 2, 3], &[4, 5, 6, 7]]), 2);
        assert_eq!(message, [8, 3, 26, 3, 2, 1, 4, 34, 8, 0, 1, 2, 3, 4, 5, 6, 7, 66, 1, 6]);
        let message = unreduced_sharding(&None, &sum(&[&[0, 1]]), 1);
        assert_eq!(message, [8, 3, 26, 2, 1, 2, 34, 2, 0, 1, 66, 1, 6]);
        assert_eq!(read_op_sharding(&message).unwrap(), None);
        // A maximum: as a sum, with the kind that jaxlib keeps.
        let largest = Unreduced { by: Opcode::Maximum, ..sum(&[&[0, 1]]) };
        let message = unreduced_sharding(&None, &largest, 1);
        let metadata = [&[58, 24, 10, 17], "sdy::reduction_op".as_bytes(), &[18, 3], b"MAX"].concat();
        assert_eq!(message, [&[8, 3, 26, 2, 1, 2, 34, 2, 0, 1], &*metadata, &[66, 1, 6]].concat());
        assert_eq!(read_op_sharding(&message).unwrap(), None);
        // A form by iota is refused, and what has too few devices.
        assert!(read_op_sharding(&[8, 3, 26, 1, 2, 74, 1, 2]).is_err());
        assert!(read_op_sharding(&[8, 3, 26, 1, 2, 34, 1, 0]).is_err());
    }

    #[test]
    fn unreduced_arrays_that_say_no_axes_are_refused() {
        let text =
            "HloModule m, num_partitions=2\n ENTRY e { x = f32[4] parameter(0) ROOT s = f32[4] sine(x) }";
        let read = |argument: &[u8], result: &[u8]| {
            let parsed = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default());
            let mut proto = Vec::new();
            wire::put(&mut proto, field::OUTPUT, result);
            wire::put(&mut proto, field::PARAMETERS, argument);
            Shardings::read(&mut parsed.module.unwrap(), &proto)
        };
        let sum = Unreduced { sets: vec![vec![0, 1]], by: Opcode::Add };
        let (whole, unreduced) = (op_sharding(&None), unreduced_sharding(&None, &sum, 1));
        assert_eq!(read(&whole, &whole).unwrap(), Shardings::whole(1, 1));
        for (argument, result) in [(&unreduced, &whole), (&whole, &unreduced)] {
            let error = read(argument, result).unwrap_err();
            assert!(error.message.contains("does not say along which axes"), "{error:?}");
        }
    }
}
