//! On how many devices a program runs: what the command line says, else what the module's header says, else
//! what the program names in replica groups, source-target pairs and shardings.
//!
//! A program that names a device which the run does not have cannot run: that is an error here, which names
//! the option that gives it the device.
//!
//! Replica groups and pairs count what their [`GroupMode`] numbers: replicas, partitions, or all devices,
//! which are partitions of as many replicas as are known. Collectives without groups, in which all take part,
//! say by their sizes how many these are. Shardings number partitions. `partition-id` and `replica-id` alone
//! say nothing.

use hlo::attrs::collective::{GroupMode, group_mode, send_recv_pairs};
use hlo::attrs::sharding::devices_with;
use hlo::{ArrayShape, AttrKey, Instruction, Module, Opcode};
use hlo_interp::Devices;
use hlo_interp::device::MAX_DEVICES;

use hlo_system::exit::Failure;

/// The devices of a run, and where their number is from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chosen {
    /// How many.
    pub devices: Devices,
    /// `inferred from the replica groups of %sum`; `None` if the number is given, or one.
    pub inferred: Option<String>,
}

impl Chosen {
    /// `4 partitions (inferred from the sharding of %x)`; `None` if nothing was inferred.
    pub fn describe(&self) -> Option<String> {
        self.inferred.as_ref().map(|from| format!("{} ({from})", counted(self.devices)))
    }
}

/// `2 replicas of 4 partitions`, `4 partitions`.
fn counted(devices: Devices) -> String {
    match (devices.replicas(), devices.partitions()) {
        (1, 1) => "1 device".to_owned(),
        (1, partitions) => format!("{partitions} partitions"),
        (replicas, 1) => format!("{replicas} replicas"),
        (replicas, partitions) => format!("{replicas} replicas of {partitions} partitions"),
    }
}

/// The devices that the header asks for, unless something else is given, whatever the program names. Errors:
/// [`hlo_system::exit::Exit::Usage`] if these are none or too many.
pub fn stated(module: &Module, replicas: Option<u32>, partitions: Option<u32>) -> Result<Devices, Failure> {
    let replicas = replicas.map_or(module.replica_count(), i64::from);
    let partitions = partitions.map_or(module.num_partitions(), i64::from);
    checked(replicas, partitions)
}

fn checked(replicas: i64, partitions: i64) -> Result<Devices, Failure> {
    Devices::new(replicas, partitions).ok_or_else(|| {
        Failure::usage(format!(
            "{replicas} replicas of {partitions} partitions: a run has 1 to {MAX_DEVICES} devices"
        ))
    })
}

/// The devices of a run: given, of the header, or inferred. Errors: [`hlo_system::exit::Exit::Usage`] if
/// these are none, too many, or fewer than collectives name.
pub fn choose(module: &Module, replicas: Option<u32>, partitions: Option<u32>) -> Result<Chosen, Failure> {
    let needs = Needs::of(module);
    let replicas_stated =
        replicas.map(i64::from).or(module.header.replica_count.map(|_| module.replica_count()));
    let partitions_stated =
        partitions.map(i64::from).or(module.header.num_partitions.map(|_| module.num_partitions()));
    if replicas_stated == Some(0) || partitions_stated == Some(0) {
        checked(replicas_stated.unwrap_or(1), partitions_stated.unwrap_or(1))?;
    }
    let replica_need = needs.replicas.as_ref();
    let partition_need = [&needs.sharding, &needs.partitions].into_iter().flatten().max_by_key(|n| n.count);
    let counted = |stated: Option<i64>, need: Option<&Need>| stated.or(need.map(|n| n.count)).unwrap_or(1);
    let mut replicas = counted(replicas_stated, replica_need);
    let mut partitions = counted(partitions_stated, partition_need);
    let mut from: Vec<&Need> = Vec::new();
    from.extend(replica_need.filter(|n| replicas_stated.is_none() && n.count > 1));
    from.extend(partition_need.filter(|n| partitions_stated.is_none() && n.count > 1));
    if let Some(all) = &needs.devices
        && replicas.saturating_mul(partitions) < all.count
    {
        if partitions_stated.is_none() {
            partitions = up(all.count, replicas);
            from.push(all);
        } else if replicas_stated.is_none() {
            replicas = up(all.count, partitions);
            from.push(all);
        }
    }
    let inferred = (!from.is_empty()).then(|| {
        let mut sources: Vec<&str> = from.iter().map(|need| &*need.source).collect();
        sources.dedup();
        format!("inferred from {}", sources.join(" and "))
    });
    let devices = checked(replicas, partitions).map_err(|failure| match &inferred {
        Some(from) => Failure::usage(format!(
            "{}, {from}; `--replicas N` and `--partitions N` say how many",
            failure.message
        )),
        None => failure,
    })?;
    needs.check(devices)?;
    Ok(Chosen { devices, inferred })
}

