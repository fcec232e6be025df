//! Buffer rotation: loop-carried arrays change buffers from one iteration to the next instead of being copied
//! (modulo variable expansion, Lam 1988, on buffers instead of registers).
//!
//! Where the next value of a carried array cannot be computed in the buffer of the old one, buffer assignment
//! ends the body with copies. A *ring* is a list of slices of one size, and those copies move the contents of
//! each to the next one: from the buffer of the new value to that of the carried array, or along a history of
//! several. A loop with rings has its body several times, each time, in each [`Rotation`], with the slices of
//! the rings moved on by one. Only when the loop ends are the contents moved to where buffer assignment wants
//! them.
//!
//! **Invariant:** a rotation reads and writes what the body would, with bytes renamed one to one. A slice
//! that overlaps a slice of a ring without being inside of it prevents that ring.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Action, Plan, Rotation, Step};
use hlo_opt::buffers::moves::{Move, in_order};
use hlo_opt::buffers::{Copy, Slice};

/// A loop with more steps in condition and body is not rotated.
const MAX_STEPS: usize = 1000;

/// A ring of slices of one size: the copies move the contents of each to the next.
#[derive(Debug)]
struct Ring {
    slices: Vec<Slice>,
    /// Whether it is a cycle: the contents of the last slice move to the first. (If not, they are dropped,
    /// and nothing moves to the first.)
    closed: bool,
}

impl Ring {
    fn bytes(&self) -> u64 {
        self.slices[0].bytes
    }

    /// The slice that holds the contents of slice `n` in `rotation`.
    fn slice(&self, n: usize, rotation: usize) -> Slice {
        let len = self.slices.len();
        self.slices[(n + len - rotation % len) % len]
    }

    /// The moves from the slices of `rotation` to the assigned ones: of rotation 1, what the copies move.
    fn moves(&self, rotation: usize) -> impl Iterator<Item = Move<Slice>> {
        let first = usize::from(!self.closed);
        let pair = move |n| Move { from: self.slice(n, rotation), to: self.slices[n] };
        (first..self.slices.len()).map(pair).filter(|m| m.from != m.to)
    }
}

/// The rotations of a loop. The body of each ends with moves that have the effect of `copies`, done in order.
/// `anew` says of a slice that they read whether the body writes all of it before it reads any of it.
pub(super) fn rotations(
    mut condition: Plan,
    predicate: Slice,
    mut body: Plan,
    copies: &[Copy],
    anew: &dyn Fn(Slice) -> bool,
) -> Vec<Rotation> {
    let (moves, help) = at_once(copies);
    let mut rings = if steps(&condition) + steps(&body) > MAX_STEPS { Vec::new() } else { rings(&moves) };
    // (Slices with a source hold state.)
    rings.retain(|r| match r.closed {
        true => help.is_some_and(|h| h.bytes >= r.bytes()),
        false => anew(r.slices[0]),
    });
    if let Some(len) = longest_by_bytes(&rings) {
        rings.retain(|r| r.slices.len() == len);
    }
    let mut rest = moves;
    while !rings.is_empty() {
        let inside: FxHashSet<Slice> = rings.iter().flat_map(|r| r.slices.iter().copied()).collect();
        rest.retain(|m| !inside.contains(&m.to));
        let ring_slices = RingSlices::new(&rings);
        let mut broken = FxHashSet::default();
        let mut whole = |s: &mut Slice| match ring_slices.of(*s) {
            Found::Outside | Found::Inside(..) => {}
            Found::Across(rings) => broken.extend(rings),
        };
        each_slice(&mut condition, &mut whole);
        each_slice(&mut body, &mut whole);
        whole(&mut { predicate });
        for s in rest.iter().flat_map(|m| [m.from, m.to]).chain(help) {
            match ring_slices.of(s) {
                Found::Outside => {}
                Found::Inside(ring, ..) => broken.extend([ring]),
                Found::Across(rings) => broken.extend(rings),
            }
        }
        if broken.is_empty() {
            break;
        }
        for (n, ring) in std::mem::take(&mut rings).into_iter().enumerate() {
            if broken.contains(&n) {
                rest.extend(ring.moves(1));
            } else {
                rings.push(ring);
            }
        }
    }
    let len = rings.first().map_or(1, |r| r.slices.len());
    if len == 1 {
        body.steps.extend(copies.iter().map(|&c| step(c)));
        return vec![Rotation { condition, predicate, body, finish: Plan::default() }];
    }
    let ring_slices = RingSlices::new(&rings);
    let made = |moves: &[Move<Slice>]| -> Vec<Step> {
        let help = help.unwrap_or_default();
        let side = |s: Slice, other: Slice| if s == help { Slice { bytes: other.bytes, ..s } } else { s };
        let moves = in_order(moves, help).into_iter();
        moves.map(|m| step(Copy { from: side(m.from, m.to), to: side(m.to, m.from) })).collect()
    };
    (0..len)
        .map(|rotation| {
            let renamed = |s: Slice| match ring_slices.of(s) {
                Found::Inside(ring, n, at) => {
                    Slice { bytes: s.bytes, ..moved(rings[ring].slice(n, rotation), at) }
                }
                Found::Outside | Found::Across(_) => s,
            };
            let part = |plan: &Plan| {
                let mut plan = plan.clone();
                each_slice(&mut plan, &mut |s| *s = renamed(*s));
                plan
            };
            let (condition, predicate, mut body) = (part(&condition), renamed(predicate), part(&body));
            body.steps.extend(made(&rest));
            let back: Vec<Move<Slice>> = rings.iter().flat_map(|r| r.moves(rotation)).collect();
            Rotation { condition, predicate, body, finish: Plan { steps: made(&back) } }
        })
        .collect()
}

