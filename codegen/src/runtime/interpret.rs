//! Instructions that the interpreter executes inside of a compiled program: communication, random numbers,
//! and what is not compiled.

use hlo::{ArrayLiteral, ArrayShape, InstrId, Literal, Module, Shape};
use hlo_interp::Value;
use hlo_interp::device::fleet::Member;
use hlo_library_base::memory::array_bytes;
use hlo_opt::buffers::Slice;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::executable::RunError;
use super::raw::{buffer_of, bytes_of};
use crate::program::arrays;

/// An instruction and the shapes of its arrays.
#[derive(Debug)]
pub(super) struct Interpreted {
    instr: InstrId,
    operands: Vec<(InstrId, Shape)>,
    results: Vec<ArrayShape>,
}

impl Interpreted {
    /// An instruction whose operands' and result's leaves are these slices. Errors: they are not.
    pub(super) fn new(module: &Module, id: InstrId, arguments: &[Slice]) -> Result<Self, String> {
        let instr = module.instr(id);
        let operands: Vec<(InstrId, Shape)> =
            instr.operands().iter().map(|&o| (o, module.instr(o).shape.without_layout())).collect();
        let results: Vec<ArrayShape> = arrays(&instr.shape).map(ArrayShape::without_layout).collect();
        let fits = {
            let leaves = operands.iter().flat_map(|(_, shape)| arrays(shape)).chain(&results);
            leaves.clone().count() == arguments.len()
                && leaves.zip(arguments).all(|(leaf, slice)| array_bytes(leaf) == Some(slice.bytes))
        };
        if !fits {
            return Err(format!("`{}` for the interpreter on other arrays", instr.name));
        }
        Ok(Self { instr: id, operands, results })
    }

    /// Executes it. `kept` are the instructions whose results are promised.
    ///
    /// # Safety
    /// `arguments` points to valid pointers to the slices that it was made for.
    pub(super) unsafe fn run(
        &self,
        member: &Member<'_>,
        kept: &mut FxHashSet<InstrId>,
        arguments: *const *mut u8,
    ) -> Result<(), RunError> {
        let mut next = arguments;
        // SAFETY: called once for each slice, in order, with its length.
        let mut take = |shape: &ArrayShape| unsafe {
            let pointer = *next;
            next = next.add(1);
            (pointer, array_bytes(shape).unwrap_or(0) as usize)
        };
        let mut values = Vec::with_capacity(self.operands.len());
        for (operand, shape) in &self.operands {
            if kept.contains(operand) {
                for leaf in arrays(shape) {
                    let _ = take(leaf);
                }
                values.push(None);
                continue;
            }
            let mut read = |shape: &ArrayShape| {
                let (pointer, length) = take(shape);
                // SAFETY: valid for that many bytes by the caller's word; nobody writes to it now.
                let bytes = unsafe { std::slice::from_raw_parts(pointer.cast_const(), length) };
                let buffer = buffer_of(shape.element_type, bytes);
                Literal::Array(ArrayLiteral { dims: shape.dims.clone(), buffer: buffer.into() })
            };
            values.push(Some(Value::from_literal(literal(shape, &mut read))));
        }
        let result = member.evaluate(self.instr, values).map_err(|e| RunError::Interpreter(Box::new(e)))?;
        let Some(result) = result else {
            kept.insert(self.instr);
            return Ok(());
        };
        kept.remove(&self.instr);
        let result = result.into_literal();
        let targets: SmallVec<[(*mut u8, usize); 4]> = self.results.iter().map(take).collect();
        for ((pointer, length), array) in targets.into_iter().zip(result.arrays()) {
            let bytes = bytes_of(&array.buffer);
            if bytes.len() != length {
                return Err(RunError::Load("the interpreter gave an array of another size".to_owned()));
            }
            // SAFETY: valid for that many bytes by the caller's word; the result is no longer in the
            // interpreter's memory than this.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), pointer, length) };
        }
        Ok(())
    }
}

/// A value of a shape, its arrays by `read` in order.
fn literal(shape: &Shape, read: &mut impl FnMut(&ArrayShape) -> Literal) -> Literal {
    match shape {
        Shape::Array(array) => read(array),
        Shape::Tuple(elements) => Literal::Tuple(elements.iter().map(|e| literal(e, read)).collect()),
        Shape::Token | Shape::Opaque | Shape::Buffer(_) => Literal::Token,
    }
}
