//! Who waits for a turn of a key.
