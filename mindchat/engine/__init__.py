"""The engine: one question in, typed news out.

Owns: the loop and its steps. Does not own: any decision (policies, filters), any wording (prompts), any store. Imports
no other room.
"""

from __future__ import annotations
