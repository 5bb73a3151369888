//! The page behind an answer link: one document, compiled in, that is the same for everybody. It reads the secret from the fragment
//! of its address, which the server never sees, shows what is asked and answers once a person confirms.
//!
//! The page loads nothing: script and style stand in it, and the policy that goes with it allows just these two by their hashes.

use std::sync::LazyLock;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Where the page is.
pub(crate) const ANSWER_PAGE: &str = "/answer";

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page and the policy that goes with it.
struct Page {
    html: String,
    policy: HeaderValue,
}

static PAGE: LazyLock<Page> = LazyLock::new(|| {
    let html = HTML.replacen("{style}", STYLE, 1).replacen("{script}", SCRIPT, 1);
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    let policy = format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    // Base64 and the words above are visible ASCII.
    let policy = HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
    Page { html, policy }
});

/// Names a text as the policy does.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// `GET /answer`: the page. Whatever else the request says, this is all that is done.
pub(crate) async fn show() -> Response {
    let fixed = |name: HeaderName, value: &'static str| (name, HeaderValue::from_static(value));
    let headers = [
        fixed(CONTENT_TYPE, "text/html; charset=utf-8"),
        fixed(CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, PAGE.policy.clone()),
        fixed(REFERRER_POLICY, "no-referrer"),
        fixed(X_CONTENT_TYPE_OPTIONS, "nosniff"),
        fixed(X_FRAME_OPTIONS, "DENY"),
        fixed(HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        fixed(HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        fixed(HeaderName::from_static("x-robots-tag"), "noindex"),
    ];
    (headers, PAGE.html.as_str()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what stands between two tags of the page.
    fn between<'a>(start: &str, end: &str) -> &'a str {
        let (_, rest) = PAGE.html.split_once(start).expect("it begins");
        rest.split_once(end).expect("it ends").0
    }

    #[test]
    fn the_policy_names_the_script_and_the_style_that_are_there_and_allows_nothing_else() {
        let policy = PAGE.policy.to_str().expect("text");
        for (part, start, end) in
            [("script-src", "<script>", "</script>"), ("style-src", "<style>", "</style>")]
        {
            let expected = format!("{part} '{}';", hash(between(start, end)));
            assert!(policy.contains(&expected), "{expected} is not in {policy}");
        }
        assert!(policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(PAGE.html.matches("<script").count(), 1);
        assert_eq!(PAGE.html.matches("<style").count(), 1);
    }

    #[test]
    fn the_page_loads_nothing_and_sets_text_alone() {
        for word in ["http:", "https:", "src=", "@import", "url(", "<form", "onclick=\"", "javascript:"] {
            assert!(!PAGE.html.contains(word), "{word}");
        }
        for word in
            ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Storage", "cookie"]
        {
            assert!(!SCRIPT.contains(word), "{word}");
        }
        // The secret is gone from the address before anything is asked or shown.
        let (replaced, asked) =
            (SCRIPT.find("replaceState").expect("it is"), SCRIPT.find("fetch(").expect("it is"));
        assert!(replaced < asked);
        assert!(
            between("<noscript>", "</noscript>").contains("rekindle answer"),
            "without script it says what to do"
        );
    }
}
