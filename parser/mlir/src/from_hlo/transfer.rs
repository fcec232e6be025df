//! Exchanges with the host and between devices.

use hlo::Instruction;
use hlo::attrs::collective::send_recv_pairs;
use hlo::attrs::{AttrKey, AttrValue};

use super::cx::{Export, Exporter, Leaves};
use crate::ir::AttrId;

/// The kinds of channels.
const DEVICE_TO_DEVICE: i64 = 1;
const DEVICE_TO_HOST: i64 = 2;
const HOST_TO_DEVICE: i64 = 3;

impl Exporter<'_> {
    pub(super) fn infeed(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let mut properties = Vec::new();
        if let Some(config) = i.attrs.str(AttrKey::InfeedConfig) {
            properties.push(("infeed_config", self.string(config)));
        }
        self.whole("stablehlo.infeed", &operands, &properties)
    }

    pub(super) fn outfeed(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let mut properties = Vec::new();
        if let Some(config) = i.attrs.str(AttrKey::OutfeedConfig) {
            properties.push(("outfeed_config", self.string(config)));
        }
        self.whole("stablehlo.outfeed", &operands, &properties)
    }

    /// Channel, kind and pairs of a transfer.
    fn transfer(&mut self, i: &Instruction, with_host: i64) -> Export<Vec<(&'static str, AttrId)>> {
        let host = i.attrs.bool(AttrKey::IsHostTransfer);
        let kind = if host { with_host } else { DEVICE_TO_DEVICE };
        let channel = self.channel(i.attrs.int(AttrKey::ChannelId).unwrap_or(0), kind);
        let host = self.bool(host);
        let mut properties = vec![("channel_handle", channel), ("is_host_transfer", host)];
        if let Some(pairs) = send_recv_pairs(&i.attrs) {
            let rows: Vec<Vec<i64>> = pairs.iter().map(|p| p.to_vec()).collect();
            properties.push(("source_target_pairs", self.rows(&rows, 2)));
        }
        Ok(properties)
    }

    /// Frontend attributes but the pairs, which have an attribute of their own.
    fn transfer_attributes(&mut self, i: &Instruction) {
        let Some(AttrValue::FrontendAttributes(f)) = i.attrs.get(AttrKey::FrontendAttributes) else { return };
        let mut f = (**f).clone();
        if send_recv_pairs(&i.attrs).is_some() {
            f.entries.retain(|e| &*e.0 != hlo::attrs::collective::SEND_RECV_PAIRS);
        }
        if let (Some(op), false) = (self.last, f.entries.is_empty()) {
            let value = self.frontend(&f);
            self.discardable(op, "mhlo.frontend_attributes", value);
        }
    }

    /// The data, a context, the token after which it is sent.
    pub(super) fn send(&mut self, i: &Instruction) -> Export<Leaves> {
        let parts = self.started(i)?;
        let operands = self.operands(i);
        let properties = self.transfer(i, DEVICE_TO_HOST)?;
        let token = self.token_type();
        let sent = self.one("stablehlo.send", &operands, token, &properties)?;
        self.transfer_attributes(i);
        let mut leaves = operands;
        leaves.pop();
        let contexts = parts.get(1..parts.len() - 1).unwrap_or_default().to_vec();
        leaves.extend(self.contexts(&contexts)?);
        leaves.push(sent);
        Ok(leaves)
    }

    pub(super) fn send_done(&mut self, i: &Instruction) -> Export<Leaves> {
        match self.operands(i).last() {
            Some(&token) => Ok([token].into()),
            None => self.refuse("is of nothing that was sent"),
        }
    }

    /// The data, a context, the token after which it was received.
    pub(super) fn recv(&mut self, i: &Instruction) -> Export<Leaves> {
        let parts = self.started(i)?.to_vec();
        let operands = self.operands(i);
        let properties = self.transfer(i, HOST_TO_DEVICE)?;
        let mut types = self.leaf_types(&parts[0])?;
        types.push(self.token_type());
        let op = self.op("stablehlo.recv", &operands, &types, &properties)?;
        self.transfer_attributes(i);
        let mut leaves = self.results_of(op);
        let token = leaves.pop();
        let contexts = parts.get(1..parts.len() - 1).unwrap_or_default().to_vec();
        leaves.extend(self.contexts(&contexts)?);
        leaves.extend(token);
        Ok(leaves)
    }

    /// The data and the token.
    pub(super) fn recv_done(&mut self, i: &Instruction) -> Export<Leaves> {
        let count = i.shape.leaves().len();
        let all = self.operands(i);
        let Some((&token, data)) = all.split_last().filter(|_| all.len() >= count && count > 0) else {
            return self.refuse("is of nothing that is received");
        };
        let mut leaves: Leaves = data[..count - 1].into();
        leaves.push(token);
        Ok(leaves)
    }
}
