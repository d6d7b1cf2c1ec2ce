mod seen;
mod sizing;
mod stock;
