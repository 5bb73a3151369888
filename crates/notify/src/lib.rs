//! Notifications: what people are told of sessions and tasks while they look elsewhere. What is told is a [`Notice`]; where it goes
//! is a [`Sink`] of the configuration, which says what it wants and delivers in bounded time. Which records are worth a notice is decided
//! here too ([`mod@derive`]), and so is what an outbox amounts to in which they wait ([`outbox`]); who reads records, keeps the outbox and
//! tries again is not here.

mod base_url;
mod bell;
mod body;
mod child_environment;
mod client_tls;
mod command;
mod config;
mod delivery;
pub mod derive;
mod desktop;
mod executable;
#[cfg(test)]
mod fake_machine;
mod machine;
mod notice;
pub mod outbox;
mod process;
mod quiet_hours;
mod rate_limit;
mod retry;
mod rules;
#[cfg(test)]
mod samples;
mod secret;
mod sink;
mod text;
mod webhook;
mod webhook_url;

pub use base_url::BaseUrl;
pub use bell::Bell;
pub use client_tls::client_tls;
pub use config::NotifyConfig;
pub use delivery::Delivery;
pub use machine::{Machine, ThisMachine};
pub use notice::{AnswerLink, Message, Notice, NoticeKind, Question, Summary};
pub use rate_limit::{Admission, RateLimit};
pub use retry::{GIVE_UP_AFTER, next_attempt};
pub use rules::Wanted;
pub use sink::{Sink, Sinks};
