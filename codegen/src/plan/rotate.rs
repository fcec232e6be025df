//! Buffer rotation: loop-carried arrays change buffers from one iteration to the next instead of being copied (modulo
//! variable expansion, Lam 1988, on buffers instead of registers).
//!
//! Where the next value of a carried array cannot be computed in the buffer of the old one, buffer assignment ends the
//! body with copies. A *ring* is a list of slices of one size, and those copies move the contents of each to the next one:
//! from the buffer of the new value to that of the carried array, or along a history of several. A loop with rings has its
//! body several times, each time, in each [`Rotation`], with the slices of the rings moved on by one. Only when the loop
//! ends are the contents moved to where buffer assignment wants them.
//!
//! **Invariant:** a rotation reads and writes what the body would, with bytes renamed one to one. A slice that overlaps a
//! slice of a ring without being inside of it prevents that ring.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Action, Plan, Rotation, Step};
use hlo_opt::buffers::moves::{Move, in_order};
use hlo_opt::buffers::{Copy, Slice};

/// A loop of more steps, in condition and body, has one rotation.
const MOST_STEPS: usize = 1000;

/// Places of one size: the copies move the contents of each to the next.
#[derive(Debug)]
struct Ring {
    places: Vec<Slice>,
    /// Whether the contents of the last move to the first. (If not, those of the last are dropped, and nothing is moved to the first.)
    closed: bool,
}

impl Ring {
    fn bytes(&self) -> u64 {
        self.places[0].bytes
    }

    /// Where in `rotation` the contents of a place lie.
    fn place(&self, n: usize, rotation: usize) -> Slice {
        let len = self.places.len();
        self.places[(n + len - rotation % len) % len]
    }

    /// The moves of contents from where they lie in `rotation` to their places: of rotation 1, what the copies move.
    fn moves(&self, rotation: usize) -> impl Iterator<Item = Move<Slice>> {
        let first = usize::from(!self.closed);
        let pair = move |n| Move { from: self.place(n, rotation), to: self.places[n] };
        (first..self.places.len()).map(pair).filter(|m| m.from != m.to)
    }
}

