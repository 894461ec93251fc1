"""Contrastive fine-tuning of a sentence encoder with a linear head, the recipe of SetFit (Tunstall et al., 2022).

Pairs of labelled texts are drawn, as many of the same class as of different classes. The encoder learns that the cosine
of a pair is 1 or 0, by the mean squared error, in one pass over the pairs. LogisticRegression on the vectors of the
labelled texts is the head. Needs torch and sentence-transformers; nothing else of this project is imported.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

N_ROUNDS, BATCH_SIZE = 20, 16
STEP, DECAY, WARM_UP = 2e-5, 0.01, 0.1


def encoder(name: str) -> Any:
    """The encoder of this name or in this folder, on the device that is there."""
    try:
        import torch
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise SystemExit(
            f"{error.name} is not installed: pip install torch sentence-transformers, then run this again."
        ) from None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return SentenceTransformer(name, device=device, trust_remote_code=False)
    except OSError as error:
        raise SystemExit(f"The encoder {name!r} is not there: {str(error).splitlines()[0]}") from None


def pairs(y: np.ndarray, seed: int) -> np.ndarray:
    """Row numbers and targets (n, 3): in each round a text of the same class and one of another for every text.

    The only text of a class is paired with itself.
    """
    rng, rows = np.random.default_rng(seed), np.arange(len(y))
    found = []
    for _ in range(N_ROUNDS):
        for i in rows:
            same, other = rows[(y == y[i]) & (rows != i)], rows[y != y[i]]
            found.append((i, rng.choice(same) if same.size else i, 1))
            if other.size:
                found.append((i, rng.choice(other), 0))
    return rng.permutation(np.array(found))


def batches(found: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
    """Pairs and the factor of the step: it grows from 0 in the first tenth, and falls to 0 in the rest."""
    n = -(-len(found) // BATCH_SIZE)
    for b in range(n):
        done = (b + 1) / (n + 1)
        yield found[b * BATCH_SIZE : (b + 1) * BATCH_SIZE], min(done / WARM_UP, (1 - done) / (1 - WARM_UP))


def tune(model: Any, texts: Sequence[str], y: np.ndarray, seed: int) -> None:
    """Train the encoder on pairs of labelled texts."""
    import torch

    torch.manual_seed(seed)
    preprocess = getattr(model, "preprocess", None) or model.tokenize  # its name before sentence-transformers 6
    optimizer = torch.optim.AdamW(model.parameters(), lr=STEP, weight_decay=DECAY)
    model.train()
    for batch, factor in batches(pairs(y, seed)):
        both = preprocess([texts[i] for i in batch[:, :2].T.ravel()])
        both = {name: value.to(model.device) if hasattr(value, "to") else value for name, value in both.items()}
        one, other = model(both)["sentence_embedding"].chunk(2)
        target = torch.as_tensor(batch[:, 2], dtype=one.dtype, device=one.device)
        loss = torch.mean((torch.cosine_similarity(one, other) - target) ** 2)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = STEP * factor
        optimizer.step()
    model.eval()


def predictions(name: str, texts: Sequence[str], y: np.ndarray, new: Sequence[str], seed: int) -> np.ndarray:
    """Classes of new texts by an encoder that is tuned on labelled texts, with LogisticRegression as its head."""
    model = encoder(name)
    tune(model, texts, y, seed)
    head = LogisticRegression(max_iter=1000).fit(model.encode(list(texts), show_progress_bar=False), y)
    return head.predict(model.encode(list(new), batch_size=128, show_progress_bar=False))
