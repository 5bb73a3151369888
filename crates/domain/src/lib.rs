//! What a session is and what its log means: ids, events, the fold from log to state, the records of every append, the
//! status projector, what is next in a pipeline run, the rules of resume tokens, of access tokens and of quarantine. Pure: no I/O,
//! no async, no clock; time, randomness and evidence come in as arguments.

pub mod access;
pub mod age;
pub mod blob_id;
pub mod budget;
pub mod bundle;
pub mod chain;
pub mod checkpoint;
pub mod compose;
pub mod config_trust;
pub mod drift;
pub mod event;
pub mod fork;
mod hex;
pub mod id;
pub mod interval;
pub mod kept_snapshot;

pub mod line;
pub mod message_outcome;
pub mod path_name;
pub mod pipeline;
pub mod projector;
pub mod quarantine;
pub mod recovery;
pub mod resume_context;
pub mod search;
pub mod session;
pub mod snapshot_name;
pub mod stall;
mod string_enum;
pub mod task;
pub mod text_excerpt;
mod text_form;
pub mod time;
pub mod token;
pub mod whole_number;
