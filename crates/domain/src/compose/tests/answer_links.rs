//! Answer links: minted for the options of an open wait, in the place of those made for the same one before.

use super::*;
use crate::compose::answer_links::{NewLinks, mint};
use crate::token::Presented;

/// Composes links of `wait_1` for two options, which would expire at second 200.
fn two(state: &SessionState, tokens: &TokenIndex, by: &str) -> Vec<Draft> {
    let token = |id: &str| Presented::mint(id.parse().expect("an id"), [7; 32]).1;
    let wanted = [("allow".to_owned(), token("rt_8")), ("reject".to_owned(), token("rt_9"))];
    let wait_id = "wait_1".parse().expect("an id");
    let new = NewLinks { wait_id, by, tokens: &wanted, expires_at: at(200) };
    mint(state, tokens, &new).map(|(records, _)| records).unwrap_or_default()
}

/// Returns the records of the two, which expire at some second.
fn minted(by: &str, expires: u32) -> String {
    let (_, token) = Presented::mint("rt_8".parse::<crate::id::TokenId>().expect("an id"), [7; 32]);
    let hash = token.secret_hash().to_owned();
    let one = |number: u8, option: &str| {
        format!(
            "token.minted token={number} scope_option={option} secret_hash=\"{hash}\" expires={expires} by={by}"
        )
    };
    format!("{}; {}", one(8, "allow"), one(9, "reject"))
}

#[test]
fn links_are_for_an_open_wait_alone_and_end_with_it() {
    check(&[STARTED, ASKED], &minted("phone", 200), |state, tokens| two(state, tokens, "phone"));
    let early = "run.waiting deadline=150; token.minted expires=150";
    check(&[STARTED, early], &minted("phone", 150), |state, tokens| two(state, tokens, "phone"));
    let late = "run.waiting deadline=900; token.minted expires=900";
    check(&[STARTED, late], &minted("phone", 200), |state, tokens| two(state, tokens, "phone"));
    for over in ["run.resumed", "run.interrupted", "run.completed"] {
        let ended = format!("token.revoked; {over}");
        check(&[STARTED, ASKED, &ended], "", |state, tokens| two(state, tokens, "phone"));
    }
    check(&[STARTED], "", |state, tokens| two(state, tokens, "phone"));
}

/// The wait's own token, further ones, links of others and links of other waits stay as they are.
#[test]
fn newer_links_replace_those_of_the_same_one_and_nothing_else() {
    let further = "token.minted token=2 by=phone";
    let links =
        "token.minted token=3 scope_option=allow by=phone; token.minted token=4 scope_option=reject by=phone";
    let of_others = "token.minted token=5 scope_option=allow by=slack; \
        run.waiting wait=6; token.minted wait=6 token=6; token.minted wait=6 token=7 scope_option=allow by=phone";
    let log = [STARTED, ASKED, further, links, of_others];
    let replaced =
        "token.revoked token=3 reason=replaced by=phone; token.revoked token=4 reason=replaced by=phone";
    check(&log, &format!("{replaced}; {}", minted("phone", 200)), |state, tokens| {
        two(state, tokens, "phone")
    });
    // One that has ended already is not ended again.
    let log = [STARTED, ASKED, links, "token.expired token=3"];
    let replaced = "token.revoked token=4 reason=replaced by=phone";
    check(&log, &format!("{replaced}; {}", minted("phone", 200)), |state, tokens| {
        two(state, tokens, "phone")
    });
}
