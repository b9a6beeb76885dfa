//! `laxity tune`.

use std::fs;

use serde_json::Value;

use crate::support::{example, folder, run};

/// These tasks at 1.1 times their load are not proven as the file has them; with another configuration they are, and the file that
/// `tune` writes passes `check`.
#[test]
fn tune_finds_a_configuration_that_carries_a_tenth_more() {
    let folder = folder();
    let out = folder.path().join("better.toml");
    let file = example("quickstart.toml");
    let words = ["tune".as_ref(), file.as_os_str(), "--load".as_ref(), "110%".as_ref(), "--within".as_ref()];
    let (code, said, err) =
        run(words.into_iter().chain(["2min".as_ref(), "--json".as_ref(), "-o".as_ref(), out.as_os_str()]));
    assert_eq!(code, 0, "{err}");
    let found: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(found["laxity"], env!("CARGO_PKG_VERSION"));
    assert_eq!(found["own"]["score"]["proof"], Value::Null);
    let best = &found["best"][0];
    assert!(best["score"]["proof"]["laxity_ppm"].as_i64().expect("proven") > 0);
    assert!(!best["changes"].as_array().expect("changes").is_empty(), "{found}");
    assert_eq!(
        found["changes"].as_array().map(Vec::len),
        best["changes"].as_array().map(Vec::len),
        "the effect of each change is shown"
    );
    let (code, said, err) = run(["check".as_ref(), out.as_os_str()]);
    assert_eq!(code, 0, "{said}{err}");
    assert!(fs::read_to_string(&out).expect("the file").contains("9.9"), "its times are those of the load: 9 ms x 1.1");
}

#[test]
fn tune_says_by_how_much_the_bottleneck_must_shrink() {
    let folder = folder();
    let file = folder.path().join("full.toml");
    let text = "laxity = 1\nname = \"full\"\nscheduler = \"P-EDF\"\n[platform]\ncpus = 1\n\
                [[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"6 ms\"\n\
                [[task]]\nname = \"b\"\nperiod = \"10 ms\"\nwcet = \"5 ms\"\n";
    fs::write(&file, text).expect("written");
    let (code, said, err) = run(["tune".as_ref(), file.as_os_str(), "--within".as_ref(), "1min".as_ref()]);
    assert_eq!(code, 0, "{err}");
    assert!(said.contains("it would be if a alone shrank to 83.3 %"), "{said}");
    assert!(said.contains("it would be with 90.9 % of all execution times"), "{said}");
}

#[test]
fn what_cannot_be_meant_is_refused_before_the_search() {
    let folder = folder();
    let file = example("quickstart.toml");
    let yaml = folder.path().join("out.yaml");
    let says = |words: &[&std::ffi::OsStr], what: &str| {
        let (code, _, err) = run(["tune".as_ref(), file.as_os_str()].iter().chain(words));
        assert!(code == 2 && err.contains(what), "{err}");
    };
    says(&["--best".as_ref(), "0".as_ref()], "that shows nothing; write 1 or more");
    says(&["--within".as_ref(), "0s".as_ref()], "nothing is found in no time; search for longer");
    says(&["-o".as_ref(), yaml.as_os_str()], "name a file with .toml or .json");
    assert!(!yaml.exists());
}

/// It said "proven up to 100.000 times these execution times;  is the tightest".
#[test]
fn where_nothing_has_a_deadline_nothing_is_the_tightest() {
    let folder = folder();
    let file = folder.path().join("none.toml");
    fs::write(&file, "laxity = 1\nname = \"none\"\nplatform = { cpus = 1 }\n").expect("written");
    let (code, said, err) = run(["tune".as_ref(), file.as_os_str(), "--within".as_ref(), "1s".as_ref()]);
    assert_eq!(code, 0, "{err}");
    assert!(said.contains("the best is proven up to >=100.000 times these execution times\n"), "{said}");
}

/// A library of the workload is looked for in the folder of its file.
#[test]
fn a_file_in_another_folder_does_not_find_its_code() {
    let folder = folder();
    let file = folder.path().join("own.toml");
    let text = "laxity = 1\nname = \"own\"\nplatform = { cpus = 1 }\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\n\
                wcet = \"1 ms\"\nrun = { library = \"libcode.so\", symbol = \"step\" }\n";
    fs::write(&file, text).expect("written");
    fs::create_dir(folder.path().join("sub")).expect("a folder");
    let says = |out: &str| {
        let out = folder.path().join(out);
        let words = ["tune".as_ref(), file.as_os_str(), "--within".as_ref(), "1s".as_ref(), "-o".as_ref()];
        let (code, said, err) = run(words.into_iter().chain([out.as_os_str()]));
        assert_eq!(code, 0, "{said}{err}");
        err
    };
    assert!(says("sub/better.toml").contains("paths of code start at the folder of the file"));
    assert!(!says("better.toml").contains("paths of code"));
}

/// A simulation of it takes minutes.
#[test]
fn a_search_without_the_time_for_one_simulation_says_so() {
    let folder = folder();
    let file = folder.path().join("slow.toml");
    let text = "laxity = 1\nname = \"slow\"\nscheduler = \"G-EDF\"\n[platform]\ncpus = 3\n\
                [[task]]\nname = \"quick\"\nperiod = \"10 us\"\nwcet = \"9 us\"\n\
                [[task]]\nname = \"slow\"\nperiod = \"10 min\"\nwcet = \"9 min\"\n\
                [[task]]\nname = \"other\"\nperiod = \"9 min\"\nwcet = \"8.9 min\"\n\
                [[task]]\nname = \"third\"\nperiod = \"1 s\"\nwcet = \"300 ms\"\n";
    fs::write(&file, text).expect("written");
    let (code, out, err) = run([
        "tune".as_ref(),
        file.as_os_str(),
        "--within".as_ref(),
        "1s".as_ref(),
        "--for".as_ref(),
        "100min".as_ref(),
    ]);
    assert!(code == 1 && out.is_empty(), "{code} {out}");
    assert!(err.contains("no configuration was simulated for 6000 s within 1 s"), "{err}");
    assert!(err.contains("more time with `--within`, or less to simulate with `--for`"), "{err}");
}
