//! Shardings and meshes.

use hlo::attrs::sharding::{MeshDevices, NamedDim};
use hlo::attrs::{
    AxisRef, DeviceAssignment, Ints, Mesh, NamedSharding, Sharding, ShardingKind, SubgroupType, TileSharding,
};
use hlo::diag::Code;
use hlo::diag::codes::parse as codes;

use super::collective::product;
use super::metadata::metadata_list;
use crate::cursor::{Cursor, Res, error, quote};

const CODE: Code = codes::BAD_SHARDING;

/// `{replicated}`, `{{replicated}, {manual}}`, `{}` (of an empty tuple)
pub(crate) fn sharding(c: &mut Cursor<'_>) -> Res<Sharding> {
    let mut ahead = c.clone();
    ahead.expect(b'{', CODE)?;
    if !matches!(ahead.peek(), b'{' | b'}') {
        return single(c).map(|s| Sharding::Single(Box::new(s)));
    }
    let mut leaves = Vec::new();
    c.list(b'{', b'}', CODE, |c| {
        leaves.push(Sharding::Single(Box::new(single(c)?)));
        Ok(())
    })?;
    Ok(Sharding::Tuple(leaves))
}

fn single(c: &mut Cursor<'_>) -> Res<ShardingKind> {
    c.skip();
    let start = c.pos();
    c.expect(b'{', CODE)?;
    let mut ahead = c.clone();
    if matches!(ahead.word(), "mesh" | "maximal_mesh") {
        return named(c).map(ShardingKind::Named);
    }
    tile(c, start).map(ShardingKind::Tile)
}

/// The older form, after its brace.
fn tile(c: &mut Cursor<'_>, start: usize) -> Res<TileSharding> {
    let mut t = TileSharding::default();
    // Which word said what the sharding is; there must be exactly one.
    let mut kind: Option<DeviceAssignment> = None;
    let (mut maximal, mut device) = (false, None);
    while !c.eat(b'}') {
        c.skip();
        let at = c.pos();
        let word = c.word();
        let key = c.peek_raw() == b'=';
        let found = match (word, key) {
            ("replicated", false) => Some(DeviceAssignment::Replicated),
            ("manual", false) => Some(DeviceAssignment::Manual),
            ("unknown", false) => Some(DeviceAssignment::Unknown),
            ("unreduced", false) => Some(DeviceAssignment::Unreduced),
            ("devices", true) => {
                c.bump(1);
                Some(devices(c)?)
            }
            ("maximal", false) => {
                maximal = true;
                None
            }
            ("device", true) => {
                c.bump(1);
                device = Some(c.int_or(CODE)?);
                None
            }
            ("metadata", true) => {
                c.bump(1);
                t.metadata = metadata_list(c)?;
                None
            }
            ("last_tile_dims", true) => {
                c.bump(1);
                t.last_tile_dims = subgroups(c)?;
                None
            }
            ("last_tile_dim_replicate", false) => {
                t.last_tile_dim_replicate = true;
                None
            }
            ("shard_as", false) => {
                t.shard_as = Some(c.int_or(CODE)?);
                None
            }
            ("shard_like", false) => {
                t.shard_like = Some(c.int_or(CODE)?);
                None
            }
            _ => {
                let what =
                    "a word of a sharding: replicated, maximal, manual, unknown, unreduced, devices=, ...";
                if word.is_empty() {
                    return Err(c.unexpected(CODE, what));
                }
                let message = format!("unknown word {} in a sharding", quote(word));
                return Err(error(CODE, c.span_from(at), message, format!("expected {what}")));
            }
        };
        if let Some(found) = found
            && kind.replace(found).is_some()
        {
            return Err(error(
                CODE,
                c.span_from(at),
                "sharding that says two things",
                "another one stands before",
            ));
        }
    }
    t.devices = match (kind, maximal, device) {
        (Some(kind), false, None) => kind,
        (None, true, Some(device)) => DeviceAssignment::Maximal(device),
        (None, true, None) => {
            return Err(error(
                CODE,
                c.span_from(start),
                "maximal sharding without a device",
                "expected `device=`",
            ));
        }
        (Some(_), _, _) => {
            let message = "sharding that names a device and says something else too";
            return Err(error(CODE, c.span_from(start), message, "contradicts itself"));
        }
        (None, false, _) => {
            let message = "sharding that does not say how";
            return Err(error(
                CODE,
                c.span_from(start),
                message,
                "expected `replicated`, `devices=[...]...` or the like",
            ));
        }
    };
    Ok(t)
}

