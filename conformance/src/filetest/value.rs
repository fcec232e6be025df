//! Values in filetests: `1.5`, `[1, nan]`, `[[1], [2]]`, `(1, -2)` for complex numbers, `fill(x)` for an
//! array of equal elements, `iota(start, step)`; and for tables `patterns(START)`, the elements whose bits
//! are START, START + 1, ..., and `raw(HEX)`, the bits of all elements in digits. Of results also
//! `digest(HEX ...)`: see [`digests`].

use hlo::{ArrayLiteral, ArrayShape, Bits, Buffer, ElementType};

use crate::filetest::directive::split_values;
use hlo_execution::element::Number;

/// The value of a text as an array of a shape. Dynamic dimensions may be smaller than their bounds.
pub(super) fn parse(text: &str, shape: &ArrayShape) -> Result<ArrayLiteral, String> {
    hlo::with_element_type!(shape.element_type, T => parse_typed::<T>(text.trim(), shape))
}

fn parse_typed<T: Number>(text: &str, shape: &ArrayShape) -> Result<ArrayLiteral, String> {
    let elements = shape.checked_elements().and_then(|n| usize::try_from(n).ok());
    let whole =
        |values: Vec<T>| Ok(ArrayLiteral { dims: shape.dims.clone(), buffer: T::wrap(values).into() });
    let count = || elements.filter(|&n| n <= 1 << 24).ok_or_else(|| format!("{shape} is too large"));
    if let Some(inner) = text.strip_prefix("fill(").and_then(|t| t.strip_suffix(')')) {
        return whole(vec![element::<T>(inner.trim(), shape)?; count()?]);
    }
    if let Some(inner) = text.strip_prefix("iota(").and_then(|t| t.strip_suffix(')')) {
        let parts = split_values(inner);
        let [start, step] = &parts[..] else { return Err("expected iota(START, STEP)".into()) };
        let number = |t: &String| t.parse::<f64>().map_err(|_| format!("`{t}` is not a number"));
        let (start, step) = (number(start)?, number(step)?);
        return whole((0..count()?).map(|i| T::from_f64(start + step * i as f64)).collect());
    }
    if let Some(inner) = text.strip_prefix("patterns(").and_then(|t| t.strip_suffix(')')) {
        let start: u64 = inner.trim().parse().map_err(|_| format!("`{inner}` is not a number"))?;
        let end = start.saturating_add(count()? as u64);
        return whole((start..end).map(|bits| T::from_bits(u128::from(bits))).collect());
    }
    if let Some(digits) = text.strip_prefix("raw(").and_then(|t| t.strip_suffix(')')) {
        let width = raw_digits(shape.element_type);
        if digits.len() != count()?.saturating_mul(width) {
            return Err(format!("{} digits for {shape}, whose elements take {width} each", digits.len()));
        }
        let read = |d: &[u8]| std::str::from_utf8(d).ok().and_then(|d| u128::from_str_radix(d, 16).ok());
        let values = digits.as_bytes().chunks(width).map(|d| read(d).map(T::from_bits));
        return whole(values.collect::<Option<_>>().ok_or_else(|| format!("`{text}` is not hexadecimal"))?);
    }
    let mut values = Vec::new();
    let mut dims = Vec::new();
    collect::<T>(text, 0, &mut dims, &mut values, shape)?;
    let given = ArrayShape::new(shape.element_type, &dims);
    // An array without elements shows fewer dimensions than it has.
    if values.is_empty() && elements == Some(0) {
        return whole(Vec::new());
    }
    let fits = dims.len() == shape.rank()
        && dims
            .iter()
            .enumerate()
            .all(|(i, &d)| d == shape.dims[i] || shape.is_dynamic_dim(i) && d <= shape.dims[i]);
    if !fits {
        return Err(format!("`{text}` is {given}, expected {}", shape.without_layout()));
    }
    let buffer: Buffer = T::wrap(values);
    ArrayLiteral::new(dims.into_iter().collect(), buffer)
        .ok_or_else(|| format!("`{text}` has rows of different lengths"))
}

/// Hexadecimal digits that hold an element.
fn raw_digits(ty: ElementType) -> usize {
    (ty.bits() as usize).div_ceil(4)
}

/// The digests of a text `digest(HEX ...)`: each of an equal part of the elements in row-major order.
pub(super) fn digest_text(text: &str) -> Option<Vec<String>> {
    let words = text.trim().strip_prefix("digest(")?.strip_suffix(')')?;
    Some(words.split_whitespace().map(str::to_owned).collect())
}

