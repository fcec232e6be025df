//! Values that are one of a few words.

use hlo::attrs::{
    ApiVersion, CollectiveMode, CompareType, ConvKind, Direction, DotAlgorithm, FftType, FusionKind,
    PaddingType, Precision, RngAlgorithm, RngDistribution, Schedule, Transpose,
};
use hlo::diag::codes::parse as codes;
use hlo::diag::suggest::did_you_mean;

use crate::cursor::{Cursor, Res, error};

/// An enum with a word for each variant.
pub(crate) trait Word: Copy + 'static {
    /// What it is, for messages.
    const WHAT: &'static str;
    /// The variants.
    const ALL: &'static [Self];
    /// The word of a variant.
    fn text(self) -> &'static str;
    /// Whether case is of no matter, as XLA has it for precisions.
    const ANY_CASE: bool = false;
    /// The variant of a word.
    fn from_word(word: &str) -> Option<Self>;
}

macro_rules! words {
    ($($ty:ident = $what:literal $($any_case:literal)?;)*) => {
        $(impl Word for $ty {
            $(const ANY_CASE: bool = $any_case;)?
            const WHAT: &'static str = $what;
            const ALL: &'static [Self] = $ty::ALL;
            fn text(self) -> &'static str {
                $ty::text(self)
            }
            fn from_word(word: &str) -> Option<Self> {
                $ty::from_text(word)
            }
        })*
    };
}

words! {
    Direction = "direction of a comparison";
    CompareType = "type of a comparison";
    FusionKind = "kind of a fusion";
    FftType = "type of a Fourier transform";
    Transpose = "transposition";
    RngDistribution = "distribution";
    RngAlgorithm = "algorithm of a random generator";
    Precision = "precision" true;
    DotAlgorithm = "algorithm of a dot";
    PaddingType = "padding type";
    Schedule = "schedule";
    ApiVersion = "calling convention";
    ConvKind = "kind of a convolution";
    CollectiveMode = "mode of a collective";
}

/// The word at the cursor.
pub(crate) fn word<T: Word>(c: &mut Cursor<'_>) -> Res<T> {
    c.skip();
    let start = c.pos();
    let found = c.word();
    if let Some(v) = T::from_word(found) {
        return Ok(v);
    }
    if T::ANY_CASE
        && let Some(v) = T::from_word(&found.to_ascii_lowercase())
    {
        return Ok(v);
    }
    if found.is_empty() {
        return Err(c.unexpected(codes::BAD_WORD, &format!("a {}", T::WHAT)));
    }
    let all = T::ALL.iter().map(|v| v.text());
    let lower = found.to_ascii_lowercase();
    let near =
        all.clone().find(|w| w.to_ascii_lowercase() == lower).or_else(|| did_you_mean(found, all.clone()));
    let label = near.map_or_else(|| format!("not a {}", T::WHAT), |w| format!("did you mean `{w}`?"));
    let e = error(codes::BAD_WORD, c.span_from(start), format!("unknown {} `{found}`", T::WHAT), label);
    Err(Box::new(e.note(format!("it is one of {}", all.collect::<Vec<_>>().join(", ")))))
}
