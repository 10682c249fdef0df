"""The gradient of each loss: its formula, and the same in code, which a test compares with autograd.

A function takes the scores s (n, m) that the loss compares, the masks of positives and negatives, and the loss. It
returns the derivative of each anchor's loss by each score (n, m). Of a loss over dimensions it takes the loss and the
two views, and returns the derivative of the batch's loss by the rows of the first views (n, d).
"""

import torch

from contrastive_core.losses.barlow_twins import EPS, standardized
from contrastive_core.losses.lejepa import directions

SOFTMAX = r"\pi_{ij} = \frac{e^{s_{ij}/\tau}}{\sum_{a\in A(i)} e^{s_{ia}/\tau}}"


def softmax(logits, mask):
    """The softmax of each row over the masked entries, 0 elsewhere."""
    return torch.softmax(logits.masked_fill(~mask, -torch.inf), -1).nan_to_num(0)


def mean_over(mask):
    return mask.double() / mask.sum(-1, keepdim=True)


def all_candidates(s, positive, negative, loss):
    return (softmax(s / loss.temperature, positive | negative) - mean_over(positive)) / loss.temperature


def own_positive(s, positive, negative, loss):
    temperature = getattr(loss, "temperature", 1.0)
    gradient, number = torch.zeros_like(s), positive.sum(-1, keepdim=True)
    for p in range(s.shape[1]):
        own = torch.zeros_like(positive)
        own[:, p] = True
        counted = positive[:, p : p + 1]
        gradient += counted * (softmax(s / temperature, own | negative) - own.float())
    return gradient / (number * temperature)


def soft_nearest_neighbor(s, positive, negative, loss):
    logits = -s / loss.temperature
    return -(softmax(logits, positive | negative) - softmax(logits, positive)) / loss.temperature


def nce(s, positive, negative, loss, log_z, population):
    number = negative.sum(-1, keepdim=True)
    p = torch.sigmoid(s / loss.temperature - log_z - (number / population).log())
    return (negative * p - mean_over(positive) * (1 - p)) / loss.temperature


def invariance_spread(s, positive, negative, loss):
    p = softmax(s / loss.temperature, positive | negative)
    odds = negative * p / (1 - p)
    return (p - mean_over(positive) + odds - p * odds.sum(-1, keepdim=True)) / loss.temperature


def pair_contrastive(s, positive, negative, loss):
    push = (loss.margin - s).clamp_min(0)
    return (positive * s - negative * push) / (positive | negative).sum(-1, keepdim=True)


def triplet(s, positive, negative, loss):
    triplets = positive[:, :, None] & negative[:, None, :]
    active = triplets & (s[:, :, None] - s[:, None, :] + loss.margin > 0)
    number = triplets.sum((1, 2))[:, None]
    return (active.sum(2) - active.sum(1)) / number


def lifted_structure(s, positive, negative, loss):
    push = softmax_terms = (loss.margin - s).exp() * negative
    own = softmax_terms.sum(-1)
    both = own[:, None] + own[None, :]
    hinge = positive * (s + both.log()).clamp_min(0)
    pushed = (hinge / both).sum(-1, keepdim=True) * push
    # The distances of a positive's own negatives belong to other rows of the matrix.
    return (hinge - pushed) / positive.sum(-1, keepdim=True)


def negative_cosine(s, positive, negative, loss):
    return -2 * mean_over(positive)


def barlow_twins(loss, views):
    """The derivative of the loss by the rows of the first views (n, d), for n images."""
    a, b = (standardized(views, rows) for rows in (views.a, views.b))
    c = a.mT @ b / len(a)
    by_c = 2 * loss.off_diagonal * c
    by_c.diagonal().copy_(2 * (c.diagonal() - 1))
    g = b @ by_c.mT / len(a)  # by the standardized rows
    scale = (views.centered(views.a).square().mean(0) + EPS).sqrt()
    return (g - g.mean(0) - a * (g * a).mean(0)) / scale


