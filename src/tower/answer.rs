//! What a refused request is answered.

/// What becomes of an answer, by permit `P` or refusal `R`; the service answers with a `Response` or
/// an `Error`.
///
/// A closure `Fn(R) -> Result<Response, Error>` answers what is refused.
pub trait Answer<P, R, Response, Error>: Send + Sync + 'static {
    /// Answers in place of the service.
    ///
    /// # Errors
    ///
    /// If that is what callers of such a service see.
    fn refused(&self, refusal: R) -> Result<Response, Error>;

    /// Adds to an answer of the service.
    fn admitted(&self, _permit: P, _response: &mut Response) {}
}

/// A refusal is an error of the service, by `From<Refused>`. A `BoxError` has that; give it to your
/// own error type in an `impl`.
#[derive(Clone, Copy, Debug, Default)]
pub struct IntoError;

impl<P, R, Response, Error: From<R>> Answer<P, R, Response, Error> for IntoError {
    fn refused(&self, refusal: R) -> Result<Response, Error> {
        Err(refusal.into())
    }
}

impl<F, P, R, Response, Error> Answer<P, R, Response, Error> for F
where
    F: Fn(R) -> Result<Response, Error> + Send + Sync + 'static,
{
    fn refused(&self, refusal: R) -> Result<Response, Error> {
        self(refusal)
    }
}
