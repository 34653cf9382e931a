//! The client of the Kubernetes API, from a context of a kubeconfig.

use std::path::Path;
use std::time::Duration;

use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Client;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use tower::ServiceExt;

use crate::world::cluster::error;
use crate::world::cluster::tls::install_provider;
use crate::world::port::WorldError;

/// A silent peer is given up after `IDLE + PROBES * INTERVAL`: a watch must not look alive over a dead connection.
const IDLE: Duration = Duration::from_secs(8);
const INTERVAL: Duration = Duration::from_secs(3);
const PROBES: u32 = 3;

/// Connects to the cluster of this context (`None`: the current one) of this kubeconfig (`None`: `KUBECONFIG`, else
/// `~/.kube/config`). Nothing is sent yet.
///
/// Not kube's own stack of layers: no retry of any kind, sockets that notice a dead peer and do not wait for more to
/// send, and no log lines for answers that are errors.
pub(super) async fn client(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Client, WorldError> {
    install_provider();
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let read = async {
        match kubeconfig {
            Some(path) => Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await,
            None => Config::from_kubeconfig(&options).await,
        }
    };
    let config = read.await.map_err(|e| error::kubeconfig(context, &e))?;
    if let Some(proxy) = &config.proxy_url {
        return Err(error::kubernetes_proxy(context, &proxy.to_string()));
    }
    build(&config).map_err(|e| error::kubernetes("set up the Kubernetes client", e))
}

fn build(config: &Config) -> Result<Client, kube::Error> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(Duration::from_secs(5)));
    connector.set_keepalive(Some(IDLE));
    connector.set_keepalive_interval(Some(INTERVAL));
    connector.set_keepalive_retries(Some(PROBES));
    // The same for what was sent and is not acknowledged.
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(IDLE + INTERVAL * PROBES));
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let service = HyperClient::builder(TokioExecutor::new())
        .retry_canceled_requests(false)
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(20))
        .build::<_, Body>(connector);
    // The layers want one type of error; `error::kubernetes` finds the client's own in it.
    let service = service.map_err(tower::BoxError::from);
    let builder = ClientBuilder::new(service, config.default_namespace.clone());
    let builder = builder.with_layer(&config.extra_headers_layer()?);
    Ok(match config.auth_layer()? {
        Some(auth) => builder.with_layer(&auth).with_layer(&config.base_uri_layer()).build(),
        None => builder.with_layer(&config.base_uri_layer()).build(),
    })
}
