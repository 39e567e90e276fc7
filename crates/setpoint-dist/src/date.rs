//! Times as the formats of a release write them, always in UTC.

/// A moment in seconds since 1970, taken apart.
struct Civil {
    year: u64,
    month: usize,
    day: u64,
    seconds: u64,
    weekday: usize,
}

impl Civil {
    fn of(epoch: u64) -> Self {
        let days = epoch / 86_400;
        // Eras of 400 years, which begin on the first of March, so that leap days come last.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        let weekday = usize::try_from((days + 4) % 7).unwrap_or_default();
        Self { year, month: usize::try_from(month).unwrap_or(1), day, seconds: epoch % 86_400, weekday }
    }

    fn time(&self) -> String {
        format!("{:02}:{:02}:{:02}", self.seconds / 3_600, self.seconds / 60 % 60, self.seconds % 60)
    }
}

/// Writes `2026-11-16T21:11:31Z`.
pub(crate) fn rfc3339(epoch: u64) -> String {
    let at = Civil::of(epoch);
    format!("{:04}-{:02}-{:02}T{}Z", at.year, at.month, at.day, at.time())
}

/// Writes `Mon, 16 Nov 2026 21:11:31 +0000`.
pub(crate) fn rfc2822(epoch: u64) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let at = Civil::of(epoch);
    let (day, month) = (DAYS.get(at.weekday), MONTHS.get(at.month - 1));
    let (day, month) = (day.unwrap_or(&"Sun"), month.unwrap_or(&"Jan"));
    format!("{day}, {:02} {month} {} {} +0000", at.day, at.year, at.time())
}

/// Writes `20261116`.
pub(crate) fn compact(epoch: u64) -> String {
    let at = Civil::of(epoch);
    format!("{:04}{:02}{:02}", at.year, at.month, at.day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_each_form() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc2822(0), "Thu, 01 Jan 1970 00:00:00 +0000");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc2822(1_794_863_491), "Mon, 16 Nov 2026 21:11:31 +0000");
        assert_eq!(compact(4_107_542_399), "21000228");
        assert_eq!(compact(4_107_542_400), "21000301");
    }
}
