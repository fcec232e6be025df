//! Calls to LAPACK: what they call, and in whose arithmetic compiled programs compute it. What bounds allow for is what is said here.

use hlo::{ElementType, Instruction, Shape};

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

/// What a call has among its settings, by its key.
fn value<'a>(call: &'a Instruction, key: &str) -> Option<&'a str> {
    let config = call.attrs.backend_config()?.text();
    let value = config.split([',', '{', '}']).find_map(|entry| entry.trim().strip_prefix(key))?;
    Some(value.trim().strip_prefix('=')?.split(':').next()?.trim())
}

/// A letter among the settings of a call.
pub fn setting(call: &Instruction, key: &str) -> Option<char> {
    value(call, key)?.parse::<u8>().ok().map(char::from)
}

/// What is true or false among them.
pub fn flag(call: &Instruction, key: &str) -> Option<bool> {
    value(call, key)?.parse().ok()
}

/// Whether a call, to this routine, may be computed in the element type's own arithmetic: bounds say how far its results are then from the interpreter's. Rounding
/// decides signs and pivots of the others; LU factors and decompositions of f32 are not, because the interpreter's f64 is hardly slower.
pub fn is_rounded(call: &Instruction, routine: &str) -> bool {
    let results: Vec<_> = call.shape.leaves().into_iter().filter_map(Shape::as_array).collect();
    let f64s =
        results.first().is_some_and(|r| matches!(r.element_type, ElementType::F64 | ElementType::C128));
    match routine {
        "potrf" | "trsm" => true,
        "getrf" | "geqrf" | "orgqr" | "ungqr" | "ormqr" | "unmqr" | "syevd" | "heevd" => f64s,
        // Bases of what a matrix maps to 0 are determined by no value.
        "gesdd" | "gesvd" => {
            let of = |k: usize, from_last: usize| results.get(k)?.dims.iter().rev().nth(from_last);
            f64s && (setting(call, "mode") == Some('N') || of(2, 0) == of(3, 1))
        }
        _others => false,
    }
}
