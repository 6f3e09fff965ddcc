"""The figures of each section of the page, with the words under them: functions of the material; of
what is not measured there is none."""

from composcope.report import features, interventions, locality, students, words
from composcope.report.circles import circles_figure, contrasts_figure
from composcope.report.figures import forest, growth, lines_over, looks_at, met, over_noise, rule
from composcope.report.marks import (
    DISTILLED,
    EXP1,
    EXP2,
    EXP2_LOCAL,
    EXP2L,
    POLICIES,
    TEACHER,
    kind,
    name,
)
from composcope.report.material import Material, of_rooms
from composcope.report.pictures import Shown, those
from composcope.report.theory import toy_figures
from composcope.results import grouped, where
from composcope.study.effects import CONDITIONAL, FILLED_9, K_MAX, Side, at_equal_images
from composcope.study.table import BY_NAME, INTERVENTIONS, PENALTY_RUNS, RUNS, STUDENT

SIDES = tuple(Side(run.name) for run in RUNS)
MAIN = tuple(Side(run) for run in ("exp1", "exp2", "exp3", "exp2l", "exp3l"))
WIDE = Side("exp2l-wide")
AT_SAMPLING = tuple(Side("exp2", some) for some in INTERVENTIONS)
TRAINED_LOCAL = (EXP2, DISTILLED, *map(Side, PENALTY_RUNS["exp2"]), EXP2L, WIDE)
FORCED = (EXP2, *AT_SAMPLING, *TRAINED_LOCAL[1:])
SINGLES = tuple(Side(run) for run in ("exp1-one", "exp1-one-edm2", "exp2l-one"))
# With labels that act linearly and with those of EDM2.
ENTERING = tuple(Side(run) for run in ("exp1", "exp1-edm2", "exp2", "exp2-edm2"))
COLORS = (Side("color"), Side("color-three"))
SEEDED = sorted({run.experiment for run in RUNS if "seed" in run.changes})
SEEDS = tuple(  # each experiment that has several, with all of them
    Side(run.name)
    for experiment in SEEDED
    for run in RUNS
    if run.experiment == experiment and {*run.changes} <= {"seed"}
)
# As exp1, but for the number of objects in a training image: Figure 8.
GROWING = tuple(
    Side(run.name)
    for run in sorted(RUNS, key=lambda run: run.config().objects[1])
    if run.experiment == "exp1" and {*run.changes} <= {"objects"}
)
NEAR = "share of the effect near the place"


def compose_figures(material: Material) -> list[Shown]:
    rows = material.rows
    filled = met(lines_over(rows, at_equal_images(MAIN, rows), "length/found"), 3)
    growing = at_equal_images(GROWING, rows)
    return those(
        {
            "A place is filled if an object was drawn there. Points are means over images, thin "
            "bars 95 % intervals. Grey: as many objects as in training images. All were trained on "
            "equally many images.": filled,
            "K_max of every run, by places alone where labels leave objects out and that is "
            "measured, and the paper's in versions 1 and 3 (v1, v3). The table below says what "
            "each run was trained on.": forest(rows, SIDES, K_MAX, gaps=False),
            "How K_max is found, by an example. Each square is one of eight images, shaded by how "
            "many of the K objects it shows. K_max is the last K before the first cross.": rule(),
            words.grows(rows, growing): growth(rows, growing),
        }
    )


