//! The table of opcodes: every opcode is declared here, once.
//!
//! A row says: variant, name in text, number of operands, numeric class, family, flags, and the attributes it
//! takes (`!` marks required ones). Parser, printer, verifier, generator, coverage and documentation read the
//! table; *behaviour* lives in one exhaustive `match` a stage, so a new opcode is one row and the arms that
//! the compiler then asks for. The names are XLA's (`xla/hlo/ir/hlo_opcode.h`).

use crate::attrs::AttrKey;
use crate::element_type::ElementType;

/// How many operands an opcode takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arity {
    /// As many.
    Exactly(usize),
    /// As many or more.
    AtLeast(usize),
}

impl Arity {
    /// Whether `n` operands are right.
    pub const fn accepts(self, n: usize) -> bool {
        match self {
            Arity::Exactly(k) => n == k,
            Arity::AtLeast(k) => n >= k,
        }
    }
}

/// What a correct implementation of an opcode may compute, relative to the exact result; a row of the table
/// gives one of these for all element types, [`Opcode::numeric`] the [`Numeric`] of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NumericRow {
    /// One right answer, in every type.
    Exact,
    /// One right answer in real types; within `n` units of the last place of the modulus in complex ones (0:
    /// exact by parts).
    ExactReal(u8),
    /// Within `n` ulp (f32 and f64; 1 after rounding in narrower types), by modulus in complex types.
    Elementary(u8),
    /// A sum: order and accumulator matter.
    Sum,
    /// As the computation that it applies says.
    Region,
    /// As the called computation's instructions say.
    Called,
    /// Known to nobody but the target of a custom call.
    Opaque,
}

/// What a correct implementation may compute, for one element type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Numeric {
    /// One right answer.
    Exact,
    /// Within so many units in the last place of each element.
    Ulp(u8),
    /// Complex: within that many units in the last place of the modulus.
    Normwise(u8),
    /// A sum of products or of terms.
    Sum,
    /// As the applied computation says.
    Region,
    /// As the called computation says.
    Called,
    /// Unknown.
    Opaque,
}

/// What opcodes do, roughly: those of a family go the same way in most stages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// Each element of the result is computed from the elements of the operands at the same index.
    Elementwise,
    /// The same bits in another type or shape.
    Bits,
    /// Elements of operands (or counts) at other indices.
    Movement,
    /// Sizes known at run time, and what depends on them.
    Sizes,
    /// Sums of products.
    Contraction,
    /// Applies a computation to elements.
    Region,
    /// Sorts or selects by order.
    Order,
    /// Batch normalizations.
    Normalization,
    /// Factors and solves.
    LinearAlgebra,
    /// Fourier transforms.
    Transform,
    /// Random bits and numbers.
    Random,
    /// Names of values, and constants: nothing is computed.
    Structure,
    /// Runs computations.
    Control,
    /// Begins what another instruction ends.
    Async,
    /// Devices together.
    Collective,
    /// The number of the device.
    DeviceNumber,
    /// What comes from a host or another program, or goes there.
    Host,
    /// Whatever its target says.
    CustomCall,
}

/// One attribute that an opcode takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttrSlot {
    /// Which.
    pub key: AttrKey,
    /// Whether it must be there.
    pub required: bool,
}

/// Yes-or-no facts of an opcode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags {
    /// Each element of the result depends on the elements of the operands at the same index.
    pub elementwise: bool,
    /// The two operands may be swapped (but for some of [`Opcode::commutes`]).
    pub commutative: bool,
    /// Must not be removed, duplicated or reordered freely.
    pub side_effect: bool,
    /// Communicates among devices.
    pub collective: bool,
}

