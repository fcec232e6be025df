use rustc_hash::FxHashMap;

use super::*;
use crate::generate::{Case, Limits, case};

fn sources() -> Vec<Case> {
    (0..12).map(|seed| case(seed, Limits::default())).collect()
}

#[test]
fn mutants_verify_differ_and_depend_on_the_seed_alone() {
    let sources = sources();
    let donors: Vec<&Module> = sources.iter().map(|c| &c.module).collect();
    let mut steps: FxHashMap<&str, usize> = FxHashMap::default();
    let (mut made, mut tried) = (0, 0);
    for seed in 0..600 {
        let source = &sources[seed as usize % sources.len()];
        tried += 1;
        let Some(mutant) = mutate(&source.module, &source.inputs, &donors, seed) else { continue };
        made += 1;
        let found = verify(&mutant.module);
        assert!(!found.has_errors(), "seed {seed}: {:?}: {found:?}", mutant.steps);
        let other = hlo::modules_equal(&mutant.module, &source.module).is_err();
        assert!(other || mutant.inputs != source.inputs, "seed {seed}: {:?}", mutant.steps);
        if seed < 60 {
            let again = mutate(&source.module, &source.inputs, &donors, seed).expect("the same again");
            assert!(
                hlo::modules_equal(&mutant.module, &again.module).is_ok() && mutant.inputs == again.inputs
            );
        }
        assert_eq!(
            mutant.inputs.iter().map(Vec::len).collect::<Vec<_>>(),
            source.inputs.iter().map(Vec::len).collect::<Vec<_>>()
        );
        mutant.steps.into_iter().for_each(|step| *steps.entry(step).or_default() += 1);
    }
    assert!(made * 10 >= tried * 9, "{made} of {tried}");
    let missing: Vec<_> = MUTATIONS.iter().filter(|(_, name, _)| !steps.contains_key(name)).collect();
    assert!(missing.is_empty() && steps.contains_key("inputs"), "{steps:?}");
}

#[test]
fn fewer_bytes_change_less() {
    let source = case(3, Limits::default());
    let length =
        |bytes: &[u8]| mutate_by(&source.module, &source.inputs, &[], bytes).map_or(0, |m| m.steps.len());
    assert!(length(&[]) <= 1);
    assert!((0..40).map(|seed| length(&bytes(seed))).max() > Some(2));
}
