//! A reader of a page, with a machine that nobody has used before: a home for Rekindle, a `HOME`, a project in git, and the demo agent
//! where Claude's adapter would be.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use rekindle_lab::{PATIENCE, TempHome, end_all};
use rekindle_testkit::documents::{Block, Example, Item, Page, Way, matches_shown};

use crate::shell::{Ended, Shell};

/// What is there before the first command: an identity for git, and a project with a commit.
const BEFORE: &str = "
git config --global user.name Ada && git config --global user.email ada@example.com
git config --global init.defaultBranch main && git config --global advice.detachedHead false
git init -q && printf '# A project\\n' > README.md && git add . && git commit -qm 'Begin'
";

/// The adapter of Claude: the demo agent, which carries out what its prompt says.
const AGENT: &str = "#!/bin/sh\nexec rekindle demo-agent \"$@\"\n";

pub(crate) struct Reader {
    page: String,
    /// What stands for words of the page.
    replaced: Vec<(String, String)>,
    shell: Shell,
    temp: TempHome,
}

impl Reader {
    pub(crate) fn new(page: &str) -> Reader {
        let temp = TempHome::new("rk").expect("a directory");
        fs::create_dir(temp.at("bin")).expect("a directory");
        let agent = temp.at("bin/claude-agent-acp");
        fs::write(&agent, AGENT).expect("a file");
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).expect("a program");
        let shell = Shell::start(temp.path(), temp.runtime(), &temp.at("work"));
        let mut reader = Reader { page: page.to_owned(), replaced: Vec::new(), shell, temp };
        reader.setup(BEFORE);
        reader
    }

    /// Follows the page from its beginning to its end.
    pub(crate) fn follow(&mut self, page: &Page) {
        for item in &page.items {
            match item {
                Item::Setup(lines) => self.setup(lines),
                Item::File { path, text } => {
                    let path = self.expand(path);
                    let path = self.temp.at("work").join(path);
                    fs::create_dir_all(path.parent().expect("a directory")).expect("made");
                    fs::write(&path, self.replace(text)).expect("written");
                }
                Item::Replace { word, with } => {
                    let with = self.expand(with);
                    assert!(!with.is_empty(), "{}: nothing stands for {word}", self.page);
                    self.replaced.retain(|(old, _)| old != word);
                    self.replaced.push((word.clone(), with));
                }
                Item::Commands(block) => self.try_block(block),
            }
        }
    }

    /// Runs what readers do not see. Every line of it must go well.
    fn setup(&mut self, lines: &str) {
        let lines = self.replace(lines);
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            let Ended { code, said } = self.shell.run(line);
            assert_eq!(code, 0, "{}, setup: {line}\n{said}", self.page);
        }
    }

    /// Has the shell expand a word.
    fn expand(&mut self, word: &str) -> String {
        let Ended { code, said } = self.shell.run(&format!("printf %s {word}"));
        assert_eq!(code, 0, "{}: {word}\n{said}", self.page);
        said
    }

    fn replace(&self, text: &str) -> String {
        self.replaced.iter().fold(text.to_owned(), |text, (word, with)| text.replace(word, with))
    }

    fn try_block(&mut self, block: &Block) {
        for (at, example) in block.examples.iter().enumerate() {
            let is_last = at + 1 == block.examples.len();
            match &block.way {
                Way::Skip(_) => {}
                Way::Run => self.run_once(example, 0),
                Way::Exit(code) => self.run_once(example, if is_last { *code } else { 0 }),
                Way::Retry => self.run_until_shown(example),
                Way::Interrupt => {
                    let command = self.replace(&example.command);
                    let shown = self.shown_by(example);
                    let said = self.shell.interrupt(&command, |said| is_shown(&shown, said));
                    self.compare(example, &said);
                }
            }
        }
    }

    fn run_once(&mut self, example: &Example, expected: i32) {
        let Ended { code, said } = self.shell.run(&self.replace(&example.command));
        assert_eq!(code, expected, "{}: the exit code\n{said}", self.place(example));
        self.compare(example, &said);
    }

    fn run_until_shown(&mut self, example: &Example) {
        let began = Instant::now();
        let command = self.replace(&example.command);
        loop {
            let Ended { code, said } = self.shell.run(&command);
            if code == 0 && is_shown(&self.shown_by(example), &said) {
                return;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{}: {code}\n{said}\nis not what is shown",
                self.place(example)
            );
            // What it looks for is still to happen.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    fn compare(&self, example: &Example, said: &str) {
        let shown = self.shown_by(example);
        assert!(is_shown(&shown, said), "{}:\n{said}\nis not what is shown", self.place(example));
    }

    /// Returns the lines that the page shows as said by a command.
    fn shown_by(&self, example: &Example) -> Vec<String> {
        example.shown.iter().map(|line| self.replace(line)).collect()
    }

    fn place(&self, example: &Example) -> String {
        format!("{}, line {}: $ {}", self.page, example.line, self.replace(&example.command))
    }
}

/// Tells whether a command has said what the page shows; where it shows nothing, anything will do.
fn is_shown(shown: &[String], said: &str) -> bool {
    shown.is_empty() || matches_shown(shown.iter().map(String::as_str), said)
}

impl Drop for Reader {
    fn drop(&mut self) {
        let state = self.temp.at(".local/state/rekindle");
        if std::thread::panicking() {
            let log = fs::read_to_string(state.join("logs/daemon.log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("{}", lines[lines.len().saturating_sub(40)..].join("\n"));
        }
        // And whoever lives in homes that the page made.
        let entries = fs::read_dir(self.temp.path()).into_iter().flatten().flatten();
        let made = entries.map(|entry| entry.path()).filter(|path| path.join("home.json").is_file());
        made.chain([state]).for_each(|home| end_all(&home));
    }
}
