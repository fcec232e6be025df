//! Windows: `reduce_window`, `select_and_scatter`, `convolution` and `dynamic_conv`.

use hlo::attrs::WindowDim;

use super::super::cx::{Convert, Converter};
use super::{Float, Tensor, same_size};
use crate::ir::{Attribute, DYNAMIC, OpId, Type};

/// A list of a window: its name, the constraint of its length and that of its values.
type List = (&'static str, &'static str, &'static str);

/// How many windows fit into a dimension; what is not known stays so, and what is beyond 64 bits is more than
/// any dimension.
fn count(size: i64, window: WindowDim) -> i64 {
    if size == DYNAMIC { DYNAMIC } else { window.placements(size).unwrap_or(i64::MAX) }
}

impl<'m> Converter<'m> {
    /// The dimensions of an attribute that is a tensor.
    pub(super) fn dims_of_attr(&self, op: OpId, name: &str) -> Option<&'m [i64]> {
        match self.attr(op, name)? {
            Attribute::Elements { ty, .. } => match self.m.get_type(*ty) {
                Type::Tensor { dims, .. } => Some(dims),
                _ => None,
            },
            _ => None,
        }
    }

    /// The lists of a window, `default` where one is absent: each of `n` values, all positive.
    fn lists(&self, op: OpId, n: usize, lists: &[List]) -> Convert<Vec<Vec<i64>>> {
        let mut all = Vec::new();
        for &(name, of_length, of_values) in lists {
            let values = self.ints_of_attr(op, name).unwrap_or_else(|| vec![1; n]);
            self.hold(op, of_length, values.len() == n, || {
                format!("`{name}` has {} values for {n} dimensions", values.len())
            })?;
            self.hold(op, of_values, values.iter().all(|&v| v > 0), || {
                format!("`{name}` is {values:?}, and must be positive")
            })?;
            all.push(values);
        }
        Ok(all)
    }

    /// The padding of a window of `n` dimensions, two numbers each.
    fn paddings(&self, op: OpId, number: &str, n: usize) -> Convert<Vec<i64>> {
        let Some(values) = self.ints_of_attr(op, "padding") else { return Ok(vec![0; 2 * n]) };
        let fits = values.len() == 2 * n
            && self.dims_of_attr(op, "padding").is_none_or(|dims| n == 0 || *dims == [n as i64, 2]);
        self.hold(op, number, fits, || format!("the padding is no list of {n} pairs"))?;
        Ok(values)
    }

    pub(super) fn windows_reduced(
        &self,
        op: OpId,
        inputs: &[Tensor<'m>],
        results: &[Tensor<'m>],
    ) -> Convert<()> {
        let n = inputs.len() / 2;
        self.hold(op, "C1", n > 0 && inputs.len() == 2 * n && results.len() == n, || {
            format!("{} operands and {} results", inputs.len(), results.len())
        })?;
        let (inputs, initial) = inputs.split_at(n);
        for (&x, &init) in inputs.iter().zip(initial) {
            self.equal_shapes(op, "C2", "inputs", inputs[0], x)?;
            self.same_elements(op, "C3", x, init)?;
            self.scalar(op, "I2", "an initial value", init)?;
        }
        let rank = inputs[0].dims.len();
        let lists = self.lists(
            op,
            rank,
            &[
                ("window_dimensions", "C4", "C5"),
                ("window_strides", "C6", "C7"),
                ("base_dilations", "C8", "C9"),
                ("window_dilations", "C10", "C11"),
            ],
        )?;
        let padding = self.paddings(op, "C12", rank)?;
        let elements = self.reducer(op, "C13", 0, inputs)?;
        for &r in results {
            self.equal_shapes(op, "C14", "results", results[0], r)?;
        }
        let dims: Vec<i64> = (0..rank)
            .map(|i| {
                let [size, stride, base_dilation, window_dilation] = [0, 1, 2, 3].map(|l: usize| lists[l][i]);
                let (pad_low, pad_high) = (padding[2 * i], padding[2 * i + 1]);
                let reversal = false;
                let window =
                    WindowDim { size, stride, pad_low, pad_high, base_dilation, window_dilation, reversal };
                count(inputs[0].dims[i], window)
            })
            .collect();
        self.must_have(op, "C15", results[0], &dims)?;
        self.elements_of_results(op, "C16", results, &elements)
    }

    pub(super) fn selected(&self, op: OpId, inputs: [Tensor<'m>; 3], result: Tensor<'m>) -> Convert<()> {
        let [x, source, init] = inputs;
        self.same_elements(op, "C1", x, source)?;
        self.same_elements(op, "C3", init, x)?;
        self.scalar(op, "I3", "the initial value", init)?;
        let rank = x.dims.len();
        let lists =
            self.lists(op, rank, &[("window_dimensions", "C4", "C5"), ("window_strides", "C6", "C7")])?;
        let padding = self.paddings(op, "C8", rank)?;
        let dims: Vec<i64> = (0..rank)
            .map(|i| {
                let (pad_low, pad_high) = (padding[2 * i], padding[2 * i + 1]);
                let (size, stride) = (lists[0][i], lists[1][i]);
                count(x.dims[i], WindowDim { size, stride, pad_low, pad_high, ..WindowDim::default() })
            })
            .collect();
        self.hold(op, "C2", super::same_shape(source.dims, &dims), || {
            format!("the source is {}, and there are {dims:?} windows", self.show(source))
        })?;
        if let Some(select) = self.signature(op, 0) {
            let takes = select.scalars(self, &[x.element, x.element]);
            let gives = matches!(&select.outputs[..], &[t] if self.is_predicate(t));
            self.hold(op, "C9", takes && gives, || {
                format!("the selection is {}", self.show_signature(&select))
            })?;
        }
        let elements = self.reducer(op, "C10", 1, &[x])?;
        self.must_have(op, "C11", result, x.dims)?;
        self.elements_of_results(op, "C12", &[result], &elements)
    }

    /// `convolution`, and `dynamic_conv`, whose padding is the third operand.
    pub(super) fn convolved(&self, op: OpId, inputs: &[Tensor<'m>], result: Tensor<'m>) -> Convert<()> {
        let [x, kernel, rest @ ..] = inputs else { return Ok(()) };
        let (x, kernel) = (*x, *kernel);
        let n = x.dims.len();
        self.hold(op, "C1", kernel.dims.len() == n && n >= 2, || {
            format!("operands are {} and {}", self.show(x), self.show(kernel))
        })?;
        let spatial = n - 2;
        let lists = self.lists(
            op,
            spatial,
            &[("window_strides", "C2", "C3"), ("lhs_dilation", "C5", "C6"), ("rhs_dilation", "C7", "C8")],
        )?;
        let padding = match rest {
            [] => Some(self.paddings(op, "C4", spatial)?),
            [padding, ..] => {
                self.hold(op, "C4", super::same_shape(padding.dims, &[spatial as i64, 2]), || {
                    format!("the padding is {}", self.show(*padding))
                })?;
                self.operand_values(op).get(2).and_then(|v| self.known.get(v).cloned())
            }
        };
        if let Some(reversal) = self.ints_of_attr(op, "window_reversal") {
            self.hold(op, "C9", reversal.len() == spatial, || {
                format!("`window_reversal` has {} values for {spatial} dimensions", reversal.len())
            })?;
        }
        let record = "dimension_numbers";
        let one = |name| self.part_int(op, record, name);
        let many = |name| self.part_ints(op, record, name);
        let sides = [
            ("input", "C12", "C13", one("input_batch_dimension"), one("input_feature_dimension")),
            (
                "kernel",
                "C17",
                "C18",
                one("kernel_input_feature_dimension"),
                one("kernel_output_feature_dimension"),
            ),
            ("output", "C19", "C20", one("output_batch_dimension"), one("output_feature_dimension")),
        ];
        let spatial_dims = [
            many("input_spatial_dimensions"),
            many("kernel_spatial_dimensions"),
            many("output_spatial_dimensions"),
        ];
        for ((side, of_length, of_values, first, second), dims) in sides.iter().zip(&spatial_dims) {
            self.hold(op, of_length, dims.len() == spatial, || {
                format!("{} spatial dimensions of the {side}, of rank {n}", dims.len())
            })?;
            let mut all: Vec<i64> = dims.iter().copied().chain([*first, *second]).collect();
            all.sort_unstable();
            self.hold(op, of_values, all.iter().copied().eq(0..n as i64), || {
                format!("dimensions of the {side} are {all:?}, of rank {n}")
            })?;
        }
        let features = self.int_or(op, "feature_group_count", 1)?;
        let batches = self.int_or(op, "batch_group_count", 1)?;
        self.hold(op, "C21", features > 0, || format!("`feature_group_count` is {features}"))?;
        self.hold(op, "C22", batches > 0, || format!("`batch_group_count` is {batches}"))?;
        self.hold(op, "C23", features == 1 || batches == 1, || {
            format!("{features} groups of features and {batches} of batches")
        })?;
        let size = |t: Tensor<'_>, d: i64| t.dims[d as usize];
        let divides = |size: i64, by: i64| size == DYNAMIC || size % by == 0;
        let (batch, feature) = (size(x, sides[0].3), size(x, sides[0].4));
        let (inner, outer) = (size(kernel, sides[1].3), size(kernel, sides[1].4));
        let parts = [
            ("C10", batch, batches, "a batch of size", "groups"),
            ("C11", feature, features, "an input feature of size", "groups"),
            ("C15", outer, batches, "an output feature of size", "groups of batches"),
            ("C16", outer, features, "an output feature of size", "groups of features"),
        ];
        for (number, size, by, what, groups) in parts {
            self.hold(op, number, divides(size, by), || format!("{what} {size} in {by} {groups}"))?;
        }
        let per_group = if feature == DYNAMIC { DYNAMIC } else { feature / features };
        self.hold(op, "C14", same_size(inner, per_group), || {
            format!("the kernel has {inner} input features, and each group {per_group}")
        })?;
        if let Some(Attribute::Array(config)) = self.attr(op, "precision_config") {
            self.hold(op, "C24", matches!(config.len(), 0 | 2), || {
                format!("{} precisions of two operands", config.len())
            })?;
        }
        self.hold(op, "C26", result.dims.len() == n, || format!("the result is {}", self.show(result)))?;
        let mut dims = vec![DYNAMIC; n];
        dims[sides[2].3 as usize] = if batch == DYNAMIC { DYNAMIC } else { batch / batches };
        dims[sides[2].4 as usize] = outer;
        for i in 0..spatial {
            let Some(padding) = &padding else { break };
            let length = size(kernel, spatial_dims[1][i]);
            if length == DYNAMIC || padding.len() != 2 * spatial {
                continue;
            }
            let window = WindowDim {
                size: length,
                stride: lists[0][i],
                pad_low: padding[2 * i],
                pad_high: padding[2 * i + 1],
                base_dilation: lists[1][i],
                window_dilation: lists[2][i],
                reversal: false,
            };
            dims[spatial_dims[2][i] as usize] = count(size(x, spatial_dims[0][i]), window);
        }
        self.must_have(op, "C25", result, &dims)?;
        // XLA takes floats of two formats, and sums and results of other types; JAX writes such programs.
        if [x, kernel].iter().all(|t| self.kind_of(t.element) == Some(Float)) {
            return Ok(());
        }
        self.same_elements(op, "C27", x, kernel)
    }
}
