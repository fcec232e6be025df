//! Handlers with a declared signature, which is checked when a program is compiled.

use std::fmt;
use std::sync::Arc;

use hlo::{ArrayLiteral, ArrayShape, Buffer, BufferOf, ElementType};

use super::attributes::Attribute;
use super::context::Context;
use super::site::CallSite;
use super::{Handler, Instance, Leaf};
use crate::error::{Code, Error};

/// A type that attributes are read as.
pub trait FromAttribute: Sized {
    /// What it is called in messages.
    const WHAT: &'static str;

    /// The value, if the attribute is of this type.
    fn from_attribute(attribute: &Attribute) -> Option<Self>;
}

macro_rules! numbers {
    ($($ty:ty, $variant:ident, $name:literal;)*) => {$(
        impl FromAttribute for $ty {
            const WHAT: &'static str = $name;

            fn from_attribute(attribute: &Attribute) -> Option<Self> {
                match attribute {
                    Attribute::Scalar(Buffer::$variant(v)) => v.first().copied(),
                    _others => None,
                }
            }
        }

        impl FromAttribute for Vec<$ty> {
            const WHAT: &'static str = concat!("array of ", $name);

            fn from_attribute(attribute: &Attribute) -> Option<Self> {
                match attribute {
                    Attribute::Array(Buffer::$variant(v)) => Some(v.clone()),
                    _others => None,
                }
            }
        }
    )*};
}

numbers! {
    bool, Pred, "pred";
    i8, S8, "s8";
    i16, S16, "s16";
    i32, S32, "s32";
    i64, S64, "s64";
    u8, U8, "u8";
    u16, U16, "u16";
    u32, U32, "u32";
    u64, U64, "u64";
    f32, F32, "f32";
    f64, F64, "f64";
}

impl FromAttribute for String {
    const WHAT: &'static str = "text";

    fn from_attribute(attribute: &Attribute) -> Option<Self> {
        match attribute {
            Attribute::Text(bytes) => String::from_utf8(bytes.clone()).ok(),
            _others => None,
        }
    }
}

impl FromAttribute for super::Attributes {
    const WHAT: &'static str = "dictionary";

    fn from_attribute(attribute: &Attribute) -> Option<Self> {
        match attribute {
            Attribute::Dictionary(attributes) => Some(attributes.clone()),
            _others => None,
        }
    }
}

/// An attribute of a signature.
#[derive(Clone, Debug)]
struct Declared {
    name: String,
    what: &'static str,
    fits: fn(&Attribute) -> bool,
}

/// The signature of a custom call: what its calls take and give. Tokens are beside it.
#[derive(Clone, Debug)]
pub struct Binding {
    name: String,
    arguments: Vec<Option<ElementType>>,
    takes_remaining_arguments: bool,
    results: Vec<Option<ElementType>>,
    gives_remaining_results: bool,
    attributes: Vec<Declared>,
    takes_any_attributes: bool,
    functions: Vec<String>,
    exports: Vec<String>,
}

