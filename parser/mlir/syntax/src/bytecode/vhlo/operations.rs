//! The operations of VHLO: in which versions each is, and which attributes it has.

use super::super::version::Version;

/// An operation of VHLO.
#[derive(PartialEq, Eq, Debug)]
pub(in crate::bytecode) struct Operation {
    /// The name without the version, which is that of StableHLO's operation.
    pub(in crate::bytecode) name: &'static str,
    /// The version in the name: 2 of `vhlo.scatter_v2`.
    pub(in crate::bytecode) revision: u32,
    /// The first version of VHLO that has it.
    pub(in crate::bytecode) since: Version,
    /// The last one; `None` if the newest has it.
    pub(in crate::bytecode) until: Option<Version>,
    /// Its attributes, all of which it has, sorted as properties are written.
    pub(in crate::bytecode) attributes: &'static [&'static str],
}

impl Operation {
    /// Whether a version has it.
    pub(in crate::bytecode) fn is_in(&self, version: Version) -> bool {
        let version = version.release();
        self.since <= version && self.until.is_none_or(|until| version <= until)
    }
}

/// The operation with a name of VHLO, without the dialect: `scatter_v2`.
pub(in crate::bytecode) fn find(name: &str) -> Option<&'static Operation> {
    let (name, revision) = name.rsplit_once("_v")?;
    let revision: u32 = revision.parse().ok()?;
    revisions(name).find(|op| op.revision == revision)
}

/// All revisions of an operation.
pub(in crate::bytecode) fn revisions(name: &str) -> impl Iterator<Item = &'static Operation> {
    let first = OPERATIONS.partition_point(|op| op.name < name);
    OPERATIONS[first..].iter().take_while(move |op| op.name == name)
}

macro_rules! operations {
    ($($name:literal $revision:literal: $major:literal $minor:literal $(to $until_major:literal $until_minor:literal)? [$($attr:literal)*],)*) => {
        /// All of them, by name and revision.
        pub(in crate::bytecode) const OPERATIONS: &[Operation] = &[$(Operation {
            name: $name,
            revision: $revision,
            since: Version::new($major, $minor, 0),
            until: operations!(@until $($until_major $until_minor)?),
            attributes: &[$($attr),*],
        }),*];
    };
    (@until) => { None };
    (@until $major:literal $minor:literal) => { Some(Version::new($major, $minor, 0)) };
}

