//! Values as people read them; findings as text ([`mod@text`]), as JSON ([`json`]) and as a page ([`html`]).
//!
//! **Invariant:** every number of a value is printed so that it reads back to the same bits
//! ([`Number::write`]).

pub mod graph;
pub mod html;
pub mod json;
pub mod text;

use hlo::ArrayLiteral;

use hlo_execution::element::Number;
pub use hlo_system::quantity::{bytes, count, grouped, parse_bytes, time};

/// An array of more elements than this is shortened.
pub const MAX_WHOLE_ELEMENTS: usize = 1000;
/// How many elements are kept at each end of a shortened dimension.
pub const EDGE_ELEMENTS: usize = 3;

/// An array as nested brackets, one innermost row a line, shortened as numpy does it.
pub fn array_text(array: &ArrayLiteral) -> String {
    array_text_limited(array, MAX_WHOLE_ELEMENTS)
}

/// The same, shortened beyond `full` elements.
pub fn array_text_limited(array: &ArrayLiteral, full: usize) -> String {
    hlo::with_buffer!(&*array.buffer, v => text(v, &array.dims, full))
}

fn text<T: Number>(values: &[T], dims: &[i64], full: usize) -> String {
    let dims: Vec<usize> = dims.iter().map(|&d| usize::try_from(d).unwrap_or(0)).collect();
    let mut out = String::new();
    let mut writer = Writer { values, dims: &dims, shorten: values.len() > full, out: &mut out };
    writer.write(0, 0);
    out
}

struct Writer<'a, T> {
    values: &'a [T],
    dims: &'a [usize],
    shorten: bool,
    out: &'a mut String,
}

impl<T: Number> Writer<'_, T> {
    /// Writes the part of the array below dimension `depth` that begins at element `at`. Rank is at most 64.
    fn write(&mut self, depth: usize, at: usize) {
        let Some(&n) = self.dims.get(depth) else {
            match self.values.get(at) {
                Some(x) => x.write(self.out),
                None => self.out.push('?'),
            }
            return;
        };
        let stride: usize = self.dims[depth + 1..].iter().product();
        let innermost = depth + 1 == self.dims.len();
        let separator = if innermost { ", ".to_owned() } else { format!(",\n{}", " ".repeat(depth + 1)) };
        self.out.push('[');
        let cut = self.shorten && n > 2 * EDGE_ELEMENTS;
        // An array without elements may have a long outer dimension: show no rows of nothing.
        let shown = if stride == 0 { n.min(EDGE_ELEMENTS) } else { n };
        let mut i = 0;
        while i < shown {
            if i > 0 {
                self.out.push_str(&separator);
            }
            if cut && i == EDGE_ELEMENTS {
                self.out.push_str("...");
                i = n - EDGE_ELEMENTS;
                continue;
            }
            self.write(depth + 1, at + i * stride);
            i += 1;
        }
        if shown < n && !cut {
            self.out.push_str(&separator);
            self.out.push_str("...");
        }
        self.out.push(']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::Buffer;

    fn array(dims: &[i64], values: Vec<f32>) -> ArrayLiteral {
        ArrayLiteral::new(dims.iter().copied().collect(), Buffer::F32(values)).unwrap()
    }

    #[test]
    fn arrays_are_shortened_as_numpy_does() {
        assert_eq!(array_text(&array(&[], vec![1.5])), "1.5");
        assert_eq!(array_text(&array(&[2, 2], vec![1.0, 2.5, f32::NAN, -0.0])), "[[1, 2.5],\n [nan, -0]]");
        assert_eq!(array_text(&array(&[0], vec![])), "[]");
        assert_eq!(array_text(&array(&[2, 0], vec![])), "[[],\n []]");
        assert_eq!(array_text(&array(&[1 << 40, 0], vec![])), "[[],\n [],\n [],\n ...]");
        let long = array(&[1001], (0..1001).map(|i| i as f32).collect());
        assert_eq!(array_text(&long), "[0, 1, 2, ..., 998, 999, 1000]");
        let wide = array(&[2, 8], (0..16).map(|i| i as f32).collect());
        assert_eq!(array_text_limited(&wide, 10), "[[0, 1, 2, ..., 5, 6, 7],\n [8, 9, 10, ..., 13, 14, 15]]");
        let cube = array(&[2, 1, 2], vec![1., 2., 3., 4.]);
        assert_eq!(array_text(&cube), "[[[1, 2]],\n [[3, 4]]]");
    }
}
