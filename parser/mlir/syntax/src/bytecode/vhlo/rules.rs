//! How attributes of StableHLO and VHLO correspond.
//!
//! Most are the same attribute in both. Different are lists of integers, which VHLO has as tensors; symbols,
//! which it has as strings; records (dimension numbers and the like), whose parts are attributes of their own
//! there; and defaults, which it writes out. Each attribute of an operation of VHLO has a [`Rule`].

/// How StableHLO has an attribute of VHLO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::bytecode) enum Form {
    /// The same, of any kind.
    Same,
    /// A tensor of `i64` as `array<i64>`.
    Integers,
    /// A tensor of `i1` as `array<i1>`.
    Booleans,
    /// A string as a symbol.
    Symbol,
    /// An array of strings as one of symbols.
    Symbols,
    /// True as a unit attribute, false as none.
    Unit,
    /// An integer as a channel of type 0, under the name `channel_handle`.
    Channel,
    /// An enumeration as an `i32`.
    ApiVersion,
    /// A part of a record.
    Part(&'static Record),
    /// Nothing: written for old readers alone.
    Nothing,
}

/// What VHLO has where StableHLO has nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::bytecode) enum Default {
    /// The attribute is always there.
    Required,
    /// `false`
    False,
    /// An `i64`.
    Integer(i64),
    /// `""`
    EmptyString,
    /// `""`, or `{}` if the call passes its attributes so.
    EmptyConfig,
    /// `[]`
    EmptyArray,
    /// `{}`
    EmptyDictionary,
    /// `dense<> : tensor<0xi64>`
    NoIntegers,
    /// `dense<1>`, one for each dimension of the window.
    Ones,
    /// `dense<0> : tensor<nx2xi64>`, a pair for each dimension of the window.
    NoPadding,
    /// `dense<false>`, one for each dimension of the window.
    NoReversal,
    /// `[DEFAULT, DEFAULT]`
    Precision,
    /// `NOTYPE`
    NoCompareType,
    /// `API_VERSION_ORIGINAL`
    OriginalApi,
    /// No tolerance, mode `DEFAULT`.
    Accuracy,
    /// The type `none`, in all parts of the record.
    NoneType,
}

/// A rule of an attribute.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::bytecode) struct Rule {
    /// Its name in VHLO, and in StableHLO unless the form says otherwise.
    pub(in crate::bytecode) name: &'static str,
    /// The operations for which it holds; all if there are none.
    operations: &'static [&'static str],
    /// How StableHLO has it.
    pub(in crate::bytecode) form: Form,
    /// What it is if StableHLO has not.
    pub(in crate::bytecode) default: Default,
}

/// A record of StableHLO whose parts are attributes in VHLO.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::bytecode) struct Record {
    /// The name of the attribute, `dimension_numbers`.
    pub(in crate::bytecode) attribute: &'static str,
    /// The name of the record, `stablehlo.gather`.
    pub(in crate::bytecode) name: &'static str,
    /// Its parts: the name in VHLO, the name in the record, and the kind.
    pub(in crate::bytecode) parts: &'static [(&'static str, &'static str, PartKind)],
}

/// What a part of a record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::bytecode) enum PartKind {
    /// An `i64`.
    Integer,
    /// An `i64` that the record leaves out if it is 0.
    IntegerUnlessZero,
    /// A list of integers, which the record leaves out if it is empty.
    Integers,
    /// A type.
    Type,
    /// A boolean.
    Boolean,
}