/// Writes the devices of a run into the header of a program that says nothing of them, so that they stay when
/// the program changes.
pub fn record(module: &mut Module, devices: Devices) {
    if devices.replicas() > 1 {
        module.header.replica_count.get_or_insert(i64::from(devices.replicas()));
    }
    if devices.partitions() > 1 {
        module.header.num_partitions.get_or_insert(i64::from(devices.partitions()));
    }
}

/// The smallest number of devices, and what names the last one of them.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Need {
    count: i64,
    /// `the replica groups of %sum`
    source: String,
}

/// The numbers of devices that a program names.
#[derive(Default, Debug)]
struct Needs {
    replicas: Option<Need>,
    partitions: Option<Need>,
    /// Replicas times partitions.
    devices: Option<Need>,
    /// Partitions, which a program needs only once it is partitioned.
    sharding: Option<Need>,
}

impl Needs {
    fn of(module: &Module) -> Needs {
        let mut needs = Needs::default();
        for id in module.computations().iter().flat_map(|&c| module.instructions(c)) {
            let instr = module.instr(id);
            needs.add_collective(module, instr);
            if let Some(count) = instr.attrs.sharding().and_then(|s| s.device_count()) {
                raise(&mut needs.sharding, count, || format!("the sharding of %{}", instr.name));
            }
        }
        needs
    }

    fn add_collective(&mut self, module: &Module, instr: &Instruction) {
        let sends = matches!(instr.opcode, Opcode::Send | Opcode::Recv);
        let pairs: Option<Vec<i64>> = if sends && !instr.attrs.bool(AttrKey::IsHostTransfer) {
            send_recv_pairs(&instr.attrs).map(|pairs| pairs.concat())
        } else {
            let pairs = instr.attrs.int_lists(AttrKey::SourceTargetPairs);
            pairs.map(|pairs| pairs.iter().flat_map(|p| p.iter().copied()).collect())
        };
        if let Some(ids) = pairs {
            let Some(count) = devices_with(ids.into_iter()) else { return };
            let channel = instr.attrs.int(AttrKey::ChannelId).is_some_and(|c| c > 0);
            let counted = if channel { &mut self.partitions } else { &mut self.replicas };
            raise(counted, count, || format!("the source-target pairs of %{}", instr.name));
        } else if instr.opcode.flags().collective
            && let Some(mode) = group_mode(instr.opcode, &instr.attrs)
        {
            let groups = instr.attrs.replica_groups().and_then(|g| g.expand()).unwrap_or_default();
            if let Some(count) = devices_with(groups.into_iter().flatten()) {
                let counted = match mode {
                    GroupMode::CrossReplica | GroupMode::CrossReplicaAndPartition => &mut self.replicas,
                    GroupMode::CrossPartition => &mut self.partitions,
                    GroupMode::FlattenedId => &mut self.devices,
                };
                raise(counted, count, || format!("the replica groups of %{}", instr.name));
            } else if let Some(count) = participants(module, instr) {
                let counted = match mode {
                    GroupMode::CrossReplica => &mut self.replicas,
                    GroupMode::CrossPartition => &mut self.partitions,
                    GroupMode::CrossReplicaAndPartition | GroupMode::FlattenedId => &mut self.devices,
                };
                raise(counted, count, || format!("the sizes of %{}", instr.name));
            }
        }
    }

