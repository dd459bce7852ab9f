//! What tokens cost.

use std::collections::HashMap;

/// More tokens than any model takes or gives: a provider that reports more reports nonsense, and
/// must not spoil the totals.
const MOST_TOKENS: u64 = 10_000_000;

/// The dearest price that is believed, in dollars per million tokens: a dollar a token.
const HIGHEST_PRICE: f64 = 1e6;

/// The tokens of one answer, as the provider reported them or as they were estimated.
#[derive(Clone, Copy, Debug)]
pub struct Usage<'a> {
    /// The model by the provider's name.
    pub model: &'a str,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
    /// Whether the numbers are an estimate, since the provider gave none.
    pub estimated: bool,
}

impl Usage<'_> {
    /// The same usage, with numbers within reason.
    pub(super) fn clamped(self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.min(MOST_TOKENS),
            completion_tokens: self.completion_tokens.min(MOST_TOKENS),
            ..self
        }
    }
}

/// Prices by the provider's model name.
#[derive(Clone, Debug, Default)]
pub struct PriceTable(HashMap<String, Price>);

/// Billionths of a dollar per token. That is a thousandth of a dollar per million tokens.
#[derive(Clone, Copy, Debug)]
struct Price {
    input: f64,
    output: f64,
}

impl PriceTable {
    /// A table of model, input price and output price, in dollars per million tokens. A price that
    /// is no number or negative counts as zero.
    pub fn new<'a>(prices: impl IntoIterator<Item = (&'a str, f64, f64)>) -> Self {
        let per_token = |price: f64| if price > 0.0 { price.min(HIGHEST_PRICE) * 1e3 } else { 0.0 };
        let prices = prices.into_iter().map(|(model, input, output)| {
            (model.to_owned(), Price { input: per_token(input), output: per_token(output) })
        });
        Self(prices.collect())
    }

    /// What `usage` costs in billionths of a dollar; none when the model has no price.
    ///
    /// Providers answer a call to `gpt-4o` as `gpt-4o-2024-08-06`: without a price of its own a
    /// dated name has that of the undated one.
    pub(super) fn nanodollars(&self, usage: Usage<'_>) -> Option<u64> {
        let price = self.0.get(usage.model).or_else(|| self.0.get(undated(usage.model)?))?;
        #[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
        let cost = usage.prompt_tokens as f64 * price.input + usage.completion_tokens as f64 * price.output;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "neither negative nor huge"
        )]
        Some(cost.round() as u64)
    }
}

/// The model's name without a date at its end, `-2024-08-06` or `-20240806`; none without one.
fn undated(model: &str) -> Option<&str> {
    let undated = model.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '-');
    let date = model.get(undated.len()..)?;
    let digits = date.bytes().filter(u8::is_ascii_digit).count();
    let dated = date.starts_with('-') && digits == 8 && matches!(date.len(), 9 | 11);
    dated.then_some(undated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(model: &str, prompt_tokens: u64, completion_tokens: u64) -> Usage<'_> {
        Usage { model, prompt_tokens, completion_tokens, estimated: false }
    }

    #[test]
    fn input_and_output_have_their_prices() {
        let table = PriceTable::new([("gpt-4o-mini", 0.15, 0.60)]);
        // A million in, a million out: 75 cents.
        assert_eq!(table.nanodollars(usage("gpt-4o-mini", 1_000_000, 1_000_000)), Some(750_000_000));
        assert_eq!(table.nanodollars(usage("gpt-4o-mini", 1, 0)), Some(150));
        assert_eq!(table.nanodollars(usage("gpt-4o", 1, 0)), None);
    }

    #[test]
    fn a_dated_name_has_the_price_of_the_undated() {
        let table = PriceTable::new([("gpt-4o", 2.5, 10.0), ("gpt-4o-2024-05-13", 5.0, 15.0)]);
        assert_eq!(table.nanodollars(usage("gpt-4o-2024-08-06", 1, 0)), Some(2_500));
        assert_eq!(table.nanodollars(usage("gpt-4o-20240806", 1, 0)), Some(2_500));
        assert_eq!(table.nanodollars(usage("gpt-4o-2024-05-13", 1, 0)), Some(5_000));
        for stranger in
            ["gpt-4o-mini", "gpt-4o-mini-2024-07-18", "gpt-4o-0806", "gpt-4o-", "gpt-4o2024-08-06", ""]
        {
            assert_eq!(table.nanodollars(usage(stranger, 1, 0)), None, "{stranger}");
        }
    }

    #[test]
    fn nonsense_is_worth_nothing_or_a_bounded_sum() {
        let table = PriceTable::new([("free", -1.0, f64::NAN), ("dear", f64::INFINITY, f64::INFINITY)]);
        assert_eq!(table.nanodollars(usage("free", 1_000, 1_000)), Some(0));
        let hostile = usage("dear", u64::MAX, u64::MAX).clamped();
        assert_eq!(table.nanodollars(hostile), Some(20_000_000_000_000_000));
    }
}
