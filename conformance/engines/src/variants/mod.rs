//! Rewritings that a correct compiler may do although they change the bits: other orders of sums,
//! contraction, more precision than asked.
//!
//! They are what the certified tolerance is held against: an engine `interpreter:NAME` is never wrong, or the
//! tolerance is.
//! **Invariants:** a variant takes the liberties that it is registered with and no other; what it leaves
//! verifies; results keep their shapes.
//!
//! | variant | what it does | liberties |
//! |---|---|---|
//! | `reversed` | sums from the last term to the first ([`sums`]) | narrow accumulator |
//! | `blocked` | sums in blocks, whose sums are added ([`sums`]) | narrow accumulator |
//! | `tree` | sums by halves ([`sums`]) | narrow accumulator |
//! | `pairwise-f32-accumulate` | sums of types narrower than f32 by halves in f32, others as they are ([`sums`]) | narrow accumulator |
//! | `region` | sums literally | narrow accumulator |
//! | `region-by-columns` | sums literally, over several dimensions the first fastest ([`sums`]) | narrow accumulator |
//! | `region-windows` | sums literally in windows of 32, whose sums are added ([`sums`]) | narrow accumulator |
//! | `fma` | a product that is added to something is not rounded ([`fma`]) | contraction |
//! | `excess` | chains of `f16` and `bf16` arithmetic in f32 ([`excess`]) | excess precision |
//! | `reciprocals` | `x / broadcast(c)` as `x * broadcast(1 / c)` ([`reciprocals`]) | reciprocals |
//! | `flush` | denormals are zeros in arithmetic ([`flush`]) | denormals flushed |
//! | `scales-in-f32` | arithmetic of `f8e8m0fnu` in f32 ([`scales`]) | denormals flushed |
//! | `regions-reversed` | folds that are no sums from the last element to the first ([`regions`]) | reordered regions |
//! | `regions-halved` | folds that choose among elements by halves ([`regions`]) | reordered regions |
//! | `regions-swapped` | folds that are no sums by their regions with the operands exchanged ([`regions`]) | reordered regions |
//! | `regions-by-columns` | folds that are no sums over several dimensions, the first fastest ([`regions`]) | reordered regions |
//! | `regions-windows` | tree reduction of unrecognized and choosing regions ([`regions::How::Windows`]) | reordered regions |
//! | `normalization-steps` | batch normalizations step by step in the operands' type ([`expansions`]) | affine normalization, narrow accumulator |
//! | `steps-widened` | batch normalizations and Cholesky factorizations of narrow floats in f16 or f32 ([`expansions`]) | affine normalization, narrow accumulator |
//! | `cholesky-steps` | Cholesky factorizations step by step in their type ([`expansions`]) | narrow accumulator |
//! | `triangular-inverse` | triangular systems by the inverse of the matrix ([`inversion`]) | decompositions, narrow accumulator |
//! | `transform-by-parts` | Fourier transforms in which a factor of 0 hides an infinity or NaN ([`expansions`]) | |
//! | `products-by-parts` | complex products in which a real or imaginary factor scales an infinite one ([`complex`]) | |
//! | `selection-steps`, `selection-by-columns` | `select-and-scatter` as a selection in windows and a scatter ([`expansions`]) | reordered regions |
//! | `negative-nans` | computed NaNs are negative where their bits are looked at ([`nans`]) | bits of NaNs |
//! | `initial-values-none` | folds of one element without their initial values ([`initial_values`]) | initial values |
//! | `ulp-up`, `ulp-down` | elementary functions one unit in the last place off ([`ulp`]) | |
//!
//! The first seven, and those of steps that add, run with `--accumulate region`, where the order of a sum
//! shows. There a sum of a type narrower than f32 rounds each step in that type, and an operand of a product
//! is first rounded to the result's type. The others widen such sums to f32 first ([`sums::widen`]) where
//! they can: not in a program with run-time sizes, nor in sums of other forms; hence they take the liberty
//! too, in products as in other sums. Where an engine accumulates products in what their types are normalized
//! to, they follow [`sums::normalize_products`].

