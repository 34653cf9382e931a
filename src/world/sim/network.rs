//! Hosts, TCP connections and the packets that captures see: SYN, FIN and RST with right sequence numbers.
//!
//! A connection is two ends and two byte counters. Only packets that a capture's filter would keep are made, once for
//! every host that sees them, stamped with the host's own clock when the capture is written.

use std::net::Ipv4Addr;

use super::capture::{Direction, Packet};
use super::clocks::HostClock;
use super::dice::Dice;
use crate::time::{Duration, Instant};

/// A host of the simulated network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct HostId(pub(super) usize);

/// Where gtrun and every other client are.
pub(super) const CLIENT: HostId = HostId(0);
/// The load balancer.
pub(super) const LB: HostId = HostId(1);
/// Index of the first worker.
pub(super) const FIRST_WORKER: usize = 2;

/// A connection; an index that is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ConnId(pub(super) usize);

/// One host.
#[derive(Debug)]
pub(super) struct Host {
    /// Name in the environment.
    pub(super) name: String,
    /// Address.
    pub(super) ip: Ipv4Addr,
    /// Its clock.
    pub(super) clock: HostClock,
    /// Packets seen while somebody captured.
    pub(super) packets: Vec<Packet>,
    /// Captures that are running.
    pub(super) captures: u32,
}

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    /// Host.
    pub(super) host: HostId,
    /// Address.
    pub(super) ip: Ipv4Addr,
    /// Port.
    pub(super) port: u16,
}

/// Which end acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The end that opened the connection.
    Opener,
    /// The end that accepted it.
    Acceptor,
}

impl Side {
    /// The other one.
    pub(super) fn other(self) -> Self {
        match self {
            Self::Opener => Self::Acceptor,
            Self::Acceptor => Self::Opener,
        }
    }
}

/// A TCP connection.
#[derive(Debug)]
pub(super) struct Conn {
    /// Who opened it.
    pub(super) opener: End,
    /// Who accepted it.
    pub(super) acceptor: End,
    /// Address behind the acceptor's hostPort, where there is one: the pod's.
    behind: Option<Ipv4Addr>,
    isn: [u32; 2],
    sent: [u32; 2],
    fin: [bool; 2],
    reset: bool,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Network {
    /// Hosts; the first is the client's, the second the load balancer's.
    pub(super) hosts: Vec<Host>,
    /// Connections.
    pub(super) conns: Vec<Conn>,
    /// One way between any two hosts.
    pub(super) one_way: Duration,
    /// Next ephemeral port by host.
    ports: Vec<u16>,
}

const SYN: u8 = 2;
const RST: u8 = 4;
const FIN: u8 = 1;
const ACK: u8 = 16;

impl Network {
    /// Hosts of a world: the client, the load balancer, the workers.
    pub(super) fn new(hosts: Vec<Host>, one_way: Duration, dice: &mut Dice) -> Self {
        let ports = hosts.iter().map(|_| dice.int(33_000, 52_000) as u16).collect();
        Self {
            hosts,
            conns: Vec::new(),
            one_way,
            ports,
        }
    }

    /// The host's clock at a true moment.
    pub(super) fn read_clock(&self, host: HostId, at: Instant) -> Instant {
        self.hosts[host.0].clock.read(at)
    }

    /// An ephemeral port: rising by small even steps, as Linux hands them out.
    pub(super) fn ephemeral(&mut self, host: HostId, dice: &mut Dice) -> u16 {
        let port = self.ports[host.0];
        let next = u32::from(port) + 2 * dice.int(1, 9) as u32;
        self.ports[host.0] = if next > 60_990 {
            32_768 + (next % 2) as u16
        } else {
            next as u16
        };
        port
    }

    /// A new connection's book-keeping; [`Network::syn`] sends its first packet.
    pub(super) fn connect(
        &mut self,
        from: HostId,
        to: HostId,
        port: u16,
        behind: Option<Ipv4Addr>,
        dice: &mut Dice,
    ) -> ConnId {
        let local = self.ephemeral(from, dice);
        let end = |host: HostId, port| End {
            host,
            ip: self.hosts[host.0].ip,
            port,
        };
        self.conns.push(Conn {
            opener: end(from, local),
            acceptor: end(to, port),
            behind,
            isn: [dice.word(), dice.word()],
            sent: [0, 0],
            fin: [false, false],
            reset: false,
        });
        ConnId(self.conns.len() - 1)
    }

