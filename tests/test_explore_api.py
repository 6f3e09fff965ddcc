"""The explorer's server, asked over HTTP: what it answers is what the library computes, what is
wrong is refused."""

import asyncio
import base64
import io
import json
import multiprocessing
import re
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
import torch
from explorer_served import WAIT, served
from PIL import Image
from starlette.requests import Request
from untrained import untrained

import composcope.cli.explore as command
from composcope import draw, load
from composcope.diffusion.pixels import Pixels
from composcope.diffusion.sample import noise, noise_levels, walk
from composcope.errors import InputError
from composcope.evaluation import detect
from composcope.evaluation.detect import Found
from composcope.explore import assets
from composcope.explore.guard import Guard
from composcope.explore.models import open_model, training_sentence
from composcope.explore.pixel import at_pixel
from composcope.explore.requests import Look, Picture, Sample, check_picture, parse
from composcope.explore.server import limited
from composcope.explore.serving import listening_socket
from composcope.explore.settings import Settings
from composcope.explore.stage import Models
from composcope.explore.verdict import verdict
from composcope.explore.worker import Failed, Mail, Workshop, do_job
from composcope.locality import INTERVENTIONS, influence, intervene, pixel_gradient
from composcope.locality.profile import centred_square
from composcope.runs.config import Config
from composcope.runs.model import SHIPPED, Model
from composcope.scenes.condition import CONDITIONERS, PAPER_LOCATIONS, Vocabulary, add_outside
from composcope.tensors import save_tensors

