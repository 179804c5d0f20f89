"""What specs can name, with sources."""

from cost_models.hardware.profiles_loader import profile_ids
from cost_models.learned.shipped import shipped_models
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem


def test_every_profile_is_listed_and_reported_in_full(live: Live) -> None:
    listed = live.get("/v1/hardware-profiles").json()["profiles"]
    assert [profile["id"] for profile in listed] == list(profile_ids())
    for profile in listed:
        document = live.get(f"/v1/hardware-profiles/{profile['id']}").json()
        assert document["ranks_per_host"] == profile["ranks_per_host"]
        for number in document["numbers"].values():
            assert number["evidence"] in ("measured", "datasheet", "estimated")
            assert number["source"]
            assert number["unit"]


def test_a_profile_names_its_devices_as_drivers_do(live: Live) -> None:
    assert live.get("/v1/hardware-profiles/dgx-h100-80g").json()["devices"] == ["NVIDIA H100 80GB HBM3"]
    assert live.get("/v1/hardware-profiles/torchrec-default").json()["devices"] == []


def test_curves_are_part_of_a_profile(live: Live) -> None:
    curve = live.get("/v1/hardware-profiles/dgx-h100-80g").json()["intra_host_curves"]["alltoall"]
    assert len(curve["message_bytes"]) == len(curve["bus_bytes_per_second"]) > 1


def test_unknown_profiles_are_problems(live: Live) -> None:
    assert_problem(live.get("/v1/hardware-profiles/dgx-1"), 404, "not-found")
    assert_problem(live.get("/v1/hardware-profiles/..%2F..%2Fetc%2Fpasswd"), 404, "not-found")


def test_cost_models_are_listed_with_versions(live: Live) -> None:
    models = {model["name"]: model for model in live.get("/v1/cost-models").json()["cost_models"]}
    assert set(models) == {"roofline", "serving", "torchrec", *shipped_models()}
    assert "input_comm" not in models["torchrec"]["counted_phases"]
    assert models["roofline"]["version"]
