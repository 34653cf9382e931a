//! The clock: virtual time. And the truth.

use futures::FutureExt;
use futures::future::BoxFuture;

use super::super::Sim;
use crate::time::Instant;
use crate::world::port::{Clock, Truth};

impl Clock for Sim {
    fn now(&self) -> Instant {
        self.model().now
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        self.at(at).boxed()
    }
}

impl Truth for Sim {
    fn to_json(&self) -> String {
        // Every type of the record serializes.
        serde_json::to_string_pretty(&self.truth()).unwrap_or_default()
    }
}
