mod sizing;
mod stock;
