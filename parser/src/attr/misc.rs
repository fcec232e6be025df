//! Result accuracy, sparsity, domains.

use hlo::Span;
use hlo::attrs::{Domain, ResultAccuracy, Sparsity, SparsitySide};
use hlo::diag::Code;
use hlo::diag::codes::parse as codes;

use super::sharding::sharding;
use crate::cursor::{Cursor, Res, error, quote};

/// The value of a key, which may be given once.
fn once<T>(field: &mut Option<T>, value: T, key: &str, span: Span, code: Code) -> Res<()> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(error(code, span, format!("`{key}` is given twice"), "again")),
    }
}

/// `{mode=highest}`, `{tolerance={atol=0,rtol=1e-5,ulps=2}}`
pub(crate) fn result_accuracy(c: &mut Cursor<'_>) -> Res<ResultAccuracy> {
    const CODE: Code = codes::BAD_RESULT_ACCURACY;
    c.expect(b'{', CODE)?;
    let (key, span) = c.key(CODE)?;
    let accuracy = match key {
        "mode" => {
            c.skip();
            let start = c.pos();
            let word = c.word();
            match word.to_ascii_lowercase().as_str() {
                "default" => ResultAccuracy::Default,
                "highest" => ResultAccuracy::Highest,
                _ => {
                    let message = format!("unknown accuracy {}", quote(word));
                    return Err(error(CODE, c.span_from(start), message, "expected `default` or `highest`"));
                }
            }
        }
        "tolerance" => {
            let (mut atol, mut rtol, mut ulps) = (None, None, None);
            c.list(b'{', b'}', CODE, |c| {
                let (key, span) = c.key(CODE)?;
                match key {
                    "atol" => once(&mut atol, c.float()?, key, span, CODE)?,
                    "rtol" => once(&mut rtol, c.float()?, key, span, CODE)?,
                    "ulps" => once(&mut ulps, c.int_or(CODE)?, key, span, CODE)?,
                    _ => {
                        let message = format!("unknown field {} of a tolerance", quote(key));
                        return Err(error(CODE, span, message, "expected atol, rtol or ulps"));
                    }
                }
                Ok(())
            })?;
            ResultAccuracy::Tolerance {
                atol: atol.unwrap_or(0.0),
                rtol: rtol.unwrap_or(0.0),
                ulps: ulps.unwrap_or(0),
            }
        }
        _ => {
            let message = format!("unknown field {} of an accuracy", quote(key));
            return Err(error(CODE, span, message, "expected mode or tolerance"));
        }
    };
    c.expect(b'}', CODE)?;
    Ok(accuracy)
}

/// `{lhs={sparsity=2x4 dimension=1 stride=1 idx=2} rhs={...}}`
pub(crate) fn sparsity(c: &mut Cursor<'_>) -> Res<Sparsity> {
    const CODE: Code = codes::BAD_SPARSITY;
    let mut sparsity = Sparsity::default();
    c.expect(b'{', CODE)?;
    while !c.eat(b'}') {
        c.eat(b',');
        let (key, span) = c.key(CODE)?;
        match key {
            "lhs" => once(&mut sparsity.lhs, sparsity_side(c)?, key, span, CODE)?,
            "rhs" => once(&mut sparsity.rhs, sparsity_side(c)?, key, span, CODE)?,
            _ => {
                return Err(error(CODE, span, format!("unknown side {}", quote(key)), "expected lhs or rhs"));
            }
        }
    }
    Ok(sparsity)
}

fn sparsity_side(c: &mut Cursor<'_>) -> Res<SparsitySide> {
    const CODE: Code = codes::BAD_SPARSITY;
    let mut side = SparsitySide::default();
    let (mut sparsity, mut dimension) = (None, None);
    c.expect(b'{', CODE)?;
    while !c.eat(b'}') {
        c.eat(b',');
        let (key, span) = c.key(CODE)?;
        match key {
            "sparsity" => {
                let num_non_zero = c.int_or(CODE)?;
                c.expect(b'x', CODE)?;
                once(&mut sparsity, (num_non_zero, c.int_or(CODE)?), key, span, CODE)?;
            }
            "dimension" => once(&mut dimension, c.int_or(CODE)?, key, span, CODE)?,
            "stride" => once(&mut side.stride, c.int_or(CODE)?, key, span, CODE)?,
            "idx" => once(&mut side.idx, c.int_or(CODE)?, key, span, CODE)?,
            _ => {
                let message = format!("unknown field {} of a sparsity", quote(key));
                return Err(error(CODE, span, message, "expected sparsity, dimension, stride or idx"));
            }
        }
    }
    (side.num_non_zero, side.block_size) = sparsity.unwrap_or((side.num_non_zero, side.block_size));
    side.dimension = dimension.unwrap_or(side.dimension);
    Ok(side)
}

/// `{kind="sharding", entry={...}, exit={...}}`
pub(crate) fn domain(c: &mut Cursor<'_>) -> Res<Domain> {
    const CODE: Code = codes::BAD_DOMAIN;
    c.skip();
    let start = c.pos();
    let (mut kind, mut entry, mut exit) = (None, None, None);
    c.expect(b'{', CODE)?;
    while !c.eat(b'}') {
        c.eat(b',');
        let (key, span) = c.key(CODE)?;
        match key {
            "kind" => {
                c.skip();
                let at = c.pos();
                let value = c.string(CODE)?;
                if value != "sharding" {
                    let message = format!("unknown kind {} of a domain", quote(&value));
                    return Err(error(CODE, c.span_from(at), message, "expected \"sharding\""));
                }
                once(&mut kind, value, key, span, CODE)?;
            }
            "entry" => once(&mut entry, sharding(c)?, key, span, CODE)?,
            "exit" => once(&mut exit, sharding(c)?, key, span, CODE)?,
            _ => {
                let message = format!("unknown field {} of a domain", quote(key));
                return Err(error(CODE, span, message, "expected kind, entry or exit"));
            }
        }
    }
    match (kind, entry, exit) {
        (Some(kind), Some(entry), Some(exit)) => Ok(Domain { kind: kind.into(), entry, exit }),
        _ => Err(error(CODE, c.span_from(start), "domain without kind, entry or exit", "expected all three")),
    }
}
