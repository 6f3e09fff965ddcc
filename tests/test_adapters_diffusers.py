"""diffusers as denoisers; the twin is the x0 of its own schedulers, on small random models."""

from itertools import pairwise

import pytest
import torch
from small_sdxl import random_pipeline

from composcope import audit
from composcope.adapters import from_diffusers
from composcope.adapters.diffusers import importable
from composcope.diffusion.denoiser import Drawer
from composcope.diffusion.sample import draw, noise_levels, sample
from composcope.errors import InputError
from composcope.features.words import Words
from composcope.locality import influence, pixel_gradient

importable()
import diffusers  # noqa: E402

STEPS = (0, 17, 500, 998)
SMALL = {"norm_num_groups": 4, "layers_per_block": 1, "block_out_channels": (8, 16)}


def wild(net):
    """Random weights everywhere, also where a training begins with zeros."""
    chance = torch.Generator().manual_seed(0)
    for weight in net.parameters():
        weight.data = 0.2 * torch.randn(weight.shape, generator=chance)
    return net.eval().requires_grad_(False)


def unet(**more):
    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D")}
    blocks |= {"up_block_types": ("AttnUpBlock2D", "UpBlock2D"), "attention_head_dim": 4}
    channels = {"sample_size": 8, "in_channels": 3, "out_channels": 3}
    return wild(diffusers.UNet2DModel(**SMALL | blocks | channels | more))


def text_unet(**more):
    blocks = {"down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D")}
    blocks |= {"up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"), "attention_head_dim": 2}
    return wild(diffusers.UNet2DConditionModel(8, cross_attention_dim=6, **SMALL | blocks | more))


def dit():
    return wild(
        diffusers.DiTTransformer2DModel(
            num_attention_heads=2,
            attention_head_dim=4,
            in_channels=4,
            out_channels=8,
            num_layers=2,
            norm_num_groups=4,
            sample_size=8,
            num_embeds_ada_norm=5,
        )
    )


def sd3():
    return wild(
        diffusers.SD3Transformer2DModel(
            sample_size=8,
            in_channels=4,
            out_channels=4,
            num_layers=2,
            attention_head_dim=4,
            num_attention_heads=2,
            joint_attention_dim=6,
            caption_projection_dim=8,
            pooled_projection_dim=3,
            pos_embed_max_size=8,
        )
    )


LABEL = torch.tensor([2])
ONE_HOT = torch.eye(6)[[2]]
TEXT = torch.linspace(-1, 1, 7 * 6)[None]
POOLED = torch.linspace(-1, 1, 3)[None]
# Networks: how they are made, cond as the denoiser gets it, and what diffusers calls the same.
NETWORKS = {
    "unconditional": (unet, None, {}),
    "learned variance": (lambda: unet(out_channels=6), None, {}),
    "classes": (lambda: unet(num_class_embeds=6), ONE_HOT, {"class_labels": LABEL}),
    "text": (text_unet, TEXT, {"encoder_hidden_states": TEXT.view(1, 7, 6)}),
    "dit": (dit, ONE_HOT, {"class_labels": LABEL}),
    "sd3": (
        sd3,
        torch.cat([TEXT, POOLED], 1),
        {"encoder_hidden_states": TEXT.view(1, 7, 6), "pooled_projections": POOLED},
    ),
}


def output(net, x_t, t, named):
    return net(x_t, timestep=torch.as_tensor(t).reshape(1), **named).sample[:, : x_t.shape[1]]


def close(x0, want):
    """To 1e-5 of how large x0 is: at sigma = 100 it is a difference of two large numbers."""
    assert (x0 - want).abs().max() <= 1e-5 * want.abs().max()


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("prediction", ["epsilon", "v_prediction", "sample"])
@pytest.mark.parametrize("scheduler", ["DDPMScheduler", "DDIMScheduler"])
def test_x0_is_the_schedulers(network, prediction, scheduler):
    make, cond, named = NETWORKS[network]
    net = make()
    noise = getattr(diffusers, scheduler)(prediction_type=prediction, clip_sample=False)
    noise.set_timesteps(1000)
    denoiser = from_diffusers(net, noise)
    for step in STEPS:
        alpha = noise.alphas_cumprod[step]
        x_t = torch.randn(1, *denoiser.shape, generator=torch.Generator().manual_seed(step))
        want = noise.step(output(net, x_t, step, named), step, x_t).pred_original_sample
        sigma = ((1 - alpha) / alpha) ** 0.5
        close(denoiser(x_t / alpha**0.5, sigma[None], cond), want)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("prediction", ["epsilon", "v_prediction"])
