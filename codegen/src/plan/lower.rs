//! From a fused, scheduled, buffer-assigned module to a launch plan.
