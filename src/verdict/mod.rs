//! Facts, attempts, fates, orders and assertions: three-valued opinions with their reasons.
