"""The patch-local network: exactly local, equal to the plain loop over cells, trained and sampled
alike."""

import pytest
import torch
from test_nets_unet import wild

from composcope.errors import InputError
from composcope.nets import LocalUNet, Patches, UNet
from composcope.nets.layers import crop

GRID = Patches(32, 8, k=1)
# Slots of (present, u, v): the network only needs to know where a slot's place is.
LIST = Patches(32, 8, k=1, slots=3, slot_features=3, place=lambda entry: entry[..., 1:])


def local(patches: Patches, **settings) -> LocalUNet:
    torch.manual_seed(0)
    settings = {"model_channels": 8, "channel_mult": (1, 2), "num_blocks": 1, "fold": 2} | settings
    return wild(
        LocalUNet(UNet(patches.side, 3, patches.features, channels_per_head=8, **settings), patches)
    ).eval()


def loop(net: LocalUNet, x, noise_label, cond):
    """Section E.3 to the letter: for each cell cut out its patch and conditions, denoise, copy the
    centre back."""
    p, out = net.patches, torch.zeros_like(x)
    m, k, g = p.cell, p.k, p.grid_size
    for i in range(g):
        for j in range(g):
            patch, sub = (
                x.new_zeros(len(x), 3, p.side, p.side),
                x.new_zeros(len(x), 2 * k + 1, 2 * k + 1),
            )
            for a in range(-k, k + 1):
                for b in range(-k, k + 1):
                    if 0 <= i + a < g and 0 <= j + b < g:
                        at = (
                            slice((i + a) * m, (i + a + 1) * m),
                            slice((j + b) * m, (j + b + 1) * m),
                        )
                        to = (
                            slice((k + a) * m, (k + a + 1) * m),
                            slice((k + b) * m, (k + b + 1) * m),
                        )
                        patch[(..., *to)] = x[(..., *at)]
                        sub[:, k + a, k + b] = cond[:, (i + a) * g + j + b]
            centre = torch.tensor([[(i + 0.5) / g * 2 - 1, (j + 0.5) / g * 2 - 1]]).to(x)
            centre = centre.expand(len(x), 2)
            F_x = net.unet(patch, noise_label, torch.cat([sub.flatten(1), centre], 1))
            out[:, :, i * m : (i + 1) * m, j * m : (j + 1) * m] = F_x[
                :, :, k * m : (k + 1) * m, k * m : (k + 1) * m
            ]
    return out


def inputs(batch, share):
    """Images, noise labels and grids with a share of their cells asked for."""
    cond = (torch.rand(batch, 64) < share).float()
    return torch.randn(batch, 3, 32, 32), torch.randn(batch), cond


@pytest.mark.parametrize(
    ("patches", "settings"),
    [
        (GRID, {"attn_resolutions": (3,)}),
        (GRID, {"attn_resolutions": (6,)}),  # attention in the last blocks: nothing to crop
        (Patches(32, 4, k=1), {"attn_resolutions": ()}),
        (Patches(32, 4, k=2), {"attn_resolutions": (10,), "channel_mult": (1, 1, 2), "fold": 1}),
        # crops through both levels
        (Patches(32, 4, k=2), {"attn_resolutions": (), "num_blocks": 2, "fold": 1}),
        (Patches(16, 2, k=1), {"attn_resolutions": (6,)}),  # every patch holds the whole image
    ],
    ids=str,
)
def test_assembled_cells_equal_the_plain_loop(patches, settings):
    net, r = local(patches, **settings).double(), patches.resolution
    x, noise_label = torch.randn(2, 3, r, r).double(), torch.randn(2).double()
    cond = (torch.rand(2, patches.whole_features) < 0.2).double()
    with torch.no_grad():
        expected = loop(net, x, noise_label, cond)
        assert expected.std() > 0.1
        torch.testing.assert_close(net(x, noise_label, cond), expected, rtol=1e-9, atol=1e-9)


def test_images_that_differ_only_in_a_condition_share_their_other_patches():
    net = local(GRID, attn_resolutions=(3,))
    x, noise_label, cond = inputs(1, 0.0)
    asked = cond.repeat(3, 1)
    asked[1, 8 * 3 + 4] = 1  # in the middle: in 3 x 3 patches
    asked[2, 0] = 1  # in a corner: in 2 x 2
    several = x.repeat(3, 1, 1, 1), noise_label.repeat(3), asked
    rows = []
    net.unet.register_forward_pre_hook(lambda _, given: rows.append(len(given[0])))
    with torch.no_grad():
        together = net(*several)
        assert sum(rows) == 64 + 9 + 4
        torch.testing.assert_close(together, loop(net, *several), rtol=1e-5, atol=1e-5)


def test_in_single_precision_too():
    net = local(GRID, attn_resolutions=(3,))
    x, noise_label, cond = inputs(2, 0.2)
    with torch.no_grad():
        expected = loop(net, x, noise_label, cond)
        torch.testing.assert_close(net(x, noise_label, cond), expected, rtol=1e-5, atol=1e-5)


def seen(patches: Patches, row: int, column: int) -> tuple[slice, slice]:
    """The pixels of the patch around a cell."""
    spans = [
        (max(0, at - patches.k) * patches.cell, (at + patches.k + 1) * patches.cell)
        for at in (row, column)
    ]
    return slice(*spans[0]), slice(*spans[1])


