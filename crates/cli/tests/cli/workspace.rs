//! `rekindle workspace`: snapshots of a directory, whatever is in it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rekindle_store::layout::Layout;
use serde_json::Value;

use crate::support::{Home, code, stderr, stdout};

/// Makes the directory that is worked in, beside the home.
fn work(home: &Home) -> PathBuf {
    let work = home.path().with_file_name("work");
    fs::create_dir(&work).expect("a directory");
    work
}

/// Runs a command that must fail and returns what it says.
fn refused(home: &Home, args: &[&str]) -> Value {
    let output = home.run(&[args, &["--json"]].concat());
    assert_eq!(code(&output), 1, "{args:?}: {}", stdout(&output));
    serde_json::from_str(&stderr(&output)).expect("JSON")
}

/// A directory with what a project has: tracked, ignored, linked, executable, empty.
fn project(at: &Path) {
    fs::create_dir_all(at.join("src/deep")).expect("a directory");
    fs::create_dir_all(at.join("empty")).expect("a directory");
    fs::create_dir_all(at.join("target")).expect("a directory");
    fs::write(at.join(".gitignore"), "target/\n").expect("written");
    fs::write(at.join("src/main.rs"), "fn main() {}\n").expect("written");
    fs::write(at.join("src/deep/data.bin"), [0u8, 159, 146, 150]).expect("written");
    fs::write(at.join("target/built"), "not kept").expect("written");
    fs::write(at.join("run.sh"), "#!/bin/sh\n").expect("written");
    fs::set_permissions(at.join("run.sh"), PermissionsExt::from_mode(0o755)).expect("a mode");
    symlink("src/main.rs", at.join("entry")).expect("a link");
}

