//! Reading instructions of linear algebra. Anything unusual is left to the interpreter, which executes or
//! refuses it.

use hlo::attrs::Transpose;
use hlo::{ArrayShape, AttrKey, AttrValue, ElementType, InstrId, Module, Opcode, Shape};
use hlo_linalg::{Side, System, Vectors};
use hlo_matrices::eigen_symmetric::Eigenvectors;
use hlo_matrices::routines::Arithmetic;

use super::{By, MAX_INTERPRETED_ORDER, Routine};
use crate::lapack::{Settings, is_library, is_rounded, routine as called};

/// Half of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Triangle {
    Lower,
    Upper,
}

fn triangle(settings: &Settings<'_>) -> Option<Triangle> {
    settings.choice("uplo", &[(b'L', Triangle::Lower), (b'U', Triangle::Upper)])
}

/// A call as it was read.
pub(super) struct Given {
    pub(super) routine: Routine,
    pub(super) by: By,
    pub(super) ty: ElementType,
    pub(super) count: usize,
    pub(super) arguments: Vec<(usize, usize)>,
}

/// Reads an instruction.
pub(super) fn read(module: &Module, id: InstrId) -> Option<Given> {
    let instr = module.instr(id);
    let shapes = arrays(module, id)?;
    let operands = instr.operands().len();
    // Not a dispatch: whatever is not here is no linear algebra.
    match instr.opcode {
        Opcode::Cholesky => {
            let a = Batch::of(shapes.first()?, 2)?;
            let [n, columns] = a.core[..] else { return None };
            (n == columns).then_some(())?;
            let routine = Routine::Cholesky { n, lower: instr.attrs.bool_or(AttrKey::Lower, false) };
            finish(routine, shapes[0].element_type, &shapes, &a, &[2, 2])
        }
        Opcode::TriangularSolve => {
            let (a, b) = (Batch::of(shapes.first()?, 2)?, Batch::of(shapes.get(1)?, 2)?);
            let transpose = instr.attrs.transpose().copied().unwrap_or(Transpose::No);
            let system = System {
                lower: instr.attrs.bool_or(AttrKey::Lower, false),
                unit: instr.attrs.bool_or(AttrKey::UnitDiagonal, false),
                transposed: transpose != Transpose::No,
                conjugated: transpose == Transpose::Adjoint,
            };
            let left = instr.attrs.bool_or(AttrKey::LeftSide, false);
            finish(solve(&a, &b, left, system)?, shapes[0].element_type, &shapes, &a, &[2, 2, 2])
        }
        Opcode::CustomCall => lapack(module, id, &shapes, operands),
        _others => None,
    }
}

fn solve(a: &Batch, b: &Batch, left: bool, system: System) -> Option<Routine> {
    let ([n, m], [rows, columns]) = (a.core[..].try_into().ok()?, b.core[..].try_into().ok()?);
    let order = if left { rows } else { columns };
    (n == m && n == order).then_some(Routine::Solve { n, rows, columns, left, system })
}

/// The arrays of the operands, then those of the result.
fn arrays(module: &Module, id: InstrId) -> Option<Vec<&ArrayShape>> {
    let instr = module.instr(id);
    let mut shapes = Vec::new();
    for &operand in instr.operands() {
        shapes.push(module.instr(operand).shape.as_array()?);
    }
    for leaf in instr.shape.leaves() {
        shapes.push(leaf.as_array()?);
    }
    shapes.iter().all(|s| !s.is_dynamic()).then_some(shapes)
}

/// An array as a batch of matrices, vectors or numbers.
#[derive(PartialEq)]
struct Batch {
    batch: Vec<i64>,
    core: Vec<usize>,
}

impl Batch {
    fn of(shape: &ArrayShape, rank: usize) -> Option<Batch> {
        let at = shape.dims.len().checked_sub(rank)?;
        let core: Option<Vec<usize>> = shape.dims[at..].iter().map(|&d| usize::try_from(d).ok()).collect();
        shape.checked_elements()?;
        Some(Batch { batch: shape.dims[..at].to_vec(), core: core? })
    }
}

