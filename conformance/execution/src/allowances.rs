//! What the results of an engine may differ by, besides what the table of opcodes grants every engine:
//! liberties that it takes, and budgets of its elementary functions.

use hlo::opcode::Numeric;
use hlo::{ElementType, Opcode};
use serde::{Deserialize, Serialize};

use crate::format::Format;
use crate::functions::Functions;

/// The type that compilers compute a narrow real type in which they have no instructions for (XLA's pass
/// `float-normalization`): bf16, and f8e8m0fnu with its range, in f32; other types of a byte and less in f16.
pub fn normalized(ty: ElementType) -> ElementType {
    match ty {
        ElementType::BF16 | ElementType::F8E8M0FNU => ElementType::F32,
        ty if ty.is_float() && ty.bits() < 16 => ElementType::F16,
        ty => ty,
    }
}

/// Liberties that a compiler takes. [`Allowances::STRICT`] has none: elementary functions within their ulp,
/// sums in any order with an accumulator of at least f32, everything else to the bit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Allowances {
    /// `a * b + c` may be rounded once (`fma`).
    pub contraction: bool,
    /// Results of types narrower than f32 may stay in f32: a rounding, conversions included, may be left out.
    pub excess_precision: bool,
    /// Denormal operands and results may count as zero of the same sign.
    pub flush_denormals: bool,
    /// Sums of types narrower than f32 may be accumulated in their own type; products (dot, convolution) in the
    /// type that theirs is normalized to ([`normalized`]).
    pub narrow_accumulator: bool,
    /// Products of types narrower than f32 may be accumulated in their own type, too.
    #[serde(default)]
    pub narrow_products: bool,
    /// Reductions by other regions than sums may be done in any order, and rows that a sort's comparator leaves
    /// open may stand in any.
    pub reorder_regions: bool,
    /// Calls to LAPACK may be to another implementation of it than the reference's.
    pub decompositions: bool,
    /// A quotient whose divisor is a constant or repeats numbers (broadcasts) may be a product with the
    /// reciprocal: `x * (1 / c)`, rounded twice.
    #[serde(default)]
    pub reciprocals: bool,
    /// A sum of one term may be the term, not added to zero: a result of +0 may be -0.
    #[serde(default)]
    pub one_term_sums: bool,
    /// `batch-norm-inference` may be `x * w + (offset - mean * w)` with
    /// `w = scale / sqrt(variance + epsilon)`: products may overflow although the result does not.
    #[serde(default)]
    pub affine_batch_norm: bool,
    /// Operands of products of f32 (dot, convolution) may lose the low 13 bits of their significands, as TF32
    /// does, unless the instruction asks for more precision.
    #[serde(default)]
    pub tf32: bool,
    /// Sign and payload of a NaN that is computed are open, as IEEE 754 leaves them: what looks at them
    /// (`bitcast-convert`, comparisons and sorts by `TOTALORDER`) may see others.
    #[serde(default)]
    pub nan_bits: bool,
    /// The initial value of a `reduce` or `reduce-window` may enter any number of times, as StableHLO has it: not
    /// at all where one element is folded, or once in each window of 32 and in the fold of these (XLA:CPU).
    #[serde(default)]
    pub initial_values: bool,
    /// The error budgets of elementary functions.
    #[serde(default)]
    pub functions: Functions,
}

impl Allowances {
    /// No liberties.
    pub const STRICT: Allowances = Allowances {
        contraction: false,
        excess_precision: false,
        flush_denormals: false,
        narrow_accumulator: false,
        narrow_products: false,
        reorder_regions: false,
        decompositions: false,
        reciprocals: false,
        one_term_sums: false,
        affine_batch_norm: false,
        tf32: false,
        nan_bits: false,
        initial_values: false,
        functions: Functions::TABLE,
    };

    /// The liberties of XLA:CPU: all but those that only accelerators take, and products that are accumulated
    /// in a type without arithmetic of its own (docs/xla-cpu.md has what was measured).
    pub const LOOSE: Allowances = Allowances {
        contraction: true,
        excess_precision: true,
        flush_denormals: true,
        narrow_accumulator: true,
        narrow_products: false,
        reorder_regions: true,
        decompositions: true,
        reciprocals: true,
        one_term_sums: true,
        affine_batch_norm: true,
        tf32: false,
        nan_bits: true,
        initial_values: true,
        functions: Functions::XLA_CPU,
    };

    /// The names that `--allow` accepts.
    pub const NAMES: [&str; 13] = [
        "contraction",
        "excess-precision",
        "flush-denormals",
        "narrow-accumulator",
        "narrow-products",
        "reorder-regions",
        "decompositions",
        "reciprocals",
        "one-term-sums",
        "affine-batch-norm",
        "nan-bits",
        "initial-values",
        "tf32",
    ];