fn moved(slice: Slice, at: u64) -> Slice {
    Slice { offset: slice.offset + at, ..slice }
}

fn step(copy: Copy) -> Step {
    Step::copy("copy of state", copy)
}

/// The parallel copy that sequential copies amount to, and the temporary slice, which is read after it was
/// written.
fn at_once(copies: &[Copy]) -> (Vec<Move<Slice>>, Option<Slice>) {
    let mut holds: FxHashMap<Slice, Slice> = FxHashMap::default();
    let mut helps: Vec<Slice> = Vec::new();
    for c in copies {
        let content = match holds.get(&c.from) {
            Some(&content) => {
                helps.push(c.from);
                content
            }
            None => c.from,
        };
        holds.insert(c.to, content);
    }
    let helping: FxHashSet<Slice> = helps.iter().copied().collect();
    let to = copies.iter().map(|c| c.to).filter(|to| !helping.contains(to));
    let moves = to.map(|to| Move { from: holds[&to], to }).filter(|m| m.from != m.to).collect();
    (moves, helps.into_iter().max_by_key(|h| h.bytes))
}

/// The rings of two or three slices with contents in a parallel copy.
fn rings(moves: &[Move<Slice>]) -> Vec<Ring> {
    let source: FxHashMap<Slice, Slice> = moves.iter().map(|m| (m.to, m.from)).collect();
    let mut readers: FxHashMap<Slice, Vec<Slice>> = FxHashMap::default();
    for m in moves {
        readers.entry(m.from).or_default().push(m.to);
    }
    let mut seen: FxHashSet<Slice> = FxHashSet::default();
    let mut rings = Vec::new();
    for m in moves {
        if seen.contains(&m.to) {
            continue;
        }
        let mut first = m.from;
        let mut closed = false;
        while let Some(&from) = source.get(&first) {
            if from == m.from || seen.contains(&from) {
                closed = from == m.from;
                break;
            }
            first = from;
        }
        let first = if closed { m.from } else { first };
        let (mut slices, mut alone) = (vec![first], true);
        while let Some(next) = readers.get(&slices[slices.len() - 1]) {
            alone &= next.len() == 1;
            if next[0] == first || !alone {
                break;
            }
            slices.push(next[0]);
        }
        seen.extend(slices.iter().copied());
        if alone && matches!(slices.len(), 2 | 3) && slices[0].bytes > 0 {
            rings.push(Ring { slices, closed });
        }
    }
    rings
}

