//! TLS by certificate files, with certificates made here.

use std::io::Write;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, generate_simple_self_signed};
use serde_json::Value;

use crate::client::{Token, ask, connect, elsewhere, port, words};
use crate::lab::Lab;

/// Makes a certificate and its key in files.
fn certificate(lab: &Lab, name: &str, hosts: &[&str]) -> (PathBuf, PathBuf) {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let made = generate_simple_self_signed(hosts).expect("a certificate");
    let (certificate, key) = (lab.path(&format!("{name}.pem")), lab.path(&format!("{name}.key")));
    std::fs::write(&certificate, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    (certificate, key)
}

/// Makes a certificate as `openssl req -x509` does: it may sign others.
fn authority(lab: &Lab, host: &str) -> (PathBuf, PathBuf) {
    let mut parameters = CertificateParams::new([host.to_owned()]).expect("a name");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let made = parameters.self_signed(&key).expect("a certificate");
    let (certificate, key_file) = (lab.path("authority.pem"), lab.path("authority.key"));
    std::fs::write(&certificate, made.pem()).expect("written");
    std::fs::write(&key_file, key.serialize_pem()).expect("written");
    (certificate, key_file)
}

#[test]
fn a_certificate_that_no_server_may_show_is_told_from_one_that_is_not_trusted() {
    let mut lab = Lab::without_daemon();
    let (certificate, key) = authority(&lab, "127.0.0.1");
    lab.start_with(
        &["--listen", "127.0.0.1:0", "--tls-cert", text(&certificate), "--tls-key", text(&key)],
        &[],
    );
    let token = Token::create(&lab, &["--scope", "read"]);
    let url = format!("https://127.0.0.1:{}", port(&lab));
    let output = elsewhere(&lab, &url, Some(&token), &["--ca", text(&certificate), "ps"]);
    assert_eq!(output.status.code(), Some(5), "{}", words(&output));
    assert!(words(&output).contains("basicConstraints=critical,CA:FALSE"), "{}", words(&output));
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[test]
fn commands_speak_tls_with_whom_they_were_told_to_trust_only() {
    let mut lab = Lab::without_daemon();
    let (certificate_file, key) = certificate(&lab, "box", &["localhost", "127.0.0.1"]);
    lab.start_with(
        &["--listen", "127.0.0.1:0", "--tls-cert", text(&certificate_file), "--tls-key", text(&key)],
        &[],
    );
    let token = Token::create(&lab, &["--scope", "admin"]);
    let port = port(&lab);
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("https://{host}:{port}");
        let run = ["--ca", text(&certificate_file), "run", "say hello over TLS", "--"];
        let agent = lab.demo(&[]);
        let arguments: Vec<&str> = run.into_iter().chain(agent.iter().map(String::as_str)).collect();
        let output = elsewhere(&lab, &url, Some(&token), &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", words(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("hello over TLS"), "{}", words(&output));
    }
    let url = format!("https://127.0.0.1:{port}");
    let (other, _) = certificate(&lab, "other", &["127.0.0.1"]);
    for ca in [&[][..], &["--ca", text(&other)]] {
        let output = elsewhere(&lab, &url, Some(&token), &[ca, &["ps"]].concat());
        assert_eq!(output.status.code(), Some(5), "{}", words(&output));
        assert!(
            words(&output).contains("cannot be trusted") && words(&output).contains("--ca"),
            "{}",
            words(&output)
        );
    }
    let missing = elsewhere(&lab, &url, Some(&token), &["--ca", "/no/such/file", "ps"]);
    assert_eq!(missing.status.code(), Some(2), "{}", words(&missing));

    // Plain words to it are answered in plain words.
    let reply = ask(port, "GET", "/healthz", None, &Value::Null);
    assert_eq!(reply.code(), (400, "tls_expected"));
    let plain = elsewhere(&lab, &format!("http://127.0.0.1:{port}"), Some(&token), &["ps"]);
    assert!(!plain.status.success() && words(&plain).contains("https://"), "{}", words(&plain));
    // Whoever says nothing, or rubbish, is let go and stops nobody.
    let silent = connect(port);
    let mut rubbish = connect(port);
    rubbish.write_all(&[0x16, 0x03, 0x01, 0x00, 0x02, 0xff, 0xff]).expect("written");
    let again = elsewhere(&lab, &url, Some(&token), &["--ca", text(&certificate_file), "ps", "--json"]);
    assert!(again.status.success(), "{}", words(&again));
    drop(silent);
    // The next daemon shows the same certificate.
    lab.kill();
    lab.start();
    let after = elsewhere(&lab, &url, Some(&token), &["--ca", text(&certificate_file), "ps", "-a", "--json"]);
    assert!(after.status.success(), "{}", words(&after));
    let list: Value = serde_json::from_slice(&after.stdout).expect("JSON");
    assert_eq!(list["sessions"].as_array().map(Vec::len), Some(2));
    assert!(!lab.daemon_log().contains(token.secret()));
}

#[test]
fn files_that_are_no_good_are_said_at_the_start() {
    let lab = Lab::without_daemon();
    let (certificate_file, key) = certificate(&lab, "box", &["localhost"]);
    let (_, other) = certificate(&lab, "other", &["localhost"]);
    let empty = lab.path("empty.pem");
    std::fs::write(&empty, "nothing\n").expect("written");
    let (certificate_file, key, other, empty) =
        (text(&certificate_file), text(&key), text(&other), text(&empty));
    for (arguments, says) in [
        (
            &["--tls-cert", "/no/such.pem", "--tls-key", key][..],
            "/no/such.pem contains no certificate: No such file",
        ),
        (
            &["--tls-cert", certificate_file, "--tls-key", "/no/such.key"],
            "/no/such.key contains no private key: No such file",
        ),
        (&["--tls-cert", empty, "--tls-key", key], "there is none in PEM format"),
        (&["--tls-cert", certificate_file, "--tls-key", empty], "contains no private key"),
        (&["--tls-cert", key, "--tls-key", key], "contains no certificate"),
        (&["--tls-cert", certificate_file, "--tls-key", other], "cannot be used with the certificate"),
        (&["--tls-cert", certificate_file], "--tls-key"),
    ] {
        let output =
            lab.rekindle(&["serve", "--listen", "127.0.0.1:0"]).args(arguments).output().expect("it runs");
        assert!(!output.status.success(), "{arguments:?}");
        assert!(words(&output).contains(says), "{arguments:?}: {}", words(&output));
    }
}

#[test]
fn beyond_this_machine_it_takes_tls_and_a_token() {
    let lab = Lab::without_daemon();
    let (certificate_file, key) = certificate(&lab, "box", &["localhost"]);
    let plain = lab.rekindle(&["serve", "--listen", "0.0.0.0:0"]).output().expect("it runs");
    assert_eq!(plain.status.code(), Some(2), "{}", words(&plain));
    assert!(
        words(&plain).contains("unencrypted") && words(&plain).contains("--tls-cert"),
        "{}",
        words(&plain)
    );
    let with_tls = || {
        let tls = ["--tls-cert", text(&certificate_file), "--tls-key", text(&key)];
        // An address that is no machine's: what is not refused before could not be listened at.
        lab.rekindle(&["serve", "--listen", "192.0.2.1:0"]).args(tls).output().expect("it runs")
    };
    let nobody = with_tls();
    assert_eq!(nobody.status.code(), Some(2), "{}", words(&nobody));
    assert!(words(&nobody).contains("rekindle token create"), "{}", words(&nobody));
    let token = Token::create(&lab, &["--ttl", "never"]);
    assert!(words(&with_tls()).contains("cannot listen at 192.0.2.1:0"), "{}", words(&with_tls()));
    token.revoke(&lab);
    assert!(words(&with_tls()).contains("rekindle token create"), "one that was taken back lets in nobody");
}
