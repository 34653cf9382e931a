//! Envoy as the sidecar: one listener for requests and health checks, names of gauges as Istio's proxy has them.

use crate::time::Duration;

/// The prefix of the ingress listener's gauges.
pub(crate) const STAT_PREFIX: &str = "inbound_0.0.0.0_8080";
/// The cluster of the application.
pub(crate) const APP_CLUSTER: &str = "inbound|8000||";

/// Route timeouts are off: Envoy's default of 15 s would end a long request by itself.
pub(crate) const CONFIGURATION: &str = r#"admin:
  address: { socket_address: { address: 127.0.0.1, port_value: 15000 } }
node: { id: sidecar~service-a, cluster: service-a }
static_resources:
  listeners:
  - name: "0.0.0.0_8080"
    address: { socket_address: { address: 0.0.0.0, port_value: 8080 } }
    traffic_direction: INBOUND
    listener_filters:
    - name: envoy.filters.listener.http_inspector
      typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.listener.http_inspector.v3.HttpInspector }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: inbound_0.0.0.0_8080
          access_log:
          - name: envoy.access_loggers.file
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog
              path: /dev/stdout
              log_format: { text_format_source: { inline_string: "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% down=%DOWNSTREAM_REMOTE_ADDRESS% local=%DOWNSTREAM_LOCAL_ADDRESS% up=%UPSTREAM_HOST% cluster=%UPSTREAM_CLUSTER%\n" } }
          route_config:
            name: local
            virtual_hosts:
            - name: "inbound|http|8000"
              domains: ["*"]
              routes:
              - match: { path: /health_check.html }
                route: { cluster: "inbound|8001||", timeout: 0s }
              - match: { prefix: / }
                route: { cluster: "inbound|8000||", timeout: 0s }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
  - name: "0.0.0.0_15021"
    address: { socket_address: { address: 0.0.0.0, port_value: 15021 } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: agent
          route_config:
            virtual_hosts:
            - name: agent
              domains: ["*"]
              routes:
              - match: { path: /healthz/ready }
                direct_response: { status: 200 }
          http_filters:
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
  clusters:
  - name: "inbound|8000||"
    connect_timeout: 2s
    type: STATIC
    load_assignment:
      cluster_name: "inbound|8000||"
      endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 8000 } } } } ] } ]
  - name: "inbound|8001||"
    connect_timeout: 2s
    type: STATIC
    load_assignment:
      cluster_name: "inbound|8001||"
      endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 8001 } } } } ] } ]
"#;

/// The command line of the sidecar's container. Access lines are flushed after 50 ms (Envoy's default is 10 s).
pub(crate) fn command(configuration: &std::path::Path, drain_time: Duration) -> Vec<String> {
    let configuration = configuration.display().to_string();
    let drain_seconds = (drain_time.as_nanos() / 1_000_000_000).to_string();
    [
        "envoy",
        "-c",
        &configuration,
        "--concurrency",
        "1",
        "--disable-hot-restart",
        "--file-flush-interval-msec",
        "50",
        "--drain-time-s",
        &drain_seconds,
        "--drain-strategy",
        "immediate",
        "--log-format",
        "%Y-%m-%dT%T.%fZ\t%l\tenvoy %n %g:%#\t%v",
        "-l",
        "info",
    ]
    .map(String::from)
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::lab::workload::{APP_PORT, ENVOY_ADMIN_PORT, ENVOY_READY_PORT, HC_PORT, INGRESS_PORT};

    #[test]
    fn the_configuration_has_the_ports_and_names_that_others_rely_on() {
        for port in [APP_PORT, HC_PORT, INGRESS_PORT, ENVOY_ADMIN_PORT, ENVOY_READY_PORT] {
            assert!(CONFIGURATION.contains(&format!("port_value: {port} ")), "{port}");
        }
        assert!(CONFIGURATION.contains(&format!("stat_prefix: {STAT_PREFIX}\n")));
        assert!(CONFIGURATION.contains(&format!("name: \"{APP_CLUSTER}\"\n")));
    }
}
