//! How often somebody may ask.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::listen::Peer;

/// More peers than so many are not remembered: nobody fills the memory by asking from everywhere.
const REMEMBERED: usize = 10_000;

/// A bucket of tokens for each peer: it holds so many at most, and so many come back in a second.
#[derive(Debug)]
pub(crate) struct Buckets {
    most: f64,
    per_second: f64,
    by_peer: Mutex<HashMap<Peer, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Buckets {
    pub(crate) fn new(most: f64, per_second: f64) -> Self {
        Self { most, per_second, by_peer: Mutex::default() }
    }

    /// Returns how long a peer has to wait for a token, if it has to.
    pub(crate) fn wait(&self, peer: Peer, now: Instant) -> Option<Duration> {
        let by_peer = self.by_peer.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens = by_peer.get(&peer).map_or(self.most, |bucket| self.filled(*bucket, now));
        (tokens < 1.0).then(|| Duration::from_secs_f64((1.0 - tokens) / self.per_second))
    }

    /// Takes a token of a peer, or returns how long it has to wait.
    pub(crate) fn take(&self, peer: Peer, now: Instant) -> Result<(), Duration> {
        if let Some(wait) = self.wait(peer, now) {
            return Err(wait);
        }
        let mut by_peer = self.by_peer.lock().unwrap_or_else(PoisonError::into_inner);
        if by_peer.len() >= REMEMBERED {
            by_peer.retain(|_, bucket| self.filled(*bucket, now) < self.most);
            if by_peer.len() >= REMEMBERED {
                by_peer.clear();
            }
        }
        let bucket = by_peer.entry(peer).or_insert(Bucket { tokens: self.most, at: now });
        *bucket = Bucket { tokens: self.filled(*bucket, now) - 1.0, at: now };
        Ok(())
    }

    fn filled(&self, bucket: Bucket, now: Instant) -> f64 {
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        since.mul_add(self.per_second, bucket.tokens).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u32) -> Peer {
        Peer::Ip(std::net::Ipv4Addr::from_bits(number).into())
    }

    #[test]
    fn a_peer_may_ask_as_often_as_its_bucket_holds_and_then_as_fast_as_it_fills() {
        let (buckets, start) = (Buckets::new(3.0, 2.0), Instant::now());
        let asked: Vec<bool> = (0..4).map(|_| buckets.take(peer(1), start).is_ok()).collect();
        assert_eq!(asked, [true, true, true, false]);
        assert_eq!(buckets.wait(peer(1), start), Some(Duration::from_millis(500)));
        assert!(buckets.take(peer(2), start).is_ok(), "another peer is not held up");
        let later = start + Duration::from_millis(500);
        assert!(buckets.take(peer(1), later).is_ok() && buckets.take(peer(1), later).is_err());
    }

    #[test]
    fn peers_without_number_don_t_fill_the_memory() {
        let (buckets, start) = (Buckets::new(1.0, 1.0), Instant::now());
        for number in 0..50_000 {
            buckets.take(peer(number), start).unwrap();
        }
        assert!(buckets.by_peer.lock().unwrap().len() <= REMEMBERED);
    }
}
