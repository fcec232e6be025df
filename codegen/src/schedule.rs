//! The order in which the instructions of a computation run.
