//! Receivers on this machine, good and hostile ones; names that lead where nobody should be led; certificates that are not to be trusted.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;
use crate::fake_machine::FakeMachine;
use crate::retry::next_attempt;
use crate::samples;
use crate::secret::SecretSource;

/// Where somebody hangs, no test waits for as long as a daemon does: not for an answer,
const NO_ANSWER: Limits = Limits { whole: Duration::from_millis(500), ..Limits::USUAL };
/// not for the rest of one,
const NO_REST: Limits = Limits { body: Duration::from_millis(200), ..Limits::USUAL };
/// and not for a connection.
const NO_CONNECTION: Limits = Limits { connect: Duration::from_millis(300), ..Limits::USUAL };

/// A request as it arrived.
#[derive(Debug)]
struct Arrived {
    head: String,
    body: Vec<u8>,
}

impl Arrived {
    fn header(&self, name: &str) -> Option<&str> {
        let of = |line: &'_ str| -> bool {
            line.split(':').next().is_some_and(|it| it.eq_ignore_ascii_case(name))
        };
        self.head.lines().find(|line| of(line))?.split_once(':').map(|(_, value)| value.trim())
    }
}

/// Starts a receiver that treats its first connection so; returns its port.
fn receiver(treat: impl FnOnce(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        if let Ok((stream, _)) = listener.accept() {
            treat(stream);
        }
    });
    port
}

/// Starts a receiver that answers so, and tells what arrived.
fn answering(answer: &str) -> (u16, Receiver<Arrived>) {
    let (sender, arrived) = mpsc::channel();
    let answer = answer.to_owned();
    let port = receiver(move |mut stream| {
        let request = read_request(&mut stream);
        // Who asked may be gone already.
        let _ = stream.write_all(answer.as_bytes());
        let _ = sender.send(request);
    });
    (port, arrived)
}

fn read_request(stream: &mut impl Read) -> Arrived {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).expect("a line") > 0, "{head}");
    }
    let arrived = Arrived { head, body: Vec::new() };
    let length = arrived.header("content-length").expect("a length").parse().expect("a number");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    Arrived { body, ..arrived }
}

/// Returns the configuration of a webhook at an address.
fn config(url: &str) -> WebhookConfig {
    WebhookConfig {
        url: SecretSource::Text(url.to_owned()),
        format: Format::Json,
        secret: None,
        headers: [].into(),
        allow_private: true,
        ca_file: None,
    }
}

fn webhook(config: WebhookConfig, machine: FakeMachine) -> Webhook {
    Webhook::new(config, Include::Title, Arc::new(machine))
}

fn at(port: u16) -> Webhook {
    webhook(config(&format!("http://127.0.0.1:{port}/hunter2?key=hunter2")), FakeMachine::new())
}

fn now() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_123)
}

fn deliver(webhook: &Webhook) -> Delivery {
    let begun = Instant::now();
    let delivery = webhook.deliver(&samples::message(), &samples::links(), now());
    assert!(begun.elapsed() < webhook.limits.whole + Duration::from_secs(3), "{:?}", begun.elapsed());
    // Whatever happens, what is said of it has no secret.
    let shown = format!("{delivery:?} {webhook:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("secret\""), "{shown}");
    delivery
}

#[track_caller]
fn again(delivery: Delivery, words: &str) {
    let Delivery::Retry { after: None, why } = delivery else { panic!("{delivery:?}") };
    assert!(why.contains(words), "{why}");
}

#[track_caller]
fn refused(delivery: Delivery, words: &str) {
    let Delivery::Refused { why } = delivery else { panic!("{delivery:?}") };
    assert!(why.contains(words), "{why}");
}

#[test]
fn a_receiver_gets_one_request_that_it_can_verify() {
    let (port, arrived) = answering("HTTP/1.1 204 No Content\r\n\r\n");
    let directory = tempfile::tempdir().expect("a directory");
    let key = directory.path().join("key");
    std::fs::write(&key, "hunter2\n").expect("written");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("mode");
    let config = WebhookConfig {
        secret: Some(SecretSource::File(key)),
        headers: [("Authorization".to_owned(), SecretSource::Variable("TOKEN".to_owned()))].into(),
        ..config(&format!("http://127.0.0.1:{port}/a/b?c=d"))
    };
    let sink = webhook(config, FakeMachine::with_variable("TOKEN", "Bearer hunter2"));
    assert_eq!(sink.problem(), None);
    assert_eq!(deliver(&sink), Delivery::Delivered);
    let request = arrived.recv().expect("a request");
    assert!(request.head.starts_with("POST /a/b?c=d HTTP/1.1\r\n"), "{}", request.head);
    assert_eq!(request.header("host"), Some(format!("127.0.0.1:{port}").as_str()));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("authorization"), Some("Bearer hunter2"));
    assert_eq!(request.header("x-rekindle-event-id"), Some(samples::waiting().event_id.as_str()));
    let timestamp = request.header("x-rekindle-timestamp").expect("a time");
    assert_eq!(timestamp, "1700000000");
    let expected = signature::sign("hunter2", timestamp, &request.body);
    assert_eq!(request.header("x-rekindle-signature"), Some(expected.as_str()));
    let body: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
    assert_eq!(body["event_id"], samples::waiting().event_id);
}

