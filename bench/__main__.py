"""``python -m bench``: what ``doseforest bench`` runs in a clone."""

from bench.command import app

if __name__ == "__main__":
    app(prog_name="bench")
