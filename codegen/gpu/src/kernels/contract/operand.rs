//! Operands of contractions as batches of matrices in memory.

use hlo::attrs::AttrKey;
use hlo::{ArrayShape, ElementType, InstrId, Module, Opcode};
use hlo_codegen::Unsupported;
use hlo_llvm::{Emit, Prim, Result, Value};
use hlo_opt::expr::array_leaves;
use smallvec::SmallVec;

/// Collapsed dimensions, row-major: the size and the stride of each, where dimensions that are contiguous are
/// one. **Invariant:** no dimension has size 1.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Steps(SmallVec<[(i64, i64); 3]>);

impl Steps {
    /// Of sizes and strides, in elements, the outermost first.
    pub(crate) fn new(dims: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let mut joined: SmallVec<[(i64, i64); 3]> = SmallVec::new();
        for (size, stride) in dims.into_iter().filter(|d| d.0 != 1) {
            match joined.last_mut() {
                Some((outer, far)) if *far == stride.wrapping_mul(size) => {
                    (*outer, *far) = (*outer * size, stride);
                }
                Some(_) | None => joined.push((size, stride)),
            }
        }
        Self(joined)
    }

    /// Sizes and strides, the outermost first.
    pub(crate) fn dims(&self) -> &[(i64, i64)] {
        &self.0
    }

    /// The stride, if there is one; 0 if there is but one index.
    pub(crate) fn stride(&self) -> Option<i64> {
        match self.0[..] {
            [] => Some(0),
            [(_, stride)] => Some(stride),
            [_, _, ..] => None,
        }
    }

    /// The offset, in elements, of an index of an integer type that holds both.
    pub(crate) fn offset<'ctx>(&self, e: &Emit<'_, 'ctx>, index: Value<'ctx>) -> Result<Value<'ctx>> {
        let prim = e.prim_of(index);
        let of = |x: i64| e.int(prim, x.cast_unsigned());
        let (mut rest, mut sum) = (index, None);
        for (i, &(size, stride)) in self.0.iter().enumerate().rev() {
            let component = if i == 0 { rest } else { e.urem(rest, of(size))? };
            if i > 0 {
                rest = e.udiv(rest, of(size))?;
            }
            let offset = if stride == 1 { component } else { e.mul(component, of(stride))? };
            sum = Some(sum.map_or(Ok(offset), |sum| e.add(sum, offset))?);
        }
        Ok(sum.unwrap_or(of(0)))
    }
}

/// Row-major strides of dimensions.
pub(crate) fn strides(dims: &[i64]) -> SmallVec<[i64; 4]> {
    let mut strides: SmallVec<[i64; 4]> = SmallVec::from_elem(1, dims.len());
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d].wrapping_mul(dims[d].max(1));
    }
    strides
}

/// The index of a row-major offset, of the offset's integer type.
pub(crate) fn components<'ctx>(
    e: &Emit<'_, 'ctx>,
    number: Value<'ctx>,
    sizes: &[i64],
) -> Result<Vec<Value<'ctx>>> {
    let prim = e.prim_of(number);
    let mut rest = number;
    let mut all = vec![e.int(prim, 0); sizes.len()];
    let first = sizes.iter().position(|&n| n != 1);
    for (i, &size) in sizes.iter().enumerate().rev() {
        if size == 1 {
            continue;
        }
        if Some(i) == first {
            all[i] = rest;
            break;
        }
        let size = e.int(prim, size.max(1).cast_unsigned());
        all[i] = e.urem(rest, size)?;
        rest = e.udiv(rest, size)?;
    }
    Ok(all)
}

/// Dimensions of an operand by their role in a contraction.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// Batch dimensions.
    pub(crate) batch: SmallVec<[usize; 4]>,
    /// Contracting dimensions.
    pub(crate) contracting: SmallVec<[usize; 4]>,
    /// Free dimensions.
    pub(crate) free: SmallVec<[usize; 4]>,
}

impl Parts {
    /// Those of operand 0 or 1 of an instruction.
    pub(crate) fn of(module: &Module, id: InstrId, side: usize) -> Self {
        let keys = [
            [AttrKey::LhsBatchDims, AttrKey::LhsContractingDims],
            [AttrKey::RhsBatchDims, AttrKey::RhsContractingDims],
        ][side];
        let instr = module.instr(id);
        let list = |key| -> SmallVec<[usize; 4]> {
            let ints = instr.attrs.ints_or_empty(key).iter();
            ints.map(|&d| usize::try_from(d).expect("invariant: the verifier checked dimension numbers"))
                .collect()
        };
        let [batch, contracting] = keys.map(list);
        let rank = module.instr(instr.operands()[side]).shape.expect_array().rank();
        let free = (0..rank).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect();
        Self { batch, contracting, free }
    }
}

/// An operand as a batch of matrices.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    /// The number of the kernel's argument.
    pub(crate) argument: u32,
    /// Its element type.
    pub(crate) ty: ElementType,
    /// Number of elements.
    pub(crate) elements: i64,
    /// Dimensions of the batch.
    pub(crate) batch: Steps,
    /// Free dimensions.
    pub(crate) rows: Steps,
    /// Contracting dimensions.
    pub(crate) terms: Steps,
}

/// The integer type for indices and offsets of that many elements.
pub(crate) fn index_prim(elements: i64) -> Prim {
    // Includes indices past the last block.
    if elements < i64::from(i32::MAX) - (1 << 16) { Prim::I32 } else { Prim::I64 }
}

/// The array of an operand of an instruction, and its argument number: in a kernel of the instruction itself,
/// or of a fusion that it is in.
pub(crate) fn argument_of(
    module: &Module,
    kernel: InstrId,
    id: InstrId,
    operand: usize,
) -> std::result::Result<(u32, &ArrayShape), Unsupported> {
    let of = module.instr(id).operands()[operand];
    let refuse = |reason: &str| Unsupported::new(module, id, reason);
    let shape = module.instr(of).shape.as_array().ok_or_else(|| refuse("an operand that is no array"))?;
    let leaves = |id: InstrId| array_leaves(&module.instr(id).shape).count();
    let before: usize = if kernel == id {
        module.instr(id).operands()[..operand].iter().map(|&o| leaves(o)).sum()
    } else {
        let instr = module.instr(of);
        let number = instr.parameter_number().and_then(|n| usize::try_from(n).ok());
        let number = number.filter(|_| instr.opcode == Opcode::Parameter);
        let number = number.ok_or_else(|| refuse("an operand that is computed in its fusion"))?;
        module.instr(kernel).operands()[..number].iter().map(|&o| leaves(o)).sum()
    };
    Ok((u32::try_from(before).map_err(|_| refuse("too many operands"))?, shape))
}
