//! The table of pretty forms: how operations that have one are written. Parser and printer both read it.

use super::token::Tok;

/// A part of a form.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    /// `%x`
    Operand,
    /// `%x, %y`, or none
    Operands,
    /// `%x, %y,` with a comma after each
    OperandsCommas,
    /// Punctuation.
    P(Tok),
    /// A word.
    W(&'static str),
    /// `3`, an integer of that many bits.
    Int(&'static str, u32),
    /// `true`
    Bool(&'static str),
    /// `1.0e-3`, an `f64`
    F64(&'static str),
    /// `"text"`
    Str(&'static str),
    /// `[1, 2]`
    Ints(&'static str),
    /// `LT`, of an enumeration.
    Enum(&'static str, &'static str),
    /// `@name` or `"name"`, kept as a string.
    Target(&'static str),
    /// Any attribute with its type.
    Any(&'static str),
    /// What may be left out; the first item says whether it is there, or the second after a comma.
    Optional(&'static [Item]),
    /// `[1:2:1, 0:4]`
    SliceRanges,
    /// `batching_dims = [0] x [0], contracting_dims = [1] x [1]`
    DotDimensions,
    /// `, precision = [HIGH, HIGH]`, or nothing
    Precision,
    /// The same, with `algorithm = <...>`
    PrecisionAlgorithm,
    /// `[b, 0, f]x[0, i, o]->[b, 0, f]`
    ConvolutionDimensions,
    /// `stride = [1], pad = [[0, 0]]`
    Window,
    /// `e5m10`
    ExponentMantissa,
    /// `{attributes}`, if there are any
    Dict,
    /// `:` and types
    Types(Types),
}

/// How types are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Types {
    /// One type for operands and result, or a function type.
    Same,
    /// A function type.
    Function,
    /// The types of the results alone.
    Results,
    /// The complex result, or a function type.
    Complex,
    /// The result, a tuple of the operands' types, or a function type.
    Tuple,
    /// The predicate and the result, or a function type.
    Select,
    /// The types of operands, which are those of results.
    Pairwise,
    /// The types of operands, if there are any; no results.
    Operands,
    /// One type, of each operand; no results.
    EachOperand,
    /// `t, t -> t`, or a function type.
    Arrow,
    /// None, where the attribute `value` has the type of operand or result.
    OfValue,
}

use Item::*;
use Tok::{Colon, Comma, Equal, LBrace, LParen, LSquare, RBrace, RParen, RSquare};

const UNARY: &[Item] = &[Operand, Dict, P(Colon), Types(self::Types::Same)];
const BINARY: &[Item] = &[Operand, P(Comma), Operand, Dict, P(Colon), Types(self::Types::Same)];
const FUNCTIONAL: &[Item] = &[Operands, Dict, P(Colon), Types(self::Types::Function)];
const RESULTS: &[Item] = &[Dict, P(Colon), Types(self::Types::Results)];
const ARROW: &[Item] = &[Operands, Dict, P(Colon), Types(self::Types::Arrow)];

/// The form of an operation of StableHLO, by its name without the dialect (MHLO's are the same).
fn stablehlo(name: &str) -> Option<&'static [Item]> {
    use self::Types as T;
    Some(match name {
        "abs"
        | "cbrt"
        | "ceil"
        | "convert"
        | "cosine"
        | "count_leading_zeros"
        | "exponential"
        | "exponential_minus_one"
        | "floor"
        | "imag"
        | "log"
        | "log_plus_one"
        | "logistic"
        | "negate"
        | "not"
        | "popcnt"
        | "real"
        | "round_nearest_afz"
        | "round_nearest_even"
        | "rsqrt"
        | "sign"
        | "sine"
        | "sqrt"
        | "tan"
        | "tanh"
        | "uniform_dequantize"
        | "uniform_quantize"
        | "erf" => UNARY,
        "add"
        | "and"
        | "atan2"
        | "divide"
        | "maximum"
        | "minimum"
        | "multiply"
        | "or"
        | "power"
        | "remainder"
        | "shift_left"
        | "shift_right_arithmetic"
        | "shift_right_logical"
        | "subtract"
        | "xor" => BINARY,
        "is_finite"
        | "dynamic_update_slice"
        | "bitcast_convert"
        | "reshape"
        | "dynamic_reshape"
        | "real_dynamic_slice"
        | "dynamic_pad" => FUNCTIONAL,
        "create_token" | "replica_id" | "partition_id" => RESULTS,
        "complex" => &[Operands, Dict, P(Colon), Types(T::Complex)],
        "iota" => &[W("dim"), P(Equal), Int("iota_dimension", 64), Dict, P(Colon), Types(T::Results)],
        "dynamic_iota" => &[
            Operand,
            P(Comma),
            W("dim"),
            P(Equal),
            Int("iota_dimension", 64),
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "after_all" => &[Operands, Dict, P(Colon), Types(T::Same)],
        "get_tuple_element" => {
            &[Operand, P(LSquare), Int("index", 32), P(RSquare), Dict, P(Colon), Types(T::Function)]
        }
        "tuple" => &[Operands, Dict, P(Colon), Types(T::Tuple)],
        "compare" => &[
            Enum("comparison_direction", "stablehlo.comparison_direction"),
            P(Comma),
            Operand,
            P(Comma),
            Operand,
            Optional(&[P(Comma), Enum("compare_type", "stablehlo.comparison_type")]),
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "slice" => &[Operand, SliceRanges, Dict, P(Colon), Types(T::Function)],
        "dynamic_slice" => &[
            Operand,
            P(Comma),
            OperandsCommas,
            W("sizes"),
            P(Equal),
            Ints("slice_sizes"),
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "broadcast" => &[
            Operand,
            P(Comma),
            W("sizes"),
            P(Equal),
            Ints("broadcast_sizes"),
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "broadcast_in_dim" => &[
            Operand,
            P(Comma),
            W("dims"),
            P(Equal),
            Ints("broadcast_dimensions"),
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "dynamic_broadcast_in_dim" => &[
            Operand,
            P(Comma),
            Operand,
            P(Comma),
            W("dims"),
            P(Equal),
            Ints("broadcast_dimensions"),
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "cholesky" => &[
            Operand,
            Optional(&[P(Comma), W("lower"), P(Equal), Bool("lower")]),
            Dict,
            P(Colon),
            Types(T::Same),
        ],
        "clamp" => &[Operand, P(Comma), Operand, P(Comma), Operand, Dict, P(Colon), Types(T::Same)],
        "concatenate" => {
            &[OperandsCommas, W("dim"), P(Equal), Int("dimension", 64), Dict, P(Colon), Types(T::Function)]
        }
        "composite" => &[Str("name"), Operands, Dict, P(Colon), Types(T::Function)],
        "convolution" => &[
            P(LParen),
            Operands,
            P(RParen),
            W("dim_numbers"),
            P(Equal),
            ConvolutionDimensions,
            P(Comma),
            W("window"),
            P(Equal),
            P(LBrace),
            Window,
            P(RBrace),
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "custom_call" => {
            &[Target("call_target_name"), P(LParen), Operands, P(RParen), Dict, P(Colon), Types(T::Function)]
        }
        "dot" => &[Operand, P(Comma), Operand, Precision, Dict, P(Colon), Types(T::Function)],
        "dot_general" => &[
            Operand,
            P(Comma),
            Operand,
            P(Comma),
            DotDimensions,
            PrecisionAlgorithm,
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "einsum" => &[
            Operand,
            P(Comma),
            Operand,
            P(Comma),
            W("config"),
            P(Equal),
            Str("einsum_config"),
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "unary_einsum" => &[
            Operand,
            P(Comma),
            W("config"),
            P(Equal),
            Str("einsum_config"),
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "fft" => &[
            Operand,
            P(Comma),
            W("type"),
            P(Equal),
            Enum("fft_type", "stablehlo.fft_type"),
            P(Comma),
            W("length"),
            P(Equal),
            Ints("fft_length"),
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "get_dimension_size" => {
            &[Operand, P(Comma), W("dim"), P(Equal), Int("dimension", 64), Dict, P(Colon), Types(T::Function)]
        }
        "select" => &[Operands, Dict, P(Colon), Types(T::Select)],
        "set_dimension_size" => &[
            Operand,
            P(Comma),
            Operand,
            P(Comma),
            W("dim"),
            P(Equal),
            Int("dimension", 64),
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "reverse" => {
            &[Operand, P(Comma), W("dims"), P(Equal), Ints("dimensions"), Dict, P(Colon), Types(T::Same)]
        }
        "pad" => &[
            Operand,
            P(Comma),
            Operand,
            P(Comma),
            W("low"),
            P(Equal),
            Ints("edge_padding_low"),
            P(Comma),
            W("high"),
            P(Equal),
            Ints("edge_padding_high"),
            P(Comma),
            W("interior"),
            P(Equal),
            Ints("interior_padding"),
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "transpose" => {
            &[Operand, P(Comma), W("dims"), P(Equal), Ints("permutation"), Dict, P(Colon), Types(T::Function)]
        }
        "return" => &[Operands, Dict, Optional(&[P(Colon), Types(T::Operands)])],
        "optimization_barrier" => {
            &[Dict, Operands, Optional(&[P(LParen), P(RParen)]), Optional(&[P(Colon), Types(T::Pairwise)])]
        }
        "rng" => &[
            Operand,
            P(Comma),
            Operand,
            P(Comma),
            Operand,
            P(Comma),
            W("distribution"),
            P(Equal),
            Enum("rng_distribution", "stablehlo.rng_distribution"),
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "rng_bit_generator" => &[
            Operand,
            P(Comma),
            W("algorithm"),
            P(Equal),
            Enum("rng_algorithm", "stablehlo.rng_algorithm"),
            Dict,
            P(Colon),
            Types(T::Function),
        ],
        "reduce_precision" => {
            &[Operand, P(Comma), W("format"), P(Equal), ExponentMantissa, Dict, P(Colon), Types(T::Same)]
        }
        _ => return None,
    })
}

fn chlo(name: &str) -> Option<&'static [Item]> {
    use self::Types as T;
    Some(match name {
        "top_k" => &[
            P(LParen),
            Operand,
            P(Comma),
            W("k"),
            P(Equal),
            Int("k", 64),
            Optional(&[P(Comma), W("is_stable"), P(Equal), Bool("is_stable")]),
            P(RParen),
            Dict,
            P(Colon),
            Types(T::Arrow),
        ],
        "constant"
        | "constant_like"
        | "minimum_broadcast_shapes"
        | "dynamic_reshape"
        | "ragged_dot"
        | "scan"
        | "rank_specialization_cluster" => return None,
        _ if name.starts_with("broadcast_") => FUNCTIONAL,
        _ => ARROW,
    })
}

/// The form of an operation, if it has one that this table says.
pub(crate) fn of(name: &str) -> Option<&'static [Item]> {
    use self::Types as T;
    let (dialect, short) = name.split_once('.')?;
    match dialect {
        "stablehlo" | "mhlo" => stablehlo(short),
        "chlo" => chlo(short),
        _ => Some(match name {
            "func.return" | "sdy.return" => &[Operands, Dict, Optional(&[P(Colon), Types(T::Operands)])],
            "func.call" => {
                &[Any("callee"), P(LParen), Operands, P(RParen), Dict, P(Colon), Types(T::Function)]
            }
            "check.expect_eq" => &[Operand, P(Comma), Operand, Dict, P(Colon), Types(T::EachOperand)],
            "check.expect_eq_const" => &[Operand, P(Comma), Any("value"), Dict, Types(T::OfValue)],
            "check.expect_almost_eq" => &[
                Operand,
                P(Comma),
                Operand,
                Optional(&[P(Comma), W("tolerance"), P(Equal), F64("tolerance")]),
                Dict,
                P(Colon),
                Types(T::EachOperand),
            ],
            "check.expect_almost_eq_const" => &[
                Operand,
                P(Comma),
                Any("value"),
                Optional(&[P(Comma), W("tolerance"), P(Equal), F64("tolerance")]),
                Dict,
                Types(T::OfValue),
            ],
            "check.expect_close" => &[
                Operand,
                P(Comma),
                Operand,
                P(Comma),
                W("max_ulp_difference"),
                P(Equal),
                Int("max_ulp_difference", 64),
                Optional(&[P(Comma), W("min_ulp_difference"), P(Equal), Int("min_ulp_difference", 64)]),
                P(Colon),
                Dict,
                Types(T::Operands),
            ],
            "check.expect_serialized_eq" => &[
                Operand,
                P(Comma),
                W("probe_id"),
                P(Equal),
                Str("probe_id"),
                Optional(&[P(Comma), W("iter"), P(Equal), Int("iteration", 32)]),
                Dict,
                P(Colon),
                Types(T::EachOperand),
            ],
            "interpreter.print" => &[Operand, Dict, P(Colon), Types(T::EachOperand)],
            "interpreter.probe" => {
                &[Operand, P(Comma), W("probe_id"), P(Equal), Str("probe_id"), Dict, P(Colon), Types(T::Same)]
            }
            "tensor.cast" => &[Operand, Dict, P(Colon), Types(T::Same)],
            _ => return None,
        }),
    }
}

/// Whether an attribute in the dictionary of a form is a property of the operation: what its form does not
/// say otherwise.
pub(crate) fn is_property(operation: &str, attribute: &str) -> bool {
    let name = match operation.split_once('.') {
        Some(("stablehlo" | "mhlo", name)) => name,
        Some(("chlo", name)) => {
            return name.starts_with("broadcast_")
                && matches!(attribute, "broadcast_dimensions" | "comparison_direction" | "compare_type");
        }
        Some(_) | None => return false,
    };
    match attribute {
        "result_accuracy" => true,
        "precision_config" => matches!(name, "convolution" | "dynamic_conv"),
        "feature_group_count" | "batch_group_count" => name == "convolution",
        "api_version"
        | "backend_config"
        | "called_computations"
        | "has_side_effect"
        | "operand_layouts"
        | "output_operand_aliases"
        | "result_layouts" => name == "custom_call",
        "composite_attributes" | "decomposition" | "version" => name == "composite",
        "known_expanding_dimensions" | "known_nonexpanding_dimensions" => name == "dynamic_broadcast_in_dim",
        _ => false,
    }
}
