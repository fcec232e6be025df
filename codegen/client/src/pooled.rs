//! An object pool: reference-counted objects whose allocations are reused, so that an execution in the
//! steady state does not call the allocator.
//!
//! When the last reference of a [`Pooled`] is dropped, its allocation goes to a free list of the thread that
//! dropped it, and the next object of the type that this thread makes takes it. Free lists are thread-local,
//! so that they need no lock.
//!
//! **Invariants:** an object is dropped before its slot enters a free list; a slot in a free list is empty
//! and has no other reference, strong or weak.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Weak};
use std::thread::LocalKey;

/// The most slots of a type that a thread keeps.
const MAX_FREE: usize = 64;

/// Empty slots of a thread.
pub(crate) type FreeList<T> = RefCell<Vec<Arc<Slot<T>>>>;

/// What a pool has: each type names its free list.
pub(crate) trait FromPool: Sized + 'static {
    /// The list of the thread.
    fn free() -> &'static LocalKey<FreeList<Self>>;
}

/// The slot of an object; empty while the pool has none.
pub(crate) struct Slot<T>(Option<T>);

impl<T> Slot<T> {
    pub(crate) fn get(&self) -> &T {
        self.0.as_ref().expect("invariant: a slot that somebody refers to is full")
    }
}

/// A reference to an object; clones are to the same one.
pub(crate) struct Pooled<T: FromPool>(Arc<Slot<T>>);

impl<T: FromPool> Pooled<T> {
    pub(crate) fn new(value: T) -> Self {
        // A thread that is about to end has no list any more.
        let slot = T::free().try_with(|free| free.borrow_mut().pop()).ok().flatten();
        match slot {
            Some(mut slot) => {
                let empty = Arc::get_mut(&mut slot).expect("invariant: nobody refers to a slot that waits");
                empty.0 = Some(value);
                Self(slot)
            }
            None => Self(Arc::new(Slot(Some(value)))),
        }
    }

    /// The object itself, if this is the only reference. Errors: the reference.
    pub(crate) fn into_inner(mut self) -> Result<T, Self> {
        match Arc::get_mut(&mut self.0) {
            Some(slot) => Ok(slot.0.take().expect("invariant: a slot that somebody refers to is full")),
            None => Err(self),
        }
    }

    /// Whether nobody else refers to it.
    pub(crate) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub(crate) fn downgrade(&self) -> Weak<Slot<T>> {
        Arc::downgrade(&self.0)
    }
}

impl<T: FromPool> Clone for Pooled<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: FromPool> std::ops::Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.get()
    }
}

impl<T: FromPool + fmt::Debug> fmt::Debug for Pooled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: FromPool> Drop for Pooled<T> {
    fn drop(&mut self) {
        let Some(slot) = Arc::get_mut(&mut self.0) else { return };
        // Before the list is borrowed: what is dropped may drop others of this type.
        drop(slot.0.take());
        let _ = T::free().try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < MAX_FREE {
                free.push(Arc::clone(&self.0));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Node {
        next: Option<Pooled<Node>>,
    }

    thread_local!(static NODES: FreeList<Node> = const { RefCell::new(Vec::new()) });

    impl FromPool for Node {
        fn free() -> &'static LocalKey<FreeList<Self>> {
            &NODES
        }
    }

    fn kept() -> usize {
        NODES.with(|free| free.borrow().len())
    }

    #[test]
    fn the_last_reference_leaves_its_slot_to_the_next_object() {
        let one = Pooled::new(Node { next: None });
        let address = std::ptr::from_ref(one.0.get()) as usize;
        let other = one.clone();
        assert!(!one.is_alone());
        drop(one);
        assert_eq!(kept(), 0);
        drop(other);
        assert_eq!(kept(), 1);
        let next = Pooled::new(Node { next: None });
        assert_eq!((std::ptr::from_ref(next.0.get()) as usize, kept()), (address, 0));
        let weak = next.downgrade();
        drop(next);
        assert_eq!((weak.upgrade().is_none(), kept()), (true, 0), "somebody still refers to it");
    }

    #[test]
    fn what_is_dropped_may_drop_others_of_its_type() {
        let chain = (0..10).fold(None, |next, _| Some(Pooled::new(Node { next })));
        assert!(chain.as_ref().is_some_and(|node| node.next.is_some()));
        drop(chain);
        assert_eq!(kept(), 10);
        let many: Vec<_> = (0..2 * MAX_FREE).map(|_| Pooled::new(Node { next: None })).collect();
        drop(many);
        assert_eq!(kept(), MAX_FREE);
    }

    #[test]
    fn the_only_reference_gives_the_object() {
        let one = Pooled::new(Node { next: None });
        let other = one.clone();
        let one = one.into_inner().err().expect("there are two");
        drop(other);
        assert!(one.into_inner().is_ok());
        assert_eq!(kept(), 1);
    }
}
