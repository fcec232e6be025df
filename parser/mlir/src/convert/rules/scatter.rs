//! `scatter` and `gather`.

use super::super::cx::{Convert, Converter};
use super::{INTEGERS, Tensor, same_shape, same_size};
use crate::ir::{DYNAMIC, OpId};

fn unique(list: &[i64]) -> bool {
    list.iter().enumerate().all(|(i, d)| !list[..i].contains(d))
}

fn within(list: &[i64], rank: i64) -> bool {
    list.iter().all(|d| (0..rank).contains(d))
}

impl<'m> Converter<'m> {
    pub(super) fn scattered(&self, op: OpId, operands: &[Tensor<'m>], results: &[Tensor<'m>]) -> Convert<()> {
        let n = operands.len() / 2;
        self.hold(op, "C5", n > 0 && operands.len() == 2 * n + 1, || {
            format!("{} operands, which are no indices and as many inputs as updates", operands.len())
        })?;
        let (inputs, indices, updates) = (&operands[..n], operands[n], &operands[n + 1..]);
        for &x in inputs {
            self.equal_shapes(op, "C1", "inputs", inputs[0], x)?;
        }
        for &u in updates {
            self.equal_shapes(op, "C3", "updates", updates[0], u)?;
        }
        for (&x, &u) in inputs.iter().zip(updates) {
            self.same_elements(op, "C6", u, x)?;
        }
        self.input(op, "I2", indices, INTEGERS)?;
        let list = |name| self.part_ints(op, "scatter_dimension_numbers", name);
        let (window, inserted) = (list("update_window_dims"), list("inserted_window_dims"));
        let (batching, of_indices) = (list("input_batching_dims"), list("scatter_indices_batching_dims"));
        let map = list("scatter_dims_to_operand_dims");
        let vector = self.part_int(op, "scatter_dimension_numbers", "index_vector_dim");
        let (rank, index_rank) = (inputs[0].dims.len() as i64, indices.dims.len() as i64);
        let update_rank = updates[0].dims.len() as i64;
        let parts = window.len() + inserted.len() + batching.len();
        let left_out: Vec<i64> = inserted.iter().chain(&batching).copied().collect();
        let mapped: Vec<i64> = map.iter().chain(&batching).copied().collect();
        let size_of_map =
            usize::try_from(vector).ok().and_then(|v| indices.dims.get(v)).copied().unwrap_or(1);
        let equal_batches = || {
            let size = |t: Tensor<'_>, d: i64| usize::try_from(d).ok().and_then(|d| t.dims.get(d)).copied();
            batching.iter().zip(&of_indices).all(|(&a, &b)| match (size(inputs[0], a), size(indices, b)) {
                (Some(a), Some(b)) => same_size(a, b),
                _ => true,
            })
        };
        let rules: [(&str, bool, String); 17] = [
            ("C2", parts as i64 == rank, format!("{parts} dimensions of windows and others of rank {rank}")),
            (
                "C7",
                unique(&window) && window.is_sorted(),
                format!("window dimensions {window:?} are not ascending"),
            ),
            (
                "C8",
                within(&window, update_rank),
                format!("window dimensions {window:?} of updates of rank {update_rank}"),
            ),
            ("C9", unique(&left_out), format!("dimensions {left_out:?} name one twice")),
            ("C10", inserted.is_sorted(), format!("inserted dimensions {inserted:?} are not ascending")),
            ("C11", within(&inserted, rank), format!("inserted dimensions {inserted:?} of rank {rank}")),
            ("C12", batching.is_sorted(), format!("batching dimensions {batching:?} are not ascending")),
            ("C13", within(&batching, rank), format!("batching dimensions {batching:?} of rank {rank}")),
            ("C14", unique(&of_indices), format!("dimensions {of_indices:?} name one twice")),
            (
                "C15",
                within(&of_indices, index_rank),
                format!("dimensions {of_indices:?} of indices of rank {index_rank}"),
            ),
            (
                "C16",
                !of_indices.contains(&vector),
                format!("dimension {vector} is that of index vectors and of batches"),
            ),
            (
                "C17",
                batching.len() == of_indices.len(),
                format!("batches along {batching:?} and {of_indices:?}"),
            ),
            ("C18", equal_batches(), "batches of inputs and indices have different sizes".to_owned()),
            (
                "C22",
                (0..=index_rank).contains(&vector),
                format!("index vectors along {vector} of rank {index_rank}"),
            ),
            (
                "C19",
                same_size(map.len() as i64, size_of_map),
                format!("{size_of_map} numbers of each index for {} dimensions", map.len()),
            ),
            ("C20", unique(&mapped), format!("dimensions {mapped:?} name one twice")),
            ("C21", within(&map, rank), format!("indices of dimensions {map:?} of rank {rank}")),
        ];
        for (number, holds, message) in rules {
            self.hold(op, number, holds, || message)?;
        }
        // The sizes of updates: those of the indices, and of windows at most those of the inputs.
        let mut of_scatter = (0..index_rank).filter(|&d| d != vector).map(|d| indices.dims[d as usize]);
        let mut of_window = (0..rank).filter(|d| !left_out.contains(d)).map(|d| inputs[0].dims[d as usize]);
        let fits = (0..update_rank).all(|d| {
            let size = updates[0].dims[d as usize];
            if window.contains(&d) {
                of_window.next().is_some_and(|n| size == DYNAMIC || n == DYNAMIC || size <= n)
            } else {
                of_scatter.next().is_some_and(|n| same_size(size, n))
            }
        });
        self.hold(op, "C4", fits && of_scatter.next().is_none(), || {
            format!(
                "updates are {}, of inputs {} at indices {}",
                self.show(updates[0]),
                self.show(inputs[0]),
                self.show(indices)
            )
        })?;
        let elements = self.reducer(op, "C23", 0, inputs)?;
        for (&x, &r) in inputs.iter().zip(results) {
            self.hold(op, "C24", same_shape(x.dims, r.dims), || {
                format!("the result is {}, of an input {}", self.show(r), self.show(x))
            })?;
        }
        self.elements_of_results(op, "C25", results, &elements)
    }

