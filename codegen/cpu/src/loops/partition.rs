//! Partition of an iteration space into boxes in which every element's source is known (index-set splitting),
//! and which boxes are fused into one loop.

use hlo_library_base::Unsupported;
use hlo_opt::expr::Expr;
use hlo_opt::expr::index::Def;
use hlo_opt::passes::facts::{MAX_CONCAT_PARTS, MIN_PART_ELEMENTS, MIN_PART_WIDTH};

use super::nest::Output;

/// The maximum number of boxes of a space; along one dimension [`MAX_CONCAT_PARTS`], if boxes have
/// [`MIN_PART_ELEMENTS`] elements.
const MAX_PIECES: usize = 6;

/// Elements of a register.
const LANES: i64 = 16;

/// Along the innermost dimension, the parts with loops of their own are at least this many times as wide as
/// all narrow edges together; and if all boxes would be too many, only those are split further that are not
/// this many times smaller than the largest.
pub(super) const DOMINANT_FACTOR: i64 = 4;

/// Edges get nests of their own if selecting the source per element computes at least this many times as much
/// as not having to.
pub(super) const EDGE_DECISION_FACTOR: usize = 2;

/// Boxes are fused into one loop if that computes at most this share of what they compute separately.
const MAX_JAMMED_SHARE: (usize, usize) = (3, 4);

/// Splits a space (its dimensions have the variables from `first` on) wherever a condition depends on one
/// variable alone: parts of a concatenation and edges of a padding become boxes without conditions. The first
/// `known` guards are not looked at.
///
/// Along the innermost dimension, edges that are too narrow for that stay together if the rest is `lighter`
/// without conditions; rows of narrow parts are split only if that takes hardly more registers.
pub(super) fn partition(
    expr: &Expr<'_>,
    known: usize,
    dims: &[i64],
    first: u32,
    mut lighter: impl FnMut(&[(i64, i64)]) -> bool,
) -> Vec<Vec<(i64, i64)>> {
    let mut cuts: Vec<Vec<i64>> = dims.iter().map(|&n| vec![0, n]).collect();
    for condition in expr.guards[known..].iter().flatten() {
        let [(atom, factor)] = condition.value.terms[..] else { continue };
        let Def::Var(v) = expr.space.atom(atom).def else { continue };
        let Some(d) = v.checked_sub(first).map(|d| d as usize).filter(|&d| d < dims.len()) else { continue };
        for end in [condition.low, condition.high] {
            // The first value of the variable at which the number is at least `end` (or less than it).
            let steps = end.saturating_sub(condition.value.constant);
            let at = match factor {
                1.. => steps.div_euclid(factor) + i64::from(steps.rem_euclid(factor) != 0),
                _ => steps.saturating_neg().div_euclid(factor.saturating_neg()).saturating_add(1),
            };
            if at > 0 && at < dims[d] {
                cuts[d].push(at);
            }
        }
    }
    let elements = dims.iter().fold(1i64, |n, &d| n.saturating_mul(d));
    let size = |piece: &[(i64, i64)]| piece.iter().fold(1i64, |n, (low, high)| n.saturating_mul(high - low));
    let mut boxes: Vec<Vec<(i64, i64)>> = vec![dims.iter().map(|&n| (0, n)).collect()];
    let inner = dims.iter().rposition(|&n| n != 1);
    for (d, cuts) in cuts.iter_mut().enumerate() {
        cuts.sort_unstable();
        cuts.dedup();
        let Some(largest) = boxes.iter().max_by_key(|b| size(b)).cloned() else { break };
        let mut narrow = Some(d) == inner && cuts.windows(2).any(|w| w[1] - w[0] < MIN_PART_WIDTH);
        let wide: Vec<(i64, i64)> = cuts
            .windows(2)
            .map(|w| (w[0], w[1]))
            .filter(|(low, high)| high - low >= MIN_PART_WIDTH)
            .collect();
        if narrow && wide.len() <= MAX_PIECES {
            let mut plain = wide;
            plain.retain(|&part| {
                let mut piece = largest.clone();
                piece[d] = part;
                lighter(&piece)
            });
            let inside: i64 = plain.iter().map(|(low, high)| high - low).sum();
            if inside >= DOMINANT_FACTOR * (dims[d] - inside).max(1) {
                *cuts = plain.into_iter().flat_map(|(low, high)| [low, high]).chain([0, dims[d]]).collect();
                cuts.sort_unstable();
                cuts.dedup();
                narrow = false;
            }
        }
        if narrow {
            let registers = |n: i64| (n + LANES - 1) / LANES;
            let separate: i64 = cuts.windows(2).map(|w| registers(w[1] - w[0])).sum();
            let widest = cuts.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
            narrow = widest >= MIN_PART_WIDTH || separate > registers(dims[d]) + 1;
        }
        // If all boxes would be too many, small ones are not split further.
        let all = boxes.len() * (cuts.len() - 1);
        let is_small = |piece: &[(i64, i64)]| {
            all > MAX_PIECES && size(piece).saturating_mul(DOMINANT_FACTOR) < size(&largest)
        };
        let stay = boxes.iter().filter(|b| is_small(b)).count();
        let pieces = all - stay * (cuts.len() - 2);
        // As many boxes as parts, if each is worth a function.
        let worth =
            boxes.len() == 1 && pieces <= MAX_CONCAT_PARTS && elements / pieces as i64 >= MIN_PART_ELEMENTS;
        if narrow || pieces > MAX_PIECES && !worth {
            continue;
        }
        boxes = boxes
            .iter()
            .flat_map(|b| {
                let parts = cuts.windows(2).map(|w| (w[0], w[1]));
                let parts: Vec<(i64, i64)> = if is_small(b) { vec![b[d]] } else { parts.collect() };
                parts.into_iter().map(|part| {
                    let mut piece = b.clone();
                    piece[d] = part;
                    piece
                })
            })
            .collect();
    }
    boxes
}

/// Variables of loops, and what is stored in the innermost.
pub(super) type Body = (Vec<(u32, i64)>, Vec<Output>);

/// Loop fusion (unroll-and-jam over the boxes): one loop that computes an element of each box per iteration,
/// if the boxes have the same sizes and share most of what they compute. Boxes are `made` with the same
/// variables, so shared subexpressions are one node.
pub(super) fn unroll_and_jam<'m>(
    expr: &mut Expr<'m>,
    boxes: &[Vec<(i64, i64)>],
    made: impl Fn(&mut Expr<'m>, &[(i64, i64)]) -> std::result::Result<Body, Unsupported>,
) -> std::result::Result<Option<Body>, Unsupported> {
    let sizes = |piece: &[(i64, i64)]| piece.iter().map(|(low, high)| high - low).collect::<Vec<_>>();
    let Some((first, rest)) = boxes.split_first() else { return Ok(None) };
    if rest.is_empty() || rest.iter().any(|piece| sizes(piece) != sizes(first)) {
        return Ok(None);
    }
    let before = expr.nodes.len();
    let (mut all, mut separate, mut jammed) = (Body::default(), 0, expr.clone());
    for piece in boxes {
        let mut alone = expr.clone();
        made(&mut alone, piece)?;
        separate += alone.nodes.len() - before;
        let (vars, outputs) = made(&mut jammed, piece)?;
        all.0 = vars;
        all.1.extend(outputs);
    }
    if (jammed.nodes.len() - before) * MAX_JAMMED_SHARE.1 > separate * MAX_JAMMED_SHARE.0 {
        return Ok(None);
    }
    *expr = jammed;
    Ok(Some(all))
}
