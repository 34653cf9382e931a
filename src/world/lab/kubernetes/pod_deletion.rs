//! Deleting a pod, by whomever: what the API does before the kubelet takes over.

use chrono::{TimeDelta, Utc};

use super::object::{is_terminating, name, namespace, number, stamp, text};
use super::resource::Kind;
use super::status::Status;
use super::store::{Object, Store};

/// Begins the deletion of a pod with a grace period in seconds (the pod's own if none is given) and returns it as it is
/// then. At once gone are pods without a node, pods that have ended, and those deleted with a grace period of 0. A second
/// deletion can only shorten the time that is left.
///
/// # Errors
/// There is no such pod any more.
pub(crate) fn delete_pod(store: &Store, pod: &Object, grace: Option<i64>) -> Result<Object, Status> {
    let grace = grace
        .or_else(|| number(pod, "/spec/terminationGracePeriodSeconds"))
        .unwrap_or(30)
        .max(0);
    let ended = ["Succeeded", "Failed"].contains(&text(pod, "/status/phase")) && !is_terminating(pod);
    let at_once = grace == 0 || text(pod, "/spec/nodeName").is_empty() || ended;
    let grace = if at_once { 0 } else { grace };
    let deleted = store.update(Kind::Pod, namespace(pod), name(pod), |stored| {
        let before = number(stored, "/metadata/deletionGracePeriodSeconds");
        if before.is_some_and(|before| before <= grace) && grace > 0 {
            return Ok(());
        }
        let since = Utc::now();
        // The server cuts to whole seconds before it adds the grace period.
        stored["metadata"]["deletionTimestamp"] = stamp(since + TimeDelta::seconds(grace)).into();
        stored["metadata"]["deletionGracePeriodSeconds"] = grace.into();
        if before.is_none() {
            stored["metadata"]["generation"] = (number(stored, "/metadata/generation").unwrap_or(1) + 1).into();
        }
        Ok(())
    })?;
    if at_once {
        store.remove(Kind::Pod, namespace(&deleted), name(&deleted))?;
    }
    Ok(deleted)
}