    /// The rules of `gather`, by their numbers; `numbered` gives those of the operation at hand.
    pub(super) fn gathered(
        &self,
        op: OpId,
        x: Tensor<'_>,
        indices: Tensor<'_>,
        r: Tensor<'_>,
        sizes: Option<Vec<i64>>,
        numbered: impl Fn(&'static str) -> &'static str,
    ) -> Convert<()> {
        let list = |name| self.part_ints(op, "dimension_numbers", name);
        let (offset, collapsed) = (list("offset_dims"), list("collapsed_slice_dims"));
        let (batching, of_indices) = (list("operand_batching_dims"), list("start_indices_batching_dims"));
        let map = list("start_index_map");
        let vector = self.part_int(op, "dimension_numbers", "index_vector_dim");
        let (rank, index_rank) = (x.dims.len() as i64, indices.dims.len() as i64);
        let unique = |l: &[i64]| l.iter().enumerate().all(|(i, d)| !l[..i].contains(d));
        let within = |l: &[i64], n: i64| l.iter().all(|d| (0..n).contains(d));
        let joined: Vec<i64> = collapsed.iter().chain(&batching).copied().collect();
        let mapped: Vec<i64> = map.iter().chain(&batching).copied().collect();
        self.input(op, "I2", indices, INTEGERS)?;
        self.same_elements(op, numbered("C23"), x, r)?;
        let parts = offset.len() + collapsed.len() + batching.len();
        let size_of_map = match usize::try_from(vector).ok().and_then(|v| indices.dims.get(v)) {
            Some(&n) => n,
            None => 1,
        };
        let Some(sizes) = sizes else { return Ok(()) };
        let size = |d: &i64| usize::try_from(*d).ok().and_then(|d| sizes.get(d)).copied();
        let at_most_one = |l: &[i64]| l.iter().all(|d| size(d).is_none_or(|n| n <= 1));
        let equal_batches = batching.iter().zip(&of_indices).all(|(&a, &b)| {
            let pair = (usize::try_from(a).ok(), usize::try_from(b).ok());
            match (pair.0.and_then(|d| x.dims.get(d)), pair.1.and_then(|d| indices.dims.get(d))) {
                (Some(&a), Some(&b)) => same_size(a, b),
                _ => true,
            }
        });
        let rules: [(&'static str, bool, String); 21] = [
            (
                "C1",
                parts as i64 == rank,
                format!("{parts} dimensions of slices of an operand of rank {rank}"),
            ),
            (
                "C2",
                (0..=index_rank).contains(&vector),
                format!("index vectors along {vector} of rank {index_rank}"),
            ),
            (
                "C3",
                same_size(map.len() as i64, size_of_map),
                format!("{} numbers of each index for {} dimensions", size_of_map, map.len()),
            ),
            (
                "C4",
                unique(&offset) && offset.is_sorted(),
                format!("offset dimensions {offset:?} are not ascending"),
            ),
            (
                "C5",
                within(&offset, r.dims.len() as i64),
                format!("offset dimensions {offset:?} of a result of rank {}", r.dims.len()),
            ),
            ("C6", unique(&joined), format!("dimensions {joined:?} name one twice")),
            ("C7", collapsed.is_sorted(), format!("collapsed dimensions {collapsed:?} are not ascending")),
            ("C8", within(&collapsed, rank), format!("collapsed dimensions {collapsed:?} of rank {rank}")),
            ("C20", sizes.len() as i64 == rank, format!("{} slice sizes of rank {rank}", sizes.len())),
            ("C9", at_most_one(&collapsed), "a collapsed dimension of a size over 1".to_owned()),
            ("C10", batching.is_sorted(), format!("batching dimensions {batching:?} are not ascending")),
            ("C11", within(&batching, rank), format!("batching dimensions {batching:?} of rank {rank}")),
            ("C12", at_most_one(&batching), "a batching dimension of a size over 1".to_owned()),
            ("C13", unique(&of_indices), format!("dimensions {of_indices:?} name one twice")),
            (
                "C14",
                within(&of_indices, index_rank),
                format!("dimensions {of_indices:?} of indices of rank {index_rank}"),
            ),
            (
                "C15",
                !of_indices.contains(&vector),
                format!("dimension {vector} is that of index vectors and of batches"),
            ),
            (
                "C16",
                batching.len() == of_indices.len(),
                format!("batches along {batching:?} and {of_indices:?}"),
            ),
            ("C17", equal_batches, "batches of operand and indices have different sizes".to_owned()),
            ("C18", unique(&mapped), format!("dimensions {mapped:?} name one twice")),
            ("C19", within(&map, rank), format!("indices of dimensions {map:?} of rank {rank}")),
            (
                "C21",
                sizes.iter().zip(x.dims).all(|(&n, &d)| n >= 0 && (d == DYNAMIC || n <= d)),
                format!("slices of {sizes:?} of {}", self.show(x)),
            ),
        ];
        for (number, holds, message) in rules {
            self.hold(op, numbered(number), holds, || message)?;
        }
        let mut batches = (0..index_rank).filter(|&d| d != vector).map(|d| indices.dims[d as usize]);
        let mut slices = (0..rank).filter(|d| !joined.contains(d)).map(|d| sizes[d as usize]);
        let of_result = r.dims.len() as i64;
        let dims: Option<Vec<i64>> = (0..of_result)
            .map(|d| if offset.contains(&d) { slices.next() } else { batches.next() })
            .collect();
        match dims {
            Some(dims) if batches.next().is_none() => self.must_have(op, numbered("C22"), r, &dims),
            Some(_) | None => self.constraint(op, numbered("C22"), format!("the result is {}", self.show(r))),
        }
    }
}
