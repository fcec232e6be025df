//! Shapes of arguments to shapes of everything: makes `?` of a module known.
