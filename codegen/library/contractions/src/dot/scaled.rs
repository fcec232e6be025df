//! `scaled-dot`: a dot of operands that are multiplied by scales first, one for each block of elements;
//! products are taken in `f64`, where those of narrower floats are exact, and so is the dot.

use hlo::{ElementType, InstrId, Module};
use hlo_library_base::{Call, Operation, Unsupported};
use smallvec::SmallVec;

use super::convert::Conversion;
use super::view::View;
use super::{Dot, sizes};

/// A `scaled-dot`.
#[derive(Clone, Debug)]
pub(crate) struct ScaledDot {
    operands: [Scaled; 2],
    dot: Dot,
}

/// An operand with its scale.
#[derive(Clone, Debug)]
struct Scaled {
    ty: ElementType,
    scale_ty: ElementType,
    sizes: SmallVec<[usize; 4]>,
    /// Of the scale; `None`: it has no dimensions and counts as 1.
    scale: Option<SmallVec<[usize; 4]>>,
}

impl Scaled {
    fn elements(&self) -> usize {
        self.sizes.iter().product()
    }

    fn scales(&self) -> usize {
        self.scale.as_ref().map_or(0, |sizes| sizes.iter().product())
    }

    fn scratch(&self) -> usize {
        ((self.elements() + self.scales()) * size_of::<f64>()).next_multiple_of(64)
    }

    /// Writes the scaled operand.
    ///
    /// # Safety
    /// The arrays are valid, and `to` has space for [`Scaled::scratch`] bytes.
    unsafe fn write(&self, x: *const u8, scale: *const u8, to: *mut f64, call: Call<'_>) {
        let wide = |from| Conversion { from, through: from, to: ElementType::F64 };
        // SAFETY: the caller's.
        unsafe {
            wide(self.ty).run(x, self.elements(), to.cast(), call.pool);
            let Some(scale_sizes) = &self.scale else { return };
            let scales = to.add(self.elements());
            wide(self.scale_ty).run(scale, self.scales(), scales.cast(), call.pool);
            let (scale_strides, rank) = (super::strides(scale_sizes), self.sizes.len());
            let blocks: SmallVec<[usize; 4]> =
                (0..rank).map(|d| self.sizes[d].checked_div(scale_sizes[d]).unwrap_or(1).max(1)).collect();
            for i in 0..self.elements() {
                let (mut rest, mut at) = (i, 0);
                for d in (0..rank).rev() {
                    at += (rest % self.sizes[d] / blocks[d]) as isize * scale_strides[d];
                    rest /= self.sizes[d];
                }
                *to.add(i) *= *scales.offset(at);
            }
        }
    }
}

impl ScaledDot {
    /// Of a `scaled-dot`.
    pub(crate) fn of(module: &Module, id: InstrId) -> Result<ScaledDot, Unsupported> {
        let operands = module.instr(id).operands();
        let result = module.instr(id).shape.expect_array().element_type;
        let shape = |n: usize| module.instr(operands[n]).shape.expect_array();
        let floats = (0..2).all(|n| shape(n).element_type.is_float());
        if !(result.is_float() || floats && result.is_integer()) {
            return Err(Unsupported::new(module, id, format!("a result of type {result}")));
        }
        let scaled = |n: usize| -> Result<Scaled, Unsupported> {
            let (x, scale) = (shape(n), shape(n + 2));
            let (own, blocks) = (sizes(module, id, x)?, sizes(module, id, scale)?);
            let fits = blocks.is_empty()
                || own.len() == blocks.len()
                    && own.iter().zip(&blocks).all(|(&n, &s)| n == 0 || s != 0 && n.is_multiple_of(s));
            if !fits {
                return Err(Unsupported::new(module, id, "a scale of other dimensions than its operand"));
            }
            let scale_ty = scale.element_type;
            Ok(Scaled {
                ty: x.element_type,
                scale_ty,
                sizes: own,
                scale: (!blocks.is_empty()).then_some(blocks),
            })
        };
        let view = |n: usize| -> Result<View, Unsupported> {
            let view = View::dense(module, operands[n], n)?;
            Ok(View { memory: ElementType::F64, ty: ElementType::F64, ..view })
        };
        Ok(ScaledDot {
            operands: [scaled(0)?, scaled(1)?],
            dot: Dot::of_views(module, id, [view(0)?, view(1)?])?,
        })
    }
}

impl Operation for ScaledDot {
    fn strategy(&self) -> &'static str {
        "packed GEMM on scaled blocks"
    }

    fn scratch_bytes(&self) -> u64 {
        self.operands.iter().map(|x| x.scratch() as u64).sum::<u64>() + self.dot.scratch_bytes()
    }

    fn cost(&self) -> (u64, u64) {
        self.dot.cost()
    }

    unsafe fn run(&self, call: Call<'_>) {
        let [lhs, rhs] = &self.operands;
        // SAFETY: the caller's; the scratch memory is cut as `scratch_bytes` added it up.
        unsafe {
            let left = call.scratch;
            let right = left.add(lhs.scratch());
            lhs.write(call.arguments[0], call.arguments[2], left.cast(), call);
            rhs.write(call.arguments[1], call.arguments[3], right.cast(), call);
            let arguments = [left, right, call.arguments[4]];
            self.dot.run(Call { arguments: &arguments, scratch: right.add(rhs.scratch()), ..call });
        }
    }
}
