//! Sharding propagation to results without a given sharding: axes of the mesh follow values from arguments to
//! results.
//!
//! One pass forward over the program, as far as a dimension of an operand is a dimension of the result. Where
//! that ends, or two operands disagree, a dimension is whole: any choice is right, since the framework is
//! told, and arrays are partitioned only when they are handed out.

use hlo::attrs::{AxisRef, Mesh, NamedSharding, Sharding, ShardingKind};
use hlo::{ArrayShape, AttrKey, ComputationId, InstrId, Instruction, Module, Opcode, Shape, shardy};
use hlo_interp::device::tiling::Tiling;
use rustc_hash::FxHashMap;

use crate::sharding::{SHARDY, Tiles};

/// Axes that partition each dimension of an array.
pub(crate) type Axes = Vec<Vec<AxisRef>>;

/// The sharding of a value, as far as it is known.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Known {
    Array(Cut),
    Tuple(Vec<Known>),
    Nothing,
}

/// The sharding of an array: along axes of one of the program's meshes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cut {
    /// The number of the mesh.
    pub(crate) mesh: usize,
    /// By dimension.
    pub(crate) axes: Axes,
}

/// Values that are to be partitioned alike, each with the number of its group.
pub(crate) type Groups = [(InstrId, i64)];

/// Calls within calls are followed so far.
const DEPTH_LIMIT: usize = 64;

/// The maximum of iterations towards a fixpoint of the values of groups; then they stay as they are.
const ROUND_LIMIT: usize = 8;

/// The tiles of each array of the result.
pub(crate) fn results(module: &Module, groups: &Groups) -> Vec<Tiles> {
    let mut walk = Walk::of(module);
    let mut root = walk.entry();
    for _ in 0..ROUND_LIMIT {
        if !walk.settle(groups) {
            break;
        }
        root = walk.entry();
    }
    let shape = &module.instr(module.root(module.entry())).shape;
    let mut tiles = Vec::new();
    flatten(&root, shape, &mut |cut, array| {
        tiles.push(cut.and_then(|cut| tiling(&walk.meshes[cut.mesh], &cut.axes, array)));
    });
    tiles
}

/// The shardings of all values of a program, and its meshes.
pub(crate) fn values(module: &Module) -> (FxHashMap<InstrId, Known>, Vec<Mesh>) {
    let mut walk = Walk::of(module);
    walk.entry();
    (walk.seen, walk.meshes)
}

/// The arrays of a value in order, with what is known of each.
fn flatten(known: &Known, shape: &Shape, give: &mut impl FnMut(Option<&Cut>, &ArrayShape)) {
    match (shape, known) {
        (Shape::Array(array), Known::Array(cut)) => give(Some(cut), array),
        (Shape::Array(array), Known::Tuple(_) | Known::Nothing) => give(None, array),
        (Shape::Tuple(parts), Known::Tuple(all)) if all.len() == parts.len() => {
            all.iter().zip(parts.iter()).for_each(|(k, s)| flatten(k, s, give));
        }
        (Shape::Tuple(parts), _) => parts.iter().for_each(|s| flatten(&Known::Nothing, s, give)),
        (Shape::Token | Shape::Opaque | Shape::Buffer(_), _) => {}
    }
}

/// Into how many parts axes partition.
fn parts<'a>(mesh: &Mesh, axes: impl IntoIterator<Item = &'a AxisRef>) -> i64 {
    let size = |axis: &AxisRef| match axis.sub_axis {
        Some((_, size)) => size,
        None => mesh.axes.iter().find(|(name, _)| *name == axis.name).map_or(1, |a| a.1),
    };
    axes.into_iter().map(size).product()
}

pub(crate) fn tiling(mesh: &Mesh, axes: &Axes, array: &ArrayShape) -> Tiles {
    let dims = axes.iter().zip(&array.dims).map(|(axes, &extent)| {
        let parts = parts(mesh, axes);
        let even = parts > 0 && extent % parts == 0;
        hlo::attrs::sharding::NamedDim {
            axes: if even { axes.clone() } else { Vec::new() },
            ..Default::default()
        }
    });
    let named = NamedSharding {
        mesh: mesh.clone(),
        dims: Some(dims.collect()),
        replicated: Vec::new(),
        unreduced: Vec::new(),
        unreduced_kind: None,
        manual: Vec::new(),
        metadata: Vec::new(),
    };
    Tiling::of_axes(&named, None, array.rank()).ok().flatten()
}

