//! What callers bring for agents: names that are new, and a umask that is another one.

use super::*;
use crate::compose::environment::update_environment;

/// A change of a session that says nothing but this.
fn updated(what: &str) -> String {
    format!("session.updated title=null provider=null working_dir=null {what}")
}

#[test]
fn only_names_and_a_umask_that_a_session_does_not_have_are_added() {
    const OLD: &str = "session.updated env_names=[\"OLD\"] title=null provider=null";
    let umask = r#"options={"resume":"auto","on_uncertain":"ask","umask":"0027"}"#;
    let with_umask = updated(umask);
    for (more, names, brought, expected) in [
        (OLD, &["OLD"][..], None, String::new()),
        (OLD, &[], None, String::new()),
        (OLD, &["NEW", "OLD"], None, updated("env_names=[\"OLD\",\"NEW\"]")),
        (OLD, &[], Some(0o27), with_umask.clone()),
        (&with_umask, &[], Some(0o27), String::new()),
        (&with_umask, &["A"], Some(0o27), updated("env_names=[\"A\"]")),
        // Whoever wrote it wrote it otherwise.
        (&with_umask.replace("0027", "27"), &[], Some(0o27), String::new()),
        (&with_umask.replace("0027", "0999"), &[], Some(0o27), with_umask.clone()),
    ] {
        check(&["session.created", more], &expected, |state, _| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            update_environment(state, names, brought).into_iter().collect()
        });
    }
}
