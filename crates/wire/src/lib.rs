//! The shapes of the HTTP interface: what is asked of a daemon, and what it shows. The daemon writes them, commands and
//! other programs read them, and the OpenAPI document is made from them, so that all speak of the same thing.
//!
//! They are shapes and nothing else: who decides what they say is below, in the domain and the services.

mod string_enum;

pub mod code;
pub mod event;
pub mod filter;
pub mod hint;
pub mod request;
pub mod token_text;
pub mod view;
