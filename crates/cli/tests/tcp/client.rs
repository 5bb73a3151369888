//! A daemon that listens on TCP, tokens for it, and the smallest client that can talk to it.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::process::Output;
use std::time::Instant;

use rekindle_lab::{Connection, EventStream, OwnedEvent, daemon_file, request};
use serde_json::Value;

pub(crate) use crate::lab::Reply;
use crate::lab::{Lab, PATIENCE};

/// A token that was made.
pub(crate) struct Token {
    pub(crate) id: String,
    pub(crate) text: String,
}

impl Token {
    /// Makes one with the command that people use.
    pub(crate) fn create(lab: &Lab, arguments: &[&str]) -> Token {
        let made = lab.rekindle(&["token", "create", "--json"]).args(arguments).output().expect("it runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let made: Value = serde_json::from_slice(&made.stdout).expect("JSON");
        let text = |name: &str| made[name].as_str().expect("a text").to_owned();
        Token { id: text("id"), text: text("token") }
    }

    pub(crate) fn secret(&self) -> &str {
        self.text.split_once('.').expect("two parts").1
    }

    pub(crate) fn header(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.text)
    }

    pub(crate) fn revoke(&self, lab: &Lab) {
        let revoked = lab.rekindle(&["token", "revoke", &self.id]).output().expect("it runs");
        assert!(revoked.status.success(), "{}", String::from_utf8_lossy(&revoked.stderr));
    }
}

/// Starts a daemon that listens on a port of its choice.
pub(crate) fn listening() -> (Lab, u16) {
    let mut lab = Lab::without_daemon();
    lab.start_with(&["--listen", "127.0.0.1:0"], &[]);
    let port = port(&lab);
    (lab, port)
}

/// Returns the port that the daemon of a home has, if it listens on one.
pub(crate) fn port_if_any(lab: &Lab) -> Option<u16> {
    let place = daemon_file(&lab.home());
    assert!(place.is_object(), "a daemon");
    place["listen"].as_str()?.rsplit_once(':')?.1.parse().ok()
}

pub(crate) fn port(lab: &Lab) -> u16 {
    port_if_any(lab).expect("it listens")
}

pub(crate) fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    stream
}

/// Asks with exactly these headers.
pub(crate) fn ask_as(port: u16, method: &str, path: &str, headers: &str, body: &Value) -> Reply {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut connection = Connection::on(connect(port));
    connection.send(request(method, path, headers, &body).as_bytes()).expect("asked");
    connection.receive().expect("an answer").into()
}

/// Asks as a good program does, with a token or without.
pub(crate) fn ask(port: u16, method: &str, path: &str, token: Option<&Token>, body: &Value) -> Reply {
    let token = token.map(Token::header).unwrap_or_default();
    ask_as(port, method, path, &format!("Host: 127.0.0.1:{port}\r\n{token}"), body)
}

/// Events as they come.
pub(crate) struct Events {
    stream: EventStream<TcpStream>,
    since: Instant,
}

impl Events {
    /// Follows something from behind an id.
    pub(crate) fn follow(port: u16, path: &str, token: &Token, last: Option<&str>) -> Events {
        let headers = format!("Host: localhost:{port}\r\n{}", token.header());
        let mut stream = EventStream::open(connect(port), path, &headers, last).expect("asked");
        stream.begin().expect("it is told");
        Events { stream, since: Instant::now() }
    }

    /// Returns the id of the next record; none when the stream ends. A stream that only shows that it is there does not
    /// end.
    pub(crate) fn next_id(&mut self) -> Option<String> {
        loop {
            match self.stream.next_event() {
                Ok(OwnedEvent { id: Some(id), .. }) => return Some(id),
                Ok(_) => assert!(self.since.elapsed() < PATIENCE * 2, "the stream goes on and says nothing"),
                Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("the stream is silent"),
                Err(_) => return None,
            }
        }
    }
}

/// Runs a command against a daemon elsewhere.
pub(crate) fn elsewhere(lab: &Lab, url: &str, token: Option<&Token>, arguments: &[&str]) -> Output {
    let mut command = lab.rekindle(&[]);
    // A home of its own that is not there: whoever looked at it would find nothing.
    let mut plain = std::process::Command::new(command.get_program());
    plain.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    plain.env("REKINDLE_HOME", lab.path("nowhere")).current_dir(lab.path("work"));
    plain.env_remove("REKINDLE_SERVER").env_remove("REKINDLE_TOKEN").env_remove("REKINDLE_TOKEN_FILE");
    plain.args(["--server", url]).args(arguments).stdin(std::process::Stdio::null());
    if let Some(token) = token {
        plain.env("REKINDLE_TOKEN", &token.text);
    }
    command = plain;
    command.output().expect("it runs")
}

pub(crate) fn words(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}
