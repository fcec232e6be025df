//! Constraints of the specification that types and attributes decide, by operation; what an operation's
//! conversion needs to hold anyway is checked there.
//!
//! A size that is not known fits any. Quantized operations have rules of their own.

mod collective;
mod control;
mod dynamic;
mod quantized;
mod scatter;
mod window;

use super::cx::{Convert, Converter};
use crate::ir::{DYNAMIC, OpId, Signedness, Type, TypeId, ValueId};
use crate::print::type_text;

/// A tensor.
#[derive(Clone, Copy)]
struct Tensor<'m> {
    ty: TypeId,
    element: TypeId,
    dims: &'m [i64],
}

/// Kinds of elements, as inputs ask for them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Boolean,
    Signed,
    Unsigned,
    Float,
    Complex,
}

use Kind::{Boolean, Complex, Float, Signed, Unsigned};

const INTEGERS: &[Kind] = &[Signed, Unsigned];
const BITS: &[Kind] = &[Boolean, Signed, Unsigned];
const NUMBERS: &[Kind] = &[Signed, Unsigned, Float, Complex];
const SIGNED: &[Kind] = &[Signed, Float, Complex];
const FIELD: &[Kind] = &[Float, Complex];
const REALS: &[Kind] = &[Float];
const ANY: &[Kind] = &[Boolean, Signed, Unsigned, Float, Complex];

fn same_size(a: i64, b: i64) -> bool {
    a == b || a == DYNAMIC || b == DYNAMIC
}

fn same_shape(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same_size(a, b))
}

/// What the elements of an elementwise operation may be; `None` of what is none.
fn elements_of(name: &str) -> Option<&'static [Kind]> {
    Some(match name {
        "add" | "maximum" | "minimum" | "multiply" => ANY,
        "and" | "not" | "or" | "xor" => BITS,
        "count_leading_zeros"
        | "popcnt"
        | "shift_left"
        | "shift_right_arithmetic"
        | "shift_right_logical" => INTEGERS,
        "divide" | "negate" | "power" | "remainder" | "subtract" => NUMBERS,
        "sign" => SIGNED,
        "atan2"
        | "cbrt"
        | "cosine"
        | "exponential"
        | "exponential_minus_one"
        | "log"
        | "log_plus_one"
        | "logistic"
        | "rsqrt"
        | "sine"
        | "sqrt"
        | "tan"
        | "tanh" => FIELD,
        "ceil" | "floor" | "round_nearest_afz" | "round_nearest_even" => REALS,
        _ => return None,
    })
}

