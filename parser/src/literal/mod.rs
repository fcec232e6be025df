//! Literals: text straight into typed buffers.
//!
//! **Invariants:** memory is bounded by the text, not by the shape (`f32[9223372036854775807]` allocates
//! nothing); there is no allocation for an element; braces are counted, not recursed on (tuples recurse on
//! their shape, which the nesting limit bounds); each decimal is rounded once to its element type.

mod decimal;
mod element;

use std::sync::Arc;

use hlo::diag::codes::parse as codes;
use hlo::{ArrayLiteral, ArrayShape, BufferOf, ConstantValue, Literal, Shape, Span, with_element_type};

use crate::cursor::{Cursor, Res, error, show};
use element::ScanElement;

/// The literal of a shape, up to where it ends.
pub(crate) fn literal(c: &mut Cursor<'_>, shape: &Shape) -> Res<ConstantValue> {
    let mut elided = false;
    let literal = any(c, shape, &mut elided)?;
    Ok(if elided { ConstantValue::Elided } else { ConstantValue::Given(Arc::new(literal)) })
}

fn any(c: &mut Cursor<'_>, shape: &Shape, elided: &mut bool) -> Res<Literal> {
    if c.peek() == b'{' {
        let mut ahead = c.clone();
        if ahead.eat(b'{') && ahead.eat_str("...") && ahead.eat(b'}') {
            *c = ahead;
            *elided = true;
            return Ok(Literal::Tuple(Vec::new()));
        }
    }
    match shape {
        Shape::Array(a) => with_element_type!(a.element_type, T => array::<T>(c, a)),
        Shape::Tuple(shapes) => tuple(c, shapes, elided),
        Shape::Token => {
            if c.eat_str("token") {
                Ok(Literal::Token)
            } else {
                Err(c.unexpected(codes::BAD_ELEMENT, "`token`"))
            }
        }
        Shape::Opaque | Shape::Buffer(_) => Err(error(
            codes::NO_LITERAL_TYPE,
            c.here(),
            format!("literal of type {}", show(shape)),
            "has no values in text",
        )),
    }
}

fn tuple(c: &mut Cursor<'_>, shapes: &[Shape], elided: &mut bool) -> Res<Literal> {
    c.skip();
    let start = c.pos();
    c.expect(b'(', codes::BAD_TUPLE_LITERAL)?;
    let mut elements = Vec::new();
    for (i, shape) in shapes.iter().enumerate() {
        if i > 0 && !c.eat(b',') {
            let expected = format!("`,` and element {i} of {}", shapes.len());
            return Err(c.unexpected(codes::BAD_TUPLE_LITERAL, &expected));
        }
        elements.push(any(c, shape, elided)?);
    }
    if c.eat(b')') {
        return Ok(Literal::Tuple(elements));
    }
    let e = c.unexpected(codes::BAD_TUPLE_LITERAL, &format!("`)` after {} elements", shapes.len()));
    Err(Box::new(e.related(Span::new(start, start + 1), "the tuple starts here")))
}

/// A literal after its own shape, as in a custom call: `f32[2]{0} {1, 2}`; XLA's parser, not its printer,
/// also knows tuples with the shapes inside, `(f32[] 1, s32[] 2)`.
pub(crate) fn with_shape(c: &mut Cursor<'_>) -> Res<(Shape, ConstantValue)> {
    if c.peek() == b'(' {
        let mut ahead = c.clone();
        if crate::shape::shape(&mut ahead).is_err() || ahead.at_end() {
            return shapes_inside(c);
        }
    }
    let shape = crate::shape::shape(c)?;
    let value = literal(c, &shape)?;
    Ok((shape, value))
}