    /// Whether a run on these devices has all that collectives name.
    fn check(&self, devices: Devices) -> Result<(), Failure> {
        let (replicas, partitions) = (i64::from(devices.replicas()), i64::from(devices.partitions()));
        let all = i64::from(devices.count());
        let missing = |need: &Need, what: &str, has: String, flag: &str, wanted: i64| {
            Err(Failure::usage(format!(
                "there is no {what} {}, which {} name: the run has {has}; `{flag} {wanted}` gives it enough",
                need.count - 1,
                need.source
            )))
        };
        let plural = |n: i64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        match (&self.replicas, &self.partitions, &self.devices) {
            (Some(need), _, _) if need.count > replicas => {
                missing(need, "replica", plural(replicas, "replica"), "--replicas", need.count)
            }
            (_, Some(need), _) if need.count > partitions => {
                missing(need, "partition", plural(partitions, "partition"), "--partitions", need.count)
            }
            (_, _, Some(need)) if need.count > all => {
                let wanted = up(need.count, replicas);
                missing(need, "device", plural(all, "device"), "--partitions", wanted)
            }
            _ => Ok(()),
        }
    }
}

/// How many devices are in the one group of a collective without groups, by its sizes: shards that are gathered
/// or scattered along a dimension, and operands that each go to another device.
fn participants(module: &Module, instr: &Instruction) -> Option<i64> {
    let [first, ..] = *instr.operands() else { return None };
    if instr.opcode == Opcode::AllToAll {
        return i64::try_from(instr.operands().len()).ok().filter(|&n| n > 1);
    }
    let gathers = matches!(instr.opcode, Opcode::AllGather | Opcode::AllGatherStart);
    if !gathers && instr.opcode != Opcode::ReduceScatter {
        return None;
    }
    let &[dimension] = instr.attrs.ints(AttrKey::Dimensions)? else { return None };
    // Of several operands each has a result in a tuple, and a start gives its operands beside these.
    let mut result = &instr.shape;
    if instr.opcode == Opcode::AllGatherStart {
        result = result.as_tuple()?.get(1)?;
    }
    let result = result.as_array().or_else(|| result.as_tuple()?.first()?.as_array())?;
    let size = |array: &ArrayShape| array.dims.get(usize::try_from(dimension).ok()?).copied();
    let (operand, result) = (size(module.instr(first).shape.as_array()?)?, size(result)?);
    let (whole, shard) = if gathers { (result, operand) } else { (operand, result) };
    (shard > 0 && whole > shard && whole % shard == 0).then(|| whole / shard)
}

/// The quotient of positive numbers, rounded up.
fn up(count: i64, by: i64) -> i64 {
    let by = by.max(1);
    count.saturating_add(by - 1) / by
}

