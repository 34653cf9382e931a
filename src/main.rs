//! The `gtrun` binary: install the TLS provider, hand the arguments over, map the outcome to an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    gtrun::cli::main()
}