#[test]
fn ntfy_is_asked_at_its_root() {
    let (port, arrived) = answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let config =
        WebhookConfig { format: Format::Ntfy, ..config(&format!("http://127.0.0.1:{port}/base/mine")) };
    assert_eq!(deliver(&webhook(config, FakeMachine::new())), Delivery::Delivered);
    let request = arrived.recv().expect("a request");
    assert!(request.head.starts_with("POST /base/ HTTP/1.1\r\n"), "{}", request.head);
    let body: serde_json::Value = serde_json::from_slice(&request.body).expect("JSON");
    assert_eq!(body["topic"], "mine");
}

#[test]
fn an_answer_says_whether_it_is_tried_again() {
    let answered = |answer: &str| {
        let (port, _arrived) = answering(&format!("HTTP/1.1 {answer}\r\n\r\n"));
        deliver(&at(port))
    };
    for status in ["200 OK", "201 Created", "202 Accepted", "204 No Content"] {
        assert_eq!(answered(&format!("{status}\r\nContent-Length: 0")), Delivery::Delivered, "{status}");
    }
    for status in ["408 x", "429 x", "500 x", "502 x", "503 x", "599 x"] {
        again(answered(&format!("{status}\r\nContent-Length: 0")), &format!("answered {}", &status[..3]));
    }
    for status in ["400 x", "401 x", "403 x", "404 x", "410 x", "413 x"] {
        refused(answered(&format!("{status}\r\nContent-Length: 0")), &format!("answered {}", &status[..3]));
    }
    let slow = answered("429 x\r\nRetry-After: 120\r\nContent-Length: 0");
    let Delivery::Retry { after: Some(after), .. } = slow else { panic!("{slow:?}") };
    assert_eq!(after, Duration::from_secs(120));
}

#[test]
fn a_receiver_that_answers_500_for_an_hour_is_told_after_it() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (first, hour) = (now(), 60 * 60 * 1000);
    // It goes by the time that requests bring, which is handed in.
    let well = first.plus_millis(hour).as_millis() / 1000;
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let sent: i64 = read_request(&mut stream)
                .header("x-rekindle-timestamp")
                .expect("a time")
                .parse()
                .expect("a number");
            let status = if sent < well { "500 x" } else { "200 OK" };
            let _ = stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes());
        }
    });
    let sink = at(port);
    let (mut at, mut failures) = (first, 0);
    while sink.deliver(&samples::message(), &[], at) != Delivery::Delivered {
        failures += 1;
        at = next_attempt(first, failures, None, at, u32::MAX / 3).expect("it is not given up");
    }
    assert!((8..16).contains(&failures), "{failures}");
    assert!(at.millis_since(first) < 2 * 60 * 60 * 1000);
}

#[test]
fn a_redirect_is_followed_by_nobody() {
    let elsewhere = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    elsewhere.set_nonblocking(true).expect("set");
    let target = elsewhere.local_addr().expect("an address");
    for status in [301, 302, 303, 307, 308] {
        let answer =
            format!("HTTP/1.1 {status} x\r\nLocation: http://{target}/hunter2\r\nContent-Length: 0\r\n\r\n");
        let (port, _arrived) = answering(&answer);
        refused(deliver(&at(port)), "redirects are not followed");
    }
    assert!(elsewhere.accept().is_err(), "somebody came");
}

#[test]
fn a_receiver_that_hangs_anywhere_keeps_nobody() {
    // In accepting: the queue of a listener takes the connection, and nobody the request.
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let silent = listener.local_addr().expect("an address").port();
    let at = |port, limits| Webhook { limits, ..at(port) };
    again(deliver(&at(silent, NO_ANSWER)), "did not answer within");
    let (end, ended) = mpsc::channel::<()>();
    let hanging = |answer: &'static str| {
        let end = end.clone();
        receiver(move |mut stream| {
            read_request(&mut stream);
            let _ = stream.write_all(answer.as_bytes());
            // Until whoever asked is gone.
            let _ = stream.read_to_end(&mut Vec::new());
            drop(end);
        })
    };
    let in_head = hanging("HTTP/1.1 200 OK\r\nContent-");
    again(deliver(&at(in_head, NO_ANSWER)), "did not answer within");
    // Its status is there: what else it has to say is no matter.
    let in_body = hanging("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nso");
    assert_eq!(deliver(&at(in_body, NO_REST)), Delivery::Delivered);
    let in_error = hanging("HTTP/1.1 500 x\r\nContent-Length: 100\r\n\r\nso");
    again(deliver(&at(in_error, NO_REST)), "answered 500");
    drop(end);
    // Each connection was closed.
    assert!(
        ended
            .recv_timeout(Duration::from_secs(5))
            .is_err_and(|error| error == mpsc::RecvTimeoutError::Disconnected)
    );
}

