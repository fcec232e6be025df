//! Sorting networks: up to 256 keys (of 8 bytes: 128) in registers.
//!
//! The keys are a matrix of 1 to 16 registers by lanes. Its columns are sorted, all at once, by the smallest
//! known networks. Then neighbouring columns are merged (Batcher's bitonic merge, between registers and then
//! within them), twice as many with each step, until the matrix is sorted in row-major order (Wassenberg et
//! al., Vectorized and performance-portable quicksort, 2022).

use super::lanes::Lanes;

/// Registers at most.
pub(super) const ROWS: usize = 16;

/// Compares registers with each other, lane by lane: the smaller keys go to the first one of a pair.
macro_rules! exchange {
    ($rows:ident: $($i:literal $j:literal),*) => {$(
        let (a, b) = ($rows[$i], $rows[$j]);
        ($rows[$i], $rows[$j]) = (a.min(b), a.max(b));
    )*};
    // With lanes `i ^ X` of the second one, which keep that order: the rest of a merge treats both halves
    // alike.
    ($rows:ident by $x:ident: $($i:literal $j:literal),*) => {$(
        let (a, b) = ($rows[$i], $rows[$j].swapped::<$x>());
        ($rows[$i], $rows[$j]) = (a.min(b), a.max(b));
    )*};
}

/// Calls `$do` with each number of a register.
macro_rules! each {
    (|$i:ident| $do:expr) => {
        each!(|$i| $do; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (|$i:ident| $do:expr; $($n:literal)*) => {$(
        if $n < R {
            const $i: usize = $n;
            $do;
        }
    )*};
}

/// Sorts each column of `R` registers: 1, 2, 4, 8 or 16.
///
/// # Safety
/// As [`Lanes`].
#[inline(always)]
unsafe fn columns<L: Lanes, const R: usize>(rows: &mut [L; R]) {
    // SAFETY: as the caller says.
    unsafe {
        if R == 2 {
            exchange!(rows: 0 1);
        }
        if R == 4 {
            exchange!(rows: 0 2, 1 3, 0 1, 2 3, 1 2);
        }
        if R == 8 {
            exchange!(rows: 0 2, 1 3, 4 6, 5 7, 0 4, 1 5, 2 6, 3 7, 0 1, 2 3, 4 5, 6 7, 2 4, 3 5, 1 4, 3 6, 1 2, 3 4, 5 6);
        }
        // Green's 60 comparisons.
        if R == 16 {
            exchange!(rows: 0 13, 1 12, 2 15, 3 14, 4 8, 5 6, 7 11, 9 10, 0 5, 1 7, 2 9, 3 4, 6 13, 8 14, 10 15, 11 12);
            exchange!(rows: 0 1, 2 3, 4 5, 6 8, 7 9, 10 11, 12 13, 14 15, 0 2, 1 3, 4 10, 5 11, 6 7, 8 9, 12 14, 13 15);
            exchange!(rows: 1 2, 3 12, 4 6, 5 7, 8 10, 9 11, 13 14, 1 4, 2 6, 5 8, 7 10, 9 13, 11 14, 2 4, 3 6, 9 12, 11 13);
            exchange!(rows: 3 5, 6 8, 7 9, 10 12, 3 4, 5 6, 7 8, 9 10, 11 12, 6 7, 8 9);
        }
    }
}

/// The part of a bitonic merge that is between registers: of the lanes `i` and `i ^ X` of a column.
///
/// # Safety
/// As [`Lanes`].
#[inline(always)]
unsafe fn between<L: Lanes, const R: usize, const X: usize>(rows: &mut [L; R]) {
    // SAFETY: as the caller says.
    unsafe {
        if R == 16 {
            exchange!(rows by X: 0 15, 1 14, 2 13, 3 12, 4 11, 5 10, 6 9, 7 8, 8 15, 9 14, 10 13, 11 12);
        }
        if R >= 8 {
            exchange!(rows by X: 0 7, 1 6, 2 5, 3 4, 4 7, 5 6);
        }
        if R == 16 {
            exchange!(rows by X: 8 11, 9 10, 12 15, 13 14, 8 9, 10 11, 12 13, 14 15);
        }
        if R >= 8 {
            exchange!(rows by X: 4 5, 6 7);
        }
        if R >= 4 {
            exchange!(rows by X: 0 3, 1 2, 2 3);
        }
        if R >= 2 {
            exchange!(rows by X: 0 1);
        }
    }
}

/// The part that is within registers: of the lanes `i` and `i ^ X` the second one gets the larger key.
///
/// # Safety
/// As [`Lanes`].
#[inline(always)]
unsafe fn within<L: Lanes, const R: usize, const X: usize>(rows: &mut [L; R]) {
    let mut second = 0;
    let mut lane = 0;
    while lane < L::LANES {
        if lane & 1 << X.ilog2() != 0 {
            second |= 1 << lane;
        }
        lane += 1;
    }
    // SAFETY: as the caller says.
    each!(|I| unsafe {
        let (row, other) = (rows[I], rows[I].swapped::<X>());
        rows[I] = row.min(other).max_where(second, row, other);
    });
}

/// Sorts the keys of `R` registers.
///
/// # Safety
/// As [`Lanes`].
#[inline(always)]
pub(super) unsafe fn sort_rows<L: Lanes, const R: usize>(rows: &mut [L; R]) {
    // SAFETY: as the caller says.
    unsafe {
        columns(rows);
        between::<L, R, 1>(rows);
        within::<L, R, 1>(rows);
        between::<L, R, 3>(rows);
        within::<L, R, 3>(rows);
        within::<L, R, 1>(rows);
        between::<L, R, 7>(rows);
        within::<L, R, 7>(rows);
        within::<L, R, 2>(rows);
        within::<L, R, 1>(rows);
        if L::LANES == 16 {
            between::<L, R, 15>(rows);
            within::<L, R, 15>(rows);
            within::<L, R, 4>(rows);
            within::<L, R, 2>(rows);
            within::<L, R, 1>(rows);
        }
    }
}

/// Sorts keys that fill more than half of `R` registers.
///
/// # Safety
/// As [`few`].
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
unsafe fn block<L: Lanes, const R: usize>(keys: *mut L::Key, n: usize) {
    let (full, rest) = (n / L::LANES, n % L::LANES);
    // SAFETY: as the caller says; registers beyond `full` are not among the first half.
    unsafe {
        let mut rows = [L::splat(L::MAX); R];
        each!(|I| {
            if I < R / 2 || I < full {
                rows[I] = L::load(keys.add(I * L::LANES));
            } else if I == full {
                rows[I] = L::load_first(keys.add(I * L::LANES), rest);
            }
        });
        sort_rows(&mut rows);
        each!(|I| {
            if I < R / 2 || I < full {
                rows[I].store(keys.add(I * L::LANES));
            } else if I == full {
                rows[I].store_first(keys.add(I * L::LANES), rest);
            }
        });
    }
}

/// Sorts keys that fit into [`ROWS`] registers.
///
/// # Safety
/// As [`Lanes`]; the keys are this call's alone.
#[inline(always)]
pub(super) unsafe fn few<L: Lanes>(keys: *mut L::Key, n: usize) {
    debug_assert!(n <= ROWS * L::LANES, "invariant: few keys");
    // SAFETY: as the caller says.
    unsafe {
        match n.div_ceil(L::LANES) {
            0 => {}
            1 => block::<L, 1>(keys, n),
            2 => block::<L, 2>(keys, n),
            3..=4 => block::<L, 4>(keys, n),
            5..=8 => block::<L, 8>(keys, n),
            _more => block::<L, ROWS>(keys, n),
        }
    }
}
