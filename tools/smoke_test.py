"""A short test of an installed transduce, in the Python that runs it: import, fit, save, load, command line, times.

`tools/check_install.py` runs it in clean environments; the working folder must be empty. It prints measures as JSON.
"""

import csv
import json
import resource
import subprocess
import sys
import time

TEXTS = ("refund of my invoice", "the server is down", "invoice charged twice", "server error again")
IMPORT = "from transduce import TransductiveClassifier, TextClassifier"


def cpu_seconds(statement, repeats=5):
    """The least CPU time of several fresh processes that run a statement."""
    found = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-I", "-c", statement], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def fit_seconds():
    """CPU seconds of the first and of the second fit in this process."""
    import numpy as np

    from transduce import TransductiveClassifier

    rng = np.random.default_rng(0)
    truth = np.arange(300) % 3
    X = np.eye(3, 20)[truth] + rng.normal(scale=0.2, size=(300, 20))
    y = np.where(np.arange(300) < 60, truth, -1)
    seconds = []
    for _ in range(2):
        start = time.process_time()
        clf = TransductiveClassifier(random_state=0).fit(X, y)
        seconds.append(time.process_time() - start)
    assert (clf.transduction_ == truth).mean() > 0.9, "a fit that is easy went wrong"
    return seconds


def check_command_line():
    """Label a file, predict with the model by command and in Python, and compare."""
    from transduce import TextClassifier

    rows = [(text, "billing" if "invoice" in text else "outage") for text in TEXTS * 10]
    with open("tickets.csv", "w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *((t, c if i < 8 else "") for i, (t, c) in enumerate(rows))])
    command = [sys.executable, "-I", "-m", "transduce"]
    options = ["--features", "tfidf", "--quiet", "--model", "model.safetensors", "--report", "report.html"]
    subprocess.run([*command, "label", "tickets.csv", "-o", "labelled.csv", *options], check=True)
    with open("texts.csv", "w", newline="") as file:
        csv.writer(file).writerows([("text",), *((text,) for text, _ in rows)])
    arguments = ["predict", "model.safetensors", "texts.csv", "-o", "predicted.csv", "--quiet"]
    subprocess.run([*command, *arguments], check=True)
    clf = TextClassifier.load("model.safetensors")
    clf.save("again.safetensors")
    predicted = TextClassifier.load("again.safetensors").predict([text for text, _ in rows]).tolist()
    assert predicted == [label for _, label in rows], predicted
    for path in ("labelled.csv", "predicted.csv"):
        with open(path, newline="") as file:
            assert [row["label"] for row in csv.DictReader(file)] == predicted, path


def main():
    """Run the part that the first argument names."""
    if sys.argv[1] == "import":
        print(json.dumps({"ratio": cpu_seconds(IMPORT) / cpu_seconds("import sklearn.linear_model")}))
    elif sys.argv[1] == "fit":
        print(json.dumps({"fits": fit_seconds()}))
    else:
        check_command_line()


if __name__ == "__main__":
    main()
