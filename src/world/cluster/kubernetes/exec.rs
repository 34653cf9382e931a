//! Commands in containers, over WebSocket.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::Api;
use kube::api::{AttachParams, AttachedProcess};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::Kubernetes;
use crate::world::cluster::error;
use crate::world::port::{CommandOutput, ErrorKind, PodIdentity, WorldError};

/// More than this is not kept in memory.
const MAX_OUTPUT: u64 = 64 * 1024 * 1024;

/// Ends the session when it is given up; what runs in the container is not told, and ends by itself.
struct Session(Option<AttachedProcess>);

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(process) = &self.0 {
            process.abort();
        }
    }
}

impl Kubernetes {
    pub(super) async fn run_command(
        &self,
        pod: &PodIdentity,
        container: &str,
        argv: &[String],
    ) -> Result<CommandOutput, WorldError> {
        let program = argv.first().map_or("", String::as_str);
        let doing = format!("run `{program}` in {}/{container}", pod.name);
        self.confirm(&doing, pod).await?;
        match self.attach(&doing, pod, container, argv).await {
            // Nothing was run: the container is gone, or the way to it failed for a moment. Asked once more.
            Err(error) if error.kind == ErrorKind::NotFound || error.kind == ErrorKind::Unreachable => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                self.attach(&doing, pod, container, argv).await
            }
            other => other,
        }
    }

    async fn attach(
        &self,
        doing: &str,
        pod: &PodIdentity,
        container: &str,
        argv: &[String],
    ) -> Result<CommandOutput, WorldError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let params = AttachParams::default()
            .container(container)
            .stdin(false)
            .stdout(true)
            .stderr(true)
            .max_stdout_buf_size(256 * 1024)
            .max_stderr_buf_size(256 * 1024);
        let attached = pods
            .exec(&pod.name, argv, &params)
            .await
            .map_err(|e| error::kubernetes(doing, e))?;
        let mut session = Session(Some(attached));
        let Some(process) = &mut session.0 else {
            return Err(WorldError::new(ErrorKind::Failed, doing, "no session"));
        };
        let (status, stdout, stderr) = (process.take_status(), process.stdout(), process.stderr());
        // Both streams are read before the status is waited for: their buffers are small, and the status comes last.
        let (stdout, stderr) = tokio::join!(all(stdout), all(stderr));
        let status = match status {
            Some(status) => status.await,
            None => None,
        };
        if stdout.len() as u64 > MAX_OUTPUT || stderr.len() as u64 > MAX_OUTPUT {
            let message = format!("it wrote more than {} MiB", MAX_OUTPUT / 1024 / 1024);
            return Err(WorldError::new(ErrorKind::Failed, doing, message));
        }
        match status {
            Some(status) => exit(doing, &status).map(|exit| CommandOutput { exit, stdout, stderr }),
            None => Err(WorldError::new(
                ErrorKind::Interrupted,
                doing,
                "the connection broke before the command ended",
            )),
        }
    }
}

async fn all(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // An error is the session's end; whether it was a good one is told by the status.
        let _ = stream.take(MAX_OUTPUT + 1).read_to_end(&mut bytes).await;
    }
    bytes
}

/// The exit code in the status, or why nothing was run.
fn exit(doing: &str, status: &Status) -> Result<i32, WorldError> {
    if status.status.as_deref() == Some("Success") {
        return Ok(0);
    }
    let message = status.message.clone().unwrap_or_default();
    // The message differs from version to version of the protocol: reason and cause count.
    if status.reason.as_deref() == Some("NonZeroExitCode") {
        let causes = status
            .details
            .iter()
            .flat_map(|details| details.causes.iter().flatten());
        let code = causes
            .filter(|cause| cause.reason.as_deref() == Some("ExitCode"))
            .find_map(|cause| cause.message.as_deref()?.parse().ok());
        return code.ok_or_else(|| WorldError::new(ErrorKind::Failed, doing, message));
    }
    // Words of the kubelet, containerd and CRI-O for a container that is not there any more.
    let gone = [
        "container not found",
        "not running",
        "not created or running",
        "stopped state",
        "no running task",
    ];
    let kind = if gone.iter().any(|words| message.contains(words)) {
        ErrorKind::NotFound
    } else {
        ErrorKind::Failed
    };
    Err(WorldError::new(kind, doing, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: &str) -> Result<i32, ErrorKind> {
        let status = serde_json::from_str(status).expect("a status");
        exit("x", &status).map_err(|error| error.kind)
    }

    /// As a real Kubernetes 1.34 answered.
    #[test]
    fn a_failed_command_is_told_from_a_dead_container() {
        let failed = r#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: error executing command [sh -c echo out; exit 7], exit code 7","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}"#;
        assert_eq!(read(failed), Ok(7));
        assert_eq!(read(r#"{"metadata":{},"status":"Success"}"#), Ok(0));
        let dead = r#"{"metadata":{},"status":"Failure","message":"unable to upgrade connection: container not found (\"istio-proxy\")","reason":"InternalError","code":500}"#;
        assert_eq!(read(dead), Err(ErrorKind::NotFound));
        let missing = r#"{"metadata":{},"status":"Failure","message":"Internal error occurred: error executing command in container: failed to exec in container: failed to start exec \"2cf7\": OCI runtime exec failed: exec failed: unable to start container process: exec: \"/no/such\": stat /no/such: no such file or directory: unknown","reason":"InternalError","details":{"causes":[{"message":"x"}]},"code":500}"#;
        assert_eq!(read(missing), Err(ErrorKind::Failed));
    }
}
