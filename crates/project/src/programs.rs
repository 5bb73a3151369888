//! Programs that a file names and that are not here: a warning before anything begins, since whoever runs them may have another PATH.

use std::ffi::OsStr;
use std::path::Path;

use rekindle_agent::find::{is_executable, which};
use rekindle_domain::event::{PipelineConfig, ProjectConfig};
use rekindle_domain::pipeline::validate::{Place, Segment};
use toml::de::DeTable;

use crate::check::Located;
use crate::spans;

/// Returns the programs of checks and of agents' commands that are not found on a search path, where the file names them: those of one
/// pipeline, or of all. The text is one that was checked.
pub fn missing(text: &str, config: &ProjectConfig, path: &OsStr, pipeline: Option<&str>) -> Vec<Located> {
    let (table, _) = DeTable::parse_recoverable(text);
    let pipelines: Vec<(&String, &PipelineConfig)> =
        config.pipelines.iter().filter(|(name, _)| pipeline.is_none_or(|wanted| wanted == *name)).collect();
    let mut named: Vec<(String, Place, &str)> = Vec::new();
    for (name, agent) in &config.agents {
        let works = pipelines
            .iter()
            .flat_map(|(_, pipeline)| &pipeline.stages)
            .any(|stage| stage.agent.as_ref() == Some(name));
        if let Some(program) = agent.command.as_ref().and_then(|words| words.first()).filter(|_| works) {
            named.push((format!("agent {name}"), place(&["agents", name], None, "command"), program));
        }
    }
    for (name, pipeline) in &pipelines {
        for (index, stage) in pipeline.stages.iter().enumerate() {
            if let Some(program) = stage.check.as_ref().and_then(|words| words.first()) {
                let place = place(&["pipelines", name, "stages"], Some(index), "check");
                named.push((format!("stage {}", stage.name), place, program));
            }
        }
    }
    let lacking = named.into_iter().filter(|(_, _, program)| is_missing(program, path));
    let mut found: Vec<Located> = lacking
        .map(|(who, place, program)| {
            let what = match program.starts_with('/') {
                true => format!("{who}: there is no program {program:?}"),
                false => format!("{who}: there is no program {program:?} on PATH"),
            };
            Located::new(text, spans::of(table.get_ref(), &place).start, None, what)
        })
        .collect();
    found.sort_by_key(|located| (located.line, located.column));
    found
}

/// Tells whether a program is certainly not here. What a template names nobody knows yet, and what is in the directory an earlier stage
/// may make.
fn is_missing(program: &str, path: &OsStr) -> bool {
    if program.contains("{{") {
        return false;
    }
    match (program.starts_with('/'), program.contains('/')) {
        (true, _) => !is_executable(Path::new(program)),
        (false, true) => false,
        (false, false) => which(program, path).is_none(),
    }
}

/// Returns the place of the first word of a command.
fn place(keys: &[&str], index: Option<usize>, last: &str) -> Place {
    let keys = keys.iter().map(|key| Segment::Key((*key).to_owned()));
    let command = [Segment::Key(last.to_owned()), Segment::Index(0)];
    Place(keys.chain(index.map(Segment::Index)).chain(command).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::check;

    const FILE: &str = r#"version = 1
[agents.builder]
agent = "claude"
[agents.own]
command = ["my-agent", "acp"]
profile = "acp"
[agents.unused]
command = ["nowhere"]
profile = "acp"
[pipelines.default]
stages = [{ name = "implement", agent = "own", prompt = "p" }, { name = "verify", check = ["tru"] }]
[pipelines.other]
[[pipelines.other.stages]]
name = "lint"
check = [
  "/not/there",
]
[[pipelines.other.stages]]
name = "own"
check = ["./made-by-a-stage"]
[[pipelines.other.stages]]
name = "here"
check = ["here", "tru"]
"#;

    fn told(path: &OsStr, pipeline: Option<&str>) -> Vec<String> {
        let config = check(FILE).expect("it is right");
        let missing = missing(FILE, &config, path, pipeline);
        missing.iter().map(|located| located.text(Path::new("r.toml"))).collect()
    }

    #[test]
    fn programs_that_are_not_here_are_named_by_line_and_column() {
        let bin = tempfile::tempdir().expect("a directory");
        for (name, mode) in [("here", 0o755), ("tru", 0o644)] {
            let file = bin.path().join(name);
            std::fs::write(&file, "#!/bin/sh\n").expect("a file");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("its mode");
        }
        let path = bin.path().as_os_str();
        let default = [
            "r.toml:5:12: agent own: there is no program \"my-agent\" on PATH",
            "r.toml:11:92: stage verify: there is no program \"tru\" on PATH",
        ];
        let other = "r.toml:16:3: stage lint: there is no program \"/not/there\"";
        assert_eq!(told(path, None), [default[0], default[1], other]);
        assert_eq!(told(path, Some("default")), default);
        assert_eq!(told(path, Some("other")), [other]);
    }
}
