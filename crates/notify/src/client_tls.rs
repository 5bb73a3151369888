//! Whom a server must prove to be that we speak to: TLS by rustls, for webhooks and for databases.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// Returns how a server must prove who it is: by whoever stands in a file, which is read now, or by whom the system trusts.
pub fn client_tls(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        Some(file) => {
            let shown = file.display();
            let bad = |why: &dyn Display| {
                format!("ca_file must contain certificates in PEM format, but {shown} does not: {why}")
            };
            for certificate in CertificateDer::pem_file_iter(file).map_err(|error| bad(&error))? {
                let certificate = certificate.map_err(|error| bad(&error))?;
                roots.add(certificate).map_err(|error| bad(&error))?;
            }
            if roots.is_empty() {
                return Err(bad(&"there is none"));
            }
        }
        None => {
            // One that is broken keeps nobody from trusting the others.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
