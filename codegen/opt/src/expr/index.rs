//! Symbolic index arithmetic: affine expressions of loop variables, with floored quotients and remainders by
//! constants (quasi-affine, as XLA's indexing maps).
//!
//! What movement operations do to an index is composed here before any code exists, so a reshape and its
//! inverse cancel, and an address becomes one sum. **Invariants:** the terms of an [`Affine`] are sorted by
//! atom and have nonzero factors; the range of an atom holds wherever the guards of the expression that uses
//! it hold; quotients are floored, so remainders are never negative.

use smallvec::SmallVec;

use rustc_hash::FxHashMap;

/// An integer unknown at compile time; an index into [`Space::atoms`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AtomId(pub u32);

/// An affine expression: `sum of factor * atom + constant`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Affine {
    /// Sorted by atom, without zero factors.
    pub terms: SmallVec<[(AtomId, i64); 3]>,
    /// The constant term.
    pub constant: i64,
}

/// A multi-dimensional index: one component per dimension.
pub type Index = SmallVec<[Affine; 4]>;

/// Delinearizes a row-major offset into the index in an array of these dimensions.
pub fn components(number: i64, dims: &[i64]) -> SmallVec<[i64; 4]> {
    let mut rest = number;
    let mut components: SmallVec<[i64; 4]> = dims
        .iter()
        .rev()
        .map(|&n| {
            let at = rest % n;
            rest /= n;
            at
        })
        .collect();
    components.reverse();
    components
}

/// What an atom stands for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Def {
    /// A loop variable.
    Var(u32),
    /// Floored quotient by a constant greater than 1.
    Div(Affine, i64),
    /// Remainder by a constant greater than 1.
    Mod(Affine, i64),
    /// The value of a node of the IR, clamped to the atom's range.
    Value(u32),
}

/// An atom and its range.
#[derive(Clone, Debug)]
pub struct Atom {
    /// What it stands for.
    pub def: Def,
    /// The minimum, inclusive.
    pub low: i64,
    /// The maximum, inclusive.
    pub high: i64,
}

/// The atoms of an expression, interned.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// Indexed by [`AtomId`].
    pub atoms: Vec<Atom>,
    known: FxHashMap<(Def, i64, i64), AtomId>,
}

impl Affine {
    /// A constant.
    pub fn constant(constant: i64) -> Self {
        Self { terms: SmallVec::new(), constant }
    }

    /// A single atom.
    pub fn atom(atom: AtomId) -> Self {
        Self { terms: SmallVec::from_slice(&[(atom, 1)]), constant: 0 }
    }

    /// The constant that it is, if it is one.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// With a constant added.
    pub fn plus(&self, constant: i64) -> Self {
        Self { terms: self.terms.clone(), constant: self.constant.wrapping_add(constant) }
    }

    /// Multiplied by a constant.
    pub fn times(&self, factor: i64) -> Self {
        if factor == 0 {
            return Self::default();
        }
        let terms =
            self.terms.iter().map(|&(a, f)| (a, f.wrapping_mul(factor))).filter(|t| t.1 != 0).collect();
        Self { terms, constant: self.constant.wrapping_mul(factor) }
    }

    /// The factor of an atom, 0 if it does not occur.
    pub fn factor(&self, atom: AtomId) -> i64 {
        self.terms.binary_search_by_key(&atom, |t| t.0).map_or(0, |i| self.terms[i].1)
    }

    /// The sum of two, term by term, without simplification of quotients and remainders ([`Space::add`]).
    pub fn merged(&self, other: &Self) -> Self {
        let mut terms: SmallVec<[(AtomId, i64); 3]> = SmallVec::new();
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let next = match (a.peek(), b.peek()) {
                (Some(&&x), Some(&&y)) if x.0 == y.0 => {
                    a.next();
                    b.next();
                    (x.0, x.1.wrapping_add(y.1))
                }
                (Some(&&x), Some(&&y)) if x.0 > y.0 => {
                    b.next();
                    y
                }
                (Some(&&x), _) => {
                    a.next();
                    x
                }
                (None, Some(&&y)) => {
                    b.next();
                    y
                }
                (None, None) => break,
            };
            if next.1 != 0 {
                terms.push(next);
            }
        }
        Self { terms, constant: self.constant.wrapping_add(other.constant) }
    }
}

/// The greatest common divisor; 0 is a multiple of everything.
pub fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

