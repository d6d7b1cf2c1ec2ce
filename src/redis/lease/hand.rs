//! What a process has at hand and what it knows of the demand: all that happens at one instant. Pure.

use super::seen::Seen;
use super::sizing::{Demand, Sizing, is_low};
use super::stock::{Batch, Finding, Stock};
use crate::redis::reply::{Booking, Reply};
use crate::redis::settings::Settings;

/// What tells a booking from the others of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticket {
    id: i64,
    booked_at: i64,
}

/// What one who waited is served with.
#[derive(Debug)]
pub(crate) struct Aside {
    seen: Seen,
    batch: Batch<Ticket>,
}

#[derive(Debug)]
pub(crate) struct Hand {
    sizing: Sizing,
    /// None until the server has answered.
    stock: Option<Stock<Ticket>>,
    /// How many are wanted in a period, and how many to have at hand for that: more, where they
    /// overflow meanwhile.
    size: u32,
    target: u32,
    /// So many were in the bucket when the last were taken from it, and so long it was until the turn of
    /// the last of them.
    stored: u32,
    ahead: u64,
    /// So many were used since then.
    used: u32,
    since: u64,
    /// How many wait.
    waiting: u32,
    /// Whether more is being asked for.
    is_refilling: bool,
    /// Whether nobody has taken or waited since [`Hand::drain_if_idle`] was asked last.
    is_idle: bool,
}

/// What became of a request for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refilled {
    /// Who asked has been served.
    Served,
    /// There is more at hand.
    More,
    /// There is not: the limit has none of its own, or no room for so many.
    Nothing,
}

impl Hand {
    pub(crate) fn new(sizing: Sizing) -> Self {
        Self {
            sizing,
            stock: None,
            size: 0,
            target: 0,
            stored: 0,
            ahead: 0,
            used: 0,
            since: 0,
            waiting: 0,
            is_refilling: false,
            is_idle: true,
        }
    }

    /// Takes `tokens` that may be used at `now`, if what is at hand does not go by older settings.
    pub(crate) fn take(&mut self, tokens: u32, settings: Settings, now: u64) -> Finding {
        self.is_idle = false;
        let stock =
            self.stock.as_mut().filter(|stock| !stock.seen().clock.settings.is_before(settings));
        let found = stock.map_or(Finding::Short, |stock| stock.take(tokens, now));
        if found == Finding::Taken {
            self.used = self.used.saturating_add(tokens);
        }
        found
    }

    pub(crate) fn begin_waiting(&mut self) {
        self.waiting += 1;
    }

    pub(crate) fn end_waiting(&mut self) {
        self.waiting -= 1;
    }

    /// Who comes now does not overtake those who wait.
    pub(crate) fn anybody_waits(&self) -> bool {
        self.waiting > 0
    }

    /// How many more to ask for before somebody must wait for them, if that is due.
    pub(crate) fn refill_early(&mut self, now: u64) -> Option<u32> {
        if is_low(self.left(now), self.target) { self.refill(1, now) } else { None }
    }

    /// How many more to ask for, for one who needs `needs`; `None` if some are being asked for. To be
    /// followed by [`Hand::refilled`].
    pub(crate) fn refill(&mut self, needs: u32, now: u64) -> Option<u32> {
        if self.is_refilling {
            return None;
        }
        self.is_refilling = true;
        let Self { used, waiting, ahead, .. } = *self;
        let demand = Demand { used, time: now.saturating_sub(self.since), waiting, ahead };
        (self.used, self.since) = (0, now);
        self.size = self.sizing.next(self.size, demand, needs);
        let overflowing = self
            .stock
            .as_ref()
            .map_or(0, |stock| self.sizing.overflowing(stock.seen(), self.stored));
        self.target = self.sizing.at_most(self.size.saturating_add(overflowing));
        Some(self.target.saturating_sub(self.left(now)).max(needs))
    }

    /// Adds what was asked for, or nothing if that failed: the reply, when the request was sent, and when
    /// that was received.
    ///
    /// Who needs `needs` and has waited for that since before it was sent, is served as of when the server
    /// booked it, if that was minted then. It is set aside.
    pub(crate) fn refilled(
        &mut self,
        answer: Option<(Reply, u64, u64)>,
        needs: u32,
    ) -> (Refilled, Option<Aside>) {
        self.is_refilling = false;
        let nothing = (Refilled::Nothing, None);
        let Some((reply, sent, received)) = answer else { return nothing };
        let seen = Seen { sent, received, now: reply.now, clock: reply.clock };
        let stock = self.stock.get_or_insert_with(|| Stock::new(seen));
        stock.see(seen);
        let booking = reply.booking();
        let end = booking.as_ref().and_then(|booking| booking.pieces.last()).map(|last| last.end);
        let (Some(Booking { id, booked_at, pieces, .. }), Some(end)) = (booking, end) else {
            return nothing;
        };
        let grains: i64 = pieces.iter().map(|piece| piece.end - piece.start).sum();
        let tokens = u32::try_from(grains / seen.token()).unwrap_or(u32::MAX);
        self.stored = seen.stored(end).saturating_add(tokens);
        self.ahead = seen.minted(end).saturating_sub(received);
        let mut batch = Batch { booking: Ticket { id, booked_at }, pieces, tokens };
        let aside = batch.split_minted(&seen, needs).map(|batch| Aside { seen, batch });
        stock.add(batch);
        (Refilled::More, aside)
    }

    /// Counts what was set aside as used.
    pub(crate) fn used_aside(&mut self, aside: &Aside) {
        self.used = self.used.saturating_add(aside.batch.tokens);
    }

    /// Takes back what was set aside for one who went away.
    pub(crate) fn put_back(&mut self, Aside { seen, batch }: Aside) {
        if let Some(stock) = &mut self.stock {
            stock.add_seen(&seen, batch);
        }
    }

    /// All that is at hand, to be given back, if nobody has wanted anything since this was asked last.
    pub(crate) fn drain_if_idle(&mut self, now: u64) -> Option<Vec<Booking>> {
        let was_idle = std::mem::replace(&mut self.is_idle, true);
        let is_idle = was_idle && !self.anybody_waits() && !self.is_refilling;
        is_idle.then(|| self.drain(now))
    }

    /// All that is at hand, to be given back.
    pub(crate) fn drain(&mut self, now: u64) -> Vec<Booking> {
        let Some(stock) = &mut self.stock else { return Vec::new() };
        let epoch = stock.seen().clock.epoch;
        let mut bookings: Vec<Booking> = Vec::new();
        for Batch { booking: Ticket { id, booked_at }, pieces, .. } in stock.drain(now) {
            // Of each booking once, since it is given back once.
            match bookings.iter_mut().find(|booking| booking.id == id) {
                Some(booking) => booking.pieces.extend(pieces),
                None => bookings.push(Booking { booked_at, epoch, id, pieces }),
            }
        }
        bookings
    }

    fn left(&mut self, now: u64) -> u32 {
        self.stock.as_mut().map_or(0, |stock| stock.left(now))
    }
}