/// FNV-1a of 64 bits over `parts` equal parts of an array: of each element its bits, little-endian, in as
/// many bytes as hold them. `None` if the elements are no multiple of the parts.
pub(super) fn digests(array: &ArrayLiteral, parts: usize) -> Option<Vec<String>> {
    fn of<T: Bits>(values: &[T], parts: usize, bytes: usize) -> Option<Vec<String>> {
        let part = values.len().checked_div(parts).filter(|&p| p > 0 && p * parts == values.len())?;
        let digest = |part: &[T]| {
            let bytes = part.iter().flat_map(|x| x.bits().to_le_bytes().into_iter().take(bytes));
            let hash =
                bytes.fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
            format!("{hash:016x}")
        };
        Some(values.chunks(part).map(digest).collect())
    }
    let bytes = array.buffer.element_type().bits().div_ceil(8) as usize;
    hlo::with_buffer!(&*array.buffer, v => of(v, parts, bytes))
}

fn element<T: Number>(text: &str, shape: &ArrayShape) -> Result<T, String> {
    T::read(text).ok_or_else(|| format!("`{text}` is no {}", shape.element_type))
}

/// Rank is at most 64, and so is the depth.
fn collect<T: Number>(
    text: &str,
    depth: usize,
    dims: &mut Vec<i64>,
    values: &mut Vec<T>,
    shape: &ArrayShape,
) -> Result<(), String> {
    let text = text.trim();
    let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) else {
        if depth != dims.len() {
            return Err(format!("`{text}` stands where a row should be"));
        }
        values.push(element(text, shape)?);
        return Ok(());
    };
    if depth >= 64 {
        return Err("nested too deeply".into());
    }
    let rows = split_values(inner);
    if dims.len() == depth {
        if !values.is_empty() {
            return Err(format!("`{text}` stands where an element should be"));
        }
        dims.push(rows.len() as i64);
    } else if dims[depth] != rows.len() as i64 {
        return Err(format!("`{text}` has {} elements where others have {}", rows.len(), dims[depth]));
    }
    rows.iter().try_for_each(|row| collect(row, depth + 1, dims, values, shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(text: &str, dims: &[i64]) -> Result<Buffer, String> {
        parse(text, &ArrayShape::new(ElementType::F32, dims)).map(|a| a.into_buffer())
    }

    #[test]
    fn forms() {
        assert_eq!(f32s("1.5", &[]), Ok(Buffer::F32(vec![1.5])));
        assert_eq!(
            f32s("[[1, 2], [-0, inf]]", &[2, 2]),
            Ok(Buffer::F32(vec![1.0, 2.0, -0.0, f32::INFINITY]))
        );
        assert_eq!(f32s("fill(2)", &[2, 2]), Ok(Buffer::F32(vec![2.0; 4])));
        assert_eq!(f32s("iota(1, 0.5)", &[3]), Ok(Buffer::F32(vec![1.0, 1.5, 2.0])));
        assert_eq!(f32s("patterns(1)", &[2]), Ok(Buffer::F32(vec![f32::from_bits(1), f32::from_bits(2)])));
        assert_eq!(f32s("raw(3f800000bf800000)", &[2]), Ok(Buffer::F32(vec![1.0, -1.0])));
        assert_eq!(f32s("[]", &[0]), Ok(Buffer::F32(vec![])));
        assert_eq!(f32s("[]", &[0, 3]), Ok(Buffer::F32(vec![])));
        let c = parse("[(1, -0), 2]", &ArrayShape::new(ElementType::C64, &[2])).unwrap();
        assert_eq!(hlo_triage::report::array_text(&c), "[(1, -0), (2, 0)]");
    }

    #[test]
    fn digests_of_parts() {
        let array = parse("[1, -1]", &ArrayShape::new(ElementType::S4, &[2])).unwrap();
        // FNV-1a of the bytes 01 and 0f, by the published algorithm.
        assert_eq!(digests(&array, 2).unwrap(), ["af63bc4c8601b62c", "af63c24c8601c05e"]);
        assert_eq!(digests(&array, 1).unwrap().len(), 1);
        assert_eq!((digests(&array, 3), digests(&array, 0)), (None, None));
        assert_eq!(digest_text("digest(12  ab)"), Some(vec!["12".into(), "ab".into()]));
        assert_eq!(digest_text("12"), None);
    }

    #[test]
    fn mistakes() {
        assert!(f32s("raw(3f80)", &[1]).unwrap_err().contains("4 digits for f32[1], whose elements take 8"));
        assert!(f32s("raw(3f80000x)", &[1]).unwrap_err().contains("not hexadecimal"));
        assert_eq!(f32s("[1, 2]", &[3]).unwrap_err(), "`[1, 2]` is f32[2], expected f32[3]");
        assert_eq!(f32s("[one]", &[1]).unwrap_err(), "`one` is no f32");
        assert!(f32s("[[1, 2], [3]]", &[2, 2]).unwrap_err().contains("has 1 elements where others have 2"));
        assert!(f32s("[[1], 2]", &[2, 1]).unwrap_err().contains("stands where a row should be"));
        assert!(f32s("[1, [2]]", &[2]).unwrap_err().contains("stands where an element should be"));
    }
}
