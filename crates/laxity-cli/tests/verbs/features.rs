//! One small workload for each feature that a workload file can ask for. Jobs are short and periods 10 ms, so that a live
//! run of a few periods has used the feature.

/// A feature and the workload that has it.
pub struct Feature {
    /// The heading under which the table has it.
    pub area: &'static str,
    /// As the table calls it; unique.
    pub name: &'static str,
    /// The workload file.
    pub text: String,
}

/// All of them, in the order of the table.
pub fn all() -> Vec<Feature> {
    let mut features = Vec::new();
    let mut add = |area, list: Vec<(&'static str, String)>| {
        features.extend(list.into_iter().map(|(name, text)| Feature { area, name, text }));
    };
    add("Schedulers", schedulers());
    add("Tasks", tasks());
    add("Resources", resources());
    add("GPUs: arbitration", arbitration());
    add("GPUs: operations", operations());
    add("GPUs: interrupts", interrupts());
    add("Devices", devices());
    add("Memory bandwidth and best-effort tasks", memory());
    add("Graphs and chains", graphs());
    features
}

/// Two CPUs and these `parts` of a file.
fn file(parts: &[&str]) -> String {
    on("cpus = 2", parts)
}

/// A platform that begins with `platform`, and these `parts` of a file; a part that begins with a key comes before it.
fn on(platform: &str, parts: &[&str]) -> String {
    let is_key = |part: &&&str| !part.starts_with('[');
    let keys: Vec<&str> = parts.iter().filter(is_key).copied().collect();
    let tables: Vec<&str> = parts.iter().filter(|part| !is_key(part)).copied().collect();
    format!("laxity = 1\nname = \"feature\"\n{}\n[platform]\n{platform}\n{}\n", keys.join("\n"), tables.join("\n"))
}

/// A task with a period of 10 ms and these other fields.
fn task(name: &str, fields: &str) -> String {
    format!("[[task]]\nname = \"{name}\"\nperiod = \"10 ms\"\n{fields}\n")
}

/// A workload with two tasks of these fields.
fn two(fields: &str) -> String {
    format!("{}{}", task("a", fields), task("b", fields))
}

const WORK: &str = "wcet = \"200 us\"";

fn schedulers() -> Vec<(&'static str, String)> {
    let by = |name: &str| file(&[&format!("scheduler = \"{name}\""), &two(WORK)]);
    let given = two(&format!("{WORK}\npriority = 3"));
    let clusters = |name: &str| on("cpus = 2\nclusters = 2", &[&format!("scheduler = \"{name}\""), &two(WORK)]);
    let costs = "cpus = 2\noverheads = { release = \"5 us\", scheduling = [[2, \"5 us\"], [10, \"9 us\"]], cache_preemption = \"2 us\" }";
    vec![
        ("global EDF", by("G-EDF")),
        ("clustered EDF", clusters("C-EDF")),
        ("partitioned EDF", by("P-EDF")),
        ("global rate monotonic", by("G-RM")),
        ("clustered rate monotonic", clusters("C-RM")),
        ("partitioned deadline monotonic", by("P-DM")),
        ("priorities given", file(&["scheduler = \"G-FP\"", &given])),
        ("SCHED_OTHER (G-CFS)", by("SCHED_OTHER")),
        ("quantum-driven", by("G-EDF/CQm")),
        ("staggered quanta", by("G-EDF/S-CQm")),
        ("interrupts on a CPU of their own", by("G-EDF/CE1")),
        ("overheads", on(costs, &[&two(WORK)])),
        (
            "more CPUs than the machine has (`--cpus 2`)",
            on("cpus = 16\nclusters = 8", &["scheduler = \"C-RM\"", &two(WORK)]),
        ),
    ]
}