    /// The liberty of a name; for `all` those of [`Allowances::LOOSE`] and products that are accumulated in any
    /// type.
    pub fn named(name: &str) -> Option<Allowances> {
        let strict = Allowances::STRICT;
        Some(match name {
            "contraction" => Allowances { contraction: true, ..strict },
            "excess-precision" => Allowances { excess_precision: true, ..strict },
            "flush-denormals" => Allowances { flush_denormals: true, ..strict },
            "narrow-accumulator" => Allowances { narrow_accumulator: true, ..strict },
            "narrow-products" => Allowances { narrow_products: true, ..strict },
            "reorder-regions" => Allowances { reorder_regions: true, ..strict },
            "decompositions" => Allowances { decompositions: true, ..strict },
            "reciprocals" => Allowances { reciprocals: true, ..strict },
            "one-term-sums" => Allowances { one_term_sums: true, ..strict },
            "affine-batch-norm" => Allowances { affine_batch_norm: true, ..strict },
            "nan-bits" => Allowances { nan_bits: true, ..strict },
            "initial-values" => Allowances { initial_values: true, ..strict },
            "tf32" => Allowances { tf32: true, ..strict },
            "all" => Allowances { narrow_products: true, functions: Functions::TABLE, ..Allowances::LOOSE },
            _ => return None,
        })
    }

    /// The union of both.
    #[must_use]
    pub fn or(self, other: Allowances) -> Allowances {
        Allowances {
            contraction: self.contraction | other.contraction,
            excess_precision: self.excess_precision | other.excess_precision,
            flush_denormals: self.flush_denormals | other.flush_denormals,
            narrow_accumulator: self.narrow_accumulator | other.narrow_accumulator,
            narrow_products: self.narrow_products | other.narrow_products,
            reorder_regions: self.reorder_regions | other.reorder_regions,
            decompositions: self.decompositions | other.decompositions,
            reciprocals: self.reciprocals | other.reciprocals,
            one_term_sums: self.one_term_sums | other.one_term_sums,
            affine_batch_norm: self.affine_batch_norm | other.affine_batch_norm,
            tf32: self.tf32 | other.tf32,
            nan_bits: self.nan_bits | other.nan_bits,
            initial_values: self.initial_values | other.initial_values,
            functions: self.functions.or(other.functions),
        }
    }

    /// The narrowest type that sums of a type, real, may be accumulated in; `products`: that products may.
    pub fn accumulator(&self, ty: ElementType, products: bool) -> ElementType {
        let narrow = Format::of(ty).is_some_and(|f| f.precision < 24);
        if !narrow || products && self.narrow_products || !products && self.narrow_accumulator {
            ty
        } else if self.narrow_accumulator {
            normalized(ty)
        } else {
            ElementType::F32
        }
    }

    /// What the results of an opcode may be, given the budgets of elementary functions.
    pub fn numeric(&self, opcode: Opcode, ty: ElementType) -> Numeric {
        self.functions.numeric(opcode, ty)
    }

    /// All that is granted, for people: `contraction, flush-denormals, functions of xla-cpu`.
    pub fn describe(self) -> String {
        let names = self.granted().into_iter().map(str::to_owned);
        let all: Vec<String> = names.chain(self.functions.describe()).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    }

    /// The names of those that are granted.
    pub fn granted(self) -> Vec<&'static str> {
        let all = [
            self.contraction,
            self.excess_precision,
            self.flush_denormals,
            self.narrow_accumulator,
            self.narrow_products,
            self.reorder_regions,
            self.decompositions,
            self.reciprocals,
            self.one_term_sums,
            self.affine_batch_norm,
            self.nan_bits,
            self.initial_values,
            self.tf32,
        ];
        Self::NAMES.into_iter().zip(all).filter(|(_, granted)| *granted).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_flags_agree() {
        for name in Allowances::NAMES {
            assert_eq!(Allowances::named(name).unwrap().granted(), [name]);
        }
        let all =
            Allowances::NAMES.iter().fold(Allowances::STRICT, |a, n| a.or(Allowances::named(n).unwrap()));
        let tf32 = Allowances::named("tf32").unwrap();
        assert_eq!(all, Allowances::named("all").unwrap().or(tf32));
        assert_eq!(
            Allowances::named("all")
                .unwrap()
                .or(Allowances { functions: Functions::XLA_CPU, ..Allowances::STRICT }),
            Allowances { narrow_products: true, ..Allowances::LOOSE }
        );
        assert_eq!(Allowances::named("fast"), None);
    }
}
