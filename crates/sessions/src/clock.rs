//! Times as session files write them, and as people read them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Milliseconds since 1970 of an RFC 3339 time; none if it is not one.
pub fn millis(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        bytes.get(from..to)?.iter().try_fold(0_i64, |sum, byte| {
            byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0'))
        })
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 {
        return None;
    }
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest.split_at(end)
        }
        None => ("", rest),
    };
    let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some((seconds - offset(zone)?) * 1_000 + millis)
}

/// RFC 3339 in UTC, to the second.
pub fn rfc3339(millis: i64) -> String {
    let seconds = millis.div_euclid(1_000);
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3_600, rest % 3_600 / 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The time in the zone of this machine, to the second: `2026-11-15 21:14:38 +01:00`.
pub fn local_time(millis: i64) -> String {
    time_in(millis, &TimeZone::system())
}

fn time_in(millis: i64, zone: &TimeZone) -> String {
    match Timestamp::from_millisecond(millis) {
        Ok(time) => time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string(),
        Err(_) => rfc3339(millis),
    }
}

/// Seconds east of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hour, minute) = zone.get(1..)?.split_once(':')?;
    Some(sign * (hour.parse::<i64>().ok()? * 3_600 + minute.parse::<i64>().ok()? * 60))
}

/// Days since 1970; years begin in March here, so that a leap day is the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        #[rustfmt::skip]
        let table = [
            ("1970-01-01T00:00:00Z",           Some(0)),
            ("2026-11-15T20:14:38.993Z",       Some(1_794_773_678_993)),
            ("2026-11-15T20:14:38.9Z",         Some(1_794_773_678_900)),
            ("2026-11-15T21:14:38+01:00",      Some(1_794_773_678_000)),
            ("2000-02-29T00:00:00Z",           Some(951_782_400_000)),
            ("2026-13-15T20:14:38Z",           None),
            ("yesterday",                      None),
            ("",                               None),
        ];
        for (text, want) in table {
            assert_eq!(millis(text), want, "{text}");
        }
        assert_eq!(rfc3339(1_794_773_678_993), "2026-11-15T20:14:38Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00Z");
    }

    #[test]
    fn people_read_the_time_of_their_zone_in_summer_and_winter() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let winter = time_in(1_794_773_678_993, &zone);
        assert_eq!(winter, "2026-11-15 21:14:38 +01:00");
        assert_eq!(time_in(1_783_000_000_000, &zone), "2026-07-02 15:46:40 +02:00");
        assert_eq!(time_in(i64::MAX, &zone), rfc3339(i64::MAX));
    }
}
