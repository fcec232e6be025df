//! MLIR bytecode: reading it into the tree and writing the tree.
