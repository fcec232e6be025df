//! Fusion: several instructions in one kernel, so that what passes between them stays in registers and caches.