def vicreg(loss, views):
    n, d = views.a.shape
    centered = views.centered(views.a)
    cov = centered.mT @ centered / (n - 1)
    deviation = (cov.diagonal() + 1e-4).sqrt()
    pull = 2 * loss.invariance * (views.a - views.b) / (n * d)
    widen = loss.variance / (2 * d * (n - 1)) * (deviation < loss.deviation) * centered / deviation
    part = 4 * loss.covariance / (d * (n - 1)) * centered @ (cov - torch.diag(cov.diagonal()))
    return pull - widen + part


def lejepa(loss, views):
    n, d = views.a.shape
    u = directions(views.a, loss.directions, 0)
    x, gradient = views.a @ u, torch.zeros_like(views.a)
    for k in range(17):
        t = torch.tensor(3 * k / 16, dtype=x.dtype)
        weight = (1 if k in (0, 16) else 2) * 3 / 16 * (-t.square() / 2).exp()
        real, imaginary = (t * x).cos().mean(0) - (-t.square() / 2).exp(), (t * x).sin().mean(0)
        gradient += 2 * weight * t * (imaginary * (t * x).cos() - real * (t * x).sin()) @ u.mT / loss.directions
    pull = (1 - loss.trade_off) * (views.a - views.b) / (2 * n * d)
    return pull + loss.trade_off / 2 * gradient


def decoupled(s, positive, negative, loss):
    return (softmax(s / loss.temperature, negative) - mean_over(positive)) / loss.temperature


def siglip(s, positive, negative, loss):
    p = torch.sigmoid(s / loss.temperature + loss.bias)
    return (negative * p - positive * (1 - p)) / loss.temperature


def hard_negative(s, positive, negative, loss):
    """Where the estimate of the negatives is above its least value."""
    logits, number = s / loss.temperature, negative.sum(-1, keepdim=True)
    weights = softmax(loss.beta * logits, negative)
    grown = weights * logits.exp()
    mean = grown.sum(-1, keepdim=True)
    by_negative = (1 + loss.beta) * grown - loss.beta * weights * mean
    total = torch.zeros_like(s)
    for p in range(s.shape[1]):
        own = logits[:, p, None].exp()
        estimate = number * (mean - loss.tau_plus * own) / (1 - loss.tau_plus)
        share = number / (own + estimate) / (1 - loss.tau_plus)
        by_positive = (own - number * loss.tau_plus * own / (1 - loss.tau_plus)) / (own + estimate) - 1
        each = share * by_negative
        each[:, p] += by_positive[:, 0]
        total += positive[:, p, None] * each
    return total / (loss.temperature * positive.sum(-1, keepdim=True))


def robust_info_nce(s, positive, negative, loss):
    e, q = (s / loss.temperature).exp(), loss.q
    total = torch.zeros_like(s)
    for p in range(s.shape[1]):
        among = negative * e
        among[:, p] = e[:, p]
        power = (loss.density_weight * among.sum(-1, keepdim=True)) ** q
        each = power * among / among.sum(-1, keepdim=True)
        each[:, p] -= e[:, p] ** q
        total += positive[:, p, None] * each
    return total / (loss.temperature * positive.sum(-1, keepdim=True))


MEAN = r"\frac{[j\in P(i)]}{|P(i)|}"
OUT = rf"\frac{{\partial L_i}}{{\partial s_{{ij}}}} = \frac{{1}}{{\tau}}\Big(\pi_{{ij}} - {MEAN}\Big),\quad {SOFTMAX}"
OWN = (
    r"\frac{\partial L_i}{\partial s_{ij}} = \frac{1}{\tau|P(i)|}\sum_{p\in P(i)}\big(\pi^{p}_{ij} - [j=p]\big),\quad "
    r"\pi^{p}_{ij} = \frac{e^{s_{ij}/\tau}}{e^{s_{ip}/\tau}+\sum_{k\in N(i)} e^{s_{ik}/\tau}}"
)

BY_ROW = r"\frac{\partial L}{\partial a_i} = "

