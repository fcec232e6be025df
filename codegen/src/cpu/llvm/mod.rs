//! What emission needs of LLVM: a function being built, typed operations on lanes, targets, object code.
