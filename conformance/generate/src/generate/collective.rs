//! Collectives, in every group mode and form, and the numbers of devices.
//!
//! **Invariant:** they stand only where all devices come equally often ([`Generator::uniform`]), in groups of
//! one size that hold every device once; so no run waits for a device that never arrives.

use hlo::attrs::collective::GroupMode;
use hlo::attrs::{AttrKey, AttrValue, Ints, ReplicaGroups};
use hlo::{ArrayShape, Attrs, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::{Body, ints};
use super::movement::permutation;

/// The participants of a collective.
struct Groups {
    attrs: Attrs,
    /// Members of a group.
    size: i64,
}

impl Generator<'_> {
    /// Decides how many devices the program is for.
    pub(super) fn devices(&mut self) {
        let most = i64::from(self.limits.devices);
        // Threads cost more than a few instructions.
        let odds = if self.limits.instructions < 12 { 20 } else { 40 };
        if most < 2 || !self.choices.chance(odds) {
            return;
        }
        let (replicas, partitions) =
            self.choices.pick(&[(2, 1), (1, 2), (2, 2), (4, 1), (3, 1), (1, 4), (1, 3), (4, 1)]);
        if replicas * partitions > most {
            return;
        }
        (self.replicas, self.partitions) = (replicas, partitions);
        self.module.header.replica_count = Some(replicas);
        self.module.header.num_partitions = Some(partitions);
    }

    /// A collective.
    pub(super) fn meet(&mut self, body: &mut Body) {
        if let Some(id) = collective(self, body) {
            body.add(id);
        }
    }

    /// Groups for an opcode, in a mode that it has.
    fn groups(&mut self, opcode: Opcode) -> Groups {
        let global = opcode.attrs().iter().any(|a| a.key == AttrKey::UseGlobalDeviceIds);
        let modes: &[GroupMode] = if global {
            &[GroupMode::CrossReplica, GroupMode::FlattenedId, GroupMode::CrossReplicaAndPartition]
        } else {
            &[GroupMode::CrossReplica, GroupMode::CrossPartition]
        };
        let mode = self.choices.pick(modes);
        let ids = match mode {
            GroupMode::CrossReplica | GroupMode::CrossReplicaAndPartition => self.replicas,
            GroupMode::CrossPartition => self.partitions,
            GroupMode::FlattenedId => self.replicas * self.partitions,
        };
        let sizes: Vec<i64> = (1..=ids).rev().filter(|s| ids % s == 0).collect();
        let size = self.choices.pick(&sizes);
        let form = self.choices.below(4);
        let groups = match form {
            0 if size == ids && mode != GroupMode::FlattenedId => ReplicaGroups::Lists(Vec::new()),
            1 => {
                let dims: Ints = [ids / size, size].into_iter().collect();
                let transposed = self.choices.chance(128);
                // Counted in columns: every `ids / size`-th device is in one group.
                let reshape_dims: Ints = if transposed {
                    [size, ids / size].into_iter().collect()
                } else {
                    std::iter::once(ids).collect()
                };
                let transpose: Ints = if transposed { [1, 0].into_iter().collect() } else { Ints::new() };
                ReplicaGroups::Iota { dims, reshape_dims, transpose }
            }
            2 => {
                let order = permutation(self, ids as usize);
                ReplicaGroups::Lists(order.chunks(size as usize).map(Ints::from_slice).collect())
            }
            _ => {
                let order: Vec<i64> = (0..ids).collect();
                ReplicaGroups::Lists(order.chunks(size as usize).map(Ints::from_slice).collect())
            }
        };
        let mut attrs = Attrs::new().with(AttrKey::ReplicaGroups, AttrValue::ReplicaGroups(Box::new(groups)));
        if mode != GroupMode::CrossReplica {
            attrs.set(AttrKey::ChannelId, AttrValue::Int(self.new_channel()));
        }
        if mode == GroupMode::FlattenedId {
            attrs.set(AttrKey::UseGlobalDeviceIds, AttrValue::Bool(true));
        }
        let all = if mode == GroupMode::CrossReplicaAndPartition { self.partitions } else { 1 };
        Groups { attrs, size: size * all }
    }

    /// An unused channel.
    pub(super) fn new_channel(&mut self) -> i64 {
        self.channel += 1;
        self.channel
    }

    /// A value whose size in some dimension is a multiple of `n`, and the dimension.
    fn divisible(&mut self, body: &mut Body, n: i64) -> (InstrId, usize) {
        let x = self.value(body, |a| a.dims.iter().any(|d| d % n == 0));
        let shape = self.array(x);
        match shape.dims.iter().position(|d| d % n == 0) {
            Some(d) => (x, d),
            None => {
                let shape = ArrayShape::new(shape.element_type, &[n * self.choices.int(1, 3), 2]);
                (self.of_shape(body, &shape), 0)
            }
        }
    }
}

