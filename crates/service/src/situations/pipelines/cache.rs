//! Results that runs share: used where nothing of anybody is lost, made once by whoever comes first, and believed only if they are whole.

use std::path::PathBuf;

use rekindle_domain::event::OnDrift;
use rekindle_domain::id::PipelineId;
use rekindle_domain::pipeline::RunStatus;
use rekindle_store::disk::{Disk, OpenMode, read_all, replace, write_all_at};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind};

use super::courses::{APPROVES, PASSES, ROUND, WRITES};
use super::home::{CONFIG, Home, new_run};
use crate::drive::workspace_files::FilesError;
use crate::lock::locked;
use crate::pipelines::{NewRun, ResumeRun};

/// What a run is whose results are all there.
const CACHED: &str = "started; intend implement-1; finish implement-1 completed; intend review-1; finish review-1 approved; intend verify-1; \
     finish verify-1 completed; completed";

fn shared() -> String {
    CONFIG.replace(r#""name":"#, r#""cache":true,"name":"#)
}

/// Makes a home in which a run has gone through all stages, and puts the files back.
fn after_a_run(lives: &[&'static str]) -> Home {
    let mut home = Home::new(lives);
    home.start(new_run(&shared())).expect("started");
    home.settle();
    assert_eq!(home.course(), ROUND);
    home.edit("code", Some("0"));
    home
}

fn second_run(home: &mut Home, new: NewRun) -> &mut Home {
    home.start(new).expect("started");
    home.settle().wait_long()
}

fn cached(home: &Home) -> Vec<bool> {
    home.state().steps().map(|step| step.result.as_ref().is_some_and(|result| result.cached)).collect()
}

/// The files of the cache.
fn files(home: &Home) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for agent in home.disk.list("/home/cache".as_ref()).unwrap_or_default() {
        let directory = PathBuf::from("/home/cache").join(agent.name);
        found.extend(
            home.disk.list(&directory).expect("listed").into_iter().map(|file| directory.join(file.name)),
        );
    }
    found.sort();
    found
}

fn file_of(home: &Home, agent: &str) -> PathBuf {
    let of_agent = |file: &PathBuf| file.parent().is_some_and(|above| above.ends_with(agent));
    files(home).into_iter().find(of_agent).expect("a file")
}

#[test]
fn what_one_run_came_to_another_has_without_an_agent() {
    let mut home = after_a_run(&[WRITES, APPROVES, PASSES]);
    let first = home.state();
    let names: Vec<PathBuf> = files(&home);
    assert_eq!(names.len(), 3);
    assert!(
        ["builder", "check", "reviewer"]
            .iter()
            .zip(&names)
            .all(|(agent, file)| file.parent().is_some_and(|above| above.ends_with(agent)))
    );
    second_run(&mut home, new_run(&shared()));
    assert_eq!((home.course().as_str(), home.scripted.started()), (CACHED, 3));
    assert_eq!(cached(&home), [true; 3]);
    assert_eq!(home.trees.read("code").as_deref(), Some("1"), "as the first run left it");
    let state = home.state();
    for (one, other) in first.steps().zip(state.steps()) {
        let [one, other] = [one, other].map(|step| step.result.clone().expect("finished"));
        assert_eq!((one.outcome, one.payload, one.to), (other.outcome, other.payload, other.to));
        assert_eq!(other.usage, None);
    }
    assert_eq!((state.counts.commands, state.counts.terminal_events), (0, 0));
    // What was cached is not kept again, and whose it is stays so.
    assert!(names.iter().all(|file| {
        let text = read_all(&home.disk, file, 1 << 20).expect("read");
        String::from_utf8_lossy(&text)
            .contains(&rekindle_domain::id::RunName::of(first.id).expect("a name").to_string())
    }));
}

#[test]
fn a_role_that_is_called_otherwise_keeps_its_results() {
    let mut home = after_a_run(&[WRITES, APPROVES, PASSES]);
    second_run(
        &mut home,
        new_run(
            &shared()
                .replace(r#""builder":{"#, r#""maker":{"#)
                .replace(r#""agent":"builder""#, r#""agent":"maker""#),
        ),
    );
    assert_eq!(home.course(), CACHED);
}

#[test]
fn who_wants_no_results_of_others_gets_none() {
    let again = &[WRITES, APPROVES, PASSES, WRITES, APPROVES, PASSES, WRITES, APPROVES, PASSES];
    let mut home = after_a_run(again);
    second_run(&mut home, NewRun { no_cache: true, ..new_run(&shared()) });
    assert_eq!((home.course().as_str(), home.scripted.started()), (ROUND, 6));
    home.edit("code", Some("0"));
    // One whose stages do not say that they share uses nothing either.
    second_run(&mut home, new_run(CONFIG));
    assert_eq!((home.course().as_str(), home.scripted.started()), (ROUND, 9));
}

#[test]
fn a_resume_may_want_no_results_of_others() {
    let mut home = after_a_run(&[WRITES, APPROVES, PASSES, WRITES, APPROVES, PASSES]);
    home.start(new_run(&shared())).expect("started");
    // It rests because of its files.
    home.edit("code", Some("mine"));
    home.settle();
    assert!(home.course().ends_with("drift stop"), "{}", home.course());
    let asked = ResumeRun { on_drift: Some(OnDrift::Restore), no_cache: true, ..ResumeRun::default() };
    home.resume(asked).expect("it goes on");
    home.wait_long();
    assert!(home.course().ends_with("completed") && cached(&home) == [false; 3], "{}", home.course());
}

#[test]
fn a_file_that_is_not_whole_is_passed_over_and_replaced() {
    type Damage = fn(&[u8]) -> Vec<u8>;
    let damages: [Damage; 4] = [
        |_| Vec::new(),
        |_| b"rubbish".to_vec(),
        |whole| whole[..whole.len() / 2].to_vec(),
        |whole| whole.iter().map(|byte| if *byte == b'7' { b'8' } else { *byte }).collect(),
    ];
    for damage in damages {
        let mut home = after_a_run(&[WRITES, APPROVES, PASSES, WRITES]);
        let file = file_of(&home, "builder");
        let whole = read_all(&home.disk, &file, 1 << 20).expect("read");
        let opened = home.disk.open(&file, OpenMode::Replace).expect("open");
        write_all_at(&*opened, &damage(&whole), 0).expect("written");
        drop(opened);
        second_run(&mut home, new_run(&shared()));
        assert_eq!(
            (home.scripted.started(), cached(&home)),
            (4, vec![false, true, true]),
            "{}",
            home.course()
        );
        home.edit("code", Some("0"));
        second_run(&mut home, new_run(&shared()));
        assert_eq!(home.course(), CACHED, "it was replaced");
    }
}

#[test]
fn a_result_of_another_key_under_this_name_is_not_used() {
    let mut home = after_a_run(&[WRITES, APPROVES, PASSES, WRITES]);
    let [builder, other] = ["builder", "reviewer"].map(|agent| file_of(&home, agent));
    let foreign = read_all(&home.disk, &other, 1 << 20).expect("read");
    replace(&home.disk, &builder, &foreign).expect("written");
    second_run(&mut home, new_run(&shared()));
    assert_eq!(cached(&home), [false, true, true], "{}", home.course());
}

#[test]
fn a_result_whose_files_are_gone_is_made_again() {
    let mut home = after_a_run(&[WRITES, APPROVES, PASSES, WRITES]);
    home.trees.forget();
    second_run(&mut home, new_run(&shared()));
    assert_eq!(cached(&home), [false, true, true], "{}", home.course());
    // Some of what is in its tree cannot be read: that is found before a file is touched.
    let mut home = after_a_run(&[WRITES, APPROVES, PASSES, WRITES]);
    locked(&home.trees.errors).push(FilesError::Failed("a content is not there".into()));
    second_run(&mut home, new_run(&shared()));
    assert_eq!(cached(&home), [false, true, true], "{}", home.course());
}

#[test]
fn what_failed_is_done_again() {
    let mut home = Home::new(&["text no", WRITES, APPROVES, PASSES]);
    home.start(new_run(&shared())).expect("started");
    home.settle();
    assert!(home.course().ends_with("finish implement-1 failed; failed") && files(&home).is_empty());
    second_run(&mut home, new_run(&shared()));
    assert_eq!(home.course(), ROUND);
}

// The order: prove that nobody works there, look whose changes there are, and only then touch files.
#[test]
fn a_change_of_somebody_is_not_taken_back_for_a_result() {
    let mut home = after_a_run(&[WRITES, APPROVES, PASSES]);
    home.start(new_run(&shared())).expect("started");
    home.edit("notes", Some("mine"));
    home.settle();
    assert!(home.course().ends_with("intend implement-1; drift stop"), "{}", home.course());
    assert_eq!(home.trees.read("notes").as_deref(), Some("mine"));
    home.resume_with(OnDrift::Restore).expect("it goes on");
    home.wait_long();
    assert_eq!(
        (home.state().status, cached(&home)),
        (RunStatus::Completed, vec![true; 3]),
        "{}",
        home.course()
    );
}

/// Two runs that come to the same step at the same time, each in a directory of its own.
fn two_at_once(lives: &[&'static str]) -> (Home, [PipelineId; 2]) {
    let mut home = Home::new(lives);
    let place = |directory: &str| NewRun { working_dir: directory.into(), ..new_run(&shared()) };
    let first = home.start(place("/tmp")).expect("started");
    home.settle();
    let second = home.start(place("/usr")).expect("started");
    (home, [first, second])
}

#[test]
fn the_same_key_at_once_is_made_once_and_both_get_it() {
    for restarts in [false, true] {
        let (mut home, [first, second]) = two_at_once(&["hang writes:code:1 end", APPROVES, PASSES]);
        home.settle();
        if restarts {
            home.restart();
        }
        home.run = second;
        assert_eq!(home.course(), "started; intend implement-1");
        let name = rekindle_domain::id::RunName::of(first).expect("a name").to_string();
        assert!(home.held().contains(&name), "{}", home.held());
        let pending = home.pipelines().show(second).expect("shown").pending.expect("a step");
        assert_eq!(pending.why.as_str(), "same_key");
        home.scripted.go_on();
        home.settle().wait_long();
        for run in [first, second] {
            assert_eq!(home.state_of(run).status, RunStatus::Completed, "{}", home.course());
        }
        assert_eq!((home.scripted.started(), cached(&home)), (3, vec![true; 3]), "{}", home.course());
    }
}

#[test]
fn whoever_waits_for_a_result_that_does_not_come_makes_it() {
    // Its agent fails.
    let (mut home, [first, second]) = two_at_once(&["hang no", WRITES, APPROVES, PASSES]);
    home.settle();
    home.scripted.go_on();
    home.settle().wait_long();
    assert_eq!(home.state_of(first).status, RunStatus::Failed);
    home.run = second;
    assert_eq!(
        (home.state().status, cached(&home)),
        (RunStatus::Completed, vec![false; 3]),
        "{}",
        home.course()
    );
    // Somebody ends it.
    let (mut home, [first, second]) = two_at_once(&["hang", WRITES, APPROVES, PASSES]);
    home.settle();
    home.run = first;
    home.abort().expect("aborted");
    home.wait_long();
    home.run = second;
    assert_eq!(home.state().status, RunStatus::Completed, "{}: {}", home.course(), home.held());
}

/// Crashes in a run whose results are there: at any write, with everything written or with what was synced.
#[test]
fn a_daemon_that_dies_over_a_cached_result_is_followed_by_one_that_goes_on() {
    let ready = || {
        let mut home = after_a_run(&[WRITES, APPROVES, PASSES, PASSES]);
        home.start(new_run(&shared())).expect("started");
        home
    };
    let mut whole = ready();
    let before = whole.disk.disk.ops();
    whole.settle();
    assert_eq!(whole.course(), CACHED);
    let writes = whole.disk.disk.ops() - before;
    assert!(writes > 6, "{writes}");
    let mut rng = Rng::new(11);
    for dies_at in 0..writes {
        for is_synced in [false, true] {
            let mut home = ready();
            home.disk.disk.inject(Fault::sticky(FaultKind::ReadOnly, dies_at));
            home.settle().daemon_ends();
            home.disk.disk.clear_faults();
            if is_synced {
                home.disk.disk = home.disk.disk.power_cut(&mut rng);
            }
            home.open();
            home.recover().wait_long();
            let what = format!("write {dies_at}, {is_synced}: {}, {}", home.course(), home.held());
            assert_eq!((home.course().as_str(), home.scripted.started()), (CACHED, 3), "{what}");
            assert_eq!(home.trees.read("code").as_deref(), Some("1"), "{what}");
        }
    }
}

// Dead in the middle of the restore: what lies between the two trees is nobody's change.
#[test]
fn a_restore_of_a_cached_result_that_was_cut_is_finished() {
    let mut home = after_a_run(&[WRITES, APPROVES, PASSES]);
    let to = home.state().steps().next().and_then(|step| step.result.clone()).expect("finished").to;
    home.start(new_run(&shared())).expect("started");
    home.edit("half", Some("of it"));
    *locked(&home.trees.restoring) = Some(to);
    home.settle();
    assert_eq!((home.course().as_str(), home.trees.read("half")), (CACHED, None));
}

/// Crashes of a run whose results are kept for the first time: whatever is lost of that, nobody is held up by it.
#[test]
fn a_daemon_that_dies_over_keeping_a_result_has_finished_its_step() {
    let ready = || {
        // Whichever of them the second run still needs.
        let any = "writes:code:1 says:approved end";
        let mut home = Home::new(&[WRITES, APPROVES, PASSES, any, any, any]);
        home.start(new_run(&shared())).expect("started");
        home
    };
    let mut whole = ready();
    let before = whole.disk.disk.ops();
    whole.settle();
    let writes = whole.disk.disk.ops() - before;
    let mut rng = Rng::new(13);
    for dies_at in (0..writes).step_by(3) {
        let mut home = ready();
        home.disk.disk.inject(Fault::sticky(FaultKind::ReadOnly, dies_at));
        home.settle().daemon_ends();
        home.disk.disk.clear_faults();
        home.disk.disk = home.disk.disk.power_cut(&mut rng);
        home.open();
        home.recover().wait_long();
        let what = format!("write {dies_at}: {}, {}", home.course(), home.held());
        assert_eq!((home.course().as_str(), home.scripted.started()), (ROUND, 3), "{what}");
        home.edit("code", Some("0"));
        let kept =
            files(&home).iter().filter(|file| file.extension().is_some_and(|end| end == "json")).count();
        second_run(&mut home, new_run(&shared()));
        assert_eq!(home.state().status, RunStatus::Completed, "{what}, {kept} kept: {}", home.course());
        assert!(kept < 3 || cached(&home) == [true; 3], "{what}: {}", home.course());
    }
}
