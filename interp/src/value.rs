//! Values: the results of instructions.
//!
//! **Invariants:** a tensor's storage holds exactly the product of its dimensions, in row-major order. The
//! dimensions of a tensor are those at run time: where an instruction's shape says `<=N`, the tensor has the
//! actual size, and the storage no padding. Storage is shared between clones and written only while it is not
//! shared.

use std::sync::Arc;

use hlo::literal::{ArrayLiteral, Buffer, BufferOf, Literal};
use hlo::{ArrayShape, Dims, ElementType, Shape, with_buffer};
use ndarray::{ArrayViewD, IxDyn};
use rustc_hash::FxHashMap;

use crate::device::pending::Pending;
use crate::memory::{Charge, Meter};

/// A value: an array, a tuple, or a token. Clones share their storage.
#[derive(Clone, Debug)]
pub enum Value {
    /// An array.
    Array(Tensor),
    /// A tuple.
    Tuple(Arc<[Value]>),
    /// A token.
    Token,
    /// The pending result of an asynchronous operation. Results of runs have none.
    Pending(Arc<Pending>),
}

/// An array of run-time dimensions over shared storage.
#[derive(Clone, Debug)]
pub struct Tensor {
    dims: Dims,
    storage: Arc<Storage>,
}

#[derive(Debug)]
struct Storage {
    source: Source,
    /// The charge on the engine's meter; values that came from outside and are not bound yet have none.
    charge: Option<Charge>,
}

#[derive(Debug)]
enum Source {
    Owned(Buffer),
    /// The elements of a literal, not copied.
    Lent(Arc<Buffer>),
}

impl Source {
    /// The placeholder where a buffer was taken out.
    const NONE: Source = Source::Owned(Buffer::Pred(Vec::new()));
}

/// Storage that is no longer needed may be reused for other values.
impl Drop for Storage {
    fn drop(&mut self) {
        if let (Some(charge), Source::Owned(buffer)) =
            (self.charge.take(), std::mem::replace(&mut self.source, Source::NONE))
        {
            charge.give_back(buffer);
        }
    }
}

impl Storage {
    fn buffer(&self) -> &Buffer {
        match &self.source {
            Source::Owned(b) => b,
            Source::Lent(b) => b,
        }
    }

    fn owned_mut(&mut self) -> Option<&mut Buffer> {
        match &mut self.source {
            Source::Owned(b) => Some(b),
            Source::Lent(b) => Arc::get_mut(b),
        }
    }
}

impl Tensor {
    /// From parts. Panics if the number of elements is not the product of the dimensions: that is a bug of
    /// the caller.
    pub fn new(dims: impl Into<Dims>, buffer: Buffer) -> Self {
        Self::from_source(dims.into(), Source::Owned(buffer))
    }

    fn from_source(dims: Dims, source: Source) -> Self {
        let tensor = Self { dims, storage: Arc::new(Storage { source, charge: None }) };
        assert_eq!(elements(&tensor.dims), tensor.len(), "a tensor of dimensions {:?}", tensor.dims);
        tensor
    }

    /// From a typed vector, as [`Tensor::new`].
    pub fn from_vec<T: BufferOf>(dims: impl Into<Dims>, elements: Vec<T>) -> Self {
        Self::new(dims, T::wrap(elements))
    }

    /// A scalar.
    pub fn scalar<T: BufferOf>(value: T) -> Self {
        Self::from_vec(Dims::new(), vec![value])
    }

    /// The array of a literal, whose elements it shares.
    pub fn from_literal(literal: ArrayLiteral) -> Self {
        // Elements that are not shared need no second reference count.
        match Arc::try_unwrap(literal.buffer) {
            Ok(buffer) => Self::new(literal.dims, buffer),
            Err(shared) => Self::from_source(literal.dims, Source::Lent(shared)),
        }
    }

