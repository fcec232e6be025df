//! Shardings of Shardy in frontend attributes, as MLIR text: what XLA keeps of them when a module leaves
//! MLIR (`xla/service/spmd/shardy/sdy_round_trip/`).

use std::fmt;

use crate::attrs::sharding::{MeshDevices, NamedDim};
use crate::attrs::{AxisRef, Mesh, NamedSharding};
use crate::module::Module;

/// The attribute of the module that says its meshes.
pub const MESHES: &str = "xla.sdy.meshes";
/// The attribute of a call, or of the change of a value for it, that says in which axes the shape is a
/// shard's.
pub const MANUAL_AXES: &str = "xla.sdy.manual_axes";

/// The attribute of what makes a device's part of an unreduced value of that value: the sets of devices whose
/// parts add up to it, as `[[0, 1], [2, 3]]`.
pub const UNREDUCED_PART: &str = "hlo.unreduced_part";

/// Meshes by name.
pub type Meshes = Vec<(Box<str>, Mesh)>;

/// The text of a module's meshes; empty if it says none.
pub fn meshes_text(module: &Module) -> &str {
    module.header.frontend_attributes.as_ref().and_then(|a| a.get(MESHES)).unwrap_or_default()
}

/// Meshes, `{mesh = #sdy.mesh<["x"=2]>, ...}`; an empty text has none. `None`: it cannot be read.
pub fn meshes(text: &str) -> Option<Meshes> {
    Reader::new(text).meshes()
}

/// Shardings of values, `#sdy.sharding_per_value<[<@mesh, [{"x"}]>, ...]>`, on these meshes.
pub fn per_value(text: &str, meshes: &[(Box<str>, Mesh)]) -> Option<Vec<NamedSharding>> {
    Some(Reader::new(text).per_value(meshes)?.into_iter().map(|one| one.sharding).collect())
}

/// The same, with what the text calls each mesh.
pub fn written_per_value(module: &Module, text: &str) -> Option<Vec<Written>> {
    Reader::new(text).per_value(&meshes(meshes_text(module))?)
}

/// A sharding as a text has it.
#[derive(Clone, PartialEq, Debug)]
pub struct Written {
    /// What it says.
    pub sharding: NamedSharding,
    /// Its mesh in text: `@mesh`, or the mesh itself.
    mesh: String,
}

impl fmt::Display for Written {
    /// `<@mesh, [{"x", ?}p1, {}], replicated={"y"}, unreduced=max{"z"}>`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axis = |axis: &AxisRef| match axis.sub_axis {
            Some((before, size)) => format!("\"{}\":({before}){size}", axis.name),
            None => format!("\"{}\"", axis.name),
        };
        let axes = |all: &[AxisRef]| all.iter().map(axis).collect::<Vec<_>>().join(", ");
        let dim = |dim: &NamedDim| {
            let mut items: Vec<String> = dim.axes.iter().map(axis).collect();
            items.extend(dim.open.then(|| "?".to_owned()));
            let priority = dim.priority.map(|n| format!("p{n}")).unwrap_or_default();
            format!("{{{}}}{priority}", items.join(", "))
        };
        let NamedSharding { dims, replicated, unreduced, unreduced_kind, .. } = &self.sharding;
        let dims: Vec<String> = dims.iter().flatten().map(dim).collect();
        write!(f, "<{}, [{}]", self.mesh, dims.join(", "))?;
        let kind = unreduced_kind.as_deref().unwrap_or_default();
        for (key, kind, all) in [("replicated", "", replicated), ("unreduced", kind, unreduced)] {
            if !all.is_empty() {
                write!(f, ", {key}={kind}{{{}}}", axes(all))?;
            }
        }
        f.write_str(">")
    }
}

/// The axes of `#sdy<manual_axes{"x", "y"}>`.
pub fn manual_axes(text: &str) -> Option<Vec<Box<str>>> {
    Reader::new(text).manual_axes()
}

/// A sharding of one value, `#sdy.sharding<@mesh, [{"x"}, {}]>`, or the only one of
/// `#sdy.sharding_per_value<[...]>`. The meshes are those of a module's header.
pub fn sharding(module: &Module, text: &str) -> Option<NamedSharding> {
    let meshes = meshes(meshes_text(module))?;
    let mut reader = Reader::new(text);
    if reader.take("#sdy.sharding_per_value").is_some() {
        let mut all = per_value(text, &meshes)?;
        return if all.len() == 1 { all.pop() } else { None };
    }
    reader.take("#sdy.sharding")?;
    Some(reader.sharding(&meshes)?.sharding)
}

