//! When a connection goes over TLS, in a table; and real servers, with certificates that are trusted or are not.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rekindle_testkit::postgres_server::{PostgresServer, ServerCertificate};

use super::*;

#[test]
fn nothing_crosses_a_network_in_the_clear_unless_the_address_says_so() {
    use SslMode::{Disable, Require};
    // By address, without and with an authority that is named.
    let cases = [
        ("postgres://me@db.example/tasks", Require, Require),
        ("postgres://me@db.example/tasks?sslmode=prefer", Require, Require),
        ("postgres://me@db.example/tasks?sslmode=require", Require, Require),
        ("postgres://me@db.example/tasks?sslmode=disable", Disable, Disable),
        ("postgres://me@10.0.0.5/tasks", Require, Require),
        ("postgres://me@[fe80::1]/tasks", Require, Require),
        ("postgres://me@localhost/tasks", Disable, Require),
        ("postgres://me@localhost/tasks?sslmode=prefer", Disable, Require),
        ("postgres://me@localhost/tasks?sslmode=require", Require, Require),
        ("postgres://me@localhost/tasks?sslmode=disable", Disable, Disable),
        ("postgres://me@127.0.0.2:5433/tasks", Disable, Require),
        ("postgres://me@[::1]/tasks", Disable, Require),
        ("postgres://me@[::ffff:127.0.0.1]/tasks", Disable, Require),
        ("postgres://me@%2Frun%2Fpostgresql/tasks", Disable, Disable),
        ("host=/run/postgresql user=me sslmode=require", Disable, Disable),
        ("host=/run/postgresql,localhost user=me", Disable, Require),
        ("host=/run/postgresql,db.example user=me", Require, Require),
        ("host=localhost,db.example user=me", Require, Require),
        // The number is where it goes, the name what its certificate is for.
        ("host=localhost hostaddr=10.0.0.5 user=me", Require, Require),
        ("host=db.example hostaddr=127.0.0.1 user=me", Disable, Require),
        ("user=me", Require, Require),
    ];
    for (address, unnamed, named) in cases {
        let config: Config = address.parse().expect(address);
        assert_eq!((ssl_mode(&config, false), ssl_mode(&config, true)), (unnamed, named), "{address}");
    }
}

/// An authority with a file that names it, its own certificate for a name, and a server's that it signed.
struct Authority {
    file: PathBuf,
    own: ServerCertificate,
    signed: ServerCertificate,
}

impl Authority {
    fn new(directory: &Path, name: &str, host: &str) -> Authority {
        let mut parameters = CertificateParams::new([host.to_owned()]).expect("a name");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let own = parameters.self_signed(&key).expect("a certificate");
        let own = ServerCertificate { certificate: own.pem(), key: key.serialize_pem() };
        let file = directory.join(name);
        std::fs::write(&file, &own.certificate).expect("written");
        let server_key = KeyPair::generate().expect("a key");
        let server = CertificateParams::new([host.to_owned()]).expect("a name");
        let server = server.signed_by(&server_key, &Issuer::new(parameters, key)).expect("a certificate");
        let signed = ServerCertificate { certificate: server.pem(), key: server_key.serialize_pem() };
        Authority { file, own, signed }
    }
}

/// Returns why there is no connection: some words of it, and nothing of the address.
#[track_caller]
fn refused(address: &str, ca_file: Option<&Path>, words: &str) {
    let Err(why) = connect_postgres(address, ca_file) else { panic!("connected") };
    assert!(why.contains(words), "{why}");
    for secret in [address, "hunter2", "localhost", "127.0.0.1", "rekindle"] {
        assert!(!why.contains(secret), "{secret}: {why}");
    }
}

#[test]
fn a_server_is_connected_to_over_tls_only_if_its_certificate_is_trusted() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(directory.path(), "authority.pem", "localhost");
    let another = Authority::new(directory.path(), "another.pem", "localhost");
    let mut server = PostgresServer::start_on_port(Some(&authority.signed));
    let port = server.port();
    let address =
        |host: &str, more: &str| format!("postgres://rekindle:hunter2@{host}:{port}/postgres?{more}");
    let is_encrypted = |address: &str, ca_file: Option<&Path>| {
        let mut client = connect_postgres(address, ca_file).expect("a connection");
        let asked = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        client.query_one(asked, &[]).expect("an answer").get::<_, bool>(0)
    };
    let local = address("localhost", "");
    assert!(is_encrypted(&local, Some(&authority.file)));
    assert!(is_encrypted(&address("localhost", "sslmode=require"), Some(&authority.file)));
    assert!(!is_encrypted(&local, None));
    assert!(!is_encrypted(&address("localhost", "sslmode=disable"), Some(&authority.file)));

    refused(&local, Some(&another.file), "[tasks] ca_file");
    refused(&address("localhost", "sslmode=require"), None, "[tasks] ca_file");
    refused(&address("127.0.0.1", "sslmode=require"), Some(&authority.file), "a different name");
    refused(&address("localhost", "sslmode=verify-full"), Some(&authority.file), "sslmode");
    let no_file = directory.path().join("missing.pem");
    refused(&local, Some(&no_file), "missing.pem");
    std::fs::write(&no_file, "no certificate").expect("written");
    refused(&local, Some(&no_file), "there is none");
    refused(&local.replace("/postgres?", "/elsewhere?"), None, "createdb");

    let mut client = connect_postgres(&local, None).expect("a connection");
    client.batch_execute("ALTER SYSTEM SET ssl_max_protocol_version = 'TLSv1.2'").expect("set");
    server.kill();
    server.start_again();
    refused(&local, Some(&authority.file), "TLS 1.3");
}

#[test]
fn a_server_that_shows_the_certificate_of_an_authority_is_told_to_make_another() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(directory.path(), "authority.pem", "localhost");
    let server = PostgresServer::start_on_port(Some(&authority.own));
    let address = format!("postgres://rekindle:hunter2@localhost:{}/postgres", server.port());
    refused(&address, Some(&authority.file), "CA:FALSE");
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_asked_for() {
    let server = PostgresServer::start_on_port(None);
    let address = format!("postgres://rekindle:hunter2@localhost:{}/postgres", server.port());
    connect_postgres(&address, None).expect("a connection");
    refused(&format!("{address}?sslmode=require"), None, "does not support TLS");
}

#[test]
fn an_address_that_cannot_be_read_is_not_repeated() {
    // The library would name an option that it does not know.
    for bad in ["hunter2", "postgres://me@localhost:hunter2/x", "postgres://me@localhost/x?hunter2=1"] {
        refused(bad, None, "its address cannot be read");
    }
}
