//! Times and sizes: JSON holds milliseconds and bytes, the text a number with a unit.

/// The units of times, from the longest down, in milliseconds.
const TIMES: [(&str, i64); 4] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];

/// Reads a time as HAProxy does, in milliseconds; a number without unit is multiplied by `default`.
pub fn read_time(text: &str, default: i64) -> Option<i64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: i64 = number.parse().ok()?;
    let factor = match unit {
        "" => default,
        // Fractions of a millisecond are rounded up, as HAProxy does.
        "us" => return Some(number.checked_add(999)? / 1000),
        "ms" => 1,
        unit => TIMES.iter().find(|(name, _)| *name == unit)?.1,
    };
    number.checked_mul(factor)
}

/// The largest time that HAProxy accepts, in milliseconds.
pub(crate) const LONGEST_TIME: i64 = i32::MAX as i64;

/// Returns whether something follows the unit of a time, which HAProxy warns of and ignores.
pub(crate) fn has_more_than_time(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let unit = text.get(digits..).unwrap_or_default();
    let units = ["us", "ms"].into_iter().chain(TIMES.iter().map(|(name, _)| *name));
    digits > 0 && read_time(text, 1).is_none() && units.into_iter().any(|known| unit.starts_with(known))
}

/// Spells milliseconds with the largest unit that divides them.
pub(crate) fn write_time(milliseconds: i64) -> String {
    match TIMES.iter().find(|(_, factor)| milliseconds != 0 && milliseconds % factor == 0) {
        Some((unit, factor)) => format!("{}{unit}", milliseconds / factor),
        None => format!("{milliseconds}ms"),
    }
}

/// Reads a number as HAProxy does, decimal or after `0x` hexadecimal.
pub(crate) fn read_number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if word.bytes().all(|byte| byte.is_ascii_digit()) => word.parse().ok(),
        None => None,
    }
}

/// The units of sizes, from the largest down, in bytes.
const SIZES: [(&str, i64); 3] = [("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)];

/// Reads a size as HAProxy does, in bytes.
pub(crate) fn read_size(text: &str) -> Option<i64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: i64 = number.parse().ok()?;
    if unit.is_empty() {
        return Some(number);
    }
    let factor = SIZES.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name))?.1;
    number.checked_mul(factor)
}

/// Spells bytes with the largest unit that divides them.
pub(crate) fn write_size(bytes: i64) -> String {
    match SIZES.iter().find(|(_, factor)| bytes != 0 && bytes % factor == 0) {
        Some((unit, factor)) => format!("{}{unit}", bytes / factor),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_take_the_largest_unit_that_divides_them() {
        let cases = [
            (0, "0ms"),
            (1500, "1500ms"),
            (90_000, "90s"),
            (60_000, "1m"),
            (90_000_000, "25h"),
            (86_400_000, "1d"),
        ];
        for (milliseconds, text) in cases {
            assert_eq!(write_time(milliseconds), text);
            assert_eq!(read_time(text, 1), Some(milliseconds));
        }
    }

    #[test]
    fn a_number_without_unit_is_in_the_unit_of_the_directive() {
        assert_eq!(read_time("30", 1), Some(30));
        assert_eq!(read_time("30", 1000), Some(30_000));
        assert_eq!(read_time("1001us", 1), Some(2));
        assert_eq!(read_time("30x", 1), None);
        assert_eq!(read_time("", 1), None);
        assert_eq!(read_time("99999999999999999999s", 1), None);
    }

    #[test]
    fn sizes_take_the_largest_unit_that_divides_them() {
        for (bytes, text) in
            [(0, "0"), (16_384, "16k"), (100_000, "100000"), (1 << 20, "1m"), (4 << 30, "4g")]
        {
            assert_eq!(write_size(bytes), text);
            assert_eq!(read_size(text), Some(bytes));
        }
        assert_eq!(read_size("1K"), Some(1024));
        assert_eq!(read_size("1x"), None);
    }
}
