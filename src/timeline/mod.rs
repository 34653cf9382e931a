//! Clocks tied, sources merged: events with brackets on one time axis, and the intervals between them.
