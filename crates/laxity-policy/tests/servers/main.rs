//! Bandwidth servers: worked examples as drawings, and their guarantees under random loads and schedules.

mod driver;
mod examples;
mod random;
