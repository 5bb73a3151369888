//! Migrations of kept snapshots: one that an earlier version wrote is brought up to today's, a version at a time, before anything is
//! made of it. The steps work on the raw JSON, so that what they know nothing of stays as it is; the file is never changed.
//!
//! Each step gets a file of its own beside this one, and is never touched again. It comes with a home of the version that it begins
//! with in `fixtures/`, and a test that opens that. Caches need none of this: they are made again from the log.

use serde_json::{Map, Value};

/// A step from one version to the next.
pub(super) struct Migration {
    /// The version that it begins with.
    pub(super) from: u32,
    /// What it changes; an error says what is not as that version wrote it.
    pub(super) apply: fn(&mut Map<String, Value>) -> Result<(), String>,
}

/// The steps that there are, in order: from the first version to the one that is written today.
pub(super) const MIGRATIONS: &[Migration] = &[];

/// Returns the version that steps lead to.
pub(super) fn newest(steps: &[Migration]) -> u32 {
    steps.last().map_or(1, |last| last.from + 1)
}

/// Brings a document up to the newest version, from whichever it has.
pub(super) fn migrate(document: &mut Map<String, Value>, steps: &[Migration]) -> Result<(), String> {
    let written = document.get("version").and_then(Value::as_u64).ok_or("it has no version")?;
    let mut version = written;
    for step in steps.iter().filter(|step| u64::from(step.from) >= written) {
        if u64::from(step.from) == version {
            let failed = |why| format!("version {version} cannot be read as version {}: {why}", version + 1);
            (step.apply)(document).map_err(failed)?;
            version += 1;
            document.insert("version".to_owned(), version.into());
        }
    }
    match version == u64::from(newest(steps)) {
        true => Ok(()),
        false => Err(format!("version {written} never existed")),
    }
}

#[cfg(test)]
pub(super) mod test_migrations;

#[cfg(test)]
mod tests {
    use rekindle_domain::kept_snapshot::KEPT_SNAPSHOT_VERSION;
    use serde_json::json;

    use super::test_migrations::TEST_MIGRATIONS;
    use super::*;

    fn migrated(document: Value) -> Result<Value, String> {
        let Value::Object(mut document) = document else { return Err("no object".to_owned()) };
        migrate(&mut document, TEST_MIGRATIONS).map(|()| Value::Object(document))
    }

    #[test]
    fn steps_are_taken_in_order_from_any_version_and_what_is_unknown_survives() {
        let newest = json!({"version": 3, "reason": "request", "mood": {"of": ["another", 1]}});
        for (version, field, value) in
            [(1, "cause", "REQUEST"), (2, "reason", "REQUEST"), (3, "reason", "request")]
        {
            let mut old = json!({"version": version, "mood": {"of": ["another", 1]}});
            old[field] = json!(value);
            assert_eq!(migrated(old), Ok(newest.clone()), "{version}");
        }
    }

    #[test]
    fn what_no_version_wrote_is_told() {
        for (document, told) in [
            (json!({}), "it has no version"),
            (json!({"version": "1"}), "it has no version"),
            (json!({"version": 0}), "version 0 never existed"),
            (json!({"version": 1}), "version 1 cannot be read as version 2: there is no cause"),
            (
                json!({"version": 2, "reason": 7}),
                "version 2 cannot be read as version 3: the reason is no text",
            ),
        ] {
            assert_eq!(migrated(document.clone()), Err(told.to_owned()), "{document}");
        }
    }

    #[test]
    fn the_steps_lead_to_the_version_that_is_written() {
        assert_eq!(newest(MIGRATIONS), KEPT_SNAPSHOT_VERSION);
        assert!(
            MIGRATIONS.iter().zip(1..).all(|(step, version)| step.from == version),
            "each once, in order"
        );
    }
}
