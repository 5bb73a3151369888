//! The table of contents of a bundle: which names and which tables are refused.

use super::*;

fn session() -> SessionId {
    "sess_1".parse().expect("an id")
}

fn member(name: &str) -> Member {
    let name: MemberName = name.parse().expect("a name");
    let hash = match &name {
        MemberName::Blob(blob) => *blob,
        _ => BlobId::of(b"x"),
    };
    Member { name, size: 1, hash }
}

fn contents(members: &[&str]) -> Contents {
    let bundled = BundledSession {
        session_id: session(),
        title: "a title".into(),
        working_dir: "/work".into(),
        seq: 7,
        h: None,
        tree: None,
        checkpoints: Vec::new(),
        transcript: None,
    };
    Contents {
        format: Contents::format_with(0, 0),
        made_by: "0.1.0".into(),
        made_at: Timestamp::from_millis(1),
        machine: None,
        sessions: vec![bundled],
        runs: Vec::new(),
        members: members.iter().map(|name| member(name)).collect(),
    }
}

#[test]
fn members_have_names_of_our_grammar_and_no_others() {
    let blob = BlobId::of(b"x");
    let good = [
        "sessions/sess_1.jsonl".to_owned(),
        "sessions/sess_1.base.jsonl".to_owned(),
        "sessions/sess_1.snapshots/148-1.json.zst".to_owned(),
        "sessions/sess_1.snapshots/148-1.json.gz".to_owned(),
        "sessions/sess_1.snapshots/148-1.json".to_owned(),
        "transcripts/sess_1.jsonl".to_owned(),
        "runs/run-20251020-140818-4f9f29a1.ndjson".to_owned(),
        format!("cache/ik-{blob}.json"),
        format!("blobs/{blob}"),
    ];
    for name in &good {
        assert_eq!(name.parse::<MemberName>().map(|name| name.to_string()).as_ref(), Ok(name));
    }
    let upper = format!("blobs/{}", blob.to_string().to_uppercase());
    for bad in [
        "",
        "/",
        "bundle.json",
        "sessions",
        "sessions/",
        "/sessions/sess_1.jsonl",
        "./sessions/sess_1.jsonl",
        "sessions//sess_1.jsonl",
        "sessions/../sess_1.jsonl",
        "sessions/sess_1.jsonl/",
        "sessions/sess_1.jsonl\0",
        "sessions/sess_1.json",
        "sessions/run_1.jsonl",
        "sessions/../../etc/passwd",
        "sessions/sess_1.snapshots/148-01.json",
        "sessions/sess_1.snapshots/../148-1.json",
        "sessions/sess_1.snapshots/148-1.json.zst.zst",
        "blobs/abc",
        "blobs/../blobs/abc",
        &upper,
        "transcripts/sess_1/0",
        "transcripts/sess_1.json",
        "transcripts/../sess_1.jsonl",
        "transcripts/.claude/projects/x.jsonl",
        "runs/run-20251020-140818-4f9f29a1/ledger.ndjson",
        "runs/run-20251399-140818-4f9f29a1.ndjson",
        "runs/../run-20251020-140818-4f9f29a1.ndjson",
        "runs/run-20251020-140818-4F9F29A1.ndjson",
        "runs/pl_1.ndjson",
        "cache/ik-00.json",
        &format!("cache/builder/ik-{blob}.json"),
        &format!("cache/ik-{blob}"),
        "config.toml",
    ] {
        assert!(bad.parse::<MemberName>().is_err(), "{bad:?}");
    }
}

