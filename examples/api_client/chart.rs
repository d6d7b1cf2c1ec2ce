//! What was allowed and served, and how long it took, as a picture.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::{Bin, Failure};

const BLUE: RGBColor = RGBColor(0, 110, 200);
const ORANGE: RGBColor = RGBColor(215, 90, 0);
const RED: RGBColor = RGBColor(200, 20, 50);

/// A line's name, its colour, and its value in each bin.
type Line = (&'static str, RGBColor, Vec<f64>);

pub(crate) fn draw(path: &Path, bins: &[Bin]) -> Result<(), Failure> {
    let area = SVGBackend::new(path, (900, 720)).into_drawing_area();
    area.fill(&WHITE)?;
    let (upper, lower) = area.split_vertically(400);
    let line = |name, color, of: fn(&Bin) -> f64| (name, color, bins.iter().map(of).collect());
    let latency = |bin: &Bin, per_cent| bin.latency(per_cent).unwrap_or(0.0);
    panel(
        &upper,
        "Calls per second",
        &[
            line("capacity", BLACK, |bin| bin.capacity.into()),
            line("allowed", ORANGE, |bin| bin.rate),
            line("served", BLUE, |bin| Bin::per_second(bin.served)),
            line("refused", RED, |bin| Bin::per_second(bin.refused)),
        ],
    )?;
    panel(
        &lower,
        "Time to the answer (ms), and calls at a time",
        &[
            ("p99", ORANGE, bins.iter().map(|bin| latency(bin, 99)).collect()),
            ("p50", BLUE, bins.iter().map(|bin| latency(bin, 50)).collect()),
            line("allowed at a time", BLACK, |bin| bin.at_a_time.into()),
        ],
    )?;
    area.present()?;
    Ok(())
}

fn panel(
    area: &DrawingArea<SVGBackend, Shift>,
    title: &str,
    lines: &[Line],
) -> Result<(), Failure> {
    let bin = Bin::LENGTH.as_secs_f64();
    let count = lines.iter().map(|(_, _, values)| values.len()).max().unwrap_or(0);
    let end = bin * f64::from(u32::try_from(count)?);
    // Room for the names.
    let top = lines.iter().flat_map(|(_, _, values)| values).fold(1.0, |a, b| b.max(a)) * 1.4;
    let mut chart = ChartBuilder::on(area)
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
    for (name, color, values) in lines {
        let mut start = 0.0;
        let steps = values.iter().flat_map(|&value| {
            let step = [(start, value), (start + bin, value)];
            start += bin;
            step
        });
        let style = color.stroke_width(2);
        chart
            .draw_series(LineSeries::new(steps, style))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .legend_area_size(34)
        .label_font(("sans-serif", 15))
        .background_style(WHITE)
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    Ok(())
}