# Name of the loss: LaTeX, function, what to notice.
GRADIENTS = {
    "nt_xent": (OUT, all_candidates, "Each negative is pushed by its softmax share. The shares sum to the total pull."),
    "sup_con": (
        OUT,
        all_candidates,
        'For `form="out"`. Every positive has the same target, so a positive that is already similar is pushed away '
        "when its share exceeds $1/|P(i)|$.",
    ),
    "instance_softmax": (
        OUT,
        all_candidates,
        "The candidates are the slots of the memory bank, which get no gradient.",
    ),
    "info_nce": (
        OWN,
        own_positive,
        "Each positive competes with the negatives alone. Here $\\pi^p_{ij}=0$ for other positives.",
    ),
    "n_pair": (
        OWN,
        own_positive,
        "The same as InfoNCE with $\\tau = 1$. The penalty adds $2\\lambda f_i$ to the anchor's gradient.",
    ),
    "soft_nearest_neighbor": (
        r"\frac{\partial L_i}{\partial f_{ij}} = -\frac{1}{\tau}\Big(\pi_{ij} - [j\in P(i)]\,\rho_{ij}\Big),\quad "
        r"\rho_{ij} = \frac{e^{-f_{ij}/\tau}}{\sum_{p\in P(i)}e^{-f_{ip}/\tau}}",
        soft_nearest_neighbor,
        "$\\pi_{ij}$ is the softmax over all candidates. The nearest positive receives almost all of the pull.",
    ),
    "nce": (
        r"\frac{\partial L_i}{\partial s_{ip}} = -\frac{1-\sigma(\ell_{ip})}{\tau|P(i)|},\quad "
        r"\frac{\partial L_i}{\partial s_{ik}} = \frac{\sigma(\ell_{ik})}{\tau}",
        nce,
        "Negatives do not compete with each other: each has its own probability $\\sigma(\\ell_{ik})$.",
    ),
    "invariance_spread": (
        r"\frac{\partial L_i}{\partial s_{ij}} = \frac{1}{\tau}\Big(P_{ij} - " + MEAN + r" + [j\in N(i)]\frac{P_{ij}}"
        r"{1-P_{ij}} - P_{ij}\sum_{k\in N(i)}\frac{P_{ik}}{1-P_{ik}}\Big)",
        invariance_spread,
        'For `form="source"`. A negative with a large share is pushed twice: by the first term and by the spread term.',
    ),
    "decoupled": (
        r"\frac{\partial L_i}{\partial s_{ij}} = \frac{1}{\tau}\Big(\nu_{ij} - " + MEAN + r"\Big),\quad "
        r"\nu_{ij} = \frac{[j\in N(i)]\,e^{s_{ij}/\tau}}{\sum_{k\in N(i)} e^{s_{ik}/\tau}}",
        decoupled,
        'For `weighting="none"`. The pull and the push are each $1/\\tau$ in total, however similar the positive is.',
    ),
    "siglip": (
        r"\frac{\partial L_i}{\partial s_{ip}} = -\frac{1-\sigma(\ell_{ip})}{\tau},\quad "
        r"\frac{\partial L_i}{\partial s_{ik}} = \frac{\sigma(\ell_{ik})}{\tau},\quad "
        r"\ell_{ij} = \frac{s_{ij}}{\tau} + b",
        siglip,
        "Each pair has its own probability $\\sigma(\\ell_{ij})$: no pair depends on the others of the batch.",
    ),
    "hard_negative": (
        r"\frac{\partial L_i}{\partial s_{ik}} = \frac{1}{\tau|P(i)|}\sum_{p\in P(i)}\frac{K\,\omega_{ik}"
        r"\big((1+\beta)e^{s_{ik}/\tau} - \beta\sum_l\omega_{il}e^{s_{il}/\tau}\big)}"
        r"{(1-\tau^+)(e^{s_{ip}/\tau}+G_{ip})}",
        hard_negative,
        "For $G$ above its least value. A negative less similar than the weighted mean can be pulled, because it takes "
        "weight from harder ones.",
    ),
    "robust_info_nce": (
        r"\frac{\partial L_i}{\partial s_{ij}} = \frac{1}{\tau|P(i)|}\sum_{p\in P(i)}\Big("
        r"(\lambda S_{ip})^q\pi^{p}_{ij} - [j=p]\,e^{q s_{ip}/\tau}\Big),"
        r"\quad S_{ip} = e^{s_{ip}/\tau}+\sum_{k\in N(i)} e^{s_{ik}/\tau}",
        robust_info_nce,
        "$\\pi^p_{ij}$ as for InfoNCE. The pull of a dissimilar positive is small: it may not belong to the anchor.",
    ),
    "pair_contrastive": (
        r"\frac{\partial L_i}{\partial D_{ip}} = \frac{D_{ip}}{|A(i)|},\quad "
        r"\frac{\partial L_i}{\partial D_{ik}} = -\frac{\max(0,\,\varepsilon-D_{ik})}{|A(i)|}",
        pair_contrastive,
        'For `hinge="distance"`. The pull grows with the distance. The push is largest for the nearest negative and '
        "ends at the margin.",
    ),
    "triplet": (
        r"\frac{\partial L_i}{\partial D_{ip}^2} = \frac{|\{k:(i,p,k)\text{ active}\}|}{|T(i)|},\quad "
        r"\frac{\partial L_i}{\partial D_{ik}^2} = -\frac{|\{p:(i,p,k)\text{ active}\}|}{|T(i)|}",
        triplet,
        "For all triplets $T(i)$ of the anchor. A triplet is active while its hinge is above 0. Every active triplet "
        "counts the same, however hard it is.",
    ),
    "lifted_structure": (
        r"\frac{\partial L_i}{\partial D_{ip}} = \frac{\max(0,J_{ip})}{|P(i)|},\quad "
        r"\frac{\partial L_i}{\partial D_{ik}} = -\frac{1}{|P(i)|}\sum_{p\in P(i)}\max(0,J_{ip})\,"
        r"\frac{e^{\varepsilon-D_{ik}}}{S_i+S_p},\quad "
        r"S_i = \sum_{k\in N(i)}e^{\varepsilon-D_{ik}}",
        lifted_structure,
        'For `form="smooth"`. A negative is pushed by its share among the negatives of both ends of the pair.',
    ),
    "negative_cosine": (
        r"\frac{\partial L_i}{\partial s_{ij}} = -2\," + MEAN,
        negative_cosine,
        "The same for every pair: nothing competes, and no negative is pushed.",
    ),
    "swapped_prediction": (
        r"\frac{\partial L_i}{\partial s_{ik}} = \frac{1}{\tau}\big(\pi_{ik} - q_{ik}\big),\quad " + SOFTMAX,
        all_candidates,
        "The code $q_{ik}$ stands in the place of the mean over positives. Prototypes get a gradient too.",
    ),
    "barlow_twins": (
        r"\frac{\partial L}{\partial C_{jj}} = -2\,(1-C_{jj}),\quad "
        r"\frac{\partial L}{\partial C_{jk}} = 2\lambda\, C_{jk},\quad "
        r"\frac{\partial L}{\partial \hat a_i} = \frac1n\,\frac{\partial L}{\partial C}\,\hat b_i",
        barlow_twins,
        "An image is moved by how its other view correlates, through the batch's mean and deviation of each dimension.",
    ),
    "vicreg": (
        BY_ROW + r"\frac{2\lambda}{nd}(a_i-b_i) - \frac{\mu}{2d(n-1)}\Big(\frac{[\sigma_j<\gamma]}{\sigma_j}"
        r"(a_{ij}-\bar a_j)\Big)_j + \frac{4\nu}{d(n-1)}\,\mathrm{off}\big(\mathrm{Cov}(A)\big)\,(a_i-\bar a)",
        vicreg,
        "The hinge pushes rows away from the mean where a dimension varies too little. The last term turns them out of "
        "directions that two dimensions share.",
    ),
    "lejepa": (
        BY_ROW + r"\frac{1-\lambda}{2nd}(a_i-b_i) + \frac{\lambda}{M}\sum_{u,t} w_t\, t\, e^{-t^2/2}\Big("
        r"\mathrm{Im}_{ut}\cos(t\,u^\top a_i) - \big(\mathrm{Re}_{ut}-e^{-t^2/2}\big)\sin(t\,u^\top a_i)\Big)\,u",
        lejepa,
        "Re and Im are the parts of the mean of $e^{i t u^\\top a}$ over the batch. Along each direction a row moves "
        "to where the normal distribution lacks one.",
    ),
}
