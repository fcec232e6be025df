//! Aliasing and donation of buffers.

use hlo::attrs::{AliasEntry, AliasKind, BufferDonor, OperandAlias};
use hlo::diag::codes::parse as codes;

use super::lists::shape_index;
use crate::cursor::{Cursor, Res};

const CODE: hlo::diag::Code = codes::BAD_ALIASING;

/// Entries in braces, with a comma allowed at the end.
fn entries(c: &mut Cursor<'_>, mut entry: impl FnMut(&mut Cursor<'_>) -> Res<()>) -> Res<()> {
    c.expect(b'{', CODE)?;
    while !c.eat(b'}') {
        entry(c)?;
        if !c.eat(b',') {
            return c.expect(b'}', CODE);
        }
    }
    Ok(())
}

/// `{{0}: (1, {}), {1}: (2, {0})}`
pub(crate) fn operand_aliasing(c: &mut Cursor<'_>) -> Res<Box<[OperandAlias]>> {
    let mut all = Vec::new();
    entries(c, |c| {
        let output_index = shape_index(c, CODE)?;
        c.expect(b':', CODE)?;
        c.expect(b'(', CODE)?;
        let operand = c.int_or(CODE)?;
        c.expect(b',', CODE)?;
        let operand_index = shape_index(c, CODE)?;
        c.expect(b')', CODE)?;
        all.push(OperandAlias { output_index, operand, operand_index });
        Ok(())
    })?;
    Ok(all.into())
}

/// `{ {0}: (0, {}, may-alias), {1}: (1, {}) }`
pub(crate) fn input_output_alias(c: &mut Cursor<'_>) -> Res<Vec<AliasEntry>> {
    let mut all = Vec::new();
    entries(c, |c| {
        let output_index = shape_index(c, CODE)?;
        c.expect(b':', CODE)?;
        c.expect(b'(', CODE)?;
        let parameter = c.int_or(CODE)?;
        c.expect(b',', CODE)?;
        let parameter_index = shape_index(c, CODE)?;
        let kind_written = c.eat(b',');
        let kind = if !kind_written || c.eat_str("may-alias") {
            AliasKind::May
        } else if c.eat_str("must-alias") {
            AliasKind::Must
        } else {
            return Err(c.unexpected(CODE, "`may-alias` or `must-alias`"));
        };
        c.expect(b')', CODE)?;
        all.push(AliasEntry { output_index, parameter, parameter_index, kind, kind_written });
        Ok(())
    })?;
    Ok(all)
}

/// `{ (0, {}), (1, {0}) }`
pub(crate) fn buffer_donor(c: &mut Cursor<'_>) -> Res<Vec<BufferDonor>> {
    let mut all = Vec::new();
    entries(c, |c| {
        c.expect(b'(', CODE)?;
        let parameter = c.int_or(CODE)?;
        c.expect(b',', CODE)?;
        let parameter_index = shape_index(c, CODE)?;
        c.expect(b')', CODE)?;
        all.push(BufferDonor { parameter, parameter_index });
        Ok(())
    })?;
    Ok(all)
}
