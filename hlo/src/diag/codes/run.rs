//! Codes of running a program: what is unsupported (`U`), what a program does wrong at run time (`R`).

super::codes! {
    OUT_OF_FUEL = "R0001" "out of fuel"
        "The program was stopped because it ran longer than it was allowed to: `--fuel N` limits the number of instructions\n\
         that are executed. A `while` whose condition never becomes false ends like this.",
    OUT_OF_MEMORY = "R0002" "memory limit exceeded"
        "The values that are alive at once would need more than `--memory-limit BYTES` (8 GiB unless said otherwise).",
    UNSUPPORTED_OPCODE = "U0001" "opcode not supported by this engine"
        "The engine cannot run this opcode, or not in this form. The message names the opcode, the form and the engine.",
}
