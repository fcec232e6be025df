//! Shardings of Shardy in frontend attributes, as MLIR text: what XLA keeps of a `sdy.manual_computation`
//! when a module leaves MLIR (`xla/service/spmd/shardy/sdy_round_trip/shard_map_export.cc`).

use hlo::attrs::sharding::{MeshDevices, NamedDim};
use hlo::attrs::{AxisRef, Mesh, NamedSharding};
use hlo::{AttrKey, Instruction, Module, Opcode};

/// The attribute of the module that says its meshes.
pub const MESHES: &str = "xla.sdy.meshes";
/// The attribute of a call, or of the change of a value for it, that says in which axes the shape is a
/// shard's.
pub const MANUAL_AXES: &str = "xla.sdy.manual_axes";

/// The shardings of some values, and the axes in which their shapes are those of shards.
pub(crate) type OfValues = (Vec<NamedSharding>, Vec<Box<str>>);

/// The shardings that an attribute of a call says, one for each value, and the axes that are manual. The
/// attributes stand on the call itself, or, in older dumps, on the `call` of the computation that it is for.
/// `Ok(None)`: neither has them.
pub(crate) fn shardings(
    module: &Module,
    instr: &Instruction,
    key: &str,
    body: Option<&Instruction>,
) -> Result<Option<OfValues>, String> {
    let with = |i: &&Instruction| i.attrs.frontend_attributes().is_some_and(|a| a.get(key).is_some());
    let Some(from) = [Some(instr), body].into_iter().flatten().find(with) else { return Ok(None) };
    let attributes = from.attrs.frontend_attributes().ok_or("has no frontend attributes")?;
    let text = attributes.get(key).unwrap_or_default();
    let meshes = module.header.frontend_attributes.as_ref().and_then(|a| a.get(MESHES)).unwrap_or_default();
    let malformed = |what: &str, text: &str| format!("has a {what} that cannot be read: {text}");
    let meshes = Reader::new(meshes).meshes().ok_or_else(|| malformed(MESHES, meshes))?;
    let shardings = Reader::new(text).per_value(&meshes).ok_or_else(|| malformed(key, text))?;
    let manual = attributes.get(MANUAL_AXES).unwrap_or_default();
    let manual = Reader::new(manual).manual_axes().ok_or_else(|| malformed(MANUAL_AXES, manual))?;
    Ok(Some((shardings, manual)))
}

/// A sharding of one value, `#sdy.sharding<@mesh, [{"x"}, {}]>`, or the only one of
/// `#sdy.sharding_per_value<[...]>`. The meshes are those of a module's header.
pub fn sharding(module: &Module, text: &str) -> Option<NamedSharding> {
    let meshes = module.header.frontend_attributes.as_ref().and_then(|a| a.get(MESHES)).unwrap_or_default();
    let meshes = Reader::new(meshes).meshes()?;
    let mut reader = Reader::new(text);
    if reader.take("#sdy.sharding_per_value").is_some() {
        let mut all = Reader::new(text).per_value(&meshes)?;
        return if all.len() == 1 { all.pop() } else { None };
    }
    reader.take("#sdy.sharding")?;
    reader.sharding(&meshes)
}

/// The shardings of values, `#sdy.sharding_per_value<[<@mesh, [{"x"}]>, ...]>`.
pub fn shardings_of_values(module: &Module, text: &str) -> Option<Vec<NamedSharding>> {
    let meshes = module.header.frontend_attributes.as_ref().and_then(|a| a.get(MESHES)).unwrap_or_default();
    let meshes = Reader::new(meshes).meshes()?;
    Reader::new(text).per_value(&meshes)
}

/// The `call` that takes what an instruction gives, through elements of tuples.
pub(crate) fn taker<'m>(module: &'m Module, instr: &'m Instruction) -> Option<&'m Instruction> {
    let id = module.instructions(instr.parent()).find(|&id| std::ptr::eq(module.instr(id), instr))?;
    let mut pending = vec![id];
    while let Some(id) = pending.pop() {
        for user in module.users(id) {
            let instr = module.instr(user.user);
            if instr.opcode == Opcode::Call {
                return Some(instr);
            }
            if instr.opcode == Opcode::GetTupleElement {
                pending.push(user.user);
            }
        }
    }
    None
}

/// The `call` that gives what an instruction takes, through elements of tuples.
pub(crate) fn giver<'m>(module: &'m Module, instr: &Instruction) -> Option<&'m Instruction> {
    instr.operands().iter().find_map(|&operand| {
        let mut instr = module.instr(operand);
        while let (Opcode::GetTupleElement, [tuple]) = (instr.opcode, instr.operands()) {
            instr = module.instr(*tuple);
        }
        (instr.opcode == Opcode::Call && instr.attrs.get(AttrKey::ToApply).is_some()).then_some(instr)
    })
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
    fn meshes(&mut self) -> Option<Vec<(Box<str>, Mesh)>> {
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
    fn per_value(&mut self, meshes: &[(Box<str>, Mesh)]) -> Option<Vec<NamedSharding>> {
        self.take("#sdy.sharding_per_value<")?;
        let all = self.list(["[", "]"], |r| r.sharding(meshes))?;
        self.take(">")?;
        Some(all)
    }

    fn sharding(&mut self, meshes: &[(Box<str>, Mesh)]) -> Option<NamedSharding> {
        self.take("<")?;
        let mesh = match self.take("@") {
            Some(()) => {
                let name = self.word()?;
                meshes.iter().find(|(n, _)| *n == name)?.1.clone()
            }
            None => self.mesh()?,
        };
        self.take(",")?;
        let dims = self.list(["[", "]"], Self::dimension)?;
        let (mut replicated, mut unreduced) = (Vec::new(), Vec::new());
        while self.take(",").is_some() {
            let key = self.word()?;
            self.take("=")?;
            let axes = self.list(["{", "}"], Self::axis)?;
            match &*key {
                "replicated" => replicated = axes,
                "unreduced" => unreduced = axes,
                _ => return None,
            }
        }
        self.take(">")?;
        Some(NamedSharding {
            mesh,
            dims: Some(dims),
            replicated,
            unreduced,
            unreduced_kind: None,
            manual: Vec::new(),
            metadata: Vec::new(),
        })
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
        let all = Reader::new(text).per_value(&meshes).unwrap();
        let dims = all[0].dims.as_ref().unwrap();
        assert_eq!(dims[0].axes, [AxisRef { name: "a".into(), sub_axis: None }]);
        assert_eq!(dims[1].axes, [AxisRef { name: "b".into(), sub_axis: Some((2, 2)) }]);
        assert_eq!((dims[1].open, dims[1].priority), (true, Some(1)));
        assert_eq!(all[1].replicated.len(), 1);
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
