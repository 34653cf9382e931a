//! `gtrun serve`: the reports under a folder in a browser, on loopback only.

mod site;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::exit::Exit;
use super::output;
use site::Site;

/// Arguments of `gtrun serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A run's folder, or a folder of runs.
    #[arg(default_value = "artifacts", value_name = "DIR")]
    folder: PathBuf,
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

/// Serves until SIGINT or SIGTERM.
pub(super) fn main(args: Args) -> Exit {
    let site = match Site::open(&args.folder) {
        Ok(site) => Arc::new(site),
        Err(error) => {
            eprintln!(
                "gtrun: cannot read {}: {error}; next: gtrun serve DIR",
                args.folder.display()
            );
            return Exit::NothingProved;
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("gtrun: cannot start: {error}");
            return Exit::Fault;
        }
    };
    runtime.block_on(serve(site, args.port))
}

async fn serve(site: Arc<Site>, port: u16) -> Exit {
    let listener = match TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("gtrun: cannot listen on 127.0.0.1:{port}: {error}; next: gtrun serve --port 0");
            return Exit::NothingProved;
        }
    };
    if let Ok(address) = listener.local_addr() {
        output::print(&format!(
            "http://{address}/ shows {}; end with Ctrl-C\n",
            site.root().display()
        ));
    }
    let ended = ended();
    tokio::pin!(ended);
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let site = Arc::clone(&site);
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let answer = site.answer(request.method(), request.uri().path(), request.headers());
                        async move { Ok::<_, std::convert::Infallible>(answer) }
                    });
                    // A browser that goes away in the middle is nobody's trouble.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
            () = &mut ended => return Exit::Success,
        }
    }
}

/// Resolves at the first SIGINT or SIGTERM.
async fn ended() {
    #[cfg(unix)]
    if let Ok(mut term) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = term.recv() => {}
        }
        return;
    }
    let _ = tokio::signal::ctrl_c().await;
}
