//! Code for elements of any width.

/// Runs a block with a type alias for an unsigned type, or a pair of them, of `$bytes` bytes: for code that
/// moves elements and never looks at their values.
macro_rules! with_width {
    ($bytes:expr, $T:ident => $body:expr) => {
        match $bytes {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            16 => {
                type $T = [u64; 2];
                $body
            }
            bytes => unreachable!("invariant: elements are of 1, 2, 4, 8 or 16 bytes, not {bytes}"),
        }
    };
}
pub(super) use with_width;
