//! Records of StableHLO that VHLO has as attributes of their own.

use super::super::codes::vhlo;
use super::entries::{Dialect, Entries, Fallible, integer_of, integers_of, no_form, signed_list};
use super::tables::Of;
use crate::ir::{Attribute, NamedAttribute};

impl Entries<'_> {
    /// A record of StableHLO that VHLO has as an attribute. Those whose parts are attributes of operations
    /// are not here.
    pub(super) fn record(&mut self, name: &str, parameters: &[NamedAttribute]) -> Fallible<u32> {
        let m = self.m;
        let find = |key: &str| parameters.iter().find(|p| m.text(p.name) == key).map(|p| p.value);
        let needed = |key: &str| match find(key) {
            Some(value) => Ok(value),
            None => no_form(format!("#{name} lacks {key}")),
        };
        let e = match name {
            "stablehlo.output_operand_alias" => {
                let list = |key: &str| find(key).map_or(Some(Vec::new()), |v| integers_of(m, v));
                let parts =
                    (list("output_tuple_indices"), find("operand_index"), list("operand_tuple_indices"));
                let (Some(output), index, Some(operand)) = parts else {
                    return no_form(format!("#{name} has something else than lists of integers"));
                };
                let mut e = self.begin(vhlo::OUTPUT_OPERAND_ALIAS)?;
                signed_list(&mut e, &output);
                e.signed(index.and_then(|v| integer_of(m, v)).unwrap_or(0));
                signed_list(&mut e, &operand);
                e
            }
            "stablehlo.bounds" | "stablehlo.type_extensions" => {
                let Some(bounds) = integers_of(m, needed("bounds")?) else {
                    return no_form(format!("#{name} is no list of integers"));
                };
                let mut e = self.begin(vhlo::TYPE_EXTENSIONS)?;
                signed_list(&mut e, &bounds);
                e
            }
            "stablehlo.result_accuracy" => return self.accuracy(parameters),
            "stablehlo.axis_ref" => {
                let axis = self.attribute(Dialect::Vhlo, needed("name")?)?;
                let sub = match find("sub_axis_info") {
                    None => None,
                    Some(value) => match integers_of(m, value).as_deref() {
                        Some(&[pre_size, size]) => {
                            let mut e = self.begin(vhlo::SUB_AXIS)?;
                            e.signed(pre_size);
                            e.signed(size);
                            Some(self.vhlo(Of::Attributes, e))
                        }
                        _ => return no_form(format!("#{name} has a sub-axis that is no pair of integers")),
                    },
                };
                let mut e = self.begin(vhlo::AXIS_REF)?;
                e.varint(axis.into());
                e.varint(sub.is_some().into());
                sub.into_iter().for_each(|sub| e.varint(sub.into()));
                e
            }
            "stablehlo.replica_group_mesh_axes" => {
                let mesh = self.attribute(Dialect::Vhlo, needed("mesh")?)?;
                let axes = self.attribute(Dialect::Vhlo, needed("axes")?)?;
                let mut e = self.begin(vhlo::REPLICA_GROUP_MESH_AXES)?;
                e.varint(mesh.into());
                e.varint(axes.into());
                e
            }
            "stablehlo.mesh_axis" => {
                let axis = self.attribute(Dialect::Vhlo, needed("name")?)?;
                let Some(size) = integer_of(m, needed("size")?) else {
                    return no_form(format!("#{name} has a size that is no integer"));
                };
                let mut e = self.begin(vhlo::MESH_AXIS)?;
                e.varint(axis.into());
                e.signed(size);
                e
            }
            "stablehlo.mesh" => {
                let axes = self.attribute(Dialect::Vhlo, needed("axes")?)?;
                let ids = find("device_ids").map(|v| self.attribute(Dialect::Vhlo, v)).transpose()?;
                let mut e = self.begin(vhlo::MESH)?;
                e.varint(axes.into());
                e.flagged(ids.unwrap_or(0).into(), ids.is_some());
                e
            }
            _ => return no_form(format!("#{name} has no form in VHLO")),
        };
        Ok(self.vhlo(Of::Attributes, e))
    }

    /// The accuracy of an elementary function; without parameters the default one.
    pub(super) fn accuracy(&mut self, parameters: &[NamedAttribute]) -> Fallible<u32> {
        let m = self.m;
        let find =
            |key: &str| parameters.iter().find(|p| m.text(p.name) == key).map(|p| m.get_attribute(p.value));
        let float = |key: &str| match find(key) {
            None => Ok(0.0f64.to_bits()),
            Some(Attribute::Float { bits, .. }) => Ok(*bits),
            Some(Attribute::Integer { value, .. }) => Ok((*value as f64).to_bits()),
            Some(_) => no_form(format!("{key} of #stablehlo.result_accuracy is no number")),
        };
        let mode = match find("mode") {
            None => "DEFAULT",
            Some(Attribute::Enum { value, .. }) => m.text(*value),
            Some(_) => return no_form("the mode of #stablehlo.result_accuracy is none of its cases"),
        };
        let mode = self.case(vhlo::RESULT_ACCURACY_MODE, vhlo::ACCURACY_MODES, mode)?;
        let ulps = match find("ulps") {
            None => 0,
            Some(Attribute::Integer { value, .. }) => *value as i64,
            Some(_) => return no_form("ulps of #stablehlo.result_accuracy is no integer"),
        };
        let mut e = self.begin(vhlo::RESULT_ACCURACY)?;
        e.signed(float("atol")? as i64);
        e.signed(float("rtol")? as i64);
        e.signed(ulps);
        e.varint(mode.into());
        Ok(self.vhlo(Of::Attributes, e))
    }
}
