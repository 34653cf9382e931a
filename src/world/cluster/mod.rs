//! The world for real: Kubernetes by its API, hosts by SSH, HAProxy by its socket and log, requests over HTTP.
//!
//! The only room that names kube, openssh and hyper's client. Every foreign error is mapped once to a
//! [`WorldError`](super::port::WorldError) that says what may be concluded and what to do about it.

mod clock;
mod error;
pub mod haproxy;
pub mod http;
mod kept;
pub mod ssh;
mod tls;

pub use clock::SystemClock;
pub use tls::install_provider;