#[test]
fn a_table_of_contents_is_written_and_read_back() {
    let contents = contents(&["sessions/sess_1.jsonl"]);
    let text = String::from_utf8(contents.to_bytes().expect("bytes")).expect("text");
    assert!(text.starts_with(r#"{"format":1,"made_by":"0.1.0","#), "{text}");
    assert_eq!(Contents::read(text.as_bytes()), Ok(contents));
    let hostile = text.replacen("sessions/sess_1.jsonl", "../sess_1.jsonl", 1);
    let error = serde_json::from_str::<Contents>(&hostile).expect_err("refused").to_string();
    assert!(error.contains("../sess_1.jsonl"), "{error}");
}

#[test]
fn any_byte_of_a_table_that_is_changed_or_cut_off_is_noticed() {
    let bytes = contents(&["sessions/sess_1.jsonl"]).to_bytes().expect("bytes");
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x04;
        assert!(Contents::read(&changed).is_err(), "byte {at}");
        assert!(Contents::read(&bytes[..at]).is_err(), "cut at {at}");
    }
    let newer = String::from_utf8(bytes).expect("text").replacen("\"format\":1", "\"format\":7", 1);
    assert_eq!(Contents::read(newer.as_bytes()), Err(BadContents::Newer { found: 7 }));
}

#[test]
fn a_table_that_makes_no_sense_is_refused() {
    assert_eq!(contents(&["sessions/sess_1.jsonl", "sessions/sess_1.base.jsonl"]).check(), Ok(()));
    let newer = Contents { format: BUNDLE_FORMAT + 1, ..contents(&["sessions/sess_1.jsonl"]) };
    assert_eq!(newer.check(), Err(BadContents::Newer { found: BUNDLE_FORMAT + 1 }));
    assert_eq!(contents(&[]).check(), Err(BadContents::Unmatched(session())));
    let log = "sessions/sess_1.jsonl";
    assert_eq!(contents(&[log, log]).check(), Err(BadContents::Twice(MemberName::Log(session()))));
    let other: SessionId = "sess_2".parse().expect("an id");
    assert_eq!(contents(&[log, "sessions/sess_2.jsonl"]).check(), Err(BadContents::Unmatched(other)));
    let snapshot = "sessions/sess_2.snapshots/1-1.json";
    assert_eq!(contents(&[log, snapshot]).check(), Err(BadContents::Unmatched(other)));
    let mut huge = contents(&[log, "sessions/sess_1.base.jsonl"]);
    huge.members[0].size = u64::MAX;
    assert_eq!(huge.check(), Err(BadContents::TooLarge));
    huge.members[0].size = MAX_BYTES;
    assert_eq!(huge.check(), Err(BadContents::TooLarge));
    let mut misnamed = contents(&[log, &format!("blobs/{}", BlobId::of(b"x"))]);
    misnamed.members[1].hash = BlobId::of(b"y");
    assert_eq!(misnamed.check(), Err(BadContents::Misnamed(MemberName::Blob(BlobId::of(b"x")))));
    let mut twice = contents(&[log]);
    twice.sessions.push(twice.sessions[0].clone());
    assert_eq!(twice.check(), Err(BadContents::Unmatched(session())));
}

#[test]
fn what_is_announced_is_there_and_what_is_there_is_announced() {
    let (log, transcript) = ("sessions/sess_1.jsonl", "transcripts/sess_1.jsonl");
    let place = || Some(BundledTranscript { agent: "claude".into(), path: "projects/x/y.jsonl".into() });
    let unannounced = Err(BadContents::Unannounced(MemberName::Transcript(session())));
    assert_eq!(contents(&[log, transcript]).check(), unannounced);
    let mut told = contents(&[log]);
    told.sessions[0].transcript = place();
    assert_eq!(told.check(), unannounced);
    let mut both = contents(&[log, transcript]);
    both.sessions[0].transcript = place();
    assert_eq!(both.check(), Ok(()));
    let tree = BlobId::of(b"a tree");
    for announce in
        [(|session, tree| session.tree = Some(tree)) as fn(&mut BundledSession, BlobId), |session, tree| {
            session.checkpoints = vec![tree]
        }]
    {
        let mut hollow = contents(&[log]);
        announce(&mut hollow.sessions[0], tree);
        assert_eq!(hollow.check(), Err(BadContents::Unannounced(MemberName::Blob(tree))));
        let mut whole = contents(&[log, &format!("blobs/{tree}")]);
        announce(&mut whole.sessions[0], tree);
        assert_eq!(whole.check(), Ok(()));
    }
}

#[test]
fn a_run_has_its_ledger_and_its_trees_and_is_announced_once() {
    let run_id: RunName = "run-20251020-140818-4f9f29a1".parse().expect("a name");
    let tree = BlobId::of(b"a tree");
    let run = |trees: Vec<BlobId>| BundledRun {
        run_id,
        goal: "Make it so".into(),
        working_dir: "/repo".into(),
        seq: 2,
        h: None,
        tree: None,
        trees,
    };
    let (ledger, blob) = (format!("runs/{run_id}.ndjson"), format!("blobs/{tree}"));
    let with = |members: &[&str], runs: Vec<BundledRun>| {
        let all: Vec<&str> = ["sessions/sess_1.jsonl"].iter().chain(members).copied().collect();
        Contents { format: Contents::format_with(runs.len(), 0), runs, ..contents(&all) }
    };
    let good = with(&[&ledger, &blob], vec![run(vec![tree])]);
    assert_eq!(good.check(), Ok(()));
    let bytes = good.to_bytes().expect("bytes");
    assert_eq!(Contents::read(&bytes).as_ref(), Ok(&good));
    assert!(bytes.starts_with(br#"{"format":2,"#), "what earlier versions do not know they do not take in");
    let unmatched = Err(BadContents::UnmatchedRun(run_id));
    assert_eq!(with(&[], vec![run(Vec::new())]).check(), unmatched);
    assert_eq!(with(&[&ledger], Vec::new()).check(), unmatched);
    assert_eq!(with(&[&ledger], vec![run(Vec::new()), run(Vec::new())]).check(), unmatched);
    let missing = Err(BadContents::Unannounced(MemberName::Blob(tree)));
    assert_eq!(with(&[&ledger], vec![run(vec![tree])]).check(), missing);
    let as_tree = BundledRun { tree: Some(tree), ..run(Vec::new()) };
    assert_eq!(with(&[&ledger], vec![as_tree]).check(), missing);
}
