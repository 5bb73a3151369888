//! Whole numbers however JSON writes them: 600 and 600.0 are the same.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Reads a whole number that may be left out.
pub fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else { return Ok(None) };
    // Below 2^64 a float without a fraction is exactly one of ours.
    let float =
        || number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..u64::MAX as f64).contains(float));
    let whole = number.as_u64().or_else(|| float().map(|float| float as u64));
    let wrong = || D::Error::custom(format_args!("{number} is not a whole number from 0 to {}", u64::MAX));
    whole.map(Some).ok_or_else(wrong)
}

/// Reads a whole number, which may be below 0.
pub fn whole_signed<'de, D: Deserializer<'de>, T: TryFrom<i64>>(deserializer: D) -> Result<T, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?;
    // Of those with more than 53 bits a float is not exact.
    let exact = -9_007_199_254_740_992.0..=9_007_199_254_740_992.0;
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && exact.contains(float));
    let whole = number.as_i64().or_else(|| float().map(|float| float as i64));
    let wrong = || D::Error::custom(format_args!("{number} is not a whole number of this kind"));
    whole.and_then(|whole| T::try_from(whole).ok()).ok_or_else(wrong)
}

/// Reads a whole number above 0 that may be left out.
pub fn positive<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let Some(number) = whole(deserializer)? else { return Ok(None) };
    let fitting = T::try_from(number).ok().filter(|_| number > 0);
    fitting
        .map(Some)
        .ok_or_else(|| D::Error::custom(format_args!("{number} is not a number of this kind above 0")))
}
