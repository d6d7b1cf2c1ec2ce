//! The table as a picture: a panel for each patience, a line for each limiter.

use crate::{ARRIVALS, BURST, LIMIT, Line};
use plotters::{coord::Shift, element::DashedPathElement, prelude::*};
use std::{error::Error, path::Path};

const SIZE: (u32, u32) = (1200, 560);

/// How the lines look, in the order of the table. Several limiters keep to the limit: where their
/// lines coincide, the broad ones show on both sides of the narrow ones.
const STYLES: [(RGBColor, u32); 7] = [
    (RGBColor(0, 90, 170), 5),
    (RGBColor(245, 190, 80), 9),
    (RGBColor(0, 158, 115), 2),
    (RGBColor(225, 170, 205), 12),
    (RGBColor(205, 205, 205), 15),
    (RGBColor(86, 180, 233), 2),
    (RGBColor(213, 94, 0), 2),
];

pub(crate) fn draw(
    path: &Path,
    title: &str,
    scenes: &[(String, Vec<Line>)],
    seconds: u32,
) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let area = area.titled(title, ("sans-serif", 22))?;
    for (panel, (caption, lines)) in area.split_evenly((1, scenes.len())).iter().zip(scenes) {
        draw_panel(panel, caption, lines, seconds)?;
    }
    area.present()?;
    Ok(())
}

fn draw_panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    caption: &str,
    lines: &[Line],
    seconds: u32,
) -> Result<(), Box<dyn Error>> {
    let end = f64::from(seconds);
    // Room for the legend above everything that a limiter may let through.
    let top = f64::from(LIMIT + BURST) * 1.6;
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(52)
        .build_cartesian_2d(0.0..end, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc("second")
        .y_desc(format!("served per second, of {ARRIVALS}"))
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 15))
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225))
        .draw()?;

    let styled = || {
        let style = |(color, width): (RGBColor, u32)| color.stroke_width(width);
        lines.iter().zip(STYLES.map(style))
    };
    // The broad ones go below; the legend keeps the order of the table.
    let mut by_width: Vec<_> = styled().collect();
    by_width.sort_by_key(|(_, style)| std::cmp::Reverse(style.stroke_width));
    for (line, style) in by_width {
        chart.draw_series(LineSeries::new(steps(&line.served), style))?;
    }
    for (line, style) in styled() {
        let key = move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style);
        chart.draw_series(LineSeries::new([], style))?.label(line.name).legend(key);
    }
    let limit = f64::from(LIMIT);
    let style = BLACK.stroke_width(1);
    chart
        .draw_series(DashedLineSeries::new([(0.0, limit), (end, limit)], 6, 4, style))?
        .label(format!("limit, {LIMIT}/s"))
        .legend(move |(x, y)| DashedPathElement::new([(x, y), (x + 24, y)], 6, 4, style));
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .legend_area_size(34)
        .label_font(("sans-serif", 14))
        .background_style(WHITE)
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    Ok(())
}

/// Level over each second: a count belongs to a stretch of time, not to a point.
fn steps(served: &[u32]) -> Vec<(f64, f64)> {
    let mut line = Vec::new();
    for (second, &count) in (0_u32..).zip(served) {
        let (start, count) = (f64::from(second), f64::from(count));
        line.extend([(start, count), (start + 1.0, count)]);
    }
    line
}