fn tasks() -> Vec<(&'static str, String)> {
    let of = |fields: &str| file(&["scheduler = \"P-RM\"", &two(fields)]);
    let body = |steps: &str| of(&format!("body = [{{ cpu = \"100 us\" }}, {steps}, {{ cpu = \"100 us\" }}]"));
    let queued = |steps: &str| {
        let fields = format!("body = [{{ cpu = \"100 us\" }}, {steps}, {{ cpu = \"100 us\" }}]");
        file(&["scheduler = \"G-EDF/CQm\"", &two(&fields)])
    };
    // Two budgets a job. Where deadlines decide, a soft one goes on with a later one.
    let server = |scheduler: &str, kind: &str| {
        let fields = format!("{WORK}\nserver = {{ kind = \"{kind}\", budget = \"150 us\", period = \"4 ms\" }}");
        file(&[&format!("scheduler = \"{scheduler}\""), &two(&fields)])
    };
    vec![
        ("periodic", of(WORK)),
        (
            "sporadic, with gaps",
            of(&format!("{WORK}\narrival = \"sporadic\"\ngap = {{ uniform = [\"0 ms\", \"2 ms\"] }}")),
        ),
        ("phase", of(&format!("{WORK}\nphase = \"3 ms\""))),
        ("release jitter", of(&format!("{WORK}\njitter = \"1 ms\""))),
        ("deadline before the period", of(&format!("{WORK}\ndeadline = \"8 ms\""))),
        ("deadline beyond the period", of(&format!("{WORK}\ndeadline = \"15 ms\""))),
        (
            "execution times by a distribution",
            of(&format!("{WORK}\nactual = {{ recorded = [\"90 us\", \"200 us\"] }}")),
        ),
        ("working set", of(&format!("{WORK}\nworking_set = \"16 KiB\""))),
        ("budget that suffices", of(&format!("{WORK}\nbudget = \"2 ms\""))),
        ("budget that jobs may exhaust", of(&format!("{WORK}\nbudget = \"150 us\""))),
        ("hard constant bandwidth server, two budgets a job", server("P-RM", "cbs_hard")),
        ("soft constant bandwidth server, two budgets a job", server("G-EDF", "cbs_soft")),
        ("sporadic server, two budgets a job", server("P-EDF", "sporadic")),
        ("self-suspension", body("{ suspend = \"500 us\" }")),
        ("non-preemptive section", body("{ nonpreemptive = \"100 us\" }")),
        ("self-suspension under quanta", queued("{ suspend = \"500 us\" }")),
        ("non-preemptive section under quanta", queued("{ nonpreemptive = \"100 us\" }")),
        ("own code: a command", of(&format!("{WORK}\nrun = {{ command = [\"true\"] }}"))),
    ]
}

fn resources() -> Vec<(&'static str, String)> {
    let critical = "body = [{ cpu = \"50 us\" }, { critical = \"bus\", body = [{ cpu = \"100 us\" }] }]";
    let of = |scheduler: &str, fields: &str, body: &str| {
        let resource = format!("[[resource]]\nname = \"bus\"\n{fields}\n");
        file(&[&format!("scheduler = \"{scheduler}\""), &resource, &two(body)])
    };
    let nested = "body = [{ critical = \"bus\", body = [{ cpu = \"50 us\" }, { critical = \"log\", body = [{ cpu = \"50 us\" }] }] }]";
    vec![
        ("priority inheritance", of("G-RM", "", critical)),
        ("priority ceiling", of("G-RM", "protocol = \"priority-ceiling\"", critical)),
        ("priority ceiling under EDF", of("G-EDF", "protocol = \"priority-ceiling\"", critical)),
        ("first come, first served", of("G-RM", "protocol = \"fifo\"", critical)),
        ("replicas", of("G-RM", "replicas = 2", critical)),
        ("replicas, first come, first served", of("G-EDF", "protocol = \"fifo\"\nreplicas = 2", critical)),
        ("nested sections", of("G-RM", "[[resource]]\nname = \"log\"", nested)),
        ("shared across CPUs that are scheduled apart", of("P-RM", "", critical)),
        ("under quanta", of("G-EDF/CQm", "", critical)),
    ]
}

const GPU: &str = "[[platform.gpu]]\nname = \"gpu0\"\nbandwidth = \"1 GB/s\"\n";
const SECOND: &str = "[[platform.gpu]]\nname = \"gpu1\"\nbandwidth = \"1 GB/s\"\n";
const KERNEL: &str =
    "body = [{ cpu = \"50 us\" }, { copy_in = \"50 kB\" }, { kernel = \"200 us\" }, { cpu = \"50 us\" }]";

/// Two users of a GPU under `management`.
fn gpu(management: &str, scheduler: &str, body: &str) -> String {
    gpus(GPU, management, scheduler, body)
}

