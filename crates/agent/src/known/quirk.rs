//! What some agents do that others do not, where it changes what we do. What holds for every agent is a rule, not a quirk:
//! nothing is assumed of a load but what it replays, and no process of an agent's tree outlives it.

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
    /// A turn that was cut during a tool call is worked on inside `session/load`: a load counts as having reached the agent.
    LoadContinuesTurn = "load_continues_turn";
    /// A load within the minute in which the session was made or last loaded destroys it: it is put off.
    LoadWithinAMinuteDestroys = "load_within_a_minute_destroys";
    /// It answers a load first and replays afterwards: what comes behind the answer is no new work.
    ReplaysAfterLoad = "replays_after_load";
    /// With the next prompt it runs a tool call again that was cut by its death: such a session is not loaded.
    RerunsInterruptedTool = "reruns_interrupted_tool";
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
        let set: Quirks = [Quirk::ReplaysAfterLoad, Quirk::LoadContinuesTurn].into_iter().collect();
        assert!(set.has(Quirk::ReplaysAfterLoad) && !set.has(Quirk::RerunsInterruptedTool));
        assert_eq!(
            serde_json::to_string(&set).ok().as_deref(),
            Some(r#"["load_continues_turn","replays_after_load"]"#)
        );
    }
}