fn shapes_inside(c: &mut Cursor<'_>) -> Res<(Shape, ConstantValue)> {
    c.enter()?;
    let mut shapes = Vec::new();
    let mut values = Some(Vec::new());
    c.list(b'(', b')', codes::BAD_TUPLE_LITERAL, |c| {
        let (shape, value) = with_shape(c)?;
        shapes.push(shape);
        match (value, &mut values) {
            (ConstantValue::Given(v), Some(list)) => list.push(Arc::unwrap_or_clone(v)),
            (ConstantValue::Given(_) | ConstantValue::Elided, _) => values = None,
        }
        Ok(())
    })?;
    c.depth += 1;
    let value = values.map_or(ConstantValue::Elided, |v| ConstantValue::Given(Arc::new(Literal::Tuple(v))));
    Ok((Shape::tuple(shapes), value))
}

/// The maximum number of elements that values without braces may stand for in a text: memory is to be bounded
/// by the text.
pub(crate) const MAX_IMPLIED: usize = 1 << 26;

fn array<T: BufferOf + ScanElement>(c: &mut Cursor<'_>, shape: &ArrayShape) -> Res<Literal> {
    let elements = shape.checked_elements().and_then(|n| usize::try_from(n).ok());
    let Some(elements) = elements else {
        let message = format!("literal of shape {shape}, which has no countable elements");
        return Err(error(codes::LITERAL_TOO_LARGE, c.here(), message, "cannot be given"));
    };
    if shape.is_dynamic() && c.peek() == b'(' && !shape.element_type.is_complex() {
        dynamic_sizes(c, shape)?;
    }
    // An element takes at least a digit and a comma: the text bounds what a mistaken shape can make us
    // reserve.
    let least = if shape.element_type.is_complex() { "(0,0)," } else { "0," }.len();
    let counted = elements.min(c.rest().len() / least + 1);
    take_memory::<T>(c, counted, shape)?;
    let mut out: Vec<T> = Vec::with_capacity(counted);
    if shape.dims.is_empty() {
        c.skip();
        out.push(T::scan(c)?);
    } else if !matches!(c.peek(), b'{' | b')' | 0) {
        // XLA reads a value without braces as the first element; the others are zero.
        let span = c.here();
        out.push(T::scan(c)?);
        if elements != 1 {
            if elements == 0 || elements > c.implied_left {
                let message = format!("one value without braces for {elements} elements");
                return Err(error(codes::WRONG_NESTING, span, message, "expected `{`"));
            }
            take_memory::<T>(c, elements - counted, shape)?;
            out.resize(elements, T::default());
            c.implied_left -= elements;
            c.implied_zeros = Some(span);
        }
    } else {
        nested(c, &shape.dims, &mut out)?;
    }
    let literal = ArrayLiteral::new(shape.dims.clone(), T::wrap(out));
    Ok(Literal::Array(literal.expect("invariant: the elements were counted against the dimensions")))
}

/// Counts `n` elements of an array before they are allocated.
fn take_memory<T>(c: &mut Cursor<'_>, n: usize, shape: &ArrayShape) -> Res<()> {
    let wanted = (n as u64).saturating_mul(size_of::<T>() as u64);
    match c.memory_left.checked_sub(wanted) {
        Some(left) => c.memory_left = left,
        None => {
            let what = format!("the elements of {shape}");
            return Err(Box::new(crate::budget::exhausted(c.here(), &what, wanted, c.memory_left)));
        }
    }
    Ok(())
}

/// `(2,3)` before the elements of an array with dynamic dimensions: the sizes that it has.
fn dynamic_sizes(c: &mut Cursor<'_>, shape: &ArrayShape) -> Res<()> {
    c.skip();
    let start = c.pos();
    let sizes: Vec<i64> = c.ints(b'(', b')', codes::BAD_LITERAL_SIZE)?;
    let span = c.span_from(start);
    if sizes.len() != shape.rank() || sizes.iter().zip(&shape.dims).any(|(s, d)| !(0..=*d).contains(s)) {
        let message = format!("dynamic sizes that do not fit {shape}");
        return Err(error(
            codes::BAD_LITERAL_SIZE,
            span,
            message,
            "one for each dimension, at most its bound",
        ));
    }
    if sizes[..] != shape.dims[..] {
        let message = "constants of fewer elements than the bound of their shape are not supported";
        return Err(error(codes::BAD_LITERAL_SIZE, span, message, "smaller than the bound"));
    }
    Ok(())
}