fn gpus(gpus: &str, management: &str, scheduler: &str, body: &str) -> String {
    let management = format!("[gpu_management]\n{management}\n");
    file(&[&format!("scheduler = \"{scheduler}\""), gpus, &management, &two(body)])
}

fn arbitration() -> Vec<(&'static str, String)> {
    let by = |arbitration: &str| gpu(&format!("arbitration = {arbitration}"), "G-RM", KERNEL);
    let sync = |parameters: &str| by(&format!("{{ protocol = \"gpusync\", {parameters} }}"));
    let both = format!("{GPU}{SECOND}");
    let pool = |management: &str| gpus(&both, &format!("arbitration = {management}"), "G-RM", KERNEL);
    let unlike = format!("{GPU}{SECOND}copy_engines = 2\n");
    let threads = "arbitration = \"k_fmlp\"\nhandling = \"klmirqd\"";
    vec![
        ("driver", by("\"driver\"")),
        ("driver, jobs spin", by("\"driver_spinning\"")),
        ("semaphore", by("\"semaphore\"")),
        ("k-FMLP", by("\"k_fmlp\"")),
        ("k-FMLP by length", by("{ protocol = \"k_fmlp\", length_aware = true }")),
        ("k-FMLP, two GPUs", pool("\"k_fmlp\"")),
        ("GPUSync", sync("tokens = 1")),
        ("GPUSync, several tokens", sync("tokens = 2, fifo_length = 2")),
        ("GPUSync, engines by priority", sync("tokens = 2, engine_order = \"priority\"")),
        ("GPUSync, copies in chunks", sync("tokens = 2, chunk = \"8 KiB\"")),
        ("GPUSync, tokens for sections", sync("hold = \"section\"")),
        ("GPUSync, migration from GPU to GPU", pool("{ protocol = \"gpusync\", migration = \"20 us\" }")),
        (
            "GPUSync, migration by host memory",
            pool("{ protocol = \"gpusync\", migration = \"20 us\", migration_path = \"host\" }"),
        ),
        ("GPUs that are not alike", gpus(&unlike, "arbitration = { protocol = \"gpusync\" }", "G-RM", KERNEL)),
        ("GPUSync under EDF", gpu("arbitration = { protocol = \"gpusync\" }", "G-EDF", KERNEL)),
        ("under SCHED_OTHER", gpu("arbitration = \"driver\"", "SCHED_OTHER", KERNEL)),
        ("shared across CPUs that are scheduled apart", gpu("arbitration = \"k_fmlp\"", "P-RM", KERNEL)),
        ("shared across CPUs that are scheduled apart, klmirqd", gpu(threads, "P-RM", KERNEL)),
        ("interrupts on CPUs of another cluster", apart("")),
        ("interrupts on CPUs of another cluster, klmirqd", apart("handling = \"klmirqd\"")),
        ("those of two clusters, with a resource that both share", two_pools()),
        ("under quanta", gpu("arbitration = \"k_fmlp\"", "G-EDF/CQm", KERNEL)),
        (
            "under quanta, preempt_rt_high",
            gpu("arbitration = \"k_fmlp\"\nhandling = \"preempt_rt_high\"", "G-EDF/CQm", KERNEL),
        ),
    ]
}

/// A GPU that interrupts a CPU of the other cluster.
fn apart(management: &str) -> String {
    let gpu = format!("{GPU}interrupt_cpus = [1]\n");
    let user = task("a", &format!("{KERNEL}\ncluster = 0"));
    let management = format!("[gpu_management]\narbitration = \"k_fmlp\"\n{management}\n");
    on("cpus = 2\nclusters = 2", &["scheduler = \"C-RM\"", &gpu, &management, &user])
}

/// Each cluster has its GPU, and tasks of both ask for one resource.
fn two_pools() -> String {
    let [first, second] = [(GPU, 0), (SECOND, 1)]
        .map(|(gpu, cluster)| format!("{gpu}cluster = {cluster}\ninterrupt_cpus = [{cluster}]\n"));
    let body = KERNEL.replace("{ cpu = \"50 us\" }]", "{ critical = \"bus\", body = [{ cpu = \"50 us\" }] }]");
    let [a, b] = [("a", 0), ("b", 1)].map(|(name, cluster)| task(name, &format!("{body}\ncluster = {cluster}")));
    let management = "[gpu_management]\narbitration = \"k_fmlp\"\n[[resource]]\nname = \"bus\"\n";
    on("cpus = 2\nclusters = 2", &["scheduler = \"C-RM\"", &first, &second, management, &a, &b])
}

