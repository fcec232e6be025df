//! Interned names.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::ids::NameId;

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    texts: Vec<Arc<str>>,
    index: FxHashMap<Arc<str>, NameId>,
}

impl Names {
    pub(super) fn intern(&mut self, text: &str) -> NameId {
        if let Some(&id) = self.index.get(text) {
            return id;
        }
        let id = NameId::from_index(self.texts.len());
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.index.insert(text, id);
        id
    }

    pub(super) fn find(&self, text: &str) -> Option<NameId> {
        self.index.get(text).copied()
    }

    pub(super) fn text(&self, id: NameId) -> &str {
        &self.texts[id.index()]
    }

    pub(super) fn shared(&self, id: NameId) -> Arc<str> {
        self.texts[id.index()].clone()
    }
}
