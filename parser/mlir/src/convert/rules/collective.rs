//! Collectives and transfers between devices.

use super::super::cx::{Convert, Converter};
use super::{Kind, Tensor, same_shape};
use crate::ir::{Attribute, DYNAMIC, OpId, Signedness, Type};

/// How the numbers in groups name devices.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Replicas,
    Partitions,
    /// Groups of replicas, each with all partitions.
    Both,
    Devices,
}

/// Numbers of the constraints of groups: unique, of a given count, in range, and of devices by number.
struct Numbers {
    unique: &'static str,
    size: &'static str,
    range: &'static str,
    ids: &'static str,
}

/// Groups of devices, as far as an operation lists them.
struct Groups {
    rows: Vec<Vec<i64>>,
    mode: Mode,
}

impl<'m> Converter<'m> {
    /// How many devices of a kind the module says that there are.
    fn declared(&self, mode: Mode) -> Option<i64> {
        let of = |name: &str| match self.m.attr(self.m.top()?, name).map(|a| self.m.get_attribute(a)) {
            Some(Attribute::Integer { value, .. }) => i64::try_from(*value).ok().filter(|&n| n > 0),
            _ => None,
        };
        let (replicas, partitions) = (of("mhlo.num_replicas"), of("mhlo.num_partitions"));
        match mode {
            Mode::Replicas | Mode::Both => replicas,
            Mode::Partitions => partitions,
            Mode::Devices => replicas?.checked_mul(partitions?),
        }
    }

    /// The groups of a collective; `None` where it lists none, which is all devices.
    fn groups(&self, op: OpId, channel_is: Mode, numbers: &Numbers) -> Convert<Option<Groups>> {
        let channel = self.part_int(op, "channel_handle", "handle") > 0;
        let ids = self.bool_or(op, "use_global_device_ids", false)?;
        if !numbers.ids.is_empty() {
            self.hold(op, numbers.ids, channel || !ids, || {
                "`use_global_device_ids` without a channel".to_owned()
            })?;
        }
        let mode = match (channel, ids) {
            (true, true) => Mode::Devices,
            (true, false) => channel_is,
            (false, _) => Mode::Replicas,
        };
        let rows = self.listed_groups(op)?;
        let rows: Vec<Vec<i64>> = rows.into_iter().map(|row| row.to_vec()).collect();
        let mut all: Vec<i64> = rows.iter().flatten().copied().collect();
        if all.is_empty() {
            return Ok(None);
        }
        all.sort_unstable();
        if let Some(twice) = all.windows(2).find(|w| w[0] == w[1]) {
            return self.constraint(op, numbers.unique, format!("device {} is in groups twice", twice[0]));
        }
        let count = all.len() as i64;
        if !numbers.size.is_empty()
            && let Some(declared) = self.declared(mode)
        {
            self.hold(op, numbers.size, count == declared, || {
                format!("groups have {count} devices, and there are {declared}")
            })?;
        }
        // Where groups need not have all devices, and nothing says how many there are, any number may be.
        let limit = if numbers.size.is_empty() { self.declared(mode).unwrap_or(i64::MAX) } else { count };
        if let Some(&wrong) = all.iter().find(|d| !(0..limit).contains(*d)) {
            return self.constraint(op, numbers.range, format!("groups name device {wrong} of {limit}"));
        }
        Ok(Some(Groups { rows, mode }))
    }

    /// How many devices a group has, if that is known and the same of all.
    fn group_size(&self, groups: Option<&Groups>) -> Option<i64> {
        let groups = groups?;
        let first = groups.rows.first()?.len();
        if groups.rows.iter().any(|row| row.len() != first) {
            return None;
        }
        let first = first as i64;
        match groups.mode {
            Mode::Both => self.declared(Mode::Partitions)?.checked_mul(first),
            Mode::Replicas | Mode::Partitions | Mode::Devices => Some(first),
        }
    }

