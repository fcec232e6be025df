//! VHLO, the versioned form of StableHLO in portable artifacts: what its operations are called there, and
//! which attributes they have. The tree holds StableHLO; readers and writers of bytecode translate by these
//! tables.

pub(in crate::bytecode) mod operations;
pub(in crate::bytecode) mod rules;
