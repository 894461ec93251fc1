"""`review` for Python: a review of a frame from a notebook or a script."""

import tempfile
from pathlib import Path
from typing import Any, Self

from transduce.errors import InputError
from transduce.features.embeddings import Encoding
from transduce.features.pretrained import local_encoder
from transduce.features.text_rows import fit_texts
from transduce.labels.missing import is_missing
from transduce.reviewing.documents import Documents
from transduce.reviewing.log import DecisionLog
from transduce.reviewing.session import Session
from transduce.suggest import install_advice, name_list, short_repr
from transduce.text import read_texts
from transduce.validation import check_path


class Review:
    """A review that runs: open `url` in a browser, and read `labels` or `frame` at any time.

    Attributes
    ----------
    url : str
        Link to the page, with its secret.
    project : Path
        Folder of the log of decisions.
    """

    def __init__(self, frame: Any, session: Session, project: Path) -> None:
        try:
            from transduce.reviewing.server import ReviewServer
        except ModuleNotFoundError as error:
            session.close()
            if error.name not in ("starlette", "uvicorn"):
                raise
            raise InputError(f"a review needs the extra 'review'. {install_advice('review')}") from None
        self._frame, self._session, self.project = frame, session, project
        self._server = ReviewServer(session)
        self.url, self._thread = self._server.url, self._server.start()

    @property
    def labels(self) -> list[str | None]:
        """Labels that people gave so far: decisions, else those of the frame."""
        with self._session.lock:
            return self._session.state.labels()

    @property
    def proposals(self) -> list[str | None]:
        """Labels of all documents: those that people gave, and proposals for the others once there are any."""
        with self._session.lock:
            found, decided = self._session.proposals, self._session.state.labels()
        if found is None:
            return decided
        named = (found.classes[k] for k in found.label.tolist())
        return [other if label is None else label for label, other in zip(decided, named, strict=True)]

    def frame(self) -> Any:
        """Return the frame, of pandas or polars, with the columns `decision` and `proposal`."""
        columns = {"decision": self.labels, "proposal": self.proposals}
        if hasattr(self._frame, "assign"):
            return self._frame.assign(**columns)
        import polars as pl

        return self._frame.with_columns([pl.Series(name, values, dtype=pl.String) for name, values in columns.items()])

    def stop(self) -> None:
        """End the review; decisions stay in the project folder."""
        self._server.stop()
        self._thread.join(timeout=30)
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.stop()


def review(
    frame: Any,
    *,
    text: str = "text",
    label: str | None = None,
    project: str | Path | None = None,
    features: str = "auto",
    encoder: Any = None,
    open_browser: bool = True,
) -> Review:
    """Review the documents of a frame in the browser while a classifier learns from the decisions.

    It needs the extra `review`. The frame is not changed, and this call returns at once.

    Parameters
    ----------
    frame : DataFrame of pandas or polars
        Documents, one a row.
    text : str, default="text"
        Column of the texts.
    label : str or None, default=None
        Column of the labels so far, missing or "" where there is none. None: there are none.
    project : str, Path or None, default=None
        Folder of the decisions: name it to continue later. None for a temporary folder.
    features : {"auto", "tfidf", "hashing", "embeddings", "mix"}, default="auto"
        What texts become, as in `TextClassifier`; "auto" is a mix if an encoder is on this machine, else words.
    encoder : Encoder, callable, str, Path or None, default=None
        Encoder of the vectors, as in `TextClassifier`.
    open_browser : bool, default=True
        Whether to open the page.

    Returns
    -------
    Review
        The running review: `url`, `labels`, `proposals`, `frame()` and `stop()`. It is a context manager.
    """
    for name in [text] if label is None else [text, label]:
        _check_column(frame, name)
    texts = read_texts(frame[text])
    given = None if label is None else [_label(value) for value in frame[label]]
    if features == "auto":
        features = "tfidf" if encoder is None and local_encoder() is None else "mix"
    rows = fit_texts(texts, features, Encoding(encoder))
    folder = Path(tempfile.mkdtemp(prefix="transduce-review-") if project is None else check_path("project", project))
    documents = Documents(texts, rows.X, rows.vectorizer.vocabulary)
    found = Review(frame, Session(documents, DecisionLog(folder, texts), given), folder)
    if open_browser:
        import webbrowser

        webbrowser.open(found.url)
    return found


def _check_column(frame: Any, name: Any) -> None:
    """Raise InputError unless the frame has this column."""
    if not hasattr(frame, "columns"):
        raise InputError(f"frame must be a DataFrame of pandas or polars, but is {short_repr(frame)}. Pass one.")
    if name not in list(frame.columns):
        columns = name_list(frame.columns) or "none"
        raise InputError(f"the frame has no column {short_repr(name)}, but {columns}. Name others by text= and label=.")


def _label(value: Any) -> str | None:
    return None if is_missing(value) or not str(value).strip() else str(value).strip()