PLACES = [list(place) for place in PAPER_LOCATIONS[:4]]
DOCS = Path(__file__).parents[1] / "docs" / "explorer.md"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Three shipped models, and a run whose weights are no weights."""
    folder = tmp_path_factory.mktemp("explore")
    broken = folder / "broken"
    broken.mkdir()
    (broken / "config.json").write_text(load("exp1").config.json())
    (broken / "model.safetensors").write_bytes(b"not weights")
    with served(folder, ["exp1", "exp2", "color", str(broken)]) as running:
        yield running
    assert "goes on from" not in running.said  # ended by a signal: nothing is left to go on with


@pytest.fixture
def client(server):
    with httpx.Client(base_url=server.address, timeout=WAIT) as one:
        yield one


def lines_of(client, **asked):
    with client.stream("POST", "/api/sample", json=asked) as response:
        assert response.status_code == 200, response.read()
        return [json.loads(line) for line in response.iter_lines()]


def picture(png):
    return np.array(Image.open(io.BytesIO(base64.b64decode(png))))


def same(a, b):
    """To the round-off of another batch: a byte may fall to its other side."""
    return np.abs(a.astype(int) - b.astype(int)).max() <= 1


# ---------------------------------------------------------------------------------------------
# What it answers.


def test_models_are_described_and_a_broken_one_is_left_out(client, server):
    said = client.get("/api/models").json()
    models = {model["name"]: model for model in said["models"]}
    assert set(models) == {"exp1", "exp2", "color"}
    exp1, config = models["exp1"], load("exp1").config
    assert (exp1["asks"], exp1["most"]) == ("places", 12)
    assert exp1["grid"] == config.architecture.grid_size
    assert exp1["size"] == [config.architecture.resolution] * 2
    assert (exp1["run"], exp1["trained"], exp1["paper"]) == ("exp1", 3, 7)
    assert "red" in models["color"]["names"] and models["color"]["asks"] == "names"
    assert len(said["left_out"]) == 1 and "broken is left out" in said["left_out"][0]
    assert "broken is left out" in server.said


def test_a_stream_ends_with_the_picture_that_draw_makes(client):
    lines = lines_of(client, model="exp1", conditions=PLACES, seed=3, steps=5)
    steps, verdict = lines[:-1], lines[-1]
    assert [line["step"] for line in steps] == [0, 1, 2, 3, 4, 5]
    np.testing.assert_allclose([line["sigma"] for line in steps], noise_levels(5), rtol=1e-6)
    wanted = draw(load("exp1"), [PLACES], seeds=[3], steps=5)
    last = picture(steps[-1]["png"])
    assert same(last, wanted[0])
    found = detect(last[None])[0]
    assert [(one["x"], one["y"]) for one in verdict["found"]] == [
        (round(one.x, 4), round(one.y, 4)) for one in found
    ]
    met, extra = verdict["there"], verdict["extra"]
    assert met + extra == len(found) and verdict["asked"] == 4
    assert verdict["verdict"] == f"asked 4, {met} there, {extra} extra"
    assert sum(one["extra"] for one in verdict["found"]) == extra


def test_columns_of_one_model_share_batches_and_draw_what_they_draw_alone(client):
    helps = [("none", None), ("local", 0.2), ("composed", None), ("guided", 0.15)]
    pictures = [
        {"model": "exp2", "conditions": PLACES, "seed": 1, "intervention": name}
        | ({"radius": radius} if radius else {})
        for name, radius in helps
    ]
    colors = {"model": "color", "conditions": ["red", "blue"], "seed": 1}
    lines = lines_of(client, **pictures[0], steps=4, beside=[*pictures[1:], colors])
    last = {line["image"]: picture(line["png"]) for line in lines if line.get("step") == 4}
    for index, (name, radius) in enumerate(helps):
        model = load("exp2") if name == "none" else intervene(load("exp2"), name, radius)
        assert same(last[index], draw(model, [PLACES], seeds=[1], steps=4)[0]), name
    assert same(last[4], draw(load("color"), [["red", "blue"]], seeds=[1], steps=4)[0])
    assert {line["image"] for line in lines if "verdict" in line} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("intervention", ["none", "local", "guided"])
def test_a_look_is_equations_9_and_10(client, intervention):
    asked = {"model": "exp2", "conditions": PLACES, "seed": 2, "steps": 5, "pixel": [9, 20]}
    seen = client.post(
        "/api/look", json={**asked, "intervention": intervention, "sigma": 2.0}
    ).json()
    model = load("exp2")
    denoiser = model if intervention == "none" else intervene(model, intervention)
    cond = model.conditioner([PLACES], 2)
    steps = list(walk(denoiser, noise([2], model.shape), cond, noise_levels(5)))
    index = min(range(5), key=lambda i: abs(float(steps[i].sigma.log()) - np.log(2.0)))
    assert seen["step"] == index
    x, sigma = steps[index].x, float(steps[index].sigma)
    G = pixel_gradient(denoiser, x, sigma, cond, [(9, 20)])[0].numpy()
    np.testing.assert_allclose(seen["gradient"], G, atol=1e-3 * G.max())
    assert seen["square"] == centred_square(G[None].astype(float), (9, 20))[0]
    influences = influence(denoiser, x, sigma, model.conditioner, PLACES, 2).numpy()
    for one, wanted in zip(seen["influences"], influences, strict=True):
        np.testing.assert_allclose(one["map"], wanted, atol=1e-3 * influences.max())
        np.testing.assert_allclose(one["here"], wanted[9, 20], atol=1e-3 * influences.max())
    assert [one["condition"] for one in seen["influences"]] == PLACES
    assert 0 <= seen["locality"] <= 1 and 0 < seen["chance"] < 0.2
    without = draw_without(denoiser, x, sigma, model.conditioner([PLACES[1:]], 2))
    assert same(picture(seen["influences"][0]["without"]), without)


@pytest.mark.parametrize("intervention", ["none", "local", "guided", "composed"])
@pytest.mark.parametrize("name", ["exp2", "exp2l"])
def test_a_pixel_takes_only_what_it_needs_for_the_same_gradient(tmp_path, name, intervention):
    """Near a place, and in a corner without one: one pass, of patches one patch."""
    model = load(untrained(tmp_path / name, name, gain=0.3))
    x, cond = noise([1], model.shape), model.conditioner([PLACES], 1)
    picture = Picture(name, intervention=intervention)
    helped = model if intervention == "none" else intervene(model, intervention)
    net = model.denoiser.net
    rows = []
    getattr(net, "unet", net).register_forward_pre_hook(lambda _, given: rows.append(len(given[0])))
    side = model.resolution
    for pixel in ((int(0.65 * side), int(0.65 * side)), (0, side - 1)):
        wanted = pixel_gradient(helped, x, 1.0, cond, [pixel])
        rows.clear()
        denoiser = at_pixel(model, picture, pixel)
        found = pixel_gradient(denoiser, x, 1.0, cond, [pixel])
        few = {"composed": 10, "guided": 4}.get(intervention, 2)  # two to measure with
        assert max(rows) <= few
        assert wanted.max() > 0
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)
        value, same_value = (d(x, torch.ones(1), cond)[(0, 0, *pixel)] for d in (helped, denoiser))
        torch.testing.assert_close(same_value, value)


def draw_without(denoiser, x, sigma, cond):
    with torch.no_grad():
        return denoiser.decode(denoiser(x, torch.tensor([sigma]), cond))[0]


def test_nothing_asked_is_drawn_and_looked_at(client):
    verdict = lines_of(client, model="exp1", steps=3)[-1]
    assert verdict["asked"] == 0 and verdict["extra"] == len(verdict["found"])
    seen = client.post("/api/look", json={"model": "exp1", "steps": 3, "pixel": [1, 1]}).json()
    assert seen["influences"] == [] and seen["locality"] is None


def test_rows_are_those_of_the_run(client):
    rows = client.get("/api/rows", params={"run": "exp1"}).json()
    assert rows and {row["run"] for row in rows} == {"exp1"}
    assert any(row["what"] == "length/found" and row["K"] == 9 for row in rows)


def test_the_example_of_the_documentation_works(server):
    """The curl line of docs/explorer.md, run against this server."""
    example = re.search(r"```\n(curl .*?)```", DOCS.read_text(), re.DOTALL)
    line = example.group(1).replace("\\\n", " ").replace("http://127.0.0.1:8765", server.address)
    made = subprocess.run(shlex.split(line), capture_output=True, text=True, check=True)
    lines = [json.loads(text) for text in made.stdout.splitlines()]
    assert "verdict" in lines[-1] and all("png" in line for line in lines[:-1])


# ---------------------------------------------------------------------------------------------
# What is wrong is refused.

VALID = {
    "/api/sample": {"model": "exp1", "conditions": PLACES, "seed": 1, "steps": 2, "beside": []},
    "/api/look": {
        "model": "exp1",
        "conditions": PLACES,
        "seed": 1,
        "steps": 2,
        "sigma": 1.0,
        "pixel": [1, 2],
    },
}
NOT_A_NUMBER = ["1", "", None, True, [], {}, [1], "../../etc/passwd", "__import__('os')"]
NOT_A_STRING = [1, 1.5, None, True, [], {}]
WRONG = {
    "model": [*NOT_A_STRING, "x" * 256],
    "conditions": [
        *[1, None, True, {}, "red", [1], [None], [{}], [[]], [[0.5]], [[0.5, 0.5, 0.5]]],
        *[[[0.5, 1.01]], [[-0.01, 0.5]], [["a", "b"]], [[None, 0.1]], [[1e300, 0]], ["red"]],
        *[["x" * 256], PLACES * 4, [[0.5, 0.5], "blue"]],
    ],
    "sentence": [*NOT_A_STRING[:4], "a red cube", "x" * 201],
    "intervention": [*NOT_A_STRING, "", "magic", "None", "x" * 256],
    "radius": [*NOT_A_NUMBER[:2], *NOT_A_NUMBER[3:], 0, -1, 1.01, 1e300, 0.2],
    "seed": [*NOT_A_NUMBER, -1, 2**31, 2**63, 2**200, 0.5, 1e400],
    "steps": [*NOT_A_NUMBER, 0, 1, -1, 65, 10**9, 2.5],
    "surprise": [1, None],
}
WRONG_OF = {
    "/api/sample": {
        "beside": [
            *[1, None, True, "a", {}, [1], [None], [[]], [{}], [{"model": "exp1"}] * 8],
            *[[{"model": "exp1", key: bad}] for key in ("seed", "radius") for bad in ("1", -1, [])],
            *[[{"model": "exp1", "surprise": 1}], [{"model": "exp1", "conditions": [[2, 2]]}]],
            *[[{"model": "color", "conditions": PLACES}], [{"model": "exp2", "steps": 3}]],
        ],
        "sigma": [1.0],
        "pixel": [[1, 1]],
    },
    "/api/look": {
        "sigma": [*NOT_A_NUMBER, -1, 1e9, 1e400],
        "pixel": [*NOT_A_NUMBER, [1], [1, 2, 3], [-1, 0], [0, 10**9], [0.5, 1], ["0", 1]],
        "beside": [[]],
    },
}


def wrong_fields():
    """Each field of each request, with each of its wrong values."""
    for path, valid in VALID.items():
        for field, values in (WRONG | WRONG_OF[path]).items():
            for value in values:
                yield path, json.dumps({**valid, field: value}).encode(), field
        yield path, json.dumps({k: v for k, v in valid.items() if k != "model"}).encode(), "model"


def wrong_bodies():
    """What is no JSON, or no object; every prefix of a valid body of each kind."""
    for path, valid in VALID.items():
        whole = json.dumps(valid).encode()
        yield from ((path, whole[:end], "body") for end in range(0, len(whole), 4))
        bodies = [b"null", b"[]", b"1", b'"a"', b"\xff\xfe", b"\x00", b"{]", b"[" * 5000]
        bodies += [
            b'{"a":' * 5000,
            whole + b"x",
            b'{"model": NaN}',
            whole.replace(b": 1,", b": NaN,"),
        ]
        yield from ((path, body, "body") for body in bodies)


def test_three_hundred_malformed_requests_are_refused_in_a_sentence(client, server):
    malformed = [*wrong_fields(), *wrong_bodies()]
    assert len(malformed) >= 300
    for path, body, field in malformed:
        head = {"Content-Type": "application/json"}
        answer = client.post(path, content=body, headers=head)
        said = answer.json()["error"]
        assert answer.status_code == 422, (path, body[:200], said)
        assert field in said or "body" in said, (path, body[:200], said)
        assert "\n" not in said
    assert "Traceback" not in server.said
    assert lines_of(client, model="exp1", conditions=PLACES, steps=2)[-1]["asked"] == 4


@pytest.mark.parametrize(
    "method, path, status",
    [
        ("GET", "/api/rows", 422),
        ("GET", "/api/rows?run=exp1&run=exp2", 422),
        ("GET", "/api/rows?run=", 404),
        ("GET", "/api/rows?run=nobody", 404),
        ("GET", "/api/rows?run=../exp1", 404),
        ("GET", "/api/rows?run=/etc/passwd", 404),
        ("GET", "/static/../server.py", 404),
        ("GET", "/static/%2e%2e/server.py", 404),
        ("GET", "/static/%2e%2e%2f%2e%2e%2ferrors.py", 404),
        ("GET", "/nowhere", 404),
        ("GET", "/api/sample", 405),
        ("DELETE", "/api/models", 405),
        ("GET", "/report", 404),
    ],
)
def test_other_addresses_are_refused(client, method, path, status):
    assert client.request(method, path).status_code == status


def test_an_unknown_model_is_404_and_a_strange_body_refused(client):
    for asked in ({"model": "exp9"}, {"model": "exp1", "beside": [{"model": "../exp1"}]}):
        answer = client.post("/api/sample", json=asked)
        assert answer.status_code == 404 and "model:" in answer.json()["error"]
    assert client.post("/api/sample", content=b"{}").status_code == 415
    form = {"Content-Type": "text/plain"}
    assert client.post("/api/sample", content=b"{}", headers=form).status_code == 415
    shouted = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert client.post("/api/sample", content=b"{}", headers=shouted).status_code == 422
    json_head = {"Content-Type": "application/json"}
    long = client.post("/api/sample", content=b" " * 2**17, headers=json_head)
    assert long.status_code == 413


# ---------------------------------------------------------------------------------------------
# Who may ask.


def test_foreign_names_and_sites_are_refused(client):
    port = client.base_url.port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1:1", "127.0.0.1@evil.example"):
        assert client.get("/", headers={"Host": host}).status_code == 403, host
    others = ("http://evil.example", f"http://127.0.0.1:{port + 1}")
    for origin in (*others, "null", "http://[", f"127.0.0.1:{port}"):
        answer = client.post("/api/sample", json={"model": "exp1"}, headers={"Origin": origin})
        assert answer.status_code == 403, origin
    own = client.get("/api/models", headers={"Origin": f"http://127.0.0.1:{port}"})
    assert own.status_code == 200


def test_every_answer_has_the_policy_and_the_page_has_nothing_inline(client):
    page = client.get("/")
    for answer in (page, client.get("/static/main.js"), client.get("/nowhere")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|\sstyle=|<style|https?://", page.text)


def guarded(settings):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"in"})

    transport = httpx.ASGITransport(Guard(app, settings))
    return httpx.AsyncClient(transport=transport, base_url=f"http://192.0.2.7:{settings.port}")


def test_away_from_loopback_the_token_is_needed():
    async def asked():
        async with guarded(Settings(host="0.0.0.0", port=8765, token="secret")) as one:
            assert (await one.get("/")).status_code == 401
            assert (await one.get("/?token=wrong")).status_code == 401
            bearer = {"Authorization": "Bearer secret"}
            assert (await one.get("/", headers=bearer)).text == "in"
            named = await one.get("/", headers={**bearer, "Host": "evil.example:8765"})
            assert named.status_code == 403
            first = await one.get("//evil.example/?token=secret")
            assert first.status_code == 303 and first.headers["location"] == "/"
            assert "HttpOnly" in first.headers["set-cookie"]
            assert (await one.get("/")).text == "in"  # by the cookie

    asyncio.run(asked())


def test_a_name_that_is_bound_is_known_in_small_letters():
    """As browsers say it."""

    async def asked():
        async with guarded(Settings(host="LabServer", port=8765)) as one:
            assert (await one.get("/", headers={"Host": "labserver:8765"})).text == "in"
            assert (await one.get("/", headers={"Host": "other:8765"})).status_code == 403

    asyncio.run(asked())


def test_the_command_refuses_what_it_cannot_serve():
    with pytest.raises(InputError, match="--token"):
        command.main(command.Args(host="0.0.0.0", port=0))
    with pytest.raises(InputError, match="letters and digits"):
        command.main(command.Args(token="a b&c", port=0))
    with pytest.raises(InputError, match="choose another --port"):
        command.main(command.Args(port=2**20))
    with pytest.raises(InputError, match=r"cannot listen on a\.\.b, .*; choose another --host"):
        listening_socket("a..b", 0)
    with pytest.raises(InputError, match=r"there is no file nowhere\.py"):
        command.main(command.Args(conditioner="nowhere.py:Sizes", port=0))
    with (
        listening_socket("127.0.0.1", 0) as taken,
        pytest.raises(InputError, match=r"\(Address already in use\); choose another --port"),
    ):
        command.main(command.Args(port=taken.getsockname()[1]))


# ---------------------------------------------------------------------------------------------
# Many clients, and those that go away.


def test_eight_clients_at_once_are_all_answered(server):
    """Half of them go away after the first line; the others get what they would get alone."""

    def ask(seed):
        asked = {"model": "exp1", "conditions": PLACES, "seed": seed, "steps": 4}
        address = f"{server.address}/api/sample"
        with httpx.stream("POST", address, json=asked, timeout=WAIT) as response:
            lines = response.iter_lines()
            if seed % 2:
                return json.loads(next(lines))["step"]
            return [json.loads(line) for line in lines]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert answers[1::2] == [0, 0, 0, 0]
    wanted = draw(load("exp1"), [PLACES] * 4, seeds=[0, 2, 4, 6], steps=4)
    for lines, image in zip(answers[::2], wanted, strict=True):
        assert same(picture(lines[-2]["png"]), image)
    assert "Traceback" not in server.said


def test_a_client_that_goes_away_cancels_its_own(client):
    """Eight pictures of 64 steps with twelve places each take minutes; nobody waits for them."""
    twelve = [list(place) for place in PAPER_LOCATIONS]
    slow = {"model": "exp2", "conditions": twelve, "intervention": "local", "steps": 64}
    for _ in range(4):
        beside = [{key: slow[key] for key in slow if key != "steps"}] * 7
        with client.stream("POST", "/api/sample", json={**slow, "beside": beside}) as response:
            assert json.loads(next(response.iter_lines()))["step"] == 0
    assert lines_of(client, model="exp1", steps=2)[-1]["asked"] == 0


def test_a_server_that_is_ended_amid_a_stream_says_so(tmp_path):
    asked = {"model": "exp2", "conditions": PLACES, "intervention": "local", "steps": 64}
    with ExitStack() as later:
        with served(tmp_path, ["exp2"]) as running:
            address = f"{running.address}/api/sample"
            answer = httpx.stream("POST", address, json=asked, timeout=WAIT)
            lines = later.enter_context(answer).iter_lines()
            next(lines)
        *_, last = lines
    assert json.loads(last) == {"error": "the server has ended"}
    assert "Traceback" not in running.said and "ERROR" not in running.said


def test_a_client_that_goes_away_amid_its_request_is_no_fault():
    messages = [
        {"type": "http.request", "body": b'{"model":', "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive():
        return messages.pop(0)

    request = Request({"type": "http", "headers": []}, receive)
    assert asyncio.run(limited(request)) == b""


class Lines:
    """A stage whose pictures are numbers, and that is interrupted at one of them."""

    def __init__(self, at, interrupt):
        self.made = []
        self.at = at
        self.interrupt = interrupt

    def sample(self, request):
        for number in range(10):
            if number == self.at:
                self.interrupt()
            self.made.append(number)
            yield {"number": number}

    look = sample


def test_a_cancelled_job_ends_at_its_next_step_and_waiting_ones_never_begin():
    ours, theirs = multiprocessing.Pipe()
    mail = Mail(theirs)
    for number in (1, 2, 3):
        ours.send(("job", number, Sample("exp1", seed=number)))
    ours.send(("cancel", 2))
    stage = Lines(4, lambda: ours.send(("cancel", 1)))
    do_job(mail, mail.next(), stage)
    assert stage.made == [0, 1, 2, 3, 4]
    assert [ours.recv()[:2] for _ in range(4)] == [(1, "line")] * 4 and not ours.poll()
    assert mail.next().seed == 3
    ours.send(("cancel", 1))  # too late: it is over
    stage = Lines(None, None)
    do_job(mail, Look("exp1"), stage)
    assert len(stage.made) == 10


def test_a_fault_of_ours_is_a_sentence(caplog):
    def fault():
        raise RuntimeError("out of luck")

    ours, theirs = multiprocessing.Pipe()
    mail = Mail(theirs)
    ours.send(("job", 1, Sample("exp1")))
    do_job(mail, mail.next(), Lines(1, fault))
    assert [ours.recv()[1:] for _ in range(2)][1] == (
        "failed",
        "the computation failed: out of luck",
    )


def test_a_worker_that_dies_is_replaced():
    async def asked():
        workshop = Workshop(["exp1"])
        try:
            await workshop.open()
            job = workshop.submit(Sample("exp1", steps=64))
            lines = workshop.lines(job)
            await anext(lines)
            workshop.process.kill()
            with pytest.raises(Failed, match="ask again"):
                async for _ in lines:
                    pass
            answers = [
                line async for line in workshop.lines(workshop.submit(Sample("exp1", steps=2)))
            ]
            assert b"verdict" in answers[-1]
        finally:
            workshop.process.terminate = lambda: None  # it ends by itself, amid a job as well
            await anext(workshop.lines(workshop.submit(Sample("exp1", steps=64))))
            workshop.close()
            workshop.process.join(WAIT)
        assert workshop.process.exitcode == 0

    asyncio.run(asyncio.wait_for(asked(), WAIT))


# ---------------------------------------------------------------------------------------------
# Parts.


def test_a_request_says_which_field_is_wrong():
    with pytest.raises(InputError, match=r"^beside\[1\]\.seed: expected"):
        parse(b'{"model":"a","beside":[{"model":"b"},{"model":"b","seed":-1}]}', Sample)
    assert parse(b'{"model":"a","conditions":[[0,1],"red"]}', Picture).conditions == ((0, 1), "red")
    long = "exp1-laptop-of-the-second-week-from-another-seed-and-longer"  # as folders are named
    assert parse(json.dumps({"model": long}).encode(), Picture).model == long


@pytest.mark.parametrize(
    "name, grid, paper, words",
    [
        ("exp2", 16, 2, "Trained on 1 to 3 objects, only one of them labelled."),
        ("exp2l", 16, 9, "; the network sees patches."),
        ("exp3", None, 3, "every one of them labelled in a list of slots."),
        ("exp2-student", 16, None, "from exp2 with guided local conditions; it saw no images."),
        ("text_control", None, None, "trained on captions that say what stands where."),
    ],
)
def test_a_model_is_described_as_what_it_is(name, grid, paper, words):
    """No grid where conditions have none, and no value of the paper for what it does not have."""
    said = open_model(name).described
    assert (said.run, said.grid, said.paper) == (name, grid, paper)
    assert said.training.endswith(words)


@pytest.mark.parametrize("name", INTERVENTIONS)
def test_students_of_every_intervention_are_described(name):
    config = Config.load(SHIPPED / "exp2-student" / "config.json")
    assert config.teacher is not None
    said = training_sentence(replace(config, teacher=replace(config.teacher, intervention=name)))
    assert re.fullmatch(r"Distilled from exp2 with [a-z ]+; it saw no images\.", said)


def test_a_run_of_ones_own_is_loaded_by_its_folder(tmp_path):
    shutil.copytree(SHIPPED / "exp1", tmp_path / "mine")
    said = open_model(str(tmp_path / "mine")).described
    assert said.name == "mine" and load(said.run).fingerprint == said.weights


def test_a_run_with_a_conditioner_from_outside_is_asked_for_its_names(tmp_path, monkeypatch):
    """It is imported because it is named; beside it, other runs have their own."""
    monkeypatch.chdir(tmp_path)
    source = re.findall(r"```python\n(.*?)```", (DOCS.parent / "conditioners.md").read_text(), re.S)
    (tmp_path / "sizes_of_mine.py").write_text(source[0])
    named = "sizes_of_mine:SizeCounts"
    config = replace(load("color").config, conditioner=named)
    add_outside(named)
    model = Model(config, Pixels(torch.zeros(3, 1, 1), 1.0))
    config.save(tmp_path / "sizes" / "config.json")
    save_tensors(tmp_path / "sizes" / "model.safetensors", model.state_dict())
    monkeypatch.delitem(CONDITIONERS, named)
    (refusal,) = Models.load(["sizes"]).left_out
    assert "--conditioner" in refusal
    models = Models.load(["sizes", "exp1"], named).models
    said = models["sizes"].described
    assert (said.asks, said.names, said.conditioner) == ("names", ("large", "small"), named)
    assert models["exp1"].described.conditioner is None


def test_a_model_of_words_is_not_asked_for_conditions():
    models = {"text_control": open_model("text_control").described}
    with pytest.raises(InputError, match=r"^conditions: text_control is asked in a sentence"):
        check_picture(Picture("text_control", conditions=("red",)), models)


def test_words_of_a_vocabulary_are_drawn_and_not_counted():
    """The detector knows the objects of scenes alone; it may find some in any picture."""
    found = [Found(0.5, 0.5, "red", "cube", "large", 0.9)]
    said = verdict(Vocabulary(("cat", "dog")), ("cat",), found)
    assert said == {"found": [], "verdict": "a word cannot be counted"}
    nothing = verdict(None, (), found)
    assert nothing["verdict"] == "1 object found" and "there" not in nothing


def test_a_sentence_that_is_too_long_is_refused_by_its_name():
    model = open_model("text_control")
    with pytest.raises(InputError, match=r"^sentence: more than 12 words"):
        model.asked(Picture("text_control", sentence="red " * 13))
    conditioner, words = model.asked(Picture("text_control", sentence="cylindrically " * 12))
    with pytest.raises(InputError, match=r"^sentence: the prompt .* more than the encoders read"):
        conditioner([words])


def test_what_the_page_shows_of_scenes_is_what_the_renderer_makes():
    for view in assets.VIEWS:
        stored = np.asarray(Image.open(assets.STATIC / f"ground-{view}.png"))
        assert np.array_equal(stored, np.asarray(assets.ground_picture(view)))
    assert json.loads((assets.STATIC / "places.json").read_text()) == assets.place_sets()
