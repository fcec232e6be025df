//! Tokens, and exchanges with the host and between devices.

use hlo::attrs::misc::FrontendValue;
use hlo::attrs::{AttrKey, AttrValue, Attrs, FrontendAttributes};
use hlo::{ElementType, InstrId, Opcode, Shape};

use super::cx::{Convert, Converter};
use crate::ir::OpId;

impl Converter<'_> {
    pub(super) fn after_all(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        let id = self.plain(Opcode::AfterAll, Shape::Token, &operands);
        self.bind_one(op, id)
    }

    pub(super) fn add_dependency(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 2] = self.exactly(op)?;
        let shape = self.shape_of(operands[0]);
        let id = self.plain(Opcode::AddDependency, shape, &operands);
        self.bind_one(op, id)
    }

    pub(super) fn infeed(&mut self, op: OpId) -> Convert<()> {
        let [first] = self.exactly(op)?;
        // Infeeds of one token may be in any order: here they are in that of the program.
        let operands = [self.body.infeeds.get(&first).copied().unwrap_or(first)];
        let mut shapes = self.result_shapes(op)?;
        let Some(Shape::Token) = shapes.pop() else {
            return self.constraint(op, "C3", "the last result is no token");
        };
        let count = shapes.len();
        let data = if count == 1 { shapes[0].clone() } else { Shape::tuple(shapes) };
        let mut attrs = Attrs::new();
        if let Some(config) = self.string(op, "infeed_config").filter(|c| !c.is_empty()) {
            attrs.set(AttrKey::InfeedConfig, AttrValue::Str(config.into()));
        }
        let id = self.emit(Opcode::Infeed, Shape::tuple([data, Shape::Token]), &operands, attrs);
        let data = self.get(id, 0);
        self.bind_first(op, data, count);
        let token = self.get(id, 1);
        self.body.infeeds.insert(first, token);
        self.bind(op, count, token);
        Ok(())
    }

    /// The operands but the token, packed, and the token.
    fn data_and_token(&mut self, op: OpId) -> Convert<(InstrId, InstrId)> {
        let operands = self.operands(op)?;
        let Some((&token, data)) = operands.split_last() else {
            return self.structure(op, "has no token");
        };
        Ok((self.packed(data), token))
    }

    pub(super) fn outfeed(&mut self, op: OpId) -> Convert<()> {
        let (data, token) = self.data_and_token(op)?;
        let shape = self.shape_of(data);
        let mut attrs = Attrs::new().with(AttrKey::OutfeedShape, AttrValue::Shape(Box::new(shape)));
        if let Some(config) = self.string(op, "outfeed_config").filter(|c| !c.is_empty()) {
            attrs.set(AttrKey::OutfeedConfig, AttrValue::Str(config.into()));
        }
        let id = self.emit(Opcode::Outfeed, Shape::Token, &[data, token], attrs);
        self.bind_one(op, id)
    }

    /// Channel and kind of a transfer.
    fn transfer_attributes(&self, op: OpId) -> Convert<Attrs> {
        let mut attrs = Attrs::new()
            .with(AttrKey::ChannelId, AttrValue::Int(self.part_int(op, "channel_handle", "handle")));
        if self.bool_or(op, "is_host_transfer", false)? {
            attrs.set(AttrKey::IsHostTransfer, AttrValue::Bool(true));
        }
        let pairs = self.ints_or(op, "source_target_pairs", Vec::new)?;
        if !pairs.is_empty() {
            let text: Vec<String> =
                pairs.chunks(2).map(|p| format!("{{{},{}}}", p[0], p.get(1).unwrap_or(&0))).collect();
            let entries = vec![(
                hlo::attrs::collective::SEND_RECV_PAIRS.into(),
                FrontendValue::Str(format!("{{{}}}", text.join(",")).into()),
            )];
            attrs.set(
                AttrKey::FrontendAttributes,
                AttrValue::FrontendAttributes(Box::new(FrontendAttributes { entries })),
            );
        }
        Ok(attrs)
    }

    pub(super) fn send(&mut self, op: OpId) -> Convert<()> {
        let (data, token) = self.data_and_token(op)?;
        let attrs = self.transfer_attributes(op)?;
        let shape = Shape::tuple([self.shape_of(data), Shape::scalar(ElementType::U32), Shape::Token]);
        let start = self.emit(Opcode::Send, shape, &[data, token], attrs.clone());
        let done = self.emit(Opcode::SendDone, Shape::Token, &[start], attrs);
        self.bind_one(op, done)
    }

    pub(super) fn recv(&mut self, op: OpId) -> Convert<()> {
        let [token] = self.exactly(op)?;
        let attrs = self.transfer_attributes(op)?;
        let mut shapes = self.result_shapes(op)?;
        let Some(Shape::Token) = shapes.pop() else {
            return self.structure(op, "has a last result that is no token");
        };
        let count = shapes.len();
        let data = if count == 1 { shapes[0].clone() } else { Shape::tuple(shapes) };
        let shape = Shape::tuple([data.clone(), Shape::scalar(ElementType::U32), Shape::Token]);
        let start = self.emit(Opcode::Recv, shape, &[token], attrs.clone());
        let done = self.emit(Opcode::RecvDone, Shape::tuple([data, Shape::Token]), &[start], attrs);
        let data = self.get(done, 0);
        self.bind_first(op, data, count);
        let token = self.get(done, 1);
        self.bind(op, count, token);
        Ok(())
    }
}
