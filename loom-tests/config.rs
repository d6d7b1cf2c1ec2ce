//! The configuration alone: two slots and a version.

use super::check;
use crate::line::ConfigCell;
use loom::sync::Arc;
use loom::thread;

/// A cell, and what another thread does with it.
fn beside<T: 'static>(act: fn(&ConfigCell) -> T) -> (Arc<ConfigCell>, thread::JoinHandle<T>) {
    let cell = Arc::new(ConfigCell::numbered(0));
    let shared = Arc::clone(&cell);
    (cell, thread::spawn(move || act(&shared)))
}

#[test]
fn a_reader_never_sees_a_torn_config() {
    // The reader is the spawned thread, for the reason that `race` gives. It panics if it accepts
    // words of two changes. The second change writes to the slot that it may be reading.
    check(|| {
        let (cell, reader) = beside(|cell| cell.number().is_none_or(|number| number <= 2));
        cell.set_number(1);
        cell.set_number(2);
        assert!(reader.join().unwrap());
        assert_eq!(cell.number(), Some(2));
    });
}

#[test]
fn two_writers_lose_no_change() {
    check(|| {
        let (cell, other) = beside(|cell| cell.add_to_number(1));
        cell.add_to_number(2);
        other.join().unwrap();
        assert_eq!(cell.number(), Some(3));
    });
}

#[test]
fn a_change_after_close_does_not_reopen() {
    check(|| {
        let (cell, closer) = beside(ConfigCell::close);
        cell.set_number(1);
        closer.join().unwrap();
        assert!(cell.is_closed());
        assert_eq!(cell.number(), Some(1));
    });
}