    /// A literal of it, which shares the elements if these were a literal's and copies them otherwise.
    pub fn to_shared_literal(&self) -> ArrayLiteral {
        let buffer = match &self.storage.source {
            Source::Lent(buffer) => Arc::clone(buffer),
            Source::Owned(buffer) => Arc::new(buffer.clone()),
        };
        ArrayLiteral { dims: self.dims.clone(), buffer }
    }

    /// Dimensions at run time.
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Dimensions for indexing.
    pub fn sizes(&self) -> Sizes {
        sizes(&self.dims)
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.buffer().element_type()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.buffer().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements in row-major order.
    pub fn buffer(&self) -> &Buffer {
        self.storage.buffer()
    }

    /// The elements. Panics if they are of another type, which the verifier has ruled out.
    pub fn slice<T: BufferOf>(&self) -> &[T] {
        T::slice(self.buffer()).expect("invariant: the verifier checked the element type")
    }

    /// The elements as a view of [`Tensor::dims`].
    pub fn view<T: BufferOf>(&self) -> ArrayViewD<'_, T> {
        ArrayViewD::from_shape(IxDyn(&self.sizes()), self.slice())
            .expect("invariant: the storage holds the product of the dimensions")
    }

    /// The elements to write in place, if they are not shared.
    pub fn unique(&mut self) -> Option<&mut Buffer> {
        Arc::get_mut(&mut self.storage)?.owned_mut()
    }

    /// Whether [`Tensor::unique`] would succeed.
    pub fn is_unique(&mut self) -> bool {
        self.unique().is_some()
    }

    /// The elements, copied if they are shared.
    pub fn into_buffer(self) -> Buffer {
        match Arc::try_unwrap(self.storage) {
            Ok(mut storage) => match std::mem::replace(&mut storage.source, Source::NONE) {
                Source::Owned(b) => b,
                Source::Lent(b) => Arc::unwrap_or_clone(b),
            },
            Err(shared) => shared.buffer().clone(),
        }
    }

    /// As an array literal. It shares elements that a literal lent, and has a copy of others.
    pub fn to_literal(&self) -> ArrayLiteral {
        ArrayLiteral { dims: self.dims.clone(), buffer: self.clone().into_shared() }
    }

    /// The elements to share, copied only if other tensors hold them as their own.
    fn into_shared(self) -> Arc<Buffer> {
        if let Source::Lent(b) = &self.storage.source {
            return b.clone();
        }
        self.into_buffer().into()
    }

    /// The elements, copied if they are shared. Panics on another type, as [`Tensor::slice`].
    pub fn into_vec<T: BufferOf>(self) -> Vec<T> {
        T::unwrap(self.into_buffer()).expect("invariant: the verifier checked the element type")
    }

    /// The same elements in other dimensions. Panics if their product is another: that is a bug of the
    /// caller.
    #[must_use]
    pub fn reshaped(mut self, dims: impl Into<Dims>) -> Self {
        let dims = dims.into();
        assert_eq!(elements(&dims), self.len(), "a reshape from {:?} to {dims:?}", self.dims);
        self.dims = dims;
        self
    }

    /// Its shape, static and without a layout.
    pub fn shape(&self) -> ArrayShape {
        ArrayShape::new(self.element_type(), &self.dims)
    }

    /// Bytes of its storage.
    pub fn bytes(&self) -> u64 {
        self.len() as u64 * self.element_type().storage_bytes() as u64
    }

    /// One element of an integer (or `pred`) tensor as an index; a `u64` beyond `i64` saturates.
    pub fn index_at(&self, i: usize) -> i64 {
        use hlo::literal::Bits;
        let ty = self.element_type();
        let bits = with_buffer!(self.buffer(), v => v[i].bits()) as u64;
        if ty.is_signed_integer() {
            let unused = 64 - ty.bits();
            (bits << unused) as i64 >> unused
        } else {
            i64::try_from(bits).unwrap_or(i64::MAX)
        }
    }

