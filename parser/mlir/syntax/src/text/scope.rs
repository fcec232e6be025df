//! Which value a name means.

use hlo::Span;
use rustc_hash::FxHashMap;

use crate::ir::{NameId, ValueId};

/// The values of a name: the first one and their number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    pub(super) first: ValueId,
    pub(super) count: u32,
    pub(super) span: Span,
}

/// The names in scope.
#[derive(Debug, Default)]
pub(super) struct Scope {
    names: FxHashMap<NameId, Binding>,
    /// What was bound, in order; leaving a region unbinds it.
    bound: Vec<NameId>,
}

impl Scope {
    pub(super) fn find(&self, name: NameId) -> Option<Binding> {
        self.names.get(&name).copied()
    }

    /// Binds a name; the binding that it has already, if it has one.
    pub(super) fn bind(&mut self, name: NameId, binding: Binding) -> Option<Binding> {
        match self.names.get(&name) {
            Some(&old) => Some(old),
            None => {
                self.names.insert(name, binding);
                self.bound.push(name);
                None
            }
        }
    }

    pub(super) fn mark(&self) -> usize {
        self.bound.len()
    }

    /// Forgets what was bound since a mark.
    pub(super) fn release(&mut self, mark: usize) {
        for name in self.bound.drain(mark..) {
            self.names.remove(&name);
        }
    }
}
