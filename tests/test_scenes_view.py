"""The square view is the middle of the full one: the same rays, the same places, and nothing cut
off."""

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.scenes import Rules, Scene, layers, load_clevr, render, sample
from composcope.scenes.clevr import to_struct
from composcope.scenes.rules import draw

SQUARE = Rules(objects=(1, 6), view="square")


def both(index: int) -> tuple[Scene, Scene]:
    scene = sample(0, index, SQUARE)
    return scene, Scene(scene.objects, scene.camera, scene.key, scene.fill, scene.back, "full")


@pytest.mark.parametrize("index", range(4))
def test_the_square_view_is_the_centre_of_the_frame(index):
    """What each pixel shows is the same ray's; colours differ by the number of samples alone."""
    square, full = both(index)
    shown, depth = layers([square], 240)
    whole, far = layers([full], (320, 240))
    np.testing.assert_array_equal(shown, whole[:, :, 40:280])
    np.testing.assert_allclose(depth, far[:, :, 40:280], rtol=1e-9)
    image, frame = render([square], 240).astype(float), render([full], (320, 240)).astype(float)
    assert np.abs(image - frame[:, :, 40:280]).mean() < 0.2


def test_places_are_fractions_of_the_view():
    square, full = both(3)
    for (u, v), (wide_u, wide_v) in zip(square.places, full.places, strict=True):
        assert u == pytest.approx(0.5 + (wide_u - 0.5) * 4 / 3)
        assert v == pytest.approx(wide_v)


def test_all_objects_of_a_square_scene_are_wholly_inside():
    scenes = draw(1, 0, 200, Rules(objects=(3, 3), view="square"))
    shown, _ = layers(scenes, (240, 240))
    beyond, _ = layers(
        [Scene(s.objects, s.camera, s.key, s.fill, s.back, "full") for s in scenes], (320, 240)
    )
    assert (beyond[:, :, :40] == -1).all() and (beyond[:, :, 280:] == -1).all()
    assert all(len(np.unique(one)) == 4 for one in shown)
    places = np.array([scene.places for scene in scenes])
    assert places.min() > 0 and places.max() < 1
    loose = draw(1, 0, 200, Rules(objects=(3, 3)))
    outside = [np.abs(np.array(scene.places)[:, 0] - 0.5).max() > 3 / 8 for scene in loose]
    assert any(outside)  # without the rule some would be


def test_given_places_are_where_they_were_asked_on_the_view():
    scene = sample(0, 0, SQUARE, places=[(0.2, 0.5), (0.8, 0.6)])
    np.testing.assert_allclose(scene.places, [(0.2, 0.5), (0.8, 0.6)], atol=1e-9)


def test_the_view_is_kept_with_a_scene(tmp_path):
    import json

    scene = sample(0, 2, SQUARE)
    file = tmp_path / "scene.json"
    file.write_text(json.dumps(to_struct(scene, 0, (64, 64))))
    (back,) = load_clevr(file)
    assert back == scene
    assert load_clevr(file, view="full")[0].view == "full"
    file.write_text(json.dumps(to_struct(scene, 0, (64, 64)) | {"view": "round"}))
    with pytest.raises(InputError, match="the view 'round' is none of full, square"):
        load_clevr(file)


def test_a_view_that_does_not_exist_is_named():
    with pytest.raises(InputError, match="no view 'round'; the views are full, square"):
        Rules(view="round")
    with pytest.raises(InputError, match="no view 'round'"):
        Scene(view="round")
