//! The lines of an answer that comes bit by bit, each with its arrival.

use std::collections::VecDeque;
use std::sync::Arc;

use http_body_util::BodyExt;
use kube::client::Body;

use crate::time::Instant;
use crate::world::cluster::error::chain;
use crate::world::port::Clock;

/// A body that is read line by line. Reading may be given up and taken up again.
pub(super) struct Lines {
    body: Body,
    clock: Arc<dyn Clock>,
    ready: VecDeque<(Instant, Vec<u8>)>,
    /// The beginning of the next line.
    rest: Vec<u8>,
}

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A line, without its line feed.
    Line(Instant, Vec<u8>),
    /// The server ended the answer as it should. What came after the last line feed is with it.
    End(Vec<u8>),
    /// The connection broke.
    Broken(String),
}

/// A line that is longer is nothing that the API sends.
const MAX_LINE: usize = 64 * 1024 * 1024;

impl Lines {
    pub(super) fn new(body: Body, clock: Arc<dyn Clock>) -> Self {
        Self {
            body,
            clock,
            ready: VecDeque::new(),
            rest: Vec::new(),
        }
    }

    pub(super) async fn next(&mut self) -> Next {
        loop {
            if let Some((at, line)) = self.ready.pop_front() {
                return Next::Line(at, line);
            }
            match self.body.frame().await {
                None => return Next::End(std::mem::take(&mut self.rest)),
                Some(Err(error)) => return Next::Broken(chain(&error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        let at = self.clock.now();
                        self.take(at, &data);
                        if self.rest.len() > MAX_LINE {
                            return Next::Broken("a line without an end".to_owned());
                        }
                    }
                }
            }
        }
    }

    fn take(&mut self, at: Instant, data: &[u8]) {
        let mut parts = data.split(|byte| *byte == b'\n');
        if let Some(first) = parts.next() {
            self.rest.extend_from_slice(first);
        }
        for part in parts {
            self.ready
                .push_back((at, std::mem::replace(&mut self.rest, part.to_vec())));
        }
    }
}
