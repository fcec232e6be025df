//! Operations that move elements and compute nothing.

use hlo::Instruction;
use hlo::attrs::AttrKey;

use super::cx::{Export, Exporter, Leaves};

impl Exporter<'_> {
    pub(super) fn broadcast(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let dimensions = self.ints(i.attrs.ints_or_empty(AttrKey::Dimensions));
        self.whole("stablehlo.broadcast_in_dim", &operands, &[("broadcast_dimensions", dimensions)])
    }

    /// The only dimension that an attribute names.
    pub(super) fn dimension(&self, i: &Instruction) -> Export<i64> {
        match i.attrs.ints_or_empty(AttrKey::Dimensions) {
            &[d] => Ok(d),
            _ => self.refuse("does not name one dimension"),
        }
    }

    pub(super) fn concatenate(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let d = self.dimension(i)?;
        let dimension = self.int(d);
        self.whole("stablehlo.concatenate", &operands, &[("dimension", dimension)])
    }

    /// `get-dimension-size` and `set-dimension-size`.
    pub(super) fn dimension_size(&mut self, i: &Instruction, name: &str) -> Export<Leaves> {
        let operands = self.operands(i);
        let d = self.dimension(i)?;
        let dimension = self.int(d);
        self.whole(&format!("stablehlo.{name}"), &operands, &[("dimension", dimension)])
    }

    pub(super) fn iota(&mut self, i: &Instruction) -> Export<Leaves> {
        let dimension = self.int(i.attrs.int(AttrKey::IotaDimension).unwrap_or(0));
        self.whole("stablehlo.iota", &[], &[("iota_dimension", dimension)])
    }

    pub(super) fn pad(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let dims = i.attrs.padding().unwrap_or_default();
        let low = self.ints(&dims.iter().map(|d| d.low).collect::<Vec<_>>());
        let high = self.ints(&dims.iter().map(|d| d.high).collect::<Vec<_>>());
        let interior = self.ints(&dims.iter().map(|d| d.interior).collect::<Vec<_>>());
        self.whole(
            "stablehlo.pad",
            &operands,
            &[("edge_padding_low", low), ("edge_padding_high", high), ("interior_padding", interior)],
        )
    }

    pub(super) fn reshape(&mut self, i: &Instruction) -> Export<Leaves> {
        if i.attrs.int(AttrKey::InferredDimension).is_some() {
            self.left_out.insert("inferred_dimension");
        }
        let operands = self.operands(i);
        self.whole("stablehlo.reshape", &operands, &[])
    }

    /// The sizes, which are scalars, become the tensor that StableHLO's operation takes.
    pub(super) fn dynamic_reshape(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let [x, sizes @ ..] = &operands[..] else { return self.refuse("has no operand") };
        let Some(element) = i.operands().get(1).and_then(|&s| self.hlo.instr(s).shape.element_type()) else {
            return self.refuse("has no size");
        };
        let one = self.tensor(element, &[1])?;
        let mut parts = Vec::new();
        for &size in sizes {
            parts.push(self.one("stablehlo.reshape", &[size], one, &[])?);
        }
        let list = self.tensor(element, &[parts.len() as i64])?;
        let zero = self.int(0);
        let sizes = self.one("stablehlo.concatenate", &parts, list, &[("dimension", zero)])?;
        self.whole("stablehlo.dynamic_reshape", &[*x, sizes], &[])
    }

    pub(super) fn reverse(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let dimensions = self.ints(i.attrs.ints_or_empty(AttrKey::Dimensions));
        self.whole("stablehlo.reverse", &operands, &[("dimensions", dimensions)])
    }

    pub(super) fn slice(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let dims = i.attrs.slices().unwrap_or_default();
        let start = self.ints(&dims.iter().map(|d| d.start).collect::<Vec<_>>());
        let limit = self.ints(&dims.iter().map(|d| d.limit).collect::<Vec<_>>());
        let strides = self.ints(&dims.iter().map(|d| d.stride).collect::<Vec<_>>());
        self.whole(
            "stablehlo.slice",
            &operands,
            &[("start_indices", start), ("limit_indices", limit), ("strides", strides)],
        )
    }

    pub(super) fn transpose(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let permutation = self.ints(i.attrs.ints_or_empty(AttrKey::Dimensions));
        self.whole("stablehlo.transpose", &operands, &[("permutation", permutation)])
    }
}
