//! Lists of integers and booleans.

use hlo::PropagationFlags;
use hlo::attrs::Ints;
use hlo::diag::codes::parse as codes;

use crate::cursor::{Cursor, Res};

/// `{{0,1},{1,0}}`
pub(crate) fn int_lists(c: &mut Cursor<'_>) -> Res<Box<[Ints]>> {
    let mut lists: Vec<Ints> = Vec::new();
    c.list(b'{', b'}', codes::BAD_LIST, |c| {
        lists.push(c.ints(b'{', b'}', codes::BAD_LIST)?);
        Ok(())
    })?;
    Ok(lists.into())
}

/// `{true,false}`
pub(crate) fn bools(c: &mut Cursor<'_>) -> Res<Vec<bool>> {
    let mut bools = Vec::new();
    c.list(b'{', b'}', codes::BAD_LIST, |c| {
        bools.push(c.bool()?);
        Ok(())
    })?;
    Ok(bools)
}

/// `true` or `{true,false}`
pub(crate) fn flags(c: &mut Cursor<'_>) -> Res<PropagationFlags> {
    if c.peek() == b'{' { bools(c).map(PropagationFlags::Each) } else { c.bool().map(PropagationFlags::All) }
}

/// An index into a tuple, `{0,1}`; XLA allows a comma at its end.
pub(crate) fn shape_index(c: &mut Cursor<'_>, code: hlo::diag::Code) -> Res<Ints> {
    let mut index = Ints::new();
    c.expect(b'{', code)?;
    while !c.eat(b'}') {
        index.push(c.int_or(code)?);
        if !c.eat(b',') {
            c.expect(b'}', code)?;
            break;
        }
    }
    Ok(index)
}
