//! Which devices take part together in a collective: what [`GroupMode`] says, for the devices of a run.

use std::sync::Arc;

use hlo::attrs::collective::{GroupMode, group_mode};
use hlo::{AttrKey, Instruction};

use super::Devices;

/// The groups of one instruction.
#[derive(Debug)]
pub(crate) struct Participants {
    groups: Vec<Arc<[u32]>>,
    /// For each device its group and its rank in it.
    memberships: Vec<Option<(u32, u32)>>,
}

/// A device's part in a collective.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    /// Number of the group.
    pub(crate) group: u32,
    /// Which of the members the device is.
    pub(crate) rank: usize,
    /// The devices of the group, in the order that the program gives.
    pub(crate) members: Arc<[u32]>,
}

/// How a collective numbers its participants; `Err` says what is wrong.
fn mode_of(instr: &Instruction) -> Result<GroupMode, String> {
    group_mode(instr.opcode, &instr.attrs)
        .ok_or_else(|| "use_global_device_ids needs a channel_id".to_owned())
}

/// The number of ids that a mode counts, and what they are.
fn ids(mode: GroupMode, devices: Devices) -> (u32, &'static str) {
    match mode {
        GroupMode::CrossReplica | GroupMode::CrossReplicaAndPartition => (devices.replicas, "replica"),
        GroupMode::CrossPartition => (devices.partitions, "partition"),
        GroupMode::FlattenedId => (devices.count(), "device"),
    }
}

/// An id of a text, within those that the run has.
pub(crate) fn within(id: i64, mode: GroupMode, devices: Devices) -> Result<u32, String> {
    let (count, what) = ids(mode, devices);
    u32::try_from(id).ok().filter(|&id| id < count).ok_or_else(|| {
        let s = if count == 1 { "" } else { "s" };
        format!("there is no {what} {id}: the run has {count} {what}{s}")
    })
}

impl Participants {
    /// Of an instruction with replica groups. Errors: ids that the run does not have, or a device that occurs
    /// twice.
    pub(crate) fn of_groups(instr: &Instruction, devices: Devices) -> Result<Self, String> {
        let mode = mode_of(instr)?;
        let lists = match instr.attrs.replica_groups() {
            None => Vec::new(),
            Some(g) => g.expand().ok_or("the numbers of the replica groups do not fit together")?,
        };
        let lists =
            if lists.is_empty() { vec![(0..i64::from(ids(mode, devices).0)).collect()] } else { lists };
        let Devices { replicas, partitions } = devices;
        let mut groups: Vec<Arc<[u32]>> = Vec::new();
        for list in &lists {
            let list: Vec<u32> =
                list.iter().map(|&id| within(id, mode, devices)).collect::<Result<_, _>>()?;
            match mode {
                GroupMode::CrossReplica => groups.extend(
                    (0..partitions).map(|p| list.iter().map(|r| r * partitions + p).collect::<Arc<[u32]>>()),
                ),
                GroupMode::CrossPartition => groups.extend(
                    (0..replicas).map(|r| list.iter().map(|p| r * partitions + p).collect::<Arc<[u32]>>()),
                ),
                GroupMode::CrossReplicaAndPartition => groups.push(
                    list.iter().flat_map(|r| (0..partitions).map(move |p| r * partitions + p)).collect(),
                ),
                GroupMode::FlattenedId => groups.push(list.into()),
            }
        }
        let mut memberships = vec![None; devices.count() as usize];
        for (group, members) in groups.iter().enumerate() {
            for (rank, &device) in members.iter().enumerate() {
                if memberships[device as usize].replace((group as u32, rank as u32)).is_some() {
                    return Err(format!("device {device} is twice in the replica groups"));
                }
            }
        }
        Ok(Self { groups, memberships })
    }

    /// The group of a device and its index there; `None` if it is in no group.
    pub(crate) fn membership(&self, device: u32) -> Option<Membership> {
        let (group, rank) = self.memberships[device as usize]?;
        Some(Membership { group, rank: rank as usize, members: self.groups[group as usize].clone() })
    }
}

