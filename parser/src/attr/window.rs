//! Windows, dimension labels, padding and slices.

use hlo::attrs::{ConvDims, PaddingDim, SliceDim, Window, WindowDim};
use hlo::diag::codes::parse as codes;
use smallvec::SmallVec;

use crate::cursor::{Cursor, Res, error, quote};

/// `{size=3x3 pad=1_1x1_1}`
pub(crate) fn window(c: &mut Cursor<'_>) -> Res<Window> {
    c.expect(b'{', codes::BAD_WINDOW)?;
    let window = fields(c, Some(b'}'))?;
    c.expect(b'}', codes::BAD_WINDOW)?;
    Ok(window)
}

type Field = SmallVec<[(i64, i64); 4]>;

/// The fields of a window, up to `end` or to the end of the text.
pub(crate) fn fields(c: &mut Cursor<'_>, end: Option<u8>) -> Res<Window> {
    const CODE: hlo::diag::Code = codes::BAD_WINDOW;
    const KEYS: [&str; 6] = ["size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"];
    let mut values: [Option<Field>; 6] = [const { None }; 6];
    c.skip();
    let whole = c.pos();
    while !c.at_end() && end.is_none_or(|e| c.peek() != e) {
        let (key, span) = c.key(CODE)?;
        let Some(i) = KEYS.iter().position(|k| *k == key) else {
            let message = format!("unknown field {} of a window", quote(key));
            return Err(error(
                CODE,
                span,
                message,
                "expected size, stride, pad, lhs_dilate, rhs_dilate, rhs_reversal",
            ));
        };
        if values[i].is_some() {
            return Err(error(CODE, span, format!("`{key}` is given twice"), "again"));
        }
        let mut list = Field::new();
        loop {
            let low = c.int_or(CODE)?;
            let high = if key == "pad" {
                c.expect(b'_', CODE)?;
                c.int_or(CODE)?
            } else {
                0
            };
            list.push((low, high));
            if c.peek_raw() != b'x' {
                break;
            }
            c.bump(1);
        }
        let size = values[0].as_ref().map(SmallVec::len);
        if size.is_some_and(|n| n != list.len()) {
            let message = format!("`{key}` has {} dimensions, `size` has {}", list.len(), size.unwrap_or(0));
            return Err(error(CODE, span, message, "another number of dimensions"));
        }
        values[i] = Some(list);
    }
    let [size, stride, pad, lhs_dilate, rhs_dilate, rhs_reversal] = values;
    let rest = [&stride, &pad, &lhs_dilate, &rhs_dilate, &rhs_reversal];
    let n = size.as_ref().map_or(0, SmallVec::len);
    if rest.iter().any(|f| f.as_ref().is_some_and(|f| f.len() != n)) {
        return Err(error(
            CODE,
            c.span_from(whole),
            "window whose fields differ in number of dimensions",
            "here",
        ));
    }
    let at = |f: &Option<Field>, i: usize, default: (i64, i64)| f.as_ref().map_or(default, |f| f[i]);
    let dims = (0..n).map(|i| {
        let (pad_low, pad_high) = at(&pad, i, (0, 0));
        WindowDim {
            size: at(&size, i, (1, 0)).0,
            stride: at(&stride, i, (1, 0)).0,
            pad_low,
            pad_high,
            base_dilation: at(&lhs_dilate, i, (1, 0)).0,
            window_dilation: at(&rhs_dilate, i, (1, 0)).0,
            reversal: at(&rhs_reversal, i, (0, 0)).0 == 1,
        }
    });
    Ok(Window { dims: dims.collect() })
}

