//! What became of the requests, as a picture.

use std::path::Path;
use std::time::Duration;

use plotters::element::DashedPathElement;
use plotters::prelude::*;

use crate::clients::Call;
use crate::report::{offered, per_bin, served};
use crate::{Failure, LIMIT, LOAD, OFFERED, PATIENCE};

/// Long enough that chance does not make the lines ragged, short enough to see the burst.
const BIN: Duration = Duration::from_millis(500);

pub(crate) fn draw(path: &Path, given_back: &[Call], kept: &[Call]) -> Result<(), Failure> {
    let end = LOAD.as_secs_f64();
    // Room for the clumps in which callers come.
    let top = f64::from(OFFERED) * 1.3;

    let area = SVGBackend::new(path, (900, 520)).into_drawing_area();
    area.fill(&WHITE)?;
    let title = format!(
        "{OFFERED} requests/s where {LIMIT}/s are allowed, from callers who hang up after {} ms",
        PATIENCE.as_millis()
    );
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 22))
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..end, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc("time (s)")
        .y_desc("requests per second")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .label_style(("sans-serif", 16))
        .axis_desc_style(("sans-serif", 17))
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225))
        .draw()?;

    let lines = [
        ("offered", offered(given_back), RGBColor(140, 140, 140)),
        ("served, turns given back", served(given_back), RGBColor(0, 110, 200)),
        ("served, turns kept", served(kept), RGBColor(215, 90, 0)),
    ];
    for (name, times, color) in lines {
        let style = color.stroke_width(3);
        chart
            .draw_series(LineSeries::new(steps(&per_bin(&times, BIN)), style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
    }
    let limit = f64::from(LIMIT);
    let style = BLACK.stroke_width(1);
    chart
        .draw_series(DashedLineSeries::new([(0.0, limit), (end, limit)], 6, 4, style))?
        .label(format!("limit, {LIMIT}/s"))
        .legend(move |(x, y)| DashedPathElement::new([(x, y), (x + 24, y)], 6, 4, style));

    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::MiddleRight)
        .legend_area_size(34)
        .label_font(("sans-serif", 17))
        .background_style(WHITE)
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    area.present()?;
    Ok(())
}

/// The counts as a rate, level over each bin: a count belongs to a stretch of time, not to a point.
fn steps(counts: &[u32]) -> Vec<(f64, f64)> {
    let bin = BIN.as_secs_f64();
    let mut line = Vec::new();
    let mut start = 0.0;
    for &count in counts {
        let rate = f64::from(count) / bin;
        line.extend([(start, rate), (start + bin, rate)]);
        start += bin;
    }
    line
}
