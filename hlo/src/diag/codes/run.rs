//! Codes of running a program: what a program does wrong at run time (`R`), what is unsupported (`U`).

super::codes! {
    OUT_OF_FUEL = "R0001" "out of fuel"
        "The program was stopped because it ran longer than it was allowed to: `--fuel N` limits the number of instructions\n\
         that are executed. A `while` whose condition never becomes false ends like this.",
    OUT_OF_MEMORY = "R0002" "memory limit exceeded"
        "The values that are alive at once would need more than `--memory-limit BYTES` (8 GiB unless said otherwise). The\n\
         message says which instruction wanted how much; nothing was allocated for it.",
    WRONG_ARGUMENTS = "R0003" "arguments do not fit the entry computation"
        "The number of arguments, or the element type or dimensions of one of them, is not what the parameters of the entry\n\
         computation say. Arguments come in the order of the parameters, tuples flattened in order.",
    NESTED_TOO_DEEP = "R0004" "applied computations nested too deep"
        "A computation that is applied to elements (by `reduce`, `map`, `sort`, ...) applies another one to elements, and so on\n\
         for more levels than the interpreter follows. Calls, fusions, loops and conditionals nest without such a limit.",
    BAD_DYNAMIC_SIZE = "R0005" "dynamic size out of its bound"
        "A run-time size was given to a dimension that is negative or larger than the bound in the dimension's type, or a box\n\
         or reshape needs elements beyond the run-time sizes.",
    CUSTOM_CALL_FAILED = "R0006" "custom call went wrong"
        "The implementation of a custom call reported that it could not compute a result from its operands, or gave one of\n\
         another shape than the instruction has. The message says what it was.",
    POSITION_OUTSIDE_BLOCK = "R0031" "position outside of its block"
        "The indices of a sparse operand say where in its block each element is: numbers from 0 to the size of a block.",
    UNSUPPORTED_OPCODE = "U0001" "opcode not supported by this engine"
        "The engine cannot run this opcode, or not in this form. The message names the opcode, the form and the engine.",
    UNSUPPORTED_CUSTOM_CALL = "U0002" "custom call not supported by this engine"
        "What a custom call computes is known only to who registered its target, and this engine has no registration under\n\
         that name (or not for these operands).",
}
