//! The lease on the target: two runs never disturb the same Deployment.

use http::Method;
use serde_json::{Value, json};

use super::Kubernetes;
use super::call::{Call, read, send};
use crate::time::{Duration, Instant};
use crate::world::port::{ApiAnswer, ErrorKind, WorldError};

/// What another's lease is found to be.
enum Found {
    /// Ours, or nobody's any more.
    Free(Value),
    /// Held by that one until then.
    Held { holder: String, until: Instant },
}

impl Kubernetes {
    pub(super) fn lease_name(&self) -> String {
        format!("gtrun-{}", self.deployment)
    }

    fn leases(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    fn lease_path(&self) -> String {
        format!("{}/{}", self.leases(), self.lease_name())
    }

    pub(super) async fn take(&self, holder: &str, lasts: Duration) -> Result<ApiAnswer, WorldError> {
        let doing = format!("take the lease on deployment {}", self.deployment);
        let found = match read(&self.client, &doing, &Call::get(self.lease_path())).await {
            Ok(lease) => Some(lease),
            Err(error) if error.kind == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let now = self.clock.now();
        let (method, path, mut lease) = match found {
            None => {
                let meta = json!({ "name": self.lease_name(), "namespace": self.namespace });
                let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta });
                (Method::POST, self.leases(), lease)
            }
            Some(lease) => match look(lease, holder, now) {
                // Its `resourceVersion` goes with it: whoever was faster makes this a conflict.
                Found::Free(lease) => (Method::PUT, self.lease_path(), lease),
                Found::Held { holder, until } => {
                    let kind = ErrorKind::Refused {
                        status: 409,
                        reason: "Conflict".to_owned(),
                    };
                    let message = format!("{holder} has it until {until}");
                    let error = WorldError::new(kind, doing, message);
                    return Err(error.with_help(
                        "wait until that run is over; if it was killed, `gtrun cleanup` gives the lease back",
                    ));
                }
            },
        };
        let seconds = (lasts.as_nanos().max(0) as u64).div_ceil(1_000_000_000).max(1);
        let micros = |at: Instant| at.to_utc().format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        let first = lease["spec"]["holderIdentity"] != holder;
        lease["spec"]["holderIdentity"] = json!(holder);
        lease["spec"]["leaseDurationSeconds"] = json!(seconds);
        lease["spec"]["renewTime"] = json!(micros(now));
        if first {
            lease["spec"]["acquireTime"] = json!(micros(now));
        }
        send(
            &self.client,
            &doing,
            &Call::new(method, path).body("application/json", &lease),
        )
        .await
    }

    pub(super) async fn release(&self, holder: &str) -> Result<(), WorldError> {
        let doing = format!("give back the lease on deployment {}", self.deployment);
        let lease = match read(&self.client, &doing, &Call::get(self.lease_path())).await {
            Ok(lease) => lease,
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if lease["spec"]["holderIdentity"] != holder {
            return Ok(());
        }
        let meta = &lease["metadata"];
        let conditions = json!({ "uid": meta["uid"], "resourceVersion": meta["resourceVersion"] });
        let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions });
        let call = Call::new(Method::DELETE, self.lease_path()).body("application/json", &options);
        match send(&self.client, &doing, &call).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Whether the lease can be taken. Its stamps are of the holder's clock: a lease that makes no sense is free.
fn look(lease: Value, holder: &str, now: Instant) -> Found {
    let spec = &lease["spec"];
    let other = spec["holderIdentity"].as_str().unwrap_or_default().to_owned();
    let lasts = Duration::from_secs(spec["leaseDurationSeconds"].as_i64().unwrap_or(0));
    let renewed = spec["renewTime"].as_str().and_then(|text| Instant::parse(text).ok());
    match renewed.map(|at| at + lasts) {
        Some(until) if !other.is_empty() && other != holder && until > now => Found::Held { holder: other, until },
        Some(_) | None => Found::Free(lease),
    }
}