#[test]
fn a_snapshot_is_taken_listed_shown_and_compared() {
    let home = Home::empty();
    let work = work(&home);
    project(&work);
    let path = work.to_str().expect("a path");

    let none = home.ok(&["workspace", "ls"]);
    assert!(none.contains("rekindle workspace snapshot takes one"), "{none}");
    let first = home.json(&["workspace", "snapshot", path]);
    assert_eq!((first["files"].as_u64(), first["links"].as_u64()), (Some(4), Some(1)), "{first}");
    let (name, tree) = (first["snapshot"].as_str().expect("a name"), first["tree"].as_str().expect("a hash"));
    assert!(name.starts_with("snap-") && tree.starts_with(&name[5..]) && tree.len() == 64, "{first}");
    // Nothing changed: the same snapshot, and nothing is kept twice.
    let again = home.json(&["workspace", "snapshot", path]);
    assert_eq!(again["tree"], tree);
    let listed = home.json(&["workspace", "ls"]);
    assert_eq!(listed["snapshots"].as_array().expect("a list").len(), 1, "{listed}");
    assert!(home.ok(&["workspace", "ls"]).contains(name));

    let shown = home.json(&["workspace", "show", name]);
    let paths: Vec<&str> = shown["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| entry["path"].as_str().expect("a path"))
        .collect();
    for kept in [".gitignore", "empty", "entry", "run.sh", "src", "src/deep/data.bin", "src/main.rs"] {
        assert!(paths.contains(&kept), "{kept} in {paths:?}");
    }
    assert!(!paths.iter().any(|path| path.starts_with("target")), "{paths:?}");
    let script = shown["entries"].as_array().expect("entries").iter().find(|entry| entry["path"] == "run.sh");
    assert_eq!(script.expect("an entry")["mode"], "0755");
    assert!(home.ok(&["workspace", "show", name]).contains("entry -> src/main.rs"));

    fs::write(work.join("src/main.rs"), "fn main() {\n    work();\n}\n").expect("written");
    fs::remove_file(work.join("run.sh")).expect("removed");
    fs::write(work.join("new.txt"), "one\ntwo\n").expect("written");
    fs::write(work.join("target/more"), "not kept either").expect("written");
    let diff = home.json(&["workspace", "diff", name, "--directory", path]);
    let changes: Vec<(&str, &str, Option<u64>)> = diff["files"]
        .as_array()
        .expect("files")
        .iter()
        .map(|file| {
            let text = |field: &str| file[field].as_str().unwrap_or_default();
            (text("path"), text("change"), file["lines_added"].as_u64())
        })
        .collect();
    assert_eq!(
        changes,
        [("new.txt", "added", Some(2)), ("run.sh", "deleted", Some(0)), ("src/main.rs", "modified", Some(3))]
    );
    let unified = home.ok(&["workspace", "diff", name, "--directory", path]);
    assert!(unified.contains("+    work();\n") && unified.contains("deleted file mode 100755"), "{unified}");
    let stat = home.ok(&["workspace", "diff", name, "--stat", "--directory", path]);
    assert!(stat.contains("3 files, +5 −2 lines"), "{stat}");
    // What was only compared is not kept by name.
    let listed = home.json(&["workspace", "ls"]);
    assert_eq!(listed["snapshots"].as_array().expect("a list").len(), 1, "{listed}");
    let second = home.json(&["workspace", "snapshot", path]);
    let between = home.json(&["workspace", "diff", name, second["snapshot"].as_str().expect("a name")]);
    assert_eq!(between["files"], diff["files"]);
}

#[test]
fn a_name_that_stands_for_nothing_says_what_to_do() {
    let home = Home::empty();
    let work = work(&home);
    fs::write(work.join("a"), "a").expect("written");
    let path = work.to_str().expect("a path");
    let taken = home.json(&["workspace", "snapshot", path]);
    for (name, code) in
        [("snap-00000000", "snap_not_found"), ("yesterday", "snap_invalid"), ("snap-", "snap_invalid")]
    {
        let told = refused(&home, &["workspace", "show", name]);
        assert_eq!(told["error"]["code"], code, "{told}");
        assert!(told["error"]["hint"].as_str().expect("a hint").contains("workspace ls"), "{told}");
    }
    let gone = refused(&home, &["workspace", "snapshot", work.join("nowhere").to_str().expect("a path")]);
    assert_eq!(gone["error"]["code"], "capture_failed", "{gone}");

    // A manifest that is damaged is made again from its tree; one of a newer version is left alone.
    let tree = taken["tree"].as_str().expect("a hash");
    let manifest = home.path().join(format!("workspaces/{tree}.manifest.json"));
    fs::write(&manifest, "{").expect("written");
    let listed = home.json(&["workspace", "ls"]);
    assert_eq!(
        (&listed["snapshots"][0]["tree"], &listed["snapshots"][0]["files"]),
        (&taken["tree"], &1.into())
    );
    fs::write(&manifest, format!(r#"{{"version":9,"tree":"{tree}","files":1,"bytes":1}}"#)).expect("written");
    assert_eq!(refused(&home, &["workspace", "show", tree])["error"]["code"], "manifest_version");
}

#[test]
fn a_directory_is_restored_and_the_way_back_restores_it_again() {
    let home = Home::empty();
    let work = work(&home);
    project(&work);
    let path = work.to_str().expect("a path");
    let name = |json: &Value, field: &str| json[field].as_str().expect("a name").to_owned();
    let before = home.json(&["workspace", "snapshot", path]);

    fs::write(work.join("src/main.rs"), "broken").expect("written");
    fs::remove_dir_all(work.join("src/deep")).expect("removed");
    fs::remove_file(work.join("entry")).expect("removed");
    fs::create_dir_all(work.join("entry/inside")).expect("a directory");
    fs::write(work.join("entry/inside/file"), "in the way").expect("written");
    fs::set_permissions(work.join("run.sh"), PermissionsExt::from_mode(0o644)).expect("a mode");
    fs::write(work.join("target/built"), "still not kept").expect("written");
    let after = home.json(&["workspace", "snapshot", path]);

    let told =
        home.json(&["workspace", "restore", &name(&before, "snapshot"), "--dry-run", "--directory", path]);
    assert!(told["files"].as_array().is_some_and(|files| files.len() >= 4), "{told}");
    assert_eq!(fs::read(work.join("src/main.rs")).expect("a file"), b"broken", "nothing was changed");
    let restored = home.json(&["workspace", "restore", &name(&before, "snapshot"), "--directory", path]);
    assert_eq!(
        (&restored["tree"], &restored["left"]),
        (&before["tree"], &Value::Array(Vec::new())),
        "{restored}"
    );
    assert_eq!(restored["undo"], after["tree"], "{restored}");
    assert_eq!(home.json(&["workspace", "snapshot", path])["tree"], before["tree"]);
    assert_eq!(fs::read_link(work.join("entry")).expect("a link"), Path::new("src/main.rs"));
    assert_eq!(fs::read(work.join("target/built")).expect("a file"), b"still not kept", "ignored files stay");

    let back =
        home.ok(&["workspace", "restore", &name(&restored, "undo_snapshot"), "--yes", "--directory", path]);
    assert!(back.contains("to undo it: rekindle workspace restore snap-"), "{back}");
    assert_eq!(home.json(&["workspace", "snapshot", path])["tree"], after["tree"]);
    assert!(fs::read_dir(home.path().join("workspaces/restoring")).expect("a directory").next().is_none());
    // Nothing is left to do, and what is not there is not asked for.
    let again = home.json(&["workspace", "restore", &name(&after, "snapshot"), "--directory", path]);
    assert_eq!(again["done"], Value::Array(Vec::new()), "{again}");
}

// I14: whoever comes second changes nothing, and is told what to do.
#[test]
fn a_directory_that_somebody_else_restores_is_left_alone() {
    let home = Home::empty();
    let work = work(&home);
    fs::write(work.join("a"), "then").expect("written");
    let path = work.to_str().expect("a path");
    let then = home.json(&["workspace", "snapshot", path]);
    let snapshot = then["snapshot"].as_str().expect("a name");
    fs::write(work.join("a"), "now").expect("written");
    let key = Layout::new(home.path()).restore_lock(&work.canonicalize().expect("a path"));
    fs::create_dir_all(key.parent().expect("a directory")).expect("made");
    // As another process has it.
    let lock = fs::File::create(&key).expect("made");
    lock.lock().expect("locked");
    let told = refused(&home, &["workspace", "restore", snapshot, "--directory", path]);
    assert_eq!(told["error"]["code"], "restore_running", "{told}");
    assert!(told["error"]["hint"].as_str().is_some_and(|hint| hint.contains("run the same command again")));
    assert_eq!(fs::read(work.join("a")).expect("a file"), b"now");
    drop(lock);
    home.json(&["workspace", "restore", snapshot, "--directory", path]);
    assert_eq!(fs::read(work.join("a")).expect("a file"), b"then");
    assert!(!key.exists());
}

#[test]
fn old_snapshots_are_let_go_and_younger_ones_stay() {
    let home = Home::empty();
    let work = work(&home);
    fs::write(work.join("a"), "a").expect("written");
    let path = work.to_str().expect("a path");
    let old = home.json(&["workspace", "snapshot", path]);
    fs::write(work.join("a"), "another").expect("written");
    let young = home.json(&["workspace", "snapshot", path]);
    let manifest =
        home.path().join(format!("workspaces/{}.manifest.json", old["tree"].as_str().expect("a hash")));
    let long_ago = SystemTime::now() - Duration::from_secs(40 * 24 * 60 * 60);
    fs::File::options().write(true).open(&manifest).expect("a file").set_modified(long_ago).expect("a time");

    let told = home.json(&["workspace", "gc", "--dry-run"]);
    assert_eq!(told["expired"][0]["tree"], old["tree"], "{told}");
    assert!(manifest.exists(), "only told");
    let kept = home.json(&["workspace", "gc", "--older-than", "60d"]);
    assert_eq!(kept["expired"], Value::Array(Vec::new()), "{kept}");
    let gone = home.json(&["workspace", "gc"]);
    assert_eq!(gone["expired"].as_array().map(Vec::len), Some(1), "{gone}");
    let listed = home.json(&["workspace", "ls"]);
    assert_eq!(listed["snapshots"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed["snapshots"][0]["tree"], young["tree"]);
}

// I12
#[test]
fn a_byte_of_a_pack_that_somebody_changed_is_found_and_named() {
    let home = Home::empty();
    let work = work(&home);
    for index in 0..20 {
        fs::write(work.join(format!("f{index}")), format!("{index} ").repeat(50)).expect("written");
    }
    home.ok(&["workspace", "snapshot", work.to_str().expect("a path")]);
    let report = home.json(&["doctor"]);
    assert_eq!((&report["errors"], &report["warnings"]), (&0.into(), &0.into()), "{report}");
    let packs = home.path().join("blobs/packs");
    let pack = fs::read_dir(&packs)
        .expect("packs")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|extension| extension == "pack"))
        .expect("a pack");
    let mut bytes = fs::read(&pack).expect("a pack");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&pack, &bytes).expect("written");
    let output = home.run(&["doctor"]);
    assert_eq!(code(&output), 1, "{}", stdout(&output));
    let told = stdout(&output);
    let name = pack.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(told.contains(&name), "{told}");
}

// I14: a real kill at every step: the same command ends right, the way back is that of the first attempt, and it leads back.
#[test]
fn a_restore_that_is_killed_at_any_step_is_finished_by_the_next_one() {
    let home = Home::empty();
    let work = work(&home);
    project(&work);
    let path = work.to_str().expect("a path");
    let name = |of: &Value, field: &str| of[field].as_str().expect("a text").to_owned();
    let then = home.json(&["workspace", "snapshot", path]);
    // Something of everything: written, removed, a directory made and one gone, a link, a mode.
    fs::write(work.join("src/main.rs"), "broken").expect("written");
    fs::write(work.join("new.txt"), "new").expect("written");
    fs::remove_dir_all(work.join("src/deep")).expect("removed");
    fs::create_dir(work.join("src/other")).expect("made");
    fs::write(work.join("src/other/file"), "other").expect("written");
    fs::remove_file(work.join("entry")).expect("removed");
    fs::set_permissions(work.join("run.sh"), PermissionsExt::from_mode(0o644)).expect("a mode");
    let (wanted, elsewhere, mut kills) = (name(&then, "snapshot"), Home::empty(), 0);
    loop {
        // Another tree each time, which this home does not keep yet.
        fs::write(work.join("new.txt"), format!("new {kills}")).expect("written");
        let now = elsewhere.json(&["workspace", "snapshot", path]);
        let mut command = home.command(&["workspace", "restore", &wanted, "--yes", "--directory", path]);
        let first = command.env("REKINDLE_CRASH_AT", format!("restore.step#{}", kills + 1)).output();
        let first = first.expect("it runs");
        if first.status.signal() != Some(9) {
            assert_eq!(code(&first), 0, "{}", stderr(&first));
            break;
        }
        kills += 1;
        let again = home.json(&["workspace", "restore", &wanted, "--directory", path]);
        assert_eq!(
            home.json(&["workspace", "snapshot", path])["tree"],
            then["tree"],
            "kill {kills}: {again}"
        );
        // Kept by name, whoever was told of it.
        let listed = home.json(&["workspace", "ls"]);
        let is_kept = |kept: &Value| kept["tree"] == now["tree"];
        assert!(listed["snapshots"].as_array().is_some_and(|all| all.iter().any(is_kept)), "kill {kills}");
        // Unless it was over but for the last word the one that finishes it knows the way back.
        let is_over = again["done"] == Value::Array(Vec::new()) && again["resumed"] == false;
        assert!(is_over || again["undo"] == now["tree"], "kill {kills}: {again}");
        home.json(&["workspace", "restore", &name(&now, "tree"), "--directory", path]);
        assert_eq!(home.json(&["workspace", "snapshot", path])["tree"], now["tree"], "kill {kills}");
    }
    assert!(kills > 15, "{kills} steps");
    assert!(fs::read_dir(home.path().join("workspaces/restoring")).expect("a directory").next().is_none());
    home.ok(&["doctor"]);
}
