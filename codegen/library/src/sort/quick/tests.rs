//! Against the standard library's sort, and the number of comparisons in bad cases. Where the machine has no
//! AVX-512, there is nothing to test.

use std::fmt::Debug;

use crate::testing::Random;

use super::lanes::Lanes;
use super::network::{ROWS, few};
use super::partition::{COMPARED, Partitions, pivot, sampled};
use super::{Quick, Word};

/// A kind of keys: its name, and key `i` of `n`.
type Kind = (&'static str, fn(&Random, usize, usize) -> u64);

const KINDS: [Kind; 11] = [
    ("random", |random, _, _| random.next()),
    ("of the upper half", |random, _, _| random.next() | 1 << 63),
    ("ascending", |_, i, _| i as u64 * 3),
    ("descending", |_, i, n| (n - i) as u64 * 5),
    ("organ pipe", |_, i, n| i.min(n - i) as u64 * 7),
    ("saw tooth", |_, i, _| (i % 37) as u64 * 11),
    ("two", |random, _, _| if random.below(2) == 0 { 3 } else { u64::MAX }),
    ("few", |random, _, _| random.below(7) * 0x0101_0101_0101_0101),
    ("equal", |_, _, _| 0x1234_1234_1234_1234),
    ("the least", |_, _, _| 0),
    ("the largest, and one that is not", |_, i, n| if i == n / 2 { 1 } else { u64::MAX }),
];

/// The same, in keys that differ in their upper bits too.
fn keys<W: Word>((_, key): Kind, random: &Random, n: usize) -> Vec<W> {
    (0..n).map(|i| W::of(key(random, i, n).rotate_right(if size_of::<W>() == 2 { 0 } else { 7 }))).collect()
}

fn sorts<W: Word + Debug>() {
    let Some(quick) = Quick::<W>::here() else { return };
    let random = Random::new(1);
    let lengths =
        (0..=1100).chain([1535, 1536, 2047, 2048, 2049, 4095, 4097, 8192, 8193, 8255, 8256, 30_000]);
    for n in lengths {
        for kind in KINDS {
            // All kinds at lengths where the algorithm changes, and two of them, alternating, at others.
            if n > 300 && n < 1500 && n % 64 > 1 && n % KINDS.len() > 1 && kind.0 != "few" {
                continue;
            }
            let mut sorted = keys::<W>(kind, &random, n);
            let mut expected = sorted.clone();
            expected.sort_unstable();
            quick.sort(&mut sorted);
            assert!(sorted == expected, "{n} keys: {}", kind.0);
        }
    }
}

#[test]
fn keys_of_two_bytes() {
    sorts::<u16>();
}

#[test]
fn keys_of_four_bytes() {
    sorts::<u32>();
}

#[test]
fn keys_of_eight_bytes() {
    sorts::<u64>();
}

/// By the principle of zeros and ones a network that sorts these sorts everything: columns of zeros and ones,
/// as many of these as there are rows in each.
fn blocks<W: Word + Debug>() {
    if Quick::<W>::here().is_none() {
        return;
    }
    let lanes = W::Lanes::LANES;
    for n in 0..=ROWS * lanes {
        for ones in 0..=n {
            // A few orders of them; which are taken depends on the numbers.
            for step in [1, 7, 2 * (ones % 50) + 3] {
                let mut keys: Vec<W> = (0..n).map(|i| W::of(u64::from(i * step % n.max(1) < ones))).collect();
                let mut expected = keys.clone();
                expected.sort_unstable();
                // SAFETY: the machine has the instructions.
                unsafe { few::<W::Lanes>(keys.as_mut_ptr(), n) };
                assert!(keys == expected, "{n} keys, {ones}, {step}");
            }
            if n % 16 > 1 && ones % 16 > 1 {
                break;
            }
        }
    }
}

#[test]
fn networks_sort_zeros_and_ones() {
    blocks::<u16>();
    blocks::<u32>();
    blocks::<u64>();
}

#[test]
fn networks_sort_columns() {
    if Quick::<u32>::here().is_none() {
        return;
    }
    // All columns of 16 zeros and ones, 16 at a time.
    for first in (0..1u32 << ROWS).step_by(16) {
        let mut keys: Vec<u32> = (0..256).map(|i| (first + i % 16) >> (i / 16) & 1).collect();
        let ones: u32 = keys.iter().sum();
        // SAFETY: the machine has the instructions.
        unsafe { few::<super::Lanes32>(keys.as_mut_ptr(), 256) };
        let zeros = 256 - ones as usize;
        assert!(keys[..zeros].iter().all(|&k| k == 0) && keys[zeros..].iter().all(|&k| k == 1), "{first}");
    }
}

#[test]
fn all_ways_of_partitioning() {
    let Some(_) = Quick::<u32>::here() else { return };
    let random = Random::new(2);
    let mut buffer = vec![0u32; 5000 + 16];
    for n in (256..600).chain([1000, 4999, 5000]) {
        for (kind, way) in KINDS.into_iter().flat_map(|kind| [(kind, 0), (kind, 1), (kind, 2)]) {
            let (capacity, near) = [(5000, 5000), (0, 5000), (0, 0)][way];
            let before = keys::<u32>(kind, &random, n);
            let bound = before[n / 3];
            let mut after = before.clone();
            let partitions = Partitions::<super::Lanes32>::with(buffer.as_mut_ptr(), capacity, near);
            // SAFETY: the machine has the instructions, and there is space.
            let less = unsafe { partitions.less(after.as_mut_ptr(), n, bound) };
            assert!(after[..less].iter().all(|&k| k < bound), "{n} keys: {}, {way}", kind.0);
            assert!(after[less..].iter().all(|&k| k >= bound), "{n} keys: {}, {way}", kind.0);
            let sorted = |mut keys: Vec<u32>| {
                keys.sort_unstable();
                keys
            };
            assert!(sorted(after) == sorted(before), "{n} keys: {}, {way}", kind.0);
        }
    }
}

/// Keys of which each pivot is one of the smallest that are left: those that are looked at for it get the
/// next numbers (as McIlroy's killer of quicksorts does).
fn hostile(n: usize) -> Vec<u32> {
    const UNKNOWN: u32 = 1 << 31;
    let mut buffer = vec![0u32; n + 16];
    let partitions = Partitions::<super::Lanes32>::with(buffer.as_mut_ptr(), 4096, 1 << 21);
    let mut keys: Vec<u32> = (0..n as u32).map(|i| UNKNOWN + i).collect();
    let mut hostile = vec![0; n];
    let mut number = 0;
    let mut give = |key: &mut u32| {
        if *key >= UNKNOWN {
            number += 1;
            hostile[(*key - UNKNOWN) as usize] = number;
            *key = number;
        }
    };
    let mut rest = &mut keys[..];
    while rest.len() > ROWS * 16 {
        for at in sampled::<super::Lanes32>(rest.len()) {
            rest[at..at + 16].iter_mut().for_each(&mut give);
        }
        // SAFETY: the machine has the instructions, and there is space.
        let before = unsafe {
            let pivot = pivot::<super::Lanes32>(rest.as_ptr(), rest.len());
            partitions.less(rest.as_mut_ptr(), rest.len(), pivot)
        };
        rest = &mut rest[before..];
    }
    rest.iter_mut().for_each(give);
    hostile
}

#[test]
fn nothing_is_quadratic() {
    let Some(quick) = Quick::<u32>::here() else { return };
    let n = 60_000;
    let random = Random::new(3);
    let compared = |mut keys: Vec<u32>| {
        let mut expected = keys.clone();
        expected.sort_unstable();
        COMPARED.set(0);
        quick.sort(&mut keys);
        assert!(keys == expected);
        COMPARED.get() / n
    };
    let log = n.ilog2() as usize;
    for kind in KINDS {
        let passes = compared(keys::<u32>(kind, &random, n));
        assert!(passes <= log, "{}: {passes} passes", kind.0);
    }
    // Without an end to it, this would take a pass for each 128 keys or fewer, of half of the keys on
    // average.
    let hostile = hostile(n);
    let passes = compared(hostile.clone());
    assert!(passes > log && passes <= 2 * log + 8, "{passes} passes");
}

fn classes_of<const CLASSES: usize>() {
    let Some(quick) = Quick::<u32>::here() else { return };
    let random = Random::new(4);
    for (kind, n) in KINDS.into_iter().flat_map(|kind| [(kind, 1), (kind, 17), (kind, 3000)]) {
        let all = keys::<u32>(kind, &random, n);
        let splitters = quick.split::<CLASSES>(&mut all.clone());
        let mut counts = [0; CLASSES];
        quick.count(&splitters, &all, &mut counts);
        assert_eq!(counts.iter().sum::<usize>(), n, "{}", kind.0);
        let mut next = [0; CLASSES];
        for class in 1..CLASSES {
            next[class] = next[class - 1] + counts[class - 1];
        }
        let starts = next;
        let mut to = vec![0; n];
        // SAFETY: there are as many slots as were counted.
        unsafe { quick.distribute(&splitters, &all, to.as_mut_ptr(), &mut next) };
        for (class, (&start, &end)) in starts.iter().zip(&next).enumerate() {
            assert_eq!(end - start, counts[class], "{}", kind.0);
            to[start..end].sort_unstable();
        }
        let mut expected = all;
        expected.sort_unstable();
        assert!(to == expected, "{n} keys: {}", kind.0);
    }
}

#[test]
fn classes() {
    classes_of::<4>();
    classes_of::<8>();
    classes_of::<16>();
}