@pytest.mark.parametrize(("row", "column"), [(0, 0), (3, 4), (7, 2)])
def test_a_cell_depends_on_its_patch_alone(row, column):
    net = local(GRID)
    x, noise_label, cond = inputs(1, 0.3)
    cell = (..., slice(4 * row, 4 * row + 4), slice(4 * column, 4 * column + 4))
    near = torch.zeros(32, 32, dtype=torch.bool)
    near[seen(GRID, row, column)] = True
    near_cells = near[::4, ::4].flatten()
    with torch.no_grad():
        base = net(x, noise_label, cond)[cell]
        other = torch.where(near, x, torch.randn_like(x))
        outside = net(other, noise_label, torch.where(near_cells, cond, 1 - cond))
        assert torch.equal(outside[cell], base)
        assert not torch.equal(outside, net(x, noise_label, cond))
        pixels = net(torch.where(near, torch.randn_like(x), x), noise_label, cond)[cell]
        conditions = net(x, noise_label, torch.where(near_cells, 1 - cond, cond))[cell]
        assert (pixels - base).abs().min() > 0
        assert (conditions - base).abs().max() > 1e-3


def test_a_list_entry_reaches_only_the_patches_it_is_in():
    net = local(LIST)
    x, noise_label = torch.randn(1, 3, 32, 32), torch.randn(1)
    # cells (row 4, column 2) and (7, 7)
    entries = torch.tensor([[[1, 0.30, 0.55], [0, 0, 0], [1, 0.99, 1.0]]])
    with torch.no_grad():
        change = net(x, noise_label, entries.flatten(1)) - net(x, noise_label, torch.zeros(1, 9))
    changed = change[0].abs().amax(0).view(8, 4, 8, 4).amax((1, 3)) > 0
    expected = torch.zeros(8, 8, dtype=torch.bool)
    expected[3:6, 1:4] = expected[6:, 6:] = True
    assert torch.equal(changed, expected)


def test_conditions_of_a_patch_are_those_inside_and_its_centre():
    cond, one = torch.zeros(1, 64), torch.zeros(1, dtype=torch.long)
    cond[0, 2 * 8 + 5] = cond[0, 6 * 8 + 0] = 1
    assert GRID.conditions(cond, one, torch.tensor([[3, 4]])).tolist() == [
        [0, 0, 1, *[0] * 6, -0.125, 0.125]
    ]
    assert GRID.conditions(cond, one, torch.tensor([[7, 0]])).tolist() == [
        [0, 1, *[0] * 7, 0.875, -0.875]
    ]


def test_patch_forward_sees_and_gives_nothing_outside_the_image():
    """Noise drawn on a whole patch in training leaves the network where zero padding in sampling
    does."""
    net = local(GRID)
    x, noise_label, cond = inputs(2, 0.3)
    image, cell = torch.tensor([0, 1, 1]), torch.tensor([[0, 0], [3, 7], [4, 4]])
    patches, conditions = GRID.pixels(x, image, cell), GRID.conditions(cond, image, cell)
    inside = GRID.inside(conditions)
    for n, (row, column) in enumerate(cell.tolist()):
        assert inside[n].sum() == x[0, 0][seen(GRID, row, column)].numel()
    noisy = patches + (1 - inside) * torch.randn_like(patches)
    with torch.no_grad():
        F_x, whole = net(noisy, noise_label[image], conditions), net(x, noise_label, cond)
    assert not (F_x * (1 - inside)).any()
    for n, (row, column) in enumerate(cell.tolist()):
        expected = whole[image[n], :, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4]
        torch.testing.assert_close(crop(F_x[n], 4), expected, rtol=1e-5, atol=1e-5)


def test_training_takes_a_positive_and_a_negative_patch_of_each_image():
    cond = torch.zeros(200, 64)
    cond[torch.arange(200), torch.arange(200) % 64] = 1
    generators = [torch.Generator().manual_seed(i) for i in range(200)]
    image, cell = GRID.pick(cond, generators)
    assert image.tolist() == [i // 2 for i in range(400)]
    held = GRID.conditions(cond, image, cell)[:, :-2].sum(1).view(200, 2)
    assert (held[:, 0] == 1).all()
    assert (held[:, 1] == 0).all()
    middle = cell.view(200, 2, 2)[:, 0] - torch.stack(
        [torch.arange(200) % 64 // 8, torch.arange(200) % 8], 1
    )
    assert {tuple(step) for step in middle.tolist()} == {
        (a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)
    }
    again = GRID.pick(cond[7:9], [torch.Generator().manual_seed(i) for i in (7, 8)])[1]
    assert torch.equal(again, cell[14:18])  # whatever the batch


@pytest.mark.parametrize("fill", [0.0, 1.0])
def test_images_without_one_kind_of_patch_give_any(fill):
    cond = torch.full((300, 64), fill)
    cells = GRID.pick(cond, [torch.Generator().manual_seed(i) for i in range(300)])[1]
    assert len({tuple(cell) for cell in cells.tolist()}) == 64


def test_k_covering_the_image_sees_all_of_it():
    net = local(Patches(16, 2, k=1), attn_resolutions=(6,))
    x = torch.randn(1, 3, 16, 16, requires_grad=True)
    net(x, torch.randn(1), torch.ones(1, 4))[0, 0, 0, 0].backward()
    assert (x.grad != 0).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Patches(30, 8),
        lambda: LocalUNet(UNet(16, 3, 11, model_channels=8, channel_mult=(1,)), GRID),
        lambda: LocalUNet(UNet(12, 3, 9, model_channels=8, channel_mult=(1,)), GRID),
        lambda: LocalUNet(
            UNet(3, 3, 11, model_channels=8, channel_mult=(1,), fold=3), Patches(8, 8, k=1)
        ),
        lambda: local(GRID, channel_mult=(1, 1, 1)),
        lambda: local(GRID)(torch.randn(1, 3, 32, 32), torch.randn(1), torch.zeros(1, 49)),
    ],
)
def test_impossible_settings_are_refused(make):
    with pytest.raises(InputError):
        make()