    /// The opener's SYN and what the other host answers: SYN-ACK, or RST when nothing listens.
    pub(super) fn syn(&mut self, at: Instant, conn: ConnId, accepted: bool, dice: &mut Dice) {
        self.emit(at, conn, Side::Opener, SYN, dice);
        let answered = at + self.one_way + dice.micros(20, 90);
        let flags = if accepted { SYN | ACK } else { RST | ACK };
        self.emit(answered, conn, Side::Acceptor, flags, dice);
    }

    /// Bytes of payload that this side has sent; data packets themselves are not captured.
    pub(super) fn data(&mut self, conn: ConnId, side: Side, bytes: u64) {
        let sent = &mut self.conns[conn.0].sent[side as usize];
        *sent = sent.wrapping_add(bytes as u32);
    }

    /// This side closes in order; a second FIN is not sent again.
    pub(super) fn fin(&mut self, at: Instant, conn: ConnId, side: Side, dice: &mut Dice) {
        let c = &mut self.conns[conn.0];
        if c.reset || std::mem::replace(&mut c.fin[side as usize], true) {
            return;
        }
        self.emit(at, conn, side, FIN | ACK, dice);
    }

    /// This side resets; nothing follows a reset.
    pub(super) fn rst(&mut self, at: Instant, conn: ConnId, side: Side, dice: &mut Dice) {
        if std::mem::replace(&mut self.conns[conn.0].reset, true) {
            return;
        }
        self.emit(at, conn, side, RST | ACK, dice);
    }

    /// This side's FIN was sent or the connection was reset.
    pub(super) fn closed_by(&self, conn: ConnId, side: Side) -> bool {
        let c = &self.conns[conn.0];
        c.reset || c.fin[side as usize]
    }

    /// Both hosts see a packet: the sender at `at`, the receiver one way later.
    fn emit(&mut self, at: Instant, conn: ConnId, side: Side, flags: u8, dice: &mut Dice) {
        let c = &self.conns[conn.0];
        let (from, to) = match side {
            Side::Opener => (c.opener, c.acceptor),
            Side::Acceptor => (c.acceptor, c.opener),
        };
        let (mine, other) = (side as usize, side.other() as usize);
        // The SYN and the FIN count as one byte each.
        let seq = |s: usize, fin: bool| {
            c.isn[s]
                .wrapping_add(1)
                .wrapping_add(c.sent[s])
                .wrapping_add(u32::from(fin && c.fin[s]))
        };
        let refused = flags == RST | ACK && side == Side::Acceptor && c.sent[mine] == 0 && !c.fin[mine];
        let packet = |ack: u32, seq: u32| Packet {
            at,
            direction: Direction::Sent,
            from: (from.ip, from.port),
            to: (to.ip, to.port),
            flags,
            seq,
            ack,
        };
        let base = if flags & SYN != 0 {
            let ack = if flags & ACK != 0 { seq(other, false) } else { 0 };
            packet(ack, c.isn[mine])
        } else if refused {
            packet(c.isn[other].wrapping_add(1), 0)
        } else if flags & FIN != 0 {
            packet(seq(other, true), seq(mine, false))
        } else {
            packet(seq(other, true), seq(mine, true))
        };
        let behind = c.behind;
        let arrival = at + self.one_way + dice.micros(3, 9);
        self.seen(from.host, base, behind);
        let received = Packet {
            at: arrival,
            direction: Direction::Received,
            ..base
        };
        self.seen(to.host, received, behind);
    }

