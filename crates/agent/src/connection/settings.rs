//! Settings of the agent's session, such as mode and model: asked for before the first prompt and when they change, and
//! awaited before anything else is said. A refusal is a state that the log has, so that whoever comes next knows it too.

use rekindle_domain::event::Raw;
use rekindle_domain::id::RunId;

use super::Connection;
use super::facts::SET;
use super::fold::FoldResult;
use crate::acp::{SessionOptions, Unoffered, listed};
use crate::json::parse_raw;
use crate::profile::Setting;
use crate::said::Request;

/// What a session wants of its agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// The mode, by the agent's id or name for it.
    pub mode: Option<String>,
    /// The model, likewise.
    pub model: Option<String>,
}

impl Wanted {
    /// Finds out how everything that is wanted is asked for, the mode first.
    pub fn settings(&self, options: &SessionOptions) -> Result<Vec<Setting<'static>>, Unoffered> {
        let mode = self.mode.as_deref().map(|mode| options.mode(mode));
        let model = self.model.as_deref().map(|model| options.model(model));
        mode.into_iter().chain(model).collect()
    }
}

/// What is to be done about the settings before a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextSetting {
    /// Nothing: the agent has taken them all.
    Settled,
    /// Wait for the agent's answer.
    Awaited,
    /// Ask for this one.
    Ask(Setting<'static>),
    /// Say nothing: the agent does not offer it, or refused it; for people.
    Refused(String),
}

impl Connection {
    /// Tells what is to be done about the settings before the prompt of a run, or without one. What was refused is asked
    /// for again for the sake of another run.
    pub fn next_setting(&self, wanted: &Wanted, run: Option<RunId>) -> NextSetting {
        if *wanted == Wanted::default() || self.profile.ready_at_start() {
            return NextSetting::Settled;
        }
        let nothing = SessionOptions::default();
        let options = self.facts.options.as_ref().or(self.facts.earlier_options.as_ref());
        let settings = match wanted.settings(options.unwrap_or(&nothing)) {
            Ok(settings) => settings,
            Err(unoffered) => return NextSetting::Refused(unoffered.to_string()),
        };
        for setting in settings {
            let newest = self.facts.inputs.values().rev().find(|input| {
                input.sent.setting.as_ref().is_some_and(|sent| sent.is_about_the_same(&setting))
            });
            match newest.filter(|input| input.sent.setting.as_ref() == Some(&setting)) {
                Some(input) if !input.over => return NextSetting::Awaited,
                Some(input) => match &input.refused {
                    None => {}
                    Some(why) if run.is_none() || input.run == run => {
                        let offered = offered_text(options.unwrap_or(&nothing), &setting);
                        let refused =
                            format!("the agent refused {}: {why}; {offered}", setting_text(&setting));
                        return NextSetting::Refused(refused);
                    }
                    Some(_) => return NextSetting::Ask(setting),
                },
                None => return NextSetting::Ask(setting),
            }
        }
        NextSetting::Settled
    }

    /// Tells whether nothing is known of what the agent offers.
    pub fn lacks_options(&self) -> bool {
        self.facts.options.is_none() && self.facts.earlier_options.is_none()
    }

    /// Refuses what the agent does not offer, as far as that is known.
    pub fn check(&self, wanted: &Wanted) -> Result<(), Unoffered> {
        let options = self.facts.options.as_ref().or(self.facts.earlier_options.as_ref());
        options.map_or(Ok(()), |options| wanted.settings(options).map(drop))
    }

    /// The agent took a setting.
    pub(super) fn was_set(&mut self, number: u64, out: &mut FoldResult) {
        let Some(input) = self.facts.inputs.get_mut(&number) else { return };
        if input.over || input.sent.request != Request::Set {
            return self.notice("duplicate_reply", Some("the setting was answered before".into()), None, out);
        }
        input.over = true;
        let text = input.sent.setting.as_ref().map(setting_text);
        self.notice(SET, text.map(Into::into), parse_raw(&format!(r#"{{"input":{number}}}"#)), out);
    }
}

/// Names a setting for people.
fn setting_text(setting: &Setting<'_>) -> String {
    match setting {
        Setting::Mode(mode) => format!("the mode {}", Raw::text(mode).as_json()),
        Setting::Model(model) => format!("the model {}", Raw::text(model).as_json()),
        Setting::Choose(option, value) => format!("{option} {}", Raw::text(value).as_json()),
        Setting::Switch(option, on) => format!("{option} {}", if *on { "on" } else { "off" }),
    }
}

/// Lists what else there is.
fn offered_text(options: &SessionOptions, setting: &Setting<'_>) -> String {
    match setting {
        Setting::Mode(_) => listed("mode", &options.modes()),
        Setting::Choose(option, _) if option == "mode" => listed("mode", &options.modes()),
        _ => listed("model", &options.models()),
    }
}
