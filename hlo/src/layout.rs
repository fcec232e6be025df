//! Layouts: the order of an array's elements in memory.
//!
//! Layouts change no value: an array's elements are addressed by their logical indices everywhere in this
//! project, and only `bitcast` reads memory order. They are kept whole because dumps carry them and compilers
//! need them. Source of the syntax: `xla/layout.cc`, `docs/tiled_layout.md` of openxla/xla.

use smallvec::SmallVec;

use crate::element_type::ElementType;
use crate::shape::Shape;

/// How a dimension is stored (XLA: `DimLevelType`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DimLevelType {
    /// `D`
    Dense,
    /// `C`
    Compressed,
    /// `S`
    Singleton,
    /// `H`
    LooseCompressed,
}

/// One dimension's storage: `D`, `C+`, `C~`, `C+~`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DimLevel {
    /// The kind.
    pub kind: DimLevelType,
    /// False where `+` follows: coordinates may repeat.
    pub unique: bool,
    /// False where `~` follows: coordinates are in no order.
    pub ordered: bool,
}

/// A dimension of a tile: a size, or `*` (combined with the next more minor one).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TileDim {
    /// A size.
    Size(i64),
    /// `*`
    Combine,
}

/// `SC(dim:i,j,...)`: where a dimension is split across memories.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SplitConfig {
    /// The dimension.
    pub dimension: i64,
    /// The split indices.
    pub indices: Vec<i64>,
}

/// A layout. `Layout::default()` is `{}` (rank 0).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Layout {
    /// Dimension numbers, the fastest varying first.
    pub minor_to_major: SmallVec<[i64; 4]>,
    /// `D(...)`; empty if all are dense.
    pub dim_levels: Vec<DimLevel>,
    /// `T(...)(...)`.
    pub tiles: Vec<Vec<TileDim>>,
    /// `L(n)`, in elements.
    pub tail_padding_alignment: Option<i64>,
    /// `#(type)`.
    pub index_type: Option<ElementType>,
    /// `*(type)`.
    pub pointer_type: Option<ElementType>,
    /// `E(n)`, in bits; packs sub-byte elements.
    pub element_size_in_bits: Option<i64>,
    /// `S(n)`: 0 default, 1 fast, 5 host, 6 unpinned host.
    pub memory_space: Option<i64>,
    /// `SC(...)`.
    pub split_configs: Vec<SplitConfig>,
    /// `P(shape)`.
    pub physical_shape: Option<Box<Shape>>,
    /// `M(n)`, in bytes.
    pub dynamic_shape_metadata_prefix_bytes: Option<i64>,
}

impl Layout {
    /// Row-major (the last dimension varies fastest): `{rank-1, ..., 0}`.
    pub fn row_major(rank: usize) -> Self {
        Self::from_minor_to_major((0..rank as i64).rev())
    }

    /// Only an order of dimensions.
    pub fn from_minor_to_major(order: impl IntoIterator<Item = i64>) -> Self {
        Self { minor_to_major: order.into_iter().collect(), ..Self::default() }
    }

    /// Whether elements in row-major index order are in memory order.
    pub fn is_row_major(&self) -> bool {
        self.minor_to_major.iter().rev().enumerate().all(|(i, &d)| d == i as i64)
    }
}
