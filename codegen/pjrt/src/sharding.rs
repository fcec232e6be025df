//! How a program's arrays lie on its devices.
//!
//! A framework gives the program of whole arrays with the shardings of its arguments and, where it cares, of its results. It is not partitioned: every execution has the whole arrays
//! ([`crate::placement`]), and shardings say which device hands in and gets which part of them. Where nobody says how a result lies, [`propagate`] chooses, and the framework is told.
//!
//! **Invariant:** a sharding that is not understood, or that cuts a dimension into parts of different sizes, is refused by name. A choice may be less cut than XLA's, never another array.

use hlo::attrs::Sharding;
use hlo::{ArrayShape, AttrKey, Instruction, Module, Opcode, Shape};
use hlo_interp::device::sdy;
use hlo_interp::device::tiling::Tiling;

use crate::error::{Failure, Result};
use crate::propagate;
use crate::wire::{self, Fields, Value};

/// The tiles of an array; `None`: every device has all of it.
pub type Tiles = Option<Tiling>;

/// The frontend attribute of a parameter that is its sharding by Shardy.
pub(crate) const SHARDY: &str = "xla.sdy.sharding";

/// What a program says of its arguments and results, array by array.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Shardings {
    /// Of each array of the parameters.
    pub arguments: Vec<Tiles>,
    /// Of each array of the result.
    pub results: Vec<Tiles>,
}