def test_x0_is_that_of_edms_scheduler(network, prediction):
    make, cond, named = NETWORKS[network]
    net = make()
    noise = diffusers.EDMEulerScheduler(prediction_type=prediction, sigma_data=0.7)
    noise.set_timesteps(5)
    denoiser = from_diffusers(net, noise)
    for step in range(5):
        t = noise.timesteps[step]
        x = noise.sigmas[step] * torch.randn(1, *denoiser.shape)
        noise._step_index = None
        F = output(net, noise.scale_model_input(x, t), t, named)
        want = noise.step(F, t, x).pred_original_sample
        close(denoiser(x, noise.sigmas[step][None], cond), want)


@pytest.mark.parametrize("network", NETWORKS)
def test_x0_is_that_of_flow_matching(network):
    """Its scheduler's one step from any time to 0 ends at x0."""
    make, cond, named = NETWORKS[network]
    net = make()
    noise = diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0)
    denoiser = from_diffusers(net, noise)
    for t in (0.03, 0.5, 0.97):
        noise.set_timesteps(sigmas=[t])
        time = noise.timesteps[0]
        level = noise.sigmas[0]
        x_t = torch.randn(1, *denoiser.shape)
        want = noise.step(output(net, x_t, time, named), time, x_t).prev_sample
        close(denoiser(x_t / (1 - level), (level / (1 - level))[None], cond), want)


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_between_two_steps_t_is_eulers(kind):
    net = unet()
    noise = diffusers.EulerDiscreteScheduler(
        prediction_type="v_prediction",
        timestep_type=kind,
        use_karras_sigmas=True,
        sigma_max=700.0 if kind == "continuous" else None,  # beyond alphas_cumprod, as video models
    )
    noise.set_timesteps(6)
    denoiser = from_diffusers(net, noise)
    for step, t in enumerate(noise.timesteps):
        sigma = noise.sigmas[step]
        x = sigma * torch.randn(1, 3, 8, 8)
        noise._step_index = None
        F = net(noise.scale_model_input(x, t), t).sample
        want = noise.step(F, t, x).pred_original_sample
        torch.testing.assert_close(denoiser(x, sigma[None], None), want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("zero", [False, True], ids=["cosine", "zero SNR"])
@pytest.mark.parametrize("scheduler", ["EulerDiscreteScheduler", "DDIMScheduler"])
def test_x0_at_the_end_of_a_schedule_that_leaves_next_to_nothing(scheduler, zero):
    """The last alphas are smaller than the number that stands for none of x0, or none at all."""
    net = unet()
    how = {"rescale_betas_zero_snr": True} if zero else {"beta_schedule": "squaredcos_cap_v2"}
    noise = getattr(diffusers, scheduler)(prediction_type="v_prediction", **how)
    denoiser = from_diffusers(net, noise)
    for step in (300, 990, 998 if zero else 999):
        alpha = noise.alphas_cumprod[step]
        x_t = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(step))
        want = alpha**0.5 * x_t - (1 - alpha) ** 0.5 * net(x_t, step).sample
        close(denoiser(x_t / alpha**0.5, ((1 - alpha) / alpha)[None] ** 0.5, None), want)


def test_a_table_of_times_gets_the_nearest_step():
    net = unet(time_embedding_type="learned", num_train_timesteps=1000)
    noise = diffusers.DDPMScheduler()
    alpha = noise.alphas_cumprod[40]
    sigma = ((1 - alpha) / alpha) ** 0.5 * 1.001
    x = torch.randn(1, 3, 8, 8)
    want = x - sigma * net(x / (1 + sigma**2) ** 0.5, 40).sample
    torch.testing.assert_close(from_diffusers(net, noise)(x, sigma[None], None), want)


