//! Bytes of values that are alive after each instruction of the entry computation, when instructions run in
//! the order of the text and each value is freed after its last use.
//!
//! An estimate before any compiler has reused memory: what a loop or a call holds at its peak counts at the
//! instruction that runs it, parameters and the result are alive throughout and to the end, and what gives
//! values other names (tuples, bitcasts) holds nothing itself. **Invariant:** linear in the program.

use hlo::{ComputationId, InstrId, Module, Opcode, Shape};
use rustc_hash::{FxHashMap, FxHashSet};

/// The bytes that are alive after an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// The instruction.
    pub after: InstrId,
    /// Live bytes.
    pub bytes: u64,
}

/// The live bytes after each instruction of the entry computation.
pub fn estimate(module: &Module) -> Vec<Point> {
    let mut peaks: FxHashMap<ComputationId, u64> = FxHashMap::default();
    let (mut open, mut seen) = (vec![(module.entry(), false)], FxHashSet::default());
    // Callees first, without recursion.
    while let Some((c, ready)) = open.pop() {
        if ready {
            // Arguments are their caller's.
            let peak = points(module, c, &peaks, false).iter().map(|p| p.bytes).max().unwrap_or(0);
            peaks.insert(c, peak);
        } else if seen.insert(c) {
            open.push((c, true));
            let run = module.instructions(c).filter(|&id| runs(module.instr(id).opcode));
            open.extend(run.flat_map(|id| module.instr(id).attrs.called_computations()).map(|c| (c, false)));
        }
    }
    points(module, module.entry(), &peaks, true)
}

/// Whether computations of an instruction hold values while it runs; those of fusions do not.
fn runs(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Call | Opcode::While | Opcode::Conditional | Opcode::AsyncStart)
}

/// Whether an instruction holds no bytes of its own.
fn renames(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Tuple
            | Opcode::GetTupleElement
            | Opcode::Bitcast
            | Opcode::AddDependency
            | Opcode::OptBarrier
            | Opcode::Domain
            | Opcode::AfterAll
    )
}

fn points(
    module: &Module,
    computation: ComputationId,
    peaks: &FxHashMap<ComputationId, u64>,
    with_parameters: bool,
) -> Vec<Point> {
    let order: Vec<InstrId> = module.instructions(computation).collect();
    let position: FxHashMap<InstrId, usize> = order.iter().enumerate().map(|(i, &id)| (id, i)).collect();
    // The last use of each value under any of its names: users come later, so ends propagate backwards.
    let mut end: Vec<usize> = (0..order.len()).collect();
    if let Some(root) = module.computation(computation).root().and_then(|r| position.get(&r)) {
        end[*root] = order.len();
    }
    for (i, &id) in order.iter().enumerate().rev() {
        let until = if renames(module.instr(id).opcode) { end[i] } else { i };
        for at in module.instr(id).operands().iter().filter_map(|o| position.get(o)) {
            end[*at] = end[*at].max(until);
        }
    }
    let mut freed = vec![0u64; order.len() + 1];
    let mut live = 0u64;
    let mut points = Vec::with_capacity(order.len());
    for (i, &id) in order.iter().enumerate() {
        let opcode = module.instr(id).opcode;
        let parameter = opcode == Opcode::Parameter;
        let held = if renames(opcode) || (parameter && !with_parameters) {
            0
        } else {
            bytes(&module.instr(id).shape)
        };
        live = live.saturating_add(held);
        if !parameter {
            freed[end[i]] = freed[end[i]].saturating_add(held);
        }
        let inner = match runs(opcode) {
            true => module
                .instr(id)
                .attrs
                .called_computations()
                .iter()
                .filter_map(|c| peaks.get(c))
                .max()
                .copied(),
            false => None,
        };
        points.push(Point { after: id, bytes: live.saturating_add(inner.unwrap_or(0)) });
        live = live.saturating_sub(freed[i]);
    }
    points
}

fn bytes(shape: &Shape) -> u64 {
    shape.checked_bytes().and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
}

/// At most `most` points: of each stretch the one with most bytes, in order.
pub fn thinned(points: &[Point], most: usize) -> Vec<Point> {
    let stretch = points.len().div_ceil(most.max(1)).max(1);
    points.chunks(stretch).filter_map(|part| part.iter().max_by_key(|p| p.bytes).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(String, u64)> {
        let module = hlo_engines::frontend::parse_text(text).0.unwrap();
        estimate(&module).iter().map(|p| (module.instr(p.after).name.to_string(), p.bytes)).collect()
    }

    /// Counted by hand: f32[10] has 40 bytes.
    #[test]
    fn values_are_alive_to_their_last_use() {
        let found = of("HloModule m
ENTRY e { p = f32[10] parameter(0)  a = f32[10] negate(p)  b = f32[10] exponential(a)  c = f32[10] add(a, b)
  t = (f32[10], f32[10]) tuple(c, b)  g = f32[10] get-tuple-element(t), index=0  ROOT r = f32[10] negate(g) }");
        let bytes: Vec<(&str, u64)> = found.iter().map(|(n, b)| (&**n, *b)).collect();
        assert_eq!(bytes, [("p", 40), ("a", 80), ("b", 120), ("c", 160), ("t", 120), ("g", 120), ("r", 160)]);
    }

    #[test]
    fn loops_count_what_they_hold_at_their_peak() {
        let found = of("HloModule m
c { x = f32[10] parameter(0)  ROOT k = pred[] constant(true) }
b { x = f32[10] parameter(0)  y = f32[10] negate(x)  ROOT z = f32[10] exponential(y) }
ENTRY e { p = f32[10] parameter(0)  ROOT w = f32[10] while(p), condition=c, body=b }");
        assert_eq!(found[1], ("w".into(), 40 + 40 + 80));
    }

    #[test]
    fn thinning_keeps_the_peak() {
        let module =
            hlo_engines::frontend::parse_text("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }")
                .0
                .unwrap();
        let after = module.root(module.entry());
        let points: Vec<Point> =
            (0..100).map(|i| Point { after, bytes: if i == 37 { 1000 } else { i } }).collect();
        let thin = thinned(&points, 10);
        assert_eq!(thin.len(), 10);
        assert_eq!(thin.iter().map(|p| p.bytes).max(), Some(1000));
    }
}
