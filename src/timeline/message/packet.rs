//! Packets in two captures, and connections around their requests.

use super::*;

/// A packet in two captures; a connection's SYN before the request on it, and its end after the response.
pub(super) fn captures(evidence: &Evidence, site: &Site, requests: &Requests, clocks: &Clocks, c: &mut Collector) {
    type Key = (std::net::SocketAddr, std::net::SocketAddr, u32, u32, bool, bool, bool);
    let mut seen: BTreeMap<Key, Vec<(usize, usize)>> = BTreeMap::new();
    for (i, capture) in evidence.captures.iter().enumerate() {
        for (j, p) in capture.packets.iter().enumerate() {
            seen.entry((p.from, p.to, p.seq, p.ack, p.flags.syn, p.flags.fin, p.flags.rst))
                .or_default()
                .push((i, j));
        }
    }
    for places in seen.values() {
        // Seen once a capture; retransmissions would be ambiguous.
        let mut hosts: Vec<usize> = places.iter().map(|p| p.0).collect();
        hosts.dedup();
        if hosts.len() != places.len() {
            continue;
        }
        for (k, a) in places.iter().enumerate() {
            for b in &places[k + 1..] {
                let sight = |at: &(usize, usize)| {
                    let p = &evidence.captures[at.0].packets[at.1];
                    (
                        clocks.sight(evidence.captures[at.0].file, p.place.line, p.at),
                        p.outgoing,
                    )
                };
                let ((x, x_out), (y, y_out)) = (sight(a), sight(b));
                // The sender's copy is earlier; the other way round holds within what a network takes, which is
                // bounded only by what was seen.
                let (first, second) = if y_out == Some(true) && x_out != Some(true) {
                    (y, x)
                } else {
                    (x, y)
                };
                c.before(MessageKind::Packet, first, second, PACKET);
            }
        }
    }
    // Connections from the load balancer by its port: first SYN and first FIN or RST.
    for capture in &evidence.captures {
        let mut opened: BTreeMap<u16, Vec<&crate::evidence::capture::Packet>> = BTreeMap::new();
        let mut closed: BTreeMap<u16, &crate::evidence::capture::Packet> = BTreeMap::new();
        for p in &capture.packets {
            let from_lb = site.lb_addresses.contains(&p.from.ip());
            let port = if from_lb { p.from.port() } else { p.to.port() };
            if p.flags.syn && !p.flags.ack && from_lb {
                opened.entry(port).or_default().push(p);
            } else if p.flags.fin || p.flags.rst {
                closed.entry(port).or_insert(p);
            }
        }
        let once = |port: u16| opened.get(&port).filter(|o| o.len() == 1).map(|o| o[0]);
        let sight = |p: &crate::evidence::capture::Packet| clocks.sight(capture.file, p.place.line, p.at);
        for log in &evidence.envoy_logs {
            let mut by_port: BTreeMap<u16, Vec<&crate::evidence::envoy_log::EnvoyRequest>> = BTreeMap::new();
            for r in &log.requests {
                if let Some(peer) = r.downstream.filter(|d| site.lb_addresses.contains(&d.ip())) {
                    by_port.entry(peer.port()).or_default().push(r);
                }
            }
            for (port, rs) in by_port {
                let Some(syn) = once(port) else { continue };
                let (Some(first), Some(last)) = (
                    rs.iter().min_by_key(|r| r.started.lo),
                    rs.iter().max_by_key(|r| r.ended.hi),
                ) else {
                    continue;
                };
                c.before(
                    MessageKind::Connection,
                    sight(syn),
                    clocks.sight(log.file, first.place.line, first.started),
                    SCHEDULING,
                );
                if let Some(end) = closed.get(&port).filter(|_| rs.iter().all(|r| r.flags.is_empty())) {
                    // A server that closes sends its FIN right after the response's last byte.
                    c.before(
                        MessageKind::Connection,
                        clocks.sight(log.file, last.place.line, last.ended),
                        sight(end),
                        SCHEDULING,
                    );
                }
            }
        }
        for attempt in requests.attempts() {
            let Some((at, (line, h))) = attempt
                .haproxy
                .and_then(|at| Some((at, haproxy_request(evidence, at)?)))
            else {
                continue;
            };
            let Some(port) = h.backend_source.map(|s| s.port()) else {
                continue;
            };
            let file = evidence.haproxy_logs[at.0].file;
            let connect = h.time_connect.filter(|_| h.retries == 0);
            let (Some(syn), Some(connect)) = (once(port), connect) else {
                continue;
            };
            // The SYN left between the end of the queue and the end of the connect, both cut to milliseconds. A
            // reused connection (connect 0 and an older SYN) would contradict, so only the upper side is used.
            let waited = [h.time_request, h.time_queue]
                .into_iter()
                .flatten()
                .fold(connect, |a, b| a + b);
            let connected = h.accepted.shifted(waited).hi.map(|t| t + Duration::from_millis(3));
            let connected = Bracket {
                lo: h.accepted.lo,
                hi: connected,
            };
            c.before(
                MessageKind::Connection,
                sight(syn),
                clocks.sight(file, line.place.line, connected),
                SCHEDULING,
            );
            if let Some(end) = closed.get(&port).filter(|_| h.termination.is_normal()) {
                // Kept connections are purged long after, closed ones not before the response was there.
                let response = h.time_response.map(|r| h.accepted.shifted(waited + r));
                if let Some(response) = response {
                    c.before(
                        MessageKind::Connection,
                        clocks.sight(file, line.place.line, response),
                        sight(end),
                        SCHEDULING,
                    );
                }
            }
        }
    }
}
