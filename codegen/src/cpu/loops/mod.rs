//! Loop nests: fusions as functions over a range of units.
