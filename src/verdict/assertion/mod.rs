//! Assertions: three-valued, with margins and reasons.