/// The tiles that a sharding in text means for an array.
fn tiles_of_text(module: &Module, text: &str, shape: &ArrayShape, what: &str) -> Result<Tiles> {
    let refused = |why: &str| Failure::unimplemented(format!("the sharding of {what}, {text}, {why}"));
    let tiles = if text.starts_with("#sdy") {
        let named = sdy::sharding(module, text).ok_or_else(|| refused("cannot be read"))?;
        Tiling::of_axes(&named, None, shape.rank())
    } else {
        let sharding = hlo_parser::parse_sharding(text).map_err(|_| refused("cannot be read"))?;
        Tiling::of(&sharding, shape.rank())
    };
    even(tiles.map_err(|why| refused(&why))?, shape).map_err(|why| refused(&why))
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
        Self { arguments: vec![None; arguments], results: vec![None; results] }
    }

    /// Of a program of whole arrays. `stated`: the shardings of the function's results as text.
    ///
    /// # Errors
    /// One is not understood.
    pub fn of(module: &Module, stated: &[Option<Box<str>>]) -> Result<Self> {
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
        let chosen = if stated.iter().any(Option::is_none) { propagate::results(module) } else { Vec::new() };
        let mut results = Vec::with_capacity(shapes.len());
        for (n, (text, shape)) in stated.iter().zip(&shapes).enumerate() {
            results.push(match text {
                Some(text) => tiles_of_text(module, text, shape, &format!("result {n}"))?,
                None => chosen.get(n).cloned().flatten().filter(|t| divides(t, &shape.dims)),
            });
        }
        Ok(Self { arguments, results })
    }

    /// Those that an `HloModuleProto` has, if it has them for all arrays.
    ///
    /// # Errors
    /// One is not understood.
    pub fn read(module: &Module, proto: &[u8]) -> Result<Self> {
        let (mut arguments, mut results) = (Vec::new(), None);
        for (number, value) in wire::fields(proto)? {
            match (number, value) {
                (field::PARAMETERS, Value::Bytes(one)) => arguments.push(read_op_sharding(one)?),
                (field::OUTPUT, Value::Bytes(all)) => results = Some(read_op_shardings(all)?),
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
        let found = Self {
            arguments: only_arrays(arguments, &leaves),
            results: only_arrays(results.unwrap_or_default(), &of_result),
        };
        let parameters = module.computation(entry).parameters().iter().flatten();
        let wanted: Vec<&ArrayShape> = parameters.flat_map(|&id| arrays(&module.instr(id).shape)).collect();
        let results = arrays(&module.instr(module.root(entry)).shape);
        if found.arguments.len() != wanted.len() || found.results.len() != results.len() {
            return Self::of(module, &[]);
        }
        let fits = |tiles: &Tiles, shape: &ArrayShape| {
            tiles.as_ref().is_none_or(|t| t.tiles.len() == shape.rank() && divides(t, &shape.dims))
        };
        let all = found.arguments.iter().zip(&wanted).chain(found.results.iter().zip(&results));
        if all.into_iter().all(|(tiles, shape)| fits(tiles, shape)) {
            return Ok(found);
        }
        Err(Failure::invalid("the module has shardings that are not those of its arrays"))
    }

    /// Appends them to an `HloModuleProto`, where frameworks look for them. `tokens_in`, `tokens_out`: which of the arguments and results are tokens, that every device has.
    pub fn write(&self, proto: &mut Vec<u8>, tokens_in: &[bool], tokens_out: &[bool]) {
        let with_tokens = |all: &[Tiles], tokens: &[bool]| -> Vec<Vec<u8>> {
            let mut arrays = all.iter();
            let one =
                |is_token: &bool| op_sharding(if *is_token { &None } else { arrays.next().unwrap_or(&None) });
            tokens.iter().map(one).collect()
        };
        let results = with_tokens(&self.results, tokens_out);
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
        for one in with_tokens(&self.arguments, tokens_in) {
            wire::put(proto, field::PARAMETERS, &one);
        }
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
}

/// `OpSharding.Type`.
mod kind {
    /// Everything everywhere.
    pub(super) const REPLICATED: u64 = 0;
    /// One for each array.
    pub(super) const TUPLE: u64 = 2;
    /// Tiles.
    pub(super) const OTHER: u64 = 3;
}

fn op_sharding(tiles: &Tiles) -> Vec<u8> {
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

fn read_op_sharding(message: &[u8]) -> Result<Tiles> {
    let refused = |why: &str| Failure::unimplemented(format!("an OpSharding that {why}"));
    let (mut ty, mut dims, mut devices, mut last) = (kind::REPLICATED, Vec::new(), Vec::new(), false);
    let numbers = |value: Value<'_>, into: &mut Vec<u64>| -> Result<()> {
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
    };
    for (number, value) in wire::fields(message)? {
        match (number, value) {
            (field::TYPE, Value::Number(n)) => ty = n,
            (field::DIMENSIONS, value) => numbers(value, &mut dims)?,
            (field::DEVICES, value) => numbers(value, &mut devices)?,
            (field::REPLICATE_ON_LAST, Value::Number(n)) => last = n != 0,
            (number, _) => return Err(refused(&format!("has the field {number}"))),
        }
    }
    if ty == kind::REPLICATED {
        return Ok(None);
    }
    if ty != kind::OTHER {
        return Err(refused(&format!("is of type {ty}")));
    }
    let copies = if last { dims.pop().unwrap_or(0) } else { 1 };
    let count = dims.iter().try_fold(1_u64, |n, &size| n.checked_mul(size)).unwrap_or(0);
    let fits = copies > 0 && count > 0 && count.checked_mul(copies) == Some(devices.len() as u64);
    if !fits {
        return Err(refused("has not as many devices as tiles"));
    }
    let copies = copies as usize;
    let group = |copy: usize| devices.iter().skip(copy).step_by(copies).map(|&id| id.cast_signed()).collect();
    Ok(Some(Tiling {
        tiles: dims.into_iter().map(|n| n as usize).collect(),
        groups: (0..copies).map(group).collect(),
    }))
}

/// Whether what a device computes depends on which one it is: it communicates, asks for its number, or begins with its shard of an array.
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
        // A form by iota is refused, and what has too few devices.
        assert!(read_op_sharding(&[8, 3, 26, 1, 2, 74, 1, 2]).is_err());
        assert!(read_op_sharding(&[8, 3, 26, 1, 2, 34, 1, 0]).is_err());
    }
}
