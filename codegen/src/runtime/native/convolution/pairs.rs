//! Integers of one or two bytes, two channels a word: an instruction multiplies both and adds them to a sum of 32 bits.
//!
//! The input is widened to 16 bits first, so that a word of a patch is what lies in memory; the kernel while it is packed.

use hlo::ElementType;

use super::{Choose, Conversion, Lane, Outer, Packers, Packs, Side};
use crate::runtime::native::dot::source::{self, PairOfI16};
use crate::runtime::native::dot::tile::Features;

/// Fewer features than this, or fewer terms, are not worth it.
const LEAST: usize = 16;

/// Whether a convolution whose sums are of 32 bits, and whose features are neighbours, is computed so. No word has channels of two window positions.
pub(super) fn suit(sides: [&Side; 2], lanes: &[Lane], outer: &Outer) -> bool {
    let small = |side: &&Side| {
        side.conversion.is_none() && [ElementType::S8, ElementType::U8, ElementType::S16].contains(&side.ty)
    };
    let terms = lanes.iter().map(|lane| lane.axis.kernel).product::<usize>() * outer.channels;
    Features::here().vnni
        && sides.iter().all(small)
        && outer.channels.is_multiple_of(2)
        && outer.channel_stride == 1
        && outer.features >= LEAST
        && terms >= LEAST
}

/// How the input becomes integers of 16 bits.
pub(super) fn widened(from: ElementType) -> Option<Conversion> {
    let to = ElementType::S16;
    (from != to).then_some(Conversion { from, through: to, to })
}

/// How the (widened) input and a kernel are packed.
pub(super) fn packers(kernel: ElementType) -> Packers<u32> {
    Packers {
        patches: <Packs as Choose<u32>>::of::<PairOfI16>(),
        kernel: source::pairs(kernel).expect("invariant: such a kernel was looked for"),
    }
}
