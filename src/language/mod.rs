//! What an author writes: scenario and environment files, from their text to a plan that cannot be wrong.
