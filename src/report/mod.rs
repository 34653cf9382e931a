//! The same verdict for a terminal, a browser, a pull request and a machine.