macro_rules! records {
    ($($(#[$doc:meta])* $constant:ident $attribute:literal $name:literal [$($vhlo:literal $($own:literal)? $kind:ident),* $(,)?],)*) => {
        $(
            $(#[$doc])*
            pub(in crate::bytecode) const $constant: &Record = &Record {
                attribute: $attribute,
                name: $name,
                parts: &[$(($vhlo, records!(@own $vhlo $($own)?), PartKind::$kind)),*],
            };
        )*
    };
    (@own $vhlo:literal) => { $vhlo };
    (@own $vhlo:literal $own:literal) => { $own };
}

records! {
    /// Dimensions of a convolution.
    CONVOLUTION "dimension_numbers" "stablehlo.conv" [
        "input_batch_dimension" Integer,
        "input_feature_dimension" Integer,
        "input_spatial_dimensions" Integers,
        "kernel_input_feature_dimension" Integer,
        "kernel_output_feature_dimension" Integer,
        "kernel_spatial_dimensions" Integers,
        "output_batch_dimension" Integer,
        "output_feature_dimension" Integer,
        "output_spatial_dimensions" Integers,
    ],
    /// Dimensions of a contraction.
    DOT "dot_dimension_numbers" "stablehlo.dot" [
        "lhs_batching_dimensions" Integers,
        "rhs_batching_dimensions" Integers,
        "lhs_contracting_dimensions" Integers,
        "rhs_contracting_dimensions" Integers,
    ],
    /// The algorithm of a contraction.
    ALGORITHM "algorithm" "stablehlo.dot_algorithm" [
        "lhs_precision_type" Type,
        "rhs_precision_type" Type,
        "accumulation_type" Type,
        "lhs_component_count" Integer,
        "rhs_component_count" Integer,
        "num_primitive_operations" Integer,
        "allow_imprecise_accumulation" Boolean,
    ],
    /// Dimensions of a gather.
    GATHER "dimension_numbers" "stablehlo.gather" [
        "offset_dims" Integers,
        "collapsed_slice_dims" Integers,
        "operand_batching_dims" Integers,
        "start_indices_batching_dims" Integers,
        "start_index_map" Integers,
        "index_vector_dim" IntegerUnlessZero,
    ],
    /// Dimensions of a scatter.
    SCATTER "scatter_dimension_numbers" "stablehlo.scatter" [
        "update_window_dims" Integers,
        "inserted_window_dims" Integers,
        "input_batching_dims" Integers,
        "scatter_indices_batching_dims" Integers,
        "scatter_dims_to_operand_dims" Integers,
        "index_vector_dim" IntegerUnlessZero,
    ],
    /// A channel between a program and another, or the host.
    CHANNEL "channel_handle" "stablehlo.channel_handle" [
        "channel_id" "handle" Integer,
        "channel_type" "type" Integer,
    ],
}

/// Operations that have a list of records, by name.
pub(in crate::bytecode) fn records(operation: &str) -> &'static [&'static Record] {
    match operation {
        "convolution" | "dynamic_conv" => &[CONVOLUTION],
        "dot_general" => &[DOT, ALGORITHM],
        "gather" | "dynamic_gather" => &[GATHER],
        "scatter" => &[SCATTER],
        "send" | "recv" => &[CHANNEL],
        _ => &[],
    }
}

macro_rules! rules {
    ($($name:literal $([$($op:literal)*])?: $form:ident $(= $default:ident $(($value:literal))?)?,)*) => {
        const RULES: &[Rule] = &[$(Rule {
            name: $name,
            operations: &[$($($op),*)?],
            form: Form::$form,
            default: rules!(@default $($default $(($value))?)?),
        }),*];
    };
    (@default) => { Default::Required };
    (@default $default:ident) => { Default::$default };
    (@default $default:ident ($value:literal)) => { Default::$default($value) };
}

rules! {
    "api_version": ApiVersion = OriginalApi,
    "arg_attrs": Same = EmptyArray,
    "backend_config": Same = EmptyConfig,
    "base_dilations": Integers = Ones,
    "broadcast_dimensions": Integers,
    "broadcast_sizes": Integers,
    "callee": Symbol,
    "called_computations": Symbols = EmptyArray,
    "channel_id": Channel = Integer(0),
    "compare_type": Same = NoCompareType,
    "composite_attributes": Same = EmptyDictionary,
    "decomposition": Symbol,
    "dimension" ["sort"]: Same = Integer(-1),
    "dimensions" ["map" "reduce" "reverse"]: Integers,
    "edge_padding_high": Integers,
    "edge_padding_low": Integers,
    "fft_length": Integers,
    "has_dynamic_root": Unit = False,
    "has_side_effect": Same = False,
    "indices_are_sorted": Same = False,
    "infeed_config": Same = EmptyString,
    "interior_padding": Integers,
    "is_host_transfer": Same = False,
    "is_stable": Same = False,
    "known_expanding_dimensions": Integers = NoIntegers,
    "known_nonexpanding_dimensions": Integers = NoIntegers,
    "layout": Same = EmptyArray,
    "lhs_dilation": Integers = Ones,
    "limit_indices": Integers,
    "lower" ["cholesky"]: Same = False,
    "operand_layouts": Same = EmptyArray,
    "outfeed_config": Same = EmptyString,
    "output_operand_aliases": Same = EmptyArray,
    "padding" ["dynamic_conv"]: Nothing = NoPadding,
    "padding": Same = NoPadding,
    "permutation": Integers,
    "precision_config": Same = Precision,
    "res_attrs": Same = EmptyArray,
    "result_accuracy": Same = Accuracy,
    "result_layouts": Same = EmptyArray,
    "result_tilings": Same = EmptyArray,
    "rhs_dilation": Integers = Ones,
    "slice_sizes": Integers,
    "source_target_pairs" ["recv" "send"]: Same = NoIntegers,
    "start_indices": Integers,
    "strides": Integers,
    "sym_visibility": Same = EmptyString,
    "unique_indices": Same = False,
    "use_global_device_ids": Unit = False,
    "version": Same = Integer(0),
    "window_dilations": Integers = Ones,
    "window_dimensions": Integers,
    "window_reversal": Booleans = NoReversal,
    "window_strides": Integers = Ones,
}

/// The rule of an attribute of an operation.
pub(in crate::bytecode) fn rule(operation: &str, attribute: &'static str) -> Rule {
    if let Some(&record) =
        records(operation).iter().find(|record| record.parts.iter().any(|part| part.0 == attribute))
    {
        // An algorithm may be absent, as a whole.
        let default = if record == ALGORITHM { Default::NoneType } else { Default::Required };
        return Rule { name: attribute, operations: &[], form: Form::Part(record), default };
    }
    let found = RULES
        .iter()
        .find(|r| r.name == attribute && (r.operations.is_empty() || r.operations.contains(&operation)));
    match found {
        Some(r) => Rule { name: attribute, operations: &[], form: r.form, default: r.default },
        None => Rule { name: attribute, operations: &[], form: Form::Same, default: Default::Required },
    }
}

#[cfg(test)]
mod tests {
    use super::super::operations::OPERATIONS;
    use super::*;

    #[test]
    fn every_rule_is_of_an_attribute() {
        for r in RULES {
            let used = |op: &str| OPERATIONS.iter().any(|o| o.name == op && o.attributes.contains(&r.name));
            match r.operations {
                [] => assert!(OPERATIONS.iter().any(|o| o.attributes.contains(&r.name)), "{}", r.name),
                list => list.iter().for_each(|op| assert!(used(op), "{} of {op}", r.name)),
            }
        }
    }

    #[test]
    fn parts_of_records_are_attributes_of_the_newest_revision() {
        for op in OPERATIONS.iter().filter(|op| op.until.is_none()) {
            for record in records(op.name) {
                for part in record.parts {
                    assert!(op.attributes.contains(&part.0), "{} of {}", part.0, op.name);
                    assert!(matches!(rule(op.name, part.0).form, Form::Part(r) if r == *record));
                }
            }
        }
    }
}
