//! Codes of running a program: what a program does wrong at run time (`R`), what is unsupported (`U`).

super::codes! {
    OUT_OF_FUEL = "R0001" "out of fuel"
        "The program was stopped because it ran longer than it was allowed to: `--fuel N` limits the number of instructions\n\
         that are executed. A `while` whose condition never becomes false ends like this.",
    OUT_OF_MEMORY = "R0002" "memory limit exceeded"
        "What a program and the work on it need at once would be more than `--memory-limit BYTES` (8 GiB unless said otherwise), or\n\
         than there is: what is free on the machine, or what limits on the process and its group leave. The message says which\n\
         of these it was, and what wanted how much; nothing was allocated for it. Inputs, results, those of the reference and\n\
         the bounds by which results are judged count together: the check of compiled results runs the reference with bounds,\n\
         which take more than the values. Reading a program counts too: its text, what its instructions take, and the values\n\
         of its constants. A tuple whose shape is left out and would have more than 16384 parts is refused. It also ends so\n\
         where the system gives no thread.",
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
    ENDLESS_LOOP = "R0007" "a loop that never ends"
        "A `while` loop without effects (no random numbers, feeds, collectives or calls out) was found to run for ever: its\n\
         condition is true and reads nothing that an iteration changes, or its state is the same, bit for bit, as some\n\
         iterations before. Other loops that do not end are stopped by `--fuel N`.",
    DEADLOCKED = "R0020" "deadlock among devices"
        "Every device that has not ended waits for others at a collective or a transfer, and none of them can ever come. The\n\
         report names for each waiting device the instruction, the participants that did not arrive, and what those do instead:\n\
         they have finished, have failed, or wait somewhere else. The usual causes are a collective in a branch or loop that not\n\
         all participants take equally often, sends and receives in an order in which each waits for the other, and a send\n\
         without a receive.",
    PARTICIPANTS = "R0021" "participants of a collective do not fit together"
        "The replica groups or source-target pairs name devices that the run does not have, leave this one out, or have another\n\
         size than the shapes of operands and results need; or what participants bring does not fit together: shapes of sends and\n\
         receives, roots, sizes of a ragged all-to-all. `--replicas` and `--partitions` say how many devices there are; without\n\
         them the header of the module does.",
    HOST = "R0022" "exchange with the host failed"
        "An infeed or a receive from the host found nothing (`--infeed FILE` gives the values) or something of another shape, or\n\
         the host did not take what the program sent.",
    UNORDERED = "R0023" "order of exchanges with the host not defined"
        "Two infeeds of a computation (or two outfeeds, or two host transfers one way over one channel, or calls with such in\n\
         them) must depend on one another: by a token that leads from one to the other, by a value, or by\n\
         control-predecessors. Otherwise a compiler may run them in any order. In a module with is_scheduled=true the text is\n\
         the order.",
    POSITION_OUTSIDE_BLOCK = "R0031" "position outside of its block"
        "The indices of a sparse operand say where in its block each element is: numbers from 0 to the size of a block.",
    ENGINE_FAILED = "R0040" "engine failed"
        "The engine did not end as one should: its process crashed, it left no results or results of another shape, or a pass made\n\
         a program that does not verify. Its own last words, if it had any, follow. A comparison counts this as a failure\n\
         like wrong results; `hlo reduce` finds the smallest program with the same one.",
    ENGINE_TIMED_OUT = "R0041" "engine took too long"
        "The engine was stopped because compiling the program, or the run, took longer than `--timeout`. Engines of this program stop within a\n\
         second or so of it, between two blocks of work of an instruction; what LLVM does with one part of a program is waited for.",
    COMPILER_DEFECT = "R0042" "defect of the compiler"
        "This project's compiler went wrong: what a pass left does not verify, what was emitted LLVM refuses, what was compiled cannot\n\
         be loaded, or something panicked. The program is not at fault, and exit code 70 says so. `hlo reduce` finds the\n\
         smallest program with the same failure: that is what to report.",
    ENVIRONMENT_FAILED = "R0043" "environment lacks something"
        "What runs another program was not there: a folder for temporary files (TMPDIR), space on its disk, a process, a file descriptor\n\
         (`ulimit -n`, `ulimit -u`). Nothing is said of the engine or the program, and no finding is saved. The message says what is missing.",
    JUDGING_TIMED_OUT = "R0044" "judging took too long"
        "Both engines ran, and finding out whether their difference is explained by rounding took longer than `--timeout`. Nothing is said of the\n\
         engine, and no finding is saved. `--max-ulp N` compares without bounds.",
    KERNEL_FAULT = "R0045" "a GPU kernel did what none may"
        "The kernel accessed memory outside of its arrays, read what nobody wrote, raced, met a barrier in a part of its threads, left a part of its\n\
         result unwritten, or the like. The message names the HLO instruction, the kernel, the line of its PTX and the thread. A comparison\n\
         counts this as a failure like wrong results, whatever the results are. docs/ptx.md lists what is checked.",
    UNSUPPORTED_OPCODE = "U0001" "opcode not supported by this engine"
        "The engine cannot run this opcode, or not in this form. The message names the opcode, the form and the engine.",
    UNSUPPORTED_CUSTOM_CALL = "U0002" "custom call not supported by this engine"
        "What a custom call computes is known only to who registered its target, and this engine has no registration under\n\
         that name (or not for these operands).",
    UNSUPPORTED_STABLEHLO = "U0003" "StableHLO that has no HLO here"
        "The operation, type or attribute is StableHLO (or of a dialect beside it), and is not converted to HLO, which is what runs.\n\
         The message names it and says why; docs/stablehlo.md lists all of them.",
    UNBOUNDED_SHAPE = "U0004" "shape that is not known"
        "A dimension, `?`, has neither a size nor a bound that follows from the shapes of the arguments and from constants. HLO has\n\
         sizes and bounds only.",
    UNSUPPORTED_IN_PROTO = "U0005" "XLA's protocol buffers have no field for this"
        "The program says something for which HloModuleProto has no field, so that it cannot be written in that form without losing\n\
         it. docs/formats.md lists what that is. The message names the instruction and the attribute.",
    UNSUPPORTED_IN_STABLEHLO = "U0006" "HLO that has no StableHLO"
        "The instruction, its type or one of its attributes says something that StableHLO cannot, and leaving it out would change the\n\
         result. The message names the instruction; docs/stablehlo.md lists all that is refused, and what is left out because it\n\
         changes nothing.",
}
