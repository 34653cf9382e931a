//! What an author writes: scenario and environment files, from their text to a plan that cannot be wrong.
//!
//! ```text
//! bytes -> source (tree with a span for every node) -> scenario, environment (typed, may dangle)
//!       -> check (all findings at once) -> plan (resolved, cannot be wrong)
//! ```

mod check;
pub mod environment;
pub mod expression;
mod files;
mod id;
mod load;
mod nearest;
mod one_of;
pub mod plan;
pub mod reference;
pub mod scenario;
pub mod schema;
mod source;
pub mod value;
mod variable;
pub mod vocabulary;

pub use files::{Disk, Files, Memory};
pub use id::{ID_PATTERN, Id};
pub use load::{
    Chosen, EnvironmentChoice, FileKind, LoadOptions, Loaded, Rejected, load, load_assertions, load_environment,
    validate,
};
pub use variable::{Scalar, Variable};
