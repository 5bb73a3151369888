//! Numbers drawn from a seed (splitmix64). Every choice of a test, of the self-test's plan and of a made-up home comes from here,
//! so that one printed seed makes the same again. Not for secrets.

/// A small deterministic generator; a clone goes on with the same numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng(u64);

impl Rng {
    /// Returns the generator of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// Returns the next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number under `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        // The high half of a wide product is even enough for any `n` that is used here.
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Returns an index into something of `len` items, or 0 if there are none.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns true `num` times in `den`.
    pub fn chance(&mut self, num: u64, den: u64) -> bool {
        self.below(den) < num
    }

    /// Returns the random part of an id.
    pub fn bits(&mut self) -> u128 {
        u128::from(self.next_u64()) << 64 | u128::from(self.next_u64())
    }

    /// Returns one of `items`; panics if there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        assert!(!items.is_empty(), "nothing to pick from");
        &items[self.index(items.len())]
    }

    /// Fills `bytes` with noise.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let noise = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&noise[..chunk.len()]);
        }
    }

    /// Returns a generator of its own, so that a part can draw without disturbing the rest.
    pub fn fork(&mut self) -> Rng {
        Rng(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_numbers_of_a_seed_never_change() {
        // Reference values of splitmix64: printed seeds of old failures must stay meaningful.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn draws_stay_in_range_and_reach_every_value() {
        let mut rng = Rng::new(7);
        let mut seen = [0_u32; 5];
        for _ in 0..1_000 {
            seen[rng.index(5)] += 1;
        }
        assert!(seen.iter().all(|&n| n > 100), "{seen:?}");
        assert_eq!(rng.below(0), 0);
        assert!((0..100).all(|_| rng.chance(1, 1) && !rng.chance(0, 1)));
        assert_eq!(*rng.pick(&[3]), 3);
    }

    #[test]
    fn a_fork_draws_its_own_numbers() {
        let mut rng = Rng::new(7);
        let mut own = rng.fork();
        let mut noise = [0; 11];
        own.fill(&mut noise);
        assert_ne!(noise, [0; 11]);
        assert_ne!(rng.next_u64(), own.next_u64());
    }
}
