//! Ids as short as tables show them: so much of each that they can be told apart.

/// The shortest beginning of an id that is shown in its stead: the time to a millisecond, so that lists of few and of many
/// sessions show them alike.
pub const SHORTEST: usize = 10;

/// Returns how much of each id is needed to tell these sessions apart, without what all ids begin with.
pub fn short_len<'a>(ids: impl IntoIterator<Item = &'a str>) -> usize {
    let mut ids: Vec<&str> = ids.into_iter().map(bare).collect();
    ids.sort_unstable();
    let common = |pair: &[&str]| pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
    ids.windows(2).map(common).max().map_or(SHORTEST, |common| (common + 1).max(SHORTEST))
}

/// Returns the beginning of an id.
pub fn short(id: &str, len: usize) -> &str {
    let id = bare(id);
    id.get(..len).unwrap_or(id)
}

fn bare(id: &str) -> &str {
    id.split_once('_').map_or(id, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_ids_still_tell_sessions_apart() {
        let ids = ["sess_01khz0p6r8aaaa", "sess_01khz0p6r8aabb", "sess_01khz0zzzzzzzz"];
        let len = short_len(ids);
        assert_eq!(ids.map(|id| short(id, len)), ["01khz0p6r8aaa", "01khz0p6r8aab", "01khz0zzzzzzz"]);
        assert_eq!(short("sess_1", short_len(["sess_1"])), "1");
        assert_eq!(short_len([]), SHORTEST);
    }
}