    /// Charges the storage to `meter` if nothing was charged for it yet. What others hold is theirs to count.
    fn charge(&mut self, meter: &Arc<Meter>) {
        if self.storage.charge.is_none() && matches!(self.storage.source, Source::Owned(_)) {
            let bytes = self.bytes();
            if let Some(storage) = Arc::get_mut(&mut self.storage) {
                storage.charge = Some(Charge::new(meter, bytes));
            }
        }
    }
}

/// Sizes as `usize`.
pub type Sizes = smallvec::SmallVec<[usize; 4]>;

/// Dimensions of a tensor as sizes.
pub fn sizes(dims: &[i64]) -> Sizes {
    dims.iter().map(|&d| usize::try_from(d).expect("invariant: sizes of tensors are not negative")).collect()
}

/// Number of elements of a tensor.
pub fn elements(dims: &[i64]) -> usize {
    sizes(dims).iter().product()
}

impl Value {
    /// A tuple.
    pub fn tuple(elements: impl IntoIterator<Item = Value>) -> Self {
        Value::Tuple(elements.into_iter().collect())
    }

    /// The array, if it is one.
    pub fn as_array(&self) -> Option<&Tensor> {
        match self {
            Value::Array(t) => Some(t),
            Value::Tuple(_) | Value::Token | Value::Pending(_) => None,
        }
    }

    /// The array that the verifier found this to be.
    pub fn expect_array(&self) -> &Tensor {
        self.as_array().expect("invariant: the verifier checked that this is an array")
    }

    /// The array that the verifier found this to be.
    pub fn into_array(self) -> Tensor {
        match self {
            Value::Array(t) => t,
            Value::Tuple(_) | Value::Token | Value::Pending(_) => {
                panic!("invariant: the verifier checked that this is an array")
            }
        }
    }

    /// The elements of a tuple.
    pub fn as_tuple(&self) -> Option<&[Value]> {
        match self {
            Value::Tuple(t) => Some(t),
            Value::Array(_) | Value::Token | Value::Pending(_) => None,
        }
    }

    /// The elements of what the verifier found to be a tuple.
    pub fn expect_tuple(&self) -> &[Value] {
        self.as_tuple().expect("invariant: the verifier checked that this is a tuple")
    }

    /// Moves an element out of a tuple that is not shared and not read again; otherwise shares it.
    pub(crate) fn take_element(&mut self, index: usize) -> Option<Value> {
        match self {
            Value::Tuple(t) => match Arc::get_mut(t) {
                Some(elements) => elements.get_mut(index).map(|e| std::mem::replace(e, Value::Token)),
                None => t.get(index).cloned(),
            },
            Value::Array(_) | Value::Token | Value::Pending(_) => None,
        }
    }

