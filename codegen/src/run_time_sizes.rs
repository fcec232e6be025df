//! Run-time sizes at the boundary of a program.
//!
//! After `dynamic-padder` a program reads arguments with run-time sizes only through `PadToStatic`, and
//! computes results with such sizes only by `SliceToDynamic`. [`lift`] turns that into a program of static
//! shapes: it takes padded arrays and their sizes and returns padded arrays and sizes; the adapter between
//! that and the caller is [`RunTimeSizes`]. **Invariant:** the lifted program's parameters are those of the
//! original with their bounds, then a scalar `s32` for each dynamic dimension of them, in order; its result
//! is a tuple of the leaves of the original with their bounds, of an `s32` for each dynamic dimension of
//! these, and of an `s32` for each check.

use hlo::attrs::{AttrKey, AttrValue, Attrs};
use hlo::diag::codes;
use hlo::{ArrayLiteral, ArrayShape, ElementType, InstrId, Literal, Module, NewInstruction, Opcode, Shape};
use hlo_interp::{ErrorKind, RunError};

use crate::runtime::raw::{buffer_of, bytes_of};
use hlo_opt::passes::dynamic_padder::{is_call_of, is_check};
use hlo_opt::passes::edit::{Survey, has_run_time_sizes, sweep};
use hlo_opt::passes::facts;

/// The run-time sizes of a program's arguments and results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunTimeSizes {
    parameters: Vec<ArrayShape>,
    results: Vec<ArrayShape>,
    /// Sizes that are only checked.
    checks: Vec<Check>,
}

/// A size that stops the program if it is below 0 or above a bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// The dimension that has this size.
    pub dimension: usize,
    /// The maximum.
    pub bound: i64,
    /// If it is by how many elements a dimension is smaller than its bound: what needs them, and that bound.
    pub lacking: Option<(String, i64)>,
}

/// Turns a program with run-time sizes only at its boundary into one of static shapes. `None`, and nothing
/// happens: there are others, or none.
pub fn lift(module: &mut Module) -> Option<RunTimeSizes> {
    let mut lifted = module.clone();
    let sizes = lifted_in_place(&mut lifted)?;
    if has_run_time_sizes(&lifted) {
        return None;
    }
    *module = lifted;
    Some(sizes)
}

fn scalar(module: &mut Module, before: InstrId, value: i64) -> Option<InstrId> {
    let value = i32::try_from(value).ok()?;
    let literal = Literal::scalar(value);
    let attrs = Attrs::new().with(
        AttrKey::ConstantValue,
        AttrValue::Literal(hlo::ConstantValue::Given(std::sync::Arc::new(literal))),
    );
    let name = module.unique_name("size");
    let new = NewInstruction {
        name,
        attrs,
        ..NewInstruction::new(Opcode::Constant, Shape::scalar(ElementType::S32), &[])
    };
    Some(module.insert_before(before, new))
}

