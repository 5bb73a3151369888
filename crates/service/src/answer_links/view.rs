//! What whoever has a resume token is shown of its wait. Nothing is consumed by looking.

use rekindle_domain::id::WaitId;
use rekindle_domain::session::SessionState;
use rekindle_domain::time::Moment;
use rekindle_domain::token::Rejection;
use rekindle_wire::view::{OptionView, TokenStanding, TokenView, WaitKind, WaitView};

use super::linkable::{label, options_of};
use super::question::asked;
use crate::commands::resume_tokens::{Bearer, bearer};
use crate::commands::waits::wait_view;
use crate::drive::provider::profile;
use crate::error::Result;
use crate::show::Views;

/// Shows what a resume token is for. What is asked is told as long as it can be answered with it, or if it was: a link that is
/// over tells nothing more.
pub(crate) fn token_view(views: &Views, wait: WaitId, text: &str) -> Result<TokenView> {
    let Bearer { entry, id, scope } = bearer(views, text)?;
    if scope.wait_id != wait {
        return Err(Rejection::Scope.into());
    }
    let moment = Moment { now: views.workers.records.time(), newest: entry.state.updated_at };
    let is_open = entry.state.open_run().is_some_and(|run| run.wait(wait).is_some());
    let (state, reason) = match entry.tokens.judge(id, "", moment) {
        Ok(_) if is_open => (TokenStanding::Open, None),
        Ok(_) => (TokenStanding::Revoked, None),
        Err(Rejection::Consumed | Rejection::Used) => (TokenStanding::Consumed, None),
        Err(Rejection::Revoked(reason)) => (TokenStanding::Revoked, Some(reason)),
        Err(Rejection::Expired) => (TokenStanding::Expired, None),
        Err(rejection @ (Rejection::Unknown | Rejection::Scope)) => return Err(rejection.into()),
    };
    let is_told = matches!(state, TokenStanding::Open | TokenStanding::Consumed);
    let shown = if is_told { Some(wait_view(views, wait)?) } else { None };
    let option = shown.as_ref().zip(scope.option_id);
    Ok(TokenView {
        wait_id: wait,
        title: entry.state.title.clone(),
        state,
        reason,
        expires_at: entry.tokens.tokens.get(&id).and_then(|token| token.expires_at),
        asked: shown.as_ref().map(|shown| asked(shown.kind, &shown.asked())),
        option: option.map(|(shown, option_id)| option_view(&entry.state, shown, option_id)),
    })
}

/// Shows an option of a wait as the agent offers it.
fn option_view(state: &SessionState, shown: &WaitView, option_id: String) -> OptionView {
    let request = shown.request.as_ref().map_or("null", |request| request.get());
    let is_outside = matches!(shown.kind, WaitKind::ToolResult | WaitKind::External);
    let options = profile(&state.provider).map(|profile| options_of(&*profile, is_outside, request));
    let option = options.unwrap_or_default().into_iter().find(|option| option.option_id == option_id);
    OptionView { label: option.as_ref().map_or_else(|| option_id.clone(), label), option_id }
}
