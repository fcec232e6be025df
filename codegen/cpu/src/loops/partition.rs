//! Boxes that a space of elements is divided into, so that in each of them nothing is decided about where elements come from; and which of them are
//! computed side by side.

use super::nest::Output;
use hlo_library::Unsupported;
use hlo_opt::expr::Expr;
use hlo_opt::expr::index::Def;
use hlo_opt::passes::facts::{MAX_CONCAT_PARTS, MIN_PART_ELEMENTS, MIN_PART_WIDTH};

/// The most nests that a space is divided into; along one dimension [`MAX_CONCAT_PARTS`], if the pieces have [`MIN_PART_ELEMENTS`] elements.
const MAX_PIECES: usize = 6;

/// Elements of a register.
const LANES: i64 = 16;

/// How many times as wide as edges together the parts of the innermost dimension are, at least, that are nests of their own; and how many times as large as
/// others the pieces that alone are divided further where all would be too many.
pub(super) const DOMINANT_FACTOR: i64 = 4;

/// How many times as much is computed for an element where it is decided as where it is not, at least, for edges to be nests of their own.
pub(super) const EDGE_DECISION_FACTOR: usize = 2;

/// Boxes are computed side by side if that is at most this share of what they take one after the other.
const MAX_JAMMED_SHARE: (usize, usize) = (3, 4);

/// Divides a space (its dimensions have the variables from `first` on) where one variable alone decides on a condition: sides of a concatenation and
/// edges of a padding are nests of their own, in which nothing is decided. `known` guards are not looked at.
///
/// Along the innermost dimension, edges that are too narrow for that are left together if what is beside them is `lighter` without decisions; rows of short
/// parts are divided if they take hardly more registers part by part.
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
            // From there on the number is `end` or more, or less than that.
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
        // Of pieces that become too many, little ones stay as they are.
        let all = boxes.len() * (cuts.len() - 1);
        let little = |piece: &[(i64, i64)]| {
            all > MAX_PIECES && size(piece).saturating_mul(DOMINANT_FACTOR) < size(&largest)
        };
        let stay = boxes.iter().filter(|b| little(b)).count();
        let pieces = all - stay * (cuts.len() - 2);
        // As many as there are parts to put together, if each is worth a function.
        let worth =
            boxes.len() == 1 && pieces <= MAX_CONCAT_PARTS && elements / pieces as i64 >= MIN_PART_ELEMENTS;
        if narrow || pieces > MAX_PIECES && !worth {
            continue;
        }
        boxes = boxes
            .iter()
            .flat_map(|b| {
                let parts = cuts.windows(2).map(|w| (w[0], w[1]));
                let parts: Vec<(i64, i64)> = if little(b) { vec![b[d]] } else { parts.collect() };
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

/// The loops of several boxes as one, in which an element of each is computed in a run: if they are of the same sizes and what they are made of is mostly the
/// same. Boxes are `made` with the same variables: what several look at is on the expr once.
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
