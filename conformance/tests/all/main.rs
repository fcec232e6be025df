//! The integration tests of the tools, in one binary.

mod verify_goldens;
