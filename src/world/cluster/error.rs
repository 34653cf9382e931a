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
