//! What the plugin says to people: lines on the standard error, for clients that were asked to (`HLO_LOG`).

use std::io::Write;

/// Says a line. Nobody has to hear it: a closed stream is no error.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "hlo: {text}");
}