impl Space {
    /// Interns an atom of a definition and range.
    pub fn intern(&mut self, def: Def, low: i64, high: i64) -> AtomId {
        let next = AtomId(self.atoms.len() as u32);
        let id = *self.known.entry((def.clone(), low, high)).or_insert(next);
        if id == next {
            self.atoms.push(Atom { def, low, high });
        }
        id
    }

    /// A loop variable with range `0..size`; the constant 0 if `size` is 1.
    pub fn var(&mut self, number: u32, size: i64) -> Affine {
        if size == 1 {
            return Affine::default();
        }
        Affine::atom(self.intern(Def::Var(number), 0, (size - 1).max(0)))
    }

    /// The id that the next new atom will get.
    pub fn next_atom(&self) -> AtomId {
        AtomId(self.atoms.len() as u32)
    }

    /// Redefines an atom as something of the same range.
    pub fn redefine(&mut self, id: AtomId, def: Def) {
        let atom = &mut self.atoms[id.0 as usize];
        self.known.remove(&(atom.def.clone(), atom.low, atom.high));
        atom.def = def;
    }

    /// The atom of an id.
    pub fn atom(&self, id: AtomId) -> &Atom {
        &self.atoms[id.0 as usize]
    }

    /// The atom of a loop variable, if it was interned.
    pub fn atom_of(&self, var: u32) -> Option<AtomId> {
        self.atoms.iter().position(|a| a.def == Def::Var(var)).map(|i| AtomId(i as u32))
    }

    /// Whether only loop variables occur, no quotients, remainders or values.
    pub fn is_of_variables(&self, x: &Affine) -> bool {
        x.terms.iter().all(|t| matches!(self.atom(t.0).def, Def::Var(_)))
    }

    /// The minimum and the maximum, both inclusive.
    pub fn range(&self, x: &Affine) -> (i64, i64) {
        let (mut low, mut high) = (x.constant, x.constant);
        for &(a, f) in &x.terms {
            let atom = self.atom(a);
            let ends = (atom.low.saturating_mul(f), atom.high.saturating_mul(f));
            low = low.saturating_add(ends.0.min(ends.1));
            high = high.saturating_add(ends.0.max(ends.1));
        }
        (low, high)
    }

    /// Evaluates with these values of the loop variables; `None` if it depends on run-time values.
    pub fn at(&self, x: &Affine, of: &dyn Fn(u32) -> i64) -> Option<i64> {
        x.terms.iter().try_fold(x.constant, |sum, &(a, f)| {
            let n = match &self.atom(a).def {
                Def::Var(v) => of(*v),
                Def::Div(y, d) => self.at(y, of)?.div_euclid(*d),
                Def::Mod(y, d) => self.at(y, of)?.rem_euclid(*d),
                Def::Value(_) => return None,
            };
            Some(sum.wrapping_add(n.wrapping_mul(f)))
        })
    }

    /// The sum, simplified: `(x / d) * d + x % d` becomes `x` (with a common factor too).
    pub fn add(&self, a: &Affine, b: &Affine) -> Affine {
        let mut sum = a.merged(b);
        loop {
            let pair = sum.terms.iter().find_map(|&(m, f)| {
                let Def::Mod(x, d) = &self.atom(m).def else { return None };
                let &(q, _) = sum.terms.iter().find(|&&(q, g)| {
                    matches!(&self.atom(q).def, Def::Div(y, e) if e == d && y == x)
                        && f.checked_mul(*d) == Some(g)
                })?;
                Some((m, q, x.times(f)))
            });
            let Some((m, q, x)) = pair else { return sum };
            sum.terms.retain(|t| t.0 != m && t.0 != q);
            sum = sum.merged(&x);
        }
    }

    /// A divisor of the expression without its constant, given a divisor of each loop variable; 0 is a
    /// multiple of everything.
    pub fn multiple_of_terms(&self, x: &Affine, of: &dyn Fn(u32) -> i64) -> i64 {
        let term = |&(a, f): &(AtomId, i64)| {
            let atom = match &self.atom(a).def {
                Def::Var(v) => of(*v),
                Def::Div(y, d) => match self.multiple_of_terms(y, of) {
                    multiple if multiple % d == 0 => gcd(multiple / d, y.constant.div_euclid(*d)),
                    _ => 1,
                },
                Def::Mod(y, d) => gcd(gcd(self.multiple_of_terms(y, of), *d), y.constant),
                Def::Value(_) => 1,
            };
            f.saturating_mul(atom)
        };
        x.terms.iter().map(term).fold(0, gcd)
    }

