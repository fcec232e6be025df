//! Attributes of instructions: what stands behind the operands, `key=value`.
//!
//! An attribute is a pair of an [`AttrKey`] and an [`AttrValue`]. Which keys an opcode takes, and which it
//! requires, is in the opcode table; [`COMMON`] keys go with every opcode. **Invariants:** an [`Attrs`] holds
//! each key once, sorted by key; the value's variant is the one that [`AttrKey::kind`] names (kept by the
//! parser and by [`Attrs::set`]). Whether a value makes sense for its instruction is for the verifier.

pub mod alias;
pub mod collective;
pub mod enums;
pub mod metadata;
pub mod misc;
pub mod sharding;
pub mod window;

use smallvec::SmallVec;

use crate::ids::ComputationId;
use crate::literal::ConstantValue;
use crate::shape::Shape;

pub use alias::{AliasEntry, AliasKind, BufferDonor, OperandAlias, OutputAlias};
pub use collective::{MeshAxes, ReplicaGroups};
pub use enums::*;
pub use metadata::{FileLocation, Metadata, StackFrame, StackTables};
pub use misc::{
    BackendConfig, Domain, FrontendAttributes, FrontendValue, OriginalTree, OriginalValue, ResultAccuracy,
    Sparsity, SparsitySide, Statistics,
};
pub use sharding::{
    AxisRef, DeviceAssignment, Mesh, NamedSharding, Sharding, ShardingKind, SubgroupType, TileSharding,
};
pub use window::{ConvDims, PaddingDim, SliceDim, Window, WindowDim};

/// A list of integers.
pub type Ints = SmallVec<[i64; 2]>;

