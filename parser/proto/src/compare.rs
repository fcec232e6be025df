//! The type of a comparison that text leaves out.

use hlo::attrs::CompareType;
use hlo::{ElementType, TypeClass};

/// The comparison type that is meant where the text names none: XLA's protocol buffers always name it.
pub(crate) fn default_type(ty: ElementType) -> CompareType {
    match ty.class() {
        TypeClass::Float | TypeClass::Complex => CompareType::Float,
        TypeClass::Signed => CompareType::Signed,
        TypeClass::Unsigned | TypeClass::Pred => CompareType::Unsigned,
    }
}