/// Calls `$callback!` with the table.
#[macro_export]
macro_rules! for_each_opcode {
    ($callback:ident) => {
        $callback! {
            /// `|x|`; of a complex number its modulus, a real.
            Abs "abs" Exactly(1) ExactReal(4) Elementwise [elementwise] [],
            /// Arc cosine.
            Acos "acos" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// Inverse hyperbolic cosine.
            Acosh "acosh" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// Arc sine.
            Asin "asin" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// Inverse hyperbolic sine.
            Asinh "asinh" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// Inverse hyperbolic tangent.
            Atanh "atanh" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// Cube root.
            Cbrt "cbrt" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// Round up.
            Ceil "ceil" Exactly(1) Exact Elementwise [elementwise] [],
            /// Conversion to the element type of the result.
            Convert "convert" Exactly(1) Exact Elementwise [elementwise] [],
            /// Cosine.
            Cosine "cosine" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// Hyperbolic cosine.
            Cosh "cosh" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// Leading zero bits of an integer.
            CountLeadingZeros "count-leading-zeros" Exactly(1) Exact Elementwise [elementwise] [],
            /// Error function.
            Erf "erf" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// `e^x`.
            Exponential "exponential" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// `e^x - 1`.
            ExponentialMinusOne "exponential-minus-one" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// Round down.
            Floor "floor" Exactly(1) Exact Elementwise [elementwise] [],
            /// Imaginary part.
            Imag "imag" Exactly(1) Exact Elementwise [elementwise] [],
            /// Whether a float is neither infinite nor NaN.
            IsFinite "is-finite" Exactly(1) Exact Elementwise [elementwise] [],
            /// Natural logarithm.
            Log "log" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// `log(1 + x)`.
            LogPlusOne "log-plus-one" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// `1 / (1 + e^-x)`.
            Logistic "logistic" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// `-x`.
            Negate "negate" Exactly(1) Exact Elementwise [elementwise] [],
            /// Complement of an integer, negation of a predicate.
            Not "not" Exactly(1) Exact Elementwise [elementwise] [],
            /// Number of one bits.
            Popcnt "popcnt" Exactly(1) Exact Elementwise [elementwise] [],
            /// Real part.
            Real "real" Exactly(1) Exact Elementwise [elementwise] [],
            /// Rounds to fewer exponent and mantissa bits, in the same type.
            ReducePrecision "reduce-precision" Exactly(1) Exact Elementwise [elementwise] [!ExponentBits, !MantissaBits],
            /// Round to the nearest integer, ties away from zero.
            RoundNearestAfz "round-nearest-afz" Exactly(1) Exact Elementwise [elementwise] [],
            /// Round to the nearest integer, ties to even.
            RoundNearestEven "round-nearest-even" Exactly(1) Exact Elementwise [elementwise] [],
            /// `1 / sqrt(x)`.
            Rsqrt "rsqrt" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// -1, 0 or 1; of a complex number `z / |z|`.
            Sign "sign" Exactly(1) ExactReal(4) Elementwise [elementwise] [],
            /// Sine.
            Sine "sine" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// Hyperbolic sine.
            Sinh "sinh" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// Square root.
            Sqrt "sqrt" Exactly(1) ExactReal(4) Elementwise [elementwise] [],
            /// Tangent.
            Tan "tan" Exactly(1) Elementary(4) Elementwise [elementwise] [],
            /// Hyperbolic tangent.
            Tanh "tanh" Exactly(1) Elementary(2) Elementwise [elementwise] [],
            /// `a + b`.
            Add "add" Exactly(2) ExactReal(0) Elementwise [elementwise, commutative] [],
            /// Bitwise and.
            And "and" Exactly(2) Exact Elementwise [elementwise, commutative] [],
            /// Angle of the point (b, a).
            Atan2 "atan2" Exactly(2) Elementary(4) Elementwise [elementwise] [],
            /// `a direction b`, as `pred`.
            Compare "compare" Exactly(2) Exact Elementwise [elementwise] [!Direction, CompareType],
            /// A complex number from its parts.
            Complex "complex" Exactly(2) Exact Elementwise [elementwise] [],
            /// `a / b`.
            Divide "divide" Exactly(2) ExactReal(4) Elementwise [elementwise] [],
            /// IEEE 754-2019 maximum: NaN wins, -0 < +0.
            Maximum "maximum" Exactly(2) Exact Elementwise [elementwise, commutative] [],
            /// IEEE 754-2019 minimum: NaN wins, -0 < +0.
            Minimum "minimum" Exactly(2) Exact Elementwise [elementwise, commutative] [],
            /// High half of an integer product.
            Mulhi "mulhi" Exactly(2) Exact Elementwise [elementwise, commutative] [],
            /// `a * b`.
            Multiply "multiply" Exactly(2) ExactReal(4) Elementwise [elementwise, commutative] [],
            /// Bitwise or.
            Or "or" Exactly(2) Exact Elementwise [elementwise, commutative] [],
            /// `a ^ b`.
            Power "power" Exactly(2) Elementary(4) Elementwise [elementwise] [],
            /// Remainder with the sign of the dividend.
            Remainder "remainder" Exactly(2) Exact Elementwise [elementwise] [],
            /// `a << b`.
            ShiftLeft "shift-left" Exactly(2) Exact Elementwise [elementwise] [],
            /// `a >> b`, filled with the sign.
            ShiftRightArithmetic "shift-right-arithmetic" Exactly(2) Exact Elementwise [elementwise] [],
            /// `a >> b`, filled with zeros.
            ShiftRightLogical "shift-right-logical" Exactly(2) Exact Elementwise [elementwise] [],
            /// Conversion to an integer, rounded by random bits.
            StochasticConvert "stochastic-convert" Exactly(2) Exact Elementwise [elementwise] [],
            /// `a - b`.
            Subtract "subtract" Exactly(2) ExactReal(0) Elementwise [elementwise] [],
            /// Bitwise exclusive or.
            Xor "xor" Exactly(2) Exact Elementwise [elementwise, commutative] [],
            /// `min(high, max(low, x))` of (low, x, high); the bounds may be scalars.
            Clamp "clamp" Exactly(3) Exact Elementwise [elementwise] [],
            /// `b` where the predicate holds, else `c`; the predicate may be a scalar.
            Select "select" Exactly(3) Exact Elementwise [elementwise] [],
            /// The same bytes in memory as another shape; depends on layouts.
            Bitcast "bitcast" Exactly(1) Exact Bits [] [],
            /// The same bits as another element type; a change of width moves the last dimension.
            BitcastConvert "bitcast-convert" Exactly(1) Exact Bits [] [],
            /// Repeats along new dimensions.
            Broadcast "broadcast" Exactly(1) Exact Movement [] [Dimensions],
            /// Joins along one dimension.
            Concatenate "concatenate" AtLeast(1) Exact Movement [] [!Dimensions],
            /// The operand.
            Copy "copy" Exactly(1) Exact Movement [] [],
            /// A reshape whose dynamic sizes are operands.
            DynamicReshape "dynamic-reshape" AtLeast(1) Exact Sizes [] [],
            /// A slice that starts at computed, clamped indices.
            DynamicSlice "dynamic-slice" AtLeast(1) Exact Movement [] [!DynamicSliceSizes],
            /// The operand with a slice replaced at computed, clamped indices.
            DynamicUpdateSlice "dynamic-update-slice" AtLeast(2) Exact Movement [] [],
            /// Slices at many computed, clamped indices.
            Gather "gather" Exactly(2) Exact Movement [] [!OffsetDims, !CollapsedSliceDims, !StartIndexMap, OperandBatchingDims, StartIndicesBatchingDims, !IndexVectorDim, !SliceSizes, IndicesAreSorted],
            /// The size of a dimension at run time, `s32`.
            GetDimensionSize "get-dimension-size" Exactly(1) Exact Sizes [] [!Dimensions],
            /// Counts along a dimension.
            Iota "iota" Exactly(0) Exact Movement [] [!IotaDimension],
            /// Adds or cuts elements at the edges and between.
            Pad "pad" Exactly(2) Exact Movement [] [!Padding],
            /// The same elements in row-major order in other dimensions.
            Reshape "reshape" Exactly(1) Exact Movement [] [InferredDimension],
            /// Reverses dimensions.
            Reverse "reverse" Exactly(1) Exact Movement [] [!Dimensions],
            /// Combines updates into slices at computed indices; windows out of bounds are dropped.
            Scatter "scatter" AtLeast(3) Region Region [] [!UpdateWindowDims, !InsertedWindowDims, !ScatterDimsToOperandDims, InputBatchingDims, ScatterIndicesBatchingDims, !IndexVectorDim, IndicesAreSorted, UniqueIndices, !ToApply],
            /// The operand with another run-time size of a dimension.
            SetDimensionSize "set-dimension-size" Exactly(2) Exact Sizes [] [!Dimensions],
            /// A strided box.
            Slice "slice" Exactly(1) Exact Movement [] [!Slice],
            /// Permutes dimensions.
            Transpose "transpose" Exactly(1) Exact Movement [] [!Dimensions],
            /// Convolution.
            Convolution "convolution" AtLeast(2) Sum Contraction [] [Window, !DimLabels, FeatureGroupCount, BatchGroupCount, ConvKind, SparsityConfig, OperandPrecision, DotAlgorithm],
            /// Sums of products over contracting dimensions.
            Dot "dot" AtLeast(2) Sum Contraction [] [LhsBatchDims, LhsContractingDims, RhsBatchDims, RhsContractingDims, OperandPrecision, DotAlgorithm],
            /// A dot whose rows fall into groups of run-time sizes.
            RaggedDot "ragged-dot" Exactly(3) Sum Contraction [] [LhsBatchDims, LhsContractingDims, RhsBatchDims, RhsContractingDims, !LhsRaggedDims, RhsGroupDims, OperandPrecision, DotAlgorithm],
            /// A dot of operands scaled in blocks.
            ScaledDot "scaled-dot" Exactly(4) Sum Contraction [] [LhsBatchDims, LhsContractingDims, RhsBatchDims, RhsContractingDims, OperandPrecision, DotAlgorithm],
            /// A computation applied to each element.
            Map "map" AtLeast(1) Region Region [] [Dimensions, !ToApply],
            /// Folds dimensions by a computation.
            Reduce "reduce" AtLeast(2) Region Region [] [!Dimensions, !ToApply],
            /// Folds windows by a computation.
            ReduceWindow "reduce-window" AtLeast(2) Region Region [] [Window, !ToApply],
            /// Runs a computation along a dimension, carrying values.
            Scan "scan" AtLeast(1) Region Region [] [!Dimensions, IsReverse, IsAssociative, !NumCarries, !ToApply],
            /// Scatters each source element to the selected element of its window.
            SelectAndScatter "select-and-scatter" Exactly(3) Region Region [] [Window, !Select, !Scatter],
            /// Sorts along a dimension by a comparator.
            Sort "sort" AtLeast(1) Exact Order [] [!Dimensions, IsStable, !ToApply],
            /// The k largest or smallest elements of each row, and their indices.
            Topk "topk" Exactly(1) Exact Order [] [!K, Largest, IsStable],
            /// Gradient of batch normalization.
            BatchNormGrad "batch-norm-grad" Exactly(5) Sum Normalization [] [!Epsilon, !FeatureIndex],
            /// Batch normalization with given statistics.
            BatchNormInference "batch-norm-inference" Exactly(5) Elementary(4) Normalization [] [!Epsilon, !FeatureIndex],
            /// Batch normalization with the statistics of the batch.
            BatchNormTraining "batch-norm-training" Exactly(3) Sum Normalization [] [!Epsilon, !FeatureIndex],
            /// Cholesky factor.
            Cholesky "cholesky" Exactly(1) Sum LinearAlgebra [] [Lower],
            /// Discrete Fourier transform.
            Fft "fft" Exactly(1) Sum Transform [] [!FftType, !FftLength],
            /// Solves a triangular system.
            TriangularSolve "triangular-solve" Exactly(2) Sum LinearAlgebra [] [LeftSide, Lower, UnitDiagonal, TransposeA],
            /// Random numbers of a distribution.
            Rng "rng" AtLeast(0) Exact Random [side_effect] [!Distribution, RngOrdinal],
            /// Random bits from a counter-based generator, and its new state.
            RngBitGenerator "rng-bit-generator" Exactly(1) Exact Random [] [!RngAlgorithm],
            /// Returns and advances a global counter.
            RngGetAndUpdateState "rng-get-and-update-state" Exactly(0) Exact Random [side_effect] [!Delta, RngOrdinal],
            /// The first operand, after the token.
            AddDependency "add-dependency" Exactly(2) Exact Structure [] [],
            /// A token after all operands.
            AfterAll "after-all" AtLeast(0) Exact Structure [] [],
            /// Calls a computation.
            Call "call" AtLeast(0) Called Control [] [IsComposite, !ToApply],
            /// Runs one of several computations.
            Conditional "conditional" AtLeast(2) Called Control [] [TrueComputation, FalseComputation, BranchComputations],
            /// A literal.
            Constant "constant" Exactly(0) Exact Structure [] [!ConstantValue],
            /// A named call out of the language.
            CustomCall "custom-call" AtLeast(0) Opaque CustomCall [side_effect] [!CustomCallTarget, Window, DimLabels, FeatureGroupCount, BatchGroupCount, OperandLayoutConstraints, CustomCallHasSideEffect, OutputToOperandAliasing, PaddingType, Literal, OperandPrecision, Schedule, ApiVersion, ToApply, CalledComputations],
            /// The operand, at a border of metadata.
            Domain "domain" Exactly(1) Exact Structure [] [!Domain],
            /// A computation made to run as one kernel.
            Fusion "fusion" AtLeast(0) Called Control [] [!FusionKind, OutputToOperandAliasing, !Calls],
            /// An element of a tuple.
            GetTupleElement "get-tuple-element" Exactly(1) Exact Structure [] [!Index],
            /// The operand; nothing moves across.
            OptBarrier "opt-barrier" Exactly(1) Exact Structure [] [],
            /// A parameter of the computation.
            Parameter "parameter" Exactly(0) Exact Structure [] [!ParameterNumber],
            /// A tuple of the operands.
            Tuple "tuple" AtLeast(0) Exact Structure [] [],
            /// Repeats the body while the condition holds.
            While "while" Exactly(1) Called Control [] [!Condition, !Body],
            /// Starts a computation.
            AsyncStart "async-start" AtLeast(0) Called Async [side_effect] [AsyncExecutionThread, OutputToOperandAliasing, !Calls],
            /// A step between start and done; may bind late operands.
            AsyncUpdate "async-update" AtLeast(1) Exact Async [side_effect] [AsyncExecutionThread, OutputToOperandAliasing, Calls],
            /// The result of an asynchronous computation.
            AsyncDone "async-done" Exactly(1) Exact Async [side_effect] [AsyncExecutionThread, Calls],
            /// Starts a copy.
            CopyStart "copy-start" Exactly(1) Exact Async [side_effect] [CrossProgramPrefetchIndex],
            /// The result of an asynchronous copy.
            CopyDone "copy-done" Exactly(1) Exact Async [side_effect] [],
            /// Reads from the host.
            Infeed "infeed" Exactly(1) Exact Host [side_effect] [InfeedConfig],
            /// Writes to the host.
            Outfeed "outfeed" Exactly(2) Exact Host [side_effect] [OutfeedShape, OutfeedConfig],
            /// Starts receiving.
            Recv "recv" Exactly(1) Exact Host [side_effect] [ChannelId, IsHostTransfer],
            /// What was received, and a token.
            RecvDone "recv-done" Exactly(1) Exact Host [side_effect] [ChannelId, IsHostTransfer],
            /// Starts sending.
            Send "send" Exactly(2) Exact Host [side_effect] [ChannelId, IsHostTransfer],
            /// A token after sending.
            SendDone "send-done" Exactly(1) Exact Host [side_effect] [ChannelId, IsHostTransfer],
            /// Concatenates the operands of all participants.
            AllGather "all-gather" AtLeast(0) Exact Collective [collective] [ChannelId, ReplicaGroups, !Dimensions, ConstrainLayout, UseGlobalDeviceIds],
            /// Starts an all-gather.
            AllGatherStart "all-gather-start" AtLeast(0) Exact Collective [collective] [ChannelId, ReplicaGroups, !Dimensions, ConstrainLayout, UseGlobalDeviceIds],
            /// The result of an all-gather.
            AllGatherDone "all-gather-done" Exactly(1) Exact Collective [collective] [],
            /// Folds the operands of all participants.
            AllReduce "all-reduce" AtLeast(0) Region Collective [collective] [ChannelId, ReplicaGroups, ConstrainLayout, UseGlobalDeviceIds, CollectiveMode, !ToApply],
            /// Starts an all-reduce.
            AllReduceStart "all-reduce-start" AtLeast(0) Region Collective [collective] [ChannelId, ReplicaGroups, ConstrainLayout, UseGlobalDeviceIds, CollectiveMode, !ToApply],
            /// The result of an all-reduce.
            AllReduceDone "all-reduce-done" Exactly(1) Exact Collective [collective] [],
            /// Exchanges blocks among participants.
            AllToAll "all-to-all" AtLeast(0) Exact Collective [collective] [ChannelId, ReplicaGroups, Dimensions, ConstrainLayout],
            /// Copies from the first of each group to all.
            CollectiveBroadcast "collective-broadcast" AtLeast(0) Exact Collective [collective] [ChannelId, ReplicaGroups, HasDynamicRoot],
            /// Sends from sources to targets.
            CollectivePermute "collective-permute" AtLeast(0) Exact Collective [collective] [ChannelId, !SourceTargetPairs, PermuteSliceSizes],
            /// Starts a collective-permute.
            CollectivePermuteStart "collective-permute-start" AtLeast(0) Exact Collective [collective] [ChannelId, !SourceTargetPairs, PermuteSliceSizes],
            /// The result of a collective-permute.
            CollectivePermuteDone "collective-permute-done" Exactly(1) Exact Collective [collective] [],
            /// Folds the operands of a group onto its first participant.
            CollectiveReduce "collective-reduce" AtLeast(0) Region Collective [collective] [ChannelId, ReplicaGroups, ConstrainLayout, UseGlobalDeviceIds, HasDynamicRoot, CollectiveMode, !ToApply],
            /// Exchanges blocks of run-time sizes.
            RaggedAllToAll "ragged-all-to-all" Exactly(6) Exact Collective [collective] [ChannelId, ReplicaGroups, Dimensions],
            /// Folds and scatters the result.
            ReduceScatter "reduce-scatter" AtLeast(0) Region Collective [collective] [ChannelId, ReplicaGroups, !Dimensions, ConstrainLayout, UseGlobalDeviceIds, CollectiveMode, !ToApply],
            /// Number of this partition, `u32`.
            PartitionId "partition-id" Exactly(0) Exact DeviceNumber [] [],
            /// Number of this replica, `u32`.
            ReplicaId "replica-id" Exactly(0) Exact DeviceNumber [] [],
        }
    };
}

