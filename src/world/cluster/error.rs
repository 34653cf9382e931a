//! Every error of kube, ssh and sockets, mapped once: what may be concluded, and what to do about it.

use std::io;

use crate::world::port::{ErrorKind, WorldError};

/// The local `ssh` could not be started.
pub(super) fn ssh_start(doing: &str, error: &io::Error) -> WorldError {
    WorldError::new(ErrorKind::Unsupported, doing, format!("ssh cannot be started: {error}"))
        .with_help("install the OpenSSH client")
}

/// What `ssh` said when it could not connect.
pub(super) fn ssh_words(doing: &str, words: &str) -> WorldError {
    let message = words
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('@'))
        .collect::<Vec<_>>()
        .join("; ");
    let error = WorldError::new(
        ErrorKind::Unreachable,
        doing,
        if message.is_empty() {
            "ssh ended without a word".to_owned()
        } else {
            message
        },
    );
    let help = [
        (
            "Permission denied",
            "load the key into ssh-agent or name it with IdentityFile in ~/.ssh/config; no password is ever asked for",
        ),
        (
            "REMOTE HOST IDENTIFICATION HAS CHANGED",
            "check why the host's key changed, then correct ~/.ssh/known_hosts",
        ),
        (
            "Host key verification failed",
            "connect once by hand, or add the host's key to ~/.ssh/known_hosts",
        ),
        (
            "Could not resolve hostname",
            "correct `ssh:` or `jump:`, or add the name to ~/.ssh/config",
        ),
        ("Connection refused", "is sshd running there, and on that port?"),
        (
            "timed out",
            "is the host up, and does the way through the jump hosts allow it?",
        ),
        ("No route to host", "is the host up, and in which network?"),
        ("Network is unreachable", "is the network up?"),
        (
            "administratively prohibited",
            "the jump host must allow forwarding (AllowTcpForwarding)",
        ),
    ];
    match help.iter().find(|(pattern, _)| words.contains(pattern)) {
        Some((_, help)) => error.with_help(*help),
        None => error,
    }
}

/// The host refuses a further session on this connection.
pub(super) fn ssh_refused(error: &openssh::Error) -> bool {
    matches!(error, openssh::Error::SshMux(inner) if inner.to_string().contains("refused"))
}

/// The multiplexer could not open a session.
pub(super) fn ssh(host: &str, error: &openssh::Error) -> WorldError {
    let doing = format!("open an ssh session on {host}");
    let message = chain(error);
    match error {
        openssh::Error::Disconnected => WorldError::new(ErrorKind::Unreachable, doing, "the connection is lost"),
        openssh::Error::SshMux(_) if ssh_refused(error) => WorldError::new(ErrorKind::Unreachable, doing, message)
            .with_help("the host allows too few sessions on one connection: raise MaxSessions of its sshd to 10"),
        // The connection broke in this very moment: the command may have begun.
        openssh::Error::SshMux(_) if message.contains("end of file") => session_lost(&doing, b""),
        openssh::Error::InvalidCommand => WorldError::new(ErrorKind::Failed, doing, "a NUL byte in the command"),
        _ => WorldError::new(ErrorKind::Unreachable, doing, message),
    }
}

/// A session that ended before what ran in it had told how it ended.
pub(super) fn session_lost(doing: &str, words: &[u8]) -> WorldError {
    let words = String::from_utf8_lossy(words);
    let message = match words.trim() {
        "" => "the ssh session was lost".to_owned(),
        words => format!("the ssh session was lost: {words}"),
    };
    WorldError::new(ErrorKind::Interrupted, doing, message)
}

/// No answer in time.
pub(super) fn late(doing: &str) -> WorldError {
    WorldError::new(ErrorKind::Interrupted, doing, "no answer in time")
}

/// What sudo writes when it runs nothing.
const SUDO_SAYS_NO: [&str; 6] = [
    "sudo: a password is required",
    "sudo: a terminal is required",
    "sudo: sorry, you must have a tty",
    "is not in the sudoers file",
    "is not allowed to execute",
    "may not run sudo",
];

