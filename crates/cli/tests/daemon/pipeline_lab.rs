//! Projects with pipelines, and runs of them: what every test needs that has a real daemon carry some out.

use std::fs;

use rekindle_domain::blob_id::BlobId;
use serde_json::{Value, json};

use crate::lab::{Lab, wait_for};
use crate::ran::{Ran, Stdin, ran};

impl Lab {
    /// Writes the project's file, and returns the hash by which it is trusted.
    pub(crate) fn project(&self, text: &str) -> String {
        fs::write(self.path("work/rekindle.toml"), text).expect("written");
        BlobId::of(text.as_bytes()).to_string()
    }

    /// Returns the project's file with one stage, in which the demo agent with these flags does what the goal says.
    pub(crate) fn demo_config(&self, flags: &[&str], goal: &str) -> String {
        format!(
            "version = 1\n[agents.demo]\ncommand = {:?}\nprofile = \"acp\"\n[[tasks]]\nid = \"T-1\"\ngoal = {goal:?}\n\
             [pipelines.default]\n[[pipelines.default.stages]]\nname = \"implement\"\nagent = \"demo\"\nprompt = \"{{{{task.goal}}}}\"\n",
            self.demo(flags)
        )
    }

    /// Writes such a file, and returns the hash by which it is trusted.
    pub(crate) fn demo_project(&self, goal: &str) -> String {
        self.project(&self.demo_config(&[], goal))
    }

    /// Runs `pipeline` with these arguments in the project.
    #[track_caller]
    pub(crate) fn pipeline(&self, arguments: &[&str]) -> Ran {
        let mut command = self.rekindle(&[&["pipeline"], arguments].concat());
        ran(command.current_dir(self.path("work")), Stdin::Nothing)
    }

    /// Starts a run of a project's file, which is trusted with it, as a program would; returns its name.
    #[track_caller]
    pub(crate) fn start_run(&self, config: &str, more: &Value) -> String {
        let trust = self.project(config);
        let mut body = json!({"working_dir": self.path("work"), "tasks": ["T-1"], "trust": trust});
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let made = self.post("/api/pipelines", &body);
        made["pipelines"][0]["run_id"].as_str().expect("a name").to_owned()
    }

    /// Shows a run; none if there is no such run, or if the daemon died over it.
    pub(crate) fn try_show_run(&self, run: &str) -> Option<Value> {
        self.try_get(&format!("/api/pipelines/{run}")).filter(|view| view["run_id"] == run)
    }

    /// Tells whether a run has ended; no, if the daemon died over it.
    pub(crate) fn is_run_over(&self, run: &str) -> bool {
        self.try_show_run(run).is_some_and(|view| view["status"] != "running")
    }

    /// Returns all records of a run's ledger.
    pub(crate) fn ledger(&self, run: &str) -> Vec<Value> {
        let page = self.get(&format!("/api/pipelines/{run}/ledger?limit=1000"));
        page["records"].as_array().expect("records").clone()
    }

    pub(crate) fn pipelines(&self) -> Vec<Value> {
        self.get("/api/pipelines")["pipelines"].as_array().expect("a list").clone()
    }

    #[track_caller]
    pub(crate) fn only_run(&self) -> Value {
        let runs = self.pipelines();
        assert_eq!(runs.len(), 1, "{runs:#?}");
        runs[0].clone()
    }

    /// Waits for what the only run is pending for.
    #[track_caller]
    pub(crate) fn wait_pending(&self, why: &str) -> Value {
        wait_for(why, || Some(self.only_run()).filter(|run| run["pending"]["why"] == why))
    }
}

/// Returns the kinds of records.
pub(crate) fn kinds(records: &[Value]) -> Vec<&str> {
    records.iter().filter_map(|record| record["kind"].as_str()).collect()
}
