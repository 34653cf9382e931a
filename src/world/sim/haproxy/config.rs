//! `haproxy.cfg` of the simulated load balancer.

use std::fmt::Write;

use super::super::model::Model;
use super::super::network::{FIRST_WORKER, LB};
use super::super::spec::LogStamps;

impl Model {
    /// The file as it would stand on the host.
    pub(in crate::world::sim) fn haproxy_config(&self) -> String {
        let lb = &self.spec.load_balancer;
        let names = &self.spec.names;
        let format = match lb.log {
            LogStamps::Iso => "iso",
            LogStamps::Rfc5424 => "rfc5424",
            LogStamps::Rfc3164 { .. } => "rfc3164",
        };
        let mut out = format!(
            "global\n    log stdout format {format} local0\n    stats socket /run/haproxy/admin.sock mode 660 level admin\n\
             defaults\n    mode http\n    log global\n    option httplog\n    option dontlognull\n"
        );
        // Writing to a String cannot fail.
        if lb.log_health_checks {
            out.push_str("    option log-health-checks\n");
        }
        let _ = write!(
            out,
            "    timeout connect 5s\n    timeout client 300s\n    timeout server {}ms\n    retries {}\n\
             frontend {}\n    bind {}:80\n    log-format \"%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc \
             %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{{+Q}}r bi=%bi:%bp\"\n    default_backend {}\n\
             backend {}\n    balance roundrobin\n",
            lb.timeout_server.as_nanos() / 1_000_000,
            lb.retries,
            names.frontend,
            self.net.hosts[LB.0].ip,
            names.backend,
            names.backend,
        );
        if lb.redispatch {
            out.push_str("    option redispatch\n");
        }
        if !lb.retry_on.is_empty() {
            let _ = writeln!(out, "    retry-on {}", lb.retry_on.join(" "));
        }
        out.push_str(
            "    option httpchk GET /health_check.html\n    http-check send meth GET uri /health_check.html ver HTTP/1.1 hdr Host \
             service-a\n    http-check expect status 200\n",
        );
        if lb.disable_on_404 {
            out.push_str("    http-check disable-on-404\n");
        }
        for (index, node) in self.spec.nodes.iter().enumerate() {
            let ip = self.net.hosts[FIRST_WORKER + index].ip;
            let _ = write!(
                out,
                "    server {} {ip}:8080 check inter {}ms",
                node.server,
                lb.inter.as_nanos() / 1_000_000
            );
            for (key, value) in [("fastinter", lb.fastinter), ("downinter", lb.downinter)] {
                if let Some(d) = value {
                    let _ = write!(out, " {key} {}ms", d.as_nanos() / 1_000_000);
                }
            }
            let _ = write!(out, " fall {} rise {}", lb.fall, lb.rise);
            if lb.agent_check {
                out.push_str(" agent-check agent-port 8002 agent-inter 2s");
            }
            if lb.shutdown_sessions {
                out.push_str(" on-marked-down shutdown-sessions");
            }
            out.push('\n');
        }
        out
    }
}
