//! Codes of reading MLIR text: `P06xx`.

super::codes! {
    MLIR_SYNTAX = "P0601" "unexpected token in MLIR text"
        "The text is not MLIR at this place: the caret is on the token that does not fit, the label says what would.\n\
         \n\
         An operation is written in the generic form, `%r = \"dialect.name\"(%operand) <{properties}> {attributes} : (type) -> type`,\n\
         or in the form of its own that StableHLO's operations, functions and modules have.",
    MLIR_UNDEFINED_VALUE = "P0602" "no value or block of this name"
        "An operand names a value that is not defined above it in its region or in one around it. A function sees no values of\n\
         outside. `%name#N` is result N, counted from 0, of an operation with several.",
    MLIR_REDEFINED = "P0603" "name defined twice"
        "A value or block of this name is defined already where this one is. The other label shows it. MLIR has no shadowing.",
    MLIR_BAD_TYPE = "P0604" "not a type that can stand here"
        "Types are `tensor<2x?xf32>`, `i32`, `ui8`, `index`, `complex<f32>`, `tuple<...>`, `(operands) -> results` and those of\n\
         dialects, such as `!stablehlo.token` and `!quant.uniform<i8:f32, 0.1:0>`.",
    MLIR_BAD_ATTRIBUTE = "P0605" "not an attribute that can stand here"
        "The value of an attribute has a form that its name, or its type, does not allow. The message says which.",
    MLIR_BAD_ELEMENTS = "P0606" "elements that do not fit their type"
        "`dense<...> : type` gives one element for all, or nested lists as the dimensions of the type say, or all bytes in\n\
         hexadecimal digits, `\"0x...\"`, in row-major order and little-endian. Floats may be given by their bits, `0x7FC00000`.",
    MLIR_TYPE_MISMATCH = "P0607" "types do not fit what they belong to"
        "A value is used with another type than it is defined with, or there are more or fewer types than operands or results.",
    MLIR_UNKNOWN_OPERATION = "P0608" "operation without a known form"
        "Only operations of StableHLO, CHLO, func, builtin and a few others have a form that is known here. Any operation can be\n\
         written in the generic form, with its name in quotes.",
    MLIR_UNDEFINED_ALIAS = "P0609" "alias that is not defined, or not once"
        "`#name` and `!name` without a dialect are aliases, defined by a line `#name = attribute` or `!name = type` at the outermost\n\
         level. Aliases of locations may be defined after they are used by an operation.",
}
