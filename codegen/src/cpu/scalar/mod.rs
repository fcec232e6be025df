//! One element, or one element a lane: every elementwise operation on every element type.