struct Walk<'m> {
    module: &'m Module,
    meshes: Vec<Mesh>,
    /// Of each instruction that was seen; of one of a computation that is called more often, at its last
    /// call.
    seen: FxHashMap<InstrId, Known>,
    /// The shardings of groups' values.
    given: FxHashMap<InstrId, Known>,
    /// The shardings that users prefer.
    wanted: FxHashMap<InstrId, Cut>,
}

impl<'m> Walk<'m> {
    fn of(module: &'m Module) -> Self {
        let (seen, given, wanted) = Default::default();
        Self { module, meshes: Vec::new(), seen, given, wanted }
    }

    /// The sharding of the program's result.
    fn entry(&mut self) -> Known {
        let module = self.module;
        let parameters: Vec<Known> = module
            .computation(module.entry())
            .parameters()
            .iter()
            .flatten()
            .map(|&id| self.annotated(module.instr(id), &Known::Nothing).unwrap_or(Known::Nothing))
            .collect();
        self.computation(module.entry(), &parameters, 0)
    }

    /// Assigns the values of each group the same axes; false if they have these.
    fn settle(&mut self, groups: &Groups) -> bool {
        let mut numbers: Vec<i64> = groups.iter().map(|(_, group)| *group).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut changed = false;
        for number in numbers {
            let members: Vec<InstrId> =
                groups.iter().filter(|(_, group)| *group == number).map(|(id, _)| *id).collect();
            let of = |id: &InstrId| match self.seen.get(id) {
                Some(Known::Array(cut)) => Some(cut.clone()),
                Some(Known::Tuple(_) | Known::Nothing) | None => None,
            };
            let wanted = members.iter().filter_map(|id| self.wanted.get(id).cloned());
            let mut cuts: Vec<Cut> = members.iter().filter_map(of).chain(wanted).collect();
            // Who is partitioned most comes first, and others partition what it leaves whole.
            cuts.sort_by_key(|cut| {
                std::cmp::Reverse(parts(&self.meshes[cut.mesh], cut.axes.iter().flatten()))
            });
            let Some(mut joined) = cuts.first().cloned() else { continue };
            for cut in cuts.iter().filter(|cut| cut.mesh == joined.mesh) {
                for (at, axes) in cut.axes.iter().enumerate() {
                    put(&mut joined.axes, at, Some(axes));
                }
            }
            for id in members {
                let rank = self.module.instr(id).shape.as_array().map(ArrayShape::rank);
                let joined = Known::Array(joined.clone());
                if rank.is_some_and(|rank| matches!(&joined, Known::Array(cut) if cut.axes.len() == rank))
                    && self.seen.get(&id) != Some(&joined)
                {
                    self.given.insert(id, joined);
                    changed = true;
                }
            }
        }
        changed
    }

    fn mesh(&mut self, mesh: &Mesh) -> usize {
        self.meshes.iter().position(|m| m == mesh).unwrap_or_else(|| {
            self.meshes.push(mesh.clone());
            self.meshes.len() - 1
        })
    }

    /// What a sharding says of a value; where it leaves a dimension open, that is what is known without it.
    fn named(&mut self, sharding: &NamedSharding, rank: usize, without: &Known) -> Known {
        let Some(dims) = sharding.dims.as_ref().filter(|dims| dims.len() == rank) else {
            return Known::Nothing;
        };
        let mut axes: Axes = dims.iter().map(|d| d.axes.clone()).collect();
        let says_any = axes.iter().any(|a| !a.is_empty());
        match without {
            // What is not partitioned may be of any mesh, an empty one among them.
            Known::Array(before)
                if before.axes.len() == rank && (!says_any || self.meshes[before.mesh] == sharding.mesh) =>
            {
                for (at, _) in dims.iter().enumerate().filter(|(_, d)| d.open && d.axes.is_empty()) {
                    put(&mut axes, at, before.axes.get(at));
                }
                array(before.mesh, axes)
            }
            Known::Array(_) | Known::Tuple(_) | Known::Nothing if says_any => {
                let mesh = self.mesh(&sharding.mesh);
                array(mesh, axes)
            }
            Known::Array(_) | Known::Tuple(_) | Known::Nothing => Known::Nothing,
        }
    }

