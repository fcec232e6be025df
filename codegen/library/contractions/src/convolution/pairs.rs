//! Integers of one or two bytes, two channels a word: an instruction multiplies both and adds them to a sum
//! of 32 bits.
//!
//! The input is widened to 16 bits first, so that a word of a patch is what is stored in memory; the kernel
//! while it is packed.

use hlo::ElementType;
use hlo_library_base::isa::Features;

use super::{
    Call, Choose, Conversion, Convolution, Lane, Outer, Packers, Packs, Part, Side, convert, part, tile,
};
use crate::dot::grouped::{PairOfI16, pairs};

/// The fewest features, and the fewest terms, for which it is profitable.
const MIN_FEATURES_AND_TERMS: usize = 16;

/// Words are pairs of channels, as 16-bit integers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pairs(());

impl Pairs {
    /// For a convolution whose sums are of 32 bits, and whose features are contiguous. No word has channels
    /// of two window positions.
    pub(super) fn new(sides: [&Side; 2], lanes: &[Lane], outer: &Outer) -> Option<Pairs> {
        let small = |side: &&Side| {
            side.conversion.is_none()
                && [ElementType::S8, ElementType::U8, ElementType::S16].contains(&side.ty)
        };
        let terms = lanes.iter().map(|lane| lane.axis.kernel).product::<usize>() * outer.channels;
        let suits = Features::here().vnni
            && sides.iter().all(small)
            && outer.channels.is_multiple_of(2)
            && outer.channel_stride == 1
            && outer.features >= MIN_FEATURES_AND_TERMS
            && terms >= MIN_FEATURES_AND_TERMS;
        suits.then_some(Pairs(()))
    }

    /// How the input becomes integers of 16 bits.
    pub(super) fn widened(self, from: ElementType) -> Option<Conversion> {
        let to = ElementType::S16;
        (from != to).then_some(Conversion { from, through: to, to })
    }

    /// One product.
    pub(super) fn part(self, lanes: &[Lane], outer: &Outer) -> Part {
        part::<tile::I16>(lanes, outer, true, 2)
    }

    /// Computes the convolution.
    ///
    /// # Safety
    /// As of [`Operation::run`](super::Operation::run) of the convolution of which this was made.
    pub(super) unsafe fn run(self, convolution: &Convolution, call: Call<'_>) {
        let packers = Packers {
            patches: <Packs as Choose<u32>>::of::<PairOfI16>(),
            kernel: pairs(convolution.rhs.ty).expect("invariant: such a kernel was looked for"),
        };
        let narrow = convert::from_i32(convolution.result_type);
        // SAFETY: the caller's. Integers are always finite.
        unsafe { convolution.run_in::<tile::I16>(call, narrow, |_, _| true, packers) };
    }
}
