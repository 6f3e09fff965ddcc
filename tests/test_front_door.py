"""`composcope` itself: eleven names, imported when used; one sentence for each mistake of a
newcomer."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

import composcope
from composcope.adapters import Classes, from_x0
from composcope.diffusion.checkpoint import save_tensors
from composcope.diffusion.pixels import Pixels
from composcope.diffusion.sample import noise_levels, sample
from composcope.errors import InputError
from composcope.results import add_rows, only, row
from composcope.runs.config import configure
from composcope.runs.model import Model

NAMES = ["load", "models", "draw", "evaluate", "audit", "LocalConditions", "rows"]
NAMES += ["Rules", "sample", "render", "detect"]


def model_of(experiment):
    return Model(configure(experiment, "smoke"), Pixels(torch.zeros(3, 1, 1), 1.0)).eval()


def test_the_names_are_these_and_no_more():
    assert sorted(composcope.__all__) == sorted(NAMES)
    assert sorted(dir(composcope)) == sorted([*NAMES, "__version__"])
    assert all(callable(getattr(composcope, name)) for name in NAMES)
    with pytest.raises(AttributeError, match="has no attribute 'evil'"):
        composcope.evil  # noqa: B018


def test_nothing_heavy_is_imported_before_it_is_used():
    code = "import sys, composcope; dir(composcope); print({'torch', 'numpy', 'numba'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_draw_is_the_sampler_decoded_image_by_image():
    model, places = model_of("exp1"), [(0.65, 0.65), (0.35, 0.35)]
    images = composcope.draw(model, [places, []], seeds=[3, 4], steps=4)
    cond = torch.cat([model.conditioner([places], 3), model.conditioner([[]], 4)])
    expected = model.decode(sample(model, [3, 4], model.shape, cond, noise_levels(4)))
    np.testing.assert_array_equal(images, expected)
    assert images.dtype == np.uint8 and images.shape == (2, 16, 16, 3)
    assert torch.get_num_threads() == 1  # what it was before


@pytest.mark.parametrize("precision", [torch.float64, torch.float16])
def test_a_model_takes_images_of_any_precision(precision):
    model, places = model_of("exp1"), [(0.65, 0.65), (0.35, 0.35)]
    x, cond = torch.randn(2, *model.shape).to(precision), model.conditioner([places] * 2)
    with torch.no_grad():
        x0 = model(x, torch.ones(2, dtype=precision), cond.to(precision))
        expected = model(x.float(), torch.ones(2), cond)
    assert x0.dtype == precision
    torch.testing.assert_close(x0, expected.to(precision))
    found = [composcope.audit(model, one, [places] * 2, sigmas=[1.0]) for one in (x, x.float())]
    energy, twin = (only(one.rows(), what="locality/energy").value for one in found)
    assert energy == pytest.approx(twin, rel=0.01)


def test_cond_of_any_precision_is_drawn_with():
    class Precise(Classes):
        def __call__(self, condition_sets, seed=0):
            return super().__call__(condition_sets, seed).double()

    def shown(x, sigma, cond):
        return 0 * x + (cond @ torch.linspace(-1, 1, 4))[:, None, None, None]

    def images(conditioner):
        model = from_x0(shown, conditioner=conditioner, shape=(3, 2, 2))
        return composcope.draw(model, [(1,), (2,)], steps=2)

    np.testing.assert_array_equal(images(Precise(3, null=3)), images(Classes(3, null=3)))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([(0.65, 0.65), (0.35, 0.35)],), "a list of condition sets"),
        (("red blue",), "a list of condition sets"),
        (([[(0.5, 0.5)]] * 2, [0]), "2 condition sets and 1 seeds"),
        (([],), "no condition sets"),
        (([[(0.5, 0.5)]], [0], 1), "at least 2"),
        (([[(0.5, 0.5)]], [0], 4, "rk4"), "there is no solver 'rk4'"),
        (([["red"]],), "the location red is not a"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        composcope.draw(model_of("exp1"), *arguments)


def test_conditions_without_a_conditioner_are_refused_not_ignored():
    model = model_of("images")
    with pytest.raises(InputError, match="no conditioner"):
        composcope.draw(model, [[(0.5, 0.5)]])
    assert composcope.draw(model, [()] * 2, steps=2).shape == (2, 16, 16, 3)


MISTAKES = {
    "composcope.detect([np.zeros((4, 4, 3)), np.zeros((8, 8, 3))])": "detect takes images of one size",
    "composcope.Rules(objects=3)": "objects are a range, fewest and most, such as (1, 3), not 3",
    "composcope.render(composcope.sample(0, 0, composcope.Rules()))": "render takes a list of scenes",
    "load('exp1', 'early')": "exp1 as it ships has no early snapshot",
    "load('https://example.org/exp1')": "https://example.org/exp1 is an address",
    "model(torch.zeros(2, *model.shape), 0.5, None)": "sigma is a tensor of 2 noise levels",
    "model(torch.zeros(2, *model.shape), torch.ones(1), None)": "sigma is a tensor of 2 noise levels",
    "model(x, torch.ones(2), model.conditioner([[]]))": "cond has 1 rows for 2 images",
    "sample(model, range(4), model.shape, model.conditioner([[]]))": "1 rows of cond for 4 seeds",
    "composcope.audit('exp1', x)": "audit: str is not called as denoiser(x, sigma, cond); load it first",
    "composcope.audit(two, x)": "two is not called as denoiser(x, sigma, cond); make it one",
    "composcope.audit(mine, x, sigmas=1.0)": "sigmas are a list of noise levels",
    "composcope.audit(mine, x, sigmas=[1.0], pixels=(3, 3))": "pixels are a list of (row, column)",
    "composcope.audit(mine, x, [(1,)] * 2, Classes, [1.0])": "the conditioner Classes is a class",
    "composcope.draw(mine, [()])": "draw: mine is no model that can be drawn with",
    "composcope.draw(LocalConditions(mine, Classes(3, 3)), [(1,)])": "LocalConditions is no model",
    "composcope.draw(classes, [3])": "such as [(condition, ...)] * 4; [3] is not one",
    "composcope.draw(classes, 4)": "such as [(condition, ...)] * 4; 4 is not one",
    "composcope.draw(from_x0(mine, shape=(3, 8, 8)), 4)": "a list of condition sets",
    "composcope.draw(classes, [(3,)], seeds=3)": "seeds are a list",
    "composcope.draw(classes, [(3,)], seeds=[0.5])": "seeds are a list of whole numbers",
    "composcope.evaluate(mine)": "evaluate: mine is no model",
    "composcope.evaluate(model, K=3)": "such as [3], not 3",
    "LocalConditions(model, Strongest())": "name it: neighbourhoods=Strongest()",
    "LocalConditions('exp2')": "load it first: load('exp2')",
    "influence(classes, x, 1.0, classes.conditioner, 3)": "put 3 in brackets: (3,)",
    "influence(mine, x, 1.0, None, (3,))": "the conditioner NoneType has no left_out",
    "classes.conditioner([3])": "a condition set is a list of one class: (3,)",
    "from_x0(mine, shape=8)": "shape is (channels, height, width), not 8",
    "from_x0(mine, shape='3x16')": "shape is (channels, height, width), not '3x16'",
    "from_x0(mine, shape=(3, 16.0, 16.0))": "shape is (channels, height, width), not (3, 16.0",
    "from_flow(two, last='1000')": "last is the time of pure noise, a number above 0, not '1000'",
    "classes(x, torch.ones(2), classes.conditioner([(1,)]))": "cond is 1 rows for 2 images",
    "classes(x, torch.ones(2), [(1,), (2,)])": "cond is list for 2 images; it is a tensor",
    "from_x0(two)(x, torch.ones(2), torch.ones(2, 3))": "model(x_t, t): cond cannot be told to it",
    "classes(x.numpy(), torch.ones(2))": "x is ndarray, not a tensor [batch, channel, height, width]",
    "classes(x[0], torch.ones(3))": "x is [3, 16, 16], not a tensor [batch, channel, height, width]",
    "classes(x, [1.0, 1.0])": "sigma is a list; give one noise level an image, as a tensor: torch.as_tensor",
    "Classes(['cat', 'dog'])": "count is a whole number from 1 on, not ['cat', 'dog']",
    "Classes(3, null=3.0)": "null is a whole number from 0 on, not 3.0",
    "Classes(2, names=['cat', 'dog'])": "names say which class each is, such as {'cat': 0",
    "Phrases(None)": "encode is a function from prompts to cond, not NoneType",
    "load(3)": "a run is a folder or the name of a model that ships, not 3",
    "load('exp1', conditioner='my:Own')": "there is no conditioner 'my:Own'",
    "model(x[:, :1], torch.ones(2), None)": "x is [2, 1, 16, 16], not a tensor [batch, 3, height",
    "model(x, torch.ones(2), [[(0.5, 0.5)]] * 2)": "cond is a tensor, such as model.conditioner(",
    "composcope.draw(model, [[('0.5', '0.5')]])": "the location ('0.5', '0.5') is not a (u, v)",
    "composcope.draw(classes, [(3,)], batch=0)": "draw: batch is how many images are drawn",
    "composcope.draw(classes, [(3,)], seeds=[2**70])": "a seed is a whole number of at most 64 bits",
    "composcope.draw(classes, [(3,)], device='foo')": "there is no device 'foo' to compute on",
    "composcope.draw(asked_by(OneArgument()), [(3,)])": "not called as conditioner(condition_sets, seed)",
    "composcope.draw(asked_by(Arrays(9)), [(3,)])": "Arrays returns ndarray for 1 sets",
    "composcope.audit(mine, x, [(1,)] * 2, OneArgument(), [1.0])": "OneArgument is not called as",
    "composcope.audit(mine, x[:, :0])": "2 images of torch.float32; give some",
    "composcope.audit(mine, x, sigmas='1,2')": "sigmas are a list of noise levels above 0",
    "composcope.audit(mine, x, sigmas=[torch.inf])": "sigmas are a list of noise levels above 0",
    "composcope.audit(mine, x, sigmas=[1.0], pixels=[(0.5, 0.5)])": "pixels are a list of (row, column)",
    "composcope.audit(mine, x, sigmas=[1.0], seed='a')": "seed is a whole number, not 'a'",
    "composcope.audit(mine, x, sigmas=[1.0], radius=-1)": "radius is a part of the image's side",
    "composcope.audit(classes, x, 3)": "condition sets are a list, one set for each image, not int",
    "composcope.Rules(objects=('1', '3'))": "objects are a range, fewest and most, such as (1, 3)",
    "composcope.Rules(shapes='cube')": "shapes are a list, such as ('cube',), not 'cube'",
    "composcope.Rules(margin='a')": "margin is a number from 0 on, not a",
    "composcope.sample(0, 0, 3)": "rules are such as Rules(objects=(1, 3)), not 3",
    "composcope.sample('a', 0, composcope.Rules())": "a seed and an index are whole numbers, not 'a'",
    "composcope.sample(0, 0, composcope.Rules(), 'ab')": "places are a list of (u, v), not 'ab'",
    "composcope.render([1])": "render takes a list of scenes, not [1]",
    "composcope.render([composcope.sample(0, 0, composcope.Rules())], (32,))": "or (width, height)",
    "composcope.evaluate(model, K=['a'])": "K is a list of numbers of conditions, such as [1, 2]",
    "composcope.evaluate(model, num='a')": "num, steps, seed and batch are whole numbers",
    "LocalConditions(model, neighbourhoods=Strongest)": "Nearest() or Strongest(), not Strongest",
    "LocalConditions(model, neighbourhoods='local')": "Nearest() or Strongest(), not 'local'",
    "LocalConditions(model, neighbourhoods=Nearest(-1))": "a radius is above 0, in image sides, not -1",
    "LocalConditions(model, neighbourhoods=Nearest(guidance='2'))": "1 for none, not '2'",
    "LocalConditions(model, neighbourhoods=Nearest(guidance=float('nan')))": "for none, not nan",
    "LocalConditions(model, rows=0)": "rows is a number of passes at a time, not 0",
    "LocalConditions(model)(x, 1.0, model.conditioner([[], []]))": "with a row for each of 2 images",
    "influence(None, x, 1.0, model.conditioner, [(0.5, 0.5)])": "influence: NoneType is not called as",
    "influence(model, x, 'a', model.conditioner, [(0.5, 0.5)])": "sigma is a noise level, or one",
    "influence(model, x.numpy(), 1.0, model.conditioner, [(0.5, 0.5)])": "x is ndarray, not a tensor",
    "model.conditioner((0.5, 0.5))": "a condition set is a list of locations, not 0.5",
    "influence(model, x[:0], 1.0, model.conditioner, [(0.5, 0.5)])": "x is [0, 3, 16, 16], not a",
    "pixel_gradient(mine, x[0], 1.0, None, [(0, 0)])": "x is [3, 16, 16], not a tensor [batch",
    "pixel_gradient(mine, x, 1.0, None, (3, 3))": "pixels are a list of (row, column), not (3, 3)",
    "pixel_gradient(mine, x, 1.0, [1, 2], [(0, 0)])": "cond is list for 2 images; it is a tensor",
    "pixel_gradient(mine, x, 1.0, x[:1, 0, 0], [(0, 0)])": "cond is 1 rows for 2 images",
    "composcope.render([composcope.sample(0, 0, composcope.Rules())], (32, 8.5))": "or (width, height)",
    "from_diffusers('some/model')": "DiffusionPipeline.from_pretrained('some/model')",
}


def test_mistakes_are_one_sentence_as_users_see_them():
    """In a process of its own: here, shapes and types are checked before our code sees them."""
    setup = (
        "import warnings, numpy as np, torch, composcope\n"
        "from composcope import load\nfrom composcope.errors import InputError\n"
        "from composcope.diffusion.pixels import Pixels\nfrom composcope.runs import Model, configure\n"
        "from composcope.adapters import Classes, Phrases, from_diffusers, from_flow, from_x0\n"
        "from composcope.diffusion.sample import sample\nfrom composcope.results import jsonl\n"
        "from composcope.locality import LocalConditions, Nearest, Strongest, influence, pixel_gradient\n"
        "model = Model(configure('exp1', 'smoke'), Pixels(torch.zeros(3, 1, 1), 1.0))\n"
        "x = torch.zeros(2, 3, 16, 16)\n"
        "mine = lambda x, sigma, cond: x\nmine.__name__ = 'mine'\n"
        "def two(x, sigma): return x\n"
        "classes = from_x0(mine, conditioner=Classes(9, null=9), shape=(3, 16, 16))\n"
        "class Arrays(Classes):\n"
        "    def __call__(self, sets, seed=0): return super().__call__(sets, seed).numpy()\n"
        "class OneArgument:\n    features = 9\n    left_out = None\n    def __call__(self, sets): ...\n"
        "def asked_by(conditioner): return from_x0(mine, conditioner=conditioner, shape=(3, 8, 8))\n"
        # What follows is no mistake.
        "composcope.draw(classes, [(3,)], seeds=torch.arange(1), steps=2)\n"
        "for labels in (torch.tensor([[3], [4]]), torch.tensor([[3], [4]]).numpy()):\n"
        "    composcope.draw(classes, labels, steps=2)\n"
        "    composcope.audit(classes, x, list(labels), sigmas=[1.0])\n"
        "composcope.draw(classes, [(3,)], steps=2, batch=np.int64(1))\n"
        "numbers = dict(seed=np.int64(2), radius=np.float32(0.2))\n"
        "jsonl(composcope.audit(classes, x, [(3,), (4,)], sigmas=[1.0], **numbers).rows())\n"
        "numbers = dict(num=np.int64(1), steps=np.int64(2), tolerance=np.float32(0.1))\n"
        "for K in (np.arange(2), iter(range(2))):\n"
        "    jsonl(composcope.evaluate(model, K, **numbers))\n"
        "pixel_gradient(mine, x, 1.0, torch.ones(2, 4, 6), ((0, i) for i in range(2)))\n"
        "place = [(0.5, 0.25)]\n"
        "maps = [influence(model, x + 1, 1.0, model.conditioner, of) for of in (place, torch.tensor(place))]\n"
        "assert torch.equal(*maps)\n"
        "images = composcope.render([composcope.sample(0, 0, composcope.Rules())], [24, 16])\n"
        "assert images.shape == (1, 16, 24, 3)\n"
        "assert composcope.detect(np.zeros((2, 0, 0, 3), np.uint8)) == [[], []]\n"
        "rules = composcope.Rules(camera_jitter=np.float32(0.25), min_pixels=np.int64(9))\n"
        "assert repr(rules) == repr(composcope.Rules(camera_jitter=0.25, min_pixels=9))\n"
        "images.setflags(write=False)\n"
        "warnings.simplefilter('error')\n"
        "composcope.detect(images)\n"
    )
    code = setup + "".join(
        f"try:\n    {mistake}\nexcept InputError as error:\n    print(error)\n"
        for mistake in MISTAKES
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(MISTAKES)
    for line, sentence in zip(lines, MISTAKES.values(), strict=True):
        assert sentence in line


def test_rows_are_flat_and_chosen_by_their_coordinates(tmp_path):
    made = [row("length/exact", K / 4, run=run, K=K) for run in ("exp1", "exp2") for K in (1, 2)]
    add_rows(tmp_path / "some.jsonl", made)
    found = composcope.rows([tmp_path], run="exp1", K=[2, 3])
    assert [(line["what"], line["value"], line["run"], line["K"]) for line in found] == [
        ("length/exact", 0.5, "exp1", 2)
    ]
    assert len(composcope.rows([tmp_path])) == 4
    for any_of in ((2, 3), range(2, 4), {2, 3}, frozenset({2, 3})):
        assert composcope.rows([tmp_path], run="exp1", K=any_of) == found
    assert len(composcope.rows(tmp_path)) == len(composcope.rows(str(tmp_path))) == 4
    with pytest.raises(InputError, match=r"rows: there is no folder .*nowhere"):
        composcope.rows([tmp_path / "nowhere"])
    with pytest.raises(InputError, match="no coordinate 'colour'"):
        composcope.rows([tmp_path], colour=1)


def test_models_are_listed_with_what_was_measured_of_them(tmp_path):
    from composcope.study.shipped import models

    for name in ("exp1", "exp2"):
        configure(name, "smoke").save(tmp_path / name / "config.json")
        save_tensors(tmp_path / name / "model.safetensors", {})
    about = {"run": "exp1", "rule": "paper", "max_K": 12}
    usual = about | {"snapshot": "final", "asked": "paper"}
    made = [
        row("length/k_max", 3, **about, asked="paper", snapshot="early"),
        row("length/k_max", 7, low=5, high=8, **usual, date="2026-01-01"),
        row("length/k_max", 4, **about, asked="random", snapshot="final", date="2026-01-02"),
        row("length/k_max", 1, **usual, tolerance=0.0625, date="2026-01-03"),
        row("length/found", 7.5, run="exp1", K=9, snapshot="final", asked="paper", tolerance=0.1),
    ]
    add_rows(tmp_path / "exp1" / "rows.jsonl", made)
    first, second = models(tmp_path)
    assert (first["filled_of_9"], second["filled_of_9"]) == (7.5, None)
    assert (first["name"], first["K_max"], first["low"], first["high"]) == ("exp1", 7, 5, 8)
    assert (first["objects"], first["labels"], first["images"]) == ("1-3", "all", 1600)
    assert (second["name"], second["K_max"]) == ("exp2", None)

    # Where labels leave objects out, by places alone.
    made = [replace(one, run="exp2") for one in made[1:2]]
    made += [replace(one, rule="places", value=2.0, low=1.0, high=3.0) for one in made]
    add_rows(tmp_path / "exp2" / "rows.jsonl", made)
    assert [models(tmp_path)[1][name] for name in ("K_max", "low", "high")] == [2, 1, 3]
