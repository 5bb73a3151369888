//! Webhooks: a request to an address of the configuration, signed, to a machine that may be spoken to, within ten seconds, and only once.

mod address;
mod exchange;
mod signature;
mod tls;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, StatusCode};
use rekindle_domain::time::Timestamp;
use rustls::ClientConfig;
use tokio::runtime::Builder;

use crate::body::{self, Format};
use crate::client_tls::client_tls;
use crate::config::WebhookConfig;
use crate::delivery::Delivery;
use crate::machine::Machine;
use crate::notice::{AnswerLink, Message};
use crate::retry::retry_after;
use crate::text::Include;
use crate::webhook_url::{Scheme, WebhookUrl};

use exchange::{Answer, Failed, Limits, Post, Way};

/// A sink that posts to an address.
#[derive(Debug)]
pub(crate) struct Webhook {
    config: WebhookConfig,
    include: Include,
    machine: Arc<dyn Machine>,
    /// Made for the first delivery that needs it: reading whom the system trusts takes a while.
    tls: OnceLock<Arc<ClientConfig>>,
    limits: Limits,
}

impl Webhook {
    pub(crate) fn new(config: WebhookConfig, include: Include, machine: Arc<dyn Machine>) -> Webhook {
        Webhook { config, include, machine, tls: OnceLock::new(), limits: Limits::USUAL }
    }

    /// Returns what may be shown of where it leads.
    pub(crate) fn origin(&self) -> Result<String, String> {
        self.url().map(|url| url.origin())
    }

    /// Says what keeps it from delivering anything, as far as that is known without trying.
    pub(crate) fn problem(&self) -> Option<String> {
        let look = || {
            self.headers("", &[], Timestamp::default())?;
            let url = self.url()?;
            // Where a name leads is only known when it is asked for.
            if let Ok(address) = url.host.trim_matches(['[', ']']).parse() {
                let address = SocketAddr::new(address, url.port);
                if let Err(Failed::Refused(why) | Failed::Retry(why)) =
                    exchange::judge(&url, &[address], self.config.allow_private)
                {
                    return Err(format!("{address} {why}"));
                }
            }
            match url.scheme {
                Scheme::Https => self.tls().map(drop),
                Scheme::Http => Ok(()),
            }
        };
        look().err()
    }

    /// Posts a message.
    pub(crate) fn deliver(&self, message: &Message, links: &[AnswerLink], now: Timestamp) -> Delivery {
        let prepared = self.prepare(message, links, now);
        // What the configuration names is not there: it may be after the next start.
        let (url, post, tls) = match prepared {
            Ok(prepared) => prepared,
            Err(why) => return Delivery::retry(why),
        };
        let runtime = match Builder::new_current_thread().enable_io().enable_time().build() {
            Ok(runtime) => runtime,
            Err(error) => return Delivery::retry(format!("no connection can be made: {error}")),
        };
        let way = Way {
            tls,
            machine: Arc::clone(&self.machine),
            allow_private: self.config.allow_private,
            limits: self.limits,
        };
        let outcome = runtime.block_on(exchange::exchange(&url, post, way));
        // A resolver that hangs is not waited for.
        runtime.shutdown_background();
        let origin = url.origin();
        match outcome {
            Ok(answer) => judge(&answer, now, &origin),
            Err(Failed::Refused(why)) => Delivery::refused(format!("{origin} {why}")),
            Err(Failed::Retry(why)) => Delivery::retry(format!("{origin} {why}")),
        }
    }

    fn prepare(
        &self,
        message: &Message,
        links: &[AnswerLink],
        now: Timestamp,
    ) -> Result<(WebhookUrl, Post, Option<Arc<ClientConfig>>), String> {
        let url = self.url()?;
        let include = self.include;
        let (path, body) = match self.config.format {
            Format::Json => (url.path_and_query(), body::json(message, links, include)),
            Format::Slack => (url.path_and_query(), body::slack(message, links, include)),
            Format::Discord => (url.path_and_query(), body::discord(message, links, include)),
            Format::Ntfy => {
                let topic =
                    url.ntfy_topic().ok_or("url has no topic after its host: write https://ntfy.sh/TOPIC")?;
                (url.ntfy_root(), body::ntfy(message, links, include, topic))
            }
        };
        let headers = self.headers(message.event_id(), &body, now)?;
        let tls = match url.scheme {
            Scheme::Https => Some(self.tls()?),
            Scheme::Http => None,
        };
        Ok((url, Post { path, headers, body }, tls))
    }

    fn url(&self) -> Result<WebhookUrl, String> {
        let text = self.config.url.read(&*self.machine).map_err(|why| format!("url: {why}"))?;
        WebhookUrl::parse(&text, self.config.allow_private).map_err(|why| format!("url {why}"))
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, String> {
        if let Some(config) = self.tls.get() {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(client_tls(self.config.ca_file.as_deref())?);
        Ok(Arc::clone(self.tls.get_or_init(|| config)))
    }

    fn headers(&self, event_id: &str, body: &[u8], now: Timestamp) -> Result<HeaderMap, String> {
        let value = |text: &str, name: &str| {
            HeaderValue::from_str(text).map_err(|_| format!("the value of {name} is not valid for a header"))
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("rekindle/", env!("CARGO_PKG_VERSION"))));
        for (name, source) in &self.config.headers {
            let read = source.read(&*self.machine).map_err(|why| format!("the header {name}: {why}"))?;
            let header: HeaderName =
                name.parse().map_err(|_| format!("{name:?} is not the name of a header"))?;
            headers.insert(header, value(&read, name)?);
        }
        let timestamp = (now.as_millis() / 1000).to_string();
        headers.insert("x-rekindle-event-id", value(event_id, "X-Rekindle-Event-Id")?);
        headers.insert("x-rekindle-timestamp", value(&timestamp, "X-Rekindle-Timestamp")?);
        if let Some(secret) = &self.config.secret {
            let secret = secret.read(&*self.machine).map_err(|why| format!("secret: {why}"))?;
            let signature = signature::sign(&secret, &timestamp, body);
            headers.insert("x-rekindle-signature", value(&signature, "X-Rekindle-Signature")?);
        }
        Ok(headers)
    }
}

/// Decides what an answer means: what the receiver has, what is worth another try, and what never will be.
fn judge(answer: &Answer, now: Timestamp, origin: &str) -> Delivery {
    let why = format!("{origin} answered {}", answer.status.as_u16());
    match answer.status {
        status if status.is_success() => Delivery::Delivered,
        // Whoever is led elsewhere is led to an address that nobody has judged, with a body that is not meant for it.
        status if status.is_redirection() => Delivery::refused(format!(
            "{why}, and redirects are not followed: set url to the address it leads to"
        )),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => again(answer, now, why),
        status if status.is_server_error() => again(answer, now, why),
        _ => Delivery::refused(why),
    }
}

fn again(answer: &Answer, now: Timestamp, why: String) -> Delivery {
    Delivery::Retry { after: answer.retry_after.as_deref().and_then(|header| retry_after(header, now)), why }
}

#[cfg(test)]
mod tests;
