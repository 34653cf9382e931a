//! Carries out a plan over a world and writes raw evidence; it never judges.
