//! The adapters of `world/cluster` against real parts on this machine: servers, sshd, HAProxy, tcpdump, and an API
//! server that answers with what a real one was recorded to answer.

mod http;
