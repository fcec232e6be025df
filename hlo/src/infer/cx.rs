//! What a rule sees of the instruction, and the questions that all rules ask.

use smallvec::SmallVec;

use super::error::InferError;
use super::types::Classes;
use crate::attrs::{AttrKey, Attrs};
use crate::diag::Code;
use crate::diag::codes;
use crate::element_type::ElementType;
use crate::ids::ComputationId;
use crate::module::Module;
use crate::opcode::Opcode;
use crate::print::{ShapeStyle, print_array_shape, print_shape};
use crate::shape::{ArrayShape, Dims, MAX_RANK, ProgramShape, Shape, UNBOUNDED};

/// What a rule gives: the shape of the result.
pub(super) type Inferred = Result<Shape, InferError>;

/// An instruction whose shape is asked for. Rules take operands by number: [`super::infer`] has checked how
/// many there are.
#[derive(Clone, Copy)]
pub(super) struct Cx<'a> {
    pub(super) module: &'a Module,
    pub(super) opcode: Opcode,
    pub(super) operands: &'a [&'a Shape],
    pub(super) attrs: &'a Attrs,
    /// The shape that the text states.
    pub(super) declared: Option<&'a Shape>,
}

/// A shape as people read it: no layouts.
pub(super) fn show(shape: &Shape) -> String {
    print_shape(shape, ShapeStyle::WithoutLayout)
}

/// The shape of an array as people read it.
pub(super) fn show_array(shape: &ArrayShape) -> String {
    print_array_shape(shape, ShapeStyle::WithoutLayout)
}

/// The size of a dimension as people read it.
pub(super) fn size(n: i64) -> String {
    if n == UNBOUNDED { "?".to_owned() } else { n.to_string() }
}

/// `{1,2}`: numbers as an attribute has them.
pub(super) fn list(ints: &[i64]) -> String {
    let items: Vec<String> = ints.iter().map(i64::to_string).collect();
    format!("{{{}}}", items.join(","))
}

/// `{1,?}`: sizes of dimensions.
pub(super) fn size_list(dims: &[i64]) -> String {
    let items: Vec<String> = dims.iter().map(|&n| size(n)).collect();
    format!("{{{}}}", items.join(","))
}

/// `1 operand`, `2 operands`
pub(super) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

impl<'a> Cx<'a> {
    /// An error whose message begins with the opcode.
    pub(super) fn error(&self, code: Code, message: impl AsRef<str>) -> InferError {
        InferError::new(code, format!("{}: {}", self.opcode, message.as_ref()))
    }