    /// The sharding that an instruction has itself.
    fn annotated(&mut self, instr: &Instruction, without: &Known) -> Option<Known> {
        let rank = instr.shape.as_array()?.rank();
        if let Some(text) = instr.attrs.frontend_attributes().and_then(|a| a.get(SHARDY)) {
            let sharding = shardy::sharding(self.module, text)?;
            return Some(self.named(&sharding, rank, without));
        }
        match instr.attrs.sharding()? {
            Sharding::Single(kind) => match &**kind {
                ShardingKind::Named(named) => Some(self.named(named, rank, without)),
                ShardingKind::Tile(_) => None,
            },
            Sharding::Tuple(_) => None,
        }
    }

    fn computation(&mut self, id: ComputationId, arguments: &[Known], depth: usize) -> Known {
        if depth > DEPTH_LIMIT {
            return Known::Nothing;
        }
        let module = self.module;
        let mut known: FxHashMap<InstrId, Known> = FxHashMap::default();
        for (&parameter, argument) in module.computation(id).parameters().iter().flatten().zip(arguments) {
            let argument = self.given.get(&parameter).unwrap_or(argument).clone();
            self.seen.insert(parameter, argument.clone());
            known.insert(parameter, argument);
        }
        for id in module.instructions(id) {
            let instr = module.instr(id);
            if instr.opcode == Opcode::Parameter {
                continue;
            }
            let operands: Vec<Known> =
                instr.operands().iter().map(|o| known.get(o).cloned().unwrap_or(Known::Nothing)).collect();
            let value = self.value(instr, &operands, depth);
            let value = self.given.get(&id).cloned().unwrap_or(value);
            self.seen.insert(id, value.clone());
            known.insert(id, value);
        }
        known.remove(&module.root(id)).unwrap_or(Known::Nothing)
    }

    fn value(&mut self, instr: &Instruction, operands: &[Known], depth: usize) -> Known {
        let first = || operands.first().cloned().unwrap_or(Known::Nothing);
        match instr.opcode {
            Opcode::Tuple => Known::Tuple(operands.to_vec()),
            Opcode::GetTupleElement => {
                let index = instr.attrs.int(AttrKey::Index).and_then(|n| usize::try_from(n).ok());
                match (first(), index) {
                    (Known::Tuple(mut parts), Some(n)) if n < parts.len() => parts.swap_remove(n),
                    (Known::Tuple(_) | Known::Array(_) | Known::Nothing, _) => Known::Nothing,
                }
            }
            Opcode::Call => match instr.attrs.computation(AttrKey::ToApply) {
                Some(callee) => self.computation(callee, operands, depth + 1),
                None => Known::Nothing,
            },
            Opcode::OptBarrier => first(),
            // Loop state keeps its sharding; what is unknown before the first iteration has that of the
            // body's result.
            Opcode::While => match instr.attrs.computation(AttrKey::Body) {
                Some(body) => or(first(), self.computation(body, &[first()], depth + 1)),
                None => first(),
            },
            Opcode::CustomCall => self.custom_call(instr, operands),
            Opcode::Parameter | Opcode::Constant => Known::Nothing,
            _ => match instr.shape.as_array() {
                Some(shape) => self.array(instr, shape, operands),
                None => Known::Nothing,
            },
        }
    }

