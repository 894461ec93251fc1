"""The command line: assembles the commands and turns every failure into one sentence and an exit code.

0 is success, 1 failure or interruption, 2 wrong usage or input. Only results go to standard output.
"""

import sys
from collections.abc import Sequence

import click

import transduce
from transduce.cli import INTERRUPTED
from transduce.cli.commands.check import check
from transduce.cli.commands.demo import demo
from transduce.cli.commands.evaluate import evaluate
from transduce.cli.commands.export import export
from transduce.cli.commands.inspect import inspect
from transduce.cli.commands.label import label
from transduce.cli.commands.predict import predict
from transduce.cli.commands.queue import queue
from transduce.cli.commands.report import report
from transduce.cli.commands.review import review
from transduce.cli.commands.tag import tag
from transduce.cli.commands.warm import warm
from transduce.cli.errors import InputError, InterruptedFitError
from transduce.io.atomic_write import WriteError
from transduce.suggest import as_sentence

COMMANDS = (label, predict, review, export, evaluate, inspect, check, queue, report, tag, demo, warm)
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(commands=COMMANDS, no_args_is_help=False, context_settings=SETTINGS)
@click.version_option(transduce.__version__, prog_name="transduce")
def cli() -> None:
    """Label documents, given labels for a few of them and whatever you know of the class sizes.

    \b
    transduce label tickets.csv -o labelled.csv --model m.safetensors --report r.html
    transduce predict m.safetensors next-week.csv -o next-week-labelled.csv
    transduce review tickets.csv
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        return cli.main(arguments, prog_name="transduce", standalone_mode=False) or 0
    except InputError as error:
        return _fail(str(error), 2)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "transduce"
        return _fail(f"{as_sentence(error.format_message())} Try '{command} --help'.", 2)
    except (click.Abort, KeyboardInterrupt):
        return _fail(INTERRUPTED, 1)
    except (InterruptedFitError, WriteError) as error:
        return _fail(str(error), 1)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        return _fail(f"{error.filename or 'a file'}: {error.strerror or error}.", 1)
    except MemoryError:
        return _fail("out of memory. Try --features hashing, fewer --jobs, or a part of the file.", 1)


def _fail(message: str, code: int) -> int:
    print(f"transduce: {' '.join(message.split())}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
