//! The dialects of SQL: where the databases differ, statements have a word that each writes in its own way.
//!
//! `@TIME` and `@JSON` are types of columns. `@time($1)` and `@json($1)` take a text as such a value, `@text_of_time(c)` and
//! `@text_of_json(c)` give it as text again. Times are written as the log writes them. `@joined(c)` is the values of all rows in one text, with
//! commas between them.

use std::borrow::Cow;

/// A dialect of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite: times and JSON are texts.
    Sqlite,
    /// Postgres: they have types of their own, for whoever asks questions there.
    Postgres,
}

/// What each word stands for: in SQLite, and in Postgres; `{}` is what stands in the brackets behind it.
const WORDS: [(&str, &str, &str); 7] = [
    ("@TIME", "TEXT", "timestamptz"),
    ("@JSON", "TEXT", "jsonb"),
    ("@time", "{}", "CAST(CAST({} AS text) AS timestamptz)"),
    ("@json", "{}", "CAST(CAST({} AS text) AS jsonb)"),
    ("@text_of_time", "{}", "to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"),
    ("@text_of_json", "{}", "CAST({} AS text)"),
    ("@joined", "group_concat({})", "string_agg(CAST({} AS text), ',')"),
];

impl Dialect {
    /// Writes a statement as this database understands it.
    pub fn write<'a>(self, statement: &'a str) -> Cow<'a, str> {
        if !statement.contains('@') {
            return Cow::Borrowed(statement);
        }
        let mut written = String::with_capacity(statement.len() + 64);
        let mut rest = statement;
        while let Some(at) = rest.find('@') {
            written.push_str(&rest[..at]);
            rest = &rest[at..];
            let end = rest[1..]
                .find(|c: char| !c.is_ascii_alphabetic() && c != '_')
                .map_or(rest.len(), |end| end + 1);
            let (word, behind) = rest.split_at(end);
            let Some((_, sqlite, postgres)) = WORDS.iter().find(|(known, ..)| *known == word) else {
                written.push_str(word);
                rest = behind;
                continue;
            };
            let meant = if self == Dialect::Sqlite { sqlite } else { postgres };
            let inside = behind.strip_prefix('(').and_then(|inside| inside.split_once(')'));
            match inside.filter(|_| meant.contains("{}")) {
                Some((inside, behind)) => {
                    written.push_str(&meant.replace("{}", inside));
                    rest = behind;
                }
                None => {
                    written.push_str(meant);
                    rest = behind;
                }
            }
        }
        written.push_str(rest);
        Cow::Owned(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_database_is_spoken_to_in_its_own_way() {
        let statement = "INSERT INTO t (a, b) VALUES (@time($1), @json($2))";
        assert_eq!(Dialect::Sqlite.write(statement), "INSERT INTO t (a, b) VALUES ($1, $2)");
        assert_eq!(
            Dialect::Postgres.write(statement),
            "INSERT INTO t (a, b) VALUES (CAST(CAST($1 AS text) AS timestamptz), CAST(CAST($2 AS text) AS jsonb))"
        );
        let table = "CREATE TABLE t (a @TIME, b @JSON NOT NULL)";
        assert_eq!(Dialect::Sqlite.write(table), "CREATE TABLE t (a TEXT, b TEXT NOT NULL)");
        assert_eq!(Dialect::Postgres.write(table), "CREATE TABLE t (a timestamptz, b jsonb NOT NULL)");
        assert_eq!(Dialect::Sqlite.write("SELECT @text_of_time(a), @text_of_json(b)"), "SELECT a, b");
        assert_eq!(Dialect::Postgres.write("SELECT 1"), "SELECT 1");
        assert_eq!(Dialect::Postgres.write("SELECT '@else'"), "SELECT '@else'");
    }
}
