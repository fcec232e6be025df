//! The cost model of a target: the quantities by which passes and fusion decide.
//!
//! A pass asks the model of its context ([`crate::passes::PassCx`]), which belongs to its pipeline. What
//! counts as an *expression* (which reductions, windows, contractions and concatenations are unrolled into
//! the expression IR, and which loops are one kernel) is part of the contract between fusion, expression IR
//! and lowering, which have no pipeline: these all ask [`CostModel::CPU`], so that they agree. **Invariant:**
//! no bit of any result depends on a number here, only how it is computed.

/// Costs and limits. An operation is a simple one on a full vector register; other units are in the names.
#[derive(Clone, PartialEq, Debug)]
pub struct CostModel {
    /// Operations that take as long as one byte of memory traffic.
    pub ops_per_byte: f64,
    /// The benefit of one kernel less, in operations: about a launch, which a loop may pay in every
    /// iteration.
    pub launch_ops: f64,
    /// Values smaller than this are in the L1 cache whoever reads them.
    pub near_cache_bytes: f64,
    /// The maximum number of expressions in a fusion: a value counts once for each of its index maps.
    pub max_expressions: f64,
    /// The compilation cost of one more expression, in operations.
    pub expression_ops: f64,
    /// Factor on the arithmetic of elements whose lanes are not contiguous, or are not all from the same
    /// source.
    pub strided_factor: f64,
    /// Factor on the arithmetic of elements of a concatenation whose parts along a row are too narrow for
    /// loops of their own: every part is evaluated at every element.
    pub narrow_concat_factor: f64,
    /// Factor on the code size of gathered elements.
    pub gather_factor: f64,
    /// A value with more index maps in a fusion than this is recomputed.
    pub recompute_index_maps: f64,
    /// The maximum length of the operand chain that is walked to estimate the cost of recomputation.
    pub max_recompute_chain: u32,
    /// The maximum number of parts of a concatenation that is evaluated inside a loop.
    pub max_inline_concat_parts: usize,

    /// All live values of a row must fit into this share of the L2 cache.
    pub l2_row_bytes: f64,
    /// The minimum number of rows that keeps all cores busy, unless the whole array is small.
    pub min_rows: f64,
    /// Arrays of at most this many elements are small.
    pub small_elements: f64,
    /// At least this many short rows ([`CostModel::max_short_reduction_len`]) are left to loops vectorized
    /// across rows.
    pub min_short_rows: f64,

    /// The maximum length of a reduction (or row) that is unrolled into an expression.
    pub max_short_reduction_len: i64,
    /// The minimum width, along the innermost dimension, of a part of a concatenation or padding that gets a
    /// loop of its own (unless separate loops take hardly more registers than the row).
    pub min_part_width_elements: i64,
    /// The maximum number of columns of short rows that are unrolled.
    pub max_unrolled_columns: i64,
    /// Lanes whose elements are within this many registers are loaded as whole registers and shuffled.
    pub max_shuffle_registers: i64,
    /// The maximum number of columns from several sources, or of rows of an array, that are computed in one
    /// iteration and interleaved: four vectors of three, say.
    pub max_interleaved_columns: i64,
    /// The maximum number of parts of an array that get loops of their own, if each has
    /// [`CostModel::min_part_elements`].
    pub max_concat_parts: usize,
    /// The minimum size of such a part.
    pub min_part_elements: i64,
    /// The maximum number of elements of a strided window that is unrolled into an expression.
    pub max_strided_window_len: i64,
    /// The same for windows of stride 1.
    pub max_window_len: i64,
    /// With fewer contiguous elements per step of a window's axis, rows are too short for the row-wise window
    /// kernel.
    pub min_window_row_elements: i64,
    /// Fewer contiguous elements than this leave vector lanes empty.
    pub min_lanes: i64,
    /// The maximum number of products of a contraction that is always unrolled, wherever its operands are
    /// stored.
    pub max_tiny_dot_products: i64,
    /// The maximum K (products per result element) of a contraction that is unrolled.
    pub max_small_k: i64,
    /// Folding at least this many elements takes longer than launching a kernel.
    pub heavy_fold_elements: i64,

    /// Lanes at most this far apart, in elements, are loaded as whole vectors and shuffled.
    pub max_shuffle_stride_elements: i64,
    /// Lanes at most this far apart share cache lines: worth loading one by one if hardly reused.
    pub max_line_stride_elements: i64,
    /// An operand of up to this size stays in cache while it is reused.
    pub reuse_cache_bytes: i64,
    /// An operand used at most this often per element is streamed, not reused.
    pub max_streaming_uses: i64,

    /// GEMV kernels are faster for 16-bit floats where rows have at least this many contiguous terms and
    /// there are [`CostModel::gemv16_min_rows`] of them,
    pub gemv16_min_terms: i64,
    /// (the minimum number of such rows)
    pub gemv16_min_rows: i64,
    /// or where at least this many rows are contiguous.
    pub gemv16_min_contiguous_rows: i64,
    /// Batched matrices of up to this many elements go to the batched small-matrix kernel.
    pub small_matrix_elements: i64,
    /// Up to this K, a product is computed as a sum of outer products.
    pub max_outer_product_terms: i64,

    /// The maximum number of elements that an iteration of a single-kernel loop may compute.
    pub max_loop_elements: i64,
    /// An iteration evaluated as expressions may take this many times the arithmetic of its instructions,
    pub max_loop_recompute_factor: f64,
    /// and this many operations more, which is less than kernels of their own would cost.
    pub loop_slack_ops: f64,
    /// The maximum number of instructions in body and condition of such a loop.
    pub max_loop_instructions: usize,
    /// The maximum number of consecutive in-place slice updates of one array per iteration.
    pub max_update_windows: usize,
}

impl CostModel {
    /// Processors with vector registers and two cache levels per core.
    pub const CPU: CostModel = CostModel {
        ops_per_byte: 1.0,
        launch_ops: 3000.0,
        near_cache_bytes: 16384.0,
        max_expressions: 600.0,
        expression_ops: 1000.0,
        strided_factor: 12.0,
        narrow_concat_factor: 6.0,
        gather_factor: 4.0,
        recompute_index_maps: 1.5,
        max_recompute_chain: 64,
        max_inline_concat_parts: 4,
        l2_row_bytes: 524_288.0,
        min_rows: 8.0,
        small_elements: 65536.0,
        min_short_rows: 64.0,
        max_short_reduction_len: 4,
        min_part_width_elements: 64,
        max_unrolled_columns: 4,
        max_shuffle_registers: 4,
        max_interleaved_columns: 12,
        max_concat_parts: 64,
        min_part_elements: 2048,
        max_strided_window_len: 9,
        max_window_len: 3,
        min_window_row_elements: 48,
        min_lanes: 16,
        max_tiny_dot_products: 64,
        max_small_k: 8,
        heavy_fold_elements: 1 << 15,
        max_shuffle_stride_elements: 4,
        max_line_stride_elements: 9,
        reuse_cache_bytes: 512 << 10,
        max_streaming_uses: 4,
        gemv16_min_terms: 32,
        gemv16_min_rows: 8,
        gemv16_min_contiguous_rows: 64,
        small_matrix_elements: 256,
        max_outer_product_terms: 2,
        max_loop_elements: 4096,
        max_loop_recompute_factor: 2.0,
        loop_slack_ops: 10_000.0,
        max_loop_instructions: 512,
        max_update_windows: 8,
    };
}
