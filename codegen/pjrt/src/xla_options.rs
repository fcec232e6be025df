//! XLA's compiler options of type bool, integer and float (`xla/xla.proto`, `DebugOptions`, as of October
//! 2026), so that a value that does not parse is an error. The options have no effect here.

use crate::error::{Failure, Result};

/// Options that are true or false, each without its `xla_`.
const BOOLEAN: &str = "\
    allow_excess_precision allow_h2h_copy_when_automatic_host_compute_offload_disabled allow_scalar_index_dynamic_ops compile_all_supported_configs \
     cpu_copy_insertion_use_region_analysis cpu_enable_concurrency_optimized_scheduler cpu_enable_fast_math cpu_enable_fast_min_max \
     cpu_enable_platform_dependent_math cpu_enable_xprof_traceme cpu_experimental_enable_tiling_propagation cpu_experimental_onednn_custom_call \
     cpu_fast_math_honor_division cpu_fast_math_honor_functions cpu_fast_math_honor_infs cpu_fast_math_honor_nans cpu_ftz \
     cpu_generate_unique_c_style_kernel_entry_points cpu_multi_thread_eigen cpu_strict_dot_conv_math cpu_use_acl cpu_use_new_xtile_lowering cpu_use_onednn \
     cpu_use_xnnpack detailed_logging disable_all_hlo_passes disable_automatic_host_compute_offload dump_buffer_assignment_analysis dump_compact_gte \
     dump_compress_protos dump_disable_metadata dump_enable_mlir_pretty_form dump_full_hlo_config dump_fusion_visualization dump_hlo_as_dot \
     dump_hlo_as_html dump_hlo_as_long_text dump_hlo_as_proto dump_hlo_as_riegeli dump_hlo_as_text dump_hlo_as_url dump_hlo_snapshots dump_hlo_to_subfolder \
     dump_hlo_unoptimized_snapshots dump_include_timestamp dump_large_constants dump_latency_hiding_schedule dump_module_metadata early_exit_with_layouts \
     eliminate_hlo_implicit_broadcast embed_ir_in_executable enable_command_buffers_during_profiling enable_dumping enable_enzyme_comms_opt \
     enable_fast_math enable_hlo_modules_upload enable_hlo_sharding_v3 enable_rgv3_materialization enable_scoped_logging_timers flags_reset \
     gpu_all_reduce_splitter_ignore_profitability_check gpu_allow_ragged_all_to_all_nccl_send_recv_fallback gpu_async_dot gpu_collect_cost_model_stats \
     gpu_collective_permute_connected_components gpu_command_buffer_unroll_loops gpu_copy_insertion_use_region_analysis gpu_crash_on_verification_failures \
     gpu_cublas_fallback gpu_default_to_alg_dot_bf16_bf16_f32 gpu_deterministic_ops gpu_disable_gpuasm_optimizations gpu_dump_autotuned_gemm_fusions \
     gpu_dump_autotuned_instructions gpu_dump_llvmir gpu_enable_all_gather_combine_by_dim gpu_enable_allocator_spatial_partitioning \
     gpu_enable_analytical_latency_estimator gpu_enable_analytical_sol_latency_estimator gpu_enable_approx_costly_collectives gpu_enable_cub_radix_sort \
     gpu_enable_cublaslt gpu_enable_cudnn_int8x32_convolution_reordering gpu_enable_cudnn_layer_norm gpu_enable_cupti_multi_subscriber \
     gpu_enable_dus_accumulator_zero_init_elimination gpu_enable_dynamic_slice_fusion gpu_enable_fast_min_max gpu_enable_gxl_ragged_all_to_all \
     gpu_enable_highest_priority_async_stream gpu_enable_host_memory_offloading gpu_enable_latency_hiding_scheduler gpu_enable_libnvptxcompiler \
     gpu_enable_nccl_clique_optimization gpu_enable_nccl_comm_splitting gpu_enable_nccl_user_buffers gpu_enable_nccl_user_buffers_in_default_space \
     gpu_enable_pdl gpu_enable_pdl_launch gpu_enable_persistent_symmetric_memory gpu_enable_pipelined_host_offloading gpu_enable_pipelined_p2p \
     gpu_enable_reassociation_for_converted_ar gpu_enable_reduce_scatter_combine_by_dim gpu_enable_scatter_determinism_expander gpu_enable_triton_gemm \
     gpu_enable_while_loop_double_buffering gpu_enable_while_loop_reduce_scatter_code_motion gpu_exclude_nondeterministic_ops \
     gpu_executable_embed_debug_info gpu_exhaustive_tiling_search gpu_experimental_all_fusions_with_triton gpu_experimental_autotune_post_fusion \
     gpu_experimental_collective_start_as_early_as_possible gpu_experimental_cost_model_gemm_tiling_default gpu_experimental_disable_binary_libraries \
     gpu_experimental_dump_fdo_profiles gpu_experimental_dump_gpu_executable gpu_experimental_dynamic_slice_fusion_verify_offsets \
     gpu_experimental_enable_alltoall_windowed_einsum gpu_experimental_enable_buffer_saver_on_thunks gpu_experimental_enable_checksum_tracing_on_thunks \
     gpu_experimental_enable_collective_multi_streaming gpu_experimental_enable_conv_fusion gpu_experimental_enable_fusion_autotuner \
     gpu_experimental_enable_fusion_block_level_rewriter gpu_experimental_enable_heuristic_collective_combining \
     gpu_experimental_enable_nccl_symmetric_buffers gpu_experimental_enable_raft_for_stable_topk gpu_experimental_enable_same_shape_multi_output_fusion \
     gpu_experimental_enable_selective_memcpy_overlap gpu_experimental_enable_subchannel_dequantisation_fusion gpu_experimental_enable_tiling_propagation \
     gpu_experimental_enable_triton_heroless_priority_fusion gpu_experimental_enable_triton_warp_specialization gpu_experimental_gemm_fusion_v2 \
     gpu_experimental_pack_dot_operands_along_k_dimension gpu_experimental_ragged_all_to_all_use_barrier_with_nccl \
     gpu_experimental_ragged_all_to_all_use_device_kernel gpu_experimental_scaled_dot_with_triton gpu_experimental_stream_annotation \
     gpu_experimental_thunk_buffer_debug_module_outputs gpu_experimental_use_ragged_dot_fusion gpu_experimental_use_ragged_dot_grouped_gemm \
     gpu_fail_ptx_compilation_on_register_spilling gpu_filter_kernels_spilling_registers_on_autotuning gpu_force_conv_nchw gpu_force_conv_nhwc gpu_ftz \
     gpu_generate_debug_info gpu_generate_line_info gpu_graph_enable_concurrent_region gpu_log_minmax gpu_mock_custom_calls \
     gpu_multi_streamed_windowed_einsum gpu_native_emitter_tune_unroll_factor_for_loops gpu_nccl_async_execution gpu_nccl_blocking_communicators \
     gpu_nccl_terminate_on_error gpu_print_compilation_stats gpu_require_complete_aot_autotune_results gpu_require_exclusive_lock gpu_shard_autotuning \
     gpu_temp_buffer_use_separate_color gpu_triton_gemm_any gpu_unsafe_fallback_to_driver_on_ptxas_not_found gpu_unsupported_enable_all_reduce_decomposer \
     gpu_unsupported_enable_ragged_all_to_all_decomposer gpu_unsupported_enable_ragged_all_to_all_multi_host_decomposer gpu_unsupported_enable_triton_gemm \
     gpu_unsupported_enable_triton_multi_output_fusion gpu_unsupported_use_all_reduce_one_shot_kernel gpu_unsupported_use_ragged_all_to_all_one_shot_kernel \
     gpu_use_memcpy_local_p2p gpu_use_new_autotune_cache_format gpu_use_runtime_fusion gpu_verify_triton_fusion_numerics hlo_evaluator_use_fast_path \
     hlo_graph_addresses hlo_graph_sharding_color hlo_pass_fix_detect_cycles hlo_print_inline_stack_frames hlo_profile keep_shardings_after_spmd \
     llvm_disable_expensive_passes llvm_enable_alias_scope_metadata llvm_enable_invariant_load_metadata llvm_enable_noalias_metadata \
     pjrt_allow_auto_layout_in_hlo sdy_export_all_reduce_scatter spmd_enable_dynamic_slice_collective_broadcast syntax_sugar_async_ops \
     test_add_command_buffer_mode test_all_input_layouts test_all_output_layouts tpu_detect_inf tpu_detect_nan \
     unsupported_crash_on_hlo_pass_fix_max_iterations unsupported_crash_on_hlo_pass_noop_change unsupported_crash_on_hlo_pass_silent_hlo_change";

