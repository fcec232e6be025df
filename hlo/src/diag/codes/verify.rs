//! Codes of shape inference and of the verifier.

super::codes! {
    WRONG_ARITY = "V0001" "wrong number of operands"
        "Every opcode takes a fixed number of operands, or at least some number. `add` takes exactly two, `concatenate` at\n\
         least one. The note says how many the opcode takes.",
}
