//! Random simulated worlds against the truth.