    /// Splits `x` into the terms that `d` does not divide (a remainder that is never negative) and the
    /// quotient of the others.
    fn split_by_divisor(&self, x: &Affine, d: i64) -> (Affine, Affine) {
        let (mut rest, mut quotient) = (Affine::default(), Affine::default());
        for &(a, f) in &x.terms {
            if f % d == 0 {
                quotient.terms.push((a, f / d));
            } else {
                rest.terms.push((a, f));
            }
        }
        quotient.constant = x.constant.div_euclid(d);
        rest.constant = x.constant.rem_euclid(d);
        let low = self.range(&rest).0;
        if low < 0 {
            let up = low.unsigned_abs().div_ceil(d.unsigned_abs());
            let up = i64::try_from(up).unwrap_or(i64::MAX / d);
            rest.constant = rest.constant.saturating_add(up.saturating_mul(d));
            quotient.constant = quotient.constant.saturating_sub(up);
        }
        (rest, quotient)
    }

    /// Floored quotient and remainder by a positive constant, simplified with the ranges of atoms.
    pub fn div_mod(&mut self, x: &Affine, d: i64) -> (Affine, Affine) {
        if d == 1 {
            return (x.clone(), Affine::default());
        }
        let (rest, quotient) = self.split_by_divisor(x, d);
        let (low, high) = self.range(&rest);
        if low >= 0 && high < d {
            return (quotient, rest);
        }
        // floor((g * A + s) / d) = floor(A / (d / g)) for g that divides d and 0 <= s < g; the remainder is g
        // * (A mod d / g) + s. A takes the terms with the largest factors, as few as leave s that small.
        let mut order: SmallVec<[(AtomId, i64); 4]> = rest.terms.iter().copied().collect();
        order.sort_by_key(|t| (std::cmp::Reverse(t.1.unsigned_abs()), t.0));
        let (mut g, mut part, mut small) = (d, Affine::default(), Affine::default());
        for (k, t) in order.iter().enumerate() {
            g = gcd(g, t.1);
            let is_large = |t: &(AtomId, i64)| order[..=k].contains(t);
            let large = rest.terms.iter().filter(|t| is_large(t)).map(|&(a, f)| (a, f / g));
            part = Affine { terms: large.collect(), constant: rest.constant.div_euclid(g) };
            let others = rest.terms.iter().copied().filter(|t| !is_large(t));
            small = Affine { terms: others.collect(), constant: rest.constant.rem_euclid(g) };
            let (low, high) = self.range(&small);
            if low >= 0 && high < g {
                break;
            }
        }
        let e = d / g;
        if e == 1 {
            return (self.add(&quotient, &part), small);
        }
        let (low, high) = self.range(&part);
        let q = self.intern(Def::Div(part.clone(), e), low.div_euclid(e), high.div_euclid(e));
        let m = self.intern(Def::Mod(part, e), 0, e - 1);
        (self.add(&quotient, &Affine::atom(q)), Affine::atom(m).times(g).merged(&small))
    }

    /// The value of a node clamped to a range, which is not empty.
    pub fn value(&mut self, op: u32, low: i64, high: i64) -> Affine {
        if low == high {
            return Affine::constant(low);
        }
        Affine::atom(self.intern(Def::Value(op), low, high))
    }

    /// The row-major offset (linear index) of an index in an array of these dimensions.
    pub fn linear(&self, index: &[Affine], dims: &[i64]) -> Affine {
        let (mut sum, mut stride) = (Affine::default(), 1i64);
        for (x, &d) in index.iter().zip(dims).rev() {
            sum = self.add(&sum, &x.times(stride));
            stride = stride.wrapping_mul(d.max(1));
        }
        sum
    }

    /// The index in an array of these dimensions that has a row-major offset.
    pub fn delinear(&mut self, linear: &Affine, dims: &[i64]) -> Index {
        let mut index: Index = dims.iter().map(|_| Affine::default()).collect();
        let mut rest = linear.clone();
        let first = dims.iter().position(|&d| d != 1);
        for (i, &d) in dims.iter().enumerate().rev() {
            if d == 1 {
                continue;
            }
            if Some(i) == first {
                index[i] = rest;
                break;
            }
            let (q, m) = self.div_mod(&rest, d.max(1));
            (index[i], rest) = (m, q);
        }
        index
    }