/// The collectives that a step may make; of pairs of start and done the start.
const KINDS: &[Opcode] = &[
    Opcode::AllReduce,
    Opcode::AllGather,
    Opcode::ReduceScatter,
    Opcode::AllToAll,
    Opcode::CollectivePermute,
    Opcode::CollectiveBroadcast,
    Opcode::ReplicaId,
    Opcode::PartitionId,
    Opcode::AllReduceStart,
    Opcode::AllGatherStart,
    Opcode::CollectivePermuteStart,
    Opcode::RaggedAllToAll,
    Opcode::CollectiveReduce,
];

pub(super) fn collective(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let wanted = g.want.map(|w| w.opcode);
    let kind = if wanted == Some(Opcode::AllReduceDone) {
        Opcode::AllReduceStart
    } else if wanted == Some(Opcode::AllGatherDone) {
        Opcode::AllGatherStart
    } else if wanted == Some(Opcode::CollectivePermuteDone) {
        Opcode::CollectivePermuteStart
    } else {
        // Groups of one device only if asked for.
        if wanted.is_none() && g.replicas * g.partitions == 1 && !g.choices.chance(50) {
            return None;
        }
        g.opcode(KINDS)
    };
    if matches!(kind, Opcode::ReplicaId | Opcode::PartitionId) {
        return g.plain(body, kind, &[]);
    }
    g.uniform.then_some(())?;
    if kind == Opcode::AllReduceStart {
        let (operands, attrs) = folding(g, body, kind)?;
        let start = g.add(body, kind, &operands[..1], attrs)?;
        g.plain(body, Opcode::AllReduceDone, &[start])
    } else if kind == Opcode::AllGatherStart {
        let (x, attrs) = gathering(g, body, kind)?;
        let start = g.add(body, kind, &[x], attrs)?;
        g.plain(body, Opcode::AllGatherDone, &[start])
    } else if kind == Opcode::CollectivePermuteStart {
        let x = g.any(body);
        let attrs = pairs(g);
        let start = g.add(body, kind, &[x], attrs)?;
        g.plain(body, Opcode::CollectivePermuteDone, &[start])
    } else if kind == Opcode::RaggedAllToAll {
        ragged(g, body)
    } else {
        let (operands, attrs) = whole(g, body, kind)?;
        run(g, body, kind, &operands, attrs)
    }
}

/// Operands and attributes of a collective that is one instruction.
fn whole(g: &mut Generator<'_>, body: &mut Body, kind: Opcode) -> Option<(Vec<InstrId>, Attrs)> {
    if kind == Opcode::AllGather {
        let (x, attrs) = gathering(g, body, kind)?;
        Some((vec![x], attrs))
    } else if kind == Opcode::ReduceScatter {
        let Groups { attrs, size } = g.groups(kind);
        let (x, d) = g.divisible(body, size);
        let ty = g.array(x).element_type;
        let region = g.commutative(ty)?;
        let attrs = attrs
            .with(AttrKey::Dimensions, ints(&[d as i64]))
            .with(AttrKey::ToApply, AttrValue::Computation(region));
        Some((vec![x], attrs))
    } else if kind == Opcode::AllToAll {
        let Groups { attrs, size } = g.groups(kind);
        if g.choices.chance(100) {
            let x = g.any(body);
            let shape = g.array(x);
            let mut operands = vec![x];
            while (operands.len() as i64) < size {
                operands.push(g.of_shape(body, &shape));
            }
            return Some((operands, attrs));
        }
        let (x, d) = g.divisible(body, size);
        Some((vec![x], attrs.with(AttrKey::Dimensions, ints(&[d as i64]))))
    } else if kind == Opcode::CollectivePermute {
        let mut operands = vec![g.any(body)];
        if g.choices.chance(40) {
            operands.push(g.any(body));
        }
        Some((operands, pairs(g)))
    } else if kind == Opcode::CollectiveBroadcast {
        let x = g.any(body);
        Some((vec![x], g.groups(kind).attrs))
    } else {
        folding(g, body, kind)
    }
}