/// Options that are integers.
const INTEGER: &str = "\
    backend_optimization_level cmd_buffer_trace_cache_size cpu_collective_call_terminate_timeout_seconds cpu_collective_call_warn_stuck_seconds \
     cpu_collective_timeout_seconds cpu_emitter_verification_level cpu_parallel_codegen_split_count cpu_prefer_vector_width \
     debug_buffer_assignment_show_max deduplicate_backend_configs_min_size dump_max_hlo_modules force_host_platform_device_count \
     gpu_all_gather_combine_threshold_bytes gpu_all_reduce_blueconnect_num_devices_per_host gpu_all_reduce_combine_threshold_bytes gpu_async_copy_min_bytes \
     gpu_auto_spmd_partitioning_memory_budget_gb gpu_autotune_level gpu_autotune_max_solutions gpu_blas_max_algorithms \
     gpu_collective_combine_threshold_count gpu_collective_inflation_factor gpu_collective_permute_combine_threshold_bytes \
     gpu_collective_permute_decomposer_threshold gpu_cudnn_gemm_fusion_level gpu_cudnn_gemm_max_plans gpu_dot_merger_threshold_mb \
     gpu_executable_num_communication_streams gpu_executable_num_compute_streams gpu_executable_terminate_timeout_seconds \
     gpu_executable_warn_stuck_timeout_seconds gpu_execution_progress_tracking gpu_experimental_collective_cse_distance_threshold \
     gpu_experimental_force_split_k gpu_experimental_max_unroll_factor gpu_experimental_parallel_async_compute_limit \
     gpu_experimental_parallel_collective_overlap_limit gpu_experimental_parallel_scale_up_collective_overlap_limit \
     gpu_experimental_scheduler_memory_fencing_slack_windows gpu_experimental_scheduler_memory_fencing_threshold_bytes \
     gpu_first_collective_call_terminate_timeout_seconds gpu_first_collective_call_warn_stuck_timeout_seconds gpu_force_compilation_parallelism \
     gpu_fusion_autotune_top_k_configs gpu_gemm_rewrite_size_threshold gpu_graph_min_graph_size gpu_gxl_scratch_size_bytes gpu_llvm_verification_level \
     gpu_memory_limit_slop_factor gpu_nccl_collective_max_nchannels gpu_nccl_init_max_rank_per_root_ratio gpu_nccl_p2p_max_nchannels \
     gpu_nccl_termination_timeout_seconds gpu_operand_bytes_threshold_for_windowed_einsum gpu_reduce_scatter_combine_threshold_bytes \
     gpu_redzone_padding_bytes gpu_rocm_max_trace_events gpu_threshold_for_windowed_einsum_mib gpu_trace_annotation_level \
     gpu_unsupported_override_fast_interconnect_slice_size multiheap_size_constraint_per_heap recognize_reduction_optimization_level \
     reduce_window_rewrite_base_length while_loop_all_reduce_dus_code_motion_max_size_bytes";

