//! Other inputs: single arrays in another mode, edges among them.

use hlo::{ArrayLiteral, ArrayShape};

use crate::generate::{Choices, Mode, array};

/// Changes one or two arrays of each device, the same ones. Returns whether there was one. Arrays of integers
/// and predicates keep to what they hold: what indexes or counts stays within what the program allows,
/// mostly.
pub(super) fn change(choices: &mut Choices<'_>, inputs: &mut [Vec<ArrayLiteral>]) -> bool {
    let Some(n) = inputs.first().map(Vec::len).filter(|&n| n > 0) else { return false };
    let mut changed = false;
    for _ in 0..1 + choices.below(2) {
        let at = choices.below(n);
        let mode = choices.pick(&[
            Mode::Edge,
            Mode::Distinct,
            Mode::Few,
            Mode::Wild,
            Mode::Moderate,
            Mode::Sorted,
            Mode::Small,
        ]);
        let key = u64::from(choices.bits());
        for (device, arrays) in inputs.iter_mut().enumerate() {
            let Some(old) = arrays.get_mut(at) else { continue };
            let ty = old.buffer.element_type();
            if !(ty.is_float() || ty.is_complex()) && old.dims.is_empty() {
                continue;
            }
            let new = array(&ArrayShape::new(ty, &old.dims), mode, key.wrapping_add(device as u64) << 8);
            changed |= new != *old;
            *old = new;
        }
    }
    changed
}
