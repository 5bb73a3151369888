//! What there is to be shown or known of a session: what records and words become.

use anstyle::Style;
use rekindle_domain::event::Drift;
use rekindle_terminal::output::WARN;
use rekindle_terminal::sanitise;

use super::ask::Ask;
use super::diff::Styled;
use super::question_end::QuestionEnd;
use super::run_end::RunEnd;
use crate::drift_text;

/// Something to be shown or known.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Words of the answer, clean.
    Answer(String),
    /// A message of the answer is whole.
    AnswerEnd,
    /// Words of a thought, clean.
    Thought(String),
    /// A thought is whole.
    ThoughtEnd,
    /// A line about what happens.
    Line(Styled),
    /// The line of a tool call, which replaces an earlier one of the same call.
    Tool(String, Styled),
    /// Something is not as the turn before left it.
    Drifted(Box<Drift>),
    /// The agent asks.
    Asked(Ask),
    /// A question is over.
    AskOver(QuestionEnd),
    /// A run began.
    Begun {
        /// The run.
        run: String,
        /// Its message.
        message: Option<String>,
        /// The run that it continues.
        continues: Option<String>,
    },
    /// A run ended.
    Ended(String, RunEnd),
    /// A queued message will not be sent.
    Dropped(String),
}

impl Piece {
    /// Returns the same as something that is told beside the answer.
    pub(super) fn aside(self) -> Piece {
        match self {
            Piece::Answer(words) => Piece::Thought(words),
            Piece::AnswerEnd => Piece::ThoughtEnd,
            other => other,
        }
    }
}

/// Says what drifted, a line for each.
pub fn drift_lines(drift: &Drift) -> Vec<Styled> {
    let said = drift_text::sentences(drift).into_iter();
    said.map(|said| (WARN, sanitise::line(&format!("since the last turn: {said}")))).collect()
}

/// Returns a line about what happens, in words that may be anyone's.
pub(super) fn clean_line(style: Style, text: impl AsRef<str>) -> Piece {
    line(style, sanitise::line(text.as_ref()))
}

/// Returns a line about what happens, as it is.
pub(super) fn line(style: Style, text: impl Into<String>) -> Piece {
    Piece::Line((style, text.into()))
}
