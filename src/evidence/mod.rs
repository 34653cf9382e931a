//! What was seen: one reader per source, each giving observations on that source's own clock.