macro_rules! define_attrs {
    ($($(#[$doc:meta])* $variant:ident = $text:literal : $kind:ident,)*) => {
        /// The keys of attributes. The order of the variants is the order in which a printer writes them
        /// (`reduce-scatter` alone has `use_global_device_ids` before `dimensions`).
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum AttrKey { $($(#[$doc])* $variant),* }

        impl AttrKey {
            /// All keys.
            pub const ALL: &'static [AttrKey] = &[$(AttrKey::$variant),*];

            /// The name in text. Two keys may share one ([`AttrKey::DotAlgorithm`],
            /// [`AttrKey::RngAlgorithm`]).
            pub const fn text(self) -> &'static str {
                match self { $(AttrKey::$variant => $text),* }
            }

            /// The kind of its value.
            pub const fn kind(self) -> AttrKind {
                match self { $(AttrKey::$variant => AttrKind::$kind),* }
            }
        }
    };
}

macro_rules! define_values {
    ($($(#[$doc:meta])* $variant:ident($ty:ty),)*) => {
        /// The kinds of values.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum AttrKind { $($(#[$doc])* $variant),* }

        /// The value of an attribute.
        #[derive(Clone, PartialEq, Debug)]
        pub enum AttrValue { $($(#[$doc])* $variant($ty)),* }

        impl AttrValue {
            /// Its kind.
            pub fn kind(&self) -> AttrKind {
                match self { $(AttrValue::$variant(_) => AttrKind::$variant),* }
            }
        }
    };
}

define_values! {
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float (`epsilon`), kept so that it prints back.
    Float(f64),
    /// `"..."`, unescaped.
    Str(Box<str>),
    /// `{1,2}`.
    Ints(Ints),
    /// `{{0,1},{1,0}}`.
    IntLists(Box<[Ints]>),
    /// `{true,false}`.
    Bools(Box<[bool]>),
    /// `%name`, or a computation given in place.
    Computation(ComputationId),
    /// `{%a, %b}`.
    Computations(Box<[ComputationId]>),
    /// A literal.
    Literal(ConstantValue),
    /// A shape.
    Shape(Box<Shape>),
    /// `{shape, shape}`.
    Shapes(Box<[Shape]>),
    /// `{size=3x3 pad=1_1x1_1}`.
    Window(Box<Window>),
    /// `b01f_01io->b01f`.
    ConvDims(Box<ConvDims>),
    /// `0_1_2x0_0`.
    Padding(Box<[PaddingDim]>),
    /// `{[0:4], [1:9:2]}`.
    Slices(Box<[SliceDim]>),
    /// One of the three forms.
    ReplicaGroups(Box<ReplicaGroups>),
    /// `output_to_operand_aliasing`.
    OperandAliasing(Box<[OperandAlias]>),
    /// A sharding.
    Sharding(Box<Sharding>),
    /// `{key="value"}`.
    FrontendAttributes(Box<FrontendAttributes>),
    /// `{op_name="..."}`.
    Metadata(Box<Metadata>),
    /// A string or a brace body, verbatim.
    BackendConfig(Box<BackendConfig>),
    /// `origin`.
    OriginalValue(Box<OriginalValue>),
    /// `statistics`.
    Statistics(Box<Statistics>),
    /// `result_accuracy`.
    ResultAccuracy(ResultAccuracy),
    /// `sparsity_config`.
    Sparsity(Box<Sparsity>),
    /// `domain`.
    Domain(Box<Domain>),
    /// `{highest,default}`.
    Precisions(Box<[Precision]>),
    /// `algorithm=dot_...`.
    DotAlgorithm(DotAlgorithm),
    /// `algorithm=rng_...`.
    RngAlgorithm(RngAlgorithm),
    /// `distribution=...`.
    RngDistribution(RngDistribution),
    /// `direction=...`.
    Direction(Direction),
    /// `type=...`.
    CompareType(CompareType),
    /// `kind=...`.
    FusionKind(FusionKind),
    /// `fft_type=...`.
    FftType(FftType),
    /// `transpose_a=...`.
    Transpose(Transpose),
    /// `padding_type=...`.
    PaddingType(PaddingType),
    /// `schedule=...`.
    Schedule(Schedule),
    /// `api_version=...`.
    ApiVersion(ApiVersion),
    /// `convolution_kind=...`.
    ConvKind(ConvKind),
    /// `mode=...` of a collective.
    CollectiveMode(CollectiveMode),
}

define_attrs! {
    // In text the operand.
    /// The literal of a `constant`; in text it is the operand.
    ConstantValue = "constant" : Literal,
    /// The number of a `parameter`; in text it is the operand.
    ParameterNumber = "parameter" : Int,

    // Of one opcode or family.
    /// `parameter`
    ParameterReplication = "parameter_replication" : Bools,
    /// `batch-norm-*`
    Epsilon = "epsilon" : Float,
    /// `batch-norm-*`
    FeatureIndex = "feature_index" : Int,
    /// `fft`
    FftType = "fft_type" : FftType,
    /// `fft`
    FftLength = "fft_length" : Ints,
    /// `compare`
    Direction = "direction" : Direction,
    /// `compare`
    CompareType = "type" : CompareType,
    /// `triangular-solve`
    LeftSide = "left_side" : Bool,
    /// `triangular-solve`, `cholesky`
    Lower = "lower" : Bool,
    /// `triangular-solve`
    UnitDiagonal = "unit_diagonal" : Bool,
    /// `triangular-solve`
    TransposeA = "transpose_a" : Transpose,
    /// `topk`
    K = "k" : Int,
    /// `topk`
    Largest = "largest" : Bool,
    /// collectives, `send`, `recv`
    ChannelId = "channel_id" : Int,
    /// `send`, `recv`
    IsHostTransfer = "is_host_transfer" : Bool,
    /// collectives
    ReplicaGroups = "replica_groups" : ReplicaGroups,
    /// `collective-permute`
    SourceTargetPairs = "source_target_pairs" : IntLists,
    /// `collective-permute` in place
    PermuteSliceSizes = "slice_sizes" : IntLists,
    /// collectives
    ConstrainLayout = "constrain_layout" : Bool,
    /// `collective-broadcast`
    HasDynamicRoot = "has_dynamic_root" : Bool,
    /// `broadcast`, `concatenate`, `reduce`, `transpose`, `sort`, collectives, ...
    Dimensions = "dimensions" : Ints,
    /// collectives
    UseGlobalDeviceIds = "use_global_device_ids" : Bool,
    /// `all-reduce`
    CollectiveMode = "mode" : CollectiveMode,
    /// `scan`
    NumCarries = "num_carries" : Int,
    /// `scan`
    IsReverse = "is_reverse" : Bool,
    /// `scan`
    IsAssociative = "is_associative" : Bool,
    /// `sort`, `topk`
    IsStable = "is_stable" : Bool,
    /// `iota`
    IotaDimension = "iota_dimension" : Int,
    /// `window`
    Window = "window" : Window,
    /// `convolution`
    DimLabels = "dim_labels" : ConvDims,
    /// `convolution`
    FeatureGroupCount = "feature_group_count" : Int,
    /// `convolution`
    BatchGroupCount = "batch_group_count" : Int,
    /// `convolution`
    ConvKind = "convolution_kind" : ConvKind,
    /// dot family
    LhsBatchDims = "lhs_batch_dims" : Ints,
    /// dot family
    LhsContractingDims = "lhs_contracting_dims" : Ints,
    /// dot family
    RhsBatchDims = "rhs_batch_dims" : Ints,
    /// dot family
    RhsContractingDims = "rhs_contracting_dims" : Ints,
    /// `ragged-dot`
    LhsRaggedDims = "lhs_ragged_dims" : Ints,
    /// `ragged-dot`
    RhsGroupDims = "rhs_group_dims" : Ints,
    /// dot family, `convolution`, `custom-call`
    OperandPrecision = "operand_precision" : Precisions,
    /// dot family, `convolution`
    DotAlgorithm = "algorithm" : DotAlgorithm,
    /// `convolution`
    SparsityConfig = "sparsity_config" : Sparsity,
    /// `custom-call`
    PaddingType = "padding_type" : PaddingType,
    /// `custom-call`
    CustomCallTarget = "custom_call_target" : Str,
    /// `custom-call`
    OperandLayoutConstraints = "operand_layout_constraints" : Shapes,
    /// `custom-call`
    CustomCallHasSideEffect = "custom_call_has_side_effect" : Bool,
    /// `custom-call`
    Literal = "literal" : Literal,
    /// `async-start`
    AsyncExecutionThread = "async_execution_thread" : Str,
    /// `fusion`
    FusionKind = "kind" : FusionKind,
    /// `custom-call`, `fusion`, `async-*`
    OutputToOperandAliasing = "output_to_operand_aliasing" : OperandAliasing,
    /// `custom-call`
    Schedule = "schedule" : Schedule,
    /// `custom-call`
    ApiVersion = "api_version" : ApiVersion,
    /// `slice`
    Slice = "slice" : Slices,
    /// `dynamic-slice`
    DynamicSliceSizes = "dynamic_slice_sizes" : Ints,
    /// `pad`
    Padding = "padding" : Padding,
    /// `reshape`
    InferredDimension = "inferred_dimension" : Int,
    /// `gather`
    OffsetDims = "offset_dims" : Ints,
    /// `gather`
    CollapsedSliceDims = "collapsed_slice_dims" : Ints,
    /// `gather`
    StartIndexMap = "start_index_map" : Ints,
    /// `scatter`
    UpdateWindowDims = "update_window_dims" : Ints,
    /// `scatter`
    InsertedWindowDims = "inserted_window_dims" : Ints,
    /// `scatter`
    ScatterDimsToOperandDims = "scatter_dims_to_operand_dims" : Ints,
    /// `gather`
    OperandBatchingDims = "operand_batching_dims" : Ints,
    /// `gather`
    StartIndicesBatchingDims = "start_indices_batching_dims" : Ints,
    /// `scatter`
    InputBatchingDims = "input_batching_dims" : Ints,
    /// `scatter`
    ScatterIndicesBatchingDims = "scatter_indices_batching_dims" : Ints,
    /// `gather`, `scatter`
    IndexVectorDim = "index_vector_dim" : Int,
    /// `gather`
    SliceSizes = "slice_sizes" : Ints,
    /// `gather`, `scatter`
    IndicesAreSorted = "indices_are_sorted" : Bool,
    /// `scatter`
    UniqueIndices = "unique_indices" : Bool,
    /// `get-tuple-element`
    Index = "index" : Int,
    /// `reduce-precision`
    ExponentBits = "exponent_bits" : Int,
    /// `reduce-precision`
    MantissaBits = "mantissa_bits" : Int,
    /// `rng`
    Distribution = "distribution" : RngDistribution,
    /// `rng`, `rng-get-and-update-state`: which of the module's it is, for its random numbers. Texts do not
    /// have it: see [`crate::rng_ordinal`].
    RngOrdinal = "rng_ordinal" : Int,
    /// `rng-get-and-update-state`
    Delta = "delta" : Int,
    /// `rng-bit-generator`
    RngAlgorithm = "algorithm" : RngAlgorithm,
    /// `infeed`
    InfeedConfig = "infeed_config" : Str,
    /// `outfeed`
    OutfeedShape = "outfeed_shape" : Shape,
    /// `outfeed`
    OutfeedConfig = "outfeed_config" : Str,
    /// `copy-start`
    CrossProgramPrefetchIndex = "cross_program_prefetch_index" : Int,
    /// `domain`
    Domain = "domain" : Domain,

    // Called computations.
    /// `while`
    Condition = "condition" : Computation,
    /// `while`
    Body = "body" : Computation,
    /// `select-and-scatter`
    Select = "select" : Computation,
    /// `select-and-scatter`
    Scatter = "scatter" : Computation,
    /// `conditional`
    TrueComputation = "true_computation" : Computation,
    /// `conditional`
    FalseComputation = "false_computation" : Computation,
    /// `conditional`
    BranchComputations = "branch_computations" : Computations,
    /// `reduce`, `call`, `sort`, `map`, ...
    ToApply = "to_apply" : Computation,
    /// `fusion`, `async-start`
    Calls = "calls" : Computation,
    /// `custom-call`
    CalledComputations = "called_computations" : Computations,
    /// `call`
    IsComposite = "is_composite" : Bool,

    // Common to all opcodes; `control-predecessors` is printed before `statistics`.
    /// How the value is divided among devices.
    Sharding = "sharding" : Sharding,
    /// User data.
    FrontendAttributes = "frontend_attributes" : FrontendAttributes,
    /// Numbers for visualization.
    Statistics = "statistics" : Statistics,
    /// Accuracy asked of an elementary function.
    ResultAccuracy = "result_accuracy" : ResultAccuracy,
    /// Which value of the original program this is.
    Origin = "origin" : OriginalValue,
    /// Where it came from.
    Metadata = "metadata" : Metadata,
    /// Opaque data of a backend.
    BackendConfig = "backend_config" : BackendConfig,
}

/// Keys that every opcode takes. (`control-predecessors` is common too; it is a field of
/// [`Instruction`](crate::Instruction), because it holds instruction ids.)
pub const COMMON: &[AttrKey] = &[
    AttrKey::Sharding,
    AttrKey::FrontendAttributes,
    AttrKey::ParameterReplication,
    AttrKey::ResultAccuracy,
    AttrKey::Origin,
    AttrKey::Statistics,
    AttrKey::Metadata,
    AttrKey::BackendConfig,
];

/// The attributes of one instruction, sorted by key.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Attrs(SmallVec<[(AttrKey, AttrValue); 2]>);

impl Attrs {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of `key`.
    pub fn get(&self, key: AttrKey) -> Option<&AttrValue> {
        self.0.binary_search_by_key(&key, |e| e.0).ok().map(|i| &self.0[i].1)
    }

    /// The value of `key`, to change it in place (its kind must stay).
    pub fn get_mut(&mut self, key: AttrKey) -> Option<&mut AttrValue> {
        self.0.binary_search_by_key(&key, |e| e.0).ok().map(|i| &mut self.0[i].1)
    }

    /// Adds or replaces. Panics if the value is not of the key's kind: that is a mistake in a program, not in
    /// an input.
    pub fn set(&mut self, key: AttrKey, value: AttrValue) {
        assert_eq!(key.kind(), value.kind(), "attribute {} has another kind of value", key.text());
        match self.0.binary_search_by_key(&key, |e| e.0) {
            Ok(i) => self.0[i].1 = value,
            Err(i) => self.0.insert(i, (key, value)),
        }
    }

    /// Adds or replaces, for building in one expression.
    #[must_use]
    pub fn with(mut self, key: AttrKey, value: AttrValue) -> Self {
        self.set(key, value);
        self
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: AttrKey) -> Option<AttrValue> {
        self.0.binary_search_by_key(&key, |e| e.0).ok().map(|i| self.0.remove(i).1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All, in key order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (AttrKey, &AttrValue)> {
        self.0.iter().map(|(k, v)| (*k, v))
    }

    /// The computations that are named by attributes, in key order: `condition` before `body`, branches in
    /// order.
    pub fn called_computations(&self) -> SmallVec<[ComputationId; 2]> {
        let mut called = SmallVec::new();
        for (_, value) in self.iter() {
            if let AttrValue::Computation(c) = value {
                called.push(*c);
            } else if let AttrValue::Computations(cs) = value {
                called.extend_from_slice(cs);
            }
        }
        called
    }

    /// Replaces each called computation by what `f` makes of it.
    pub fn map_computations(&mut self, mut f: impl FnMut(ComputationId) -> ComputationId) {
        for (_, value) in &mut self.0 {
            if let AttrValue::Computation(c) = value {
                *c = f(*c);
            } else if let AttrValue::Computations(cs) = value {
                cs.iter_mut().for_each(|c| *c = f(*c));
            }
        }
    }

    /// An integer attribute.
    pub fn int(&self, key: AttrKey) -> Option<i64> {
        if let Some(AttrValue::Int(v)) = self.get(key) { Some(*v) } else { None }
    }

    /// A boolean attribute, `false` if absent (no opcode's boolean defaults to true but `topk`'s, see
    /// [`Attrs::bool_or`]).
    pub fn bool(&self, key: AttrKey) -> bool {
        self.bool_or(key, false)
    }

    /// A boolean attribute with its default.
    pub fn bool_or(&self, key: AttrKey, default: bool) -> bool {
        if let Some(AttrValue::Bool(v)) = self.get(key) { *v } else { default }
    }

    /// A float attribute.
    pub fn float(&self, key: AttrKey) -> Option<f64> {
        if let Some(AttrValue::Float(v)) = self.get(key) { Some(*v) } else { None }
    }

    /// A list of integers.
    pub fn ints(&self, key: AttrKey) -> Option<&[i64]> {
        if let Some(AttrValue::Ints(v)) = self.get(key) { Some(v) } else { None }
    }

    /// A list of integers, empty if absent.
    pub fn ints_or_empty(&self, key: AttrKey) -> &[i64] {
        self.ints(key).unwrap_or(&[])
    }

    /// Lists of integers.
    pub fn int_lists(&self, key: AttrKey) -> Option<&[Ints]> {
        if let Some(AttrValue::IntLists(v)) = self.get(key) { Some(v) } else { None }
    }

    /// A string.
    pub fn str(&self, key: AttrKey) -> Option<&str> {
        if let Some(AttrValue::Str(v)) = self.get(key) { Some(v) } else { None }
    }

    /// A computation.
    pub fn computation(&self, key: AttrKey) -> Option<ComputationId> {
        if let Some(AttrValue::Computation(v)) = self.get(key) { Some(*v) } else { None }
    }

    /// Several computations.
    pub fn computations(&self, key: AttrKey) -> Option<&[ComputationId]> {
        if let Some(AttrValue::Computations(v)) = self.get(key) { Some(v) } else { None }
    }

    /// Whether a `compare` of floats is by the total order of IEEE 754, NaNs included.
    pub fn is_total_order(&self) -> bool {
        self.compare_type() == Some(&CompareType::TotalOrder)
    }
}

macro_rules! typed_getters {
    ($($(#[$doc:meta])* $name:ident: $key:ident => $kind:ident -> $ty:ty;)*) => {
        impl Attrs {
            $($(#[$doc])*
            pub fn $name(&self) -> Option<&$ty> {
                if let Some(AttrValue::$kind(v)) = self.get(AttrKey::$key) { Some(v) } else { None }
            })*
        }
    };
}

typed_getters! {
    /// The value of a `constant`.
    constant_value: ConstantValue => Literal -> ConstantValue;
    /// `window`
    window: Window => Window -> Window;
    /// `dim_labels`
    conv_dims: DimLabels => ConvDims -> ConvDims;
    /// `padding`
    padding: Padding => Padding -> [PaddingDim];
    /// `slice`
    slices: Slice => Slices -> [SliceDim];
    /// `replica_groups`
    replica_groups: ReplicaGroups => ReplicaGroups -> ReplicaGroups;
    /// `sharding`
    sharding: Sharding => Sharding -> Sharding;
    /// `frontend_attributes`
    frontend_attributes: FrontendAttributes => FrontendAttributes -> FrontendAttributes;
    /// `metadata`
    metadata: Metadata => Metadata -> Metadata;
    /// `backend_config`
    backend_config: BackendConfig => BackendConfig -> BackendConfig;
    /// `direction`
    direction: Direction => Direction -> Direction;
    /// `type`
    compare_type: CompareType => CompareType -> CompareType;
    /// `kind`
    fusion_kind: FusionKind => FusionKind -> FusionKind;
    /// `fft_type`
    fft_type: FftType => FftType -> FftType;
    /// `transpose_a`
    transpose: TransposeA => Transpose -> Transpose;
    /// `distribution`
    distribution: Distribution => RngDistribution -> RngDistribution;
    /// `algorithm` of a dot
    dot_algorithm: DotAlgorithm => DotAlgorithm -> DotAlgorithm;
    /// `algorithm` of a random generator
    rng_algorithm: RngAlgorithm => RngAlgorithm -> RngAlgorithm;
    /// `operand_precision`
    precisions: OperandPrecision => Precisions -> [Precision];
    /// `sparsity_config`
    sparsity: SparsityConfig => Sparsity -> Sparsity;
    /// `result_accuracy`
    result_accuracy: ResultAccuracy => ResultAccuracy -> ResultAccuracy;
    /// `output_to_operand_aliasing`
    operand_aliasing: OutputToOperandAliasing => OperandAliasing -> [OperandAlias];
    /// `origin`
    original_value: Origin => OriginalValue -> OriginalValue;
}
