//! Writing the tree: StableHLO in the form of VHLO at a version.

mod emit;
mod entries;
mod ir;
mod operations;
mod records;
mod tables;
mod types;

use hlo::Span;
use hlo::diag::codes::bytecode as codes;
use hlo::diag::{Diagnostic, Diagnostics};

use super::version::Version;
use crate::ir::Module;

/// The file of a module at a version.
pub(super) fn write(m: &Module, target: Version) -> Result<Vec<u8>, Diagnostics> {
    let release = target.release();
    if release < Version::OLDEST || release > Version::NEWEST {
        let message = format!(
            "artifacts of versions {} to {} are written, not of {target}",
            Version::OLDEST,
            Version::NEWEST
        );
        return Err(Diagnostic::error(codes::NOT_IN_TARGET, Span::NONE, message).into());
    }
    let Some(top) = m.top() else {
        let message = "the tree has no outermost operation";
        return Err(Diagnostic::error(codes::NO_PORTABLE_FORM, Span::NONE, message).into());
    };
    let writer = ir::IrWriter::new(entries::Entries::new(m, release));
    let (entries, ir) = writer.write(top)?;
    Ok(entries.tables.file(&target.producer(), &ir))
}