    /// A worker with a hostPort sees a packet twice: with its own address and with the pod's.
    fn seen(&mut self, host: HostId, packet: Packet, behind: Option<Ipv4Addr>) {
        let own = self.hosts[host.0].ip;
        let h = &mut self.hosts[host.0];
        if h.captures == 0 {
            return;
        }
        let Some(pod) = behind.filter(|_| host.0 >= FIRST_WORKER) else {
            h.packets.push(packet);
            return;
        };
        let step = Duration::from_micros(5);
        match packet.direction {
            Direction::Received => {
                h.packets.push(packet);
                // Source and destination are both rewritten; the load balancer's port survives.
                let (from, to) = ((own, packet.from.1), (pod, packet.to.1));
                h.packets.push(Packet {
                    at: packet.at + step,
                    direction: Direction::Sent,
                    from,
                    to,
                    ..packet
                });
            }
            Direction::Sent => {
                let (from, to) = ((pod, packet.from.1), (own, packet.to.1));
                h.packets.push(Packet {
                    at: packet.at - step,
                    direction: Direction::Received,
                    from,
                    to,
                    ..packet
                });
                h.packets.push(packet);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> (Network, Dice) {
        let since = Instant::from_nanos(0);
        let host = |name: &str, last| Host {
            name: name.to_owned(),
            ip: Ipv4Addr::new(10, 77, 0, last),
            clock: HostClock {
                offset: Duration::ZERO,
                drift_ppm: 0.0,
                since,
            },
            packets: Vec::new(),
            captures: 1,
        };
        let mut dice = Dice::new(3);
        let hosts = vec![host("client", 100), host("lb", 211), host("worker1", 11)];
        (Network::new(hosts, Duration::from_micros(250), &mut dice), dice)
    }

    #[test]
    fn sequence_numbers_count_bytes_syn_and_fin() {
        let (mut net, mut dice) = network();
        let at = Instant::from_nanos(1_000_000_000);
        let conn = net.connect(LB, HostId(2), 8080, None, &mut dice);
        net.syn(at, conn, true, &mut dice);
        net.data(conn, Side::Opener, 90);
        net.fin(at, conn, Side::Opener, &mut dice);
        net.fin(at, conn, Side::Acceptor, &mut dice);
        net.rst(at, conn, Side::Opener, &mut dice);
        let lb = &net.hosts[LB.0].packets;
        let [syn, syn_ack, fin, fin_back, rst] = [0, 1, 2, 3, 4].map(|i| lb[i]);
        assert_eq!(
            (syn_ack.ack, fin.ack),
            (syn.seq.wrapping_add(1), syn_ack.seq.wrapping_add(1))
        );
        assert_eq!(fin.seq, syn.seq.wrapping_add(91));
        assert_eq!(
            (fin_back.seq, fin_back.ack),
            (syn_ack.seq.wrapping_add(1), fin.seq.wrapping_add(1))
        );
        assert_eq!(
            (rst.seq, rst.ack),
            (fin.seq.wrapping_add(1), fin_back.seq.wrapping_add(1))
        );
        assert_eq!(net.hosts[2].packets.len(), lb.len(), "the worker sees the same packets");
    }

    #[test]
    fn a_refused_syn_is_a_reset_without_a_sequence() {
        let (mut net, mut dice) = network();
        let conn = net.connect(LB, HostId(2), 8080, None, &mut dice);
        net.syn(Instant::from_nanos(1_000_000_000), conn, false, &mut dice);
        let [syn, rst] = [0, 1].map(|i| net.hosts[LB.0].packets[i]);
        assert_eq!((rst.flags, rst.seq, rst.ack), (RST | ACK, 0, syn.seq.wrapping_add(1)));
    }

    #[test]
    fn a_host_port_shows_each_packet_twice_on_the_worker() {
        let (mut net, mut dice) = network();
        let pod = Ipv4Addr::new(10, 244, 0, 7);
        let conn = net.connect(LB, HostId(2), 8080, Some(pod), &mut dice);
        net.syn(Instant::from_nanos(1_000_000_000), conn, true, &mut dice);
        let worker = &net.hosts[2].packets;
        let lb_port = net.conns[conn.0].opener.port;
        assert_eq!(worker.len(), 4);
        assert_eq!(worker[1].from, (Ipv4Addr::new(10, 77, 0, 11), lb_port));
        assert_eq!(worker[1].to, (pod, 8080));
        assert_eq!(net.hosts[LB.0].packets.len(), 2);
    }
}
