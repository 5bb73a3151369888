//! Whom a webhook's receiver must prove to be: TLS by rustls, as everywhere in the product.

use std::error::Error as _;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{CertificateError, ClientConfig, RootCertStore};

/// Returns whom to trust: who stands in a file, or whom the system trusts.
pub(super) fn trusting(ca_file: Option<&Path>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        Some(file) => {
            let shown = file.display();
            let bad = |why: &dyn Display| {
                format!("ca_file must have certificates in PEM form, and {shown} has not: {why}")
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

/// Says why a receiver cannot be spoken to over TLS, and what to do about it.
pub(super) fn explain(error: &io::Error) -> String {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet, NotValidYetContext,
        UnknownIssuer,
    };
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(inner) = inner.or_else(|| error.source().and_then(|source| source.downcast_ref())) else {
        return format!("cannot be spoken to over TLS: {error}");
    };
    let rustls::Error::InvalidCertificate(why) = inner else {
        return format!("cannot be spoken to over TLS 1.3: {inner}");
    };
    match why {
        UnknownIssuer => {
            "has a certificate that is signed by nobody who is trusted here: ca_file names a file with whoever signed it"
        }
        NotValidForName | NotValidForNameContext { .. } => "has a certificate for another name",
        Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. } => {
            "has a certificate that has expired or is not valid yet"
        }
        _ => "has a certificate that cannot be trusted",
    }
    .to_owned()
}