#[test]
fn a_receiver_that_says_too_much_is_not_listened_to() {
    let flood = |begin: &'static str| {
        receiver(move |mut stream| {
            read_request(&mut stream);
            let _ = stream.write_all(begin.as_bytes());
            // Ends when nobody reads any more.
            while stream.write_all(&[b'x'; 4096]).is_ok() {}
        })
    };
    assert_eq!(deliver(&at(flood("HTTP/1.1 200 OK\r\n\r\n"))), Delivery::Delivered);
    again(deliver(&at(flood("HTTP/1.1 503 x\r\n\r\n"))), "answered 503");
    // A head without an end.
    again(deliver(&at(flood("HTTP/1.1 200 OK\r\nX: "))), "did not answer");
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n";
    assert_eq!(deliver(&at(flood(chunks))), Delivery::Delivered);
}

#[test]
fn a_receiver_that_closes_or_speaks_otherwise_is_tried_again() {
    again(deliver(&at(receiver(drop))), "did not answer");
    let after_request = |answer: &'static str| {
        receiver(move |mut stream| {
            read_request(&mut stream);
            let _ = stream.write_all(answer.as_bytes());
        })
    };
    again(deliver(&at(after_request(""))), "did not answer");
    again(deliver(&at(after_request("220 mail.example ESMTP\r\n"))), "did not answer");
    let closed =
        TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address").port();
    again(deliver(&at(closed)), "cannot be connected to");
}

#[test]
fn names_that_lead_where_nothing_is_sent_are_refused() {
    let url = "https://hooks.example/hunter2";
    let to = |numbers: &[&str], allow_private| {
        let config = WebhookConfig { allow_private, ..config(url) };
        deliver(&webhook(config, FakeMachine::with_name("hooks.example", numbers)))
    };
    for never in [
        "169.254.169.254",
        "0.0.0.0",
        "224.0.0.1",
        "fe80::1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "fd00:ec2::254",
    ] {
        refused(to(&[never], true), "that Rekindle never sends to");
        // One among good ones is enough: it could be the one that is connected to next time.
        refused(to(&["192.0.2.1", never], true), "that Rekindle never sends to");
    }
    for private in ["127.0.0.1", "10.0.0.1", "192.168.0.1", "100.64.0.1", "::1", "fd12::1", "::ffff:10.0.0.1"]
    {
        refused(to(&[private], false), "allow_private = true");
        refused(to(&["192.0.2.1", private], false), "allow_private = true");
    }
    let plain = webhook(
        config("http://hooks.example/hunter2"),
        FakeMachine::with_name("hooks.example", &["192.0.2.1"]),
    );
    refused(deliver(&plain), "nothing is sent there without TLS");
    again(to(&[], true), "has no address");
    again(deliver(&webhook(config(url), FakeMachine::new())), "cannot be resolved");
}

#[test]
fn the_address_that_was_judged_is_the_one_that_is_connected_to() {
    let (port, arrived) = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    // Another would be found for this name, if anybody asked again; the first is not there.
    let machine = FakeMachine::with_name("hooks.invalid", &["127.0.0.2", "127.0.0.1"]);
    let sink = webhook(config(&format!("http://hooks.invalid:{port}/hunter2")), machine);
    assert_eq!(deliver(&sink), Delivery::Delivered);
    let request = arrived.recv().expect("a request");
    assert_eq!(request.header("host"), Some(format!("hooks.invalid:{port}").as_str()));
}

#[test]
fn a_resolver_that_hangs_keeps_nobody() {
    #[derive(Debug)]
    struct Hanging(std::sync::Mutex<Receiver<()>>);
    impl Machine for Hanging {
        fn variable(&self, _: &str) -> Option<String> {
            None
        }
        fn variable_names(&self) -> Vec<String> {
            Vec::new()
        }
        fn resolve(&self, _: &str, _: u16) -> std::io::Result<Vec<std::net::SocketAddr>> {
            // Until the test is over.
            let _ = self.0.lock().expect("one caller").recv();
            Ok(Vec::new())
        }
        fn zone(&self) -> jiff::tz::TimeZone {
            jiff::tz::TimeZone::UTC
        }
    }
    let (_end, ended) = mpsc::channel();
    let machine = Arc::new(Hanging(ended.into()));
    let sink = Webhook::new(config("https://hooks.example/hunter2"), Include::Title, machine);
    again(deliver(&Webhook { limits: NO_CONNECTION, ..sink }), "could not be resolved in time");
}