@pytest.mark.parametrize("network", NETWORKS)
def test_what_a_pixel_looks_at_is_the_gradient(network):
    make, cond, _ = NETWORKS[network]
    denoiser = from_diffusers(make(), diffusers.DDPMScheduler())
    x = torch.randn(1, *denoiser.shape)
    found = pixel_gradient(denoiser, x, 0.6, cond, [(3, 4)])[0]
    z = x.clone().requires_grad_()
    x0 = denoiser(z, torch.tensor([0.6]), cond)
    want = torch.zeros(8, 8)
    for channel in range(x.shape[1]):
        (row,) = torch.autograd.grad(x0[0, channel, 3, 4], z, retain_graph=True)
        want += row[0, channel].abs()
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)


def test_an_unconditional_pipeline_draws_pictures():
    pipe = diffusers.DDPMPipeline(unet(), diffusers.DDPMScheduler())
    denoiser = from_diffusers(pipe)
    assert isinstance(denoiser, Drawer) and denoiser.conditioner is None
    assert denoiser.about == {"run": "DDPMPipeline"}
    x = sample(denoiser, [0, 1], denoiser.shape, None, noise_levels(3))
    assert denoiser.decode(x).shape == (2, 8, 8, 3)


def test_a_dit_pipeline_has_classes_by_name_and_no_class():
    vae = random_pipeline().vae
    names = {0: "tench, Tinca tinca", 3: "shark"}
    pipe = diffusers.DiTPipeline(dit(), vae, diffusers.DDIMScheduler(), id2label=names)
    denoiser = from_diffusers(pipe)
    classes = denoiser.conditioner
    assert classes([("shark",), ("Tinca tinca",), ()]).argmax(1).tolist() == [3, 0, 5]
    x = torch.randn(1, 4, 8, 8)
    level = torch.tensor([2.0])
    empty = denoiser(x, level, classes([()]))
    assert torch.equal(denoiser(x, level, None), empty)
    want = (denoiser(x, level, classes([("shark",)])) - empty).norm(dim=1)
    torch.testing.assert_close(influence(denoiser, x, 2.0, classes, ("shark",)), want)
    latent = x / vae.config.scaling_factor
    picture = ((vae.decode(latent).sample + 1) * 127.5).round().clamp(0, 255).byte()
    assert torch.equal(torch.from_numpy(denoiser.decode(x)), picture.permute(0, 2, 3, 1))


def test_the_last_class_of_a_unet_may_stand_for_none():
    net = unet(num_class_embeds=6)
    denoiser = from_diffusers(net, diffusers.DDPMScheduler(), null_class=5)
    x = torch.randn(1, 3, 8, 8)
    level = torch.tensor([2.0])
    assert denoiser.conditioner.count == 5
    assert torch.equal(denoiser(x, level, None), denoiser(x, level, denoiser.conditioner([()])))
    with pytest.raises(InputError, match="classes 0 to 5"):
        from_diffusers(net, diffusers.DDPMScheduler(), null_class=6)
    with pytest.raises(InputError, match="no class that means nothing asked"):
        from_diffusers(net, diffusers.DDPMScheduler())(x, level, None)


@pytest.fixture(scope="module")
def stable():
    """Stable Diffusion 1.5 in small: one text encoder, no pooled embedding, no time ids."""
    large = random_pipeline()
    blocks = {"down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D")}
    blocks |= {"up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"), "attention_head_dim": 2}
    return diffusers.StableDiffusionPipeline(
        vae=large.vae,
        text_encoder=large.text_encoder,
        tokenizer=large.tokenizer,
        unet=wild(diffusers.UNet2DConditionModel(8, cross_attention_dim=16, **SMALL | blocks)),
        scheduler=diffusers.DDIMScheduler(clip_sample=False),
        safety_checker=None,
        feature_extractor=None,
    )


