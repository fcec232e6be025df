//! The table of an object: its arguments, results and temporaries, as data that its users read at run time.
//!
//! Its layout is the ABI of the C headers' structures (`docs/ahead-of-time.md`): 64-bit integers, pointers,
//! and NUL-terminated strings.

use hlo_codegen::CompileError;
use hlo_codegen::program::Program;
use hlo_library_base::memory::array_bytes;
use hlo_llvm::{Data, Target, Value};
use hlo_opt::buffers::{AllocationKind, Slice};
use rustc_hash::FxHashSet;

use super::{ABI_VERSION, ALIGNMENT, Aliasing, Array, Object, Options, array, bytes_of};

/// What is known of an object before it has code.
pub(super) fn object(program: &Program, options: &Options) -> Result<Object, CompileError> {
    let leaves: Vec<&hlo::ArrayShape> = program.parameter_leaves().collect();
    let results = program.result_leaves();
    if leaves.len() != options.arguments.len() || results.len() != options.results.len() {
        let (a, b) = (options.arguments.len(), options.results.len());
        let (c, d) = (leaves.len(), results.len());
        return Err(CompileError::Defect(format!("{a} and {b} names of {c} arguments and {d} results")));
    }
    let overwritten = |leaf: usize| {
        let donated =
            |kind| matches!(kind, AllocationKind::Parameter { leaf: l, donated: true } if l as usize == leaf);
        program.buffers.allocations.iter().any(|a| donated(a.kind))
    };
    let argument = |(n, (&shape, name)): (usize, (&&hlo::ArrayShape, &String))| {
        array(name, shape, if overwritten(n) { Aliasing::Overwritten } else { Aliasing::Read })
    };
    let arguments: Vec<Array> = leaves.iter().zip(&options.arguments).enumerate().map(argument).collect();
    let aliases = aliasing(program, &leaves);
    let results = results.into_iter().zip(&options.results).zip(aliases);
    let results = results.map(|((shape, name), aliasing)| array(name, shape, aliasing)).collect();
    let temporary = |kind: &AllocationKind| matches!(kind, AllocationKind::Arena | AllocationKind::Frame);
    let temporaries = program.buffers.allocations.iter().filter(|a| temporary(&a.kind));
    Ok(Object {
        bytes: Vec::new(),
        dwarf: None,
        target: String::new(),
        triple: String::new(),
        arguments,
        results,
        temporary_bytes: temporaries.map(|a| a.bytes.next_multiple_of(ALIGNMENT)).sum(),
        constant_bytes: bytes_of(program, |kind| matches!(kind, AllocationKind::Constant { .. })),
        steps: Vec::new(),
        library_calls: Vec::new(),
        needs: Vec::new(),
    })
}

/// Where each leaf of the result is at the end: as [`hlo_codegen::runtime::executable`] decides it.
fn aliasing(program: &Program, leaves: &[&hlo::ArrayShape]) -> Vec<Aliasing> {
    let mut taken = FxHashSet::default();
    let aliasing = |slice: &Slice| {
        let allocation = program.buffers.allocations.get(slice.allocation as usize)?;
        let whole = slice.offset == 0 && slice.bytes == allocation.bytes;
        match allocation.kind {
            AllocationKind::Parameter { leaf, donated: true }
                if whole
                    && array_bytes(leaves[leaf as usize]) == Some(slice.bytes)
                    && taken.insert(slice.allocation) =>
            {
                Some(Aliasing::Argument(leaf))
            }
            AllocationKind::Parameter { .. }
            | AllocationKind::Constant { .. }
            | AllocationKind::Result { .. }
            | AllocationKind::Arena
            | AllocationKind::Frame => None,
        }
    };
    program.buffers.results.iter().map(aliasing).map(|p| p.unwrap_or(Aliasing::Own)).collect()
}

/// Emits the table, `ENTRY_descriptor`.
pub(super) fn emit(data: Data<'_, '_>, options: &Options, object: &Object, target: &Target) {
    let name = |what: &str| format!("{}.{what}", options.entry);
    let rows = |arrays: &[Array], what: &str| {
        let rows: Vec<Value<'_>> = arrays.iter().map(|a| row(data, a, &name(what))).collect();
        data.table(&name(what), &rows)
    };
    let (arguments, results) = (rows(&object.arguments, "arguments"), rows(&object.results, "results"));
    let steps: Vec<Value<'_>> =
        object.steps.iter().map(|s| data.structure(&[data.string(&s.name), data.string(s.kind)])).collect();
    let n = |n: usize| data.number(n as u64);
    let fields = [
        data.number(ABI_VERSION),
        data.string(&options.entry),
        data.string(&target.describe()),
        n(object.arguments.len()),
        arguments,
        n(object.results.len()),
        results,
        data.number(object.temporary_bytes),
        data.number(object.constant_bytes),
        data.number(ALIGNMENT),
        n(steps.len()),
        data.table(&name("steps"), &steps),
        data.number(u64::from(options.profile)),
    ];
    data.public(&format!("{}_descriptor", options.entry), &fields);
}

fn row<'ctx>(data: Data<'_, 'ctx>, array: &Array, what: &str) -> Value<'ctx> {
    let dims: Vec<Value<'_>> = array.dims.iter().map(|&d| data.number(d.cast_unsigned())).collect();
    let alias = match array.aliasing {
        Aliasing::Read | Aliasing::Own => u64::MAX,
        Aliasing::Overwritten => 0,
        Aliasing::Argument(n) => u64::from(n),
    };
    data.structure(&[
        data.string(&array.name),
        data.string(array.element_type.name()),
        data.number(u64::from(array.element_type.xla_number())),
        data.number(array.dims.len() as u64),
        data.table(&format!("{what}.dims"), &dims),
        data.number(array.bytes),
        data.number(alias),
    ])
}
