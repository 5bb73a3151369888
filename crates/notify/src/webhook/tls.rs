//! Why a webhook's receiver cannot be spoken to over TLS, in words.

use std::error::Error as _;
use std::io;

use rustls::CertificateError;

/// Says why a receiver cannot be spoken to over TLS, and what to do about it.
pub(super) fn explain(error: &io::Error) -> String {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet, NotValidYetContext,
        UnknownIssuer,
    };
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(inner) = inner.or_else(|| error.source().and_then(|source| source.downcast_ref())) else {
        return format!("does not support TLS: {error}");
    };
    let rustls::Error::InvalidCertificate(why) = inner else {
        return format!("does not support TLS 1.3: {inner}");
    };
    match why {
        UnknownIssuer => {
            "has a certificate that is not signed by a trusted authority: set ca_file to a file with the certificate of its authority"
        }
        NotValidForName | NotValidForNameContext { .. } => "has a certificate for another name",
        Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. } => {
            "has a certificate that has expired or is not valid yet"
        }
        _ => "has a certificate that cannot be trusted",
    }
    .to_owned()
}