fn raise(need: &mut Option<Need>, count: i64, source: impl FnOnce() -> String) {
    if need.as_ref().is_none_or(|n| n.count < count) {
        *need = Some(Need { count, source: source() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The replicas and partitions of a program, and where they are from.
    fn chosen(
        header: &str,
        body: &str,
        given: (Option<u32>, Option<u32>),
    ) -> Result<(u32, u32, String), String> {
        let add = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }";
        let text = format!("HloModule m{header}\n{add}\nENTRY e {{\n  x = f32[8] parameter(0)\n{body}\n}}\n");
        let (module, found) = crate::frontend::parse_text(&text);
        let module = module.unwrap_or_else(|| panic!("{}", hlo::diag::render_all(&found, "m", &text, false)));
        choose(&module, given.0, given.1)
            .map(|c| (c.devices.replicas(), c.devices.partitions(), c.inferred.unwrap_or_default()))
            .map_err(|f| f.message)
    }

    #[track_caller]
    fn infers(body: &str, replicas: u32, partitions: u32, from: &str) {
        let expected = (replicas, partitions, format!("inferred from {from}"));
        assert_eq!(chosen("", body, (None, None)), Ok(expected), "{body}");
    }

    #[test]
    fn groups_pairs_and_shardings_say_how_many() {
        let sum = |attrs: &str| format!("  ROOT r = f32[8] all-reduce(x), to_apply=add, {attrs}");
        infers(&sum("replica_groups={{0,1},{2,3}}"), 4, 1, "the replica groups of %r");
        infers(&sum("replica_groups={{1,0}}, channel_id=1"), 2, 1, "the replica groups of %r");
        let flat = "channel_id=1, use_global_device_ids=true";
        infers(&sum(&format!("replica_groups=[2,4]<=[8], {flat}")), 1, 8, "the replica groups of %r");
        infers(
            "  ROOT r = f32[8] all-to-all(x), replica_groups={{0,1,2}}, channel_id=1, dimensions={0}",
            1,
            3,
            "the replica groups of %r",
        );
        let permute =
            |attrs: &str| format!("  ROOT r = f32[8] collective-permute(x), source_target_pairs={attrs}");
        infers(&permute("{{0,3}}"), 4, 1, "the source-target pairs of %r");
        infers(&permute("{{0,3}}, channel_id=2"), 1, 4, "the source-target pairs of %r");
        for (sharding, partitions) in [
            ("devices=[2,1]<=[2]", 2),
            ("devices=[2]1,0", 2),
            ("maximal device=3", 4),
            ("devices=[1,4]<=[2,2]T(1,0)", 4),
            ("devices=[2,2]<=[4] last_tile_dim_replicate", 4),
        ] {
            let body = format!("  ROOT r = f32[8] negate(x), sharding={{{sharding}}}");
            infers(&body, 1, partitions, "the sharding of %r");
        }
    }

    #[test]
    fn sizes_of_collectives_without_groups_say_how_many() {
        let gather = |attrs: &str| format!("  ROOT r = f32[24] all-gather(x), dimensions={{0}}{attrs}");
        infers(&gather(""), 3, 1, "the sizes of %r");
        infers(&gather(", replica_groups={}, channel_id=1"), 1, 3, "the sizes of %r");
        infers(
            "  s = (f32[8], f32[16]) all-gather-start(x), dimensions={0}, replica_groups={}\n  ROOT r = f32[16] all-gather-done(s)",
            2,
            1,
            "the sizes of %s",
        );
        infers(
            "  ROOT r = f32[2] reduce-scatter(x), dimensions={0}, to_apply=add, replica_groups={}",
            4,
            1,
            "the sizes of %r",
        );
        infers("  ROOT r = (f32[8], f32[8]) all-to-all(x, x), replica_groups={}", 2, 1, "the sizes of %r");
        let given = chosen(", num_partitions=2", &gather(""), (None, None));
        assert_eq!(given, Ok((3, 2, "inferred from the sizes of %r".into())));
    }

    #[test]
    fn what_names_nothing_runs_on_one_device() {
        for body in [
            "  ROOT r = f32[8] negate(x), sharding={replicated}",
            "  ROOT r = f32[8] negate(x), sharding={maximal device=0}",
            "  ROOT r = u32[] partition-id()",
            "  ROOT r = f32[8] all-reduce(x), replica_groups={}, to_apply=add",
        ] {
            assert_eq!(chosen("", body, (None, None)), Ok((1, 1, String::new())), "{body}");
        }
    }

    #[test]
    fn the_header_and_the_command_line_win() {
        let sharded = "  ROOT r = f32[8] negate(x), sharding={devices=[4]<=[4]}";
        assert_eq!(chosen(", num_partitions=2", sharded, (None, None)), Ok((1, 2, String::new())));
        assert_eq!(chosen("", sharded, (None, Some(1))), Ok((1, 1, String::new())));
        let both = "  ROOT r = f32[8] all-reduce(x), to_apply=add, replica_groups=[1,8]<=[8], channel_id=1, use_global_device_ids=true";
        assert_eq!(
            chosen("", both, (Some(2), None)),
            Ok((2, 4, "inferred from the replica groups of %r".into()))
        );
        assert_eq!(
            chosen("", both, (None, Some(2))),
            Ok((4, 2, "inferred from the replica groups of %r".into()))
        );
    }

    #[test]
    fn a_device_that_is_missing_names_the_option() {
        let sum = "  ROOT r = f32[8] all-reduce(x), to_apply=add, replica_groups={{0,1,2,3}}";
        let missing = |body: &str, given| chosen("", body, given).unwrap_err();
        let why = missing(sum, (Some(2), None));
        assert_eq!(
            why,
            "there is no replica 3, which the replica groups of %r name: the run has 2 replicas; `--replicas 4` gives it enough"
        );
        let permute = "  ROOT r = f32[8] collective-permute(x), source_target_pairs={{0,5}}, channel_id=1";
        assert!(missing(permute, (None, Some(2))).contains("`--partitions 6`"));
        let flat = format!("{sum}, channel_id=1, use_global_device_ids=true");
        assert!(missing(&flat, (Some(1), Some(2))).contains("`--partitions 4`"));
        let far = "  ROOT r = f32[8] negate(x), sharding={devices=[4096]<=[4096]}";
        assert!(missing(far, (None, None)).contains("`--partitions N`"));
        assert!(missing(far, (None, Some(0))).contains("1 to 1024 devices"));
    }
}