/// The rotations of a loop. The body of each ends with moves that have the effect of `copies`, done in order. `anew` says of
/// a slice that they read whether the body writes all of it before it reads any of it.
pub(super) fn rotations(
    mut condition: Plan,
    predicate: Slice,
    mut body: Plan,
    copies: &[Copy],
    anew: &dyn Fn(Slice) -> bool,
) -> Vec<Rotation> {
    let (moves, help) = at_once(copies);
    let mut rings = if steps(&condition) + steps(&body) > MOST_STEPS { Vec::new() } else { rings(&moves) };
    // (Places with a source are those of state.)
    rings.retain(|r| match r.closed {
        true => help.is_some_and(|h| h.bytes >= r.bytes()),
        false => anew(r.places[0]),
    });
    if let Some(len) = longest_by_bytes(&rings) {
        rings.retain(|r| r.places.len() == len);
    }
    let mut rest = moves;
    while !rings.is_empty() {
        let inside: FxHashSet<Slice> = rings.iter().flat_map(|r| r.places.iter().copied()).collect();
        rest.retain(|m| !inside.contains(&m.to));
        let places = Places::new(&rings);
        let mut broken = FxHashSet::default();
        let mut whole = |s: &mut Slice| match places.of(*s) {
            Found::Outside | Found::Inside(..) => {}
            Found::Across(rings) => broken.extend(rings),
        };
        each_slice(&mut condition, &mut whole);
        each_slice(&mut body, &mut whole);
        whole(&mut { predicate });
        for s in rest.iter().flat_map(|m| [m.from, m.to]).chain(help) {
            match places.of(s) {
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
    let len = rings.first().map_or(1, |r| r.places.len());
    if len == 1 {
        body.steps.extend(copies.iter().map(|&c| step(c)));
        return vec![Rotation { condition, predicate, body, finish: Plan::default() }];
    }
    let places = Places::new(&rings);
    let made = |moves: &[Move<Slice>]| -> Vec<Step> {
        let help = help.unwrap_or_default();
        let side = |s: Slice, other: Slice| if s == help { Slice { bytes: other.bytes, ..s } } else { s };
        let moves = in_order(moves, help).into_iter();
        moves.map(|m| step(Copy { from: side(m.from, m.to), to: side(m.to, m.from) })).collect()
    };
    (0..len)
        .map(|rotation| {
            let renamed = |s: Slice| match places.of(s) {
                Found::Inside(ring, n, at) => {
                    Slice { bytes: s.bytes, ..moved(rings[ring].place(n, rotation), at) }
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

fn moved(place: Slice, at: u64) -> Slice {
    Slice { offset: place.offset + at, ..place }
}

fn step(copy: Copy) -> Step {
    Step::copy("copy of state", copy)
}

/// What copies in order do at once, and the place that helps: what is read after it was written.
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

/// The rings of two or three places of some size among moves at once.
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
        let (mut places, mut alone) = (vec![first], true);
        while let Some(next) = readers.get(&places[places.len() - 1]) {
            alone &= next.len() == 1;
            if next[0] == first || !alone {
                break;
            }
            places.push(next[0]);
        }
        seen.extend(places.iter().copied());
        if alone && matches!(places.len(), 2 | 3) && places[0].bytes > 0 {
            rings.push(Ring { places, closed });
        }
    }
    rings
}

/// The length of the rings that hold the most bytes.
fn longest_by_bytes(rings: &[Ring]) -> Option<usize> {
    let bytes = |len| rings.iter().filter(|r| r.places.len() == len).map(Ring::bytes).sum::<u64>();
    [2, 3].into_iter().filter(|&len| bytes(len) > 0).max_by_key(|&len| bytes(len))
}

/// The places of rings, in order.
struct Places(Vec<(Slice, usize, usize)>);

/// What of the rings a slice is.
enum Found {
    /// It shares no byte with them.
    Outside,
    /// In a place, of this ring, from this byte on.
    Inside(usize, usize, u64),
    /// It shares bytes with these rings otherwise.
    Across(Vec<usize>),
}

impl Places {
    fn new(rings: &[Ring]) -> Self {
        let of = |(r, ring): (usize, &Ring)| -> Vec<_> {
            ring.places.iter().enumerate().map(|(n, &place)| (place, r, n)).collect()
        };
        let mut places: Vec<_> = rings.iter().enumerate().flat_map(of).collect();
        places.sort_by_key(|&(s, ..)| (s.allocation, s.offset));
        Self(places)
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

    fn place(n: u64) -> Slice {
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
        pairs.iter().map(|&(from, to)| Copy { from: place(from), to: place(to) }).collect()
    }

    /// A body that shifts the numbers of some places by copying parts of places over others, run so many times with its rotations, leaves in the places that
    /// carry state what it leaves with its copies.
    fn check(body: &[Copy], copies: &[Copy], carried: &[u64], rotations_expected: usize) {
        let body = || Plan { steps: body.iter().map(|&c| step(c)).collect() };
        let predicate = Slice { allocation: 1, offset: 0, bytes: 1 };
        let rotations = rotations(Plan::default(), predicate, body(), copies, &|s| s != place(8));
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
                    "place {n} after {runs} runs of {copies:?}"
                );
            }
        }
    }

    fn part(n: u64, from: u64, to: u64) -> Slice {
        Slice { offset: place(n).offset + from * 64, bytes: (to - from) * 64, ..place(n) }
    }

    #[test]
    fn carried_places_change_with_those_of_new_values() {
        // What is computed in place 1, of place 0.
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
            [&next[..], &[Copy { from: place(4), to: place(3) }, Copy { from: place(0), to: place(3) }]]
                .concat();
        check(&both, &copies(&[(1, 0), (3, 4)]), &[0, 4], 2);
    }

    #[test]
    fn circles_are_closed_with_the_help_of_the_place_that_the_copies_have() {
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
            [Copy { from: place(0), to: place(1) }, Copy { from: part(1, 8, 24), to: part(7, 0, 16) }];
        check(&across, &copies(&[(1, 0)]), &[0], 1);
        let and_more = [&across[..], &[Copy { from: part(3, 0, 8), to: part(4, 8, 16) }]].concat();
        let and_more = [&and_more[..], &[Copy { from: part(0, 0, 8), to: part(4, 0, 8) }]].concat();
        check(&and_more, &copies(&[(1, 0), (4, 3)]), &[0, 3], 2);
        // State that what does not change moves to.
        check(&[], &copies(&[(8, 0)]), &[0, 8], 1);
        // State that is read twice, and none.
        check(&[], &copies(&[(1, 0), (1, 2)]), &[0, 1, 2], 1);
        check(&[], &[], &[], 1);
    }
}