/// `ranks`: those of a matrix's part of each argument. All arguments have the batch of `first`.
fn finish(
    routine: Routine,
    ty: ElementType,
    shapes: &[&ArrayShape],
    first: &Batch,
    ranks: &[usize],
) -> Option<Given> {
    (shapes.len() == ranks.len()).then_some(())?;
    let mut arguments = Vec::with_capacity(shapes.len());
    for (shape, &rank) in shapes.iter().zip(ranks) {
        let own = Batch::of(shape, rank)?;
        (own.batch == first.batch).then_some(())?;
        arguments.push((own.core.iter().product(), shape.element_type.storage_bytes()));
    }
    let count = first.batch.iter().map(|&d| usize::try_from(d).unwrap_or(0)).product();
    Some(Given { routine, by: By::Library, ty, count, arguments })
}

/// A custom call to LAPACK.
fn lapack(module: &Module, id: InstrId, shapes: &[&ArrayShape], operands: usize) -> Option<Given> {
    let instr = module.instr(id);
    let target = instr.attrs.str(AttrKey::CustomCallTarget)?;
    let (letter, name) = called(target)?;
    let (ty, real) = match letter {
        "s" => (ElementType::F32, true),
        "d" => (ElementType::F64, true),
        "c" => (ElementType::C64, false),
        "z" => (ElementType::C128, false),
        _other => return None,
    };
    // What rounding decides has no bound, so a library's results are only for calls that ask for them.
    let by = match (is_library(instr), is_rounded(instr, name)) {
        (true, _) => By::Library,
        (false, true) => match name {
            "getrf" | "geqrf" => By::Either,
            "syevd" | "heevd" | "gesdd" | "gesvd" => By::Interpreter(Arithmetic::Own),
            _others => By::Library,
        },
        (false, false) => By::Interpreter(Arithmetic::Wide),
    };
    let own = by != By::Library;
    let settings = Settings::of(instr)?;
    let constraints = match instr.attrs.get(AttrKey::OperandLayoutConstraints) {
        Some(AttrValue::Shapes(shapes)) => &shapes[..],
        _none => &[],
    };
    // All of a matrix's operands and results are matrices of this rank or vectors: by routine, below.
    let a = Batch::of(shapes.first()?, 2)?;
    let [m, n] = a.core[..] else { return None };
    let square = m == n;
    let results = &shapes[operands..];
    let types = |expected: &[ElementType]| shapes.iter().map(|s| s.element_type).eq(expected.iter().copied());
    let part = ty.real_part();
    let s32 = ElementType::S32;
    let order = m.min(n);
    let (routine, ranks): (Routine, &[usize]) = match (name, real) {
        ("potrf", _) => {
            settings.only(&["uplo"])?;
            (square && types(&[ty, ty, s32])).then_some(())?;
            (Routine::Potrf { n, lower: triangle(&settings)? == Triangle::Lower }, &[2, 2, 0])
        }
        ("getrf", _) => {
            settings.only(&[])?;
            types(&[ty, ty, s32, s32]).then_some(())?;
            (Routine::Lu { m, n }, &[2, 2, 1, 0])
        }
        ("geqrf", _) => {
            settings.only(&[])?;
            types(&[ty, ty, ty]).then_some(())?;
            (Routine::Qr { m, n }, &[2, 2, 1])
        }
        ("orgqr", true) | ("ungqr", false) => {
            settings.only(&[])?;
            types(&[ty, ty, ty]).then_some(())?;
            let taus = *Batch::of(shapes[1], 1)?.core.first()?;
            (n <= m && taus <= n).then_some(())?;
            (Routine::FormQ { m, n, taus }, &[2, 1, 2])
        }
        ("ormqr", true) | ("unmqr", false) => {
            settings.only(&["left", "transpose"])?;
            types(&[ty, ty, ty, ty]).then_some(())?;
            let side = Side { left: settings.bool("left")?, adjoint: settings.bool("transpose")? };
            let taus = *Batch::of(shapes[1], 1)?.core.first()?;
            let [rows, columns] = Batch::of(shapes[2], 2)?.core[..] else { return None };
            let order = if side.left { rows } else { columns };
            (m == order && taus <= order && taus <= n).then_some(())?;
            (Routine::MultiplyQ { n, taus, rows, columns, side }, &[2, 1, 2, 2])
        }
        ("trsm", _) => {
            settings.only(&["side", "uplo", "trans_x", "diag"])?;
            types(&[ty, ty, ty]).then_some(())?;
            let (transposed, conjugated) = settings
                .choice("trans_x", &[(b'N', (false, false)), (b'T', (true, false)), (b'C', (true, true))])?;
            let system = System {
                lower: triangle(&settings)? == Triangle::Lower,
                unit: settings.choice("diag", &[(b'U', true), (b'N', false)])?,
                transposed,
                conjugated,
            };
            let left = settings.choice("side", &[(b'L', true), (b'R', false)])?;
            (solve(&a, &Batch::of(shapes[1], 2)?, left, system)?, &[2, 2, 2])
        }
        ("syevd", true) | ("heevd", false) => {
            settings.only(&["mode", "uplo"])?;
            let vectors = settings.choice("mode", &[(b'N', false), (b'V', true)])?;
            (square && (own || n > MAX_INTERPRETED_ORDER) && types(&[ty, ty, part, s32])).then_some(())?;
            let wanted = match vectors {
                true if is_read(module, id, 0) => Eigenvectors::All,
                true => Eigenvectors::Unread,
                false => Eigenvectors::No,
            };
            (Routine::Eigen { n, wanted, lower: triangle(&settings)? == Triangle::Lower }, &[2, 2, 1, 0])
        }
        ("gesdd" | "gesvd", _) => {
            settings.only(&["mode"])?;
            let modes = [(b'A', Vectors::Full), (b'S', Vectors::Thin), (b'N', Vectors::No)];
            let vectors = settings.choice("mode", &modes)?;
            ((own || order > MAX_INTERPRETED_ORDER) && types(&[ty, ty, part, ty, ty, s32])).then_some(())?;
            let full = match vectors {
                Vectors::Full => true,
                Vectors::Thin => false,
                Vectors::No => Batch::of(results.get(2)?, 2)?.core == [m, m],
            };
            (Routine::Svd { m, n, vectors, full, iteration: name == "gesvd" }, &[2, 2, 1, 2, 2, 0])
        }
        _others => return None,
    };
    let layouts = |(i, &rank): (usize, &usize)| {
        let constraint = constraints.get(i).filter(|_| i < operands);
        constraint.is_none_or(|shape| match shape {
            Shape::Array(shape) => layout_fits(shape, rank),
            Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => false,
        })
    };
    ranks.iter().enumerate().all(layouts).then_some(())?;
    let given = finish(routine, ty, shapes, &a, ranks)?;
    (given.routine.sizes(&given.arguments) && (!own || routine.is_own())).then_some(Given { by, ..given })
}

/// Whether anything may read an element of a result.
fn is_read(module: &Module, id: InstrId, element: i64) -> bool {
    let reads = |user: InstrId| {
        let user = module.instr(user);
        user.opcode != Opcode::GetTupleElement || user.attrs.int(AttrKey::Index) == Some(element)
    };
    module.root(module.instr(id).parent()) == id || module.users(id).iter().any(|u| reads(u.user))
}

/// Whether matrices are column-major and the batch outside row-major, as LAPACK expects; dimensions of size 1
/// may be anywhere.
fn layout_fits(shape: &ArrayShape, rank: usize) -> bool {
    let Some(layout) = &shape.layout else { return true };
    let last = shape.dims.len() as i64;
    let inner: Vec<i64> =
        if rank == 2 { vec![last - 2, last - 1] } else { (last - rank as i64..last).collect() };
    let expected = inner.into_iter().chain((0..last - rank as i64).rev());
    let counts = |&d: &i64| usize::try_from(d).is_ok_and(|d| shape.dims.get(d).is_some_and(|&n| n != 1));
    shape.dims.contains(&0)
        || layout.minor_to_major.iter().copied().filter(counts).eq(expected.filter(counts))
}
