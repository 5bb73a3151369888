//! The `rekindle.toml` that people begin with, as text: everything that may stand there, with what it means.

/// Who works in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roles<'a> {
    /// Known agents: one that builds, one that reviews.
    Known(&'a str, &'a str),
    /// None is here: the agent for demonstrations, until there is.
    Demo,
}

impl<'a> Roles<'a> {
    /// Gives the roles to agents that are here: a second one sees what the first does not.
    pub fn of(here: &[&'a str]) -> Roles<'a> {
        match here {
            [] => Roles::Demo,
            [one] => Roles::Known(one, one),
            [one, other, ..] => Roles::Known(one, other),
        }
    }

    /// Returns the names of the agents.
    pub fn names(self) -> (&'a str, &'a str) {
        match self {
            Roles::Known(builder, reviewer) => (builder, reviewer),
            Roles::Demo => ("demo-agent", "demo-agent"),
        }
    }

    /// Says who they are.
    pub fn text(self) -> String {
        match self {
            Roles::Known(builder, reviewer) => format!("{builder} builds, {reviewer} reviews"),
            Roles::Demo => "no known agent is on PATH, so the demo agent stands in it, which plays a part and does no work; \
                            `rekindle agents` says how to get others"
                .into(),
        }
    }

    fn tables(self) -> String {
        match self {
            Roles::Known(builder, reviewer) => {
                format!(
                    "[agents.builder]\nagent = \"{builder}\"\n{OPTIONS}\n[agents.reviewer]\nagent = \"{reviewer}\"\n"
                )
            }
            Roles::Demo => {
                format!("{DEMO}[agents.builder]\n{DEMO_AGENT}{OPTIONS}\n[agents.reviewer]\n{DEMO_AGENT}")
            }
        }
    }
}

const DEMO: &str =
    "# No known agent was on PATH when this was written. The demo agent is built in: it plays a part and
# does no work. `rekindle agents` says how to get others; then put agent = \"NAME\" in place of
# command and profile.
";

const DEMO_AGENT: &str = "command = [\"rekindle\", \"demo-agent\"]\nprofile = \"acp\"\n";

const OPTIONS: &str = "# model = \"NAME\"
# env = [\"SOME_TOKEN\"]       # names of variables that it gets from whoever starts a run; no values
";

const HEAD: &str =
    "# What agents do in this directory. `rekindle pipeline validate` says what is wrong with it.
version = 1

# Who works, by the names that stages use: a known agent, as `rekindle agents` lists them, or a
# command and how it speaks:
#   command = [\"my-agent\", \"--flag\"]
#   profile = \"acp\"            # or \"ndjson\": JSON, a command in, events out;
#                              # or \"exec\": it reads its prompt, and its exit code decides
#   heartbeat_s = 30           # how often an ndjson agent says that it is alive; three that are
#                              # missing are shown
";

const TASKS: &str = "
# What is to be done.
[[tasks]]
id = \"T-1\"
goal = \"Say here what is wanted\"
# Texts, numbers, files of this directory, as {{inputs.limit}} in a prompt:
# inputs = { spec = { file = \"docs/spec.md\" }, limit = 7 }

# What a task goes through: stages, in this order. Prompts may have {{task.id}}, {{task.goal}},
# {{inputs.NAME}}, {{round}}, and of another stage {{NAME.outcome}}, {{NAME.findings}},
# {{NAME.summary}}, {{NAME.diff}}.
[pipelines.default]
max_rounds = 3              # a jump back begins another round; beyond this the run fails
# on_cut = \"ask\"            # if a step's agent was cut: \"ask\", \"restore\" its files, \"continue\"

[[pipelines.default.stages]]
name = \"implement\"
agent = \"builder\"
prompt = \"\"\"
Implement this task: {{task.goal}}

What the last review found, if there was one:
{{review.findings}}
\"\"\"
# deadline_s = 3600         # how long an attempt may take: then it is ended and has failed
# stalled_after_s = 1800    # after how long without a sign of life it is shown as stalled

[[pipelines.default.stages]]
name = \"review\"
agent = \"reviewer\"
writes = false              # it fails if it changes a file
prompt = \"\"\"
Review the work in this directory for this task: {{task.goal}}
Change no file. Say what has to be changed, and why.

What was changed:
{{implement.diff}}
\"\"\"
# Where each outcome leads: to a stage, \"next\", \"fail\" or \"complete\".
outcomes = { approved = \"next\", changes_requested = \"implement\" }

";

const NO_CHECK: &str =
    "# A command may check instead of an agent: exit code 0 leads on, any other where on_fail says.
# Nothing goes through a shell.
# [[pipelines.default.stages]]
# name = \"verify\"
# check = [\"make\", \"test\"]
# on_fail = \"implement\"
";

const DOCUMENT: &str = "
[[pipelines.default.stages]]
name = \"spec_maintain\"
agent = \"builder\"
prompt = \"Bring the documentation in line with what was done for this task: {{task.goal}}\"
";

/// Commands that test, by the file that tells of them.
const CHECKS: [(&str, &[&str]); 5] = [
    ("Cargo.toml", &["cargo", "test"]),
    ("go.mod", &["go", "test", "./..."]),
    ("package.json", &["npm", "test"]),
    ("pyproject.toml", &["python", "-m", "pytest"]),
    ("Makefile", &["make", "test"]),
];

/// Returns the command that tests what is in a directory, if a file there tells of one.
pub fn check_for(has_file: impl Fn(&str) -> bool) -> Option<&'static [&'static str]> {
    CHECKS.iter().find(|(name, _)| has_file(name)).map(|(_, check)| *check)
}

/// Returns the text of the file.
pub fn text(roles: Roles<'_>, check: Option<&[&str]>) -> String {
    let verify = match check {
        Some(words) => format!(
            "# A command that checks: exit code 0 leads on, any other where on_fail says.\n\
             # Nothing goes through a shell.\n\
             [[pipelines.default.stages]]\nname = \"verify\"\ncheck = {words:?}\non_fail = \"implement\"\n"
        ),
        None => NO_CHECK.to_owned(),
    };
    [HEAD, &roles.tables(), TASKS, &verify, DOCUMENT].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check;

    #[test]
    fn what_people_begin_with_has_no_problem() {
        for here in [&[][..], &["claude"], &["codex", "claude", "gemini"]] {
            for files in [&[][..], &["go.mod"], &["Makefile", "Cargo.toml"]] {
                let roles = Roles::of(here);
                let command = check_for(|name| files.contains(&name));
                let config = check(&text(roles, command)).unwrap_or_else(|problems| panic!("{problems:#?}"));
                assert_eq!(config.agents["builder"].agent.as_deref(), here.first().copied());
                let verify = config.pipelines["default"].stage("verify");
                let words = verify.and_then(|(_, stage)| stage.check.clone());
                assert_eq!(words.is_some(), !files.is_empty(), "{words:?}");
            }
        }
        assert_eq!(Roles::of(&["a", "b", "c"]), Roles::Known("a", "b"));
        assert_eq!(check_for(|name| name != "go.mod"), Some(&["cargo", "test"][..]));
    }

    #[test]
    fn no_line_is_wider_than_editors_show() {
        for roles in [Roles::Demo, Roles::of(&["claude-code-acp", "codex"])] {
            for check in [None, check_for(|name| name == "pyproject.toml")] {
                let text = text(roles, check);
                let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 100).collect();
                assert!(wide.is_empty(), "{wide:#?}");
            }
        }
    }

    #[test]
    fn what_stands_in_comments_may_be_taken_out_of_them() {
        let text = text(Roles::of(&["claude"]), None);
        let hints = [
            "# model",
            "# env",
            "# inputs",
            "# on_cut",
            "# deadline_s",
            "# stalled_after_s",
            "# [[",
            "# name",
            "# check",
            "# on_fail",
        ];
        let open = |line: &str| {
            let is_hint = hints.iter().any(|hint| line.starts_with(hint));
            if is_hint { line.replacen("# ", "", 1) } else { line.to_owned() }
        };
        let opened: Vec<String> = text.lines().map(open).collect();
        let config = check(&opened.join("\n")).unwrap_or_else(|problems| panic!("{problems:#?}"));
        assert!(config.pipelines["default"].stage("verify").is_some());
        assert_eq!(config.tasks[0].inputs.len(), 2);
    }
}
