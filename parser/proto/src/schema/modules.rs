//! Modules, computations, instructions, snapshots.

use super::Type::*;
use super::assignment::BUFFER_ASSIGNMENT;
use super::devices::{
    COLLECTIVE_DEVICE_LIST, DEVICE_ASSIGNMENT, IOTA_REPLICA_GROUP_LIST, MESH_AXES_REPLICA_GROUP_LIST,
    OP_SHARDING, REPLICA_GROUP, SOURCE_TARGET,
};
use super::operations::{
    CHOLESKY_OPTIONS, CONVOLUTION_DIMENSION_NUMBERS, DOT_DIMENSION_NUMBERS, FFT_TYPE,
    GATHER_DIMENSION_NUMBERS, OUTPUT_OPERAND_ALIASING, PADDING_CONFIG, PADDING_TYPE, PARAMETER_REPLICATION,
    PRECISION_CONFIG, RAGGED_DOT_DIMENSION_NUMBERS, RANDOM_ALGORITHM, RANDOM_DISTRIBUTION, RESULT_ACCURACY,
    SCATTER_DIMENSION_NUMBERS, SPARSITY_CONFIG, TRIANGULAR_SOLVE_OPTIONS, WINDOW,
};
use super::origins::{
    COMPILATION_EVENT, FRONTEND_ATTRIBUTES, OP_METADATA, ORIGINAL_ARRAY, ORIGINAL_VALUE, PAYLOAD,
    PROFILE_GENERATION_STRATEGY, PROFILE_SOURCE, STATISTICS_VIZ,
};
use super::shapes::{LITERAL, PROGRAM_SHAPE, SHAPE};
use super::text_only::MODULE_TEXT;
use super::{enums, messages};

enums! {
    CONVOLUTION_KIND "ConvolutionKind" { CONVOLUTION_KIND_UNSET = 0, CONVOLUTION_KIND_FPROP = 1, CONVOLUTION_KIND_DGRAD = 2, CONVOLUTION_KIND_WGRAD = 3, }
    CUSTOM_CALL_API_VERSION "CustomCallApiVersion" { API_VERSION_UNSPECIFIED = 0, API_VERSION_ORIGINAL = 1, API_VERSION_STATUS_RETURNING = 2, API_VERSION_STATUS_RETURNING_UNIFIED = 3, API_VERSION_TYPED_FFI = 4, }
    CUSTOM_CALL_SCHEDULE "CustomCallSchedule" { SCHEDULE_NONE = 0, SCHEDULE_LATEST = 1, SCHEDULE_EARLIEST = 2, }
    HLO_MODULE_PROFILE_TYPE "HloModuleProto.ProfileType" { INVALID = 0, FLAG = 1, FUSION = 2, LAYOUT = 3, DOT = 4, FLAGNET = 5, SHARDING = 6, SCHEDULE = 7, }
    KIND "Kind" { UNDEFINED_ALIAS = 0, MAY_ALIAS = 1, MUST_ALIAS = 2, }
    TRI_STATE "TriState" { TRI_STATE_UNSPECIFIED = 0, TRI_STATE_TRUE = 1, TRI_STATE_FALSE = 2, }
}

