//! Calls to LAPACK: what they call, and in whose arithmetic compiled programs compute it. What bounds allow for is what is said here.

use hlo::{ElementType, Instruction};

/// The frontend attribute, key and value, of a call that is to be a library's.
pub(crate) const LIBRARY: (&str, &str) = ("decompositions", "library");

/// The letter of the element type and the name of the routine, of the target of a custom call.
pub fn routine(target: &str) -> Option<(&str, &str)> {
    target.strip_prefix("lapack_")?.strip_suffix("_ffi")?.split_at_checked(1)
}

/// Whether a call is to be a library's.
pub fn is_library(call: &Instruction) -> bool {
    call.attrs.frontend_attributes().and_then(|f| f.get(LIBRARY.0)) == Some(LIBRARY.1)
}

/// Whether a routine may be computed in the element type's own arithmetic: bounds say how far its results are then from the interpreter's. Rounding decides
/// signs and pivots of the others; LU factors of f32 are not, because the interpreter's f64 is hardly slower.
pub fn is_rounded(routine: &str, ty: ElementType) -> bool {
    match routine {
        "potrf" | "trsm" => true,
        "getrf" => matches!(ty, ElementType::F64 | ElementType::C128),
        _others => false,
    }
}
