//! Result accuracy, sparsity, domains.

use hlo::attrs::{Domain, ResultAccuracy, Sparsity, SparsitySide};
use hlo::diag::codes::parse as codes;

use super::sharding::sharding;
use crate::cursor::{Cursor, Res, error, quote};

/// `{mode=highest}`, `{tolerance={atol=0,rtol=1e-5,ulps=2}}`
pub(crate) fn result_accuracy(c: &mut Cursor<'_>) -> Res<ResultAccuracy> {
    const CODE: hlo::diag::Code = codes::BAD_RESULT_ACCURACY;
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
            let (mut atol, mut rtol, mut ulps) = (0.0, 0.0, 0);
            c.list(b'{', b'}', CODE, |c| {
                let (key, span) = c.key(CODE)?;
                match key {
                    "atol" => atol = c.float()?,
                    "rtol" => rtol = c.float()?,
                    "ulps" => ulps = c.int_or(CODE)?,
                    _ => {
                        let message = format!("unknown field {} of a tolerance", quote(key));
                        return Err(error(CODE, span, message, "expected atol, rtol or ulps"));
                    }
                }
                Ok(())
            })?;
            ResultAccuracy::Tolerance { atol, rtol, ulps }
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
    const CODE: hlo::diag::Code = codes::BAD_SPARSITY;
    let mut sparsity = Sparsity::default();
    c.expect(b'{', CODE)?;
    while !c.eat(b'}') {
        c.eat(b',');
        let (key, span) = c.key(CODE)?;
        match key {
            "lhs" => sparsity.lhs = Some(sparsity_side(c)?),
            "rhs" => sparsity.rhs = Some(sparsity_side(c)?),
            _ => {
                return Err(error(CODE, span, format!("unknown side {}", quote(key)), "expected lhs or rhs"));
            }
        }
    }
    Ok(sparsity)
}

fn sparsity_side(c: &mut Cursor<'_>) -> Res<SparsitySide> {
    const CODE: hlo::diag::Code = codes::BAD_SPARSITY;
    let mut side = SparsitySide::default();
    c.expect(b'{', CODE)?;
    while !c.eat(b'}') {
        c.eat(b',');
        let (key, span) = c.key(CODE)?;
        match key {
            "sparsity" => {
                side.num_non_zero = c.int_or(CODE)?;
                c.expect(b'x', CODE)?;
                side.block_size = c.int_or(CODE)?;
            }
            "dimension" => side.dimension = c.int_or(CODE)?,
            "stride" => side.stride = Some(c.int_or(CODE)?),
            "idx" => side.idx = Some(c.int_or(CODE)?),
            _ => {
                let message = format!("unknown field {} of a sparsity", quote(key));
                return Err(error(CODE, span, message, "expected sparsity, dimension, stride or idx"));
            }
        }
    }
    Ok(side)
}

/// `{kind="sharding", entry={...}, exit={...}}`
pub(crate) fn domain(c: &mut Cursor<'_>) -> Res<Domain> {
    const CODE: hlo::diag::Code = codes::BAD_DOMAIN;
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
                kind = Some(value);
            }
            "entry" => entry = Some(sharding(c)?),
            "exit" => exit = Some(sharding(c)?),
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
