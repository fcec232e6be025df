use super::*;
use hlo::verify::verify;
use hlo::{ElementType, Opcode};
use rustc_hash::FxHashSet;

fn bytes(seed: u64, n: u64) -> Vec<u8> {
    (0..n).map(|i| splitmix64(seed << 20 | i) as u8).collect()
}

/// Everything that may be allowed.
const ALL: Limits =
    Limits { instructions: 24, elements: 400, nesting: 2, devices: 4, transfers: true, open_random: true };

#[test]
fn no_bytes_make_the_simplest_program() {
    let m = program(&[], Limits::default());
    assert_eq!(m.computation(m.entry()).len(), 1);
}

#[test]
fn any_bytes_verify_and_mean_one_program() {
    for seed in 0..200 {
        let bytes = bytes(seed, 10 * (seed % 60));
        for limits in [Limits::small(), ALL] {
            let m = program(&bytes, limits);
            let found = verify(&m);
            assert!(found.is_empty(), "seed {seed}: {found:?}");
            assert!(hlo::modules_equal(&m, &program(&bytes, limits)).is_ok(), "seed {seed}");
        }
    }
}

#[test]
fn every_opcode_and_type_comes_up() {
    let (mut opcodes, mut types) = (FxHashSet::default(), FxHashSet::default());
    for seed in 0..500 {
        let m = case(seed, ALL).module;
        for &c in m.computations() {
            for id in m.instructions(c) {
                opcodes.insert(m.instr(id).opcode);
                types.extend(m.instr(id).shape.element_type());
            }
        }
    }
    let missing: Vec<_> = Opcode::ALL.iter().filter(|op| !opcodes.contains(op)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(types.len(), ElementType::ALL.len());
}

#[test]
fn what_is_aimed_at_is_made() {
    let mut seen = Statistics::default();
    let limits = Limits { instructions: 12, ..ALL };
    for round in 0..40 {
        let missing = seen.missing(limits);
        for (i, aims) in missing.chunks(6).enumerate() {
            seen.add(&case_towards(round << 32 | i as u64, limits, aims).module);
        }
    }
    let (reached, all) = seen.reached(limits);
    assert!(reached == all, "{reached} of {all}: {:?}", seen.missing(limits));
}

/// Without aims: nearly all pairs within some thousand programs.
#[test]
fn pairs_come_up_by_themselves() {
    let limits = Limits { elements: 64, nesting: 1, ..ALL };
    let mut seen = Statistics::default();
    (0..5000).for_each(|seed| seen.add(&case(seed, limits).module));
    let (reached, all) = seen.reached(limits);
    assert!(reached * 100 >= all * 95, "{}", seen.summary(limits));
}
