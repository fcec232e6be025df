//! Codes of the parser: `P00xx` text, `P01xx` instructions and computations, `P02xx` attributes, `P03xx` the
//! module's header, `P04xx` shapes, `P05xx` literals, `P06xx` protocol buffers.

super::codes! {
    UNEXPECTED_TOKEN = "P0001" "unexpected token"
        "The text is not HLO at this place: the caret is on the token that does not fit, the label says which tokens would.\n\
         \n\
         HLO text is a header line `HloModule name`, then computations, each a name, an optional signature and instructions\n\
         `name = shape opcode(operands), attribute=value` in braces; one of them is marked ENTRY.",
    BAD_CHARACTER = "P0002" "a character that is not part of HLO"
        "No token of HLO text starts with this character. Names start with a letter or `_` and go on with letters, digits,\n\
         `_`, `.` and `-`; `%` may stand before them. Typographic quotes, templates (`$0`, `${shape}`, `{{...}}`) and escapes\n\
         of a surrounding language are not HLO: paste the text after they have been replaced.",
    UNTERMINATED = "P0003" "string or comment without an end"
        "A string goes from one quote to the next of the same kind (`\\\"` inside it is escaped by a backslash), a comment from\n\
         `/*` to `*/`. This one runs to the end of the text.",
    SOURCE_TOO_LARGE = "P0004" "text larger than 4 GiB"
        "Places in the text are 32-bit offsets, so one text is limited to 4 GiB. Elide large constants, or pass them as inputs.",
    NESTING_TOO_DEEP = "P0005" "nested too deeply"
        "Tuples (and origins, and shapes inside layouts) may be nested, but not without a limit: deeper nesting than 500 levels\n\
         is refused, so that no later stage can run out of stack.",
    EMPTY_TEXT = "P0006" "nothing to parse"
        "The text holds no computation: it is empty, or there is only a header. A module needs at least one computation:\n\
         \n\
         ENTRY main {\n\
         \x20 ROOT c = f32[] constant(1)\n\
         }",
    UNCLOSED_BRACKET = "P0007" "bracket without its closing one"
        "The bracket at the caret is not closed before the end of the text, or before what looks like the next instruction.",
    MISMATCHED_BRACKET = "P0008" "closing bracket of another kind"
        "Brackets close in the order opposite to that in which they open: `{(1, 2)}`, not `{(1, 2})`. The other label shows the\n\
         opening one.",
    BAD_ESCAPE = "P0009" "escape sequence that C does not know"
        "In strings a backslash starts an escape as in C: \\n \\r \\t \\a \\b \\f \\v \\? \\' \\\" \\\\, octal \\123, hexadecimal \\x7f,\n\
         \\u1234 and \\U00012345.",
    EXPECTED_COMMA = "P0010" "attribute without a comma before it"
        "Attributes are separated from the operands and from each other by commas: `add(a, b), metadata={...}`. If this is meant\n\
         to start an instruction, put a space before the `=`.",
    SOURCE_NOT_TEXT = "P0011" "the file is not text"
        "HLO text is UTF-8. This file is something else: a serialized proto, compressed, or another binary format.",
    PASTED_TEXT = "P0012" "read as pasted text"
        "The text is not HLO as it is, and is once what surrounds it is left out: prefixes of a log or of ranks, Markdown around\n\
         a fenced block, quotation marks and differences, `#` comments, HTML entities, colour codes, typographic quotes, prose\n\
         before and after the program. The warning says what was left out. Places in other messages are places in the text as\n\
         it was pasted. A text that is HLO is never changed.",
    SEVERAL_MODULES = "P0013" "several modules in one text"
        "The text has more than one header `HloModule name`, as logs and PyTorch/XLA's XLA_SAVE_TENSORS_FILE have, and one\n\
         program is wanted. `--module N` chooses the Nth, counted from 1, `--module NAME` the one of that name; in a folder,\n\
         `hlo verify DIR` and `hlo run DIR` take all of them.",

    DUPLICATE_INSTRUCTION = "P0101" "instruction name used twice"
        "Within a computation each instruction has a name of its own. The other label shows the first one. Different computations\n\
         may use the same name.",
    UNKNOWN_INSTRUCTION = "P0102" "no instruction of this name"
        "An operand (or control predecessor) names an instruction that this computation does not have. Instructions of other\n\
         computations cannot be used directly: pass them as parameters.",
    USE_BEFORE_DEFINITION = "P0103" "instruction used before its definition"
        "Instructions stand in an order in which operands come before users. Move the definition up, or check that the operand\n\
         is the one that was meant: a cycle cannot be written.",
    DUPLICATE_COMPUTATION = "P0104" "computation name used twice"
        "Each computation of a module has a name of its own. The other label shows the first one.",
    UNKNOWN_COMPUTATION = "P0105" "no computation of this name"
        "An attribute (`to_apply`, `calls`, `body`, `condition`, `branch_computations`, ...) names a computation that the module\n\
         does not have.",
    RECURSIVE_CALL = "P0106" "computations call each other in a cycle"
        "HLO has no recursion: a computation may not call itself, directly or through others. Repetition is a `while`.",
    SEVERAL_ENTRIES = "P0107" "more than one ENTRY"
        "One computation is where the program starts. Without any ENTRY it is the last one of the text.",
    SEVERAL_ROOTS = "P0108" "more than one ROOT"
        "One instruction is the result of a computation. Without any ROOT it is the last one. To return several values, make the\n\
         root a `tuple`.",
    EMPTY_COMPUTATION = "P0109" "computation without instructions"
        "A computation needs at least the instruction that is its result: the one marked ROOT, or the last one.\n\
         The braces here hold none.",
    SIGNATURE_MISMATCH = "P0110" "signature differs from the instructions"
        "The signature `(p0: f32[2]) -> f32[2]` before a computation's brace repeats what its instructions say, and must agree\n\
         with them: the result with the root.",
    OPERAND_SHAPE_MISMATCH = "P0111" "written operand shape differs from the operand's"
        "A shape before an operand's name, as in `add(f32[2] a, f32[2] b)`, repeats the shape of that instruction and must agree\n\
         with it, layouts aside.",
    UNKNOWN_OPCODE = "P0112" "unknown opcode"
        "There is no operation of this name. The names are XLA's: `exponential`, `negate`, `multiply`, `get-tuple-element`, ... Any\n\
         operation may carry `-start`, `-update` or `-done`, which runs it asynchronously.",
    MISSING_SHAPE = "P0113" "shape neither written nor inferable"
        "The shape of a result may be left out where it follows from the operands and attributes. It does not for this opcode, or\n\
         not here: write it before the opcode, `x = f32[2,3] opcode(...)`.",
    CANNOT_INFER_SHAPE = "P0114" "the left-out shape cannot be inferred"
        "The result's shape was left out, and the operands and attributes do not fit together, so that none follows.",
    BAD_TUPLE_INDEX = "P0115" "bad tuple index after `#`"
        "`%t#1` is element 1 of the tuple `%t`. The instruction must be a tuple with that many elements.",
    BAD_PARAMETER_NUMBER = "P0116" "bad parameter number"
        "`parameter(N)` takes a number from 0 up to 1048575, and each number once in a computation.",
    BAD_OPERAND = "P0117" "something that is no operand"
        "Operands are names of instructions, or instructions themselves: `add(x, y)`, `add(max(x, y), z)`. Only `parameter(0)` takes\n\
         a number, and only a text that is a single instruction may have a shape alone in the place of an operand.",
    BAD_ASYNC = "P0118" "malformed asynchronous operation"
        "An `opcode-start` has the shape `((operand shapes), result shape, ...)`, its `-update` the same, and `-update` and `-done`\n\
         take the start (or update) as their first operand. Some opcodes cannot be wrapped like this because they have their\n\
         own asynchronous forms.",
    NO_NESTED_COMPUTATION = "P0119" "computation where none can stand"
        "A computation in braces can be the value only of attributes that call one: `to_apply`, `calls`, `body`, ...",

    UNKNOWN_ATTRIBUTE = "P0201" "attribute that the opcode does not take"
        "Each opcode takes certain attributes, besides those that all take: sharding, frontend_attributes, control-predecessors,\n\
         parameter_replication, result_accuracy, origin, statistics, metadata, backend_config.",
    DUPLICATE_ATTRIBUTE = "P0202" "attribute given twice"
        "Each attribute may be given once, since two values would mean neither. The other label shows the first one;\n\
         remove one of them.",
    MISSING_ATTRIBUTE = "P0203" "required attribute missing"
        "The opcode means nothing without this attribute. The note lists all that it takes.",
    BAD_BOOL = "P0204" "expected `true` or `false`"
        "This value is a boolean, written `true` or `false`.",
    BAD_INTEGER = "P0205" "expected an integer"
        "This value is an integer in decimal digits, perhaps with a minus sign.",
    INTEGER_OUT_OF_RANGE = "P0206" "integer too large"
        "Integers of attributes and shapes are 64 bits wide, with sign: at most 9223372036854775807. This one does not fit.",
    BAD_FLOAT = "P0207" "expected a number"
        "This value is a decimal number such as `0.001` or `1e-5`.",
    BAD_STRING = "P0208" "expected a string"
        "The value of this attribute is a string in double or single quotes, with C escapes: `custom_call_target=\"TopK\"`.",
    BAD_WORD = "P0209" "word that is none of those known here"
        "The value of this attribute is one of a few words, in the spelling that XLA prints (`direction=LT`, `kind=kLoop`). The note\n\
         lists them.",
    BAD_LIST = "P0210" "malformed list"
        "Lists stand in braces, their elements are separated by commas: `{0,1}`, `{{0,1},{2,3}}`, `{true,false}`.",
    BAD_WINDOW = "P0211" "malformed window"
        "A window is `{size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}`: each field has one number\n\
         (for `pad`, a pair) a dimension, joined with `x`; all have as many as `size`.",
    BAD_DIM_LABELS = "P0212" "malformed dimension labels"
        "Labels of a convolution are `lhs_rhs->out`, such as `b01f_01io->b01f`: one letter a dimension; b batch, f feature,\n\
         i and o input and output feature of the kernel, digits for spatial dimensions, `?` for one without a role.",
    BAD_PADDING = "P0213" "malformed padding"
        "The padding of a `pad` is `low_high` or `low_high_interior` for each dimension, joined with `x`: `0_0x1_2_1`.",
    BAD_SLICE = "P0214" "malformed slice"
        "A slice is `{[start:limit], [start:limit:stride]}`, one bracket a dimension.",
    BAD_REPLICA_GROUPS = "P0215" "malformed replica groups"
        "Groups of devices are lists `{{0,1},{2,3}}`, or an iota `[2,2]<=[4]` with perhaps a transposition\n\
         `[2,2]<=[2,2]T(1,0)`, or axes of a mesh: `mesh['a'=2,'b'=2] {'a'}`.",
    BAD_SHARDING = "P0216" "malformed sharding"
        "A sharding is `{replicated}`, `{maximal device=0}`, `{manual}`, `{devices=[2,1]0,1}`, `{devices=[2,2]<=[4]}`, perhaps with\n\
         `last_tile_dim_replicate`, `last_tile_dims={...}`, `shard_as 1`, `metadata={...}`; or by names\n\
         `{mesh['x'=2], [{'x'}, {?}]}`; or for a tuple a list of those in braces.",
    BAD_METADATA = "P0217" "malformed metadata"
        "Metadata is `{op_type=\"...\" op_name=\"...\" source_file=\"...\" source_line=1 stack_frame_id=1}`: `key=value` separated by\n\
         spaces or commas. Fields of unknown names are kept.",
    BAD_FRONTEND_ATTRIBUTES = "P0218" "malformed frontend attributes"
        "Frontend attributes are `{key=\"value\",key={...}}`: a value is a string, or text in braces that is kept as it is.",
    BAD_BACKEND_CONFIG = "P0219" "malformed backend configuration"
        "A backend configuration is a string, or text in braces, which is kept as it is.",
    BAD_ORIGIN = "P0220" "malformed origin"
        "An origin is `{{\"name\" {0}}}`: the name of an instruction and an index into its result; for tuples a tree in\n\
         parentheses, `{({\"a\"}, {\"b\" {1}})}`; or `{[synthetic_call]}`.",
    BAD_STATISTICS = "P0221" "malformed statistics"
        "Statistics are `{visualizing_index=0,name=1.5,other=2}`.",
    BAD_RESULT_ACCURACY = "P0222" "malformed result accuracy"
        "The accuracy is `{mode=highest}`, `{mode=default}` or `{tolerance={atol=0,rtol=1e-5,ulps=2}}`.",
    BAD_ALIASING = "P0223" "malformed aliasing"
        "`output_to_operand_aliasing={{0}: (1, {}), ...}` says which output shares memory with which operand;\n\
         `input_output_alias={ {0}: (1, {}, may-alias) }` which output with which parameter; `buffer_donor={ (0, {}) }`\n\
         which parameters may be overwritten. Indices into tuples stand in braces.",
    BAD_SPARSITY = "P0224" "malformed sparsity configuration"
        "A sparsity configuration is `{lhs={sparsity=2x4 dimension=1 stride=1 idx=2} rhs={...}}`.",
    BAD_DOMAIN = "P0225" "malformed domain"
        "A domain is `{kind=\"sharding\", entry={...}, exit={...}}`.",
    TRAILING_TEXT = "P0226" "text after the end of a value"
        "The value is complete before this place. Separate attributes by commas and instructions by line ends.",
    BAD_MESH = "P0227" "malformed mesh"
        "A mesh is `mesh['x'=2,'y'=4]`, perhaps with `, device_ids=(3,2,1,0)` or `, device_ids=([2,2]T(1,0))`; or\n\
         `maximal_mesh[device_id=3]`. Axes are named in quotes, and every axis named elsewhere must be one of the mesh.",
    EXPECTED_COMPUTATION = "P0228" "expected the name of a computation"
        "This attribute names a computation that the instruction calls, or gives one in braces.",
    EXPECTED_NAME = "P0229" "expected a name"
        "Names start with a letter or `_` and go on with letters, digits, `_`, `.` and `-`; `%` may stand before them.",

    SUSPICIOUS_HEADER_FIELD = "P0301" "unknown field of the module's header"
        "The header has a field that is not known here. It is kept and printed again, and has no effect on what is computed.\n\
         Perhaps another one was meant: the label says which known name is near.",
    BAD_ENTRY_LAYOUT = "P0302" "malformed entry computation layout"
        "The layout of the entry computation is `{(shape, shape)->shape}`.",
    BAD_TABLE = "P0303" "malformed table of source locations"
        "The tables after the header are `FileNames` and `FunctionNames` with rows `1 \"text\"`, `FileLocations` with rows\n\
         `1 {file_name_id=1 function_name_id=1 line=1 end_line=1 column=1 end_column=1}` and `StackFrames` with rows\n\
         `1 {file_location_id=1 parent_frame_id=1}`.",

    UNKNOWN_ELEMENT_TYPE = "P0401" "unknown element type"
        "Element types are pred, s1 to s64, u1 to u64, f16, bf16, f32, f64, the eight-bit floats f8e5m2, f8e4m3, f8e4m3fn,\n\
         f8e4m3b11fnuz, f8e3m4, f8e5m2fnuz, f8e4m3fnuz, f8e8m0fnu, the narrower f4e2m1fn, f6e3m2fn, f6e2m3fn, c64 and c128;\n\
         besides arrays there are `token[]` and `opaque[]`.",
    BAD_DIMENSION = "P0402" "malformed dimension"
        "A dimension is a size, `<=N` for one whose size at run time is at most N, or `?` for one without a bound.",
    RANK_TOO_LARGE = "P0403" "too many dimensions"
        "Arrays have at most 64 dimensions here. XLA has no such limit, and no program that was ever dumped comes near it.",
    BAD_LAYOUT = "P0404" "malformed layout"
        "A layout is `{1,0}`, the dimensions from the fastest varying to the slowest, perhaps followed by `:` and, in this\n\
         order: D(...) T(...) L(n) #(type) *(type) E(n) S(n) SC(...) P(shape) M(n).",
    LAYOUT_RANK = "P0405" "layout of another rank than its array"
        "The numbers in the braces after the dimensions name each dimension of the array once, the fastest varying first:\n\
         `f32[2,3]{1,0}` is row-major.",
    BAD_SHAPE = "P0406" "malformed shape"
        "A shape is an array `f32[2,3]{1,0}`, a tuple `(f32[2], s32[])`, `token[]`, `opaque[]` or a buffer `b(f32[4])`.",

    WRONG_ELEMENT_COUNT = "P0501" "wrong number of elements in a literal"
        "A literal gives every element of its shape: one pair of braces for each dimension, and in each as many elements as the\n\
         dimension is large.",
    WRONG_NESTING = "P0502" "braces of a literal do not fit its rank"
        "A literal of rank n has n levels of braces: `5` is a scalar, `{1, 2}` has rank 1, `{ {1}, {2} }` rank 2.",
    BAD_ELEMENT = "P0503" "not a value of the element type"
        "Integers are decimal digits; floats are decimals, `inf`, `-inf`, `nan` or `nan(0x123)`; complex numbers `(re, im)`;\n\
         predicates `true`, `false`, 1 or 0. Hexadecimal numbers are not part of HLO text.",
    ELEMENT_OUT_OF_RANGE = "P0504" "value out of the range of the element type"
        "The value is finite, but rounds to none of the finite values of the element type. Write `inf` if infinity is meant.",
    BAD_NAN_PAYLOAD = "P0505" "NaN payload that the type cannot hold"
        "`nan(0x123)` gives the bits of the mantissa, quiet bit included. They must fit the type; not 0; and types with a single\n\
         NaN have none.",
    LITERAL_TOO_LARGE = "P0506" "literal of a shape without that many elements in memory"
        "The number of elements of the shape does not fit 64 bits, or has no bound, so that no literal can give them.",
    BAD_TUPLE_LITERAL = "P0507" "malformed tuple literal"
        "A literal of a tuple gives its elements in parentheses, separated by commas: `( 1, {2, 3} )`.",
    ELIDED_CONSTANT = "P0508" "the text does not say the constant's value"
        "The printer left out the value, `constant({...})`: dumps do so with large constants unless XLA is asked for them\n\
         (--xla_dump_large_constants). Values are made up, the same in every run: they depend only on the constant's name and\n\
         its shape.",
    NO_LITERAL_TYPE = "P0509" "type of which there are no literals"
        "There are literals of arrays, of tuples of them, and of tokens; not of opaque values and buffers.",
    BAD_LITERAL_SIZE = "P0510" "bad size of a dynamic dimension in a literal"
        "The sizes before the elements of a literal with dynamic dimensions, as in `(2,3){ ... }`, are one for each dimension and\n\
         no larger than its bound.",
    IMPLIED_ZEROS = "P0511" "one value for an array of several elements"
        "The literal gives one value without braces, but the shape has more elements. As XLA reads it, this is the first element\n\
         and the others are 0. Write a scalar and a `broadcast` if all are to be equal.",
}
