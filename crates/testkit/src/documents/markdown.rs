//! A Markdown page: its `console` blocks, and the comments that say how to try them. A comment is for the block behind it:
//!
//! - `<!-- test: setup` and lines for a shell, up to `-->`: runs them where the comment stands; readers do not see them
//! - `<!-- test: file PATH -->`: the block behind it is the content of that file
//! - `<!-- test: replace WORD with TEXT -->`: from here on commands have TEXT, which a shell expands, where they say WORD
//! - `<!-- test: exit N -->`: the last command of the block ends with that code
//! - `<!-- test: retry -->`: the commands only look, and are repeated until they show what the page shows
//! - `<!-- test: interrupt -->`: the commands go on until Ctrl-C, which comes once they have said something
//! - `<!-- test: skip, REASON -->`: the commands are not run; those of ours have to be understood all the same

use std::mem::take;

/// What a page has for a test, in its order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Its parts.
    pub items: Vec<Item>,
}

/// A part of a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// Lines for a shell.
    Setup(String),
    /// A file with a content.
    File {
        /// Where it is, as a shell expands it.
        path: String,
        /// What is in it.
        text: String,
    },
    /// From here on something stands for a word of the page.
    Replace {
        /// The word.
        word: String,
        /// What stands for it, as a shell expands it.
        with: String,
    },
    /// Commands.
    Commands(Block),
}

/// A block of commands.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// How they are tried.
    pub way: Way,
    /// The commands.
    pub examples: Vec<Example>,
}

/// How commands are tried.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum Way {
    /// Each is run once and ends well.
    #[default]
    Run,
    /// The same, but the last one ends with this code.
    Exit(i32),
    /// Each is run until it shows what the page shows.
    Retry,
    /// Each is run, and interrupted once it has said something.
    Interrupt,
    /// They are not run, for a reason.
    Skip(String),
}

/// A command, and what is shown below it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Example {
    /// Its line in the page, from 1.
    pub line: usize,
    /// The command, which may have several lines.
    pub command: String,
    /// The lines below it.
    pub shown: Vec<String>,
}

impl Page {
    /// Reads a page. Panics if it has a comment for tests that says nothing, or a block that begins with no command.
    pub fn parse(text: &str) -> Page {
        let mut items = Vec::new();
        let (mut way, mut file) = (Way::default(), None);
        let mut lines = text.lines().enumerate();
        while let Some((at, line)) = lines.next() {
            let line_number = at + 1;
            if let Some(comment) = line.trim_start().strip_prefix("<!-- test: ") {
                let mut comment = comment.to_owned();
                while !comment.trim_end().ends_with("-->") {
                    let (_, more) =
                        lines.next().unwrap_or_else(|| panic!("line {line_number}: a comment without end"));
                    comment.push('\n');
                    comment.push_str(more);
                }
                let comment = comment.trim_end().trim_end_matches("-->").trim_end();
                match directive(comment)
                    .unwrap_or_else(|| panic!("line {line_number}: {comment:?} is no directive"))
                {
                    Directive::Item(item) => items.push(item),
                    Directive::Way(next) => way = next,
                    Directive::File(path) => file = Some(path),
                }
                continue;
            }
            let Some(language) = line.trim_start().strip_prefix("```") else { continue };
            let indent = line.len() - line.trim_start().len();
            let body: Vec<(usize, &str)> = lines
                .by_ref()
                .map(|(at, line)| (at + 1, line.get(indent..).unwrap_or_default()))
                .take_while(|(_, line)| *line != "```")
                .collect();
            if let Some(path) = file.take() {
                let text = body.iter().map(|(_, line)| format!("{line}\n")).collect();
                items.push(Item::File { path, text });
            } else if language == "console" {
                items.push(Item::Commands(Block { way: take(&mut way), examples: examples(&body) }));
            }
        }
        Page { items }
    }

    /// Returns the blocks of commands.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.items.iter().filter_map(|item| match item {
            Item::Commands(block) => Some(block),
            _ => None,
        })
    }

    /// Returns all commands.
    pub fn examples(&self) -> impl Iterator<Item = &Example> {
        self.blocks().flat_map(|block| &block.examples)
    }
}

enum Directive {
    Item(Item),
    Way(Way),
    File(String),
}

