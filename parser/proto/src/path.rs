//! Where in a message something is: `computations[3].instructions[17].shape`.

use std::fmt;

/// A field on the way to a message, linked to the one around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    name: &'static str,
    index: Option<usize>,
}

impl<'p> Path<'p> {
    /// The outermost message.
    pub(crate) const ROOT: Path<'static> = Path { parent: None, name: "", index: None };

    /// A field of the message at `self`; its number among several, if it is repeated.
    pub(crate) fn field(&'p self, name: &'static str, index: Option<usize>) -> Path<'p> {
        Path { parent: Some(self), name, index }
    }

    /// The path of a field of the message at `self`.
    pub(crate) fn of(&self, name: &'static str) -> String {
        Path { parent: Some(self), name, index: None }.to_string()
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut segments = Vec::new();
        let mut at = Some(self);
        while let Some(p) = at {
            segments.push((p.name, p.index));
            at = p.parent;
        }
        let mut first = true;
        for (name, index) in segments.into_iter().rev().filter(|s| !s.0.is_empty()) {
            if !std::mem::take(&mut first) {
                f.write_str(".")?;
            }
            f.write_str(name)?;
            if let Some(index) = index {
                write!(f, "[{index}]")?;
            }
        }
        if first { f.write_str("the message") } else { Ok(()) }
    }
}
