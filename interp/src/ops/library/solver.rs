//! Linear algebra by cuSOLVER and hipSOLVER as JAX calls them, and by XLA's own custom calls (`Qr`, `Eigh`,
//! ...): each is a routine of LAPACK with other settings, so it stands for that custom call.

use hlo::attrs::misc::BackendConfig;
use hlo::{AttrKey, AttrValue, Attrs, ElementType, InstrId, Opcode, Shape};

use super::Refusal;
use super::body::{Body, Built};

/// `cusolver_getrf_ffi(a)`: factors, pivots from 1, info.
pub(super) fn getrf(body: &mut Body<'_>) -> Built {
    same(body, ["getrf", "getrf"], "")
}

/// `cusolver_geqrf_ffi(a)`, `Qr(a)`: packed reflectors, their factors.
pub(super) fn geqrf(body: &mut Body<'_>) -> Built {
    same(body, ["geqrf", "geqrf"], "")
}

/// `cusolver_orgqr_ffi(a, factors)`, `ProductOfElementaryHouseholderReflectors`: the orthogonal matrix.
pub(super) fn orgqr(body: &mut Body<'_>) -> Built {
    same(body, ["orgqr", "ungqr"], "")
}

/// `cusolver_ormqr_ffi(a, factors, c)`.
pub(super) fn ormqr(body: &mut Body<'_>) -> Built {
    let settings =
        format!("left = {}, transpose = {}", body.config.flag("left"), body.config.flag("transpose"));
    same(body, ["ormqr", "unmqr"], &settings)
}

/// `cusolver_potrf_ffi(a)`: factor, info.
pub(super) fn potrf(body: &mut Body<'_>) -> Built {
    let settings = format!("uplo = {} : ui8", triangle(body));
    same(body, ["potrf", "potrf"], &settings)
}

/// `cusolver_syevd_ffi(a)`: vectors, values, info.
pub(super) fn syevd(body: &mut Body<'_>) -> Built {
    let settings = format!("mode = 86 : ui8, uplo = {} : ui8", triangle(body));
    same(body, ["syevd", "heevd"], &settings)
}

/// `cusolver_sytrd_ffi(a)`.
pub(super) fn sytrd(body: &mut Body<'_>) -> Built {
    let settings = format!("uplo = {} : ui8", triangle(body));
    same(body, ["sytrd", "hetrd"], &settings)
}

/// `cusolver_gesvd_ffi(a)`: a, values, U, V', info.
pub(super) fn gesvd(body: &mut Body<'_>) -> Built {
    if body.config.flag("transposed") {
        return Err(Refusal("of a transposed matrix".into()));
    }
    let mode = match (body.config.flag("compute_uv"), body.config.flag("full_matrices")) {
        (false, _) => b'N',
        (true, false) => b'S',
        (true, true) => b'A',
    };
    if mode == b'N' {
        return Err(Refusal("without vectors".into()));
    }
    let settings = format!("mode = {mode} : ui8");
    same(body, ["gesvd", "gesvd"], &settings)
}

/// `Eigh(a)`: vectors, values; the configuration is `lower,sort,iterations,tolerance`.
pub(super) fn eigh(body: &mut Body<'_>) -> Built {
    let text = body.call.backend_config();
    let mut settings = text.split(',');
    let uplo = match (settings.next().map(str::trim), settings.next().map(str::trim)) {
        (Some("1"), Some("1")) => b'L',
        (Some("0"), Some("1")) => b'U',
        _ => return Err(Refusal(format!("with the configuration {text:?}"))),
    };
    let (vectors, values) = (body.result(0)?.clone(), body.result(1)?.clone());
    let batch = &vectors.dims[..vectors.rank().saturating_sub(2)];
    let shape = [Shape::Array(vectors.clone()), Shape::Array(values), Shape::array(ElementType::S32, batch)];
    let settings = format!("mode = 86 : ui8, uplo = {uplo} : ui8");
    let all = lapack(body, ["syevd", "heevd"], &settings, Shape::tuple(shape))?;
    let (vectors, values) = (body.get(all, 0)?, body.get(all, 1)?);
    body.results(&[vectors, values])
}

/// `LuDecomposition(a)`: factors, pivots from 0, the permutation of the rows.
pub(super) fn lu(body: &mut Body<'_>) -> Built {
    let [factors, pivots, permutation] = [0, 1, 2].map(|n| body.result(n).cloned());
    let (factors, pivots, permutation) = (factors?, pivots?, permutation?);
    let batch = &factors.dims[..factors.rank().saturating_sub(2)];
    let shape = [Shape::Array(factors.clone()), Shape::Array(pivots), Shape::array(ElementType::S32, batch)];
    let all = lapack(body, ["getrf", "getrf"], "", Shape::tuple(shape))?;
    let (factors, pivots) = (body.get(all, 0)?, body.get(all, 1)?);
    let pivots = body.with(Opcode::Subtract, pivots, 1.0)?;
    let permutation = custom_call(
        body,
        "cu_lu_pivots_to_permutation",
        "",
        Shape::Array(permutation.without_layout()),
        &[pivots],
    )?;
    body.results(&[factors, pivots, permutation])
}

/// The character of the triangle that is read.
fn triangle(body: &Body<'_>) -> u8 {
    if body.config.flag("lower") { b'L' } else { b'U' }
}

/// A routine with the operands and the result of the call.
fn same(body: &mut Body<'_>, names: [&str; 2], settings: &str) -> Built {
    let shape = body.call.instruction.shape.without_layout();
    lapack(body, names, settings, shape)
}

/// A routine, by its names for real and complex elements, on the operands of the call.
fn lapack(body: &mut Body<'_>, [real, complex]: [&str; 2], settings: &str, shape: Shape) -> Built {
    let first = body.operand(0)?;
    let (letter, name) = match body.ty(first)? {
        ElementType::F32 => ('s', real),
        ElementType::F64 => ('d', real),
        ElementType::C64 => ('c', complex),
        ElementType::C128 => ('z', complex),
        other => return Err(Refusal(format!("of {other}"))),
    };
    let operands = body.operands.clone();
    custom_call(body, &format!("lapack_{letter}{name}_ffi"), settings, shape.without_layout(), &operands)
}

fn custom_call(
    body: &mut Body<'_>,
    target: &str,
    settings: &str,
    shape: Shape,
    operands: &[InstrId],
) -> Built {
    let config = BackendConfig::Raw(format!("{{{settings}}}").into());
    let attrs = Attrs::new()
        .with(AttrKey::CustomCallTarget, AttrValue::Str(target.into()))
        .with(AttrKey::BackendConfig, AttrValue::BackendConfig(Box::new(config)));
    body.shaped(Opcode::CustomCall, shape, operands, attrs)
}
