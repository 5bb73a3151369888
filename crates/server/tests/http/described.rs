//! The document that describes the interface, against the interface itself.

use std::collections::BTreeSet;

use crate::client::Server;

/// Every path of the document takes the methods that the document says, and no other.
#[test]
fn the_router_takes_what_the_document_says() {
    let server = Server::start();
    let reply = server.ask("GET", "/api/openapi.json", "", "");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert_eq!(reply.body["openapi"], "3.1.0");
    let paths = reply.body["paths"].as_object().expect("paths");
    assert!(paths.len() > 15 && paths.contains_key("/api/openapi.json"));
    for (path, operations) in paths {
        let reply = server.ask("PROPFIND", &path.replace("{id}", "x"), "", "");
        assert_eq!(reply.refusal(), (405, "no_such_method"), "{path}");
        let allowed = reply.header("allow").expect("Allow").to_ascii_lowercase();
        // Whoever answers GET answers HEAD, which needs no words.
        let allowed: BTreeSet<&str> =
            allowed.split(',').map(str::trim).filter(|one| *one != "head").collect();
        let said: BTreeSet<&str> =
            operations.as_object().expect("operations").keys().map(String::as_str).collect();
        assert_eq!(allowed, said, "{path}");
    }
}

/// Whoever reads it twice reads the same: it is made once.
#[test]
fn the_document_is_of_one_piece() {
    let server = Server::start();
    let first = server.ask("GET", "/api/openapi.json", "", "").body;
    assert_eq!(first, server.ask("GET", "/api/openapi.json", "", "").body);
    let schemas = first["components"]["schemas"].as_object().expect("schemas");
    for name in
        ["Session", "Wait", "Run", "Holder", "NewSession", "NewMessage", "NewAnswer", "Error", "ErrorCode"]
    {
        assert!(schemas.contains_key(name), "{name}");
    }
}