macro_rules! slots {
    (@ [$($done:expr,)*]) => { &[$($done),*] };
    (@ [$($done:expr,)*] ! $key:ident $(, $($rest:tt)*)?) => {
        slots!(@ [$($done,)* AttrSlot { key: AttrKey::$key, required: true },] $($($rest)*)?)
    };
    (@ [$($done:expr,)*] $key:ident $(, $($rest:tt)*)?) => {
        slots!(@ [$($done,)* AttrSlot { key: AttrKey::$key, required: false },] $($($rest)*)?)
    };
    ($($all:tt)*) => { slots!(@ [] $($all)*) };
}

macro_rules! define_opcodes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $arity:ident($n:literal) $numeric:ident $(($ulps:literal))? $family:ident
        [$($flag:ident),*] [$($attrs:tt)*],)*) => {
        /// An operation of HLO.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Opcode { $($(#[$doc])* $variant),* }

        impl Opcode {
            /// All of them, in the order of the table.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$variant),*];

            /// The name in text.
            pub const fn name(self) -> &'static str {
                match self { $(Opcode::$variant => $name),* }
            }

            /// The opcode with this text name.
            pub fn from_name(name: &str) -> Option<Self> {
                Some(match name { $($name => Opcode::$variant,)* _ => return None })
            }

            /// Number of operands.
            pub const fn arity(self) -> Arity {
                match self { $(Opcode::$variant => Arity::$arity($n)),* }
            }

            /// Numeric class over all element types.
            pub const fn numeric_row(self) -> NumericRow {
                match self { $(Opcode::$variant => NumericRow::$numeric $(($ulps))?),* }
            }

            /// What it does, roughly.
            pub const fn family(self) -> Family {
                match self { $(Opcode::$variant => Family::$family),* }
            }

            /// Flags.
            pub const fn flags(self) -> Flags {
                const NONE: Flags =
                    Flags { elementwise: false, commutative: false, side_effect: false, collective: false };
                match self { $(Opcode::$variant => Flags { $($flag: true,)* ..NONE }),* }
            }

            /// Whether operands of a type may be swapped to the bit: of complex numbers that compare equal an
            /// extreme is the first.
            pub fn commutes(self, ty: $crate::ElementType) -> bool {
                let first = matches!(self, Opcode::Maximum | Opcode::Minimum) && ty.is_complex();
                self.flags().commutative && !first
            }

            /// The attributes of its own (those of [`crate::attrs::COMMON`] come in addition).
            pub const fn attrs(self) -> &'static [AttrSlot] {
                match self { $(Opcode::$variant => slots!($($attrs)*)),* }
            }
        }
    };
}

