//! How sure a rate is.

use serde::{Deserialize, Serialize};

/// Where a rate lies with 95 % confidence: low and high, between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval(pub f64, pub f64);

/// The normal distribution's two-sided 95 % point.
pub(crate) const Z: f64 = 1.959_963_984_540_054;

/// The score interval for `count` out of `of` independent trials (Wilson, "Probable inference,
/// the law of succession, and statistical inference", 1927), which stays sound near 0 and 1,
/// where the rates of wrong hits are. Nothing is known of no trials.
pub fn wilson(count: u32, of: u32) -> Interval {
    if of == 0 {
        return Interval(0.0, 1.0);
    }
    let n = f64::from(of);
    let rate = f64::from(count) / n;
    let shrink = 1.0 + Z * Z / n;
    let middle = (rate + Z * Z / (2.0 * n)) / shrink;
    let half = Z / shrink * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
    // At the ends the bound is the rate itself, which rounding would miss.
    let low = if count == 0 { 0.0 } else { middle - half };
    let high = if count >= of { 1.0 } else { middle + half };
    Interval(low, high)
}
