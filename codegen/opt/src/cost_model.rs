//! What things cost on a target: the quantities that passes and fusion decide by.
//!
//! A pass asks the model of its context ([`crate::passes::PassCx`]), which is that of the pipeline it is in. What an *expression* is (which reductions, windows, contractions and
//! concatenations are computed element by element, and which loops are one kernel) is part of the contract between fusion, expressions and lowering, which have no
//! pipeline: these all ask [`CostModel::CPU`], so that they agree. **Invariant:** no bit of any result depends on a number here, only how it is computed.

/// Costs and limits. Operations are simple ones on full vector registers; a unit is in the name of what has one.
#[derive(Clone, PartialEq, Debug)]
pub struct CostModel {
    /// Operations that take as long as a byte to or from memory.
    pub ops_per_byte: f64,
    /// What a kernel less is worth, in operations: as long as a launch takes, for a loop may pay that each time, and kernels of more are no quicker to compile.
    pub launch_ops: f64,
    /// Values of fewer bytes than this are in the nearest cache whoever reads them.
    pub near_cache_bytes: f64,
    /// The most expressions of a group: a value is one for each of its index maps.
    pub max_expressions: f64,
    /// What an expression more costs in compilation, in operations.
    pub expression_ops: f64,
    /// How much more arithmetic an element is whose neighbours are no neighbours, or are something else.
    pub apart_factor: f64,
    /// How much more arithmetic an element is that comes from one of several places along a row, some of them narrower than what loops are divided for: every
    /// place is looked at then.
    pub narrow_factor: f64,
    /// How much more code an element is that is gathered.
    pub gathered_factor: f64,
    /// A value that a group reads at more places than these is computed several times.
    pub several_places: f64,
    /// So many operations, one made of the other, are looked at to say what computing a value again costs.
    pub max_chain: u32,
    /// A concatenation of more parts is not computed element by element in the middle of a loop.
    pub max_middle_parts: usize,

    /// A row of all values that are alive must fit into the second level of cache.
    pub l2_row_bytes: f64,
    /// Fewer rows than this do not keep the machine busy, unless the whole is small.
    pub min_rows: f64,
    /// An array of so many elements is small.
    pub small_elements: f64,
    /// So many rows of few elements ([`CostModel::max_short_terms`]) are left to reductions and to loops, whose lanes hold a column of many rows.
    pub many_short_rows: f64,

    /// The most elements of a row, or terms of a reduction, that are expressions and no loop.
    pub max_short_terms: i64,
    /// Along the innermost dimension, parts of fewer elements are too narrow for loops of their own, unless they are hardly more registers than the row.
    pub wide_elements: i64,
    /// The most columns of short rows that are computed at once.
    pub max_columns: i64,
    /// Lanes whose elements lie within so many registers full of them load these and pick.
    pub near_registers: i64,
    /// The most columns of rows that are put together from several places, and rows of an array, that are computed side by side: four vectors of three, say.
    pub max_assembled: i64,
    /// So many parts of an array are loops of their own, if each has [`CostModel::part_elements`].
    pub max_parts: usize,
    /// Elements of a part that is a loop of its own.
    pub part_elements: i64,
    /// The most positions of windows that are expressions, of windows some apart.
    pub max_positions: i64,
    /// The most of those of any windows.
    pub max_any_positions: i64,
    /// Neighbours of an element of a window's axis that are too few for rows, if they are fewer.
    pub few_neighbours: i64,
    /// Fewer neighbours leave lanes of a register empty.
    pub min_lanes: i64,
    /// The most products of a contraction that is an expression of its operands' elements wherever these are.
    pub max_few_products: i64,
    /// The most products in one element of such a contraction.
    pub max_small_k: i64,
    /// So many elements take longer to fold than a kernel takes to start.
    pub much_elements: i64,

    /// Lanes so far apart, in elements, are loaded together and put in order.
    pub near_stride: i64,
    /// And so far apart they share cache lines: to be loaded one by one, if hardly more than once.
    pub far_stride: i64,
    /// So many bytes stay in a near cache while they are read again and again.
    pub kept_bytes: i64,
    /// An operand that is in so few products for each of its elements is not read again and again.
    pub few_uses: i64,

    /// Matrices of floats of 16 bits that kernels for products of a matrix and a vector are faster with have [`CostModel::some_rows`] of so many terms next to each other,
    pub long_terms: i64,
    /// rows of as many terms,
    pub some_rows: i64,
    /// or so many rows next to each other.
    pub many_rows: i64,
    /// Matrices one after the other of so few elements are products of little matrices.
    pub little_matrix_elements: i64,
    /// Sums of so few terms are products of a few outer dimensions rather.
    pub few_fold_terms: i64,

    /// The most elements of arrays that an iteration of a loop that is one kernel may compute.
    pub max_loop_elements: i64,
    /// As an expression an iteration may take so many times the arithmetic of its instructions,
    pub max_loop_again_factor: f64,
    /// and so many operations more, which are less than what kernels of their own cost.
    pub little_ops: f64,
    /// The most instructions of body and condition of such a loop.
    pub max_loop_instructions: usize,
    /// The most windows of an array that are replaced one after the other, for them to be all of it that is computed.
    pub max_windows: usize,
}

impl CostModel {
    /// Processors with vector registers and two levels of cache for each core.
    pub const CPU: CostModel = CostModel {
        ops_per_byte: 1.0,
        launch_ops: 3000.0,
        near_cache_bytes: 16384.0,
        max_expressions: 600.0,
        expression_ops: 1000.0,
        apart_factor: 12.0,
        narrow_factor: 6.0,
        gathered_factor: 4.0,
        several_places: 1.5,
        max_chain: 64,
        max_middle_parts: 4,
        l2_row_bytes: 524_288.0,
        min_rows: 8.0,
        small_elements: 65536.0,
        many_short_rows: 64.0,
        max_short_terms: 4,
        wide_elements: 64,
        max_columns: 4,
        near_registers: 4,
        max_assembled: 12,
        max_parts: 64,
        part_elements: 2048,
        max_positions: 9,
        max_any_positions: 3,
        few_neighbours: 48,
        min_lanes: 16,
        max_few_products: 64,
        max_small_k: 8,
        much_elements: 1 << 15,
        near_stride: 4,
        far_stride: 9,
        kept_bytes: 512 << 10,
        few_uses: 4,
        long_terms: 32,
        some_rows: 8,
        many_rows: 64,
        little_matrix_elements: 256,
        few_fold_terms: 2,
        max_loop_elements: 4096,
        max_loop_again_factor: 2.0,
        little_ops: 10_000.0,
        max_loop_instructions: 512,
        max_windows: 8,
    };
}
