//! TLS by certificate files: read once, at the start, and checked then.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate with its key, ready to be shown.
#[derive(Clone)]
pub struct Tls(pub(crate) Arc<ServerConfig>);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is not what it should be.
    #[error("{path} contains no {what}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// Why it does not.
        why: String,
    },
    /// The key is not the certificate's, or of a sort that is not known.
    #[error("the key in {key} cannot be used with the certificate in {certificate}")]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What is wrong.
        #[source]
        source: rustls::Error,
    },
}

impl Tls {
    /// Reads a certificate, with those that vouch for it behind it, and its key.
    pub fn read(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
        const CERTIFICATE: &str = "certificate";
        let unread = |path: &Path, what, why: PemError| {
            let why = match why {
                PemError::Io(error) => error.to_string(),
                PemError::NoItemsFound => "there is none in PEM format".to_owned(),
                other => other.to_string(),
            };
            TlsError::File { path: path.to_owned(), what, why }
        };
        let chain =
            CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|error| unread(certificate, CERTIFICATE, error))?;
        if chain.is_empty() {
            return Err(unread(certificate, CERTIFICATE, PemError::NoItemsFound));
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unread(key, "private key", error))?;
        let mismatch =
            |source| TlsError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned(), source };
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(mismatch)?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(mismatch)?;
        Ok(Tls(Arc::new(config)))
    }
}