def look_figures(material: Material) -> list[Shown]:
    rows = material.rows
    sides = (EXP1, EXP2, Side("exp3"), EXP2L)
    maps = {name(side): kept for side in sides if (kept := material.maps_of(side))}
    near = lines_over(rows, MAIN, "locality/near_share")
    chance = next((row.chance for _, _, own in near for row in own), None)
    squares = over_noise(lines_over(rows, MAIN, "locality/square"), "side of the square, pixels")
    points = {reach: locality.dots(rows, reach) for reach in ("paper", "filled")}
    scatter = locality.scatter(points) if any(points.values()) else None
    return those(
        {
            "What one pixel of the denoised image (ring) looks at in the noisy image: the "
            "brighter, the more. The crosses are four places asked for: the brighter, the more "
            "that condition acts on the pixel. In a local model only the nearest cross is "
            "bright.": looks_at(maps),
            "Of what a condition changes in the image, the share near its own place.": over_noise(
                near, NEAR, chance
            ),
            "How far a pixel looks: the side of the square around it that holds 90 % of what it "
            "looks at, a mean over pixels.": squares,
            "How far models compose, measured in two ways, beside how local they are. Every dot is "
            "a model, the smaller dots are earlier in its training. Conditional locality is the "
            "share of a condition's effect near its place, over all noise levels. Left, a single "
            "bad image at small K can decide K_max. The paper calls the two strongly correlated "
            "and gives no number.": scatter,
        }
    )


def forced_figures(material: Material) -> list[Shown]:
    rows = material.rows
    shown = (EXP2, EXP2_LOCAL, TEACHER, DISTILLED, EXP2L, WIDE, EXP1)
    lines = lines_over(rows, shown, "length/found")
    of_nine = forest(rows, FORCED, FILLED_9, gaps=False)
    figures = those(
        {
            "Places filled, with and without forced locality. exp2-student learned to do in one "
            "pass what exp2 with guided local conditions does in several; exp2l-wide sees patches "
            "as wide as the image.": met(lines, 3),
            "Places filled of nine. exp2-longer and exp2-penalty are exp2 trained further, without "
            "and with a penalty on what a condition changes far from its place. In brackets, where "
            "it is not 0.19: the radius within which a condition acts, in image sides. The table "
            "below says what each intervention does.": of_nine,
        }
    )
    return figures + intervention_figures(material)


def intervention_figures(material: Material) -> list[Shown]:
    """Where interventions end, what predicts composition, and neighbourhoods that models find."""
    rows = material.rows
    swept = where(rows, what=["penalty/found", "penalty/conditional_locality"])
    placeless = interventions.placeless(rows)
    found = where(placeless, intervention=[*interventions.FOUND])
    predicted = where(rows, what="predict/spearman")
    overlap = interventions.overlap_figure(rows) if where(rows, what="overlap/both") else None
    alike = students.imitated(rows)
    imitation = students.imitation_figure(alike) if alike else None
    close = interventions.close_figure(material.close) if material.close else None
    penalty = interventions.penalty_figure(swept) if swept else None
    neighbours = interventions.neighbourhood_figure(placeless) if found else None
    prediction = interventions.prediction_figure(rows) if predicted else None
    return those(
        {
            "A student and its teacher, asked for the same places from the same noise, on "
            f"{alike[0].n if alike else 0} images of each K: the share with every place filled.": (
                imitation
            ),
            "Two places that come closer: the share of images in which both are filled. Dashed: "
            "what the detector finds in rendered scenes. Dotted curve: the share of an object that "
            "lies nearer to its own place than to the other. Left of the dotted vertical line, two "
            "places share a patch of exp2l.": overlap,
            "What they draw: the first image at each distance (in image sides, above), none is "
            "chosen. Red dots are the places asked for.": close,
            "exp2 trained a little further with a penalty on what a condition changes far from its "
            "place. Left: how local it is when asked for one place, as in training. Middle: when "
            "asked for four. Right: the places it fills of six.": penalty,
            f"Conditions without places. {interventions.FOUND_WORDS}": neighbours,
            "Can composing be predicted early in training? Every dot is a run: a measurement early "
            "in its training, and the places it fills in the end. Right: the rank correlation for "
            "locality at each noise level.": prediction,
        }
    )


