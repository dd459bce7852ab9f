//! Hits against wrong answers as a picture, in SVG.
//!
//! Few wrong answers are what matters, and peers at their defaults give many: the axis of wrong
//! answers has a square-root scale, which shows both.

use std::fmt::Display;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use thiserror::Error;

use super::report::{Figures, Report};

/// Width and height in pixels.
const SIZE: (u32, u32) = (960, 640);

/// Wrong answers worth a line of their own.
const GUIDES: [f64; 2] = [0.01, 0.02];

/// Why there is no picture.
#[derive(Debug, Error)]
#[error("the picture cannot be drawn: {0}")]
pub struct PictureError(String);

fn failed(error: impl Display) -> PictureError {
    PictureError(error.to_string())
}

/// Draws each judge's curve and marks each policy; the default's mark is filled.
pub fn svg<F: Figures>(report: &Report<F>) -> Result<String, PictureError> {
    let mut svg = String::new();
    draw(report, &SVGBackend::with_string(&mut svg, SIZE).into_drawing_area())?;
    Ok(svg)
}

fn draw<F: Figures>(
    report: &Report<F>,
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
) -> Result<(), PictureError> {
    area.fill(&WHITE).map_err(failed)?;
    let most_wrong = most_wrong(report);
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{}: {} rows", report.set, report.rows), ("sans-serif", 20))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..most_wrong, 0.0..1.0)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .axis_desc_style(("sans-serif", 16))
        .label_style(("sans-serif", 14))
        .x_desc(format!("wrong answers, {} (square-root scale)", F::WRONG))
        .y_desc("hits")
        .x_label_formatter(&|root| percent(root * root))
        .y_label_formatter(&|share| percent(*share))
        .draw()
        .map_err(failed)?;
    for guide in GUIDES {
        let line = [(guide.sqrt(), 0.0), (guide.sqrt(), 1.0)];
        chart.draw_series(DashedLineSeries::new(line, 4, 4, BLACK.mix(0.4).into())).map_err(failed)?;
    }
    for (index, (judge, curve)) in report.curves.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let curve = curve.thinned();
        let points = curve.points.iter().map(|point| (curve.wrong_rate(point).sqrt(), curve.hit_rate(point)));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))
            .map_err(failed)?
            .label(judge)
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 16, y + 4)], color.filled()));
        let default = report.shipped().map(|(name, _)| name);
        for (name, figures) in report.policies.iter().filter(|(_, figures)| figures.judge() == judge) {
            let (Some(hits), Some(wrong)) = figures.rates() else { continue };
            let style = if default == Some(name) { color.filled() } else { color.stroke_width(2) };
            // Beside the curve, which rises to the right; near the right edge on the other side.
            let (place, side) = if wrong.sqrt() < most_wrong * 0.8 {
                ((10, 6), HPos::Left)
            } else {
                ((-10, -6), HPos::Right)
            };
            let text = ("sans-serif", 14).into_text_style(area).pos(Pos::new(side, VPos::Center));
            let mark = EmptyElement::at((wrong.sqrt(), hits))
                + Circle::new((0, 0), 6, style)
                + Text::new(name.to_owned(), place, text);
            chart.draw_series([mark]).map_err(failed)?;
        }
    }
    if !report.curves.0.is_empty() {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.4))
            .label_font(("sans-serif", 14))
            .draw()
            .map_err(failed)?;
    }
    area.present().map_err(failed)
}

/// Where the axis of wrong answers ends: its root, in tenths, beyond all that is shown.
fn most_wrong<F: Figures>(report: &Report<F>) -> f64 {
    let on_curves =
        report.curves.iter().flat_map(|(_, curve)| curve.points.iter().map(|it| curve.wrong_rate(it)));
    let marked = report.policies.iter().filter_map(|(_, figures)| figures.rates().1);
    let most = on_curves.chain(marked).fold(0.0, f64::max);
    ((most.sqrt() * 10.0).ceil() / 10.0).max(0.2)
}

fn percent(share: f64) -> String {
    // Two decimals, and none that say nothing.
    let text = format!("{:.2}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use async_trait::async_trait;

    use super::*;
    use crate::eval::judge::{Contender, Judge, Judgement, Rule};
    use crate::eval::pairs::{self, Pair, measure};

    /// Scores by the length of the text asked, times its own factor.
    struct Length(&'static str, f32);

    #[async_trait]
    impl Judge for Length {
        fn name(&self) -> &str {
            self.0
        }

        async fn judge(&self, asked: &str, _: &str) -> Judgement {
            let length = asked.chars().fold(0.0, |length, _| length + 1.0);
            let score = (length * self.1).sin();
            Judgement { score, serves: score > 0.9, stage: "length" }
        }
    }

    async fn report() -> Report<pairs::Figures> {
        let pair = |i: usize| Pair { a: "x".repeat(i), same: !i.is_multiple_of(3), ..Pair::default() };
        let pairs: Vec<Pair> = (0..200).map(pair).collect();
        let shipped = Contender::shipped(Arc::new(Length("mine & <yours>", 1.0)));
        let others = [
            Contender::at_least(Arc::new(Length("one", 0.7)), &[0.8, 0.9]),
            Contender::shipped(Arc::new(Length("two", 0.3))).and("two at zero", Rule::AtLeast(0.0)),
        ];
        measure("set", &pairs, &shipped, &others, &|_| ()).await
    }

    #[tokio::test]
    async fn every_judge_has_a_curve_and_every_policy_a_mark() {
        let svg = svg(&report().await).unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let named = |name: &'static str| document.descendants().filter(move |node| node.has_tag_name(name));
        assert_eq!(document.root_element().tag_name().name(), "svg");

        let curves = named("polyline").filter(|line| line.attribute("stroke-width") == Some("2"));
        let colors: BTreeSet<&str> = curves.filter_map(|line| line.attribute("stroke")).collect();
        assert_eq!(colors.len(), 3, "a color for each judge");
        let filled = |filled: bool| {
            named("circle").filter(|mark| (mark.attribute("fill") != Some("none")) == filled).count()
        };
        assert_eq!((filled(true), filled(false)), (1, 4), "the default is filled");

        let texts: Vec<&str> = named("text").filter_map(|node| node.text()).map(str::trim).collect();
        for text in ["set: 200 rows", "mine & <yours>", "one >= 0.80", "two at zero", "hits", "4 %", "100 %"]
        {
            assert!(texts.contains(&text), "{text:?} is not in {texts:?}");
        }
    }

    #[tokio::test]
    async fn a_set_without_rows_can_be_drawn() {
        let shipped = Contender::shipped(Arc::new(Length("one", 1.0)));
        let svg = svg(&measure("none", &[], &shipped, &[], &|_| ()).await).unwrap();
        assert!(roxmltree::Document::parse(&svg).is_ok());
    }

    #[test]
    fn percent_has_no_idle_decimals() {
        assert_eq!(
            [0.0, 0.0025, 0.01, 0.3 * 0.3, 1.0].map(percent),
            ["0 %", "0.25 %", "1 %", "9 %", "100 %"]
        );
    }
}
