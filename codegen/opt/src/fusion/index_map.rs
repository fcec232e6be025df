//! Index maps: the index at which an element of a value is read, as a function of a loop's index (XLA's
//! indexing maps). Slices, pads, concatenations, transposes, broadcasts, reversals, reshapes that split no
//! dimension, and the operands of gathers are affine per coordinate, within a part of the loop; such maps are
//! equal if they lead to the same index for the same part, however they were composed. All other maps are
//! compared by structure.
//!
//! **Invariant:** two equal maps may be counted as two, but two different ones are never taken for equal,
//! apart from a 64-bit hash collision.

use std::hash::{Hash, Hasher};

use hlo::attrs::AttrKey;
use hlo::{InstrId, Module, Opcode};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::kinds::dims;
use crate::passes::facts::{MAX_INTERLEAVED_COLUMNS, MIN_PART_WIDTH, dimension};

/// An index map, hashed by structure.
pub(super) type Map = u64;

/// The identity: the index of the loop itself.
pub(super) const HERE: Map = 0;
/// The only map of a value of one element.
const ONE: Map = 1;

/// An affine coordinate: `stride * loop index of a dimension + offset`.
#[derive(Clone, Copy, Hash, PartialEq, Debug)]
struct Coordinate {
    along: usize,
    stride: i64,
    offset: i64,
}

impl Coordinate {
    fn fixed(offset: i64) -> Self {
        Self { along: 0, stride: 0, offset }
    }

    /// The composition with another stride and offset.
    fn scaled(self, by: i64, offset: i64) -> Self {
        let stride = self.stride.saturating_mul(by);
        Self { stride, offset: self.offset.saturating_mul(by).saturating_add(offset), ..self }
    }
}

/// An affine map, coordinate by coordinate.
#[derive(Clone, Hash, PartialEq, Debug)]
struct Form {
    /// The part of the loop: begin and end along each of its dimensions. (0, 1) where the part has one index
    /// along a dimension but all coordinates are constant in it: a few such parts are unrolled together,
    /// sharing what they have in common.
    part: SmallVec<[(i64, i64); 4]>,
    /// The dimensions of the loop.
    dims: SmallVec<[i64; 4]>,
    /// The coordinates of the value.
    at: SmallVec<[Coordinate; 4]>,
}

impl Form {
    /// The identity over these dimensions.
    fn here(dims: &[i64]) -> Self {
        let part = dims.iter().map(|&n| (0, n)).collect();
        let at = (0..dims.len()).map(|along| Coordinate { along, stride: 1, offset: 0 }).collect();
        let mut form = Self { part, at, dims: dims.into() };
        form.settle(dims);
        form
    }

    /// The number of elements of the part.
    fn elements(&self) -> f64 {
        self.part.iter().map(|(first, end)| (end - first) as f64).product()
    }

    /// Restricts the part to where a coordinate is within `first..end`; `None` if that is no part that loops
    /// are partitioned into.
    fn restrict(&mut self, coordinate: Coordinate, first: i64, end: i64, columns: bool) -> Option<bool> {
        let Coordinate { along, stride, offset } = coordinate;
        let (low, high) = (first.saturating_sub(offset), end.saturating_sub(offset));
        if stride == 0 {
            return Some(low <= 0 && 0 < high);
        }
        // The least x with stride * x >= a: x >= a / stride, or x <= a / stride for a negative stride.
        let floor = |a: i64, by: i64| a.div_euclid(by);
        let ceiling = |a: i64, by: i64| floor(a.saturating_neg(), by).saturating_neg();
        let (low, high) = match stride > 0 {
            true => (ceiling(low, stride), ceiling(high, stride)),
            false => {
                let above = |a: i64| floor(a.saturating_neg(), stride.saturating_neg()).saturating_add(1);
                (above(high), above(low))
            }
        };
        let part = &mut self.part[along];
        *part = (part.0.max(low), part.1.min(high));
        let (part, size) = (*part, self.dims[along]);
        let inner = self.dims[along + 1..].iter().all(|&n| n == 1);
        let pieces = [part.0, part.1.saturating_sub(part.0), size.saturating_sub(part.1)];
        let cut = pieces.into_iter().any(|n| (1..MIN_PART_WIDTH).contains(&n));
        if inner && cut && part != (0, size) && !(columns && size <= MAX_INTERLEAVED_COLUMNS) {
            return None;
        }
        Some(part.0 < part.1)
    }

