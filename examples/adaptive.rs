//! Draws how limits that adapt follow a service that gets slower and recovers: `docs/adaptive.svg`, which
//! the documentation of `paceline::adaptive` shows.
//!
//! ```text
//! cargo run --release --example adaptive
//! ```
//!
//! The scenes are those of `tests/adaptive.rs`, on paused time, so the picture is the same each time.

#[path = "../tests/adaptive/scenes.rs"]
mod scenes;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use paceline::adaptive::{AdaptiveConcurrency, Aimd, Gradient};
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

use scenes::{BIN, Bin, play};

const SEED: u64 = 1000;
const BOUND: Duration = Duration::from_millis(300);

const BLUE: RGBColor = RGBColor(0, 110, 200);
const ORANGE: RGBColor = RGBColor(215, 90, 0);
const RED: RGBColor = RGBColor(200, 20, 50);

type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A line of a panel, or a dashed one.
struct Line {
    name: &'static str,
    color: RGBColor,
    dashed: bool,
    of: Box<dyn Fn(usize) -> f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let rate = play(scenes::of_rate(true, SEED));
    let limit = || AdaptiveConcurrency::builder(2).max(60);
    let aimd = limit().aimd(Aimd::new().latency(BOUND))?;
    let aimd = play(scenes::of_concurrency(aimd, SEED));
    let gradient = play(scenes::of_concurrency(limit().gradient(Gradient::new())?, SEED));

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/adaptive.svg");
    let area = SVGBackend::new(&path, (900, 960)).into_drawing_area();
    area.fill(&WHITE)?;
    let panels = area.split_evenly((3, 1));
    draw(
        &panels[0],
        "AdaptiveRate: calls per second",
        280.0,
        vec![
            line("allowed", ORANGE, &rate, |bin| bin.limit),
            line("served", BLUE, &rate, Bin::served_per_second),
            line("refused", RED, &rate, |bin| f64::from(bin.refused) / BIN.as_secs_f64()),
            dashed("capacity", &rate, |bin| bin.capacity.into()),
        ],
    )?;
    draw(
        &panels[1],
        "AdaptiveConcurrency: calls served per second",
        280.0,
        vec![
            line("Aimd", ORANGE, &aimd, Bin::served_per_second),
            line("Gradient", BLUE, &gradient, Bin::served_per_second),
            dashed("capacity", &aimd, |bin| bin.capacity.into()),
        ],
    )?;
    let millis = |bin: &Bin| bin.slowest.as_secs_f64() * 1000.0;
    draw(
        &panels[2],
        "AdaptiveConcurrency: the slowest call (ms)",
        1200.0,
        vec![
            line("Aimd", ORANGE, &aimd, millis),
            line("Gradient", BLUE, &gradient, millis),
            dashed("bound of Aimd", &aimd, |_| BOUND.as_secs_f64() * 1000.0),
        ],
    )?;
    area.present()?;
    println!("Drawn: {}", path.display());
    Ok(())
}

fn line(
    name: &'static str,
    color: RGBColor,
    bins: &[Bin],
    of: impl Fn(&Bin) -> f64 + 'static,
) -> Line {
    let bins = bins.to_vec();
    Line { name, color, dashed: false, of: Box::new(move |bin| of(&bins[bin])) }
}

fn dashed(name: &'static str, bins: &[Bin], of: impl Fn(&Bin) -> f64 + 'static) -> Line {
    Line { dashed: true, ..line(name, BLACK, bins, of) }
}

fn draw(panel: &Panel, title: &str, top: f64, lines: Vec<Line>) -> Result<(), Box<dyn Error>> {
    let bin = BIN.as_secs_f64();
    let count = scenes::BINS;
    let end = bin * f64::from(u32::try_from(count)?);
    let mut chart = ChartBuilder::on(panel)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(55)
        .build_cartesian_2d(0.0..end, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc("time (s)")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .label_style(("sans-serif", 15))
        .axis_desc_style(("sans-serif", 15))
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225))
        .draw()?;
    for Line { name, color, dashed, of } in lines {
        // Level over each bin: what is counted belongs to a stretch of time, not to a point.
        let mut points = Vec::new();
        let mut start = 0.0;
        for at in 0..count {
            points.extend([(start, of(at)), (start + bin, of(at))]);
            start += bin;
        }
        let style = color.stroke_width(if dashed { 1 } else { 2 });
        let drawn = if dashed {
            chart.draw_series(DashedLineSeries::new(points, 6, 4, style))?
        } else {
            chart.draw_series(LineSeries::new(points, style))?
        };
        let (dash, gap) = if dashed { (6, 4) } else { (24, 0) };
        drawn
            .label(name)
            .legend(move |(x, y)| DashedPathElement::new([(x, y), (x + 24, y)], dash, gap, style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperMiddle)
        .legend_area_size(34)
        .label_font(("sans-serif", 15))
        .background_style(WHITE)
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    Ok(())
}
