//! Keys: the bytes that are hashed, what changes them, and the test vectors of RFC 8785.

use super::*;

fn text(value: &impl Serialize) -> String {
    canonical(value).expect("it can be written").get().to_owned()
}

fn written(parts: &KeyParts<'_>) -> String {
    let mut bytes = Vec::new();
    parts.write(&mut bytes).expect("bytes");
    String::from_utf8(bytes).expect("text")
}

fn task(inputs: &str) -> TaskConfig {
    serde_json::from_str(&format!(r#"{{"id":"T-0042","goal":"g","inputs":{inputs}}}"#)).expect("a task")
}

fn inputs(json: &str) -> Result<StepInputs, KeyError> {
    let content = |path: &str| (path == "docs/parser.md").then(|| BlobId::of(b"# Parser"));
    StepInputs::of(&task(json), content)
}

/// The sample of section 3.2.2, and the order of section 3.2.3.
#[test]
fn objects_are_written_as_the_rfc_writes_them() {
    let sample = r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
        "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
    let value: serde_json::Value = serde_json::from_str(sample).expect("JSON");
    assert_eq!(
        text(&value),
        r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    let sample = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",
        "\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
    let value: serde_json::Value = serde_json::from_str(sample).expect("JSON");
    let written = text(&value);
    let order = [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ];
    let places: Vec<_> = order.iter().map(|name| written.find(name).expect(name)).collect();
    assert!(places.is_sorted(), "{written}");
}

/// The samples of appendix B.
#[test]
fn numbers_are_written_as_the_rfc_writes_them() {
    for (bits, expected) in [
        (0x0000_0000_0000_0000_u64, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        assert_eq!(text(&f64::from_bits(bits)), expected, "{bits:016x}");
    }
}

#[test]
fn the_bytes_and_the_key_of_a_step_are_these_for_ever() {
    let agent: AgentConfig =
        serde_json::from_str(r#"{"agent":"codex","model":"o5","env":["KEY"]}"#).expect("an agent");
    let stage: StageConfig =
        serde_json::from_str(r#"{"name":"review","outcomes":{"ok":"next","again":"implement"}}"#)
            .expect("a stage");
    let inputs = inputs(r#"{"spec":{"file":"docs/parser.md"},"style":"terse","count":3,"ratio":0.5}"#)
        .expect("inputs");
    let step: StepId = "review-2".parse().expect("a step");
    let parts = KeyParts {
        step: &step,
        stage: &stage,
        task_id: "T-0042",
        from: BlobId::from_bytes([0xab; 32]),
        agent: AgentKey::of(&agent),
        prompt: Some("Look at \"this\"\n"),
        inputs: &inputs,
    };
    insta::assert_snapshot!(written(&parts), @r##"{"action":"review","agent":{"command":null,"model":"o5","name":"codex"},"check":null,"from":"abababababababababababababababababababababababababababababababab","inputs":{"count":3,"ratio":0.5,"spec":{"file":"de0712e52da4d663ea8df61c6095fb6993f221be5cb488954995487446b7671d"},"style":"terse"},"outcomes":{"again":"implement","ok":"next"},"prompt":"Look at \"this\"\n","round":2,"task_id":"T-0042","v":1}"##);
    insta::assert_snapshot!(parts.key().expect("a key").to_string(), @"ik:471a0f30d7b6271c718421a0b213b353eb047555b17e6d281dba3c1c02587aee");
    let check: StageConfig =
        serde_json::from_str(r#"{"name":"verify","check":["cargo","test"]}"#).expect("a stage");
    let none = self::inputs("{}").expect("inputs");
    let step: StepId = "verify-1".parse().expect("a step");
    let parts = KeyParts {
        step: &step,
        stage: &check,
        agent: AgentKey::default(),
        prompt: None,
        inputs: &none,
        ..parts
    };
    insta::assert_snapshot!(written(&parts), @r##"{"action":"verify","agent":{"command":null,"model":null,"name":null},"check":["cargo","test"],"from":"abababababababababababababababababababababababababababababababab","inputs":{},"outcomes":{},"prompt":null,"round":1,"task_id":"T-0042","v":1}"##);
    insta::assert_snapshot!(parts.key().expect("a key").to_string(), @"ik:989abf3302a2a18c2ee59969192f32f7e960467c1b6f01628a60ce87c2769755");
}

/// What is written in an order that stands in the code is what a writer of canonical JSON makes of it.
#[test]
fn the_bytes_of_a_step_are_canonical_whatever_is_in_them() {
    // In UTF-16 the first comes before the second, in UTF-8 it is the other way round.
    for odd in ["\u{1f600}", "דּ", "\u{7f}\u{80}\u{2028}", "\"\\/\r\n\t\u{8}\u{c}\u{1}", "", "1e3"] {
        let name = serde_json::to_string(odd).expect("JSON");
        let stage =
            format!(r#"{{"name":"s","outcomes":{{{name}:{name},"דּ":"x","a":"y"}},"check":[{name},"b"]}}"#);
        let stage: StageConfig = serde_json::from_str(&stage).expect("a stage");
        let agent = format!(r#"{{"agent":{name},"model":{name},"command":[{name}]}}"#);
        let agent: AgentConfig = serde_json::from_str(&agent).expect("an agent");
        let inputs = inputs(&format!(r#"{{{name}:{name},"דּ":1e21,"b":0.1,"a":-7}}"#)).expect("inputs");
        let parts = KeyParts {
            step: &StepId { stage: odd.to_owned(), round: u32::MAX },
            stage: &stage,
            task_id: odd,
            from: BlobId::of(odd.as_bytes()),
            agent: AgentKey::of(&agent),
            prompt: Some(odd),
            inputs: &inputs,
        };
        let bytes = written(&parts);
        let value: serde_json::Value = serde_json::from_str(&bytes).expect("JSON");
        assert_eq!(text(&value), bytes);
        let mut agent = Vec::new();
        write_in_order(&parts.agent, &mut agent).expect("bytes");
        assert_eq!(text(&parts.agent).as_bytes(), agent);
    }
}

/// A map of plain names is written as it stands, and that is what a writer of canonical JSON makes of it.
#[test]
fn a_map_is_canonical_whichever_way_it_is_written() {
    for (json, fractions) in [
        (r#"{"spec":"as in \"docs\"\n\u0001\u007f","Limit":-7,"_a":"é😀","a-b":0}"#, false),
        (r#"{"spec":0.5,"big":1e21,"é":1}"#, true),
        (r#"{"é":"x","z":"y","דּ":"1","😀":"2"}"#, false),
        ("{}", false),
    ] {
        let task = task(json);
        let has_fractions = task.inputs.values().any(|value| matches!(value, InputValue::Float(_)));
        assert_eq!(has_fractions, fractions, "{json}");
        let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
        assert_eq!(inputs(json).expect("inputs").0.get(), text(&value), "{json}");
    }
}

/// The second review of the same files is another step, and so is whatever else may come to another result.
#[test]
fn whatever_a_result_hangs_on_changes_the_key_and_nothing_else_does() {
    let agent = |json: &str| serde_json::from_str::<AgentConfig>(json).expect("an agent");
    let stage = |json: &str| serde_json::from_str::<StageConfig>(json).expect("a stage");
    struct Case {
        step: &'static str,
        stage: StageConfig,
        task_id: &'static str,
        from: u8,
        agent: AgentConfig,
        prompt: Option<&'static str>,
        inputs: &'static str,
    }
    let key = |change: &dyn Fn(&mut Case)| {
        let mut case = Case {
            step: "review-1",
            stage: stage(r#"{"name":"review"}"#),
            task_id: "T-1",
            from: 1,
            agent: agent(r#"{"agent":"codex"}"#),
            prompt: Some("look"),
            inputs: "{}",
        };
        change(&mut case);
        let (step, inputs) = (case.step.parse().expect("a step"), inputs(case.inputs).expect("inputs"));
        let parts = KeyParts {
            step: &step,
            stage: &case.stage,
            task_id: case.task_id,
            from: BlobId::from_bytes([case.from; 32]),
            agent: AgentKey::of(&case.agent),
            prompt: case.prompt,
            inputs: &inputs,
        };
        parts.key().expect("a key")
    };
    let plain = key(&|_| {});
    let changes: [&dyn Fn(&mut Case); 13] = [
        &|case| case.step = "review-2",
        &|case| case.step = "verify-1",
        &|case| case.task_id = "T-2",
        &|case| case.from = 2,
        &|case| case.agent = agent(r#"{"agent":"claude"}"#),
        &|case| case.agent = agent(r#"{"agent":"codex","model":"o5"}"#),
        &|case| case.agent = agent(r#"{"command":["codex"]}"#),
        &|case| case.prompt = None,
        &|case| case.prompt = Some("look "),
        &|case| case.stage = stage(r#"{"name":"review","check":["true"]}"#),
        &|case| case.stage = stage(r#"{"name":"review","outcomes":{"ok":"next"}}"#),
        &|case| case.inputs = r#"{"a":1}"#,
        &|case| case.inputs = r#"{"a":"1"}"#,
    ];
    let mut keys: Vec<StepKey> = changes.iter().map(|change| key(change)).collect();
    keys.push(plain);
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), changes.len() + 1, "each has a key of its own");
    let same: [&dyn Fn(&mut Case); 3] = [
        &|case| case.agent = agent(r#"{"agent":"codex","env":["KEY"]}"#),
        &|case| case.stage = stage(r#"{"name":"review","cache":true,"deadline_s":5,"on_fail":"fail"}"#),
        &|case| case.stage = stage(r#"{"name":"review","writes":false,"agent":"other"}"#),
    ];
    for change in same {
        assert_eq!(key(change), plain);
    }
}

#[test]
fn a_file_counts_by_its_content_and_numbers_by_their_value() {
    let hash = |json: &str| inputs(json).expect("inputs").hash();
    assert_eq!(hash(r#"{"a":1}"#), hash(r#"{"a":1.0}"#));
    assert_ne!(hash(r#"{"a":1}"#), hash(r#"{"a":2}"#));
    let content = BlobId::of(b"# Parser");
    assert_eq!(
        inputs(r#"{"a":{"file":"docs/parser.md"}}"#).expect("inputs").0.get(),
        format!(r#"{{"a":{{"file":"{content}"}}}}"#)
    );
    // A text that looks like it is no file.
    assert_ne!(hash(r#"{"a":{"file":"docs/parser.md"}}"#), hash(&format!(r#"{{"a":"{content}"}}"#)));
}

#[test]
fn what_canonical_json_would_change_has_no_key() {
    let good = [MAX_INTEGER, -MAX_INTEGER];
    for number in good {
        assert!(inputs(&format!(r#"{{"a":{number}}}"#)).is_ok(), "{number}");
    }
    let refused = |inputs: Result<StepInputs, KeyError>| inputs.expect_err("it has no key").to_string();
    for number in [MAX_INTEGER + 1, -MAX_INTEGER - 1, i64::MAX, i64::MIN] {
        let why = refused(inputs(&format!(r#"{{"a":{number}}}"#)));
        assert!(why.starts_with(&format!("inputs.a is {number}: ")), "{why}");
    }
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut task = task("{}");
        task.inputs.insert("a".into(), InputValue::Float(number));
        assert_eq!(refused(StepInputs::of(&task, |_| None)), "inputs.a is not a finite number");
    }
    let why = refused(inputs(r#"{"a":{"file":"nowhere"}}"#));
    assert_eq!(why, "inputs.a: there is no file nowhere in the workspace");
}

#[test]
fn an_agent_is_known_by_what_is_configured_of_it() {
    let identity = |json: &str| {
        let agent: AgentConfig = serde_json::from_str(json).expect("an agent");
        AgentKey::of(&agent).identity("builder", Some("1.0".into())).expect("an identity")
    };
    let codex = identity(r#"{"agent":"codex"}"#);
    assert_eq!((codex.name.as_str(), codex.version.as_deref()), ("builder", Some("1.0")));
    assert_eq!(codex.command_hash, identity(r#"{"agent":"codex","env":["A"]}"#).command_hash);
    assert_ne!(codex.command_hash, identity(r#"{"command":["codex"]}"#).command_hash);
}
