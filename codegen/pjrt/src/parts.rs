//! Unreduced results: arrays of which each device along some mesh axes has a term of a sum, or of a maximum
//! or minimum.
//!
//! A program computes whole arrays. Where an unreduced result is made by a sum over dimensions that are
//! partitioned along its unreduced axes (a product, a reduction, a scatter that adds, an all-reduce at the
//! end of a manual computation), or is itself partitioned along them, a device's term is the same computation
//! on its own block: it is added to the program, with the rest masked, and the program is run on each device.
//! Where no such sum is found, the array is the first device's, and the others have zeros
//! ([`crate::placement`]).
//!
//! An unreduced argument that is taken apart along the same axes again, by manual computations alone, stays
//! what each device has of it.
//!
//! **Invariant:** the terms of a set of devices add up to the array, whatever is known of how it is
//! partitioned.

use hlo::attrs::{AttrKey, AttrValue, Attrs, AxisRef, Direction, Ints, Mesh};
use hlo::{
    ArrayShape, Buffer, ComputationId, ElementType, InstrId, Instruction, Module, NewInstruction, Opcode,
    Shape, shardy,
};
use rustc_hash::FxHashMap;

use crate::emit;
use crate::propagate::{self, Known};
use crate::sharding::{SHARDY, Terms, UNREDUCED_RESULT, Unreduced, terms_of_text};

/// Values that a value is made of are followed so far.
const DEPTH_LIMIT: usize = 64;

/// Changes a program so that of unreduced results each device has its own term. Of which it does.
pub(crate) fn own(module: &mut Module, terms: &[Terms]) -> Vec<bool> {
    let mut has_own = vec![false; terms.len()];
    let (known, meshes) = propagate::values(module);
    let entry = module.entry();
    for n in (0..terms.len()).filter(|&n| terms[n].is_some()) {
        let kept = module.header.frontend_attributes.as_ref();
        let text = kept.and_then(|all| all.get(&format!("{UNREDUCED_RESULT}{n}")));
        let Some(sharding) = text.and_then(|text| shardy::sharding(module, text)) else { continue };
        let root = module.root(entry);
        let slot = match &module.instr(root).shape {
            Shape::Array(_) => None,
            Shape::Tuple(parts) if module.instr(root).opcode == Opcode::Tuple => {
                let is_array = |at: &usize| parts[*at].as_array().is_some();
                // Tuples of tuples are refused where shardings are read.
                let Some(at) = (0..parts.len()).filter(is_array).nth(n) else { continue };
                Some(at)
            }
            Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => continue,
        };
        let id = slot.map_or(root, |at| module.instr(root).operands()[at]);
        let of_mesh = meshes.iter().position(|mesh| *mesh == sharding.mesh);
        let mut build = Build {
            module,
            computation: entry,
            known: known.clone(),
            mesh: &sharding.mesh,
            of_mesh,
            axes: &sharding.unreduced,
            by: terms[n].as_ref().map_or(Opcode::Add, |terms| terms.by),
        };
        let Some(term) = build.term(id, 0) else { continue };
        match slot {
            None => module.set_root(entry, term),
            Some(at) => {
                module.set_operand(root, at, term);
                module.move_after(root, Some(term));
            }
        }
        has_own[n] = true;
    }
    has_own
}

/// Changes a program so that of unreduced arguments that manual computations alone take, as unreduced ones,
/// each device's own term is what it takes. Of which arguments it is.
pub(crate) fn own_arguments(module: &mut Module, terms: &[Terms]) -> Vec<bool> {
    let mut is_own = vec![false; terms.len()];
    let parameters: Vec<InstrId> =
        module.computation(module.entry()).parameters().iter().flatten().copied().collect();
    let mut n = 0;
    for parameter in parameters {
        let shape = &module.instr(parameter).shape;
        let arrays = shape.leaves().into_iter().filter(|leaf| leaf.as_array().is_some()).count();
        if shape.as_array().is_some()
            && let Some(Some(terms)) = terms.get(n)
            && let Some(made) = parts_of_argument(module, parameter, terms)
            && !made.is_empty()
        {
            for (instr, part) in made {
                module.replace_all_uses(instr, part);
            }
            is_own[n] = true;
        }
        n += arrays;
    }
    is_own
}