/// `[2,2]<=[4]`, `[2,1]0,1`
fn devices(c: &mut Cursor<'_>) -> Res<DeviceAssignment> {
    c.skip();
    let start = c.pos();
    let dims: Ints = non_empty(c, CODE)?;
    if c.eat_str("<=") {
        let (reshape_dims, transpose) = iota(c, CODE)?;
        if product(&dims).is_none() || product(&dims) != product(&reshape_dims) {
            let message = "the two sides of `<=` have different numbers of devices";
            return Err(error(CODE, c.span_from(start), message, "must be equal"));
        }
        return Ok(DeviceAssignment::Iota { dims, reshape_dims, transpose });
    }
    let mut ids = vec![c.int_or(CODE)?];
    while c.eat(b',') {
        ids.push(c.int_or(CODE)?);
    }
    let count = ids.len() as i64;
    if product(&dims) != Some(count) {
        let message = format!(
            "{count} devices for the tiles {}",
            quote(&c.text()[start..].split(']').next().map_or(String::new(), |d| format!("{d}]")))
        );
        return Err(error(CODE, c.span_from(start), message, "must be as many as tiles"));
    }
    if count < 2 {
        let message = "sharding over a single device";
        return Err(error(CODE, c.span_from(start), message, "use `maximal device=` for one device"));
    }
    Ok(DeviceAssignment::List { dims, ids })
}

fn non_empty(c: &mut Cursor<'_>, code: Code) -> Res<Ints> {
    let ints: Ints = c.ints(b'[', b']', code)?;
    if ints.is_empty() {
        Err(c.unexpected(code, "at least one number in the brackets before this"))
    } else {
        Ok(ints)
    }
}

/// `[4]`, `[2,2]T(1,0)`: dimensions and their permutation (empty if not written).
pub(crate) fn iota(c: &mut Cursor<'_>, code: Code) -> Res<(Ints, Ints)> {
    let dims = non_empty(c, code)?;
    if dims.len() > 1 || c.peek() == b'T' {
        if !c.eat(b'T') {
            return Err(c.unexpected(code, "`T(...)`, the order of the dimensions"));
        }
        c.skip();
        let start = c.pos();
        let transpose: Ints = c.ints(b'(', b')', code)?;
        let mut seen = vec![false; dims.len()];
        let permutation = transpose.len() == dims.len()
            && transpose.iter().all(|&t| {
                usize::try_from(t)
                    .ok()
                    .and_then(|t| seen.get_mut(t))
                    .is_some_and(|s| !std::mem::replace(s, true))
            });
        if !permutation {
            let message = format!("no permutation of {} dimensions", dims.len());
            return Err(error(code, c.span_from(start), message, "expected each dimension once"));
        }
        return Ok((dims, transpose));
    }
    Ok((dims, Ints::new()))
}

fn subgroups(c: &mut Cursor<'_>) -> Res<Vec<SubgroupType>> {
    let mut all = Vec::new();
    c.list(b'{', b'}', CODE, |c| {
        c.skip();
        let start = c.pos();
        all.push(match c.word() {
            "replicated" => SubgroupType::Replicated,
            "manual" => SubgroupType::Manual,
            "unreduced" => SubgroupType::Unreduced,
            "maximal" => SubgroupType::Maximal,
            word => {
                let message = format!("unknown role {} of a tile dimension", quote(word));
                let label = "expected replicated, manual, unreduced or maximal";
                return Err(error(CODE, c.span_from(start), message, label));
            }
        });
        Ok(())
    })?;
    Ok(all)
}

/// `mesh['x'=2,'y'=4], device_ids=(...)`, `maximal_mesh[device_id=3]`
pub(crate) fn mesh(c: &mut Cursor<'_>) -> Res<Mesh> {
    const CODE: Code = codes::BAD_MESH;
    c.skip();
    let start = c.pos();
    let mut mesh = Mesh { axes: Vec::new(), device_ids: None, maximal: false };
    match c.word() {
        "mesh" => {}
        "maximal_mesh" => {
            c.expect(b'[', CODE)?;
            let (key, span) = c.key(CODE)?;
            if key != "device_id" {
                return Err(error(
                    CODE,
                    span,
                    format!("unknown field {} of a mesh", quote(key)),
                    "expected `device_id=`",
                ));
            }
            mesh.maximal = true;
            mesh.device_ids = Some(MeshDevices::List(vec![c.int_or(CODE)?]));
            c.expect(b']', CODE)?;
            return Ok(mesh);
        }
        word => {
            return Err(error(
                CODE,
                c.span_from(start),
                format!("{} is no mesh", quote(word)),
                "expected `mesh[...]`",
            ));
        }
    }
    c.list(b'[', b']', CODE, |c| {
        let name = c.string(CODE)?.into();
        c.expect(b'=', CODE)?;
        mesh.axes.push((name, c.int_or(CODE)?));
        Ok(())
    })?;
    let mut ahead = c.clone();
    if ahead.eat(b',') && ahead.eat_str("device_ids=") {
        *c = ahead;
        c.expect(b'(', CODE)?;
        let axes: Ints = mesh.axes.iter().map(|a| a.1).collect();
        if c.peek() == b'[' {
            let (reshape_dims, transpose) = iota(c, CODE)?;
            if product(&axes).is_none() || product(&axes) != product(&reshape_dims) {
                let message = "mesh and `device_ids` have different numbers of devices";
                return Err(error(CODE, c.span_from(start), message, "must be equal"));
            }
            c.expect(b')', CODE)?;
            mesh.device_ids = Some(MeshDevices::Iota { reshape_dims, transpose });
        } else {
            let mut ids = Vec::new();
            while !c.eat(b')') {
                ids.push(c.int_or(CODE)?);
                if !c.eat(b',') {
                    c.expect(b')', CODE)?;
                    break;
                }
            }
            if product(&axes) != Some(ids.len() as i64) {
                let message = format!("{} ids for a mesh of another size", ids.len());
                return Err(error(CODE, c.span_from(start), message, "must be as many as devices"));
            }
            mesh.device_ids = Some(MeshDevices::List(ids));
        }
    }
    Ok(mesh)
}