/// The length of the rings (number of rotations) that hold the most bytes.
fn longest_by_bytes(rings: &[Ring]) -> Option<usize> {
    let bytes = |len| rings.iter().filter(|r| r.slices.len() == len).map(Ring::bytes).sum::<u64>();
    [2, 3].into_iter().filter(|&len| bytes(len) > 0).max_by_key(|&len| bytes(len))
}

/// The slices of rings, in order of their offsets.
struct RingSlices(Vec<(Slice, usize, usize)>);

/// The relation of a slice to the rings.
enum Found {
    /// Disjoint from all.
    Outside,
    /// Within a slice of a ring: the ring, the slice, and the offset in it.
    Inside(usize, usize, u64),
    /// It overlaps slices of these rings without being inside of one.
    Across(Vec<usize>),
}

impl RingSlices {
    fn new(rings: &[Ring]) -> Self {
        let of = |(r, ring): (usize, &Ring)| -> Vec<_> {
            ring.slices.iter().enumerate().map(|(n, &slice)| (slice, r, n)).collect()
        };
        let mut slices: Vec<_> = rings.iter().enumerate().flat_map(of).collect();
        slices.sort_by_key(|&(s, ..)| (s.allocation, s.offset));
        Self(slices)
    }

    fn of(&self, s: Slice) -> Found {
        let end = s.offset.saturating_add(s.bytes);
        let before = |p: &Slice| (p.allocation, p.offset + p.bytes) <= (s.allocation, s.offset);
        let first = self.0.partition_point(|(p, ..)| p.allocation < s.allocation || before(p));
        let shared: Vec<_> = self.0[first..]
            .iter()
            .take_while(|(p, ..)| p.allocation == s.allocation && p.offset < end)
            .collect();
        match (s.bytes, &shared[..]) {
            (0, _) | (_, []) => Found::Outside,
            (_, [(p, r, n)]) if p.offset <= s.offset && end <= p.offset + p.bytes => {
                Found::Inside(*r, *n, s.offset - p.offset)
            }
            (_, several) => Found::Across(several.iter().map(|&&(_, r, _)| r).collect()),
        }
    }
}

fn steps(plan: &Plan) -> usize {
    let inner = |step: &Step| match &step.action {
        Action::While { rotations } => rotations.iter().map(|t| steps(&t.condition) + steps(&t.body)).sum(),
        Action::Conditional { branches, .. } => branches.iter().map(steps).sum(),
        Action::Kernel { .. } | Action::Library { .. } | Action::Copy { .. } | Action::Interpret { .. } => 0,
    };
    plan.steps.iter().map(|step| 1 + inner(step)).sum()
}

