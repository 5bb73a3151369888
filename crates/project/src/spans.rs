//! Where the parts of a document stand in its text: from the keys and numbers that lead to a part, its bytes.

use std::ops::Range;

use rekindle_domain::pipeline::validate::{Place, Segment};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Returns the bytes that a problem with a place is shown at: a value, the name of a table or a list, the head of an item. Of what is
/// missing, the innermost part around it that is there; the beginning of the text if none is.
pub(crate) fn of(root: &DeTable<'_>, place: &Place) -> Range<usize> {
    let mut found = 0..0;
    let mut inside = Inside::Table(root);
    for segment in &place.0 {
        let next = match (&inside, segment) {
            (Inside::Table(table), Segment::Key(name)) => {
                let named = table.iter().find(|(key, _)| key.get_ref() == name);
                named.map(|(key, value)| (key.span(), value))
            }
            (Inside::List(items), Segment::Index(index)) => items.get(*index).map(|item| (item.span(), item)),
            _ => None,
        };
        let Some((span, value)) = next else { break };
        (found, inside) = match value.get_ref() {
            DeValue::Table(table) => (span, Inside::Table(table)),
            DeValue::Array(items) => (span, Inside::List(items)),
            _ => (value.span(), Inside::Value),
        };
    }
    found
}

/// What a part of a document has in it.
enum Inside<'a> {
    Table(&'a DeTable<'a>),
    List(&'a [Spanned<DeValue<'a>>]),
    Value,
}
