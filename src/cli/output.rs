//! Text to standard output, and what the terminal there can do.

use std::io::{self, IsTerminal, Write};

use crate::cli::exit::Exit;
use crate::report::terminal::Look;

/// Columns where nothing says how wide the terminal is.
const WIDTH: usize = 100;

/// Prints a text. A reader that has gone away (`| head`) is no failure.
pub(super) fn print(text: &str) -> Exit {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Exit::Success,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
        Err(error) => {
            eprintln!("gtrun: cannot write to standard output: {error}");
            Exit::NothingProved
        }
    }
}

/// Colours on a terminal, unless `NO_COLOR` is set to something (no-color.org) or the terminal is dumb.
pub(super) fn look() -> Look {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let width = columns.or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)));
    Look {
        colour: io::stdout().is_terminal() && !set("NO_COLOR") && !dumb,
        width: width.unwrap_or(WIDTH),
    }
}
