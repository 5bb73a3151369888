//! Differences of real worktrees.

use rekindle_domain::event::DirtyPolicy;

use super::*;
use crate::workspaces::session_worktree::lab::Lab;

#[test]
fn everything_since_it_parted_is_told_and_nothing_is_written() {
    let Some(lab) = Lab::new() else { return };
    let one = lab.wanted("one", DirtyPolicy::Refuse);
    let began = lab.add(&one).expect("made").commit;
    let scratch = lab.0.place().join("home/merging/one");
    let diff = |with_text: bool| {
        let diff = lab.0.workspaces.diff_session_worktree(&one, Some(&began), (&scratch, with_text));
        assert!(!scratch.exists(), "nothing is left of it");
        diff.expect("told")
    };
    let none = diff(true);
    assert_eq!((none.total, none.commits, none.text.as_deref(), none.is_cut), (0, 0, Some(""), false));
    lab.write(&one, "below/file", "one\ntwo\n");
    lab.commit(&one, "work");
    lab.write(&one, "a new\tfile", "not committed\n");
    lab.write(&one, "some.log", "ignored");
    std::fs::write(Path::new(&one.directory).join("noise"), [0, 159, 146, 150]).expect("written");
    // The original goes on meanwhile: that is none of its differences.
    lab.0.write("gone", "by a person");
    lab.0.commit("by a person");
    let objects = || lab.0.git(&["count-objects", "-v"]);
    let (objects_before, status) = (objects(), lab.git(&one, &["status", "--porcelain"]));
    let told = diff(true);
    assert_eq!((objects(), lab.git(&one, &["status", "--porcelain"])), (objects_before, status));
    assert_eq!((told.base.as_str(), told.commits, told.uncommitted, told.total), (began.as_str(), 1, 2, 3));
    assert_eq!((told.lines_added, told.lines_removed), (3, 1));
    let file = |path: &str, lines| FileDiff { path: path.to_owned(), lines };
    let files = [file("a new\tfile", Some((1, 0))), file("below/file", Some((2, 1))), file("noise", None)];
    assert_eq!(told.files, files);
    let text = told.text.expect("wanted");
    assert!(
        text.contains("+not committed") && text.contains("+two") && !text.contains("by a person"),
        "{text}"
    );
    assert_eq!(diff(false).text, None);
    // A long one is cut, in whole lines.
    lab.write(&one, "long", &"0123456789abcde\n".repeat(80_000));
    let long = diff(true);
    assert!(
        long.is_cut
            && long.text.is_some_and(|text| text.ends_with("0123456789abcde\n") && text.len() <= 1 << 20)
    );
    assert_eq!(long.total, 4);
}
