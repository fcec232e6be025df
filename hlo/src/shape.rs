//! Shapes: the types of values.
//!
//! **Invariants** (kept by the verifier, not by construction: text can say anything): dimensions are not
//! negative but for [`UNBOUNDED`]; the number of elements times their storage size fits an `i64`; a layout's
//! `minor_to_major` is a permutation of the dimensions. Nesting of tuples is limited by the parser.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::element_type::ElementType;
use crate::layout::Layout;

/// The size of an unbounded dynamic dimension, `?` (XLA: `Shape::kUnboundedSize`).
pub const UNBOUNDED: i64 = i64::MIN;

/// Sizes of dimensions.
pub type Dims = SmallVec<[i64; 4]>;

/// The shape of an array: element type, dimensions, perhaps a layout.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ArrayShape {
    /// Type of each element.
    pub element_type: ElementType,
    /// Sizes, or bounds of dynamic dimensions, or [`UNBOUNDED`].
    pub dims: Dims,
    /// Bit `i` is set if dimension `i` is dynamic (`<=N` or `?`); rank is limited to 64.
    pub dynamic: u64,
    /// Its memory space, if the text said.
    pub layout: Option<Arc<Layout>>,
}

/// The largest rank that is accepted.
pub const MAX_RANK: usize = 64;

/// The type of a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// An array.
    Array(ArrayShape),
    /// `(a, b, ...)`.
    Tuple(Arc<[Shape]>),
    /// `token[]`: orders side effects.
    Token,
    /// `opaque[]`.
    Opaque,
    /// `b(f32[4]{0})`: a mutable buffer of the array inside.
    Buffer(Arc<Shape>),
}

impl ArrayShape {
    /// Static dimensions, no layout.
    pub fn new(element_type: ElementType, dims: &[i64]) -> Self {
        Self { element_type, dims: Dims::from_slice(dims), dynamic: 0, layout: None }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Whether dimension `i` is dynamic.
    pub fn is_dynamic_dim(&self, i: usize) -> bool {
        i < MAX_RANK && self.dynamic >> i & 1 == 1
    }

    /// Whether any dimension is dynamic.
    pub fn is_dynamic(&self) -> bool {
        self.dynamic != 0
    }

    /// Number of elements (at the bounds of dynamic dimensions); `None` if a dimension is unbounded or
    /// negative or the product does not fit.
    pub fn checked_elements(&self) -> Option<i64> {
        if self.dims.iter().any(|&d| d < 0) {
            return None;
        }
        if self.dims.contains(&0) {
            return Some(0);
        }
        self.dims.iter().try_fold(1i64, |n, &d| n.checked_mul(d))
    }

    /// Number of elements of a verified shape.
    pub fn elements(&self) -> usize {
        let n = self.checked_elements().expect("invariant: the verifier bounds the number of elements");
        usize::try_from(n).expect("invariant: not negative")
    }

    /// Same element type and dimensions; layouts and dynamism are not compared.
    pub fn same_dims(&self, other: &ArrayShape) -> bool {
        self.element_type == other.element_type && self.dims == other.dims
    }

    /// The same shape with another element type.
    pub fn with_type(&self, element_type: ElementType) -> ArrayShape {
        ArrayShape { element_type, ..self.clone() }
    }

    /// Without its layout.
    pub fn without_layout(&self) -> ArrayShape {
        ArrayShape { layout: None, ..self.clone() }
    }
}

impl Shape {
    /// An array of static dimensions without a layout.
    pub fn array(element_type: ElementType, dims: &[i64]) -> Shape {
        Shape::Array(ArrayShape::new(element_type, dims))
    }

    /// A scalar.
    pub fn scalar(element_type: ElementType) -> Shape {
        Shape::array(element_type, &[])
    }

    /// A tuple.
    pub fn tuple(elements: impl IntoIterator<Item = Shape>) -> Shape {
        Shape::Tuple(elements.into_iter().collect())
    }

    /// The array shape, if it is one.
    pub fn as_array(&self) -> Option<&ArrayShape> {
        match self {
            Shape::Array(a) => Some(a),
            Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => None,
        }
    }

    /// The elements, if it is a tuple.
    pub fn as_tuple(&self) -> Option<&[Shape]> {
        match self {
            Shape::Tuple(t) => Some(t),
            Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => None,
        }
    }

