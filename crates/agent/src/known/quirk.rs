//! What some agents do that others do not, where a supervisor must know it.

use serde::{Serialize, Serializer};

/// Declares the quirks: variant, name, and what it means.
macro_rules! quirks {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// Something that an agent does and others do not.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Quirk {
            $($(#[$doc])* $variant,)*
        }

        impl Quirk {
            /// All of them.
            pub const ALL: &'static [Quirk] = &[$(Quirk::$variant,)*];

            /// Returns its name.
            pub fn as_str(self) -> &'static str {
                match self { $(Quirk::$variant => $name,)* }
            }
        }
    };
}

quirks! {
    /// A turn that was cut during a tool call is worked on inside `session/load`.
    LoadContinuesTurn = "load_continues_turn";
    /// Loading an id that it does not know succeeds with an empty session.
    LoadOfUnknownIdSucceeds = "load_of_unknown_id_succeeds";
    /// A load in the minute in which the session was made destroys it.
    LoadWithinAMinuteDestroys = "load_within_a_minute_destroys";
    /// A session in which nothing was asked cannot be loaded: make a new one.
    UnpromptedSessionCannotBeLoaded = "unprompted_session_cannot_be_loaded";
    /// It answers a load first and replays afterwards.
    ReplaysAfterLoad = "replays_after_load";
    /// Its `session/resume` replays the conversation like a load.
    ResumeReplays = "resume_replays";
    /// A replay has no prompts.
    ReplayWithoutPrompts = "replay_without_prompts";
    /// A session can be loaded only in the directory where it was made.
    LoadNeedsSameDirectory = "load_needs_same_directory";
    /// A load of a session that is live in the same process is refused.
    LiveLoadRefused = "live_load_refused";
    /// A load of a live session during a turn ends the turn.
    LiveLoadEndsTurn = "live_load_ends_turn";
    /// Two processes in one session: what one of them did is lost.
    TwoWritersLoseABranch = "two_writers_lose_a_branch";
    /// A second prompt during a turn waits for its end.
    SecondPromptQueued = "second_prompt_queued";
    /// A second prompt during a turn is refused.
    SecondPromptRefused = "second_prompt_refused";
    /// A second prompt during a turn cancels the first.
    SecondPromptCancelsFirst = "second_prompt_cancels_first";
    /// A second prompt during a turn makes the first fail.
    SecondPromptFailsFirst = "second_prompt_fails_first";
    /// A second prompt during a turn is answered at once and worked on later.
    SecondPromptAnsweredAtOnce = "second_prompt_answered_at_once";
    /// A second prompt during a turn is worked on and never answered.
    SecondPromptNeverAnswered = "second_prompt_never_answered";
    /// It does not end when its input does.
    IgnoresEof = "ignores_eof";
    /// It does not end on SIGTERM.
    IgnoresSigterm = "ignores_sigterm";
    /// It does not end on SIGINT, at least during a turn.
    IgnoresSigint = "ignores_sigint";
    /// It adapts another program, which works on when the adapter is killed.
    AdapterLeavesChild = "adapter_leaves_child";
    /// It leaves a server of its own behind, outside its process group.
    LeavesDaemon = "leaves_daemon";
    /// Started by its package's own launcher, a signal ends only the launcher.
    LauncherShieldsAgent = "launcher_shields_agent";
    /// A shell command that it started goes on when it is killed.
    ToolOutlivesAgent = "tool_outlives_agent";
    /// With the next prompt it runs a tool call again that was cut by its death.
    RerunsInterruptedTool = "reruns_interrupted_tool";
    /// It forgets a tool call that ran when it was killed.
    ForgetsInterruptedTool = "forgets_interrupted_tool";
    /// The prompt of a turn that is killed while text streams is lost.
    PromptLostWhenKilled = "prompt_lost_when_killed";
    /// The first prompt of a session is lost if its turn is killed while text streams.
    FirstPromptLostWhenKilled = "first_prompt_lost_when_killed";
    /// It cancels a turn when nobody reads its output for seconds.
    CancelsWhenUnread = "cancels_when_unread";
    /// A turn that failed at its model ends like any other, with the error as text.
    ErrorsAsText = "errors_as_text";
    /// After a failed call of its model it says the same text again.
    RepeatsTextAfterRetry = "repeats_text_after_retry";
    /// It asks its client for things that are in no protocol.
    UnknownRequests = "unknown_requests";
    /// Its output can stall until something is written to its input.
    NeedsPoke = "needs_poke";
}

/// A set of quirks.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Quirks(u64);

impl Quirks {
    /// Tells whether a quirk is among them.
    pub fn has(self, quirk: Quirk) -> bool {
        self.0 & (1 << quirk as u64) != 0
    }

    /// Returns them, in the order of their declaration.
    pub fn iter(self) -> impl Iterator<Item = Quirk> {
        Quirk::ALL.iter().copied().filter(move |quirk| self.has(*quirk))
    }
}

impl FromIterator<Quirk> for Quirks {
    fn from_iter<I: IntoIterator<Item = Quirk>>(quirks: I) -> Quirks {
        Quirks(quirks.into_iter().fold(0, |set, quirk| set | 1 << quirk as u64))
    }
}

impl std::fmt::Debug for Quirks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Serialize for Quirks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Quirk::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in() {
        assert!(Quirk::ALL.len() <= 64, "the set is one word");
        let set: Quirks = [Quirk::NeedsPoke, Quirk::LoadContinuesTurn].into_iter().collect();
        assert!(set.has(Quirk::NeedsPoke) && !set.has(Quirk::IgnoresEof));
        assert_eq!(
            serde_json::to_string(&set).ok().as_deref(),
            Some(r#"["load_continues_turn","needs_poke"]"#)
        );
    }
}