impl Binding {
    /// Of a target, without arguments, results and attributes.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            arguments: Vec::new(),
            takes_remaining_arguments: false,
            results: Vec::new(),
            gives_remaining_results: false,
            attributes: Vec::new(),
            takes_any_attributes: false,
            functions: Vec::new(),
            exports: Vec::new(),
        }
    }

    /// The next argument is an array of this type.
    #[must_use]
    pub fn argument<T: BufferOf>(mut self) -> Self {
        self.arguments.push(Some(T::TYPE));
        self
    }

    /// The next argument is an array of any type.
    #[must_use]
    pub fn any_argument(mut self) -> Self {
        self.arguments.push(None);
        self
    }

    /// After these arguments come as many as there are, of any types.
    #[must_use]
    pub fn remaining_arguments(mut self) -> Self {
        self.takes_remaining_arguments = true;
        self
    }

    /// The next result is an array of this type.
    #[must_use]
    pub fn result<T: BufferOf>(mut self) -> Self {
        self.results.push(Some(T::TYPE));
        self
    }

    /// The next result is an array of any type.
    #[must_use]
    pub fn any_result(mut self) -> Self {
        self.results.push(None);
        self
    }

    /// After these results come as many as there are, of any types.
    #[must_use]
    pub fn remaining_results(mut self) -> Self {
        self.gives_remaining_results = true;
        self
    }

    /// There is an attribute of this name and type.
    #[must_use]
    pub fn attribute<T: FromAttribute>(mut self, name: &str) -> Self {
        let fits = |attribute: &Attribute| T::from_attribute(attribute).is_some();
        self.attributes.push(Declared { name: name.to_owned(), what: T::WHAT, fits });
        self
    }

    /// There may be other attributes.
    #[must_use]
    pub fn any_attributes(mut self) -> Self {
        self.takes_any_attributes = true;
        self
    }

    /// There is a reference to a function of the program: an attribute of this name, or a called computation
    /// of it.
    #[must_use]
    pub fn function(mut self, name: &str) -> Self {
        self.functions.push(name.to_owned());
        self
    }

    /// There is a reference to a function that is exported beside the program's: an attribute of this name,
    /// such as `capture = @step`.
    #[must_use]
    pub fn export(mut self, name: &str) -> Self {
        self.exports.push(name.to_owned());
        self
    }

    /// What computes it.
    pub fn to<F>(self, handler: F) -> Bound
    where
        F: Fn(&mut BoundCall<'_, '_>) -> Result<(), Error> + Send + Sync + 'static,
    {
        Bound { signature: self, run: Arc::new(handler) }
    }

    fn check(&self, site: &CallSite) -> Result<(), Error> {
        let wrong = |message: String| Err(site.error(Code::InvalidArgument, message));
        let arrays = |shapes: &[hlo::Shape]| -> Vec<ArrayShape> {
            shapes.iter().filter_map(|s| s.as_array()).cloned().collect()
        };
        for (what, declared, open, given) in [
            ("argument", &self.arguments, self.takes_remaining_arguments, arrays(&site.operands)),
            ("result", &self.results, self.gives_remaining_results, arrays(&site.results)),
        ] {
            if given.len() < declared.len() || given.len() > declared.len() && !open {
                let least = if open { "at least " } else { "" };
                return wrong(format!(
                    "the handler has {least}{} {what}s, the call {}",
                    declared.len(),
                    given.len()
                ));
            }
            for (n, (ty, given)) in declared.iter().zip(&given).enumerate() {
                if let Some(ty) = ty
                    && *ty != given.element_type
                {
                    let given = given.without_layout();
                    return wrong(format!("{what} {n} is {given}, the handler's is of {}", ty.name()));
                }
            }
        }
        for declared in &self.attributes {
            match site.attributes.get(&declared.name) {
                None => return wrong(format!("there is no attribute `{}`", declared.name)),
                Some(attribute) if !(declared.fits)(attribute) => {
                    return wrong(format!("the attribute `{}` is no {}", declared.name, declared.what));
                }
                Some(_) => {}
            }
        }
        for name in &self.functions {
            if site.function(name).is_none() {
                return wrong(format!("there is no function `{name}`"));
            }
        }
        for name in &self.exports {
            if !matches!(site.attributes.get(name), Some(Attribute::Function(_))) {
                return wrong(format!("there is no attribute `{name}` that refers to a function"));
            }
        }
        let is_known = |name: &str| {
            self.attributes.iter().any(|d| d.name == name)
                || self.functions.iter().chain(&self.exports).any(|f| f == name)
        };
        match site.attributes.iter().find(|(name, _)| !self.takes_any_attributes && !is_known(name)) {
            Some((name, _)) => wrong(format!("the handler knows no attribute `{name}`")),
            None => Ok(()),
        }
    }
}

type Run = dyn Fn(&mut BoundCall<'_, '_>) -> Result<(), Error> + Send + Sync;

/// A signature with what computes it.
#[derive(Clone)]
pub struct Bound {
    signature: Binding,
    run: Arc<Run>,
}

impl Bound {
    /// The target.
    pub fn name(&self) -> &str {
        &self.signature.name
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.signature.fmt(f)
    }
}

impl Handler for Bound {
    fn instantiate(&self, site: &Arc<CallSite>) -> Result<Box<dyn Instance>, Error> {
        self.signature.check(site)?;
        Ok(Box::new(BoundInstance(Arc::clone(&self.run))))
    }
}

