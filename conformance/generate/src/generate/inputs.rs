//! Inputs of generated and mutated programs.
//!
//! Each array has a mode of its own, mostly a gentle one: what the program asks of it (indices in range,
//! divisors that are not zero, definite matrices: [`hlo_engines::inputs::plan`]), or a [`Mode`]. Some indices
//! are slightly out of range. One case in eight has edges everywhere, and one in eight inputs of another kind
//! than gentle ([`InputKind`]).

use std::sync::atomic::{AtomicU64, Ordering};

use hlo::elided::splitmix64;
use hlo::{ArrayLiteral, Buffer, BufferOf, ElementType, Literal, Module, Opcode, Shape};
use hlo_interp::Value;
use hlo_interp::device::host::Host;

use super::values::{Mode, array};
use hlo_engines::inputs::{Fill, InputKind, LeafPlan, Plan, fill_array, key, plan};

/// For each device that the program asks for the arrays of the entry's parameters, tuples flattened; they
/// depend on program and seed alone. Of parameters that can have no values (opaque ones) there are none.
pub fn inputs(module: &Module, seed: u64) -> Vec<Vec<ArrayLiteral>> {
    let devices = (module.replica_count() * module.num_partitions()).clamp(1, 1 << 10) as u64;
    let r = splitmix64(seed ^ 0x5eed);
    let (wild, kind) = match r % 8 {
        0 => (true, InputKind::Gentle),
        1 => (false, InputKind::not_gentle(r >> 3)),
        _ => (false, InputKind::Gentle),
    };
    let planned = || plan(module, None).ok();
    let Plan { leaves } = match (asks(module), shows(module)) {
        (true, _) => planned().unwrap_or_else(|| undemanding(module)),
        (false, true) => covering(planned(), undemanding(module)),
        (false, false) => undemanding(module),
    }
    .of_kind(kind);
    let mut all: Vec<Vec<ArrayLiteral>> = (0..devices)
        .map(|device| {
            leaves
                .iter()
                .map(|leaf| one(leaf, key(seed, device, leaf.parameter as u64, leaf.leaf as u64), wild))
                .collect()
        })
        .collect();
    relate(&leaves, &mut all, seed);
    all
}

/// Makes some arrays nearly like earlier ones of their shape: what compares, selects and sorts sees equal
/// elements among others.
fn relate(leaves: &[LeafPlan], all: &mut [Vec<ArrayLiteral>], seed: u64) {
    for (i, leaf) in leaves.iter().enumerate().skip(1) {
        let r = splitmix64(seed ^ 0xc09 ^ (i as u64) << 32);
        let earlier = leaves[..i].iter().position(|l| l.shape.same_dims(&leaf.shape));
        if let (Some(j), 0) = (earlier, r % 6) {
            for arrays in all.iter_mut() {
                arrays[i] = mixed(&arrays[i], &arrays[j], r);
            }
        }
    }
}

/// About a quarter of the elements of `a`, the others of `b`.
fn mixed(a: &ArrayLiteral, b: &ArrayLiteral, key: u64) -> ArrayLiteral {
    fn take<T: BufferOf>(a: &[T], b: &[T], key: u64) -> Buffer {
        let pairs = a.iter().zip(b).zip(0..);
        T::wrap(
            pairs.map(|((&a, &b), i)| if splitmix64(key.wrapping_add(i)) & 3 == 0 { a } else { b }).collect(),
        )
    }
    let buffer = hlo::with_buffer!(&*a.buffer, x => match BufferOf::slice(&b.buffer) {
        Some(y) => take(x, y, key),
        None => hlo::Buffer::clone(&a.buffer),
    });
    ArrayLiteral { dims: a.dims.clone(), buffer: buffer.into() }
}

/// Whether any instruction's meaning depends on the range of an operand: otherwise nobody asks for anything.
fn asks(module: &Module) -> bool {
    let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
    all.any(|i| {
        use Opcode::{
            BatchNormGrad, BatchNormInference, Cholesky, Conditional, CustomCall, DynamicReshape,
            DynamicSlice, DynamicUpdateSlice, Gather, RaggedAllToAll, RaggedDot, Rng, Scatter,
            SetDimensionSize, TriangularSolve, While,
        };
        matches!(
            module.instr(i).opcode,
            BatchNormGrad
                | BatchNormInference
                | Cholesky
                | Conditional
                | CustomCall
                | DynamicReshape
                | DynamicSlice
                | DynamicUpdateSlice
                | Gather
                | RaggedAllToAll
                | RaggedDot
                | Rng
                | Scatter
                | SetDimensionSize
                | TriangularSolve
                | While
        )
    })
}

/// Whether an instruction shows what it does on certain floats alone: a conversion to integers, a comparison.
fn shows(module: &Module) -> bool {
    let mut all = module.computations().iter().flat_map(|&c| module.instructions(c));
    all.any(|i| {
        let instr = module.instr(i);
        let operand = instr.operands().first().and_then(|&o| module.instr(o).shape.element_type());
        let to_float = instr.shape.element_type().is_some_and(|ty| ty.is_float());
        operand.is_some_and(ElementType::is_float)
            && match instr.opcode {
                Opcode::Compare => true,
                Opcode::Convert => !to_float,
                _ => false,
            }
    })
}

