#!/usr/bin/env python3
"""Writes catalogue.json from the PyPI package genai-prices (MIT).

    python3 -m venv v && v/bin/pip install genai-prices==0.2.3
    v/bin/python build.py --on 2026-11-30 --version 20261130 > catalogue.json

Rates become whole pico-dollars a token; what is not whole is refused, and so is every kind of
price this format has no place for, except fees per search, which are no token prices. A price
that depends on the date is the one in force on --on; one that is known to end is refused.
"""

import argparse
import datetime
import importlib.metadata
import json
import sys
from decimal import Decimal

from genai_prices.data import providers
from genai_prices.types import ConditionalPrice, StartDateConstraint, TieredPrices

# Names beside the model's own. A dated snapshot needs none: the reader takes the date off.
MODELS = {
    "openai": {
        "gpt-4o": [],
        "gpt-4o-2024-05-13": [],
        "gpt-4o-mini": [],
        "gpt-4.1": [],
        "gpt-4.1-mini": [],
        "gpt-4.1-nano": [],
        "gpt-5": ["gpt-5-chat-latest"],
        "gpt-5-mini": [],
        "gpt-5-nano": [],
        "gpt-5.1": ["gpt-5.1-chat-latest"],
        "gpt-5.2": ["gpt-5.2-chat-latest"],
        "o1": [],
        "o3": [],
        "o3-mini": [],
        "o4-mini": [],
    },
    "anthropic": {
        "claude-3-5-haiku-latest": ["claude-3-5-haiku"],
        "claude-3-7-sonnet-latest": ["claude-3-7-sonnet"],
        "claude-haiku-4-5": [],
        "claude-sonnet-4-0": ["claude-sonnet-4"],
        "claude-sonnet-4-5": [],
        "claude-opus-4-0": ["claude-opus-4"],
        "claude-opus-4-1": [],
        "claude-opus-4-5": [],
    },
}

# The package's key -> ours.
RATES = {
    "input_mtok": "input",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write_5m",
    "cache_write_1h_mtok": "cache_write_1h",
    "output_mtok": "output",
    "input_audio_mtok": "audio_in",
    "output_audio_mtok": "audio_out",
}
PER_SEARCH = {"web_searches_kcount", "storage_searches_kcount"}

PICO_PER_USD = 10**12
TOKENS_PER_MTOK = 10**6


class Refused(Exception):
    """A price this format cannot hold exactly."""


def pico(usd_per_mtok: Decimal) -> int:
    rate = usd_per_mtok * PICO_PER_USD / TOKENS_PER_MTOK
    if rate != int(rate) or rate < 0:
        raise Refused(f"{usd_per_mtok} a million is no whole number of pico-dollars a token")
    return int(rate)


def in_force(prices, on: datetime.date):
    """The price of that day and the day it began, None for always."""
    if not isinstance(prices, list):
        return prices, None
    best, began = None, None
    for conditional in prices:
        assert isinstance(conditional, ConditionalPrice)
        constraint = conditional.constraint
        if constraint is None:
            best, began = conditional.prices, None
        elif not isinstance(constraint, StartDateConstraint):
            raise Refused(f"it depends on {type(constraint).__name__}")
        elif constraint.start_date <= on:
            best, began = conditional.prices, constraint.start_date
        else:
            raise Refused(f"it changes on {constraint.start_date}")
    return best, began


def tiers(price) -> list[dict]:
    values = {key: value for key, value in vars(price).items() if value is not None}
    values = {key: value for key, value in values.items() if key not in PER_SEARCH}
    strange = set(values) - set(RATES)
    if strange:
        raise Refused(f"there is no place for {sorted(strange)}")
    starts = {0}
    for value in values.values():
        if isinstance(value, TieredPrices):
            starts.update(tier.start for tier in value.tiers)
    rows = []
    for start in sorted(starts):
        row = {"above_input": start}
        for key, ours in RATES.items():
            if key in values:
                row[ours] = pico(at(values[key], start))
        rows.append(row)
    return rows


def at(value, start: int) -> Decimal:
    """The rate of the tier that begins at `start`."""
    if not isinstance(value, TieredPrices):
        return value
    rate = value.base
    for tier in sorted(value.tiers, key=lambda tier: tier.start):
        if tier.start <= start:
            rate = tier.price
    return rate


def entry(provider, name: str, aliases: list[str], on: datetime.date) -> dict:
    model = next((m for m in provider.models if m.id == name), None)
    if model is None:
        raise Refused("the package does not have it")
    for alias in aliases:
        if not model.is_match(alias):
            raise Refused(f"the package does not know it as {alias}")
    price, began = in_force(model.prices, on)
    row = {"provider": provider.id, "model": name, "aliases": aliases}
    row["from"] = began.isoformat() if began else None
    row["until"] = None
    row["tiers"] = tiers(price)
    if model.context_window:
        row["context"] = model.context_window
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--on", required=True, type=datetime.date.fromisoformat)
    parser.add_argument("--version", required=True, type=int)
    options = parser.parse_args()
    by_id = {provider.id: provider for provider in providers}
    rows, refused = [], []
    for provider, models in MODELS.items():
        for name, aliases in models.items():
            try:
                rows.append(entry(by_id[provider], name, aliases, options.on))
            except Refused as why:
                refused.append(f"{provider}/{name}: {why}")
    if refused:
        print("\n".join(refused), file=sys.stderr)
        return 1
    head = {
        "version": options.version,
        "generated": options.on.isoformat(),
        "sources": [
            {
                "name": "genai-prices",
                "version": importlib.metadata.version("genai-prices"),
                "licence": "MIT",
                "url": "https://github.com/pydantic/genai-prices",
            }
        ],
    }
    # One model a line: a change of price is one line of a diff.
    print(json.dumps(head, indent=2)[:-2] + ',\n  "models": [')
    print(",\n".join("    " + json.dumps(row) for row in rows))
    print("  ]\n}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