/// [`per_value`] on the meshes of a module's header.
pub fn shardings_of_values(module: &Module, text: &str) -> Option<Vec<NamedSharding>> {
    per_value(text, &meshes(meshes_text(module))?)
}

/// Reads MLIR text. Quotes may be escaped, as in attributes that were printed twice.
struct Reader {
    text: Vec<char>,
    at: usize,
}

impl Reader {
    fn new(text: &str) -> Self {
        let text = text.chars().filter(|c| *c != '\\' && !c.is_whitespace()).collect();
        Self { text, at: 0 }
    }

    fn take(&mut self, expected: &str) -> Option<()> {
        let mut at = self.at;
        for c in expected.chars() {
            if self.text.get(at) != Some(&c) {
                return None;
            }
            at += 1;
        }
        self.at = at;
        Some(())
    }

    fn word(&mut self) -> Option<Box<str>> {
        let rest = self.text[self.at..].iter();
        let word: String = rest.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')).collect();
        self.at += word.chars().count();
        (!word.is_empty()).then(|| word.into())
    }

    fn number(&mut self) -> Option<i64> {
        let digits: String = self.text[self.at..].iter().take_while(|c| c.is_ascii_digit()).collect();
        self.at += digits.len();
        digits.parse().ok()
    }

    /// `"name"`
    fn name(&mut self) -> Option<Box<str>> {
        self.take("\"")?;
        let name: String = self.text[self.at..].iter().take_while(|c| **c != '"').collect();
        self.at += name.chars().count();
        self.take("\"")?;
        Some(name.into())
    }

    /// Items between brackets, separated by commas.
    fn list<T>(
        &mut self,
        [open, close]: [&str; 2],
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.take(open)?;
        let mut items = Vec::new();
        if self.take(close).is_some() {
            return Some(items);
        }
        loop {
            items.push(item(self)?);
            if self.take(close).is_some() {
                return Some(items);
            }
            self.take(",")?;
        }
    }

    /// `{mesh = #sdy.mesh<["x"=2]>, ...}`; nothing at all has no meshes.
    fn meshes(&mut self) -> Option<Meshes> {
        if self.text.is_empty() {
            return Some(Vec::new());
        }
        self.list(["{", "}"], |r| {
            let name = if r.text.get(r.at) == Some(&'"') { r.name()? } else { r.word()? };
            r.take("=#sdy.")?;
            Some((name, r.mesh()?))
        })
    }

    /// `mesh<["x"=2,"y"=4], device_ids=[3,2,1,0]>`
    fn mesh(&mut self) -> Option<Mesh> {
        self.take("mesh<")?;
        let axes = self.list(["[", "]"], |r| {
            let name = r.name()?;
            r.take("=")?;
            Some((name, r.number()?))
        })?;
        let ids = match self.take(",device_ids=") {
            Some(()) => Some(MeshDevices::List(self.list(["[", "]"], Self::number)?)),
            None => None,
        };
        self.take(">")?;
        let maximal = axes.is_empty() && ids.is_some();
        Some(Mesh { axes, device_ids: ids, maximal })
    }

    /// `#sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, ...]>`
    fn per_value(&mut self, meshes: &[(Box<str>, Mesh)]) -> Option<Vec<Written>> {
        self.take("#sdy.sharding_per_value<")?;
        let all = self.list(["[", "]"], |r| r.sharding(meshes))?;
        self.take(">")?;
        Some(all)
    }

    fn sharding(&mut self, meshes: &[(Box<str>, Mesh)]) -> Option<Written> {
        self.take("<")?;
        let start = self.at;
        let mesh = match self.take("@") {
            Some(()) => {
                let name = self.word()?;
                meshes.iter().find(|(n, _)| *n == name)?.1.clone()
            }
            None => self.mesh()?,
        };
        let written = self.text[start..self.at].iter().collect();
        self.take(",")?;
        let dims = self.list(["[", "]"], Self::dimension)?;
        let (mut replicated, mut unreduced, mut unreduced_kind) = (Vec::new(), Vec::new(), None);
        while self.take(",").is_some() {
            let key = self.word()?;
            self.take("=")?;
            if &*key == "unreduced" {
                // What is not said is a sum.
                unreduced_kind = ["sum", "max", "min"].into_iter().find(|kind| self.take(kind).is_some());
            }
            let axes = self.list(["{", "}"], Self::axis)?;
            match &*key {
                "replicated" => replicated = axes,
                "unreduced" => unreduced = axes,
                _ => return None,
            }
        }
        self.take(">")?;
        let sharding = NamedSharding {
            mesh,
            dims: Some(dims),
            replicated,
            unreduced,
            unreduced_kind: unreduced_kind.map(Into::into),
            manual: Vec::new(),
            metadata: Vec::new(),
        };
        Some(Written { sharding, mesh: written })
    }

