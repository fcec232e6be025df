//! Replica groups.

use hlo::attrs::{Ints, MeshAxes, ReplicaGroups};
use hlo::diag::codes::parse as codes;

use super::sharding::{axis_refs, iota, mesh};
use crate::cursor::{Cursor, Res, error};

/// `{{0,1},{2,3}}`, `[2,2]<=[4]`, `mesh['a'=2] {'a'}`
pub(crate) fn replica_groups(c: &mut Cursor<'_>) -> Res<ReplicaGroups> {
    const CODE: hlo::diag::Code = codes::BAD_REPLICA_GROUPS;
    c.skip();
    let start = c.pos();
    match c.peek() {
        b'{' => {
            let mut groups: Vec<Ints> = Vec::new();
            c.list(b'{', b'}', CODE, |c| {
                groups.push(c.ints(b'{', b'}', CODE)?);
                Ok(())
            })?;
            Ok(ReplicaGroups::Lists(groups))
        }
        b'[' => {
            let dims: Ints = c.ints(b'[', b']', CODE)?;
            if dims.len() != 2 {
                let message = format!("replica groups of {} dimensions", dims.len());
                return Err(error(
                    CODE,
                    c.span_from(start),
                    message,
                    "expected two: how many groups, of how many",
                ));
            }
            if !c.eat_str("<=") {
                return Err(c.unexpected(CODE, "`<=`"));
            }
            let (reshape_dims, transpose) = iota(c, CODE)?;
            if product(&dims).is_none() || product(&dims) != product(&reshape_dims) {
                let message = "the two sides of `<=` have different numbers of devices";
                return Err(error(CODE, c.span_from(start), message, "must be equal"));
            }
            Ok(ReplicaGroups::Iota { dims, reshape_dims, transpose })
        }
        b'm' => {
            let mesh = mesh(c)?;
            let axes = axis_refs(c, &mesh)?;
            Ok(ReplicaGroups::Mesh(Box::new(MeshAxes { mesh, axes })))
        }
        _ => Err(c.unexpected(CODE, "`{{0,1},...}`, `[groups,size]<=[...]` or `mesh[...] {...}`")),
    }
}

/// `None` if a factor is negative or the product does not fit.
pub(crate) fn product(dims: &[i64]) -> Option<i64> {
    dims.iter().try_fold(1i64, |n, &d| if d < 0 { None } else { n.checked_mul(d) })
}
