//! Shapes and layouts.

use std::sync::Arc;

use hlo::diag::codes::parse as codes;
use hlo::diag::suggest::did_you_mean;
use hlo::layout::{DimLevel, DimLevelType, Layout, SplitConfig, TileDim};
use hlo::shape::MAX_RANK;
use hlo::{ArrayShape, Dims, ElementType, Shape, Span, UNBOUNDED};

use crate::cursor::{Cursor, Res, error, quote};

/// `f32[2,3]{1,0}`, `(f32[], s32[])`, `token[]`, `opaque[]`, `b(f32[4])`.
pub(crate) fn shape(c: &mut Cursor<'_>) -> Res<Shape> {
    if c.peek() == b'(' {
        c.enter()?;
        let mut elements = Vec::new();
        c.list(b'(', b')', codes::BAD_SHAPE, |c| {
            elements.push(shape(c)?);
            Ok(())
        })?;
        c.depth += 1;
        return Ok(Shape::Tuple(elements.into()));
    }
    let start = c.pos();
    let word = c.word();
    if word.is_empty() {
        return Err(c.unexpected(codes::BAD_SHAPE, "a shape"));
    }
    let span = c.span_from(start);
    if word == "b" && c.peek() == b'(' {
        c.enter()?;
        c.bump(1);
        let inner = shape(c)?;
        c.expect(b')', codes::BAD_SHAPE)?;
        c.depth += 1;
        return Ok(Shape::Buffer(Arc::new(inner)));
    }
    let whole = match word {
        "token" => Some(Shape::Token),
        "opaque" => Some(Shape::Opaque),
        _ => None,
    };
    if let Some(whole) = whole {
        c.expect(b'[', codes::BAD_SHAPE)?;
        c.expect(b']', codes::BAD_SHAPE)?;
        return Ok(whole);
    }
    let element_type = ElementType::from_name(word).ok_or_else(|| {
        let names = ElementType::ALL.iter().map(|t| t.name()).chain(["token", "opaque"]);
        let mut e = error(
            codes::UNKNOWN_ELEMENT_TYPE,
            span,
            format!("unknown element type {}", quote(word)),
            "no element type",
        );
        if let Some(near) = did_you_mean(word, names) {
            e.label = format!("did you mean `{near}`?");
        }
        e
    })?;
    array(c, element_type).map(Shape::Array)
}

/// The dimensions and the layout of an array.
fn array(c: &mut Cursor<'_>, element_type: ElementType) -> Res<ArrayShape> {
    let start = c.pos();
    let mut dims = Dims::new();
    let mut dynamic = 0u64;
    c.list(b'[', b']', codes::BAD_DIMENSION, |c| {
        if dims.len() == MAX_RANK {
            let message = format!("an array of more than {MAX_RANK} dimensions");
            return Err(error(codes::RANK_TOO_LARGE, c.here(), message, "one too many"));
        }
        let mark = 1u64 << dims.len();
        if c.eat(b'?') {
            dynamic |= mark;
            dims.push(UNBOUNDED);
            return Ok(());
        }
        if c.eat_str("<=") {
            dynamic |= mark;
        }
        c.skip();
        let at = c.pos();
        let n = c.int_or(codes::BAD_DIMENSION)?;
        if n < 0 {
            return Err(error(
                codes::BAD_DIMENSION,
                c.span_from(at),
                format!("dimension of size {n}"),
                "negative",
            ));
        }
        dims.push(n);
        Ok(())
    })?;
    let end = c.pos();
    let mut ahead = c.clone();
    let layout = if ahead.eat(b'{') && (ahead.peek().is_ascii_digit() || ahead.peek() == b':') {
        let layout = layout(c)?;
        if layout.minor_to_major.len() != dims.len() {
            let message =
                format!("layout of {} dimensions on an array of {}", layout.minor_to_major.len(), dims.len());
            let e = error(
                codes::LAYOUT_RANK,
                c.span_from(end),
                message,
                format!("expected {} dimensions", dims.len()),
            );
            return Err(Box::new(e.related(Span::new(start, end), "the array")));
        }
        Some(Arc::new(layout))
    } else {
        None
    };
    Ok(ArrayShape { element_type, dims, dynamic, layout })
}

