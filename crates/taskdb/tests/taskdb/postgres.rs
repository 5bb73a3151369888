//! Postgres: the suite, against a real server in a private directory, which only this test speaks to.

use postgres::{Client, NoTls};
use rekindle_taskdb::PostgresSql;
use rekindle_testkit::postgres_server::PostgresServer;

use crate::conformance;

#[test]
fn postgres_does_what_a_database_of_tasks_must() {
    let server = PostgresServer::start();
    let connect = || Client::connect(&server.socket_address(), NoTls).expect("a connection");
    conformance::all(|| Box::new(PostgresSql::new(connect())));
}