operations! {
    "abs" 1: 0 9 [],
    "add" 1: 0 9 [],
    "after_all" 1: 0 9 [],
    "all_gather" 1: 0 9 to 1 4 ["all_gather_dim" "channel_id" "replica_groups" "use_global_device_ids"],
    "all_gather" 2: 1 5 ["all_gather_dim" "channel_id" "replica_groups" "use_global_device_ids"],
    "all_reduce" 1: 0 9 to 1 4 ["channel_id" "replica_groups" "use_global_device_ids"],
    "all_reduce" 2: 1 5 ["channel_id" "replica_groups" "use_global_device_ids"],
    "all_to_all" 1: 0 9 to 1 4 ["channel_id" "concat_dimension" "replica_groups" "split_count" "split_dimension"],
    "all_to_all" 2: 1 5 ["channel_id" "concat_dimension" "replica_groups" "split_count" "split_dimension"],
    "and" 1: 0 9 [],
    "async_done" 1: 1 15 [],
    "async_start" 1: 1 15 [],
    "atan2" 1: 0 9 [],
    "batch_norm_grad" 1: 0 9 ["epsilon" "feature_index"],
    "batch_norm_inference" 1: 0 9 ["epsilon" "feature_index"],
    "batch_norm_training" 1: 0 9 ["epsilon" "feature_index"],
    "bitcast_convert" 1: 0 9 [],
    "broadcast" 1: 0 9 ["broadcast_sizes"],
    "broadcast_in_dim" 1: 0 9 ["broadcast_dimensions"],
    "call" 1: 0 9 ["callee"],
    "case" 1: 0 9 [],
    "cbrt" 1: 0 9 to 1 9 [],
    "cbrt" 2: 1 10 ["result_accuracy"],
    "ceil" 1: 0 9 [],
    "cholesky" 1: 0 9 ["lower"],
    "clamp" 1: 0 9 [],
    "collective_broadcast" 1: 0 16 to 1 19 ["channel_id" "replica_groups"],
    "collective_broadcast" 2: 1 20 ["channel_id" "has_dynamic_root" "replica_groups"],
    "collective_permute" 1: 0 9 ["channel_id" "source_target_pairs"],
    "collective_reduce" 1: 1 19 ["channel_id" "has_dynamic_root" "replica_groups" "use_global_device_ids"],
    "compare" 1: 0 9 ["compare_type" "comparison_direction"],
    "complex" 1: 0 9 [],
    "composite" 1: 0 19 to 1 13 ["composite_attributes" "decomposition" "name" "version"],
    "composite" 2: 1 14 ["composite_attributes" "decomposition" "name" "version"],
    "concatenate" 1: 0 9 ["dimension"],
    "constant" 1: 0 9 ["value"],
    "convert" 1: 0 9 [],
    "convolution" 1: 0 9 ["batch_group_count" "feature_group_count" "input_batch_dimension" "input_feature_dimension" "input_spatial_dimensions" "kernel_input_feature_dimension" "kernel_output_feature_dimension" "kernel_spatial_dimensions" "lhs_dilation" "output_batch_dimension" "output_feature_dimension" "output_spatial_dimensions" "padding" "precision_config" "rhs_dilation" "window_reversal" "window_strides"],
    "cosine" 1: 0 9 to 1 9 [],
    "cosine" 2: 1 10 ["result_accuracy"],
    "count_leading_zeros" 1: 0 9 [],
    "create_token" 1: 0 9 [],
    "cross-replica-sum" 1: 0 9 ["replica_groups"],
    "custom_call" 1: 0 9 to 1 17 ["api_version" "backend_config" "call_target_name" "called_computations" "has_side_effect" "operand_layouts" "output_operand_aliases" "result_layouts"],
    "custom_call" 2: 1 18 ["api_version" "backend_config" "call_target_name" "called_computations" "has_side_effect" "operand_layouts" "output_operand_aliases" "result_layouts" "result_tilings"],
    "divide" 1: 0 9 [],
    "dot" 1: 0 9 ["precision_config"],
    "dot_general" 1: 0 9 to 1 5 ["lhs_batching_dimensions" "lhs_contracting_dimensions" "precision_config" "rhs_batching_dimensions" "rhs_contracting_dimensions"],
    "dot_general" 2: 1 6 ["accumulation_type" "allow_imprecise_accumulation" "lhs_batching_dimensions" "lhs_component_count" "lhs_contracting_dimensions" "lhs_precision_type" "num_primitive_operations" "precision_config" "rhs_batching_dimensions" "rhs_component_count" "rhs_contracting_dimensions" "rhs_precision_type"],
    "dynamic_broadcast_in_dim" 1: 0 9 ["broadcast_dimensions" "known_expanding_dimensions" "known_nonexpanding_dimensions"],
    "dynamic_conv" 1: 0 9 to 0 19 ["batch_group_count" "feature_group_count" "input_batch_dimension" "input_feature_dimension" "input_spatial_dimensions" "kernel_input_feature_dimension" "kernel_output_feature_dimension" "kernel_spatial_dimensions" "lhs_dilation" "output_batch_dimension" "output_feature_dimension" "output_spatial_dimensions" "padding" "precision_config" "rhs_dilation" "window_reversal" "window_strides"],
    "dynamic_conv" 2: 0 20 ["batch_group_count" "feature_group_count" "input_batch_dimension" "input_feature_dimension" "input_spatial_dimensions" "kernel_input_feature_dimension" "kernel_output_feature_dimension" "kernel_spatial_dimensions" "lhs_dilation" "output_batch_dimension" "output_feature_dimension" "output_spatial_dimensions" "precision_config" "rhs_dilation" "window_reversal" "window_strides"],
    "dynamic_gather" 1: 0 9 to 1 0 ["collapsed_slice_dims" "index_vector_dim" "indices_are_sorted" "offset_dims" "start_index_map"],
    "dynamic_gather" 2: 1 1 ["collapsed_slice_dims" "index_vector_dim" "indices_are_sorted" "offset_dims" "operand_batching_dims" "start_index_map" "start_indices_batching_dims"],
    "dynamic_iota" 1: 0 9 ["iota_dimension"],
    "dynamic_pad" 1: 0 9 [],
    "dynamic_reshape" 1: 0 9 [],
    "dynamic_slice" 1: 0 9 ["slice_sizes"],
    "dynamic_update_slice" 1: 0 9 [],
    "einsum" 1: 0 9 ["einsum_config"],
    "exponential" 1: 0 9 to 1 8 [],
    "exponential" 2: 1 9 ["result_accuracy"],
    "exponential_minus_one" 1: 0 9 to 1 9 [],
    "exponential_minus_one" 2: 1 10 ["result_accuracy"],
    "fft" 1: 0 9 ["fft_length" "fft_type"],
    "floor" 1: 0 9 [],
    "func" 1: 0 9 ["arg_attrs" "function_type" "res_attrs" "sym_name" "sym_visibility"],
    "gather" 1: 0 9 to 1 0 ["collapsed_slice_dims" "index_vector_dim" "indices_are_sorted" "offset_dims" "slice_sizes" "start_index_map"],
    "gather" 2: 1 1 ["collapsed_slice_dims" "index_vector_dim" "indices_are_sorted" "offset_dims" "operand_batching_dims" "slice_sizes" "start_index_map" "start_indices_batching_dims"],
    "get_dimension_size" 1: 0 9 ["dimension"],
    "get_tuple_element" 1: 0 9 ["index"],
    "if" 1: 0 9 [],
    "imag" 1: 0 9 [],
    "infeed" 1: 0 9 ["infeed_config" "layout"],
    "iota" 1: 0 9 ["iota_dimension"],
    "is_finite" 1: 0 9 [],
    "log" 1: 0 9 to 1 9 [],
    "log" 2: 1 10 ["result_accuracy"],
    "log_plus_one" 1: 0 9 to 1 9 [],
    "log_plus_one" 2: 1 10 ["result_accuracy"],
    "logistic" 1: 0 9 to 1 9 [],
    "logistic" 2: 1 10 ["result_accuracy"],
    "map" 1: 0 9 ["dimensions"],
    "maximum" 1: 0 9 [],
    "minimum" 1: 0 9 [],
    "multiply" 1: 0 9 [],
    "negate" 1: 0 9 [],
    "not" 1: 0 9 [],
    "optimization_barrier" 1: 0 9 [],
    "or" 1: 0 9 [],
    "outfeed" 1: 0 9 ["outfeed_config"],
    "pad" 1: 0 9 ["edge_padding_high" "edge_padding_low" "interior_padding"],
    "partition_id" 1: 0 9 [],
    "popcnt" 1: 0 9 [],
    "power" 1: 0 9 [],
    "real" 1: 0 9 [],
    "real_dynamic_slice" 1: 0 9 [],
    "recv" 1: 0 9 to 1 11 ["channel_id" "channel_type" "is_host_transfer"],
    "recv" 2: 1 12 ["channel_id" "channel_type" "is_host_transfer" "source_target_pairs"],
    "reduce" 1: 0 9 ["dimensions"],
    "reduce_precision" 1: 0 9 ["exponent_bits" "mantissa_bits"],
    "reduce_scatter" 1: 0 9 ["channel_id" "replica_groups" "scatter_dimension" "use_global_device_ids"],
    "reduce_window" 1: 0 9 ["base_dilations" "padding" "window_dilations" "window_dimensions" "window_strides"],
    "remainder" 1: 0 9 [],
    "replica_id" 1: 0 9 [],
    "reshape" 1: 0 9 [],
    "return" 1: 0 9 [],
    "reverse" 1: 0 9 ["dimensions"],
    "rng" 1: 0 9 ["rng_distribution"],
    "rng_bit_generator" 1: 0 9 ["rng_algorithm"],
    "round_nearest_afz" 1: 0 9 [],
    "round_nearest_even" 1: 0 9 [],
    "rsqrt" 1: 0 9 to 1 9 [],
    "rsqrt" 2: 1 10 ["result_accuracy"],
    "scatter" 1: 0 9 to 1 0 ["index_vector_dim" "indices_are_sorted" "inserted_window_dims" "scatter_dims_to_operand_dims" "unique_indices" "update_window_dims"],
    "scatter" 2: 1 1 ["index_vector_dim" "indices_are_sorted" "input_batching_dims" "inserted_window_dims" "scatter_dims_to_operand_dims" "scatter_indices_batching_dims" "unique_indices" "update_window_dims"],
    "select" 1: 0 9 [],
    "select_and_scatter" 1: 0 9 ["padding" "window_dimensions" "window_strides"],
    "send" 1: 0 9 to 1 11 ["channel_id" "channel_type" "is_host_transfer"],
    "send" 2: 1 12 ["channel_id" "channel_type" "is_host_transfer" "source_target_pairs"],
    "set_dimension_size" 1: 0 9 ["dimension"],
    "shift_left" 1: 0 9 [],
    "shift_right_arithmetic" 1: 0 9 [],
    "shift_right_logical" 1: 0 9 [],
    "sign" 1: 0 9 [],
    "sine" 1: 0 9 to 1 9 [],
    "sine" 2: 1 10 ["result_accuracy"],
    "slice" 1: 0 9 ["limit_indices" "start_indices" "strides"],
    "sort" 1: 0 9 ["dimension" "is_stable"],
    "sqrt" 1: 0 9 to 1 9 [],
    "sqrt" 2: 1 10 ["result_accuracy"],
    "subtract" 1: 0 9 [],
    "tan" 1: 1 4 to 1 9 [],
    "tan" 2: 1 10 ["result_accuracy"],
    "tanh" 1: 0 9 to 1 9 [],
    "tanh" 2: 1 10 ["result_accuracy"],
    "torch_index_select" 1: 0 9 ["batch_dims" "dim"],
    "transpose" 1: 0 9 ["permutation"],
    "triangular_solve" 1: 0 9 ["left_side" "lower" "transpose_a" "unit_diagonal"],
    "tuple" 1: 0 9 [],
    "unary_einsum" 1: 0 9 ["einsum_config"],
    "uniform_dequantize" 1: 0 9 [],
    "uniform_quantize" 1: 0 9 [],
    "while" 1: 0 9 [],
    "xor" 1: 0 9 [],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_revisions_follow_each_other() {
        for pair in OPERATIONS.windows(2) {
            let (a, b) = (&pair[0], &pair[1]);
            assert!((a.name, a.revision) < (b.name, b.revision), "{} after {}", b.name, a.name);
            if a.name == b.name {
                let until = a.until.expect("an older revision ends");
                assert!(until < b.since, "{}", a.name);
                assert_eq!(b.revision, a.revision + 1);
            } else {
                assert_eq!(a.until, None, "{}", a.name);
            }
        }
        for op in OPERATIONS {
            assert!(op.attributes.is_sorted(), "{}", op.name);
        }
    }

    #[test]
    fn operations_are_found_by_name() {
        assert_eq!(find("scatter_v2").map(|op| op.attributes.len()), Some(8));
        assert_eq!(find("cross-replica-sum_v1").map(|op| op.revision), Some(1));
        assert!(find("scatter_v3").is_none() && find("scatter").is_none() && find("").is_none());
        assert_eq!(revisions("exponential").count(), 2);
    }
}
