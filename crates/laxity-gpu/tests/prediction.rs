//! The affinity predictor's advice, from the holds of live clients.

mod support;

use std::thread;
use std::time::Duration;

use laxity_gpu::{Arbitration, Base, Client, Config};
use laxity_model::{GpuArbitration, GpuSync, Nanos};
use support::Place;

fn two_gpus(place: &Place, migration: Option<Nanos>) -> Arbitration {
    let sync = GpuSync { migration, ..GpuSync::DEFAULT };
    let config = Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(4, 2) };
    place.create("g", &config).expect("the name is free")
}

/// Which GPU a client is given that says no GPU.
fn given(client: &Client) -> u16 {
    client.token().expect("both are free").gpu()
}

#[test]
fn a_client_goes_back_to_the_gpu_where_it_left_its_state_unless_nothing_is_predicted() {
    for (migration, expected) in [(Some(Nanos::from_secs(1)), 1), (None, 0)] {
        let place = Place::new(if expected == 1 { "back" } else { "anywhere" });
        let arbitration = two_gpus(&place, migration);
        let client = arbitration.register("client", Base::Background).expect("there is room");
        drop(client.token_of(1).expect("it is free"));
        assert_eq!(given(&client), expected);
        drop(client);
        let next = arbitration.register("next", Base::Background).expect("there is room");
        assert_eq!(given(&next), 0, "its number was another's, which left its state on GPU 1");
    }
}

/// It held GPU 0 for long, its first, where nothing was moved, and GPU 1 shortly, with its state moved there: to move is
/// what takes no time, as far as was observed.
#[test]
fn holds_are_predicted_to_take_as_long_as_they_took() {
    let place = Place::new("took");
    let arbitration = two_gpus(&place, Some(Nanos::from_secs(1)));
    let client = arbitration.register("client", Base::Background).expect("there is room");
    let long = client.token_of(0).expect("it is free");
    thread::sleep(Duration::from_millis(200));
    drop(long);
    drop(client.token_of(1).expect("it is free"));
    assert_eq!(given(&client), 0, "GPU 1, where its state is, if all holds had taken the same time");
}
