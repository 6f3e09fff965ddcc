"""Claims of theory that did not hold, in words for a reader."""

from composcope.results import Row

# In plain words, by `what`, the claims that did not come out where they were first tested; others
# are told as their rows have them.
IN_FIRST = "Of two concepts, the one with the larger signal in the training data is learned first"
SWING_BY = "Swing-by, the share of random starts"
PLAIN = {
    "theory/lemma1/as_printed": "Lemma 1 as printed: the local score is exact for every "
    "distribution that composes. It is, but only if the background (the image when nothing is "
    "asked for) is independent between places. Without that, its largest error here:",
    "theory/definition3/finite": "Definition 3 measures how far a distribution is from composing "
    "by its worst image. For correlated Gaussians there is no worst image: the measure grows as a "
    "power of the pixel's value. The power:",
    "theory/lemma3/same_order": "Definition 3 and Lemma 3 compare the same two distributions by "
    "the Kullback-Leibler divergence (KL), one in each direction. The ratio of the two, if they "
    "were one quantity:",
    "theory/claim2/decreasing": "Claim 2: with more noise, it matters less whether noise is added "
    "before or after features are computed. If the feature is twice the pixel, it matters more. "
    "The largest rise of the divergence (KL) between the two:",
    "theory/projective/crowd": "Scores of single objects can be added up, each learned before a "
    "background of one to five objects. How strongly the objects asked for then come out:",
    "sim/circles/order": "A diffusion model on circles of two colours and two sizes learns the "
    "concept with more contrast first. The share of trainings in which it does:",
    "sim/clock": "The published equation of training is gradient descent on the stated loss. The "
    "speed of gradient descent over the published speed:",
    "sim/order/mu/relu_usual_start": f"{IN_FIRST}: ReLU network from a usual start, signals that "
    "differ in size. The share of starts:",
    "sim/order/sigma/relu": f"{IN_FIRST}: ReLU network from small weights, signals that differ in "
    "spread. The share of starts:",
    "sim/order/sigma/relu_usual_start": f"{IN_FIRST}: ReLU network from a usual start, signals "
    "that differ in spread. The share of starts:",
    "sim/swing_by/tied/figure_5": f"{SWING_BY} with two layers with the same weights, "
    "all positive:",
    "sim/swing_by/tied/gaussian": f"{SWING_BY} with two layers with the same weights, of "
    "either sign:",
    "sim/swing_by/isotropic/2": f"{SWING_BY} with two layers of width 2, weights of either sign:",
    "sim/swing_by/isotropic/8": f"{SWING_BY} with two layers of width 8, weights of either sign:",
    "sim/swing_by/relu/isotropic": f"{SWING_BY} with a ReLU network of width 8, weights of "
    "either sign:",
    "sim/swing_by/depth_3": f"{SWING_BY} with three layers of width 3:",
    "sim/swing_by/depth_4": f"{SWING_BY} with four layers of width 4:",
    "sim/failure/psd": "The published training step keeps the network one that two layers with the "
    "same weights can be. The share of starts from which it does:",
}


def plain_claim(row: Row) -> str:
    return PLAIN.get(row.what, f"{row.claim}:")
