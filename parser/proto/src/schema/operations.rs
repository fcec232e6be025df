//! What single families of operations say.

use super::Type::*;
use super::{enums, messages};

enums! {
    FFT_TYPE "FftType" { FFT = 0, IFFT = 1, RFFT = 2, IRFFT = 3, }
    PADDING_TYPE "PaddingType" { PADDING_INVALID = 0, PADDING_VALID = 1, PADDING_SAME = 2, }
    PRECISION_CONFIG_ALGORITHM "PrecisionConfig.Algorithm" { ALG_UNSET = 0, ALG_DOT_ANY_F8_ANY_F8_F32 = 1, ALG_DOT_ANY_F8_ANY_F8_F32_FAST_ACCUM = 2, ALG_DOT_F16_F16_F16 = 3, ALG_DOT_F16_F16_F32 = 4, ALG_DOT_BF16_BF16_BF16 = 5, ALG_DOT_BF16_BF16_F32 = 6, ALG_DOT_BF16_BF16_F32_X3 = 7, ALG_DOT_BF16_BF16_F32_X6 = 8, ALG_DOT_TF32_TF32_F32 = 9, ALG_DOT_TF32_TF32_F32_X3 = 10, ALG_DOT_F32_F32_F32 = 11, ALG_DOT_F64_F64_F64 = 12, ALG_DOT_BF16_BF16_F32_X9 = 13, }
    PRECISION_CONFIG_PRECISION "PrecisionConfig.Precision" { DEFAULT = 0, HIGH = 1, HIGHEST = 2, }
    RANDOM_ALGORITHM "RandomAlgorithm" { RNG_DEFAULT = 0, RNG_THREE_FRY = 1, RNG_PHILOX = 2, }
    RANDOM_DISTRIBUTION "RandomDistribution" { RNG_INVALID = 0, RNG_UNIFORM = 1, RNG_NORMAL = 2, }
    RESULT_ACCURACY_MODE "ResultAccuracy.Mode" { DEFAULT = 0, HIGHEST = 1, }
    TRIANGULAR_SOLVE_OPTIONS_TRANSPOSE "TriangularSolveOptions.Transpose" { TRANSPOSE_INVALID = 0, NO_TRANSPOSE = 1, TRANSPOSE = 2, ADJOINT = 3, }
}

