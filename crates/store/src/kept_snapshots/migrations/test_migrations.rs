//! Migrations of a format that never was, for tests.

use serde_json::json;

use super::Migration;

/// Steps of a format that never was: a field is renamed, then what it says is put differently.
pub(in crate::kept_snapshots) const TEST_MIGRATIONS: &[Migration] = &[
    Migration {
        from: 1,
        apply: |document| {
            let cause = document.remove("cause").ok_or("there is no cause")?;
            document.insert("reason".to_owned(), cause);
            Ok(())
        },
    },
    Migration {
        from: 2,
        apply: |document| {
            let reason = document.get_mut("reason").ok_or("there is no reason")?;
            *reason = json!(reason.as_str().ok_or("the reason is no text")?.to_lowercase());
            Ok(())
        },
    },
];