    /// `{"x", "y":(1)2, ?}p1`
    fn dimension(&mut self) -> Option<NamedDim> {
        let items = self.list(["{", "}"], |r| match r.take("?") {
            Some(()) => Some(None),
            None => r.axis().map(Some),
        })?;
        let priority = match self.take("p") {
            Some(()) => Some(self.number()?),
            None => None,
        };
        let open = items.iter().any(Option::is_none);
        Some(NamedDim { axes: items.into_iter().flatten().collect(), open, priority })
    }

    fn axis(&mut self) -> Option<AxisRef> {
        let name = self.name()?;
        let sub_axis = match self.take(":(") {
            Some(()) => {
                let before = self.number()?;
                self.take(")")?;
                Some((before, self.number()?))
            }
            None => None,
        };
        Some(AxisRef { name, sub_axis })
    }

    /// `#sdy<manual_axes{"x", "y"}>`
    fn manual_axes(&mut self) -> Option<Vec<Box<str>>> {
        self.take("#sdy<manual_axes")?;
        let axes = self.list(["{", "}"], Self::name)?;
        self.take(">")?;
        Some(axes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_mlir() {
        let meshes = r#"{mesh = #sdy.mesh<["a"=2, "b"=4]>, m1 = #sdy.mesh<["x"=2], device_ids=[1, 0]>}"#;
        let meshes = Reader::new(meshes).meshes().unwrap();
        assert_eq!(meshes[0].1.axes, [("a".into(), 2), ("b".into(), 4)]);
        assert_eq!(meshes[1].1.device_ids, Some(MeshDevices::List(vec![1, 0])));
        let text = r#"#sdy.sharding_per_value<[<@mesh, [{\"a\"}, {\"b\":(2)2, ?}p1]>, <@m1, [{}], replicated={"x"}>]>"#;
        let written = Reader::new(text).per_value(&meshes).unwrap();
        let of = |n: usize| written[n].to_string();
        assert_eq!(of(0), r#"<@mesh, [{"a"}, {"b":(2)2, ?}p1]>"#);
        assert_eq!(of(1), r#"<@m1, [{}], replicated={"x"}>"#);
        let all = per_value(text, &meshes).unwrap();
        let dims = all[0].dims.as_ref().unwrap();
        assert_eq!(dims[0].axes, [AxisRef { name: "a".into(), sub_axis: None }]);
        assert_eq!(dims[1].axes, [AxisRef { name: "b".into(), sub_axis: Some((2, 2)) }]);
        assert_eq!((dims[1].open, dims[1].priority), (true, Some(1)));
        assert_eq!(all[1].replicated.len(), 1);
        let meshes = Reader::new(r#"{mesh = #sdy.mesh<["x"=2, "y"=2, "z"=1], device_ids=[0, 2, 1, 3]>}"#)
            .meshes()
            .unwrap();
        let text = r#"#sdy.sharding_per_value<[<@mesh, [{"x"}, {}], unreduced={"y", "z"}>]>"#;
        let written = Reader::new(text).per_value(&meshes).unwrap();
        assert_eq!(written[0].to_string(), r#"<@mesh, [{"x"}, {}], unreduced={"y", "z"}>"#);
        let of_greatest = r#"#sdy.sharding_per_value<[<@mesh, [{"x"}], unreduced=max{"y"}>]>"#;
        let of_greatest = Reader::new(of_greatest).per_value(&meshes).unwrap();
        assert_eq!(of_greatest[0].sharding.unreduced_kind.as_deref(), Some("max"));
        assert_eq!(of_greatest[0].to_string(), r#"<@mesh, [{"x"}], unreduced=max{"y"}>"#);
        let unreduced = &written[0].sharding.unreduced;
        let names: Vec<&str> = unreduced.iter().map(|axis| &*axis.name).collect();
        assert_eq!(names, ["y", "z"]);
        assert_eq!(meshes[0].1.groups_along(&unreduced[..1]).unwrap(), [[0, 2], [1, 3]]);
        let axes = Reader::new(r#"#sdy<manual_axes{"a", "b"}>"#).manual_axes().unwrap();
        assert_eq!(axes, ["a".into(), "b".into()] as [Box<str>; 2]);
    }

    #[test]
    fn what_is_no_sharding() {
        assert!(Reader::new("#sdy.sharding_per_value<[<@gone, [{}]>]>").per_value(&[]).is_none());
        assert!(Reader::new("{mesh = ").meshes().is_none());
        assert!(Reader::new("#sdy<manual_axes{\"a\"").manual_axes().is_none());
    }
}
