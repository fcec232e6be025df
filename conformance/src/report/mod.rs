//! Values, counts, sizes and times as people read them; findings as text ([`mod@text`]), as JSON ([`json`]) and as a page ([`html`]).
//!
//! **Invariant:** every number of a value is printed so that it reads back to the same bits ([`Number::write`]).

pub(crate) mod graph;
pub mod html;
pub mod json;
pub mod text;

use std::time::Duration;

use hlo::ArrayLiteral;

use crate::element::Number;

/// An array of more elements than this is shortened.
pub const FULL: usize = 1000;
/// How many elements are kept at each end of a shortened dimension.
pub const EDGE: usize = 3;

/// An array as nested brackets, one innermost row a line, shortened as numpy does it.
pub fn array_text(array: &ArrayLiteral) -> String {
    array_text_limited(array, FULL)
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
        let cut = self.shorten && n > 2 * EDGE;
        // An array without elements may have a long outer dimension: show no rows of nothing.
        let shown = if stride == 0 { n.min(EDGE) } else { n };
        let mut i = 0;
        while i < shown {
            if i > 0 {
                self.out.push_str(&separator);
            }
            if cut && i == EDGE {
                self.out.push_str("...");
                i = n - EDGE;
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

/// `1,234` up to 99,999, then `16.8M`.
pub fn count(n: u64) -> String {
    match n {
        0..100_000 => grouped(n),
        100_000..1_000_000 => format!("{:.0}k", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1}M", n as f64 / 1e6),
        _ => format!("{:.1}G", n as f64 / 1e9),
    }
}

/// Thousands set apart by commas.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `64.0 MiB`.
pub fn bytes(n: u64) -> String {
    match n {
        0..1024 => format!("{n} B"),
        1024..0x10_0000 => format!("{:.1} KiB", n as f64 / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", n as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", n as f64 / 1_073_741_824.0),
    }
}

/// `2.41 ms`.
pub fn time(t: Duration) -> String {
    let s = t.as_secs_f64();
    if s < 1e-3 {
        format!("{:.0} us", s * 1e6)
    } else if s < 1.0 {
        format!("{:.2} ms", s * 1e3)
    } else if s < 120.0 {
        format!("{s:.2} s")
    } else {
        format!("{}:{:02} min", s as u64 / 60, s as u64 % 60)
    }
}

/// Reads `8GiB`, `512M`, `1e9`, `4096`: suffixes are powers of 1024, `kB`, `MB`, `GB` of 1000.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "ki" | "kib" => 1 << 10,
        "m" | "mi" | "mib" => 1 << 20,
        "g" | "gi" | "gib" => 1 << 30,
        "t" | "ti" | "tib" => 1 << 40,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(format!("`{unit}` is no unit of size: use B, KiB, MiB, GiB or TiB")),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{text}` is not a size such as 8GiB"))?;
    let bytes = number * scale as f64;
    if bytes >= 1.8e19 {
        return Err(format!("`{text}` is too large"));
    }
    Ok(bytes as u64)
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

    #[test]
    fn quantities() {
        assert_eq!(count(16_777_216), "16.8M");
        assert_eq!(count(99_999), "99,999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(bytes(67_108_864), "64.0 MiB");
        assert_eq!(time(Duration::from_micros(2410)), "2.41 ms");
        assert_eq!(parse_bytes("8GiB"), Ok(8 << 30));
        assert_eq!(parse_bytes("1.5k"), Ok(1536));
        assert_eq!(parse_bytes("2 GB"), Ok(2_000_000_000));
        assert!(parse_bytes("lots").is_err());
        assert!(parse_bytes("8Gb8").is_err());
        assert!(parse_bytes("99999999999999TiB").is_err());
    }
}