/// The source-target pairs of a collective that concern a device, as numbers of devices: `(number of the
/// pair, source, target)`. Errors: ids that the run does not have.
pub(crate) fn pairs(
    instr: &Instruction,
    devices: Devices,
    device: u32,
) -> Result<Vec<(u32, u32, u32)>, String> {
    let mode = match mode_of(instr)? {
        GroupMode::CrossReplica => GroupMode::CrossReplica,
        GroupMode::CrossPartition | GroupMode::CrossReplicaAndPartition | GroupMode::FlattenedId => {
            GroupMode::CrossPartition
        }
    };
    let mut found = Vec::new();
    let pairs = instr.attrs.int_lists(AttrKey::SourceTargetPairs).unwrap_or(&[]);
    for (number, pair) in pairs.iter().enumerate() {
        let &[source, target] = pair.as_slice() else {
            return Err(format!("a source-target pair has {} numbers instead of two", pair.len()));
        };
        let [source, target] = [source, target].map(|id| within(id, mode, devices));
        let (source, target) = (peer(mode, devices, device, source?), peer(mode, devices, device, target?));
        if source == device || target == device {
            found.push((number as u32, source, target));
        }
    }
    Ok(found)
}

/// The device that an id means for this device: the other coordinate is its own.
pub(crate) fn peer(mode: GroupMode, devices: Devices, device: u32, id: u32) -> u32 {
    let Devices { partitions, .. } = devices;
    match mode {
        GroupMode::CrossReplica => id * partitions + device % partitions,
        GroupMode::CrossPartition => device / partitions * partitions + id,
        GroupMode::CrossReplicaAndPartition | GroupMode::FlattenedId => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::attrs::{AttrValue, ReplicaGroups};
    use hlo::{Attrs, ElementType, Module, NewInstruction, Opcode, Shape};

    const GRID: Devices = Devices { replicas: 2, partitions: 3 };

    fn instruction(opcode: Opcode, attrs: Attrs) -> Instruction {
        let mut module = Module::new("m");
        let c = module.add_computation("c".into(), hlo::Span::NONE);
        let mut new = NewInstruction::new(opcode, Shape::scalar(ElementType::F32), &[]);
        new.attrs = attrs;
        let id = module.append(c, new);
        module.instr(id).clone()
    }

    fn groups(
        opcode: Opcode,
        lists: &[&[i64]],
        channel: bool,
        global: bool,
    ) -> Result<Vec<Vec<u32>>, String> {
        let lists = lists.iter().map(|l| l.iter().copied().collect()).collect();
        let mut attrs = Attrs::default()
            .with(AttrKey::ReplicaGroups, AttrValue::ReplicaGroups(Box::new(ReplicaGroups::Lists(lists))));
        if channel {
            attrs = attrs.with(AttrKey::ChannelId, AttrValue::Int(1));
        }
        if global {
            attrs = attrs.with(AttrKey::UseGlobalDeviceIds, AttrValue::Bool(true));
        }
        let participants = Participants::of_groups(&instruction(opcode, attrs), GRID)?;
        Ok(participants.groups.iter().map(|g| g.to_vec()).collect())
    }

    #[test]
    fn the_four_modes() {
        use Opcode::{AllReduce, AllToAll};
        assert_eq!(
            groups(AllReduce, &[&[1, 0]], false, false).unwrap(),
            [[3, 0], [4, 1], [5, 2]],
            "replicas, for each partition"
        );
        assert_eq!(
            groups(AllToAll, &[&[2, 0, 1]], true, false).unwrap(),
            [[2, 0, 1], [5, 3, 4]],
            "partitions, for each replica"
        );
        assert_eq!(groups(AllReduce, &[&[1, 0]], true, false).unwrap(), [[3, 4, 5, 0, 1, 2]]);
        assert_eq!(groups(AllReduce, &[&[5, 0], &[1]], true, true).unwrap(), [vec![5, 0], vec![1]]);
        assert_eq!(groups(AllReduce, &[], true, false).unwrap(), [[0, 1, 2, 3, 4, 5]]);
        assert_eq!(groups(AllToAll, &[], true, false).unwrap(), [[0, 1, 2], [3, 4, 5]]);
    }

    #[test]
    fn what_does_not_fit() {
        let of = |lists: &[&[i64]], channel| groups(Opcode::AllReduce, lists, channel, false).unwrap_err();
        assert_eq!(of(&[&[0, 2]], false), "there is no replica 2: the run has 2 replicas");
        assert_eq!(of(&[&[-1]], false), "there is no replica -1: the run has 2 replicas");
        assert_eq!(of(&[&[0], &[0]], true), "device 0 is twice in the replica groups");
    }
}
