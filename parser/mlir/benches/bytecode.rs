//! How fast bytecode is read and written: megabytes a second of large constants, of packed booleans, and of
//! many small operations.
//!
//! `cargo bench -p hlo-mlir --bench bytecode`, and only those whose name contains a text: `... -- TEXT`

use std::time::Instant;

use hlo_mlir::bytecode::{self, Version};
use hlo_mlir::ir::{
    Attribute, FloatType, LocId, Location, Module, NamedAttribute, NewOperation, Signedness, Span, Type,
    TypeId, ValueId,
};

struct Builder {
    m: Module,
    block: hlo_mlir::ir::BlockId,
}

impl Builder {
    /// A module with a function without arguments, whose body is to be filled.
    fn new() -> Self {
        let mut m = Module::new();
        let name = m.name("builtin.module");
        let top = m.add_operation(None, NewOperation::new(name, Span::NONE));
        m.set_top(top);
        let region = m.add_region(top);
        let outer = m.add_block(region, Span::NONE);
        let name = m.name("func.func");
        let mut function = NewOperation::new(name, Span::NONE);
        let main = m.attribute(Attribute::String { text: "main".into(), ty: None });
        let ty = m.ty(Type::Function { inputs: [].into(), results: [].into() });
        let ty = m.attribute(Attribute::Type(ty));
        for (name, value) in [("sym_name", main), ("function_type", ty)] {
            let name = m.name(name);
            function.properties.push(NamedAttribute { name, value });
        }
        let function = m.add_operation(Some(outer), function);
        let region = m.add_region(function);
        let block = m.add_block(region, Span::NONE);
        Self { m, block }
    }

    fn constant(&mut self, ty: TypeId, data: Vec<u8>) -> ValueId {
        let value = self.m.attribute(Attribute::Elements { ty, splat: false, data: data.into() });
        let name = self.m.name("stablehlo.constant");
        let mut op = NewOperation::new(name, Span::NONE);
        op.result_types.push(ty);
        op.properties.push(NamedAttribute { name: self.m.name("value"), value });
        let op = self.m.add_operation(Some(self.block), op);
        self.m.op(op).results[0]
    }

    fn add(&mut self, a: ValueId, b: ValueId, ty: TypeId, loc: LocId) -> ValueId {
        let name = self.m.name("stablehlo.add");
        let mut op = NewOperation::new(name, Span::NONE);
        op.operands.extend([a, b]);
        op.result_types.push(ty);
        op.loc = loc;
        let op = self.m.add_operation(Some(self.block), op);
        self.m.op(op).results[0]
    }

    fn finish(mut self) -> Module {
        let name = self.m.name("func.return");
        self.m.add_operation(Some(self.block), NewOperation::new(name, Span::NONE));
        self.m
    }
}

fn tensor(m: &mut Module, count: usize, element: Type) -> TypeId {
    let element = m.ty(element);
    m.ty(Type::Tensor { dims: [count as i64].into(), element, encoding: None })
}

/// Four constants of 25 MB.
fn constants() -> Module {
    let mut b = Builder::new();
    let count = 25_000_000 / 4;
    let ty = tensor(&mut b.m, count, Type::Float(FloatType::F32));
    for n in 0..4u8 {
        b.constant(ty, (0..4 * count).map(|i| (i as u8).wrapping_mul(n + 3)).collect());
    }
    b.finish()
}

/// 80 million booleans.
fn booleans() -> Module {
    let mut b = Builder::new();
    let count = 80_000_000;
    let ty = tensor(&mut b.m, count, Type::Integer { width: 1, sign: Signedness::Signless });
    b.constant(ty, (0..count).map(|i| (i % 3 == 0).into()).collect());
    b.finish()
}

/// A million additions, each with a location of its own if so asked.
fn operations(locations: bool) -> Module {
    let mut b = Builder::new();
    let ty = tensor(&mut b.m, 2, Type::Float(FloatType::F32));
    let (mut x, y) = (b.constant(ty, vec![0; 8]), b.constant(ty, vec![1; 8]));
    let file = b.m.name("model.py");
    for n in 0..1_000_000 {
        let loc = match locations {
            true => b.m.location(Location::File { file, start: (n / 80, n % 80), end: None }),
            false => LocId::UNKNOWN,
        };
        x = b.add(x, y, ty, loc);
    }
    b.finish()
}

#[allow(clippy::print_stdout, reason = "this is what the program is for")]
fn main() {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    type Make = fn() -> Module;
    let all: [(&str, Make); 4] = [
        ("constants", constants),
        ("booleans", booleans),
        ("operations", || operations(false)),
        ("operations with locations", || operations(true)),
    ];
    for (name, make) in all.into_iter().filter(|(name, _)| name.contains(&filter)) {
        let module = make();
        let start = Instant::now();
        let bytes = bytecode::write(&module, Version::NEWEST).expect("the module can be written");
        let written = start.elapsed();
        let mut best = std::time::Duration::MAX;
        for _ in 0..5 {
            let start = Instant::now();
            let read = bytecode::read(&bytes).expect("what was written is read");
            best = best.min(start.elapsed());
            assert_eq!(read.operation_count(), module.operation_count());
        }
        let rate = |time: std::time::Duration| bytes.len() as f64 / 1e6 / time.as_secs_f64();
        println!(
            "{name}: {:.1} MB, {} operations; read at {:.0} MB/s ({:.3} s), written at {:.0} MB/s",
            bytes.len() as f64 / 1e6,
            module.operation_count(),
            rate(best),
            best.as_secs_f64(),
            rate(written)
        );
    }
}