fn operations() -> Vec<(&'static str, String)> {
    let of = |steps: &str| gpu("arbitration = \"k_fmlp\"", "G-RM", &format!("body = [{{ cpu = \"50 us\" }}, {steps}]"));
    let two = format!("{GPU}copy_engines = 2\n");
    vec![
        ("section", of("{ gpu_section = [{ kernel = \"100 us\" }, { cpu = \"50 us\" }, { kernel = \"100 us\" }] }")),
        ("copies to and from", of("{ copy_in = \"50 kB\" }, { copy_out = \"50 kB\", time = \"80 us\" }")),
        ("two copy engines", gpus(&two, "arbitration = \"k_fmlp\"", "G-RM", KERNEL)),
        (
            "asynchronous, several before a wait",
            of(
                "{ kernel = \"100 us\", asynchronous = true }, { copy_out = \"9 kB\", asynchronous = true }, { cpu = \"50 us\" }",
            ),
        ),
        ("several interrupts", of("{ kernel = \"100 us\", interrupts = 3 }")),
        ("GPU by name", of("{ kernel = \"100 us\", gpu = \"gpu0\" }")),
    ]
}

fn interrupts() -> Vec<(&'static str, String)> {
    let by = |handling: &str, rest: &str| {
        let halves = "top_half = \"5 us\"\nbottom_half = \"20 us\"";
        gpu(&format!("arbitration = \"k_fmlp\"\nhandling = {handling}\n{halves}\n{rest}"), "G-RM", KERNEL)
    };
    let shared = "arbitration = \"driver\"\nhandling = \"klmirqd\"\nbottom_half = \"20 us\"";
    let both = format!("{GPU}{SECOND}");
    let several = "arbitration = \"k_fmlp\"\nhandling = \"klmirqd\"\nbottom_half = \"20 us\"";
    let threads = "arbitration = \"k_fmlp\"\nhandling = { method = \"klmirqd\", threads = 1 }\nbottom_half = \"20 us\"";
    vec![
        ("linux", by("\"linux\"", "")),
        ("preempt_rt_low", by("\"preempt_rt_low\"", "")),
        ("preempt_rt_high", by("\"preempt_rt_high\"", "")),
        ("pai", by("\"pai\"", "")),
        ("klmirqd", by("\"klmirqd\"", "")),
        ("klmirqd, GPU left to the driver", gpu(shared, "G-RM", KERNEL)),
        ("klmirqd, one thread for two GPUs", gpus(&both, threads, "G-RM", KERNEL)),
        (
            "klmirqd, several interrupts on several CPUs",
            gpu(several, "G-RM", &KERNEL.replace("\"200 us\"", "\"200 us\", interrupts = 3")),
        ),
        (
            "pai, several interrupts on several CPUs",
            gpu(
                &several.replace("klmirqd", "pai"),
                "G-RM",
                &KERNEL.replace("\"200 us\"", "\"200 us\", interrupts = 3"),
            ),
        ),
        ("callback", by("\"linux\"", "callback = \"10 us\"")),
        ("callback under klmirqd", by("\"klmirqd\"", "callback = \"10 us\"")),
    ]
}

fn devices() -> Vec<(&'static str, String)> {
    let of = |handling: &str, rest: &str| {
        let device = format!(
            "[[platform.device]]\nname = \"network\"\nperiod = \"2 ms\"\ntop_half = \"4 us\"\nbottom_half = \"20 us\"\n{rest}\n"
        );
        let management = format!("[gpu_management]\nhandling = \"{handling}\"\n");
        file(&["scheduler = \"G-RM\"", &device, &management, &two(WORK)])
    };
    let server = |kind: &str| {
        of("klmirqd", &format!("server = {{ kind = \"{kind}\", budget = \"200 us\", period = \"5 ms\" }}"))
    };
    vec![
        ("interrupts of a device, linux", of("linux", "")),
        (
            "interrupts of a device, sporadic",
            of("linux", "arrival = \"sporadic\"\ngap = { uniform = [\"0 ms\", \"1 ms\"] }"),
        ),
        ("interrupts of a device, preempt_rt_high", of("preempt_rt_high", "")),
        ("interrupts of a device, klmirqd", of("klmirqd", "")),
        ("with a hard constant bandwidth server", server("cbs_hard")),
        ("with a soft constant bandwidth server", server("cbs_soft")),
        ("with a sporadic server", server("sporadic")),
    ]
}