@pytest.mark.parametrize(
    ("large", "width"), [(False, 8), (True, 8), (True, 12)], ids=["1.5", "XL", "XL, wide"]
)
def test_a_text_pipeline_walks_its_own_way(stable, large, width):
    """Euler's steps on our denoiser end where the pipeline ends; XL is told how wide that is."""
    pipe = random_pipeline() if large else stable
    pipe.set_progress_bar_config(disable=True)
    noise = diffusers.EulerDiscreteScheduler.from_config(pipe.scheduler.config)
    pipe.register_modules(scheduler=noise)
    denoiser = from_diffusers(pipe, shape=(4, 8, width))
    cond = denoiser.conditioner([("a cat", "a dog")])
    noise.set_timesteps(4)
    latents = torch.randn(1, 4, 8, width, generator=torch.Generator().manual_seed(5))
    asked = {"num_inference_steps": 4, "guidance_scale": 1.0, "output_type": "latent"}
    asked |= {"height": 8 * pipe.vae_scale_factor, "width": width * pipe.vae_scale_factor}
    want = pipe("a cat and a dog", latents=latents, **asked).images
    x = latents * noise.init_noise_sigma
    sigmas = noise.sigmas.clone()
    with torch.no_grad():
        for sigma, lower in pairwise(sigmas):
            x = x + (lower - sigma) * (x - denoiser(x, sigma[None], cond)) / sigma
    torch.testing.assert_close(x, want, rtol=1e-4, atol=1e-4)


def test_latents_with_a_mean_of_their_own_are_decoded_as_the_pipeline_does():
    pipe = random_pipeline()
    pipe.set_progress_bar_config(disable=True)
    pipe.vae.register_to_config(latents_mean=[0.1, -0.2, 0.3, 0.5], latents_std=[1.0, 2.0, 0.5, 3])
    asked = {"num_inference_steps": 1, "guidance_scale": 1.0, "height": 16, "width": 16}
    x = torch.randn(1, 4, 8, 8)
    latents = pipe("a cat", latents=x, output_type="latent", **asked).images
    want = 255 * pipe("a cat", latents=x, output_type="np", **asked).images
    assert abs(from_diffusers(pipe).decode(latents) - want).max() < 0.51  # rounded to bytes


def test_a_text_pipeline_can_be_asked_word_by_word(stable):
    denoiser = from_diffusers(stable)
    prompt = Words("a cat left of a dog", denoiser.conditioner.encode)
    x = torch.randn(1, 4, 8, 8)
    found = influence(denoiser, x, 3.0, prompt, prompt.all)
    assert found.shape == (3, 8, 8) and bool((found.amax((1, 2)) > 0).all())
    level = torch.tensor([3.0])
    with torch.no_grad():
        whole = denoiser(x, level, denoiser.conditioner([("a cat left of a dog",)]))
        fewer = denoiser(x, level, denoiser.conditioner([("a left of a dog",)]))
    torch.testing.assert_close(found[0], (whole - fewer)[0].norm(dim=0))
    empty = denoiser.conditioner([("",)])
    assert torch.equal(denoiser(x, level, None), denoiser(x, level, empty))
    with pytest.raises(InputError, match=r"tokens, more than the encoders read \(77\)"):
        denoiser.conditioner([("zebra " * 40,)])


def test_a_pipeline_that_takes_more_than_text_is_refused(stable):
    parts = {**random_pipeline().components, "tokenizer": None, "text_encoder": None}
    with pytest.raises(InputError, match="Img2ImgPipeline has no tokenizer"):  # as SDXL's refiner
        from_diffusers(diffusers.StableDiffusionXLImg2ImgPipeline(**parts))
    control = diffusers.ControlNetModel.from_unet(stable.unet)
    parts = {**stable.components, "controlnet": control}
    with pytest.raises(InputError, match="ControlNetPipeline has a controlnet, which is not known"):
        from_diffusers(diffusers.StableDiffusionControlNetPipeline(**parts))


def test_a_pipeline_in_half_precision_stays_as_it_is():
    pipe = random_pipeline().to(torch.float16)
    pictures = from_diffusers(pipe).decode(torch.randn(1, 4, 8, 8))
    assert pictures.dtype == "uint8" and pipe.vae.dtype == torch.float16


def test_a_network_that_is_not_adapted_is_no_denoiser():
    """It takes three arguments as one does: a time, which sigma is not, and classes."""
    with pytest.raises(InputError, match=r"make it one: .*from_diffusers\(net, scheduler\)"):
        audit(unet(), torch.randn(1, 3, 8, 8))


