//! The application: answers at once, after a while, slowly, or without end.

use std::convert::Infallible;
use std::future::IntoFuture;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Query;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::time::sleep;

use super::{APP_PORT, log, sigterm};

/// Requests shorter than this leave no line in the log.
const WORTH_A_LINE: f64 = 5.0;
/// What a download is sent in.
const CHUNK: usize = 16 * 1024;

#[derive(Deserialize)]
struct Sleep {
    #[serde(default = "one")]
    seconds: f64,
}

#[derive(Deserialize)]
struct Download {
    #[serde(default = "one")]
    mb: f64,
    /// Bytes a second; left out: as fast as the reader takes it.
    rate: Option<f64>,
}

#[derive(Deserialize)]
struct Events {
    #[serde(default = "one")]
    every: f64,
    /// Left out: until somebody closes.
    seconds: Option<f64>,
}

fn one() -> f64 {
    1.0
}

fn seconds(s: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(s).ok()
}

fn bad(name: &str) -> Response {
    (
        StatusCode::BAD_REQUEST,
        format!("`{name}` is no number of at least 0\n"),
    )
        .into_response()
}

/// Writes the line of a long request's end, also when the other side goes away first.
struct Ending {
    seconds: f64,
    whole: bool,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if self.seconds >= WORTH_A_LINE {
            let event = if self.whole { "sleep_end" } else { "sleep_cut" };
            log(&format!("event={event} seconds={}", self.seconds));
        }
    }
}

async fn sleep_for(Query(query): Query<Sleep>, uri: Uri) -> Response {
    let Some(time) = seconds(query.seconds) else {
        return bad("seconds");
    };
    if query.seconds >= WORTH_A_LINE {
        log(&format!("event=sleep_start seconds={}", query.seconds));
    }
    let mut ending = Ending {
        seconds: query.seconds,
        whole: false,
    };
    let begun = Instant::now();
    sleep(time).await;
    ending.whole = true;
    format!("ok path={uri} took={:.3}\n", begun.elapsed().as_secs_f64()).into_response()
}

async fn download(Query(query): Query<Download>) -> Response {
    if !(query.mb.is_finite() && query.mb >= 0.0) {
        return bad("mb");
    }
    let bytes = (query.mb * 1e6) as usize;
    let pause = match query.rate {
        None => Duration::ZERO,
        Some(rate) if rate > 0.0 => match seconds(CHUNK as f64 / rate) {
            Some(pause) => pause,
            None => return bad("rate"),
        },
        Some(_) => return bad("rate"),
    };
    let block = Bytes::from(vec![b'x'; CHUNK]);
    let body = stream::unfold(bytes, move |left| {
        let block = block.clone();
        async move {
            if left == 0 {
                return None;
            }
            if !pause.is_zero() {
                sleep(pause).await;
            }
            let size = left.min(CHUNK);
            Some((Ok::<_, Infallible>(block.slice(..size)), left - size))
        }
    });
    ([(header::CONTENT_LENGTH, bytes.to_string())], Body::from_stream(body)).into_response()
}

async fn events(Query(query): Query<Events>) -> Response {
    let Some(every) = seconds(query.every).filter(|e| !e.is_zero()) else {
        return bad("every");
    };
    let count = match query.seconds {
        None => usize::MAX,
        Some(s) if s.is_finite() && s >= 0.0 => (s / query.every) as usize,
        Some(_) => return bad("seconds"),
    };
    let body = stream::iter(0..count).then(move |n| async move {
        if n > 0 {
            sleep(every).await;
        }
        Ok::<_, Infallible>(Bytes::from(format!("id: {n}\ndata: tick\n\n")))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(body)).into_response()
}

/// Serves until SIGTERM.
///
/// # Errors
/// The port is taken.
pub(crate) async fn run() -> std::io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, APP_PORT)).await?;
    let routes = Router::new()
        .route("/sleep", get(sleep_for).post(sleep_for))
        .route("/download", get(download))
        .route("/events", get(events))
        .fallback(|uri: Uri| async move { format!("ok path={uri}\n") });
    log("event=start");
    tokio::select! {
        served = axum::serve(listener, routes).into_future() => served,
        () = sigterm() => {
            log("event=sigterm");
            Ok(())
        }
    }
}
