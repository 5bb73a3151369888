//! The holder's executable: everything is in its library. It is a binary of this package so that whoever builds
//! `rekindle` has it beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    rekindle_holder::run::main()
}