struct BoundInstance(Arc<Run>);

impl Instance for BoundInstance {
    fn execute(&self, context: &Context<'_>, operands: &[Leaf], results: &mut [Leaf]) -> Result<(), Error> {
        let array = |leaf: &Leaf| match leaf {
            Leaf::Array(array) => Some(array.clone()),
            Leaf::Token => None,
        };
        let arguments = operands.iter().filter_map(array).collect();
        let results = results.iter_mut().filter_map(|leaf| match leaf {
            Leaf::Array(array) => Some(array),
            Leaf::Token => None,
        });
        (self.0)(&mut BoundCall { context, arguments, results: results.collect() })
    }
}

/// An execution of a call whose signature fits. It lends what [`Context`] has.
#[derive(Debug)]
pub struct BoundCall<'c, 'a> {
    context: &'c Context<'a>,
    arguments: Vec<ArrayLiteral>,
    results: Vec<&'c mut ArrayLiteral>,
}

impl<'a> std::ops::Deref for BoundCall<'_, 'a> {
    type Target = Context<'a>;

    fn deref(&self) -> &Context<'a> {
        self.context
    }
}

impl BoundCall<'_, '_> {
    fn missing(&self, what: &str, index: usize) -> Error {
        self.site().error(Code::InvalidArgument, format_args!("there is no {what} {index} of this type"))
    }

    /// How many arguments there are.
    pub fn arguments(&self) -> usize {
        self.arguments.len()
    }

    /// How many results there are.
    pub fn results(&self) -> usize {
        self.results.len()
    }

    /// An argument; the copy shares its elements.
    ///
    /// # Errors
    /// There is none.
    pub fn argument_array(&self, index: usize) -> Result<ArrayLiteral, Error> {
        self.arguments.get(index).cloned().ok_or_else(|| self.missing("argument", index))
    }

    /// The elements of an argument, in row-major order.
    ///
    /// # Errors
    /// There is none of this type.
    pub fn argument<T: BufferOf>(&self, index: usize) -> Result<&[T], Error> {
        let elements = self.arguments.get(index).and_then(|array| T::slice(&array.buffer));
        elements.ok_or_else(|| self.missing("argument", index))
    }

    /// The elements of a result, in row-major order; zero at first.
    ///
    /// # Errors
    /// There is none of this type.
    pub fn result<T: BufferOf>(&mut self, index: usize) -> Result<&mut [T], Error> {
        let missing = self.missing("result", index);
        let array = self.results.get_mut(index);
        let elements = array.and_then(|array| T::slice_mut(Arc::make_mut(&mut array.buffer)));
        elements.map(Vec::as_mut_slice).ok_or(missing)
    }

    /// Sets a result as a whole.
    ///
    /// # Errors
    /// There is none of this shape.
    pub fn set_result(&mut self, index: usize, value: ArrayLiteral) -> Result<(), Error> {
        let missing = self.missing("result", index);
        let array = self.results.get_mut(index).ok_or_else(|| missing.clone())?;
        if array.shape() != value.shape() {
            return Err(missing);
        }
        **array = value;
        Ok(())
    }

    /// An attribute.
    ///
    /// # Errors
    /// There is none of this type.
    pub fn attribute<T: FromAttribute>(&self, name: &str) -> Result<T, Error> {
        let value = self.site().attributes.get(name).and_then(T::from_attribute);
        let missing = || {
            self.site()
                .error(Code::InvalidArgument, format_args!("there is no attribute `{name}`, {}", T::WHAT))
        };
        value.ok_or_else(missing)
    }

    /// Runs a function that the call refers to: see [`Context::call`].
    ///
    /// # Errors
    /// There is none of this name; as [`Context::call`].
    pub fn function(&self, name: &str, arguments: &[ArrayLiteral]) -> Result<Vec<ArrayLiteral>, Error> {
        let function = self.site().function(name);
        let missing =
            || self.site().error(Code::InvalidArgument, format_args!("there is no function `{name}`"));
        self.call(function.ok_or_else(missing)?, arguments)
    }
}