    fn custom_call(&mut self, instr: &Instruction, operands: &[Known]) -> Known {
        let target = instr.attrs.str(AttrKey::CustomCallTarget).unwrap_or_default();
        if target.ends_with("GlobalToLocalShape") {
            let text = instr.attrs.frontend_attributes().and_then(|a| a.get("xla.sdy.in_shardings"));
            let all = text.and_then(|t| shardy::shardings_of_values(self.module, t)).unwrap_or_default();
            for (&id, sharding) in instr.operands().iter().zip(&all) {
                let rank = self.module.instr(id).shape.as_array().map_or(0, ArrayShape::rank);
                if let Known::Array(cut) = self.named(sharding, rank, &Known::Nothing) {
                    self.wanted.insert(id, cut);
                }
            }
            return Known::Nothing;
        }
        if target.ends_with("LocalToGlobalShape") {
            let text = instr.attrs.frontend_attributes().and_then(|a| a.get("xla.sdy.out_shardings"));
            let all = text.and_then(|t| shardy::shardings_of_values(self.module, t)).unwrap_or_default();
            let one = |walk: &mut Self, n: usize, shape: &Shape| match (all.get(n), shape.as_array()) {
                (Some(sharding), Some(array)) => {
                    walk.named(sharding, array.rank(), operands.get(n).unwrap_or(&Known::Nothing))
                }
                _ => Known::Nothing,
            };
            return match &instr.shape {
                Shape::Tuple(parts) => {
                    Known::Tuple(parts.iter().enumerate().map(|(n, s)| one(self, n, s)).collect())
                }
                shape => one(self, 0, shape),
            };
        }
        match target {
            "Sharding" => {
                let without = operands.first().unwrap_or(&Known::Nothing);
                self.annotated(instr, without).unwrap_or(Known::Nothing)
            }
            "annotate_device_placement" | "LayoutConstraint" => {
                operands.first().cloned().unwrap_or(Known::Nothing)
            }
            _ => Known::Nothing,
        }
    }

    /// An array whose dimensions are dimensions of operands.
    fn array(&self, instr: &Instruction, shape: &ArrayShape, operands: &[Known]) -> Known {
        // Axes of one mesh: that of the first operand that has any.
        let mesh = operands.iter().find_map(|known| match known {
            Known::Array(cut) => Some(cut.mesh),
            Known::Tuple(_) | Known::Nothing => None,
        });
        let Some(mesh) = mesh else { return Known::Nothing };
        let of = |n: usize| match operands.get(n) {
            Some(Known::Array(cut)) if cut.mesh == mesh => Some(&cut.axes),
            Some(Known::Array(_) | Known::Tuple(_) | Known::Nothing) | None => None,
        };
        let dims_of = |n: usize| {
            let operand = instr.operands().get(n)?;
            self.module.instr(*operand).shape.as_array().map(|a| &a.dims)
        };
        let rank = shape.rank();
        let mut axes: Axes = vec![Vec::new(); rank];
        let listed = |key: AttrKey| instr.attrs.ints_or_empty(key).iter().map(|&d| d as usize);
        match instr.opcode {
            Opcode::Broadcast => {
                if let Some(from) = of(0) {
                    for (d, at) in listed(AttrKey::Dimensions).enumerate() {
                        put(&mut axes, at, from.get(d));
                    }
                }
            }
            Opcode::Transpose => {
                if let Some(from) = of(0) {
                    for (at, d) in listed(AttrKey::Dimensions).enumerate() {
                        put(&mut axes, at, from.get(d));
                    }
                }
            }
            Opcode::Reduce => {
                if let Some(from) = of(0) {
                    let reduced: Vec<usize> = listed(AttrKey::Dimensions).collect();
                    let kept = (0..from.len()).filter(|d| !reduced.contains(d));
                    kept.enumerate().for_each(|(at, d)| put(&mut axes, at, from.get(d)));
                }
            }
            Opcode::Dot => {
                let sides = [
                    (AttrKey::LhsBatchDims, AttrKey::LhsContractingDims),
                    (AttrKey::RhsBatchDims, AttrKey::RhsContractingDims),
                ];
                let batch = listed(AttrKey::LhsBatchDims).count();
                let mut at = batch;
                for (n, (batch_key, contracting)) in sides.into_iter().enumerate() {
                    let gone: Vec<usize> = listed(batch_key).chain(listed(contracting)).collect();
                    for (to, d) in listed(batch_key).enumerate() {
                        put(&mut axes, to, of(n).and_then(|from| from.get(d)));
                    }
                    let count = dims_of(n).map_or(0, |dims| dims.len());
                    for d in (0..count).filter(|d| !gone.contains(d)) {
                        put(&mut axes, at, of(n).and_then(|from| from.get(d)));
                        at += 1;
                    }
                }
            }
            Opcode::Gather => {
                // Dimensions of windows that are all of the operand's.
                if let (Some(from), Some(dims)) = (of(0), dims_of(0)) {
                    let gone: Vec<usize> = listed(AttrKey::CollapsedSliceDims)
                        .chain(listed(AttrKey::OperandBatchingDims))
                        .collect();
                    let sizes = instr.attrs.ints_or_empty(AttrKey::SliceSizes);
                    let windows = (0..dims.len()).filter(|d| !gone.contains(d));
                    for (d, at) in windows.zip(listed(AttrKey::OffsetDims)) {
                        if sizes.get(d) == Some(&dims[d]) {
                            put(&mut axes, at, from.get(d));
                        }
                    }
                }
            }
            Opcode::Scatter => {
                if let Some(from) = of(0) {
                    (0..rank).for_each(|at| put(&mut axes, at, from.get(at)));
                }
            }
            Opcode::Reshape => {
                // Dimensions that stay, where those before multiply to the same.
                if let (Some(from), Some(dims)) = (of(0), dims_of(0)) {
                    let (mut before, mut d) = (1_i64, 0);
                    for at in 0..rank {
                        let to: i64 = shape.dims[..at].iter().product();
                        while d < dims.len() && (before < to || (dims[d] == 1 && shape.dims[at] != 1)) {
                            before *= dims[d];
                            d += 1;
                        }
                        if d < dims.len() && before == to && dims[d] == shape.dims[at] {
                            put(&mut axes, at, from.get(d));
                        }
                    }
                }
            }
            _ => {
                // Elementwise, or a part of an array: dimensions that have the size of the operand's.
                for n in 0..instr.operands().len() {
                    let (Some(from), Some(dims)) = (of(n), dims_of(n)) else { continue };
                    if dims.len() != rank || !keeps_dimensions(instr) {
                        continue;
                    }
                    for at in (0..rank).filter(|&at| dims[at] == shape.dims[at]) {
                        put(&mut axes, at, from.get(at));
                    }
                }
            }
        }
        self::array(mesh, axes)
    }
}

