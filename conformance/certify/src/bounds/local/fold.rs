//! Sums of exact elements over any dimensions.

use hlo::{AttrKey, Instruction};
use hlo_interp::Tensor;

use super::rows::concluded;

/// The ends of the results of a `reduce` by addition.
pub(super) fn intervals(instr: &Instruction, args: &[Tensor]) -> Option<(Vec<f32>, Vec<f32>)> {
    let [x, init] = args else { return None };
    let folded = instr.attrs.ints(AttrKey::Dimensions)?;
    let sizes = x.sizes();
    let kept = |d: usize| !folded.contains(&(d as i64));
    let results: usize = (0..sizes.len()).filter(|&d| kept(d)).map(|d| sizes[d]).product();
    let count = x.len() / results.max(1);
    if results == 0 || count < 2 {
        return None;
    }
    // Neighbours that are folded together, or belong to neighbouring results.
    let mut strides = vec![0; sizes.len()];
    let mut stride = 1;
    for d in (0..sizes.len()).rev().filter(|&d| kept(d)) {
        strides[d] = stride;
        stride *= sizes[d];
    }
    let first = f64::from(*init.slice::<f32>().first()?);
    let (mut sum, mut magnitude) = (vec![first; results], vec![first.abs(); results]);
    let (last, step) = (*sizes.last()?, *strides.last()?);
    for (row, elements) in x.slice::<f32>().chunks(last).enumerate() {
        let (mut at, mut rest) = (0, row);
        for d in (0..sizes.len() - 1).rev() {
            at += rest % sizes[d] * strides[d];
            rest /= sizes[d];
        }
        if step == 1 && last > 1 {
            let sums = sum[at..at + last].iter_mut().zip(&mut magnitude[at..at + last]);
            sums.zip(elements).for_each(|((sum, magnitude), &x)| {
                *sum += f64::from(x);
                *magnitude += f64::from(x.abs());
            });
        } else {
            for (i, &x) in elements.iter().enumerate() {
                sum[at + i * step] += f64::from(x);
                magnitude[at + i * step] += f64::from(x.abs());
            }
        }
    }
    let ends = sum.iter().zip(&magnitude).map(|(&s, &m)| concluded(s, s, m, count as f64 + 1.0));
    Some(ends.unzip())
}
