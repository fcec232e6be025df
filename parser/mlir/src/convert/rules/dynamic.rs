//! Operations whose result's shape is an operand.

use super::super::cx::{Convert, Converter};
use super::{INTEGERS, Tensor, same_size};
use crate::ir::{DYNAMIC, OpId};

/// What a constraint of `gather` is for `dynamic_gather`, which has no batches.
pub(super) fn of_dynamic_gather(number: &'static str) -> &'static str {
    match number {
        "C7" => "C6",
        "C8" => "C7",
        "C9" => "C8",
        "C18" => "C9",
        "C19" => "C10",
        "C20" => "C11",
        "C21" => "C12",
        "C22" => "C13",
        "C23" => "C14",
        _ => number,
    }
}

impl<'m> Converter<'m> {
    /// The values of an operand, where they are known.
    pub(super) fn known_of(&self, op: OpId, index: usize) -> Option<Vec<i64>> {
        self.operand_values(op).get(index).and_then(|v| self.known.get(v).cloned())
    }

    /// That an operand is a list of that many integers.
    fn list_of(&self, op: OpId, numbers: [&str; 2], what: &str, t: Tensor<'m>, n: usize) -> Convert<()> {
        let [input, length] = numbers;
        self.input(op, input, t, INTEGERS)?;
        self.hold(op, input, t.dims.len() == 1, || format!("{what} is {}", self.show(t)))?;
        self.hold(op, length, same_size(t.dims[0], n as i64), || {
            format!("{what} is {}, of rank {n}", self.show(t))
        })
    }

    pub(super) fn dynamically(
        &self,
        op: OpId,
        name: &str,
        inputs: &[Tensor<'m>],
        result: Tensor<'m>,
    ) -> Convert<()> {
        match (name, inputs) {
            ("dynamic_iota", &[shape]) => {
                self.input(op, "I1", shape, INTEGERS)?;
                self.hold(op, "I1", shape.dims.len() == 1, || format!("the shape is {}", self.show(shape)))?;
                let d = self.int(op, "iota_dimension")?;
                let rank = if shape.dims[0] == DYNAMIC { result.dims.len() as i64 } else { shape.dims[0] };
                self.hold(op, "C1", (0..rank).contains(&d), || format!("dimension {d} of rank {rank}"))?;
                self.hold(op, "C2", rank == result.dims.len() as i64, || {
                    format!("the result is {}, of {rank} sizes", self.show(result))
                })
            }
            ("dynamic_reshape", &[x, shape]) => {
                self.same_elements(op, "C1", x, result)?;
                let count = |t: Tensor<'_>| {
                    t.dims.iter().try_fold(1i64, |n, &d| if d == DYNAMIC { None } else { n.checked_mul(d) })
                };
                let fits = count(x).zip(count(result)).is_none_or(|(a, b)| a == b);
                self.hold(op, "C2", fits, || format!("from {} to {}", self.show(x), self.show(result)))?;
                self.list_of(op, ["I2", "C4"], "the shape", shape, result.dims.len())
            }
            ("dynamic_broadcast_in_dim", &[x, shape]) => self.dynamically_broadcast(op, x, shape, result),
            ("dynamic_pad", &[x, value, low, high, interior]) => {
                self.same_elements(op, "C1", x, value)?;
                self.same_elements(op, "C1", x, result)?;
                self.scalar(op, "I2", "the padding value", value)?;
                let rank = x.dims.len();
                for (input, t) in [("I3", low), ("I4", high), ("I5", interior)] {
                    self.list_of(op, [input, "C2"], "a list of padding", t, rank)?;
                }
                let known: Option<Vec<Vec<i64>>> = (2..5).map(|i| self.known_of(op, i)).collect();
                if let Some(interior) = self.known_of(op, 4) {
                    self.hold(op, "C3", interior.iter().all(|&n| n >= 0), || {
                        format!("interior padding {interior:?}")
                    })?;
                }
                let Some(known) = known.filter(|k| k.iter().all(|l| l.len() == rank)) else { return Ok(()) };
                let dims: Vec<i64> = (0..rank)
                    .map(|i| match x.dims[i] {
                        DYNAMIC => DYNAMIC,
                        n => (n - 1)
                            .max(0)
                            .saturating_mul(known[2][i])
                            .saturating_add(n)
                            .saturating_add(known[0][i])
                            .saturating_add(known[1][i]),
                    })
                    .collect();
                self.must_have(op, "C4", result, &dims)
            }
            _ => Ok(()),
        }
    }

    fn dynamically_broadcast(
        &self,
        op: OpId,
        x: Tensor<'m>,
        shape: Tensor<'m>,
        result: Tensor<'m>,
    ) -> Convert<()> {
        self.same_elements(op, "C1", x, result)?;
        let rank = x.dims.len() as i64;
        let mapping = self.ints(op, "broadcast_dimensions")?;
        self.hold(op, "C2", mapping.len() as i64 == rank, || {
            format!("{} dimensions for an operand of rank {rank}", mapping.len())
        })?;
        let of_result = result.dims.len() as i64;
        self.hold(op, "C3", mapping.iter().all(|d| (0..of_result).contains(d)), || {
            format!("dimensions {mapping:?} of a result of rank {of_result}")
        })?;
        let unique = |l: &[i64]| l.iter().enumerate().all(|(i, d)| !l[..i].contains(d));
        self.hold(op, "C4", unique(&mapping), || format!("dimensions {mapping:?} name one twice"))?;
        for (i, &d) in mapping.iter().enumerate() {
            let (from, to) = (x.dims[i], result.dims[d as usize]);
            self.hold(op, "C5", from == 1 || same_size(from, to), || {
                format!("dimension {i} of {} becomes dimension {d} of {}", self.show(x), self.show(result))
            })?;
        }
        self.list_of(op, ["I2", "C7"], "the shape", shape, result.dims.len())?;
        let [expanding, kept] = ["known_expanding_dimensions", "known_nonexpanding_dimensions"]
            .map(|name| self.ints_of_attr(op, name).unwrap_or_default());
        let both: Vec<i64> = expanding.iter().chain(&kept).copied().collect();
        self.hold(op, "C8", unique(&both), || format!("dimensions {both:?} name one twice"))?;
        for (number, list) in [("C9", &expanding), ("C10", &kept)] {
            self.hold(op, number, list.iter().all(|d| (0..rank).contains(d)), || {
                format!("dimensions {list:?} of an operand of rank {rank}")
            })?;
        }
        Ok(())
    }
}