/// What makes parts of an unreduced argument for manual computations, along its own axes, each with what it
/// makes them of: this device's term, if the argument is that. `None`: somebody else takes it, too.
fn parts_of_argument(
    module: &Module,
    argument: InstrId,
    terms: &Unreduced,
) -> Option<Vec<(InstrId, InstrId)>> {
    let mut parts = Vec::new();
    // The argument, and constraints that leave it unreduced as it is.
    let mut values = vec![argument];
    while let Some(value) = values.pop() {
        if value == module.root(module.entry()) {
            return None;
        }
        for user in module.users(value) {
            let cut = module.instr(user.user);
            let target =
                cut.attrs.str(AttrKey::CustomCallTarget).filter(|_| cut.opcode == Opcode::CustomCall)?;
            if target == "Sharding" {
                let text = cut.attrs.frontend_attributes().and_then(|all| all.get(SHARDY))?;
                let constraint = terms_of_text(module, text, "a constraint").ok().flatten()?;
                if constraint != *terms {
                    return None;
                }
                values.push(user.user);
                continue;
            }
            if !target.ends_with("GlobalToLocalShape") {
                return None;
            }
            let own: Vec<InstrId> = match &cut.shape {
                Shape::Tuple(_) => {
                    let at = |id: &InstrId| module.instr(*id).attrs.int(AttrKey::Index);
                    let all = module.users(user.user).iter().map(|of| of.user);
                    all.filter(|id| at(id) == Some(i64::from(user.operand))).collect()
                }
                Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => vec![user.user],
            };
            let sets = format!("{:?}", terms.sets);
            for (part, of) in own.iter().flat_map(|&part| module.users(part).iter().map(move |of| (part, of)))
            {
                let instr = module.instr(of.user);
                let made = instr.attrs.frontend_attributes().and_then(|all| all.get(shardy::UNREDUCED_PART));
                // Of a sum it is selected on one device, of a maximum or minimum it is copied.
                let is_whole = if terms.by == Opcode::Add {
                    instr.opcode == Opcode::Select && of.operand == 1
                } else {
                    instr.opcode == Opcode::Copy
                };
                if !is_whole || made != Some(&sets) {
                    return None;
                }
                parts.push((of.user, part));
            }
        }
    }
    Some(parts)
}

/// Adds a device's terms of one result to a program.
struct Build<'a> {
    module: &'a mut Module,
    /// The insertion point of instructions, at the end.
    computation: ComputationId,
    known: FxHashMap<InstrId, Known>,
    mesh: &'a Mesh,
    /// Its number among those of what is known.
    of_mesh: Option<usize>,
    /// The unreduced axes.
    axes: &'a [AxisRef],
    /// The reduction of the terms: `Add`, `Maximum` or `Minimum`.
    by: Opcode,
}

/// Dimensions of an array with the axes that partition them.
type Cuts<'c> = [(usize, &'c [AxisRef])];

