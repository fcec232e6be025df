//! Unreduced axes of manual computations (Shardy): a value is the sum (or maximum, or minimum) of
//! what the devices along these axes have.
//!
//! XLA's partitioner makes collectives of them. Conversions between a global array and its shards have none
//! here, so the computation itself does it: of an unreduced operand the first device along the axes takes
//! the shard and the others zeros (of a maximum or minimum all devices have it); an unreduced result goes
//! through an `all-reduce`.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Ints, ReplicaGroups};
use hlo::{
    ArrayLiteral, ArrayShape, Buffer, ElementType, InstrId, Name, NewInstruction, Opcode, Shape, Span,
    shardy::{self, Written},
};

use super::cx::{Convert, Converter, list};
use super::shardy::frontend;
use crate::ir::OpId;

/// What an unreduced value is made of.
pub(super) struct Unreduced {
    /// Sets of partitions: those of one set differ along the unreduced axes alone.
    sets: Vec<Vec<i64>>,
    /// What makes the value of what they have.
    by: Opcode,
}

/// The sharding of a value.
pub(super) struct OfValue {
    /// As text, without its unreduced axes: `<@mesh, [{"x"}, {}]>`.
    pub(super) text: String,
    /// If there are such.
    pub(super) unreduced: Option<Unreduced>,
}

impl Converter<'_> {
    /// The shardings of the operands or results of a manual computation.
    pub(super) fn shardings_of_values(&self, op: OpId, text: &str, count: usize) -> Convert<Vec<OfValue>> {
        let all = match shardy::written_per_value(&self.out, text) {
            Some(all) if all.len() == count => all,
            _ => return self.structure(op, &format!("has not the shardings of {count} values: {text}")),
        };
        let one = |mut written: Written| {
            let unreduced = std::mem::take(&mut written.sharding.unreduced);
            let kind = written.sharding.unreduced_kind.take();
            if unreduced.is_empty() {
                return Ok(OfValue { text: written.to_string(), unreduced: None });
            }
            let by = match kind.as_deref() {
                None | Some("sum") => Some(Opcode::Add),
                Some("max") => Some(Opcode::Maximum),
                Some("min") => Some(Opcode::Minimum),
                Some(_) => None,
            };
            let whole = unreduced.iter().all(|axis| axis.sub_axis.is_none());
            match written.sharding.mesh.groups_along(&unreduced).filter(|_| whole).zip(by) {
                Some((sets, by)) => {
                    Ok(OfValue { text: written.to_string(), unreduced: Some(Unreduced { sets, by }) })
                }
                None => self.unsupported(op, format!("is unreduced in a way that is not known: {text}")),
            }
        };
        all.into_iter().map(one).collect()
    }

    /// A value as this partition's part of an unreduced one. Of a sum: the value where it is the first of its
    /// set, zeros elsewhere; of a maximum or minimum: the value.
    pub(super) fn part_of(&mut self, x: InstrId, unreduced: &Unreduced) -> InstrId {
        let Unreduced { sets, by } = unreduced;
        let Some(array) = self.shape_of(x).as_array().cloned() else { return x };
        // Who has the parts of the value can do without what is made here.
        let entries = vec![(shardy::UNREDUCED_PART, format!("{sets:?}"))];
        let marked = Attrs::new().with(AttrKey::FrontendAttributes, frontend(entries));
        if *by != Opcode::Add {
            return self.emit(Opcode::Copy, Shape::Array(array), &[x], marked);
        }
        let count = sets.iter().flatten().max().map_or(0, |n| n + 1);
        let is_first: Vec<bool> =
            (0..count).map(|p| sets.iter().any(|set| set.first() == Some(&p))).collect();
        let table = self
            .literal(ArrayLiteral { dims: [count].as_slice().into(), buffer: Buffer::Pred(is_first).into() });
        let of = |ty: ElementType, dims: &[i64]| Shape::Array(ArrayShape::new(ty, dims));
        let number = self.plain(Opcode::PartitionId, of(ElementType::U32, &[]), &[]);
        let attrs = Attrs::new().with(AttrKey::DynamicSliceSizes, list(&[1]));
        let one = self.emit(Opcode::DynamicSlice, of(ElementType::Pred, &[1]), &[table, number], attrs);
        let one = self.plain(Opcode::Reshape, of(ElementType::Pred, &[]), &[one]);
        let attrs = || Attrs::new().with(AttrKey::Dimensions, list(&[]));
        let mask = self.emit(Opcode::Broadcast, of(ElementType::Pred, &array.dims), &[one], attrs());
        let zero = self.literal(ArrayLiteral {
            dims: [].as_slice().into(),
            buffer: Buffer::zeros(array.element_type, 1).into(),
        });
        let zeros = self.emit(Opcode::Broadcast, Shape::Array(array.clone()), &[zero], attrs());
        self.emit(Opcode::Select, Shape::Array(array), &[mask, x, zeros], marked)
    }

    /// The value over each set.
    pub(super) fn reduced_over(&mut self, x: InstrId, unreduced: &Unreduced) -> InstrId {
        let Unreduced { sets, by } = unreduced;
        let Some(array) = self.shape_of(x).as_array().cloned() else { return x };
        let name = self.out.unique_computation_name("sum");
        let add = self.out.add_computation(name, Span::NONE);
        let scalar = Shape::Array(ArrayShape::new(array.element_type, &[]));
        let mut terms = Vec::new();
        for n in 0..2 {
            let attrs = Attrs::new().with(AttrKey::ParameterNumber, AttrValue::Int(n));
            let name: Name = self.out.unique_name("term");
            let new =
                NewInstruction { name, attrs, ..NewInstruction::new(Opcode::Parameter, scalar.clone(), &[]) };
            terms.push(self.out.append(add, new));
        }
        let name: Name = self.out.unique_name(by.name());
        let sum = NewInstruction { name, ..NewInstruction::new(*by, scalar, &terms) };
        let root = self.out.append(add, sum);
        self.out.set_root(add, root);
        let (replicas, partitions) = self.grid.unwrap_or((1, 0));
        let of_replica =
            |r: i64| sets.iter().map(move |set| set.iter().map(|p| r * partitions + p).collect::<Ints>());
        let groups = (0..replicas).flat_map(of_replica).collect();
        let attrs = Attrs::new()
            .with(AttrKey::ChannelId, AttrValue::Int(1))
            .with(AttrKey::UseGlobalDeviceIds, AttrValue::Bool(true))
            .with(AttrKey::ReplicaGroups, AttrValue::ReplicaGroups(Box::new(ReplicaGroups::Lists(groups))))
            .with(AttrKey::ToApply, AttrValue::Computation(add));
        self.emit(Opcode::AllReduce, Shape::Array(array), &[x], attrs)
    }
}
