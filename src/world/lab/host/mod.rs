//! What runs on the lab's hosts beside pods: HAProxy on `lb`, an SSH server on each.

pub(crate) mod haproxy;
pub(crate) mod sshd;
