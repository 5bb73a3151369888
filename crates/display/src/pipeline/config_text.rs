//! What a project's file has run, in words: for whoever is asked to trust it.

use std::fmt::Write;

use rekindle_domain::event::{ProjectConfig, StageConfig};
use rekindle_terminal::output::{BOLD, WARN, shell_word, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::request::ProjectFile;

/// Writes the file as it is shown before it is trusted: what it runs, what that is given, and the whole of it.
pub fn config_text(file: &ProjectFile, config: &ProjectConfig) -> String {
    let mut out = String::new();
    let path = sanitise::line(&file.path);
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{}", styled(WARN, format_args!("{path} is not trusted yet. It runs:")));
    for line in config_runs(config) {
        let _ = writeln!(out, "  {}", sanitise::line(&line));
    }
    let _ = writeln!(out, "{}", styled(BOLD, format_args!("--- {path}")));
    let _ = writeln!(out, "{}", sanitise::block(file.text.trim_end()));
    let _ = writeln!(out, "{}", styled(BOLD, "---"));
    out
}

/// Says what a configuration runs: agents, with the variables that they are given, and commands that check.
pub fn config_runs(config: &ProjectConfig) -> Vec<String> {
    let words = |words: &[String]| words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ");
    let mut lines = Vec::new();
    for (name, agent) in &config.agents {
        let what = match (&agent.agent, &agent.command) {
            (Some(known), _) => format!("the agent {known}"),
            (None, Some(command)) => words(command),
            (None, None) => continue,
        };
        let env = if agent.env.is_empty() {
            String::new()
        } else {
            format!(", which is given {}", agent.env.join(", "))
        };
        lines.push(format!("{name}: {what}{env}"));
    }
    for (pipeline, stages) in &config.pipelines {
        let checks = stages.stages.iter().filter_map(|stage| Some((&stage.name, stage.check.as_ref()?)));
        lines.extend(checks.map(|(stage, check)| format!("{pipeline}/{stage}: {}", words(check))));
    }
    lines
}

/// Returns a stage with who works in it, or what checks.
pub fn stage_text(stage: &StageConfig) -> String {
    let words = stage.check.iter().flatten().map(|word| shell_word(word));
    match &stage.agent {
        Some(agent) => format!("{} ({agent})", stage.name),
        None => format!("{} (check: {})", stage.name, words.collect::<Vec<_>>().join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"{"version":1,"agents":{"builder":{"command":["my agent","--x"],"profile":"acp","env":["TOKEN"]},
        "reviewer":{"agent":"codex"}},"pipelines":{"default":{"stages":[{"name":"verify","check":["make","test"]}]}}}"#;

    #[test]
    fn what_is_shown_says_what_would_run_and_does_nothing_to_the_terminal() {
        let config: ProjectConfig = serde_json::from_str(CONFIG).expect("a configuration");
        // No file that is checked has such a thing in it; what is shown must not rely on that.
        let text = "version = 1\n# \u{1b}[2Jhidden\n".to_owned();
        let file = ProjectFile { path: "/repo/rekindle.toml".into(), text };
        let shown = anstream::adapter::strip_str(&config_text(&file, &config)).to_string();
        for said in [
            "builder: 'my agent' --x, which is given TOKEN\n",
            "reviewer: the agent codex\n",
            "default/verify: make test\n",
            "# hidden\n---\n",
        ] {
            assert!(shown.contains(said), "{said}: {shown}");
        }
        assert!(!shown.contains('\u{1b}'));
    }
}