messages! {
    HLO_MODULE hlo_module "HloModuleProto" {
        name NAME = 1: one String;
        entry_computation_name ENTRY_COMPUTATION_NAME = 2: one String;
        computations COMPUTATIONS = 3: many Message(&HLO_COMPUTATION);
        host_program_shape HOST_PROGRAM_SHAPE = 4: one Message(&PROGRAM_SHAPE);
        id ID = 5: one Int64;
        entry_computation_id ENTRY_COMPUTATION_ID = 6: one Int64;
        schedule SCHEDULE = 7: one Message(&HLO_SCHEDULE);
        input_output_alias INPUT_OUTPUT_ALIAS = 8: one Message(&HLO_INPUT_OUTPUT_ALIAS);
        cross_program_prefetches CROSS_PROGRAM_PREFETCHES = 10: many Message(&CROSS_PROGRAM_PREFETCH);
        is_dynamic IS_DYNAMIC = 11: one Bool;
        spmd_output_sharding SPMD_OUTPUT_SHARDING = 12: one Message(&OP_SHARDING);
        profile_info PROFILE_INFO = 13: many Message(&HLO_MODULE_PROFILE_INFO);
        spmd_parameters_shardings SPMD_PARAMETERS_SHARDINGS = 14: many Message(&OP_SHARDING);
        device_assignment DEVICE_ASSIGNMENT = 15: one Message(&DEVICE_ASSIGNMENT);
        use_auto_spmd_partitioning USE_AUTO_SPMD_PARTITIONING = 16: one Bool;
        stack_frame_index STACK_FRAME_INDEX = 17: one Message(&STACK_FRAME_INDEX);
        buffer_donor BUFFER_DONOR = 18: one Message(&HLO_BUFFER_DONOR);
        frontend_attributes FRONTEND_ATTRIBUTES = 19: one Message(&FRONTEND_ATTRIBUTES);
        original_value_recovery_table ORIGINAL_VALUE_RECOVERY_TABLE = 20: one Message(&ORIGINAL_VALUE_RECOVERY_TABLE);
        device_type DEVICE_TYPE = 21: one String;
        payloads PAYLOADS = 22: many Bytes;
        pjrt_id PJRT_ID = 23: one Int64;
        // Not of XLA: see `text_only`.
        hlo_reference_text HLO_REFERENCE_TEXT = 100000: one Message(&MODULE_TEXT);
    }
    HLO_COMPUTATION hlo_computation "HloComputationProto" {
        name NAME = 1: one String;
        instructions INSTRUCTIONS = 2: many Message(&HLO_INSTRUCTION);
        program_shape PROGRAM_SHAPE = 4: one Message(&PROGRAM_SHAPE);
        id ID = 5: one Int64;
        root_id ROOT_ID = 6: one Int64;
        is_fusion_computation IS_FUSION_COMPUTATION = 7: one Bool;
        execution_thread EXECUTION_THREAD = 8: one String;
    }
    HLO_INSTRUCTION hlo_instruction "HloInstructionProto" {
        name NAME = 1: one String;
        opcode OPCODE = 2: one String;
        shape SHAPE = 3: one Message(&SHAPE);
        metadata METADATA = 7: one Message(&OP_METADATA);
        literal LITERAL = 8: one Message(&LITERAL);
        parameter_number PARAMETER_NUMBER = 9: one Int64;
        fusion_kind FUSION_KIND = 11: one String;
        tuple_index TUPLE_INDEX = 13: one Int64;
        dimensions DIMENSIONS = 14: many Int64;
        window WINDOW = 15: one Message(&WINDOW);
        convolution_dimension_numbers CONVOLUTION_DIMENSION_NUMBERS = 16: one Message(&CONVOLUTION_DIMENSION_NUMBERS);
        slice_dimensions SLICE_DIMENSIONS = 17: many Message(&HLO_INSTRUCTION_SLICE_DIMENSIONS);
        exponent_bits EXPONENT_BITS = 18: one Int32;
        mantissa_bits MANTISSA_BITS = 19: one Int32;
        dynamic_slice_sizes DYNAMIC_SLICE_SIZES = 20: many Int64;
        padding_config PADDING_CONFIG = 21: one Message(&PADDING_CONFIG);
        outfeed_config OUTFEED_CONFIG = 22: one Bytes;
        distribution DISTRIBUTION = 23: one Enum(&RANDOM_DISTRIBUTION);
        epsilon EPSILON = 24: one Float;
        feature_index FEATURE_INDEX = 25: one Int64;
        channel_id CHANNEL_ID = 26: one Int64;
        infeed_config INFEED_CONFIG = 27: one Bytes;
        custom_call_target CUSTOM_CALL_TARGET = 28: one String;
        outfeed_shape OUTFEED_SHAPE = 29: one Message(&SHAPE);
        dot_dimension_numbers DOT_DIMENSION_NUMBERS = 30: one Message(&DOT_DIMENSION_NUMBERS);
        fft_type FFT_TYPE = 31: one Enum(&FFT_TYPE);
        fft_length FFT_LENGTH = 32: many Int64;
        gather_dimension_numbers GATHER_DIMENSION_NUMBERS = 33: one Message(&GATHER_DIMENSION_NUMBERS);
        gather_slice_sizes GATHER_SLICE_SIZES = 34: many Int64;
        id ID = 35: one Int64;
        operand_ids OPERAND_IDS = 36: many Int64;
        control_predecessor_ids CONTROL_PREDECESSOR_IDS = 37: many Int64;
        called_computation_ids CALLED_COMPUTATION_IDS = 38: many Int64;
        sharding SHARDING = 40: one Message(&OP_SHARDING);
        backend_config BACKEND_CONFIG = 43: one Bytes;
        all_reduce_id ALL_REDUCE_ID = 45: one Int64;
        is_host_transfer IS_HOST_TRANSFER = 47: one Bool;
        scatter_dimension_numbers SCATTER_DIMENSION_NUMBERS = 48: one Message(&SCATTER_DIMENSION_NUMBERS);
        replica_groups REPLICA_GROUPS = 49: many Message(&REPLICA_GROUP);
        feature_group_count FEATURE_GROUP_COUNT = 50: one Int64;
        precision_config PRECISION_CONFIG = 51: one Message(&PRECISION_CONFIG);
        source_target_pairs SOURCE_TARGET_PAIRS = 52: many Message(&SOURCE_TARGET);
        domain_entry_sharding DOMAIN_ENTRY_SHARDING = 54: one Message(&OP_SHARDING);
        domain_exit_sharding DOMAIN_EXIT_SHARDING = 55: one Message(&OP_SHARDING);
        constrain_layout CONSTRAIN_LAYOUT = 56: one Bool;
        operand_shapes_with_layout OPERAND_SHAPES_WITH_LAYOUT = 57: many Message(&SHAPE);
        batch_group_count BATCH_GROUP_COUNT = 58: one Int64;
        triangular_solve_options TRIANGULAR_SOLVE_OPTIONS = 59: one Message(&TRIANGULAR_SOLVE_OPTIONS);
        is_stable IS_STABLE = 60: one Bool;
        parameter_replication PARAMETER_REPLICATION = 61: one Message(&PARAMETER_REPLICATION);
        cholesky_options CHOLESKY_OPTIONS = 62: one Message(&CHOLESKY_OPTIONS);
        comparison_direction COMPARISON_DIRECTION = 63: one String;
        custom_call_has_side_effect CUSTOM_CALL_HAS_SIDE_EFFECT = 65: one Bool;
        delta DELTA = 66: one Int64;
        indices_are_sorted INDICES_ARE_SORTED = 67: one Bool;
        frontend_attributes FRONTEND_ATTRIBUTES = 68: one Message(&FRONTEND_ATTRIBUTES);
        unique_indices UNIQUE_INDICES = 69: one Bool;
        rng_algorithm RNG_ALGORITHM = 70: one Enum(&RANDOM_ALGORITHM);
        use_global_device_ids USE_GLOBAL_DEVICE_IDS = 71: one Bool;
        comparison_type COMPARISON_TYPE = 72: one String;
        is_cross_program_prefetch IS_CROSS_PROGRAM_PREFETCH = 73: one Bool;
        output_operand_aliasing OUTPUT_OPERAND_ALIASING = 74: many Message(&OUTPUT_OPERAND_ALIASING);
        padding_type PADDING_TYPE = 75: one Enum(&PADDING_TYPE);
        custom_call_schedule CUSTOM_CALL_SCHEDULE = 76: one Enum(&CUSTOM_CALL_SCHEDULE);
        custom_call_api_version CUSTOM_CALL_API_VERSION = 77: one Enum(&CUSTOM_CALL_API_VERSION);
        async_execution_thread ASYNC_EXECUTION_THREAD = 79: one String;
        cross_program_prefetch_index CROSS_PROGRAM_PREFETCH_INDEX = 80: one Int32;
        k K = 81: one Int64;
        statistics_viz STATISTICS_VIZ = 82: one Message(&STATISTICS_VIZ);
        largest LARGEST = 85: one Bool;
        collective_device_list COLLECTIVE_DEVICE_LIST = 87: one Message(&COLLECTIVE_DEVICE_LIST);
        original_value ORIGINAL_VALUE = 88: one Message(&ORIGINAL_VALUE);
        is_composite IS_COMPOSITE = 89: one Bool;
        ragged_dot_dimension_numbers RAGGED_DOT_DIMENSION_NUMBERS = 90: one Message(&RAGGED_DOT_DIMENSION_NUMBERS);
        result_accuracy RESULT_ACCURACY = 91: one Message(&RESULT_ACCURACY);
        iota_collective_device_list IOTA_COLLECTIVE_DEVICE_LIST = 92: one Message(&IOTA_REPLICA_GROUP_LIST);
        mesh_axes_replica_group_list MESH_AXES_REPLICA_GROUP_LIST = 93: one Message(&MESH_AXES_REPLICA_GROUP_LIST);
        is_reverse IS_REVERSE = 94: one Bool;
        num_carries NUM_CARRIES = 95: one Int64;
        is_associative IS_ASSOCIATIVE = 96: one Enum(&TRI_STATE);
        conv_kind CONV_KIND = 97: one Enum(&CONVOLUTION_KIND);
        sparsity_config SPARSITY_CONFIG = 98: one Message(&SPARSITY_CONFIG);
        backend_config_payload BACKEND_CONFIG_PAYLOAD = 99: one Message(&PAYLOAD);
    }
    HLO_INSTRUCTION_SLICE_DIMENSIONS hlo_instruction_slice_dimensions "HloInstructionProto.SliceDimensions" {
        start START = 1: one Int64;
        limit LIMIT = 2: one Int64;
        stride STRIDE = 3: one Int64;
    }
    HLO_SCHEDULE hlo_schedule "HloScheduleProto" {
        sequences SEQUENCES = 1: many Message(&HLO_SCHEDULE_SEQUENCES_ENTRY);
    }
    HLO_SCHEDULE_SEQUENCES_ENTRY hlo_schedule_sequences_entry "HloScheduleProto.SequencesEntry" {
        key KEY = 1: one Int64;
        value VALUE = 2: one Message(&HLO_SCHEDULE_INSTRUCTION_SEQUENCE);
    }
    HLO_SCHEDULE_INSTRUCTION_SEQUENCE hlo_schedule_instruction_sequence "HloScheduleProto.InstructionSequence" {
        instruction_ids INSTRUCTION_IDS = 1: many Int64;
    }
    HLO_INPUT_OUTPUT_ALIAS hlo_input_output_alias "HloInputOutputAliasProto" {
        entries ENTRIES = 1: many Message(&HLO_INPUT_OUTPUT_ALIAS_ALIAS_ENTRY);
    }
    HLO_INPUT_OUTPUT_ALIAS_ALIAS_ENTRY hlo_input_output_alias_alias_entry "HloInputOutputAliasProto.AliasEntryProto" {
        output_shape_index OUTPUT_SHAPE_INDEX = 1: many Int64;
        parameter_number PARAMETER_NUMBER = 2: one Int64;
        parameter_shape_index PARAMETER_SHAPE_INDEX = 3: many Int64;
        kind KIND = 4: one Enum(&KIND);
    }
    HLO_BUFFER_DONOR hlo_buffer_donor "HloBufferDonorProto" {
        entries ENTRIES = 1: many Message(&HLO_BUFFER_DONOR_BUFFER_DONOR_ENTRY);
    }
    HLO_BUFFER_DONOR_BUFFER_DONOR_ENTRY hlo_buffer_donor_buffer_donor_entry "HloBufferDonorProto.BufferDonorEntryProto" {
        parameter_number PARAMETER_NUMBER = 1: one Int64;
        parameter_shape_index PARAMETER_SHAPE_INDEX = 2: many Int64;
    }
    CROSS_PROGRAM_PREFETCH cross_program_prefetch "CrossProgramPrefetch" {
        parameter PARAMETER = 1: one Int64;
        index INDEX = 2: many Int64;
        offset OFFSET = 3: one Int64;
    }
    HLO_MODULE_PROFILE_INFO hlo_module_profile_info "HloModuleProto.ProfileInfo" {
        profile_type PROFILE_TYPE = 1: one Enum(&HLO_MODULE_PROFILE_TYPE);
        relative_speedup RELATIVE_SPEEDUP = 2: one Double;
        profile_source PROFILE_SOURCE = 3: one Enum(&PROFILE_SOURCE);
        compilation_event COMPILATION_EVENT = 4: one Enum(&COMPILATION_EVENT);
        fingerprint FINGERPRINT = 5: one String;
        profile_generation_strategy PROFILE_GENERATION_STRATEGY = 6: one Enum(&PROFILE_GENERATION_STRATEGY);
        original_changelist ORIGINAL_CHANGELIST = 7: one Int64;
        changelist CHANGELIST = 8: one Int64;
    }
    STACK_FRAME_INDEX stack_frame_index "StackFrameIndexProto" {
        file_names FILE_NAMES = 1: many String;
        function_names FUNCTION_NAMES = 2: many String;
        file_locations FILE_LOCATIONS = 3: many Message(&STACK_FRAME_INDEX_FILE_LOCATION);
        stack_frames STACK_FRAMES = 4: many Message(&STACK_FRAME_INDEX_STACK_FRAME);
    }
    STACK_FRAME_INDEX_FILE_LOCATION stack_frame_index_file_location "StackFrameIndexProto.FileLocation" {
        file_name_id FILE_NAME_ID = 1: one Int32;
        function_name_id FUNCTION_NAME_ID = 2: one Int32;
        line LINE = 3: one Int32;
        column COLUMN = 4: one Int32;
        end_line END_LINE = 5: one Int32;
        end_column END_COLUMN = 6: one Int32;
    }
    STACK_FRAME_INDEX_STACK_FRAME stack_frame_index_stack_frame "StackFrameIndexProto.StackFrame" {
        file_location_id FILE_LOCATION_ID = 1: one Int32;
        parent_frame_id PARENT_FRAME_ID = 2: one Int32;
    }
    ORIGINAL_VALUE_RECOVERY_TABLE original_value_recovery_table "OriginalValueRecoveryTableProto" {
        entries ENTRIES = 1: many Message(&ORIGINAL_VALUE_RECOVERY_TABLE_ENTRY);
    }
    ORIGINAL_VALUE_RECOVERY_TABLE_ENTRY original_value_recovery_table_entry "OriginalValueRecoveryTableProto.Entry" {
        old_original_array OLD_ORIGINAL_ARRAY = 1: one Message(&ORIGINAL_ARRAY);
        new_original_array NEW_ORIGINAL_ARRAY = 2: one Message(&ORIGINAL_ARRAY);
        recovery_module RECOVERY_MODULE = 3: one Message(&HLO_MODULE);
    }
    HLO hlo_proto "HloProto" {
        hlo_module HLO_MODULE = 1: one Message(&HLO_MODULE);
        buffer_assignment BUFFER_ASSIGNMENT = 3: one Message(&BUFFER_ASSIGNMENT);
    }
    HLO_SNAPSHOT hlo_snapshot "HloSnapshot" {
        hlo HLO = 1: one Message(&HLO);
        arguments ARGUMENTS = 2: many Message(&LITERAL);
        result RESULT = 3: one Message(&LITERAL);
        execution_platform EXECUTION_PLATFORM = 4: one String;
    }
    HLO_UNOPTIMIZED_SNAPSHOT hlo_unoptimized_snapshot "HloUnoptimizedSnapshot" {
        hlo_module HLO_MODULE = 1: one Message(&HLO_MODULE);
        partitions PARTITIONS = 2: many Message(&HLO_INPUTS);
        version VERSION = 3: one Int32;
    }
    HLO_INPUTS hlo_inputs "HloInputs" {
        arguments ARGUMENTS = 1: many Message(&LITERAL);
        arguments_descriptors ARGUMENTS_DESCRIPTORS = 2: many Message(&HLO_INPUTS_LITERAL_DESCRIPTOR);
    }
    HLO_INPUTS_LITERAL_DESCRIPTOR hlo_inputs_literal_descriptor "HloInputs.LiteralDescriptor" {
        version VERSION = 1: one Int32;
        argument_size_bytes ARGUMENT_SIZE_BYTES = 2: one Uint64;
    }
}
