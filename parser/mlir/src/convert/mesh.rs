//! Groups of devices that are given by the axes of a mesh.

use hlo::attrs::sharding::MeshDevices;
use hlo::attrs::{AxisRef, Ints, Mesh, MeshAxes, ReplicaGroups};
use hlo::shardy;

use super::cx::{Convert, Converter};
use crate::ir::{AttrId, Attribute, OpId};

impl<'m> Converter<'m> {
    /// The groups of a collective: rows of device ids, or axes of a mesh.
    pub(super) fn replica_groups(&self, op: OpId) -> Convert<ReplicaGroups> {
        let Some(along @ Attribute::Dialect { .. }) = self.attr(op, "replica_groups") else {
            return Ok(ReplicaGroups::Lists(self.rows(op, "replica_groups")?));
        };
        let mesh = self.named(along, "mesh").map(|id| self.m.get_attribute(id));
        let mesh = match mesh {
            Some(Attribute::Symbol { root, .. }) => self.mesh_of_symbol(self.m.text(*root)),
            Some(attribute) => self.mesh_of(attribute),
            None => None,
        };
        let axes = self.named(along, "axes").and_then(|id| self.parts_of(id, |axis| self.axis_ref(axis)));
        let (Some(mesh), Some(axes)) = (mesh, axes) else {
            return self.unsupported(op, "groups along axes of a mesh that is not known");
        };
        if mesh.groups_along(&axes).is_none() {
            let names: Vec<&str> = axes.iter().map(|axis| &*axis.name).collect();
            return self.unsupported(op, format!("the mesh has no groups along {}", names.join(", ")));
        }
        Ok(ReplicaGroups::Mesh(Box::new(MeshAxes { mesh, axes })))
    }

    /// The groups of a collective as lists of ids; those of a mesh one by one.
    pub(super) fn listed_groups(&self, op: OpId) -> Convert<Vec<Ints>> {
        let groups = self.replica_groups(op)?.expand().unwrap_or_default();
        Ok(groups.into_iter().map(Ints::from).collect())
    }

    /// A mesh of the module: Shardy's, or what an operation of that name has as `stablehlo.mesh`.
    fn mesh_of_symbol(&self, symbol: &str) -> Option<Mesh> {
        let of_shardy = shardy::meshes(shardy::meshes_text(&self.out)).unwrap_or_default();
        if let Some((_, mesh)) = of_shardy.into_iter().find(|(name, _)| **name == *symbol) {
            return Some(mesh);
        }
        let m = self.m;
        let named = |&&op: &&OpId| self.string(op, "sym_name") == Some(symbol);
        let op = *m.body(m.top()?).iter().find(named)?;
        self.mesh_of(self.attr(op, "stablehlo.mesh")?)
    }

    /// `#stablehlo.mesh<axes = [...], device_ids = ...>`, or a dictionary of the same parts.
    fn mesh_of(&self, attribute: &'m Attribute) -> Option<Mesh> {
        let axes = self.parts_of(self.named(attribute, "axes")?, |axis| {
            let size = match self.m.get_attribute(self.named(axis, "size")?) {
                Attribute::Integer { value, .. } => i64::try_from(*value).ok()?,
                _ => return None,
            };
            Some((self.axis_name(axis)?, size))
        })?;
        let device_ids = match self.named(attribute, "device_ids") {
            None => None,
            Some(ids) => Some(self.ints_of(ids)?).filter(|ids| !ids.is_empty()).map(MeshDevices::List),
        };
        Some(Mesh { axes, device_ids, maximal: false })
    }

    /// `#stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>`
    fn axis_ref(&self, axis: &'m Attribute) -> Option<AxisRef> {
        let sub_axis = match self.named(axis, "sub_axis_info") {
            None => None,
            Some(pair) => Some(<[i64; 2]>::try_from(self.ints_of(pair)?).ok()?.into()),
        };
        Some(AxisRef { name: self.axis_name(axis)?, sub_axis })
    }

    /// A parameter of a record, or an entry of a dictionary.
    fn named(&self, attribute: &Attribute, name: &str) -> Option<AttrId> {
        match attribute {
            Attribute::Dialect { parameters: parts, .. } | Attribute::Dictionary(parts) => {
                parts.iter().find(|p| self.m.text(p.name) == name).map(|p| p.value)
            }
            _ => None,
        }
    }

    fn axis_name(&self, attribute: &Attribute) -> Option<Box<str>> {
        match self.m.get_attribute(self.named(attribute, "name")?) {
            Attribute::String { text, .. } => Some(text.as_ref().into()),
            _ => None,
        }
    }

    fn parts_of<T>(&self, list: AttrId, read: impl Fn(&'m Attribute) -> Option<T>) -> Option<Vec<T>> {
        match self.m.get_attribute(list) {
            Attribute::Array(parts) => parts.iter().map(|&part| read(self.m.get_attribute(part))).collect(),
            _ => None,
        }
    }
}
