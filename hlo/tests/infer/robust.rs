//! No operands or attributes, however wild, make inference panic.

use hlo::{ArrayShape, AttrKey, AttrValue, Attrs, ElementType, Module, Opcode, Shape, UNBOUNDED};

use super::reader::shape;

/// Deterministic pseudo-random numbers (SplitMix64).
struct Draws(u64);

impl Draws {
    fn next(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        hlo::elided::splitmix64(self.0) % n
    }

    fn size(&mut self) -> i64 {
        const SIZES: [i64; 10] = [0, 1, 2, 3, 4, 8, i64::MAX, i64::MIN + 1, -1, UNBOUNDED];
        SIZES[self.next(SIZES.len() as u64) as usize]
    }

    fn small(&mut self) -> i64 {
        if self.next(4) == 0 { self.size() } else { self.next(4) as i64 }
    }

    fn shape(&mut self, depth: usize) -> Shape {
        match self.next(10) {
            0 => Shape::Token,
            1 if depth > 0 => {
                let n = self.next(4);
                Shape::tuple((0..n).map(|_| self.shape(depth - 1)).collect::<Vec<_>>())
            }
            2 => shape("b(f32[4])"),
            _ => {
                let ty = ElementType::ALL[self.next(ElementType::ALL.len() as u64) as usize];
                let rank = self.next(4);
                let dims: Vec<i64> = (0..rank).map(|_| self.small()).collect();
                Shape::Array(ArrayShape { dynamic: self.next(4), ..ArrayShape::new(ty, &dims) })
            }
        }
    }

    fn value(&mut self, key: AttrKey) -> Option<AttrValue> {
        use hlo::AttrKind as K;
        use hlo::attrs::{ConvDims, FftType, PaddingDim, SliceDim, Window, WindowDim};
        let n = self.next(4);
        Some(match key.kind() {
            K::Bool => AttrValue::Bool(self.next(2) == 0),
            K::Int => AttrValue::Int(self.small()),
            K::Float => AttrValue::Float(0.5),
            K::Ints => AttrValue::Ints((0..n).map(|_| self.small()).collect()),
            K::Padding => AttrValue::Padding(
                (0..n)
                    .map(|_| PaddingDim { low: self.small(), high: self.small(), interior: self.small() })
                    .collect(),
            ),
            K::Slices => AttrValue::Slices(
                (0..n)
                    .map(|_| SliceDim { start: self.small(), limit: self.small(), stride: self.small() })
                    .collect(),
            ),
            K::Window => {
                let dims = (0..n)
                    .map(|_| WindowDim {
                        size: self.small(),
                        stride: self.small(),
                        pad_low: self.small(),
                        pad_high: self.small(),
                        base_dilation: self.small(),
                        window_dilation: self.small(),
                        reversal: false,
                    })
                    .collect();
                AttrValue::Window(Box::new(Window { dims }))
            }
            K::ConvDims => AttrValue::ConvDims(Box::new(ConvDims {
                input_batch: self.small(),
                input_feature: self.small(),
                input_spatial: (0..n).map(|_| self.small()).collect(),
                kernel_input_feature: self.small(),
                kernel_output_feature: self.small(),
                kernel_spatial: (0..n).map(|_| self.small()).collect(),
                output_batch: self.small(),
                output_feature: self.small(),
                output_spatial: (0..n).map(|_| self.small()).collect(),
                unknown: Default::default(),
            })),
            K::FftType => AttrValue::FftType(FftType::ALL[n as usize]),
            K::ReplicaGroups => AttrValue::ReplicaGroups(Box::new(hlo::attrs::ReplicaGroups::Iota {
                dims: [self.small(), self.small()].into_iter().collect(),
                reshape_dims: [self.small()].into_iter().collect(),
                transpose: Default::default(),
            })),
            _ => return None,
        })
    }
}

#[test]
fn wild_instructions_are_refused_or_accepted_but_never_panic() {
    let mut module = Module::new("m");
    let regions: Vec<_> =
        ["(f32[],f32[])->f32[]", "(f32[],f32[])->pred[]", "()->token[]", "(f32[2])->(f32[],f32[2])"]
            .into_iter()
            .map(|s| super::reader::computation(&mut module, s))
            .collect();
    let mut draws = Draws(7);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..400 {
        for &opcode in Opcode::ALL {
            let n = match opcode.arity() {
                hlo::opcode::Arity::Exactly(n) => n,
                hlo::opcode::Arity::AtLeast(n) => n + draws.next(3) as usize,
            };
            let first = draws.shape(2);
            let operands: Vec<Shape> =
                (0..n).map(|_| if draws.next(2) == 0 { first.clone() } else { draws.shape(2) }).collect();
            let operands: Vec<&Shape> = operands.iter().collect();
            let mut attrs = Attrs::new();
            for slot in opcode.attrs() {
                if slot.required || draws.next(2) == 0 {
                    let computation = regions[draws.next(4) as usize];
                    match slot.key.kind() {
                        hlo::AttrKind::Computation => {
                            attrs.set(slot.key, AttrValue::Computation(computation))
                        }
                        hlo::AttrKind::Computations => {
                            attrs.set(slot.key, AttrValue::Computations([computation; 2].into()))
                        }
                        _ => {
                            if let Some(v) = draws.value(slot.key) {
                                attrs.set(slot.key, v);
                            }
                        }
                    }
                }
            }
            let inferred = hlo::infer::infer(&module, opcode, &operands, &attrs);
            let declared = if round % 2 == 0 { first } else { draws.shape(2) };
            let checked = hlo::infer::check(&module, opcode, &operands, &attrs, &declared);
            for ok in [inferred.is_ok(), checked.is_ok()] {
                if ok { accepted += 1 } else { refused += 1 }
            }
            if let Ok(shape) = inferred {
                assert!(
                    hlo::infer::check(&module, opcode, &operands, &attrs, &shape).is_ok(),
                    "{opcode}: what is inferred, {shape}, is not accepted"
                );
            }
        }
    }
    assert!(
        accepted > 5000 && refused > 20000,
        "the draws are too one-sided: {accepted} accepted, {refused} refused"
    );
}
