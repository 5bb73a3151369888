//! Tests of the real binary, each in a home of its own and with a cleared environment.

mod chaos;
mod damage;
mod demo;
mod homes;
mod ids;
mod import;
mod kill;
mod log;
mod pipeline;
mod repair;
mod status;
mod support;
mod workspace;
