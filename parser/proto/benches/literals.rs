//! Large constants in and out: 256 MiB of each element type that is stored differently, and 1 GiB of f32;
//! beside them what copying such memory takes, into memory that is there and into memory that is fresh.
//! `cargo bench -p hlo-proto`; figures: docs/formats.md.
#![allow(missing_docs, reason = "a benchmark")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hlo::{
    ArrayLiteral, AttrKey, AttrValue, Buffer, ConstantValue, Dims, Literal, Module, NewInstruction, Opcode,
    Shape, Span,
};
use hlo_proto::{Contents, Encoding, Kind, ReadOptions, read, write};

const BYTES: usize = 256 << 20;

fn module(buffer: Buffer) -> Module {
    let mut module = Module::new("m");
    let entry = module.add_computation("e".into(), Span::NONE);
    let shape = Shape::array(buffer.element_type(), &[buffer.len() as i64]);
    let literal = ArrayLiteral::new(Dims::from_slice(&[buffer.len() as i64]), buffer)
        .expect("as many elements as the shape has");
    let value = AttrValue::Literal(ConstantValue::Given(Literal::Array(literal).into()));
    let root = module
        .append(entry, NewInstruction::new(Opcode::Constant, shape, &[]).attr(AttrKey::ConstantValue, value));
    module.set_root(entry, root);
    module.set_entry(entry);
    module
}

/// Numbers of all sizes, of both signs.
fn mixed(i: usize) -> i32 {
    let bits = (i as u32).wrapping_mul(0x9E37_79B9);
    (bits as i32) >> (bits & 31)
}

/// What reading and writing is bound by: memory.
fn copies(c: &mut Criterion) {
    let mut group = c.benchmark_group("copies");
    group.sample_size(10);
    for bytes in [BYTES, 4 * BYTES] {
        group.throughput(Throughput::Bytes(bytes as u64));
        let from = vec![1u8; bytes];
        let mut to = vec![2u8; bytes];
        group.bench_function(format!("there/{}MiB", bytes >> 20), |b| b.iter(|| to.copy_from_slice(&from)));
        group.bench_function(format!("fresh/{}MiB", bytes >> 20), |b| b.iter(|| from.clone()));
    }
    group.finish();
}

fn literals(c: &mut Criterion) {
    let mut group = c.benchmark_group("literals");
    group.sample_size(10);
    for (name, buffer) in [
        ("f32", Buffer::F32((0..BYTES / 4).map(|i| i as f32).collect())),
        ("f64", Buffer::F64((0..BYTES / 8).map(|i| i as f64).collect())),
        ("u8", Buffer::U8((0..BYTES).map(|i| i as u8).collect())),
        ("pred", Buffer::Pred((0..BYTES).map(|i| i % 3 == 0).collect())),
        ("bf16", Buffer::BF16((0..BYTES / 2).map(|i| hlo::half::bf16::from_bits(i as u16)).collect())),
        ("s32-small", Buffer::S32((0..BYTES / 4).map(|i| (i % 100) as i32).collect())),
        ("s32-mixed", Buffer::S32((0..BYTES / 4).map(mixed).collect())),
        ("f32-1GiB", Buffer::F32((0..BYTES).map(|i| i as f32).collect())),
        ("s4", Buffer::S4((0..BYTES).map(|i| hlo::small_int::S4::from_bits(i as u8)).collect())),
    ] {
        let size = buffer.bytes();
        let module = module(buffer);
        let mut bytes = Vec::new();
        write(&Contents::of(&module), Kind::Module, Encoding::Binary, &mut bytes)
            .expect("there are fields for all");
        group.throughput(Throughput::Bytes(size));
        let mut out = Vec::with_capacity(bytes.len());
        group.bench_function(format!("write/{name}"), |b| {
            b.iter(|| {
                out.clear();
                write(&Contents::of(&module), Kind::Module, Encoding::Binary, &mut out)
                    .expect("there are fields for all");
            });
        });
        group.bench_function(format!("read/{name}"), |b| {
            b.iter(|| {
                read(&bytes, Kind::Module, Encoding::Binary, &ReadOptions::default())
                    .document
                    .expect("it is read")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, copies, literals);
criterion_main!(benches);
