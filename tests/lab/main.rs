//! The lab as its users meet it: real HAProxy, Envoy, sshd, tcpdump, and kubectl and kube against its API.
//!
//! Each test has a lab of its own; several run side by side. They need root and the lab's programs
//! (`scripts/lab-install`). Where those are missing a test says so loudly and passes, unless `CI=true`: then it fails.

#![cfg(all(target_os = "linux", feature = "lab"))]

mod api;
mod contract;
mod drain;
mod kubectl;
mod lifecycle;
mod pace;
mod support;
