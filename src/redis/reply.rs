//! What the script answers, and what a client remembers of it.

use super::error::Failure;
use super::settings::Settings;

/// How many positions the script puts the line back by, at times.
const LAP: i64 = 1 << 50;

/// After so many laps nothing is left of a booking. A line that starts anew counts on from more.
const MOST_LAPS: u64 = 6;

/// What has become of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It needed nothing.
    Nothing,
    /// It was booked and can be used.
    Now,
    /// It was booked and can be used in its turn.
    Later,
    /// Its turn comes later than it can wait.
    Late,
    ExceedsBurst,
    NoRoom,
    Done,
    /// What was to be given back was not: it was too late, or not for the first time.
    Refused,
}

impl Status {
    /// In the order of their numbers.
    const ALL: [Self; 8] = [
        Self::Nothing,
        Self::Now,
        Self::Later,
        Self::Late,
        Self::ExceedsBurst,
        Self::NoRoom,
        Self::Done,
        Self::Refused,
    ];

    fn read(number: f64) -> Option<Self> {
        Self::ALL.get(usize::try_from(whole(number)).ok()?).copied()
    }
}

/// When what is minted, by the server's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    pub(super) settings: Settings,
    /// What positions are counted from; it grows by one with each lap.
    pub(super) epoch: i64,
    pub(super) start: i64,
    pub(super) origin: i64,
}

/// A stretch of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: i64,
    pub(super) end: i64,
}

/// What was booked, such that it can be given back once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Booking {
    pub(super) booked_at: i64,
    pub(super) epoch: i64,
    pub(super) id: i64,
    pub(super) pieces: Vec<Piece>,
}

/// What the script answers to one request.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: Status,
    /// When, in microseconds by the clock of the limit.
    pub(super) now: i64,
    pub(super) clock: Clock,
    id: i64,
    positions: Vec<f64>,
}

impl Reply {
    /// Reads what the script has packed, an answer to each request; `asked` is what it was told the
    /// settings are.
    pub(super) fn read(numbers: &[f64], asked: Settings) -> Result<Vec<Self>, Failure> {
        Self::parse(numbers, asked).ok_or(Failure::Answer)
    }

    fn parse(numbers: &[f64], asked: Settings) -> Option<Vec<Self>> {
        let (&[differs, now, epoch, start, origin], rest) = numbers.split_first_chunk()?;
        let (settings, mut rest) = if differs == 0.0 {
            (asked, rest)
        } else {
            let (settings, rest) = rest.split_first_chunk()?;
            (Settings::from_numbers(*settings)?, rest)
        };
        let [now, epoch, start, origin] = [now, epoch, start, origin].map(whole);
        let clock = Clock { settings, epoch, start, origin };
        let mut replies = Vec::new();
        while let Some((&[status, id, count], more)) = rest.split_first_chunk() {
            let (positions, more) = more.split_at_checked(usize::try_from(whole(count)).ok()?)?;
            let (id, positions) = (whole(id), positions.to_vec());
            replies.push(Self { status: Status::read(status)?, now, clock, id, positions });
            rest = more;
        }
        rest.is_empty().then_some(replies)
    }

    /// What was booked, if it was not refused.
    pub(super) fn booking(&self) -> Option<Booking> {
        if !matches!(self.status, Status::Nothing | Status::Now | Status::Later) {
            return None;
        }
        let pieces = self.positions.chunks_exact(2);
        let pieces = pieces.map(|ends| Piece { start: whole(ends[0]), end: whole(ends[1]) });
        let (booked_at, epoch, id) = (self.now, self.clock.epoch, self.id);
        Some(Booking { booked_at, epoch, id, pieces: pieces.collect() })
    }

    /// How long until the turn of what was refused for coming late, in microseconds; `None` if it
    /// never comes.
    pub(super) fn wait(&self) -> Option<u64> {
        let end = self.positions.first().copied().map_or(0, whole);
        u64::try_from(self.clock.due(end)?.saturating_sub(self.now)).ok()
    }

    /// The free grains.
    pub(super) fn free(&self) -> f64 {
        self.positions.first().copied().unwrap_or_default()
    }
}

impl Clock {
    /// When all up to `position` is minted; `None` if never.
    pub(super) fn due(&self, position: i64) -> Option<i64> {
        let Settings { grains, over, .. } = self.settings;
        let missing = u128::try_from(position - self.origin).unwrap_or(0);
        let micros = (missing * u128::from(over)).div_ceil(u128::from(grains).max(1));
        if missing > 0 && grains == 0 {
            return None;
        }
        self.start.checked_add(i64::try_from(micros).ok()?)
    }

    /// Whether `booking` is on the line that this is the clock of.
    pub(super) fn knows(&self, booking: &Booking) -> bool {
        is_same_line(self.epoch, booking.epoch)
    }

    /// Whether that is a clock of the same line.
    pub(super) fn goes_on_as(&self, other: Self) -> bool {
        is_same_line(self.epoch, other.epoch)
    }

    /// What is to be added to a position of that epoch.
    pub(super) fn shift(&self, epoch: i64) -> i64 {
        (epoch - self.epoch) * LAP
    }

    fn place(&self, booking: &Booking, position: i64) -> i64 {
        position + self.shift(booking.epoch)
    }

    /// When the turn of `booking` comes; `None` if never.
    pub(super) fn turn(&self, booking: &Booking) -> Option<i64> {
        let Some(last) = booking.pieces.last() else { return Some(booking.booked_at) };
        Some(self.due(self.place(booking, last.end))?.max(booking.booked_at))
    }

    /// When the first of `booking` overflows; `None` if never.
    pub(super) fn overflow(&self, booking: &Booking) -> Option<i64> {
        let start = self.place(booking, booking.pieces.first()?.start);
        self.due(start.saturating_add_unsigned(self.settings.capacity))
    }
}

impl Booking {
    /// Whether nothing was needed.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// What the script must know to make it free again.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    pub(super) fn to_numbers(&self, refund: bool) -> Vec<f64> {
        let end = self.pieces.last().map_or(0, |last| last.end);
        let head = [self.booked_at, self.epoch, self.id, i64::from(refund), end];
        let pieces = self.pieces.iter().flat_map(|piece| [piece.start, piece.end]);
        head.into_iter().chain(pieces).map(|number| number as f64).collect()
    }
}

fn is_same_line(one: i64, other: i64) -> bool {
    one.abs_diff(other) <= MOST_LAPS
}

#[expect(clippy::cast_possible_truncation, reason = "whole numbers below 2^53")]
fn whole(number: f64) -> i64 {
    number as i64
}