/// `{1,0:T(8,128)S(1)}`
pub(crate) fn layout(c: &mut Cursor<'_>) -> Res<Layout> {
    const CODE: hlo::diag::Code = codes::BAD_LAYOUT;
    let mut layout = Layout::default();
    c.expect(b'{', CODE)?;
    if c.peek().is_ascii_digit() || c.peek() == b'-' {
        loop {
            layout.minor_to_major.push(c.int_or(CODE)?);
            if !c.eat(b',') {
                break;
            }
        }
    }
    if c.eat(b':') {
        if letter(c, "D") {
            c.list(b'(', b')', CODE, |c| {
                layout.dim_levels.push(dim_level(c)?);
                Ok(())
            })?;
        }
        if letter(c, "T") {
            loop {
                let mut tile = Vec::new();
                c.list(b'(', b')', CODE, |c| {
                    tile.push(if c.eat(b'*') { TileDim::Combine } else { TileDim::Size(c.int_or(CODE)?) });
                    Ok(())
                })?;
                layout.tiles.push(tile);
                if c.peek() != b'(' {
                    break;
                }
            }
        }
        if letter(c, "L") {
            layout.tail_padding_alignment = Some(in_parentheses(c)?);
        }
        if c.eat(b'#') {
            layout.index_type = Some(index_type(c)?);
        }
        if c.eat(b'*') {
            layout.pointer_type = Some(index_type(c)?);
        }
        if letter(c, "E") {
            layout.element_size_in_bits = Some(in_parentheses(c)?);
        }
        if letter(c, "S") {
            layout.memory_space = Some(in_parentheses(c)?);
        }
        if letter(c, "SC") {
            loop {
                c.expect(b'(', CODE)?;
                let dimension = c.int_or(CODE)?;
                let mut indices = Vec::new();
                c.list(b':', b')', CODE, |c| {
                    indices.push(c.int_or(CODE)?);
                    Ok(())
                })?;
                layout.split_configs.push(SplitConfig { dimension, indices });
                if c.peek() != b'(' {
                    break;
                }
            }
        }
        if letter(c, "P") {
            c.enter()?;
            c.expect(b'(', CODE)?;
            layout.physical_shape = Some(Box::new(shape(c)?));
            c.expect(b')', CODE)?;
            c.depth += 1;
        }
        if letter(c, "M") {
            layout.dynamic_shape_metadata_prefix_bytes = Some(in_parentheses(c)?);
        }
    }
    if c.eat(b'}') {
        return Ok(layout);
    }
    Err(c.unexpected(CODE, "`}`, or one of D T L # * E S SC P M, in this order"))
}

/// Takes a word of capital letters if it is exactly this one.
fn letter(c: &mut Cursor<'_>, name: &str) -> bool {
    c.skip();
    let word = c.rest().iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let found = &c.rest()[..word] == name.as_bytes();
    if found {
        c.bump(word);
    }
    found
}

fn in_parentheses(c: &mut Cursor<'_>) -> Res<i64> {
    c.expect(b'(', codes::BAD_LAYOUT)?;
    let n = c.int_or(codes::BAD_LAYOUT)?;
    c.expect(b')', codes::BAD_LAYOUT)?;
    Ok(n)
}

fn index_type(c: &mut Cursor<'_>) -> Res<ElementType> {
    c.expect(b'(', codes::BAD_LAYOUT)?;
    c.skip();
    let start = c.pos();
    match ElementType::from_name(c.word()) {
        Some(ty) if ty.is_unsigned_integer() => {
            c.expect(b')', codes::BAD_LAYOUT)?;
            Ok(ty)
        }
        _ => {
            let span = c.span_from(start);
            Err(error(
                codes::BAD_LAYOUT,
                span,
                "index type that is no unsigned integer",
                "expected an unsigned integer type",
            ))
        }
    }
}

fn dim_level(c: &mut Cursor<'_>) -> Res<DimLevel> {
    let kind = match c.peek() {
        b'D' => DimLevelType::Dense,
        b'C' => DimLevelType::Compressed,
        b'S' => DimLevelType::Singleton,
        b'H' => DimLevelType::LooseCompressed,
        _ => return Err(c.unexpected(codes::BAD_LAYOUT, "D, C, S or H")),
    };
    c.bump(1);
    let unique = !c.eat(b'+');
    let ordered = !c.eat(b'~');
    Ok(DimLevel { kind, unique, ordered })
}
