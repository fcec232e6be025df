//! Values in filetests: `1.5`, `[1, nan]`, `[[1], [2]]`, `(1, -2)` for complex numbers, `fill(x)` for an array of equal elements,
//! `iota(start, step)`.

use hlo::{ArrayLiteral, ArrayShape, Buffer};

use crate::element::Number;
use crate::filetest::directive::split_values;

/// The value of a text as an array of a shape. Dynamic dimensions may be smaller than their bounds.
pub(super) fn parse(text: &str, shape: &ArrayShape) -> Result<ArrayLiteral, String> {
    hlo::with_element_type!(shape.element_type, T => parse_typed::<T>(text.trim(), shape))
}

fn parse_typed<T: Number>(text: &str, shape: &ArrayShape) -> Result<ArrayLiteral, String> {
    let elements = shape.checked_elements().and_then(|n| usize::try_from(n).ok());
    let whole = |values: Vec<T>| Ok(ArrayLiteral { dims: shape.dims.clone(), buffer: T::wrap(values) });
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
    use hlo::ElementType;

    fn f32s(text: &str, dims: &[i64]) -> Result<Buffer, String> {
        parse(text, &ArrayShape::new(ElementType::F32, dims)).map(|a| a.buffer)
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
        assert_eq!(f32s("[]", &[0]), Ok(Buffer::F32(vec![])));
        assert_eq!(f32s("[]", &[0, 3]), Ok(Buffer::F32(vec![])));
        let c = parse("[(1, -0), 2]", &ArrayShape::new(ElementType::C64, &[2])).unwrap();
        assert_eq!(crate::report::array_text(&c), "[(1, -0), (2, 0)]");
    }

    #[test]
    fn mistakes() {
        assert_eq!(f32s("[1, 2]", &[3]).unwrap_err(), "`[1, 2]` is f32[2], expected f32[3]");
        assert_eq!(f32s("[one]", &[1]).unwrap_err(), "`one` is no f32");
        assert!(f32s("[[1, 2], [3]]", &[2, 2]).unwrap_err().contains("has 1 elements where others have 2"));
        assert!(f32s("[[1], 2]", &[2, 1]).unwrap_err().contains("stands where a row should be"));
        assert!(f32s("[1, [2]]", &[2]).unwrap_err().contains("stands where an element should be"));
    }
}