/// `{'a','b':(2)4}`
pub(crate) fn axis_refs(c: &mut Cursor<'_>, mesh: &Mesh) -> Res<Vec<AxisRef>> {
    let mut axes = Vec::new();
    c.list(b'{', b'}', codes::BAD_MESH, |c| {
        axes.push(axis_ref(c, mesh)?);
        Ok(())
    })?;
    Ok(axes)
}

/// An axis is named, or numbered in quotes.
fn axis_ref(c: &mut Cursor<'_>, mesh: &Mesh) -> Res<AxisRef> {
    const CODE: Code = codes::BAD_MESH;
    c.skip();
    let start = c.pos();
    let text = c.string(CODE)?;
    let by_number = || mesh.axes.get(text.parse::<usize>().ok()?).map(|a| a.0.clone());
    let known = mesh.axes.iter().find(|a| *a.0 == *text).map(|a| a.0.clone()).or_else(by_number);
    let Some(name) = known else {
        let axes: Vec<&str> = mesh.axes.iter().map(|a| &*a.0).collect();
        let e =
            error(CODE, c.span_from(start), format!("the mesh has no axis {}", quote(&text)), "not an axis");
        return Err(Box::new(e.note(format!("its axes are {}", axes.join(", ")))));
    };
    let sub_axis = if c.eat(b':') {
        c.expect(b'(', CODE)?;
        let pre = c.int_or(CODE)?;
        c.expect(b')', CODE)?;
        Some((pre, c.int_or(CODE)?))
    } else {
        None
    };
    Ok(AxisRef { name, sub_axis })
}

/// The form with names, after its brace.
fn named(c: &mut Cursor<'_>) -> Res<NamedSharding> {
    let mesh = mesh(c)?;
    let mut s = NamedSharding {
        mesh,
        dims: None,
        replicated: Vec::new(),
        unreduced: Vec::new(),
        unreduced_kind: None,
        manual: Vec::new(),
        metadata: Vec::new(),
    };
    let everything = |mesh: &Mesh| -> Vec<AxisRef> {
        mesh.axes.iter().map(|a| AxisRef { name: a.0.clone(), sub_axis: None }).collect()
    };
    while !c.eat(b'}') {
        c.eat(b',');
        if c.peek() == b'[' {
            let mut dims = Vec::new();
            c.list(b'[', b']', CODE, |c| {
                dims.push(named_dim(c, &s.mesh)?);
                Ok(())
            })?;
            s.dims = Some(dims);
            continue;
        }
        c.skip();
        let start = c.pos();
        let word = c.word();
        let assigned = c.peek_raw() == b'=';
        if assigned {
            c.bump(1);
        }
        match (word, assigned) {
            ("replicated", true) => s.replicated = axis_refs(c, &s.mesh)?,
            ("replicated", false) => {}
            ("manual", true) => s.manual = axis_refs(c, &s.mesh)?,
            ("manual", false) => s.manual = everything(&s.mesh),
            ("unreduced", true) => {
                c.skip();
                let at = c.pos();
                match c.word() {
                    "" => {}
                    kind @ ("sum" | "max" | "min") => s.unreduced_kind = Some(kind.into()),
                    kind => {
                        let message = format!("unknown reduction {}", quote(kind));
                        return Err(error(CODE, c.span_from(at), message, "expected sum, max or min"));
                    }
                }
                s.unreduced = if c.peek() == b'{' { axis_refs(c, &s.mesh)? } else { everything(&s.mesh) };
            }
            ("unreduced", false) => s.unreduced = everything(&s.mesh),
            ("metadata", true) => s.metadata = metadata_list(c)?,
            _ if word.is_empty() => {
                return Err(c.unexpected(CODE, "`[...]`, replicated, unreduced, manual or metadata="));
            }
            _ => {
                let message = format!("unknown word {} in a sharding", quote(word));
                let label = "expected replicated, unreduced, manual or metadata";
                return Err(error(CODE, c.span_from(start), message, label));
            }
        }
    }
    Ok(s)
}

/// `{'a','b':(2)4,?}p1`
fn named_dim(c: &mut Cursor<'_>, mesh: &Mesh) -> Res<NamedDim> {
    let mut dim = NamedDim::default();
    c.list(b'{', b'}', CODE, |c| {
        if dim.open {
            return Err(c.unexpected(CODE, "nothing after `?`"));
        }
        if c.eat(b'?') {
            dim.open = true;
        } else {
            dim.axes.push(axis_ref(c, mesh)?);
        }
        Ok(())
    })?;
    if c.peek_raw() == b'p' {
        c.bump(1);
        dim.priority = Some(c.int_or(CODE)?);
    }
    Ok(dim)
}
