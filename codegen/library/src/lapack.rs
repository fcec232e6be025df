//! Calls to LAPACK: their routines, and in which arithmetic compiled programs compute them. Bounds allow for
//! what is decided here.

use hlo::{ElementType, Instruction, Shape};

/// The frontend attribute, key and value, of a call that asks for a library's decomposition.
pub const LIBRARY: (&str, &str) = ("decompositions", "library");

/// The letter of the element type and the name of the routine, from the target of a custom call.
pub fn routine(target: &str) -> Option<(&str, &str)> {
    target.strip_prefix("lapack_")?.strip_suffix("_ffi")?.split_at_checked(1)
}

/// The routines that are computed in the element type's own arithmetic if that is asked for, or if bounds
/// allow for it.
pub const DECOMPOSITIONS: [&str; 10] =
    ["getrf", "geqrf", "orgqr", "ungqr", "ormqr", "unmqr", "syevd", "heevd", "gesdd", "gesvd"];

/// Whether a call asks for a library's decomposition.
pub fn is_library(call: &Instruction) -> bool {
    call.attrs.frontend_attributes().and_then(|f| f.get(LIBRARY.0)) == Some(LIBRARY.1)
}

/// A letter among the settings of a call.
pub fn setting(call: &Instruction, key: &str) -> Option<char> {
    Settings::of(call)?.get(key)?.parse::<u8>().ok().map(char::from)
}

/// A boolean among the settings of a call.
pub fn flag(call: &Instruction, key: &str) -> Option<bool> {
    Settings::of(call)?.bool(key)
}

/// The settings of a call: a dictionary of MLIR, such as `{mode = 86 : ui8, uplo = 76 : ui8}`.
pub struct Settings<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Settings<'a> {
    /// Of a call.
    pub fn of(call: &'a Instruction) -> Option<Self> {
        let text = call.attrs.backend_config().map_or("", |config| config.text()).trim();
        if text.is_empty() {
            return Some(Self(Vec::new()));
        }
        let inside = text.strip_prefix('{')?.strip_suffix('}')?.trim();
        if inside.is_empty() {
            return Some(Self(Vec::new()));
        }
        let entry = |entry: &'a str| {
            let (key, value) = entry.split_once('=')?;
            Some((key.trim(), value.split_once(':').map_or(value, |(value, _)| value).trim()))
        };
        inside.split(',').map(entry).collect::<Option<_>>().map(Self)
    }

    /// `None` if there are other keys than these.
    pub fn only(&self, keys: &[&str]) -> Option<()> {
        self.0.iter().all(|(key, _)| keys.contains(key)).then_some(())
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(k, _)| *k == key).map(|&(_, value)| value)
    }

    /// A boolean.
    pub fn bool(&self, key: &str) -> Option<bool> {
        self.get(key)?.parse().ok()
    }

    /// One of some characters, by its code.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(u8, T)]) -> Option<T> {
        let code: u8 = self.get(key)?.parse().ok()?;
        choices.iter().find(|(c, _)| *c == code).map(|&(_, value)| value)
    }
}

/// Whether a call, to this routine, may be computed in the element type's own arithmetic: bounds say how far
/// its results are then from the interpreter's. Rounding decides signs and pivots of the others; LU factors
/// and decompositions of f32 are not, because the interpreter's f64 is hardly slower.
pub fn is_rounded(call: &Instruction, routine: &str) -> bool {
    let results: Vec<_> = call.shape.leaves().into_iter().filter_map(Shape::as_array).collect();
    let f64s =
        results.first().is_some_and(|r| matches!(r.element_type, ElementType::F64 | ElementType::C128));
    match routine {
        "potrf" | "trsm" => true,
        // A basis of the null space is not determined by singular values.
        "gesdd" | "gesvd" => {
            let of = |k: usize, from_last: usize| results.get(k)?.dims.iter().rev().nth(from_last);
            f64s && (setting(call, "mode") == Some('N') || of(2, 0) == of(3, 1))
        }
        other => f64s && DECOMPOSITIONS.contains(&other),
    }
}
