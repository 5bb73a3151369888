//! Sealed bundles: whoever knows the passphrase reads what was written, and nobody else reads or changes anything.

use std::io::{Read, Seek, SeekFrom, Write};

use super::super::read::verify;
use super::super::sealed::{Passphrase, Sealing, is_sealed, open_sealed};
use super::*;

/// Little, because there are many tries here.
const WORK: u8 = 1;

fn passphrase(text: &str) -> Passphrase {
    Passphrase::new(text.into()).expect("a passphrase")
}

fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut sealing = Sealing::with_work(Vec::new(), &passphrase("four words of mine"), WORK).expect("begun");
    sealing.write_all(bytes).expect("written");
    sealing.finish().expect("finished")
}

/// Imports a sealed bundle into a new home.
fn import_sealed(bundle: &[u8], text: &str) -> (SimDisk, Result<Vec<ImportedSession>, BundleError>) {
    let to = SimDisk::new(2);
    drop(open(&to));
    let outcome = open_sealed(Cursor::new(bundle), &passphrase(text)).and_then(|mut file| {
        let mut staged = stage(&shared(&to), &Layout::new(HOME), &mut file, &asked(), &mut |_| {})?;
        staged.keep_contents(&mut file, &mut |_| {})?;
        import_staged(&shared(&to), &open(&to), staged.name())?;
        Ok(staged.sessions.clone())
    });
    (to, outcome)
}

#[test]
fn a_sealed_bundle_is_opened_by_its_passphrase_alone() {
    let from = home_with_session();
    // More than one piece of what is sealed at a time.
    let (store, mut noise) = (open(&from), vec![0; 300_000]);
    rekindle_testkit::rng::Rng::new(5).fill(&mut noise);
    let blob = store.blobs().put(&noise).expect("kept").blob;
    store.open_session(session()).expect("opened");
    let said =
        format!(r#"{{"run_id":"run_1","message_id":"msg_4","content":{{"blob":"{blob}","size":300000}}}}"#);
    store.append(Append::durable(session(), vec![record("message.agent", &said)])).expect("appended");
    drop(store);
    let plain = exported(&from);
    let bundle = sealed(&plain);
    assert!(bundle.len() > 4 * (1 << 16) && !bundle.windows(20).any(|bytes| plain.starts_with(bytes)));
    assert!(is_sealed(&mut Cursor::new(&bundle)).expect("read"));
    assert!(!is_sealed(&mut Cursor::new(&plain)).expect("read"));
    assert!(!is_sealed(&mut Cursor::new(b"")).expect("read"));
    let mut whole = Vec::new();
    let mut opened = open_sealed(Cursor::new(&bundle), &passphrase("four words of mine")).expect("opened");
    opened.seek(SeekFrom::End(0)).and_then(|_| opened.seek(SeekFrom::Start(0))).expect("sought");
    opened.read_to_end(&mut whole).expect("read");
    assert_eq!(whole, plain);
    let (to, sessions) = import_sealed(&bundle, "four words of mine");
    assert_eq!(sessions.expect("imported")[0].id, session());
    assert!(log(&to, session()).starts_with(&log(&from, session())));
    assert_eq!(errors(&to), Vec::<String>::new());
    let (to, refused) = import_sealed(&bundle, "four words of yours");
    assert_eq!(refused.expect_err("refused").code(), "wrong_passphrase");
    assert!(to.stat(&Layout::new(HOME).log(session())).is_err());
    assert!(Passphrase::new(String::new()).is_none());
}

#[test]
fn any_byte_of_a_sealed_bundle_that_is_changed_or_cut_off_is_noticed() {
    let bundle = sealed(&exported(&home_with_session()));
    let refused = |bytes: &[u8]| {
        open_sealed(Cursor::new(bytes), &passphrase("four words of mine"))
            .and_then(|mut file| verify(&mut file, &mut |_| {}))
            .err()
    };
    assert!(refused(&bundle).is_none());
    for at in (0..bundle.len()).step_by(17) {
        let mut changed = bundle.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(refused(&changed).is_some(), "byte {at}");
        let cut = refused(&bundle[..at]).expect("refused");
        assert!(["not_a_bundle", "bundle_damaged"].contains(&cut.code()), "cut at {at}: {cut:?}");
    }
    let more = [&bundle[..], b"more"].concat();
    assert!(refused(&more).is_some());
}

#[test]
fn a_seal_that_would_take_too_much_or_is_none_of_a_passphrase_is_refused() {
    let bundle = sealed(&exported(&home_with_session()));
    let text = String::from_utf8_lossy(&bundle[..100]).into_owned();
    let at = text.find(" 1\n").expect("the work");
    let costly = [&bundle[..at], b" 30\n", &bundle[at + 3..]].concat();
    let endless = [&b"age-encryption.org/v1\n-> scrypt "[..], &vec![b'a'; 1 << 20]].concat();
    let for_a_key = b"age-encryption.org/v1\n-> X25519 TEiF0ypqr+bpvcqXNyCVJpL7OuwPdVwPL7KQEbFDOCc\nEmECAEcKN+n/Vs9SbWiV+Hu0r+E8R77DdWYyd83nw7U\n--- Vn+54jqiiUCE+WZcEVY3f1sqHjlu/z1LCQ/T7Xm7qI0\nx";
    let newer = b"age-encryption.org/v2\n-> scrypt x 1\ny\n--- z\n";
    for (what, bytes) in
        [("work", &costly[..]), ("no end", &endless), ("a key", for_a_key), ("another version", newer)]
    {
        assert!(is_sealed(&mut Cursor::new(bytes)).expect("read"), "{what}");
        let refused = open_sealed(Cursor::new(bytes), &passphrase("x")).err().expect(what);
        assert_eq!(refused.code(), "not_a_bundle", "{what}: {refused}");
    }
}