for_each_opcode!(define_opcodes);

impl Opcode {
    /// What a correct implementation may compute when the result's elements are of type `ty`.
    pub fn numeric(self, ty: ElementType) -> Numeric {
        match self.numeric_row() {
            NumericRow::Exact => Numeric::Exact,
            NumericRow::ExactReal(0) => Numeric::Exact,
            NumericRow::ExactReal(n) if ty.is_complex() => Numeric::Normwise(n),
            NumericRow::ExactReal(_) => Numeric::Exact,
            NumericRow::Elementary(n) if ty.is_complex() => Numeric::Normwise(n.max(4)),
            NumericRow::Elementary(_) if !ty.is_float() => Numeric::Exact,
            NumericRow::Elementary(_) if ty.bits() <= 16 => Numeric::Ulp(1),
            NumericRow::Elementary(n) => Numeric::Ulp(n),
            NumericRow::Sum if ty.is_float() || ty.is_complex() => Numeric::Sum,
            NumericRow::Sum => Numeric::Exact,
            NumericRow::Region => Numeric::Region,
            NumericRow::Called => Numeric::Called,
            NumericRow::Opaque => Numeric::Opaque,
        }
    }

    /// The key that `text` names as an attribute of this opcode, common ones included.
    pub fn attr_key(self, text: &str) -> Option<AttrKey> {
        let own = self.attrs().iter().map(|s| s.key);
        own.chain(crate::attrs::COMMON.iter().copied()).find(|k| k.text() == text)
    }

    /// Each element of the result depends only on the elements of the operands at the same index.
    pub fn is_elementwise(self) -> bool {
        self.flags().elementwise
    }
}

impl std::fmt::Display for Opcode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_complete_and_names_are_unique() {
        assert_eq!(Opcode::ALL.len(), 134, "133 opcodes of XLA and collective-reduce");
        for &op in Opcode::ALL {
            assert_eq!(Opcode::from_name(op.name()), Some(op));
            for slot in op.attrs() {
                assert_eq!(op.attr_key(slot.key.text()), Some(slot.key), "{op}: {}", slot.key.text());
            }
        }
    }
}
