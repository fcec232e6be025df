//! What a program costs, in the terms of XLA's cost analysis: floating-point operations, transcendental
//! functions, and bytes of memory that instructions read and write.
//!
//! Counted on the program as it was given, loops once, as XLA counts what it does not know the trip count of.

use hlo::attrs::AttrKey;
use hlo::opcode::NumericRow;
use hlo::{InstrId, Module, Opcode, Shape};

/// Counts of a program: [`VerifiedModule::cost_analysis`](crate::VerifiedModule::cost_analysis).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Cost {
    /// Additions, multiplications and the like.
    pub flops: f64,
    /// Exponentials, logarithms and the like.
    pub transcendentals: f64,
    /// Bytes of operands and results.
    pub bytes_accessed: f64,
}

fn elements(shape: &Shape) -> f64 {
    let arrays = shape.leaves().into_iter().filter_map(Shape::as_array);
    arrays.map(|a| a.checked_elements().unwrap_or(0) as f64).sum()
}

fn bytes(shape: &Shape) -> f64 {
    let arrays = shape.leaves().into_iter().filter_map(Shape::as_array);
    arrays.map(|a| a.checked_elements().unwrap_or(0) as f64 * f64::from(a.element_type.bits()) / 8.0).sum()
}

/// The number of products of an element of a contraction.
fn depth(module: &Module, id: InstrId) -> f64 {
    let instr = module.instr(id);
    let operand = |n: usize| instr.operands().get(n).and_then(|&o| module.instr(o).shape.as_array());
    let Some(left) = operand(0) else { return 1.0 };
    if instr.opcode == Opcode::Dot {
        let dims = instr.attrs.ints_or_empty(AttrKey::LhsContractingDims);
        let sizes = dims.iter().filter_map(|&d| left.dims.get(usize::try_from(d).ok()?));
        return sizes.map(|&n| n as f64).product();
    }
    // Of a convolution: every element of the kernel meets every output position, but for its output features.
    let kernel = operand(1).and_then(|k| k.checked_elements()).unwrap_or(1) as f64;
    let features = instr.attrs.conv_dims().and_then(|dims| {
        let d = usize::try_from(dims.kernel_output_feature).ok()?;
        operand(1)?.dims.get(d).copied()
    });
    kernel / features.unwrap_or(1).max(1) as f64
}

impl Cost {
    /// Of a program.
    pub(crate) fn of(module: &Module) -> Self {
        let mut cost = Cost::default();
        for &computation in module.computations() {
            for id in module.instructions(computation) {
                cost.add(module, id);
            }
        }
        cost
    }

    fn add(&mut self, module: &Module, id: InstrId) {
        let instr = module.instr(id);
        let out = elements(&instr.shape);
        let operands: f64 = instr.operands().iter().map(|&o| bytes(&module.instr(o).shape)).sum();
        let moves_nothing = matches!(
            instr.opcode,
            Opcode::Parameter | Opcode::Constant | Opcode::Tuple | Opcode::GetTupleElement | Opcode::Bitcast
        );
        if !moves_nothing {
            self.bytes_accessed += operands + bytes(&instr.shape);
        }
        if matches!(instr.opcode, Opcode::Dot | Opcode::Convolution) {
            self.flops += 2.0 * out * depth(module, id);
        } else if matches!(instr.opcode, Opcode::Reduce | Opcode::ReduceWindow) {
            self.flops += instr.operands().first().map_or(0.0, |&o| elements(&module.instr(o).shape));
        } else if matches!(instr.opcode.numeric_row(), NumericRow::Elementary(_)) {
            self.transcendentals += out;
        } else if instr.opcode.is_elementwise() {
            self.flops += out;
        }
    }
}
