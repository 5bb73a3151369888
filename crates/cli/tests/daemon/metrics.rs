//! What `/metrics` says after things have happened to a real daemon: exactly what happened. And that everything that is
//! written about it, and every alert and panel, speaks of what is really there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use saphyr::{LoadableYamlNode, Yaml};
use serde_json::{Value, json};

use crate::kills::kill;
use crate::lab::{Lab, wait_for};

/// A page, read as a scraper does.
#[derive(Debug)]
struct Page {
    /// The type of each family.
    families: BTreeMap<String, String>,
    /// Values by series: name and labels as they stand there.
    series: BTreeMap<String, f64>,
}

impl Page {
    #[track_caller]
    fn read(text: &str) -> Page {
        let (mut families, mut series) = (BTreeMap::new(), BTreeMap::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a type");
                assert!(families.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} is there twice");
            } else if !line.starts_with('#') {
                let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
                let value = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
                assert!(series.insert(name.to_owned(), value).is_none(), "{name} is there twice");
            }
        }
        Page { families, series }
    }

    #[track_caller]
    fn of(lab: &Lab) -> Page {
        Page::read(&lab.text("/metrics", "").1)
    }

    /// Returns a value; the labels as they stand on the page.
    #[track_caller]
    fn value(&self, series: &str) -> f64 {
        *self.series.get(series).unwrap_or_else(|| panic!("there is no {series} in {self:#?}"))
    }

    /// Returns the sum over all labels.
    fn sum(&self, name: &str) -> f64 {
        let named = |series: &str| series.split('{').next() == Some(name);
        self.series.iter().filter(|(series, _)| named(series)).map(|(_, value)| value).sum()
    }

    /// Tells whether a name in an expression is one of the page's.
    fn has(&self, name: &str) -> bool {
        let histogram = |suffix: &str| {
            name.strip_suffix(suffix)
                .and_then(|name| self.families.get(name))
                .is_some_and(|kind| kind == "histogram")
        };
        match self.families.get(name).map(String::as_str) {
            Some(kind) => kind != "histogram",
            None => ["_bucket", "_sum", "_count"].into_iter().any(histogram),
        }
    }

    /// Returns the names of labels that series of a name have.
    fn labels(&self, name: &str) -> BTreeSet<String> {
        let own = self.series.keys().filter(|series| series.split('{').next() == Some(name));
        own.flat_map(|series| series.split(['{', ',']).skip(1))
            .filter_map(|label| Some(label.split_once('=')?.0.to_owned()))
            .collect()
    }
}

#[track_caller]
fn ends(page: &Page) -> [f64; 4] {
    ["completed", "failed", "cancelled", "interrupted"]
        .map(|end| page.value(&format!("rekindle_runs_ended_total{{end=\"{end}\"}}")))
}

#[track_caller]
fn status(page: &Page, status: &str) -> f64 {
    page.value(&format!("rekindle_sessions{{status=\"{status}\"}}"))
}

fn cancel(lab: &Lab, prompt: &str, barrier: &str) {
    let id = lab.run(prompt);
    lab.reach(barrier);
    lab.post(&format!("/api/sessions/{id}/cancel"), &Value::Null);
    assert_eq!(lab.wait_end(&id), "cancelled");
}

/// Makes a session whose agent is killed and that waits for a person.
fn interrupted(lab: &Lab) -> String {
    let mut body = lab.session("say before\nbarrier cut\nsay after");
    body["resume"] = json!("ask");
    let id = lab.create(&body);
    lab.reach("cut");
    kill(*lab.agents().last().expect("an agent"));
    wait_for("the interruption", || (lab.count(&id, "run.interrupted") == 1).then_some(()));
    id
}