/// As it is, or wrapped in a computation that runs asynchronously.
fn run(
    g: &mut Generator<'_>,
    body: &mut Body,
    kind: Opcode,
    operands: &[InstrId],
    attrs: Attrs,
) -> Option<InstrId> {
    if !g.choices.chance(40) {
        let id = g.add(body, kind, operands, attrs)?;
        return g.unpack(body, id);
    }
    let shapes: Vec<Shape> = operands.iter().map(|&o| Shape::Array(g.array(o))).collect();
    let inner = Body::with_parameters(&mut g.module, "wrapped", &shapes);
    let parameters = inner.values().to_vec();
    g.add(&inner, kind, &parameters, attrs)?;
    let done = g.run_async(body, inner.id, operands)?;
    g.unpack(body, done)
}

impl Generator<'_> {
    /// A fold whose order does not matter.
    fn commutative(&mut self, ty: ElementType) -> Option<hlo::ComputationId> {
        const OPCODES: &[Opcode] =
            &[Opcode::Add, Opcode::Maximum, Opcode::Minimum, Opcode::Multiply, Opcode::And, Opcode::Or];
        (0..6).find_map(|_| {
            let opcode = self.choices.pick(OPCODES);
            hlo::builder::scalar_region(&mut self.module, "combine", opcode, ty).ok()
        })
    }
}

fn folding(g: &mut Generator<'_>, body: &mut Body, kind: Opcode) -> Option<(Vec<InstrId>, Attrs)> {
    let x = g.any(body);
    let ty = g.array(x).element_type;
    let mut operands = vec![x];
    if g.choices.chance(50) {
        operands.push(g.value(body, |a| a.element_type == ty));
    }
    operands.retain(|&o| g.array(o).element_type == ty);
    let attrs = g.groups(kind).attrs;
    let region = g.commutative(ty)?;
    Some((operands, attrs.with(AttrKey::ToApply, AttrValue::Computation(region))))
}

fn gathering(g: &mut Generator<'_>, body: &mut Body, kind: Opcode) -> Option<(InstrId, Attrs)> {
    let x = g.ranked(body, 1);
    let rank = g.array(x).rank();
    let d = g.choices.below(rank) as i64;
    Some((x, g.groups(kind).attrs.with(AttrKey::Dimensions, ints(&[d]))))
}

/// Pairs in which no device sends or receives twice; some may be left out.
fn pairs(g: &mut Generator<'_>) -> Attrs {
    let mut attrs = Attrs::new();
    let channel = g.partitions > 1 && (g.replicas == 1 || g.choices.chance(128));
    let n = if channel { g.partitions } else { g.replicas };
    if channel {
        attrs.set(AttrKey::ChannelId, AttrValue::Int(g.new_channel()));
    }
    let order = permutation(g, n as usize);
    let mut pairs: Vec<Ints> =
        order.iter().zip(0..).map(|(&to, from)| [from, to].into_iter().collect()).collect();
    if g.choices.chance(100) {
        pairs.truncate(1.max(pairs.len() - 1));
    }
    attrs.with(AttrKey::SourceTargetPairs, AttrValue::IntLists(pairs.into()))
}

/// Every device sends every other one as many rows, to an offset by its own number.
fn ragged(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    let partitions = g.partitions > 1 && (g.replicas == 1 || g.choices.chance(128));
    let (n, number) =
        if partitions { (g.partitions, Opcode::PartitionId) } else { (g.replicas, Opcode::ReplicaId) };
    let rows = g.choices.int(1, 3);
    let sent = g.choices.int(0, rows) as i32;
    let x = g.value(body, |a| a.rank() >= 1 && a.dims[0] == n * rows);
    let mut shape = g.array(x);
    let input = if shape.dims.first() == Some(&(n * rows)) {
        x
    } else {
        shape = ArrayShape::new(shape.element_type, &[n * rows, 2]);
        g.of_shape(body, &shape)
    };
    let output = g.of_shape(body, &shape);
    let starts: Vec<i32> = (0..n).map(|i| (i * rows) as i32).collect();
    let starts = g.numbers(body, &starts);
    let sizes = g.numbers(body, &vec![sent; n as usize]);
    let me = g.plain(body, number, &[])?;
    let me = g.at(body).convert(me, ElementType::S32).ok()?;
    let per_rank = g.number(body, ElementType::S32, rows);
    let offset = g.plain(body, Opcode::Multiply, &[me, per_rank])?;
    let offsets = g.at(body).broadcast(offset, &[n], &[]).ok()?;
    let mut attrs = Attrs::new();
    if partitions {
        attrs.set(AttrKey::ChannelId, AttrValue::Int(g.new_channel()));
    }
    let all: Ints = (0..n).collect();
    attrs.set(AttrKey::ReplicaGroups, AttrValue::ReplicaGroups(Box::new(ReplicaGroups::Lists(vec![all]))));
    let operands = [input, output, starts, sizes, offsets, sizes];
    g.add(body, Opcode::RaggedAllToAll, &operands, attrs)
}
