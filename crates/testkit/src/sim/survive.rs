//! Which bytes of one file are left when what was pending did not all reach the disk.
//! Blocks choose for themselves: each has the first few of the changes that touched it, in order.

use std::ops::Range;
use std::sync::Arc;

use super::content::{Change, Content};
use super::physics::{Fate, Physics};
use crate::rng::Rng;

/// Returns what a power cut leaves. `others` are bytes that stale blocks may come from.
pub(super) fn after_power_cut(
    content: &Content,
    (fate, physics): (Fate, &Physics),
    others: &[Arc<Vec<u8>>],
    rng: &mut Rng,
) -> Arc<Vec<u8>> {
    let pending = content.pending();
    if pending.is_empty() {
        return content.durable().clone();
    }
    match fate {
        Fate::Nothing => content.durable().clone(),
        Fate::Everything => content.after(pending.len()),
        Fate::Mixed if rng.chance(physics.prefix, 100) => content.after(rng.index(pending.len() + 1)),
        Fate::Mixed => {
            let mut mix = Mix::of(content, physics, rng, |rng, touches| rng.below(touches + 1));
            let len = match rng.below(4) {
                0 => content.durable().len(),
                1 => mix.last_len(),
                _ => *rng.pick(&mix.lens),
            };
            if rng.chance(physics.stale, 100) {
                mix.fill_stale(content.durable().len(), physics, others, rng);
            }
            Arc::new(mix.cut(len))
        }
    }
}

/// Returns what a failed sync leaves: each block has all of its changes or none.
pub(super) fn after_failed_sync(content: &Content, physics: &Physics, rng: &mut Rng) -> Vec<u8> {
    let fate = physics.fate(rng);
    let mix = Mix::of(content, physics, rng, |rng, touches| match fate {
        Fate::Nothing => 0,
        Fate::Everything => touches,
        Fate::Mixed => touches * rng.below(2),
    });
    let kept = match fate {
        Fate::Nothing => false,
        Fate::Everything => true,
        Fate::Mixed => rng.chance(1, 2),
    };
    let len = if kept { mix.last_len() } else { content.durable().len() };
    mix.cut(len)
}

/// The bytes of a file of which each block has gone its own way.
struct Mix {
    block: usize,
    /// Bytes before this many blocks were touched by nobody.
    first: usize,
    /// How many of its changes each block from `first` on has.
    taken: Vec<u64>,
    /// The length before all changes and after each.
    lens: Vec<usize>,
    bytes: Vec<u8>,
}

impl Mix {
    fn of(
        content: &Content,
        physics: &Physics,
        rng: &mut Rng,
        mut draw: impl FnMut(&mut Rng, u64) -> u64,
    ) -> Mix {
        let block = *rng.pick(physics.blocks);
        let durable = content.durable();
        let mut lens = vec![durable.len()];
        let mut spans = Vec::with_capacity(content.pending().len());
        for change in content.pending() {
            let len = lens[lens.len() - 1];
            let (span, next) = match change {
                Change::Write { offset, bytes } => {
                    let end = offset + bytes.len();
                    (len.min(*offset)..end, len.max(end))
                }
                Change::Resize(to) => (len.min(*to)..len.max(*to), *to),
            };
            spans.push(span);
            lens.push(next);
        }
        let longest = lens.iter().copied().max().unwrap_or_default();
        let first = spans.iter().map(|span| span.start / block).min().unwrap_or_default();
        let blocks = |span: &Range<usize>| span.start / block - first..span.end.div_ceil(block) - first;

        let mut touches = vec![0_u64; longest.div_ceil(block).saturating_sub(first)];
        for span in spans.iter().filter(|span| !span.is_empty()) {
            blocks(span).for_each(|at| touches[at] += 1);
        }
        let taken: Vec<u64> =
            touches.iter().map(|&touches| if touches == 0 { 0 } else { draw(rng, touches) }).collect();

        let mut bytes = Vec::with_capacity(longest);
        bytes.extend_from_slice(durable);
        bytes.resize(longest, 0);
        let mut left = taken.clone();
        for (change, span) in content.pending().iter().zip(&spans).filter(|(_, span)| !span.is_empty()) {
            for at in blocks(span) {
                if left[at] > 0 {
                    left[at] -= 1;
                    let start = (first + at) * block;
                    apply_within(change, span.start.max(start)..span.end.min(start + block), &mut bytes);
                }
            }
        }
        Mix { block, first, taken, lens, bytes }
    }