fn lifted_in_place(module: &mut Module) -> Option<RunTimeSizes> {
    if !has_run_time_sizes(module) {
        return None;
    }
    let entry = module.entry();
    let none = Survey::default();
    let given: Vec<InstrId> = module.computation(entry).parameters().iter().flatten().copied().collect();
    let mut parameters = Vec::new();
    for &p in &given {
        let leaves = module.instr(p).shape.leaves();
        parameters.extend(leaves.into_iter().filter_map(Shape::as_array).map(ArrayShape::without_layout));
    }
    let mut number = given.len() as i64;
    let first = module.instructions(entry).next()?;
    for &p in &given {
        let Some(shape) = module.instr(p).shape.as_array().filter(|a| a.is_dynamic()).cloned() else {
            continue;
        };
        let mut sizes: Vec<InstrId> = Vec::new();
        for d in 0..shape.rank() {
            sizes.push(if shape.is_dynamic_dim(d) {
                let attrs = Attrs::new().with(AttrKey::ParameterNumber, AttrValue::Int(number));
                number += 1;
                let name = module.unique_name("size");
                let scalar = Shape::scalar(ElementType::S32);
                module.insert_before(
                    first,
                    NewInstruction { name, attrs, ..NewInstruction::new(Opcode::Parameter, scalar, &[]) },
                )
            } else {
                scalar(module, first, shape.dims[d])?
            });
        }
        module.instr_mut(p).shape = Shape::array(shape.element_type, &shape.dims);
        for user in module.users(p).to_vec() {
            if !is_call_of(module, user.user, "PadToStatic") {
                return None;
            }
            for element in module.users(user.user).to_vec() {
                if module.instr(element.user).opcode != Opcode::GetTupleElement {
                    return None;
                }
                let index = usize::try_from(module.instr(element.user).attrs.int(AttrKey::Index)?).ok()?;
                let part = if index == 0 { p } else { *sizes.get(index - 1)? };
                module.replace_all_uses(element.user, part);
            }
            let elements: Vec<InstrId> = module.users(user.user).iter().map(|u| u.user).collect();
            for id in elements {
                sweep(module, id, &none);
            }
            sweep(module, user.user, &none);
        }
    }
    let root = module.root(entry);
    let mut arrays = Vec::new();
    leaves(module, root, &mut arrays)?;
    let (mut results, mut elements, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for &leaf in &arrays {
        let shape = module.instr(leaf).shape.as_array()?.without_layout();
        if shape.is_dynamic() {
            let operands =
                is_call_of(module, leaf, "SliceToDynamic").then(|| module.instr(leaf).operands().to_vec())?;
            elements.push(*operands.first()?);
            for (d, &size) in operands.iter().skip(1).enumerate() {
                let known = facts::integer(module, size) == Some(i128::from(*shape.dims.get(d)?));
                let scalar = module.instr(size).shape.as_array()?;
                if !(known || shape.is_dynamic_dim(d) && scalar.element_type == ElementType::S32) {
                    return None;
                }
            }
            sizes.extend((0..shape.rank()).filter(|&d| shape.is_dynamic_dim(d)).map(|d| operands[d + 1]));
        } else {
            elements.push(leaf);
        }
        results.push(shape);
    }
    let mut checks = Vec::new();
    let checked: Vec<InstrId> = module.instructions(entry).filter(|&id| is_check(module, id)).collect();
    for &check in &checked {
        let size = *module.instr(check).operands().last()?;
        sizes.push(size);
        let lacking = match module.instr(check).attrs.get(AttrKey::BackendConfig) {
            Some(AttrValue::BackendConfig(config)) => {
                let bound = facts::integer(module, *module.instr(size).operands().first()?)?;
                Some((config.text().to_owned(), i64::try_from(bound).ok()?))
            }
            _ => None,
        };
        let (&bound, before) = module.instr(check).shape.as_array()?.dims.split_last()?;
        checks.push(Check { dimension: before.len(), bound, lacking });
    }
    elements.extend(sizes);
    let shape = Shape::tuple(elements.iter().map(|&e| module.instr(e).shape.clone()).collect::<Vec<_>>());
    let name = module.unique_name("padded");
    let tuple =
        module.append(entry, NewInstruction { name, ..NewInstruction::new(Opcode::Tuple, shape, &elements) });
    module.set_root(entry, tuple);
    // The result leaf of an alias has changed unless the result was a tuple of arrays.
    if module.instr(root).opcode != Opcode::Tuple && !module.header.input_output_alias.is_empty() {
        return None;
    }
    sweep(module, root, &none);
    for check in checked {
        module.remove(check);
    }
    Some(RunTimeSizes { parameters, results, checks })
}

/// The array leaves of nested tuples that are built in the entry.
fn leaves(module: &Module, id: InstrId, out: &mut Vec<InstrId>) -> Option<()> {
    let instr = module.instr(id);
    match &instr.shape {
        Shape::Array(_) => out.push(id),
        Shape::Tuple(_) if instr.opcode == Opcode::Tuple => {
            for &element in instr.operands() {
                // Aliases and readers of the result count elements of one flat tuple.
                module.instr(element).shape.as_array()?;
                out.push(element);
            }
        }
        Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => return None,
    }
    Some(())
}

/// The stored form of [`RunTimeSizes`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunTimeSizesParts {
    /// Array leaves of the parameters, with bounds.
    pub parameters: Vec<ArrayShape>,
    /// Array leaves of the result, with bounds.
    pub results: Vec<ArrayShape>,
    /// Sizes that are only checked.
    pub checks: Vec<Check>,
}

impl From<RunTimeSizesParts> for RunTimeSizes {
    fn from(RunTimeSizesParts { parameters, results, checks }: RunTimeSizesParts) -> Self {
        Self { parameters, results, checks }
    }
}

impl RunTimeSizes {
    /// The stored form.
    pub fn parts(&self) -> RunTimeSizesParts {
        RunTimeSizesParts {
            parameters: self.parameters.clone(),
            results: self.results.clone(),
            checks: self.checks.clone(),
        }
    }