    pub(super) fn exchanged(
        &self,
        op: OpId,
        name: &str,
        inputs: &[Tensor<'m>],
        results: &[Tensor<'m>],
    ) -> Convert<()> {
        match name {
            "all_gather" => self.gathered_from_all(op, inputs, results),
            "all_reduce" => {
                let numbers = Numbers { unique: "C1", size: "C2", range: "C3", ids: "C4" };
                self.groups(op, Mode::Both, &numbers)?;
                let elements = self.combined(op, "C5", inputs)?;
                for (&x, &r) in inputs.iter().zip(results) {
                    self.must_have(op, "C6", r, x.dims)?;
                }
                self.elements_of_results(op, "C7", results, &elements)
            }
            "reduce_scatter" => self.scattered_to_all(op, inputs, results),
            "all_to_all" => self.all_exchanged(op, inputs, results),
            "collective_broadcast" => self.broadcast_to_all(op, inputs, results),
            "collective_reduce" => {
                let numbers = Numbers { unique: "C1", size: "", range: "C2", ids: "" };
                self.groups(op, Mode::Partitions, &numbers)?;
                let dynamic = self.bool_or(op, "has_dynamic_root", false)?;
                let values = if dynamic { &inputs[..inputs.len().saturating_sub(1)] } else { inputs };
                let fits = values.len() == results.len()
                    && values.iter().zip(results).all(|(x, r)| same_shape(x.dims, r.dims));
                self.hold(op, "C3", fits, || self.operands_and_results(inputs, results))?;
                self.combined(op, "C4", values).map(|_| ())
            }
            "collective_permute" => {
                self.pairs(op, "source_target_pairs", Mode::Partitions)?;
                for (&x, &r) in inputs.iter().zip(results) {
                    self.must_be(op, "C5", "the result", r, x)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn operands_and_results(&self, inputs: &[Tensor<'_>], results: &[Tensor<'_>]) -> String {
        let list = |all: &[Tensor<'_>]| all.iter().map(|&t| self.show(t)).collect::<Vec<_>>().join(", ");
        format!("operands are ({}), results ({})", list(inputs), list(results))
    }

    /// The computation of a collective, which combines elements of all operands.
    fn combined(&self, op: OpId, number: &str, inputs: &[Tensor<'m>]) -> Convert<Vec<crate::ir::TypeId>> {
        let mut elements = Vec::new();
        for &x in inputs {
            let one = self.reducer(op, number, 0, &[x])?;
            elements.extend(one);
        }
        Ok(elements)
    }

    /// Operands of a collective along a dimension: it is one of theirs.
    fn along(&self, op: OpId, number: &str, what: &str, d: i64, inputs: &[Tensor<'m>]) -> Convert<()> {
        for x in inputs {
            let rank = x.dims.len() as i64;
            self.hold(op, number, (0..rank).contains(&d), || format!("{what} dimension {d} of rank {rank}"))?;
        }
        Ok(())
    }

    fn gathered_from_all(&self, op: OpId, inputs: &[Tensor<'m>], results: &[Tensor<'m>]) -> Convert<()> {
        let d = self.int(op, "all_gather_dim")?;
        self.along(op, "C1", "gathered", d, inputs)?;
        let numbers = Numbers { unique: "C2", size: "C3", range: "C4", ids: "C5" };
        let groups = self.groups(op, Mode::Both, &numbers)?;
        let size = self.group_size(groups.as_ref());
        for (&x, &r) in inputs.iter().zip(results) {
            let mut dims = x.dims.to_vec();
            let at = d as usize;
            dims[at] = match size {
                Some(n) if dims[at] != DYNAMIC => dims[at].saturating_mul(n),
                _ => DYNAMIC,
            };
            self.must_have(op, "C6", r, &dims)?;
            self.same_elements(op, "C6", x, r)?;
        }
        Ok(())
    }

    fn scattered_to_all(&self, op: OpId, inputs: &[Tensor<'m>], results: &[Tensor<'m>]) -> Convert<()> {
        let d = self.int(op, "scatter_dimension")?;
        self.along(op, "C2", "scattered", d, inputs)?;
        let numbers = Numbers { unique: "C3", size: "C4", range: "C5", ids: "C6" };
        let groups = self.groups(op, Mode::Both, &numbers)?;
        let size = self.group_size(groups.as_ref());
        for &x in inputs {
            let n = x.dims[d as usize];
            self.hold(op, "C1", n == DYNAMIC || size.is_none_or(|by| n % by == 0), || {
                format!("dimension {d} of {} is not split among {}", self.show(x), size.unwrap_or(0))
            })?;
        }
        let elements = self.combined(op, "C7", inputs)?;
        for (&x, &r) in inputs.iter().zip(results) {
            let mut dims = x.dims.to_vec();
            let at = d as usize;
            dims[at] = match size {
                Some(by) if dims[at] != DYNAMIC => dims[at] / by,
                _ => DYNAMIC,
            };
            self.must_have(op, "C8", r, &dims)?;
        }
        self.elements_of_results(op, "C9", results, &elements)
    }

    fn all_exchanged(&self, op: OpId, inputs: &[Tensor<'m>], results: &[Tensor<'m>]) -> Convert<()> {
        let (split, concat) = (self.int(op, "split_dimension")?, self.int(op, "concat_dimension")?);
        let count = self.int(op, "split_count")?;
        self.along(op, "C1", "split", split, inputs)?;
        self.along(op, "C3", "joined", concat, inputs)?;
        self.hold(op, "C4", count > 0, || format!("a split into {count} parts"))?;
        for x in inputs {
            let n = x.dims[split as usize];
            self.hold(op, "C2", n == DYNAMIC || n % count == 0, || {
                format!("dimension {split} of {} is not split into {count} parts", self.show(*x))
            })?;
        }
        let numbers = Numbers { unique: "C5", size: "C6", range: "C7", ids: "" };
        let groups = self.groups(op, Mode::Partitions, &numbers)?;
        let size = self.group_size(groups.as_ref());
        self.hold(op, "C8", size.is_none_or(|n| n == count), || {
            format!("groups of {} and a split into {count} parts", size.unwrap_or(0))
        })?;
        for (&x, &r) in inputs.iter().zip(results) {
            let mut dims = x.dims.to_vec();
            if split != concat {
                for (d, grows) in [(split as usize, false), (concat as usize, true)] {
                    if dims[d] != DYNAMIC {
                        dims[d] = if grows { dims[d].saturating_mul(count) } else { dims[d] / count };
                    }
                }
            }
            self.must_have(op, "C9", r, &dims)?;
            self.same_elements(op, "C9", x, r)?;
        }
        Ok(())
    }

    fn broadcast_to_all(&self, op: OpId, inputs: &[Tensor<'m>], results: &[Tensor<'m>]) -> Convert<()> {
        let numbers = Numbers { unique: "C1", size: "", range: "C2", ids: "" };
        let groups = self.groups(op, Mode::Partitions, &numbers)?;
        let dynamic = self.bool_or(op, "has_dynamic_root", false)?;
        let of_types = if dynamic { "C4" } else { "C3" };
        self.hold(op, of_types, inputs.len() > usize::from(dynamic), || {
            format!("{} operands", inputs.len())
        })?;
        let values = &inputs[..inputs.len() - usize::from(dynamic)];
        self.hold(op, "C5", results.len() == values.len(), || self.operands_and_results(inputs, results))?;
        for (&x, &r) in values.iter().zip(results) {
            self.must_be(op, of_types, "the result", r, x)?;
        }
        if !dynamic {
            return Ok(());
        }
        let root = inputs[values.len()];
        let word = Type::Integer { width: 32, sign: Signedness::Signless };
        let fits = same_shape(root.dims, &[values.len() as i64]) && *self.m.get_type(root.element) == word;
        self.hold(op, "C4", fits, || format!("the roots are {}", self.show(root)))?;
        let known = self.operand_values(op).last().and_then(|v| self.known.get(v));
        if let (Some(roots), Some(size)) = (known, self.group_size(groups.as_ref())) {
            self.hold(op, "C6", roots.iter().all(|r| (0..size).contains(r)), || {
                format!("roots {roots:?} of groups of {size}")
            })?;
        }
        Ok(())
    }

    /// Pairs of devices: two numbers each, no source and no target twice, in range.
    fn pairs(&self, op: OpId, name: &str, channel_is: Mode) -> Convert<()> {
        let Some(all) = self.ints_of_attr(op, name) else { return Ok(()) };
        let two = self.dims_of_attr(op, name).is_none_or(|d| matches!(*d, [0, _] | [_, 2] | [0]));
        self.hold(op, "C1", two && all.len().is_multiple_of(2), || format!("`{name}` is no list of pairs"))?;
        for (side, number) in ["C2", "C3"].into_iter().enumerate() {
            let mut ids: Vec<i64> = all.chunks(2).map(|pair| pair[side]).collect();
            ids.sort_unstable();
            if let Some(twice) = ids.windows(2).find(|w| w[0] == w[1]) {
                let what = ["source", "target"][side];
                return self.constraint(op, number, format!("device {} is the {what} twice", twice[0]));
            }
        }
        let channel = self.part_int(op, "channel_handle", "handle") > 0;
        let limit = self.declared(if channel { channel_is } else { Mode::Replicas });
        match all.iter().find(|d| **d < 0 || limit.is_some_and(|n| **d >= n)) {
            Some(wrong) => {
                let of = limit.map_or(String::new(), |n| format!(" of {n}"));
                self.constraint(op, "C4", format!("device {wrong}{of}"))
            }
            None => Ok(()),
        }
    }

    /// `send` and `recv`.
    pub(super) fn transferred(&self, op: OpId, name: &str) -> Convert<()> {
        self.pairs(op, "source_target_pairs", Mode::Partitions)?;
        let host = self.bool_or(op, "is_host_transfer", false)?;
        // 0 is what writers give that do not say it.
        let kind = self.part_int(op, "channel_handle", "type");
        let fits = match (host, name) {
            (false, _) => matches!(kind, 0 | 1),
            (true, "send") => matches!(kind, 0 | 2),
            (true, _) => matches!(kind, 0 | 2 | 3),
        };
        self.hold(op, "C5", fits, || {
            format!(
                "a channel of type {kind}, {} the host",
                if host { "to or from" } else { "not to or from" }
            )
        })
    }

    /// That the type of a comparison fits the elements.
    pub(super) fn compared_as(&self, op: OpId, x: Tensor<'m>) -> Convert<()> {
        let Some(word) = self.word(op, "compare_type") else { return Ok(()) };
        let fits = match (word, self.kind_of(x.element)) {
            ("NOTYPE", _) | (_, None) => true,
            ("FLOAT", Some(kind)) => matches!(kind, Kind::Float | Kind::Complex),
            ("TOTALORDER", Some(kind)) => kind == Kind::Float,
            ("SIGNED", Some(kind)) => kind == Kind::Signed,
            ("UNSIGNED", Some(kind)) => matches!(kind, Kind::Unsigned | Kind::Boolean),
            _ => true,
        };
        self.hold(op, "C3", fits, || format!("{word} of {}", self.show(x)))
    }
}
