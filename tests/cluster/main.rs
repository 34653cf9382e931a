//! The adapters of `world/cluster` against real parts on this machine: servers, sshd, HAProxy, tcpdump, and an API
//! server that answers with what a real one was recorded to answer.

mod haproxy;
mod http;
mod kubernetes;
#[cfg(target_os = "linux")]
mod lab;
mod part;
mod ssh;

use gtrun::language::plan;

/// An environment without hosts; tests put in what they need.
fn environment() -> plan::Environment {
    let json = serde_json::json!({
        "name": "test", "kind": "cluster", "file": null, "context": null,
        "workload": {
            "namespace": "default", "deployment": "demo", "mode_label": "mode",
            "containers": { "app": "web", "hc": "hc", "sidecar": "ticker" },
            "envoy_admin": 15000, "port": 8080, "health_path": "/health_check.html",
        },
        "entry": { "url": "http://127.0.0.1:1", "connect_to": null, "ca_file": null },
        "load_balancer": {
            "host": "lb", "socket": "/run/haproxy/admin.sock", "config": "/etc/haproxy/haproxy.cfg", "log": null,
            "backend": "istio-http-backend", "servers": { "worker1": "worker1" }, "facts": {},
        },
        "hosts": {},
        "fsm": { "states": ["OPEN", "DRAINING", "CLOSING", "CLOSED"], "aliases": {} },
        "clocks": { "max_error": "50ms" }, "seed": 1, "world": null,
    });
    serde_json::from_value(json).expect("an environment")
}
