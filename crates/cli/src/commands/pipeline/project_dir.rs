//! The project that a command is about: the directory with a `rekindle.toml`, here or above, and what that file says.

use std::path::{Path, PathBuf};

use rekindle_client::Failure;
use rekindle_domain::event::ProjectConfig;
use rekindle_domain::pipeline::builtin::resolved;
use rekindle_project::programs::missing;
use rekindle_project::{FILE, Located};
use rekindle_terminal::output::{self, WARN, styled};
use rekindle_wire::request::{MAX_PROJECT_CONFIG, ProjectFile};

/// Problems of a file that are told at most: whoever has more begins with these.
const TOLD: usize = 20;

/// A project here.
pub(super) struct Project {
    /// Its directory, whole and without links on the way.
    pub(super) root: String,
    /// Its file, as it is written.
    pub(super) file: ProjectFile,
    /// What that says, with what is built in written out.
    pub(super) config: ProjectConfig,
}

/// Finds the project of a directory: its `rekindle.toml` is there, or in one of those above.
pub(super) fn find(directory: &Path) -> Result<Project, Failure> {
    let root = directory.ancestors().find(|above| above.join(FILE).is_file()).ok_or_else(|| {
        let message = format!("there is no {FILE} in {}, nor in any directory above", directory.display());
        Failure::usage("config_missing", message)
            .hint("`rekindle pipeline init` writes one; --cwd DIR names another directory")
    })?;
    read(root)
}

/// Returns the failure that a file is which was named, or is expected here, and is not there.
pub(super) fn no_file(path: &Path) -> Failure {
    let message = match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => format!("there is no {} in {}", name(path), parent.display()),
        None => format!("there is no {} in this directory", name(path)),
    };
    Failure::usage("config_missing", message).hint("`rekindle pipeline init` writes one into this directory")
}

fn name(path: &Path) -> std::path::Display<'_> {
    path.file_name().map_or(path, Path::new).display()
}

/// Says on stderr what may keep a file that is right from being carried out.
pub(super) fn warn(path: &Path, warnings: &[Located]) {
    for warning in warnings {
        let text = output::for_stderr(&format!("warning: {}", warning.text(path)));
        // Styles come last: they take no columns, but would be counted.
        anstream::eprintln!("{}", text.replacen("warning:", &styled(WARN, "warning:"), 1));
    }
}

/// Reads the file of a project's directory.
fn read(root: &Path) -> Result<Project, Failure> {
    let path = root.join(FILE);
    let unreadable = |why: String| {
        Failure::usage("config_unreadable", format!("{} cannot be read: {why}", path.display()))
    };
    let whole = |path: &Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| unreadable("its path is not valid UTF-8".into()))
    };
    let size = path.metadata().map_err(|error| unreadable(error.to_string()))?.len();
    if size > MAX_PROJECT_CONFIG as u64 {
        return Err(unreadable(format!("it is larger than {MAX_PROJECT_CONFIG} bytes")));
    }
    let bytes = std::fs::read(&path).map_err(|error| unreadable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        unreadable("it is not valid UTF-8".into())
            .hint("`rekindle pipeline validate` says where; save it as UTF-8")
    })?;
    let config = rekindle_project::check(&text).map_err(|problems| invalid(&path, &problems))?;
    let file = ProjectFile { path: whole(&path)?, text };
    Ok(Project { root: whole(root)?, file, config: resolved(config) })
}

/// Says what is wrong with a file.
fn invalid(path: &Path, problems: &[Located]) -> Failure {
    let mut told: Vec<String> = problems.iter().take(TOLD).map(|problem| problem.text(path)).collect();
    if problems.len() > TOLD {
        told.push(format!("and {} more", problems.len() - TOLD));
    }
    Failure::usage("config_invalid", told.join("\n"))
        .hint("fix it and try again; nothing was started. `rekindle pipeline validate` checks it")
}

/// Returns the directory that is meant, without links on the way.
pub(super) fn directory(named: Option<&Path>) -> Result<PathBuf, Failure> {
    crate::session_options::directory(Some(named.unwrap_or(Path::new("."))), true).map(PathBuf::from)
}

