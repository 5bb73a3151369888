//! Runs that are refused before anything began.

use super::home::{CONFIG, Home, new_run};
use crate::pipelines::NewRun;

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_made() {
    let mut home = Home::new(&[]);
    let placeholder = CONFIG.replace(r#"["true"]"#, r#"["true","{prompt}"]"#);
    let no_agent = CONFIG.replace(r#""agent":"reviewer""#, r#""agent":"nobody""#);
    let no_file = CONFIG.replace(r#"{"file":"spec"}"#, r#"{"file":"nowhere"}"#);
    for (config, code, word) in [
        (placeholder.as_str(), "invalid_pipeline", "{prompt}"),
        (&no_agent, "config_invalid", "nobody"),
        (&no_file, "invalid_pipeline", "nowhere"),
    ] {
        let refused = home.start(new_run(config)).expect_err(word);
        assert_eq!(refused.code.as_str(), code, "{}", refused.text());
        assert!(refused.text().contains(word), "{}", refused.text());
    }
    let task = home.start(NewRun { task: "T-9".into(), ..new_run(CONFIG) }).expect_err("no task");
    assert_eq!(task.code.as_str(), "task_missing");
    let pipeline = home.start(NewRun { pipeline: Some("other".into()), ..new_run(CONFIG) });
    assert_eq!(pipeline.expect_err("no pipeline").code.as_str(), "invalid_pipeline");
    let place = home.start(NewRun { working_dir: "/no/such/place".into(), ..new_run(CONFIG) });
    assert_eq!(place.expect_err("no directory").code.as_str(), "invalid_working_dir");
    assert_eq!(home.scripted.launches(), 0);
}

#[test]
fn a_request_that_is_repeated_finds_what_it_made() {
    let mut home = Home::new(&["hang"]);
    let key = |body: u8| crate::idempotency::Key { key: "k".into(), body: [body; 32] };
    let create = |home: &Home, body| home.pipelines().create(new_run(CONFIG), Some(&key(body)), "user:ada");
    let first = create(&home, 1).expect("started");
    assert_eq!(create(&home, 1).expect("found"), first);
    home.run = first;
    home.restart();
    assert_eq!(create(&home, 1).expect("found in the ledger"), first);
    assert_eq!(create(&home, 2).expect_err("another request").code.as_str(), "key_reused");
}
