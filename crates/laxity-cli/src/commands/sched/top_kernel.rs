//! `laxity sched top --kernel`: the tasks of the scheduler in the kernel, until it ends.

use std::thread;

use laxity_scx::protocol::Status;
use laxity_scx::{ClientError, Membership};

use super::status;
use super::top::{Arguments, LOOK};
use crate::commands::named::live;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// Shows it until it ends. The loader is asked no more often than something is shown.
pub fn run(arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let scheduler = Membership::join().map_err(live)?;
    let mut last = scheduler.status().map_err(live)?;
    if !arguments.once {
        watch(&scheduler, &mut last, arguments, output)?;
    }
    match (arguments.json, arguments.once) {
        (true, true) => json(&last, output),
        (true, false) => Ok(()),
        (false, _) => status::print(&last, output),
    }
}

fn watch(
    scheduler: &Membership,
    last: &mut Status,
    arguments: &Arguments,
    output: &mut Output,
) -> Result<(), CliError> {
    let interrupt = Interrupt::watch();
    let mut display = arguments.display();
    let mut is_first = true;
    while !interrupt.is_requested() && !output.is_closed() {
        if is_first || display.is_due() {
            is_first = false;
            match scheduler.status() {
                Ok(status) => *last = status,
                Err(ClientError::Ended) => break,
                Err(error) => return Err(live(error)),
            }
            if arguments.json {
                json(last, output)?;
                display.wait_again();
            } else {
                let rows = display.rows();
                display.show(&status::summary(last), |width| status::table(&last.tasks, rows).render(width));
            }
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

fn json(status: &Status, output: &mut Output) -> Result<(), CliError> {
    output.line(status::json_line(status))?;
    output.finish()
}