    fn last_len(&self) -> usize {
        self.lens[self.lens.len() - 1]
    }

    /// Fills some of the blocks that grew and were not written with what the disk held there before.
    fn fill_stale(&mut self, durable_len: usize, physics: &Physics, others: &[Arc<Vec<u8>>], rng: &mut Rng) {
        for (at, _) in self.taken.iter().enumerate().filter(|(_, taken)| **taken == 0) {
            let start = (self.first + at) * self.block;
            let end = (start + self.block).min(self.bytes.len());
            let start = start.max(durable_len);
            if start >= end || rng.chance(1, 2) {
                continue;
            }
            let recycled = (!others.is_empty() && rng.chance(physics.recycled, 100))
                .then(|| rng.pick(others))
                .and_then(|other| other.get(start..end));
            match recycled {
                Some(old) => self.bytes[start..end].copy_from_slice(old),
                None => rng.fill(&mut self.bytes[start..end]),
            }
        }
    }

    fn cut(mut self, len: usize) -> Vec<u8> {
        self.bytes.truncate(len);
        self.bytes
    }
}

/// Makes the part of a change that lies within `range`.
fn apply_within(change: &Change, range: Range<usize>, to: &mut [u8]) {
    match change {
        Change::Write { offset, bytes } => {
            // The gap before it is zero already: whatever was there was cut off by an earlier change.
            let start = range.start.max(*offset);
            if start < range.end {
                to[start..range.end].copy_from_slice(&bytes[start - offset..range.end - offset]);
            }
        }
        Change::Resize(_) => to[range].fill(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scribbled(rng: &mut Rng) -> Content {
        let mut content = Content::settled(Arc::new(vec![b'd'; rng.index(9_000)]));
        for _ in 0..rng.index(12) {
            if rng.chance(1, 4) {
                content.resize(rng.index(12_000));
            } else {
                let bytes = vec![b'0' + rng.index(10) as u8; rng.index(3_000)];
                content.write(rng.index(content.len() + 500), &bytes);
            }
        }
        content
    }

    #[test]
    fn all_blocks_together_are_the_live_bytes_and_no_block_the_durable_ones() {
        let physics = Physics::default();
        for seed in 0..500 {
            let mut rng = Rng::new(seed);
            let content = scribbled(&mut rng);
            let all = Mix::of(&content, &physics, &mut rng, |_, touches| touches);
            let len = all.last_len();
            assert_eq!(all.cut(len), ***content.live(), "seed {seed}");
            let none = Mix::of(&content, &physics, &mut rng, |_, _| 0);
            assert_eq!(none.cut(content.durable().len()), ***content.durable(), "seed {seed}");
        }
    }

    #[test]
    fn every_fate_gives_one_of_the_lengths() {
        let physics = Physics::default();
        for seed in 0..500 {
            let mut rng = Rng::new(seed);
            let content = scribbled(&mut rng);
            let mut lens = vec![content.durable().len()];
            let mut bytes = content.durable().to_vec();
            for change in content.pending() {
                change.apply(&mut bytes);
                lens.push(bytes.len());
            }
            let fate = physics.fate(&mut rng);
            let left = after_power_cut(&content, (fate, &physics), &[], &mut rng);
            assert!(lens.contains(&left.len()), "seed {seed}: {} is none of {lens:?}", left.len());
        }
    }
}
