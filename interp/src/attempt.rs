//! Allocations that may fail.
//!
//! The allocator of a program may end the process where memory ends, because nobody else can say what wanted
//! it. Who asks with `try_reserve` and has an error of his own does so in [`attempt`]. **Invariant:** the
//! allocator that looks at [`is_on`] refuses in there as the system does.

use std::cell::Cell;

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
}

/// Runs what asks for memory and knows what to do without.
pub fn attempt<T>(ask: impl FnOnce() -> T) -> T {
    let before = ON.replace(true);
    let asked = ask();
    ON.set(before);
    asked
}

/// Whether this thread is in an [`attempt`].
pub fn is_on() -> bool {
    ON.get()
}
