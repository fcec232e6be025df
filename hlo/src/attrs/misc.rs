//! Attribute values that have no larger family.

use super::Ints;
use super::sharding::Sharding;

/// `frontend_attributes={a="x",b={...}}`, in the order of the text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FrontendAttributes {
    /// Key and value.
    pub entries: Vec<(Box<str>, FrontendValue)>,
}

/// The value of a frontend attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FrontendValue {
    /// `"..."`, unescaped.
    Str(Box<str>),
    /// `{...}` or a bare word, verbatim with its braces.
    Raw(Box<str>),
}

impl FrontendAttributes {
    /// The text of the value of `key` (of a raw value with its braces).
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|(k, _)| &**k == key).map(|(_, v)| match v {
            FrontendValue::Str(s) | FrontendValue::Raw(s) => &**s,
        })
    }
}

/// `backend_config`, verbatim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BackendConfig {
    /// `"..."`, unescaped.
    Str(Box<str>),
    /// `{...}` with its braces, as written.
    Raw(Box<str>),
}

impl BackendConfig {
    /// The text inside.
    pub fn text(&self) -> &str {
        match self {
            BackendConfig::Str(s) | BackendConfig::Raw(s) => s,
        }
    }
}

/// `origin={...}`: which values of the original program an instruction's results are
/// (`xla/hlo/ir/hlo_original_value.h`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OriginalValue {
    /// `[synthetic_call]`
    SyntheticCall,
    /// A tree of the form of the result's shape.
    Tree(OriginalTree),
}

/// A node of an original value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OriginalTree {
    /// `(a, b)`: one for each tuple element.
    Tuple(Vec<OriginalTree>),
    /// `{"name" {0}}`; `None` is `{}`: nothing known.
    Leaf(Option<(Box<str>, Ints)>),
}

/// `statistics={visualizing_index=1,name=2.5}`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Statistics {
    /// Which one to show.
    pub visualizing_index: i64,
    /// Names and values.
    pub values: Vec<(Box<str>, f64)>,
}

/// `result_accuracy={...}`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ResultAccuracy {
    /// `mode=default`
    Default,
    /// `mode=highest`
    Highest,
    /// `tolerance={atol=,rtol=,ulps=}`
    Tolerance {
        /// Absolute.
        atol: f64,
        /// Relative.
        rtol: f64,
        /// In units in the last place.
        ulps: i64,
    },
}

/// `sparsity_config={lhs={...} rhs={...}}` of a convolution.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sparsity {
    /// Of the left operand.
    pub lhs: Option<SparsitySide>,
    /// Of the right operand.
    pub rhs: Option<SparsitySide>,
}

/// `{sparsity=1x4 dimension=1 stride=1 idx=2}`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SparsitySide {
    /// Kept elements of a block.
    pub num_non_zero: i64,
    /// Elements of a block.
    pub block_size: i64,
    /// The sparse dimension.
    pub dimension: i64,
    /// Distance between elements of a block.
    pub stride: Option<i64>,
    /// Operand that holds the indices.
    pub idx: Option<i64>,
}

/// `domain={kind="sharding", entry={...}, exit={...}}`.
#[derive(Clone, PartialEq, Debug)]
pub struct Domain {
    /// The kind.
    pub kind: Box<str>,
    /// Sharding on the operand's side.
    pub entry: Sharding,
    /// Sharding on the users' side.
    pub exit: Sharding,
}
