//! The outcomes in numbers.

use crate::scenes::Scene;
use crate::{LIMIT, Outcome, PATIENCE};

pub(crate) fn print(scenes: &[Scene], outcomes: &[(&str, Vec<Outcome>)]) {
    println!(
        "Each allows {LIMIT} per second; who would wait for more than {} ms is refused.\n\
         Of each scene: how many were admitted, how many refused, and the most within a second.\n",
        PATIENCE.as_millis()
    );
    for (number, scene) in (1..).zip(scenes) {
        println!("{number}. {} ({} requests)", scene.name, scene.arrivals.len());
    }
    print!("\n{:<18}", "");
    for number in 1..=scenes.len() {
        print!("{:>17}", format!("{number}. adm ref max"));
    }
    println!();
    for (name, outcomes) in outcomes {
        print!("{name:<18}");
        for outcome in outcomes {
            let (most, _) = outcome.fullest_second();
            print!("{:>9} {:>3} {most:>3}", outcome.admitted.len(), outcome.refused);
        }
        println!();
    }
}
