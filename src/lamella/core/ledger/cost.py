"""What a turn costs, beside what it is compared with."""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Input cost of one turn: as sent, as naive gluing would cost, and with a cache that never misses."""

    amount: Decimal
    naive: Decimal
    limit: Decimal
