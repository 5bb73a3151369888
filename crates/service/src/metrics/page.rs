//! The page of metrics as text, in the two formats that scrapers read: Prometheus 0.0.4 and OpenMetrics 1.0. They differ in
//! what a counter's family is called and in how a page ends.

use std::fmt::{Display, Write};
use std::time::Duration;

use rekindle_store::meter::Reading;

/// How the page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus, version 0.0.4.
    Prometheus,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

impl Format {
    /// Returns the format for whoever says what it takes.
    pub fn for_accept(accept: &str) -> Format {
        let wants = |kind: &str| kind.trim().starts_with("application/openmetrics-text");
        if accept.split(',').any(wants) { Format::OpenMetrics } else { Format::Prometheus }
    }

    /// Returns the type of the page's content.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What a family counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only grows; its name ends in `_total`.
    Counter,
    /// Comes and goes.
    Gauge,
    /// Durations by class.
    Histogram,
}

/// Labels: names and values.
pub(super) type Labels<'a> = [(&'static str, &'a str)];

/// A page on which families are written one after another.
pub(super) struct Page {
    text: String,
    format: Format,
    name: &'static str,
}

impl Page {
    pub(super) fn new(format: Format) -> Page {
        Page { text: String::with_capacity(32 << 10), format, name: "" }
    }

    /// Begins a family; the samples behind it are its own.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        self.name = name;
        let family = match self.format {
            Format::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
            Format::Prometheus => name,
        };
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.write(format_args!("# HELP {family} {help}.\n# TYPE {family} {kind}\n"));
    }

    /// Writes a value of the family.
    pub(super) fn sample(&mut self, labels: &Labels<'_>, value: impl Display) {
        self.line("", labels, None, value);
    }

    /// Writes a family that has one value.
    pub(super) fn single(&mut self, name: &'static str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(&[], value);
    }

    /// Writes a family whose values differ in one label.
    pub(super) fn labelled<'a, V: Display>(
        &mut self,
        (name, kind, help): (&'static str, Kind, &str),
        label: &'static str,
        values: impl IntoIterator<Item = (&'a str, V)>,
    ) {
        self.family(name, kind, help);
        values.into_iter().for_each(|(which, value)| self.sample(&[(label, which)], value));
    }

    /// Writes the classes of a histogram.
    pub(super) fn histogram(&mut self, labels: &Labels<'_>, reading: &Reading) {
        for (bound, count) in &reading.classes {
            self.line("_bucket", labels, Some(&seconds(*bound)), count);
        }
        self.line("_bucket", labels, Some("+Inf"), reading.count);
        self.line("_sum", labels, None, seconds(reading.sum));
        self.line("_count", labels, None, reading.count);
    }

    /// Ends the page.
    pub(super) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    fn line(&mut self, suffix: &str, labels: &Labels<'_>, bound: Option<&str>, value: impl Display) {
        let name = self.name;
        self.write(format_args!("{name}{suffix}"));
        let all = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        let mut before = '{';
        for (name, value) in all {
            self.write(format_args!("{before}{name}=\""));
            self.escaped(value);
            self.text.push('"');
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
        self.write(format_args!(" {value}\n"));
    }

    fn escaped(&mut self, value: &str) {
        for c in value.chars() {
            match c {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                c => self.text.push(c),
            }
        }
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        // A string takes everything.
        let _ = self.text.write_fmt(text);
    }
}

/// Writes a duration as seconds, to the nanosecond and with a point, which one of the formats wants.
pub(super) fn seconds(duration: Duration) -> String {
    let text = format!("{}.{:09}", duration.as_secs(), duration.subsec_nanos());
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(format: Format) -> String {
        let mut page = Page::new(format);
        page.family("things_total", Kind::Counter, "Things");
        page.sample(&[("kind", "a\\b\"c\nd"), ("x", "y")], 7);
        page.single("size_bytes", Kind::Gauge, "A size", 3);
        page.family("took_seconds", Kind::Histogram, "How long");
        let classes = vec![(Duration::from_micros(50), 1), (Duration::from_secs(1), 2)];
        page.histogram(&[("x", "y")], &Reading { classes, count: 3, sum: Duration::from_millis(12_500) });
        page.finish()
    }

    #[test]
    fn both_formats_are_what_their_readers_expect() {
        let rest = "# HELP size_bytes A size.\n# TYPE size_bytes gauge\nsize_bytes 3\n\
            # HELP took_seconds How long.\n# TYPE took_seconds histogram\n\
            took_seconds_bucket{x=\"y\",le=\"0.00005\"} 1\ntook_seconds_bucket{x=\"y\",le=\"1.0\"} 2\n\
            took_seconds_bucket{x=\"y\",le=\"+Inf\"} 3\ntook_seconds_sum{x=\"y\"} 12.5\ntook_seconds_count{x=\"y\"} 3\n";
        let sample = "things_total{kind=\"a\\\\b\\\"c\\nd\",x=\"y\"} 7\n";
        assert_eq!(
            page(Format::Prometheus),
            format!("# HELP things_total Things.\n# TYPE things_total counter\n{sample}{rest}")
        );
        assert_eq!(
            page(Format::OpenMetrics),
            format!("# HELP things Things.\n# TYPE things counter\n{sample}{rest}# EOF\n")
        );
    }

    #[test]
    fn whoever_takes_openmetrics_gets_it() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(Format::for_accept(prometheus), Format::OpenMetrics);
        assert_eq!(Format::for_accept("*/*"), Format::Prometheus);
        assert_eq!(Format::for_accept(""), Format::Prometheus);
    }
}
