//! One item, and the turn that it waits for.

use super::error::Refused;
use crate::acquire::Acquire;
use crate::handle::Handle;
use crate::rate_limit::RateLimit;
use std::fmt::{self, Debug, Formatter};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Holds an item until its turn has come.
pub(super) struct Gate<'a, T, L: RateLimit, W> {
    limiter: Handle<'a, L>,
    weigh: W,
    item: Option<T>,
    /// The turn of the item, while there is one. In a box, so that who holds this can be moved.
    turn: Pin<Box<Option<Acquire<'a, L>>>>,
}

impl<'a, T, L: RateLimit, W> Gate<'a, T, L, W> {
    pub(super) fn new(limiter: Handle<'a, L>, weigh: W) -> Self {
        Self { limiter, weigh, item: None, turn: Box::pin(None) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.item.is_none()
    }

    /// Takes the item out, and gives its turn back.
    pub(super) fn take(&mut self) -> Option<T> {
        self.turn.set(None);
        self.item.take()
    }

    /// Waits for the turn of the item; ready with none if there is no item.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Refused<T>>>> {
        if let Some(turn) = self.turn.as_mut().as_pin_mut() {
            let outcome = ready!(turn.poll(cx));
            let item = self.take();
            Poll::Ready(item.map(|item| match outcome {
                Ok(_) => Ok(item),
                Err(error) => Err(Refused::new(item, error)),
            }))
        } else {
            Poll::Ready(None)
        }
    }
}

impl<T, L: RateLimit, W: FnMut(&T) -> u32> Gate<'_, T, L, W> {
    /// Takes an item in. There is none.
    pub(super) fn put(&mut self, item: T) {
        let weight = (self.weigh)(&item);
        self.item = Some(item);
        self.turn.set(Some(Acquire::new(self.limiter.clone(), weight)));
    }
}

impl<T, L: RateLimit, W> Debug for Gate<'_, T, L, W> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("is_empty", &self.is_empty()).finish_non_exhaustive()
    }
}