fn memory() -> Vec<(&'static str, String)> {
    let best_effort = "[[best_effort]]\nname = \"indexer\"\nmemory_demand = \"100 MB/s\"\n";
    let contention = "[platform.memory]\ncontention = [[\"0 B/s\", 1.0], [\"900 MB/s\", 3.0]]\n";
    let lock = "[gpu_management]\narbitration = \"k_fmlp\"\nbandwidth_lock = { budget = \"64 MB/s\" }\n";
    let plain = "[gpu_management]\narbitration = \"k_fmlp\"\n";
    let sensitive = two("body = [{ cpu = \"50 us\" }, { kernel = \"200 us\", memory = 1.0 }]");
    let ending = format!("{best_effort}work = \"5 ms\"\nweight = 335\n");
    vec![
        ("best-effort task", file(&["scheduler = \"G-RM\"", &two(WORK), best_effort])),
        ("best-effort task that ends, with a weight", file(&["scheduler = \"G-RM\"", &two(WORK), &ending])),
        ("contention of memory", file(&["scheduler = \"G-RM\"", contention, GPU, plain, &sensitive, best_effort])),
        ("bandwidth lock", file(&["scheduler = \"G-RM\"", contention, GPU, lock, &sensitive, best_effort])),
        (
            "throttle fair scheduler",
            file(&[
                "scheduler = \"G-RM\"\nbest_effort_scheduler = { rule = \"TFS\", punishment = 3.0 }",
                contention,
                GPU,
                lock,
                &sensitive,
                best_effort,
            ]),
        ),
    ]
}

fn graphs() -> Vec<(&'static str, String)> {
    let graph = |fields: &str, rest: &str| {
        let node = |name: &str, fields: &str| format!("[[graph.node]]\nname = \"{name}\"\n{WORK}\n{fields}\n");
        let nodes = format!("{}{}{}", node("camera", "period = \"10 ms\""), node("track", ""), rest);
        file(&["scheduler = \"G-RM\"", &format!("[[graph]]\nname = \"g\"\n{fields}\n{nodes}")])
    };
    let rates = "edge = [{ from = \"camera\", to = \"track\", produce = 2, consume = 4, threshold = 6, initial = 2 }]";
    let cycle =
        "edge = [\"camera -> track\", { from = \"track\", to = \"track\", back_edge = true, initial = 1, delay = 1 }]";
    let edge = "edge = [\"camera -> track\"]";
    let object = format!("{edge}\nobject = [{{ name = \"frame\", nodes = [\"camera\", \"track\"] }}]");
    let latest = format!("{edge}\nlatest = [\"imu -> track\"]");
    let server = "server = { kind = \"cbs_hard\", budget = \"150 us\", period = \"2 ms\" }";
    let imu = "[[graph.node]]\nname = \"imu\"\nperiod = \"4 ms\"\nwcet = \"50 us\"\n";
    let chain = "[[chain]]\nname = \"see\"\npath = [\"g/camera\", \"g/track\"]\ndata_age_max = \"40 ms\"\nreaction_time_max = \"50 ms\"\n";
    vec![
        ("graph", graph(edge, "")),
        ("rates and thresholds", graph(rates, "")),
        ("back-edge", graph(cycle, "")),
        ("objects with two replicas", graph(&format!("{object}\nreplicas = 2"), "")),
        ("as many replicas as it takes", graph(&format!("{object}\nreplicas = \"auto\""), "")),
        ("messages", graph("edge = [{ from = \"camera\", to = \"track\", message = \"1 kB\" }]", "")),
        ("nodes as bandwidth servers", graph(edge, "").replace(WORK, &format!("{WORK}\n{server}"))),
        ("latest-value edge", graph(&latest, imu)),
        ("chain", graph(edge, chain)),
        ("chain over a latest-value edge", graph(&latest, &format!("{imu}{}", chain.replace("g/camera", "g/imu")))),
    ]
}
