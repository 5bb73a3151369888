//! Notifications: what people are told of sessions and tasks while they look elsewhere. What is told is a [`Notice`]; where it goes
//! is a sink of the configuration.

mod base_url;
mod notice;

pub use base_url::BaseUrl;
pub use notice::{AnswerLink, Message, Notice, NoticeKind, Question, Summary};