/// Options that are numbers.
const NUMBER: &str = "\
    gpu_auto_spmd_partitioning_memory_budget_ratio gpu_autotune_gemm_rtol";

/// Refuses a string that does not parse as the type of an option of XLA. Options that are not listed accept
/// any value, because each version of XLA has others.
///
/// # Errors
/// The option holds a truth value or a number, and the text is none.
pub(crate) fn check_value(option: &str, value: &str) -> Result<()> {
    let name = option.strip_prefix("xla_").unwrap_or(option);
    let has = |names: &str| names.split_whitespace().any(|n| n == name);
    let (wrong, kind) = if has(BOOLEAN) {
        (!["true", "false", "1", "0"].iter().any(|v| value.eq_ignore_ascii_case(v)), "bool")
    } else if has(INTEGER) {
        (value.parse::<i64>().is_err(), "int")
    } else if has(NUMBER) {
        (value.parse::<f64>().is_err(), "float")
    } else {
        return Ok(());
    };
    if wrong {
        return Err(Failure::invalid(format!(
            "While setting option {option}, '{value}' is not a valid {kind} value."
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_of_the_kind_of_their_option() {
        for (option, value) in [
            ("xla_embed_ir_in_executable", "True"),
            ("xla_embed_ir_in_executable", "0"),
            ("xla_dump_max_hlo_modules", "-1"),
            ("xla_gpu_autotune_gemm_rtol", "0.25"),
            ("xla_dump_to", "anything"),
            ("xla_of_another_version", "anything"),
        ] {
            check_value(option, value).unwrap();
        }
        for (option, value, kind) in [
            ("xla_embed_ir_in_executable", "invalid_value", "bool"),
            ("xla_dump_max_hlo_modules", "2.5", "int"),
            ("xla_gpu_autotune_gemm_rtol", "", "float"),
        ] {
            let message = check_value(option, value).unwrap_err().message;
            assert!(
                message.contains(&format!("'{value}' is not a valid {kind} value."))
                    && message.contains(option),
                "{message}"
            );
        }
    }
}
