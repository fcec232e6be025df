//! Quantized operations. Types of values that are not quantized are compared as they are; sizes are compared
//! by the rules of the operation on what is stored or expressed.

use super::super::cx::{Convert, Converter};
use super::{elements_of, same_shape};
use crate::ir::{OpId, QuantizedType, Type, TypeId, ValueId};
use crate::print::type_text;

/// A tensor whose elements may be quantized.
#[derive(Clone, Copy)]
struct Quantized<'m> {
    ty: TypeId,
    element: TypeId,
    dims: &'m [i64],
    q: Option<&'m QuantizedType>,
}

impl<'m> Quantized<'m> {
    /// The dimension that is quantized by slices.
    fn axis(&self) -> Option<i64> {
        match self.q.map(|q| &*q.axes) {
            Some(&[(axis, _)]) => Some(i64::from(axis)),
            _ => None,
        }
    }

    /// Whether one scale is that of the whole tensor.
    fn whole(&self) -> bool {
        self.q.is_some_and(|q| q.axes.is_empty())
    }

    /// What is stored.
    fn storage(&self) -> Option<(bool, u32)> {
        self.q.map(|q| (q.signed, q.storage_bits))
    }
}

/// Operations whose results have their operands' type but for how they are quantized by slices.
fn is_elementwise(name: &str) -> bool {
    elements_of(name).is_some() || matches!(name, "abs" | "negate" | "sign")
}

