# SPDX-License-Identifier: Apache-2.0
"""How far a trial of `fix` has to go: TONNAGE_LAST_NEWS says in which step, and in which epoch of training, something new came last in the
unchanged program. A trial that began before that had ended ("later") is told in its ledger: the step when memory has settled in the unchanged program, the epoch
when that has ended. It goes on until then.
"""

from . import ledger
from .state import settings


def look():
    """Takes what the ledger tells."""
    told = ledger.news() if settings.news_waits else None
    if told is not None:
        everything, settings.news_step, settings.news_epoch = told
        settings.news_waits = not everything
