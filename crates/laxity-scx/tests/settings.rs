//! What the scheduler in the kernel cannot be is refused before anything is loaded, with the way out.

use laxity_model::Nanos;
use laxity_scx::{Placement, Settings, SettingsError, Share};

fn settings(policy: &str, cpus: &[usize], cluster_size: Option<usize>) -> Settings {
    Settings {
        policy: policy.to_owned(),
        cpus: cpus.to_vec(),
        cluster_size,
        trace: None,
        object: None,
        others: None,
        overheads: false,
        holds: false,
    }
}

fn clusters(policy: &str, cpus: &[usize], size: Option<usize>) -> Result<Vec<Vec<usize>>, SettingsError> {
    settings(policy, cpus, size).check().map(|(_, placement)| placement.clusters)
}

#[test]
fn clusters_are_as_the_policy_says() {
    assert_eq!(clusters("G-EDF", &[2, 0, 5], None), Ok(vec![vec![0, 2, 5]]));
    assert_eq!(clusters("P-RM", &[0, 3], None), Ok(vec![vec![0], vec![3]]));
    assert_eq!(clusters("C-DM", &[0, 1, 2, 3], Some(2)), Ok(vec![vec![0, 1], vec![2, 3]]));
    assert_eq!(clusters("C-FP", &[7], Some(1)), Ok(vec![vec![7]]));
}

#[test]
fn what_is_not_in_the_kernel_is_refused_by_name() {
    for (policy, reason) in [
        ("G-CFS", "fair class"),
        ("SCHED_OTHER", "fair class"),
        ("G-EDF/CQ2", "realization"),
        ("EDF-G", "G-, C- and P-"),
        ("", "G-, C- and P-"),
    ] {
        let error = clusters(policy, &[0, 1], Some(1)).expect_err(policy).to_string();
        let has = "EDF, RM, DM and FP, and the realizations of paper 002";
        assert!(error.contains(reason) && error.contains(has), "{policy}: {error}");
    }
}

#[test]
fn all_realizations_are_in_the_kernel() {
    let kinds =
        ["Em", "E1", "Qm", "Q1"].map(|kind| ["C", "F", "H", "S-C", "S-F", "S-H"].map(|queue| format!("{queue}{kind}")));
    for realization in kinds.concat() {
        for policy in [realization.to_owned(), format!("P-RM/{realization}")] {
            let (scheduler, _) = settings(&policy, &[4, 5], None).check().expect(&policy);
            assert_eq!(scheduler.realization(), realization);
        }
    }
}

#[test]
fn the_cpu_for_interrupts_is_the_first_one_and_has_no_jobs() {
    let placed = |policy, cpus: &[usize], size| settings(policy, cpus, size).check().map(|(_, placement)| placement);
    let with = |clusters: &[&[usize]], dedicated| {
        Ok(Placement { clusters: clusters.iter().map(|cpus| cpus.to_vec()).collect(), dedicated })
    };
    assert_eq!(placed("G-EDF", &[2, 1, 5], None), with(&[&[1, 2, 5]], None));
    assert_eq!(placed("G-EDF/CE1", &[2, 1, 5], None), with(&[&[2, 5]], Some(1)));
    assert_eq!(placed("C-EDF/CQ1", &[0, 1, 2, 3], Some(2)), with(&[&[1], &[2, 3]], Some(0)));
    assert_eq!(placed("P-RM/S-CQ1", &[0, 1, 2], None), with(&[&[1], &[2]], Some(0)));
    let alone = placed("G-EDF/CE1", &[3], None).expect_err("it leaves no CPU");
    assert_eq!(alone, SettingsError::NoOther { policy: "G-EDF/CE1".to_owned(), cpu: 3 });
    assert!(alone.to_string().contains("name another one"), "{alone}");
}

#[test]
fn cpus_that_cannot_be_are_named() {
    assert_eq!(clusters("G-EDF", &[], None), Err(SettingsError::NoCpu));
    assert_eq!(clusters("G-EDF", &[1, 0, 1], None), Err(SettingsError::Twice(1)));
    assert_eq!(clusters("G-EDF", &[0, 64], None), Err(SettingsError::Beyond(64)));
    for size in [None, Some(0), Some(2), Some(4)] {
        let error = clusters("C-EDF", &[0, 1, 2], size).expect_err("no such clusters").to_string();
        assert!(error.contains("3 CPUs") && error.contains("--cluster-size"), "{error}");
    }
}

#[test]
fn the_share_of_other_threads_is_a_part_of_a_period() {
    let with = |text: &str| {
        let others = Some(text.parse::<Share>()?);
        Settings { others, ..settings("P-RM", &[0], None) }.check().map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!("5ms/100ms".parse(), Ok(Share { budget: Nanos::from_millis(5), period: Nanos::from_millis(100) }));
    assert_eq!(with("50 ms / 100 ms"), Ok(()));
    for (text, reason) in [
        ("0 ms/100 ms", "a budget of 1 us at least"),
        ("60 ms/100 ms", "no more than half"),
        ("1 ms/11 s", "a period of 10 s at most"),
        ("5ms", "as in 5ms/100ms"),
        ("5/100", "unit"),
    ] {
        let error = with(text).expect_err(text);
        assert!(error.contains(reason), "{text}: {error}");
    }
}
