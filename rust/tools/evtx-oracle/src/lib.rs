//! Compares the reader and the rules with the crate `evtx`. All of it is in `tests`.
