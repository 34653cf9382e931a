//! What was seen on a connection below the HTTP library: when bytes came and went, and how it ended.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::{Frames, Goaway};
use crate::time::Instant;
use crate::world::port::Clock;

/// The record of one connection, shared between the stream and whoever asks.
pub(super) struct Wire {
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// First bytes in since [`Wire::mark`].
    pub(super) first_in: Option<Instant>,
    /// Last bytes out since [`Wire::mark`], before the first ones in.
    pub(super) last_out: Option<Instant>,
    /// The other side closed (FIN), or its TLS ended.
    pub(super) closed: bool,
    /// Reading or writing failed.
    pub(super) broken: Option<io::ErrorKind>,
    /// Arrival of the first GOAWAY on this connection.
    pub(super) goaway: Option<Instant>,
    /// The last GOAWAY: the connection takes no new request.
    pub(super) leaving: Option<Goaway>,
    /// Set for HTTP/2.
    frames: Option<Frames>,
}

impl Wire {
    /// `h2`: look for GOAWAY.
    pub(super) fn new(clock: Arc<dyn Clock>, h2: bool) -> Arc<Self> {
        let seen = Seen {
            frames: h2.then(Frames::default),
            ..Seen::default()
        };
        Arc::new(Self {
            clock,
            seen: Mutex::new(seen),
        })
    }

    /// What was seen so far.
    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request begins: what belongs to the one before is forgotten.
    pub(super) fn mark(&self) {
        let mut seen = self.seen();
        seen.first_in = None;
        seen.last_out = None;
    }

    /// No request can be sent on it any more.
    pub(super) fn spent(&self) -> bool {
        let seen = self.seen();
        seen.closed || seen.broken.is_some() || seen.leaving.is_some()
    }

    fn read(&self, bytes: &[u8]) {
        let now = self.clock.now();
        let mut seen = self.seen();
        if bytes.is_empty() {
            seen.closed = true;
            return;
        }
        seen.first_in.get_or_insert(now);
        if let Some(frames) = &mut seen.frames
            && let Some(last) = frames.read(bytes).pop()
        {
            seen.leaving = Some(last);
            seen.goaway.get_or_insert(now);
        }
    }

    fn wrote(&self) {
        let now = self.clock.now();
        let mut seen = self.seen();
        if seen.first_in.is_none() {
            seen.last_out = Some(now);
        }
    }

    fn failed(&self, error: &io::Error) {
        let mut seen = self.seen();
        match error.kind() {
            // The peer closed without TLS's close_notify.
            io::ErrorKind::UnexpectedEof => seen.closed = true,
            kind => {
                seen.broken.get_or_insert(kind);
            }
        }
    }
}

/// A stream that keeps a [`Wire`].
pub(super) struct Observed<S> {
    stream: S,
    wire: Arc<Wire>,
}

impl<S> Observed<S> {
    pub(super) fn new(stream: S, wire: Arc<Wire>) -> Self {
        Self { stream, wire }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Observed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let result = ready!(Pin::new(&mut self.stream).poll_read(cx, buf));
        match &result {
            Ok(()) => self.wire.read(&buf.filled()[before..]),
            Err(error) => self.wire.failed(error),
        }
        Poll::Ready(result)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Observed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = ready!(Pin::new(&mut self.stream).poll_write(cx, buf));
        match &result {
            Ok(_) => self.wire.wrote(),
            Err(error) => self.wire.failed(error),
        }
        Poll::Ready(result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = ready!(Pin::new(&mut self.stream).poll_flush(cx));
        if let Err(error) = &result {
            self.wire.failed(error);
        }
        Poll::Ready(result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The end from our side tells nothing about the other one.
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