fn array(mesh: usize, axes: Axes) -> Known {
    if axes.iter().all(Vec::is_empty) { Known::Nothing } else { Known::Array(Cut { mesh, axes }) }
}

/// The sharding of a value, or another one where that is unknown.
fn or(known: Known, other: Known) -> Known {
    match (known, other) {
        (Known::Nothing, other) => other,
        (Known::Tuple(known), Known::Tuple(other)) if known.len() == other.len() => {
            Known::Tuple(known.into_iter().zip(other).map(|(k, o)| or(k, o)).collect())
        }
        (known, _) => known,
    }
}

/// Assigns axes to a dimension, if it has none and no other dimension has them.
fn put(axes: &mut Axes, at: usize, new: Option<&Vec<AxisRef>>) {
    let Some(new) = new else { return };
    let taken = axes.iter().flatten().any(|a| new.iter().any(|n| n.name == a.name));
    if let Some(slot) = axes.get_mut(at).filter(|slot| slot.is_empty() && !taken) {
        slot.clone_from(new);
    }
}

/// Whether a dimension of the result is the same dimension of the operands, as far as sizes are the same.
fn keeps_dimensions(instr: &Instruction) -> bool {
    instr.opcode.is_elementwise()
        || matches!(
            instr.opcode,
            Opcode::Copy
                | Opcode::Slice
                | Opcode::DynamicSlice
                | Opcode::DynamicUpdateSlice
                | Opcode::Pad
                | Opcode::Concatenate
                | Opcode::Reverse
                | Opcode::ReduceWindow
                | Opcode::ReducePrecision
                | Opcode::BitcastConvert
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tiles of the result of a program on a mesh of 2 times 2; x is partitioned along both dimensions, w
    /// along the second.
    fn tiles_of(body: &str) -> Vec<Option<Vec<usize>>> {
        let sharding = |axes: &str| {
            format!("frontend_attributes={{xla.sdy.sharding=\"#sdy.sharding<@mesh, [{axes}]>\"}}")
        };
        let (x, w) = (sharding(r#"{\"a\"}, {\"b\"}"#), sharding(r#"{}, {\"b\"}"#));
        let text = format!(
            "HloModule m, num_partitions=4, frontend_attributes={{xla.sdy.meshes={{mesh = #sdy.mesh<[\"a\"=2, \"b\"=2]>}}}}
             add {{ p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }}
             ENTRY e {{
               x = f32[4,6] parameter(0), {x}
               w = f32[6,8] parameter(1), {w}
               zero = f32[] constant(0)
               {body}
             }}"
        );
        let parsed = hlo_parser::parse_module(&text, &hlo_parser::ParseOptions::default());
        let module = parsed.module.unwrap_or_else(|| panic!("{text}"));
        results(&module, &[]).into_iter().map(|tiles| tiles.map(|t| t.tiles)).collect()
    }

    /// On two meshes of the same devices; y and z are of one group.
    #[test]
    fn values_of_a_group_are_cut_alike() {
        let of = |body: &str| {
            let text = format!(
                "HloModule m, num_partitions=4, frontend_attributes={{xla.sdy.meshes={{mesh = #sdy.mesh<[\"a\"=2, \"b\"=2]>, line = #sdy.mesh<[\"c\"=4]>}}}}
                 ENTRY e {{
                   x = f32[4,8] parameter(0), frontend_attributes={{xla.sdy.sharding=\"#sdy.sharding<@mesh, [{{\\\"a\\\"}}, {{}}]>\"}}
                   {body}
                 }}"
            );
            let parsed = hlo_parser::parse_module(&text, &hlo_parser::ParseOptions::default());
            let module = parsed.module.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics));
            let named = |id: &InstrId| matches!(&*module.instr(*id).name, "y" | "z");
            let group: Vec<_> = module.instructions(module.entry()).filter(named).map(|id| (id, 7)).collect();
            assert_eq!(group.len(), 2, "{text}");
            let tiles = results(&module, &group).into_iter().map(|tiles| tiles.map(|t| t.tiles));
            tiles.collect::<Vec<_>>()
        };
        let y = "y = f32[4,8] negate(x)";
        let made = "z = f32[4,8] iota(), iota_dimension=0";
        assert_eq!(of(&format!("{y}\n {made}\n ROOT r = f32[4,8] negate(z)")), [Some(vec![2, 1])]);
        // As the shards of a manual computation want it.
        let cut = "s = f32[2,4] custom-call(z), custom_call_target=\"xla.sdy.GlobalToLocalShape\", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.in_shardings=\"#sdy.sharding_per_value<[<@mesh, [{}, {\\\"b\\\"}]>]>\"}";
        let both = format!("{y}\n {made}\n {cut}\n ROOT t = (f32[4,8], f32[4,8]) tuple(y, z)");
        assert_eq!(of(&both), [Some(vec![2, 2]), Some(vec![2, 2])]);
        // What is partitioned most decides; axes of another mesh cannot be added.
        let line = "z = f32[4,8] custom-call(x), custom_call_target=\"Sharding\", frontend_attributes={xla.sdy.sharding=\"#sdy.sharding<@line, [{}, {\\\"c\\\"}]>\"}";
        let pair = format!("{line}\n {y}\n ROOT t = (f32[4,8], f32[4,8]) tuple(y, z)");
        assert_eq!(of(&pair), [Some(vec![1, 4]), Some(vec![1, 4])]);
    }

    #[test]
    fn axes_follow_values() {
        for (body, tiles) in [
            ("ROOT r = f32[4,6] negate(x)", Some([2, 2].as_slice())),
            ("ROOT r = f32[6,4] transpose(x), dimensions={1,0}", Some(&[2, 2])),
            ("ROOT r = f32[6] reduce(x, zero), dimensions={0}, to_apply=add", Some(&[2])),
            ("ROOT r = f32[4,3,6] broadcast(x), dimensions={0,2}", Some(&[2, 1, 2])),
            // The second axis cuts both operands; the result has it once.
            (
                "ROOT r = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                Some(&[2, 2]),
            ),
            ("ROOT r = f32[4,2,3] reshape(x)", Some(&[2, 1, 1])),
            ("ROOT r = f32[2,6] slice(x), slice={[0:2], [0:6]}", Some(&[1, 2])),
            // Three columns cannot be partitioned in two.
            ("ROOT r = f32[4,3] slice(x), slice={[0:4], [0:3]}", Some(&[2, 1])),
            // Open dimensions of a constraint stay as they were, others are what it says.
            (
                "ROOT r = f32[4,6] custom-call(x), custom_call_target=\"Sharding\", frontend_attributes={xla.sdy.sharding=\"#sdy.sharding<@mesh, [{?}, {}]>\"}",
                Some(&[2, 1]),
            ),
            ("ROOT r = f32[24] reshape(x)", None),
            ("ROOT r = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add", None),
        ] {
            assert_eq!(tiles_of(body), [tiles.map(<[usize]>::to_vec)], "{body}");
        }
    }
}
