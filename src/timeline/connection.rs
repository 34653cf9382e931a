//! A TCP connection between the load balancer and a server, as one capture shows it.

use std::net::IpAddr;

use super::Timeline;
use super::clocks::Sighting;
use super::request::{Attempt, envoy_request, haproxy_request};
use crate::evidence::FileId;
use crate::evidence::capture::Packet;

/// The packets of one connection in one capture.
#[derive(Debug, Clone)]
pub struct Connection<'e> {
    /// The capture.
    pub file: FileId,
    /// Its host.
    pub host: String,
    /// The load balancer's address.
    pub lb: IpAddr,
    /// The load balancer's port.
    pub port: u16,
    /// SYN, FIN and RST packets, in capture order.
    pub packets: Vec<&'e Packet>,
}

/// The connections from a port of the load balancer, one a capture. A port that was used twice within a capture is
/// two connections; which one is meant is not guessed.
pub fn of_port<'e>(timeline: &Timeline<'e>, port: u16) -> Vec<Connection<'e>> {
    let mut found = Vec::new();
    for capture in timeline
        .evidence
        .captures
        .iter()
        .filter(|c| timeline.clocks.belongs(c.file))
    {
        for lb in &timeline.site.lb_addresses {
            let of = |e: &std::net::SocketAddr| e.ip() == *lb && e.port() == port;
            let packets: Vec<&Packet> = capture.packets.iter().filter(|p| of(&p.from) || of(&p.to)).collect();
            let opened = packets.iter().filter(|p| p.flags.syn && !p.flags.ack).count();
            if opened == 1 {
                found.push(Connection {
                    file: capture.file,
                    host: capture.host.clone(),
                    lb: *lb,
                    port,
                    packets,
                });
            }
        }
    }
    found
}

impl<'e> Connection<'e> {
    /// The first packet that ends it.
    pub fn first_close(&self) -> Option<&'e Packet> {
        self.packets.iter().copied().find(|p| p.flags.fin || p.flags.rst)
    }

    /// The first reset.
    pub fn first_reset(&self) -> Option<&'e Packet> {
        self.packets.iter().copied().find(|p| p.flags.rst)
    }

    /// `lb` or `target`.
    pub fn sender(&self, packet: &Packet) -> &'static str {
        if packet.from.ip() == self.lb && packet.from.port() == self.port {
            "lb"
        } else {
            "target"
        }
    }

    /// The load balancer's packet acknowledges nothing of a response: its relative ack is 1.
    pub fn nothing_answered(&self, packet: &Packet) -> bool {
        let answer = self.packets.iter().find(|p| p.flags.syn && p.flags.ack);
        answer.is_some_and(|syn| packet.flags.ack && packet.ack.wrapping_sub(syn.seq) == 1)
    }

    /// The response was not complete when this packet was sent: nothing of it had come, or it came in pieces and
    /// its end is after the packet.
    pub fn response_was_incomplete(&self, timeline: &Timeline<'_>, packet: &Packet, whole_at: &[Sighting]) -> bool {
        if self.sender(packet) == "lb" && self.nothing_answered(packet) {
            return true;
        }
        // An idle connection is purged long after a good response: known whole before the packet.
        let Some(s) = timeline.clocks.sight(self.file, packet.place.line, packet.at) else {
            return false;
        };
        !whole_at.is_empty() && whole_at.iter().all(|w| timeline.clocks.gap(&s, w).surely_positive())
    }
}

/// When an attempt's response was whole, by HAProxy and by Envoy; empty when it never was.
pub fn response_whole_at(timeline: &Timeline<'_>, attempt: &Attempt) -> Vec<Sighting> {
    let mut found = Vec::new();
    if let Some((at, (line, h))) = attempt
        .haproxy
        .and_then(|at| Some((at, haproxy_request(timeline.evidence, at)?)))
        && h.termination.is_normal()
    {
        let end = super::message::haproxy_end(line.at, h);
        found.extend(
            timeline
                .clocks
                .sight(timeline.evidence.haproxy_logs[at.0].file, line.place.line, end),
        );
    }
    if let Some((at, e)) = attempt
        .envoy
        .and_then(|at| Some((at, envoy_request(timeline.evidence, at)?)))
        && e.flags.is_empty()
    {
        found.extend(
            timeline
                .clocks
                .sight(timeline.evidence.envoy_logs[at.0].file, e.place.line, e.ended),
        );
    }
    found
}
