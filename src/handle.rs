//! How a future or an adapter has its limiter.

use std::ops::Deref;
use std::sync::Arc;

/// A limiter that is borrowed, or shared in an [`Arc`]: what those who keep one are given.
///
/// It comes of `&L` and of `Arc<L>` by [`Into`].
#[derive(Debug)]
pub struct Handle<'a, L>(Kind<'a, L>);

#[derive(Debug)]
enum Kind<'a, L> {
    Borrowed(&'a L),
    Owned(Arc<L>),
}

impl<L> Deref for Handle<'_, L> {
    type Target = L;

    #[inline]
    fn deref(&self) -> &L {
        match &self.0 {
            Kind::Borrowed(limiter) => limiter,
            Kind::Owned(limiter) => limiter,
        }
    }
}

impl<L> Clone for Handle<'_, L> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Kind::Borrowed(limiter) => Kind::Borrowed(limiter),
            Kind::Owned(limiter) => Kind::Owned(Arc::clone(limiter)),
        })
    }
}

impl<'a, L> From<&'a L> for Handle<'a, L> {
    #[inline]
    fn from(limiter: &'a L) -> Self {
        Self(Kind::Borrowed(limiter))
    }
}

impl<L> From<Arc<L>> for Handle<'_, L> {
    #[inline]
    fn from(limiter: Arc<L>) -> Self {
        Self(Kind::Owned(limiter))
    }
}
