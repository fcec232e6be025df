//! Exchange with a host, where the limits allow it.

use hlo::attrs::{AttrKey, AttrValue};
use hlo::{Attrs, ElementType, InstrId, Opcode, Shape};

use super::Generator;
use super::body::Body;

pub(super) fn transfer(g: &mut Generator<'_>, body: &mut Body) -> Option<InstrId> {
    g.limits.transfers.then_some(())?;
    let token = g.plain(body, Opcode::AfterAll, &[])?;
    let opcode = g.opcode(&[
        Opcode::Infeed,
        Opcode::Outfeed,
        Opcode::Recv,
        Opcode::Send,
        Opcode::RecvDone,
        Opcode::SendDone,
    ]);
    if opcode == Opcode::Infeed {
        let shape = g.shape();
        let shape = Shape::tuple([Shape::Array(shape), Shape::Token]);
        let id = g.add_shaped(body, Opcode::Infeed, shape, &[token], Attrs::new())?;
        return g.element(body, id, 0);
    }
    if opcode == Opcode::Outfeed {
        let x = g.any(body);
        let shape = Box::new(Shape::Array(g.array(x).without_layout()));
        let attrs = Attrs::new().with(AttrKey::OutfeedShape, AttrValue::Shape(shape));
        let done = g.add(body, Opcode::Outfeed, &[x, token], attrs)?;
        return g.plain(body, Opcode::AddDependency, &[x, done]);
    }
    let attrs = Attrs::new()
        .with(AttrKey::ChannelId, AttrValue::Int(g.new_channel()))
        .with(AttrKey::IsHostTransfer, AttrValue::Bool(true));
    if matches!(opcode, Opcode::Send | Opcode::SendDone) {
        let x = g.any(body);
        let start = g.add(body, Opcode::Send, &[x, token], attrs.clone())?;
        let done = g.add(body, Opcode::SendDone, &[start], attrs)?;
        return g.plain(body, Opcode::AddDependency, &[x, done]);
    }
    let shape = g.shape();
    let shape = Shape::tuple([Shape::Array(shape), Shape::scalar(ElementType::U32), Shape::Token]);
    let start = g.add_shaped(body, Opcode::Recv, shape, &[token], attrs.clone())?;
    let done = g.add(body, Opcode::RecvDone, &[start], attrs)?;
    g.element(body, done, 0)
}
