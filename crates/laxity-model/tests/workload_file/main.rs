//! The workload file: what is read, what is refused and how, what is written, and the schema.

mod devices;
mod errors;
mod examples;
mod fuzz;
mod generate;
mod gpus;
mod memory;
mod objects;
mod own_code;
mod read;
mod reference;
mod round_trip;
mod schema;
mod servers;
mod validation;