/// `b01f_01io->b01f`
pub(crate) fn conv_dims(c: &mut Cursor<'_>) -> Res<ConvDims> {
    const CODE: hlo::diag::Code = codes::BAD_DIM_LABELS;
    c.skip();
    let start = c.pos();
    let part = |c: &mut Cursor<'_>, letters: [u8; 2], what: &str| -> Res<Labels> {
        let from = c.pos();
        let n = c.rest().iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'?').count();
        let text = &c.rest()[..n];
        c.bump(n);
        let span = c.span_from(from);
        Labels::new(text, letters)
            .map_err(|problem| error(CODE, span, format!("{problem} in the labels of {what}"), "here"))
    };
    let lhs = part(c, [b'b', b'f'], "the left operand")?;
    c.expect(b'_', CODE)?;
    let rhs = part(c, [b'i', b'o'], "the right operand")?;
    if !c.eat_str("->") {
        return Err(c.unexpected(CODE, "`->`"));
    }
    let out = part(c, [b'b', b'f'], "the result")?;
    if lhs.spatial.len() != rhs.spatial.len() || lhs.spatial.len() != out.spatial.len() {
        let message = format!(
            "{}, {} and {} spatial dimensions in the three parts",
            lhs.spatial.len(),
            rhs.spatial.len(),
            out.spatial.len()
        );
        return Err(error(CODE, c.span_from(start), message, "must be equal"));
    }
    Ok(ConvDims {
        input_batch: lhs.named[0],
        input_feature: lhs.named[1],
        input_spatial: lhs.spatial,
        kernel_input_feature: rhs.named[0],
        kernel_output_feature: rhs.named[1],
        kernel_spatial: rhs.spatial,
        output_batch: out.named[0],
        output_feature: out.named[1],
        output_spatial: out.spatial,
        unknown: [lhs.unknown, rhs.unknown, out.unknown],
    })
}

/// One of the three parts.
struct Labels {
    /// Positions of the two letters.
    named: [i64; 2],
    spatial: SmallVec<[i64; 2]>,
    unknown: SmallVec<[i64; 1]>,
}

impl Labels {
    fn new(text: &[u8], letters: [u8; 2]) -> Result<Labels, String> {
        if text.len() < 2 {
            return Err("fewer than two dimensions".into());
        }
        let spatial = text.iter().filter(|b| **b != b'?' && !letters.contains(b)).count();
        let mut labels =
            Labels { named: [0; 2], spatial: SmallVec::from_elem(-1, spatial), unknown: SmallVec::new() };
        let mut seen = [false; 2];
        for (position, &b) in text.iter().enumerate() {
            let position_number = position as i64;
            if let Some(i) = letters.iter().position(|&l| l == b) {
                if std::mem::replace(&mut seen[i], true) {
                    return Err(format!("`{}` stands twice", char::from(b)));
                }
                labels.named[i] = position_number;
            } else if b == b'?' {
                labels.unknown.push(position_number);
            } else {
                let slot = usize::from(b.wrapping_sub(b'0'));
                match labels.spatial.get_mut(slot) {
                    Some(s) if *s < 0 => *s = position_number,
                    Some(_) => return Err(format!("`{}` stands twice", char::from(b))),
                    None => {
                        return Err(format!(
                            "`{}` is neither `{}`, `{}`, `?` nor a spatial dimension below {spatial}",
                            char::from(b),
                            char::from(letters[0]),
                            char::from(letters[1])
                        ));
                    }
                }
            }
        }
        match seen.iter().position(|s| !s) {
            Some(i) => Err(format!("`{}` is missing", char::from(letters[i]))),
            None => Ok(labels),
        }
    }
}

/// `0_1_2x0_0`; nothing for an array without dimensions.
pub(crate) fn padding(c: &mut Cursor<'_>) -> Res<Box<[PaddingDim]>> {
    const CODE: hlo::diag::Code = codes::BAD_PADDING;
    let mut dims = Vec::new();
    if c.at_end() {
        return Ok(dims.into());
    }
    loop {
        let low = c.int_or(CODE)?;
        c.expect(b'_', CODE)?;
        let high = c.int_or(CODE)?;
        let interior = if c.peek_raw() == b'_' {
            c.bump(1);
            c.int_or(CODE)?
        } else {
            0
        };
        dims.push(PaddingDim { low, high, interior });
        if c.peek_raw() != b'x' {
            return Ok(dims.into());
        }
        c.bump(1);
    }
}

/// `{[0:4], [1:9:2]}`
pub(crate) fn slices(c: &mut Cursor<'_>) -> Res<Box<[SliceDim]>> {
    const CODE: hlo::diag::Code = codes::BAD_SLICE;
    let mut dims = Vec::new();
    c.list(b'{', b'}', CODE, |c| {
        c.expect(b'[', CODE)?;
        let start = c.int_or(CODE)?;
        c.expect(b':', CODE)?;
        let limit = c.int_or(CODE)?;
        let stride = if c.eat(b':') { c.int_or(CODE)? } else { 1 };
        c.expect(b']', CODE)?;
        dims.push(SliceDim { start, limit, stride });
        Ok(())
    })?;
    Ok(dims.into())
}
