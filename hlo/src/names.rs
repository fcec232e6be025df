//! Names that are taken in a module.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::module::Name;

/// The names of instructions and of computations (separate spaces, as in XLA).
#[derive(Clone, Debug, Default)]
pub(crate) struct NameTable {
    instructions: Space,
    computations: Space,
}

#[derive(Clone, Debug, Default)]
struct Space {
    taken: FxHashSet<Name>,
    /// The last suffix tried for a base, so that a million copies of one name stay linear.
    suffix: FxHashMap<Name, u64>,
}

impl Space {
    fn unique(&mut self, base: &str) -> Name {
        if !self.taken.contains(base) {
            return base.into();
        }
        let stem = match base.rsplit_once('.') {
            Some((stem, digits)) if !stem.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => stem,
            _ => base,
        };
        let n = self.suffix.entry(stem.into()).or_insert(0);
        loop {
            *n += 1;
            let name: Name = format!("{stem}.{n}").into();
            if !self.taken.contains(&name) {
                return name;
            }
        }
    }
}

impl NameTable {
    pub(crate) fn reserve(&mut self, instructions: usize) {
        self.instructions.taken.reserve(instructions);
    }

    pub(crate) fn unique_instruction(&mut self, base: &str) -> Name {
        self.instructions.unique(base)
    }

    pub(crate) fn unique_computation(&mut self, base: &str) -> Name {
        self.computations.unique(base)
    }

    pub(crate) fn reserve_instruction(&mut self, name: &Name) {
        self.instructions.taken.insert(name.clone());
    }

    pub(crate) fn reserve_computation(&mut self, name: &Name) {
        self.computations.taken.insert(name.clone());
    }
}