/// The elements of an array of rank 1 or more.
fn nested<T: ScanElement>(c: &mut Cursor<'_>, dims: &[i64], out: &mut Vec<T>) -> Res<()> {
    let rank = dims.len();
    // Of the braces that are open: where they are, and how many elements were seen inside.
    let mut open = [(0usize, 0i64); hlo::shape::MAX_RANK];
    let mut level = 0;
    loop {
        // An opening brace is due.
        if c.peek() != b'{' {
            let expected = format!("`{{`: the shape has {rank} dimension{}", plural(rank));
            return Err(c.unexpected(codes::WRONG_NESTING, &expected));
        }
        open[level] = (c.pos(), 0);
        c.bump(1);
        level += 1;
        if level < rank {
            if c.peek() != b'}' {
                open[level - 1].1 = 1;
                continue;
            }
        } else {
            open[level - 1].1 = row(c, dims[rank - 1], out)?;
        }
        // Close as many braces as close here.
        loop {
            let (start, seen) = open[level - 1];
            if c.peek() != b'}' {
                return Err(c.unexpected(codes::WRONG_NESTING, "`,` or `}`"));
            }
            if seen != dims[level - 1] {
                return Err(wrong_count(c, start, seen, dims, level - 1));
            }
            c.bump(1);
            level -= 1;
            if level == 0 {
                return Ok(());
            }
            // XLA does not insist on commas between the parts.
            if c.eat(b',') || c.peek() == b'{' {
                let (start, seen) = open[level - 1];
                if seen == dims[level - 1] {
                    return Err(wrong_count(c, start, seen + 1, dims, level - 1));
                }
                open[level - 1].1 = seen + 1;
                break;
            }
        }
    }
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

#[cold]
fn wrong_count(
    c: &mut Cursor<'_>,
    start: usize,
    seen: i64,
    dims: &[i64],
    dim: usize,
) -> Box<hlo::Diagnostic> {
    let want = dims[dim];
    let more = seen > want;
    let message = format!(
        "dimension {dim} has {want} element{}, the literal gives {}",
        plural(usize::try_from(want).unwrap_or(0)),
        if more { "more".to_owned() } else { seen.to_string() }
    );
    let label = if more { "one too many" } else { "too few before this" };
    let e = error(codes::WRONG_ELEMENT_COUNT, c.here(), message, label);
    Box::new(e.related(Span::new(start, start + 1), "counted from here"))
}

/// The elements of the innermost dimension, up to the closing brace; how many.
fn row<T: ScanElement>(c: &mut Cursor<'_>, want: i64, out: &mut Vec<T>) -> Res<i64> {
    let start = c.pos() - 1;
    let mut seen = 0;
    if c.peek() == b'}' {
        return Ok(0);
    }
    loop {
        if seen == want {
            if c.peek() == b'{' {
                return Err(c.unexpected(
                    codes::WRONG_NESTING,
                    "an element: the literal has more braces than dimensions",
                ));
            }
            return Err(wrong_count(c, start, seen + 1, &[want], 0));
        }
        if c.peek() == b'{' {
            return Err(c.unexpected(
                codes::WRONG_NESTING,
                "an element: the literal has more braces than dimensions",
            ));
        }
        out.push(T::scan(c)?);
        seen += 1;
        match c.peek() {
            b',' => {
                c.bump(1);
                c.skip();
            }
            b'}' => return Ok(seen),
            _ => return Err(c.unexpected(codes::BAD_ELEMENT, "`,` or `}`")),
        }
    }
}