    /// Operand `i`, which must be an array.
    pub(super) fn array(&self, i: usize) -> Result<&'a ArrayShape, InferError> {
        match self.operands[i] {
            Shape::Array(a) => {
                if a.rank() > MAX_RANK {
                    return Err(self.too_many_dimensions(a.rank()));
                }
                Ok(a)
            }
            other @ (Shape::Tuple(_) | Shape::Token | Shape::Opaque | Shape::Buffer(_)) => Err(self
                .error(codes::EXPECTED_ARRAY, format!("operand {i} must be an array"))
                .at(i, format!("this is {}", show(other)))),
        }
    }

    /// The declared shape.
    pub(super) fn declared(&self) -> Result<&'a Shape, InferError> {
        self.declared.ok_or_else(|| {
            self.error(
                codes::SHAPE_REQUIRED,
                "the shape of the result must be written, it does not follow from the operands",
            )
        })
    }

    /// The declared shape, which must be an array.
    pub(super) fn declared_array(&self) -> Result<&'a ArrayShape, InferError> {
        let declared = self.declared()?;
        declared.as_array().ok_or_else(|| {
            self.error(codes::EXPECTED_ARRAY, "the result must be an array")
                .label(format!("this is {}", show(declared)))
        })
    }

    fn missing(&self, key: AttrKey) -> InferError {
        self.error(codes::MISSING_ATTRIBUTE, format!("attribute {} is missing", key.text()))
    }

    /// An integer that must be there.
    pub(super) fn int(&self, key: AttrKey) -> Result<i64, InferError> {
        self.attrs.int(key).ok_or_else(|| self.missing(key))
    }

    /// A list of integers that must be there.
    pub(super) fn ints(&self, key: AttrKey) -> Result<&'a [i64], InferError> {
        self.attrs.ints(key).ok_or_else(|| self.missing(key))
    }

    /// Any attribute that must be there, by its getter.
    pub(super) fn required<T: ?Sized>(
        &self,
        value: Option<&'a T>,
        key: AttrKey,
    ) -> Result<&'a T, InferError> {
        value.ok_or_else(|| self.missing(key))
    }

    /// Parameters and result of the computation that an attribute names.
    pub(super) fn signature(&self, key: AttrKey) -> Result<ProgramShape, InferError> {
        let computation = self.attrs.computation(key).ok_or_else(|| self.missing(key))?;
        self.signature_of(computation)
    }

    /// Parameters and result of a computation.
    pub(super) fn signature_of(&self, computation: ComputationId) -> Result<ProgramShape, InferError> {
        self.module.program_shape(computation).ok_or_else(|| {
            let name = &self.module.computation(computation).name;
            self.error(codes::NO_ROOT, format!("computation {name} has no result"))
        })
    }

    /// Fails if there is not exactly one entry in a list of dimensions; gives that.
    pub(super) fn one_dimension(&self, key: AttrKey) -> Result<i64, InferError> {
        match *self.ints(key)? {
            [d] => Ok(d),
            ref all => Err(self
                .error(codes::DIMENSION_COUNT, format!("{} must name exactly one dimension", key.text()))
                .label(format!("{} are named", all.len()))),
        }
    }

    /// A dimension number as an index of a shape of this rank.
    pub(super) fn dimension(&self, what: &str, d: i64, rank: usize) -> Result<usize, InferError> {
        match usize::try_from(d) {
            Ok(i) if i < rank => Ok(i),
            Ok(_) | Err(_) => Err(self
                .error(codes::DIMENSION_OUT_OF_RANGE, format!("{what} {d} is out of range"))
                .label(if rank == 0 {
                    "there are no dimensions".to_owned()
                } else {
                    format!("must be 0 to {}", rank - 1)
                })),
        }
    }

    /// Dimension numbers as indices of a shape of this rank: in range, none twice.
    pub(super) fn dimensions(
        &self,
        what: &str,
        dims: &[i64],
        rank: usize,
    ) -> Result<SmallVec<[usize; 4]>, InferError> {
        let mut out: SmallVec<[usize; 4]> = SmallVec::new();
        for &d in dims {
            let i = self.dimension(what, d, rank)?;
            if out.contains(&i) {
                return Err(self
                    .error(codes::DIMENSION_REPEATED, format!("{what} {d} is repeated in {}", list(dims))));
            }
            out.push(i);
        }
        Ok(out)
    }

    /// Fails if dimension numbers are not in ascending order.
    pub(super) fn ascending(&self, what: &str, dims: &[i64]) -> Result<(), InferError> {
        if dims.is_sorted() {
            return Ok(());
        }
        Err(self.error(codes::DIMENSION_ORDER, format!("{what} {} must be in ascending order", list(dims))))
    }

    /// Fails if the elements of operand `i` are not of a class that the opcode takes.
    pub(super) fn require_type(&self, i: usize, classes: Classes) -> Result<(), InferError> {
        let ty = self.array(i)?.element_type;
        if classes.contains(ty) {
            return Ok(());
        }
        Err(self
            .error(codes::OPERAND_ELEMENT_TYPE, format!("operand {i} cannot have elements of type {ty}"))
            .at(i, format!("this is {}", show(self.operands[i])))
            .label(format!("must be {classes}")))
    }

    /// Fails if operands `i` and `j` have different element types (float types of different width pass).
    pub(super) fn require_same_types(&self, i: usize, j: usize) -> Result<(), InferError> {
        let (a, b) = (self.array(i)?, self.array(j)?);
        if super::types::same_ignoring_precision(a.element_type, b.element_type) {
            return Ok(());
        }
        Err(self
            .error(
                codes::ELEMENT_TYPES_DIFFER,
                format!(
                    "operands {i} and {j} have different element types, {} and {}",
                    a.element_type, b.element_type
                ),
            )
            .at(i, format!("this is {}", show_array(a)))
            .at(j, format!("this is {}", show_array(b))))
    }

    /// Fails if operands `i` and `j` have different dimensions (unbounded ones match any).
    pub(super) fn require_same_dims(&self, i: usize, j: usize) -> Result<(), InferError> {
        let (a, b) = (self.array(i)?, self.array(j)?);
        if super::types::same_dims(&a.dims, &b.dims) {
            return Ok(());
        }
        Err(self
            .error(
                codes::OPERAND_SHAPES_DIFFER,
                format!(
                    "operands {i} and {j} have different shapes, {} and {}",
                    show_array(a),
                    show_array(b)
                ),
            )
            .at(i, format!("this is {}", show_array(a)))
            .at(j, format!("this is {}", show_array(b))))
    }

    /// Operand `i`, which must be an array without dimensions.
    pub(super) fn scalar(&self, i: usize, what: &str) -> Result<ElementType, InferError> {
        let a = self.array(i)?;
        if a.dims.is_empty() {
            return Ok(a.element_type);
        }
        Err(self
            .error(codes::EXPECTED_SCALAR, format!("{what} must be a scalar"))
            .at(i, format!("this is {}", show_array(a))))
    }

    /// Fails if operand `i` is not a token.
    pub(super) fn token(&self, i: usize) -> Result<(), InferError> {
        match self.operands[i] {
            Shape::Token => Ok(()),
            other @ (Shape::Array(_) | Shape::Tuple(_) | Shape::Opaque | Shape::Buffer(_)) => Err(self
                .error(codes::EXPECTED_TOKEN, format!("operand {i} must be a token"))
                .at(i, format!("this is {}", show(other)))),
        }
    }

    /// The elements of operand `i`, which must be a tuple of at least `at_least`.
    pub(super) fn tuple(&self, i: usize, at_least: usize) -> Result<&'a [Shape], InferError> {
        let shape = self.operands[i];
        match shape.as_tuple() {
            Some(t) if t.len() >= at_least => Ok(t),
            Some(_) | None => Err(self
                .error(
                    codes::EXPECTED_TUPLE,
                    if at_least == 0 {
                        format!("operand {i} must be a tuple")
                    } else {
                        format!("operand {i} must be a tuple of at least {}", count(at_least, "element"))
                    },
                )
                .at(i, format!("this is {}", show(shape)))),
        }
    }

    /// An error for a size that does not fit.
    pub(super) fn overflow(&self, what: &str) -> InferError {
        self.error(codes::SIZE_OVERFLOW, format!("{what} does not fit in 64 bits"))
    }

    fn too_many_dimensions(&self, rank: usize) -> InferError {
        self.error(codes::TOO_MANY_DIMENSIONS, format!("{rank} dimensions are too many"))
            .label(format!("at most {MAX_RANK}"))
    }

    /// An array from dimensions that a rule has put together.
    pub(super) fn build(&self, element_type: ElementType, dims: DimList) -> Inferred {
        self.build_array(element_type, dims).map(Shape::Array)
    }

    /// The same, not yet wrapped.
    pub(super) fn build_array(
        &self,
        element_type: ElementType,
        dims: DimList,
    ) -> Result<ArrayShape, InferError> {
        if dims.sizes.len() > MAX_RANK {
            return Err(self.too_many_dimensions(dims.sizes.len()));
        }
        Ok(ArrayShape { element_type, dims: dims.sizes, dynamic: dims.dynamic, layout: None })
    }
}

/// Dimensions being put together; [`Cx::build`] limits their number.
#[derive(Clone, Default, Debug)]
pub(super) struct DimList {
    sizes: Dims,
    dynamic: u64,
}

impl DimList {
    /// None yet.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds one; an unbounded one is dynamic whatever the flag.
    pub(super) fn push(&mut self, size: i64, dynamic: bool) {
        let i = self.sizes.len();
        self.sizes.push(size);
        if i < MAX_RANK && (dynamic || size == UNBOUNDED) {
            self.dynamic |= 1 << i;
        }
    }

    /// Adds dimension `i` of an array.
    pub(super) fn push_from(&mut self, a: &ArrayShape, i: usize) {
        self.push(a.dims[i], a.is_dynamic_dim(i));
    }

    /// An array with these dimensions, no more of them than it had, instead of its own.
    pub(super) fn replace_dims(self, a: ArrayShape) -> ArrayShape {
        ArrayShape { dims: self.sizes, dynamic: self.dynamic, ..a }
    }

    /// The dimensions of an array.
    pub(super) fn of(a: &ArrayShape) -> Self {
        Self { sizes: a.dims.clone(), dynamic: a.dynamic }
    }
}
