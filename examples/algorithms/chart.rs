//! The outcomes as a picture: a row for each limiter, a column for each scene.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::scenes::{LENGTH, Scene};
use crate::{LIMIT, Outcome, PATIENCE};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failure = Box<dyn Error>;

const WIDTH: u32 = 1_150;
/// Of the names of the limiters.
const NAMES: u32 = 150;
/// Of the title, the legend and the names of the scenes.
const HEAD: u32 = 88;
const ROW: u32 = 112;
/// The labels of the axis of time below all.
const FOOT: u32 = 34;

const ARRIVALS: RGBColor = RGBColor(150, 150, 150);
const ADMITTED: RGBColor = RGBColor(0, 110, 200);
const FULLEST: RGBColor = RGBColor(255, 221, 184);
const INK: RGBColor = RGBColor(40, 40, 40);

/// # Errors
///
/// If it cannot be written.
pub(crate) fn draw(
    path: &Path,
    scenes: &[Scene],
    outcomes: &[(&str, Vec<Outcome>)],
) -> Result<(), Failure> {
    let rows = u32::try_from(outcomes.len())?;
    let area = SVGBackend::new(path, (WIDTH, HEAD + rows * ROW + FOOT)).into_drawing_area();
    area.fill(&WHITE)?;
    let (head, body) = area.split_vertically(HEAD);
    let (body, foot) = body.split_vertically(rows * ROW);
    draw_head(&head, scenes)?;
    for ((name, outcomes), row) in outcomes.iter().zip(body.split_evenly((outcomes.len(), 1))) {
        let (left, right) = row.split_horizontally(NAMES);
        let style = text(16, HPos::Right).color(&INK);
        left.draw(&Text::new(*name, (position(NAMES) - 6, position(ROW) / 2), style))?;
        let panels = right.split_evenly((1, scenes.len()));
        for ((scene, outcome), panel) in scenes.iter().zip(outcomes).zip(panels) {
            draw_panel(&panel, scene, outcome)?;
        }
    }
    let (_, foot) = foot.split_horizontally(NAMES);
    for part in foot.split_evenly((1, scenes.len())) {
        let middle = position(part.dim_in_pixel().0) / 2;
        part.draw(&Text::new("seconds", (middle + 14, 12), text(14, HPos::Center).color(&INK)))?;
    }
    area.present()?;
    Ok(())
}

/// The title, what the lines are, and the name of each scene above its column.
fn draw_head(head: &Area<'_>, scenes: &[Scene]) -> Result<(), Failure> {
    let title = format!(
        "The same requests through limiters of {LIMIT} per second; callers wait for up to {} ms",
        PATIENCE.as_millis()
    );
    head.draw(&Text::new(title, (16, 20), text(20, HPos::Left).color(&INK)))?;
    let mut x = 16;
    for (name, color) in [("requests so far", ARRIVALS), ("admitted so far", ADMITTED)] {
        head.draw(&PathElement::new([(x, 46), (x + 28, 46)], color.stroke_width(3)))?;
        head.draw(&Text::new(name, (x + 36, 46), text(15, HPos::Left).color(&INK)))?;
        x += 170;
    }
    head.draw(&Rectangle::new([(x, 39), (x + 28, 53)], FULLEST.filled()))?;
    let fullest = "the second in which most were admitted, and how many";
    head.draw(&Text::new(fullest, (x + 36, 46), text(15, HPos::Left).color(&INK)))?;
    let (_, columns) = head.split_horizontally(NAMES);
    for (scene, column) in scenes.iter().zip(columns.split_evenly((1, scenes.len()))) {
        let middle = position(column.dim_in_pixel().0) / 2;
        column.draw(&Text::new(
            scene.name,
            (middle + 14, 76),
            text(15, HPos::Center).color(&INK),
        ))?;
    }
    Ok(())
}

fn draw_panel(panel: &Area<'_>, scene: &Scene, outcome: &Outcome) -> Result<(), Failure> {
    let (end, all) = (LENGTH.as_secs_f64(), count(scene.arrivals.len()));
    let mut chart = ChartBuilder::on(panel)
        .margin_top(6)
        .margin_right(8)
        .x_label_area_size(20)
        .y_label_area_size(32)
        .build_cartesian_2d(0.0..end, 0.0..all * 1.1)?;
    let (most, from) = outcome.fullest_second();
    let from = from.as_secs_f64();
    let until = (from + 1.0).min(end);
    chart.draw_series([Rectangle::new([(from, 0.0), (until, all * 1.1)], FULLEST.filled())])?;
    chart
        .configure_mesh()
        .x_labels(7)
        .y_labels(4)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .label_style(("sans-serif", 12))
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(228, 228, 228))
        .draw()?;
    for (times, color, width) in [(&scene.arrivals, ARRIVALS, 2), (&outcome.admitted, ADMITTED, 3)]
    {
        chart.draw_series([PathElement::new(steps(times), color.stroke_width(width))])?;
    }
    // There is always room there: the lines begin below.
    let style = text(14, HPos::Left).color(&RGBColor(190, 90, 0));
    chart.draw_series([Text::new(format!("{most} in 1 s"), (0.12, all * 0.98), style)])?;
    Ok(())
}

/// How many there were so far: a step up at each.
fn steps(times: &[Duration]) -> Vec<(f64, f64)> {
    let end = LENGTH.as_secs_f64();
    let mut line = vec![(0.0, 0.0)];
    let shown = times.iter().take_while(|time| **time <= LENGTH);
    for (before, time) in shown.enumerate() {
        let time = time.as_secs_f64();
        line.extend([(time, count(before)), (time, count(before + 1))]);
    }
    line.push((end, line[line.len() - 1].1));
    line
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred")]
fn count(number: usize) -> f64 {
    number as f64
}

fn position(pixels: u32) -> i32 {
    i32::try_from(pixels).unwrap_or(i32::MAX)
}

fn text(height: u32, anchor: HPos) -> TextStyle<'static> {
    TextStyle::from(("sans-serif", height).into_font()).pos(Pos::new(anchor, VPos::Center))
}