messages! {
    WINDOW window "Window" {
        dimensions DIMENSIONS = 1: many Message(&WINDOW_DIMENSION);
    }
    WINDOW_DIMENSION window_dimension "WindowDimension" {
        size SIZE = 1: one Int64;
        stride STRIDE = 2: one Int64;
        padding_low PADDING_LOW = 3: one Int64;
        padding_high PADDING_HIGH = 4: one Int64;
        window_dilation WINDOW_DILATION = 5: one Int64;
        base_dilation BASE_DILATION = 6: one Int64;
        window_reversal WINDOW_REVERSAL = 7: one Bool;
    }
    CONVOLUTION_DIMENSION_NUMBERS convolution_dimension_numbers "ConvolutionDimensionNumbers" {
        kernel_input_feature_dimension KERNEL_INPUT_FEATURE_DIMENSION = 3: one Int64;
        kernel_output_feature_dimension KERNEL_OUTPUT_FEATURE_DIMENSION = 4: one Int64;
        kernel_spatial_dimensions KERNEL_SPATIAL_DIMENSIONS = 6: many Int64;
        input_batch_dimension INPUT_BATCH_DIMENSION = 7: one Int64;
        input_feature_dimension INPUT_FEATURE_DIMENSION = 8: one Int64;
        output_batch_dimension OUTPUT_BATCH_DIMENSION = 9: one Int64;
        output_feature_dimension OUTPUT_FEATURE_DIMENSION = 10: one Int64;
        input_spatial_dimensions INPUT_SPATIAL_DIMENSIONS = 11: many Int64;
        output_spatial_dimensions OUTPUT_SPATIAL_DIMENSIONS = 12: many Int64;
    }
    PADDING_CONFIG padding_config "PaddingConfig" {
        dimensions DIMENSIONS = 1: many Message(&PADDING_CONFIG_PADDING_CONFIG_DIMENSION);
    }
    PADDING_CONFIG_PADDING_CONFIG_DIMENSION padding_config_padding_config_dimension "PaddingConfig.PaddingConfigDimension" {
        edge_padding_low EDGE_PADDING_LOW = 1: one Int64;
        edge_padding_high EDGE_PADDING_HIGH = 2: one Int64;
        interior_padding INTERIOR_PADDING = 3: one Int64;
    }
    DOT_DIMENSION_NUMBERS dot_dimension_numbers "DotDimensionNumbers" {
        lhs_contracting_dimensions LHS_CONTRACTING_DIMENSIONS = 1: many Int64;
        rhs_contracting_dimensions RHS_CONTRACTING_DIMENSIONS = 2: many Int64;
        lhs_batch_dimensions LHS_BATCH_DIMENSIONS = 3: many Int64;
        rhs_batch_dimensions RHS_BATCH_DIMENSIONS = 4: many Int64;
    }
    RAGGED_DOT_DIMENSION_NUMBERS ragged_dot_dimension_numbers "RaggedDotDimensionNumbers" {
        dot_dimension_numbers DOT_DIMENSION_NUMBERS = 1: one Message(&DOT_DIMENSION_NUMBERS);
        lhs_ragged_dimensions LHS_RAGGED_DIMENSIONS = 2: many Int64;
        rhs_group_dimensions RHS_GROUP_DIMENSIONS = 3: many Int64;
    }
    GATHER_DIMENSION_NUMBERS gather_dimension_numbers "GatherDimensionNumbers" {
        offset_dims OFFSET_DIMS = 1: many Int64;
        collapsed_slice_dims COLLAPSED_SLICE_DIMS = 2: many Int64;
        start_index_map START_INDEX_MAP = 3: many Int64;
        index_vector_dim INDEX_VECTOR_DIM = 4: one Int64;
        operand_batching_dims OPERAND_BATCHING_DIMS = 5: many Int64;
        start_indices_batching_dims START_INDICES_BATCHING_DIMS = 6: many Int64;
    }
    SCATTER_DIMENSION_NUMBERS scatter_dimension_numbers "ScatterDimensionNumbers" {
        update_window_dims UPDATE_WINDOW_DIMS = 1: many Int64;
        inserted_window_dims INSERTED_WINDOW_DIMS = 2: many Int64;
        scatter_dims_to_operand_dims SCATTER_DIMS_TO_OPERAND_DIMS = 3: many Int64;
        index_vector_dim INDEX_VECTOR_DIM = 4: one Int64;
        input_batching_dims INPUT_BATCHING_DIMS = 5: many Int64;
        scatter_indices_batching_dims SCATTER_INDICES_BATCHING_DIMS = 6: many Int64;
    }
    PRECISION_CONFIG precision_config "PrecisionConfig" {
        operand_precision OPERAND_PRECISION = 1: many Enum(&PRECISION_CONFIG_PRECISION);
        algorithm ALGORITHM = 2: one Enum(&PRECISION_CONFIG_ALGORITHM);
    }
    TRIANGULAR_SOLVE_OPTIONS triangular_solve_options "TriangularSolveOptions" {
        left_side LEFT_SIDE = 1: one Bool;
        lower LOWER = 2: one Bool;
        unit_diagonal UNIT_DIAGONAL = 3: one Bool;
        transpose_a TRANSPOSE_A = 4: one Enum(&TRIANGULAR_SOLVE_OPTIONS_TRANSPOSE);
    }
    CHOLESKY_OPTIONS cholesky_options "CholeskyOptions" {
        lower LOWER = 1: one Bool;
    }
    PARAMETER_REPLICATION parameter_replication "ParameterReplication" {
        replicated_at_leaf_buffers REPLICATED_AT_LEAF_BUFFERS = 1: many Bool;
    }
    OUTPUT_OPERAND_ALIASING output_operand_aliasing "OutputOperandAliasing" {
        output_shape_index OUTPUT_SHAPE_INDEX = 1: many Int64;
        operand_index OPERAND_INDEX = 2: one Int64;
        operand_shape_index OPERAND_SHAPE_INDEX = 3: many Int64;
    }
    RESULT_ACCURACY result_accuracy "ResultAccuracy" {
        mode MODE = 1: one Enum(&RESULT_ACCURACY_MODE);
        tolerance TOLERANCE = 2: one Message(&RESULT_ACCURACY_TOLERANCE);
    }
    RESULT_ACCURACY_TOLERANCE result_accuracy_tolerance "ResultAccuracy.Tolerance" {
        atol ATOL = 1: one Double;
        rtol RTOL = 2: one Double;
        ulps ULPS = 3: one Int64;
    }
    SPARSITY_CONFIG sparsity_config "SparsityConfig" {
        lhs LHS = 1: one Message(&SPARSITY_CONFIG_TENSOR_SPARSITY_CONFIG);
        rhs RHS = 2: one Message(&SPARSITY_CONFIG_TENSOR_SPARSITY_CONFIG);
    }
    SPARSITY_CONFIG_TENSOR_SPARSITY_CONFIG sparsity_config_tensor_sparsity_config "SparsityConfig.TensorSparsityConfig" {
        num_non_zero NUM_NON_ZERO = 1: one Int64;
        block_size BLOCK_SIZE = 2: one Int64;
        dimension DIMENSION = 3: one Int64;
        stride STRIDE = 4: one Int64;
    }
}