#[test]
fn what_the_configuration_names_and_is_not_there_is_named() {
    let missing = |config: WebhookConfig, words: &str| {
        let sink = webhook(config, FakeMachine::with_variable("BAD", "no url\nhunter2"));
        assert!(sink.problem().is_some_and(|why| why.contains(words) && !why.contains("hunter2")));
        again(deliver(&sink), words);
    };
    let url = "https://hooks.example/hunter2";
    missing(WebhookConfig { url: SecretSource::Variable("NONE".to_owned()), ..config("") }, "NONE");
    missing(
        WebhookConfig { url: SecretSource::Variable("BAD".to_owned()), ..config("") },
        "url is not a URL",
    );
    missing(
        WebhookConfig { secret: Some(SecretSource::File("/no/such/key".into())), ..config(url) },
        "/no/such/key",
    );
    let headers = [("X-A".to_owned(), SecretSource::Variable("BAD".to_owned()))].into();
    missing(WebhookConfig { headers, ..config(url) }, "the value of X-A");
    missing(WebhookConfig { ca_file: Some("/no/such/ca.pem".into()), ..config(url) }, "/no/such/ca.pem");
}

/// An authority, and a receiver's certificate and key that it signed for a name, in a directory.
fn certificates(directory: &Path, name: &str) -> (std::path::PathBuf, Arc<ServerConfig>) {
    let mut parameters = CertificateParams::new(["authority".to_owned()]).expect("a name");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().expect("a key");
    let authority = parameters.self_signed(&key).expect("a certificate").pem();
    let file = directory.join(format!("{name}.pem"));
    std::fs::write(&file, authority).expect("written");
    let server_key = KeyPair::generate().expect("a key");
    let server = CertificateParams::new([name.to_owned()]).expect("a name");
    let server = server.signed_by(&server_key, &Issuer::new(parameters, key)).expect("a certificate").pem();
    let certificate = CertificateDer::from_pem_slice(server.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(server_key.serialize_pem().as_bytes()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    (file, Arc::new(config.with_single_cert(vec![certificate], key).expect("a certificate")))
}

#[test]
fn a_receiver_is_spoken_to_only_if_its_certificate_is_for_its_name_and_trusted() {
    let directory = tempfile::tempdir().expect("a directory");
    let (authority, server) = certificates(directory.path(), "hooks.example");
    let (another, _) = certificates(directory.path(), "another.example");
    let serve = || {
        let (sender, arrived) = mpsc::channel();
        let server = Arc::clone(&server);
        let port = receiver(move |stream| {
            let connection = ServerConnection::new(server).expect("a connection");
            let mut stream = StreamOwned::new(connection, stream);
            let mut first = [0; 1];
            // Who does not trust us says nothing.
            if stream.read_exact(&mut first).is_ok() {
                let request = read_request(&mut stream);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                let _ = sender.send(request);
            }
        });
        (port, arrived)
    };
    let ask = |host: &str, ca_file: Option<&Path>| {
        let (port, arrived) = serve();
        let config = WebhookConfig {
            ca_file: ca_file.map(Path::to_owned),
            ..config(&format!("https://{host}:{port}/hunter2"))
        };
        let machine = FakeMachine::with_name(host, &["127.0.0.1"]);
        (deliver(&webhook(config, machine)), arrived)
    };
    let (delivery, arrived) = ask("hooks.example", Some(&authority));
    assert_eq!(delivery, Delivery::Delivered);
    assert!(arrived.recv().is_ok());
    for (host, ca_file, words) in [
        ("hooks.example", None, "ca_file"),
        ("hooks.example", Some(another.as_path()), "ca_file"),
        ("other.example", Some(authority.as_path()), "another name"),
    ] {
        let (delivery, arrived) = ask(host, ca_file);
        again(delivery, words);
        assert!(arrived.recv().is_err(), "something was sent");
    }
    // One that does not speak TLS at all, and one that says nothing.
    let plain = receiver(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let silent = receiver(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    for (port, limits, words) in [(plain, Limits::USUAL, "TLS"), (silent, NO_CONNECTION, "in time")] {
        let machine = FakeMachine::with_name("hooks.example", &["127.0.0.1"]);
        let sink = webhook(config(&format!("https://hooks.example:{port}/hunter2")), machine);
        again(deliver(&Webhook { limits, ..sink }), words);
    }
}
