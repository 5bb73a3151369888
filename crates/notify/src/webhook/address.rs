//! Which addresses a request may go to. Whoever has a say in where a name leads must not reach what only this machine reaches. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// To the internet.
    Public,
    /// To this machine or a network of one's own.
    Private,
    /// Nowhere that a request should go: to neighbours without a router, to many at once, to what tells a machine its secrets.
    Never,
}

/// Where providers of virtual machines tell these who they are, beyond the addresses of neighbours.
const METADATA: &[IpAddr] = &[
    // Alibaba Cloud, Oracle Cloud, Azure.
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    // Amazon, Google.
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Returns how far an address leads.
pub(super) fn reach(address: IpAddr) -> Reach {
    if METADATA.contains(&address) {
        return Reach::Never;
    }
    match address {
        IpAddr::V4(four) => reach_of_four(four),
        IpAddr::V6(six) => reach_of_six(six),
    }
}

fn reach_of_four(address: Ipv4Addr) -> Reach {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        // This network, neighbours, protocol assignments, multicast, reserved and broadcast.
        (0, ..) | (169, 254, _) | (192, 0, 0) | (224..=255, ..) => Reach::Never,
        // One's own, this machine, carriers' translation, benchmarks.
        (10 | 127, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) | (198, 18 | 19, _) => {
            Reach::Private
        }
        _ => Reach::Public,
    }
}

fn reach_of_six(address: Ipv6Addr) -> Reach {
    if let Some(four) = embedded_four(address) {
        return reach(IpAddr::V4(four));
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Private,
        // Unspecified, neighbours, multicast, discarded.
        [0, 0, 0, 0, 0, 0, 0, 0] | [0xfe80..=0xfebf, ..] | [0xff00..=0xffff, ..] | [0x100, 0, 0, 0, ..] => {
            Reach::Never
        }
        // Tunnels whose other end is written in other ways: Teredo, and translation within a site.
        [0x2001, 0, ..] | [0x64, 0xff9b, 1, ..] => Reach::Never,
        // Unique local addresses, and their predecessors.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Reach::Private,
        _ => Reach::Public,
    }
}

/// Returns the address of the fourth version that one of the sixth stands for.
fn embedded_four(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let four = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match (a, b, c, d, e, f) {
        // Mapped, translated, and compatible, of which the first two addresses mean something else.
        (0, 0, 0, 0, 0, 0xffff) | (0, 0, 0, 0, 0xffff, 0) => Some(four(high, low)),
        (0, 0, 0, 0, 0, 0) if high != 0 || low > 1 => Some(four(high, low)),
        // NAT64, 6to4.
        (0x64, 0xff9b, 0, 0, 0, 0) => Some(four(high, low)),
        (0x2002, ..) => Some(four(b, c)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_address_is_judged_alike() {
        use Reach::{Never, Private, Public};
        let fours = [
            ("8.8.8.8", Public),
            ("1.1.1.1", Public),
            ("172.15.0.1", Public),
            ("172.32.0.1", Public),
            ("100.63.0.1", Public),
            ("100.128.0.1", Public),
            ("198.20.0.1", Public),
            ("168.63.129.17", Public),
            ("10.0.0.1", Private),
            ("127.0.0.1", Private),
            ("127.255.0.1", Private),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.1.1", Private),
            ("100.64.0.1", Private),
            ("100.127.255.254", Private),
            ("198.18.0.1", Private),
            ("0.0.0.0", Never),
            ("0.1.2.3", Never),
            ("169.254.169.254", Never),
            ("169.254.0.1", Never),
            ("192.0.0.192", Never),
            ("100.100.100.200", Never),
            ("168.63.129.16", Never),
            ("224.0.0.1", Never),
            ("239.255.255.250", Never),
            ("240.0.0.1", Never),
            ("255.255.255.255", Never),
        ];
        for (text, expected) in fours {
            let four: Ipv4Addr = text.parse().expect(text);
            assert_eq!(reach(IpAddr::V4(four)), expected, "{text}");
            let [high, low] = [u32::from(four) >> 16, u32::from(four) & 0xffff];
            for six in [
                format!("::ffff:{text}"),
                format!("::ffff:0:{text}"),
                format!("64:ff9b::{text}"),
                format!("2002:{high:x}:{low:x}::1"),
            ] {
                let six: IpAddr = six.parse().expect("an address");
                assert_eq!(reach(six), expected, "{six}");
            }
            if u32::from(four) > 1 {
                let compatible: IpAddr = format!("::{high:x}:{low:x}").parse().expect("an address");
                assert_eq!(reach(compatible), expected, "{compatible}");
            }
        }
        let sixes = [
            ("2606:4700::1111", Public),
            ("2a00:1450:4001::200e", Public),
            ("::1", Private),
            ("fc00::1", Private),
            ("fd12:3456::1", Private),
            ("fec0::1", Private),
            ("::", Never),
            ("fe80::1", Never),
            ("febf::1", Never),
            ("ff02::1", Never),
            ("100::1", Never),
            ("fd00:ec2::254", Never),
            ("fd20:ce::254", Never),
            ("2001::1", Never),
            ("64:ff9b:1::a9fe:a9fe", Never),
        ];
        for (text, expected) in sixes {
            assert_eq!(reach(text.parse().expect(text)), expected, "{text}");
        }
    }
}