/// An error when sudo refused to run the command at all: then it is not the command's own failure.
pub(super) fn sudo_refused(doing: &str, stderr: &[u8]) -> Result<(), WorldError> {
    let words = String::from_utf8_lossy(stderr);
    let missing = words.contains("sudo: not found") || words.contains("sudo: command not found");
    if !missing && !SUDO_SAYS_NO.iter().any(|says| words.contains(says)) {
        return Ok(());
    }
    let error = WorldError::new(ErrorKind::Unsupported, doing, words.trim().to_owned());
    Err(error
        .with_help("allow it without a password in sudoers (docs/cluster.md), or write `sudo: false` for that host"))
}

/// The error and its causes, one after the other.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

/// The kubeconfig cannot be used.
pub(super) fn kubeconfig(context: Option<&str>, error: &kube::config::KubeconfigError) -> WorldError {
    let doing = match context {
        Some(context) => format!("read context {context} of the kubeconfig"),
        None => "read the kubeconfig".to_owned(),
    };
    WorldError::new(ErrorKind::Unsupported, doing, chain(error))
        .with_help("`kubectl config get-contexts` lists the contexts; correct `context:` or KUBECONFIG")
}

/// Proxies are not supported: they would stand between gtrun and what it measures.
pub(super) fn kubernetes_proxy(context: Option<&str>, proxy: &str) -> WorldError {
    let doing = format!("use context {}", context.unwrap_or("(current)"));
    WorldError::new(
        ErrorKind::Unsupported,
        doing,
        format!("its cluster has `proxy-url: {proxy}`"),
    )
    .with_help("gtrun connects directly; use a context without a proxy")
}

/// An error of the Kubernetes client.
pub(super) fn kubernetes(doing: &str, error: kube::Error) -> WorldError {
    match error {
        kube::Error::Api(status) => {
            let body = serde_json::to_vec(&status).unwrap_or_default();
            api_status(doing, status.code, &body)
        }
        kube::Error::Auth(error) => WorldError::new(ErrorKind::Unreachable, doing, chain(&error))
            .with_help("the credentials of the context cannot be used: does `kubectl get pods` work with it?"),
        kube::Error::Service(error) => {
            let message = chain(&*error);
            match error.downcast_ref::<hyper_util::client::legacy::Error>() {
                Some(client) if client.is_connect() => unreachable_api(doing, message),
                Some(_) | None => WorldError::new(ErrorKind::Interrupted, doing, message),
            }
        }
        kube::Error::HyperError(error) => WorldError::new(ErrorKind::Interrupted, doing, chain(&error)),
        kube::Error::UpgradeConnection(error) => WorldError::new(ErrorKind::Failed, doing, chain(&error))
            .with_help("something between gtrun and the API server does not pass WebSockets on"),
        other => WorldError::new(ErrorKind::Failed, doing, chain(&other)),
    }
}

fn unreachable_api(doing: &str, message: String) -> WorldError {
    let help = if message.contains("certificate") || message.contains("tls") {
        "the certificate of the API server does not fit the context: does `kubectl get pods` work with it?"
    } else {
        "is the API server up, and can it be reached from here?"
    };
    WorldError::new(ErrorKind::Unreachable, doing, message).with_help(help)
}

/// An answer of the API that is an error: its `Status`, or whatever text came.
pub(super) fn api_status(doing: &str, http: u16, body: &[u8]) -> WorldError {
    let object: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let word = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let status = object["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| *code >= 400);
    let (status, reason) = (status.unwrap_or(http), word("reason"));
    let text = String::from_utf8_lossy(body);
    let message = match word("message") {
        message if !message.is_empty() => message,
        _ if text.trim().is_empty() => format!("HTTP {status}"),
        _ => format!("HTTP {status}: {}", text.trim().chars().take(500).collect::<String>()),
    };
    let kind = match status {
        404 => ErrorKind::NotFound,
        // Somebody in between gave up on the API server: it may have done it.
        502..=504 => ErrorKind::Interrupted,
        500.. => ErrorKind::Failed,
        _ => ErrorKind::Refused { status, reason },
    };
    let error = WorldError::new(kind, doing, message);
    match status {
        401 => error.with_help("log in again: does `kubectl get pods` work with this context?"),
        403 => error.with_help("grant the right; docs/rbac.yaml lists all that are needed"),
        _ => error,
    }
}
