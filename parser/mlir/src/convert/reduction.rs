//! Operations that apply a region to elements: reductions, windows, maps, sorting.

use hlo::attrs::{AttrKey, AttrValue, Attrs, Window, WindowDim};
use hlo::{ComputationId, InstrId, Opcode, Shape};

use super::cx::{Convert, Converter, list};
use crate::ir::OpId;

impl Converter<'_> {
    /// The shape of one result, or the tuple of several.
    pub(super) fn packed_shape(&self, op: OpId) -> Convert<Shape> {
        let shapes = self.result_shapes(op)?;
        Ok(match &shapes[..] {
            [one] => one.clone(),
            _ => Shape::tuple(shapes),
        })
    }

    pub(super) fn map(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        let dimensions = self.ints(op, "dimensions")?;
        let attrs = Attrs::new()
            .with(AttrKey::Dimensions, list(&dimensions))
            .with(AttrKey::ToApply, AttrValue::Computation(self.region(op, 0)?));
        let shape = self.result_shape(op)?;
        let id = self.emit(Opcode::Map, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    pub(super) fn reduce(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        if operands.is_empty() || operands.len() % 2 != 0 {
            return self.structure(op, "has not as many initial values as inputs");
        }
        let dimensions = self.ints(op, "dimensions")?;
        let rank = self.dims_of(operands[0]).len() as i64;
        for (i, d) in dimensions.iter().enumerate() {
            if !(0..rank).contains(d) {
                return self.constraint(op, "C4", format!("dimension {d} of inputs of rank {rank}"));
            }
            if dimensions[..i].contains(d) {
                return self.constraint(op, "C5", format!("dimension {d} is named twice"));
            }
        }
        let attrs = Attrs::new()
            .with(AttrKey::Dimensions, list(&dimensions))
            .with(AttrKey::ToApply, AttrValue::Computation(self.region(op, 0)?));
        let shape = self.packed_shape(op)?;
        let id = self.emit(Opcode::Reduce, shape, &operands, attrs);
        self.bind_tuple(op, id)
    }

    /// The window of an operation; attributes that are absent are ones and zeros.
    pub(super) fn window(
        &self,
        op: OpId,
        sizes: &[i64],
        padding: &[i64],
        names: [&str; 3],
    ) -> Convert<Window> {
        let n = sizes.len();
        let [strides, base, dilation] = names;
        let strides = self.ints_or(op, strides, || vec![1; n])?;
        let base = self.ints_or(op, base, || vec![1; n])?;
        let dilation = self.ints_or(op, dilation, || vec![1; n])?;
        let reversal = self.ints_or(op, "window_reversal", || vec![0; n])?;
        self.window_of(op, [sizes, &strides, &base, &dilation, &reversal], padding)
    }

    /// The window of these sizes, strides, base dilations, window dilations and reversals, by dimension.
    /// `padding`: low and high of each dimension.
    pub(super) fn window_of(&self, op: OpId, parts: [&[i64]; 5], padding: &[i64]) -> Convert<Window> {
        let [sizes, strides, base, dilation, reversal] = parts;
        let n = sizes.len();
        if parts.iter().any(|part| part.len() != n) || padding.len() != 2 * n {
            return self.structure(op, &format!("has a window whose parts are not of {n} dimensions"));
        }
        let dims = (0..n)
            .map(|i| WindowDim {
                size: sizes[i],
                stride: strides[i],
                pad_low: padding[2 * i],
                pad_high: padding[2 * i + 1],
                base_dilation: base[i],
                window_dilation: dilation[i],
                reversal: reversal[i] != 0,
            })
            .collect();
        Ok(Window { dims })
    }

    pub(super) fn reduce_window(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        if operands.is_empty() || operands.len() % 2 != 0 {
            return self.structure(op, "has not as many initial values as inputs");
        }
        let sizes = self.ints(op, "window_dimensions")?;
        let rank = self.dims_of(operands[0]).len();
        if sizes.len() != rank {
            return self.constraint(
                op,
                "C4",
                format!("{} window dimensions of inputs of rank {rank}", sizes.len()),
            );
        }
        let padding = self.ints_or(op, "padding", || vec![0; 2 * rank])?;
        let names = ["window_strides", "base_dilations", "window_dilations"];
        let window = self.window(op, &sizes, &padding, names)?;
        let reducer = self.region(op, 0)?;
        self.reduce_window_of(op, &operands, window, reducer)
    }

    /// The fold of the inputs, then initial values among the operands, over each window.
    pub(super) fn reduce_window_of(
        &mut self,
        op: OpId,
        operands: &[InstrId],
        window: Window,
        reducer: ComputationId,
    ) -> Convert<()> {
        self.positive(op, &window, [("C5", 0), ("C7", 1), ("C9", 2), ("C11", 3)])?;
        let attrs = Attrs::new()
            .with(AttrKey::Window, AttrValue::Window(Box::new(window)))
            .with(AttrKey::ToApply, AttrValue::Computation(reducer));
        let shape = self.packed_shape(op)?;
        let id = self.emit(Opcode::ReduceWindow, shape, operands, attrs);
        self.bind_tuple(op, id)
    }

    /// That sizes, strides and dilations of a window are positive; which constraint says so of which.
    pub(super) fn positive(&self, op: OpId, window: &Window, rules: [(&str, usize); 4]) -> Convert<()> {
        const WHAT: [&str; 4] = ["size", "stride", "base dilation", "window dilation"];
        for (i, d) in window.dims.iter().enumerate() {
            let parts = [d.size, d.stride, d.base_dilation, d.window_dilation];
            for (number, part) in rules {
                if parts[part] < 1 {
                    return self.constraint(
                        op,
                        number,
                        format!("{} {} of dimension {i}", WHAT[part], parts[part]),
                    );
                }
            }
        }
        Ok(())
    }

    pub(super) fn select_and_scatter(&mut self, op: OpId) -> Convert<()> {
        let operands: [_; 3] = self.exactly(op)?;
        let rank = self.dims_of(operands[0]).len();
        let sizes = self.ints_or(op, "window_dimensions", || vec![1; rank])?;
        let padding = self.ints_or(op, "padding", || vec![0; 2 * rank])?;
        let window = self.window(op, &sizes, &padding, ["window_strides", "", ""])?;
        self.positive(op, &window, [("C5", 0), ("C7", 1), ("C5", 0), ("C7", 1)])?;
        let attrs = Attrs::new()
            .with(AttrKey::Window, AttrValue::Window(Box::new(window)))
            .with(AttrKey::Select, AttrValue::Computation(self.region(op, 0)?))
            .with(AttrKey::Scatter, AttrValue::Computation(self.region(op, 1)?));
        let shape = self.result_shape(op)?;
        let id = self.emit(Opcode::SelectAndScatter, shape, &operands, attrs);
        self.bind_one(op, id)
    }

    pub(super) fn sort(&mut self, op: OpId) -> Convert<()> {
        let operands = self.operands(op)?;
        let Some(&first) = operands.first() else { return self.constraint(op, "C1", "there is no input") };
        let rank = self.dims_of(first).len() as i64;
        let dimension = self.int_or(op, "dimension", -1)?;
        if !(-rank..rank).contains(&dimension) {
            return self.constraint(op, "C4", format!("dimension {dimension} of inputs of rank {rank}"));
        }
        let dimension = if dimension < 0 { dimension + rank } else { dimension };
        let attrs = Attrs::new()
            .with(AttrKey::Dimensions, list(&[dimension]))
            .with(AttrKey::IsStable, AttrValue::Bool(self.bool_or(op, "is_stable", false)?))
            .with(AttrKey::ToApply, AttrValue::Computation(self.region(op, 0)?));
        let shape = self.packed_shape(op)?;
        let id = self.emit(Opcode::Sort, shape, &operands, attrs);
        self.bind_tuple(op, id)
    }
}
