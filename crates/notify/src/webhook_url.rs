//! The address of a webhook. Whoever knows it may send there, so that nothing but its scheme and host is ever shown.

use std::fmt;

use hyper::Uri;

/// Longer than any that services hand out.
const MAX_LENGTH: usize = 2000;

/// How an address is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

/// An address that may be posted to.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct WebhookUrl {
    pub(crate) scheme: Scheme,
    /// A name, or a number without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// What the header Host says.
    pub(crate) authority: String,
    path: String,
    query: Option<String>,
}

/// Scheme, host and port.
impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin())
    }
}

impl WebhookUrl {
    /// Reads an address, or says what is wrong without repeating it. Without TLS only networks of one's own are spoken to.
    pub(crate) fn parse(text: &str, allow_private: bool) -> Result<WebhookUrl, String> {
        let bad = |why: &str| Err(format!("{why}: write https://HOST/PATH"));
        if text.len() > MAX_LENGTH {
            return bad("is too long");
        }
        if text.contains('#') {
            return bad("has a fragment");
        }
        let Ok(uri) = text.parse::<Uri>() else { return bad("is not a URL") };
        let Some(authority) = uri.authority() else { return bad("begins with neither https:// nor http://") };
        if authority.as_str().contains('@') {
            return bad(
                "contains a user name; put credentials into headers, as in headers = { Authorization = \"env:NAME\" }",
            );
        }
        let scheme = match uri.scheme_str() {
            Some("https") => Scheme::Https,
            Some("http") if allow_private => Scheme::Http,
            Some("http") => {
                return bad(
                    "uses http, which is allowed only in private networks, with allow_private = true",
                );
            }
            _ => return bad("begins with neither https:// nor http://"),
        };
        let usual = if scheme == Scheme::Https { 443 } else { 80 };
        let port = match authority.as_str().strip_prefix(authority.host()) {
            Some("") => usual,
            Some(named) => match named.trim_start_matches(':').parse() {
                Ok(port) if port > 0 => port,
                _ => return bad("has a port that is not valid"),
            },
            None => return bad("is not a URL"),
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return bad("has no host");
        }
        Ok(WebhookUrl {
            scheme,
            host,
            port,
            authority: authority.to_string(),
            path: uri.path().to_owned(),
            query: uri.query().map(ToOwned::to_owned),
        })
    }

    /// Returns what may be shown of it.
    pub(crate) fn origin(&self) -> String {
        let scheme = if self.scheme == Scheme::Https { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }

    /// Returns what is asked for in a request.
    pub(crate) fn path_and_query(&self) -> String {
        self.behind(&self.path)
    }

    /// Returns the topic of ntfy that it names, the last part of its path.
    pub(crate) fn ntfy_topic(&self) -> Option<&str> {
        let topic = self.path.trim_end_matches('/').rsplit('/').next()?;
        (!topic.is_empty()).then_some(topic)
    }

    /// Returns what is asked for where the topic is part of the body.
    pub(crate) fn ntfy_root(&self) -> String {
        let path = self.path.trim_end_matches('/');
        let root = path.rsplit_once('/').map_or("", |(root, _)| root);
        self.behind(&format!("{root}/"))
    }

    fn behind(&self, path: &str) -> String {
        match &self.query {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_only_its_origin_shown() {
        let url =
            WebhookUrl::parse("https://hooks.example/services/T0/hunter2?wait=true", false).expect("a URL");
        assert_eq!((url.scheme, url.host.as_str(), url.port), (Scheme::Https, "hooks.example", 443));
        assert_eq!(url.path_and_query(), "/services/T0/hunter2?wait=true");
        assert_eq!(format!("{url:?}"), "https://hooks.example");
        let local = WebhookUrl::parse("http://[::1]:8080", true).expect("a URL");
        assert_eq!((local.scheme, local.host.as_str(), local.port), (Scheme::Http, "::1", 8080));
        assert_eq!((local.authority.as_str(), local.path_and_query().as_str()), ("[::1]:8080", "/"));
        for wrong in [
            "",
            "hooks.example/hunter2",
            "http://hooks.example/hunter2",
            "ftp://hooks.example/hunter2",
            "https://ada:hunter2@hooks.example/",
            "https://hooks.example/#hunter2",
            "https://hooks.example:0/hunter2",
            "https://hooks.example:99999/hunter2",
            "https://hooks.example/hunter2 hunter2",
            "https:///hunter2",
        ] {
            let why = WebhookUrl::parse(wrong, false).expect_err(wrong);
            assert!(why.contains("https://HOST/PATH") && !why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn a_topic_of_ntfy_is_the_end_of_the_path() {
        let topic = |text: &str| {
            let url = WebhookUrl::parse(text, false).expect("a URL");
            url.ntfy_topic().map(|topic| (topic.to_owned(), url.ntfy_root()))
        };
        assert_eq!(topic("https://ntfy.sh/hunter2"), Some(("hunter2".to_owned(), "/".to_owned())));
        assert_eq!(
            topic("https://box.example/ntfy/hunter2/?auth=x"),
            Some(("hunter2".to_owned(), "/ntfy/?auth=x".to_owned()))
        );
        assert_eq!(topic("https://ntfy.sh/"), None);
        assert_eq!(topic("https://ntfy.sh"), None);
    }
}
