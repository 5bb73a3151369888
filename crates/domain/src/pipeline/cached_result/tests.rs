//! Cached results: what is kept, and what is not believed.

use super::*;
use crate::event::StepCounts;
use crate::id::StepId;

const FROM: BlobId = BlobId::from_bytes([1; 32]);
const TO: BlobId = BlobId::from_bytes([2; 32]);

fn stage(writes: bool, outcomes: &[&str]) -> StageConfig {
    let outcomes = outcomes.iter().map(|name| ((*name).to_owned(), "next".to_owned())).collect();
    StageConfig { name: "review".into(), cache: true, writes, outcomes, ..StageConfig::default() }
}

fn finished(outcome: &'static str) -> StepFinished<'static> {
    StepFinished {
        step_id: StepId { stage: "review".into(), round: 1 },
        key: StepKey::from_bytes([7; 32]),
        outcome: outcome.into(),
        payload: Some(Raw::from_value(&serde_json::json!({"findings": "a \"b\"\n"})).expect("JSON")),
        payload_blob: None,
        to: TO,
        files_touched: None,
        usage: None,
        cached: false,
        counts: StepCounts::default(),
    }
}

fn run() -> RunName {
    "run-20251020-140818-4f9f29a1".parse().expect("a name")
}

fn kept() -> CachedResult<'static> {
    let at = Timestamp::from_millis(1_800_000_000_000);
    CachedResult::of(&stage(true, &["approved"]), &finished("approved"), run(), at).expect("kept")
}

#[test]
fn a_result_is_written_as_people_and_programs_read_it() {
    let bytes = kept().write().expect("written");
    let key = "07".repeat(32);
    let expected = format!(
        r#"{{"key":"ik:{key}","outcome":"approved","payload":{{"findings":"a \"b\"\n"}},"to":"{TO}","made_by":"run-20251020-140818-4f9f29a1","at":"2027-01-15T08:00:00.000Z","h":""#
    );
    let text = String::from_utf8(bytes.clone()).expect("text");
    assert!(text.starts_with(&expected) && text.len() == expected.len() + 18, "{text}");
    let read = CachedResult::read(&bytes, kept().key).expect("read");
    assert_eq!(read.into_owned(), kept());
    assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok_and(|value| value["h"].is_string()));
}

#[test]
fn failures_and_what_was_cached_are_not_kept_and_neither_is_what_nobody_shares() {
    let at = Timestamp::from_millis(0);
    let of = |stage: &StageConfig, finished| CachedResult::of(stage, &finished, run(), at).is_some();
    let shared = stage(true, &["approved"]);
    assert!(of(&shared, finished("approved")));
    assert!(!of(&shared, finished(outcome::FAILED)));
    assert!(!of(&shared, StepFinished { cached: true, ..finished("approved") }));
    assert!(!of(&StageConfig { cache: false, ..shared }, finished("approved")));
}

#[test]
fn whatever_is_changed_in_a_file_it_is_not_believed() {
    let bytes = kept().write().expect("written");
    for at in 0..bytes.len() {
        for bad in [bytes[at] ^ 1, b'0', b'"'] {
            let mut changed = bytes.clone();
            if changed[at] == bad {
                continue;
            }
            changed[at] = bad;
            assert!(CachedResult::read(&changed, kept().key).is_err(), "byte {at}");
        }
        assert!(CachedResult::read(&bytes[..at], kept().key).is_err(), "cut at {at}");
    }
    for longer in [b"\n".as_slice(), b"{}"] {
        assert!(CachedResult::read(&[&bytes, longer].concat(), kept().key).is_err());
    }
    let other = StepKey::from_bytes([8; 32]);
    assert!(matches!(CachedResult::read(&bytes, other), Err(BadResult::OtherKey(key)) if key == kept().key));
    // Whole, and nothing of ours.
    let mut nothing = b"{\"a\":1".to_vec();
    let hash = hash(&nothing);
    [HASH_BEGINS, &hash, HASH_ENDS].iter().for_each(|part| nothing.extend_from_slice(part.as_bytes()));
    assert!(matches!(CachedResult::read(&nothing, other), Err(BadResult::NoResult(_))));
}

#[test]
fn a_result_is_used_where_the_stage_may_come_to_it() {
    let result = kept();
    assert!(result.fits(&stage(true, &["approved"]), FROM));
    assert!(!result.fits(&stage(true, &["perfect"]), FROM), "there is no such outcome");
    assert!(!result.fits(&stage(false, &["approved"]), FROM), "files must be left alone");
    assert!(result.fits(&stage(false, &["approved"]), TO));
    let failed = CachedResult { outcome: outcome::FAILED.into(), ..kept() };
    assert!(!failed.fits(&stage(true, &["approved"]), FROM));
}

#[test]
fn results_are_kept_by_agents_and_of_checks_together() {
    let by = StageConfig { agent: Some("builder".into()), ..stage(true, &[]) };
    assert_eq!((cache_directory(&by), cache_directory(&stage(true, &[]))), ("builder", "check"));
}