fn directive(comment: &str) -> Option<Directive> {
    let (name, rest) = comment.split_once(char::is_whitespace).unwrap_or((comment, ""));
    Some(match (name.trim_end_matches(','), rest) {
        ("setup", lines) if !lines.is_empty() => Directive::Item(Item::Setup(lines.to_owned())),
        ("file", path) if !path.is_empty() => Directive::File(path.to_owned()),
        ("replace", rest) => {
            let (word, with) = rest.split_once(" with ")?;
            Directive::Item(Item::Replace { word: word.to_owned(), with: with.to_owned() })
        }
        ("exit", code) => Directive::Way(Way::Exit(code.parse().ok()?)),
        ("retry", "") => Directive::Way(Way::Retry),
        ("interrupt", "") => Directive::Way(Way::Interrupt),
        ("skip", reason) if !reason.is_empty() => Directive::Way(Way::Skip(reason.to_owned())),
        _ => return None,
    })
}

/// Returns the commands of a block: lines behind `$ `, with whatever belongs to them.
fn examples(body: &[(usize, &str)]) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for (number, line) in body {
        match (line.strip_prefix("$ "), examples.last_mut()) {
            (Some(command), _) => {
                examples.push(Example { line: *number, command: command.to_owned(), shown: Vec::new() });
            }
            (None, Some(last)) if last.shown.is_empty() && goes_on(&last.command) => {
                last.command.push('\n');
                last.command.push_str(line);
            }
            (None, Some(last)) => last.shown.push((*line).to_owned()),
            (None, None) => panic!("line {number}: a block begins with its command: {line}"),
        }
    }
    examples
}

/// Tells whether a command goes on in the next line: a quote is open, or a backslash ends it.
fn goes_on(command: &str) -> bool {
    let mut quote = None;
    let mut before = ' ';
    let mut letters = command.chars();
    while let Some(c) = letters.next() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None | Some('"'), '\\') => {
                let Some(_) = letters.next() else { return true };
            }
            (None, '#') if before.is_whitespace() => {
                letters.by_ref().find(|c| *c == '\n');
            }
            _ => {}
        }
        before = c;
    }
    quote.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_with_what_is_shown_and_how_they_are_tried() {
        let page = Page::parse(
            "# Page\n\n```console\n$ one 'of\ntwo'   # it's one\n$ two\nsaid\n…\n```\n\n<!-- test: exit 3 -->\n```console\n$ three \\\n  four\n```\n\
             - in a list\n  <!-- test: skip, needs root -->\n  ```console\n  $ sudo x\n    indented\n  ```\n```sh\nnot a command\n```\n",
        );
        let block = |way, examples| Item::Commands(Block { way, examples });
        let example = |line, command: &str, shown: &[&str]| Example {
            line,
            command: command.to_owned(),
            shown: shown.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(
            page.items,
            [
                block(
                    Way::Run,
                    vec![example(4, "one 'of\ntwo'   # it's one", &[]), example(6, "two", &["said", "…"])]
                ),
                block(Way::Exit(3), vec![example(13, "three \\\n  four", &[])]),
                block(Way::Skip("needs root".to_owned()), vec![example(19, "sudo x", &["  indented"])]),
            ]
        );
        assert_eq!(page.examples().count(), 4);
    }

    #[test]
    fn setups_files_and_replacements_stand_where_the_page_has_them() {
        let page = Page::parse(
            "<!-- test: setup\na\nb\n-->\n<!-- test: file ~/c.toml -->\n```toml\n[x]\n\ny = 1\n```\n<!-- test: replace sess_1 with $(id) -->\n\
             <!-- test: retry -->\n```console\n$ ps\n```\n<!-- test: interrupt -->\n```console\n$ watch\n```\n",
        );
        let ways: Vec<&Way> = page.blocks().map(|block| &block.way).collect();
        assert_eq!(ways, [&Way::Retry, &Way::Interrupt]);
        assert_eq!(page.items[0], Item::Setup("a\nb".to_owned()));
        assert_eq!(
            page.items[1],
            Item::File { path: "~/c.toml".to_owned(), text: "[x]\n\ny = 1\n".to_owned() }
        );
        assert_eq!(page.items[2], Item::Replace { word: "sess_1".to_owned(), with: "$(id)".to_owned() });
    }

    #[test]
    fn what_says_nothing_is_no_directive() {
        for wrong in
            ["", "skip", "skip,", "exit", "exit x", "setup", "file", "replace a", "perhaps", "retry now"]
        {
            assert!(directive(wrong).is_none(), "{wrong}");
        }
    }
}
