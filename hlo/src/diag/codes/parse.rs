//! Codes of the parser.

super::codes! {
    UNEXPECTED_TOKEN = "P0001" "unexpected token"
        "The text is not HLO at this place: the caret is on the token that does not fit, the label says which tokens would.\n\
         \n\
         HLO text is a header line `HloModule name`, then computations, each a name, an optional signature and instructions\n\
         `name = shape opcode(operands), attribute=value` in braces; one of them is marked ENTRY.",
}