// I6, I8
#[test]
fn what_happened_is_what_is_counted() {
    let mut lab = Lab::new();
    let page = Page::of(&lab);
    assert_eq!((ends(&page), page.sum("rekindle_records_total")), ([0.0; 4], 0.0), "it begins at zero");
    let done = lab.run("say one");
    assert_eq!(lab.wait_end(&done), "completed");
    let failed = lab.run("refuse not today");
    assert_eq!(lab.wait_end(&failed), "failed");
    cancel(&lab, "say one\nbarrier here", "here");
    let cut = interrupted(&lab);
    let asked = lab.run("ask may I?\nsay thank you");
    let wait = lab.wait_status(&asked, "waiting")["wait"]["wait_id"].as_str().expect("a wait").to_owned();
    lab.post(&format!("/api/waits/{wait}/answer"), &json!({"option": "allow_once"}));
    assert_eq!(lab.wait_end(&asked), "completed");
    let asks = lab.run("ask really?");
    lab.wait_status(&asks, "waiting");

    let page = wait_for("everything to be counted", || {
        let page = Page::of(&lab);
        (status(&page, "interrupted_agent") == 1.0).then_some(page)
    });
    assert_eq!(ends(&page), [2.0, 1.0, 1.0, 1.0]);
    assert_eq!(page.value("rekindle_runs_started_total"), 6.0);
    assert_eq!(page.value(r#"rekindle_interruptions_total{reason="agent_exit"}"#), 1.0);
    assert_eq!(page.sum("rekindle_interruptions_total"), 1.0);
    assert_eq!(page.value("rekindle_adoptions_total"), 0.0);
    assert_eq!(page.sum("rekindle_restores_total"), 0.0);
    assert_eq!(page.value("rekindle_waits_opened_total"), 2.0);
    assert_eq!(page.value(r#"rekindle_waits_ended_total{how="answered"}"#), 1.0);
    assert_eq!(page.value("rekindle_waits_open"), 1.0);
    assert!(page.value("rekindle_wait_oldest_age_seconds") > 0.0);
    assert_eq!(
        [status(&page, "waiting"), status(&page, "idle"), page.sum("rekindle_sessions")],
        [1.0, 4.0, 6.0]
    );
    // Every record of every log went through the one place where they are counted.
    let logged: u64 = [&done, &failed, &cut, &asked, &asks].map(|id| lab.log(id).len() as u64).iter().sum();
    let listed = lab.get("/api/sessions")["sessions"].as_array().expect("a list").clone();
    let all: u64 = listed.iter().filter_map(|session| session["last_seq"].as_u64()).sum();
    assert!(all > logged);
    assert_eq!(Page::of(&lab).sum("rekindle_records_total"), all as f64);
    let holders = lab.get("/api/holders")["holders"].as_array().expect("a list").clone();
    let living = holders.iter().filter(|holder| holder["state"] == "lives").count();
    assert_eq!(page.value(r#"rekindle_holders{state="living"}"#), living as f64);

    lab.post(&format!("/api/sessions/{cut}/resume"), &json!({}));
    assert_eq!(lab.wait_end(&cut), "completed");
    let page = Page::of(&lab);
    assert_eq!(ends(&page), [3.0, 1.0, 1.0, 1.0]);
    assert_eq!(page.value(r#"rekindle_restores_total{verdict="continued"}"#), 1.0);
    assert_eq!(page.sum("rekindle_restores_total"), 1.0);

    // The next daemon begins at zero again, and takes over whoever is in the middle of something.
    let works = lab.run("barrier there\nsay on");
    lab.reach("there");
    lab.restart();
    let page = wait_for("both to be taken over", || {
        let page = Page::of(&lab);
        (page.value("rekindle_adoptions_total") >= 2.0).then_some(page)
    });
    assert_eq!((page.value("rekindle_adoptions_total"), ends(&page)), (2.0, [0.0; 4]));
    assert_eq!([status(&page, "waiting"), status(&page, "running")], [1.0, 1.0]);
    assert_eq!(page.value("rekindle_waits_open"), 1.0);
    assert!(page.value("rekindle_recovery_sessions") >= 2.0);
    assert!(page.value(r#"rekindle_recovery_duration_seconds{phase="open"}"#) > 0.0);
    lab.pass("there");
    assert_eq!(lab.wait_end(&works), "completed");
    assert_eq!(ends(&Page::of(&lab)), [1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn a_follower_that_is_too_slow_is_counted_and_so_are_those_who_follow() {
    let lab = Lab::new();
    let id = lab.run("barrier here\nwords 20000\nsay done");
    lab.reach("here");
    let mut slow = lab.follow(&id, None);
    let followed = r#"rekindle_sse_subscribers{stream="session"}"#;
    wait_for("the follower", || (Page::of(&lab).value(followed) == 1.0).then_some(()));
    let dropped = r#"rekindle_sse_dropped_total{stream="session"}"#;
    assert_eq!(Page::of(&lab).value(dropped), 0.0);
    lab.pass("here");
    assert_eq!(lab.wait_end(&id), "completed");
    let last = std::iter::from_fn(|| slow.next()).last().expect("an event");
    assert_eq!(last.event, "too_slow");
    wait_for("the follower to go", || {
        let page = Page::of(&lab);
        (page.value(followed) == 0.0 && page.value(dropped) == 1.0).then_some(())
    });
    assert_eq!(Page::of(&lab).value(r#"rekindle_sse_dropped_total{stream="all"}"#), 0.0);
}

#[test]
fn counters_never_go_back_and_no_series_vanishes() {
    let lab = Lab::new();
    let mut before = Page::of(&lab);
    for n in 0..5 {
        let id = lab.run(&format!("say {n}"));
        assert_eq!(lab.wait_end(&id), "completed");
        assert_eq!(lab.ask("GET", "/nowhere", &Value::Null).status, 404);
        let now = Page::of(&lab);
        for (series, value) in &before.series {
            let later = now.value(series);
            let name = series.split('{').next().unwrap_or_default();
            let grows = ["_total", "_bucket", "_sum", "_count"].iter().any(|suffix| name.ends_with(suffix));
            assert!(!grows || later >= *value, "{series} was {value} and is {later}");
        }
        before = now;
    }
    let asked = r#"rekindle_http_requests_total{method="GET",route="none",status="4xx"}"#;
    assert_eq!(before.value(asked), 5.0);
    let made = r#"rekindle_http_requests_total{method="POST",route="/api/sessions",status="2xx"}"#;
    assert_eq!(before.value(made), 5.0);
    for name in ["append", "sync"] {
        let (count, last) = (
            before.value(&format!("rekindle_{name}_duration_seconds_count")),
            before.value(&format!("rekindle_{name}_duration_seconds_bucket{{le=\"+Inf\"}}")),
        );
        assert!(count > 0.0 && count == last, "{name}: {count} {last}");
    }
    assert!(before.value("rekindle_wal_bytes") > 0.0 && before.value("rekindle_wal_segments") == 1.0);
    assert!(before.value("process_resident_memory_bytes") > 1e6 && before.value("process_open_fds") > 3.0);
}

#[test]
fn no_id_and_no_words_of_an_agent_become_a_label() {
    let lab = Lab::new();
    let id = lab.run("say marzipan");
    assert_eq!(lab.wait_end(&id), "completed");
    lab.ask("GET", "/api/sessions/marzipan/pistachio", &Value::Null);
    lab.show(&id);
    let (_, text) = lab.text("/metrics", "");
    for word in [id.as_str(), "marzipan", "pistachio", "sess_", "run_0", "demo-agent"] {
        assert!(!text.contains(word), "{word} in\n{text}");
    }
}

#[test]
fn the_page_comes_in_the_format_that_is_asked_for() {
    let lab = Lab::new();
    let (head, text) = lab.text("/metrics", "");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(text.contains("# TYPE rekindle_adoptions_total counter\n") && !text.contains("# EOF"), "{text}");
    let (head, text) = lab.text("/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(text.contains("# TYPE rekindle_adoptions counter\n") && text.ends_with("# EOF\n"), "{text}");
}

fn project(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the names of metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| word.starts_with("rekindle_") || word.starts_with("process_"));
    ours.map(str::to_owned).collect()
}

/// Returns the metrics that have a row of their own.
fn documented(text: &str) -> BTreeSet<String> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.flat_map(names).collect()
}

/// Returns the labels that an expression picks series by, with the name of the metric.
fn matchers(expression: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in expression.match_indices('{') {
        let Some(name) = expression[..at].rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()
        else {
            continue;
        };
        let inside = expression[at + 1..].split('}').next().unwrap_or_default();
        let labels = inside.split(',').filter_map(|matcher| matcher.split(['=', '!']).next());
        found.extend(labels.map(|label| (name.to_owned(), label.trim().to_owned())));
    }
    found
}

#[track_caller]
fn check_expressions(page: &Page, from: &str, expressions: &[String]) {
    assert!(!expressions.is_empty(), "{from} has no expressions");
    for expression in expressions {
        for name in names(expression) {
            // Labels and job names are words too.
            assert!(page.has(&name), "{from} speaks of {name}, which is not there: {expression}");
        }
        for (name, label) in matchers(expression).into_iter().filter(|(name, _)| page.has(name)) {
            let given_by_scraper = ["job", "instance"].contains(&label.as_str());
            assert!(
                given_by_scraper || page.labels(&name).contains(&label),
                "{from}: {name} has no label {label}: {expression}"
            );
        }
    }
}

/// Returns every text under a name, however deep.
fn under(value: &Value, name: &str) -> Vec<String> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(field, value)| match value {
                Value::String(text) if field == name => vec![text.clone()],
                value => under(value, name),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(|item| under(item, name)).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn alerts_panels_and_the_documentation_speak_of_what_is_there() {
    let mut lab = Lab::without_daemon();
    lab.configure("[notify.sinks.hook]\ntype = \"command\"\ncommand = [\"true\"]\n");
    lab.start();
    // Some things are there only when the daemon has looked around, and the first page is answered before it is counted.
    wait_for("the first look", || (lab.get("/api/version")["recovered"] == true).then_some(()));
    let page = wait_for("a page with everything", || {
        let page = Page::of(&lab);
        let whole = page.families.contains_key("rekindle_sessions");
        (whole && page.sum("rekindle_http_requests_total") > 0.0).then_some(page)
    });

    let rules = project("ops/prometheus/rekindle.rules.yml");
    let rules = Yaml::load_from_str(&rules).expect("YAML");
    let rules = rules[0]["groups"][0]["rules"].as_vec().expect("rules");
    let expressions: Vec<String> =
        rules.iter().map(|rule| rule["expr"].as_str().expect("an expression").to_owned()).collect();
    check_expressions(&page, "the alerts", &expressions);
    for rule in rules {
        let name = rule["alert"].as_str().expect("a name");
        for field in ["summary", "description"] {
            assert!(rule["annotations"][field].as_str().is_some(), "{name} has no {field}");
        }
        assert!(rule["labels"]["severity"].as_str().is_some(), "{name} has no severity");
        assert!(project("docs/metrics.md").contains(&format!("`{name}`")), "{name} is not documented");
    }

    let dashboard: Value = serde_json::from_str(&project("ops/grafana/rekindle.json")).expect("JSON");
    let panels: Vec<String> =
        under(&dashboard, "expr").into_iter().chain(under(&dashboard, "query")).collect();
    check_expressions(&page, "the dashboard", &panels);

    let documented = documented(&project("docs/metrics.md"));
    let exposed: BTreeSet<String> = page.families.keys().cloned().collect();
    let missing: Vec<_> = exposed.difference(&documented).collect();
    assert!(missing.is_empty(), "docs/metrics.md does not have {missing:?}");
    let invented: Vec<_> = documented.difference(&exposed).collect();
    assert!(invented.is_empty(), "docs/metrics.md has {invented:?}, which are not there");
    let shown: BTreeSet<String> = expressions.iter().chain(&panels).flat_map(|text| names(text)).collect();
    let unshown = |name: &&String| !shown.contains(*name) && !shown.contains(&format!("{name}_bucket"));
    let unshown: Vec<_> = exposed.iter().filter(unshown).collect();
    assert!(unshown.is_empty(), "neither an alert nor a panel has {unshown:?}");
}