/// The arrays, of which nothing is asked but what conversions and comparisons want to see.
fn covering(planned: Option<Plan>, mut plain: Plan) -> Plan {
    let planned = planned.map(|p| p.leaves).unwrap_or_default();
    for leaf in &mut plain.leaves {
        let same = planned.iter().find(|p| (p.parameter, p.leaf) == (leaf.parameter, leaf.leaf));
        if let Some(LeafPlan { fill: fill @ (Fill::Cover(_) | Fill::Real { .. }), .. }) = same {
            leaf.fill = fill.clone();
        }
    }
    plain
}

/// The arrays, of which nothing is asked.
fn undemanding(module: &Module) -> Plan {
    let mut leaves = Vec::new();
    let parameters = module.computation(module.entry()).parameters().iter().flatten();
    for (parameter, &p) in parameters.enumerate() {
        let mut leaf = 0;
        module.instr(p).shape.for_each_leaf(&mut |shape| {
            if let Shape::Array(shape) = shape {
                let fill = Fill::Real { low: -1.0, high: 1.0 };
                leaves.push(LeafPlan { parameter, leaf, shape: shape.clone(), fill, free: true });
            }
            leaf += 1;
        });
    }
    Plan { leaves }
}

fn one(leaf: &LeafPlan, key: u64, wild: bool) -> ArrayLiteral {
    let (shape, r) = (&leaf.shape, splitmix64(key ^ 0x0d0e));
    let (asked, out) = match &leaf.fill {
        // What the walk says of integers of which nothing is asked.
        Fill::Int { low: -8, high: 7 } | Fill::Int { low: 0, high: 15 } => (false, None),
        // A range: a few elements next to it.
        Fill::Int { low, high } => (true, Some(Fill::Int { low: low - 2, high: high + 2 })),
        Fill::Vectors { maximum, .. } => {
            let most = maximum.iter().copied().max().unwrap_or(0);
            (true, Some(Fill::Int { low: -2, high: i128::from(most) + 2 }))
        }
        Fill::Identity(_) | Fill::Dominant | Fill::Distinct => (true, None),
        Fill::Real { low, high } => (*low != -1.0 || *high != 1.0, None),
        // Other numbers show something too.
        Fill::Cover(_) => (r >> 16 & 1 == 0, None),
        Fill::Kind { .. } => return fill_array(shape, &leaf.fill, key),
        Fill::LargeReal | Fill::Bits => (false, None),
    };
    if asked && !r.is_multiple_of(8) && !(wild && r.is_multiple_of(3)) {
        return match out {
            Some(out) if (r >> 8).is_multiple_of(4) => {
                let ty = shape.element_type;
                let fits = hlo_execution::element::int_limits(ty).unwrap_or((0, 1));
                let out = match out {
                    Fill::Int { low, high } => {
                        let low = low.clamp(fits.0, fits.1);
                        Fill::Int { low, high: high.clamp(low, fits.1) }
                    }
                    other => other,
                };
                fill_array(shape, &out, key)
            }
            Some(_) | None => fill_array(shape, &leaf.fill, key),
        };
    }
    let mode =
        if wild { [Mode::Edge, Mode::Edge, Mode::Wild][(r >> 4) as usize % 3] } else { Mode::of(r >> 4) };
    array(shape, mode, key)
}

/// A host that gives any number of values, which depend on the seed, the device and how many it gave that
/// device before; what it is sent is dropped.
#[derive(Debug)]
pub struct SeededHost {
    seed: u64,
    given: Box<[AtomicU64]>,
}

impl SeededHost {
    /// For `devices` devices.
    pub fn new(seed: u64, devices: u32) -> Self {
        Self { seed, given: (0..devices.max(1)).map(|_| AtomicU64::new(0)).collect() }
    }

    fn next(&self, device: u32, shape: &Shape) -> Result<Value, String> {
        let given = self.given.get(device as usize).ok_or("there is no such device")?;
        // Each device asks from its own thread, so its values have an order.
        let n = given.fetch_add(1, Ordering::Relaxed);
        let mut leaf = 0;
        Ok(Value::from_literal(literal(shape, key(self.seed, u64::from(device), n, 0xfeed), &mut leaf)))
    }
}

fn literal(shape: &Shape, key: u64, leaf: &mut u64) -> Literal {
    match shape {
        Shape::Array(a) => {
            *leaf += 1;
            let key = splitmix64(key.wrapping_add(*leaf));
            Literal::Array(array(a, Mode::of(key), key))
        }
        Shape::Tuple(t) => Literal::Tuple(t.iter().map(|s| literal(s, key, leaf)).collect()),
        Shape::Buffer(inner) => literal(inner, key, leaf),
        Shape::Token | Shape::Opaque => Literal::Token,
    }
}

impl Host for SeededHost {
    fn infeed(&self, device: u32, shape: &Shape, _config: &str) -> Result<Value, String> {
        self.next(device, shape)
    }

    fn outfeed(&self, _device: u32, _value: &Value, _config: &str) -> Result<(), String> {
        Ok(())
    }

    fn receive(&self, device: u32, _channel: i64, shape: &Shape) -> Result<Value, String> {
        self.next(device, shape)
    }

    fn send(&self, _device: u32, _channel: i64, _value: &Value) -> Result<(), String> {
        Ok(())
    }
}