    /// All arrays, tuples flattened in order.
    pub fn arrays(&self) -> Vec<&Tensor> {
        fn collect<'a>(value: &'a Value, out: &mut Vec<&'a Tensor>) {
            match value {
                Value::Array(t) => out.push(t),
                Value::Tuple(t) => t.iter().for_each(|v| collect(v, out)),
                Value::Token | Value::Pending(_) => {}
            }
        }
        let mut out = Vec::new();
        collect(self, &mut out);
        out
    }

    /// Its shape, static and without layouts.
    pub fn shape(&self) -> Shape {
        match self {
            Value::Array(t) => Shape::Array(t.shape()),
            Value::Tuple(t) => Shape::tuple(t.iter().map(Value::shape)),
            Value::Token => Shape::Token,
            Value::Pending(p) => p.shape.without_layout(),
        }
    }

    /// Whether something inside is still pending.
    pub(crate) fn has_pending(&self) -> bool {
        match self {
            Value::Array(_) | Value::Token => false,
            Value::Tuple(t) => t.iter().any(Value::has_pending),
            Value::Pending(_) => true,
        }
    }

    /// A copy that shares no storage.
    pub(crate) fn detached(&self) -> Value {
        match self {
            Value::Array(t) => Tensor::new(t.dims(), t.buffer().clone()).into(),
            Value::Tuple(t) => Value::tuple(t.iter().map(Value::detached)),
            Value::Token | Value::Pending(_) => self.clone(),
        }
    }

    /// A value that holds a literal and shares its arrays.
    pub fn from_literal(literal: Literal) -> Self {
        match literal {
            Literal::Array(a) => Value::Array(Tensor::from_literal(a)),
            Literal::Tuple(t) => Value::tuple(t.into_iter().map(Value::from_literal)),
            Literal::Token => Value::Token,
        }
    }

    /// A value that holds a literal which others hold too: arrays are not copied.
    pub fn from_shared_literal(literal: &Literal) -> Self {
        match literal {
            Literal::Array(a) => {
                Value::Array(Tensor::from_source(a.dims.clone(), Source::Lent(a.buffer.clone())))
            }
            Literal::Tuple(t) => Value::tuple(t.iter().map(Value::from_shared_literal)),
            Literal::Token => Value::Token,
        }
    }

    /// As a literal. Arrays that share storage here share it there; storage that is not shared is moved.
    pub fn into_literal(self) -> Literal {
        let mut leaves = Leaves::default();
        let tree = leaves.take(self);
        let buffers: Vec<Arc<Buffer>> = leaves.tensors.into_iter().map(Tensor::into_shared).collect();
        tree.literal(&buffers)
    }

    /// The buffers inside that are shared with others.
    pub(crate) fn lent(&self) -> Vec<&Arc<Buffer>> {
        fn lent(tensor: &Tensor) -> Option<&Arc<Buffer>> {
            match &tensor.storage.source {
                Source::Lent(b) => Some(b),
                Source::Owned(_) => None,
            }
        }
        self.arrays().into_iter().filter_map(lent).collect()
    }

    /// Charges all storage inside that was not charged yet.
    pub(crate) fn charge(&mut self, meter: &Arc<Meter>) {
        match self {
            Value::Array(t) => t.charge(meter),
            Value::Tuple(t) => {
                // A shared tuple was bound before, so its elements are charged.
                if let Some(elements) = Arc::get_mut(t) {
                    elements.iter_mut().for_each(|e| e.charge(meter));
                }
            }
            Value::Token | Value::Pending(_) => {}
        }
    }
}

/// The tensors of a value that is decomposed, each storage once.
#[derive(Default)]
struct Leaves {
    tensors: Vec<Tensor>,
    /// By address of the storage, which the tensor keeps alive: its index.
    known: FxHashMap<*const Storage, usize>,
}

/// A value whose arrays are indices of [`Leaves::tensors`].
enum Tree {
    Array(Dims, usize),
    Tuple(Vec<Tree>),
    Token,
}

impl Leaves {
    fn take(&mut self, value: Value) -> Tree {
        match value {
            Value::Array(t) => {
                let dims = t.dims.clone();
                let next = self.tensors.len();
                let index = *self.known.entry(Arc::as_ptr(&t.storage)).or_insert(next);
                if index == next {
                    self.tensors.push(t);
                }
                Tree::Array(dims, index)
            }
            mut tuple @ Value::Tuple(_) => {
                let n = tuple.expect_tuple().len();
                Tree::Tuple((0..n).filter_map(|i| Some(self.take(tuple.take_element(i)?))).collect())
            }
            Value::Token | Value::Pending(_) => Tree::Token,
        }
    }
}

impl Tree {
    fn literal(self, buffers: &[Arc<Buffer>]) -> Literal {
        match self {
            Tree::Array(dims, i) => Literal::Array(ArrayLiteral { dims, buffer: buffers[i].clone() }),
            Tree::Tuple(parts) => Literal::Tuple(parts.into_iter().map(|p| p.literal(buffers)).collect()),
            Tree::Token => Literal::Token,
        }
    }
}

impl From<Tensor> for Value {
    fn from(t: Tensor) -> Value {
        Value::Array(t)
    }
}