impl<'m> Converter<'m> {
    fn tensor_of(&self, value: ValueId) -> Option<Tensor<'m>> {
        let ty = self.m.value_type(value);
        match self.m.get_type(ty) {
            Type::Tensor { dims, element, .. }
                if !matches!(self.m.get_type(*element), Type::Quantized(_)) =>
            {
                Some(Tensor { ty, element: *element, dims })
            }
            _ => None,
        }
    }

    fn kind_of(&self, element: TypeId) -> Option<Kind> {
        match self.m.get_type(element) {
            Type::Integer { width: 1, sign: Signedness::Signless } => Some(Boolean),
            Type::Integer { sign: Signedness::Unsigned, .. } => Some(Unsigned),
            Type::Integer { .. } | Type::Index => Some(Signed),
            Type::Float(_) => Some(Float),
            Type::Complex(_) => Some(Complex),
            _ => None,
        }
    }

    fn show(&self, t: Tensor<'_>) -> String {
        type_text(self.m, t.ty)
    }

    fn same_type(&self, a: Tensor<'_>, b: Tensor<'_>) -> bool {
        a.element == b.element && same_shape(a.dims, b.dims)
    }

    /// The element type that a real number, or a part of a complex one, has.
    fn real_type(&self, element: TypeId) -> TypeId {
        match self.m.get_type(element) {
            Type::Complex(part) => *part,
            _ => element,
        }
    }

    fn ints_of_attr(&self, op: OpId, name: &str) -> Option<Vec<i64>> {
        self.m.attr(op, name).and_then(|a| self.ints_of(a))
    }

    /// That one type is another.
    fn must_be(
        &self,
        op: OpId,
        number: &str,
        what: &str,
        found: Tensor<'_>,
        wanted: Tensor<'_>,
    ) -> Convert<()> {
        if self.same_type(found, wanted) {
            return Ok(());
        }
        self.constraint(op, number, format!("{what} is {}, not {}", self.show(found), self.show(wanted)))
    }

    /// That elements are of the same type.
    fn same_elements(&self, op: OpId, number: &str, a: Tensor<'_>, b: Tensor<'_>) -> Convert<()> {
        if a.element == b.element {
            return Ok(());
        }
        self.constraint(
            op,
            number,
            format!("elements are of different types, {} and {}", self.show(a), self.show(b)),
        )
    }

    /// That a shape is what follows from the operands.
    fn must_have(&self, op: OpId, number: &str, result: Tensor<'_>, dims: &[i64]) -> Convert<()> {
        if same_shape(result.dims, dims) {
            return Ok(());
        }
        let shown: Vec<String> =
            dims.iter().map(|&d| if d == DYNAMIC { "?".to_owned() } else { d.to_string() }).collect();
        let message =
            format!("the result is {}, and its shape must be [{}]", self.show(result), shown.join(", "));
        self.constraint(op, number, message)
    }

    /// That the elements of an input are of one of these kinds.
    fn input(&self, op: OpId, number: &str, t: Tensor<'_>, kinds: &[Kind]) -> Convert<()> {
        match self.kind_of(t.element) {
            Some(kind) if !kinds.contains(&kind) => {
                let name = |k: &Kind| match k {
                    Boolean => "boolean",
                    Signed => "signed integer",
                    Unsigned => "unsigned integer",
                    Float => "floating-point",
                    Complex => "complex",
                };
                let names: Vec<&str> = kinds.iter().map(name).collect();
                let message = format!("elements of {} are not {}", self.show(t), names.join(", "));
                self.constraint(op, number, message)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The rules of an operation of StableHLO.
    pub(super) fn rules(&self, op: OpId, name: &str) -> Convert<()> {
        self.structural(op, name)?;
        let o = self.m.op(op);
        let all = |values: &[ValueId]| -> Option<Vec<Tensor<'m>>> {
            values.iter().map(|&v| self.tensor_of(v)).collect()
        };
        // Tokens and tuples have no rules here.
        let (Some(inputs), Some(results)) = (all(&o.operands), all(&o.results)) else { return Ok(()) };
        if let Some(kinds) = elements_of(name)
            && let ([first, rest @ ..], [result]) = (&inputs[..], &results[..])
        {
            for (&t, number) in inputs.iter().zip(["I1", "I2"]) {
                self.input(op, number, t, kinds)?;
            }
            for &t in rest {
                self.must_be(op, "C1", "the second operand", t, *first)?;
            }
            return self.must_be(op, "C1", "the result", *result, *first);
        }
        match (name, &inputs[..], &results[..]) {
            ("abs" | "real" | "imag", &[x], &[r]) => {
                self.input(op, "I1", x, if name == "abs" { SIGNED } else { FIELD })?;
                self.must_have(op, "C1", r, x.dims)?;
                if r.element == self.real_type(x.element) {
                    return Ok(());
                }
                self.constraint(op, "C2", format!("the result of {} is {}", self.show(x), self.show(r)))
            }
            ("uniform_dequantize", &[x], _) => {
                self.constraint(op, "I1", format!("the operand is {}", self.show(x)))
            }
            ("is_finite", &[x], &[r]) => {
                self.input(op, "I1", x, REALS)?;
                self.must_have(op, "C1", r, x.dims)
            }
            ("convert", &[x], &[r]) => self.must_have(op, "C1", r, x.dims),
            ("complex", &[a, b], &[r]) => {
                self.input(op, "I1", a, REALS)?;
                self.input(op, "I2", b, REALS)?;
                self.must_be(op, "C1", "the second operand", b, a)?;
                self.must_have(op, "C2", r, a.dims)?;
                match self.m.get_type(r.element) {
                    Type::Complex(part) if *part == a.element => Ok(()),
                    _ => self.constraint(
                        op,
                        "C3",
                        format!("the result of {} is {}", self.show(a), self.show(r)),
                    ),
                }
            }
            ("compare", &[a, b], &[r]) => {
                self.same_elements(op, "C1", a, b)?;
                if !same_shape(a.dims, b.dims) {
                    let message = format!("operands are {} and {}", self.show(a), self.show(b));
                    return self.constraint(op, "C2", message);
                }
                self.must_have(op, "C2", r, a.dims)?;
                self.compared_as(op, a)
            }
            ("clamp", &[low, x, high], &[r]) => {
                for bound in [low, high] {
                    self.same_elements(op, "C3", bound, x)?;
                }
                self.must_be(op, "C4", "the result", r, x)
            }
            ("select", &[predicate, a, b], &[r]) => {
                self.input(op, "I1", predicate, &[Boolean])?;
                self.must_be(op, "C2", "the third operand", b, a)?;
                self.must_be(op, "C2", "the result", r, a)
            }
            ("reduce_precision", &[x], &[r]) => {
                self.input(op, "I1", x, REALS)?;
                self.must_be(op, "C1", "the result", r, x)
            }
            ("bitcast_convert", &[x], &[r]) => self.bits_fit(op, x, r),
            ("broadcast_in_dim", &[x], &[r]) => self.same_elements(op, "C1", x, r),
            ("concatenate", [first, ..], &[r]) => self.joined(op, *first, &inputs, r),
            ("pad", &[x, value], &[r]) => {
                self.same_elements(op, "C1", x, value)?;
                self.same_elements(op, "C1", x, r)?;
                if !value.dims.is_empty() {
                    return self.constraint(op, "I2", format!("the padding value is {}", self.show(value)));
                }
                self.padded(op, x, r)
            }
            ("reshape", &[x], &[r]) => self.same_elements(op, "C1", x, r),
            ("reverse", &[x], &[r]) => self.must_be(op, "C1", "the result", r, x),
            ("slice", &[x], &[r]) => {
                self.same_elements(op, "C1", x, r)?;
                self.sliced(op, x, r)
            }
            ("transpose", &[x], &[r]) => {
                self.same_elements(op, "C1", x, r)?;
                match self.ints_of_attr(op, "permutation") {
                    Some(order) => {
                        let mut sorted = order.clone();
                        sorted.sort_unstable();
                        if !sorted.iter().copied().eq(0..x.dims.len() as i64) {
                            return Ok(());
                        }
                        let dims: Vec<i64> = order.iter().map(|&d| x.dims[d as usize]).collect();
                        self.must_have(op, "C3", r, &dims)
                    }
                    None => Ok(()),
                }
            }
            ("dynamic_slice", [x, starts @ ..], &[r]) => {
                self.same_elements(op, "C1", *x, r)?;
                self.starts(op, "I2", "C3", starts)?;
                match self.ints_of_attr(op, "slice_sizes") {
                    Some(sizes) if sizes.len() == x.dims.len() && starts.len() == sizes.len() => {
                        self.must_have(op, "C5", r, &sizes)
                    }
                    Some(_) | None => Ok(()),
                }
            }
            ("dynamic_update_slice", [x, update, starts @ ..], &[r]) => {
                self.must_be(op, "C1", "the result", r, *x)?;
                self.same_elements(op, "C2", *update, *x)?;
                self.starts(op, "I3", "C5", starts)
            }
            ("dot_general", &[a, b], &[r]) => self.contracted(op, a, b, r),
            ("reduce", _, [_, ..]) => self.reduced(op, &inputs, &results),
            ("sort", [_, ..], _) => self.sorted(op, &inputs, &results),
            ("map", [], _) => self.constraint(op, "C2", "there is no input"),
            ("map", [first, ..], &[r]) => {
                if let Some(s) = self.signature(op, 0) {
                    let elements: Vec<TypeId> = inputs.iter().map(|t| t.element).collect();
                    let gives = matches!(&s.outputs[..], &[t] if self.scalar_element(t) == Some(r.element));
                    self.hold(op, "C4", s.scalars(self, &elements) && gives, || {
                        format!("the computation is {}", self.show_signature(&s))
                    })?;
                }
                for &t in &inputs {
                    self.must_have(op, "C1", r, t.dims)?;
                }
                match self.ints_of_attr(op, "dimensions") {
                    Some(list) if !list.iter().copied().eq(0..first.dims.len() as i64) => self.constraint(
                        op,
                        "C3",
                        format!("dimensions are {list:?}, of rank {}", first.dims.len()),
                    ),
                    Some(_) | None => Ok(()),
                }
            }
            ("gather", &[x, indices], &[r]) => {
                let sizes = self.ints_of_attr(op, "slice_sizes");
                self.gathered(op, x, indices, r, sizes, |number| number)
            }
            ("dynamic_gather", &[x, indices, sizes], &[r]) => {
                self.input(op, "I3", sizes, INTEGERS)?;
                let rank = x.dims.len() as i64;
                let fits = matches!(*sizes.dims, [n] if same_size(n, rank));
                self.hold(op, "C11", fits, || {
                    format!("slice sizes are {}, of rank {rank}", self.show(sizes))
                })?;
                self.gathered(op, x, indices, r, self.known_of(op, 2), dynamic::of_dynamic_gather)
            }
            ("scatter", _, [_, ..]) => self.scattered(op, &inputs, &results),
            ("reduce_window", _, _) => self.windows_reduced(op, &inputs, &results),
            ("select_and_scatter", &[x, source, init], &[r]) => self.selected(op, [x, source, init], r),
            ("convolution" | "dynamic_conv", _, &[r]) => self.convolved(op, &inputs, r),
            (
                "all_gather"
                | "all_reduce"
                | "all_to_all"
                | "collective_broadcast"
                | "collective_permute"
                | "collective_reduce"
                | "reduce_scatter",
                _,
                _,
            ) => self.exchanged(op, name, &inputs, &results),
            (name, _, &[r]) if name.starts_with("dynamic_") => self.dynamically(op, name, &inputs, r),
            ("batch_norm_training" | "batch_norm_inference" | "batch_norm_grad", [x, rest @ ..], _) => {
                self.normalized(op, name, *x, rest, &results)
            }
            ("cholesky", &[a], &[r]) => {
                self.input(op, "I1", a, FIELD)?;
                self.must_be(op, "C1", "the result", r, a)
            }
            ("triangular_solve", &[a, b], &[r]) => self.solved(op, a, b, r),
            ("fft", &[x], &[r]) => self.transformed(op, x, r),
            ("rng", [a, b, _], &[r]) => {
                self.same_elements(op, "C1", *a, *b)?;
                self.same_elements(op, "C1", *a, r)?;
                if self.word(op, "rng_distribution") == Some("NORMAL")
                    && self.kind_of(a.element) != Some(Float)
                {
                    return self.constraint(op, "C2", format!("a normal distribution of {}", self.show(*a)));
                }
                for (number, t) in [("I1", *a), ("I2", *b)] {
                    self.scalar(op, number, "a bound", t)?;
                }
                match self.known_of(op, 2) {
                    Some(dims) => self.must_have(op, "C3", r, &dims),
                    None => Ok(()),
                }
            }
            ("rng_bit_generator", &[state], &[next, _]) => {
                self.must_be(op, "C1", "the new state", next, state)?;
                let sizes: &[i64] = match self.word(op, "rng_algorithm") {
                    Some("THREE_FRY") => &[2],
                    Some("PHILOX") => &[2, 3],
                    Some(_) | None => return Ok(()),
                };
                match *state.dims {
                    [n] if n == DYNAMIC || sizes.contains(&n) => Ok(()),
                    _ => self.constraint(op, "C2", format!("the state is {}", self.show(state))),
                }
            }
            _ => Ok(()),
        }
    }

    /// Start indices: scalars of one type of integers.
    fn starts(&self, op: OpId, input: &str, number: &str, starts: &[Tensor<'_>]) -> Convert<()> {
        for &t in starts {
            self.input(op, input, t, INTEGERS)?;
            if !t.dims.is_empty() {
                return self.constraint(op, input, format!("a start index is {}", self.show(t)));
            }
            self.same_elements(op, number, starts[0], t)?;
        }
        Ok(())
    }

    fn bits_fit(&self, op: OpId, x: Tensor<'_>, r: Tensor<'_>) -> Convert<()> {
        let bits = |t: Tensor<'_>| crate::ir::storage_bits(self.m, t.element).map(i64::from);
        let (Some(from), Some(to)) = (bits(x), bits(r)) else { return Ok(()) };
        let complex = |t: Tensor<'_>| self.kind_of(t.element) == Some(Complex);
        if complex(x) != complex(r) {
            let message = format!("from {} to {}", self.show(x), self.show(r));
            return self.constraint(op, "C2", message);
        }
        let wide = |t: Tensor<'_>, narrow: Tensor<'_>, of_wide: i64, of_narrow: i64| {
            let Some((&last, rest)) = narrow.dims.split_last() else { return false };
            same_shape(rest, t.dims) && (last == DYNAMIC || last.checked_mul(of_narrow) == Some(of_wide))
        };
        let fits = match from.cmp(&to) {
            std::cmp::Ordering::Equal => same_shape(x.dims, r.dims),
            std::cmp::Ordering::Greater => wide(x, r, from, to),
            std::cmp::Ordering::Less => wide(r, x, to, from),
        };
        if fits {
            return Ok(());
        }
        let message = format!("the bits of {} are not those of {}", self.show(x), self.show(r));
        self.constraint(op, "C1", message)
    }

    fn joined(&self, op: OpId, first: Tensor<'_>, inputs: &[Tensor<'_>], r: Tensor<'_>) -> Convert<()> {
        for &t in inputs {
            self.same_elements(op, "C1", first, t)?;
        }
        let d = self.int_or(op, "dimension", -1)?;
        let Some(d) = usize::try_from(d).ok().filter(|&d| d < first.dims.len()) else { return Ok(()) };
        let mut dims = first.dims.to_vec();
        for &t in &inputs[1..] {
            let mut own = t.dims.to_vec();
            if own.len() == dims.len() {
                own[d] = dims[d];
            }
            if !same_shape(&own, &dims) {
                let message = format!("operands are {} and {}", self.show(first), self.show(t));
                return self.constraint(op, "C2", message);
            }
            let unknown = dims[d] == DYNAMIC || t.dims[d] == DYNAMIC;
            dims[d] = if unknown { DYNAMIC } else { dims[d].saturating_add(t.dims[d]) };
        }
        self.same_elements(op, "C5", first, r)?;
        self.must_have(op, "C6", r, &dims)
    }

    fn padded(&self, op: OpId, x: Tensor<'_>, r: Tensor<'_>) -> Convert<()> {
        let lists =
            ["edge_padding_low", "edge_padding_high", "interior_padding"].map(|n| self.ints_of_attr(op, n));
        let [Some(low), Some(high), Some(interior)] = lists else { return Ok(()) };
        if [&low, &high, &interior].iter().any(|l| l.len() != x.dims.len()) || interior.iter().any(|&n| n < 0)
        {
            return Ok(());
        }
        let dims: Vec<i64> = (0..x.dims.len())
            .map(|i| match x.dims[i] {
                DYNAMIC => DYNAMIC,
                n => (n - 1)
                    .max(0)
                    .saturating_mul(interior[i])
                    .saturating_add(n)
                    .saturating_add(low[i])
                    .saturating_add(high[i]),
            })
            .collect();
        self.must_have(op, "C4", r, &dims)
    }

    fn sliced(&self, op: OpId, x: Tensor<'_>, r: Tensor<'_>) -> Convert<()> {
        let lists = ["start_indices", "limit_indices", "strides"].map(|n| self.ints_of_attr(op, n));
        let [Some(start), Some(limit), Some(strides)] = lists else { return Ok(()) };
        let rank = x.dims.len();
        let valid = [&start, &limit, &strides].iter().all(|l| l.len() == rank)
            && (0..rank).all(|i| start[i] >= 0 && start[i] <= limit[i] && strides[i] > 0);
        if !valid {
            return Ok(());
        }
        let dims: Vec<i64> =
            (0..rank).map(|i| ((limit[i] - start[i]) as u64).div_ceil(strides[i] as u64) as i64).collect();
        self.must_have(op, "C5", r, &dims)
    }

    fn contracted(&self, op: OpId, a: Tensor<'_>, b: Tensor<'_>, r: Tensor<'_>) -> Convert<()> {
        let record = "dot_dimension_numbers";
        if let Some(crate::ir::Attribute::Array(config)) = self.attr(op, "precision_config")
            && !matches!(config.len(), 0 | 2)
        {
            return self.constraint(op, "C11", format!("{} precisions of two operands", config.len()));
        }
        if self.attr(op, "algorithm").is_some() {
            self.counted(op)?;
        }
        // XLA takes floats of two formats, and JAX writes such programs.
        if self.kind_of(a.element) != Some(Float) || self.kind_of(b.element) != Some(Float) {
            self.same_elements(op, "C13", a, b)?;
        }
        let list = |name| self.part_ints(op, record, name);
        let batch = [list("lhs_batching_dimensions"), list("rhs_batching_dimensions")];
        let contracting = [list("lhs_contracting_dimensions"), list("rhs_contracting_dimensions")];
        let within =
            |dims: &[i64], t: Tensor<'_>| dims.iter().all(|&d| (0..t.dims.len() as i64).contains(&d));
        if !within(&batch[0], a)
            || !within(&contracting[0], a)
            || !within(&batch[1], b)
            || !within(&contracting[1], b)
        {
            return Ok(());
        }
        let mut dims: Vec<i64> = batch[0].iter().map(|&d| a.dims[d as usize]).collect();
        for (side, t) in [a, b].into_iter().enumerate() {
            let free = (0..t.dims.len() as i64)
                .filter(|d| !batch[side].contains(d) && !contracting[side].contains(d));
            dims.extend(free.map(|d| t.dims[d as usize]));
        }
        // Those that name a dimension twice have another number.
        let named = [&batch[0], &batch[1], &contracting[0], &contracting[1]];
        let unique = |side: usize| {
            let mut all: Vec<i64> = named[side].iter().chain(named[side + 2]).copied().collect();
            all.sort_unstable();
            all.windows(2).all(|w| w[0] != w[1])
        };
        let paired = batch[0].len() == batch[1].len() && contracting[0].len() == contracting[1].len();
        if !unique(0) || !unique(1) || !paired {
            return Ok(());
        }
        let equal = |lists: &[Vec<i64>; 2]| {
            lists[0].iter().zip(&lists[1]).all(|(&x, &y)| same_size(a.dims[x as usize], b.dims[y as usize]))
        };
        if !equal(&batch) || !equal(&contracting) {
            return Ok(());
        }
        self.must_have(op, "C12", r, &dims)
    }

    /// The counts of an algorithm, which is given instead of precisions.
    fn counted(&self, op: OpId) -> Convert<()> {
        if let Some(crate::ir::Attribute::Array(config)) = self.attr(op, "precision_config") {
            let words = config.iter().filter_map(|&a| self.enum_word(self.m.get_attribute(a)));
            let words: Vec<&str> = words.filter(|w| *w != "DEFAULT").collect();
            self.hold(op, "C21", words.is_empty(), || {
                format!("an algorithm and precisions {}", words.join(", "))
            })?;
        }
        for (number, name) in [
            ("C22", "lhs_component_count"),
            ("C23", "rhs_component_count"),
            ("C24", "num_primitive_operations"),
        ] {
            let count = self.part_int(op, "algorithm", name);
            self.hold(op, number, count > 0, || format!("`{name}` is {count}"))?;
        }
        Ok(())
    }

    fn reduced(&self, op: OpId, inputs: &[Tensor<'_>], results: &[Tensor<'_>]) -> Convert<()> {
        let n = inputs.len() / 2;
        if n == 0 || inputs.len() != 2 * n || results.len() != n {
            let message = format!("{} operands and {} results", inputs.len(), results.len());
            return self.constraint(op, "C3", message);
        }
        for i in 0..n {
            if !same_shape(inputs[i].dims, inputs[0].dims) {
                let message = format!("inputs are {} and {}", self.show(inputs[0]), self.show(inputs[i]));
                return self.constraint(op, "C1", message);
            }
            self.same_elements(op, "C2", inputs[i], inputs[n + i])?;
            if !inputs[n + i].dims.is_empty() {
                let message = format!("an initial value is {}", self.show(inputs[n + i]));
                return self.constraint(op, "I2", message);
            }
        }
        let Some(dimensions) = self.ints_of_attr(op, "dimensions") else { return Ok(()) };
        let rank = inputs[0].dims.len() as i64;
        let twice = dimensions.iter().enumerate().any(|(i, d)| dimensions[..i].contains(d));
        if twice || dimensions.iter().any(|d| !(0..rank).contains(d)) {
            return Ok(());
        }
        let kept: Vec<i64> =
            (0..rank).filter(|d| !dimensions.contains(d)).map(|d| inputs[0].dims[d as usize]).collect();
        let elements = self.reducer(op, "C6", 0, &inputs[..n])?;
        results.iter().try_for_each(|&r| self.must_have(op, "C7", r, &kept))?;
        self.elements_of_results(op, "C8", results, &elements)
    }

    fn sorted(&self, op: OpId, inputs: &[Tensor<'_>], results: &[Tensor<'_>]) -> Convert<()> {
        if inputs.len() != results.len() {
            return self.constraint(
                op,
                "C2",
                format!("{} results of {} inputs", results.len(), inputs.len()),
            );
        }
        for (&x, &r) in inputs.iter().zip(results) {
            self.must_be(op, "C2", "a result", r, x)?;
            if !same_shape(x.dims, inputs[0].dims) {
                let message = format!("inputs are {} and {}", self.show(inputs[0]), self.show(x));
                return self.constraint(op, "C3", message);
            }
        }
        let arguments = match self.m.op(op).regions.first().map(|&r| &self.m.region(r).blocks[..]) {
            Some(&[block]) => &self.m.block(block).arguments,
            Some(_) | None => return Ok(()),
        };
        let fits = arguments.len() == 2 * inputs.len()
            && arguments.iter().enumerate().all(|(i, &a)| {
                self.tensor_of(a).is_none_or(|t| t.dims.is_empty() && t.element == inputs[i / 2].element)
            });
        if fits {
            return Ok(());
        }
        self.constraint(op, "C5", "the comparator does not take two scalars of each input")
    }

    fn normalized(
        &self,
        op: OpId,
        name: &str,
        x: Tensor<'_>,
        rest: &[Tensor<'_>],
        results: &[Tensor<'_>],
    ) -> Convert<()> {
        self.input(op, "I1", x, REALS)?;
        let feature = self.int_or(op, "feature_index", -1)?;
        let Some(&size) = usize::try_from(feature).ok().and_then(|d| x.dims.get(d)) else { return Ok(()) };
        for (i, &t) in rest.iter().enumerate() {
            self.same_elements(op, "C2", x, t)?;
            // The gradient's last operand has the shape of the first.
            if name == "batch_norm_grad" && i == 3 {
                self.must_be(op, "C3", "`grad_output`", t, x)?;
                continue;
            }
            let number = if name == "batch_norm_grad" {
                // The others have the shape of the scale, which has one for each feature.
                if i == 0 { "C5" } else { "C4" }
            } else {
                ["C3", "C4", "C5", "C6"][i.min(3)]
            };
            if !same_shape(t.dims, &[size]) {
                let message = format!("operand {} is {}, of {size} features", i + 1, self.show(t));
                return self.constraint(op, number, message);
            }
        }
        let (last, others) = match name {
            "batch_norm_training" => ("C7", &["C5", "C6"][..]),
            "batch_norm_inference" => ("C7", &[][..]),
            _ => ("C3", &["C4", "C4"][..]),
        };
        for (i, &r) in results.iter().enumerate() {
            self.same_elements(op, "C2", x, r)?;
            match i.checked_sub(1).and_then(|i| others.get(i)) {
                None => self.must_be(op, last, "the result", r, x)?,
                Some(number) => self.hold(op, number, same_shape(r.dims, &[size]), || {
                    format!("result {i} is {}, of {size} features", self.show(r))
                })?,
            }
        }
        Ok(())
    }

    fn solved(&self, op: OpId, a: Tensor<'_>, b: Tensor<'_>, r: Tensor<'_>) -> Convert<()> {
        self.input(op, "I1", a, FIELD)?;
        self.same_elements(op, "C1", a, b)?;
        if a.dims.len() < 2 || a.dims.len() != b.dims.len() {
            return self.constraint(op, "C2", format!("operands are {} and {}", self.show(a), self.show(b)));
        }
        let batch = a.dims.len() - 2;
        let shared = if self.bool_or(op, "left_side", false)? { b.dims[batch] } else { b.dims[batch + 1] };
        let fits = same_shape(&a.dims[..batch], &b.dims[..batch])
            && same_size(a.dims[batch], a.dims[batch + 1])
            && same_size(a.dims[batch], shared);
        if !fits {
            return self.constraint(op, "C3", format!("{} and {}", self.show(a), self.show(b)));
        }
        self.must_be(op, "C4", "the result", r, b)
    }

    fn transformed(&self, op: OpId, x: Tensor<'_>, r: Tensor<'_>) -> Convert<()> {
        let (Some(kind), Some(length)) = (self.word(op, "fft_type"), self.ints_of_attr(op, "fft_length"))
        else {
            return Ok(());
        };
        let n = length.len();
        if !(1..=3).contains(&n) || n > x.dims.len() {
            return Ok(());
        }
        let complex = |t: Tensor<'_>| self.kind_of(t.element) == Some(Complex);
        let fits = match kind {
            "RFFT" => !complex(x) && complex(r) && self.real_type(r.element) == x.element,
            "IRFFT" => complex(x) && !complex(r) && self.real_type(x.element) == r.element,
            _ => complex(x) && x.element == r.element,
        };
        if !fits {
            let message = format!("{kind} from {} to {}", self.show(x), self.show(r));
            return self.constraint(op, "C2", message);
        }
        let real = match kind {
            "RFFT" => Some(x),
            "IRFFT" => Some(r),
            _ => None,
        };
        if let Some(real) = real
            && !(real.dims.len() >= n && same_shape(&real.dims[real.dims.len() - n..], &length))
        {
            let message = format!("a transform of {length:?} of {}", self.show(real));
            return self.constraint(op, "C4", message);
        }
        let half = |d: i64| {
            if d == DYNAMIC {
                d
            } else if d == 0 {
                0
            } else {
                d / 2 + 1
            }
        };
        let mut dims = x.dims.to_vec();
        let last = dims.len() - 1;
        match kind {
            "RFFT" => dims[last] = half(dims[last]),
            "IRFFT" => {
                let of_result = r.dims.last().copied().unwrap_or(0);
                if !same_size(half(of_result), dims[last]) {
                    let message = format!("{kind} from {} to {}", self.show(x), self.show(r));
                    return self.constraint(op, "C5", message);
                }
                dims[last] = of_result;
            }
            _ => {}
        }
        self.must_have(op, "C5", r, &dims)
    }
}
