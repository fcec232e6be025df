//! How a text looked, as bits of a number.

use hlo::TextStyle;

/// The flags in the order of their bits.
fn flags(style: &mut TextStyle) -> [&mut bool; 10] {
    // Exhaustive, so that a new flag is not forgotten here.
    let TextStyle {
        header,
        percent,
        operand_shapes,
        operand_indices,
        program_shape,
        layouts,
        name_after_brace,
        compact_gte,
        async_sugar,
        final_blank_line,
    } = style;
    [
        header,
        percent,
        operand_shapes,
        operand_indices,
        program_shape,
        layouts,
        name_after_brace,
        compact_gte,
        async_sugar,
        final_blank_line,
    ]
}

/// The bits that differ from those of XLA's dumps, so that 0 is a dump.
pub(crate) fn bits(style: TextStyle) -> i64 {
    let (mut style, mut dump) = (style, TextStyle::DUMP);
    let pairs = flags(&mut style).into_iter().zip(flags(&mut dump));
    pairs.enumerate().map(|(i, (a, b))| i64::from(a != b) << i).sum()
}

/// The style of such bits.
pub(crate) fn of_bits(bits: i64) -> TextStyle {
    let mut style = TextStyle::DUMP;
    for (i, flag) in flags(&mut style).into_iter().enumerate() {
        *flag ^= bits >> i & 1 == 1;
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_come_back() {
        assert_eq!(bits(TextStyle::DUMP), 0);
        for style in
            [TextStyle::DUMP, TextStyle::SHORT, TextStyle { operand_shapes: true, ..TextStyle::SHORT }]
        {
            assert_eq!(of_bits(bits(style)), style);
        }
    }
}
