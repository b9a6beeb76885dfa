//! The affinity predictor's advice, from the holds of live clients.

mod support;

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
        assert_eq!(given(&next), 0, "its number was another's, who left its state on GPU 1");
    }
}
