//! Codes of shape inference: V0100 operands in general and elementwise operations, V0200 data movement, V0300
//! contractions, V0400 reductions, windows, sorting and scans, V0500 calls, control and communication, V0600
//! random numbers and linear algebra.

super::codes! {
    SHAPE_MISMATCH = "V0100" "declared shape differs from the inferred one"
        "The shape in front of an opcode must be the one that follows from its operands and attributes. Layouts, and which\n\
         dimensions are dynamic, may differ; so may the width of floats, except where values are handed on unchanged (tuple,\n\
         get-tuple-element, call, while, ...).\n\
         \n\
         \x20 p = f32[4] parameter(0)\n\
         \x20 n = f32[5] negate(p)      the result has shape f32[4]",
    EXPECTED_ARRAY = "V0101" "not an array"
        "Most operations work on arrays: an element type and dimensions. A tuple must be taken apart by get-tuple-element first;\n\
         tokens, opaque values and buffers are only handed around.",
    SHAPE_REQUIRED = "V0102" "the shape must be written"
        "The shape of some results does not follow from the operands: of `parameter`, `convert`, `reshape`, `iota`, `custom-call`\n\
         and a few others. Write it in front of the opcode: `r = f32[2,2] reshape(p)`.",
    MISSING_ATTRIBUTE = "V0103" "required attribute missing"
        "The opcode cannot do without the attribute that the message names: `compare` needs `direction=`, `reduce` needs\n\
         `dimensions=` and `to_apply=`, and so on.",
    OPERAND_ELEMENT_TYPE = "V0104" "element type not allowed for this operation"
        "The operation is not defined for elements of this type: `and` takes predicates and integers, `sine` floats and complex\n\
         numbers, `popcnt` integers. The label says which are possible; `convert` makes one of another.",
    ELEMENT_TYPES_DIFFER = "V0105" "operands have different element types"
        "Operands must have the same element type. Floats of different width may mix (the result is the one that holds more, or what\n\
         is declared); other types may not: convert one of them.",
    OPERAND_SHAPES_DIFFER = "V0106" "operands have different dimensions"
        "Elementwise operations take operands of the same dimensions; nothing is broadcast implicitly, not even scalars. Write the\n\
         broadcast:\n\
         \n\
         \x20 c = f32[] constant(1)\n\
         \x20 b = f32[4] broadcast(c), dimensions={}\n\
         \x20 r = f32[4] add(p, b)",
    COMPARE_TYPE = "V0107" "impossible comparison"
        "Floats compare as FLOAT or TOTALORDER, signed integers as SIGNED, unsigned integers and predicates as UNSIGNED, complex\n\
         numbers as FLOAT and only by EQ and NE. Leave `type=` out to get the right one.",
    RESULT_ELEMENT_TYPE = "V0108" "impossible element type of the result"
        "The declared element type is none that the operation can give: `reshape` and `broadcast` keep the type of their operand,\n\
         `iota` counts in numbers, random bits are integers or floats.",
    EXPECTED_SCALAR = "V0109" "not a scalar"
        "This operand must be an array without dimensions, such as f32[]: the padding value of `pad`, an initial value of `reduce`,\n\
         a start index of `dynamic-slice`, a parameter of `rng`. An array of one element, f32[1], is not a scalar: reshape it.",
    PRECISION_BITS = "V0110" "impossible number of bits"
        "`reduce-precision` rounds to a float of `exponent_bits` (at least 1, to tell zero from infinity) and `mantissa_bits`\n\
         (at least 0).",
    SIZE_OVERFLOW = "V0111" "size too large"
        "A size that follows from the operands, a number of elements or of bytes, does not fit in 64 bits. No machine holds such\n\
         an array; the attributes of the instruction are probably wrong.",
    TOO_MANY_DIMENSIONS = "V0112" "too many dimensions"
        "An array has at most 64 dimensions; the result of this instruction would have more.",
    DYNAMIC_DIMENSION = "V0113" "dynamic dimensions not supported here"
        "The operation is not defined for dimensions whose size is known only when the program runs (`<=N`).",
    DIMENSION_OUT_OF_RANGE = "V0200" "dimension number out of range"
        "Dimensions are numbered from 0; an array of n dimensions has 0 to n-1. The label says what is possible here.",
    DIMENSION_REPEATED = "V0201" "dimension named twice"
        "A list of dimensions names one of them twice, or two lists that exclude each other both name it.",
    DIMENSION_COUNT = "V0202" "wrong number of entries"
        "The attribute must have as many entries as the array has dimensions (`transpose`, `pad`, `slice`, `broadcast`, ...), or\n\
         exactly one (`sort`, `concatenate`, `get-dimension-size`).",
    DIMENSION_ORDER = "V0203" "dimensions not in order"
        "These dimension numbers must be in ascending order: `offset_dims`, `collapsed_slice_dims` and batching dimensions of `gather`,\n\
         window dimensions of `scatter`.",
    RANK = "V0204" "wrong number of dimensions"
        "The array has another number of dimensions than the operation needs here.",
    ELEMENT_COUNT = "V0205" "a reshape must keep the number of elements"
        "`reshape` gives the same elements in other dimensions, so the product of the dimensions stays.",
    BROADCAST_SIZE = "V0206" "broadcast changes a size"
        "`dimensions={...}` says for each dimension of the operand which dimension of the result it becomes; both have the same\n\
         size. A dimension of size 1 is not stretched: reshape it away first.",
    CONCATENATE_SIZES = "V0207" "concatenated arrays differ in another dimension"
        "Arrays can be joined along one dimension if all other dimensions agree.",
    SLICE_BOUNDS = "V0208" "slice out of bounds"
        "Each dimension is sliced by [start:limit:stride] with 0 <= start <= limit <= size and stride >= 1.",
    START_INDICES = "V0209" "wrong start indices"
        "`dynamic-slice` and `dynamic-update-slice` take one scalar integer for each dimension, all of the same type; or, in an\n\
         older form, a single vector with an entry for each dimension.",
    SLICE_SIZE = "V0210" "slice larger than the array"
        "The size of a slice, an update or a window must be between 0 and the size of the dimension that it lies in. Dimensions\n\
         that `gather` collapses have slice size 1.",
    PADDING = "V0211" "impossible padding"
        "Low and high padding may be negative, to cut elements off, but not more than there are; interior padding may not be negative.",
    BITCAST_WIDTH = "V0212" "bits do not fit"
        "`bitcast-convert` reads the same bits as elements of another type. If the new type is n times as wide, the last dimension\n\
         must have size n and disappears; if it is narrower, a dimension is added. Complex numbers convert only to complex numbers.",
    BITCAST_SIZE = "V0213" "a bitcast must keep the number of bytes"
        "`bitcast` gives the same memory another shape, so both take as many bytes.",
    INDEX_VECTOR = "V0214" "index vectors of the wrong length"
        "The dimension `index_vector_dim` of the indices holds one index for each entry of `start_index_map` (gather) or\n\
         `scatter_dims_to_operand_dims` (scatter). If it is one past the last dimension, each index stands for itself.",
    BATCHING_DIMENSIONS = "V0215" "batching dimensions do not agree"
        "Batching dimensions pair a dimension of the operand with one of the indices: as many on both sides, of the same sizes, and\n\
         not the one that holds the index vectors.",
    DIMENSION_ROLES = "V0216" "dimensions do not add up"
        "Each dimension of the operand of a gather is an offset dimension of the result, or collapsed, or batching; of a scatter a\n\
         window dimension of the updates, or inserted, or batching.",
    UPDATES_SHAPE = "V0217" "updates do not fit the indices"
        "The dimensions of the updates that are not window dimensions are those of the indices, the index vector's left out, in\n\
         the same order and of the same sizes.",
    DIMENSION_SIZE = "V0218" "impossible dimension size"
        "Run-time sizes of dimensions are s32 scalars, so a dimension whose size is asked for or set can have at most 2147483647\n\
         elements.",
    DOT_DIMENSION_PAIRS = "V0310" "dimensions of a dot do not pair up"
        "Batch and contracting dimensions of the left operand pair with those of the right operand, in order; there must be as\n\
         many of each.",
    DOT_DIMENSION_TWICE = "V0311" "dimension both batch and contracting"
        "A dimension of a dot's operand is batch (kept once in the result), contracting (summed over) or neither (kept), not two of\n\
         these.",
    CONTRACTING_SIZES = "V0312" "contracting dimensions have different sizes"
        "A dot multiplies and sums along the contracting dimensions of both operands together, so they have the same size.\n\
         \n\
         \x20 p0 = f32[4,8] parameter(0)\n\
         \x20 p1 = f32[8,3] parameter(1)\n\
         \x20 d = f32[4,3] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}     both 8",
    BATCH_SIZES = "V0313" "batch dimensions have different sizes"
        "A dot with batch dimensions is one dot for each of their indices, so they have the same size in both operands.",
    RAGGED_DOT = "V0320" "wrong ragged dot"
        "`ragged-dot` divides one dimension of the left operand into groups of run-time sizes. If that is neither batch nor\n\
         contracting, the right operand has one group dimension with an entry for each group; else it has none. The group sizes are\n\
         a vector, or have leading dimensions as the dimensions before the ragged one.",
    SCALED_DOT = "V0330" "wrong scales"
        "The third and fourth operand of `scaled-dot` scale the first and second in blocks: a scale has as many dimensions as its\n\
         operand, each a divisor of the operand's. An operand without scale gets a bf16 scale of one element.",
    CONV_DIMENSIONS = "V0340" "wrong dim_labels"
        "`dim_labels=b01f_01io->b01f` names the role of each dimension of left operand, kernel and result, each role once, and the\n\
         same number of spatial dimensions in all three.",
    CONV_GROUPS = "V0341" "impossible group count"
        "`feature_group_count` divides the input features and the output features, `batch_group_count` the batch and the output features;\n\
         both are at least 1, and only one of them is greater.",
    CONV_FEATURES = "V0342" "features of input and kernel do not agree"
        "The kernel's `i` dimension has the size of the input's `f` dimension divided by `feature_group_count`.",
    CONV_SPARSITY = "V0343" "wrong sparsity"
        "`sparsity_config` names for a sparse side the operand, third or later, that holds the indices of the kept elements; one in n\n\
         elements is kept.",
    REDUCER_ARITY = "V0400" "reducer takes the wrong number of parameters"
        "A computation that reduces n arrays takes n accumulators, then n values.",
    REDUCER_RESULT = "V0401" "reducer gives the wrong result"
        "A computation that reduces one array gives a scalar; one that reduces n arrays gives a tuple of n scalars.",
    REDUCER_TYPES = "V0402" "types of a reducer do not fit"
        "Accumulators come in as they go out; initial values and the values reduced have the same element types (floats may differ in\n\
         width).",
    REDUCE_OPERANDS = "V0403" "initial values missing"
        "`reduce` and `reduce-window` take n arrays, then n scalars to start with: an even number of operands.",
    WINDOW = "V0404" "impossible window"
        "A window has a dimension for each dimension that it slides over; size, stride and dilations are at least 1; negative padding\n\
         cuts no more than there is; the kernel of a convolution has the size of the window.",
    SELECT_SIGNATURE = "V0405" "wrong select computation"
        "The `select` computation of `select-and-scatter` takes two scalars of the operand's element type and gives pred[].",
    SOURCE_SHAPE = "V0406" "source does not fit the window"
        "The source of `select-and-scatter` has one element for each placement of the window over the operand.",
    COMPARATOR = "V0407" "wrong comparator"
        "The comparator of `sort` takes a pair of scalars for each operand, in the order a0, b0, a1, b1, ..., and gives pred[]:\n\
         whether the first of each pair comes before the second.",
    TOPK = "V0408" "impossible k"
        "`topk` gives the k largest (or smallest) elements along the last dimension, so k is between 0 and its size.",
    MAP_SIGNATURE = "V0409" "wrong mapped computation"
        "The computation of `map` takes a scalar for each operand, of its element type, and gives a scalar.",
    SCAN = "V0410" "wrong scan"
        "`scan` takes inputs, then `num_carries` carries. Its computation takes a slice of each input, without the scanned dimension, and\n\
         the carries; it gives a slice of each output and the next carries. All inputs have the same size along that dimension.",
    CALL_ARITY = "V0500" "wrong number of arguments"
        "The instruction must have an operand for each parameter of the computation that it calls; a `conditional` one for each\n\
         branch after the index.",
    CALL_PARAMETER = "V0501" "argument has another shape than the parameter"
        "An operand is handed to a parameter of the called computation unchanged, so both have the same shape.",
    WHILE_CONDITION = "V0502" "condition gives no predicate"
        "The condition of a `while` takes the loop's value and gives pred[]: whether to run the body once more.",
    WHILE_BODY = "V0503" "body changes the shape"
        "The body of a `while` takes the loop's value and gives the next one, of the same shape.",
    BRANCH_INDEX = "V0504" "wrong branch index"
        "The first operand of a `conditional` is a pred[] (two branches: true, false) or an s32[] (one branch or more).",
    BRANCH_RESULT = "V0505" "branches give different shapes"
        "Whichever branch of a `conditional` runs, the result has the same shape.",
    TUPLE_INDEX = "V0506" "tuple index out of range"
        "A tuple of n elements has indices 0 to n-1.",
    EXPECTED_TUPLE = "V0507" "not a tuple"
        "The operation takes elements out of a tuple, or takes what a matching start operation gave, which is one.",
    EXPECTED_TOKEN = "V0508" "not a token"
        "This operand only orders side effects: it must be a token, token[], from `after-all` or an earlier side effect.",
    NO_ROOT = "V0510" "computation without a result"
        "A computation that is called must have instructions; the one marked ROOT, or the last, is its result.",
    ASYNC_SHAPE = "V0520" "wrong asynchronous shape"
        "What an asynchronous operation hands from start to done has the shape ((operands...), output, contexts...). The operands\n\
         bound so far fit the parameters of the computation, the output is what it gives, or () while not available.",
    TRANSFER = "V0521" "wrong shape of a transfer"
        "`copy-start` gives (destination, source, u32[]), `send` (data, u32[], token[]), `recv` the same, `recv-done` and `infeed`\n\
         (data, token[]), `outfeed` a token; `outfeed_shape` is the shape of the operand.",
    SHARD_COUNT = "V0530" "sizes do not fit the number of participants"
        "`all-gather` multiplies a dimension by the size of a replica group, `reduce-scatter` divides it; `all-to-all` divides a dimension\n\
         by it or takes as many operands.",
    COLLECTIVE_OPERANDS = "V0531" "wrong operands of a collective"
        "Offsets of an in-place `collective-permute` are a tuple of one index for each dimension of their buffer; a dynamic root of\n\
         `collective-broadcast` is an s32 vector with an entry for each other operand.",
    RNG_STATE = "V0600" "wrong state of a random generator"
        "`rng-bit-generator` gives a tuple of its next state, which has the shape of the operand, and the random bits.",
    SQUARE_MATRIX = "V0620" "matrix not square"
        "The last two dimensions of the matrix of `cholesky` and `triangular-solve` have the same size.",
    SOLVE_SIZES = "V0621" "sizes of a triangular system do not agree"
        "`triangular-solve` solves op(a) x = b (`left_side=true`, b has as many rows as a) or x op(a) = b (b has as many columns); the\n\
         leading dimensions are the same.",
    FFT_LENGTH = "V0622" "fft_length does not fit"
        "`fft_length` has the sizes of the last 1 to 3 dimensions of the real side of the transform; the complex side of RFFT and IRFFT has\n\
         n/2+1 in the last dimension.",
    FEATURE_COUNT = "V0630" "statistics do not fit the features"
        "Scale, offset, mean and variance of a batch normalization have one element for each index of the dimension `feature_index`.",
}
