//! What commands show people: records, statuses, checkpoints and hints in words and colours, tables, and a session or a run of a
//! pipeline as it happens, with its questions. What is shown comes from a daemon or from a log, and is decided in neither place here.

pub mod canvas;
pub mod checkpoint_text;
pub mod doctor;
pub mod drift_text;
pub mod evidence_text;
pub mod hints;
pub mod live;
pub mod pipeline;
mod pipeline_text;
pub mod record_text;
pub mod search_text;
pub mod service;
pub mod session_table;
pub mod short_id;
pub mod snapshot_text;
pub mod status_text;
pub mod task;
mod tree;
pub mod wait_text;
pub mod worktree_text;
