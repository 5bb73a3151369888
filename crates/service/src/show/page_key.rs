//! Page keys: places in a list, and the cursors by which callers name them.

use std::str::FromStr;

use rekindle_domain::time::Timestamp;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;

use crate::error::{Result, ServiceError};

/// The key of a page: a place in an order by time, and by name where times are equal. Neither ever changes for what is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PageKey<Id> {
    pub(crate) at: Timestamp,
    pub(crate) id: Id,
}

impl<Id: FromStr + ToString> PageKey<Id> {
    /// Writes it as a cursor.
    pub(crate) fn to_cursor(&self) -> String {
        format!("{:x}.{}", self.at.as_millis(), self.id.to_string())
    }

    /// Reads a cursor, if there is one; anything but what was written is refused.
    pub(crate) fn from_cursor(cursor: Option<&str>) -> Result<Option<PageKey<Id>>> {
        let Some(text) = cursor else { return Ok(None) };
        let place = text.split_once('.').and_then(|(at, id)| {
            let at = Timestamp::from_millis(u64::from_str_radix(at, 16).ok()?.cast_signed());
            Some(PageKey { at, id: id.parse().ok()? })
        });
        match place.filter(|place| place.to_cursor() == text) {
            Some(place) => Ok(Some(place)),
            None => Err(refused()),
        }
    }
}

/// Says that a cursor is none.
pub(crate) fn refused() -> ServiceError {
    ServiceError::new(Code::InvalidCursor, "the cursor did not come from this list").hint(Hint::RestartList)
}

#[cfg(test)]
mod tests {
    use rekindle_domain::id::{SessionId, WaitId};

    use super::*;

    #[test]
    fn a_place_comes_back_and_nothing_else_is_one() {
        for millis in [1_800_000_000_000, 0, -5, i64::MAX] {
            let id: SessionId = "sess_a-1".parse().expect("an id");
            let place = PageKey { at: Timestamp::from_millis(millis), id };
            let cursor = place.to_cursor();
            assert_eq!(PageKey::from_cursor(Some(&cursor)), Ok(Some(place)), "{cursor}");
            assert!(PageKey::<WaitId>::from_cursor(Some(&cursor)).is_err(), "another list's");
        }
        assert_eq!(PageKey::<SessionId>::from_cursor(None), Ok(None));
        for bad in [
            "",
            ".",
            "1.",
            ".sess_a",
            "sess_a",
            "+1.sess_a",
            "01.sess_a",
            "1.sess_a ",
            "1.run_a",
            "1.sess_a.b",
        ] {
            let error = PageKey::<SessionId>::from_cursor(Some(bad)).expect_err(bad);
            assert!(error.code == Code::InvalidCursor && error.hint.is_some(), "{bad}");
        }
    }
}
