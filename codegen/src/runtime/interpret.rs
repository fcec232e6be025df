//! Instructions that the interpreter executes inside of a compiled program (`--fallback`).

use hlo::{ArrayLiteral, ArrayShape, Literal, Module, Shape};
use hlo_interp::{Interpreter, Options, Value};

use super::executable::RunError;
use super::raw::{buffer_of, bytes_of};
use crate::buffers::Slice;
use crate::program::{array_bytes, arrays};

/// An instruction on parameters, as a module.
#[derive(Debug)]
pub(super) struct Interpreted {
    module: Box<Module>,
    parameters: Vec<Shape>,
    results: Vec<ArrayShape>,
}

impl Interpreted {
    /// Of a module whose parameters' and result's leaves are these slices. Errors: they are not.
    pub(super) fn new(module: Box<Module>, arguments: &[Slice]) -> Result<Self, String> {
        let shape = module.program_shape(module.entry()).ok_or("a module without a result")?;
        let leaves = shape.parameters.iter().flat_map(arrays).chain(arrays(&shape.result));
        let fits = leaves.clone().count() == arguments.len()
            && leaves.zip(arguments).all(|(leaf, slice)| array_bytes(leaf) == Some(slice.bytes));
        if !fits {
            return Err("an instruction for the interpreter on other arrays".to_owned());
        }
        let results = arrays(&shape.result).into_iter().cloned().collect();
        Ok(Self { module, parameters: shape.parameters, results })
    }

    /// Executes it.
    ///
    /// # Safety
    /// `arguments` points to valid pointers to the slices that it was made for.
    pub(super) unsafe fn run(&self, arguments: *const *mut u8) -> Result<(), RunError> {
        let mut next = arguments;
        // SAFETY: called once for each slice, in order, with its length.
        let mut take = |shape: &ArrayShape| unsafe {
            let pointer = *next;
            next = next.add(1);
            (pointer, array_bytes(shape).unwrap_or(0) as usize)
        };
        let mut read = |shape: &ArrayShape| {
            let (pointer, length) = take(shape);
            // SAFETY: valid for so many bytes by the caller's word; nobody writes to it now.
            let bytes = unsafe { std::slice::from_raw_parts(pointer.cast_const(), length) };
            Literal::Array(ArrayLiteral {
                dims: shape.dims.clone(),
                buffer: buffer_of(shape.element_type, bytes),
            })
        };
        let values = self.parameters.iter().map(|p| Value::from_literal(literal(p, &mut read))).collect();
        let interpreter = Interpreter::new(&self.module, Options::default());
        let result = interpreter.run(values).map_err(|e| RunError::Interpreter(Box::new(e)))?.into_literal();
        for (shape, array) in self.results.iter().zip(result.arrays()) {
            let (pointer, length) = take(shape);
            let bytes = bytes_of(&array.buffer);
            assert_eq!(bytes.len(), length, "invariant: the interpreter gives what the shape says");
            // SAFETY: valid for so many bytes by the caller's word, and apart from the operands.
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
