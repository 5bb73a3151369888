//! A search through the logs of all sessions, the newest session first, and in each the newest record first. There is no index: logs are
//! read from their ends. What one request reads is bounded; it goes on at the place that the page before names.

mod offline;
mod page;
mod scan;

pub use offline::search_home;
pub(crate) use page::search;