    /// Canonicalizes coordinates that are constant in the part, or that belong to a dimension of size 1.
    fn settle(&mut self, dims: &[i64]) {
        for (c, &n) in self.at.iter_mut().zip(dims) {
            if n == 1 {
                *c = Coordinate::fixed(0);
            } else if c.stride != 0 && self.part[c.along].1 - self.part[c.along].0 == 1 {
                let there = c.stride.saturating_mul(self.part[c.along].0);
                *c = Coordinate::fixed(c.offset.saturating_add(there));
            }
        }
        let alone =
            |(part, n): &(&mut (i64, i64), &i64)| part.1 - part.0 == 1 && **n <= MAX_INTERLEAVED_COLUMNS;
        self.part.iter_mut().zip(&self.dims).filter(alone).for_each(|(part, _)| *part = (0, 1));
    }

    /// The map by which an operand is read, given the map of its reader; `Some(None)`: it is not read;
    /// `None`: not affine, or loops are not partitioned that way.
    fn through(&self, module: &Module, user: InstrId, slot: usize, columns: bool) -> Option<Option<Form>> {
        let instr = module.instr(user);
        let own = dims(module, instr.operands()[slot]);
        let mut form = self.clone();
        let along = |d: i64| usize::try_from(d).ok();
        match instr.opcode {
            Opcode::Slice => {
                for (c, slice) in form.at.iter_mut().zip(instr.attrs.slices()?) {
                    *c = c.scaled(slice.stride, slice.start);
                }
            }
            Opcode::Pad if slot == 0 => {
                for (d, p) in instr.attrs.padding()?.iter().enumerate() {
                    if p.interior != 0 {
                        return None;
                    }
                    let moved = form.at[d].scaled(1, p.low.saturating_neg());
                    if !form.restrict(moved, 0, own[d], columns)? {
                        return Some(None);
                    }
                    form.at[d] = moved;
                }
            }
            Opcode::Concatenate => {
                let d = along(*instr.attrs.ints(AttrKey::Dimensions)?.first()?)?;
                let start: i64 = instr.operands()[..slot].iter().map(|&o| dims(module, o)[d]).sum();
                let moved = form.at[d].scaled(1, -start);
                if !form.restrict(moved, 0, own[d], columns)? {
                    return Some(None);
                }
                form.at[d] = moved;
            }
            Opcode::Reverse => {
                for &d in instr.attrs.ints(AttrKey::Dimensions)? {
                    let d = along(d)?;
                    form.at[d] = form.at[d].scaled(-1, own[d] - 1);
                }
            }
            Opcode::Transpose => {
                let permutation = instr.attrs.ints(AttrKey::Dimensions)?;
                for (&c, &d) in self.at.iter().zip(permutation) {
                    form.at[along(d)?] = c;
                }
            }
            Opcode::Broadcast => {
                let from = instr.attrs.ints(AttrKey::Dimensions)?;
                form.at = from.iter().map(|&d| along(d).map(|d| self.at[d])).collect::<Option<_>>()?;
            }
            Opcode::Reshape => {
                let given = dims(module, user);
                let mut rest = self.at.iter().zip(given).filter(|(_, n)| **n != 1);
                form.at.clear();
                for &n in own {
                    form.at.push(if n == 1 {
                        Coordinate::fixed(0)
                    } else {
                        *rest.next().filter(|(_, given)| **given == n)?.0
                    });
                }
            }
            // Of indices that are scalars.
            Opcode::Gather if slot == 1 => {
                let vector = along(instr.attrs.int(AttrKey::IndexVectorDim)?)?;
                if own.get(vector).is_some_and(|&n| n != 1) {
                    return None;
                }
                let within = instr.attrs.ints_or_empty(AttrKey::OffsetDims);
                let mut rows = (0..).zip(&self.at).filter(|(d, _)| !within.contains(d)).map(|(_, c)| *c);
                let at = |d| if d == vector { Some(Coordinate::fixed(0)) } else { rows.next() };
                form.at = (0..own.len()).map(at).collect::<Option<_>>()?;
            }
            _ => return None,
        }
        form.settle(own);
        Some(Some(form))
    }
}

/// Interned maps of a module's values, affine ones by their coordinates.
#[derive(Debug)]
pub(super) struct Forms<'m> {
    pub(super) module: &'m Module,
    known: FxHashMap<Map, Form>,
    /// Whether vector lanes may hold columns of short rows, each of which is then a part of its own.
    columns: bool,
}

/// A value that is read by a map.
pub(super) struct Look {
    pub(super) map: Map,
    /// The share of its user's indices at which it is read; `None` if unknown.
    pub(super) share: Option<f64>,
}

impl<'m> Forms<'m> {
    pub(super) fn new(module: &'m Module, columns: bool) -> Self {
        Self { module, known: FxHashMap::default(), columns }
    }