/// Calls `change` with every slice of a plan.
fn each_slice(plan: &mut Plan, change: &mut dyn FnMut(&mut Slice)) {
    for step in &mut plan.steps {
        step.executes.iter_mut().flat_map(|e| &mut e.result).flatten().for_each(&mut *change);
        match &mut step.action {
            Action::Kernel { arguments, .. } | Action::Interpret { arguments, .. } => {
                arguments.iter_mut().for_each(&mut *change);
            }
            Action::Library { arguments, scratch, epilogue, .. } => {
                arguments.iter_mut().chain(scratch).for_each(&mut *change);
                epilogue.iter_mut().flat_map(|(_, arguments)| arguments).for_each(&mut *change);
            }
            Action::Copy { from, to } => {
                change(from);
                change(to);
            }
            Action::While { rotations } => {
                for Rotation { condition, predicate, body, finish } in rotations {
                    change(predicate);
                    [condition, body, finish].into_iter().for_each(|plan| each_slice(plan, change));
                }
            }
            Action::Conditional { selector, branches, .. } => {
                change(selector);
                branches.iter_mut().for_each(|plan| each_slice(plan, change));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(n: u64) -> Slice {
        Slice { allocation: 0, offset: n * 1024, bytes: 1024 }
    }

    /// Memory as numbers of 64 bytes each; a plan of copies in it.
    fn run(plan: &Plan, memory: &mut [u64]) {
        for step in &plan.steps {
            let Action::Copy { from, to } = step.action else { panic!("{step:?}") };
            let at = |s: Slice| (s.offset / 64) as usize;
            assert_eq!(from.bytes, to.bytes);
            memory.copy_within(at(from)..at(from) + from.bytes as usize / 64, at(to));
        }
    }

    fn copies(pairs: &[(u64, u64)]) -> Vec<Copy> {
        pairs.iter().map(|&(from, to)| Copy { from: slice(from), to: slice(to) }).collect()
    }

    /// A body that moves the numbers of some slices by copying parts of slices over others, run that many
    /// times with its rotations, leaves in the slices that carry state what it leaves with its copies.
    fn check(body: &[Copy], copies: &[Copy], carried: &[u64], rotations_expected: usize) {
        let body = || Plan { steps: body.iter().map(|&c| step(c)).collect() };
        let predicate = Slice { allocation: 1, offset: 0, bytes: 1 };
        let rotations = rotations(Plan::default(), predicate, body(), copies, &|s| s != slice(8));
        assert_eq!(rotations.len(), rotations_expected, "{copies:?}");
        for runs in 0..7 {
            let mut expected: Vec<u64> = (0..160).collect();
            let mut memory = expected.clone();
            for n in 0..runs {
                run(&body(), &mut expected);
                run(&Plan { steps: copies.iter().map(|&c| step(c)).collect() }, &mut expected);
                run(&rotations[n % rotations.len()].body, &mut memory);
            }
            run(&rotations[runs % rotations.len()].finish, &mut memory);
            for &n in carried {
                let range = n as usize * 16..(n as usize + 1) * 16;
                assert_eq!(
                    memory[range.clone()],
                    expected[range],
                    "slice {n} after {runs} runs of {copies:?}"
                );
            }
        }
    }

    fn part(n: u64, from: u64, to: u64) -> Slice {
        Slice { offset: slice(n).offset + from * 64, bytes: (to - from) * 64, ..slice(n) }
    }

    #[test]
    fn carried_slices_rotate_with_those_of_new_values() {
        // Slice 1 is computed from slice 0.
        let next = [
            Copy { from: part(0, 1, 16), to: part(1, 0, 15) },
            Copy { from: part(0, 0, 1), to: part(1, 15, 16) },
        ];
        check(&next, &copies(&[(1, 0)]), &[0], 2);
        // A history: 2 gets 0's, 0 gets what is new.
        check(&next, &copies(&[(0, 2), (1, 0)]), &[0, 2], 3);
        // Another state that is copied as before, since it is read twice.
        check(&next, &copies(&[(1, 0), (5, 6), (5, 7)]), &[0, 5, 6, 7], 2);
        // Two rings at once.
        let both =
            [&next[..], &[Copy { from: slice(4), to: slice(3) }, Copy { from: slice(0), to: slice(3) }]]
                .concat();
        check(&both, &copies(&[(1, 0), (3, 4)]), &[0, 4], 2);
    }

    #[test]
    fn cycles_are_broken_with_the_temporary_of_the_copies() {
        let shift = [
            Copy { from: part(0, 0, 8), to: part(5, 0, 8) },
            Copy { from: part(0, 8, 16), to: part(0, 0, 8) },
            Copy { from: part(5, 0, 8), to: part(0, 8, 16) },
        ];
        check(&shift, &copies(&[(0, 9), (1, 0), (9, 1)]), &[0, 1], 2);
        check(&shift, &copies(&[(0, 9), (1, 0), (2, 1), (9, 2)]), &[0, 1, 2], 3);
    }

    #[test]
    fn what_lies_across_an_edge_keeps_the_copies() {
        let across =
            [Copy { from: slice(0), to: slice(1) }, Copy { from: part(1, 8, 24), to: part(7, 0, 16) }];
        check(&across, &copies(&[(1, 0)]), &[0], 1);
        let and_more = [&across[..], &[Copy { from: part(3, 0, 8), to: part(4, 8, 16) }]].concat();
        let and_more = [&and_more[..], &[Copy { from: part(0, 0, 8), to: part(4, 0, 8) }]].concat();
        check(&and_more, &copies(&[(1, 0), (4, 3)]), &[0, 3], 2);
        // State that an invariant moves to.
        check(&[], &copies(&[(8, 0)]), &[0, 8], 1);
        // State that is read twice, and none.
        check(&[], &copies(&[(1, 0), (1, 2)]), &[0, 1, 2], 1);
        check(&[], &[], &[], 1);
    }
}