    /// The arguments of the lifted program: arrays padded with zeros to their bounds, then sizes. Errors:
    /// arrays that are not of these bounds.
    pub fn pad<'a>(
        &self,
        arrays: impl Iterator<Item = &'a ArrayLiteral>,
    ) -> Result<Vec<ArrayLiteral>, String> {
        let (mut padded, mut sizes) = (Vec::new(), Vec::new());
        let arrays: Vec<&ArrayLiteral> = arrays.collect();
        if arrays.len() != self.parameters.len() {
            return Err(format!("the program takes {} arrays, not {}", self.parameters.len(), arrays.len()));
        }
        for (i, (&array, shape)) in arrays.iter().zip(&self.parameters).enumerate() {
            let fits = array.dims.len() == shape.rank()
                && (0..shape.rank()).all(|d| match shape.is_dynamic_dim(d) {
                    true => array.dims[d] <= shape.dims[d],
                    false => array.dims[d] == shape.dims[d],
                });
            if !fits {
                return Err(format!("array {i} has dimensions {:?}, not {shape}", array.dims));
            }
            for d in (0..shape.rank()).filter(|&d| shape.is_dynamic_dim(d)) {
                let size = i32::try_from(array.dims[d]).unwrap_or(i32::MAX);
                sizes.push(ArrayLiteral {
                    dims: hlo::Dims::new(),
                    buffer: hlo::Buffer::S32(vec![size]).into(),
                });
            }
            padded.push(if shape.is_dynamic() { resized(array, &shape.dims) } else { array.clone() });
        }
        padded.extend(sizes);
        Ok(padded)
    }

    /// The results of the program from those of the lifted one. Errors: a size that is not within its bound.
    pub fn cut(&self, mut results: Vec<ArrayLiteral>) -> Result<Vec<ArrayLiteral>, RunError> {
        let sizes = results.split_off(self.results.len().min(results.len()));
        let mut sizes = sizes.iter().map(|s| match &*s.buffer {
            hlo::Buffer::S32(v) => v.first().map_or(-1, |&n| i64::from(n)),
            _ => -1,
        });
        let mut checked = |d: usize, bound: i64, lacking: Option<&(String, i64)>| {
            let size = sizes.next().unwrap_or(-1);
            if (0..=bound).contains(&size) {
                return Ok(size);
            }
            let message = match lacking {
                Some((what, bound)) => format!("{what}, whose run-time size is {}", bound - size),
                None => format!("size {size} of dimension {d}, whose bound is {bound}"),
            };
            Err(RunError::outside(ErrorKind::Trap, codes::BAD_DYNAMIC_SIZE, message))
        };
        let mut cut = Vec::new();
        for (array, shape) in results.into_iter().zip(&self.results) {
            let mut dims = shape.dims.clone();
            for d in (0..shape.rank()).filter(|&d| shape.is_dynamic_dim(d)) {
                dims[d] = checked(d, shape.dims[d], None)?;
            }
            cut.push(if shape.is_dynamic() { resized(&array, &dims) } else { array });
        }
        for check in &self.checks {
            checked(check.dimension, check.bound, check.lacking.as_ref())?;
        }
        Ok(cut)
    }
}

/// The array cropped, or padded with zeros, to other dimensions.
fn resized(array: &ArrayLiteral, dims: &[i64]) -> ArrayLiteral {
    let ty = array.buffer.element_type();
    let size = ty.storage_bytes();
    let n: i64 = dims.iter().product();
    let mut bytes = vec![0u8; n as usize * size];
    let from = bytes_of(&array.buffer);
    let rows: Vec<i64> = array.dims.iter().zip(dims).map(|(&a, &b)| a.min(b)).collect();
    if rows.iter().all(|&n| n > 0) {
        let Some((&row, outer)) = rows.split_last() else { return array.clone() };
        let row = row as usize * size;
        let mut index = vec![0i64; outer.len()];
        loop {
            let at = |dims: &[i64]| {
                index.iter().zip(dims).fold(0, |at, (&i, &d)| at * d + i) * dims.last().copied().unwrap_or(1)
            };
            let (to, source) = (at(dims) as usize * size, at(&array.dims) as usize * size);
            bytes[to..to + row].copy_from_slice(&from[source..source + row]);
            let mut d = outer.len();
            loop {
                if d == 0 {
                    return ArrayLiteral { dims: dims.into(), buffer: buffer_of(ty, &bytes).into() };
                }
                d -= 1;
                index[d] += 1;
                if index[d] < outer[d] {
                    break;
                }
                index[d] = 0;
            }
        }
    }
    ArrayLiteral { dims: dims.into(), buffer: buffer_of(ty, &bytes).into() }
}