def label_figures(material: Material) -> list[Shown]:
    rows = material.rows
    sides = at_equal_images(POLICIES, rows)
    lines = lines_over(rows, sides, "length/found", lambda side: f"{name(side)}: {kind(side)}")
    return those(
        {
            "Places filled, by which objects were labelled, after equal numbers of training "
            "images.": met(lines, 3),
            "Trained on single objects. In exp1-one labels act linearly: the effects of two add "
            "up, even if the two were never seen together. In exp1-one-edm2 they pass through a "
            "nonlinear function, as in EDM2. exp2l-one sees patches.": met(
                lines_over(rows, SINGLES, "length/found"), 1
            ),
            "K_max by which objects were labelled, beside the paper's Table 2.": forest(
                rows, sides, K_MAX
            ),
            "Trained on one to three objects, with labels that act linearly (exp1, exp2) and as in "
            "EDM2, after equal numbers of training images.": met(
                lines_over(rows, at_equal_images(ENTERING, rows), "length/found"), 3
            ),
        }
    )


def elsewhere_figures(material: Material) -> list[Shown]:
    """Colours, words, then both in detail."""
    lines = lines_over(material.rows, COLORS, "length/found")
    own = of_rooms(material.rows, "features")
    texts = {row.run for row in where(own, what="features/share_in_third")}
    spoken = where(material.rows, what="locality/influence", run=texts)
    prompt = spoken[0].setting if spoken else ""
    heard = f"The influence of each word at two places, from high noise to low ({prompt})."
    shown = those(
        {
            "Colours asked for and drawn.": met(lines, 5, "colours"),
            heard: features.words_over_time(spoken) if spoken else None,
        }
    )
    for run, some in grouped(own, lambda row: row.run).items():
        hidden = where(some, maps=["hidden", None])
        layers = any(row.index is not None for row in hidden)
        parts = where(hidden, part="mean", level="high") and where(hidden, what="features/within")
        alike = f"{run}: how alike the directions of concepts are"
        shown += those(
            {
                f"{alike}, from the first layer to the last, and in the output (cosine 1: the "
                "same, 0: orthogonal). Grey names are parts of the "
                "network.": features.profile(hidden) if layers else None,
                f"{alike}, within and between categories, in parts of the network and in its "
                "output, before it is decoded (latent) and after (pixel).": features.spaces(hidden)
                if parts
                else None,
            }
        )
    for about, kept in material.matrices:
        if features.level_matrices(kept, "high"):
            text = f"{about.get('run')}: cosine of every two concepts in each layer, at high noise."
            shown.append(Shown(features.level_figure(kept, "high", ""), text))
    for about, kept in material.maps:
        if about.get("run") not in {*BY_NAME, STUDENT} and about.get("states") != "noised":
            text = (
                f"{about.get('run')}: what pixels look at (rings, bright: strongly), and the "
                "conditions that act on them (crosses), from high noise to low."
            )
            shown.append(Shown(locality.heatmaps(kept), text))
    return shown


def theory_figures(material: Material) -> list[Shown]:
    toys = [toy for room, folders in material.toys.items() for toy in toy_figures(room, folders)]
    shown = [Shown(figure, f"{text}.") for figure, text in toys]
    circles = where(material.rows, what="circles/accuracy")
    if not circles:
        return shown
    last = max(circles, key=lambda row: (row.step or 0, row.contrast or 0, row.seed or 0))
    one = f"One of these trainings: contrast {last.contrast:g}, seed {last.seed}."
    return shown + those(
        {
            "A diffusion model learns to draw circles of two colours and two sizes, and never sees "
            "one of the four combinations. Along its training: are colour and size of that one "
            "right? Thin lines are seeds, thick ones their mean.": contrasts_figure(circles),
            one: circles_figure(where(circles, contrast=last.contrast, seed=last.seed)),
        }
    )


def sure_figures(material: Material) -> list[Shown]:
    sides = at_equal_images(SEEDS, material.rows)
    filled = forest(material.rows, sides, FILLED_9)
    return those(
        {
            "Trained again from another seed (seed1), after equal numbers of images: places "
            "filled. Thin bars are 95 % intervals over images.": filled,
            "The same trainings: conditional locality.": forest(material.rows, sides, CONDITIONAL),
        }
    )
