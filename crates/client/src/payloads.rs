//! Payloads that are too large for a log: in the home beside it, or asked of a daemon elsewhere.

use std::sync::Arc;

use rekindle_store::blobs::{BlobId, BlobRef, Blobs};

use crate::Client;
use crate::server::Server;

/// Where payloads are.
#[derive(Clone)]
pub enum Payloads {
    /// In this home.
    Here(Blobs),
    /// With a daemon elsewhere.
    There(Arc<Server>),
}

impl Payloads {
    /// Returns a payload, or says why there is none.
    pub fn get(&self, reference: &BlobRef) -> Result<Vec<u8>, String> {
        match self {
            Payloads::Here(blobs) => blobs.get(&reference.blob).map_err(|error| error.to_string()),
            Payloads::There(server) => fetch(server.clone(), reference.blob),
        }
    }
}

/// Asks a daemon elsewhere, on a thread of its own: whoever shows records may be in the middle of hearing them.
fn fetch(server: Arc<Server>, blob: BlobId) -> Result<Vec<u8>, String> {
    let asked = std::thread::spawn(move || {
        let client = Client::elsewhere(server).map_err(|failure| failure.message())?;
        let bytes = client.blob(&blob).map_err(|failure| failure.message())?;
        // A name is the hash of what it names.
        if BlobId::of(&bytes) == blob {
            Ok(bytes.into())
        } else {
            Err("the answer has other contents".into())
        }
    });
    asked.join().unwrap_or_else(|_| Err("it could not be requested".into()))
}
