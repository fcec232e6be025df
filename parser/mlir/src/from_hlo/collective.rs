//! Collectives. What is only started and done is done at once.

use hlo::attrs::collective::{GroupMode, group_mode};
use hlo::attrs::{AttrKey, ReplicaGroups};
use hlo::{Instruction, Shape};

use super::cx::{Export, Exporter, Leaves, Part};
use crate::ir::{AttrId, OpId, TypeId, ValueId};

/// A channel between devices.
const DEVICE_TO_DEVICE: i64 = 1;

impl Exporter<'_> {
    pub(super) fn channel(&mut self, handle: i64, kind: i64) -> AttrId {
        self.record("channel_handle", &[("handle", Part::Int(handle)), ("type", Part::Int(kind))])
    }

    /// The groups as lists; none are one group of all.
    fn groups(&self, i: &Instruction) -> Export<Vec<Vec<i64>>> {
        match i.attrs.replica_groups().map(ReplicaGroups::expand) {
            None => Ok(Vec::new()),
            Some(Some(groups)) => Ok(groups),
            Some(None) => self.refuse("has replica groups whose numbers do not fit together"),
        }
    }

    /// Channel, groups and numbering.
    fn collective_properties(&mut self, i: &Instruction) -> Export<Vec<(&'static str, AttrId)>> {
        let mut properties = Vec::new();
        if let Some(handle) = i.attrs.int(AttrKey::ChannelId) {
            properties.push(("channel_handle", self.channel(handle, DEVICE_TO_DEVICE)));
        }
        if i.opcode.attrs().iter().any(|s| s.key == AttrKey::ReplicaGroups) {
            let mut groups = self.groups(i)?;
            let columns = groups.iter().map(Vec::len).max().unwrap_or(0);
            for group in &mut groups {
                group.resize(columns, -1);
            }
            properties.push(("replica_groups", self.rows(&groups, columns)));
        }
        if let Some(global) = self.flag(i, AttrKey::UseGlobalDeviceIds) {
            properties.push(("use_global_device_ids", global));
        }
        Ok(properties)
    }

    /// An operation of several operands and results, with its region if it has one.
    fn many(
        &mut self,
        i: &Instruction,
        name: &str,
        types: &[TypeId],
        properties: &[(&str, AttrId)],
    ) -> Export<OpId> {
        let operands = self.operands(i);
        let computation = i.attrs.computation(AttrKey::ToApply);
        let op = self.op(name, &operands, types, properties)?;
        if let Some(computation) = computation {
            self.region(op, computation)?;
        }
        Ok(op)
    }

    /// One operation for each operand.
    fn each(
        &mut self,
        i: &Instruction,
        name: &str,
        types: &[TypeId],
        properties: &[(&str, AttrId)],
    ) -> Export<Leaves> {
        let operands = self.operands(i);
        if operands.len() != types.len() {
            return self.refuse("has another number of results than of operands");
        }
        let mut results = Leaves::new();
        for (&operand, &ty) in operands.iter().zip(types) {
            let op = self.op(name, &[operand], &[ty], properties)?;
            if let Some(computation) = i.attrs.computation(AttrKey::ToApply) {
                self.region(op, computation)?;
            }
            results.extend(self.results_of(op));
        }
        Ok(results)
    }

    fn gather_properties(&mut self, i: &Instruction) -> Export<Vec<(&'static str, AttrId)>> {
        let mut properties = self.collective_properties(i)?;
        let d = self.dimension(i)?;
        let rank = (0..i.operands().len()).map(|n| self.operand_dims(i, n).len() as i64).min();
        if rank.is_some_and(|rank| d >= rank) {
            return self.refuse("has an operand that is not gathered: StableHLO's are all");
        }
        properties.push(("all_gather_dim", self.int(d)));
        Ok(properties)
    }

    pub(super) fn all_gather(&mut self, i: &Instruction) -> Export<Leaves> {
        let properties = self.gather_properties(i)?;
        let types = self.leaf_types(&i.shape)?;
        let op = self.many(i, "stablehlo.all_gather", &types, &properties)?;
        Ok(self.results_of(op))
    }

    /// Operands and results.
    pub(super) fn all_gather_start(&mut self, i: &Instruction) -> Export<Leaves> {
        let properties = self.gather_properties(i)?;
        let parts = self.started(i)?;
        let types = self.leaf_types(&parts[1])?;
        let op = self.many(i, "stablehlo.all_gather", &types, &properties)?;
        let mut leaves = self.operands(i);
        leaves.extend(self.results_of(op));
        leaves.extend(self.contexts(&parts[2..])?);
        self.last = Some(op);
        Ok(leaves)
    }

    pub(super) fn all_reduce(&mut self, i: &Instruction) -> Export<Leaves> {
        let properties = self.collective_properties(i)?;
        let types = self.leaf_types(&i.shape)?;
        let op = self.many(i, "stablehlo.all_reduce", &types, &properties)?;
        Ok(self.results_of(op))
    }

    pub(super) fn collective_reduce(&mut self, i: &Instruction) -> Export<Leaves> {
        let mut properties = self.collective_properties(i)?;
        let root = self.bool(i.attrs.bool(AttrKey::HasDynamicRoot));
        properties.push(("has_dynamic_root", root));
        let types = self.leaf_types(&i.shape)?;
        let op = self.many(i, "stablehlo.collective_reduce", &types, &properties)?;
        Ok(self.results_of(op))
    }

    pub(super) fn collective_broadcast(&mut self, i: &Instruction) -> Export<Leaves> {
        let mut properties = self.collective_properties(i)?;
        let types = self.leaf_types(&i.shape)?;
        if i.attrs.bool(AttrKey::HasDynamicRoot) {
            properties.push(("has_dynamic_root", self.bool(true)));
            let op = self.many(i, "stablehlo.collective_broadcast", &types, &properties)?;
            return Ok(self.results_of(op));
        }
        // Older versions take one operand.
        self.each(i, "stablehlo.collective_broadcast", &types, &properties)
    }

    pub(super) fn reduce_scatter(&mut self, i: &Instruction) -> Export<Leaves> {
        let mut properties = self.collective_properties(i)?;
        let d = self.dimension(i)?;
        let rank = (0..i.operands().len()).map(|n| self.operand_dims(i, n).len() as i64).min();
        if rank.is_some_and(|rank| d >= rank) {
            return self.refuse("has an operand that is not divided: StableHLO's are all");
        }
        properties.push(("scatter_dimension", self.int(d)));
        let types = self.leaf_types(&i.shape)?;
        self.each(i, "stablehlo.reduce_scatter", &types, &properties)
    }

    fn permute_properties(&mut self, i: &Instruction) -> Export<Vec<(&'static str, AttrId)>> {
        self.refuse_attribute(i, &[AttrKey::PermuteSliceSizes])?;
        let mut properties = self.collective_properties(i)?;
        let pairs: Vec<Vec<i64>> = i
            .attrs
            .int_lists(AttrKey::SourceTargetPairs)
            .unwrap_or_default()
            .iter()
            .map(|p| p.to_vec())
            .collect();
        if pairs.iter().any(|p| p.len() != 2) {
            return self.refuse("has sources and targets that are no pairs");
        }
        properties.push(("source_target_pairs", self.rows(&pairs, 2)));
        Ok(properties)
    }

    pub(super) fn collective_permute(&mut self, i: &Instruction) -> Export<Leaves> {
        let properties = self.permute_properties(i)?;
        let types = self.leaf_types(&i.shape)?;
        self.each(i, "stablehlo.collective_permute", &types, &properties)
    }

    /// Operands, results, context.
    pub(super) fn collective_permute_start(&mut self, i: &Instruction) -> Export<Leaves> {
        let properties = self.permute_properties(i)?;
        let parts = self.started(i)?;
        let types = self.leaf_types(&parts[1])?;
        let results = self.each(i, "stablehlo.collective_permute", &types, &properties)?;
        let last = self.last;
        let mut leaves = self.operands(i);
        leaves.extend(results);
        leaves.extend(self.contexts(&parts[2..])?);
        self.last = last;
        Ok(leaves)
    }

    /// How many devices take part together.
    fn group_size(&self, i: &Instruction, groups: &[Vec<i64>]) -> i64 {
        let (replicas, partitions) = (self.hlo.replica_count(), self.hlo.num_partitions());
        let group = groups.first().map(|g| g.len() as i64);
        match group_mode(i.opcode, &i.attrs) {
            Some(GroupMode::CrossReplica) => group.unwrap_or(replicas),
            Some(GroupMode::CrossPartition) => group.unwrap_or(partitions),
            Some(GroupMode::CrossReplicaAndPartition) => group.unwrap_or(replicas).saturating_mul(partitions),
            Some(GroupMode::FlattenedId) | None => group.unwrap_or(1),
        }
    }

    /// Of one array, whose dimension is split and joined; of several they are blocks, one for each device.
    pub(super) fn all_to_all(&mut self, i: &Instruction) -> Export<Leaves> {
        let mut properties = self.collective_properties(i)?;
        let groups = self.groups(i)?;
        if i.attrs.ints(AttrKey::Dimensions).is_some() {
            let d = self.dimension(i)?;
            let count = self.group_size(i, &groups);
            let (dimension, count) = (self.int(d), self.int(count));
            properties.extend([
                ("split_dimension", dimension),
                ("concat_dimension", dimension),
                ("split_count", count),
            ]);
            let types = self.leaf_types(&i.shape)?;
            return self.each(i, "stablehlo.all_to_all", &types, &properties);
        }
        let operands = self.operands(i);
        let Some(Shape::Array(block)) = i.operands().first().map(|&o| &self.hlo.instr(o).shape) else {
            return self.refuse("is not of arrays");
        };
        let count = operands.len() as i64;
        let mut one: Vec<i64> = block.dims.to_vec();
        one.insert(0, 1);
        let single = self.tensor(block.element_type, &one)?;
        let mut parts: Vec<ValueId> = Vec::new();
        for &operand in &operands {
            parts.push(self.one("stablehlo.reshape", &[operand], single, &[])?);
        }
        one[0] = count;
        let joined_type = self.tensor(block.element_type, &one)?;
        let zero = self.int(0);
        let joined = self.one("stablehlo.concatenate", &parts, joined_type, &[("dimension", zero)])?;
        let count = self.int(count);
        properties.extend([("split_dimension", zero), ("concat_dimension", zero), ("split_count", count)]);
        let exchanged = self.one("stablehlo.all_to_all", &[joined], joined_type, &properties)?;
        let last = self.last;
        let (rank, mut leaves) = (one.len(), Leaves::new());
        let ty = self.tensor(block.element_type, &block.dims)?;
        for n in 0..operands.len() as i64 {
            let (mut start, mut limit) = (vec![0; rank], one.clone());
            (start[0], limit[0]) = (n, n + 1);
            let (start, limit, strides) = (self.ints(&start), self.ints(&limit), self.ints(&vec![1; rank]));
            let part = self.one(
                "stablehlo.slice",
                &[exchanged],
                single,
                &[("start_indices", start), ("limit_indices", limit), ("strides", strides)],
            )?;
            leaves.push(self.one("stablehlo.reshape", &[part], ty, &[])?);
        }
        self.last = last;
        Ok(leaves)
    }
}
