//! Aliasing and donation of buffers.

use super::Ints;

/// Whether an alias must be honoured.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AliasKind {
    /// `may-alias`
    #[default]
    May,
    /// `must-alias`
    Must,
}

/// `{out}: (parameter, {index}, kind)` of `input_output_alias`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AliasEntry {
    /// Index into the result.
    pub output_index: Ints,
    /// Which parameter.
    pub parameter: i64,
    /// Index into the parameter.
    pub parameter_index: Ints,
    /// May or must.
    pub kind: AliasKind,
    /// Whether the text named the kind (`(0, {})` and `(0, {}, may-alias)` mean the same).
    pub kind_written: bool,
}

/// `(parameter, {index})` of `buffer_donor`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferDonor {
    /// Which parameter.
    pub parameter: i64,
    /// Index into the parameter.
    pub parameter_index: Ints,
}

/// `{out}: (operand, {index})` of `output_to_operand_aliasing`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperandAlias {
    /// Index into the result.
    pub output_index: Ints,
    /// Which operand.
    pub operand: i64,
    /// Index into the operand.
    pub operand_index: Ints,
}

/// The module's `input_output_alias`.
pub type OutputAlias = Vec<AliasEntry>;
