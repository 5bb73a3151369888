//! Requests by route, method and class of status. A route is the pattern that a path matched, so that there are as many as
//! the server has; whatever matched none is one more.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rekindle_store::meter::{Counter, Histogram};

use super::page::{Kind, Page};

/// Classes for what an answer takes; streams are answered when their head is.
const ANSWERS: &[Duration] = &[
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(10),
];

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// More routes than any version has: a slip that makes labels out of paths stops here.
const MOST_ROUTES: usize = 256;

/// What stands for every route beyond that, and for paths that match none.
const NONE: &str = "none";

/// Requests, by method and route.
#[derive(Debug, Default)]
pub(crate) struct Http {
    methods: RwLock<BTreeMap<&'static str, Routes>>,
}

type Routes = BTreeMap<String, Arc<Route>>;

#[derive(Debug)]
struct Route {
    classes: [Counter; CLASSES.len()],
    took: Histogram,
}

impl Http {
    /// Counts an answer.
    pub(crate) fn count(&self, method: &str, route: Option<&str>, status: u16, took: Duration) {
        let route = self.route(known(method), route.unwrap_or(NONE));
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        route.classes[class].inc();
        route.took.observe(took);
    }

    fn route(&self, method: &'static str, route: &str) -> Arc<Route> {
        let found = |methods: &BTreeMap<&str, Routes>| methods.get(method)?.get(route).cloned();
        if let Some(found) = found(&self.methods.read().unwrap_or_else(PoisonError::into_inner)) {
            return found;
        }
        let mut methods = self.methods.write().unwrap_or_else(PoisonError::into_inner);
        let many = methods.values().map(Routes::len).sum::<usize>() >= MOST_ROUTES;
        let route = if many { NONE } else { route };
        methods.entry(method).or_default().entry(route.to_owned()).or_insert_with(new_route).clone()
    }

    /// Writes what was counted.
    pub(super) fn show(&self, page: &mut Page) {
        let methods = self.methods.read().unwrap_or_else(PoisonError::into_inner);
        let all = || methods.iter().flat_map(|(method, routes)| routes.iter().map(move |one| (*method, one)));
        page.family("rekindle_http_requests_total", Kind::Counter, "Requests answered");
        for (method, (path, route)) in all() {
            for (class, count) in CLASSES.iter().zip(&route.classes).filter(|(_, count)| count.get() > 0) {
                page.sample(&[("method", method), ("route", path), ("status", class)], count.get());
            }
        }
        let help = "From a request's head until its answer's head";
        page.family("rekindle_http_request_duration_seconds", Kind::Histogram, help);
        for (method, (path, route)) in all() {
            page.histogram(&[("method", method), ("route", path)], &route.took.read());
        }
    }
}

fn new_route() -> Arc<Route> {
    Arc::new(Route { classes: Default::default(), took: Histogram::new(ANSWERS) })
}

fn known(method: &str) -> &'static str {
    const KNOWN: [&str; 6] = ["GET", "POST", "PATCH", "PUT", "DELETE", "HEAD"];
    KNOWN.into_iter().find(|known| *known == method).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::super::page::Format;
    use super::*;

    fn text(http: &Http) -> String {
        let mut page = Page::new(Format::Prometheus);
        http.show(&mut page);
        page.finish()
    }

    #[test]
    fn requests_are_counted_by_what_the_server_knows_and_nothing_else() {
        let http = Http::default();
        http.count("GET", Some("/api/sessions/{id}"), 200, Duration::from_millis(3));
        http.count("GET", Some("/api/sessions/{id}"), 404, Duration::from_millis(3));
        http.count("BREW", None, 404, Duration::ZERO);
        let text = text(&http);
        for line in [
            r#"rekindle_http_requests_total{method="GET",route="/api/sessions/{id}",status="2xx"} 1"#,
            r#"rekindle_http_requests_total{method="other",route="none",status="4xx"} 1"#,
            r#"rekindle_http_request_duration_seconds_bucket{method="GET",route="/api/sessions/{id}",le="0.0025"} 0"#,
            r#"rekindle_http_request_duration_seconds_bucket{method="GET",route="/api/sessions/{id}",le="0.005"} 2"#,
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }

    #[test]
    fn labels_cannot_grow_without_end() {
        let http = Http::default();
        for n in 0..10_000 {
            http.count("GET", Some(&format!("/{n}")), 200, Duration::ZERO);
        }
        let lines = text(&http).lines().filter(|line| line.contains("requests_total{")).count();
        assert_eq!(lines, MOST_ROUTES + 1);
    }
}