    /// The map by which an operand is read, given that its non-elementwise user is read by `from`; for
    /// unrolled reductions, of term number `term`. `None`: it is not read. If the source `alternates` from
    /// one element to the next, no part of a loop reads one operand alone.
    pub(super) fn through(
        &mut self,
        user: InstrId,
        slot: usize,
        term: usize,
        from: Map,
        alternates: bool,
    ) -> Option<Look> {
        let module = self.module;
        let instr = module.instr(user);
        let operand = instr.operands()[slot];
        let own = dims(module, operand);
        if own.iter().all(|&n| n == 1) {
            return Some(Look { map: ONE, share: None });
        }
        let here = (from == HERE).then(|| Form::here(dims(module, user)));
        // A reduction reads its operand by the same coordinates and those of the reduced dimensions.
        let fits = |form: &&Form| !alternates && form.at.len() == dims(module, user).len();
        let known = here.as_ref().or_else(|| self.known.get(&from)).filter(fits);
        if let Some(known) = known
            && let Some(form) = known.through(module, user, slot, self.columns)
        {
            let form = form?;
            // An index may serve many elements.
            let share = (instr.opcode != Opcode::Gather).then(|| form.elements() / known.elements().max(1.0));
            if form == Form::here(own) {
                return Some(Look { map: HERE, share });
            }
            let mut hasher = FxHasher::default();
            form.hash(&mut hasher);
            let map = hasher.finish();
            self.known.insert(map, form);
            return Some(Look { map, share });
        }
        let mut hasher = FxHasher::default();
        (from, instr.opcode).hash(&mut hasher);
        match instr.opcode {
            Opcode::Slice => instr.attrs.slices().hash(&mut hasher),
            Opcode::Pad => instr.attrs.padding().hash(&mut hasher),
            Opcode::Reshape => (own, dims(module, user)).hash(&mut hasher),
            Opcode::Broadcast | Opcode::Transpose | Opcode::Reverse => {
                instr.attrs.ints(AttrKey::Dimensions).hash(&mut hasher);
            }
            Opcode::Concatenate => {
                let along = dimension(instr);
                let size = |&o: &InstrId| along.and_then(|d| dims(module, o).get(d).copied()).unwrap_or(0);
                let start: i64 = instr.operands()[..slot].iter().map(size).sum();
                (along, start).hash(&mut hasher);
            }
            _ => (user, slot, term).hash(&mut hasher),
        }
        Some(Look { map: hasher.finish(), share: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(text: &str) -> Module {
        hlo_parser::parse_module(text, &hlo_parser::ParseOptions::default())
            .module
            .expect("the texts here are modules")
    }

    /// The composed map along a chain of first operands, and the share of the first instruction's indices.
    fn chain(forms: &mut Forms<'_>, path: &[(&str, usize)]) -> Option<(Map, f64)> {
        let at = |name: &str| {
            let module = forms.module;
            let found = module.instructions(module.entry()).find(|&i| *module.instr(i).name == *name);
            found.expect("a name of the text")
        };
        let path: Vec<(InstrId, usize)> = path.iter().map(|&(user, slot)| (at(user), slot)).collect();
        path.into_iter().try_fold((HERE, 1.0), |(map, all), (user, slot)| {
            let look = forms.through(user, slot, 0, map, false)?;
            Some((look.map, all * look.share.unwrap_or(1.0)))
        })
    }

    #[test]
    fn maps_are_told_apart_by_what_they_do() {
        let m = module(
            "HloModule m\nENTRY e { x = f32[8] parameter(0)\n a = f32[4] slice(x), slice={[0:8:2]}\n b = f32[4] slice(x), slice={[1:8:2]}\n \
             y = f32[8] negate(x)\n c = f32[4] slice(y), slice={[0:8:2]}\n d = f32[8] concatenate(a, b), dimensions={0}\n \
             e = f32[8] concatenate(c, a), dimensions={0}\n f = f32[8] add(d, e)\n z = f32[1] slice(f), slice={[3:4]}\n ROOT w = f32[8] broadcast(z), dimensions={0} }",
        );
        let mut forms = Forms::new(&m, true);
        let mut map = |path: &[(&str, usize)]| chain(&mut forms, path).map(|x| x.0);
        assert!(map(&[("a", 0)]) == map(&[("c", 0)]) && map(&[("a", 0)]) != map(&[("b", 0)]));
        assert!(map(&[("d", 0)]) == map(&[("e", 0)]) && map(&[("d", 1)]) == map(&[("e", 1)]));
        assert_ne!(map(&[("d", 0)]), map(&[("d", 1)]));
        assert_eq!(map(&[("w", 0)]), Some(ONE));
        assert_ne!(map(&[("d", 0), ("a", 0)]), map(&[("a", 0)]));
    }

    #[test]
    fn indices_of_gathers() {
        let m = module(
            "HloModule m\nENTRY e { x = f32[5,7,4] parameter(0)\n i = s32[5,6] parameter(1)\n j = s32[5,6] negate(i)\n r = s32[5,6,1] reshape(j)\n \
             a = f32[5,6,4] gather(x, r), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, \
             start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,4}\n \
             b = f32[4,5,6] gather(x, j), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, \
             start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,4}\n \
             k = s32[5,6,4] broadcast(j), dimensions={0,1}\n l = s32[4,5,6] broadcast(j), dimensions={1,2}\n c = f32[5,6,4] convert(k)\n d = f32[4,5,6] convert(l)\n \
             ROOT t = (f32[5,6,4], f32[4,5,6], f32[5,6,4], f32[4,5,6]) tuple(a, b, c, d) }",
        );
        let mut forms = Forms::new(&m, true);
        let mut map = |path: &[(&str, usize)]| chain(&mut forms, path).map(|x| x.0);
        // The repeated value of a broadcast is read in the same loop.
        assert_eq!(map(&[("a", 1), ("r", 0)]), map(&[("k", 0)]));
        assert_eq!(map(&[("b", 1)]), map(&[("l", 0)]));
        assert_ne!(map(&[("b", 1)]), map(&[("k", 0)]));
        assert_ne!(map(&[("a", 0)]), map(&[("a", 1)]));
    }

    #[test]
    fn paths_to_the_same_element_are_one_map() {
        let m = module(
            "HloModule m\nENTRY e { x = f32[3,8] parameter(0)\n p = f32[1,8] slice(x), slice={[1:2], [0:8]}\n q = f32[1,8] slice(x), slice={[2:3], [0:8]}\n \
             s = f32[8] reshape(p)\n t = f32[1,8] reshape(s)\n c = f32[3,8] concatenate(p, q, p), dimensions={0}\n \
             l = f32[2,8] slice(c), slice={[1:3], [0:8]}\n r = f32[1,8] slice(c), slice={[2:3], [0:8]}\n v = f32[3,8] reverse(c), dimensions={0,1}\n \
             u = f32[8,3] transpose(v), dimensions={1,0}\n z = f32[] constant(0)\n g = f32[5,9] pad(x, z), padding=1_1x-2_3\n \
             h = f32[3,6] slice(g), slice={[1:4], [0:6]}\n k = f32[1,9] slice(g), slice={[4:5], [0:9]}\n ROOT w = f32[8,8] broadcast(s), dimensions={1} }",
        );
        let mut forms = Forms::new(&m, true);
        let mut look = |path: &[(&str, usize)]| chain(&mut forms, path);
        // A row of a row is a row.
        assert_eq!(look(&[("t", 0), ("s", 0)]), Some((HERE, 1.0)));
        // A concatenation of slices: each part is what is left of it.
        assert_eq!(look(&[("r", 0), ("c", 2), ("p", 0)]), look(&[("p", 0)]));
        assert_eq!(look(&[("r", 0), ("c", 0)]), None);
        assert_eq!(look(&[("l", 0), ("c", 1)]).map(|x| x.1), Some(0.5));
        // A reversal and its inverse cancel.
        let reversed = look(&[("u", 0), ("v", 0), ("c", 0)]).expect("some of it is the first part");
        assert!((reversed.1 - 1.0 / 3.0).abs() < 1e-12);
        // Two equal rows of a few are computed once.
        assert_eq!(Some(reversed), look(&[("u", 0), ("v", 0), ("c", 2)]));
        assert_ne!(Some(reversed.0), look(&[("v", 0), ("c", 2)]).map(|x| x.0));
        // Nothing is read beyond the edges of a padding.
        assert_eq!(look(&[("h", 0), ("g", 0)]).map(|x| x.1), Some(1.0));
        assert_eq!(look(&[("k", 0), ("g", 0)]), None);
        assert_eq!(look(&[("g", 0)]).map(|x| x.1), Some(3.0 * 6.0 / 45.0));
    }

    #[test]
    fn parts_are_those_indices_that_lead_there() {
        for stride in [-3i64, -2, -1, 1, 2, 3] {
            for offset in -7..7 {
                for (first, end) in [(0, 4), (-2, 1), (3, 9)] {
                    let coordinate = Coordinate { along: 0, stride, offset };
                    let mut form = Form::here(&[10, 2]);
                    let some = form.restrict(coordinate, first, end, true) == Some(true);
                    let inside = |x: &i64| (first..end).contains(&(stride * x + offset));
                    let expected: Vec<i64> = (0..10).filter(inside).collect();
                    assert_eq!(some, !expected.is_empty(), "{stride} {offset} {first} {end}");
                    if some {
                        let (low, high) = form.part[0];
                        assert_eq!((low..high).collect::<Vec<_>>(), expected);
                    }
                }
            }
        }
    }
}
