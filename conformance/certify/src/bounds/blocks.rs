//! Elementwise instructions on many elements, a block after the other: what memory a rule needs besides its
//! result is then that of a block.
//!
//! **Invariant:** a block is the same instruction on lists, some elements of each operand that has as many as
//! the result, and the whole of what has one.

use std::ops::Range;
use std::sync::Arc;

use hlo::{BufferOf, with_buffer};
use hlo_interp::Tensor;

use super::rules::{Arg, Case, Kind, bounds, kind};
use super::{Bounds, Leaf, Radii, plain};

/// Elements of a block.
const BLOCK: usize = 1 << 16;

/// The bounds of an elementwise instruction on many elements; `None` of others.
pub(super) fn in_blocks(case: &Case<'_>) -> Option<Bounds> {
    let [result] = case.results[..] else { return None };
    let n = result.len();
    let fits = |a: &Arg<'_>| a.tensor.len() == n || a.tensor.len() == 1;
    let works_in_parts = plain::applies(case);
    if kind(case.opcode()) != Kind::Elementwise || n <= BLOCK || works_in_parts || !case.args.iter().all(fits)
    {
        return None;
    }
    let mut found = Growing::new(n);
    for start in (0..n).step_by(BLOCK) {
        let range = start..(start + BLOCK).min(n);
        let of = |t: &Tensor| if t.len() == n { part(t, &range) } else { t.clone() };
        let tensors: Vec<Tensor> = case.args.iter().map(|a| of(a.tensor)).collect();
        let result = part(result, &range);
        let args = case.args.iter().zip(&tensors).map(|(a, tensor)| {
            let leaf =
                if a.tensor.len() == n { Arc::new(part_of_leaf(&a.leaf, &range)) } else { a.leaf.clone() };
            Arg { tensor, leaf, from: a.from }
        });
        let block = Case { args: args.collect(), results: vec![&result], ..*case };
        found.add(&bounds(&block).pop()?.bounds, range.len());
    }
    Some(found.finish())
}

/// Some elements, as a list.
fn part(t: &Tensor, range: &Range<usize>) -> Tensor {
    let buffer = with_buffer!(t.buffer(), v => BufferOf::wrap(v[range.clone()].to_vec()));
    Tensor::new([range.len() as i64].as_slice(), buffer)
}

fn part_of_leaf(leaf: &Leaf, range: &Range<usize>) -> Leaf {
    let of = |radii: &Radii| radii.taken(range.clone());
    let bounds = Bounds { soft: of(&leaf.bounds.soft), hard: of(&leaf.bounds.hard), ..Bounds::default() };
    leaf.with_bounds(bounds)
}

/// Radii of the blocks so far.
struct Growing {
    soft: Vec<f64>,
    /// As long as some are others than the soft ones.
    hard: Option<Vec<f64>>,
    n: usize,
}

impl Growing {
    fn new(n: usize) -> Growing {
        Growing { soft: Vec::with_capacity(n), hard: None, n }
    }

    fn add(&mut self, bounds: &Bounds, len: usize) {
        if self.hard.is_none() && bounds.hard != bounds.soft {
            let mut hard = Vec::with_capacity(self.n);
            hard.extend_from_slice(&self.soft);
            self.hard = Some(hard);
        }
        if let Some(hard) = &mut self.hard {
            hard.extend((0..len).map(|i| bounds.hard.at(i)));
        }
        self.soft.extend((0..len).map(|i| bounds.soft.at(i)));
    }

    fn finish(self) -> Bounds {
        let soft = Radii::new(self.soft);
        let hard = self.hard.map_or_else(|| soft.clone(), Radii::new);
        Bounds { soft, hard, ..Bounds::default() }
    }
}
