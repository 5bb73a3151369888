//! The failure limit: how many wrong tokens may come from one network in a minute. Secrets of 256 bits are not guessed; the limit keeps
//! those who try from taking the time, and the log, of others.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Wrong tokens of one network that are told so in a minute.
const MAX_FAILURES: u32 = 10;

/// Networks that are remembered: a few hundred KiB. When there are more, the oldest is forgotten.
const MAX_NETWORKS: usize = 4096;

/// What counts as one caller: an address, or the 64 bits of an IPv6 address that one customer has at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Network(IpAddr);

impl Network {
    /// Returns the network of an address.
    pub(crate) fn of(address: IpAddr) -> Network {
        Network(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// Failures of one network since the first of them; after the window they are forgotten.
#[derive(Debug, Clone, Copy)]
struct Failures {
    since: Instant,
    count: u32,
}

/// The failure limit: counts by network.
#[derive(Debug)]
pub(crate) struct FailureLimit {
    window: Duration,
    networks: Mutex<HashMap<Network, Failures>>,
}

impl FailureLimit {
    /// Makes one that counts for so long.
    pub(crate) fn new(window: Duration) -> FailureLimit {
        FailureLimit { window, networks: Mutex::default() }
    }

    /// Returns how long a network is still refused, if it has failed too often.
    pub(crate) fn refused_for(&self, network: Network) -> Option<Duration> {
        let networks = self.networks.lock().unwrap_or_else(PoisonError::into_inner);
        self.left(*networks.get(&network)?)
    }

    /// Counts a failure; returns how long the network is refused if that was one too many.
    pub(crate) fn count(&self, network: Network) -> Option<Duration> {
        let mut networks = self.networks.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |failures: &Failures| failures.since.elapsed() >= self.window;
        if networks.get(&network).is_none_or(is_over) && networks.len() >= MAX_NETWORKS {
            networks.retain(|_, failures| !is_over(failures));
            if networks.len() >= MAX_NETWORKS {
                let oldest = networks.iter().min_by_key(|(_, failures)| failures.since);
                let oldest = oldest.map(|(network, _)| *network);
                oldest.and_then(|oldest| networks.remove(&oldest));
            }
        }
        let failures = networks.entry(network).or_insert(Failures { since: Instant::now(), count: 0 });
        if is_over(failures) {
            *failures = Failures { since: Instant::now(), count: 0 };
        }
        failures.count = failures.count.saturating_add(1);
        // The last one that is told so is not refused itself.
        let failures = *failures;
        self.left(failures).filter(|_| failures.count > MAX_FAILURES)
    }

    /// Returns how long failures still count, if there are enough of them.
    fn left(&self, failures: Failures) -> Option<Duration> {
        let left = self.window.checked_sub(failures.since.elapsed())?;
        (failures.count >= MAX_FAILURES && !left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn network(text: &str) -> Network {
        Network::of(text.parse().expect("an address"))
    }

    #[tokio::test(start_paused = true)]
    async fn ten_failures_are_told_and_more_are_refused_until_the_minute_is_over() {
        let (limit, one, other) = (FailureLimit::new(MINUTE), network("10.0.0.1"), network("10.0.0.2"));
        for failure in 1..=10 {
            assert_eq!(limit.refused_for(one), None, "{failure}");
            assert_eq!(limit.count(one), None, "{failure}");
        }
        assert_eq!(limit.refused_for(one), Some(MINUTE));
        tokio::time::advance(MINUTE / 4).await;
        // Going on does not make it longer.
        assert_eq!(limit.count(one), Some(MINUTE * 3 / 4));
        assert_eq!((limit.refused_for(other), limit.count(other)), (None, None));
        tokio::time::advance(MINUTE * 3 / 4).await;
        assert_eq!((limit.refused_for(one), limit.count(one)), (None, None));
    }

    #[test]
    fn an_address_of_the_sixth_version_counts_with_its_neighbours() {
        assert_eq!(network("2001:db8:0:1::1"), network("2001:db8:0:1:ffff::2"));
        assert_ne!(network("2001:db8:0:1::1"), network("2001:db8:0:2::1"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
        assert_ne!(network("10.0.0.1"), network("10.0.0.2"));
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_networks_are_remembered_than_there_is_room_for() {
        let limit = FailureLimit::new(MINUTE);
        let numbered = |number: u32| Network::of(IpAddr::V4(Ipv4Addr::from_bits(number)));
        for number in 0..2 * u32::try_from(MAX_NETWORKS).expect("small") {
            limit.count(numbered(number));
            tokio::time::advance(Duration::from_micros(1)).await;
        }
        let known = |number| limit.networks.lock().expect("whole").contains_key(&numbered(number));
        assert_eq!(limit.networks.lock().expect("whole").len(), MAX_NETWORKS);
        assert!(known(2 * 4096 - 1) && !known(0), "the oldest is forgotten");
    }
}
