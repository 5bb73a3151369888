//! Notifications: what people are told of sessions and tasks while they look elsewhere. What is told is a [`Notice`]; where it goes
//! is a sink of the configuration.

mod notice;

pub use notice::{AnswerLink, Message, Notice, NoticeKind, Question, Summary};
