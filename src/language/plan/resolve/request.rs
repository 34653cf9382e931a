//! `request` and `load`.

use indexmap::IndexMap;

use super::context::Context;
use crate::diagnostic::Code;
use crate::language::expression::Place;
use crate::language::plan::{Connection, Header, Load, LoadEnd, Request, Template};
use crate::language::scenario;
use crate::language::value::{AsWritten, At, ByteRate, Rate, Templated, Written};
use crate::time::Duration;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

impl Context<'_> {
    pub(super) fn request(&mut self, file: &scenario::Request) -> Option<Request> {
        let path = self.path(&file.path);
        let headers = self.headers(&file.headers);
        let body = self.maybe_text(&file.body);
        let timeout = self.maybe(&file.timeout);
        let background = self.flag(&file.background);
        let read_rate = self.maybe(&file.read_rate);
        let stop_after = self.maybe(&file.stop_after);
        let expect_in_flight = self.flag(&file.expect_in_flight);
        let connection = file
            .connection
            .as_ref()
            .map_or(Connection::New, |name| match name.value.0.0.as_str() {
                "new" => Connection::New,
                "reused" => Connection::Reused,
                _ => Connection::Named(name.value.0.0.clone()),
            });
        Some(Request {
            path: path?,
            method: file.method.0.unwrap_or_default(),
            headers: headers?,
            body: body?,
            timeout: timeout?.unwrap_or(REQUEST_TIMEOUT),
            background: background?,
            connection,
            protocol: file.protocol.0.unwrap_or_default(),
            read_rate: read_rate?.map(|ByteRate(bytes)| bytes),
            stop_after: stop_after?,
            expect_in_flight: expect_in_flight?,
        })
    }

    pub(super) fn load(&mut self, file: &scenario::Load) -> Option<Load> {
        let rate = self.value(&file.rate).map(|Rate(rate)| rate);
        if let (Some(rate), span) = (rate, file.rate.span)
            && !(rate > 0.0 && rate <= 100_000.0)
        {
            return self.error(
                Code::OutOfRange,
                "a load has more than 0 and at most 100000 requests per second",
                span,
                None,
            );
        }
        let path = self.path(&file.path);
        let headers = self.headers(&file.headers);
        let body = self.maybe_text(&file.body);
        let duration = self.maybe(&file.duration);
        let until = match file.until.as_ref() {
            None => Some(None),
            Some(text) => self.expression(text, Place::Until).map(Some),
        };
        let request_timeout = self.maybe(&file.request_timeout);
        let end = match (duration?, until?) {
            (Some(_), Some(until)) => {
                return self.error(
                    Code::TwoVerbs,
                    "a load ends after `duration` or at `until`, not at both",
                    until.span,
                    Some("remove one of them".into()),
                );
            }
            (Some(duration), None) => LoadEnd::Duration(duration),
            (None, Some(until)) => LoadEnd::Until(until),
            (None, None) => LoadEnd::Steps,
        };
        Some(Load {
            rate: rate?,
            path: path?,
            method: file.method.0.unwrap_or_default(),
            headers: headers?,
            body: body?,
            connections: file.connections.0.unwrap_or_default(),
            protocol: file.protocol.0.unwrap_or_default(),
            end,
            request_timeout: request_timeout?.unwrap_or(REQUEST_TIMEOUT),
        })
    }

    /// A path begins with `/`: the entry point's url has the rest.
    fn path(&mut self, file: &Templated<String>) -> Option<Template> {
        let path = self.text(file)?;
        let text = match &file.written {
            Written::Value(text) | Written::Template(text) => text,
        };
        if !text.starts_with(['/', '{']) {
            let help = if text.contains("://") {
                "the host comes from the environment's `entry.url`; write the path only".to_owned()
            } else {
                format!("write `/{text}`")
            };
            return self.error(Code::Spelling, "a path begins with `/`", file.span, Some(help));
        }
        if text.contains(char::is_whitespace) && !text.contains("{{") {
            return self.error(
                Code::Spelling,
                "a path has no spaces",
                file.span,
                Some("write `%20` for a space".into()),
            );
        }
        Some(path)
    }

    fn headers(&mut self, file: &IndexMap<At<String>, Templated<AsWritten>>) -> Option<Vec<Header>> {
        let mut out = Vec::new();
        let mut good = true;
        for (name, value) in file {
            let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            if name.value.is_empty() || !name.value.chars().all(token) {
                let _: Option<()> = self.error(
                    Code::Spelling,
                    format!("`{}` is no name of a header", name.value),
                    name.span,
                    None,
                );
                good = false;
            }
            match self.as_written(value) {
                Some(value) => out.push(Header {
                    name: name.value.clone(),
                    value,
                }),
                None => good = false,
            }
        }
        good.then_some(out)
    }
}
