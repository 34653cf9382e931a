//! `gtrun schema [KIND]`: the JSON Schema of a kind of file.

use crate::cli::exit::Exit;
use crate::cli::output;
use crate::language::schema::{environment_schema, pretty, scenario_schema};

/// Arguments of `gtrun schema`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which kind of file.
    #[arg(value_enum, default_value_t = Kind::Scenario)]
    kind: Kind,
}

/// The kinds of file that have a schema.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Kind {
    /// A scenario.
    Scenario,
    /// An environment.
    Environment,
}

/// Prints the schema.
pub(super) fn main(args: Args) -> Exit {
    output::print(&pretty(&match args.kind {
        Kind::Scenario => scenario_schema(),
        Kind::Environment => environment_schema(),
    }))
}
