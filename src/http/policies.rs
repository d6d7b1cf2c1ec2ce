//! All the limits that a request is under.

use super::{Head, Key, Policy, TooManyRequests, take};
use crate::error::TryAcquireError;
use crate::tower::{self, Admission, Admit, RateLimitLayer};
use http::{Request, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// Limits that hold together: a request that one of them refuses takes nothing from the others.
#[derive(Clone, Debug)]
pub struct Policies(Arc<[Policy]>);

impl From<Policy> for Policies {
    fn from(policy: Policy) -> Self {
        [policy].into()
    }
}

impl<const N: usize> From<[Policy; N]> for Policies {
    fn from(policies: [Policy; N]) -> Self {
        Self(policies.into())
    }
}

impl From<Vec<Policy>> for Policies {
    fn from(policies: Vec<Policy>) -> Self {
        Self(policies.into())
    }
}

impl RateLimitLayer<Policies, TooManyRequests> {
    /// These policies for HTTP; a request must keep all of them that it is under. What is refused is
    /// answered as [`TooManyRequests`] says: with 429 and when to come back.
    pub fn http(policies: impl Into<Policies>) -> Self {
        RateLimitLayer::by(policies.into()).answer(TooManyRequests::new())
    }
}

/// What a request took: what [`TooManyRequests`] tells of.
#[derive(Debug)]
pub struct Taken(pub(super) Asks);

/// Why [`Policies`] refused a request.
#[derive(Debug)]
pub struct Refused {
    pub(super) asks: Asks,
    pub(super) why: tower::Refused,
    /// The answer to a request that has no key.
    pub(super) status: Option<StatusCode>,
}

impl Refused {
    /// Not yet with what it asked of others.
    pub(super) fn without_key(status: StatusCode) -> Self {
        Self { asks: Asks::default(), why: tower::Refused::NoKey, status: Some(status) }
    }

    /// Why, as a single limiter would say it.
    #[must_use]
    pub fn why(&self) -> &tower::Refused {
        &self.why
    }

    /// The names of the policies that refuse; none if it is for want of a key.
    #[must_use]
    pub fn policies(&self) -> Vec<&str> {
        self.asks.refusing().into_iter().map(Policy::name).collect()
    }
}

impl From<Refused> for tower::Refused {
    fn from(refused: Refused) -> Self {
        refused.why
    }
}

/// What a request asks of the policies that it is under.
#[derive(Clone, Debug, Default)]
pub(super) struct Asks {
    policies: Arc<[Policy]>,
    /// The number of the policy, the key, and how many permits.
    asks: Vec<(usize, Key, u32)>,
}

/// What a request asks of a policy.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) policy: &'a Policy,
    pub(super) key: &'a Key,
    pub(super) permits: u32,
}

impl Asks {
    fn of(policies: &Policies, request: Head<'_>) -> Result<Self, Refused> {
        let policies = Arc::clone(&policies.0);
        let mut asks = Vec::with_capacity(policies.len());
        for (number, policy) in policies.iter().enumerate() {
            if let Some((key, permits)) = policy.ask(request)? {
                asks.push((number, key, permits));
            }
        }
        Ok(Self { policies, asks })
    }

    pub(super) fn len(&self) -> usize {
        self.asks.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Ask<'_>> {
        self.asks.iter().map(|(number, key, permits)| {
            let policy = &self.policies[*number];
            Ask { policy, key, permits: *permits }
        })
    }

    /// The policies that would refuse now; all of them, if that has changed meanwhile.
    pub(super) fn refusing(&self) -> Vec<&Policy> {
        let refusing = self.iter().filter(|ask| ask.refusal().is_some());
        let refusing: Vec<_> = refusing.map(|ask| ask.policy).collect();
        if refusing.is_empty() { self.iter().map(|ask| ask.policy).collect() } else { refusing }
    }
}

impl Ask<'_> {
    /// Why it would be refused now.
    pub(super) fn refusal(&self) -> Option<TryAcquireError> {
        self.policy.limiter().peek_many(self.key, self.permits).err()
    }
}

impl<B> Admit<Request<B>> for Policies {
    type Permit = Taken;
    type Refusal = Refused;

    fn try_admit(&self, request: &Request<B>) -> Result<Taken, Refused> {
        let asks = Asks::of(self, request.into())?;
        match take::now(&asks) {
            Ok(()) => Ok(Taken(asks)),
            Err(why) => Err(Refused { asks, why: why.into(), status: None }),
        }
    }

    fn admit(&self, request: &Request<B>, within: Option<Duration>) -> Admission<Taken, Refused> {
        let asks = Asks::of(self, request.into());
        Box::pin(async move {
            let asks = asks?;
            match take::in_turn(&asks, within).await {
                Ok(()) => Ok(Taken(asks)),
                Err(why) => Err(Refused { asks, why: why.into(), status: None }),
            }
        })
    }
}