def test_what_is_not_known_is_one_sentence():
    noise = diffusers.DDPMScheduler()
    x, level = torch.randn(1, 3, 8, 8), torch.tensor([1.0])
    for source, scheduler, sentence in (
        (unet(), None, "a network and its scheduler; .* NoneType"),
        (torch.nn.Linear(2, 2), noise, "the network Linear is not known"),
        (unet(), diffusers.ScoreSdeVeScheduler(), "ScoreSdeVeScheduler .* is not known"),
        (unet(class_embed_type="timestep"), noise, "embeddings of type 'timestep'"),
        (unet(in_channels=6), noise, "takes 6 channels and predicts 3: .* is not known"),
        (text_unet(num_class_embeds=4), noise, "num_class_embeds = 4 is not known"),
        (text_unet(time_cond_proj_dim=4), noise, "time_cond_proj_dim = 4 is not known"),
        (text_unet(encoder_hid_dim=4), noise, "encoder_hid_dim = 4 is not known"),
        (text_unet(addition_embed_type="text_image"), noise, "addition_embed_type = 'text_im"),
        (unet(), diffusers.UniPCMultistepScheduler(use_flow_sigmas=True), "goes with use_flow_sig"),
        (unet(), diffusers.SCMScheduler(prediction_type="flow_prediction"), "goes with use_flow_s"),
        (unet(), diffusers.FlowMatchEulerDiscreteScheduler(invert_sigmas=True), "the other way"),
    ):
        with pytest.raises(InputError, match=sentence):
            from_diffusers(source, scheduler)
    with pytest.raises(InputError, match=r"shape is .* the network takes 3 channels"):
        from_diffusers(unet(), noise, shape=(4, 8, 8))
    with pytest.raises(InputError, match="x has 1 channels; the model takes 3"):
        from_diffusers(unet(), noise)(x[:, :1], level)
    for net, kind in ((unet(), "UNet2DModel"), (dit(), "DiTTransformer2DModel")):
        with pytest.raises(InputError, match=f"with classes, which this {kind} is not"):
            from_diffusers(net, noise, null_class=1)
    with pytest.raises(InputError, match="the network is unconditional"):
        from_diffusers(unet(), noise)(x, level, ONE_HOT)
    with pytest.raises(InputError, match="cond has 5 features"):
        from_diffusers(dit(), noise)(torch.randn(1, 4, 8, 8), level, torch.eye(5)[[1]])
    with pytest.raises(InputError, match="the network takes tokens of 6 features each, and 0 more"):
        from_diffusers(text_unet(), noise)(torch.randn(1, 4, 8, 8), level, TEXT[:, :-1])
    with pytest.raises(InputError, match="the network takes text"):
        from_diffusers(text_unet(), noise)(torch.randn(1, 4, 8, 8), level, None)


@pytest.mark.parametrize("scheduler", ["DPMSolverMultistepScheduler", "UniPCMultistepScheduler"])
def test_other_solvers_of_a_flow_have_the_x0_of_the_flow(scheduler):
    """Flow matching is also a setting of schedulers that have alphas_cumprod."""
    net = unet()
    noise = getattr(diffusers, scheduler)(prediction_type="flow_prediction", use_flow_sigmas=True)
    twin = from_diffusers(net, diffusers.FlowMatchEulerDiscreteScheduler())
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    sigma = torch.tensor([3.0, 0.2])
    assert torch.equal(from_diffusers(net, noise)(x, sigma), twin(x, sigma))


def test_a_network_without_a_size_is_drawn_with_at_a_given_one():
    net = unet(sample_size=None)
    with pytest.raises(InputError, match="give it as shape="):
        _ = from_diffusers(net, diffusers.DDPMScheduler()).shape
    sized = from_diffusers(net, diffusers.DDPMScheduler(), shape=(3, 8, 16))
    assert draw(sized, [()], steps=2).shape == (1, 8, 16, 3)


def test_a_network_made_from_a_known_one_is_known():
    class Mine(diffusers.UNet2DModel):
        pass

    net = unet()
    mine = wild(Mine.from_config(net.config))
    noise = diffusers.DDPMScheduler()
    x = torch.ones(1, 3, 8, 8)
    want = from_diffusers(net, noise)(x, torch.ones(1))
    for same in (mine, torch.compile(net)):
        assert torch.equal(from_diffusers(same, noise)(x, torch.ones(1)), want)