mod complex;
pub mod excess;
pub mod expansions;
pub mod flush;
pub mod fma;
pub mod initial_values;
mod inversion;
mod nans;
mod reciprocals;
pub mod regions;
pub mod scales;
pub mod sums;
pub mod ulp;

use hlo_interp::Accumulate;
use hlo_opt::passes::Pass;

use crate::engine::Allowances;
use expansions::Expansion;

/// A rewriting that a correct compiler may do.
#[derive(Debug)]
pub struct Variant {
    /// The rewriting.
    pub pass: Box<dyn Pass>,
    /// The liberties that it takes.
    pub allowances: Allowances,
    /// How sums round in what it makes, whatever the run asks for.
    pub accumulate: Option<Accumulate>,
}

/// All variants.
pub fn all() -> Vec<Variant> {
    let strict = Allowances::STRICT;
    let narrow = Allowances { narrow_accumulator: true, narrow_products: true, ..strict };
    let summed = |how| Variant {
        pass: Box::new(sums::Sums(how)),
        allowances: narrow,
        accumulate: Some(Accumulate::Region),
    };
    let other = |pass: Box<dyn Pass>, allowances| Variant { pass, allowances, accumulate: None };
    vec![
        summed(sums::How::Reversed),
        summed(sums::How::Blocked),
        summed(sums::How::Tree),
        summed(sums::How::NarrowTree),
        summed(sums::How::Literal),
        summed(sums::How::LiteralByColumns),
        summed(sums::How::LiteralWindows),
        other(Box::new(fma::Fma), Allowances { contraction: true, ..strict }),
        other(Box::new(excess::Excess), Allowances { excess_precision: true, ..strict }),
        other(Box::new(reciprocals::Reciprocals), Allowances { reciprocals: true, ..strict }),
        other(Box::new(flush::Flush), Allowances { flush_denormals: true, ..strict }),
        other(Box::new(scales::Scales), Allowances { flush_denormals: true, ..strict }),
        other(
            Box::new(regions::Regions(regions::How::Reversed)),
            Allowances { reorder_regions: true, ..strict },
        ),
        other(
            Box::new(regions::Regions(regions::How::Halved)),
            Allowances { reorder_regions: true, ..strict },
        ),
        other(
            Box::new(regions::Regions(regions::How::Swapped)),
            Allowances { reorder_regions: true, ..strict },
        ),
        other(
            Box::new(regions::Regions(regions::How::ByColumns)),
            Allowances { reorder_regions: true, ..strict },
        ),
        other(
            Box::new(regions::Regions(regions::How::Windows)),
            Allowances { reorder_regions: true, ..strict },
        ),
        Variant {
            pass: Box::new(Expansion::Normalization),
            allowances: Allowances { affine_batch_norm: true, ..narrow },
            accumulate: Some(Accumulate::Region),
        },
        Variant {
            pass: Box::new(Expansion::Widened),
            allowances: Allowances { affine_batch_norm: true, ..narrow },
            accumulate: Some(Accumulate::Region),
        },
        Variant {
            pass: Box::new(Expansion::Factorization),
            allowances: narrow,
            accumulate: Some(Accumulate::Region),
        },
        Variant {
            pass: Box::new(Expansion::Inversion),
            allowances: Allowances { decompositions: true, ..narrow },
            accumulate: Some(Accumulate::Region),
        },
        other(Box::new(Expansion::Transform), strict),
        other(Box::new(complex::ComplexProducts), strict),
        other(Box::new(Expansion::Selection), Allowances { reorder_regions: true, ..strict }),
        other(Box::new(Expansion::SelectionByColumns), Allowances { reorder_regions: true, ..strict }),
        other(Box::new(nans::NegativeNans), Allowances { nan_bits: true, ..strict }),
        other(Box::new(initial_values::InitialValues::None), Allowances { initial_values: true, ..strict }),
        other(Box::new(ulp::Ulp::Up), strict),
        other(Box::new(ulp::Ulp::Down), strict),
    ]
}

/// The variant of a name.
pub fn by_name(name: &str) -> Option<Variant> {
    all().into_iter().find(|v| v.pass.name() == name)
}

#[cfg(test)]
mod tests;
