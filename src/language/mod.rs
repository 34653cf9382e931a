//! What an author writes: scenario and environment files, from their text to a plan that cannot be wrong.
//!
//! ```text
//! bytes -> source (tree with a span for every node) -> scenario, environment (typed, may dangle)
//!       -> check (all findings at once) -> plan (resolved, cannot be wrong)
//! ```

pub mod expression;
mod id;
mod nearest;
pub mod plan;
mod variable;
pub mod vocabulary;

pub use id::{ID_PATTERN, Id};
pub use variable::{Scalar, Variable};