impl<'m> Converter<'m> {
    fn maybe_quantized(&self, value: ValueId) -> Option<Quantized<'m>> {
        let ty = self.m.value_type(value);
        let Type::Tensor { dims, element, .. } = self.m.get_type(ty) else { return None };
        let q = match self.m.get_type(*element) {
            Type::Quantized(q) => Some(&**q),
            _ => None,
        };
        Some(Quantized { ty, element: *element, dims, q })
    }

    /// What a tensor stands for, or has.
    fn expressed_of(&self, t: &Quantized<'_>) -> TypeId {
        t.q.map_or(t.element, |q| q.expressed)
    }

    fn name_of(&self, t: &Quantized<'_>) -> String {
        type_text(self.m, t.ty)
    }

    /// Whether two element types are the same but for the parameters of quantization.
    fn same_baseline(&self, a: &Quantized<'_>, b: &Quantized<'_>) -> bool {
        match (a.q, b.q) {
            (Some(x), Some(y)) => {
                (x.signed, x.storage_bits, x.expressed) == (y.signed, y.storage_bits, y.expressed)
            }
            _ => a.element == b.element,
        }
    }

    /// Whether two element types are the same but for the parameters of slices.
    fn same_but_slices(&self, a: &Quantized<'_>, b: &Quantized<'_>) -> bool {
        a.element == b.element || a.axis().is_some() && b.axis().is_some() && self.same_baseline(a, b)
    }

    /// The rules of an operation of which an operand or result is quantized.
    pub(in crate::convert) fn quantized_rules(&self, op: OpId, name: &str) -> Convert<()> {
        let o = self.m.op(op);
        let all = |values: &[ValueId]| -> Option<Vec<Quantized<'m>>> {
            values.iter().map(|&v| self.maybe_quantized(v)).collect()
        };
        let (Some(inputs), Some(results)) = (all(&o.operands), all(&o.results)) else { return Ok(()) };
        for t in inputs.iter().chain(&results) {
            self.well_formed(op, t)?;
        }
        match (name, &inputs[..], &results[..]) {
            ("add", [a, b], [r]) => self.quantized_sum(op, a, b, r),
            ("uniform_dequantize", [x], [r]) => {
                self.hold(op, "I1", x.q.is_some(), || format!("the operand is {}", self.name_of(x)))?;
                self.shapes_match(op, "C1", x, r)?;
                self.hold(op, "C2", r.element == self.expressed_of(x), || {
                    format!("the result of {} is {}", self.name_of(x), self.name_of(r))
                })
            }
            ("uniform_quantize", [x], [r]) => {
                self.shapes_match(op, "C1", x, r)?;
                self.hold(op, "C2", r.q.is_some() && self.expressed_of(r) == self.expressed_of(x), || {
                    format!("the result of {} is {}", self.name_of(x), self.name_of(r))
                })
            }
            ("dot_general", [a, b], [r]) => self.quantized_dot(op, a, b, r),
            ("convolution" | "dynamic_conv", [a, b, ..], [r]) => self.quantized_convolution(op, a, b, r),
            ("transpose", [x], [r]) => {
                let (Some(from), Some(to)) = (x.axis(), r.axis()) else { return Ok(()) };
                let order = self.ints(op, "permutation")?;
                let mapped = usize::try_from(to).ok().and_then(|d| order.get(d)).copied();
                self.hold(op, "C4", mapped == Some(from), || {
                    format!("from {} to {}", self.name_of(x), self.name_of(r))
                })
            }
            ("broadcast_in_dim" | "dynamic_broadcast_in_dim", [x, ..], [r]) => {
                self.hold(op, "C1", self.same_but_slices(x, r), || {
                    format!("from {} to {}", self.name_of(x), self.name_of(r))
                })?;
                let (Some(from), Some(to)) = (x.axis(), r.axis()) else { return Ok(()) };
                let mapping = self.ints(op, "broadcast_dimensions")?;
                let at = usize::try_from(from).unwrap_or(usize::MAX);
                let one = x.dims.get(at) == Some(&1);
                let repeated = match (x.q, r.q) {
                    (Some(x), Some(r)) if one => {
                        r.scales.iter().all(|s| Some(s) == x.scales.first())
                            && r.zero_points.iter().all(|z| Some(z) == x.zero_points.first())
                    }
                    _ => true,
                };
                self.hold(op, "C6", mapping.get(at) == Some(&to) && repeated, || {
                    format!("from {} to {}", self.name_of(x), self.name_of(r))
                })
            }
            ("reshape" | "dynamic_reshape", [x, ..], [r]) => {
                self.hold(op, "C1", self.same_but_slices(x, r), || {
                    format!("from {} to {}", self.name_of(x), self.name_of(r))
                })?;
                let (Some(from), Some(to)) = (x.axis(), r.axis()) else { return Ok(()) };
                let split = |t: &Quantized<'_>, at: i64| {
                    let at = usize::try_from(at).ok().filter(|&at| at < t.dims.len())?;
                    let product =
                        |d: &[i64]| d.iter().try_fold(1i64, |n, &d| n.checked_mul(d).filter(|_| d >= 0));
                    Some((product(&t.dims[..at])?, t.dims[at], product(&t.dims[at + 1..])?))
                };
                let fits = split(x, from).zip(split(r, to)).is_none_or(|(a, b)| a == b);
                self.hold(op, "C3", fits, || format!("from {} to {}", self.name_of(x), self.name_of(r)))
            }
            ("clamp", [low, x, high], [r]) => {
                for bound in [low, high] {
                    self.hold(op, "C3", self.same_baseline(bound, x), || {
                        format!(
                            "elements are of different types, {} and {}",
                            self.name_of(bound),
                            self.name_of(x)
                        )
                    })?;
                }
                self.same_types(op, "C4", x, r)
            }
            ("compare", [a, b], _) => self.hold(op, "C1", self.same_baseline(a, b), || {
                format!("elements are of different types, {} and {}", self.name_of(a), self.name_of(b))
            }),
            ("select", [_, a, b], [r]) => {
                self.same_types(op, "C2", a, b)?;
                self.same_types(op, "C2", a, r)
            }
            (name, [first, rest @ ..], [r]) if is_elementwise(name) => {
                let number = if name == "abs" { "C2" } else { "C1" };
                for t in rest.iter().chain([r]) {
                    self.same_types(op, number, first, t)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The constraints of the specification on quantized types. Those on the types of their parameters (C1,
    /// C2, C4, C8) the syntax leaves nothing to break of: parameters are numbers without types.
    fn well_formed(&self, op: OpId, t: &Quantized<'_>) -> Convert<()> {
        let Some(q) = t.q else { return Ok(()) };
        let rule = |number: &str, holds: bool, what: &str| {
            self.hold(op, &format!("{number} of quantized types"), holds, || {
                format!("{} has {what}", self.name_of(t))
            })
        };
        let bits = q.storage_bits.clamp(1, 63);
        let (least, greatest) = match q.signed {
            true => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
            false => (0, ((1u64 << bits) - 1) as i64),
        };
        let range = least <= q.storage_min && q.storage_min < q.storage_max && q.storage_max <= greatest;
        rule("C3", range, "a range of storage that is empty, or wider than its storage")?;
        let scales = || q.scales.iter().map(|&s| f64::from_bits(s));
        rule("C6", scales().all(f64::is_finite), "a scale that is not finite")?;
        rule("C5", scales().all(|s| s > 0.0), "a scale that is not positive")?;
        let zeros = q.zero_points.iter().all(|z| (q.storage_min..=q.storage_max).contains(z));
        rule("C7", zeros, "a zero point out of the range of storage")?;
        rule("C9", q.scales.len() == q.zero_points.len(), "not as many scales as zero points")?;
        let Some(axis) = t.axis() else {
            return rule("C10", !q.axes.is_empty() || q.scales.len() == 1, "not one scale");
        };
        rule("C11", axis >= 0, "a negative quantized dimension")?;
        let size = usize::try_from(axis).ok().and_then(|d| t.dims.get(d)).copied();
        rule("C12", size.is_some(), "a quantized dimension beyond its rank")?;
        let per_index = matches!(*q.axes, [(_, 0 | 1)]);
        let fits = !per_index || size.is_none_or(|n| n < 0 || n == q.scales.len() as i64);
        rule("C13", fits, "another number of scales than of slices")
    }

    fn shapes_match(&self, op: OpId, number: &str, x: &Quantized<'_>, r: &Quantized<'_>) -> Convert<()> {
        self.hold(op, number, same_shape(x.dims, r.dims), || {
            format!("from {} to {}", self.name_of(x), self.name_of(r))
        })
    }

    fn same_types(&self, op: OpId, number: &str, a: &Quantized<'_>, b: &Quantized<'_>) -> Convert<()> {
        self.hold(op, number, self.same_baseline(a, b) && same_shape(a.dims, b.dims), || {
            format!("types are {} and {}", self.name_of(a), self.name_of(b))
        })
    }

    fn quantized_sum(
        &self,
        op: OpId,
        a: &Quantized<'_>,
        b: &Quantized<'_>,
        r: &Quantized<'_>,
    ) -> Convert<()> {
        let shown = || format!("{} and {} to {}", self.name_of(a), self.name_of(b), self.name_of(r));
        self.hold(op, "C2", [a, b, r].iter().all(|t| t.q.is_some()), shown)?;
        self.hold(op, "C3", a.storage() == b.storage() && a.storage() == r.storage(), shown)?;
        let expressed = [a, b, r].map(|t| self.expressed_of(t));
        self.hold(op, "C4", expressed[0] == expressed[1] && expressed[0] == expressed[2], shown)?;
        let sliced = a.axis().is_some() || b.axis().is_some();
        self.hold(op, "C5", sliced == r.axis().is_some(), shown)?;
        for (number, t) in [("C6", a), ("C7", b)] {
            self.hold(op, number, t.axis().is_none() || t.axis() == r.axis(), shown)?;
        }
        Ok(())
    }

    /// What `dot_general` and `convolution` ask of their types: which are quantized, what is stored, what is
    /// expressed, which have one scale, and that of hybrids.
    fn quantized_types(
        &self,
        op: OpId,
        numbers: [&str; 5],
        a: &Quantized<'_>,
        b: &Quantized<'_>,
        r: &Quantized<'_>,
    ) -> Convert<()> {
        let shown = || format!("{} and {} to {}", self.name_of(a), self.name_of(b), self.name_of(r));
        let [which, storage, expressed, whole, hybrid] = numbers;
        self.hold(op, which, a.q.is_some() == r.q.is_some() && b.q.is_some(), shown)?;
        let types = [a, b, r].map(|t| self.expressed_of(t));
        if a.q.is_none() {
            return self.hold(op, hybrid, types[0] == types[1] && types[0] == types[2], shown);
        }
        self.hold(op, storage, a.storage() == b.storage(), shown)?;
        self.hold(op, expressed, types[0] == types[1] && types[0] == types[2], shown)?;
        self.hold(op, whole, !b.whole() || r.whole(), shown)
    }

    fn quantized_dot(
        &self,
        op: OpId,
        a: &Quantized<'_>,
        b: &Quantized<'_>,
        r: &Quantized<'_>,
    ) -> Convert<()> {
        self.quantized_types(op, ["C14", "C17", "C18", "C19", "C20"], a, b, r)?;
        let zero = b.q.is_none_or(|q| q.zero_points.iter().all(|&z| z == 0));
        self.hold(op, "C15", zero, || format!("zero points of {}", self.name_of(b)))?;
        let contracted = self.part_ints(op, "dot_dimension_numbers", "rhs_contracting_dimensions");
        self.hold(op, "C16", b.axis().is_none_or(|d| !contracted.contains(&d)), || {
            format!("{} is quantized along a dimension that is contracted", self.name_of(b))
        })
    }

    fn quantized_convolution(
        &self,
        op: OpId,
        a: &Quantized<'_>,
        b: &Quantized<'_>,
        r: &Quantized<'_>,
    ) -> Convert<()> {
        self.quantized_types(op, ["C28", "C31", "C32", "C33", "C34"], a, b, r)?;
        let record = "dimension_numbers";
        for (number, t, name) in
            [("C29", b, "kernel_output_feature_dimension"), ("C30", r, "output_feature_dimension")]
        {
            let feature = self.part_int(op, record, name);
            self.hold(op, number, t.axis().is_none_or(|d| d == feature), || {
                format!(
                    "{} is quantized along another dimension than {feature}, of features",
                    self.name_of(t)
                )
            })?;
        }
        Ok(())
    }
}
