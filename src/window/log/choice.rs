//! Which free places serve a request soonest: pure.

/// A place that was given back, and when it can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) number: u64,
    /// Its slot, if it is an open hole; two of those can be of one slot.
    pub(super) slot: Option<usize>,
    pub(super) from: u64,
    /// The last time at which it may be used.
    pub(super) until: u64,
}

/// The candidates in the order of their times, with one open hole of each slot.
pub(super) fn distinct(mut holes: Vec<Candidate>) -> Vec<Candidate> {
    holes.sort_by_key(|hole| (hole.slot, hole.from));
    holes.dedup_by(|one, other| one.slot.is_some() && one.slot == other.slot);
    holes.sort_by_key(|hole| hole.from);
    holes
}

/// What a request is to take.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) turn: u64,
    pub(super) holes: Vec<Candidate>,
    /// How many places at the head of the log.
    pub(super) at_head: u32,
}

/// Takes `count` places as they become free, from `holes` (in the order of their times) and from
/// the head of the log (which has `count` places, and in that order), until there are enough
/// that can all be used at once.
pub(super) fn choose(
    now: u64,
    count: u32,
    holes: impl Iterator<Item = Candidate>,
    head: impl Iterator<Item = u64>,
) -> Choice {
    let (mut holes, mut head) = (holes.peekable(), head.peekable());
    let mut choice = Choice { turn: now, holes: Vec::new(), at_head: 0 };
    while (choice.holes.len() as u64) + u64::from(choice.at_head) < u64::from(count) {
        let from_head = head.peek().copied();
        let hole = holes.next_if(|hole| from_head.is_none_or(|time| hole.from <= time));
        let time = if let Some(hole) = hole {
            choice.holes.push(hole);
            hole.from
        } else {
            choice.at_head += 1;
            head.next().expect("the head has as many as are asked for")
        };
        choice.turn = choice.turn.max(time);
        choice.holes.retain(|hole| choice.turn <= hole.until);
    }
    choice
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_choice_is_the_soonest_that_a_search_finds(
            holes in prop::collection::vec((0..20_u64, 0..10_u64), 0..8),
            head in prop::collection::vec(0..20_u64, 1..6),
            now in 0..20_u64,
        ) {
            let count = u32::try_from(head.len()).unwrap();
            let mut head = head;
            head.sort_unstable();
            let mut holes: Vec<_> = (0..).zip(holes)
                .map(|(number, (from, length))| Candidate { number, slot: None, from, until: from + length })
                .collect();
            holes.sort_by_key(|hole| hole.from);
            let choice = choose(now, count, holes.iter().copied(), head.iter().copied());
            let free_at = |time: u64| {
                let holes = holes.iter().filter(|hole| hole.from <= time && time <= hole.until);
                holes.count() + head.iter().filter(|from| **from <= time).count()
            };
            let soonest = (now..40).find(|time| free_at(*time) >= head.len()).unwrap();
            prop_assert_eq!(choice.turn, soonest);
            prop_assert!(choice.holes.iter().all(|h| h.from <= soonest && soonest <= h.until));
            prop_assert_eq!(choice.holes.len() + choice.at_head as usize, head.len());
        }
    }
}
