//! Collectives.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Ints, ReplicaGroups};
use hlo::{InstrId, Opcode, Shape};

use super::cx::{Convert, Converter, list};
use crate::ir::{Attribute, OpId, Type};

impl Converter<'_> {
    /// Rows of a tensor of rank 2; entries of -1 fill up shorter rows.
    pub(super) fn rows(&self, op: OpId, name: &str) -> Convert<Vec<Ints>> {
        let Some(Attribute::Elements { ty, .. }) = self.attr(op, name) else { return Ok(Vec::new()) };
        let columns = match self.m.get_type(*ty) {
            Type::Tensor { dims, .. } => match **dims {
                [_, columns] => usize::try_from(columns).unwrap_or(0),
                [columns] => usize::try_from(columns).unwrap_or(0),
                [..] => 0,
            },
            _ => 0,
        };
        let all = self.ints(op, name)?;
        if columns == 0 {
            return Ok(Vec::new());
        }
        Ok(all.chunks(columns).map(|row| row.iter().copied().filter(|&n| n != -1).collect()).collect())
    }

    pub(super) fn collective(&mut self, op: OpId, name: &str) -> Convert<()> {
        let opcode = match name {
            "all_gather" => Opcode::AllGather,
            "all_reduce" => Opcode::AllReduce,
            "all_to_all" => Opcode::AllToAll,
            "collective_broadcast" => Opcode::CollectiveBroadcast,
            "collective_permute" => Opcode::CollectivePermute,
            "collective_reduce" => Opcode::CollectiveReduce,
            "reduce_scatter" => Opcode::ReduceScatter,
            _ => return self.unsupported(op, "no collective of HLO"),
        };
        let operands = self.operands(op)?;
        let takes = |key: AttrKey| opcode.attrs().iter().any(|s| s.key == key);
        let mut attrs = Attrs::new();
        let channel = self.part_int(op, "channel_handle", "handle");
        if channel > 0 {
            attrs.set(AttrKey::ChannelId, AttrValue::Int(channel));
        }
        if takes(AttrKey::ReplicaGroups) {
            let groups = self.groups_of_grid(op, &mut attrs)?;
            attrs.set(AttrKey::ReplicaGroups, AttrValue::ReplicaGroups(Box::new(groups)));
        }
        if takes(AttrKey::UseGlobalDeviceIds)
            && attrs.get(AttrKey::UseGlobalDeviceIds).is_none()
            && self.bool_or(op, "use_global_device_ids", false)?
        {
            attrs.set(AttrKey::UseGlobalDeviceIds, AttrValue::Bool(true));
        }
        if takes(AttrKey::SourceTargetPairs) {
            let pairs = self.rows(op, "source_target_pairs")?;
            attrs.set(AttrKey::SourceTargetPairs, AttrValue::IntLists(pairs.into()));
        }
        if takes(AttrKey::HasDynamicRoot) && self.bool_or(op, "has_dynamic_root", false)? {
            attrs.set(AttrKey::HasDynamicRoot, AttrValue::Bool(true));
        }
        match opcode {
            Opcode::AllGather => {
                let dimension = self.int(op, "all_gather_dim")?;
                attrs.set(AttrKey::Dimensions, list(&[dimension]));
            }
            Opcode::ReduceScatter => {
                let dimension = self.int(op, "scatter_dimension")?;
                attrs.set(AttrKey::Dimensions, list(&[dimension]));
            }
            Opcode::AllToAll => return self.all_to_all(op, attrs),
            _ => {}
        }
        if takes(AttrKey::ToApply) {
            attrs.set(AttrKey::ToApply, AttrValue::Computation(self.region(op, 0)?));
        }
        let shape = self.packed_shape(op)?;
        let id = self.emit(opcode, shape, &operands, attrs);
        self.bind_tuple(op, id)
    }

    /// The groups of a collective. Those of replicas with all their partitions are laid out in another order
    /// in StableHLO, replicas of one partition first: where the grid is known, they are listed by devices.
    fn groups_of_grid(&self, op: OpId, attrs: &mut Attrs) -> Convert<ReplicaGroups> {
        let groups = self.replica_groups(op)?;
        let both = matches!(
            super::regions::short(self.m.op_name(op)),
            "all_gather" | "all_reduce" | "reduce_scatter"
        );
        let channel = self.part_int(op, "channel_handle", "handle") > 0;
        let Some((replicas, partitions)) = self.grid.filter(|g| both && channel && g.0 > 1 && g.1 > 1) else {
            return Ok(groups);
        };
        if self.bool_or(op, "use_global_device_ids", false)? {
            return Ok(groups);
        }
        attrs.set(AttrKey::UseGlobalDeviceIds, AttrValue::Bool(true));
        let groups = self.listed_groups(op)?;
        let every = [(0..replicas).collect()];
        let of_replicas = if groups.is_empty() { &every[..] } else { &groups[..] };
        let devices = |group: &Ints| {
            (0..partitions).flat_map(|p| group.iter().map(move |&r| r * partitions + p)).collect()
        };
        Ok(ReplicaGroups::Lists(of_replicas.iter().map(devices).collect()))
    }

    fn all_to_all(&mut self, op: OpId, attrs: Attrs) -> Convert<()> {
        let operands = self.operands(op)?;
        let shapes = self.result_shapes(op)?;
        if operands.is_empty() || operands.len() != shapes.len() {
            return self.structure(op, "has not as many results as operands");
        }
        for (i, (x, shape)) in operands.into_iter().zip(shapes).enumerate() {
            let id = self.all_to_all_of(op, attrs.clone(), x, shape)?;
            self.bind(op, i, id);
        }
        Ok(())
    }

    fn all_to_all_of(&mut self, op: OpId, mut attrs: Attrs, x: InstrId, shape: Shape) -> Convert<InstrId> {
        let (split, concat) = (self.int(op, "split_dimension")?, self.int(op, "concat_dimension")?);
        let count = self.int(op, "split_count")?;
        let dims = self.dims_of(x);
        let rank = dims.len() as i64;
        if !(0..rank).contains(&split) {
            return self.constraint(op, "C1", format!("split dimension {split} of rank {rank}"));
        }
        if !(0..rank).contains(&concat) {
            return self.constraint(op, "C3", format!("concat dimension {concat} of rank {rank}"));
        }
        if count < 1 || dims[split as usize] % count != 0 {
            return self.constraint(op, "C2", format!("dimension {split} is not split into {count} parts"));
        }
        if split == concat {
            attrs.set(AttrKey::Dimensions, list(&[split]));
            return Ok(self.emit(Opcode::AllToAll, shape, &[x], attrs));
        }
        // HLO's exchange of one array splits and joins along one dimension: the parts are made a dimension of
        // their own, which is joined into the other afterwards.
        let ty = self.type_of(x);
        let (split, concat) = (split as usize, concat as usize);
        let mut parted = dims.clone();
        parted[split] /= count;
        parted.insert(split, count);
        let parts = self.plain(Opcode::Reshape, Shape::array(ty, &parted), &[x]);
        attrs.set(AttrKey::Dimensions, list(&[split as i64]));
        let exchanged = self.emit(Opcode::AllToAll, Shape::array(ty, &parted), &[parts], attrs);
        let mut order: Vec<i64> = (0..parted.len() as i64).filter(|&d| d != split as i64).collect();
        order.insert(concat, split as i64);
        let moved: Vec<i64> = order.iter().map(|&d| parted[d as usize]).collect();
        let permuted = Attrs::new().with(AttrKey::Dimensions, list(&order));
        let transposed = self.emit(Opcode::Transpose, Shape::array(ty, &moved), &[exchanged], permuted);
        Ok(self.plain(Opcode::Reshape, shape, &[transposed]))
    }
}