impl Build<'_> {
    fn emit(&mut self, opcode: Opcode, shape: Shape, operands: &[InstrId], attrs: Attrs) -> InstrId {
        emit::instruction(self.module, self.computation, opcode, shape, operands, attrs)
    }

    /// The same operation on other operands.
    fn again(&mut self, instr: &Instruction, operands: &[InstrId]) -> InstrId {
        self.emit(instr.opcode, instr.shape.clone(), operands, instr.attrs.clone())
    }

    fn literal(&mut self, dims: &[i64], buffer: Buffer) -> InstrId {
        emit::literal(self.module, self.computation, dims, buffer)
    }

    fn scalar_everywhere(&mut self, scalar: InstrId, dims: &[i64]) -> InstrId {
        let ty = self.module.instr(scalar).shape.element_type().unwrap_or(ElementType::Pred);
        let attrs = Attrs::new().with(AttrKey::Dimensions, AttrValue::Ints(Ints::new()));
        self.emit(Opcode::Broadcast, Shape::array(ty, dims), &[scalar], attrs)
    }

    /// The entry of a table for this partition.
    fn looked_up(&mut self, table: Buffer) -> InstrId {
        let partition = emit::partition_id(self.module, self.computation);
        emit::looked_up(self.module, self.computation, table, partition)
    }

    fn array(&self, id: InstrId) -> Option<ArrayShape> {
        self.module.instr(id).shape.as_array().map(ArrayShape::without_layout)
    }

    fn selected(&mut self, mask: InstrId, x: InstrId, filling: InstrId) -> Option<InstrId> {
        let array = self.array(x)?;
        let filling = self.scalar_everywhere(filling, &array.dims);
        Some(self.emit(Opcode::Select, Shape::Array(array), &[mask, x, filling], Attrs::new()))
    }

    fn zero(&mut self, x: InstrId) -> Option<InstrId> {
        let array = self.array(x)?;
        Some(self.literal(&[], Buffer::zeros(array.element_type, 1)))
    }

    /// The array as the first partition's term along these axes, zeros on the others. The maximum and minimum
    /// of equal terms are the term.
    fn first_of(&mut self, x: InstrId, axes: &[AxisRef]) -> Option<InstrId> {
        if axes.is_empty() || self.by != Opcode::Add {
            return Some(x);
        }
        let sets = self.mesh.groups_along(axes)?;
        let count = sets.iter().flatten().max()? + 1;
        let is_first = (0..count).map(|p| sets.iter().any(|set| set.first() == Some(&p)));
        let dims = self.array(x)?.dims;
        let first = self.looked_up(Buffer::Pred(is_first.collect()));
        let mask = self.scalar_everywhere(first, &dims);
        let zero = self.zero(x)?;
        self.selected(mask, x, zero)
    }

    /// The position of a dimension's index in this partition's block along axes.
    fn is_in_block(&mut self, dims: &[i64], d: usize, axes: &[AxisRef]) -> Option<InstrId> {
        let sets = self.mesh.groups_along(axes)?;
        let parts = sets.first()?.len() as i64;
        let size = u32::try_from(dims[d]).ok()?;
        let block = (parts > 0 && i64::from(size) % parts == 0).then(|| size / parts as u32)?;
        let starts = emit::block_starts(&sets, block.into())?;
        let starts = starts.into_iter().map(|start| u32::try_from(start).ok()).collect::<Option<_>>()?;
        let shape = |ty| Shape::array(ty, dims);
        let attrs = Attrs::new().with(AttrKey::IotaDimension, AttrValue::Int(d as i64));
        let index = self.emit(Opcode::Iota, shape(ElementType::U32), &[], attrs);
        let start = self.looked_up(Buffer::U32(starts));
        let start = self.scalar_everywhere(start, dims);
        // What is before the block wraps around to numbers beyond it.
        let after = self.emit(Opcode::Subtract, shape(ElementType::U32), &[index, start], Attrs::new());
        let block = self.literal(&[], Buffer::U32(vec![block]));
        let block = self.scalar_everywhere(block, dims);
        let attrs = Attrs::new().with(AttrKey::Direction, AttrValue::Direction(Direction::Lt));
        Some(self.emit(Opcode::Compare, shape(ElementType::Pred), &[after, block], attrs))
    }

    /// The array in this partition's block, zeros elsewhere.
    fn masked(&mut self, x: InstrId, cuts: &Cuts<'_>) -> Option<InstrId> {
        let zero = self.zero(x)?;
        self.filled(x, cuts, zero)
    }

    /// The array in this partition's block, a scalar elsewhere.
    fn filled(&mut self, x: InstrId, cuts: &Cuts<'_>, filling: InstrId) -> Option<InstrId> {
        let dims = self.array(x)?.dims;
        let mut mask: Option<InstrId> = None;
        for &(d, axes) in cuts {
            let one = self.is_in_block(&dims, d, axes)?;
            let both = |build: &mut Self, all| {
                build.emit(Opcode::And, Shape::array(ElementType::Pred, &dims), &[all, one], Attrs::new())
            };
            mask = Some(mask.map_or(one, |all| both(self, all)));
        }
        self.selected(mask?, x, filling)
    }

    /// The axes that are known to partition a dimension of a value, if all of them are unreduced ones.
    fn cut(&self, id: InstrId, d: usize) -> Option<Vec<AxisRef>> {
        let Some(Known::Array(cut)) = self.known.get(&id) else { return None };
        let axes = cut.axes.get(d).filter(|axes| Some(cut.mesh) == self.of_mesh && !axes.is_empty())?;
        axes.iter().all(|axis| self.axes.contains(axis)).then(|| axes.clone())
    }

    /// The unreduced axes without those.
    fn rest(&self, cuts: &[(usize, Vec<AxisRef>)]) -> Vec<AxisRef> {
        let is_covered = |axis: &&AxisRef| cuts.iter().any(|(_, axes)| axes.contains(axis));
        self.axes.iter().filter(|axis| !is_covered(axis)).cloned().collect()
    }

    /// This device's term of a value; `None`: there is no sum that it is a term of.
    fn term(&mut self, id: InstrId, depth: usize) -> Option<InstrId> {
        let array = self.array(id)?;
        if depth > DEPTH_LIMIT {
            return None;
        }
        let own: Vec<(usize, Vec<AxisRef>)> =
            (0..array.rank()).filter_map(|d| Some((d, self.cut(id, d)?))).collect();
        let is_sum = self.by == Opcode::Add;
        if is_sum && !own.is_empty() {
            let masked = self.masked(id, &borrowed(&own))?;
            return self.first_of(masked, &self.rest(&own));
        }
        let instr = self.module.instr(id).clone();
        let operand = |n: usize| instr.operands().get(n).copied();
        match instr.opcode {
            // Elements that are moved, once each or more often, or negated.
            Opcode::Negate if !is_sum => None,
            Opcode::Broadcast
            | Opcode::Copy
            | Opcode::Negate
            | Opcode::OptBarrier
            | Opcode::Reshape
            | Opcode::Reverse
            | Opcode::Transpose => {
                let x = self.term(operand(0)?, depth + 1)?;
                Some(self.again(&instr, &[x]))
            }
            Opcode::Add | Opcode::Subtract if is_sum => {
                let (a, b) = (operand(0)?, operand(1)?);
                let terms = [self.term(a, depth + 1), self.term(b, depth + 1)];
                if terms == [None, None] {
                    return None;
                }
                let mut both = [a, b];
                for (x, term) in both.iter_mut().zip(terms) {
                    *x = match term {
                        Some(term) => term,
                        None => self.first_of(*x, self.axes)?,
                    };
                }
                Some(self.again(&instr, &both))
            }
            Opcode::Multiply if is_sum => {
                let (a, b) = (operand(0)?, operand(1)?);
                if let Some(term) = self.term(a, depth + 1) {
                    return Some(self.again(&instr, &[term, b]));
                }
                let term = self.term(b, depth + 1)?;
                Some(self.again(&instr, &[a, term]))
            }
            Opcode::Dot if is_sum => self.dot(&instr),
            Opcode::Reduce => self.reduce(&instr),
            Opcode::Scatter if is_sum => self.scatter(&instr),
            Opcode::Call => self.call(&instr, None, depth),
            Opcode::CustomCall => match instr.attrs.str(AttrKey::CustomCallTarget)? {
                "Sharding" | "LayoutConstraint" | "annotate_device_placement" => {
                    self.term(operand(0)?, depth + 1)
                }
                target if target.ends_with("LocalToGlobalShape") => self.end_of_manual(&instr, 0),
                _ => None,
            },
            Opcode::GetTupleElement => {
                let (index, tuple) =
                    (instr.attrs.int(AttrKey::Index)?, self.module.instr(operand(0)?).clone());
                match (tuple.opcode, tuple.attrs.str(AttrKey::CustomCallTarget)) {
                    (Opcode::Call, _) => self.call(&tuple, Some(index), depth),
                    (Opcode::CustomCall, Some(target)) if target.ends_with("LocalToGlobalShape") => {
                        self.end_of_manual(&tuple, usize::try_from(index).ok()?)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// A product: of the blocks of the contracting dimensions.
    fn dot(&mut self, instr: &Instruction) -> Option<InstrId> {
        let &[lhs, rhs] = instr.operands() else { return None };
        let dims = |key| instr.attrs.ints_or_empty(key).iter().map(|&d| d as usize);
        let (mut of_lhs, mut of_rhs) = (Vec::new(), Vec::new());
        for (l, r) in dims(AttrKey::LhsContractingDims).zip(dims(AttrKey::RhsContractingDims)) {
            if let Some(axes) = self.cut(lhs, l).or_else(|| self.cut(rhs, r)) {
                of_lhs.push((l, axes.clone()));
                of_rhs.push((r, axes));
            }
        }
        let lhs = self.masked(lhs, &borrowed(&of_lhs))?;
        // The other one as well: zero times infinity is not zero.
        let rhs = self.masked(rhs, &borrowed(&of_rhs))?;
        let term = self.again(instr, &[lhs, rhs]);
        self.first_of(term, &self.rest(&of_lhs))
    }

    /// Whether a computation makes of two terms what the array is made by.
    fn adds(&self, computation: Option<ComputationId>) -> bool {
        let Some(computation) = computation else { return false };
        let root = self.module.instr(self.module.root(computation));
        let is_parameter = |id: &InstrId| self.module.instr(*id).opcode == Opcode::Parameter;
        let &[a, b] = root.operands() else { return false };
        root.opcode == self.by && a != b && [a, b].iter().all(is_parameter)
    }

    /// A sum over dimensions: over their blocks. A maximum or minimum begins with the same value on
    /// all.
    fn reduce(&mut self, instr: &Instruction) -> Option<InstrId> {
        let &[x, init] = instr.operands() else { return None };
        if !self.adds(instr.attrs.computation(AttrKey::ToApply)) {
            return None;
        }
        let dims = instr.attrs.ints_or_empty(AttrKey::Dimensions).iter().map(|&d| d as usize);
        let cuts: Vec<_> = dims.filter_map(|d| Some((d, self.cut(x, d)?))).collect();
        let x = if self.by == Opcode::Add {
            self.masked(x, &borrowed(&cuts))?
        } else {
            self.filled(x, &borrowed(&cuts), init)?
        };
        let init = self.first_of(init, self.axes)?;
        let x = self.first_of(x, &self.rest(&cuts))?;
        Some(self.again(instr, &[x, init]))
    }

    /// Updates that are added: the block of them, to what the first device has.
    fn scatter(&mut self, instr: &Instruction) -> Option<InstrId> {
        let &[x, indices, updates] = instr.operands() else { return None };
        if !self.adds(instr.attrs.computation(AttrKey::ToApply)) {
            return None;
        }
        let windows = instr.attrs.ints_or_empty(AttrKey::UpdateWindowDims);
        let of_vector = instr.attrs.int(AttrKey::IndexVectorDim)?;
        let of_updates = (0..self.array(updates)?.rank()).filter(|&d| !windows.contains(&(d as i64)));
        let of_indices = (0..self.array(indices)?.rank()).filter(|&d| d as i64 != of_vector);
        let cut = |(u, i): (usize, usize)| Some((u, self.cut(updates, u).or_else(|| self.cut(indices, i))?));
        let cuts: Vec<_> = of_updates.zip(of_indices).filter_map(cut).collect();
        let updates = self.masked(updates, &borrowed(&cuts))?;
        let updates = self.first_of(updates, &self.rest(&cuts))?;
        let x = self.first_of(x, self.axes)?;
        Some(self.again(instr, &[x, indices, updates]))
    }

    /// The term of a call's result: a call of a copy of the computation that ends with it.
    fn call(&mut self, instr: &Instruction, index: Option<i64>, depth: usize) -> Option<InstrId> {
        let copy = self.copied(instr.attrs.computation(AttrKey::ToApply)?);
        let root = self.module.root(copy);
        let id = match (index, self.module.instr(root).opcode) {
            (None, _) => Some(root),
            (Some(n), Opcode::Tuple) => {
                usize::try_from(n).ok().and_then(|n| self.module.instr(root).operands().get(n).copied())
            }
            (Some(_), _) => None,
        };
        let outside = std::mem::replace(&mut self.computation, copy);
        let term = id.and_then(|id| self.term(id, depth + 1));
        self.computation = outside;
        let Some(term) = term else {
            self.module.remove_computation(copy);
            return None;
        };
        self.module.set_root(copy, term);
        let shape = self.module.instr(term).shape.clone();
        let mut attrs = instr.attrs.clone();
        attrs.set(AttrKey::ToApply, AttrValue::Computation(copy));
        Some(self.emit(Opcode::Call, shape, instr.operands(), attrs))
    }

    fn copied(&mut self, computation: ComputationId) -> ComputationId {
        let name = self.module.unique_computation_name(&self.module.computation(computation).name.clone());
        let span = self.module.computation(computation).span;
        let copy = self.module.add_computation(name, span);
        let mut copies: FxHashMap<InstrId, InstrId> = FxHashMap::default();
        for id in self.module.instructions(computation).collect::<Vec<_>>() {
            let instr = self.module.instr(id).clone();
            let operands: Vec<InstrId> = instr.operands().iter().map(|id| copies[id]).collect();
            let name = self.module.unique_name(&instr.name);
            let new = NewInstruction {
                attrs: instr.attrs.clone(),
                span: instr.span,
                ..NewInstruction::new(instr.opcode, instr.shape.clone(), &operands)
            };
            let new = self.module.append(copy, new.named(name));
            copies.insert(id, new);
            if let Some(known) = self.known.get(&id).cloned() {
                self.known.insert(new, known);
            }
        }
        let root = copies[&self.module.root(computation)];
        self.module.set_root(copy, root);
        copy
    }

    /// A result of a manual computation that ends with the sum along the unreduced axes: what is summed.
    fn end_of_manual(&mut self, instr: &Instruction, n: usize) -> Option<InstrId> {
        let sum = self.module.instr(*instr.operands().get(n)?).clone();
        let &[x] = sum.operands() else { return None };
        if sum.opcode != Opcode::AllReduce || !self.adds(sum.attrs.computation(AttrKey::ToApply)) {
            return None;
        }
        let Some(AttrValue::ReplicaGroups(groups)) = sum.attrs.get(AttrKey::ReplicaGroups) else {
            return None;
        };
        let sorted = |mut sets: Vec<Vec<i64>>| {
            sets.iter_mut().for_each(|set| set.sort_unstable());
            sets.sort_unstable();
            sets
        };
        if sorted(groups.expand()?) != sorted(self.mesh.groups_along(self.axes)?) {
            return None;
        }
        let mut operands = instr.operands().to_vec();
        operands[n] = x;
        let whole = self.again(instr, &operands);
        match &instr.shape {
            Shape::Tuple(parts) => {
                let shape = parts.get(n)?.clone();
                let attrs = Attrs::new().with(AttrKey::Index, AttrValue::Int(n as i64));
                Some(self.emit(Opcode::GetTupleElement, shape, &[whole], attrs))
            }
            Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => Some(whole),
        }
    }
}

fn borrowed(cuts: &[(usize, Vec<AxisRef>)]) -> Vec<(usize, &[AxisRef])> {
    cuts.iter().map(|(d, axes)| (*d, axes.as_slice())).collect()
}

#[cfg(test)]
mod tests {
    use hlo_interp::Devices;

    use super::*;
    use crate::sharding::Shardings;

    /// What each of four devices has of an unreduced result, on a mesh of 2 times 2; x is 0, 1, ... and
    /// partitioned along its last dimension, unless it is said otherwise, along the unreduced axis.
    fn terms(ty: &str, sharding: &str, body: &str) -> Vec<Vec<f32>> {
        terms_by(Opcode::Add, ty, sharding, body)
    }

    fn terms_by(by: Opcode, ty: &str, sharding: &str, body: &str) -> Vec<Vec<f32>> {
        let kind = if by == Opcode::Maximum { "max" } else { "" };
        let text = format!(
            "HloModule m, num_partitions=4, frontend_attributes={{xla.sdy.meshes={{mesh = #sdy.mesh<[\"a\"=2, \"b\"=2]>}}, {UNREDUCED_RESULT}0=\"#sdy.sharding<@mesh, [], unreduced={kind}{{\\\"b\\\"}}>\"}}
             largest {{ p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] maximum(p, q) }}
             add {{ p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }}
             twice {{ p = f32[4] parameter(0) zero = f32[] constant(0) s = f32[] reduce(p, zero), dimensions={{0}}, to_apply=add ROOT t = f32[] add(s, s) }}
             ENTRY e {{
               x = {ty} parameter(0), frontend_attributes={{xla.sdy.sharding=\"#sdy.sharding<@mesh, [{sharding}]>\"}}
               zero = f32[] constant(0)
               one = f32[] constant(1)
               {body}
             }}"
        );
        let parsed = hlo_parser::parse_module(&text, &hlo_parser::ParseOptions::default());
        let mut module = parsed.module.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics));
        let sets = vec![vec![0, 1], vec![2, 3]];
        assert_eq!(own(&mut module, &[Some(Unreduced { sets, by })]), [true], "{body}");
        let program = hlo_client::VerifiedModule::new(module).unwrap();
        let client = hlo_client::Client::interpreter(hlo_client::ClientOptions::default()).unwrap();
        let executable = client.compile(&program, &hlo_client::CompileOptions::default()).unwrap();
        let shape = executable.argument_shapes().next().unwrap().clone();
        let count = shape.checked_elements().unwrap();
        let bytes: Vec<u8> = (0..count).flat_map(|n| (n as f32).to_le_bytes()).collect();
        let x = client.buffer_from_bytes(shape, &bytes).unwrap();
        let devices = Devices::new(1, 4).unwrap();
        let made = executable.execute_on_devices(&vec![vec![&x]; 4], devices, &Default::default()).unwrap();
        let values = |buffer: &hlo_client::Buffer| match buffer.to_literal().unwrap().into_buffer() {
            Buffer::F32(values) => values,
            other => panic!("{other:?}"),
        };
        made.iter().map(|results| values(&results[0])).collect()
    }

    #[test]
    fn each_device_has_its_term() {
        let (ty, sharding) = ("f32[4]", r#"{\"b\"}"#);
        let sum = "s = f32[] reduce(x, zero), dimensions={0}, to_apply=add";
        let of = |body: &str| terms(ty, sharding, body).concat();
        assert_eq!(of(&format!("ROOT {sum}")), [1.0, 5.0, 1.0, 5.0]);
        // What the sum begins with counts once.
        let begun = "ROOT s = f32[] reduce(x, one), dimensions={0}, to_apply=add";
        assert_eq!(of(begun), [2.0, 5.0, 2.0, 5.0]);
        assert_eq!(of(&format!("{sum}\n ROOT n = f32[] negate(s)")), [-1.0, -5.0, -1.0, -5.0]);
        assert_eq!(of(&format!("{sum}\n ROOT n = f32[] add(s, one)")), [2.0, 5.0, 2.0, 5.0]);
        assert_eq!(
            of("ROOT d = f32[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
            [1.0, 13.0, 1.0, 13.0]
        );
        assert_eq!(of("ROOT c = f32[] call(x), to_apply=twice"), [2.0, 10.0, 2.0, 10.0]);
        assert_eq!(of(&format!("{sum}\n ROOT t = (f32[], f32[4]) tuple(s, x)")), [1.0, 5.0, 1.0, 5.0]);
        // Its own block of an array that is partitioned itself.
        let own = "ROOT n = f32[4] negate(x)";
        assert_eq!(terms(ty, sharding, own)[1], [0.0, 0.0, -2.0, -3.0]);
        let scattered = "i = s32[4,1] constant({{0},{1},{1},{0}})
            z = f32[2] broadcast(one), dimensions={}
            ROOT s = f32[2] scatter(z, i, x), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add";
        assert_eq!(of(scattered), [1.0, 2.0, 3.0, 2.0, 1.0, 2.0, 3.0, 2.0]);
        // Also partitioned along the other axis, which is summed for all.
        let two = terms(
            "f32[2,2]",
            r#"{\"a\"}, {\"b\"}"#,
            "ROOT s = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add",
        );
        assert_eq!(two.concat(), [2.0, 4.0, 2.0, 4.0]);
        let largest = |start: &str, more: &str| {
            let body =
                format!("{start}\n m = f32[] reduce(x, start), dimensions={{0}}, to_apply=largest\n {more}");
            terms_by(Opcode::Maximum, ty, sharding, &body).concat()
        };
        let least = "start = f32[] constant(-inf)";
        assert_eq!(largest(least, "ROOT c = f32[] copy(m)"), [1.0, 3.0, 1.0, 3.0]);
        assert_eq!(largest("start = f32[] constant(2)", "ROOT c = f32[] copy(m)"), [2.0, 3.0, 2.0, 3.0]);
    }

    /// Whether manual computations take each device's own term of the argument x.
    fn takes_own_term(body: &str, by: &str) -> bool {
        let text = format!(
            "HloModule m, num_partitions=2, frontend_attributes={{xla.sdy.meshes={{mesh = #sdy.mesh<[\"a\"=2]>}}}}
             ENTRY e {{
               x = f32[4] parameter(0), frontend_attributes={{xla.sdy.sharding=\"#sdy.sharding<@mesh, [{{}}], unreduced={by}{{\\\"a\\\"}}>\"}}
               first = pred[4] constant({{1, 1, 0, 0}})
               zeros = f32[4] constant({{0, 0, 0, 0}})
               {body}
             }}"
        );
        let parsed = hlo_parser::parse_module(&text, &hlo_parser::ParseOptions::default());
        let mut module = parsed.module.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics));
        let shardings = Shardings::of(&mut module, &[], &[]).unwrap();
        let is_own = own_arguments(&mut module, &shardings.argument_terms);
        let root = module.instr(module.root(module.entry()));
        let part = module.instr(root.operands()[0]).opcode;
        assert_eq!(is_own, [part == Opcode::CustomCall], "{body}");
        is_own[0]
    }

    #[test]
    fn terms_are_taken_as_they_are() {
        let constraint = |axes: &str| {
            format!(
                "c = f32[4] custom-call(x), custom_call_target=\"Sharding\", frontend_attributes={{xla.sdy.sharding=\"#sdy.sharding_per_value<[<@mesh, [{{}}]{axes}>]>\"}}"
            )
        };
        let cut = |of: &str| {
            format!("p = f32[4] custom-call({of}), custom_call_target=\"xla.sdy.GlobalToLocalShape\"")
        };
        let marked = "frontend_attributes={hlo.unreduced_part=\"[[0, 1]]\"}";
        let sum = format!("s = f32[4] select(first, p, zeros), {marked}\n ROOT r = f32[4] negate(s)");
        let unreduced = constraint(", unreduced={\\\"a\\\"}");
        assert!(takes_own_term(&format!("{}\n {sum}", cut("x")), ""));
        assert!(takes_own_term(&format!("{unreduced}\n {}\n {sum}", cut("c")), ""));
        // The constraint wants the sum, or something else does.
        assert!(!takes_own_term(&format!("{}\n {}\n {sum}", constraint(""), cut("c")), ""));
        let other = "n = f32[4] negate(c)";
        assert!(!takes_own_term(&format!("{unreduced}\n {other}\n {}\n {sum}", cut("c")), ""));
        // The largest is copied, and nothing is selected.
        let largest = format!("s = f32[4] copy(p), {marked}\n ROOT r = f32[4] negate(s)");
        let unreduced = constraint(", unreduced=max{\\\"a\\\"}");
        assert!(takes_own_term(&format!("{unreduced}\n {}\n {largest}", cut("c")), "max"));
        assert!(!takes_own_term(&format!("{unreduced}\n {}\n {largest}", cut("c")), "min"));
    }

    #[test]
    fn what_is_no_sum_has_no_terms() {
        let text = "HloModule m, num_partitions=2, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<[\"a\"=2]>}, hlo.unreduced_result.0=\"#sdy.sharding<@mesh, [{}], unreduced={\\\"a\\\"}>\"}
            ENTRY e { x = f32[4] parameter(0) ROOT s = f32[4] sine(x) }";
        let mut module = hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default()).module.unwrap();
        let shardings = Shardings::of(&mut module, &[], &[]).unwrap();
        assert_eq!(shardings.result_terms, [Some(Unreduced { sets: vec![vec![0, 1]], by: Opcode::Add })]);
        assert_eq!(own(&mut module, &shardings.result_terms), [false]);
    }
}
