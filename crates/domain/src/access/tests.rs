//! Who is let in, and who is not.

use super::*;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn shown(number: u8) -> (String, PresentedToken) {
    PresentedToken::mint(AccessId::mint(u64::from(number), 7), [number; 32])
}

fn new(scope: Scope, ttl_millis: Option<i64>) -> NewAccess {
    NewAccess { name: None, scope, ttl_millis }
}

#[test]
fn a_shown_token_is_read_back_and_nothing_else_is() {
    let (text, token) = shown(1);
    assert_eq!(text.parse(), Ok(token.clone()));
    assert!(!format!("{token:?}").contains(&"01".repeat(32)), "{token:?}");
    let (id, secret) = text.split_once('.').expect("two parts");
    let bad = ["", ".", id, secret, &text[..text.len() - 1], &format!("{text}0"), &format!("rt_1.{secret}")];
    for text in bad {
        assert_eq!(text.parse::<PresentedToken>(), Err(Denial::Unknown), "{text}");
    }
}

#[test]
fn who_is_let_in() {
    let mut list = AccessList::default();
    let (reader, admin, short) = (shown(1).1, shown(2).1, shown(3).1);
    list.add(&reader, new(Scope::Read, None), at(0)).expect("added");
    list.add(&admin, NewAccess { name: Some("ci".into()), ..new(Scope::Admin, None) }, at(0)).expect("added");
    list.add(&short, new(Scope::Answer, Some(10)), at(0)).expect("added");
    let judge =
        |shown: &PresentedToken, needs, now| list.judge(shown, needs, at(now)).map(|bearer| bearer.name);
    assert_eq!(judge(&reader, Scope::Read, 5), Ok(reader.id.to_string()));
    let weak = Denial::Scope { has: Scope::Read, needs: Scope::Answer };
    assert_eq!(judge(&reader, Scope::Answer, 5), Err(weak));
    assert_eq!(judge(&admin, Scope::Answer, 5), Ok(format!("ci ({})", admin.id)));
    assert_eq!(judge(&short, Scope::Answer, 9), Ok(short.id.to_string()));
    assert_eq!(judge(&short, Scope::Answer, 10), Err(Denial::Expired));
    // Whoever does not know the secret is told nothing about the token.
    let forged = PresentedToken::mint(short.id, [2; 32]).1;
    assert_eq!(judge(&forged, Scope::Admin, 10), Err(Denial::Unknown));
    assert_eq!(judge(&shown(9).1, Scope::Read, 0), Err(Denial::Unknown));
}

#[test]
fn what_is_revoked_stays_so() {
    let mut list = AccessList::default();
    let token = shown(1).1;
    list.add(&token, new(Scope::Admin, None), at(0)).expect("added");
    assert_eq!(list.revoke(token.id, at(5)), Some(Standing::Active));
    assert_eq!(list.judge(&token, Scope::Read, at(0)), Err(Denial::Revoked), "whatever the clock says");
    assert_eq!(list.revoke(token.id, at(9)), Some(Standing::Revoked));
    assert_eq!(list.tokens[&token.id].revoked_at, Some(at(5)));
    assert_eq!(list.revoke(shown(2).1.id, at(9)), None);
}

#[test]
fn names_are_plain_and_lists_are_bounded() {
    let mut list = AccessList::default();
    let long = "x".repeat(MAX_NAME + 1);
    for name in ["", "a b", "é", "a\n", "local\u{1b}[1m", &long] {
        let new = NewAccess { name: Some(name.to_owned()), ..new(Scope::Read, None) };
        assert_eq!(list.add(&shown(1).1, new, at(0)), Err(BadAccess::Name), "{name:?}");
    }
    let mint = |number: usize| PresentedToken::mint(AccessId::mint(number as u64, 7), [1; 32]).1;
    for number in 0..MAX_ENDED + 3 {
        list.add(&mint(number), new(Scope::Read, Some(1)), at(number as i64 * 2)).expect("added");
    }
    list.add(&mint(9999), new(Scope::Read, None), at(1 << 20)).expect("added");
    assert_eq!(list.tokens.len(), MAX_ENDED + 1);
    assert!(!list.tokens.contains_key(&mint(0).id) && list.tokens.contains_key(&mint(9999).id));
    for number in 0..MAX_ACTIVE - 1 {
        list.add(&mint(10_000 + number), new(Scope::Read, None), at(1 << 20)).expect("added");
    }
    assert_eq!(list.add(&mint(1), new(Scope::Read, None), at(1 << 20)), Err(BadAccess::TooMany));
}