    /// The array shape of an operand or result that the verifier has found to be one.
    pub fn expect_array(&self) -> &ArrayShape {
        self.as_array().expect("invariant: the verifier checked that this shape is an array")
    }

    /// The element type of an array.
    pub fn element_type(&self) -> Option<ElementType> {
        self.as_array().map(|a| a.element_type)
    }

    /// Whether it is an array of rank 0.
    pub fn is_scalar(&self) -> bool {
        self.as_array().is_some_and(|a| a.dims.is_empty())
    }

    /// XLA's `ShapeUtil::Compatible`: equal but for layouts and for which dimensions are dynamic.
    pub fn compatible(&self, other: &Shape) -> bool {
        match (self, other) {
            (Shape::Array(a), Shape::Array(b)) => a.same_dims(b),
            (Shape::Tuple(a), Shape::Tuple(b)) => {
                Arc::ptr_eq(a, b)
                    || a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.compatible(b))
            }
            (Shape::Token, Shape::Token) | (Shape::Opaque, Shape::Opaque) => true,
            (Shape::Buffer(a), Shape::Buffer(b)) => a.compatible(b),
            (Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_), _) => false,
        }
    }

    /// Like [`Shape::compatible`], and two different float types are compatible too (mixed precision).
    pub fn compatible_ignoring_fp_precision(&self, other: &Shape) -> bool {
        match (self, other) {
            (Shape::Array(a), Shape::Array(b)) => {
                a.dims == b.dims
                    && (a.element_type == b.element_type
                        || a.element_type.is_float() && b.element_type.is_float())
            }
            (Shape::Tuple(a), Shape::Tuple(b)) => {
                a.len() == b.len()
                    && a.iter().zip(b.iter()).all(|(a, b)| a.compatible_ignoring_fp_precision(b))
            }
            (Shape::Buffer(a), Shape::Buffer(b)) => a.compatible_ignoring_fp_precision(b),
            (Shape::Array(_) | Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_), _) => {
                self.compatible(other)
            }
        }
    }

    /// The sub-shape at a path of tuple indices.
    pub fn at(&self, index: &[i64]) -> Option<&Shape> {
        index.iter().try_fold(self, |s, &i| s.as_tuple()?.get(usize::try_from(i).ok()?))
    }

    /// Calls `f` with each leaf (array, token, opaque, buffer), tuples flattened in order.
    pub fn for_each_leaf<'a>(&'a self, f: &mut impl FnMut(&'a Shape)) {
        match self {
            Shape::Tuple(t) => t.iter().for_each(|s| s.for_each_leaf(f)),
            Shape::Array(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_) => f(self),
        }
    }

    /// Leaves, tuples flattened in order.
    pub fn leaves(&self) -> Vec<&Shape> {
        let mut leaves = Vec::new();
        self.for_each_leaf(&mut |s| leaves.push(s));
        leaves
    }

    /// Bytes of all arrays inside, as buffers store them; `None` if that is unbounded or does not fit.
    pub fn checked_bytes(&self) -> Option<i64> {
        match self {
            Shape::Array(a) => a.checked_elements()?.checked_mul(a.element_type.storage_bytes() as i64),
            Shape::Tuple(t) => t.iter().try_fold(0i64, |n, s| n.checked_add(s.checked_bytes()?)),
            Shape::Token | Shape::Opaque => Some(0),
            Shape::Buffer(s) => s.checked_bytes(),
        }
    }

    /// The same shape without any layout.
    pub fn without_layout(&self) -> Shape {
        match self {
            Shape::Array(a) => Shape::Array(a.without_layout()),
            Shape::Tuple(t) => Shape::tuple(t.iter().map(Shape::without_layout)),
            Shape::Token => Shape::Token,
            Shape::Opaque => Shape::Opaque,
            Shape::Buffer(s) => Shape::Buffer(Arc::new(s.without_layout())),
        }
    }
}

impl From<ArrayShape> for Shape {
    fn from(a: ArrayShape) -> Shape {
        Shape::Array(a)
    }
}

/// HLO text with layouts, as in dumps.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::print::print_shape(self, crate::print::ShapeStyle::WithLayout))
    }
}

impl fmt::Display for ArrayShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::print::print_array_shape(self, crate::print::ShapeStyle::WithLayout))
    }
}

/// The types of a computation's parameters and result.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ProgramShape {
    /// Parameters in order.
    pub parameters: Vec<Shape>,
    /// The result.
    pub result: Shape,
}
