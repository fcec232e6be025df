//! Operations that apply a computation to elements: reductions, windows, maps, sorting.

use hlo::Instruction;
use hlo::attrs::{AttrKey, WindowDim};

use super::cx::{Export, Exporter, Leaves, PartOfWindow};
use crate::ir::AttrId;

impl Exporter<'_> {
    pub(super) fn map(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let rank = self.operand_dims(i, 0).len() as i64;
        let given = i.attrs.ints_or_empty(AttrKey::Dimensions);
        let all: Vec<i64> = (0..rank).collect();
        let dimensions = self.ints(if given.is_empty() { &all } else { given });
        self.applied(i, "stablehlo.map", &operands, &[("dimensions", dimensions)])
    }

    /// An operation with the region `to_apply`.
    pub(super) fn applied(
        &mut self,
        i: &Instruction,
        name: &str,
        operands: &[crate::ir::ValueId],
        properties: &[(&str, AttrId)],
    ) -> Export<Leaves> {
        let computation = self.called(i, AttrKey::ToApply)?;
        let op = self.whole_op(name, operands, properties)?;
        self.region(op, computation)?;
        Ok(self.results_of(op))
    }

    pub(super) fn reduce(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let dimensions = self.ints(i.attrs.ints_or_empty(AttrKey::Dimensions));
        self.applied(i, "stablehlo.reduce", &operands, &[("dimensions", dimensions)])
    }

    /// The dimensions of a window of an operation on arrays of a rank.
    fn window(i: &Instruction, rank: usize) -> Vec<WindowDim> {
        let mut dims = i.attrs.window().map(|w| w.dims.to_vec()).unwrap_or_default();
        if dims.is_empty() {
            dims = vec![WindowDim::default(); rank];
        }
        dims
    }

    pub(super) fn reduce_window(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let rank = self.operand_dims(i, 0).len();
        let dims = Self::window(i, rank);
        if dims.iter().any(|d| d.reversal) {
            return self.refuse("StableHLO has no windows that are read backwards but of convolutions");
        }
        let mut properties = Vec::new();
        let lists: [(&str, PartOfWindow); 4] = [
            ("window_dimensions", |d| d.size),
            ("window_strides", |d| d.stride),
            ("base_dilations", |d| d.base_dilation),
            ("window_dilations", |d| d.window_dilation),
        ];
        for (name, of) in lists {
            let list: Vec<i64> = dims.iter().map(of).collect();
            properties.push((name, self.ints(&list)));
        }
        let pairs: Vec<Vec<i64>> = dims.iter().map(|d| vec![d.pad_low, d.pad_high]).collect();
        properties.push(("padding", self.rows(&pairs, 2)));
        self.applied(i, "stablehlo.reduce_window", &operands, &properties)
    }

    pub(super) fn select_and_scatter(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let rank = self.operand_dims(i, 0).len();
        let dims = Self::window(i, rank);
        if dims.iter().any(|d| d.reversal || d.base_dilation != 1 || d.window_dilation != 1) {
            return self.refuse("StableHLO's has no dilated windows");
        }
        let sizes = self.ints(&dims.iter().map(|d| d.size).collect::<Vec<_>>());
        let strides = self.ints(&dims.iter().map(|d| d.stride).collect::<Vec<_>>());
        let pairs: Vec<Vec<i64>> = dims.iter().map(|d| vec![d.pad_low, d.pad_high]).collect();
        let padding = self.rows(&pairs, 2);
        let (select, scatter) = (self.called(i, AttrKey::Select)?, self.called(i, AttrKey::Scatter)?);
        let op = self.whole_op(
            "stablehlo.select_and_scatter",
            &operands,
            &[("window_dimensions", sizes), ("window_strides", strides), ("padding", padding)],
        )?;
        self.region(op, select)?;
        self.region(op, scatter)?;
        Ok(self.results_of(op))
    }

    pub(super) fn sort(&mut self, i: &Instruction) -> Export<Leaves> {
        let operands = self.operands(i);
        let d = self.dimension(i)?;
        let (dimension, stable) = (self.int(d), self.bool(i.attrs.bool(AttrKey::IsStable)));
        self.applied(i, "stablehlo.sort", &operands, &[("dimension", dimension), ("is_stable", stable)])
    }
}
