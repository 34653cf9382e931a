//! Errors and warnings with a code, a place, and help, and their renderers.
