//! Codes of reading XLA's protocol buffers: `P09xx`.

super::codes! {
    PROTO_MALFORMED = "P0901" "malformed protocol buffer"
        "The bytes are no message of the kind that they are read as: they end within a field, a length reaches beyond its message, a\n\
         field has another wire type than its number says, a string is not UTF-8, or a number needs more than ten bytes. The message\n\
         gives the path of the field, such as `computations[3].instructions[17].shape`, and the offset.",
    PROTO_TEXT_MALFORMED = "P0902" "malformed text format of protocol buffers"
        "The text is no message in the text format of protocol buffers: fields are `name: value` or `name { ... }`, with names of the\n\
         message that they are in; enumerators are given by name or number, strings in quotes.",
    PROTO_BAD_VALUE = "P0903" "value that a field cannot have"
        "The message can be read, and says something that HLO does not know: an opcode or enumerator that there is not, a negative\n\
         rank, a literal with fewer elements than its shape has, a name that text could not write. The message gives the path.",
    PROTO_BAD_ID = "P0904" "identifier that collides or names nothing"
        "Instructions and computations refer to each other by number. Each number stands for one instruction of the computation, or\n\
         one computation of the module; operands and called computations come before what uses them, so that there are no cycles;\n\
         the root, the entry and a schedule name what is there.",
    PROTO_MISSING_FIELD = "P0905" "field that must be there"
        "The message lacks a field without which it says nothing: the shape of an instruction, the root of a computation, the module of\n\
         a snapshot, or a field that the opcode requires.",
    PROTO_NOT_IN_TEXT = "P0906" "the message says more than a module holds"
        "The file has fields that are unknown here (of a newer version), or known and not part of HLO as text: the assignment of\n\
         buffers, profiles, ids. They are left out of the program that is read. `hlo convert` from one form of protocol buffers to\n\
         another keeps every field.",
}
