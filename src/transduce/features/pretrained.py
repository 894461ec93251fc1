"""Encoders that others trained: sentence-transformers and model2vec models, by name or folder.

A name is looked up among the models on this machine, and downloaded only if it is not there. Nothing of a model is
executed: weights are safetensors, and models with code of their own are refused.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.features.encoders import MAX_CHARACTERS, EncoderError
from transduce.suggest import install_advice
from transduce.validation import check_path

DEFAULTS = {
    "sentence_transformers": "sentence-transformers/all-MiniLM-L6-v2",
    "model2vec": "minishlab/potion-base-8M",
}
"""The encoder to use with each package."""
NONE_INSTALLED = (
    "neither sentence-transformers nor model2vec is installed. "
    f"{install_advice('embeddings')}, or '.[static]' for small models without PyTorch."
)
FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]
"""What models consist of: no code, no pickles."""
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
CHARACTERS_PER_TOKEN = 32
"""Texts are cut to so many characters for each token that a model takes; most tokens have four or five."""
BATCH_SIZE, DEVICE_BATCH_SIZE = 32, 256
"""Texts encoded at once, on a processor and on other devices."""


def default_encoder() -> str | None:
    """Return the encoder used if none is named: TRANSDUCE_ENCODER, else by the installed package; None without one."""
    installed = [name for package, name in DEFAULTS.items() if find_spec(package) is not None]
    return (os.environ.get("TRANSDUCE_ENCODER") or installed[0]) if installed else None


def local_encoder() -> str | None:
    """Return the default encoder if it can be used without a network; None if it is not on this machine."""
    name = default_encoder()
    if name is None or Path(name).expanduser().is_dir():
        return name
    if Path(name).is_absolute():
        raise EncoderError(f"TRANSDUCE_ENCODER is {name}, which is not a folder. Correct it, or unset it.")
    return None if _find_local(*_name_and_revision(name)) is None else name


def load_encoder(source: str | Path | None = None) -> "PretrainedEncoder":
    """Load a sentence-transformers or model2vec model.

    Parameters
    ----------
    source : str, Path or None, default=None
        A folder, or the name of a published model, which "@" and a commit may follow. None is the one in the
        environment variable TRANSDUCE_ENCODER, or else a small model for the package that is installed.

    Returns
    -------
    PretrainedEncoder
        The encoder. Its weights are read when they are first needed.
    """
    source = default_encoder() if source is None else source
    if source is None or default_encoder() is None:
        raise EncoderError(f"embeddings need an encoder, but {NONE_INSTALLED}")
    folder = Path(check_path("encoder", source)).expanduser()
    if folder.is_dir():
        name, revision = Path(os.path.abspath(folder)).name, _digest(folder)
    else:
        name, wanted = _name_and_revision(str(source))
        folder = _find_published(name, wanted)
        revision = folder.name
    is_static = _checked_modules(folder)[0].endswith(".StaticEmbedding")
    package, extra = ("model2vec", "static") if is_static else ("sentence-transformers", "embeddings")
    if find_spec(package.replace("-", "_")) is None:
        raise EncoderError(f"the encoder {name} needs {package}. {install_advice(extra)}.")
    return PretrainedEncoder(name, revision, folder, is_static)


@dataclass(frozen=True)
class PretrainedEncoder:
    """A sentence-transformers model on the device that is there, or a (static) model2vec model; see `Encoder`."""

    name: str
    revision: str
    folder: Path
    is_static: bool

    @cached_property
    def model(self) -> Any:
        """The model, loaded when it is first needed: importing PyTorch takes seconds."""
        try:
            return _load_model(self.folder, self.revision, self.is_static)
        except Exception as error:  # PyTorch, tokenizers and safetensors raise exceptions of all kinds
            problem = f"the encoder {self.name} cannot be loaded from {self.folder}: {_first_line(error)}"
            raise EncoderError(f"{problem}. Download it again, or use another one.") from error

    @cached_property
    def dimension(self) -> int:
        """See `Encoder.dimension`."""
        return int(self.encode(["text"]).shape[1])

    @property
    def max_characters(self) -> int:
        """See `Encoder.max_characters`."""
        n_tokens = self.model.max_length if self.is_static else self.model.max_seq_length
        return MAX_CHARACTERS if n_tokens is None else min(MAX_CHARACTERS, CHARACTERS_PER_TOKEN * n_tokens)

    def encode(self, texts: Sequence[str]) -> Array:
        """See `Encoder.encode`."""
        options: dict[str, Any] = {"use_multiprocessing": False}
        if not self.is_static:
            options = {"batch_size": BATCH_SIZE if self.model.device.type == "cpu" else DEVICE_BATCH_SIZE}
        try:
            return np.asarray(self.model.encode(list(texts), show_progress_bar=False, **options), dtype=np.float32)
        except RuntimeError as error:  # of PyTorch, for example when the memory of a device is full
            problem = f"the encoder {self.name} failed: {_first_line(error)}"
            raise EncoderError(f"{problem}. Use a smaller one, or no GPU (CUDA_VISIBLE_DEVICES='').") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


@lru_cache(maxsize=1)
def _load_model(folder: Path, revision: str, is_static: bool) -> Any:
    """Load a model; the last one is kept, so that a program that predicts often loads it once."""
    return (_load_static if is_static else _load_transformer)(folder)


def _load_static(folder: Path) -> Any:
    from model2vec import StaticModel

    return StaticModel.from_pretrained(folder)


def _load_transformer(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    verbosity, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        return SentenceTransformer(
            str(folder), trust_remote_code=False, local_files_only=True, model_kwargs={"use_safetensors": True}
        )
    finally:
        logging.set_verbosity(verbosity)
        if has_bars:
            logging.enable_progress_bar()


def _name_and_revision(source: str) -> tuple[str, str | None]:
    """Return the full name of a published model, and the revision after "@" if there is one."""
    name, _, revision = source.partition("@")
    return name if "/" in name else f"sentence-transformers/{name}", revision or None


def _find_local(name: str, revision: str | None) -> Path | None:
    """Return the folder of a published model that was downloaded before."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(name, revision=revision, local_files_only=True, allow_patterns=FILES))
    except (OSError, ValueError):
        return None  # it is not here, or has no such name, which a download tells apart
    return folder if (folder / "modules.json").exists() and any(folder.rglob("*.safetensors")) else None