    /// The index in an array of other dimensions with the same row-major offset. Groups of dimensions with
    /// the same number of elements are converted separately.
    pub fn reshape(&mut self, index: &[Affine], from: &[i64], to: &[i64]) -> Index {
        let mut result: Index = SmallVec::new();
        let (mut i, mut j) = (0, 0);
        while i < from.len() || j < to.len() {
            let (i0, j0) = (i, j);
            let (mut a, mut b) = (1i64, 1i64);
            // Takes the next dimension of each side, then more of the side whose product is smaller.
            if i < from.len() {
                a = from[i];
                i += 1;
            }
            if j < to.len() {
                b = to[j];
                j += 1;
            }
            while a != b && (i < from.len() || j < to.len()) {
                if (a < b && i < from.len()) || j == to.len() {
                    a = a.wrapping_mul(from[i]);
                    i += 1;
                } else {
                    b = b.wrapping_mul(to[j]);
                    j += 1;
                }
            }
            let linear = self.linear(&index[i0..i], &from[i0..i]);
            result.extend(self.delinear(&linear, &to[j0..j]));
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshapes_cancel() {
        let mut s = Space::default();
        let index: Index = [6, 5, 4].iter().enumerate().map(|(i, &n)| s.var(i as u32, n)).collect();
        let there = s.reshape(&index, &[6, 5, 4], &[10, 3, 4]);
        let back = s.reshape(&there, &[10, 3, 4], &[6, 5, 4]);
        assert_eq!(s.linear(&back, &[6, 5, 4]), s.linear(&index, &[6, 5, 4]));
        assert_eq!(
            s.reshape(&index, &[6, 5, 4], &[1, 6, 1, 20])[1],
            index[0],
            "groups are taken for themselves"
        );
        let flat = s.linear(&index, &[6, 5, 4]);
        assert_eq!(s.delinear(&flat, &[6, 5, 4]), index);
    }

    #[test]
    fn quotients_and_remainders_are_what_they_say() {
        let mut s = Space::default();
        let v = s.var(0, 100);
        for (factor, constant, d) in [(1, 0, 7), (-1, 99, 7), (6, 5, 4), (14, -3, 7), (-3, 1, 6), (4, 2, 8)] {
            let x = v.times(factor).plus(constant);
            let (q, m) = s.div_mod(&x, d);
            for value in 0..100 {
                let number = value * factor + constant;
                assert_eq!(eval(&s, &q, value), number.div_euclid(d), "{number} / {d}");
                assert_eq!(eval(&s, &m, value), number.rem_euclid(d), "{number} % {d}");
            }
            let (low, high) = s.range(&m);
            assert!(low >= 0 && high < d);
            assert_eq!(s.add(&q.times(d), &m), x, "they join again");
        }
    }

    #[test]
    fn small_terms_stay_whole() {
        let mut s = Space::default();
        let index: Index = [64, 2, 2048].iter().enumerate().map(|(i, &n)| s.var(i as u32, n)).collect();
        let there = s.reshape(&index, &[64, 2, 2048], &[8, 2, 16384]);
        // The last component is 4096 * (outer mod 4) + 2048 * middle + inner: only the outer variable is
        // divided.
        let (outer, others) = (index[0].terms[0].0, [index[1].terms[0].0, index[2].terms[0].0]);
        assert_eq!(others.map(|v| there[2].factor(v)), [2048, 1]);
        for &(a, _) in there[2].terms.iter().filter(|t| !others.contains(&t.0)) {
            let Def::Mod(y, 4) = &s.atom(a).def else { panic!("{:?}", s.atom(a)) };
            assert_eq!(*y, Affine::atom(outer));
        }
        assert_eq!(s.linear(&there, &[8, 2, 16384]), s.linear(&index, &[64, 2, 2048]));
        // Also with negative factors of the small terms.
        for (constant, factors, d) in [(3, [4, -1], 8), (7, [4, -1], 8), (0, [12, 2], 36), (50, [-12, 5], 24)]
        {
            let x = index[0].times(factors[0]).merged(&index[1].times(factors[1])).plus(constant);
            let (q, m) = s.div_mod(&x, d);
            for (u, v) in (0..64).flat_map(|u| [(u, 0), (u, 1)]) {
                let number = u * factors[0] + v * factors[1] + constant;
                let value = |x: &Affine| s.at(x, &|var| if var == 0 { u } else { v }).unwrap();
                assert_eq!(
                    (value(&q), value(&m)),
                    (number.div_euclid(d), number.rem_euclid(d)),
                    "{number} {d}"
                );
            }
            assert_eq!(s.add(&q.times(d), &m), x, "they join again");
        }
    }

    fn eval(s: &Space, x: &Affine, v: i64) -> i64 {
        s.at(x, &|_| v).unwrap()
    }
}
