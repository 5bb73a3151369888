//! `rekindle service status`: the unit, the daemon, and where each holder is; what is good and what is to be done.

use rekindle_client::failure::{Exit, Failure};
use rekindle_client::unit::Survey;
use rekindle_display::service::print_service;

use crate::commands::Context;

/// Show whether the service is as it should be, and where each agent lives
///
/// Changes nothing. Exits 0 if all is well, 1 if there is something to do, which is then told.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle service status
  rekindle service status --json | jq '.to_do[]'")]
pub(crate) struct Args {}

pub(super) fn run(context: &Context, _: &Args) -> Result<Exit, Failure> {
    let survey = Survey::of(&context.home)?;
    context.print(&survey.to_json(), |out| Ok(print_service(out, &survey)?))?;
    Ok(if survey.problems().is_empty() { Exit::Ok } else { Exit::Failed })
}
