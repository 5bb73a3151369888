//! The records of a home: the store that keeps them, and the clocks by which they are dated.

use std::sync::Arc;

use rekindle_domain::id::SessionId;
use rekindle_domain::line::Draft;
use rekindle_domain::time::{Clock, Now, Timestamp};
use rekindle_store::commit::{Append, Receipt};
use rekindle_store::{AppendError, Store};

use crate::boottime::Steady;
use crate::error::ServiceError;
use crate::test_knobs::crash_point;

/// The store and the clocks of a daemon.
#[derive(Clone)]
pub(crate) struct Records {
    pub(crate) store: Arc<Store>,
    clock: Arc<dyn Clock>,
    steady: Steady,
}

impl Records {
    pub(crate) fn new(store: Arc<Store>, clock: Arc<dyn Clock>, steady: Steady) -> Records {
        Records { store, clock, steady }
    }

    /// Appends records that must be on disk before anyone is told.
    pub(crate) fn append(&self, session: SessionId, records: Vec<Draft>) -> Result<Receipt, ServiceError> {
        crash_point("append.before");
        let receipt = self.store.append(Append::durable(session, records))?;
        crash_point("append.after");
        Ok(receipt)
    }

    /// Appends at once and without keeping a thread waiting. What follows from it is done even if whoever asked goes
    /// away, and by the committer: it must not block.
    pub(crate) fn append_soon(
        &self,
        append: Append,
        then: impl FnOnce() + Send + 'static,
    ) -> impl Future<Output = Result<Receipt, ServiceError>> + Send + 'static {
        let (tell, told) = tokio::sync::oneshot::channel();
        crash_point("append.before");
        self.store.append_with(append, move |outcome| {
            let done = outcome.is_ok();
            crash_point("append.after");
            drop(tell.send(outcome.map_err(ServiceError::from)));
            if done {
                crash_point("append.told");
                then();
            }
        });
        async move { told.await.unwrap_or_else(|_| Err(AppendError::Closed.into())) }
    }

    /// Returns the time by both clocks.
    pub(crate) fn time(&self) -> Now {
        Now { wall: self.now(), steady: self.steady.now() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }
}
