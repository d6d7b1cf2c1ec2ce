//! What must hold of [`Rate`], through its public names alone.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use paceline::{Rate, RateError};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const TRILLION: u64 = 1_000_000_000_000;

fn rate(text: &str) -> Rate {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> RateError {
    match text.parse::<Rate>() {
        Err(error) => error,
        Ok(rate) => panic!("{text:?} was read as {rate}"),
    }
}

fn per(tokens: u64, seconds: u64) -> Rate {
    Rate::new(tokens, Duration::from_secs(seconds)).unwrap()
}

fn from_per_second(per_second: f64) -> Rate {
    Rate::from_per_second(per_second).unwrap_or_else(|error| panic!("{error}"))
}

fn hash_of(rate: Rate) -> u64 {
    let mut hasher = DefaultHasher::new();
    rate.hash(&mut hasher);
    hasher.finish()
}

fn nanos(rate: Rate) -> u64 {
    u64::try_from(rate.period().as_nanos()).unwrap()
}

/// The `f64` nearest to the rate per second, by long division to decimals and std's parser, which
/// rounds correctly. Two numbers that the rate might lie half-way between differ from it by far
/// more than the last decimal here, and whatever is left over is hinted at with one more digit.
fn nearest_f64(rate: Rate) -> f64 {
    let period = u128::from(nanos(rate));
    let per_second = u128::from(rate.tokens()) * u128::from(SECOND);
    let mut text = format!("{}.", per_second / period);
    let mut rest = per_second % period;
    for _ in 0..150 {
        text += &(rest * 10 / period).to_string();
        rest = rest * 10 % period;
    }
    text += if rest == 0 { "0" } else { "1" };
    text.parse().unwrap()
}

/// Any rate that is not unlimited, with periods of every size and unit.
fn any_limit() -> impl Strategy<Value = Rate> {
    let unit = prop::sample::select(vec![
        1,
        1_000,
        1_000_000,
        SECOND,
        60 * SECOND,
        3_600 * SECOND,
        86_400 * SECOND,
    ]);
    let period = prop_oneof![
        1..=u64::MAX,
        (unit, 1_u64..1_000).prop_map(|(unit, count)| unit * count),
        (0_u32..64).prop_map(|bits| 1 << bits),
    ];
    (period, any::<u64>(), 0_u32..=64).prop_map(|(period, tokens, shift)| {
        let tokens = tokens.checked_shr(shift).unwrap_or(0);
        let most = period.saturating_mul(1_000);
        Rate::new(tokens.min(most), Duration::from_nanos(period)).unwrap()
    })
}

fn any_rate() -> impl Strategy<Value = Rate> {
    prop_oneof![20 => any_limit(), 1 => Just(Rate::UNLIMITED)]
}

/// Every number of tokens per second that is accepted, evenly over its exponents.
fn any_per_second() -> impl Strategy<Value = f64> {
    let slowest = 5.43e-11_f64.to_bits();
    let fastest = 1e12_f64.to_bits();
    (slowest..=fastest).prop_map(f64::from_bits)
}

// ---- Text ------------------------------------------------------------------------------------

proptest! {
    #[test]
    fn what_is_printed_reads_back_equal_and_prints_the_same(written in any_rate()) {
        let text = written.to_string();
        let read = rate(&text);
        prop_assert_eq!(read, written);
        prop_assert_eq!(read.to_string(), text);
        prop_assert_eq!(read.tokens(), written.tokens());
        prop_assert_eq!(read.period(), written.period());
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[-+0-9./a-zµ ]{0,60}") {
        let _ = text.parse::<Rate>();
    }

    #[test]
    fn an_error_quotes_the_text(text in "[-+0-9./a-zµ ]{0,12}") {
        if let Err(error) = text.parse::<Rate>() {
            prop_assert!(error.to_string().contains(&format!("{text:?}")), "{}", error);
        }
    }

    #[test]
    fn a_decimal_is_exact(whole in 0_u64..1_000, thousandths in 0_u64..1_000) {
        let read = rate(&format!("{whole}.{thousandths:03}/s"));
        prop_assert_eq!(read, per(whole * 1_000 + thousandths, 1_000));
    }
}

#[test]
fn a_rate_prints_as_it_was_written() {
    for text in [
        "100/s",
        "5/min",
        "60/min",
        "1000/h",
        "3/day",
        "1/250ms",
        "10/13s",
        "1/7ns",
        "1/1ms",
        "1/1us",
        "1500/1500us",
        "0/s",
        "0/min",
        "unlimited",
        "1/18446744073709551615ns",
    ] {
        assert_eq!(rate(text).to_string(), text);
    }
    assert_eq!(Rate::ZERO.to_string(), "0/s");
    assert_eq!(Rate::every(Duration::from_micros(1_500)).to_string(), "1/1500us");
    assert_eq!(format!("{:?}", Rate::per_minute(5)), "Rate(5/min)");
    assert_eq!(format!("[{:>8}]", Rate::per_minute(5)), "[   5/min]");
}

#[test]
fn every_spelling_of_a_unit_is_read() {
    for (nanos, names) in [
        (SECOND, &["s", "sec", "second", "seconds"][..]),
        (60 * SECOND, &["min", "minute", "minutes"]),
        (3_600 * SECOND, &["h", "hr", "hour", "hours"]),
        (86_400 * SECOND, &["d", "day", "days"]),
        (1_000_000, &["ms"]),
        (1_000, &["us", "\u{b5}s", "\u{3bc}s"]),
        (1, &["ns"]),
    ] {
        for name in names {
            assert_eq!(rate(&format!("7/{name}")).period(), Duration::from_nanos(nanos), "{name}");
            assert_eq!(
                rate(&format!("7/3{name}")).period(),
                Duration::from_nanos(3 * nanos),
                "{name}"
            );
        }
    }
}

#[test]
fn text_may_be_spaced_counted_and_decimal() {
    for (text, printed) in [
        (" 100 / s\n", "100/s"),
        ("\t1 / 250 ms", "1/250ms"),
        (" unlimited ", "unlimited"),
        ("3/2h", "3/7200s"),
        ("5/60s", "5/min"),
        ("0.5/s", "1/2s"),
        ("2.5/min", "5/120s"),
        ("10.0/s", "10/s"),
        ("007/01s", "7/s"),
        ("0.000000000000000000000000000000000000000000/s", "0/s"),
        // Too much for 64 bits as written, but not in lowest terms.
        ("20000000000000000000000/20000000000000000000000s", "1/s"),
        ("0.0000000001/s", "1/10000000000s"),
    ] {
        assert_eq!(rate(text).to_string(), printed, "{text:?}");
    }
}

#[test]
fn text_that_is_no_rate_is_refused_for_what_is_wrong_with_it() {
    let given = |text: &str| text.to_owned();
    for text in ["", " ", "abc", "10", "10 per s", "unlimite", "Unlimited"] {
        assert_eq!(refused(text), RateError::NotARate { given: given(text) });
    }
    for (text, tokens) in [
        ("1e3/s", "1e3"),
        ("abc/s", "abc"),
        ("/s", ""),
        ("+1/s", "+1"),
        (".5/s", ".5"),
        ("5./s", "5."),
        ("1.2.3/s", "1.2.3"),
        ("1 000/s", "1 000"),
        ("\u{663}/s", "\u{663}"),
        ("NaN/s", "NaN"),
        ("inf/s", "inf"),
    ] {
        assert_eq!(
            refused(text),
            RateError::BadTokens { given: given(text), tokens: given(tokens) }
        );
    }
    for (text, count) in [("1/0.5s", "0.5"), ("1/-5s", "-5"), ("1/+5s", "+5"), ("1/2/3s", "2/3")] {
        assert_eq!(refused(text), RateError::BadCount { given: given(text), count: given(count) });
    }
    for (text, unit) in [
        ("10/fortnight", "fortnight"),
        ("1/", ""),
        ("1/5", ""),
        ("1/s/s", "s/s"),
        ("1/S", "S"),
        ("1/month", "month"),
        ("1/s2", "s2"),
    ] {
        assert_eq!(refused(text), RateError::UnknownUnit { given: given(text), unit: given(unit) });
    }
    assert_eq!(refused("5/m"), RateError::AmbiguousUnit { given: given("5/m"), unit: given("m") });
    assert_eq!(refused("-1/s"), RateError::Negative { given: given("-1/s") });
    for text in ["1/0s", "0/0s", "1/000ms"] {
        assert_eq!(refused(text), RateError::ZeroPeriod { given: given(text) });
    }
}

#[test]
fn text_out_of_range_is_refused() {
    let forty_nines = "9".repeat(40);
    assert_eq!(rate("1000000000000/s"), Rate::per_second(TRILLION));
    for text in ["1000000000001/s", "1000.1/ns", "99999999999999999999/s"] {
        assert!(matches!(refused(text), RateError::TooFast { .. }), "{text}");
    }
    for text in ["1/18446744073709551616ns", "1/1000000day", "1/9999999999999999999999999h"] {
        assert!(matches!(refused(text), RateError::PeriodTooLong { .. }), "{text}");
    }
    for text in [
        format!("{forty_nines}/s"),
        format!("1/{forty_nines}s"),
        format!("0.{forty_nines}/s"),
        // Fits 128 bits as written, but overflows them in nanoseconds.
        format!("1/{}day", "9".repeat(38)),
        // Tokens beyond u64 that nothing reduces.
        "18446744073709551617/5000000h".to_owned(),
    ] {
        assert!(
            matches!(refused(&text), RateError::TooManyDigits { .. }),
            "{text}: {}",
            refused(&text)
        );
    }
}

#[test]
fn errors_name_the_value_and_what_was_expected() {
    for (error, message) in [
        (
            refused("10/fortnight"),
            r#"invalid rate "10/fortnight": unknown unit "fortnight", expected one of day, h, min, s, ms, us and ns"#,
        ),
        (
            refused("5/m"),
            r#"invalid rate "5/m": the unit "m" is ambiguous, expected "min" for minutes or "ms" for milliseconds"#,
        ),
        (
            Rate::new(5, Duration::ZERO).unwrap_err(),
            r#"invalid rate "5 per 0ns": its period is zero, expected at least 1 ns"#,
        ),
        (
            Rate::from_per_second(1e300).unwrap_err(),
            r#"invalid rate "1e300 per second": too fast, expected at most 10^12 tokens per second"#,
        ),
    ] {
        assert_eq!(error.to_string(), message);
    }
}

// ---- Constructors ----------------------------------------------------------------------------

#[test]
fn constructors_are_const_and_take_the_fastest_rate() {
    const RATES: [Rate; 4] = [
        Rate::per_second(TRILLION),
        Rate::per_minute(60 * TRILLION),
        Rate::per_hour(3_600 * TRILLION),
        Rate::per_day(86_400 * TRILLION),
    ];
    for rate in RATES {
        assert_eq!(rate, RATES[0]);
        assert_eq!(rate.as_per_second().to_bits(), 1e12_f64.to_bits());
    }
}

#[test]
fn constructors_panic_beyond_the_fastest_rate_and_name_it() {
    for make in [
        || Rate::per_second(TRILLION + 1),
        || Rate::per_minute(60 * TRILLION + 1),
        || Rate::per_hour(3_600 * TRILLION + 1),
        || Rate::per_day(86_400 * TRILLION + 1),
        || Rate::per_second(u64::MAX),
    ] {
        let panic = std::panic::catch_unwind(make).unwrap_err();
        let message = panic.downcast_ref::<&str>().expect("a panic with a message");
        assert!(message.contains("10^12"), "{message}");
    }
}

#[test]
fn new_keeps_what_fits_and_reduces_what_does_not() {
    let as_written = Rate::new(60, Duration::from_secs(60)).unwrap();
    assert_eq!((as_written.tokens(), as_written.period()), (60, Duration::from_secs(60)));

    let longest = Duration::from_nanos(u64::MAX);
    assert_eq!(Rate::new(1, longest).unwrap().period(), longest);
    let reduced = Rate::new(6, longest * 6).unwrap();
    assert_eq!((reduced.tokens(), reduced.period()), (1, longest));

    let beyond = longest + Duration::from_nanos(1);
    assert!(matches!(Rate::new(1, beyond), Err(RateError::PeriodTooLong { .. })));
    assert_eq!(Rate::new(2, beyond).unwrap().tokens(), 1);
    assert!(matches!(Rate::new(1, Duration::MAX), Err(RateError::PeriodTooLong { .. })));
}

#[test]
fn new_refuses_a_zero_period_and_what_is_too_fast() {
    for tokens in [0, 1, u64::MAX] {
        assert!(matches!(Rate::new(tokens, Duration::ZERO), Err(RateError::ZeroPeriod { .. })));
    }
    let nanosecond = Duration::from_nanos(1);
    assert_eq!(Rate::new(1_000, nanosecond).unwrap(), Rate::per_second(TRILLION));
    assert!(matches!(Rate::new(1_001, nanosecond), Err(RateError::TooFast { .. })));
    // One more than the bound in a product that 64 bits do not hold.
    let period = Duration::from_nanos(u64::MAX / 1_000);
    assert!(Rate::new(u64::MAX / 1_000 * 1_000, period).is_ok());
    assert!(matches!(
        Rate::new(u64::MAX / 1_000 * 1_000 + 1, period),
        Err(RateError::TooFast { .. })
    ));
}

#[test]
fn zero_tokens_are_the_zero_rate_in_any_period() {
    for zero in [
        Rate::per_second(0),
        Rate::per_minute(0),
        Rate::per_hour(0),
        Rate::per_day(0),
        Rate::new(0, Duration::from_nanos(1)).unwrap(),
        Rate::new(0, Duration::MAX).unwrap(),
        from_per_second(0.0),
        from_per_second(-0.0),
    ] {
        assert!(zero.is_zero() && !zero.is_unlimited());
        assert_eq!(zero, Rate::ZERO);
        assert_eq!(hash_of(zero), hash_of(Rate::ZERO));
        assert_eq!(zero.as_per_second().to_bits(), 0.0_f64.to_bits());
    }
    assert_eq!(Rate::new(0, Duration::MAX).unwrap().to_string(), "0/s");
}

#[test]
fn one_token_every_interval() {
    const QUARTER: Rate = Rate::every(Duration::from_millis(250));
    assert_eq!(QUARTER, Rate::per_second(4));
    assert_eq!(Rate::every(Duration::ZERO), Rate::UNLIMITED);
    let longest = Duration::from_nanos(u64::MAX);
    for interval in [
        longest,
        longest + Duration::from_nanos(1),
        longest + Duration::from_secs(1),
        Duration::MAX,
    ] {
        assert_eq!(Rate::every(interval), Rate::new(1, longest).unwrap());
    }
    let shorter = Duration::from_nanos(u64::MAX - 1);
    assert_eq!(Rate::every(shorter).period(), shorter);
}

// ---- From a float ----------------------------------------------------------------------------

#[test]
fn a_float_is_the_ratio_that_was_meant() {
    for (per_second, text) in [
        (0.769_230_769_230_769_3, "10/13s"),
        (0.1, "1/10s"),
        (3.333_333_333_333_333_5, "10/3s"),
        (100.0, "100/s"),
        (0.5, "1/2s"),
        (2.5, "5/2s"),
        (1.0 / 60.0, "1/min"),
        (5.0 / 3_600.0, "1/720s"),
        (1e12, "1000000000000/s"),
        (1e-10, "1/10000000000s"),
        (std::f64::consts::PI, "245850922/78256779s"),
    ] {
        assert_eq!(from_per_second(per_second).to_string(), text);
    }
    assert_eq!(from_per_second(f64::INFINITY), Rate::UNLIMITED);
}

#[test]
fn a_float_that_is_no_rate_is_refused_and_named() {
    assert_eq!(Rate::from_per_second(f64::NAN), Err(RateError::NotANumber));
    assert_eq!(Rate::from_per_second(-f64::NAN), Err(RateError::NotANumber));
    for negative in [-1.5, -1e-300, -f64::from_bits(1), f64::NEG_INFINITY] {
        let error = Rate::from_per_second(negative).unwrap_err();
        assert!(matches!(error, RateError::Negative { .. }));
        assert!(error.to_string().contains(&format!("{negative:?}")), "{error}");
    }
    let past = |number: f64| f64::from_bits(number.to_bits() + 1);
    for fast in [past(1e12), 2_f64.powi(40), 1e300, f64::MAX] {
        let error = Rate::from_per_second(fast).unwrap_err();
        assert!(matches!(error, RateError::TooFast { .. }));
        assert!(error.to_string().contains(&format!("{fast:?}")), "{error}");
    }
    for slow in [5.42e-11, 2_f64.powi(-35), 1e-12, f64::MIN_POSITIVE, f64::from_bits(1)] {
        let error = Rate::from_per_second(slow).unwrap_err();
        assert!(matches!(error, RateError::PeriodTooLong { .. }));
        assert!(error.to_string().contains(&format!("{slow:?}")), "{error}");
    }
}

#[test]
fn the_slowest_rate_survives_a_float() {
    let slowest = Rate::every(Duration::MAX).as_per_second();
    assert_eq!(from_per_second(slowest).as_per_second().to_bits(), slowest.to_bits());
}

#[test]
fn a_float_just_off_a_simple_one_is_kept_although_its_seconds_do_not_fit() {
    // As a sum of tenths would have it. The simplest whole seconds are some 10^15.
    for simple in [1.0_f64, 0.1, 7.0, 1.0 / 3.0, 1e3] {
        for bits in [simple.to_bits() - 1, simple.to_bits() + 1] {
            let rate = from_per_second(f64::from_bits(bits));
            assert_eq!(nearest_f64(rate).to_bits(), bits, "{rate}");
            assert_ne!(rate, from_per_second(simple));
        }
    }
}

/// Whether some whole number of tokens in so many seconds reads back as the float. The numbers are
/// small enough that their quotient is rounded once.
fn reads_back_in(seconds: u64, per_second: f64) -> bool {
    let bits = per_second.to_bits();
    let mantissa = u128::from(bits & ((1 << 52) - 1) | (1 << 52));
    let places = 1075 - (bits >> 52);
    let below = u64::try_from((mantissa * u128::from(seconds)) >> places).unwrap();
    [below, below + 1].into_iter().any(|tokens| quotient(tokens, seconds).to_bits() == bits)
}

/// Rounded once, and so correctly, for numbers up to 2^53.
#[allow(clippy::cast_precision_loss)]
fn quotient(tokens: u64, seconds: u64) -> f64 {
    assert!(tokens < 1 << 53 && seconds < 1 << 53);
    tokens as f64 / seconds as f64
}

proptest! {
    #[test]
    fn a_float_reads_back_to_the_bit(per_second in any_per_second()) {
        let rate = from_per_second(per_second);
        prop_assert_eq!(nearest_f64(rate).to_bits(), per_second.to_bits(), "{}", rate);
        prop_assert_eq!(rate.as_per_second().to_bits(), per_second.to_bits(), "{}", rate);
        let (tokens, nanos) = (rate.tokens(), nanos(rate));
        if nanos % SECOND == 0 && tokens < 1 << 53 {
            prop_assert_eq!(quotient(tokens, nanos / SECOND).to_bits(), per_second.to_bits());
        }
    }

    #[test]
    fn a_quotient_of_small_numbers_is_found_again(tokens in 1_u64..1 << 26, seconds in 1_u64..1 << 26) {
        // Below 2^26, two ratios are too far apart to share an f64.
        let rate = from_per_second(quotient(tokens, seconds));
        prop_assert_eq!(rate, per(tokens, seconds));
        prop_assert!(rate.tokens() <= tokens && rate.period() <= Duration::from_secs(seconds));
    }

    #[test]
    fn any_rate_shows_as_the_nearest_float(rate in any_limit()) {
        prop_assert_eq!(rate.as_per_second().to_bits(), nearest_f64(rate).to_bits());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    // Numbers as large as these leave few bits for the fraction, so that the seconds stay few
    // enough to try them all.
    fn no_fewer_seconds_would_read_back(bits in 2_f64.powi(24).to_bits()..2_f64.powi(39).to_bits()) {
        let per_second = f64::from_bits(bits);
        let rate = from_per_second(per_second);
        let seconds = nanos(rate) / SECOND;
        prop_assert_eq!(nanos(rate) % SECOND, 0);
        if seconds < 1 << 14 {
            prop_assert!(reads_back_in(seconds, per_second));
        }
        for fewer in 1..seconds.min(1 << 14) {
            prop_assert!(!reads_back_in(fewer, per_second), "{} in {} s", per_second, fewer);
        }
    }
}

#[test]
fn as_per_second_rounds_half_to_even() {
    // Floats this large lie 2^-13 apart, so these are half-way.
    let (base, seconds) = (1_u64 << 53, 1 << 14);
    for (tokens, even) in [(base + 1, base), (base + 3, base + 4), (base + 5, base + 4)] {
        let rounded = per(tokens, seconds).as_per_second();
        assert_eq!(rounded.to_bits(), quotient(even / 4, seconds / 4).to_bits());
    }
}

// ---- Value -----------------------------------------------------------------------------------

proptest! {
    #[test]
    fn equality_and_hash_go_by_the_value(tokens in 0_u64..1 << 20, period in 1_049_u64..1 << 40, times in 1_u64..1 << 20) {
        let one = Rate::new(tokens, Duration::from_nanos(period)).unwrap();
        let other = Rate::new(tokens * times, Duration::from_nanos(period * times)).unwrap();
        prop_assert_eq!(one, other);
        prop_assert_eq!(hash_of(one), hash_of(other));
    }

    #[test]
    fn rates_a_hair_apart_are_not_equal(rate in any_limit()) {
        prop_assert_ne!(rate, Rate::UNLIMITED);
        if rate.is_zero() {
            return Ok(());
        }
        // Either way, as either may be out of range.
        let hair = Duration::from_nanos(1);
        let longer = Rate::new(rate.tokens(), rate.period() + hair);
        let shorter = Rate::new(rate.tokens(), rate.period().saturating_sub(hair));
        prop_assert!(longer.is_ok() || shorter.is_ok());
        prop_assert_ne!(longer, Ok(rate));
        prop_assert_ne!(shorter, Ok(rate));
        prop_assert_ne!(rate, Rate::ZERO);
    }
}

#[test]
fn sixty_per_minute_is_one_per_second() {
    let (second, minute) = (Rate::per_second(1), Rate::per_minute(60));
    assert_eq!(second, minute);
    assert_eq!(hash_of(second), hash_of(minute));
    assert_ne!(second.to_string(), minute.to_string());
}

#[test]
fn unlimited_and_zero_are_told_apart() {
    assert!(Rate::UNLIMITED.is_unlimited() && !Rate::UNLIMITED.is_zero());
    assert!(Rate::ZERO.is_zero() && !Rate::ZERO.is_unlimited());
    assert_ne!(Rate::UNLIMITED, Rate::ZERO);
    assert_eq!(Rate::UNLIMITED.as_per_second().to_bits(), f64::INFINITY.to_bits());
    assert_eq!((Rate::UNLIMITED.tokens(), Rate::UNLIMITED.period()), (1, Duration::ZERO));
    assert_eq!((Rate::ZERO.tokens(), Rate::ZERO.period()), (0, Duration::from_secs(1)));
}

// ---- serde -----------------------------------------------------------------------------------

#[cfg(feature = "serde")]
mod serde {
    use super::*;
    use ::serde::de::value::{BorrowedStrDeserializer, Error, StringDeserializer};
    use ::serde::de::{Deserialize, IntoDeserializer};

    proptest! {
        #[test]
        fn a_rate_is_serialised_as_its_text(rate in any_rate()) {
            let json = serde_json::to_string(&rate).unwrap();
            prop_assert_eq!(&json, &format!("\"{rate}\""));
            let read: Rate = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(read.to_string(), rate.to_string());
        }
    }

    #[test]
    fn text_is_read_borrowed_owned_and_escaped() {
        let borrowed = BorrowedStrDeserializer::<Error>::new("5/min");
        assert_eq!(Rate::deserialize(borrowed), Ok(Rate::per_minute(5)));
        let owned: StringDeserializer<Error> = "5/min".to_owned().into_deserializer();
        assert_eq!(Rate::deserialize(owned), Ok(Rate::per_minute(5)));
        // An escape in the text keeps the reader from lending it.
        let escaped: Rate = serde_json::from_str(r#""5\/\u00b5s""#).unwrap();
        assert_eq!(escaped, super::rate("5/us"));
    }

    #[test]
    fn what_is_no_rate_is_refused_with_the_reason() {
        let error = serde_json::from_str::<Rate>(r#""10/fortnight""#).unwrap_err();
        assert!(error.to_string().contains("unknown unit \"fortnight\""), "{error}");
        let error = serde_json::from_str::<Rate>("100").unwrap_err();
        assert!(error.to_string().contains("a rate such as"), "{error}");
    }
}