def _find_published(name: str, revision: str | None) -> Path:
    """Return the folder of a published model, which is downloaded unless it is there."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    folder = _find_local(name, revision)
    if folder is not None:
        return folder
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=FILES))
    except (HFValidationError, RepositoryNotFoundError, RevisionNotFoundError):
        reason = f"no public model has this name{'' if revision is None else f' and the revision {revision}'}"
    except (OSError, ValueError):
        reason = "the network cannot be reached"
    raise EncoderError(
        f"the encoder {name!r} is neither a folder nor a model on this machine, and cannot be downloaded: {reason}. "
        "Correct the name, or download it where there is a network, copy it here and name its folder."
    )


def _checked_modules(folder: Path) -> list[str]:
    """Return the types of the modules that a model consists of, after checking that they are safe to load."""
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        types = [str(module["type"]) for module in modules]
    except (OSError, ValueError, TypeError, KeyError):
        types = []
    safe = {path.parent for path in folder.rglob("*.safetensors")}
    pickled = [path for path in folder.rglob("*") if path.suffix in PICKLES and path.parent not in safe]
    if not types:
        problem = "is not an encoder: it has no modules.json that names its modules"
    elif not all(name.startswith("sentence_transformers.") for name in types):
        problem = "is not used, because it has code of its own"
    elif pickled:
        problem = f"is not used, because {pickled[0].name} is a pickle, which can run code"
    elif not safe:
        problem = "is not an encoder: it has no weights in a .safetensors file"
    else:
        return types
    raise EncoderError(f"{folder} {problem}. Name a safetensors model of sentence-transformers or model2vec.")


def _digest(folder: Path) -> str:
    """Return a digest of the files of a model, which a copy of it has too."""
    digest = hashlib.blake2b(digest_size=20)
    for path in sorted({path for pattern in FILES for path in folder.rglob(pattern) if path.is_file()}):
        digest.update(path.relative_to(folder).as_posix().encode("utf-8", "replace"))
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()
