//! CSV.

use laxity_trace::table::{EventRow, IntervalRow, JobRow, Row, csv, events, intervals, jobs};

use super::fixtures::*;
use super::gpus::*;

fn text<R: Row>(rows: impl IntoIterator<Item = R>) -> String {
    let mut bytes = Vec::new();
    csv(rows, &mut bytes).expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("text")
}

#[test]
fn jobs_are_lines_with_empty_nulls() {
    let (header, records) = suspension_and_misses();
    assert_eq!(
        text(jobs(&header, &records).expect("it fits")),
        "\
task,task_name,job,release_ns,arrival_ns,deadline_ns,completion_ns,response_time_ns,lateness_ns,tardiness_ns,\
preemptions,migrations,executed_ns,missed,spinning_ns,awaiting_locks_ns,inheriting_ns,operations_ns,bottom_halves_ns,\
owner
0,control,0,0,0,4000000,5000000,5000000,1000000,1000000,0,0,3000000,true,0,0,0,0,0,
1,logger,0,0,0,8000000,,,,,2,0,4000000,true,0,0,0,0,0,
0,control,1,4000000,4000000,8000000,9000000,5000000,1000000,1000000,0,0,3000000,true,0,0,0,0,0,
"
    );
}

#[test]
fn an_empty_table_still_names_its_columns() {
    assert_eq!(
        text(Vec::<IntervalRow<'_>>::new()),
        "from_ns,to_ns,duration_ns,activity,cpu,task,task_name,job,begin,stop,migrated_from_cpu,gpu,engine,device,lock,\
         replica,owner,level,of_task,operation,kind,outsider,thread\n"
    );
}

#[test]
fn names_with_commas_and_quotes_are_quoted() {
    let mut header = figure_1_header();
    header.tasks[2].name = "front, \"left\"".to_owned();
    let rows: Vec<EventRow<'_>> = Vec::new();
    assert!(text(rows).starts_with("at_ns,event,"));
    let records = figure_1a();
    assert!(
        text(events(&header, &records))
            .contains("1500000,release,,,2,\"front, \"\"left\"\"\",0,13500000,,,,,,,,,,,,,,,\n")
    );
}

#[test]
fn an_owner_is_task_and_job_in_one_cell() {
    let (header, records) = inversion_slih();
    assert!(text(events(&header, &records)).contains("4000000,interrupt,0,,,,,,,,,,0,,,H.0,,,,,,,\n"));
}

/// The names that `csv` writes are those of the fields, in their order.
#[test]
fn columns_are_the_fields_of_the_row() {
    fn check<R: Row>(row: R) {
        let fields = serde_json::to_string(&row).expect("a row is plain data");
        let names = R::COLUMNS.iter().map(|name| format!("\"{name}\":"));
        let mut rest = fields.as_str();
        for name in names {
            let (before, after) = rest.split_once(&name).unwrap_or_else(|| panic!("{name} follows in {rest}"));
            assert!(!before.contains(':'), "no field before {name}: {before}");
            rest = after;
        }
        assert_eq!(rest.matches("\":").count(), 0, "no field is left over: {rest}");
    }
    let header = figure_1_header();
    let records = figure_1c();
    check::<JobRow<'_>>(jobs(&header, &records).expect("it fits")[0]);
    check::<EventRow<'_>>(events(&header, &records).next().expect("there are records"));
    check::<IntervalRow<'_>>(intervals(&header, &records).expect("it fits")[0]);
}
