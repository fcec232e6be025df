//! An array in memory as an operand sees it: other strides, and perhaps a wider type.
//!
//! What only moves elements (transpose, reshape, broadcast, slice, reverse) or widens them exactly is not
//! executed before a contraction: packing reads through it.

use hlo::{AttrKey, ElementType, InstrId, Module, Opcode};
use hlo_library_base::Unsupported;
use smallvec::SmallVec;

use super::{sizes, strides};

/// How the elements of an operand are in an array in memory.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The number of the parameter that the array is (of the computation that the operand is in).
    pub(crate) parameter: usize,
    /// The array's element type.
    pub(crate) memory: ElementType,
    /// The operand's.
    pub(crate) ty: ElementType,
    /// Elements of the array.
    pub(crate) elements: usize,
    /// Where the operand's first element is.
    pub(crate) offset: isize,
    /// The operand's dimensions.
    pub(crate) sizes: SmallVec<[usize; 4]>,
    /// Their strides in the array, in elements.
    pub(crate) strides: SmallVec<[isize; 4]>,
}

/// The longest chain of instructions that is followed.
const MAX_DEPTH: usize = 16;

impl View {
    /// The operand as an array of its own.
    pub(crate) fn dense(module: &Module, id: InstrId, parameter: usize) -> Result<View, Unsupported> {
        let shape =
            module.instr(id).shape.as_array().ok_or_else(|| Unsupported::new(module, id, "no array"))?;
        let sizes = sizes(module, id, shape)?;
        let strides = strides(&sizes);
        let elements = sizes.iter().product();
        let ty = shape.element_type;
        Ok(View { parameter, memory: ty, ty, elements, offset: 0, sizes, strides })
    }

    /// Both operands of a contraction that is not fused.
    pub(crate) fn operands(module: &Module, id: InstrId) -> Result<[View; 2], Unsupported> {
        let operands = module.instr(id).operands();
        Ok([View::dense(module, operands[0], 0)?, View::dense(module, operands[1], 1)?])
    }

    /// An instruction of a fused computation as a view of one of its parameters.
    pub(crate) fn of(module: &Module, id: InstrId) -> Result<View, Unsupported> {
        let refuse =
            || Unsupported::new(module, id, "an operand of a contraction that is computed in its fusion");
        let mut chain: SmallVec<[InstrId; 8]> = SmallVec::from_slice(&[id]);
        let mut at = id;
        while module.instr(at).opcode != Opcode::Parameter {
            at = *module.instr(at).operands().first().ok_or_else(refuse)?;
            chain.push(at);
            if chain.len() > MAX_DEPTH {
                return Err(refuse());
            }
        }
        let number = module.instr(at).parameter_number().and_then(|n| usize::try_from(n).ok());
        let mut view = View::dense(module, at, number.ok_or_else(refuse)?)?;
        chain.pop();
        while let Some(step) = chain.pop() {
            view = view.through(module, step).ok_or_else(refuse)?;
        }
        Ok(view)
    }

    /// The view of an instruction whose operand this is.
    fn through(mut self, module: &Module, id: InstrId) -> Option<View> {
        let instr = module.instr(id);
        let shape = instr.shape.as_array().filter(|shape| !shape.is_dynamic())?;
        let dims: SmallVec<[usize; 4]> =
            shape.dims.iter().map(|&d| usize::try_from(d).ok()).collect::<Option<_>>()?;
        let list = || {
            instr
                .attrs
                .ints_or_empty(AttrKey::Dimensions)
                .iter()
                .map(|&d| usize::try_from(d).ok())
                .collect::<Option<SmallVec<[usize; 4]>>>()
        };
        let opcode = instr.opcode;
        if opcode == Opcode::Transpose {
            let order = list()?;
            self.strides = order.iter().map(|&d| self.strides.get(d).copied()).collect::<Option<_>>()?;
            self.sizes = dims;
        } else if opcode == Opcode::Broadcast {
            let dimensions = list()?;
            let mut strides: SmallVec<[isize; 4]> = SmallVec::from_elem(0, dims.len());
            for (i, &d) in dimensions.iter().enumerate() {
                *strides.get_mut(d)? = if dims[d] == *self.sizes.get(i)? { self.strides[i] } else { 0 };
            }
            (self.sizes, self.strides) = (dims, strides);
        } else if opcode == Opcode::Slice {
            for (d, slice) in instr.attrs.slices()?.iter().enumerate() {
                self.offset += isize::try_from(slice.start).ok()? * self.strides.get(d)?;
                self.strides[d] *= isize::try_from(slice.stride).ok()?;
            }
            self.sizes = dims;
        } else if opcode == Opcode::Reverse {
            for d in list()? {
                self.offset += (*self.sizes.get(d)? as isize - 1).max(0) * self.strides[d];
                self.strides[d] = -self.strides[d];
            }
        } else if opcode == Opcode::Convert {
            if shape.element_type != self.ty {
                if self.memory != self.ty || !exact(self.ty, shape.element_type) {
                    return None;
                }
                self.ty = shape.element_type;
            }
        } else if matches!(opcode, Opcode::Reshape | Opcode::Bitcast | Opcode::Copy) {
            if shape.element_type != self.ty {
                return None;
            }
            self.strides = restrided(&self.sizes, &self.strides, &dims)?;
            self.sizes = dims;
        } else {
            return None;
        }
        Some(self)
    }
}

/// Whether taking the elements of a type for those of another changes nothing, and products are computed in
/// the other.
fn exact(from: ElementType, to: ElementType) -> bool {
    let wide = to == ElementType::F32 || to == ElementType::F64 || to.is_integer();
    wide && to.holds(from)
}

/// The strides of a reshaped array, if it needs no copy: dimensions are split, and joined where they are one
/// after the other.
fn restrided(sizes: &[usize], strides: &[isize], dims: &[usize]) -> Option<SmallVec<[isize; 4]>> {
    if sizes.iter().product::<usize>() == 0 {
        return Some(super::strides(dims));
    }
    // The old dimensions, joined.
    let mut joined: SmallVec<[(usize, isize); 4]> = SmallVec::new();
    for (&n, &stride) in sizes.iter().zip(strides).filter(|&(&n, _)| n != 1) {
        match joined.last_mut() {
            Some((m, outer)) if *outer == stride.wrapping_mul(n as isize) => (*m, *outer) = (*m * n, stride),
            Some(_) | None => joined.push((n, stride)),
        }
    }
    let mut out: SmallVec<[isize; 4]> = SmallVec::from_elem(0, dims.len());
    for d in (0..dims.len()).rev() {
        if dims[d] == 1 {
            continue;
        }
        let (n, stride) = joined.last_mut()?;
        if !n.is_multiple_of(dims[d]) {
            return None;
        }
        out[d] = *stride;
        (*n, *stride) = (*n / dims[d], *stride * dims[d] as isize);
        if *n == 1 {
            joined.pop();
        }
    }
    joined.is_empty().then_some(out)
}
