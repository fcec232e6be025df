//! Codes of MLIR bytecode: `P08xx` reading (exit code 3), `U01xx` writing (5).

super::codes! {
    NOT_BYTECODE = "P0801" "not MLIR bytecode"
        "Files of MLIR bytecode start with the four bytes 4D 4C EF 52. Portable artifacts of StableHLO are such files; what\n\
         `jax.export` serializes is one inside a flatbuffer.",
    UNKNOWN_FORMAT = "P0802" "bytecode of an unknown version"
        "The container has a version of its own, apart from those of dialects. Versions 0 to 6 are known.",
    ENDS_EARLY = "P0803" "bytecode ends early"
        "A length or a count says that more follows than there is: the file was cut, or the number is damaged.",
    BAD_SECTION = "P0804" "malformed section"
        "A file is a sequence of sections, each with an id, a length, perhaps an alignment, and padding of 0xCB bytes. Each is\n\
         there once, and strings, dialects, attributes and types, their lengths and operations are needed; since version 5\n\
         properties, too.",
    INDEX_OUT_OF_RANGE = "P0805" "index out of range"
        "Strings, dialects, names of operations, attributes, types, values and blocks are named by their index in a table. This\n\
         index is past its end.",
    BAD_STRING = "P0806" "malformed string"
        "The string section gives lengths of all strings, the last one first, and their text, each with a zero byte. Names of\n\
         dialects, operations, attributes and symbols are UTF-8.",
    UNKNOWN_ENCODING = "P0807" "unknown code of an attribute or type"
        "Each dialect numbers its kinds of attributes and types. This number is none of those of the dialect that are known: the\n\
         file may come from a newer version. Known are the codes of the builtin dialect, of VHLO up to version 1.20.0 and of\n\
         Shardy.",
    BAD_ENTRY = "P0808" "malformed attribute or type"
        "The bytes of an attribute or type do not say what its kind needs: bytes are left, a part is of the wrong kind, or the\n\
         data of a constant does not fit its type.",
    CYCLE = "P0809" "attribute or type that contains itself"
        "Attributes and types are built of others that the file names by their index. Following these indices must end.",
    TOO_DEEP = "P0810" "attribute or type nested too deeply"
        "Attributes, types and locations may be nested 256 levels deep. Operations may be nested as deep as they like.",
    UNKNOWN_DIALECT = "P0811" "encoding of an unknown dialect"
        "Attributes and types of the builtin dialect, of VHLO and of Shardy are known in their own encodings; those of other\n\
         dialects only as text.",
    BAD_OPERATION = "P0812" "malformed operation"
        "An operation is a name, a mask of what it has, a location, and then attributes, properties, result types, operands,\n\
         successors and regions, as far as the mask says so. A region is a number of blocks and of values; a block is its\n\
         arguments and operations.",
    UNDEFINED_VALUE = "P0813" "value that is not defined"
        "Values are numbered by the order of their definition, from 0 within each operation whose regions use nothing from\n\
         outside. A value that is used must be defined in the region or around it.",
    BAD_RESOURCE = "P0814" "malformed resource"
        "Resources are blobs, booleans or strings beside the operations, with a key each.",
    TOO_LARGE = "P0815" "file too large"
        "Places in a file are numbers of 32 bits, so files of up to 4 GiB can be read. Constants make a file large: keep them outside, as arguments.",
    UNKNOWN_OPERATION = "P0816" "unknown operation of VHLO"
        "VHLO's operations have a version in their name, as `vhlo.add_v1`. This one is none of those up to version 1.20.0.",
    BAD_ATTRIBUTE = "P0817" "operation of VHLO with a wrong attribute"
        "VHLO's operations have all their attributes, those with default values too, each of one kind. This one lacks one, or\n\
         has one of another kind.",
    BAD_EXPORT = "P0818" "malformed serialized export"
        "What `jax.export` serializes is a flatbuffer: tables at offsets from each other, with the portable artifact among their\n\
         fields. An offset or length leaves the file, or a field that is needed is missing.",
    NOT_IN_TARGET = "U0101" "not in the target version"
        "A portable artifact is written in the form of a version of VHLO, so that readers of that version understand it. The\n\
         program has an operation, attribute or type that this version lacks. Name a newer version, or change the program.",
    NO_PORTABLE_FORM = "U0102" "no form in portable artifacts"
        "Portable artifacts hold operations, attributes and types of StableHLO, of functions, and of Shardy. This one is of another\n\
         dialect, or has no counterpart in VHLO.",
}
