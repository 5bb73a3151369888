//! What a person types: keys, pasted text, whole lines.

use std::time::Duration;

use rekindle_client::failure::Exit;
use rekindle_terminal::output::{DIM, WARN};
use rekindle_terminal::sanitise;

use super::questions::{Meaning, Warned};
use super::slash_commands::{self, Completion, Slash, Typed};
use super::{ChangeOf, Core, Key, Request};
use crate::layout::gist;

/// What Ctrl-C says when there is nothing to clear.
const HOW_TO_LEAVE: &str = "/cancel stops the agent; Ctrl-D or /detach leaves, and the agent keeps working";

/// Columns of a command that is shown again.
const TOLD: usize = 60;

impl Core {
    pub(super) fn key(&mut self, key: Key, now: Duration) {
        self.questions.disturb();
        self.notice = None;
        let was_empty = self.editor.is_empty();
        let editor = &mut self.editor;
        match key {
            Key::Char(c) => {
                if was_empty {
                    self.questions.first_key(c, now);
                }
                self.insert(c.encode_utf8(&mut [0; 4]));
            }
            Key::NewLine => self.insert("\n"),
            Key::Enter => self.enter(now),
            Key::Complete => self.complete(),
            Key::Backspace => editor.backspace(),
            Key::Delete => editor.delete(),
            Key::Left => editor.left(),
            Key::Right => editor.right(),
            Key::WordLeft => editor.word_left(),
            Key::WordRight => editor.word_right(),
            Key::Home => editor.home(),
            Key::End => editor.end(),
            Key::Up => {
                if !editor.up()
                    && let Some(text) = self.history.older(editor.text())
                {
                    editor.set(text);
                }
            }
            Key::Down => {
                if !editor.down()
                    && let Some(text) = self.history.newer()
                {
                    editor.set(text);
                }
            }
            Key::CutToEnd => editor.cut_to_end(),
            Key::CutToStart => editor.cut_to_start(),
            Key::CutWord => editor.cut_word(),
            Key::CutWordBehind => editor.cut_word_behind(),
            Key::PasteCut => editor.paste_cut(),
            Key::Interrupt if was_empty => self.note(DIM, HOW_TO_LEAVE),
            Key::Interrupt => {
                let text = editor.take();
                self.history.add(&text);
            }
            Key::EndOfInput if self.leaving => self.leave_now(Exit::Ok),
            Key::EndOfInput if was_empty => self.leave(),
            Key::EndOfInput => editor.delete(),
            Key::Escape if was_empty => self.note(DIM, HOW_TO_LEAVE),
            Key::Escape => {}
        }
    }

    /// Takes what was pasted: line ends are line ends, and nothing in it commands the terminal or answers anything.
    pub(super) fn paste(&mut self, text: &str) {
        self.questions.disturb();
        self.notice = None;
        self.insert(&sanitise::block(text));
    }

    fn insert(&mut self, text: &str) {
        if !self.editor.insert(text) {
            self.note(WARN, "the line is full: put the text into a file and name that");
        }
    }

    fn enter(&mut self, now: Duration) {
        if self.editor.text()[..self.editor.cursor()].ends_with('\\') {
            self.editor.backspace();
            return self.insert("\n");
        }
        let text = self.editor.text().to_owned();
        if text.trim().is_empty() {
            return;
        }
        match slash_commands::read(&text, &self.commands) {
            Typed::Command(command, argument) => {
                self.taken(&text);
                return self.run(command, argument, &text);
            }
            Typed::Unknown(name) => {
                let text = format!(
                    "there is no command /{name}; /help lists them, a leading blank sends it as text"
                );
                return self.note(WARN, text);
            }
            Typed::Text => {}
        }
        let warned =
            self.warned.take().filter(|(line, _)| *line == text).map_or(Warned::No, |(_, warned)| warned);
        match self.questions.read(&text, warned, now) {
            Meaning::Answer(wait, answer, told) => {
                self.taken(&text);
                self.ask(Request::Answer { wait, answer, told });
            }
            Meaning::Message => {
                self.taken(&text);
                let number = self.outbox.send(&text);
                self.ask(Request::Send { number, text });
            }
            Meaning::Warn(warned) => {
                let warning = match warned {
                    Warned::NoOption => {
                        "no such option; Enter again ends the question and sends this as a message"
                    }
                    _ => "a question came up while you typed: Enter again if this answers it",
                };
                self.note(WARN, warning);
                self.warned = Some((text, warned));
            }
        }
    }

    /// The line was taken for something.
    fn taken(&mut self, text: &str) {
        self.history.add(text);
        self.editor.take();
        self.warned = None;
    }

    fn complete(&mut self) {
        let completed = slash_commands::complete(
            self.editor.text(),
            &self.commands,
            &self.status.modes,
            &self.status.models,
        );
        match completed {
            Completion::Nothing => {}
            Completion::Line(line) => self.editor.set(&line),
            Completion::Choices(names) => self.note(DIM, names.join("  ")),
        }
    }

    fn set(&mut self, chosen: Result<ChangeOf, String>) {
        match chosen {
            Ok(change) => {
                self.own_changes.push(change.clone());
                self.ask(Request::Set(change));
            }
            Err(refusal) => self.say(WARN, format!("not changed: {refusal}")),
        }
    }

    fn run(&mut self, command: Slash, argument: &str, line: &str) {
        if self.session.is_none() && !matches!(command, Slash::Detach | Slash::Help | Slash::Tasks) {
            return self.note(WARN, "there is no session yet: your first message begins it");
        }
        // What is said next is the answer to it; leaving speaks for itself.
        if command != Slash::Detach {
            self.say(DIM, format!("> {}", gist(line, TOLD)));
        }
        match command {
            Slash::Cancel => self.ask(Request::Cancel),
            Slash::Resume => self.ask(Request::Resume),
            Slash::Mode if argument.is_empty() => {
                let lines = slash_commands::list("mode", &self.status.modes, self.status.mode());
                lines.into_iter().for_each(|line| self.line(line));
            }
            Slash::Model if argument.is_empty() => {
                let lines = slash_commands::list("model", &self.status.models, self.status.model());
                lines.into_iter().for_each(|line| self.line(line));
            }
            Slash::Mode => {
                let chosen = slash_commands::choose("mode", &self.status.modes, argument);
                self.set(chosen.map(ChangeOf::Mode));
            }
            Slash::Model => {
                let chosen = slash_commands::choose("model", &self.status.models, argument);
                self.set(chosen.map(ChangeOf::Model));
            }
            Slash::Diff => self.ask(Request::Diff),
            Slash::Rewind => match (argument, self.planned.take()) {
                ("yes", Some(run)) => self.ask(Request::Rewind { run }),
                _ => self.ask(Request::PlanRewind),
            },
            Slash::Fork => self.ask(Request::Fork),
            Slash::Tasks => self.ask(Request::Tasks),
            Slash::Detach => self.leave(),
            Slash::Help => {
                slash_commands::help(&self.commands, self.width).into_iter().for_each(|line| self.line(line))
            }
        }
    }
}