impl Project {
    /// Returns the task that is meant where none is named: the only one there is.
    pub(super) fn only_task(&self) -> Result<String, Failure> {
        match self.config.tasks.as_slice() {
            [only] => Ok(only.id.clone()),
            [] => Err(Failure::usage("task_missing", format!("{} has no task", self.file.path))
                .hint("describe what is to be done in [[tasks]]; `rekindle pipeline init` shows how")),
            several => {
                let ids: Vec<&str> = several.iter().map(|task| task.id.as_str()).collect();
                Err(Failure::usage("no_task", "there are several tasks: name one".into())
                    .hint(format!("use --task with one of {}", ids.join(", "))))
            }
        }
    }

    /// Warns of programs of a pipeline that are not on PATH here; the daemon's may be another.
    pub(super) fn warn_of_programs(&self, pipeline: &str) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        warn(Path::new(FILE), &missing(&self.file.text, &self.config, &path, Some(pipeline)));
    }

    /// Says so if there is no such task, or no such pipeline.
    pub(super) fn check(&self, tasks: &[String], pipeline: &str) -> Result<(), Failure> {
        let listed = |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        for task in tasks {
            if self.config.task(task).is_none() {
                let there = self.config.tasks.iter().map(|task| task.id.as_str()).collect();
                return Err(Failure::usage(
                    "task_missing",
                    format!("{} has no task {task:?}", self.file.path),
                )
                .hint(format!("there are: {}", listed(there))));
            }
        }
        if !self.config.pipelines.contains_key(pipeline) {
            let there = self.config.pipelines.keys().map(String::as_str).collect();
            let message = format!("{} has no pipeline {pipeline:?}", self.file.path);
            return Err(
                Failure::usage("pipeline_missing", message).hint(format!("there are: {}", listed(there)))
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE_TEXT: &str = "version = 1\n[agents.builder]\nagent = \"claude\"\n[agents.reviewer]\nagent = \"codex\"\n\
                             [[tasks]]\nid = \"T-1\"\ngoal = \"g\"\n";

    fn project(text: &str) -> (tempfile::TempDir, Result<Project, Failure>) {
        let place = tempfile::tempdir().expect("a directory");
        std::fs::write(place.path().join(FILE), text).expect("written");
        std::fs::create_dir_all(place.path().join("a/b")).expect("made");
        let found = find(&place.path().join("a/b"));
        (place, found)
    }

    #[test]
    fn the_nearest_file_above_is_the_project_s() {
        let (place, found) = project(FILE_TEXT);
        let found = found.expect("a project");
        assert_eq!(Path::new(&found.root), place.path());
        assert_eq!(
            (found.file.text.as_str(), Path::new(&found.file.path)),
            (FILE_TEXT, &*place.path().join(FILE))
        );
        assert_eq!(found.only_task().expect("one"), "T-1");
        found.check(&["T-1".into()], "default").expect("both are there");
        let failure = found.check(&["T-2".into()], "default").expect_err("no such task");
        assert_eq!(
            (failure.code(), failure.to_json()["error"]["hint"].as_str()),
            ("task_missing", Some("there are: T-1"))
        );
        assert_eq!(found.check(&[], "quick").expect_err("no such pipeline").code(), "pipeline_missing");
        std::fs::write(place.path().join("a").join(FILE), "version = 2\n").expect("written");
        let failure = find(&place.path().join("a/b")).err().expect("the nearest is wrong");
        assert_eq!(failure.code(), "config_invalid");
        assert!(failure.message().contains("rekindle.toml:1:11: version"), "{}", failure.message());
    }

    #[test]
    fn a_task_is_named_where_there_are_several_or_none() {
        let (_place, found) = project(&format!("{FILE_TEXT}[[tasks]]\nid = \"T-2\"\ngoal = \"g\"\n"));
        assert_eq!(found.expect("a project").only_task().expect_err("two").code(), "no_task");
        let none = FILE_TEXT.split("[[tasks]]").next().expect("the beginning");
        assert_eq!(project(none).1.expect("a project").only_task().expect_err("none").code(), "task_missing");
    }
}
