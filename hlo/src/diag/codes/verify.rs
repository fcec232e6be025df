//! Codes of the verifier. (Those of shape inference are in `infer.rs`.)

super::codes! {
    WRONG_ARITY = "V0001" "wrong number of operands"
        "Every opcode takes a fixed number of operands, or at least some number. `add` takes exactly two, `concatenate` at\n\
         least one. The label says how many the opcode takes.",
    UNKNOWN_ATTRIBUTE = "V0003" "an attribute that the opcode does not take"
        "The instruction carries an attribute that its opcode does not have. The parser says so for text; here it means that\n\
         a program which builds modules set it.",
    OPERAND_ORDER = "V0004" "an operand is not defined before its use"
        "Instructions stand in an order in which every operand and control predecessor comes before its users, and belongs to\n\
         the same computation. A value of another computation must be passed as a parameter.",
    EMPTY_COMPUTATION = "V0005" "a computation has no instructions or no root"
        "The value of a computation is that of its root: the instruction marked ROOT, or the last one. A computation without\n\
         instructions has no value.",
    PARAMETER_NUMBERS = "V0006" "parameters are not numbered 0, 1, 2, ..."
        "A computation with three parameters has exactly one each of parameter(0), parameter(1) and parameter(2). They may\n\
         stand in any order in the text.",
    CALL_CYCLE = "V0007" "computations call each other in a cycle"
        "HLO has no recursion: a computation may not be called, directly or through others, by its own instructions. Loops are\n\
         written with `while`.",
    DUPLICATE_NAME = "V0008" "a name is given twice"
        "Two instructions of one computation have the same name, so that a use of it means neither. The related place is the\n\
         first of them.",
    NO_ENTRY = "V0009" "the module has no entry computation"
        "A module runs by running its entry computation: the one marked ENTRY, or the last one of the text.",
    ENTRY_CALLED = "V0010" "the entry computation is called from inside"
        "The entry computation is for the outside to call. An instruction of the module names it as a called computation.",
    EMPTY_MODULE_NAME = "V0011" "the module has no name"
        "The header line `HloModule name` gives a module its name; dumps and reports refer to it.",
    SIGNATURE = "V0012" "a signature does not fit its computation"
        "The header of a computation, `name (a: f32[2]) -> f32[2]`, repeats what its parameters and its root are. They differ\n\
         here; the instructions count, so either the header or an instruction was edited without the other.",
    SHAPE_TOO_LARGE = "V0013" "a shape is too large"
        "The number of elements of the shape, or of bytes, does not fit into a signed 64-bit integer. No machine can hold such\n\
         a value; it is probably a typing mistake in a dimension.",
    UNBOUNDED_DIMENSION = "V0014" "an unbounded dimension"
        "A dimension written `?` has no bound. XLA refuses such programs before running them, and so does this project. Bounded\n\
         dynamic dimensions are written `<=N`.",
    LAYOUT_RANK = "V0015" "a layout does not fit its shape"
        "The numbers in the braces after the dimensions list each dimension once, the fastest varying first: `f32[2,3]{1,0}`.\n\
         This list has another length, repeats a number, or names a dimension that does not exist.",
    LITERAL_SHAPE = "V0016" "a literal is of another shape than its instruction"
        "`f32[2] constant({1, 2, 3})` declares two elements and gives three. Count the elements, or correct the shape.",
    MIXED_PRECISION = "V0017" "operands of different precisions"
        "The operands are of different floating-point types, and mixed precision is not allowed here. Insert a `convert`.",
    LAYOUT_CHANGED = "V0018" "an instruction changes the layout"
        "After layout assignment only some opcodes (copy, bitcast, transpose, ...) may give their result another layout than\n\
         their operands have.",
    FUSION_SHARED = "V0019" "a fused computation has two callers"
        "A fusion owns its computation. Another instruction calls the same one; give each its own copy.",
    FUSION_ROOT_USED = "V0020" "the root of a fused computation is used inside"
        "The root of a fused computation is its result; no other instruction of the computation may use it. Return a tuple\n\
         of both values.",
    FUSION_UNUSED = "V0021" "an unused instruction in a fusion"
        "Everything in a fused computation but its root must be used. Remove the instruction, or return its value.",
    EXECUTION_THREAD = "V0022" "a called computation runs on another thread"
        "Called computations run on the execution thread of their caller, except through an async-start, which names the\n\
         thread.",
    COMPOSITE = "V0023" "a composite call is not described"
        "A call with is_composite=true says in its frontend attributes what it is: composite.name (required, not empty),\n\
         composite.attributes, and composite.version (an integer that is not negative).",
    CUSTOM_CALL = "V0024" "a custom call does not fit"
        "The operands, the result or the layout constraints of the custom call are not as its target or its attributes say.",
    OPERAND_ALIAS = "V0025" "output_to_operand_aliasing does not fit"
        "An entry `{out}: (operand, {index})` says that a part of the result is the memory of a part of an operand. Both must\n\
         exist and have the same shape.",
    REPLICA_GROUPS = "V0026" "replica groups are wrong"
        "The groups of a collective must name every participant exactly once, be of one size (except for all-reduce), and be as\n\
         many as the module has replicas, partitions, or both multiplied, depending on the group mode. `{}` is one group of all.",
    GROUP_MODE = "V0027" "use_global_device_ids without a channel"
        "use_global_device_ids=true means that groups count replicas and partitions together; that needs a channel_id.",
    SOURCE_TARGET = "V0029" "source-target pairs are wrong"
        "Each device may be the source of one pair and the target of one pair of a collective-permute, and must exist.",
    CHANNEL_ID = "V0030" "channel ids do not fit"
        "A send and its send-done, and a recv and its recv-done, have the same channel id. That of an all-reduce is positive.",
    CONSTRAIN_LAYOUT = "V0031" "some all-reduces constrain their layout"
        "Either all all-reduces of a module have constrain_layout=true, or none has.",
    HOST_TRANSFER = "V0032" "host transfers do not fit"
        "A send or recv and its done agree on is_host_transfer; two host transfers of one channel are of one kind and shape.",
    DEADLOCK = "V0033" "a deadlock of sends and receives"
        "All devices run the same schedule. A collective between a send and its recv, a send without a recv, or pairs that\n\
         form a cycle make every device wait for another.",
    ASYNC_PAIR = "V0034" "a start without its done"
        "An operation `X-start` has exactly one user, an `X-done`, and an `X-done` has an `X-start` as its operand.",
    ASYNC_CHAIN = "V0035" "an asynchronous chain is broken"
        "async-start is followed by any number of async-update and then by exactly one async-done, each with the one before as\n\
         its first operand. Nothing else may use them, except what hands them on (tuples, loops).",
    BUFFER = "V0036" "a buffer is used wrongly"
        "A value of type b(...) is memory that can be written to. It has one writer at a time, and only custom calls, loops, calls,\n\
         tuples and dynamic-update-slice may handle it.",
    ENTRY_LAYOUT = "V0037" "entry_computation_layout does not fit"
        "The header's entry_computation_layout repeats the shapes of the entry computation's parameters and result.",
    INPUT_OUTPUT_ALIAS = "V0038" "input_output_alias does not fit"
        "An entry `{out}: (parameter, {index}, kind)` says that a result may (or must) be written over a parameter. Both exist, are\n\
         arrays, appear once, and for must-alias have the same shape.",
    BUFFER_DONOR = "V0039" "buffer_donor does not fit"
        "A donated parameter must exist, be an array, and be neither donated twice nor aliased too.",
    SHARDING = "V0040" "a sharding does not fit"
        "The tiles of a sharding have as many dimensions as the data (plus replicated or manual ones at the end), each device\n\
         appears once, a tuple has a sharding for each leaf, and what a loop or conditional passes is sharded alike.",
    ORIGINAL_VALUE = "V0041" "origin does not fit"
        "The original value of an instruction has a name (or nothing) for each leaf of its shape.",
    RESULT_ACCURACY = "V0042" "result_accuracy where it has no meaning"
        "Only elementary functions (exponential, tanh, ...) take a result_accuracy, and tolerances are not negative.",
    STABLEHLO_CONSTRAINT = "V0701" "constraint of StableHLO violated"
        "The specification of StableHLO lists constraints for each operation, (C1), (C2) and so on, and inputs, (I1), (I2). The\n\
         message names the operation and the constraint that does not hold, and what was found instead.",
    STABLEHLO_STRUCTURE = "V0702" "operation of StableHLO without what it needs"
        "An attribute that the operation needs is missing or of another kind, or it has another number of operands, results or\n\
         regions, or a region does not end with a return.",
    STABLEHLO_FUNCTION = "V0703" "function that is not there, or calls itself"
        "A call, composite or custom call names a function that the module does not have, or one that it is in itself: HLO has no\n\
         recursion.",
}
