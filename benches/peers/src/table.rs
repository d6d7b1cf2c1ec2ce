//! A table in plain text: names to the left, figures to the right, columns aligned.

use std::fmt;

/// A table under construction. `Display` prints it.
#[derive(Clone, Debug)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
enum Row {
    Section(String),
    Cells(Vec<String>),
}

impl Table {
    /// A table with these columns. The first holds names.
    #[must_use]
    pub fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// A heading across all columns.
    pub fn section(&mut self, title: &impl ToString) {
        self.rows.push(Row::Section(title.to_string()));
    }

    /// A line. Missing cells at its end are empty.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(Row::Cells(cells));
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.head.iter().map(|name| name.chars().count()).collect();
        for row in &self.rows {
            if let Row::Cells(cells) = row {
                for (width, cell) in widths.iter_mut().zip(cells) {
                    *width = (*width).max(cell.chars().count());
                }
            }
        }
        widths
    }
}

fn line(f: &mut fmt::Formatter<'_>, cells: &[String], widths: &[usize]) -> fmt::Result {
    let padded: Vec<String> = cells
        .iter()
        .zip(widths)
        .enumerate()
        .map(|(column, (cell, &width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        })
        .collect();
    writeln!(f, "{}", padded.join("  ").trim_end())
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        line(f, &self.head, &widths)?;
        let across = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        writeln!(f, "{}", "-".repeat(across))?;
        for row in &self.rows {
            match row {
                Row::Section(title) => writeln!(f, "\n{title}")?,
                Row::Cells(cells) => line(f, cells, &widths)?,
            }
        }
        Ok(())
    }
}

/// A figure to a tenth.
#[must_use]
pub fn tenths(figure: f64) -> String {
    format!("{figure:.1}")
}

/// A ratio to a hundredth, or a dash where there is nothing to compare.
#[must_use]
pub fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["name", "ns/op"]);
        table.section(&"floors");
        table.row(vec!["one".to_owned(), tenths(1.25)]);
        table.row(vec!["the other".to_owned(), ratio(None)]);
        assert_eq!(
            table.to_string(),
            "name       ns/op\n\
             ----------------\n\
             \n\
             floors\n\
             one          1.2\n\
             the other      -\n"
        );
    }
}
